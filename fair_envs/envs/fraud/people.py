"""Customers and fraudsters: who they are, when they pay, and when they come and go. Compiled, on one lane.

A person's luck belongs to the person: it is indexed by when they joined, what they are, and which of those who joined
then. So a customer who leaves in one of two worlds changes nothing in the luck of the others.
"""

import math

from fair_envs.chance import normals, share, uniform, words
from fair_envs.core import rule
from fair_envs.envs.fraud.tables import BLOCK, DAYS_OF_YEAR, HOURS, MONTHDAYS, MONTHS, WEEKDAYS

GENUINE, FRAUDSTER = range(2)
NONE = -1

# Sites of chance
PERSON, PROFILE, ACTIVITY, PURCHASE, DECISION, LEAVING, NEWCOMERS = range(7)

HOURS_DRAWN = 4  # one place of chance has four words
MOST_AT_ONCE = 1 << 14  # persons of a kind who can join at once, so that each has a number of their own
LARGEST_NORMAL = 6.67


# -------------------------------------------------------------------------------------------------- joining


@rule
def join(lane, params, kind, arrival, which):
    """Let a customer or fraudster join.

    Args:
        lane: The episode.
        params: Parameters and tables.
        kind: GENUINE or FRAUDSTER.
        arrival: 0 at the start, h at the end of the h-th hour.
        which: Of those of this kind who join then.
    """
    agent = lane.agents
    lane.agents += 1
    person = (2 * arrival + kind) * MOST_AT_ONCE + which
    word_0, word_1, word_2, word_3 = words(lane.key, 0, PERSON, person)
    country = pick(params.country[kind], share(word_0))
    lane.person[agent] = person
    lane.kind[agent] = kind
    lane.here[agent] = 1
    lane.country[agent] = country
    lane.currency[agent] = pick(params.currency[kind, country], share(word_1))
    lane.card[agent] = NONE
    lane.owner[agent] = NONE
    lane.satisfaction[agent] = 1.0
    lane.rate[agent] = hourly_rate(params, kind, normals(word_2, word_3)[0])
    write_profile(lane, params, agent)
    draw_ahead(lane, agent, arrival)
    if kind == GENUINE:
        join_as_customer(lane, params, agent)


@rule
def join_as_customer(lane, params, agent):
    """Give a customer patience, distributed as Beta(10, 2): the second largest of eleven uniform numbers."""
    word_0, word_1, _, _ = words(lane.key, 1, PERSON, lane.person[agent])
    lane.patience[agent] = share(word_0) ** (1 / 11) * share(word_1) ** (1 / 10)
    lane.satisfaction[agent] = params.initial_satisfaction
    lane.customers += 1
    lane.satisfaction_sum += params.initial_satisfaction


@rule
def pick(cumulative, where):
    """Return the place of the first cumulative weight above a number in [0, 1)."""
    place = 0
    while cumulative[place] <= where:
        place += 1
    return place


@rule
def hourly_rate(params, kind, normal):
    """Return how often an agent pays in an average hour; varied by a normal number."""
    yearly = transactions_of(params, kind)
    varied = yearly * (1.0 + params.noise_level * normal)
    if varied <= 0:
        varied = yearly
    return varied / (DAYS_OF_YEAR * 24) / (params.customers if kind == GENUINE else params.fraudsters)


@rule
def transactions_of(params, kind):
    """Return how many transactions a year a kind is expected to make."""
    fraud = params.fraud_proportion
    return params.transactions_per_year * (fraud if kind == FRAUDSTER else 1.0 - fraud)


@rule
def write_profile(lane, params, agent):
    """Write an agent's own profile: how active it is in the hours of a day, and on each date of the episode."""
    person, kind = lane.person[agent], lane.kind[agent]
    own = lane.scratch
    for block in params.blocks:
        word_0, word_1, word_2, word_3 = words(lane.key, block, PROFILE, person)
        first = BLOCK * block
        own[first], own[first + 1] = normals(word_0, word_1)
        own[first + 2], own[first + 3] = normals(word_2, word_3)
        for entry in range(first, first + BLOCK):
            own[entry] = max(0.0, params.profile_mean[kind, entry] + params.profile_spread[entry] * own[entry])
    for hour in range(24):
        lane.by_hour[hour, agent] = 24.0 * own[HOURS + hour]
    for day in range(params.calendar.shape[0]):
        month, monthday, weekday = params.calendar[day]
        months = 12.0 * own[MONTHS + month]
        lane.by_day[day, agent] = months * 30.5 * own[MONTHDAYS + monthday] * 7.0 * own[WEEKDAYS + weekday]


# ----------------------------------------------------------------------------------------------- being active


@rule
def draw_ahead(lane, agent, hour):
    """Draw whether an agent pays in each of the four hours of which this is one."""
    drawn = words(lane.key, hour // HOURS_DRAWN, ACTIVITY, lane.person[agent])
    lane.drawn[0, agent] = drawn[0]
    lane.drawn[1, agent] = drawn[1]
    lane.drawn[2, agent] = drawn[2]
    lane.drawn[3, agent] = drawn[3]


@rule
def collect_those_who_pay(lane, params):
    """Put the agents who make a transaction in this hour into the queue, in random order."""
    hour = lane.hour
    row = hour % HOURS_DRAWN
    lane.queued = lane.served = 0
    for agent in range(lane.agents):
        if not lane.here[agent] or (lane.corrupted[agent] and leaves_after_fraud(lane, params, agent)):
            continue
        if row == 0:
            draw_ahead(lane, agent, hour)
        if share(lane.drawn[row, agent]) < activity(lane, params, agent):
            enqueue(lane, agent)


@rule
def activity(lane, params, agent):
    """Return the probability that an agent makes a transaction in this hour."""
    local = local_hour(lane, params, agent)
    chance = lane.by_hour[local % 24, agent] * lane.by_day[local // 24, agent]
    return chance * lane.rate[agent] * lane.satisfaction[agent]


@rule
def local_hour(lane, params, agent):
    """Return the hours since the midnight that begins the calendar, where the agent is."""
    return lane.hour + params.hours_ahead[lane.country[agent]]


@rule
def enqueue(lane, agent):
    """Insert an agent into the queue at the place that its random priority of this hour gives it."""
    priority = words(lane.key, lane.hour, PURCHASE, lane.person[agent])[0]
    place = lane.queued
    while place > 0 and lane.priority[place - 1] > priority:
        lane.queue[place] = lane.queue[place - 1]
        lane.priority[place] = lane.priority[place - 1]
        place -= 1
    lane.queue[place] = agent
    lane.priority[place] = priority
    lane.queued += 1


# ---------------------------------------------------------------------------------------------- coming and going


@rule
def leaves_after_fraud(lane, params, agent):
    """Let a customer whose card was used in a fraud go or stay for good; return whether they go."""
    lane.corrupted[agent] = 0
    if uniform(lane.key, lane.hour, LEAVING, lane.person[agent]) < params.stays_after_fraud:
        return False
    leave(lane, agent)
    return True


@rule
def leave(lane, agent):
    """Let an agent go for good."""
    lane.here[agent] = 0
    if lane.kind[agent] == GENUINE:
        lane.customers -= 1
        lane.satisfaction_sum -= lane.satisfaction[agent]
        lane.lost += 1


@rule
def migrate(lane, params):
    """Let newcomers of both kinds join at the end of an hour."""
    month = params.calendar[1 + lane.hour // 24, 0]
    word_0, word_1, word_2, word_3 = words(lane.key, lane.hour, NEWCOMERS, 0)
    for kind in range(2):
        expected = expected_newcomers(params, kind, month)
        if kind == GENUINE:
            expected *= mean_satisfaction(lane)
        if expected > 1.0:
            pair = normals(word_0, word_1) if kind == GENUINE else normals(word_2, word_3)
            count = max(0, math.floor(expected + pair[0] + 0.5))
        else:
            count = 1 if share(word_0 if kind == GENUINE else word_2) < expected else 0
        for which in range(count):
            join(lane, params, kind, lane.hour + 1, which)


@rule
def expected_newcomers(params, kind, month):
    """Return how many join in an hour of a month if customers are wholly satisfied: as many as are expected to go."""
    hourly = transactions_of(params, kind) / (DAYS_OF_YEAR * 24)
    seasonal = 12.0 * params.profile_mean[kind, MONTHS + month]
    stays = params.customer_stays if kind == GENUINE else params.fraudster_stays
    return hourly * ((1.0 - params.noise_level) * seasonal + params.noise_level) * (1.0 - stays)


@rule
def mean_satisfaction(lane):
    """Return the customers' mean satisfaction, 0 if none are left."""
    if lane.customers == 0:
        return 0.0
    return min(1.0, max(0.0, lane.satisfaction_sum / lane.customers))
