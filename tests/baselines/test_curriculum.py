"""Curricula say how fast pursuers are, episodes begin at that speed, and each speed's policy is kept."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback

from fair_envs.baselines.team.curriculum import (
    Curriculum,
    FollowCurriculum,
    Linear,
    Stepped,
    begin_at,
    level_path,
    level_states,
    passed,
)
from tests.baselines.interruptions import Stop
from tests.baselines.small import small_env
from tests.baselines.teams import numbers, team, team_env
from tests.helpers import uncompiled

# ------------------------------------------------------------------------------------------------------ speeds


def test_a_linear_speed_falls_with_the_share_of_the_steps() -> None:
    course = Linear(1.2, 0.4)
    assert [course.speed(99, share) for share in (0.0, 0.25, 1.0)] == pytest.approx([1.2, 1.0, 0.4])


def test_a_linear_speed_falls_with_the_episodes_and_stays() -> None:
    course = Linear(1.2, 0.4, episodes=100)
    assert [course.speed(k, 0.9) for k in (0, 50, 100, 1000)] == pytest.approx([1.2, 0.8, 0.4, 0.4])


def test_the_default_is_the_papers() -> None:
    assert (Linear().start, Linear().end) == (1.2, 0.4)


def test_steps_have_equal_shares_of_the_training() -> None:
    course = Stepped((1.2, 1.0, 0.5, 0.4))
    assert [course.speed(0, share) for share in (0, 0.24, 0.25, 0.74, 0.75, 1.0)] == [1.2, 1.2, 1.0, 0.5, 0.4, 0.4]


def test_steps_last_so_many_episodes_each() -> None:
    course = Stepped((1.2, 1.0, 0.5), (2, 3, 1))
    assert [course.speed(k, 0.0) for k in range(8)] == [1.2, 1.2, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5]


def test_levels_are_those_that_a_speed_passes_and_of_steps_those_that_it_stops_at() -> None:
    levels = (0.9, 1.2, 1.1, 1.1, 0.4)
    assert passed(Linear(1.15, 0.9), levels) == [1.1, 0.9]
    assert passed(Linear(1.2, 0.9), levels) == [1.2, 1.1, 0.9]
    assert passed(Stepped((1.2, 0.9)), levels) == [1.2, 0.9]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(start=-1), "start must be between 0 and 100, got -1"),
        (lambda: Linear(end=float("nan")), "end must be a finite number between 0 and 100, got nan"),
        (lambda: Linear(episodes=0), "episodes must be at least 1, got 0"),
        (lambda: Stepped(()), "speeds must contain at least one speed, got none"),
        (lambda: Stepped((1.0, "slow")), "speeds must be a finite number between 0 and 100, got 'slow'"),  # type: ignore[arg-type]
        (lambda: Stepped((1.0, 0.5), (3,)), "episodes must be one number for each of 2 speeds, got (3,)"),
        (lambda: Stepped((1.0,), (0,)), "episodes must be at least 1, got 0"),
        (lambda: Stepped((0.5, 1.0)), "speeds must decrease, got (0.5, 1.0)"),
        (lambda: Linear(0.5, 1.0), "speeds must decrease, got (0.5, 1.0)"),
        (lambda: FollowCurriculum(Linear(), levels=[-1.0]), "levels must be between 0 and 100, got -1.0"),
    ],
)
def test_wrong_numbers_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as told:
        make()
    assert str(told.value) == message


# ----------------------------------------------------------------------------------------- speeds of episodes


class SpeedsOfLanes(BaseCallback):
    """Remembers what speed the pursuers had, and in which lanes an episode had just begun."""

    def __init__(self) -> None:
        super().__init__()
        self.speeds: list[Any] = []
        self.began: list[Any] = []

    def _on_step(self) -> bool:
        records = self.training_env.lanes.records  # type: ignore[attr-defined]
        self.speeds.append(records["speed"].copy())
        self.began.append(records["time"] == 0)
        return True


def followed(course: Curriculum, *, steps: int, lanes: int = 2, **parameters: Any) -> tuple[Any, SpeedsOfLanes]:
    """Return a callback that has followed a curriculum, and the speeds that episodes had."""
    env = team_env(lanes=lanes, horizon=4, **{"pursuer_speed": 0.1, **parameters})
    follow, seen = FollowCurriculum(course, levels=(1.2, 1.0, 0.8, 0.6)), SpeedsOfLanes()
    model = team(env=env, learning_starts=10**6, train_freq=1)
    begin_at(env, course)
    model.learn(steps * env.num_envs, callback=[follow, seen])
    return follow, seen


@uncompiled
def test_an_episode_has_the_speed_of_when_it_began_all_the_time() -> None:
    _, seen = followed(Linear(0.05, 0.01), steps=20)
    speeds = np.array(seen.speeds)[:, :, 0]  # after each step; the episodes last four
    assert speeds[:3] == pytest.approx(0.05)
    for first in range(3, 19, 4):  # the speed of the rollout of step `first` is the one that its last step began with
        assert speeds[first : first + 4] == pytest.approx(0.05 - 0.04 * first / 20)


def test_episodes_of_all_lanes_are_counted_once_each() -> None:
    _, seen = followed(Stepped((0.05, 0.02), (4, 1)), steps=20)
    speeds = np.array(seen.speeds)[:, 0, 0]
    assert speeds[:11] == pytest.approx(
        0.05
    )  # two episodes of two lanes, and those that began with the second ones' end
    assert speeds[11:] == pytest.approx(0.02)


@uncompiled
def test_each_pursuers_factor_multiplies_the_speed() -> None:
    _, seen = followed(Linear(0.05, 0.01), steps=8, speeds=(1.0, 0.5, 0.25))
    for speeds in seen.speeds:
        assert speeds[:, 1:] == pytest.approx(speeds[:, :1] * [[0.5, 0.25]])


def test_it_goes_on_in_a_second_call_of_learn_and_is_entered_once() -> None:
    course = Linear(1.2, 0.4)
    env: Any = team_env()
    model = team(env=env)
    for _ in range(2):
        model.learn(60, callback=FollowCurriculum(course), reset_num_timesteps=False)
    assert len(env.lanes.amendments) == 1
    assert env.lanes.amendments[0].value == pytest.approx(1.2 - 0.8 * 108 / 120)


def test_the_environments_speed_holds_for_episodes_that_began_before() -> None:
    env = team_env(pursuer_speed=0.3)
    env.reset()
    begin_at(env, Linear(1.2, 0.4))
    assert (env.lanes.records["speed"] == 0.3).all()
    env.reset()
    assert (env.lanes.records["speed"] == 1.2).all()


def test_another_environment_is_refused() -> None:
    model = team().learn(60)
    model.env = small_env(lanes=1)
    with pytest.raises(ValueError, match=r"rules must be those of a team"):
        begin_at(model.env, Linear())
        model.env.reset()


# ------------------------------------------------------------------------------------------------------ levels


class Weights(BaseCallback):
    """Remembers the weights at the beginning of each rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[int, dict[str, th.Tensor]] = {}

    def _on_rollout_start(self) -> None:
        self.at[self.num_timesteps] = numbers(self.model)

    def _on_step(self) -> bool:
        return True


def equal(one: Any, other: Any) -> bool:
    return all(th.equal(one[name], other[name]) for name in other)


LEVELS = (1.2, 1.0, 0.8, 0.6, 0.4)
HUNDRED = 6 * 100  # agent steps of so many rollouts of one step


def test_a_level_is_kept_when_the_speed_is_halfway_to_the_next_and_the_last_at_the_end() -> None:
    weights, follow = Weights(), FollowCurriculum(Linear(1.2, 0.6), levels=LEVELS)
    model = team(train_freq=1).learn(HUNDRED, callback=[weights, follow])
    assert list(follow.states) == [1.2, 1.0, 0.8, 0.6]
    for level, share in {1.2: 0.05 / 0.6, 1.0: 0.25 / 0.6, 0.8: 0.45 / 0.6}.items():
        first = int(np.ceil(share * 100 - 1e-6)) * 6
        assert equal(follow.states[level], weights.at[first])
        assert not equal(follow.states[level], weights.at[first - 6])
    assert equal(follow.states[0.6], numbers(model))


def test_levels_that_are_never_reached_are_not_kept() -> None:
    follow = FollowCurriculum(Linear(1.0, 0.8), levels=LEVELS)
    team().learn(HUNDRED, callback=follow)
    assert list(follow.states) == [1.0, 0.8]


def test_what_is_kept_does_not_change_with_the_model() -> None:
    follow = FollowCurriculum(Linear(1.2, 0.6), levels=LEVELS)
    model = team().learn(HUNDRED, callback=follow)
    before = {name: value.clone() for name, value in follow.states[0.6].items()}
    model.learn(60)
    assert equal(follow.states[0.6], before)


def test_a_training_that_was_stopped_has_not_left_its_speed() -> None:
    follow = FollowCurriculum(Linear(1.2, 0.6), levels=LEVELS)
    team(train_freq=1).learn(HUNDRED, callback=[follow, Stop(60)])
    assert list(follow.states) == [1.2, 1.0]


def test_levels_are_files_of_the_policys_weights(tmp_path: Path) -> None:
    follow = FollowCurriculum(Linear(1.2, 0.6), levels=LEVELS, folder=tmp_path)
    team().learn(HUNDRED, callback=follow)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model-0.6.pt",
        "model-0.8.pt",
        "model-1.2.pt",
        "model-1.pt",
    ]
    found = level_states(tmp_path)
    assert list(found) == [1.2, 1.0, 0.8, 0.6]
    for level, state in follow.states.items():
        assert equal(found[level], state)


def test_what_a_folder_has_is_not_written_again_and_is_what_is_known(tmp_path: Path) -> None:
    first = FollowCurriculum(Linear(1.2, 0.6), levels=LEVELS, folder=tmp_path)
    team().learn(HUNDRED, callback=first)
    (tmp_path / "model-0.6.pt").unlink()
    before = level_path(tmp_path, 1.2).read_bytes()
    again = FollowCurriculum(Linear(1.2, 0.6), levels=LEVELS, folder=tmp_path)
    team(seed=5).learn(HUNDRED, callback=again)
    assert level_path(tmp_path, 1.2).read_bytes() == before
    for level in (1.2, 1.0, 0.8):
        assert equal(again.states[level], first.states[level])
    assert not equal(again.states[0.6], first.states[0.6])
    assert list(level_states(tmp_path)) == [1.2, 1.0, 0.8, 0.6]
