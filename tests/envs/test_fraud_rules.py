"""What becomes of a transaction, one rule at a time."""

import copy
import pickle
from datetime import datetime, timedelta
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import fair_envs
from fair_envs.core import Lanes
from fair_envs.core.randomness import normal_of, random_words
from fair_envs.envs.fraud import parallel_env
from fair_envs.envs.fraud.people import PERSON, hourly_rate
from fair_envs.envs.fraud.rules import Fraud, find_victim, hours_ahead, largest_population, take_card
from fair_envs.envs.fraud.tables import calendar, offset
from tests.envs.fraud_scenes import CUSTOMER, EU, FRAUDSTER, NA, ask, decide, play, scene, take_from_lists
from tests.helpers import assert_same, uncompiled

IGNORE, AUTHENTICATE = 0, 1


def world_of(rules: Any) -> Any:
    """Return what compiled rules look up, for rules called from Python."""
    return rules.code.view(np.recarray)[0]


SURE = {"patience": 1.0}  # with patience_weight 1: gets through
HOPELESS = {"patience": 0.0}


# ---------------------------------------------------------------------------------------------------- rewards


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("fraud", "action", "patience", "reward", "outcome"),
    [
        (False, IGNORE, 0.0, 1, 1),
        (False, AUTHENTICATE, 1.0, 1, 1),
        (False, AUTHENTICATE, 0.0, 0, 0),
        (True, IGNORE, 1.0, -1, 0),
        (True, AUTHENTICATE, 1.0, 0, 0),
    ],
)
def test_shaped_rewards_and_benefits(fraud: bool, action: int, patience: float, reward: float, outcome: int) -> None:
    batch = scene(fraud=fraud, transaction={"patience": patience}, patience_weight=1.0)
    played = decide(batch, action)
    assert played.reward[0, 0] == reward
    facts = played.facts[0]
    assert (facts["action"][0], facts["feedback"][0], facts["outcome"][0]) == (action, fraud, outcome)


@pytest.mark.parametrize(
    ("fraud", "action", "reward"),
    [(False, IGNORE, 0.16), (True, IGNORE, -50), (True, AUTHENTICATE, 0), (False, AUTHENTICATE, 0.16)],
)
def test_rewards_in_money_for_50(fraud: bool, action: int, reward: float) -> None:
    batch = scene(fraud=fraud, transaction={"amount_now": 50.0, **SURE}, patience_weight=1.0, reward="money")
    assert decide(batch, action).reward[0, 0] == pytest.approx(reward)


@pytest.mark.parametrize(
    ("fraud", "action", "patience", "always", "on_success"),
    [
        (True, IGNORE, 1, -0.9, -1),
        (True, AUTHENTICATE, 1, 0.1, 0),
        (False, IGNORE, 1, 1.1, 1.1),
        (False, AUTHENTICATE, 0, 0.1, 0),
    ],
)
def test_the_bias_towards_europe(fraud: bool, action: int, patience: float, always: float, on_success: float) -> None:
    for reward_bias_on, reward in (("always", always), ("success", on_success)):
        given: dict[str, Any] = {"reward_bias": "europe", "reward_bias_on": reward_bias_on, "patience_weight": 1.0}
        batch = scene(fraud=fraud, transaction={"continent_now": EU, "patience": patience}, **given)
        assert decide(batch, action).reward[0, 0] == pytest.approx(reward)
        batch = scene(fraud=fraud, transaction={"continent_now": NA, "patience": patience}, **given)
        assert decide(batch, action).reward[0, 0] == round(on_success)


@pytest.mark.parametrize(("merchant", "reward"), [(0, 1.1), (1, 1.0)])
def test_the_bias_towards_europe_and_a_merchant(merchant: int, reward: float) -> None:
    batch = scene(transaction={"continent_now": EU, "merchant_now": merchant}, reward_bias="europe_merchant_0")
    assert decide(batch, IGNORE).reward[0, 0] == pytest.approx(reward)


def test_the_published_bias_is_the_same_for_every_decision() -> None:
    """So it cannot change which decision is better; on success it can."""
    for reward_bias_on, changes in (("always", False), ("success", True)):
        rewards = np.zeros((2, 2))
        for biased in (0, 1):
            for action in (IGNORE, AUTHENTICATE):
                given: dict[str, Any] = {
                    "reward_bias": "europe" if biased else "none",
                    "reward_bias_on": reward_bias_on,
                    "patience_weight": 1.0,
                }
                batch = scene(transaction={"continent_now": EU, **HOPELESS}, **given)
                rewards[biased, action] = decide(batch, action).reward[0, 0]
        preference = rewards[:, IGNORE] - rewards[:, AUTHENTICATE]
        assert (preference[0] != pytest.approx(preference[1])) == changes


def test_authentication_weighs_patience_and_the_amount() -> None:
    """With patience 0 a customer succeeds in a fifth of the payments of the largest amount; 69 at merchant 0."""
    batch = scene(lanes=4000)
    for amount, expected in ((69.0, 0.2), (34.5, 0.1)):
        ask(batch, transaction={"merchant_now": 0, "amount_now": amount, **HOPELESS})
        passed = decide(batch, AUTHENTICATE).facts["outcome"].mean()
        assert passed == pytest.approx(expected, abs=0.02)


# ------------------------------------------------------------------------------------- what transactions do


@pytest.mark.parametrize(
    ("action", "patience", "satisfaction"),
    [(IGNORE, 0.0, 0.505), (AUTHENTICATE, 1.0, 0.495), (AUTHENTICATE, 0.0, 0.475)],
)
def test_satisfaction_follows_the_outcome(action: int, patience: float, satisfaction: float) -> None:
    batch = scene(transaction={"patience": patience, "satisfaction": 0.5}, patience_weight=1.0)
    decide(batch, action)
    assert batch.records["satisfaction"][0, CUSTOMER] == pytest.approx(satisfaction)


def test_satisfaction_stays_at_most_1() -> None:
    batch = scene(transaction={"satisfaction": 1.0})
    decide(batch, IGNORE)
    assert batch.records["satisfaction"][0, CUSTOMER] == 1


def test_without_the_update_nothing_follows_from_a_transaction() -> None:
    batch = scene(transaction=HOPELESS, lanes=50, post_transaction_update=False, initial_satisfaction=1.0)
    assert (decide(batch, AUTHENTICATE).observation[:, 0, 0] == 1).all()
    assert (batch.records["satisfaction"][:, CUSTOMER] == 1).all()
    assert (batch.records["here"][:, CUSTOMER] == 1).all()


@pytest.mark.parametrize(("fraud", "stays"), [(False, 0.9 * 0.5 * 1.01), (True, 0.6)])
def test_who_stays_after_a_transaction(fraud: bool, stays: float) -> None:
    batch = scene(fraud=fraud, lanes=4000, transaction={} if fraud else {"satisfaction": 0.5})
    decide(batch, IGNORE)
    agent = FRAUDSTER if fraud else CUSTOMER
    assert batch.records["here"][:, agent].mean() == pytest.approx(stays, abs=0.03)


@uncompiled
def test_who_has_left_makes_no_more_transactions() -> None:
    batch = scene(customer_stays=0.0)
    decide(batch, IGNORE)
    records = batch.records
    assert (records["here"][0, CUSTOMER], records["lost"][0]) == (0, 1)
    for _ in range(100):
        assert records["agent"][0] != CUSTOMER
        decide(batch, IGNORE)


def test_a_customer_hears_of_a_fraud_at_the_next_hour() -> None:
    """Of those whose card was used in a fraud that went through, 9.664 % stay."""
    for action, expected in ((IGNORE, 0.09664), (AUTHENTICATE, 1.0)):
        batch = scene(fraud=True, lanes=4000, transaction={"owner": 5})
        hour = batch.records["hour"].copy()
        decide(batch, action)
        assert (batch.records["hour"] > hour).all()
        stays = batch.records["here"][:, 5].mean()
        assert stays == pytest.approx(expected, abs=0.02)
        assert not batch.records["corrupted"][:, 5].any()


def test_a_stolen_card_brings_its_country_and_currency() -> None:
    stolen = 0

    def look(records: Any, going: Any) -> None:
        nonlocal stolen
        thieves = records[going & (records["waiting"] == 1) & (records["fraud"] == 1)]
        for lane in thieves:
            owner = lane["owner"][lane["agent"]]
            if owner >= 0:
                stolen += 1
                assert lane["kind"][owner] == 0
                assert lane["card_now"] == lane["card"][owner]
                assert lane["country_now"] == lane["country"][owner]
                assert lane["currency_now"] == lane["currency"][owner]

    play("never", lanes=10, profile="authors", each=look)
    assert stolen > 20


def test_each_card_that_can_be_stolen_is_as_likely() -> None:
    """Those of customers who are here, have used a card, and live and pay where frauds happen."""
    batch = Lanes(Fraud(customers=8, fraudsters=1, steal_probability=0.4, transactions_per_year=0.0), 900)
    batch.seed(0)
    batch.restart()
    tables, thief = batch.rules.tables, 8  # type: ignore[attr-defined]
    records = batch.records
    records["card"][:, :8] = np.arange(8)
    records["country"][:, :8], records["currency"][:, :8] = tables.countries.index("FR"), tables.currencies.index("EUR")
    records["card"][:, 0] = -1
    records["here"][:, 2] = 0
    records["country"][:, 4] = tables.countries.index("ES")  # without frauds
    records["currency"][:, 6] = tables.currencies.index("NOK")  # without frauds
    for lane in records.view(np.recarray):
        take_card(lane, world_of(batch.rules), thief)
    owners, counts = np.unique(records["owner"][:, thief], return_counts=True)
    assert owners.tolist() == [-1, 1, 3, 5, 7]
    expected = 900 * np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    assert np.abs(counts - expected).max() < 4 * np.sqrt(900 * 0.6 * 0.4) and np.abs(counts[1:] - 90).max() < 36
    stolen = records[records["owner"][:, thief] >= 0]
    assert (stolen["country"][:, thief] == tables.countries.index("FR")).all()


def test_cards_are_numbered_by_first_use() -> None:
    records = play("never", lanes=3, profile="authors", steal_probability=0.0).records
    for lane in records:
        cards = lane["card"][: lane["agents"]]
        assert np.sort(cards[cards >= 0]).tolist() == list(range(lane["cards"]))


# ------------------------------------------------------------------------------------------------ the record


def example(**parameters: Any) -> Lanes:
    """Return a lane with a known transaction: Tuesday 5 January, 14 h, card 37, merchant 3, US, 25.0 USD."""
    values: dict[str, Any] = {
        "month": 1,
        "day": 5,
        "weekday": 1,
        "hour_now": 14,
        "card_now": 37,
        "merchant_now": 3,
        "country_now": 118,
    }
    values |= {"continent_now": NA, "amount_now": 25.0, "currency_now": 0, "known": 10, "known_frauds": 1}
    batch = scene(transaction=values, **parameters)
    batch.records["satisfaction_sum"] = batch.records["customers"]
    return batch


@pytest.mark.nojit
def test_the_observation_of_a_known_transaction() -> None:
    expected = [1, 0.1, 0.090909, 0.166667, 0.166667, 0.608696, 0.0037, 0.5, 0.951613, 0.4, 0.003125, 0]
    batch = example()
    assert batch.observe()[0, 0] == pytest.approx(expected, abs=1e-6)
    facts = decide(batch, IGNORE).facts[0]
    assert facts["features"][0] == pytest.approx(expected[2:], abs=1e-6)
    assert (facts["individual"][0], facts["sensitive"][0, 0], facts["group"][0]) == (0, NA, NA)
    assert facts["legitimate"][0, 0] == 3


@pytest.mark.parametrize(("amount", "band"), [(9.99, 0), (10.0, 1), (49.0, 1), (50.0, 2), (250.0, 3), (7000.0, 3)])
def test_bands_of_amounts_as_the_legitimate_factor(amount: float, band: int) -> None:
    batch = scene(transaction={"amount_now": amount}, legitimate="amount")
    assert decide(batch, IGNORE).facts["legitimate"][0, 0, 0] == band
    assert batch.rules.spec.legitimate["amount"] == ("below 10", "10 to 50", "50 to 250", "250 and more")


def test_the_info_of_a_step_is_about_the_transaction_decided_on() -> None:
    env = gym.make("FairFraud-v0")
    seen, _ = env.reset(seed=3)
    for step in range(50):
        now, _, _, _, info = env.step(step % 2)
        assert info["fair_individual"] == step
        assert info["fair_features"].tolist() == seen[2:].tolist()
        assert info["fair_action"] == step % 2
        seen = now


def test_the_oracle_is_always_right() -> None:
    env: Any = gym.make_vec("FairFraud-v0", num_envs=4)
    env.reset(seed=0)
    right = 0
    for _ in range(300):
        action = env.oracle()["feedback"][:, 0]
        assert set(action.tolist()) <= {0, 1}
        info = env.step(action)[-1]
        right += int((info["fair_action"] == info["fair_feedback"]).sum())
    assert right == 1200


def test_feedback_on_the_accepted_is_told_about_payments_that_were_let_through() -> None:
    for action, told in ((IGNORE, 1), (AUTHENTICATE, -1)):
        batch = scene(fraud=True, feedback="accepted")
        played = decide(batch, action)
        assert played.facts["feedback"][0, 0] == told
        known = int(action == IGNORE)
        assert (batch.records["known"][0], batch.records["known_frauds"][0]) == (known, known)


@uncompiled
def test_the_observed_share_of_frauds_counts_what_was_revealed() -> None:
    for feedback, share in (("full", 1.0), ("none", 0.0), ("accepted", 1.0), ("delayed", 0.0)):
        batch = scene(fraud=True, feedback=feedback)
        assert decide(batch, IGNORE).observation[0, 0, 1] == share
    batch = scene(fraud=True, feedback="delayed", delay=1)
    decide(batch, IGNORE)
    assert decide(batch, IGNORE).observation[0, 0, 1] == 1


# -------------------------------------------------------------------------------------- another continent


def test_assigning_a_continent_moves_the_country_too_and_nothing_else() -> None:
    batch = example()
    before = batch.snapshot()
    batch.rules.assign(batch.records, "continent", EU)
    record = batch.records[0]
    assert batch.rules.tables.countries[record["country_now"]] == "FR"  # type: ignore[attr-defined]
    assert record["continent_now"] == EU
    changed = [name for name in before.dtype.names or () if not np.array_equal(before[name], batch.records[name])]
    assert changed == ["country_now", "continent_now"]


def test_assigning_the_same_continent_changes_nothing() -> None:
    batch = example()
    before = batch.snapshot()
    batch.rules.assign(batch.records, "continent", NA)
    assert_same(batch.snapshot(), before)


@pytest.mark.parametrize(
    ("attribute", "code"), [("gender", 0), ("continent", 6), ("continent", -1), ("continent", 1.5)]
)
def test_assigning_what_does_not_exist_is_refused(attribute: str, code: Any) -> None:
    batch = example()
    with pytest.raises(ValueError, match=r"(attribute|code) must be .* got"):
        batch.rules.assign(batch.records, attribute, code)


# ------------------------------------------------------------------------------------------- clocks and ends


@pytest.mark.parametrize(
    ("country", "first_day", "clock", "hours"),
    [
        ("FR", 1, "pacific", 24 + 9),  # midnight in Los Angeles
        ("US", 1, "pacific", 24 + 3),  # New York
        ("NZ", 1, "pacific", 24 + 21),  # summer there
        ("IN", 1, "pacific", 24 + 13),  # half past
        ("CK", 1, "pacific", 22),  # still the day before
        ("FR", 1, "local_mean", 24 + 8),  # 7:53 UTC
        ("FR", 183, "pacific", 24 + 9),  # both in summer time
        ("IS", 183, "pacific", 24 + 7),  # no summer time
        ("US", 75, "pacific", 24 + 3),  # after the change of clocks on 13 March
        ("FR", 75, "pacific", 24 + 8),  # before the change in Europe
    ],
)
def test_local_clocks(country: str, first_day: int, clock: str, hours: int) -> None:
    rules = Fraud(first_day=first_day, clock=clock)
    where = rules.tables.countries.index(country)
    assert hours_ahead(rules.tables, rules.params)[where] == hours


def test_transactions_show_the_clock_of_who_pays() -> None:
    """The dates of a payment are those at the country in which the payer lives when it begins.

    So a thief's first payment with a stolen card shows the thief's own clock beside the victim's country.
    """
    given: dict[str, Any] = {"first_day": 88, "profile": "authors", "steal_probability": 1.0, "horizon": 100_000}
    tables = Fraud().tables
    lived: dict[int, NDArray[np.int16]] = {}  # by lane: where everybody lived before the payment
    shown, others = np.zeros(2, int), 0  # genuine payments and frauds; frauds on another clock than their country's

    def look(records: Any, going: Any) -> None:
        nonlocal others
        for b in np.flatnonzero(going).tolist():
            lane = records[b]
            fraud, agent = int(lane["fraud"]), int(lane["agent"])
            if b in lived and agent < len(lived[b]):  # joined before the last payment
                home, hour = lived[b][agent], int(lane["hour"])
                there, here = (
                    local_time(tables.zones[c], first_day=88, hour=hour) for c in (home, lane["country_now"])
                )
                seen = tuple(int(lane[name]) for name in ("month", "day", "weekday", "hour_now"))
                assert seen == (there.month, there.day, there.weekday(), there.hour)
                shown[fraud] += 1
                others += seen != (here.month, here.day, here.weekday(), here.hour)
            lived[b] = lane["country"][: lane["agents"]].copy()

    play("never", lanes=3, each=look, **given)
    assert (shown > 150).all() and others > 5


def local_time(zone: str, *, first_day: int, hour: int) -> datetime:
    """Return the time on the clocks of a zone, so many hours after the bank's midnight at a day's begin."""
    minute = 24 * 60 * (first_day - 1)
    behind = 7 * 60 + 53  # published: local mean time
    minutes = behind + offset(zone, minute + behind) + 60 * hour
    return datetime(2016, 1, 1) + timedelta(minutes=minute + minutes)


def test_the_calendar_begins_the_day_before() -> None:
    assert calendar(1, 3).tolist() == [[11, 30, 3], [0, 0, 4], [0, 1, 5]]  # 31 December 2015 was a Thursday
    assert calendar(61, 2).tolist() == [[1, 28, 0], [2, 0, 1]]  # 29 February


def test_a_week_has_168_hours_and_ends_in_termination() -> None:
    batch = Lanes(Fraud(horizon=100_000), 4)
    batch.seed(0)
    batch.restart()
    over = np.zeros(4, bool)
    while not over.all():
        assert (batch.records["hour"][~over] < 168).all()
        played = batch.advance(np.zeros((4, 1), int), mask=~over)
        assert not played.truncated.any()
        over |= played.terminated
        assert (batch.records["waiting"] == ~over).all()
        assert (played.observation[over & played.terminated][:, 0, 2:] == 0).all()
    assert (batch.records["hour"] == 168).all()
    assert (batch.rules.oracle(batch.records)["feedback"] == -1).all()


@pytest.mark.nojit
def test_a_week_without_transactions_decides_on_nobody() -> None:
    env = gym.make("FairFraud-v0", transactions_per_year=0.0)
    seen, _ = env.reset(seed=0)
    assert not seen[1:].any()
    _, reward, terminated, truncated, info = env.step(1)
    assert (reward, terminated, truncated) == (0, True, False)
    assert (info["fair_action"], info["fair_individual"], info["fair_group"]) == (-1, -1, -1)


def test_hours_beyond_the_year_are_refused() -> None:
    assert Fraud(first_day=360, hours=168).params.hours == 168
    with pytest.raises(ValueError, match="hours must be at most 144, the hours left in 2016, got 168"):
        Fraud(first_day=361)


# ------------------------------------------------------------------------------------------------------- luck


def test_twins_meet_the_same_luck_however_differently_they_decide() -> None:
    """Who pays in both worlds in an hour, pays the same amount at the same merchant; so do newcomers of an hour."""
    worlds = []
    for policy in ("never", "always"):
        paid: dict[tuple[int, int], tuple[int, float]] = {}

        def look(records: Any, going: Any, paid: dict[tuple[int, int], tuple[int, float]] = paid) -> None:
            lane = records[0]
            if lane["waiting"] and not lane["fraud"]:
                person = int(lane["person"][lane["agent"]])
                paid[person, int(lane["hour"])] = int(lane["merchant_now"]), float(lane["amount_now"])

        play(policy, lanes=1, each=look)
        worlds.append(paid)
    never, always = worlds
    both = never.keys() & always.keys()
    assert len(both) > 150 and never != always
    assert all(never[key] == always[key] for key in both)
    assert any(person >= 2 * (1 << 14) for person, _ in both)  # newcomers are among them


def test_episodes_differ() -> None:
    env = gym.make("FairFraud-v0")
    first, second = env.reset(seed=0)[0], env.reset()[0]
    assert first.tolist() != second.tolist()


# -------------------------------------------------------------------------------------------------- population


@uncompiled
def test_any_of_hundreds_of_customers_can_be_robbed() -> None:
    """More than an integer of eight bits counts, as the table's entries are."""
    rules = Fraud(customers=300, fraudsters=1)
    batch = Lanes(rules, 1)
    batch.seed(0)
    batch.restart()
    lane, world = batch.records.view(np.recarray)[0], world_of(rules)
    lane.card[:300] = 0
    lane.country[:300], lane.currency[:300] = np.argwhere(world.can_be_stolen)[0]
    assert [find_victim(lane, world, where) for where in (0.0, 0.5, 0.999)] == [0, 150, 299]


@pytest.mark.long
def test_there_is_room_for_everybody_who_can_join() -> None:
    """Also where more than one newcomer is expected in an hour."""
    given: dict[str, Any] = {"transactions_per_year": 1e6, "hours": 24, "horizon": 100_000, "profile": "authors"}
    rules = Fraud(**given)
    room = largest_population(rules.code)
    joined = play("never", lanes=30, **given).records["agents"]
    assert joined.max() < room
    customers = 5e5 / 366 / 24 * (0.9 * 12 * 0.062 + 0.1) * 0.1
    frauds = 5e5 / 366 / 24 * 0.1 * 0.4
    assert customers > 1 and frauds > 1
    assert joined.mean() == pytest.approx(110 + 24 * (customers + frauds), rel=0.05)


def test_the_largest_population_is_rounded_up_so_that_settings_share_a_layout() -> None:
    layouts = [Fraud(transactions_per_year=yearly) for yearly in (0.0, 90_357.0, 200_000.0)]
    assert layouts[0].dtype == layouts[1].dtype == layouts[2].dtype
    assert largest_population(layouts[0].code) == 512  # 110 and one of each kind in each of 168 hours: 446
    assert largest_population(Fraud(customers=166, fraudsters=10).code) == 512  # exactly
    assert largest_population(Fraud(customers=167, fraudsters=10).code) == 1024


def test_more_newcomers_in_an_hour_than_have_numbers_are_refused() -> None:
    given: dict[str, Any] = {"fraud_proportion": 0.0, "customer_stays": 0.0, "noise_level": 1.0, "hours": 1}
    Fraud(transactions_per_year=16_300 * 366 * 24.0, **given)
    with pytest.raises(ValueError, match=r"transactions_per_year must be so small that at most 16384 people .*, got"):
        Fraud(transactions_per_year=16_400 * 366 * 24.0, **given)


@pytest.mark.parametrize(
    ("normal", "factor"), [(0.0, 1.0), (1.0, 1.4), (-1.0, 0.6), (2.0, 1.8), (-2.4, 0.04), (-2.5, 1.0), (-4.0, 1.0)]
)
def test_the_rate_varies_between_people_and_stays_above_0(normal: float, factor: float) -> None:
    rules = Fraud(noise_level=0.4, fraud_proportion=0.25, transactions_per_year=87_840.0)
    assert hourly_rate(world_of(rules), 0, normal) == pytest.approx(factor * 7.5 / 100)  # an hour and customer
    assert hourly_rate(world_of(rules), 1, normal) == pytest.approx(factor * 2.5 / 10)


def test_people_have_rates_of_their_own() -> None:
    """Who has a tenth more by the noise of the rate pays a tenth more often, beside the noise of the profile."""
    batch = Lanes(Fraud(), 60)
    batch.seed(0)
    batch.restart()
    rates, activity, world = [], [], world_of(batch.rules)
    for lane in batch.records:
        for agent in range(100):
            word = random_words(lane["key"], 0, PERSON, lane["person"][agent])[2]
            rates.append(hourly_rate(world, 0, normal_of(word)))
            activity.append(lane["by_day"][agent].mean())
    assert np.std(rates) / np.mean(rates) == pytest.approx(0.1, abs=0.005)
    slope = np.polyfit(np.array(rates) / np.mean(rates), np.array(activity) / np.mean(activity), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.2)


def test_those_who_pay_in_an_hour_do_so_in_random_order() -> None:
    three, lanes = [1, 2, 3], 3000
    batch = scene(lanes=lanes, profile="authors")
    for agent in three:
        take_from_lists(batch.records, agent)
    place = np.arange(lanes), batch.records["hour"] + 1
    batch.records["first_agent"][place] = 1 + 1
    batch.records["next_agent"][:, three] = [2 + 1, 3 + 1, 0]
    decide(batch, IGNORE)
    queues = batch.records["queue"][batch.records["queued"] == 3][:, :3]
    orders, counts = np.unique(queues, axis=0, return_counts=True)
    assert len(queues) > 2000 and len(orders) == 6
    assert np.abs(counts / len(queues) - 1 / 6).max() < 4 * np.sqrt(5 / 36 / len(queues))


def test_amounts_are_uniform_inside_their_bins() -> None:
    places: list[float] = []  # in the unit of a bin
    tables = Fraud().tables

    def look(records: Any, going: Any) -> None:
        kind, merchant = records["fraud"][going], records["merchant_now"][going]
        above = (records["amount_now"][going] - tables.lowest[kind, merchant]) / tables.width[kind, merchant]
        places.extend(above.tolist())

    play("never", lanes=30, each=look)
    for first, last in ((0, 1), (1, 3), (3, 20)):
        inside = np.array([place % 1 for place in places if first <= place < last])
        tenths = np.bincount((10 * inside).astype(int), minlength=10) / len(inside)
        assert len(inside) > 1000
        assert np.abs(tenths - 0.1).max() < 4 * np.sqrt(0.09 / len(inside))


def test_agents_pay_as_often_as_their_profiles_say() -> None:
    """Summed over the hours since they joined, also if they are half as satisfied."""
    for satisfaction in (1.0, 0.5):
        count, expected = 0, 0.0

        def look(records: Any, going: Any) -> None:
            nonlocal count
            count += int((going & (records["fraud"] == 0)).sum())

        given: dict[str, Any] = {"post_transaction_update": False, "initial_satisfaction": satisfaction}
        records = play("never", lanes=40, horizon=100_000, each=look, **given).records
        for lane in records:
            for agent in np.flatnonzero(lane["kind"][: lane["agents"]] == 0):
                joined = int(lane["person"][agent]) >> 15
                local = np.arange(joined, 168) + int(lane["hours_ahead"][agent])
                activity = lane["by_hour"][agent, local % 24] * lane["by_day"][agent, local // 24]
                expected += satisfaction * float(activity.sum())
        assert count == pytest.approx(expected, abs=3.5 * np.sqrt(expected))


# ------------------------------------------------------------------------------------------------------ faces


def test_presets_are_overridden_by_what_is_given() -> None:
    params = Fraud(profile="authors", reward_bias_on="success").params
    assert (params.post_transaction_update, params.initial_satisfaction, params.reward_bias_on) == (
        False,
        1.0,
        "success",
    )
    assert Fraud().params.post_transaction_update


def test_copies_of_an_environment_with_own_tables_go_on_alike() -> None:
    from fair_envs.envs.fraud.moments import make_tables

    own = make_tables()
    own["countries"]["FR"][2] = 0.0
    makers: list[Any] = [
        lambda **given: gym.make("FairFraud-v0", **given).unwrapped,
        lambda **given: gym.make_vec("FairFraud-v0", num_envs=2, **given),
        lambda **given: parallel_env(**given),
        lambda **given: fair_envs.make_sb3("FairFraud-v0", n_envs=2, seed=0, **given),
    ]
    for make in makers:
        env = make(tables=own)
        assert env.lanes.rules.tables.country_share[0, env.lanes.rules.tables.countries.index("FR")] == 0
        for copied in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            assert_same(copied.lanes.rules.code, env.lanes.rules.code)
            for one in (env, copied):
                one.lanes.seed(7)
            assert_same(copied.lanes.restart().observation, env.lanes.restart().observation)


def test_what_is_unusual_about_the_spec() -> None:
    spec = Fraud().spec
    assert spec.favourable_action == IGNORE
    assert spec.groups == spec.sensitive["continent"] == ("EU", "AS", "NA", "AF", "OC", "SA")
    assert set(spec.sensitive_features) == {"continent", "country", "card_id"}
    assert set(spec.nominal_features) == {"card_id", "merchant", "country", "continent", "currency"}
