"""Stacks of networks are the networks that they stand for, and those of sets do not know an order."""

from itertools import permutations
from typing import Any

import pytest
import torch as th
from torch import nn

from fair_envs.baselines.team.networks import SHORTEST, Sets, Stack, StackedMLP, StackedSets, stack, unit

N, BATCH, INPUTS, HIDDEN, OUTPUTS = 3, 5, 4, (7, 6), 2
SETS = Sets(base=2, mates=3, mate=4, own=1)
MORE = 2  # numbers that follow an observation, such as an action


def separate(networks: Stack) -> list[nn.Sequential]:
    """Return ordinary networks of the weights of each."""
    found = []
    for n in range(networks.networks):
        parts: list[nn.Module] = []
        for weight, bias in networks.layers(networks.networks):
            layer = nn.Linear(*weight.shape[1:])
            layer.weight.data, layer.bias.data = weight[n].detach().T.clone(), bias[n, 0].detach().clone()
            parts += [layer, nn.ReLU()]
        found.append(nn.Sequential(*parts[:-1]))
    return found


def flat_gradient(network: nn.Sequential) -> th.Tensor:
    """Return the gradients of a network in the order of a stack's weights."""
    layers: list[Any] = [layer for layer in network if isinstance(layer, nn.Linear)]
    return th.cat([part for layer in layers for part in (layer.weight.grad.T.flatten(), layer.bias.grad)])


def gradient(networks: Stack, loss: th.Tensor) -> th.Tensor:
    (found,) = th.autograd.grad(loss, [networks.weights])
    return found


@pytest.mark.parametrize("hidden", [HIDDEN, (8,), ()])
def test_a_stack_gives_what_separate_networks_give_and_has_their_gradients(hidden: tuple[int, ...]) -> None:
    networks, inputs = StackedMLP(N, INPUTS, hidden, OUTPUTS), th.randn(N, BATCH, INPUTS)
    wanted = [network(x) for network, x in zip(separate(networks), inputs, strict=True)]
    th.testing.assert_close(networks(inputs), th.stack(wanted))
    found = gradient(networks, networks(inputs).square().sum())
    for n, network in enumerate(separate(networks)):
        network(inputs[n]).square().sum().backward()
        th.testing.assert_close(found[n], flat_gradient(network))


def test_networks_begin_as_linear_layers_do_and_all_differ() -> None:
    networks = StackedMLP(200, INPUTS, (9,), OUTPUTS)
    for (weight, bias), inputs in zip(networks.layers(200), (INPUTS, 9), strict=True):
        for values in (weight, bias):
            assert values.abs().max() <= inputs**-0.5
            assert values.std().item() == pytest.approx(inputs**-0.5 / 3**0.5, rel=0.1)
    assert len({tuple(one) for one in networks.weights.tolist()}) == 200


@pytest.mark.parametrize("sets", [None, SETS])
def test_a_batch_teaches_its_own_network_only(sets: Sets | None) -> None:
    size = SETS.size + MORE
    networks = stack(N, size, HIDDEN, OUTPUTS, sets=sets)
    found = gradient(networks, networks(th.randn(N, BATCH, size))[1].square().sum())
    assert found[1].abs().max() > 0
    assert not found[[0, 2]].any()


def test_fewer_inputs_take_the_first_networks() -> None:
    networks, inputs = StackedMLP(2 * N, INPUTS, HIDDEN, OUTPUTS), th.randn(2 * N, BATCH, INPUTS)
    th.testing.assert_close(networks(inputs[:N]), networks(inputs)[:N])


# ------------------------------------------------------------------------------------------------------- sets


def parted(inputs: th.Tensor, sets: Sets) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
    """Return what an observation says of others, of each team-mate, and the rest."""
    base, mates, rest = th.split(
        inputs, [sets.base, sets.mates * sets.mate, inputs.shape[-1] - sets.base - sets.mates * sets.mate], -1
    )
    return base, mates.reshape(*mates.shape[:-1], sets.mates, sets.mate), rest


def by_hand(networks: StackedSets, n: int, row: th.Tensor) -> th.Tensor:
    """Return what network n says of one observation, team-mate by team-mate."""
    (common, mate, pooled, *others) = [(weight[n], bias[n, 0]) for weight, bias in networks.layers(networks.networks)]
    base, mates, rest = parted(row, networks.sets)
    told = th.cat([base, rest]) @ common[0] + common[1]
    sizes = mate[0].shape[0]
    of_each = [th.relu(th.relu(told + one @ mate[0] + mate[1]) @ pooled[0] + pooled[1]) for one in mates if sizes]
    if not len(mates):
        of_each = [th.relu(th.relu(told + mate[1]) @ pooled[0] + pooled[1])]
    features = th.stack(of_each).mean(0)
    for k, (weight, bias) in enumerate(others):
        features = features @ weight + bias
        features = th.relu(features) if k + 1 < len(others) else features
    return features


@pytest.mark.parametrize("mates", [0, 1, 3, 7])
@pytest.mark.parametrize("hidden", [(7, 6), (7, 6, 5)])
def test_sets_are_what_the_formula_says_with_any_number_of_team_mates(mates: int, hidden: tuple[int, ...]) -> None:
    sets = SETS._replace(mates=mates)
    networks = StackedSets(N, sets, MORE, hidden, OUTPUTS)
    inputs = th.randn(N, BATCH, sets.size + MORE)
    wanted = [[by_hand(networks, n, row) for row in inputs[n]] for n in range(N)]
    th.testing.assert_close(networks(inputs), th.stack([th.stack(rows) for rows in wanted]))


@pytest.mark.parametrize("sets", [SETS, Sets(base=2, mates=3, mate=2, own=0)])
def test_the_order_of_team_mates_makes_no_difference_but_who_they_are_does(sets: Sets) -> None:
    networks, inputs = StackedSets(N, sets, MORE, (16, 16, 8), OUTPUTS), th.randn(N, BATCH, sets.size + MORE)
    base, mates, rest = parted(inputs, sets)
    before = networks(inputs)
    for order in permutations(range(3)):
        moved = th.cat([base, mates[:, :, list(order)].flatten(-2), rest], -1)
        assert (networks(moved) - before).abs().max() < 1e-6
    doubled = th.cat([base, mates[:, :, [0, 1, 1]].flatten(-2), rest], -1)
    assert (networks(doubled) - before).abs().max() > 1e-3


def test_every_number_of_an_observation_counts() -> None:
    inputs = th.randn(1, BATCH, SETS.size + MORE, requires_grad=True)
    (found,) = th.autograd.grad(StackedSets(1, SETS, MORE, (32, 32), 1)(inputs).sum(), [inputs])
    assert (found.abs().sum((0, 1)) > 0).all()


def test_sets_need_a_layer_on_each_side_of_the_sum() -> None:
    with pytest.raises(ValueError, match=r"hidden must have at least two layers for networks on sets, got \[8\]"):
        stack(1, SETS.size, (8,), 1, sets=SETS)


# ---------------------------------------------------------------------------------------------------- directions


def test_directions_have_length_1_and_fade_where_nothing_points_anywhere() -> None:
    vectors = th.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, -1e-2]])
    th.testing.assert_close(unit(vectors), th.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]]))
    small: Any = unit(th.tensor([[SHORTEST, 0.0]]))
    assert small[0, 0].item() == pytest.approx(0.5**0.5)


def test_a_direction_has_a_finite_gradient_everywhere() -> None:
    vectors = th.tensor([[0.0, 0.0], [1e-30, 0.0], [1e-8, 1e-8]], requires_grad=True)
    (found,) = th.autograd.grad(unit(vectors).sum(), [vectors])
    assert found.isfinite().all()
