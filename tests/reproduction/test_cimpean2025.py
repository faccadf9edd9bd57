"""The FAReL study: its cells, its claims on numbers made by hand, and the whole of it at a tiny scale."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from fair_envs.experiments import figures
from fair_envs.experiments.seeds import Arm, SeedRow
from fair_envs.reproduction.cimpean2025 import report as paper
from fair_envs.reproduction.cimpean2025 import sections, singles
from fair_envs.reproduction.cimpean2025.arms import paired
from fair_envs.reproduction.cimpean2025.jobs import (
    AS_PRINTED,
    IDENTICAL,
    LEARNERS,
    RANDOM,
    SCALES,
    SCRIPTED,
    UNPLANNED,
    Key,
    Learner,
    Scale,
    Simple,
    TradeOffCell,
    cells,
)
from fair_envs.reproduction.cimpean2025.plays import GROUP_NOTIONS, YARDSTICKS
from fair_envs.reproduction.cimpean2025.published import DISTANCES, Setting, World, tables
from fair_envs.reproduction.claims import Claim
from fair_envs.reproduction.study import PRINTED, REPAIRED
from tests.helpers import markdown_rows
from tests.jobs import run_here

SEEDS = 5
SCALE = Scale(
    seeds=SEEDS,
    steps=1,
    steps_discounted=1,
    steps_printed=1,
    learner_steps=1,
    episodes=2,
    reference_episodes=2,
    decisions=10,
    tables=tuple(range(1, 22)),
    printed=(4, 5, 16, 17),
    training={},
)
WORLDS: tuple[World, ...] = ("hiring", "fraud")
BEST = "correct decision"
Numbers = Mapping[str, float]


def test_the_small_scale_runs_every_setting_of_hiring_and_what_tells_whether_fraud_is_learned() -> None:
    small = cells(SCALES["small"])
    settings = {key for key in small if isinstance(key, Setting)}
    every = {own for groups in tables().values() for own in groups.values()}
    learned = {*tables()[17].values()}
    assert {s for s in settings if not s.printed} == {s for s in every if s.world == "hiring" or s in learned}
    assert {s for s in settings if s.printed} == {s.as_printed for n in (4, 5, 17) for s in tables()[n].values()}
    assert all(len(group) == 5 for group in small.values())
    assert all(cell.as_dict()["seed"] > 2 for group in small.values() for cell in group)  # earlier runs had 0 to 2
    identities = [cell.identity for group in small.values() for cell in group]
    assert len(set(identities)) == len(identities) and len({str(key) for key in small}) == len(small)


def test_the_full_scale_has_the_papers_protocol_for_all_settings_and_the_repair_too() -> None:
    full = SCALES["full"]
    assert (full.seeds, full.steps, full.printed) == (10, 500_000, full.tables)
    trainings = [cell for group in cells(full).values() for cell in group if isinstance(cell, TradeOffCell)]
    assert len(trainings) == 2 * 62 * 10
    printed = next(cell for cell in trainings if cell.setting.printed)
    assert printed.settings().updates == 20 and printed.settings().keep == "heap"


def test_every_gap_over_many_decisions_has_a_hundred_thousand_of_them() -> None:
    run: Mapping[str, Sequence[World]] = {"small": ("hiring",), "full": WORLDS}
    for scale, world in ((scale, world) for scale, worlds in run.items() for world in worlds):
        found = cells(SCALES[scale])
        (setting,) = tables()[4 if world == "hiring" else 16].values()
        (one, *_), (null, *_) = found[setting], found[Simple(world, IDENTICAL)]
        assert one.as_dict()["decisions"] == null.as_dict()["decisions"] == 100_000


def test_learners_as_printed_have_their_own_steps_and_all_identical_policies_make_many_decisions() -> None:
    found = cells(replace(SCALE, steps_printed=7))
    assert found[Learner("hiring", AS_PRINTED)][0].as_dict()["steps"] == 7
    assert {found[Simple("hiring", IDENTICAL, own)][0].as_dict()["decisions"] for own in (False, True)} == {10}


# ---------------------------------------------------------------------------- claims, on numbers made by hand


def seeds(values: Numbers | Sequence[Numbers], label: str) -> Arm:
    """Return an arm with these numbers and little noise, or with the numbers of each seed."""
    rows = []
    for seed in range(SEEDS):
        own = dict(values if isinstance(values, Mapping) else values[seed])
        if isinstance(values, Mapping):
            own = {name: value + 0.001 * (seed - 2) for name, value in own.items()}
        rows.append(SeedRow(arm=label, seed=seed, job=f"{label} {seed}", code="c", seconds=1.0, numbers=own))
    return Arm(label, rows)


def level(reward: float, **others: float) -> dict[str, float]:
    """Return the numbers of a policy with a reward."""
    names = ("total R", "top total R", "first total R", "fair total R", "R", "top R")
    measures = dict.fromkeys((*GROUP_NOTIONS, "IF", "CSC", "IF eq. 8", "CSC published"), -0.1)
    noise = {f"{kind}noise {name}": 0.05 for name in GROUP_NOTIONS for kind in ("", "misread ", "aligned ")}
    noise |= {"top noise SP": 0.05, "fair noise SP": 0.05, "fair SP": -0.05, "still fair": 1.0, "fair is top": 0.0}
    noise |= {f"SP at {window}": -0.1 for window in YARDSTICKS} | {f"square SP at {w}": 0.01 for w in YARDSTICKS}
    misread = {f"misread {name}": -0.1 for name in GROUP_NOTIONS}
    spans = {f"{span} {name}": -10.0 for span in ("best", "total", "worst") for name in measures}
    spans |= {f"{span} R": reward for span in ("best", "worst")}
    spans |= {f"trained {span} R": reward for span in ("best", "total", "worst")} | {
        "found": 9.0,
        "acted": 0.25,
        "top acted": 0.25,
    }
    levels = {**dict.fromkeys(names, reward), **measures, **noise, **misread, **spans, "top SP": -0.1, "policies": 4.0}
    curve = {f"learned total R@{k}": reward * min(k / 4, 1) for k in range(1, 17)}
    curve |= {f"{name}@{k}": 10.0 for name in ("learned R", "remembered") for k in range(1, 17)}
    return levels | curve | policies_of(levels | others) | {"steps": 10.0} | others


KINDS = (30.0, 10.0, 5.0, 55.0, 20.0, 20.0, 10.0, 50.0)  # numbers of decisions, by kind


def policies_of(levels: Numbers) -> dict[str, float]:
    """Return the numbers of four single policies with the levels of all."""
    measures = ("R", *GROUP_NOTIONS, "IF", "CSC", "IF eq. 8", "CSC published")
    own = {f"total {name}": 10.0 * levels[name] for name in measures} | {"steps": 10.0}
    own["total R"] = levels["total R"]
    own |= {f"kind {k}": number for k, number in enumerate(KINDS)}
    own |= {
        f"{kind}{what} {name}": 0.05
        for kind in ("", "misread ")
        for what in ("noise", "limit")
        for name in GROUP_NOTIONS
    }
    own |= {f"misread {name}": -0.1 for name in GROUP_NOTIONS}
    found = {f"policy {k}, test {h}: {name}": value for k in range(4) for h in (0, 1) for name, value in own.items()}
    return found | {f"policy {k}: desired 0": 9.0 for k in range(4)}


def ranked(**totals: Sequence[float]) -> dict[str, float]:
    """Return episode sums of four policies, the same in both tests."""
    return {
        f"policy {k}, test {h}: total {name.replace('_', ' ')}": value
        for name, values in totals.items()
        for k, value in enumerate(values)
        for h in (0, 1)
    }


@cache
def usual(reward: float, label: str) -> Arm:
    """Return an arm with a reward."""
    return seeds(level(reward), label)


def report(given: Mapping[Any, Numbers | Sequence[Numbers]] | None = None, *, learned: bool = True) -> paper.Report:
    """Return a report: random policies earn 0, constant ones 4, the best scripted ones 10, and trainings 8 or 3."""
    arms: dict[Key, Arm] = {}
    for key in cells(SCALE):
        reward = {RANDOM: 0.0, BEST: 10.0}.get(key.name, 4.0) if isinstance(key, Simple) else 8.0 if learned else 3.0
        arms[key] = seeds(given[key], str(key)) if given and key in given else usual(reward, str(key))
    return paper.Report(name="small", scale=SCALE, arms=arms, out=Path())


def claim_of(made: paper.Report, words: str) -> Claim:
    (claim,) = [claim for claim in made.claims() if words in claim.text]
    return claim


def verdict_of(made: paper.Report, words: str, method: str = REPAIRED) -> str:
    return claim_of(made, words).verdict(method).split(" (")[0].split(". ")[0]


def default(world: World) -> Setting:
    return tables()[5 if world == "hiring" else 17]["HEOM"]


def pairs(value: float) -> dict[str, float]:
    return dict.fromkeys(sections.PAIRS, value)


def test_group_notions_go_together_if_they_do_so_more_than_for_identical_policies() -> None:
    (setting,) = tables()[4].values()
    null: Key = Simple("hiring", IDENTICAL)
    apart = report({setting: level(8, **pairs(0.4)), null: level(0, **pairs(0.0))})
    assert verdict_of(apart, "go together") == "Holds"
    same = report({setting: level(8, **pairs(0.0)), null: level(0, **pairs(0.0))})
    assert verdict_of(same, "go together") == "Undecided"
    one = report({setting: level(8, **{**pairs(0.4), "SP~PE": -0.2}), null: level(0, **pairs(0.0))})
    assert verdict_of(one, "go together") == "Does not hold"


def test_a_history_that_turns_the_order_of_reliable_gaps_tells_nothing() -> None:
    (setting,) = tables()[4].values()

    def made(again: float, misread: float) -> paper.Report:
        found = {f"{name}~{name}": again for name in GROUP_NOTIONS}
        return report({setting: level(8, **found, **{f"{name}~misread {name}": misread for name in GROUP_NOTIONS})})

    assert verdict_of(made(0.9, 0.9), "still show", PRINTED) == "Holds"
    assert verdict_of(made(0.9, -0.2), "still show", PRINTED) == "Does not hold"
    assert verdict_of(made(0.2, -0.2), "still show", PRINTED) == "Undecided"


@pytest.mark.parametrize("world", WORLDS)
def test_individual_notions_conflict_if_their_ranks_are_opposite_on_average_over_settings(world: World) -> None:
    settings = {own for groups in tables().values() for own in groups.values() if own.world == world}
    for sign, expected in ((-1, "Holds"), (1, "Does not hold")):
        rising, turned = [-4.0, -3.0, -2.0, -1.0], [-4.0 * sign, -3.0 * sign, -2.0 * sign, -1.0 * sign]
        numbers = ranked(**{"IF": rising, "CSC": turned, "IF eq. 8": rising, "CSC published": turned})
        found: dict[Key, Numbers] = {own: level(8, **numbers) for own in settings}
        found[default(world)] = level(8)  # undefined there
        made = report(found)
        assert verdict_of(made, f"conflict ({world})") == expected


def test_rounding_errors_have_neither_ranks_nor_a_difference() -> None:
    groups = tables()[17]
    tiny = ranked(IF=[-1e-13, -2e-13, -3e-13, -4e-13], CSC=[-4.0, -3.0, -2.0, -1.0])
    none = {own: level(8, **tiny, IF=-1e-13 * k) for k, own in enumerate(groups.values(), 1)}
    made = report(none)
    row = made.arms[groups["HEOM"]].rows[2]
    assert np.isnan(singles.conflicts(row)["IF~CSC"])
    exact = {own: [dict(numbers) for _ in range(SEEDS)] for own, numbers in none.items()}  # no noise between seeds
    assert claim_of(report(exact), "HEOM and HMOM (fraud)").outcomes[REPAIRED]["by violations"].holds is None


@pytest.mark.parametrize(
    ("words", "number", "shorter", "longer"),
    [
        ("short windows (hiring)", 10, "100", "1000"),
        ("short windows (fraud)", 19, "100", "1000"),
        ("forgotten faster (hiring)", 11, "gamma 0.9", "gamma 1.0"),
        ("forgotten faster (fraud)", 20, "gamma 0.9", "gamma 1.0"),
        ("removes more decisions (hiring)", 12, "theta 0.001", "theta 0.00001"),
        ("removes more decisions (fraud)", 21, "theta 0.001", "theta 0.00001"),
    ],
)
def test_a_history_matters_if_gaps_are_larger_where_it_forgets_more(
    words: str, number: int, shorter: str, longer: str
) -> None:
    groups = tables()[number]
    large = level(8, SP=-0.3, IF=-0.3, CSC=-0.3, **{"square SP at 500": 0.2})
    small = level(8, SP=-0.1, IF=-0.1, CSC=-0.1, **{"square SP at 500": 0.05})
    own = {default("hiring" if "hiring" in words else "fraud"): level(8, **{"SP at 100": -0.3})}
    assert verdict_of(report({**own, groups[shorter]: large, groups[longer]: small}), words) == "Holds"
    turned = report({groups[shorter]: small, groups[longer]: large})
    assert verdict_of(turned, words).startswith("Does not hold")
    by_chance = level(8, SP=-0.3, IF=-0.3, CSC=-0.3, **{"square SP at 500": 0.05})
    claim = claim_of(report({groups[shorter]: by_chance, groups[longer]: small}), words)
    assert claim.outcomes[REPAIRED]["SP"].holds and claim.outcomes[REPAIRED][paper.POLICIES].holds is None


def test_biases_make_less_fair_if_all_widen_the_gap() -> None:
    biased = [key for key in cells(SCALE) if isinstance(key, Setting) and key.bias != "none" and key.world == "hiring"]
    wider = {setting: level(8, SP=-0.2, **{paper.SQUARE: 0.04}) for setting in biased}
    assert verdict_of(report(wider), "statistical parity (hiring)") == "Holds"
    wider[biased[0]] = level(8, SP=-0.05, **{paper.SQUARE: 0.0})
    assert verdict_of(report(wider), "statistical parity (hiring)") == "Does not hold"


def test_populations_make_less_fair_if_both_widen_the_gap() -> None:
    groups = tables()[6]
    names = ("gender", "nationality and gender")
    wide, narrow = level(8, SP=-0.2, **{paper.SQUARE: 0.04}), level(8, SP=-0.05, **{paper.SQUARE: 0.0})
    assert verdict_of(report(dict.fromkeys((groups[name] for name in names), wide)), "Populations") == "Holds"
    assert verdict_of(report(dict.fromkeys((groups[name] for name in names), narrow)), "Populations") == "Does not hold"
    by_chance = level(8, SP=-0.2)
    outcomes = claim_of(report(dict.fromkeys((groups[name] for name in names), by_chance)), "Populations").outcomes
    assert outcomes[REPAIRED]["gap"].holds and outcomes[REPAIRED]["mean square above chance"].holds is None


def test_bray_curtis_is_worse_if_its_column_is() -> None:
    own = tables()[17]["Bray-Curtis"]
    made = report({own: level(8, **{"IF eq. 8": -0.6, "IF": -0.01}), own.as_printed: level(8, IF=-0.6)})
    claim = claim_of(made, "HEOM and HMOM (fraud)")
    assert claim.verdict(REPAIRED).startswith("Holds (by eq. 8); does not hold (by violations). By eq. 8, Bray")
    assert claim.outcomes[PRINTED]["by violations"].holds and not claim.outcomes[PRINTED]["by eq. 8"].holds


def test_fraud_is_harder_if_fewer_seeds_reach_half_of_the_span() -> None:
    poor = {key: level(3) for key in cells(SCALE) if isinstance(key, Setting | Learner) and key.world == "fraud"}
    assert claim_of(report(poor), "harder").verdict(REPAIRED) == "Holds"
    turned = {replace_world(key): level(3) for key in poor if isinstance(key, Learner)}
    outcomes = claim_of(report(turned), "harder").outcomes[REPAIRED]
    assert outcomes["DQN"].holds is False and outcomes["PCN"].holds is None
    assert claim_of(report(turned), "harder").verdict(REPAIRED).startswith("Does not hold. Its parts: undecided (PCN)")
    assert verdict_of(report(), "harder") == "Undecided"


def replace_world(key: Key) -> Key:
    return key._replace(world="hiring") if isinstance(key, Learner) else key


def test_only_settings_of_both_environments_tell_which_one_is_harder() -> None:
    settings = [key for key in cells(SCALE) if isinstance(key, Setting) and not key.printed]
    both = {*tables()[5].values(), *tables()[17].values()}
    rows = {key: level((8 if key.world == "hiring" else 2) if key in both else 50) for key in settings}
    assert claim_of(report(rows), "harder").outcomes[REPAIRED]["PCN"].holds


def test_the_most_rewarded_policy_is_chosen_in_one_half_and_measured_in_the_other() -> None:
    lucky, made = level(8, **{"first total R": 12, "top total R": 1}), report()
    arms = [seeds(own, "PCN") for own in (lucky, level(8))]
    assert made.reached("hiring", arms[1:], REPAIRED).all()
    assert not made.reached("hiring", arms, REPAIRED).any()


@pytest.mark.parametrize(("acted", "learned"), [(0.0, False), (0.005, False), (0.02, True), (0.995, False)])
def test_a_policy_that_nearly_always_does_the_same_has_not_learned_even_if_it_is_lucky(
    acted: float, learned: bool
) -> None:
    rows = [level(8.0, **{"top acted": acted}) for _ in range(SEEDS)]
    assert (report().reached("hiring", [seeds(rows, "PCN")], REPAIRED) == learned).all()


def test_a_method_is_judged_beside_the_policies_of_its_own_environment() -> None:
    published = {Simple("hiring", name, True): level(20) for name in ("always hires", "never hires", BEST)}
    made = report(published)
    learned = made.learned("hiring")
    assert "PCN" in learned and "PCN as printed" not in learned and "DQN, as printed" not in learned
    assert row(made.tasks_table("hiring"), "never hires, as printed")["R an episode"].startswith("20.000")


def test_half_of_the_span_and_more_than_the_constant_policy_are_those_of_the_same_environment() -> None:
    arms, wide = [seeds(level(8), "PCN")], report({Simple("hiring", BEST, True): level(40)})
    assert wide.reached("hiring", arms, REPAIRED).all() and not wide.reached("hiring", arms, PRINTED).any()
    for own, method, other in ((True, PRINTED, REPAIRED), (False, REPAIRED, PRINTED)):
        made = report({Simple("hiring", "never hires", own): level(9, **{"first total R": 1.0})})
        assert made.reached("hiring", arms, other).all() and not made.reached("hiring", arms, method).any()
    assert not report().reached("hiring", [seeds(level(4.5), "PCN")], REPAIRED).any()  # above 4, below half
    for made in (wide, report({Simple("hiring", "never hires", True): level(9)})):
        assert "PCN" in made.learned("hiring") and "PCN as printed" not in made.learned("hiring")


def test_each_method_is_judged_in_its_own_environments_on_which_one_is_harder() -> None:
    outcomes = claim_of(report({Simple("fraud", BEST, True): level(40)}), "harder").outcomes
    assert {name: of.holds for name, of in outcomes[PRINTED].items()} == {"PCN": True, AS_PRINTED: True}
    assert {of.holds for of in outcomes[REPAIRED].values()} == {None}


def test_a_learner_of_one_environment_says_nothing_on_which_one_is_harder() -> None:
    some = replace(SCALE, printed=(5,))
    arms = {key: arm for key, arm in report().arms.items() if key in cells(some)}
    outcomes = claim_of(replace(report(), scale=some, arms=arms), "harder").outcomes
    assert not outcomes[PRINTED] and set(outcomes[REPAIRED]) == {"PCN", *LEARNERS} - {AS_PRINTED}


def test_costs_and_curves_as_printed_are_shares_of_the_published_span() -> None:
    costly: dict[Key, Numbers] = {default("hiring").as_printed: level(24, **{"fair total R": 22})}
    wide = {**costly, Simple("hiring", BEST, True): level(40)}
    near = {**wide, Simple("hiring", "never hires", True): level(30)}
    assert verdict_of(report(wide), "little reward (hiring)", PRINTED) == "Holds"  # 5 % of 40
    assert verdict_of(report(near), "little reward (hiring)", PRINTED) == "Undecided"
    assert "constant policy, which has no gap SP, reaches 0.40" in claim_of(report(), "little reward (hiring)").evidence
    rising = level(8, **{f"learned total R@{k}": float(k) for k in range(1, 17)})
    slow = {Simple("fraud", BEST, True): level(100), default("fraud").as_printed: rising}
    assert verdict_of(report(slow), "rise and settle (fraud)", PRINTED) == "Holds"


def test_a_world_without_settings_as_printed_has_neither_references_nor_learners_as_printed() -> None:
    keys = cells(replace(SCALE, printed=(5,)))
    found = {world: {key for key in keys if key.world == world and getattr(key, "printed", False)} for world in WORLDS}
    assert found["fraud"] == set() and {type(key) for key in found["hiring"]} == {Setting, Simple, Learner}


def test_the_gate_runs_only_what_tells_whether_the_tasks_are_learned_and_its_rows_are_those_of_the_whole() -> None:
    gate, small = (cells(SCALES[name]) for name in ("gate", "small"))
    identities = {cell.identity for group in small.values() for cell in group}
    assert all(cell.identity in identities for group in gate.values() for cell in group)
    assert {key for key in gate if not isinstance(key, Setting)} == {k for k in small if not isinstance(k, Setting)}
    own = {setting for number in (5, 17) for setting in tables()[number].values()}
    assert {key for key in gate if isinstance(key, Setting)} == own | {setting.as_printed for setting in own}


def test_fairness_costs_little_if_a_fair_policy_earns_nearly_as_much() -> None:
    setting = default("hiring")
    assert verdict_of(report({setting: level(8, **{"fair total R": 7.9})}), "little reward (hiring)") == "Holds"
    dear = report({setting: level(8, **{"fair total R": 6})})
    assert verdict_of(dear, "little reward (hiring)") == "Does not hold"
    assert "20.0 [20.0, 20.0] %" in claim_of(dear, "little reward (hiring)").evidence


def test_a_cost_is_left_open_where_nothing_was_learned_or_a_seed_found_no_fair_policy() -> None:
    setting = default("hiring")
    assert verdict_of(report({setting: level(3)}), "little reward (hiring)") == "Undecided"
    rows = [level(8, **{"fair total R": 7.9 + 0.01 * k}) for k in range(SEEDS)]
    del rows[-1]["fair total R"]
    assert verdict_of(report({setting: rows}), "little reward (hiring)") == "Undecided"


def test_a_cost_is_left_open_if_a_constant_policy_earns_as_much() -> None:
    near = {default("hiring"): level(8, **{"fair total R": 7.9}), Simple("hiring", "never hires"): level(8)}
    claim = claim_of(report(near), "little reward (hiring)")
    assert (
        claim.verdict(REPAIRED).startswith("Undecided")
        and "constant policy, which has no gap SP, reaches 0.80" in claim.evidence
    )


def test_a_cost_is_left_open_if_the_chosen_policies_are_unfair_in_the_second_test() -> None:
    unfair = level(8, **{"fair total R": 7.9, "fair SP": -0.3})
    assert verdict_of(report({default("hiring"): unfair}), "little reward (hiring)") == "Undecided"


def test_learning_curves_settle_if_they_rise_and_then_stay() -> None:
    setting = default("fraud")
    assert verdict_of(report(), "rise and settle (fraud)") == "Holds"
    rising = level(8, **{f"learned total R@{k}": float(k) for k in range(1, 17)})
    assert verdict_of(report({setting: rising}), "rise and settle (fraud)") == "Does not hold"


# ------------------------------------------------------------------------------ a task that no method learned


def test_a_task_is_learned_if_a_method_reaches_half_of_the_span_and_beats_the_constant_policies() -> None:
    assert report().unlearned() == []
    assert report(learned=False).unlearned() == ["hiring", "fraud"]
    one = report({Learner("fraud", "PPO, credit per step"): level(8)}, learned=False)
    assert one.unlearned() == ["hiring"] and one.learned("fraud") == ["PPO, credit per step"]
    good_constant: dict[Key, Numbers] = {Simple("fraud", "never checks", own): level(8) for own in (False, True)}
    assert report(good_constant).unlearned() == ["fraud"]  # half of the span, but no more than without any rule


def test_policies_that_were_added_when_results_were_known_do_not_change_the_span() -> None:
    made = report({Simple("hiring", name): level(100) for name in UNPLANNED})
    assert made.span("hiring", REPAIRED) == report().span("hiring", REPAIRED)
    assert all(f"| {name} |" in made.tasks_table("hiring") for name in UNPLANNED)


def test_a_method_must_be_shown_to_learn_not_only_do_so_on_average() -> None:
    mixed = [level(reward) for reward in (10, 10, 10, 0, 0)]
    assert report({Learner("fraud", "PPO"): mixed}, learned=False).learned("fraud") == []


def test_claims_on_a_task_that_no_method_learned_are_undecided_and_the_page_says_so_first() -> None:
    groups = tables()[19]
    large, small = level(3, SP=-0.3), level(3, SP=-0.1)
    made = report({groups["100"]: large, groups["1000"]: small}, learned=False)
    claim = claim_of(made, "short windows (fraud)")
    assert claim.verdict(REPAIRED) == "Undecided. No method was shown to learn the task"
    assert made.question().startswith("**No method was shown to learn hiring or fraud**")
    assert report().question().startswith("The paper trains")


def test_every_table_has_random_constant_and_scripted_policies_and_noise_floors() -> None:
    made = report()
    for number in (1, 13):
        world: World = "hiring" if number == 1 else "fraud"
        for shown in (made.table(number), made.rates_table(world), made.tasks_table(world)):
            assert all(f"| {name} |" in shown for name in SCRIPTED[world])
    assert "0.100 [0.098, 0.102] (0.050)" in made.rates_table("fraud")


def test_the_papers_rows_stand_beside_training_episodes_and_its_similarities() -> None:
    own = tables()[5]["HEOM"].as_printed
    made = report({own: level(8, **{"trained best R": 33.0, "best CSC published": -7.0, "best CSC": -3.0})})
    (trained,) = [row for row in made.table(5).splitlines() if row.startswith("| HEOM | ours, as printed, in training")]
    assert "| 9 |  | 33.0/8.0/8.0 |" in trained
    (tested,) = [row for row in made.table(5).splitlines() if row.startswith("| HEOM | ours, as printed |")]
    assert [cell.strip() for cell in tested.split("|")][-2].startswith("-7.0/")


def test_extremes_in_training_are_those_of_all_seeds() -> None:
    rows = [level(8, **{"trained best R": 30.0 + k, "trained worst R": float(k)}) for k in range(SEEDS)]
    made = report({tables()[5]["HEOM"].as_printed: rows})
    assert row(made.table(5), "HEOM", 2)["R"] == "34.0/8.0/0.0"


def row(table: str, name: str, place: int = 0) -> dict[str, str]:
    """Return a row of a table by its heads: the one at a place among those with a name."""
    head, *rows = markdown_rows(table)
    return dict(zip(head, [own for own in rows if own[0] == name][place], strict=True))


def test_what_methods_learn_is_shown_beside_the_policies_of_their_own_environment() -> None:
    made = report(
        {
            Simple("hiring", BEST, True): level(40),
            Simple("hiring", "never hires", True): level(6),
            default("hiring").as_printed: level(8, **{"top acted": 0.6}),
        }
    )
    own = row(made.tasks_table("hiring"), "PCN as printed")
    assert own["hired"].startswith("0.60") and own["share of the span"].startswith("0.200")
    assert own["minus the best constant policy"].startswith("2.0") and own["shown to learn"] == "no"
    assert row(made.tasks_table("hiring"), "PCN")["shown to learn"] == "yes"
    assert "checked" in row(made.tasks_table("fraud"), "PCN")


def test_identical_policies_act_in_the_environment_of_each_method() -> None:
    numbers = {f"{pair}{half}": 0.0 for pair in (*pairs(0), "SP~SP") for half in ("", " same half")}
    ours = level(0, **numbers)
    made = report({Simple("hiring", IDENTICAL): ours, Simple("hiring", IDENTICAL, True): {**ours, "SP~EO": 0.7}})
    told = claim_of(made, "go together").evidence.split("Identical random policies: ")[1]
    first, second = told.split(f"; {PRINTED}: ")
    assert "SP~EO 0.00" in first and "SP~EO 0.70" in second
    assert "0.700" not in made.pairs_table("hiring")  # beside ours


def test_tables_have_policies_of_both_environments_and_learners() -> None:
    made = report()
    assert "| never hires |" in made.misread_table() and f"| {IDENTICAL} |" in made.misread_table()
    assert all(f"| {name} |" in made.rates_table("hiring") for name in ("DQN", "never hires, as printed"))
    assert f"| {IDENTICAL} | no training, repaired |" in made.table(5)


def test_histories_with_fewer_steps_are_a_limitation_if_there_are_any() -> None:
    made = report()
    assert "Discounted histories" not in made.limitations()
    assert "Discounted histories" in replace(made, scale=replace(SCALE, steps=2)).limitations()


def test_each_distance_has_its_own_consistency_and_one_row_of_training_episodes() -> None:
    (own,) = tables()[4].values()
    numbers = {
        f"{span} {name}, {distance}": -55.0 if (name, distance) == ("CSC published", "HMOM") else -1.0
        for span in ("best", "total", "worst")
        for name in ("IF", "IF eq. 8", "CSC", "CSC published")
        for distance in DISTANCES
    }
    lines = report({own: level(8, **numbers)}).table(4).splitlines()
    (line,) = [line for line in lines if line.startswith("| R:SP, HMOM | ours, repaired |")]
    assert [cell.strip() for cell in line.split("|")][-2] == "-55.0/-55.0/-55.0"
    assert [line.split("|")[1].strip() for line in lines if "in training" in line] == ["R:SP, HEOM"]


def test_the_picture_of_learning_has_the_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(figures, "course_plot", lambda panels, *_, **__: drawn.update(panels))
    curve = level(8, **{f"learned R@{k}": 1.0 for k in range(1, 17)})
    report({Learner(world, name): curve for world in WORLDS for name in LEARNERS})._learning_picture()
    assert set(drawn["hiring, R a step"]) == {*LEARNERS, "PCN", "PCN as printed"}
    assert set(drawn["hiring, R an episode"]) == {"PCN", "PCN as printed"}


# --------------------------------------------------------------------------------------------- single policies


def seed_row(numbers: Numbers) -> SeedRow:
    return SeedRow(arm="a", seed=0, job="j", code="c", seconds=1.0, numbers=dict(numbers))


def test_the_rates_of_both_groups_follow_from_the_kinds_of_decisions() -> None:
    counts = np.array(KINDS)
    assert singles.group_rates(counts, "all") == pytest.approx([0.6, 0.6])
    assert singles.group_rates(counts, "labelled") == pytest.approx([50 / 70, 55 / 65])
    assert singles.group_rates(counts, "others") == pytest.approx([10 / 30, 5 / 35])
    assert singles.base_rates(counts) == pytest.approx([0.7, 0.65])
    assert np.isnan(singles.group_rates(np.zeros(8), "all")).all()
    assert row(report().affected_table("hiring"), "PCN")["of the unqualified (PE)"].startswith("0.333 / 0.143: 0.190")


@pytest.mark.parametrize(("chosen", "expected"), [(0.0, 0.0), (0.5, -0.5), (0.9, -0.18), (1.0, 0.0)])
def test_decisions_without_relation_to_people_have_the_consistency_of_their_share(
    chosen: float, expected: float
) -> None:
    counts = np.array([[0, 1 - chosen, 0, chosen, 0, 0, 0, 0], [1 - chosen, 0, 0, 0, 0, 0, chosen, 0]])
    assert singles.unrelated_consistency(counts) == pytest.approx([expected, expected])


def test_a_gap_is_beyond_chance_if_it_is_in_both_tests() -> None:
    numbers = level(8) | ranked(SP=[-1.0, -1.0, -0.1, -0.1]) | {"policy 1, test 1: total SP": -0.1}
    numbers |= {f"policy {k}, test {h}: misread SP": -0.01 for k in (0, 1, 2) for h in (0, 1)}
    own = seed_row(numbers)
    assert singles.beyond_chance(own, "SP").tolist() == [True, False, False, False]
    assert singles.beyond_chance(own, "SP", "misread").tolist() == [False, False, False, True]
    made = report({default("hiring"): [numbers] * SEEDS})
    (line,) = [one for one in markdown_rows(made.fronts_table("hiring")) if one[0] == str(default("hiring"))]
    assert line[-2:] == ["5 of 20", "5 of 20"] and line[1:3] == ["4", "9.000 [9.000, 9.000]"]
    (single,) = [one for one in markdown_rows(made.fronts_table("hiring")) if one[0] == str(tables()[1]["SP"])]
    assert single[2] == ""  # R is not among its objectives


def test_settings_with_the_same_policies_are_counted_once() -> None:
    same, other = seeds(level(8), "a"), seeds(level(8) | {"policy 0, test 0: kind 0": 7.0}, "b")
    assert singles.distinct({"a": same, "b": same, "c": other}) == [["a", "b"], ["c"]]


def test_a_claim_on_policies_that_did_not_learn_the_task_says_so() -> None:
    poor: dict[Key, Numbers] = {default("hiring"): level(3)}
    claim = claim_of(report(poor), "statistical parity (hiring)")
    assert claim.verdict(REPAIRED).endswith(". PCN itself was not shown to learn the task")
    assert "PCN itself" not in claim_of(report(), "statistical parity (hiring)").verdict(REPAIRED)
    conflict = claim_of(report({default("hiring").as_printed: level(3)}), "conflict (hiring)").verdict(PRINTED)
    assert "follow from the share of people who are hired. PCN itself was not shown" in conflict


def test_the_same_seeds_are_compared_even_if_one_arm_lacks_some() -> None:
    rows = [{"total R": float(seed) + (5.0 if name == "a" else 0.0)} for name in "ab" for seed in range(SEEDS)]
    one, other = seeds(rows[:SEEDS], "a"), seeds(rows[SEEDS:], "b")
    found = paired(Arm("a", one.rows[1:]), other, "total R")
    assert (found.value, found.low, found.high) == (5, 5, 5)


def test_without_the_bound_of_half_the_span_only_the_constant_policy_must_be_beaten() -> None:
    arms = {world: [seeds(level(4.5), "PCN")] for world in WORLDS}
    assert not report().reached("fraud", arms["fraud"], REPAIRED).any()  # above 4, below half
    assert all(found.all() for found in report()._above_constant(arms, REPAIRED).values())
    poor: dict[Key, Numbers] = {default("fraud"): level(4.5)}
    assert "PCN repaired: hiring 5 of 5 [0.48, 1.00], fraud 5 of 5" in claim_of(report(poor), "harder").evidence


def test_the_claim_on_the_published_history_says_if_its_policies_did_not_learn() -> None:
    (setting,) = tables()[4].values()
    found = {f"{name}~{name}": 0.9 for name in GROUP_NOTIONS} | {
        f"{name}~misread {name}": 0.9 for name in GROUP_NOTIONS
    }
    made = report({setting: level(8, **found), default("hiring"): level(3)})
    assert claim_of(made, "still show").verdict(PRINTED) == f"Holds. {paper.UNLEARNED}"
    assert claim_of(report(learned=False), "still show").verdict(PRINTED).startswith("Undecided. No method was shown")


def test_gaps_of_the_published_history_are_shown_as_in_the_correct_one() -> None:
    aligned = {
        f"{prefix} {name}": value
        for prefix, value in (("aligned", -0.4), ("aligned noise", 0.03))
        for name in GROUP_NOTIONS
    }
    numbers = {
        f"policy {k}, test {h}: {name}": value for k in range(4) for h in (0, 1) for name, value in aligned.items()
    }
    numbers |= {f"policy {k}, test {h}: aligned limit SP": 0.06 for k in range(4) for h in (0, 1)}
    made = report({default("hiring").as_printed: level(8, **aligned, **numbers)})
    assert row(made.tasks_table("hiring"), "PCN as printed")["gap SP"].startswith("0.400")
    assert row(made.misread_table(), "PCN as printed")["SP"] == "0.400 (0.030) / 0.100 (0.050)"
    told = claim_of(made, "little reward (hiring)").evidence
    assert "In the correct one, 20 of 20 tested policies have a gap beyond chance in both tests" in told
    assert "PCN as printed" not in made.affected_table("hiring")  # whose persons are the next ones
    assert row(made.affected_table("fraud"), "PCN as printed")["checked"].startswith("0.600 / 0.600")


# ------------------------------------------------------------------------------------------------ the whole


@pytest.mark.long
def test_the_whole_study_runs_at_a_tiny_scale_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learning = {"first_episodes": 3, "episodes": 3, "updates": 1}
    tiny = replace(
        SCALE,
        seeds=2,
        steps=60,
        steps_discounted=60,
        steps_printed=60,
        learner_steps=60,
        decisions=20,
        tables=(5, 11),
        printed=(5,),
        training=learning,
        parameters={"horizon": 20},
    )
    monkeypatch.setitem(SCALES, "smoke", tiny)
    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", run_here)
    path = paper.main(scale="smoke", out=tmp_path / "study", jobs=1, progress=False)
    text = path.read_text()
    for words in (
        "single episodes and not bounds",
        "### Table 5",
        "### Table 11",
        "| HEOM | ours, repaired |",
        "always hires, as printed",
    ):
        assert words in text
    for name in ("gaps-5.png", "trade-offs-5.png", "history-11.png", "learning.png", "claims.json", "seeds.csv.gz"):
        assert (tmp_path / "study" / name).stat().st_size > 0
    again = paper.main(scale="smoke", out=tmp_path / "again", merge_from=[tmp_path / "study"], jobs=1, progress=False)
    assert again.read_text() == text
