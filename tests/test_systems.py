"""Any multi-agent system is measured by the same definitions, attribute by attribute."""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs import make_rules
from fair_envs.core import draws
from fair_envs.evaluation import ParallelWorld, RandomPolicy, choose
from fair_envs.evaluation.systems import (
    Episodes,
    can_flip,
    check_measure,
    measure,
    named,
    negative_totals,
    outcomes,
    play_parallel,
    play_system,
    report,
    total_return,
)
from fair_envs.metrics.group import GroupNotion
from fair_envs.metrics.history import Full, History
from fair_envs.metrics.returns import FORMS, Returns, counterfactual_fairness, demographic_parity
from fair_envs.wrappers.twin import Twins
from tests.helpers import LITTLE, uncompiled
from tests.leavers import Leavers
from tests.leavers import env as leavers_in_turn
from tests.leavers import parallel_env as leavers
from tests.toys import LongCountdown
from tests.toys import parallel_env as countdown

ATTRIBUTES = {"agent_0": {"old": 1, "red": 0}, "agent_1": {"old": 0, "red": 0}, "agent_2": {"old": 0, "red": 1}}


def random_moves(observation: Any, uniforms: Any) -> Any:
    return choose(np.full((*uniforms.shape, 8), 1 / 8), uniforms)


def harvest() -> Any:
    return make_rules("FairHarvest-v0", **{**LITTLE, "horizon": 30})


def found(episodes: Episodes, **options: Any) -> dict[tuple[str, str, str], float]:
    return {one[:3]: one.gap.value for one in measure(episodes, **options)}


@pytest.mark.parametrize("flip", ["protected", "each"])
def test_a_system_of_this_package_is_measured_by_the_definitions(flip: Any) -> None:
    rules = harvest()
    played = play_system(rules, random_moves, episodes=7, seed=3, lanes=3, flip=flip)
    pairs = Twins(rules).run(random_moves, episodes=7, seed=3, flip=flip)
    (without,) = played.without.values()
    np.testing.assert_array_equal(without.values, pairs.counterfactual.values)
    name = next(iter(rules.spec.sensitive))
    np.testing.assert_array_equal(played.returns.values, pairs.factual.values)
    gaps = found(played)
    parity = demographic_parity(pairs.factual, sensitive=name, form="difference")
    twins = counterfactual_fairness(pairs.factual, pairs.counterfactual, sensitive=name, form="difference")
    assert gaps["demographic_parity", name, ""] == pytest.approx(parity.mean())
    assert gaps["counterfactual_fairness", name, ""] == pytest.approx(twins.mean())
    assert {key[2] for key in gaps if key[0] == "conditional_parity"} == {"preference=0", "preference=1"}
    assert total_return(played).value == pytest.approx(pairs.factual.values.sum(axis=1).mean())


def test_how_many_play_at_once_and_whether_twins_do_makes_no_difference() -> None:
    all_at_once, one_by_one = (play_system(harvest(), random_moves, episodes=5, lanes=k) for k in (64, 1))
    np.testing.assert_array_equal(all_at_once.returns.values, one_by_one.returns.values)
    alone = play_system(harvest(), random_moves, episodes=5, counterfactual=False)
    np.testing.assert_array_equal(alone.returns.values, one_by_one.returns.values)
    assert not alone.without and ("counterfactual_fairness" not in {key[0] for key in found(alone)})


def test_one_agents_attribute_alone_is_another_than_all_of_theirs() -> None:
    together, alone = (play_system(harvest(), random_moves, episodes=3, flip=flip) for flip in ("protected", "each"))
    np.testing.assert_array_equal(together.returns.values, alone.returns.values)
    (one,), (other,) = together.without.values(), alone.without.values()
    assert (one.values != other.values).any()


def test_another_way_to_flip_is_refused() -> None:
    with pytest.raises(ValueError, match="flip must be one of protected, each, got 'all'"):
        play_system(harvest(), random_moves, episodes=1, flip="all")  # type: ignore[arg-type]


def test_each_batch_is_told() -> None:
    told: list[int] = []
    play_system(harvest(), random_moves, episodes=5, lanes=2, each=lambda: told.append(1))
    assert len(told) == 3


def test_environments_without_an_attribute_to_take_away_have_no_twins() -> None:
    assert can_flip(harvest()) and can_flip(LongCountdown())
    assert not can_flip(make_rules("FairPursuit-v0"))


def test_people_whom_a_decision_maker_decides_on_are_no_agents_to_flip() -> None:
    assert not can_flip(make_rules("FairHiring-v0"))  # its `flip` changes them, but they earn nothing


def by_luck(observation: Any, uniforms: Any) -> Any:
    return (uniforms < 0.6).astype(np.int64)


def test_gaps_in_what_is_decided_are_those_of_a_history_fed_by_the_gym_face() -> None:
    rules = make_rules("FairHiring-v0", horizon=80)
    played = play_system(rules, by_luck, episodes=3, seed=4, lanes=2)
    env = gym.make("FairHiring-v0", horizon=80).unwrapped
    for episode in range(3):
        history, total, over = History(Full(), rules.spec), 0.0, False
        observation, info = env.reset(seed=4 + episode)
        history.add(info)
        while not over:
            luck = draws(env.lanes)  # type: ignore[attr-defined]
            action = by_luck(observation[np.newaxis, np.newaxis], luck)[0, 0]
            observation, reward, terminated, truncated, info = env.step(action)
            history.add(info)
            total, over = total + float(reward), terminated or truncated
        assert played.returns.values[episode] == pytest.approx([total])
        for name, attribute in itertools.product(("demographic_parity", "equal_opportunity"), rules.spec.sensitive):
            gap = GroupNotion(name=name, groups=attribute).gap(history)
            np.testing.assert_allclose(played.decided[name, attribute][episode], np.ravel(gap)[0])
    assert {key[:2] for key in found(played)} == set(played.decided)
    assert {key[1] for key in found(played, attributes=["gender"])} == {"gender"}


@uncompiled
def test_who_sends_out_guards_decides_for_and_against_nobody_but_has_a_return() -> None:
    rules = make_rules("FairAttention-v0", horizon=5)
    played = play_system(rules, RandomPolicy(rules), episodes=2)
    assert found(played) == {} and played.decided == {} and not played.of_agents
    assert np.isfinite(total_return(played).value)
    assert [one.name for one in outcomes(played)] == ["total_return"]
    assert told(played)[1][0].startswith("No decision is for or against a person")


def test_a_decision_maker_belongs_to_no_group() -> None:
    with pytest.raises(ValueError, match="append_group must be False for a decision-maker"):
        play_system(make_rules("FairHiring-v0"), by_luck, episodes=1, append_group=True)


def test_every_attribute_can_be_the_attribute_and_several_values_are_told_apart() -> None:
    values = [[3.0, 1.0, 2.0, 5.0], [4.0, 1.0, 1.0, 5.0]]
    returns = Returns(values, attributes={"kind": [0, 1, 2, 2], "fast": [0, 0, 1, 1]})
    played = Episodes(returns=returns, sensitive=("kind",), legitimate=("fast",))
    gaps = found(played)
    assert [key[1] for key in gaps if key[0] == "demographic_parity"] == ["kind=0", "kind=1", "kind=2"]
    assert gaps["demographic_parity", "kind=0", ""] == pytest.approx(np.mean([8 / 3 - 3, 7 / 3 - 4]))
    assert found(played, attributes=["fast"])["demographic_parity", "fast", ""] == pytest.approx(np.mean([-1.5, -0.5]))
    assert not any("fast" in key[2] for key in found(played, attributes=["fast"]))


def test_one_of_three_values_is_labelled_as_such_where_only_two_occur() -> None:
    returns = Returns([[3.0, 1.0, 2.0]], attributes={"kind": [0, 1, 1]})
    played = Episodes(returns=returns, sensitive=("kind",), values={"kind": ("cat", "dog", "cow")})
    assert {key[1] for key in found(played)} == {"kind=0", "kind=1"}
    two = Episodes(returns=returns, sensitive=("kind",), values={"kind": ("cat", "dog")})
    assert {key[1] for key in found(two)} == {key[1] for key in found(Episodes.joined([two, two]))} == {"kind"}
    assert {key[1] for key in found(Episodes.joined([played, played]))} == {"kind=0", "kind=1"}


@pytest.mark.parametrize("code", [0, 1])
def test_an_attribute_that_all_or_none_have_is_one_attribute(code: int) -> None:
    alike = {agent: {"old": own["old"], "red": code} for agent, own in ATTRIBUTES.items()}
    played = play_parallel(leavers(), alike, lambda *_: 1, sensitive=["red"], episodes=2)
    gaps = found(played)
    assert {key[1] for key in gaps} == {"red"} and np.isnan(gaps["demographic_parity", "red", ""])


def test_only_an_attribute_of_two_values_has_a_counterfactual() -> None:
    returns = Returns([[3.0, 1.0, 2.0]], attributes={"kind": [0, 1, 2]})
    without = {"kind": Returns([[3.0, 1.0, 2.0]], attributes={"kind": [0, 0, 0]})}
    gaps = found(Episodes(returns=returns, without=without, sensitive=("kind",)))
    assert {key[0] for key in gaps} == {"demographic_parity"}


def test_the_level_is_that_of_the_intervals() -> None:
    played = play_parallel(leavers(horizon=5), ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=4)
    (wide, *_), (narrow, *_) = (measure(played, level=level) for level in (0.99, 0.5))
    assert (wide.gap.level, narrow.gap.level) == (0.99, 0.5)
    assert wide.gap.low < narrow.gap.low < narrow.gap.high < wide.gap.high
    assert total_return(played, level=0.5).level == 0.5


def test_policies_are_shown_groups_if_that_is_asked_for() -> None:
    for append_group, twins in itertools.product((False, True), repeat=2):
        shown: list[Any] = []

        def policy(observation: Any, uniforms: Any, shown: list[Any] = shown) -> Any:
            shown.append(observation[..., 2:])
            return np.zeros(uniforms.shape, np.int64)

        play_system(LongCountdown(), policy, episodes=2, append_group=append_group, counterfactual=twins)
        assert shown[0].shape == (2, 2, int(append_group))


def test_the_table_names_values_and_the_report_keeps_codes(tmp_path: Path) -> None:
    played = play_system(harvest(), random_moves, episodes=3)
    made = report({"one": played})
    within = list(made.table().columns[2].cells)
    assert {str(cell) for cell in within} == {"", "preference=red", "preference=blue"}
    assert named("kind=7", {"kind": ("cat",)}) == "kind=7" and named("kind", {"kind": ("cat",)}) == "kind"
    made.save(tmp_path / "new")
    assert "preference=1" in (tmp_path / "new" / "report.csv").read_text()


ONE_WITHOUT = Returns([[1.0, 5.0], [2.0, 2.5], [3.0, 1.0]], attributes={"old": [[1, 0], [1, 0], [1, 1]]})


def told(episodes: Episodes, **options: Any) -> tuple[list[str], list[str]]:
    """Return the numbers of a table and the notes below it."""
    found = report({"one": episodes}, **options)
    return [str(cell) for cell in found.table().columns[-1].cells], found.footnotes()


@pytest.mark.parametrize("form", FORMS)
def test_the_sentence_below_the_table_has_the_sign_and_unit_of_the_form(form: Any) -> None:
    favoured = Returns([[3.0, 1.0]], attributes={"old": [1, 0]})  # who has the attribute earns more
    played = Episodes(returns=favoured, sensitive=("old",))
    (gap, *_), (sentence, *_) = measure(played, form=form), told(played, form=form)[1]
    assert sentence.startswith(
        f"Positive: agents {'with' if gap.gap.value > 0 else 'without'} the attribute are better off"
    )
    assert ("as a share" in sentence) == (form in ("ratio", "mean_ratio"))
    assert ("in units of return" in sentence) == (form in ("sum", "difference", "total"))


def test_a_number_of_fewer_episodes_says_of_how_many_and_why() -> None:
    cells, lines = told(Episodes(returns=ONE_WITHOUT, sensitive=("old",)))
    assert cells[0].startswith("2.25 [") and cells[0].endswith("] (2)") and "(" not in cells[1]
    assert lines[-1] == "95 % confidence intervals; n = 3 episodes; (2): defined in 2 of them."
    assert "undefined in episodes in which all compared agents, or none of them, have the attribute" in lines[1]
    assert "equal agent without it" in told(Episodes(returns=ONE_WITHOUT, sensitive=("old",)), form="sum")[1][1]
    cells, lines = told(Episodes(returns=ONE_WITHOUT.select(episodes=slice(0, 2)), sensitive=("old",)))
    assert "(" not in cells[0] and not any("undefined" in line for line in lines)
    assert lines[-1] == "95 % confidence intervals; n = 2 episodes."


def test_what_does_not_exist_is_undefined_and_no_number() -> None:
    cells, lines = told(Episodes(returns=ONE_WITHOUT.select(episodes=[2]), sensitive=("old",)))
    assert cells == ["undefined", "4 [undefined]"]
    cells, lines = told(Episodes(returns=ONE_WITHOUT.select(episodes=[0]), sensitive=("old",)))
    assert cells[0] == "4 [undefined]" and lines[-1] == "n = 1 episode; an interval needs two episodes."


@pytest.mark.parametrize(
    ("values", "short"),
    [([2.0, 5.0, 1.0], False), ([-2.0, 5.0, 1.0], True), ([2.0, -5.0, 6.0], True), ([0, 0, 0], False)],
)
def test_a_ratio_of_negative_totals_is_warned_of(values: list[float], short: bool) -> None:
    returns = Returns([[1.0, 1.0, 1.0], values], attributes={"old": [1, 0, 0], "fast": [0, 0, 1]})
    played = Episodes(returns=returns, sensitive=("old",), legitimate=("fast",))
    for form in FORMS:
        warned = any("A ratio means little here" in line for line in told(played, form=form)[1])
        assert warned == (short and form in ("ratio", "mean_ratio"))


def test_a_negative_total_in_the_world_without_the_attribute_is_warned_of_too() -> None:
    returns, worse = (Returns([[earned, 1.0]], attributes={"old": [code, 0]}) for earned, code in ((1.0, 1), (-1.0, 0)))
    played = Episodes(returns=returns, without={"old": worse}, sensitive=("old",))
    assert negative_totals(played) and not negative_totals(Episodes(returns=returns, sensitive=("old",)))


def test_the_notes_say_who_was_flipped() -> None:
    returns = Returns([[1.0, 1.0]], attributes={"old": [1, 0]})
    without = {"old": Returns([[1.0, 1.0]], attributes={"old": [0, 0]})}
    played = Episodes(returns=returns, without=without, sensitive=("old",))
    assert "at once" in told(played)[1][1] and "one agent at a time loses" in told(played, flip="each")[1][1]
    assert not any("Counterfactual" in line for line in told(Episodes(returns=returns, sensitive=("old",)))[1])


def test_agents_of_ones_own_earn_until_they_leave() -> None:
    played = play_parallel(leavers(horizon=5), ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=2)
    assert played.returns.values.tolist() == [[2, 4, 10], [4, 6, 10]]  # seeds 0 and 1; 2 a step
    assert played.legitimate == ("red",)
    gaps = found(played)
    assert gaps["demographic_parity", "old", ""] == pytest.approx(np.mean([7 - 2, 8 - 4]))
    assert gaps["conditional_parity", "old", "red=0"] == pytest.approx(np.mean([4 - 2, 6 - 4]))


def test_what_would_be_without_an_attribute_is_played_with_the_same_luck() -> None:
    lucks: list[float] = []

    def policy(agent: str, observation: Any, uniform: float) -> int:
        lucks.append(uniform)
        return 1

    shorter, longer = leavers(horizon=2), leavers(horizon=4)
    played = play_parallel(shorter, ATTRIBUTES, policy, sensitive=["old"], episodes=3, without={"old": longer})
    gap = found(played)["counterfactual_fairness", "old", ""]
    assert gap == pytest.approx(np.mean([2 - 2, 4 - 4, 2 - 2]))  # agent_0 has left by then
    again = lucks.copy()
    lucks.clear()
    play_parallel(longer, ATTRIBUTES, policy, sensitive=["old"], episodes=1)
    assert lucks[:3] == again[:3]
    assert all(0 <= luck < 1 for luck in again) and len(set(again)) > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attributes": {"agent_0": {"old": 1}}}, "attributes must have one entry for each possible agent; .*agent_1"),
        (
            {"attributes": {**ATTRIBUTES, "agent_1": {"old": 0}}},
            r"attributes must have the same names for all, \['old', 'red'\], got \['old'\] of agent_1",
        ),
        ({"sensitive": "old"}, "sensitive must list names of attributes, got 'old'"),
        ({"sensitive": []}, r"sensitive must list names of attributes, got \[\]"),
        ({"sensitive": ["young"]}, "sensitive must be among old, red, got 'young'"),
        ({"sensitive": ["old", "old"]}, "sensitive must name 'old' once, got it 2 times"),
        ({"without": {"red": None}}, "without must name sensitive attributes, old, got 'red'"),
        ({"without": {"old": countdown()}}, r"without\['old'\] must have the agents of env, .*'agent_2'\], got \["),
        (
            {"attributes": {**ATTRIBUTES, "agent_1": {"old": 2, "red": 0}}, "without": {"old": leavers()}},
            r"without\['old'\] must be left out: old must have codes 0 and 1, got \[0, 1, 2\]",
        ),
        ({"episodes": 0}, "episodes must be an integer of at least 1, got 0"),
        (
            {"attributes": {**ATTRIBUTES, "agent_1": {"old": -1, "red": 0}}},
            r"attributes\['agent_1'\]\['old'\] must be an integer of at least 0, got -1",
        ),
        (
            {"attributes": {**ATTRIBUTES, "agent_1": {"old": 0.5, "red": 0}}},
            "must be an integer of at least 0, got 0.5",
        ),
        (
            {"attributes": {**ATTRIBUTES, "agent_1": {"old": "x", "red": 0}}},
            "must be an integer of at least 0, got 'x'",
        ),
        (
            {"attributes": {agent: {} for agent in ATTRIBUTES}},
            "attributes must name at least one attribute of each agent",
        ),
    ],
)
def test_wrong_systems_of_ones_own_are_named(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"attributes": ATTRIBUTES, "sensitive": ["old"], "episodes": 1, **change}
    with pytest.raises(ValueError, match=message):
        play_parallel(leavers(), given.pop("attributes"), never, **given)


def never(*_: Any) -> int:
    raise AssertionError("something was played")


@pytest.mark.parametrize("env", ["city", leavers_in_turn()], ids=["text", "aec"])
def test_what_is_no_parallel_environment_is_refused(env: Any) -> None:
    given: dict[str, Any] = {"sensitive": ["old"], "episodes": 1}
    with pytest.raises(TypeError, match=r"^env must be a pettingzoo\.ParallelEnv"):
        play_parallel(env, ATTRIBUTES, never, **given)
    with pytest.raises(TypeError, match=r"^without\['old'\] must be a pettingzoo\.ParallelEnv"):
        play_parallel(leavers(), ATTRIBUTES, never, without={"old": env}, **given)


def test_an_environment_without_agents_is_refused() -> None:
    env = leavers()
    env.possible_agents = []
    with pytest.raises(ValueError, match="env must have possible_agents, got none"):
        play_parallel(env, {}, never, sensitive=["old"], episodes=1)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ([{"old": 1}], r"attributes must be a dictionary by agent, got \[\{'old': 1\}\]"),
        ({**ATTRIBUTES, "agent_1": "old"}, r"attributes\['agent_1'\] must be a dictionary of codes by name, got 'old'"),
    ],
)
def test_attributes_that_are_no_dictionaries_are_refused(attributes: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        play_parallel(leavers(), attributes, never, sensitive=["old"], episodes=1)


def test_each_agent_of_ones_own_has_its_own_luck() -> None:
    lucks: dict[str, float] = {}
    play_parallel(
        leavers(horizon=1),
        ATTRIBUTES,
        lambda agent, _, uniform: int(lucks.setdefault(agent, uniform) < 0),
        sensitive=["old"],
        episodes=1,
    )
    assert list(lucks) == list(ATTRIBUTES) and len(set(lucks.values())) == 3


def test_each_world_without_an_attribute_takes_that_one_away() -> None:
    worlds = {"old": leavers(horizon=1), "red": leavers(horizon=5)}
    given: dict[str, Any] = {"sensitive": ["old", "red"], "episodes": 2, "without": worlds}
    played = play_parallel(leavers(horizon=3), ATTRIBUTES, lambda *_: 1, **given)
    codes = {name: {n: c[0].tolist() for n, c in of.attributes.items()} for name, of in played.without.items()}
    assert codes == {"old": {"old": [0, 0, 0], "red": [0, 0, 1]}, "red": {"old": [1, 0, 0], "red": [0, 0, 0]}}
    gaps = found(played)  # agent_0 leaves after 1 or 2 steps, agent_2 stays
    assert gaps["counterfactual_fairness", "old", ""] == pytest.approx(np.mean([2 - 2, 2 - 4]))
    assert gaps["counterfactual_fairness", "red", ""] == pytest.approx(np.mean([10 - 6, 10 - 6]))


def test_wrong_names_are_refused_before_anything_is_played() -> None:
    spec = Leavers().spec
    check_measure(spec, attributes=["marked"], form="sum")
    with pytest.raises(ValueError, match="attribute must be one of marked, got 'old'"):
        check_measure(spec, attributes=["old"], form="sum")
    with pytest.raises(ValueError, match="attribute must name 'marked' once, got it 2 times"):
        check_measure(spec, attributes=["marked", "marked"], form="sum")
    with pytest.raises(ValueError, match=r"form must be one of sum, .*, got 'both'"):
        check_measure(spec, attributes=None, form="both")


def test_reports_hold_every_number(tmp_path: Path) -> None:
    played = play_parallel(leavers(horizon=5), ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=2)
    measured = {"one": measure(played), "two": measure(played)}
    made = report({"one": played, "two": played}, about={"seed": 0})
    made.save(tmp_path / "new")
    kept = json.loads((tmp_path / "new" / "report.json").read_text())
    assert kept["seed"] == 0 and len(kept["measured"]) == 2 * (len(measured["one"]) + 1)
    first = kept["measured"][0]
    assert (first["policy"], first["notion"], first["attribute"]) == ("one", "demographic_parity", "old")
    assert first["value"] == measured["one"][0].gap.value
    assert len((tmp_path / "new" / "report.csv").read_text().splitlines()) == len(kept["measured"]) + 1
    shown = made.table()
    assert [str(column.header) for column in shown.columns] == ["attribute", "notion", "within", "one", "two"]
    assert shown.row_count == len(measured["one"]) + 1


def test_rewards_of_unknown_agents_and_episodes_without_agents_are_refused() -> None:
    env: Any = leavers()
    step, reset = env.step, env.reset

    def with_a_stranger(actions: Any) -> Any:
        observations, rewards, *others = step(actions)
        return observations, {**rewards, "stranger": 1.0}, *others

    def without_agents(**options: Any) -> Any:
        found = reset(**options)
        env.agents = []
        return found

    env.step = with_a_stranger
    with pytest.raises(ValueError, match=r"env must reward only its possible_agents .* got 'stranger'"):
        play_parallel(env, ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=1)
    env.reset = without_agents
    with pytest.raises(ValueError, match=r"env must have agents after reset\(seed=0\), got none"):
        play_parallel(env, ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=1)


def test_policies_in_parallel_environments_have_random_numbers_of_their_own() -> None:
    """Gymnasium gives an environment default_rng(seed), whose numbers a policy must not see."""
    env = SimpleNamespace(possible_agents=["a", "b"], agents=["a", "b"], reset=lambda seed: ({}, {}))
    world = ParallelWorld(env, seed=5)
    assert not np.isin(world.uniforms(), np.random.default_rng(5).random(100)).any()
    assert np.array_equal(world.uniforms(), ParallelWorld(env, seed=5).uniforms())
