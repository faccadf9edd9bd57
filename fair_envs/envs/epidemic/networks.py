"""The networks of FairEpidemic: who meets whom, the communities, and the positions of people in pictures.

Zachary's karate club and the chain are defined here. You can give your own network as a networkx graph, as a matrix or
as pairs. networkx itself is needed only to find communities by Girvan and Newman's method.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.extras import install_command

NETWORKS = ("karate", "chain")
GIRVAN_NEWMAN = "girvan_newman"
MOST_SPRINGS = 400  # most people whose positions come from a spring layout
NEEDS_NETWORKX = (
    "communities='girvan_newman' of a network of your own needs networkx; give the communities, or install it with: "
    f"{install_command('networks')}"
)
EXPECTED = f"one of {', '.join(map(repr, NETWORKS))}, a networkx graph, a symmetric matrix of 0 and 1, or pairs"

# Zachary (1977), figure 1 and table 1; the people are numbered from 0.
KARATE: Mapping[int, tuple[int, ...]] = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}
"""For each person, the neighbours with higher numbers."""

KARATE_PEOPLE = 34
KARATE_FIRST = (0, 1, 3, 4, 5, 6, 7, 10, 11, 12, 13, 16, 17, 19, 21)
"""The smaller community of Girvan and Newman's first split; the other 19 people are the larger one."""

# A spring layout, turned so that the communities lie beside each other; (x, y) between 0 and 1.
KARATE_PLACES = (
    *((0.36, 0.54), (0.45, 0.8), (0.57, 0.54), (0.41, 0.59), (0.24, 0.2), (0.13, 0.38), (0.15, 0.24), (0.41, 0.71)),
    *((0.61, 0.7), (0.66, 0.27), (0.21, 0.35), (0.16, 0.73), (0.26, 0.6), (0.53, 0.7), (0.79, 1.0), (0.92, 0.78)),
    *((0.0, 0.19), (0.34, 0.96), (0.9, 0.9), (0.53, 0.6), (0.92, 0.49), (0.29, 0.86), (0.86, 0.97), (0.85, 0.38)),
    *((0.73, 0.0), (0.81, 0.08), (1.0, 0.63), (0.74, 0.29), (0.69, 0.49), (0.91, 0.6), (0.65, 0.87), (0.65, 0.36)),
    *((0.78, 0.7), (0.76, 0.63)),
)


class Network(NamedTuple):
    """A network of people and their communities.

    Attributes:
        labels: The name of each person, ``people`` of them.
        edges: Pairs of people who meet, as indices, each pair once, the lower index first; shape (pairs, 2).
        community: The community of each person, shape (people,).
        names: The names of the communities.
        places: Positions of people in pictures, (x, y) between 0 and 1, shape (people, 2); None: from `arranged`.
    """

    labels: tuple[Hashable, ...]
    edges: Ints
    community: Ints
    names: tuple[str, ...]
    places: Floats | None = None

    @property
    def people(self) -> int:
        """The number of people."""
        return len(self.labels)

    def degrees(self) -> Ints:
        """Return the number of neighbours of each person, shape (people,)."""
        return np.bincount(self.edges.ravel(), minlength=self.people)

    def adjacency(self) -> Ints:
        """Return 1 where two people meet, shape (people, people)."""
        matrix = np.zeros((self.people, self.people), np.int64)
        matrix[self.edges[:, 0], self.edges[:, 1]] = matrix[self.edges[:, 1], self.edges[:, 0]] = 1
        return matrix

    def neighbours(self) -> tuple[Ints, Ints]:
        """Return the start of each person's neighbours, shape (people + 1,), and all of them, shape (2 x pairs,)."""
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        return np.concatenate([[0], np.cumsum(self.degrees())]), both[:, 1]

    def find(self, name: str, given: Iterable[Hashable]) -> list[int]:
        """Return the indices of people.

        Args:
            name: The name of the argument, for the error message.
            given: The people's labels.

        Raises:
            ValueError: A label is not in the network.
        """
        return _places_of(name, given, self.labels)


def make_network(network: Any, communities: Any, *, chain_people: int) -> Network:
    """Return a network with its communities.

    Args:
        network: One of `NETWORKS`; a networkx graph; an array of shape (people, people), 1 where two people meet; or
            pairs of people, who are numbered from 0.
        communities: ``"girvan_newman"``, which uses the components of a network that has several; a code or a name for
            each person, in order or by label; or the people of each community.
        chain_people: Number of people in the chain.

    Raises:
        ValueError: The network or the communities are invalid.
        ImportError: networkx is needed but not installed.
    """
    labels, edges = _read(network, chain_people)
    if isinstance(communities, str) and communities == GIRVAN_NEWMAN:
        known = network if isinstance(network, str) else None
        community, names = _girvan_newman(known, edges, len(labels)), None
    else:
        community, names = _communities(communities, labels)
    count = int(community.max()) + 1
    if count < 2:
        raise ValueError(f"communities must be at least 2, got {count}")
    names = names or tuple(f"community {code}" for code in range(count))
    return Network(labels, edges, community, names, _places(network, community))


def _places(network: Any, community: Ints) -> Floats | None:
    if not isinstance(network, str):
        return None
    return np.array(KARATE_PLACES) if network == "karate" else on_a_circle(community)


def arranged(network: Network) -> Floats:
    """Return positions that place neighbours near each other, (x, y) between 0 and 1, shape (people, 2).

    networkx computes them. Without networkx, or with more than `MOST_SPRINGS` people, they lie on a circle.
    """
    try:
        import networkx
    except ImportError:
        return on_a_circle(network.community)
    if network.people > MOST_SPRINGS:
        return on_a_circle(network.community)
    graph = networkx.Graph()
    graph.add_nodes_from(range(network.people))
    graph.add_edges_from(network.edges.tolist())
    found = networkx.spring_layout(graph, seed=0)
    places = np.array([found[person] for person in range(network.people)])
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - low) / np.maximum(high - low, 1e-9))


def on_a_circle(community: Ints) -> Floats:
    """Return positions on a circle, one community after another, shape (people, 2)."""
    turn = np.empty(len(community))
    turn[np.argsort(community, kind="stable")] = 2 * np.pi * (np.arange(len(community)) + 0.5) / len(community)
    return np.stack([0.5 - 0.5 * np.sin(turn), 0.5 - 0.5 * np.cos(turn)], axis=1)


# ------------------------------------------------------------------------------------------------- the network


def _read(given: Any, chain_people: int) -> tuple[tuple[Hashable, ...], Ints]:
    """Return the people's labels and the pairs who meet."""
    if isinstance(given, str):
        return _known(given, chain_people)
    if hasattr(given, "nodes") and hasattr(given, "edges"):
        return _from_graph(given)
    if isinstance(given, np.ndarray) or hasattr(given, "toarray"):
        return _from_matrix(np.asarray(given.toarray() if hasattr(given, "toarray") else given))
    return _from_pairs(given)


def _known(name: str, chain_people: int) -> tuple[tuple[Hashable, ...], Ints]:
    if name == "karate":
        return tuple(range(KARATE_PEOPLE)), np.array([(one, other) for one in KARATE for other in KARATE[one]])
    if name == "chain":
        first = np.arange(chain_people - 1)
        return tuple(range(chain_people)), np.stack([first, first + 1], axis=1)
    raise ValueError(f"network must be {EXPECTED}, got {name!r}")


def _from_graph(graph: Any) -> tuple[tuple[Hashable, ...], Ints]:
    if graph.is_directed():
        raise ValueError(f"network must be undirected, got {graph}")
    labels = tuple(graph.nodes)
    try:
        place = {label: k for k, label in enumerate(labels)}
        pairs = [(place[one], place[other]) for one, other, *_ in graph.edges]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"network must have edges between its nodes, which are hashable, got {graph}") from None
    if None in place or len(place) < len(labels):
        raise ValueError(f"network must have nodes that differ from each other and from None, got {labels}")
    return labels, _checked_edges(pairs, len(labels))


def _from_matrix(matrix: NDArray[Any]) -> tuple[tuple[Hashable, ...], Ints]:
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not square or not np.isin(matrix, (0, 1)).all() or (matrix != matrix.T).any():
        raise ValueError(f"network must be a symmetric matrix of 0 and 1 if it is an array, got shape {matrix.shape}")
    return tuple(range(len(matrix))), _checked_edges(np.argwhere(matrix != 0).tolist(), len(matrix))


def _from_pairs(given: Any) -> tuple[tuple[Hashable, ...], Ints]:
    try:
        pairs = [(one, other) for one, other in given]
    except (TypeError, ValueError):
        raise ValueError(f"network must be {EXPECTED}, got {given!r}") from None
    ends = [end for pair in pairs for end in pair]
    whole = all(isinstance(end, (int, np.integer)) and not isinstance(end, bool) and end >= 0 for end in ends)
    if not ends or not whole:
        raise ValueError(f"network must have pairs of people numbered from 0, got {given!r}")
    people = int(max(ends)) + 1
    return tuple(range(people)), _checked_edges([(int(one), int(other)) for one, other in pairs], people)


def _checked_edges(pairs: Sequence[Sequence[int]], people: int) -> Ints:
    """Return each pair once, sorted."""
    if people < 2 or not pairs:
        raise ValueError(f"network must have at least 2 people and one pair, got {people} and {len(pairs)} pairs")
    edges = np.unique(np.sort(np.array(pairs, np.int64), axis=1), axis=0)
    alone = edges[edges[:, 0] == edges[:, 1]]
    if len(alone):
        raise ValueError(f"network must have pairs of two people, got {int(alone[0, 0])} with itself")
    return edges


# ---------------------------------------------------------------------------------------------- the communities


def _girvan_newman(known: str | None, edges: Ints, people: int) -> Ints:
    """Return each person's community after the first split, the one with the lowest index first; shape (people,).

    If a network has several components, these are the communities.
    """
    if known == "karate":
        return 1 - np.isin(np.arange(people), KARATE_FIRST).astype(np.int64)
    if known == "chain":  # most shortest paths cross the middle
        return (np.arange(people) >= people // 2).astype(np.int64)
    try:
        import networkx
    except ImportError as error:
        raise ImportError(NEEDS_NETWORKX) from error
    graph = networkx.Graph()
    graph.add_nodes_from(range(people))
    graph.add_edges_from(edges.tolist())
    split = list(networkx.connected_components(graph))
    if len(split) == 1:
        split = next(networkx.algorithms.community.girvan_newman(graph))
    community = np.empty(people, np.int64)
    for code, members in enumerate(sorted(split, key=min)):
        community[list(members)] = code
    return community


def _communities(given: Any, labels: tuple[Hashable, ...]) -> tuple[Ints, tuple[str, ...] | None]:
    """Return each person's community, and the names of the communities if given."""
    entries = _entries(given, labels)
    if all(isinstance(entry, (set, frozenset, list, tuple)) for entry in entries):
        return _from_members(entries, labels), None
    if len(entries) != len(labels):
        raise ValueError(f"communities must be given for {len(labels)} people, got {len(entries)}")
    if all(isinstance(entry, str) for entry in entries):
        names = tuple(dict.fromkeys(entries))
        return np.array([names.index(entry) for entry in entries]), names
    numbers = all(isinstance(entry, (int, np.integer)) for entry in entries)
    if not numbers or set(entries) != set(range(max(entries) + 1)):
        raise ValueError(f"communities must have the codes 0, 1, ..., or names, got {given!r}")
    return np.array(entries, np.int64), None


def _entries(given: Any, labels: tuple[Hashable, ...]) -> list[Any]:
    """Return the given values as a list; a mapping's values in the order of the people."""
    if isinstance(given, Mapping) and set(given) == set(labels):
        return [given[label] for label in labels]
    if isinstance(given, np.ndarray):
        return list(given.tolist())
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence) or not given:
        raise ValueError(
            f"communities must be {GIRVAN_NEWMAN!r}, a code or a name for each person, or each community's people, "
            f"got {given!r}"
        )
    return list(given)


def _from_members(members: Sequence[Iterable[Hashable]], labels: tuple[Hashable, ...]) -> Ints:
    community = np.full(len(labels), -1)
    for code, listed in enumerate(members):
        places = _places_of("communities", listed, labels)
        if (community[places] >= 0).any() or not places:
            raise ValueError(f"communities must have people that are in no other community, got {listed!r}")
        community[places] = code
    if (community < 0).any():
        raise ValueError(f"communities must contain each person, got none with {labels[int(community.argmin())]!r}")
    return community


def _places_of(name: str, given: Iterable[Hashable], labels: tuple[Hashable, ...]) -> list[int]:
    place = {(label, is_flag(label)): k for k, label in enumerate(labels)}  # True is not a number of a person
    try:
        return [place[label, is_flag(label)] for label in given]
    except (KeyError, TypeError):
        raise ValueError(f"{name} must name people of the network, got {given!r}") from None


def is_flag(label: Any) -> bool:
    """Return whether a label is True or False, which compare equal to 1 and 0."""
    return isinstance(label, (bool, np.bool_))
