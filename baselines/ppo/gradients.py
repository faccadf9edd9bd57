"""Backpropagation by hand for small networks, where autograd's overhead is larger than the computation."""

from collections.abc import Sequence
from typing import Any

import torch as th
from torch import nn


class ManualBackprop:
    """Forward and backward pass through a chain of linear layers and sigmoids, tanhs or ReLUs.

    Args:
        chain: The layers, in order.
    """

    def __init__(self, chain: nn.Sequential) -> None:
        self._layers: list[Any] = list(chain)

    def forward(self, rows: th.Tensor) -> th.Tensor:
        """Return the chain's output for rows, and store the intermediate values."""
        self._inputs, self._outputs = [], []
        for layer in self._layers:
            self._inputs.append(rows)
            linear = isinstance(layer, nn.Linear)
            rows = th.addmm(layer.bias, rows, layer.weight.t()) if linear else layer.forward(rows)
            self._outputs.append(rows)
        return rows

    def backward(self, gradient: th.Tensor, *, to_input: bool = True) -> th.Tensor:
        """Set the parameters' gradients, which must exist; return the gradient of the input if requested.

        Args:
            gradient: That of the output.
            to_input: Whether the gradient of the input is needed.
        """
        for k in reversed(range(len(self._layers))):
            layer = self._layers[k]
            if isinstance(layer, nn.Sigmoid):
                gradient = th.ops.aten.sigmoid_backward(gradient, self._outputs[k])
            elif isinstance(layer, nn.Tanh):
                gradient = th.ops.aten.tanh_backward(gradient, self._outputs[k])
            elif isinstance(layer, nn.ReLU):
                gradient = th.ops.aten.threshold_backward(gradient, self._outputs[k], 0)
            else:
                th.mm(gradient.t(), self._inputs[k], out=layer.weight.grad)
                th.sum(gradient, 0, out=layer.bias.grad)
                if k == 0 and not to_input:
                    break
                gradient = gradient @ layer.weight
        return gradient


def flatten_parameters(network: nn.Module) -> nn.Parameter:
    """Make all parameters of a network, and their gradients, views of one vector, and return it for the optimiser.

    A copy of the network does not share the vector: restore its parameters instead of copying it.
    """
    parameters: Sequence[nn.Parameter] = list(network.parameters())
    flat = nn.Parameter(th.cat([parameter.detach().ravel() for parameter in parameters]))
    gradients = th.zeros_like(flat)
    flat.grad = gradients
    first = 0
    for parameter in parameters:
        part = slice(first, first + parameter.numel())
        parameter.data = flat.data[part].view(parameter.shape)
        parameter.grad = gradients[part].view(parameter.shape)
        first = part.stop
    return flat
