"""Oracle cases of the harvest: worked by hand, and most of them run against the published code.

``authors`` are the rules of that code, ``recommended`` those of this package. The world is 25 x 15 (4 x 3 in scenes of
many lanes, see `NARROW`) and nothing grows or dies, except where it is said.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core import Lanes, randomness
from fair_envs.envs.harvest.rules import (
    BLUE,
    DOWN,
    GROWTH_COLOUR,
    LEFT,
    NO_COLOUR,
    OBSTRUCT,
    RECOLOUR,
    RED,
    RIGHT,
    STAY,
    UP,
    USE,
    Harvest,
)
from fair_envs.support.aliases import Floats
from tests.helpers import NARROW, Agent, Bush, act, arrange, bush_state, place, scene, uncompiled

BOTH = pytest.mark.parametrize("profile", ["authors", "recommended"])
RED_AGENT = Agent(5, 5)
BYSTANDER = Agent(3, 2)  # with nothing beside it
BELOW, ON_THE_RIGHT, ABOVE, ON_THE_LEFT = (5, 6), (6, 5), (5, 4), (4, 5)


def ripe_after_each(batch: Lanes, action: int, times: int) -> tuple[list[float], list[int]]:
    """Return the reward of each step of one agent, and whether bush 0 is ripe after it."""
    rewards, ripe = [], []
    for _ in range(times):
        rewards.extend(act(batch, action))
        ripe.append(bush_state(batch, "ripe")[0])
    return rewards, ripe


# ---------------------------------------------------------------------------------------- 1 and 2: observations


@BOTH
@uncompiled
def test_1_an_observation(profile: str) -> None:
    agents = [Agent(3, 4), Agent(10, 4, BLUE, sensitive=1)]
    batch = scene(agents, [Bush(5, 4), Bush(3, 10), Bush(0, 0, BLUE)], profile=profile, scaled=False)
    assert batch.observe()[0].tolist() == [[3, 4, 0, 0, 1, 2, 1, 2, 7, 7], [10, 4, 1, 0, 2, 2, 1, 5, 14, 7]]


@BOTH
@uncompiled
def test_2_what_is_not_there_is_at_distance_40(profile: str) -> None:
    batch = scene([Agent(3, 4)], [Bush(5, 4)], profile=profile, scaled=False)
    assert batch.observe()[0].tolist() == [[3, 4, 0, 0, 1, 1, 0, 2, 40, 40]]


# ------------------------------------------------------------------------------------- 3 to 7: acting on bushes


@BOTH
@uncompiled
def test_3_ripening_and_eating_the_preferred_colour(profile: str) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW)], profile=profile)
    assert ripe_after_each(batch, USE, 4) == ([3, 5, 3, 5], [1, 0, 1, 0])


@BOTH
@uncompiled
def test_4_ripening_and_eating_the_other_colour(profile: str) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW, BLUE)], profile=profile)
    assert ripe_after_each(batch, USE, 4) == ([1, 1, 1, 1], [1, 0, 1, 0])


@pytest.mark.parametrize(("profile", "reward", "ripe"), [("authors", 5, [1, 1, 0]), ("recommended", 1, [1, 0, 1])])
@uncompiled
def test_5_several_bushes(profile: str, reward: float, ripe: list[int]) -> None:
    bushes = [Bush(*BELOW, BLUE), Bush(*ON_THE_RIGHT), Bush(*ABOVE, ripe=1)]
    batch = scene([RED_AGENT], bushes, profile=profile)
    assert act(batch, USE) == [reward]
    assert bush_state(batch, "ripe") == ripe


@BOTH
@uncompiled
def test_6_a_ripe_bush_that_comes_first(profile: str) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW, BLUE, ripe=1), Bush(*ON_THE_RIGHT)], profile=profile)
    assert act(batch, USE) == [1]
    assert bush_state(batch, "ripe") == [0, 0]


@BOTH
@uncompiled
def test_7_recolouring(profile: str) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW), Bush(*ON_THE_RIGHT, BLUE, ripe=1)], profile=profile)
    assert act(batch, RECOLOUR) == [5]
    assert (bush_state(batch, "colour"), bush_state(batch, "ripe")) == ([RED, RED], [0, 0])
    assert act(batch, RECOLOUR) == [0]
    assert (bush_state(batch, "colour"), bush_state(batch, "ripe")) == ([RED, RED], [0, 0])


# ------------------------------------------------------------------------------------ 8 to 11: obstruction, parity

OPPOSED = [Agent(5, 5, RED), Agent(5, 6, BLUE)]


@pytest.mark.parametrize(
    ("profile", "rewards"),
    [
        ("authors", [[3, 0], [0, 0], [0, 0], [3, 0], [3, 0]]),
        ("recommended", [[3, 0], [0, 3], [0, 3], [0, 0], [3, 0]]),
    ],
)
@uncompiled
def test_8_obstructing_an_opposed_agent(profile: str, rewards: list[list[float]]) -> None:
    batch = scene(OPPOSED, profile=profile)
    joint = [(7, 7), (0, 7), (0, 7), (7, 0), (7, 0)]
    assert [act(batch, *actions) for actions in joint] == rewards


@BOTH
@uncompiled
def test_10_obstructing_an_agent_of_the_same_preference(profile: str) -> None:
    batch = scene([Agent(5, 5), Agent(5, 6)], profile=profile)
    assert act(batch, OBSTRUCT, OBSTRUCT) == [0, 0]
    assert batch.records["frozen"][0].tolist() == [0, -1 if profile == "authors" else 0]


@BOTH
@uncompiled
def test_11_a_sensitive_agent_has_every_second_turn(profile: str) -> None:
    batch = scene([Agent(5, 5, sensitive=1)], [Bush(*BELOW)], profile=profile)
    assert ripe_after_each(batch, USE, 8)[0] == [0, 3, 0, 5, 0, 3, 0, 5]


# ------------------------------------------------------------------------------------------------ 12: movement


@uncompiled
def test_12_moving_under_the_recommended_rules() -> None:
    batch = scene([Agent(0, 0)])
    seen = []
    for action in (RIGHT, UP, DOWN, LEFT):
        assert act(batch, action) == [0]
        seen.append(place(batch))
    assert seen == [(1, 0), (1, 0), (1, 1), (0, 1)]


def test_12_moving_under_the_authors_rules() -> None:
    batch = scene([Agent(0, 0), BYSTANDER], profile="authors", lanes=50, **NARROW)
    for action in (RIGHT, UP, DOWN, LEFT) * 5:
        act(batch, action, STAY)
    assert (batch.records["x"][:, 0] == 0).all() and (batch.records["y"][:, 0] == 0).all()


@pytest.mark.parametrize(
    ("start", "actions", "end"),
    [
        ([(1, 1), (3, 1)], (RIGHT, LEFT), [(2, 1), (3, 1)]),
        ([(1, 1), (2, 1)], (RIGHT, LEFT), [(1, 1), (2, 1)]),
        ([(1, 1), (2, 1)], (RIGHT, RIGHT), [(1, 1), (3, 1)]),
        ([(2, 1), (1, 1)], (RIGHT, RIGHT), [(3, 1), (2, 1)]),
    ],
    ids=[
        "the first to come takes the cell",
        "no swapping",
        "the one behind comes too early",
        "the one ahead goes first",
    ],
)
@uncompiled
def test_12_two_agents_moving(
    start: list[tuple[int, int]], actions: tuple[int, int], end: list[tuple[int, int]]
) -> None:
    batch = scene([Agent(x, y) for x, y in start])
    act(batch, *actions)
    assert [place(batch, 0), place(batch, 1)] == end


@uncompiled
def test_12_a_bush_blocks_its_cell() -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW)])
    assert act(batch, DOWN) == [0]
    assert place(batch) == (5, 5)


# ------------------------------------------------------------------------------------------------ 13: lifespan


@BOTH
@pytest.mark.parametrize("action", [STAY, USE, RECOLOUR])
@uncompiled
def test_13_a_bush_lives_for_120_steps_whatever_is_done_to_it(profile: str, action: int) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW, BLUE)], profile=profile, lifespan=120)
    for _ in range(119):  # t = 0 to 118
        act(batch, action)
    assert batch.records["bushes"][0] == 1
    act(batch, action)
    assert batch.records["bushes"][0] == 0
    assert batch.records["cell"][0, 5, 6] == 0


# -------------------------------------------------------------------------------------------- 15: growth colour


def grown(reds: int, blues: int, *, lanes: int, **parameters: Any) -> tuple[NDArray[np.int8], Floats]:
    """Return the colours that grow in the first step beside so many bushes, and the lanes' uniform numbers."""
    batch = Lanes(Harvest(**parameters), lanes)
    batch.seed(0)
    batch.restart()
    free = [(x, y) for y in range(15) for x in range(25)]
    agents = [Agent(*free.pop()) for _ in range(40)]
    bushes = [Bush(*free.pop(), RED if k < reds else BLUE) for k in range(reds + blues)]
    arrange(batch, agents, bushes)
    batch.advance(np.zeros((lanes, 40), np.int64))
    assert (batch.records["bushes"] == reds + blues + 1).all()
    drawn = np.array([randomness.uniform(key, 0, GROWTH_COLOUR, 0) for key in batch.records["key"]])
    colours: NDArray[np.int8] = batch.records["colour"][:, reds + blues]
    return colours, drawn


@pytest.mark.parametrize(("law", "share"), [("linear", 0.75), ("cubic", 27 / 28)])
def test_15_a_new_bush_takes_after_the_shares_of_the_colours(law: str, share: float) -> None:
    colours, drawn = grown(45, 15, lanes=4000, growth_colour=law)
    assert ((colours == RED) == (drawn < share)).all()
    assert (colours == RED).mean() == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("law", ["linear", "cubic"])
@pytest.mark.parametrize(("reds", "blues", "colour"), [(60, 0, RED), (0, 60, BLUE), (0, 0, NO_COLOUR)])
def test_15_a_lost_colour_does_not_come_back_by_itself(law: str, reds: int, blues: int, colour: int) -> None:
    colours, _ = grown(reds, blues, lanes=200, growth_colour=law)
    assert (colours == colour).all()


@BOTH
@uncompiled
def test_15_a_bush_without_a_colour(profile: str) -> None:
    batch = scene([RED_AGENT], [Bush(*BELOW, NO_COLOUR)], profile=profile)
    assert ripe_after_each(batch, USE, 2) == ([1, 0], [1, 0])
    assert act(batch, RECOLOUR) == [5]
    assert bush_state(batch, "colour") == [RED]


# --------------------------------------------------------------------------------------------- 21: stratification


@pytest.mark.parametrize("indices", ["interleaved", "red_first"])
def test_21_each_preference_and_attribute_has_ten_agents(indices: str) -> None:
    batch = Lanes(Harvest(indices=indices), 20)
    batch.restart()
    for lane in batch.records:
        classes = list(zip(lane["preference"].tolist(), lane["sensitive"].tolist(), strict=True))
        assert [classes.count(one) for one in ((RED, 0), (RED, 1), (BLUE, 0), (BLUE, 1))] == [10] * 4


# ------------------------------------------------------------------------------------------ 22: the retries

CHOOSER, BUSH, PARTNER = Agent(1, 1), Bush(2, 1, BLUE), Agent(1, 0)


@pytest.mark.parametrize(
    ("agents", "bushes", "chosen", "shares"),
    [
        ([CHOOSER, BYSTANDER], [BUSH], UP, {USE: 13 / 42, RECOLOUR: 13 / 42, STAY: 8 / 21}),
        ([CHOOSER, BYSTANDER], [BUSH], OBSTRUCT, {USE: 31 / 105, RECOLOUR: 31 / 105, STAY: 5 / 21 + 6 / 35}),
        (
            [CHOOSER, PARTNER],
            [BUSH],
            LEFT,
            {USE: 17 / 70, RECOLOUR: 17 / 70, OBSTRUCT: 17 / 70, STAY: 3 / 14 + 2 / 35},
        ),
        ([CHOOSER, PARTNER], [], RIGHT, {OBSTRUCT: 17 / 42, STAY: 47 / 140 + 109 / 420}),
    ],
    ids=["a bush", "a bush, obstructing", "a bush and an agent", "an agent"],
)
def test_22_what_replaces_an_impossible_action(
    agents: Sequence[Agent], bushes: Sequence[Bush], chosen: int, shares: dict[int, float]
) -> None:
    batch = scene(agents, bushes, lanes=20_000, profile="authors", **NARROW)
    actions = np.full((20_000, 2), STAY)
    actions[:, 0] = chosen
    executed = batch.advance(actions).facts["action"][:, 0]
    assert set(executed.tolist()) == set(shares)
    for action, share in shares.items():
        assert (executed == action).mean() == pytest.approx(share, abs=0.01)


def test_22_the_retries_of_one_episode_differ_from_step_to_step() -> None:
    batch = scene([CHOOSER, BYSTANDER], [BUSH], lanes=100, profile="authors", **NARROW)
    actions = np.tile([UP, STAY], (100, 1))
    executed = np.array([batch.advance(actions).facts["action"][:, 0] for _ in range(200)])
    assert (executed == USE).mean() == pytest.approx(13 / 42, abs=0.015)
    again = (executed[1:] == executed[:-1]).mean()
    assert again == pytest.approx(2 * (13 / 42) ** 2 + (8 / 21) ** 2, abs=0.015)


# --------------------------------------------------------------------------------------- the spec's populations


@BOTH
def test_the_population_rises_to_120_and_stays_at_60(profile: str) -> None:
    batch = Lanes(Harvest(profile=profile), 4)
    batch.seed(0)
    batch.restart()
    rng = np.random.default_rng(0)
    for t in range(260):
        batch.advance(rng.integers(0, 8, (4, 40)))
        expected = 61 + t // 2 if t <= 118 else 60
        assert batch.records["bushes"].tolist() == [expected] * 4
