"""Scripted policies for environments with one decision-maker and two decisions, as references for learned ones.

Policies that use the ground truth or a hidden score are bounds; they could not be used in practice.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.evaluation.policy import DecisionMaker
from fair_envs.evaluation.world import Transition, World
from fair_envs.evaluation.worlds import rules_of
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import UnitInterval, checked


class Decider(DecisionMaker):
    """Deterministic decisions for or against a person; subclasses choose the people.

    Args:
        env: The environment, with any interface, or its rules; one person per step, and two decisions.

    Raises:
        ValueError: The environment has several people per step or other decisions.
    """

    def __init__(self, env: Any) -> None:
        self.rules = rules_of(env)
        self.spec = self.rules.spec
        if self.rules.multi_agent or not self.spec.one_person or self.spec.actions != 2:
            raise ValueError(f"env must decide on one person in each step, with two decisions, got {env}")

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return the lanes in which the favourable decision is made, shape (B,)."""
        raise NotImplementedError

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return probabilities 0 and 1, shape (B, 2)."""
        favourable = self.spec.favourable_action
        action = np.where(self.chosen(observation), favourable, 1 - favourable)
        certain: Floats = np.eye(2)[action]
        return certain


class Always(Decider):
    """Makes the favourable decision about every person."""

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return True."""
        return np.ones(len(observation), bool)


class Never(Decider):
    """Never makes the favourable decision."""

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return False."""
        return np.zeros(len(observation), bool)


class Correct(Decider):
    """Makes the decision that is correct by the ground truth.

    It does not always earn the most, because the ground truth ignores later consequences.

    Raises:
        ValueError: The environment has no ground truth.
    """

    uses_truth = True

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        _check_oracle(self.rules, "feedback")

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return where the favourable decision is correct."""
        found: Flags = self.oracle()["feedback"][:, 0] == self.spec.favourable_action
        return found


class RandomRate(Correct):
    """Makes the favourable decision at random, as often as it is correct, independently of the person.

    The probability is the share of the episode's earlier decisions in which it was correct; 1/2 for the first one.
    """

    uses_truth = False  # it knows nothing about a person

    def start(self, world: World) -> None:
        """Count from 0."""
        super().start(world)
        self._people: Ints = np.zeros(world.count, np.int64)
        self._deserving: Ints = np.zeros(world.count, np.int64)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Count from 0 in new episodes."""
        self._people[mask] = self._deserving[mask] = 0

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return probabilities that do not depend on the person, shape (B, 2)."""
        self._next = self.chosen(observation)
        share = np.where(self._people > 0, self._deserving / np.maximum(self._people, 1), 0.5)
        return np.stack((1 - share, share) if self.spec.favourable_action == 1 else (share, 1 - share), axis=-1)

    def observe_step(self, step: Transition) -> None:
        """Count the people who were decided on."""
        self._people += step.active
        self._deserving += step.active & self._next


class Threshold(Decider):
    """Makes the favourable decision about people whose hidden score reaches a threshold.

    Args:
        env: The environment, with any interface, or its rules.
        threshold: The threshold, in units of the score.
        score: Name of the score in `Rules.oracle`.

    Raises:
        ValueError: The environment has no such score.
    """

    uses_truth = True

    def __init__(self, env: Any, threshold: float, *, score: str = "score") -> None:
        super().__init__(env)
        _check_oracle(self.rules, score)
        self.threshold, self.score = checked("threshold", threshold, float), score

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return the lanes in which the score is high enough."""
        found: Flags = self.oracle()[self.score][:, 0] >= self.threshold
        return found


def _check_oracle(rules: Rules, name: str) -> None:
    known = rules.oracle(np.zeros(1, rules.dtype).view(np.recarray))
    if name not in known:
        raise ValueError(f"env must have {name!r} in its oracle, which has {', '.join(known) or 'nothing'}")


class Rejecting(Decider):
    """Accepts everyone, but rejects people whose observed group is not the first one: a planted bias for controls.

    Args:
        env: The environment, with any interface, or its rules.
        probability: With which such a person is rejected; the expected difference between the two kinds of groups.

    Raises:
        ValueError: The group is not observed, or the probability is not between 0 and 1.
    """

    def __init__(self, env: Any, *, probability: float = 1.0) -> None:
        super().__init__(env)
        self._group = column_of(self.rules)
        self.probability = checked("probability", probability, UnitInterval)

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the probabilities of the two decisions, shape (B, 2)."""
        rejected = np.where(observation[:, self._group] > 0, self.probability, 0.0)
        both = (rejected, 1 - rejected) if self.spec.favourable_action == 1 else (1 - rejected, rejected)
        return np.stack(both, axis=-1)


def column_of(rules: Rules, name: str | None = None) -> int:
    """Return the index of a named entry in an observation; None: of the first entry that contains the group.

    An entry that contains it has the name of a sensitive attribute, or that of a group but the first (0 or 1).

    Raises:
        ValueError: There is no such entry.
    """
    names = rules.observed_features(rules.params)
    spec = rules.spec
    wanted = [*spec.sensitive, *spec.sensitive_features, *spec.groups[1:]] if name is None else [name]
    for candidate in wanted:
        if candidate in names:
            return int(names.index(candidate))
    what, listed = "group" if name is None else "name", ", ".join(names) or "none has a name"
    raise ValueError(f"{what} must be an entry of the observation ({listed}), got {name!r}")
