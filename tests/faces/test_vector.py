"""The vectorised Gymnasium face beyond its equality with Gymnasium's own, which is in the contract."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import fair_envs.envs.harvest as harvest
from fair_envs.envs.harvest.rules import USE
from tests.helpers import assert_same

HORIZON = 4
ODD_REWARDS: dict[str, Any] = {"skilled_fraction": 0.5, "skill_reward": 0.1, "ripen_other": 1 / 3}


def batch(**keywords: Any) -> harvest.Vector:
    return harvest.Vector(**{"num_envs": 3, "horizon": HORIZON, **keywords})


def gymnasiums_own(*, autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP, **keywords: Any) -> Any:
    """Return Gymnasium's batch of single environments."""
    return SyncVectorEnv([lambda: harvest.Env(horizon=HORIZON, **keywords)] * 3, autoreset_mode=autoreset_mode)


def test_the_mean_reward_is_rounded_as_gymnasiums_own_is() -> None:
    ours, theirs = batch(**ODD_REWARDS), gymnasiums_own(**ODD_REWARDS)
    luck = np.random.default_rng(0)
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    for _ in range(3 * HORIZON):
        action = luck.integers(5, 8, (3, 40))
        assert_same(ours.step(action), theirs.step(action))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled", *AutoresetMode])
def test_the_mode_is_a_member_or_its_value(mode: Any) -> None:
    env = batch(autoreset_mode=mode)
    assert env.autoreset_mode is env.metadata["autoreset_mode"] is AutoresetMode(mode)


def test_an_unknown_mode_is_refused() -> None:
    message = "autoreset_mode must be one of 'NextStep', 'SameStep', 'Disabled', got 'Sometimes'"
    with pytest.raises(ValueError, match=message):
        batch(autoreset_mode="Sometimes")


def test_a_list_of_seeds_gives_each_lane_its_own() -> None:
    env, other = batch(), batch()
    seen, _ = env.reset(seed=[7, 3, 7])
    assert_same(seen[0], seen[2])
    assert_same(seen[1], other.reset(seed=2)[0][1])


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_lane_given_no_seed_goes_on_with_its_own(mode: AutoresetMode) -> None:
    ours, theirs = batch(autoreset_mode=mode), gymnasiums_own(autoreset_mode=mode)
    for env in (ours, theirs):
        env.reset(seed=4)
    assert_same(ours.reset(seed=[None, 9, None])[0], theirs.reset(seed=[None, 9, None])[0])


def test_lanes_given_no_seed_at_first_meet_luck_of_their_own() -> None:
    env = batch()
    seen, _ = env.reset(seed=[None, 9, None])
    assert_same(seen[1], batch().reset(seed=9)[0][0])
    assert (seen[0] != seen[2]).any()


@pytest.mark.parametrize(
    "mask",
    [np.ones(2, bool), np.ones((3, 1), bool), np.ones(3, int), [True, True, True], None, "all", np.zeros(3, bool)],
)
def test_a_bad_mask_is_refused_and_changes_nothing(mask: Any) -> None:
    env = batch(autoreset_mode="Disabled")
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match="reset_mask must be"):
        env.reset(seed=9, options={"reset_mask": mask})
    assert_same(env.get_state(), before)


def test_a_bad_seed_of_a_masked_reset_changes_nothing() -> None:
    env = batch(autoreset_mode="Disabled")
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match="seed must be"):
        env.reset(seed=[1, 2], options={"reset_mask": np.array([True, False, False])})
    assert_same(env.get_state(), before)


def test_options_are_a_dictionary() -> None:
    with pytest.raises(ValueError, match="options must be a dictionary or None, got 3"):
        batch().reset(options=3)  # type: ignore[arg-type]


def test_the_first_reset_is_of_all_lanes() -> None:
    with pytest.raises(ValueError, match="reset_mask must be all True at the first reset"):
        batch(autoreset_mode="Disabled").reset(options={"reset_mask": np.array([True, False, True])})


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_a_masked_reset_of_some_ended_lanes_leaves_the_others_ended(mode: str) -> None:
    ours, theirs = batch(autoreset_mode=mode), gymnasiums_own(autoreset_mode=AutoresetMode(mode))
    for env in (ours, theirs):
        env.reset(seed=0)
        for _ in range(HORIZON):
            env.step(np.full((3, 40), USE))
        env.reset(options={"reset_mask": np.array([False, True, False])})
    if mode == "NextStep":
        assert_same(ours.step(np.full((3, 40), USE)), theirs.step(np.full((3, 40), USE)))
        assert ours.get_state()["time"].tolist() == [0, 1, 0]
    else:
        with pytest.raises(gym.error.ResetNeeded, match=r"lanes \[0, 2\] are"):
            ours.step(np.full((3, 40), USE))


def test_a_reset_forgets_the_probabilities_that_were_reported() -> None:
    env = batch()
    env.reset(seed=0)
    env.report_action_probs(np.full((3, 40, 8), 1 / 8))
    assert not env.reset()[1]["fair_action_probs"].any()
    assert not env.step(np.full((3, 40), USE))[4]["fair_action_probs"].any()


def test_options_stay_as_they_came() -> None:
    env = batch(autoreset_mode="Disabled")
    env.reset(seed=0)
    options = {"reset_mask": np.array([True, False, True])}
    env.reset(options=options)
    assert options["reset_mask"].tolist() == [True, False, True]


def test_a_masked_reset_leaves_the_other_lanes_alone() -> None:
    env = batch(autoreset_mode="Disabled")
    env.reset(seed=0)
    seen = env.step(np.full((3, 40), USE))[0]
    before = env.get_state()
    again, info = env.reset(seed=20, options={"reset_mask": np.array([False, True, False])})
    assert_same(again[[0, 2]], seen[[0, 2]])
    assert_same(env.get_state()[[0, 2]], before[[0, 2]])
    assert env.get_state()["seed"].tolist() == [0, 21, 2]
    assert info["_fair_group"].tolist() == [False, True, False]
    assert not info["fair_group"][[0, 2]].any()


def test_the_last_observation_of_an_episode_is_in_final_obs() -> None:
    same, none = batch(autoreset_mode="SameStep"), batch(autoreset_mode="Disabled")
    for env in (same, none):
        env.reset(seed=0)
    for time in range(HORIZON):
        ended, going = same.step(np.full((3, 40), USE)), none.step(np.full((3, 40), USE))
        assert ("final_obs" in ended[4]) == (time == HORIZON - 1)
    assert_same(np.stack(ended[4]["final_obs"].tolist()), going[0])
    assert_same(ended[4]["final_info"]["fair_outcome"], going[4]["fair_outcome"])
    assert ended[4]["fair_decided"].tolist() == [0, 0, 0]
    assert ended[4]["final_info"]["fair_decided"].tolist() == [1, 1, 1]


def test_a_dead_step_is_marked_as_no_decision() -> None:
    env = batch()
    env.reset(seed=0)
    decided = [env.step(np.full((3, 40), USE))[4]["fair_decided"].tolist() for _ in range(2 * HORIZON + 2)]
    assert decided == ([[1] * 3] * HORIZON + [[0] * 3]) * 2


def test_a_batch_goes_on_from_a_state_as_it_did() -> None:
    for mode in ("NextStep", "SameStep"):
        env, other = batch(autoreset_mode=mode), batch(autoreset_mode=mode)
        env.reset(seed=0)
        for _ in range(HORIZON):  # the state is that of ended lanes under NextStep
            env.step(np.full((3, 40), USE))
        other.set_state(env.get_state())
        assert_same(other.step(np.full((3, 40), USE)), env.step(np.full((3, 40), USE)))


def test_attributes_and_methods_are_of_the_batch() -> None:
    env = batch()
    assert env.get_attr("num_envs") == (3, 3, 3)
    assert env.call("fair_spec") == (env.fair_spec,) * 3
    env.reset(seed=0)
    assert len(env.call("get_state")) == 3


def test_gymnasiums_wrappers_of_batches_work() -> None:
    env: Any = gym.make_vec("FairHarvest-v0", num_envs=3, horizon=HORIZON)
    for wrap in (gym.wrappers.vector.NormalizeObservation, gym.wrappers.vector.NormalizeReward):
        env = wrap(env)
    env = gym.wrappers.vector.DictInfoToList(env)
    env.reset(seed=0)
    infos = env.step(np.full((3, 40), USE))[4]
    assert len(infos) == 3 and infos[0]["fair_group"].shape == (40,)


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_a_batch_needs_a_thread(threads: Any) -> None:
    with pytest.raises(ValueError, match=f"threads must be an integer of at least 1, got {threads}"):
        batch(threads=threads)


def test_probabilities_are_one_row_for_each_agent_of_each_lane() -> None:
    env = batch()
    env.reset(seed=0)
    env.report_action_probs(np.full((3, 40, 8), 1 / 8))
    assert (env.step(np.full((3, 40), USE))[4]["fair_action_probs"] == np.float32(1 / 8)).all()
    for shape in ((40, 8), (3, 40, 9), (3, 8)):
        with pytest.raises(ValueError, match=r"action_probs must have shape \(3, 40, 8\), got"):
            env.report_action_probs(np.full(shape, 1 / shape[-1]))


# ------------------------------------------------------------------------------------------------- held lanes


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_held_lane_shows_what_it_showed_and_the_others_play_as_without_it(mode: str) -> None:
    held, free = batch(autoreset_mode=mode), batch(autoreset_mode=mode)
    seen, _ = held.reset(seed=0)
    free.reset(seed=0)
    mask, actions = np.array([False, True, False]), np.full((3, 40), USE)
    for _ in range(HORIZON - 1):
        held.hold(mask)
        shown, reward, terminated, truncated, info = held.step(actions)
        expected = free.step(actions)
        assert_same(shown[1], seen[1])
        assert_same(shown[~mask], expected[0][~mask])
        assert_same(reward[~mask], expected[1][~mask])
        assert reward[1] == 0 and not terminated[1] and not truncated[1]
        assert info["fair_decided"].tolist() == [1, 0, 1]
    assert held.get_state()["time"].tolist() == [HORIZON - 1, 0, HORIZON - 1]


def test_a_lane_is_held_for_one_step() -> None:
    env = batch()
    env.reset(seed=0)
    env.hold(np.array([True, False, False]))
    for _ in range(2):
        env.step(np.full((3, 40), USE))
    assert env.get_state()["time"].tolist() == [1, 2, 2]


def test_a_held_lane_that_is_over_stays_over() -> None:
    env = batch()
    env.reset(seed=0)
    for _ in range(HORIZON):
        env.step(np.full((3, 40), USE))
    env.hold(np.array([True, False, False]))
    env.step(np.full((3, 40), USE))
    assert env.get_state()["time"].tolist() == [HORIZON, 0, 0]
    env.step(np.full((3, 40), USE))
    assert env.get_state()["time"].tolist() == [0, 1, 1]


@pytest.mark.parametrize("mask", [np.ones(2, bool), np.ones(3, int), [True, False, False], None])
def test_only_a_mask_of_all_lanes_holds(mask: Any) -> None:
    env = batch()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="mask must be a bool array of shape"):
        env.hold(mask)
