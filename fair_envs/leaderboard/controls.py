"""Controls: results that must come out in a certain way if the leaderboard measures what it says."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fair_envs.experiments.seeds import Arm
from fair_envs.leaderboard.jobs import AGAIN, PARTIAL, PLANTED, RATE_OF, REJECTED, REWARD_ONLY, ArmKey
from fair_envs.leaderboard.scores import TaskBoard
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.metrics.inference import p_value, shown_outside, welch
from fair_envs.support.aliases import Floats


class FailedControlError(RuntimeError):
    """A control failed: the leaderboard cannot be trusted, and is not written."""


class Control(NamedTuple):
    """The outcome of a control.

    Attributes:
        name: What is controlled.
        passed: Whether it came out as it must; None: no task has it.
        evidence: The numbers behind it.
        detects: What would make it fail.
    """

    name: str
    passed: bool | None
    evidence: str
    detects: str


def controls(boards: Sequence[TaskBoard]) -> list[Control]:
    """Return the outcomes of all controls."""
    return [
        planted_bias_is_last(boards),
        partial_bias_is_measured(boards),
        random_decisions_are_at_the_floor(boards),
        same_method_is_the_same(boards),
    ]


def check(found: Iterable[Control]) -> None:
    """Raise FailedControlError if a control failed."""
    failed = [f"{control.name}: {control.evidence}" for control in found if control.passed is False]
    if failed:
        raise FailedControlError("the leaderboard is not written, because a control failed: " + "; ".join(failed))


def planted_bias_is_last(boards: Sequence[TaskBoard]) -> Control:
    """Return whether no arm has a larger gap than the policy that rejects all but one group."""
    ranks, passed = [], []
    for board in boards:
        planted = board.arms.get(ArmKey(board.env_id, PLANTED))
        if planted is not None:
            gaps = np.array([arm.values("gap").mean() for arm in board.arms.values()])
            own = planted.values("gap").mean()
            larger = int((gaps > own).sum())  # undefined gaps are not larger
            passed.append(larger == 0 and np.isfinite(own))
            ranks.append(f"{board.env_id} {len(gaps) - larger} of {len(gaps)} (gap {own:.3f})")
    return Control(
        "a planted bias ranks last",
        all(passed) if passed else None,
        ", ".join(ranks) or "no task has one",
        "a gap with a wrong sign, or of the wrong groups; no errors in its size, since the planted gap is the largest",
    )


PRECISE = 0.03
"""Largest half-width of the interval of a difference that counts as measured."""


def partial_bias_is_measured(boards: Sequence[TaskBoard]) -> Control:
    """Return whether a bias of known size is found, and its gap is between random decisions and the planted bias.

    Whatever a person's label, the groups that the planted bias accepts are accepted, and the others with a lower
    probability: the difference between their mean rates is known for every rate of decisions. (The gap is larger with
    several groups, because it is the largest of several differences.)
    """
    known, evidence, differences, passed = REJECTED[PARTIAL], [], {}, []
    for board in boards:
        partial, planted = (board.arms.get(ArmKey(board.env_id, name)) for name in (PARTIAL, PLANTED))
        if partial is None or planted is None:
            continue
        found = mean_interval(advantage(partial, planted))
        differences[board.env_id] = mean_interval(advantage(partial, planted) - known)
        random, gap, most = (arm.values("gap").mean() for arm in (board.random, partial, planted))
        passed.append(random < gap < most and found.high - found.low <= 2 * PRECISE)
        evidence.append(f"{board.env_id} {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]")
    return Control(
        f"a bias of {known:g} is measured as such",
        None if not differences else all(passed) and _testable(differences) and not shown_outside(differences, 0),
        ", ".join(evidence) or "no task has one",
        f"rates or groups that are wrong by about {PRECISE:g}",
    )


def advantage(arm: Arm, planted: Arm) -> Floats:
    """Return each seed's mean rate of the groups that a planted bias accepts, minus that of the others."""
    names = [name for name in arm.names if name.startswith(RATE_OF)]
    accepted = [name for name in names if planted.values(name).mean() > 0.5]
    means = [
        np.mean([arm.values(name) for name in group], axis=0)
        for group in (accepted, [name for name in names if name not in accepted])
    ]
    return np.asarray(means[0] - means[1])


def random_decisions_are_at_the_floor(boards: Sequence[TaskBoard]) -> Control:
    """Return whether random decisions, which treat groups alike, are not shown to differ from labels dealt at random.

    Only tasks with a planted bias count: there, one decision about one person is the benefit, so that random decisions
    have equal rates in all groups.
    """
    evidence, differences = [], {}
    for board in boards:
        if ArmKey(board.env_id, PLANTED) in board.arms:
            gap, floor = board.random.values("gap"), board.random.values("noise")
            differences[board.env_id] = welch(gap, floor)
            evidence.append(f"{board.env_id} gap {gap.mean():.4f}, floor {floor.mean():.4f} (n = {len(gap)})")
    return Control(
        "decisions at random have the gap of labels dealt at random",
        None if not differences else _testable(differences) and not shown_outside(differences, 0),
        ", ".join(evidence) or "no task has one",
        "noise floors that are too low or too high by more than the spread over seeds",
    )


def same_method_is_the_same(boards: Sequence[TaskBoard]) -> Control:
    """Return whether the reward-only method is not shown to differ from itself with other seeds (Holm's correction)."""
    differences = {}
    for board in boards:
        again = board.arms.get(ArmKey(board.env_id, AGAIN))
        for name in ("performance", "gap") if again is not None else ():
            assert again is not None
            if np.ptp([*again.values(name), *board.reward_only.values(name)]) > 0:
                differences[f"{board.env_id} {name}"] = again.minus(board.reward_only, name)
    found = shown_outside(differences, 0)
    p_values = {name: min(p_value(e, 0, "greater"), p_value(e, 0, "less")) for name, e in differences.items()}
    evidence = "no task has one"
    if differences:
        least = min(p_values, key=lambda name: p_values[name])
        evidence = (
            f"{len(differences)} comparisons; smallest one-sided p-value {p_values[least]:.3f} ({least} "
            f"{differences[least].value:+.4f}, not corrected)"
        )
    return Control(
        f"{REWARD_ONLY} with other seeds is not shown to differ",
        None if not differences else _testable(differences) and not found,
        evidence + (f"; differing: {', '.join(found)}" if found else ""),
        "large errors only: with 5 seeds and 18 comparisons, one of three standard deviations in half of all cases",
    )


def _testable(differences: Mapping[str, Estimate]) -> bool:
    """Return whether all differences have a p-value, which a single seed has not."""
    return not any(np.isnan(p_value(e, 0, "greater")) for e in differences.values())
