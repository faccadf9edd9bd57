"""Runs side by side: who gains and who loses, means over seeds, and evaluations that are kept."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs.assessment.policies import Kind
from fair_envs.assessment.result import Evaluation, Row, read, save, save_compact
from fair_envs.experiments.comparing import Comparison
from fair_envs.experiments.contenders import Contender, difference
from fair_envs.experiments.findings import change, identical, relation, told_changes
from fair_envs.experiments.tables import TableOfRows
from fair_envs.metrics import Estimate
from fair_envs.metrics.intervals import share_interval
from fair_envs.tasks import TASKS, task_of

GROUPS = ("rich", "poor")
LENDERS = task_of("FairLending-v0").scripted


def number(value: float, error: float = 0.0) -> Estimate:
    """Return an estimate with a standard error."""
    return Estimate(value=value, low=value - 2 * error, high=value + 2 * error, n=10, standard_error=error)


def evaluation(performance: float, rates: Mapping[str, float], *, error: float = 0.0) -> Evaluation:
    """Return the evaluation of a policy with these rates."""
    first, second = rates.values()
    rows = [
        Row("performance", "reward per step", "decision-maker", number(performance)),
        *(Row("rate", "rate", name, number(rate, error)) for name, rate in rates.items()),
        Row("gap", "rate", f"{GROUPS[0]} - {GROUPS[1]}", number(first - second, 1.4 * error), 0.01, 0.02),
        Row("gap", "rate", "largest", number(abs(first - second), 1.4 * error), 0.01, 0.02),
        Row("short-term", "notion", "mean over steps", number(0.1)),
        Row("long-term", "distance", "last value", number(0.2)),
        Row("welfare", "rate", "worst-off group", number(min(first, second))),
    ]
    return Evaluation(policy="some", env_id="Some-v0", rate="rate", groups=GROUPS, rows=tuple(rows))


def contender(
    name: str, performance: float, rich: float, poor: float, *, kind: Kind = "trained", error: float = 0
) -> Any:
    """Return a contender with one evaluation."""
    return Contender(name, kind, [evaluation(performance, {"rich": rich, "poor": poor}, error=error)])


BASE = contender("ppo", 1.0, 0.8, 0.4)
RICH = evaluation(1.0, {"rich": 0.8, "poor": 0.4})


# Sentences ------------------------------------------------------------------------------------------------------------


def test_a_gap_that_closes_because_the_better_off_lose_is_levelling_down() -> None:
    told = change(contender("equal", 0.9, 0.4, 0.4), BASE)
    assert told == (
        "equal instead of ppo: performance 1 to 0.9 (lower), gap 0.4 to 0 (smaller); rich loses (-0.4 [-0.4, -0.4]), "
        "poor is about the same (+0 [0, 0]): it levels down."
    )


def test_a_gap_that_closes_because_the_worse_off_gain_is_levelling_up() -> None:
    told = change(contender("fair", 0.9, 0.7, 0.6), BASE)
    assert "poor gains (+0.2 [0.2, 0.2]): it takes from the better off." in told and "rich loses (-0.1" in told
    told = change(contender("fairer", 0.9, 0.8, 0.6), BASE)
    assert "poor gains (+0.2 [0.2, 0.2]): it levels up." in told and "rich is about the same" in told
    told = change(contender("fairest", 0.9, 0.79, 0.6), BASE)  # at most 0.02 of the highest rate
    assert "rich loses (-0.01 [-0.01, -0.01])" in told and told.endswith("it levels up.")


def test_both_losing_is_levelling_down_too() -> None:
    told = change(contender("bad", 0.5, 0.3, 0.2), BASE)
    assert told.endswith("rich loses (-0.5 [-0.5, -0.5]), poor loses (-0.2 [-0.2, -0.2]): it levels down.")


def test_a_gap_that_grows_is_neither() -> None:
    told = change(contender("worse", 1.2, 0.95, 0.45), BASE)
    assert "performance 1 to 1.2 (higher), gap 0.4 to 0.5 (larger)" in told and "levels" not in told


def test_a_change_within_the_uncertainty_is_unclear_and_not_about_the_same() -> None:
    told = change(contender("same", 1.0, 0.75, 0.42, error=0.03), BASE)
    assert "rich unclear (-0.05 [-0.118, 0.0179]), poor unclear (+0.02" in told  # Student's with 9 degrees: 2.262
    told = change(contender("same", 1.0, 0.801, 0.4, error=0.003), BASE)
    assert "rich is about the same (+0.001 [-0.00579, 0.00779])" in told


def test_a_gap_whose_change_is_within_the_uncertainty_does_not_level_down() -> None:
    told = change(contender("noisy", 1.0, 0.6, 0.35, error=0.05), BASE)  # the gap varies more than the rates
    assert "rich loses" in told and "gap 0.4 to 0.25 (unclear)" in told and "levels" not in told


def test_a_gap_below_the_limit_of_noise_is_no_gap() -> None:
    even, odd = contender("ppo", 1.0, 0.51, 0.5), contender("odd", 1.0, 0.515, 0.5)
    assert "gap 0.01 to 0.015 (no gap above noise)" in change(odd, even)
    assert "gap 0.01 to 0.4 (larger; ppo: no gap above noise)" in change(contender("far", 1.0, 0.9, 0.5), even)
    split = Contender("ppo", "trained", [evaluation(1, {"rich": 0.5 + gap, "poor": 0.5}) for gap in (0.025, 0.005)])
    told = change(contender("far", 1.0, 0.9, 0.5), split)
    assert "larger; ppo: no gap above noise, but in 1 of 2 trainings of ppo, of which chance gives one in 20)" in told


def test_a_gap_that_changes_its_sign_is_compared_by_its_size() -> None:
    told = change(contender("turned", 1.0, 0.4, 0.7), BASE)
    assert "gap 0.4 to 0.3 (smaller); rich loses" in told and "poor gains" in told


def comparison(*contenders: Contender) -> Comparison:
    """Return a comparison."""
    return Comparison(env_id="Some-v0", rate="rate", contenders=contenders, about={"episodes": 10})


ONE, FEW = "Methods with one seed", "Methods with fewer than 3 seeds"


def test_methods_are_compared_with_reward_only_ppo_or_else_with_the_best() -> None:
    fair, good = contender("fair", 0.9, 0.7, 0.6), contender("good", 1.5, 0.9, 0.2)
    with_ppo, without = comparison(fair, good, BASE), comparison(fair, good)
    assert with_ppo.reference == BASE and without.reference == good
    few = ONE
    assert [line.split(":")[0] for line in with_ppo.sentences()] == ["fair instead of ppo", "good instead of ppo", few]
    assert [line.split(":")[0] for line in without.sentences()] == ["fair instead of good", few]
    variants = comparison(fair, contender("ppo (n_steps=5)", 0.1, 0.8, 0.4), contender("ppo (n_steps=9)", 0.2, 0.8, 0))
    assert variants.reference is not None and variants.reference.name == "ppo (n_steps=9)"
    assert "Methods are compared with ppo (n_steps=9), which has the highest performance of" in str(variants)
    assert "Because it was chosen by these numbers, the others look worse than they are" in str(variants)
    chosen = replace(variants, compared_with="fair")
    assert chosen.reference == fair and "highest performance" not in str(chosen)


def test_it_says_how_long_methods_were_trained_and_what_the_sentences_rest_on() -> None:
    def trained(name: str, *steps: int) -> Contender:
        runs = [{"run": {"method": name, "seed": seed, "settings": {}, "steps": own}} for seed, own in enumerate(steps)]
        return Contender(name, "trained", [replace(RICH, about=about) for about in runs])

    rule = contender("rule", 0.95, 0.6, 0.4, kind="scripted")
    told = comparison(trained("ppo", 640, 640), trained("pcn", 900, 700), trained("fair", 640), rule).footnotes()
    assert "Steps of each training: 640 (ppo, fair); 700 to 900 (pcn)." in told
    sentences = "Sentences compare evaluations that were stored without their episodes as independent ones."
    assert f"{sentences} About 18 intervals were looked at: 5 % exclude 0 by chance if nothing differs." in told
    kept = [Contender("ppo", "trained", [in_episodes([1.0, 2.0], [[5, 5]] * 2)])]
    assert "Sentences compare policies episode by episode" in " ".join(comparison(*kept).footnotes())
    few = "Warning: with fewer than 8 episodes, the intervals of rates and gaps are too narrow."
    assert few not in str(comparison(*kept)) and few in str(replace(comparison(*kept), about={"episodes": 7}))


def test_with_three_seeds_of_every_method_there_are_enough_to_tell() -> None:
    fair, base = contender("fair", 0.9, 0.7, 0.6), BASE._replace(evaluations=BASE.evaluations * 3)
    assert comparison(fair, base).sentences()[-1].startswith(f"{ONE}: fair. Sentences about two of them")
    two = comparison(fair._replace(evaluations=fair.evaluations * 2), base).sentences()
    assert two[-1].startswith(f"{FEW}: fair (2). Hardly any difference can be clear") and ONE not in " ".join(two)
    assert len(comparison(fair._replace(evaluations=fair.evaluations * 3), base).sentences()) == 1


def test_methods_with_the_same_numbers_for_the_same_seed_are_identical() -> None:
    def trained(name: str, seed: int, performance: float) -> Any:
        own = evaluation(performance, {"rich": 0.8, "poor": 0.4})
        return Contender(name, "trained", [replace(own, about={"run": {"method": name, "seed": seed, "settings": {}}})])

    base = trained("ppo", 1, 1.0)
    assert identical(trained("limited", 1, 1.0), base)
    assert not identical(trained("limited", 2, 1.0), base) and not identical(trained("limited", 1, 1.1), base)
    told = comparison(base, trained("limited", 1, 1.0)).sentences()
    assert told[0] == "limited is identical to ppo: with the same seed, all numbers are the same."


def test_it_says_how_scripted_policies_relate_to_the_methods() -> None:
    weak = contender("weak", 0.2, 0.5, 0.5, kind="scripted")
    best = contender("rule", 0.95, 0.6, 0.4, kind="scripted")
    chance = contender("random", 9.0, 0.5, 0.5, kind="random")
    both, fairer = contender("fair", 1.2, 0.6, 0.5), contender("even", 0.1, 0.3, 0.3)
    told = comparison(BASE, both, fairer, weak, best, chance).sentences()[:-3]
    assert told == [
        "Methods that a scripted policy here (weak, rule) matches or beats: even.",
        "Methods that are better than all of these rules: none.",
        "weak (performance 0.2, gap 0 within noise): better than even; with a lower performance and a smaller gap than "
        "ppo, fair.",
        "rule (performance 0.95, gap 0.2): worse than fair; with a higher performance and a larger gap than even; with "
        "a lower performance and a smaller gap than ppo.",
    ]
    told = comparison(contender("ppo", 0.5, 0.8, 0.4), contender("fair", 1.0, 0.6, 0.5), best).sentences()[:2]
    assert told == [
        "Methods that a scripted policy here (rule) matches or beats: ppo.",
        "Methods that are better than all of these rules: fair.",
    ]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        ((1.0, 0.8, 0.4), "as good"),
        ((1.1, 0.8, 0.4), "better"),
        ((1.0, 0.7, 0.4), "better"),
        ((1.01, 0.8, 0.395), "gains"),
        ((0.9, 0.8, 0.4), "worse"),
        ((1.0, 0.9, 0.4), "worse"),
        ((1.1, 0.9, 0.4), "gains"),
        ((0.9, 0.5, 0.4), "gives"),
    ],
)
def test_a_policy_relates_to_another_in_performance_and_gap(one: Any, expected: str) -> None:
    assert relation(contender("one", *one), BASE) == expected


def test_not_worse_is_by_less_than_two_percent() -> None:
    near, far = (contender("rule", 1.1, 0.8, gap, error=0.003) for gap in (0.4, 0.392))
    assert (relation(near, BASE), relation(BASE, near)) == ("better", "worse")
    assert relation(far, BASE) == "unclear"  # a gap that may be larger by more than 0.016


def test_uncertainty_does_not_make_a_policy_as_good_as_another() -> None:
    rough = contender("rule", 1.0, 0.8, 0.4, kind="scripted", error=0.1)
    assert relation(rough, BASE) == relation(BASE, rough) == "unclear"
    unknown = [
        row._replace(estimate=replace(row.estimate, low=np.nan, high=np.nan, standard_error=np.nan))
        for row in RICH.rows
    ]
    blank = Contender("rule", "scripted", [replace(RICH, rows=tuple(unknown))])
    assert relation(blank, BASE) == relation(BASE, blank) == "unclear"


def test_gaps_within_noise_are_the_same() -> None:
    even, odd = contender("even", 1.0, 0.5, 0.5), contender("odd", 1.0, 0.519, 0.5, error=0.001)
    assert relation(even, odd) == relation(odd, even) == "as good"
    assert relation(even, contender("wide", 1.0, 0.55, 0.5)) == "better"


def in_episodes(values: Any, benefits: Any, *, seed: int | None = None) -> Evaluation:
    """Return an evaluation that keeps its episodes: performance (E,) and benefits of 10 people a group (E, 2)."""
    benefits = np.asarray(benefits, float)
    totals = np.stack([benefits, np.full_like(benefits, 10)], axis=-1)
    first, second = benefits.mean(axis=0) / 10
    own = evaluation(float(np.mean(values)), {"rich": first, "poor": second}, error=0.5)
    about = {} if seed is None else {"run": {"method": "ppo", "seed": seed, "settings": {}}}
    kept = {"performance": np.asarray(values, float), "totals": totals, "shuffled gaps": np.linspace(0, 0.02, 21)}
    kept["long-term: last value"] = np.asarray(values, float) / 10
    return replace(own, of_episodes=kept, about=about)


def test_policies_are_compared_episode_by_episode() -> None:
    rng = np.random.default_rng(0)
    common, benefits = rng.normal(0, 1, 40), rng.binomial(8, [0.5, 0.6], (40, 2))
    rule = Contender("rule", "scripted", [in_episodes(common, benefits)])
    one = Contender("one", "scripted", [in_episodes(common + 0.1 + rng.normal(0, 0.05, 40), np.add(benefits, [1, 0]))])
    found = difference(one, rule, "performance")
    assert found.value == pytest.approx(0.1, abs=0.02) and 0.012 < found.high - found.low < 0.05
    rates = [difference(one, rule, "rate", name) for name in GROUPS]
    assert rates[0].low == pytest.approx(0.1) == rates[0].high and rates[1].low == rates[1].high == 0
    gap = difference(one, rule, "gap", "largest")
    assert gap.low < gap.value < gap.high and gap.value == pytest.approx(one.gap.value - rule.gap.value)
    assert difference(one, rule, "long-term", "last value").standard_error < 0.001  # 0.02 if independent
    without = Contender("one", "scripted", [replace(one.evaluations[0], of_episodes={})])
    assert not difference(without, rule, "rate", "rich").excludes(0)  # stored without episodes: independent
    once, again = (Contender("x", "scripted", [in_episodes([value], [[5, 4]])]) for value in (1.0, 2.0))
    assert np.isnan(difference(once, again, "performance").low)


def test_few_episodes_that_all_succeed_prove_little() -> None:
    def succeeding(name: str, *successes: list[int]) -> Contender:
        runs = [in_episodes(own, [[5, 5]] * len(own)) for own in successes]
        shares = [share_interval(own) for own in successes]
        return Contender(
            name,
            "scripted",
            [
                replace(run, rows=(Row("performance", "successful episodes", "team", share), *run.rows[1:]))
                for run, share in zip(runs, shares, strict=True)
            ],
        )

    always, often = succeeding("always", [1, 1, 1, 1]), succeeding("often", *[[1, 1, 1, 1]] * 3)
    assert relation(always, succeeding("other", [1, 1, 1, 1])) == relation(always, often) == "unclear"
    assert difference(always, succeeding("never", [0, 0, 0, 0]), "performance").high > 1
    several = succeeding("several", *[[1, 1, 1, 1]] * 2)
    assert relation(often, several) == "unclear"
    wilson = share_interval([1] * 8)
    assert several.performance.low == pytest.approx(wilson.low) and several.performance.high == 1
    assert relation(succeeding("a", *[[1] * 100] * 3), succeeding("b", *[[1] * 100] * 3)) == "as good"
    assert difference(often, succeeding("none", *[[0, 0, 0, 0]] * 3), "performance").low < 1
    mixed = succeeding("mixed", [1, 1, 1, 1], [1, 1, 1, 0])
    assert difference(often, mixed, "performance").standard_error > mixed.performance.standard_error


def test_a_difference_of_methods_is_as_uncertain_as_their_seeds_and_the_episodes() -> None:
    rng = np.random.default_rng(1)
    common, of_seeds, people = rng.normal(0, 1, 200), [0.3, -0.3, 0.0], np.full((200, 2), 5)
    trained = Contender("a", "trained", [in_episodes(common + shift, people) for shift in of_seeds])
    rule = Contender("rule", "scripted", [in_episodes(common, people)])
    found = difference(trained, rule, "performance")
    assert found.standard_error == pytest.approx(0.3 / np.sqrt(3), rel=1e-6)  # episodes cancel
    alone = Contender("rule", "scripted", [in_episodes(rng.normal(0, 1, 200), people)])
    assert difference(trained, alone, "performance").standard_error == pytest.approx(
        np.sqrt(0.3**2 / 3 + 2 / 200), rel=0.1
    )


def test_a_single_training_is_taken_to_vary_over_seeds_like_the_other_method() -> None:
    people, common = np.full((200, 2), 5), np.random.default_rng(1).normal(0, 1, 200)
    several = Contender("a", "trained", [in_episodes(common + shift, people) for shift in (0.3, -0.3, 0.0)])
    single = Contender("b", "trained", [in_episodes(common, people)])
    found = difference(several, single, "performance")
    assert found.standard_error == pytest.approx(0.3 * np.sqrt(1 / 3 + 1)) and found.freedom < 4
    assert difference(single, several, "performance").standard_error == pytest.approx(found.standard_error)
    assert difference(single, single._replace(name="c"), "performance").standard_error == 0  # about these two networks


def test_differences_cover_what_other_episodes_and_seeds_would_give() -> None:
    """95 % intervals of the difference of two methods with five seeds each, on the same 20 episodes."""
    rng, covered = np.random.default_rng(2), 0
    people = np.full((20, 2), 5)
    for _ in range(120):
        common = rng.normal(0, 1, 20)
        pair = []
        for true in (0.0, 0.5):
            seeds = true + rng.normal(0, 0.2, 5)
            pair.append([in_episodes(common + own + rng.normal(0, 0.3, 20), people) for own in seeds])
        found = difference(Contender("a", "trained", pair[0]), Contender("b", "trained", pair[1]), "performance")
        covered += not found.excludes(-0.5)
    assert covered >= 108  # 114 expected, and 2.5 standard deviations


def test_the_limit_of_noise_of_several_seeds_is_that_of_their_mean_gap() -> None:
    people = np.full((10, 2), 5)
    seeds = [in_episodes(np.zeros(10), people) for _ in range(4)]
    for number, own in enumerate(seeds):
        own.of_episodes["shuffled gaps"][:] = np.roll(np.linspace(0, 0.02, 21), 5 * number)
    found = Contender("ppo", "trained", seeds).row("gap", of="largest")
    assert found is not None and found.noise == pytest.approx(0.01)
    assert found.limit < 0.016 < np.quantile(seeds[0].of_episodes["shuffled gaps"], 0.95)


def test_clear_changes_of_the_measures_are_told() -> None:
    def measured(name: str, short: float, long: float) -> Any:
        one = contender(name, 1.0, 0.5, 0.5)
        sizes = {"short-term": short, "long-term": long}
        rows = [
            row._replace(estimate=number(sizes[row.section], 0.01)) if row.section in sizes else row
            for row in one.evaluations[0].rows
        ]
        return one._replace(evaluations=[replace(one.evaluations[0], rows=tuple(rows))])

    told = change(measured("fair", 0.101, 0.3), measured("ppo", 0.1, 0.2))
    assert told.endswith("; long-term distance 0.2 to 0.3 (larger).") and "short-term" not in told
    fair, base = measured("fair", 0.101, 0.3), measured("ppo", 0.1, 0.2)
    for limit, said in ((0.35, False), (0.25, True)):  # what small samples give is no change
        pair = []
        for one in (fair, base):
            rows = tuple(row._replace(noise=0.2, limit=limit) for row in one.evaluations[0].rows)
            pair.append(one._replace(evaluations=[replace(one.evaluations[0], rows=rows)]))
        assert ("long-term" in change(*pair)) is said


def test_a_policy_that_uses_the_ground_truth_is_a_bound_that_need_not_be_beaten() -> None:
    rule, best = contender("rule", 0.95, 0.6, 0.4, kind="scripted"), contender("truth", 2.0, 0.5, 0.5, kind="scripted")
    bound = best._replace(evaluations=[replace(best.evaluations[0], about={"uses_truth": True})])
    found = comparison(BASE, rule, bound)
    assert found.sentences()[2:] == [
        "rule (performance 0.95, gap 0.2): with a lower performance and a smaller gap than ppo.",
        "Bounds, which use the ground truth that methods do not observe: truth.",
        "Methods with one seed: ppo. Sentences about two of them, or about one and a rule, are about these trained "
        "networks and not about the methods: with another seed, the same method can differ as much. Train at least 5 "
        "seeds.",
    ]
    assert "truth (bound)" in str(found).splitlines()[0]
    assert comparison(BASE, bound).sentences()[0].startswith("Bounds")


# Numbers --------------------------------------------------------------------------------------------------------------


def test_seeds_of_one_method_are_averaged_and_are_the_units_of_the_interval() -> None:
    several = [evaluation(value, {"rich": 0.5 + value, "poor": 0.5}) for value in (0.1, 0.2, 0.3)]
    found = Contender("ppo", "trained", several)
    assert found.performance.value == pytest.approx(0.2) and found.performance.n == 3
    assert found.performance.low == pytest.approx(0.2 - 4.303 * 0.1 / np.sqrt(3), abs=1e-3)  # t with 2 degrees
    assert found.gap.value == pytest.approx(0.2) and found.rates["rich"].value == pytest.approx(0.7)
    assert "ppo (3 seeds)" in str(comparison(found))


def test_intervals_over_seeds_keep_to_the_values_that_a_number_can_have() -> None:
    several = []
    for value in (0.1, 0.9):
        own = evaluation(1, {"rich": value, "poor": 0.1})
        rows = [row._replace(name="accuracy") if row.name == "rate" else row for row in own.rows]
        several.append(replace(own, rows=tuple(rows), rate="accuracy"))
    found = Contender("ppo", "trained", several)
    assert (found.rates["rich"].low, found.rates["rich"].high) == (0, 1)
    assert found.signed_gap is not None
    assert (found.signed_gap.estimate.low, found.signed_gap.estimate.high) == (-1, 1)
    assert found.gap.low == 0
    unknown = Contender("ppo", "trained", [evaluation(1, {"rich": value, "poor": 0.1}) for value in (0.1, 0.9)])
    assert unknown.rates["rich"].high > 1  # a rate of unknown range


def test_measures_have_their_names_and_noise_floors_in_the_table() -> None:
    own = evaluation(1, {"rich": 0.5, "poor": 0.4})
    rows = [row._replace(noise=0.09, limit=0.095) if row.section == "short-term" else row for row in own.rows]
    shown = str(comparison(Contender("ppo", "trained", [replace(own, rows=tuple(rows))])))
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "short-term: notion 0.1 [0.1, 0.1] ~0.09*" in lines and "long-term: distance 0.2 [0.2, 0.2]" in lines


def test_gaps_of_opposite_seeds_do_not_cancel() -> None:
    several = [evaluation(1, {"rich": 0.5 + sign * 0.4, "poor": 0.5}) for sign in (1, -1)]
    split = Contender("split", "trained", several)
    assert split.gap.value == pytest.approx(0.4)
    assert split.signed_gap is not None and split.signed_gap.estimate.value == pytest.approx(0)
    said = " ".join(told_changes([BASE, split], BASE))
    assert "Trainings disagree on who is worse off, so that signed gaps cancel: split." in said


def test_policies_without_training_are_compared_with_the_best_or_the_given_one() -> None:
    given: dict[str, Any] = {"episodes": 2, "parameters": {"horizon": 40}, "shuffles": 2}
    from fair_envs import compare, evaluate

    found = [evaluate("FairLending-v0", name, **given) for name in ("always", "max-reward", "random")]
    best, *others = sorted(found, key=lambda one: -one.performance.value)
    told = str(compare(found))
    for one in others:
        assert f"{one.policy} instead of {best.policy}: performance" in told
    assert f"Policies are compared with {best.policy}, which has the highest performance of" in told
    assert "About 12 intervals were looked at" in told
    assert "always instead of random: performance" in str(compare(found, reference="random"))


def test_a_comparison_is_saved_as_tables_and_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    comparison(BASE, contender("fair", 0.9, 0.7, 0.6)).save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    tables = {"comparison.md", "comparison.csv", "comparison.json"}
    assert names == {*tables, "evaluations.json", "price.png", "rates.png"}
    assert "| ppo | 1 [1, 1] | 0.4 [0.4, 0.4]" in (tmp_path / "comparison.md").read_text()
    plain = json.loads((tmp_path / "comparison.json").read_text())
    assert plain["numbers"]["fair"]["gap"]["value"] == pytest.approx(0.1)
    assert "it takes from the better off" in plain["sentences"][0]


def test_the_price_of_fairness_shows_absolute_gaps_zero_and_what_is_within_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from fair_envs.assessment import plots

    kept: list[Any] = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: kept.append(figure))
    comparison(BASE, contender("turned", 1.0, 0.4, 0.7), contender("even", 1.0, 0.5, 0.5)).save(tmp_path)
    (axes,) = kept[0].axes
    assert axes.get_xlabel() == "absolute gap of rate"
    places = {line.get_label(): list(line.get_xdata()) for line in axes.lines}
    assert places["ppo"] == pytest.approx([0.4]) and places["turned"] == pytest.approx([0.3])
    assert [0, 0] in [list(line.get_xdata()) for line in axes.lines]  # the line at gap 0
    hollow = [line.get_label() for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert hollow == ["even"] and kept[0].legends[0].get_title().get_text() == "hollow: gap within noise"


def test_many_policies_are_rows_whose_columns_continue_in_further_tables() -> None:
    many = comparison(BASE, *(contender(f"fair-{k}", 0.9, 0.7, 0.6) for k in range(4)))
    few = comparison(*many.contenders[:4])
    own = [line for line in str(many).splitlines() if line.startswith("fair-3  ")]
    assert len(own) == 2 and max(map(len, own)) <= 120
    assert str(few).splitlines()[0].split() == ["number", "ppo", "fair-0", "fair-1", "fair-2"]
    wide = TableOfRows({name: {f"column {k}": "x" * 30 for k in range(5)} for name in ("a", "b")}, "policy")
    assert list(wide.parts(120)) == [["column 0", "column 1", "column 2"], ["column 3", "column 4"]]
    assert [len(part) for part in wide.parts(10)] == [1] * 5  # too narrow for any


# Runs -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Train PPO with two seeds and A-PPO with one, briefly."""
    pytest.importorskip("stable_baselines3")
    from fair_envs.baselines.methods import method_for

    folder, found = tmp_path_factory.mktemp("runs"), []
    for name, seed in (("ppo", 0), ("ppo", 1), ("a-ppo", 0)):
        given = {"env_id": "FairLending-v0", "parameters": {"horizon": 50}, "seed": seed, "steps": 64}
        method = method_for(name, "FairLending-v0", given)
        small = {"lanes": 2, "n_steps": 16, "batch_size": 16}
        known = {one.name for one in method.fields()}
        given |= {name: value for name, value in small.items() if name in known}
        method.train(method.configured({"algorithm": name, **given}), out=folder / f"{name}-{seed}")
        found.append(folder / f"{name}-{seed}")
    return found


QUICK: dict[str, Any] = {"episodes": 2, "shuffles": 2}


def test_runs_are_grouped_by_method_and_scripted_policies_stand_beside(runs: list[Path], tmp_path: Path) -> None:
    from fair_envs import compare

    found = compare(runs, out=tmp_path / "out", **QUICK)
    assert [(one.name, one.kind, len(one.evaluations)) for one in found.contenders] == [
        ("ppo", "trained", 2),
        ("a-ppo", "trained", 1),
        *((name, "scripted", 1) for name in LENDERS),
        ("random", "random", 1),
    ]
    assert found.rate == "true positive rate"
    assert [one.name for one in found.contenders if one.uses_truth] == ["equal-opportunity"]  # it knows hidden scores
    assert found.contenders[0].evaluations[0].about["parameters"]["horizon"] == 50
    assert (tmp_path / "out" / "comparison.md").read_text().startswith("# FairLending-v0")


def test_an_interrupted_comparison_goes_on_where_it_stopped(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from fair_envs import assessment, compare
    from fair_envs.experiments import evaluations

    played: list[str] = []
    evaluate = assessment.evaluate

    def counted(env: Any, policy: Any, **given: Any) -> Any:
        played.append(str(policy))
        if len(played) == 2:
            raise KeyboardInterrupt
        return evaluate(env, policy, **given)

    monkeypatch.setattr(evaluations, "evaluate", counted)
    given: dict[str, Any] = {**QUICK, "seed": 77, "policies": ["random"]}
    with pytest.raises(KeyboardInterrupt):
        compare(runs[:2], **given)
    first = compare(runs[:2], **given)
    assert [Path(name).name for name in played] == ["ppo-0", "ppo-1", "ppo-1", "random"]
    again = compare(runs[:2], **given)
    assert str(again) == str(first) and played[4:] == ["random"]  # nowhere to keep it without `out`


def test_a_run_that_has_changed_is_evaluated_again(runs: list[Path]) -> None:
    from fair_envs.experiments.evaluations import evaluation_cell

    given: dict[str, Any] = {"task": "FairLending-v0", "episodes": 2, "seed": 0}
    before = evaluation_cell("FairLending-v0", str(runs[2]), {}, **given)
    assert before.key == evaluation_cell("FairLending-v0", str(runs[2]), {}, **given).key
    (runs[2] / "note.txt").write_text("changed")
    assert before.key != evaluation_cell("FairLending-v0", str(runs[2]), {}, **given).key


def test_an_own_environment_whose_code_or_task_has_changed_is_evaluated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gymnasium as gym

    from fair_envs.experiments.evaluations import evaluation_cell
    from fair_envs.tasks import TASKS, Task, add_task

    source = (Path(__file__).parent / "assessment" / "office.py").read_text()
    (tmp_path / "changing_office.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    name = "ChangingOffice-v0"
    gym.register(name, entry_point="changing_office:Office")
    given: dict[str, Any] = {"task": name, "episodes": 2, "seed": 0}
    try:
        before = evaluation_cell(name, "random", {}, **given)
        assert before.key == evaluation_cell(name, "random", {}, **given).key
        add_task(Task(env_id=name, short="demographic_parity", rate="demographic_parity"))
        task = evaluation_cell(name, "random", {}, **given)
        assert task.key != before.key and task.measured["rate"] == "selection rate"
        (tmp_path / "changing_office.py").write_text(source + "\n# changed")
        assert task.key != evaluation_cell(name, "random", {}, **given).key
    finally:
        gym.registry.pop(name)
        TASKS.pop(name, None)


def test_what_cannot_be_compared_is_rejected(runs: list[Path], tmp_path: Path) -> None:
    from fair_envs import compare

    with pytest.raises(TypeError, match=r"runs must be folders .*, got int; save a model and give its zip in policies"):
        compare([3])
    with pytest.raises(ValueError, match="runs must be a list of folders"):
        compare(str(runs[0]))
    with pytest.raises(ValueError, match="runs must have at least one folder, file of eval"):
        compare([])
    with pytest.raises(FileNotFoundError, match="which has none"):
        compare([tmp_path])
    with pytest.raises(FileNotFoundError, match="which does not exist"):
        compare([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match=r"got '\S+config.json', a file of a run; use its folder, \S+ppo-0"):
        compare([runs[0] / "config.json"])
    with pytest.raises(ValueError, match=r"a table; use \S+evaluations.json"):
        (tmp_path / "comparison.json").write_text("{}")
        compare([tmp_path / "comparison.json"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps({"algorithm": "ppo", "env_id": "FairHiring-v0", "parameters": {}}))
    with pytest.raises(ValueError, match="runs must be of one environment, got FairLending-v0, FairHiring-v0"):
        compare([runs[0], other])
    again = tmp_path / "again"
    shutil.copytree(runs[1], again)
    with pytest.raises(
        ValueError, match=r"runs must have ppo with seed 1 once, got it 2 times; .*: \S+ppo-1, \S+again"
    ):
        compare([*runs[:2], again], policies=[], **QUICK)


# Stored evaluations ---------------------------------------------------------------------------------------------------


@pytest.fixture
def unplayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to play fail."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("it played")

    monkeypatch.setattr("fair_envs.experiments.evaluations.evaluate", fail)


def test_a_run_whose_task_is_another_one_now_is_not_called_damaged(runs: list[Path], tmp_path: Path) -> None:
    from fair_envs.baselines.methods import method_of
    from fair_envs.baselines.runs import Run

    run = tmp_path / "run"
    shutil.copytree(runs[0], run)
    kept = json.loads((run / "task.json").read_text())
    assert kept["rate"] == "true positive rate" and kept["groups"] == ["advantaged", "disadvantaged"]

    def fail(_: Any) -> None:
        raise RuntimeError("another shape")

    for task, told in (
        ({**kept, "groups": ["man", "woman"]}, "with another task .*man, woman.* got the task"),
        (kept, "damaged"),
    ):
        (run / "task.json").write_text(json.dumps(task))
        with pytest.raises(ValueError, match=told):
            Run.open(run).take_up(fail)
    (run / "task.json").write_text(json.dumps({**kept, "rate": "selection rate"}))
    method = method_of(run)
    with pytest.raises(ValueError, match="with another task"):
        method.train(method.load(run)[1], out=run, resume=True)
    (run / "task.json").unlink()  # as in older runs
    method.train(method.load(run)[1], out=run, resume=True)


@pytest.mark.usefixtures("unplayed")
def test_an_unknown_policy_or_reference_is_rejected_before_anything_is_played(runs: list[Path]) -> None:
    from fair_envs import compare

    with pytest.raises(ValueError, match=r"policy must be 'random', .*, got 'foo'"):
        compare(runs[:1], policies=["foo"], seed=99)
    with pytest.raises(ValueError, match="reference must be one of 'ppo', 'random', got 'foo'"):
        compare(runs[:1], policies=["random"], reference="foo", seed=99)


@pytest.fixture(scope="module")
def compared(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    """Compare the runs once."""
    from fair_envs import compare

    folder = tmp_path_factory.mktemp("compared")
    return compare(runs, out=folder, **QUICK), folder / "evaluations.json"


@pytest.mark.usefixtures("unplayed")
def test_the_evaluations_of_a_comparison_give_the_same_comparison_without_runs(
    compared: tuple[Comparison, Path], tmp_path: Path
) -> None:
    from fair_envs import compare

    first, file = compared
    again = compare([file], out=tmp_path)
    assert str(again) == str(first) and again.about == first.about
    assert (tmp_path / "evaluations.json").read_bytes() == file.read_bytes()
    assert (tmp_path / "comparison.md").read_text() == (file.parent / "comparison.md").read_text()


def test_a_stored_evaluation_in_a_comparison_has_what_it_uses_and_is_small(compared: tuple[Comparison, Path]) -> None:
    lines = compared[1].read_text().splitlines()[1:-1]
    assert len(lines) == 3 + len(LENDERS) + 1 and max(map(len, lines)) < 6_000  # 80 of them are less than 500 kB
    assert not any("predictive_parity" in line or "equalized_odds" in line for line in lines)


def test_an_evaluation_says_which_training_it_is_about_but_not_where(runs: list[Path]) -> None:
    import fair_envs

    found = fair_envs.evaluate("FairLending-v0", runs[1], episodes=1, shuffles=0, name="mine")
    run = found.about["run"]
    assert (run["method"], run["seed"], run["settings"]["n_steps"]) == ("ppo", 1, 16)
    assert found.about["parameters"]["horizon"] == 50 and found.about["kind"] == "trained"
    assert str(runs[1].parent) not in json.dumps(found.as_dict())


@pytest.mark.usefixtures("unplayed")
def test_files_are_labelled_by_method_and_settings_and_repeated_policies_are_one(
    compared: tuple[Comparison, Path], tmp_path: Path
) -> None:
    from fair_envs import compare

    stored = read(compared[1])
    for place, one in enumerate(stored[:2]):  # each with the scripted policies beside it
        run = {**one.about["run"], "settings": {**one.about["run"]["settings"], "gamma": 0.5 + place / 10}}
        save([replace(one, policy="some", about={**one.about, "run": run}), *stored[3:]], tmp_path / str(place))
    found = compare([tmp_path / "0" / "evaluation.json", tmp_path / "1" / "evaluation.json"])
    names = [one.name for one in found.contenders]
    assert names == ["ppo (gamma=0.5)", "ppo (gamma=0.6)", *LENDERS, "random"]


def test_a_setting_that_is_newer_than_a_run_has_its_default_there(
    compared: tuple[Comparison, Path], tmp_path: Path
) -> None:
    from fair_envs import compare

    first, second, *_ = read(compared[1])
    settings = first.about["run"]["settings"]
    older = {name: value for name, value in settings.items() if name != "equivariance"}

    def names(given: Mapping[str, Any]) -> list[str]:
        run = {**first.about["run"], "settings": given}
        save([replace(first, about={**first.about, "run": run}), second], tmp_path)
        return [one.name for one in compare([tmp_path / "evaluation.json"]).contenders if one.kind == "trained"]

    assert names(older) == names(settings) == ["ppo"]
    assert names({**older, "penalty": "csp"}) == ["ppo"]  # a setting of fair-PPO, which ppo does not use
    assert names({**older, "equivariance": 0.5}) == ["ppo (equivariance=0.5)", "ppo (equivariance=0.0)"]


def test_runs_are_compared_with_stored_evaluations_on_their_episodes(
    runs: list[Path], compared: tuple[Comparison, Path], tmp_path: Path
) -> None:
    from fair_envs import compare

    some = [one for one in read(compared[1]) if one.about.get("run", {}).get("method") != "a-ppo"]
    save_compact(some, tmp_path / "some.json")
    found = compare([tmp_path / "some.json", runs[2]])
    assert found.about["episodes"] == 2 and "a-ppo" in found.rows
    assert found.rows["a-ppo"]["performance"].value == pytest.approx(
        compared[0].rows["a-ppo"]["performance"].value, rel=1e-5
    )


@pytest.mark.usefixtures("unplayed")
def test_evaluations_that_were_made_differently_are_rejected(
    runs: list[Path], compared: tuple[Comparison, Path], tmp_path: Path
) -> None:
    from fair_envs import compare

    file = compared[1]
    stored = read(file)
    with pytest.raises(ValueError, match=r"must be made with episodes=5, as asked for, got episodes=2 of ppo"):
        compare([file], episodes=5)
    with pytest.raises(ValueError, match="must be made with task='FairHiring-v0', as asked for"):
        compare([file], task="FairHiring-v0")
    with pytest.raises(ValueError, match=r"must be made with interest_rate=2, got 1\.0 of ppo with seed 0"):
        compare([compared[1]], parameters={"interest_rate": 2})
    assert compare([compared[1]], parameters={"interest_rate": 1.0}).env_id == "FairLending-v0"  # its default
    with pytest.raises(ValueError, match="must be made with horizon=60, got 50 of ppo with seed 0"):
        compare([file], parameters={"horizon": 60})
    with pytest.raises(ValueError, match="runs must have ppo with seed 0 once, got it 2 times"):
        compare([file, runs[0]])
    other = replace(stored[0], about={**stored[0].about, "seed": 3})
    save_compact([other], tmp_path / "other.json")
    with pytest.raises(
        ValueError, match=r"other.json must be made with seed=\d+, as the other evaluations, got seed=3"
    ):
        compare([file, tmp_path / "other.json"])
    save_compact([replace(stored[0], about={"run": "runs/ppo-1"})], tmp_path / "old.json")
    with pytest.raises(ValueError, match=r"old.json must say what was evaluated, got one of 'ppo' without task"):
        compare([tmp_path / "old.json"])
    save_compact([stored[0], replace(stored[1], groups=("a", "b"))], tmp_path / "groups.json")
    with pytest.raises(ValueError, match="runs must be measured alike, got the groups 'advantaged, disadvantaged' and"):
        compare([tmp_path / "groups.json"], policies=[])
    rows = [row._replace(name="other") if row.section == "short-term" else row for row in stored[1].rows]
    save_compact([stored[0], replace(stored[1], rows=tuple(rows))], tmp_path / "task.json")
    with pytest.raises(ValueError, match=r"got the short-term measure '.*' and 'other'; compare each alone"):
        compare([tmp_path / "task.json"], policies=[])
    with pytest.raises(ValueError, match=r"reference must be one of 'ppo', 'a-ppo', .*, got 'pp'"):
        compare([file], reference="pp")
    (tmp_path / "none.json").write_text("{}")
    with pytest.raises(ValueError, match=r"none.json is damaged"):
        compare([tmp_path / "none.json"])


@pytest.mark.usefixtures("unplayed")
def test_a_note_says_which_learned_trade_off_is_played(compared: tuple[Comparison, Path], tmp_path: Path) -> None:
    from fair_envs import compare

    (first, *_) = read(compared[1])
    settings = {**first.about["run"]["settings"], "followed": "knee"}
    run = {**first.about["run"], "method": "pcn", "settings": settings}
    save_compact([replace(first, about={**first.about, "run": run})], tmp_path / "some.json")
    (note,) = compare([tmp_path / "some.json"], policies=[]).notes
    assert note.startswith("pcn plays one of the trade-offs that it learned, 'knee'")


def test_a_comparison_says_what_good_numbers_do_not_show(tmp_path: Path) -> None:
    from fair_envs import compare, evaluate

    given: dict[str, Any] = {"episodes": 2, "parameters": {"horizon": 10}, "twins": False, "shuffles": 0}
    found = [evaluate("FairAttention-v0", name, **given) for name in ("round-robin", "proportional")]
    save_compact(found, tmp_path / "some.json")
    assert compare([tmp_path / "some.json"]).notes == [TASKS["FairAttention-v0"].caution]


@pytest.mark.usefixtures("unplayed")
def test_evaluations_with_other_parameters_are_noted(compared: tuple[Comparison, Path], tmp_path: Path) -> None:
    from fair_envs import compare

    stored = read(compared[1])
    parameters = {**stored[0].about["parameters"], "horizon": 70}
    changed = replace(stored[0], about={**stored[0].about, "parameters": parameters})
    save_compact([changed, *stored[1:]], tmp_path / "some.json")
    (note,) = compare([tmp_path / "some.json"]).notes
    assert note.startswith("The evaluations differ in the environment's horizon (70, 50)")


def test_long_names_leave_room_for_the_plot(tmp_path: Path) -> None:
    """Paths of runs are names of policies; Matplotlib warns, which is an error here, if axes have no room."""
    long = "/".join(["a-folder-with-a-long-name"] * 6)
    comparison(BASE, contender(f"{long}/one", 1.0, 0.4, 0.7), contender(f"{long}/two", 1.0, 0.4, 0.7)).save(tmp_path)
    assert (tmp_path / "rates.png").exists() and (tmp_path / "price.png").exists()
