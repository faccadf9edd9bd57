"""PPO whose advantages are regularised by a step's effect on short-term and long-term fairness.

`APPO` is the advantage regularisation of Yu et al. (2022), *Policy Optimization with Advantage Regularization for
Long-Term Fairness in Decision Systems*; `FPPO` is that of Hu, Lear and Zhang (2024), *Striking a Balance in Fairness
for Dynamic Systems Through Reinforcement Learning*, with its action massaging.

The terms of the regularisation use, for each step:

* d: the short-term disparity after the step,
* d_change: its change in the step,
* long_change: the change of the long-term disparity in the step.

Terms are negative for steps that made fairness worse and positive for steps that improved it, or 0.
"""

from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.ppo.fair_modes import LearnerState
from fair_envs.baselines.ppo.massaging import Massager, Massaging, Schedule, ShieldActions
from fair_envs.baselines.ppo.minibatch import Minibatch
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.baselines.ppo.tracking import RecordSteps, restore, snapshot
from fair_envs.metrics.measures import MeasureOf
from fair_envs.support.aliases import Flags, Floats, Floats32
from fair_envs.support.parameters import NonNegative, Positive, checked

Scaling = Literal["running", "paper", "as_coded"]
TINY = 1e-8  # added to divisors (a range or a standard deviation), as in Stable-Baselines3


# ------------------------------------------------------------------------------------------------- the terms


class Changes(NamedTuple):
    """Effects of steps on fairness, tensors of the same shape; NaN where undefined.

    Attributes:
        short: Short-term disparity after the step (d).
        short_change: Change of the short-term disparity in the step (d_change); positive: it increased.
        long_change: Change of the long-term disparity in the step (long_change); positive: it increased.
    """

    short: th.Tensor
    short_change: th.Tensor
    long_change: th.Tensor


def value_thresholding_term(changes: Changes, *, delta: float) -> th.Tensor:
    """Return ``min(0, delta - d)``, which is minus the excess of d over the tolerance delta; 0 if d is undefined."""
    return nan_to_zero(th.clamp(delta - changes.short, max=0))


def decrease_in_violation_term(changes: Changes, *, delta: float) -> th.Tensor:
    """Return minus the increase of d, ``min(0, -d_change)``, for steps after which d is above the tolerance; else 0."""
    return nan_to_zero(th.where(changes.short > delta, th.clamp(-changes.short_change, max=0), 0.0))


def penalty_term(changes: Changes, *, delta: float, gated: bool = True) -> th.Tensor:
    """Return ``min(0, -long_change)``, for steps after which d is above the tolerance, or for all steps; else 0.

    This is the first case of Eq. 7 of F-PPO.

    Args:
        changes: Effects of the steps on fairness.
        delta: Tolerance of d.
        gated: Whether the term is 0 while d is within the tolerance.
    """
    penalty = th.clamp(-changes.long_change, max=0)
    return nan_to_zero(th.where(changes.short > delta, penalty, 0.0) if gated else penalty)


def bonus_term(changes: Changes, *, delta: float, gated: bool = True) -> th.Tensor:
    """Return ``max(0, -long_change)``, for steps after which d is within the tolerance, or for all steps; else 0.

    This is the second case of Eq. 7 of F-PPO.

    Args:
        changes: Effects of the steps on fairness.
        delta: Tolerance of d.
        gated: Whether the term is 0 while d is above the tolerance.
    """
    bonus = th.clamp(-changes.long_change, min=0)
    return nan_to_zero(th.where(changes.short <= delta, bonus, 0.0) if gated else bonus)


def nan_to_zero(term: th.Tensor) -> th.Tensor:
    """Return the term with undefined entries replaced by 0, which has no effect."""
    return th.nan_to_num(term, nan=0.0, posinf=None, neginf=None)


def min_max(values: th.Tensor) -> th.Tensor:
    """Return the values rescaled to 0 .. 1 by their minimum and maximum; all 0 if they are equal."""
    low = values.min()
    return (values - low) / (values.max() - low + TINY)


def add_terms(advantages: th.Tensor, terms: th.Tensor, weights: th.Tensor) -> th.Tensor:
    """Return ``A + sum_k weight_k * term_k`` (Eq. 4 of F-PPO).

    Args:
        advantages: Advantages, shape (n,).
        terms: Regularisation terms, shape (n, terms).
        weights: Weights of the terms, shape (terms,).
    """
    return advantages + terms @ weights


def add_terms_published(advantages: th.Tensor, terms: th.Tensor, weights: th.Tensor) -> th.Tensor:
    """Return the published code's sum: advantages and terms rescaled to 0 .. 1 in the minibatch, shape (n,).

    Weights are then relative to the ranges in the minibatch. A term whose values are all equal vanishes, and an outlier
    rescales all other values. The arguments are those of `add_terms`.
    """
    scaled = th.stack([min_max(term) for term in terms.unbind(1)], dim=1)
    return add_terms(min_max(advantages), scaled, weights)


# ------------------------------------------------------------------------------------------------ the learners


class RolloutMeasures(NamedTuple):
    """Values of the measures in a rollout, arrays of shape (steps, rows)."""

    short: Floats32
    short_change: Floats32
    long: Floats32
    long_change: Floats32
    altered: Flags
    weight: Floats32  # of the sample in the policy loss


class Regularised(PPO):
    """PPO that tracks a short-term and a long-term fairness measure, and can massage actions.

    This class only measures and massages; subclasses use the measures in their updates. Measures are read from the
    record of a step before the environment starts the next episode. Undefined values have no effect. The means of the
    measures over the rollout, where defined, are logged as ``train/short_term`` and ``train/long_term``, and the share
    of altered actions as ``train/massaged``.

    Massaging alters decisions, whose distribution then differs from the policy's. There are three ways to learn from
    them:

    * ``"as_paper"``: learn from the altered actions as if they had been sampled. This is biased: it raises the
      probabilities of actions because they are executed often, not because they are good.
    * ``"shield"``: learn from the sampled actions as if massaging were part of the environment. This is correct for the
      policy with its shield, which must then also be applied when the policy is used (`ShieldActions`).
    * ``"corrected"``: learn from the altered actions with importance weights, the policy's probability of an action
      over the probability of executing it. In the states reached with the shield, this is correct for the policy
      without its shield. Nothing is learned about actions that the massager never executes. Only for discrete actions.

    A saved model contains the factories of the measures and the massager, its multipliers and the number of rollouts.
    A loaded model does not continue unfinished episodes, so its measures start with new episodes. A massager must save
    its own state. The massagers of this package have no state, except a `LendingMassager` with access to labels, which
    continues to read the labels of the environment for which it was made.

    Args:
        args: Arguments of `stable_baselines3.PPO`. The environment is made by `fair_envs.make_sb3`, or is any other one
            whose infos contain `fair_envs.core.interactions.record`.
        short: Factory of the short-term fairness measure; required.
        long: Factory of the long-term fairness measure, or None.
        massager: Alters uncertain actions while experience is collected; None: no massaging. Needs rows of lanes.
        massaging_schedule: Threshold of the massager: a number, or a function of the rollout (`MassagingSchedule`).
        massaging: How to learn from altered actions.
        max_importance: Upper bound of the importance weights in ``"corrected"``.
        kwargs: Keyword arguments of `fair_envs.baselines.PPO`.

    Raises:
        ValueError: An argument is outside its range, or the environment does not return the record of interactions.
    """

    def __init__(
        self,
        *args: Any,
        short: MeasureOf | None = None,
        long: MeasureOf | None = None,
        massager: Massager | None = None,
        massaging_schedule: float | Schedule | None = None,
        massaging: Massaging = "as_paper",
        max_importance: float = 10.0,
        **kwargs: Any,
    ) -> None:
        checked("massaging", massaging, Massaging)
        if short is None and kwargs.get("_init_setup_model", True):  # a loaded model gets it later
            raise ValueError("short must be a factory of measures, got None")
        if (massager is None) != (massaging_schedule is None):
            raise ValueError(
                f"massager and massaging_schedule must be given together, got massager={massager!r} and "
                f"massaging_schedule={massaging_schedule!r}"
            )
        self.short, self.long, self.massager = short, long, massager
        self.massaging_schedule = massaging_schedule
        self.massaging, self.max_importance = massaging, float(checked("max_importance", max_importance, Positive))
        super().__init__(*args, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if lacks_probabilities(self.massaging, self.massager, self.action_space):
            raise ValueError(f"massaging must not be 'corrected' for actions in {self.action_space}")
        self.memory = LearnerState()
        self._recorder: RecordSteps | None = None
        self._shield: ShieldActions | None = None  # under the recorder
        self._of_env: VecEnv | None = None  # what they wrap

    @property
    def _reads_distribution(self) -> bool:  # type: ignore[override]
        return self.massager is not None and type(self.policy).forward is ActorCriticPolicy.forward

    @property
    def rollouts(self) -> int:
        """Number of rollouts collected so far, including those before a resumption."""
        return int(self.memory.get("rollouts", 0))

    @property
    def recorder(self) -> RecordSteps:
        """The wrapper that records the steps of a rollout; it exists from the first rollout on."""
        assert self._recorder is not None
        return self._recorder

    # ------------------------------------------------------------------------------------------- collecting

    def _wrapped_env(self, env: VecEnv) -> VecEnv:
        recorder = self._recording_env(env)
        self._cut_off: dict[tuple[int, int], NDArray[Any]] = {}  # last observations before time limits, by step and row
        starts = np.asarray(self._last_episode_starts, bool)
        recorder.set_episode_starts(starts)
        if self._shield is not None:
            self._shield.set_episode_starts(starts, self._last_obs)
            self._shield.rollout = self.rollouts
        self.rollout_measures = empty_measures(self.n_steps, self.n_envs)
        return recorder

    def _recording_env(self, env: VecEnv) -> RecordSteps:
        """Return the wrapper that records steps for the measures, reused while the environment is the same."""
        if self._recorder is None or self._of_env is not env:
            short, shielded = self.short, env
            assert short is not None
            if self.massager is not None:
                shielded = self._shield = ShieldActions(
                    env,
                    self.massager,
                    self._output,
                    short=short,
                    threshold=self.massaging_schedule,
                    max_importance=self.max_importance if self.massaging == "corrected" else None,
                )
            self._recorder = RecordSteps(shielded, [short] if self.long is None else [short, self.long])
            self._of_env = env
        return self._recorder

    @property
    def _bootstraps(self) -> bool:
        """Whether the last observations before time limits are needed, to estimate what would have come."""
        return False

    def _output(self, observation: NDArray[Any]) -> Any:
        """Return the distribution of the last sampled actions, given their observations."""
        policy: Any = self.policy
        if type(policy).forward is ActorCriticPolicy.forward:  # it has just been called and stores its distribution
            return policy.action_dist
        with th.no_grad():
            return policy.get_distribution(policy.obs_to_tensor(observation)[0])

    def _actions_to_learn(self, step: int, action: NDArray[Any], log_prob: th.Tensor) -> tuple[NDArray[Any], th.Tensor]:
        shield = self._shield
        if self._bootstraps:
            self._cut_off |= {(step, row): seen for row, seen in self.recorder.cut_off().items()}
        if step == self.n_steps - 1 and not self.for_others:
            self._measure()
        if shield is None or shield.output is None:
            return action, log_prob
        return self._executed(shield, step, action, log_prob)

    def _measure(self) -> None:
        """Let the measures follow the rollout, after its last step and before callbacks see its end."""
        recorder, measures = self.recorder, self.rollout_measures
        self._replays = recorder.replay()
        for k, replay in enumerate(self._replays):
            measures[2 * k][:] = recorder.of_rows(replay.value)
            measures[2 * k + 1][:] = recorder.of_rows(replay.value - replay.before)

    def _executed(
        self, shield: ShieldActions, step: int, action: NDArray[Any], log_prob: th.Tensor
    ) -> tuple[NDArray[Any], th.Tensor]:
        """Return the actions to learn from when actions are massaged, and their log-probabilities."""
        self.rollout_measures.altered[step] = shield.altered
        if self.massaging == "shield":
            return action, log_prob
        if self.massaging == "corrected":
            self.rollout_measures.weight[step] = shield.importance
        if shield.log_prob is None:
            return action, log_prob
        altered, executed = shield.altered, shield.executed.reshape(action.shape)
        if altered.all():  # common with one lane, where merging would take most of the time here
            return executed, shield.log_prob
        chosen = action.copy()
        chosen[altered] = executed[altered]
        return chosen, th.where(th.as_tensor(altered, device=log_prob.device), shield.log_prob, log_prob)

    def _after_rollout(self) -> None:
        measures, flat = self.rollout_measures, self.rollout_buffer.flat
        self.memory["rollouts"] = np.array(self.rollouts + 1)
        self.changes = Changes(*(flat(measures[k]) for k in (0, 1, 3)))
        self._importance = flat(measures.weight) if (measures.weight != 1).any() else None
        self.logger.record("train/short_term", mean_defined(measures.short))
        self.logger.record("train/long_term", mean_defined(measures.long))
        if self.massager is not None:
            self.logger.record("train/massaged", float(measures.altered.mean()))

    def _take(self, joint: Any, rows: slice) -> None:
        super()._take(joint, rows)
        assert self.env is not None
        self._recording_env(self.env).take(joint.recorder, rows)
        self.rollout_measures = empty_measures(self.n_steps, self.n_envs)
        self._measure()
        within = range(rows.start, rows.stop)
        self._cut_off = {(t, row - rows.start): seen for (t, row), seen in joint._cut_off.items() if row in within}

    # --------------------------------------------------------------------------------------------- updating

    def _running_deviation(self, values: Floats) -> Floats:
        """Add the values of a rollout, shape (n, k), and return the standard deviations over all rollouts so far."""
        count, mean, squares = self.memory.get("moments", np.zeros((3, values.shape[1])))
        joined = count + len(values)
        step = values.mean(axis=0) - mean
        squares = squares + ((values - values.mean(axis=0)) ** 2).sum(axis=0) + step**2 * count * len(values) / joined
        self.memory["moments"] = np.stack([joined, mean + step * len(values) / joined, squares])
        return np.asarray(np.sqrt(squares / joined) + TINY)

    def _policy_advantages(self, batch: Minibatch) -> th.Tensor:
        advantages = self._regularised(batch, self._of_turns(batch, batch.advantages))
        if self._importance is None:
            return advantages
        return advantages * self._of_turns(batch, self._importance[batch.flat_index])

    def _regularised(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        """Return the advantages for the policy loss, given PPO's advantages of the samples with a turn."""
        return self._normalised(advantages)

    # ----------------------------------------------------------------------------------------------- keeping

    def get_extra_state(self) -> list[th.Tensor]:
        """Return the state of the measures in the unfinished episodes."""
        return [] if self._recorder is None else snapshot(self._recorder.measures)

    def set_extra_state(self, state: list[th.Tensor]) -> None:
        """Restore the state of the measures in the unfinished episodes."""
        if not state or self.env is None:
            return
        recorder = self._recording_env(self.env)
        restore(recorder.measures, state)
        if self._shield is not None:  # its measure has seen the same steps
            restore(self._shield.measures, snapshot(recorder.measures[:1]))

    def _excluded_save_params(self) -> list[str]:
        own = ("_recorder", "_shield", "_of_env", "_replays", "rollout_measures", "changes", "_importance", "_cut_off")
        return [*super()._excluded_save_params(), *own, "memory"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        states, tensors = super()._get_torch_save_params()
        return [*states, "memory"], tensors


def empty_measures(steps: int, rows: int) -> RolloutMeasures:
    """Return measures for a rollout that are not yet known: NaN, with no action altered and importance weights of 1."""
    undefined = np.full((4, steps, rows), np.nan, np.float32)
    return RolloutMeasures(*undefined, np.zeros((steps, rows), bool), np.ones((steps, rows), np.float32))  # type: ignore[call-arg]


def lacks_probabilities(massaging: str, massager: Any, space: gym.Space[Any]) -> bool:
    """Return whether probabilities of executed actions are needed but cannot be computed."""
    if massaging != "corrected" or massager is None or isinstance(space, gym.spaces.Discrete):
        return False
    return not (isinstance(space, gym.spaces.MultiDiscrete) and getattr(massager, "alters_one_entry", False))


def mean_defined(values: NDArray[Any]) -> float:
    """Return the mean of the defined values, NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean(dtype=np.float64)) if len(known) else np.nan


class AdvantageRegularised(Regularised):
    """PPO that adds weighted terms to its advantages; subclasses define the terms.

    The terms can be added in three ways:

    * ``"running"``: advantages are standardised, and terms are divided by their standard deviation over all rollouts so
      far (by that of their sum if `one_scale` is true). With a weight of 1, a typical change of fairness then weighs as
      much as a typical advantage, whatever its unit.
    * ``"paper"``: as printed, ``A + weight * term``, with standardised advantages and terms in their own unit.
    * ``"as_coded"``: as in the published code, see `add_terms_published`; standardised afterwards.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        delta: Tolerated short-term disparity.
        scaling: How the terms are added.
        kwargs: Keyword arguments of `Regularised`.
    """

    one_scale = False  # whether the terms are parts of one quantity, with one standard deviation

    def __init__(self, *args: Any, delta: float = 0.05, scaling: Scaling = "running", **kwargs: Any) -> None:
        checked("scaling", scaling, Scaling)
        self.delta, self.scaling = float(checked("delta", delta, NonNegative)), scaling
        super().__init__(*args, **kwargs)

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the terms."""
        raise NotImplementedError

    def terms(self, changes: Changes) -> th.Tensor:
        """Return the terms, shape (..., terms)."""
        raise NotImplementedError

    def _after_rollout(self) -> None:
        super()._after_rollout()
        if not any(self.weights):
            return
        self._terms = self.terms(self.changes)
        self._weights = th.tensor(self.weights, device=self._terms.device, dtype=self._terms.dtype)
        if self.scaling == "running":
            self._terms = self._terms / self._unit(self._terms)

    def _unit(self, terms: th.Tensor) -> th.Tensor:
        """Return the terms' standard deviations over all rollouts so far, shape (terms,)."""
        values = terms.double().cpu().numpy()
        found = self._running_deviation(values.sum(axis=1, keepdims=True) if self.one_scale else values)
        return th.as_tensor(found, dtype=terms.dtype, device=terms.device)

    def _regularised(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        if not any(self.weights):
            return super()._regularised(batch, advantages)
        terms = self._of_turns(batch, self._terms[batch.flat_index])
        if self.scaling == "as_coded":
            if not len(advantages):
                return advantages
            return self._normalised(add_terms_published(advantages, terms, self._weights))
        return add_terms(self._normalised(advantages), terms, self._weights)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_terms", "_weights"]


class APPO(AdvantageRegularised):
    """PPO with the advantage regularisation of POCAR (Yu et al., 2022), the A-PPO of Hu, Lear and Zhang (2024).

    The advantages are ``A + value_weight * min(0, delta - d) + decrease_weight * [d > delta] min(0, -d_change)``.
    Disparities above the tolerance are penalised, and so are further increases. Both terms are computed after the step,
    as in the published code; in the paper they are computed before the step, where the first does not depend on the
    action.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        value_weight: Weight of the value-thresholding term, at least 0.
        decrease_weight: Weight of the decrease-in-violation term, at least 0.
        kwargs: Keyword arguments of `AdvantageRegularised`.
    """

    def __init__(self, *args: Any, value_weight: float = 0.25, decrease_weight: float = 0.25, **kwargs: Any) -> None:
        self.value_weight = float(checked("value_weight", value_weight, NonNegative))
        self.decrease_weight = float(checked("decrease_weight", decrease_weight, NonNegative))
        super().__init__(*args, **kwargs)

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the value-thresholding and the decrease-in-violation term."""
        return self.value_weight, self.decrease_weight

    def terms(self, changes: Changes) -> th.Tensor:
        """Return the value-thresholding and the decrease-in-violation term, shape (..., 2)."""
        return th.stack(
            [value_thresholding_term(changes, delta=self.delta), decrease_in_violation_term(changes, delta=self.delta)],
            dim=-1,
        )


class FPPO(AdvantageRegularised):
    """F-PPO (Hu, Lear and Zhang, 2024): long-term fairness by regularised advantages, short-term fairness by massaging.

    The advantages are ``A + weight * R`` (Eq. 4 and 7). While the short-term disparity exceeds ``delta``, R is
    ``min(0, -long_change)``: harm to long-term fairness is punished. Otherwise, R is ``max(0, -long_change)``:
    improvements are rewarded and harm is not punished, so actions with more variable effects are preferred.
    ``gated=False`` uses ``R = -long_change`` everywhere, which optimises the mean change. Without a massager, this is
    the ablation F-PPO-L; with a massager and weights of 0, it is F-PPO-S.

    Args:
        args: Arguments of `stable_baselines3.PPO`; ``long`` is required if a weight is above 0.
        weight: The paper's lambda, weight of the penalty and the bonus, at least 0.
        bonus_weight: Separate weight of the bonus, as in the published code, at least 0; None: ``weight``.
        gated: Whether the short-term disparity decides which of the two terms applies.
        kwargs: Keyword arguments of `AdvantageRegularised`.
    """

    one_scale = True

    def __init__(
        self, *args: Any, weight: float = 1.0, bonus_weight: float | None = None, gated: bool = True, **kwargs: Any
    ) -> None:
        self.gated = bool(checked("gated", gated, bool))
        self.weight = float(checked("weight", weight, NonNegative))
        self.bonus_weight = (
            self.weight if bonus_weight is None else float(checked("bonus_weight", bonus_weight, NonNegative))
        )
        if any(self.weights) and kwargs.get("long") is None and kwargs.get("_init_setup_model", True):
            raise ValueError("long must be given if a weight is above 0, got None")
        super().__init__(*args, **kwargs)

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the penalty and the bonus."""
        return self.weight, self.bonus_weight

    def terms(self, changes: Changes) -> th.Tensor:
        """Return the penalty and the bonus, shape (..., 2)."""
        both = [term(changes, delta=self.delta, gated=self.gated) for term in (penalty_term, bonus_term)]
        return th.stack(both, dim=-1)
