"""What a task measures, in words."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from fair_envs.assessment.played import System
from fair_envs.metrics.followed import WINDOW
from fair_envs.metrics.rates import RATES, Rate
from fair_envs.tasks import Task


def task_facts(task: Task, rules: Any, parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a task is about, in words."""
    if task.summary:
        yield "aim", task.summary
    if task.caution:
        yield "caution", task.caution
    yield from measured(task, rules)
    yield "parameters", ", ".join(f"{name}={value}" for name, value in parameters.items()) or "the defaults"
    yield "training steps", f"{task.steps:,}"


def measured(task: Task, rules: Any) -> Iterator[tuple[str, str]]:
    """Yield what a task measures: the performance, two measures, and the rate of the groups."""
    performances = {"reward": "mean reward per step", "success": "share of successful episodes"}
    yield "performance", performances[task.performance]
    yield "short-term measure (short)", measure_text(task.short)
    yield "long-term measure (long)", measure_text(task.long)
    seen = System(env_id=task.env_id, rules=rules, task=task).seen  # with the labels that evaluations know
    try:
        rate = task.rate_of(seen)
        yield "rate of the groups (rate)", f"{rate.name}: {rate.benefit}, divided by {rate.demand}"
        yield "groups", ", ".join(task.rate_measure(seen, 1).group_names)
    except ValueError as error:  # with these parameters
        yield "rate of the groups (rate)", f"not with these parameters: {error}"


def measure_text(given: Any) -> str:
    """Return what a task's measure is, in words."""
    if given is None:
        return "gap of the rate since the start of the episode"
    if isinstance(given, Rate):
        return f"gap of {given.name} over the last {WINDOW} steps of the episode"
    if isinstance(given, str):
        rate = RATES.get(given)
        what = f"{given}: gap of {rate.name}" if rate else given
        return f"{what} over the last {WINDOW} steps of the episode"
    said = first_sentence(given).removeprefix("Return ").rstrip(".")
    return said or getattr(given, "__name__", repr(given))


def first_sentence(thing: Any) -> str:
    """Return the first line of a docstring; empty without one."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]
