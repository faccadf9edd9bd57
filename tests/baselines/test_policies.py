"""The policy with separate networks for the groups."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th

from fair_envs.baselines.ppo.policies import GroupedPolicy
from tests.baselines.small import learner, rollouts

WIDTH = 3  # of what the networks see
SPACE = gym.spaces.Box(np.zeros(WIDTH + 1), np.array([*np.ones(WIDTH), 1]), dtype=np.float64)


def make_policy(space: gym.Space[Any] = SPACE, actions: gym.Space[Any] | None = None, **settings: Any) -> GroupedPolicy:
    th.manual_seed(0)
    actions = gym.spaces.Discrete(4) if actions is None else actions
    return GroupedPolicy(space, actions, lambda _: 1e-3, net_arch=[8], **settings)  # type: ignore[arg-type]


def observations(groups: list[int]) -> th.Tensor:
    seen = th.rand((len(groups), WIDTH), generator=th.Generator().manual_seed(1))
    return th.cat([seen, th.tensor(groups, dtype=th.float32)[:, None]], dim=1)


MIXED = [1, 0, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("groups", [MIXED, [0, 0, 0], [1, 1]])
def test_each_row_is_answered_in_its_place_by_the_networks_of_its_group(groups: list[int]) -> None:
    policy, obs = make_policy(), observations(groups)
    actions = th.arange(len(groups)) % 4
    values, log_prob, entropy = policy.evaluate_actions(obs, actions)
    probabilities, expected = policy.action_probabilities(obs), policy.predict_values(obs)
    assert entropy is not None
    for row, group in enumerate(groups):
        member: Any = policy.members[group]
        own = member.evaluate_actions(obs[row : row + 1, :-1], actions[row : row + 1])
        answers = (values[row], log_prob[row], entropy[row], expected[row], probabilities[row, actions[row]])
        for answer, wanted in zip(answers, (*own, own[0], own[1].exp()), strict=True):
            th.testing.assert_close(answer.flatten(), wanted.flatten())


def test_the_networks_do_not_see_the_group() -> None:
    policy = make_policy()
    member: Any = policy.members[0]
    assert member.observation_space.shape == (WIDTH,)
    assert next(member.mlp_extractor.policy_net.parameters()).shape[1] == WIDTH


def test_the_groups_begin_with_different_networks() -> None:
    policy, obs = make_policy(), observations([0, 1])
    obs[1, :-1] = obs[0, :-1]
    values = policy.predict_values(obs)
    assert values[0] != values[1]


@pytest.mark.parametrize("group", [0, 1])
def test_a_groups_gradient_comes_from_its_own_samples_alone(group: int) -> None:
    policy, obs = make_policy(), observations(MIXED)
    values, log_prob, entropy = policy.evaluate_actions(obs, th.zeros(len(MIXED), dtype=th.long))
    assert entropy is not None
    own = obs[:, -1] == group
    (values[own].sum() + log_prob[own].sum() + entropy[own].sum()).backward()  # type: ignore[no-untyped-call]
    for g, member in enumerate(policy.members):
        total = sum(0.0 if p.grad is None else float(p.grad.abs().sum()) for p in member.parameters())
        assert (total > 0) == (g == group)


def test_a_sampled_action_has_the_log_probability_that_is_told() -> None:
    policy, obs = make_policy(), observations(MIXED)
    actions, values, log_prob = policy(obs)
    again = policy.evaluate_actions(obs, actions)
    th.testing.assert_close(again[0], values)
    th.testing.assert_close(again[1], log_prob)
    most_probable = policy.forward(obs, deterministic=True)[0]
    assert most_probable.tolist() == policy.action_probabilities(obs).argmax(1).tolist()


@pytest.mark.parametrize("strange", [0.5, 2.0, -1.0])
def test_an_observation_that_ends_with_no_group_is_refused(strange: float) -> None:
    obs = observations([0, 1])
    obs[1, -1] = strange
    with pytest.raises(ValueError, match=f"obs must end with the group, 0 to 1, not normalised, got {strange:g}"):
        make_policy().forward(obs)


@pytest.mark.parametrize(
    "space",
    [gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(3), gym.spaces.MultiDiscrete([2, 3])],
    ids=["box", "discrete", "several"],
)
def test_the_distribution_of_all_groups_is_that_of_which_actions_are_drawn(space: gym.Space[Any]) -> None:
    policy = make_policy(actions=space)
    actions, _, log_prob = policy(observations(MIXED))
    found = policy.get_distribution(observations(MIXED))
    th.testing.assert_close(found.log_prob(actions), log_prob)
    th.testing.assert_close(found.entropy(), policy.evaluate_actions(observations(MIXED), actions)[2])


def test_bad_spaces_and_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="observation_space must be a vector that ends with the group"):
        make_policy(gym.spaces.Box(0, 1, (2, 2)))
    with pytest.raises(ValueError, match="use_sde must be False"):
        make_policy(use_sde=True)


def test_it_works_with_the_unchanged_ppo_of_stable_baselines3(tmp_path: Path) -> None:
    model = learner(sb3.PPO)
    model.learn(rollouts(model, 2))
    obs = model.env.reset()
    model.save(tmp_path / "model.zip")
    loaded = sb3.PPO.load(tmp_path / "model.zip", device="cpu")
    assert isinstance(loaded.policy, GroupedPolicy)
    assert np.array_equal(model.predict(obs, deterministic=True)[0], loaded.predict(obs, deterministic=True)[0])
    values: list[Any] = [m.policy.predict_values(th.as_tensor(obs)) for m in (model, loaded)]
    assert th.equal(*values)
