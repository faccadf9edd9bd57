"""The command ``doctor``."""

import importlib
import io
import os
import platform
import warnings
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fair_envs.cli.app import app
from fair_envs.cli.shared import ShowProgress, terminal
from fair_envs.support.files import first_line
from fair_envs.support.progress import progress_bar

if TYPE_CHECKING:
    from packaging.requirements import Requirement

WIDTH = 80
UNSEEN = ("dummy", "offscreen")  # SDL's drivers that show no window


@dataclass(frozen=True)
class Library:
    """A library that fair-envs uses.

    Attributes:
        name: Its name.
        version: The installed version, or None if it is missing.
        problem: Why it does not work, and what to do; empty if it works or is missing.
    """

    name: str
    version: str | None
    problem: str = ""

    @property
    def works(self) -> bool:
        """Whether it is installed and works."""
        return self.version is not None and not self.problem


@app.command()
def doctor(progress: ShowProgress = True) -> None:
    """Show versions, extras, compiled rules and cores, and check that what is installed works.

    It imports each library of fair-envs that is installed, plays a step of an environment and draws it. The exit code
    is 0 if everything that is installed works. Otherwise it is 1, and the last lines say what to do.
    """
    from fair_envs.support.extras import PURPOSES, libraries

    try:
        extras = {extra: libraries(extra) for extra in ("", *PURPOSES)}
    except PackageNotFoundError as error:
        raise RuntimeError("fair-envs is not installed; in its folder, run: pip install --editable .") from error
    every = {one.name: one for of in extras.values() for one in of}
    with progress_bar("checking", total=len(every) + 1, unit="parts", shown=progress) as advance:
        found = {}
        for name, needed in every.items():
            found[name] = tried(needed)
            advance()
        needs = [f"{one.name} is missing{install(one)}" for one in extras[""] if found[one.name].version is None]
        problems = [*needs, *(one.problem for one in found.values() if one.problem)]
        problems = problems or list(problems_of_playing(found))
        advance()
    of_extras = {extra: [found[one.name] for one in of] for extra, of in extras.items()}
    report(of_extras, problems)
    if problems:
        raise typer.Exit(1)


# ---------------------------------------------------------------------------------------------------- checks


def tried(needed: "Requirement") -> Library:
    """Return a library after importing it, if it is installed."""
    from fair_envs.support.extras import installed_version, module_of

    version = installed_version(needed.name)
    if version is None:
        return Library(needed.name, None)
    if not needed.specifier.contains(version, prereleases=True):
        wrong = f"{needed.name} must be {needed.specifier}, got {version}{install(needed)}"
        return Library(needed.name, version, wrong)
    error = import_error(module_of(needed.name))
    if error:
        wrong = f"{needed.name} {version} cannot be imported: {error}{install(needed, '--force-reinstall')}"
        return Library(needed.name, version, wrong)
    return Library(needed.name, version)


def import_error(module: str) -> str:
    """Return why a module cannot be imported, or an empty text."""
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # pygame prints a greeting
            warnings.simplefilter("ignore")
            importlib.import_module(module)
    except Exception as error:
        return first_line(error)
    return ""


def install(needed: "Requirement", how: str = "--upgrade") -> str:
    """Return the end of a problem: how to install a library."""
    return f"; install it with:\n  pip install {how} '{needed.name}{needed.specifier}'"


def problems_of_playing(found: Mapping[str, Library]) -> Iterator[str]:
    """Yield why a step of the first environment cannot be played and drawn, if it cannot."""
    import gymnasium as gym

    from fair_envs.cli.playing import save_film
    from fair_envs.registration import TABLE

    env_id, pictures = next(iter(TABLE)), found["pygame-ce"].works
    try:
        env: Any = gym.make(env_id, render_mode="rgb_array" if pictures else None)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        if pictures and found["imageio"].works:
            with TemporaryDirectory() as folder:
                save_film(iter([env.render()]), Path(folder) / "film.gif", fps=1)
        env.close()
    except Exception as error:
        update = "update with:\n  pip install --upgrade fair-envs"
        yield f"{env_id} cannot be played and drawn: {first_line(error)}; {update}"


# ---------------------------------------------------------------------------------------------------- report


def report(extras: Mapping[str, list[Library]], problems: list[str]) -> None:
    """Print what was found, at most 80 characters wide."""
    from fair_envs import __version__
    from fair_envs.support.machine import machine

    console, known = Console(width=min(terminal().width, WIDTH)), machine()
    console.print(f"fair-envs {__version__}, Python {platform.python_version()}, {known['system']}", highlight=False)
    (pygame,) = (one for one in extras["render"] if one.name == "pygame-ce")
    sections = {
        "Libraries": ((one.name, one.version or "missing") for one in extras[""]),
        "Extras": rows_of_extras(extras),
        "Compiled rules": rows_of_rules() if all(one.works for one in extras[""]) else [],
        "Processor": rows_of_processor(known),
        "Pictures": [("window", window_text() if pygame.works else "no: pygame is missing or does not work")],
    }
    for title, rows in sections.items():
        table = Table(box=None, show_header=False, pad_edge=False)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(f"\n{title}")
        console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
    for problem in problems:
        console.print(f"PROBLEM: {problem}", markup=False, highlight=False)
    if not problems:
        console.print("Everything that is installed works.")


def rows_of_extras(extras: Mapping[str, list[Library]]) -> Iterator[tuple[str, ...]]:
    """Yield each extra: whether it is installed, what it is for, and its libraries or how to install it."""
    from fair_envs.support.extras import PURPOSES, install_command

    for extra, purpose in PURPOSES.items():
        there = [f"{one.name} {one.version}" for one in extras[extra] if one.version is not None]
        missing = [one.name for one in extras[extra] if one.version is None]
        if not missing:
            yield extra, "installed", f"{purpose}\n{', '.join(there)}"
        else:
            without = f"without {', '.join(missing)}\n" if there else ""
            yield extra, "missing", f"{purpose}\n{without}{install_command(extra)}"


def rows_of_rules() -> Iterator[tuple[str, str]]:
    """Yield where compiled rules are stored, and of which environments."""
    from fair_envs.cli.pages import rules_class
    from fair_envs.core.compilation import COMPILED, cache_folder, is_stored, stored_sizes, why_not_stored
    from fair_envs.registration import TABLE

    yield "folder", f"{cache_folder()} (FAIR_ENVS_CACHE selects another)"
    why = why_not_stored()
    if why or not COMPILED:
        yield "stored", f"nothing: {why}" if why else "nothing: NUMBA_DISABLE_JIT is set, and rules are not compiled"
        return
    sizes = stored_sizes()
    yield "stored", f"{sum(sizes) / 2**20:,.0f} MiB in {len(sizes):,} files"
    stored = {env_id: is_stored(rules_class(env_id)) for env_id in TABLE}
    yield "compiled", ", ".join(env_id for env_id in TABLE if stored[env_id]) or "none"
    if not all(stored.values()):
        later = ", ".join(env_id for env_id in TABLE if not stored[env_id])
        yield "not yet", f"{later}\ncompiled at the first use, or now with: fair-envs warm"


def rows_of_processor(known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the processor, its cores, and the threads of a process."""
    threads = os.environ.get("OMP_NUM_THREADS")
    yield "name", known["processor"]
    yield "cores", f"{known['cores']} for this process, of {os.cpu_count()}"
    yield "threads", f"1 unless you ask for more (--threads, --jobs); OMP_NUM_THREADS is {threads or 'not set'}"


def window_text() -> str:
    """Return whether windows can be shown."""
    from fair_envs.faces.window import import_pygame

    pygame = import_pygame()
    try:
        pygame.display.init()
        driver = pygame.display.get_driver()
    except pygame.error as error:
        return f"no: {error}"
    finally:
        pygame.display.quit()
    if driver in UNSEEN:
        return f"no: there is no screen (SDL's driver is {driver}); films need none:\nfair-envs play ID --gif film.gif"
    return f"yes (SDL's driver is {driver})"
