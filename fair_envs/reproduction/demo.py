"""The demonstration: PPO and fair-PPO on FairHarvest, their returns and disparities, plots and an animation."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import fair_envs
from fair_envs.assessment import plots
from fair_envs.baselines.agents import AgentsPolicy
from fair_envs.baselines.training import Training
from fair_envs.core import Rules
from fair_envs.evaluation import Policy, scenes
from fair_envs.experiments import tables
from fair_envs.experiments.executors import run_cells
from fair_envs.experiments.seeds import Arm, SeedRow
from fair_envs.metrics import Estimate
from fair_envs.reproduction.experiment import Cell, read_policy, read_result
from fair_envs.reproduction.lamalfa2025.jobs import ACTIONS
from fair_envs.reproduction.lamalfa2025.report import WORDS
from fair_envs.reproduction.measures import numbers as numbers_of
from fair_envs.support.aliases import Pixels
from fair_envs.support.extras import need
from fair_envs.support.seeds import TEST_SEEDS

HORIZON = 300
STEPS = 640_000  # agent steps of each training
EPISODES = 30  # test episodes of each training
SEEDS = 5
WEIGHTS = {"PPO": 0.0, "fair-PPO": 1.0}  # alpha; beta is 0
GIF_FRAMES, GIF_EVERY = 75, 2

NUMBERS: Mapping[str, str] = {
    "return, full speed": "return[without]",
    "return, half speed": "return[with]",
    "demographic parity, |ratio|": "|dp_ratio|",
    "difference of returns": "dp_difference",
    "parity among red, |ratio|": "|csp_ratio[red]|",
    "parity among blue, |ratio|": "|csp_ratio[blue]|",
    "games none and all, |ratio|": "|cf_ratio|",
    "flipped, same networks": "twin_same",
    "flipped, new networks": "twin_own",
}
"""Numbers by labels that leave room for two intervals in 80 columns; returns are those of an agent in a step."""

PRICE = "price of fairness, {}, %"


def main(*, out: Path, jobs: int = 2, progress: bool = True, seeds: int = SEEDS, steps: int = STEPS) -> bool:
    """Train, test, print the table and save the pictures; return whether fair-PPO's disparity is below PPO's.

    Args:
        out: Folder of the results; finished trainings in it are not repeated.
        jobs: Number of worker processes.
        progress: Whether to show a bar with the remaining time.
        seeds: Number of training seeds of each method.
        steps: Agent steps of each training.

    Raises:
        ImportError: A library for pictures is missing.
    """
    need_pictures()
    cells = {name: [cell(alpha, seed, steps=steps) for seed in range(seeds)] for name, alpha in WEIGHTS.items()}
    run_cells([c for group in cells.values() for c in group], out / "cells", jobs=jobs, progress=progress)
    arms = {name: arm(name, [out / "cells" / c.key for c in group]) for name, group in cells.items()}
    numbers = compare(arms["PPO"], arms["fair-PPO"])
    tables.write_csv(out / "table.csv", numbers)
    lower = show(numbers, seeds=seeds, steps=steps)
    draw(arms, out)
    shown = cells["fair-PPO"][0]
    film(shown, out / "cells" / shown.key, out / "episode.gif")
    Console().print(f"Saved in {out}: table.csv, disparities.png, actions.png, episode.gif")
    return lower


def need_pictures() -> None:
    """Raise ImportError before any training if a library for pictures is missing."""
    need("a film", "imageio", "pygame", extra="render")


def cell(alpha: float, seed: int, *, steps: int) -> Cell:
    """Return the cell of a weight and seed; with weight 0, fair-PPO equals PPO bit for bit."""
    training = Training(
        env_id="FairHarvest-v0",
        parameters={"horizon": HORIZON},
        algorithm="fair-ppo",
        alpha=alpha,
        beta=0.0,
        seed=seed,
        steps=steps,
    )
    return Cell(training=training, episodes=EPISODES)


def arm(name: str, folders: Sequence[Path]) -> Arm:
    """Return the numbers of a method's cells."""
    rows = []
    for seed, folder in enumerate(folders):
        result = read_result(folder)
        found = numbers_of(result, horizon=HORIZON, actions=ACTIONS)
        rows.append(SeedRow(arm=name, seed=seed, job="", code="", seconds=result.seconds, numbers=found))
    return Arm(name, rows)


def compare(classic: Arm, fair: Arm) -> dict[str, dict[str, Estimate]]:
    """Return each number for PPO, for fair-PPO, and the difference, with Welch's interval."""
    rows: dict[str, dict[str, Estimate]] = {
        label: {
            "PPO": classic.estimate(name),
            "fair-PPO": fair.estimate(name),
            "difference": fair.minus(classic, name),
        }
        for label, name in NUMBERS.items()
    }
    for group, words in WORDS.items():
        rows[PRICE.format(words)] = {"fair-PPO": fair.price(classic, f"return[{group}]")}
    return rows


def show(numbers: Mapping[str, Mapping[str, Estimate]], *, seeds: int, steps: int) -> bool:
    """Print the table and the verdict."""
    console = Console(highlight=False)
    table = Table(title=f"FairHarvest: {seeds} training seeds of {steps:,} agent steps", box=SIMPLE_HEAD)
    for column in ("", "PPO", "fair-PPO"):
        table.add_column(column)
    for label in NUMBERS:
        table.add_row(label, *(tables.show(numbers[label][name]) for name in ("PPO", "fair-PPO")))
    console.print(table)
    console.print("Returns are those of an agent in a step; in brackets, 95 % intervals over seeds.")
    console.print("For all other numbers, 0 is fair; half the turns alone give a |ratio| of 1/3.\n")
    difference = numbers["demographic parity, |ratio|"]["difference"]
    lower = difference.high < 0
    console.print(
        f"fair-PPO's |ratio| of demographic parity is {'below' if lower else 'NOT shown to be below'} PPO's: "
        f"difference {tables.show(difference)}."
    )
    console.print(f"Who pays: {'; '.join(map(partial(_change, numbers), WORDS.values()))}.")
    return lower


def _change(numbers: Mapping[str, Mapping[str, Estimate]], group: str) -> str:
    """Return what a group earns under fair-PPO compared with PPO, in words."""
    change = numbers[PRICE.format(group)]["fair-PPO"]
    if not change.excludes(0):
        return f"agents with {group} are not shown to earn more or less"
    sign, words = (1, "more") if change.value > 0 else (-1, "less")
    low, high = sorted((sign * change.low, sign * change.high))
    return f"agents with {group} earn {sign * change.value:.0f} % [{low:.0f}, {high:.0f}] {words}"


def draw(arms: Mapping[str, Arm], out: Path) -> None:
    """Save the disparities and the shares of the actions."""
    names = {"parity": "dp_ratio", "among red": "csp_ratio[red]", "among blue": "csp_ratio[blue]", "games": "cf_ratio"}
    disparities = {
        title: {label: {"|ratio|": own.estimate(f"|{name}|")} for label, own in arms.items()}
        for title, name in names.items()
    }
    plots.dot_plot(disparities, out / "disparities.png", label="mean |ratio|, 0 is fair", lines=[0, 1 / 3])
    actions = {
        label: {
            action: {words: own.estimate(f"executed[{group}][{action}]") for group, words in WORDS.items()}
            for action in ACTIONS
        }
        for label, own in arms.items()
    }
    plots.dot_plot(actions, out / "actions.png", label="share of the executed actions")


def film(shown: Cell, folder: Path, path: Path) -> None:
    """Save an animation of an episode with the policy that a cell has trained."""
    import imageio.v3 as imageio

    model = read_policy(shown, folder)
    rules = fair_envs.make_rules("FairHarvest-v0", horizon=HORIZON)
    imageio.imwrite(path, list(frames(AgentsPolicy(model, rules), rules)), duration=120, loop=0)


def frames(policy: Policy, rules: Rules) -> Iterator[Pixels]:
    """Yield pictures of an episode, every few steps."""
    renderer = rules.renderer()
    for lane in islice(scenes(rules, policy, seed=TEST_SEEDS), 0, GIF_FRAMES * GIF_EVERY, GIF_EVERY):
        yield renderer.frame(lane)
