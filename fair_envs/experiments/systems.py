"""The cell of a system: some episodes of an environment with a named policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fair_envs.evaluation.systems import Episodes, Flip, play_system
from fair_envs.experiments.jobs import Job, read_cell, read_returns, returns_arrays, write_arrays
from fair_envs.experiments.players import contents, is_run, policy_named
from fair_envs.registration import make_rules

ABOUT = ("sensitive", "legitimate", "values")  # fields of `Episodes` that are stored as JSON


@dataclass(frozen=True, kw_only=True)
class SystemCell(Job):
    """Episodes of a system.

    Attributes:
        env_id: The environment.
        parameters: The environment's parameters.
        policy: See `fair_envs.experiments.players.policy_named`.
        contents: Hash of the policy's code or files outside this package, see `fair_envs.experiments.players.contents`.
        seed: Seed of the first episode; each further episode uses the next seed.
        episodes: Number of episodes; they are played in parallel.
        counterfactual: Whether they are played again without the attribute, if it can be removed.
        flip: Which agents lose the attribute, see `fair_envs.evaluation.systems.play_system`.
    """

    env_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    policy: str = "random"
    contents: str = ""
    seed: int
    episodes: int
    counterfactual: bool = True
    flip: Flip = "protected"

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the episodes' arrays."""
        rules = make_rules(self.env_id, **self.parameters)
        played = play_system(
            rules,
            policy_named(self.policy, rules),
            episodes=self.episodes,
            seed=self.seed,
            lanes=self.episodes,
            counterfactual=self.counterfactual,
            flip=self.flip,
        )
        arrays = returns_arrays("returns", played.returns)
        for name, returns in played.without.items():
            arrays |= returns_arrays(f"without {name}", returns)
        for (notion, attribute), values in played.decided.items():
            arrays[f"decided/{notion}/{attribute}"] = values
        write_arrays(part, arrays)
        about = {name: getattr(played, name) for name in ABOUT}
        return {**about, "without": list(played.without)}


def read_system(folder: Path) -> Episodes:
    """Return the episodes in a cell's folder."""
    record, arrays = read_cell(folder)
    without = {name: read_returns(f"without {name}", arrays) for name in record["without"]}
    decided = {tuple(name.split("/")[1:]): values for name, values in arrays.items() if name.startswith("decided/")}
    return Episodes(
        returns=read_returns("returns", arrays),  # type: ignore[arg-type]
        without=without,  # type: ignore[arg-type]
        decided=decided,  # type: ignore[arg-type]
        **{name: record[name] for name in ABOUT},
    )


def system_cells(
    env_id: str,
    parameters: Mapping[str, Any],
    policy: str,
    *,
    episodes: int,
    seed: int,
    each: int = 64,
    counterfactual: bool = True,
    flip: Flip = "protected",
) -> list[SystemCell]:
    """Return cells that together play a system's episodes.

    Args:
        env_id: The environment.
        parameters: The environment's parameters.
        policy: See `fair_envs.experiments.players.policy_named`.
        episodes: Total number of episodes.
        seed: Seed of the first episode.
        each: Largest number of episodes per cell.
        counterfactual: Whether they are played again without the attribute, if it can be removed.
        flip: Which agents lose the attribute, see `fair_envs.evaluation.systems.play_system`.
    """
    shared: dict[str, Any] = {
        "env_id": env_id,
        "parameters": plain(parameters),
        "policy": full_name(policy),
        "contents": contents(policy),
        "counterfactual": counterfactual,
        "flip": flip,
    }
    return [
        SystemCell(seed=seed + first, episodes=min(each, episodes - first), **shared)
        for first in range(0, episodes, each)
    ]


def full_name(name: str) -> str:
    """Return a policy's name for use in any worker: a run's folder becomes an absolute path."""
    return str(Path(name).resolve()) if is_run(name) else name


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as plain data for JSON; equal parameters give equal data."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in sorted(parameters.items())}


def joined(cells: Sequence[SystemCell], folder: Path) -> Episodes:
    """Return the episodes of finished cells, concatenated."""
    return Episodes.joined([read_system(folder / cell.key) for cell in cells])
