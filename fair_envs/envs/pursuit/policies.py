"""Scripted policies for all pursuers of FairPursuit, and one that shuffles the roles of another."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Flags, Floats, Ints
from fair_envs.core import Lanes, Rules, check_seeds
from fair_envs.core.compilation import one_layout, readable, record_of
from fair_envs.core.interactions import blank_facts
from fair_envs.envs.pursuit.ahead import deal, point, shooting
from fair_envs.envs.pursuit.params import DIRECTION
from fair_envs.envs.pursuit.rules import Pursuit
from fair_envs.evaluation import LanesWorld, Policy
from fair_envs.parameters import NonNegative, PositiveInt, Range, checked

OF_PURSUERS = ("position", "facing", "force", "share", "speed", "caught", "captures")
"""The fields of a lane with a row for each pursuer, which come first; the trail, a picture's, stays as it is."""


class Team(Policy):
    """Plays all pursuers of a batch of lanes, which it may look into but does not change; override `act`.

    Args:
        rules: What is going to be played; None: the lanes tell.

    Attributes:
        lanes: What is played, from `start` on.
    """

    lanes: Lanes

    def __init__(self, rules: Rules | None = None) -> None:
        if rules is not None:
            pursuit_of(rules)

    def start(self, world: Any) -> None:
        """Keep the lanes; ``world`` is what has them: a `World`, or an environment without its wrappers."""
        self.lanes = world.lanes


def pursuit_of(rules: Rules) -> Pursuit:
    """Return rules of FairPursuit.

    Raises:
        ValueError: They are another environment's.
    """
    if not isinstance(rules, Pursuit):
        raise ValueError(f"rules must be those of FairPursuit, got those of {rules.name}")
    return rules


def greedy_directions(lanes: Lanes) -> Floats:
    """Return the direction of the shortest way from each pursuer to the nearest free evader, shape (B, n, 2).

    Directions are of length 1; (0, 0) where no evader is free.

    Raises:
        ValueError: The lanes are of another environment.
    """
    rules = pursuit_of(lanes.rules)
    out = np.empty((lanes.count, lanes.agents, 2))
    point(readable(rules.code), readable(lanes.records), out)
    return out


def actions_of(rules: Rules, directions: NDArray[Any]) -> NDArray[Any]:
    """Return the actions that head in directions, shape (..., 2): themselves, their angles or the nearest headings."""
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

    It captures whenever pursuers are faster than the evader, and at equal speed or less never.
    """

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the ways to the evader as actions."""
        return actions_of(self.lanes.rules, greedy_directions(self.lanes))


class Remembering(Team):
    """A team with state for each episode, which it resets by itself when an episode with another key is played.

    To play the same episode again from its start, call `begin`.
    """

    _rules: Rules | None = None
    _keys: NDArray[np.uint64]  # (B,), of the episodes begun

    def prepare(self, lanes: Lanes) -> None:
        """Allocate the state of so many lanes of these rules."""

    def forget(self, lanes: Lanes, mask: Flags) -> None:
        """Reset the state of these lanes."""

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Reset the state of these lanes; of all of them if they are of another batch."""
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
        """Begin in lanes whose episode is a new one."""
        lanes = self.lanes
        new = np.ones(lanes.count, bool) if self._is_new() else lanes.records["key"] != self._keys
        if new.any():
            self._begin(new)

    def _is_new(self) -> bool:
        """Return whether another batch was played before, or none."""
        return self._rules is not self.lanes.rules or len(self._keys) != self.lanes.count


class Planner(Remembering):
    """Tries random plans in a perfect copy of the world and begins the best: a bound of what a team can do.

    A plan gives each pursuer a heading for each piece of ``every`` steps. Every so many steps it tries as many plans as
    ``samples``, plays each ``horizon`` steps ahead by the environment's own rules, the evader's reaction included, and
    keeps the best until the next time. The first plan that it tries is what is left of the one before. Up to
    ``explored`` plans are drawn afresh: a heading of each pursuer, uniformly, for each third of the time. All others
    are the best so far with another heading, uniformly drawn, of one pursuer for a stretch of pieces. It takes the
    plan with the least

        sum over evaders of the closest approach + ``weight`` * mean distance,

    the closest approach being the least distance of any pursuer to the evader in the time ahead, 0 if it is caught,
    and the mean over steps and pursuers of the distance to the nearest free evader, 0 if there is none. What it draws
    is a function of the seed, the episode and the time: it plays equally in any batch.

    It refines because that is what it takes: with all plans drawn afresh (``explored=samples``) about a fifth of the
    episodes with pursuers slower than the evader last longer than 500 steps, and the others longer than with it.

    Args:
        rules: See `Team`.
        samples: Number of plans tried each time.
        horizon: Steps that it looks ahead.
        every: Steps between two plannings, and of a piece.
        explored: Number of plans that are drawn afresh, at most ``samples``; None: a sixth of them.
        weight: Of the mean distance, in the score.
        seed: Of what is drawn.
    """

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
        """Make room for the plans of so many lanes, and to try others in."""
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
            readable(np.zeros(1, rules.dtype)),  # a lane that plans are tried in
            np.zeros((pieces, lanes.agents)),  # the plan that is tried
            np.zeros((lanes.agents, 2)),  # its directions
            np.zeros(rules.params.evaders),  # how close it comes to each
            np.zeros(lanes.agents),  # rewards
            readable(facts.view(one_layout(facts.dtype))),
        )

    def forget(self, lanes: Lanes, mask: Flags) -> None:
        """Forget the plans of these lanes."""
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
    """A team whose roles are dealt to the bodies anew in each episode, by a permutation that is uniformly drawn.

    Body b plays role rho(b): it is shown what pursuer rho(b) would see if every pursuer stood in its role's place, and
    does what the inner team has that pursuer do. As neither the world nor the start knows a pursuer's number, every
    relabelling of an outcome is as likely beforehand, and the inner team is as likely to capture as without it: the
    episode is, but for who is called what, the inner team's from the start in which the roles have the bodies' places.

    It has a deficit of team fairness of 0 however unequal the roles are. That shows what the measure does not: within
    an episode one pursuer may still do all the driving and another make the capture.

    Args:
        team: The inner team.
        seed: Of the permutations; they are a function of it and of the episode.

    Raises:
        ValueError: At the begin of an episode, if pursuers differ in speed: then bodies cannot take any role.
    """

    def __init__(self, team: Policy, *, seed: int = 0) -> None:
        super().__init__()
        self.team = team
        self.seed = check_seeds(seed, 1)[0]

    def prepare(self, lanes: Lanes) -> None:
        """Make room for the roles' view of so many lanes."""
        pursuit_of(lanes.rules)
        self._shadow = Lanes(lanes.rules, lanes.count, threads=lanes.threads)
        self._shadow.records[:] = lanes.records
        self.team.start(LanesWorld(self._shadow))
        self.roles: Ints = np.zeros((lanes.count, lanes.agents), np.int64)  # of each body

    def forget(self, lanes: Lanes, mask: Flags) -> None:
        """Deal the roles of these lanes."""
        speed = lanes.records["speed"][mask]
        if (speed != speed[:, :1]).any():
            uneven = speed[(speed != speed[:, :1]).any(axis=1)][0].tolist()
            raise ValueError(f"lanes must have pursuers of one speed to exchange their roles, got {uneven}")
        self.roles[mask] = dealt(lanes, seed=self.seed)[mask]
        self._show(lanes)
        self.team.begin(mask, np.arange(lanes.count))

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return what each body does in its role."""
        self.attend()
        lanes = self.lanes
        self._show(lanes)
        actions = self.team.act(self._shadow.observe(), uniforms)
        return actions[np.arange(lanes.count)[:, np.newaxis], self.roles]

    def _show(self, lanes: Lanes) -> None:
        self._shadow.records[:] = exchanged(lanes.records, self.roles.argsort(axis=1))


def dealt(lanes: Lanes, *, seed: int | np.uint64) -> Ints:
    """Return a uniformly drawn role of each pursuer in the lanes' episodes, shape (B, n)."""
    roles = np.empty((lanes.count, lanes.agents), np.int64)
    deal(np.uint64(seed), readable(lanes.records), roles)
    return roles


def exchanged(records: NDArray[np.void], bodies: Ints) -> NDArray[np.void]:
    """Return lanes in which pursuer r is who was pursuer ``bodies[b, r]`` of lane b, fresh; bodies: (B, n)."""
    out, lanes = np.array(records), np.arange(len(records))[:, np.newaxis]
    for name in OF_PURSUERS:
        out[name][:, : bodies.shape[1]] = records[name][lanes, bodies]
    return out


__all__ = ["Greedy", "Planner", "ShuffledRoles", "Team", "actions_of", "greedy_directions"]
