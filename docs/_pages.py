"""Writes the pages of the website that come from the code: environments and the API reference. Completes the others.

An extension of Sphinx. The pages are written to `environments/` and `api/` before every build.
"""

import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from _board import PAGE as BOARD
from _board import index, leaderboard
from rich.table import Table
from rich.text import Text
from sphinx.application import Sphinx

from fair_envs.cli.pages import facts_table, parameters_table, presets_table, rules_class, spaces_table, task_sections
from fair_envs.experiments import tables
from fair_envs.explorer import explore
from fair_envs.leaderboard.jobs import RANDOM, REWARD_ONLY
from fair_envs.leaderboard.page import TASK_CAPTION
from fair_envs.leaderboard.rows import COLUMNS
from fair_envs.leaderboard.rows import markdown as rows_as_table
from fair_envs.registration import TABLE
from fair_envs.tasks import task_of

DOCS = Path(__file__).parent
EXAMPLE = "explorer-example.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages when a build begins."""
    app.connect("builder-inited", lambda _: write_all())
    app.connect("source-read", complete)
    app.connect("autodoc-process-docstring", to_rst, priority=400)  # before Napoleon
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("build-finished", explorer_example)
    return {"parallel_read_safe": True}


def write_all() -> None:
    """Write all pages; files that did not change are left alone, so that the next build is fast."""
    write("environments/index.md", environments_index())
    for env_id in TABLE:
        write(f"environments/{env_id}.md", "\n\n".join(environment_page(env_id)))
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        write(f"{name.lower()}.md", linked((DOCS.parent / f"{name}.md").read_text().rstrip("\n"), "docs/"))
    write("citing.md", citing(yaml.safe_load((DOCS.parent / "CITATION.cff").read_text())))
    write("api/index.md", api_index())
    for part in PARTS:
        write(f"api/{part.page}.md", "\n\n".join(api_page(part)))


def write(name: str, text: str) -> None:
    """Write a page if it changed."""
    path = DOCS / name
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text + "\n":
        path.write_text(text + "\n")


# Files that are also read without the website -------------------------------------------------------------------------


def citing(about: Mapping[str, Any]) -> str:
    """Return the page that says how to cite the package, from ``CITATION.cff``."""
    authors = " and ".join(f"{{{author['name']}}}" for author in about["authors"])
    fields = {
        "author": authors,
        "title": f"{{{about['title']}}}",
        "version": about["version"],
        "note": about["license"],
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    entry = "\n".join(["@software{fair_envs,", *lines, "}"])
    papers = "\n".join(f"* {reference(paper)}" for paper in about["references"])
    return (
        f"# How to cite\n\n{about['message']} The pages of [environments](environments/index.md) and "
        f"[methods](methods.md) name the papers.\n\n```bibtex\n{entry}\n```\n\n## Reproduced papers\n\n{papers}"
    )


def reference(paper: Mapping[str, Any]) -> str:
    """Return an entry of the references in ``CITATION.cff`` as text."""
    names = [one.get("name") or f"{one['given-names']} {one['family-names']}" for one in paper["authors"]]
    return f"{', '.join(names)}: {paper['title']} ({paper['year']}), {paper['identifiers'][0]['value']}."


def linked(text: str, prefix: str) -> str:
    """Return a text of the repository's root, or of `docs`, with links to pages of the website."""
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        text = text.replace(f"](../{name}.md", f"]({name.lower()}.md").replace(f"]({name}.md", f"]({name.lower()}.md")
    return text.replace(f"]({prefix}", "](") if prefix else text


def complete(app: Sphinx, name: str, source: list[str]) -> None:
    """Give a page its title if it has none, links to pages of the website, and the pages of its folder as children.

    The leaderboard's page also gets the table that sorts.
    """
    path = DOCS / name
    text = linked(index(leaderboard()) if name == BOARD else source[0], "")
    if not text.startswith(("# ", "---\n")):
        text = f"# {path.parent.name}: {path.name}\n\n{text}"
    excluded = [DOCS / folder for folder in app.config.exclude_patterns]
    inside = [
        child
        for child in sorted(path.rglob("*.md") if path.is_dir() else ())
        if not any(child.is_relative_to(folder) for folder in excluded)
    ]
    if name == "explorer":
        text += f'\n\n<a href="{EXAMPLE}">Open an example</a>: two rules that decide about loans.'
    if inside and path.name != "index":
        listed = "\n".join(child.relative_to(path.parent).with_suffix("").as_posix() for child in inside)
        text += f"\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    source[0] = text


def explorer_example(app: Sphinx, error: Exception | None) -> None:
    """Write a page of the explorer beside the website's own pages."""
    path = Path(app.outdir) / EXAMPLE
    if error is None and not path.exists():
        rules, size = ["max-reward", "equal-opportunity"], {"episodes": 16, "steps": 60, "frames": 20}
        explore("FairLending-v0", rules, out=path, parameters={"horizon": 400}, **size)


# Environments ---------------------------------------------------------------------------------------------------------


def picture(env_id: str) -> str:
    """Return the film of an environment, or its picture, as a path from the folder of the pages."""
    name = TABLE[env_id].module.rpartition(".")[2]
    (found,) = (DOCS / "images").glob(f"{name}.*")
    return f"../images/{found.name}"


def environments_index() -> str:
    """Return the page with all environments: a card for each."""
    cards = "\n".join(
        f":::{{grid-item-card}} {env_id}\n:link: {env_id}\n:link-type: doc\n:img-top: {picture(env_id)}\n\n"
        f"{entry.summary}\n:::\n"
        for env_id, entry in TABLE.items()
    )
    listed = "\n".join(TABLE)
    return (
        "# Environments\n\nEach environment is one world in which decisions affect people. All of them have the same "
        "interfaces and the same record of who was affected.\n\n"
        f"::::{{grid}} 1 2 3 3\n:gutter: 3\n\n{cards}\n::::\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```"
    )


def environment_page(env_id: str) -> Iterator[str]:
    """Yield the parts of an environment's page."""
    rules, task = rules_class(env_id)(), task_of(env_id)
    summary, _, text = (inspect.getdoc(type(rules)) or "").partition("\n")
    yield f"# {env_id}"
    yield summary
    yield f"![An episode of {env_id}]({picture(env_id)})"
    yield card(facts_table(rules), spaces_table(rules), more=[("variants", ", ".join(rules.variants) or "-")])
    yield f'```python\nimport gymnasium as gym\n\nimport fair_envs\n\nenv = gym.make("{env_id}")\n```'
    yield text.strip()
    yield "## Parameters"
    yield inspect.getdoc(importlib.import_module(rules.Params.__module__)) or ""
    yield markdown(parameters_table(rules.Params))
    if rules.presets:
        yield "### Profiles"
        yield markdown(presets_table(rules))
    for title, parts in task_sections(task, {}).items():
        yield f"## {title}"
        for part in parts:
            if part:
                yield markdown(part) if isinstance(part, Table) else str(part)
    yield from scores(env_id)


def card(*parts: Table, more: Sequence[tuple[str, str]] = ()) -> str:
    """Return the facts of an environment as one table."""
    rows = [row for table in parts for row in rows_of(table)]
    return tables.markdown(["", ""], [*rows, *more])


def scores(env_id: str) -> Iterator[str]:
    """Yield the scores of rules and of reward-only PPO on an environment, from the leaderboard."""
    page = leaderboard()
    yield "## Scores"
    if env_id not in page.rows:
        stored, planned = page.coverage[env_id]
        yield (
            f"The [leaderboard](../leaderboard/index.md) has {stored:,} of {planned:,} rows of this task; scores "
            "follow when all are there."
        )
        return
    (board,) = [board for board in page.boards if board.env_id == env_id]
    yield (
        "Of the [leaderboard](../leaderboard/index.md), which also has the methods that mitigate: means over seeds "
        "with 95 % intervals."
    )
    named = (RANDOM, *board.rules, *board.bounds, REWARD_ONLY)
    columns = ("method", "performance", "gap", "noise floor", "worst off", "worst-off group", "marks")
    yield rows_as_table([row for row in page.rows[env_id] if row.key.name in named], columns)
    meanings = "; ".join(f"*{title}*: {COLUMNS[title].meaning}" for title in columns[1:-1])
    yield f"{meanings}. The leaderboard explains the marks."
    yield f"![Performance of all methods against the gap](../leaderboard/{env_id}.png)\n\n{TASK_CAPTION}"


# Tables ---------------------------------------------------------------------------------------------------------------


def markdown(table: Table) -> str:
    """Return a table of the command line in Markdown."""
    header = [plain(column.header) for column in table.columns] if table.show_header else [""] * len(table.columns)
    return tables.markdown(header, rows_of(table))


def rows_of(table: Table) -> list[list[str]]:
    """Return the cells of a table."""
    columns = [[plain(cell) for cell in column.cells] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def plain(cell: Any) -> str:
    """Return a cell without styles, and with code where Markdown would take it for a command."""
    text = cell.plain if isinstance(cell, Text) else str(cell)
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "\\<").replace("*", "\\*").replace("$", "\\$")


# The API reference ----------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A page of the API reference.

    Attributes:
        page: Name of its file.
        title: What a user wants to do.
        packages: The packages whose public names it has.
    """

    page: str
    title: str
    packages: Sequence[str]


PARTS = (
    Part("environments", "Make environments, evaluate policies", ["fair_envs"]),
    Part("evaluation", "Policies and evaluations", ["fair_envs.evaluation", "fair_envs.assessment"]),
    Part("measures", "Measures and notions of fairness", ["fair_envs.metrics"]),
    Part("wrappers", "Wrappers", ["fair_envs.wrappers"]),
    Part("tasks", "Tasks: what is measured in an environment", ["fair_envs.tasks"]),
    Part("methods", "Methods: train policies", ["fair_envs.baselines"]),
    Part("core", "Write an environment", ["fair_envs.core", "fair_envs.testing"]),
)


def api_index() -> str:
    """Return the page that lists the names of all parts of the reference."""
    pages = "\n".join(part.page for part in PARTS)
    blocks = ["# API reference", "All public names, by what they are for.", f"```{{toctree}}\n:hidden:\n\n{pages}\n```"]
    for part in PARTS:
        blocks.append(f"## [{part.title}]({part.page}.md)")
        blocks += [summary(package, chain(*by_module(package).values())) for package in part.packages]
    return "\n\n".join(blocks)


def summary(package: str, names: Iterable[str]) -> str:
    """Return a table of names of a package with the first lines of their docstrings."""
    return rst(f".. currentmodule:: {package}\n\n.. autosummary::\n   :nosignatures:\n\n   " + "\n   ".join(names))


def first_page(thing: Any) -> str:
    """Return the package under which a public name is documented, the first one that has it."""
    packages = [package for part in PARTS for package in part.packages]
    return next(package for package in packages if thing in public(package).values())


def public(package: str) -> dict[str, Any]:
    """Return the public classes and functions of a package by their names."""
    module = importlib.import_module(package)
    named = {name: getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in named.items() if inspect.isclass(thing) or inspect.isfunction(thing)}


def api_page(part: Part) -> Iterator[str]:
    """Yield the parts of a page of the reference: public names by the module that defines them."""
    yield f"# {part.title}"
    for package in part.packages:
        for home, things in by_module(package).items():
            yield f"## {first_line(home)}"
            yield summary(package, things)
            for name, thing in things.items():
                kind = "class" if inspect.isclass(thing) else "function"
                members = "\n   :members:\n   :show-inheritance:" if kind == "class" else ""
                yield rst(f".. auto{kind}:: {name}{members}")


def by_module(package: str) -> dict[str, dict[str, Any]]:
    """Return what is documented under a package by the module that defines it, in the order of the modules."""
    found: dict[str, dict[str, Any]] = {}
    for name, thing in public(package).items():
        if first_page(thing) == package:
            found.setdefault(thing.__module__, {})[name] = thing
    return dict(sorted(found.items()))


def first_line(module: str) -> str:
    """Return the first sentence of a module's docstring."""
    text = inspect.getdoc(importlib.import_module(module)) or module
    return text.partition("\n")[0].rstrip(".")


def skip_fields(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Skip the fields of named tuples and data classes, which the docstring of their class describes."""
    return True if type(thing).__name__ in ("_tuplegetter", "member_descriptor") else None


TABLE_ROW = re.compile(r"^\|(.*)\|$")
BLOCK = re.compile(r"^\$\$(.*)\$\$$")
PIPE = re.compile(r"(``[^`]*``|`[^`]*`)|\|")  # in reStructuredText, |D| is a substitution
FORMULA = re.compile(r"\$([^$]+)\$")


def to_rst(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Turn what is Markdown in a docstring, formulas, tables and code, into reStructuredText."""
    found: list[str] = []
    code = False
    for k, line in enumerate(lines):
        text, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if text in ("Example:", "Examples:"):
            code = not lines[k + 1].lstrip().startswith(">>>")
            found += [line, *([f"{indent}    .. code-block:: python", ""] if code else [])]
        elif code:
            code = not text or bool(indent)
            found.append(f"    {line}" if code else line)
        elif block := BLOCK.match(text):
            found += [f"{indent}.. math:: {block.group(1)}", ""]
        elif row := TABLE_ROW.match(text):
            cells = [cell.strip() for cell in row.group(1).split("|")]
            if all(set(cell) <= set("-: ") for cell in cells):
                continue
            if not (found and found[-1].startswith(f"{indent}     -")):
                found += [f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
            found += [f"{indent}   {'  -' if place else '* -'} {cell}" for place, cell in enumerate(cells)]
        else:
            found.append(PIPE.sub(lambda match: match.group(1) or r"\|", FORMULA.sub(r":math:`\1`", line)))
    lines[:] = found


def rst(text: str) -> str:
    """Return a block of reStructuredText in Markdown."""
    return f"```{{eval-rst}}\n{text}\n```"
