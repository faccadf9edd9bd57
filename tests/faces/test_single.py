"""The Gymnasium face: joint and focal control of the agents."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import fair_envs.envs.harvest as harvest
from fair_envs.core import randomness
from fair_envs.envs.harvest.rules import STAY, USE
from fair_envs.faces.focal import RandomPartners
from fair_envs.faces.window import Window
from fair_envs.support.aliases import Floats
from tests.helpers import assert_same, play_single

HORIZON = 7


def everyone_uses(observation: NDArray[Any], uniform: Floats) -> NDArray[Any]:
    """Return the action USE for each agent, whatever it sees."""
    return np.full(len(uniform), USE)


def focal(**keywords: Any) -> harvest.Env:
    return harvest.Env(control="focal", horizon=HORIZON, **keywords)


def test_one_controller_plays_all_agents() -> None:
    env = harvest.Env(horizon=HORIZON)
    assert env.observation_space.shape == (400,)
    assert env.action_space == gym.spaces.MultiDiscrete([8] * 40)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.full(40, USE))
    assert reward == info["agent_reward"].mean() > 0
    assert (info["fair_outcome"] == info["agent_reward"]).all()


def test_every_episode_of_a_seed_begins_elsewhere() -> None:
    env = harvest.Env()
    starts = [env.reset(seed=0)[0].tobytes(), *(env.reset()[0].tobytes() for _ in range(4))]
    assert len(set(starts)) == 5


def test_other_kinds_of_integers_and_lists_are_actions_too() -> None:
    results = []
    for action in ([USE] * 40, np.full(40, USE, np.uint8), np.full((40,), USE, np.int32), (USE,) * 40):
        env = harvest.Env(horizon=HORIZON)
        env.reset(seed=0)
        results.append(env.step(action))
    for result in results[1:]:
        assert_same(result, results[0])


def test_actions_that_cannot_be_written_are_read_and_stay_as_they_came() -> None:
    env = harvest.Env(horizon=HORIZON)
    env.reset(seed=0)
    action = np.full(40, USE)
    action.flags.writeable = False
    env.step(action)
    assert (action == USE).all()


# ----------------------------------------------------------------------------------------------- focal control


def test_under_focal_control_one_agent_is_played() -> None:
    joint, one = harvest.Env(horizon=HORIZON), focal(focal="agent_3", others=everyone_uses)
    assert one.observation_space.shape == (10,) and one.action_space == gym.spaces.Discrete(8)
    assert one.focal_agent == 3 and joint.focal_agent is None
    seen, other = joint.reset(seed=0)[0].reshape(40, 10), one.reset(seed=0)[0]
    assert_same(other, seen[3])
    for _ in range(HORIZON):
        action = np.full(40, USE)
        action[3] = STAY
        whole, part = joint.step(action), one.step(STAY)
        assert_same(part[0], whole[0].reshape(40, 10)[3])
        assert part[1] == whole[4]["agent_reward"][3]
        assert_same(part[2:], whole[2:])


def test_partners_see_all_observations_and_one_uniform_number_each() -> None:
    seen = []

    def remember(observation: NDArray[Any], uniform: Floats) -> NDArray[Any]:
        seen.append((observation.copy(), uniform.copy()))
        observation[:] = 0  # whatever partners do to it
        return np.zeros(40, int)

    joint, one = harvest.Env(horizon=HORIZON), focal(others=remember)
    first = joint.reset(seed=0)[0].reshape(40, 10)
    one.reset(seed=0)[0][:] = 0.5  # whatever the controller does to its own
    second = joint.step(np.zeros(40, int))[0].reshape(40, 10)
    assert_same(one.step(STAY)[0], second[0])
    one.step(STAY)
    key = one.lanes.records["key"][0]
    for time, (observation, uniform) in enumerate(seen):
        assert_same(observation, (first, second)[time])
        assert uniform.tolist() == [randomness.uniform(key, time, randomness.POLICY, agent) for agent in range(40)]


def test_random_partners_take_every_action_as_often() -> None:
    chosen = RandomPartners(focal().lanes.rules)(np.zeros(0), np.linspace(0, 1, 800, endpoint=False))
    assert np.bincount(chosen).tolist() == [100] * 8


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-0.3, 7.1), (0.0, 1e-3)])
def test_random_partners_draw_each_number_of_a_box_uniformly(low: float, high: float) -> None:
    space = gym.spaces.Box(low, high, (3,), np.float32)
    uniform = np.random.default_rng(0).random(500)
    chosen = RandomPartners(focal().lanes.rules, space=space)(np.zeros(0), uniform)
    draws = (np.random.default_rng(int(number * 2**53)) for number in uniform)
    assert_same(chosen, np.stack([rng.uniform(space.low, space.high) for rng in draws]).astype(np.float32))
    endless = RandomPartners(focal().lanes.rules, space=gym.spaces.Box(0, np.inf, (3,)))
    with pytest.raises(ValueError, match="others='random' needs discrete or bounded actions, got Box"):
        endless(np.zeros(0), uniform)


def test_random_partners_meet_the_same_luck_whatever_the_focal_agent_does() -> None:
    one, other = focal(), focal()
    for env in (one, other):
        env.reset(seed=4)
    done = [(one.step(STAY)[4], other.step(USE)[4]) for _ in range(HORIZON)]
    chosen = [(a["fair_action"][4:], b["fair_action"][4:]) for a, b in done]
    assert np.mean([(a == b).mean() for a, b in chosen]) > 0.9


def test_partners_are_found_by_their_import_path() -> None:
    named = focal(others="tests.faces.test_single:everyone_uses")
    given = focal(others=everyone_uses)
    assert_same(play_single(named, seed=4, steps=HORIZON), play_single(given, seed=4, steps=HORIZON))


@pytest.mark.parametrize(
    "others", ["clever", "no.such.module:policy", "fair_envs.core:no_such_policy", "a:b:c", 3, None]
)
def test_partners_that_are_not_there_are_refused(others: Any) -> None:
    with pytest.raises(ValueError, match="others must be 'random', a function or 'module:function', got"):
        focal(others=others)


@pytest.mark.parametrize("name", ["agent_40", "agent_-1", "0", 0, None])
def test_an_unknown_focal_agent_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="focal must be one of agent_0 to agent_39, got"):
        focal(focal=name)


def test_an_unknown_kind_of_control_is_refused() -> None:
    with pytest.raises(ValueError, match="control must be 'joint' or 'focal', got 'both'"):
        harvest.Env(control="both")  # type: ignore[arg-type]


def test_partners_that_leave_the_action_space_are_refused_and_change_nothing() -> None:
    env = focal(others=lambda observation, uniform: np.full(40, 8))
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match="action must be between 0 and 7, got 8"):
        env.step(STAY)
    assert_same(env.get_state(), before)


def test_a_focal_agent_without_a_turn_is_told_so() -> None:
    env = focal(focal="agent_2")  # carries the attribute
    env.reset(seed=0)
    assert env.step(USE)[4]["fair_action"][2] == -1


# ------------------------------------------------------------------------------------------------------ the rest


def test_drawing_without_a_mode_warns_and_returns_nothing() -> None:
    env = harvest.Env()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_the_rate_of_the_renderer_is_the_rules() -> None:
    assert harvest.Env().metadata["render_fps"] == harvest.Env.rules.fps


def test_a_state_tells_whether_the_episode_is_over() -> None:
    env = harvest.Env(horizon=1)
    env.reset(seed=0)
    running = env.get_state()
    env.step(np.zeros(40, int))
    over = env.get_state()
    env.set_state(running)
    env.step(np.zeros(40, int))
    env.reset()
    env.set_state(over)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros(40, int))


def test_a_state_of_other_rules_is_refused_and_changes_nothing() -> None:
    env = harvest.Env()
    env.reset(seed=0)
    before = env.get_state()
    other = harvest.Env(width=4, height=3, agents=2, red_bushes=2, blue_bushes=1)
    other.reset(seed=0)
    with pytest.raises(ValueError, match="snapshot must be a record array of these rules' lanes"):
        env.set_state(other.get_state())
    assert_same(env.get_state(), before)


def test_a_window_shows_frames_at_their_rate(real_wait: Callable[[Window], None]) -> None:
    pytest.importorskip("pygame")
    window, began = Window(title="frames", fps=50), perf_counter()
    for _ in range(3):
        window.show(np.zeros((4, 6, 3), np.uint8))
        real_wait(window)
    window.close()
    assert perf_counter() - began > 0.03  # two waits of 20 ms or more, and a clock of whole milliseconds
