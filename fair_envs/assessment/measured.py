"""What a task measures, by name: for the keys of stored evaluations, and to recognise the task of a training."""

from collections.abc import Mapping
from typing import Any

from fair_envs.assessment.evaluation import Plan
from fair_envs.assessment.played import System
from fair_envs.assessment.result import Evaluation


def measured(system: System) -> dict[str, Any]:
    """Return what a task measures: the names of the short-term and the long-term measure, the rate, and the groups.

    Raises:
        ValueError: The record does not contain what the task needs.
    """
    plan = Plan(system, lanes=1, shuffles=0, level=0.95, seed=0)
    names = {f"{name}-term": measure.name or type(measure).__name__ for name, measure in plan.measures.items()}
    return {**names, "rate": plan.rate.name, "groups": list(plan.recorder.group_names)}


def measured_in(evaluation: Evaluation) -> dict[str, Any]:
    """Return what an evaluation measured, as `measured`; empty names for what it lacks."""
    names = {row.section: row.name for row in evaluation.rows}
    measures = {name: names.get(name, "") for name in ("short-term", "long-term")}
    return {**measures, "rate": evaluation.rate, "groups": list(evaluation.groups)}


def in_words(found: Mapping[str, Any]) -> str:
    """Return what `measured` returned in words, for messages."""
    measures = f"short-term {found.get('short-term')}, long-term {found.get('long-term')}"
    return f"{found.get('rate')} of {', '.join(found.get('groups', ()))}; {measures}"
