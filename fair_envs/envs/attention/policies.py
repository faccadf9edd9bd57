"""Scripted policies for FairAttention.

They give the probabilities of each unit's location, shape (B, units, locations). Those that use the true rates are
bounds, no policies that anybody could use. The others see what the observation shows. After ml-fairness-gym (D'Amour et
al., 2020), whose greedy agent is that of Elzayn et al. (2019).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtrc

from fair_envs.aliases import Flags, Floats, Ints
from fair_envs.core import check_count
from fair_envs.envs.attention.rules import Attention, columns_of, counted
from fair_envs.evaluation import DecisionMaker, World, rules_of
from fair_envs.parameters import NonNegativeInt, UnitInterval, checked

HIGHEST_RATE = 50.0  # that is estimated: units that all discover something say nothing against any higher one


HALVINGS = 50  # of the interval that holds an estimate


MOST_INCIDENTS = 100  # that expected shares sum over


ALPHA_STEP = 0.05  # by which the constraint gives way where nothing meets it


class Allocator(DecisionMaker):
    """Sends units to locations.

    Args:
        env: FairAttention whose units choose locations, of any interface, or its rules.

    Raises:
        ValueError: Another environment, or logits.
    """

    def __init__(self, env: Any) -> None:
        rules = rules_of(env)
        if not isinstance(rules, Attention) or rules.params.action != "units":
            raise ValueError(f"env must be FairAttention with action='units', got {env}")
        self.params, self.units, self.locations = rules.params, rules.params.units, rules.params.locations

    def of_shares(self, weights: Floats) -> Floats:
        """Return that each unit is sent in proportion to weights of shape (B, K); equally if all are 0."""
        whole = weights.sum(axis=1, keepdims=True)
        shares = np.where(whole > 0, weights, 1.0) / np.where(whole > 0, whole, self.locations)
        probabilities: Floats = np.repeat(shares[:, np.newaxis], self.units, axis=1)
        return probabilities

    def of_counts(self, counts: Ints) -> Floats:
        """Return that so many units are certain to be sent to each location, shape (B, K)."""
        bounds = np.cumsum(counts, axis=1)
        place = (np.arange(self.units)[:, np.newaxis] >= bounds[:, np.newaxis]).sum(axis=2)
        certain: Floats = np.eye(self.locations)[place]
        return certain


class Uniform(Allocator):
    """Sends each unit anywhere, all locations equally often."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return equal probabilities."""
        return self.of_shares(np.zeros((len(observation), self.locations)))


class RoundRobin(Allocator):
    """Sends the same number of units everywhere; what is left over goes round."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the turn of the step."""
        time = self.lanes.records["time"][:, np.newaxis]
        over = self.units % self.locations
        turn = (time * over + np.arange(over)) % self.locations  # (B, over)
        extra = (turn[:, :, np.newaxis] == np.arange(self.locations)).sum(axis=1)
        return self.of_counts(self.units // self.locations + extra)


class Proportional(Allocator):
    """Sends each unit in proportion to the true rates, which it is told."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the rates' shares."""
        return self.of_shares(self.oracle()["rate"])


class Greedy(Allocator):
    """Sends one unit after another to where it most probably discovers one more incident; it is told the true rates.

    It discovers the most in this step; what becomes of the rates does not count.
    """

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the best allocation for certain."""
        rates = self.oracle()["rate"] * self.params.discoverable_weight
        none = np.zeros(rates.shape, np.int64)
        return self.of_counts(added_greedily(rates, none, np.full_like(none, self.units), self.units))


def tail(count: NDArray[Any], rates: Floats) -> Floats:
    """Return the probability that a Poisson number of a rate is at least ``count``."""
    value = np.where(count > 0, pdtrc(np.maximum(count - 1, 0), rates), 1.0)
    return np.asarray(value, np.float64)


def added_greedily(rates: Floats, counts: Ints, limits: Ints, units: int) -> Ints:
    """Return allocations to which units were added one by one, to where one more incident is most probable.

    The expected discoveries are the sum of `tail` over the units at a location, which falls from unit to unit: one by
    one is the best. The lowest index wins a tie.

    Args:
        rates: Shape (..., K).
        counts: What is there already, shape (..., K); it stays as it is.
        limits: The most that a location takes, shape (..., K).
        units: How many there are in the end, if the limits leave room.
    """
    counts = np.array(counts)
    for _ in range(units):
        gain = np.where(counts < limits, tail(counts + 1, rates), -1.0)
        best = gain.argmax(axis=-1)[..., np.newaxis]
        more = (counts.sum(axis=-1, keepdims=True) < units) & (np.take_along_axis(gain, best, -1) >= 0)
        np.put_along_axis(counts, best, np.take_along_axis(counts, best, -1) + more, -1)
    return counts


class Told(NamedTuple):
    """What the last step told, shape (B, K)."""

    seen: Ints  # incidents discovered, false ones too
    sent: Ints  # units
    reported: Ints
    known: Flags  # (B,): there was a step in this episode


class Believer(Allocator):
    """Holds beliefs about the rates, which each step's observation changes.

    Args:
        env: The environment.
        seed: Of the agent's own luck.

    Attributes:
        beliefs: Shape (B, K).
    """

    def __init__(self, env: Any, *, seed: int = 0) -> None:
        super().__init__(env)
        self.chance = np.random.default_rng(seed)

    def start(self, world: World) -> None:
        """Make room for each lane's beliefs."""
        super().start(world)
        self.beliefs: Floats = np.zeros((world.count, self.locations))

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Forget the rates of these lanes."""
        self.beliefs[mask] = 0

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Learn from the last step, then decide."""
        self.learn(self.told(observation))
        return self.decided()

    def told(self, observation: NDArray[Any]) -> Told:
        """Return what the newest row of the observation says."""
        columns, params = columns_of(self.params), self.params
        newest = observation.reshape(len(observation), params.history, len(columns), self.locations)[:, -1]
        shown = {name: newest[:, k].astype(np.float64) for k, name in enumerate(columns)}
        nothing, records = np.zeros_like(self.beliefs), self.lanes.records
        return Told(
            seen=self._counted(shown["discovered"]),
            sent=np.rint(shown["units"] * (1 if params.observation == "authors" else self.units)).astype(np.int64),
            reported=self._counted(shown.get("reported", nothing)),
            known=(records["time"] > 0) & (records["over"] == 0),
        )

    def _counted(self, shown: Floats) -> Ints:
        """Return the incidents that an observation shows."""
        return shown.astype(np.int64) if self.params.observation == "authors" else counted(shown, self.units)

    def learn(self, told: Told) -> None:
        """Change the beliefs."""
        raise NotImplementedError

    def decided(self) -> Floats:
        """Return the probabilities, shape (B, N, K)."""
        return self.of_shares(self.beliefs)


class NaiveMatching(Believer):
    """Sends units in proportion to the incidents it has seen at each location; old ones are forgotten by and by.

    Where it sends many units it sees many incidents, so that what it believes comes true. Without a prior, it never
    again visits a location that its first units left out.

    Args:
        env: The environment.
        decay: Probability that a seen incident is forgotten, in each step.
        prior: Incidents that it begins with at each location.
        seed: Of the agent's own luck.
    """

    def __init__(self, env: Any, *, decay: float = 0.01, prior: int = 0, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.decay = checked("decay", decay, UnitInterval)
        self.prior = checked("prior", prior, NonNegativeInt)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Go back to the prior in these lanes."""
        self.beliefs[mask] = self.prior

    def learn(self, told: Told) -> None:
        """Forget some, and count what was seen and reported."""
        gone = self.chance.binomial(self.beliefs.astype(np.int64), self.decay)
        self.beliefs += told.known[:, np.newaxis] * (told.seen + told.reported - gone)


class Matching(Believer):
    """Sends units in proportion to rates that it estimates, or anywhere now and then.

    The estimate is the likeliest rate, given that a location's units cannot see more incidents than there are units.

    Args:
        env: The environment.
        interval: Steps between estimates.
        burn_in: Steps before the first.
        window: So many last steps count; None: the whole episode.
        epsilon: Probability that in a step all units are sent anywhere.
        seed: Of the agent's own luck.
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
        """Make room for what each lane sees."""
        super().start(world)
        self._seen, self._sent = (np.zeros((self._kept, world.count, self.locations), np.int64) for _ in range(2))

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Forget what these lanes have seen."""
        super().begin(mask, episodes)
        self._seen[:, mask] = self._sent[:, mask] = 0

    def learn(self, told: Told) -> None:
        """Note the step; at every so many steps, estimate the rates anew."""
        time = self.lanes.records["time"]
        known = np.flatnonzero(told.known)
        place = (time[known] - 1) % len(self._seen)
        self._seen[place, known], self._sent[place, known] = told.seen[known], told.sent[known]
        due = told.known & (time >= self.burn_in) & (time % self.interval == 0)
        if due.any():
            found = likeliest_rates(self._seen[:, due], self._sent[:, due])
            self.beliefs[due] = np.where(np.isnan(found), self.beliefs[due], found)

    def decided(self) -> Floats:
        """Return the estimates' shares; equal ones in the lanes whose coin says so."""
        anywhere = self.chance.random((len(self.beliefs), 1, 1)) < self.epsilon
        return np.where(anywhere, 1.0 / self.locations, self.planned())

    def planned(self) -> Floats:
        """Return what the beliefs lead to, shape (B, N, K)."""
        return self.of_shares(self.beliefs)


class FairGreedy(Matching):
    """Discovers the most in the step, given that incidents are discovered about as often everywhere.

    With estimated rates. The constraint: the expected share of a location's incidents that its units discover differs
    by at most ``alpha`` between any two locations (1: no constraint). It gives way, in steps of 0.05, where no
    allocation of all units meets it. ml-fairness-gym's code adds units where the tail probability falls least from one
    unit to the next; here, as its text says, where one more discovery is most probable.

    Args:
        env: The environment.
        alpha: The largest difference, 0 to 1.
        settings: As for `Matching`.

    References:
        Elzayn et al., "Fair algorithms for learning in allocation problems", FAT* 2019.
    """

    def __init__(self, env: Any, *, alpha: float = 1.0, **settings: Any) -> None:
        super().__init__(env, **settings)
        self.alpha = checked("alpha", alpha, UnitInterval)
        self._believed: Floats | None = None  # what the plan is made for
        self._plan: Floats = np.zeros(0)

    def planned(self) -> Floats:
        """Return the best allocation for certain; anything where nothing is known yet."""
        if self._believed is None or not np.array_equal(self._believed, self.beliefs):
            certain = self.of_counts(fair_allocation(self.beliefs, self.units, alpha=self.alpha))
            known = self.beliefs.sum(axis=1) > 0
            self._plan = np.where(known[:, np.newaxis, np.newaxis], certain, 1.0 / self.locations)
            self._believed = self.beliefs.copy()
        return self._plan


def likeliest_rates(seen: Ints, sent: Ints) -> Floats:
    """Return the likeliest Poisson rates of incidents of which as many are seen as units allow, shape (...).

    A step with fewer incidents seen than units sent tells their number; one with as many tells that there were at least
    so many. The logarithm of the likelihood is concave, so that halving finds where its slope is 0.

    Args:
        seen: Shape (T, ...).
        sent: Shape (T, ...).

    Returns:
        NaN where no unit was sent; at most `HIGHEST_RATE`.
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

    Where no incident happens, any unit counts as having discovered all.
    """
    incidents, sent = np.arange(MOST_INCIDENTS), np.arange(units + 1)
    share = np.minimum(sent[:, np.newaxis], incidents) / np.maximum(incidents, 1)
    share[1:, 0] = 1.0
    rate = np.maximum(rates, 1e-12)[..., np.newaxis]
    law = np.exp(incidents * np.log(rate) - rate - gammaln(incidents + 1))
    return np.asarray(law @ share.T)


def fair_allocation(rates: Floats, units: int, *, alpha: float) -> Ints:
    """Return the allocation that discovers the most under the constraint of `FairGreedy`, shape (B, K).

    Some location has the smallest share: for each location and number of units there, the others need at least that
    share and at most ``alpha`` more. Between these limits units are added one by one.

    Args:
        rates: Shape (B, K).
        units: How many there are.
        alpha: The largest difference between the locations' expected shares.
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
    """Return how many incidents so many units discover on average, shapes (..., K) to (...)."""
    units = np.arange(1, max(2, int(counts.max()) + 1))
    each = np.where(units <= counts[..., np.newaxis], tail(units, rates[..., np.newaxis]), 0.0)
    return np.asarray(each.sum(axis=(-2, -1)))
