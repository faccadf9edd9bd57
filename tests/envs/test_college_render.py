"""What the pictures of FairCollege show; no test needs a screen."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.envs.college import render
from fair_envs.envs.college.rules import ADMIT, ADVANTAGED, DISADVANTAGED, GROUPS, College
from fair_envs.support.aliases import Pixels
from tests.helpers import assert_same, begun, plain, uncompiled

pytest.importorskip("pygame")

SOMEBODY = render.Person(group=ADVANTAGED, qualified=False, score=0.4, presented=0.4, paid=0.0, admitted=False)


def played(rounds: int = 3, **parameters: Any) -> tuple[Any, Any]:
    """Return the renderer and the lane after some rounds."""
    lanes = begun(College(**{"profile": "fat2020", **parameters}), seed=3)
    for _ in range(rounds):
        lanes.advance(np.full((1, 1, 1), 0.62, np.float32))
    return lanes.rules.renderer(), lanes.records[0]


def drawn(person: render.Person) -> Pixels:
    """Return the applicant's mark, in grey."""
    from pygame.surfarray import array3d

    figures = render.Figures()
    figures.mark(20, 20, person, render.RADIUS)
    picture: Pixels = array3d(figures.shrunk())[:40, :40] @ np.array([0.299, 0.587, 0.114])
    return picture


def test_marks_of_groups_decisions_and_qualification_differ_without_colour_too() -> None:
    people = [
        SOMEBODY._replace(group=group, qualified=qualified, admitted=admitted)
        for group in (ADVANTAGED, DISADVANTAGED)
        for qualified in (False, True)
        for admitted in (False, True)
    ]
    marks = [drawn(person) for person in people]
    for i, one in enumerate(marks):
        for other in marks[:i]:
            assert np.abs(one - other).mean() > 0.5


def test_the_frame_changes_with_the_round_and_not_with_drawing() -> None:
    renderer, lane = played()
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert np.array_equal(frame, renderer.frame(lane))
    other, earlier = played(2)
    assert not np.array_equal(frame, other.frame(earlier))


def test_a_line_stands_at_the_threshold() -> None:
    renderer, lane = played()
    frame = renderer.frame(lane)
    columns = {x for _, x in np.argwhere((frame == render.LINE).all(axis=-1)) if x < render.AXIS[1]}
    assert columns and all(abs(x - render.place(0.62)) <= 2 for x in columns)
    renderer, lane = played(0)
    assert not (renderer.frame(lane)[render.TOP :] == render.LINE).all(axis=-1).any()


def test_the_people_are_those_of_the_last_round_by_group_and_score() -> None:
    renderer, lane = played()
    people = renderer.people(lane)
    assert len(people) == 20 and people == sorted(people, key=lambda person: (person.group, person.score))
    assert sorted(person.presented for person in people) == sorted(lane["presented"].tolist())
    assert sum(person.admitted for person in people) == (lane["admitted"] == ADMIT).sum()
    assert all((person.paid > 0) == (person.presented > person.score) for person in people)
    assert renderer.people(played(0)[1]) == []


def test_the_rows_say_how_each_group_fared() -> None:
    renderer, lane = played(0)
    lane["tally"] = [[[5, 3], [0, 2]], [[0, 0], [0, 0]]]
    lane["burden_sum"], lane["paid_sum"] = [0.5, 0], [2.0, 0]
    one, other = renderer.rows(lane)
    assert one == render.Row(ADVANTAGED, 10, 2, 1.0, 3 / 8, 0.25, 0.2)
    assert other[:3] == (DISADVANTAGED, 0, 0) and np.isnan(other[3:]).all()


def test_the_text_says_the_same_as_the_picture() -> None:
    renderer, lane = played()
    text = plain(renderer.text(lane))
    assert "FairCollege, round 3 of 750, threshold 0.62" in text
    assert text.count("admitted  qualified") + text.count("rejected  qualified") == lane["past_qualified"].sum()
    assert text.count("paid 0.") + text.count("paid 1.") == (lane["paid"] > 0).sum()
    for group, row in zip(GROUPS, renderer.rows(lane), strict=True):
        (line,) = (line for line in text.splitlines() if f" {group} " in line)
        assert line.split()[2:4] == [str(row.applied), str(row.qualified)]
    assert "nothing published yet" in played(0)[0].text(played(0)[1])


def test_a_lottery_is_named() -> None:
    assert "25% of the others admitted" in played(1, epsilon=0.25)[0].text(played(1, epsilon=0.25)[1])


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_every_mode_draws_and_leaves_the_episode_as_it_was(mode: str) -> None:
    env: Any = gym.make("FairCollege-v0", render_mode=mode)
    env.reset(seed=0)
    env.step(np.array([0.9], np.float32))
    before = env.unwrapped.get_state()
    picture = env.render()
    assert {"rgb_array": np.ndarray, "ansi": str, "human": type(None)}[mode] is type(picture)
    assert_same(env.unwrapped.get_state(), before)
    env.close()


@uncompiled
@pytest.mark.parametrize("applicants", [1, 3, 200])
def test_rounds_of_any_size_fit(applicants: int) -> None:
    renderer, lane = played(1, applicants=applicants)
    assert renderer.frame(lane).shape == (render.HEIGHT, render.WIDTH, 3)
    assert len(renderer.people(lane)) == min(applicants, render.MOST_SHOWN)
