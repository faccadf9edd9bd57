"""Episodes of a policy in the formats of libraries for offline reinforcement learning: Minari and PyCFRL."""

import copy
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray

from fair_envs.assessment.exporting import LANES, decision_probabilities, table_of_people
from fair_envs.assessment.played import System, as_given, prepared
from fair_envs.assessment.policies import name_of
from fair_envs.core import check_count, check_seeds
from fair_envs.core.interactions import PREFIX, FairSpec, record
from fair_envs.evaluation import Policy, rollout
from fair_envs.faces.single import SingleEnv
from fair_envs.support.aliases import Floats32, OnProgress
from fair_envs.support.files import first_line
from fair_envs.support.seeds import TEST_SEEDS

KEPT = (PREFIX, "agent_")  # what the names of the entries of `info` begin with that are stored
PROBS = PREFIX + "action_probs"

# Minari ---------------------------------------------------------------------------------------------------------------


def export_minari(
    env: Any,
    policy: Any,
    dataset_id: str,
    *,
    episodes: int = 64,
    seed: int = TEST_SEEDS,
    parameters: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    each: OnProgress = lambda: None,
) -> Any:
    """Store episodes as a new Minari dataset, which `minari.load_dataset` reads, and return it.

    The dataset has what the environment's Gymnasium interface returns in the episodes of `export`: with several agents,
    their joined observations and actions and their mean reward; with wrappers, what the wrappers return. The infos
    have the record, except for entries without any number, each agent's reward, and the probabilities of decisions if
    the policy reports them. They begin with those of the reset, so they have one entry more than there are steps.

    Minari stores datasets in the folder of its environment variable ``MINARI_DATASETS_PATH``, or else in
    ``~/.minari/datasets``.

    Args:
        env: The environment, see `export`.
        policy: The policy, see `export`.
        dataset_id: The name of the dataset, such as ``"loans/max-reward-v0"``.
        episodes: Number of episodes.
        seed: Seed of the first episode.
        parameters: Parameters of an environment that is given by its id, see `export`.
        deterministic: Whether Stable-Baselines3 models take their most likely actions.
        each: Called after each episode.

    Raises:
        ValueError: The dataset exists, its name is malformed, or see `export`.
        ImportError: Minari or h5py is not installed.
    """
    check_dataset(dataset_id)
    check_count("episodes", episodes)
    seeds = check_seeds(seed, episodes)
    system, player = prepared(env, policy, parameters=parameters, deterministic=deterministic)
    played = Collected(gymnasium_env(system), system.rules.spec)
    play = _again if system.env is None else _directly
    for _ in play(system, player, played, seeds):
        each()
    seeds_told = f"the seeds {seed} to {seed + episodes - 1}"
    about = {"algorithm_name": name_of(policy), "description": f"Episodes in {system.env_id}, with {seeds_told}."}
    return played.stored(dataset_id, **about)


def check_dataset(dataset_id: str) -> None:
    """Raise ValueError if a Minari dataset exists or its name is malformed; ImportError if a library is missing."""
    import h5py  # noqa: F401  # Minari imports it when it writes
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.storage import get_dataset_path

    try:
        parse_dataset_id(dataset_id)
    except (TypeError, ValueError):  # without a version, or with other characters
        raise ValueError(
            f"dataset_id must be a name and a version, such as 'some/test-v0', got {dataset_id!r}"
        ) from None
    if (found := get_dataset_path(dataset_id)).exists():
        raise ValueError(f"dataset_id must be the name of a new dataset, got {dataset_id!r}, which exists in {found}")


def gymnasium_env(system: System) -> Any:
    """Return the environment of a system with the Gymnasium interface: the given one, or one that its id makes."""
    given = system.given if system.env is None else system.env
    if given is not None:
        return given
    if system.env_id in gym.registry:
        with suppress(TypeError, ValueError):  # of a user's own table, the parameters may only say that it is one
            made: Any = gym.make(system.env_id, disable_env_checker=True, **system.parameters)
            if pickle.dumps(made.unwrapped.lanes.rules.code) == pickle.dumps(system.rules.code):  # type: ignore[union-attr]
                return made
    return type(system.env_id, (SingleEnv,), {"rules": staticmethod(lambda: system.rules)})()


class Collected(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps the episodes that are played in an environment.

    Minari's own `DataCollector` does the same, but needs JAX.

    Args:
        env: The environment.
        spec: The description of its record.
    """

    def __init__(self, env: Any, spec: FairSpec) -> None:
        super().__init__(env)
        self._blank = record(spec)  # of resets without a record
        self._episodes: list[dict[str, list[Any]]] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, and keep its first observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        names = ("observations", "actions", "rewards", "terminations", "truncations", "infos")
        self._episodes.append({"seed": [seed], **{name: [] for name in names}})
        self._keep({**self._blank, **info}, observations=observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play a step, and keep it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        ends = {"terminations": bool(terminated), "truncations": bool(truncated)}
        self._keep(info, observations=observation, actions=action, rewards=reward, **ends)
        return observation, reward, terminated, truncated, info

    def report(self, probabilities: Floats32) -> None:
        """Keep the probabilities of the decisions of the last step, shape (M, A)."""
        info = self._episodes[-1]["infos"][-1]
        info[PROBS] = probabilities.astype(np.float32).reshape(np.shape(info[PROBS]))

    def stored(self, dataset_id: str, **about: str) -> Any:
        """Store the episodes as a Minari dataset, and return it."""
        from minari import create_dataset_from_buffers
        from minari.data_collector import EpisodeBuffer

        found = [EpisodeBuffer(**self._buffer(episode)) for episode in self._episodes]  # before a folder is made
        spaces = {"observation_space": self.env.observation_space, "action_space": self.env.action_space}
        with warnings.catch_warnings():  # about an author, an e-mail address and a link, which are the user's to add
            warnings.filterwarnings("ignore", category=UserWarning, module="minari")
            return create_dataset_from_buffers(
                dataset_id, found, env=_storable(self.env), jpeg_encoding=False, **spaces, **about
            )

    def _keep(self, info: Mapping[str, Any], **step: Any) -> None:
        infos = self._episodes[-1]["infos"]
        infos.append({name: np.array(own) for name, own in info.items() if name.startswith(KEPT)})
        for name, own in step.items():
            self._episodes[-1][name].append(copy.deepcopy(own))

    def _buffer(self, episode: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Return an episode as Minari stores it: arrays with an axis of steps, nested as the spaces are."""
        first, *others = episode["infos"]
        missing = {name: np.zeros_like(own) for name, own in others[-1].items() if name == "agent_reward"}
        infos = [{**missing, **first}, *others]  # a reset need not have rewards
        shared = [name for name, own in others[-1].items() if own.size and all(name in info for info in infos)]
        return {
            **episode,
            "seed": episode["seed"][0],
            "observations": _stacked(self.env.observation_space, episode["observations"]),
            "actions": _stacked(self.env.action_space, episode["actions"]),
            "infos": {name: np.stack([info[name] for info in infos]) for name in shared},
        }


def _stacked(space: gym.Space[Any], items: list[Any]) -> Any:
    room: Any = create_empty_array(space, len(items))
    return concatenate(space, items, room)


def _storable(env: Any) -> Any:
    """Return an environment, or None with a warning if Minari could not make it again from what it stores."""
    try:
        if env.spec is None:
            raise ValueError("it is not registered")
        gym.make(EnvSpec.from_json(env.spec.to_json())).close()
    except Exception as error:
        warnings.warn(
            f"the dataset does not store how to make its environment, which cannot be made again: {first_line(error)}",
            stacklevel=2,
        )
        return None
    return env


def _directly(system: System, policy: Policy, played: Collected, seeds: NDArray[np.uint64]) -> Iterator[None]:
    """Play an episode for each seed in the collecting environment itself."""
    for part in replace(system, env=played).parts(seeds, policy, lanes=1):
        for _ in rollout(part.world, policy):
            probabilities = decision_probabilities(part.world, system.rules.spec)
            if probabilities is not None:
                played.report(probabilities[0])
        yield


def _again(system: System, policy: Policy, played: Collected, seeds: NDArray[np.uint64]) -> Iterator[None]:
    """Play an episode for each seed in lanes, as `export` does, and repeat its actions in the collecting one."""
    for part in system.parts(seeds, policy, lanes=min(LANES, len(seeds))):
        steps = [
            (step.action, step.active, decision_probabilities(part.world, system.rules.spec))
            for step in rollout(part.world, policy, episodes=part.episodes)
        ]
        for lane in range(part.episodes):
            played.reset(seed=int(seeds[part.first + lane]))
            for action, active, probabilities in steps:
                if not active[lane]:
                    break
                played.step(as_given(action[lane], played.action_space))
                if probabilities is not None:
                    played.report(probabilities[lane])
            yield


# PyCFRL ---------------------------------------------------------------------------------------------------------------


def export_pycfrl(
    env: Any,
    policy: Any,
    *,
    episodes: int = 64,
    seed: int = TEST_SEEDS,
    parameters: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    each: OnProgress = lambda: None,
) -> Any:
    """Return the trajectories of people as a pandas DataFrame that PyCFRL reads.

    PyCFRL (counterfactually fair reinforcement learning) needs trajectories of equal length of people whose sensitive
    attributes do not change: only environments whose episodes are about the same people throughout have them. A row is
    a person at a time: ``ID``; ``timestamp``, from 1 on; the codes of the attributes, ``sensitive[NAME]``; the state
    ``feature[NAME]``, without features that show an attribute; and ``action`` and ``reward`` of the step that led to
    it, NaN at the first time. For agents, they are the chosen action and the agent's reward; for people of a
    decision-maker, the decision and its outcome for the person. The last step of an episode is missing, because the
    state after it is not recorded.

    PyCFRL assumes that people do not influence each other, and that time goes on without an end. People in the same
    episode usually do influence each other.

    Args:
        env: The environment, see `export`.
        policy: The policy, see `export`.
        episodes: Number of episodes.
        seed: Seed of the first episode.
        parameters: Parameters of an environment that is given by its id, see `export`.
        deterministic: Whether Stable-Baselines3 models take their most likely actions.
        each: Called after each episode.

    Raises:
        ValueError: The environment has no such trajectories, or see `export`.
        ImportError: pandas is not installed.
    """
    check_count("episodes", episodes)
    seeds = check_seeds(seed, episodes)
    system, player = prepared(env, policy, parameters=parameters, deterministic=deterministic)
    check_trajectories(system)
    return trajectories(system, table_of_people(system, player, seeds, labels="revealed", each=each))


def check_trajectories(system: System) -> None:
    """Raise ValueError for an environment without trajectories of people for PyCFRL."""
    rules, spec = system.rules, system.rules.spec
    why = ""
    if not spec.same_individuals:
        why = "is about other people in each step"
    elif getattr(rules, "leaving_field", None) is not None:
        why = "has agents that leave an episode"
    elif rules.multi_agent and not isinstance(rules.action_space(rules.params), gym.spaces.Discrete):
        why = f"has no actions 0, 1, ... but {rules.action_space(rules.params)}"
    elif not _states(rules):
        why = "has no features besides those that show an attribute"
    if why:
        raise ValueError(f"env must have trajectories of people for PyCFRL, got {system.env_id}, which {why}")


def trajectories(system: System, table: Any) -> Any:
    """Return the table of `export` in the form that PyCFRL reads."""
    spec, agents = system.rules.spec, system.rules.multi_agent
    if (table["individual"] < 0).any():
        raise ValueError(
            f"each person must have a number in info['fair_individual'] for PyCFRL, not so in {system.env_id}"
        )
    found = table[["episode", "individual"]].copy()
    found["ID"] = found.groupby(["episode", "individual"]).ngroup()
    found["timestamp"] = table["step"] + 1
    lengths = found.groupby("ID").size()
    if lengths.min() < lengths.max():
        raise ValueError(
            f"episodes must have the same number of steps for PyCFRL, got {lengths.min()} to {lengths.max()}; set a "
            "horizon before which none ends"
        )
    for name, values in spec.sensitive.items():
        codes = table[column := f"sensitive[{name}]"].map({value: code for code, value in enumerate(values)})
        if codes.isna().any():
            raise ValueError(f"everyone's {name} must be known for PyCFRL, not so in {system.env_id}")
        found[column] = codes
    found["action"] = table["chosen" if agents else "action"]
    if (found["action"] < 0).any():
        raise ValueError(f"each person must get a decision in every step for PyCFRL, not so in {system.env_id}")
    found["reward"] = table["reward" if agents else "outcome"]
    states = _states(system.rules)
    found[states] = table[states]
    found = found.drop(columns=["episode", "individual"]).sort_values(["ID", "timestamp"], ignore_index=True)
    made = ["action", "reward"]
    found[made] = found.groupby("ID")[made].shift()
    return found


def _states(rules: Any) -> list[str]:
    """Return the columns of the features that do not show an attribute."""
    shown = {*rules.spec.sensitive_features, *getattr(rules, "sensitive_features", ())}
    return [f"feature[{name}]" for name in rules.spec.features if name not in shown]
