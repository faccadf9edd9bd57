"""The PettingZoo face: agents by name, all at once or in turns."""

from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box

import fair_envs.envs.harvest as harvest
from fair_envs.envs.harvest.rules import STAY, USE
from tests.helpers import assert_same

HORIZON = 4
NAMES = [f"agent_{i}" for i in range(40)]


def agents(**keywords: Any) -> harvest.Parallel:
    return harvest.parallel_env(horizon=HORIZON, **keywords)  # type: ignore[return-value]


def all_take(action: int) -> dict[str, int]:
    return dict.fromkeys(NAMES, action)


def test_agents_act_by_name_in_whatever_order_they_are_listed() -> None:
    one, other = agents(), agents()
    for env in (one, other):
        env.reset(seed=0)
    actions = {name: i % 8 for i, name in enumerate(NAMES)}
    assert_same(other.step(dict(reversed(actions.items()))), one.step(actions))


def test_rewards_are_each_agents_own() -> None:
    env = agents()
    env.reset(seed=0)
    _, rewards, _, _, infos = env.step(all_take(USE))
    assert all(type(reward) is float for reward in rewards.values())
    assert {name: float(info["fair_outcome"]) for name, info in infos.items()} == rewards
    assert sum(rewards.values()) > 0


def test_agents_leave_together_at_the_end() -> None:
    env = agents()
    env.reset(seed=0)
    assert env.agents == NAMES
    for time in range(HORIZON):
        assert env.agents == NAMES
        *_, truncated, _ = env.step(all_take(STAY))
        assert set(truncated.values()) == {time == HORIZON - 1}
    assert env.agents == []
    env.reset()
    assert env.agents == NAMES
    env.agents.remove("agent_0")  # whoever meddles with the list
    env.reset()
    assert env.agents == env.possible_agents == NAMES


def test_a_state_tells_whether_agents_are_there() -> None:
    env = agents()
    env.reset(seed=0)
    running = env.get_state()
    for _ in range(HORIZON):
        env.step(all_take(STAY))
    over = env.get_state()
    env.set_state(running)
    assert env.agents == NAMES
    env.set_state(over)
    assert env.agents == []


def test_the_state_is_all_observations_one_after_another() -> None:
    env = agents()
    seen, _ = env.reset(seed=0)
    assert_same(env.state(), np.concatenate([seen[name] for name in NAMES]))
    seen = env.step(all_take(USE))[0]
    state = env.state()
    assert_same(state, np.concatenate([seen[name] for name in NAMES]))
    assert isinstance(env.state_space, Box) and env.state_space.contains(state)
    state[:] = -1
    seen["agent_0"][:] = -1
    assert (env.state() >= 0).all()


def test_probabilities_are_reported_by_name() -> None:
    env = agents()
    env.reset(seed=0)
    probs = {name: np.eye(8)[i % 8] for i, name in enumerate(NAMES)}
    env.report_action_probs(dict(reversed(probs.items())))
    infos = env.step(all_take(STAY))[4]
    assert [int(infos[name]["fair_action_probs"].argmax()) for name in NAMES] == [i % 8 for i in range(40)]
    with pytest.raises(ValueError, match="must have one entry for each living agent; missing or unknown: "):
        env.report_action_probs({"agent_0": np.eye(8)[0]})


def test_reported_probabilities_do_not_outlast_the_episode() -> None:
    env = agents()
    env.reset(seed=0)
    env.report_action_probs(dict.fromkeys(NAMES, np.eye(8)[3]))
    infos = [env.reset()[1], env.step(all_take(STAY))[4]]
    assert not any(info["fair_action_probs"].any() for told in infos for info in told.values())


def test_each_agent_samples_actions_of_its_own() -> None:
    env = agents()
    for i, name in enumerate(NAMES):
        env.action_space(name).seed(i)
    samples = {name: tuple(env.action_space(name).sample() for _ in range(10)) for name in NAMES}
    assert len(set(samples.values())) > 30


def test_taking_turns_gives_the_same_episode() -> None:
    many, asked = agents(), harvest.env(horizon=HORIZON)
    many.reset(seed=0)
    asked.reset(seed=0)
    earned = dict.fromkeys(NAMES, 0.0)
    for time in range(HORIZON):
        seen, rewards, _, _, infos = many.step(all_take((USE, STAY)[time % 2]))
        for name in asked.agents:
            assert asked.agent_selection == name
            asked.step((USE, STAY)[time % 2])
            earned[name] += rewards[name]
        for name in NAMES:
            assert_same(asked.observe(name), seen[name])
            assert_same(asked.infos[name], infos[name])
    assert all(asked.truncations.values())
    assert sum(earned.values()) > 0


def test_the_name_and_modes_are_announced() -> None:
    env = agents()
    assert env.metadata["name"] == "fair_harvest_v0"
    assert env.metadata["is_parallelizable"] is True
    assert env.metadata["render_modes"] == ["human", "rgb_array", "ansi"]
    assert str(harvest.env()) == "fair_harvest_v0"


def test_the_module_offers_what_pettingzoos_modules_do() -> None:
    assert harvest.raw_env().unwrapped.lanes.agents == harvest.env().unwrapped.lanes.agents == 40
    with pytest.raises(TypeError, match="horizon"):
        harvest.env(horizn=3)


def test_an_agent_that_is_over_takes_no_action_and_the_others_go_on() -> None:
    env = harvest.raw_env(horizon=1)
    with pytest.raises(ResetNeeded, match="step must follow a reset"):
        env.step(STAY)
    env.reset(seed=0)
    for _ in NAMES:
        env.step(STAY)
    with pytest.raises(ValueError, match="action must be None for agent_0, which is done, got 3"):
        env.step(3)
    for _ in NAMES:
        env.step(None)
    assert env.agents == []


def test_probabilities_of_uneven_length_are_refused_by_name() -> None:
    env = agents()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action_probs must be numbers of shape \(40, 8\)"):
        env.report_action_probs({name: [1.0] * (1 + (name == "agent_3")) for name in NAMES})


@pytest.mark.parametrize("action", [99, -1, "up", None, 2.5])
def test_a_bad_turn_is_refused_at_once_and_the_episode_goes_on(action: Any) -> None:
    turns = harvest.env(horizon=HORIZON)
    turns.reset(seed=0)
    with pytest.raises(ValueError, match="action must"):
        turns.step(action)
    assert turns.agent_selection == "agent_0"
    for _ in NAMES:
        turns.step(STAY)
    assert turns.unwrapped.lanes.records["time"][0] == 1


@pytest.mark.parametrize(
    ("action", "wrong"),
    [
        (99, "action must be between 0 and 7, got 99"),
        ([1], r"action must have shape \(\), got \(1,\)"),
        (None, "action must hold integers, got object"),
        (2.5, "action must hold integers, got float64"),
    ],
)
def test_the_agent_whose_action_is_wrong_is_named(action: Any, wrong: str) -> None:
    env = agents()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=f"^agent_3: {wrong}"):
        env.step(dict.fromkeys(NAMES, STAY) | {"agent_3": action})
    assert env.lanes.records["time"][0] == 0
