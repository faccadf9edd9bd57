"""PPO's actors and critics without modules, distributions and autograd, whose overhead exceeds the arithmetic.

`Networks` computes the outputs and gradients of perceptrons. `acting` uses it to choose actions, `FastUpdates` to take
gradient steps. Actions are discrete (`Choices`) or normally distributed (`Normals`). The compiled loops compute the
gradient of the loss of `fair_envs.baselines.ppo.ppo.PPO`. Results are equal up to rounding; tests compare both.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from torch import nn
from torch.nn import functional

from fair_envs.baselines.ppo.gradients import FUSED_ROWS, ManualBackprop, flatten_parameters, is_known, views
from fair_envs.baselines.ppo.minibatch import Minibatch, Summary
from fair_envs.baselines.ppo.policies import GroupedPolicy, SharedTrunk, SharedTrunkPolicy
from fair_envs.core.compilation import kernel, rule
from fair_envs.support.aliases import Flags, Floats, Floats32, Ints

DISTRIBUTIONS = (CategoricalDistribution, MultiCategoricalDistribution, DiagGaussianDistribution)


class Networks:
    """The actors and critics of a policy for which `suits` is true.

    Args:
        policy: The policy. The networks read its weights, and `backward` writes the gradients that they have now.

    Attributes:
        actions: What the outputs of actors mean.
        single: The only actor and critic, or None if there are several.
    """

    def __init__(self, policy: BasePolicy) -> None:
        self._groups = policy if isinstance(policy, GroupedPolicy) else None
        members = _members(policy)
        self._networks = [ActorCritic(member) for member in members]
        self.single = self._networks[0] if self._groups is None else None
        box = isinstance(members[0].action_space, gym.spaces.Box)
        self.actions: Choices | Normals = Normals(members) if box else Choices(members[0].action_space)

    @staticmethod
    def suits(policy: BasePolicy) -> bool:
        """Return whether a policy has perceptrons for discrete or normally distributed actions, on the CPU.

        It must be Stable-Baselines3's policy for vectors, a `SharedTrunkPolicy`, or a `GroupedPolicy` of such, with
        tanhs, ReLUs or sigmoids, without state-dependent noise.
        """
        members = _members(policy)
        if policy.device.type != "cpu" or not all(map(_plain, members)) or _changed(policy):
            return False
        known = [id(one) for member in members for one in _weights(member)]
        return len(set(known)) == len(known) and set(known) == {id(one) for one in policy.parameters()}

    def forward(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the actors' outputs (n, A), see `Choices` and `Normals`, and values (n, 1)."""
        rows = observations.float().flatten(start_dim=1)
        if self.single is not None:
            return self.single.forward(rows)
        assert self._groups is not None
        self._places = self._groups.rows_of_groups(rows)
        outputs, values = rows.new_empty(len(rows), self.actions.outputs), rows.new_empty(len(rows), 1)
        for network, place in zip(self._networks, self._places, strict=True):
            found = network.forward(_padded(rows[place, :-1]))
            outputs[place], values[place] = (part[: len(place)] for part in found)
        return outputs, values

    def sample(self, outputs: th.Tensor, generator: th.Generator | None = None) -> tuple[th.Tensor, th.Tensor]:
        """Return random actions (n, K) and their log-probabilities (n,), given the last outputs.

        Groups draw one after the other, as `GroupedPolicy` does.
        """
        if self._groups is None:
            return self.actions.sample(outputs, 0, generator)
        found = [
            (place, *self.actions.sample(outputs[place], member, generator))
            for member, place in enumerate(self._places)
            if len(place)
        ]
        joined, actions, log_prob = (th.cat(parts) for parts in zip(*found, strict=True))
        order = joined.argsort()
        return actions[order], log_prob[order]

    def have_rows(self) -> list[bool]:
        """Return whether each actor and critic had any of the last rows."""
        return [True] if self._groups is None else [len(place) > 0 for place in self._places]

    def members(self, rows: int) -> Ints:
        """Return which actor and critic each of the last rows has, shape (n,)."""
        found: Ints = np.zeros(rows, np.int64)
        if self._groups is not None:
            for member, place in enumerate(self._places):
                found[place.numpy()] = member
        return found

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
        and type(policy.action_dist) in DISTRIBUTIONS
        and isinstance(policy.observation_space, gym.spaces.Box)
        and not is_image_space(policy.observation_space)
        and all(is_known(module) for chain in _chains(policy) for module in chain)
    )


OWN = frozenset({"forward", "evaluate_actions", "predict_values", "get_distribution", "extract_features"})
"""Methods that a user may have replaced in an object."""

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _changed(policy: BasePolicy) -> bool:
    """Return whether a user has replaced methods of a policy's modules, or hooked into them or their parameters."""
    return any(
        OWN.intersection(vars(module)) or any(getattr(module, name) for name in HOOKS) for module in policy.modules()
    ) or any(one._backward_hooks or getattr(one, "_post_accumulate_grad_hooks", None) for one in policy.parameters())


def _weights(policy: Any) -> list[th.Tensor]:
    """Return the parameters of an actor and a critic that are used, as often as they are."""
    found: list[th.Tensor] = [one for chain in _chains(policy) for module in chain for one in module.parameters()]
    return [*found, policy.log_std] if isinstance(policy.action_dist, DiagGaussianDistribution) else found


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
    policy.forward = FastForward(policy, networks or Networks(policy), keep_distribution=keep_distribution)
    try:
        yield
    finally:
        del policy.forward  # that of the class again


class FastForward:
    """A faster ``forward`` of a policy. A copy of the policy, or one that is stored, gets that of its class again."""

    def __init__(self, policy: Any, networks: Any, *, keep_distribution: bool) -> None:
        self._policy, self._networks, self._keep = policy, networks, keep_distribution
        self._shape = policy.action_space.shape or ()

    def __call__(self, obs: th.Tensor, deterministic: bool = False) -> Any:
        """Return actions (n, ...), values (n, 1) and log-probabilities (n,)."""
        policy = self._policy
        if deterministic:
            return of_class(policy)(obs, deterministic)
        outputs, values = self._networks.forward(obs)
        if self._keep:
            deviation = [policy.log_std] if isinstance(policy.action_dist, DiagGaussianDistribution) else []
            policy.action_dist.proba_distribution(outputs, *deviation)
        actions, log_prob = self._networks.sample(outputs)
        return actions.view(-1, *self._shape), values, log_prob

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return the method of the copied policy's class."""
        return of_class(memo[id(self._policy)])

    def __reduce__(self) -> Any:
        """Store the method of the policy's class."""
        return of_class, (self._policy,)


def of_class(policy: Any) -> Any:
    """Return the method ``forward`` of a policy's class."""
    return MethodType(type(policy).forward, policy)


# -------------------------------------------------------------------------------------------------- updating


@rule
def squared_errors(values: Floats32, returns: Floats32, weight: float, gradient: Floats32) -> float:
    """Write the gradient of a weight times the mean squared error of values, shape (n,); return that mean."""
    n, squares = len(values), 0.0
    for i in range(n):
        apart = np.float64(values[i]) - returns[i]
        squares += apart * apart
        gradient[i] = weight * 2.0 * apart / n
    return squares / n


@rule
def clipped_surrogate(log_ratio: float, advantage: float, clip: float, sums: Floats) -> float:
    """Add a sample to the sums of `Summary`; return the surrogate's slope with respect to the log-probability."""
    ratio = math.exp(log_ratio)
    gained, limited = advantage * ratio, advantage * min(max(ratio, 1.0 - clip), 1.0 + clip)
    sums[0] -= min(gained, limited)
    sums[2] += ratio - 1.0 - log_ratio
    sums[3] += abs(ratio - 1.0) > clip
    return 0.0 if gained > limited else gained  # of what is not a number, not a number


@rule
def number_of(flags: Flags) -> int:
    """Return how many flags are set, at least 1."""
    found = 0
    for i in range(len(flags)):
        found += flags[i]
    return max(found, 1)


@kernel
def gradients_of_choices(
    logits: Floats32,
    options: Ints,
    actions: Floats32,
    old_log_prob: Floats32,
    advantages: Floats32,
    had_turn: Flags,
    values: Floats32,
    returns: Floats32,
    coefficients: Floats,
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
        coefficients: Clipping range of the ratio, weight of the negative entropy, weight of the squared error.
        of_logits: Where the gradient of logits is written, shape (n, A).
        of_values: Where the gradient of values is written, shape (n,).
    """
    clip, ent_coef, vf_coef = coefficients[0], coefficients[1], coefficients[2]
    squares, turns = squared_errors(values, returns, vf_coef, of_values), number_of(had_turn)
    sums, log_total = np.zeros(4), np.zeros(len(options))  # surrogate, negative entropy, divergence, clipped
    for i in range(len(values)):
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
        slope = -clipped_surrogate(log_ratio, advantages[i], clip, sums) / turns
        first = 0
        for k in range(len(options)):
            after, chosen, negative = first + options[k], first + int(actions[i, k]), 0.0
            for j in range(first, after):
                negative += of_logits[i, j] * (logits[i, j] - log_total[k])
            for j in range(first, after):
                prob = of_logits[i, j]
                of_entropy = prob * (logits[i, j] - log_total[k] - negative)
                of_logits[i, j] = slope * ((j == chosen) - prob) + ent_coef * of_entropy / turns
            sums[1] += negative
            first = after
    return sums[0] / turns, sums[1] / turns, squares, sums[2] / turns, sums[3] / turns


@kernel
def gradients_of_normals(
    means: Floats32,
    log_std: Floats32,
    member: Ints,
    actions: Floats32,
    old_log_prob: Floats32,
    advantages: Floats32,
    had_turn: Flags,
    values: Floats32,
    returns: Floats32,
    coefficients: Floats,
    of_means: Floats32,
    of_log_std: Floats32,
    of_values: Floats32,
) -> tuple[float, float, float, float, float]:
    """Write the gradients of PPO's loss with respect to means, deviations and values; return those of `Summary`.

    Args:
        means: Means of the actions, shape (n, K).
        log_std: Logarithms of the standard deviations of each policy, shape (policies, K).
        member: Index of each sample's policy, shape (n,).
        actions: The actions, shape (n, K).
        old_log_prob: See `gradients_of_choices`, also for the following.
        advantages: Advantages, shape (n,).
        had_turn: Samples whose agent had a turn, shape (n,).
        values: The critic's values, shape (n,).
        returns: Their targets, shape (n,).
        coefficients: Clipping range of the ratio, weight of the negative entropy, weight of the squared error.
        of_means: Where the gradient of means is written, shape (n, K).
        of_log_std: Where the gradient of the logarithms is written, shape (policies, K).
        of_values: Where the gradient of values is written, shape (n,).
    """
    clip, ent_coef, vf_coef = coefficients[0], coefficients[1], coefficients[2]
    squares, turns = squared_errors(values, returns, vf_coef, of_values), number_of(had_turn)
    sums, slopes = np.zeros(4), np.zeros(log_std.shape)  # surrogate, negative entropy, divergence, clipped
    half_log = 0.5 * math.log(2.0 * math.pi)
    for i in range(len(values)):
        if not had_turn[i]:
            of_means[i] = 0.0
            continue
        log_ratio = -np.float64(old_log_prob[i])
        for k in range(means.shape[1]):
            deviation = log_std[member[i], k]
            z = (actions[i, k] - means[i, k]) * math.exp(-deviation)
            log_ratio -= 0.5 * z * z + deviation + half_log
            sums[1] -= deviation + 0.5 + half_log
        slope = -clipped_surrogate(log_ratio, advantages[i], clip, sums) / turns
        for k in range(means.shape[1]):
            scale = math.exp(-log_std[member[i], k])
            z = (actions[i, k] - means[i, k]) * scale
            of_means[i, k] = slope * z * scale
            slopes[member[i], k] += slope * (z * z - 1.0) - ent_coef / turns
    of_log_std[:] = slopes
    return sums[0] / turns, sums[1] / turns, squares, sums[2] / turns, sums[3] / turns


class Choices:
    """Discrete actions, whose logits are the outputs of an actor, one entry of an action after the other.

    Args:
        space: A `Discrete` or `MultiDiscrete` action space.

    Attributes:
        options: Numbers of options of each entry of an action, shape (K,).
        outputs: Number of outputs.
    """

    def __init__(self, space: Any) -> None:
        self.options: Ints = np.asarray(space.nvec if isinstance(space, gym.spaces.MultiDiscrete) else [space.n])
        self.outputs = int(self.options.sum())

    def sample(self, logits: th.Tensor, member: int, generator: th.Generator | None) -> tuple[th.Tensor, th.Tensor]:
        """Return random actions (n, K) and their log-probabilities (n,)."""
        actions, total = [], []
        for part in [logits] if len(self.options) == 1 else th.split(logits, self.options.tolist(), 1):
            log_probs = part.log_softmax(1)
            actions.append(th.multinomial(log_probs.exp(), 1, replacement=True, generator=generator))
            total.append(log_probs.gather(1, actions[-1]))
        if len(total) == 1:
            return actions[0], total[0].flatten()
        return th.cat(actions, 1), th.cat(total, 1).sum(1)

    def gradients(self, logits: th.Tensor, networks: Networks, samples: Sequence[Any], of_logits: th.Tensor) -> Any:
        """Write the gradients of a loss; return the entries of `Summary`, see `gradients_of_choices`."""
        *given, of_values = samples
        return gradients_of_choices(logits.numpy(), self.options, *given, of_logits.numpy(), of_values)


class Normals:
    """Normally distributed actions, whose means are the outputs of an actor.

    Args:
        policies: Policies with standard deviations.

    Attributes:
        outputs: Number of outputs.
    """

    def __init__(self, policies: Sequence[Any]) -> None:
        self._log_std: list[th.nn.Parameter] = [policy.log_std for policy in policies]
        self.outputs = len(self._log_std[0])

    def sample(self, means: th.Tensor, member: int, generator: th.Generator | None) -> tuple[th.Tensor, th.Tensor]:
        """Return random actions (n, K) and their log-probabilities (n,)."""
        if not th.isfinite(means).all():
            raise ValueError(f"actions must have finite means, got {means}; observations or weights are not finite")
        noise, log_std = th.empty_like(means).normal_(generator=generator), self._log_std[member].detach()
        log_prob = -(noise.square() / 2 + log_std + math.log(2 * math.pi) / 2).sum(1)
        return means + log_std.exp() * noise, log_prob

    def gradients(self, means: th.Tensor, networks: Networks, samples: Sequence[Any], of_means: th.Tensor) -> Any:
        """Write the gradients of a loss; return the entries of `Summary`, see `gradients_of_normals`."""
        *given, of_values = samples
        log_std = th.stack([one.detach() for one in self._log_std])
        slope = th.empty_like(log_std)
        members = networks.members(len(means))
        found = gradients_of_normals(
            means.numpy(), log_std.numpy(), members, *given, of_means.numpy(), slope.numpy(), of_values
        )
        for parameter, own in zip(self._log_std, slope, strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(own)
        return found


class FastUpdates:
    """Takes gradient steps on a policy.

    From its creation until `close`, the weights and gradients of each actor and critic, and the moments of Adam, are
    views of one vector each.

    Args:
        policy: A policy for which `suits` is true.
    """

    def __init__(self, policy: BasePolicy) -> None:
        self._policy, (group,) = policy, policy.optimizer.param_groups
        self._parameters = [list(member.parameters()) for member in _members(policy)]
        self._own = [[one.data for one in of_member] for of_member in self._parameters]
        moments = [self._joined_moments(of_member) for of_member in self._parameters]
        self._flat = [flatten_parameters(of_member) for of_member in self._parameters]
        self._gradients = [flat.grad for flat in self._flat]
        self._networks = Networks(policy)
        settings = {name: value for name, value in group.items() if name != "params"}
        self._optimizer = th.optim.Adam(self._flat, **{**settings, "fused": True, "foreach": False})
        self._optimizer.state.update({flat: own for flat, own in zip(self._flat, moments, strict=True) if own})

    @staticmethod
    def suits(policy: BasePolicy) -> bool:
        """Return whether the class can update a policy: it has suitable `Networks`, and Adam updates all weights.

        The moments of each actor and critic must be as old as each other.
        """
        optimizer = policy.optimizer
        if type(optimizer) is not th.optim.Adam or len(optimizer.param_groups) != 1 or not Networks.suits(policy):
            return False
        updated = {id(one) for one in optimizer.param_groups[0]["params"]}
        if updated != {id(one) for one in policy.parameters()} or not all(p.requires_grad for p in policy.parameters()):
            return False
        ages = [{_age(optimizer, one) for one in member.parameters()} for member in _members(policy)]
        return all(len(of_member) == 1 for of_member in ages)

    def _joined_moments(self, parameters: Sequence[th.nn.Parameter]) -> dict[str, th.Tensor]:
        """Return the moments of parameters, each as a vector, and their number of steps; empty before the first."""
        states = [self._policy.optimizer.state.get(one, {}) for one in parameters]
        return {
            name: value.clone() if value.ndim == 0 else th.cat([state[name].ravel() for state in states])
            for name, value in states[0].items()
        }

    def close(self) -> None:
        """Give the policy its own weights again, with gradients, and its optimiser the moments."""
        for parameters, own, flat in zip(self._parameters, self._own, self._flat, strict=True):
            state = self._optimizer.state.get(flat, {})
            parts = {name: views(v, parameters) if v.ndim else [v] * len(parameters) for name, v in state.items()}
            for k, (parameter, data) in enumerate(zip(parameters, own, strict=True)):
                gradient = None if parameter.grad is None else parameter.grad.clone()
                parameter.data = data.copy_(parameter.data)
                parameter.grad = gradient
                if parts:
                    self._policy.optimizer.state[parameter] = {name: each[k].clone() for name, each in parts.items()}

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
        outputs, values = self._networks.forward(batch.observations)
        of_outputs, of_values = th.empty_like(outputs), th.empty_like(values)
        had_turn, advantages = batch.had_turn, advantages.float()
        if had_turn is None:
            had_turn = th.ones(len(values), dtype=th.bool)
        else:
            advantages = th.zeros(len(values)).masked_scatter_(had_turn, advantages)
        columns = (
            batch.actions.view(len(values), -1),
            batch.old_log_prob,
            advantages,
            had_turn,
            values.view(-1),
            batch.returns,
        )
        samples = [*(column.numpy() for column in columns), np.array([clip, ent_coef, vf_coef])]
        samples.append(of_values.view(-1).numpy())
        found = self._networks.actions.gradients(outputs, self._networks, samples, of_outputs)
        self._networks.backward(of_outputs, of_values)
        return Summary(*found)

    def step(self, max_grad_norm: float) -> None:
        """Clip the gradients and update the weights; a group without samples keeps its own, as with autograd."""
        for flat, gradient, has_samples in zip(self._flat, self._gradients, self._networks.have_rows(), strict=True):
            flat.grad = gradient if has_samples else None
        th.nn.utils.clip_grad_norm_(self._flat, max_grad_norm, foreach=False)
        self._optimizer.step()


def _age(optimizer: th.optim.Optimizer, parameter: th.nn.Parameter) -> float:
    """Return the number of steps that Adam has taken with a parameter."""
    return float(optimizer.state.get(parameter, {}).get("step", 0))
