"""Benchmark of this package's learners against those of other libraries on the same task.

It compares this package's PCN with morl-baselines' PCN, F-PPO with Stable-Baselines3's PPO, and a team's DDPG with
one Stable-Baselines3 DDPG for each agent.
"""

import importlib
import io
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.pcn.coverage import cover
from fair_envs.baselines.pcn.pcn import PCN, PCNSettings
from fair_envs.baselines.ppo.massaging import massager_maker
from fair_envs.baselines.ppo.regularised import FPPO
from fair_envs.baselines.tasks import task_for
from fair_envs.baselines.team.ddpg import ACTOR, CRITIC, DDPG
from fair_envs.metrics.pareto import hypervolume
from fair_envs.registration import make_rules, make_sb3
from fair_envs.support.extras import missing

try:
    import stable_baselines3 as sb3
    import torch as th
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.logger import Logger
except ModuleNotFoundError as error:
    raise missing("fair_envs.benchmark.peers", "Stable-Baselines3", extra="baselines") from error

TREASURE = "deep-sea-treasure-v0"  # of MO-Gymnasium
STEPS = 20_000
CORNER = (0.0, -200.0)  # reference point of hypervolumes
MOST = np.array([124, -1], np.float32)  # largest returns, as in the paper


PLAIN: Any = sb3.PPO
UNSURE = 0.1  # threshold of massaging
KEPT = 300_000  # transitions in a replay buffer


def fair_and_plain(env_id: str, *, lanes: int, n_steps: int) -> tuple[Any, Any]:
    """Return F-PPO, with massaging from the first rollout on, and Stable-Baselines3's PPO with the same settings.

    Args:
        env_id: An environment whose task has a massager.
        lanes: Rows of the environment.
        n_steps: Steps of each lane in a rollout.
    """
    settings: dict[str, Any] = {"n_steps": n_steps, "batch_size": 64, "device": "cpu", "seed": 0}
    played, plain = (make_sb3(env_id, n_envs=lanes, rows="lanes") for _ in range(2))
    task, rules = task_for(env_id), make_rules(env_id)
    make = massager_maker(task, rules)
    assert make is not None
    fair = FPPO(
        "MlpPolicy",
        played,
        short=task.factory("short", rules),
        long=task.factory("long", rules),
        massager=make(played),
        massaging_schedule=UNSURE,
        **settings,
    )
    return fair, sb3.PPO("MlpPolicy", plain, **settings)


def together_and_separate(*, lanes: int, batch_size: int) -> tuple[DDPG, list[sb3.DDPG]]:
    """Return the DDPG of a FairPursuit team and a Stable-Baselines3 DDPG for each agent, ready to update.

    The networks are the paper's and the replay buffers are full. The buffers of the separate learners contain the
    transitions of all agents, which does not affect the time of an update.

    Args:
        lanes: Lanes of the environment.
        batch_size: Transitions for each agent in an update.
    """
    env = make_sb3("FairPursuit-v0", n_envs=lanes)
    settings: dict[str, Any] = {"batch_size": batch_size, "device": "cpu", "seed": 0}
    together = DDPG("MlpPolicy", env, buffer_size=KEPT, **settings)
    arch = {"pi": list(ACTOR), "qf": list(CRITIC)}
    separate = [
        sb3.DDPG("MlpPolicy", env, buffer_size=KEPT, policy_kwargs={"net_arch": arch}, **settings)
        for _ in range(together.agents)
    ]
    for model in (together, *separate):
        fill(model.replay_buffer)  # type: ignore[arg-type]
        model.set_logger(Logger(None, []))
    return together, separate


def fill(replay: ReplayBuffer) -> None:
    """Fill a replay buffer with random transitions of episodes that do not end."""
    rng = np.random.default_rng(0)
    for name in ("observations", "next_observations", "actions", "rewards"):
        values = getattr(replay, name)
        values[:] = rng.uniform(-1, 1, values.shape)
    replay.full = True


class Found(NamedTuple):
    """Cost and result of a learner."""

    seconds: float
    whole: bool  # whether the achieved front is the known front


def ready() -> None:
    """Load the libraries, and run one-off work that is not part of the measured time.

    Raises:
        ImportError: MO-Gymnasium or morl-baselines is missing.
    """
    importlib.import_module("morl_baselines")
    warnings.simplefilter("ignore")  # of the other libraries
    own(1000, seed=0)


def treasures(lanes: int) -> Any:
    """Return a vector environment of deep-sea-treasure."""
    mo_gymnasium: Any = importlib.import_module("mo_gymnasium")
    vector: Any = importlib.import_module("mo_gymnasium.wrappers.vector")
    return vector.MOSyncVectorEnv([lambda: mo_gymnasium.make(TREASURE, float_state=True)] * lanes)


def own(steps: int, *, seed: int) -> Found:
    """Train this package's learner on deep-sea-treasure and evaluate its coverage set."""
    settings = PCNSettings()
    env = treasures(settings.episodes)
    begin = time.perf_counter()
    found = cover(PCN(env, settings=settings, seed=seed).learn(steps), episodes=1)
    return Found(time.perf_counter() - begin, whole(found.achieved, env.envs[0].unwrapped))


def other(steps: int, *, seed: int) -> Found:
    """Train morl-baselines' learner with as many episodes and updates; it evaluates its coverage set in training."""
    learner: Any = importlib.import_module("morl_baselines.multi_policy.pcn.pcn").PCN
    env, test = treasures(2).envs
    np.random.seed(seed)
    th.manual_seed(seed)
    env.action_space.seed(seed)
    model = learner(env, scaling_factor=np.array([0.1, 0.1, 0.01]), gamma=1.0, log=False, seed=seed)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, inside(folder), redirect_stdout(io.StringIO()):
        # It prints, and writes weights to the working folder.
        model.train(steps, test, np.array(CORNER), num_er_episodes=50, max_buffer_size=200, max_return=MOST)
    seconds = time.perf_counter() - begin
    returns, _, _ = model.evaluate(test, MOST, n=200)
    return Found(seconds, whole(np.array(returns), env.unwrapped))


def whole(returns: NDArray[Any], world: Any) -> bool:
    """Return whether returns dominate as much volume as the known front."""
    known = hypervolume(np.array(world.pareto_front(1.0)), reference=CORNER)
    return bool(hypervolume(returns, reference=CORNER) > known - 1e-3)


@contextmanager
def inside(folder: str) -> Iterator[None]:
    """Change the working folder, as a context."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def variant(env_id: str, name: str) -> Any:
    """Return a learner on the environment of a task with 8 lanes.

    Args:
        env_id: Id of the environment.
        name: A method of the PPO family, or ``"following"``: PPO that follows the task's measures.
    """
    from fair_envs.baselines import methods
    from fair_envs.baselines.ppo.objective_training import ObjectiveTraining, make_objective
    from fair_envs.baselines.ppo.regularised import Regularised
    from fair_envs.baselines.training import make_model, measure_of
    from fair_envs.tasks import rules_for

    method = "ppo" if name == "following" else name
    settings = methods.named(method).configured({"env_id": env_id, "algorithm": method, "lanes": 8})
    if isinstance(settings, ObjectiveTraining):
        return make_objective(settings)
    model = make_model(settings)
    if name != "following":
        return model
    rules = rules_for(env_id, **settings.parameters)
    both: dict[str, Any] = {which: measure_of(settings, which, rules) for which in ("short", "long")}
    kwargs = {**settings.of_learner(), "policy_kwargs": {"net_arch": list(settings.net_arch)}}
    return Regularised(model.policy_class, model.env, **both, **kwargs)
