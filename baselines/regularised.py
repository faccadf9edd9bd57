"""PPO whose advantages are regularised by what a step did to short-term and long-term fairness.

`APPO` is the advantage regularisation of Yu et al. (2022), *Policy Optimization with Advantage Regularization for
Long-Term Fairness in Decision Systems*; `FPPO` is that of Hu, Lear and Zhang (2024), *Striking a Balance in Fairness
for Dynamic Systems Through Reinforcement Learning*, with its action massaging.

Per step, with the measures of fairness after it and the change that it made:

* d: the short-term disparity, dd: its change,
* l: the change of the long-term disparity,

a term of the regularisation is at most 0 where the step made things worse, at least 0 where it made them better.
"""

from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.aliases import Flags, Floats32
from fair_envs.baselines.fair_modes import Memory
from fair_envs.baselines.following import FollowMeasures, MeasureOf, restore, snapshot
from fair_envs.baselines.massaging import Massager, Massaging, Schedule, ShieldActions
from fair_envs.baselines.ppo import PPO, Minibatch
from fair_envs.parameters import NonNegative, Positive, checked

Scaling = Literal["running", "paper", "as_coded"]
TINY = 1e-8  # in divisions by a range or a standard deviation, as in Stable-Baselines3


# ------------------------------------------------------------------------------------------------- the terms


class Changes(NamedTuple):
    """What steps did to fairness, tensors of one shape; NaN where it is undefined.

    Attributes:
        short: The short-term disparity after the step (d).
        short_change: By how much the step raised it (dd).
        long_change: By how much the step raised the long-term disparity (l).
    """

    short: th.Tensor
    short_change: th.Tensor
    long_change: th.Tensor


def value_term(changes: Changes, *, delta: float) -> th.Tensor:
    """Return ``min(0, delta - d)``: what the short-term disparity exceeds the tolerance by, negative; 0 if unknown."""
    return defined(th.clamp(delta - changes.short, max=0))


def decrease_term(changes: Changes, *, delta: float) -> th.Tensor:
    """Return ``min(0, -dd)`` where d exceeds the tolerance, else 0: it got worse still; 0 if unknown."""
    return defined(th.where(changes.short > delta, th.clamp(-changes.short_change, max=0), 0.0))


def penalty_term(changes: Changes, *, delta: float, gated: bool = True) -> th.Tensor:
    """Return ``min(0, -l)`` where d exceeds the tolerance, else 0 (Eq. 7 of F-PPO), or everywhere; 0 if unknown."""
    penalty = th.clamp(-changes.long_change, max=0)
    return defined(th.where(changes.short > delta, penalty, 0.0) if gated else penalty)


def bonus_term(changes: Changes, *, delta: float, gated: bool = True) -> th.Tensor:
    """Return ``max(0, -l)`` where d is within the tolerance, else 0 (Eq. 7 of F-PPO), or everywhere; 0 if unknown."""
    bonus = th.clamp(-changes.long_change, min=0)
    return defined(th.where(changes.short <= delta, bonus, 0.0) if gated else bonus)


def defined(term: th.Tensor) -> th.Tensor:
    """Return the term with 0, which has no effect, where it is undefined."""
    return th.nan_to_num(term, nan=0.0, posinf=None, neginf=None)


def min_max(values: th.Tensor) -> th.Tensor:
    """Return the values' places between the least and the greatest of them, 0 to 1; all 0 where they are equal."""
    low = values.min()
    return (values - low) / (values.max() - low + TINY)


def added(advantages: th.Tensor, terms: th.Tensor, weights: th.Tensor) -> th.Tensor:
    """Return ``A + sum_k weight_k * term_k`` (Eq. 4 of F-PPO).

    Args:
        advantages: Shape (n,).
        terms: Shape (n, terms).
        weights: Shape (terms,).
    """
    return advantages + terms @ weights


def added_as_coded(advantages: th.Tensor, terms: th.Tensor, weights: th.Tensor) -> th.Tensor:
    """Return what the published code adds up: advantages and terms rescaled to 0 .. 1 in the minibatch, shape (n,).

    A weight then is relative to the range of the minibatch; a term of which all values are equal vanishes, and an
    outlier rescales all others. Arguments as for `added`.
    """
    scaled = th.stack([min_max(term) for term in terms.unbind(1)], dim=1)
    return added(min_max(advantages), scaled, weights)


# ------------------------------------------------------------------------------------------------ the learners


class Recorded(NamedTuple):
    """What the measures said in a rollout, arrays of shape (steps, rows)."""

    short: Floats32
    short_change: Floats32
    long: Floats32
    long_change: Floats32
    altered: Flags
    weight: Floats32  # of the sample in the policy loss


class Regularised(PPO):
    """PPO that follows a short-term and a long-term measure of fairness, and may massage actions.

    By itself it only follows and massages; subclasses make something of what the measures say. Measures are read from
    the facts of a step before an episode that it ended gives way to the next. Where they are undefined they have no
    effect. Logged are ``train/short_term`` and ``train/long_term``, their means over the rollout where they are
    defined, and ``train/massaged``, the share of altered actions.

    Massaging alters decisions, which are then not distributed as the policy says. What is learnt from them:

    * ``"as_paper"``: the altered actions, as if they had been sampled. That is biased: it raises the probabilities of
      actions because they are executed often, not because they are good.
    * ``"shield"``: the sampled actions, as if massaging were part of the environment. That is right for the policy
      behind the shield, which then is to be kept where the policy is used (`ShieldActions`).
    * ``"corrected"``: the altered actions, weighted by how much more probable they are in the policy than they are
      executed. In the states that the shield leads to that is right for what the policy does by itself; nothing is
      learnt of actions that the massager never lets through. Only for discrete actions.

    A saved model keeps the measures' and the massager's makers, its multipliers and how many rollouts it has seen;
    episodes that were under way are not continued where it is loaded, so the measures begin anew with them. What a
    massager itself remembers is its own to keep; those of this package remember nothing, but for a `LendingMassager`
    that knows labels, which goes on to read those of the environment that it was made for.

    Args:
        args: As for `stable_baselines3.PPO`. The environment is `fair_envs.make_sb3`, or any other whose infos hold
            `fair_envs.core.interactions.record`.
        short: Makes the measure of short-term fairness; it must be given.
        long: Makes that of long-term fairness, or None.
        massager: Alters unsure actions while experience is collected; None: none are. Needs rows of lanes.
        massaging_schedule: What it calls unsure: a number, or by rollout (`MassagingSchedule`).
        massaging: What is learnt from altered actions.
        max_importance: What a sample counts at most in ``"corrected"``.
        kwargs: As for `fair_envs.baselines.PPO`.

    Raises:
        ValueError: An argument outside its range, or an environment that tells no facts.
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
        if short is None and kwargs.get("_init_setup_model", True):  # a model that is loaded gets it later
            raise ValueError("short must make a measure, got None")
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
        if massaging_refused(self.massaging, self.massager, self.action_space):
            raise ValueError(f"massaging must not be 'corrected' for actions in {self.action_space}")
        self.memory = Memory()
        self._following: FollowMeasures | None = None

    @property
    def rollouts(self) -> int:
        """How many rollouts have been collected in the learner's life."""
        return int(self.memory.get("rollouts", 0))

    # ------------------------------------------------------------------------------------------- collecting

    def _played(self, env: VecEnv) -> VecEnv:
        following = self._followed(env)
        starts = np.asarray(self._last_episode_starts, bool)
        if isinstance(following, ShieldActions):
            following.at(starts, self._last_obs)
            following.rollout = self.rollouts
        else:
            following.at(starts)
        self.recorded = blank(self.n_steps, self.n_envs)
        return following

    def _followed(self, env: VecEnv) -> FollowMeasures:
        """Return what follows the measures in an environment, the same as before while the environment is."""
        if self._following is None or self._following.venv is not env:
            short = self.short
            assert short is not None
            makers = [short] if self.long is None else [short, self.long]
            if self.massager is None:
                self._following = FollowMeasures(env, makers)
            else:
                self._following = ShieldActions(
                    env,
                    self.massager,
                    self._said,
                    short=short,
                    threshold=self.massaging_schedule,
                    others=makers[1:],
                    max_importance=self.max_importance if self.massaging == "corrected" else None,
                )
        return self._following

    def _said(self, observation: NDArray[Any]) -> Any:
        """Return the distribution that the last actions were drawn from, at these observations."""
        policy: Any = self.policy
        if type(policy).forward is ActorCriticPolicy.forward:  # it has just been called, and keeps it
            return policy.action_dist
        with th.no_grad():
            return policy.get_distribution(policy.obs_to_tensor(observation)[0])

    def _taken(self, step: int, action: NDArray[Any], log_prob: th.Tensor) -> tuple[NDArray[Any], th.Tensor]:
        following, recorded = self._following, self.recorded
        assert following is not None
        of_rows = following.of_rows
        for k, measure in enumerate(following.measures):
            recorded[2 * k][step] = of_rows(measure.value)
            recorded[2 * k + 1][step] = of_rows(measure.value - measure.before)
        if isinstance(following, ShieldActions) and following.output is not None:
            return self._executed(following, step, action, log_prob)
        return action, log_prob

    def _executed(
        self, shield: ShieldActions, step: int, action: NDArray[Any], log_prob: th.Tensor
    ) -> tuple[NDArray[Any], th.Tensor]:
        """Return the actions to learn from where a massager was at work, and their log-probabilities."""
        self.recorded.altered[step] = shield.altered
        if self.massaging == "shield":
            return action, log_prob
        if self.massaging == "corrected":
            self.recorded.weight[step] = shield.importance
        if shield.log_prob is None:
            return action, log_prob
        altered, executed = shield.altered, shield.executed.reshape(action.shape)
        if altered.all():  # as mostly with one lane, where bringing them together takes longer than all else here
            return executed, shield.log_prob
        chosen = action.copy()
        chosen[altered] = executed[altered]
        return chosen, th.where(th.as_tensor(altered, device=log_prob.device), shield.log_prob, log_prob)

    def _after_rollout(self) -> None:
        recorded, flat = self.recorded, self.rollout_buffer.flat
        self.memory["rollouts"] = np.array(self.rollouts + 1)
        self.changes = Changes(*(flat(recorded[k]) for k in (0, 1, 3)))
        self._importance = flat(recorded.weight) if (recorded.weight != 1).any() else None
        self.logger.record("train/short_term", mean_defined(recorded.short))
        self.logger.record("train/long_term", mean_defined(recorded.long))
        if self.massager is not None:
            self.logger.record("train/massaged", float(recorded.altered.mean()))

    # --------------------------------------------------------------------------------------------- updating

    def _policy_advantages(self, batch: Minibatch) -> th.Tensor:
        advantages = self._regularised(batch, self._of_turns(batch, batch.advantages))
        if self._importance is None:
            return advantages
        return advantages * self._of_turns(batch, self._importance[batch.place])

    def _regularised(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        """Return the advantages that the policy follows; ``own`` are those of the samples that had a turn."""
        return self._normalised(own)

    # ----------------------------------------------------------------------------------------------- keeping

    def carried(self) -> list[th.Tensor]:
        """Return what the measures know of the episodes that are under way."""
        return [] if self._following is None else snapshot(self._following.measures)

    def carry(self, state: list[th.Tensor]) -> None:
        """Go on with the episodes that were under way in the environment."""
        if state and self.env is not None:
            restore(self._followed(self.env).measures, state)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_following", "recorded", "changes", "_importance", "memory"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        states, tensors = super()._get_torch_save_params()
        return [*states, "memory"], tensors


def blank(steps: int, rows: int) -> Recorded:
    """Return the record of a rollout of which nothing is known yet."""
    unknown = np.full((4, steps, rows), np.nan, np.float32)
    return Recorded(*unknown, np.zeros((steps, rows), bool), np.ones((steps, rows), np.float32))  # type: ignore[call-arg]


def massaging_refused(massaging: str, massager: Any, space: gym.Space[Any]) -> bool:
    """Return whether what is executed cannot be told how probable it is, though it is asked for."""
    if massaging != "corrected" or massager is None or isinstance(space, gym.spaces.Discrete):
        return False
    return not (isinstance(space, gym.spaces.MultiDiscrete) and getattr(massager, "alters_one_entry", False))


def mean_defined(values: NDArray[Any]) -> float:
    """Return the mean of what is defined, NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean(dtype=np.float64)) if len(known) else np.nan


class AdvantageRegularised(Regularised):
    """PPO whose advantages have weighted terms added to them; subclasses say which.

    How they are added:

    * ``"running"``: advantages are standardised first, terms are divided by their standard deviation over all rollouts
      so far (those that `alike` says are one quantity by a common one). A weight of 1 lets a typical change of fairness
      count as much as a typical advantage, whatever unit it has.
    * ``"paper"``: as printed, ``A + weight * term``, on standardised advantages and with the terms in their own unit.
    * ``"as_coded"``: as in the published code, see `added_as_coded`; standardised afterwards.

    Args:
        args: As for `stable_baselines3.PPO`.
        delta: The tolerance: how much short-term disparity is accepted.
        scaling: How the terms are added.
        kwargs: As for `Regularised`.
    """

    alike = False  # whether the terms are parts of one quantity

    def __init__(self, *args: Any, delta: float = 0.05, scaling: Scaling = "running", **kwargs: Any) -> None:
        checked("scaling", scaling, Scaling)
        self.delta, self.scaling = float(checked("delta", delta, NonNegative)), scaling
        super().__init__(*args, **kwargs)

    @property
    def weights(self) -> tuple[float, ...]:
        """What the terms are multiplied by."""
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
        if self.alike:
            values = values.sum(axis=1, keepdims=True)
        count, mean, squares = self.memory.get("moments", np.zeros((3, values.shape[1])))
        joined = count + len(values)
        step = values.mean(axis=0) - mean
        squares = squares + ((values - values.mean(axis=0)) ** 2).sum(axis=0) + step**2 * count * len(values) / joined
        self.memory["moments"] = np.stack([joined, mean + step * len(values) / joined, squares])
        return th.as_tensor(np.sqrt(squares / joined) + TINY, dtype=terms.dtype, device=terms.device)

    def _regularised(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        if not any(self.weights):
            return super()._regularised(batch, own)
        terms = self._of_turns(batch, self._terms[batch.place])
        if self.scaling == "as_coded":
            return self._normalised(added_as_coded(own, terms, self._weights)) if len(own) else own
        return added(self._normalised(own), terms, self._weights)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_terms", "_weights"]


class APPO(AdvantageRegularised):
    """PPO with the advantage regularisation of POCAR (Yu et al., 2022), the A-PPO of Hu, Lear and Zhang (2024).

    ``A + value_weight * min(0, delta - d) + decrease_weight * [d > delta] min(0, -dd)``: being above the tolerance
    costs, and so does going further. Both are taken after the step, as in the published code; the paper takes them
    before it, where the first does not depend on the action.

    Args:
        args: As for `stable_baselines3.PPO`.
        value_weight: Of the value-thresholding term, at least 0.
        decrease_weight: Of the decrease-in-violation term, at least 0.
        kwargs: As for `AdvantageRegularised`.
    """

    def __init__(self, *args: Any, value_weight: float = 0.25, decrease_weight: float = 0.25, **kwargs: Any) -> None:
        self.value_weight = float(checked("value_weight", value_weight, NonNegative))
        self.decrease_weight = float(checked("decrease_weight", decrease_weight, NonNegative))
        super().__init__(*args, **kwargs)

    @property
    def weights(self) -> tuple[float, ...]:
        """Those of the value-thresholding and of the decrease-in-violation term."""
        return self.value_weight, self.decrease_weight

    def terms(self, changes: Changes) -> th.Tensor:
        """Return the value-thresholding and the decrease-in-violation term, shape (..., 2)."""
        return th.stack([value_term(changes, delta=self.delta), decrease_term(changes, delta=self.delta)], dim=-1)


class FPPO(AdvantageRegularised):
    """F-PPO (Hu, Lear and Zhang, 2024): long-term fairness by regularised advantages, short-term fairness by massaging.

    ``A + weight * R`` with ``R = min(0, -l)`` where the short-term disparity exceeds ``delta`` and ``max(0, -l)`` where
    it does not (Eq. 4 and 7). Within the tolerance harm to the long term thus costs nothing: of two actions that change
    it as much on average, the one whose changes vary more is preferred. ``gated=False`` takes ``R = -l`` everywhere,
    which asks for the change on average. Without a massager it is the ablation F-PPO-L, with one and weights of 0
    F-PPO-S.

    Args:
        args: As for `stable_baselines3.PPO`; ``long`` is needed where a weight is above 0.
        weight: The paper's lambda, of the penalty and of the bonus, at least 0.
        bonus_weight: Of the bonus, if it has another one, as in the published code; at least 0.
        gated: Whether the short-term disparity says which of the two counts.
        kwargs: As for `AdvantageRegularised`.
    """

    alike = True

    def __init__(
        self, *args: Any, weight: float = 1.0, bonus_weight: float | None = None, gated: bool = True, **kwargs: Any
    ) -> None:
        self.gated = bool(checked("gated", gated, bool))
        self.weight = float(checked("weight", weight, NonNegative))
        self.bonus_weight = (
            self.weight if bonus_weight is None else float(checked("bonus_weight", bonus_weight, NonNegative))
        )
        if any(self.weights) and kwargs.get("long") is None and kwargs.get("_init_setup_model", True):
            raise ValueError("long must be given where a weight is above 0, got None")
        super().__init__(*args, **kwargs)

    @property
    def weights(self) -> tuple[float, ...]:
        """Those of the penalty and of the bonus."""
        return self.weight, self.bonus_weight

    def terms(self, changes: Changes) -> th.Tensor:
        """Return the penalty and the bonus, shape (..., 2)."""
        both = [term(changes, delta=self.delta, gated=self.gated) for term in (penalty_term, bonus_term)]
        return th.stack(both, dim=-1)
