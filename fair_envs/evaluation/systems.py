"""Measures the fairness of any system: how much better off agents without an attribute are, and all agents' welfare.

A system is an environment together with a policy. `play_system` plays an environment of this package. `play_parallel`
plays your own PettingZoo environment; a dictionary gives the agents their attributes. `measure` reports, for each
attribute, how much better off the agents without it are: by demographic parity, counterfactual fairness and conditional
statistical parity, as defined by La Malfa, Zhang, Luck and Black, "Using Protected Attributes to Consider Fairness in
Multi-Agent Systems", AEQUITAS 2024, arXiv:2410.12889. If one decision-maker decides about other people, it reports how
much the decisions differ between groups.

Their counterfactual fairness compares each agent with itself in a world in which only this agent lacks the attribute.
That is ``flip="each"``; it plays one additional world per agent. By default, all agents with the attribute lose it at
once, in one additional world. The gap then includes the effect of the other agents' changes, such as emptier roads if
no agent drives slowly. This is also what a system without the attribute would give, and what `play_parallel` measures
with such an environment.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from fair_envs.core import Rules, check_count, check_seeds
from fair_envs.core.interactions import FairSpec
from fair_envs.evaluation import ParallelWorld, Policy, as_policy, rollout, rules_of
from fair_envs.evaluation.policy import Act
from fair_envs.evaluation.reports import Labels, Report
from fair_envs.metrics import report as returns_report
from fair_envs.metrics.group import DEFINITIONS, GroupNotion
from fair_envs.metrics.history import Full
from fair_envs.metrics.intervals import Estimate, check_choice, mean_interval
from fair_envs.metrics.returns import (
    FORMS,
    Form,
    Group,
    Returns,
    conditional_parity,
    counterfactual_fairness,
    demographic_parity,
    sensitive_returns,
)
from fair_envs.support.aliases import Floats, OnProgress
from fair_envs.wrappers.decisions import play_decisions
from fair_envs.wrappers.twin import Plays, Twins, batches

Flip = Literal["protected", "each"]
FLIPS: tuple[Flip, ...] = get_args(Flip)

PARITIES = ("demographic_parity", "counterfactual_fairness", "conditional_parity")
DECISIONS = tuple(name for name in DEFINITIONS if name != "treatment_equality_raw")  # can be infinite
WELFARE: Mapping[str, Callable[[Floats], Floats]] = {each.__name__: each for each in returns_report.WELFARE}
TOTAL = "total_return"
SIDES = {"return_without": "without", "return_with": "with"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Episodes:
    """The agents' returns, and the returns of agents with an attribute if they did not have it.

    Attributes:
        returns: The return of every agent in every episode, with the agents' attributes.
        without: By attribute, the same episodes with the same random numbers but without the attribute: all agents lose
            it, or the value of each agent is from the world in which only its attribute is flipped (see `play_system`,
            ``flip``). Attributes that cannot be removed have no entry.
        sensitive: The attributes that should make no difference.
        legitimate: The attributes that may make a difference.
        decided: For a decision-maker, by notion and attribute: the gap between groups of people in each episode.
        values: By attribute, the names of its codes 0, 1, ... For attributes without an entry, the codes that occur
            determine whether there are more than two.
    """

    returns: Returns
    without: Mapping[str, Returns] = field(default_factory=dict)
    sensitive: Sequence[str]
    legitimate: Sequence[str] = ()
    decided: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def of_agents(self) -> bool:
        """Whether the agents are affected and have attributes; if not, a decision-maker decides about other people."""
        return bool(self.returns.attributes)

    @classmethod
    def joined(cls, parts: Sequence["Episodes"]) -> "Episodes":
        """Return the episodes of all parts, concatenated."""
        first = parts[0]
        return cls(
            returns=Returns.concat(part.returns for part in parts),
            without={name: Returns.concat(part.without[name] for part in parts) for name in first.without},
            sensitive=first.sensitive,
            legitimate=first.legitimate,
            decided={key: np.concatenate([part.decided[key] for part in parts]) for key in first.decided},
            values=first.values,
        )


class Series(NamedTuple):
    """One number per episode.

    Attributes:
        notion: Name of the notion.
        attribute: The attribute whose groups are compared; with several values, ``"name=value"``; empty if the number
            is about all agents.
        within: For conditional parity, the factor and its code, such as ``"fast=1"``; otherwise empty.
        values: Shape (episodes,). Parities are in the unit of their form, see `MEANINGS`; NaN if undefined.
    """

    notion: str
    attribute: str
    within: str
    values: Floats

    @property
    def name(self) -> str:
        """Its name on the command line, such as ``conditional_parity:human_driven:fast=1``."""
        return ":".join(filter(None, (self.notion, self.attribute, self.within)))


class Measured(NamedTuple):
    """One notion for one attribute, averaged over episodes.

    Attributes:
        notion: Name of the notion.
        attribute: See `Series`.
        within: See `Series`.
        gap: 0 is parity. For parities, the form defines the sign and the unit, see `MEANINGS`; for decisions, the gap
            is the difference between groups. ``n`` counts the episodes in which it is defined.
    """

    notion: str
    attribute: str
    within: str
    gap: Estimate


# Systems of this package ----------------------------------------------------------------------------------------------


def play_system(
    env: Any,
    policy: Policy | Act,
    *,
    episodes: int,
    seed: int = 0,
    lanes: int = 64,
    append_group: bool | None = None,
    counterfactual: bool = True,
    flip: Flip = "protected",
    threads: int = 1,
    each: OnProgress = lambda: None,
) -> Episodes:
    """Play episodes of an environment of this package, and again without the first sensitive attribute.

    If one decision-maker decides about other people, the decisions are compared instead, by every group notion that
    the environment's record allows.

    Args:
        env: The rules, or an environment with any interface.
        policy: A function from observations (B, agents, ...) and uniform random numbers (B, agents) to actions
            (B, agents, ...), or a `Policy`.
        episodes: Number of episodes.
        seed: Seed of the first episode; each further episode uses the next seed.
        lanes: Number of episodes played in parallel; the results do not depend on it.
        append_group: Whether observations end with the agent's group; None: the policy decides.
        counterfactual: Whether to also play counterfactual episodes, if the agents have an attribute that can be
            flipped.
        flip: Which agents lose the attribute. ``"protected"``: all agents that have it, at once, in one additional
            world. ``"each"``: one agent at a time, as in the definition, in one additional world per agent.
        threads: Number of threads that share the lanes.
        each: Called after each batch of ``lanes`` episodes.

    Raises:
        ValueError: There is no episode, the seed is out of range, ``flip`` is unknown, actions are outside their space,
            or ``append_group`` is True for a decision-maker.
        TypeError: This is not an environment of this package.
    """
    check_count("episodes", episodes)
    check_choice(flip, "flip", FLIPS)
    rules, policy = rules_of(env), as_policy(policy)
    seeds = check_seeds(seed, episodes)
    append_group = policy.append_group if append_group is None else append_group
    if not rules.multi_agent:
        if append_group:
            raise ValueError("append_group must be False for a decision-maker, which belongs to no group, got True")
        return _decided(rules, policy, seeds=seeds, lanes=lanes, each=each)
    options: dict[str, Any] = {"lanes": lanes, "append_group": append_group, "threads": threads}
    plays = (Twins if counterfactual and can_flip(rules) else Plays)(rules, **options)
    about, found = _of_spec(rules.spec), []
    for some in batches(seeds, lanes):
        without = {}
        if isinstance(plays, Twins):
            pairs = plays.run(policy, episodes=len(some), seed=int(some[0]), flip=flip)
            returns, without = pairs.factual, {pairs.sensitive: pairs.counterfactual}
        else:
            returns = plays.play(policy, seeds=some)
        found.append(Episodes(returns=returns, without=without, **about))
        each()
    return Episodes.joined(found)


def _decided(rules: Rules, policy: Policy, *, seeds: NDArray[np.uint64], lanes: int, each: OnProgress) -> Episodes:
    """Play a decision-maker's episodes and compare the decisions about groups of people in each."""
    spec, about, found = rules.spec, _of_spec(rules.spec), []
    keys = [(name, attribute) for attribute in spec.sensitive for name in DECISIONS if can_tell(spec, name, attribute)]
    notions = [GroupNotion(name=name, groups=attribute) for name, attribute in keys]
    for some in batches(seeds, lanes):
        returns, gaps = play_decisions(rules, policy, notions, seeds=some)
        decided = dict(zip(keys, gaps.T, strict=True))
        found.append(Episodes(returns=Returns(returns), decided=decided, **about))
        each()
    return Episodes.joined(found)


def _of_spec(spec: FairSpec) -> dict[str, Any]:
    """Return an environment's attributes as keyword arguments of `Episodes`."""
    values = {**spec.sensitive, **spec.legitimate}
    return {"sensitive": tuple(spec.sensitive), "legitimate": tuple(spec.legitimate), "values": values}


def can_tell(spec: FairSpec, name: str, attribute: str) -> bool:
    """Return whether an environment's record is sufficient for a notion on decisions about groups of people."""
    if spec.actions != 2:  # there is no favourable and unfavourable decision
        return False
    notion = GroupNotion(name=name, groups=attribute)
    try:
        notion.check(spec)
        notion.check_memory(Full(), spec)
    except ValueError:
        return False
    return True


def can_flip(rules: Any) -> bool:
    """Return whether the agents have an attribute that can be removed."""
    if not rules.multi_agent:  # a decision-maker's `flip` changes the people it decides about
        return False
    agents = rules.agents(rules.params)
    try:
        rules.flip(np.zeros(1, rules.dtype), np.zeros((1, agents), bool))
    except ValueError:
        return False
    return True


# Your own systems -----------------------------------------------------------------------------------------------------


def play_parallel(
    env: Any,
    attributes: Mapping[str, Mapping[str, int]],
    policy: Callable[[str, Any, float], Any],
    *,
    sensitive: Sequence[str],
    episodes: int,
    seed: int = 0,
    without: Mapping[str, Any] | None = None,
    each: OnProgress = lambda: None,
) -> Episodes:
    """Play episodes of your own PettingZoo environment.

    Agents may leave early or join late; an agent that never joins earns 0.

    Args:
        env: A `pettingzoo.ParallelEnv`.
        attributes: The attribute codes of each possible agent: ``{"car_0": {"human": 1, "fast": 0}, ...}``. All agents
            have the same attributes; codes are integers of at least 0.
        policy: ``policy(agent, observation, uniform)`` returns the agent's action. The number in [0, 1) depends only on
            the seed, the step and the agent, so both worlds use common random numbers.
        sensitive: The attributes that should make no difference; all others are legitimate factors.
        episodes: Number of episodes.
        seed: Seed of the first episode; each further episode uses the next seed.
        without: For counterfactual fairness: by attribute with codes 0 and 1, an environment in which no agent has it.
            All its randomness must come from the seed; otherwise the difference also contains noise.
        each: Called after each episode.

    Raises:
        ValueError: There are no agents; attributes belong to other agents, differ in their names, or have codes that
            are not integers of at least 0; a sensitive attribute is unknown; or an environment in ``without`` has other
            agents or an attribute with more than two codes.
        TypeError: This is not a parallel environment, or ``attributes`` is not a dictionary of dictionaries.

    Example:
        >>> from fair_envs.envs.traffic import parallel_env
        >>> cars = {f"agent_{k}": {"red": k % 2, "large": int(k < 3)} for k in range(6)}
        >>> env = parallel_env(cars=6, horizon=20)
        >>> played = play_parallel(env, cars, lambda *_: 7, sensitive=["red"], episodes=4)
        >>> [found.notion for found in measure(played)]
        ['demographic_parity', 'conditional_parity', 'conditional_parity']
    """
    check_count("episodes", episodes)
    names = _checked_attributes(_checked_parallel("env", env), attributes)
    _check_sensitive(sensitive, names)
    worlds = dict(without or {})
    _check_without(worlds, env, attributes, sensitive)
    seeds = check_seeds(seed, episodes).tolist()
    agents = list(env.possible_agents)
    codes = {name: [attributes[agent][name] for agent in agents] for name in names}
    played = {"": env, **worlds}
    values: dict[str, list[Floats]] = {world: [] for world in played}
    for one in seeds:
        for world, own in played.items():
            values[world].append(_play_episode(own, agents, policy, seed=one))
        each()
    bare = {world: codes | {world: [0] * len(agents)} for world in worlds}
    return Episodes(
        returns=Returns(values[""], attributes=codes),
        without={world: Returns(values[world], attributes=bare[world]) for world in bare},
        sensitive=tuple(sensitive),
        legitimate=tuple(name for name in names if name not in sensitive),
    )


def _play_episode(env: Any, agents: Sequence[str], policy: Callable[[str, Any, float], Any], *, seed: int) -> Floats:
    """Return each agent's return in the first episode with a seed."""
    earned = np.zeros(len(agents))
    for step in rollout(ParallelWorld(env, seed=seed), OfEachAgent(env, agents, policy)):
        earned += step.reward[0]
    return earned


class OfEachAgent(Policy):
    """Calls a function for the action of each present agent: ``function(agent, observation, uniform)``."""

    def __init__(self, env: Any, agents: Sequence[str], function: Callable[[str, Any, float], Any]) -> None:
        self._env, self._function = env, function
        self._place = {agent: k for k, agent in enumerate(agents)}

    def act(self, observation: Any, uniforms: Floats) -> Any:
        """Return the actions by agent."""
        return {
            agent: self._function(agent, observation[agent], uniforms[0, self._place[agent]])
            for agent in self._env.agents
        }


def _checked_parallel(name: str, env: Any) -> list[str]:
    """Return the possible agents of a parallel environment."""
    if not isinstance(env, ParallelEnv):
        raise TypeError(f"{name} must be a pettingzoo.ParallelEnv, got {env!r}")
    agents = list(getattr(env, "possible_agents", ()))
    if not agents:
        raise ValueError(f"{name} must have possible_agents, got none")
    return agents


def _checked_attributes(agents: Sequence[str], attributes: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """Return the names of the attributes, the same for all agents."""
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes must be a dictionary by agent, got {attributes!r}")
    odd = sorted(map(str, set(attributes) ^ set(agents)))
    if odd:
        raise ValueError(f"attributes must have one entry for each possible agent; missing or unknown: {odd}")
    for agent, own in attributes.items():
        if not isinstance(own, Mapping):
            raise TypeError(f"attributes[{agent!r}] must be a dictionary of codes by name, got {own!r}")
    names = tuple(attributes[agents[0]])
    if not names:
        raise ValueError("attributes must name at least one attribute of each agent, got none")
    for agent, own in attributes.items():
        if set(own) != set(names):
            raise ValueError(f"attributes must have the same names for all, {list(names)}, got {list(own)} of {agent}")
        for name, code in own.items():
            if not isinstance(code, (int, np.integer)) or code < 0:
                raise ValueError(f"attributes[{agent!r}][{name!r}] must be an integer of at least 0, got {code!r}")
    return names


def _check_sensitive(sensitive: Sequence[str], names: Sequence[str]) -> None:
    """Raise ValueError unless ``sensitive`` lists known attributes, at least one and each only once."""
    if isinstance(sensitive, str) or not sensitive:
        raise ValueError(f"sensitive must list names of attributes, got {sensitive!r}")
    for name in sensitive:
        if name not in names:
            raise ValueError(f"sensitive must be among {', '.join(names)}, got {name!r}")
    check_once("sensitive", sensitive)


def check_once(argument: str, names: Sequence[str]) -> None:
    """Raise ValueError for a name that is given twice."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{argument} must name {name!r} once, got it {names.count(name)} times")


def _check_without(
    worlds: Mapping[str, Any], env: Any, attributes: Mapping[str, Mapping[str, int]], sensitive: Sequence[str]
) -> None:
    """Raise an error unless each world has the same agents and removes a sensitive attribute with codes 0 and 1."""
    for name, world in worlds.items():
        if name not in sensitive:
            raise ValueError(f"without must name sensitive attributes, {', '.join(sensitive)}, got {name!r}")
        agents = _checked_parallel(f"without[{name!r}]", world)
        if set(agents) != set(env.possible_agents):
            raise ValueError(f"without[{name!r}] must have the agents of env, {env.possible_agents}, got {agents}")
        codes = sorted({own[name] for own in attributes.values()})
        if codes[-1] > 1:
            raise ValueError(f"without[{name!r}] must be left out: {name} must have codes 0 and 1, got {codes}")


# Measures -------------------------------------------------------------------------------------------------------------


def measure(
    episodes: Episodes, *, attributes: Sequence[str] | None = None, form: Form = "difference", level: float = 0.95
) -> list[Measured]:
    """Return every notion for every attribute, with its interval over episodes.

    Args:
        episodes: The played episodes.
        attributes: The attributes to measure, one after another; None: the sensitive ones. Conditional parity compares
            groups within each value of each legitimate factor, except the attribute itself.
        form: See `MEANINGS`. Positive means that agents without the attribute are better off, except for ``"sum"``,
            the definition.
        level: Coverage of the intervals.

    Raises:
        ValueError: An attribute or the form is unknown.
    """
    return [
        Measured(one.notion, one.attribute, one.within, mean_interval(one.values, undefined="omit", level=level))
        for one in gaps(episodes, attributes=attributes, form=form)
    ]


def gaps(episodes: Episodes, *, attributes: Sequence[str] | None = None, form: Form = "difference") -> list[Series]:
    """Return every notion for every attribute as a series over episodes, see `measure`."""
    chosen = _chosen(episodes, attributes)
    found = [
        Series(notion, attribute, "", values)
        for (notion, attribute), values in episodes.decided.items()
        if attribute in chosen
    ]
    for name in chosen if episodes.of_agents else ():
        for label, group in groups_of(episodes, name):
            rows = _of_group(episodes, name, group, form)
            found += [Series(notion, label, within, values) for notion, within, values in rows]
    return found


def _chosen(episodes: Episodes, attributes: Sequence[str] | None) -> Sequence[str]:
    return episodes.sensitive if attributes is None else attributes


def outcomes(episodes: Episodes) -> list[Series]:
    """Return series over episodes of the total return, each group's mean return, and welfare over agents."""
    found = [Series(TOTAL, "", "", episodes.returns.values.sum(axis=1))]
    if not episodes.of_agents:
        return found
    for name in episodes.sensitive:
        for label, group in groups_of(episodes, name):
            sides = sensitive_returns(episodes.returns, sensitive=group)
            found += [Series(notion, label, "", sides[side]) for notion, side in SIDES.items()]
    return found + [Series(name, "", "", function(episodes.returns.values)) for name, function in WELFARE.items()]


def check_measure(
    spec: FairSpec, *, attributes: Sequence[str] | None, form: str = "difference", flip: str = "protected"
) -> None:
    """Raise ValueError for options that `play_system` or `measure` would reject later, and for repeated attributes."""
    known = [*spec.sensitive, *spec.legitimate]
    for name in attributes or ():
        if name not in known:
            raise ValueError(f"attribute must be one of {', '.join(known)}, got {name!r}")
    check_once("attribute", attributes or ())
    check_choice(form, "form", FORMS)
    check_choice(flip, "flip", FLIPS)


def groups_of(episodes: Episodes, attribute: str) -> Iterator[tuple[str, Group]]:
    """Yield labels and groups for an attribute: code 1, or each code that occurs if there are more than two."""
    codes = np.unique(episodes.returns.attribute(attribute))
    if len(episodes.values.get(attribute, ())) <= 2 and codes.dtype.kind != "U" and set(codes.tolist()) <= {0, 1}:
        yield attribute, attribute
    else:
        for code in codes.tolist():
            yield f"{attribute}={code}", {attribute: code}


def named(label: str, values: Mapping[str, Sequence[str]]) -> str:
    """Return a readable label: ``"fast=1"`` with the name of its code, if the code has a name."""
    attribute, _, code = label.partition("=")
    names = values.get(attribute, ())
    return f"{attribute}={names[int(code)]}" if code.isdigit() and int(code) < len(names) else label


def _of_group(episodes: Episodes, name: str, group: Group, form: Form) -> Iterator[tuple[str, str, Floats]]:
    """Yield each notion of a group, with one number per episode."""
    returns = episodes.returns
    yield "demographic_parity", "", demographic_parity(returns, sensitive=group, form=form)
    if name in episodes.without and group == name:
        pair = returns, episodes.without[name]
        yield "counterfactual_fairness", "", counterfactual_fairness(*pair, sensitive=group, form=form)
    for factor in episodes.legitimate:
        if factor != name:
            parts = conditional_parity(returns, sensitive=group, legitimate=factor, form=form)
            for value, values in parts.items():
                yield "conditional_parity", f"{factor}={value}", values


def negative_totals(episodes: Episodes, *, attributes: Sequence[str] | None = None) -> bool:
    """Return whether a compared group has a total return below 0 in some episode; ratios then mean little."""
    names = _chosen(episodes, attributes) if episodes.of_agents else ()
    return any((totals < 0).any() for name in names for totals in _totals(episodes, name))


def _totals(episodes: Episodes, name: str) -> Iterator[Floats]:
    """Yield the total returns of agents with and without an attribute, over all agents and in each stratum."""
    returns = episodes.returns
    codes = [returns.attribute(factor) for factor in episodes.legitimate if factor != name]
    strata = [np.ones(returns.values.shape, bool), *(own == code for own in codes for code in np.unique(own))]
    for label, group in groups_of(episodes, name):
        having = returns.members(group)
        for who in (having, ~having):
            yield from (returns.values.sum(axis=1, where=who & stratum) for stratum in strata)
        if name in episodes.without and label == name:
            yield episodes.without[name].values.sum(axis=1, where=having)


def total_return(episodes: Episodes, *, level: float = 0.95) -> Estimate:
    """Return the total return of all agents per episode."""
    return mean_interval(outcomes(episodes)[0].values, level=level)


# Reports --------------------------------------------------------------------------------------------------------------

MEANINGS: Mapping[Form, str] = {
    "sum": "Positive: agents with the attribute are better off; in units of return, summed over pairs of agents.",
    "difference": "Positive: agents without the attribute are better off; in units of return, per agent.",
    "total": "Positive: agents without the attribute are better off; in units of return, per group.",
    "ratio": "Positive: agents without the attribute are better off; as a share of the return of both groups.",
    "mean_ratio": "Positive: agents without the attribute are better off; as a share, as if groups had equal size.",
}
"""The sign and unit of a parity, by form."""

FLIPPED: Mapping[Flip, str] = {
    "protected": "Counterfactual fairness: all agents with the attribute lose it at once, so the gap includes the "
    "effect of the other agents' changes; --flip each changes one agent at a time.",
    "each": "Counterfactual fairness: one agent at a time loses the attribute, each in a separate world.",
}


def notes(
    found: Mapping[str, Episodes],
    measured: Mapping[str, Sequence[Measured]],
    *,
    form: Form = "difference",
    flip: Flip = "protected",
    attributes: Sequence[str] | None = None,
) -> Iterator[str]:
    """Yield the notes below a table, one line each; arguments are by policy, and as they were given to `measure`."""
    of_agents = all(episodes.of_agents for episodes in found.values())
    rows = [(one, found[policy].returns.episodes) for policy, own in measured.items() for one in own]
    if of_agents:
        yield MEANINGS[form]
    elif rows:
        yield "Gaps are differences between groups in the decisions about them."
    else:
        yield "No decision is for or against a person: there are no groups to compare."
    if any(one.notion == "counterfactual_fairness" for one, _ in rows):
        yield FLIPPED[flip]
    if any(one.gap.n < episodes for one, episodes in rows):
        why = (
            "all compared agents, or none of them, have the attribute"
            if of_agents
            else "one of the groups has no people to compare"
        )
        more = ", or no agent with it has an otherwise equal agent without it" if form == "sum" and of_agents else ""
        mark = any(one.gap.n < episodes and not np.isnan(one.gap.value) for one, episodes in rows)
        yield f"A gap is undefined in episodes in which {why}{more}{'; (7): it is defined in 7 episodes' * mark}."
    if any(one.gap.n == 1 for one, _ in rows):
        yield "An interval needs two episodes."
    short = [name for name, episodes in found.items() if negative_totals(episodes, attributes=attributes)]
    if "ratio" in form and short:
        reported = "groups have a total return below 0 in some episodes"
        yield f"A ratio means little here, use --form difference: {reported} of {', '.join(short)}."
    yield "Intervals are over test episodes."


def report(
    found: Mapping[str, Episodes],
    *,
    attributes: Sequence[str] | None = None,
    form: Form = "difference",
    flip: Flip = "protected",
    about: Mapping[str, Any] | None = None,
) -> Report:
    """Return a report of every notion for every attribute and policy, and of the total return of all agents.

    Args:
        found: The episodes, by policy.
        attributes: See `measure`.
        form: See `MEANINGS`.
        flip: The way the attribute was flipped, see `play_system`.
        about: Further metadata of the report.
    """
    measured = {name: measure(episodes, attributes=attributes, form=form) for name, episodes in found.items()}
    values = next(iter(found.values())).values
    estimates: dict[Labels, Estimate] = {
        (policy, one.attribute, one.notion, one.within): one.gap for policy, own in measured.items() for one in own
    }
    estimates |= {(policy, "", "total_return", ""): total_return(episodes) for policy, episodes in found.items()}
    return Report(
        labels=("policy", "attribute", "notion", "within"),
        estimates=estimates,
        across="policy",
        about={"episodes": next(iter(found.values())).returns.episodes, "form": form, "flip": flip, **(about or {})},
        spelled=lambda label: named(label, values),
        notes=list(notes(found, measured, form=form, flip=flip, attributes=attributes)),
    )


__all__ = [
    "FLIPPED",
    "MEANINGS",
    "Episodes",
    "Measured",
    "Series",
    "can_flip",
    "can_tell",
    "check_measure",
    "check_once",
    "gaps",
    "groups_of",
    "measure",
    "named",
    "negative_totals",
    "notes",
    "outcomes",
    "play_parallel",
    "play_system",
    "report",
    "total_return",
]
