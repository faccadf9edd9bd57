"""Scripted policies for FairEpidemic, and what makes vaccinations fairer in the short term.

They know the network, which is public, and read health from the observation; they ask for nothing that is hidden.
"""

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Flags, Floats, Ints
from fair_envs.baselines.massaging import DIGITS, PolicyOutput
from fair_envs.envs.epidemic.networks import Network
from fair_envs.envs.epidemic.rules import INFECTED, SUSCEPTIBLE, Epidemic
from fair_envs.evaluation import DecisionMaker
from fair_envs.metrics.long_term import Measure

NOBODY = -1  # in place of a person's community


class Vaccinator(DecisionMaker):
    """Vaccinates the susceptible person of the highest score; the first among equals.

    Subclasses say the score.

    Args:
        env: FairEpidemic with one vaccine a step, of any interface, or its rules.
        otherwise: Who is vaccinated when nobody is susceptible: ``"nobody"``, or the ``"hub"``, the person with the
            most neighbours, as in the published code of Hu, Lear and Zhang (2024), where it has no effect.

    Raises:
        ValueError: Another environment, or several vaccines.
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
        """Return how urgent each person is, shape (B, people).

        Args:
            seen: Observations, shape (B, people, columns).
        """
        raise NotImplementedError

    def candidates(self, seen: Floats) -> Flags:
        """Return who may be vaccinated, shape (B, people): the susceptible."""
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
        """Return how many neighbours are infected."""
        return np.asarray(seen[..., INFECTED] @ self.adjacency, np.float64)


class Central(Vaccinator):
    """Vaccinates the person of the highest eigenvector centrality.

    Args:
        env: FairEpidemic with one vaccine a step, of any interface, or its rules.
        otherwise: See `Vaccinator`.
        susceptible_only: Whether the infected are passed over. ml-fairness-gym's agent vaccinates them too, without
            effect: only the immune are passed over.
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
        """Return the susceptible, or all but the immune."""
        return np.asarray(seen[..., : self._last + 1].any(axis=-1))


class RandomSusceptible(Vaccinator):
    """Vaccinates a susceptible person, each with the same probability."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return equal probabilities of the susceptible, shape (B, people + 1)."""
        candidates = self.candidates(by_person(observation, self.people))
        probabilities = np.zeros((len(candidates), self.people + 1))
        probabilities[:, :-1] = candidates / np.maximum(candidates.sum(axis=1, keepdims=True), 1)
        probabilities[~candidates.any(axis=1), self.otherwise] = 1.0
        return probabilities


class Nobody(Vaccinator):
    """Vaccinates nobody."""

    def candidates(self, seen: Floats) -> Flags:
        """Return nobody."""
        return np.zeros(seen.shape[:2], bool)

    def scores(self, seen: Floats) -> Floats:
        """Return 0."""
        return np.zeros(seen.shape[:2])


def network_of(env: Any) -> Network:
    """Return who meets whom in an environment of FairEpidemic, of any face, or by its rules.

    Raises:
        ValueError: The environment is no epidemic with one vaccine a step.
    """
    lanes = getattr(getattr(env, "unwrapped", None), "lanes", None)
    rules = env if isinstance(env, Epidemic) else getattr(lanes, "rules", None)
    if not isinstance(rules, Epidemic):
        raise ValueError(f"env must be FairEpidemic with one vaccine a step, got {env}")
    if rules.params.vaccines != 1:
        raise ValueError(f"env must be FairEpidemic with one vaccine a step, got {rules.params.vaccines} vaccines")
    return rules.network


def by_person(observation: NDArray[Any], people: int) -> Floats:
    """Return observations, flat or not, with a row for each person, shape (B, people, columns)."""
    return np.reshape(observation, (len(observation), people, -1))


def eigenvector_centrality(adjacency: Ints) -> Floats:
    """Return each person's entry in the eigenvector of the largest eigenvalue, at least 0; shape (people,)."""
    _, vectors = np.linalg.eigh(adjacency.astype(np.float64))
    first: Floats = np.abs(vectors[:, -1]).round(12)  # equal ones stay equal
    return first


# ---------------------------------------------------------------------------------------------------- massaging


class EpidemicMassager:
    """Gives unlikely vaccinations to the community that lowers the gap of vaccinations, after Hu, Lear and Zhang.

    A decision whose probability is at most the threshold is unsure. For it, the gap is asked what it would become if
    one more person of each community, or nobody, were vaccinated now. If the best of these is better than what was
    decided, the community's susceptible member whom the policy finds likeliest is vaccinated instead, or nobody. Only
    what has an effect is weighed: a vaccine for somebody who is not susceptible is a vaccine for nobody, and a
    community without susceptible members is no choice.

    It levels down as well as up: where every vaccination would widen the gap, as at the start of an episode, nobody is
    vaccinated and more people fall ill. Read the gap beside the reward.

    Args:
        env: FairEpidemic of any face with one vaccine a step, or its rules.
        ties: ``"keep"``: a decision stays unless another is better, by more than a rounding; ``"first"``: the first of
            the best communities is taken, nobody last, as in the published code, which changes decisions without a
            gain.
        ineffective: Whether vaccines count that have no effect, as in the published code: every community is a choice,
            and its likeliest member is vaccinated where none is susceptible. The measure should then count them too.

    Raises:
        ValueError: Another environment, or several vaccines.

    References:
        Hu, Lear and Zhang, "Striking a balance in fairness for dynamic systems through reinforcement learning", arXiv
        2401.06318, 2024, section 4.
    """

    def __init__(self, env: Any, *, ties: Literal["keep", "first"] = "keep", ineffective: bool = False) -> None:
        network = network_of(env)
        if ties not in ("keep", "first"):
            raise ValueError(f"ties must be 'keep' or 'first', got {ties!r}")
        self.people: int = network.people
        self.groups = len(network.names)
        self.ties, self.ineffective = ties, ineffective
        self._options = np.array([*range(self.groups), NOBODY])[:, np.newaxis]  # to whom a vaccine may be given
        self._community = np.append(network.community, NOBODY)  # of each action
        self._members = network.community == np.arange(self.groups)[:, np.newaxis]  # (groups, people)

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Measure, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions, fresh, shape (B,).

        Args:
            observation: What is seen, shape (B, people, columns) or flat.
            action: Whom the policy vaccinates, shape (B,); the number after the last person's is nobody's.
            policy: With ``probabilities``, shape (B, people + 1).
            short: A `VaccinationGap` after the step before.
            threshold: Actions of at most this probability are unsure.

        Raises:
            ValueError: The policy has no such probabilities.
        """
        chances = self._checked(policy.probabilities, len(action))
        unsure = chances[np.arange(len(action)), action] <= threshold
        if not np.count_nonzero(unsure):
            return np.array(action)
        able = self._able(observation)
        own = self._own(action, able)
        best = self._best(own, able, short)
        given_up = unsure & (best != own)
        if not np.count_nonzero(given_up):
            return np.array(action)
        return np.where(given_up, self._likeliest(best, able, chances), action)

    def _checked(self, probabilities: Floats | None, lanes: int) -> Floats:
        expected = (lanes, self.people + 1)
        if probabilities is None or probabilities.shape != expected:
            got = None if probabilities is None else probabilities.shape
            raise ValueError(f"policy must have probabilities of shape {expected}, got {got}")
        return probabilities

    def _able(self, observation: NDArray[Any]) -> Flags:
        """Return who can be vaccinated with effect, shape (B, people); everybody, if what has none counts too."""
        susceptible: Flags = by_person(observation, self.people)[..., SUSCEPTIBLE] == 1
        if not self.ineffective:
            return susceptible
        some: Flags = (susceptible[:, np.newaxis] & self._members).any(axis=2)  # (B, groups)
        none_beside: Flags = ~some[:, self._community[:-1]]
        return susceptible | none_beside

    def _own(self, action: Ints, able: Flags) -> Ints:
        """Return the community to which a decision gives a vaccine, shape (B,)."""
        effect = able[np.arange(len(action)), np.minimum(action, self.people - 1)]  # nobody's community is nobody's
        return np.where(effect | self.ineffective, self._community[action], NOBODY)

    def _best(self, own: Ints, able: Flags, short: Measure) -> Ints:
        """Return the community whose vaccination gives the smallest gap, or nobody's, shape (B,)."""
        asked: Any = cast(Any, short).if_taken
        gaps = np.stack([asked(option) for option in self._options.repeat(len(own), axis=1)]).round(DIGITS)
        gaps[:-1][~(able[:, np.newaxis] & self._members).any(axis=2).T] = np.inf
        best: Ints = self._options[gaps.argmin(axis=0), 0]
        if self.ties == "first":
            return best
        return np.where(gaps.min(axis=0) < gaps[own, np.arange(len(own))], best, own)

    def _likeliest(self, group: Ints, able: Flags, chances: Floats) -> Ints:
        """Return the likeliest member of a community that can be vaccinated, or nobody, shape (B,)."""
        members = self._community[:-1] == group[:, np.newaxis]
        chosen = np.where(members & able, chances[:, :-1], -1.0).argmax(axis=1)
        return np.where(group == NOBODY, self.people, chosen)


__all__ = [
    "Central",
    "EpidemicMassager",
    "MostInfectedNeighbours",
    "MostNeighbours",
    "Nobody",
    "RandomSusceptible",
    "Vaccinator",
    "eigenvector_centrality",
]
