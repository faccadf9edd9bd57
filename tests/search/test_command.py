"""``fair-envs design``: a search from the command line, gone on with, and refused where it cannot be."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

from tests.envs.traffic_scenes import TOWN
from tests.search.test_design import RANGES
from tests.test_cli import Said, mistake

pytestmark = pytest.mark.usefixtures("empty_folder")

BRIEF: tuple[str, ...] = (
    *("--batch", "2", "--episodes", "2", "--finalists", "1", "--held-out", "2", "--policy", "shortest-time"),
    *(part for name, value in TOWN.items() for part in ("--param", f"{name}={value}")),
    *(part for name, text in RANGES.items() for part in ("--range", f"{name}={text}")),
)
NEW = ("design", "FairTraffic-v0", *BRIEF, "--jobs", "1", "--no-progress")


def test_a_search_prints_what_it_found_and_keeps_it() -> None:
    said = Said(*NEW, "--trials", "3")
    assert said.code == 0, said.text
    assert "demographic_parity:human_driven" in said.flat and "Its price: the total return changes by" in said.flat
    folder = Path("runs/design-FairTraffic-v0-1")
    assert f"saved {folder}/result-1" in said.flat
    names = {path.name for path in (folder / "result-1").iterdir()}
    assert {"configuration.json", "comparison.json", "front.png", "report.md", "trials.csv"} <= names
    again = Said(
        "design", "--resume", "--out", folder, "--trials", "4", "--choose", "1", "--jobs", "1", "--no-progress"
    )
    assert again.code == 0 and "Trial 1, measured on 2 pairs" in again.flat
    record = json.loads((folder / "result-2" / "comparison.json").read_text())
    assert record["trial"] == 1 and record["search"]["trials"] == 4
    assert json.loads((folder / "result-1" / "comparison.json").read_text())["search"]["trials"] == 3


def test_a_file_gives_what_the_command_line_leaves_out(tmp_path: Path) -> None:
    town = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TOWN.items())
    settings = 'env_id = "FairTraffic-v0"\npolicy = "shortest-path"\nepisodes = 2\nheld_out = 2\nfinalists = 1\n'
    Path("town.toml").write_text(
        f'{settings}objectives = ["utilitarian"]\n[parameters]\n{town}\n'
        "[ranges]\nsignal_period = { low = 4, high = 9 }\n"
    )
    ranges = ("--range", "toll=0:0.1", "--range", "signal_period=4:6")
    said = Said("design", "--config", "town.toml", *ranges, "--trials", "2", "--out", "found", "--jobs", "1")
    assert said.code == 0, said.text
    kept = json.loads(Path("found/search.json").read_text())
    assert kept["ranges"] == {"signal_period": "4:6", "toll": "0:0.1"} and kept["objectives"] == ["utilitarian"]
    assert kept["policy"] == "shortest-path" and kept["parameters"]["cars"] == TOWN["cars"]


@pytest.mark.long
def test_a_killed_search_goes_on_from_the_command_line_to_the_same_end() -> None:
    command = [sys.executable, "-m", "fair_envs.cli", *NEW, "--trials", "6", "--out"]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    resume = [*command[:3], "design", "--resume", "--jobs", "1", "--no-progress", "--out"]
    for words, number, cells in ((command, signal.SIGTERM, 2), (resume, signal.SIGKILL, 4)):
        process = subprocess.Popen([*words, "killed"], env=environment, stderr=subprocess.DEVNULL)
        while len(list(Path("killed/cells").glob("[!.]*"))) < cells:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait() == (-signal.SIGKILL if number == signal.SIGKILL else 128 + number)
    assert not Path("killed/result-1").exists()
    assert Said("design", "--resume", "--out", "killed", "--jobs", "1", "--no-progress").code == 0
    assert Said(*NEW, "--trials", "6", "--out", "whole").code == 0
    for name in ("trials.csv", "comparison.json", "report.md", "configuration.json"):
        assert (Path("killed/result-1") / name).read_text() == (Path("whole/result-1") / name).read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("FairTraffic-v0",), "ranges must name at least one parameter, got none"),
        ((), "ID must be given, as in: fair-envs design FairTraffic-v0"),
        (("FairTrains-v0", "-r", "cars=1:2"), "id must be one of"),
        (("FairTraffic-v0", "-r", "cars"), "range must be name=value, got 'cars'"),
        (("FairTraffic-v0", "-r", "speed=1:2"), "range must name one of"),
        (("FairTraffic-v0", "-r", "cars=9:2"), "range of cars must have its low end first, got 9 above 2"),
        (("FairTraffic-v0", "-r", "cars=1:2", "-p", "human_share=2"), "human_share must be between 0 and 1, got 2"),
        (("FairTraffic-v0", "-r", "cars=1:2", "-p", "human_lanes=A1-Z9"), "human_lanes"),
        (("FairTraffic-v0", "-r", "cars=1:2", "--objective", "joy"), "objective must be one of"),
        (("FairTraffic-v0", "-r", "cars=1:2", "--sampler", "grid"), "sampler must be one of"),
        (("FairTraffic-v0", "-r", "cars=1:2", "--trials", "0"), "trials must be at least 1, got 0"),
        (("FairTraffic-v0", "-r", "cars=1:2", "--engine", "mpi"), "engine must be one of processes, ray, got 'mpi'"),
        (("FairTraffic-v0", "-r", "cars=1:2", "--storage", "x"), "storage must be the URL of a database, got 'x'"),
        (("FairTraffic-v0", "-r", "cars=1:2", "--config", "no.toml"), "config must be a TOML file, got no.toml"),
        (("FairTraffic-v0", "-r", "cars=1:2", "--out", "."), "out must be a new path"),
        (("--resume",), "out must name the folder of the search to resume, got none"),
        (("--resume", "--out", "nowhere"), "out must be the folder of a search, got nowhere without search.json"),
        (("--resume", "--out", ".", "--batch", "3"), "batch must be left out when a search is resumed"),
        (("--resume", "--out", ".", "-r", "cars=1:2"), "range must be left out when a search is resumed"),
    ],
)
def test_a_search_that_cannot_be_is_told_in_a_line_and_leaves_nothing(
    arguments: tuple[Any, ...], said: str, empty_folder: Path
) -> None:
    assert said in mistake("design", *arguments)
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("command", [("reproduce", "lamalfa2025"), ("evaluate", "FairHarvest-v0")])
def test_an_engine_that_there_is_not_is_refused_everywhere(command: tuple[str, ...], empty_folder: Path) -> None:
    assert mistake(*command, "--engine", "mpi") == "engine must be one of processes, ray, got 'mpi'"
    assert list(empty_folder.iterdir()) == []
