"""PPO with a penalty on the increase of any measure."""

from typing import Any

import numpy as np
import pytest
import torch as th

from fair_envs import make_sb3
from fair_envs.baselines import PPO
from fair_envs.baselines.ppo.cost_ppo import MeasurePPO
from fair_envs.metrics.measures import FunctionMeasure, Measure

SMALL: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "seed": 3, "device": "cpu"}


def accepted(lanes: int) -> Measure:
    """Return a measure that is 1 after an acceptance and 0 after a rejection."""
    return FunctionMeasure(lanes, lambda info: np.asarray(info["fair_action"], float))


def learner(kind: Any = MeasurePPO, **given: Any) -> Any:
    """Return a learner of lending in short episodes."""
    env = make_sb3("FairLending-v0", n_envs=4, seed=5, rows="lanes", horizon=10)
    return kind("MlpPolicy", env, **{**SMALL, **given})


def test_a_step_costs_the_change_of_the_measure() -> None:
    model = learner(short=accepted).learn(4 * 32)
    decisions = model.rollout_buffer.actions.reshape(4, 32).T  # flattened by the updates, lane after lane
    first = model.rollout_buffer.episode_starts.astype(bool)
    change = np.diff(decisions, axis=0)
    np.testing.assert_array_equal(model.cost()[1:][~first[1:]], change[~first[1:]])
    assert (model.cost()[first] == 0).all()  # there was no value before
    for end in (9, 19, 29):  # episodes of 10 steps
        np.testing.assert_array_equal(model.cost()[end - 9 : end + 1].sum(axis=0), decisions[end] - decisions[end - 9])


def test_costs_go_on_after_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The critic's cost of the last observation, here 2, stands for what would have followed."""
    model = learner(short=accepted, gamma=0.9)
    last = model.cost_critics.networks[0][-1]
    th.nn.init.zeros_(last.weight)
    th.nn.init.constant_(last.bias, 2.0)
    seen: list[Any] = []
    inner = model._estimate

    def spied(cost: Any) -> None:
        seen.append(cost - model.cost())
        inner(cost)

    monkeypatch.setattr(model, "_estimate", spied)
    model.learn(4 * 32)
    ends = [9, 19, 29]  # episodes of 10 steps
    assert seen[0][ends] == pytest.approx(0.9 * 2) and not np.delete(seen[0], ends, axis=0).any()


def test_without_weight_it_is_ppo() -> None:
    ours = learner(short=accepted, alpha=0.0).learn(3 * 4 * 32)
    theirs = learner(PPO).learn(3 * 4 * 32)
    for name, weights in theirs.policy.state_dict().items():
        th.testing.assert_close(ours.policy.state_dict()[name], weights, rtol=0, atol=0)


def test_the_unit_of_a_measure_does_not_matter() -> None:
    def tiny(lanes: int) -> Measure:
        return FunctionMeasure(lanes, lambda info: 0.5 * np.asarray(info["fair_action"], float))

    one, other = (learner(short=short, n_epochs=1) for short in (accepted, tiny))
    for model in (one, other):
        model.set_random_seed(3)
        model.learn(4 * 32)
    scale = [float(model._cost_advantages.std()) for model in (one, other)]
    assert scale == pytest.approx([1.0, 1.0], rel=0.05)


def test_a_larger_weight_holds_the_measure_down() -> None:
    share = [
        learner(short=accepted, alpha=alpha, n_steps=64, learning_rate=3e-3)
        .learn(15 * 4 * 64)
        .rollout_measures.short.mean()
        for alpha in (0.0, 3.0)
    ]
    assert share[1] < share[0] - 0.2


def test_wrong_weights_are_named() -> None:
    with pytest.raises(ValueError, match="alpha must be at least 0, got -1"):
        learner(short=accepted, alpha=-1)
