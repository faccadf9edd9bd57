"""The rules of FairAttention on one lane, in the order in which they are applied."""

import math
from collections.abc import Mapping
from itertools import product
from numbers import Real
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core import Rules, rule
from fair_envs.core.compilation import record_of
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import (
    bernoulli,
    binomial,
    normal_of,
    poisson,
    poisson_at,
    random_words,
    to_unit_interval,
)
from fair_envs.envs.attention.params import (
    ALL,
    AUTHORS,
    LOGITS,
    ONCE,
    PER_INCIDENT,
    PROFILES,
    RATES,
    AttentionParams,
)
from fair_envs.support.aliases import Facts, Floats, Floats32, Ints, Lane, Record
from fair_envs.support.parameters import encode, shown

# Random streams
INCIDENTS, MANY_INCIDENTS, REPORTS, DISCOVERY, FALSE_ALARM, HINTS = range(6)

SEEN, OCCURRED, SENT = range(3)  # quantities summed over a lane's window; units only if they affect the reward
WORDS = 4  # random words per draw
MOST_AT_ONCE = 256.0  # largest mean of a Poisson number drawn from one word
TRACE = 128  # number of rates stored for the picture
SHORT = 512  # steps; episodes of up to this length have one layout, whatever their length, so compiled code is shared
LARGEST_RATE = 1e4  # upper limit of all rates
LARGEST_COUNT = 2**15 - 1  # most incidents at a location in a step; the largest rate and weight stay far below
OWN = "own"


# ---------------------------------------------------------------------------------------------- the incidents


@rule
def start(lane: Lane, params: Record) -> None:
    """Set the rates, and draw the first step's incidents."""
    for k in range(params.locations):
        lane.rates[k] = params.first_rates[k]
        lane.increases[k] = params.increases[k]
    keep_rates(lane, params)
    happen(lane, params, 0)


@rule
def happen(lane: Lane, params: Record, time: int) -> None:
    """Draw the incidents of the given time at the current rates."""
    draw(lane, params, time, INCIDENTS, params.discoverable_weight, lane.incidents)
    if params.reported_weight > 0:
        draw(lane, params, time, REPORTS, params.reported_weight, lane.reports)


@rule
def draw(lane: Lane, params: Record, time: int, site: int, weight: float, out: Any) -> None:
    """Draw a Poisson number for each location, with its rate times the weight as the mean."""
    for first in range(0, params.locations, WORDS):
        random = random_words(lane.key, time, site, first // WORDS)
        for k in range(first, min(first + WORDS, params.locations)):
            mean = weight * lane.rates[k]
            if mean <= MOST_AT_ONCE:
                out[k] = poisson_at(to_unit_interval(random[k - first]), mean)
            else:
                out[k] = poisson(lane.key, time, MANY_INCIDENTS, 2 * k + (site == REPORTS), mean)


# ------------------------------------------------------------------------------------------------- the units


@rule
def send(lane: Lane, action: NDArray[Any], params: Record) -> None:
    """Send each unit to a location; the action has shape (1, units), or (1, K) for logits."""
    units = lane.units
    for k in range(params.locations):
        units[k] = 0
    if params.action == LOGITS:
        decode(action[0], params.units, lane.shares, units)
    else:
        for unit in range(params.units):
            units[int(action[0, unit])] += 1


@rule
def decode(logits: NDArray[Any], units: int, shares: Any, out: Any) -> None:
    """Add units one at a time to the location with the largest share, which then falls by one unit's share.

    Args:
        logits: Shape (K,); the shares are their softmax.
        units: Number of units to send (N); each subtracts 1/N from the share.
        shares: Shape (K,); overwritten with the remaining shares.
        out: Shape (K,); overwritten with the number of units at each location. The lowest index wins a tie.
    """
    locations, whole = logits.shape[0], 0.0
    largest = float(logits[0])
    for k in range(1, locations):
        largest = max(largest, float(logits[k]))
    for k in range(locations):
        shares[k] = math.exp(float(logits[k]) - largest)  # always in double precision
        whole += shares[k]
    for k in range(locations):
        shares[k] /= whole
    for _ in range(units):
        best = 0
        for k in range(1, locations):
            if shares[k] > shares[best]:
                best = k
        out[best] += 1
        shares[best] -= 1.0 / units


@rule
def discover(lane: Lane, params: Record) -> None:
    """Let the units discover incidents; draws no random numbers unless units can miss or invent incidents."""
    for k in range(params.locations):
        lane.false_alarms[k] = 0
        if params.replacement:
            probability = 1.0 - params.miss_probability ** lane.units[k]
            lane.found[k] = binomial(lane.key, lane.time, DISCOVERY, k, lane.incidents[k], probability)
        elif params.miss_probability > 0 or params.extra_probability > 0:
            search(lane, params, k)
        else:
            lane.found[k] = min(lane.units[k], lane.incidents[k])


@rule
def search(lane: Lane, params: Record, k: int) -> None:
    """Let a location's units search for its incidents one after another; each discovers at most one."""
    free, found, made_up = int(lane.units[k]), 0, 0
    extra = params.extra_probability
    for incident in range(lane.incidents[k]):
        if free == 0:
            break
        place = k + params.locations * incident
        if bernoulli(lane.key, lane.time, DISCOVERY, place, 1.0 - params.miss_probability**free):
            free -= 1
            found += 1
        if params.extras == PER_INCIDENT:
            made_up += binomial(lane.key, lane.time, FALSE_ALARM, place, free, extra)
    if params.extras == ONCE:
        made_up = binomial(lane.key, lane.time, FALSE_ALARM, k, free, extra)
    lane.found[k] = found
    lane.false_alarms[k] = made_up


@rule
def seen(lane: Lane, k: int) -> int:
    """Return the number of reported incidents, with false ones, up to the most that an observation shows."""
    return min(LARGEST_COUNT, lane.found[k] + lane.false_alarms[k])


# ----------------------------------------------------------------------------------------------- a step


@rule
def step(lane: Lane, action: NDArray[Any], params: Record, reward: Floats, facts: Facts) -> Any:
    """Send the units, discover incidents, change the rates, draw the next incidents; it never terminates."""
    send(lane, action, params)
    discover(lane, params)
    count(lane, params)
    reward[0] = earned(lane, params)
    for k in range(params.locations):
        facts.action[k] = lane.units[k]
        facts.outcome[k] = lane.found[k]
        if params.told == ALL:
            facts.feedback[k] = lane.incidents[k]
    write_row(lane, params)
    change(lane, params)
    happen(lane, params, lane.time + 1)
    return False


@rule
def count(lane: Lane, params: Record) -> None:
    """Add the step to the sums over the window, replacing the oldest one, and to the sums over the episode."""
    oldest, sums = lane.past[lane.oldest], lane.sums
    for k in range(params.locations):
        put(oldest, sums, SEEN, k, seen(lane, k))
        put(oldest, sums, OCCURRED, k, lane.incidents[k])
        if params.share_penalty > 0:
            put(oldest, sums, SENT, k, lane.units[k])
        lane.occurred[k] = lane.incidents[k]
        lane.discovered[k] += lane.found[k]
        lane.missed[k] += lane.incidents[k] - lane.found[k]
    lane.oldest += 1
    if lane.oldest == lane.past.shape[0]:
        lane.oldest = 0


@rule
def put(oldest: NDArray[np.int16], sums: Any, kind: int, k: int, value: int) -> None:
    """Replace the oldest number in the window, and update its sum."""
    sums[kind, k] += value - oldest[kind, k]
    oldest[kind, k] = value


@rule
def earned(lane: Lane, params: Record) -> float:
    """Return the reward: discovered incidents minus penalties for missed ones and for unequal shares of units."""
    found, missed = 0, 0
    for k in range(params.locations):
        found += lane.found[k]
        missed += lane.incidents[k] - lane.found[k]
    reward = params.discovered_reward * found - params.missed_penalty * missed
    if params.share_penalty > 0:
        reward += params.share_penalty * min(0.0, params.share_tolerance - deviation(lane, params))
    return reward


@rule
def deviation(lane: Lane, params: Record) -> float:
    """Return the largest distance of a location's share of the window's units from an equal share."""
    whole, largest = 0, 0.0
    for k in range(params.locations):
        whole += lane.sums[SENT, k]
    for k in range(params.locations):
        largest = max(largest, abs(lane.sums[SENT, k] / whole - 1.0 / params.locations))
    return largest


@rule
def change(lane: Lane, params: Record) -> None:
    """Decrease the rates of locations with units, and increase those of locations without."""
    for k in range(params.locations):
        if lane.units[k] > 0:
            lane.rates[k] = max(0.0, lane.rates[k] - params.decrease_rate * lane.units[k])
        else:
            lane.rates[k] = min(LARGEST_RATE, lane.rates[k] + lane.increases[k])
    keep_rates(lane, params)


@rule
def keep_rates(lane: Lane, params: Record) -> None:
    """Store the rates for the picture at regular intervals."""
    if lane.next_kept > 0:
        lane.next_kept -= 1
        return
    if lane.kept < TRACE:
        for k in range(params.locations):
            lane.past_rates[lane.kept, k] = lane.rates[k]
        lane.kept += 1
    lane.next_kept = params.trace_every - 1


# ------------------------------------------------------------------------------- observations and feedback


@rule
def write_row(lane: Lane, params: Record) -> None:
    """Write the step's row twice: the last rows are then contiguous in memory, wherever they begin."""
    lane.newest += params.row
    if lane.newest == params.history * params.row:
        lane.newest = 0
    other = lane.newest + params.history * params.row
    row, again = lane.rows[lane.newest : lane.newest + params.row], lane.rows[other : other + params.row]
    if params.observation == AUTHORS:
        write_counts(lane, params, row, again)
    else:
        write_scaled(lane, params, row, again)


@rule
def write_counts(lane: Lane, params: Record, row: Floats32, again: Floats32) -> None:
    """Write discovered, occurred, units and ratio of all locations, unscaled."""
    locations = params.locations
    for k in range(locations):
        tell(row, again, k, seen(lane, k))
        tell(row, again, locations + k, lane.incidents[k])
        tell(row, again, 2 * locations + k, lane.units[k])
        tell(row, again, 3 * locations + k, ratio(lane, k))


@rule
def write_scaled(lane: Lane, params: Record, row: Floats32, again: Floats32) -> None:
    """Write the observed columns, scaled to between 0 and 1, hints to between -1 and 1."""
    locations, units = params.locations, params.units
    for k in range(locations):
        place = k
        tell(row, again, place, scaled(seen(lane, k), units))
        place += locations
        if params.told == ALL:
            tell(row, again, place, scaled(lane.incidents[k], units))
            place += locations
        tell(row, again, place, lane.units[k] / units)
        place += locations
        if params.told == ALL:
            tell(row, again, place, min(1.0, ratio(lane, k)))
            place += locations
        if params.reported_weight > 0:
            tell(row, again, place, scaled(lane.reports[k], units))
            place += locations
        if params.noisy_features:
            random = random_words(lane.key, lane.time, HINTS, k)
            blind = 1.0 + math.sqrt(params.feature_variance_0) * normal_of(random[0])
            telling = 1.0 + lane.incidents[k] + math.sqrt(params.feature_variance_1) * normal_of(random[1])
            tell(row, again, place, scaled(blind, units))
            tell(row, again, place + locations, scaled(telling, units))


@rule
def tell(row: Floats32, again: Floats32, place: int, value: float) -> None:
    """Write a number twice; copying the row later would have to wait until it is written."""
    row[place] = value
    again[place] = value


@rule
def scaled(count: float, units: int) -> float:
    """Return a number of incidents scaled to (-1, 1): one half if it equals the number of units."""
    return count / (abs(count) + units)


@rule
def ratio(lane: Lane, k: int) -> float:
    """Return the discovered share of the window's incidents; the denominator is one larger, so it is never 0."""
    return lane.sums[SEEN, k] / (lane.sums[OCCURRED, k] + 1)


@rule
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write the last rows, the oldest first; zeros for steps before the first."""
    first = lane.newest + params.row
    copy(lane.rows[first : first + observation.shape[1]], observation[0])


@rule
def copy(source: Floats32, out: Floats32) -> None:
    """Copy numbers; for contiguous arrays of equal length, a loop is faster than an assignment."""
    for i in range(out.size):
        out[i] = source[i]


@rule
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write the locations' records; their features are the columns of the last step."""
    newest = lane.rows[lane.newest : lane.newest + params.row]
    for k in range(params.locations):
        facts.individual[k] = k
        facts.sensitive[k, 0] = k
        facts.group[k] = k
        for column in range(facts.features.shape[1]):
            facts.features[k, column] = newest[column * params.locations + k]


# ------------------------------------------------------------------------------------------ the environment


def world_of(params: AttentionParams, rates: Floats) -> NDArray[np.void]:
    """Return all that compiled rules look up, as one record, shape (1,); rates have shape (2, K)."""
    return record_of(
        {
            **encode(params)._asdict(),
            "first_rates": rates[0],  # (K,)
            "increases": rates[1],  # (K,)
            "row": len(columns_of(params)) * params.locations,  # numbers in a row of an observation
            "trace_every": -(-params.horizon // (TRACE - 1)),  # steps between the rates that the picture shows
        }
    )


def columns_of(params: AttentionParams) -> tuple[str, ...]:
    """Return the names of a location's columns, in the order of an observation."""
    told = ("discovered", "occurred", "units", "ratio") if params.told == "all" else ("discovered", "units")
    reported = ("reported",) if params.reported_weight > 0 else ()
    return (*told, *reported, *(("hint_0", "hint_1") if params.noisy_features else ()))


def counted(scaled: ArrayLike, units: int) -> Ints:
    """Return the numbers of incidents from their scaled values in an observation.

    The result is exact up to about 10,000 incidents at 6 units; beyond, adjacent numbers have the same scaled value.
    """
    shown = np.asarray(scaled, np.float64)
    return np.asarray(np.rint(units * shown / (1.0 - shown)), np.int64)


def checked_rates(name: str, rates: Any) -> Floats:
    """Return user-defined rates, shape () or (K,).

    Raises:
        ValueError: Not a number or one number for each of several locations, or a rate below 0 or too large.
    """
    try:
        given = np.array(rates, np.float64)
        real = all(isinstance(rate, Real) and not isinstance(rate, bool) for rate in np.array(rates, object).flat)
    except (OverflowError, TypeError, ValueError):
        given, real = np.zeros(0), False
    named = ", ".join(map(repr, RATES[name]))
    if not real or given.shape in ((0,), (1,)) or given.ndim > 1:
        raise ValueError(
            f"{name} must be one of {named}, a number, or one for each of at least 2 locations, got {shown(rates)}"
        )
    wrong = given[~((given >= 0) & (given <= LARGEST_RATE))]  # NaN too
    if wrong.size:
        raise ValueError(f"{name} must lie between 0 and {LARGEST_RATE:g}, got {wrong[0]:g}")
    return given


class Attention(Rules):
    """Locations with incidents, and a few units of attention to allocate, after Hu, Lear and Zhang (2024).

    **Description.** Incidents happen at five locations, each with its own rate. In each step a decision-maker sends six
    units, each to one location. A unit discovers one incident there, if there is one. The rate falls where units are
    and rises where there are none. Examples are food inspections, pest control and mobile clinics. The authors of
    ml-fairness-gym warn against reading it as predictive policing. In policing, the recorded incidents depend on which
    people are watched, in ways that this model leaves out.

    **Who decides and who is affected.** The decision-maker decides (one agent); all locations are affected in each
    step, and stand for the people who live there. The harm is a lack of attention: incidents remain undiscovered, and
    more of them follow. You can measure how unequally units are allocated (short term), and how unequally incidents or
    their rates are distributed over time (long term). Equal shares of units do not imply equal needs. The environment
    does not model differences within a location, nor harm from attention itself.

    **Sensitive attribute and legitimate factors.** ``location``: each location is a group of one. No legitimate factor.

    **Action space.** ``MultiDiscrete([5] * 6)``: the location of each unit. If an agent samples all of them from one
    distribution, the numbers of units at the locations are multinomial. With ``action="logits"``, a ``Box`` with one
    number for each location, from -``logit_limit`` to ``logit_limit``. Units are added one at a time to the location
    with the largest softmax value, and each subtracts 1/6 from that value (`decode`). The published code declares a
    limit of 3 but does not enforce it. Here actions outside the box are refused, as everywhere in this package.
    Learners that clip actions, such as those of Stable-Baselines3, clip to it.

    **Observation space.** ``Box`` of 160 numbers from 0 to 1: the last ``history`` (8) steps, the oldest first, zeros
    for steps before the first. Each step has columns with one number for each location. Reshaped to (8, 4, 5), the axes
    are step, column, location. The columns: ``discovered`` and ``occurred``, where n incidents are shown as n / (n +
    units); ``units``, as a share of all; ``ratio``, the discovered share of the incidents of the last ``window`` steps,
    with one more incident in the denominator. ``told="discovered"`` leaves out ``occurred`` and ``ratio``, so that
    undiscovered incidents stay hidden, see **Revealed incidents**. ``reported_weight`` adds ``reported``;
    ``noisy_features`` adds ``hint_0`` and ``hint_1``, between -1 and 1, scaled as counts are: two normal numbers, the
    second of which has the mean 1 + incidents. ``observation="authors"``: the published code's 160 numbers, the same
    columns in the same order without scaling.

    **Revealed incidents.** By default (``told="all"``), as in the paper, the observation and ``fair_feedback`` show all
    incidents, including undiscovered ones. Hardly any real decision-maker has this information. The study needs it: its
    long-term measure counts incidents, and its learners observe their ratio. ``told="discovered"`` hides undiscovered
    incidents from both. Measures of incidents are then undefined, and only the oracle returns them.

    **Rewards.** ``discovered_reward`` (1) for each incident discovered, minus ``missed_penalty`` (0.25) for each missed
    incident. Since the reward pays for discoveries, it favours policies that keep incidents alive. Sending units
    everywhere in turn drives all rates to 0 within 100 steps and earns nothing from then on; the paper's agents earn
    about 2 per step. Report incidents, missed incidents and rates beside the reward. ``share_penalty`` times the
    deviation of shares in the window beyond ``share_tolerance`` is subtracted.

    **Interactions.** One individual per location. ``fair_features``: the location's columns of the last step, as above.
    ``fair_action``: units sent there. ``fair_feedback``: the number of incidents there, which is the number of units
    that would have discovered all of them and can be larger than the number of units; -1 with ``told="discovered"``.
    ``fair_outcome``: the incidents discovered. Decisions and feedback are both amounts (``fair_spec.amounts``). Group
    notions compare who received decision 1 and are therefore refused; `fair_envs.metrics.ShareDeviation` and
    ``IncidentDistance`` compare amounts, and notions on individuals apply. The oracle returns the incidents of the
    coming step (``"feedback"``) and the rates (``"rate"``).

    **Starting state.** Rates of 8, 6, 4, 3 and 1.5.

    **Episode end.** Truncation after ``horizon`` steps; it never terminates.

    **Order of a step.** The step's incidents are Poisson numbers with the rates as means. They are drawn before the
    action and do not depend on it, so a counterfactual twin has the same random numbers. Units are sent and discover
    incidents. Then each rate falls by ``decrease_rate`` (0.1) for each unit at the location, but not below 0. Without
    a unit it rises by the location's own increase (0.2, 0.26, 0.4, 0.6, 0.3). Rates do not rise above 10,000.

    **Discovery.** Each free unit misses each incident with ``miss_probability``; a unit that discovers an incident is
    no longer free. A unit that is still free at the end reports a false incident with ``extra_probability``. The
    decision-maker sees it like a true one, but earns nothing. With ``replacement`` a unit discovers any number of
    incidents and is always free; ``extra_probability`` is then ignored, and there are no false incidents.

    **Arguments.** The fields of `AttentionParams`, each with its default and source. You can give your own rates: one
    number, or one for each location. ``profile``: ``"paper"``; ``"authors"``: the published code's actions and
    observations; ``"pocar"``: the same with one rate for increase and decrease, as in Yu et al. (2022);
    ``"ml-fairness-gym"``: one rate, hidden incidents, noisy features, no penalty for missed incidents.

    **Differences from the paper and its code**, with the switches that restore their behaviour:

    * The paper gives none of the numbers; they come from its code.
    * Units choose locations, so that an allocation has a probability. The code decodes unbounded Gaussian logits:
      ``action="logits"`` with a large ``logit_limit``.
    * Observations are scaled and bounded: ``observation="authors"``.
    * In the paper rates can fall below 0; in the code and in this package they cannot.
    * Reaching the horizon is truncation; in the code it is termination.
    * ml-fairness-gym differs in three ways. Free units can report a false incident after each true one:
      ``extras="per_incident"``. False incidents count as discovered in the reward. Each location has its own
      probability of missing an incident.

    **References.** Y. Hu, J. Lear, L. Zhang, "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement
    Learning", arXiv 2401.06318, 2024. E. Yu, Z. Qin, M. K. Lee, S. Gao, "Policy Optimization with Advantage
    Regularization for Long-Term Fairness in Decision Systems", NeurIPS 2022. A. D'Amour et al., "Fairness is not
    static: deeper understanding of long term fairness via simulation studies", FAT* 2020.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "attention"
    drawn_by: ClassVar[str] = "fair_envs.envs.attention.render:AttentionRenderer"
    policies: ClassVar[Mapping[str, str]] = {
        "uniform": "fair_envs.envs.attention.policies:Uniform",
        "round-robin": "fair_envs.envs.attention.policies:RoundRobin",
        "last-incidents": "fair_envs.envs.attention.policies:LastIncidents",
        "proportional": "fair_envs.envs.attention.policies:Proportional",
        "greedy": "fair_envs.envs.attention.policies:Greedy",
        "naive-matching": "fair_envs.envs.attention.policies:NaiveMatching",
        "matching": "fair_envs.envs.attention.policies:Matching",
        "fair-greedy": "fair_envs.envs.attention.policies:FairGreedy",
    }
    Params: ClassVar[type] = AttentionParams
    presets = PROFILES
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def __init__(self, **given: Any) -> None:
        own = {name: checked_rates(name, given[name]) for name in RATES if not isinstance(given.get(name, ""), str)}
        counts = [len(rates) for rates in own.values() if rates.ndim]
        if counts:
            given = {"locations": counts[0], **given}
        super().__init__(**{**given, **dict.fromkeys(own, OWN)})
        self.code = self._with_rates(own)

    def _with_rates(self, own: Mapping[str, Floats]) -> NDArray[np.void]:
        """Return the tables for compiled rules."""
        params = self.params
        rates = np.stack([self._rates(name, own) for name in RATES])
        return world_of(params, rates)

    def _rates(self, name: str, own: Mapping[str, Floats]) -> Floats:
        """Return one rate for each location."""
        chosen, locations = getattr(self.params, name), self.params.locations
        if chosen == OWN and name not in own:
            raise ValueError(f"{name} must be a number, or one for each location, to be your own, got {OWN!r}")
        known = {**RATES[name], "as_decrease": (self.params.decrease_rate,)}
        rates = own[name] if name in own else np.array(known[chosen])
        if rates.size not in (1, locations):
            raise ValueError(f"{name} must hold one rate for each of {locations} locations, got {rates.tolist()}")
        return np.array(np.broadcast_to(rates, locations))

    def check(self, params: AttentionParams) -> None:
        """Raise ValueError unless the authors' observation can show the revealed columns."""
        if params.observation == "authors" and columns_of(params) != ("discovered", "occurred", "units", "ratio"):
            raise ValueError(f"observation must be 'structured' to show {', '.join(columns_of(params))}, got 'authors'")

    def lane(self, params: AttentionParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        locations, window = params.locations, min(params.window, max(params.horizon, SHORT))
        row, kinds = len(columns_of(params)) * locations, 3 if params.share_penalty > 0 else 2
        return [
            ("rates", np.float64, locations),  # mean incidents of the coming step
            ("increases", np.float64, locations),  # of the rates, without units
            ("incidents", np.int32, locations),  # of the coming step
            ("reports", np.int32, locations),  # reported without any unit, of the coming step
            ("units", np.int32, locations),  # sent in the last step
            ("occurred", np.int32, locations),  # incidents of the last step
            ("found", np.int32, locations),  # incidents discovered in the last step
            ("false_alarms", np.int32, locations),  # of the last step
            ("discovered", np.int64, locations),  # in the episode
            ("missed", np.int64, locations),  # in the episode
            ("past", np.int16, (window, kinds, locations)),  # the last steps' numbers seen, occurred, sent
            ("oldest", np.int32),  # index of the oldest of these steps, which the next one replaces
            ("sums", np.int64, (kinds, locations)),  # over these steps
            ("rows", np.float32, 2 * params.history * row),  # the rows of the last steps, twice
            ("newest", np.int32),  # start of the last step's row
            ("shares", np.float64, locations),  # workspace for decoding logits
            ("past_rates", np.float32, (TRACE, locations)),  # rates at regular intervals
            ("kept", np.int32),  # number of these
            ("next_kept", np.int32),  # steps until the next of these
        ]

    def fair_spec(self, params: AttentionParams) -> FairSpec:
        """Return who is affected: the locations."""
        names = tuple(f"location {k}" for k in range(params.locations))
        return FairSpec(
            individuals=params.locations,
            actions=params.units + 1,
            amounts=True,
            features=columns_of(params),
            sensitive={"location": names},
            groups=names,
            same_individuals=True,
            feedback="full" if params.told == "all" else "none",
        )

    def observation_space(self, params: AttentionParams) -> gym.spaces.Box:
        """Return the bounds of the last steps' rows."""
        columns = columns_of(params)
        if params.observation == "authors":
            return gym.spaces.Box(0.0, LARGEST_COUNT, (params.history * len(columns) * params.locations,), np.float32)
        low = np.repeat([-1.0 if name.startswith("hint") else 0.0 for name in columns], params.locations)
        low = np.tile(low, params.history).astype(np.float32)
        return gym.spaces.Box(low, np.ones_like(low), dtype=np.float32)

    def observed_features(self, params: AttentionParams) -> tuple[str, ...]:
        """Return the names of all entries: a column, a location and the number of steps ago, as in ``units_4_1``."""
        parts = product(range(params.history, 0, -1), columns_of(params), range(params.locations))
        return tuple(f"{column}_{k}_{ago}" for ago, column, k in parts)

    def action_space(self, params: AttentionParams) -> gym.spaces.MultiDiscrete | gym.spaces.Box:
        """Return a location for each unit, or a logit for each location."""
        if params.action == "units":
            return gym.spaces.MultiDiscrete(np.full(params.units, params.locations))
        return gym.spaces.Box(-params.logit_limit, params.logit_limit, (params.locations,), np.float32)

    def oracle(self, records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Return the incidents of the coming step as ``"feedback"`` and the rates as ``"rate"``, shape (B, K)."""
        return {"feedback": records["incidents"].astype(np.int64), "rate": np.array(records["rates"])}
