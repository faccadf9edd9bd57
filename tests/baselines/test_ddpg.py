"""DDPG of a team does what one DDPG after another would, Fair-E is symmetric, and Fair-ER's penalty is what it says."""

import warnings
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th
from gymnasium.wrappers import RescaleAction
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch import nn

from fair_envs import make_sb3
from fair_envs.baselines.team.ddpg import (
    DDPG,
    Batch,
    DriftingNoise,
    Exploration,
    FairE,
    FairER,
    TeamPolicy,
    TeamReplay,
    equivariance_penalty,
)
from fair_envs.baselines.team.policy import Learned
from fair_envs.core import Lanes
from fair_envs.envs.pursuit.policies import Greedy, exchanged
from fair_envs.envs.pursuit.rules import Pursuit
from tests.baselines.interruptions import Stop
from tests.baselines.teams import PURSUIT, Fixed, Shown, numbers, replayed, same_numbers, team, team_env
from tests.helpers import actions, uncompiled

# ------------------------------------------------------------------------------------------- Fair-E is symmetric

ORDERS = {n: list(permutations(range(n))) for n in (3, 4)}
SEES: list[dict[str, Any]] = [
    {"observation": "relative"},
    {"observation": "torus"},
    {"observation": "relative", "include_headings": True, "include_speed": True},
    {"observation": "torus", "include_headings": True, "include_speed": True},
]


def rotations(n: int) -> list[tuple[int, ...]]:
    return [tuple((k + shift) % n for k in range(n)) for shift in range(n)]


def anywhere(lanes: int = 8, **parameters: Any) -> Lanes:
    """Return lanes in which everybody is anywhere, heads anywhere and has a speed of its own."""
    batch = Lanes(Pursuit(**parameters), lanes)
    batch.seed(0)
    batch.restart()
    chance, records = np.random.default_rng(0), batch.records
    records["position"] = chance.uniform(0, batch.rules.params.side, records["position"].shape)
    angle = chance.uniform(0, 2 * np.pi, records["facing"].shape[:2])
    records["facing"] = np.stack([np.cos(angle), np.sin(angle)], -1)
    records["speed"] = chance.uniform(0.3, 1.3, records["speed"].shape)
    return batch


def random_team(policy: str, *, seed: int = 0, kind: type[DDPG] = FairE, **parameters: Any) -> Any:
    """Return a team of random networks whose actions depend much on what they see, in double precision.

    In single precision a direction that is nearly undecided may be off by more than 1e-6.
    """
    model = team(kind, team_env(**parameters), policy=policy, seed=seed)
    model.policy.actor.weights.data.normal_(0, 0.5)
    model.policy.double()
    return model


def joint(model: Any, observation: NDArray[Any]) -> NDArray[Any]:
    """Return what all pursuers do, shape (lanes, pursuers, 2)."""
    seen = th.as_tensor(observation).to(model.policy.actor.weights.dtype)
    with th.no_grad():
        return model.policy(seen.flatten(0, 1)).view(*seen.shape[:2], 2).numpy()  # type: ignore[no-any-return]


def violation(model: Any, lanes: Lanes, order: tuple[int, ...]) -> float:
    """Return how far the actions of exchanged pursuers are at most from the exchanged actions."""
    return violations([model], lanes, order)[0]


def violations(models: list[Any], lanes: Lanes, order: tuple[int, ...]) -> list[float]:
    """Return the violation of each of several teams."""
    kept, before = lanes.records.copy(), lanes.observe()
    lanes.records[:] = exchanged(kept, np.tile(order, (lanes.count, 1)))
    after = lanes.observe()
    lanes.records[:] = kept
    own = [joint(model, after) - joint(model, before)[:, list(order)] for model in models]
    return [float(np.abs(difference).max()) for difference in own]


@pytest.mark.parametrize("sees", [*SEES, {"observation": "authors"}])
@pytest.mark.parametrize("pursuers", [3, 4])
@uncompiled
def test_shared_networks_and_cyclic_order_are_equivariant_under_rotations_only(
    sees: dict[str, Any], pursuers: int
) -> None:
    models = [random_team("MlpPolicy", seed=seed, pursuers=pursuers, **sees) for seed in range(3)]
    lanes = anywhere(pursuers=pursuers, **sees)
    for order in ORDERS[pursuers]:
        found = violations(models, lanes, order)
        assert max(found) < 1e-6 if order in rotations(pursuers) else min(found) > 1e-2


@pytest.mark.parametrize("sees", [*SEES, {"observation": "relative", "teammates": "index"}])
@pytest.mark.parametrize("pursuers", [3, 4])
@uncompiled
def test_shared_sets_are_equivariant_under_all_permutations(sees: dict[str, Any], pursuers: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [random_team("DeepSetsPolicy", seed=seed, pursuers=pursuers, **sees) for seed in range(3)]
    lanes = anywhere(pursuers=pursuers, **sees)
    assert max(max(violations(models, lanes, order)) for order in ORDERS[pursuers]) < 1e-6


@pytest.mark.parametrize("pursuers", [3, 4])
@uncompiled
def test_shared_networks_that_see_team_mates_by_distance_are_equivariant_under_all_permutations(pursuers: int) -> None:
    model = random_team("MlpPolicy", pursuers=pursuers, teammates="sorted")
    lanes = anywhere(pursuers=pursuers, teammates="sorted")
    assert max(violation(model, lanes, order) for order in ORDERS[pursuers]) < 1e-6


def test_shared_networks_that_see_team_mates_by_number_are_not_equivariant_and_say_so() -> None:
    with pytest.warns(
        UserWarning, match="no symmetry: with teammates='index' observations are not exchanged with the agents"
    ) as caught:
        model = random_team("MlpPolicy", teammates="index")
    assert len(caught) == 1
    lanes = anywhere(teammates="index")
    found = {order: violation(model, lanes, order) for order in ORDERS[3]}
    assert found.pop((0, 1, 2)) == 0
    assert min(found.values()) > 1e-2


def test_shared_networks_of_pursuers_of_different_speeds_say_that_they_are_not_alike() -> None:
    with pytest.warns(UserWarning, match=r"pursuers have different speeds, \[1.0, 0.5, 0.5\]"):
        random_team("DeepSetsPolicy", speeds=(1, 0.5, 0.5))


@pytest.mark.parametrize("parameters", [{"blind": True}, {"pursuers": 2}])
@uncompiled
def test_it_does_not_say_so_where_the_number_makes_no_difference(parameters: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = random_team("MlpPolicy", teammates="index", **parameters)
    lanes = anywhere(teammates="index", **parameters)
    assert violation(model, lanes, (1, 0, 2)[: lanes.agents]) < 1e-6


@pytest.mark.parametrize("policy", ["MlpPolicy", "DeepSetsPolicy"])
def test_what_is_played_in_single_precision_is_equivariant_but_for_rounding(policy: str) -> None:
    model, lanes = team(FairE, team_env(), policy=policy), anywhere()
    before = actions(Learned(model), lanes)
    lanes.records[:] = exchanged(lanes.records, np.tile([1, 2, 0], (lanes.count, 1)))
    after = actions(Learned(model), lanes)
    assert np.abs(after - before[:, [1, 2, 0]]).max() < 1e-5
    assert np.abs(after - before).max() > 1e-3


def test_networks_of_their_own_are_not_equivariant() -> None:
    model = random_team("DeepSetsPolicy", kind=DDPG)
    assert violation(model, anywhere(), (1, 2, 0)) > 1e-2


# ------------------------------------------------------------------------------------------ Fair-ER's penalty


def heading(angles: list[float], *, actor_arch: tuple[int, ...] = (4,), seen: int = 6) -> TeamPolicy:
    """Return a policy whose actors head in these directions whatever they see, in double precision."""
    policy = random_policy(len(angles), actor_arch=actor_arch, seen=seen)
    _, bias = policy.actor.layers(len(angles))[-1]
    with th.no_grad():
        policy.actor.weights.zero_()
        bias[:, 0] = th.tensor([[np.cos(angle), np.sin(angle)] for angle in angles])
    return policy


def random_policy(agents: int, *, actor_arch: tuple[int, ...] = (4,), seen: int = 6) -> TeamPolicy:
    shown, done = (gym.spaces.Box(-1, 1, (size,), np.float32) for size in (seen, 2))
    arch = {"pi": actor_arch, "qf": (4,)}
    policy = TeamPolicy(shown, done, lambda _: 0.0, agents=agents, directions=True, net_arch=arch)
    return policy.double()


def penalty_of(policy: TeamPolicy, batch: int = 7) -> tuple[th.Tensor, th.Tensor]:
    """Return the penalties on random observations, and each one's gradient of all actors' weights."""
    generator = th.Generator().manual_seed(0)
    seen = th.randn(policy.agents, batch, policy.observation_space.shape[0], generator=generator, dtype=th.float64)  # type: ignore[index]
    found = equivariance_penalty(policy, seen, policy.act(policy.actor, seen))
    gradients = [th.autograd.grad(one, [policy.actor.weights], retain_graph=True)[0] for one in found]
    return found.detach(), th.stack(gradients)


@pytest.mark.parametrize(
    ("angles", "penalties", "slopes"),
    [
        ([0, 0, 0], [0, 0, 0], [0, 0, 0]),
        ([0, np.pi / 2, np.pi], [1.5, 1, 1.5], [-0.5, 0, 0.5]),
        ([0.1, 0.1 + 2 * np.pi, 0.1], [0, 0, 0], [0, 0, 0]),
        ([0, np.pi], [2, 2], [0, 0]),
        ([0, np.pi / 2, np.pi, -np.pi / 2], [4 / 3, 4 / 3, 4 / 3, 4 / 3], [0, 0, 0, 0]),
    ],
)
def test_the_penalty_is_that_of_the_worked_examples(
    angles: list[float], penalties: list[float], slopes: list[float]
) -> None:
    policy = heading(angles)
    found, gradients = penalty_of(policy)
    assert found.tolist() == pytest.approx(penalties, abs=1e-9)
    of_biases = th.stack([gradients[i, i, -2:] for i in range(len(angles))])
    turned = th.tensor([[-np.sin(angle), np.cos(angle)] for angle in angles])
    assert (of_biases * turned).sum(-1).tolist() == pytest.approx(slopes, abs=1e-9)


def test_each_agents_own_observations_are_shown_to_all_actors() -> None:
    """Agent 0 sees what makes the actors differ; the others see what does not."""
    policy = heading([0.0, 0.0, np.pi], actor_arch=(), seen=1)
    policy.actor.weights.data[2, 0] = 2.0  # along the first axis, times what is seen: 1 makes it turn round
    seen = th.zeros(3, 5, 1, dtype=th.float64)
    seen[0] = 1.0
    found = equivariance_penalty(policy, seen, policy.act(policy.actor, seen))
    assert found.tolist() == pytest.approx([0, 1, 2], abs=1e-9)


def test_the_penalty_is_nothing_for_identical_actors_in_single_precision_and_has_no_pull() -> None:
    policy = random_policy(3, actor_arch=(64, 64)).float()
    policy.actor.weights.data[:] = policy.actor.weights.data[0]
    seen = th.randn(3, 256, 6)
    found = equivariance_penalty(policy, seen, policy.act(policy.actor, seen))
    assert found.abs().max() < 1e-9
    (pull,) = th.autograd.grad(found.sum(), [policy.actor.weights])
    assert pull.abs().max() < 1e-5


def test_the_penalty_lies_between_0_and_2() -> None:
    for seed in range(20):
        th.manual_seed(seed)
        policy = random_policy(3)
        policy.actor.weights.data.normal_(0, 2)
        found, _ = penalty_of(policy)
        assert found.min() >= 0 and found.max() <= 2


@pytest.mark.parametrize("size", [0.0, 1e-12, 3e-3, 1.0])
def test_the_penalty_and_its_gradient_are_finite_however_short_the_outputs_are(size: float) -> None:
    policy = random_policy(3)
    policy.actor.weights.data *= size
    found, gradients = penalty_of(policy)
    assert found.isfinite().all() and gradients.isfinite().all()


@pytest.mark.parametrize("agents", [2, 3, 4])
def test_the_penaltys_gradient_is_that_of_finite_differences(agents: int) -> None:
    th.manual_seed(agents)
    policy = random_policy(agents)
    policy.actor.weights.data.normal_(0, 0.7)
    _, gradients = penalty_of(policy)
    weights, step = policy.actor.weights.data, 1e-6
    for agent in range(agents):
        for k in range(weights.shape[1]):
            kept = weights[agent, k].item()
            sides = []
            for value in (kept + step, kept - step):
                weights[agent, k] = value
                sides.append(penalty_of(policy)[0][agent].item())
            weights[agent, k] = kept
            assert gradients[agent, agent, k].item() == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-7)


def test_a_penalty_pulls_the_agents_own_actor_only() -> None:
    _, gradients = penalty_of(random_policy(3))
    for agent in range(3):
        others = [other for other in range(3) if other != agent]
        assert gradients[agent, agent].abs().max() > 0
        assert not gradients[agent, others].any()


def fair_er(**settings: Any) -> Any:
    """Return a small Fair-ER that logs nowhere, with actors that differ."""
    model = team(FairER, **settings)
    model.set_logger(Logger(None, []))
    model.policy.actor.weights.data.normal_(0, 0.5, generator=th.Generator().manual_seed(0))
    return model


SEEN = th.randn(3, 64, 6, generator=th.Generator().manual_seed(1))


def penalties(model: Any) -> th.Tensor:
    with th.no_grad():
        found: th.Tensor = equivariance_penalty(model.policy, SEEN, model.policy.act(model.policy.actor, SEEN))
    return found


def test_a_step_of_fair_er_lowers_the_penalty_if_it_weighs_much_and_ddpgs_does_not_know_it() -> None:
    heavy, none = fair_er(fairness_weight=1e6), fair_er(fairness_weight=0.0)
    before = penalties(heavy).mean()
    for _ in range(20):
        heavy._update_actors(SEEN)
        none._update_actors(SEEN)
    assert penalties(heavy).mean() < before - 1e-4
    plain = team(DDPG)
    plain.set_logger(Logger(None, []))
    plain.policy.load_state_dict(numbers(fair_er(fairness_weight=0.0)))
    for _ in range(20):
        plain._update_actors(SEEN)
    th.testing.assert_close(plain.policy.actor.weights, none.policy.actor.weights)


def test_the_actors_gradient_is_that_of_minus_the_values_plus_the_weighted_penalty() -> None:
    model = fair_er(fairness_weight=0.7)
    policy = model.policy
    actions = policy.act(policy.actor, SEEN)
    values = policy.values(policy.critic, SEEN, actions, critics=1)[0]
    loss = (-values.mean(-1) + 0.7 * equivariance_penalty(policy, SEEN, actions)).sum()
    (wanted,) = th.autograd.grad(loss, [policy.actor.weights])
    th.testing.assert_close(model._actors_gradient(SEEN), wanted)


def scale_values(model: Any, factor: float) -> None:
    weight, bias = model.policy.critic.layers(3)[-1]
    with th.no_grad():
        weight *= factor
        bias *= factor


@pytest.mark.parametrize(("form", "same"), [("plain", False), ("normalised", True), ("automatic", True)])
def test_normalised_values_weigh_the_same_whatever_the_rewards(form: str, same: bool) -> None:
    small, large = fair_er(form=form), fair_er(form=form)
    scale_values(small, 100.0)  # beside which the slack of a norm is nothing
    scale_values(large, 1000.0)
    one, other = (model._actors_gradient(SEEN) for model in (small, large))
    assert th.allclose(one, other, rtol=1e-4, atol=1e-7) == same


def test_normalised_values_have_size_1_for_each_agent() -> None:
    model = fair_er(form="normalised", fairness_weight=0.0)
    with th.no_grad():
        model.policy.critic.layers(3)[-1][1].fill_(5.0)
    found = model._actors_gradient(SEEN)
    policy = model.policy
    values = policy.values(policy.critic, SEEN, policy.act(policy.actor, SEEN), critics=1)[0]
    (plain,) = th.autograd.grad(-values.mean(-1).sum(), [policy.actor.weights])
    th.testing.assert_close(found * values.detach().abs().mean(-1, keepdim=True), plain, rtol=1e-4, atol=1e-8)


def test_automatic_weights_rise_above_the_limit_and_fall_below_it_each_agents_own() -> None:
    model = fair_er(form="automatic", fairness_weight=0.5, fairness_limit=0.3, weight_learning_rate=0.1)
    model.policy.actor.weights.data[:2] = model.policy.actor.weights.data[0]
    apart = penalties(model)
    model._actors_gradient(SEEN)
    wanted = 0.5 + 0.1 * (apart - 0.3)
    th.testing.assert_close(model._weights, wanted)
    assert len(set(wanted.tolist())) == 3


def test_automatic_weights_do_not_fall_below_0() -> None:
    model = fair_er(form="automatic", fairness_weight=0.5, fairness_limit=2.0, weight_learning_rate=1.0)
    model._actors_gradient(SEEN)
    assert model._weights.tolist() == [0.0, 0.0, 0.0]


def test_other_forms_keep_their_weight() -> None:
    model = fair_er(form="normalised", fairness_weight=0.5)
    model._actors_gradient(SEEN)
    assert model._weights.tolist() == [0.5, 0.5, 0.5]


# --------------------------------------------------------------------------------------------------- an update


def plain_network(parts: list[tuple[th.Tensor, th.Tensor]]) -> nn.Sequential:
    """Return an ordinary network of weights (inputs, outputs) and biases."""
    layers: list[nn.Module] = []
    for weight, bias in parts:
        layer = nn.Linear(*weight.shape)
        layer.weight.data, layer.bias.data = weight.T.clone(), bias.clone()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def networks_of(stacked: Any) -> list[nn.Sequential]:
    """Return the networks of a stack as ordinary ones."""
    layers = [(weight.detach(), bias.detach()) for weight, bias in stacked.layers(stacked.networks)]
    return [plain_network([(weight[n], bias[n, 0]) for weight, bias in layers]) for n in range(stacked.networks)]


def flat(network: nn.Module) -> th.Tensor:
    """Return the weights of an ordinary network in the order of a stack's."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    return th.cat([part.detach() for layer in layers for part in (layer.weight.T.flatten(), layer.bias)])


class PlainDDPG:
    """One agent's DDPG or TD3 with ordinary networks, as in a textbook; agent k of a team's, as it stands."""

    def __init__(self, model: Any, k: int) -> None:
        n, policy = model.policy.networks, model.policy
        self.settings = model
        self.actor, self.slow_actor = networks_of(policy.actor)[k], networks_of(policy.actor_target)[k]
        self.critics, self.slow_critics = networks_of(policy.critic)[k::n], networks_of(policy.critic_target)[k::n]
        self.actor_adam = th.optim.Adam(self.actor.parameters(), model.learning_rate)
        self.critic_adams = [th.optim.Adam(c.parameters(), model.critic_learning_rate) for c in self.critics]
        self.updates = 0

    def update(self, batch: Batch) -> None:
        """Learn from a batch, shapes (batch, ...)."""
        with th.no_grad():
            ahead = th.cat([batch.following, self.act(self.slow_actor, batch.following)], -1)
            lowest = th.stack([critic(ahead)[:, 0] for critic in self.slow_critics]).min(0).values
            target = batch.rewards + batch.discounts * lowest
        for critic, adam in zip(self.critics, self.critic_adams, strict=True):
            said = critic(th.cat([batch.observations, batch.actions], -1))[:, 0]
            self.descend(critic, adam, nn.functional.mse_loss(said, target))
        self.updates += 1
        if self.updates % self.settings.policy_delay == 0:
            mine = th.cat([batch.observations, self.act(self.actor, batch.observations)], -1)
            self.descend(self.actor, self.actor_adam, -self.critics[0](mine).mean())
            pairs = zip([self.actor, *self.critics], [self.slow_actor, *self.slow_critics], strict=True)
            for quick, slow in pairs:
                for new, old in zip(quick.parameters(), slow.parameters(), strict=True):
                    old.data = (1 - self.settings.tau) * old.data + self.settings.tau * new.data

    def act(self, actor: nn.Sequential, observations: th.Tensor) -> th.Tensor:
        out: th.Tensor = actor(observations)
        directions: th.Tensor = out / out.norm(dim=-1, keepdim=True)
        return directions

    def descend(self, network: nn.Module, adam: th.optim.Optimizer, loss: th.Tensor) -> None:
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), self.settings.max_grad_norm)
        adam.step()


def random_batch(networks: int, size: int, *, seed: int) -> Batch:
    generator = th.Generator().manual_seed(seed)

    def draw(*shape: int) -> th.Tensor:
        return th.randn(networks, size, *shape, generator=generator)

    actions = draw(2)
    return Batch(
        observations=draw(6),
        actions=actions / actions.norm(dim=-1, keepdim=True),
        rewards=10 * draw(),
        following=draw(6),
        discounts=0.9 * (draw() > -1).float(),
    )


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (DDPG, {}),
        (DDPG, {"max_grad_norm": 1e6}),
        (DDPG, {"twin_critics": True, "policy_delay": 2}),
        (FairE, {}),
        (FairE, {"twin_critics": True}),
    ],
)
def test_updates_of_a_team_are_those_of_one_agent_after_another(kind: type[DDPG], settings: dict[str, Any]) -> None:
    model = team(kind, learning_rate=0.01, critic_learning_rate=0.02, tau=0.1, **settings)
    model.set_logger(Logger(None, []))
    plain = [PlainDDPG(model, k) for k in range(model.policy.networks)]
    start = numbers(model)
    for step in range(5):
        batch = random_batch(len(plain), 16, seed=step)
        model.update(batch)
        for k, one in enumerate(plain):
            one.update(Batch(*(part[k] for part in batch[:5])))
    policy = model.policy
    for stacked, wanted in (
        (policy.actor, [one.actor for one in plain]),
        (policy.actor_target, [one.slow_actor for one in plain]),
        (
            policy.critic,
            [critic for critics in zip(*(one.critics for one in plain), strict=True) for critic in critics],
        ),
        (
            policy.critic_target,
            [c for critics in zip(*(one.slow_critics for one in plain), strict=True) for c in critics],
        ),
    ):
        th.testing.assert_close(stacked.weights.detach(), th.stack([flat(w) for w in wanted]), rtol=1e-4, atol=2e-5)
    assert all((numbers(model)[name] - start[name]).abs().max() > 1e-3 for name in start)


def test_an_agents_batch_changes_nobody_else() -> None:
    ways = [random_batch(3, 16, seed=0), random_batch(3, 16, seed=0)]
    for part in ways[1][:5]:
        part[1] = part[1].flip(0) * 0.5
    models = [team(), team()]
    for model, batch in zip(models, ways, strict=True):
        model.set_logger(Logger(None, []))
        model.update(batch)
    one, other = (numbers(model) for model in models)
    for name in one:
        assert th.equal(one[name][[0, 2]], other[name][[0, 2]])
        assert not th.equal(one[name][1], other[name][1])


def pendulum() -> DummyVecEnv:
    return DummyVecEnv([lambda: RescaleAction(gym.make("Pendulum-v1"), np.float32(-1), np.float32(1))])


def test_one_agents_updates_are_those_of_stable_baselines3() -> None:
    ours = team(env=pendulum(), learning_rate=1e-3, critic_learning_rate=1e-3, max_grad_norm=1e9, batch_size=32)
    arch = {"net_arch": [8, 8]}
    theirs = sb3.DDPG("MlpPolicy", pendulum(), policy_kwargs=arch, tau=ours.tau, batch_size=32, seed=3, device="cpu")
    for model in (ours, theirs):
        model.set_logger(Logger(None, []))
    for kind in ("actor", "critic", "actor_target", "critic_target"):
        networks_weights = flat(getattr(theirs, kind).cpu())
        getattr(ours.policy, kind).weights.data[0] = networks_weights
    samples: list[ReplayBufferSamples] = []
    for step in range(3):
        draw = th.randn(32, 10, generator=th.Generator().manual_seed(step))
        ended, action = (draw[:, 9:] > 1).float(), draw[:, 3:4].tanh()
        samples.append(ReplayBufferSamples(draw[:, :3], action, draw[:, 4:7], ended, draw[:, 7:8]))
        parts = (draw[:, :3], action, draw[:, 7], draw[:, 4:7], theirs.gamma * (1 - ended[:, 0]))
        ours.update(Batch(*(part.unsqueeze(0) for part in parts)))
    theirs.replay_buffer.sample = lambda *_, **__: samples.pop(0)  # type: ignore[method-assign, union-attr]
    theirs.train(3, 32)
    for kind in ("actor", "critic", "actor_target", "critic_target"):
        th.testing.assert_close(getattr(ours.policy, kind).weights.detach()[0], flat(getattr(theirs, kind)))


def test_slow_copies_move_by_tau() -> None:
    model = team(tau=0.25)
    model.set_logger(Logger(None, []))
    old = numbers(model)
    model.update(random_batch(3, 8, seed=0))
    new = numbers(model)
    for kind in ("actor", "critic"):
        wanted = 0.75 * old[f"{kind}_target.weights"] + 0.25 * new[f"{kind}.weights"]
        th.testing.assert_close(new[f"{kind}_target.weights"], wanted)


def test_noise_in_the_target_is_clipped_and_leaves_directions() -> None:
    model = team(target_policy_noise=5.0, target_noise_clip=0.3)
    batch = random_batch(3, 4000, seed=0)
    asked: list[th.Tensor] = []
    values = model.policy.values

    def spied(critic: Any, seen: th.Tensor, actions: th.Tensor, **more: Any) -> Any:
        asked.append(actions)
        return values(critic, seen, actions, **more)

    model.policy.values = spied
    model._targets(batch)
    (noisy,) = asked
    quiet = model.policy.act(model.policy.actor_target, batch.following).detach()
    th.testing.assert_close(noisy.norm(dim=-1), th.ones(3, 4000))
    apart = th.arccos((noisy * quiet).sum(-1).clamp(-1, 1))
    assert 0.2 < apart.max() <= np.arctan(0.3 * 2**0.5 / (1 - 0.3 * 2**0.5))


# --------------------------------------------------------------------------------------------------- the replay

GAMMA, STEPS = 0.9, 12
ENDS: dict[tuple[int, int], bool] = {
    (3, 0): True,
    (5, 1): False,
    (6, 0): False,
    (9, 1): True,
}  # (step, lane): terminated


class Told:
    """A replay of two lanes of three agents with known numbers in it, and what samples of it should say.

    What is seen at step t in row r is (t, r); after it (t + 0.5, r).
    """

    def __init__(self, *, places: int) -> None:
        shown, done = (gym.spaces.Box(-100, 100, (size,), np.float32) for size in (2, 1))
        self.replay = TeamReplay(places * 6, shown, done, device="cpu", n_envs=6)
        self.rewards = np.random.default_rng(0).normal(size=(STEPS, 6)).astype(np.float32)
        rows = np.arange(6.0)
        for t in range(STEPS):
            seen, after = (np.stack([np.full(6, when), rows], -1) for when in (t, t + 0.5))
            ended = np.repeat([(t, lane) in ENDS for lane in range(2)], 3)
            cut = [not ENDS.get((t, row // 3), True) for row in range(6)]
            infos = [{"TimeLimit.truncated": flag} for flag in cut]
            self.replay.add(seen, after, rows[:, np.newaxis] / 10, self.rewards[t], ended, infos)

    def of(self, t: int, row: int, *, n_steps: int) -> tuple[float, float, float]:
        """Return the discounted rewards from a step on, what is seen after them and the discount of what follows."""
        total, discount = 0.0, 1.0
        for at in range(t, min(t + n_steps, STEPS)):
            total += discount * float(self.rewards[at, row])
            discount *= GAMMA
            if (at, row // 3) in ENDS:
                return total, at + 0.5, 0.0 if ENDS[at, row // 3] else discount
        return total, at + 0.5, discount

    def drawn(self, *, n_steps: int, shared: bool) -> Iterator[tuple[int, int, int, tuple[float, ...]]]:
        """Yield a network, a step, a row and what a sample says of them, for many samples."""
        np.random.seed(0)
        batch = self.replay.team_batch(600, agents=3, shared=shared, n_steps=n_steps, gamma=GAMMA)
        assert batch.observations.shape == (1 if shared else 3, 600, 2)
        for network in range(len(batch.observations)):
            for k in range(600):
                t, row = (int(x) for x in batch.observations[network, k])
                assert batch.following[network, k, 1] == row
                assert batch.actions[network, k].item() == pytest.approx(row / 10)
                said = batch.rewards[network, k], batch.following[network, k, 0], batch.discounts[network, k]
                yield network, t, row, tuple(x.item() for x in said)


@pytest.mark.parametrize("n_steps", [1, 3, 20])
@pytest.mark.parametrize("places", [20, 8, 12])
def test_samples_are_sums_of_rewards_up_to_an_end_or_the_newest_step(n_steps: int, places: int) -> None:
    told, found = Told(places=places), set()
    for _, t, row, said in told.drawn(n_steps=n_steps, shared=False):
        assert said == pytest.approx(told.of(t, row, n_steps=n_steps), abs=1e-5)
        found.add(t)
    assert found == set(range(max(0, STEPS - places), STEPS))


def test_each_agent_learns_from_its_own_rows_and_a_shared_network_from_all() -> None:
    told = Told(places=20)
    rows: dict[bool, dict[int, set[int]]] = {True: {}, False: {}}
    for shared, of_networks in rows.items():
        for network, _, row, _ in told.drawn(n_steps=1, shared=shared):
            of_networks.setdefault(network, set()).add(row)
    assert rows == {True: {0: set(range(6))}, False: {0: {0, 3}, 1: {1, 4}, 2: {2, 5}}}


def test_an_episode_that_a_new_beginning_cuts_short_is_not_summed_across() -> None:
    told = Told(places=20)
    told.replay.cut()
    newest = told.replay.pos - 1
    told.replay.add(np.zeros((6, 2)), np.zeros((6, 2)), np.zeros((6, 1)), np.full(6, 99.0), np.zeros(6), [{}] * 6)
    for _, t, row, said in told.drawn(n_steps=3, shared=False):
        if t:
            assert said == pytest.approx(told.of(t, row, n_steps=3), abs=1e-5)
    assert told.replay.timeouts[newest].all()


def test_a_cut_leaves_an_end_what_it_was() -> None:
    told = Told(places=10)  # the end at step 9 is written as the newest one
    told.replay.pos = 0
    told.replay.full = True
    newest = 9
    told.replay.cut()
    assert told.replay.dones[newest].all()
    assert told.replay.timeouts[newest].tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("agents", ["reset", "continued"])
def test_learning_again_cuts_episodes_if_they_begin_anew(agents: str) -> None:
    model = team(learning_starts=1000, env=team_env(pursuer_speed=0.0)).learn(6 * 4)
    assert not model.replay_buffer.dones.any()
    model.learn(6 * 2, reset_num_timesteps=agents == "reset")
    assert model.replay_buffer.dones[3].all() == (agents == "reset")
    assert np.array_equal(model.replay_buffer.timeouts, model.replay_buffer.dones)


def test_the_replay_keeps_so_many_transitions_of_each_agent_and_forgets_the_oldest() -> None:
    model = team(buffer_size=10, learning_starts=1000).learn(6 * 7)
    assert model.replay_buffer.observations.shape == (5, 6, 6)  # 5 of each of two lanes
    assert model.replay_buffer.full


# --------------------------------------------------------------------------------------------------- exploration


def test_exploration_falls_evenly_and_stays() -> None:
    falls = Exploration(fraction=0.5, eps=(0.9, 0.1), sigma=(0.4, 0.2), theta=0.1)
    assert falls.at(0.0) == pytest.approx((0.9, 0.4))
    assert falls.at(0.25) == pytest.approx((0.5, 0.3))
    assert falls.at(0.5) == pytest.approx((0.1, 0.2))
    assert falls.at(1.0) == pytest.approx((0.1, 0.2))
    at_once = Exploration(fraction=0.0, eps=(0.9, 0.1), sigma=(0.4, 0.2), theta=0.1)
    assert at_once.at(0.0) == pytest.approx((0.1, 0.2))


def test_drifting_noise_has_the_spread_and_memory_of_ornstein_and_uhlenbecks() -> None:
    np.random.seed(0)
    noise = DriftingNoise((5000, 2), theta=0.15)
    for _ in range(100):
        before = noise.draw(0.3).copy()
    after = noise.draw(0.3)
    assert after.std() == pytest.approx(0.3 / (1 - 0.85**2) ** 0.5, rel=0.02)
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] == pytest.approx(0.85, abs=0.01)
    assert abs(after.mean()) < 0.02


def test_noise_of_no_size_fades() -> None:
    noise = DriftingNoise((3, 2), theta=0.25)
    noise.state[:] = 1.0
    assert noise.draw(0.0) == pytest.approx(0.75)


UNTAUGHT: dict[str, Any] = {"learning_starts": 10**6, "train_freq": 1, "buffer_size": 10_000}
QUIET: dict[str, Any] = {"noise_initial_sigma": 0.0, "noise_final_sigma": 0.0}


def exploring(first: float, last: float, **settings: Any) -> dict[str, Any]:
    return {"exploration_initial_eps": first, "exploration_final_eps": last, **UNTAUGHT, **settings}


def test_a_guide_is_followed_to_the_letter_by_who_always_follows() -> None:
    guide = Shown()
    model = team(guide=guide, **exploring(1.0, 1.0)).learn(6 * 15)
    assert np.array_equal(replayed(model, "actions"), np.reshape(guide.all, (15, 6, 2)))


def test_who_never_follows_does_as_the_actor_without_noise() -> None:
    model = team(guide=Fixed(), **exploring(0.0, 0.0, **QUIET)).learn(6 * 15)
    seen, done = replayed(model, "observations"), replayed(model, "actions")
    for t in range(15):
        assert np.array_equal(model.predict(seen[t])[0], done[t])


def test_a_guide_is_followed_as_often_as_exploration_says_by_each_agent_alone() -> None:
    settings = exploring(0.8, 0.2, exploration_fraction=0.5)
    model = team(env=team_env(lanes=50), guide=Fixed(), **settings).learn(150 * 40)
    followed = (replayed(model, "actions") == [0, 1]).all(-1)  # (steps, rows)
    share = followed.mean(1)
    assert share[:4].mean() == pytest.approx(0.8 - 0.6 * 1.5 / 20, abs=0.08)
    assert share[22:].mean() == pytest.approx(0.2, abs=0.03)
    together = followed.reshape(40, 50, 3)[22:].all(-1).mean()
    assert together < 0.05


def test_noise_is_added_to_what_the_actor_does_and_falls() -> None:
    settings = exploring(0.0, 0.0, exploration_fraction=0.5, noise_initial_sigma=0.5, noise_final_sigma=0.01)
    model = team(env=team_env(lanes=20), noise_theta=1.0, **settings).learn(60 * 40)
    seen, done = replayed(model, "observations"), replayed(model, "actions")
    apart = [np.abs(model.predict(seen[t])[0] - done[t]).mean() for t in range(40)]
    assert np.mean(apart[:5]) > 0.2
    assert 0.001 < np.mean(apart[25:]) < 0.02


def test_what_is_replayed_is_what_was_done_a_direction_of_length_1(monkeypatch: pytest.MonkeyPatch) -> None:
    env = team_env()
    done: list[NDArray[Any]] = []
    take = env.step_async

    def spied(actions: NDArray[Any]) -> None:
        done.append(actions.copy())
        take(actions)

    monkeypatch.setattr(env, "step_async", spied)
    model = team(env=env, guide=Greedy(), **exploring(0.5, 0.5)).learn(6 * 20)
    kept = replayed(model, "actions")
    assert np.array_equal(kept, done)
    assert np.linalg.norm(kept, axis=-1) == pytest.approx(1.0, abs=1e-5)


def test_entries_that_are_no_directions_stay_between_their_bounds() -> None:
    model = team(env=pendulum(), noise_initial_sigma=5.0, learning_starts=10**6).learn(30)
    done = replayed(model, "actions")
    assert np.abs(done).max() == 1.0


@pytest.mark.parametrize("kind", [DDPG, FairE, FairER])
def test_equal_seeds_learn_equally_and_others_do_not(kind: type[DDPG]) -> None:
    def learned(seed: int, used: int) -> Any:
        np.random.rand(used)
        return team(kind, team_env(), guide=Greedy(), seed=seed).learn(120)

    one, same, other = learned(1, 0), learned(1, 5), learned(2, 0)
    assert same_numbers(one, same)
    assert not same_numbers(one, other)


# ----------------------------------------------------------------------------------------- Stable-Baselines3's ways


class Bandit(gym.Env[Any, Any]):
    """Pays the first entry of the action, takes the second one's square, and shows nothing."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: NDArray[Any]) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), float(action[0] - action[1] ** 2), True, False, {}


class Picture(Bandit):
    """An environment that shows a table."""

    observation_space = gym.spaces.Box(-1, 1, (2, 2), np.float32)


@pytest.mark.parametrize("settings", [{}, {"twin_critics": True, "policy_delay": 2, "target_policy_noise": 0.2}])
def test_it_learns_what_pays(settings: dict[str, Any]) -> None:
    rates: dict[str, Any] = {"learning_rate": 0.01, "critic_learning_rate": 0.02, "batch_size": 64, "buffer_size": 2000}
    env = DummyVecEnv([Bandit] * 4)
    model = team(env=env, learning_starts=100, noise_initial_sigma=0.5, noise_final_sigma=0.3, **rates, **settings)
    model.learn(2400)
    first, second = model.predict(np.zeros((1, 1), np.float32))[0][0]
    assert first > 0.9
    assert abs(second) < 0.3


def test_one_controller_of_a_whole_team_has_no_single_direction() -> None:
    model = team(env=make_sb3(PURSUIT, n_envs=2, rows="lanes", side=2.0), guide=Greedy()).learn(60)
    actions = model.predict(model.env.reset())[0]
    assert actions.shape == (2, 6)
    assert (np.linalg.norm(actions, axis=-1) < 0.9).all()


def test_it_learns_where_rows_are_alone_or_agents_of_no_environment_of_this_package() -> None:
    before = numbers(team(env=pendulum()))
    after = team(env=pendulum()).learn(80)
    assert not th.equal(before["actor.weights"], numbers(after)["actor.weights"])
    pair = DummyVecEnv([Bandit] * 4)
    assert team(env=pair, agents=2).learn(80).policy.networks == 2


def test_fewer_updates_than_steps_are_made() -> None:
    model = team(train_freq=3, gradient_steps=2, learning_starts=6 * 6).learn(6 * 15)
    assert model._n_updates == 2 * 3  # after 9, 12 and 15 steps of the batch


@pytest.mark.parametrize("policy", ["MlpPolicy", "DeepSetsPolicy"])
@pytest.mark.parametrize("kind", [DDPG, FairE, FairER])
def test_what_is_saved_predicts_the_same_and_goes_on_learning(kind: type[DDPG], policy: str, tmp_path: Path) -> None:
    model = team(kind, policy=policy, guide=Greedy(), twin_critics=True).learn(120)
    model.save(tmp_path / "team")
    seen = model.env.reset()
    for env in (None, team_env(), team_env(lanes=5)):
        loaded = kind.load(tmp_path / "team", env=env, device="cpu")
        assert same_numbers(model, loaded)
        assert np.array_equal(model.predict(seen)[0], loaded.predict(seen)[0])
        assert loaded.actor_optimizer.state_dict()["state"][0]["step"] == model._n_updates
        if env is not None:
            loaded.learn(180)
            assert not same_numbers(model, loaded)


def test_automatic_weights_are_saved(tmp_path: Path) -> None:
    model = team(FairER, form="automatic", fairness_limit=0.0, weight_learning_rate=0.1).learn(120)
    assert min(model._weights) > 0.5
    model.save(tmp_path / "team")
    loaded = FairER.load(tmp_path / "team", device="cpu")
    assert th.equal(model._weights, loaded._weights)


def test_a_callback_ends_the_training() -> None:
    assert team().learn(6000, callback=Stop(7)).num_timesteps == 7 * 6


def test_another_environment_of_as_many_rows_is_played_on() -> None:
    model = team(guide=Greedy()).learn(60)
    other = team_env(pursuer_speed=0.5)
    model.set_env(other)
    model.learn(60)
    assert other.lanes.records["time"].max() > 0


def test_an_environment_that_does_not_fit_is_refused_and_the_one_before_stays() -> None:
    model = team(guide=Greedy(), env=team_env(blind=True))
    kept = model.env
    pairs = team_env(lanes=3, blind=True, pursuers=2)
    with pytest.raises(ValueError, match="agents must be 2, as the environment has, got 3"):
        model.set_env(pairs)
    alone = DummyVecEnv([lambda: RowsOf(model)] * 6)
    with pytest.raises(ValueError, match=r"guide must be None for an environment that was not made"):
        model.set_env(alone)
    assert model.env is kept


class RowsOf(Bandit):
    """An environment with the spaces of a model."""

    def __init__(self, model: Any) -> None:
        self.observation_space, self.action_space = model.observation_space, model.action_space


def test_a_saved_team_is_not_loaded_for_other_numbers_of_agents(tmp_path: Path) -> None:
    model = team(env=team_env(blind=True))
    model.save(tmp_path / "team")
    with pytest.raises(ValueError, match="agents must be 2, as the environment has, got 3"):
        DDPG.load(tmp_path / "team", env=team_env(blind=True, pursuers=2), device="cpu")
    with pytest.raises(ValueError, match="agents must divide the environment's 4 rows, got 3"):
        DDPG.load(tmp_path / "team", env=DummyVecEnv([lambda: RowsOf(model)] * 4), device="cpu")


def test_normalised_observations_and_rewards_are_learnt_from() -> None:
    env = VecNormalize(team_env())
    model = team(env=env, guide=Greedy())
    replay, asked = model.replay_buffer, []
    draw = replay.team_batch

    def spied(*given: Any, **named: Any) -> Batch:
        asked.append(named.get("env"))
        drawn: Batch = draw(*given, **named)
        return drawn

    replay.team_batch = spied
    model.learn(120)
    assert set(asked) == {env}
    np.random.seed(0)
    plain = replay.team_batch(50, agents=3, shared=False, n_steps=1, gamma=0.9)
    np.random.seed(0)
    batch = replay.team_batch(50, agents=3, shared=False, n_steps=1, gamma=0.9, env=env)
    for name in ("observations", "following"):
        wanted = env.normalize_obs(getattr(plain, name).numpy())
        th.testing.assert_close(getattr(batch, name), th.as_tensor(wanted).float())
    th.testing.assert_close(batch.rewards, th.as_tensor(env.normalize_reward(plain.rewards.numpy())).float())
    assert not th.allclose(batch.observations, plain.observations)


def test_rows_of_whole_lanes_are_needed_to_predict() -> None:
    with pytest.raises(ValueError, match="observation must have 3 rows for each lane, one for each agent, got 4"):
        team().predict(np.zeros((4, 6), np.float32))
    assert team(FairE).predict(np.zeros((4, 6), np.float32))[0].shape == (4, 2)


def test_rows_are_the_agents_lane_by_lane() -> None:
    model = team()
    seen = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    actors = networks_of(model.policy.actor)
    for row, action in enumerate(model.predict(seen)[0]):
        out = actors[row % 3](th.as_tensor(seen[row])).detach()
        assert action == pytest.approx((out / out.norm()).numpy(), abs=1e-5)


@pytest.mark.parametrize("schedule", [lambda left: 0.01 * left, 0.01])
def test_learning_rates_follow_their_schedules(schedule: Any) -> None:
    model = team(learning_rate=schedule, critic_learning_rate=schedule).learn(120)
    found = [optimizer.param_groups[0]["lr"] for optimizer in (model.actor_optimizer, model.critic_optimizer)]
    assert found == [0.0 if callable(schedule) else 0.01] * 2


def test_the_policys_settings_that_were_given_stay_as_they_came() -> None:
    mine = {"net_arch": (8, 8)}
    team(policy="DeepSetsPolicy", policy_kwargs=mine)
    assert mine == {"net_arch": (8, 8)}
    assert team(policy="DeepSetsPolicy", env=team_env(pursuers=4), policy_kwargs=mine).agents == 4


@pytest.mark.parametrize("parameters", [{"pursuers": 1}, {"blind": True}, {"pursuers": 2}, {"evaders": 2}])
@uncompiled
def test_sets_are_learnt_from_whatever_there_is_to_see(parameters: dict[str, Any]) -> None:
    assert team(env=team_env(**parameters), policy="DeepSetsPolicy").learn(60)._n_updates > 0


# --------------------------------------------------------------------------------------------------- mistakes

NETWORKS = ("actor", "critic")

BAD: list[tuple[dict[str, Any], str]] = [
    ({"agents": 2}, "agents must be 3, as the environment has, got 2"),
    ({"agents": 0}, "agents must be at least 1, got 0"),
    ({"shared": "yes"}, "shared must be True or False, got 'yes'"),
    ({"learning_rate": -1.0}, "learning_rate must be at least 0, got -1"),
    ({"critic_learning_rate": float("nan")}, "critic_learning_rate must be a finite number at least 0, got nan"),
    ({"buffer_size": 0}, "buffer_size must be at least 1, got 0"),
    ({"learning_starts": -1}, "learning_starts must be at least 0, got -1"),
    ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ({"tau": 2}, "tau must be between 0 and 1, got 2"),
    ({"gamma": 1.1}, "gamma must be between 0 and 1, got 1.1"),
    ({"n_steps": 0}, "n_steps must be at least 1, got 0"),
    ({"train_freq": 0}, "train_freq must be at least 1, got 0"),
    ({"train_freq": 0.5}, "train_freq must be an integer at least 1, got 0.5"),
    ({"train_freq": (1, "episode")}, "train_freq must count steps, got (1, 'episode')"),
    ({"gradient_steps": -1}, "gradient_steps must be at least 1, got -1"),
    ({"max_grad_norm": 0}, "max_grad_norm must be at least 1e-12, got 0"),
    ({"twin_critics": 2}, "twin_critics must be True or False, got 2"),
    ({"policy_delay": 0}, "policy_delay must be at least 1, got 0"),
    ({"target_policy_noise": -1}, "target_policy_noise must be at least 0, got -1"),
    ({"target_noise_clip": -1}, "target_noise_clip must be at least 0, got -1"),
    ({"exploration_fraction": 2}, "exploration_fraction must be between 0 and 1, got 2"),
    ({"exploration_initial_eps": 2}, "exploration_initial_eps must be between 0 and 1, got 2"),
    ({"exploration_final_eps": -1}, "exploration_final_eps must be between 0 and 1, got -1"),
    ({"noise_initial_sigma": -1}, "noise_initial_sigma must be at least 0, got -1"),
    ({"noise_final_sigma": -1}, "noise_final_sigma must be at least 0, got -1"),
    ({"noise_theta": 2}, "noise_theta must be between 0 and 1, got 2"),
    ({"guide": "greedy"}, "guide must be a Policy such as Greedy(), or None, got 'greedy'"),
    ({"guide": Greedy}, "guide must be a Policy such as Greedy(), or None, got <class"),
    ({"policy_kwargs": {"shared": True}}, "policy_kwargs must not contain shared, which the learner sets"),
    ({"policy_kwargs": {"net_arch": [0]}}, "net_arch must be at least 1, got 0"),
    (
        {"policy_kwargs": {"net_arch": {"pi": [8]}}},
        "net_arch must list layer sizes, or the sizes for 'pi' and for 'qf', got",
    ),
    ({"policy_kwargs": {"net_arch": 8}}, "net_arch must list layer sizes, or the sizes for 'pi' and for 'qf', got 8"),
]


def test_layers_are_listed_as_stable_baselines3_lists_them() -> None:
    one, two = ({"net_arch": (8, 4)}, {"net_arch": {"pi": (8,), "qf": (4, 2)}})
    shapes = [
        [size[1] for size in getattr(team(policy_kwargs=k).policy, n).sizes] for k in (one, two) for n in NETWORKS
    ]
    assert shapes == [[8, 4, 2], [8, 4, 1], [8, 2], [4, 2, 1]]
    assert [size[1] for size in team(policy_kwargs={}).policy.critic.sizes] == [128, 128, 128, 1]


def test_fair_e_is_not_loaded_from_networks_of_each_agent(tmp_path: Path) -> None:
    team().save(tmp_path / "model")
    with pytest.raises(ValueError, match="shared must be True for Fair-E, got a model of another class"):
        FairE.load(tmp_path / "model")


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as told:
        team(**settings)
    assert str(told.value).startswith(message)


def of(kind: type[DDPG], env: Callable[[], Any], **settings: Any) -> Callable[[], Any]:
    return lambda: team(kind, env(), **settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (of(DDPG, lambda: team_env(action="heading")), "env must have actions that are discrete or vectors from -1"),
        (of(DDPG, lambda: DummyVecEnv([Picture])), "env must have observations that are vectors of numbers, got Box"),
        (of(DDPG, lambda: DummyVecEnv([Bandit] * 4), agents=3), "agents must divide the environment's 4 rows, got 3"),
        (of(DDPG, pendulum, guide=Greedy()), "guide must be None for an environment that was not made"),
        (of(DDPG, pendulum, policy="DeepSetsPolicy"), "policy_kwargs['sets'] must be given for DeepSetsPolicy unless"),
        (
            of(DDPG, lambda: team_env(observation="authors"), policy="DeepSetsPolicy"),
            "policy_kwargs['sets'] must be given for DeepSetsPolicy",
        ),
        (of(DDPG, team_env, policy_kwargs={"sets": (2, 1, 2, 0)}), "sets must be of observations of 6 numbers, got"),
        (of(FairE, team_env, shared=False), "shared must be True for Fair-E, got False"),
        (of(FairER, team_env, shared=True), "shared must be False for Fair-ER, whose agents have their own networks"),
        (of(FairER, lambda: team_env(pursuers=1)), "env must have at least two agents whose actions are directions"),
        (
            of(FairER, lambda: DummyVecEnv([Bandit] * 4), agents=2),
            "env must have at least two agents whose actions are",
        ),
        (of(FairER, team_env, fairness_weight=-1), "fairness_weight must be at least 0, got -1"),
        (of(FairER, team_env, form="fair"), "form must be one of 'plain', 'normalised', 'automatic', got 'fair'"),
        (of(FairER, team_env, fairness_limit=3), "fairness_limit must be between 0 and 2, got 3"),
        (of(FairER, team_env, weight_learning_rate=-1), "weight_learning_rate must be at least 0, got -1"),
    ],
)
def test_what_does_not_fit_together_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as told:
        make()
    assert str(told.value).startswith(message)
