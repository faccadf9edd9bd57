"""The Stable-Baselines3 face: lanes as rows, or agents as rows."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs the extra 'baselines'")

from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecCheckNan, VecMonitor, VecNormalize

import fair_envs
import fair_envs.envs.harvest as harvest
from fair_envs.envs.harvest.rules import USE
from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv
from fair_envs.support.aliases import Ints
from fair_envs.wrappers import DelayedFeedback, FairnessPenalty
from tests.helpers import assert_same
from tests.toys import Countdown

HORIZON, LANES = 4, 3
ROWS = pytest.mark.parametrize("rows", ["agents", "lanes"])


def table(rows: str = "agents", **keywords: Any) -> Any:
    given = {"n_envs": LANES, "rows": rows, "seed": 0, "horizon": HORIZON, **keywords}
    return fair_envs.make_sb3("FairHarvest-v0", **given)


def using(env: Any) -> Ints:
    """Return the action USE for every row."""
    return np.full((env.num_envs, *env.action_space.shape), USE)


# ------------------------------------------------------------------------------------------------ what rows are


def test_a_row_is_an_agent_of_a_lane() -> None:
    env = table()
    batch = harvest.Vector(LANES, horizon=HORIZON)
    assert env.num_envs == 120
    assert env.observation_space.shape == (10,) and env.action_space == gym.spaces.Discrete(8)
    assert_same(env.reset().reshape(3, 400), batch.reset(seed=0)[0])
    seen, reward, _, _ = env.step(using(env))
    other = batch.step(np.full((3, 40), USE))
    assert_same(seen[40:80].reshape(-1), other[0][1])
    assert_same(reward.reshape(3, 40), other[4]["agent_reward"].astype(np.float32))
    assert_same(env.agent_reward, other[4]["agent_reward"])


def test_a_row_is_a_lane_whose_controller_plays_all_agents() -> None:
    env = table("lanes")
    assert env.num_envs == 3
    assert env.observation_space.shape == (400,) and env.action_space == gym.spaces.MultiDiscrete([8] * 40)
    env.reset()
    reward = env.step(using(env))[1]
    assert_same(reward, env.agent_reward.mean(axis=1).astype(np.float32))


@ROWS
def test_the_ends_of_episodes_are_in_the_infos(rows: str) -> None:
    env, single = table(rows), harvest.Vector(LANES, horizon=HORIZON, autoreset_mode="Disabled")
    env.reset()
    single.reset(seed=0)
    for time in range(2 * HORIZON):
        seen, _, done, infos = env.step(using(env))
        last = single.step(np.full((3, 40), USE))[0]
        over = time % HORIZON == HORIZON - 1
        assert done.dtype == bool and set(done.tolist()) == {over}
        if not over:
            assert infos == [{}] * env.num_envs
            continue
        assert all(info["TimeLimit.truncated"] is True for info in infos)
        assert_same(np.stack([info["terminal_observation"] for info in infos]).reshape(3, 400), last)
        assert_same(seen.reshape(3, 400), single.reset()[0])


@ROWS
def test_returns_and_lengths_of_episodes_are_logged(rows: str) -> None:
    env = table(rows, n_envs=2, reward_scale=0.1)
    watched = VecMonitor(table(rows, n_envs=2))
    env.reset(), watched.reset()
    for time in range(HORIZON + 2):
        if time == 2:  # a reset within an episode starts the count again
            env.reset(), watched.reset()
        ends, others = (world.step(using(env))[3] for world in (env, watched))
    assert [info["episode"]["l"] for info in ends] == [HORIZON] * env.num_envs
    assert [info["episode"]["r"] for info in ends] == pytest.approx([info["episode"]["r"] for info in others])
    assert any(info["episode"]["r"] for info in ends)
    model = PPO("MlpPolicy", table(rows, n_envs=2), n_steps=HORIZON, batch_size=8, n_epochs=1, device="cpu")
    model.learn(HORIZON * env.num_envs)
    assert len(model.ep_info_buffer or ()) > 0


def test_infos_of_ends_have_no_episode() -> None:
    env = table(infos="ends", horizon=1)
    env.reset()
    assert {*env.step(using(env))[3][0]} == {"terminal_observation", "TimeLimit.truncated"}


def test_infos_of_agents_are_those_of_pettingzoo() -> None:
    env = table(infos="record", n_envs=2)
    other = harvest.parallel_env(horizon=HORIZON)
    env.reset()
    expected: Any = other.reset(seed=1)[1]
    assert_same(env.reset_infos[40:], list(expected.values()))
    for time in range(HORIZON):
        infos = env.step(using(env))[3]
        expected = other.step(dict.fromkeys(other.agents, USE))[4]
        own = [{key: value for key, value in info.items() if key.startswith("fair_")} for info in infos[40:]]
        assert_same(own, list(expected.values()))
        assert all(("episode" in info) == (time == HORIZON - 1) for info in infos)


@pytest.mark.parametrize("env_id", ["FairEpidemic-v0", "FairHiring-v0", "FairTraffic-v0"])
def test_infos_of_lanes_are_those_of_gymnasium(env_id: str) -> None:
    env: Any = fair_envs.make_sb3(env_id, n_envs=2, rows="lanes", seed=0, infos="record")
    other = gym.make(env_id)
    env.reset()
    other.reset(seed=1)
    actions = np.stack([env.action_space.sample()] * 2)
    assert_same(env.step(actions)[3][1], other.step(actions[1])[4])


@pytest.mark.parametrize("rows", ["agents", "lanes"])
def test_infos_have_the_record_as_wrappers_changed_it(rows: Any) -> None:
    given: dict[str, Any] = {"feedback": "full", "horizon": 9}
    env: Any = DelayedFeedback(
        fair_envs.make_sb3("FairHiring-v0", n_envs=2, rows=rows, infos="record", seed=0, **given), delay=3
    )
    single: Any = DelayedFeedback(gym.make("FairHiring-v0", **given), delay=3)
    env.reset(), single.reset(seed=1)
    for time in range(8):
        action = time % 2
        info, other = env.step(np.full(2, action))[3][1], single.step(action)[4]
        assert_same({name: info[name] for name in other}, other)
        assert info["fair_feedback"] == -1


def test_infos_have_what_wrappers_added() -> None:
    given: dict[str, Any] = {"horizon": HORIZON}
    env: Any = FairnessPenalty(
        fair_envs.make_sb3("FairHarvest-v0", n_envs=2, rows="lanes", infos="record", seed=0, **given), alpha=5
    )
    single: Any = FairnessPenalty(gym.make("FairHarvest-v0", **given), alpha=5)
    env.reset(), single.reset(seed=1)
    for _ in range(HORIZON - 1):
        _, reward, _, infos = env.step(using(env))
        other = single.step(np.full(40, USE))
        assert_same({name: infos[1][name] for name in other[4]}, other[4])
        assert reward[1] == np.float32(other[1])


def test_penalties_of_scaled_rewards_of_lanes_are_scaled() -> None:
    plain, scaled = (FairnessPenalty(table("lanes", reward_scale=scale), alpha=5) for scale in (1.0, 0.1))
    plain.reset(), scaled.reset()
    for _ in range(2):
        one, other = plain.step(using(plain))[1], scaled.step(using(scaled))[1]
    assert one.any() and other == pytest.approx(0.1 * one)


def test_a_decision_maker_in_rows_of_agents_has_one_info() -> None:
    env: Any = fair_envs.make_sb3("FairEpidemic-v0", n_envs=2, seed=0, infos="record")
    env.reset()
    assert len(env.reset_infos) == 2 and env.reset_infos[0]["fair_sensitive"].shape == (34, 1)


@pytest.mark.parametrize("face", [LanesVecEnv, AgentsVecEnv])
def test_an_episode_that_terminates_is_not_truncated(face: type[LanesVecEnv]) -> None:
    env = face(Countdown(horizon=2), 3)  # the lanes would terminate after 1, 2 and 3 steps
    env.seed(0)
    env.reset()
    own = env.num_envs // 3
    ends: list[list[bool | None]] = [[False, None, None], [False, False, True]]
    for lanes in ends:
        infos = env.step(np.zeros((env.num_envs, *(env.action_space.shape or ())), np.int64))[3]
        assert [info.get("TimeLimit.truncated") for info in infos] == [end for end in lanes for _ in range(own)]


@ROWS
def test_the_rows_of_a_lane_that_ends_earlier_end_alone(rows: str) -> None:
    env = table(rows)
    env.reset()
    env.lanes.records["time"][1] = HORIZON - 1
    done, infos = env.step(using(env))[2:]
    own = env.num_envs // LANES
    assert done.tolist() == [False] * own + [True] * own + [False] * own
    assert [bool(info) for info in infos] == done.tolist()
    assert env.lanes.records["time"].tolist() == [1, 0, 1]


@ROWS
def test_no_decision_is_lost_at_the_end_of_an_episode(rows: str) -> None:
    env = table(rows)
    env.reset()
    assert env.interactions["decided"].tolist() == [0, 0, 0]
    decided = 0
    for _ in range(3 * HORIZON):
        env.step(using(env))
        decided += int(env.interactions["decided"].sum())
    assert decided == 3 * LANES * HORIZON


@ROWS
def test_a_seed_holds_for_the_next_reset_and_the_ones_after_go_on(rows: str) -> None:
    env, other = table(rows, seed=None), table(rows)
    own = env.num_envs // LANES
    assert list(env.seed(0)) == [lane for lane in (0, 1, 2) for _ in range(own)]
    first = [env.reset().copy() for _ in range(3)]
    assert_same([other.reset() for _ in range(3)], first)
    assert (first[0] != first[1]).any()
    env.seed(0)
    assert_same(env.reset(), first[0])


def test_without_a_seed_rows_meet_different_luck() -> None:
    assert (table(seed=None).reset() != table(seed=None).reset()).any()


def test_probabilities_reported_before_a_reset_are_of_no_step_after_it() -> None:
    env: Any = fair_envs.make_sb3("FairHiring-v0", n_envs=2, rows="lanes", seed=0)
    env.reset()
    env.report_action_probs([[0.25, 0.75]] * 2)
    env.step(using(env) * 0)
    assert env.action_probs.tolist() == [[[0.25, 0.75]]] * 2
    env.report_action_probs([[0.5, 0.5]] * 2)
    env.reset()
    assert env.action_probs is None  # a reset decides nothing
    env.step(using(env) * 0)
    assert env.action_probs is None  # and what was reported was of a step that has not been taken


# ------------------------------------------------------------------------------------------- groups and scales


def test_the_group_can_be_appended_to_observations() -> None:
    plain, grouped = table(), table(append_group=True)
    assert grouped.observation_space.shape == (11,)
    assert grouped.observation_space.dtype == np.float32
    assert (grouped.observation_space.low[-1], grouped.observation_space.high[-1]) == (0, 1)
    pairs = [(plain.reset(), grouped.reset())]
    for _ in range(HORIZON):
        one, other = plain.step(using(plain)), grouped.step(using(grouped))
        pairs.append((one[0], other[0]))
    pairs.append(tuple(np.stack([info["terminal_observation"] for info in step[3]]) for step in (one, other)))  # type: ignore[arg-type]
    for seen, more in pairs:
        assert_same(more[:, :10], np.ascontiguousarray(seen))
        assert more[:, 10].tolist() == grouped.interactions["group"].ravel().tolist()
        assert grouped.observation_space.contains(more[0])
    assert set(more[:, 10].tolist()) == {0, 1}


def test_rewards_can_be_scaled_for_the_learner() -> None:
    env = table(reward_scale=0.1)
    env.reset()
    reward = env.step(using(env))[1]
    assert reward.dtype == np.float32 and reward.max() == np.float32(0.3)
    assert env.agent_reward.max() == 3


def test_worlds_stand_one_after_another_and_meet_the_same_luck() -> None:
    env = table(worlds=[{"sensitive_fraction": 0.0}, {"sensitive_fraction": 1.0}], append_group=True)
    assert env.num_envs == 240
    assert list(env.seed(7)) == [7 + lane for _ in range(2) for lane in range(LANES) for _ in range(40)]
    seen = env.reset().reshape(2, LANES, 40, 11)
    differ = np.flatnonzero((seen[0] != seen[1]).any(axis=(0, 1)))
    assert differ.tolist() == [2, 10]  # the attribute and the group
    for _ in range(HORIZON):
        seen, _, done, infos = env.step(using(env))
    assert done.all() and len(infos) == 240
    assert (seen.reshape(2, LANES, 40, 11)[0, ..., [0, 1]] == seen.reshape(2, LANES, 40, 11)[1, ..., [0, 1]]).all()


@pytest.mark.parametrize(
    ("other", "space"),
    [({"observation": "extended"}, "observation_space"), ({"separate_ripening": True}, "action_space")],
)
def test_worlds_have_the_same_spaces(other: dict[str, Any], space: str) -> None:
    with pytest.raises(ValueError, match=f"rules must have one {space} in all worlds"):
        table(worlds=[{}, other])


# ---------------------------------------------------------------------------------- Stable-Baselines3's own things


@ROWS
def test_monitor_counts_episodes_of_rows(rows: str) -> None:
    env = VecMonitor(table(rows))
    env.reset()
    earned = np.zeros(env.num_envs)
    for _ in range(HORIZON):
        _, reward, _, infos = env.step(using(env))
        earned += reward
    assert [info["episode"]["l"] for info in infos] == [HORIZON] * env.num_envs
    assert [info["episode"]["r"] for info in infos] == pytest.approx(earned.tolist(), abs=1e-5)


@ROWS
def test_normalisation_and_nan_checks_pass(rows: str) -> None:
    env = VecNormalize(VecCheckNan(table(rows), raise_exception=True))
    seen: Any = env.reset()
    for _ in range(2 * HORIZON):
        seen = env.step(using(env))[0]
    assert np.isfinite(seen).all() and np.abs(seen).max() <= 10


@ROWS
def test_ppo_learns_and_a_seed_repeats_it(rows: str, tmp_path: Path) -> None:
    weights = []
    for _ in range(2):
        env = VecMonitor(table(rows, n_envs=2, seed=None))
        model = PPO("MlpPolicy", env, n_steps=8, batch_size=env.num_envs * 4, n_epochs=1, seed=7, device="cpu")
        model.learn(2 * 8 * env.num_envs)
        weights.append({name: value.numpy() for name, value in model.policy.state_dict().items()})
        assert len(model.ep_info_buffer or ()) > 0
    assert_same(weights[0], weights[1])
    model.save(tmp_path / "model.zip")
    loaded = PPO.load(tmp_path / "model.zip", env=env)
    mean, _ = evaluate_policy(loaded, env, n_eval_episodes=2 * env.num_envs)
    assert np.isfinite(mean)


@ROWS
def test_attributes_and_methods_are_of_the_batch(rows: str) -> None:
    env = table(rows)
    assert env.get_attr("render_mode") == [None] * env.num_envs
    assert env.get_attr("params", indices=[0, 2]) == [env.params] * 2
    (told,) = env.env_method("seed", 4, indices=0)
    assert sorted(set(told)) == [4, 5, 6]
    assert env.env_is_wrapped(gym.Wrapper) == [False] * env.num_envs
    env.set_attr("added", {"x": 1})
    env.set_attr("added", {"x": 2}, indices=list(range(env.num_envs)))
    with pytest.raises(ValueError, match=rf"indices must be None or all {env.num_envs} rows, .*, got \[0\]"):
        env.set_attr("added", {}, indices=[0])
    assert env.get_attr("added")[0] == {"x": 2}
    env.close()


def test_options_are_dictionaries() -> None:
    env = table("lanes")
    options: Any
    for options in (None, {"of a wrapper": 1}, [{}] * env.num_envs):
        env.set_options(options)
        env.reset()
    for options in (5, [{}, 5, {}], "mask"):
        with pytest.raises(ValueError, match=r"options must be a dictionary or None, got"):
            env.set_options(options)
    with pytest.raises(ValueError, match="options must be one dictionary or one for each of 3 rows, got"):
        env.set_options([{}])


@ROWS
def test_every_lane_is_drawn(rows: str) -> None:
    pytest.importorskip("pygame", reason="drawing needs the extra 'render'")
    env = table(rows, render_mode="rgb_array")
    env.reset()
    images = env.get_images()
    assert len(images) == LANES and all(image.dtype == np.uint8 for image in images)
    assert env.render().ndim == 3  # all in one picture


# ---------------------------------------------------------------------------------------------------- bad input


@ROWS
def test_a_step_before_the_reset_is_refused(rows: str) -> None:
    env = table(rows)
    env.lanes.seed(0)
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        env.step(using(env))


@ROWS
def test_actions_are_played_once(rows: str) -> None:
    env = table(rows)
    env.reset()
    env.step(using(env))
    with pytest.raises(ValueError, match="action must be between 0 and 7, got 8"):
        env.step_async(np.full_like(using(env), 8))
    before = env.lanes.snapshot()
    with pytest.raises(RuntimeError, match="step_wait must follow step_async"):
        env.step_wait()
    assert_same(env.lanes.snapshot(), before)


@ROWS
def test_what_is_written_into_actions_after_they_were_given_does_not_count(rows: str) -> None:
    one, other = table(rows), table(rows)
    for env in (one, other):
        env.reset()
    actions = using(one)
    one.step_async(actions)
    actions[:] = 0
    assert_same(one.step_wait(), other.step(using(other)))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"rows": "people"}, "rows must be 'agents' or 'lanes', got 'people'"),
        ({"infos": "all"}, "infos must be one of 'ends', 'episode', 'record', got 'all'"),
        ({"n_envs": 0}, "n_envs must be an integer of at least 1, got 0"),
        ({"threads": 0}, "threads must be an integer of at least 1, got 0"),
        ({"render_mode": "human"}, "render_mode must be 'rgb_array' or None, got 'human'"),
        ({"rows": "lanes", "append_group": True}, "worlds, append and append_group need rows='agents'"),
        ({"rows": "lanes", "worlds": [{}]}, "worlds, append and append_group need rows='agents'"),
        ({"worlds": []}, "worlds must list the parameters of each world, got"),
        ({"worlds": {"sensitive_fraction": 0.0}}, "worlds must list the parameters of each world, got"),
        ({"worlds": ["a"]}, "worlds must list the parameters of each world, got"),
        ({"reward_scale": 0}, "reward_scale must be at least 1e-12, got 0"),
        ({"reward_scale": "x"}, "reward_scale must be a finite number at least 1e-12, got 'x'"),
        ({"seed": -1}, "seed must be between 0 and"),
        ({"seed": 1.5}, "seed must be an integer, got 1.5"),
        ({"agents": -1}, "agents must be between 1 and 10000, got -1"),
        ({"variant": "bare"}, "variant must be one of 'melting_pot' or None, got 'bare'"),
    ],
)
def test_bad_arguments_are_named(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table(**keywords)


def test_an_unknown_keyword_is_named() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'horizn'"):
        fair_envs.make_sb3("FairHarvest-v0", horizn=3)


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(ValueError, match=r"id must be one of .*, got 'FairHarvest-v9'"):
        fair_envs.make_sb3("FairHarvest-v9")
