"""Plays of policies on decisions: their rewards and gaps in test episodes, and gaps over many decisions."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from fair_envs.baselines.pcn.rollouts import vector_reward
from fair_envs.evaluation import MostLikely, Stochastic, Transition, VectorWorld, rollout
from fair_envs.metrics.group import Groups, group_members
from fair_envs.metrics.history import Memory
from fair_envs.support.aliases import Flags, Floats, Ints

GROUP_NOTIONS = ("SP", "EO", "OAE", "PP", "PE")
CELLS = 8  # kinds of decisions: 4 if the person is in the group, + 2 if the decision is 1, + 1 if the label is
NOTHING = 1e-9  # weights below this are rounding errors
DEALS = 2  # how often memberships are dealt for a noise floor


class Play(NamedTuple):
    """All steps of B lanes; entries of lanes that did not play have no meaning."""

    reward: Floats  # (steps, B, objectives)
    active: Flags  # (steps, B)
    episode: Ints  # (steps, B): number of the lane's episode
    cell: Ints  # (steps, B): kind of the decision


def played(
    env: Any, policy: Stochastic, *, groups: Groups, episodes: int, seed: int, deterministic: bool = False
) -> Play:
    """Play test episodes in every lane of an environment.

    Args:
        env: The environment.
        policy: The policy.
        groups: The compared groups, of which the first one counts as the group.
        episodes: Number of episodes of each lane.
        seed: Seed of the episodes and of the sampled actions.
        deterministic: Whether the most likely actions are taken instead of sampled ones.
    """
    world = VectorWorld(env, seed=seed, random=np.random.default_rng(seed))
    member = _membership(env, groups)
    acting = MostLikely(policy) if deterministic else policy
    steps = [
        (vector_reward(step), step.active, step.episode // world.count, _cells(step, member))
        for step in rollout(world, acting, episodes=world.count * episodes)
    ]
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
) -> Ints:
    """Return how many decisions of each kind policies make, in two halves, shape (policies, 2, kinds).

    Args:
        env: The environment, whose lane k has policy k modulo the number of policies.
        policy: The policy, which plays its part in each lane.
        groups: The compared groups.
        policies: Number of policies.
        decisions: Number of decisions in a half, at least.
        seed: Seed of the episodes and of the sampled actions.
        deterministic: Whether the most likely actions are taken instead of sampled ones.
    """
    world = VectorWorld(env, seed=seed, random=np.random.default_rng(seed))
    member = _membership(env, groups)
    acting = MostLikely(policy) if deterministic else policy
    lanes = np.arange(world.count)
    counts, made, half = np.zeros((world.count, 2, CELLS), np.int64), 0, 0
    enough = math.ceil(decisions * policies / world.count)  # decisions of each lane, all of which decide in each step
    for step in rollout(world, acting, episodes=math.inf):
        counts[lanes, half, _cells(step, member)] += step.active
        made += 1
        if made == enough:
            made, half = 0, half + 1
        if half == 2:
            break
    return np.asarray(counts.reshape(-1, policies, 2, CELLS).sum(axis=0))


def _membership(env: Any, groups: Groups) -> Flags:
    """Return which combinations of sensitive codes are in the group."""
    return next(iter(group_members(env.unwrapped.fair_spec, groups).values()))


def _cells(step: Transition, member: Flags) -> Ints:
    """Return the kind of each lane's decision, shape (B,)."""
    facts = step.facts
    codes = np.maximum(facts["sensitive"][:, 0], 0)
    inside, chosen, label = member[tuple(codes.T)], facts["action"][:, 0] == 1, facts["feedback"][:, 0] == 1
    return np.asarray(4 * inside + 2 * chosen + label, np.int64)


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


def followed(cells: Ints, memory: Memory) -> Floats:
    """Return each notion's mean gap over the decisions; an undefined gap is the last defined one, or 0."""
    found = gaps(remembered(cells, memory))
    latest = np.where(np.isnan(found), 0, np.arange(1, len(found) + 1)[:, np.newaxis])
    latest = np.maximum.accumulate(latest, axis=0)  # 0: there was none yet
    filled = np.concatenate([np.zeros((1, found.shape[1])), found])
    return np.asarray(np.take_along_axis(filled, latest, axis=0).mean(axis=0))


def dealt(cells: Ints, memory: Memory, rng: np.random.Generator) -> Floats:
    """Return each notion's noise floor: its mean gap if the memberships are dealt at random among the decisions."""
    member, rest = np.divmod(cells, 4)
    return np.asarray(np.mean([followed(4 * rng.permutation(member) + rest, memory) for _ in range(DEALS)], axis=0))


def lanes_cells(play: Play) -> list[Ints]:
    """Return the kinds of each lane's decisions, in their order."""
    return [play.cell[play.active[:, lane], lane] for lane in range(play.cell.shape[1])]


def in_halves(play: Play, episodes: int) -> tuple[Floats, Ints, NDArray[np.int64]]:
    """Return sums over each half of the episodes, shape (B, 2, objectives), and steps and episodes, shape (B, 2).

    Consecutive episodes share past decisions; episodes of different halves hardly do. The only episode is in both.
    """
    halves = [(0, max(episodes // 2, 1)), (episodes // 2, episodes)]
    inside = np.stack([play.active & (play.episode >= low) & (play.episode < high) for low, high in halves])
    sums = np.einsum("htb,tbm->bhm", inside, play.reward)
    counts = np.tile([high - low for low, high in halves], (len(sums), 1))
    return sums, inside.sum(axis=1).T, counts
