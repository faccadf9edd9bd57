import json
import pickle
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from fair_envs.metrics.report import fairness_report, fairness_series
from fair_envs.metrics.returns import (
    FORMS,
    Form,
    Group,
    MaxAbs,
    Returns,
    conditional_parity,
    counterfactual_fairness,
    demographic_parity,
    disparity_ratio,
    group_prices,
    group_returns,
    largest_gap,
    largest_gap_interval,
    max_abs,
    price_interval,
    price_of_fairness,
    scale_by_max_abs,
    sensitive_returns,
)
from fair_envs.support.aliases import Flags

NAN = float("nan")

# Five agents, uneven groups: with the attribute one red, two blue; without it one red, one blue.
SENSITIVE = [1, 0, 1, 1, 0]
PREFERENCE = ["red", "red", "blue", "blue", "blue"]
UNEVEN = Returns(
    [[1.0, 10.0, 2.0, 4.0, 20.0], [3.0, 30.0, 4.0, 6.0, 10.0]],
    attributes={"sensitive": SENSITIVE, "preference": PREFERENCE},
)


def four_groups(red_without: float, red_with: float, blue_without: float, blue_with: float) -> Returns:
    """Return one episode with these totals, each earned by two agents in unequal parts."""
    totals = np.array([red_without, red_with, blue_without, blue_with])
    return Returns(
        np.stack([0.25 * totals, 0.75 * totals], axis=1).reshape(1, 8),
        attributes={
            "sensitive": np.repeat([0, 1, 0, 1], 2),
            "preference": np.repeat(["red", "red", "blue", "blue"], 2),
        },
    )


def random_returns(
    seed: int, *, episodes: int = 3, agents: int = 7, redrawn: bool = False, attributes: int = 3
) -> Returns:
    chance = np.random.default_rng(seed)
    shape = (episodes, agents) if redrawn else (agents,)
    names = ("sensitive", "preference", "age", "town")[:attributes]
    codes = {name: chance.integers(0, 2 if name == "sensitive" else 3, size=shape) for name in names}
    return Returns(chance.gamma(2.0, 10.0, size=(episodes, agents)), attributes=codes)


def brute_force_pair_sum(returns: Returns, *, ignored: tuple[str, ...], chosen: Flags) -> list[float]:
    """Return the definition's sum of each episode, agent by agent, pair by pair."""
    sums = []
    for e in range(returns.episodes):
        terms = []
        for x, y in product(range(returns.agents), repeat=2):
            sensitive = returns.attributes["sensitive"][e]
            others = [codes[e] for name, codes in returns.attributes.items() if name not in ignored]
            equal = all(codes[x] == codes[y] for codes in others)
            if sensitive[x] == 1 and sensitive[y] == 0 and equal and chosen[e, x] and chosen[e, y]:
                terms.append(returns.values[e, x] - returns.values[e, y])
        sums.append(sum(terms) if terms else NAN)
    return sums


# The evaluation of the fair-PPO study -------------------------------------------------------------------------------


def test_the_studys_ratio_of_600_to_300_is_a_third() -> None:
    returns = four_groups(400, 100, 200, 200)
    assert demographic_parity(returns, form="total") == pytest.approx([300])
    assert demographic_parity(returns, form="ratio") == pytest.approx([1 / 3])
    assert disparity_ratio(600, 300) == pytest.approx(1 / 3)


def test_the_studys_conditional_ratios_are_taken_within_each_preference() -> None:
    ratios = conditional_parity(four_groups(400, 100, 200, 200), legitimate="preference", form="ratio")
    assert list(ratios) == ["blue", "red"]
    assert ratios["red"] == pytest.approx([0.6])
    assert ratios["blue"] == pytest.approx([0.0])


def test_two_groups_that_earn_nothing_are_at_zero_with_the_studys_floor_and_undefined_without() -> None:
    nothing = four_groups(0, 0, 0, 0)
    assert demographic_parity(nothing, form="ratio").tolist() == [0]
    assert np.isnan(demographic_parity(nothing, form="ratio", floor=0)).all()
    assert np.isnan(demographic_parity(nothing, form="mean_ratio", floor=0)).all()


def test_a_floor_shrinks_the_ratio_of_small_totals() -> None:
    assert disparity_ratio(0.3, 0.1) == pytest.approx(0.2)
    assert disparity_ratio(0.3, 0.1, floor=0) == pytest.approx(0.5)


def test_every_notions_ratio_has_the_floor_that_is_asked_for() -> None:
    small = four_groups(0.3, 0.1, 0.2, 0.2)
    assert conditional_parity(small, legitimate="preference", form="ratio", floor=0)["red"] == pytest.approx([0.5])
    flipped = Returns(2 * small.values, attributes={**small.attributes, "sensitive": np.repeat([1, 0, 1, 0], 2)})
    report = fairness_report(small, legitimate="preference", counterfactual=flipped, floor=0)
    assert report["demographic_parity_ratio"].value == pytest.approx(0.2 / 0.8)
    assert report["conditional_parity_ratio[red]"].value == pytest.approx(0.5)
    assert report["conditional_parity_mean_ratio[red]"].value == pytest.approx(0.5)
    assert report["counterfactual_fairness_ratio"].value == pytest.approx(1 / 3)


def test_the_ratio_of_debts_is_undefined_without_a_floor() -> None:
    assert np.isnan(disparity_ratio([-3.0, 1.0], [1.0, -1.0], floor=0)).all()


def test_44_after_100_is_a_price_of_minus_56_per_cent() -> None:
    assert price_of_fairness(44, 100) == pytest.approx(-56)
    assert price_of_fairness([44, 118], [100, 100]) == pytest.approx([-56, 18])


def test_max_abs_scaling_divides_by_the_largest_difference_of_the_whole_set() -> None:
    one, other = [10, 30], [5, -40]
    assert scale_by_max_abs(one, reference=[one, other]).mean() == pytest.approx(0.5)
    assert scale_by_max_abs(other, reference=[one, other]).mean() == pytest.approx(-0.4375)


def test_half_the_earnings_give_a_third_whatever_the_scale() -> None:
    without = np.array([2.0, 35.0, 1e6])
    assert disparity_ratio(without, without / 2) == pytest.approx([1 / 3] * 3)
    assert disparity_ratio(without, 0 * without) == pytest.approx([1] * 3)


def test_the_studys_two_games_are_a_factual_and_a_counterfactual_world() -> None:
    every = Returns([[100.0, 50.0], [10.0, 20.0]], attributes={"sensitive": [1, 1]})
    none = Returns([[200.0, 100.0], [40.0, 20.0]], attributes={"sensitive": [0, 0]})
    assert counterfactual_fairness(every, none, form="total") == pytest.approx([150, 30])
    assert counterfactual_fairness(every, none, form="ratio") == pytest.approx([150 / 450, 30 / 90])


# The definitions ----------------------------------------------------------------------------------------------------


def test_the_definition_sums_with_minus_without_over_pairs_of_equal_others() -> None:
    # Episode 0: red 1 - 10; blue (2 - 20) + (4 - 20). Episode 1: red 3 - 30; blue (4 - 10) + (6 - 10).
    assert demographic_parity(UNEVEN) == pytest.approx([-43, -37])
    conditional = conditional_parity(UNEVEN, legitimate="preference")
    assert conditional["red"] == pytest.approx([-9, -27])
    assert conditional["blue"] == pytest.approx([-34, -10])


def test_the_mean_over_episodes_is_the_sum_of_differences_of_expected_returns() -> None:
    returns = random_returns(5, episodes=6, agents=11)
    expected = Returns(
        returns.values.mean(axis=0, keepdims=True), attributes={k: v[0] for k, v in returns.attributes.items()}
    )
    assert demographic_parity(returns).mean() == pytest.approx(demographic_parity(expected)[0])


@pytest.mark.parametrize("redrawn", [False, True])
@pytest.mark.parametrize("attributes", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_grouping_gives_the_same_sums_as_all_pairs(seed: int, attributes: int, redrawn: bool) -> None:
    returns = random_returns(seed, episodes=4, agents=9, redrawn=redrawn, attributes=attributes)
    everyone = np.ones(returns.values.shape, dtype=bool)
    brute = brute_force_pair_sum(returns, ignored=("sensitive",), chosen=everyone)
    assert demographic_parity(returns) == pytest.approx(brute, nan_ok=True)
    if attributes > 1:
        for label, sums in conditional_parity(returns, legitimate="preference").items():
            chosen = returns.attributes["preference"] == int(label)
            brute = brute_force_pair_sum(returns, ignored=("sensitive",), chosen=chosen)
            assert sums == pytest.approx(brute, nan_ok=True)


def test_conditional_sums_over_the_only_other_attribute_add_up_to_demographic_parity() -> None:
    returns = random_returns(2, agents=20, attributes=2)
    assert sum(conditional_parity(returns, legitimate="preference").values()) == pytest.approx(
        demographic_parity(returns)
    )


def test_attributes_drawn_anew_are_paired_within_their_episode() -> None:
    returns = Returns([[1.0, 5.0, 9.0], [1.0, 5.0, 9.0]], attributes={"sensitive": [[1, 0, 0], [0, 0, 1]]})
    assert demographic_parity(returns) == pytest.approx([(1 - 5) + (1 - 9), (9 - 1) + (9 - 5)])
    assert demographic_parity(returns, form="difference") == pytest.approx([7 - 1, 3 - 9])
    assert demographic_parity(returns, form="ratio") == pytest.approx([13 / 15, -3 / 15])


def test_the_pairing_takes_attribute_differences_out_that_the_other_forms_keep() -> None:
    # Agents with the attribute are mostly blue, and blue earns more whoever it is.
    returns = Returns(
        [[1.0, 1.0, 1.0, 9.0, 9.0, 9.0]],
        attributes={"sensitive": [0, 0, 1, 0, 1, 1], "preference": ["red"] * 3 + ["blue"] * 3},
    )
    assert demographic_parity(returns)[0] == 0
    assert demographic_parity(returns, form="difference")[0] == pytest.approx(11 / 3 - 19 / 3)


def test_the_per_agent_difference_is_without_minus_with() -> None:
    assert demographic_parity(UNEVEN, form="difference") == pytest.approx([15 - 7 / 3, 20 - 13 / 3])
    red = conditional_parity(UNEVEN, legitimate="preference", form="difference")["red"]
    assert red == pytest.approx([9, 27])


def test_the_mean_ratio_takes_the_size_of_the_groups_out_of_the_ratio() -> None:
    equal_pay = Returns([[8.0, 8.0, 8.0, 8.0]], attributes={"sensitive": [1, 0, 0, 0]})
    assert demographic_parity(equal_pay, form="ratio") == pytest.approx([0.5])
    assert demographic_parity(equal_pay, form="mean_ratio") == pytest.approx([0])
    half_pay = Returns([[4.0, 8.0, 8.0, 8.0]], attributes={"sensitive": [1, 0, 0, 0]})
    assert demographic_parity(half_pay, form="mean_ratio") == pytest.approx([1 / 3])


@pytest.mark.parametrize("floor", [0.0, 1.0, 500.0])
def test_both_ratios_agree_on_groups_of_equal_size(floor: float) -> None:
    returns = four_groups(400, 100, 20, 7)
    ratios = [demographic_parity(returns, form=form, floor=floor) for form in ("ratio", "mean_ratio")]
    assert ratios[0] == pytest.approx(ratios[1])


def test_counterfactual_fairness_looks_only_at_agents_that_carry_the_attribute() -> None:
    flipped = Returns(
        [[2.0, 99.0, 5.0, 8.0, 99.0], [9.0, 99.0, 4.0, 9.0, 99.0]],
        attributes={"sensitive": 1 - np.array(SENSITIVE), "preference": PREFERENCE},
    )
    # Episode 0: (1 - 2) + (2 - 5) + (4 - 8). Episode 1: (3 - 9) + (4 - 4) + (6 - 9).
    assert counterfactual_fairness(UNEVEN, flipped) == pytest.approx([-8, -9])
    assert counterfactual_fairness(UNEVEN, flipped, form="difference") == pytest.approx([8 / 3, 3])
    assert counterfactual_fairness(UNEVEN, flipped, form="total") == pytest.approx([8, 9])
    assert counterfactual_fairness(UNEVEN, flipped, form="ratio") == pytest.approx([8 / 22, 9 / 35])


def test_counterfactual_fairness_follows_attributes_drawn_anew() -> None:
    factual = Returns([[1.0, 5.0], [1.0, 5.0]], attributes={"sensitive": [[1, 0], [0, 1]]})
    flipped = Returns([[4.0, 4.0], [9.0, 9.0]], attributes={"sensitive": [[0, 0], [0, 0]]})
    assert counterfactual_fairness(factual, flipped) == pytest.approx([1 - 4, 5 - 9])


def test_an_unchanged_return_is_counterfactually_fair() -> None:
    flipped = Returns(UNEVEN.values, attributes={"sensitive": [0] * 5, "preference": PREFERENCE})
    for form in FORMS:
        assert counterfactual_fairness(UNEVEN, flipped, form=form).tolist() == [0, 0]


# The undefined ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("code", [0, 1])
def test_parity_with_an_empty_group_is_undefined(form: Form, code: int) -> None:
    returns = Returns([[1.0, 2.0]], attributes={"sensitive": [code, code], "preference": [0, 0]})
    assert np.isnan(demographic_parity(returns, form=form)).all()
    assert np.isnan(conditional_parity(returns, legitimate="preference", form=form)["0"]).all()


def test_only_the_value_whose_group_is_empty_is_undefined() -> None:
    returns = Returns([[1.0, 2.0, 3.0]], attributes={"sensitive": [0, 1, 0], "preference": ["a", "a", "b"]})
    ratios = conditional_parity(returns, legitimate="preference", form="ratio")
    assert np.isnan(ratios["b"]).all()
    assert ratios["a"] == pytest.approx([-1 / 3])


def test_a_sum_without_pairs_of_equal_others_is_undefined() -> None:
    returns = Returns([[1.0, 2.0]], attributes={"sensitive": [0, 1], "preference": ["a", "b"]})
    assert np.isnan(demographic_parity(returns)).all()
    assert demographic_parity(returns, form="difference") == pytest.approx([-1])


@pytest.mark.parametrize("form", FORMS)
def test_no_carrier_leaves_counterfactual_fairness_undefined(form: Form) -> None:
    none = Returns([[1.0, 2.0]], attributes={"sensitive": [0, 0]})
    every = Returns([[1.0, 2.0]], attributes={"sensitive": [1, 1]})
    assert np.isnan(counterfactual_fairness(none, every, form=form)).all()


def test_a_price_on_nothing_is_undefined() -> None:
    assert np.isnan(price_of_fairness([5, 0], [0, 0])).all()
    assert np.isnan(price_interval([5.0, 6.0], [0.0, 0.0]).value)
    assert np.isnan(price_interval([], [1.0, 2.0]).value)
    assert np.isnan(price_interval([5.0, 6.0], [0.0, 0.0], method="t").value)
    assert np.isnan(price_interval([5.0], [1.0, 2.0], method="t").low)


def test_a_scale_of_nothing_is_undefined() -> None:
    assert np.isnan(scale_by_max_abs([0.0, 0.0], reference=[[0.0, 0.0]])).all()
    assert np.isnan(scale_by_max_abs([1.0], reference=[])).all()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_a_report_without_data_is_undefined_throughout(shape: tuple[int, int]) -> None:
    codes = np.zeros(shape[1], dtype=int)
    report = fairness_report(
        Returns(np.zeros(shape), attributes={"sensitive": codes, "preference": codes}), legitimate="preference"
    )
    assert "demographic_parity_ratio" in report
    assert np.isnan([estimate.value for estimate in report.values()]).all()


# Groups -------------------------------------------------------------------------------------------------------------


def test_groups_are_values_or_combinations_of_values() -> None:
    assert group_returns(UNEVEN, by="preference")["blue"] == pytest.approx([26 / 3, 20 / 3])
    both = group_returns(UNEVEN, by=["preference", "sensitive"])
    assert list(both) == ["blue, 0", "blue, 1", "red, 0", "red, 1"]
    assert both["blue, 1"] == pytest.approx([3, 5])
    assert sensitive_returns(UNEVEN)["without"] == pytest.approx([15, 20])


def test_a_combination_that_nobody_has_is_no_group() -> None:
    returns = Returns([[1.0, 2.0]], attributes={"gender": ["man", "woman"], "job": ["cook", "smith"]})
    assert list(group_returns(returns, by=["gender", "job"])) == ["man, cook", "woman, smith"]


def test_a_combination_of_attributes_can_be_the_sensitive_group() -> None:
    returns = Returns(
        [[1.0, 2.0, 3.0, 10.0]],
        attributes={
            "nationality": ["foreign", "foreign", "local", "local"],
            "gender": ["woman", "man", "woman", "man"],
            "job": ["cook"] * 4,
        },
    )
    group: Group = {"nationality": "foreign", "gender": "woman"}
    assert returns.members(group).tolist() == [[True, False, False, False]]
    assert demographic_parity(returns, sensitive=group) == pytest.approx([3 * 1 - 15])
    assert demographic_parity(returns, sensitive={"gender": "man"}) == pytest.approx([(2 - 1) + (10 - 3)])


def test_the_largest_gap_is_between_the_groups_that_differ_most_in_expectation() -> None:
    groups = {"a": [1.0, 3.0], "b": [5.0, 5.0], "c": [4.0, NAN]}
    assert largest_gap(groups) == 3
    # In each of these episodes one group is 2 ahead, in expectation neither is.
    assert largest_gap({"a": [1.0, 3.0], "b": [3.0, 1.0]}) == 0


def test_a_gap_needs_two_groups_that_are_there() -> None:
    assert np.isnan(largest_gap({"a": [1.0, 2.0]}))
    assert np.isnan(largest_gap({"a": [1.0, 2.0], "b": [NAN, NAN]}))
    assert np.isnan(largest_gap_interval({"a": [1.0, 2.0]}).value)
    assert np.isnan(largest_gap_interval({}).value)


def test_the_interval_of_the_largest_gap_draws_episodes_whole() -> None:
    shared = np.linspace(0, 100, 30)
    wobble = np.sin(np.arange(30.0))
    estimate = largest_gap_interval({"a": shared, "b": shared + 5 + wobble, "c": shared + 2})
    assert estimate.value == pytest.approx(5 + wobble.mean())
    assert 4 < estimate.low < estimate.value < estimate.high < 6


# Prices and scales --------------------------------------------------------------------------------------------------


def test_prices_are_of_mean_returns_per_group() -> None:
    fair = UNEVEN.select(episodes=[0])
    prices = group_prices(fair, UNEVEN)
    assert prices["without"].value == pytest.approx(100 * (15 - 17.5) / 17.5)
    assert prices["with"].value == pytest.approx(100 * (7 / 3 - 10 / 3) / (10 / 3))
    assert np.isnan(prices["with"].low)


def test_a_price_is_between_two_samples_by_a_known_method() -> None:
    for method in ("t", "bca"):
        with pytest.raises(ValueError, match=r"fair must have one axis, got shape \(1, 2\)"):
            price_interval([[1.0, 2.0]], [1.0, 2.0], method=method)
    with pytest.raises(ValueError, match="method must be one of t, percentile, bca, got 'normal'"):
        price_interval([1.0, 2.0], [1.0, 2.0], method="normal")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["t", "percentile", "bca"])
@pytest.mark.parametrize("paired", [False, True])
def test_price_intervals_cover_the_true_price(method: Any, paired: bool) -> None:
    chance = np.random.default_rng(11)
    covered = []
    for _ in range(120):
        shared = chance.normal(0, 5, size=40)
        classic = 100 + shared + chance.normal(0, 5, size=40)
        fair = 60 + (shared if paired else chance.normal(0, 5, size=40)) + chance.normal(0, 5, size=40)
        price = price_interval(fair, classic, paired=paired, method=method, level=0.9, resamples=300)
        covered.append(price.low <= -40 <= price.high)
    assert 0.82 < np.mean(covered) < 0.97


def test_the_t_interval_of_a_price_agrees_with_its_bootstrap_on_large_samples() -> None:
    chance = np.random.default_rng(0)
    fair, classic = chance.gamma(4, 10, size=800), chance.gamma(4, 20, size=500)
    for paired, one, other in ((False, fair, classic), (True, fair[:500] + classic, classic)):
        t = price_interval(one, other, paired=paired, method="t")
        bootstrap = price_interval(one, other, paired=paired, method="bca")
        assert (t.low, t.high) == pytest.approx((bootstrap.low, bootstrap.high), abs=0.6)
        assert t.standard_error == pytest.approx(bootstrap.standard_error, rel=0.05)


@pytest.mark.parametrize("method", ["t", "percentile", "bca"])
@pytest.mark.parametrize("paired", [False, True])
def test_a_higher_level_gives_a_wider_interval_of_the_price(method: Any, paired: bool) -> None:
    fair, classic = [44.0, 61.0, 52.0, 49.0, 70.0], [100.0, 80.0, 95.0, 120.0, 99.0]
    wide, narrow = (
        price_interval(fair, classic, paired=paired, method=method, level=level, resamples=500) for level in (0.99, 0.8)
    )
    assert (wide.level, narrow.level) == (0.99, 0.8)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_t_interval_of_a_price_between_methods_is_welchs() -> None:
    fair, classic = [98.0, 102.0, 100.0], [80.0, 130.0, 90.0, 100.0, 100.0]  # of mean 100: one unit is one per cent
    price = price_interval(fair, classic, method="t", level=0.9)
    welch = ttest_ind(fair, classic, equal_var=False).confidence_interval(0.9)
    assert (price.low, price.high) == pytest.approx((welch.low, welch.high))


def test_each_method_has_seeds_of_its_own() -> None:
    attributes = {"sensitive": [0, 1]}
    fair = Returns([[10.0, 1.0], [20.0, 1.0], [30.0, 1.0]], attributes=attributes)
    classic = Returns([[10.0, 1.0], [20.0, 1.0], [60.0, 1.0]], attributes=attributes)
    price = group_prices(fair, classic, clusters=([7, 7, 8], [3, 4, 4]), method="t")["without"]
    assert price.value == pytest.approx(100 * (22.5 - 25) / 25)  # means 15 and 30, 10 and 40


def test_prices_over_seeds_have_seeds_as_units() -> None:
    chance = np.random.default_rng(4)
    attributes = {"sensitive": [0, 1]}
    fair = Returns(chance.random((6, 2)) + 1, attributes=attributes)
    classic = Returns(chance.random((6, 2)) + 2, attributes=attributes)
    seeds = [0, 0, 1, 1, 2, 2]
    price = group_prices(fair, classic, clusters=(seeds, seeds), paired=True, method="t")["with"]
    by_seed = [returns.values[:, 1].reshape(3, 2).mean(axis=1) for returns in (fair, classic)]
    assert price == price_interval(by_seed[0], by_seed[1], paired=True, method="t")
    assert price.n == 3


def test_a_scale_spans_runs_values_of_the_factor_and_twins() -> None:
    scale = max_abs(
        [four_groups(400, 100, 200, 200), four_groups(0, 50, 0, 50)],
        reference="both runs",
        twins=[(Returns([[7.0]], attributes={"sensitive": [1]}), Returns([[2.0]], attributes={"sensitive": [0]}))],
    )
    assert scale == MaxAbs(
        reference="both runs", demographic_parity=300, conditional_parity=300, counterfactual_fairness=5
    )


def test_the_scale_of_conditional_differences_is_their_own() -> None:
    scale = max_abs([four_groups(400, 100, 200, 300)], reference="one run")  # 300 and -100 within, 200 between
    assert (scale.demographic_parity, scale.conditional_parity) == (200, 300)


# Everything at once -------------------------------------------------------------------------------------------------


def many_episodes() -> tuple[Returns, Returns]:
    chance = np.random.default_rng(8)
    sensitive, preference = np.tile([0, 1], 6), np.repeat(["red", "blue"], 6)
    values = chance.gamma(3, 10, size=(30, 12))
    factual = Returns(
        np.where(sensitive, values / 2, values), attributes={"sensitive": sensitive, "preference": preference}
    )
    return factual, Returns(values, attributes={"sensitive": 1 - sensitive, "preference": preference})


def test_a_report_holds_every_notion_with_its_interval() -> None:
    factual, flipped = many_episodes()
    scale = max_abs([factual], reference="one run", twins=[(factual, flipped)])
    report = fairness_report(factual, legitimate="preference", counterfactual=flipped, reference=scale)
    forms = ("sum", "difference", "ratio", "ratio_abs", "mean_ratio", "mean_ratio_abs", "scaled")
    tags = {"demographic_parity": [""], "conditional_parity": ["[blue]", "[red]"], "counterfactual_fairness": [""]}
    expected = {f"{notion}_{form}{tag}" for notion in tags for form in forms for tag in tags[notion]}
    expected |= {"mean_return[with]", "mean_return[without]", "largest_gap"}
    expected |= {"utilitarian", "maximin", "nash_welfare", "gini", "jain", "atkinson"}
    assert set(report) == expected
    for name, estimate in report.items():
        assert estimate.low <= estimate.value <= estimate.high, name
        assert (estimate.n, estimate.level) == (30, 0.95), name
    assert report["counterfactual_fairness_ratio"].low > 0.2
    assert (report.unit, report.reference, report.sensitive) == ("episode", "one run", "sensitive")


def test_a_report_averages_the_series_of_each_episode() -> None:
    factual, _ = many_episodes()
    series, report = (
        fairness_series(factual, legitimate="preference"),
        fairness_report(factual, legitimate="preference"),
    )
    for name, values in series.items():
        assert values.shape == (30,), name
        assert report[name].value == pytest.approx(values.mean()), name
    ratio = series["demographic_parity_ratio"]
    assert report["demographic_parity_ratio"].standard_error == pytest.approx(ratio.std(ddof=1) / np.sqrt(30))


def test_disparities_of_changing_sign_cancel_in_the_signed_mean_only() -> None:
    returns = Returns([[3.0, 1.0], [1.0, 3.0]], attributes={"sensitive": [0, 1]})
    report = fairness_report(returns, legitimate=None)
    assert report["demographic_parity_ratio"].value == 0
    assert report["demographic_parity_ratio_abs"].value == pytest.approx(0.5)


def test_a_report_over_seeds_has_seeds_as_units() -> None:
    factual, _ = many_episodes()
    seeds = np.repeat([10, 11, 12], 10)
    report = fairness_report(factual, legitimate="preference", clusters=seeds)
    ratio = demographic_parity(factual, form="ratio").reshape(3, 10).mean(axis=1)
    estimate = report["demographic_parity_ratio"]
    assert (estimate.n, report.unit) == (3, "cluster")
    assert estimate.value == pytest.approx(ratio.mean())
    assert estimate.standard_error == pytest.approx(ratio.std(ddof=1) / np.sqrt(3))
    assert report["largest_gap"].n == 3


def test_episodes_in_which_a_notion_is_undefined_are_left_out_of_it_and_counted() -> None:
    returns = Returns([[4.0, 2.0], [5.0, 5.0]], attributes={"sensitive": [[0, 1], [1, 1]]})
    report = fairness_report(returns, legitimate=None)
    assert report["demographic_parity_difference"].value == 2
    assert report["demographic_parity_difference"].n == 1
    assert report["utilitarian"].n == 2


def test_a_report_can_take_its_pair_of_games_from_elsewhere() -> None:
    factual, _ = many_episodes()
    every = Returns([[1.0, 3.0]], attributes={"sensitive": [1, 1]})
    none = Returns([[3.0, 5.0]], attributes={"sensitive": [0, 0]})
    report = fairness_report(factual, legitimate="preference", factual=every, counterfactual=none)
    assert report["counterfactual_fairness_ratio"].value == pytest.approx(4 / 12)
    assert report["counterfactual_fairness_sum"].value == -4


def test_a_report_becomes_json_and_a_table() -> None:
    factual, _ = many_episodes()
    report = fairness_report(factual, legitimate="preference", sensitive={"sensitive": 1})
    record = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert record["sensitive"] == "sensitive=1"
    assert record["estimates"]["gini"]["value"] == pytest.approx(report["gini"].value)
    lines = str(report).splitlines()
    assert len(lines) == len(report)
    assert any(line.startswith("conditional_parity_ratio[red]") and "95 %, n = 30" in line for line in lines)


@pytest.mark.parametrize("name", ["demographic_parity_ratio", "utilitarian", "largest_gap"])
def test_a_report_of_a_higher_level_has_wider_intervals(name: str) -> None:
    factual, _ = many_episodes()
    wide, narrow = (
        fairness_report(factual, legitimate="preference", level=level, resamples=500)[name] for level in (0.99, 0.8)
    )
    assert (wide.level, narrow.level) == (0.99, 0.8)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_bootstrapped_reports_are_the_same_twice() -> None:
    factual, _ = many_episodes()
    one, two = (
        fairness_report(factual, legitimate="preference", method="bca", resamples=200, seed=5) for _ in range(2)
    )
    assert str(one) == str(two)


# Properties ---------------------------------------------------------------------------------------------------------


@st.composite
def societies(draw: st.DrawFn) -> Returns:
    episodes, agents = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    shape = draw(st.sampled_from([(agents,), (episodes, agents)]))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = {"sensitive": chance.integers(0, 2, size=shape), "preference": chance.integers(0, 2, size=shape)}
    return Returns(chance.integers(0, 50, size=(episodes, agents)), attributes=codes)


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(societies(), st.integers(0, 1000), st.sampled_from(FORMS))
def test_the_order_of_agents_does_not_matter(returns: Returns, seed: int, form: Form) -> None:
    order = np.random.default_rng(seed).permutation(returns.agents)
    shuffled = returns.select(agents=order)
    assert demographic_parity(shuffled, form=form) == pytest.approx(demographic_parity(returns, form=form), nan_ok=True)
    for label, values in conditional_parity(returns, legitimate="preference", form=form).items():
        assert conditional_parity(shuffled, legitimate="preference", form=form)[label] == pytest.approx(
            values, nan_ok=True
        )


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(societies(), st.floats(0.01, 100), st.sampled_from(FORMS))
def test_scaling_returns_scales_the_differences_and_leaves_the_ratios(
    returns: Returns, factor: float, form: Form
) -> None:
    scaled = Returns(factor * returns.values, attributes=returns.attributes)
    expected = demographic_parity(returns, form=form, floor=0) * (1 if "ratio" in form else factor)
    assert demographic_parity(scaled, form=form, floor=0) == pytest.approx(expected, nan_ok=True)


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(societies(), st.sampled_from(FORMS))
def test_swapping_who_carries_the_attribute_turns_the_sign(returns: Returns, form: Form) -> None:
    attributes = {**returns.attributes, "sensitive": 1 - returns.attributes["sensitive"]}
    swapped = Returns(returns.values, attributes=attributes)
    assert demographic_parity(swapped, form=form) == pytest.approx(-demographic_parity(returns, form=form), nan_ok=True)


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(societies())
def test_ratios_of_returns_of_at_least_nothing_lie_between_minus_one_and_one(returns: Returns) -> None:
    for form in ("ratio", "mean_ratio"):
        values = demographic_parity(returns, form=form, floor=0)
        assert ((np.abs(values) <= 1) | np.isnan(values)).all()


# The record ---------------------------------------------------------------------------------------------------------


def test_returns_copy_what_they_are_given_and_cannot_be_written() -> None:
    values, codes = np.ones((2, 3)), np.array([0, 1, 0])
    returns = Returns(values, attributes={"sensitive": codes})
    values[:] = 9
    codes[:] = 1
    assert returns.values.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert returns.attribute("sensitive").tolist() == [[0, 1, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        returns.values[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        returns.attribute("sensitive")[0, 0] = 1


def test_returns_can_be_selected_joined_and_pickled() -> None:
    joined = Returns.concat([UNEVEN.select(episodes=slice(0, 1)), UNEVEN.select(episodes=[False, True])])
    assert joined.values.tolist() == UNEVEN.values.tolist()
    assert joined.attribute("preference").tolist() == [PREFERENCE, PREFERENCE]
    part = UNEVEN.select(agents=[4, 0])
    assert part.values.tolist() == [[20, 1], [10, 3]]
    assert part.attribute("sensitive").tolist() == [[0, 1], [0, 1]]
    again = pickle.loads(pickle.dumps(UNEVEN))
    assert demographic_parity(again).tolist() == demographic_parity(UNEVEN).tolist()
    assert repr(again) == "Returns(2 episodes, 5 agents, attributes: sensitive, preference)"


def test_booleans_are_codes_zero_and_one() -> None:
    returns = Returns([[1.0, 3.0]], attributes={"sensitive": [True, False], "quick": np.array([False, False])})
    assert demographic_parity(returns).tolist() == [-2]
    assert list(conditional_parity(returns, legitimate="quick")) == ["0"]


BAD_RETURNS: dict[str, tuple[Any, dict[str, Any]]] = {
    r"values must have shape \(episodes, agents\), got \(3,\)": ([1.0, 2.0, 3.0], {}),
    r"values must be finite, got nan": ([[1.0, NAN]], {}),
    r"values must be finite, got inf": ([[1.0, np.inf]], {}),
    r"attribute names must be texts, got ''": ([[1.0]], {"": [0]}),
    r"attributes\['a'\] must have shape \(2,\) or \(1, 2\), got \(3,\)": ([[1.0, 2.0]], {"a": [0, 1, 0]}),
    r"attributes\['a'\] must contain whole numbers, bools or texts, got float64": ([[1.0, 2.0]], {"a": [0.5, 1.0]}),
    r"attributes\['a'\] must contain codes of at least 0 \(-1 means missing\), got -1": ([[1.0, 2.0]], {"a": [-1, 1]}),
}


@pytest.mark.parametrize("message", BAD_RETURNS)
def test_bad_returns_are_refused_by_name(message: str) -> None:
    values, attributes = BAD_RETURNS[message]
    with pytest.raises(ValueError, match=message):
        Returns(values, attributes=attributes)


def test_bad_questions_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"returns must have the attribute 'race', got 'sensitive', 'preference'"):
        demographic_parity(UNEVEN, sensitive="race")
    with pytest.raises(ValueError, match=r"sensitive must be a mapping such as .* with the codes blue, red"):
        demographic_parity(UNEVEN, sensitive="preference")
    with pytest.raises(ValueError, match=r"sensitive\['preference'\] must be a text, got 1"):
        demographic_parity(UNEVEN, sensitive={"preference": 1})
    with pytest.raises(ValueError, match=r"sensitive\['sensitive'\] must be a whole number, got 'yes'"):
        demographic_parity(UNEVEN, sensitive={"sensitive": "yes"})
    with pytest.raises(ValueError, match=r"sensitive must name at least one attribute, got none"):
        demographic_parity(UNEVEN, sensitive={})
    with pytest.raises(ValueError, match=r"form must be one of sum, difference, .*, got 'mean'"):
        demographic_parity(UNEVEN, form="mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"floor must be at least 0, got -1"):
        demographic_parity(UNEVEN, form="ratio", floor=-1)
    with pytest.raises(ValueError, match=r"legitimate and sensitive must not share attributes, got 'sensitive'"):
        conditional_parity(UNEVEN, legitimate=["preference", "sensitive"])


def test_worlds_that_are_no_counterfactuals_are_refused() -> None:
    kept = Returns(UNEVEN.values, attributes=UNEVEN.attributes)
    with pytest.raises(ValueError, match=r"counterfactual must flip every agent with the attribute"):
        counterfactual_fairness(UNEVEN, kept)
    moved = Returns(UNEVEN.values, attributes={"sensitive": [0] * 5, "preference": PREFERENCE[::-1]})
    with pytest.raises(ValueError, match=r"counterfactual must keep all other attributes, got a different 'pref"):
        counterfactual_fairness(UNEVEN, moved)
    with pytest.raises(ValueError, match=r"counterfactual must have 2 episodes, got 1"):
        counterfactual_fairness(UNEVEN, UNEVEN.select(episodes=[0]))
    with pytest.raises(ValueError, match=r"all Returns must have 5 agents, got 2"):
        counterfactual_fairness(UNEVEN, UNEVEN.select(agents=[0, 1]))


def test_only_a_carriers_other_attributes_must_stay_as_they_are() -> None:
    def recoloured(agent: int) -> Returns:
        colours = list(PREFERENCE)
        colours[agent] = "green"
        return Returns(UNEVEN.values, attributes={"sensitive": [0] * 5, "preference": colours})

    assert counterfactual_fairness(UNEVEN, recoloured(1)).tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"counterfactual must keep all other attributes, got a different 'pref"):
        counterfactual_fairness(UNEVEN, recoloured(0))


def test_parts_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match=r"parts must contain at least one Returns, got none"):
        Returns.concat([])
    with pytest.raises(ValueError, match=r"all Returns must have attributes \['a'\], got \['b'\]"):
        Returns.concat([Returns([[1.0]], attributes={"a": [0]}), Returns([[1.0]], attributes={"b": [0]})])
    one, other = Returns([[1.0, 2.0]], attributes={"sensitive": [0, 1]}), [0]
    with pytest.raises(ValueError, match=r"paired clusters must have the same seeds, got \[0\] and \[1\]"):
        group_prices(one, one, clusters=(other, [1]), paired=True)
    with pytest.raises(ValueError, match=r"classic must have the shape of fair, \(1,\), to be paired, got \(2,\)"):
        price_interval([1.0], [1.0, 2.0], paired=True)


def test_what_is_not_returns_is_refused_with_the_constructor_that_makes_it() -> None:
    notions: tuple[Any, ...] = (demographic_parity, partial(conditional_parity, legitimate="colour"), fairness_report)
    for notion in notions:
        with pytest.raises(TypeError, match=r"returns must be Returns\(values, attributes=.*got ndarray"):
            notion(np.ones((5, 4)))
    with pytest.raises(ValueError, match=r"values must be numbers of shape \(episodes, agents\), got 'many'"):
        Returns("many")


def test_a_report_needs_no_legitimate_factor_and_lists_its_names() -> None:
    report = fairness_report(Returns(np.ones((5, 4)), attributes={"sensitive": [0, 1, 0, 1]}))
    assert not [name for name in report if name.startswith("conditional")]
    with pytest.raises(KeyError, match=r"name must be one of mean_return.*demographic_parity_ratio.*got 'dp'"):
        report["dp"]
    with pytest.raises(ValueError, match="returns must have the attribute 'sensitive', got none: pass attributes="):
        fairness_report(Returns(np.ones((5, 4))))


def test_a_code_that_no_agent_has_is_reported() -> None:
    returns = Returns(np.ones((5, 2)), attributes={"gender": ["woman", "man"]})
    with pytest.warns(UserWarning, match="no agent has 'gender' 'women'; the codes are man, woman"):
        assert np.isnan(demographic_parity(returns, sensitive={"gender": "women"})).all()
