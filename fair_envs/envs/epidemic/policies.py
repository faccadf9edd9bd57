"""Scripted policies for FairEpidemic.

They use the public network and the health states in the observation, and no hidden information.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.envs.epidemic.networks import Network
from fair_envs.envs.epidemic.rules import INFECTED, SUSCEPTIBLE, Epidemic
from fair_envs.evaluation import DecisionMaker, rules_of
from fair_envs.support.aliases import Flags, Floats, Ints


class Vaccinator(DecisionMaker):
    """Vaccinates the susceptible person with the highest score; ties go to the first person.

    Subclasses define the score.

    Args:
        env: FairEpidemic with one vaccine per step, of any interface, or its rules.
        otherwise: Person vaccinated if no one is susceptible: ``"nobody"``, or the ``"hub"``, the person with the most
            neighbours, as in the published code of Hu, Lear and Zhang (2024), where it has no effect.

    Raises:
        ValueError: The environment is not FairEpidemic, or has several vaccines per step.
    """

    def __init__(self, env: Any, *, otherwise: Literal["nobody", "hub"] = "nobody") -> None:
        network = network_of(env)
        if otherwise not in ("nobody", "hub"):
            raise ValueError(f"otherwise must be 'nobody' or 'hub', got {otherwise!r}")
        self.adjacency: Ints = network.adjacency()
        self.people: int = network.people
        self.degrees: Ints = network.degrees()
        self.otherwise = int(self.degrees.argmax()) if otherwise == "hub" else self.people

    def scores(self, seen: Floats) -> Floats:
        """Return the score of each person, shape (B, people).

        Args:
            seen: Observations, shape (B, people, columns).
        """
        raise NotImplementedError

    def candidates(self, seen: Floats) -> Flags:
        """Return the mask of people to consider, shape (B, people): the susceptible."""
        return np.asarray(seen[..., SUSCEPTIBLE] == 1)

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return probabilities 0 and 1, shape (B, people + 1)."""
        seen = by_person(observation, self.people)
        candidates = self.candidates(seen)
        best = np.where(candidates, self.scores(seen), -np.inf).argmax(axis=1)
        chosen = np.where(candidates.any(axis=1), best, self.otherwise)
        certain: Floats = np.eye(self.people + 1)[chosen]
        return certain


class MostNeighbours(Vaccinator):
    """Vaccinates the susceptible person with the most neighbours: the agent "Max" of the published code."""

    def scores(self, seen: Floats) -> Floats:
        """Return the degrees."""
        return np.broadcast_to(self.degrees.astype(np.float64), seen.shape[:2])


class MostInfectedNeighbours(Vaccinator):
    """Vaccinates the susceptible person with the most infected neighbours: the agent "Max" of the paper's text."""

    def scores(self, seen: Floats) -> Floats:
        """Return the numbers of infected neighbours."""
        return np.asarray(seen[..., INFECTED] @ self.adjacency, np.float64)


class Central(Vaccinator):
    """Vaccinates the person with the highest eigenvector centrality.

    Args:
        env: FairEpidemic with one vaccine per step, of any interface, or its rules.
        otherwise: See `Vaccinator`.
        susceptible_only: Whether infected people are skipped. ml-fairness-gym's agent vaccinates them too, without
            effect, and only skips immune people.
    """

    def __init__(
        self, env: Any, *, otherwise: Literal["nobody", "hub"] = "nobody", susceptible_only: bool = True
    ) -> None:
        super().__init__(env, otherwise=otherwise)
        self._last = SUSCEPTIBLE if susceptible_only else INFECTED
        self.centrality = eigenvector_centrality(self.adjacency)

    def scores(self, seen: Floats) -> Floats:
        """Return the centralities."""
        return np.broadcast_to(self.centrality, seen.shape[:2])

    def candidates(self, seen: Floats) -> Flags:
        """Return the mask of the susceptible, or of all but the immune."""
        return np.asarray(seen[..., : self._last + 1].any(axis=-1))


class RandomSusceptible(Vaccinator):
    """Vaccinates a susceptible person chosen uniformly at random."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return equal probabilities for the susceptible, shape (B, people + 1)."""
        candidates = self.candidates(by_person(observation, self.people))
        probabilities = np.zeros((len(candidates), self.people + 1))
        probabilities[:, :-1] = candidates / np.maximum(candidates.sum(axis=1, keepdims=True), 1)
        probabilities[~candidates.any(axis=1), self.otherwise] = 1.0
        return probabilities


class Nobody(Vaccinator):
    """Never vaccinates anyone."""

    def candidates(self, seen: Floats) -> Flags:
        """Return an empty mask."""
        return np.zeros(seen.shape[:2], bool)

    def scores(self, seen: Floats) -> Floats:
        """Return 0."""
        return np.zeros(seen.shape[:2])


def network_of(env: Any) -> Network:
    """Return the contact network of FairEpidemic, of any interface, or of its rules.

    Raises:
        ValueError: The environment is not FairEpidemic with one vaccine per step.
    """
    rules = rules_of(env)
    if not isinstance(rules, Epidemic):
        raise ValueError(f"env must be FairEpidemic with one vaccine a step, got {env}")
    if rules.params.vaccines != 1:
        raise ValueError(f"env must be FairEpidemic with one vaccine a step, got {rules.params.vaccines} vaccines")
    return rules.network


def by_person(observation: NDArray[Any], people: int) -> Floats:
    """Return observations, flat or not, reshaped to one row per person, shape (B, people, columns)."""
    return np.reshape(observation, (len(observation), people, -1))


def eigenvector_centrality(adjacency: Ints) -> Floats:
    """Return each person's entry in the eigenvector of the largest eigenvalue, at least 0; shape (people,)."""
    _, vectors = np.linalg.eigh(adjacency.astype(np.float64))
    first: Floats = np.abs(vectors[:, -1]).round(12)  # keeps ties exact
    return first
