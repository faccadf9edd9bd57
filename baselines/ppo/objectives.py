"""PPO that maximises a function of several expected returns, see `fair_envs.baselines.ppo.functions`."""

import dataclasses
from typing import Any, Literal

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.ppo.costs import Credit, cost_advantages
from fair_envs.baselines.ppo.functions import BenefitRate, Controller, Lagrangian, Objective, Reward
from fair_envs.baselines.ppo.gradients import ManualBackprop
from fair_envs.baselines.ppo.minibatch import Minibatch
from fair_envs.baselines.ppo.ppo import agents_env_of
from fair_envs.baselines.ppo.regularised import Regularised, mean_defined
from fair_envs.baselines.ppo.tracking import RecordSteps
from fair_envs.metrics.disparity import cell_sums
from fair_envs.metrics.measures import MeasureOf, Replay
from fair_envs.metrics.rates import RateMeasure
from fair_envs.support.aliases import Floats, Floats32
from fair_envs.support.parameters import NonNegative, PositiveInt, checked

Profile = Literal["recommended", "published"]

BATCHES, SMALLEST, LARGEST = 8, 512, 2048
"""Number of minibatches of the critic of streams in a pass over a rollout, and bounds of their size."""

ROWS = 2048
"""Number of observations that the critic of streams evaluates at a time."""


class StreamCritic(th.nn.Module):
    """A critic with one output for each stream; it has its own optimiser and does not use PPO's random numbers.

    Outputs are in units of the running standard deviation of each stream's targets.

    Args:
        inputs: Number of entries of an observation.
        streams: Number of outputs (K).
        learning_rate: Learning rate of Adam.
        seed: Seed of the weights and minibatches.
        hidden: Units in each of the two hidden layers.
    """

    scale: th.Tensor

    def __init__(self, inputs: int, streams: int, *, learning_rate: float, seed: int, hidden: int = 64) -> None:
        with th.random.fork_rng(devices=[]):
            th.manual_seed(seed)
            super().__init__()
            self.network = th.nn.Sequential(
                th.nn.Linear(inputs, hidden),
                th.nn.Tanh(),
                th.nn.Linear(hidden, hidden),
                th.nn.Tanh(),
                th.nn.Linear(hidden, streams),
            )
        self.register_buffer("scale", th.zeros(streams))
        self.optimizer = th.optim.Adam(self.parameters(), lr=learning_rate, fused=True)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Return the expected discounted sums of the streams, shape (n, K)."""
        return self.network(observations) * self.scale  # type: ignore[no-any-return]

    def predict(self, observations: NDArray[Any]) -> Floats:
        """Return the expected sums for observations of shape (steps, rows, ...), shape (steps, rows, K).

        They are computed for about `ROWS` observations at a time, which fit in the CPU cache.
        """
        steps, rows = observations.shape[:2]
        flat = th.as_tensor(observations.reshape(steps * rows, -1), dtype=th.float32)
        with th.no_grad():
            found = th.cat([self(flat[first : first + ROWS]) for first in range(0, len(flat), ROWS)])
        return found.numpy().reshape(steps, rows, -1).astype(np.float64)

    def fit(
        self,
        observations: th.Tensor,
        targets: th.Tensor,
        *,
        epochs: int,
        rng: np.random.Generator,
        max_grad_norm: float,
    ) -> float:
        """Fit the targets, shape (n, K), in minibatches; return the mean loss, in units of the targets' variance."""
        spread = targets.std(dim=0)
        self.scale = spread if not self.scale.any() else 0.9 * self.scale + 0.1 * spread
        goal = targets / self.scale.clamp(min=1e-8)
        losses, size = [], min(LARGEST, max(SMALLEST, len(goal) // BATCHES))
        parameters = list(self.network.parameters())
        for parameter in parameters:
            parameter.grad = th.zeros_like(parameter)
        backprop = ManualBackprop(self.network)
        for _ in range(epochs):
            order = rng.permutation(len(goal))
            for first in range(0, len(order), size):
                place = th.from_numpy(order[first : first + size])
                seen, wanted = observations.index_select(0, place), goal.index_select(0, place)
                with th.no_grad():
                    apart = backprop.forward(seen) - wanted
                    backprop.backward(2 * apart / apart.numel(), to_input=False)
                    th.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
                    self.optimizer.step()
                    losses.append(apart.square().mean().item())
        return float(np.mean(losses))


class ObjectivePPO(Regularised):
    """PPO for a function F of expected returns: of the reward, and of each group's benefit and demand.

    After each rollout, the streams' means J are estimated (an exponential mean over rollouts), and dF/dJ weights the
    streams' generalised advantages. A critic with one head for each stream estimates the latter; the reward has PPO's
    own critic. Only the combined advantage is normalised. With one stream, the reward, the result is that of
    Stable-Baselines3's PPO, to the bit with ``autograd=True``.

    If rows are agents, the benefits and demands of a lane's groups belong to all its rows. Each agent's own share in
    those of its group has separate heads: its effect is far less noisy than that on the other agents. With
    ``credit="own"``, it is the only share that an agent learns from. J_r is the mean reward of a row, so the group
    streams are multiplied by the number of agents to be on the scale of an agent's own reward.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        objective: The function F.
        rate: Factory of the `RateMeasure` whose benefits and demands are the streams.
        cost: Factory of a further measure, whose value in each step is a stream, for a `Lagrangian`; or None.
        half_life: Number of rollouts after which an estimate of J has half its weight; 0: only the last rollout counts.
        controller: Sets the multiplier of a `Lagrangian`.
        critic_epochs: Passes of the critic of streams over each rollout.
        credit: For rows of agents. ``"common"``: every agent learns from the benefits and demands of all. ``"own"``: it
            learns only from its own. This has far less noise, but omits its effect on the other agents, so the gradient
            is not that of F where agents help or hinder each other.
        profile: ``"published"``: as in the published code of ELBERT, each stream's advantage is normalised in the
            minibatch before they are combined, J are sums per episode in the last rollout, and the combination is not
            normalised. The weights of the streams are then not dF/dJ, and useful values of ``alpha`` differ by orders
            of magnitude between environments.
        kwargs: Keyword arguments of `fair_envs.baselines.PPO`.

    Raises:
        ValueError: An argument is outside its range, or the environment has rows that the measure cannot follow.
    """

    def __init__(
        self,
        *args: Any,
        objective: Objective | None = None,
        rate: MeasureOf | None = None,
        cost: MeasureOf | None = None,
        half_life: float = 2.0,
        controller: Controller | None = None,
        critic_epochs: int = 1,
        credit: Credit = "common",
        profile: Profile = "recommended",
        **kwargs: Any,
    ) -> None:
        self.objective = Reward() if objective is None else objective
        self.half_life = float(checked("half_life", half_life, NonNegative))
        self.controller = Controller() if controller is None else controller
        self.critic_epochs = checked("critic_epochs", critic_epochs, PositiveInt)
        self.credit = checked("credit", credit, Credit)
        self.profile = checked("profile", profile, Profile)
        if self.profile == "published" and not isinstance(self.objective, BenefitRate):
            raise ValueError(f"profile must be 'recommended' for {type(self.objective).__name__}, got 'published'")
        super().__init__(*args, short=rate, long=cost, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self._streams: StreamsOfRollout | None = None
        self._fair: th.Tensor | None = None
        self._reward_weight = 1.0
        if self.env is not None:  # a model loaded without an environment has stored the number of heads
            self._streams = self._streams_of(self._recording_env(self.env))
            self.stream_heads = self._streams.heads + (self.long is not None)
        if self.observation_space.shape is None:
            raise ValueError(f"env must have arrays as observations, got {self.observation_space}")
        self.stream_critic = StreamCritic(
            int(np.prod(self.observation_space.shape)),
            self.stream_heads,
            learning_rate=self.lr_schedule(1),
            seed=0 if self.seed is None else self.seed,
        )

    def _streams_of(self, recorder: RecordSteps) -> "StreamsOfRollout":
        return StreamsOfRollout(self.n_steps, self.n_envs, recorder, credit=self.credit)

    # ------------------------------------------------------------------------------------------- collecting

    def _wrapped_env(self, env: VecEnv) -> VecEnv:
        recorder = super()._wrapped_env(env)
        assert isinstance(recorder, RecordSteps)
        if self._streams is None:
            self._streams = self._streams_of(recorder)
        return recorder

    @property
    def _bootstraps(self) -> bool:
        return self._fair_wanted

    @property
    def _fair_wanted(self) -> bool:
        return not isinstance(self.objective, Reward)

    # --------------------------------------------------------------------------------------------- updating

    def _after_rollout(self) -> None:
        super()._after_rollout()
        streams, memory = self._streams, self.memory
        assert streams is not None
        streams.take(self._replays[0])
        cost = None if self.long is None else self.rollout_measures.long
        rewards = self.recorder.rewards  # those of the buffer include the critic's values after time limits
        now = streams.means(float(rewards.mean(dtype=np.float64)), cost)
        unit = float(np.abs(rewards).mean(dtype=np.float64))
        keep = 0.0 if self.half_life == 0 or "means" not in memory else 0.5 ** (1 / self.half_life)
        if self.profile == "published":
            keep = 0.0
            now[:-1] *= self._episode_length()
        before = memory.get("means", np.nan_to_num(now))
        memory["means"] = keep * before + (1 - keep) * np.where(np.isnan(now), before, now)
        memory["unit"] = np.array(keep * memory.get("unit", unit) + (1 - keep) * unit)
        about: dict[str, Any] = {
            "groups": streams.groups,
            "unit": max(float(memory["unit"]), 1e-8),
            "sizes": th.from_numpy(memory["means"][1 + streams.groups : 1 + 2 * streams.groups].copy()),
            "of_returns": streams.of_returns,
        }
        if self.profile == "published":
            about["unit"] = 1.0
        means = th.from_numpy(memory["means"])
        objective = self._controlled(means, about)
        found, slope = objective.gradient(means, **about)
        self.logger.record("fairness/objective", found)
        for name, rate in zip(streams.names, streams.rates(memory["means"]), strict=True):
            self.logger.record(f"fairness/rate[{name}]", rate)
        self._reward_weight = float(slope[0])
        if self._fair_wanted:
            self._estimate(slope, None if cost is None else np.nan_to_num(cost))

    def _episode_length(self) -> float:
        """Return the mean length of the episodes that ended in the last rollout with such an end.

        Before any has ended, it is the longest time that one has lasted. The published code divides sums over a rollout
        by the number of episodes that began in it, which is the same if rollouts consist of whole episodes. With
        rollouts shorter than episodes, that number is 0 in most of them.
        """
        ages = self.memory.get("ages", np.zeros(self.n_envs))
        ended: list[float] = []
        for begins in (*self.rollout_buffer.episode_starts.astype(bool), np.asarray(self._last_episode_starts, bool)):
            ended += ages[begins & (ages > 0)].tolist()
            ages = np.where(begins, 0, ages) + 1
        self.memory["ages"] = ages - 1  # the last row is the next step's, which is not taken yet
        if ended:
            self.memory["length"] = np.array(np.mean(ended))
        return float(self.memory.get("length", self.memory["ages"].max()))

    def _controlled(self, means: th.Tensor, about: dict[str, Any]) -> Objective:
        """Return the objective, with the multiplier that the controller sets for a `Lagrangian`."""
        objective = self.objective
        if not isinstance(objective, Lagrangian):
            return objective
        streams = self._streams
        assert streams is not None
        if objective.of_rates:
            rates = streams.rates(means.numpy())
            rates = rates[~np.isnan(rates)] / (about["unit"] if about["of_returns"] else 1.0)
            measured = float(np.ptp(rates)) if len(rates) > 1 else 0.0
        else:
            measured = float(means[-1])
        if "controller" in self.memory:
            self.controller.state = self.memory["controller"].tolist()
        multiplier = self.controller(measured, objective.limit)
        self.memory["controller"] = np.array(self.controller.state)
        self.logger.record("train/measured", measured)
        self.logger.record("train/multiplier", multiplier)
        return dataclasses.replace(objective, multiplier=multiplier)

    def _estimate(self, slope: th.Tensor, cost: Floats32 | None) -> None:
        """Combine the streams' advantages with the weights dF/dJ, and train the critic."""
        streams, buffer = self._streams, self.rollout_buffer
        assert streams is not None
        values = streams.values(cost)
        predicted = self.stream_critic.predict(buffer.observations)
        last = self.stream_critic.predict(np.asarray(self._last_obs)[np.newaxis])[0]
        if self._cut_off:  # bootstrapped with the discounted values of what came after
            ends = self.stream_critic.predict(np.stack(list(self._cut_off.values()))[np.newaxis])[0]
            values[tuple(np.transpose(list(self._cut_off)))] += self.gamma * ends
        advantages = cost_advantages(
            values,
            predicted,
            last,
            buffer.episode_starts.astype(bool),
            np.asarray(self._last_episode_starts, bool),
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
        )
        weights = streams.weights(slope.numpy(), with_cost=cost is not None)
        flat = buffer.flat(advantages.astype(np.float32))
        weight = buffer.flat(weights.astype(np.float32))
        if self.profile == "published":
            self._parts = flat, weight
        self._fair = (flat * weight).sum(dim=1)
        with th.random.fork_rng(devices=[]):
            loss = self.stream_critic.fit(
                buffer.flat(buffer.observations.reshape(self.n_steps, self.n_envs, -1).astype(np.float32, copy=False)),
                buffer.flat((advantages + predicted).astype(np.float32)),
                epochs=self.critic_epochs,
                rng=np.random.default_rng([0 if self.seed is None else self.seed, self.rollouts]),
                max_grad_norm=self.max_grad_norm,
            )
        self.logger.record("train/stream_loss", loss)

    def _regularised(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        if self._fair is None:
            return self._normalised(advantages)
        if self.profile == "published":
            return self._published(batch, advantages)
        fair = self._of_turns(batch, self._fair[batch.flat_index])
        return self._normalised(self._reward_weight * advantages + fair)

    def _published(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        """Return the published code's sum of advantages, each normalised in the minibatch."""
        parts, weight = (self._of_turns(batch, part[batch.flat_index]) for part in self._parts)
        scaled = (parts - parts.mean(dim=0)) / (parts.std(dim=0) + 1e-8)
        return self._normalised(advantages) + (scaled * weight).sum(dim=1)

    # ----------------------------------------------------------------------------------------------- keeping

    def _optimizers(self) -> list[th.optim.Optimizer]:
        return [*super()._optimizers(), self.stream_critic.optimizer]

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_streams", "_fair", "_parts", "_reward_weight"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        states, tensors = super()._get_torch_save_params()
        return [*states, "stream_critic", "stream_critic.optimizer"], tensors


class StreamsOfRollout:
    """Benefits and demands in each step of a rollout.

    For rows of lanes, the streams are the benefits of the G groups, then their demands. For rows of agents, these are
    without the agent's own share, which follows as two more streams; with own credit, there are only the latter.

    Args:
        steps: Number of steps (T).
        rows: Number of rows (R).
        recorder: The environment with a `RateMeasure` as its first measure.
        credit: See `ObjectivePPO`.

    Attributes:
        groups: Number of groups (G).
        names: Their names.
        heads: Number of streams besides the reward and a cost.
        of_returns: Whether the rate is one of returns.
    """

    def __init__(self, steps: int, rows: int, recorder: RecordSteps, *, credit: Credit = "common") -> None:
        measure = recorder.measures[0]
        if not isinstance(measure, RateMeasure):
            raise ValueError(f"rate must make a RateMeasure, got {type(measure).__name__}")
        self._shape, self.names = (steps, rows), measure.group_names
        self.groups, self.of_returns = len(measure.group_names), measure.rate.returns
        self.agents = recorder.agents
        self._own_only = self.agents > 1 and credit == "own"
        self.heads = 2 * self.groups * (not self._own_only) + 2 * (self.agents > 1)
        env = agents_env_of(recorder)
        self._scale = env.reward_scale if env is not None and self.of_returns else 1.0

    def take(self, replay: Replay) -> None:
        """Take the benefits and demands of a rollout."""
        assert replay.people is not None
        (steps, rows), (group, *amounts) = self._shape, replay.people
        people, lanes = group.shape[2], group.shape[:2]
        cell = np.where(group < 0, self.groups, group).reshape(-1, people)  # the last one is that of no group
        sums = [cell_sums(own.reshape(-1, people), cell, cells=self.groups + 1)[0] for own in amounts]
        sums[0] *= self._scale
        self._totals: Floats = np.concatenate([part[:, :-1].reshape(*lanes, -1) for part in sums], axis=-1)
        if self.agents > 1:
            self._group = group.reshape(steps, rows).copy()
            self._own = np.stack([own.reshape(steps, rows) for own in amounts], axis=-1)
            self._own[..., 0] *= self._scale

    def means(self, reward: float, cost: Floats32 | None) -> Floats:
        """Return J: mean reward of a row, the groups' benefits and demands, and mean cost, shape (2 + 2 G,).

        The mean cost is that of the steps in which the cost is defined; NaN if there are none.
        """
        totals = self._totals.mean(axis=(0, 1))
        return np.array([reward, *totals, 0.0 if cost is None else mean_defined(cost)])

    def rates(self, means: Floats) -> Floats:
        """Return the groups' rates, shape (G,); NaN without demand."""
        benefit, demand = means[1 : 1 + self.groups], means[1 + self.groups : 1 + 2 * self.groups]
        found: Floats = np.full(self.groups, np.nan)
        np.divide(benefit, demand, out=found, where=demand > 0)
        return found

    def values(self, cost: Floats32 | None) -> Floats:
        """Return the streams of each row, shape (T, R, heads), and the cost as one more."""
        totals = np.repeat(self._totals, self.agents, axis=1)
        parts = [totals]
        if self._own_only:
            parts = [self._own]
        elif self.agents > 1:
            of_row = np.arange(2 * self.groups) % self.groups == self._group[..., np.newaxis]
            own = np.repeat(self._own, self.groups, axis=2)
            parts = [totals - np.where(of_row, own, 0.0), self._own]
        if cost is not None:
            parts.append(cost[..., np.newaxis].astype(np.float64))
        return np.concatenate(parts, axis=2)

    def weights(self, slope: Floats, *, with_cost: bool) -> Floats:
        """Return the weight of each stream for each row, shape (T, R, heads), and of the cost as one more."""
        of_groups = slope[1 : 1 + 2 * self.groups] * self.agents
        found = np.broadcast_to(of_groups, (*self._shape, 2 * self.groups))
        parts = [] if self._own_only else [found]
        if self.agents > 1:
            own = np.concatenate([of_groups.reshape(2, self.groups), np.zeros((2, 1))], axis=1)  # the last: no group
            parts.append(np.moveaxis(own[:, self._group], 0, -1))
        if with_cost:
            parts.append(np.full((*self._shape, 1), slope[-1] * self.agents))
        return np.concatenate(parts, axis=2)


__all__ = ["ObjectivePPO", "StreamCritic"]
