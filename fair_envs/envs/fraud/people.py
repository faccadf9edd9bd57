"""Customers and fraudsters: their properties, their payments, and how they join and leave. Compiled, on one lane.

Each person has separate random numbers. They are indexed by the time of joining, the kind of person, and the number
among those of this kind who joined then. If a customer leaves in only one of two worlds, the random numbers of all
others therefore stay the same.

In every hour an agent pays with a probability that is the product of its satisfaction and an activity. No decision
changes the activity. The hours in which the agent would pay at full satisfaction are therefore drawn first, one after
the other, each from the activities of the hours since the last. In such an hour the agent then pays with a probability
equal to its satisfaction. The distribution is the same as that of a draw in every hour, at a fraction of the cost.
"""

import math

from fair_envs.core import rule
from fair_envs.core.randomness import normal_of, random_words, to_unit_interval, uniform
from fair_envs.envs.fraud.tables import BLOCK, DAYS_OF_YEAR, ENTRIES, HOURS, MONTHDAYS, MONTHS, WEEKDAYS
from fair_envs.support.aliases import Floats, Lane, Record

GENUINE, FRAUDSTER = range(2)
NONE = -1

# Random streams
PERSON, PROFILE, NEXT_HOUR, WILLING, PURCHASE, DECISION, LEAVING, NEWCOMERS = range(8)

MOST_AT_ONCE = 1 << 14  # most people of a kind who can join at once, since each needs a separate number
LARGEST_NORMAL = 6.4


# -------------------------------------------------------------------------------------------------- joining


@rule
def join(lane: Lane, world: Record, kind: int, arrival: int, which: int) -> None:
    """Add a customer or fraudster.

    Args:
        lane: The episode.
        world: Parameters and tables.
        kind: GENUINE or FRAUDSTER.
        arrival: 0 at the start, h at the end of the h-th hour.
        which: Index among those of this kind who join then.
    """
    agent = lane.agents
    lane.agents += 1
    person = (2 * arrival + kind) * MOST_AT_ONCE + which
    word_0, word_1, word_2, _ = random_words(lane.key, 0, PERSON, person)
    country = pick(world.country[kind], to_unit_interval(word_0))
    lane.person[agent] = person
    lane.kind[agent] = kind
    lane.here[agent] = 1
    live_in(lane, world, agent, country)
    lane.currency[agent] = pick(world.currency[kind, country], to_unit_interval(word_1))
    lane.card[agent] = NONE
    lane.owner[agent] = NONE
    lane.satisfaction[agent] = 1.0
    if kind == GENUINE:
        join_as_customer(lane, world, agent)
    write_profile(lane, world, agent, hourly_rate(world, kind, normal_of(word_2)))
    plan(lane, world, agent, arrival)


@rule
def join_as_customer(lane: Lane, world: Record, agent: int) -> None:
    """Set a customer's patience, distributed as Beta(10, 2): the second largest of eleven uniform numbers."""
    word_0, word_1, _, _ = random_words(lane.key, 1, PERSON, lane.person[agent])
    lane.patience[agent] = to_unit_interval(word_0) ** (1 / 11) * to_unit_interval(word_1) ** (1 / 10)
    lane.customers += 1
    lane.satisfaction_sum += world.initial_satisfaction
    lane.satisfaction[agent] = world.initial_satisfaction


@rule
def live_in(lane: Lane, world: Record, agent: int, country: int) -> None:
    """Set an agent's country and its clock."""
    lane.country[agent] = country
    lane.hours_ahead[agent] = world.hours_ahead[country]


@rule
def pick(cumulative: Floats, where: float) -> int:
    """Return the index of the first cumulative weight above a number in [0, 1)."""
    place = 0
    while cumulative[place] <= where:
        place += 1
    return place


@rule
def hourly_rate(world: Record, kind: int, normal: float) -> float:
    """Return an agent's mean number of payments per hour, varied by a normal number."""
    yearly = transactions_of(world, kind)
    varied = yearly * (1.0 + world.noise_level * normal)
    if varied <= 0:
        varied = yearly
    return varied / (DAYS_OF_YEAR * 24) / (world.customers if kind == GENUINE else world.fraudsters)


@rule
def transactions_of(world: Record, kind: int) -> float:
    """Return the expected number of transactions per year of a kind."""
    fraud = world.fraud_proportion
    return world.transactions_per_year * (fraud if kind == FRAUDSTER else 1.0 - fraud)


@rule
def write_profile(lane: Lane, world: Record, agent: int, rate: float) -> None:
    """Write an agent's profile: its activity in the hours of a day, and on each date of the episode.

    The product of both is the expected number of payments in an hour.
    """
    own = lane.scratch
    for block in range(ENTRIES // BLOCK):
        if world.is_needed[block]:
            draw_block(lane, world, agent, block)
    for hour in range(24):
        lane.by_hour[agent, hour] = 24.0 * own[HOURS + hour]
    for day in range(world.calendar.shape[0]):
        month, monthday, weekday = world.calendar[day]
        months = 12.0 * own[MONTHS + month]
        lane.by_day[agent, day] = rate * months * 30.5 * own[MONTHDAYS + monthday] * 7.0 * own[WEEKDAYS + weekday]


@rule
def draw_block(lane: Lane, world: Record, agent: int, block: int) -> None:
    """Draw four entries of an agent's profile: the tables' entries plus normal noise, at least 0."""
    kind, first = lane.kind[agent], BLOCK * block
    drawn = random_words(lane.key, block, PROFILE, lane.person[agent])
    for k in range(BLOCK):
        noise = world.profile_spread[first + k] * normal_of(drawn[k])
        lane.scratch[first + k] = max(0.0, world.profile_mean[kind, first + k] + noise)


# --------------------------------------------------------------------------------------------------- activity


@rule
def plan(lane: Lane, world: Record, agent: int, hour: int) -> None:
    """Put an agent on the list of the next hour, from this one on, in which it may pay, if there is such an hour."""
    by_hour, by_day = lane.by_hour[agent], lane.by_day[agent]
    random = uniform(lane.key, hour, NEXT_HOUR, lane.person[agent])
    local = hour + lane.hours_ahead[agent]
    day, hour_of_day = local // 24, local % 24
    idle = 1.0  # probability that it has not paid until now
    while hour < world.hours:
        idle *= 1.0 - by_day[day] * by_hour[hour_of_day]
        if idle <= random:
            lane.next_agent[agent] = lane.first_agent[hour]
            lane.first_agent[hour] = agent + 1
            return
        hour += 1
        hour_of_day += 1
        if hour_of_day == 24:
            hour_of_day = 0
            day += 1


@rule
def collect_those_who_pay(lane: Lane, world: Record) -> None:
    """Put the agents who make a transaction in this hour into the queue, in random order."""
    if lane.to_hear_of_fraud > 0:
        let_them_hear_of_fraud(lane, world)
    lane.queued = lane.served = 0
    listed = lane.first_agent[lane.hour]
    while listed > 0:
        agent = listed - 1
        listed = lane.next_agent[agent]  # before the agent is put on another hour's list
        if lane.here[agent]:
            if is_willing(lane, agent):
                enqueue(lane, agent)
            else:
                plan(lane, world, agent, lane.hour + 1)


@rule
def is_willing(lane: Lane, agent: int) -> bool:
    """Return whether an agent pays in an hour in which it would pay at full satisfaction."""
    satisfaction = lane.satisfaction[agent]
    if satisfaction >= 1.0:
        return True
    local = lane.hour + lane.hours_ahead[agent]
    activity = lane.by_day[agent, local // 24] * lane.by_hour[agent, local % 24]
    random = uniform(lane.key, lane.hour, WILLING, lane.person[agent])
    return random * min(1.0, activity) < activity * satisfaction  # at most once an hour, even with an activity above 1


@rule
def enqueue(lane: Lane, agent: int) -> None:
    """Insert an agent into the queue by its random priority of this hour."""
    priority = random_words(lane.key, lane.hour, PURCHASE, lane.person[agent])[0]
    place = lane.queued
    while place > 0 and lane.priority[place - 1] > priority:
        lane.queue[place] = lane.queue[place - 1]
        lane.priority[place] = lane.priority[place - 1]
        place -= 1
    lane.queue[place] = agent
    lane.priority[place] = priority
    lane.queued += 1


# ------------------------------------------------------------------------------------------- joining and leaving


@rule
def let_them_hear_of_fraud(lane: Lane, world: Record) -> None:
    """Let the customers whose cards were used in frauds stay or leave for good."""
    lane.to_hear_of_fraud = 0
    for agent in range(lane.agents):
        if lane.corrupted[agent]:
            lane.corrupted[agent] = 0
            random = uniform(lane.key, lane.hour, LEAVING, lane.person[agent])
            if lane.here[agent] and random >= world.stays_after_fraud:
                leave(lane, agent)


@rule
def leave(lane: Lane, agent: int) -> None:
    """Remove an agent for good."""
    lane.here[agent] = 0
    if lane.kind[agent] == GENUINE:
        lane.customers -= 1
        lane.satisfaction_sum -= lane.satisfaction[agent]
        lane.lost += 1


@rule
def migrate(lane: Lane, world: Record) -> None:
    """Let newcomers of both kinds join at the end of an hour."""
    month = world.calendar[1 + lane.hour // 24, 0]
    drawn = random_words(lane.key, lane.hour, NEWCOMERS, 0)
    for kind in range(2):
        expected = expected_newcomers(world, kind, world.profile_mean[kind, MONTHS + month])
        if kind == GENUINE:
            expected *= mean_satisfaction(lane)
        if expected > 1.0:
            count = max(0, math.floor(expected + normal_of(drawn[kind]) + 0.5))
        else:
            count = 1 if to_unit_interval(drawn[kind]) < expected else 0
        for which in range(count):
            join(lane, world, kind, lane.hour + 1, which)


@rule
def expected_newcomers(world: Record, kind: int, share_of_month: float) -> float:
    """Return the expected number of newcomers in an hour at full satisfaction, equal to that of leavers.

    Args:
        world: Parameters.
        kind: GENUINE or FRAUDSTER.
        share_of_month: The current month's share of a year's transactions of that kind.
    """
    hourly = transactions_of(world, kind) / (DAYS_OF_YEAR * 24)
    seasonal = 12.0 * share_of_month
    stays = world.customer_stays if kind == GENUINE else world.fraudster_stays
    return hourly * ((1.0 - world.noise_level) * seasonal + world.noise_level) * (1.0 - stays)


@rule
def mean_satisfaction(lane: Lane) -> float:
    """Return the customers' mean satisfaction, 0 if none are left."""
    if lane.customers == 0:
        return 0.0
    return min(1.0, max(0.0, lane.satisfaction_sum / lane.customers))
