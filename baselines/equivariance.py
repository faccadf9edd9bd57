"""Distances between policies of agents on the same observation, for Fair-ER's equivariance penalty.

Grupen, Selman and Lee (2022) compare two actors by 1 - cos of the angle between their directions (section 4.3). For
policies with distributions of actions, p and q, the square roots of the probabilities are vectors of length 1, and the
cosine of the angle between them is sum(sqrt(p q)), an integral for densities. The distance of two distributions is
therefore 1 - sum(sqrt(p q)), the squared Hellinger distance. It is 0 for equal and 1 for disjoint distributions. Unlike
samples of the actions, it is 0 for two equal policies however random they are.
"""

from collections.abc import Sequence
from typing import Any, cast

import gymnasium as gym
import torch as th
from stable_baselines3.common.distributions import Distribution


def options_of(space: gym.Space[Any]) -> tuple[int, ...]:
    """Return the number of options of each choice of a discrete action, empty for a Box.

    Raises:
        ValueError: The actions are neither Discrete, MultiDiscrete in one axis nor a Box, or do not count from 0.
    """
    if isinstance(space, gym.spaces.Box):
        return ()
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return (int(space.n),)
    if isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1 and not space.start.any():
        return tuple(map(int, space.nvec))
    raise ValueError(f"action_space must be a Discrete or MultiDiscrete that counts from 0, or a Box, got {space}")


def distance_of_choices(own: th.Tensor, other: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return the distance of two distributions of independent discrete choices, from 0 to 1, shape (...).

    It is 1 - prod(1 - h), h the distance of each choice, since the joint probabilities are products.

    Args:
        own: Logarithms of the probabilities of all options, one choice after another, shape (..., sum of options).
        other: The other distribution's.
        options: Number of options of each choice.
    """
    apart = 0.5 * (th.exp(own / 2) - th.exp(other / 2)).square()  # exactly 0 for equal distributions
    return 1 - th.stack([1 - part.sum(-1) for part in th.split(apart, list(options), -1)]).prod(0)


def distance_of_normals(own: th.Tensor, other: th.Tensor) -> th.Tensor:
    """Return the distance of two normal distributions with independent entries, from 0 to 1, shape (...).

    Args:
        own: Means and standard deviations, shape (..., 2 entries).
        other: The other distribution's.
    """
    (mean, std), (other_mean, other_std) = (th.chunk(parts, 2, -1) for parts in (own, other))
    variance = std.square() + other_std.square()
    log_cosine = 0.5 * th.log(2 * std * other_std / variance) - (mean - other_mean).square() / (4 * variance)
    return -th.expm1(log_cosine.sum(-1))


def distance(own: th.Tensor, other: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return the distance of two distributions as `parameters_of` describes them, shape (...)."""
    return distance_of_choices(own, other, options) if options else distance_of_normals(own, other)


def parameters_of(found: Distribution) -> th.Tensor:
    """Return what describes a distribution of Stable-Baselines3, shape (n, ...), as `distance` takes it.

    For discrete actions these are the logarithms of the probabilities, for others means and standard deviations.
    """
    parts: Any = found.distribution
    if isinstance(parts, th.distributions.Normal):
        return th.cat([parts.mean, parts.stddev], -1)
    listed = parts if isinstance(parts, list) else [parts]
    return th.cat([cast(th.Tensor, part.logits) for part in listed], -1)
