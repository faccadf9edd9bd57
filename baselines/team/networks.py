"""Networks of all agents of a team as one stack: n networks of the same shape, stored in one tensor of weights.

A stack takes inputs of shape (n, batch, ...) and applies network i to input i in one pass, where n is the number of
inputs. A team with shared parameters is a stack of one network, applied to the observations of all agents. Since all
weights are one tensor of shape (n, parameters), an optimiser's step, gradient clipping and a moving average are one
operation each.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch as th
from torch import nn
from torch.nn import functional

SHORTEST = 1e-6  # length below which a direction is scaled down to 0, so that its gradient stays finite

Layer = tuple[th.Tensor, th.Tensor]
"""The weights (n, inputs, outputs) and biases (n, 1, outputs) of a linear layer of each network."""


class Sets(NamedTuple):
    """Layout of an observation, in this order, for networks that treat team-mates as a set."""

    base: int  # numbers that are not about team-mates
    mates: int  # number of team-mates
    mate: int  # numbers about each team-mate
    own: int  # numbers about the agent itself

    @property
    def size(self) -> int:
        """Size of an observation."""
        return self.base + self.mates * self.mate + self.own


class Stack(nn.Module):
    """n networks of linear layers of given sizes, as (inputs, outputs), initialised like `torch.nn.Linear`.

    Attributes:
        weights: All weights and biases, shape (n, parameters).
    """

    def __init__(self, networks: int, sizes: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self.networks, self.sizes = networks, tuple(sizes)
        self._parts = [part for inputs, outputs in self.sizes for part in (inputs * outputs, outputs)]
        parts = [
            th.empty(networks, part).uniform_(-1 / math.sqrt(inputs), 1 / math.sqrt(inputs))
            for inputs, outputs in self.sizes
            for part in (inputs * outputs, outputs)
        ]
        self.weights = nn.Parameter(th.cat(parts, 1))

    def layers(self, networks: int) -> list[Layer]:
        """Return the weights and biases of the layers of the first ``networks`` networks, as views."""
        parts = th.split(self.weights[:networks], self._parts, 1)
        return [
            (weight.view(networks, *size), bias.view(networks, 1, size[1]))
            for weight, bias, size in zip(parts[::2], parts[1::2], self.sizes, strict=True)
        ]


def linear(layer: Layer, inputs: th.Tensor) -> th.Tensor:
    """Apply each network's layer to its inputs: (n, batch, inputs) -> (n, batch, outputs)."""
    weight, bias = layer
    if weight.shape[2] == 1:  # batched products are several times slower here
        return (inputs * weight.transpose(1, 2)).sum(2, keepdim=True) + bias
    return th.baddbmm(bias, inputs, weight)


class StackedMLP(Stack):
    """n networks of ReLU layers and a linear output layer."""

    def __init__(self, networks: int, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        super().__init__(networks, list(pairwise([inputs, *hidden, outputs])))

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        """Return (n, batch, outputs) for inputs (n, batch, inputs)."""
        *hidden, last = self.layers(len(inputs))
        for layer in hidden:
            inputs = functional.relu_(linear(layer, inputs))
        return linear(last, inputs)


class StackedSets(Stack):
    """n networks that treat team-mates as a set (deep sets, Zaheer et al., 2017).

    Two ReLU layers process each team-mate together with all other numbers. Their output is averaged over the team-mates
    and processed by further ReLU layers and a linear layer. The order of the team-mates has no effect. Without
    team-mates, the mean is over one team-mate of zeros.

    Args:
        networks: Number of networks, n.
        sets: Layout of an observation.
        more: Number of further numbers after the observation.
        hidden: Sizes of the layers; the first two are before the mean.
        outputs: Number of outputs.
    """

    def __init__(self, networks: int, sets: Sets, more: int, hidden: Sequence[int], outputs: int) -> None:
        if len(hidden) < 2:
            raise ValueError(f"hidden must have at least two layers for networks on sets, got {list(hidden)}")
        self.sets, self.rest = sets, sets.own + more
        first, second, *others = hidden
        sizes = [(sets.base + self.rest, first), (max(sets.mate, 1), first), (first, second)]
        super().__init__(networks, [*sizes, *pairwise([second, *others, outputs])])

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        """Return (n, batch, outputs) for inputs (n, batch, observation and more)."""
        common, mate, pooled, *hidden, last = self.layers(len(inputs))
        features = self._of_sets(inputs, common, mate, pooled)
        for layer in hidden:
            features = functional.relu_(linear(layer, features))
        return linear(last, features)

    def _of_sets(self, inputs: th.Tensor, common: Layer, mate: Layer, pooled: Layer) -> th.Tensor:
        n, batch, _ = inputs.shape
        count, size = max(self.sets.mates, 1), max(self.sets.mate, 1)
        base, mates, rest = th.split(inputs, [self.sets.base, self.sets.mates * self.sets.mate, self.rest], -1)
        if not self.sets.mates:
            mates = inputs.new_zeros(n, batch, size)
        of_all = linear(common, th.cat([base, rest], -1)).unsqueeze(2)
        of_each = linear(mate, mates.reshape(n, batch * count, size)).view(n, batch, count, -1)
        hidden = functional.relu(of_all + of_each).view(n, batch * count, -1)
        return functional.relu(linear(pooled, hidden)).view(n, batch, count, -1).mean(2)


def stack(networks: int, inputs: int, hidden: Sequence[int], outputs: int, *, sets: Sets | None) -> Stack:
    """Return a stack for a number of inputs; with ``sets``, the first inputs are an observation with that layout."""
    if sets is None:
        return StackedMLP(networks, inputs, hidden, outputs)
    return StackedSets(networks, sets, inputs - sets.size, hidden, outputs)


def unit(vectors: th.Tensor) -> th.Tensor:
    """Return vectors (..., axes) scaled to length 1; vectors shorter than `SHORTEST` are scaled down towards 0."""
    return vectors / th.sqrt(vectors.square().sum(-1, keepdim=True) + SHORTEST**2)
