"""Discrete actions for DDPG: one-hot actions of one or several choices, with gradients by the straight-through trick.

An action of k choices is a vector of k one-hot parts, one after another; a part of zeros means that no option was
chosen. As in MADDPG (Lowe et al., 2017), actors return logits, critics get one-hot actions, and an actor learns from
samples of its Gumbel-softmax distribution (Jang, Gu and Poole, 2017): the sample goes forward, the gradient of the
softmax goes backward. Shapes are (..., sum of options); ``options`` has the number of options of each choice.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional

from fair_envs.support.aliases import Floats

NO_OPTION = -1  # stands for no action in stored actions


def one_hot(actions: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return one-hot actions for numbers of options, shape (..., choices); `NO_OPTION` becomes zeros."""
    parts = [actions[..., k, None] == th.arange(n, device=actions.device) for k, n in enumerate(options)]
    return th.cat(parts, -1).float()


def numbers(scores: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return the number of the option with the largest score in each choice, shape (..., choices)."""
    return th.stack([part.argmax(-1) for part in th.split(scores, list(options), -1)], -1)


def straight_through(logits: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return sampled one-hot actions that have the gradient of the softmax of the same noisy logits."""
    return _by_choice(logits, options, lambda part: functional.gumbel_softmax(part, hard=True))


def log_probabilities(logits: th.Tensor, options: Sequence[int]) -> th.Tensor:
    """Return the logarithms of the probabilities of all options."""
    return _by_choice(logits, options, lambda part: part.log_softmax(-1))


def probabilities(logits: th.Tensor, options: Sequence[int]) -> Floats:
    """Return the probabilities in double precision, shape (..., options), or (..., choices, options) if several.

    Choices with fewer options than others have zeros at the end.
    """
    parts = [part.double().softmax(-1) for part in th.split(logits, list(options), -1)]
    padded = [functional.pad(part, (0, max(options) - part.shape[-1])) for part in parts]
    return (th.stack(padded, -2) if len(padded) > 1 else padded[0]).numpy()


def at_random(options: Sequence[int], rows: int) -> NDArray[np.int64]:
    """Return uniformly random numbers of options, shape (rows, choices), drawn with NumPy's global generator."""
    return np.random.randint(list(options), size=(rows, len(options)))


def _by_choice(logits: th.Tensor, options: Sequence[int], function: Callable[[th.Tensor], th.Tensor]) -> th.Tensor:
    return th.cat([function(part) for part in th.split(logits, list(options), -1)], -1)
