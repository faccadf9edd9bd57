"""Massaging: which actions are executed, and what is learnt from them in each of its three ways."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.distributions import make_proba_distribution
from stable_baselines3.common.vec_env import VecNormalize

from fair_envs import make_sb3
from fair_envs.baselines.ppo.massaging import (
    MassagingSchedule,
    PolicyOutput,
    ShieldActions,
    log_probability,
    policy_output,
)
from fair_envs.baselines.ppo.regularised import FPPO, Regularised
from fair_envs.baselines.tasks.attention import AttentionMassager
from fair_envs.baselines.tasks.epidemic import EpidemicMassager
from fair_envs.baselines.tasks.lending import LendingMassager
from tests.baselines.loans import Accept, Age, FirstEntry, Granted, hiring, own_env, settings
from tests.baselines.small import HARVEST, collect, learned, policy_weights
from tests.helpers import LITTLE

# ------------------------------------------------------------------------------------------------- thresholds


@pytest.mark.parametrize(
    ("thresholds", "rollouts", "wanted"),
    [
        (
            LendingMassager.schedule,
            [17, 18, 20, 40, 60, 100, 150, 200, 349],
            [None, 0.4925, 0.4778, 0.3532, 0.2611, 0.1426],
        ),
        (LendingMassager.schedule, [150, 200, 349], [0.0670, 0.0315, 0.0033]),
        (AttentionMassager.schedule, [0, 15, 16, 900], [None, None, 0.08, 0.08]),
        (
            EpidemicMassager.schedule,
            [50, 51, 55, 60, 65, 69, 70, 244],
            [None, 0.0120, 0.0249, 0.0619, 0.1541, 0.3195, 0.35],
        ),
    ],
)
def test_the_published_thresholds(thresholds: MassagingSchedule, rollouts: list[int], wanted: list[Any]) -> None:
    found = [thresholds(rollout) for rollout in rollouts]
    for one, other in zip(found, wanted, strict=False):
        assert one == other if other is None else one == pytest.approx(other, abs=5e-5)


def test_thresholds_without_a_beginning_hold_from_the_first_rollout() -> None:
    assert [MassagingSchedule(initial=0.4, factor=0.5)(k) for k in range(3)] == [0.4, 0.2, 0.1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"initial": -1}, "initial must be at least 0, got -1"),
        ({"initial": 1, "factor": 0}, "factor must be at least"),
        ({"initial": 1, "highest": float("nan")}, "highest must be at least 0, got nan"),
    ],
)
def test_bad_thresholds_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MassagingSchedule(**given)


# ----------------------------------------------------------------------------------------- what a policy says


def said(space: gym.Space[Any], *numbers: Any) -> Any:
    distribution: Any = make_proba_distribution(space)
    return policy_output(distribution.proba_distribution(*map(th.tensor, numbers)))


def test_a_policys_words_are_probabilities_or_a_mean_and_a_standard_deviation() -> None:
    one = said(gym.spaces.Discrete(2), [[0.0, np.log(3)]])
    np.testing.assert_allclose(one.probabilities, [[0.25, 0.75]], rtol=1e-6)
    several = said(gym.spaces.MultiDiscrete([2, 2, 2]), [[0.0, 0.0, 0.0, np.log(3), 0.0, np.log(4)]])
    np.testing.assert_allclose(several.probabilities, [[[0.5, 0.5], [0.25, 0.75], [0.2, 0.8]]], rtol=1e-6)
    gaussian = said(gym.spaces.Box(-1, 1, (2,)), [[0.5, -2.0]], [0.0, np.log(2)])
    np.testing.assert_allclose(gaussian.mean, [[0.5, -2]])
    np.testing.assert_allclose(gaussian.std, [[1, 2]], rtol=1e-6)
    assert (one.mean, gaussian.probabilities) == (None, None)


@pytest.mark.parametrize("space", [gym.spaces.MultiBinary(2), gym.spaces.MultiDiscrete([2, 3])])
def test_other_policies_are_refused(space: gym.Space[Any]) -> None:
    with pytest.raises(ValueError, match=r"policy must choose actions that are categorical, .*, got "):
        said(space, [[0.0] * (2 if isinstance(space, gym.spaces.MultiBinary) else 5)])


# ------------------------------------------------------------------------------------------------- the shield


def half(observation: NDArray[Any]) -> PolicyOutput:
    """Say that both actions are equally probable."""
    return PolicyOutput(probabilities=np.full((len(observation), 2), 0.5))


def test_the_altered_action_is_executed_and_told() -> None:
    shield = ShieldActions(own_env(), Accept(), half, short=Granted, threshold=0.5)
    shield.reset()
    *_, infos = shield.step(np.array([0, 1, 0]))
    assert [int(info["fair_action"]) for info in infos] == [1, 1, 1]
    assert (shield.sampled.tolist(), shield.executed.tolist()) == ([0, 1, 0], [1, 1, 1])
    assert shield.altered.tolist() == [True, False, True]


def test_above_the_threshold_nothing_is_altered() -> None:
    shield = ShieldActions(own_env(), Accept(), half, short=Granted, threshold=0.51)
    shield.reset()
    shield.step(np.array([0, 1, 0]))
    assert shield.executed.tolist() == [0, 1, 0] and not shield.altered.any()


def test_a_schedule_says_from_which_rollout_on() -> None:
    shield = ShieldActions(
        own_env(), Accept(), half, short=Granted, threshold=MassagingSchedule(initial=0.5, start_after=2)
    )
    shield.reset()
    found = []
    for shield.rollout in range(4):
        shield.step(np.array([0, 1, 0]))
        found.append(int(shield.altered.sum()))
    assert found == [0, 0, 0, 2]


def test_the_massager_sees_the_measure_of_its_own_episode_as_it_was_before_the_step() -> None:
    seen: list[list[float]] = []

    class Ask(Accept):
        def __call__(self, observation: Any, action: Any, policy: Any, short: Any, *, threshold: float) -> Any:
            seen.append(short.value.tolist())
            return action

    shield = ShieldActions(own_env(1), Ask(), half, short=Age, threshold=0.5)
    shield.reset()
    for _ in range(7):
        shield.step(np.array([0]))
    shield.reset()
    shield.step(np.array([0]))
    assert np.nan_to_num(np.ravel(seen)).tolist() == [0, 1, 2, 3, 4, 0, 1, 0]  # episodes have five steps


@pytest.mark.parametrize("kind", [sb3.PPO, sb3.A2C])
def test_any_policy_with_a_distribution_may_be_shielded(kind: Any) -> None:
    env = hiring()
    model = kind("MlpPolicy", env, seed=0, device="cpu")
    shield = ShieldActions(env, Accept(), model.policy, short=Granted, threshold=0.0)
    observation: Any = shield.reset()
    for _ in range(3):
        observation, *_ = shield.step(model.predict(observation)[0])
    assert env.interactions["action"].tolist() == [[1], [1], [1], [1]]
    assert shield.short.value.tolist() == [3, 3, 3, 3]
    probabilities = model.policy.get_distribution(th.as_tensor(observation)).distribution.probs
    shield.step(np.zeros(4, int))
    output: Any = shield.output
    np.testing.assert_allclose(output.probabilities, probabilities.detach(), rtol=1e-6)
    assert shield.log_prob is not None
    np.testing.assert_allclose(shield.log_prob, probabilities.detach()[:, 1].log(), rtol=1e-5)


def test_the_massager_sees_what_the_environment_shows_the_policy_what_is_normalised() -> None:
    heard: list[Any] = []

    class See(Accept):
        def __call__(self, observation: Any, action: Any, policy: Any, short: Any, *, threshold: float) -> Any:
            heard.append(observation)
            return action

    def speak(observation: Any) -> PolicyOutput:
        heard.append(observation)
        return half(observation)

    env = VecNormalize(own_env())
    shield = ShieldActions(env, See(), speak, short=Granted, threshold=0.5)
    normalised = shield.reset()
    shield.step(np.array([0, 1, 0]))
    assert np.array_equal(heard[0], normalised)
    assert (heard[1] >= 0).all() and set(heard[1][:, 0]) <= {0, 1} and not np.array_equal(heard[0], heard[1])


def test_rows_of_agents_and_policies_without_a_distribution_are_refused() -> None:
    with pytest.raises(ValueError, match=r"venv must have rows of lanes \(rows='lanes'\), got rows of agents"):
        ShieldActions(make_sb3(HARVEST, n_envs=1, **LITTLE), Accept(), half, short=Granted, threshold=0.5)
    policy = sb3.DQN("MlpPolicy", hiring(), device="cpu").policy
    with pytest.raises(ValueError, match="policy must draw its actions from a distribution, got DQNPolicy"):
        ShieldActions(hiring(), Accept(), policy, short=Granted, threshold=0.5)


def test_a_massager_must_return_as_many_actions() -> None:
    shield = ShieldActions(own_env(), lambda *_, **__: np.zeros(2), half, short=Granted, threshold=0.5)
    shield.reset()
    with pytest.raises(ValueError, match=r"massager must return actions of shape \(3,\), got \(2,\)"):
        shield.step(np.zeros(3, int))


# --------------------------------------------------------------------------------------- what is learnt from it


def massaged(massaging: str, *, env: Any = None, massager: Any = None, kind: Any = Regularised, **given: Any) -> Any:
    """Return a learner that has collected a rollout in which a massager was at work."""
    env = own_env() if env is None else env
    given = {"massager": Accept() if massager is None else massager, "massaging_schedule": 0.0, **given}
    model = kind("MlpPolicy", env, short=Granted, long=Age, massaging=massaging, **settings(**given))
    collect(model)
    return model


def log_prob(model: Any, actions: Any) -> Any:
    """Return what the policy says of actions in the states of a rollout, shape (steps, rows)."""
    buffer = model.rollout_buffer
    seen = th.as_tensor(buffer.observations).flatten(0, 1)
    acted = th.as_tensor(actions).reshape(len(seen), -1)
    acted = acted[:, 0] if isinstance(model.action_space, gym.spaces.Discrete) else acted
    with th.no_grad():
        found = model.policy.evaluate_actions(seen, acted)[1]
    return found.numpy().reshape(buffer.log_probs.shape)


def test_as_in_the_paper_altered_actions_are_learnt_from_as_if_they_had_been_sampled() -> None:
    model = massaged("as_paper")
    buffer, altered = model.rollout_buffer, model.rollout_measures.altered
    assert (buffer.actions == 1).all() and altered.any() and not altered.all()
    np.testing.assert_allclose(buffer.log_probs, log_prob(model, buffer.actions), rtol=1e-5)
    assert (model.rollout_measures.weight == 1).all()


def test_behind_a_shield_the_sampled_actions_are_learnt_from() -> None:
    model = massaged("shield")
    buffer, altered = model.rollout_buffer, model.rollout_measures.altered
    assert np.array_equal(buffer.actions[..., 0] == 0, altered) and altered.any()
    np.testing.assert_allclose(buffer.log_probs, log_prob(model, buffer.actions), rtol=1e-5)
    assert np.nanmax(model.rollout_measures.short) == 5  # what was executed: all were granted


def test_corrected_they_count_as_much_as_the_policy_would_choose_them() -> None:
    model = massaged("corrected")
    buffer = model.rollout_buffer
    assert (buffer.actions == 1).all()
    np.testing.assert_allclose(
        model.rollout_measures.weight, np.exp(log_prob(model, buffer.actions)), rtol=1e-5
    )  # mu(1) = 1


def test_corrected_advantages_are_weighted_after_they_are_standardised() -> None:
    model = massaged("corrected")
    batch = next(iter(model.rollout_buffer.get(None)))
    own = (batch.advantages - batch.advantages.mean()) / (batch.advantages.std() + 1e-8)
    weight = model.rollout_buffer.flat(model.rollout_measures.weight)[batch.flat_index]
    np.testing.assert_allclose(model._policy_advantages(batch), own * weight, rtol=1e-5)


def test_corrected_samples_count_as_much_as_if_the_policy_had_chosen_them() -> None:
    model = massaged("corrected", env=own_env(64), massaging_schedule=0.5, n_steps=40, batch_size=64)
    weight, probability = model.rollout_measures.weight, np.exp(log_prob(model, model.rollout_buffer.actions))
    sure = probability >= 0.5  # then 1 is executed whatever was sampled
    granted = model.rollout_buffer.actions[..., 0] == 1
    np.testing.assert_allclose(weight[granted & sure], probability[granted & sure], rtol=1e-5)
    assert (weight[~granted] == 1).all()


def test_where_nothing_is_massaged_any_more_a_sample_counts_once() -> None:
    shield = ShieldActions(own_env(), Accept(), half, short=Granted, threshold=lambda k: None if k else 0.5)
    shield.max_importance = 10.0
    shield.reset()
    shield.step(np.array([0, 1, 0]))
    assert shield.importance.tolist() == [0.5] * 3
    shield.rollout = 1
    shield.step(np.array([0, 1, 0]))
    assert shield.importance.tolist() == [1] * 3


@pytest.mark.parametrize("highest", [0.3, 10.0])
def test_what_a_sample_counts_is_truncated(highest: float) -> None:
    model = massaged("corrected", max_importance=highest)
    assert model.rollout_measures.weight.max() <= highest
    assert (model.rollout_measures.weight == np.float32(0.3)).all() == (highest == 0.3)


def test_of_several_choices_all_that_differ_in_one_may_have_become_the_executed_one() -> None:
    env = own_env(actions=gym.spaces.MultiDiscrete([2, 2, 2]))
    model = massaged("corrected", env=env, massager=FirstEntry())
    seen = th.as_tensor(model.rollout_buffer.observations).flatten(0, 1)
    first = model.policy.get_distribution(seen).distribution[0].probs[:, 1].detach().numpy()
    np.testing.assert_allclose(model.rollout_measures.weight.ravel(), first, rtol=1e-5)
    np.testing.assert_allclose(
        model.rollout_buffer.log_probs, log_prob(model, model.rollout_buffer.actions), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    "space", [gym.spaces.MultiDiscrete([2, 2]), gym.spaces.Box(-1, 1, (2,))], ids=["several", "continuous"]
)
def test_where_it_cannot_be_told_how_probable_they_are_the_correction_is_refused(space: Any) -> None:
    with pytest.raises(ValueError, match="massaging must not be 'corrected' for actions in "):
        massaged("corrected", env=own_env(actions=space))


def test_numbers_that_are_not_altered_are_learnt_from_as_they_were_drawn() -> None:
    """The environment gets them clipped to its bounds, the learner does not."""

    def some(observation: Any, action: Any, policy: Any, short: Any, *, threshold: float) -> Any:
        return np.where(observation[:, :1] < 0.5, action / 2, action)

    env = own_env(16, actions=gym.spaces.Box(-1, 1, (2,)))
    buffer, altered = (
        (model := massaged("as_paper", env=env, massager=some)).rollout_buffer,
        model.rollout_measures.altered,
    )
    assert 0 < altered.mean() < 1 and np.abs(buffer.actions[altered]).max() <= 0.5
    assert np.abs(buffer.actions[~altered]).max() > 1
    np.testing.assert_allclose(buffer.log_probs, log_prob(model, buffer.actions), rtol=1e-5)


def test_log_probabilities_are_those_of_the_distribution() -> None:
    space = gym.spaces.Discrete(3)
    distribution: Any = make_proba_distribution(space).proba_distribution(th.tensor([[0.0, 1.0, 2.0]] * 2))
    wanted = distribution.log_prob(th.tensor([2, 0]))
    for action in (np.array([2, 0]), np.array([[2], [0]])):
        assert th.equal(log_probability(distribution, action), wanted)


@pytest.mark.parametrize("massaging", ["as_paper", "shield"])
def test_continuous_actions_may_be_massaged(massaging: str) -> None:
    def halve(observation: Any, action: Any, policy: Any, short: Any, *, threshold: float) -> Any:
        return action / 2

    model = massaged(massaging, env=own_env(actions=gym.spaces.Box(-1, 1, (2,))), massager=halve)
    buffer = model.rollout_buffer
    np.testing.assert_allclose(buffer.log_probs, log_prob(model, buffer.actions), rtol=1e-5)
    assert (np.abs(buffer.actions).max() <= 0.5) == (massaging == "as_paper")


def test_a_growing_threshold_stays_at_its_highest_however_long_the_training() -> None:
    schedule = MassagingSchedule(initial=0.01, factor=1.2, start_after=50, highest=0.35)
    assert [schedule(k) for k in (70, 10_000)] == [0.35, 0.35]


def test_no_action_is_massaged_before_its_time() -> None:
    model = massaged("as_paper", massaging_schedule=MassagingSchedule(initial=0.0, start_after=1))
    shares = [model.rollout_measures.altered.mean()]
    for _ in range(2):
        collect(model)
        shares.append(model.rollout_measures.altered.mean())
    assert shares[:2] == [0, 0] and shares[2] > 0
    assert model.logger.name_to_value["train/massaged"] == shares[2]


def test_a_policy_that_does_not_keep_what_it_said_is_asked_again() -> None:
    class Own(sb3.common.policies.ActorCriticPolicy):
        def forward(self, obs: Any, deterministic: bool = False) -> Any:
            found = super().forward(obs, deterministic)
            self.action_dist.proba_distribution(th.full((len(obs), 2), 5.0))
            return found

    models = []
    for policy in ("MlpPolicy", Own):
        given = settings(massager=Accept(), massaging_schedule=0.5, autograd=True)
        models.append(learned(FPPO(policy, own_env(), short=Granted, long=Age, **given)))
    assert np.array_equal(policy_weights(models[0]), policy_weights(models[1]))
