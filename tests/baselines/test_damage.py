"""Damaged and shared runs: what is wrong is named, and one process writes a run at a time."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import torch as th

from fair_envs.baselines.runs import Run, read_weights, serialized
from fair_envs.baselines.training import Training, load, train
from fair_envs.support.files import LOCK, writing
from tests.baselines.test_training import ROLLOUT, config, contents

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(config(steps=ROLLOUT), out=folder)
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """Return a copy of a finished run, to be damaged."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name, content in contents(trained).items():
        path = folder / Path(name).relative_to(trained)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return folder


def changed_checkpoint(run: Path, *, without: str = "", **changes: Any) -> bytes:
    """Return a run's checkpoint with other entries, and without one, with a right checksum."""
    state = read_weights(run / "checkpoint.pt") | changes
    state.pop(without, None)
    return serialized(state)


@pytest.mark.parametrize(
    ("file", "content", "how"),
    [
        ("checkpoint.pt", b"", "its checksum is wrong or missing"),
        ("checkpoint.pt", None, "its checksum is wrong or missing"),  # truncated
        ("checkpoint.pt", serialized({"rows": 0, "unlogged": {}}), r"it does not fit the run's settings \(KeyError"),
        ("checkpoint.pt", serialized([1, 2]), "it must contain names and values"),
        ("config.json", b"", "it is not JSON"),
        ("config.json", b"{", "it is not JSON"),
        ("config.json", b"\xff", "it is not JSON"),
        ("config.json", b"[" * 100_000, "it is not JSON"),
        ("config.json", b"[]", "it must hold a dict, got a list"),
        ("config.json", b'{"env_id": "FairHarvest-v0", "speed": 1}', "a Training has no speed"),
        ("config.json", b'{"algorithm": "ppo"}', "missing 1 required keyword-only argument: 'env_id'"),
        (
            "config.json",
            b'{"env_id": "FairHarvest-v0", "lanes": "two"}',
            "lanes must be an integer at least 1, got 'two'",
        ),
        ("metrics.json", b"{}", "it must hold a list, got a dict"),
        ("metrics.json", b"[]", r"it must contain the \d+ rows that checkpoint\.pt refers to"),
        ("metrics.json", b"[1]", r"it must contain the \d+ rows that checkpoint\.pt refers to"),
        ("metrics.json", b"[{", "it is not JSON"),
    ],
)
def test_a_damaged_file_is_named_with_how_it_is_and_what_to_do(
    file: str, content: bytes | None, how: str, run: Path
) -> None:
    whole = (run / file).read_bytes()
    (run / file).write_bytes(whole[: len(whole) // 2] if content is None else content)
    if file == "config.json":
        (run / "checkpoint.pt").write_bytes(changed_checkpoint(run, settings={}, without="settings"))
    with pytest.raises(ValueError, match=rf"{file} is damaged: .*{how}.*; restore it from a copy, or begin again"):
        load(run)


def test_bytes_that_changed_in_a_checkpoint_are_noticed(run: Path) -> None:
    content, chance = bytearray((run / "checkpoint.pt").read_bytes()), random.Random(0)
    for place in chance.sample(range(len(content)), 400):
        content[place] ^= 0xFF
    (run / "checkpoint.pt").write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged"):
        load(run)


def test_no_changed_byte_of_a_file_of_weights_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    content = serialized({"a": th.arange(8.0), "b": [1, {"c": th.ones(2, 3)}]})
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"weights\.pt is damaged: its checksum is wrong or missing"):
            read_weights(path)


def test_pytorch_reads_files_of_weights_too(tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_bytes(serialized({"a": th.arange(8.0)}))
    assert th.equal(th.load(tmp_path / "weights.pt", weights_only=True)["a"], th.arange(8.0))


def test_a_checkpoint_that_is_missing_beside_metrics_is_damage(run: Path) -> None:
    (run / "checkpoint.pt").unlink()
    for read in (load, lambda folder: train(config(steps=ROLLOUT), out=folder, resume=True)):
        with pytest.raises(ValueError, match=r"run is damaged: it has metrics\.json, but no checkpoint\.pt"):
            read(run)
    (run / "metrics.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"run must be a folder with checkpoint\.pt"):
        load(run)


def test_settings_that_were_edited_are_refused_by_name(run: Path) -> None:
    settings = json.loads((run / "config.json").read_text()) | {"learning_rate": 0.5}
    (run / "config.json").write_text(json.dumps(settings))
    told = r"config\.json is damaged: it has learning_rate 0\.5, but the training was started with 0\.01"
    with pytest.raises(ValueError, match=told):
        load(run)
    with pytest.raises(ValueError, match=told):
        train(config(steps=ROLLOUT, learning_rate=0.5), out=run, resume=True)


@pytest.mark.parametrize("changes", [{"learner": "/nowhere.zip"}, {"counters": {}}, {"learner": {"policy": {}}}])
def test_a_forged_checkpoint_is_refused(changes: dict[str, Any], run: Path) -> None:
    (run / "checkpoint.pt").write_bytes(changed_checkpoint(run, **changes))
    with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged: it does not fit the run's settings"):
        load(run)


def test_a_checkpoint_sets_its_counters_and_nothing_else(run: Path) -> None:
    counters = read_weights(run / "checkpoint.pt")["counters"] | {"learn": "boom"}
    (run / "checkpoint.pt").write_bytes(changed_checkpoint(run, counters=counters))
    assert callable(load(run)[0].learn)


# -------------------------------------------------------------------------------------------------- two writers


def test_a_run_that_another_process_writes_is_refused_and_left_as_it_is(run: Path) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
            "from pathlib import Path; from fair_envs.support.files import writing\n"
            f"with writing(Path({str(run)!r})): print('held', flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    before = contents(run)
    with pytest.raises(ValueError, match=rf"got .*run, which process {holder.pid} on .* is writing; wait until it"):
        train(config(steps=2 * ROLLOUT), out=run, resume=True)
    assert contents(run) == before
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert (run / LOCK).exists()  # a stale lock: its process is no more
    assert train(config(steps=ROLLOUT), out=run, resume=True).num_timesteps == ROLLOUT
    assert not (run / LOCK).exists()


def test_a_folder_is_written_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), writing(tmp_path):
        with pytest.raises(ValueError, match=f"process {os.getpid()}"), writing(tmp_path):
            raise AssertionError("it was not refused")
        raise RuntimeError
    with writing(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------- same bytes


def test_equal_runs_have_checkpoints_of_equal_bytes(tmp_path: Path) -> None:
    settings = config(steps=2 * ROLLOUT)
    found = []
    for name in ("one", "other"):
        disturb = [bytearray(os.urandom(2**20)) for _ in range(8)]  # what fresh memory holds differs
        del disturb
        train(settings, out=tmp_path / name)
        found.append((tmp_path / name / "checkpoint.pt").read_bytes())
    assert found[0] == found[1]


def test_iterations_go_on_counting_after_an_interruption(tmp_path: Path) -> None:
    from tests.baselines.interruptions import Interrupt

    for algorithm in ("ppo", "sb3-ppo"):
        folder = tmp_path / algorithm
        with pytest.raises(KeyboardInterrupt):
            train(config(algorithm=algorithm), out=folder, callback=Interrupt(13))
        train(config(algorithm=algorithm), out=folder, resume=True)
        rows = json.loads((folder / "metrics.json").read_text())
        assert [row["time/iterations"] for row in rows] == [1, 2, 3, 4, 5, 6]


# ------------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_process_loses_the_present_rollout_only(number: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = config(steps=1000 * ROLLOUT)
    program = (
        f"import signal, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # nohup ignores it
        "from fair_envs.baselines.training import Training, train\n"
        f"train(Training(**{settings.as_dict()!r}), out={str(folder)!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while not (folder / "metrics.csv").exists() or len((folder / "metrics.csv").read_text().splitlines()) < 5:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(timeout=60) != -number  # an orderly end
    rows = len((folder / "metrics.csv").read_text().splitlines()) - 1
    assert Run.open(folder).checkpoint()["rows"] >= rows - 1
    assert not (folder / LOCK).exists()


@pytest.mark.parametrize(("number", "item"), [(signal.SIGTERM, 1), (signal.SIGTERM, 6), (signal.SIGINT, 6)])
def test_a_signal_while_metrics_are_written_waits_until_they_are(
    number: signal.Signals, item: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, count = Queue._put, iter(range(1, 1_000_000))

    def interrupted(queue: Any, given: Any) -> None:
        """Send the signal when one more item is in TensorBoard's queue, and its thread does not know of it yet."""
        put(queue, given)
        if next(count) == item:
            signal.raise_signal(number)

    monkeypatch.setattr(Queue, "_put", interrupted)
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        train(config(), out=tmp_path / "run")
    assert next(count) > item
    assert time.monotonic() - before < 60  # it waited for two minutes
    rows = (tmp_path / "run" / "metrics.csv").read_text().splitlines() if item > 1 else []
    assert len(rows) == 2 * (item > 1)  # the names and the row


def test_settings_of_a_run_are_those_that_were_given(trained: Path) -> None:
    kept: Any = Run(trained).settings(Training)
    assert kept == config(steps=ROLLOUT)
