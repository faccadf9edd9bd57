"""Agents that leave before the others: what each face says of them, and what it takes from those who are left."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.core import Lanes, Worlds
from fair_envs.wrappers import FairnessPenalty, FenReward, RecordFairness, ReportActionMasks, SocialReward
from tests.leavers import Env, Leavers, Parallel, Vector

# Seed 0: agent 0 leaves with the first step, agent 1 with the second; seed 1: a step later each. Agent 2 stays.


def test_lanes_say_who_is_left() -> None:
    lanes = Lanes(Leavers(), 2)
    lanes.seed(0)
    lanes.restart()
    assert lanes.active().all()
    lanes.advance(np.zeros((2, 3), np.int64))
    assert lanes.active().tolist() == [[False, True, True], [True, True, True]]
    kept = lanes.active()
    lanes.advance(np.zeros((2, 3), np.int64))
    assert kept.tolist() == [[False, True, True], [True, True, True]]


def test_worlds_say_who_is_left_in_each() -> None:
    worlds = Worlds([Leavers(), Leavers(horizon=9)], 1)
    worlds.seed(0)
    worlds.restart()
    worlds.advance(np.zeros((2, 3), np.int64))
    assert worlds.active().tolist() == [[False, True, True]] * 2


def test_agents_drop_out_after_the_step_in_which_they_leave() -> None:
    env = Parallel()
    env.reset(seed=0)
    _, rewards, ends, cuts, infos = env.step({"agent_0": 1, "agent_1": 0, "agent_2": 2})
    assert rewards == {"agent_0": 2, "agent_1": 1, "agent_2": 3}
    assert ends == {"agent_0": True, "agent_1": False, "agent_2": False} and not any(cuts.values())
    assert infos["agent_0"]["fair_action"] == 1 and infos["agent_0"]["fair_individual"] == 0
    assert env.agents == ["agent_1", "agent_2"]
    for wrong in ({"agent_2": 0}, {"agent_1": 0, "agent_2": 0, "agent_9": 0}):
        with pytest.raises(ValueError, match=r"one entry for each living agent; missing or unknown: \['agent_[19]'\]"):
            env.step(wrong)
    seen, *_ = env.step({"agent_0": -99, "agent_1": 0, "agent_2": 0})  # what who has left does is ignored
    assert list(seen) == ["agent_1", "agent_2"] and env.agents == ["agent_2"]
    assert env.state().tolist() == [0, 0, 0, 0, 3, 2]
    env.reset()
    assert len(env.agents) == 3


def test_at_the_horizon_everyone_is_cut_off_and_who_leaves_also_terminates() -> None:
    env = Parallel(horizon=2)
    env.reset(seed=0)
    env.step(dict.fromkeys(env.agents, 0))
    _, _, ends, cuts, _ = env.step(dict.fromkeys(env.agents, 0))
    assert ends == {"agent_1": True, "agent_2": False} and all(cuts.values())  # some libraries ask whether all are
    assert env.agents == []


def test_a_state_tells_who_is_left() -> None:
    env, other = Parallel(), Parallel()
    env.reset(seed=0)
    env.step(dict.fromkeys(env.agents, 0))
    other.reset(seed=5)
    seen = other.set_state(env.get_state())
    assert other.agents == ["agent_1", "agent_2"] and list(seen) == other.agents


def test_action_probabilities_are_those_of_who_is_left() -> None:
    env = Parallel()
    env.reset(seed=0)
    env.step(dict.fromkeys(env.agents, 0))
    with pytest.raises(ValueError, match=r"one entry for each living agent; missing or unknown: \['agent_2'\]"):
        env.report_action_probs({"agent_1": [0.5, 0.5]})
    env.report_action_probs({name: [0.25, 0.75] for name in env.possible_agents})
    *_, infos = env.step(dict.fromkeys(env.agents, 0))
    assert infos["agent_1"]["fair_action_probs"].tolist() == [0.25, 0.75]


def test_a_controller_is_told_who_is_left_and_what_others_do_makes_no_difference() -> None:
    one, other = Env(), Env()
    for env in (one, other):
        assert env.reset(seed=0)[1]["agent_active"].tolist() == [1, 1, 1]
        assert env.step([0, 0, 0])[4]["agent_active"].tolist() == [0, 1, 1]
    played, again = one.step([0, 1, 1]), other.step([2, 1, 1])
    assert played[1] == again[1] == 4 / 3
    assert played[4]["agent_reward"].tolist() == [0, 2, 2]
    assert played[4]["fair_individual"].tolist() == [-1, 1, 2] and played[4]["fair_action"].tolist() == [-1, 1, 1]


def test_the_episode_of_a_focal_agent_ends_when_it_leaves() -> None:
    env = Env(control="focal", focal="agent_1")
    env.reset(seed=0)
    assert env.step(0)[2:4] == (False, False)
    assert env.step(0)[2:4] == (True, False)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset()
    assert env.step(0)[2:4] == (False, False)


def test_at_the_horizon_a_focal_agent_that_leaves_terminates() -> None:
    env = Env(control="focal", focal="agent_1", horizon=2)
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2:4] == (True, False)


@pytest.mark.parametrize(("mode", "after"), [("NextStep", [0, 0, 1]), ("SameStep", [1, 1, 1])])
def test_a_batch_says_who_is_left_in_the_episodes_that_its_observations_are_of(mode: str, after: Any) -> None:
    env = Vector(2, horizon=2, autoreset_mode=mode)
    assert env.reset(seed=0)[1]["agent_active"].all()
    joint = np.zeros((2, 3), np.int64)
    assert env.step(joint)[4]["agent_active"].tolist() == [[0, 1, 1], [1, 1, 1]]
    info = env.step(joint)[4]
    assert info["agent_active"][0].tolist() == after
    if mode == "SameStep":
        assert info["final_info"]["agent_active"].tolist() == [[0, 0, 1], [0, 1, 1]]


def test_rows_say_who_acts_in_the_next_step() -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.faces.sb3 import AgentsVecEnv

    env = AgentsVecEnv(Leavers(horizon=2), 2)
    env.seed(0)
    env.reset()
    assert env.active.all()
    _, rewards, dones, _ = env.step(np.ones(6, np.int64))
    assert env.active.tolist() == [[False, True, True], [True, True, True]] and not dones.any()
    seen, rewards, dones, _ = env.step(np.ones(6, np.int64))
    assert rewards.tolist() == [0, 2, 2, 2, 2, 2] and dones.all() and env.active.all()
    assert np.asarray(seen)[:, 0].tolist() == [1, 2, 3, 1, 2, 3]


def test_rows_that_are_reset_in_mid_episode_have_everybody_back() -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.faces.sb3 import AgentsVecEnv

    env = AgentsVecEnv(Leavers(), 2)
    env.seed(0)
    env.reset()
    env.step(np.zeros(6, np.int64))
    assert not env.active.all()
    env.reset()
    assert env.active.all()


def test_ppo_learns_nothing_from_what_agents_do_that_have_left() -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.baselines.ppo.ppo import PPO
    from fair_envs.faces.sb3 import AgentsVecEnv

    env = AgentsVecEnv(Leavers(horizon=8), 2)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, n_epochs=1, seed=0, device="cpu")
    model.learn(48)
    turns = model.rollout_buffer.had_turn.reshape(8, 2, 3)
    left = [[(8 - turns[:, lane, agent].sum()) for agent in range(3)] for lane in range(2)]
    assert sorted(map(tuple, left)) == [(6, 5, 0), (7, 6, 0)]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: SocialReward(env, envy=0.5),
        lambda env: RecordFairness(SocialReward(env, guilt=0.2), measures=["outcome_parity"]),
        ReportActionMasks,
        lambda env: FairnessPenalty(env, alpha=1.0),
        lambda env: ReportActionMasks(FenReward(env, largest=3.0)),
    ],
)
def test_wrappers_give_those_who_are_left_the_same_in_pettingzoo_as_in_the_joint_interface(wrap: Any) -> None:
    joint, agents = wrap(Env(horizon=5)), wrap(Parallel(horizon=5))
    _, info = joint.reset(seed=0)
    _, infos = agents.reset(seed=0)
    numbers: list[int] = []
    for time in range(5):
        if time:
            numbers.append(len(agents.agents))
        action = (np.arange(3) + time) % 3
        observation, _, _, _, info = joint.step(action)
        observations, rewards, _, _, infos = agents.step({name: action[int(name[-1])] for name in agents.agents})
        for name, reward in rewards.items():
            place = int(name[-1])
            assert reward == pytest.approx(info["agent_reward"][place])
            assert np.array_equal(observations[name], observation.reshape(3, -1)[place])
            for key in {*infos[name]} & {"action_mask", "fair_episode_return"}:
                assert np.array_equal(infos[name][key], info[key][place])
    assert numbers == [2, 1, 1, 1] and not agents.agents
