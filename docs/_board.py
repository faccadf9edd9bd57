"""Gives the leaderboard's page one table that sorts and filters in the browser. An extension of Sphinx.

The page is that of `fair-envs leaderboard report`, made from the rows in `leaderboard/seeds.csv.gz`. The table is
complete without its script, `_static/board.js`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sphinx.application import Sphinx

from fair_envs.experiments.seeds import TABLE
from fair_envs.leaderboard.controls import check
from fair_envs.leaderboard.page import Page, page_of
from fair_envs.leaderboard.rows import COLUMNS, Row, filled
from fair_envs.metrics import Estimate

FOLDER = Path(__file__).parent / "leaderboard"
PAGE = "leaderboard/index"
HEADING = "method"  # the column that names a row, together with the strength below it
STAYS = ' class="stays"'


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the script and the style of the table to its page."""
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_files(app: Sphinx, name: str, *_: Any) -> None:
    """Add the files of the table if this is its page."""
    if name == PAGE:
        app.add_css_file("board.css")
        app.add_js_file("board.js", loading_method="defer")


@cache
def leaderboard() -> Page:
    """Return the leaderboard whose rows are stored.

    Raises:
        FailedControlError: A control failed; the website is not built.
    """
    page = page_of(FOLDER)
    check(page.controls)
    return page


def index(page: Page) -> str:
    """Return the leaderboard's page in Markdown, with a table for the browser."""
    rows = [row for own in page.rows.values() for row in own]
    shown = f"{download()}\n\n```{{raw}} html\n{table(rows)}\n```" if rows else download()
    return "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n" + "\n\n".join(page.parts(table=shown))


def download() -> str:
    """Return a sentence with a link to the rows."""
    return f"[Download the numbers of every seed]({TABLE}) as CSV. [The plan](plan.md) has the definitions."


def table(rows: Sequence[Row]) -> str:
    """Return rows as an HTML table in a frame, with the fields that filter it, which its script shows."""
    return "\n".join(
        [
            '<div class="board">',
            *fields(rows),
            '<div class="board-frame" role="region" aria-label="All methods and strengths" tabindex="0">',
            "<table>",
            "<caption>Intervals of 95 % stand below the means over seeds.</caption>",
            *body(rows),
            "</table>",
            "</div>",
            "</div>",
        ]
    )


def fields(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the fields that filter: a task, a method, and any text."""
    yield '<form class="board-filter" hidden>'
    for title in ("task", "method"):
        names = dict.fromkeys(row.text(title) for row in rows)
        options = "".join(f"<option>{escape(name)}</option>" for name in names)
        yield f'<label>{title} <select name="{title}"><option value="">all</option>{options}</select></label>'
    yield '<label>text <input type="search" name="text" placeholder="in any column"></label>'
    yield '<output aria-live="polite"></output>'
    yield "</form>"


def body(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the header and the rows."""
    titles = filled(rows)
    yield f"<thead><tr>{''.join(head(title) for title in titles)}</tr></thead>"
    yield "<tbody>"
    for row in rows:
        yield f"<tr>{''.join(cell(row, title) for title in titles)}</tr>"
    yield "</tbody>"


def head(title: str) -> str:
    """Return the head of a column; its explanation is also in the text below the table."""
    meaning = escape(COLUMNS[title].meaning.replace("*", ""))
    return f'<th scope="col" title="{meaning}"{STAYS if title == HEADING else ""}>{title}</th>'


def cell(row: Row, title: str) -> str:
    """Return a cell; where it is a number, with the value by which it is sorted."""
    of, text = row.cells[title], escape(row.text(title))
    if title == HEADING:
        return f'<th scope="row"{STAYS}>{text}{below(row.text("strength"))}</th>'
    if isinstance(of, str):
        return f"<td>{text}</td>"
    value, bracket, interval = text.partition(" [")
    number = of.value if isinstance(of, Estimate) else of
    order = "" if np.isnan(number) else f"{number:.9g}"
    return f'<td data-value="{order}">{value}{below(bracket.strip() + interval)}</td>'


def below(text: str) -> str:
    """Return a text as the second line of a cell."""
    return f" <small>{text}</small>" if text else ""
