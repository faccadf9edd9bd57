"""The rules of FairFraud on one lane, in the order of an hour."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, rule
from fair_envs.core.compilation import record_of
from fair_envs.core.feedback import fields, reveal
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import random_words, to_unit_interval
from fair_envs.envs.fraud.params import (
    ALWAYS,
    BY_AMOUNT,
    EUROPE_MERCHANT_0,
    MONEY,
    NO_BIAS,
    PROFILES,
    FraudParams,
)
from fair_envs.envs.fraud.people import (
    DECISION,
    FRAUDSTER,
    GENUINE,
    LARGEST_NORMAL,
    MOST_AT_ONCE,
    NONE,
    PURCHASE,
    collect_those_who_pay,
    expected_newcomers,
    join,
    leave,
    live_in,
    mean_satisfaction,
    migrate,
    pick,
    plan,
)
from fair_envs.envs.fraud.tables import (
    BANK_ZONE,
    BLOCK,
    CONTINENTS,
    DAYS_OF_YEAR,
    ENTRIES,
    HOURS,
    MONTHDAYS,
    MONTHS,
    SPREADS,
    WEEKDAYS,
    YEAR,
    Source,
    Tables,
    calendar,
    load,
    offset,
)
from fair_envs.support.aliases import Facts, Floats, Floats32, Ints, Lane, Record
from fair_envs.support.parameters import encode

IGNORE, AUTHENTICATE = range(2)

# The outcomes of a transaction
PAID, CONFIRMED, CANCELLED, CAUGHT, MISSED = range(5)
OUTCOMES = (
    "payment, not checked",
    "payment, authenticated",
    "payment stopped",
    "fraud stopped",
    "fraud went through",
)

EUROPE_CODE = CONTINENTS.index("EU")
AMOUNT_BANDS = (10.0, 50.0, 250.0)
LOCAL_MEAN_TIME = 7 * 60 + 53  # minutes behind UTC; F, M
RECENT = 64  # number of transactions in the picture

PERSONAL_FEATURES = (
    "month",
    "day",
    "weekday",
    "hour",
    "card_id",
    "merchant",
    "country",
    "continent",
    "amount",
    "currency",
)
OBSERVED = ("satisfaction", "fraud_share", *PERSONAL_FEATURES)
NOMINAL = ("card_id", "merchant", "country", "continent", "currency")
SENSITIVE = ("country", "continent", "card_id")
SCALE = (11.0, 30.0, 6.0, 23.0, 10_000.0, 6.0, 124.0, 5.0, 8000.0, 4.0)  # F; the largest month is 12/11, day 31/30


# ------------------------------------------------------------------------------------------------ the start


@rule
def start(lane: Lane, world: Record) -> None:
    """Add the first customers and fraudsters, and advance to the first transaction."""
    for which in range(world.customers):
        join(lane, world, GENUINE, 0, which)
    for which in range(world.fraudsters):
        join(lane, world, FRAUDSTER, 0, which)
    collect_those_who_pay(lane, world)
    wait_for_transaction(lane, world)


@rule
def wait_for_transaction(lane: Lane, world: Record) -> None:
    """Advance the time until an agent makes a transaction or the last hour is over."""
    while lane.served == lane.queued:
        migrate(lane, world)
        lane.hour += 1
        if lane.hour >= world.hours:
            lane.waiting = 0
            return
        collect_those_who_pay(lane, world)
    request(lane, world, lane.queue[lane.served])
    lane.served += 1


# -------------------------------------------------------------------------------------------- a transaction


@rule
def request(lane: Lane, world: Record, agent: int) -> None:
    """Set the details of an agent's transaction: card, merchant and amount."""
    _, word_1, word_2, word_3 = random_words(lane.key, lane.hour, PURCHASE, lane.person[agent])
    write_time(lane, world, agent)
    if lane.card[agent] == NONE:
        take_card(lane, world, agent)
    kind = lane.kind[agent]
    merchant = pick(world.merchant[kind, lane.currency[agent]], to_unit_interval(word_1))
    place = pick(world.bins[kind, merchant], to_unit_interval(word_2))
    lane.waiting = 1
    lane.agent = agent
    lane.fraud = kind
    lane.card_now = lane.card[agent]
    lane.merchant_now = merchant
    lane.country_now = lane.country[agent]
    lane.continent_now = world.continent[lane.country[agent]]
    lane.currency_now = lane.currency[agent]
    lane.amount_now = world.lowest[kind, merchant] + (place + to_unit_interval(word_3)) * world.width[kind, merchant]


@rule
def write_time(lane: Lane, world: Record, agent: int) -> None:
    """Write the agent's local date and hour; for a thief, those before it takes over the victim's country."""
    local = lane.hour + lane.hours_ahead[agent]
    month, monthday, weekday = world.calendar[local // 24]
    lane.month = month + 1
    lane.day = monthday + 1
    lane.weekday = weekday
    lane.hour_now = local % 24


@rule
def take_card(lane: Lane, world: Record, agent: int) -> None:
    """Give an agent its card: a new one, or for some fraudsters one that a customer has used."""
    if lane.kind[agent] == FRAUDSTER:
        _, _, word_2, word_3 = random_words(lane.key, lane.hour, DECISION, lane.person[agent])
        if to_unit_interval(word_2) < world.steal_probability:
            victim = find_victim(lane, world, to_unit_interval(word_3))
            if victim != NONE:
                lane.owner[agent] = victim
                lane.card[agent] = lane.card[victim]
                live_in(lane, world, agent, lane.country[victim])
                lane.currency[agent] = lane.currency[victim]
                return
    lane.card[agent] = lane.cards
    lane.cards += 1


@rule
def find_victim(lane: Lane, world: Record, where: float) -> int:
    """Return one of the customers whose card can be stolen, all equally likely; -1 if there is none.

    Args:
        lane: The episode.
        world: Parameters and tables.
        where: A number in [0, 1) that selects the customer.
    """
    found = 0
    for agent in range(lane.agents):
        found += can_be_robbed(lane, world, agent)
    wanted = int(where * found)
    for agent in range(lane.agents):
        if can_be_robbed(lane, world, agent):
            if wanted == 0:
                return agent
            wanted -= 1
    return NONE


@rule
def can_be_robbed(lane: Lane, world: Record, agent: int) -> bool:
    """Return whether an agent is a customer with a card of a country and currency in which frauds occur."""
    if lane.kind[agent] != GENUINE or not lane.here[agent] or lane.card[agent] == NONE:
        return False
    return world.can_be_stolen[lane.country[agent], lane.currency[agent]] != 0


# ----------------------------------------------------------------------------------------------- a decision


@rule
def step(lane: Lane, action: Ints, world: Record, reward: Floats, facts: Facts) -> bool:
    """Decide on the current transaction and wait for the next; return whether the last hour is over."""
    if not lane.waiting:  # the whole episode has no transaction to decide on
        return True
    outcome = outcome_of(lane, world, action[0])
    facts.action[0] = action[0]
    facts.outcome[0] = outcome <= CONFIRMED
    reveal(lane, world, facts, lane.fraud, IGNORE)
    remember_revealed(lane, facts)
    reward[0] = reward_of(lane, world, outcome)
    tally(lane, outcome)
    if world.post_transaction_update:
        update(lane, world, outcome)
    if lane.here[lane.agent]:
        plan(lane, world, lane.agent, lane.hour + 1)
    wait_for_transaction(lane, world)
    return not lane.waiting


@rule
def outcome_of(lane: Lane, world: Record, action: int) -> int:
    """Return the outcome of the transaction; customers who are asked to authenticate may cancel it."""
    if lane.fraud:
        return CAUGHT if action == AUTHENTICATE else MISSED
    if action != AUTHENTICATE:
        return PAID
    amount = lane.amount_now / world.largest[lane.merchant_now]
    success = world.patience_weight * lane.patience[lane.agent] + (1.0 - world.patience_weight) * amount
    random = random_words(lane.key, lane.hour, DECISION, lane.person[lane.agent])[0]
    return CONFIRMED if to_unit_interval(random) < success else CANCELLED


@rule
def remember_revealed(lane: Lane, facts: Facts) -> None:
    """Count the transactions whose labels were revealed, and the frauds among them."""
    if facts.feedback[0] >= 0:
        lane.known += 1
        lane.known_frauds += facts.feedback[0]
    for row in range(facts.late_count):
        lane.known += 1
        lane.known_frauds += facts.late_feedback[row]


@rule
def reward_of(lane: Lane, world: Record, outcome: int) -> float:
    """Return the reward of an outcome."""
    reward = money(lane, world, outcome) if world.reward == MONEY else shaped(outcome)
    if earns_bias(lane, world) and (outcome <= CONFIRMED or world.reward_bias_on == ALWAYS):
        reward += world.reward_bias_size
    return reward


@rule
def shaped(outcome: int) -> float:
    """Return 1 for a genuine payment that goes through, -1 for a fraud that does, 0 for stopped transactions."""
    if outcome <= CONFIRMED:
        return 1.0
    return -1.0 if outcome == MISSED else 0.0


@rule
def money(lane: Lane, world: Record, outcome: int) -> float:
    """Return the earnings or loss of the card's issuer."""
    if outcome <= CONFIRMED:
        return world.margin * lane.amount_now + world.fee
    return -lane.amount_now if outcome == MISSED else 0.0


@rule
def earns_bias(lane: Lane, world: Record) -> bool:
    """Return whether the bias applies to the transaction."""
    if world.reward_bias == NO_BIAS or lane.continent_now != EUROPE_CODE:
        return False
    return world.reward_bias != EUROPE_MERCHANT_0 or lane.merchant_now == 0


@rule
def update(lane: Lane, world: Record, outcome: int) -> None:
    """Update the customer's satisfaction, let the agent stay or leave, and mark the victim's card as corrupted."""
    agent = lane.agent
    if outcome == MISSED and lane.owner[agent] != NONE:
        lane.corrupted[lane.owner[agent]] = 1
        lane.to_hear_of_fraud += 1
    stays = world.fraudster_stays
    if not lane.fraud:
        change_satisfaction(lane, world, outcome)
        stays = world.customer_stays * lane.satisfaction[agent]
    if to_unit_interval(random_words(lane.key, lane.hour, DECISION, lane.person[agent])[1]) >= stays:
        leave(lane, agent)


@rule
def change_satisfaction(lane: Lane, world: Record, outcome: int) -> None:
    """Update the customer's satisfaction after a payment."""
    if outcome == PAID:
        factor = world.after_unchecked
    else:
        factor = world.after_checked if outcome == CONFIRMED else world.after_cancelled
    before = lane.satisfaction[lane.agent]
    after = min(1.0, before * factor)
    lane.satisfaction_sum += after - before
    lane.satisfaction[lane.agent] = after


@rule
def tally(lane: Lane, outcome: int) -> None:
    """Count the outcome for its continent, and store it for the picture."""
    lane.outcomes[lane.continent_now, outcome] += 1
    place = lane.time % RECENT
    lane.recent_outcome[place] = outcome
    lane.recent_continent[place] = lane.continent_now


# -------------------------------------------------------------------------------------------- observations


@rule
def observe(lane: Lane, world: Record, observation: Floats32) -> None:
    """Write the mean satisfaction, the share of frauds among revealed labels, and the current transaction."""
    observation[0, 0] = mean_satisfaction(lane)
    observation[0, 1] = lane.known_frauds / lane.known if lane.known > 0 else 0.0
    write_transaction(lane, observation[0, 2:])


@rule
def write_transaction(lane: Lane, out: Floats32) -> None:
    """Write the ten numbers of the current transaction, scaled; zeros if there is none."""
    if not lane.waiting:
        out[:] = 0.0
        return
    out[0] = lane.month / SCALE[0]
    out[1] = lane.day / SCALE[1]
    out[2] = lane.weekday / SCALE[2]
    out[3] = lane.hour_now / SCALE[3]
    out[4] = lane.card_now / SCALE[4]
    out[5] = lane.merchant_now / SCALE[5]
    out[6] = lane.country_now / SCALE[6]
    out[7] = lane.continent_now / SCALE[7]
    out[8] = lane.amount_now / SCALE[8]
    out[9] = lane.currency_now / SCALE[9]


@rule
def describe(lane: Lane, world: Record, facts: Facts) -> None:
    """Write the record of the current transaction; its features are the ten numbers."""
    if not lane.waiting:
        return
    write_transaction(lane, facts.features[0])
    facts.individual[0] = lane.time
    facts.sensitive[0, 0] = lane.continent_now
    facts.group[0] = lane.continent_now
    facts.legitimate[0, 0] = band(lane.amount_now) if world.legitimate == BY_AMOUNT else lane.merchant_now


@rule
def band(amount: float) -> int:
    """Return the band of an amount, counted from 0."""
    found = 0
    for edge in AMOUNT_BANDS:
        found += amount >= edge
    return found


# ------------------------------------------------------------------------------------------ the environment


class Fraud(Rules):
    """Card payments, some of them frauds, and customers who leave if they are checked too often.

    **Description.** Customers and fraudsters of many countries make card transactions, hour by hour through the first
    week of January 2016 (by default). Each transaction needs a decision: let it pass, or ask for a second
    authentication. Customers who are asked may cancel, lose patience and leave for good; fraudsters never authenticate
    successfully. The simulator is MultiMAuS (Zintgraf et al., 2017) in the form of the FAReL study (Cimpean et al.,
    2025).

    **Who decides and who is affected.** The card's issuer decides. The people whose own payments are stopped are
    affected: a customer who fails an authentication does not get the purchase (``fair_outcome`` 0). You can measure how
    much more often this happens to customers of one continent than of another: apply statistical parity, predictive
    equality or equal opportunity to ``fair_action`` and ``fair_outcome``. With the update on, ``lost`` in the state
    counts the customers who left. Frauds harm the owners of stolen cards, who leave when they learn of a fraud.

    **Sensitive attribute and legitimate factors.** ``continent`` of the country in which a card is used: EU, AS, NA,
    AF, OC, SA; groups are the same. Country and card reveal it too. Legitimate factor: the ``merchant``, or by
    parameter the ``amount`` in bands. About 6 % of the transactions from Europe are frauds and 15 % of those from North
    America; with the published dynamics 9 and 22 %.

    **Action space.** ``Discrete(2)``: 0 let it pass (ignore), 1 authenticate. 0 is the favourable decision.

    **Observation space.** ``Box`` of 12 numbers: the customers' mean satisfaction; the share of frauds among the
    transactions with revealed labels; then the current transaction, with times on the payer's local clock: month / 11
    and day / 30 (counted from 1, so up to 12/11 and 31/30), weekday / 6 (Monday 0), hour / 23, card number / 10,000,
    merchant / 6, country / 124, continent / 5, amount / 8000, currency / 4. Countries are numbered in the tables'
    order, cards from 0 in the order of their first use. After the last transaction the ten numbers are 0.

    **Rewards.** 1 for a genuine payment that goes through, -1 for a fraud that goes through, 0 for a stopped
    transaction. ``reward="money"``: 0.003 of the amount plus 0.01 for a genuine payment, minus the amount for a fraud.
    ``reward_bias`` adds 0.1 for genuine payments from Europe that go through (``"europe"``), or only for those at
    merchant 0.

    **Interactions.** One individual per step, numbered by the step. ``fair_action`` is the action, ``fair_feedback`` is
    1 for a fraud (1 is then the correct decision), ``fair_outcome`` is 1 if a genuine payment went through and 0
    otherwise; frauds have 0 in either case. ``fair_features`` are the ten numbers of the transaction. ``feedback``:
    ``"full"``; ``"accepted"``, which reveals the labels only of transactions that were let through; ``"delayed"`` by
    ``delay`` transactions; ``"none"``. Labels that are not revealed by the end of the episode are never revealed.

    **Starting state.** 100 customers and 10 fraudsters, with countries and currencies drawn from the tables. Each has
    an individual rate, profile of hours, weekdays, days and months, and patience. The clock is at the first hour with a
    transaction.

    **Order of an hour.** Of the customers who learned of a fraud with their card, all but 9.7 % leave. Each agent makes
    a transaction with a probability given by rate, profile and satisfaction, at most one, in random order; each is
    decided on in turn. With probability 0.33 a fraudster uses the card (and country and currency) of a customer who has
    one. Authentication succeeds with probability 0.8 patience + 0.2 amount / largest amount at the merchant. Then the
    customer's satisfaction is multiplied by a factor (0.95 if cancelled, 0.99 if authenticated, 1.01 if not asked).
    Customers stay with probability 0.9 times the satisfaction, fraudsters with 0.6. At the end of the hour newcomers
    join, fewer if the customers are less satisfied.

    **Episode end.** Termination after ``hours`` hours: the week is over and no decisions are left. Truncation after
    ``horizon`` transactions, the only limit on steps. By default a week has about 450 to 530 transactions, depending on
    the decisions; with the published dynamics 976 on average without the horizon (956 in the published code, 949 with
    its tables). If an episode has no transaction at all, its only step decides on nothing (``fair_action`` -1).

    **Tables.** ``tables`` is a path to a JSON file or its content: shares by hour, weekday, day and month;
    countries with continent, time zone, shares and currencies; merchants by currency; histograms of amounts. The
    layout is that of ``fair_envs/envs/fraud/data/tables.json``. `fair_envs.envs.fraud.moments` makes the default tables
    from published moments of the real input, which is not part of this package. That module states which numbers are
    published and which are chosen. Probabilities of staying are parameters and not in the tables.

    **Clocks.** A country has one time zone, the first that the tz database lists. An episode keeps the offsets of its
    first hour: it needs no network, and clocks do not change during an episode. A payment has the local time of the
    payer. A thief takes over the victim's country with the card, during the payment. The first payment with a stolen
    card therefore shows the victim's country and the thief's own local time; later ones show the victim's country and
    time. Other weeks of 2016: ``first_day``. The seasonal activity of fraudsters is 0 from December to February.
    January's frauds come from the noise in personal profiles: they are 10 % of the transactions, although half of the
    yearly transactions are by fraudsters. Other months have far more.

    **Randomness.** Each random number belongs to a person and an hour. In a counterfactual episode all people have the
    same random numbers, no matter who has left; only the choice of the card that a fraudster steals depends on who is
    present. There is a place for every agent that can join, rounded up to a power of two, so no agent is turned away.

    **Counterfactual attribute.** `assign` moves the current transaction to another continent. Its country becomes the
    one with the most payments there; everything else stays the same.

    **Arguments.** ``tables``, and the fields of `FraudParams`, each with its default and source. ``profile="authors"``
    selects the published code's rules.

    **Differences from the published code**, with the switches that restore its behaviour (together:
    ``profile="authors"``):

    * Transactions have consequences: satisfaction, leaving, corrupted cards. In the code satisfaction stays at 1, no
      customer leaves, and the population grows to about 166 customers and 44 fraudsters:
      ``post_transaction_update=False``.
    * Successful frauds mark the victim's card, as MultiMAuS describes. In its code and the study's they never do
      (same switch). A customer decides once each time they learn of a fraud; a customer who stays keeps the card.
    * Satisfaction starts at 0.9, which the published code sets but does not use: ``initial_satisfaction=1.0``.
    * The bias is paid for genuine payments that go through. The code adds it regardless of the decision and the
      outcome. It is then a constant for each transaction and cannot change any preference between decisions:
      ``reward_bias_on="always"``.
    * The bank's midnight is that of US Pacific time. In the code it is 7 min earlier, by a mistake with the time zone:
      ``clock="local_mean"``.
    * The observed share of frauds is computed from revealed labels. In the code it is the true share, which is the same
      with ``feedback="full"``.
    * Groups are the six named continents. In the code "other" is every continent but North America. You choose the
      groups in the notion, not in this environment.

    **Returns of simple policies** (mean of 300 episodes, default tables): never authenticate 448, always 295, at random
    361, only frauds 496. With ``profile="authors"`` 765, 618, 692 and 865 (published code: 769, 611, 682, 858). The
    study reports 906 as the largest return. It is not an upper bound: the most that an episode can earn is its number
    of genuine payments, which varies from episode to episode.

    **References.** A. Cimpean et al., "Fairness-Aware Reinforcement Learning (FAReL): A Framework for Transparent
    and Balanced Sequential Decision-Making", arXiv 2509.22232, 2025. L. M. Zintgraf et al., "MultiMAuS: A
    Multi-Modal Authentication Simulator for Fraud Detection Research", 2017.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "fraud"
    drawn_by: ClassVar[str] = "fair_envs.envs.fraud.render:FraudRenderer"
    policies: ClassVar[Mapping[str, str]] = {
        "always": "fair_envs.evaluation.deciders:Always",
        "never": "fair_envs.evaluation.deciders:Never",
        "correct": "fair_envs.evaluation.deciders:Correct",
        "random-rate": "fair_envs.evaluation.deciders:RandomRate",
        "above-amount": "fair_envs.envs.fraud.policies:AboveAmount",
    }
    Params: ClassVar[type] = FraudParams
    presets = PROFILES
    fps = 4
    sensitive_features: ClassVar[tuple[str, ...]] = SENSITIVE
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def __init__(self, *, tables: Source = None, **given: Any) -> None:
        self.tables: Tables = load(tables)
        super().__init__(**given)

    def check(self, params: FraudParams) -> None:
        """Raise ValueError if the episode extends beyond the year, or if too many people can join at once."""
        left = 24 * (DAYS_OF_YEAR + 1 - params.first_day)
        if params.hours > left:
            raise ValueError(f"hours must be at most {left}, the hours left in {YEAR}, got {params.hours}")
        most = largest_arrivals(world_of(self.tables, params)).max()
        if most > MOST_AT_ONCE:
            raise ValueError(
                f"transactions_per_year must be so small that at most {MOST_AT_ONCE} people of a kind can join in an "
                f"hour, got {params.transactions_per_year:g}, with which {most} can"
            )

    def encoded(self, params: FraudParams) -> Any:
        """Return the parameters as numbers, and the tables, in one record."""
        return world_of(self.tables, params)

    def lane(self, params: FraudParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        agents = largest_population(self.code)
        days = self.code["calendar"].shape[1]
        return [
            # Customers and fraudsters, in the order in which they joined; the first `agents` entries are in use
            ("person", np.uint32, agents),  # index of the random numbers
            ("kind", np.int8, agents),  # GENUINE or FRAUDSTER
            ("here", np.int8, agents),  # 0: has left for good
            ("corrupted", np.int8, agents),  # 1: the card was used in a fraud that was not stopped
            ("country", np.int16, agents),
            ("currency", np.int16, agents),
            ("card", np.int32, agents),  # -1: none yet
            ("owner", np.int32, agents),  # the agent whose card a fraudster uses; -1: none
            ("patience", np.float64, agents),
            ("satisfaction", np.float64, agents),  # 1 for fraudsters
            ("hours_ahead", np.int8, agents),  # of the local clock, see `hours_ahead`
            ("by_hour", np.float32, (agents, 24)),  # activity in the hours of a day; 1 is the average
            ("by_day", np.float32, (agents, days)),  # payments per hour on the dates of the calendar
            ("next_agent", np.int32, agents),  # the next agent on the same hour's list; 0: none, i + 1: agent i
            ("scratch", np.float64, ENTRIES),
            ("first_agent", np.int32, params.hours),  # first agent on each hour's list; 0: none, i + 1: agent i
            # Agents with a transaction in this hour, in the order of their turns
            ("queue", np.int32, agents),
            ("priority", np.uint32, agents),
            ("queued", np.int32),
            ("served", np.int32),
            # The bank
            ("to_hear_of_fraud", np.int32),  # frauds with customers' cards that the customers learn of at the next hour
            ("agents", np.int32),  # number of agents who have joined
            ("customers", np.int32),  # number of customers who are present
            ("lost", np.int32),  # customers who have left
            ("cards", np.int32),  # number of the next card
            ("hour", np.int32),  # since the start
            ("satisfaction_sum", np.float64),  # sum over the customers who are present
            ("known", np.int32),  # number of transactions with revealed labels
            ("known_frauds", np.int32),
            # The current transaction
            ("waiting", np.int8),  # 0: there is no transaction, the last hour is over
            ("fraud", np.int8),  # the label
            ("agent", np.int32),  # the agent who makes it
            ("month", np.int8),  # of the customer's local date; January is 1
            ("day", np.int8),  # the first is 1
            ("weekday", np.int8),  # Monday is 0
            ("hour_now", np.int8),  # local
            ("card_now", np.int32),
            ("merchant_now", np.int16),
            ("country_now", np.int16),
            ("continent_now", np.int8),
            ("currency_now", np.int16),
            ("amount_now", np.float64),
            # For the picture
            ("outcomes", np.int32, (len(CONTINENTS), len(OUTCOMES))),  # counts
            ("recent_outcome", np.int8, RECENT),  # of transaction t at t % RECENT
            ("recent_continent", np.int8, RECENT),
            *fields(params),
        ]

    def fair_spec(self, params: FraudParams) -> FairSpec:
        """Return who is affected: the agent who makes the transaction."""
        factors = {"merchant": tuple(map(str, range(len(self.tables.largest)))), "amount": bands()}
        return FairSpec(
            individuals=1,
            actions=2,
            features=PERSONAL_FEATURES,
            nominal_features=NOMINAL,
            sensitive_features=SENSITIVE,
            sensitive={"continent": CONTINENTS},
            legitimate={params.legitimate: factors[params.legitimate]},
            groups=CONTINENTS,
            favourable_action=IGNORE,
            feedback=params.feedback,
            delay=params.delay if params.feedback == "delayed" else 0,
        )

    def observation_space(self, params: FraudParams) -> gym.spaces.Box:
        """Return the bounds of the twelve numbers."""
        known, cards = self.tables, largest_population(self.code)
        largest = [12, 31, 6, 23, cards, len(known.largest) - 1, len(known.countries) - 1, len(CONTINENTS) - 1]
        largest += [known.largest.max(), len(known.currencies) - 1]
        high = np.maximum(1.0, np.array(largest) / SCALE)
        return gym.spaces.Box(np.zeros(12, np.float32), np.append([1.0, 1.0], high).astype(np.float32))

    def observed_features(self, params: FraudParams) -> tuple[str, ...]:
        """Return the names of the twelve numbers."""
        return OBSERVED

    def action_space(self, params: FraudParams) -> gym.spaces.Discrete:
        """Return ignore and authenticate."""
        return gym.spaces.Discrete(2)

    def assign(self, records: NDArray[np.void], attribute: str, code: int) -> None:
        """Move the current transactions to that continent; the country follows, all else stays equal.

        A country belongs to one continent. A transaction that changes its continent therefore moves to another country,
        the one of the new continent with the most payments. Transactions of that continent keep their country.

        Raises:
            ValueError: The attribute is not ``"continent"``, or the code is invalid.
        """
        if attribute != "continent":
            raise ValueError(f"attribute must be 'continent', got {attribute!r}")
        if not isinstance(code, (int, np.integer)) or not 0 <= code < len(CONTINENTS):
            raise ValueError(f"code must be between 0 and {len(CONTINENTS) - 1}, got {code!r}")
        inside = np.flatnonzero(self.tables.continent == code)
        if not inside.size:
            raise ValueError(f"code must be of a continent that the tables have, got {code} ({CONTINENTS[code]})")
        moved = (records["continent_now"] != code) & (records["waiting"] == 1)
        records["country_now"][moved] = inside[np.argmax(self.tables.country_share[GENUINE, inside])]
        records["continent_now"][moved] = code

    def oracle(self, records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Return whether the current transactions are frauds: ``"feedback"``, shape (B, 1); -1 if there is none."""
        fraud = np.where(records["waiting"] == 1, records["fraud"], -1)
        return {"feedback": fraud.astype(np.int64)[:, np.newaxis]}


def world_of(known: Tables, params: FraudParams) -> NDArray[np.void]:
    """Return all that compiled rules look up, as one record, shape (1,): parameters as numbers, and the tables."""
    ahead = hours_ahead(known, params)
    dates = calendar(params.first_day, 1 + (params.hours - 1 + max(24, int(ahead.max()))) // 24)
    return record_of(
        {
            "continent": known.continent,  # (C,)
            "country": known.country,  # (2, C) cumulative, as the next three
            "currency": known.currency,  # (2, C, K)
            "merchant": known.merchant,  # (2, K, M)
            "bins": known.bins,  # (2, M, BINS)
            "lowest": known.lowest,  # (2, M)
            "width": known.width,  # (2, M)
            "largest": known.largest,  # (M,)
            "can_be_stolen": can_be_stolen(known),  # (C, K)
            "profile_mean": known.profile,  # (2, ENTRIES)
            "profile_spread": profile_spread(params.noise_level),  # (ENTRIES,)
            "is_needed": needed_blocks(dates),  # (ENTRIES // BLOCK,) 0 or 1
            "hours_ahead": ahead,  # (C,)
            "calendar": dates,  # (days, 3) month, day of the month, weekday, all from 0
            **encode(params)._asdict(),
        }
    )


def hours_ahead(known: Tables, params: FraudParams) -> Ints:
    """Return the hours from the calendar's first midnight to the episode's first hour, in each country: shape (C,).

    The calendar begins a day early, for countries west of the bank. The offsets are those at the episode's first hour.
    """
    midnight = (params.first_day - 1) * 24 * 60
    behind = -offset(BANK_ZONE, midnight + 8 * 60) if params.clock == "pacific" else LOCAL_MEAN_TIME
    ahead = np.array([offset(zone, midnight + behind) for zone in known.zones])
    return (24 * 60 + behind + ahead) // 60


def profile_spread(noise_level: float) -> Floats:
    """Return the standard deviations of personal profiles, shape (ENTRIES,)."""
    spread = np.zeros(ENTRIES)
    for first, count, divisor in SPREADS:
        spread[first : first + count] = np.sqrt(noise_level / divisor)
    return spread


def can_be_stolen(known: Tables) -> NDArray[np.int8]:
    """Return whether fraudsters use cards of a country and currency, shape (C, K).

    They do where frauds occur, provided that every merchant that fraudsters can choose for the currency has amounts.
    """
    countries, merchants = known.country_share[FRAUDSTER] > 0, known.merchant[FRAUDSTER]
    chosen = np.diff(merchants, axis=-1, prepend=0.0) > 0
    without_amounts = ~known.bins[FRAUDSTER].any(axis=-1)
    currencies = chosen.any(axis=-1) & ~(chosen & without_amounts).any(axis=-1)
    return np.outer(countries, currencies).astype(np.int8)


def needed_blocks(dates: Ints) -> NDArray[np.int8]:
    """Return which blocks of profile entries these dates need, shape (ENTRIES // BLOCK,)."""
    months, monthdays, weekdays = dates.T
    entries = [HOURS + np.arange(24), WEEKDAYS + weekdays, MONTHDAYS + monthdays, MONTHS + months]
    needed = np.zeros(ENTRIES // BLOCK, np.int8)
    needed[np.concatenate(entries) // BLOCK] = 1
    return needed


def largest_population(world: NDArray[np.void]) -> int:
    """Return an upper bound of the number of agents in an episode, rounded up to a power of two.

    Rules are compiled for every size of a lane. Due to the rounding, most episodes that differ only in parameters share
    one.
    """
    total = int(world["customers"][0] + world["fraudsters"][0] + largest_arrivals(world).sum())
    return 1 << (total - 1).bit_length()


def largest_arrivals(world: NDArray[np.void]) -> Ints:
    """Return the most newcomers of each kind in each hour of an episode, shape (2, hours).

    If one or fewer are expected, at most one joins; otherwise the expected number plus a normal number.
    """
    own = world.view(np.recarray)[0]
    months = own.calendar[1 + np.arange(own.hours) // 24, 0]
    shares = own.profile_mean[:, MONTHS + months]
    expected = np.array([expected_newcomers(own, kind, shares[kind]) for kind in (GENUINE, FRAUDSTER)])
    return np.where(expected <= 1, 1, (expected + LARGEST_NORMAL + 1).astype(np.int64))


def bands() -> tuple[str, ...]:
    """Return the names of the bands of amounts."""
    edges = [f"{edge:g}" for edge in AMOUNT_BANDS]
    between = (f"{low} to {high}" for low, high in pairwise(edges))
    return (f"below {edges[0]}", *between, f"{edges[-1]} and more")
