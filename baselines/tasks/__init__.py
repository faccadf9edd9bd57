"""Measures and mitigations of long-term fairness, as a `Study` for each supported environment.

Add your own environment with ``STUDIES["MyEnv-v0"] = Study(...)``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from fair_envs.baselines.ppo.massaging import (
    Massager,
    MassagingSchedule,
    RateMassager,
    Schedule,
    without_groups,
)
from fair_envs.baselines.tasks.attention import AttentionMassager
from fair_envs.baselines.tasks.epidemic import EpidemicMassager
from fair_envs.baselines.tasks.lending import LendingMassager, ScoreDistance
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.metrics.long_term import (
    IncidentDistance,
    Measure,
    OpportunityGap,
    ShareDeviation,
    StateDistance,
    VaccinationGap,
    WindowDistance,
)
from fair_envs.metrics.rates import RateMeasure
from fair_envs.tasks import Task, task_of

Signals = Literal["sound", "as_coded", "known"]
"""Signals of a learner: this package's measures, the published code's, or those with additional information."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Measures and mitigations of long-term fairness for an environment.

    Attributes:
        short: Creates the short-term measure from the environment's rules and the number of lanes.
        long: Creates the long-term measure.
        massager: Creates the massager from the training environment; None: there is none.
        thresholds: Thresholds of the massager, by rollout of the published training.
        rollouts: Number of rollouts of the published training.
        needs: Parameters of the environment that the measures require.
        settings: Fields of `LongTermTraining` whose defaults are overridden for the environment.
        published: Fields as in the published study, by algorithm; the key ``"all"`` is for all algorithms.
        others: Other signals, each with the fields of the study that it replaces; ``"sound"`` is the study itself.
    """

    short: Callable[[Any, int], Measure]
    long: Callable[[Any, int], Measure]
    massager: Callable[[LanesVecEnv], Massager] | None = None
    thresholds: Schedule | None = None
    rollouts: int = 1
    needs: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: Mapping[Signals, Mapping[str, Any]] = field(default_factory=dict)

    def without(self, parameters: Mapping[str, Any]) -> str:
        """Return a description of the required parameters that are missing or different, empty if there are none."""
        return ", ".join(
            f"{name}={value!r}" for name, value in self.needs.items() if parameters.get(name, None) != value
        )

    def of(self, signals: Signals) -> "Study":
        """Return the study for other signals.

        Raises:
            ValueError: There are no signals with that name.
        """
        if signals == "sound":
            return self
        if signals not in self.others:
            raise ValueError(f"signals must be one of {', '.join(['sound', *self.others])}, got {signals!r}")
        return replace(self, **self.others[signals])


# The published thresholds; Hu, Lear and Zhang (2024) print no values, these are from their code.
LENDING_SCHEDULE = MassagingSchedule(initial=0.5, factor=0.985, start_after=17)
ATTENTION_SCHEDULE = MassagingSchedule(initial=0.08, start_after=15)
LENDING_ROLLOUTS = 350
EPIDEMIC_SCHEDULE = MassagingSchedule(initial=0.01, factor=1.2, start_after=50, highest=0.35)

STUDIES: dict[str, Study] = {}
"""The studies by id of the environment."""


def study_of(env_id: str) -> Study:
    """Return an environment's study; without a specific one, the study of the environment's task.

    Its measures are the task's. It has a massager if `without_groups` finds nothing missing and the short-term measure
    can be predicted.

    Raises:
        ValueError: The id is unknown, or the environment has no record.
    """
    task = task_of(env_id)
    if task.env_id in STUDIES:
        return STUDIES[task.env_id]
    rules = task.rules()
    massager = RateMassager if not without_massager(task, rules) else None
    return Study(
        short=partial(task.measure, "short"),
        long=partial(task.measure, "long"),
        massager=massager,
        thresholds=LENDING_SCHEDULE,  # the only published one for such decisions
        rollouts=LENDING_ROLLOUTS,
    )


def without_massager(task: Task, rules: Any) -> str:
    """Return why a task has no general massager, or ""."""
    if why := without_groups(rules):
        return why
    measure = task.measure("short", rules, 1)
    predictable = isinstance(measure, RateMeasure) and measure.predictable
    return "" if predictable else f"has a short-term measure that cannot be predicted, {measure.name}"


# ---------------------------------------------------------------------------------------------------------- lending


FEWEST = 10  # expected number of people who would repay, from which on a group's rate is defined


def expected_opportunity(rules: Any, lanes: int) -> OpportunityGap:
    """Return the gap of expected true positive rates, for a bank that has the repayment probability of each score."""
    return OpportunityGap(lanes, window=rules.params.window, qualified=rules.repayment, minimum=FEWEST)


def known_opportunity(rules: Any, lanes: int) -> OpportunityGap:
    """Return the published code's gap: with hidden labels and one more applicant, 0 where a rate is undefined."""
    return OpportunityGap(lanes, window=rules.params.window, one_more=True, undefined="zero")


def scores_in_window(rules: Any, lanes: int) -> WindowDistance:
    """Return the distance between the groups' scores of the latest applicants."""
    return WindowDistance(lanes, groups=2, levels=len(rules.repayment), window=rules.params.window)


def counts_in_window(rules: Any, lanes: int) -> WindowDistance:
    """Return the published code's distance: of the counts, which ignores the scores."""
    levels = len(rules.repayment)
    return WindowDistance(lanes, groups=2, levels=levels, window=rules.params.window, distance="as_coded")


def published_lending_massager(env: LanesVecEnv) -> LendingMassager:
    """Return the massager of the published code, which uses hidden repayment labels and acts on ties."""
    return LendingMassager(env, label="as_coded", known=lambda: env.oracle()["feedback"][:, 0])


STUDIES["FairLending-v0"] = Study(
    short=expected_opportunity,
    long=scores_in_window,
    massager=LendingMassager,
    thresholds=LENDING_SCHEDULE,
    rollouts=LENDING_ROLLOUTS,
    settings={"parameters": {"horizon": 2000}},
    published={
        "all": {
            "parameters": {"profile": "authors", "feedback": "full"},
            "signals": "as_coded",
            "n_steps": 2000,
            "steps": 700_000,
            "trunk": (256, 256),
            "pi": (256, 128),
            "vf": (256, 128),
            "delta": 0.005,
            "value_weight": 0.25,
            "decrease_weight": 0.25,
            "weight": 1.12,
            "bonus_weight": 1.0,
        }
    },
    others={
        "known": {"long": ScoreDistance},
        "as_coded": {
            "short": known_opportunity,
            "long": counts_in_window,
            "massager": published_lending_massager,
            "needs": {"feedback": "full"},
        },
    },
)


# -------------------------------------------------------------------------------------------------------- attention


def shares_of_units(rules: Any, lanes: int) -> ShareDeviation:
    """Return the largest deviation of a location's share of the units in the window."""
    return ShareDeviation(lanes, individuals=rules.params.locations, window=rules.params.window)


def incidents_in_window(rules: Any, lanes: int) -> IncidentDistance:
    """Return the distance of the shares of incidents in the window from equal shares."""
    return IncidentDistance(lanes, individuals=rules.params.locations, window=rules.params.window)


def incidents_as_coded(rules: Any, lanes: int) -> IncidentDistance:
    """Return the published code's number: the largest deviation of a count from the mean, over the largest count."""
    params = rules.params
    return IncidentDistance(lanes, individuals=params.locations, window=params.window, distance="as_coded")


def attention_massager(env: LanesVecEnv) -> AttentionMassager:
    """Return the massager for the environment's locations, units and actions."""
    params = env.params
    return AttentionMassager(locations=params.locations, units=params.units, action=params.action)


STUDIES["FairAttention-v0"] = Study(
    short=shares_of_units,
    long=incidents_in_window,
    massager=attention_massager,
    thresholds=ATTENTION_SCHEDULE,
    rollouts=977,
    settings={"delta": 0.1},
    published={
        "all": {
            "parameters": {"profile": "authors"},
            "signals": "as_coded",
            "steps": 2_000_000,
            "trunk": (128, 128),
            "pi": (128, 64),
            "vf": (128, 64),
            "delta": 0.1,
            "value_weight": 0.15,
            "decrease_weight": 0.15,
            "weight": 0.15,
            "bonus_weight": 0.15,
        },
        "a-ppo": {"delta": 0.05},
    },
    others={"as_coded": {"long": incidents_as_coded}},
)


# --------------------------------------------------------------------------------------------------------- epidemic


def effective_vaccinations(rules: Any, lanes: int) -> VaccinationGap:
    """Return the gap between the communities in effective vaccinations per new infection."""
    return VaccinationGap(lanes, groups=len(rules.spec.groups))


def all_vaccinations(rules: Any, lanes: int) -> VaccinationGap:
    """Return the published code's gap, which also counts vaccinations without effect."""
    return VaccinationGap(lanes, groups=len(rules.spec.groups), effective=False)


def health(rules: Any, lanes: int) -> StateDistance:
    """Return the distance of the communities' shares of susceptible, infected and recovered people."""
    return StateDistance(lanes, groups=len(rules.spec.groups))


def heads(rules: Any, lanes: int) -> StateDistance:
    """Return the published code's distance, of raw counts."""
    return StateDistance(lanes, groups=len(rules.spec.groups), distance="as_coded")


def published_epidemic_massager(env: LanesVecEnv) -> EpidemicMassager:
    """Return the massager of the published code, which also gives vaccines without effect and acts on ties."""
    return EpidemicMassager(env, ties="first", ineffective=True)


STUDIES["FairEpidemic-v0"] = Study(
    short=effective_vaccinations,
    long=health,
    massager=EpidemicMassager,
    thresholds=EPIDEMIC_SCHEDULE,
    rollouts=245,
    published={
        "all": {
            "parameters": {"profile": "authors"},
            "signals": "as_coded",
            "steps": 500_000,
            "trunk": (512, 512),
            "pi": (512, 256),
            "vf": (512, 256),
            "value_weight": 0.1,
            "decrease_weight": 0.1,
            "weight": 0.25,
            "bonus_weight": 0.25,
        }
    },
    others={"as_coded": {"short": all_vaccinations, "long": heads, "massager": published_epidemic_massager}},
)
