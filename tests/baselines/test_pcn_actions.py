"""Conditioned networks with every kind of action: choices of several entries, and numbers in bins."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

pytest.importorskip("moocore")

from fair_envs.baselines.pcn.actions import choices_of
from fair_envs.baselines.pcn.pcn import PCN, PCNSettings
from fair_envs.baselines.pcn.rollouts import Random, vector_reward
from tests.helpers import earned

th.set_num_threads(1)

QUICK: dict[str, Any] = {"first_episodes": 30, "updates": 30, "batch_size": 64, "learning_rate": 0.01}


class OneStep(gym.vector.VectorEnv[Any, Any, Any]):
    """Episodes of one step, whose rewards are a function of the action."""

    def __init__(self, space: gym.Space[Any], rewards: Callable[[NDArray[Any]], Any], *, lanes: int = 5) -> None:
        self.num_envs, self._rewards = lanes, rewards
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = Box(0, 1, (1,), np.float32), space
        self.observation_space = batch_space(self.single_observation_space, lanes)
        self.action_space = batch_space(space, lanes)
        self.reward_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.actions: list[NDArray[Any]] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((self.num_envs, 1), np.float32), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        assert self.action_space.contains(actions)
        self.actions.append(actions)
        rewards = np.stack(self._rewards(actions), axis=-1).astype(np.float32)
        over, no = np.ones(self.num_envs, bool), np.zeros(self.num_envs, bool)
        return np.zeros((self.num_envs, 1), np.float32), rewards, over, no, {}


def two_entries(lanes: int = 5) -> OneStep:
    """Return a world in which the first entry decides between the objectives and the second one wastes."""
    return OneStep(
        MultiDiscrete([2, 4]), lambda a: (10.0 * a[:, 0] - a[:, 1], 10.0 - 10 * a[:, 0] - a[:, 1]), lanes=lanes
    )


def learner(env: Any, **settings: Any) -> PCN:
    return PCN(env, settings=PCNSettings(**{**QUICK, **settings}), seed=0)


# ------------------------------------------------------------------------------------------------------ choices


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Discrete(3), [0, 1, 2]),
        (Discrete(3, start=-1), [-1, 0, 1]),
        (Box(-1, 3, (1,), np.float32), [[-1], [0], [1], [2], [3]]),
        (Box(0, 2, (1,), np.int64), [[0], [1], [2]]),  # 5 bins would repeat some
        (MultiDiscrete([2, 3], start=[0, 5]), [[0, 5], [0, 6], [0, 7], [1, 5], [1, 6], [1, 7]]),
    ],
)
def test_each_choice_is_an_action_of_the_space_and_is_found_again(space: Any, expected: Any) -> None:
    choices = choices_of(space, bins=5)
    numbers = np.indices([int(row.sum()) for row in choices.possible]).reshape(len(choices.possible), -1).T
    numbers = numbers if choices.several else numbers[:, 0]
    actions = choices.action(numbers)
    assert actions.tolist() == expected
    assert all(space.contains(action) for action in actions)
    assert np.array_equal(choices.choice(actions), numbers)


def test_a_box_has_eleven_bins_by_default_whose_ends_are_its_bounds() -> None:
    values = choices_of(Box(0.1, 0.7, (1,), np.float32)).values[0]
    assert len(values) == 11
    assert (values[0], values[-1]) == (np.float32(0.1), np.float32(0.7))


@pytest.mark.parametrize(
    ("space", "why"),
    [
        (Box(0, 1, (2,)), "is a Box with 2 entries instead of one; use a method for continuous actions instead, such"),
        (Box(0, np.inf, (1,)), "is a Box without finite bounds"),
        (gym.spaces.MultiBinary(2), "is neither a Discrete, nor a MultiDiscrete with one axis, nor a Box"),
    ],
)
def test_actions_that_cannot_be_listed_are_refused_at_construction(space: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"env must have actions that can be listed, got .*{why}"):
        learner(OneStep(space, lambda a: (a, a)))


# -------------------------------------------------------------------------------------------------- several entries


def test_the_log_probability_of_several_entries_is_the_sum_over_the_entries() -> None:
    model = learner(two_entries())
    model.iterate()
    rng = np.random.default_rng(0)
    observations, commands = th.zeros(7, 1), th.as_tensor(rng.normal(size=(7, 3)), dtype=th.float32)
    actions = th.from_numpy(rng.integers([2, 4], size=(7, 2)))
    with th.no_grad():
        loss = model._backward(observations, commands, actions)
    found = [parameter.grad.clone() for parameter in model.network.parameters()]  # type: ignore[union-attr]
    logits = model.network(observations, commands).reshape(7, 2, 4)
    sizes = [2, 4]
    logarithms = [
        th.log_softmax(logits[:, k, :size], dim=1)[th.arange(7), actions[:, k]] for k, size in enumerate(sizes)
    ]
    expected = -th.stack(logarithms).sum(dim=0).mean()
    assert loss.item() == pytest.approx(expected.item())
    for own, wanted in zip(found, th.autograd.grad(expected, list(model.network.parameters())), strict=True):
        assert own.numpy() == pytest.approx(wanted.numpy(), abs=1e-6)


def test_values_that_an_entry_does_not_have_are_never_chosen() -> None:
    env = two_entries(3)
    model = learner(env).learn(200)
    assert {action[0] for actions in env.actions for action in actions.tolist()} == {0, 1}
    found = model.action_probabilities(np.zeros((2, 1)), (0, 0), 1)
    assert found.shape == (2, 2, 4)
    assert found.sum(axis=2) == pytest.approx(1)
    assert not found[:, 0, 2:].any()
    assert Random(env).probabilities(np.zeros((3, 1, 1)))[0, 0].tolist() == [[0.5, 0.5, 0, 0], [0.25] * 4]


def test_both_ends_of_a_front_over_several_entries_are_learned() -> None:
    model = learner(two_entries()).learn(600)
    assert [command.desired_return.tolist() for command in model.commands()] == [[0, 10], [10, 0]]
    for command, action in zip(model.commands(), ([0, 0], [1, 0]), strict=True):
        assert model.predict(np.zeros(1), command.desired_return, command.horizon).tolist() == action


# -------------------------------------------------------------------------------------------------------- numbers


def test_a_number_is_chosen_among_the_bins() -> None:
    env = OneStep(Box(0, 1, (1,), np.float32), lambda a: (a[:, 0], 1 - a[:, 0] ** 2))
    model = learner(env, bins=3).learn(600)
    assert {value for actions in env.actions for value in actions.ravel().tolist()} == {0, 0.5, 1}
    assert [command.desired_return.tolist() for command in model.commands()] == [[0, 1], [0.5, 0.75], [1, 0]]
    for command in model.commands():
        action = model.predict(np.zeros(1), command.desired_return, command.horizon)
        assert action.tolist() == [command.desired_return[0]]


def test_a_saved_learner_with_bins_goes_on_to_the_bit(tmp_path: Any) -> None:
    def env() -> OneStep:
        return OneStep(Box(0, 1, (1,), np.float32), lambda a: (a[:, 0], 1 - a[:, 0] ** 2))

    part = learner(env(), bins=4).learn(200)
    part.save(tmp_path / "model.pt")
    other = PCN.load(tmp_path / "model.pt", env())
    for one, two in zip(part.learn(300).network.parameters(), other.learn(300).network.parameters(), strict=True):
        assert th.equal(one, two)


def test_undefined_rewards_count_as_0() -> None:
    assert vector_reward(earned([[np.nan, 1.0], [2.0, -np.inf]], [True, True])).tolist() == [[0, 1], [2, -np.inf]]
