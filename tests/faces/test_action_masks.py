"""Masks of actions: what is masked has no effect of its own, and MaskablePPO finds them on every interface."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.core import Lanes
from fair_envs.envs.epidemic import parallel_env as epidemic
from fair_envs.envs.harvest import env as turn_based
from fair_envs.envs.harvest import parallel_env as harvest
from fair_envs.registration import TABLE, make_rules
from fair_envs.wrappers import ReportActionMasks
from tests.helpers import LITTLE, assert_same

MASKED = {
    "FairHarvest-v0": LITTLE,
    "FairTraffic-v0": {"horizon": 400},
    "FairEpidemic-v0": {},
}


def discrete(env_id: str) -> dict[str, Any]:
    """Return parameters with which an environment's actions are discrete."""
    return {"FairPursuit-v0": {"action": "discrete"}, "FairCollege-v0": {"action": "levels"}}.get(env_id, {})


@pytest.mark.parametrize("env_id", TABLE)
def test_masks_fit_the_actions_of_every_environment(env_id: str) -> None:
    env: Any = gym.make(env_id, **discrete(env_id))
    env.reset(seed=0)
    masks = env.unwrapped.action_masks()
    space = env.action_space
    options = [space.n] if isinstance(space, gym.spaces.Discrete) else space.nvec.tolist()
    assert masks.shape == (sum(options),) and masks.dtype == np.int8 and masks.max() == 1
    parts = np.split(masks, np.cumsum(options)[:-1])
    assert all(part.any() for part in parts)
    env.step(space.sample(parts[0] if isinstance(space, gym.spaces.Discrete) else tuple(parts)))


@pytest.mark.parametrize("env_id", MASKED)
def test_a_masked_action_does_what_another_action_does(env_id: str) -> None:
    rules = make_rules(env_id, **MASKED[env_id])
    lanes, rng, seen = Lanes(rules, 1), np.random.default_rng(0), set()
    count: Any = rules.action_space(rules.params).n  # type: ignore[attr-defined]
    lanes.seed(3)
    lanes.restart()

    def result(before: Any, actions: Any) -> tuple[Any, ...]:
        lanes.restore(before)
        played = lanes.advance(actions)
        return played.observation.tobytes(), played.reward.tobytes(), played.terminated.item()

    for _ in range(60):
        before, masks = lanes.snapshot(), rules.action_masks(lanes.records)[0]
        actions = np.array([rng.choice(count, p=mask / mask.sum()) for mask in masks])[np.newaxis]
        for agent, masked in np.argwhere(masks == 0)[rng.permutation((masks == 0).sum())[:4]]:
            others = np.repeat(actions, count, axis=0)
            others[:, agent] = np.arange(count)
            same = result(before, others[[masked]])
            assert any(result(before, others[[action]]) == same for action in np.flatnonzero(masks[agent]))
            seen.add(int(masked))
        lanes.restore(before)
        if lanes.advance(actions).truncated.item() or lanes.records["over"][0]:
            lanes.restart()
    assert len(seen) > 1


def test_only_the_susceptible_are_worth_a_vaccine() -> None:
    env: Any = gym.make("FairEpidemic-v0", vaccines=2)
    env.reset(seed=0)
    masks = env.unwrapped.action_masks().reshape(2, 35)
    healthy = env.unwrapped.lanes.records["health"][0] == 0
    assert_same(masks[0], np.append(healthy, True).astype(np.int8))
    assert_same(masks[1], masks[0])
    env.step([int(healthy.argmax()), 34])
    assert env.unwrapped.action_masks()[healthy.argmax()] == 0


def test_vaccines_that_the_published_code_shows_are_not_masked() -> None:
    env: Any = gym.make("FairEpidemic-v0", profile="authors")
    env.reset(seed=0)
    assert env.unwrapped.action_masks().all()


def test_each_world_has_the_masks_of_its_rules() -> None:
    worlds = [{"invalid_action": "noop"}, {"invalid_action": "resample"}]
    env: Any = fair_envs.make_sb3("FairHarvest-v0", n_envs=1, seed=0, worlds=worlds, **MASKED["FairHarvest-v0"])
    env.reset()
    first, second = env.action_masks().reshape(2, 8, 8)
    assert not first.all() and second.all()


def test_replaced_actions_of_the_published_code_are_not_masked() -> None:
    rules = make_rules("FairHarvest-v0", invalid_action="resample", **MASKED["FairHarvest-v0"])
    lanes = Lanes(rules, 2)
    lanes.seed(0)
    lanes.restart()
    assert rules.action_masks(lanes.records).all()


def test_each_interface_has_its_own_masks() -> None:
    size: Any = MASKED["FairHarvest-v0"]
    lanes = Lanes(make_rules("FairHarvest-v0", **size), 2)
    lanes.seed(5)
    lanes.restart()
    masks = lanes.rules.action_masks(lanes.records)  # (2, 8, 8)
    assert not masks.all()
    single: Any = gym.make("FairHarvest-v0", **size)
    single.reset(seed=5)
    assert_same(single.get_wrapper_attr("action_masks")(), masks[0].ravel())
    focal: Any = gym.make("focal-FairHarvest-v0", focal="agent_2", **size)
    focal.reset(seed=5)
    assert_same(focal.get_wrapper_attr("action_masks")(), masks[0, 2])
    batch: Any = gym.make_vec("FairHarvest-v0", num_envs=2, **size)
    batch.reset(seed=5)
    assert_same(np.stack(batch.call("action_masks")), masks.reshape(2, -1))
    agents = harvest(**size)
    agents.reset(seed=5)
    assert_same(list(agents.action_masks().values()), list(masks[0]))
    turns = turn_based(**size)
    turns.reset(seed=5)
    assert_same(list(turns.action_masks().values()), list(masks[0]))


def test_masks_are_reported_in_the_info_of_each_interface() -> None:
    size: Any = MASKED["FairHarvest-v0"]
    single: Any = ReportActionMasks(gym.make("FairHarvest-v0", **size))
    focal: Any = ReportActionMasks(gym.make("focal-FairHarvest-v0", focal="agent_2", **size))
    alone: Any = ReportActionMasks(gym.make("FairEpidemic-v0"))
    batch: Any = ReportActionMasks(gym.make_vec("FairHarvest-v0", num_envs=2, **size))
    agents: Any = ReportActionMasks(harvest(**size))
    several: Any = ReportActionMasks(gym.make("FairEpidemic-v0", vaccines=2))
    shapes = ((single, (8, 8)), (focal, (8,)), (alone, (35,)), (several, (2, 35)), (batch, (2, 8, 8)))
    for env, shape in shapes:
        info = env.reset(seed=5)[1]
        for _ in range(3):
            masks, told = env.unwrapped.action_masks(), info["action_mask"]
            assert (told.dtype, told.shape) == (np.int8, shape)
            assert_same(told.reshape(masks.shape), masks)
            info = env.step(env.action_space.sample())[4]
    infos = agents.reset(seed=5)[1]
    for _ in range(3):
        assert_same({name: info["action_mask"] for name, info in infos.items()}, agents.unwrapped.action_masks())
        infos = agents.step({name: agents.action_space(name).sample() for name in agents.agents})[4]
    rows: Any = ReportActionMasks(fair_envs.make_sb3("FairHarvest-v0", n_envs=2, seed=5, infos="record", **size))
    rows.reset()
    infos = rows.step(np.zeros(16, int))[3]
    assert_same(np.stack([info["action_mask"] for info in infos]), rows.venv.action_masks())


def test_masks_need_discrete_actions() -> None:
    with pytest.raises(ValueError, match="action_masks needs discrete actions, got Box"):
        ReportActionMasks(gym.make("FairPursuit-v0"))


def test_agents_that_have_left_have_one_action() -> None:
    env: Any = gym.make("FairTraffic-v0")
    env.reset(seed=0)
    arrived = env.unwrapped.lanes.records["arrived"][0]
    arrived[3] = 1
    masks = env.unwrapped.action_masks().reshape(-1, 9)
    assert masks[3].tolist() == [1, *[0] * 8]
    assert np.delete(masks, 3, axis=0).sum(axis=1).min() > 1
    arrived[:] = 1  # also in streets without a left turn, which the first action names
    assert env.unwrapped.action_masks().reshape(-1, 9).tolist() == [[1, *[0] * 8]] * len(arrived)


def test_numbers_cannot_be_masked() -> None:
    env: Any = gym.make("FairPursuit-v0")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action_masks needs discrete actions, got Box"):
        env.unwrapped.action_masks()


@pytest.mark.parametrize("rows", ["agents", "lanes"])
def test_maskable_ppo_learns(rows: Any) -> None:
    contrib: Any = pytest.importorskip("sb3_contrib", reason="needs the extra 'baselines'")
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    env: Any = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, rows=rows, seed=0, **MASKED["FairHarvest-v0"])
    assert is_masking_supported(env)
    env.reset()
    masks = env.lanes.rules.action_masks(env.lanes.records)
    assert_same(get_action_masks(env), masks.reshape(env.num_envs, -1))
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
    model.learn(16 * env.num_envs)
    action, _ = model.predict(env.reset(), action_masks=get_action_masks(env))
    assert env.action_space.contains(action[0])


def test_a_decision_maker_in_pettingzoo_has_masks() -> None:
    env = epidemic()
    env.reset(seed=0)
    assert env.action_masks()["agent_0"].shape == (35,)
