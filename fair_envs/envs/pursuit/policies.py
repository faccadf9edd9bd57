"""Scripted policies for all pursuers of FairPursuit, and a policy that shuffles the roles of another policy."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules, check_seeds
from fair_envs.core.compilation import one_layout, readable, record_of
from fair_envs.core.interactions import blank_facts
from fair_envs.envs.pursuit.ahead import deal, point, shooting
from fair_envs.envs.pursuit.params import DIRECTION
from fair_envs.envs.pursuit.rules import Pursuit
from fair_envs.evaluation import LanesWorld, Policy
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import NonNegative, PositiveInt, Range, checked

OF_PURSUERS = ("position", "facing", "force", "share", "speed", "caught", "captures")
"""The fields of a lane with one row per pursuer, pursuers first; the trail is only for drawing and is not included."""


class Team(Policy):
    """Controls all pursuers of a batch of lanes, with read access to the lanes; override `act`.

    Args:
        rules: Rules of the environment; None: those of the lanes.

    Attributes:
        lanes: The lanes that are played, available from `start` on.
    """

    lanes: Lanes

    def __init__(self, rules: Rules | None = None) -> None:
        if rules is not None:
            pursuit_of(rules)

    def start(self, world: Any) -> None:
        """Store the lanes of ``world``, a `World` or an environment without its wrappers."""
        self.lanes = world.lanes


def pursuit_of(rules: Rules) -> Pursuit:
    """Return the rules as those of FairPursuit.

    Raises:
        ValueError: The rules are another environment's.
    """
    if not isinstance(rules, Pursuit):
        raise ValueError(f"rules must be those of FairPursuit, got those of {rules.name}")
    return rules


def greedy_directions(lanes: Lanes) -> Floats:
    """Return the direction of the shortest path from each pursuer to the nearest free evader, shape (B, n, 2).

    Directions have length 1, or are (0, 0) if no evader is free.

    Raises:
        ValueError: The lanes are of another environment.
    """
    rules = pursuit_of(lanes.rules)
    out = np.empty((lanes.count, lanes.agents, 2))
    point(readable(rules.code), readable(lanes.records), out)
    return out


def actions_of(rules: Rules, directions: NDArray[Any]) -> NDArray[Any]:
    """Return the actions for directions of shape (..., 2): the directions, their angles or the nearest headings."""
    kind, headings = rules.params.action, rules.params.headings
    if kind == "direction":
        return directions.astype(np.float32)
    angle = np.arctan2(directions[..., 1], directions[..., 0])
    if kind == "heading":
        return np.asarray(angle[..., np.newaxis], np.float32)
    chosen: Ints = np.rint(angle * headings / (2 * np.pi)).astype(np.int64) % headings
    return chosen


class Greedy(Team):
    """Each pursuer heads for the nearest free evader (the paper's greedy controller).

    It always captures if pursuers are faster than the evader, and never at equal or lower speed.
    """

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the actions that head for the evaders."""
        return actions_of(self.lanes.rules, greedy_directions(self.lanes))


class Remembering(Team):
    """A team with per-episode state, reset automatically when an episode with another key is played.

    To play the same episode again from its start, call `begin`.
    """

    _rules: Rules | None = None
    _keys: NDArray[np.uint64]  # (B,), of the current episodes

    def prepare(self, lanes: Lanes) -> None:
        """Allocate the state of the lanes."""

    def forget(self, lanes: Lanes, mask: Flags) -> None:
        """Reset the state of the masked lanes."""

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Reset the state of the masked lanes, or of all lanes if the batch is another one."""
        self._begin(mask)

    def _begin(self, mask: Flags) -> None:
        lanes = self.lanes
        if self._is_new():
            self.prepare(lanes)
            self._rules, self._keys = lanes.rules, np.zeros(lanes.count, np.uint64)
            mask = np.ones(lanes.count, bool)
        self._keys[mask] = lanes.records["key"][mask]
        self.forget(lanes, mask)

    def attend(self) -> None:
        """Reset the state of lanes with a new episode."""
        lanes = self.lanes
        new = np.ones(lanes.count, bool) if self._is_new() else lanes.records["key"] != self._keys
        if new.any():
            self._begin(new)

    def _is_new(self) -> bool:
        """Return whether the batch is another one than before, or the first."""
        return self._rules is not self.lanes.rules or len(self._keys) != self.lanes.count


class Planner(Remembering):
    """Plans by random shooting in a perfect copy of the environment, as a bound on what a team can achieve.

    A plan has a heading for each pursuer in each segment of ``every`` steps. Every ``every`` steps, the planner
    simulates ``samples`` plans for ``horizon`` steps with the environment's own rules, including the evader's reaction,
    and follows the best plan until the next planning. The first plan is the remainder of the previous one. Up to
    ``explored`` plans are new: each pursuer has a uniformly drawn heading for each third of the horizon. All other
    plans are mutations of the best plan so far: one pursuer gets a uniformly drawn heading for several consecutive
    segments. The planner chooses the plan with the smallest

        sum over evaders of the closest approach + ``weight`` * mean distance.

    The closest approach is the smallest distance of any pursuer to the evader within the horizon, 0 if it is caught.
    The mean distance is the mean over steps and pursuers of the distance to the nearest free evader, 0 if there is
    none. Random numbers are a function of the seed, the episode and the time, so results do not depend on the batch.

    The mutations are necessary: if all plans are new (``explored=samples``), about a fifth of the episodes with
    pursuers slower than the evader last longer than 500 steps, and the others last longer than with mutations.

    Args:
        rules: See `Team`.
        samples: Number of plans per planning.
        horizon: Number of simulated steps.
        every: Steps between plannings, and steps per segment.
        explored: Number of new plans, at most ``samples``; None: a sixth of them.
        weight: Weight of the mean distance in the score.
        seed: Seed of the random numbers.
    """

    uses_truth = True  # it plans in a copy of the environment

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        samples: int = 300,
        horizon: int = 36,
        every: int = 3,
        explored: int | None = None,
        weight: float = 0.001,
        seed: int = 0,
    ) -> None:
        super().__init__(rules)
        self.samples: int = checked("samples", samples, PositiveInt)
        self.horizon: int = checked("horizon", horizon, PositiveInt)
        self.every: int = checked("every", every, Annotated[int, Range(1, self.horizon)])
        explored = -(-self.samples // 6) if explored is None else explored
        self.explored: int = checked("explored", explored, Annotated[int, Range(1, self.samples)])
        self.weight: float = checked("weight", weight, NonNegative)
        self.seed = int(check_seeds(seed, 1)[0])

    def prepare(self, lanes: Lanes) -> None:
        """Allocate the plans of the lanes, and the buffers of the simulation."""
        rules, pieces = pursuit_of(lanes.rules), -(-self.horizon // self.every)
        settings = ("samples", "horizon", "every", "explored", "weight")
        headings = rules.params.headings if rules.params.action == "discrete" else 0
        self._plan = record_of(
            {**{name: getattr(self, name) for name in settings}, "seed": np.uint64(self.seed), "headings": headings}
        )
        self._code = rules.code.copy()
        self._code["action"] = DIRECTION
        self._held = np.zeros((lanes.count, pieces, lanes.agents))
        self._due_at = np.zeros(lanes.count, np.int64)
        self._fresh = np.ones(lanes.count, bool)
        facts = blank_facts(rules.spec)
        self._scratch = (
            readable(np.zeros(1, rules.dtype)),  # a lane for simulating plans
            np.zeros((pieces, lanes.agents)),  # the simulated plan
            np.zeros((lanes.agents, 2)),  # its directions
            np.zeros(rules.params.evaders),  # closest approach to each evader
            np.zeros(lanes.agents),  # rewards
            readable(facts.view(one_layout(facts.dtype))),
        )

    def forget(self, lanes: Lanes, mask: Flags) -> None:
        """Discard the plans of the masked lanes."""
        self._fresh[mask] = True

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the first headings of the best plans."""
        self.attend()
        lanes = self.lanes
        time, over = lanes.records["time"], lanes.records["over"] != 0
        due = (self._fresh | (time >= self._due_at)) & ~over
        if due.any():
            plan = shooting(type(lanes.rules))  # type: ignore[arg-type]
            plan(self._code, self._plan, readable(lanes.records), due, self._fresh, self._held, *self._scratch)
            self._due_at[due] = time[due] + self.every
            self._fresh[due] = False
        angle = self._held[:, 0]
        return actions_of(lanes.rules, np.stack([np.cos(angle), np.sin(angle)], axis=-1))


class ShuffledRoles(Remembering):
    """A team whose roles are randomly assigned to the bodies in each episode, by a uniformly drawn permutation.

    Body b plays role rho(b). It gets the observation that pursuer rho(b) would have if every pursuer were in the
    position of its role, and takes the action that the inner team chooses for that pursuer. Neither the environment nor
    the starting positions depend on a pursuer's number, so every relabelling of an outcome is equally likely in
    advance. The inner team's probability of capture is unchanged: up to relabelling, the episode is the inner team's
    episode from the start in which the roles have the bodies' positions.

    Its deficit of team fairness is 0 however unequal the roles are. This shows a limit of the measure: within an
    episode, one pursuer can still do all the driving while another makes the capture.

    Args:
        team: The inner team.
        seed: Seed of the permutations, which are a function of the seed and the episode.

    Raises:
        ValueError: Pursuers differ in speed when an episode begins, so that bodies cannot take any role.
    """

    def __init__(self, team: Policy, *, seed: int = 0) -> None:
        super().__init__()
        self.team = team
        self.seed = check_seeds(seed, 1)[0]

    def prepare(self, lanes: Lanes) -> None:
        """Allocate the lanes as the roles observe them."""
        pursuit_of(lanes.rules)
        self._shadow = Lanes(lanes.rules, lanes.count, threads=lanes.threads)
        self._shadow.records[:] = lanes.records
        self.team.start(LanesWorld(self._shadow))
        self.roles: Ints = np.zeros((lanes.count, lanes.agents), np.int64)  # role of each body

    def forget(self, lanes: Lanes, mask: Flags) -> None:
        """Draw new roles in the masked lanes."""
        speed = lanes.records["speed"][mask]
        if (speed != speed[:, :1]).any():
            uneven = speed[(speed != speed[:, :1]).any(axis=1)][0].tolist()
            raise ValueError(f"lanes must have pursuers of one speed to exchange their roles, got {uneven}")
        self.roles[mask] = dealt(lanes, seed=self.seed)[mask]
        self._show(lanes)
        self.team.begin(mask, np.arange(lanes.count))

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the action of each body in its role."""
        self.attend()
        lanes = self.lanes
        self._show(lanes)
        actions = self.team.act(self._shadow.observe(), uniforms)
        return actions[np.arange(lanes.count)[:, np.newaxis], self.roles]

    def _show(self, lanes: Lanes) -> None:
        self._shadow.records[:] = exchanged(lanes.records, self.roles.argsort(axis=1))


class ShuffledPlanner(ShuffledRoles):
    """The planner, with roles that are randomly assigned in each episode, see `ShuffledRoles`.

    Args:
        rules: See `Team`.
    """

    uses_truth = True  # it plans in a copy of the environment

    def __init__(self, rules: Rules | None = None) -> None:
        super().__init__(Planner(rules))


def dealt(lanes: Lanes, *, seed: int | np.uint64) -> Ints:
    """Return a uniformly drawn role for each pursuer in the lanes' episodes, shape (B, n)."""
    roles = np.empty((lanes.count, lanes.agents), np.int64)
    deal(np.uint64(seed), readable(lanes.records), roles)
    return roles


def exchanged(records: NDArray[np.void], bodies: Ints) -> NDArray[np.void]:
    """Return new lanes whose pursuer r is pursuer ``bodies[b, r]`` of lane b in the given ones; bodies: (B, n)."""
    out, lanes = np.array(records), np.arange(len(records))[:, np.newaxis]
    for name in OF_PURSUERS:
        out[name][:, : bodies.shape[1]] = records[name][lanes, bodies]
    return out


__all__ = ["Greedy", "Planner", "ShuffledPlanner", "ShuffledRoles", "Team", "actions_of", "greedy_directions"]
