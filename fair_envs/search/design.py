"""Searches for a configuration: proposes, plays with common random numbers, and compares the best with the original.

Every configuration plays episodes with the same seeds, so that two configurations are compared pair by pair. A
configuration is played in rounds; each round doubles its episodes. It stops when its standard errors are small enough,
when it has the maximal number of episodes, or when another configuration is surely better in every objective.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna

from fair_envs.evaluation.systems import TOTAL, Episodes
from fair_envs.experiments.executors import Engine, check_engine, opened, run_cells
from fair_envs.experiments.systems import SystemCell, joined, plain, system_cells
from fair_envs.metrics.pareto import non_dominated
from fair_envs.search.objectives import numbers
from fair_envs.search.settings import KEPT, Search, check_same, read_record
from fair_envs.search.trials import PATIENCE, Trial, Trials, shown
from fair_envs.support.aliases import Floats, OnProgress
from fair_envs.support.files import write_json, writing

DATABASE = "trials.db"
CELLS = "cells"
EPISODES_PER_CELL = 64  # episodes of a cell, played at once
FINALIST_FACTOR = 4  # each finalist gets this many times a trial's maximal number of episodes
WRONGLY_STOPPED = 0.01  # probability of stopping a configuration that is not worse
MIN_TRIALS_FOR_IMPORTANCE = 4  # number of trials that is too small for importances
PLACE = "place.json"


@dataclass(kw_only=True)
class _Running:
    """A configuration that is being played."""

    trial: Trial
    series: dict[str, Floats] = field(default_factory=dict)
    stopped: str = ""

    @property
    def episodes(self) -> int:
        """Number of episodes played so far."""
        return len(next(iter(self.series.values()), ()))


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a search.

    Attributes:
        search: The search.
        trials: All trials.
        front: Trials for which no other trial is better in all objectives.
        finalists: The trials that were played longest, with those episodes; the first one is the selected one.
        original: The configuration before the search.
        held_out: Episodes with other seeds, of the original and of the selected configuration.
        importances: By objective, the share of each parameter in the variation among trials; empty below 4 trials.
    """

    search: Search
    trials: Sequence[Trial]
    front: Sequence[Trial]
    finalists: Sequence[Trial]
    original: Trial
    held_out: tuple[Episodes, Episodes]
    importances: Mapping[str, Mapping[str, float]]

    @property
    def chosen(self) -> Trial:
        """The selected configuration."""
        return self.finalists[0]

    @property
    def configuration(self) -> dict[str, Any]:
        """The selected configuration, as keywords of ``gym.make``."""
        return plain({**self.search.parameters, **self.chosen.parameters})


def design(
    search: Search,
    *,
    out: Path,
    storage: str | None = None,
    name: str | None = None,
    engine: str = "processes",
    jobs: int = 1,
    choose: int | None = None,
    each: OnProgress = lambda: None,
) -> Found:
    """Search for a configuration, or continue a search in the same folder.

    Args:
        search: The search.
        out: Folder for the trials and the episodes played.
        storage: URL of a database instead of a file in ``out``. Several machines may work on the same search there,
            each with its own folder.
        name: Name of the search in that database; the environment's id by default.
        engine: Where configurations are played, see `fair_envs.experiments.executors`.
        jobs: Number of batches to play at once.
        choose: The number of the trial to select instead of the best one in the first objective.
        each: Called after each trial that is done, after the finalists, and after the comparison.

    Raises:
        ValueError: The engine is unknown, the folder belongs to another search, there is no database, another search
            has that name in it, the selected trial does not exist, or no trial has defined objectives or is within the
            price.
        ImportError: The engine is not installed.
        FailedCellsError: A policy or an environment failed while it was played; the search can be continued.
    """
    trials = begun(search, out=out, storage=storage, name=name, engine=engine, jobs=jobs)
    with writing(out), opened(engine, jobs=jobs, here=True) as workers:
        run = _Run(search, trials, workers, out / CELLS, jobs=jobs)
        for first in range(0, search.trials, search.batch):
            run.batch(range(first, min(first + search.batch, search.trials)), each)
        finalists = run.final(choose)
        each()
        held_out = run.held_out(finalists[0])
        each()
    done = trials.done()
    return Found(
        search=search,
        trials=done,
        front=distinct(search, front(search, done)),
        finalists=finalists,
        original=run.original,
        held_out=held_out,
        importances=importances(search, trials.frozen()),
    )


def begun(
    search: Search,
    *,
    out: Path,
    storage: str | None = None,
    name: str | None = None,
    engine: str = "processes",
    jobs: int = 1,
) -> Trials:
    """Return a search's trials, existing or new; to continue a search, its stored settings must be the same.

    Args:
        search: The search.
        out: See `design`.
        storage: See `design`.
        name: See `design`.
        engine: See `design`.
        jobs: See `design`.

    Raises:
        ValueError: The engine is unknown, a Ray cluster does not answer, there is no database, or the folder or
            database belongs to another search.
        ImportError: The engine is not installed.
    """
    check_engine(engine, jobs)
    with writing(out) if out.is_dir() else nullcontext():  # files that another process is writing are not touched
        return _begun(search, out=out, storage=storage, name=name)


def _begun(search: Search, *, out: Path, storage: str | None, name: str | None) -> Trials:
    """Return a search's trials, see `begun`."""
    place = Place.of(out, storage=storage, name=name or search.env_id)
    own = f"sqlite:///{(out / DATABASE).resolve()}"
    if (out / KEPT).exists():
        check_same(Search.kept(out), search, where=f"out ({out})")
    # A shared database is opened first: it rejects another search's name before anything is written.
    shared = None if storage is None else Trials(search, storage, name=place.name, me=place.me)
    search.save(out)
    place.save(out)
    return shared or Trials(search, own, name=place.name, me=None)


class Place(NamedTuple):
    """Where a search is stored.

    Attributes:
        name: Name of the search in its database.
        storage: The database without its password; empty: a file in the search's own folder.
        me: Identifier of the worker in this folder.
    """

    name: str
    storage: str
    me: str

    @classmethod
    def of(cls, out: Path, *, storage: str | None, name: str) -> "Place":
        """Return the place of a new search, or of the one in a folder.

        Raises:
            ValueError: The search in the folder is stored in another place, or its place is unknown.
        """
        now = cls(name, "" if storage is None else shown(storage), uuid.uuid4().hex)
        if not (out / PLACE).is_file():
            return now
        before = cls(**read_record(out / PLACE, names=cls._fields))
        for what in ("storage", "name"):
            if getattr(before, what) != getattr(now, what):
                raise ValueError(
                    f"{what} must be that of the search in {out}, {getattr(before, what)!r}, got {getattr(now, what)!r}"
                )
        return before

    def save(self, out: Path) -> None:
        """Write the place into a folder."""
        write_json(out / PLACE, self._asdict())


class _Run:
    """Plays configurations."""

    def __init__(self, search: Search, trials: Trials, engine: Engine, folder: Path, *, jobs: int) -> None:
        self._search, self._trials, self._engine, self._folder, self._jobs = search, trials, engine, folder, jobs
        self.original = trials.original or self._first()  # with the maximal number of episodes

    def _first(self) -> Trial:
        """Play the original configuration, with which all others are compared."""
        (series,) = self._played([{}], 0, self._search.episodes)
        self._trials.keep_original(series)
        return Trial(-1, {}, series, "")

    def batch(self, numbers: Sequence[int], each: OnProgress) -> None:
        """Propose configurations and play them; wait for those that other machines play."""
        self._trials.propose(numbers[0], numbers[-1])
        known = self._trials.done(below=numbers[0])
        while not self._trials.finished(numbers):
            mine = self._trials.claimed(numbers, most=self._jobs)
            if mine:
                self._play(mine, known=known)
            else:
                time.sleep(PATIENCE)
        for _ in numbers:
            each()

    def _play(self, trials: Sequence[Trial], *, known: Sequence[Trial]) -> None:
        """Play configurations until each has enough episodes, and store the results."""
        rivals = distinct(self._search, front(self._search, [self.original, *known]))
        running = [_Running(trial=trial) for trial in trials]
        active = [one for one in running if self._exists(one)]
        begun, until = 0, self._search.least_episodes
        while active:
            parts = self._played([one.trial.parameters for one in active], begun, until)
            for one, part in zip(active, parts, strict=True):
                one.series = {name: np.append(one.series.get(name, ()), values) for name, values in part.items()}
            self._trials.stamp([one.trial.number for one in active])
            active = [one for one in active if self._goes_on(one, rivals)]
            begun, until = until, min(2 * until, self._search.episodes)
        for one in running:
            self._trials.tell(one.trial.number, one.series, stopped=one.stopped)

    def _exists(self, one: _Running) -> bool:
        """Return whether the configuration is valid."""
        try:
            self._search.rules(**one.trial.parameters)
        except ValueError as error:
            one.stopped = f"no such world: {error}"
            return False
        return True

    def _goes_on(self, one: _Running, rivals: Sequence[Trial]) -> bool:
        """Return whether a configuration gets more episodes."""
        search, count = self._search, one.episodes
        alpha = WRONGLY_STOPPED / (
            max(1, len(rivals)) * search.rounds
        )  # error probability of one comparison; at most WRONGLY_STOPPED in all comparisons
        beating = (rival for rival in rivals if search.prune and self._beats(rival, one, alpha=alpha))
        better = next(beating, None)
        if better is not None:
            who = "the original" if better.number < 0 else f"trial {better.number}"
            one.stopped = f"significantly worse than {who} after {count} episodes"
        elif count < search.episodes and all(
            goal.error(one.series[goal.name]) <= search.precision * self._spread(goal.name) for goal in search.goals
        ):
            one.stopped = f"precise enough after {count} episodes"
        return not one.stopped and count < search.episodes

    def _beats(self, rival: Trial, one: _Running, *, alpha: float) -> bool:
        """Return whether a configuration is significantly worse than a rival in every objective."""
        count = min(one.episodes, len(rival.series[self._search.goals[0].name]))
        return all(
            goal.significantly_worse(one.series[goal.name][:count], rival.series[goal.name][:count], alpha=alpha)
            for goal in self._search.goals
        )

    def _spread(self, name: str) -> float:
        """Return the standard deviation of a number in the original configuration."""
        values = self.original.series[name]
        return float(np.nanstd(values, ddof=1)) if np.count_nonzero(~np.isnan(values)) > 1 else 0.0

    def final(self, choose: int | None) -> list[Trial]:
        """Return the best configurations in the first objective, played longer, with the selected one first."""
        search = self._search
        if choose is not None:
            chosen = [trial for trial in self._trials.done() if trial.number == choose and trial.series]
            if not chosen:
                raise ValueError(f"choose must be a trial that has been played, got {choose}")
            return chosen
        played = distinct(search, (trial for trial in self._trials.done() if defined(search, trial)))
        if not played:
            raise ValueError(f"objectives must be defined in some configuration, got none of {search.trials}")
        left = self._affordable(sorted(played, key=self._rank), self.original)
        begun, until = (
            search.episodes,
            (1 + FINALIST_FACTOR) * search.episodes,
        )  # episodes that were not used for the selection
        (before,) = self._played([{}], begun, until)
        for first in range(0, len(left), search.finalists):
            best = left[first : first + search.finalists]
            parts = self._played([trial.parameters for trial in best], begun, until)
            longer = [trial._replace(series=part) for trial, part in zip(best, parts, strict=True)]
            if chosen := self._affordable(sorted(longer, key=self._rank), Trial(-1, {}, before, "")):
                numbers_of = {trial.number for trial in chosen}
                return [*chosen, *(trial for trial in longer if trial.number not in numbers_of)]
        raise ValueError(
            f"price must let some configuration be chosen, got {search.price:g}: the cheapest costs "
            f"{min(cost(trial, self.original) for trial in played):.4g}; give another one, or choose a trial"
        )

    def _rank(self, trial: Trial) -> tuple[float, int]:
        return self._search.losses(trial.series)[0], trial.number

    def _affordable(self, trials: Sequence[Trial], original: Trial) -> list[Trial]:
        """Return the trials whose cost in total return is within the price, over their own episodes."""
        if self._search.price is None:
            return list(trials)
        return [trial for trial in trials if cost(trial, original) <= self._search.price]

    def held_out(self, chosen: Trial) -> tuple[Episodes, Episodes]:
        """Return episodes with other seeds, of the original and of the selected configuration, with all numbers."""
        search = self._search
        each = [
            self._cells(own, search.held_out, seed=search.first_held_out, counterfactual=True)
            for own in ({}, chosen.parameters)
        ]
        run_cells([cell for cells in each for cell in cells], self._folder, engine=self._engine, progress=False)
        first, second = (joined(cells, self._folder) for cells in each)
        return first, second

    def _played(self, configurations: Sequence[Mapping[str, Any]], begun: int, until: int) -> list[dict[str, Floats]]:
        """Play a range of episodes in each configuration and return the numbers of the objectives."""
        search = self._search
        options: dict[str, Any] = {"seed": search.first_seed + begun, "counterfactual": search.counterfactual}
        each = [self._cells(own, until - begun, **options) for own in configurations]
        run_cells([cell for cells in each for cell in cells], self._folder, engine=self._engine, progress=False)
        found = []
        for cells in each:
            reported = numbers(joined(cells, self._folder))
            names = dict.fromkeys((*search.objectives, TOTAL))
            found.append({name: _of(reported, name, until - begun) for name in names})
        return found

    def _cells(self, own: Mapping[str, Any], episodes: int, **options: Any) -> list[SystemCell]:
        search = self._search
        parameters = {**search.parameters, **own}
        options |= {"episodes": episodes, "each": EPISODES_PER_CELL, "flip": search.flip}
        return system_cells(search.env_id, parameters, search.policy, **options)


def cost(trial: Trial, original: Trial) -> float:
    """Return the share of the original's total return that a configuration loses, over the trial's own episodes."""
    after = trial.series[TOTAL]
    before = float(original.series[TOTAL][: len(after)].mean())
    lost = before - float(after.mean())
    return lost / abs(before) if before else float("inf") if lost > 0 else 0.0


def distinct(search: Search, trials: Iterable[Trial]) -> list[Trial]:
    """Drop trials whose results duplicate an earlier trial's: their parameters differ without effect."""
    found: dict[str, Trial] = {}
    for trial in trials:
        numbers = {name: values[: search.least_episodes].tolist() for name, values in trial.series.items()}
        found.setdefault(json.dumps(numbers or plain(trial.parameters)), trial)
    return list(found.values())


def defined(search: Search, trial: Trial) -> bool:
    """Return whether all objectives of a trial are defined."""
    return bool(trial.series) and not np.isnan(search.losses(trial.series)).any()


def front(search: Search, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials with defined numbers for which no other trial is better in all objectives."""
    played = [trial for trial in trials if defined(search, trial)]
    if not played:
        return []
    losses = np.array([search.losses(trial.series) for trial in played])
    return [trial for trial, best in zip(played, non_dominated(-losses, keep_duplicates=True), strict=True) if best]


def importances(search: Search, study: optuna.Study) -> dict[str, dict[str, float]]:
    """Return, by objective, the share of the variation among trials that each parameter explains by itself.

    It uses functional analysis of variance of a random forest (Hutter, Hoos and Leyton-Brown, ICML 2014). The result is
    empty if there are too few trials, or if an objective is the same in all.
    """
    found: dict[str, dict[str, float]] = {}
    if len(study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))) < MIN_TRIALS_FOR_IMPORTANCE:
        return found
    for k, goal in enumerate(search.goals):
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=search.seed)
        with suppress(RuntimeError):  # zero variance
            reported = optuna.importance.get_param_importances(study, evaluator=evaluator, target=_value_of(k))
            found[goal.name] = {name: float(share) for name, share in reported.items()}
    return found


def _value_of(objective: int) -> Callable[[optuna.trial.FrozenTrial], float]:
    """Return a function that returns a trial's value in one objective."""
    return lambda trial: float(trial.values[objective])


def _of(reported: Mapping[str, Floats], name: str, episodes: int) -> Floats:
    """Return a number's values; NaN if a group or stratum never occurs."""
    return reported[name] if name in reported else np.full(episodes, np.nan)
