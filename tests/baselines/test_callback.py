"""The callback measures fairness in any training of Stable-Baselines3, logs it, and stops it at a limit."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.metrics import FunctionMeasure, Measure, RateMeasure
from fair_envs.metrics.rates import TRUE_POSITIVE
from fair_envs.wrappers import FairnessPenalty, ReportActionProbs
from tests.assessment.office import GROUPS, SPEC, Office
from tests.helpers import LITTLE

sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.logger import KVWriter, Logger  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize  # noqa: E402

from fair_envs.baselines import FairnessCallback  # noqa: E402
from fair_envs.baselines.training import MeanReward, RewardCurve, RolloutRates, rollout_logs  # noqa: E402

SMALL: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "device": "cpu", "seed": 0}
LOANS: dict[str, Any] = {"horizon": 50}


class Rows(KVWriter):
    """Collects what is logged."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        self.rows.append({name: value for name, value in key_values.items() if name.startswith("fairness/")})

    def close(self) -> None: ...


def logged(
    env: Any, callback: BaseCallback, *, steps: int = 128, kind: Any = None, **given: Any
) -> tuple[Any, list[Any]]:
    """Train briefly; return the model and the logged rows."""
    model = (kind or sb3.PPO)("MlpPolicy", env, **(given or SMALL))
    rows = Rows()
    model.set_logger(Logger(None, [rows]))
    model.learn(steps, callback=callback, log_interval=1)
    return model, rows.rows


@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make("FairLending-v0", **LOANS),
        lambda: make_vec_env("FairLending-v0", n_envs=2, env_kwargs=LOANS),
        lambda: fair_envs.make_sb3("FairLending-v0", n_envs=2, **LOANS),
        lambda: VecNormalize(VecMonitor(fair_envs.make_sb3("FairLending-v0", n_envs=2, **LOANS))),
    ],
)
def test_the_measures_of_the_task_and_the_rates_of_groups_are_logged(make: Any) -> None:
    _, rows = logged(make(), FairnessCallback(steps=32))
    assert set(rows[-1]) == {
        "fairness/equal_opportunity",
        "fairness/distance between groups",
        "fairness/gap",
        "fairness/rate/advantaged",
        "fairness/rate/disadvantaged",
    }
    for row in rows:
        rates = [row[f"fairness/rate/{name}"] for name in ("advantaged", "disadvantaged")]
        assert row["fairness/gap"] == pytest.approx(abs(rates[0] - rates[1]))


def test_every_interface_measures_the_same() -> None:
    """The same policy and seeds in one batch, and in single environments."""
    batch = fair_envs.make_sb3("FairLending-v0", n_envs=2, **LOANS)
    singles = DummyVecEnv([lambda: gym.make("FairLending-v0", **LOANS) for _ in range(2)])
    found = [logged(env, FairnessCallback(steps=32))[1] for env in (batch, singles)]
    assert found[0] == found[1] and len(found[0]) > 1


@pytest.mark.parametrize("rows", ["agents", "lanes"])
def test_agents_are_measured_by_their_own_rewards(rows: Any) -> None:
    env: Any = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, rows=rows, **LITTLE)
    totals = np.zeros((2, 2))

    class Sums(BaseCallback):
        def _on_step(self) -> bool:
            for group in range(2):
                own = env.interactions["group"] == group
                totals[group] += env.agent_reward[own].sum(), own.sum()
            return True

    given = {**SMALL, "batch_size": 64, "n_steps": 64}
    _, logs = logged(env, sb3.common.callbacks.CallbackList([Sums(), FairnessCallback(steps=1)]), steps=64, **given)
    rates = [logs[-1][name] for name in sorted(logs[-1]) if "/rate/" in name]
    assert rates == pytest.approx((totals[:, 0] / totals[:, 1]).tolist())


@pytest.mark.parametrize(
    "make",
    [
        lambda wrap: wrap(gym.make("FairHarvest-v0", **LITTLE)),
        lambda wrap: wrap(fair_envs.make_sb3("FairHarvest-v0", n_envs=2, **LITTLE)),
    ],
)
def test_agents_are_measured_by_the_rewards_below_wrappers(make: Any) -> None:
    wraps: list[Any] = [lambda env: env, lambda env: FairnessPenalty(env, alpha=50.0)]
    plain, penalised = (logged(make(wrap), FairnessCallback(steps=1), learning_rate=0.0, **SMALL)[1] for wrap in wraps)
    assert plain == penalised and plain[-1]["fairness/gap"] > 0


def test_an_own_environment_is_measured_by_its_info() -> None:
    _, rows = logged(Office(), FairnessCallback(steps=32))
    assert {f"fairness/rate/{name}" for name in GROUPS} <= set(rows[-1])
    _, rows = logged(Office(), FairnessCallback(steps=100), kind=sb3.DQN, learning_starts=10, device="cpu", seed=0)
    assert any("fairness/equal_opportunity" in row for row in rows)


def test_the_training_stops_when_a_measure_is_above_or_below_the_limit() -> None:
    steps = []
    for limit, when in ((0.5, "above"), (0.5, "below"), (2.0, "above"), (None, "below")):
        always = FunctionMeasure(1, lambda info: np.ones(1))
        callback = FairnessCallback([always], steps=32, stop_at=limit, stop_when=when)  # type: ignore[arg-type]
        model, _ = logged(Office(), callback, steps=128)
        steps.append(model.num_timesteps)
    assert steps == [33, 128, 128, 128]  # in the first step after the rollout


def test_the_training_does_not_stop_during_the_warmup() -> None:
    for warmup, expected in ((0, 33), (32, 33), (33, 65), (65, 97)):
        always = FunctionMeasure(1, lambda info: np.zeros(1))
        model, _ = logged(Office(), FairnessCallback([always], steps=32, stop_at=0.5, warmup=warmup), steps=128)
        assert model.num_timesteps == expected, warmup


@pytest.mark.parametrize("given", ["equal_opportunity", TRUE_POSITIVE])
def test_one_measure_can_be_given_without_a_list(given: Any) -> None:
    _, rows = logged(Office(), FairnessCallback(given, steps=32))
    assert sum("/rate/" not in name and name != "fairness/gap" for name in rows[-1]) == 1


def test_measures_can_be_names_objects_and_functions_and_have_different_names() -> None:
    own = RateMeasure(1, fair_envs.task_of("FairLending-v0").rate, spec=SPEC)
    given: list[Any] = [
        "short",
        "demographic_parity",
        own,
        lambda lanes: FunctionMeasure(lanes, lambda info: np.zeros(lanes)),
    ]
    _, rows = logged(Office(), FairnessCallback(given, steps=32, task="FairLending-v0"))
    names = {name for name in rows[-1] if "/rate/" not in name and name != "fairness/gap"}
    assert names == {
        "fairness/equal_opportunity",
        "fairness/demographic_parity",
        "fairness/gap of true positive rate",
        "fairness/FunctionMeasure",
    }
    twice = FairnessCallback(["demographic_parity", "SP"], steps=32)
    assert {"fairness/demographic_parity 1", "fairness/demographic_parity 2"} <= set(logged(Office(), twice)[1][-1])


def test_measures_begin_again_with_each_episode() -> None:
    class Steps(Measure):
        """How many steps the episode has had."""

        def measured(self, info: Any) -> Any:
            return np.nan_to_num(self.value) + 1.0

    _, rows = logged(gym.make("FairLending-v0", horizon=8), FairnessCallback(Steps, steps=32))
    assert [row["fairness/Steps"] for row in rows] == [4.5] * 4  # the mean of 1 to 8


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"measures": ["nope"]}, "measure must be one of"),
        ({"measures": [3]}, "measures must be names, rates, measures or functions that return a measure, got 3"),
        ({"measures": []}, "measures must be at least one measure"),
        ({"stop_when": "equal"}, "stop_when must be one of above, below, got 'equal'"),
        ({"steps": 0}, "steps must be"),
        ({"task": "FairLendin-v0"}, "did you mean 'FairLending-v0'"),
        ({"task": 5}, "task must be a Task or the id of an environment, got 5"),
        ({"stop_at": float("nan")}, "stop_at must be a finite number, got nan"),
        ({"stop_at": "0.05"}, "stop_at must be a finite number, got '0.05'"),
    ],
)
def test_wrong_arguments_are_rejected_at_construction(given: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        FairnessCallback(**given)


@pytest.mark.parametrize(
    ("env", "given", "error"),
    [
        (lambda: gym.make("CartPole-v1"), {}, "env must report the record"),
        (Office, {"measures": ["return_parity"]}, "needs agents who earn rewards"),
        (Office, {"measures": ["individual_fairness"]}, "it needs the policy's action probabilities"),
        (lambda: fair_envs.make_sb3("FairHiring-v0"), {"measures": ["individual_fairness"]}, "needs the policy"),
        (
            Office,
            {"measures": [lambda lanes: 3]},
            "measures must be names, rates, measures or functions that return a measure, got <function",
        ),
        (Office, {"measures": [FunctionMeasure(2, lambda info: np.zeros(2))]}, "measures must have 1 lanes"),
    ],
)
def test_what_cannot_be_measured_is_rejected_when_the_training_starts(env: Any, given: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        logged(env(), FairnessCallback(**given))


@pytest.mark.parametrize("make", [lambda: gym.make("FairHiring-v0"), lambda: fair_envs.make_sb3("FairHiring-v0")])
def test_reported_action_probabilities_are_measured(make: Any) -> None:
    _, rows = logged(ReportActionProbs(make(), "uniform"), FairnessCallback(["individual_fairness"], steps=32))
    assert rows[-1]["fairness/individual_fairness"] == 0  # everyone is treated alike


@pytest.mark.parametrize("env_id", ["FairLending-v0", "FairHiring-v0"])
def test_every_training_logs_the_rates_of_its_rollouts(env_id: str) -> None:
    own, other = (fair_envs.make_sb3(env_id, n_envs=2, seed=0, **LOANS) for _ in range(2))
    _, rows = logged(own, RolloutRates())
    _, expected = logged(other, FairnessCallback(steps=1))
    assert len(rows) == 2
    for row, full in zip(rows, expected, strict=True):
        assert {name: full[name] for name in row} == pytest.approx(row, nan_ok=True)
        assert row["fairness/gap"] > 0


def test_environments_without_a_record_log_their_rewards() -> None:
    model = sb3.PPO("MlpPolicy", gym.make("CartPole-v1"), **SMALL)
    assert [type(log) for log in rollout_logs(model)] == [MeanReward]


def test_a_curve_of_the_reward_has_the_mean_of_each_part() -> None:
    curve = RewardCurve(8, parts=4)
    for step in range(5):  # two lanes: steps 2, 4, 6, 8, and 10, which is beyond the end
        curve.num_timesteps, curve.locals = 2 * step + 2, {"rewards": np.array([step, step + 1], np.float32)}
        assert curve._on_step()
    np.testing.assert_allclose(curve.rewards, [0.5, 1.5, 2.5, 4.0])
    assert np.isnan(RewardCurve(8, parts=4).rewards).all()
