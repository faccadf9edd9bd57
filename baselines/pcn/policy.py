"""A conditioned network as a policy that follows one of its learned trade-offs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.pcn.objectives import RewardVectors, trained_rules
from fair_envs.baselines.pcn.pcn import PCN, Command, Commanded
from fair_envs.evaluation import Transition, World
from fair_envs.support.aliases import Flags, Floats, Floats32, Ints
from fair_envs.tasks import AnyRules

KNEE, SUM = "knee", "sum"


def trade_off(name: str, given: Any) -> str:
    """Return the name of a trade-off as plain text: ``"knee"``, ``"sum"`` or the number of a point.

    Raises:
        ValueError: It is neither.
    """
    text = str(given)
    if text in (KNEE, SUM) or (text.isascii() and text.isdigit()):
        return text
    raise ValueError(f"{name} must be '{KNEE}', '{SUM}' or the number of a point in coverage.csv, got {given!r}")


def chosen_command(model: PCN, choice: str = KNEE) -> Command:
    """Return one of a trained model's commands.

    Args:
        model: The model.
        choice: ``"knee"``: the command nearest to the best value of each objective, with the objectives scaled to
            [0, 1] over all commands. ``"sum"``: the command with the largest sum of objectives, which should be
            comparable. A number: the index in `PCN.commands`, which is the point's number in ``coverage.csv``.

    Raises:
        ValueError: The choice is unknown, or the model has no such command.
    """
    wanted, commands = trade_off("choice", choice), model.commands()
    if not commands:
        raise ValueError("model must have learned a trade-off, got none; train it first")
    returns = np.array([command.desired_return for command in commands])
    if wanted == SUM:
        return commands[int(returns.sum(axis=1).argmax())]
    if wanted == KNEE:
        span = np.ptp(returns, axis=0)
        missed = (returns.max(axis=0) - returns) / np.where(span > 0, span, 1)
        return commands[int(np.linalg.norm(missed, axis=1).argmin())]
    if int(wanted) >= len(commands):
        raise ValueError(f"choice must be the number of a point from 0 to {len(commands) - 1}, got {wanted}")
    return commands[int(wanted)]


class Following(Commanded):
    """Follows one command in every episode, in any lanes with the observations, actions and groups of the training.

    Histories of decisions start empty in every lane.

    Args:
        model: The model.
        command: The desired return and horizon.
        deterministic: Whether the most likely actions are taken instead of sampled ones.
    """

    def __init__(self, model: PCN, command: Command, *, deterministic: bool = False) -> None:
        super().__init__(model, [command], lanes=1)
        self._deterministic, self._vectors = deterministic, RewardVectors(model.env)

    def start(self, world: World) -> None:
        """Prepare for the world's lanes."""
        self._prepare(world.count)
        self._vectors.start(world)
        self._one_person = self._vectors.rules.spec.one_person

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Set the command of new episodes."""
        super().begin(mask, episodes)
        self._vectors.begin(mask)

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the probabilities of the choices, shape (B, agents, A), or (B, agents, N, A)."""
        found = super().probabilities(observation)
        if self._deterministic:
            found = np.eye(found.shape[-1])[found.argmax(axis=-1)]
        self._reported: Floats32 | None = found.astype(np.float32) if self._one_person else None
        return found

    def observe_step(self, step: Transition) -> None:
        """Subtract the step from the command."""
        self._subtract(self._vectors(step, self._reported), step)


def policy_of(
    model: PCN, rules: AnyRules, *, command: Command | None = None, choice: str = KNEE, deterministic: bool = False
) -> Following:
    """Return a trained model as a policy that follows one command.

    Args:
        model: The model.
        rules: The environment that the policy is for.
        command: The command; None: ``choice``.
        choice: The learned trade-off, see `chosen_command`.
        deterministic: Whether the most likely actions are taken instead of sampled ones.

    Raises:
        ValueError: The environment has other observations or actions than that of the training, or the model has no
            such command.
    """
    trained = trained_rules(model.env)
    own, wanted = (one.observation_space(one.params).shape for one in (rules, trained))
    _check_equal("observations", own, wanted)
    _check_equal("actions", rules.action_space(rules.params), trained.action_space(trained.params))
    wanted_command = chosen_command(model, choice) if command is None else command
    return Following(model, wanted_command, deterministic=deterministic)


def _check_equal(what: str, own: Any, wanted: Any) -> None:
    if own != wanted:
        raise ValueError(f"policy must be used with {what} like those of its training, {wanted}, got {own}")
