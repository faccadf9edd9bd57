"""What Pareto Conditioned Networks learn from: whole episodes, ranked by how near their returns are to the front."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch as th
from numpy.typing import ArrayLike, NDArray

from fair_envs.aliases import Floats, Ints
from fair_envs.baselines.rollouts import Episode
from fair_envs.metrics.pareto import as_points, crowding_distance, non_dominated

Crowding = Literal["all", "ranks"]
Penalty = Literal["double", "one"]
Keep = Literal["top", "heap"]

FRESH = 1.0  # the priority of an episode that has not been ranked: above all others
INFERIOR = 1e-5  # what a dominated or repeated return loses
ONE = 1.0  # what a crowded return loses with the penalty "one"


class Ranking(NamedTuple):
    """How episodes are ranked; see `fair_envs.baselines.pcn.PCNSettings`."""

    crowding: Crowding = "all"
    threshold: float = 0.1
    penalty: Penalty = "double"


def priorities(returns: ArrayLike, ranking: Ranking) -> Floats:
    """Return how much episodes with these returns are worth keeping, shape (episodes,); 0 is best.

    It is minus the distance to the nearest non-dominated return, less 1e-5 for what is dominated or equal to an earlier
    one; what is crowded counts double (Reymond et al. 2022, section 4.4) or loses 1 (FAReL).

    Args:
        returns: Shape (episodes, objectives), in units that may be compared.
        ranking: How crowding is measured and punished.
    """
    rows = as_points(returns, "returns")
    best = non_dominated(rows)
    apart = np.linalg.norm(rows[:, np.newaxis] - rows[best], axis=2).min(axis=1)
    priority: Floats = -apart - INFERIOR * ~best
    crowded = crowding_distance(rows, within_ranks=ranking.crowding == "ranks") <= ranking.threshold
    if ranking.penalty == "double":
        return np.where(crowded, 2 * priority, priority)
    return priority - ONE * crowded


def copies(returns: Floats, numbers: Ints) -> Ints:
    """Return how many newer episodes have the very same returns, shape (episodes,)."""
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
    number: int  # of the episode, in the order in which they were played
    episode: Episode


class Batches(NamedTuple):
    """Samples for so many updates, shapes (updates, batch, ...)."""

    observations: th.Tensor
    actions: th.Tensor
    commands: th.Tensor  # return-to-go and steps left


class Buffer:
    """Episodes with priorities.

    Args:
        size: How many episodes are kept.
        ranking: How they are ranked.
        keep: ``"top"``: after each ranking those of highest priority, among equal ones the least crowded, then the
            newest. ``"heap"``: an episode that comes when the buffer is full replaces the one that had the lowest
            priority when they were last ranked, in a binary heap (FAReL).
        objectives: Columns of the rewards that are asked for.
        scale: By which their returns are multiplied before they are compared.

    Attributes:
        entries: The episodes; a binary heap with ``"heap"``, best first with ``"top"`` after a ranking.
        played: How many episodes have come.
    """

    def __init__(self, size: int, ranking: Ranking, *, keep: Keep, objectives: Sequence[int], scale: Floats) -> None:
        self.size, self.ranking, self.keep = size, ranking, keep
        self.objectives, self.scale = list(objectives), scale
        self.entries: list[Entry] = []
        self.played = 0

    def __len__(self) -> int:
        """Return how many episodes there are."""
        return len(self.entries)

    @property
    def episodes(self) -> list[Episode]:
        """The episodes, in the buffer's order."""
        return [entry.episode for entry in self.entries]

    def returns(self) -> Floats:
        """Return the episodes' returns in all objectives, shape (episodes, m)."""
        return np.array([episode.returns for episode in self.episodes])

    def add(self, episodes: Sequence[Episode]) -> None:
        """Take in episodes, in this order."""
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
        """Give all episodes new priorities, keep those to be kept, and return them, best first."""
        scaled = self.returns()[:, self.objectives] * self.scale
        new = priorities(scaled, self.ranking)
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
        """Return the second half of the array, which FAReL takes for the best; in a heap it need not be."""
        return self.episodes[len(self) // 2 :]

    def batches(self, count: int, size: int, chance: np.random.Generator) -> Batches:
        """Draw samples for so many updates: an episode, each as often, then one of its steps."""
        episodes = self.episodes
        lengths = np.array([len(episode) for episode in episodes])
        ends = np.cumsum(lengths)
        drawn = chance.integers(len(episodes), size=(count, size))
        place = ends[drawn] - 1 - (chance.random((count, size)) * lengths[drawn]).astype(np.int64)
        left = np.concatenate([np.arange(n, 0, -1) for n in lengths])[:, np.newaxis]
        asked = np.concatenate([episode.returns_to_go for episode in episodes])[:, self.objectives]
        columns = (
            np.concatenate([episode.observations for episode in episodes]),
            np.concatenate([episode.actions for episode in episodes]),
            np.concatenate([asked, left], axis=1).astype(np.float32),
        )
        return Batches._make(th.from_numpy(column[place]) for column in columns)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `packed` was given."""
        self.played = state["played"]
        columns = [column.numpy() for column in state["columns"]]
        told = zip(state["priorities"], state["numbers"], _split(columns, state["lengths"]), strict=True)
        self.entries = [Entry(priority, number, episode) for priority, number, episode in told]


def packed(entries: Sequence[Entry], *, played: int) -> dict[str, Any]:
    """Return a buffer's content as tensors and plain data."""
    names = ("observations", "actions", "rewards") if entries else ()
    columns = [np.concatenate([getattr(entry.episode, name) for entry in entries]) for name in names]
    return {
        "played": played,
        "priorities": [entry.priority for entry in entries],
        "numbers": [entry.number for entry in entries],
        "lengths": [len(entry.episode) for entry in entries],
        "columns": [th.from_numpy(column) for column in columns],
    }


def _split(columns: Sequence[NDArray[Any]], lengths: Sequence[int]) -> Iterator[Episode]:
    """Yield the episodes that lie one after another in the columns."""
    first = 0
    for length in lengths:
        observations, actions, rewards = (column[first : first + length] for column in columns)
        yield Episode(observations=observations, actions=actions, rewards=rewards)
        first += length
