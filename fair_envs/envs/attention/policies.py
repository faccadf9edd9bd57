"""Scripted policies for FairAttention.

They return the probabilities of each unit's location, shape (B, units, locations). Policies with access to the true
rates are upper bounds and cannot be used in practice. The others only use the observation. They follow ml-fairness-gym
(D'Amour et al., 2020), whose greedy agent is that of Elzayn et al. (2019).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtrc

from fair_envs.core import check_count
from fair_envs.envs.attention.rules import Attention, columns_of, counted
from fair_envs.evaluation import DecisionMaker, World, rules_of
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import NonNegativeInt, UnitInterval, checked

HIGHEST_RATE = 50.0  # largest estimate: if every unit discovers an incident, the likelihood has no maximum


HALVINGS = 50  # bisection steps of an estimate


MOST_INCIDENTS = 100  # incidents in the sums of expected shares


ALPHA_STEP = 0.05  # relaxation of the constraint if no allocation satisfies it


class Allocator(DecisionMaker):
    """Sends units to locations.

    Args:
        env: FairAttention whose units choose locations, of any interface, or its rules.

    Raises:
        ValueError: The environment is not FairAttention, or its actions are logits.
    """

    def __init__(self, env: Any) -> None:
        rules = rules_of(env)
        if not isinstance(rules, Attention) or rules.params.action != "units":
            raise ValueError(f"env must be FairAttention with action='units', got {env}")
        self.params, self.units, self.locations = rules.params, rules.params.units, rules.params.locations

    def of_shares(self, weights: Floats) -> Floats:
        """Return probabilities of each unit in proportion to weights of shape (B, K); equal ones if all are 0."""
        whole = weights.sum(axis=1, keepdims=True)
        shares = np.where(whole > 0, weights, 1.0) / np.where(whole > 0, whole, self.locations)
        probabilities: Floats = np.repeat(shares[:, np.newaxis], self.units, axis=1)
        return probabilities

    def of_counts(self, counts: Ints) -> Floats:
        """Return deterministic probabilities for the given numbers of units at each location, shape (B, K)."""
        bounds = np.cumsum(counts, axis=1)
        place = (np.arange(self.units)[:, np.newaxis] >= bounds[:, np.newaxis]).sum(axis=2)
        certain: Floats = np.eye(self.locations)[place]
        return certain

    def shown(self, observation: NDArray[Any]) -> dict[str, Floats]:
        """Return the columns of the newest row of the observation, each of shape (B, K)."""
        columns = columns_of(self.params)
        newest = observation.reshape(len(observation), self.params.history, len(columns), self.locations)[:, -1]
        return {name: newest[:, k].astype(np.float64) for k, name in enumerate(columns)}

    def counted(self, shown: Floats) -> Ints:
        """Return the numbers of incidents in a column of the observation."""
        return shown.astype(np.int64) if self.params.observation == "authors" else counted(shown, self.units)


class Uniform(Allocator):
    """Sends each unit to a location chosen uniformly at random."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return equal probabilities."""
        return self.of_shares(np.zeros((len(observation), self.locations)))


class RoundRobin(Allocator):
    """Sends the same number of units to each location; the remaining units rotate."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the allocation of the step."""
        time = self.lanes.records["time"][:, np.newaxis]
        over = self.units % self.locations
        turn = (time * over + np.arange(over)) % self.locations  # (B, over)
        extra = (turn[:, :, np.newaxis] == np.arange(self.locations)).sum(axis=1)
        return self.of_counts(self.units // self.locations + extra)


class LastIncidents(Allocator):
    """Sends each unit in proportion to the incidents of the last step, or uniformly without any.

    Args:
        env: FairAttention whose units choose locations and which shows all incidents afterwards (``told="all"``).

    Raises:
        ValueError: The environment is another one, or shows only discovered incidents.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        if "occurred" not in columns_of(self.params):
            raise ValueError(f"env must be FairAttention with told='all', got told={self.params.told!r}")

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the incidents' shares."""
        return self.of_shares(self.counted(self.shown(observation)["occurred"]).astype(np.float64))


class Proportional(Allocator):
    """Sends each unit in proportion to the true rates, to which it has access."""

    uses_truth = True

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the rates' shares."""
        return self.of_shares(self.oracle()["rate"])


class Greedy(Allocator):
    """Sends each unit to the location where one more discovery is most probable, given the true rates.

    It maximises the expected discoveries of the step and ignores the effect on future rates.
    """

    uses_truth = True

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the best allocation, with probability 1."""
        rates = self.oracle()["rate"] * self.params.discoverable_weight
        none = np.zeros(rates.shape, np.int64)
        return self.of_counts(added_greedily(rates, none, np.full_like(none, self.units), self.units))


def tail(count: NDArray[Any], rates: Floats) -> Floats:
    """Return the probability that a Poisson variable with a given rate is at least ``count``."""
    value = np.where(count > 0, pdtrc(np.maximum(count - 1, 0), rates), 1.0)
    return np.asarray(value, np.float64)


def added_greedily(rates: Floats, counts: Ints, limits: Ints, units: int) -> Ints:
    """Return allocations after adding each unit to the location where one more discovery is most probable.

    The expected discoveries are the sum of `tail` over the units at a location. `tail` decreases from unit to unit, so
    this greedy allocation is optimal. Ties go to the lowest index.

    Args:
        rates: Rates of incidents, shape (..., K).
        counts: Units already allocated, shape (..., K); not modified.
        limits: Largest number of units at each location, shape (..., K).
        units: Total number of units at the end, if the limits permit.
    """
    counts = np.array(counts)
    for _ in range(units):
        gain = np.where(counts < limits, tail(counts + 1, rates), -1.0)
        best = gain.argmax(axis=-1)[..., np.newaxis]
        more = (counts.sum(axis=-1, keepdims=True) < units) & (np.take_along_axis(gain, best, -1) >= 0)
        np.put_along_axis(counts, best, np.take_along_axis(counts, best, -1) + more, -1)
    return counts


class Told(NamedTuple):
    """Feedback of the last step, shape (B, K)."""

    seen: Ints  # discovered incidents, including false ones
    sent: Ints  # units
    reported: Ints
    known: Flags  # (B,): there was a step in this episode


class BeliefAllocator(Allocator):
    """Maintains beliefs about the rates, updated with each step's observation.

    Args:
        env: The environment.
        seed: Seed of the agent's own random numbers.

    Attributes:
        beliefs: Beliefs about the rates, shape (B, K).
    """

    def __init__(self, env: Any, *, seed: int = 0) -> None:
        super().__init__(env)
        self.rng = np.random.default_rng(seed)

    def start(self, world: World) -> None:
        """Allocate the beliefs of the lanes."""
        super().start(world)
        self.beliefs: Floats = np.zeros((world.count, self.locations))

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Reset the beliefs of the masked lanes."""
        self.beliefs[mask] = 0

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Update the beliefs with the last step, then return the probabilities."""
        self.learn(self.told(observation))
        return self.decided()

    def told(self, observation: NDArray[Any]) -> Told:
        """Return the feedback in the newest row of the observation."""
        shown, params = self.shown(observation), self.params
        nothing, records = np.zeros_like(self.beliefs), self.lanes.records
        return Told(
            seen=self.counted(shown["discovered"]),
            sent=np.rint(shown["units"] * (1 if params.observation == "authors" else self.units)).astype(np.int64),
            reported=self.counted(shown.get("reported", nothing)),
            known=(records["time"] > 0) & (records["over"] == 0),
        )

    def learn(self, told: Told) -> None:
        """Update the beliefs."""
        raise NotImplementedError

    def decided(self) -> Floats:
        """Return the probabilities, shape (B, N, K)."""
        return self.of_shares(self.beliefs)


class NaiveMatching(BeliefAllocator):
    """Sends units in proportion to the discovered incidents at each location, which are gradually forgotten.

    Locations with many units have many discoveries, so its beliefs reinforce themselves. Without a prior, it never
    returns to a location that its first units did not visit.

    Args:
        env: The environment.
        decay: Probability in each step that a discovered incident is forgotten.
        prior: Initial number of incidents at each location.
        seed: Seed of the agent's own random numbers.
    """

    def __init__(self, env: Any, *, decay: float = 0.01, prior: int = 0, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.decay = checked("decay", decay, UnitInterval)
        self.prior = checked("prior", prior, NonNegativeInt)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Reset the masked lanes to the prior."""
        self.beliefs[mask] = self.prior

    def learn(self, told: Told) -> None:
        """Forget some incidents, and add those discovered or reported."""
        gone = self.rng.binomial(self.beliefs.astype(np.int64), self.decay)
        self.beliefs += told.known[:, np.newaxis] * (told.seen + told.reported - gone)


class Matching(BeliefAllocator):
    """Sends units in proportion to estimated rates, with occasional random exploration.

    The estimate is the maximum-likelihood rate, given that a location's units cannot discover more incidents than there
    are units.

    Args:
        env: The environment.
        interval: Steps between estimates.
        burn_in: Steps before the first estimate.
        window: Number of latest steps used for estimates; None: the whole episode.
        epsilon: Probability that all units of a step are sent uniformly at random.
        seed: Seed of the agent's own random numbers.
    """

    def __init__(
        self,
        env: Any,
        *,
        interval: int = 10,
        burn_in: int = 25,
        window: int | None = 100,
        epsilon: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(env, seed=seed)
        for name, value in (("interval", interval), ("burn_in", burn_in)):
            check_count(name, value)
        if window is not None:
            check_count("window", window)
        self.interval, self.burn_in, self.epsilon = interval, burn_in, checked("epsilon", epsilon, UnitInterval)
        self._kept = min(window or self.params.horizon, self.params.horizon)

    def start(self, world: World) -> None:
        """Allocate the records of the lanes."""
        super().start(world)
        self._seen, self._sent = (np.zeros((self._kept, world.count, self.locations), np.int64) for _ in range(2))

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Reset the records of the masked lanes."""
        super().begin(mask, episodes)
        self._seen[:, mask] = self._sent[:, mask] = 0

    def learn(self, told: Told) -> None:
        """Record the step, and update the estimates every ``interval`` steps."""
        time = self.lanes.records["time"]
        known = np.flatnonzero(told.known)
        place = (time[known] - 1) % len(self._seen)
        self._seen[place, known], self._sent[place, known] = told.seen[known], told.sent[known]
        due = told.known & (time >= self.burn_in) & (time % self.interval == 0)
        if due.any():
            found = censored_poisson_rates(self._seen[:, due], self._sent[:, due])
            self.beliefs[due] = np.where(np.isnan(found), self.beliefs[due], found)

    def decided(self) -> Floats:
        """Return the planned probabilities; uniform ones in lanes that explore in this step."""
        anywhere = self.rng.random((len(self.beliefs), 1, 1)) < self.epsilon
        return np.where(anywhere, 1.0 / self.locations, self.planned())

    def planned(self) -> Floats:
        """Return the probabilities that follow from the beliefs, shape (B, N, K)."""
        return self.of_shares(self.beliefs)


class FairGreedy(Matching):
    """Maximises the discoveries of the step, subject to similar discovery rates at all locations.

    It uses estimated rates. The constraint is that the expected share of a location's incidents that its units discover
    differs by at most ``alpha`` between any two locations (1: no constraint). If no allocation of all units satisfies
    the constraint, it is relaxed in steps of 0.05. ml-fairness-gym's code adds units where the tail probability
    decreases least from one unit to the next. Here units are added where one more discovery is most probable, as in its
    text.

    Args:
        env: The environment.
        alpha: Largest allowed difference, 0 to 1.
        settings: Other arguments of `Matching`.

    References:
        Elzayn et al., "Fair algorithms for learning in allocation problems", FAT* 2019.
    """

    def __init__(self, env: Any, *, alpha: float = 1.0, **settings: Any) -> None:
        super().__init__(env, **settings)
        self.alpha = checked("alpha", alpha, UnitInterval)
        self._believed: Floats | None = None  # beliefs for which the plan was made
        self._plan: Floats = np.zeros(0)

    def planned(self) -> Floats:
        """Return the best allocation, with probability 1; uniform probabilities before the first estimate."""
        if self._believed is None or not np.array_equal(self._believed, self.beliefs):
            certain = self.of_counts(fair_allocation(self.beliefs, self.units, alpha=self.alpha))
            known = self.beliefs.sum(axis=1) > 0
            self._plan = np.where(known[:, np.newaxis, np.newaxis], certain, 1.0 / self.locations)
            self._believed = self.beliefs.copy()
        return self._plan


def censored_poisson_rates(seen: Ints, sent: Ints) -> Floats:
    """Return maximum-likelihood Poisson rates from counts censored at the number of units, shape (...).

    If fewer incidents are discovered than units are sent in a step, the count is exact; otherwise it is a lower bound.
    The log-likelihood is concave, so bisection finds the zero of its derivative.

    Args:
        seen: Discovered incidents, shape (T, ...).
        sent: Units sent, shape (T, ...).

    Returns:
        The rates, at most `HIGHEST_RATE`; NaN where no unit was sent.
    """
    exact, units = seen < sent, np.arange(1, max(2, int(sent.max(initial=1)) + 1))
    steps, total = exact.sum(axis=0), np.where(exact, seen, 0).sum(axis=0)
    full = ((seen == sent)[..., np.newaxis] & (sent[..., np.newaxis] == units)).sum(axis=0)  # (..., units)
    low, high = np.zeros(steps.shape), np.full(steps.shape, HIGHEST_RATE)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rate = middle[..., np.newaxis]
        pressure = np.exp((units - 1) * np.log(rate) - rate - gammaln(units)) / tail(units, rate)
        rising = total / middle - steps + (full * pressure).sum(axis=-1) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.where((sent > 0).any(axis=0), (low + high) / 2, np.nan)


def discovered_shares(rates: Floats, units: int) -> Floats:
    """Return the expected share of incidents that 0, 1, ... units discover, shape (..., K, units + 1).

    Without incidents, the share counts as 1 for at least one unit.
    """
    incidents, sent = np.arange(MOST_INCIDENTS), np.arange(units + 1)
    share = np.minimum(sent[:, np.newaxis], incidents) / np.maximum(incidents, 1)
    share[1:, 0] = 1.0
    rate = np.maximum(rates, 1e-12)[..., np.newaxis]
    law = np.exp(incidents * np.log(rate) - rate - gammaln(incidents + 1))
    return np.asarray(law @ share.T)


def fair_allocation(rates: Floats, units: int, *, alpha: float) -> Ints:
    """Return the allocation that discovers the most under the constraint of `FairGreedy`, shape (B, K).

    One location has the smallest share. For each candidate location and number of units there, the other locations need
    at least that share and at most ``alpha`` more. Units are added individually within these limits.

    Args:
        rates: Rates of incidents, shape (B, K).
        units: Number of units.
        alpha: Largest difference between the locations' expected shares.
    """
    shares = discovered_shares(rates, units)  # (B, K, units + 1)
    lowest = shares.reshape(len(rates), -1)[:, :, np.newaxis, np.newaxis]  # (B, candidates, 1, 1)
    least = (shares[:, np.newaxis] < lowest - 1e-12).sum(axis=-1)  # units that each location needs
    most = (shares[:, np.newaxis] <= lowest + alpha + 1e-12).sum(axis=-1) - 1
    possible = (least <= most).all(axis=-1) & (least.sum(axis=-1) <= units) & (most.sum(axis=-1) >= units)
    wide = np.broadcast_to(rates[:, np.newaxis], least.shape)
    plans = added_greedily(wide, least, np.maximum(most, least), units)
    best = np.where(possible, expected_discoveries(wide, plans), -1.0).argmax(axis=1)
    chosen: Ints = plans[np.arange(len(rates)), best]
    stuck = ~possible.any(axis=1)
    if stuck.any():
        chosen[stuck] = fair_allocation(rates[stuck], units, alpha=min(1.0, alpha + ALPHA_STEP))
    return chosen


def expected_discoveries(rates: Floats, counts: Ints) -> Floats:
    """Return the expected number of incidents discovered by units at each location, shapes (..., K) to (...)."""
    units = np.arange(1, max(2, int(counts.max()) + 1))
    each = np.where(units <= counts[..., np.newaxis], tail(units, rates[..., np.newaxis]), 0.0)
    return np.asarray(each.sum(axis=(-2, -1)))
