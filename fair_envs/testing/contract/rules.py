"""What environments made of rules promise in addition: all interfaces, copies, snapshots, refusals and pictures."""

import copy
import json
import math
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo.test
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from fair_envs.faces.common import RENDER_MODES
from fair_envs.metrics.gaps import BY_NAME
from fair_envs.metrics.group import DEFINITIONS
from fair_envs.metrics.history import History, SlidingWindow
from fair_envs.metrics.individual import INDIVIDUAL
from fair_envs.registration import make_sb3
from fair_envs.testing.checks import arrays_in, assert_same, check_facts, check_schema, schema
from fair_envs.testing.contract.kinds import HORIZON, Kind, draws, expected_info, play_single, single
from fair_envs.testing.contract.kinds import no_window as no_window
from fair_envs.wrappers import FairnessObjectives

PETTINGZOO: Any = pettingzoo.test  # without annotations
HAS_SB3 = find_spec("stable_baselines3") is not None

sb3 = pytest.mark.skipif(not HAS_SB3, reason="needs the extra 'baselines'")


def need_pictures(kind: Kind) -> None:
    """Skip the test if no pictures of the environment can be drawn."""
    if not draws(kind):
        pytest.skip("drawing needs the extra 'render', and a renderer")


# --------------------------------------------------------------------------------------------- the interfaces


def vector(kind: Kind, lanes: int = 3, **keywords: Any) -> Any:
    """Return the interface of `gymnasium.make_vec`."""
    return gym.make_vec(kind.env_id, num_envs=lanes, **kind.short(keywords))


def parallel(kind: Kind, **keywords: Any) -> Any:
    """Return PettingZoo's parallel interface, in which all agents act at once."""
    return kind.module.parallel_env(**kind.short(keywords))


def turns(kind: Kind, **keywords: Any) -> Any:
    """Return PettingZoo's AEC interface, in which agents act one after another."""
    return kind.module.env(**kind.short(keywords))


def rows(kind: Kind, of: Any, lanes: int = 3) -> Any:
    """Return an interface of Stable-Baselines3, whose rows are ``"lanes"`` or ``"agents"``."""
    return make_sb3(kind.env_id, n_envs=lanes, rows=of, seed=5, **kind.short({}))


def joint_actions(kind: Kind, steps: int, lanes: int = 1, seed: int = 0) -> NDArray[Any]:
    """Return actions of shape (steps, lanes, agents, ...)."""
    rules = kind.rules()
    space = rules.action_space(rules.params)
    space.seed(seed)
    agents = rules.agents(rules.params)
    sampled = np.array([space.sample() for _ in range(steps * lanes * agents)])
    return sampled.reshape(steps, lanes, agents, *(space.shape or ()))


def individuals(kind: Kind) -> int:
    """Return the number of agents that act."""
    rules = kind.rules()
    return rules.agents(rules.params)


def deciders(kind: Kind) -> bool:
    """Return whether one agent decides on other people; its ``info`` is about all of them."""
    return not kind.rules().multi_agent


def last_agent(kind: Kind) -> str:
    """Return the name of the agent with the highest index."""
    return f"agent_{individuals(kind) - 1}"


def ends_early(kind: Kind) -> bool:
    """Return whether random play terminates before the horizon."""
    return any(len(played) == 5 and played[2] for played in play_single(single(kind), seed=0, steps=20 * HORIZON))


class Driver:
    """Plays one interface with actions that depend only on the time, so that copies can be compared."""

    def __init__(self, kind: Kind, face: str) -> None:
        self.kind, self.face, self.time, self.over = kind, face, 0, False
        makers: dict[str, Callable[[], Any]] = {
            "single": lambda: single(kind),
            "focal": lambda: single(kind, control="focal", focal=last_agent(kind)),
            "vector": lambda: vector(kind),
            "vector, same step": lambda: vector(kind, autoreset_mode="SameStep", threads=2),
            "parallel": lambda: parallel(kind),
            "turns": lambda: turns(kind),
            "rows of lanes": lambda: rows(kind, "lanes"),
            "rows of agents": lambda: rows(kind, "agents"),
        }
        self.env = makers[face]()
        self.begin()

    def begin(self) -> None:
        """Begin the first episode of seed 5."""
        if self.face.startswith("rows"):
            self.env.reset()
        else:
            self.env.reset(seed=5)

    def step(self) -> Any:
        """Play one step and return all it returns; if an episode has ended, begin the next one first."""
        self.time += 1
        env = self.env
        if self.over:
            env.reset()
            self.over = False
        if self.face == "parallel":
            spaces = {name: env.action_space(name) for name in env.agents}
            played = env.step({name: self.sample(space, i) for i, (name, space) in enumerate(spaces.items())})
            self.over = not env.agents
            return played
        if self.face == "turns":
            agent = env.agent_selection
            gone = env.terminations[agent] or env.truncations[agent]
            env.step(None if gone else self.sample(env.action_space(agent)))
            self.over = not env.agents
            return None if self.over else env.last()
        if self.face.startswith("rows"):
            space = env.action_space
            return env.step(np.array([self.sample(space, i) for i in range(env.num_envs)]))
        played = env.step(self.sample(env.action_space))
        self.over = not self.face.startswith("vector") and (played[2] or played[3])
        return played

    def sample(self, space: gym.Space[Any], salt: int = 0) -> Any:
        """Return an action that depends only on the time and the salt."""
        space.seed(1000 * salt + self.time)
        return space.sample()


FACES = ["single", "focal", "vector", "vector, same step", "parallel", "turns"]
FACES += ["rows of lanes", "rows of agents"] if HAS_SB3 else []


# ------------------------------------------------------------------------------- what the libraries check themselves


def test_gymnasium_check_env_under_focal_control(kind: Kind) -> None:
    check_env(single(kind, control="focal").unwrapped, skip_render_check=True)


@sb3
@pytest.mark.filterwarnings("ignore:Your observation  has an unconventional shape")  # a row for each person
@pytest.mark.filterwarnings("ignore:We recommend you to use a symmetric")  # an action can be a share
def test_stable_baselines3_check_env(kind: Kind) -> None:
    from stable_baselines3.common.env_checker import check_env as check

    check(single(kind).unwrapped, skip_render_check=True)
    check(single(kind, control="focal").unwrapped, skip_render_check=True)


def test_pettingzoo_parallel_api_test(kind: Kind) -> None:
    PETTINGZOO.parallel_api_test(parallel(kind), num_cycles=40)


@pytest.mark.filterwarnings("ignore:Observation numpy array is all zeros")  # zeros can be a valid observation
@pytest.mark.filterwarnings("ignore:Action space for each agent probably should be")  # it can be a MultiDiscrete
def test_pettingzoo_api_test(kind: Kind) -> None:
    PETTINGZOO.api_test(turns(kind), num_cycles=200)


def test_pettingzoo_seed_tests(kind: Kind) -> None:
    PETTINGZOO.seed_test(lambda: turns(kind), num_cycles=100)
    PETTINGZOO.parallel_seed_test(lambda: parallel(kind), num_cycles=20)


def test_pettingzoo_max_cycles_test(kind: Kind) -> None:
    if ends_early(kind) or kind.rules().leaving_field is not None:
        pytest.skip("its episodes can end before the horizon")
    made = kind.module
    faces = {name: partial(getattr(made, name), **kind.parameters) for name in ("parallel_env", "env")}
    PETTINGZOO.max_cycles_test(SimpleNamespace(**faces))


def test_pettingzoo_render_test(kind: Kind) -> None:
    need_pictures(kind)
    PETTINGZOO.render_test(lambda **keywords: turns(kind, **keywords))


@pytest.mark.filterwarnings("ignore:State numpy array is all zeros")
def test_pettingzoo_state_test(kind: Kind) -> None:
    PETTINGZOO.state_test(turns(kind), parallel(kind))


# -------------------------------------------------------------------------------------------------- registration


def test_gymnasium_finds_it_by_module_and_id(kind: Kind) -> None:
    env = gym.make(kind.env_id if ":" in kind.env_id else f"fair_envs:{kind.env_id}", **kind.parameters)
    assert type(env.unwrapped) is kind.module.Env
    assert type(gym.make_vec(kind.env_id, num_envs=1, **kind.parameters)) is kind.module.Vector


def test_the_spec_survives_json_and_makes_the_same_environment(kind: Kind) -> None:
    env = single(kind, control="focal", focal=last_agent(kind))
    assert env.spec is not None
    text = env.spec.to_json()
    again = gym.make(gym.envs.registration.EnvSpec.from_json(text))
    assert json.loads(text)["kwargs"]["horizon"] == HORIZON
    assert_same(play_single(again, seed=3, steps=10), play_single(env, seed=3, steps=10))


@pytest.mark.skipif(not hasattr(pettingzoo, "register"), reason="PettingZoo has a registry from 1.27 on")
def test_pettingzoo_finds_it_by_id(kind: Kind) -> None:
    made: Any = pettingzoo.make("parallel", kind.name, **kind.short({}))
    assert made.unwrapped.max_cycles == HORIZON
    assert pettingzoo.make("aec", kind.name, **kind.parameters).possible_agents == made.possible_agents


def test_agents_are_named_by_index(kind: Kind) -> None:
    assert parallel(kind).possible_agents == [f"agent_{i}" for i in range(individuals(kind))]


def test_max_cycles_is_the_horizon(kind: Kind) -> None:
    env = kind.module.parallel_env(max_cycles=5, **kind.parameters)
    assert env.params.horizon == env.max_cycles == 5
    with pytest.raises(TypeError, match="max_cycles must not be given together with horizon"):
        kind.module.parallel_env(max_cycles=5, horizon=5, **kind.parameters)
    with pytest.raises(ValueError, match="max_cycles must be an integer of at least 1, got 0"):
        kind.module.parallel_env(max_cycles=0, **kind.parameters)


# ------------------------------------------------------------------------------------------------- determinism


def test_without_a_seed_the_next_episode_begins(kind: Kind) -> None:
    env, other = single(kind), single(kind)
    keys = []
    for begin in ({"seed": 3}, {}, {}, {"seed": 3}, {}):
        env.reset(**begin)
        keys.append(int(env.unwrapped.lanes.records["key"][0]))
    assert keys[:2] == keys[3:]
    assert len(set(keys[:3])) == 3
    other.reset()
    assert int(other.unwrapped.lanes.records["key"][0]) not in keys


def of_living(env: Any, joint: NDArray[Any]) -> dict[str, Any]:
    """Return the actions of the agents that are living, of those of all."""
    return {name: action for name, action in zip(env.possible_agents, joint, strict=True) if name in env.agents}


def take_turns(env: Any, actions: dict[str, Any]) -> None:
    """Let all living agents act once."""
    waiting = {name for name in env.agents if not (env.terminations[name] or env.truncations[name])}
    while waiting:
        name = env.agent_selection
        env.step(actions[name] if name in waiting else None)
        waiting.discard(name)


def stacked(rewards: dict[str, Any], names: list[str]) -> NDArray[Any]:
    return np.array([rewards[name] for name in names])


def test_all_interfaces_play_the_same_episode(kind: Kind) -> None:
    """Observations, rewards and records are those of the lane of seed 5."""
    batch, one, many, asked = vector(kind), single(kind), parallel(kind), turns(kind)
    names, agents = many.possible_agents, individuals(kind)
    actions = joint_actions(kind, 4, lanes=3)
    seen, info = batch.reset(seed=5)
    assert_same(seen[0], one.reset(seed=5)[0])
    assert_same(seen[0].reshape(agents, -1), stacked(many.reset(seed=5)[0], names).reshape(agents, -1))
    asked.reset(seed=5)
    tables = [rows(kind, of) for of in ("agents", "lanes")] if HAS_SB3 else []
    for table in tables:
        assert_same(table.reset().reshape(seen.shape), seen)
    for joint in actions:
        seen, reward, terminated, truncated, info = batch.step(joint.reshape(batch.action_space.shape))
        single_step = one.step(joint[0].reshape(one.action_space.shape))
        assert_same(single_step[:4], (seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0])))
        assert_same(single_step[4], {name: column[0] for name, column in info.items() if name[0] != "_"})
        living = list(many.agents)
        observations, rewards, ends, cuts, infos = many.step(of_living(many, joint[0]))
        own = single_step[4]["agent_reward"].tolist() if "agent_reward" in single_step[4] else [single_step[1]]
        active = single_step[4].get("agent_active", np.ones(agents))
        assert list(rewards) == list(ends) == list(cuts) == list(observations) == list(infos) == living
        for i, name in enumerate(names):
            if name not in living:
                assert own[i] == 0 and not seen[0].reshape(agents, -1)[i].any() and not active[i]
                continue
            assert_same(seen[0].reshape(agents, -1)[i], observations[name].reshape(-1))
            assert rewards[name] == own[i]
            assert ends[name] == (bool(terminated[0]) or not active[i])
            assert cuts[name] == (bool(truncated[0]) and bool(active[i]))
            assert set(infos[name]) == set(single_step[4]) - {"agent_reward", "agent_active"}
            outcome = single_step[4]["fair_outcome"]
            assert np.array_equal(infos[name]["fair_outcome"], outcome if deciders(kind) else outcome[i])
        take_turns(asked, dict(zip(names, joint[0], strict=True)))
        for name in living:
            assert_same(asked.observe(name), observations[name])
            assert asked.rewards[name] == rewards[name]
        if (terminated | truncated).any():
            break  # the tables begin new episodes at once
        for table, earned in zip(tables, (info.get("agent_reward", reward), reward), strict=False):
            observation, row_reward, _, _ = table.step(joint.reshape(-1, *(table.action_space.shape or ())))
            assert_same(observation.reshape(seen.shape), seen)
            assert_same(row_reward, earned.reshape(-1).astype(np.float32))
            assert_same(table.interactions["group"], info["fair_group"].reshape(table.interactions["group"].shape))


@pytest.mark.parametrize(("lanes", "threads"), [(1, 1), (4, 1), (4, 3)])
def test_lane_i_is_the_single_environment_of_the_seed_plus_i(kind: Kind, lanes: int, threads: int) -> None:
    batch = vector(kind, lanes, threads=threads, autoreset_mode="Disabled")
    alone = [single(kind) for _ in range(lanes)]
    batch.reset(seed=11)
    for i, env in enumerate(alone):
        env.reset(seed=11 + i)
    for joint in joint_actions(kind, HORIZON, lanes):
        seen, reward, *flags, _ = batch.step(joint.reshape(batch.action_space.shape))
        for i, env in enumerate(alone):
            one = env.step(joint[i].reshape(env.action_space.shape))
            assert_same((seen[i], float(reward[i]), *(bool(flag[i]) for flag in flags)), one[:4])
        if np.any(flags):
            break


# ----------------------------------------------------------------------- the batch is Gymnasium's own, bit for bit


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_the_batch_equals_gymnasiums_own(kind: Kind, mode: AutoresetMode) -> None:
    """Also when lanes end at different times, and when policies report how they chose."""
    ours = vector(kind, autoreset_mode=mode)
    theirs: Any = SyncVectorEnv([lambda: single(kind)] * 3, autoreset_mode=mode)
    assert_same(ours.reset(seed=5), theirs.reset(seed=5))
    rng = np.random.default_rng(0)
    shape = (3, ours.fair_spec.individuals, ours.fair_spec.actions)
    ended = np.zeros(3, bool)
    for time, joint in enumerate(joint_actions(kind, 40, lanes=3)):
        if time in (2, 5, 17):  # from now on the lanes end at different times
            ended |= np.arange(3) == time % 3
        if (ended if mode is AutoresetMode.DISABLED else ended & (time in (2, 5, 17))).any():
            seeds = {"seed": 90 + time} if time == 5 else {}
            mine, other = (env.reset(options={"reset_mask": ended.copy()}, **seeds) for env in (ours, theirs))
            assert_same(mine, other, f"reset {time}")
        if shape[-1] and time % 3:
            probs = rng.dirichlet(np.ones(shape[-1]), shape[:-1]).astype(np.float32)
            one_person = ours.fair_spec.one_person
            ours.report_action_probs(probs[:, 0] if one_person else probs)
            for env, own in zip(theirs.envs, probs, strict=True):
                env.unwrapped.report_action_probs(own[0] if one_person else own)
        action = joint.reshape(ours.action_space.shape)
        mine, other = ours.step(action), theirs.step(action)
        assert_same(mine, other, f"step {time}")
        ended = mine[2] | mine[3]


def test_the_batch_equals_gymnasiums_own_in_other_processes(kind: Kind) -> None:
    ours = vector(kind, 2)
    theirs = gym.make_vec(kind.env_id, num_envs=2, vectorization_mode="async", **kind.short({}))
    try:
        assert_same(ours.reset(seed=5), theirs.reset(seed=5))
        for joint in joint_actions(kind, HORIZON + 3, lanes=2):
            action = joint.reshape(ours.action_space.shape)
            assert_same(ours.step(action), theirs.step(action))
    finally:
        theirs.close()


# ------------------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))], ids=["deepcopy", "pickle"]
)
def test_a_copy_in_mid_episode_goes_on_as_the_first(kind: Kind, face: str, copied: Callable[[Any], Any]) -> None:
    first = Driver(kind, face)
    for _ in range(3):
        first.step()
    other = copied(first)
    assert_same([other.step() for _ in range(2 * HORIZON)], [first.step() for _ in range(2 * HORIZON)])
    if hasattr(first.env, "reset") and face in ("single", "vector", "parallel"):
        assert_same(other.env.reset(), first.env.reset())


def test_the_parameters_stay_as_they_are(kind: Kind) -> None:
    """Compiled rules could write to them; a typo for the lane would change all lanes, for good."""
    driver = Driver(kind, "single")
    code = driver.env.unwrapped.lanes.rules.code
    before = copy.deepcopy(code)
    for _ in range(2 * HORIZON):
        driver.step()
    assert_same(code, before)


def test_a_copy_is_independent(kind: Kind) -> None:
    env = Driver(kind, "single")
    other = copy.deepcopy(env)
    other.step()
    assert int(env.env.unwrapped.lanes.records["time"][0]) == 0


@pytest.mark.parametrize("face", ["single", "vector", "parallel"])
def test_an_episode_goes_on_from_a_state_as_it_did(kind: Kind, face: str) -> None:
    driver = Driver(kind, face)
    seen = driver.step()[0]
    env = driver.env.unwrapped
    state = env.get_state()
    first = [driver.step() for _ in range(HORIZON - 1)]
    driver.time -= HORIZON - 1
    driver.over = False
    assert_same(env.set_state(state), seen)
    assert_same([driver.step() for _ in range(HORIZON - 1)], first)


def test_no_field_of_a_lane_is_called_like_an_attribute_of_numpys_records(kind: Kind) -> None:
    """Rules read ``lane.size`` as the field when compiled, and as NumPy's own attribute otherwise."""
    rules = kind.rules()
    assert not set(rules.dtype.names or ()) & set(dir(np.record))


# ---------------------------------------------------------------------------------------- info, spaces and memory


def test_info_has_the_same_schema_under_focal_control(kind: Kind) -> None:
    env = single(kind, control="focal")
    expected = expected_info(env)
    for played in play_single(env, seed=3, steps=HORIZON):
        check_schema(played[-1], expected)


def test_every_agent_has_the_schema_for_itself(kind: Kind) -> None:
    env = parallel(kind)
    expected = schema(env.fair_spec)
    for name, (dtype, shape) in expected.items():
        if shape[:1] == (env.fair_spec.individuals,) and not deciders(kind) and "late" not in name:
            expected[name] = (dtype, shape[1:])
    _, infos = env.reset(seed=3)
    for joint in joint_actions(kind, HORIZON):
        for name in infos:
            check_schema(infos[name], expected)
            assert deciders(kind) or infos[name]["fair_individual"] == env.possible_agents.index(name)
        infos = env.step(of_living(env, joint[0]))[4]
        if not env.agents:
            break


def test_info_uses_no_reserved_key(kind: Kind) -> None:
    reserved = {"episode", "final_obs", "final_info", "terminal_observation", "TimeLimit.truncated", "vector_reward"}
    reserved |= {"reward_weights", "env_id", "cost", "action_mask"}
    for played in play_single(single(kind), seed=3, steps=HORIZON):
        assert not reserved & set(played[-1])
        assert not any(name.startswith("_") for name in played[-1])


def test_the_fair_spec_fits_what_is_reported_under_focal_control(kind: Kind) -> None:
    env = single(kind, control="focal")
    for played in play_single(env, seed=3, steps=HORIZON):
        check_facts(env.unwrapped.fair_spec, played[-1], decided=len(played) == 5)


@pytest.mark.filterwarnings("ignore:groups are compared by:UserWarning")
def test_a_history_takes_in_its_episodes_and_refuses_notions_that_say_nothing(kind: Kind) -> None:
    """Every notion has gaps within its limits, or says at construction what it needs."""
    env = vector(kind, 2, horizon=3, autoreset_mode="SameStep")
    spec = env.unwrapped.fair_spec
    memory = SlidingWindow(2 * spec.individuals + 6)
    history = History(memory, spec, lanes=2)
    fitting = []
    for name in (*DEFINITIONS, *INDIVIDUAL):
        notion: Any = BY_NAME[name]()
        try:
            notion.check(spec)
        except ValueError as refusal:
            assert str(refusal).startswith(f"{name} needs ")
            with pytest.raises(ValueError, match=f"{name} needs "):
                FairnessObjectives(single(kind), [name], memory)
        else:
            fitting.append(notion)
    history.add(env.reset(seed=3)[1])
    probs = np.full(env.reset(seed=3)[1]["fair_action_probs"].shape, 1 / spec.actions, np.float32)
    for joint in joint_actions(kind, 5, lanes=2):
        env.unwrapped.report_action_probs(probs)
        history.add(env.step(joint.reshape(env.action_space.shape))[4])
        for notion in fitting:
            gap = notion.gap(history)
            assert gap.shape == (2,) and (np.isnan(gap) | ((gap >= 0) & (gap <= notion.worst))).all(), notion
    assert len(history)


def test_action_probabilities_are_reported_for_one_decision(kind: Kind) -> None:
    env = single(kind).unwrapped
    shape = schema(env.fair_spec)["fair_action_probs"][1]
    env.reset(seed=3)
    probs = np.full(shape, 1 / shape[-1], np.float32)
    action = joint_actions(kind, 1)[0, 0].reshape(env.action_space.shape)
    env.report_action_probs(probs)
    probs[:] = 0
    assert (env.step(action)[4]["fair_action_probs"] == np.float32(1 / shape[-1])).all()
    assert not env.step(action)[4]["fair_action_probs"].any()
    env.report_action_probs(np.full(shape, 1 / shape[-1]))
    assert not env.reset()[1]["fair_action_probs"].any()
    assert not env.step(action)[4]["fair_action_probs"].any()
    for bad, message in ((np.zeros(shape), "must be distributions"), (np.ones(3), "must have shape")):
        with pytest.raises(ValueError, match=f"action_probs {message}"):
            env.report_action_probs(bad)


def test_agents_report_action_probabilities_for_one_decision(kind: Kind) -> None:
    env = parallel(kind)
    env.reset(seed=3)
    shape = schema(env.fair_spec)["fair_action_probs"][1][0 if deciders(kind) else 1 :]
    env.report_action_probs({name: np.full(shape, 1 / shape[-1]) for name in env.agents})
    actions = dict(zip(env.agents, joint_actions(kind, 1)[0, 0], strict=True))
    for info in env.step(actions)[4].values():
        assert_same(info["fair_action_probs"], np.full(shape, 1 / shape[-1], np.float32))


@pytest.mark.parametrize("face", FACES)
def test_nothing_is_shared_between_calls(kind: Kind, face: str) -> None:
    """Writing into returned arrays changes nothing that is returned later."""
    kept, spoilt = Driver(kind, face), Driver(kind, face)
    for _ in range(2 * HORIZON):
        played = spoilt.step()
        assert_same(played, kept.step())
        for array in arrays_in(played):
            array[...] = 1


@pytest.mark.parametrize("face", FACES)
def test_calls_return_memory_of_their_own(kind: Kind, face: str) -> None:
    driver = Driver(kind, face)
    arrays = [arrays_in(driver.step()) for _ in range(3)]
    for i, earlier in enumerate(arrays):
        for later in arrays[i + 1 :]:
            assert not any(np.shares_memory(a, b) for a in earlier for b in later)


def test_the_oracle_returns_memory_of_its_own(kind: Kind) -> None:
    """Writing into its arrays changes no state."""
    driver = Driver(kind, "vector")
    env = driver.env.unwrapped
    hidden, state = env.oracle(), env.get_state()
    for array in hidden.values():
        assert not np.shares_memory(array, env.lanes.records)
        array[...] = 1
    assert_same(env.get_state(), state)


def test_spaces_are_the_same_objects_at_every_call(kind: Kind) -> None:
    env = parallel(kind)
    for name in env.possible_agents:
        assert env.observation_space(name) is env.observation_space(name)
        assert env.action_space(name) is env.action_space(name)
    other = env.possible_agents[-1]
    assert len(env.possible_agents) == 1 or env.action_space("agent_0") is not env.action_space(other)


def test_the_bounds_of_observations_are_finite(kind: Kind) -> None:
    space = single(kind).observation_space
    assert np.isfinite(space.low).all() and np.isfinite(space.high).all()


# --------------------------------------------------------------------------------------------- the ends of episodes


def test_an_episode_terminates_or_is_truncated_at_the_horizon(kind: Kind) -> None:
    time = 0
    for played in play_single(single(kind), seed=3, steps=3 * HORIZON)[1:]:
        if len(played) == 2:
            time = 0
            continue
        time += 1
        _, reward, terminated, truncated, _ = played
        assert type(reward) is float and type(terminated) is bool and type(truncated) is bool
        assert truncated == (time == HORIZON and not terminated)
        assert time <= HORIZON


def test_a_step_before_the_reset_or_after_the_end_is_refused(kind: Kind) -> None:
    env = single(kind).unwrapped
    action = joint_actions(kind, 1)[0, 0].reshape(env.action_space.shape)
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        env.step(action)
    env.reset(seed=3)
    while not any(env.step(action)[2:4]):
        pass
    before = env.get_state()
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        env.step(action)
    assert_same(env.get_state(), before)
    env.reset()
    env.step(action)


def test_a_step_of_agents_before_the_reset_or_after_the_end_is_refused(kind: Kind) -> None:
    env = parallel(kind)
    joint = joint_actions(kind, 1)[0, 0]
    actions = dict(zip(env.possible_agents, joint, strict=True))
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        env.step(actions)
    with pytest.raises(gym.error.ResetNeeded, match="state must follow a reset"):
        env.state()
    env.reset(seed=3)
    for _ in range(HORIZON):
        *_, ends, cuts, _ = env.step(of_living(env, joint))
        if all(end or cut for end, cut in zip(ends.values(), cuts.values(), strict=True)):
            break
    assert env.agents == []
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        env.step(actions)


def test_a_step_of_a_batch_before_the_reset_or_after_an_end_is_refused(kind: Kind) -> None:
    env = vector(kind, autoreset_mode=AutoresetMode.DISABLED)
    joint = joint_actions(kind, 1, lanes=3)[0].reshape(env.action_space.shape)
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        env.step(joint)
    env.reset(seed=3)
    env.step(joint)
    env.reset(options={"reset_mask": np.array([True, False, True])})
    over = np.zeros(3, bool)
    while not over.any():
        over = np.logical_or(*env.step(joint)[2:4])
    before = env.get_state()
    ended = ", ".join(map(str, np.flatnonzero(over)))
    with pytest.raises(gym.error.ResetNeeded, match=rf"lanes \[{ended}\] are"):
        env.step(joint)
    assert_same(env.get_state(), before)
    env.reset(options={"reset_mask": over})
    env.step(joint)


# ---------------------------------------------------------------------------------------------------- bad input


def spoilt_actions(space: gym.Space[Any], good: NDArray[Any]) -> list[tuple[Any, str]]:
    """Return actions that do not lie in the space, each with what the error says."""
    first = (0,) * good.ndim
    spoilt: list[tuple[Any, str]] = [
        (np.concatenate([good, good]) if good.ndim else np.array([good, good]), "action must have shape"),
        (None, "action must have shape" if good.ndim else "action must hold"),
        ("up", "action must have shape" if good.ndim else "action must hold"),
    ]
    if np.issubdtype(good.dtype, np.integer):
        for value in (good.max() + 1000, -1, np.iinfo(np.int64).max):
            changed = np.array(good, np.int64)
            changed[first] = value
            spoilt.append((changed, f"action must be between .* got {value}"))
        spoilt.append((good.astype(float), "action must hold integers, got float64"))
        spoilt.append((good.astype(bool), "action must hold integers, got bool"))
        spoilt.append((good.astype("m8[s]"), r"action must hold integers, got timedelta64\[s\]"))
    else:
        for odd in (math.nan, math.inf, -1e6):
            changed = np.array(good)
            changed.flat[-1] = odd
            spoilt.append((changed, f"action must be between .* got {changed.flat[-1]}"))
        spoilt.append((good.astype(complex), "action must hold real numbers, got complex128"))
    return spoilt


@pytest.mark.parametrize("control", ["joint", "focal"])
def test_an_action_outside_the_space_is_refused_and_changes_nothing(kind: Kind, control: str) -> None:
    env, untouched = (single(kind, control=control).unwrapped for _ in range(2))
    for one in (env, untouched):
        one.reset(seed=3)
    env.action_space.seed(0)
    good = np.asarray(env.action_space.sample())
    env.report_action_probs(
        np.full(schema(env.fair_spec)["fair_action_probs"][1], 1 / schema(env.fair_spec)["fair_action_probs"][1][-1])
    )
    untouched.report_action_probs(
        np.full(schema(env.fair_spec)["fair_action_probs"][1], 1 / schema(env.fair_spec)["fair_action_probs"][1][-1])
    )
    for bad, message in spoilt_actions(env.action_space, good):
        with pytest.raises(ValueError, match=message):
            env.step(bad)
    assert_same(env.step(good), untouched.step(good))


def test_a_batch_refuses_actions_outside_the_space_and_changes_nothing(kind: Kind) -> None:
    env, untouched = vector(kind), vector(kind)
    for one in (env, untouched):
        one.reset(seed=3)
    env.action_space.seed(0)
    good = np.asarray(env.action_space.sample())
    for bad, message in spoilt_actions(env.action_space, good):
        with pytest.raises(ValueError, match=message):
            env.step(bad)
    with pytest.raises(ValueError, match="action must"):
        env.step([[0], [0, 1], [0]])
    assert_same(env.step(good), untouched.step(good))


def test_agents_actions_outside_their_spaces_are_refused_and_change_nothing(kind: Kind) -> None:
    env, untouched = parallel(kind), parallel(kind)
    for one in (env, untouched):
        one.reset(seed=3)
    good = dict(zip(env.possible_agents, joint_actions(kind, 1)[0, 0], strict=True))
    last = env.possible_agents[-1]
    missing = {name: action for name, action in good.items() if name != last}
    for bad, message in [
        (missing, f"actions must have one entry for each living agent; missing or unknown: .*{last}"),
        ({**good, "agent_99999": good[last]}, "actions must have one entry .*agent_99999"),
        ({**good, last: np.array([0, 1, 2])}, "action must"),
        ({**good, last: 2.5}, "action must"),
        ({**good, last: None}, "action must"),
        ({**good, last: 10**6}, "action must"),
        ({**good, last: -1}, "action must"),
        (list(good.values()), "actions must"),
        (None, "actions must"),
    ]:
        with pytest.raises(ValueError, match=message):
            env.step(bad)
    assert_same(env.step(good), untouched.step(good))


@pytest.mark.parametrize("make", [single, vector, parallel, turns])
def test_bad_keywords_are_refused_by_name(kind: Kind, make: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'frobnicate'.*horizon"):
        make(kind, frobnicate=1)
    for value in (0, -3, 2.5, "ten", None):
        with pytest.raises(ValueError, match=r"horizon must be .* got"):
            make(kind, horizon=value)
    with pytest.raises(
        ValueError, match=r"variant must be (one of '.*' or None|None, \w+ has no variants), got 'bare'"
    ):
        make(kind, variant="bare")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium warns before it asks us
        with pytest.raises(ValueError, match=r"render_mode must be .* got 'ascii'"):
            make(kind, render_mode="ascii")


def test_bad_seeds_are_refused_and_change_nothing(kind: Kind) -> None:
    faces: list[Any] = [single(kind).unwrapped, vector(kind), parallel(kind)]
    for env in faces:
        env.reset(seed=3)
        before = env.get_state()
        for seed in (-1, 2**63, 1.5, "3"):
            with pytest.raises((ValueError, gym.error.Error), match=r"[sS]eed"):
                env.reset(seed=seed)
        assert_same(env.get_state(), before)


def test_a_reset_that_is_refused_changes_nothing(kind: Kind) -> None:
    """Seeds, options and masks are judged before the first of them counts; names of options are wrappers' own."""
    one, batch, many, asked = single(kind).unwrapped, vector(kind), parallel(kind), turns(kind)
    for env in (one, batch, many, asked):
        env.reset(seed=3, options={"of a wrapper": 1})
        before, chance = env.unwrapped.get_state(), copy.deepcopy(one.np_random.bit_generator.state)
        for options in (5, [("reset_mask", 1)], "mask"):
            with pytest.raises(ValueError, match="options must be a dictionary or None, got"):
                env.reset(seed=4, options=options)
        for seed in (-1, 2**63, 1.5, "3", True, [3], [3, 4, None, 5]):
            with pytest.raises(ValueError, match="seed must be"):
                env.reset(seed=seed)
        assert_same(env.unwrapped.get_state(), before)
        assert one.np_random.bit_generator.state == chance
        env.reset(seed=np.int64(3))
        assert_same(env.unwrapped.get_state(), before)
    before = batch.unwrapped.get_state()
    for mask in (np.ones(2, bool), np.ones(3), [True] * 3, np.zeros(3, bool)):
        with pytest.raises(ValueError, match="reset_mask must be"):
            batch.reset(seed=4, options={"reset_mask": mask})
    assert_same(batch.unwrapped.get_state(), before)


def test_nothing_is_played_after_a_close_which_can_be_repeated(kind: Kind) -> None:
    closed = pytest.raises(gym.error.ClosedEnvironmentError, match="step must come before close: make a new environ")
    anew = pytest.raises(gym.error.ClosedEnvironmentError, match="reset must come before close: make a new environ")
    joint = joint_actions(kind, 1, lanes=3)[0]
    one, batch, many, asked = single(kind).unwrapped, vector(kind), parallel(kind), turns(kind)
    actions = {
        one: joint[0].reshape(one.action_space.shape),
        batch: joint.reshape(batch.action_space.shape),
        many: dict(zip(many.possible_agents, joint[0], strict=True)),
        asked: joint[0, 0],
    }
    for of in ("agents", "lanes") if HAS_SB3 else ():
        table = rows(kind, of)
        actions[table] = joint.reshape(-1, *(table.action_space.shape or ()))
    for env, action in actions.items():
        env.reset()
        before = env.unwrapped.get_state()
        env.close()
        env.close()
        with closed:
            env.step(action)
        with anew:
            env.reset()
        assert_same(env.unwrapped.get_state(), before)


@sb3
@pytest.mark.parametrize("of", ["agents", "lanes"])
def test_rows_play_no_action_that_was_refused_or_taken_before_a_reset(kind: Kind, of: str) -> None:
    table, untouched = rows(kind, of), rows(kind, of)
    good = joint_actions(kind, 1, lanes=3)[0].reshape(-1, *(table.action_space.shape or ()))
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        table.step(good)
    table.reset(), untouched.reset()
    with pytest.raises(ValueError, match="action must"):
        table.step(good[:-1])
    with pytest.raises(RuntimeError, match="step_wait must follow step_async"):
        table.step_wait()
    table.step_async(good)
    table.seed(5)
    table.reset()
    with pytest.raises(RuntimeError, match="step_wait must follow step_async"):
        table.step_wait()
    assert_same(table.step(good), untouched.step(good))


@pytest.mark.parametrize("count", [0, -1, 1.5, "two"])
def test_a_batch_of_no_lanes_is_refused_by_name(kind: Kind, count: Any) -> None:
    with pytest.raises(ValueError, match=f"num_envs must be an integer of at least 1, got {count!r}"):
        kind.module.Vector(num_envs=count, **kind.parameters)
    if HAS_SB3:
        with pytest.raises(ValueError, match=f"n_envs must be an integer of at least 1, got {count!r}"):
            make_sb3(kind.env_id, n_envs=count, **kind.parameters)


# ------------------------------------------------------------------------------------------- wrappers, rendering


def test_gymnasiums_statistics_of_episodes(kind: Kind) -> None:
    played = play_single(gym.wrappers.RecordEpisodeStatistics(single(kind)), seed=3, steps=HORIZON)
    ends = next(i for i, step in enumerate(played) if len(step) == 5 and (step[2] or step[3]))
    total = sum(step[1] for step in played[1 : ends + 1])
    episode = played[ends][4]["episode"]
    assert episode["r"] == pytest.approx(total) and episode["l"] == ends
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        batch = gym.wrappers.vector.RecordEpisodeStatistics(vector(kind, autoreset_mode=mode))
        batch.reset(seed=3)
        ended, time = np.zeros(3, bool), 0
        while not ended.any():
            joint = joint_actions(kind, 1, lanes=3, seed=time)[0]
            _, _, terminated, truncated, info = batch.step(joint.reshape(batch.action_space.shape))
            ended, time = terminated | truncated, time + 1
        where = info if "episode" in info else info["final_info"]
        assert where["episode"]["l"].tolist() == np.where(ended, time, 0).tolist()


def test_every_mode_draws_what_it_should_and_changes_nothing(kind: Kind) -> None:
    need_pictures(kind)
    for mode in RENDER_MODES:
        for make in (single, parallel):
            env = make(kind, render_mode=mode)
            env.reset(seed=3)
            before = env.unwrapped.get_state()
            first, second = env.render(), env.render()
            assert_same(env.unwrapped.get_state(), before)
            if mode == "human":
                assert first is None
            elif mode == "ansi":
                assert isinstance(first, str) and first == second and first.strip()
            else:
                assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3
                assert_same(first, second)
                assert not np.shares_memory(first, second)
            env.close()
            env.close()
    assert single(kind).unwrapped.metadata["render_modes"] == RENDER_MODES


def test_a_batch_draws_each_lane(kind: Kind) -> None:
    need_pictures(kind)
    batch = vector(kind, render_mode="rgb_array")
    batch.reset(seed=3)
    frames = batch.render()
    assert isinstance(frames, tuple) and len(frames) == 3
    env = single(kind, render_mode="rgb_array")
    env.reset(seed=4)
    assert_same(frames[1], env.render())
    batch.close()
    with pytest.raises(ValueError, match=r"render_mode must be 'rgb_array', 'ansi' or None for a batch, got 'human'"):
        kind.module.Vector(render_mode="human", **kind.parameters)


def test_a_window_shows_the_start_too(kind: Kind) -> None:
    need_pictures(kind)
    env = single(kind, render_mode="human").unwrapped
    shown = []
    env._picture.draw = lambda lane=0: shown.append(int(env.lanes.records["time"][0]))
    play_single(env, seed=3, steps=2)
    assert shown == [0, 1, 2]
