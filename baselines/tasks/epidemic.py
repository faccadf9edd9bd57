"""What makes vaccinations fairer in the short term, for FairEpidemic."""

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Flags, Floats, Ints
from fair_envs.baselines.massaging import DIGITS, PolicyOutput
from fair_envs.envs.epidemic.policies import by_person, network_of
from fair_envs.envs.epidemic.rules import SUSCEPTIBLE
from fair_envs.metrics.long_term import Measure

NOBODY = -1  # in place of a person's community


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
