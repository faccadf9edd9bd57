"""Plays agents on the three processes of the study on long-term fairness, and stores the data of its figures.

The data are shares of decisions, true distributions, rates and head counts at some times of each test episode.
`series` computes measures from them: the sound ones, and those that the published figures plot.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import fair_envs  # noqa: F401 - registers the ids
from fair_envs.baselines.ppo.massaging import Massager, most_probable, policy_function, policy_output, sample_actions
from fair_envs.baselines.tasks import FEWEST
from fair_envs.evaluation import Policy, Transition, VectorEnv, VectorWorld, rollout
from fair_envs.metrics import long_term, populations
from fair_envs.metrics.measures import Measure
from fair_envs.support.aliases import Columns, Floats, Ints

World = Literal["lending", "attention", "epidemic"]

ENV_IDS: Mapping[World, str] = {
    "lending": "FairLending-v0",
    "attention": "FairAttention-v0",
    "epidemic": "FairEpidemic-v0",
}
TESTS: Mapping[World, Mapping[str, Any]] = {"lending": {"feedback": "full"}, "attention": {}, "epidemic": {}}
"""Parameters of the tests only: measures have access to the labels of rejected applicants; agents do not."""
DEALS = 10  # how often labels or units are dealt at random for a noise floor
WINDOW = 300  # number of past applicants, or past allocation steps, in short-term measures
SMOOTHING = 10  # standard deviation in steps of the smoothed reward of attention, as published


class MassagedPolicy(Policy):
    """A trained policy that samples its actions, with or without a shield.

    Args:
        policy: Policy of a Stable-Baselines3 learner; its actions are discrete, several choices, or Gaussian.
        env: The environment.
        rng: Random generator for the actions.
        massager: The shield, or None.
        threshold: The threshold by which the shield finds uncertain decisions.
        short: The short-term measure of the environment's lanes, used by the shield.
        most_probable: Whether the most likely action is taken instead of a sampled one.
    """

    def __init__(
        self,
        policy: Any,
        env: VectorEnv,
        rng: np.random.Generator,
        *,
        massager: Massager | None = None,
        threshold: float = 0.0,
        short: Measure | None = None,
        most_probable: bool = False,
    ) -> None:
        self.most_probable = most_probable
        self.rng, self.space = rng, env.single_action_space
        self.massager, self.threshold, self.short = massager, threshold, short
        self._output = policy_function(policy)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return sampled actions, massaged by the shield."""
        return self.massaged(observation[:, 0])[:, np.newaxis]

    def massaged(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the actions, shape (B, ...), for observations of shape (B, ...)."""
        output = policy_output(self._output(observation))
        action = (
            most_probable(output, self.space) if self.most_probable else sample_actions(output, self.space, self.rng)
        )
        if self.massager is None or self.short is None:
            return action
        return self.massager(observation, action, output, self.short, threshold=self.threshold)

    def observe_step(self, step: Transition) -> None:
        """Update the shield's measure."""
        if self.short is not None:
            self.short.update(step.columns)


class Step(NamedTuple):
    """The data of one test step."""

    time: int  # number of earlier steps
    hidden: Mapping[str, NDArray[Any]]  # hidden information before the step
    info: Columns
    reward: Floats  # (B,)


def steps_of(env: VectorEnv, policy: Policy, *, seed: int, rng: np.random.Generator) -> Iterator[Step]:
    """Play one episode in each lane and yield its steps; scripted policies draw random numbers from ``rng``."""
    world = VectorWorld(env, seed=seed, random=rng)
    hidden = env.unwrapped.oracle()
    for time, step in enumerate(rollout(world, policy)):
        yield Step(time, hidden, step.columns, step.reward[:, 0])
        hidden = env.unwrapped.oracle()


def times_of(steps: int, *, every: int) -> Ints:
    """Return the times at which an episode is recorded: 0, ``every``, ..., and the last step."""
    return np.append(np.arange(0, steps - 1, every), steps - 1)


def watch(
    world: World,
    policy_of: Callable[[VectorEnv], Policy],
    *,
    episodes: int,
    steps: int,
    seed: int,
    parameters: Mapping[str, Any],
    rng: np.random.Generator | None = None,
) -> dict[str, NDArray[Any]]:
    """Play test episodes in parallel and return the data that the figures need.

    Args:
        world: The process.
        policy_of: Function from the environment to the policy.
        episodes: Number of episodes (E).
        steps: Steps of each episode (T).
        seed: Seed of the first episode; the k-th has ``seed + k``.
        parameters: Parameters of the environment.
        rng: Random generator for scripted policies.

    Returns:
        Arrays whose first axis is the recorded ``times`` (P) and whose second axis is the episodes; see `WATCHED`.
    """
    env: Any = gym.make_vec(ENV_IDS[world], num_envs=episodes, **{**parameters, **TESTS[world], "horizon": steps})
    try:
        rng = np.random.default_rng(0) if rng is None else rng
        return WATCHED[world](env, steps_of(env, policy_of(env), seed=seed, rng=rng), steps)
    finally:
        env.close()


def watch_lending(env: Any, played: Iterator[Step], steps: int) -> dict[str, NDArray[Any]]:
    """Return the decisions in the window, the true distributions and the cash.

    ``qualified`` and ``granted``: how many of the last 300 applicants would repay, and how many of these got a loan, by
    group, after the step, shape (P, E, 2). ``shares``: shares of the scores in each group before the step, (P, E, 2,
    scores). ``cash``: before the step, (P, E). ``granted_ever`` and ``applied_ever``: loans and applications by group
    in the whole episode, (E, 2).
    """
    times = times_of(steps, every=50)
    kept: dict[str, list[NDArray[Any]]] = {"qualified": [], "granted": [], "shares": [], "cash": []}
    gap = long_term.OpportunityGap(env.num_envs, window=WINDOW)
    cash = np.full(env.num_envs, env.unwrapped.params.starting_cash)
    ever = np.zeros((2, env.num_envs, 2), np.int64)
    everyone = np.arange(env.num_envs)
    for step in played:
        gap.update(step.info)
        ever[0, everyone, step.info["fair_group"]] += step.info["fair_action"]
        ever[1, everyone, step.info["fair_group"]] += 1
        if step.time in times:
            granted, refused = gap.counts[..., 1], gap.counts[..., 0]
            for name, value in (
                ("qualified", granted + refused),
                ("granted", granted),
                ("shares", step.hidden["distribution"]),
                ("cash", cash),
            ):
                kept[name].append(np.array(value))
        cash = cash + step.reward
    arrays: dict[str, NDArray[Any]] = {name: np.stack(values) for name, values in kept.items()}
    return {"times": times, **arrays, "granted_ever": ever[0], "applied_ever": ever[1], "last_cash": cash}


def watch_attention(env: Any, played: Iterator[Step], steps: int) -> dict[str, NDArray[Any]]:
    """Return the units sent so far, the rates and the rewards.

    ``units``: units sent to each location so far, after the step, (P, E, K). ``rates``: before the step, (P, E, K).
    ``reward``: of every step, (T, E). ``incidents`` and ``discovered``: of the whole episode, (E, K).
    """
    times = times_of(steps, every=5)
    units, rates, rewards = [], [], []
    sent, incidents, discovered = np.zeros((3, env.num_envs, env.unwrapped.fair_spec.individuals))
    for step in played:
        sent = sent + step.info["fair_action"]
        incidents = incidents + step.info["fair_feedback"]
        discovered = discovered + step.info["fair_outcome"]
        rewards.append(step.reward)
        if step.time in times:
            units.append(np.array(sent))
            rates.append(step.hidden["rate"])
    return {
        "times": times,
        "units": np.stack(units),
        "rates": np.stack(rates),
        "reward": np.stack(rewards),
        "incidents": incidents,
        "discovered": discovered,
    }


def watch_epidemic(env: Any, played: Iterator[Step], steps: int) -> dict[str, NDArray[Any]]:
    """Return vaccinations, infections and head counts by community.

    ``given`` and ``effective``: vaccinations so far, ``infected``: infections so far, each after the step, (T, E, 2).
    ``heads``: susceptible, infected and recovered before the step, (T, E, 2, 3). ``reward`` of the step, (T, E).
    """
    kept: dict[str, list[NDArray[Any]]] = {name: [] for name in ("given", "effective", "infected", "heads", "reward")}
    given = effective = infected = 0
    for step in played:
        group, action = step.info["fair_group"], step.info["fair_action"]
        member = group[..., np.newaxis] == np.arange(2)  # (E, nodes, 2)
        given = given + (member * (action == 1)[..., np.newaxis]).sum(axis=1)
        effective = effective + (member * ((action == 1) & (step.info["fair_feedback"] == 1))[..., np.newaxis]).sum(1)
        infected = infected + (member * (step.info["fair_outcome"] == -1)[..., np.newaxis]).sum(axis=1)
        heads = np.einsum("eng,ens->egs", member, step.info["fair_features"][..., :3])
        for name, value in zip(kept, (given, effective, infected, heads, step.reward), strict=True):
            kept[name].append(np.array(value))
    return {"times": np.arange(steps), **{name: np.stack(values) for name, values in kept.items()}}


WATCHED: Mapping[World, Callable[[Any, Iterator[Step], int], dict[str, NDArray[Any]]]] = {
    "lending": watch_lending,
    "attention": watch_attention,
    "epidemic": watch_epidemic,
}
"""The function that records each process."""


# -------------------------------------------------------------------------------------------------------- measures

SETTLED = 200  # steps of attention after which rates are averaged


class Series(NamedTuple):
    """A number over the time of an episode, averaged over test episodes."""

    times: Ints
    values: Floats  # (P,)


def series(world: World, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Series]:
    """Return the measures of a test over time, averaged over episodes; the names are those of `MEASURED`."""
    return _in_time(MEASURED[world](arrays), arrays["times"])


def noise_floors(world: World, arrays: Mapping[str, NDArray[Any]], *, seed: int = 0) -> dict[str, Series]:
    """Return what the measures of a test are if chance alone makes the groups differ; see `FLOORS` for how."""
    return _in_time(FLOORS[world](arrays, np.random.default_rng(seed)), arrays["times"])


def _in_time(found: Mapping[str, Floats], times: Ints) -> dict[str, Series]:
    return {name: Series(times, np.asarray(values, np.float64)) for name, values in found.items()}


def lending_numbers(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return cash, the gap of the windowed true positive rates and the distance of the true distributions, (P,).

    The published figure uses the rate for any number of people who would repay, and 0 if there are none. The gap "of
    all" is that of the rates of all applicants so far in all episodes: unlike a mean absolute gap, it is not above 0
    only because windows are small.
    """
    qualified, granted, shares = arrays["qualified"], arrays["granted"], arrays["shares"]
    return {
        **_gaps(qualified, granted, arrays["times"]),
        "long, as plotted": np.array([populations.cloud_distance(now[:, 0], now[:, 1]) for now in shares]),
        "long": populations.wasserstein(shares[:, :, 0], shares[:, :, 1]).mean(axis=1),
        "utility": arrays["cash"].mean(axis=1),
        "mean score, advantaged": (shares[:, :, 0] @ np.arange(shares.shape[-1])).mean(axis=1),
        "mean score, disadvantaged": (shares[:, :, 1] @ np.arange(shares.shape[-1])).mean(axis=1),
    }


def _gaps(qualified: NDArray[Any], granted: NDArray[Any], times: Ints) -> dict[str, Floats]:
    """Return the gaps of the true positive rates, (P,), for counts of shape (P, E, 2)."""
    rates = _rates_of_all(qualified, granted, times)
    return {
        "short, as plotted": populations.gap_of_means((granted / np.maximum(qualified, 1)).swapaxes(0, 1)),
        "short": _nanmean(
            populations.opportunity_gap(np.stack([qualified - granted, granted], axis=-1), minimum=FEWEST)
        ),
        "of all": np.abs(rates[:, 0] - rates[:, 1]),
    }


def _rates_of_all(qualified: NDArray[Any], granted: NDArray[Any], times: Ints) -> Floats:
    """Return the true positive rates of all applicants so far in all episodes by group, (P, 2)."""
    windows = ((times % WINDOW == 0) & (times > 0))[:, np.newaxis]  # those that do not overlap
    asked, lent = (np.cumsum(windows * counts.sum(axis=1), axis=0) for counts in (qualified, granted))
    return np.asarray(np.divide(lent, asked, out=np.full(asked.shape, np.nan), where=asked > 0))


def lending_floors(arrays: Mapping[str, NDArray[Any]], rng: np.random.Generator) -> dict[str, Floats]:
    """Return what the gaps and distances are if both groups are treated alike, (P,).

    The gaps are computed again with the groups dealt at random among those in the window who would repay. The distances
    are those of one group's distributions in different episodes, mean over both groups; as plotted, of one half of the
    episodes from the other half.
    """
    qualified, granted = (np.rint(arrays[name]).astype(np.int64) for name in ("qualified", "granted"))
    shares = arrays["shares"]
    everyone, loans = qualified.sum(axis=-1), granted.sum(axis=-1)
    dealt = []
    for _ in range(DEALS):
        first = rng.hypergeometric(loans, everyone - loans, qualified[..., 0])
        dealt.append(_gaps(qualified, np.stack([first, loans - first], axis=-1), arrays["times"]))
    half = shares.shape[1] // 2
    halves = [[populations.cloud_distance(now[:half, g], now[half : 2 * half, g]) for g in (0, 1)] for now in shares]
    return {
        **_mean_of(dealt),
        "long, as plotted": np.mean(halves, axis=1) if half else np.full(len(shares), np.nan),
        "long": populations.wasserstein(shares, np.roll(shares, 1, axis=1)).mean(axis=(1, 2)),
    }


def attention_numbers(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return the reward, the deviation of the units' shares and the spread of the rates, (P,).

    The figures use the shares of all units sent so far; the short-term measure uses those of the last 300 steps.
    """
    from scipy.ndimage import gaussian_filter1d

    rates, times = arrays["rates"], arrays["times"]
    smooth = gaussian_filter1d(arrays["reward"].mean(axis=1), SMOOTHING)
    return {
        "short, as plotted": populations.share_deviation(arrays["units"]).mean(axis=1),
        "short": populations.share_deviation(_units_lately(arrays)).mean(axis=1),
        "long, as plotted": populations.absolute_deviation(rates).mean(axis=1),
        "long": _nanmean(populations.total_variation_of_shares(rates, np.ones_like(rates))),
        "utility": smooth[times],
        "mean rate": rates.mean(axis=(1, 2)),
        "incidents left": (rates > 0).any(axis=2).mean(axis=1),  # without incidents, shares are undefined
    }


def _units_lately(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the units sent to each location in the last 300 steps, shape (P, E, K)."""
    times, sent = arrays["times"], arrays["units"]
    first = np.searchsorted(times, times - WINDOW, side="right") - 1  # the last record before the window
    return sent - np.where(first[:, np.newaxis, np.newaxis] >= 0, sent[np.maximum(first, 0)], 0)


def attention_floors(arrays: Mapping[str, NDArray[Any]], rng: np.random.Generator) -> dict[str, Floats]:
    """Return the deviations if the same number of units is sent to locations at random, (P,).

    The spread of the rates has no such floor: what the rates would be depends on the whole course of the decisions. The
    policy that sends every unit at random is among the scripted ones.
    """
    found = {}
    for name, units in (("short, as plotted", arrays["units"]), ("short", _units_lately(arrays))):
        totals, locations = units.sum(axis=-1).astype(np.int64), units.shape[-1]
        dealt = rng.multinomial(totals, np.full(locations, 1 / locations), size=(DEALS, *totals.shape))
        found[name] = populations.share_deviation(dealt).mean(axis=(0, 2))
    return found


def epidemic_numbers(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return the share of healthy people, the gap of vaccination rates and the distance of the communities, (P,)."""
    return {
        "short, as plotted": populations.vaccination_gap(arrays["given"], arrays["infected"]).mean(axis=1),
        "short": populations.vaccination_gap(arrays["effective"], arrays["infected"]).mean(axis=1),
        **_distances(arrays["heads"]),
        "utility": arrays["reward"].mean(axis=1),
    }


def _distances(heads: NDArray[Any]) -> dict[str, Floats]:
    """Return the distances of the communities' health, (P,), for head counts of shape (P, E, 2, 3)."""
    return {
        "long, as plotted": np.array([populations.cloud_distance(now[:, 0], now[:, 1]) for now in heads]),
        "long": populations.total_variation_of_shares(heads[:, :, 0], heads[:, :, 1]).mean(axis=1),
    }


def epidemic_floors(arrays: Mapping[str, NDArray[Any]], rng: np.random.Generator) -> dict[str, Floats]:
    """Return the gaps and distances if people are dealt to the communities at random, (P,).

    The numbers of vaccinations, infections and people in each state remain. Neighbours fall ill together, so real
    communities differ more than these even if vaccines are given at random; that policy is among the scripted ones.
    """
    heads = np.rint(arrays["heads"]).astype(np.int64)
    ours, theirs = (int(size) for size in heads[0, 0].sum(axis=-1))
    given, effective, infected = (np.rint(arrays[name]).astype(np.int64).sum(axis=-1) for name in VACCINATIONS)
    states, people = heads.sum(axis=2), ours + theirs
    dealt = []
    for _ in range(DEALS):
        coded = _split(rng.binomial(given, ours / people), given)  # a person may get several
        vaccinated = _split(rng.hypergeometric(ours, theirs, effective), effective)
        ill = np.minimum(infected, people - effective)  # they are others than those vaccinated in time
        sick = _split(rng.hypergeometric(ours - vaccinated[..., 0], theirs - vaccinated[..., 1], ill), ill)
        anyone = _split(rng.hypergeometric(ours, theirs, infected), infected)
        susceptible = rng.hypergeometric(states[..., 0], people - states[..., 0], ours)
        first = rng.hypergeometric(states[..., 1], states[..., 2], ours - susceptible)
        own = np.stack([susceptible, first, ours - susceptible - first], axis=-1)
        dealt.append(
            {
                "short, as plotted": populations.vaccination_gap(coded, anyone).mean(axis=1),
                "short": populations.vaccination_gap(vaccinated, sick).mean(axis=1),
                **_distances(np.stack([own, states - own], axis=2)),
            }
        )
    return _mean_of(dealt)


VACCINATIONS = ("given", "effective", "infected")


def _split(first: Ints, total: Ints) -> Ints:
    """Return the numbers of two communities from that of the first and their sum, shape (..., 2)."""
    return np.stack([first, total - first], axis=-1)


def _mean_of(dealt: list[dict[str, Floats]]) -> dict[str, Floats]:
    """Return the mean of each number."""
    return {name: np.mean([one[name] for one in dealt], axis=0) for name in dealt[0]}


MEASURED: Mapping[World, Callable[[Mapping[str, NDArray[Any]]], dict[str, Floats]]] = {
    "lending": lending_numbers,
    "attention": attention_numbers,
    "epidemic": epidemic_numbers,
}
"""The numbers in the figures of each process; "as plotted" means as in the published figures."""

FLOORS: Mapping[World, Callable[[Mapping[str, NDArray[Any]], np.random.Generator], dict[str, Floats]]] = {
    "lending": lending_floors,
    "attention": attention_floors,
    "epidemic": epidemic_floors,
}
"""The same numbers if chance alone made the groups differ."""


def lending_benefits(arrays: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Return each group's true positive rate, and its share of applications that got a loan, in all episodes."""
    rates = _rates_of_all(arrays["qualified"], arrays["granted"], arrays["times"])[-1]
    loans = arrays["granted_ever"].sum(axis=0) / arrays["applied_ever"].sum(axis=0)
    return {
        f"{title}, {group}": float(value[k])
        for title, value in (("true positive rate", rates), ("loans per application", loans))
        for k, group in enumerate(("advantaged", "disadvantaged"))
    }


def attention_benefits(arrays: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Return the mean incident rate and share of discovered incidents at the best and at the worst location."""
    late = arrays["times"] >= min(SETTLED, arrays["times"][-1])
    rates = np.sort(arrays["rates"][late].mean(axis=0), axis=-1)  # (E, K)
    incidents, discovered = arrays["incidents"], arrays["discovered"]
    found = np.divide(discovered, incidents, out=np.full(incidents.shape, np.nan), where=incidents > 0)
    found = np.sort(found[np.isfinite(found).all(axis=-1)], axis=-1)
    ends = (("best", 0, -1), ("worst", -1, 0))
    return {f"incident rate, {end} place": float(rates[:, low].mean()) for end, low, _ in ends} | {
        f"incidents discovered, {end} place": float(found[:, high].mean()) if len(found) else np.nan
        for end, _, high in ends
    }


def epidemic_benefits(arrays: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Return each community's share not infected at the last step, and its effective vaccinations per head."""
    heads = arrays["heads"][-1]  # (E, 2, 3)
    sizes = heads.sum(axis=-1)
    well, given = 1 - heads[..., 1] / sizes, arrays["effective"][-1] / sizes
    return {
        f"{title}, community {k}": float(value[:, k].mean())
        for title, value in (("not infected", well), ("vaccinations per head", given))
        for k in (0, 1)
    }


BENEFITS: Mapping[World, Callable[[Mapping[str, NDArray[Any]]], dict[str, float]]] = {
    "lending": lending_benefits,
    "attention": attention_benefits,
    "epidemic": epidemic_benefits,
}
"""What each group gets, for the question of who pays."""


def _nanmean(values: Floats) -> Floats:
    """Return the mean over episodes with a defined value, shape (P,); NaN if there are none."""
    known = np.isfinite(values)
    total = np.where(known, values, 0).sum(axis=1)
    return np.asarray(np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan))
