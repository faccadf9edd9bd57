"""Numbers of single policies, from the row of a seed, and what follows from them."""

from collections.abc import Mapping

import numpy as np

from fair_envs.experiments.seeds import Arm, SeedRow
from fair_envs.reproduction.cimpean2025.plays import CHOSEN, GROUP_NOTIONS, KINDS, LABELLED, MEMBER, acted
from fair_envs.reproduction.cimpean2025.results import across, correlated
from fair_envs.support.aliases import Flags, Floats

CONFLICTS = (("IF", "CSC"), ("IF eq. 8", "CSC published"))  # pairs of individual notions whose ranks are compared
TESTS = (0, 1)


def of_policies(row: SeedRow, name: str, *, test: int | None = None) -> Floats:
    """Return a number of every tested policy of a seed, or of its tests; NaN where it is undefined.

    Args:
        row: The row of the seed.
        name: The number.
        test: The test; None: the number is not of a test.

    Returns:
        Shape (policies,).
    """
    place = "" if test is None else f", test {test}"
    count = round(row.numbers["policies"])
    return np.array([row.numbers.get(f"policy {k}{place}: {name}", np.nan) for k in range(count)])


def per_step(row: SeedRow, name: str, *, test: int) -> Floats:
    """Return a measure of every policy per step, shape (policies,)."""
    return np.asarray(of_policies(row, f"total {name}", test=test) / of_policies(row, "steps", test=test))


def gap_of(row: SeedRow, notion: str, *, test: int, history: str = "") -> Floats:
    """Return a gap of every policy per step, shape (policies,).

    Args:
        row: The row of the seed.
        notion: The group notion.
        test: The test.
        history: One of the `histories`.
    """
    return -(of_policies(row, f"{history} {notion}", test=test) if history else per_step(row, notion, test=test))


def kinds_of(row: SeedRow, *, test: int | None = None) -> Floats:
    """Return the numbers of decisions of each kind in a test, or in both, shape (policies, kinds)."""
    if test is None:
        return np.asarray(sum(kinds_of(row, test=own) for own in TESTS))
    return np.stack([of_policies(row, f"kind {kind}", test=test) for kind in KINDS], axis=1)


def most_rewarded(row: SeedRow) -> int:
    """Return the policy with the largest reward of an episode in the first test."""
    return int(np.argmax(of_policies(row, "total R", test=0)))


def decisions(row: SeedRow) -> Floats:
    """Return the numbers of decisions of each kind, shape (kinds,).

    They are those of the only policy of the seed in both tests, or of the most rewarded one in the second test.
    """
    both = kinds_of(row)
    return np.asarray(both[0] if len(both) == 1 else kinds_of(row, test=1)[most_rewarded(row)])


def desired(row: SeedRow) -> Floats:
    """Return the desired reward of every policy, shape (policies,); NaN for policies that follow none."""
    return of_policies(row, "desired 0")


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
        history: One of the `histories`.
    """
    limit = named("limit", notion, history=history)
    tests = [gap_of(row, notion, test=t, history=history) > of_policies(row, limit, test=t) for t in TESTS]
    return np.asarray(np.all(tests, axis=0))


def named(kind: str, notion: str, *, history: str) -> str:
    """Return the name of a number of a gap, such as ``"aligned noise SP"``; the kind of the gap itself is ``""``."""
    return " ".join(filter(None, (history, kind, notion)))


def histories(arm: Arm) -> tuple[str, ...]:
    """Return the histories of an arm's gaps; ``""`` is that in which its policies decide.

    The first one pairs each decision with its person. The second one, if there is another, is the published one.
    """
    known = [name for name in ("aligned", "misread") if named("", GROUP_NOTIONS[0], history=name) in arm.names]
    return ("aligned", "") if "aligned" in known else ("", *known)


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
    * ``CSC published~share``: consistency with what it is if decisions have no relation to people, which depends only
      on the share of decisions 1, in the same test; ``IF eq. 8~share``: the same of individual fairness.
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
