"""Counterfactual twins: what would the same agent have earned without the attribute, all else equal?

A twin is a copy of a lane with the sensitive attribute flipped. Random numbers are a function of the lane's key, the
time and the place of use. Therefore both lanes get the same random numbers, even if their episodes develop differently
(U in Pearl's notation). Actions are sampled with the same uniform numbers too.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Step, check_count, check_seeds, fresh_seeds
from fair_envs.evaluation import (
    FromProbabilities,
    LanesWorld,
    Policy,
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


from_probabilities = FromProbabilities
"""Creates a policy that samples actions from probabilities (B, agents, A) for observations (B, agents, ...)."""


# Twins ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinEpisodes:
    """Pairs of episodes with the same random numbers, the input of `fair_envs.metrics.counterfactual_fairness`.

    Row e of both returns is one pair; entry (e, i) is agent i. Pass both returns to `counterfactual_fairness` with
    ``sensitive=twins.sensitive``.

    Attributes:
        factual: Returns and attributes in the factual world.
        counterfactual: The same in the counterfactual world; entry (e, i) is from the world where agent i is flipped.
        sensitive: Name of the flipped attribute.
        flipped: Whether the agent's attribute differs between the worlds, shape (episodes, agents).
        factual_actions: Executed actions, shape (steps, episodes, agents), -1 without an action; None if not recorded.
        counterfactual_actions: The same in the counterfactual world that the agent's return comes from.
    """

    factual: Returns
    counterfactual: Returns
    sensitive: str
    flipped: Flags
    factual_actions: Ints | None = None
    counterfactual_actions: Ints | None = None

    def of_flipped(self) -> tuple[Returns, Returns]:
        """Return both returns, only of the agents that are flipped in every episode."""
        always = self.flipped.all(axis=0)
        return self.factual.select(agents=always), self.counterfactual.select(agents=always)


class _Played(NamedTuple):
    """Finished episodes of a batch of lanes."""

    returns: Floats  # (B, agents)
    sensitive: Ints  # (B, agents, attributes)
    legitimate: Ints  # (B, agents, factors)
    actions: Ints  # (steps, B, agents)

    def own_worlds(self, agents: int) -> "_Played":
        """Return each agent's part from its own world, shape (B, agents, ...); there is one world for each agent."""
        i = np.arange(agents)
        episodes = len(self.returns) // agents
        returns, sensitive, legitimate = (
            column.reshape(agents, episodes, *column.shape[1:])[i, :, i].swapaxes(0, 1) for column in self[:3]
        )
        worlds = self.actions.reshape(-1, agents, episodes, agents)
        return _Played(returns, sensitive, legitimate, worlds[:, i, :, i].transpose(1, 2, 0))


class Plays:
    """Plays episodes of several agents with a policy.

    The policy's actions depend on its observations and the lane's random numbers.

    Args:
        rules: The environment's rules, or an environment with any interface; only its rules are used.
        lanes: How many episodes are played in parallel; the results do not depend on it.
        transforms: Transforms of the policies' observations, applied like wrappers, the innermost first. They do not
            affect returns.
        append_group: Whether the agent's group is appended to observations, as in
            `fair_envs.faces.sb3.AgentsVecEnv`, for policies that select a network by group.
        threads: The number of threads for the lanes.

    Raises:
        ValueError: Only one decision-maker acts, or a transform changes the world.
        TypeError: It is not an environment of this package.
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
        need_agents(setting, type(self).__name__, instead="twin_decisions is for decisions on one person per step")
        View(probe, self.transforms)
        if probe.amendments:
            raise ValueError(
                "transforms must not change the world: select the agents with flip instead of where='world'"
            )

    def play(self, policy: Policy | Act, *, seeds: NDArray[np.uint64]) -> Returns:
        """Return the agents' returns in the episodes of some seeds, played in parallel."""
        return self._returns(self._play(self._begun(seeds), policy, group=None))

    def _begun(self, seeds: NDArray[np.uint64]) -> Lanes:
        """Return lanes at the start of their first episodes."""
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
        """Return the returns with the attributes by name."""
        spec = self.rules.spec
        attributes = {name: played.sensitive[..., k] for k, name in enumerate(spec.sensitive)}
        attributes |= {name: played.legitimate[..., k] for k, name in enumerate(spec.legitimate)}
        return Returns(played.returns, attributes=attributes)

    def _space(self) -> Any:
        return self.rules.observation_space(self.rules.params)


class Twins(Plays):
    """Plays episodes in a factual world and in worlds with the sensitive attribute flipped.

    All worlds of a pair use the same random numbers. With seed s, the factual world of pair e is the single environment
    with seed s + e.

    Args:
        rules: The environment's rules, or an environment with any interface; only its rules are used.
        lanes: How many pairs are played in parallel; the results do not depend on it.
        transforms: Transforms of the policies' observations, applied like wrappers, the innermost first. They do not
            affect returns.
        append_group: Whether the agent's group is appended to observations, as in
            `fair_envs.faces.sb3.AgentsVecEnv`, for policies that select a network by group.
        threads: The number of threads for the lanes.

    Raises:
        ValueError: The agents have no sensitive attribute that can be flipped, or a transform changes the world.
        TypeError: It is not an environment of this package.

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
        self.rules.flip(Lanes(self.rules, 1).records, np.zeros((1, self.agents), bool))  # raises an error early

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
            episodes: The number of pairs.
            seed: Pair e has the seed ``seed + e``.
            flip: Which agents are flipped in the counterfactual world.
                ``"each"``: each agent in a separate world (agents + 1 worlds per pair), as in the definition.
                ``"all"``: all agents in one world.
                ``"protected"``: all agents with the attribute, in one world.
                ``"all_none"``: all agents have the attribute in the factual world, and none in the counterfactual one.
                A list of agents, by index or by PettingZoo name: these agents, in one world.
            counterfactual_policy: Plays the counterfactual worlds instead of ``policy``. By default, ``policy`` plays
                all worlds, so that all differences come from the attribute.
            keep_group: With ``append_group``: whether the observations show the group of the factual world in both
                worlds, so that a flipped agent keeps its network. Otherwise, it gets the network of the other group.
            record_actions: Whether the executed actions are returned.

        Raises:
            ValueError: ``flip`` is unknown, there is no episode, the seed is out of range, ``keep_group`` is used
                without ``append_group``, or an action lies outside the action space.
        """
        check_count("episodes", episodes)
        if keep_group and not self.append_group:
            raise ValueError("keep_group must be False without append_group=True, got True")
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
        has_attribute = factual.show().facts["sensitive"][..., 0] == 1
        if flip == "all_none":
            self.rules.flip(factual.records, ~has_attribute)
        who = self._who(flip, has_attribute)  # (worlds, B, agents)
        twin = Lanes(self.rules, who.shape[0] * len(seeds), threads=self.threads)
        twin.restore(np.tile(factual.records, who.shape[0]))
        self.rules.flip(twin.records, who.reshape(-1, self.agents))
        group = np.tile(factual.show().facts["group"], (who.shape[0], 1)) if keep_group else None
        played = self._play(factual, policy, group=None), self._play(twin, counterfactual_policy, group=group)
        return played[0], played[1].own_worlds(self.agents) if flip == "each" else played[1]

    def _who(self, flip: Flipped | Sequence[int | str], has_attribute: Flags) -> Flags:
        """Return which agents are flipped in each counterfactual world, shape (worlds, B, agents)."""
        if not isinstance(flip, str) and flip is not None:
            who = np.zeros((1, *has_attribute.shape), bool)
            who[..., agent_indices(flip, self.agents)] = True
            return who
        if flip == "each":
            return np.repeat(np.eye(self.agents, dtype=bool)[:, np.newaxis], len(has_attribute), axis=1)
        if flip == "protected":
            return has_attribute[np.newaxis]
        if flip in ("all", "all_none"):
            return np.ones((1, *has_attribute.shape), bool)
        raise ValueError(f"flip must be 'each', 'all', 'protected', 'all_none' or a list of agents, got {flip!r}")


def batches(seeds: NDArray[np.uint64], lanes: int) -> list[NDArray[np.uint64]]:
    """Return the seeds in batches of episodes that are played in parallel."""
    return [seeds[first : first + lanes] for first in range(0, len(seeds), lanes)]


class View:
    """Converts the steps of lanes to the policies' observations, through a stack of transforms."""

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
        """Return the observations after a step of the masked lanes; other lanes keep their last observation."""
        self._observation = self._observation.copy()
        self._observation[decided] = step.observation[decided]
        return self._through(step, decided=decided, first=~np.ones_like(decided), done=step.terminated | step.truncated)

    def restart(self, step: Step, mask: Flags) -> NDArray[Any]:
        """Return the observations after new episodes began in the masked lanes."""
        self._observation = self._observation.copy()
        self._observation[mask] = step.observation[mask]
        nobody = np.zeros_like(mask)
        return self._through(step, decided=nobody, first=mask, done=nobody)

    def transform_observation(self, step: Step) -> NDArray[Any]:
        """Return the observations of other lanes; the state of the transforms does not change."""
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
    """Return a counterfactual twin of an environment: a copy with the sensitive attribute flipped.

    Play both environments side by side: reset both with the same seed, or both without one, and step both. They use the
    same random numbers. The agents are flipped at once if an episode is active, and at the start of every later
    episode. The twin's current observation in an active episode is
    ``twin.unwrapped.set_state(twin.unwrapped.get_state())``.

    Args:
        env: An environment of this package with any interface; its wrappers are copied too.
        flip: The agents to flip, by index or by PettingZoo name; all by default.

    Raises:
        ValueError: An agent does not exist, or the agents have no attribute that can be flipped.
        TypeError: It is not an environment of this package.

    Example:
        >>> import gymnasium as gym, fair_envs
        >>> env = gym.make("FairHarvest-v0")
        >>> twin = counterfactual(env, flip=[3])
        >>> _ = env.reset(seed=1), twin.reset(seed=1)
    """
    lanes = lanes_of(env)
    if not isinstance(lanes, Lanes):
        raise TypeError(f"env must play one world, got {env!r}, which plays several")
    change = Flip(agent_indices(range(lanes.agents) if flip == "all" else flip, lanes.agents))
    change(lanes.rules, np.zeros(1, lanes.rules.dtype))  # raises an error early
    if not lanes.seeded:  # as the first reset would do; both then have the same seeds
        lanes.seed(fresh_seeds(lanes.count))
    twin = copy.deepcopy(env)
    face = twin.unwrapped
    change(face.lanes.rules, face.lanes.records)
    face.lanes.amendments.append(change)
    if vars(face).get("_observation") is not None:  # the interface stores the agents' observations
        face.set_state(face.get_state())
    return twin
