"""Policies by what they gave in test episodes, their gaps, and simple policies tested on tiny episodes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from fair_envs.baselines.pcn.rollouts import Random
from fair_envs.baselines.pcn.single import SingleTraining, train_single
from fair_envs.experiments.jobs import Job, run_cell
from fair_envs.metrics.history import Discounted, Memory, SlidingWindow
from fair_envs.reproduction.cimpean2025 import jobs, plays
from fair_envs.reproduction.cimpean2025.jobs import (
    AS_PRINTED,
    GROUPS,
    IDENTICAL,
    LEARNERS,
    LONGER,
    POINTS,
    Learner,
    LearnerCell,
    PolicyTests,
    Simple,
    SimpleCell,
    TradeOffCell,
    chosen,
    make,
    notion,
    thinned,
)
from fair_envs.reproduction.cimpean2025.plays import (
    CELLS,
    CHOSEN,
    GROUP_NOTIONS,
    MOST_FILLED,
    YARDSTICKS,
    by_yardsticks,
    counted,
    courses,
    filled_after,
    followed,
    gaps,
    played,
    realigned,
    sums_of_tests,
)
from fair_envs.reproduction.cimpean2025.published import MEASURES, Setting, World, tables
from fair_envs.reproduction.cimpean2025.results import Policies, across, correlated, numbers, read_found

TINY = {"horizon": 30}
SHORT = {"first_episodes": 4, "episodes": 4, "updates": 2}


def policies(sums: object, steps: object, *, names: tuple[str, ...] = ("R", "SP"), **given: Any) -> Policies:
    """Return policies with one episode in each test."""
    lengths = np.array(steps)
    zeros = np.zeros((len(lengths), 2, len(GROUP_NOTIONS)))
    arrays = {"noise": zeros, "limit": zeros, "yardsticks": np.zeros((len(lengths), 2, len(YARDSTICKS), 2)), **given}
    arrays.setdefault("kinds", np.ones((len(lengths), 2, CELLS), int))
    return Policies(
        names=names,
        later=False,
        sums=np.array(sums, float),
        steps=lengths,
        episodes=np.ones_like(lengths),
        **arrays,
    )


TWO = policies([[[1, -2], [3, -4]], [[5, 0], [5, -6]]], [[10, 30], [20, 20]])


def found_of(cell: Job, folder: Path) -> Policies:
    return read_found(run_cell(cell, folder)).policies


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin tests after 100 decisions, where the histories are full, instead of 1000, which take most of the time."""
    monkeypatch.setattr(plays, "FULL", 100)


def simple(world: World, name: str, folder: Path, **given: Any) -> Mapping[str, float]:
    """Return the numbers of a policy without training."""
    cell = SimpleCell(arm=Simple(world, name), seed=0, **given)
    return numbers(read_found(run_cell(cell, folder)))


# ------------------------------------------------------------------------------------------------ results


def test_totals_are_means_over_episodes_and_rates_are_per_step_of_all_episodes() -> None:
    np.testing.assert_allclose(TWO.total("R"), [2, 5])
    np.testing.assert_allclose(TWO.rate("SP"), [-6 / 40, -6 / 40])
    assert TWO.total("R", half=0).tolist() == [1, 5] and TWO.rate("R", half=1).tolist() == [3 / 30, 5 / 20]


def test_correlations_need_three_policies_that_differ() -> None:
    assert correlated(np.array([1.0, 2, 3]), np.array([3.0, 1, 2])) == pytest.approx(-0.5)
    assert np.isnan(correlated(np.array([1.0, 2]), np.array([1.0, 2])))
    assert np.isnan(correlated(np.array([1.0, 2, 3]), np.array([3.0, 3, 3])))


def test_randomness_that_notions_share_in_a_half_does_not_correlate_them_across_halves() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(2, 400))
    halves = [{"one": own, "other": own + 0.1 * rng.normal(size=400)} for own in shared]
    assert correlated(halves[0]["one"], halves[0]["other"]) > 0.9
    assert abs(across(halves, "one", "other")) < 0.15


def test_policies_are_not_judged_by_the_luck_that_they_are_chosen_by() -> None:
    lucky = policies([[[10, 0], [1, 0]], [[3, 0], [3, 0]]], [[1, 1], [1, 1]], names=("R", "SP"))
    whole = policies_with_all(lucky)
    assert (numbers(whole)["first total R"], numbers(whole)["top total R"]) == (10, 1)


def test_a_policy_is_fair_if_chance_often_makes_its_gap() -> None:
    limit = np.full((2, 2, len(GROUP_NOTIONS)), 0.1)
    own = policies([[[5, -0.5], [5, -0.5]], [[3, -0.1], [3, -0.2]]], [[1, 1], [1, 1]], limit=limit)
    found = numbers(policies_with_all(own))
    assert (found["fair total R"], found["still fair"], found["fair is top"]) == (3, 0, 0)
    unfair = policies([[[5, -0.5], [5, -0.5]]], [[1, 1]], limit=limit[:1])
    assert "fair total R" not in numbers(policies_with_all(unfair))


def test_numbers_of_single_policies_are_kept() -> None:
    found = numbers(policies_with_all(TWO))
    assert (found["policy 1, test 1: total SP"], found["policy 0, test 1: steps"]) == (-6, 30)


def test_shares_of_a_decision_are_means_and_those_of_the_chosen_policy_in_the_second_test() -> None:
    kinds = np.zeros((2, 2, CELLS), int)
    kinds[..., CHOSEN] = [[10, 20], [30, 60]]
    kinds[..., 0] = 100 - kinds[..., CHOSEN]
    found = numbers(policies_with_all(policies([[[1, 0], [5, 0]], [[2, 0], [2, 0]]], [[1, 1], [1, 1]], kinds=kinds)))
    assert (found["acted"], found["top acted"]) == pytest.approx((0.3, 0.6))


def test_single_policies_have_all_that_is_known_in_the_other_alignment() -> None:
    rng = np.random.default_rng(0)
    noise, limit, gap = rng.random((3, 2, 2, len(GROUP_NOTIONS)))
    counts, others = rng.integers(1, 50, size=(2, 2, 2, CELLS))
    other = {"other_gap": gap, "other_noise": noise, "other_limit": limit, "other_counts": others}
    own = policies([[[1, -2], [3, -4]], [[5, 0], [5, -6]]], [[10, 30], [20, 20]], counts=counts, **other)
    found = numbers(policies_with_all(own))
    start, eo = "policy 1, test 0: misread", GROUP_NOTIONS.index("EO")
    assert (found[f"{start} noise EO"], found[f"{start} limit EO"]) == (noise[1, 0, eo], limit[1, 0, eo])
    assert found[f"{start} decisions 3"] == others[1, 0, 3]
    assert found["policy 1, test 0: decisions 3"] == counts[1, 0, 3]


def policies_with_all(own: Policies) -> Any:
    """Return a cell's result in which all other measures are 0."""
    from fair_envs.reproduction.cimpean2025.results import Found

    others = tuple(name for name in (*MEASURES, "IF eq. 8", "CSC published") if name not in own.names)
    zeros = np.zeros((*own.sums.shape[:2], len(others)))
    whole = replace(own, names=(*own.names, *others), sums=np.concatenate([own.sums, zeros], axis=2))
    return Found(policies=whole, learning=np.zeros((0, 4)), achieved=np.zeros((0, 0)))


# --------------------------------------------------------------------------------------------------- gaps


def test_gaps_are_differences_of_the_groups_rates() -> None:
    rest, group = [[5, 1], [2, 2]], [[1, 3], [4, 2]]  # [decision][label]
    expected = [6 / 10 - 4 / 10, 2 / 3 - 2 / 5, 7 / 10 - 3 / 10, 2 / 4 - 2 / 6, 4 / 5 - 2 / 7]
    np.testing.assert_allclose(gaps(np.array([rest, group]).ravel()), expected)
    assert np.isnan(gaps(np.zeros(8))).all()


@pytest.mark.parametrize(
    "memory",
    [SlidingWindow(20), Discounted(0.9, threshold=1e-4, minimum=10), Discounted(1.0, threshold=0.02, minimum=10)],
)
def test_followed_gaps_are_those_of_the_histories(memory: Memory) -> None:
    notions = [notion(name, "hiring", "HEOM") for name in GROUP_NOTIONS]
    env = make("hiring", notions, memory, lanes=3, parameters={"horizon": 60})
    play = played(env, Random(env), groups=GROUPS["hiring"], episodes=4, seed=0, fill=100)
    sums, steps = sums_of_tests(play)
    assert steps.tolist() == [4 * 60] * 3
    assert all(tested[:120].sum() == 0 for _, tested in play.lanes())
    found = [followed(*lane, memory, np.random.default_rng(0)).gap for lane in play.lanes()]
    np.testing.assert_allclose(found, -sums[:, 1:] / steps[:, np.newaxis], rtol=1e-4)


def test_tests_begin_with_an_episode_after_the_history_is_full() -> None:
    env = make("hiring", [notion("SP", "hiring", "HEOM")], SlidingWindow(20), lanes=2, parameters={"horizon": 30})
    for fill, first in ((0, 0), (1, 30), (30, 30), (31, 60)):
        play = played(env, Random(env), groups=GROUPS["hiring"], episodes=2, seed=0, fill=fill)
        for _, tested in play.lanes():
            assert (int(tested.argmax()), int(tested.sum()), len(tested)) == (first, 60, first + 60)


def test_a_history_is_full_before_a_test_unless_it_keeps_too_much() -> None:
    windows = [filled_after(SlidingWindow(size)) for size in (100, 1000)]
    assert windows == [1000, 1000]
    factors = [filled_after(Discounted(factor, threshold=1e-4, minimum=100)) for factor in (0.9, 1.0)]
    assert factors == [1000, 10_000]
    thresholds = [filled_after(Discounted(1.0, threshold=own, minimum=100)) for own in (1e-3, 1e-5, 0.0)]
    assert thresholds == [1000, MOST_FILLED, MOST_FILLED]
    assert filled_after(Discounted(1.0, threshold=1e-3, minimum=3000)) == 3000


def test_a_test_is_filled_as_its_history_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    class PlayedError(Exception):
        """Ends the test."""

    def ended(*_: Any, fill: int, **__: Any) -> None:
        raise PlayedError(fill)

    monkeypatch.setattr(jobs, "played", ended)
    own: dict[str, Any] = {"asked": ("SP",), "measures": {"SP": notion("SP", "hiring", "HEOM")}, "parameters": TINY}
    memory = Discounted(1.0, threshold=0.0, minimum=100)
    tests = PolicyTests(agent=lambda env, _: Random(env), policies=1, world="hiring", memory=memory, seed=0, **own)
    with pytest.raises(PlayedError, match=str(MOST_FILLED)):
        tests.arrays(episodes=2, decisions=0)


def test_the_published_history_is_the_correct_one_with_persons_moved_by_a_step() -> None:
    shared: dict[str, Any] = {"groups": GROUPS["hiring"], "episodes": 2, "seed": 3, "fill": 0}
    plays = {}
    for alignment in ("decided", "next_applicant"):
        parameters = {"horizon": 40, "alignment": alignment}
        env = make("hiring", [notion("SP", "hiring", "HEOM")], SlidingWindow(20), lanes=3, parameters=parameters)
        plays[alignment] = [cells for cells, _ in played(env, Random(env), **shared).lanes()]
    inside = np.arange(79) != 39  # the last decision of an episode is paired with the next one's first applicant
    for decided, later in zip(*plays.values(), strict=True):
        assert (realigned(decided, later=False)[inside] == later[:-1][inside]).all()
        assert (realigned(later, later=True)[inside] == decided[1:][inside]).all()


def test_many_decisions_are_counted_in_both_alignments() -> None:
    env = make("hiring", [notion("SP", "hiring", "HEOM")], SlidingWindow(20), lanes=4, parameters={"horizon": 50})
    found, other = counted(env, Random(env), groups=GROUPS["hiring"], policies=2, decisions=500, seed=0)
    assert found.shape == other.shape == (2, 2, 8)
    assert found.sum(axis=2).tolist() == [[500, 500]] * 2 and other.sum(axis=2).tolist() == [[498, 500]] * 2
    assert np.abs(found - other).sum() > 0


def test_the_noise_floor_of_an_unfair_policy_is_that_of_dealt_groups() -> None:
    rng = np.random.default_rng(0)
    member, label = rng.integers(2, size=(2, 20_000))
    unfair = 4 * member + 2 * (1 - member) + label  # accepts exactly the people outside the group
    every = np.ones(len(unfair), bool)
    found = followed(unfair, every, SlidingWindow(500), rng)
    assert found.gap[0] > 0.98
    assert 0.02 < found.noise[0] < 0.06 and found.noise[0] < found.limit[0] < 0.08  # sqrt(2 / (pi 500)) = 0.036


def test_mean_squares_above_chance_do_not_depend_on_the_window() -> None:
    rng = np.random.default_rng(0)
    member, label = rng.integers(2, size=(2, 60_000))
    chosen_ = rng.random(60_000) < 0.5 + 0.1 * member
    cells = 4 * member + 2 * chosen_ + label
    found = by_yardsticks(cells, np.ones(len(cells), bool), rng)
    assert found[0, 0] > found[-1, 0] + 0.01  # the mean gap does
    np.testing.assert_allclose(found[:, 1], 0.01, atol=0.002)


def test_undefined_gaps_keep_the_last_one() -> None:
    cells = np.array([7, 3, 4, 4])  # in the group and chosen; others and chosen; in the group and not
    assert courses(cells, SlidingWindow(2))[:, 0].tolist() == [0, 0, 1, 1]


def test_learning_curves_of_all_seeds_have_the_same_places() -> None:
    rows = np.array([[70.0, 7, 70, 10, 7], [130, 12, 60, 20, 6], [210, 24, 80, 30, 8]])
    curve = thinned(rows, steps=200)
    np.testing.assert_allclose(curve[:, 0], 10 * np.arange(1, POINTS + 1))
    assert (curve[0, 1], curve[-1, 2], curve[0, 3]) == (0.1, pytest.approx(30, abs=2), 1)


# -------------------------------------------------------------------------------------------------- tests


@pytest.mark.long
def test_the_studys_fraud_week_is_as_long_as_the_published_one(tmp_path: Path) -> None:
    found = simple("fraud", "never checks", tmp_path, episodes=12)
    assert 720 < found["total R"] < 800  # published: 769, of 834 to 1000 payments
    assert 930 < found["steps"] <= 1000


@pytest.mark.long
def test_simple_hiring_policies_have_the_gaps_that_their_rules_make(tmp_path: Path) -> None:
    short: dict[str, Any] = {"episodes": 4, "parameters": {"horizon": 200}}
    every = simple("hiring", "always hires", tmp_path, **short)
    assert (every["total SP"], every["steps"]) == (0, 100)
    correct = simple("hiring", "correct decision", tmp_path, **short)
    assert correct["OAE"] == 0 and correct["misread OAE"] < 0
    men = simple("hiring", "hires qualified men, no women", tmp_path, **short)
    assert men["SP"] < -0.4 and men["misread SP"] > -0.2
    assert 0 < men["noise SP"] < 0.2 and 0 < men["misread noise SP"] < 0.2 < men["square SP at 500"] ** 0.5


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("world", "name", "acted"),
    [
        ("hiring", "always hires", 1),
        ("hiring", "never hires", 0),
        ("fraud", "always checks", 1),
        ("fraud", "never checks", 0),
    ],
)
def test_constant_policies_make_one_decision(world: World, name: str, acted: int, tmp_path: Path) -> None:
    found = simple(world, name, tmp_path, episodes=2, parameters={"horizon": 30})
    assert found["acted"] == found["top acted"] == acted


def test_policies_as_printed_act_in_the_published_environment(tmp_path: Path) -> None:
    size: dict[str, Any] = {"episodes": 2, "parameters": {"horizon": 30}}
    cells = [SimpleCell(arm=Simple("hiring", "correct decision", own), seed=0, **size) for own in (False, True)]
    ours, published = (numbers(read_found(run_cell(cell, tmp_path))) for cell in cells)
    assert ours["OAE"] == 0 and published["OAE"] < -0.02
    assert -0.005 < published["aligned OAE"] <= 0  # the last decision of an episode has no next applicant


def test_simple_fraud_policies_have_the_gaps_that_their_rules_make(tmp_path: Path) -> None:
    short: dict[str, Any] = {"episodes": 2, "parameters": {"horizon": 100}}
    continent = simple("fraud", "checks North America", tmp_path, **short)
    assert continent["SP"] < -0.8  # until the first of them came: undefined, 0
    assert not any(name.startswith("misread") for name in continent)
    assert simple("fraud", "correct decision", tmp_path, **short)["OAE"] == 0


@pytest.mark.long
def test_checking_large_amounts_lies_between_the_constant_policies(tmp_path: Path) -> None:
    shares = [
        simple("fraud", name, tmp_path, episodes=2, parameters={"horizon": 300})["R"]
        for name in ("always checks", "checks above an amount of 1000", "never checks")
    ]
    assert shares == sorted(shares) and len(set(shares)) == 3


@pytest.mark.usefixtures("brief")
def test_each_training_seed_has_test_episodes_of_its_own(tmp_path: Path) -> None:
    arm = Simple("hiring", "correct decision")
    one, other = (found_of(SimpleCell(arm=arm, seed=k, episodes=2, parameters=TINY), tmp_path) for k in (0, 1))
    assert (one.sums != other.sums).any()


@pytest.mark.long
def test_identical_policies_have_correlations_in_the_same_decisions_only(tmp_path: Path) -> None:
    found = simple("hiring", IDENTICAL, tmp_path, episodes=2, decisions=2000, parameters={"horizon": 100})
    assert found["policies"] == 16
    assert found["SP~EO same half"] > 0.2 > abs(found["SP~EO"]) - 0.3
    assert 0 < found["pooled SP"] < 0.05


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    "name",
    [  # the method as printed learns after 50,000 steps
        pytest.param(name, marks=[] if name == "PPO" else pytest.mark.long) for name in LEARNERS if name != AS_PRINTED
    ],
)
def test_a_training_for_the_reward_alone_is_measured_like_a_simple_policy(name: str, tmp_path: Path) -> None:
    steps = 40_000 if name in LONGER else 5000
    cell = LearnerCell(arm=Learner("hiring", name), seed=0, steps=steps, episodes=4, parameters=TINY)
    found = numbers(read_found(run_cell(cell, tmp_path)))
    random = simple("hiring", "random", tmp_path, episodes=4, parameters=TINY)
    assert set(found) >= {name for name in random if not name.startswith(("fair", "still"))}
    assert found["R"] > random["R"]
    curve = [found[f"learned R@{steps * (k + 1) // POINTS}"] for k in range(POINTS)]
    assert np.mean(curve[-5:]) > curve[0]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("objectives", [("R", "SP", "IF"), ("SP",), ("R", "SP")])
def test_a_training_keeps_what_its_policies_did_in_all_measures(objectives: tuple[str, ...], tmp_path: Path) -> None:
    setting = Setting(world="hiring", objectives=objectives, window=100)
    cell = TradeOffCell(setting=setting, seed=0, steps=400, episodes=2, training=SHORT, parameters=TINY)
    result = read_found(run_cell(cell, tmp_path))
    found = numbers(result)
    assert set(MEASURES) <= set(found) and found["steps"] == 30
    assert found["remembered@400"] <= 100 and {"learned R@20", "learned total R@20", "misread SP"} <= set(found)
    assert found["found"] >= found["policies"] and "policy 0: desired 0" in found
    trained = {name for name in found if name.startswith("trained best ")}
    assert trained == {f"trained best {name}" for name in ("R", *cell.computed)}
    kinds = [sum(found[f"policy 0, test {h}: kind {k}"] for k in range(CELLS)) for h in (0, 1)]
    assert kinds == [30, 30] and 0 < found["acted"] < 1
    if objectives == ("R", "SP"):
        assert found["total CSC, HEOM"] == pytest.approx(found["total CSC"]) != found["total CSC, Bray-Curtis"]
        assert found["total CSC published, HEOM"] == pytest.approx(found["total CSC published"])


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("objectives", [("R",), ("R", "SP", "IF")])
def test_the_training_episodes_of_all_policies_are_kept(
    objectives: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MOST_POLICIES", 2)
    setting = Setting(world="hiring", objectives=objectives, window=100)
    cell = TradeOffCell(setting=setting, seed=0, steps=400, episodes=2, training=SHORT, parameters=TINY)
    result = read_found(run_cell(cell, tmp_path))
    found = numbers(result)
    assert list(result.objectives) == ["R", *cell.computed] and result.achieved.shape[1] == len(result.objectives)
    if len(objectives) > 1:
        assert found["found"] > found["policies"] and found["trained worst SP"] < found["trained best SP"] <= 0


@pytest.mark.parametrize("printed", [False, True])
def test_what_is_asked_for_is_found_in_the_vector_reward(printed: bool) -> None:
    for setting in {own for groups in tables().values() for own in groups.values()}:
        own = setting.as_printed if printed else setting
        cell = TradeOffCell(setting=own, seed=0, steps=1, episodes=2)
        names = ("R", *cell.computed)
        assert [names[k] for k in cell.requested] == [name for name in own.objectives if name == "R"] + [*cell.asked]
        assert len(names) == (8 if printed else 1 + max(1, len(cell.asked)))


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", [AS_PRINTED, "DQN"])
def test_a_learner_as_printed_is_trained_and_tested_in_the_published_environment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[SingleTraining] = []

    def trained(settings: SingleTraining, **other: Any) -> Any:
        given.append(settings)
        return train_single(settings, **other)

    monkeypatch.setattr(jobs, "train_single", trained)
    cell = LearnerCell(arm=Learner("hiring", name), seed=0, steps=60, episodes=2, parameters=TINY)
    found, printed = numbers(read_found(run_cell(cell, tmp_path))), name == AS_PRINTED
    (settings,) = given
    assert (settings.parameters.get("alignment") == "next_applicant") == printed
    assert ("aligned SP" in found, "misread SP" in found) == (printed, not printed)
    assert any(np.isfinite(found[f"learned R@{3 * (k + 1)}"]) for k in range(POINTS))


@pytest.mark.usefixtures("brief")
def test_the_method_as_printed_trains_on_its_own_history_and_similarities(tmp_path: Path) -> None:
    setting = Setting(world="hiring", objectives=("R", "SP", "IF"), window=100).as_printed
    cell = TradeOffCell(setting=setting, seed=0, steps=1600, episodes=2, parameters=TINY)
    assert cell.asked == ("SP", "IF eq. 8")
    settings = cell.settings()
    assert (settings.updates, settings.keep, settings.return_unit) == (20, "heap", (1.0, 1.0, 1.0))
    assert (settings.horizon_unit, settings.coverage) == (1.0, "leaves")
    assert cell.world["alignment"] == "next_applicant" and cell.world["company_counts"] == "double"
    found = numbers(read_found(run_cell(cell, tmp_path)))
    assert {"IF", "CSC", "CSC published", "aligned SP"} <= set(found) and "misread SP" not in found
    assert "policy 0, test 1: aligned limit SP" in found
    every = ("R", "SP", "IF eq. 8", "EO", "OAE", "PP", "PE", "CSC published")  # as in the published code
    assert {name for name in found if name.startswith("trained total ")} == {f"trained total {name}" for name in every}
    assert cell.requested == [0, 1, 2] and settings.non_domination == "all"


@pytest.mark.usefixtures("brief")
def test_equal_cells_give_equal_results(tmp_path: Path) -> None:
    cell = TradeOffCell(
        setting=Setting(world="hiring", objectives=("R", "SP"), window=50),
        seed=1,
        steps=300,
        episodes=2,
        training=SHORT,
        parameters=TINY,
        decisions=100,
    )
    one, two = (numbers(read_found(run_cell(cell, tmp_path / name))) for name in ("one", "two"))
    np.testing.assert_equal(one, two)


def test_at_most_so_many_commands_are_tested() -> None:
    from fair_envs.baselines.pcn.pcn import Command

    line = [Command(np.array([k, -(k**1.5)]), 10.0) for k in range(40)]
    few = chosen(line)
    assert len(few) == 16
    assert few[0].desired_return[0] == 0 and few[-1].desired_return[0] == 39
