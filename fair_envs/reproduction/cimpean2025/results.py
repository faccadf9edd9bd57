"""Results of policies in a decision environment, and the numbers of a seed made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from fair_envs.experiments.jobs import read_cell
from fair_envs.experiments.seeds import curve_numbers
from fair_envs.reproduction.cimpean2025.plays import GROUP_NOTIONS, gaps
from fair_envs.support.aliases import Floats, Ints

REWARD = "R"
CONFLICTS = (("IF", "CSC"), ("IF eq. 8", "CSC"))  # pairs of individual notions whose ranks are compared


@dataclass(frozen=True, kw_only=True)
class Policies:
    """Policies with their results in both halves of the test episodes.

    Attributes:
        names: Names of the measures: the reward, and the negative gap of each notion.
        sums: Sums over each half, shape (policies, 2, measures).
        steps: Numbers of steps, shape (policies, 2).
        episodes: Numbers of episodes, shape (policies, 2).
        noise: Noise floor of each of the `GROUP_NOTIONS` per step, shape (policies, notions).
        counts: Numbers of decisions of each kind in the halves of a longer test, shape (policies, 2, kinds); None:
            there was none.
    """

    names: tuple[str, ...]
    sums: Floats
    steps: Ints
    episodes: Ints
    noise: Floats
    counts: Ints | None = None

    def __len__(self) -> int:
        """Return the number of policies."""
        return len(self.sums)

    def total(self, name: str, *, half: int | None = None) -> Floats:
        """Return each policy's mean episode sum, in a half or in all episodes, shape (policies,)."""
        return self._ratio(name, self.episodes, half)

    def rate(self, name: str, *, half: int | None = None) -> Floats:
        """Return each policy's mean per step, in a half or in all episodes, shape (policies,)."""
        return self._ratio(name, self.steps, half)

    def _ratio(self, name: str, units: Ints, half: int | None) -> Floats:
        own = slice(None) if half is None else slice(half, half + 1)
        sums = self.sums[:, own, self.names.index(name)].sum(axis=1)
        return np.asarray(sums / units[:, own].sum(axis=1))

    def pooled(self, name: str, *, half: int | None = None) -> Floats:
        """Return each policy's gap of a group notion over all decisions of the longer test, shape (policies,)."""
        if self.counts is None:
            return np.full(len(self), np.nan)
        counts = self.counts.sum(axis=1) if half is None else self.counts[:, half]
        return gaps(counts)[:, GROUP_NOTIONS.index(name)]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a cell.

    Attributes:
        policies: The policies of the cell.
        misread: The same, measured with a history that pairs each decision with the next person; None if this was not
            tested.
        learning: Rows of environment steps, reward per step and number of remembered decisions in the training.
    """

    policies: Policies
    misread: Policies | None
    learning: Floats


def read_found(folder: Path) -> Found:
    """Return the result in a cell's folder."""
    _, arrays = read_cell(folder, "arrays.npz")
    policies = read_policies("policies", arrays)
    if policies is None:
        raise FileNotFoundError(f"folder must hold the policies of a cell, got {folder}")
    learning = arrays.get("learning", np.zeros((0, 3)))
    return Found(policies=policies, misread=read_policies("misread", arrays), learning=learning)


def read_policies(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Policies | None:
    """Return policies from the arrays of a test; None if there are none with this prefix."""
    if f"{prefix}/names" not in arrays:
        return None
    given = {name: arrays[f"{prefix}/{name}"] for name in ("sums", "steps", "episodes", "noise")}
    names = tuple(str(name) for name in arrays[f"{prefix}/names"])
    return Policies(names=names, **given, counts=arrays.get(f"{prefix}/counts"))


# The numbers of a seed ------------------------------------------------------------------------------------------------


def numbers(found: Found) -> dict[str, float]:
    """Return the numbers of a seed.

    * ``policies``: how many there are. ``R``, ``SP``, ...: mean per step over the policies; ``total SP``, ``best SP``,
      ``worst SP``: mean, largest and smallest episode sum. Gaps are negative, 0 is fair. ``noise SP``: the mean gap per
      step if memberships are dealt at random, positive; ``excess SP``: the gap minus it. ``misread SP``: as in the
      published history.
    * ``top total R``, ``top R``, ``top SP``: the second half of the policy with the largest reward in the first, which
      is ``first total R``.
      ``fair total R``, ``fair SP``: that of those whose gap SP in the first half is at most its noise floor.
    * ``IF~CSC``: rank correlation, over policies, of one notion in one half with the other in the other half.
    * From the test over many decisions: ``pooled SP``, the mean gap over policies; ``SP~EO``; ``SP~SP``, the
      reliability; ``SP~EO same half``, which shared randomness raises; ``SP~misread SP``, with the gap as in the
      published history.
    * ``learned R@STEPS`` and ``remembered@STEPS``: reward per step and size of the history in the training.
    """
    policies, misread = found.policies, found.misread
    result = {"policies": float(len(policies)), **_levels(policies), **_choices(policies), **_conflicts(policies)}
    if misread is not None:
        own = {**{name: float(misread.rate(name).mean()) for name in misread.names[1:]}, **_conflicts(misread)}
        result |= {f"misread {name}": value for name, value in own.items()}
    if policies.counts is not None:
        result |= _pooled(policies, misread)
    steps, rewards, sizes = found.learning.T
    result |= curve_numbers("learned R", steps, rewards) | curve_numbers("remembered", steps, sizes)
    return result


def _levels(policies: Policies) -> dict[str, float]:
    found: dict[str, float] = {"steps": float(policies.steps.sum() / policies.episodes.sum())}
    for name in policies.names:
        totals = policies.total(name)
        found[name] = float(policies.rate(name).mean())
        found |= {f"{span} {name}": float(of(totals)) for span, of in SPANS.items()}
    for name, noise in zip(GROUP_NOTIONS, policies.noise.mean(axis=0).tolist(), strict=True):
        found |= {f"noise {name}": noise, f"excess {name}": -found[name] - noise}
    return found


SPANS: Mapping[str, Any] = {"best": np.max, "total": np.mean, "worst": np.min}


def _choices(policies: Policies) -> dict[str, float]:
    """Return the results, in the second half, of policies that are chosen in the first half."""
    reward = policies.total(REWARD, half=0)
    top = int(np.argmax(reward))
    found = {"first total R": float(reward[top]), "top total R": float(policies.total(REWARD, half=1)[top])}
    found |= {f"top {name}": float(policies.rate(name, half=1)[top]) for name in (REWARD, *GROUP_NOTIONS)}
    fair = -policies.rate("SP", half=0) <= policies.noise[:, GROUP_NOTIONS.index("SP")]
    if fair.any():
        own = int(np.argmax(np.where(fair, reward, -np.inf)))
        found |= {"fair total R": float(policies.total(REWARD, half=1)[own])}
        found |= {"fair SP": float(policies.rate("SP", half=1)[own])}
    return found


def _conflicts(policies: Policies) -> dict[str, float]:
    halves = [{name: policies.rate(name, half=h) for pair in CONFLICTS for name in pair} for h in (0, 1)]
    return {f"{one}~{other}": across(halves, one, other) for one, other in CONFLICTS}


def _pooled(policies: Policies, misread: Policies | None) -> dict[str, float]:
    halves = [{name: policies.pooled(name, half=h) for name in GROUP_NOTIONS} for h in (0, 1)]
    found = {f"pooled {name}": float(policies.pooled(name).mean()) for name in GROUP_NOTIONS}
    for one, other in combinations(GROUP_NOTIONS, 2):
        found[f"{one}~{other}"] = across(halves, one, other)
        found[f"{one}~{other} same half"] = float(np.mean([correlated(half[one], half[other]) for half in halves]))
    for name in GROUP_NOTIONS:
        found[f"{name}~{name}"] = across(halves, name, name)
        if misread is not None:
            both = [{**half, "misread": misread.pooled(name, half=h)} for h, half in enumerate(halves)]
            found[f"{name}~misread {name}"] = across(both, name, "misread")
    return found


def across(halves: Sequence[Mapping[str, Floats]], one: str, other: str) -> float:
    """Return the mean correlation of a number in one half of the tests with another number in the other half.

    Numbers of the same half share the randomness of its decisions, which correlates them even if policies are equal.
    """
    return float(np.mean([correlated(halves[h][one], halves[1 - h][other]) for h in (0, 1)]))


def correlated(one: Floats, other: Floats) -> float:
    """Return Spearman's correlation; NaN for fewer than three pairs or values that do not vary."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(spearmanr(one, other).statistic)
