"""Replay buffer of Pareto Conditioned Networks: whole episodes, ranked by their returns' distance to the front."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch as th
from numpy.typing import ArrayLike, NDArray

from fair_envs.baselines.pcn.rollouts import Episode
from fair_envs.metrics.pareto import as_points, crowding_distance, non_dominated, ranks
from fair_envs.support.aliases import Floats, Floats32, Ints

Crowding = Literal["all", "ranks"]
Penalty = Literal["double", "one"]
Keep = Literal["top", "heap"]

FRESH = 1.0  # priority of an episode that has not been ranked: above all others
INFERIOR = 1e-5  # reduction of the priority of a dominated or repeated return
ONE = 1.0  # reduction of the priority of a crowded return with the penalty "one"


class Ranking(NamedTuple):
    """Settings of the ranking of episodes; see `fair_envs.baselines.pcn.pcn.PCNSettings`."""

    crowding: Crowding = "all"
    threshold: float = 0.1
    penalty: Penalty = "double"
    lorenz_lambda: float = 1.0


def priorities(returns: ArrayLike, ranking: Ranking, *, scale: Floats | float = 1.0) -> Floats:
    """Return the priorities of keeping episodes with these returns, shape (episodes,); 0 is best.

    A priority is minus the distance to the nearest non-dominated return. It is lower by 1e-5 for returns that are
    dominated or equal to an earlier one. For crowded returns it is doubled (Reymond et al. 2022, section 4.4) or lower
    by 1 (FAReL).

    Args:
        returns: Returns, shape (episodes, objectives).
        ranking: Which returns dominate others, and how crowding is measured and penalised.
        scale: Factors of the returns in distances; dominance compares the returns as they are.
    """
    unscaled = as_points(returns, "returns")
    rows = unscaled * scale
    best = non_dominated(unscaled, lorenz_lambda=ranking.lorenz_lambda)
    apart = np.linalg.norm(rows[:, np.newaxis] - rows[best], axis=2).min(axis=1)
    priority: Floats = -apart - INFERIOR * ~best
    within = ranking.crowding == "ranks"
    rank = ranks(unscaled, lorenz_lambda=ranking.lorenz_lambda) if within else None
    crowded = crowding_distance(rows, within_ranks=within, rank=rank) <= ranking.threshold
    if ranking.penalty == "double":
        return np.where(crowded, 2 * priority, priority)
    return priority - ONE * crowded


def copies(returns: Floats, numbers: Ints) -> Ints:
    """Return the number of newer episodes with exactly the same returns, shape (episodes,)."""
    _, point = np.unique(returns, axis=0, return_inverse=True)
    order = np.lexsort((-numbers, point.ravel()))
    ordered = point.ravel()[order]
    first = np.searchsorted(ordered, ordered)
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) - first
    return found


class Entry(NamedTuple):
    """An episode in the buffer; entries are ordered by priority, then age."""

    priority: float
    number: int  # of the episode, in playing order
    episode: Episode


class Batches(NamedTuple):
    """Samples for several updates, shapes (updates, batch, ...)."""

    observations: th.Tensor
    actions: th.Tensor
    commands: th.Tensor  # return-to-go and remaining steps


class Buffer:
    """Buffer of episodes with priorities.

    Args:
        size: Number of episodes that are kept.
        ranking: Settings of the ranking.
        keep: ``"top"``: after each ranking, keep the episodes with the highest priority; ties go to the least crowded,
            then to the newest. ``"heap"``: when the buffer is full, a new episode replaces the one with the lowest
            priority in the last ranking, in a binary heap (FAReL).
        objectives: Columns of the requested rewards.
        scale: Factors of the returns in distances.

    Attributes:
        entries: The episodes; a binary heap with ``"heap"``, sorted from the best with ``"top"`` after a ranking.
        played: Number of episodes added so far.
    """

    def __init__(self, size: int, ranking: Ranking, *, keep: Keep, objectives: Sequence[int], scale: Floats) -> None:
        self.size, self.ranking, self.keep = size, ranking, keep
        self.objectives, self.scale = list(objectives), scale
        self.entries: list[Entry] = []
        self.played = 0

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self.entries)

    @property
    def episodes(self) -> list[Episode]:
        """Episodes in the buffer's order."""
        return [entry.episode for entry in self.entries]

    def returns(self) -> Floats:
        """Return the episodes' returns in all objectives, shape (episodes, m)."""
        return np.array([episode.returns for episode in self.episodes])

    def add(self, episodes: Sequence[Episode]) -> None:
        """Add episodes in the given order."""
        for episode in episodes:
            entry = Entry(FRESH, self.played, episode)
            self.played += 1
            if self.keep == "top":
                self.entries.append(entry)
            elif len(self.entries) < self.size:
                heapq.heappush(self.entries, entry)
            else:
                heapq.heappushpop(self.entries, entry)

    def rank(self) -> list[Entry]:
        """Update all priorities, drop excess episodes, and return the kept entries from best to worst."""
        returns = self.returns()[:, self.objectives]
        scaled = returns * self.scale
        new = priorities(returns, self.ranking, scale=self.scale)
        ranked = [entry._replace(priority=float(p)) for entry, p in zip(self.entries, new, strict=True)]
        if self.keep == "heap":
            heapq.heapify(ranked)
            self.entries = ranked
            return sorted(ranked, reverse=True)
        numbers = np.array([entry.number for entry in ranked])
        order = np.lexsort((-numbers, copies(scaled, numbers), -new))
        self.entries = [ranked[k] for k in order[: self.size]]
        return self.entries

    def leaves(self) -> list[Episode]:
        """Return the second half of the array, which FAReL uses as the best; in a heap it need not be."""
        return self.episodes[len(self) // 2 :]

    def batches(self, count: int, size: int, rng: np.random.Generator) -> Batches:
        """Draw samples for several updates: an episode, uniformly, then one of its steps or of its agents' turns."""
        episodes = self.episodes
        samples = np.array([episode.samples for episode in episodes])
        drawn = rng.integers(len(episodes), size=count * size)
        chosen = samples[drawn] - 1 - (rng.random(count * size) * samples[drawn]).astype(np.int64)
        order = np.argsort(drawn, kind="stable")  # by episode
        parts = np.split(chosen[order], np.searchsorted(drawn[order], np.arange(1, len(episodes))))
        columns: list[NDArray[Any]] = [
            np.concatenate([episode.observations[part] for episode, part in zip(episodes, parts, strict=True)]),
            np.concatenate([episode.actions[part] for episode, part in zip(episodes, parts, strict=True)]),
            np.concatenate([self._to_go(episode, part) for episode, part in zip(episodes, parts, strict=True)]),
        ]
        back = np.argsort(order).reshape(count, size)
        return Batches._make(th.from_numpy(column[back]) for column in columns)

    def _to_go(self, episode: Episode, samples: Ints) -> Floats32:
        """Return the returns-to-go and remaining steps of some samples of an episode."""
        steps = episode.steps(samples)
        asked, left = episode.returns_to_go[steps][:, self.objectives], len(episode) - steps
        found: Floats32 = np.concatenate([asked, left[:, np.newaxis]], axis=1).astype(np.float32)
        return found

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the content that `packed` returned."""
        self.played = state["played"]
        reported = zip(state["priorities"], state["numbers"], _unpacked(state), strict=True)
        self.entries = [Entry(priority, number, episode) for priority, number, episode in reported]


def packed(entries: Sequence[Entry], *, played: int) -> dict[str, Any]:
    """Return a buffer's content as tensors and plain data."""
    episodes = [entry.episode for entry in entries]
    names = ("observations", "actions", "rewards") if entries else ()
    columns = [np.concatenate([getattr(episode, name) for episode in episodes]) for name in names]
    state = {
        "played": played,
        "priorities": [entry.priority for entry in entries],
        "numbers": [entry.number for entry in entries],
        "lengths": [len(episode) for episode in episodes],
        "columns": [th.from_numpy(column) for column in columns],
    }
    if any(episode.turns is not None for episode in episodes):
        turns = [episode.steps(np.arange(episode.samples)) for episode in episodes]
        state |= {"samples": [len(own) for own in turns], "turns": th.from_numpy(np.concatenate(turns))}
    return state


def _unpacked(state: Mapping[str, Any]) -> Iterator[Episode]:
    """Yield the episodes of a buffer's content."""
    if not state["lengths"]:
        return
    observations, actions, rewards = (column.numpy() for column in state["columns"])
    lengths, samples = state["lengths"], state.get("samples", state["lengths"])
    turns = _split(state["turns"].numpy(), samples) if "turns" in state else [None] * len(lengths)
    parts = _split(observations, samples), _split(actions, samples), _split(rewards, lengths), turns
    for own, taken, earned, steps in zip(*parts, strict=True):
        yield Episode(observations=own, actions=taken, rewards=earned, turns=steps)


def _split(column: NDArray[Any], lengths: Sequence[int]) -> list[NDArray[Any]]:
    """Return the parts of a column, given by their lengths."""
    return np.split(column, np.cumsum(lengths)[:-1])
