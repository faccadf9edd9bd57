"""The rules of FairAttention on one lane, in the order in which they are played."""

import math
from collections.abc import Mapping
from itertools import product
from numbers import Real
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.aliases import Facts, Floats, Floats32, Ints, Lane, Record
from fair_envs.chance import bernoulli, binomial, normal_of, poisson, poisson_at, share, words
from fair_envs.compilation import record_of
from fair_envs.core import Rules, rule
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
from fair_envs.interactions import FairSpec
from fair_envs.parameters import encode, shown

# Sites of chance
INCIDENTS, MANY_INCIDENTS, REPORTS, DISCOVERY, FALSE_ALARM, HINTS = range(6)

SEEN, OCCURRED, SENT = range(3)  # what a lane adds up over its window; units only if they are paid for
WORDS = 4  # that one draw gives
MOST_AT_ONCE = 256.0  # mean of a Poisson number from one word
TRACE = 128  # rates that a lane keeps for its picture
LARGEST_RATE = 1e4  # which no rate rises above
LARGEST_COUNT = 2**15 - 1  # of incidents of a location in a step; the largest rate and weight are far from it
OWN = "own"


# ---------------------------------------------------------------------------------------------- the incidents


@rule
def start(lane: Lane, params: Record) -> None:
    """Set the rates, and let the first step's incidents happen."""
    for k in range(params.locations):
        lane.rates[k] = params.first_rates[k]
        lane.increases[k] = params.increases[k]
    keep_rates(lane, params)
    happen(lane, params, 0)


@rule
def happen(lane: Lane, params: Record, time: int) -> None:
    """Let the incidents of a time happen, at the rates of now."""
    draw(lane, params, time, INCIDENTS, params.discoverable_weight, lane.incidents)
    if params.reported_weight > 0:
        draw(lane, params, time, REPORTS, params.reported_weight, lane.reports)


@rule
def draw(lane: Lane, params: Record, time: int, site: int, weight: float, out: Any) -> None:
    """Draw a Poisson number for each location, whose mean is its rate times the weight."""
    for first in range(0, params.locations, WORDS):
        luck = words(lane.key, time, site, first // WORDS)
        for k in range(first, min(first + WORDS, params.locations)):
            mean = weight * lane.rates[k]
            if mean <= MOST_AT_ONCE:
                out[k] = poisson_at(share(luck[k - first]), mean)
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
    """Add units to locations one by one, always to the one with the largest share, which falls by one unit's share.

    Args:
        logits: Shape (K,); the shares are their softmax.
        units: How many are sent (N); each takes 1/N from the share.
        shares: Shape (K,); in the end, what is left of the shares.
        out: Shape (K,); how many units each location has. The lowest index wins a tie.
    """
    locations, whole = logits.shape[0], 0.0
    largest = float(logits[0])
    for k in range(1, locations):
        largest = max(largest, float(logits[k]))
    for k in range(locations):
        shares[k] = math.exp(float(logits[k]) - largest)  # in double precision, wherever it is decoded
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
    """Let the units discover incidents; without luck if they miss none and make none up."""
    for k in range(params.locations):
        lane.false_alarms[k] = 0
        if params.replacement:
            chance = 1.0 - params.miss_probability ** lane.units[k]
            lane.found[k] = binomial(lane.key, lane.time, DISCOVERY, k, lane.incidents[k], chance)
        elif params.miss_probability > 0 or params.extra_probability > 0:
            search(lane, params, k)
        else:
            lane.found[k] = min(lane.units[k], lane.incidents[k])


@rule
def search(lane: Lane, params: Record, k: int) -> None:
    """Let a location's units look for its incidents one after another; each discovers one at most."""
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
    """Return how many incidents the units report, false ones too, up to the most that an observation shows."""
    return min(LARGEST_COUNT, lane.found[k] + lane.false_alarms[k])


# ----------------------------------------------------------------------------------------------- a step


@rule
def step(lane: Lane, action: NDArray[Any], params: Record, reward: Floats, facts: Facts) -> Any:
    """Send the units, let them discover, change the rates, let the next incidents happen; it never terminates."""
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
    """Add the step to the sums over the window, in place of the oldest one, and over the episode."""
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
    """Put a number into the window in place of the oldest one, and into its sum."""
    sums[kind, k] += value - oldest[kind, k]
    oldest[kind, k] = value


@rule
def earned(lane: Lane, params: Record) -> float:
    """Return the reward: for the discovered, less for the missed and for unequal shares of units."""
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
    """Return how far a location's share of the window's units is from an equal share, at most."""
    whole, largest = 0, 0.0
    for k in range(params.locations):
        whole += lane.sums[SENT, k]
    for k in range(params.locations):
        largest = max(largest, abs(lane.sums[SENT, k] / whole - 1.0 / params.locations))
    return largest


@rule
def change(lane: Lane, params: Record) -> None:
    """Let rates fall where units were and rise where none was."""
    for k in range(params.locations):
        if lane.units[k] > 0:
            lane.rates[k] = max(0.0, lane.rates[k] - params.decrease_rate * lane.units[k])
        else:
            lane.rates[k] = min(LARGEST_RATE, lane.rates[k] + lane.increases[k])
    keep_rates(lane, params)


@rule
def keep_rates(lane: Lane, params: Record) -> None:
    """Keep the rates for the picture, at every so many steps."""
    if lane.next_kept > 0:
        lane.next_kept -= 1
        return
    if lane.kept < TRACE:
        for k in range(params.locations):
            lane.past_rates[lane.kept, k] = lane.rates[k]
        lane.kept += 1
    lane.next_kept = params.trace_every - 1


# ----------------------------------------------------------------------------------- what is seen and told


@rule
def write_row(lane: Lane, params: Record) -> None:
    """Write what is told about the step, twice: the last rows are then one piece of memory, wherever they begin."""
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
    """Write discovered, occurred, units and ratio of all locations, as they are."""
    locations = params.locations
    for k in range(locations):
        tell(row, again, k, seen(lane, k))
        tell(row, again, locations + k, lane.incidents[k])
        tell(row, again, 2 * locations + k, lane.units[k])
        tell(row, again, 3 * locations + k, ratio(lane, k))


@rule
def write_scaled(lane: Lane, params: Record, row: Floats32, again: Floats32) -> None:
    """Write the columns that are told, each between 0 and 1, hints between -1 and 1."""
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
            luck = words(lane.key, lane.time, HINTS, k)
            blind = 1.0 + math.sqrt(params.feature_variance_0) * normal_of(luck[0])
            telling = 1.0 + lane.incidents[k] + math.sqrt(params.feature_variance_1) * normal_of(luck[1])
            tell(row, again, place, scaled(blind, units))
            tell(row, again, place + locations, scaled(telling, units))


@rule
def tell(row: Floats32, again: Floats32, place: int, value: float) -> None:
    """Write a number twice; copying the row later would wait for it to be written."""
    row[place] = value
    again[place] = value


@rule
def scaled(count: float, units: int) -> float:
    """Return a number of incidents as a number in (-1, 1): one half for as many as there are units."""
    return count / (abs(count) + units)


@rule
def ratio(lane: Lane, k: int) -> float:
    """Return the share of the window's incidents that were discovered; one more is counted, so that it is defined."""
    return lane.sums[SEEN, k] / (lane.sums[OCCURRED, k] + 1)


@rule
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write the last rows, the oldest first; zeros before the first step."""
    first = lane.newest + params.row
    copy(lane.rows[first : first + observation.shape[1]], observation[0])


@rule
def copy(source: Floats32, out: Floats32) -> None:
    """Copy numbers; a loop over pieces of memory of one length is faster than an assignment."""
    for i in range(out.size):
        out[i] = source[i]


@rule
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write who the locations are; their features are what the last step told about them."""
    newest = lane.rows[lane.newest : lane.newest + params.row]
    for k in range(params.locations):
        facts.individual[k] = k
        facts.sensitive[k, 0] = k
        facts.group[k] = k
        for column in range(facts.features.shape[1]):
            facts.features[k, column] = newest[column * params.locations + k]


# ------------------------------------------------------------------------------------------ the environment


def world_of(params: AttentionParams, rates: Floats) -> NDArray[np.void]:
    """Return all that compiled rules look up as one record, shape (1,); rates have shape (2, K)."""
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
    """Return the names of what each step tells about a location, in the order of an observation."""
    told = ("discovered", "occurred", "units", "ratio") if params.told == "all" else ("discovered", "units")
    reported = ("reported",) if params.reported_weight > 0 else ()
    return (*told, *reported, *(("hint_0", "hint_1") if params.noisy_features else ()))


def counted(scaled: ArrayLike, units: int) -> Ints:
    """Return the numbers of incidents that an observation shows scaled.

    It is exact up to about 10,000 incidents at 6 units: beyond, neighbouring numbers are shown as the same one.
    """
    shown = np.asarray(scaled, np.float64)
    return np.asarray(np.rint(units * shown / (1.0 - shown)), np.int64)


def checked_rates(name: str, rates: Any) -> Floats:
    """Return rates of one's own, shape () or (K,).

    Raises:
        ValueError: Neither a number nor one for each of several locations, or a rate below 0 or too large.
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
    """Locations with incidents, and a few units of attention to send there, after Hu, Lear and Zhang (2024).

    **Description.** Incidents happen at five locations, at rates of their own. In each step a decision-maker sends six
    units, each to one location; a unit discovers one incident there, if there is one. Where units are, the rate falls;
    where none is, it rises. Inspections of food, pest control or mobile clinics are of this kind. The authors of
    ml-fairness-gym warn against reading it as predictive policing: there, what is recorded depends on who is watched in
    ways that this model leaves out.

    **Who decides and who is affected.** The decision-maker decides (one agent); the locations are affected, all of them
    in each step, and stand for those who live there. The harm is to be left without attention: incidents go
    undiscovered, and more of them follow. What can be read off: how unequally units are shared (short term), and how
    unequally incidents, or their rates, come to be spread (long term). An equal share of units is not an equal need.
    Nothing is said about differences within a location, nor about the harm that attention itself can do.

    **Sensitive attribute and legitimate factors.** ``location``: each location is a group of one. No legitimate factor.

    **Action space.** ``MultiDiscrete([5] * 6)``: the location of each unit; an agent that samples them from one
    distribution sends a multinomial number to each. With ``action="logits"``, a ``Box`` of a number for each location,
    from -``logit_limit`` to it: units are added one by one where the softmax is largest, and each takes a share of 1/6
    from it (`decode`). The published code declares a limit of 3 and does not keep it; here actions outside the box are
    refused, as everywhere, and learners that clip, such as those of Stable-Baselines3, clip to it.

    **Observation space.** ``Box`` of 160 numbers from 0 to 1: the last ``history`` (8) steps, the oldest first, zeros
    before the first step, each as columns of one number for each location. Reshaped to (8, 4, 5), the axes are step,
    column, location. The columns: ``discovered`` and ``occurred``, where n incidents are shown as n / (n + units);
    ``units``, as a share of all; ``ratio``, the share of the incidents of the last ``window`` steps that were
    discovered, with one incident more in the denominator. ``told="discovered"`` leaves out ``occurred`` and ``ratio``:
    what was not discovered stays unknown, see **What is told**. ``reported_weight`` adds ``reported``;
    ``noisy_features`` adds ``hint_0`` and ``hint_1``, between -1 and 1, scaled as counts are: two normal numbers, the
    second of which has the mean 1 + incidents. ``observation="authors"``: the published code's 160 numbers, the same
    columns in the same order without scaling.

    **What is told.** By default (``told="all"``), as in the paper, the observation and ``fair_feedback`` show all
    incidents, those too that nobody discovered. Hardly any decision-maker outside a study knows these. The study needs
    them: its long-term measure counts incidents, and its learners see their ratio. ``told="discovered"`` hides them
    from both; measures of incidents are undefined then, and only the oracle knows.

    **Rewards.** ``discovered_reward`` (1) for each incident discovered, minus ``missed_penalty`` (0.25) for each that
    was not. The reward pays for discoveries and so rewards keeping incidents alive: sending units everywhere in turn
    drives all rates to 0 within 100 steps and earns nothing from then on; the paper's agents earn about 2 a step.
    Report incidents, missed incidents and rates beside it. ``share_penalty`` times the excess of the deviation of
    shares in the window over ``share_tolerance`` is taken off.

    **Interactions.** One individual a location. ``fair_features``: what the last step told about it, the columns
    above. ``fair_action``: units sent there. ``fair_feedback``: the incidents that happened there, which as many units
    would have discovered, and which may be more than there are units; -1 with ``told="discovered"``. ``fair_outcome``:
    the incidents discovered. Both decision and feedback are amounts (``fair_spec.amounts``): group notions, which ask
    who got decision 1, are refused; `fair_envs.metrics.ShareDeviation` and ``IncidentDistance`` compare amounts, and
    notions on individuals apply. The oracle knows the incidents of the coming step (``"feedback"``) and the rates
    (``"rate"``).

    **Starting state.** Rates of 8, 6, 4, 3 and 1.5.

    **Episode end.** Truncation after ``horizon`` steps; it never terminates.

    **Order of a step.** Incidents have happened, Poisson numbers of the rates; they do not depend on the action, so
    that a counterfactual twin meets the same luck. Units are sent, and discover. Then rates fall by ``decrease_rate``
    (0.1) for each unit, not below 0, or rise by the location's own increase (0.2, 0.26, 0.4, 0.6, 0.3) where no unit
    is. Rates do not rise above 10,000.

    **Discovery.** Each incident is missed by each free unit with ``miss_probability``; a unit that discovered one is
    no longer free. A unit that is still free at the end reports a false incident with ``extra_probability``: the
    decision-maker is told of it as if it were one, and earns nothing. With ``replacement`` a unit discovers any number
    of incidents and is always free; ``extra_probability`` is ignored then, and nobody reports false incidents.

    **Arguments.** The fields of `AttentionParams`, each with its default and source. Rates can be your own: a number or
    one for each location. ``profile``: ``"paper"``; ``"authors"``: the published code's actions and observations;
    ``"pocar"``: the same with one rate for increase and decrease, as Yu et al. (2022); ``"ml-fairness-gym"``: one rate,
    incidents hidden, noisy features, nothing taken off for missed incidents.

    **Differences from the paper and its code**, with the switches that turn their behaviour back on:

    * The paper prints none of the numbers; they are the code's.
    * Units choose locations, so that an allocation has a probability; there, unbounded Gaussian logits are decoded:
      ``action="logits"`` with a large ``logit_limit``.
    * Observations are scaled and bounded: ``observation="authors"``.
    * The paper lets rates fall below 0; the code, and this package, do not.
    * The horizon is truncation; there, an end like any other.
    * ml-fairness-gym lets free units report a false incident after each true one: ``extras="per_incident"``; counts
      false incidents as discovered in what agents earn; and has probabilities of missing for each location.

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
        """Return what compiled rules are given."""
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
        """Raise ValueError unless the authors' observation can show what is told."""
        if params.observation == "authors" and columns_of(params) != ("discovered", "occurred", "units", "ratio"):
            raise ValueError(
                f"observation must be 'structured' where {', '.join(columns_of(params))} are told, got 'authors'"
            )

    def lane(self, params: AttentionParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        locations, window = params.locations, min(params.window, params.horizon)
        row, kinds = len(columns_of(params)) * locations, 3 if params.share_penalty > 0 else 2
        return [
            ("rates", np.float64, locations),  # mean incidents of the coming step
            ("increases", np.float64, locations),  # of the rates, where no unit is
            ("incidents", np.int32, locations),  # of the coming step
            ("reports", np.int32, locations),  # the same, of incidents that nobody needs to discover
            ("units", np.int32, locations),  # sent in the last step
            ("occurred", np.int32, locations),  # incidents of the last step
            ("found", np.int32, locations),  # incidents discovered in the last step
            ("false_alarms", np.int32, locations),  # of the last step
            ("discovered", np.int64, locations),  # in the episode
            ("missed", np.int64, locations),  # in the episode
            ("past", np.int16, (window, kinds, locations)),  # the last steps' numbers seen, occurred, sent
            ("oldest", np.int32),  # of these steps: the place of the next one
            ("sums", np.int64, (kinds, locations)),  # over these steps
            ("rows", np.float32, 2 * params.history * row),  # what the last steps told, twice
            ("newest", np.int32),  # where the last step's row begins
            ("shares", np.float64, locations),  # in which logits are decoded
            ("past_rates", np.float32, (TRACE, locations)),  # at every so many steps
            ("kept", np.int32),  # how many of them there are
            ("next_kept", np.int32),  # steps until the next
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
        """Return the names of all entries: a column, a location and how many steps ago, as in ``units_4_1``."""
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
