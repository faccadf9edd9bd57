"""Pareto and Lorenz Conditioned Networks with objectives of tasks, and on an environment that only Gymnasium knows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from matplotlib.figure import Figure

pytest.importorskip("moocore")

from fair_envs import TABLE
from fair_envs.assessment.played import SingleWorld
from fair_envs.baselines.methods import method_for, supported
from fair_envs.baselines.pcn import coverage
from fair_envs.baselines.pcn.objectives import RewardVectors, objective_name
from fair_envs.baselines.pcn.training import PCNTraining, make_env, preset_values, recommended_values
from fair_envs.evaluation import LanesWorld, begun, rollout
from fair_envs.evaluation.policy import RandomPolicy
from fair_envs.tasks import TASKS, rules_for, task_of
from tests.baselines.test_every_environment import make_office
from tests.baselines.test_pcn import weights
from tests.baselines.test_pcn_training import Stop
from tests.test_cli import mistake

pytestmark = pytest.mark.usefixtures("empty_folder")

OWN = "Office-v0"
ENVIRONMENTS = ("FairLending-v0", "FairAttention-v0", "FairCollege-v0")
SMALL: dict[str, Any] = {
    "lanes": 2,
    "steps": 100,
    "first_episodes": 4,
    "episodes": 4,
    "updates": 2,
    "batch_size": 16,
    "test_episodes": 2,
}


@pytest.fixture(autouse=True)
def blank_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing into the plots of a run, which take longer than its training."""
    for name in ("pareto_plot", "parallel_plot"):
        monkeypatch.setattr(coverage, name, lambda found: Figure())


@pytest.fixture
def own() -> Iterator[str]:
    """Yield the id of an environment that only Gymnasium knows."""
    gym.register(OWN, make_office)
    yield OWN
    del gym.registry[OWN]


def configured(name: str, env_id: str, *objectives: str, **given: Any) -> Any:
    """Return the recommended settings of a small training in short episodes."""
    parameters = {"horizon": 8} if env_id in TABLE else {}
    wanted = {"env_id": env_id, "algorithm": name, "parameters": parameters, **SMALL, **given}
    if objectives:
        wanted["objectives"] = objectives
    return method_for(name, env_id, wanted).configured(wanted)


def resumed_as_whole(settings: Any, folder: Path) -> Any:
    """Return the model of a training that was interrupted, which must equal that of an uninterrupted one."""
    method = method_for(settings.algorithm, settings.env_id)
    with pytest.raises(KeyboardInterrupt):
        method.train(settings, out=folder, callback=Stop(50))
    model = method.train(settings, out=folder, resume=True)
    assert np.array_equal(weights(model), weights(method.train(settings)))
    assert all(th.isfinite(own).all() for own in model.network.parameters())
    return model


# ------------------------------------------------------------------------------------------------------- trainings


@pytest.mark.parametrize("objectives", ["measures", "groups"])
@pytest.mark.parametrize("env_id", ENVIRONMENTS)
@pytest.mark.parametrize("name", ["pcn", "lcn"])
def test_objectives_of_a_task_train_resume_and_play(name: str, env_id: str, objectives: str, tmp_path: Path) -> None:
    settings = configured(name, env_id, objectives)
    model = resumed_as_whole(settings, tmp_path / "run")
    assert model.objectives == len(settings.names) == len(model.commands()[0].desired_return)
    method, rules = method_for(name, env_id), rules_for(env_id, **settings.parameters)
    assert method.policy is not None
    world: Any = LanesWorld(begun(rules, np.arange(2, dtype=np.uint64)))  # type: ignore[arg-type]
    assert len(list(rollout(world, method.policy(model, settings, rules)))) == 8


@pytest.mark.parametrize("env_id", TASKS)
def test_the_measures_of_every_task_are_objectives(env_id: str) -> None:
    settings = PCNTraining(
        env_id=env_id, parameters=task_of(env_id).merged({"horizon": 8}), objectives=("measures",), lanes=2
    )
    env = make_env(settings)
    assert settings.names == ("performance", "short", "long") and settings.requested == [0, 1, 2]
    env.reset(seed=0)
    for _ in range(4):
        _, reward, *_ = env.step(env.action_space.sample())
        assert reward.shape == (2, 3) and (reward[:, 1:] <= 0).all()


def test_returns_of_a_decision_makers_groups_are_their_rates() -> None:
    settings = configured("lcn", "FairLending-v0", parameters={"horizon": 40})
    env = make_env(settings)
    assert (settings.objectives, settings.names) == (("groups",), ("advantaged", "disadvantaged"))
    env.reset(seed=0)
    for _ in range(2):  # episodes
        total, benefits, demands = (np.zeros((2, 2)) for _ in range(3))
        for step in range(40):
            _, reward, _, _, info = env.step(np.full(2, step % 3 > 0, np.int64))
            total += reward
            qualified = info["fair_feedback"] == 1
            demands[np.arange(2), info["fair_group"]] += qualified
            benefits[np.arange(2), info["fair_group"]] += qualified & (info["fair_action"] == 1)
        np.testing.assert_allclose(total, benefits / demands, atol=1e-5)
        assert not np.array_equal(demands[:, 0], demands[:, 1])
        _, reward, *_ = env.step(np.ones(2, np.int64))  # the step that restarts the lanes
        assert not reward.any()


def test_given_groups_replace_those_of_the_task() -> None:
    assert configured("pcn", "FairHiring-v0", "groups", groups=("gender",)).names == ("man", "woman")
    assert len(configured("pcn", "FairHiring-v0", "groups").names) == 4


# -------------------------------------------------------------------------------------------------------- settings


def test_parameters_are_those_of_the_task_and_given_ones_override_them() -> None:
    own = configured("pcn", "FairLending-v0")
    assert own.parameters == {"horizon": 8, "feedback": "full"}
    given = {"env_id": "FairLending-v0"}
    assert preset_values("recommended", given) == {"parameters": dict(task_of("FairLending-v0").parameters)} | {
        "steps": task_of("FairLending-v0").steps
    }
    assert recommended_values("recommended", {"env_id": "FairHarvest-v0"}) == {
        "parameters": dict(task_of("FairHarvest-v0").parameters),
        "steps": 3000 * (50 + 40 * 10),
    }


@pytest.mark.parametrize(
    ("env_id", "objectives", "bounds"),
    [("FairLending-v0", "measures", (8, 0, 0)), ("FairCollege-v0", "groups", ())],
)
def test_the_preset_of_the_study_bounds_objectives_of_tasks(env_id: str, objectives: str, bounds: Any) -> None:
    given = {"env_id": env_id, "objectives": (objectives,), "parameters": {"horizon": 8}}
    own = PCNTraining(**{**given, **preset_values("farel", given)})
    assert (own.max_return, len(own.return_unit)) == (bounds, len(own.names))


def test_wrong_objectives_are_named_with_the_choices() -> None:
    with pytest.raises(ValueError, match="objectives must be one of performance, groups, measures, demographic_par"):
        objective_name("objectives", "mesures_of")
    with pytest.raises(ValueError, match=r"objectives must not have others besides measures, got \['measures', 'perf"):
        configured("pcn", "FairLending-v0", "measures", "R")
    with pytest.raises(ValueError, match="groups must be left out with measures"):
        configured("pcn", "FairHiring-v0", "measures", groups=("gender",))
    assert "objectives must be one of performance, groups, measures, " in mistake(
        "train", "pcn", "FairLending-v0", "--objectives", "R,nonsense"
    )


def test_only_actions_that_cannot_be_listed_are_refused() -> None:
    box = "needs actions that can be listed; its action space is a Box with 2 entries instead of one"
    reasons = {method.name: reason for method, reason in supported()}
    for name in ("pcn", "lcn"):
        assert {env_id: why for env_id, why in reasons[name].items() if why} == {"FairPursuit-v0": box}


# ------------------------------------------------------------------------------------------- a user's own environment


@pytest.mark.parametrize(
    ("name", "objectives"), [("pcn", ()), ("pcn", ("measures",)), ("pcn", ("R", "SP")), ("lcn", ())]
)
def test_an_environment_that_only_gymnasium_knows_trains_resumes_and_plays(
    name: str, objectives: Any, own: str, tmp_path: Path
) -> None:
    settings = configured(name, own, *objectives)
    model, method = resumed_as_whole(settings, tmp_path / "run"), method_for(name, own)
    assert method.policy is not None
    world = SingleWorld(gym.make(own), 3, success=False)
    assert len(list(rollout(world, method.policy(model, settings, rules_for(own))))) == 5


@pytest.mark.parametrize("objectives", ["SP", "measures", "groups"])
def test_a_policy_sees_the_rewards_of_the_wrappers_in_an_environment_of_the_users_own(
    objectives: str, own: str
) -> None:
    env = make_env(configured("pcn", own, objectives, lanes=1))
    world, vectors = SingleWorld(gym.make(own), 3, success=False), RewardVectors(env)
    env.reset(seed=3)
    vectors.start(world)
    vectors.begin(np.ones(1, bool))
    for step in rollout(world, RandomPolicy(rules_for(own))):
        _, reward, *_ = env.step(np.asarray(step.action)[0])
        np.testing.assert_array_equal(vectors(step), reward)


def test_a_preset_that_needs_a_horizon_is_refused_without_one(own: str) -> None:
    with pytest.raises(ValueError, match=f"preset must be 'recommended' for {own}, which has no known horizon"):
        preset_values("farel", {"env_id": own})
