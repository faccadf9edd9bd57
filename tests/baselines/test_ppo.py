"""PPO is that of Stable-Baselines3 to the bit, and learns from turns that an agent had."""

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from torch.distributions import Distribution

from fair_envs import make_sb3
from fair_envs.baselines.ppo.minibatch import Minibatch
from fair_envs.baselines.ppo.ppo import PPO, Rollout
from fair_envs.envs.harvest.rules import STAY
from tests.baselines.small import (
    ACTORS,
    CRITICS,
    HARVEST,
    NO_IDLE_TURNS,
    SCALE,
    collect,
    gradients,
    learned,
    learner,
    policy_weights,
    rollouts,
    small_env,
    weights,
    whole_batch,
)
from tests.helpers import LITTLE

# ------------------------------------------------------------------------------------- equal to Stable-Baselines3


@pytest.mark.parametrize(
    ("world", "settings"),
    [({}, {"skip_idle": False}), (NO_IDLE_TURNS, {}), (NO_IDLE_TURNS, {"clip_range_vf": 0.1, "target_kl": 0.001})],
)
def test_the_weights_are_those_of_stable_baselines3_to_the_bit(world: dict[str, Any], settings: dict[str, Any]) -> None:
    ours = learned(learner(PPO, small_env(**world), autograd=True, **settings))
    theirs = learned(learner(sb3.PPO, small_env(**world), **{k: v for k, v in settings.items() if k != "skip_idle"}))
    assert np.array_equal(weights(ours), weights(theirs))
    logged, wanted = ours.logger.name_to_value, theirs.logger.name_to_value
    assert {name: logged[name] for name in wanted} == pytest.approx(dict(wanted), rel=1e-5)


def test_skipping_idle_turns_makes_a_difference() -> None:
    models = [learned(learner(PPO, skip_idle=skip)) for skip in (True, False)]
    assert not np.array_equal(policy_weights(models[0]), policy_weights(models[1]))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_it_learns_other_environments_as_stable_baselines3_does(env_id: str) -> None:
    models = []
    for kind in (PPO, sb3.PPO):
        settings: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "seed": 0, "device": "cpu"}
        settings |= {"autograd": True} if kind is PPO else {}
        models.append(kind("MlpPolicy", make_vec_env(env_id, 2), **settings).learn(128))
    assert np.array_equal(weights(models[0]), weights(models[1]))


def test_it_plays_all_agents_of_a_lane_at_once_too() -> None:
    env = make_sb3(HARVEST, n_envs=2, rows="lanes", **LITTLE)
    model = PPO("MlpPolicy", env, n_steps=6, batch_size=12, n_epochs=1, seed=0, device="cpu")
    assert model.learn(12).num_timesteps == 12


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_before_anything_is_played(odd: float) -> None:
    model = learner()
    played = model.learn(12).num_timesteps
    name, diverged = max(model.policy.named_parameters(), key=lambda named: named[1].numel())
    with th.no_grad():
        diverged.view(-1)[1] = odd
    with pytest.raises(ValueError, match=f"policy must have finite weights, got others in {re.escape(name)}: the"):
        model.learn(12, reset_num_timesteps=False)
    assert model.num_timesteps == played


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_what_is_observed_must_be_finite(env_id: str) -> None:
    """What draws numbers from a Gaussian would go on with what is not a number; its arguments stay checked."""

    class Broken(gym.ObservationWrapper[Any, Any, Any]):
        def observation(self, observation: Any) -> Any:
            return np.full_like(observation, np.nan)

    model = PPO("MlpPolicy", Broken(gym.make(env_id)), n_steps=4, batch_size=4, device="cpu")
    with pytest.raises((ValueError, RuntimeError), match="nan"):
        model.learn(4)
    assert model.num_timesteps == 0


@pytest.mark.parametrize("before", [True, False])
def test_torch_checks_the_arguments_of_distributions_afterwards_as_before(before: bool) -> None:
    model, checked = learner(), []
    Distribution.set_default_validate_args(before)

    class Interrupted(BaseCallback):
        def _on_step(self) -> bool:
            checked.append(Distribution._validate_args)
            raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            model.learn(12, callback=Interrupted())
        assert (checked, Distribution._validate_args) == ([False], before)
    finally:
        Distribution.set_default_validate_args(True)


# ------------------------------------------------------------------------------------------------- idle turns


def filled() -> Any:
    """Return a learner with a rollout."""
    model = learner()
    collect(model)
    return model


def with_idle(batch: Minibatch, **changes: th.Tensor) -> Minibatch:
    """Return the minibatch with other entries where idle had a turn."""
    assert batch.had_turn is not None
    idle = ~batch.had_turn
    assert 0.1 < idle.float().mean() < 0.9
    new = {}
    for name, values in changes.items():
        new[name] = getattr(batch, name).clone()
        new[name][idle] = values[idle].to(new[name].dtype)
    return batch._replace(**new)


def test_idle_turns_do_not_touch_the_policy_but_do_touch_the_values() -> None:
    model = filled()
    batch = whole_batch(model)
    noise = th.rand(len(batch.flat_index), generator=th.Generator().manual_seed(3))
    other = with_idle(
        batch,
        actions=((batch.actions[:, 0] + 1) % 8)[:, None],
        advantages=10 * noise,
        old_log_prob=-noise,
        returns=batch.returns + noise,
    )
    for words, same in ((ACTORS, True), (CRITICS, False)):
        one, two = (gradients(model, model._total(model._losses(model._evaluate(b))), of=words) for b in (batch, other))
        assert np.abs(one).max() > 0
        assert np.array_equal(one, two) == same


def test_turns_that_were_not_granted_are_the_idle_ones() -> None:
    model = learner(PPO, small_env(freeze_turns=0))  # idle is frozen
    collect(model)
    buffer = model.rollout_buffer
    time = np.arange(model.n_steps)[:, np.newaxis]
    assert np.array_equal(buffer.had_turn, (buffer.group == 0) | (time % 2 == 1))


def test_a_minibatch_in_which_nobody_had_a_turn_does_no_harm() -> None:
    model = filled()
    batch = whole_batch(model)
    idle = batch._replace(had_turn=th.zeros(len(batch.flat_index), dtype=th.bool))
    model.train()  # so that there is where to record
    critic = policy_weights(model)
    assert model._train_on(idle)
    assert np.isfinite(policy_weights(model)).all()
    assert not np.array_equal(critic, policy_weights(model))
    assert all(np.isfinite(values[-1]) for values in model._records.values())


@pytest.mark.parametrize("rest", [1, 2])
def test_a_last_minibatch_of_one_or_two_samples_does_no_harm(rest: int) -> None:
    model = learner()
    model.batch_size = rollouts(model, 1) - rest
    model.learn(rollouts(model, 4))
    assert np.isfinite(policy_weights(model)).all()


# --------------------------------------------------------------------------- defects of the published code are absent


def test_advantages_run_along_each_agents_own_steps() -> None:
    model = learner()
    buffer = Rollout(
        2, model.observation_space, model.action_space, device="cpu", gamma=0.99, gae_lambda=0.95, n_envs=2
    )
    blank = np.zeros((2, *model.observation_space.shape), np.float32)
    for start in (True, False):
        buffer.add(blank, np.zeros(2), np.array([1.0, 0.0]), np.full(2, start), th.zeros(2, 1), th.zeros(2))
    buffer.compute_returns_and_advantage(th.zeros(2), np.ones(2))
    np.testing.assert_allclose(buffer.advantages, np.array([[1.9405, 0], [1, 0]]), atol=1e-6)


def test_the_time_limit_bootstraps_with_the_value_of_the_last_observation() -> None:
    model = learner(n_steps=12)
    ends: list[np.ndarray[Any, Any]] = []
    step = model.env.step

    def watched(actions: Any) -> Any:
        told = step(actions)
        if told[2].all():
            ends.append(np.stack([info["terminal_observation"] for info in told[3]]))
        return told

    model.env.step = watched
    collect(model)
    buffer = model.rollout_buffer
    (last,) = ends
    with th.no_grad():
        value = model.policy.predict_values(th.as_tensor(last)).numpy().ravel()
    bonus = buffer.rewards - SCALE * buffer.reward
    np.testing.assert_allclose(bonus[:-1], 0, atol=1e-6)
    np.testing.assert_allclose(bonus[-1], model.gamma * value, atol=1e-6)


def test_values_are_fitted_to_returns_as_they_are() -> None:
    model = filled()
    batch = whole_batch(model)
    th.testing.assert_close(batch.returns, batch.advantages + batch.old_values)
    assert th.equal(model._evaluate(batch).value_targets, batch.returns)


def test_minibatches_are_drawn_anew_in_every_epoch_and_hold_every_sample_once() -> None:
    buffer = filled().rollout_buffer
    epochs = [th.cat([batch.flat_index for batch in buffer.get(50)]).tolist() for _ in range(2)]
    everything = list(range(len(epochs[0])))
    assert sorted(epochs[0]) == sorted(epochs[1]) == everything
    assert epochs[0] != epochs[1] and epochs[0] != everything


def test_a_samples_place_finds_what_belongs_to_it() -> None:
    model = filled()
    buffer = model.rollout_buffer
    reward, group = buffer.flat(buffer.reward), buffer.flat(buffer.group)
    observations = buffer.flat(buffer.observations)
    batch = next(iter(buffer.get(50)))
    assert th.equal(observations[batch.flat_index], batch.observations)
    assert th.equal(group[batch.flat_index].float(), batch.observations[:, -1])
    assert len(th.unique(reward)) > 1


def test_the_coefficients_are_those_that_were_given() -> None:
    losses = {}
    for ent_coef, vf_coef in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.3, 0.7)):
        model = learner(ent_coef=ent_coef, vf_coef=vf_coef, gamma=0.5, gae_lambda=0.25)
        collect(model)
        parts = model._losses(model._evaluate(whole_batch(model)))
        losses[ent_coef, vf_coef] = model._total(parts).item()
        expected = parts.policy + ent_coef * parts.negative_entropy + vf_coef * parts.values
        assert losses[ent_coef, vf_coef] == pytest.approx(expected.item())
    assert (model.rollout_buffer.gamma, model.rollout_buffer.gae_lambda) == (0.5, 0.25)
    assert len(set(losses.values())) == 4


def test_rollouts_build_no_graph() -> None:
    model = learner()
    forward, states = model.policy.forward, []

    def watched(obs: th.Tensor) -> Any:
        states.append(th.is_grad_enabled())
        return forward(obs)

    model.policy.forward = watched
    collect(model)
    assert states == [False] * model.n_steps


def test_what_is_stored_is_what_was_executed() -> None:
    model = filled()
    buffer = learner().rollout_buffer
    env, executed = model.env, []
    step = env.step

    def watched(actions: Any) -> Any:
        told = step(actions)
        executed.append(env.interactions["action"].ravel().copy())
        return told

    env.step = watched
    collect(model)
    buffer = model.rollout_buffer
    stored, taken = buffer.actions[..., 0], np.stack(executed)
    assert np.array_equal(taken >= 0, buffer.had_turn)
    acted = buffer.had_turn & (taken != STAY)  # an action that is impossible is a stay
    assert acted.sum() > 50
    assert np.array_equal(stored[acted], taken[acted])


def test_agents_move() -> None:
    model = learner()
    collect(model)
    place = model.rollout_buffer.observations[..., :2]  # of one episode
    assert (np.ptp(place, axis=0).sum(-1) > 0).mean() > 0.5


def test_another_rollout_buffer_is_refused() -> None:
    with pytest.raises(ValueError, match="rollout_buffer_class must be None, got"):
        PPO("MlpPolicy", small_env(), rollout_buffer_class=RolloutBuffer)
