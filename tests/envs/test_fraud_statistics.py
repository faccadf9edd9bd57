"""Weeks of transactions have the published statistics, and policies the returns that the published code gives."""

from typing import Any

import numpy as np
import pytest

from tests.envs.fraud_scenes import EU, NA, Episodes, needs_appendix, play, real_tables

PUBLISHED: dict[str, Any] = {"profile": "authors"}
UNCAPPED: dict[str, Any] = {"horizon": 100_000}
LANES = 200

default_and_real = pytest.mark.parametrize(
    "own", [pytest.param({}, id="default"), pytest.param(None, id="real", marks=needs_appendix)]
)


def published(policy: str, own: dict[str, Any] | None, **more: Any) -> Episodes:
    """Return episodes by the published rules, with the default tables or the real ones."""
    tables = {"tables": real_tables()} if own is None else own
    return play(policy, lanes=LANES, **PUBLISHED, **tables, **more)


@default_and_real
def test_a_week_has_956_transactions_of_which_a_tenth_are_frauds(own: Any) -> None:
    """The mean of many weeks lies within the published 956 ± 50 and 10 ± 3 %."""
    weeks = published("never", own, **UNCAPPED)
    count = weeks.outcomes.sum(axis=(1, 2))
    assert count.mean() == pytest.approx(956, abs=30)
    assert weeks.frauds.sum() / count.sum() == pytest.approx(0.103, abs=0.012)


@default_and_real
def test_a_week_leaves_166_customers_and_44_fraudsters(own: Any) -> None:
    weeks = published("never", own, **UNCAPPED)
    assert weeks.here(0).mean() == pytest.approx(166, abs=3)
    assert weeks.here(1).mean() == pytest.approx(44, abs=2)
    assert weeks.records["lost"].sum() == 0


def test_without_fraud_proportion_there_is_no_fraud() -> None:
    weeks = play("never", lanes=50, fraud_proportion=0.0, **PUBLISHED, **UNCAPPED)
    assert weeks.frauds.sum() == 0


@pytest.mark.parametrize(("proportion", "share"), [(0.1, 0.008), (0.2, 0.013)])
def test_few_frauds_happen_in_january(proportion: float, share: float) -> None:
    weeks = play("never", lanes=LANES, fraud_proportion=proportion, **PUBLISHED, **UNCAPPED)
    assert weeks.frauds.sum() / weeks.outcomes.sum() == pytest.approx(share, abs=0.008)


@default_and_real
def test_71_percent_of_authentications_succeed_and_no_fraud_does(own: Any) -> None:
    weeks = published("always", own)
    paid, confirmed, cancelled, caught, missed = weeks.outcomes.sum(axis=(0, 1))
    assert (paid, missed) == (0, 0) and caught > 0
    assert confirmed / (confirmed + cancelled) == pytest.approx(0.712, abs=0.012)


@default_and_real
@pytest.mark.parametrize(
    ("policy", "mean", "spread"),
    [("never", 769, 72), ("always", 611, 56), ("random", 682, 41), ("right", 858, 61)],
)
def test_reference_returns(policy: str, mean: float, spread: float, own: Any) -> None:
    """The mean lies within a third of the published spread of single episodes."""
    weeks = published(policy, own)
    assert weeks.returns.mean() == pytest.approx(mean, abs=spread / 3)
    assert weeks.returns.std() < 1.3 * spread


@pytest.mark.parametrize(("policy", "mean"), [("never", 448), ("always", 295), ("random", 361), ("right", 496)])
def test_returns_by_the_recommended_rules(policy: str, mean: float) -> None:
    """The page of the environment gives them; the standard error is about 2."""
    assert play(policy, lanes=LANES).returns.mean() == pytest.approx(mean, abs=10)


def test_906_is_no_upper_bound() -> None:
    """Perfect decisions earn the number of genuine payments, which some episodes have more of."""
    weeks = published("right", {})
    assert (weeks.returns == weeks.outcomes[:, :, :3].sum(axis=(1, 2))).all()
    assert weeks.returns.max() > 906


@default_and_real
def test_frauds_are_likelier_from_north_america(own: Any) -> None:
    by_continent = published("never", own, **UNCAPPED).outcomes.sum(axis=0)
    share = by_continent[:, 3:].sum(axis=1) / by_continent.sum(axis=1)
    assert share[EU] == pytest.approx(0.087, abs=0.015)
    assert share[NA] == pytest.approx(0.20, abs=0.04)
    of_all = by_continent.sum(axis=1) / by_continent.sum()
    assert 0.79 < of_all[EU] < 0.86 and 0.09 < of_all[NA] < 0.15


@pytest.mark.parametrize(("rules", "europe", "america"), [({}, 0.06, 0.15), ({**PUBLISHED, **UNCAPPED}, 0.094, 0.22)])
def test_how_many_transactions_of_a_continent_are_frauds(rules: Any, europe: float, america: float) -> None:
    """The page of the environment gives them, for the default tables."""
    by_continent = play("random", lanes=LANES, **rules).outcomes.sum(axis=0)
    share = by_continent[:, 3:].sum(axis=1) / by_continent.sum(axis=1)
    assert share[EU] == pytest.approx(europe, abs=0.006)
    assert share[NA] == pytest.approx(america, abs=0.015)


@pytest.mark.parametrize(("updated", "falls"), [(False, False), (True, True)])
def test_satisfaction_falls_when_everybody_is_checked(updated: bool, falls: bool) -> None:
    """In the published code it stays at 1."""
    means = []

    def look(records: Any, going: Any) -> None:
        means.append(np.mean(records["satisfaction_sum"] / records["customers"]))

    play("always", lanes=20, each=look, post_transaction_update=updated, initial_satisfaction=1.0)
    late = means[400]
    assert late < 0.95 if falls else late == 1
    assert (means[50] > means[150] > means[300] > late) == falls


def test_checks_drive_customers_away() -> None:
    never, always = (play(policy, lanes=LANES) for policy in ("never", "always"))
    assert always.records["lost"].mean() > never.records["lost"].mean() + 5
    assert always.here(0).mean() < never.here(0).mean() - 5
    assert 490 < never.records["time"].mean() < 550
    assert 425 < always.records["time"].mean() < 480


def test_frauds_drive_customers_away_too() -> None:
    """Those whose cards were stolen leave, unless the frauds are stopped."""
    never, right = (play(policy, lanes=LANES) for policy in ("never", "right"))
    assert right.records["lost"].mean() < never.records["lost"].mean() - 1


def test_other_months_have_more_frauds() -> None:
    july = play("never", lanes=20, first_day=190, horizon=1000, **PUBLISHED)
    assert july.frauds.sum() / july.outcomes.sum() > 0.3
