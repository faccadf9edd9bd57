"""Constrained policy optimisation: its quadratic problem, its equality with TRPO, and its limit."""

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from sb3_contrib import TRPO
from stable_baselines3.common.distributions import kl_divergence

from fair_envs import make_sb3
from fair_envs.baselines.ppo.cpo import CPO, Quadratic, best_step
from fair_envs.baselines.ppo.policies import GroupedPolicy, SharedTrunkPolicy
from fair_envs.metrics.measures import FunctionMeasure, Measure
from fair_envs.tasks import MeasureFor, task_of
from tests.baselines.kills import HARVEST

DELTA = 0.02
H = np.array([[2.0, 0.3], [0.3, 0.7]])
G = np.array([0.5, -1.0])


def problem(b: np.ndarray, c: float) -> Quadratic:
    """Return the quadratic problem of a constraint with gradient b and excess c."""
    inverse = np.linalg.inv(H)
    return Quadratic(objective=G @ inverse @ G, both=G @ inverse @ b, constraint=b @ inverse @ b, excess=c, size=DELTA)


def stepped(b: np.ndarray, c: float) -> tuple[np.ndarray, str]:
    """Return the best step as a vector, and its case."""
    found, inverse = best_step(problem(b, c)), np.linalg.inv(H)
    return found.along * inverse @ G + found.across * inverse @ b, found.case


def boundary() -> np.ndarray:
    """Return many points of the trust region's boundary and inside of it, shape (n, 2)."""
    angles = np.linspace(0, 2 * np.pi, 4001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    on = circle @ np.linalg.inv(np.linalg.cholesky(H)) * np.sqrt(2 * DELTA)
    return np.concatenate([on * radius for radius in np.linspace(0, 1, 201)])


CONSTRAINTS = [
    (np.array([0.3, 0.4]), -1.0, "unconstrained"),  # the boundary of the constraint is far away
    (np.array([0.5, 0.4]), -0.01, "unconstrained"),  # it crosses the trust region, but not on the way
    (np.array([0.3, -0.6]), -0.01, "constrained"),
    (np.array([0.3, -0.6]), 0.02, "constrained"),  # the limit is exceeded, and can be met again
    (np.array([0.3, -0.6]), 1.0, "recovery"),  # no step in the trust region meets the limit
    (-2 * G, 0.01, "unconstrained"),  # the objective's direction meets it
    (2 * G, -0.001, "constrained"),  # the gradients are parallel
]


@pytest.mark.parametrize(("b", "c", "case"), CONSTRAINTS)
def test_the_step_is_the_best_one_in_the_trust_region(b: np.ndarray, c: float, case: str) -> None:
    x, found = stepped(b, c)
    assert found == case
    assert x @ H @ x / 2 <= DELTA * (1 + 1e-9)
    points = boundary()
    if case == "recovery":
        assert c + b @ x > 0 and b @ x <= (points @ b).min() + 1e-6
        return
    assert c + b @ x <= 1e-9
    allowed = points[c + points @ b <= 0]
    assert G @ x >= (allowed @ G).max() - 1e-6


@pytest.mark.parametrize(("b", "c", "case"), [one for one in CONSTRAINTS[2:4]])
def test_the_step_is_that_of_the_papers_dual(b: np.ndarray, c: float, case: str) -> None:
    q, r, s, _, delta = problem(b, c)
    lambdas = np.linspace(1e-3, 60, 600_000)
    nu = np.maximum(0, (lambdas * c + r) / s)  # the best multiplier of the constraint for each of the trust region's
    dual = (q - 2 * nu * r + nu**2 * s) / (2 * lambdas) + lambdas * delta - nu * c
    best = dual.argmin()
    x = np.linalg.inv(H) @ (G - nu[best] * b) / lambdas[best]
    np.testing.assert_allclose(stepped(b, c)[0], x, atol=1e-4)


def test_a_constraint_without_a_gradient_changes_nothing() -> None:
    assert best_step(Quadratic(objective=1.0, both=0.0, constraint=0.0, excess=1.0, size=DELTA)).case == "unconstrained"


# The learner ----------------------------------------------------------------------------------------------------------

WORLD: Any = HARVEST["parameters"]
SMALL: dict[str, Any] = {"n_steps": 64, "batch_size": 64, "n_epochs": 3, "seed": 3, "device": "cpu"}


def environment(env_id: str = "FairLending-v0", **parameters: Any) -> Any:
    """Return an environment of few lanes."""
    rules = task_of(env_id).rules(**parameters)
    return make_sb3(
        env_id, n_envs=4, seed=5, rows="agents" if rules.multi_agent else "lanes", **task_of(env_id).merged(parameters)
    )


def learner(env_id: str = "FairLending-v0", short: Any = None, **given: Any) -> CPO:
    """Return a learner of an environment's task."""
    parameters = given.pop("parameters", {})
    task = task_of(env_id)
    made = short or MeasureFor(task, "short", task.rules(**parameters))
    return CPO("MlpPolicy", environment(env_id, **parameters), short=made, **{**SMALL, **given})


@pytest.mark.parametrize(("limit", "rollouts"), [(np.inf, 2), (1.0, 1)])
def test_without_an_active_limit_the_step_is_that_of_trpo(limit: float, rollouts: int) -> None:
    ours = learner(limit=limit).learn(rollouts * 4 * 64)
    updates: dict[str, Any] = {"target_kl": 0.01, "n_critic_updates": 3, "learning_rate": 3e-4}
    theirs = TRPO("MlpPolicy", environment(), **updates, **without_epochs(SMALL)).learn(rollouts * 4 * 64)
    for name, weights in theirs.policy.state_dict().items():
        th.testing.assert_close(ours.policy.state_dict()[name], weights, rtol=1e-4, atol=1e-6)
    assert float(ours.logger.name_to_value["train/step"]) > 0


def without_epochs(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without the passes over a rollout, which TRPO does not have."""
    return {name: value for name, value in settings.items() if name != "n_epochs"}


def accepted(lanes: int) -> Measure:
    """Return a measure that is 1 after an acceptance and 0 after a rejection."""
    return FunctionMeasure(lanes, lambda info: np.asarray(info["fair_action"], float))


@pytest.mark.parametrize("limit", [0.2, 0.8])
def test_the_mean_of_a_measure_ends_below_its_limit(limit: float) -> None:
    model = learner(short=accepted, limit=limit, n_steps=128, max_kl=0.03)
    model.learn(12 * 4 * 128)
    assert model.excess < 0.08


def test_a_policy_far_above_its_limit_recovers() -> None:
    model = learner(short=accepted, limit=0.0, n_steps=128)
    model.learn(4 * 128)
    assert model.logger.name_to_value["train/recovery"] == 1.0 and model.excess > 0.1
    before = model.excess
    model.learn(5 * 4 * 128, reset_num_timesteps=False)
    assert model.excess < before - 0.05


@pytest.mark.parametrize("env_id", ["FairHarvest-v0", "FairPursuit-v0", "FairCollege-v0", "FairAttention-v0"])
def test_agents_and_every_kind_of_action_train(env_id: str) -> None:
    parameters = WORLD if env_id == "FairHarvest-v0" else {"horizon": 40}
    model = learner(env_id, parameters=parameters, limit=0.0)
    before = [weights.clone() for weights in model.policy.parameters()]
    model.learn(4 * 64)
    assert any((one != other).any() for one, other in zip(before, model.policy.parameters(), strict=True))


def test_the_parts_of_all_agents_of_a_lane_add_up() -> None:
    model = learner("FairHarvest-v0", parameters=WORLD)
    model.learn(4 * 64)
    (batch,) = model.rollout_buffer.get(None)
    turns = model._turns_of(batch)
    centred = model._costs_of_turns(batch) - model._costs_of_turns(batch).mean()
    th.testing.assert_close(turns.costs.mean(), centred.sum() / (64 * 4), atol=1e-6, rtol=1e-4)
    th.testing.assert_close(turns.costs.abs().mean(), centred.abs().sum() / (64 * 4), atol=1e-6, rtol=1e-4)


class Predicted:
    """Turns whose surrogates after each part of a step are given."""

    def __init__(self, observations: th.Tensor, *found: tuple[float, float]) -> None:
        self.observations, self._found = observations, list(found)

    def surrogates(self, distribution: Any) -> tuple[th.Tensor, th.Tensor]:
        objective, cost = self._found.pop(0) if len(self._found) > 1 else self._found[0]
        return th.tensor(objective), th.tensor(cost)


@pytest.mark.parametrize(
    ("excess", "found", "share"),
    [
        (-0.1, [(1.0, 0.05)], 1.0),
        (-0.1, [(1.0, 0.2), (1.0, 0.15), (1.0, 0.05)], 0.64),  # too costly until it is shortened twice
        (-0.1, [(-1.0, 0.0), (1.0, 0.0)], 0.8),  # worse than before
        (0.5, [(-1.0, 0.1), (-1.0, -0.1)], 0.8),  # above the limit, only the cost counts, which must not rise
        (-0.1, [(1.0, 1.0)], 0.0),
        (0.5, [(1.0, 1.0)], 0.0),
    ],
)
def test_a_step_is_shortened_until_it_keeps_the_limit_and_improves(
    monkeypatch: pytest.MonkeyPatch, excess: float, found: list[tuple[float, float]], share: float
) -> None:
    model: Any = learner()
    model.learn(4 * 64)
    monkeypatch.setattr(CPO, "excess", property(lambda self: excess))
    (batch,) = model.rollout_buffer.get(None)
    before = model._distribution(batch.observations)
    actor = list(model.policy.action_net.parameters())
    kept = [parameter.detach().clone() for parameter in actor]
    step = th.full((sum(parameter.numel() for parameter in actor),), 1e-3)
    surrogates = th.tensor(0.0), th.tensor(0.0)
    taken = model._line_search(actor, step, Predicted(batch.observations, *found), before, surrogates)
    assert taken == pytest.approx(share)
    for parameter, own in zip(actor, kept, strict=True):
        th.testing.assert_close(parameter, own + share * 1e-3, atol=1e-7, rtol=0)


def test_a_step_outside_the_trust_region_is_shortened() -> None:
    model: Any = learner(max_kl=1e-4)
    model.learn(4 * 64)
    (batch,) = model.rollout_buffer.get(None)
    with th.no_grad():
        before = copy.copy(model._distribution(batch.observations))
    actor = [model.policy.action_net.bias]
    turns = Predicted(batch.observations, (1.0, -1.0))
    taken = model._line_search(actor, th.tensor([0.05, -0.05]), turns, before, (th.tensor(0.0), th.tensor(0.0)))
    assert 0 < taken < 1
    with th.no_grad():
        after = kl_divergence(model._distribution(batch.observations), before).mean()
    assert float(after) <= 1e-4


def test_critics_do_not_change_layers_that_they_share_with_the_policy() -> None:
    sizes = {"net_arch": {"shared": [8], "pi": [8], "vf": [8]}}
    task = task_of("FairLending-v0")
    measure = MeasureFor(task, "short", task.rules())
    model: Any = CPO(SharedTrunkPolicy, environment(), short=measure, policy_kwargs=sizes, **SMALL)
    model.learn(4 * 64)
    (batch,) = model.rollout_buffer.get(None)
    actor = model._update_policy(model._turns_of(batch))
    kept = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model._update_critics(batch, actor)
    changed = [not th.equal(one, other) for one, other in zip(model.policy.parameters(), kept, strict=True)]
    own = [any(one is parameter for parameter in actor) for one in model.policy.parameters()]
    assert changed == [not acts for acts in own] and any(changed) and sum(own) >= 6  # shared, own and last layers


def test_networks_of_groups_take_one_step_within_the_trust_region() -> None:
    task = task_of("FairHarvest-v0")
    env = make_sb3("FairHarvest-v0", n_envs=2, append_group=True, **WORLD)
    given = {**SMALL, "max_kl": 0.001}
    model: Any = CPO(GroupedPolicy, env, short=MeasureFor(task, "short", task.rules(**WORLD)), **given)
    before = [network.action_net.weight.detach().clone() for network in model.policy.members]
    model.learn(SMALL["n_steps"] * env.num_envs)
    for network, weights in zip(model.policy.members, before, strict=True):
        assert not th.equal(network.action_net.weight, weights)
    assert 0 < model.logger.name_to_value["train/kl"] <= 0.001


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": -1}, "limit must be at least 0, got -1"),
        ({"max_kl": 0}, "max_kl must be at least 1e-12, got 0"),
        ({"line_search_factor": 2}, "line_search_factor must be between 0 and 1, got 2"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learner(**given)
