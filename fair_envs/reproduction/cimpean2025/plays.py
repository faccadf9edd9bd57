"""Plays of policies on decisions: their rewards and gaps in test episodes, and gaps over many decisions."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from fair_envs.baselines.pcn.rollouts import vector_reward
from fair_envs.evaluation import MostLikely, Stochastic, Transition, VectorWorld, rollout
from fair_envs.metrics.group import Groups, group_members
from fair_envs.metrics.history import Memory, SlidingWindow
from fair_envs.support.aliases import Flags, Floats, Ints

GROUP_NOTIONS = ("SP", "EO", "OAE", "PP", "PE")
CELLS = 8  # kinds of decisions
MEMBER, CHOSEN, LABELLED = 4, 2, 1  # what membership of the group, a decision of 1 and a label of 1 add to a kind
KINDS = np.arange(CELLS)
NOTHING = 1e-9  # weights below this are rounding errors
DEALS = 20  # how often memberships are dealt for a noise floor
FEW_DEALS = 5  # the same for means over policies
QUANTILE = 0.95  # of dealt gaps, above which a gap is more than chance
YARDSTICKS = (100, 500, 1000)  # windows with which all policies are measured, whatever they were trained with
FULL = 1000  # after so many decisions a history with a window or a discount is full, or changes little
MOST_FILLED = 10_000  # largest number of decisions with which a history is filled before a test


class Play(NamedTuple):
    """All steps of B lanes; entries of lanes that did not play have no meaning."""

    reward: Floats  # (steps, B, objectives)
    active: Flags  # (steps, B)
    tested: Flags  # (steps, B): whether an active step counts; others fill the history
    cell: Ints  # (steps, B): kind of the decision

    def lanes(self) -> list[tuple[Ints, Flags]]:
        """Return the kinds of each lane's decisions, in their order, and which of them count."""
        return [
            (cell[active], tested[active])
            for cell, tested, active in zip(self.cell.T, self.tested.T, self.active.T, strict=True)
        ]


def played(
    env: Any,
    policy: Stochastic,
    *,
    groups: Groups,
    episodes: int,
    seed: int,
    deterministic: bool = False,
    fill: int = FULL,
) -> Play:
    """Play test episodes in every lane of an environment, after episodes that fill the history.

    Args:
        env: The environment.
        policy: The policy.
        groups: The compared groups, of which the first one counts as the group.
        episodes: Number of test episodes of each lane.
        seed: Seed of the episodes and of the sampled actions.
        deterministic: Whether the most likely actions are taken instead of sampled ones.
        fill: A lane's test begins with the first episode before which it has made so many decisions.
    """
    world = VectorWorld(env, seed=seed, random=np.random.default_rng(seed))
    member = _membership(env, groups)
    acting = MostLikely(policy) if deterministic else policy
    first, before = np.full((2, world.count), -1)  # of the test episodes; of the last step
    made = np.zeros(world.count, np.int64)
    steps: list[tuple[Floats, Flags, Flags, Ints]] = []
    for step in rollout(world, acting, episodes=math.inf):
        episode = step.episode // world.count
        first = np.where((first < 0) & (made >= fill) & (episode > before), episode, first)
        tested = step.active & (first >= 0) & (episode < first + episodes)
        steps.append((vector_reward(step), step.active, tested, _cells(step, member)))
        if ((first >= 0) & (episode + step.ended >= first + episodes)).all():
            break
        made, before = made + step.active, episode
    return Play._make(np.stack(column) for column in zip(*steps, strict=True))


def counted(
    env: Any,
    policy: Stochastic,
    *,
    groups: Groups,
    policies: int,
    decisions: int,
    seed: int,
    deterministic: bool = False,
    later: bool = False,
) -> tuple[Ints, Ints]:
    """Return how many decisions of each kind policies make, in two halves, and the same in the other alignment.

    Both have the shape (policies, 2, kinds); see `realigned`.

    Args:
        env: The environment, whose lane k has policy k modulo the number of policies.
        policy: The policy, which plays its part in each lane.
        groups: The compared groups.
        policies: Number of policies.
        decisions: Number of decisions in a half, at least.
        seed: Seed of the episodes and of the sampled actions.
        deterministic: Whether the most likely actions are taken instead of sampled ones.
        later: Whether the environment pairs each decision with the next person.
    """
    world = VectorWorld(env, seed=seed, random=np.random.default_rng(seed))
    member = _membership(env, groups)
    acting = MostLikely(policy) if deterministic else policy
    counts, others = np.zeros((2, world.count, 2, CELLS), np.int64)
    enough = math.ceil(decisions * policies / world.count)  # decisions of each lane in a half
    lanes, before, half = np.arange(world.count), None, 0
    for step in rollout(world, acting, episodes=math.inf):
        cells = _cells(step, member)
        counts[lanes, half, cells] += step.active
        if before is not None:
            (other,) = realigned(np.stack([before, cells]), later=later)
            others[lanes, half, other] += step.active
        before = cells if before is None else np.where(step.active, cells, before)
        half += int(counts[:, half].sum(axis=1).min() >= enough)
        if half == 2:
            break
    found, other = np.stack([counts, others]).reshape(2, -1, policies, 2, CELLS).sum(axis=1)
    return found, other


def realigned(cells: Ints, *, later: bool) -> Ints:
    """Return the kinds of decisions in the other alignment, shape (decisions - 1, ...).

    Args:
        cells: The kinds of consecutive decisions of a lane, shape (decisions, ...).
        later: Whether they pair each decision with the next person; otherwise the result does.
    """
    persons, decisions = (cells[:-1], cells[1:]) if later else (cells[1:], cells[:-1])
    return np.asarray(persons - (persons & CHOSEN) + (decisions & CHOSEN))


def _membership(env: Any, groups: Groups) -> Flags:
    """Return which combinations of sensitive codes are in the group."""
    return next(iter(group_members(env.unwrapped.fair_spec, groups).values()))


def _cells(step: Transition, member: Flags) -> Ints:
    """Return the kind of each lane's decision, shape (B,)."""
    facts = step.facts
    codes = np.maximum(facts["sensitive"][:, 0], 0)
    inside, chosen, label = member[tuple(codes.T)], facts["action"][:, 0] == 1, facts["feedback"][:, 0] == 1
    return np.asarray(MEMBER * inside + CHOSEN * chosen + LABELLED * label, np.int64)


def filled_after(memory: Memory) -> int:
    """Return after how many decisions a test begins: when its history is full, within `FULL` and `MOST_FILLED`."""
    factor, threshold, minimum = memory.weighting
    kept = FULL if factor < 1 else memory.capacity or (max(minimum, int(1 / threshold)) if threshold else MOST_FILLED)
    return min(max(kept, FULL), MOST_FILLED)


# Gaps -----------------------------------------------------------------------------------------------------------------


def gaps(counts: Any) -> Floats:
    """Return the gap of each of `GROUP_NOTIONS` from the weights of the kinds of decisions; NaN if undefined.

    Args:
        counts: Shape (..., kinds).

    Returns:
        Shape (..., notions).
    """
    own = np.asarray(counts, np.float64).reshape(*np.shape(counts)[:-1], 2, 2, 2)  # group, decision, label
    tn, fn, fp, tp = own[..., 0, 0], own[..., 0, 1], own[..., 1, 0], own[..., 1, 1]
    every = tp + fp + fn + tn
    parts = [(tp + fp, every), (tp, tp + fn), (tp + tn, every), (tp, tp + fp), (fp, fp + tn)]
    rates = [np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > NOTHING) for part, whole in parts]
    return np.stack([np.abs(rate[..., 1] - rate[..., 0]) for rate in rates], axis=-1)


def acted(counts: Any) -> Floats:
    """Return the shares of decisions 1 from the numbers of decisions of each kind, shape (..., kinds)."""
    return np.asarray(counts[..., KINDS & CHOSEN > 0].sum(axis=-1) / counts.sum(axis=-1))


def remembered(cells: Ints, memory: Memory) -> Floats:
    """Return the weights of the remembered kinds after each decision, shape (decisions, kinds).

    A discounted memory without forgetting keeps as many decisions as its threshold allows.
    """
    made = np.eye(CELLS)[cells]
    factor, threshold, minimum = memory.weighting
    if factor < 1:
        age = math.ceil(
            math.log(max(threshold, 1e-12) / (1 - factor)) / math.log(factor)
        )  # then its share is too small
        sums = np.asarray(lfilter([1.0], [1.0, -factor], made, axis=0))
        window = max(minimum, age)
        sums[window:] -= factor**window * sums[:-window].copy()
        return sums
    window = memory.capacity or (max(minimum, int(1 / threshold)) if threshold else len(cells))
    sums = np.cumsum(made, axis=0)
    sums[window:] -= sums[:-window].copy()
    return sums


def courses(cells: Ints, memory: Memory) -> Floats:
    """Return each notion's gap after each decision, shape (decisions, notions).

    An undefined gap is the last defined one, or 0.
    """
    found = gaps(remembered(cells, memory))
    latest = np.where(np.isnan(found), 0, np.arange(1, len(found) + 1)[:, np.newaxis])
    latest = np.maximum.accumulate(latest, axis=0)  # 0: there was none yet
    filled = np.concatenate([np.zeros((1, found.shape[1])), found])
    return np.asarray(np.take_along_axis(filled, latest, axis=0))


def dealt(cells: Ints, rng: np.random.Generator, *, deals: int) -> Iterator[Ints]:
    """Yield the kinds of the same decisions with memberships that are dealt at random among them."""
    member, rest = np.divmod(cells, 4)
    for _ in range(deals):
        yield 4 * rng.permutation(member) + rest


class Followed(NamedTuple):
    """The gaps of a policy in its test episodes, after each decision.

    Attributes:
        gap: Mean gap of each of the `GROUP_NOTIONS`, shape (notions,).
        noise: Its mean if memberships are dealt at random, shape (notions,).
        limit: The `QUANTILE` of it, shape (notions,).
    """

    gap: Floats
    noise: Floats
    limit: Floats


def followed(cells: Ints, tested: Flags, memory: Memory, rng: np.random.Generator) -> Followed:
    """Return the gaps of the tested decisions in a history that holds the earlier ones too.

    Args:
        cells: The kinds of a lane's decisions, shape (decisions,).
        tested: Which of them count, shape (decisions,).
        memory: The decisions that the history keeps.
        rng: Deals the memberships.
    """
    chance = np.array([courses(own, memory)[tested].mean(axis=0) for own in dealt(cells, rng, deals=DEALS)])
    return Followed(
        courses(cells, memory)[tested].mean(axis=0), chance.mean(axis=0), np.quantile(chance, QUANTILE, axis=0)
    )


def by_yardsticks(cells: Ints, tested: Flags, rng: np.random.Generator) -> Floats:
    """Return, for each of the `YARDSTICKS`, the mean gap SP and its mean square beyond chance, shape (windows, 2).

    The square of a gap is on average the square of the true gap plus its mean under chance, whatever the window.
    """
    found = []
    for window in YARDSTICKS:
        memory = SlidingWindow(window)
        own = courses(cells, memory)[tested, 0]
        chance = [np.square(courses(one, memory)[tested, 0]).mean() for one in dealt(cells, rng, deals=FEW_DEALS)]
        found.append((own.mean(), np.square(own).mean() - np.mean(chance)))
    return np.array(found)


def sums_of_tests(play: Play) -> tuple[Floats, Ints]:
    """Return the sums over the tested steps, shape (B, objectives), and their number, shape (B,)."""
    return np.einsum("tb,tbm->bm", play.tested, play.reward), play.tested.sum(axis=0)
