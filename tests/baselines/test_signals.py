"""What each environment's long-term fairness is measured and mitigated with."""

from typing import Any

import numpy as np
import pytest
import torch as th

import fair_envs
from fair_envs.baselines.ppo.long_term_training import long_term_settings, make_long_term, train_long_term
from fair_envs.baselines.ppo.massaging import DecisionMassager, PolicyOutput
from fair_envs.baselines.ppo.regularised import FPPO, Changes
from fair_envs.baselines.tasks import SIGNALS, published_lending_massager, task_for
from fair_envs.baselines.tasks.attention import AttentionMassager
from fair_envs.baselines.tasks.epidemic import EpidemicMassager
from fair_envs.baselines.tasks.lending import LendingMassager, ScoreDistance
from fair_envs.core.interactions import columns
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.metrics import wasserstein
from fair_envs.tasks import task_of

LENDING, ATTENTION, EPIDEMIC = "FairLending-v0", "FairAttention-v0", "FairEpidemic-v0"
SMALL: dict[str, Any] = {"steps": 64, "lanes": 4, "n_steps": 8, "batch_size": 16, "pi": (4,), "vf": (4,)}


def rows(env_id: str, lanes: int = 5, **parameters: Any) -> LanesVecEnv:
    """Return rows of lanes that have begun."""
    env: Any = fair_envs.make_sb3(env_id, n_envs=lanes, rows="lanes", seed=3, **parameters)
    env.reset()
    return env  # type: ignore[no-any-return]


@pytest.mark.parametrize("env_id", SIGNALS)
@pytest.mark.parametrize("signals", ["sound", "as_coded"])
def test_each_environment_of_the_study_trains_with_its_massager_at_work(env_id: str, signals: Any) -> None:
    parameters: dict[str, Any] = {"horizon": 80, "feedback": "full"} if env_id == LENDING else {"horizon": 7}
    small = {**SMALL, "n_steps": 80, "steps": 640} if env_id == LENDING else SMALL
    settings = long_term_settings(env_id, signals=signals, massaging_pace=1000, parameters=parameters, **small)
    model: Any = train_long_term(settings)
    assert np.isfinite(model.rollout_measures.short).any() and np.isfinite(model.rollout_measures.long).any()
    assert model.massaging_schedule(2) is not None and model.rollout_measures.altered.shape == (settings.n_steps, 4)


def test_the_massaging_schedule_of_the_whole_published_training_passes() -> None:
    usual: Any = make_long_term(long_term_settings(LENDING, **{**SMALL, "steps": 320}))  # in 10 rollouts
    assert [usual.massaging_schedule(k) is None for k in range(3)] == [True, False, False]  # 35 pass in each
    assert usual.massaging_schedule(9) == pytest.approx(0.5 * 0.985 ** (9 * 35 - 17))
    given: Any = make_long_term(long_term_settings(LENDING, massaging_pace=1, **{**SMALL, "steps": 320}))
    assert [given.massaging_schedule(k) for k in (9, 18)] == [None, 0.4925]


def test_one_parameter_of_the_environment_does_not_throw_away_the_presets_others() -> None:
    settings = long_term_settings(LENDING, preset="published", parameters={"horizon": 100})
    assert settings.parameters == {"profile": "authors", "feedback": "full", "horizon": 100}
    given = {"window": 100}
    full = {"horizon": 2000, "feedback": "full"}
    assert long_term_settings(LENDING, parameters=given).parameters == {**full, **given}
    assert long_term_settings(LENDING, parameters={"horizon": 100}).parameters == {**full, "horizon": 100}


def test_measures_of_hidden_labels_need_them() -> None:
    with pytest.raises(ValueError, match="feedback must be 'full' for the published code's signals, got 'none'"):
        long_term_settings(LENDING, signals="as_coded", parameters={"feedback": "none"})


@pytest.mark.parametrize("env_id", SIGNALS)
def test_corrected_weights_are_those_of_the_decision_not_of_what_came_after(env_id: str) -> None:
    n_steps = 80 if env_id == LENDING else 8  # a bank tells rates of ten people at least
    parameters = {"horizon": 100, "window": 7} if env_id == ATTENTION else {"horizon": 100}
    settings = {**SMALL, "n_steps": n_steps, "massaging": "corrected", "parameters": parameters}
    model: Any = make_long_term(long_term_settings(env_id, **settings))
    seen: list[tuple[Any, ...]] = []
    inner = model.massager

    class Spy:
        alters_one_entry = getattr(inner, "alters_one_entry", False)

        def __call__(self, observation: Any, action: Any, policy: Any, short: Any, *, threshold: float) -> Any:
            seen.append((observation.copy(), short.value.copy(), policy))
            return inner(observation, action, policy, short, threshold=threshold)

    model.massager, model.massaging_schedule = Spy(), 0.4
    model.learn(4 * n_steps)
    count = {LENDING: 2, ATTENTION: 1 + 6 * 4, EPIDEMIC: 35}[env_id]  # actions that may have become the executed one
    steps = [seen[k : k + count + 1] for k in range(0, len(seen), count + 1)]
    assert len(steps) == n_steps
    for calls in steps:
        for observation, value, policy in calls:
            assert np.array_equal(observation, calls[0][0]) and policy is calls[0][2]
            assert np.array_equal(value, calls[0][1], equal_nan=True)
    assert model.rollout_measures.weight.max() <= 1.05 and model.rollout_measures.weight.min() < 1


def test_the_signals_of_the_record_are_those_of_the_task() -> None:
    """A bank has the repayment probabilities in addition, which other methods do not use."""
    assert task_for(LENDING, "record") == task_of(LENDING) != task_for(LENDING, "sound")
    assert task_for(EPIDEMIC, "record") == task_for(EPIDEMIC, "sound")


def test_unknown_signals_are_refused() -> None:
    with pytest.raises(ValueError, match="signals must be one of sound, record, as_coded, got 'known'"):
        long_term_settings(EPIDEMIC, signals="known")


def test_the_published_settings_are_those_of_the_published_code() -> None:
    lending, attention, epidemic = (long_term_settings(env_id, preset="published") for env_id in SIGNALS)
    assert [s.steps for s in (lending, attention, epidemic)] == [700_000, 2_000_000, 500_000]
    assert [s.n_steps for s in (lending, attention, epidemic)] == [2000, 2048, 2048]
    assert [s.delta for s in (lending, attention, epidemic)] == [0.005, 0.1, 0.05]
    assert [(s.weight, s.bonus_weight) for s in (lending, attention, epidemic)] == [
        (1.12, 1),
        (0.15, 0.15),
        (0.25, 0.25),
    ]
    assert [(s.trunk, s.pi, s.vf) for s in (lending, attention, epidemic)] == [
        ((256, 256), (256, 128), (256, 128)),
        ((128, 128), (128, 64), (128, 64)),
        ((512, 512), (512, 256), (512, 256)),
    ]
    weights = [long_term_settings(env_id, preset="published", algorithm="a-ppo") for env_id in SIGNALS]
    assert [(s.value_weight, s.decrease_weight) for s in weights] == [(0.25, 0.25), (0.15, 0.15), (0.1, 0.1)]
    assert [s.delta for s in weights] == [0.005, 0.05, 0.05]
    for settings in (lending, attention, epidemic, *weights):
        assert (settings.scaling, settings.signals, settings.learning_rate) == ("as_coded", "as_coded", 1e-5)
        assert (settings.batch_size, settings.n_epochs, settings.lanes, settings.gamma) == (64, 10, 1, 0.99)


def test_the_thresholds_pass_in_the_rollouts_of_the_published_training() -> None:
    kinds = (DecisionMassager, AttentionMassager, EpidemicMassager)
    assert [kind.schedule.rollouts for kind in kinds] == [350, 977, 245]


def test_the_books_of_a_bank_hold_the_true_distance_of_the_scores() -> None:
    env = rows(LENDING, horizon=60)
    books, chance = ScoreDistance(env, 5), np.random.default_rng(0)
    assert books.value == pytest.approx(1.0)
    for _ in range(100):
        env.step(chance.integers(0, 2, 5))
        over = env.lanes.records["time"] == 0
        books.update(columns(env.fair_spec, env.interactions, None))
        books.restart(over)
        true = env.oracle()["distribution"]
        assert books.value == pytest.approx(wasserstein(true[:, 0], true[:, 1]), abs=1e-12)
        assert books.distributions == pytest.approx(true, abs=1e-12)
    assert (books.value != 1).any() and not over.any()


def turned(massager: LendingMassager, env: LanesVecEnv) -> Any:
    """Return which rejections are turned around where all are unsure and one group is ahead."""
    short: Any = task_for(LENDING).measure("short", env.lanes.rules, env.num_envs)
    short.counts[:, 0], short.counts[:, 1] = (10.0, 40.0), (20.0, 20.0)
    even = PolicyOutput(probabilities=np.full((env.num_envs, 2), 0.5))
    seen = env.lanes.show().observation[:, 0]
    return massager(seen, np.zeros(env.num_envs, np.int64), even, short, threshold=0.2)


def test_massaging_is_blind_to_hidden_labels_and_the_published_codes_is_not() -> None:
    env = rows(LENDING, lanes=50)
    label = env.lanes.records["repays"].copy()
    sound, coded = LendingMassager(env), published_lending_massager(env)
    before = turned(sound, env), turned(coded, env)
    env.lanes.records["repays"] = 1 - label
    after = turned(sound, env), turned(coded, env)
    assert (before[0] == after[0]).all() and before[0].any() and not before[0].all()
    assert (before[1] != after[1]).any()


def test_the_published_code_turns_around_decisions_that_make_no_difference() -> None:
    env = rows(LENDING, lanes=50)
    env.lanes.records["repays"] = 0  # neither decision changes a true positive rate
    assert turned(published_lending_massager(env), env).all()
    known = LendingMassager(env, label="known", known=lambda: env.oracle()["feedback"][:, 0])
    assert not turned(known, env).any()


def test_ungated_what_counts_is_the_change_whatever_the_short_term_disparity() -> None:
    model: Any = make_long_term(long_term_settings(LENDING, gated=False, **SMALL))
    assert isinstance(model, FPPO) and not model.gated
    change = th.tensor([0.3, -0.2, 0.1, -0.1])
    terms = model.terms(Changes(th.tensor([0.2, 0.04, 0.02, 0.1]), th.zeros(4), change))
    assert th.allclose(terms.sum(dim=-1), -change)
