"""The database of a search: which configurations were tried, what they gave, and which ones come next.

Configurations are proposed in batches. A sampler that is made anew for each, seeded by the search's seed and the batch,
sees the trials of earlier batches and nothing else. So the same trials come whatever the number of workers or machines,
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

from fair_envs.aliases import Floats
from fair_envs.files import said
from fair_envs.search.settings import Search, check_same

SETTINGS, ORIGINAL = "fair-envs search", "original"  # user attributes of the study
SERIES, STOPPED, CLAIM = "series", "stopped", "claim"  # and of its trials
STALE = 300.0  # seconds after which another machine takes over what one has not finished a round of
LOCKED = 60.0  # seconds after which another machine proposes a batch that one has begun to
PATIENCE = 0.5  # seconds between two looks at what other machines have done
PICKLING = ("cma-es",)  # samplers of Optuna's that keep their state as a pickle in the database
ATTEMPTS = 4  # to open a database whose tables, or to read a search whose settings, another machine is writing


class Trial(NamedTuple):
    """A configuration that was tried.

    Attributes:
        number: Of the trial; -1: the original configuration.
        parameters: Those that were searched.
        series: By objective, and of the total return, one number of each episode; empty: there is no such world.
        stopped: Why it got fewer episodes than the most; empty: it did not.
    """

    number: int
    parameters: Mapping[str, Any]
    series: Mapping[str, Floats]
    stopped: str


class Trials:
    """The trials of a search in a database.

    Args:
        search: What is searched.
        url: Of the database, as SQLAlchemy understands it.
        name: Of the search in it.
        me: Who works on it; None: nobody else does, and what was not finished is taken up at once.

    Raises:
        ValueError: No database, or one in which another search has that name.
    """

    def __init__(self, search: Search, url: str, *, name: str, me: str | None) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._search, self._me, self._name, self._url = search, me, name, shown(url)
        self._memory = optuna.create_study(directions=directions(search))  # what `_replayed` has proposed again
        try:
            storage = _opened(url)
            with self._reading():
                known = optuna.get_all_study_names(storage)  # not their trials: another machine may be making the study
                settings = _settings(storage, name) if name in known else None
            if settings is not None:
                check_same(settings, search, where=f"storage, under the name {name!r},")
            with self._reading():
                self._study = optuna.create_study(
                    storage=storage, study_name=name, directions=directions(search), load_if_exists=True
                )
            self._study.set_user_attr(SETTINGS, search.as_dict())
        except (SQLAlchemyError, ImportError, StorageInternalError) as error:
            raise ValueError(f"storage must be the URL of a database, got {self._url!r}: {_said(error, url)}") from None

    # ------------------------------------------------------------------------------------------------ what is done

    @property
    def original(self) -> Trial | None:
        """The original configuration, if it has been played."""
        with self._reading():
            kept = self._study.user_attrs.get(ORIGINAL)
            return None if kept is None else Trial(-1, {}, _arrays(kept), "")

    def keep_original(self, series: Mapping[str, Floats]) -> None:
        """Write what the original configuration gave."""
        self._study.set_user_attr(ORIGINAL, _lists(series))

    def done(self, *, below: int | None = None) -> list[Trial]:
        """Return the trials of the search that are finished; with ``below``, those of smaller numbers alone."""
        return [self._read(trial) for trial in self._done(self._search.trials if below is None else below)]

    def frozen(self) -> optuna.Study:
        """Return the finished trials as a study of Optuna's that nobody else works on."""
        return self._copied(self._search.trials)

    # ----------------------------------------------------------------------------------------------- what comes next

    def propose(self, first: int, last: int) -> None:
        """Propose the batch that begins with a number, up to another one, as far as it is not there.

        The first trial of all is the original configuration, if the ranges allow it.
        """
        if len(self._all()) > last:
            return
        with self._lock(first):
            there = len(self._all())
            for trial in self._proposed(first)[there - first : last + 1 - first]:
                self._study.add_trial(trial)

    def claimed(self, numbers: Sequence[int], *, most: int) -> list[Trial]:
        """Return trials of those numbers that are to be played here; none: others play them, or all are done."""
        waiting = [t for t in self._of(numbers) if not t.state.is_finished()]
        if self._me is None:
            return [self._read(trial) for trial in waiting]
        free = [trial for trial in waiting if self._is_free(trial)][:most]
        self.stamp([trial.number for trial in free])
        mine = [t for t in self._of([t.number for t in free]) if t.user_attrs[CLAIM][0] == self._me]
        return [self._read(trial) for trial in mine]

    def stamp(self, numbers: Sequence[int]) -> None:
        """Tell other machines that trials are being played here."""
        if self._me is not None:
            for trial in self._of(numbers):
                self._storage.set_trial_user_attr(trial._trial_id, CLAIM, [self._me, time.time()])

    def finished(self, numbers: Sequence[int]) -> bool:
        """Return whether all of those numbers are done."""
        return all(trial.state.is_finished() for trial in self._of(numbers))

    def tell(self, number: int, series: Mapping[str, Floats], *, stopped: str = "") -> None:
        """Write what a trial gave; nothing: there is no such world, or a number is undefined in it."""
        (trial,) = self._of([number])
        if trial.state.is_finished():  # by another machine, which has the same numbers
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
        """Name the database in whatever is raised because it holds something else than this class has written."""
        try:
            yield
        except (SQLAlchemyError, StorageInternalError):  # it does not answer
            raise
        except Exception as error:
            raise ValueError(
                f"storage must hold a search as fair-envs writes it, got {self._url}, which is damaged "
                f"({type(error).__name__}: {_said(error, self._url)}); restore it from a copy, or begin again elsewhere"
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
        """Return a study in memory with the finished trials of smaller numbers."""
        copy = optuna.create_study(directions=directions(self._search))
        copy.add_trials(self._done(below))
        return copy

    def _proposed(self, first: int) -> list[FrozenTrial]:
        """Return the whole batch that begins with a number, from the trials before it."""
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
        """Return the batch that a sampler proposes in a study of the trials before it, or has proposed there."""
        if len(study.trials) > first:
            return study.trials[first : first + self._search.batch]
        if first == 0 and (original := self._suggestions()) is not None:
            study.enqueue_trial(original)
        distributions = {name: one.distribution() for name, one in self._search.dimensions.items()}
        study.sampler = sampler(self._search, first)
        asked = [study.ask(distributions).number for _ in range(self._search.batch)]
        return [study.trials[number] for number in asked]

    def _replayed(self, below: int) -> optuna.Study:
        """Return the study in memory in which earlier batches were proposed again and got the database's numbers.

        The sampler's state is made anew in this way, and never read from the database: as Optuna would keep it there,
        it is a pickle, which runs whatever code its writer wants.

        Raises:
            ValueError: The database holds other configurations than the search proposes.
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
        """Keep other machines from proposing the same batch: the names of studies are unique in a database."""
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
        """Return the original configuration as Optuna would suggest it; None if it lies outside the ranges."""
        params = self._search.rules().params
        found = {name: one.suggestion(getattr(params, name)) for name, one in self._search.dimensions.items()}
        return None if None in found.values() else found


def directions(search: Search) -> list[Literal["minimize", "maximize"]]:
    """Return which way each objective should go."""
    return [goal.direction for goal in search.goals]


def sampler(search: Search, first: int) -> optuna.samplers.BaseSampler:
    """Return what proposes the batch that begins with a number."""
    seed = int(np.random.SeedSequence([search.seed, first]).generate_state(1)[0])
    if search.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    if search.sampler == "cma-es":
        return optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
    if search.sampler == "nsga-ii":
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=2 * search.batch)
    return optuna.samplers.RandomSampler(seed=seed)


def _opened(url: str) -> optuna.storages.RDBStorage:
    """Return a database; several machines may be making its tables at once."""
    for attempt in range(ATTEMPTS):
        try:
            return optuna.storages.RDBStorage(url)
        except DBAPIError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(PATIENCE)
    raise AssertionError("every attempt returns or raises")


def _settings(storage: optuna.storages.RDBStorage, name: str) -> Mapping[str, Any]:
    """Return the settings of the search of a name; another machine may have made it and be about to write them."""
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


def _said(error: BaseException, url: str) -> str:
    """Return what an error says, without the database's password."""
    try:
        password = make_url(url).password
    except (SQLAlchemyError, ValueError):
        password = None
    return said(error).replace(str(password), "***") if password else said(error)


def _lists(series: Mapping[str, Floats]) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in series.items()}


def _arrays(kept: Mapping[str, Sequence[float]]) -> dict[str, Floats]:
    return {name: np.array(values, np.float64) for name, values in kept.items()}
