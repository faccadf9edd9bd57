"""A callback for Stable-Baselines3: measures of fairness in the course of any training."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from fair_envs.assessment.played import System, task_given
from fair_envs.baselines.ppo.ppo import lanes_env_of
from fair_envs.core import Lanes
from fair_envs.core.interactions import PREFIX, FairSpec, columns
from fair_envs.metrics.gaps import numbered
from fair_envs.metrics.intervals import check_choice
from fair_envs.metrics.measures import Measure, MeasureOf
from fair_envs.metrics.rates import Rate, quotients
from fair_envs.registration import id_of
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import NonNegativeInt, PositiveInt, checked
from fair_envs.tasks import TASKS, Task, default_task, measure_name
from fair_envs.wrappers.adapters.own import OwnRules

GROUP = "fairness"
When = Literal["above", "below"]
MeasureLike = str | Rate | Measure | MeasureOf


class FairnessCallback(BaseCallback):
    """Measures fairness while any Stable-Baselines3 algorithm trains, and logs it to TensorBoard.

    It logs the mean of each measure as ``fairness/NAME``, the pooled rate of each group as ``fairness/rate/GROUP``, and
    the largest difference between these rates as ``fairness/gap``. The numbers are of the policy in training, which
    still explores; `fair_envs.evaluate` measures it on test episodes.

    Rewards are those of the environment, before wrappers change them.

    The environment is one of this package: made by `fair_envs.make_sb3`, or by `gymnasium.make` in any vector
    environment of Stable-Baselines3. Your own environment also works if its ``info`` has the record. Labels that the
    environment does not reveal are read from its state, which is out of reach in the processes of a `SubprocVecEnv`.

    Args:
        measures: What is measured, one or several: names (``"short"``, ``"long"`` and ``"rate"`` of the task, or
            notions such as ``"equal_opportunity"``), rates, measures, or functions from a number of lanes to a measure.
            None: the task's short-term and long-term measure.
        task: The task, or the id of an environment whose task is used; None: that of the environment.
        steps: Smallest number of steps, over all environments, in a logged mean. Numbers are logged at the end of the
            first rollout with which there are as many, and then start again.
        stop_at: A limit for the first measure; None: the training does not stop early. The training stops one step
            after the rollout that was measured, so its networks have learned from this rollout too.
        warmup: Steps, over all environments, before the training may stop: an untrained policy often has no gap.
        stop_when: ``"below"``: the training stops when the mean of the first measure is at or below the limit, such as
            a gap that is small enough. ``"above"``: when it is at or above the limit.
        verbose: 1: print why the training stops.

    Raises:
        TypeError: The task is neither a task nor an id.
        ValueError: An argument is invalid or, when the training starts, the environment does not report what a measure
            needs, such as the policy's action probabilities for individual notions.

    Example:
        >>> import gymnasium as gym
        >>> from stable_baselines3 import PPO
        >>> from fair_envs.baselines import FairnessCallback
        >>> model = PPO("MlpPolicy", gym.make("FairLending-v0", horizon=100), n_steps=64)
        >>> learned = model.learn(64, callback=FairnessCallback(stop_at=0.05))
    """

    def __init__(
        self,
        measures: MeasureLike | Sequence[MeasureLike] | None = None,
        *,
        task: Task | str | None = None,
        steps: int = 500,
        stop_at: float | None = None,
        warmup: int = 0,
        stop_when: When = "below",
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        several = isinstance(measures, (list, tuple))
        if several and not measures:
            raise ValueError(f"measures must be at least one measure, got {measures!r}")
        check_choice(stop_when, "stop_when", ("above", "below"))
        given: Any = measures if several else (measures,)
        self._given = ("short", "long") if measures is None else tuple(map(_checked, given))
        self._task = task_given(task)
        self._least = checked("steps", steps, PositiveInt)
        self.stop_at: float | None = None if stop_at is None else checked("stop_at", stop_at, float)
        self.stop_when, self._warmup = stop_when, checked("warmup", warmup, NonNegativeInt)
        self.measures: dict[str, Measure] = {}
        self._stopped = False

    def _on_training_start(self) -> None:
        """Create the measures for the training's environment."""
        self._watched = Watched(source_of(self.training_env), self._task)
        system, lanes = self._watched.system, self._watched.lanes
        made = [_made(one, system.task, system.seen, lanes) for one in self._given]
        names = numbered([measure.name or type(measure).__name__ for measure in made])
        self.measures, self._stopped = dict(zip(names, made, strict=True)), False
        self._rates = GroupRates(self._watched)
        self._with_probs = [name for name, measure in self.measures.items() if measure.needs_action_probs]
        self._clear()

    def _clear(self) -> None:
        self._sums = dict.fromkeys(self.measures, 0.0)
        self._counts = dict.fromkeys(self.measures, 0)
        self._rates.clear()
        self._seen = 0

    def _on_step(self) -> bool:
        """Update the measures; return False when the limit was reached."""
        seen = self._watched.step(self.locals)
        for name in self._with_probs:
            _check_probs(seen.info, name)
        for name, measure in self.measures.items():
            value = measure.update(seen.info, seen.reward, ended=seen.ended)
            known = value[~np.isnan(value)]
            self._sums[name] += float(known.sum())
            self._counts[name] += known.size
            measure.restart(seen.ended)
        self._rates.add(seen)
        self._seen += self._watched.lanes
        return not self._stopped

    def _on_rollout_end(self) -> None:
        """Log the means since they were last logged, and compare the first one with the limit."""
        if self._seen < self._least:
            return
        means = {name: self._sums[name] / count if count else float("nan") for name, count in self._counts.items()}
        for name, mean in means.items():
            self.logger.record(f"{GROUP}/{name}", mean)
        for name, value in self._rates.named().items():
            self.logger.record(name, value)
        self._stopped = self._reached(next(iter(means.items())))
        self._clear()

    def _reached(self, first: tuple[str, float]) -> bool:
        name, mean = first
        if self.stop_at is None or np.isnan(mean) or self.num_timesteps < self._warmup:
            return False
        reached = mean >= self.stop_at if self.stop_when == "above" else mean <= self.stop_at
        if reached and self.verbose:
            print(f"stopped: {name} is {mean:.4g}, {self.stop_when} the limit {self.stop_at:.4g}")
        return reached


def _check_probs(info: Mapping[str, Any], name: str) -> None:
    """Raise ValueError if decisions were made without reporting the action probabilities that a measure needs."""
    key = PREFIX + "action_probs"
    taken = np.asarray(info[PREFIX + "action"]) >= 0
    if key in info:
        taken &= ~np.asarray(info[key]).reshape(*taken.shape, -1).any(axis=-1)
    if PREFIX + "decided" in info:
        taken = taken[np.asarray(info[PREFIX + "decided"]).reshape(-1) != 0]
    if taken.any():
        raise ValueError(
            f"measures must not include {name} here: it needs the policy's action probabilities, and this environment "
            "does not report them; report them with fair_envs.wrappers.ReportActionProbs, or choose another measure"
        )


def _checked(given: Any) -> Any:
    """Return a measure as it was given; raise ValueError if it cannot be one."""
    if isinstance(given, (str, Rate)):
        return measure_name(given)
    if not (isinstance(given, Measure) or callable(given)):
        raise ValueError(f"measures must be names, rates, measures or functions that return a measure, got {given!r}")
    return given


def _made(given: Any, task: Task, rules: Any, lanes: int) -> Measure:
    """Return a measure that was given by name, as an object or as a function of the number of lanes."""
    found = task.measure(given, rules, lanes) if isinstance(given, (str, Rate)) else given
    if not isinstance(found, Measure) and callable(found):
        found = found(lanes)
    if not isinstance(found, Measure):
        raise ValueError(f"measures must be names, rates, measures or functions that return a measure, got {given!r}")
    if found.lanes != lanes:
        raise ValueError(f"measures must have {lanes} lanes, one for each environment, got {found.lanes}")
    return found


# Where the record comes from ------------------------------------------------------------------------------------------


class Source:
    """Reads the record of each step from a training's environment.

    Args:
        env: The vector environment.

    Attributes:
        lanes: Number of lanes (B).
    """

    lanes: int

    def system(self, task: Task | None) -> System:
        """Return the environment and its task."""
        raise NotImplementedError

    def step(self, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any, Flags]:
        """Return the columns of the last step, the agents' rewards, shape (B, agents), and the ended lanes.

        Args:
            given: The local variables of the algorithm's rollout.
        """
        raise NotImplementedError

    def labels(self) -> Ints:
        """Return the labels of the people of the next step, shape (B, M)."""
        raise NotImplementedError


class BatchSource(Source):
    """A batch made by `fair_envs.make_sb3`."""

    def __init__(self, env: Any) -> None:
        self._env, self.lanes = env, env.lanes.count

    def system(self, task: Task | None) -> System:
        """Return the environment and its task."""
        return _system(self._env.lanes.rules, task)

    def step(self, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any, Flags]:
        """Return the columns, rewards and ended lanes of the last step."""
        env = self._env
        rows = env.num_envs // self.lanes
        ended = np.asarray(given["dones"], bool)[::rows]
        return columns(env.lanes.rules.spec, env.interactions, env.action_probs), env.own_reward, ended

    def labels(self) -> Ints:
        """Return the labels of the people of the next step."""
        lanes = self._env.lanes
        return np.asarray(lanes.rules.oracle(lanes.records)["feedback"])


class InfoSource(Source):
    """Single environments in a vector environment of Stable-Baselines3, whose infos have the record."""

    def __init__(self, env: Any) -> None:
        self._env, self.lanes = env, env.num_envs
        found = _attributes(env, "lanes")
        self._own = [lanes for lanes in found if isinstance(lanes, Lanes)]
        reported = _attributes(env, "fair_spec")
        if not reported:
            raise ValueError(
                "env must report the record of fair_envs.core.interactions in info, which the wrapper Annotate adds; "
                f"got {env!r} without a fair_spec"
            )
        self._spec: FairSpec = reported[0]

    def system(self, task: Task | None) -> System:
        """Return the environment and its task; labels are read only from environments in this process."""
        if self._own:
            found = _system(self._own[0].rules, task)
            here = getattr(self._env.unwrapped, "envs", None) is not None
            if here and self._spec == found.rules.spec:
                return found
            rules: Any = copy.copy(found.rules)
            rules.spec = self._spec  # as wrappers report it
            return replace(found, rules=rules, env=self._env)
        spaces = self._env.observation_space, self._env.action_space
        rules = OwnRules("env", self._spec, spaces=spaces)
        name = getattr(next(iter(_attributes(self._env, "spec")), None), "id", rules.name)
        chosen = task or TASKS.get(name) or default_task(name, rules)
        return System(env_id=name, rules=rules, task=chosen, env=self._env)

    def step(self, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any, Flags]:
        """Return the columns, rewards and ended lanes of the last step."""
        infos = given["infos"]
        missing = [place for place, info in enumerate(infos) if PREFIX + "action" not in info]
        if missing:
            raise ValueError(f"info must have the key 'fair_action', got {sorted(infos[missing[0]])}")
        keys = [key for key in infos[0] if key.startswith(PREFIX)]
        found: dict[str, NDArray[Any]] = {key: np.stack([info[key] for info in infos]) for key in keys}
        reward: Any = given["rewards"]
        if self._own:
            reward = np.concatenate(self._env.get_attr("own_reward"))
        elif "agent_reward" in infos[0]:
            reward = np.stack([info["agent_reward"] for info in infos])
        return found, reward, np.asarray(given["dones"], bool)

    def labels(self) -> Ints:
        """Return the labels of the people of the next step."""
        lanes = _attributes(self._env, "lanes")
        return np.concatenate([np.asarray(own.rules.oracle(own.records)["feedback"]) for own in lanes])


class Seen(NamedTuple):
    """A step of a training: the record, the agents' rewards, shape (B, agents), and the lanes that ended, (B,)."""

    info: Mapping[str, Any]
    reward: Any
    ended: Flags


class Watched:
    """The steps of a training, with the labels of all people where only the environment knows them.

    Args:
        source: Where the record comes from.
        task: The task; None: that of the environment.

    Attributes:
        system: The environment and its task.
        lanes: Number of lanes (B).
    """

    def __init__(self, source: Source, task: Task | None = None) -> None:
        self._source, self.lanes = source, source.lanes
        self.system = source.system(task)
        self._labels = source.labels() if self.system.hidden else None

    def step(self, given: Mapping[str, Any]) -> Seen:
        """Return the last step, given the local variables of the algorithm's rollout."""
        info, reward, ended = self._source.step(given)
        if self._labels is not None:
            own = np.asarray(info[PREFIX + "feedback"])
            info = {**info, PREFIX + "feedback": self._labels.reshape(own.shape)}
            self._labels = self._source.labels()
        return Seen(info, reward, ended)


class GroupRates:
    """The rate of each group in a task, pooled over the steps of a training.

    Args:
        watched: The training.
        parts: Number of equal parts of the lanes, one after the other, whose rates are separate.
    """

    def __init__(self, watched: Watched, *, parts: int = 1) -> None:
        self._measure, self._parts = watched.system.task.rate_measure(watched.system.seen, watched.lanes), parts
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self._totals: Floats = np.zeros((self._parts, len(self._measure.group_names), 2))

    def add(self, seen: Seen) -> None:
        """Add a step."""
        self._measure.update(seen.info, seen.reward, ended=seen.ended)
        self._totals += self._measure.latest.reshape(self._parts, -1, *self._totals.shape[1:]).sum(axis=1)
        self._measure.restart(seen.ended)

    def named(self, part: int = 0) -> dict[str, float]:
        """Return a part's rates and largest difference by their names in the log; NaN where they are undefined."""
        rates = quotients(self._totals[part])
        known = rates[~np.isnan(rates)]
        found = {
            f"{GROUP}/rate/{name}": float(rate) for name, rate in zip(self._measure.group_names, rates, strict=True)
        }
        return {**found, f"{GROUP}/gap": float(np.ptp(known)) if known.size > 1 else float("nan")}


def source_of(env: Any) -> Source:
    """Return where the record of a training's environment comes from.

    Raises:
        ValueError: The environment has no record.
    """
    found = lanes_env_of(env)
    return InfoSource(env) if found is None else BatchSource(found)


def _system(rules: Any, task: Task | None) -> System:
    name = id_of(rules)
    return System(env_id=name, rules=rules, task=task or TASKS.get(name) or default_task(name, rules))


def _attributes(env: Any, name: str) -> list[Any]:
    """Return an attribute of each single environment; empty if they have none."""
    try:
        return list(env.get_attr(name))
    except AttributeError:
        return []
