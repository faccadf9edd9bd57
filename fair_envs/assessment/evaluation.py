"""One evaluation for any policy in any environment with a record."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.assessment.bounds import WELFARE_BOUNDS, bounds_of, within
from fair_envs.assessment.played import System, prepared, system_of
from fair_envs.assessment.policies import acts_likely, is_run, kind_of, name_of, training_of_run
from fair_envs.assessment.pooling import (
    Difference,
    Largest,
    Lowest,
    Overall,
    People,
    RateOf,
    Statistic,
    ToOthers,
    cells_of,
    noise,
    pooled_estimate,
    resampled,
    shuffled,
    shuffled_totals,
    totals_by,
    totals_of_episodes,
)
from fair_envs.assessment.recording import MEMBERSHIPS, WHO, Batch, Followed, Recorder
from fair_envs.assessment.result import Evaluation, Row
from fair_envs.assessment.twins import no_twins, not_twinned, twin_rows
from fair_envs.core import Rules, check_count, check_seeds
from fair_envs.core.interactions import PREFIX
from fair_envs.evaluation import Policy
from fair_envs.evaluation.policy import Act
from fair_envs.evaluation.systems import WELFARE
from fair_envs.metrics.intervals import Estimate, check_level, mean_interval, share_interval
from fair_envs.metrics.measures import Measure, check_without_probs
from fair_envs.metrics.rates import COMPARED, RATES, Rate, RateMeasure
from fair_envs.support.aliases import Floats, Ints, OnProgress
from fair_envs.support.parameters import NonNegativeInt, checked
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import Task

RESAMPLES = 2000
REPLAYS = 20  # shuffles with which measures are computed again, which takes longer than pooled rates
LIMIT = 0.95
SUCCESS = "successful episodes"  # the performance that is a share of the episodes
SHUFFLED = "shuffled gaps"  # in `Evaluation.of_episodes`
COURSE, TIMES_OF_COURSE = "course", "times of the course"  # there
STRATA = "strata: "  # there, before the name of a legitimate factor
TIMES = 50  # points of the curve of the gap

WithTwins = bool | Literal["auto"]


def evaluate(
    env: Any,
    policy: Policy | Act | Any,
    *,
    episodes: int = 64,
    seed: int = TEST_SEEDS,
    task: Task | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    twins: WithTwins = "auto",
    level: float = 0.95,
    deterministic: bool = False,
    lanes: int = 32,
    shuffles: int = 100,
    threads: int = 1,
    name: str = "",
    each: OnProgress = lambda: None,
) -> Evaluation:
    """Play test episodes with a policy, and measure its performance and what each group of people gets.

    Rates are pooled over all episodes: the sum of a group's benefits divided by the sum of its demands. Each gap has a
    noise floor: the same gap with the group memberships shuffled among the individuals who count in the rate, such as
    the qualified, in the same episode and stratum. In environments of this package, labels (correct decisions) are read
    from the ground truth, also those that the environment hides from policies.

    Args:
        env: An id, such as ``"FairLending-v0"`` or ``"my_module:MyEnv-v0"``, also one that only Gymnasium knows; rules;
            an environment of this package with any interface; or your own Gymnasium environment with a ``fair_spec``
            (see `fair_envs.wrappers.Annotate`). A wrapped Gymnasium environment is played with its wrappers, but the
            rewards are those that the environment gives, before wrappers change them. An id is played with the
            parameters of the task (`Task.parameters`), which are not the defaults of `gymnasium.make`; a given
            environment is played as it is.
        policy: ``"random"``, the name of a scripted policy, the folder of a run, a Stable-Baselines3 model or the path
            of its zip, a `Policy`, a function from observations (B, agents, ...) and uniform numbers (B, agents) to
            actions (B, agents, ...), or a dictionary with a function for each agent's name, from its observations (B,
            ...) and uniform numbers (B,) to its actions (B, ...). Loading a zip runs the code in it: only name files
            that you trust. A zip lacks the statistics of `VecNormalize`: give the loaded model with its `VecNormalize`
            instead.
        episodes: Number of episodes; episode e is the environment's first one with the seed ``seed + e``.
        seed: Seed of the first episode.
        task: What is measured; None: the environment's own task, see `fair_envs.tasks`.
        parameters: Parameters of an environment that is given by its id; they override those of the task, or of the
            training if the policy is a run.
        twins: Whether to play counterfactual twins; ``"auto"``: if an attribute can be changed.
        level: Coverage of the intervals, in (0, 1).
        deterministic: Whether Stable-Baselines3 models take their most likely actions. By default they sample, as in
            their training.
        lanes: Number of episodes that are played in parallel. Only measures that continue across episodes depend on it.
        shuffles: Number of shuffles for the noise floor of pooled gaps; 0: no noise floors. Measures use at most 20.
        threads: Number of threads that share the lanes.
        name: Name of the policy for tables; empty: that of the policy.
        each: Called after each batch of ``lanes`` episodes.

    Raises:
        ValueError: An argument is outside its range, the record does not contain what the task needs, the policy is
            unknown or for another environment, or twins are required and impossible.
        TypeError: The environment or the policy is of another kind.

    Example:
        >>> from fair_envs.assessment import evaluate
        >>> found = evaluate("FairLending-v0", "max-reward", episodes=4, parameters={"horizon": 200})
        >>> found.worst_off
        'disadvantaged'
    """
    for argument, number in {"episodes": episodes, "lanes": lanes, "threads": threads}.items():
        check_count(argument, number)
    shuffles = checked("shuffles", shuffles, NonNegativeInt)
    if not isinstance(twins, bool) and twins != "auto":
        raise ValueError(f"twins must be True, False or 'auto', got {twins!r}")
    name = checked("name", name, str)
    check_level(level)
    check_seeds(seed, episodes)
    run = Path(policy) if isinstance(policy, str | Path) and is_run(str(policy)) else None
    system, chosen = prepared(env, policy, task=task, parameters=parameters, deterministic=deterministic)
    plan = Plan(system, lanes=min(lanes, episodes), shuffles=shuffles, level=level, seed=seed)
    reason = no_twins(system)
    if twins is True and reason:
        raise ValueError(f"twins must be False or 'auto' here, got True: {reason}")
    played = plan.play(chosen, episodes=episodes, threads=threads, each=each)
    rows = list(plan.rows(played))
    if twins and not reason:
        given: dict[str, Any] = {"episodes": episodes, "seed": seed, "lanes": plan.lanes, "level": level}
        rows += twin_rows(system, chosen, threads=threads, **given)
    about: dict[str, Any] = {"episodes": episodes, "seed": seed, "level": level, "shuffles": shuffles}
    about |= {"task": system.task.env_id, "parameters": dict(system.parameters), "kind": kind_of(policy)}
    about |= {} if run is None else {"run": training_of_run(run)}
    about |= {"uses_truth": True} if chosen.uses_truth else {}
    return Evaluation(
        policy=name or name_of(policy),
        env_id=system.env_id,
        rate=plan.rate.name,
        groups=plan.recorder.group_names,
        rows=tuple(rows),
        about={**about, "deterministic": deterministic and acts_likely(policy), "summary": system.task.summary},
        curve=plan.curve(played),
        of_episodes=plan.of_episodes,
        notes=(*plan.notes(), *(not_twinned(system) if twins and not reason else ())),
    )


def check(env: Any, *, task: Task | str | None = None, parameters: Mapping[str, Any] | None = None) -> None:
    """Raise an error if an environment cannot be evaluated, before anything is played; see `evaluate`."""
    Plan(system_of(env, task=task, parameters=parameters), lanes=1, shuffles=0, level=0.95, seed=0)


class Played(NamedTuple):
    """What was recorded over all batches."""

    people: People
    episodes: int
    rewards: Floats  # (episodes, agents)
    lengths: Ints  # (episodes,)
    success: Floats  # (episodes,)
    totals: Floats  # (TIMES, episodes, groups, 2), since the start of the episode
    times: Ints  # (TIMES,)
    followed: Mapping[str, list[Followed]]  # by measure, in its own order
    noise: Mapping[str, list[list[Followed]]]  # by measure, for each batch and shuffle


@dataclass(frozen=True)
class Grouping:
    """Groups that are compared.

    Attributes:
        names: The groups' names.
        index: Returns the group of each individual, shape (n,); -1: none.
        attribute: The attribute; empty: the task's groups.
        within: The index of a legitimate factor and a code; None: everyone is compared.
        rates: The rates that are summed.
    """

    names: tuple[str, ...]
    attribute: int | None = None
    within: tuple[int, int] | None = None
    rates: tuple[int, ...] = ()

    def index(self, people: People) -> Ints:
        """Return the group of each individual, shape (n,)."""
        own = people.group if self.attribute is None else people.sensitive[:, self.attribute]
        if self.within is None:
            return own
        factor, code = self.within
        return np.where(people.legitimate[:, factor] == code, own, -1)


class Compared(NamedTuple):
    """A number to report: a statistic of groups."""

    section: str
    name: str
    of: str
    grouping: Grouping
    statistic: Statistic
    is_gap: bool = True


class Plan:
    """What is measured in an environment; everything is checked before an episode is played.

    Args:
        system: The environment and its task.
        lanes: Number of episodes that are played in parallel.
        shuffles: Number of shuffles for noise floors.
        level: Coverage of the intervals.
        seed: Seed of the first episode, and of resampling and shuffling.

    Attributes:
        rate: The task's rate.
        recorder: Records the episodes.
        of_episodes: See `Evaluation`; filled by `rows`.

    Raises:
        ValueError: The record does not contain what the task needs.
    """

    def __init__(self, system: System, *, lanes: int, shuffles: int, level: float, seed: int) -> None:
        self.system, self.task, self.seen = system, system.task, system.seen
        self.lanes, self.level, self.seed = system.lanes(lanes), level, seed
        self.shuffles = shuffles
        self.rate = self.task.rate_of(self.seen)
        team = getattr(type(self.seen), "team_outcome", Rules.team_outcome)
        if self.task.performance == "success" and team is Rules.team_outcome:
            raise ValueError(f"performance must be 'reward' for {self.seen.name}, which has no teams, got 'success'")
        self.measures = {name: self._measure(name, self.lanes) for name in ("short", "long")}
        for name, measure in self.measures.items():
            check_without_probs(measure, f"{name} of the task")
        self.supported = dict(self._supported())
        measured = (rate for measure in self.measures.values() for rate in rates_in(measure))
        rates = dict.fromkeys([self.rate, *(rate for own in self.supported.values() for rate in own), *measured])
        self.rates = list(rates)
        self.of_episodes: dict[str, Floats] = {}
        self.recorder = Recorder(self.seen.spec, self.rates, groups=self.task.groups, keep=self._kept())

    def _measure(self, name: str, lanes: int) -> Measure:
        try:
            return self.task.measure(name, self.seen, lanes)
        except AttributeError as error:
            if self.task.env_id == self.system.env_id:
                raise
            raise ValueError(
                f"task must be one for {self.system.env_id}, got that of {self.task.env_id}, whose {name}-term measure "
                f"needs its rules: {error}"
            ) from error

    def _kept(self) -> frozenset[str] | None:
        """Return the columns that the measures read; None: all, if a measure does not list them."""
        names = [measure.reads for measure in self.measures.values()]
        if not all(names):
            return None
        return frozenset([*(PREFIX + name for name in WHO), *(column for own in names for column in own)])

    def _supported(self) -> Iterator[tuple[str, tuple[Rate, ...]]]:
        """Yield the group notions that the record supports, with their rates."""
        spec, of_agents = self.seen.spec, self.seen.multi_agent
        for name, rates in COMPARED.items():
            if name == "needs_met" and not spec.amounts:
                continue  # it is equal opportunity then
            try:
                for rate in rates:
                    rate.check(spec, of_agents=of_agents)
            except ValueError:
                continue
            yield name, rates

    # Playing ----------------------------------------------------------------------------------------------------------

    def play(self, policy: Policy, *, episodes: int, threads: int, each: OnProgress) -> Played:
        """Play the episodes in batches; follow the measures, also with shuffled group memberships."""
        seeds = check_seeds(self.seed, episodes)
        copies = min(REPLAYS, self.shuffles)
        again = {name: self._measure(name, copies * self.lanes) for name in self.measures if self._shuffled(name)}
        followed: dict[str, list[Followed]] = {name: [] for name in self.measures}
        noisy: dict[str, list[list[Followed]]] = {name: [] for name in self.measures}
        batches, success = [], self.task.performance == "success"
        for part in self.system.parts(seeds, policy, lanes=self.lanes, success=success, threads=threads):
            batch = self.recorder.play(self.system, policy, part.world, episodes=part.episodes)
            for name, measure in self.measures.items():
                followed[name] += batch.follow(measure)
            for name, measure in again.items():
                cell = cells_of(batch.people.episode, self._strata(measure, batch.people))
                orders = np.stack(list(shuffled(cell, count=copies, seed=self.seed + part.first)))
                noisy[name].append(batch.follow(measure, orders=orders))
            batches.append(_without_steps(batch, part.first))
            each()
        return _joined(batches, episodes, followed, noisy)

    def _shuffled(self, name: str) -> bool:
        """Return whether a measure is followed with shuffled group memberships; not if it is known to read none."""
        names = self.measures[name].reads
        return self.shuffles > 0 and (not names or bool(set(names) & set(MEMBERSHIPS)))

    def _strata(self, measure: Measure, people: People) -> Ints:
        """Return who may get each other's labels in a measure: those who count in the same rates, in a stratum."""
        own = [self.rates.index(rate) for rate in rates_in(measure)]
        keys: list[NDArray[Any]] = [people.sums[:, own, 1] > 0]
        if measure.conditional:
            keys.append(people.legitimate)
        return np.unique(np.hstack(keys), axis=0, return_inverse=True)[1].reshape(-1)

    # Rows -------------------------------------------------------------------------------------------------------------

    def rows(self, played: Played) -> Iterator[Row]:
        """Yield all numbers."""
        yield self._performance(played)
        yield from self._pooled(self._all_compared(played), played)
        for name, title in (("short", "short-term"), ("long", "long-term")):
            yield from self._of_measure(name, title, played)
        self.of_episodes |= dict(self._totals_of_strata(played.people))
        self.of_episodes |= {TIMES_OF_COURSE: played.times.astype(np.float64), COURSE: played.totals.sum(axis=1)}
        if self.seen.multi_agent:
            for welfare, function in WELFARE.items():
                found = within(self._mean(function(played.rewards)), WELFARE_BOUNDS.get(welfare))
                yield Row("welfare", f"{welfare} of returns", "agents", found)

    def _performance(self, played: Played) -> Row:
        if self.task.performance == "success":
            self.of_episodes["performance"] = played.success
            estimate = share_interval(played.success, level=self.level)
            return Row("performance", SUCCESS, "team", estimate)
        per_step = played.rewards.mean(axis=1) / played.lengths
        self.of_episodes["performance"] = per_step
        of = "mean of agents" if self.seen.multi_agent else "decision-maker"
        return Row("performance", "reward per step", of, self._mean(per_step))

    def _mean(self, values: Any) -> Estimate:
        return mean_interval(values, level=self.level, undefined="omit")

    def _all_compared(self, played: Played) -> list[Compared]:
        return [*self._of_rate(), *self._of_notions(played), *self._of_welfare(), *self._of_selection()]

    def _of_selection(self) -> Iterator[Compared]:
        """Yield how often each group gets decision 1, where the task's rate is another one."""
        selection = RATES["demographic_parity"]
        if selection in self.rates and selection != self.rate:
            names = self.recorder.group_names
            groups = replace(self._everything(names), rates=(self.rates.index(selection),))
            for place, name in enumerate(names):
                yield Compared("selection", selection.name, name, groups, RateOf(place), is_gap=False)

    def _of_rate(self) -> Iterator[Compared]:
        names = self.recorder.group_names
        groups = self._everything(names)
        for place, name in enumerate(names):
            yield Compared("rate", self.rate.name, name, groups, RateOf(place), is_gap=False)
        yield from _signed("gap", self.rate.name, groups, 0)
        yield Compared("gap", self.rate.name, "largest", groups, Largest())

    def _of_notions(self, played: Played) -> Iterator[Compared]:
        task_groups = self._task_grouping()
        for name, rates in self.supported.items():
            places = tuple(self.rates.index(rate) for rate in rates)
            if name == "outcome_parity" and self._no_outcomes(played.people.sums[:, places[0]], played):
                continue
            for attribute, grouping in self._groupings():
                if attribute == task_groups and rates == (self.rate,):
                    continue  # it is the task's rate
                if len(places) > 1:
                    yield Compared("notion", name, f"{attribute}: largest", grouping, Largest(places))
                elif len(grouping.names) == 2:
                    yield from _signed("notion", name, grouping, places[0], prefix=f"{attribute}: ")
                else:
                    yield Compared("notion", name, f"{attribute}: largest", grouping, Largest(places))
        yield from self._of_strata()

    def _no_outcomes(self, outcomes: Floats, played: Played) -> bool:
        """Return whether there are no outcomes, or the decisions are the only outcomes: demographic parity has them."""
        selection = RATES["demographic_parity"]
        if selection not in self.rates:
            return not outcomes[:, 0].any()
        return not outcomes[:, 0].any() or np.array_equal(outcomes, played.people.sums[:, self.rates.index(selection)])

    def _task_grouping(self) -> str:
        """Return the attribute whose values are the task's groups; empty: none."""
        sensitive, groups = self.seen.spec.sensitive, self.task.groups
        if groups is None and len(sensitive) == 1:
            (name,) = sensitive
            return name if len(sensitive[name]) == len(self.recorder.group_names) else ""
        return groups if isinstance(groups, str) else ""

    def _groupings(self) -> Iterator[tuple[str, Grouping]]:
        for place, (attribute, values) in enumerate(self.seen.spec.sensitive.items()):
            if len(values) > 1:
                yield attribute, self._everything(tuple(values), attribute=place)

    def _everything(self, names: tuple[str, ...], *, attribute: int | None = None) -> Grouping:
        return Grouping(names, attribute=attribute, rates=tuple(range(len(self.rates))))

    def _of_strata(self) -> Iterator[Compared]:
        """Yield the parity of returns, outcomes or decisions within each value of each legitimate factor."""
        notion = next(
            (name for name in ("return_parity", "demographic_parity", "outcome_parity") if name in self.supported), ""
        )
        if not notion:
            return
        place = self.rates.index(self.supported[notion][0])
        for factor, (name, values) in enumerate(self.seen.spec.legitimate.items()):
            for code, value in enumerate(values):
                for attribute, grouping in self._groupings():
                    if attribute == name:
                        continue
                    within = replace(grouping, within=(factor, code), rates=(place,))
                    of = f"{attribute}, {name} {value}: "
                    if len(grouping.names) == 2:
                        yield from _signed("notion", "conditional_parity", within, 0, prefix=of)
                    else:
                        yield Compared("notion", "conditional_parity", f"{of}largest", within, Largest())

    def _totals_of_strata(self, people: People) -> Iterator[tuple[str, Floats]]:
        """Yield the benefits and demands of the groups in the task's rate by the values of each legitimate factor."""
        count = len(self.recorder.group_names)
        for factor, (name, values) in enumerate(self.seen.spec.legitimate.items()):
            cell = np.where(people.group >= 0, people.group * len(values) + people.legitimate[:, factor], -1)
            totals = totals_by(cell, people.sums[:, 0], count=count * len(values))
            yield f"{STRATA}{name}", totals.reshape(count, len(values), 2)

    def _of_welfare(self) -> Iterator[Compared]:
        groups = self._everything(self.recorder.group_names)
        yield Compared("welfare", self.rate.name, "everyone", groups, Overall(), is_gap=False)
        yield Compared("welfare", self.rate.name, "worst-off group", groups, Lowest(), is_gap=False)

    def _pooled(self, compared: Sequence[Compared], played: Played) -> Iterator[Row]:
        """Yield the rows of statistics of pooled rates, with their noise floors."""
        people, episodes = played.people, played.episodes
        groupings = list(dict.fromkeys(one.grouping for one in compared))
        sums = {own: np.ascontiguousarray(people.sums[:, list(own.rates)]) for own in groupings}
        totals: dict[Grouping, Floats] = {}
        samples: dict[Grouping, Floats] = {}
        index = {own: own.index(people) for own in groupings}
        for own in groupings:
            totals[own] = totals_of_episodes(people, index[own], sums[own], count=len(own.names), episodes=episodes)
            samples[own] = resampled(totals[own], count=RESAMPLES, seed=self.seed)
        given = [(index[own], sums[own], len(own.names)) for own in groupings]
        mixed = shuffled_totals(people.episode, given, count=self.shuffles, seed=self.seed)
        shuffles = dict(zip(groupings, mixed, strict=True))
        for one in compared:
            grouping = one.grouping
            found = pooled_estimate(totals[grouping], samples[grouping], one.statistic, level=self.level)
            row = Row(one.section, one.name, one.of, found)
            if one.is_gap and not np.isnan(found.value):
                mixed_gaps = one.statistic(shuffles[grouping])
                floor, limit = noise(mixed_gaps, level=LIMIT)
                row = row._replace(noise=floor, limit=limit)
                if (one.section, one.of) == ("gap", "largest"):
                    self.of_episodes |= {"totals": totals[grouping][:, :, 0], SHUFFLED: mixed_gaps}
            yield row

    def _of_measure(self, name: str, section: str, played: Played) -> Iterator[Row]:
        """Yield the mean of a measure over the steps of episodes, and its last value."""
        measure = self.measures[name]
        title = measure.name or type(measure).__name__
        kinds: list[tuple[str, Callable[[Sequence[Followed]], Floats]]] = [
            ("mean over steps", lambda parts: np.concatenate([part.means for part in parts])),
            ("last value", lambda parts: np.concatenate([part.last for part in parts])),
        ]
        if measure.keeps:  # the last value contains earlier episodes
            kinds[1] = ("at the end", lambda parts: parts[-1].final)
        for of, values_of in kinds:
            values = values_of(played.followed[name])
            estimate = within(self._mean(values), bounds_of(measure))
            if measure.keeps:  # episodes are not independent units
                estimate = replace(estimate, low=np.nan, high=np.nan, standard_error=np.nan)
            else:
                self.of_episodes[f"{section}: {of}"] = values
            again = np.array([_mean_of(values_of(parts)) for parts in zip(*played.noise[name], strict=True)])
            if np.allclose(again, estimate.value, rtol=1e-12, atol=0):
                again = again[:0]  # the measure does not depend on groups
            yield Row(section, title, of, estimate, *noise(again, level=LIMIT))

    def curve(self, played: Played) -> dict[str, list[float]]:
        """Return the gap of the rate since the start of the episode, pooled over episodes, with its interval."""
        statistic: Statistic = Difference(0, 1) if len(self.recorder.group_names) == 2 else Largest()
        found: dict[str, list[float]] = {"step": [], "gap": [], "low": [], "high": []}
        for time, totals in zip(played.times, played.totals, strict=True):
            own = totals[:, :, np.newaxis]
            samples = resampled(own, count=RESAMPLES // 10, seed=self.seed)
            estimate = pooled_estimate(own, samples, statistic, level=self.level)
            if not np.isnan(estimate.value):
                numbers = (estimate.value, estimate.low, estimate.high)
                found["step"].append(int(time))
                for key, number in zip(("gap", "low", "high"), numbers, strict=True):
                    found[key].append(float(np.nan_to_num(number, nan=estimate.value)))
        return found

    def notes(self) -> Iterator[str]:
        """Yield what a reader must know about the task, the record and the measures."""
        if caution := self.system.task.caution:
            yield caution
        if self.system.hidden:
            yield "Labels are the ground truth, which the environment does not report, or not at once."
        if wrapper := self.system.reward_wrapper:
            yield f"Rewards are read above the wrapper {wrapper}, which may change them."
        for measure in self.measures.values():
            if measure.keeps:
                yield f"{measure.name} continues across episodes; its values have no interval."


def _signed(section: str, name: str, grouping: Grouping, rate: int, *, prefix: str = "") -> Iterator[Compared]:
    """Yield the signed difference of two groups, or of each group to all others."""
    names = grouping.names
    if len(names) == 2:
        yield Compared(section, name, f"{prefix}{names[0]} - {names[1]}", grouping, Difference(0, 1, rate))
        return
    for place, own in enumerate(names):
        yield Compared(section, name, f"{prefix}{own} - others", grouping, ToOthers(place, rate))


def rates_in(measure: Measure) -> tuple[Rate, ...]:
    """Return the rates that a measure compares; empty if it compares something else."""
    return (measure.rate,) if isinstance(measure, RateMeasure) else COMPARED.get(measure.name, ())


def _mean_of(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _without_steps(batch: Batch, first: int) -> Batch:
    """Return a batch without its steps, whose individuals count episodes from the first one of the evaluation."""
    people = replace(batch.people, episode=batch.people.episode + first)
    return replace(batch, people=people, steps=(), person=np.zeros((0, 0, 0), np.int64))


def _joined(
    batches: Sequence[Batch],
    episodes: int,
    followed: Mapping[str, list[Followed]],
    noisy: Mapping[str, list[list[Followed]]],
) -> Played:
    """Return what was recorded in all batches."""
    longest = max(len(batch.totals) for batch in batches)
    times = np.unique(np.linspace(1, longest, TIMES).round().astype(np.int64))
    curves = []
    for batch in batches:
        summed = batch.totals[:, : batch.episodes].cumsum(axis=0)
        curves.append(summed[np.minimum(times, len(summed)) - 1])
    return Played(
        people=People.joined([batch.people for batch in batches]),
        episodes=episodes,
        rewards=np.concatenate([batch.rewards[: batch.episodes] for batch in batches]),
        lengths=np.concatenate([batch.lengths[: batch.episodes] for batch in batches]),
        success=np.concatenate([batch.success[: batch.episodes] for batch in batches]).astype(float),
        totals=np.concatenate(curves, axis=1),
        times=times,
        followed=followed,
        noise=noisy,
    )
