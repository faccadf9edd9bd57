"""What the pictures of the harvest show, and that every way to draw them works; no test needs a screen."""

import copy
import functools
import itertools
import math
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.envs import drawing
from fair_envs.envs.harvest import Parallel, env, render
from fair_envs.envs.harvest.rules import BLUE, NO_COLOUR, RED, Harvest
from fair_envs.support.aliases import Pixels
from tests.helpers import grey, plain, uncompiled

pygame = pytest.importorskip("pygame")

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {"width": 5, "height": 3, "agents": 4, "red_bushes": 2, "blue_bushes": 1, "horizon": 6}
PLAYED: dict[str, Any] = {**SMALL, "width": 4, "agents": 2}  # the layout of tests/test_core.py
HUES = [render.RED_HUE, render.BLUE_HUE, render.GREEN_HUE, render.NO_HUE]
SIZES = [40, 24, 8]  # pixels of a cell; the last one leaves detail out


def harvest(
    agents: Sequence[dict[str, Any]], bushes: Sequence[dict[str, Any]] = (), **parameters: Any
) -> tuple[render.HarvestRenderer, Any]:
    """Return the renderer of a grid of 5 x 3 cells, and a lane with these agents and bushes in it."""
    rules = Harvest(**{**SMALL, "agents": len(agents), **parameters})
    lane = np.zeros(1, rules.dtype)[0]
    for i, agent in enumerate(agents):
        for name, value in {"preference": RED, **agent}.items():
            lane[name][i] = value
        lane["cell"][lane["x"][i], lane["y"][i]] = 1 + i
    for k, bush in enumerate(bushes):
        for name, value in {"colour": RED, **bush}.items():
            lane[{"x": "bush_x", "y": "bush_y"}.get(name, name)][k] = value
        lane["cell"][lane["bush_x"][k], lane["bush_y"][k]] = 1 + len(agents) + k
    lane["bushes"] = len(bushes)
    return render.HarvestRenderer(rules), lane


def drawn(figure: drawing.Figure, size: int) -> Pixels:
    """Return a cell with the figure, shape (size, size, 3)."""
    tile = drawing.Stock(plain=size < drawing.PLAIN_BELOW).tile((drawing.Blank(), figure), size, drawing.GROUND)
    picture: Pixels = pygame.surfarray.array3d(tile).swapaxes(0, 1)
    return picture


def difference(one: Pixels, other: Pixels) -> float:
    """Return how far two pictures are apart in lightness, 0 to 255, on average."""
    return float(np.abs(grey(one) - grey(other)).mean())


def amount(picture: Pixels, colour: drawing.Rgb) -> float:
    """Return the share of the pixels that have a colour, or nearly so."""
    return float((np.abs(picture.astype(int) - colour).max(-1) < 12).mean())


def distance(picture: Pixels, colour: drawing.Rgb) -> float:
    """Return how far the nearest twentieth of the pixels is from a colour."""
    found = np.sort(np.abs(picture.astype(int) - colour).sum(-1), axis=None)
    return float(found[: max(1, found.size // 20)].mean())


@functools.cache
def run(program: str, **variables: str) -> str:
    """Return what a program prints in a process of its own, which knows of no screen; each runs once."""
    known = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    known.pop("SDL_VIDEODRIVER", None)
    process = [sys.executable, "-W", "error", "-c", program]
    ran = subprocess.run(process, cwd=ROOT, env={**known, **variables}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


# ---------------------------------------------------------------------------------------------------- figures


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("hue", HUES, ids=lambda hue: str(hue.name))
def test_half_speed_shows_without_colours(hue: render.Hue, frozen: bool, size: int) -> None:
    full, half = (drawn(render.Agent(hue, slow=slow, frozen=frozen), size) for slow in (False, True))
    assert difference(full, half) > 10


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_an_agent_shows_its_preference_also_when_it_is_frozen(frozen: bool, slow: bool, size: int) -> None:
    for hue in HUES:
        picture = drawn(render.Agent(hue, slow=slow, frozen=frozen), size)
        assert min(HUES, key=lambda other: distance(picture, other.rgb)) is hue


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("slow", [False, True])
def test_a_frozen_agent_lies_in_ice(slow: bool, size: int) -> None:
    free, frozen = (drawn(render.Agent(render.RED_HUE, slow=slow, frozen=frozen), size) for frozen in (False, True))
    edge = frozen[0].astype(int)
    assert difference(free, frozen) > 10
    assert (edge[:, 2] > edge[:, 0] + 40).all()  # the border is ice-blue all along


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("hue", HUES, ids=lambda hue: str(hue.name))
def test_ripe_berries_are_big_and_bright(hue: render.Hue, size: int) -> None:
    unripe, ripe = (drawn(render.Bush(hue, ripe=ripe), size) for ripe in (False, True))
    assert amount(ripe, hue.rgb) > 0.08
    assert amount(unripe, hue.rgb) < 0.02
    assert difference(unripe, ripe) > 5


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ripe", [False, True])
def test_berries_show_their_colour(ripe: bool, size: int) -> None:
    pictures = [drawn(render.Bush(hue, ripe=ripe), size).astype(int) for hue in HUES]
    assert min(np.abs(one - other).max() for one, other in itertools.combinations(pictures, 2)) > 50


@pytest.mark.parametrize("size", SIZES)
def test_ripe_red_berries_stand_out_from_leaves_without_colours(size: int) -> None:
    middle = slice(size // 4, -size // 4)
    unripe, ripe = (grey(drawn(render.Bush(render.RED_HUE, ripe), size))[middle, middle] for ripe in (False, True))
    assert ripe.max() > unripe.max() + 30


def test_preferences_differ_in_lightness_too() -> None:
    lightness = sorted(float(grey(np.array(hue.rgb, np.uint8))) for hue in HUES[:3])
    assert min(np.diff(lightness)) > 35


@pytest.mark.parametrize("size", SIZES)
def test_the_nose_points_to_where_an_agent_faces(size: int) -> None:
    blind = grey(drawn(render.Agent(render.RED_HUE), size))
    right = np.abs(grey(drawn(render.Agent(render.RED_HUE, facing=(1, 0)), size)) - blind)
    up = np.abs(grey(drawn(render.Agent(render.RED_HUE, facing=(0, -1)), size)) - blind)
    assert right[:, size // 2 :].sum() > 5 * right[:, : size // 2].sum()
    assert up[: size // 2].sum() > 5 * up[size // 2 :].sum()


def test_skilled_agents_wear_a_star() -> None:
    assert amount(drawn(render.Agent(render.BLUE_HUE, skilled=True), 40), render.GOLD) > 0.01


# ----------------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize(
    ("width", "height", "cell", "shape"),
    [
        (25, 15, 27, (464, 1008, 3)),
        (1, 1, 72, (464, 400, 3)),
        (7, 40, 17, (704, 448, 3)),
        (100, 60, 6, (464, 928, 3)),
        (300, 20, 4, (464, 1536, 3)),  # wider than the largest frame: a cell has 4 pixels at least
    ],
)
def test_cells_are_as_large_as_the_frame_allows(
    width: int, height: int, cell: int, shape: tuple[int, int, int]
) -> None:
    rules = Harvest(width=width, height=height, agents=1, red_bushes=0, blue_bushes=0)
    renderer = render.HarvestRenderer(rules)
    frame = renderer.frame(np.zeros(1, rules.dtype)[0])  # a lane before its first reset can be drawn too
    assert (renderer.cell, frame.shape) == (cell, shape)
    assert frame.dtype == np.uint8
    assert frame.flags.c_contiguous and frame.flags.writeable
    assert frame.shape[0] % 16 == frame.shape[1] % 16 == 0  # video codecs want that


def test_figures_stand_in_their_cells() -> None:
    agents = [{"x": 4, "y": 0}, {"x": 0, "y": 2, "sensitive": 1, "preference": BLUE}, {"x": 2, "y": 1, "frozen": -1}]
    renderer, lane = harvest(agents, [{"x": 1, "y": 0, "ripe": 1}, {"x": 3, "y": 2, "colour": NO_COLOUR}])
    frame, size = renderer.frame(lane), renderer.cell
    expected: dict[drawing.Cell, drawing.Figure] = {
        (4, 0): render.Agent(render.RED_HUE),
        (0, 2): render.Agent(render.BLUE_HUE, slow=True),
        (2, 1): render.Agent(render.RED_HUE, frozen=True),
        (1, 0): render.Bush(render.RED_HUE, ripe=True),
        (3, 2): render.Bush(render.NO_HUE, ripe=False),
    }
    for x in range(5):
        for y in range(3):
            left, top = drawing.MARGIN + x * size, drawing.MARGIN + y * size
            figure = expected.get((x, y), drawing.Blank())
            assert (frame[top : top + size, left : left + size] == drawn(figure, size)).all(), (x, y)


def test_drawing_changes_nothing_and_returns_fresh_memory() -> None:
    renderer, lane = harvest([{"x": 1, "total": 7}], [{"x": 2}])
    before = lane.tobytes()
    one, other = renderer.frame(lane), renderer.frame(lane)
    renderer.text(lane)
    assert lane.tobytes() == before
    assert (one == other).all()
    one[:] = 0
    assert (renderer.frame(lane) == other).all()


def test_a_frame_shows_nothing_of_the_one_before() -> None:
    renderer, lane = harvest([{"x": 1, "total": 7}], [{"x": 2}])
    _, later = harvest([{"x": 3, "total": 9}], [{"x": 4, "ripe": 1}])
    renderer.frame(lane)
    fresh, _ = harvest([{}])
    assert (renderer.frame(later) == fresh.frame(later)).all()


def test_returns_below_zero_are_drawn() -> None:
    renderer, lane = harvest([{"total": -5}, {"x": 1, "total": 3, "sensitive": 1}], obstruct_opposed=-5.0)
    assert renderer.frame(lane).shape == (464, 688, 3)
    assert "-5.0" in plain(renderer.text(lane))


def test_frames_survive_the_end_of_pygame() -> None:
    renderer, lane = harvest([{"x": 1}])
    before = renderer.frame(lane)
    pygame.quit()
    assert (renderer.frame(lane) == before).all()
    lane["time"] = 3  # so that there is a new line of text to draw
    assert (renderer.frame(lane) != before).any()


def test_figures_of_equal_fields_are_not_mixed_up() -> None:
    class Berry(render.Bush):
        """Looks unlike a bush."""

        def paint(self, pen: drawing.Pen) -> None:
            pen.disc(0.5, 0.5, 0.5, self.hue.rgb)

    stock = drawing.Stock(plain=False)
    bush, berry = (stock.tile((kind(render.RED_HUE, True),), 20, drawing.GROUND) for kind in (render.Bush, Berry))
    assert (pygame.surfarray.array3d(bush) != pygame.surfarray.array3d(berry)).any()


def test_kept_lines_of_text_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_LINES", 3)
    stock = drawing.Stock(plain=False)
    for k in range(20):
        stock.lines.draw(str(k), size=drawing.NORMAL, colour=drawing.INK)
        assert len(stock.lines) <= 3


# ------------------------------------------------------------------------------------------------------ panel

FOUR = [  # red full, red half, blue full, blue half
    {"x": 0, "total": 40},
    {"x": 1, "total": 10, "sensitive": 1},
    {"x": 2, "total": 20, "preference": BLUE},
    {"x": 3, "total": 20, "preference": BLUE, "sensitive": 1},
]


def item(renderer: render.HarvestRenderer, lane: Any, kind: type) -> Any:
    """Return the panel's entry of a kind."""
    return next(entry for entry in renderer.panel(lane) if isinstance(entry, kind))


def test_the_panel_lists_mean_returns_by_speed_and_by_preference() -> None:
    groups = item(*harvest(FOUR), render.Returns).groups
    assert [(group.label, group.members, group.mean) for group in groups] == [
        ("full speed", 2, 30),
        ("half speed", 2, 15),
        ("red, full speed", 1, 40),
        ("red, half speed", 1, 10),
        ("blue, full speed", 1, 20),
        ("blue, half speed", 1, 20),
    ]


def test_the_panel_lists_mean_returns_by_skill_where_that_is_the_legitimate_factor() -> None:
    agents = [{"x": 0, "total": 8, "skilled": 1}, {"x": 1, "total": 2}, {"x": 2, "total": 3, "sensitive": 1}]
    groups = item(*harvest(agents, legitimate="skill", skilled_fraction=0.5), render.Returns).groups
    assert [(group.label, group.mean) for group in groups[2:5]] == [
        ("unskilled, full speed", 2),
        ("unskilled, half speed", 3),
        ("skilled, full speed", 8),
    ]
    assert math.isnan(groups[5].mean)


@pytest.mark.parametrize(
    ("full", "half", "gap"), [(30, 15, 1 / 3), (15, 30, -1 / 3), (0.25, 0, 0.25), (0, 0, 0), (5, 0, 1)]
)
def test_the_gap_is_relative_to_the_sum_of_the_means(full: float, half: float, gap: float) -> None:
    agents = [{"x": 0, "total": full}, {"x": 1, "total": half, "sensitive": 1}, {"x": 2, "total": full}]
    assert item(*harvest(agents), render.Balance).value == pytest.approx(gap)


def test_a_group_without_members_has_no_mean_and_no_gap() -> None:
    renderer, lane = harvest([{"x": 0, "total": 3}])
    assert math.isnan(item(renderer, lane, render.Balance).value)
    assert re.search(r"half speed \(0\) +-\n", plain(renderer.text(lane)))


def test_the_panel_shares_out_the_bushes_that_stand() -> None:
    bushes = [{"x": 0, "colour": BLUE}, {"x": 1}, {"x": 2}, {"x": 3, "colour": NO_COLOUR}]
    renderer, lane = harvest([{"y": 2}], bushes)
    lane["colour"][4] = BLUE  # what a bush that is gone has left behind
    assert [part for _, part in item(renderer, lane, render.Shares).parts] == [2, 1, 1]
    assert "4 bushes: red 50%, blue 25%, no colour 25%" in plain(renderer.text(lane))


@pytest.mark.parametrize(
    ("parameters", "meaning"),
    [({}, "1 turn in 2"), ({"handicap": "movement", "handicap_period": 3}, "1 move in 3")],
)
def test_the_legend_says_what_half_speed_means(parameters: dict[str, Any], meaning: str) -> None:
    renderer, lane = harvest([{}], **parameters)
    assert meaning in [entry for _, entry in item(renderer, lane, render.Legend).entries]
    assert meaning in renderer.text(lane)


def test_a_longer_bar_stands_for_a_larger_mean() -> None:
    renderer, lane = harvest(FOUR)
    frame = renderer.frame(lane)
    bars = frame[:, 2 * drawing.MARGIN + 5 * renderer.cell + 2 * drawing.ICON :]  # right of the icons
    rows = (np.abs(bars.astype(int) - render.RED_HUE.rgb).max(-1) < 3).sum(1)
    red_full, red_half = (rows[rows > 0][k] for k in (0, 12))  # a bar is 12 pixels high
    assert red_full == pytest.approx(4 * red_half, abs=4)


# ------------------------------------------------------------------------------------------------------- text


def test_text_shows_each_cell_in_two_columns() -> None:
    agents = [
        {"x": 4, "y": 0},
        {"x": 0, "y": 2, "sensitive": 1, "preference": BLUE},
        {"x": 2, "y": 1, "frozen": 1},
        {"x": 3, "y": 1, "frozen": -1, "sensitive": 1},
    ]
    bushes = [{"x": 1, "y": 0, "ripe": 1}, {"x": 1, "y": 1}, {"x": 2, "y": 2, "colour": BLUE}]
    renderer, lane = harvest(agents, [*bushes])
    assert plain(renderer.text(lane)).splitlines()[:5] == [
        "+----------+",
        "|· ● · · R |",
        "|· ○ R#r#· |",
        "|b · □ · · |",
        "+----------+",
    ]


def test_text_colours_what_it_shows() -> None:
    renderer, lane = harvest([{"x": 0}, {"x": 1, "preference": BLUE}])
    row = renderer.text(lane).splitlines()[1]
    assert row.index(render.RED_HUE.ansi + "m" + "R ") < row.index(render.BLUE_HUE.ansi + "m" + "B ")


def test_text_holds_the_time_the_totals_and_the_gap() -> None:
    renderer, lane = harvest(FOUR)
    lane["time"] = 4
    text = plain(renderer.text(lane))
    assert "step 4 of 6" in text
    assert re.search(r"half speed \(2\) +15\.0\n", text)
    assert re.search(r"blue, full speed \(1\) +20\.0\n", text)
    assert "gap (full - half) / (full + half): +0.33" in text


@pytest.mark.parametrize(
    ("value", "spelled"), [(1.25, "1.2"), (-3, "-3.0"), (math.nan, "-"), (123456.0, "1.23e+05"), (99999, "99999.0")]
)
def test_numbers_stay_short(value: float, spelled: str) -> None:
    assert drawing.number(value) == spelled


# --------------------------------------------------------------------------------------- without screen or pygame

DRAW = """
import sys
import numpy as np
{before}
from fair_envs.envs.harvest.rules import Harvest
from tests.helpers import uncompiled
rules = Harvest(width=4, height=3, agents=1, red_bushes=1, blue_bushes=1)
renderer, lane = rules.renderer(), np.zeros(1, rules.dtype)[0]
{after}
"""


PICTURE = DRAW.format(
    before="import zlib", after="frame = renderer.frame(lane); print(*frame.shape, zlib.crc32(frame))"
)


def test_frames_need_no_screen() -> None:
    assert run(PICTURE).split()[:3] == ["464", "624", "3"]


def test_frames_are_the_same_with_a_dummy_screen_and_without_one() -> None:
    assert run(PICTURE) == run(PICTURE, SDL_VIDEODRIVER="dummy")


WITHOUT_PYGAME = DRAW.format(
    before="sys.modules['pygame'] = None",
    after="""
print(len(renderer.text(lane)) > 100)
try:
    renderer.frame(lane)
except ImportError as error:
    print(error)
""",
)


def test_text_needs_no_pygame() -> None:
    assert run(WITHOUT_PYGAME).splitlines()[0] == "True"


def test_frames_without_pygame_say_how_to_install_it() -> None:
    (said,) = run(WITHOUT_PYGAME).splitlines()[1:]
    assert said.startswith("rendering needs pygame; install it with: pip install 'fair-envs[render]'")
    assert "check_env(env, skip_render_check=True)" in said


# ------------------------------------------------------------------------------------------------------ faces


def make(render_mode: str) -> gym.Env[Any, Any]:
    """Return the environment on the grid that is played on."""
    return gym.make("FairHarvest-v0", render_mode=render_mode, **PLAYED)


@uncompiled
def test_gym_make_draws_in_every_mode() -> None:
    for mode in ("rgb_array", "ansi", "human"):
        env = make(mode)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        picture: Any = env.render()
        env.close()
        if mode == "rgb_array":
            assert picture.shape == (464, 624, 3)
        else:
            assert ("FairHarvest" in picture) if mode == "ansi" else picture is None


@uncompiled
def test_copies_of_an_environment_draw_the_same_picture() -> None:
    env = make("rgb_array").unwrapped
    env.reset(seed=3)
    picture: Any = env.render()
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert (twin.render() == picture).all()


def test_a_vector_environment_draws_each_lane() -> None:
    envs = gym.make_vec("FairHarvest-v0", num_envs=3, render_mode="rgb_array", **PLAYED)
    envs.reset(seed=0)
    pictures: Any = envs.render()
    assert isinstance(pictures, tuple) and [p.shape for p in pictures] == [(464, 624, 3)] * 3
    assert (pictures[0] != pictures[1]).any()
    envs.close()


@uncompiled
def test_record_video_writes_a_video(tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    folder = str(tmp_path / "videos")
    recorded: gym.Env[Any, Any] = gym.wrappers.RecordVideo(make("rgb_array"), folder, disable_logger=True)
    recorded.reset(seed=0)
    for _ in range(PLAYED["horizon"]):
        recorded.step(recorded.action_space.sample())
    recorded.close()
    assert [path.suffix for path in (tmp_path / "videos").iterdir() if path.stat().st_size > 1000] == [".mp4"]


def test_human_rendering_shows_frames_and_can_be_opened_again() -> None:
    for _ in range(2):
        shown: gym.Env[Any, Any] = gym.wrappers.HumanRendering(make("rgb_array"))
        shown.reset(seed=0)
        shown.step(shown.action_space.sample())
        shown.close()


def test_pettingzoos_render_test_passes() -> None:
    from pettingzoo.test.render_test import render_test

    render_test(functools.partial(env, **PLAYED))
    parallel = Parallel(render_mode="rgb_array", **PLAYED)
    parallel.reset(seed=0)
    assert parallel.render().shape == (464, 624, 3)


def test_stable_baselines3_records_a_video_of_the_lanes(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("moviepy")
    from stable_baselines3.common.vec_env import VecVideoRecorder

    envs = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, rows="lanes", seed=0, render_mode="rgb_array", **PLAYED)
    envs = VecVideoRecorder(envs, str(tmp_path), record_video_trigger=lambda step: step == 0, video_length=3)
    envs.reset()
    for _ in range(4):
        envs.step(np.stack([envs.action_space.sample() for _ in range(2)]))
    envs.close()
    assert [path.suffix for path in tmp_path.iterdir()] == [".mp4"]
