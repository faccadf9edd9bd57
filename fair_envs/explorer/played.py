"""Plays the episode that the explorer shows: its record and its film, and the same episode with one change.

The changed episodes have the same random numbers. In the lane that is changed at step t, everything before t is as in
the episode itself, so that all differences come from the change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules
from fair_envs.evaluation import LanesWorld, Policy, Stochastic, Transition, World, begun, rollout
from fair_envs.evaluation.systems import can_flip
from fair_envs.support.aliases import Flags, Floats, Ints

MOST_OBSERVED = 64  # numbers of an observation that are shown


class Watched(Policy):
    """A policy whose action probabilities are kept, and whose action can be changed.

    Args:
        policy: The policy.
        change: Function of the time and the actions, which it changes in place; None: nothing is changed.
    """

    def __init__(self, policy: Policy, change: Callable[[int, NDArray[Any]], None] | None = None) -> None:
        self.policy, self._change, self.time = policy, change, 0
        self.append_group = policy.append_group
        self.probabilities: Floats | None = None

    def start(self, world: World) -> None:
        """Prepare the policy."""
        self.policy.start(world)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Prepare the policy for new episodes."""
        self.policy.begin(mask, episodes)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the policy's actions, changed."""
        if isinstance(self.policy, Stochastic):
            self.probabilities = self.policy.probabilities(observation)
            action = self.policy.sample(self.probabilities, uniforms)
        else:
            action = self.policy.act(observation, uniforms)
        if self._change is not None:
            action = np.array(action)
            self._change(self.time, action)
        self.time += 1
        return action

    def observe_step(self, step: Transition) -> None:
        """Pass the step to the policy."""
        self.policy.observe_step(step)


@dataclass(frozen=True, kw_only=True, eq=False)
class Episode:
    """The first steps of an episode.

    Attributes:
        group, action, label, outcome: The groups of the affected individuals, the decisions, the labels that the policy
            got at once (-1: none), and what the decision was worth to them, shape (steps, individuals).
        sensitive: Codes of the sensitive attributes, shape (steps, individuals, attributes).
        truth: The correct decisions, also those that nobody is told; -1: unknown, shape (steps, individuals).
        features: What is known about the individuals, shape (steps, individuals, features).
        observation: What the first agent observed, shape (steps, numbers); no numbers if they are too many.
        probabilities: The policy's probabilities of the first agent's actions, shape (steps, actions); none if unknown.
        reward: The agents' rewards, shape (steps, agents).
        frames: The pictures before the steps, shape (height, width, 3) each.
    """

    group: Ints
    sensitive: Ints
    action: Ints
    label: Ints
    outcome: Floats
    truth: Ints
    features: Floats
    observation: Floats
    probabilities: Floats
    reward: Floats
    frames: list[NDArray[np.uint8]]


def play(rules: Rules, policy: Policy, *, seed: int, steps: int, frames: int = 0) -> Episode:
    """Play the first steps of the episode with a seed, and draw some of them.

    Args:
        rules: The environment.
        policy: The policy.
        seed: Seed of the episode.
        steps: Largest number of steps.
        frames: Number of the first steps that are drawn.
    """
    lanes = begun(rules, np.array([seed], np.uint64))
    watched = Watched(policy)
    renderer = rules.renderer() if frames else None
    rows: list[dict[str, Any]] = []
    pictures: list[NDArray[np.uint8]] = []
    world = LanesWorld(lanes, append_group=policy.append_group)

    def look() -> None:
        """Keep what is known before a step."""
        if renderer is not None and len(pictures) < frames:
            pictures.append(np.array(renderer.frame(lanes.records[0])))
        rows.append({"truth": truth_of(lanes), "observation": np.array(world.observation[0, 0], np.float64).ravel()})

    look()
    for step in rollout(world, watched):
        given = watched.probabilities
        rows[-1] |= {"facts": step.facts[0].copy(), "reward": np.array(step.reward[0], np.float64)}
        rows[-1]["probabilities"] = np.zeros(0) if given is None else np.array(given[0, 0]).ravel()
        if len(rows) >= steps or step.ended[0]:
            break
        look()
    facts = np.array([row["facts"] for row in rows])
    shown = len(rows[0]["observation"]) <= MOST_OBSERVED
    return Episode(
        group=facts["group"],
        sensitive=facts["sensitive"],
        action=facts["action"],
        label=facts["feedback"],
        outcome=facts["outcome"].astype(np.float64),
        truth=np.array([row["truth"] for row in rows]),
        features=facts["features"].astype(np.float64),
        observation=np.array([row["observation"] for row in rows]) if shown else np.zeros((len(rows), 0)),
        probabilities=np.array([row["probabilities"] for row in rows]),
        reward=np.array([row["reward"] for row in rows]),
        frames=pictures,
    )


def truth_of(lanes: Lanes) -> Ints:
    """Return the correct decisions about the individuals of the next step of one lane; -1: there are none."""
    known = {} if lanes.rules.multi_agent else lanes.rules.oracle(lanes.records)
    if "feedback" not in known:
        return np.full(lanes.rules.spec.individuals, -1)
    return np.asarray(known["feedback"][0], np.int64).ravel()


# The same episode with one change -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Changed:
    """The same episode with a change in each of several places, shape (places, steps, individuals) each.

    Attributes:
        kind: What is changed: ``"attribute"`` or ``"decision"``.
        places: The steps, or the agents, in which the change is made.
        action: The decisions.
        outcome: What they were worth to the individuals; for agents, their rewards.
        told: What is changed in each place, in words; empty: the kind says it.
    """

    kind: str
    places: Ints
    action: Ints
    outcome: Floats
    told: Sequence[str] = ()


def with_other_attribute(rules: Rules, policy: Policy, factual: Episode, *, seed: int) -> Changed | None:
    """Return the episode with another attribute of one person, or of one agent; None: the rules do not define it.

    If decisions are about one person in each step, place t is the person of step t, who has the next value of the first
    attribute. If agents have the attribute, place k is an agent, who has the other value throughout.
    """
    steps = len(factual.action)
    if rules.multi_agent:
        return _flipped_agents(rules, policy, seed=seed, steps=steps)
    if not rules.spec.one_person or type(rules).assign is Rules.assign:
        return None
    name, values = next(iter(rules.spec.sensitive.items()))
    time = 0

    def assign(lanes: Lanes) -> None:
        """Give the person of this step another value in the lane of this step."""
        nonlocal time
        if time < steps:
            code = int(factual.sensitive[time, 0, 0])
            rules.assign(lanes.records[time : time + 1], name, (code + 1) % len(values))
        time += 1

    codes = factual.sensitive[:, 0, 0]
    told = [f"{name}: {values[(code + 1) % len(values)]} instead of {values[code]}" for code in codes]
    changed = _played(rules, Watched(policy), seed=seed, steps=steps, kind="attribute", assign=assign)
    return replace(changed, told=told)


def _flipped_agents(rules: Rules, policy: Policy, *, seed: int, steps: int) -> Changed | None:
    if not can_flip(rules):
        return None
    agents = rules.agents(rules.params)

    def flip(own: Rules, records: NDArray[np.void]) -> None:
        own.flip(records, np.eye(agents, dtype=bool)[: len(records)])

    return _played(rules, Watched(policy), seed=seed, steps=steps, kind="attribute", count=agents, amend=flip)


def with_other_decision(rules: Rules, policy: Policy, *, seed: int, steps: int) -> Changed | None:
    """Return the episode with another action of the first agent in step t, for each t; None: actions are continuous.

    With two actions it is the other one; with more, the next one.
    """
    space = rules.action_space(rules.params)
    if not isinstance(space, gym.spaces.Discrete):
        return None

    def change(time: int, action: NDArray[Any]) -> None:
        if time < len(action):
            action[time, 0] = (action[time, 0] + 1) % int(space.n)

    return _played(rules, Watched(policy, change), seed=seed, steps=steps, kind="decision")


def _played(
    rules: Rules,
    policy: Watched,
    *,
    seed: int,
    steps: int,
    kind: str,
    count: int | None = None,
    assign: Callable[[Lanes], None] | None = None,
    amend: Callable[[Rules, NDArray[np.void]], None] | None = None,
) -> Changed:
    """Return the first steps of lanes with the same seed, each with its own change."""
    number = steps if count is None else count
    seeds = np.full(number, seed, np.uint64)
    lanes = begun(rules, seeds, amendments=[] if amend is None else [amend])
    world = LanesWorld(lanes, append_group=policy.append_group, assign=assign)
    actions: list[Ints] = []
    outcomes: list[Floats] = []
    for step in rollout(world, policy):
        facts: Any = step.facts
        actions.append(np.where(step.active[:, np.newaxis], facts["action"], -1))
        worth = step.reward if rules.multi_agent else facts["outcome"]
        outcomes.append(np.where(step.active[:, np.newaxis], worth, 0.0))
        if len(actions) >= steps:
            break
    return Changed(
        kind=kind,
        places=np.arange(number),
        action=np.stack(actions, axis=1),
        outcome=np.stack(outcomes, axis=1),
    )
