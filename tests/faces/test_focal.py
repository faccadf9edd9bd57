"""Focal control in batches: a batch is its single environments, in each autoreset mode."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from fair_envs.metrics import Full
from fair_envs.wrappers import FairnessPenalty
from tests.helpers import assert_same
from tests.leavers import Env, Vector

IDS = ["FairHarvest-v0", "FairPursuit-v0", "FairTraffic-v0"]
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]
LANES = 3


def both(env_id: str, mode: AutoresetMode, **given: Any) -> tuple[Any, Any]:
    """Return a batch, and Gymnasium's batch of the single environments."""
    given = {"num_envs": LANES, "control": "focal", "focal": "agent_1", **given}
    native = gym.make_vec(env_id, autoreset_mode=mode, **given)
    return native, gym.make_vec(env_id, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **given)


def same_steps(native: Any, sync: Any, mode: AutoresetMode, *, steps: int) -> int:
    """Play the same actions in two batches, compare everything, and return the number of ends."""
    assert native.single_observation_space == sync.single_observation_space
    assert native.single_action_space == sync.single_action_space
    assert_same(native.reset(seed=5), sync.reset(seed=5))
    native.action_space.seed(0)
    ends = 0
    for _ in range(steps):
        actions = native.action_space.sample()
        one, other = native.step(actions), sync.step(actions)
        assert_same(list(one[:4]), list(other[:4]))
        for name in ("fair_action", "fair_outcome", "agent_reward"):
            assert_same(one[4][name], other[4][name])
        over = one[2] | one[3]
        ends += int(over.sum())
        if mode is AutoresetMode.SAME_STEP:
            for lane in np.flatnonzero(over):
                assert_same(one[4]["final_obs"][lane], other[4]["final_obs"][lane])
        if mode is AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over}
            assert_same(native.reset(options=dict(options))[0], sync.reset(options=dict(options))[0])
    return ends


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", IDS)
def test_a_batch_under_focal_control_is_its_single_environments(env_id: str, mode: AutoresetMode) -> None:
    assert same_steps(*both(env_id, mode, horizon=7), mode, steps=24) >= 2 * LANES


@pytest.mark.parametrize("mode", MODES)
def test_a_lane_ends_when_its_focal_agent_leaves(mode: AutoresetMode) -> None:
    native: Any = Vector(LANES, control="focal", autoreset_mode=mode)
    sync: Any = gym.vector.SyncVectorEnv([lambda: Env(control="focal")] * LANES, autoreset_mode=mode)
    assert same_steps(native, sync, mode, steps=12) > LANES
    native.reset(seed=0)
    terminated = native.step(np.zeros(LANES, np.int64))[2]
    assert terminated.tolist() == [True, False, True]  # with even seeds, agent 0 leaves with the first step
    assert native.lanes.active()[0, 1:].all() or mode is AutoresetMode.SAME_STEP


def test_a_held_lane_whose_focal_agent_has_left_stays_done() -> None:
    env: Any = Vector(LANES, control="focal")
    env.reset(seed=0)
    env.step(np.zeros(LANES, np.int64))
    env.hold(np.array([True, False, False]))
    assert not env.step(np.zeros(LANES, np.int64))[2][0]
    env.step(np.zeros(LANES, np.int64))
    assert env.lanes.records["time"][0] == 0  # it restarts now


def test_an_episode_that_the_focal_agent_has_left_is_not_revived() -> None:
    env: Any = Env(control="focal")
    env.reset(seed=0)
    assert env.step(0)[2]
    other: Any = Env(control="focal")
    other.set_state(env.get_state())
    with pytest.raises(gym.error.ResetNeeded):
        other.step(0)


@pytest.mark.parametrize("mode", MODES)
def test_wrappers_read_the_focal_agents_reward(mode: AutoresetMode) -> None:
    def wrapped(env: Any) -> Any:
        return FairnessPenalty(env, notions="demographic_parity", history=Full(), alpha=2)

    native: Any = wrapped(Vector(LANES, control="focal", focal="agent_2", autoreset_mode=mode))
    plain: Any = Vector(LANES, control="focal", focal="agent_2", autoreset_mode=mode)
    assert_same(native.reset(seed=1)[0], plain.reset(seed=1)[0])
    native.action_space.seed(0)
    for _ in range(3):
        actions = native.action_space.sample()
        one, other = native.step(actions), plain.step(actions)
        assert_same(one[0], other[0])
        assert one[1] == pytest.approx(other[1] - 2 * one[4]["fair_gaps"][:, 0])


def test_vector_rewards_begin_with_the_focal_agents_reward() -> None:
    env: Any = gym.make_vec("mo-FairHarvest-v0", num_envs=2, control="focal", focal="agent_3", horizon=9)
    plain: Any = gym.make_vec("FairHarvest-v0", num_envs=2, control="focal", focal="agent_3", horizon=9)
    env.reset(seed=0), plain.reset(seed=0)
    for action in (1, 4, 5, 6, 0, 6, 6, 6):
        actions = np.full(2, action)
        assert env.step(actions)[1][:, 0].tolist() == plain.step(actions)[1].astype(np.float32).tolist()


def test_the_agent_is_named_as_in_pettingzoo() -> None:
    with pytest.raises(ValueError, match="focal must be one of agent_0 to agent_2, got 'agent_3'"):
        Vector(LANES, control="focal", focal="agent_3")
    with pytest.raises(ValueError, match="control must be 'joint' or 'focal', got 'both'"):
        Vector(LANES, control="both")  # type: ignore[arg-type]
