"""Counterfactual twins: what would the same agent have earned without the attribute, everything else equal?

A twin is a copy of a lane with the sensitive attribute flipped. Chance is a function of the lane's key, the time and
the place of use, so both meet the same luck however differently they go on (Pearl's U), policies included, which are
sampled with the same uniform numbers.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core import Lanes, Step, check_count, check_seeds, fresh_seeds
from fair_envs.evaluation import (
    FromProbabilities,
    FromSB3,
    LanesWorld,
    MostLikely,
    Policy,
    Stochastic,
    begun,
    lanes_of,
    rollout,
    rules_of,
)
from fair_envs.evaluation.policy import Act
from fair_envs.metrics.returns import Returns
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.wrappers.sensitive import Flip
from fair_envs.wrappers.transform import Batch, Setting, Transform, agent_indices, need_agents

Flipped = Literal["each", "all", "protected", "all_none"]


# Policies -------------------------------------------------------------------------------------------------------------


def from_probabilities(function: Callable[[NDArray[Any]], ArrayLike]) -> Stochastic:
    """Return the policy that samples from what the function gives: observations (B, agents, ...) to (B, agents, A)."""
    return FromProbabilities(function)


def from_sb3(model: Any, *, deterministic: bool = False) -> Stochastic:
    """Return the policy of a Stable-Baselines3 model with discrete actions, trained on rows of agents or of lanes.

    Args:
        model: For example a PPO. If it was trained with ``append_group=True``, give the same to `Twins`.
        deterministic: Whether the likeliest action is taken instead of a sampled one.

    Raises:
        ValueError: When it is used: the model takes other observations.
    """
    return MostLikely(FromSB3(model)) if deterministic else FromSB3(model)


def sb3_probabilities(model: Any) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function that gives a trained Stable-Baselines3 model's action probabilities, see `from_sb3`."""
    return FromSB3(model).probabilities


# Twins ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinEpisodes:
    """Pairs of episodes with the same luck; row e of both returns is one pair, entry (e, i) is agent i.

    `fair_envs.metrics.counterfactual_fairness` takes both returns as they are, with ``sensitive=twins.sensitive``.

    Attributes:
        factual: Returns and attributes in the factual world.
        counterfactual: The same; entry (e, i) comes from the world in which agent i is flipped.
        sensitive: Name of the attribute that was flipped.
        flipped: Whether the agent's attribute differs between the worlds, shape (episodes, agents).
        factual_actions: Executed actions, shape (steps, episodes, agents), -1 where none was; None if not recorded.
        counterfactual_actions: The same in the counterfactual world that the agent's return comes from.
    """

    factual: Returns
    counterfactual: Returns
    sensitive: str
    flipped: Flags
    factual_actions: Ints | None = None
    counterfactual_actions: Ints | None = None

    def of_flipped(self) -> tuple[Returns, Returns]:
        """Return both returns of those agents alone that are flipped in every episode."""
        always = self.flipped.all(axis=0)
        return self.factual.select(agents=always), self.counterfactual.select(agents=always)


class _Played(NamedTuple):
    """Finished episodes of a batch of lanes."""

    returns: Floats  # (B, agents)
    sensitive: Ints  # (B, agents, attributes)
    legitimate: Ints  # (B, agents, factors)
    actions: Ints  # (steps, B, agents)

    def own_worlds(self, agents: int) -> "_Played":
        """Return, of agents times as many worlds, each agent's part in its own world, shape (B, agents, ...)."""
        i = np.arange(agents)
        episodes = len(self.returns) // agents
        returns, sensitive, legitimate = (
            column.reshape(agents, episodes, *column.shape[1:])[i, :, i].swapaxes(0, 1) for column in self[:3]
        )
        worlds = self.actions.reshape(-1, agents, episodes, agents)
        return _Played(returns, sensitive, legitimate, worlds[:, i, :, i].transpose(1, 2, 0))


class Plays:
    """Plays episodes of agents with a policy that is a function of what they see and of the lane's luck.

    Args:
        rules: The environment: its rules, or an environment of any face, whose rules are taken (and nothing else).
        lanes: How many episodes are played at once; the results do not depend on it.
        transforms: What policies see goes through these, as through wrappers, the innermost first; returns do not.
        append_group: Whether observations end with the agent's group, as in
            `fair_envs.faces.sb3.AgentsVecEnv`, for policies that choose a network by it.
        threads: How many threads share the lanes.

    Raises:
        ValueError: Nobody but the decision-maker acts, or a transform changes the world.
        TypeError: Not an environment of this package.
    """

    def __init__(
        self,
        rules: Any,
        *,
        lanes: int = 16,
        transforms: Sequence[Transform] = (),
        append_group: bool = False,
        threads: int = 1,
    ) -> None:
        self.rules = rules_of(rules)
        check_count("lanes", lanes)
        self.lanes, self.threads = lanes, threads
        self.transforms, self.append_group = tuple(transforms), append_group
        self.agents = self.rules.agents(self.rules.params)
        probe = Lanes(self.rules, 1)
        setting = Setting(lanes=probe, observation_space=self._space())
        need_agents(setting, type(self).__name__, instead="twin_decisions is for decisions on one person a step")
        View(probe, self.transforms)
        if probe.amendments:
            raise ValueError(
                "transforms must leave the world as it is: say who is flipped with flip, not where='world'"
            )

    def play(self, policy: Policy | Act, *, seeds: NDArray[np.uint64]) -> Returns:
        """Return what agents earn in the episodes of some seeds, all played at once."""
        return self._returns(self._play(self._begun(seeds), policy, group=None))

    def _begun(self, seeds: NDArray[np.uint64]) -> Lanes:
        """Return lanes whose first episodes begin."""
        return begun(self.rules, seeds, threads=self.threads)

    def _play(self, lanes: Lanes, policy: Policy | Act, *, group: Ints | None) -> _Played:
        """Play the lanes to their ends."""
        start = lanes.show().facts
        world = LanesWorld(lanes, shown=View(lanes, self.transforms), append_group=self.append_group, group=group)
        returns, actions = np.zeros((lanes.count, lanes.agents)), []
        for step in rollout(world, policy):
            returns += step.reward
            actions.append(step.facts["action"])
        return _Played(returns, start["sensitive"], start["legitimate"], np.stack(actions))

    def _returns(self, played: _Played) -> Returns:
        """Return the returns with the attributes under their names."""
        spec = self.rules.spec
        attributes = {name: played.sensitive[..., k] for k, name in enumerate(spec.sensitive)}
        attributes |= {name: played.legitimate[..., k] for k, name in enumerate(spec.legitimate)}
        return Returns(played.returns, attributes=attributes)

    def _space(self) -> Any:
        return self.rules.observation_space(self.rules.params)


class Twins(Plays):
    """Plays episodes in a factual world and in worlds with the sensitive attribute flipped, with the same luck.

    Pair e of a run seeded s is, in its factual world, the single environment seeded s + e.

    Args:
        rules: The environment: its rules, or an environment of any face, whose rules are taken (and nothing else).
        lanes: How many pairs are played at once; the results do not depend on it.
        transforms: What policies see goes through these, as through wrappers, the innermost first; returns do not.
        append_group: Whether observations end with the agent's group, as in
            `fair_envs.faces.sb3.AgentsVecEnv`, for policies that choose a network by it.
        threads: How many threads share the lanes.

    Raises:
        ValueError: The environment's agents have no sensitive attribute to flip, or a transform changes the world.
        TypeError: Not an environment of this package.

    Example:
        >>> from fair_envs import make_rules
        >>> from fair_envs.metrics import counterfactual_fairness
        >>> twins = Twins(make_rules("FairHarvest-v0", agents=4, horizon=50))
        >>> random = from_probabilities(lambda observation: np.full((*observation.shape[:2], 8), 1 / 8))
        >>> played = twins.run(random, episodes=10, flip="each")
        >>> gap = counterfactual_fairness(played.factual, played.counterfactual, sensitive=played.sensitive)
    """

    def __init__(
        self,
        rules: Any,
        *,
        lanes: int = 16,
        transforms: Sequence[Transform] = (),
        append_group: bool = False,
        threads: int = 1,
    ) -> None:
        super().__init__(rules, lanes=lanes, transforms=transforms, append_group=append_group, threads=threads)
        self.rules.flip(Lanes(self.rules, 1).records, np.zeros((1, self.agents), bool))  # refuses what would fail later

    def run(
        self,
        policy: Policy | Act,
        *,
        episodes: int,
        seed: int = 0,
        flip: Flipped | Sequence[int | str] = "each",
        counterfactual_policy: Policy | Act | None = None,
        keep_group: bool = False,
        record_actions: bool = False,
    ) -> TwinEpisodes:
        """Play pairs of episodes.

        Args:
            policy: Plays the factual world.
            episodes: How many pairs.
            seed: Pair e is seeded ``seed + e``.
            flip: Who is flipped in the counterfactual world.
                ``"each"``: each agent alone, in a world of its own (agents + 1 worlds a pair): the definition.
                ``"all"``: every agent at once.
                ``"protected"``: at once all agents that carry the attribute.
                ``"all_none"``: in the factual world all agents carry it, in the counterfactual one none.
                A list of agents, by index or by PettingZoo's name: these, at once.
            counterfactual_policy: Plays the counterfactual worlds: each world its own policy. By default ``policy``
                plays both, and what differs is due to the attribute alone.
            keep_group: With ``append_group``: whether agents are shown the group of the factual world in both, so that
                a flipped agent keeps its network; else it gets the other group's.
            record_actions: Whether the executed actions are returned.

        Raises:
            ValueError: An unknown way to flip, no episode, a seed out of range, ``keep_group`` where no group is shown,
                or actions outside the action space.
        """
        check_count("episodes", episodes)
        if keep_group and not self.append_group:
            raise ValueError("keep_group must be False without append_group=True, which shows the group, got True")
        seeds = check_seeds(seed, episodes)
        pairs = []
        for part in batches(seeds, self.lanes):
            pairs.append(self._pair(part, flip, policy, counterfactual_policy or policy, keep_group=keep_group))
        factual, counterfactual = (_joined([pair[side] for pair in pairs]) for side in (0, 1))
        return TwinEpisodes(
            factual=self._returns(factual),
            counterfactual=self._returns(counterfactual),
            sensitive=next(iter(self.rules.spec.sensitive)),
            flipped=(factual.sensitive != counterfactual.sensitive).any(axis=-1),
            factual_actions=factual.actions if record_actions else None,
            counterfactual_actions=counterfactual.actions if record_actions else None,
        )

    def _pair(
        self,
        seeds: NDArray[np.uint64],
        flip: Flipped | Sequence[int | str],
        policy: Policy | Act,
        counterfactual_policy: Policy | Act,
        *,
        keep_group: bool,
    ) -> tuple[_Played, _Played]:
        """Play the factual and the counterfactual world of some seeds."""
        factual = self._begun(seeds)
        carries = factual.show().facts["sensitive"][..., 0] == 1
        if flip == "all_none":
            self.rules.flip(factual.records, ~carries)
        who = self._who(flip, carries)  # (worlds, B, agents)
        twin = Lanes(self.rules, who.shape[0] * len(seeds), threads=self.threads)
        twin.restore(np.tile(factual.records, who.shape[0]))
        self.rules.flip(twin.records, who.reshape(-1, self.agents))
        group = np.tile(factual.show().facts["group"], (who.shape[0], 1)) if keep_group else None
        played = self._play(factual, policy, group=None), self._play(twin, counterfactual_policy, group=group)
        return played[0], played[1].own_worlds(self.agents) if flip == "each" else played[1]

    def _who(self, flip: Flipped | Sequence[int | str], carries: Flags) -> Flags:
        """Return who is flipped in each counterfactual world, shape (worlds, B, agents)."""
        if not isinstance(flip, str) and flip is not None:
            who = np.zeros((1, *carries.shape), bool)
            who[..., agent_indices(flip, self.agents)] = True
            return who
        if flip == "each":
            return np.repeat(np.eye(self.agents, dtype=bool)[:, np.newaxis], len(carries), axis=1)
        if flip == "protected":
            return carries[np.newaxis]
        if flip in ("all", "all_none"):
            return np.ones((1, *carries.shape), bool)
        raise ValueError(f"flip must be 'each', 'all', 'protected', 'all_none' or a list of agents, got {flip!r}")


def batches(seeds: NDArray[np.uint64], lanes: int) -> list[NDArray[np.uint64]]:
    """Return the seeds that are played at once, time after time."""
    return [seeds[first : first + lanes] for first in range(0, len(seeds), lanes)]


class View:
    """What policies see of lanes through transforms, bound to these lanes one upon the other."""

    def __init__(self, lanes: Lanes, transforms: Sequence[Transform]) -> None:
        self._lanes, self._transforms = lanes, []
        space: Any = lanes.rules.observation_space(lanes.rules.params)
        for transform in map(copy.deepcopy, transforms):
            transform.bind(Setting(lanes=lanes, observation_space=space))
            space = transform.space(space)
            self._transforms.append(transform)

    def start(self, step: Step) -> NDArray[Any]:
        """Return the first observations."""
        everyone = np.ones(self._lanes.count, bool)
        self._observation = step.observation
        return self._through(step, decided=~everyone, first=everyone, done=~everyone)

    def step(self, step: Step, decided: Flags) -> NDArray[Any]:
        """Return the observations after a step of the masked lanes; the others' are the last ones."""
        self._observation = self._observation.copy()
        self._observation[decided] = step.observation[decided]
        return self._through(step, decided=decided, first=~np.ones_like(decided), done=step.terminated | step.truncated)

    def restart(self, step: Step, mask: Flags) -> NDArray[Any]:
        """Return the observations after new episodes began in the masked lanes."""
        self._observation = self._observation.copy()
        self._observation[mask] = step.observation[mask]
        nobody = np.zeros_like(mask)
        return self._through(step, decided=nobody, first=mask, done=nobody)

    def look(self, step: Step) -> NDArray[Any]:
        """Return what would be seen of other lanes now; what the transforms remember stays."""
        observation, nobody = self._observation, np.zeros(self._lanes.count, bool)
        self._observation = step.observation
        looked = self._through(step, decided=nobody, first=nobody, done=nobody)
        self._observation = observation
        return looked

    def _through(self, step: Step, *, decided: Flags, first: Flags, done: Flags) -> NDArray[Any]:
        batch = Batch(self._observation, step.reward, step.facts, decided=decided, first=first, done=done)
        for transform in self._transforms:
            batch = transform(batch)
        return batch.observation


def _joined(parts: Sequence[_Played]) -> _Played:
    """Return the episodes of all parts; actions after a shorter part's last step are -1."""
    steps = max(len(part.actions) for part in parts)
    padded = []
    for part in parts:
        whole = np.full((steps, *part.actions.shape[1:]), -1, np.int64)
        whole[: len(part.actions)] = part.actions
        padded.append(whole)
    returns, sensitive, legitimate = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return _Played(returns, sensitive, legitimate, np.concatenate(padded, axis=1))


def counterfactual(env: Any, *, flip: Sequence[int | str] | Literal["all"] = "all") -> Any:
    """Return a twin of an environment, of any face, to be played beside it: a copy with the attribute flipped.

    Both meet the same luck: reset both, with the same seed or with none, and step both. The agents are flipped now, if
    an episode is going on, and at the start of every later one. What a twin of an episode that is going on shows now is
    ``twin.unwrapped.set_state(twin.unwrapped.get_state())``.

    Args:
        env: An environment of this package; wrappers are copied with it.
        flip: Who is flipped, by index or by PettingZoo's name.

    Raises:
        ValueError: No such agent, or the agents have no attribute to flip.
        TypeError: Not an environment of this package.

    Example:
        >>> import gymnasium as gym, fair_envs
        >>> env = gym.make("FairHarvest-v0")
        >>> twin = counterfactual(env, flip=[3])
        >>> _ = env.reset(seed=1), twin.reset(seed=1)
    """
    lanes = lanes_of(env)
    if not isinstance(lanes, Lanes):
        raise TypeError(f"env must have one world, got {env!r}, which plays several already")
    change = Flip(agent_indices(range(lanes.agents) if flip == "all" else flip, lanes.agents))
    change(lanes.rules, np.zeros(1, lanes.rules.dtype))  # refuses now what would fail later
    if not lanes.seeded:  # what the first reset would do, so that both have the same seeds
        lanes.seed(fresh_seeds(lanes.count))
    twin = copy.deepcopy(env)
    face = twin.unwrapped
    change(face.lanes.rules, face.lanes.records)
    face.lanes.amendments.append(change)
    if vars(face).get("_observation") is not None:  # the face keeps what the agents see
        face.set_state(face.get_state())
    return twin
