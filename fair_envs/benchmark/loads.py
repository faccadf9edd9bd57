"""Loads for the benchmarks: playing environments, computing notions, training and searching."""

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import fair_envs
from fair_envs.core import Lanes
from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.history import Full, History, Memory, SlidingWindow
from fair_envs.support.aliases import Floats

LANES = 64  # lanes of vector environments
DRAWN = 64  # sets of actions drawn in advance and played in turn
GROUP_NOTIONS = ("SP", "EO", "OAE", "PP", "PE", "EqOdds", "CUAE", "TE", "CSP")
EIGHT = ("SP", "EO", "OAE", "PP", "PE", "IF", "CSC")  # and the reward
TRADE_OFF = ("SP", "IF")
COMPARED = "gender"
WORLDS = 1000  # number of worlds whose thresholds are computed at once
SAMPLES = 2048  # samples of a rollout
ITERATIONS = 10  # measured iterations of a training, after its random episodes
TEAM_LANES = 16  # lanes of a team's environment
TEAM_BATCH = 512  # transitions per agent and update
TRIALS = 50  # configurations of a search
EPISODES = 64  # episodes per configuration


class Load(NamedTuple):
    """Work that a benchmark repeats."""

    run: Callable[[int], object]  # does the work a number of times
    steps: int  # steps counted each time


def batch(env_id: str) -> Load:
    """Return a load of many lanes: rules with rewards, records and observations, in new arrays."""
    rules = fair_envs.make_rules(env_id)
    return played_on(Lanes(rules, LANES), _drawn(rules.action_space(rules.params), (LANES, rules.agents(rules.params))))


def played_on(lanes: Lanes, drawn: NDArray[Any]) -> Load:
    """Return a load that plays lanes with drawn actions, shape (sets, B, agents, ...), in turn."""
    lanes.seed(0)
    lanes.restart()

    def run(times: int) -> None:
        for k in range(times):
            played = lanes.advance(drawn[k % len(drawn)])
            done = played.terminated | played.truncated
            if np.count_nonzero(done):  # takes a third of the time of any()
                lanes.restart(mask=done)

    return Load(run, lanes.count)


def cartpole() -> Load:
    """Return a load of Gymnasium's CartPole, including the wrappers that `gym.make` adds."""
    env = gym.make("CartPole-v1")
    return alone(env, _drawn(env.action_space, ()))


def cartpoles() -> Load:
    """Return a load of Gymnasium's vectorised CartPoles, which are written with NumPy."""
    return _played(gym.make_vec("CartPole-v1", num_envs=LANES, vectorization_mode="vector_entry_point"), lanes=LANES)


def vector(env_id: str) -> Load:
    """Return a load of Gymnasium's vector environment."""
    return _played(gym.make_vec(env_id, num_envs=LANES), lanes=LANES)


def single(env_id: str) -> Load:
    """Return a load of Gymnasium's environment, including the wrappers that `gym.make` adds."""
    env = gym.make(env_id)
    return alone(env, _drawn(env.action_space, ()))


def alone(env: Any, drawn: Iterable[Any]) -> Load:
    """Return a load that plays a Gymnasium environment with drawn actions in turn."""
    each = list(drawn)
    env.reset(seed=0)

    def run(times: int) -> None:
        for k in range(times):
            _, _, terminated, truncated, _ = env.step(each[k % len(each)])
            if terminated or truncated:
                env.reset()

    return Load(run, 1)


def parallel(env_id: str) -> Load:
    """Return a load of PettingZoo's environment; one step counts for all agents together."""
    env = importlib.import_module(fair_envs.TABLE[env_id].module).parallel_env()
    return rounds(env, _drawn(env.action_space(env.possible_agents[0]), (len(env.possible_agents),)))


def dictionaries(env_id: str) -> Load:
    """Return a load that makes the dictionaries of a step of PettingZoo's environment from their entries."""
    env = importlib.import_module(fair_envs.TABLE[env_id].module).parallel_env()
    env.reset(seed=0)
    *columns, infos = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    agents = list(infos)
    entries = [list(column.values()) for column in columns]
    names, of_agents = list(infos[agents[0]]), [tuple(info.values()) for info in infos.values()]

    def run(times: int) -> None:
        for _ in range(times):
            for column in entries:
                dict(zip(agents, column, strict=True))
            {agent: dict(zip(names, own, strict=True)) for agent, own in zip(agents, of_agents, strict=True)}

    return Load(run, 1)


def rounds(env: Any, drawn: Iterable[Any]) -> Load:
    """Return a load that plays a PettingZoo environment with drawn actions, one for each agent, in turn."""
    named = [dict(zip(env.possible_agents, row, strict=True)) for row in drawn]
    env.reset(seed=0)

    def run(times: int) -> None:
        for k in range(times):
            env.step(named[k % len(named)])
            if not env.agents:
                env.reset()

    return Load(run, 1)


def one_with_objectives() -> Load:
    """Return a load of one FairHiring with a vector reward: the reward and demographic parity."""
    from fair_envs.wrappers import FairnessObjectives

    env = FairnessObjectives(gym.make("FairHiring-v0"), ("SP",), SlidingWindow(1000), groups=COMPARED)
    return alone(env, _drawn(env.action_space, ()))


def objectives(notions: Sequence[str], *, window: int, lanes: int) -> Load:
    """Return a load of FairHiring with a vector reward: the reward, and notions over a full window."""
    from fair_envs.wrappers import FairnessObjectives

    env = gym.make_vec("FairHiring-v0", num_envs=lanes)
    load = _played(
        FairnessObjectives(env, notions, SlidingWindow(window), groups=COMPARED), lanes=lanes, probabilities=True
    )
    load.run(window)
    return load


def _played(env: Any, *, lanes: int, probabilities: bool = False) -> Load:
    drawn = _drawn(env.single_action_space, (lanes,))
    even = np.full((lanes, 2), 0.5)
    env.reset(seed=0)

    def run(times: int) -> None:
        for k in range(times):
            if probabilities:
                env.unwrapped.report_action_probs(even)
            env.step(drawn[k % DRAWN])

    return Load(run, lanes)


def _drawn(space: gym.Space[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return drawn actions, shape (`DRAWN`, *shape, ...)."""
    space.seed(0)
    drawn = np.array([space.sample() for _ in range(DRAWN * int(np.prod(shape)))])
    return drawn.reshape(DRAWN, *shape, *(space.shape or ()))


def group_notions(memory: Memory) -> Load:
    """Return a load that adds a decision in each of 64 lanes and computes all group notions after it."""
    from fair_envs.metrics import Gaps

    infos, spec = _infos(LANES)
    history, all_gaps = History(memory, spec, lanes=LANES), Gaps(GROUP_NOTIONS, spec, groups=COMPARED)

    def run(times: int) -> None:
        for k in range(times):
            history.add(infos[k % len(infos)])
            all_gaps(history)

    run(1000)
    return Load(run, LANES)


def individual_notions(*, window: int, lanes: int) -> Load:
    """Return a load that adds a decision to full windows and computes individual fairness and consistency after it.

    The load returns the seconds that the notions took, without the time for adding decisions.
    """
    from fair_envs.metrics import Gaps

    infos, spec = _infos(lanes)
    history, both = History(SlidingWindow(window), spec, lanes=lanes), Gaps(("IF", "CSC"), spec)

    def run(times: int) -> float:
        seconds = 0.0
        for k in range(times):
            history.add(infos[k % len(infos)])
            begin = time.perf_counter()
            both(history)
            seconds += time.perf_counter() - begin
        return seconds

    run(2 * window)
    return Load(run, lanes)


def _infos(lanes: int) -> tuple[list[dict[str, Any]], FairSpec]:
    """Return the infos of a thousand steps of FairHiring, with random action probabilities."""
    env: Any = gym.make_vec("FairHiring-v0", num_envs=lanes)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    infos = []
    for _ in range(1000):
        hire = rng.random(lanes)
        env.unwrapped.report_action_probs(np.stack([1 - hire, hire], axis=1))
        infos.append(env.step((rng.random(lanes) < hire).astype(np.int64))[4])
    return infos, env.unwrapped.fair_spec


def equal_opportunity() -> Load:
    """Return a load of exact equal-opportunity thresholds: two groups, seven scores, a thousand worlds at once."""
    from fair_envs.envs.lending.params import REPAYMENTS
    from fair_envs.envs.lending.policies import equal_opportunity as solve

    worlds = np.random.default_rng(0).dirichlet(np.ones(7), (WORLDS, 2))

    def run(times: int) -> None:
        for _ in range(times):
            solve(worlds, REPAYMENTS["delayed_impact"])

    return Load(run, WORLDS)


def measures(env_id: str, *, lanes: int) -> Load:
    """Return a load that updates an environment's short-term and long-term measures after each recorded step."""
    from fair_envs.baselines.tasks import task_for

    env: Any = gym.make_vec(env_id, num_envs=lanes)
    drawn = _drawn(env.single_action_space, (lanes,))
    env.reset(seed=0)
    infos = [env.step(drawn[k % DRAWN])[4] for k in range(300)]
    task, rules = task_for(env_id), env.unwrapped.lanes.rules
    both = [task.measure(name, rules, lanes) for name in ("short", "long")]

    def run(times: int) -> None:
        for k in range(times):
            for measure in both:
                measure.update(infos[k % len(infos)])

    run(len(infos))
    return Load(run, lanes)


def learners(env_id: str, *, lanes: int) -> tuple[Load, Load]:
    """Return loads that train F-PPO, with massaging from the first rollout on, and Stable-Baselines3's PPO."""
    from fair_envs.benchmark.peers import fair_and_plain

    fair, plain = fair_and_plain(env_id, lanes=lanes, n_steps=SAMPLES // lanes)
    return _learning(fair), _learning(plain)


def variants(env_id: str, one: str, other: str) -> tuple[Load, Load]:
    """Return loads that train two variants of PPO on an environment's task, see `fair_envs.benchmark.peers.variant`."""
    from fair_envs.benchmark.peers import variant

    return _whole_rollouts(variant(env_id, one)), _whole_rollouts(variant(env_id, other))


def _whole_rollouts(model: Any) -> Load:
    """Return a load of rollouts and updates of a learner."""
    steps = model.n_steps * model.n_envs

    def run(times: int) -> None:
        model.learn(times * steps, reset_num_timesteps=False)

    run(2)
    return Load(run, steps)


def _learning(model: Any) -> Load:
    def run(times: int) -> None:
        model.learn(times * SAMPLES)

    run(1)
    return Load(run, SAMPLES)


def pursuits() -> tuple[Load, Load]:
    """Return loads of FairPursuit's rules and of the same world written with NumPy arrays, with equally many lanes."""
    rules = fair_envs.make_rules("FairPursuit-v0")
    drawn = _drawn(rules.action_space(rules.params), (LANES, rules.agents(rules.params)))
    world = WholeArrays(rules.params, LANES)

    def run(times: int) -> None:
        for k in range(times):
            world.step(drawn[k % len(drawn)])

    return played_on(Lanes(rules, LANES), drawn), Load(run, LANES)


class WholeArrays:
    """FairPursuit's default world in plain NumPy, without records or seeds: a reference for the machine's speed.

    Args:
        params: FairPursuit's parameters; only those of size and time are used.
        count: Number of lanes (B).

    Attributes:
        position: Positions of the pursuers, then of the evader, shape (B, pursuers + 1, 2).
    """

    def __init__(self, params: Any, count: int) -> None:
        self._params, self._chance = params, np.random.default_rng(0)
        self._radius = params.pursuer_radius + params.evader_radius
        self.position = self._anywhere(count)

    def step(self, actions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Play a step with directions, shape (B, pursuers, 2); return observations, rewards and captures."""
        params, pursuers = self._params, self._params.pursuers
        away = -self._ways(self.position[:, pursuers:], self.position[:, :pursuers])
        away = (away / np.maximum((away**2).sum(-1, keepdims=True), 1e-12)).sum(axis=1, keepdims=True)
        heading = np.concatenate([actions, away], axis=1)
        heading /= np.maximum(np.sqrt((heading**2).sum(-1, keepdims=True)), 1e-12)
        self.position = (self.position + params.time_step * heading) % params.side
        ways = self._ways(self.position[:, :pursuers], self.position[:, pursuers:])
        caught = (ways**2).sum(-1) < self._radius**2
        done = caught.any(axis=1)
        reward = np.where(done, params.capture_reward, -params.step_penalty).repeat(pursuers).reshape(caught.shape)
        seen = [ways] + [
            self._ways(self.position[:, :pursuers], np.roll(self.position[:, :pursuers], -k, axis=1))
            for k in range(1, pursuers)
        ]
        observation = (np.concatenate(seen, axis=-1) * (2 / params.side)).astype(np.float32)
        if done.any():
            self.position[done] = self._anywhere(int(done.sum()))
        return observation, reward, caught

    def _ways(self, here: NDArray[Any], there: NDArray[Any]) -> NDArray[Any]:
        way = there - here
        return way - self._params.side * np.round(way / self._params.side)  # type: ignore[no-any-return]

    def _anywhere(self, count: int) -> Floats:
        return self._chance.uniform(0, self._params.side, (count, self._params.pursuers + 1, 2))


def team_updates() -> tuple[Load, Load]:
    """Return loads that update all agents: by a team's DDPG, and by one DDPG of Stable-Baselines3 per agent."""
    from fair_envs.benchmark.peers import together_and_separate

    together, separate = together_and_separate(lanes=TEAM_LANES, batch_size=TEAM_BATCH)
    return _updating(together), _updating(*separate)


def _updating(*models: Any) -> Load:
    def run(times: int) -> None:
        for _ in range(times):
            for model in models:
                model.train(1, TEAM_BATCH)

    return Load(run, 1)


def team_training() -> Load:
    """Return a load that trains a team in the paper's world, with a full replay; a step counts for all agents."""
    from fair_envs.baselines.team.curriculum import FollowCurriculum
    from fair_envs.baselines.team.training import TeamRows, make_team, team_settings
    from fair_envs.benchmark.peers import fill

    config = team_settings("FairPursuit-v0", preset="large", lanes=TEAM_LANES, batch_size=TEAM_BATCH, learning_starts=0)
    model, course = make_team(config), config.course()
    assert model.replay_buffer is not None
    assert course is not None
    fill(model.replay_buffer)
    steps = config.lanes * config.train_freq  # steps between two updates

    def run(times: int) -> None:
        followed = [FollowCurriculum(course), TeamRows(every=config.row)]
        model.learn(times * steps * model.agents, followed, log_interval=None, reset_num_timesteps=False)

    return Load(run, steps)


def trade_offs() -> Load:
    """Return a load that trains Pareto Conditioned Networks on FairHiring, including updates."""
    from fair_envs.baselines.pcn.pcn import PCN
    from fair_envs.wrappers import FairnessObjectives

    env = FairnessObjectives(gym.make_vec("FairHiring-v0", num_envs=10), TRADE_OFF, SlidingWindow(500), groups=COMPARED)
    model = PCN(env, seed=0)
    model.iterate()
    before = model.num_timesteps
    for _ in range(ITERATIONS):
        model.iterate()
    steps = (model.num_timesteps - before) // ITERATIONS  # approximate, because episodes differ in length

    def run(times: int) -> None:
        model.learn(model.num_timesteps + times * steps)

    return Load(run, steps)


MEMORIES: dict[str, Callable[[], Memory]] = {"window 1000": partial(SlidingWindow, 1000), "full": Full}


# Searches -------------------------------------------------------------------------------------------------------------


def search(*, trials: int, seed: int) -> None:
    """Search FairTraffic on one core; every configuration plays all episodes, and random drivers make them long."""
    from fair_envs.search.design import design
    from fair_envs.search.settings import Search

    ranges = {"signal_period": "4:40", "offset_east_west": "0:15", "human_dawdling": "0:0.5", "human_lanes": "|all"}
    settings: dict[str, Any] = {"ranges": ranges, "policy": "random-turns", "trials": trials, "episodes": EPISODES}
    settings |= {"precision": 0.0, "prune": False, "finalists": 1, "held_out": 2}
    with TemporaryDirectory() as folder:
        design(Search(env_id="FairTraffic-v0", seed=seed, **settings), out=Path(folder) / "out")
