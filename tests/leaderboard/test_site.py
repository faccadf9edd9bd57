"""The website's page of the leaderboard: its table sorts and filters in a browser, and is complete without a script."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("moocore")
pytest.importorskip("latex2mathml")
pytest.importorskip("myst_parser")
pytest.importorskip("pydata_sphinx_theme")

from fair_envs.leaderboard.board import Coverage
from fair_envs.leaderboard.page import PAGE, Page
from fair_envs.leaderboard.verification import verify
from tests import browser
from tests.leaderboard.boards import board, page

DOCS = Path(__file__).parents[2] / "docs"
LENDING, HIRING = "FairLending-v0", "FairHiring-v0"


@pytest.fixture(scope="module")
def pages() -> Iterator[Any]:
    """Return the module that writes the website's pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield import_module("_pages")


def small() -> Page:
    """Return the page of two tasks, the first with a strength whose gap is undefined; of a third, rows are missing."""
    lending = board({("parity", 0.5): (0.8, 0.1), ("parity", 16.0): (0.5, np.nan), ("<b>", None): (0.7, 0.2)})
    return page(lending, board(task=HIRING), FairFraud=Coverage(2, 5))


def test_the_readme_has_the_answer_of_the_stored_leaderboard(pages: Any) -> None:
    found, readme = pages.leaderboard(), (DOCS.parent / "README.md").read_text()
    section = readme.split("\n## Results at a glance\n")[1].split("\n## ")[0]
    about, answer, picture, _ = section.strip().split("\n\n")
    *names, last = (board.env_id for board in found.boards)
    (seeds,) = {arm.seeds for board in found.boards for arm in board.arms.values()}
    complete = f"{', '.join(names)} and {last} are complete" if found.missing else "All tasks are complete"
    assert ("**It is preliminary**" in about) == bool(found.missing)
    assert complete in about and f" {seeds} seeds" in about
    assert answer == "\n".join(f"* {line}" for line in found.answer.lines())
    assert picture.endswith("](docs/leaderboard/scores.png)")


def test_the_stored_page_is_made_from_the_stored_rows(pages: Any) -> None:
    found, folder = pages.leaderboard(), DOCS / "leaderboard"
    assert (folder / PAGE).read_text() == "\n\n".join(found.parts()) + "\n"
    pictures = {"scores", "areas", "changes", *(board.env_id for board in found.boards)}
    assert {path.stem for path in folder.glob("*.png")} == pictures


def test_this_version_of_the_code_plays_a_stored_row_to_the_bit() -> None:
    assert verify("FairLending-v0/max-reward/1", DOCS / "leaderboard").same  # whose groups have different rates


@pytest.fixture(scope="module")
def file(pages: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page in a small website with the theme of the whole one."""
    root, found = tmp_path_factory.mktemp("site"), small()
    folder = root / "leaderboard"
    found.write(folder)
    (folder / "index.md").write_text(pages.index(found) + "\n")
    (folder / "plan.md").write_text("# Plan\n")
    (root / "index.md").write_text("# Home\n\n```{toctree}\nleaderboard/index\nleaderboard/plan\n```\n")
    options = ["--fail-on-warning", "--quiet", "-c", str(DOCS), "-D", "extensions=myst_parser,_board,_mathml"]
    paths = {"PYTHONPATH": os.pathsep.join([str(DOCS.parent), str(DOCS)])}
    subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(root), str(root / "html")],
        check=True,
        env={**os.environ, **paths},
    )
    return root / "html" / "leaderboard" / "index.html"


@pytest.fixture(scope="module")
def tab(chromium: Any, file: Path) -> Any:
    """Return the page in a browser."""
    return browser.opened(chromium, file)


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> None:
    """Open the page anew for each test."""
    if "tab" in request.fixturenames:
        tab = request.getfixturevalue("tab")
        tab.goto(tab.url)


def column(tab: Any, title: str) -> list[str]:
    """Return the first lines of a column's cells in the rows that are shown."""
    found: list[str] = tab.evaluate(
        """(title) => {
            const heads = [...document.querySelectorAll(".board thead th")];
            const place = heads.findIndex((th) => th.innerText.startsWith(title));
            const rows = [...document.querySelectorAll(".board tbody tr")].filter((row) => !row.hidden);
            return rows.map((row) => row.cells[place].innerText.split("\\n")[0].trim());
        }""",
        title,
    )
    return found


def head(tab: Any, title: str) -> Any:
    return tab.locator(".board thead th").filter(has_text=title).first


def test_it_opens_without_errors_and_requests_to_other_hosts(tab: Any) -> None:
    assert tab.problems == []
    assert {url for url in tab.requests if not url.startswith(("file:", "data:"))} == set()


def test_the_page_says_first_that_rows_are_missing_and_links_to_the_csv(tab: Any, file: Path) -> None:
    assert (
        "Preliminary: rows are missing. 17 of 20 rows are stored. Complete: "
        in tab.locator("article li").first.inner_text()
    )
    link = tab.get_by_role("link", name="Download the numbers of every seed").get_attribute("href")
    assert link.endswith("seeds.csv.gz") and (file.parent / link).exists()


def test_a_click_sorts_by_a_number_and_another_one_turns_the_order(tab: Any) -> None:
    assert column(tab, "method")[:2] == ["random", "max-reward"]
    head(tab, "gap").get_by_role("button").click()
    assert head(tab, "gap").get_attribute("aria-sort") == "ascending"
    *gaps, last = column(tab, "gap")
    assert last == "undefined" and [*map(float, gaps)] == sorted(map(float, gaps)) and gaps[0] == "0.010"
    head(tab, "gap").get_by_role("button").click()
    assert head(tab, "gap").get_attribute("aria-sort") == "descending"
    assert column(tab, "gap") == [*gaps[::-1], "undefined"]  # undefined ones are last in both directions


def test_strengths_are_sorted_as_numbers_and_names_as_texts(tab: Any) -> None:
    head(tab, "strength").get_by_role("button").click()
    assert column(tab, "strength")[:3] == ["0.5", "16", ""]
    head(tab, "method").get_by_role("button").click()
    assert column(tab, "method") == sorted(column(tab, "method"))
    assert tab.locator(".board [aria-sort]").all_inner_texts() == ["method"]


def test_the_table_is_sorted_with_the_keyboard(tab: Any) -> None:
    head(tab, "task").get_by_role("button").focus()
    for _ in range(4):
        tab.keyboard.press("Tab")
    assert tab.evaluate("() => document.activeElement.innerText").startswith("performance")
    tab.keyboard.press("Enter")
    assert column(tab, "performance") == sorted(column(tab, "performance"), key=float)
    tab.keyboard.press("Space")
    assert head(tab, "performance").get_attribute("aria-sort") == "descending"


def test_rows_are_filtered_by_task_by_method_and_by_words(tab: Any) -> None:
    shown = tab.locator(".board-filter output")
    assert shown.inner_text() == "15 of 15 rows"
    tab.locator("select[name='task']").select_option(HIRING)
    assert set(column(tab, "task")) == {HIRING} and shown.inner_text() == "6 of 15 rows"
    tab.locator("select[name='method']").select_option("parity")
    assert shown.inner_text() == "0 of 15 rows"
    tab.locator("select[name='task']").select_option("all")
    assert column(tab, "strength") == ["0.5", "16"]
    tab.locator("select[name='method']").select_option("all")
    tab.get_by_role("searchbox", name="text").fill("Lending BIAS")
    assert column(tab, "method") == ["planted bias", "partial bias"]
    head(tab, "gap").get_by_role("button").click()
    assert column(tab, "method") == ["partial bias", "planted bias"]


def test_names_are_no_markup(tab: Any) -> None:
    assert "<b>" in column(tab, "method")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_table_scrolls_in_its_frame_and_methods_stay(chromium: Any, file: Path, scheme: str) -> None:
    tab = browser.opened(chromium, file, width=375, color_scheme=scheme)
    assert tab.evaluate("() => document.documentElement.scrollWidth") == 375
    frame, name = tab.locator(".board-frame"), tab.locator(".board tbody th").first
    frame.evaluate("(frame) => frame.scrollTo(400, 0)")
    assert name.bounding_box()["x"] == pytest.approx(frame.bounding_box()["x"], abs=2)
    text, ground = name.evaluate("(cell) => [getComputedStyle(cell).color, getComputedStyle(cell).backgroundColor]")
    light, dark = (ground, text) if scheme == "light" else (text, ground)
    assert brightness(light) > 200 and brightness(dark) < 60


def brightness(colour: str) -> float:
    """Return the mean of red, green and blue."""
    return float(np.mean([int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(", ")]))


def test_without_a_script_the_page_has_the_whole_table(chromium: Any, file: Path) -> None:
    tab = browser.opened(chromium, file, java_script_enabled=False)
    assert tab.locator(".board tbody tr").count() == 15
    assert not tab.locator(".board-filter").is_visible() and not tab.locator(".board thead button").count()


# Pages of environments ------------------------------------------------------------------------------------------------


def test_the_page_of_an_environment_has_the_scores_of_rules_and_of_ppo(
    pages: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "leaderboard", small)
    text = "\n".join(pages.scores(LENDING))
    rows = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    assert rows == ["method", "---", "random", "max-reward", "ppo"]
    assert "| ppo | 1.0000 [0.9975, 1.0025] | 0.400 [0.398, 0.402] | 0.010 | disadvantaged (3 of 3) |" in text
    assert f"](../leaderboard/{LENDING}.png)" in text


def test_the_page_of_an_environment_with_missing_rows_says_so(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "leaderboard", small)
    _, sentence = pages.scores("FairFraud-v0")
    assert "has 2 of 5 rows of this task; scores follow when all are there." in sentence
