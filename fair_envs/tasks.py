"""Tasks: what is measured in an environment, and what performance and welfare mean there.

A `Task` names the performance, a short-term and a long-term measure, the benefit and demand that define the welfare of
groups, scripted policies for comparison, and a training budget. Methods, evaluations and comparisons read it, so none
of them names an environment. Every environment of this package has a task. For your own environment, call `add_task`;
without a task, `task_of` derives one from the environment's record.

    add_task(Task(env_id="School-v0", short="equal_opportunity", rate="equal_opportunity", scripted=()))
"""

import copy
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np

from fair_envs.core import Rules
from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.followed import NAMES, WINDOW, TeamMeasure, measure_named
from fair_envs.metrics.group import Groups
from fair_envs.metrics.long_term import (
    IncidentDistance,
    ShareDeviation,
    ShareDistance,
    StateDistance,
    VaccinationGap,
    WindowDistance,
)
from fair_envs.metrics.measures import Measure, MeasureOf
from fair_envs.metrics.notions import canonical_name
from fair_envs.metrics.rates import (
    NEED_MET,
    RATES,
    RETURN,
    TRUE_NEGATIVE,
    TRUE_POSITIVE,
    Parts,
    Rate,
    RateMeasure,
    Step,
    rate_named,
)
from fair_envs.registration import TABLE, find, id_of, make_rules
from fair_envs.support.imports import PATH, imported, module_of
from fair_envs.support.parameters import PositiveInt, checked, meant
from fair_envs.wrappers.adapters.own import OwnRules, own_rules

AnyRules = Rules | OwnRules
"""The rules of an environment of this package, or what is known of a user's own environment."""

MeasureMaker = Callable[[Any, int], Measure]
"""Creates a measure from the rules and the number of lanes."""

MassagerMaker = Callable[[Any], Any]
"""Creates a `fair_envs.baselines.ppo.massaging.Massager` from the environment that it alters decisions in."""

Performance = Literal["reward", "success"]
"""What counts as performance: the mean reward per step (of agents: their mean), or the share of successful episodes."""

Which = Literal["short", "long", "rate"]
"""A task's measures: in a window, over the episode or the state of the world, and the gap of the welfare's rate."""

OF_TASK: tuple[str, ...] = get_args(Which)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is measured in an environment.

    Attributes:
        env_id: Id of the environment, registered with this package or with Gymnasium.
        summary: One sentence about what is fair and for whom.
        parameters: Parameters of the environment that the task sets; given parameters override them.
        performance: See `Performance`.
        short: The short-term measure: the name of a notion, a `Rate`, or a function of the rules and the number of
            lanes. Notions and rates are measured over the last 500 steps of the episode.
        long: The long-term measure; None: the gap of the rate since the start of the episode.
        rate: The benefit and demand of groups: the name of a notion that compares one rate, a `Rate`, or a function of
            the rules that returns one.
        groups: The compared groups, see `fair_envs.metrics.group.group_members`; None: those of ``fair_group``.
        scripted: Names of scripted policies for comparison, see `fair_envs.core.Rules.policies`, or import paths of
            functions, ``"module:function"``.
        steps: Training budget in steps of the learner's rows.
        massager: Creates what alters uncertain decisions in F-PPO, a function or its import path ``"module:function"``;
            None: the general `fair_envs.baselines.ppo.massaging.RateMassager` where it works.
        caution: What good numbers on this task do not show; empty: nothing in particular.

    Raises:
        ValueError: A field has a value outside its range, or names an unknown notion.
    """

    env_id: str
    summary: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    performance: Performance = "reward"
    short: str | Rate | MeasureMaker = "demographic_parity"
    long: str | Rate | MeasureMaker | None = None
    rate: str | Rate | Callable[[Any], Rate] = "demographic_parity"
    groups: Groups = None
    scripted: Sequence[str] = ()
    steps: int = 200_000
    massager: str | MassagerMaker | None = None
    caution: str = ""

    def __post_init__(self) -> None:
        """Check the fields that do not depend on the environment."""
        checked("env_id", self.env_id, str)
        checked("performance", self.performance, Performance)
        checked("steps", self.steps, PositiveInt)
        checked("caution", self.caution, str)
        if isinstance(self.scripted, str):
            raise ValueError(f"scripted must be a list of names, got {self.scripted!r}")
        for name in self.scripted:
            if not isinstance(name, str):
                raise ValueError(f"scripted must be a list of names, got {name!r} among them")
        if not isinstance(self.parameters, Mapping):
            raise ValueError(f"parameters must be a dictionary, got {self.parameters!r}")
        for name, known in (("short", NAMES), ("long", NAMES), ("rate", RATES)):
            given = getattr(self, name)
            if isinstance(given, str):
                canonical_name(name, given, known)
            elif not (isinstance(given, Rate) or callable(given) or (name == "long" and given is None)):
                makes = "rate" if name == "rate" else "measure"
                raise ValueError(
                    f"{name} must be the name of a notion, a Rate, or a function that returns a {makes}, got {given!r}"
                )
        if not (self.massager is None or isinstance(self.massager, str) or callable(self.massager)):
            raise ValueError(f"massager must be a function, its import path, or None, got {self.massager!r}")

    def merged(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the task's parameters, overridden by the given ones; a given variant has only its own parameters."""
        own = dict(self.parameters)
        if given.get("variant") is not None and self.env_id in TABLE:
            known: Any = rules_for(self.env_id, variant=given["variant"]).params
            own = {name: value for name, value in own.items() if hasattr(known, name)}
        return {**own, **given}

    def rules(self, **given: Any) -> AnyRules:
        """Return the rules with the task's parameters, overridden by the given ones."""
        return rules_for(self.env_id, **self.merged(given))

    def rate_of(self, rules: Any) -> Rate:
        """Return the rate that defines the welfare of groups.

        Raises:
            ValueError: The record of the environment does not contain what the rate needs.
        """
        rate = self.rate
        if isinstance(rate, str):
            rate = rate_named(rate, of_agents=rules.multi_agent)
        elif not isinstance(rate, Rate):
            rate = rate(rules)
            if not isinstance(rate, Rate):
                raise ValueError(f"rate must be a function that returns a Rate, got one that returned {rate!r}")
        rate.check(rules.spec, of_agents=rules.multi_agent)
        return rate

    def rate_measure(self, rules: Any, lanes: int, *, window: int | None = None, keeps: bool = False) -> RateMeasure:
        """Return the gap of the rate, which also has the rates, benefits and demands of the groups."""
        rate = self.rate_of(rules)
        return RateMeasure(lanes, rate, spec=rules.spec, groups=self.groups, window=window, keeps=keeps)

    def measure(self, name: str | Rate, rules: Any, lanes: int) -> Measure:
        """Return one of the task's measures, or that of another notion or rate.

        Args:
            name: ``"short"``, ``"long"``, ``"rate"``, the name or alias of a notion, or a `Rate`.
            rules: The rules of the environment.
            lanes: Number of lanes.

        Raises:
            ValueError: The name is unknown, or the record of the environment does not contain what is needed.
        """
        chosen: str | Rate | MeasureMaker | None = measure_name(name)
        if chosen in OF_TASK:
            chosen = {"short": self.short, "long": self.long, "rate": None}[str(chosen)]
        if chosen is None:
            return self.rate_measure(rules, lanes)
        if not isinstance(chosen, (str, Rate)):
            return chosen(rules, lanes)
        return measure_named(chosen, lanes, spec=rules.spec, of_agents=rules.multi_agent, groups=self.groups)

    def factory(self, name: str | Rate, rules: Any) -> "MeasureFor":
        """Return a function that creates a measure for a number of lanes, for wrappers and followers of lanes.

        Args:
            name: See `measure`.
            rules: The rules of the environment.

        Raises:
            ValueError: The measure does not exist, see `measure`.

        Example:
            >>> from fair_envs.wrappers import FairnessPenalty
            >>> task = task_of("FairLending-v0")
            >>> env = gym.make("FairLending-v0", **task.parameters)
            >>> env = FairnessPenalty(env, measure=task.factory("short", task.rules()), alpha=0.5)
        """
        self.measure(name, rules, 1)
        return MeasureFor(self, name, rules)

    def check(self, rules: Any | None = None) -> None:
        """Raise ValueError if a measure or scripted policy does not exist in the environment.

        Args:
            rules: The rules; None: those with the task's parameters.
        """
        rules = self.rules() if rules is None else rules
        for name in ("short", "long", "rate"):
            self.measure(name, rules, 1)
        for policy in self.scripted:
            check_scripted(policy, rules.policies)
            if policy not in rules.policies:
                check_function(policy)


@dataclass(frozen=True)
class MeasureFor:
    """A factory of a task's measure for a number of lanes, which can be pickled.

    Attributes:
        task: The task.
        name: See `Task.measure`.
        rules: The rules of the environment.
    """

    task: Task
    name: str | Rate
    rules: Any

    def __call__(self, lanes: int) -> Measure:
        """Return the measure."""
        return self.task.measure(self.name, self.rules, lanes)


# The registry ---------------------------------------------------------------------------------------------------------


TASKS: dict[str, Task] = {}
"""The tasks by the id of their environment."""


def add_task(task: Task) -> Task:
    """Register a task, in place of an earlier one for the same environment, and return it.

    Raises:
        ValueError: A scripted policy does not exist. Functions ``"module:function"`` are not imported yet: the module
            that registers a task may define them later. `Task.check` also checks those, and the measures.
    """
    if task.scripted:
        known = importlib.import_module(find(task.env_id).module).Env.rules.policies if task.env_id in TABLE else {}
        for policy in task.scripted:
            check_scripted(policy, known)
    TASKS[task.env_id] = task
    return task


def task_of(env_id: str) -> Task:
    """Return the task of an environment; without a registered task, the one derived from the environment's record.

    Args:
        env_id: An id registered with this package or with Gymnasium; ``"module:Id"`` imports the module first.

    Raises:
        ValueError: The id is unknown, or the environment has no record (`fair_spec`).
    """
    name = environment_id(env_id)
    return TASKS[name] if name in TASKS else default_task(name)


def default_task(env_id: str, rules: AnyRules | None = None) -> Task:
    """Return a task derived from an environment's record.

    Agents are compared by their returns. Decisions are compared by equal opportunity if labels of everyone are
    reported, and by demographic parity if not; amounts by the share of the needs that are met.
    """
    rules = rules_for(env_id) if rules is None else rules
    spec = rules.spec
    labels = spec.feedback == "full" and not spec.only_accepted
    if rules.multi_agent:
        notion = "return_parity"
    elif spec.amounts:
        notion = "needs_met" if labels else "outcome_parity"
    elif spec.actions != 2:
        notion = "outcome_parity"
    else:
        notion = "equal_opportunity" if labels else "demographic_parity"
    return Task(env_id=env_id, short=notion, rate=notion, scripted=tuple(rules.policies))


def environment_id(env_id: str) -> str:
    """Return an id without its module, which is imported.

    Raises:
        ValueError: Neither this package nor Gymnasium knows the id.
        ImportError: The module does not exist.
    """
    path, name = PATH.match(checked("env_id", env_id, str)), env_id
    told = "module:ID, or --import module before a command, registers it"
    if path is not None:
        module = module_of(path.group())
        name = env_id.partition(":")[2]
        told = f"{module.__file__} does not register it"
        if module.__file__ is None:  # a folder of the same name around the package
            folder = next(iter(module.__path__))
            told = f"{folder} was imported, which is no package: run the command in this folder, or pip install -e it"
    if name not in TABLE and name not in gym.registry:
        raise ValueError(
            f"id must be one of {', '.join(sorted(TABLE))}, or registered with Gymnasium, got {env_id!r}"
            f"{meant(name, TABLE)}; {told}"
        )
    return name


def rules_for(env_id: str, **parameters: Any) -> AnyRules:
    """Return the rules of an environment of this package, or what is known of a user's own Gymnasium environment.

    Raises:
        ValueError: The id is unknown, a parameter is invalid, or a user's own environment has no ``fair_spec``.
    """
    name = environment_id(env_id)
    if name in TABLE:
        return make_rules(name, **parameters)
    return own_rules(gym.make(name, **parameters))


def parameters_of(env_id: str) -> Mapping[str, Any] | None:
    """Return the parameters of a user's own environment with their defaults; None: it takes any.

    Environments of this package describe their parameters in their rules.
    """
    entry: Any = gym.spec(environment_id(env_id)).entry_point
    kind = gym.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    known = inspect.signature(kind).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in known):
        return None
    return {one.name: None if one.default is one.empty else one.default for one in known}


def task_of_rules(rules: AnyRules) -> Task:
    """Return the task of the environment with these rules; without a registered task, the one derived from them."""
    name = id_of(rules) if isinstance(rules, Rules) else rules.env_id
    return TASKS[name] if name in TASKS else default_task(name or rules.name, rules)


def measure_for(
    name: str, rules: AnyRules, lanes: int, *, spec: FairSpec | None = None, groups: Groups = None
) -> Measure:
    """Return a measure by its name: one of the environment's task, or that of a notion.

    Args:
        name: ``"short"``, ``"long"``, ``"rate"``, or the name or alias of a notion.
        rules: The rules of the environment.
        lanes: Number of lanes.
        spec: The description of the environment as wrappers report it; None: that of the rules.
        groups: The compared groups; None: those of the task for its measures, otherwise those of ``fair_group``.

    Raises:
        ValueError: The name is unknown, or the record of the environment does not contain what is needed.
    """
    spec = spec or rules.spec
    if measure_name(name) not in OF_TASK:
        return measure_named(name, lanes, spec=spec, of_agents=rules.multi_agent, groups=groups)
    if spec != rules.spec:
        rules = copy.copy(rules)
        vars(rules)["spec"] = spec
    task = task_of_rules(rules)
    return (task if groups is None else replace(task, groups=groups)).measure(name, rules, lanes)


def measure_name(name: Any) -> Any:
    """Return a rate as it is, or the canonical name of a measure: one of the task, or a notion.

    Raises:
        ValueError: The name is unknown.
    """
    return name if isinstance(name, Rate) else canonical_name("measure", name, (*OF_TASK, *NAMES))


def check_scripted(name: str, known: Mapping[str, str]) -> None:
    """Raise ValueError if a policy is neither an environment's own one nor an import path."""
    if name not in known and not PATH.fullmatch(name):
        own = f"{', '.join(known)}, or " if known else ""
        raise ValueError(f"scripted must be among {own}functions 'module:function', got {name!r}{meant(name, known)}")


def check_function(path: str) -> None:
    """Raise ValueError if there is no function ``"module:function"``."""
    try:
        found = imported(path)
    except (AttributeError, ImportError) as error:
        raise ValueError(f"scripted must be among functions that can be imported, got {path!r}: {error}") from error
    if not callable(found):
        raise ValueError(f"scripted must be among functions, got {path!r}, which is {found!r}")


# What the tasks of this package measure -------------------------------------------------------------------------------


LEAST_DEMAND = 10  # decisions about a group; rates of fewer are mostly noise, above all with four groups


def returns_in_window(rules: Any, lanes: int) -> Measure:
    """Return the gap between the groups' rewards per step in the last 100 steps."""
    return RateMeasure(lanes, RETURN, spec=rules.spec, window=100, name="return parity (100 steps)")


def returns_of_episode(rules: Any, lanes: int) -> Measure:
    """Return the gap between the groups' rewards per step since the start of the episode."""
    return RateMeasure(lanes, RETURN, spec=rules.spec, name="return parity (episode)")


def selections_in_window(rules: Any, lanes: int) -> Measure:
    """Return demographic parity over the last 500 decisions, of the groups with at least 10 of them."""
    notion = "demographic_parity"
    return RateMeasure(lanes, RATES[notion], spec=rules.spec, window=WINDOW, minimum=LEAST_DEMAND, name=notion)


def team_and_qualified(rules: Any, lanes: int) -> Measure:
    """Return how far the groups' shares of the people who were selected are from those of the qualified."""
    return ShareDistance(lanes, groups=len(rules.spec.groups))


def kept_customers(rules: Any, lanes: int) -> Measure:
    """Return the gap between the groups' shares of customers who go on with their payment after the decision."""
    return measure_named("outcome_parity", lanes, spec=rules.spec, of_agents=False, window=None)


def scores_of_applicants(rules: Any, lanes: int) -> Measure:
    """Return the 1-Wasserstein distance between the groups' scores among the latest applicants."""
    return WindowDistance(lanes, groups=2, levels=len(rules.repayment), window=rules.params.window)


def units_in_window(rules: Any, lanes: int) -> Measure:
    """Return the largest deviation of a location's share of the units from an equal share."""
    return ShareDeviation(lanes, individuals=rules.params.locations, window=rules.params.window)


def incidents_in_window(rules: Any, lanes: int) -> Measure:
    """Return the distance of the locations' shares of incidents from equal shares."""
    return IncidentDistance(lanes, individuals=rules.params.locations, window=rules.params.window)


def vaccinations(rules: Any, lanes: int) -> Measure:
    """Return the gap between the communities in effective vaccinations per new infection."""
    return VaccinationGap(lanes, groups=len(rules.spec.groups))


def health(rules: Any, lanes: int) -> Measure:
    """Return the distance of the communities' shares of susceptible, infected and recovered people."""
    return StateDistance(lanes, groups=len(rules.spec.groups))


def burden(rules: Any, lanes: int) -> Measure:
    """Return the gap between the groups in what a qualified applicant pays to be admitted."""
    return RateMeasure(lanes, PAID, spec=rules.spec, name="gap of social burden")


def captures_in_window(rules: Any, lanes: int) -> Measure:
    """Return the gap between the agents' captures per episode, over episodes that ended in the last 5,000 steps."""
    return RateMeasure(lanes, CAPTURES, spec=rules.spec, window=5000, keeps=True, name="gap of captures")


def roles(rules: Any, lanes: int) -> Measure:
    """Return team fairness over the last 100 episodes."""
    return TeamMeasure(lanes, agents=rules.agents(rules.params))


def conditional_returns(rules: Any, lanes: int) -> Measure:
    """Return the gap between the groups' returns within each kind of journey, added up."""
    return measure_named("conditional_parity", lanes, spec=rules.spec, of_agents=True)


def _not_infected(step: Step) -> Parts:
    susceptible = (step.features[..., 0] > 0.5) & (step.action >= 0)
    return susceptible & (step.outcome != -1), susceptible


def _paid(step: Step) -> Parts:
    qualified = step.feedback == 1
    return np.where(qualified, step.action - step.outcome, 0.0), qualified


def _captured(step: Step) -> Parts:
    return step.action == 1, np.broadcast_to(step.ended, step.action.shape)


HEALTHY = Rate(
    name="share of the susceptible who stay healthy",
    benefit="susceptible people not infected in the step",
    demand="susceptible people",
    parts=_not_infected,
    columns=("action", "outcome", "features"),
)
PAID = Rate(
    name="cost of the qualified",
    benefit="cost paid by the qualified",
    demand="qualified",
    parts=_paid,
    columns=("action", "feedback", "outcome"),
    labels=True,
)
CAPTURES = Rate(name="captures per episode", benefit="captures", demand="episodes", parts=_captured, once=True)


def _travelled(step: Step) -> Parts:
    return np.where(step.action >= 0, step.outcome, 0.0), np.broadcast_to(step.ended, step.action.shape)


JOURNEY = Rate(
    name="return per journey",
    benefit="rewards",
    demand="journeys",
    parts=_travelled,
    columns=("action", "outcome"),
    once=True,
)


for _task in (
    Task(
        env_id="FairHarvest-v0",
        summary="Fast and slow agents should earn equally much.",
        parameters={"observation": "extended"},
        short=returns_in_window,
        long=returns_of_episode,
        rate=RETURN,
        scripted=("greedy", "reactive"),
        steps=1_280_000,
    ),
    Task(
        env_id="FairHiring-v0",
        summary="Qualified applicants of each gender and nationality should be hired equally often.",
        short=selections_in_window,
        long=team_and_qualified,
        rate=TRUE_POSITIVE,
        scripted=("correct", "graduates", "random-rate", "alternate"),
        caution="With the default parameters, hiring everyone with a degree (graduates) has no gap and earns more than "
        "PPO on the leaderboard. The gap is about qualified applicants: of all applicants, it hires 59 % of the "
        "foreign men and 67 to 70 % of the others.",
    ),
    Task(
        env_id="FairFraud-v0",
        summary="Genuine payments should be let through equally often on each continent.",
        short="predictive_equality",
        long=kept_customers,
        rate=TRUE_NEGATIVE,
        scripted=("always", "random-rate", "above-amount"),
        caution="With the default parameters, letting every payment through (always) has no gap and earns more than "
        "PPO on the leaderboard, but all frauds then go through, too. (In the rate of the groups, *selected* means "
        "checked, and *unqualified* a genuine payment.) The noise floor is for payments that are judged individually: "
        "a policy that judges all payments of a card alike has larger gaps by chance, so that a small gap above the "
        "floor can be chance.",
    ),
    Task(
        env_id="FairLending-v0",
        summary="Applicants who would repay should get loans equally often in both groups.",
        parameters={"horizon": 2000, "feedback": "full"},
        short="equal_opportunity",
        long=scores_of_applicants,
        rate=TRUE_POSITIVE,
        scripted=("max-reward", "lenient", "observed-opportunity", "equal-opportunity", "always"),
        steps=480_000,
    ),
    Task(
        env_id="FairAttention-v0",
        summary="Incidents should be discovered equally often at each location.",
        short=units_in_window,
        long=incidents_in_window,
        rate=NEED_MET,
        scripted=("proportional", "last-incidents", "round-robin"),
        massager="fair_envs.baselines.tasks.attention:attention_massager",
        caution="The reward pays more for discovered incidents than it charges for missed ones, and so for keeping "
        "incidents alive. With the default parameters, sending units to all locations in turn (round-robin) ends all "
        "incidents within 100 steps, and earns nothing from then on; sending them to the last step's incidents "
        "(last-incidents) earns more than PPO, and keeps 2 to 3 incidents per step alive at each location.",
    ),
    Task(
        env_id="FairEpidemic-v0",
        summary="Both communities should be protected equally well from the disease.",
        short=vaccinations,
        long=health,
        rate=HEALTHY,
        scripted=("most-neighbours", "random-susceptible", "nobody"),
        massager="fair_envs.baselines.tasks.epidemic:EpidemicMassager",
        caution="A small gap of vaccinations, the short-term measure, does not show that anyone is protected: if no "
        "one is vaccinated (nobody), it is 0.",
    ),
    Task(
        env_id="FairCollege-v0",
        summary="Qualified applicants should be admitted equally often, at the same cost.",
        # with the default population, all qualified applicants are admitted whatever the threshold; with a continuous
        # threshold, PPO rejects everyone for at least 500,000 rounds
        parameters={"profile": "fat2020", "feedback": "full", "action": "levels"},
        short="equal_opportunity",
        long=burden,
        rate=TRUE_POSITIVE,
        scripted=("robust-jury", "naive-jury"),
        caution="A jury that admits no one is right about everyone who is unqualified, and has no gap: its accuracy is "
        "0.69 with the default parameters, and PPO's on the leaderboard is 0.87.",
    ),
    Task(
        env_id="FairPursuit-v0",
        summary="Each pursuer should make the capture equally often.",
        # with the default speeds and side, neither random pursuers nor PPO ever capture, in 1,280,000 steps of training
        parameters={"side": 3.0, "horizon": 250, "pursuer_speed": 1.2, "evader_speed": 0.3},
        performance="success",
        short=captures_in_window,
        long=roles,
        rate=CAPTURES,
        scripted=("greedy", "planner", "shuffled-roles"),
        steps=640_000,
        caution="Randomly reassigning the roles in each episode (shuffled-roles) makes any team fair by its captures "
        "over many episodes.",
    ),
    Task(
        env_id="FairTraffic-v0",
        summary="Human-driven and AI-driven cars should fare equally well.",
        short=returns_in_window,
        long=conditional_returns,
        rate=JOURNEY,  # trained cars arrive, but not equally early
        scripted=("shortest-time", "shortest-path"),
        steps=1_280_000,
    ),
):
    TASKS[_task.env_id] = _task


__all__ = [
    "TASKS",
    "MeasureFor",
    "MeasureMaker",
    "MeasureOf",
    "Task",
    "add_task",
    "default_task",
    "environment_id",
    "measure_for",
    "measure_name",
    "rules_for",
    "task_of",
    "task_of_rules",
]
