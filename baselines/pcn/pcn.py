"""Pareto Conditioned Networks: one network conditioned on the desired return and the desired number of steps.

Reymond, Bargiacchi and Nowé, "Pareto Conditioned Networks", AAMAS 2022. Supervised learning trains the network to
predict which actions led from a state to a return. Commands with returns slightly better than the best so far make it
explore better returns.
"""

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import ArrayLike, NDArray
from torch import nn

from fair_envs.baselines.pcn.actions import BINS, rows_of
from fair_envs.baselines.pcn.buffer import Buffer, Crowding, Entry, Keep, Penalty, Ranking, packed
from fair_envs.baselines.pcn.rollouts import Chosen, Episode, Random, collect, copied, reward_space_of, vector_reward
from fair_envs.baselines.ppo.gradients import ManualBackprop, flatten_parameters
from fair_envs.baselines.runs import read_weights, serialized
from fair_envs.baselines.settings import COMMON, check_fields
from fair_envs.evaluation import Stochastic, Transition, VectorEnv, choose
from fair_envs.metrics.pareto import non_dominated
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.files import replace_file
from fair_envs.support.parameters import (
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    Range,
    UnitInterval,
    checked,
    setting,
)
from fair_envs.support.seeds import EPISODES_EACH, TRAINING_SEEDS
from fair_envs.wrappers.adapters.bound import transforms

StateLayers = Literal["one", "two", "relu"]
"""State embedding: one sigmoid layer, two ("densesmall" of FAReL), or a ReLU and a sigmoid layer ("densebig")."""

HIDDEN = 64  # units of every layer, in all published variants
PATIENCE = 2  # steps by which a command is shorter than the episode from which it is taken
LISTED = ("return_unit", "max_return")  # settings with an entry for each objective
LORENZ_LAMBDA = (
    "Dominance that decides which episodes are best: 1 is Pareto dominance, 0 is Lorenz dominance, which prefers equal "
    "returns; numbers between them are lambda-Lorenz dominance. Below 1, objectives must be comparable, such as the "
    "returns of groups."
)


@dataclass(frozen=True, kw_only=True)
class PCNSettings:
    """Settings of Pareto Conditioned Networks.

    Marks in the comments: P is the paper with its settings for deep-sea-treasure, F the study FAReL, whose settings are
    `farel_settings`. Defaults without a mark, or that differ from the marked value, were found to be sounder or to
    learn faster.

    Raises:
        ValueError: A value is outside its range.
    """

    # The loop
    first_episodes: PositiveInt = setting(50, "Random episodes before the first update.")  # P, F
    episodes: PositiveInt = setting(10, "Episodes of each iteration.")  # P, F
    updates: PositiveInt = setting(50, "Gradient steps of each iteration.")  # P: 10, F: 20
    batch_size: PositiveInt = setting(256, COMMON["batch_size"])  # P, F
    learning_rate: Positive = setting(1e-3, "Learning rate of Adam.")  # F; P: 1e-2
    loss: Literal["mean", "sum"] = setting(
        "mean", "Whether the cross-entropies of a batch are averaged or summed."
    )  # F: "sum"
    # The network
    state_layers: StateLayers = setting("one", "Type of the layers that embed the observation.")  # P; F: "two"
    scale_observations: bool = setting(True, "Whether bounded observations are scaled to [0, 1].")  # P and F do not
    return_unit: Sequence[Positive] = setting(
        (), "Divisor of desired returns for each objective; empty uses the spread of random play."
    )  # P: 10, F: 1
    bins: Annotated[int, Range(2)] = setting(
        BINS, "Number of equally spaced values of a continuous action (a Box with one entry), both bounds included."
    )
    horizon_unit: NonNegative = setting(
        0.0, "Divisor of desired horizons; 0 uses the spread of random play."
    )  # P: 100, F: 10
    noise: NonNegative = setting(0.0, "Standard deviation of the noise added to the scaled commands in training.")
    # The buffer
    buffer_size: PositiveInt = setting(200, "Capacity of the replay buffer in episodes.")  # P; F: 100
    kept_samples: NonNegativeInt = setting(
        4096,
        "Most observations and actions kept of an episode, drawn at random; many agents have many more turns than can "
        "be learned from. 0 keeps all.",
    )  # P, F: all
    keep: Keep = setting("top", "Which episodes the buffer keeps.")  # F and the authors of P: "heap"
    scaled_distance: bool = setting(True, "Whether returns are compared in units of return_unit.")  # P, F: False
    crowding: Crowding = setting("all", "Set of episodes in which crowding is measured and penalised.")  # P; F: "ranks"
    crowding_threshold: NonNegative = setting(
        0.1, "Mean distance below which an episode counts as crowded."
    )  # P: 0.2 of their sum
    crowding_penalty: Penalty = setting("double", "How crowded episodes are penalised.")  # P; F: "one"
    # The commands
    command: Literal["episode", "iteration"] = setting("iteration", "How long a desired return stays the same.")  # P, F
    best: PositiveInt = setting(50, "Number of best episodes from which desired returns are chosen.")  # P, F
    non_domination: Literal["requested", "all"] = setting(
        "requested", "Objectives that decide which episodes are best."
    )
    lorenz_lambda: UnitInterval = setting(1.0, LORENZ_LAMBDA)
    max_return: Sequence[float] = setting(
        (), "Largest desired return of each objective; empty uses the bounds of the rewards."
    )
    coverage: Literal["front", "leaves"] = setting("front", "Which episodes make up the coverage set.")

    def __post_init__(self) -> None:
        """Check the settings."""
        check_fields(self)
        if self.first_episodes < 2:
            raise ValueError(f"first_episodes must be at least 2, got {self.first_episodes}")


def farel_settings(
    *, objectives: int, horizon: int, performance: int | None = 0, published_code: bool = False
) -> PCNSettings:
    """Return the settings of FAReL (Cimpean et al. 2025), to be used on one lane.

    Args:
        objectives: Number of requested objectives.
        horizon: Maximum length of an episode, which bounds the performance.
        performance: Index of the performance among the objectives; the others are at most 0. None: there is none.
        published_code: Whether to reproduce the errors of the published code: the horizon is scaled like a return, the
            threshold of crowding is 0.2 for any objectives, commands must be non-dominated also in objectives that are
            only computed, and half of the heap's array is used as the coverage set.
    """
    return PCNSettings(
        updates=20,
        loss="sum",
        state_layers="two",
        scale_observations=False,
        return_unit=(1.0,) * objectives,
        horizon_unit=1.0 if published_code else 10.0,
        buffer_size=100,
        kept_samples=0,
        keep="heap",
        scaled_distance=False,
        crowding="ranks",
        crowding_threshold=0.2 if published_code else 0.02,
        crowding_penalty="one",
        command="iteration",
        non_domination="all" if published_code else "requested",
        max_return=tuple(float(horizon) if k == performance else 0.0 for k in range(objectives)),
        coverage="leaves" if published_code else "front",
    )


# The network ----------------------------------------------------------------------------------------------------------


class Network(nn.Module):
    """Logits of the choices from observations (n, d) and scaled commands (n, objectives + 1).

    Args:
        width: Number of entries of an observation.
        objectives: Number of requested objectives.
        actions: Number of logits: the actions, or the values of all entries of an action.
        state_layers: Type of the layers that embed observations.
    """

    def __init__(self, width: int, objectives: int, actions: int, *, state_layers: StateLayers = "one") -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(width, HIDDEN), nn.Sigmoid()]
        if state_layers == "two":
            layers += [nn.Linear(HIDDEN, HIDDEN), nn.Sigmoid()]
        elif state_layers == "relu":
            layers = [nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.Sigmoid()]
        self.state = nn.Sequential(*layers)
        self.command = nn.Sequential(nn.Linear(objectives + 1, HIDDEN), nn.Sigmoid())
        self.head = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, actions))

    def forward(self, observations: th.Tensor, commands: th.Tensor) -> th.Tensor:
        """Return logits, shape (n, actions)."""
        logits: th.Tensor = self.head(self.state(observations) * self.command(commands))
        return logits


class Command(NamedTuple):
    """Desired return and horizon."""

    desired_return: Floats  # (objectives,)
    horizon: float  # desired number of steps


class Commanded(Chosen):
    """Plays each episode with its command, from which the rewards and steps so far are subtracted.

    All agents of a lane follow the lane's command.
    """

    def __init__(self, model: "PCN", commands: Sequence[Command], *, lanes: int) -> None:
        super().__init__(model.choices)
        self._model, self._commands = model, commands
        self._prepare(lanes)

    def _prepare(self, lanes: int) -> None:
        self._returns = np.zeros((lanes, len(self._model.requested)))
        self._horizons = np.ones(lanes)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Set the commands of new episodes."""
        for lane in np.flatnonzero(mask):
            self._returns[lane], self._horizons[lane] = self._commands[episodes[lane] % len(self._commands)]

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the probabilities of the choices, shape (B, agents, A), or (B, agents, N, A)."""
        lanes, agents = observation.shape[:2]
        rows = observation.reshape(lanes * agents, *self._model.observation_space.shape)
        returns, horizons = (np.repeat(column, agents, axis=0) for column in (self._returns, self._horizons))
        found = self._model._probabilities(rows, returns, horizons)
        return found.reshape(lanes, agents, *found.shape[1:])

    def observe_step(self, step: Transition) -> None:
        """Subtract the step from the desired returns and horizons."""
        self._subtract(vector_reward(step), step)

    def _subtract(self, rewards: Floats, step: Transition) -> None:
        """Subtract vector rewards, shape (B, objectives), and one step from the commands of the active lanes."""
        left = np.minimum(self._returns - rewards[:, self._model.requested], self._model.max_return)
        self._returns = np.where(step.active[:, np.newaxis], left, self._returns)
        self._horizons = np.where(step.active, np.maximum(self._horizons - 1, 1), self._horizons)


# The learner ----------------------------------------------------------------------------------------------------------


class PCN:
    """Pareto Conditioned Networks for environments with vector rewards.

    Actions are chosen from a list: of a `Discrete`, of each entry of a `MultiDiscrete`, or, for a `Box` with one entry,
    ``settings.bins`` values. If several agents act in an environment of this package, they share one network: each
    chooses its own action, and all agents of a lane have the same desired return, which is that of the lane.

    Args:
        env: A `gymnasium.vector.VectorEnv` of B lanes whose rewards have shape (B, m). The episodes of an iteration are
            distributed over the lanes; training is fastest with one lane per episode. Entries that are NaN count as 0.
        settings: Settings of the learner.
        requested: Indices of the objectives in commands; None: all. The others are only recorded.
        seed: Seed of the networks and all random draws; equal seeds give equal networks.

    Attributes:
        network: The network, which returns the logits of the choices.
        observation_space: Space of the network's observation: a lane's, or one agent's.
        choices: Choices of an action.
        num_timesteps: Environment steps of training so far, of all lanes.
        iterations: Number of iterations, each with new commands and network updates.
        buffer: The replay buffer of episodes.
        losses: Losses of the last iteration's updates.
        reference: Reference point for hypervolumes, shape (m,): the worst return of the first, random episodes in each
            objective. If these are all equal, it is lower by 1 for each step of the longest episode.

    Raises:
        ValueError: The environment has no vector rewards, or its actions cannot be listed.

    References:
        Reymond, Bargiacchi and Nowé, "Pareto Conditioned Networks", AAMAS 2022.
        Cimpean et al., "FAReL", arXiv 2509.22232, 2025.
    """

    def __init__(
        self,
        env: VectorEnv,
        *,
        settings: PCNSettings | None = None,
        requested: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        self._blank_memories = [memory.snapshot() for memory in memories(env)]
        self.env, self.settings, self.seed = env, settings or PCNSettings(), int(checked("seed", seed, Seed))
        self._rows, rewards = rows_of(env, bins=self.settings.bins), reward_space_of(env)
        self.observation_space, self.choices = self._rows.observation_space, self._rows.choices
        self.objectives = int(rewards.shape[0])
        self.requested = _requested(requested, self.objectives)
        for name in LISTED:
            _check_width(name, getattr(self.settings, name) or self.requested, len(self.requested))
        self.max_return = np.array(self.settings.max_return or [_bound(high) for high in rewards.high[self.requested]])
        self.rng = np.random.default_rng(np.random.SeedSequence(self.seed))
        self.num_timesteps = self.iterations = 0
        space, possible = self.observation_space, self.choices.possible
        self._low, self._span = _bounds(space, scaled=self.settings.scale_observations)
        self._excluded = None if possible.all() else th.from_numpy(np.where(possible, 0, -np.inf).astype(np.float32))
        with th.random.fork_rng(devices=[]):
            th.manual_seed(self.seed)
            self.network = Network(
                int(np.prod(space.shape)), len(self.requested), possible.size, state_layers=self.settings.state_layers
            )
        weights = flatten_parameters(self.network.parameters())
        self._optimizer = th.optim.Adam([weights], lr=self.settings.learning_rate, fused=True)
        self._backprops = [
            ManualBackprop(chain) for chain in (self.network.state, self.network.command, self.network.head)
        ]
        self.losses: list[float] = []  # of the last iteration
        self.reference: Floats = np.full(self.objectives, np.nan)
        self._set_scale(np.ones(len(self.requested) + 1))

    def _set_scale(self, scale: Floats) -> None:
        """Set the factors of commands (the horizon's is last), and create an empty buffer."""
        settings = self.settings
        self.scale = scale
        self._scale = th.as_tensor(scale, dtype=th.float32)
        self.buffer = Buffer(
            settings.buffer_size,
            Ranking(settings.crowding, settings.crowding_threshold, settings.crowding_penalty, settings.lorenz_lambda),
            keep=settings.keep,
            objectives=self.requested,
            scale=scale[:-1] if settings.scaled_distance else np.ones(len(self.requested)),
        )

    # Learning

    def iterate(self) -> list[Episode]:
        """Play the first random episodes, or update the network and play episodes with new commands.

        Returns:
            The played episodes.
        """
        if not self.buffer.played:
            return self._fill()
        self._update()
        commands = self._choose_commands()
        episodes = self._play(Commanded(self, commands, lanes=self.env.num_envs), self.settings.episodes)
        self.iterations += 1
        return episodes

    def learn(self, steps: int) -> "PCN":
        """Train for at least a number of environment steps, and return self."""
        while self.num_timesteps < steps:
            self.iterate()
        return self

    def _fill(self) -> list[Episode]:
        episodes = self._collect(Random(self.env, self._rows), self.settings.first_episodes)
        longest, returns = max(map(len, episodes)), np.array([episode.returns for episode in episodes])
        varied = np.ptp(returns, axis=0) > 0
        self.reference = returns.min(axis=0) - np.where(varied, 0, longest)
        self._set_scale(1 / self._units(episodes))
        self._take(episodes)
        return episodes

    def _units(self, episodes: Sequence[Episode]) -> Floats:
        """Return the divisors of returns and horizons: as set, or the standard deviations over episodes.

        Where random play always has the same return, because it treats all equally, the divisor assumes that each step
        could cost 1.
        """
        left = np.concatenate([np.arange(len(episode)) for episode in episodes]).std() or 1.0
        spread = np.concatenate([episode.returns_to_go for episode in episodes]).std(axis=0)[self.requested]
        returns = np.array(self.settings.return_unit or np.where(spread > 0, spread, left))
        return np.append(returns, self.settings.horizon_unit or left)

    def _play(self, agent: Stochastic, count: int) -> list[Episode]:
        episodes = self._collect(agent, count)
        self._take(episodes)
        return episodes

    def _collect(self, agent: Stochastic, count: int) -> list[Episode]:
        seed = TRAINING_SEEDS + EPISODES_EACH * self.seed + self.buffer.played
        for memory in memories(self.env):
            memory.restore(memory.snapshot())  # as in a resumed training: recompute sums, without accumulated rounding
        return self.play(self.env, agent, episodes=count, rng=self.rng, seed=seed)

    def play(self, env: VectorEnv, policy: Stochastic, **options: Any) -> list[Episode]:
        """Play episodes of an environment like the training's with a policy; options are those of `collect`."""
        return collect(env, policy, agents=self._rows.agents, **options)

    def _take(self, episodes: Sequence[Episode]) -> None:
        most = self.settings.kept_samples
        self.buffer.add([episode.thinned(most, self.rng) if most else episode for episode in episodes])
        self.num_timesteps += sum(map(len, episodes))

    def _update(self) -> None:
        """Take gradient steps that make the actions that led to the returns more probable."""
        settings = self.settings
        batches = self.buffer.batches(settings.updates, settings.batch_size, self.rng)
        commands = batches.commands * self._scale
        if settings.noise:
            drawn = self.rng.standard_normal(tuple(commands.shape), np.float32)
            commands += settings.noise * th.from_numpy(drawn)
        observations, losses = self._prepared(batches.observations), []
        choices = th.from_numpy(self.choices.choice(batches.actions.numpy()))
        with th.no_grad():
            for k in range(settings.updates):
                losses.append(self._backward(observations[k], commands[k], choices[k]))
                self._optimizer.step()
        self.losses = [loss.item() for loss in losses]

    def _backward(self, observations: th.Tensor, commands: th.Tensor, choices: th.Tensor) -> th.Tensor:
        """Set the parameters' gradients of the loss, and return the mean cross-entropy of the actions."""
        state, command, head = self._backprops
        embedded = state.forward(observations), command.forward(commands)
        logarithms = th.log_softmax(self._by_entry(head.forward(embedded[0] * embedded[1])), dim=2)  # (n, N, A)
        chosen = choices.reshape(len(choices), -1, 1)
        loss = -logarithms.gather(2, chosen).sum(dim=1).mean()
        slope = logarithms.exp_()  # gradient of the cross-entropy: probabilities, minus 1 for the choice made
        slope.scatter_add_(2, chosen, th.full(chosen.shape, -1.0))
        if self.settings.loss == "mean":
            slope /= len(choices)
        back = head.backward(slope.flatten(start_dim=1))
        state.backward(back * embedded[1], to_input=False)
        command.backward(back * embedded[0], to_input=False)
        return loss

    def _by_entry(self, logits: th.Tensor) -> th.Tensor:
        """Return the logits of each entry's values, shape (n, N, A); minus infinity for values that do not exist."""
        found = logits.reshape(len(logits), *self.choices.possible.shape)
        return found if self._excluded is None else found + self._excluded

    def _choose_commands(self) -> list[Command]:
        """Return commands for an iteration's episodes: one of the best returns, improved in one objective."""
        ranked = [entry.episode for entry in self.buffer.rank()[: self.settings.best]]
        returns = np.array([episode.returns for episode in ranked])
        judged = returns if self.settings.non_domination == "all" else returns[:, self.requested]
        duplicates, share = self.settings.keep == "heap", self.settings.lorenz_lambda
        best = np.flatnonzero(non_dominated(judged, keep_duplicates=duplicates, lorenz_lambda=share))
        wanted = returns[best][:, self.requested]
        spread = wanted.std(axis=0)
        commands = []
        for _ in range(self.settings.episodes if self.settings.command == "episode" else 1):
            k, objective = self.rng.integers(len(best)), self.rng.integers(len(self.requested))
            desired = wanted[k].copy()
            desired[objective] += self.rng.uniform(0, spread[objective])
            commands.append(Command(desired, float(len(ranked[best[k]]) - PATIENCE)))
        return commands

    # Acting

    @property
    def blank_env(self) -> Any:
        """Copy of the environment whose wrappers have an empty history of decisions."""
        own = copied(self.env)
        for memory, kept in zip(memories(own), self._blank_memories, strict=True):
            memory.restore(kept)
        return own

    def predict(
        self,
        observation: ArrayLike,
        desired_return: ArrayLike,
        desired_horizon: ArrayLike,
        *,
        deterministic: bool = True,
        rng: np.random.Generator | None = None,
    ) -> NDArray[Any]:
        """Return actions, shape (n, ...), or one action for one observation.

        Args:
            observation: Observations, shape (n, ...), or one observation without the first axis; if several agents act,
                a row is the observation of one agent.
            desired_return: Desired returns in the requested objectives, shape (n, objectives) or (objectives,).
            desired_horizon: Desired numbers of steps, shape (n,) or a number.
            deterministic: Whether the most probable action is taken instead of a sampled one.
            rng: Generator for sampling actions; None: a new generator.

        Raises:
            ValueError: A desired return does not have one entry per objective, or other shapes do not match.
        """
        probabilities = self.action_probabilities(observation, desired_return, desired_horizon)
        if deterministic:
            return self.choices.action(np.asarray(probabilities.argmax(axis=-1)))
        rng = rng or np.random.default_rng()
        return self.choices.action(choose(probabilities, np.asarray(rng.random(probabilities.shape[:-1]))))

    def action_probabilities(
        self, observation: ArrayLike, desired_return: ArrayLike, desired_horizon: ArrayLike
    ) -> Floats:
        """Return the actions' probabilities, shape (n, actions), or (actions,) for one observation; see `predict`.

        If an action has N entries, the shape is (n, N, A), with 0 for values that an entry does not have.
        """
        rows, width = np.asarray(observation), len(self.requested)
        shape = self.observation_space.shape
        if rows.shape[rows.ndim - len(shape) :] != shape or rows.ndim > len(shape) + 1:
            raise ValueError(f"observation must have shape {('n', *shape)} or {shape}, got {rows.shape}")
        single = rows.ndim == len(shape)
        rows = rows.reshape(-1, *shape)
        wanted = _matched("desired_return", desired_return, (len(rows), width))
        horizon = _matched("desired_horizon", desired_horizon, (len(rows),))
        found = self._probabilities(rows, wanted, horizon)
        return found[0] if single else found

    def _probabilities(self, observations: NDArray[Any], returns: Floats, horizons: Floats) -> Floats:
        command = np.concatenate([returns, horizons[:, np.newaxis]], axis=1) * self.scale
        with th.no_grad():
            rows = self._prepared(th.as_tensor(observations, dtype=th.float32))
            logits = self._by_entry(self.network(rows, th.as_tensor(command, dtype=th.float32)))
            found: Floats = th.softmax(logits.double(), dim=2).numpy()
        return found if self.choices.several else found[:, 0]

    def _prepared(self, observations: th.Tensor) -> th.Tensor:
        """Return observations as inputs of the network, one row each."""
        scaled = (observations - self._low) / self._span
        return scaled.flatten(start_dim=-len(self.observation_space.shape))

    def commands(self) -> list[Command]:
        """Return the commands of the coverage set: returns and lengths of the best episodes.

        Before the training, there are none.
        """
        return [Command(e.returns[self.requested], float(len(e))) for e in self.coverage_set()]

    def coverage_set(self) -> list[Episode]:
        """Return the best episodes by the requested objectives, each return once; none before the training."""
        if self.settings.coverage == "leaves":
            episodes = self.buffer.leaves()
        else:
            episodes = [entry.episode for entry in self.buffer.entries]
        if not episodes:
            return []
        returns = np.array([episode.returns[self.requested] for episode in episodes])
        best = np.flatnonzero(non_dominated(returns, lorenz_lambda=self.settings.lorenz_lambda))
        return [episodes[k] for k in best[np.lexsort(returns[best].T[::-1])]]

    # Keeping

    def __deepcopy__(self, memo: dict[int, Any]) -> "PCN":
        """Return an independent copy of the learner."""
        env = copied(self.env, memo)
        other = type(self)(env, settings=self.settings, requested=self.requested, seed=self.seed)
        other._blank_memories = self._blank_memories
        other.restore(self.snapshot().state())
        other.losses = list(self.losses)
        return other

    def set_logger(self, logger: Any) -> None:
        """Do nothing: the training loop logs."""

    def snapshot(self) -> "Snapshot":
        """Return the complete state of the training, cheaply; `Snapshot.state` converts it to plain data."""
        return Snapshot(
            network=copy.deepcopy(self.network.state_dict()),
            optimizer=copy.deepcopy(self._optimizer.state_dict()),
            scale=self.scale.tolist(),
            reference=self.reference.tolist(),
            memories=[memory.snapshot() for memory in memories(self.env)],
            entries=list(self.buffer.entries),
            played=self.buffer.played,
            counters=(self.num_timesteps, self.iterations),
            rng=json.dumps(self.rng.bit_generator.state),
        )

    def save(self, path: str | Path) -> None:
        """Write the complete state atomically."""
        made = {"settings": asdict(self.settings), "requested": self.requested, "seed": self.seed}
        replace_file(Path(path), serialized({**made, "state": self.snapshot().state()}))

    @classmethod
    def load(cls, path: str | Path, env: VectorEnv) -> "PCN":
        """Return a saved learner for use or further training in an equal environment; loading runs no code."""
        kept = read_weights(Path(path))
        model = cls(env, settings=PCNSettings(**kept["settings"]), requested=kept["requested"], seed=kept["seed"])
        model.restore(kept["state"])
        return model

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot's state, in a learner that was created with the same arguments."""
        self._set_scale(np.array(state["scale"]))
        self.reference = np.array(state["reference"])
        for memory, kept in zip(memories(self.env), state["memories"], strict=True):
            memory.restore({name: column.numpy() for name, column in kept.items()})
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.buffer.restore(state["buffer"])
        self.num_timesteps, self.iterations = state["counters"]
        self.rng.bit_generator.state = json.loads(state["rng"])


class Snapshot(NamedTuple):
    """State of a training; mutable parts are copied, others are shared."""

    network: dict[str, Any]
    optimizer: dict[str, Any]
    scale: list[float]
    reference: list[float]
    memories: list[dict[str, Any]]
    entries: list[Entry]
    played: int
    counters: tuple[int, int]
    rng: str

    def state(self) -> dict[str, Any]:
        """Return tensors and plain data, so that loading it runs no code."""
        reported = self._asdict()
        reported["buffer"] = packed(reported.pop("entries"), played=reported.pop("played"))
        reported["memories"] = [
            {name: th.from_numpy(column) for name, column in kept.items()} for kept in reported["memories"]
        ]
        return reported


def memories(env: Any) -> list[Any]:
    """Return the wrappers' transforms with ``snapshot`` and ``restore``, which keep decisions over resets."""
    return [bound.transform for bound in transforms(env) if hasattr(bound.transform, "snapshot")]


Seed = Annotated[int, Range(0, 2**20 - 1)]


def _matched(name: str, given: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return values that are given for all rows, or for each row, with one entry for each row."""
    values = np.asarray(given, np.float64)
    if values.shape not in (shape, shape[1:]):
        raise ValueError(f"{name} must have shape {shape[1:]} or {shape}, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got {values}")
    return np.broadcast_to(values, shape)


def _requested(given: Sequence[int] | None, objectives: int) -> list[int]:
    chosen = list(range(objectives)) if given is None else [int(k) for k in given]
    if not chosen or len(set(chosen)) != len(chosen) or not set(chosen) <= set(range(objectives)):
        raise ValueError(f"requested must list objectives from 0 to {objectives - 1}, each once, got {given!r}")
    return chosen


def _check_width(name: str, given: Sequence[Any], width: int) -> None:
    if len(given) != width:
        raise ValueError(f"{name} must have {width} entries, one for each requested objective, got {len(given)}")


def _bound(high: float) -> float:
    """Return the upper bound of the return of at least one step from the upper bound of a step's reward."""
    return float(high) if high <= 0 else math.inf


def _bounds(space: gym.spaces.Box, *, scaled: bool) -> tuple[th.Tensor, th.Tensor]:
    """Return the offset and divisor of observations; 0 and 1 without finite bounds."""
    low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(low) & np.isfinite(high) & (high - low > 0) & np.isfinite(high - low) & scaled
        span = np.where(finite, high - low, 1).astype(np.float32)
    return th.from_numpy(np.where(finite, low, 0).astype(np.float32)), th.from_numpy(span)
