"""PPO's actors and critics without modules, distributions and autograd, whose overhead exceeds the arithmetic.

`Networks` computes the outputs and gradients of perceptrons for discrete actions. `acting` uses it to choose actions,
`FastUpdates` to take gradient steps. `surrogate_gradients` is the gradient of the loss of
`fair_envs.baselines.ppo.ppo.PPO`. Results are equal up to rounding; tests compare both.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from stable_baselines3.common.distributions import CategoricalDistribution, MultiCategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from torch import nn
from torch.nn import functional

from fair_envs.baselines.ppo.gradients import FUSED_ROWS, ManualBackprop, flatten_parameters, is_known, views
from fair_envs.baselines.ppo.minibatch import Minibatch, Summary
from fair_envs.baselines.ppo.policies import GroupedPolicy, SharedTrunk, SharedTrunkPolicy
from fair_envs.core.compilation import kernel
from fair_envs.support.aliases import Flags, Floats32, Ints


class Networks:
    """The actors and critics of a policy for which `suits` is true.

    Args:
        policy: The policy. The networks read its weights, and `backward` writes the gradients that they have now.

    Attributes:
        options: Numbers of options of each entry of an action, shape (K,).
        single: The only actor and critic, or None if there are several.
    """

    def __init__(self, policy: BasePolicy) -> None:
        self._groups = policy if isinstance(policy, GroupedPolicy) else None
        members = _members(policy)
        self._networks = [ActorCritic(member) for member in members]
        self.single = self._networks[0] if self._groups is None else None
        space = members[0].action_space
        self.options: Ints = np.asarray(space.nvec if isinstance(space, gym.spaces.MultiDiscrete) else [space.n])

    @staticmethod
    def suits(policy: BasePolicy) -> bool:
        """Return whether a policy has perceptrons that choose discrete actions, on the CPU.

        It must be Stable-Baselines3's policy for vectors, a `SharedTrunkPolicy`, or a `GroupedPolicy` of such, with
        tanhs, ReLUs or sigmoids.
        """
        own_forward = "forward" in vars(policy)  # set by a user
        return policy.device.type == "cpu" and not own_forward and all(_plain(member) for member in _members(policy))

    def forward(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the logits (n, A) of all options, one entry of an action after the other, and values (n, 1)."""
        rows = observations.float().flatten(start_dim=1)
        if self.single is not None:
            return self.single.forward(rows)
        assert self._groups is not None
        self._places = self._groups.rows_of_groups(rows)
        logits, values = rows.new_empty(len(rows), int(self.options.sum())), rows.new_empty(len(rows), 1)
        for network, place in zip(self._networks, self._places, strict=True):
            found = network.forward(_padded(rows[place, :-1]))
            logits[place], values[place] = (part[: len(place)] for part in found)
        return logits, values

    def sample(self, logits: th.Tensor, generator: th.Generator | None = None) -> tuple[th.Tensor, th.Tensor]:
        """Return random actions (n, K) and their log-probabilities (n,), given the logits of the last observations.

        Groups draw one after the other, as `GroupedPolicy` does.
        """
        if self._groups is None:
            return self._sample(logits, generator)
        actions, log_prob = th.empty(len(logits), len(self.options), dtype=th.long), logits.new_empty(len(logits))
        for place in self._places:
            if len(place):
                actions[place], log_prob[place] = self._sample(logits[place], generator)
        return actions, log_prob

    def _sample(self, logits: th.Tensor, generator: th.Generator | None) -> tuple[th.Tensor, th.Tensor]:
        actions, total = [], []
        for part in [logits] if len(self.options) == 1 else th.split(logits, self.options.tolist(), 1):
            log_probs = part.log_softmax(1)
            actions.append(th.multinomial(log_probs.exp(), 1, replacement=True, generator=generator))
            total.append(log_probs.gather(1, actions[-1]))
        if len(total) == 1:
            return actions[0], total[0].flatten()
        return th.cat(actions, 1), th.cat(total, 1).sum(1)

    def backward(self, of_logits: th.Tensor, of_values: th.Tensor) -> None:
        """Set the gradients of the weights, given those of the last outputs."""
        if self.single is not None:
            self.single.backward(of_logits, of_values)
            return
        for network, place in zip(self._networks, self._places, strict=True):
            network.backward(_padded(of_logits[place]), _padded(of_values[place]))


class ActorCritic:
    """An actor and a critic, which may share their first layers.

    Args:
        policy: A policy for which `_plain` is true.

    Attributes:
        chains: The shared layers, those of the actor and those of the critic.
    """

    def __init__(self, policy: Any) -> None:
        self._trunk, self._actor, self._critic = (ManualBackprop(chain) for chain in _chains(policy))
        self.chains = tuple(part.layers for part in (self._trunk, self._actor, self._critic))
        self._shares = bool(self._trunk.layers)

    def forward(self, rows: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return logits (n, A) and values (n, 1)."""
        shared = self._trunk.forward(rows)
        return self._actor.forward(shared), self._critic.forward(shared)

    def backward(self, of_logits: th.Tensor, of_values: th.Tensor) -> None:
        """Set the gradients of the weights, given those of the last outputs."""
        shared = self._actor.backward(of_logits, to_input=self._shares)
        of_critic = self._critic.backward(of_values, to_input=self._shares)
        if self._shares:
            self._trunk.backward(shared + of_critic, to_input=False)


def _padded(rows: th.Tensor) -> th.Tensor:
    """Return rows with rows of 0 added up to a multiple of `FUSED_ROWS`: a new number of rows costs oneDNN a while."""
    missing = -len(rows) % FUSED_ROWS if len(rows) > FUSED_ROWS else 0
    return functional.pad(rows, (0, 0, 0, missing)) if missing else rows


def _members(policy: BasePolicy) -> list[Any]:
    return list(policy.members) if isinstance(policy, GroupedPolicy) else [policy]


def _plain(policy: Any) -> bool:
    """Return whether an actor and a critic consist of layers that `ManualBackprop` can compute."""
    return (
        type(policy) in (ActorCriticPolicy, SharedTrunkPolicy)
        and type(policy.features_extractor) is FlattenExtractor
        and policy.share_features_extractor
        and type(policy.mlp_extractor) in (MlpExtractor, SharedTrunk)
        and type(policy.action_dist) in (CategoricalDistribution, MultiCategoricalDistribution)
        and isinstance(policy.observation_space, gym.spaces.Box)
        and not is_image_space(policy.observation_space)
        and all(is_known(module) for chain in _chains(policy) for module in chain)
        and not any(module._forward_hooks or module._forward_pre_hooks for module in policy.modules())
    )


def _chains(policy: Any) -> tuple[nn.Sequential, nn.Sequential, nn.Sequential]:
    """Return the modules of the shared layers, of the actor and of the critic."""
    hidden = policy.mlp_extractor
    if isinstance(hidden, SharedTrunk):
        trunk, actor, critic = hidden.trunk, hidden.actor, hidden.critic
    else:
        trunk, actor, critic = nn.Sequential(), hidden.policy_net, hidden.value_net
    return trunk, nn.Sequential(*actor, policy.action_net), nn.Sequential(*critic, policy.value_net)


# ---------------------------------------------------------------------------------------------------- acting


@contextmanager
def acting(policy: BasePolicy, networks: Any = None, *, keep_distribution: bool = False) -> Iterator[None]:
    """Replace the ``forward`` of a policy by a faster one while it collects experience, as a context.

    Args:
        policy: A policy for which `Networks.suits` is true; others do not change.
        networks: What computes logits and values and samples actions; None: the policy's own `Networks`.
        keep_distribution: Whether ``policy.action_dist`` must be that of the last actions.
    """
    if not Networks.suits(policy):
        yield
        return
    whole, shape = policy.forward, policy.action_space.shape or ()
    networks = networks or Networks(policy)

    def forward(obs: th.Tensor, deterministic: bool = False) -> Any:
        """Return actions (n, ...), values (n, 1) and log-probabilities (n,)."""
        if deterministic:
            return whole(obs, deterministic)
        logits, values = networks.forward(obs)
        if keep_distribution:
            policy.action_dist.proba_distribution(logits)  # type: ignore[operator, union-attr]
        actions, log_prob = networks.sample(logits)
        return actions.view(-1, *shape), values, log_prob

    policy.forward = forward
    try:
        yield
    finally:
        del policy.forward  # that of the class again


# -------------------------------------------------------------------------------------------------- updating


@kernel
def surrogate_gradients(
    logits: Floats32,
    options: Ints,
    actions: Floats32,
    old_log_prob: Floats32,
    advantages: Floats32,
    had_turn: Flags,
    values: Floats32,
    returns: Floats32,
    clip: float,
    ent_coef: float,
    vf_coef: float,
    of_logits: Floats32,
    of_values: Floats32,
) -> tuple[float, float, float, float, float]:
    """Write the gradients of PPO's loss with respect to logits and values; return the entries of `Summary`.

    Args:
        logits: Logits of all options, one entry of an action after the other, shape (n, A).
        options: Numbers of options of each entry of an action, with sum A, shape (K,).
        actions: The actions, shape (n, K).
        old_log_prob: Logarithms of the probabilities of the actions when they were taken, shape (n,).
        advantages: Advantages, shape (n,); without effect where `had_turn` is False.
        had_turn: Samples whose agent had a turn, shape (n,); the others count only for the values.
        values: The critic's values, shape (n,).
        returns: Their targets, shape (n,).
        clip: Clipping range of the ratio.
        ent_coef: Weight of the negative entropy.
        vf_coef: Weight of the squared error.
        of_logits: Where the gradient of logits is written, shape (n, A).
        of_values: Where the gradient of values is written, shape (n,).
    """
    n, turns = len(values), 0
    for i in range(n):
        turns += had_turn[i]
    some = max(turns, 1)
    log_total = np.zeros(len(options))
    policy = negative_entropy = squares = divergence = clipped = 0.0
    for i in range(n):
        apart = np.float64(values[i]) - returns[i]
        squares += apart * apart
        of_values[i] = vf_coef * 2.0 * apart / n
        if not had_turn[i]:
            of_logits[i] = 0.0
            continue
        log_ratio, first = -np.float64(old_log_prob[i]), 0
        for k in range(len(options)):
            after, total = first + options[k], 0.0
            largest = logits[i, first]
            for j in range(first + 1, after):
                largest = max(largest, logits[i, j])
            for j in range(first, after):
                of_logits[i, j] = math.exp(logits[i, j] - largest)  # the probability, apart from a factor
                total += of_logits[i, j]
            for j in range(first, after):
                of_logits[i, j] /= total
            log_total[k] = largest + math.log(total)
            log_ratio += logits[i, first + int(actions[i, k])] - log_total[k]
            first = after
        ratio, advantage = math.exp(log_ratio), advantages[i]
        gained, limited = advantage * ratio, advantage * min(max(ratio, 1.0 - clip), 1.0 + clip)
        policy -= min(gained, limited)
        divergence += ratio - 1.0 - log_ratio
        clipped += abs(ratio - 1.0) > clip
        slope = -gained / some if gained <= limited else 0.0  # with respect to the log-probability of the action
        first = 0
        for k in range(len(options)):
            after, chosen, negative = first + options[k], first + int(actions[i, k]), 0.0
            for j in range(first, after):
                negative += of_logits[i, j] * (logits[i, j] - log_total[k])
            for j in range(first, after):
                prob = of_logits[i, j]
                of_entropy = prob * (logits[i, j] - log_total[k] - negative)
                of_logits[i, j] = slope * ((j == chosen) - prob) + ent_coef * of_entropy / some
            negative_entropy += negative
            first = after
    return policy / some, negative_entropy / some, squares / n, divergence / some, clipped / some


class FastUpdates:
    """Takes gradient steps on a policy.

    From its creation until `close`, the weights, gradients and moments of Adam are views of one vector each. If a group
    of a `GroupedPolicy` has no samples in a minibatch, Adam's momentum still moves its weights.

    Args:
        policy: A policy for which `suits` is true.
    """

    def __init__(self, policy: BasePolicy) -> None:
        self._policy, self._parameters = policy, list(policy.parameters())
        self._flat = flatten_parameters(self._parameters)
        assert self._flat.grad is not None
        self._gradient = self._flat.grad
        self._networks = Networks(policy)
        (group,) = policy.optimizer.param_groups
        settings = {name: value for name, value in group.items() if name != "params"}
        self._optimizer = th.optim.Adam([self._flat], **{**settings, "fused": True, "foreach": False})
        self._take_moments()

    @staticmethod
    def suits(policy: BasePolicy) -> bool:
        """Return whether the class can update a policy: it has suitable `Networks`, and Adam updates all weights."""
        adam = type(policy.optimizer) is th.optim.Adam and len(policy.optimizer.param_groups) == 1
        return adam and all(one.requires_grad for one in policy.parameters()) and Networks.suits(policy)

    def _take_moments(self) -> None:
        own = self._policy.optimizer.state
        if own:
            states = [own[parameter] for parameter in self._parameters]
            self._optimizer.state[self._flat] = {
                name: value.clone() if value.ndim == 0 else th.cat([state[name].ravel() for state in states])
                for name, value in states[0].items()
            }

    def close(self) -> None:
        """Give the policy and its optimiser their own weights and moments."""
        of_each: list[dict[str, th.Tensor]] = [{} for _ in self._parameters]
        for name, value in self._optimizer.state.get(self._flat, {}).items():
            parts = views(value, self._parameters) if value.ndim else [value] * len(of_each)
            for own, part in zip(of_each, parts, strict=True):
                own[name] = part.clone()
        for parameter, own in zip(self._parameters, of_each, strict=True):
            parameter.data, parameter.grad = parameter.data.clone(), None
            if own:
                self._policy.optimizer.state[parameter] = own

    @th.no_grad()
    def compute(
        self, batch: Minibatch, advantages: th.Tensor, *, clip: float, ent_coef: float, vf_coef: float
    ) -> Summary:
        """Compute the gradients of the loss of a minibatch.

        Args:
            batch: The minibatch.
            advantages: Advantages of the samples with a turn.
            clip: Clipping range of the ratio.
            ent_coef: Weight of the negative entropy.
            vf_coef: Weight of the squared error.
        """
        logits, values = self._networks.forward(batch.observations)
        of_logits, of_values = th.empty_like(logits), th.empty_like(values)
        had_turn = batch.had_turn
        if had_turn is None:
            had_turn = th.ones(len(values), dtype=th.bool)
        else:
            advantages = th.zeros(len(values)).masked_scatter_(had_turn, advantages)
        found = surrogate_gradients(
            logits.numpy(),
            self._networks.options,
            batch.actions.view(len(values), -1).numpy(),
            batch.old_log_prob.numpy(),
            advantages.numpy(),
            had_turn.numpy(),
            values.view(-1).numpy(),
            batch.returns.numpy(),
            clip,
            ent_coef,
            vf_coef,
            of_logits.numpy(),
            of_values.view(-1).numpy(),
        )
        self._networks.backward(of_logits, of_values)
        return Summary(*found)

    def step(self, max_grad_norm: float) -> None:
        """Clip the gradients and update the weights."""
        self._gradient.mul_((max_grad_norm / (self._gradient.norm() + 1e-6)).clamp_(max=1.0))
        self._optimizer.step()
