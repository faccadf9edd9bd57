"""Discrete actions for DDPG: one-hot actions of one or several choices, with gradients by the straight-through trick.

An action of k choices is a vector of k one-hot parts, one after another; a part of zeros means that no option was
chosen. As in MADDPG (Lowe et al., 2017), actors return logits, critics get one-hot actions, and an actor learns from
samples of its Gumbel-softmax distribution (Jang, Gu and Poole, 2017): the sample goes forward, the gradient of the
softmax goes backward. Shapes are (..., sum of options); ``options`` has the number of options of each choice.
"""

from collections.abc import Sequence

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional

from fair_envs.support.aliases import Floats

NO_OPTION = -1  # number that stands for no action in stored actions


class GumbelNoise:
    """Noise on logits: the most probable option with noise of scale 1 is a sample of the softmax, with 0 the mode.

    Attributes:
        state: Empty, because draws are independent.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.state, self._shape = np.zeros(0), shape

    def draw(self, scale: float) -> Floats:
        """Return the noise of the next step, drawn with NumPy's global generator."""
        return scale * np.random.gumbel(size=self._shape)


def one_hot(actions: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return one-hot actions for numbers of options, shape (..., choices); `NO_OPTION` becomes zeros."""
    parts = [actions[..., k, None] == th.arange(n, device=actions.device) for k, n in enumerate(options)]
    return th.cat(parts, -1).float()


def numbers(scores: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return the number of the option with the largest score in each choice, shape (..., choices)."""
    return th.stack([part.argmax(-1) for part in th.split(scores, list(options), -1)], -1)


def most_probable(logits: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return the one-hot actions of the most probable options, without a gradient."""
    return one_hot(numbers(logits, options), options)


def straight_through(logits: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return sampled one-hot actions that have the gradient of the softmax of the same noisy logits."""
    return th.cat([functional.gumbel_softmax(part, hard=True) for part in th.split(logits, list(options), -1)], -1)


def log_probabilities(logits: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return the logarithms of the probabilities of all options."""
    return th.cat([part.log_softmax(-1) for part in th.split(logits, list(options), -1)], -1)


def gumbel_like(logits: th.Tensor) -> th.Tensor:
    """Return standard Gumbel noise, drawn with torch's global generator."""
    return -th.empty_like(logits).exponential_().log()


def at_random(options: Sequence[int], rows: int) -> NDArray[np.int64]:
    """Return uniformly random numbers of options, shape (rows, choices), drawn with NumPy's global generator."""
    return np.random.randint(list(options), size=(rows, len(options)))
