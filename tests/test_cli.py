"""What a person at a terminal sees: pages, films, runs that can be resumed, and one line for each mistake."""

import csv
import errno
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fair_envs
from fair_envs import TABLE, cli, make_rules
from fair_envs.cli import app, playing
from fair_envs.cli.pages import field_comments
from fair_envs.evaluation import RandomPolicy
from fair_envs.evaluation.systems import MEANINGS, gaps, play_system
from fair_envs.support import extras
from fair_envs.tasks import task_of
from tests.helpers import LITTLE

pytestmark = pytest.mark.usefixtures("empty_folder")

ROOT = Path(__file__).parents[1]
ENV_ID = "FairHarvest-v0"
TINY_OPTIONS = [part for name, value in LITTLE.items() for part in ("--param", f"{name}={value}")]


class Said:
    """What a command said: all of it, and its exit code."""

    def __init__(self, *arguments: Any) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.text, self.code = result.output, result.exit_code
        self.flat = " ".join(self.text.split())  # without the line breaks of a narrow terminal


BRIEFLY = ("--frames", "1")  # of a window that should not open


def mistake(*arguments: Any) -> str:
    """Return the one line that a wrong command gets."""
    said = Said(*arguments)
    assert said.code == 2, said.text
    (line,) = said.text.splitlines()
    assert line.startswith("fair-envs: ")
    return line.removeprefix("fair-envs: ")


# ----------------------------------------------------------------------------------------------- list, show


def test_the_list_names_each_environment_its_agents_and_its_variants() -> None:
    said = Said("list")
    assert said.code == 0
    (line,) = (line for line in said.text.splitlines() if line.startswith(ENV_ID))
    assert "40" in line.split()
    assert "melting_pot" in line.split()


def test_a_page_holds_the_docstring_the_parameters_and_the_facts() -> None:
    said = Said("show", ENV_ID)
    assert "Allelopathic harvest" in said.flat
    assert "sensitive_fraction 0.5 a number between 0 and 1 share of the agents with the attribute; P, C" in said.flat
    assert "half_speed: no, yes" in said.flat
    assert "Box(10,) of float32" in said.flat
    assert "P is La Malfa et al. (2025)" in said.flat


def test_every_parameter_is_on_the_page() -> None:
    said = Said("show", ENV_ID)
    names = make_rules(ENV_ID).Params._fields  # type: ignore[attr-defined]
    assert [name for name in names if f"\n{name} " not in said.text] == []


@pytest.mark.parametrize("env_id", ["FairHarvest-v0", "FairHiring-v0", "FairFraud-v0"])
def test_every_parameter_says_what_it_means(env_id: str) -> None:
    params: Any = make_rules(env_id).Params
    assert set(params._fields) == set(field_comments(params))


def test_a_variant_has_a_page_of_its_own() -> None:
    said = Said("show", ENV_ID, "--variant", "melting_pot")
    assert "patches" in said.flat
    assert "red_bushes" not in said.flat


def test_a_page_shows_the_task_and_describes_the_scripted_policies() -> None:
    said = Said("show", "FairLending-v0")
    assert (
        "short-term measure (short) equal_opportunity: gap of true positive rate over the last 500 steps" in said.flat
    )
    assert "true positive rate: qualified and selected, divided by qualified" in said.flat
    assert "parameters horizon=2000, feedback=full" in said.flat
    assert "training steps 480,000" in said.flat and "caution" not in said.flat
    assert "max-reward yes Lends if the expected profit is positive" in said.flat
    assert "correct - Makes the decision that is correct by the ground truth." in said.flat


def test_a_page_numbers_the_entries_of_an_observation() -> None:
    assert "its entries 0 score_0, 1 score_1, 2 score_2," in Said("show", "FairLending-v0").flat
    assert "..., 159 ratio_4_1" in Said("show", "FairAttention-v0").flat
    assert "its entries" not in Said("show", "FairEpidemic-v0").flat


def test_a_page_shows_what_good_numbers_do_not_show() -> None:
    said = Said("show", "FairEpidemic-v0")
    assert "caution A small gap of vaccinations, the short-term measure, does not show" in said.flat


def test_a_users_environment_has_a_page_and_a_column_of_methods() -> None:
    said = Said("show", "tests.test_tasks:TestDesk-v0")
    assert "long-term measure (long) gap of the rate since the start of the episode" in said.flat
    assert "labels False" in said.flat and "gender: man, woman" in said.flat
    header, _, scripted, *_ = Said("--import", "tests.test_tasks", "show", "methods").text.splitlines()
    assert header.split()[-1] == "TestDesk"
    assert scripted.split() == ["scripted", *["yes"] * 9, "none"]
    assert "variant must be left out" in mistake("show", "tests.test_tasks:TestDesk-v0", "--variant", "x")


def test_the_notions_are_listed_with_their_aliases() -> None:
    said = Said("show", "notions")
    assert "demographic_parity (group)" in said.text
    assert "statistical parity" in said.text


def test_list_and_show_need_no_extra() -> None:
    """The libraries of the extras cannot be imported in that process."""
    optional = [extras.module_of(name) for extra in extras.PURPOSES for name in extras.names(extra)]
    blocked = f"import sys; sys.modules.update(dict.fromkeys({optional}))"
    program = f"{blocked}; from fair_envs.cli import main; main()"
    for arguments in (["list"], ["show", ENV_ID], ["show", "notions"]):
        run = run_python("-c", program, *arguments)
        assert (run.returncode, run.stderr) == (0, ""), run.stderr


def in_terminal(*arguments: str, **changes: str) -> str:
    """Return what a command shows in a terminal of a size for one page, with changes of its environment."""
    ours, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", **changes}
    program = [sys.executable, "-m", "fair_envs.cli", *arguments]
    with subprocess.Popen(program, stdin=terminal, stdout=terminal, stderr=terminal, env=environment):
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # on Linux, when the command has ended
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("what", ["FairLending-v0", "notions"])
def test_a_terminal_shows_a_page_in_the_pager(what: str) -> None:
    shown = in_terminal("show", what, PAGER="sed 's/^/paged: /'").splitlines()
    assert len(shown) > 50
    assert [line for line in shown if not line.startswith(("paged: ", "fair-envs: loading"))] == []


def test_a_pipe_gets_a_page_without_the_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "sed 's/^/paged: /'")
    run = run_python("-m", "fair_envs.cli", "show", "FairLending-v0")
    assert "FairLending-v0" in run.stdout and "paged" not in run.stdout and "\x1b" not in run.stdout


def test_a_terminal_says_which_library_is_loading(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(2)\nraise ImportError('a broken library')\n")
    shown = in_terminal("train", "--help", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert shown.count("fair-envs: loading PyTorch ...") == 1 and "a broken library" in shown


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with this package in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


# ------------------------------------------------------------------------------------------------- mistakes


def test_an_unknown_id_is_named_with_those_that_exist() -> None:
    ids = ", ".join(sorted(TABLE))
    told = f"id must be one of {ids}, notions, methods, got 'FairWheat-v0'; did you mean 'FairHarvest-v0'?"
    assert mistake("show", "FairWheat-v0") == told
    assert mistake("show", "method").endswith("got 'method'; did you mean 'methods'?")
    assert "got 'FairWheat-v0'" in mistake("play", "FairWheat-v0", *BRIEFLY)


def test_an_unknown_variant_is_named() -> None:
    assert "variant must be one of 'melting_pot' or None, got 'x'" in mistake("show", ENV_ID, "--variant", "x")


@pytest.mark.parametrize(
    ("param", "line"),
    [
        ("agents=many", "agents must be an integer between 1 and 10000, got 'many'"),
        ("agents=0", "agents must be between 1 and 10000, got 0"),
        ("scaled=maybe", "scaled must be True or False, got 'maybe'"),
        ("handicap=hat", "handicap must be one of 'turn', 'movement', got 'hat'"),
        ("agents", "param must be name=value, got 'agents'"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_was_expected(param: str, line: str) -> None:
    assert mistake("play", ENV_ID, *BRIEFLY, "--param", param) == line


def test_an_unknown_parameter_is_named() -> None:
    assert mistake("play", ENV_ID, *BRIEFLY, "--param", "wheat=3").startswith(
        "got an unexpected keyword argument 'wheat'. The"
    )


def test_a_parameter_given_twice_is_refused() -> None:
    assert "agents" in mistake("play", ENV_ID, *BRIEFLY, "--param", "agents=3", "--param", "agents=4")


def test_parameters_become_values_of_their_types() -> None:
    given = ["agents=8", "sensitive_fraction=1", "scaled=false", "legitimate=skill"]
    values = cli.environment_parameters(ENV_ID, given)
    assert values == {"agents": 8, "sensitive_fraction": 1.0, "scaled": False, "legitimate": "skill"}
    assert type(values["sensitive_fraction"]) is float


def test_parameters_are_read_in_the_variant_of_the_run() -> None:
    base = {"variant": "melting_pot", "patches": 30}
    assert cli.environment_parameters(ENV_ID, ["agents=4"], base=base) == {**base, "agents": 4}


def test_an_unknown_paper_is_named() -> None:
    assert "lamalfa2025" in mistake("reproduce", "nobody1999")


def test_a_study_is_not_run_into_a_folder_that_exists(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.experiments import seeds

    kept = empty_folder / "study" / "kept.txt"
    kept.parent.mkdir()
    kept.write_text("kept")
    monkeypatch.setattr(seeds, "run_cells", None)  # it is not reached
    assert "out must be a new folder" in mistake("reproduce", "lamalfa2025", "--out", "study")
    assert kept.read_text() == "kept"


def test_debug_shows_the_traceback_and_may_stand_anywhere() -> None:
    program = "from fair_envs.cli import main; main()"
    quiet, loud = (run_python("-c", program, "show", "Nobody-v0", *more) for more in ([], ["--debug"]))
    (line,) = quiet.stderr.splitlines()
    assert line.startswith("fair-envs: id must be one of ") and line.endswith("got 'Nobody-v0'")
    assert (quiet.returncode, quiet.stdout) == (2, "")
    assert "Traceback" in loud.stderr
    assert loud.returncode == 1


@pytest.mark.parametrize(
    ("library", "extra"), [("torch", "baselines"), ("stable_baselines3", "baselines"), ("pygame", "render")]
)
def test_a_missing_library_is_told_with_the_command_that_installs_it(library: str, extra: str) -> None:
    missing = ModuleNotFoundError(f"No module named '{library}.nn'", name=f"{library}.nn")
    assert cli.spelled_out(missing).endswith(f"pip install 'fair-envs[{extra}]'")


# ----------------------------------------------------------------------------------------------------- play


def test_a_film_shows_so_many_different_steps(empty_folder: Path) -> None:
    imageio = pytest.importorskip("imageio.v3")
    pytest.importorskip("pygame")
    said = Said("play", ENV_ID, *TINY_OPTIONS, "--gif", "films/film.gif", "--frames", "5")
    assert said.code == 0, said.text
    frames = imageio.imread(empty_folder / "films" / "film.gif")
    assert len(frames) == 5
    assert (frames[0] != frames[-1]).any()


def test_a_film_is_not_overwritten(empty_folder: Path) -> None:
    (empty_folder / "film.gif").write_text("kept")
    assert "out must be a new path, got 'film.gif'" in mistake("play", ENV_ID, *BRIEFLY, "--gif", "film.gif")
    assert (empty_folder / "film.gif").read_text() == "kept"


def test_a_window_opens_and_closes_after_so_many_steps() -> None:
    pytest.importorskip("pygame")
    said = Said("play", ENV_ID, *TINY_OPTIONS, "--frames", "3", "--agent", "agent_2")
    assert said.code == 0, said.text
    assert "agent_2 is controlled by you" in said.text
    assert "space: ripen/eat" in said.text


def test_an_agent_is_not_controlled_in_an_animation(empty_folder: Path) -> None:
    line = "agent must be left out for an animation, in which the policy controls all agents, got agent_9"
    assert mistake("play", ENV_ID, "--agent", "agent_9", "--gif", "film.gif") == line
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("env_id", ["FairAttention-v0", "FairCollege-v0", "FairEpidemic-v0"])
def test_what_has_no_key_for_each_action_is_watched(env_id: str) -> None:
    pytest.importorskip("pygame")
    said = Said("play", env_id, "--frames", "2")
    assert said.code == 0 and f"watching: {env_id} has no key for each action" in said.flat


def test_an_unknown_agent_is_named() -> None:
    expected = "agent must be none or one of agent_0 to agent_7, got 'agent_8'"
    assert mistake("play", ENV_ID, *BRIEFLY, *TINY_OPTIONS, "--agent", "agent_8") == expected


class TestTheKeyboard:
    """Keys are posted as a window would post them."""

    @pytest.fixture
    def pygame(self) -> Any:
        pygame = pytest.importorskip("pygame")
        pygame.display.init()
        pygame.display.set_mode((8, 8))
        pygame.event.clear()
        yield pygame
        pygame.display.quit()

    def press(self, pygame: Any, key: int) -> None:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))

    def test_the_key_pressed_last_is_the_action(self, pygame: Any) -> None:
        keyboard = playing.Keyboard(make_rules(ENV_ID, **LITTLE))
        self.press(pygame, pygame.K_LEFT)
        self.press(pygame, pygame.K_SPACE)
        assert keyboard.action() == 5
        assert keyboard.action() == 0

    def test_escape_leaves(self, pygame: Any) -> None:
        keyboard = playing.Keyboard(make_rules(ENV_ID, **LITTLE))
        keyboard.action()
        assert not keyboard.left
        self.press(pygame, pygame.K_ESCAPE)
        keyboard.action()
        assert keyboard.left

    def test_a_decision_waits_for_a_key(self, pygame: Any) -> None:
        keyboard = playing.Keyboard(make_rules("FairHiring-v0"))
        self.press(pygame, pygame.K_x)
        self.press(pygame, pygame.K_1)
        assert keyboard.wait() == 1
        self.press(pygame, pygame.K_ESCAPE)
        with pytest.raises(playing.PlayerLeftError):
            keyboard.wait()

    def test_a_decision_maker_is_asked_and_escape_decides_nothing(
        self, pygame: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rules, decided = make_rules("FairHiring-v0"), list[int]()
        keys = iter([pygame.K_1, pygame.K_0, pygame.K_ESCAPE])

        def wait(keyboard: playing.Keyboard) -> int:
            self.press(pygame, next(keys))
            decided.append(waits(keyboard))
            return decided[-1]

        waits = playing.Keyboard.wait
        monkeypatch.setattr(playing.Keyboard, "wait", wait)
        playing.play_in_window(rules, RandomPolicy(rules), seed=0, agent=0)
        assert decided == [1, 0]

    def test_an_action_that_the_rules_lack_has_no_key(self) -> None:
        assert "e" not in playing.keys_of(make_rules(ENV_ID, **LITTLE))
        assert playing.keys_of(make_rules(ENV_ID, **LITTLE, separate_ripening=True))["e"] == 8


def test_random_play_is_a_function_of_the_seed() -> None:
    from fair_envs.evaluation import LanesWorld, begun, rollout

    rules = make_rules(ENV_ID, **LITTLE)
    actions = [
        next(rollout(LanesWorld(begun(rules, np.array([seed], np.uint64))), RandomPolicy(rules))).action
        for seed in (3, 3, 4)
    ]
    assert actions[0].shape == (1, 8)
    assert (actions[0] == actions[1]).all()
    assert (actions[0] != actions[2]).any()


def test_the_agent_on_the_keyboard_has_a_box_around_it() -> None:
    pytest.importorskip("pygame")
    from fair_envs.core import Lanes

    rules = make_rules(ENV_ID, **LITTLE)
    lanes, renderer = Lanes(rules, 1), rules.renderer()
    lanes.seed(0)
    lanes.restart()
    lane = lanes.records[0]
    plain, boxed = renderer.frame(lane), renderer.frame(lane)
    renderer.mark(boxed, lane, 3)
    changed = np.argwhere((plain != boxed).any(axis=2))
    size = renderer.cell
    assert (np.ptp(changed, axis=0) == size - 1).all()
    assert len(changed) < size**2
    assert changed[0][1] // size == lane["x"][3]


# ------------------------------------------------------------------------------------------ train, evaluate

SMALL = ["--steps", "640", "--lanes", "2", "--n-steps", "20", "--net-arch", "8,8", "--no-progress"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small training of fair-PPO."""
    pytest.importorskip("stable_baselines3")
    folder = tmp_path_factory.mktemp("runs") / "small"
    options = (*TINY_OPTIONS, "--param", "observation=ten", *SMALL, "--alpha", "0.5", "--seed", "3")
    said = Said("train", "fair-ppo", ENV_ID, *options, "--out", folder)
    assert said.code == 0, said.text
    assert f"fair-envs evaluate {folder}" in said.text
    return folder


def test_help_does_not_show_defaults_that_the_preset_replaces() -> None:
    said = Said("train", "elbert", "--help").flat
    assert "Environments that are played in parallel. [the preset decides; an integer at least 1]" in said
    assert "[the preset decides; a number at least 0]" in said  # of alpha
    assert "Discount factor. [0.99;" in said


def test_a_training_whose_limit_is_never_exceeded_says_so(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    said = Said("train", "lagrangian", "FairHiring-v0", "--limit", "1", *SMALL, "--out", tmp_path / "run")
    assert "note: the limit was never exceeded" in said.flat and "this training equals ppo" in said.flat


def test_a_training_of_more_steps_than_asked_for_says_so(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    said = Said("train", "ppo", "FairHiring-v0", *SMALL, "--steps", "10", "--out", tmp_path / "run")
    assert "note: 40 steps were taken instead of 10" in said.flat


def missing_options(method: str, text: str) -> list[str]:
    """Return the settings of a method whose options a help text does not show."""
    from fair_envs.baselines.methods import named

    names = [one.name for one in named(method).fields() if one.name not in cli.UNASKED]
    return [name for name in names if f"--{name.replace('_', '-')}" not in text]


@pytest.fixture
def learning() -> Any:
    """Return the module that trains, or skip."""
    pytest.importorskip("stable_baselines3")
    from fair_envs.baselines import training

    return training


def test_a_training_keeps_the_settings_that_were_given(run_folder: Path) -> None:
    config = json.loads((run_folder / "config.json").read_text())
    given = ("algorithm", "env_id", "alpha", "seed", "steps", "net_arch", "parameters")
    expected = ["fair-ppo", ENV_ID, 0.5, 3, 640, [8, 8], {**LITTLE, "observation": "ten"}]
    assert [config[name] for name in given] == expected


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("train ppo FairHarvest-v0 --trunk 8", "No such option: --trunk"),
        ("train ppo FairHarvest-v0 --lr 1", "No such option: --lr (Possible options: --learning-rate)"),
        ("train ppo FairHarvest-v0 --num-envs 1", "No such option: --num-envs (Possible options: --n-envs)"),
        ("train ppo FairHarvest-v0 -n 1", "No such option: -n (Possible options: --total-timesteps)"),
        (
            "train f-ppo FairLending-v0 --net-arch 8",
            "No such option: --net-arch (Possible options: --pi, --trunk, --vf)",
        ),
        ("train pcn FairHiring-v0 --net-arch 8", "No such option: --net-arch"),
        (
            "train ppo --env FairHarvest-v0",
            "No such option: --env; ID is an argument, as in: fair-envs train ppo FairHarvest-v0",
        ),
        (
            "train --algo ppo",
            "No such option: --algo; METHOD is an argument, as in: fair-envs train ppo FairHarvest-v0",
        ),
    ],
)
def test_an_option_of_another_library_is_explained(command: str, line: str, learning: Any) -> None:
    said = Said(*command.split())
    last = said.text.splitlines()[-1].removeprefix("Error: ")
    last = re.sub(r" Did you mean (.*)\?$", r" (Possible options: \1)", last)  # as older releases of Click say it
    assert said.code == 2 and last == line


def test_the_version_is_printed() -> None:
    said = Said("--version")
    assert (said.code, said.text) == (0, f"fair-envs {fair_envs.__version__}\n")


def test_every_setting_of_a_training_is_an_option(learning: Any) -> None:
    said = Said("train", "fair-ppo", "--help")
    assert said.code == 0
    assert missing_options("fair-ppo", said.text) == []
    assert "Weight of the retrospective cost of fair-PPO. [1.0; a number at least 0]" in said.flat
    assert "--total-timesteps, --steps" in said.flat and "--n-envs, --lanes" in said.flat
    plain = Said("train", "ppo", "--help").text
    assert "--alpha" not in plain and "--net-arch" in plain


def test_wrong_settings_leave_no_folder_behind(learning: Any, empty_folder: Path) -> None:
    from fair_envs.baselines import methods

    known = ", ".join(methods.names())
    assert f"method must be one of {known}, got 'dqn'" in mistake("train", "dqn", ENV_ID)
    expected = "method must support FairCollege-v0, got 'f-ppo-s', which needs a massager, such as the one for two"
    said = mistake("train", "f-ppo-s", "FairCollege-v0")
    assert expected in said and "; try a-ppo, " in said
    assert "got 'FairWheat-v0'" in mistake("train", "ppo", "FairWheat-v0")
    assert "ID must be given, as in: fair-envs train ppo" in mistake("train", "ppo")
    assert "METHOD and ID must be given" in mistake("train")
    assert "out must name the folder" in mistake("train", "--resume")
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("env_id", "options", "line"),
    [
        (ENV_ID, "--gamma 2", "--gamma must be between 0 and 1, got 2.0"),
        (ENV_ID, "--steps 1e5x", "--total-timesteps or --steps must be an integer at least 1, got '1e5x'"),
        (ENV_ID, "--n-epochs 1.5", "--n-epochs must be an integer at least 1, got '1.5'"),
        (ENV_ID, "--device cuda", "--device must be 'cpu', got 'cuda'; networks of these sizes train faster on a CPU"),
        (
            ENV_ID,
            "--net-arch 8,x",
            "--net-arch must be integers at least 1, separated by commas, such as 64,64, got '8,x'",
        ),
        (ENV_ID, "--preset published", "preset must be one of 'recommended', got 'published'"),
        (
            "FairLending-v0",
            "--sharing groups",
            "--sharing must be 'all' on FairLending-v0, which has one decision-maker, got 'groups'",
        ),
    ],
)
def test_a_wrong_setting_is_named_by_its_option(env_id: str, options: str, line: str, learning: Any) -> None:
    assert mistake("train", "ppo", env_id, *options.split()) == line


def test_whole_numbers_and_lists_are_read_as_other_tools_write_them(learning: Any, empty_folder: Path) -> None:
    written = [
        "--total-timesteps",
        "1e2",
        "--n-envs",
        "1_0",
        "--n-steps",
        "5.0",
        "--net-arch",
        "[8,4]",
        "--seed",
        "1e1",
    ]
    said = Said("train", "ppo", ENV_ID, *TINY_OPTIONS, *written, "--out", "run")
    assert said.code == 0, said.text
    config = json.loads((empty_folder / "run" / "config.json").read_text())
    names = ("steps", "lanes", "n_steps", "net_arch", "seed")
    assert [config[name] for name in names] == [100, 10, 5, [8, 4], 10]
    rows = json.loads((empty_folder / "run" / "metrics.json").read_text())
    trained = rows[-1]["time/total_timesteps"]
    assert trained > 100 and f"{trained:,}/{trained:,} agent steps" in said.text


def test_a_run_that_exists_is_not_trained_over(run_folder: Path) -> None:
    before = (run_folder / "config.json").read_bytes()
    assert "which exists" in mistake("train", "ppo", ENV_ID, "--out", run_folder)
    assert (run_folder / "config.json").read_bytes() == before


def test_a_run_is_resumed_by_its_folder_alone(run_folder: Path) -> None:
    said = Said("train", "--out", run_folder, "--resume", "--no-progress")
    assert said.code == 0 and f"{run_folder} is already complete; measure it with" in said.flat, said.text


def test_a_run_is_not_resumed_with_other_settings(run_folder: Path) -> None:
    resume = ("train", "fair-ppo", "--out", run_folder, "--resume")
    assert "--alpha must be 0.5 to resume" in mistake(*resume, "--alpha", "0.7")
    longer = mistake(*resume, "--steps", "1280")
    assert "it cannot be extended" in longer and longer.endswith("train a new run in another folder")
    assert "parameters must be" in mistake(*resume, "--param", "agents=4")
    assert "algorithm must be 'fair-ppo' to resume" in mistake("train", "ppo", *resume[2:])


def test_an_interrupted_training_says_how_to_go_on(learning: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, out: Path, **__: Any) -> None:
        if begun:
            out.mkdir(parents=True)
            (out / "config.json").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "train_as", interrupted)
    begun = False
    said = Said("train", "ppo", ENV_ID, *TINY_OPTIONS, *SMALL)
    assert said.code == 130
    assert "stopped before anything was saved" in said.flat
    begun = True
    said = Said("train", "ppo", ENV_ID, *TINY_OPTIONS, *SMALL)
    assert said.code == 130
    assert f"fair-envs train --out runs/ppo-{ENV_ID}-1 --resume" in said.flat


def test_an_evaluation_prints_and_writes_every_notion(run_folder: Path, empty_folder: Path) -> None:
    said = Said("evaluate", run_folder, "--episodes", "3", "--all", "--out", "found", "--no-progress")
    assert said.code == 0, said.text
    report = json.loads((empty_folder / "found" / "report.json").read_text())
    with (empty_folder / "found" / "report.csv").open(newline="") as file:
        lines = {line["number"]: line for line in csv.DictReader(file)}
    measured = {row["number"]: row for row in report["measured"]}
    assert set(lines) == set(measured)
    for name in (
        "mean_return[with]",
        "mean_return[without]",
        "demographic_parity_ratio",
        "demographic_parity_difference",
        "conditional_parity_ratio[red]",
        "counterfactual_fairness_difference[own]",
        "counterfactual_fairness_difference[same]",
        "counterfactual_fairness_ratio[games]",
        "gini",
    ):
        assert name in said.text
        assert float(lines[name]["value"]) == measured[name]["value"]
        assert (lines[name]["n"], lines[name]["level"]) == ("3", "0.95")
    assert (report["episodes"], report["training"]["alpha"]) == (3, 0.5)


def test_a_long_report_of_a_method_is_only_printed_on_request(run_folder: Path, empty_folder: Path) -> None:
    said = Said("evaluate", run_folder, "--episodes", "2", "--out", "found", "--no-progress")
    count = len(json.loads((empty_folder / "found" / "report.json").read_text())["measured"])
    line = f"The report of the run's method has {count} more numbers, in report.csv, and printed with --all."
    assert line in said.flat and "demographic_parity_ratio" not in said.text


def test_of_several_policies_the_main_numbers_are_printed_and_all_on_request(empty_folder: Path) -> None:
    options = ("FairLending-v0", "-p", "horizon=30", "--beside", "--episodes", "2", "--no-progress")
    main, every = Said("evaluate", *options), Said("evaluate", *options, "--all")
    assert main.code == every.code == 0, main.text + every.text
    assert "predictive_equality" in every.text and "predictive_equality" not in main.text
    assert "After ~: the noise floor" in main.flat
    assert "Bounds, which use the ground truth that methods do not observe: equal-opportunity." in main.flat


def test_a_runs_decisions_are_exported_and_kept_with_its_evaluation(run_folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    options = ("--episodes", "2", "--no-progress")
    said = Said("export", run_folder, *options)
    assert said.text.strip() == f"saved {run_folder}/export-1.csv", said.text
    assert Said("evaluate", run_folder, *options, "--record", "--out", "found").code == 0
    (file,) = Path("found").glob("record.*")
    record = pandas.read_csv(file) if file.suffix == ".gz" else pandas.read_parquet(file)
    table = pandas.read_csv(run_folder / "export-1.csv")
    assert set(record.pop("policy")) == {str(run_folder)}
    assert {"probability[0]", "reward", "sensitive[half_speed]"} < set(table.columns)
    pandas.testing.assert_frame_equal(record, table, check_dtype=False)
    assert "policy must be left out for a run, got random" in mistake("export", run_folder, "--policy", "random")


def test_evaluations_are_numbered_and_none_is_overwritten(run_folder: Path, empty_folder: Path) -> None:
    (empty_folder / "kept").mkdir()
    assert "which exists" in mistake("evaluate", run_folder, "--episodes", "1", "--out", "kept")
    for _ in range(2):
        assert Said("evaluate", run_folder, "--episodes", "1", "--no-progress").code == 0
    assert {path.name for path in run_folder.glob("evaluation-*")} == {"evaluation-1", "evaluation-2"}


def test_an_assessment_does_not_depend_on_how_many_episodes_are_played_at_once(
    run_folder: Path, learning: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fair_envs.baselines import agents

    model, _ = learning.load(run_folder)
    rules, found = make_rules(ENV_ID, **LITTLE), []
    for batch in (2, 16):
        monkeypatch.setattr(agents, "BATCH", batch)
        found.append(agents.assess(model, rules, episodes=5, seed=7))
    assert found[0].estimates.keys() == found[1].estimates.keys()
    assert all(found[0].estimates[name,].value == found[1].estimates[name,].value for name in ("gini", "maximin"))
    assert found[0].details == found[1].details
    assert np.sum(found[0].details["selected"]) == 5 * LITTLE["horizon"] * LITTLE["agents"]


def test_the_counterfactual_notion_compares_the_worlds_it_names(run_folder: Path, learning: Any) -> None:
    from fair_envs.baselines.agents import assess, counterfactual

    model, _ = learning.load(run_folder)
    rules = make_rules(ENV_ID, **LITTLE)
    found = assess(model, rules, episodes=4, seed=7).estimates
    worlds = counterfactual(model, rules, episodes=4, seed=7)
    games = worlds.none.values.mean() - worlds.everybody.values.mean()
    assert found["counterfactual_fairness_difference[games]",].value == pytest.approx(games)
    protected = worlds.factual.members("sensitive")
    for name, world in (("own", worlds.own), ("same", worlds.same)):
        gap = (world.values - worlds.factual.values)[protected].mean()
        assert found[f"counterfactual_fairness_difference[{name}]",].value == pytest.approx(gap)


def test_what_is_no_run_is_neither_evaluated_nor_played(empty_folder: Path) -> None:
    pytest.importorskip("stable_baselines3")
    ids = ", ".join(TABLE)
    expected = f"RUN|ID must be the folder of a run, with a config.json, or {ids}, got 'FairTrafic-v0'"
    assert mistake("evaluate", "FairTrafic-v0") == f"{expected}; did you mean 'FairTraffic-v0'?"
    nobody = "policy must be 'random', 'greedy', 'reactive', a run's folder or module:function, got 'nowhere'"
    assert mistake("play", ENV_ID, *BRIEFLY, "--policy", "nowhere") == nobody
    missing = "got 'runs/nope', which does not exist"
    assert mistake("evaluate", "runs/nope").endswith(missing)
    assert mistake("evaluate", ENV_ID, *TINY_OPTIONS, "--policy", "runs/nope").endswith(missing)
    (empty_folder / "empty").mkdir()
    assert mistake("evaluate", f"{empty_folder}/empty").endswith("which has none")
    assert "config.json" in mistake("play", ENV_ID, *BRIEFLY, "--policy", "empty")


def test_a_closed_pipe_is_no_error_and_the_result_is_saved(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: Any, **__: Any) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("fair_envs.cli.evaluate.show_evaluations", closed)  # as with: | head
    short = ("-p", "horizon=5", "--episodes", "1", "--no-progress", "--out", "found")
    said = Said("evaluate", "FairHiring-v0", *short)
    assert (said.text, said.code) == ("", 1) and (empty_folder / "found" / "evaluation.json").exists()


def test_a_trained_policy_plays_in_the_world_of_its_run(run_folder: Path, empty_folder: Path) -> None:
    pytest.importorskip("pygame")
    imageio = pytest.importorskip("imageio.v3")
    for name, more in (("own", []), ("chance", TINY_OPTIONS)):
        policy = ["--policy", run_folder] if name == "own" else []
        said = Said("play", ENV_ID, *policy, *more, "--gif", f"{name}.gif", "--frames", "6")
        assert said.code == 0, said.text
    own, chance = (imageio.imread(empty_folder / f"{name}.gif") for name in ("own", "chance"))
    assert own.shape == chance.shape
    assert (own != chance).any()


# ---------------------------------------------------------------------------------------------- evaluate ID

CITY = ("FairTraffic-v0", "--param", "horizon=20")
HIRING = ("FairHiring-v0", "--param", "horizon=60")
HERE = "tests.test_cli"


def still(observation: Any, uniforms: Any) -> Any:
    return np.zeros(uniforms.shape, np.int64)


def without_luck(observation: Any) -> Any:
    raise AssertionError("it is not called")


def failing_later(observation: Any, uniforms: Any) -> Any:
    if len(uniforms) > 1:  # not in the trial with one lane
        raise ValueError("no action for so many")
    return np.zeros(uniforms.shape, np.int64)


class Sitting:
    def __init__(self, observation: Any, uniforms: Any) -> None: ...


def report_of(*arguments: Any, out: str = "found") -> tuple[str, dict[tuple[str, ...], float]]:
    """Evaluate an environment; return what was said and the numbers by policy, notion, attribute and stratum."""
    said = Said("evaluate", *arguments, "--episodes", "3", "--seed", "5", "--out", out, "--no-progress")
    assert said.code == 0, said.text
    rows = json.loads((Path(out) / "report.json").read_text())["measured"]
    keys = ("policy", "notion", "attribute", "within")
    return said.flat, {tuple(row[key] for key in keys): row["value"] for row in rows}


def test_an_environment_is_evaluated_policy_by_policy() -> None:
    said, found = report_of(*CITY, "--policy", "shortest-time", "--policy", "random", "--form", "difference")
    rules = make_rules("FairTraffic-v0", horizon=20)
    played = play_system(rules, RandomPolicy(rules), episodes=3, seed=5)
    expected = {("random", one.notion, one.attribute, one.within): one.values.mean() for one in gaps(played)}
    assert len(expected) == 6 and all(found[key] == pytest.approx(value) for key, value in expected.items())
    assert found["random", "total_return", "", ""] != found["shortest-time", "total_return", "", ""]
    assert "attribute notion within shortest-time random" in said and "fast=slow" in said
    assert MEANINGS["difference"] in said and "lose it at once" in said
    assert "95 % confidence intervals; n = 3 episodes." in said


def test_scripted_policies_that_cannot_play_do_not_stand_beside(empty_folder: Path) -> None:
    """A variant has other parameters and policies; the window of scores is not observed in the other case."""
    few = ("-p", "horizon=20", "--beside", "--episodes", "2", "--no-progress")
    said = Said("evaluate", "FairHarvest-v0", "-p", "variant=melting_pot", *few)
    assert said.code == 0 and "random" in said.text, said.text
    said = Said("evaluate", "FairLending-v0", "-p", "observation=ml-fairness-gym", *few)
    assert said.code == 0 and "lenient" in said.text and "observed-opportunity" not in said.text, said.text
    played = ("-p", "observation=ml-fairness-gym", "--policy", "observed-opportunity")
    assert "observation must include share_0_advantaged" in mistake("evaluate", "FairLending-v0", *played)


def test_random_and_scripted_policies_stand_beside_a_policy(empty_folder: Path) -> None:
    options = ("-p", "horizon=30", "--policy", f"{HERE}:still", "--beside", "--episodes", "2", "--no-progress")
    said = Said("evaluate", "FairLending-v0", *options, "--out", "found")
    assert said.code == 0, said.text
    found = json.loads((empty_folder / "found" / "evaluation.json").read_text())
    names = [f"{HERE}:still", "random", *task_of("FairLending-v0").scripted]
    assert [one["policy"] for one in found] == names
    assert all(one["about"]["parameters"] == {"feedback": "full", "horizon": 30} for one in found)  # with the task's
    rates = {one["policy"]: [row["value"] for row in one["rows"] if row["section"] == "rate"] for one in found}
    assert rates["always"] == [1, 1] and rates[f"{HERE}:still"] == [0, 0]
    assert "always: No two groups differ in their true positive rate." in said.text
    assert said.text.startswith("policy ") and "\nmax-reward  " in said.text  # five policies are rows
    assert "all others are in evaluation.csv" in said.text
    assert not (empty_folder / "found" / "report.json").exists()


def test_each_run_is_evaluated_in_the_parameters_of_its_training(run_folder: Path, empty_folder: Path) -> None:
    other = empty_folder / "extended"
    options = (*TINY_OPTIONS, "-p", "observation=extended", *SMALL, "--out", other)
    assert Said("train", "fair-ppo", ENV_ID, *options).code == 0
    policies = ("--policy", "random", "--policy", run_folder, "--policy", other)
    said = Said("evaluate", ENV_ID, *policies, "--episodes", "2", "--no-progress", "--out", "found")
    assert said.code == 0, said.text
    found = json.loads((empty_folder / "found" / "evaluation.json").read_text())
    assert [one["about"]["parameters"]["observation"] for one in found] == ["ten", "ten", "extended"]
    assert "The evaluations differ in the environment's observation (ten, extended)" in said.flat
    extended = fair_envs.evaluate(ENV_ID, other, episodes=2, shuffles=0)
    assert extended.performance.value == found[2]["rows"][0]["value"]


def test_the_task_of_another_environment_can_be_used(empty_folder: Path) -> None:
    short = ("-p", "horizon=30", "--episodes", "2", "--no-progress", "--out", "found")
    said = Said("evaluate", "FairLending-v0", "--task", "FairHiring-v0", "-p", "feedback=full", *short)
    assert said.code == 0 and "share distance" in said.text, said.text
    line = mistake("evaluate", "FairCollege-v0", "--task", "FairLending-v0", *short[:-1], "other")
    assert line.startswith("task must be one for FairCollege-v0, got that of FairLending-v0, whose long-term measure")
    assert mistake("evaluate", "FairCollege-v0", "--task", "Nowhere-v0").startswith("id must be one of")


def test_an_environment_that_only_gymnasium_knows_is_evaluated(empty_folder: Path) -> None:
    import gymnasium as gym

    gym.register("Office-v0", entry_point="tests.assessment.office:Office")
    try:
        said = Said("evaluate", "Office-v0", "-p", "bonus=0.5", "--episodes", "2", "--no-progress", "--out", "found")
        assert said.code == 0, said.text
        (found,) = json.loads((empty_folder / "found" / "evaluation.json").read_text())
        assert found["about"]["parameters"] == {"bonus": 0.5} and found["groups"] == ["north", "south"]
        assert "param must be one of clients, bonus" in mistake("evaluate", "Office-v0", "-p", "bonuss=1")
    finally:
        del gym.registry["Office-v0"]


def test_a_run_has_the_same_table_with_other_policies_beside_it(run_folder: Path, empty_folder: Path) -> None:
    options = ("--policy", "random", "--episodes", "2", "--no-progress", "--out", "found")
    said = Said("evaluate", run_folder, *options)
    assert said.code == 0, said.text
    found = json.loads((empty_folder / "found" / "evaluation.json").read_text())
    assert [one["policy"] for one in found] == [str(run_folder), "random"]
    assert {row["section"] for row in found[0]["rows"]} == {row["section"] for row in found[1]["rows"]}
    assert (empty_folder / "found" / "report.json").exists()  # that of the method


def test_runs_are_compared(run_folder: Path, empty_folder: Path) -> None:
    options = ("--policy", "random", "--episodes", "2", "--no-progress")
    said = Said("compare", run_folder, *options, "--out", "found")
    assert said.code == 0, said.text
    assert "gap of return per step" in said.flat and "saved found" in said.text
    assert (empty_folder / "found" / "comparison.md").exists() and (run_folder / "evaluations").is_dir()
    again = Said("compare", "found/evaluations.json", "--no-progress", "--out", "again")
    assert again.text == said.text.replace("saved found", "saved again")
    assert "RUN must be the folder of a run" in mistake("compare", "nowhere")
    assert "which exists" in mistake("compare", run_folder, "--out", "found")
    assert "must be made with episodes=3" in mistake("compare", "found/evaluations.json", "--episodes", "3")


def test_the_form_of_the_definition_has_its_own_sign_and_each_agent_can_be_alone() -> None:
    said, found = report_of(ENV_ID, *TINY_OPTIONS, "--form", "sum", "--flip", "each")
    assert "Positive: agents with the attribute are better off" in said and "without the attribute are" not in said
    assert "one agent at a time" in said
    rules = make_rules(ENV_ID, **LITTLE)
    played = play_system(rules, RandomPolicy(rules), episodes=3, seed=5, flip="each")
    for one in gaps(played, form="sum"):
        assert found["random", one.notion, one.attribute, one.within] == pytest.approx(np.nanmean(one.values))


def test_a_run_and_a_function_are_policies_of_an_environment(run_folder: Path) -> None:
    options = ("--policy", run_folder, "--policy", f"{HERE}:still", "--form", "difference")
    _, found = report_of(ENV_ID, *TINY_OPTIONS, *options)
    rules = make_rules(ENV_ID, **LITTLE)
    total = play_system(rules, still, episodes=3, seed=5).returns.values.sum(axis=1).mean()
    assert found[f"{HERE}:still", "total_return", "", ""] == pytest.approx(total)
    assert (str(run_folder), "total_return", "", "") in found
    assert "model must" in mistake("evaluate", *CITY, "--policy", run_folder)


def test_a_decision_maker_is_evaluated_by_what_it_decides() -> None:
    said, found = report_of(*HIRING, "--attribute", "gender")
    assert "Gaps are differences between groups in the decisions about them" in said and "Positive" not in said
    assert ("random", "demographic_parity", "gender", "") in found
    for option, value in {"form": "sum", "flip": "each"}.items():
        expected = f"{option} must be left out for a decision-maker, got {value}"
        assert mistake("evaluate", *HIRING, f"--{option}", value) == expected


def test_an_error_of_a_policy_is_shown_once_and_without_internal_names() -> None:
    said = Said("evaluate", *HIRING, "--policy", f"{HERE}:failing_later", "--episodes", "130", "--no-progress")
    assert (said.code, said.text) == (1, "fair-envs: ValueError: no action for so many\n")


@pytest.mark.parametrize(
    ("method", "env_id"),
    [
        ("ppo", "FairHiring-v0"),
        ("ppo", "FairCollege-v0"),
        ("sb3-ppo", "FairAttention-v0"),
        ("sb3-ppo", "FairHiring-v0"),
    ],
)
def test_shared_networks_of_a_decision_maker_are_evaluated_by_their_decisions(
    method: str, env_id: str, learning: Any
) -> None:
    short = ("--steps", "40", "--n-steps", "10", "--lanes", "2", "--eval-freq", "20", "--eval-episodes", "2")
    said = Said("train", method, env_id, "--shared", "-p", "horizon=10", *short, "--out", "run", "--no-progress")
    assert said.code == 0, said.text
    said = Said("evaluate", "run", "--episodes", "2", "--no-progress")
    assert said.code == 0 and "reward per step" in said.text, said.text
    system = ("evaluate", env_id, "-p", "horizon=10", "--policy", "run", "--episodes", "2", "--no-progress")
    assert Said(*system).code == 0


def test_another_attribute_is_looked_at_if_it_is_named() -> None:
    _, found = report_of(*CITY, "--attribute", "fast")
    assert {key[2] for key in found} == {"fast", ""}
    assert {key[1] for key in found} == {"demographic_parity", "conditional_parity", "total_return"}


@pytest.mark.long
def test_two_processes_write_the_same_report(empty_folder: Path) -> None:
    options = (ENV_ID, *TINY_OPTIONS, "--policy", "random", "--policy", f"{HERE}:still", "--form", "difference")
    for jobs in (1, 2):
        report_of(*options, "--jobs", jobs, out=f"jobs-{jobs}")
    for name in ("report.csv", "evaluation.csv"):
        one, two = ((empty_folder / f"jobs-{jobs}" / name).read_bytes() for jobs in (1, 2))
        assert one == two


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            (*CITY, "--policy", "fastest"),
            "policy must be 'random', 'random-turns', 'shortest-path', 'shortest-time', a run's folder or "
            "module:function, got 'fastest'",
        ),
        (
            (ENV_ID, "--policy", "shortest-time"),
            "policy must be 'random', 'greedy', 'reactive', a run's folder or module:function, got 'shortest-time'",
        ),
        (
            (ENV_ID, "--policy", "nosuch:function"),
            "policy must be the import path of a function, got 'nosuch:function': No module named 'nosuch'; it is "
            "neither installed nor in the current folder",
        ),
        ((*CITY, "--policy", "random", "--policy", "random"), "policy must name 'random' once, got it 2 times"),
        ((*CITY, "--attribute", "fast", "--attribute", "fast"), "attribute must name 'fast' once, got it 2 times"),
        ((*CITY, "--attribute", "red"), "attribute must be one of human_driven, fast, safety, got 'red'"),
        ((*CITY, "--form", "both"), "form must be one of sum, difference, total, ratio, mean_ratio, got 'both'"),
        ((*CITY, "--flip", "all"), "flip must be one of protected, each, got 'all'"),
        (
            ("FairPursuit-v0", "--flip", "each"),
            "flip must be left out for pursuit, whose agents have no attribute that can be removed, got each",
        ),
    ],
)
def test_what_cannot_be_measured_is_told_before_anything_is_played(
    arguments: tuple[str, ...], line: str, empty_folder: Path
) -> None:
    assert mistake("evaluate", *arguments) == line
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("without_luck", "a function (observations, uniforms) -> actions"),
        ("Sitting", "action must have shape"),
        ("BRIEFLY", "policy must be a Policy or a function"),
    ],
)
def test_what_is_no_policy_is_tried_out_and_told(name: str, reason: str) -> None:
    said = mistake("evaluate", ENV_ID, *TINY_OPTIONS, "--policy", f"{HERE}:{name}")
    takes = (
        "policy must take observations (B, agents, ...) and uniform numbers (B, agents) and return actions (B, agents, "
    )
    assert said.startswith(f"{takes}...) of the environment, got '{HERE}:{name}': ")
    assert reason in said
    assert reason in mistake("play", ENV_ID, *TINY_OPTIONS, *BRIEFLY, "--policy", f"{HERE}:{name}")


def test_a_search_tries_its_policy_out_too(empty_folder: Path) -> None:
    pytest.importorskip("optuna")
    options = (*TINY_OPTIONS, "--range", "growth_interval=1:9", "--policy", f"{HERE}:Sitting")
    assert "got 'tests.test_cli:Sitting': action must have shape" in mistake("design", ENV_ID, *options)
    assert list(empty_folder.iterdir()) == []


def test_options_of_an_environment_are_refused_for_a_run(run_folder: Path) -> None:
    options = {"attribute": "fast", "form": "ratio", "flip": "each"}
    for name, value in options.items():
        assert mistake("evaluate", run_folder, f"--{name}", value) == f"{name} must be left out for a run, got {value}"


def test_a_driver_is_watched(empty_folder: Path) -> None:
    pytest.importorskip("pygame")
    imageio = pytest.importorskip("imageio.v3")
    for name in ("shortest-time", f"{HERE}:still"):
        path = f"{name.partition(':')[0]}.gif"
        said = Said("play", *CITY, "--policy", name, "--gif", path, "--frames", "4")
        assert said.code == 0, said.text
    driven, standing = (imageio.imread(empty_folder / f"{name}.gif") for name in ("shortest-time", HERE))
    assert len(driven) == 4 and (driven[-1] != standing[-1]).any()


# --------------------------------------------------------------------------------------- reproduce and demo


def test_a_paper_is_run_with_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.reproduction.lamalfa2025 import report as lamalfa2025

    called: dict[str, Any] = {}
    monkeypatch.setattr(lamalfa2025, "main", lambda **given: called.update(given) or Path("x/report.md"))
    options = [
        "--scale",
        "small",
        "--out",
        "x",
        "--jobs",
        "3",
        "--engine",
        "ray",
        "--seeds",
        "1",
        "--resume",
        "--merge",
        "y",
        "--merge",
        "z",
        "--report-only",
    ]
    said = Said("reproduce", "lamalfa2025", *options, "--no-progress")
    assert said.code == 0, said.text
    assert called == {
        "scale": "small",
        "out": Path("x"),
        "jobs": 3,
        "engine": "ray",
        "seeds": 1,
        "resume": True,
        "merge_from": [Path("y"), Path("z")],
        "report_only": True,
        "progress": False,
    }


def test_a_reproduction_prints_its_verdicts(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fair_envs.cli.reproduce import show_verdicts

    show_verdicts(ROOT / "docs" / "reproduction" / "hu2024" / "report.md")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1. In lending, EO, A-PPO and F-PPO keep short-term unfairness below 0.1."
    assert lines[1].startswith("   as printed: ")
    show_verdicts(empty_folder / "report.md")  # without claims
    assert capsys.readouterr().out == ""


def test_an_unknown_scale_is_named() -> None:
    pytest.importorskip("stable_baselines3")
    assert "got 'vast'" in mistake("reproduce", "lamalfa2025", "--scale", "vast")


def test_an_interrupted_study_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.reproduction.lamalfa2025 import report as lamalfa2025

    def interrupted(*, out: Path, **_: Any) -> None:
        out.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(lamalfa2025, "main", interrupted)
    said = Said("reproduce", "lamalfa2025", "--seeds", "2", "--out", "my runs", "--merge", "other")
    assert said.code == 130
    expected = "fair-envs reproduce lamalfa2025 --scale smoke --out 'my runs' --jobs 2 --resume --seeds 2 --merge other"
    assert expected in said.flat


# --------------------------------------------------------------------------------------------------- leaderboard


def test_a_leaderboard_is_run_with_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.cli import leaderboard
    from fair_envs.leaderboard import board

    called: dict[str, Any] = {}
    monkeypatch.setattr(board, "run", lambda **given: called.update(given) or {})
    monkeypatch.setattr(
        leaderboard, "write_page", lambda folder, out, **given: called.update(page={"out": out, **given})
    )
    options = [
        "--scale",
        "small",
        "--out",
        "x",
        "--task",
        "FairLending-v0",
        "--method",
        "ggf",
        "--seeds",
        "2",
        "--resume",
    ]
    said = Said("leaderboard", *options, "--resume", "--merge", "y", "--jobs", "3", "--no-progress")
    assert said.code == 0, said.text
    assert called == {
        "scale": "small",
        "out": Path("x"),
        "jobs": 3,
        "engine": "processes",
        "tasks": ["FairLending-v0"],
        "methods": ["ggf"],
        "seeds": 2,
        "resume": True,
        "merge_from": [Path("y")],
        "progress": False,
        "page": {"out": Path("x/page"), "methods": ["ggf"], "seeds": 2, "progress": False},
    }


def test_a_report_says_first_that_rows_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.leaderboard.board import Coverage
    from tests.leaderboard.boards import board, page

    found = page(board(), FairFraud=Coverage(2, 5))
    monkeypatch.setattr("fair_envs.leaderboard.page.page_of", lambda folder, **_: found)
    first, second, *_ = Said("leaderboard", "report", "x", "--out", str(tmp_path), "--no-progress").text.splitlines()
    assert first.startswith(
        "Preliminary: rows are missing. 8 of 11 rows are stored. Complete: FairLending-v0 (1 of 2)."
    )
    assert second.startswith("passed: a planted bias ranks last")


def test_an_interrupted_leaderboard_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.leaderboard import board

    def interrupted(*, out: Path, **_: Any) -> None:
        out.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(board, "run", interrupted)
    said = Said("leaderboard", "--out", "board", "--task", "FairLending-v0")
    assert said.code == 130
    assert "fair-envs leaderboard --scale smoke --out board --jobs 2 --resume --task FairLending-v0" in said.flat


@pytest.mark.parametrize(
    ("result", "changed", "code", "words"),
    [
        ("a", {}, 0, "the same to the bit (a)"),
        ("b", {}, 0, "the same in all digits of the table, but not to the bit (a is stored, now b)"),
        ("a", {"gap": 0.4}, 1, "the result is the same, but the table has other numbers: gap 0.4 (now 0.5)"),
        ("b", {"gap": 0.4}, 1, "it differs: a is stored, now b (made by commit c; here commit d)"),
        ("b", {"gap": 0.4, "steps": 9.0}, 1, "stored: gap 0.4 (now 0.5), steps 9 (now nan)"),
        ("b", {"gap": 0.4}, 1, 'see "The same results on an AMD processor" in docs/evaluation.md'),
    ],
)
def test_a_verification_fails_if_a_number_differs(
    result: str, changed: dict[str, float], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.leaderboard import verification

    numbers = {"performance": 1.0, "gap": 0.5, "noise": 0.1}
    versions = "made by commit c; here commit d"
    found = verification.Verified("FairLending-v0/ppo/0", "a", result, numbers, True, versions, changed=changed)
    monkeypatch.setattr(verification, "verify", lambda row, out, retrain: found)
    said = Said("leaderboard", "verify", "FairLending-v0/ppo/0")
    assert said.code == code and words in said.flat


def test_an_entry_without_a_result_is_told_what_to_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.leaderboard import verification

    numbers = {"performance": 1.0, "gap": 0.5, "noise": 0.1}
    monkeypatch.setattr(
        verification,
        "verify_entry",
        lambda folder, out, progress: verification.Verified("mine", "?", "abc", numbers),
    )
    said = Said("leaderboard", "verify", str(tmp_path))
    assert said.code == 0 and 'put "abc" into entry.json' in said.flat


def test_mistakes_of_the_leaderboard_are_named() -> None:
    pytest.importorskip("stable_baselines3")
    assert "got 'vast'" in mistake("leaderboard", "--scale", "vast")
    for words in (("report", "nowhere"), ("verify", "FairLending-v0/ppo/0", "--out", "nowhere")):
        assert "folder must be that of a leaderboard" in mistake("leaderboard", *words)


def write_entry(folder: Path, policy: str) -> None:
    """Write an entry of the leaderboard."""
    given = {"task": "FairLending-v0", "name": "mine", "policy": policy, "result": "?"}
    folder.mkdir()
    (folder / "entry.json").write_text(json.dumps(given))


def test_the_module_of_an_entry_is_found_if_the_entry_is_trusted(empty_folder: Path) -> None:
    pytest.importorskip("stable_baselines3")
    write_entry(empty_folder / "mine", "my_rules:lend")
    (empty_folder / "my_rules.py").write_text("x = 1")
    assert "pass --trust" in mistake("leaderboard", "verify", "mine")
    assert "has no attribute 'lend'" in mistake("--trust", "leaderboard", "verify", "mine")


@pytest.mark.parametrize("name", ["evil_rules:lend", "my-evil_rules:lend"])
def test_an_entry_whose_folder_has_the_name_of_a_function_is_not_trusted(empty_folder: Path, name: str) -> None:
    pytest.importorskip("stable_baselines3")
    write_entry(empty_folder / name, "evil_rules:lend")
    (empty_folder / "evil_rules.py").write_text("open('imported', 'w').close()")
    for given in (name, str(empty_folder / name)):
        assert "pass --trust" in mistake("leaderboard", "verify", given)
    assert not (empty_folder / "imported").exists()


@pytest.mark.parametrize(("lower", "code"), [(True, 0), (False, 1)])
def test_the_demonstration_fails_if_it_does_not_show_what_it_should(
    lower: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.reproduction import demo

    monkeypatch.setattr(demo, "main", lambda **given: lower)
    assert Said("demo", "--out", "x").code == code


# ---------------------------------------------------------------------------------------------------- bench


def test_bench_prints_the_rows_and_writes_json(empty_folder: Path) -> None:
    said = Said("bench", "--quick", "--row", "harvest memory", "--out", "speed.json", "--no-progress")
    assert said.code == 0, said.text
    assert "memory of a lane" in said.text
    (row,) = json.loads((empty_folder / "speed.json").read_text())["rows"]
    assert row["value"] == make_rules(ENV_ID).dtype.itemsize
    assert row["met"] is row["target"] is row["ratio"] is None


def test_bench_numbers_its_files_where_none_is_named(empty_folder: Path) -> None:
    for _ in range(2):
        Said("bench", "--quick", "--row", "harvest memory", "--no-progress")
    assert sorted(path.name for path in (empty_folder / "runs").iterdir()) == ["bench-1.json", "bench-2.json"]


def test_bench_refuses_a_file_that_exists_and_an_unknown_row(empty_folder: Path) -> None:
    (empty_folder / "speed.json").write_text("kept")
    assert "which exists" in mistake("bench", "--out", "speed.json")
    said = Said("bench", "--row", "harvest memry")
    assert said.code == 2 and "got 'harvest memry'; did you mean 'harvest memory'?\n  harvest rules" in said.text
    assert "  harvest memory" in said.text.splitlines()
    assert (empty_folder / "speed.json").read_text() == "kept"
