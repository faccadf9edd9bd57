"""A-PPO, F-PPO and PPO-Lagrangian: terms on a worked minibatch, what they record, and PPO where they do nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

from fair_envs.baselines.ppo.lagrangian import PPOLagrangian
from fair_envs.baselines.ppo.policies import SharedTrunkPolicy
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.baselines.ppo.regularised import (
    APPO,
    FPPO,
    Changes,
    Regularised,
    add_terms,
    add_terms_published,
    bonus_term,
    decrease_in_violation_term,
    penalty_term,
    value_thresholding_term,
)
from fair_envs.baselines.ppo.tracking import TrackMeasures, restore, snapshot
from fair_envs.support.aliases import Floats
from tests.baselines.loans import Accept, Age, Granted, Loans, hiring, own_env, settings
from tests.baselines.small import collect, learned, policy_weights, rollouts, whole_batch

DELTA = 0.05
ADVANTAGES = th.tensor([1.0, -1.0, 0.5, 0.0])
WORKED = Changes(
    short=th.tensor([0.2, 0.04, 0.02, 0.1]),
    short_change=th.tensor([0.05, -0.01, 0.01, -0.02]),
    long_change=th.tensor([0.3, -0.2, 0.1, -0.1]),
)
NOTHING = Changes(*th.full((3, 4), th.nan))


def learner(kind: Any = FPPO, env: VecEnv | None = None, **given: Any) -> Any:
    """Return a small learner on job interviews."""
    if kind is not sb3.PPO and kind is not PPO:
        given = {"short": Granted, "long": Age, **given}
    return kind("MlpPolicy", hiring() if env is None else env, **settings(**given))


def standardised(values: th.Tensor) -> th.Tensor:
    return (values - values.mean()) / (values.std() + 1e-8)


def close(found: th.Tensor, wanted: list[float], *, within: float = 1e-6) -> None:
    np.testing.assert_allclose(found.numpy(), wanted, atol=within)


# --------------------------------------------------------------------------------------- the worked minibatch


def test_above_the_tolerance_only_a_worse_long_term_counts_within_it_only_a_better_one() -> None:
    close(penalty_term(WORKED, delta=DELTA), [-0.3, 0, 0, 0])
    close(bonus_term(WORKED, delta=DELTA), [0, 0.2, 0, 0])


def test_equation_4_adds_the_regularisation_to_the_advantages() -> None:
    terms = th.stack([penalty_term(WORKED, delta=DELTA), bonus_term(WORKED, delta=DELTA)], dim=1)
    close(add_terms(ADVANTAGES, terms, th.ones(2)), [0.7, -0.8, 0.5, 0])


def test_pocar_charges_being_above_the_tolerance_and_going_further() -> None:
    close(value_thresholding_term(WORKED, delta=DELTA), [-0.15, 0, 0, -0.05])
    close(decrease_in_violation_term(WORKED, delta=DELTA), [-0.05, 0, 0, 0])


def test_the_published_a_ppo_rescales_everything_to_the_minibatch() -> None:
    terms = th.stack(
        [value_thresholding_term(WORKED, delta=DELTA), decrease_in_violation_term(WORKED, delta=DELTA)], dim=1
    )
    total = add_terms_published(ADVANTAGES, terms, th.tensor([0.25, 0.25]))
    close(total, [1, 0.5, 1.25, 0.9167], within=1e-4)
    close(standardised(total), [0.2673, -1.3363, 1.0690, 0], within=1e-4)


def test_the_published_f_ppo_reverses_the_order_of_two_samples() -> None:
    terms = th.stack([penalty_term(WORKED, delta=DELTA), bonus_term(WORKED, delta=DELTA)], dim=1)
    total = add_terms_published(ADVANTAGES, terms, th.tensor([1.12, 1.0]))
    close(total, [1, 2.12, 1.87, 1.62], within=1e-5)
    close(standardised(total), [-1.3579, 0.9729, 0.4526, -0.0676], within=1e-4)
    sound = add_terms(ADVANTAGES, terms, th.ones(2))
    assert sound[1] < sound[2] and total[1] > total[2]


@pytest.mark.parametrize("term", [value_thresholding_term, decrease_in_violation_term, penalty_term, bonus_term])
def test_what_is_undefined_has_no_effect(term: Any) -> None:
    assert term(NOTHING, delta=DELTA).tolist() == [0, 0, 0, 0]
    for k in range(3):
        some = term(Changes(*(NOTHING[j] if j == k else WORKED[j] for j in range(3))), delta=DELTA)
        assert th.isfinite(some).all()


@pytest.mark.parametrize(
    ("kind", "scaling", "wanted"),
    [
        (FPPO, "paper", [0.7247, -1.1175, 0.4392, -0.1464]),  # standardised advantages + (-.3, .2, 0, 0)
        (FPPO, "as_coded", [-1.3579, 0.9729, 0.4526, -0.0676]),
        (APPO, "as_coded", [0.2673, -1.3363, 1.0690, 0]),
    ],
)
def test_a_learner_follows_the_worked_minibatch(kind: Any, scaling: str, wanted: list[float]) -> None:
    weights: dict[str, Any] = {"weight": 1.12, "bonus_weight": 1.0} if kind is FPPO and scaling == "as_coded" else {}
    model = learner(kind, scaling=scaling, delta=DELTA, **weights)
    collect(model)
    model._terms = model.terms(WORKED)
    batch = whole_batch(model)._replace(advantages=ADVANTAGES, flat_index=th.arange(4))
    close(model._policy_advantages(batch), wanted, within=1e-4)


# ----------------------------------------------------------------------------------------------- the unit


def test_terms_count_in_units_of_all_rollouts_so_far() -> None:
    model = learner(APPO)
    rng = np.random.default_rng(0)
    parts = [th.as_tensor(rng.normal(size=(n, 2)) * [1, 5] + [3, 0]) for n in (7, 30, 4)]
    for k, part in enumerate(parts):
        found = model._unit(part)
        np.testing.assert_allclose(found, th.cat(parts[: k + 1]).numpy().std(axis=0), rtol=1e-6)


def test_penalty_and_bonus_have_one_unit() -> None:
    terms = th.tensor([[-3.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype=th.float64)
    np.testing.assert_allclose(learner(FPPO)._unit(terms), [np.std([-3, 1, 0])], rtol=1e-6)


def test_by_default_a_change_counts_the_same_in_any_unit() -> None:
    class Minutes(Age):
        def measured(self, info: Any) -> Floats:
            return (np.nan_to_num(self.value) / 60 + 1) * 60

    found = [policy_weights(learned(learner(long=long))) for long in (Age, Minutes)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    found = [policy_weights(learned(learner(long=long, scaling="paper"))) for long in (Age, Minutes)]
    assert np.abs(found[0] - found[1]).max() > 0.01


# ------------------------------------------------------------------------------- equal to Stable-Baselines3


WITHOUT_EFFECT: list[tuple[Any, dict[str, Any]]] = [
    (Regularised, {}),
    (APPO, {"value_weight": 0.0, "decrease_weight": 0.0}),
    (FPPO, {"weight": 0.0}),
    (FPPO, {"weight": 0.0, "scaling": "as_coded", "long": None}),
    (FPPO, {"weight": 0.0, "massager": Accept(), "massaging_schedule": lambda rollout: None}),
    (FPPO, {"weight": 0.0, "massager": Accept(), "massaging_schedule": 1.1}),  # which no probability reaches
    (FPPO, {"weight": 0.0, "massager": Accept(), "massaging_schedule": 1.1, "massaging": "corrected"}),
    (PPOLagrangian, {"limit": np.inf}),
]


@pytest.mark.parametrize("make", [hiring, own_env, lambda: VecNormalize(hiring())])
@pytest.mark.parametrize(("kind", "given"), WITHOUT_EFFECT)
def test_without_weights_and_massaging_it_is_stable_baselines3_to_the_bit(kind: Any, given: Any, make: Any) -> None:
    ours, theirs = learned(learner(kind, make(), autograd=True, **given)), learned(learner(sb3.PPO, make()))
    assert np.array_equal(policy_weights(ours), policy_weights(theirs))


@pytest.mark.parametrize(
    ("kind", "given"),
    [(FPPO, {}), (FPPO, {"scaling": "as_coded"}), (APPO, {}), (PPOLagrangian, {"multiplier": 1.0})],
)
def test_with_weights_it_is_not(kind: Any, given: Any) -> None:
    ours, theirs = learned(learner(kind, autograd=True, **given)), learned(learner(sb3.PPO))
    assert not np.array_equal(policy_weights(ours), policy_weights(theirs))
    assert np.isfinite(policy_weights(ours)).all()


# ------------------------------------------------------------------------------------------ what is recorded


@pytest.mark.parametrize("make", [hiring, own_env])
def test_terminal_steps_hold_the_terminal_steps_values(make: Any) -> None:
    model = learner(env=make())
    horizon = 5 if make is own_env else 7
    collect(model, 2)
    age = 1 + (np.arange(10, 20) % horizon)[:, np.newaxis]
    recorded = model.rollout_measures
    assert np.array_equal(recorded.long, np.broadcast_to(age, recorded.long.shape))
    first = np.broadcast_to(age == 1, age.shape)
    assert np.isnan(recorded.long_change[first[:, 0]]).all()  # nothing is known before an episode's first step
    assert (recorded.long_change[~first[:, 0]] == 1).all()  # the last step's too: not the change to the next episode


def test_the_short_term_is_that_after_the_action() -> None:
    model = learner(env=own_env())
    collect(model)
    granted = model.rollout_buffer.actions[..., 0].astype(float)
    wanted = np.stack([granted[k - k % 5 : k + 1].sum(axis=0) for k in range(10)])
    wanted[[0, 5]] = np.nan  # undefined before the second decision
    np.testing.assert_array_equal(model.rollout_measures.short, wanted)
    changes = wanted - np.vstack([wanted[:1], wanted[:-1]])
    np.testing.assert_array_equal(model.rollout_measures.short_change[1:], changes[1:])


def test_a_new_start_of_the_environment_begins_the_measures_anew() -> None:
    model = learner()
    model.learn(rollouts(model, 1))  # 10 steps: the second episode is at 3
    model.learn(rollouts(model, 1), reset_num_timesteps=False)
    assert model.rollout_measures.long[0].tolist() == [4, 4, 4, 4]
    model.learn(rollouts(model, 1))
    assert model.rollout_measures.long[0].tolist() == [1, 1, 1, 1]
    assert model.rollouts == 3


def test_callbacks_see_the_measures_at_the_end_of_a_rollout() -> None:
    class Reads(BaseCallback):
        seen: list[float]

        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            self.seen = self.model.rollout_measures.long[:, 0].tolist()  # type: ignore[attr-defined]

    model, reads = learner(), Reads()
    model.learn(rollouts(model, 1), callback=reads)
    assert reads.seen == [1, 2, 3, 4, 5, 6, 7, 1, 2, 3]


def test_an_own_environment_and_lanes_are_followed_alike() -> None:
    env, told = hiring(2), []
    following = TrackMeasures(env, [Granted])
    following.reset()
    for k in range(9):
        following.step(np.array([1, k % 2]))
        told.append(following.measures[0].value.tolist())
    assert told[1:7] == [[2, 1], [3, 1], [4, 2], [5, 2], [6, 3], [7, 3]]  # the seventh ends the episode
    assert np.isnan(told[7]).all() and told[8] == [2, 1]


def test_wrappers_may_stand_between() -> None:
    model = learner(env=VecMonitor(VecNormalize(hiring())))
    collect(model)
    assert model.rollout_measures.long[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 1, 2, 3]


def test_the_means_of_what_is_defined_are_logged() -> None:
    model = learner(massager=Accept(), massaging_schedule=0.0)
    collect(model)
    logged = model.logger.name_to_value
    assert logged["train/long_term"] == pytest.approx((28 + 6) / 10)
    assert logged["train/short_term"] == pytest.approx((2 + 3 + 4 + 5 + 6 + 7 + 2 + 3) / 8)  # all are granted
    assert logged["train/massaged"] == model.rollout_measures.altered.mean() > 0


def test_a_snapshot_of_measures_is_where_they_go_on() -> None:
    measures = [Granted(2), Age(2)]
    told = {"fair_action": np.array([1, 0])}
    for measure in measures:
        measure.update(told)
        measure.update(told)
    kept = snapshot(measures)
    fresh = [Granted(2), Age(2)]
    restore(fresh, kept)
    for one, other in zip(measures, fresh, strict=True):
        one.update(told)
        assert np.array_equal(one.value, other.update(told), equal_nan=True)
        assert np.array_equal(one.before, other.before, equal_nan=True)


# ------------------------------------------------------------------------------------------- PPO-Lagrangian


def test_the_multiplier_follows_the_excess_and_stays_at_least_0() -> None:
    model = learner(PPOLagrangian, short=Age, limit=1.0, multiplier=0.5, multiplier_rate=0.1)
    collect(model)
    assert model.multiplier == pytest.approx(0.5 + 0.1 * (3.4 - 1))
    assert model.logger.name_to_value["train/multiplier"] == model.multiplier
    model.limit = 1000.0
    collect(model)
    assert model.multiplier == 0


def test_an_undefined_measure_leaves_the_multiplier() -> None:
    model = learner(PPOLagrangian, env=own_env(), limit=0.0, multiplier=0.5, n_steps=1, batch_size=3)
    collect(model)
    assert np.isnan(model.rollout_measures.short).all()
    assert model.multiplier == 0.5


def test_the_policy_follows_the_advantages_less_the_price_of_the_cost() -> None:
    model = learner(PPOLagrangian, multiplier=3.0, limit=np.inf, limited="long")
    model.limit, model.multiplier_rate = 0.0, 1e-12
    collect(model)
    batch = whole_batch(model)
    cost = model._cost_advantages[batch.flat_index]
    assert cost.abs().max() > 0.1
    wanted = (standardised(batch.advantages) - 3 * (cost - cost.mean())) / 4
    np.testing.assert_allclose(model._policy_advantages(batch), wanted, rtol=1e-5, atol=1e-6)


def test_a_time_limit_is_no_end_of_the_costs() -> None:
    model = learner(PPOLagrangian, limited="long", gamma=0.9)
    collect(model)
    assert sorted(model._cut_off) == [(6, lane) for lane in range(4)]  # the last of seven steps, in four lanes
    ends = np.array([model._cut_off[6, lane] for lane in range(4)], np.float32)
    after = model.cost_critics.predict(ends[np.newaxis], which=[0])[0, :, 0]
    assert after.all()
    values = model.cost_critics.predict(model.rollout_buffer.observations, which=[0])[..., 0]
    advantages = model._cost_advantages.reshape(4, 10).T
    np.testing.assert_allclose(advantages[6], 7 + 0.9 * after - values[6], rtol=1e-4)


def test_a_limit_on_grants_makes_grants_rare() -> None:
    class Now(Granted):
        def measured(self, info: Any) -> Floats:
            return np.asarray(info["fair_action"] == 1, float)

    given = {"n_steps": 50, "batch_size": 100, "n_epochs": 5, "short": Now}
    free = learner(PPOLagrangian, hiring(8), limit=np.inf, **given)
    bound = learner(PPOLagrangian, hiring(8), limit=0.1, multiplier=2.0, multiplier_rate=1.0, **given)
    for model in (free, bound):
        model.learn(rollouts(model, 12))
    shares = [model.rollout_measures.short.mean() for model in (free, bound)]
    assert shares[1] < 0.15 < shares[0] - 0.1


# ------------------------------------------------------------------------------------------------- as in SB3


@pytest.mark.parametrize(
    ("kind", "given"), [(FPPO, {}), (APPO, {"scaling": "as_coded"}), (PPOLagrangian, {"limit": 0.0})]
)
def test_a_saved_model_acts_the_same_and_learns_on(kind: Any, given: Any, tmp_path: Path) -> None:
    model = learned(learner(kind, massager=Accept(), massaging_schedule=0.4, **given))
    model.save(tmp_path / "model.zip")
    loaded = kind.load(tmp_path / "model.zip", env=hiring(), device="cpu")
    seen = hiring().reset()
    assert np.array_equal(model.predict(seen, deterministic=True)[0], loaded.predict(seen, deterministic=True)[0])
    assert np.array_equal(policy_weights(model), policy_weights(loaded))
    assert (loaded.rollouts, loaded.short) == (3, Granted)
    assert {k: v.tolist() for k, v in loaded.memory.items()} == {k: v.tolist() for k, v in model.memory.items()}
    loaded.learn(rollouts(loaded, 1), reset_num_timesteps=False)
    assert (loaded.rollouts, loaded.rollout_measures.long[0, 0]) == (4, 1)  # its episodes are new
    assert not np.array_equal(policy_weights(model), policy_weights(loaded))
    assert kind.load(tmp_path / "model.zip", device="cpu").predict(seen)[0].shape == (4,)


def test_a_callback_may_end_the_training_within_a_rollout() -> None:
    class Stop(BaseCallback):
        def _on_step(self) -> bool:
            return self.n_calls < 15

    model = learner()
    model.learn(rollouts(model, 4), callback=Stop())
    assert (model.num_timesteps, model.rollouts) == (60, 1)


# ------------------------------------------------------------------------------------------------ networks


def test_actor_and_critic_share_a_trunk_and_have_heads_of_their_own() -> None:
    sizes = {"shared": [8], "pi": [6, 5], "vf": [4]}
    model: Any = FPPO(
        SharedTrunkPolicy, own_env(), short=Granted, long=Age, **settings(policy_kwargs={"net_arch": sizes})
    )
    shapes = [tuple(p.shape) for p in model.policy.mlp_extractor.parameters() if p.ndim == 2]
    assert shapes == [(8, 2), (6, 8), (5, 6), (4, 8)]
    seen = th.rand(7, 2)
    values, log_prob, _ = model.policy.evaluate_actions(seen, th.zeros(7))
    for output in (values, log_prob):
        model.policy.zero_grad()
        output.sum().backward(retain_graph=True)
        assert model.policy.mlp_extractor.trunk[0].weight.grad.abs().sum() > 0
    assert th.equal(model.policy.predict_values(seen), values)
    assert learned(model).num_timesteps == 90


def test_a_policy_with_a_trunk_is_saved_with_its_sizes(tmp_path: Path) -> None:
    kwargs = {"net_arch": {"shared": [8]}}
    model = FPPO(SharedTrunkPolicy, own_env(), short=Granted, long=Age, **settings(policy_kwargs=kwargs))
    model.save(tmp_path / "model.zip")
    assert np.array_equal(policy_weights(FPPO.load(tmp_path / "model.zip")), policy_weights(model))


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (FPPO, {"short": None}, "short must be a factory of measures, got None"),
        (FPPO, {"long": None}, "long must be given if a weight is above 0, got None"),
        (FPPO, {"weight": -1}, "weight must be at least 0, got -1"),
        (FPPO, {"bonus_weight": -1}, "bonus_weight must be at least 0, got -1"),
        (FPPO, {"delta": -0.1}, "delta must be at least 0"),
        (FPPO, {"scaling": "raw"}, "scaling must be one of 'running', 'paper', 'as_coded', got 'raw'"),
        (FPPO, {"massager": Accept()}, "massager and massaging_schedule must be given together"),
        (FPPO, {"massaging": "none"}, "massaging must be one of 'as_paper', 'shield', 'corrected', got 'none'"),
        (APPO, {"value_weight": -1}, "value_weight must be at least 0"),
        (APPO, {"decrease_weight": -1}, "decrease_weight must be at least 0"),
        (PPOLagrangian, {"limit": -1}, "limit must be at least 0, got -1"),
        (PPOLagrangian, {"limited": "all"}, "limited must be one of 'short', 'long', got 'all'"),
        (PPOLagrangian, {"limited": "long", "long": None}, "long must be given if it is limited, got None"),
        (PPOLagrangian, {"multiplier": -1}, "multiplier must be at least 0"),
        (PPOLagrangian, {"multiplier_rate": 0}, "multiplier_rate must be at least"),
    ],
)
def test_bad_arguments_are_refused(kind: Any, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learner(kind, **given)


@pytest.mark.parametrize("env", [lambda: make_vec_env("CartPole-v1"), lambda: make_vec_env(lambda: Loans(tells=False))])
def test_an_environment_that_tells_nothing_is_refused(env: Any) -> None:
    with pytest.raises(ValueError, match=r"env must return fair_envs.core.interactions.record in its infos, got none"):
        collect(learner(env=env()))


def test_a_trunk_of_unknown_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="net_arch must only have the keys 'shared', 'pi' and 'vf', got 'q'"):
        FPPO(SharedTrunkPolicy, own_env(), short=Granted, long=Age, policy_kwargs={"net_arch": {"q": [8]}})
