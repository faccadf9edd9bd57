"""The command ``warm``."""

import importlib.util
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import ID_HELP, ShowProgress, imported_id
from fair_envs.registration import TABLE, find, make_sb3
from fair_envs.support.progress import progress_bar


@app.command()
def warm(
    env_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help=f"{ID_HELP} Default: all.")] = None,
    progress: ShowProgress = True,
) -> None:
    """Compile environments now, so that the first program that uses them starts at once.

    Code is compiled for the default parameters on every interface, for the measures of the task, for histories of
    decisions with group notions, and, where Stable-Baselines3 is installed, for PPO. Other parameters are compiled at
    their first use only if they change the size of an episode's record.
    """
    from fair_envs.core.compilation import cache_folder, do_not_announce

    names = [imported_id(env_id) for env_id in env_ids or TABLE]
    do_not_announce()
    begun = time.perf_counter()
    with progress_bar("compiling", total=5 * len(names), shown=progress) as advance:
        for name in names:
            for _ in each_interface(name):
                advance()
    took = time.perf_counter() - begun
    typer.echo(
        f"{len(names)} environment{'s' * (len(names) > 1)} ready after {took:.1f} s; the code is in {cache_folder()}"
    )


def each_interface(env_id: str) -> Iterator[None]:
    """Use an environment on each interface, and its task's measures; yield after each."""
    one: Any = gym.make(env_id)
    one.reset(seed=0)
    one.step(one.action_space.sample())
    yield
    several: Any = gym.make_vec(env_id, num_envs=2)
    several.reset(seed=0)
    several.step(several.action_space.sample())
    yield
    if several.unwrapped.lanes.rules.multi_agent:
        together = importlib.import_module(find(env_id).module).parallel_env()
        together.reset(seed=0)
        together.step({agent: together.action_space(agent).sample() for agent in together.agents})
    yield
    use_measures(env_id)
    with suppress(ValueError):  # not every environment reports what a group notion needs
        use_history(env_id)
    yield
    if importlib.util.find_spec("stable_baselines3") and importlib.util.find_spec("torch"):
        learn_briefly(env_id)
    yield


def learn_briefly(env_id: str) -> None:
    """Take a gradient step with PPO."""
    from fair_envs.baselines import PPO

    env = make_sb3(env_id, n_envs=2)
    PPO("MlpPolicy", env, n_steps=4, batch_size=4 * env.num_envs, n_epochs=1, device="cpu").learn(1)


def use_history(env_id: str) -> None:
    """Play a step with a group notion on a history of decisions as part of the reward."""
    from fair_envs.metrics import SlidingWindow
    from fair_envs.wrappers import FairnessObjectives

    one: Any = gym.make(env_id)
    attribute = next(iter(one.unwrapped.fair_spec.sensitive), None)
    env: Any = FairnessObjectives(one, ("SP",), SlidingWindow(100), groups=attribute)
    env.reset(seed=0)
    env.step(env.action_space.sample())


def use_measures(env_id: str) -> None:
    """Let the measures of an environment's task follow a step."""
    from fair_envs.tasks import task_of

    task = task_of(env_id)
    env: Any = gym.make_vec(env_id, num_envs=2, **task.parameters)
    env.reset(seed=0)
    *_, info = env.step(env.action_space.sample())
    rules = env.unwrapped.lanes.rules
    reward = np.zeros((2, rules.agents(rules.params)))
    for name in ("short", "long"):
        measure = task.measure(name, rules, 2)
        if not measure.needs_action_probs:
            measure.update(info, reward, ended=np.zeros(2, bool))
