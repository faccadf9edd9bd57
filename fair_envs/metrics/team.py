r"""Team fairness: does who gets what in a team depend on who the agents are?

A team's outcome is fair if every relabelling of the agents is as likely: who captures must not follow from a name. The
*deficit* of fairness, in bits, is how much a distribution of outcomes R loses against the one in which, among episodes
with as many captors A, all sets of captors are equally likely,

$$D = \sum_{a=0}^{n} P(A = a) \left[\log_2 \binom{n}{a} - H(R \mid A = a)\right].$$

It is the Kullback-Leibler divergence from the mean of the distribution over all relabellings: 0 is fair, and it is at
most $P(0 < A < n) \log_2 \binom{n}{\lfloor n/2 \rfloor}$. The paper writes $I(R; Z)$, as a difference of entropies with
the opposite sign; its code computes D. The mutual information of *one* agent's outcome and its identity is another
number, `identity_mutual_information`, which is 0 where D is, but not only there: if agent 0 captures alone or agents 1
and 2 do together, each half of the time, everybody captures equally often.

Three cautions:

* A team that never captures is fair, trivially. Read the deficit among captures, or the rate of success beside it.
* From N episodes D comes out too large, and the more so among few captures. Say what is left after the correction and
  the p-value. The correction and the chi-square level hold where there are about as many episodes as ways to relabel an
  outcome, or more (they are NaN where they clearly do not); the p-value always does.
* Pooled training seeds hide roles: each seed may have its own captor, who is in each as sure as ever, and all together
  look fair. Measure each seed, then average (`team_fairness_per_seed`, `over_seeds`).

Equal chances over episodes say nothing about one episode: a team that draws its roles anew in each is at 0. A team of
one has nobody to be unfair to: its deficit is 0. Without episodes every measure is NaN.

References:
    Grupen, Selman and Lee, "Cooperative Multi-Agent Fairness and Equivariant Policies", AAAI 2022, arXiv:2106.05727.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.aliases import Floats, Ints
from fair_envs.metrics.intervals import Estimate, Undefined, check_level, mean_interval, share_interval
from fair_envs.parameters import NonNegativeInt, PositiveInt, Range, checked

Seed = int | np.random.Generator
Several = Annotated[int, Range(2)]

NAN = float("nan")
EQUAL = 1e-9  # of the largest return; closer ones are equal but for rounding
MEASURES = ("deficit", "corrected", "among_captures", "corrected_among_captures", "share", "normalised", "identity")

_DRAWS_AT_ONCE = 2**22  # numbers that one batch of relabellings holds: 32 MiB
_MANY = 2**62  # of more arrangements than this, two draws are as good as never equal
_MOST = 2**1000  # about what a float can hold


@dataclass(frozen=True, kw_only=True)
class TeamFairness:
    r"""How far the outcomes of a team are from fair.

    *Unequal* episodes are those in which agents fare differently, so that relabelling them changes the outcome: in
    captures, those with some but not all of the agents as captors.

    Attributes:
        deficit: D in bits, from the shares that occurred: 0 is fair.
        corrected: D less its bias at this number of episodes, `freedom` / (2 `episodes` ln 2) (Miller and Madow). It is
            not clipped: with fair outcomes its mean is about 0. The approximation takes too much where an outcome has
            many more relabellings than it has episodes. NaN where that is more than about 0.1 bits an unequal episode:
            where the degrees of freedom beyond two an episode, summed over the numbers of captors that occurred, are
            more than a tenth of the unequal episodes. Three agents never get there.
        among_captures: D / `share`, the deficit of unequal episodes; NaN without any. It is biased as if there were no
            other episodes: a fair team of three that captures in 5 of 100 is at about 0.46 bits.
        corrected_among_captures: `corrected` / `share`; NaN where that is, or without an unequal episode. Of the same
            team it is at 0.09 bits on average, and at 0.003 if 20 of 100 episodes are captures.
        share: Share of unequal episodes.
        normalised: D over the largest that n agents can have, $\log_2 \binom{n}{\lfloor n/2 \rfloor}$ in captures
            (three agents: $\log_2 3$): 1 if the same half of the team captures every time. NaN for one agent.
        identity: `identity_mutual_information`, or that of returns. It is not corrected: a fair team is at about
            1 / (2 `episodes` ln 2), 0.007 bits from 100 episodes, if a fixed number capture in each; in returns at up
            to so much for each bin but one.
        p_value: Probability of such a deficit or more in a fair team that has equally many captors in each episode.
            Without an unequal episode it is 1.
        episodes: Number of episodes N.
        freedom: Degrees of freedom: the ways to relabel an outcome, less one, summed over what occurred; in captures
            $\sum_{a: N_a > 0} [\binom{n}{a} - 1]$.
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
        """Return the fields for JSON, which has no NaN: what is not finite is None."""
        return {name: number if math.isfinite(number) else None for name, number in asdict(self).items()}

    def null_level(self, *, level: float = 0.95) -> float:
        """Return the deficit that a fair team stays below in a share `level` of samples; NaN where `corrected` is."""
        check_level(level)
        return NAN if math.isnan(self.corrected) else null_level(self.episodes, freedom=self.freedom, level=level)


def team_fairness(captures: ArrayLike, *, permutations: int = 1000, seed: Seed = 0) -> TeamFairness:
    """Return how far the sets of captors are from fair.

    The test relabels the agents of every episode by a permutation of its own, uniformly drawn, which makes the set of
    captors uniform among the sets of its size; so these are drawn. Its p-value, (1 + relabellings with as large a
    deficit) / (1 + relabellings), is valid at every number of episodes, if episodes are independent.

    Args:
        captures: Who captured: True or 1, shape (episodes, agents).
        permutations: Number of times that all episodes are relabelled.
        seed: Seed of the relabelling, or its generator.

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
    r"""Return how far the returns of a team are from fair: does what an agent earns follow from which agent it is?

    Returns are put into bins (`binned`). What the number of captors is to captures, the bins that occur in an episode,
    whoever has which, are to returns: with $m_b$ agents in bin b they can be arranged in $n! / \prod_b m_b!$ ways,

    $$D = \sum_m P(m) \left[\log_2 \frac{n!}{\prod_b m_b!} - H(R \mid m)\right].$$

    Of captures it gives what `team_fairness` gives. Take few bins: three agents have 4 degrees of freedom with two
    bins and 44 with four.

    Args:
        returns: Finite numbers, shape (episodes, agents).
        bins: Number of bins, at least 2, with the same number of the distinct returns in each.
        edges: Where bins meet instead, ascending; a return on an edge is in the bin above.
        permutations: Number of times that all episodes are relabelled.
        seed: Seed of the relabelling, or its generator.
    """
    codes, levels = _binned(returns, bins, edges)
    return _assess(codes, levels=levels, permutations=permutations, seed=seed)


def binned(returns: ArrayLike, *, bins: int = 2, edges: ArrayLike | None = None) -> Ints:
    """Return the bin of each return, shape (episodes, agents).

    Without `edges` the distinct returns of all agents in all episodes, in ascending order, are split into equally many
    for each bin. No agent's name enters it, so that it leaves a fair team fair; and what few values there are stay
    apart: 0 and 1 keep a bin of their own however rare the 1 is, which quantiles would not grant. Returns that differ
    by no more than 1e-9 of the largest in size are the same, however their rewards were summed.

    Args:
        returns: Finite numbers, shape (episodes, agents).
        bins: Number of bins, at least 2.
        edges: Where bins meet instead, ascending; a return on an edge is in the bin above.
    """
    return _binned(returns, bins, edges)[0]


def identity_mutual_information(captures: ArrayLike) -> float:
    r"""Return the mutual information of an agent's identity and whether it captures, in bits.

    $I = h_2(\bar p) - \frac{1}{n} \sum_i h_2(p_i)$ with $p_i$ the share of episodes in which agent i captures, $\bar p$
    its mean over agents and $h_2$ the entropy of a coin: 0 if all capture equally often, $h_2(1/n)$ if one always
    captures alone, and at most $h_2(\lfloor n/2 \rfloor / n)$, if the same half of the team always does (three agents:
    0.918 both).

    Args:
        captures: Who captured: True or 1, shape (episodes, agents).
    """
    return float(_identity(_captures(captures), levels=2))


def identity_p_value(captures: ArrayLike, *, permutations: int = 1000, seed: Seed = 0) -> float:
    """Return the p-value of `identity_mutual_information` when the agents of every episode are relabelled.

    It is valid as that of `team_fairness` is, and asks for less: whether some agents capture more often than others.
    With many agents it has power where the deficit has none: if all sets of captors that occur differ, relabelling
    cannot lower the deficit, and its p-value is 1.

    Args:
        captures: Who captured: True or 1, shape (episodes, agents).
        permutations: Number of times that all episodes are relabelled.
        seed: Seed of the relabelling, or its generator.
    """
    codes = _captures(captures)
    times: int = checked("permutations", permutations, PositiveInt)
    chance = _generator(seed)
    if not len(codes):
        return NAN
    relabelled = []
    for batch in _batches(times, codes.size):
        copies = np.broadcast_to(codes, (batch, *codes.shape))
        relabelled.append(_identity(chance.permuted(copies, axis=2), levels=2))
    # A relabelling with the same counts may come out lower by rounding.
    as_large = np.concatenate(relabelled) >= _identity(codes, levels=2) - 1e-12
    return (1 + int(as_large.sum())) / (1 + times)


def identity_mutual_information_of_returns(
    returns: ArrayLike, *, bins: int = 2, edges: ArrayLike | None = None
) -> float:
    """Return the mutual information of an agent's identity and the bin of its return, in bits: 0 is fair.

    It is the generalised Jensen-Shannon divergence of the agents' distributions. Arguments as of `binned`.
    """
    codes, levels = _binned(returns, bins, edges)
    return float(_identity(codes, levels=levels))


def team_fairness_per_seed(
    captures: Iterable[ArrayLike], *, permutations: int = 1000, seed: Seed = 0
) -> tuple[TeamFairness, ...]:
    """Return the team fairness of each training seed.

    Args:
        captures: Who captured in each seed, each of shape (episodes, agents); so an array of shape (seeds, episodes,
            agents) will do.
        permutations: Number of times that the episodes of each seed are relabelled.
        seed: Seed of the relabelling, or its generator.
    """
    chance = _generator(seed)
    return tuple(team_fairness(each, permutations=permutations, seed=chance) for each in captures)


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
        returns: Finite numbers of each seed, each of shape (episodes, agents).
        bins: Number of bins, at least 2, of each seed's own returns.
        edges: Where bins meet instead, in all seeds.
        permutations: Number of times that the episodes of each seed are relabelled.
        seed: Seed of the relabelling, or its generator.
    """
    chance = _generator(seed)
    return tuple(
        team_fairness_of_returns(each, bins=bins, edges=edges, permutations=permutations, seed=chance)
        for each in returns
    )


def over_seeds(
    seeds: Iterable[TeamFairness], *, level: float = 0.95, undefined: Undefined = "nan"
) -> dict[str, Estimate]:
    """Return the mean over training seeds of each measure, of captures or returns, with Student's interval.

    Pooling episodes of several seeds instead would hide roles: two seeds in which agent 0 and agent 1 do all captures
    are at 1 bit each, in a team of two, and pooled at 0. Two seeds are too few for an interval of use; take five.

    Args:
        seeds: One result for each seed.
        level: Share of such intervals that cover the mean, in (0, 1).
        undefined: What a seed whose measure is NaN does to its mean, such as one without captures to that of
            `among_captures`: see `mean_interval`.

    Returns:
        The estimates of `deficit`, `corrected`, `among_captures`, `corrected_among_captures`, `share`, `normalised` and
        `identity`; p-values have no mean of use.
    """
    results = tuple(seeds)
    return {
        name: mean_interval([getattr(result, name) for result in results], level=level, undefined=undefined)
        for name in MEASURES
    }


def null_level(episodes: int, *, freedom: int, level: float = 0.95) -> float:
    r"""Return the deficit, in bits, that a fair team stays below in a share `level` of samples.

    Under fairness $2 N D \ln 2$ is about chi-square distributed. Plan with it how many episodes to play. The more
    degrees of freedom an episode, the more fair teams stay below; beyond two an episode the level means nothing: NaN.

    Args:
        episodes: Number of episodes N.
        freedom: Degrees of freedom (see `TeamFairness`): 2 for three agents of whom one captures; 4 if two do as well.
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
    """Return in how many episodes each set of captors occurred, the small sets first.

    Args:
        captures: Who captured: True or 1, shape (episodes, agents).

    Example:
        >>> captor_sets([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 0, 0]])
        {(): 1, (0,): 2, (1, 2): 1}
    """
    rows, counts = np.unique(_captures(captures), axis=0, return_counts=True)
    found = {tuple(np.flatnonzero(row).tolist()): int(count) for row, count in zip(rows, counts, strict=True)}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def success(captures: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Return the share of episodes in which somebody captures, with Wilson's interval.

    Args:
        captures: Who captured: True or 1, shape (episodes, agents).
        level: Share of such intervals that cover the probability, in (0, 1).

    Example:
        >>> print(success([[1, 0], [0, 0], [1, 1], [0, 1]]))
        0.75 [0.3006, 0.9544] (95 %, n = 4)
    """
    return share_interval(_captures(captures).any(axis=1), level=level)


# From codes to numbers ------------------------------------------------------------------------------------------------


class _Tally(NamedTuple):
    """How often each outcome occurred. A *kind* of outcome is what relabelling leaves as it is: the sorted codes."""

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
    times, chance = checked("permutations", permutations, PositiveInt), _generator(seed)
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
        p_value=_p_value(tally, times, chance),
        episodes=episodes,
        freedom=freedom,
    )


def _too_sparse(tally: _Tally) -> bool:
    """Return whether kinds have so many more arrangements than episodes that the bias is not known.

    Up to two degrees of freedom an episode it is known within 0.1 bits, however many there are; each one beyond takes
    up to 1 / (2 ln 2) bits too much.
    """
    kinds = list(zip(tally.sizes.tolist(), tally.arrangements, strict=True))
    unequal: int = sum(size for size, ways in kinds if ways > 1)
    beyond: int = sum(max(0, ways - 1 - 2 * size) for size, ways in kinds)
    return 10 * beyond > unequal


def _deficit(tally: _Tally) -> float:
    r"""Return D = 1/N sum over kinds k of N_k (log2 M_k - H_k), where N_k H_k = N_k log2 N_k - sum of c log2 c."""
    fair = sum(size * math.log2(ways) for size, ways in zip(tally.sizes.tolist(), tally.arrangements, strict=True))
    bits = fair - _surprise(tally.sizes).sum() + _surprise(tally.counts).sum()
    return max(0.0, float(bits) / int(tally.sizes.sum()))  # below 0 by rounding only


def _surprise(counts: Ints) -> Floats:
    """Return c log2 c of each count; 0 of 0."""
    return np.asarray(counts * np.log2(np.maximum(counts, 1)), dtype=np.float64)


def _p_value(tally: _Tally, times: int, chance: np.random.Generator) -> float:
    """Return (1 + relabellings with as large a sum of c log2 c) / (1 + relabellings): all else of D stays."""
    kinds = zip(tally.sizes.tolist(), tally.arrangements, strict=True)
    relabelled = np.sum([_relabelled(size, ways, times, chance) for size, ways in kinds], axis=0)
    occurred = float(_surprise(tally.counts).sum())
    # A relabelling with the same counts may come out lower by rounding.
    as_large = relabelled >= occurred - 1e-9 * max(1.0, occurred)
    return (1 + int(as_large.sum())) / (1 + times)


def _relabelled(size: int, ways: int, times: int, chance: np.random.Generator) -> Floats:
    """Return the sum of c log2 c for each relabelling of the episodes of one kind, shape (times,)."""
    width = min(size, ways)
    parts = []
    for batch in _batches(times, width):
        if ways <= size:
            parts.append(_surprise(chance.multinomial(size, np.full(ways, 1 / ways), size=batch)).sum(axis=1))
        else:  # most arrangements do not occur: draw the number of each episode's instead
            parts.append(_surprise_of_equal(chance.integers(min(ways, _MANY), size=(batch, size))))
    return np.concatenate(parts)


def _batches(times: int, width: int) -> Iterator[int]:
    """Yield numbers of rows that are `times` together and hold no more than `_DRAWS_AT_ONCE` numbers each."""
    rows = max(1, _DRAWS_AT_ONCE // width)
    for start in range(0, times, rows):
        yield min(rows, times - start)


def _surprise_of_equal(draws: Ints) -> Floats:
    """Return the sum of c log2 c of each row, c counting the equal numbers in it; draws have shape (rows, size)."""
    ordered = np.sort(draws, axis=1)
    place = np.arange(draws.shape[1])
    new = np.ones(ordered.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    rank = place - np.maximum.accumulate(np.where(new, place, 0), axis=1)  # 0, 1, ... among its equals
    gains = np.diff(_surprise(np.arange(draws.shape[1] + 1)))  # what one more adds to c log2 c
    return np.asarray(gains[rank].sum(axis=1), dtype=np.float64)


def _identity(codes: Ints, *, levels: int) -> Any:
    """Return H(mean of the agents' distributions of codes) - mean of H(each), in bits, for codes (..., N, agents)."""
    if not codes.shape[-2]:
        return NAN
    shares = np.stack([(codes == level).mean(axis=-2) for level in range(levels)])  # (levels, ..., agents)
    bits = _entropy(shares.mean(axis=-1)) - _entropy(shares).mean(axis=-1)
    return np.maximum(bits, 0.0)  # below 0 by rounding only


def _entropy(shares: Floats) -> Any:
    """Return the entropy along the first axis in bits."""
    from scipy.special import entr

    return entr(shares).sum(axis=0) / math.log(2)


# What is given --------------------------------------------------------------------------------------------------------


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
    """Return each return's place among the distinct ones, from 0, and how many these are."""
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
        raise ValueError(f"{name} must hold at least 1 agent, got 0")
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
    """Return a number as it is, without ".0"."""
    return repr(float(number)).removesuffix(".0")


def _generator(seed: Seed) -> np.random.Generator:
    """Return the generator of a seed, or the one that was given."""
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
