"""The database of a search: which configurations were tried, their results, and which ones come next.

Configurations are proposed in batches. For each batch a new sampler is created, seeded by the search's seed and the
batch. It only uses the trials of earlier batches. So the trials are the same for any number of workers or machines,
after an interruption, and if a search is made longer.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
import optuna
from optuna.exceptions import DuplicatedStudyError, StorageInternalError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from fair_envs.search.settings import Search, check_same
from fair_envs.support.aliases import Floats
from fair_envs.support.files import first_line

SETTINGS, ORIGINAL = "fair-envs search", "original"  # user attributes of the study
SERIES, STOPPED, CLAIM = "series", "stopped", "claim"  # and of its trials
STALE = 300.0  # seconds after which another machine takes over an unfinished round
LOCKED = 60.0  # seconds after which another machine takes over proposing a batch
PATIENCE = 0.5  # seconds between checks for the results of other machines
PICKLING = ("cma-es",)  # Optuna samplers that store their state as a pickle in the database
ATTEMPTS = 4  # to open a database, or read a search's settings, while another machine writes them


class Trial(NamedTuple):
    """A configuration that was tried.

    Attributes:
        number: Number of the trial; -1: the original configuration.
        parameters: The parameters that were searched.
        series: One number for each episode, by objective and for the total return; empty: the configuration is invalid.
        stopped: Why it got fewer episodes than the maximum; empty: it did not.
    """

    number: int
    parameters: Mapping[str, Any]
    series: Mapping[str, Floats]
    stopped: str


class Trials:
    """The trials of a search in a database.

    Args:
        search: The search.
        url: URL of the database, in the form of SQLAlchemy.
        name: Name of the search in it.
        me: Identifier of this worker; None: it is the only one, and resumes unfinished trials at once.

    Raises:
        ValueError: There is no database, or another search has that name in it.
    """

    def __init__(self, search: Search, url: str, *, name: str, me: str | None) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._search, self._me, self._name, self._url = search, me, name, shown(url)
        self._memory = optuna.create_study(directions=directions(search))  # what `_replayed` proposed again
        try:
            storage = _opened(url)
            with self._reading():
                known = optuna.get_all_study_names(storage)  # not their trials: another machine may be creating it
                settings = _settings(storage, name) if name in known else None
            if settings is not None:
                check_same(settings, search, where=f"storage, under the name {name!r},")
            with self._reading():
                self._study = optuna.create_study(
                    storage=storage, study_name=name, directions=directions(search), load_if_exists=True
                )
            self._study.set_user_attr(SETTINGS, search.as_dict())
        except (SQLAlchemyError, ImportError, StorageInternalError) as error:
            raise ValueError(
                f"storage must be the URL of a database, got {self._url!r}: {_output(error, url)}"
            ) from None

    # ------------------------------------------------------------------------------------------------ what is done

    @property
    def original(self) -> Trial | None:
        """The original configuration, if it has been played."""
        with self._reading():
            kept = self._study.user_attrs.get(ORIGINAL)
            return None if kept is None else Trial(-1, {}, _arrays(kept), "")

    def keep_original(self, series: Mapping[str, Floats]) -> None:
        """Store the results of the original configuration."""
        self._study.set_user_attr(ORIGINAL, _lists(series))

    def done(self, *, below: int | None = None) -> list[Trial]:
        """Return the finished trials; with ``below``, only those with smaller numbers."""
        return [self._read(trial) for trial in self._done(self._search.trials if below is None else below)]

    def frozen(self) -> optuna.Study:
        """Return the finished trials as an independent Optuna study."""
        return self._copied(self._search.trials)

    # ----------------------------------------------------------------------------------------------- what comes next

    def propose(self, first: int, last: int) -> None:
        """Propose the batch that begins with a number, up to another number, unless it exists already.

        The first trial of all is the original configuration, if the ranges allow it.
        """
        if len(self._all()) > last:
            return
        with self._lock(first):
            there = len(self._all())
            for trial in self._proposed(first)[there - first : last + 1 - first]:
                self._study.add_trial(trial)

    def claimed(self, numbers: Sequence[int], *, most: int) -> list[Trial]:
        """Return trials with these numbers to play here; empty: other machines play them, or all are done."""
        waiting = [t for t in self._of(numbers) if not t.state.is_finished()]
        if self._me is None:
            return [self._read(trial) for trial in waiting]
        free = [trial for trial in waiting if self._is_free(trial)][:most]
        self.stamp([trial.number for trial in free])
        mine = [t for t in self._of([t.number for t in free]) if t.user_attrs[CLAIM][0] == self._me]
        return [self._read(trial) for trial in mine]

    def stamp(self, numbers: Sequence[int]) -> None:
        """Mark trials as being played by this worker, for other machines."""
        if self._me is not None:
            for trial in self._of(numbers):
                self._storage.set_trial_user_attr(trial._trial_id, CLAIM, [self._me, time.time()])

    def finished(self, numbers: Sequence[int]) -> bool:
        """Return whether all of these trials are done."""
        return all(trial.state.is_finished() for trial in self._of(numbers))

    def tell(self, number: int, series: Mapping[str, Floats], *, stopped: str = "") -> None:
        """Store a trial's results; empty: the configuration is invalid, or a number is undefined in it."""
        (trial,) = self._of([number])
        if trial.state.is_finished():  # by another machine, with the same numbers
            return
        values = [goal.value(series[goal.name]) for goal in self._search.goals] if series else []
        for name, value in {SERIES: _lists(series), STOPPED: stopped}.items():
            self._storage.set_trial_user_attr(trial._trial_id, name, value)
        defined = bool(values) and not np.isnan(values).any()
        state = TrialState.COMPLETE if defined else TrialState.FAIL
        self._study.tell(number, values if defined else None, state=state, skip_if_finished=True)

    # -------------------------------------------------------------------------------------------------------- inside

    @property
    def _storage(self) -> Any:
        return self._study._storage

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Name the database in every error raised because its content was not written by this class."""
        try:
            yield
        except (SQLAlchemyError, StorageInternalError):  # no answer
            raise
        except Exception as error:
            raise ValueError(
                f"storage must hold a search as fair-envs writes it, got {self._url}, which is damaged "
                f"({type(error).__name__}: {_output(error, self._url)}); restore a copy, or begin again elsewhere"
            ) from error

    def _all(self) -> list[FrozenTrial]:
        with self._reading():
            trials = self._study.get_trials(deepcopy=False)
            if [trial.number for trial in trials] != list(range(len(trials))):
                raise ValueError("its trials are not numbered from 0 on")
            return trials

    def _of(self, numbers: Sequence[int]) -> list[FrozenTrial]:
        trials = self._all()
        return [trials[number] for number in numbers]

    def _done(self, below: int) -> list[FrozenTrial]:
        return [trial for trial in self._all()[:below] if trial.state.is_finished()]

    def _copied(self, below: int) -> optuna.Study:
        """Return an in-memory study with the finished trials with smaller numbers."""
        copy = optuna.create_study(directions=directions(self._search))
        copy.add_trials(self._done(below))
        return copy

    def _proposed(self, first: int) -> list[FrozenTrial]:
        """Return the complete batch that begins with a number, from the trials before it."""
        replayed = self._search.sampler in PICKLING
        study = self._replayed(first) if replayed else self._copied(first)
        return [
            optuna.trial.create_trial(
                state=TrialState.RUNNING,
                params=trial.params,
                distributions=trial.distributions,
                system_attrs={} if replayed else trial.system_attrs,
            )
            for trial in self._asked(study, first)
        ]

    def _asked(self, study: optuna.Study, first: int) -> list[FrozenTrial]:
        """Return the batch that a sampler proposes, or has proposed, in a study of the trials before it."""
        if len(study.trials) > first:
            return study.trials[first : first + self._search.batch]
        if first == 0 and (original := self._suggestions()) is not None:
            study.enqueue_trial(original)
        distributions = {name: one.distribution() for name, one in self._search.dimensions.items()}
        study.sampler = sampler(self._search, first)
        asked = [study.ask(distributions).number for _ in range(self._search.batch)]
        return [study.trials[number] for number in asked]

    def _replayed(self, below: int) -> optuna.Study:
        """Return the in-memory study in which earlier batches were proposed again and got the database's numbers.

        This recreates the sampler's state without reading it from the database. Optuna would store it there as a
        pickle, which can run arbitrary code.

        Raises:
            ValueError: The database contains other configurations than the search proposes.
        """
        for first in range(0, below, self._search.batch):
            for again, kept in zip(self._asked(self._memory, first), self._all()[first:below], strict=False):
                if again.params != kept.params:
                    raise ValueError(
                        f"storage must hold what the search proposed, got trial {kept.number} with {kept.params} in "
                        f"place of {again.params}; begin again in a new folder"
                    )
                if not again.state.is_finished():
                    self._memory.tell(again.number, kept.values, state=kept.state)
        return self._memory

    @contextmanager
    def _lock(self, first: int) -> Iterator[None]:
        """Prevent other machines from proposing the same batch; names of studies are unique in a database."""
        if self._me is None:
            yield
            return
        name, since = f"{self._name}: who proposes {first}", time.time()
        while True:
            try:
                optuna.create_study(storage=self._storage, study_name=name)
                break
            except DuplicatedStudyError:
                if time.time() - since > LOCKED:
                    self._unlock(name)
                time.sleep(PATIENCE)
        try:
            yield
        finally:
            self._unlock(name)

    def _unlock(self, name: str) -> None:
        try:
            optuna.delete_study(study_name=name, storage=self._storage)
        except KeyError:  # another machine was faster
            return

    def _is_free(self, trial: FrozenTrial) -> bool:
        who, at = trial.user_attrs.get(CLAIM, (None, -np.inf))
        return bool(who == self._me or time.time() - at > STALE)

    def _read(self, trial: FrozenTrial) -> Trial:
        with self._reading():
            dimensions = self._search.dimensions
            parameters = {name: dimensions[name].value(trial.params[name]) for name in dimensions}
            series = _arrays(trial.user_attrs.get(SERIES, {}))
            return Trial(trial.number, parameters, series, trial.user_attrs.get(STOPPED, ""))

    def _suggestions(self) -> dict[str, Any] | None:
        """Return the original configuration as suggestions of Optuna; None if it is outside the ranges."""
        params = self._search.rules().params
        found = {name: one.suggestion(getattr(params, name)) for name, one in self._search.dimensions.items()}
        return None if None in found.values() else found


def directions(search: Search) -> list[Literal["minimize", "maximize"]]:
    """Return the direction to optimise for each objective."""
    return [goal.direction for goal in search.goals]


def sampler(search: Search, first: int) -> optuna.samplers.BaseSampler:
    """Return the sampler that proposes the batch that begins with a number."""
    seed = int(np.random.SeedSequence([search.seed, first]).generate_state(1)[0])
    if search.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    if search.sampler == "cma-es":
        return optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
    if search.sampler == "nsga-ii":
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=2 * search.batch)
    return optuna.samplers.RandomSampler(seed=seed)


def _opened(url: str) -> optuna.storages.RDBStorage:
    """Return a database; several machines may be creating its tables at once."""
    for attempt in range(ATTEMPTS):
        try:
            return optuna.storages.RDBStorage(url)
        except DBAPIError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(PATIENCE)
    raise AssertionError("every attempt returns or raises")


def _settings(storage: optuna.storages.RDBStorage, name: str) -> Mapping[str, Any]:
    """Return the settings of the search with a name; another machine may have created it without settings so far."""
    for _ in range(ATTEMPTS):
        if kept := optuna.load_study(study_name=name, storage=storage).user_attrs.get(SETTINGS):
            return dict(kept)
        time.sleep(PATIENCE)
    return {}


def shown(url: str) -> str:
    """Return a database's URL without its password."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except (SQLAlchemyError, ValueError):
        return url


def _output(error: BaseException, url: str) -> str:
    """Return an error's message without the database's password."""
    try:
        password = make_url(url).password
    except (SQLAlchemyError, ValueError):
        password = None
    return first_line(error).replace(str(password), "***") if password else first_line(error)


def _lists(series: Mapping[str, Floats]) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in series.items()}


def _arrays(kept: Mapping[str, Sequence[float]]) -> dict[str, Floats]:
    return {name: np.array(values, np.float64) for name, values in kept.items()}
