"""Fair-PPO as a Stable-Baselines3 algorithm: without weights it is PPO, and it follows the disparity of its lanes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from fair_envs import make_sb3
from fair_envs.baselines.ppo.fair_modes import MODES
from fair_envs.baselines.ppo.fair_ppo import FairPPO
from fair_envs.baselines.ppo.policies import GroupedPolicy
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.support.aliases import Flags, Floats, Floats32
from fair_envs.wrappers import FairnessPenalty
from tests.baselines.small import (
    GAMES,
    HARVEST,
    SCALE,
    collect,
    fair_learner,
    learned,
    learner,
    policy_weights,
    rollouts,
    small_env,
)
from tests.helpers import LITTLE

# ------------------------------------------------------------------------------------------- beside plain PPO


@pytest.fixture(scope="module")
def plain() -> dict[bool, Floats32]:
    """Return the weights that PPO learns in one world and in two."""
    envs = {False: small_env(), True: small_env(lanes=2, worlds=GAMES)}
    return {two: policy_weights(learned(learner(PPO, env, autograd=True))) for two, env in envs.items()}


@pytest.mark.parametrize("penalty", ("dp", "conditional parity", "cf"))
@pytest.mark.parametrize("mode", MODES)
def test_without_weights_every_mode_is_ppo_to_the_bit(mode: str, penalty: str, plain: dict[bool, Floats32]) -> None:
    model = learned(fair_learner(mode=mode, penalty=penalty, alpha=0.0, beta=0.0, autograd=True))
    assert np.array_equal(policy_weights(model), plain[penalty == "cf"])


def test_the_cost_critics_use_up_none_of_ppos_luck() -> None:
    found = []
    for kind, settings in ((PPO, {}), (FairPPO, {"alpha": 0.0})):
        model = learner(kind, small_env(), **settings)
        found.append(policy_weights(model.learn(rollouts(model, 1))))
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("penalty", ("dp", "conditional parity", "cf"))
@pytest.mark.parametrize("mode", MODES)
def test_with_weights_no_mode_is_ppo(mode: str, penalty: str, plain: dict[bool, Floats32]) -> None:
    model = learned(fair_learner(mode=mode, penalty=penalty, alpha=1.0, beta=1.0, autograd=True))
    assert not np.array_equal(policy_weights(model), plain[penalty == "cf"])
    assert np.isfinite(policy_weights(model)).all()


def test_lambda_zero_is_no_penalty(plain: dict[bool, Floats32]) -> None:
    assert np.array_equal(
        policy_weights(learned(fair_learner(weight=0.0, alpha=3.0, beta=2.0, autograd=True))), plain[False]
    )


# --------------------------------------------------------------------------------------- what is measured in lanes


def gap_of_totals(env: Any, *, within: Flags | None = None) -> Floats:
    """Return the difference of the groups' mean returns so far, as the lanes' own accounts have it."""
    records = env.lanes.records
    counted = np.ones(records["total"].shape, bool) if within is None else within
    sides = [np.mean(records["total"], axis=1, where=counted & (records["sensitive"] == g)) for g in (0, 1)]
    return np.asarray(sides[0] - sides[1], float)


def test_the_disparity_is_that_of_the_episode_across_rollouts() -> None:
    model = fair_learner(n_steps=5)
    for after in (5, 10, 3, 8):  # an episode has 12 steps
        collect(model)
        assert model.env.lanes.records["time"].tolist() == [after] * 4  # type: ignore[union-attr]
        start = model.memory["returns"]
        found = SCALE * gap_of_totals(model.env)
        np.testing.assert_allclose(start[:, 0, 0] - start[:, 0, 1], found, atol=1e-6)


def test_conditional_parity_is_measured_within_each_preference() -> None:
    model = fair_learner(n_steps=5, penalty="csp")
    collect(model, 2)
    returns = model.memory["returns"]
    assert returns.shape == (4, 2, 2)
    for k, colour in enumerate((1, 2)):
        found = SCALE * gap_of_totals(model.env, within=model.env.lanes.records["preference"] == colour)  # type: ignore[union-attr]
        np.testing.assert_allclose(returns[:, k, 0] - returns[:, k, 1], found, atol=1e-6)


def test_the_counterfactual_penalty_compares_two_games_with_the_same_luck() -> None:
    model = fair_learner(n_steps=5, penalty="cf")
    collect(model, 2)
    records = model.env.lanes.records  # type: ignore[union-attr]
    for name in ("key", "time"):
        of_nobody, of_everybody = np.split(records[name], 2)
        assert np.array_equal(of_nobody, of_everybody)
    assert records["sensitive"].mean(axis=1).tolist() == [0, 0, 1, 1]
    nobody, everybody = np.split(records["total"].mean(axis=1), 2)
    returns = model.memory["returns"]
    np.testing.assert_allclose(returns[:, 0], SCALE * np.stack([nobody, everybody], axis=1), atol=1e-6)


@pytest.mark.parametrize("penalty", ["dp", "cf"])
def test_rows_and_worlds_are_the_same_seen_from_two_sides(penalty: str) -> None:
    model = fair_learner(penalty=penalty)
    collect(model)
    rows = np.arange(3 * 32).reshape(3, 32)
    worlds = model.to_worlds(rows)
    assert worlds.shape == ((3, 2, 16) if penalty == "cf" else (3, 4, 8))
    assert np.array_equal(model.to_rows(worlds), rows)
    if penalty == "cf":  # lane 1 of the first game is beside lane 1 of the second
        assert worlds[0, 1].tolist() == [*range(8, 16), *range(24, 32)]


def test_the_disparity_that_is_told_is_that_of_the_episodes_that_ended() -> None:
    model = fair_learner(n_steps=12)
    collect(model)
    whole, told = model.disparity, model.logger.name_to_value["fairness/disparity"]
    assert told == pytest.approx(whole / SCALE)
    model.n_steps = model.rollout_buffer.buffer_size = 3  # none of the next episodes ends
    collect(model)
    assert model.disparity == whole


def test_without_anybody_to_compare_with_no_disparity_is_told() -> None:
    model = fair_learner(env=small_env(sensitive_fraction=0.0), n_steps=12)
    collect(model)
    assert np.isnan(model.logger.name_to_value["fairness/disparity"])


def test_what_an_agents_own_value_adds_to_the_gap_counts_per_step() -> None:
    model = fair_learner(credit="own", beta=1.0, gamma=0.9)
    collect(model)
    buffer = model.rollout_buffer
    buffer.values[:] = np.where(buffer.group == 0, 3.0, 1.0)  # a gap of 2
    model.memory.clear()
    costs = model.agent_costs(model.measure_disparity())[..., 0, 1]
    # Four agents a group: without the agent's own value the gap is 2 - 3 / 4, or 2 + 1 / 4; times 4 and 1 - gamma.
    np.testing.assert_allclose(costs, np.where(buffer.group == 0, 0.3, -0.1))


# -------------------------------------------------------------------------------------------- as in SB3


def test_a_saved_model_acts_the_same_and_learns_on(tmp_path: Path) -> None:
    model = learned(fair_learner(mode="weighted", beta=0.5))
    model.save(tmp_path / "model.zip")
    loaded = FairPPO.load(tmp_path / "model.zip", env=small_env(), device="cpu")
    obs = small_env().reset()
    for deterministic in (True, False):
        one, other = (_chosen(m, obs, deterministic) for m in (model, loaded))
        assert np.array_equal(one, other)
    assert (loaded.mode, loaded.beta, loaded.skip_idle) == ("weighted", 0.5, True)
    assert np.array_equal(policy_weights(model), policy_weights(loaded))
    critics = [m.cost_critics.state_dict() for m in (model, loaded)]
    assert all(np.array_equal(critics[0][name], critics[1][name]) for name in critics[0])
    assert model.memory.keys() == loaded.memory.keys()
    assert all(np.array_equal(model.memory[name], loaded.memory[name]) for name in model.memory)
    loaded.learn(rollouts(loaded, 1), reset_num_timesteps=False)
    assert not np.array_equal(policy_weights(model), policy_weights(loaded))


def _chosen(model: Any, obs: Any, deterministic: bool) -> Any:
    model.set_random_seed(3)
    return model.predict(obs, deterministic=deterministic)[0]


def test_a_loaded_model_needs_no_environment_to_act(tmp_path: Path) -> None:
    fair_learner().save(tmp_path / "model.zip")
    loaded = FairPPO.load(tmp_path / "model.zip", device="cpu")
    obs = np.asarray(small_env().reset())
    assert loaded.predict(obs)[0].shape == (32,)


def test_callbacks_run_and_tensorboard_is_written(tmp_path: Path) -> None:
    class Steps(BaseCallback):
        count = 0

        def _on_step(self) -> bool:
            self.count += 1
            return self.count < 15

    steps = Steps()
    model = fair_learner(tensorboard_log=str(tmp_path))
    model.learn(rollouts(model, 4), callback=steps)
    assert (steps.count, model.num_timesteps) == (15, 15 * 32)
    (log,) = tmp_path.glob("FairPPO_1/events*")
    assert b"fairness/disparity" in log.read_bytes()


def test_monitors_and_wrappers_of_rewards_may_stand_between() -> None:
    env = FairnessPenalty(small_env(), alpha=0.5)
    model = fair_learner(env=VecMonitor(env))
    collect(model)
    np.testing.assert_allclose(model.rollout_buffer.rewards, SCALE * model.rollout_buffer.reward, atol=1e-6)
    assert model.rollout_buffer.reward.min() < 0


def test_the_schedule_of_the_learning_rate_is_the_cost_critics_too() -> None:
    model = learned(fair_learner(learning_rate=lambda left: 0.01 * left), times=2)
    rates = [o.param_groups[0]["lr"] for o in (model.policy.optimizer, model.cost_critics.optimizer)]
    assert rates == [0.0, 0.0]


# -------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"penalty": "eo"},
            "penalty must be one of demographic_parity, conditional_parity, counterfactual_fairness, got 'eo'",
        ),
        ({"mode": "fair"}, "mode must be one of 'shaped', .*, got 'fair'"),
        ({"credit": "all"}, "credit must be one of 'common', 'own', got 'all'"),
        ({"alpha": -1}, "alpha must be at least 0, got -1"),
        ({"beta": float("nan")}, "beta must be a finite number at least 0, got nan"),
        ({"weight": float("inf")}, "weight must be a finite number at least 0"),
        ({"tolerance": -0.1}, "tolerance must be at least 0"),
        ({"alpha": "1"}, "alpha must be a finite number at least 0, got '1'"),
        ({"mode": "weighted", "credit": "own"}, "credit must be 'common' in mode 'weighted'"),
        ({"tolerance": 1.0}, "tolerance must be 0 in mode 'shaped'"),
    ],
)
def test_bad_arguments_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learner(FairPPO, small_env(), **settings)


@pytest.mark.parametrize(
    ("make", "penalty", "message"),
    [
        (lambda: make_sb3(HARVEST, n_envs=2, rows="lanes", **LITTLE), "dp", "env must be made by .* rows='agents'"),
        (lambda: make_vec_env("CartPole-v1"), "dp", "env must be made by fair_envs.make_sb3"),
        (lambda: small_env(worlds=GAMES), "dp", "env must have one world for penalty 'demographic_parity', got 2"),
        (small_env, "cf", "env must have two worlds .*, got 1"),
        (lambda: VecNormalize(small_env(), norm_obs=False), "dp", "env must not rescale rewards"),
    ],
)
def test_environments_that_do_not_fit_are_refused(make: Any, penalty: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairPPO("MlpPolicy", make(), penalty=penalty, n_steps=4, batch_size=4, device="cpu")


def test_an_environment_without_the_group_in_its_observations_is_refused_at_once() -> None:
    env = make_sb3("FairHarvest-v0", n_envs=1, **LITTLE)
    with pytest.raises(ValueError, match="env must be made with append='group' for GroupedPolicy"):
        FairPPO(GroupedPolicy, env)


def test_a_decision_maker_is_refused_since_nobody_elses_rewards_are_there_to_compare() -> None:
    with pytest.raises(ValueError, match="env must have agents that are themselves affected, got a decision-maker"):
        FairPPO("MlpPolicy", make_sb3("FairLending-v0", rows="agents"))
