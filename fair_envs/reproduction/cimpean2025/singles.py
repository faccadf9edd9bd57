"""Numbers of single policies, from the row of a seed, and what follows from them."""

from collections.abc import Mapping

import numpy as np

from fair_envs.experiments.seeds import Arm, SeedRow
from fair_envs.reproduction.cimpean2025.plays import CELLS, CHOSEN, GROUP_NOTIONS, LABELLED, MEMBER
from fair_envs.reproduction.cimpean2025.results import across, correlated
from fair_envs.support.aliases import Flags, Floats

CONFLICTS = (("IF", "CSC"), ("IF eq. 8", "CSC published"))  # pairs of individual notions whose ranks are compared
TESTS = (0, 1)
KINDS = np.arange(CELLS)


def of_policies(row: SeedRow, name: str, *, test: int) -> Floats:
    """Return a number of every tested policy of a seed, shape (policies,); NaN where it is undefined."""
    count = round(row.numbers["policies"])
    return np.array([row.numbers.get(f"policy {k}, test {test}: {name}", np.nan) for k in range(count)])


def per_step(row: SeedRow, name: str, *, test: int) -> Floats:
    """Return a measure of every policy per step, shape (policies,)."""
    return np.asarray(of_policies(row, f"total {name}", test=test) / of_policies(row, "steps", test=test))


def kinds_of(row: SeedRow, *, test: int) -> Floats:
    """Return the numbers of decisions of each kind, shape (policies, kinds)."""
    return np.stack([of_policies(row, f"kind {kind}", test=test) for kind in KINDS], axis=1)


def acted(counts: Floats) -> Floats:
    """Return the shares of decisions 1 from the numbers of decisions of each kind, shape (..., kinds)."""
    return np.asarray(counts[..., KINDS & CHOSEN > 0].sum(axis=-1) / counts.sum(axis=-1))


def most_rewarded(row: SeedRow) -> int:
    """Return the policy with the largest reward of an episode in the first test."""
    return int(np.argmax(of_policies(row, "total R", test=0)))


def decisions(row: SeedRow) -> Floats:
    """Return the numbers of decisions of each kind, shape (kinds,).

    They are those of the only policy of the seed in both tests, or of the most rewarded one in the second test.
    """
    every = [kinds_of(row, test=test) for test in TESTS]
    return np.asarray(every[0][0] + every[1][0] if len(every[0]) == 1 else every[1][most_rewarded(row)])


def desired(row: SeedRow) -> Floats:
    """Return the desired reward of every policy, shape (policies,); NaN for policies that follow none."""
    count = round(row.numbers["policies"])
    return np.array([row.numbers.get(f"policy {k}: desired 0", np.nan) for k in range(count)])


# Groups ---------------------------------------------------------------------------------------------------------------

RATES: Mapping[str, tuple[int, int]] = {"all": (0, 0), "labelled": (LABELLED, LABELLED), "others": (LABELLED, 0)}
"""The people of a rate of decisions, by the bits of a kind that are compared, and their value."""


def group_rates(counts: Floats, people: str) -> Floats:
    """Return the shares of people with decision 1, inside and outside the group; NaN without people.

    Args:
        counts: Numbers of decisions of each kind, shape (kinds,).
        people: One of `RATES`.
    """
    bits, value = RATES[people]
    chosen = [_among(counts, bits | MEMBER, value | member) for member in (MEMBER, 0)]
    return np.array([_share(own, KINDS & CHOSEN > 0) for own in chosen])


def base_rates(counts: Floats) -> Floats:
    """Return the shares of people with label 1, inside and outside the group."""
    groups = [_among(counts, MEMBER, member) for member in (MEMBER, 0)]
    return np.array([_share(own, KINDS & LABELLED > 0) for own in groups])


def _among(counts: Floats, bits: int, value: int) -> Floats:
    return np.where(KINDS & bits == value, counts, 0.0)


def _share(counts: Floats, which: Flags) -> float:
    every = counts.sum()
    return float(counts[which].sum() / every) if every else float("nan")


# Gaps beyond chance ---------------------------------------------------------------------------------------------------


def beyond_chance(row: SeedRow, notion: str, history: str = "") -> Flags:
    """Return which policies have a gap above that of `plays.QUANTILE` of the deals, in both tests.

    Args:
        row: The row of a seed.
        notion: The group notion.
        history: ``""``: the policies' own history; otherwise the name of the other one.
    """
    found = np.ones(round(row.numbers["policies"]), bool)
    for test in TESTS:
        gap = -(of_policies(row, f"{history} {notion}", test=test) if history else per_step(row, notion, test=test))
        limit = of_policies(row, f"{history} limit {notion}".strip(), test=test)
        found &= gap > limit
    return np.asarray(found)


def other_history(arm: Arm) -> str:
    """Return the name of the other history of an arm's gaps; "" if there is none."""
    return next((name for name in ("aligned", "misread") if f"{name} {GROUP_NOTIONS[0]}" in arm.names), "")


def of_correct_history(arm: Arm) -> str:
    """Return the prefix of gaps in the history that pairs each decision with its person: ``"aligned "`` or ``""``."""
    return "aligned " if other_history(arm) == "aligned" else ""


# Individual notions ---------------------------------------------------------------------------------------------------


def unrelated_consistency(counts: Floats) -> Floats:
    """Return the consistency of decisions that have no relation to the people, 0 to -0.5.

    Two such decisions differ with the probability 2 p (1 - p), where p is the share of decisions 1.

    Args:
        counts: Numbers of decisions of each kind, shape (..., kinds).
    """
    share = acted(counts)
    return -2 * share * (1 - share)


def conflicts(row: SeedRow) -> dict[str, float]:
    """Return rank correlations of individual notions over the policies of a seed.

    * ``IF~CSC``: one notion in one test with the other in the other test.
    * ``CSC published~share``: consistency with what it is if decisions have no relation to people, which depends on the
      share of decisions 1 alone, in the same test; ``IF eq. 8~share``: the same of individual fairness.
    """
    tests = [
        {name: per_step(row, name, test=test) for pair in CONFLICTS for name in pair}
        | {"share": unrelated_consistency(kinds_of(row, test=test))}
        for test in TESTS
    ]
    found = {f"{one}~{other}": across(tests, one, other) for one, other in CONFLICTS}
    for name in dict.fromkeys(name for pair in CONFLICTS for name in pair):
        found[f"{name}~share"] = float(np.mean([correlated(test[name], test["share"]) for test in tests]))
    return found


def distinct(arms: Mapping[str, Arm]) -> list[list[str]]:
    """Return the names of arms whose policies have the same rewards and decisions, together."""
    found: dict[tuple[tuple[float, ...], ...], list[str]] = {}
    for name, arm in arms.items():
        own = tuple(
            tuple([*of_policies(row, "total R", test=test), *kinds_of(row, test=test).ravel()])
            for row in arm.rows
            for test in TESTS
        )
        found.setdefault(own, []).append(name)
    return list(found.values())
