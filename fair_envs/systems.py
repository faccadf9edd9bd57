"""Measures any multi-agent system by demographic parity, counterfactual fairness and conditional statistical parity.

A system is an environment with somebody who plays it. `play_system` plays one of this package, `play_parallel` a
PettingZoo environment of one's own whose agents are given attributes by a dictionary; `measure` says, attribute by
attribute, how much better off those are who do not have it. The definitions are those of La Malfa, Zhang, Luck and
Black, "Using Protected Attributes to Consider Fairness in Multi-Agent Systems", AEQUITAS 2024, arXiv:2410.12889.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fair_envs
from fair_envs.core import check_count, check_seeds
from fair_envs.interactions import FairSpec
from fair_envs.metrics.intervals import Estimate, mean_interval
from fair_envs.metrics.returns import (
    FORMS,
    Form,
    Group,
    Returns,
    conditional_parity,
    counterfactual_fairness,
    demographic_parity,
)
from fair_envs.wrappers.twin import Plays, Policy, Twins

Floats = NDArray[np.float64]
Notion = Literal["demographic_parity", "counterfactual_fairness", "conditional_parity"]
Nothing = Callable[[], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Episodes:
    """What agents earned, and what those who have an attribute would have earned without it.

    Attributes:
        returns: Of every agent in every episode, with its attributes.
        without: By attribute, the same episodes with the same luck, but that nobody who had the attribute has it. None
            of an attribute that nobody can be imagined without.
        sensitive: The attributes that should make no difference.
        legitimate: Those that may.
    """

    returns: Returns
    without: Mapping[str, Returns] = field(default_factory=dict)
    sensitive: Sequence[str]
    legitimate: Sequence[str] = ()

    @classmethod
    def joined(cls, parts: Sequence["Episodes"]) -> "Episodes":
        """Return the episodes of all parts, one after another."""
        first = parts[0]
        return cls(
            returns=Returns.concat(part.returns for part in parts),
            without={name: Returns.concat(part.without[name] for part in parts) for name in first.without},
            sensitive=first.sensitive,
            legitimate=first.legitimate,
        )


class Measured(NamedTuple):
    """One notion of one attribute.

    Attributes:
        notion: Which.
        attribute: Whose carriers are compared; with several values, ``"name=value"``.
        within: Of conditional parity, the factor and its value, such as ``"fast=1"``; else nothing.
        gap: Positive: those without the attribute are better off, in units of return; 0 is parity.
    """

    notion: Notion
    attribute: str
    within: str
    gap: Estimate


# Systems of this package ----------------------------------------------------------------------------------------------


def play_system(
    env: Any,
    policy: Policy,
    *,
    episodes: int,
    seed: int = 0,
    lanes: int = 64,
    append_group: bool = False,
    counterfactual: bool = True,
    threads: int = 1,
    each: Nothing = lambda: None,
) -> Episodes:
    """Play episodes of an environment of this package, and again with the first sensitive attribute taken away.

    Args:
        env: Its rules, or an environment of any face.
        policy: Observations (B, agents, ...) and uniform numbers (B, agents) to actions (B, agents, ...).
        episodes: How many.
        seed: Of the first; the next one has the next seed.
        lanes: How many are played at once; the results do not depend on it.
        append_group: Whether observations end with the agent's group.
        counterfactual: Whether to play them again, if the environment's agents have an attribute that can be flipped.
        threads: How many threads share the lanes.
        each: Called after each of `batches`.

    Raises:
        ValueError: Nobody but a decision-maker acts, no episode, a seed out of range, or actions outside their space.
        TypeError: Not an environment of this package.
    """
    check_count("episodes", episodes)
    options: dict[str, Any] = {"lanes": lanes, "append_group": append_group, "threads": threads}
    plays = Plays(env, **options)
    twins = Twins(env, **options) if counterfactual and can_flip(plays.rules) else None
    spec, found = plays.rules.spec, []
    for seeds in batches(check_seeds(seed, episodes), lanes):
        if twins is None:
            returns, without = plays.play(policy, seeds=seeds), {}
        else:
            pairs = twins.run(policy, episodes=len(seeds), seed=int(seeds[0]), flip="carriers")
            returns, without = pairs.factual, {pairs.sensitive: pairs.counterfactual}
        found.append(
            Episodes(
                returns=returns, without=without, sensitive=tuple(spec.sensitive), legitimate=tuple(spec.legitimate)
            )
        )
        each()
    return Episodes.joined(found)


def batches(seeds: NDArray[np.uint64], lanes: int) -> list[NDArray[np.uint64]]:
    """Return the seeds that are played at once, time after time."""
    return [seeds[first : first + lanes] for first in range(0, len(seeds), lanes)]


def can_flip(rules: Any) -> bool:
    """Return whether the agents have an attribute that can be taken away."""
    agents = rules.agents(rules.params)
    try:
        rules.flip(np.zeros(1, rules.dtype), np.zeros((1, agents), bool))
    except ValueError:
        return False
    return bool(rules.multi_agent)


# Systems of one's own -------------------------------------------------------------------------------------------------


def play_parallel(
    env: Any,
    attributes: Mapping[str, Mapping[str, int]],
    policy: Callable[[str, Any, float], Any],
    *,
    sensitive: Sequence[str],
    episodes: int,
    seed: int = 0,
    without: Mapping[str, Any] | None = None,
    each: Nothing = lambda: None,
) -> Episodes:
    """Play episodes of a PettingZoo environment of one's own.

    Agents may leave early or come late; one that never comes earns 0.

    Args:
        env: A `pettingzoo.ParallelEnv`.
        attributes: The codes of each attribute of each possible agent: ``{"car_0": {"human": 1, "fast": 0}, ...}``; all
            agents have the same attributes, codes are whole numbers of at least 0.
        policy: ``policy(agent, observation, uniform)`` returns the agent's action; the number in [0, 1) is a function
            of the seed, the step and the agent alone, so that equal luck can be met in both worlds.
        sensitive: The attributes that should make no difference; all others are legitimate factors.
        episodes: How many.
        seed: Of the first; the next one has the next seed.
        without: By attribute with codes 0 and 1, the environment in which nobody has it, for counterfactual fairness.
            It must draw its chance from the seed alone, or what differs is noise too.
        each: Called after each episode.

    Raises:
        ValueError: Attributes of other agents than the environment's, of different names, codes below 0, or a sensitive
            one that nobody has.
        TypeError: Not a parallel environment.

    Example:
        >>> from fair_envs.envs.traffic import parallel_env
        >>> cars = {f"agent_{k}": {"red": k % 2, "large": int(k < 3)} for k in range(6)}
        >>> env = parallel_env(cars=6, horizon=20)
        >>> played = play_parallel(env, cars, lambda *_: 7, sensitive=["red"], episodes=4)
        >>> [found.notion for found in measure(played)]
        ['demographic_parity', 'conditional_parity', 'conditional_parity']
    """
    check_count("episodes", episodes)
    names = _checked_attributes(env, attributes, sensitive)
    for name in without or {}:
        if name not in sensitive:
            raise ValueError(f"without must name sensitive attributes, {', '.join(sensitive)}, got {name!r}")
    seeds = check_seeds(seed, episodes).tolist()
    agents = list(env.possible_agents)
    codes = {name: [attributes[agent][name] for agent in agents] for name in names}
    played = {"": env, **(without or {})}
    values: dict[str, list[Floats]] = {world: [] for world in played}
    for one in seeds:
        for world, own in played.items():
            values[world].append(_play_episode(own, agents, policy, seed=one))
        each()
    bare = {world: codes | {world: [0] * len(agents)} for world in without or {}}
    return Episodes(
        returns=Returns(values[""], attributes=codes),
        without={world: Returns(values[world], attributes=bare[world]) for world in bare},
        sensitive=tuple(sensitive),
        legitimate=tuple(name for name in names if name not in sensitive),
    )


def _play_episode(env: Any, agents: Sequence[str], policy: Callable[[str, Any, float], Any], *, seed: int) -> Floats:
    """Return what each agent earns in the first episode of a seed."""
    place = {agent: k for k, agent in enumerate(agents)}
    earned, time = np.zeros(len(agents)), 0
    observations, _ = env.reset(seed=seed)
    while env.agents:
        luck = np.random.default_rng([seed, time]).random(len(agents))
        actions = {agent: policy(agent, observations[agent], luck[place[agent]]) for agent in env.agents}
        observations, rewards, *_ = env.step(actions)
        for agent, reward in rewards.items():
            earned[place[agent]] += reward
        time += 1
    return earned


def _checked_attributes(
    env: Any, attributes: Mapping[str, Mapping[str, int]], sensitive: Sequence[str]
) -> tuple[str, ...]:
    """Return the names of the attributes, the same for all agents."""
    if not hasattr(env, "possible_agents") or not hasattr(env, "step"):
        raise TypeError(f"env must be a pettingzoo.ParallelEnv, got {env!r}")
    odd = sorted(set(attributes) ^ set(env.possible_agents))
    if odd:
        raise ValueError(f"attributes must have one entry for each possible agent; missing or unknown: {odd}")
    names = tuple(attributes[env.possible_agents[0]])
    for agent, own in attributes.items():
        if set(own) != set(names):
            raise ValueError(f"attributes must have the same names for all, {list(names)}, got {list(own)} of {agent}")
    if isinstance(sensitive, str) or not sensitive:
        raise ValueError(f"sensitive must list names of attributes, got {sensitive!r}")
    for name in sensitive:
        if name not in names:
            raise ValueError(f"sensitive must be among {', '.join(names)}, got {name!r}")
    return names


# Measures -------------------------------------------------------------------------------------------------------------


def measure(
    episodes: Episodes, *, attributes: Sequence[str] | None = None, form: Form = "difference", level: float = 0.95
) -> list[Measured]:
    """Return every notion of every attribute, with its interval over episodes.

    Args:
        episodes: What was played.
        attributes: Which are looked at; None: the sensitive ones. Each in its turn is *the* attribute, and conditional
            parity looks within each value of each legitimate factor but itself.
        form: See `fair_envs.metrics.returns`; in all but ``"sum"``, the definition, positive means that those without
            the attribute are better off.
        level: Share of such intervals that cover.

    Raises:
        ValueError: An unknown attribute or form.
    """
    found = []
    for name in episodes.sensitive if attributes is None else attributes:
        for label, group in groups_of(episodes.returns, name):
            rows = _series(episodes, name, group, form)
            found += [
                Measured(notion, label, within, mean_interval(values, undefined="omit", level=level))
                for notion, within, values in rows
            ]
    return found


def check_measure(spec: FairSpec, *, attributes: Sequence[str] | None, form: str) -> None:
    """Raise ValueError for what `measure` would refuse after everything was played."""
    known = [*spec.sensitive, *spec.legitimate]
    for name in attributes or ():
        if name not in known:
            raise ValueError(f"attribute must be one of {', '.join(known)}, got {name!r}")
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")


def groups_of(returns: Returns, attribute: str) -> Iterator[tuple[str, Group]]:
    """Yield who has an attribute: those of code 1, or those of each code where there are more than two."""
    codes = np.unique(returns.attribute(attribute))
    if codes.dtype.kind != "U" and set(codes.tolist()) <= {0, 1}:
        yield attribute, attribute
    else:
        for code in codes.tolist():
            yield f"{attribute}={code}", {attribute: code}


def _series(episodes: Episodes, name: str, group: Group, form: Form) -> Iterator[tuple[Notion, str, Floats]]:
    """Yield each notion of a group with one number for each episode."""
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


def total_return(episodes: Episodes, *, level: float = 0.95) -> Estimate:
    """Return what all agents together earn in an episode."""
    return mean_interval(episodes.returns.values.sum(axis=1), level=level)


# Reports --------------------------------------------------------------------------------------------------------------


def table(measured: Mapping[str, Sequence[Measured]], totals: Mapping[str, Estimate]) -> Any:
    """Return the numbers for people: a row for each notion, a column for each policy."""
    from rich.table import Table
    from rich.text import Text

    shown = Table("attribute", "notion", "within", box=None, pad_edge=False)
    for policy in measured:
        shown.add_column(Text(policy))
    for rows in zip(*measured.values(), strict=True):
        one = rows[0]
        texts = (one.attribute, one.notion, one.within, *(_short(row.gap) for row in rows))
        shown.add_row(*map(Text, texts))
    shown.add_row("", "total return", "", *(Text(_short(total)) for total in totals.values()))
    return shown


def _short(estimate: Estimate) -> str:
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"


def save(
    measured: Mapping[str, Sequence[Measured]],
    totals: Mapping[str, Estimate],
    folder: Path,
    *,
    about: Mapping[str, Any],
) -> None:
    """Write ``report.json`` and ``report.csv`` into a new folder.

    Args:
        measured: By policy.
        totals: What all agents together earn in an episode, by policy.
        folder: It must not exist.
        about: What the numbers belong to, for the JSON.
    """
    folder.mkdir(parents=True)
    rows = [
        {"policy": name, "attribute": one.attribute, "notion": one.notion, "within": one.within, **one.gap.as_dict()}
        for name, found in measured.items()
        for one in found
    ]
    everything = {"attribute": "", "notion": "total_return", "within": ""}
    rows += [{"policy": name, **everything, **total.as_dict()} for name, total in totals.items()]
    plain = {"fair_envs": fair_envs.__version__, **about, "measured": rows}
    (folder / "report.json").write_text(json.dumps(plain, indent=2) + "\n")
    with (folder / "report.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


__all__ = [
    "Episodes",
    "Measured",
    "batches",
    "can_flip",
    "check_measure",
    "groups_of",
    "measure",
    "play_parallel",
    "play_system",
    "save",
    "table",
    "total_return",
]
