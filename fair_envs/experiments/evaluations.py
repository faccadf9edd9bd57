"""Evaluations as cells: one policy in one environment each, computed once for equal inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import load_env_creator

from fair_envs.assessment import Evaluation, evaluate
from fair_envs.assessment.measured import measured
from fair_envs.assessment.played import System, exactly, system_of
from fair_envs.assessment.policies import is_run, parameters_of_run
from fair_envs.assessment.result import read
from fair_envs.experiments.jobs import Job
from fair_envs.experiments.players import contents
from fair_envs.experiments.systems import full_name, plain
from fair_envs.support.imports import code_hash
from fair_envs.tasks import Task, environment_id, task_of


@dataclass(frozen=True, kw_only=True)
class EvaluationCell(Job):
    """The evaluation of a policy.

    Attributes:
        env_id: The environment.
        parameters: All parameters of the environment that are not defaults.
        task: Id of the environment whose task is used.
        measured: The names of the task's measures, rate and groups, see
            `fair_envs.assessment.measured.measured`.
        code: Hash of the code outside this package that defines the environment and its task, see `own_code`.
        policy: See `fair_envs.assessment.policies.policy_named`.
        contents: Hash of the policy's code or files outside this package, see `fair_envs.experiments.players.contents`.
        name: Name of the policy for tables.
        seed: Seed of the first episode.
        episodes: Number of episodes.
        shuffles: Number of shuffles for noise floors.
        level: Coverage of the intervals, in (0, 1).
        deterministic: Whether a Stable-Baselines3 model takes its most likely actions.
    """

    env_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    task: str
    measured: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    policy: str
    contents: str = ""
    name: str
    seed: int
    episodes: int
    shuffles: int = 100
    level: float = 0.95
    deterministic: bool = False

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the evaluation."""
        found = evaluate(
            exactly(self.env_id, self.parameters),
            self.policy,
            task=task_of(self.task),
            episodes=self.episodes,
            seed=self.seed,
            shuffles=self.shuffles,
            level=self.level,
            name=self.name,
            deterministic=self.deterministic,
        )
        about = {**found.about, "parameters": dict(self.parameters)}
        replace(found, env_id=self.env_id, about=about).save(part)
        return {}


def read_evaluation(folder: Path) -> Evaluation:
    """Return the evaluation in a cell's folder."""
    (found,) = read(folder / "evaluation.json")
    return found


def evaluation_cell(
    env_id: str, policy: str, parameters: Mapping[str, Any], *, task: str, name: str = "", **numbers: Any
) -> EvaluationCell:
    """Return the cell of a policy; ``numbers`` are the seed, the episodes, the shuffles and the level.

    Raises:
        ValueError: The environment or the policy is unknown, or the record does not contain what the task needs.
    """
    env_id, task = environment_id(env_id), environment_id(task)
    system = system_of(exactly(env_id, parameters), task=task_of(task))
    return EvaluationCell(
        env_id=env_id,
        parameters=plain(parameters),
        task=task,
        measured=measured(system),
        code=own_code(system),
        policy=full_name(policy),
        contents=contents(policy),
        name=name or policy,
        **numbers,
    )


def own_code(system: System) -> str:
    """Return a hash of the files outside this package that define an environment and its task; empty without any.

    These are the files of the environment's classes and entry point, of the task's functions, and of its measures.
    Other files that they import are not included.
    """
    task, rules = system.task, system.seen
    parts: list[Any] = [system.rules, task.short, task.long, task.rate, task.rate_of(rules).parts]
    parts += [task.measure(name, rules, 1) for name in ("short", "long")]
    if system.env is not None:
        wrapped = system.env
        while wrapped is not None:
            parts.append(wrapped)
            wrapped = getattr(wrapped, "env", None)
        entry = getattr(system.env.spec, "entry_point", None)
        parts.append(load_env_creator(entry) if isinstance(entry, str) else entry)
    return code_hash(*parts)


def parameters_for(env_id: str, task: Task, policies: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the environment in which policies are evaluated side by side.

    Args:
        env_id: The environment.
        task: The task, whose parameters are the defaults unless a policy is a run: then they are those of its training.
        policies: The policies; the first run among them decides.
        given: Parameters that override them.
    """
    name = environment_id(env_id)
    runs = (parameters_of_run(Path(policy), name) for policy in policies if is_run(policy))
    trained = next((found for found in runs if found is not None), None)
    if trained is None and task.env_id == name:
        return task.merged(given)
    return {**(trained or {}), **given}
