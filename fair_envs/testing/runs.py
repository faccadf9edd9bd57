"""Plays one case and checks every step of it.

PYTEST_DONT_REWRITE: the messages of its errors are complete, and pytest should add nothing to them.
"""

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core.interactions import PERSONAL
from fair_envs.metrics.history import Discounted, Full, History, Memory, SlidingWindow
from fair_envs.support.aliases import Floats32
from fair_envs.testing.cases import Case
from fair_envs.testing.checks import (
    arrays_in,
    assert_same,
    check_facts,
    check_finite,
    check_observations,
    check_schema,
    schema,
)
from fair_envs.testing.players import PLAYERS, Event, Player, World

REMEMBERED = 3  # calls after which an earlier call's arrays are checked again
SNAPSHOTS = 2  # per case, on average
TOGETHER = 8  # calls for which an environment restored from a snapshot is compared


class Run:
    """One run of a case.

    Args:
        case: The case.

    Attributes:
        call: Number of calls of ``step`` so far.
        steps: Number of lane steps so far.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.call, self.steps = case, 0, 0
        self._rng = np.random.default_rng(case.seed)
        self._world = World(case)
        self._player = PLAYERS[case.interface](self._world)
        self._watched = {b: Twin(self._world, b) for b in self._lanes_to_watch()}
        self._actions = Actions(self._world, case.lanes, self._rng)
        self._memory = Freshness(spoils=self._world.rules is not None and self._rng.random() < 0.3)
        self._record = Record(self._world, self._player, self._rng)
        self._early = self._rng.choice([0.0, 0.05])  # probability of a reset before an episode's end
        self._reports = self._player.reports and self._world.spec.actions > 0 and self._world.rules is not None
        self._reports = bool(self._reports and self._rng.random() < 0.5)
        self._restored: tuple[Player, int] | None = None  # with the number of calls to compare

    def play(self, *, seconds: float | None = None) -> bool:
        """Play the case; return whether it finished within that many seconds of processor time.

        Raises:
            AssertionError: A promise is broken.
        """
        self._reset(self.case.seed)
        began = time.process_time()
        while self.call < self.case.calls:
            self._turn()
            self.call += 1
            if self.call == 2:
                began = time.process_time()  # everything is compiled now
            if seconds is not None and time.process_time() - began > seconds:
                break
        self._memory.finish()
        self._player.env.close()
        return self.call == self.case.calls

    def _lanes_to_watch(self) -> list[int]:
        lanes = self.case.lanes
        return list(range(lanes)) if lanes <= 3 else self._rng.choice(lanes, 2, replace=False).tolist()

    # ------------------------------------------------------------------------------------------------- one call

    def _turn(self) -> None:
        """Reset lanes that need it, and sometimes others; play one step."""
        if self._player.resets and (self._player.over.any() or self._rng.random() < self._early):
            self._reset_some()
        elif (self.case.lanes == 1 and self._stands()) or self._rng.random() < self._early:
            self._reset(self._seed_or_none())
        if self._restored is None and self._rng.random() < SNAPSHOTS / self.case.calls and not self._stands():
            self._restore()
        self._step()

    def _stands(self) -> bool:
        """Return whether the episode has ended and no step begins the next."""
        return self.case.interface in ("gym", "gym-focal", "parallel", "aec") and bool(self._player.over.any())

    def _seed_or_none(self) -> int | None:
        return int(self._rng.integers(2**31)) if self._rng.random() < 0.3 else None

    def _reset(self, seed: int | None) -> None:
        """Begin episodes in all lanes."""
        self._restored = None
        returned, events = self._player.reset(seed)
        seeds = [None if seed is None else seed + b for b in range(self.case.lanes)]
        self._check(returned, events, seeds=seeds)

    def _reset_some(self) -> None:
        """Begin episodes in the lanes that are done and in some others, with seeds for some of them."""
        lanes = self.case.lanes
        mask = self._player.over | (self._rng.random(lanes) < self._rng.choice([0.0, 0.3]))
        mask[self._rng.integers(lanes)] |= not mask.any()
        seeds: list[int | None] = [self._seed_or_none() if chosen else None for chosen in mask]
        self._restored = None
        returned, events = self._player.reset(seeds if any(seed is not None for seed in seeds) else None, mask)
        self._check(returned, events, seeds=seeds)

    def _step(self) -> None:
        """Play one step of all lanes."""
        drawn = self._actions()
        probs = self._probs() if self._reports and self._rng.random() < 0.7 else None
        players = [self._player] if self._restored is None else [self._player, self._restored[0]]
        answers = []
        for player in players:
            if probs is not None:
                player.report(probs)
            answers.append(player.step(drawn.copy()))
        if self._restored is not None:
            self._compare(*(answer[0] for answer in answers))
        returned, events = answers[0]
        self._check(returned, events, actions=self._player.played(drawn), probs=probs)
        self.steps += int(events[0].lanes.sum())

    def _probs(self) -> Floats32:
        spec = self._world.spec
        shape = self.case.lanes, spec.individuals
        return self._rng.dirichlet(np.ones(spec.actions), shape).astype(np.float32)

    def _restore(self) -> None:
        """Restore a snapshot in a second environment, which must then continue like this one."""
        other = self._player.another()
        self._restored = None if other is None else (other, TOGETHER)

    def _compare(self, ours: Any, others: Any) -> None:
        assert self._restored is not None
        other, left = self._restored
        with saying("an environment restored from a snapshot must continue like the first"):
            assert_same(ours, others, "returned")
        self._restored = None if left == 1 or self._stands() else (other, left - 1)

    # ------------------------------------------------------------------------------------------------- the checks

    def _check(
        self, returned: Any, events: list[Event], *, seeds: Any = None, actions: Any = None, probs: Any = None
    ) -> None:
        """Fail unless the return values keep the promises."""
        for event in events:
            if event.lanes.any():
                self._record.check(event)
        self._record.remember(returned, events)
        for b, twin in self._watched.items():
            for event in events:
                if event.lanes[b]:
                    self._follow(twin, event, seeds, actions, probs)
        self._memory.keep(returned)

    def _follow(self, twin: "Twin", event: Event, seeds: Any, actions: Any, probs: Any) -> None:
        """Repeat the lane's calls in the single environment, and compare."""
        b = twin.lane
        if event.terminated is None:
            twin.reset(None if seeds is None else seeds[b])
        else:
            twin.step(actions[b], None if probs is None else probs[b])
        with saying(f"lane {b} must be what the single environment of its seed returns (the second)"):
            twin.check(event, self._player)


@contextlib.contextmanager
def saying(what: str) -> Iterator[None]:
    """Put a description of a comparison in front of its error message."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{what}; {error}") from error


class Twin:
    """The single environment that a lane must equal, bit for bit."""

    def __init__(self, world: World, lane: int) -> None:
        self.lane = lane
        self._world, self._env = world, world.single()
        self._now: Any = None

    def reset(self, seed: int | None) -> None:
        """Begin an episode."""
        observation, info = self._env.reset(seed=seed)
        self._now = observation, info

    def step(self, actions: NDArray[Any], probs: Floats32 | None) -> None:
        """Play one step with the actions of all agents."""
        if probs is not None:
            self._env.unwrapped.report_action_probs(probs[0] if self._world.spec.one_person else probs)
        self._now = self._env.step(actions.reshape(self._env.action_space.shape or ())[()])

    def check(self, event: Event, player: Player) -> None:
        """Fail unless an event of the lane equals what this environment returned."""
        b, focal, (observation, *earned, info) = self.lane, player.focal, self._now
        if focal is not None:
            observation = observation.reshape(self._world.agents, *player.env.observation_space.shape)[focal]
        assert_same(event.observations[b], observation, "observation")
        if event.info is not None:
            for name in event.info.keys() & info.keys():
                if not isinstance(event.info[name], np.ndarray):
                    continue  # additional keys of an environment that is not made of rules
                wanted = np.asarray(info[name])
                if event.living is not None and name in PERSONAL and self._world.multi_agent:
                    wanted = wanted[event.living]
                assert_same(np.asarray(event.info[name][b]), wanted, f"info[{name!r}]")
        if event.terminated is None or event.truncated is None:
            return
        reward, terminated, truncated = earned
        own = np.asarray(info["agent_reward"] if self._world.multi_agent else [reward])
        left = focal is not None and self._world.leaving and not info["agent_active"][focal]
        ends = (True, False) if left else (bool(terminated), bool(truncated))
        assert_same((bool(event.terminated[b]), bool(event.truncated[b])), ends, "terminated and truncated")
        if event.reward is not None:
            wanted = np.asarray(reward if focal is None or not self._world.multi_agent else own[focal])
            assert_same(np.asarray(event.reward[b]), wanted.astype(event.reward.dtype), "reward")
        if event.agent_reward is not None:
            assert_same(event.agent_reward[b], own.astype(event.agent_reward.dtype), "the agents' rewards")


class Record:
    """Checks the report of each call on its own, and that a history can be made from it."""

    def __init__(self, world: World, player: Player, rng: np.random.Generator) -> None:
        self._world, self._player = world, player
        self._space = world.space if player.focal is None else player.env.observation_space
        self._others = world.rules is None or world.case.wrapper is not None
        self._history = None
        if world.spec.actions > 1:
            self._memory = memory(rng)
            self._history = History(self._memory, world.spec, lanes=world.case.lanes)
        self._counted = np.zeros(world.case.lanes, np.int64)  # number of decisions added to the history

    def check(self, event: Event) -> None:
        """Fail unless observations, rewards and record match their declarations."""
        lanes = event.lanes
        shown = event.observations
        shown = shown[lanes] if isinstance(shown, np.ndarray) else [shown[b] for b in np.flatnonzero(lanes)]
        check_observations(shown, self._space)
        for name, reward in (("reward", event.reward), ("agent_reward", event.agent_reward)):
            if reward is not None:
                check_finite(name, reward)
        if event.info is not None:
            reported = self._reported(event)
            check_schema(reported, self._schema(event), lanes=lanes.shape, others=self._others)
            rows = {name: column[lanes] for name, column in reported.items() if name.startswith("fair_")}
            check_facts(self._world.spec, rows, decided=event.terminated is not None)

    def remember(self, returned: Any, events: list[Event]) -> None:
        """Add to the history; fail if it rejects the record or does not hold the same number of decisions."""
        if self._history is None:
            return
        try:
            reported = self._player.remember(self._history, returned)
        except ValueError as error:
            raise AssertionError(f"the record must be one that History takes; {error}") from error
        event = events[0]
        if not reported or event.info is None or event.terminated is None:
            return
        decided = (np.asarray(event.info["fair_action"]) >= 0).reshape(len(event.lanes), -1).sum(1)
        self._counted += np.where(event.lanes, decided, 0)
        if not isinstance(self._memory, Discounted):
            size = self._memory.capacity or int(self._counted.max())
            expected, held = np.minimum(self._counted, size).tolist(), self._history.sizes.tolist()
            assert held == expected, f"History must hold {expected} decisions of the lanes, got {held}"

    def _reported(self, event: Event) -> dict[str, Any]:
        """Return the columns of the record, without Gymnasium's masks and the ends of episodes."""
        assert event.info is not None
        final = ("final_obs", "final_info")
        return {name: value for name, value in event.info.items() if not name.startswith("_") and name not in final}

    def _schema(self, event: Event) -> dict[str, tuple[Any, tuple[int, ...]]]:
        world, interface = self._world, self._world.case.interface
        expected = schema(world.spec)
        if event.living is not None and world.multi_agent:
            people = int(event.living.sum())
            return {
                name: (kind, (people, *shape[1:]) if name in PERSONAL else shape)
                for name, (kind, shape) in expected.items()
            }
        if world.multi_agent:
            expected["agent_reward"] = (np.float64, (world.agents,))
        if world.leaving and not interface.startswith("sb3"):
            expected["agent_active"] = (np.int8, (world.agents,))
        return expected


def memory(rng: np.random.Generator) -> Memory:
    """Return a random memory for a history."""
    memories = (SlidingWindow(int(rng.integers(1, 200))), Discounted(0.9), Full())
    return memories[rng.choice(3, p=[0.7, 0.2, 0.1])]


class Freshness:
    """Checks that the arrays of a return value are new memory.

    Args:
        spoils: If True, write into returned arrays: later return values must not change, which the comparison shows.
            Otherwise, returned arrays must not change later.
    """

    def __init__(self, *, spoils: bool) -> None:
        self._spoils = spoils
        self._kept: deque[tuple[list[NDArray[Any]], list[bytes]]] = deque()

    def keep(self, returned: Any) -> None:
        """Store a return value, and check the one from some calls ago."""
        arrays = arrays_in(returned)
        if self._spoils:
            for array in arrays:
                array[...] = 1
            return
        self._kept.append((arrays, [array.tobytes() for array in arrays]))
        if len(self._kept) > REMEMBERED:
            self._look(*self._kept.popleft())

    def finish(self) -> None:
        """Check the remaining ones."""
        for kept in self._kept:
            self._look(*kept)

    def _look(self, arrays: list[NDArray[Any]], before: list[bytes]) -> None:
        for array, was in zip(arrays, before, strict=True):
            assert array.tobytes() == was, (
                f"an array that was returned must stay as it is, got {array.dtype} of shape {array.shape} changed by a "
                "later call: it shares memory"
            )


class Actions:
    """Draws the actions of all lanes and agents: random, unchanged for a long time, or at the ends of ranges."""

    def __init__(self, world: World, lanes: int, rng: np.random.Generator) -> None:
        self._space, self._rng = world.agent_space, rng
        self._shape = (lanes, world.agents, *(self._space.shape or ()))
        self._changes = rng.choice([1.0, 0.1])  # probability that an action differs from the last
        self._ends = rng.choice([0.0, 0.5])  # probability that a number is an end of its range
        self._last = self._drawn()

    def __call__(self) -> NDArray[Any]:
        """Return actions of shape (B, agents, ...)."""
        changed = self._rng.random(self._shape[:2]) < self._changes
        changed = changed.reshape(*self._shape[:2], *(1 for _ in self._shape[2:]))
        self._last = np.where(changed, self._drawn(), self._last)
        return np.array(self._last)

    def _drawn(self) -> NDArray[Any]:
        space, rng, shape = self._space, self._rng, self._shape
        if isinstance(space, gym.spaces.Discrete):
            return rng.integers(space.start, space.start + space.n, shape)
        if isinstance(space, gym.spaces.MultiDiscrete):
            return rng.integers(space.start, space.start + space.nvec, shape)
        assert isinstance(space, gym.spaces.Box)
        low, high = np.maximum(space.low, -1e6), np.minimum(space.high, 1e6)
        drawn = rng.uniform(low, high, shape)
        ends = np.where(rng.random(shape) < 0.5, low, high)
        drawn = np.where(rng.random(shape) < self._ends, ends, drawn)
        return drawn.astype(space.dtype).clip(space.low, space.high)
