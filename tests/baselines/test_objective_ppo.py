"""PPO for functions of expected returns: its limits, its parts, and toy problems whose optimum is known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

import fair_envs
from fair_envs.baselines.ppo import objectives
from fair_envs.baselines.ppo.costs import Credit, cost_advantages
from fair_envs.baselines.ppo.functions import (
    AlphaFair,
    BenefitRate,
    Gini,
    Lagrangian,
    Maxmin,
    Nash,
    Objective,
    Parity,
    Reward,
    Streams,
)
from fair_envs.baselines.ppo.objectives import ObjectivePPO, StreamCritic
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.core.interactions import FairSpec
from fair_envs.metrics import FunctionMeasure
from fair_envs.metrics.measures import MeasureOf
from fair_envs.metrics.rates import RETURN, SELECTION, TRUE_POSITIVE, RateMeasure

LOSS = 0.4  # of accepting someone of group 1; group 0 gives 1
SMALL: dict[str, Any] = {"n_steps": 20, "batch_size": 40, "n_epochs": 2, "device": "cpu", "seed": 3}


class Door(VecEnv):
    """One step: accept or reject someone of group 0, who is worth 1, or of group 1, who costs `LOSS`."""

    def __init__(self, lanes: int) -> None:
        seen = gym.spaces.Box(0, 1, (2,), np.float32)
        super().__init__(lanes, seen, gym.spaces.Discrete(2))
        self._rng = np.random.default_rng(0)

    spec_of_door = FairSpec(individuals=1, actions=2, features=(), sensitive={"group": ("a", "b")}, groups=("a", "b"))

    def reset(self) -> Any:
        self._group = self._rng.integers(0, 2, self.num_envs)
        return np.eye(2, dtype=np.float32)[self._group]

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        group, action = self._group, np.asarray(self._actions)
        reward = np.where(action == 1, np.where(group == 0, 1.0, -LOSS), 0.0).astype(np.float32)
        infos = [{"fair_group": group[k], "fair_action": action[k]} for k in range(self.num_envs)]
        return self.reset(), reward, np.ones(self.num_envs, bool), infos

    def close(self) -> None: ...
    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return []

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def seed(self, seed: int | None = None) -> Any:
        self._rng = np.random.default_rng(seed)
        return [seed] * self.num_envs


def selection(lanes: int) -> RateMeasure:
    return RateMeasure(lanes, SELECTION, spec=Door.spec_of_door)


def accepted(model: ObjectivePPO) -> NDArray[np.float64]:
    """Return the probabilities with which both groups are accepted."""
    with th.no_grad():
        found: Any = model.policy.get_distribution(th.eye(2)).distribution.probs[:, 1]  # type: ignore[operator]
    return np.asarray(found.numpy(), np.float64)


def function_at(objective: Objective, chances: NDArray[np.float64], unit: float) -> float:
    """Return F of a policy that accepts the groups with these probabilities."""
    reward = (chances[0] - LOSS * chances[1]) / 2
    means = th.tensor([reward, *chances / 2, 0.5, 0.5, 0.0], dtype=th.float64)
    about: Any = {"groups": 2, "unit": unit, "sizes": th.ones(2, dtype=th.float64), "of_returns": False}
    return float(objective.value(Streams(means, **about)))


def unit_of(chances: NDArray[np.float64]) -> float:
    """Return the mean absolute reward of a policy, which weights the fair part of F."""
    return float(chances[0] + LOSS * chances[1]) / 2


def values(objective: Objective, unit: float) -> dict[tuple[float, float], float]:
    """Return F of policies on a grid."""
    grid = np.linspace(0, 1, 11)
    return {(a, b): function_at(objective, np.array([a, b]), unit) for a in grid for b in grid}


TOYS: dict[str, Objective] = {
    "reward": Reward(),
    "strong parity": Parity(alpha=2.0),
    "weak parity": Parity(alpha=0.1),
    "elbert": BenefitRate(alpha=0.4),
    "ggf": Gini(weight=0.7),
    "weak ggf": Gini(weight=0.1),
    "nash": Nash(weight=0.2),
    "alpha-fair": AlphaFair(weight=0.1, a=1.5),
    "maxmin": Maxmin(weight=0.8),
}


def trained(objective: Objective, *, rollouts: int = 40, **settings: Any) -> ObjectivePPO:
    options = {"n_steps": 8, "batch_size": 256, "n_epochs": 6, "learning_rate": 0.02, "gamma": 0.0, "device": "cpu"}
    network: dict[str, Any] = {"policy_kwargs": {"net_arch": []}}
    model = ObjectivePPO(
        "MlpPolicy", Door(64), objective=objective, rate=selection, seed=0, **{**options, **network, **settings}
    )
    model.learn(rollouts * 8 * 64)
    return model


@pytest.mark.parametrize("name", TOYS)
def test_the_maximiser_of_the_function_is_found(name: str) -> None:
    chances = accepted(trained(TOYS[name]))
    unit = unit_of(chances)
    each = values(TOYS[name], unit).values()
    lost = max(each) - function_at(TOYS[name], chances, unit)
    assert lost < 0.03 * (max(each) - sorted(each)[len(each) // 2])  # of the distance to the median policy


def test_the_optima_of_the_toys_differ() -> None:
    optima = {max(each := values(objective, 0.6), key=each.__getitem__) for objective in TOYS.values()}
    assert len(optima) >= 4  # otherwise one policy would pass most of the tests above


def test_the_multiplier_brings_the_gap_down_to_its_limit() -> None:
    model = trained(Lagrangian(limit=0.3), rollouts=120, learning_rate=0.01)
    chances = accepted(model)
    assert chances[0] > 0.9
    assert chances[0] - chances[1] == pytest.approx(0.3, abs=0.12)


def test_a_limit_that_is_kept_costs_nothing() -> None:
    model = trained(Lagrangian(limit=1.0), rollouts=30)
    assert accepted(model) == pytest.approx([1, 0], abs=0.15)
    assert float(model.memory["controller"][0]) == 0


def weights(model: Any) -> list[NDArray[Any]]:
    return [value.detach().numpy() for value in model.policy.state_dict().values()]


def lending(lanes: int = 4) -> Any:
    env = fair_envs.make_sb3("FairLending-v0", n_envs=lanes, rows="lanes", horizon=30, feedback="full")
    env.seed(5)
    return env


def true_positives(lanes: int) -> RateMeasure:
    return RateMeasure(lanes, TRUE_POSITIVE, spec=lending(1).fair_spec)


def test_the_reward_alone_gives_stable_baselines3_to_the_bit() -> None:
    ours = ObjectivePPO("MlpPolicy", lending(), rate=true_positives, autograd=True, **SMALL).learn(240)
    theirs = sb3.PPO("MlpPolicy", lending(), **SMALL).learn(240)
    for one, other in zip(weights(ours), weights(theirs), strict=True):
        assert np.array_equal(one, other)


def agents_env() -> Any:
    env = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, horizon=15, reward_scale=0.1)
    env.seed(4)
    return env


def returns(lanes: int) -> RateMeasure:
    return RateMeasure(lanes, RETURN, spec=agents_env().fair_spec)


def test_the_reward_alone_gives_our_ppo_to_the_bit_for_agents_too() -> None:
    ours = ObjectivePPO("MlpPolicy", agents_env(), objective=Reward(), rate=returns, **SMALL).learn(3200)
    plain = PPO("MlpPolicy", agents_env(), **SMALL).learn(3200)
    for one, other in zip(weights(ours), weights(plain), strict=True):
        assert np.array_equal(one, other)


def test_the_streams_of_an_agent_add_up_to_those_of_its_lane() -> None:
    model = ObjectivePPO("MlpPolicy", agents_env(), objective=Gini(), rate=returns, **SMALL)
    model.learn(20 * 80)
    streams = model._streams
    assert streams is not None
    values = streams.values(None).reshape(20, 2, 40, 6)
    totals = streams._totals[:, :, np.newaxis]  # (steps, lanes, 1, 2 groups x 2)
    group = streams._group.reshape(20, 2, 40)
    for g in range(2):
        members = group == g
        others, own = values[..., g], np.where(members, values[..., 4], 0.0)
        assert np.allclose(others + own, np.broadcast_to(totals[..., g], others.shape))
    reward = model.rollout_buffer.reward.reshape(20, 2, 40)
    assert np.allclose(values[..., 4], 0.1 * reward, atol=1e-6)  # the own benefit is the own scaled reward


@pytest.mark.parametrize("credit", ["common", "own"])
def test_a_row_of_an_agent_weights_its_lanes_streams_by_the_number_of_agents(credit: Credit) -> None:
    """A row's streams, weighted, are N x sum_k dF/dJ_k times those of its lane, or with own credit its own part."""
    model = ObjectivePPO("MlpPolicy", agents_env(), objective=Gini(), rate=returns, credit=credit, **SMALL)
    model.learn(20 * 80)
    streams, slope = model._streams, np.array([9.0, 1.0, 2.0, 3.0, 5.0, 7.0])  # of reward, benefits, demands, cost
    assert streams is not None
    cost = np.random.default_rng(0).random((20, 80)).astype(np.float32)
    weighted = (streams.values(cost) * streams.weights(slope, with_cost=True)).sum(axis=-1)
    expected = np.repeat(streams._totals @ slope[1:5], 40, axis=1)
    if credit == "own":
        own = np.array([slope[1:3][streams._group], slope[3:5][streams._group]])
        expected = (np.moveaxis(own, 0, -1) * streams._own).sum(axis=-1)
    assert streams.values(cost).shape[-1] == model.stream_heads + 1 == (3 if credit == "own" else 7)
    assert weighted == pytest.approx(40 * (expected + 7 * cost))


def test_an_agent_of_no_compared_group_learns_nothing_from_its_own_part() -> None:
    model = ObjectivePPO("MlpPolicy", agents_env(), objective=Gini(), rate=returns, **SMALL)
    model.learn(20 * 80)
    streams = model._streams
    assert streams is not None
    streams._group[:, ::2] = -1
    found = streams.weights(np.arange(1.0, 7.0), with_cost=False)[..., -2:]
    assert not found[:, ::2].any() and found[:, 1::2].all()


@pytest.mark.parametrize("half_life", [0, 1, 3])
def test_an_estimate_has_half_its_weight_after_the_half_life(half_life: float) -> None:
    model: Any = ObjectivePPO(
        "MlpPolicy", lending(), objective=Nash(), rate=true_positives, half_life=half_life, **SMALL
    )
    seen: list[Any] = []
    inner = model._streams.means

    def means(*given: Any) -> Any:
        seen.append(inner(*given))
        return seen[-1].copy()

    model._streams.means = means
    model.learn(3 * 80)
    keep = 0.5 ** (1 / half_life) if half_life else 0
    first, second, third = seen
    expected = keep * (keep * first + (1 - keep) * second) + (1 - keep) * third
    assert model.memory["means"] == pytest.approx(expected)


def test_streams_go_on_after_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The critic's value of the last observation, here 2 in units of 1, stands for what would have followed."""
    model: Any = ObjectivePPO(
        "MlpPolicy", lending(), objective=Nash(), rate=true_positives, gamma=0.9, **{**SMALL, "n_steps": 40}
    )
    model.stream_critic.scale.fill_(1)
    last = model.stream_critic.network[-1]
    th.nn.init.zeros_(last.weight)
    th.nn.init.constant_(last.bias, 2.0)
    seen: list[Any] = []

    def spied(values: Any, *given: Any, **more: Any) -> Any:
        seen.append(values - model._streams.values(None))
        return cost_advantages(values, *given, **more)

    monkeypatch.setattr(objectives, "cost_advantages", spied)
    model.learn(160)
    assert seen[0][29] == pytest.approx(0.9 * 2) and not np.delete(seen[0], 29, axis=0).any()


def test_the_length_of_episodes_is_known_from_rollouts_that_are_shorter() -> None:
    model: Any = ObjectivePPO(
        "MlpPolicy", lending(), objective=BenefitRate(), rate=true_positives, profile="published", **SMALL
    )
    seen: list[float] = []
    inner = model._episode_length

    def length() -> float:
        seen.append(inner())
        return seen[-1]

    model._episode_length = length
    model.learn(6 * 80)  # 20 steps each; episodes have 30
    assert seen == [20, 30, 30, 30, 30, 30]


def test_the_published_profile_normalises_each_stream_in_the_minibatch() -> None:
    given = {**SMALL, "n_steps": 60}  # whole episodes: their sums per episode are those of the published code
    model = ObjectivePPO(
        "MlpPolicy", lending(), objective=BenefitRate(alpha=50.0), rate=true_positives, profile="published", **given
    )
    seen: list[tuple[th.Tensor, th.Tensor, th.Tensor]] = []
    inner: Callable[..., th.Tensor] = model._published

    def spied(batch: Any, advantages: th.Tensor) -> th.Tensor:
        found = inner(batch, advantages)
        seen.append((advantages, model._parts[0][batch.flat_index], found))
        return found

    model._published = spied  # type: ignore[method-assign]
    model.learn(240)
    advantages, parts, found = seen[-1]
    streams = model._streams
    assert streams is not None
    begun = model.rollout_buffer.episode_starts.sum()
    sums = streams._totals.sum(axis=(0, 1)) / begun
    benefit, demand = sums[:2], sums[2:]
    rates = benefit / demand
    slope = 2 * (rates[0] - rates[1]) * np.array([1, -1])
    each = [(part - part.mean()) / (part.std() + 1e-8) for part in parts.unbind(1)]
    fair = sum(slope[g] * (each[g] / demand[g] - benefit[g] / demand[g] ** 2 * each[2 + g]) for g in range(2))
    expected = (advantages - advantages.mean()) / (advantages.std() + 1e-8) - 50 * fair
    assert th.allclose(found.double(), expected.double(), atol=1e-4)


def test_a_saved_model_continues_with_its_critic_and_estimates(tmp_path: Path) -> None:
    model = ObjectivePPO("MlpPolicy", lending(), objective=Nash(), rate=true_positives, **SMALL).learn(160)
    model.save(tmp_path / "model")
    loaded = ObjectivePPO.load(tmp_path / "model", device="cpu")
    for one, other in zip(model.stream_critic.parameters(), loaded.stream_critic.parameters(), strict=True):
        assert th.equal(one, other)
    assert np.array_equal(loaded.memory["means"], model.memory["means"])


def cost_of(lanes: int) -> RateMeasure:
    return RateMeasure(lanes, SELECTION, spec=lending(1).fair_spec)


def test_a_measure_that_is_no_rate_can_be_limited_as_a_cost() -> None:
    limited = Lagrangian(limit=0.0, of_rates=False)
    model = ObjectivePPO("MlpPolicy", lending(), objective=limited, rate=true_positives, cost=cost_of, **SMALL)
    model.learn(160)
    assert model.memory["controller"][0] > 0
    assert model.stream_critic.scale.shape == (5,)  # benefits and demands of two groups, and the cost


def test_the_mean_reward_is_without_the_values_after_time_limits() -> None:
    given = {**SMALL, "n_steps": 40, "half_life": 0}  # episodes of 30 steps are truncated
    model: Any = ObjectivePPO("MlpPolicy", lending(), objective=BenefitRate(), rate=true_positives, **given)
    with th.no_grad():
        model.policy.value_net.bias += 100.0
    model.learn(model.n_steps * 4)
    rewards = model._recorder.rewards
    assert model.memory["means"][0] == pytest.approx(rewards.mean()) and abs(rewards).max() <= 1
    assert model.memory["unit"] == pytest.approx(abs(rewards).mean())
    assert model.rollout_buffer.rewards.max() > 50


def test_steps_in_which_a_cost_is_undefined_are_left_out_of_its_mean() -> None:
    def half(lanes: int) -> Any:
        return FunctionMeasure(lanes, lambda info: np.where(info["fair_action"] == 1, 0.2, np.nan))

    limited = Lagrangian(limit=0.15, of_rates=False)
    model = ObjectivePPO("MlpPolicy", lending(), objective=limited, rate=true_positives, cost=half, **SMALL)
    model.learn(model.n_steps * 4)
    assert np.isnan(model.rollout_measures.long).any()
    assert model.memory["means"][-1] == pytest.approx(0.2) and model.memory["controller"][0] > 0


def test_a_measure_that_is_no_rate_cannot_be_the_rate() -> None:
    make: MeasureOf = lambda lanes: FunctionMeasure(lanes, lambda info: np.zeros(lanes))  # noqa: E731
    with pytest.raises(ValueError, match="rate must make a RateMeasure"):
        ObjectivePPO("MlpPolicy", lending(), objective=Nash(), rate=make, **SMALL)


def test_only_elbert_has_a_published_profile() -> None:
    with pytest.raises(ValueError, match="profile must be 'recommended' for Nash"):
        ObjectivePPO("MlpPolicy", lending(), objective=Nash(), rate=true_positives, profile="published", **SMALL)


def test_the_critic_of_streams_learns_as_with_autograd() -> None:
    rng, own = np.random.default_rng(0), StreamCritic(5, 3, learning_rate=0.01, seed=0)
    seen, wanted = (th.from_numpy(rng.normal(size=(40, width)).astype(np.float32)) for width in (5, 3))
    other = StreamCritic(5, 3, learning_rate=0.01, seed=0)
    for step in range(4):
        loss = own.fit(seen, wanted, epochs=1, rng=np.random.default_rng(step), max_grad_norm=0.5)
        spread = wanted.std(dim=0)
        other.scale = spread if not step else 0.9 * other.scale + 0.1 * spread
        place = th.from_numpy(np.random.default_rng(step).permutation(40))
        expected = (other.network(seen[place]) - (wanted / other.scale)[place]).square().mean()
        other.optimizer.zero_grad()
        expected.backward()
        th.nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        other.optimizer.step()
        assert loss == pytest.approx(expected.item(), rel=1e-5)
    for one, two in zip(own.parameters(), other.parameters(), strict=True):
        th.testing.assert_close(one, two)
