"""What an update of PPO works on, and what it reports."""

from typing import NamedTuple

import torch as th


class Minibatch(NamedTuple):
    """Samples of a rollout, shapes (n, ...)."""

    observations: th.Tensor
    actions: th.Tensor
    old_values: th.Tensor
    old_log_prob: th.Tensor
    advantages: th.Tensor
    returns: th.Tensor
    flat_index: th.Tensor  # index of each sample in the flattened rollout, see `Rollout.flat`
    had_turn: th.Tensor | None  # mask of the samples whose agent had a turn; None: all had


class MinibatchOutput(NamedTuple):
    """The current policy's output for a minibatch of n samples.

    `values` and `value_targets` cover all samples, the other fields only those whose agent had a turn.
    """

    advantages: th.Tensor
    log_prob: th.Tensor
    log_ratio: th.Tensor
    entropy: th.Tensor | None
    values: th.Tensor  # (n,)
    value_targets: th.Tensor  # (n,)


class Summary(NamedTuple):
    """Means over a minibatch before its gradient step."""

    policy: float  # minus the clipped surrogate
    negative_entropy: float
    values: float  # squared error
    approx_kl: float  # Schulman, joschu.net/blog/kl-approx
    clipped: float  # share of the samples whose ratio is clipped
