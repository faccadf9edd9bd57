r"""Team fairness: does who gets what in a team depend on the identity of the agents?

A team's outcome is fair if every relabelling of the agents is equally likely: who captures must not depend on which
agent it is. The *deficit* of fairness, in bits, measures how far a distribution of outcomes R is from fair. It compares
R with the distribution in which, among episodes with the same number of captors A, all sets of captors are equally
likely,

$$D = \sum_{a=0}^{n} P(A = a) \left[\log_2 \binom{n}{a} - H(R \mid A = a)\right].$$

It is the Kullback-Leibler divergence from the mean of the distribution over all relabellings: 0 is fair, and it is at
most $P(0 < A < n) \log_2 \binom{n}{\lfloor n/2 \rfloor}$. The paper writes $I(R; Z)$, as a difference of entropies with
the opposite sign; its code computes D. The mutual information of *one* agent's outcome and its identity is another
number, `identity_mutual_information`. It is 0 whenever D is 0, but also in other cases: if half of the time agent 0
captures alone and half of the time agents 1 and 2 capture together, all agents capture equally often.

Three cautions:

* A team that never captures is trivially fair. Also read the deficit among captures, or the success rate.
* With N episodes the estimate of D is too large, especially if few episodes are captures. Report the corrected value
  and the p-value. The correction and the chi-square level are valid if there are at least about as many episodes as
  ways to relabel an outcome (they are NaN where they clearly are not valid); the p-value is always valid.
* Pooled training seeds hide roles: in each seed the same agent may always capture, but a different one in each seed, so
  that all seeds together look fair. Measure each seed, then average (`team_fairness_per_seed`, `over_seeds`).

Equal chances over episodes do not make a single episode fair: a team that draws its roles again in each episode is at
0. A team of one agent has a deficit of 0. Without episodes every measure is NaN.

References:
    Grupen, Selman and Lee, "Cooperative Multi-Agent Fairness and Equivariant Policies", AAAI 2022, arXiv:2106.05727.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.metrics.intervals import Estimate, Undefined, check_level, mean_interval, share_interval
from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.parameters import NonNegativeInt, PositiveInt, Range, checked

Seed = int | np.random.Generator
Several = Annotated[int, Range(2)]

NAN = float("nan")
EQUAL = 1e-9  # relative to the largest return; smaller differences count as rounding
MEASURES = ("deficit", "corrected", "among_captures", "corrected_among_captures", "share", "normalised", "identity")

_DRAWS_AT_ONCE = 2**22  # numbers in one batch of relabellings: 32 MiB
_MANY = 2**62  # with more arrangements than this, two draws are practically never equal
_MOST = 2**1000  # about the largest float


@dataclass(frozen=True, kw_only=True)
class TeamFairness:
    r"""How far the outcomes of a team are from fair.

    *Unequal* episodes are those in which agents fare differently, so that relabelling them changes the outcome. In
    captures, these are the episodes in which some but not all agents are captors.

    Attributes:
        deficit: D in bits, estimated from the observed frequencies: 0 is fair.
        corrected: D minus its bias at this number of episodes, `freedom` / (2 `episodes` ln 2) (Miller and Madow). It
            is not clipped: with fair outcomes its mean is about 0. The approximation subtracts too much if an outcome
            has many more relabellings than there are episodes. It is NaN if the error exceeds about 0.1 bits per
            unequal episode: if the degrees of freedom beyond two per episode, summed over the numbers of captors that
            occurred, exceed a tenth of the unequal episodes. With three agents this never happens.
        among_captures: D / `share`, the deficit of unequal episodes; NaN without any. Its bias is that of the unequal
            episodes only: a fair team of three that captures in 5 of 100 episodes has about 0.46 bits.
        corrected_among_captures: `corrected` / `share`; NaN if `corrected` is NaN or there is no unequal episode. For
            the same team it is 0.09 bits on average, and 0.003 if 20 of 100 episodes are captures.
        share: Share of unequal episodes.
        normalised: D divided by the largest value for n agents, $\log_2 \binom{n}{\lfloor n/2 \rfloor}$ in captures
            (three agents: $\log_2 3$): 1 if the same half of the team captures every time. NaN for one agent.
        identity: `identity_mutual_information`, or that of returns. It is not corrected: if a fixed number of agents
            captures in each episode, a fair team has about 1 / (2 `episodes` ln 2), which is 0.007 bits for 100
            episodes; in returns, up to this much for each bin but one.
        p_value: Probability of this deficit or a larger one in a fair team with the same number of captors in each
            episode. Without an unequal episode it is 1.
        episodes: Number of episodes N.
        freedom: Degrees of freedom: the number of ways to relabel an outcome, minus one, summed over the kinds of
            outcome that occurred; in captures $\sum_{a: N_a > 0} [\binom{n}{a} - 1]$.
    """

    deficit: float
    corrected: float
    among_captures: float
    corrected_among_captures: float
    share: float
    normalised: float
    identity: float
    p_value: float
    episodes: int
    freedom: int

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the fields for JSON, which has no NaN: numbers that are not finite become None."""
        return {name: number if math.isfinite(number) else None for name, number in asdict(self).items()}

    def null_level(self, *, level: float = 0.95) -> float:
        """Return the deficit that a fair team stays below in a share `level` of samples; NaN if `corrected` is."""
        check_level(level)
        return NAN if math.isnan(self.corrected) else null_level(self.episodes, freedom=self.freedom, level=level)


def team_fairness(captures: ArrayLike, *, permutations: int = 1000, seed: Seed = 0) -> TeamFairness:
    """Return how far the sets of captors are from fair.

    The test relabels the agents of every episode by its own uniformly drawn permutation. This makes the set of captors
    uniform among the sets of its size, so these sets are drawn directly. The p-value is (1 + relabellings with at least
    this deficit) / (1 + relabellings). It is valid for every number of episodes if episodes are independent.

    Args:
        captures: Which agents captured: True or 1, shape (episodes, agents).
        permutations: Number of times that all episodes are relabelled.
        seed: Seed of the relabelling, or a random generator.

    Example:
        >>> fairness = team_fairness([[1, 0, 0]] * 60 + [[0, 1, 0]] * 30 + [[0, 0, 1]] * 10)
        >>> f"{fairness.deficit:.6f} {fairness.corrected:.6f} {fairness.p_value:.6f}"
        '0.289501 0.275074 0.000999'
    """
    return _assess(_captures(captures), levels=2, permutations=permutations, seed=seed)


def team_fairness_of_returns(
    returns: ArrayLike,
    *,
    bins: int = 2,
    edges: ArrayLike | None = None,
    permutations: int = 1000,
    seed: Seed = 0,
) -> TeamFairness:
    r"""Return how far the returns of a team are from fair: does an agent's return depend on which agent it is?

    Returns are put into bins (`binned`). The bins that occur in an episode, regardless of which agent has which, take
    the place of the number of captors: with $m_b$ agents in bin b they can be arranged in $n! / \prod_b m_b!$ ways,

    $$D = \sum_m P(m) \left[\log_2 \frac{n!}{\prod_b m_b!} - H(R \mid m)\right].$$

    For captures it gives the same as `team_fairness`. Use few bins: three agents have 4 degrees of freedom with two
    bins and 44 with four.

    Args:
        returns: Finite numbers, shape (episodes, agents).
        bins: Number of bins, at least 2; each holds the same number of distinct returns.
        edges: Boundaries of the bins instead, ascending; a return on an edge is in the bin above.
        permutations: Number of times that all episodes are relabelled.
        seed: Seed of the relabelling, or a random generator.
    """
    codes, levels = _binned(returns, bins, edges)
    return _assess(codes, levels=levels, permutations=permutations, seed=seed)


def binned(returns: ArrayLike, *, bins: int = 2, edges: ArrayLike | None = None) -> Ints:
    """Return the bin of each return, shape (episodes, agents).

    Without `edges`, the distinct returns of all agents in all episodes are sorted and split into bins of equal numbers
    of distinct values. The agents' identities play no role in this, so a fair team remains fair. If there are few
    distinct values, they stay apart: 0 and 1 get a bin each, however rare the 1 is, which quantiles would not ensure.
    Returns that differ by no more than 1e-9 of the largest absolute return count as equal, so the order of summation
    does not matter.

    Args:
        returns: Finite numbers, shape (episodes, agents).
        bins: Number of bins, at least 2.
        edges: Boundaries of the bins instead, ascending; a return on an edge is in the bin above.
    """
    return _binned(returns, bins, edges)[0]


def identity_mutual_information(captures: ArrayLike) -> float:
    r"""Return the mutual information of an agent's identity and whether it captures, in bits.

    $I = h_2(\bar p) - \frac{1}{n} \sum_i h_2(p_i)$ with $p_i$ the share of episodes in which agent i captures, $\bar p$
    its mean over agents and $h_2$ the binary entropy. 0 if all agents capture equally often, $h_2(1/n)$ if the same
    agent always captures alone, and at most $h_2(\lfloor n/2 \rfloor / n)$, if the same half of the team always
    captures (three agents: 0.918 in both cases).

    Args:
        captures: Which agents captured: True or 1, shape (episodes, agents).
    """
    return float(_identity(_captures(captures), levels=2))


def identity_p_value(captures: ArrayLike, *, permutations: int = 1000, seed: Seed = 0) -> float:
    """Return the p-value of `identity_mutual_information` when the agents of every episode are relabelled.

    It is valid under the same condition as that of `team_fairness`, and answers a simpler question: do some agents
    capture more often than others? With many agents it has power where the deficit has none: if all sets of captors
    that occur differ, relabelling cannot lower the deficit, and its p-value is 1.

    Args:
        captures: Which agents captured: True or 1, shape (episodes, agents).
        permutations: Number of times that all episodes are relabelled.
        seed: Seed of the relabelling, or a random generator.
    """
    codes = _captures(captures)
    times: int = checked("permutations", permutations, PositiveInt)
    rng = _generator(seed)
    if not len(codes):
        return NAN
    relabelled = []
    for batch in _batches(times, codes.size):
        copies = np.broadcast_to(codes, (batch, *codes.shape))
        relabelled.append(_identity(rng.permuted(copies, axis=2), levels=2))
    # Rounding may make a relabelling with the same counts slightly lower.
    as_large = np.concatenate(relabelled) >= _identity(codes, levels=2) - 1e-12
    return (1 + int(as_large.sum())) / (1 + times)


def identity_mutual_information_of_returns(
    returns: ArrayLike, *, bins: int = 2, edges: ArrayLike | None = None
) -> float:
    """Return the mutual information of an agent's identity and the bin of its return, in bits: 0 is fair.

    It is the generalised Jensen-Shannon divergence of the agents' distributions. The arguments are those of `binned`.
    """
    codes, levels = _binned(returns, bins, edges)
    return float(_identity(codes, levels=levels))


def team_fairness_per_seed(
    captures: Iterable[ArrayLike], *, permutations: int = 1000, seed: Seed = 0
) -> tuple[TeamFairness, ...]:
    """Return the team fairness of each training seed.

    Args:
        captures: Which agents captured in each seed, each of shape (episodes, agents); an array of shape (seeds,
            episodes, agents) also works.
        permutations: Number of times that the episodes of each seed are relabelled.
        seed: Seed of the relabelling, or a random generator.
    """
    rng = _generator(seed)
    return tuple(team_fairness(each, permutations=permutations, seed=rng) for each in captures)


def team_fairness_of_returns_per_seed(
    returns: Iterable[ArrayLike],
    *,
    bins: int = 2,
    edges: ArrayLike | None = None,
    permutations: int = 1000,
    seed: Seed = 0,
) -> tuple[TeamFairness, ...]:
    """Return the team fairness of the returns of each training seed.

    Args:
        returns: Finite numbers for each seed, each of shape (episodes, agents).
        bins: Number of bins, at least 2, for each seed's own returns.
        edges: Boundaries of the bins instead, the same for all seeds.
        permutations: Number of times that the episodes of each seed are relabelled.
        seed: Seed of the relabelling, or a random generator.
    """
    rng = _generator(seed)
    return tuple(
        team_fairness_of_returns(each, bins=bins, edges=edges, permutations=permutations, seed=rng) for each in returns
    )


def over_seeds(
    seeds: Iterable[TeamFairness], *, level: float = 0.95, undefined: Undefined = "nan"
) -> dict[str, Estimate]:
    """Return the mean over training seeds of each measure, for captures or returns, with Student's interval.

    Pooling the episodes of several seeds instead would hide roles. In a team of two, take two seeds in which agent 0
    and agent 1, respectively, always capture: each seed has 1 bit, and pooled they have 0. Two seeds are too few for a
    useful interval; use five.

    Args:
        seeds: One result for each seed.
        level: Confidence level: the share of such intervals that cover the mean, in (0, 1).
        undefined: How to treat a seed whose measure is NaN, such as `among_captures` without captures: see
            `mean_interval`.

    Returns:
        The estimates of `deficit`, `corrected`, `among_captures`, `corrected_among_captures`, `share`, `normalised` and
        `identity`; the mean of p-values is not useful.
    """
    results = tuple(seeds)
    return {
        name: mean_interval([getattr(result, name) for result in results], level=level, undefined=undefined)
        for name in MEASURES
    }


def null_level(episodes: int, *, freedom: int, level: float = 0.95) -> float:
    r"""Return the deficit, in bits, that a fair team stays below in a share `level` of samples.

    For a fair team, $2 N D \ln 2$ is approximately chi-square distributed. Use it to plan how many episodes to play.
    With more degrees of freedom per episode, more fair teams stay below the level; beyond two per episode the level has
    no meaning and is NaN.

    Args:
        episodes: Number of episodes N.
        freedom: Degrees of freedom (see `TeamFairness`): 2 for three agents of which one captures; 4 if two sometimes
            do too.
        level: In (0, 1).

    Example:
        >>> round(null_level(100, freedom=2), 4)
        0.0432
    """
    from scipy.special import chdtri

    count = checked("episodes", episodes, PositiveInt)
    degrees = checked("freedom", freedom, NonNegativeInt)
    check_level(level)
    if degrees > 2 * count:
        return NAN
    return float(chdtri(degrees, 1 - level)) / (2 * count * math.log(2)) if degrees else 0.0


def captor_sets(captures: ArrayLike) -> dict[tuple[int, ...], int]:
    """Return the number of episodes in which each set of captors occurred, small sets first.

    Args:
        captures: Which agents captured: True or 1, shape (episodes, agents).

    Example:
        >>> captor_sets([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 0, 0]])
        {(): 1, (0,): 2, (1, 2): 1}
    """
    rows, counts = np.unique(_captures(captures), axis=0, return_counts=True)
    found = {tuple(np.flatnonzero(row).tolist()): int(count) for row, count in zip(rows, counts, strict=True)}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def success(captures: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Return the share of episodes in which at least one agent captures, with Wilson's interval.

    Args:
        captures: Which agents captured: True or 1, shape (episodes, agents).
        level: Confidence level: the share of such intervals that cover the probability, in (0, 1).

    Example:
        >>> print(success([[1, 0], [0, 0], [1, 1], [0, 1]]))
        0.75 [0.3006, 0.9544] (95 %, n = 4)
    """
    return share_interval(_captures(captures).any(axis=1), level=level)


# From codes to numbers ------------------------------------------------------------------------------------------------


class _Tally(NamedTuple):
    """How often each outcome occurred. Outcomes of one *kind* are relabellings of each other: the same sorted codes."""

    counts: Ints  # (outcomes,) episodes of each distinct outcome
    sizes: Ints  # (kinds,) episodes of each kind
    arrangements: list[int]  # (kinds,) distinct outcomes that relabelling can give


def _tally(codes: Ints) -> _Tally:
    outcomes, counts = np.unique(codes, axis=0, return_counts=True)
    kinds, kind = np.unique(np.sort(outcomes, axis=1), axis=0, return_inverse=True)
    sizes = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(sizes, kind.reshape(-1), counts)
    return _Tally(counts, sizes, [_arrangements(np.unique(row, return_counts=True)[1]) for row in kinds])


def _arrangements(members: Iterable[int]) -> int:
    """Return n! / (m_1! m_2! ...), exactly."""
    total, ways = 0, 1
    for count in members:
        total += int(count)
        ways *= math.comb(total, int(count))
    return ways


def _assess(codes: Ints, *, levels: int, permutations: int, seed: Seed) -> TeamFairness:
    times, rng = checked("permutations", permutations, PositiveInt), _generator(seed)
    episodes, agents = codes.shape
    if not episodes:
        return TeamFairness(**dict.fromkeys((*MEASURES, "p_value"), NAN), episodes=0, freedom=0)
    tally = _tally(codes)
    deficit = _deficit(tally)
    share = float(tally.sizes[np.array([ways > 1 for ways in tally.arrangements])].sum() / episodes)
    freedom = min(sum(ways - 1 for ways in tally.arrangements), _MOST)
    corrected = NAN if _too_sparse(tally) else deficit - freedom / (2 * episodes * math.log(2))
    largest = math.log2(_arrangements(len(part) for part in np.array_split(np.arange(agents), levels)))
    return TeamFairness(
        deficit=deficit,
        corrected=corrected,
        among_captures=deficit / share if share else NAN,
        corrected_among_captures=corrected / share if share else NAN,
        share=share,
        normalised=deficit / largest if largest else NAN,
        identity=float(_identity(codes, levels=levels)),
        p_value=_p_value(tally, times, rng),
        episodes=episodes,
        freedom=freedom,
    )


def _too_sparse(tally: _Tally) -> bool:
    """Return whether kinds have so many more arrangements than episodes that the bias is not known.

    With up to two degrees of freedom per episode it is known within 0.1 bits, however many there are. Each further
    degree subtracts up to 1 / (2 ln 2) bits too much.
    """
    kinds = list(zip(tally.sizes.tolist(), tally.arrangements, strict=True))
    unequal: int = sum(size for size, ways in kinds if ways > 1)
    beyond: int = sum(max(0, ways - 1 - 2 * size) for size, ways in kinds)
    return 10 * beyond > unequal


def _deficit(tally: _Tally) -> float:
    r"""Return D = 1/N sum over kinds k of N_k (log2 M_k - H_k), where N_k H_k = N_k log2 N_k - sum of c log2 c."""
    fair = sum(size * math.log2(ways) for size, ways in zip(tally.sizes.tolist(), tally.arrangements, strict=True))
    bits = fair - _surprise(tally.sizes).sum() + _surprise(tally.counts).sum()
    return max(0.0, float(bits) / int(tally.sizes.sum()))  # only rounding can make it negative


def _surprise(counts: Ints) -> Floats:
    """Return c log2 c of each count; 0 of 0."""
    return np.asarray(counts * np.log2(np.maximum(counts, 1)), dtype=np.float64)


def _p_value(tally: _Tally, times: int, rng: np.random.Generator) -> float:
    """Return (1 + relabellings with at least this sum of c log2 c) / (1 + relabellings); the rest of D is constant."""
    kinds = zip(tally.sizes.tolist(), tally.arrangements, strict=True)
    relabelled = np.sum([_relabelled(size, ways, times, rng) for size, ways in kinds], axis=0)
    occurred = float(_surprise(tally.counts).sum())
    # Rounding may make a relabelling with the same counts slightly lower.
    as_large = relabelled >= occurred - 1e-9 * max(1.0, occurred)
    return (1 + int(as_large.sum())) / (1 + times)


def _relabelled(size: int, ways: int, times: int, rng: np.random.Generator) -> Floats:
    """Return the sum of c log2 c for each relabelling of the episodes of one kind, shape (times,)."""
    width = min(size, ways)
    parts = []
    for batch in _batches(times, width):
        if ways <= size:
            parts.append(_surprise(rng.multinomial(size, np.full(ways, 1 / ways), size=batch)).sum(axis=1))
        else:  # most arrangements do not occur: draw an arrangement's number for each episode instead
            parts.append(_surprise_of_equal(rng.integers(min(ways, _MANY), size=(batch, size))))
    return np.concatenate(parts)


def _batches(times: int, width: int) -> Iterator[int]:
    """Yield batch sizes that sum to `times`, with at most `_DRAWS_AT_ONCE` numbers per batch."""
    rows = max(1, _DRAWS_AT_ONCE // width)
    for start in range(0, times, rows):
        yield min(rows, times - start)


def _surprise_of_equal(draws: Ints) -> Floats:
    """Return the sum of c log2 c of each row, with c the counts of equal numbers in it; draws: shape (rows, size)."""
    ordered = np.sort(draws, axis=1)
    place = np.arange(draws.shape[1])
    new = np.ones(ordered.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    rank = place - np.maximum.accumulate(np.where(new, place, 0), axis=1)  # 0, 1, ... among equal numbers
    gains = np.diff(_surprise(np.arange(draws.shape[1] + 1)))  # increase of c log2 c with one more
    return np.asarray(gains[rank].sum(axis=1), dtype=np.float64)


def _identity(codes: Ints, *, levels: int) -> Any:
    """Return H(mean of the agents' distributions) - mean of H(each), in bits, for codes of shape (..., N, agents)."""
    if not codes.shape[-2]:
        return NAN
    shares = np.stack([(codes == level).mean(axis=-2) for level in range(levels)])  # (levels, ..., agents)
    bits = _entropy(shares.mean(axis=-1)) - _entropy(shares).mean(axis=-1)
    return np.maximum(bits, 0.0)  # only rounding can make it negative


def _entropy(shares: Floats) -> Any:
    """Return the entropy along the first axis in bits."""
    from scipy.special import entr

    return entr(shares).sum(axis=0) / math.log(2)


# Arguments ------------------------------------------------------------------------------------------------------------


def _captures(given: ArrayLike) -> Ints:
    """Return captures as 0 and 1, shape (episodes, agents), or raise ValueError."""
    captures = _table("captures", given)
    wrong = (captures != 0) & (captures != 1)
    if wrong.any():
        raise ValueError(f"captures must be 0 or 1, got {_plain(captures[wrong][0])}")
    return captures.astype(np.int64)


def _binned(given: ArrayLike, bins: int, edges: ArrayLike | None) -> tuple[Ints, int]:
    """Return the bin of each return and the number of bins in use."""
    returns = _table("returns", given)
    if not np.isfinite(returns).all():
        raise ValueError(f"returns must be finite numbers, got {returns[~np.isfinite(returns)][0]}")
    if edges is not None:
        limits = _edges(edges)
        return np.digitize(returns, limits).astype(np.int64), limits.size + 1
    rank, distinct = _ranks(returns)
    levels = min(checked("bins", bins, Several), max(2, distinct))
    return rank * levels // max(1, distinct), levels


def _ranks(returns: Floats) -> tuple[Ints, int]:
    """Return each return's rank among the distinct returns, from 0, and the number of distinct returns."""
    values, place = np.unique(returns, return_inverse=True)
    new = np.diff(values) > EQUAL * np.abs(values).max(initial=0.0)
    rank = np.concatenate([np.zeros(min(1, values.size), np.int64), np.cumsum(new)])
    return np.asarray(rank[place.reshape(returns.shape)], dtype=np.int64), int(new.sum()) + min(1, values.size)


def _edges(given: ArrayLike) -> Floats:
    limits = _numbers("edges", given)
    if limits.ndim != 1 or not limits.size or not (np.isfinite(limits).all() and (np.diff(limits) > 0).all()):
        raise ValueError(f"edges must be ascending finite numbers, got {given!r}")
    return limits


def _table(name: str, given: ArrayLike) -> Floats:
    """Return numbers of shape (episodes, agents), or raise ValueError."""
    table = _numbers(name, given)
    if table.ndim != 2:
        raise ValueError(f"{name} must have shape (episodes, agents), got {table.shape}")
    if table.shape[1] < 1:
        raise ValueError(f"{name} must have at least 1 agent, got 0")
    return table


def _numbers(name: str, given: ArrayLike) -> Floats:
    """Return real numbers as floats, or raise ValueError."""
    try:
        numbers = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{name} must be rows of equal lengths, got {given!r}") from error
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, got {given!r}")
    return numbers.astype(np.float64)


def _plain(number: np.float64) -> str:
    """Return a number as text, without a trailing ".0"."""
    return repr(float(number)).removesuffix(".0")


def _generator(seed: Seed) -> np.random.Generator:
    """Return a generator for a seed; a generator is returned unchanged."""
    return (
        seed if isinstance(seed, np.random.Generator) else np.random.default_rng(checked("seed", seed, NonNegativeInt))
    )


__all__ = [
    "TeamFairness",
    "binned",
    "captor_sets",
    "identity_mutual_information",
    "identity_mutual_information_of_returns",
    "identity_p_value",
    "null_level",
    "over_seeds",
    "success",
    "team_fairness",
    "team_fairness_of_returns",
    "team_fairness_of_returns_per_seed",
    "team_fairness_per_seed",
]
