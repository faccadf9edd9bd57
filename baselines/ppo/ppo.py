"""Stable-Baselines3's PPO with hooks for fair variants.

If every agent acts in every step, or with ``skip_idle=False``, results equal Stable-Baselines3's up to rounding, and to
the bit with ``autograd=True``; tests compare the weights. A row is one entry of the vectorised environment: a lane (one
episode), or one agent of a lane.
The additions are:

* Samples of agents whose action had no effect in this step (`fair_action` is -1) are excluded from the policy loss.
  They are included in the value loss.
* Weights are checked once per rollout. If the action space is discrete, torch's argument checks of all distributions in
  the process are switched off during a rollout, because they take a fifth of the step time with one row. Sampling still
  refuses probabilities that are not finite.
* Fair variants of the updates override `PPO._policy_advantages`, `PPO._penalty`, `PPO._after_minibatch` and
  `PPO._optimizers`. Fair variants of the rollouts override `PPO._wrapped_env`, `PPO._actions_to_learn` and
  `PPO._after_rollout`. `PPO.get_extra_state` and `PPO.set_extra_state` save and restore a variant's state.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import repeat
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import stable_baselines3 as sb3
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch.distributions import Distribution
from torch.nn import functional

from fair_envs.baselines.ppo.fast import FastUpdates, acting
from fair_envs.baselines.ppo.minibatch import Minibatch, MinibatchOutput, Summary
from fair_envs.baselines.ppo.policies import GroupedPolicy
from fair_envs.core import Lanes
from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv
from fair_envs.metrics.disparity import strata_of
from fair_envs.support.aliases import Ints
from fair_envs.support.parameters import NonNegative, checked

OF_LOSS = ("_loss", "_evaluate", "_losses", "_total")
"""Methods of the loss; if a subclass overrides one, autograd computes the gradients."""


class Losses(NamedTuple):
    """The parts of PPO's loss."""

    policy: th.Tensor  # minus the clipped surrogate
    negative_entropy: th.Tensor
    values: th.Tensor  # squared error


ActionsToLearn = Callable[[int, NDArray[Any], th.Tensor], tuple[NDArray[Any], th.Tensor]]
"""Takes a step's index in the rollout, its actions and their log-probabilities; returns the actions and
log-probabilities that the buffer stores instead."""


OF_STEPS = (
    "observations",
    "actions",
    "rewards",
    "episode_starts",
    "values",
    "log_probs",
    "had_turn",
    "reward",
    "group",
    "stratum",
)
"""Arrays of a `Rollout` that steps fill, shape (steps, rows, ...)."""


class Rollout(RolloutBuffer):
    """Stable-Baselines3's rollout buffer, which also records the interactions of agents.

    Attributes:
        agents_env: The environment whose agents' interactions are recorded after each step; None: the rows are not
            agents, or the agents are not the affected individuals, and no interactions are recorded.
        actions_to_learn: Function that replaces the actions of a step to learn from; None: the sampled ones.
        had_turn: Whether the agents had a turn (their action had an effect), shape (steps, rows); all True with
            ``skip_idle=False``.
        reward: The agents' own unscaled rewards, shape (steps, rows).
        group: Groups of the agents, shape (steps, rows).
        stratum: Strata of the agents, the combinations of their legitimate factors, shape (steps, rows).
    """

    agents_env: AgentsVecEnv | None = None
    actions_to_learn: ActionsToLearn | None = None

    def reset(self) -> None:
        """Discard the rollout."""
        super().reset()
        shape = self.buffer_size, self.n_envs
        self.had_turn = np.ones(shape, bool)
        self.reward = np.zeros(shape, np.float32)
        self.group = np.zeros(shape, np.int64)
        self.stratum = np.zeros(shape, np.int64)
        self._had_turn_flat: th.Tensor | None = None
        self._samples: list[th.Tensor] = []

    def add(
        self,
        obs: NDArray[Any],
        action: NDArray[Any],
        reward: NDArray[Any],
        episode_start: NDArray[Any],
        value: th.Tensor,
        log_prob: th.Tensor,
    ) -> None:
        """Record a step."""
        if self.agents_env is not None:
            facts, step = self.agents_env.interactions, self.pos
            self.had_turn[step] = facts["action"].reshape(-1) >= 0
            self.reward[step] = self.agents_env.agent_reward.reshape(-1)
            self.group[step] = facts["group"].reshape(-1)
            self.stratum[step] = strata_of(self.agents_env.fair_spec, facts["legitimate"])[0].reshape(-1)
        if self.actions_to_learn is not None:
            action, log_prob = self.actions_to_learn(self.pos, action, log_prob)
        super().add(obs, action, reward, episode_start, value, log_prob)

    def flat(self, values: NDArray[Any]) -> th.Tensor:
        """Return values of shape (steps, rows, ...) in the order of `Minibatch.flat_index`, shape (samples, ...)."""
        flat = self.to_torch(self.swap_and_flatten(values))
        return flat.flatten() if values.ndim == 2 else flat

    def get(self, batch_size: int | None = None) -> Generator[Minibatch, None, None]:  # type: ignore[override]
        """Yield the samples once, in random order."""
        if self._had_turn_flat is None and not self.had_turn.all():
            self._had_turn_flat = self.flat(self.had_turn)
        everything: Any = next(super().get(None))
        size = batch_size or len(everything.flat_index)
        parts = [repeat(None) if column is None else th.split(column, size) for column in everything]
        yield from map(Minibatch._make, zip(*parts, strict=False))

    def _get_samples(self, batch_inds: Ints, env: Any = None) -> Minibatch:  # type: ignore[override]
        if not self._samples:  # tensors gather rows faster than arrays
            flat = (self.values, self.log_probs, self.advantages, self.returns)
            actions = self.actions.astype(np.float32, copy=False)
            columns = (self.observations, actions, *(column.reshape(-1) for column in flat))
            self._samples = [self.to_torch(column, copy=False) for column in columns]
        index = th.as_tensor(batch_inds, device=self.device)
        samples = [column.index_select(0, index) for column in self._samples]
        return Minibatch._make([*samples, index, None if self._had_turn_flat is None else self._had_turn_flat[index]])


class PPO(sb3.PPO):
    """Proximal policy optimisation (Schulman et al., 2017) as in Stable-Baselines3, with hooks.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        skip_idle: Whether samples of agents without a turn are excluded from the policy loss.
        equivariance: Weight of Fair-ER's penalty, which pulls each network's policy towards those of the other networks
            (`fair_envs.baselines.GroupedPolicy.equivariance_penalty`), at least 0. It needs a `GroupedPolicy` with
            several networks.
        autograd: Whether autograd computes the gradients, as in Stable-Baselines3, whose results are then equal to the
            bit. By default, gradients of perceptrons are computed by hand, which takes about half the time; they are
            equal up to rounding. Variants whose penalties need autograd always use it.
        kwargs: Keyword arguments of `stable_baselines3.PPO`.

    Raises:
        ValueError: ``equivariance`` is negative, or positive with a policy of one network.
    """

    policy: BasePolicy  # type: ignore[assignment]
    rollout_buffer: Rollout
    _fast: FastUpdates | None = None  # while it updates
    for_others = False  # whether only others learn from its rollouts
    _reads_distribution = False  # whether a variant reads the distribution of the last actions

    def __init__(
        self, *args: Any, skip_idle: bool = True, equivariance: float = 0.0, autograd: bool = False, **kwargs: Any
    ) -> None:
        self.skip_idle, self.autograd = skip_idle, bool(checked("autograd", autograd, bool))
        self.equivariance = float(checked("equivariance", equivariance, NonNegative))
        if kwargs.setdefault("rollout_buffer_class", Rollout) not in (Rollout, None):
            raise ValueError(f"rollout_buffer_class must be None, got {kwargs['rollout_buffer_class']!r}")
        kwargs["rollout_buffer_class"] = Rollout
        super().__init__(*args, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.equivariance and (not isinstance(self.policy, GroupedPolicy) or self.policy.groups < 2):
            raise ValueError(f"equivariance must be 0 for a policy of one network, got {self.equivariance:g}")

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Collect experience, including the interactions of each step.

        Raises:
            ValueError: The policy's weights are not finite.
        """
        finished = self.play(env, callback)
        if finished:
            self._after_rollout()
        return finished

    def play(self, env: VecEnv, callback: BaseCallback, *, outermost: Callable[[VecEnv], VecEnv] = lambda e: e) -> bool:
        """Fill the rollout buffer; return False if the callback stopped it.

        Args:
            env: The environment.
            callback: Called at each step, and at the beginning and end.
            outermost: Wraps the environment after the learner's own wrappers.

        Raises:
            ValueError: The policy's weights are not finite.
        """
        self.rollout_buffer.agents_env = agents_env_of(env)
        self.rollout_buffer.actions_to_learn = self._actions_to_learn
        check_finite(self.policy)
        discrete = isinstance(self.action_space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)
        fast = nullcontext() if self.autograd else acting(self.policy, keep_distribution=self._reads_distribution)
        with unchecked_distributions() if discrete else nullcontext(), fast:
            played = outermost(self._wrapped_env(env))
            finished = super().collect_rollouts(played, callback, self.rollout_buffer, self.n_steps)
        if finished and not self.skip_idle and not self.for_others:
            self.rollout_buffer.had_turn[:] = True
        return finished

    def join(self, learners: Sequence["PPO"]) -> None:
        """Continue the unfinished episodes of other learners, which are one part each of this one's rows.

        Args:
            learners: Learners with equal environments and equal numbers of rows.
        """
        parts = [own_lanes(learner).records for learner in learners]
        own_lanes(self).records[:] = np.concatenate(parts)
        self._last_obs = np.concatenate([np.asarray(learner._last_obs) for learner in learners])
        self._last_episode_starts = np.concatenate([np.asarray(learner._last_episode_starts) for learner in learners])

    def split(self, learners: Sequence["PPO"]) -> None:
        """Give learners their parts of a rollout, except for what critics estimate, and of the state after it."""
        for k, learner in enumerate(learners):
            learner._take(self, slice(k * learner.n_envs, (k + 1) * learner.n_envs))

    def _take(self, joint: Any, rows: slice) -> None:
        """Take the rows of a rollout, and of the state after it."""
        buffer, own = self.rollout_buffer, own_lanes(self)
        buffer.reset()
        for name in (*OF_STEPS, "advantages", "returns"):
            setattr(buffer, name, np.ascontiguousarray(getattr(joint.rollout_buffer, name)[:, rows]))
        if not self.skip_idle:
            buffer.had_turn[:] = True
        buffer.pos, buffer.full = buffer.buffer_size, True
        assert self.env is not None
        buffer.agents_env = agents_env_of(self.env)
        own.records[:] = own_lanes(joint).records[self._lanes_of(rows)]
        self._last_obs = joint._last_obs[rows].copy()
        self._last_episode_starts = joint._last_episode_starts[rows].copy()
        self.num_timesteps += buffer.actions.shape[0] * self.n_envs

    def _lanes_of(self, rows: slice) -> slice:
        """Return the lanes of rows of a learner with equal lanes."""
        each = self.n_envs // own_lanes(self).count
        return slice(rows.start // each, rows.stop // each)

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[Any] | None = None) -> None:
        if any(infos):  # most are empty
            super()._update_info_buffer(infos, dones)

    def train(self) -> None:
        """Update the networks on the rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self._optimizers())
        self._records: defaultdict[str, list[float]] = defaultdict(list)
        self._fast = FastUpdates(self.policy) if self._can_be_fast() else None
        try:
            for _ in range(self.n_epochs):
                self._records["approx_kl"].clear()
                finished = all(self._train_on(batch) for batch in self.rollout_buffer.get(self.batch_size))
                self._n_updates += 1
                if not finished:  # stopped early by `target_kl`
                    break
        finally:
            if self._fast is not None:
                self._fast.close()
                self._fast = None
        self._log_training()

    def _can_be_fast(self) -> bool:
        """Return whether gradients need no autograd."""
        changed = self.equivariance or self.clip_range_vf is not None or self._has_penalty
        own_loss = any(getattr(type(self), name) is not getattr(PPO, name) for name in OF_LOSS)
        return not self.autograd and not changed and not own_loss and FastUpdates.suits(self.policy)

    def _train_on(self, batch: Minibatch) -> bool:
        """Take one gradient step; return False if the policy has changed too much to continue."""
        if self._fast is None:
            loss, found = self._loss(batch)
        else:
            loss, found = (
                None,
                self._fast.compute(
                    batch,
                    self._policy_advantages(batch),
                    clip=self.clip_range(self._current_progress_remaining),  # type: ignore[operator]
                    ent_coef=self.ent_coef,
                    vf_coef=self.vf_coef,
                ),
            )
        self._record(found, loss)
        if self.target_kl is not None and found.approx_kl > 1.5 * self.target_kl:
            return False
        if self._fast is not None:
            self._fast.step(self.max_grad_norm)
        elif loss is not None:
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            th.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._after_minibatch(batch)
        return True

    def _loss(self, batch: Minibatch) -> tuple[th.Tensor, Summary]:
        """Return the loss of a minibatch, and means of its parts."""
        output = self._evaluate(batch)
        losses = self._losses(output)
        loss = self._total(losses)
        penalty = self._penalty(batch, output)
        if penalty is not None:
            loss = loss + penalty
        if self.equivariance:
            loss = loss + self.equivariance * self._equivariance_penalty(batch)
        clip = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        with th.no_grad():
            ratio = th.exp(output.log_ratio)
            divergence, clipped = mean((ratio - 1) - output.log_ratio), mean((th.abs(ratio - 1) > clip).float())
        means = losses.policy, losses.negative_entropy, losses.values, divergence, clipped
        return loss, Summary(*(value.item() for value in means))

    def _equivariance_penalty(self, batch: Minibatch) -> th.Tensor:
        """Return the mean distance of the networks' policies over the samples with a turn, see `GroupedPolicy`."""
        found = mean(self.policy.equivariance_penalty(self._of_turns(batch, batch.observations)))  # type: ignore[operator]
        self._records["equivariance_penalty"].append(found.item())
        return found

    def _evaluate(self, batch: Minibatch) -> MinibatchOutput:
        actions = batch.actions
        if isinstance(self.action_space, gym.spaces.Discrete):
            actions = actions.long().flatten()
        values, log_prob, entropy = self.policy.evaluate_actions(batch.observations, actions)  # type: ignore[operator]
        values = values.flatten()
        if self.clip_range_vf is not None:
            limit = self.clip_range_vf(self._current_progress_remaining)  # type: ignore[operator]
            values = batch.old_values + th.clamp(values - batch.old_values, -limit, limit)
        log_prob = self._of_turns(batch, log_prob)
        return MinibatchOutput(
            advantages=self._policy_advantages(batch),
            log_prob=log_prob,
            log_ratio=log_prob - self._of_turns(batch, batch.old_log_prob),
            entropy=None if entropy is None else self._of_turns(batch, entropy),
            values=values,
            value_targets=batch.returns,
        )

    def _losses(self, output: MinibatchOutput) -> Losses:
        """Return the negative clipped surrogate, the negative entropy and the squared error of the values."""
        clip = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        advantages, ratio = output.advantages, th.exp(output.log_ratio)
        negative_entropy = output.log_prob if output.entropy is None else -output.entropy
        return Losses(
            policy=-mean(th.min(advantages * ratio, advantages * th.clamp(ratio, 1 - clip, 1 + clip))),
            negative_entropy=mean(negative_entropy),
            values=functional.mse_loss(output.value_targets, output.values),
        )

    def _total(self, losses: Losses) -> th.Tensor:
        """Return the loss of PPO."""
        return losses.policy + self.ent_coef * losses.negative_entropy + self.vf_coef * losses.values

    def _record(self, found: Summary, loss: th.Tensor | None) -> None:
        total = found.policy + self.ent_coef * found.negative_entropy + self.vf_coef * found.values
        for name, value in (
            ("policy_gradient_loss", found.policy),
            ("value_loss", found.values),
            ("entropy_loss", found.negative_entropy),
            ("clip_fraction", found.clipped),
            ("approx_kl", found.approx_kl),
            ("loss", total if loss is None else loss.item()),
        ):
            self._records[name].append(value)

    def _of_turns(self, batch: Minibatch, values: th.Tensor) -> th.Tensor:
        """Return the entries of ``values`` for the samples with a turn."""
        return values if batch.had_turn is None else values[batch.had_turn]

    def _policy_advantages(self, batch: Minibatch) -> th.Tensor:
        """Return the advantages for the policy loss, for the samples with a turn."""
        return self._normalised(self._of_turns(batch, batch.advantages))

    def _normalised(self, advantages: th.Tensor, *, scale_of: th.Tensor | None = None) -> th.Tensor:
        """Return centred advantages divided by their standard deviation, or by that of ``scale_of``.

        They do not change if `normalize_advantage` is False or there are fewer than 2.
        """
        if not self.normalize_advantage or len(advantages) < 2:
            return advantages
        return (advantages - advantages.mean()) / self._scale(advantages if scale_of is None else scale_of)

    def _scale(self, advantages: th.Tensor) -> th.Tensor | float:
        """Return the divisor of normalised advantages: their standard deviation, or 1 if they are not normalised."""
        return advantages.std() + 1e-8 if self.normalize_advantage and len(advantages) > 1 else 1.0

    def _optimizers(self) -> list[th.optim.Optimizer]:
        """Return the optimisers to which the learning rate schedule applies."""
        return [self.policy.optimizer]

    def _wrapped_env(self, env: VecEnv) -> VecEnv:
        """Return the environment for a new rollout; variants may wrap it."""
        return env

    def _actions_to_learn(self, step: int, action: NDArray[Any], log_prob: th.Tensor) -> tuple[NDArray[Any], th.Tensor]:
        """Return what to learn from in the latest step, its actions and log-probabilities; variants may replace them.

        Args:
            step: Index of the step in the rollout.
            action: The sampled actions, shape (rows, ...).
            log_prob: Logarithms of their probabilities, shape (rows,).
        """
        return action, log_prob

    def get_extra_state(self) -> list[th.Tensor]:
        """Return what a variant stores about the unfinished episodes, for a checkpoint."""
        return []

    def set_extra_state(self, state: list[th.Tensor]) -> None:
        """Restore what `get_extra_state` returned."""

    def _after_rollout(self) -> None:
        """Hook for variants, called after a rollout and before the updates."""

    @property
    def _has_penalty(self) -> bool:
        """Whether `_penalty` can return a term."""
        return type(self)._penalty is not PPO._penalty

    def _penalty(self, batch: Minibatch, output: MinibatchOutput) -> th.Tensor | None:
        """Return a term that a variant adds to the loss, or None."""
        return None

    def _after_minibatch(self, batch: Minibatch) -> None:
        """Hook for variants, called after each gradient step."""

    def _log_training(self) -> None:
        for name, values in self._records.items():
            self.logger.record(f"train/{name}", values[-1] if name == "loss" else float(np.mean(values)))
        buffer = self.rollout_buffer
        explained = explained_variance(buffer.values.flatten(), buffer.returns.flatten())
        self.logger.record("train/explained_variance", explained)
        if isinstance(log_std := getattr(self.policy, "log_std", None), th.Tensor):
            self.logger.record("train/std", th.exp(log_std).mean().item())
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name in ("clip_range", "clip_range_vf"):
            if (schedule := getattr(self, name)) is not None:
                self.logger.record(f"train/{name}", schedule(self._current_progress_remaining))


def mean(values: th.Tensor) -> th.Tensor:
    """Return the mean, or 0 if there are no values, as in a minibatch in which no agent had a turn."""
    return values.mean() if len(values) else values.sum()


def check_finite(policy: BasePolicy) -> None:
    """Raise ValueError unless all weights of a policy are finite."""
    for name, weights in policy.named_parameters():
        if not th.isfinite(weights).all():
            raise ValueError(f"policy must have finite weights, got others in {name}: the training has diverged")


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Disable torch's checks of the arguments of distributions in the whole process, as a context."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


def lanes_env_of(env: VecEnv) -> LanesVecEnv | None:
    """Return the environment under the wrappers if it reports interactions as arrays, else None."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return env if isinstance(env, LanesVecEnv) else None


def own_lanes(learner: BaseAlgorithm) -> Lanes:
    """Return the lanes of a learner's environment, which is one of this package in one world."""
    found = None if learner.env is None else lanes_env_of(learner.env)
    assert found is not None
    assert isinstance(found.lanes, Lanes)
    return found.lanes


def agents_env_of(env: VecEnv) -> AgentsVecEnv | None:
    """Return the environment under the wrappers if it reports one interaction for each of its rows, else None."""
    found = lanes_env_of(env)
    if isinstance(found, AgentsVecEnv) and found.fair_spec.individuals == found.lanes.agents:
        return found
    return None
