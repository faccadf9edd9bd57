"""Plays teams and returns their results: success, steps, and each agent's contributions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Amendment, Rules, check_count, check_seeds
from fair_envs.evaluation import LanesWorld, Policy, begun, rollout
from fair_envs.metrics.intervals import Estimate, Undefined, mean_interval, share_interval
from fair_envs.metrics.intervals import paired_difference as difference_of
from fair_envs.metrics.team import TeamFairness, captor_sets, identity_mutual_information, over_seeds, team_fairness
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import Range, checked
from fair_envs.support.progress import progress_bar

Speed = Annotated[float, Range(0, 100)]
"""Parameter changed by a curriculum, see `fair_envs.core.Rules.pace`."""

LISTED = 10  # largest number of agents for which all sets are listed


class SetSpeed:
    """Sets the speed of pursuers when an episode begins, as an entry of `Lanes.amendments`; curricula change `value`.

    Args:
        value: Speed in lengths per time unit, multiplied by each pursuer's own factor. None keeps the rules' speed.
    """

    def __init__(self, value: float | None) -> None:
        self.value = value

    @property
    def value(self) -> float | None:
        """Speed in episodes that begin after it is set."""
        return self._value

    @value.setter
    def value(self, value: float | None) -> None:
        self._value: float | None = None if value is None else checked("speed", value, Speed)

    def __call__(self, rules: Rules, lanes: NDArray[np.void]) -> None:
        """Set the pursuers' speeds, in place."""
        if self._value is not None:
            rules.set_pace(lanes, self._value)


@dataclass(frozen=True, kw_only=True)
class TeamPlay:
    """Results of E episodes of n pursuers; episode k is the first one of the environment seeded ``seed + k``.

    Attributes:
        captured: Whether all evaders were captured, shape (E,).
        captors: Whether each pursuer captured at least one evader, shape (E, n).
        returns: Returns of the pursuers, shape (E, n).
        steps: Lengths of the episodes, shape (E,).
        seed: Seed of the first episode.
    """

    captured: Flags
    captors: Flags
    returns: Floats
    steps: Ints
    seed: int

    @property
    def episodes(self) -> int:
        """Number of episodes (E)."""
        return len(self.captured)

    @cached_property
    def success(self) -> Estimate:
        """Share of episodes in which all evaders are captured, with Wilson's interval."""
        return share_interval(self.captured)

    @cached_property
    def steps_to_capture(self) -> Estimate:
        """Mean number of steps of the successful episodes, with Student's interval; NaN if there are none.

        It ignores episodes that time out. Use it to compare teams only if they succeed equally often.
        """
        return mean_interval(self.steps[self.captured])

    @cached_property
    def fairness(self) -> TeamFairness:
        """Distance of the sets of captors from team fairness, with the p-value under a fair team."""
        return team_fairness(self.captors)

    @property
    def identity(self) -> float:
        """Mutual information between a pursuer's identity and whether it captures, in bits."""
        return identity_mutual_information(self.captors)

    @property
    def outcomes(self) -> dict[tuple[int, ...], int]:
        """Number of episodes for each set of captors, small sets first.

        All 2^n sets are listed; with more than ten pursuers, only those that occurred.
        """
        found, n = captor_sets(self.captors), self.captors.shape[1]
        sets = chain.from_iterable(combinations(range(n), size) for size in range(n + 1))
        return {captors: found.get(captors, 0) for captors in sets} if n <= LISTED else found

    @property
    def shares(self) -> Floats:
        """Each pursuer's share of captures, shape (n,), each captor counted once per episode; NaN without captures."""
        captures: Ints = self.captors.sum(axis=0)
        total = captures.sum()
        return captures / total if total else np.full(len(captures), np.nan)

    def as_dict(self) -> dict[str, Any]:
        """Return the measures for JSON, with None in place of numbers that are not finite."""
        return {
            "episodes": self.episodes,
            "seed": self.seed,
            "success": self.success.as_dict(),
            "steps_to_capture": self.steps_to_capture.as_dict(),
            "fairness": self.fairness.as_dict(),
            "identity": self.identity,
            "captures": self.captors.sum(axis=0).tolist(),
            "outcomes": {"+".join(map(str, who)): times for who, times in captor_sets(self.captors).items()},
        }


def play_team(
    team: Policy,
    rules: Rules,
    *,
    episodes: int,
    seed: int,
    lanes: int = 100,
    speed: float | None = None,
    amendments: Sequence[Amendment] = (),
    progress: bool = False,
) -> TeamPlay:
    """Play test episodes; episode k is the first one of the environment seeded ``seed + k``, for every team.

    Args:
        team: Policy of all pursuers.
        rules: A team environment.
        episodes: Number of episodes, at least 1.
        seed: Seed of the first episode.
        lanes: Number of episodes played in parallel; the results do not depend on it if the team's actions do not.
        speed: Speed of the pursuers, see `SetSpeed`; None: the rules'.
        amendments: Other changes when an episode begins.
        progress: Whether to show a progress bar with the remaining time.

    Raises:
        ValueError: A number is below 1, a seed or speed is invalid, or the rules are of another environment.
    """
    check_count("episodes", episodes)
    check_count("lanes", lanes)
    check_team(rules)
    changed: list[Amendment] = [SetSpeed(speed), *amendments]
    parts = np.array_split(check_seeds(seed, episodes), -(-episodes // lanes))
    played = []
    with progress_bar("playing", total=episodes, unit="episodes", shown=progress) as advance:
        for seeds in parts:
            played.append(_play(team, rules, seeds, amendments=changed))
            advance(len(seeds))
    return TeamPlay(
        captured=np.concatenate([part.captured for part in played]),
        captors=np.concatenate([part.captors for part in played]),
        returns=np.concatenate([part.returns for part in played]),
        steps=np.concatenate([part.steps for part in played]),
        seed=int(seed),
    )


def _play(team: Policy, rules: Rules, seeds: NDArray[np.uint64], *, amendments: Sequence[Amendment]) -> TeamPlay:
    """Play one episode for each seed, in parallel."""
    lanes = begun(rules, seeds, amendments=amendments)
    returns = np.zeros((lanes.count, lanes.agents))
    for step in rollout(LanesWorld(lanes, append_group=team.append_group), team):
        returns += step.reward
    records, outcome = lanes.records, rules.team_outcome(lanes.records)
    return TeamPlay(
        captured=outcome.success,
        captors=outcome.contributed,
        returns=returns,
        steps=records["time"].astype(np.int64),
        seed=int(seeds[0]),
    )


def check_team(rules: Rules) -> None:
    """Raise ValueError unless the rules are those of a team whose pace can be changed."""
    if rules.pace is None:
        raise ValueError(f"rules must be those of a team (`Rules.pace`), got those of {rules.name}")


def evaluate_speeds(
    team: Policy,
    rules: Rules,
    *,
    speeds: Iterable[float],
    episodes: int,
    seed: int,
    lanes: int = 100,
    amendments: Sequence[Amendment] = (),
    progress: bool = False,
) -> dict[float, TeamPlay]:
    """Return the results from the same starts at each speed of the pursuers.

    Args:
        team: Policy of all pursuers.
        rules: The environment.
        speeds: At least one speed, without repetitions.
        episodes: Episodes at each speed.
        seed: Seed of the first episode.
        lanes: Number of episodes played in parallel.
        amendments: Other changes when an episode begins.
        progress: Whether to show progress bars with the remaining time.

    Raises:
        ValueError: There is no speed or a repeated speed, or see `play_team`.
    """
    listed: list[float] = [checked("speeds", speed, Speed) for speed in speeds]
    if not listed or len(set(listed)) < len(listed):
        raise ValueError(f"speeds must contain at least one speed and no repetitions, got {listed}")
    return {
        speed: play_team(
            team,
            rules,
            episodes=episodes,
            seed=seed,
            lanes=lanes,
            speed=speed,
            amendments=amendments,
            progress=progress,
        )
        for speed in listed
    }


def by_seed(plays: Iterable[TeamPlay], *, undefined: Undefined = "nan") -> Mapping[str, Estimate]:
    """Return the mean over training seeds of each measure, with Student's interval; episodes are not pooled.

    Args:
        plays: Results of the team of each seed.
        undefined: Treatment of values that are undefined for a seed without captures, see `mean_interval`.

    Returns:
        The estimates of ``success``, ``steps_to_capture``, ``identity`` and of the measures of `over_seeds`.

    Raises:
        ValueError: There is no seed.
    """
    seeds = tuple(plays)
    if not seeds:
        raise ValueError("plays must contain results for at least one training seed, got none")
    numbers = {
        "success": [play.success.value for play in seeds],
        "steps_to_capture": [play.steps_to_capture.value for play in seeds],
        "identity": [play.identity for play in seeds],
    }
    means = {name: mean_interval(values, undefined=undefined) for name, values in numbers.items()}
    return {**means, **over_seeds([play.fairness for play in seeds], undefined=undefined)}


def paired_difference(first: TeamPlay, second: TeamPlay) -> Estimate:
    """Return the first team's success rate minus the second's from the same starts, with an interval.

    Raises:
        ValueError: The episodes did not have the same seeds.
    """
    if (first.seed, first.episodes) != (second.seed, second.episodes):
        raise ValueError(
            f"second must have the episodes of first, {first.episodes} from seed {first.seed}, "
            f"got {second.episodes} from seed {second.seed}"
        )
    return difference_of(first.captured, second.captured)


__all__ = ["SetSpeed", "TeamPlay", "by_seed", "evaluate_speeds", "paired_difference", "play_team"]
