"""Results of policies in a decision environment, and the numbers of a seed made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from fair_envs.experiments.jobs import read_cell
from fair_envs.experiments.seeds import curve_numbers
from fair_envs.reproduction.cimpean2025.plays import GROUP_NOTIONS, YARDSTICKS, acted, gaps
from fair_envs.support.aliases import Floats, Ints

REWARD = "R"
SP = GROUP_NOTIONS.index("SP")


@dataclass(frozen=True, kw_only=True)
class Policies:
    """Policies with their results in two tests, whose episodes and histories have nothing in common.

    Attributes:
        names: Names of the measures: the reward, and the negative gap of each notion.
        later: Whether the history pairs each decision with the next person, as the published one does.
        sums: Sums over the episodes of each test, shape (policies, 2, measures).
        steps: Numbers of steps, shape (policies, 2).
        episodes: Numbers of episodes, shape (policies, 2).
        noise: What the gap of each of the `GROUP_NOTIONS` per step is under chance, shape (policies, 2, notions).
        limit: The gap that chance exceeds in one of twenty cases, shape (policies, 2, notions).
        kinds: Numbers of decisions of each kind, shape (policies, 2, kinds).
        yardsticks: Mean gap SP with each window of `YARDSTICKS`, and its mean square beyond chance, shape (policies, 2,
            windows, 2).
        other_gap: The gaps in the other alignment, shape (policies, 2, notions); None: there is none.
        other_noise: The same under chance.
        other_limit: The same that chance exceeds in one of twenty cases.
        counts: Numbers of decisions of each kind in the halves of a longer test, shape (policies, 2, kinds); None:
            there was none.
        other_counts: The same in the other alignment.
        wanted: The desired return of each policy, which a training episode has achieved, shape (policies, objectives);
            None: they follow none.
    """

    names: tuple[str, ...]
    later: bool
    sums: Floats
    steps: Ints
    episodes: Ints
    noise: Floats
    limit: Floats
    yardsticks: Floats
    kinds: Ints
    other_gap: Floats | None = None
    other_noise: Floats | None = None
    other_limit: Floats | None = None
    counts: Ints | None = None
    other_counts: Ints | None = None
    wanted: Floats | None = None

    def __len__(self) -> int:
        """Return the number of policies."""
        return len(self.sums)

    @property
    def other(self) -> str:
        """The name of the other alignment."""
        return "aligned" if self.later else "misread"

    @property
    def acted(self) -> Floats:
        """Shares of people with decision 1 in the tests, shape (policies, 2)."""
        return acted(self.kinds)

    def total(self, name: str, *, half: int | None = None) -> Floats:
        """Return each policy's mean episode sum, in a test or in both, shape (policies,)."""
        return self._ratio(name, self.episodes, half)

    def rate(self, name: str, *, half: int | None = None) -> Floats:
        """Return each policy's mean per step, in a test or in both, shape (policies,)."""
        return self._ratio(name, self.steps, half)

    def _ratio(self, name: str, units: Ints, half: int | None) -> Floats:
        own = slice(None) if half is None else slice(half, half + 1)
        sums = self.sums[:, own, self.names.index(name)].sum(axis=1)
        return np.asarray(sums / units[:, own].sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a cell.

    Attributes:
        policies: The policies of the cell.
        learning: Rows of environment steps, reward per step, number of remembered decisions and reward per episode in
            the training.
        achieved: Returns of the training episodes of all policies that the training found, also of those that were not
            tested, shape (policies, objectives).
        objectives: Names of all objectives of the training, also of those that were only computed.
    """

    policies: Policies
    learning: Floats
    achieved: Floats
    objectives: Sequence[str] = ()


def read_found(folder: Path) -> Found:
    """Return the result in a cell's folder."""
    _, arrays = read_cell(folder)
    if "names" not in arrays:
        raise FileNotFoundError(f"folder must hold the policies of a cell, got {folder}")
    learning, achieved = arrays.pop("learning", np.zeros((0, 4))), arrays.pop("achieved", np.zeros((0, 0)))
    names, later = tuple(str(name) for name in arrays.pop("names")), bool(arrays.pop("later"))
    objectives = [str(name) for name in arrays.pop("objectives", ())]
    policies = Policies(names=names, later=later, **arrays)
    return Found(policies=policies, learning=learning, achieved=achieved, objectives=objectives)


# The numbers of a seed ------------------------------------------------------------------------------------------------


def numbers(found: Found) -> dict[str, float]:
    """Return the numbers of a seed.

    All are of the history with which the policies decide: the published one for policies as printed in hiring.

    * ``policies``: how many were tested; ``found``: how many the training found. ``R``, ``SP``, ...: mean per step over
      the policies; ``total SP``, ``best SP``, ``worst SP``: mean, largest and smallest episode sum. Gaps are negative,
      0 is fair. ``noise SP``: the mean gap per step if memberships are dealt at random, positive; ``misread SP``,
      ``misread noise SP``: the same decisions in the published history; ``aligned SP``: policies as printed, in the
      correct history.
    * ``acted``: share of people with decision 1: hired, or checked. ``trained best SP``, ``trained worst SP``,
      ``trained total SP``: the largest, smallest and mean return of the training episodes.
    * ``SP at 500``, ``square SP at 500``: mean gap with this window, and its mean square beyond chance.
    * ``top total R``, ``top R``, ``top SP``, ``top noise SP``, ``top acted``: the second test of the policy with the
      largest reward in the first, which is ``first total R``.
      ``fair total R``, ``fair SP``, ``fair noise SP``: that of those whose gap SP in the first test is not above
      chance; ``still fair``: 1 if it is not in the second test either; ``fair is top``: 1 if they are the same policy.
    * From the test over many decisions: ``pooled SP``, the mean gap over policies; ``SP~EO``; ``SP~SP``, the
      reliability; ``SP~EO same half``, which shared randomness raises; ``SP~misread SP``, with the gap as in the
      published history; ``misread SP~EO``, both in the published history.
    * ``learned R@STEPS``, ``learned total R@STEPS`` and ``remembered@STEPS``: reward per step and per episode, and size
      of the history in the training.
    * ``policy 3, test 0: SP``: single policies, see `_singles`.
    """
    policies = found.policies
    result = {"policies": float(len(policies)), "found": float(len(found.achieved))}
    result |= {**_levels(policies), **_choices(policies), **_singles(policies)}
    if policies.counts is not None:
        result |= _pooled(policies)
    for name, values in zip(found.objectives, found.achieved.T, strict=True):
        result |= {f"trained {span} {name}": float(of(values)) for span, of in SPANS.items()}
    steps, rewards, sizes, totals = found.learning.T
    for name, values in (("learned R", rewards), ("remembered", sizes), ("learned total R", totals)):
        result |= curve_numbers(name, steps, values)
    return result


def _levels(policies: Policies) -> dict[str, float]:
    found: dict[str, float] = {"steps": float(policies.steps.sum() / policies.episodes.sum())}
    found["acted"] = float(policies.acted.mean())
    for name in policies.names:
        totals = policies.total(name)
        found[name] = float(policies.rate(name).mean())
        found |= {f"{span} {name}": float(of(totals)) for span, of in SPANS.items()}
    found |= _by_notion("noise", policies.noise)
    if policies.other_gap is not None and policies.other_noise is not None:
        found |= _by_notion(policies.other, -policies.other_gap)
        found |= _by_notion(f"{policies.other} noise", policies.other_noise)
    for window, (gap, square) in zip(YARDSTICKS, policies.yardsticks.mean(axis=(0, 1)).tolist(), strict=True):
        found |= {f"SP at {window}": -gap, f"square SP at {window}": square}
    return found


def _by_notion(prefix: str, values: Floats) -> dict[str, float]:
    """Return the means over policies and tests by notion."""
    return {
        f"{prefix} {name}": float(value) for name, value in zip(GROUP_NOTIONS, values.mean(axis=(0, 1)), strict=True)
    }


SPANS: Mapping[str, Any] = {"best": np.max, "total": np.mean, "worst": np.min}


def _choices(policies: Policies) -> dict[str, float]:
    """Return the results, in the second test, of policies that are chosen in the first."""
    reward, again = policies.total(REWARD, half=0), policies.total(REWARD, half=1)
    top = int(np.argmax(reward))
    found = {"first total R": float(reward[top]), "top total R": float(again[top])}
    found |= {f"top {name}": float(policies.rate(name, half=1)[top]) for name in (REWARD, *GROUP_NOTIONS)}
    found |= {"top noise SP": float(policies.noise[top, 1, SP]), "top acted": float(policies.acted[top, 1])}
    fair, still = (-policies.rate("SP", half=half) <= policies.limit[:, half, SP] for half in (0, 1))
    if fair.any():
        own = int(np.argmax(np.where(fair, reward, -np.inf)))
        found |= {"fair total R": float(again[own]), "fair SP": float(policies.rate("SP", half=1)[own])}
        found |= {"fair noise SP": float(policies.noise[own, 1, SP])}
        found |= {"still fair": float(still[own]), "fair is top": float(own == top)}
    return found


def _pooled(policies: Policies) -> dict[str, float]:
    assert policies.counts is not None and policies.other_counts is not None
    halves, others = (
        [dict(zip(GROUP_NOTIONS, gaps(counts[:, h]).T, strict=True)) for h in (0, 1)]
        for counts in (policies.counts, policies.other_counts)
    )
    every = gaps(policies.counts.sum(axis=1)).mean(axis=0)
    found = {f"pooled {name}": float(value) for name, value in zip(GROUP_NOTIONS, every, strict=True)}
    hiring = policies.other_gap is not None
    for one, other in combinations(GROUP_NOTIONS, 2):
        found[f"{one}~{other}"] = across(halves, one, other)
        found[f"{one}~{other} same half"] = float(np.mean([correlated(half[one], half[other]) for half in halves]))
        if hiring:
            found[f"{policies.other} {one}~{other}"] = across(others, one, other)
    for name in GROUP_NOTIONS:
        found[f"{name}~{name}"] = across(halves, name, name)
        if hiring:
            both = [{**half, "other": other[name]} for half, other in zip(halves, others, strict=True)]
            found[f"{name}~{policies.other} {name}"] = across(both, name, "other")
    return found


def _singles(policies: Policies) -> dict[str, float]:
    """Return the numbers of single policies in both tests, from which other numbers follow.

    Mean episode sums of all measures (``total R``), steps of an episode, gaps of the group notions under chance and in
    the other alignment, the numbers of `YARDSTICKS`, the desired return of each objective, and the numbers of decisions
    of each kind (``kind 0``), and in the longer test (``decisions 0``), there also in the other alignment.
    """
    found: dict[str, float] = {}
    for k in range(len(policies)):
        for h in (0, 1):
            own = {f"total {name}": policies.total(name, half=h)[k] for name in policies.names}
            own["steps"] = policies.steps[k, h] / policies.episodes[k, h]
            own |= {f"kind {kind}": number for kind, number in enumerate(policies.kinds[k, h])}
            for n, name in enumerate(GROUP_NOTIONS):
                own |= {f"noise {name}": policies.noise[k, h, n], f"limit {name}": policies.limit[k, h, n]}
                if policies.other_gap is not None:
                    assert policies.other_noise is not None and policies.other_limit is not None
                    own[f"{policies.other} {name}"] = -policies.other_gap[k, h, n]
                    own[f"{policies.other} noise {name}"] = policies.other_noise[k, h, n]
                    own[f"{policies.other} limit {name}"] = policies.other_limit[k, h, n]
            for w, window in enumerate(YARDSTICKS):
                gap, square = policies.yardsticks[k, h, w]
                own |= {f"SP at {window}": -gap, f"square SP at {window}": square}
            if policies.counts is not None:
                assert policies.other_counts is not None
                own |= {f"decisions {kind}": number for kind, number in enumerate(policies.counts[k, h])}
                others = enumerate(policies.other_counts[k, h])
                own |= {f"{policies.other} decisions {kind}": number for kind, number in others}
            found |= {f"policy {k}, test {h}: {name}": float(value) for name, value in own.items()}
        if policies.wanted is not None:
            found |= {f"policy {k}: desired {i}": float(value) for i, value in enumerate(policies.wanted[k])}
    return found


def across(halves: Sequence[Mapping[str, Floats]], one: str, other: str) -> float:
    """Return the mean correlation of a number in one half of the tests with another number in the other half.

    Numbers of the same half share the randomness of its decisions, which correlates them even if policies are equal.
    """
    return float(np.mean([correlated(halves[h][one], halves[1 - h][other]) for h in (0, 1)]))


def correlated(one: Floats, other: Floats) -> float:
    """Return Spearman's correlation of the defined pairs; NaN for fewer than three or values that do not vary."""
    known = np.isfinite(one) & np.isfinite(other)
    one, other = one[known], other[known]
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(spearmanr(one, other).statistic)
