"""The cells of the study on team fairness: trainings of teams with their tests, and tests of scripted teams."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.team.evaluation import Plays, play_levels
from fair_envs.baselines.team.play import TeamPlay, evaluate_speeds
from fair_envs.baselines.team.training import TeamRows, TeamTraining, following, train_team
from fair_envs.baselines.training import isolated_random_state
from fair_envs.envs.pursuit.policies import Greedy, Planner, ShuffledRoles
from fair_envs.evaluation import Policy
from fair_envs.experiments.jobs import Job, read_cell
from fair_envs.registration import make_rules
from fair_envs.support.aliases import Floats
from fair_envs.support.seeds import TEST_EACH, TEST_SEEDS

DEALT = "dealt: "  # prefix of tests in which roles are randomly reassigned in each episode
COLUMNS = ("captured", "captors", "returns", "steps")  # stored fields of the played episodes

TEAMS: Mapping[str, Callable[[int], Policy]] = {
    "greedy": lambda seed: Greedy(),
    "planner": lambda seed: Planner(seed=seed),
}
"""The scripted teams, by their names in the study."""


@dataclass(frozen=True, kw_only=True)
class ScriptedTeamCell(Job):
    """A test of a scripted team.

    Attributes:
        name: One of `TEAMS`.
        seed: Selects the test episodes; a training with this seed uses the same ones.
        speeds: Speeds of the pursuers.
        episodes: Number of episodes at each speed.
        parameters: Parameters of the environment.
    """

    name: str
    seed: int
    speeds: Sequence[float]
    episodes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the played episodes."""
        rules = make_rules("FairPursuit-v0", **self.parameters)
        first = TEST_SEEDS + TEST_EACH * self.seed
        found = evaluate_speeds(
            TEAMS[self.name](self.seed), rules, speeds=self.speeds, episodes=self.episodes, seed=first
        )
        np.savez_compressed(part / "arrays.npz", **arrays_of({"last": found}))  # type: ignore[arg-type]
        return {"seconds": 0.0, "seed": first}


@dataclass(frozen=True, kw_only=True)
class TeamCell(Job):
    """A training and its tests: at each speed the policy stored at that speed, and the last policy.

    Attributes:
        training: The settings of the training.
        speeds: Speeds of the pursuers in the tests.
        episodes: Number of episodes at each speed.
        dealt: Whether it is also tested with roles that are randomly reassigned in each episode.
    """

    training: TeamTraining
    speeds: Sequence[float]
    episodes: int
    dealt: bool = False

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the played episodes and the learning curve, and return how long the training took."""
        started, rows = time.perf_counter(), TeamRows(every=self.training.row)
        follow = following(self.training)
        model = train_team(self.training, follow=follow, rows=rows)
        seconds = time.process_time() - started
        rules = make_rules(self.training.env_id, **self.training.parameters)
        states, first = follow.states if follow else {}, TEST_SEEDS + TEST_EACH * self.training.seed
        settings: dict[str, Any] = {"speeds": self.speeds, "episodes": self.episodes, "seed": first}
        with isolated_random_state(1):
            plays = dict(play_levels(model, states, rules, **settings))
            if self.dealt:
                dealt = play_levels(model, states, rules, **settings, made=ShuffledRoles)
                plays |= {DEALT + kept: of for kept, of in dealt.items()}
        arrays = {**arrays_of(plays), "learning": np.array(rows.rows)}
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        return {"seconds": seconds, "seed": first}


def arrays_of(plays: Plays) -> dict[str, NDArray[Any]]:
    """Return the played episodes as arrays with flat names."""
    return {
        f"{kept}/{speed:g}/{column}": getattr(play, column)
        for kept, of_speeds in plays.items()
        for speed, play in of_speeds.items()
        for column in COLUMNS
    }


class TeamResult(NamedTuple):
    """The result of a cell."""

    plays: Plays
    learning: Floats  # see `TeamRows.rows`; (0, 0) without a training
    seconds: float


def read_team(folder: Path) -> TeamResult:
    """Return the result in a cell's folder."""
    record, arrays = read_cell(folder, "arrays.npz")
    learning = arrays.pop("learning", np.zeros((0, 0)))
    plays: dict[str, dict[float, TeamPlay]] = {}
    for name in arrays:
        kept, speed, column = name.split("/")
        if column == COLUMNS[0]:
            columns = {c: arrays[f"{kept}/{speed}/{c}"] for c in COLUMNS}
            plays.setdefault(kept, {})[float(speed)] = TeamPlay(**columns, seed=record["seed"])
    return TeamResult(plays, learning, record["seconds"])
