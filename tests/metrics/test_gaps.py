"""Several notions at once give what each gives alone."""

import time
import warnings
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fair_envs.core.interactions import FairSpec
from fair_envs.metrics import Consistency, Gaps, GroupNotion, gaps
from fair_envs.metrics.gaps import BY_NAME, decision_notions
from fair_envs.metrics.group import DEFINITIONS
from fair_envs.metrics.history import Discounted, Full, History, Memory, SlidingWindow
from fair_envs.support.aliases import Floats
from tests.helpers import uncompiled

SPEC = FairSpec(
    individuals=1,
    actions=2,
    features=(),
    sensitive={"gender": ("man", "woman"), "origin": ("north", "south", "east")},
    legitimate={"degree": ("none", "some")},
    groups=tuple(map(str, range(6))),
    feedback="full",
)
OTHERS_IGNORED = ":groups are compared by 'gender', not by"
pytestmark = pytest.mark.filterwarnings(f"ignore{OTHERS_IGNORED}:UserWarning")  # the default is tested here too
GROUPS: list[Any] = [None, "origin", ("gender", "origin"), {"gender": "woman", "origin": "east"}]
UNDEFINED: list[Any] = ["nan", "fair", "unfair", "last"]
FORMS: list[dict[str, Any]] = [{}, {"across": "rest"}, {"current_step": True}]
EVERY = [  # each notion with each choice of groups, and the other options in turn
    GroupNotion(name=name, groups=groups, undefined=UNDEFINED[k % 4], **FORMS[k % 3])
    for k, (name, groups) in enumerate(product(DEFINITIONS, GROUPS))
] + [GroupNotion(name=name, undefined="paper") for name in DEFINITIONS]


class Crowded:
    """A notion of one's own: how full a lane's history is."""

    def check(self, spec: FairSpec) -> None:
        pass

    def gap(self, history: History, *, last: Any = None) -> Floats:
        return np.where(history.sizes > 0, history.sizes / 100, last)


def filled(rows: list[tuple[int, int, int, int, int]], memory: Memory) -> History:
    history = History(memory, SPEC)
    for gender, origin, degree, action, truth in rows:
        people: dict[str, Any] = {"sensitive": [[gender, origin]], "legitimate": [[degree]]}
        history.add_rows(**people, action=[action], feedback=[truth])
    return history


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1), st.integers(-1, 1)),
    max_size=25,
)


@given(rows=ROWS, memory=st.sampled_from([Full(), SlidingWindow(6), Discounted(0.9, minimum=3)]))
def test_every_form_gives_the_same_number_together_and_alone(rows: Any, memory: Memory) -> None:
    history = filled(rows, memory)
    last = np.linspace(0, 1, len(EVERY))[np.newaxis]
    alone = np.stack([notion.gap(history, last=last[:, n]) for n, notion in enumerate(EVERY)], axis=1)
    np.testing.assert_array_equal(gaps(EVERY, history, last=last), alone)
    np.testing.assert_array_equal(gaps(EVERY[::-1], history, last=last[:, ::-1]), alone[:, ::-1])


@pytest.mark.nojit
def test_notions_of_both_kinds_stand_in_the_order_given() -> None:
    history = filled([(0, 0, 0, 1, 1), (1, 0, 0, 0, 1), (1, 1, 1, 1, 0)], Full())
    notions: list[Any] = [Crowded(), "SP", Crowded(), "equal_opportunity"]
    found = gaps(notions, history)
    assert found.tolist() == [[0.03, 0.5, 0.03, 1.0]]
    assert Gaps(["SP", Crowded()], SPEC).names == ("demographic_parity", "Crowded")
    assert Gaps(["treatment_equality_raw", Crowded()], SPEC).worst.tolist() == [np.inf, 1.0]


def sp(**options: Any) -> GroupNotion:
    return GroupNotion(name="SP", **options)


@pytest.mark.parametrize(
    ("notions", "names"),
    [
        (["SP", "EO"], ["demographic_parity", "equal_opportunity"]),
        ([sp(groups="origin", current_step=True)], ["demographic_parity"]),
        (["SP", sp(groups="origin")], ["demographic_parity (gender)", "demographic_parity (origin)"]),
        (
            ["SP", "EO", sp(current_step=True)],
            ["demographic_parity", "equal_opportunity", "demographic_parity (current step)"],
        ),
        (
            [sp(groups=("gender", "origin")), sp(groups={"gender": "woman", "origin": "east"}, current_step=True)],
            [
                "demographic_parity (gender, origin)",
                "demographic_parity (gender=woman, origin=east / everybody else, current step)",
            ],
        ),
        ([sp(across="rest"), sp()], ["demographic_parity (across=rest)", "demographic_parity (across=pairs)"]),
        (["SP", sp(groups="gender")], ["demographic_parity 1", "demographic_parity 2"]),
        (["SP", "SP"], ["demographic_parity 1", "demographic_parity 2"]),
        ([Crowded(), "SP", Crowded()], ["Crowded 1", "demographic_parity", "Crowded 2"]),
        ([Consistency(k=3), Consistency()], ["consistency (k=3)", "consistency (k=5)"]),
    ],
)
def test_notions_of_one_name_are_told_apart(notions: Any, names: list[str]) -> None:
    spec = replace(SPEC, features=("skill",))
    assert list(Gaps(notions, spec).names) == names


def test_the_gaps_before_go_to_each_notion() -> None:
    notions: list[Any] = [Crowded(), GroupNotion(name="SP", undefined="last"), GroupNotion(name="SP")]
    found = gaps(notions, History(Full(), SPEC), last=np.array([[0.1, 0.2, 0.3]]))
    np.testing.assert_array_equal(found, [[0.1, 0.2, np.nan]])


def test_a_further_notion_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "crowded", Crowded)
    assert isinstance(decision_notions("crowded")[0], Crowded)
    with pytest.raises(ValueError, match=r"crowded, got 'full'"):
        decision_notions("full")


@pytest.mark.parametrize("notion", [GroupNotion, Crowded])
def test_the_class_of_a_notion_is_no_notion(notion: Any) -> None:
    with pytest.raises(ValueError, match=rf"notions must be instances, such as {notion.__name__}\(...\), got"):
        gaps([notion], History(Full(), SPEC))


@uncompiled
def test_a_history_of_another_environment_is_told_apart() -> None:
    other = FairSpec(individuals=1, actions=2, features=(), sensitive={"s": ("a", "b", "c")}, groups=("a", "b", "c"))
    notion = GroupNotion(name="SP")
    history = History(Full(), other)
    history.add_rows(sensitive=[[0], [1], [2]], action=[1, 1, 0])
    assert notion.gap(filled([(0, 0, 0, 1, 1), (1, 0, 0, 1, 1)], Full())).tolist() == [0.0]
    assert notion.gap(history).tolist() == [1.0]


@pytest.mark.parametrize("size", [100, 10_000])
def test_all_group_notions_cost_the_same_over_any_window(size: int) -> None:
    history, lanes = History(SlidingWindow(size), SPEC, lanes=64), 64
    luck = np.random.default_rng(0)
    several = Gaps(list(DEFINITIONS), SPEC)
    columns = {
        "fair_decided": np.ones(lanes, np.int8),
        "fair_individual": np.zeros(lanes, np.int64),
        "fair_sensitive": luck.integers(0, 2, (lanes, 2)),
        "fair_legitimate": luck.integers(0, 2, (lanes, 1)),
        "fair_action": luck.integers(0, 2, lanes),
        "fair_feedback": luck.integers(0, 2, lanes),
        "fair_features": np.zeros((lanes, 0), np.float32),
        "fair_action_probs": np.zeros((lanes, 2), np.float32),
        "fair_outcome": np.zeros(lanes, np.float32),
        "fair_late_individual": np.full((lanes, 1), -1),
        "fair_late_feedback": np.full((lanes, 1), -1),
        "fair_late_count": np.zeros(lanes, np.int64),
    }
    taken = []
    for _ in range(300):
        start = time.perf_counter()
        history.add(columns)
        several(history)
        taken.append((time.perf_counter() - start) / lanes)
    assert (
        np.median(taken) < 20e-6
    )  # the benchmark tells how fast it is; this only that no pass over the window is made


def test_groups_are_those_of_all_notions_given_by_name() -> None:
    history = History(Full(), SPEC)
    rows = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    history.add_rows(sensitive=rows, legitimate=[[0]] * 5, action=[1, 1, 0, 1, 0])
    assert gaps(["SP", "OAE"], history, groups="gender")[0, 0] == pytest.approx(2 / 3)
    assert gaps("SP", history, groups="origin")[0, 0] == pytest.approx(1)
    own = GroupNotion(name="SP", groups="gender")
    assert gaps(["SP", own], history, groups="origin")[0].tolist() == pytest.approx([1, 2 / 3])
    for notions in ([own], ["IF"]):
        with pytest.raises(ValueError, match="groups applies to group notions given by name, got groups='origin'"):
            gaps(notions, history, groups="origin")


def test_a_warning_says_which_attribute_is_compared_where_none_is_chosen() -> None:
    with pytest.warns(
        UserWarning, match="groups are compared by 'gender', not by 'origin'; choose with groups='gender', or"
    ):
        Gaps("SP", SPEC)
    one = replace(SPEC, sensitive={"gender": ("man", "woman")}, groups=("man", "woman"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for groups in ("gender", ("gender", "origin"), {"gender": "woman"}):
            Gaps("SP", SPEC, groups=groups)
        Gaps("SP", one)
