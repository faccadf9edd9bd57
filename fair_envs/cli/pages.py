"""The output of `fair-envs list` and `fair-envs show`: a table of all environments, and a page for each."""

import ast
import importlib
import inspect
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from fair_envs.assessment.facts import first_sentence, task_facts
from fair_envs.core import Rules, variant_named
from fair_envs.faces.common import joint_space
from fair_envs.metrics.notions import OneOf
from fair_envs.registration import TABLE, find
from fair_envs.support.imports import imported
from fair_envs.tasks import Task, parameters_of, rules_for, task_of

LISTED = 40  # entries of an observation


def rules_class(env_id: str, *, variant: str | None = None) -> type[Rules]:
    """Return the rules of an environment, or of a variant of it.

    Raises:
        ValueError: The id or variant is unknown.
    """
    rules: type[Rules] = importlib.import_module(find(env_id).module).Env.rules
    return variant_named(rules, variant)


# ------------------------------------------------------------------------------------------------- the list


def environments_table() -> Table:
    """Return a table of all environments: who decides, the number of agents, and the variants."""
    table = Table("id", "summary", "kind", "agents", "variants", box=None, pad_edge=False)
    for env_id, entry in sorted(TABLE.items()):
        rules = rules_class(env_id)()
        variants = ", ".join(rules.variants) or "-"
        table.add_row(env_id, entry.summary, kind_of(rules), str(rules.agents(rules.params)), variants)
    return table


def kind_of(rules: Rules) -> str:
    """Return who is affected: the agents themselves, or the people about whom a decision-maker decides."""
    return "the agents are affected" if rules.multi_agent else "a decision-maker decides about others"


# -------------------------------------------------------------------------------------------------- the page


def environment_page(env_id: str, *, variant: str | None = None) -> RenderableType:
    """Return an environment's page: the docstring of its rules, its parameters, description, spaces and task."""
    rules = rules_class(env_id, variant=variant)()
    title = env_id if variant is None else f"{env_id}, variant {variant}"
    sources = inspect.getdoc(sys.modules[rules.Params.__module__]) or ""
    sections: dict[str, tuple[RenderableType, ...]] = {
        "Parameters": (Markdown(sources), "", parameters_table(rules.Params)),
        "Who is affected (fair_spec)": (facts_table(rules),),
        "Spaces": (spaces_table(rules),),
    }
    sections |= task_sections(task_of(env_id), {} if variant is None else {"variant": variant})
    if rules.presets:
        sections["Presets of the parameter profile"] = (presets_table(rules),)
    return page(title, inspect.getdoc(type(rules)) or "", sections)


def own_page(env_id: str) -> RenderableType:
    """Return the page of an environment that is registered only with Gymnasium.

    Raises:
        ValueError: It has no record.
    """
    rules: Any = rules_for(env_id)
    parameters = Table("name", "default", box=None, pad_edge=False)
    for name, value in (parameters_of(env_id) or {}).items():
        parameters.add_row(name, Text(repr(value)))
    sections: dict[str, tuple[RenderableType, ...]] = {
        "Parameters": (parameters,) if parameters.rows else ("unknown: it takes any keyword arguments",),
        "Who is affected (fair_spec)": (facts_table(rules),),
        "Spaces": (spaces_table(rules),),
        **task_sections(task_of(env_id), {}),
    }
    return page(env_id, f"{rules.name}, an environment that is registered with Gymnasium.", sections)


def page(title: str, text: str, sections: Mapping[str, tuple[RenderableType, ...]]) -> RenderableType:
    """Return a page: a title, a text in Markdown, and sections."""
    parts: list[RenderableType] = [Markdown(f"# {title}"), "", Markdown(text)]
    for heading, body in sections.items():
        parts += ["", Markdown(f"## {heading}"), "", *body]
    return Group(*parts)


# -------------------------------------------------------------------------------------------------- the task


def task_sections(task: Task, given: Mapping[str, Any]) -> dict[str, tuple[RenderableType, ...]]:
    """Return what is measured in an environment, and its scripted policies.

    Args:
        task: The task.
        given: Parameters that override those of the task.
    """
    rules = task.rules(**given)
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in task_facts(task, rules, task.merged(given)):
        table.add_row(name, Text(value))
    policies = Table("name", "in the task", "meaning", box=None, pad_edge=False)
    paths = {**{name: name for name in task.scripted if ":" in name}, **rules.policies}  # a variant may have none
    for name, path in sorted(paths.items(), key=lambda one: one[0] not in task.scripted):
        policies.add_row(name, "yes" if name in task.scripted else "-", Text(first_sentence(imported(path))))
    sections: dict[str, tuple[RenderableType, ...]] = {"Task (what is measured)": (table,)}
    if paths:
        sections["Scripted policies"] = (
            "The task's policies are those that `compare` and `evaluate --beside` play. A policy that reads the ground "
            "truth is a bound: no method has that information.",
            "",
            policies,
        )
    return sections


def parameters_table(params: type) -> Table:
    """Return each field of a class of parameters: default, allowed values, and the comment on its line."""
    fields, comments = get_type_hints(params, include_extras=True), field_comments(params)
    defaults: Mapping[str, Any] = getattr(params, "_field_defaults", None) or vars(params)
    table = Table("name", "default", "allowed values", "meaning and source", box=None, pad_edge=False)
    for name, kind in fields.items():
        table.add_row(name, Text(repr(defaults.get(name))), Text(spelled(kind)), Text(comments.get(name, "")))
    return table


def field_comments(params: type) -> dict[str, str]:
    """Return the comment beside each field in the source code; empty if there is no source."""
    try:
        source = inspect.getsource(params)
    except (OSError, TypeError):
        return {}
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    (kind,) = ast.parse(source).body
    fields = [node for node in getattr(kind, "body", []) if isinstance(node, ast.AnnAssign)]
    lines = {ast.unparse(node.target): range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in fields}
    found = {name: " ".join(comments[k] for k in own if k in comments) for name, own in lines.items()}
    return {name: text for name, text in found.items() if text}


SINGULAR = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
PLURAL = {bool: "true or false", int: "integers", float: "numbers", str: "texts"}


def spelled(kind: Any, *, words: Mapping[Any, str] = SINGULAR) -> str:
    """Return a description of a field's allowed values."""
    if get_origin(kind) is Sequence:
        return f"{spelled(get_args(kind)[0], words=PLURAL)}, separated by commas"
    if choices := choices_of(kind):
        return ", ".join(choices)
    if get_origin(kind) is Annotated:
        base, *marks = get_args(kind)
        return " ".join([spelled(base, words=words), *map(str, marks)])
    return words.get(kind) or str(kind).replace("typing.", "")


def choices_of(kind: Any) -> tuple[str, ...]:
    """Return the texts that a field allows; none: it allows more than a few."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if get_origin(kind) is not Annotated:
        return ()
    base, *marks = get_args(kind)
    return next((mark.names for mark in marks if isinstance(mark, OneOf)), choices_of(base))


def presets_table(rules: Rules) -> Table:
    """Return the values that each preset changes."""
    table = Table("profile", "changes", box=None, pad_edge=False)
    for name, changes in (rules.presets or {}).items():
        table.add_row(name, ", ".join(f"{field}={value}" for field, value in changes.items()) or "nothing")
    return table


def facts_table(rules: Rules) -> Table:
    """Return the static description of an environment with its default parameters."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in facts_of(rules):
        table.add_row(name, Text(value))
    return table


def facts_of(rules: Rules) -> Iterator[tuple[str, str]]:
    """Yield each entry of the static description as text."""
    spec = rules.spec
    yield "kind", kind_of(rules)
    yield "individuals per step", f"{spec.individuals}, {'the same' if spec.same_individuals else 'others'} each step"
    yield "decisions", str(spec.actions) if spec.actions else "continuous"
    for title, attributes in (("sensitive", spec.sensitive), ("legitimate", spec.legitimate)):
        yield title, "; ".join(f"{name}: {', '.join(codes)}" for name, codes in attributes.items()) or "-"
    yield "groups", ", ".join(spec.groups)
    yield "features", ", ".join(spec.features) or "-"
    yield "feedback", spec.feedback


def spaces_table(rules: Rules) -> Table:
    """Return the spaces of one agent and of all with the default parameters, and the number of agents."""
    table = Table(show_header=False, box=None, pad_edge=False)
    observation, action = rules.observation_space(rules.params), rules.action_space(rules.params)
    agents = rules.agents(rules.params)
    table.add_row("agents", str(agents))
    table.add_row("an agent observes", Text(_array(observation)))
    if entries := [f"{k} {name}" for k, name in enumerate(rules.observed_features(rules.params))]:
        listed = entries if len(entries) <= LISTED + 1 else [*entries[:LISTED], "...", entries[-1]]
        table.add_row("its entries", Text(", ".join(listed)))
    table.add_row("an agent acts", Text(str(action)))
    if getattr(type(rules), "action_masks", Rules.action_masks) is not Rules.action_masks:
        told = "some actions have no effect: see action_masks(), or info['action_mask'] with ReportActionMasks"
        table.add_row("masks", Text(told))
    if rules.multi_agent:
        joint = (_array(joint_space(space, agents, drop=False)) for space in (observation, action))
        told = "gymnasium.make observes {} and acts {}: the agents in order. Its reward is their mean; "
        table.add_row("all agents", Text(told.format(*joint) + "info['agent_reward'] has that of each."))
        table.add_row("one agent", Text('gymnasium.make(ID, control="focal") or focal-ID; others= plays the others.'))
    return table


def _array(space: Any) -> str:
    """Return a space by the shape of its arrays; others as they are."""
    return str(space) if space.shape is None else f"{type(space).__name__}{space.shape} of {space.dtype}"


__all__ = ["environment_page", "environments_table", "own_page", "parameters_table", "rules_class"]
