"""Backpropagation by hand for small networks, where autograd's overhead is larger than the computation.

With many rows, a linear layer and its activation are one call of oneDNN, which is part of torch. Torch's own functions
take up to four times as long: a tanh alone takes longer than its linear layer. Results are equal up to rounding.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, cast

import torch as th
from torch import nn

Activation = Literal["none", "tanh", "relu", "sigmoid"]

FUSED_ROWS, FUSED_WORK, FUSED_SUMS = 128, 2**20, 2**22
"""From when on fused layers are faster: rows of a layer with an activation, products of numbers in one without, and
products of numbers in the gradient of a weight."""

ACTIVATIONS: dict[type[nn.Module], Activation] = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.Sigmoid: "sigmoid"}

ACTIVATE: dict[Activation, Callable[[th.Tensor], th.Tensor]] = {
    "none": lambda values: values,
    "tanh": th.tanh_,
    "relu": th.relu_,
    "sigmoid": th.sigmoid_,
}
"""Functions that apply an activation in place."""

_BACKWARD: dict[Activation, Callable[[th.Tensor, th.Tensor], th.Tensor]] = {
    "none": lambda gradient, output: gradient,
    "tanh": th.ops.aten.tanh_backward.default,
    "relu": lambda gradient, output: th.ops.aten.threshold_backward.default(gradient, output, 0),
    "sigmoid": th.ops.aten.sigmoid_backward.default,
}


def _fused_layer() -> Callable[..., th.Tensor] | None:
    """Return oneDNN's linear layer with an activation, or None if this build of torch has none."""
    found = getattr(th.ops.mkldnn, "_linear_pointwise", None) if th.backends.mkldnn.is_available() else None  # type: ignore[no-untyped-call]
    return None if found is None else cast("Callable[..., th.Tensor]", found.default)


FUSED = _fused_layer()


@dataclass(frozen=True)
class Layer:
    """A linear layer and its activation.

    Attributes:
        weight: Shape (outputs, inputs).
        bias: Shape (outputs,).
        activation: Name of the activation.
        weight_gradient: Where the gradient of `weight` is written; None: only `forward` is needed.
        bias_gradient: Where the gradient of `bias` is written.
    """

    weight: th.Tensor
    bias: th.Tensor
    activation: Activation
    weight_gradient: th.Tensor | None
    bias_gradient: th.Tensor | None

    def forward(self, rows: th.Tensor) -> th.Tensor:
        """Return the output for rows of shape (n, inputs), shape (n, outputs)."""
        plain = self.activation == "none"
        if FUSED is not None and (self._work(rows) >= FUSED_WORK if plain else rows.shape[0] >= FUSED_ROWS):
            return FUSED(rows, self.weight, self.bias, self.activation, [], "")
        return ACTIVATE[self.activation](th.addmm(self.bias, rows, self.weight.t()))

    def backward(self, gradient: th.Tensor, inputs: th.Tensor, output: th.Tensor, *, to_input: bool) -> th.Tensor:
        """Write the gradients of weight and bias; return that of the inputs, or of the linear layer's output.

        Args:
            gradient: That of the output.
            inputs: What `forward` received.
            output: What it returned.
            to_input: Whether the gradient of the inputs is needed.
        """
        assert self.weight_gradient is not None
        gradient = _BACKWARD[self.activation](gradient, output)
        if gradient.shape[1] <= inputs.shape[1]:  # products are faster if the left matrix is the smaller one
            self._sum(gradient, inputs, self.weight_gradient)
        else:
            self._sum(inputs, gradient, self.weight_gradient.t())
        th.sum(gradient, 0, out=self.bias_gradient)
        if not to_input:
            return gradient
        if FUSED is not None and self._work(gradient) >= FUSED_WORK:
            return FUSED(gradient, self.weight.t(), None, "none", [], "")
        return gradient @ self.weight

    def _sum(self, left: th.Tensor, right: th.Tensor, out: th.Tensor) -> None:
        """Write ``left.T @ right``."""
        if FUSED is not None and self._work(left) >= FUSED_SUMS:
            out.copy_(FUSED(left.t(), right.t(), None, "none", [], ""))
        elif out.is_contiguous():
            th.mm(left.t(), right, out=out)
        else:
            out.copy_(left.t() @ right)

    @cached_property
    def _numbers(self) -> int:
        return self.weight.numel()

    def _work(self, rows: th.Tensor) -> int:
        return rows.shape[0] * self._numbers


def is_known(module: nn.Module) -> bool:
    """Return whether a module is one of those of which layers are made: linear with a bias, sigmoid, tanh or ReLU."""
    return (type(module) is nn.Linear and module.bias is not None) or type(module) in ACTIVATIONS


def layers_of(modules: Iterable[nn.Module]) -> list[Layer]:
    """Return linear modules with the activations that follow them.

    Args:
        modules: Modules in order, for which `is_known` is true. `Layer.backward` needs gradients of their parameters,
            which it replaces.
    """
    found: list[Layer] = []
    for module in modules:
        if isinstance(module, nn.Linear):
            weight, bias = module.weight, module.bias
            found.append(Layer(weight.detach(), bias.detach(), "none", weight.grad, bias.grad))
        else:
            found[-1] = replace(found[-1], activation=ACTIVATIONS[type(module)])
    return found


class ManualBackprop:
    """Forward and backward pass through layers.

    Args:
        chain: The layers' modules, see `layers_of`.

    Attributes:
        layers: The layers.
    """

    def __init__(self, chain: nn.Sequential) -> None:
        self.layers = layers_of(chain)

    def forward(self, rows: th.Tensor) -> th.Tensor:
        """Return the output for rows, and store the intermediate values."""
        self._values = [rows]
        for layer in self.layers:
            self._values.append(layer.forward(self._values[-1]))
        return self._values[-1]

    def backward(self, gradient: th.Tensor, *, to_input: bool = True) -> th.Tensor:
        """Set the parameters' gradients, which must exist; return the gradient of the input if requested.

        Args:
            gradient: That of the output.
            to_input: Whether the gradient of the input is needed.
        """
        values = self._values
        for k in reversed(range(len(self.layers))):
            gradient = self.layers[k].backward(gradient, values[k], values[k + 1], to_input=k > 0 or to_input)
        return gradient


def flatten_parameters(parameters: Iterable[nn.Parameter]) -> nn.Parameter:
    """Make parameters and their gradients views of one vector, and return it for the optimiser.

    A copy of a network does not share the vector: restore its parameters instead of copying it.
    """
    listed = list(parameters)
    flat = nn.Parameter(th.cat([parameter.detach().ravel() for parameter in listed]))
    gradients = th.zeros_like(flat)
    flat.grad = gradients
    for parameter, values, own in zip(listed, views(flat.data, listed), views(gradients, listed), strict=True):
        parameter.data, parameter.grad = values, own
    return flat


def views(flat: th.Tensor, like: Sequence[th.Tensor]) -> list[th.Tensor]:
    """Return the parts of a vector in the shapes of tensors."""
    parts = th.split(flat, [one.numel() for one in like])
    return [part.view(one.shape) for part, one in zip(parts, like, strict=True)]
