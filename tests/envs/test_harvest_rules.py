"""Every parameter of the harvest does what it says: a worked example each."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fair_envs.core import Lanes
from fair_envs.envs.harvest.params import PROFILES, HarvestParams, largest_population
from fair_envs.envs.harvest.rules import (
    ACTION_NAMES,
    BLUE,
    DOWN,
    FEATURES,
    LEFT,
    NO_COLOUR,
    NO_TURN,
    OBSTRUCT,
    RECOLOUR,
    RED,
    RIGHT,
    RIPEN,
    STAY,
    UP,
    USE,
    Harvest,
    falls_on,
)
from fair_envs.support.aliases import Flags
from tests.helpers import NARROW, Agent, Bush, act, arrange, bush_state, digest, place, scene, uncompiled

RED_AGENT, SLOW_AGENT = Agent(5, 5), Agent(5, 5, sensitive=1)
BELOW, ON_THE_RIGHT, ABOVE, ON_THE_LEFT = (5, 6), (6, 5), (5, 4), (4, 5)


def started(lanes: int = 1, **parameters: Any) -> Lanes:
    """Return lanes of the usual size at the start of their first episodes."""
    batch = Lanes(Harvest(**parameters), lanes)
    batch.seed(0)
    batch.restart()
    return batch


def fields(records: NDArray[np.void]) -> list[NDArray[Any]]:
    """Return the columns of records, without the padding between them."""
    return [records[name] for name in records.dtype.names or ()]


def rewards(batch: Lanes, *actions: int) -> list[float]:
    """Return what agent 0 earns with one action after another."""
    return [act(batch, action, *[STAY] * (batch.agents - 1))[0] for action in actions]


def executed(batch: Lanes, *joint: int) -> list[int]:
    """Return what the agents of the first lane are reported to have done in a step."""
    actions: list[int] = batch.advance(np.array([joint])).facts["action"][0].tolist()
    return actions


# ------------------------------------------------------------------------------------------------- the start


def test_agents_and_bushes_stand_on_cells_of_their_own() -> None:
    for lane in started(20).records:
        assert lane["bushes"] == 60
        assert sorted(lane["cell"][lane["cell"] > 0].tolist()) == list(range(1, 101))
        assert [lane["cell"][x, y] for x, y in zip(lane["x"], lane["y"], strict=True)] == list(range(1, 41))
        bushes = zip(lane["bush_x"][:60], lane["bush_y"][:60], strict=True)
        assert [lane["cell"][x, y] for x, y in bushes] == list(range(41, 101))
        assert lane["colour"][:60].tolist() == [RED] * 30 + [BLUE] * 30
        assert not lane["ripe"].any() and not lane["age"].any() and not lane["frozen"].any()


def test_every_cell_is_as_likely_for_an_agent_and_for_a_bush() -> None:
    records = started(3000).records
    for x, y in (("x", "y"), ("bush_x", "bush_y")):
        cells = np.bincount((records[x][:, :40] + 25 * records[y][:, :40]).ravel(), minlength=375)
        assert 260 < ((cells - 320) ** 2 / 320 / (1 - 40 / 375)).sum() < 500  # 374 degrees of freedom: 374 +- 27


@pytest.mark.parametrize(
    ("indices", "preference", "sensitive"),
    [
        ("interleaved", [RED, BLUE] * 20, [0, 0, 1, 1] * 10),
        ("red_first", [RED] * 20 + [BLUE] * 20, [0, 1] * 20),
    ],
)
def test_indices(indices: str, preference: list[int], sensitive: list[int]) -> None:
    for lane in started(3, indices=indices).records:
        assert lane["preference"].tolist() == preference
        assert lane["sensitive"].tolist() == sensitive


def test_a_shuffled_assignment_takes_any_half_of_the_agents() -> None:
    records = started(2000, assignment="shuffled", indices="red_first").records
    assert (records["sensitive"].sum(axis=1) == 20).all()
    among_reds = records["sensitive"][:, :20].sum(axis=1)
    assert among_reds.mean() == pytest.approx(10, abs=0.15)
    assert among_reds.std() == pytest.approx(1.6, abs=0.1)  # hypergeometric
    assert records["sensitive"].mean(axis=0) == pytest.approx(0.5, abs=0.06)


def test_a_shuffled_assignment_gives_the_attribute_to_the_whole_number_below_the_share() -> None:
    assert started(assignment="shuffled", sensitive_fraction=0.99).records["sensitive"].sum() == 39
    assert started(assignment="shuffled", sensitive_fraction=0.0).records["sensitive"].sum() == 0
    assert started(assignment="shuffled", sensitive_fraction=1.0).records["sensitive"].sum() == 40


@pytest.mark.parametrize("indices", ["interleaved", "red_first"])
@pytest.mark.parametrize(
    ("sensitive", "blue", "classes"),  # agents that are: red, red sensitive, blue, blue sensitive
    [
        (0.0, 0.5, [20, 0, 20, 0]),
        (1.0, 0.5, [0, 20, 0, 20]),
        (0.33, 0.5, [14, 6, 14, 6]),
        (0.5, 0.0, [20, 20, 0, 0]),
        (0.5, 1.0, [0, 0, 20, 20]),
        (0.5, 0.29, [15, 14, 6, 5]),
        (0.29, 0.225, [23, 8, 7, 2]),
    ],
)
def test_shares_are_stratified(indices: str, sensitive: float, blue: float, classes: list[int]) -> None:
    lane = started(sensitive_fraction=sensitive, blue_fraction=blue, indices=indices).records[0]
    found = list(zip(lane["preference"].tolist(), lane["sensitive"].tolist(), strict=True))
    assert [found.count(one) for one in ((RED, 0), (RED, 1), (BLUE, 0), (BLUE, 1))] == classes


@pytest.mark.nojit
def test_a_share_is_not_rounded_down_by_the_computers_arithmetic() -> None:
    """0.29 * 100 is 28.999999999999996."""
    for hundredths in range(101):
        assert sum(falls_on(k, hundredths / 100) for k in range(100)) == hundredths


def test_skill_crosses_preference_and_attribute() -> None:
    lane = started(skilled_fraction=0.5, legitimate="skill").records[0]
    found = list(zip(*(lane[name].tolist() for name in ("preference", "sensitive", "skilled")), strict=True))
    classes = [
        (preference, sensitive, skilled) for preference in (RED, BLUE) for sensitive in (0, 1) for skilled in (0, 1)
    ]
    assert [found.count(one) for one in classes] == [5] * 8


# ------------------------------------------------------------------------------------------- actions, executed


def test_the_actions_are_these() -> None:
    assert [ACTION_NAMES[a] for a in (STAY, UP, DOWN, LEFT, RIGHT)] == ["stay", "up", "down", "left", "right"]
    assert [ACTION_NAMES[a] for a in (USE, RECOLOUR, OBSTRUCT, RIPEN)] == ["ripen/eat", "recolour", "obstruct", "ripen"]
    assert list(range(9)) == [STAY, UP, DOWN, LEFT, RIGHT, USE, RECOLOUR, OBSTRUCT, RIPEN]


@pytest.mark.parametrize(
    ("action", "bushes", "reported"),
    [
        (STAY, [], STAY),
        (RIGHT, [], RIGHT),
        (RIGHT, [Bush(*ON_THE_RIGHT)], STAY),
        (USE, [Bush(*ON_THE_RIGHT)], USE),
        (USE, [], STAY),
        (RECOLOUR, [Bush(*ON_THE_RIGHT, BLUE)], RECOLOUR),
        (RECOLOUR, [Bush(*ON_THE_RIGHT)], RECOLOUR),  # beside a bush it is possible, though nothing is left to do
        (RECOLOUR, [], STAY),
        (OBSTRUCT, [Bush(*ON_THE_RIGHT)], STAY),
    ],
)
@uncompiled
def test_an_impossible_action_changes_nothing_and_is_reported_as_staying(
    action: int, bushes: Sequence[Bush], reported: int
) -> None:
    batch = scene([RED_AGENT], bushes)
    before = batch.snapshot()
    assert executed(batch, action) == [reported]
    if reported == STAY:
        for name in set(before.dtype.names or ()) - {"time", "age"}:
            assert (batch.records[name] == before[name]).all(), name


@uncompiled
def test_an_agent_without_a_turn_did_nothing_and_is_reported_so() -> None:
    batch = scene([Agent(5, 5), Agent(5, 6, BLUE, sensitive=1)])
    assert executed(batch, STAY, STAY) == [STAY, NO_TURN]
    assert executed(batch, OBSTRUCT, STAY) == [OBSTRUCT, NO_TURN]
    assert executed(batch, STAY, STAY) == [STAY, NO_TURN]
    assert executed(batch, STAY, STAY) == [STAY, STAY]


@uncompiled
def test_neighbours_are_scanned_down_right_up_left() -> None:
    around = [ABOVE, ON_THE_LEFT, ON_THE_RIGHT, BELOW]
    batch = scene([RED_AGENT], [Bush(*cell, BLUE) for cell in around[:3]])
    order = []
    for _ in range(3):
        act(batch, RECOLOUR)
        order.append(bush_state(batch, "colour"))
    assert order == [[BLUE, BLUE, RED], [RED, BLUE, RED], [RED, RED, RED]]
    below_first = scene([RED_AGENT], [Bush(*ON_THE_RIGHT, BLUE), Bush(*BELOW, BLUE)])
    act(below_first, RECOLOUR)
    assert bush_state(below_first, "colour") == [BLUE, RED]


def test_obstructing_hits_the_first_neighbour_only() -> None:
    batch = started()
    crowd = [Agent(5, 5), Agent(*ON_THE_LEFT, BLUE), Agent(*ABOVE, BLUE), Agent(*ON_THE_RIGHT, BLUE)]
    arrange(batch, [*crowd, *(Agent(24, y) for y in range(15)), *(Agent(22, y) for y in range(15))][:34] + spare(), [])
    joint = [STAY] * 40
    joint[0] = OBSTRUCT
    facts = batch.advance(np.array([joint])).facts
    assert facts["action"][0, :4].tolist() == [OBSTRUCT, STAY, STAY, NO_TURN]


def spare() -> list[Agent]:
    """Return six agents far from anything."""
    return [Agent(0, y) for y in range(9, 15)]


@pytest.mark.parametrize("corner", [(0, 0), (24, 0), (0, 14), (24, 14)])
@uncompiled
def test_the_world_ends_at_its_edge(corner: tuple[int, int]) -> None:
    batch = scene([Agent(*corner), Agent(12, 7)])
    for action in range(8):
        act(batch, action, STAY)
        act(batch, {UP: DOWN, DOWN: UP, LEFT: RIGHT, RIGHT: LEFT}.get(action, STAY), STAY)
        x, y = place(batch)
        assert 0 <= x < 25 and 0 <= y < 15
        assert abs(x - corner[0]) <= 1 and abs(y - corner[1]) <= 1
    assert batch.records["cell"][0].sum() == 1 + 2


# ------------------------------------------------------------------------------------------------ the handicap


@uncompiled
def test_a_handicap_of_movement_leaves_everything_else() -> None:
    batch = scene([SLOW_AGENT], [Bush(*BELOW)], handicap="movement")
    assert rewards(batch, USE, USE, USE) == [3, 5, 3]
    assert executed(batch, UP) == [UP]  # t = 3
    assert executed(batch, UP) == [STAY]
    assert place(batch) == (5, 4)
    assert executed(batch, UP) == [UP]
    assert place(batch) == (5, 3)


@uncompiled
def test_a_handicap_of_turns_takes_everything() -> None:
    batch = scene([SLOW_AGENT], [Bush(*BELOW)])
    assert [executed(batch, action) for action in (UP, USE, UP, UP)] == [[NO_TURN], [USE], [NO_TURN], [UP]]


@pytest.mark.parametrize(
    ("period", "granted"), [(1, [1, 1, 1, 1, 1, 1]), (2, [0, 1, 0, 1, 0, 1]), (3, [0, 0, 1, 0, 0, 1]), (7, [0] * 6)]
)
@uncompiled
def test_handicap_period(period: int, granted: list[int]) -> None:
    batch = scene([SLOW_AGENT], [Bush(*BELOW, BLUE)], handicap_period=period)
    assert rewards(batch, *[USE] * 6) == granted


@uncompiled
def test_a_freeze_is_absorbed_by_a_turn_that_would_have_been_skipped() -> None:
    batch = scene([Agent(5, 5), Agent(5, 6, BLUE, sensitive=1)], [Bush(5, 7, BLUE)])
    assert [act(batch, *joint)[1] for joint in [(7, 5), (0, 5), (0, 5), (0, 5)]] == [0, 3, 0, 5]
    batch = scene([Agent(5, 5), Agent(5, 6, BLUE, sensitive=1)], [Bush(5, 7, BLUE)])
    assert [act(batch, *joint)[1] for joint in [(0, 5), (7, 5), (0, 5), (0, 5)]] == [0, 0, 0, 3]


# -------------------------------------------------------------------------------------------------- the turns


def first_to_come(batch: Lanes, steps: int) -> Flags:
    """Return in which steps agent 0, and not agent 1, takes the cell between them; shape (steps, lanes)."""
    first = []
    for _ in range(steps):
        arrange(batch, [Agent(1, 1), Agent(3, 1)], [])
        batch.advance(np.tile([RIGHT, LEFT], (batch.count, 1)))
        first.append(batch.records["x"][:, 0] == 2)
        assert (first[-1] != (batch.records["x"][:, 1] == 2)).all()
    return np.array(first)


def test_in_index_order_the_lower_index_comes_first() -> None:
    assert first_to_come(scene([Agent(1, 1), Agent(3, 1)], lanes=5, **NARROW), 5).all()


def test_in_random_order_each_comes_first_half_of_the_time() -> None:
    first = first_to_come(scene([Agent(1, 1), Agent(3, 1)], lanes=200, turn_order="random", **NARROW), 100)
    assert first.mean() == pytest.approx(0.5, abs=0.02)
    assert (first[1:] == first[:-1]).mean() == pytest.approx(0.5, abs=0.02)
    assert (first[:, 1:] == first[:, :-1]).mean() == pytest.approx(0.5, abs=0.02)


def test_in_random_order_every_agent_has_one_turn() -> None:
    batch = started(20, turn_order="random")
    facts = batch.advance(np.zeros((20, 40), np.int64)).facts
    assert (facts["action"] == np.where(batch.records["sensitive"], NO_TURN, STAY)).all()


@pytest.mark.parametrize(
    ("turns", "lost"),
    [(0, [0, 0, 0, 0, 0]), (1, [1, 0, 0, 0, 0]), (2, [1, 1, 0, 0, 0]), (4, [1, 1, 1, 1, 0]), (-1, [1, 1, 1, 1, 1])],
)
@uncompiled
def test_freeze_turns(turns: int, lost: list[int]) -> None:
    batch = scene([Agent(5, 5), Agent(5, 6)], freeze_turns=turns)
    actions = [executed(batch, OBSTRUCT if time == 0 else STAY, STAY)[1] for time in range(5)]
    assert [int(action == NO_TURN) for action in actions] == lost


@uncompiled
def test_freezes_do_not_add_up() -> None:
    batch = scene([Agent(5, 5), Agent(5, 6)], freeze_turns=3)
    actions = [executed(batch, OBSTRUCT if time < 2 else STAY, STAY)[1] for time in range(6)]
    assert [int(action == NO_TURN) for action in actions] == [1, 1, 1, 1, 0, 0]


@uncompiled
def test_a_permanent_freeze_ends_with_the_episode() -> None:
    batch = scene([Agent(5, 5), Agent(5, 6)], freeze_turns=-1)
    act(batch, OBSTRUCT, STAY)
    assert batch.records["frozen"][0].tolist() == [0, -1]
    batch.restart()
    assert batch.records["frozen"][0].tolist() == [0, 0]


@uncompiled
def test_an_agent_that_is_hit_after_its_turn_loses_the_next() -> None:
    batch = scene([Agent(5, 5), Agent(5, 6)])
    assert [executed(batch, STAY, action)[0] for action in (OBSTRUCT, STAY, STAY)] == [STAY, NO_TURN, STAY]


@pytest.mark.parametrize(
    ("moves_succeed", "at"),
    [(True, (5, 4)), (False, (5, 5))],
)
@uncompiled
def test_moves_succeed(moves_succeed: bool, at: tuple[int, int]) -> None:
    batch = scene([RED_AGENT], moves_succeed=moves_succeed)
    assert executed(batch, UP) == [UP if moves_succeed else STAY]
    assert place(batch) == at


@pytest.mark.parametrize(
    ("bushes", "reward", "ripe"),
    [
        ([Bush(*BELOW), Bush(*ON_THE_RIGHT, BLUE), Bush(*ABOVE)], 3, [1, 1, 1]),
        ([Bush(*BELOW), Bush(*ON_THE_RIGHT, BLUE)], 1, [1, 1]),
        ([Bush(*BELOW), Bush(*ON_THE_RIGHT, BLUE, ripe=1), Bush(*ABOVE)], 1, [1, 0, 0]),
        ([Bush(*BELOW, ripe=1), Bush(*ON_THE_RIGHT)], 5, [0, 0]),
    ],
)
@uncompiled
def test_touch_until_eaten_pays_for_the_last_bush(bushes: Sequence[Bush], reward: float, ripe: list[int]) -> None:
    batch = scene([RED_AGENT], bushes, touch="until_eaten")
    assert rewards(batch, USE) == [reward]
    assert bush_state(batch, "ripe") == ripe


@pytest.mark.parametrize("touch", ["first", "until_eaten"])
@uncompiled
def test_with_separate_ripening_one_action_eats_and_a_ninth_ripens(touch: str) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW), Bush(*ON_THE_RIGHT, ripe=1)], separate_ripening=True, touch=touch)
    assert batch.rules.action_space(batch.rules.params).n == 9  # type: ignore[attr-defined]
    assert batch.rules.spec.actions == 9
    assert rewards(batch, USE, RIPEN, RIPEN, USE, USE) == [0, 3, 0, 5, 0]
    assert bush_state(batch, "ripe") == [0, 1]


def test_without_separate_ripening_there_are_eight_actions() -> None:
    assert Harvest().action_space(Harvest().params).n == 8
    assert Harvest().spec.actions == 8


def test_with_nine_actions_ripening_can_replace_an_impossible_one() -> None:
    actions = np.tile([UP, STAY], (4000, 1))
    given: dict[str, Any] = {"separate_ripening": True, "profile": "authors", **NARROW}
    batch = scene([Agent(1, 1), Agent(3, 2)], [Bush(1, 2)], lanes=4000, **given)
    assert set(batch.advance(actions).facts["action"][:, 0].tolist()) == {USE, RECOLOUR, RIPEN, STAY}


def test_a_move_that_the_handicap_forbids_is_replaced_too() -> None:
    slow_agents = [Agent(1, 1, sensitive=1), Agent(3, 2, sensitive=1)]
    batch = scene(slow_agents, lanes=2000, handicap="movement", invalid_action="resample", **NARROW)
    first = batch.advance(np.full((2000, 2), UP)).facts["action"]
    assert set(first.ravel().tolist()) == {STAY}  # no move is granted and nothing is adjacent
    second = batch.advance(np.full((2000, 2), UP)).facts["action"]
    assert set(second.ravel().tolist()) == {UP}


# ------------------------------------------------------------------------------------------------- the rewards


@pytest.mark.parametrize(
    ("name", "agents", "bushes", "action"),
    [
        ("ripen_preferred", [Agent(5, 5, BLUE)], [Bush(*BELOW, BLUE)], USE),
        ("ripen_other", [Agent(5, 5, BLUE)], [Bush(*BELOW)], USE),
        ("eat_preferred", [Agent(5, 5, BLUE)], [Bush(*BELOW, BLUE, ripe=1)], USE),
        ("eat_other", [Agent(5, 5, BLUE)], [Bush(*BELOW, ripe=1)], USE),
        ("recolour", [Agent(5, 5, BLUE)], [Bush(*BELOW)], RECOLOUR),
        ("obstruct_opposed", [Agent(5, 5, BLUE), Agent(5, 4)], [], OBSTRUCT),
        ("obstruct_same", [Agent(5, 5, BLUE), Agent(5, 4, BLUE)], [], OBSTRUCT),
    ],
)
@uncompiled
def test_each_reward_is_a_parameter(name: str, agents: Sequence[Agent], bushes: Sequence[Bush], action: int) -> None:
    changed: dict[str, Any] = {name: -7.25}
    batch = scene(agents, bushes, **changed)
    joint = [action] + [STAY] * (len(agents) - 1)
    step = batch.advance(np.array([joint]))
    assert step.reward[0].tolist() == [-7.25] + [0] * (len(agents) - 1)
    assert step.facts["outcome"][0, 0] == -7.25
    assert batch.records["total"][0, 0] == batch.records["last_reward"][0, 0] == -7.25


@pytest.mark.parametrize(("pay_frozen", "paid"), [(True, [3, 3, 3, 3]), (False, [3, 0, 0, 3])])
@uncompiled
def test_pay_frozen(pay_frozen: bool, paid: list[float]) -> None:
    batch = scene([Agent(5, 6), Agent(5, 5, BLUE)], pay_frozen=pay_frozen, freeze_turns=3)
    found = rewards(batch, OBSTRUCT, OBSTRUCT, OBSTRUCT)
    for _ in range(3):
        act(batch, STAY, STAY)
    assert found + rewards(batch, OBSTRUCT) == paid


@uncompiled
def test_a_skilled_agents_rewards_are_multiplied() -> None:
    agents = [Agent(5, 5, skilled=1), Agent(10, 5)]
    batch = scene(agents, [Bush(*BELOW), Bush(10, 6)], skill_reward=1.5)
    assert act(batch, USE, USE) == [4.5, 3]
    assert act(batch, USE, USE) == [7.5, 5]


@pytest.mark.parametrize(
    ("legitimate", "names", "codes"),
    [("preference", ("red", "blue"), [0, 1]), ("skill", ("unskilled", "skilled"), [1, 0])],
)
@uncompiled
def test_the_legitimate_factor(legitimate: str, names: tuple[str, str], codes: list[int]) -> None:
    batch = scene([Agent(5, 5, skilled=1), Agent(5, 6, BLUE)], legitimate=legitimate)
    assert batch.rules.spec.legitimate == {legitimate: names}
    assert batch.show().facts["legitimate"][0, :, 0].tolist() == codes


@uncompiled
def test_the_eating_only_profile_pays_for_eating_alone() -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW), Bush(*ON_THE_RIGHT, BLUE)], profile="eating_only")
    assert rewards(batch, USE, USE, RECOLOUR) == [0, 2, 0]
    other = scene([RED_AGENT], [Bush(*BELOW, BLUE, ripe=1)], profile="eating_only")
    assert rewards(other, USE) == [1]
    assert act(scene([Agent(5, 5), Agent(5, 6, BLUE)], profile="eating_only"), OBSTRUCT, STAY) == [0, 0]


def test_a_profile_is_overridden_by_what_is_given() -> None:
    assert Harvest(profile="authors").params.freeze_turns == -1
    assert Harvest(profile="authors", freeze_turns=2).params.freeze_turns == 2
    for profile, values in PROFILES.items():
        assert Harvest(profile=profile).params == HarvestParams(profile=profile, **values)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------- the bushes


def population(batch: Lanes, steps: int) -> list[int]:
    """Return how many bushes stand after each step in which nobody does anything."""
    nothing = np.zeros((batch.count, batch.agents), np.int64)
    counts = []
    for _ in range(steps):
        batch.advance(nothing)
        counts.append(int(batch.records["bushes"][0]))
    return counts


@uncompiled
def test_without_a_lifespan_bushes_are_immortal() -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW)], horizon=2**31 - 2)
    batch.records["age"] = 32_700  # as after so many steps
    assert population(batch, 200) == [1] * 200


@uncompiled
def test_immortal_bushes_go_on_ripening_by_themselves() -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW)], ripening="share", ripening_rate=0.0, horizon=2**31 - 2)
    batch.records["unripe_for"] = 32_760
    population(batch, 20)
    batch.rules.code["ripening_rate"] = 1.0
    population(batch, 1)
    assert bush_state(batch, "ripe") == [1]


@pytest.mark.parametrize(
    ("parameters", "counts"),
    [
        ({"growth_interval": 0}, [60] * 6),
        ({"growth_interval": 1}, [61, 62, 63, 64, 65, 66]),
        ({"growth_interval": 3}, [61, 61, 61, 62, 62, 62]),
        ({"growth_interval": 3, "growth_at_zero": False}, [60, 60, 60, 61, 61, 61]),
        ({"growth_interval": 1, "growth_attempts": 0}, [60] * 6),
        ({"growth_interval": 1, "lifespan": 3}, [61, 62, 3, 3, 3, 3]),
    ],
)
def test_growth(parameters: dict[str, Any], counts: list[int]) -> None:
    batch = started()
    for name, value in parameters.items():
        batch.rules.code[name] = value  # in the usual layout: there is room for these
    assert population(batch, 6) == counts


def test_growth_tries_cells_until_one_is_empty() -> None:
    """One cell of 375 is empty: one try finds it with chance 1/375, a hundred with 1 - (374/375)^100."""
    for attempts, share in ((1, 1 / 375), (100, 1 - (374 / 375) ** 100)):
        batch = started(3000, growth_attempts=attempts)
        batch.records["cell"] = 1
        batch.records["cell"][:, 7, 3] = 0
        batch.advance(np.zeros((3000, 40), np.int64))
        assert (batch.records["bushes"] == 61).mean() == pytest.approx(share, abs=0.02 if attempts > 1 else 0.003)
        grown = batch.records["bushes"] == 61
        assert (batch.records["cell"][grown, 7, 3] == 41 + 60).all()


def test_a_new_bush_is_unripe_and_young_on_any_empty_cell() -> None:
    batch = started(3000)
    before = batch.records["cell"].copy()
    batch.advance(np.zeros((3000, 40), np.int64))
    x, y = (batch.records[name][:, 60].astype(int) for name in ("bush_x", "bush_y"))
    lanes = np.arange(3000)
    assert (before[lanes, x, y] == 0).all()
    assert (batch.records["cell"][lanes, x, y] == 1 + 40 + 60).all()
    assert not batch.records["ripe"][:, 60].any() and not batch.records["age"][:, 60].any()
    cells = np.bincount(x + 25 * y, minlength=375)
    assert 260 < ((cells - 8) ** 2 / 8).sum() < 500  # 374 degrees of freedom


@uncompiled
def test_bushes_that_die_together_leave_the_others_as_they_are() -> None:
    bushes = [Bush(1, 1), Bush(2, 2, BLUE, ripe=1), Bush(3, 3, NO_COLOUR)]
    for old in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        batch = scene([Agent(9, 9)], bushes, lifespan=10)
        batch.records["age"][0, :3] = [9 if k in old else 4 for k in range(3)]
        act(batch, STAY)
        left = [bush for k, bush in enumerate(bushes) if k not in old]
        names = ("bush_x", "bush_y", "colour", "ripe")
        assert sorted(zip(*(bush_state(batch, name) for name in names), strict=True)) == sorted(left)
        assert set(bush_state(batch, "age")) <= {5}
        for k, (x, y) in enumerate(zip(bush_state(batch, "bush_x"), bush_state(batch, "bush_y"), strict=True)):
            assert batch.records["cell"][0, x, y] == 1 + 1 + k
        assert (batch.records["cell"][0] > 1).sum() == len(left)


# ------------------------------------------------------------------------------------------- ripening by itself


@uncompiled
def test_bushes_ripen_by_themselves_only_if_asked() -> None:
    batch = scene([Agent(9, 9)], [Bush(1, 1)])
    population(batch, 50)
    assert bush_state(batch, "ripe") == [0]


@uncompiled
def test_the_timer_ripens_three_updates_after_a_bush_became_unripe() -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW)], ripening="timer")
    ripe = []
    for action in (STAY, STAY, STAY, STAY, USE, STAY, STAY, STAY):
        act(batch, action)
        ripe.append(bush_state(batch, "ripe")[0])
    assert ripe == [0, 0, 1, 1, 0, 0, 1, 1]


@uncompiled
def test_the_timer_starts_anew_when_a_bush_is_recoloured() -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW, BLUE)], ripening="timer", ripening_wait=2)
    ripe = []
    for action in (STAY, RECOLOUR, STAY, STAY):
        act(batch, action)
        ripe.append(bush_state(batch, "ripe")[0])
    assert ripe == [0, 0, 1, 1]


@pytest.mark.parametrize("wait", [0, 1, 10])
@uncompiled
def test_by_share_no_bush_ripens_before_its_wait_is_over(wait: int) -> None:
    batch = scene([Agent(9, 9)], [Bush(1, 1)], ripening="share", ripening_rate=1.0, ripening_wait=wait)
    ripe = []
    for _ in range(12):
        population(batch, 1)
        ripe.append(bush_state(batch, "ripe")[0])
    assert ripe.index(1) + 1 == max(wait, 1)


def test_by_share_a_bush_ripens_with_a_chance_for_each_bush_of_its_colour() -> None:
    agents, bushes = [Agent(3, 0), Agent(3, 2)], [Bush(0, 0), Bush(1, 1), Bush(2, 2, BLUE)]
    given: dict[str, Any] = {"ripening": "share", "ripening_rate": 0.1, "ripening_wait": 1, **NARROW}
    batch = scene(agents, bushes, lanes=20_000, **given)
    batch.advance(np.zeros((20_000, 2), np.int64))
    ripe = batch.records["ripe"][:, :3]
    assert ripe.mean(axis=0) == pytest.approx([0.2, 0.2, 0.1], abs=0.01)
    both = ripe[:, :2].all(axis=1).mean()
    assert both == pytest.approx(0.04, abs=0.006)
    before = ripe.copy()
    batch.advance(np.zeros((20_000, 2), np.int64))
    later = (ripe & ~before.astype(bool)).sum(axis=0) / (before == 0).sum(axis=0)
    assert later == pytest.approx([0.2, 0.2, 0.1], abs=0.01)  # ripe bushes count too


# --------------------------------------------------------------------------------------------- the observations


def test_scaled_observations_are_raw_ones_by_their_largest() -> None:
    raw, scaled = started(2, scaled=False), started(2)
    luck = np.random.default_rng(0)
    for _ in range(5):
        actions = luck.integers(0, 8, (2, 40))
        seen = raw.advance(actions).observation / scaled.advance(actions).observation.clip(1e-9)
        expected = np.array([24, 14, 1, 5, 1, 120, 120, 40, 40, 40], float)
        defined = raw.observe() != 0
        assert seen[defined] == pytest.approx(np.broadcast_to(expected, seen.shape)[defined], rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "low", "high"),
    [
        ({"scaled": False}, [0, 0, 0, -5, 0, 0, 0, 0, 0, 0], [24, 14, 1, 5, 2, 120, 120, 40, 40, 40]),
        ({}, [0, 0, 0, -1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 2, 1, 1, 1, 1, 1]),
        ({"obstruct_same": 8.0}, [0, 0, 0, -1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 2, 1, 1, 1, 1, 1]),
        (
            {"scaled": False, "obstruct_same": 8.0},
            [0, 0, 0, -8, 0, 0, 0, 0, 0, 0],
            [24, 14, 1, 8, 2, 120, 120, 40, 40, 40],
        ),
        (
            {"scaled": False, "obstruct_opposed": 7.0, "skilled_fraction": 0.5, "skill_reward": 0.5},
            [0, 0, 0, -7, 0, 0, 0, 0, 0, 0],
            [24, 14, 1, 7, 2, 120, 120, 40, 40, 40],
        ),
        (
            {"scaled": False, "recolour": -9.0, "skilled_fraction": 0.5, "skill_reward": -2.0},
            [0, 0, 0, -18, 0, 0, 0, 0, 0, 0],
            [24, 14, 1, 18, 2, 120, 120, 40, 40, 40],
        ),
    ],
)
def test_the_bounds_of_observations(parameters: dict[str, Any], low: list[float], high: list[float]) -> None:
    rules = Harvest(**parameters)
    space = rules.observation_space(rules.params)
    assert space.dtype == np.float32
    assert (space.low.tolist(), space.high.tolist()) == (low, high)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"observation": "extended"},
        {"scaled": False, "observation": "extended", "handicap": "movement", "turn_order": "random"},
        {"profile": "authors"},
        {"profile": "eating_only", "skilled_fraction": 0.5, "skill_reward": -2.5, "ripening": "timer"},
        {"recolour": -9.0, "ripen_other": 0.0, "ripening": "share", "ripening_rate": 0.01, "growth_colour": "cubic"},
        {"ripen_preferred": 0.0, "ripen_other": 0.0, "eat_preferred": 0.0, "eat_other": 0.0, "recolour": 0.0}
        | {"obstruct_opposed": 0.0},
        {"separate_ripening": True, "invalid_action": "resample", "pay_frozen": False, "freeze_turns": 5},
    ],
    ids=str,
)
def test_a_world_stays_consistent_and_inside_its_bounds(parameters: dict[str, Any]) -> None:
    batch = started(3, horizon=400, **parameters)
    space = batch.rules.observation_space(batch.rules.params)
    actions = batch.rules.spec.actions
    luck = np.random.default_rng(1)
    for time in range(400):
        step = batch.advance(luck.integers(0, actions, (3, 40)))
        assert (step.observation >= space.low).all() and (step.observation <= space.high).all()  # type: ignore[attr-defined]
        assert np.isfinite(step.facts["features"]).all()
        assert (step.facts["outcome"] == step.reward.astype(np.float32)).all()
        if time % 20 == 0:
            for lane in batch.records:
                assert_consistent(lane)


def assert_consistent(lane: np.void) -> None:
    """Fail unless the map of cells says the same as the columns of agents and bushes."""
    count = int(lane["bushes"])
    cells = np.zeros_like(lane["cell"])
    cells[lane["x"], lane["y"]] = 1 + np.arange(len(lane["x"]))
    cells[lane["bush_x"][:count], lane["bush_y"][:count]] = 1 + len(lane["x"]) + np.arange(count)
    assert (cells == lane["cell"]).all()
    assert (cells > 0).sum() == len(lane["x"]) + count
    assert set(lane["ripe"][:count].tolist()) <= {0, 1}
    assert set(lane["colour"][:count].tolist()) <= {NO_COLOUR, RED, BLUE}


NEIGHBOUR = {
    name: k for k, name in enumerate(("out", "empty", "red", "ripe red", "blue", "ripe blue", "same", "other"))
}


def surroundings(batch: Lanes, agent: int = 0) -> list[list[str]]:
    """Return what an agent of the first lane sees around it, in scan order, and check that it is one-hot."""
    seen = batch.observe()[0, agent, 10:42].reshape(4, 8)
    names = list(NEIGHBOUR)
    return [[names[k] for k in np.flatnonzero(row)] for row in seen]


@uncompiled
def test_the_extended_observation_shows_the_surroundings() -> None:
    extended: dict[str, Any] = {"observation": "extended"}
    batch = scene([RED_AGENT], [Bush(*BELOW), Bush(*ON_THE_RIGHT, ripe=1), Bush(*ABOVE, BLUE)], **extended)
    assert batch.observe().shape == (1, 1, 45)
    assert surroundings(batch) == [["red"], ["ripe red"], ["blue"], ["empty"]]
    batch = scene([Agent(0, 0)], [Bush(0, 1, BLUE, ripe=1), Bush(1, 0, NO_COLOUR)], **extended)
    assert surroundings(batch) == [["ripe blue"], [], ["out"], ["out"]]
    batch = scene([RED_AGENT, Agent(5, 6)], **extended)
    assert surroundings(batch) == [["same"], ["empty"], ["empty"], ["empty"]]
    batch = scene([Agent(24, 14), Agent(23, 14, BLUE)], **extended)
    assert surroundings(batch) == [["out"], ["out"], ["empty"], ["other"]]
    assert surroundings(batch, 1) == [["out"], ["other"], ["empty"], ["empty"]]


@pytest.mark.parametrize("near", [RED, BLUE])
@uncompiled
def test_the_distance_to_one_colour_does_not_look_at_the_other(near: int) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW, near), Bush(9, 9, RED + BLUE - near)], scaled=False)
    assert batch.observe()[0, 0, 7:9].tolist() == ([1, 8] if near == RED else [8, 1])


@uncompiled
def test_the_reward_of_the_last_step_is_seen_and_no_older_one() -> None:
    batch = scene([SLOW_AGENT], [Bush(*BELOW)], scaled=False)
    assert [batch.advance(np.array([[action]])).observation[0, 0, 3] for action in (USE, USE, USE, STAY)] == [
        0,
        3,
        0,
        0,
    ]


@uncompiled
def test_the_extended_observation_begins_with_the_ten_numbers() -> None:
    bushes = [Bush(*BELOW), Bush(*ABOVE, BLUE)]
    short, long = (scene([RED_AGENT], bushes, observation=kind) for kind in ("ten", "extended"))
    assert short.observe().tolist() == long.observe()[..., :10].tolist()


@uncompiled
def test_the_extended_observation_ends_with_freeze_turn_and_time() -> None:
    batch = scene([Agent(5, 5), Agent(5, 6, BLUE, sensitive=1)], observation="extended", horizon=4, freeze_turns=2)
    assert batch.observe()[0, :, 42:].tolist() == [[0, 1, 0], [0, 0, 0]]
    act(batch, OBSTRUCT, STAY)
    assert batch.observe()[0, :, 42:].tolist() == [[0, 1, 0.25], [1, 1, 0.25]]
    act(batch, STAY, STAY)
    assert batch.observe()[0, :, 42:].tolist() == [[0, 1, 0.5], [0, 0, 0.5]]


@pytest.mark.parametrize(("kind", "columns"), [("neighbours", range(42)), ("timing", [*range(10), 42, 43, 44])])
def test_a_part_of_the_extended_observation_has_its_entries(kind: str, columns: Sequence[int]) -> None:
    played = {own: started(3, horizon=40, observation=own) for own in ("extended", kind)}
    actions = np.random.default_rng(0).integers(8, size=(30, 3, 40))
    for row in actions:
        for batch in played.values():
            batch.advance(row)
        whole, part = (batch.observe() for batch in played.values())
        assert part.shape[-1] == len(columns)
        assert np.array_equal(part, whole[..., list(columns)])
    space = played[kind].rules.observation_space(played[kind].rules.params)
    assert space.shape == (len(columns),) and all(space.contains(own) for own in part.reshape(-1, len(columns)))


def test_the_last_reward_can_be_hidden() -> None:
    hidden, plain = started(2, observation="without_reward"), started(2)
    rewarded = False
    for row in np.random.default_rng(0).integers(8, size=(30, 2, 40)):
        seen, shown = (batch.advance(row).observation for batch in (hidden, plain))
        rewarded |= bool(shown[..., 3].any())
        shown[..., 3] = 0
        assert np.array_equal(seen, shown)
    assert rewarded
    assert (hidden.advance(row).facts["features"][..., 3] == 0).all()


def test_an_agent_at_half_speed_never_has_a_last_reward_when_it_acts() -> None:
    batch, turns = started(4), 0
    for row in np.random.default_rng(1).integers(8, size=(40, 4, 40)):
        before = batch.observe()
        step = batch.advance(row)
        acted = (step.facts["action"] >= 0) & (step.facts["sensitive"][..., 0] == 1)
        assert not before[..., 3][acted].any()
        turns += acted.sum()
    assert turns > 100


def test_the_features_of_a_decision_are_the_scaled_ten_numbers_that_it_was_taken_on() -> None:
    for kind in ({}, {"scaled": False}, {"observation": "extended"}):
        plain, batch = started(2), started(2, **kind)
        assert batch.rules.spec.features == FEATURES
        luck = np.random.default_rng(0)
        seen = plain.observe()
        for _ in range(4):
            actions = luck.integers(0, 8, (2, 40))
            assert (batch.advance(actions).facts["features"] == seen).all()
            seen = plain.advance(actions).observation


# ---------------------------------------------------------------------------------------- how many bushes fit


@given(
    width=st.integers(1, 6),
    height=st.integers(1, 6),
    agents=st.integers(1, 8),
    red=st.integers(0, 12),
    blue=st.integers(0, 12),
    lifespan=st.integers(0, 12),
    interval=st.integers(0, 6),
    at_zero=st.booleans(),
)
def test_no_history_has_more_bushes_than_there_is_room_for(
    width: int, height: int, agents: int, red: int, blue: int, lifespan: int, interval: int, at_zero: bool
) -> None:
    free = width * height - agents
    assume(red + blue <= free)
    params = HarvestParams(
        width=width,
        height=height,
        agents=agents,
        red_bushes=red,
        blue_bushes=blue,
        lifespan=lifespan,
        growth_interval=interval,
        growth_at_zero=at_zero,
    )
    ages, most = [0] * (red + blue), red + blue
    for time in range(80):
        ages = [age + 1 for age in ages if lifespan == 0 or age + 1 < lifespan]
        if interval and time % interval == 0 and (time or at_zero) and len(ages) < free:
            ages.append(0)
        most = max(most, len(ages))
    room = largest_population(params)
    assert most <= room
    if at_zero and (lifespan or not interval):
        assert room == max(most, 1)  # and no more room than that


@given(data=st.data())
def test_a_crowded_world_stays_consistent(data: st.DataObject) -> None:
    """Under one layout: a world of 4 x 3 cells with two agents, in which ten bushes may come to stand."""
    red = data.draw(st.integers(0, 5))
    blue = data.draw(st.integers(0, 5))
    life = data.draw(st.integers(10, 30))
    interval = data.draw(st.integers(1, 2)) if red + blue < 10 else data.draw(st.integers(1, 9))
    parameters = {"width": 4, "height": 3, "agents": 2, "red_bushes": red, "blue_bushes": blue, "horizon": 60}
    rules = Harvest(**parameters, lifespan=life, growth_interval=interval)
    assume(largest_population(rules.params) == 10)
    batch = Lanes(rules, 2)
    batch.seed(data.draw(st.integers(0, 1000)))
    batch.restart()
    luck = np.random.default_rng(data.draw(st.integers(0, 1000)))
    for _ in range(50):
        batch.advance(luck.integers(0, 8, (2, 2)))
        for lane in batch.records:
            assert_consistent(lane)


# -------------------------------------------------------------------------------------- with and without compilation


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("parameters", "known"),
    [
        ({}, "330058cabbf3215e"),
        ({"profile": "authors", "turn_order": "random"}, "bb61495a71f5a1a9"),
        (
            {"observation": "extended", "ripening": "share", "ripening_rate": 0.01, "skilled_fraction": 0.5}
            | {"skill_reward": 0.1, "handicap": "movement", "growth_colour": "cubic"},
            "92ba9f1452e54168",
        ),
    ],
    ids=["recommended", "authors", "other"],
)
def test_an_episode_is_the_same_with_and_without_compilation(parameters: dict[str, Any], known: str) -> None:
    """The digest is of all that happens; it changes with the rules, and then the environment's version does too."""
    batch = started(2, horizon=6, **parameters)
    batch.rules.code["lifespan"], batch.rules.code["growth_interval"] = 4, 1  # so that bushes die and many grow
    steps = [batch.advance(np.random.default_rng(time).integers(0, 8, (2, 40))) for time in range(6)]
    happened = [part for step in steps for part in (*step[:4], *fields(step.facts))]
    lanes = batch.snapshot()
    state = lanes[[name for name in lanes.dtype.names or () if name != "order"]]  # memory of a shuffle, no state
    assert digest(*happened, *fields(state)) == known


@pytest.mark.parametrize(
    ("parameters", "terminated"), [({}, False), ({"at_horizon": "terminate"}, True), ({"profile": "authors"}, True)]
)
def test_the_horizon_truncates_or_terminates(parameters: dict[str, Any], terminated: bool) -> None:
    batch = started(2, horizon=2, **parameters)
    first, last = (batch.advance(np.zeros((2, 40), int)) for _ in range(2))
    assert not (first.terminated | first.truncated).any()
    assert last.terminated.tolist() == [terminated] * 2
    assert last.truncated.tolist() == [not terminated] * 2


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"agents": 376, "red_bushes": 0, "blue_bushes": 0},
            "agents must be at most the 375 cells of the grid, got 376",
        ),
        ({"agents": 316}, "red_bushes + blue_bushes must be at most the 59 free cells, got 60"),
        ({"width": 200, "height": 200}, "width * height must be at most 16383 cells, got 40000"),
        ({"agents": 0}, "agents must be between 1 and 10000, got 0"),
        ({"agents": -3}, "agents must be between 1 and 10000, got -3"),
        ({"red_bushes": -1}, "red_bushes must be between 0 and 10000, got -1"),
        ({"horizon": 0}, "horizon must be between 1 and"),
        ({"sensitive_fraction": 1.5}, "sensitive_fraction must be between 0 and 1, got 1.5"),
        ({"blue_fraction": -0.1}, "blue_fraction must be between 0 and 1, got -0.1"),
        ({"handicap_period": 0}, "handicap_period must be between 1 and 10000, got 0"),
        ({"freeze_turns": -2}, "freeze_turns must be between -1 and 10000, got -2"),
        ({"growth_colour": "square"}, "growth_colour must be one of 'linear', 'cubic', got 'square'"),
        ({"recolour": float("nan")}, "recolour must be a finite number between"),
        ({"profile": "published"}, "profile must be one of 'recommended', 'authors', 'eating_only', got 'published'"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Harvest(**parameters)


@pytest.mark.parametrize(
    "parameters",
    [
        {"width": 1, "height": 1, "agents": 1, "red_bushes": 0, "blue_bushes": 0},
        {"width": 2, "height": 1, "agents": 1, "red_bushes": 1, "blue_bushes": 0, "lifespan": 1},
        {"width": 1, "height": 4, "agents": 2, "red_bushes": 1, "blue_bushes": 1, "growth_interval": 0},
    ],
    ids=["one cell", "two cells", "a column"],
)
@uncompiled
def test_the_smallest_worlds_can_be_played(parameters: dict[str, Any]) -> None:
    batch = started(2, horizon=6, observation="extended", **parameters)
    space = batch.rules.observation_space(batch.rules.params)
    luck = np.random.default_rng(0)
    for _ in range(6):
        seen = batch.advance(luck.integers(0, 8, (2, batch.agents))).observation
        assert (seen >= space.low).all() and (seen <= space.high).all()  # type: ignore[attr-defined]
        for lane in batch.records:
            assert_consistent(lane)


def test_a_lane_takes_less_than_4_kib() -> None:
    assert Harvest().dtype.itemsize < 4096
