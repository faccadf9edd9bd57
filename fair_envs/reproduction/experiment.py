"""The cell of a multi-agent training and its evaluation."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fair_envs
from fair_envs.baselines.agents import counterfactual, play
from fair_envs.baselines.runs import read_weights, serialized
from fair_envs.baselines.training import LearningCurve, Training, isolated_random_state, make_model, train
from fair_envs.experiments.jobs import Job, read_cell, read_returns, returns_arrays, write_arrays
from fair_envs.metrics import Returns
from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.seeds import first_test_seed

WEIGHTS = "weights.pt"  # file name of the trained policy's weights
SENSITIVE = "sensitive"  # the attribute's name among the returns' attributes


@dataclass(frozen=True, kw_only=True)
class Cell(Job):
    """One training and its evaluation.

    Attributes:
        training: The settings of the training.
        episodes: Number of test episodes.
    """

    training: Training
    episodes: int

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return self.training.seed

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the test's arrays and the policy's weights; return how long the training took."""
        started = time.process_time()
        curve = LearningCurve()
        model = train(self.training, callback=curve)
        seconds = time.process_time() - started
        rules = fair_envs.make_rules(self.training.env_id, **self.training.parameters)
        arrays = played_arrays(model, rules, episodes=self.episodes, seed=self.training.seed)
        write_arrays(part, {**arrays, "learning": np.array(curve.rows)})
        (part / WEIGHTS).write_bytes(serialized(model.policy.state_dict()))
        return {"seconds": seconds}


@dataclass(frozen=True)
class Result:
    """The result of a cell: the test's returns, and counts of selected and executed actions by group.

    Attributes:
        cell: The cell, as plain data.
        ordinary: Returns of the ordinary game.
        none: Returns of the game in which no agent has the attribute, or None.
        everybody: Returns of the game in which all agents have the attribute, or None.
        twins: Counterfactual returns of the ordinary game: all agents with the attribute lose it and are played by the
            networks of their new group ("own") or of their old group ("same").
        selected: Actions that the policies chose, shape (groups, actions).
        executed: Actions that were executed, shape (groups, actions).
        learning: One row for each rollout of the training: agent steps at its end, then the mean reward per agent and
            step of each group in it; shape (rollouts, 1 + groups).
        seconds: CPU time of the training.
    """

    cell: Mapping[str, Any]
    ordinary: Returns
    none: Returns | None
    everybody: Returns | None
    twins: Mapping[str, Returns]
    selected: Ints
    executed: Ints
    learning: Floats
    seconds: float


def played_arrays(policy: Any, rules: Any, *, episodes: int, seed: int) -> dict[str, NDArray[Any]]:
    """Play the test episodes of a training seed and return their arrays under flat names.

    Args:
        policy: A model, or a policy, see `fair_envs.baselines.agents.play`.
        rules: The environment.
        episodes: Number of episodes.
        seed: The training seed: each has test episodes of its own, so that seeds are independent evidence.
    """
    settings: dict[str, Any] = {"episodes": episodes, "seed": first_test_seed(seed)}
    ordinary = play(policy, rules, **settings)
    arrays = {
        **returns_arrays("ordinary", ordinary.returns),
        "selected": ordinary.selected,
        "executed": ordinary.executed,
    }
    worlds = counterfactual(policy, rules, **settings)
    for name in ("none", "everybody", "own", "same"):
        arrays |= returns_arrays(name, getattr(worlds, name))
    return arrays


def read_policy(cell: Cell, folder: Path) -> Any:
    """Return the model of a cell's training with the weights in the cell's folder; no code is executed.

    Raises:
        FileNotFoundError: The weights are missing.
        ValueError: The weights are damaged.
    """
    weights = read_weights(folder / WEIGHTS)
    with isolated_random_state(cell.training.threads):
        model = make_model(cell.training)
    model.policy.load_state_dict(weights)
    return model


def read_result(folder: Path) -> Result:
    """Return the result in a cell's folder.

    Raises:
        FileNotFoundError: The result is missing.
    """
    record, arrays = read_cell(folder)
    read = {name: read_returns(name, arrays) for name in ("ordinary", "none", "everybody", "own", "same")}
    selected, executed, learning = arrays["selected"], arrays["executed"], arrays["learning"]
    ordinary = read["ordinary"]
    if ordinary is None:
        raise FileNotFoundError(f"folder must hold the returns of a cell, got {folder}")
    return Result(
        cell=record["cell"],
        ordinary=ordinary,
        none=read["none"],
        everybody=read["everybody"],
        twins={name: found for name in ("own", "same") if (found := read[name]) is not None},
        selected=selected,
        executed=executed,
        learning=learning,
        seconds=record["seconds"],
    )
