"""Policies with separate networks for groups or agents, and policies with layers shared by actor and critic."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import gymnasium as gym
import torch as th
from stable_baselines3.common.distributions import Distribution, make_proba_distribution
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule

from fair_envs.baselines.equivariance import distance, options_of, parameters_of


class GroupedPolicy(BasePolicy):
    """An actor and a critic for each group, which get gradients only from their own group's samples.

    Only two things connect the groups: PPO normalises advantages over all samples of a minibatch, and clips the norm of
    all gradients together.

    The last entry of an observation is the agent's group (`fair_envs.make_sb3` with ``append_group=True`` adds it). It
    selects the networks and is not one of their inputs. The policy can be used wherever Stable-Baselines3 takes an
    ``ActorCriticPolicy``.

    Args:
        observation_space: A vector whose last entry is the group.
        action_space: The action space.
        lr_schedule: Learning rate as a function of the remaining share of the training.
        member_class: Class of each group's policy.
        optimizer_class: One optimiser for all groups; element-wise optimisers such as Adam keep groups separate.
        optimizer_kwargs: Keyword arguments of the optimiser; Adam gets ``eps=1e-5`` as in Stable-Baselines3.
        member_kwargs: Keyword arguments of ``member_class``, such as ``net_arch``.

    Attributes:
        member_of: What the last entry of an observation is, as `fair_envs.make_sb3` names it in ``append``.
    """

    member_of: ClassVar[str] = "group"
    optimizer: th.optim.Optimizer

    def __init__(
        self,
        observation_space: gym.spaces.Box,
        action_space: gym.spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        use_sde: bool = False,
        member_class: type[ActorCriticPolicy] = ActorCriticPolicy,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        **member_kwargs: Any,
    ) -> None:
        if use_sde:
            raise ValueError(f"use_sde must be False for {type(self).__name__}")
        if not isinstance(observation_space, gym.spaces.Box) or len(observation_space.shape) != 1:
            raise ValueError(
                f"observation_space must be a vector that ends with the {self.member_of}, got {observation_space}"
            )
        if optimizer_kwargs is None:
            optimizer_kwargs = {"eps": 1e-5} if optimizer_class is th.optim.Adam else {}
        super().__init__(
            observation_space, action_space, optimizer_class=optimizer_class, optimizer_kwargs=optimizer_kwargs
        )
        self.member_class, self.member_kwargs = member_class, member_kwargs
        self.groups = int(observation_space.high[-1]) + 1
        without_group = gym.spaces.Box(
            observation_space.low[:-1], observation_space.high[:-1], dtype=observation_space.dtype.type
        )
        self.members = th.nn.ModuleList(
            member_class(without_group, action_space, lr_schedule, **member_kwargs) for _ in range(self.groups)
        )
        self.optimizer = optimizer_class(self.parameters(), **{"lr": lr_schedule(1), **optimizer_kwargs})

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "lr_schedule": self._dummy_schedule,
            "member_class": self.member_class,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
            **self.member_kwargs,
        }

    def forward(self, obs: th.Tensor, deterministic: bool = False) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """Return actions, values and log-probabilities, shapes (n, ...), (n, 1) and (n,)."""
        actions, values, log_prob = self._by_group(obs, lambda member, own, _: member(own, deterministic))
        return actions, values, log_prob

    def evaluate_actions(self, obs: th.Tensor, actions: th.Tensor) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """Return values (n, 1), log-probabilities (n,) and entropies (n,) for the given actions."""
        values, log_prob, entropy = self._by_group(
            obs, lambda member, own, rows: member.evaluate_actions(own, actions[rows])
        )
        return values, log_prob, entropy

    def predict_values(self, obs: PyTorchObs) -> th.Tensor:
        """Return values, shape (n, 1)."""
        return self._by_group(_tensor(obs), lambda member, own, _: (member.predict_values(own),))[0]

    def action_probabilities(self, obs: th.Tensor) -> th.Tensor:
        """Return the probabilities of discrete actions, shape (n, actions)."""
        return self.get_distribution(obs).distribution.probs  # type: ignore[no-any-return, union-attr]

    def get_distribution(self, obs: PyTorchObs) -> Distribution:
        """Return the distribution of actions."""
        numbers = self._by_group(_tensor(obs), lambda member, own, _: (parameters_of(member.get_distribution(own)),))[0]
        found: Any = make_proba_distribution(self.action_space)
        if isinstance(self.action_space, gym.spaces.Box):
            mean, std = th.chunk(numbers, 2, -1)
            return found.proba_distribution(mean, std.log())  # type: ignore[no-any-return]
        return found.proba_distribution(numbers)  # type: ignore[no-any-return]

    def equivariance_penalty(self, obs: th.Tensor) -> th.Tensor:
        """Return how far the networks of each row's own group act from the others on the same observation, shape (n,).

        It is the mean over the other groups of the squared Hellinger distance of the distributions of actions, from 0
        to 1, see `fair_envs.baselines.equivariance`. Only the networks of the row's own group get a gradient.
        """
        options = options_of(self.action_space)
        own = self._by_group(obs, lambda member, own, _: (parameters_of(member.get_distribution(own)),))[0]
        total = th.zeros(len(obs), device=obs.device)
        for index, member in enumerate(self.members):
            with th.no_grad():
                other = parameters_of(member.get_distribution(obs[:, :-1]))  # type: ignore[operator]
            total = total + th.where(obs[:, -1] == index, 0.0, distance(own, other, options))
        return total / (self.groups - 1)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        return self.forward(_tensor(observation), deterministic)[0]

    def _by_group(
        self, obs: th.Tensor, evaluate: Callable[[Any, th.Tensor, th.Tensor], tuple[th.Tensor, ...]]
    ) -> tuple[th.Tensor, ...]:
        """Return the outputs of each group's networks for its own rows, in the rows' original order."""
        rows = self.rows_of_groups(obs)
        parts = [
            evaluate(member, obs[own, :-1], own) for member, own in zip(self.members, rows, strict=True) if len(own)
        ]
        joined = th.cat(rows)
        place = th.empty_like(joined)
        place[joined] = th.arange(len(joined), device=joined.device)
        return tuple(th.cat(part)[place] for part in zip(*parts, strict=True))

    def rows_of_groups(self, obs: th.Tensor) -> list[th.Tensor]:
        """Return the indices of each group's observations.

        Raises:
            ValueError: An observation does not end with a group.
        """
        group = obs[:, -1]
        rows = [th.nonzero(group == g).flatten() for g in range(self.groups)]
        if sum(map(len, rows)) != len(obs):
            strange = group[~th.isin(group, th.arange(self.groups, device=group.device))][0]
            raise ValueError(
                f"obs must end with the {self.member_of}, 0 to {self.groups - 1}, not normalised, got {strange:g}"
            )
        return rows


class IndividualPolicy(GroupedPolicy):
    """An actor and a critic for each agent, as `GroupedPolicy` has for each group.

    The last entry of an observation is the agent's index (`fair_envs.make_sb3` with ``append="agent"`` adds it).
    """

    member_of = "agent"


class SharedTrunk(th.nn.Module):
    """Layers shared by actor and critic, followed by separate layers of each.

    Args:
        inputs: Number of input features.
        shared: Sizes of the shared layers.
        pi: Sizes of the actor's separate layers.
        vf: Sizes of the critic's separate layers.
        activation_fn: Activation function after each layer.
    """

    def __init__(
        self,
        inputs: int,
        *,
        shared: Sequence[int] = (),
        pi: Sequence[int] = (),
        vf: Sequence[int] = (),
        activation_fn: type[th.nn.Module] = th.nn.ReLU,
    ) -> None:
        super().__init__()
        last = [inputs, *shared][-1]
        self.trunk = _layers(inputs, shared, activation_fn)
        self.actor, self.critic = _layers(last, pi, activation_fn), _layers(last, vf, activation_fn)
        self.latent_dim_pi, self.latent_dim_vf = [last, *pi][-1], [last, *vf][-1]

    def forward(self, features: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the outputs of the actor's and the critic's last layers."""
        shared = self.trunk(features)
        return self.actor(shared), self.critic(shared)

    def forward_actor(self, features: th.Tensor) -> th.Tensor:
        """Return the output of the actor's last layer."""
        return self.actor(self.trunk(features))  # type: ignore[no-any-return]

    def forward_critic(self, features: th.Tensor) -> th.Tensor:
        """Return the output of the critic's last layer."""
        return self.critic(self.trunk(features))  # type: ignore[no-any-return]


def _layers(inputs: int, sizes: Sequence[int], activation_fn: type[th.nn.Module]) -> th.nn.Sequential:
    pairs = [(th.nn.Linear(a, b), activation_fn()) for a, b in pairwise([inputs, *sizes])]
    return th.nn.Sequential(*(layer for pair in pairs for layer in pair))


class SharedTrunkPolicy(ActorCriticPolicy):
    """An actor and a critic with shared layers, which Stable-Baselines3 no longer supports in ``net_arch``.

    The policy can be used wherever Stable-Baselines3 takes an ``ActorCriticPolicy``.

    Args:
        observation_space: The observation space.
        action_space: The action space.
        lr_schedule: Learning rate as a function of the remaining share of the training.
        net_arch: Sizes of the layers under ``"shared"``, ``"pi"`` and ``"vf"``; a missing key means no such layers.
        activation_fn: Activation function after each layer.
        kwargs: Keyword arguments of ``ActorCriticPolicy``.
    """

    def __init__(
        self,
        observation_space: gym.spaces.Space[Any],
        action_space: gym.spaces.Space[Any],
        lr_schedule: Schedule,
        net_arch: Mapping[str, Sequence[int]] | None = None,
        activation_fn: type[th.nn.Module] = th.nn.ReLU,
        **kwargs: Any,
    ) -> None:
        sizes = {"shared": (64,), "pi": (64,), "vf": (64,)} if net_arch is None else dict(net_arch)
        if unknown := sorted(set(sizes) - {"shared", "pi", "vf"}):
            raise ValueError(f"net_arch must only have the keys 'shared', 'pi' and 'vf', got {unknown[0]!r}")
        super().__init__(observation_space, action_space, lr_schedule, sizes, activation_fn, **kwargs)  # type: ignore[arg-type]

    def _build_mlp_extractor(self) -> None:
        sizes: Any = self.net_arch
        self.mlp_extractor = SharedTrunk(  # type: ignore[assignment]
            self.features_dim, activation_fn=self.activation_fn, **sizes
        ).to(self.device)


def _tensor(obs: PyTorchObs) -> th.Tensor:
    if not isinstance(obs, th.Tensor):
        raise ValueError(f"obs must be a tensor, got {type(obs).__name__}")
    return obs
