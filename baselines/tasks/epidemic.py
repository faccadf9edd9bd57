"""Massager of vaccinations for FairEpidemic."""

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.ppo.massaging import DIGITS, MassagingSchedule, PolicyOutput
from fair_envs.envs.epidemic.policies import by_person, network_of
from fair_envs.envs.epidemic.rules import SUSCEPTIBLE
from fair_envs.metrics.measures import Measure
from fair_envs.support.aliases import Flags, Floats, Ints

NOBODY = -1  # stands for no person's community


# ---------------------------------------------------------------------------------------------------- massaging


class EpidemicMassager:
    """Redirects uncertain vaccinations to the community that reduces the vaccination gap most (Hu, Lear and Zhang).

    A decision whose probability is at most the threshold is uncertain. For such a decision, the gap is predicted for
    each option: vaccinating one person of each community, or no one. If the best option is better than the decision, it
    is executed instead, with the susceptible member of that community that has the highest probability in the policy.
    Only effective vaccinations count: vaccinating a person who is not susceptible is treated as vaccinating no one, and
    a community without susceptible members is not an option.

    The massager can also level down. If every vaccination would widen the gap, as at the start of an episode, no one
    is vaccinated and more people become ill. Interpret the gap together with the reward.

    Args:
        env: FairEpidemic with one vaccine per step, of any interface, or its rules.
        ties: ``"keep"``: a decision is kept unless another is better by more than rounding; ``"first"``: the first of
            the best communities is taken, with no vaccination last, as in the published code, which changes decisions
            without an improvement.
        ineffective: Whether vaccines without effect count, as in the published code: every community is an option, and
            its most probable member is vaccinated if none is susceptible. The measure should then count them too.

    Raises:
        ValueError: The environment is not FairEpidemic, or has several vaccines per step.

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
        self._options = np.array([*range(self.groups), NOBODY])[:, np.newaxis]  # communities that can get a vaccine
        self._community = np.append(network.community, NOBODY)  # of each action
        self._members = network.community == np.arange(self.groups)[:, np.newaxis]  # (groups, people)

    schedule = MassagingSchedule(initial=0.01, factor=1.2, start_after=50, highest=0.35, rollouts=245)
    """Thresholds by rollout of the published training."""

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Measure, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions, a new array of shape (B,).

        Args:
            observation: Observations, shape (B, people, columns) or flat.
            action: Index of the person vaccinated by the policy, shape (B,); the index ``people`` means no one.
            policy: Output with ``probabilities``, shape (B, people + 1).
            short: A `VaccinationGap` after the previous step.
            threshold: Actions with at most this probability are uncertain.

        Raises:
            ValueError: The policy has no probabilities of that shape.
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
        return np.where(given_up, self._most_probable(best, able, chances), action)

    def _checked(self, probabilities: Floats | None, lanes: int) -> Floats:
        expected = (lanes, self.people + 1)
        if probabilities is None or probabilities.shape != expected:
            got = None if probabilities is None else probabilities.shape
            raise ValueError(f"policy must have probabilities of shape {expected}, got {got}")
        return probabilities

    def _able(self, observation: NDArray[Any]) -> Flags:
        """Return the mask of people to consider, shape (B, people): the susceptible, plus others if `ineffective`."""
        susceptible: Flags = by_person(observation, self.people)[..., SUSCEPTIBLE] == 1
        if not self.ineffective:
            return susceptible
        some: Flags = (susceptible[:, np.newaxis] & self._members).any(axis=2)  # (B, groups)
        none_beside: Flags = ~some[:, self._community[:-1]]
        return susceptible | none_beside

    def _own(self, action: Ints, able: Flags) -> Ints:
        """Return the community that gets the vaccine of a decision, shape (B,)."""
        effect = able[np.arange(len(action)), np.minimum(action, self.people - 1)]  # no one's community is NOBODY
        return np.where(effect | self.ineffective, self._community[action], NOBODY)

    def _best(self, own: Ints, able: Flags, short: Measure) -> Ints:
        """Return the community whose vaccination gives the smallest gap, or `NOBODY`, shape (B,)."""
        asked: Any = cast(Any, short).if_taken
        gaps = np.stack([asked(option) for option in self._options.repeat(len(own), axis=1)]).round(DIGITS)
        gaps[:-1][~(able[:, np.newaxis] & self._members).any(axis=2).T] = np.inf
        best: Ints = self._options[gaps.argmin(axis=0), 0]
        if self.ties == "first":
            return best
        return np.where(gaps.min(axis=0) < gaps[own, np.arange(len(own))], best, own)

    def _most_probable(self, group: Ints, able: Flags, chances: Floats) -> Ints:
        """Return the most probable member of a community that can be vaccinated, or no one, shape (B,)."""
        members = self._community[:-1] == group[:, np.newaxis]
        chosen = np.where(members & able, chances[:, :-1], -1.0).argmax(axis=1)
        return np.where(group == NOBODY, self.people, chosen)
