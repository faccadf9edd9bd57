"""What the pursuers of a team do: their distances to the evader, and how far the team is from equivariance."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.team.play import SetSpeed
from fair_envs.core import Lanes, Rules, check_seeds
from fair_envs.envs.pursuit.policies import ShuffledRoles
from fair_envs.evaluation import LanesWorld, Policy, Transition, World, begun, rollout
from fair_envs.support.aliases import Flags, Floats, Ints

STARTS = 1000  # of the comparison of actions, the same for all teams
FIRST_START = 0  # seed of the first one
RELABELLINGS = 200  # for what is expected by chance


class Watched(Policy):
    """A team of which the distances to the nearest evader are kept, at the start and at the end of each episode.

    Each lane must play one episode.

    Args:
        team: The team.
    """

    def __init__(self, team: Policy) -> None:
        self.team = team
        self.append_group = team.append_group
        self._began: list[Floats] = []
        self._lanes: list[Lanes] = []

    @property
    def distances(self) -> Floats:
        """Distances at the start and at the end of the episodes, shape (2, E, pursuers)."""
        return np.stack([np.concatenate(self._began), np.concatenate([distances_of(own) for own in self._lanes])])

    def start(self, world: World) -> None:
        """Keep the distances at the start."""
        self._lanes.append(world.lanes)
        self._began.append(distances_of(world.lanes))
        self.team.start(world)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Pass the episodes on."""
        self.team.begin(mask, episodes)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the team's actions."""
        return self.team.act(observation, uniforms)

    def observe_step(self, step: Transition) -> None:
        """Pass the step on."""
        self.team.observe_step(step)


def distances_of(lanes: Lanes) -> Floats:
    """Return the distance of each pursuer to the nearest evader on the torus, shape (B, pursuers)."""
    position, side = lanes.records["position"], lanes.rules.params.side
    apart = np.abs(position[:, : lanes.agents, np.newaxis] - position[:, np.newaxis, lanes.agents :])
    return np.asarray(np.linalg.norm(np.minimum(apart, side - apart), axis=-1).min(axis=-1))


def role_numbers(captors: Flags, distances: Floats) -> dict[str, float]:
    """Return who captures, by nearness at the start, and where the pursuers are when the team captures.

    ``captures of nearest 0``: number of captures of the pursuer that began nearest to the evader, and so on. ``end
    distance of 0``: mean distance of pursuer 0 to the evader at the end of the episodes with a capture. ``end distance,
    nearest 0``: that of the nearest one of each such episode. If all pursuers have the same mean, roles do not depend
    on identity, whatever the distances of the nearest and the farthest one are. ``end distance, relabelled``: the mean
    difference between the largest and the smallest mean of a pursuer if they are relabelled at random in each episode.

    Args:
        captors: Whether each pursuer captured, shape (E, n).
        distances: See `Watched.distances`.
    """
    began, ended = distances
    nearness = began.argsort(axis=1).argsort(axis=1)
    agents = range(captors.shape[1])
    found = {f"captures of nearest {k}": float(captors[nearness == k].sum()) for k in agents}
    successful = ended[captors.any(axis=1)]
    if len(successful):
        found |= {f"end distance of {k}": float(mean) for k, mean in enumerate(successful.mean(axis=0))}
        rng = np.random.default_rng(0)
        dealt = [rng.permuted(successful, axis=1).mean(axis=0) for _ in range(RELABELLINGS)]
        found["end distance, relabelled"] = float(np.ptp(dealt, axis=1).mean())
        sorted_means = np.sort(successful, axis=1).mean(axis=0)
        found |= {f"end distance, nearest {k}": float(mean) for k, mean in enumerate(sorted_means)}
    return found


class _Shifted(ShuffledRoles):
    """A team whose pursuers have exchanged their bodies in a cycle."""

    def __init__(self, team: Policy, *, shift: int) -> None:
        super().__init__(team)
        self._shift = shift

    def forget(self, lanes: Lanes, mask: Flags) -> None:
        """Exchange the bodies of the masked lanes."""
        self.roles[mask] = (np.arange(lanes.agents) + self._shift) % lanes.agents
        self._show(lanes)
        self.team.begin(mask, np.arange(lanes.count))


def equivariance_gap(team: Policy, rules: Rules, *, speed: float) -> float:
    """Return how differently pursuers head for each other's situations, 0 (equivariant) or more.

    It is 1 minus the cosine between the direction of a body and the one that it has if the pursuers exchange their
    bodies in a cycle, mean over bodies, cycles and `STARTS` starts. Independent directions have 1. A team that is
    equivariant under these exchanges is fair.

    Args:
        team: The team.
        rules: The environment, whose actions are directions or angles.
        speed: Speed of the pursuers.

    Raises:
        ValueError: Actions are not directions or angles.
    """
    if not isinstance(rules.action_space(rules.params), gym.spaces.Box):
        raise ValueError(f"rules must have directions or angles as actions, got {rules.action_space(rules.params)}")
    own = _first_directions(team, rules, speed=speed)
    others = [_first_directions(_Shifted(team, shift=shift), rules, speed=speed) for shift in range(1, own.shape[1])]
    return float(1 - np.mean([(own * other).sum(axis=-1) for other in others]))


def _first_directions(team: Policy, rules: Rules, *, speed: float) -> Floats:
    """Return the directions of all pursuers at the starts, as unit vectors, shape (starts, pursuers, 2)."""
    lanes = begun(rules, check_seeds(FIRST_START, STARTS), amendments=[SetSpeed(speed)])
    first = next(iter(rollout(LanesWorld(lanes, append_group=team.append_group), team)))
    action: Floats = np.asarray(first.action, np.float64)
    if action.shape[-1] == 1:
        return np.concatenate([np.cos(action), np.sin(action)], axis=-1)
    return np.asarray(action / np.maximum(np.linalg.norm(action, axis=-1, keepdims=True), 1e-12))
