"""A paper's claims, and their verdicts from estimates with intervals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fair_envs.metrics import Estimate


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, with the verdict and evidence of our runs."""

    text: str
    verdict: str
    evidence: str


def exceeds(estimate: Estimate, bound: float) -> bool | None:
    """Return whether the whole interval is above the bound, False if it is below, None if neither is shown."""
    if estimate.low > bound:
        return True
    return False if estimate.high < bound else None


def below(estimate: Estimate, bound: float) -> bool | None:
    """Return whether the whole interval is below the bound, False if it is above, None if neither is shown."""
    above = exceeds(estimate, bound)
    return None if above is None else not above


def within(estimate: Estimate, margin: float) -> bool | None:
    """Return whether the whole interval is within the margin of 0, False if outside, None if neither is shown."""
    if -margin < estimate.low and estimate.high < margin:
        return True
    return False if estimate.low > margin or estimate.high < -margin else None


def all_of(outcomes: Iterable[bool | None]) -> bool | None:
    """Return True if all outcomes are True, False if one is False, None if one is undecided or there are none."""
    known = list(outcomes)
    if False in known:
        return False
    return None if None in known or not known else True


def verdict(holds: Mapping[str, bool | None]) -> str:
    """Return the verdict on a claim that was tested in several ways."""
    words = {True: "Holds", False: "Does not hold", None: "Undecided"}
    return "; ".join(f"{words[outcome]} ({metric})" for metric, outcome in holds.items()) + "."
