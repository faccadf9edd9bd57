"""Decentralised DDPG for all agents of a team, and its fair variants Fair-E and Fair-ER.

In Grupen, Selman and Lee (2022) every pursuer learns from its own observations, actions and rewards, with its own actor
and critic. `DDPG` implements this as one Stable-Baselines3 algorithm. The rows of the environment are the agents. The
networks of all agents form one stack (`fair_envs.baselines.team.networks`) that is updated in one pass, each agent's
networks from its own transitions. Losses are summed over the agents, and gradients are clipped separately for each
agent, so agents do not affect each other's updates.

* `FairE` shares one actor and one critic among all agents and pools their transitions. The team's policy is then as
  symmetric as the observations; see the page of `fair_envs.envs.pursuit.rules.Pursuit`.
* `FairER` gives every agent its own networks and pulls its actor towards the other agents' actors.

Actions are vectors (the paper's directions) or discrete choices, for which `fair_envs.baselines.team.choices` replaces
the parts of DDPG that need a vector. In environments in which agents lose turns or leave early:

* A step without a turn (`fair_action` is -1) is stored without an action: the critics' action is zero. Critics learn
  its value, so that later rewards reach earlier actions, but the actors do not learn from it.
* The value of a following step without a turn is that of no action.
* A step in which an agent leaves is the end of its episode. Nobody learns from the steps after it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, cast

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import (
    GymEnv,
    MaybeCallback,
    PyTorchObs,
    Schedule,
)
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.equivariance import distance_of_choices, options_of
from fair_envs.baselines.ppo.ppo import agents_env_of, lanes_env_of
from fair_envs.baselines.team import choices
from fair_envs.baselines.team.networks import Sets, Stack, stack, unit
from fair_envs.core import Rules, draws
from fair_envs.evaluation import Policy
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import (
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    Range,
    UnitInterval,
    checked,
)

REPLAYED = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts", "had_turn", "in_game")
Form = Literal["plain", "normalised", "automatic"]
ACTOR, CRITIC = (128, 128), (128, 128, 128)  # sizes of layers; the paper's
OURS = ("agents", "shared", "critics")  # policy arguments that the learner sets
SLACK = 1e-6  # added to norms before dividing by them
COMPARISONS = 2**16  # largest number of pairs of an actor and an observation in a penalty on discrete actions
LARGE_BLOCK = 31 * 2**20  # bytes; glibc does not adapt its threshold to blocks of more than 32 MiB


# -------------------------------------------------------------------------------------------------------- policies


class TeamPolicy(BasePolicy):
    """Actors and critics of all agents of a team; rows are the agents, lane by lane.

    Actors of vectors are deterministic. Those of discrete actions are distributions, as in MADDPG: actions are sampled,
    or with ``deterministic=True`` the most probable ones.

    Args:
        observation_space: Observation space of one agent, a Box with one axis.
        action_space: Action space of one agent, a Box with one axis from -1 to 1, a Discrete or a MultiDiscrete.
        lr_schedule: The actors' learning rate; not used here.
        agents: Number of agents.
        shared: Whether all agents share the same networks.
        directions: Whether an action is a direction, a vector of length 1; otherwise entries are squashed separately.
            Discrete actions are no directions.
        net_arch: Sizes of the layers, of actors under ``"pi"`` and critics under ``"qf"``, or of both; None: the
            paper's. A critic takes the action as input to its first layer; the paper's code adds it in the second.
        critics: Number of critics for each actor; 2 are TD3's twin critics.
        sets: Layout of the observations, for networks that treat team-mates as a set; None: observations are plain
            vectors.

    Attributes:
        options: Number of options of each choice of a discrete action; empty for vectors.
        actor: The stack of all actors; for discrete actions, they return logits.
        critic: The stack of all critics; the twin critics follow all first critics.
        actor_target: Target networks of the actors; ``critic_target`` are those of the critics.
    """

    def __init__(
        self,
        observation_space: gym.spaces.Box,
        action_space: gym.spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        agents: int,
        shared: bool = False,
        directions: bool = False,
        net_arch: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
        critics: int = 1,
        sets: Sets | None = None,
    ) -> None:
        check_spaces(observation_space, action_space)
        options = options_of(action_space)
        super().__init__(observation_space, action_space, squash_output=not options)
        self.options = options
        self.agents, self.shared, self.directions, self.critics = agents, shared, directions, critics
        self.networks = 1 if shared else agents
        self.squash = unit if directions else th.tanh
        inputs, outputs = observation_space.shape[0], sum(options) or cast(Any, action_space.shape)[0]
        sets = None if sets is None else Sets(*sets)
        if sets is not None and sets.size != inputs:
            raise ValueError(f"sets must be of observations of {inputs} numbers, got {sets}")
        of_actors, of_critics = layers_of(net_arch)
        actor = partial(stack, self.networks, inputs, of_actors, outputs, sets=sets)
        critic = partial(stack, critics * self.networks, inputs + outputs, of_critics, 1, sets=sets)
        self.actor, self.actor_target = actor(), actor()
        self.critic, self.critic_target = critic(), critic()
        for target, source in ((self.actor_target, self.actor), (self.critic_target, self.critic)):
            target.load_state_dict(source.state_dict())
            target.requires_grad_(False)

    def act(self, actor: Stack, observations: th.Tensor) -> th.Tensor:
        """Return the actors' actions, shape (networks, batch, axes), for observations (networks, batch, d)."""
        return self.actions(actor(observations))

    def actions(self, outputs: th.Tensor) -> th.Tensor:
        """Return the actions for the actors' outputs, shape (..., axes); discrete ones are sampled and one-hot."""
        return choices.straight_through(outputs, self.options) if self.options else self.squash(outputs)

    def compared(self, outputs: th.Tensor) -> th.Tensor:
        """Return what `apart` compares for the actors' outputs: log-probabilities, or actions that are vectors."""
        return choices.log_probabilities(outputs, self.options) if self.options else self.squash(outputs)

    def apart(self, one: th.Tensor, other: th.Tensor) -> th.Tensor:
        """Return the distance of what actors do: 1 - cos for directions, for choices that of their distributions."""
        if self.options:
            return distance_of_choices(one, other, self.options)
        return 0.5 * (one - other).square().sum(-1)

    def encoded(self, actions: th.Tensor) -> th.Tensor:
        """Return the critics' actions for actions of the environment, shape (..., axes)."""
        return choices.one_hot(actions, self.options) if self.options else actions

    def executed(self, scores: th.Tensor) -> th.Tensor:
        """Return actions of the environment for one-hot actions or scores of the options, shape (rows, ...)."""
        if not self.options:
            return scores
        found = choices.numbers(scores, self.options)
        return found.view(len(found), *cast(Any, self.action_space.shape))

    def allowed(self, actions: th.Tensor) -> th.Tensor:
        """Return the nearest valid actions of an actor."""
        return unit(actions) if self.directions else actions.clamp(-1, 1)

    def values(self, critic: Stack, observations: th.Tensor, actions: th.Tensor, *, critics: int) -> th.Tensor:
        """Return the first critics' values of actions, shape (critics, networks, batch)."""
        inputs = th.cat([observations, actions], -1).repeat(critics, 1, 1)
        values: th.Tensor = critic(inputs)
        return values.view(critics, self.networks, -1)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        """Return the actions of the rows, shape (rows, ...)."""
        choose = self.actor if self.options and deterministic else partial(self.act, self.actor)
        return self.executed(self.of_rows(cast(th.Tensor, observation), choose))

    def of_rows(self, rows: th.Tensor, answer: Callable[[th.Tensor], th.Tensor]) -> th.Tensor:
        """Return what each row's network answers, shape (rows, ...), by a function on (networks, batch, d)."""
        if self.shared:
            return answer(rows.unsqueeze(0))[0]
        if len(rows) % self.agents:
            raise ValueError(
                f"observation must have {self.agents} rows for each lane, one for each agent, got {len(rows)}"
            )
        of_agents = rows.view(-1, self.agents, rows.shape[-1]).transpose(0, 1)
        return answer(of_agents).transpose(0, 1).reshape(len(rows), -1)

    def forward(self, observation: th.Tensor, deterministic: bool = False) -> th.Tensor:
        """Return the actions of the rows."""
        return self._predict(observation, deterministic)


class DeepSetsPolicy(TeamPolicy):
    """A `TeamPolicy` that treats team-mates as a set; `DDPG` passes it the layout of the observations."""


def layers_of(net_arch: Sequence[int] | Mapping[str, Sequence[int]] | None) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the layers of actors and of critics.

    Raises:
        ValueError: Sizes are invalid, or networks are named other than ``"pi"`` and ``"qf"``.
    """
    if net_arch is None:
        return ACTOR, CRITIC
    given = net_arch if isinstance(net_arch, Mapping) else {"pi": net_arch, "qf": net_arch}
    if set(given) != {"pi", "qf"} or not all(isinstance(sizes, Sequence) for sizes in given.values()):
        raise ValueError(f"net_arch must list layer sizes, or the sizes for 'pi' and for 'qf', got {net_arch!r}")
    actor, critic = (tuple(checked("net_arch", size, PositiveInt) for size in given[name]) for name in ("pi", "qf"))
    return actor, critic


def unsupported_spaces(observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> str:
    """Return which spaces are needed and which came, or "": vectors are observed, actions discrete or vectors."""
    if not isinstance(observation_space, gym.spaces.Box) or len(observation_space.shape) != 1:
        return f"observations that are vectors of numbers, got {observation_space}"
    vectors = isinstance(action_space, gym.spaces.Box) and len(action_space.shape) == 1
    if vectors and np.all(action_space.low == -1) and np.all(action_space.high == 1):  # type: ignore[attr-defined]
        return ""
    if isinstance(action_space, gym.spaces.Discrete | gym.spaces.MultiDiscrete) and options_of(action_space):
        return ""
    return f"actions that are discrete or vectors from -1 to 1, got {action_space}"


def check_spaces(observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
    """Raise ValueError unless observations are vectors and actions are discrete or vectors from -1 to 1."""
    if needed := unsupported_spaces(observation_space, action_space):
        raise ValueError(f"env must have {needed}")


def sets_of(rules: Rules | None) -> Sets:
    """Return the layout of an environment's observations.

    Raises:
        ValueError: The environment does not define the layout.
    """
    found = None if rules is None else rules.observed_teammates()
    if found is None:
        came = "none" if rules is None else f"{rules.name}, which does not define it"
        raise ValueError(
            f"policy_kwargs['sets'] must be given for DeepSetsPolicy unless the rules define where observations "
            f"contain team-mates, got {came}"
        )
    return Sets(*found)


# ------------------------------------------------------------------------------------------------------- the replay


class Batch(NamedTuple):
    """Transitions of each network's agent, or of all agents if networks are shared; shapes (networks, batch, ...)."""

    observations: th.Tensor
    actions: th.Tensor
    rewards: th.Tensor  # discounted sum over the transition's steps
    following: th.Tensor  # observations after these steps
    discounts: th.Tensor  # of the following value; 0 at the end of an episode
    had_turn: th.Tensor | None = None  # whether the action had an effect; None: all had
    in_game: th.Tensor | None = None  # whether the agent had not left before; None: none had
    next_turn: th.Tensor | None = None  # whether the agent has a turn in the following step; None: all have


class TeamReplay(ReplayBuffer):
    """Stable-Baselines3's replay buffer, with samples drawn separately for each agent.

    Attributes:
        had_turn: Whether the agents' actions had an effect, shape (steps, rows).
        in_game: Whether the agents had not left before the step, shape (steps, rows).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.had_turn, self.in_game = np.ones((2, *self.dones.shape), bool)

    def team_batch(self, size: int, *, agents: int, shared: bool, n_steps: int, gamma: float, env: Any = None) -> Batch:
        """Return a batch for each network, drawn with NumPy's global generator as in Stable-Baselines3.

        Args:
            size: Transitions for each network.
            agents: Number of agents; the rows are the agents, lane by lane.
            shared: Whether all agents share one network.
            n_steps: Steps that a transition spans; fewer at the end of an episode or at the newest step.
            gamma: Discount factor of a step.
            env: Environment that normalises observations and rewards, or None.
        """
        lanes = self.n_envs // agents
        shape = 1 if shared else agents, size
        agent = np.random.randint(agents, size=shape) if shared else np.arange(agents)[:, None]
        row = agents * np.random.randint(lanes, size=shape) + agent
        first = np.random.randint(self.size(), size=shape)
        last, rewards, discounts = self._spans(first, row, n_steps=n_steps, gamma=gamma, env=env)
        return Batch(
            observations=self._tensor(self._normalize_obs(self._at(self.observations, first, row), env)),
            actions=self._tensor(self._at(self.actions, first, row)),
            rewards=self._tensor(rewards),
            following=self._tensor(self._normalize_obs(self._at(self.next_observations, last, row), env)),
            discounts=self._tensor(discounts),
            had_turn=self._mask(self._at(self.had_turn, first, row)),
            in_game=self._mask(self._at(self.in_game, first, row)),
            next_turn=self._mask(self._has_turn_after(last, row)),
        )

    def _has_turn_after(self, last: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
        """Return whether agents have a turn in the step after a step; True at ends and if it is not yet known."""
        unknown = (self._at(self.dones, last, row) != 0) | (last == (self.pos - 1) % self.buffer_size)
        turn: NDArray[Any] = unknown | self._at(self.had_turn, (last + 1) % self.buffer_size, row)
        return turn

    def _mask(self, values: NDArray[Any]) -> th.Tensor | None:
        """Return a mask as numbers, or None if it is True everywhere."""
        return None if values.all() else self._tensor(values)

    def cut(self) -> None:
        """Mark the newest steps as truncated ends of their episodes, unless the episodes ended there."""
        if self.size():
            newest = (self.pos - 1) % self.buffer_size
            self.timeouts[newest] = np.maximum(self.timeouts[newest], 1 - self.dones[newest])
            self.dones[newest] = 1

    def _spans(
        self, first: NDArray[Any], row: NDArray[Any], *, n_steps: int, gamma: float, env: Any
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the ends of spans of steps, their discounted rewards, and the discount of the following value."""
        step = np.arange(n_steps)[:, np.newaxis, np.newaxis]
        place = (first + step) % self.buffer_size
        ends = (self._at(self.dones, place, row) != 0) | (place == (self.pos - 1) % self.buffer_size)
        ends[-1] = True
        steps = ends.argmax(0)  # additional steps
        discounts = np.multiply.accumulate(np.array([1, *[gamma] * n_steps], np.float32))
        earned = self._normalize_reward(self._at(self.rewards, place, row), env)
        rewards = np.where(step <= steps, discounts[step] * earned, 0).sum(0)
        last = (first + steps) % self.buffer_size
        terminated = self._at(self.dones, last, row) * (1 - self._at(self.timeouts, last, row))
        return last, rewards, discounts[steps + 1] * (1 - terminated)

    def _at(self, values: NDArray[Any], place: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
        """Return ``values[place, row]``, faster than NumPy's indexing."""
        flat = values.reshape(-1, *values.shape[2:])
        return flat.take(place * self.n_envs + row, axis=0)  # type: ignore[no-any-return]

    def _tensor(self, values: Any) -> th.Tensor:
        return th.as_tensor(values.astype(np.float32, copy=False), device=self.device)


# ---------------------------------------------------------------------------------------------------- the algorithm


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """Decay of exploration from its initial to its final values over a share of the training."""

    fraction: float
    eps: tuple[float, float]  # probability that an agent takes the guide's action, or a random option without a guide
    sigma: tuple[float, float]  # scale of the noise
    theta: float  # share of the noise that decays in a step

    def at(self, progress: float) -> tuple[float, float]:
        """Return the probability and the noise scale when a given share of the training is done."""
        gone = min(1.0, progress / self.fraction) if self.fraction else 1.0
        return tuple(first + gone * (last - first) for first, last in (self.eps, self.sigma))  # type: ignore[return-value]


class DriftingNoise:
    """Ornstein-Uhlenbeck noise for all rows: each step decays it towards 0 and adds a draw of a given scale.

    Attributes:
        state: Current noise, shape (rows, axes); it is never reset to 0, as in the authors' code.
    """

    def __init__(self, shape: tuple[int, ...], *, theta: float) -> None:
        self.state, self._theta = np.zeros(shape), theta

    def draw(self, sigma: float) -> Floats:
        """Return the noise of the next step, drawn with NumPy's global generator."""
        self.state += sigma * np.random.standard_normal(self.state.shape) - self._theta * self.state
        return self.state


A = TypeVar("A", bound="DDPG")


class DDPG(OffPolicyAlgorithm):
    """Decentralised DDPG of n agents (Lillicrap et al., 2016), with the stabilisers of TD3 (Fujimoto et al., 2018).

    P marks values from appendix C of Grupen, Selman and Lee (2022), C marks values from their code. Both explore partly
    by a `guide`: with probability ``exploration_*_eps`` an agent takes the guide's action, otherwise its actor's action
    with drifting noise.

    Discrete actions are explored by sampling from the actor's distribution, and without a guide by uniformly random
    options instead of the guide's actions. The arguments about noise do not apply to them.

    Example:
        >>> env = make_sb3("FairPursuit-v0", n_envs=16)
        >>> model = DDPG("MlpPolicy", env, guide=Greedy(), seed=0).learn(1_000_000)

    The constructor is long because it has the arguments of Stable-Baselines3's DDPG and checks each of them.

    Args:
        policy: ``"MlpPolicy"``, or ``"DeepSetsPolicy"``, which treats team-mates as a set; ``policy_kwargs`` are the
            arguments of `TeamPolicy`, such as ``net_arch``.
        env: Environment with one row for each agent, lane by lane, as `fair_envs.make_sb3` returns by default.
        agents: Number of rows of a lane; None: as the environment defines, or 1.
        shared: Whether all agents share the same networks and learn from the transitions of all.
        learning_rate: Learning rate of the actors, a number or a schedule; P.
        critic_learning_rate: Learning rate of the critics; P.
        buffer_size: Transitions kept for each agent; P.
        learning_starts: Steps before the first update, counted over all agents. Agents explore as they do later, not
            at random as in Stable-Baselines3. C: 1,000 episodes.
        batch_size: Transitions for each network in an update; P.
        tau: Share of the networks in their target networks after an update; C; P: 0.001.
        gamma: Discount factor of a step; P.
        n_steps: Steps of the returns that critics learn; P, C: 1.
        train_freq: Steps of the batch of lanes between updates; C: 5, of one lane.
        gradient_steps: Number of updates each time.
        max_grad_norm: Largest norm of each network's gradient; P.
        twin_critics: TD3: whether the lower of two critics' values is the target.
        policy_delay: TD3: updates of the critics for each update of the actors and of the target networks.
        target_policy_noise: TD3: standard deviation of the noise in the target's action; 0: none.
        target_noise_clip: TD3: largest absolute value of that noise.
        logit_weight: Weight of the mean squared logit in the actors' loss, for discrete actions, per unit of the mean
            absolute value. It keeps actors random, which exploration and partly observed environments need. The code of
            MADDPG uses 0.001, whatever the values are.
        guide: Policy that demonstrates actions; None: no demonstrations, but random options for discrete actions.
        exploration_fraction: Share of the training over which exploration decays; C: 15,000 of 125,000 episodes.
        exploration_initial_eps: Initial probability that an agent takes the guide's action; C.
        exploration_final_eps: Final probability that an agent takes the guide's action; C.
        noise_initial_sigma: Initial scale of the noise; C.
        noise_final_sigma: Final scale of the noise; C.
        noise_theta: Share of the noise that decays in a step; C.

    Raises:
        ValueError: A value is outside its range, the actions are neither discrete nor vectors from -1 to 1, or
            ``train_freq`` is in episodes.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": TeamPolicy, "DeepSetsPolicy": DeepSetsPolicy}
    policy: TeamPolicy
    replay_buffer: TeamReplay | None

    # One argument for each setting, which makes it longer than a screen.
    def __init__(
        self,
        policy: str | type[TeamPolicy],
        env: GymEnv | str | None,
        *,
        agents: int | None = None,
        shared: bool = False,
        learning_rate: float | Schedule = 1e-4,
        critic_learning_rate: float | Schedule = 1e-3,
        buffer_size: int = 500_000,
        learning_starts: int = 1000,
        batch_size: int = 512,
        tau: float = 0.01,
        gamma: float = 0.99,
        n_steps: int = 1,
        train_freq: int | tuple[int, str] = 5,
        gradient_steps: int = 1,
        max_grad_norm: float = 0.5,
        twin_critics: bool = False,
        policy_delay: int = 1,
        target_policy_noise: float = 0.0,
        target_noise_clip: float = 0.5,
        logit_weight: float = 0.01,
        guide: Policy | None = None,
        exploration_fraction: float = 0.12,
        exploration_initial_eps: float = 0.95,
        exploration_final_eps: float = 0.05,
        noise_initial_sigma: float = 0.3,
        noise_final_sigma: float = 0.02,
        noise_theta: float = 0.15,
        policy_kwargs: dict[str, Any] | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        super().__init__(
            policy,
            env,  # type: ignore[arg-type]
            checked_rate("learning_rate", learning_rate),
            buffer_size=checked("buffer_size", buffer_size, PositiveInt),
            learning_starts=checked("learning_starts", learning_starts, NonNegativeInt),
            batch_size=checked("batch_size", batch_size, PositiveInt),
            tau=checked("tau", tau, UnitInterval),
            gamma=checked("gamma", gamma, UnitInterval),
            train_freq=checked_frequency(train_freq),
            gradient_steps=checked("gradient_steps", gradient_steps, PositiveInt),
            replay_buffer_class=TeamReplay,
            policy_kwargs=policy_kwargs,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            support_multi_env=True,
            seed=seed,
            sde_support=False,
        )
        self.shared = checked("shared", shared, bool)
        self.return_steps = checked("n_steps", n_steps, PositiveInt)  # SB3's own n_steps requires its own replay buffer
        self.critic_learning_rate = checked_rate("critic_learning_rate", critic_learning_rate)
        self.max_grad_norm = checked("max_grad_norm", max_grad_norm, Positive)
        self.twin_critics = checked("twin_critics", twin_critics, bool)
        self.policy_delay = checked("policy_delay", policy_delay, PositiveInt)
        self.target_policy_noise = checked("target_policy_noise", target_policy_noise, NonNegative)
        self.target_noise_clip = checked("target_noise_clip", target_noise_clip, NonNegative)
        self.logit_weight = checked("logit_weight", logit_weight, NonNegative)
        self.exploration = Exploration(
            fraction=checked("exploration_fraction", exploration_fraction, UnitInterval),
            eps=(
                checked("exploration_initial_eps", exploration_initial_eps, UnitInterval),
                checked("exploration_final_eps", exploration_final_eps, UnitInterval),
            ),
            sigma=(
                checked("noise_initial_sigma", noise_initial_sigma, NonNegative),
                checked("noise_final_sigma", noise_final_sigma, NonNegative),
            ),
            theta=checked("noise_theta", noise_theta, UnitInterval),
        )
        if guide is not None and not isinstance(guide, Policy):
            raise ValueError(f"guide must be a Policy such as Greedy(), or None, got {guide!r}")
        if reserved := set(policy_kwargs or {}) & set(OURS):
            raise ValueError(f"policy_kwargs must not contain {', '.join(sorted(reserved))}, which the learner sets")
        self.guide = guide
        self.agents = _agents_of(self.env, agents)
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        """Create the networks, the optimisers and the replay buffer."""
        check_spaces(self.observation_space, self.action_space)
        self._check_env(self.env)
        rules = self._rules
        ours = {"agents": self.agents, "shared": self.shared, "critics": 1 + self.twin_critics}
        self.policy_kwargs = kwargs = {**self.policy_kwargs, **ours}  # the caller's dictionary is not modified
        if rules is not None:
            kwargs.setdefault("directions", rules.acts_by_directions())
        if self.policy_class is DeepSetsPolicy and "sets" not in kwargs:
            kwargs["sets"] = sets_of(rules)
        self.replay_buffer = TeamReplay(
            self.buffer_size * self.agents,
            self.observation_space,
            self.action_space,
            device=self.device,
            n_envs=self.n_envs,
        )
        super()._setup_model()
        self.critic_schedule = FloatSchedule(self.critic_learning_rate)
        self.actor_optimizer = th.optim.Adam([self.policy.actor.weights], self.lr_schedule(1), fused=True)
        self.critic_optimizer = th.optim.Adam([self.policy.critic.weights], self.critic_schedule(1), fused=True)
        axes = () if self.policy.options else cast(Any, self.action_space.shape)
        self.noise = DriftingNoise((0,) if self.policy.options else (self.n_envs, *axes), theta=self.exploration.theta)
        keep_freed_memory()

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Replace the environment by another one with the same number of rows."""
        env = self._wrap_env(env, self.verbose)
        self._check_env(env)
        super().set_env(env, force_reset)

    def _check_env(self, env: VecEnv | None) -> None:
        """Raise ValueError unless an environment has this many agents and, if there is a guide, is from this package.

        This check is repeated because a model can be loaded with, or moved to, another environment.
        """
        _agents_of(env, self.agents)
        if self.guide is not None and env is not None and lanes_env_of(env) is None:
            raise ValueError("guide must be None for an environment that was not made by fair_envs.make_sb3")

    @property
    def _rules(self) -> Rules | None:
        """Rules of the environment if its rows are agents of an environment of this package, else None."""
        found = None if self.env is None else agents_env_of(self.env)
        return None if found is None else found.lanes.rules

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "actor_optimizer", "critic_optimizer"], []

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "noise", "_in_game"]

    def action_probabilities(self, observation: NDArray[Any]) -> Floats | None:
        """Return the probabilities of discrete actions for rows of observations; None if actions are vectors.

        Returns:
            Shape (rows, options), or (rows, choices, options) of several choices; zeros where a choice has fewer.
        """
        if not self.policy.options:
            return None
        with th.no_grad():
            rows = cast(th.Tensor, self.policy.obs_to_tensor(observation)[0])
            return choices.probabilities(self.policy.of_rows(rows, self.policy.actor).cpu(), self.policy.options)

    # ------------------------------------------------------------------------------------------------- exploration

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows' actions in training, the guide's or the actor's with noise; twice, as SB3 expects."""
        found = agents_env_of(cast(VecEnv, self.env))
        self._in_game = np.ones(n_envs, bool) if found is None else found.lanes.active().reshape(-1)
        eps, sigma = self.exploration.at(1 - self._current_progress_remaining)
        actions = self._with_noise(sigma)
        if self.guide is not None or self.policy.options:
            replaced = (np.random.random(n_envs) < eps).reshape(-1, *[1] * (actions.ndim - 1))
            actions = np.where(replaced, self._demonstrated().reshape(actions.shape), actions)
        actions = actions.astype(np.int64 if self.policy.options else np.float32)
        return actions, actions

    def _with_noise(self, sigma: float) -> NDArray[Any]:
        """Return the actors' actions with noise of a scale, or sampled actions, shape (rows, ...)."""
        noise = self.noise.draw(sigma)
        actions = self.predict(cast(NDArray[Any], self._last_obs))[0]
        if self.policy.options:
            return actions
        return self.policy.allowed(th.as_tensor(actions + noise)).numpy() if sigma else actions

    def _demonstrated(self) -> NDArray[Any]:
        """Return the guide's actions, or random options without a guide."""
        if self.guide is None:
            return choices.at_random(self.policy.options, self.n_envs)
        lanes = cast(Any, lanes_env_of(cast(VecEnv, self.env))).lanes
        seen = cast(NDArray[Any], self._last_obs).reshape(lanes.count, lanes.agents, -1)
        return self.guide.act(seen, draws(lanes))

    def _store_transition(
        self,
        replay_buffer: ReplayBuffer,
        buffer_action: NDArray[Any],
        new_obs: Any,
        reward: NDArray[Any],
        dones: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Store a step, without the actions of agents without a turn; it ends the episodes of agents that leave."""
        found, replay = agents_env_of(cast(VecEnv, self.env)), cast(TeamReplay, replay_buffer)
        had_turn = np.ones(self.n_envs, bool)
        if found is not None:
            had_turn = found.interactions["action"].reshape(-1) >= 0
            dones = dones | (self._in_game & ~found.active.reshape(-1))
        if not had_turn.all():
            none = choices.NO_OPTION if self.policy.options else 0
            buffer_action = np.where(had_turn.reshape(-1, *[1] * (buffer_action.ndim - 1)), buffer_action, none)
        replay.had_turn[replay.pos], replay.in_game[replay.pos] = had_turn, self._in_game
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    # ---------------------------------------------------------------------------------------------------- learning

    def _setup_learn(
        self, total_timesteps: int, callback: MaybeCallback = None, reset_num_timesteps: bool = True, *args: Any
    ) -> tuple[int, BaseCallback]:
        """Set up the training; earlier steps belong to other episodes if the environment is reset."""
        if reset_num_timesteps or self._last_obs is None:
            cast(TeamReplay, self.replay_buffer).cut()
        if self.guide is not None:
            self.guide.start(cast(Any, lanes_env_of(cast(VecEnv, self.env))))
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args)

    def learn(
        self: A,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 100,
        tb_log_name: str = "DDPG",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> A:
        """Train for ``total_timesteps`` agent steps, and log every ``log_interval`` agent episodes (None: never)."""
        every = cast(int, log_interval)  # SB3 accepts None too
        return super().learn(total_timesteps, callback, every, tb_log_name, reset_num_timesteps, progress_bar)

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Update the networks of all agents ``gradient_steps`` times."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.actor_optimizer)
        for group in self.critic_optimizer.param_groups:
            group["lr"] = self.critic_schedule(self._current_progress_remaining)
        for _ in range(gradient_steps):
            batch = cast(TeamReplay, self.replay_buffer).team_batch(
                batch_size,
                agents=self.agents,
                shared=self.shared,
                n_steps=self.return_steps,
                gamma=self.gamma,
                env=self._vec_normalize_env,
            )
            self.update(batch._replace(actions=self.policy.encoded(batch.actions)))

    def update(self, batch: Batch) -> None:
        """Update all critics once, and all actors and target networks every `policy_delay` times."""
        self._n_updates += 1
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self._update_critics(batch)
        if self._n_updates % self.policy_delay == 0:
            self._update_actors(batch.observations, batch.had_turn)
            for slow, quick in (
                (self.policy.actor_target, self.policy.actor),
                (self.policy.critic_target, self.policy.critic),
            ):
                slow.weights.data.lerp_(quick.weights.data, self.tau)

    def _update_critics(self, batch: Batch) -> None:
        targets = self._targets(batch)
        critics = self.policy.critics
        values = self.policy.values(self.policy.critic, batch.observations, batch.actions, critics=critics)
        losses = mean_where((values - targets).square(), batch.in_game)  # (critics, networks)
        (gradient,) = th.autograd.grad(losses.sum(), [self.policy.critic.weights])
        self._descend(self.critic_optimizer, self.policy.critic, gradient)
        self.logger.record_mean("train/critic_loss", losses.mean().item())

    @th.no_grad()
    def _targets(self, batch: Batch) -> th.Tensor:
        """Return the critics' targets for the transitions, shape (networks, batch)."""
        actions = self.policy.act(self.policy.actor_target, batch.following)
        if self.target_policy_noise and not self.policy.options:
            size = self.target_noise_clip
            noise = (th.randn_like(actions) * self.target_policy_noise).clamp(-size, size)
            actions = self.policy.allowed(actions + noise)
        if batch.next_turn is not None:
            actions = actions * batch.next_turn.unsqueeze(-1)
        values = self.policy.values(
            self.policy.critic_target, batch.following, actions, critics=self.policy.critics
        ).amin(0)
        return batch.rewards + batch.discounts * values

    def _update_actors(self, observations: th.Tensor, had_turn: th.Tensor | None = None) -> None:
        gradient = self._actors_gradient(observations, had_turn)
        self._descend(self.actor_optimizer, self.policy.actor, gradient)

    def _actors_gradient(self, observations: th.Tensor, had_turn: th.Tensor | None = None) -> th.Tensor:
        """Return the gradients of the actors' loss, minus the critics' values, shape (networks, parameters)."""
        outputs = self.policy.actor(observations)
        values = self._values(observations, self.policy.actions(outputs))
        return self._gradient(self._value_losses(values, outputs, had_turn))

    def _value_losses(self, values: th.Tensor, outputs: th.Tensor, had_turn: th.Tensor | None) -> th.Tensor:
        """Return minus the mean values, shape (networks,), for discrete actions with the penalty on logits."""
        losses = -mean_where(values, had_turn)
        if not self.policy.options:
            return losses
        logits = mean_where(outputs.square().mean(-1), had_turn)
        weighted: th.Tensor = self.logit_weight * size_of(values, had_turn) * logits
        return losses + weighted

    def _values(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return the critics' values of actions, shape (networks, batch)."""
        values = self.policy.values(self.policy.critic, observations, actions, critics=1)[0]
        self.logger.record_mean("train/value", values.detach().mean().item())
        return values

    def _gradient(self, losses: th.Tensor, *, keep: bool = False) -> th.Tensor:
        """Return each network's gradient of its own loss, shape (networks, parameters), for losses (networks,)."""
        (gradient,) = th.autograd.grad(losses.sum(), [self.policy.actor.weights], retain_graph=keep)
        return gradient

    def _descend(self, optimizer: th.optim.Optimizer, networks: Stack, gradient: th.Tensor) -> None:
        """Take a step of gradient descent, with each network's gradient clipped separately."""
        norm = gradient.norm(dim=1, keepdim=True)
        networks.weights.grad = gradient * (self.max_grad_norm / (norm + SLACK)).clamp(max=1.0)
        optimizer.step()

    # --------------------------------------------------------------------------------------------------- interruption

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state besides the networks that a resumed training needs: the noise and the replay buffer."""
        replay = cast(TeamReplay, self.replay_buffer)
        filled = replay.size()
        kept = {name: th.as_tensor(getattr(replay, name)[:filled]) for name in REPLAYED}
        return {"noise": th.as_tensor(self.noise.state), "replay": kept, "place": (replay.pos, replay.full)}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state of a model with the same settings."""
        replay = cast(TeamReplay, self.replay_buffer)
        self.noise.state[:] = state["noise"].numpy()
        for name, values in state["replay"].items():
            getattr(replay, name)[: len(values)] = values.numpy()
        replay.pos, replay.full = state["place"]


def keep_freed_memory() -> None:
    """Make glibc keep freed memory for reuse instead of returning it to the system after each update.

    Freeing a large block raises malloc's threshold: from then on blocks up to that size come from a heap that keeps
    twice as much (``man mallopt``, M_MMAP_THRESHOLD). With other implementations of malloc this has no effect.
    """
    np.empty(LARGE_BLOCK, np.uint8)


def checked_rate(name: str, rate: float | Schedule) -> float | Schedule:
    """Return a checked learning rate: a number of at least 0, or a schedule."""
    return rate if callable(rate) else cast(float, checked(name, rate, NonNegative))


def checked_frequency(train_freq: int | tuple[int, str]) -> tuple[int, str]:
    """Return the number of steps between updates, and their unit.

    Raises:
        ValueError: The unit is not steps, or the number is less than 1.
    """
    count, unit = train_freq if isinstance(train_freq, tuple) and len(train_freq) == 2 else (train_freq, "step")
    if unit != "step":
        raise ValueError(f"train_freq must count steps, got {train_freq!r}")
    return cast(int, checked("train_freq", count, PositiveInt)), "step"


def _agents_of(env: VecEnv | None, given: int | None) -> int:
    """Return the number of rows of a lane.

    Raises:
        ValueError: The environment has another number, or its rows do not make up a whole number of lanes.
    """
    found = None if env is None else agents_env_of(env)
    if given is None:
        return 1 if found is None else found.lanes.agents
    agents = cast(int, checked("agents", given, PositiveInt))
    if found is not None and agents != found.lanes.agents:
        raise ValueError(f"agents must be {found.lanes.agents}, as the environment has, got {agents}")
    if env is not None and env.num_envs % agents:
        raise ValueError(f"agents must divide the environment's {env.num_envs} rows, got {agents}")
    return agents


class FairE(DDPG):
    """Fair-E: all agents share one actor and one critic, and learn from the transitions of all (section 4.2).

    If exchanging agents exchanges their observations, the team's policy is equivariant under that exchange. Outcomes
    are then equally likely for each agent, provided that the environment treats the agents equally. Sharing networks
    is not sufficient: with ``teammates="index"``, or with pursuers of different speeds, there is no such guarantee,
    and a warning is given. With the default ``"cyclic"`` the team is equivariant under rotations: each agent captures
    equally often, and so does each pair of three pursuers. ``"DeepSetsPolicy"`` makes the team equivariant under all
    permutations. An update takes one gradient step for all agents, not one for each. The replay buffer holds
    ``buffer_size`` transitions of each agent; the paper's 500,000 are for all agents together.

    Args:
        policy: See `DDPG`.
        env: See `DDPG`.
        settings: Other arguments of `DDPG` except ``shared``, which is True.
    """

    def __init__(self, policy: str | type[TeamPolicy], env: GymEnv | str | None, **settings: Any) -> None:
        if checked("shared", settings.pop("shared", True), bool) is False:
            raise ValueError("shared must be True for Fair-E, got False")
        super().__init__(policy, env, shared=True, **settings)

    def _setup_model(self) -> None:
        if not self.shared:
            raise ValueError("shared must be True for Fair-E, got a model of another class, saved with shared=False")
        if self._rules is not None and (missing := self._rules.asymmetry(sets=self.policy_class is DeepSetsPolicy)):
            warnings.warn(f"Fair-E's team has no symmetry: {missing}", stacklevel=4)
        super()._setup_model()


class FairER(DDPG):
    """Fair-ER: every agent has its own networks, and its actor is pulled towards the other agents' actors (Eq. 10).

    Agent i maximises ``J(phi_i) - weight * J_eqv,i`` with the mean over its observations o and the other agents j of

        J_eqv,i = 1 - cos(mu_i(o) - mu_j(o)).

    It is 0 if all actors are the same function and 2 if they are opposite. For discrete actions, it is the mean of
    ``1 - sum(sqrt(pi_i(o) pi_j(o)))``, at most 1. Both actors are evaluated on agent i's
    observation; the other agents' actors are held constant. Equation 10 adds the penalty to the objective that is
    maximised; it is subtracted here, as the paper's text intends and its code does.

    Args:
        policy: See `DDPG`.
        env: See `DDPG`; actions must be directions or discrete.
        fairness_weight: Weight of the penalty (lambda), 0 is `DDPG`; the initial weight with ``form="automatic"``.
        form: ``"plain"``: unscaled values, which grow with rewards. ``"normalised"``: values divided by the mean of
            their absolute values, so that the weight does not depend on the scale of rewards. ``"automatic"``:
            normalised values, and a weight for each agent that grows while its penalty is above the limit (a Lagrangian
            method).
        fairness_limit: Largest allowed penalty with ``"automatic"``, from 0 to 2.
        weight_learning_rate: Change of a weight in an update per unit of excess, with ``"automatic"``.
        settings: Other arguments of `DDPG` except ``shared``, which is False.
    """

    def __init__(
        self,
        policy: str | type[TeamPolicy],
        env: GymEnv | str | None,
        *,
        fairness_weight: float = 0.5,
        form: Form = "plain",
        fairness_limit: float = 0.05,
        weight_learning_rate: float = 0.01,
        **settings: Any,
    ) -> None:
        self.fairness_weight = checked("fairness_weight", fairness_weight, NonNegative)
        self.form = checked("form", form, Form)
        self.fairness_limit = checked("fairness_limit", fairness_limit, Annotated[float, Range(0, 2)])
        self.weight_learning_rate = checked("weight_learning_rate", weight_learning_rate, NonNegative)
        if checked("shared", settings.pop("shared", False), bool) is True:
            raise ValueError("shared must be False for Fair-ER, whose agents have their own networks, got True")
        super().__init__(policy, env, **settings)

    def _setup_model(self) -> None:
        super()._setup_model()
        if not (self.policy.directions or self.policy.options) or self.agents < 2:
            needed = "at least two agents whose actions are directions or discrete for Fair-ER"
            raise ValueError(f"env must have {needed}, got {'one agent' if self.agents < 2 else 'other actions'}")
        self._weights = th.full((self.agents,), float(self.fairness_weight), device=self.device)

    def _actors_gradient(self, observations: th.Tensor, had_turn: th.Tensor | None = None) -> th.Tensor:
        """Return the gradients of the weighted penalties minus the values, shape (networks, parameters)."""
        outputs = self.policy.actor(observations)
        values = self._values(observations, self.policy.actions(outputs))
        penalty = equivariance_penalty(self.policy, observations, self.policy.compared(outputs), had_turn)
        of_values = self._gradient(self._value_losses(values, outputs, had_turn), keep=True)
        if self.form != "plain":
            of_values = of_values / (size_of(values, had_turn).unsqueeze(-1) + SLACK)
        of_penalty = self._weights.unsqueeze(1) * self._gradient(penalty)
        self.logger.record_mean("train/penalty", penalty.detach().mean().item())
        self.logger.record_mean("train/fairness_weight", self._weights.mean().item())
        self.logger.record_mean("train/value_gradient", of_values.norm(dim=1).mean().item())
        self.logger.record_mean("train/penalty_gradient", of_penalty.norm(dim=1).mean().item())
        if self.form == "automatic":
            excess = penalty.detach() - self.fairness_limit
            self._weights = (self._weights + self.weight_learning_rate * excess).clamp(min=0)
        return of_values + of_penalty

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        networks, others = super()._get_torch_save_params()
        return networks, [*others, "_weights"]

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state of `DDPG` and the weights."""
        return {**super().get_extra_state(), "weights": self._weights.cpu()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state of a model with the same settings."""
        super().set_extra_state(state)
        self._weights = state["weights"].to(self.device)


def mean_where(values: th.Tensor, mask: th.Tensor | None) -> th.Tensor:
    """Return the means of the values (..., networks, batch) over the batch where a mask is 1; 0 if it is 1 nowhere."""
    if mask is None:
        return values.mean(-1)
    return (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)


def size_of(values: th.Tensor, mask: th.Tensor | None) -> th.Tensor:
    """Return the mean absolute values over the batch where a mask is 1, shape (networks,), without a gradient."""
    return mean_where(values.detach().abs(), mask)


def equivariance_penalty(
    policy: TeamPolicy, observations: th.Tensor, compared: th.Tensor, had_turn: th.Tensor | None = None
) -> th.Tensor:
    """Return the mean of 1 - cos(mu_i(o) - mu_j(o)) over agent i's observations and the other agents j, shape (n,).

    For directions, it is computed as half the squared distance of the two directions. This is the same number, is
    exactly 0 for equal directions, and has a gradient wherever a direction has one. The penalty is 0 if all actors are
    the same function of the observations, and at most 2. Its gradient is 0 at both extremes, so exactly opposite actors
    stay opposite. For discrete actions, the square roots of the actors' probabilities take the place of the directions
    (`fair_envs.baselines.equivariance`), and the penalty is at most 1. Only agent i's own actor receives a gradient.

    With discrete actions, large teams use only so many observations that there are at most `COMPARISONS` pairs of an
    actor and an observation, at least one observation of each agent.

    Args:
        policy: Policy whose actors are compared.
        observations: Observations of each agent, shape (n, batch, d).
        compared: What is compared of each agent's actor for its observations, see `TeamPolicy.compared`, shape (n,
            batch, axes).
        had_turn: Mask of the observations that count, shape (n, batch); None: all do.
    """
    agents, batch, _ = observations.shape
    if policy.options:
        batch = min(batch, max(1, COMPARISONS // agents**2))
    with th.no_grad():
        everything = observations[:, :batch].reshape(1, agents * batch, -1).expand(agents, -1, -1)
        others = policy.compared(policy.actor(everything)).view(agents, agents, batch, -1)  # actor, agent observing
    apart = policy.apart(others, compared[:, :batch])  # 0 for the agent's own actor
    return mean_where(apart, None if had_turn is None else had_turn[:, :batch]).sum(0) / (agents - 1)
