"""The leaderboard runs, continues, and verifies its rows to the bit."""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("moocore")

from fair_envs.assessment import evaluate
from fair_envs.evaluation.policy import as_policy
from fair_envs.experiments.executors import FailedCellsError
from fair_envs.experiments.jobs import run_cell
from fair_envs.experiments.seeds import BEGUN, CELLS, TABLE, Arm, SeedRow, read_rows, write_rows
from fair_envs.leaderboard import board, jobs, verification
from fair_envs.leaderboard.board import Coverage
from fair_envs.leaderboard.controls import controls
from fair_envs.leaderboard.jobs import ArmKey, PolicyCell, Scale
from fair_envs.leaderboard.page import page_of
from fair_envs.leaderboard.scores import TaskBoard
from fair_envs.registration import TABLE as IDS
from fair_envs.support.files import writing
from fair_envs.support.imports import Permissions, permit, trusting
from tests.jobs import run_here

TASK = "FairLending-v0"
COMMIT = "c" * 40
TINY = Scale(
    seeds=2,
    strengths=2,
    budget=256 / 480_000,
    budget_of_agents=1,
    tested=1,
    tasks=(TASK,),
    methods=("parity",),
    parameters={"horizon": 60},
)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a leaderboard that was run."""
    folder = tmp_path_factory.mktemp("leaderboard") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(board, "scales", lambda: {"smoke": TINY})
        patch.setattr("fair_envs.experiments.seeds.run_cells", run_here)
        patch.setattr("fair_envs.experiments.jobs.commit", lambda: COMMIT)
        board.run(scale="smoke", out=folder, jobs=1, progress=False)
    return folder


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "scales", lambda: {"smoke": TINY})
    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", run_here)


def test_every_arm_has_its_seeds_and_policies_without_training_come_first(out: Path) -> None:
    arms = board.arms_in(out)
    assert all([row.seed for row in arm.rows] == [0, 1] for arm in arms.values())
    names = [key.name for key in arms]
    assert names[0] == "random" and names.index("planted bias") < names.index("ppo")
    assert [key.strength for key in arms if key.name == "parity"] == [0.25, 2.0]
    rows = [row for arm in arms.values() for row in arm.rows]
    assert all(len(row.result) == 16 and len(row.code) == 64 for row in rows)
    assert {row.commit for row in rows} == {COMMIT}


def test_seeds_have_different_test_episodes(out: Path) -> None:
    first, second = board.arms_in(out)[ArmKey(TASK, "max-reward")].rows
    assert first.numbers["performance"] != second.numbers["performance"]


@pytest.mark.parametrize("row", ["FairLending-v0/parity/2/1", "FairLending-v0/max-reward/0", "FairLending-v0/ppo/0"])
def test_a_stored_policy_plays_the_same_again_to_the_bit(out: Path, row: str) -> None:
    found = verification.verify(row, out)
    assert found.same and not found.trained
    assert {"performance", "gap", "noise", "rate of advantaged"} <= set(found.shown) <= set(found.numbers)


def test_a_stored_policy_of_another_world_is_refused(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out, tmp_path / "copy")
    row = "FairLending-v0/ppo/0"
    (cell,) = (group[0] for key, group in jobs.cells(TINY).items() if str(key) == f"{TASK}/ppo")
    config = tmp_path / "copy" / CELLS / cell.key / "run" / "config.json"
    given = json.loads(config.read_text())
    config.write_text(json.dumps({**given, "parameters": {**given["parameters"], "interest_rate": 50.0}}))
    with pytest.raises(ValueError, match=r"with other values of interest_rate; leave these parameters out"):
        verification.verify(row, tmp_path / "copy")


def test_a_policy_that_is_trained_again_is_the_same(out: Path) -> None:
    found = verification.verify("FairLending-v0/parity/0.25/0", out, retrain=True)
    assert found.same and found.trained


def test_the_columns_of_a_row_are_those_of_its_evaluation() -> None:
    def row(section: str, value: float) -> Any:
        return SimpleNamespace(section=section, value=value, noise=value / 10)

    rows = [row("short-term", 0.3), row("short-term", 0.4), row("long-term", 0.5), row("long-term", 0.6)]
    rates = {name: row("rate", value) for name, value in {"A": 0.5, "B": 0.2, "C": 0.7, "empty": np.nan}.items()}
    found = SimpleNamespace(performance=row("performance", 2.0), gap=row("gap", 0.45), rates=rates, rows=rows)
    numbers = jobs.numbers_of(found)  # type: ignore[arg-type]
    of_empty = numbers.pop("rate of empty")
    assert np.isnan(of_empty)
    assert numbers == pytest.approx(
        {
            "performance": 2.0,
            "gap": 0.45,
            "noise": 0.045,
            "rate of A": 0.5,
            "rate of B": 0.2,
            "rate of C": 0.7,
            "worst": 0.2,
            "best": 0.7,
            "short-term": 0.3,  # the first one
            "short-term noise": 0.03,
            "long-term": 0.6,  # the last one
            "long-term noise": 0.06,
        }
    )


def test_a_hash_leaves_out_what_evaluations_got_later_and_notices_every_other_bit() -> None:
    found = evaluate(TASK, "random", episodes=2, parameters={"horizon": 20})
    sections = [row.section for row in found.rows]
    assert "selection" in sections
    earlier = replace(found, rows=tuple(row for row in found.rows if row.section != "selection"))
    assert jobs.fingerprint(earlier) == jobs.fingerprint(found)
    first, *others = found.rows
    other = first._replace(estimate=replace(first.estimate, value=np.nextafter(first.value, np.inf)))
    assert first.section == "performance" and other.value != first.value
    assert jobs.fingerprint(replace(found, rows=(other, *others))) != jobs.fingerprint(found)


def test_a_changed_result_is_noticed(out: Path, tmp_path: Path) -> None:
    rows = [replace(row, result="0" * 16) for row in read_rows(out)]
    (tmp_path / BEGUN).write_text((out / BEGUN).read_text())
    write_rows(tmp_path / TABLE, rows)
    found = verification.verify("FairLending-v0/max-reward/0", tmp_path)
    assert not found.same and found.versions.startswith("made by commit cccccccc; here ")


def test_changed_numbers_are_noticed(out: Path, tmp_path: Path) -> None:
    rows = [replace(row, numbers={**row.numbers, "performance": 999.0}) for row in read_rows(out)]
    (tmp_path / BEGUN).write_text((out / BEGUN).read_text())
    write_rows(tmp_path / TABLE, rows)
    found = verification.verify("FairLending-v0/max-reward/0", tmp_path)
    assert found.stored == found.found and not found.same


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        ("FairLending-v0/max-reward/0", {"noise": 9.0}),
        ("FairLending-v0/max-reward/0", {"reward at 1": 9.0}),  # which no policy without training has
        ("FairLending-v0/parity/2/1", {"steps": 1.0}),
        ("FairLending-v0/parity/2/1", {"train/measured": 0.0}),
    ],
)
def test_every_changed_column_is_noticed(out: Path, tmp_path: Path, row: str, changed: dict[str, float]) -> None:
    shutil.copytree(out, tmp_path / "copy")
    assert verification.verify(row, tmp_path / "copy").same
    rows = [replace(own, numbers={**own.numbers, **changed}) for own in read_rows(out)]
    write_rows(tmp_path / "copy" / TABLE, rows)
    assert not verification.verify(row, tmp_path / "copy").same


def test_a_row_with_the_name_of_another_arm_is_refused(out: Path, tmp_path: Path) -> None:
    names = {f"{TASK}/ppo": f"{TASK}/parity/2", f"{TASK}/parity/2": f"{TASK}/ppo"}
    (tmp_path / BEGUN).write_text((out / BEGUN).read_text())
    write_rows(tmp_path / TABLE, [replace(row, arm=names.get(row.arm, row.arm)) for row in read_rows(out)])
    for read in (board.arms_in, partial(verification.verify, f"{TASK}/max-reward/0")):
        with pytest.raises(
            ValueError, match=r"must name the row of the cell \w+ FairLending-v0/ppo/0, got .*/parity/2/0"
        ):
            read(tmp_path)


def test_two_processes_do_not_write_into_one_folder(out: Path) -> None:
    with writing(out), pytest.raises(ValueError, match="process"):
        board.run(scale="smoke", out=out, resume=True, progress=False)


def test_rows_of_other_cells_are_not_mixed_in(out: Path, tmp_path: Path) -> None:
    (tmp_path / BEGUN).write_text((out / BEGUN).read_text())
    others = [replace(row, job="other" + row.job) for row in read_rows(out)]
    write_rows(tmp_path / TABLE, [*others, *read_rows(out)])
    assert board.arms_in(tmp_path) == board.arms_in(out)
    write_rows(tmp_path / TABLE, [*read_rows(out), *read_rows(out)])
    with pytest.raises(ValueError, match="must have one row for each seed"):
        board.arms_in(tmp_path)


def test_the_rows_that_are_missing_are_counted_by_task(out: Path, tmp_path: Path) -> None:
    (tmp_path / BEGUN).write_text((out / BEGUN).read_text())
    rows = read_rows(out)
    assert page_of(out).coverage == {TASK: Coverage(len(rows), len(rows))}
    write_rows(tmp_path / TABLE, rows[1:])
    found = page_of(tmp_path)
    assert found.coverage == {TASK: Coverage(len(rows) - 1, len(rows))} and not found.boards


def test_a_page_of_some_methods_and_seeds_needs_only_their_rows(out: Path, tmp_path: Path) -> None:
    (tmp_path / BEGUN).write_text((out / BEGUN).read_text())
    write_rows(tmp_path / TABLE, [row for row in read_rows(out) if row.seed == 0 and "parity" not in row.arm])
    assert not page_of(tmp_path, seeds=1).boards and not page_of(tmp_path, methods=["ppo"]).boards
    (found,) = page_of(tmp_path, methods=["ppo"], seeds=1).boards
    assert not found.methods and found.reward_only.seeds == 1
    (some,) = page_of(out, methods=["ppo"], seeds=1).boards
    assert some.arms == found.arms


def test_a_failed_cell_is_named_and_the_others_are_kept(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(cells: Any, *_: Any, **__: Any) -> None:
        raise FailedCellsError({cells[0].key: "ValueError: no"}, len(cells))

    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", failing)
    rows = read_rows(out)
    write_rows(tmp_path / "part.csv.gz", rows[1:])
    failed = board.run(scale="smoke", out=tmp_path / "new", merge_from=[tmp_path / "part.csv.gz"], progress=False)
    assert failed == {f"{rows[0].arm}/{rows[0].seed}": "ValueError: no"}
    assert len(read_rows(tmp_path / "new")) == len(rows) - 1


def test_errors_of_verification_say_what_to_do(out: Path, tmp_path: Path) -> None:
    first = r"row must be one of the table, such as FairLending-v0/random/0, got"
    for row, said in {
        "x": r"row must be TASK/METHOD\[/STRENGTH\]/SEED, or an existing folder of an entry, got 'x'",
        "FairLending-v0/ppo": r"row must be TASK/METHOD\[/STRENGTH\]/SEED",
        "FairLending-v0/parity/7": f"{first} '.*'; there are FairLending-v0/parity/0.25/0 to FairLending-v0/parity/2/1",
        "FairLending-v0/max-rewards/0": f"{first} '.*'; did you mean 'FairLending-v0/max-reward/0'",
    }.items():
        with pytest.raises(ValueError, match=said):
            verification.verify(row, out)
    with pytest.raises(FileNotFoundError, match=r"must be that of a leaderboard, with seeds.csv.gz and .*, got .*none"):
        verification.verify("FairLending-v0/ppo/0", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"entry must be a folder with a file entry.json, got .*mine"):
        verified(tmp_path / "mine")
    other = replace(read_rows(out)[0], arm=f"{TASK}/mine (entry)", job="another")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / BEGUN).write_text((out / BEGUN).read_text())
    write_rows(tmp_path / "old" / TABLE, [other])
    with pytest.raises(ValueError, match="row must be made by a cell of this version"):
        verification.verify(f"{TASK}/mine (entry)/0", tmp_path / "old")
    (tmp_path / BEGUN).write_text((out / BEGUN).read_text())
    write_rows(tmp_path / TABLE, read_rows(out))
    with pytest.raises(ValueError, match=r"train it again with retrain=True \(--retrain\)"):
        verification.verify("FairLending-v0/ppo/0", tmp_path)


def test_a_finished_cell_is_not_run_again(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", lambda cells, *_, **__: ran.extend(cells))
    board.run(scale="smoke", out=out, resume=True, progress=False)
    board.run(scale="smoke", out=tmp_path / "new", merge_from=[out], progress=False)
    assert not ran
    assert [row.job for row in read_rows(tmp_path / "new")] == [row.job for row in read_rows(out)]


def test_wrong_arguments_are_refused_before_anything_is_written(out: Path, tmp_path: Path) -> None:
    new: dict[str, Any] = {"out": tmp_path / "new", "progress": False}
    with pytest.raises(ValueError, match="scale must be one of 'smoke', got 'vast'"):
        board.run(scale="vast", **new)
    with pytest.raises(ValueError, match="got 'FairHiring-v0'; scale 'smoke' does not have it, others do"):
        board.run(scale="smoke", tasks=["FairHiring-v0"], **new)
    with pytest.raises(ValueError, match="task must be one of FairLending-v0, got 'FairLending'"):
        board.run(scale="smoke", tasks=["FairLending"], **new)
    with pytest.raises(ValueError, match="method must be one of"):
        board.run(scale="smoke", methods=["pp"], **new)
    with pytest.raises(ValueError, match="must name tables of this study"):
        board.run(scale="smoke", merge_from=[tmp_path], **new)
    assert not (tmp_path / "new").exists()
    with pytest.raises(FileExistsError, match="--resume"):
        board.run(scale="smoke", out=out)


# Entries from outside -------------------------------------------------------------------------------------------------


def accept_good_scores(observation: Any, uniforms: Any) -> Any:
    """Lend to the three best scores."""
    return (observation[..., 4:7].sum(axis=-1) > 0).astype(int)


def entry(folder: Path, policy: str, **changed: Any) -> Path:
    """Write an entry whose result is what its policy gets."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {"task": TASK, "name": "mine", "policy": policy, "result": "?"}
    (folder / verification.ENTRY).write_text(json.dumps({**own, **changed}))
    return folder


def verified(place: Path) -> verification.Verified:
    """Verify an entry in the test episodes of a leaderboard of the scale smoke."""
    out = place.parent / "board"
    out.mkdir(exist_ok=True)
    (out / BEGUN).write_text("smoke")
    return verification.verify_entry(place, out)


@pytest.mark.long
def test_an_entry_with_a_function_is_verified(tmp_path: Path) -> None:
    place = entry(tmp_path / "mine", f"{__name__}:accept_good_scores")
    with trusting():
        claimed = verified(place)
        assert not claimed.same
        with pytest.raises(ValueError, match=f"{claimed.found}, which its policy has .* smoke, got ?"):
            verification.verified_entry(place, scale="smoke")
        assert verified(entry(place, f"{__name__}:accept_good_scores", result=claimed.found)).same
        key, arm = verification.verified_entry(place, scale="smoke")
    assert str(key) == f"{TASK}/mine (entry)"
    assert arm.seeds == TINY.seeds and arm.values("gap").mean() == pytest.approx(claimed.numbers["gap"])


@pytest.mark.long
def test_an_entry_with_weights_is_verified_without_trust(tmp_path: Path) -> None:
    cell = jobs.trained(replace(TINY, parameters={}, tested=1), ArmKey(TASK, "ppo"), {}, 0)
    folder = run_cell(cell, tmp_path / "cells")
    place = tmp_path / "mine"
    place.mkdir()
    (folder / "run").rename(place / "weights")
    claimed = verified(entry(place, "weights"))
    assert verified(entry(place, "weights", result=claimed.found)).same


@pytest.mark.parametrize("changed", [{"interest_rate": 50.0}, {"observation": "authors"}])
def test_an_entry_that_was_trained_in_another_world_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    run = entry(tmp_path / "mine", "weights") / "weights"
    run.mkdir()
    (run / "config.json").write_text(json.dumps({"env_id": TASK, "parameters": changed}))
    with pytest.raises(ValueError, match=f"task of {TASK}, got one with other values of {next(iter(changed))}"):
        verified(tmp_path / "mine")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policy": "model:1.zip"}, "policy must be a folder inside the entry or module:function"),  # contains pickles
        ({"name": "\x1b[31mred"}, "name must have 1 to 60 printable characters"),
        ({"name": "<img src=x>"}, "name must have 1 to 60 printable characters"),
        ({"policy": "../elsewhere"}, "policy must be a folder inside the entry or module:function"),
        ({"policy": "nowhere"}, "policy must be a folder inside the entry or module:function"),
        ({"name": 3}, "must have 'name', a text, got 3"),
        ({"result": "x a: the same to the bit"}, r"result must be 16 hexadecimal digits, or '\?', got 'x a:"),
        ({"name": "a | b"}, "name must have 1 to 60 printable characters and none of"),
        ({"task": "FairNothing-v0"}, "task must be one of .*, got 'FairNothing-v0'"),
        ({"task": "evil:FairLending-v0"}, "task must be one of .*, got 'evil:FairLending-v0'"),  # imports nothing
    ],
)
def test_a_wrong_entry_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], message: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model:1.zip").touch()
    with pytest.raises(ValueError, match=message):
        verified(entry(tmp_path / "mine", **{"policy": "x:y", **changed}))


def raising(observation: Any, uniforms: Any) -> Any:
    raise KeyError("boom")


def test_an_error_of_an_entry_names_its_policy(tmp_path: Path) -> None:
    with trusting(), pytest.raises(RuntimeError, match=r"policy .*:raising raised KeyError: 'boom'"):
        verified(entry(tmp_path / "mine", f"{__name__}:raising"))


def one(observation: Any) -> Any:
    return observation


LENIENT = as_policy(accept_good_scores)


def test_an_entry_may_name_a_policy_and_its_function_has_two_arguments(tmp_path: Path) -> None:
    with trusting():
        assert verification.entry(entry(tmp_path / "mine", f"{__name__}:LENIENT"))[1] is LENIENT
        for wrong in ("one", "TASK"):
            with pytest.raises(TypeError, match=r"policy must be a Policy or a function \(observations, uniforms\)"):
                verification.entry(entry(tmp_path / "mine", f"{__name__}:{wrong}"))


def test_a_run_without_parameters_is_named(tmp_path: Path) -> None:
    run = entry(tmp_path / "mine", "weights") / "weights"
    run.mkdir()
    (run / "config.json").write_text(json.dumps({"env_id": TASK}))
    with pytest.raises(ValueError, match="must be a folder that `fair-envs train` wrote, got one without parameters"):
        verification.entry(tmp_path / "mine")


def test_a_function_that_an_entry_names_is_not_imported_without_trust(tmp_path: Path) -> None:
    permit(Permissions())  # commands that other tests ran in this process may have trusted
    place = entry(tmp_path / "mine", "this:s", name="a:b")
    with pytest.raises(ValueError, match=r"entry.json names the function 'this:s'. It is not imported, .* --trust"):
        verification.verify_entry(place)
    with pytest.raises(FileNotFoundError, match=r"out must be the folder of a leaderboard, with scale.txt, got .*none"):
        verification.verify_entry(place, tmp_path / "none")
    assert "this" not in sys.modules


# Cells ----------------------------------------------------------------------------------------------------------------


@cache
def cells_of(scale: str) -> Mapping[ArmKey, Sequence[Any]]:
    """Return the cells of a scale, which are the same each time."""
    return jobs.cells(jobs.scales()[scale])


def test_the_small_scale_has_all_tasks_and_every_method_that_trains_on_them() -> None:
    from fair_envs.baselines.methods import methods
    from fair_envs.tasks import task_of

    scale = jobs.scales()["small"]
    found = cells_of("small")
    for env_id in IDS:
        names = {key.name for key in found if key.env_id == env_id}
        trained = {one.name for one in methods() if one.policy and not one.reason(env_id, task_of(env_id).rules(), {})}
        left_out = {name for name, why in jobs.included(scale, env_id).items() if why}
        assert trained - left_out | {"random", "ppo again"} <= names and not names & left_out
        assert ("ppo, one network" in names) == task_of(env_id).rules().multi_agent
    assert "has updated its networks a few times only after" in jobs.included(scale, "FairHarvest-v0")["pcn"]
    assert jobs.included(scale, "FairHarvest-v0")["f-ppo"] == "equals f-ppo-l here"
    assert jobs.included(scale, "FairLending-v0")["f-ppo"] == ""
    assert all(len(group) == scale.seeds for group in found.values())


def test_the_reward_only_control_has_other_seeds() -> None:
    found = cells_of("smoke")
    one, again = (found[ArmKey(TASK, name)][0] for name in ("ppo", "ppo again"))
    assert isinstance(one, jobs.TrainedCell) and isinstance(again, jobs.TrainedCell)
    assert (one.method, again.method) == ("ppo", "ppo")
    assert (one.given["seed"], again.given["seed"]) == (0, 1000)


def test_a_method_that_counts_steps_of_the_environment_gets_as_many_as_the_others() -> None:
    from fair_envs.baselines.methods import named

    found = cells_of("small")
    harvest = {name: jobs.steps_of(jobs.scales()["small"], "FairHarvest-v0", named(name)) for name in ("ppo", "pcn")}
    assert harvest == {"ppo": 1_280_000, "pcn": 32_000}  # of 40 agents
    single = (found[ArmKey("FairHiring-v0", name)][0].given["steps"] for name in ("ppo", "pcn"))
    assert len(set(single)) == 1


def test_one_network_for_all_agents_is_an_arm_of_the_reward_only_method() -> None:
    cell = cells_of("small")[ArmKey("FairPursuit-v0", "ppo, one network")][0]
    assert isinstance(cell, jobs.TrainedCell) and (cell.method, cell.given["sharing"]) == ("ppo", "all")
    assert cell.given["parameters"]["side"] == 3


def test_every_rule_and_every_action_of_a_few_has_a_row() -> None:
    names: dict[str, list[str]] = {}
    for key in cells_of("small"):
        names.setdefault(key.env_id, []).append(key.name)
    constant = {env_id: [name for name in of if name.startswith("constant")] for env_id, of in names.items()}
    assert constant["FairCollege-v0"] == [f"constant {k}" for k in range(21)]
    assert constant["FairEpidemic-v0"] == ["constant 0", "constant 34"] and constant["FairAttention-v0"] == []
    assert {"round-robin", "proportional", "naive-matching", "matching", "fair-greedy"} <= {*names["FairAttention-v0"]}


def test_constant_policies_take_one_action() -> None:
    shared: dict[str, Any] = {"env_id": TASK, "seed": 0, "episodes": 2, "parameters": {"horizon": 60}}
    found = {k: jobs.PolicyCell(policy=f"constant {k}", **shared).evaluation() for k in (0, 1)}
    assert [max(rate.value for rate in found[k].rates.values()) for k in (0, 1)] == [0, 1]


def test_what_counts_once_in_an_episode_has_more_test_episodes() -> None:
    small = jobs.scales()["small"]
    assert (small.episodes("FairPursuit-v0"), small.episodes("FairTraffic-v0")) == (256, 256)
    assert small.episodes("FairHarvest-v0") == 16


def test_the_steps_and_the_course_of_a_training_are_kept(out: Path) -> None:
    numbers = board.arms_in(out)[ArmKey(TASK, "ppo")].rows[0].numbers
    assert numbers["steps"] >= 256 and {"reward at 0.5", "reward at 1", "short-term noise"} <= set(numbers)


def test_strengths_are_spread_from_weak_to_strong() -> None:
    from fair_envs.baselines.methods import Strength, methods

    knob = Strength(("alpha", "beta"), (1.0, 2.0, 3.0, 4.0))
    assert [knob.spread(count) for count in (1, 2, 3, 4, 9)] == [
        [1.0],
        [1.0, 4.0],
        [1.0, 2.0, 4.0],
        [1.0, 2.0, 3.0, 4.0],
        [1.0, 2.0, 3.0, 4.0],
    ]
    assert knob.given(2.0) == {"alpha": 2.0, "beta": 2.0}
    for method in methods():
        if method.strength is not None:
            assert set(method.strength.settings) <= {one.name for one in method.fields()}
            assert len(method.strength.values) >= 4


def arms_of(method: str, env_id: str) -> dict[float | None, dict[str, Any]]:
    """Return the settings of a method's arms by their strength."""
    found = jobs.trainings(jobs.scales()["small"], env_id)
    return {key.strength: given for key, given in found if key.name == method}


def test_limits_are_parts_of_the_room_above_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = jobs.Unit(value=0.5, floor=0.1)
    monkeypatch.setattr(jobs, "units", lambda: {TASK: dict.fromkeys(("cpo", "lagrangian", "f-ppo-l"), unit)})
    for method in ("cpo", "lagrangian"):
        limits = {strength: given["limit"] for strength, given in arms_of(method, TASK).items()}
        assert limits == pytest.approx({0.75: 0.4, 0.5: 0.3, 0.1: 0.14})
    assert {given["delta"] for given in arms_of("a-ppo", TASK).values()} == {0.1 + 0.1 * 0.4}
    assert {given["delta"] for given in arms_of("f-ppo", TASK).values()} == {0.1 + 0.5 * 0.4}
    (gains,) = {(given["proportional"], given["integral"]) for given in arms_of("lagrangian", TASK).values()}
    assert gains == pytest.approx((5 * 0.2 / 0.5, 0.1 * 0.2 / 0.5))


def test_a_method_with_a_limit_is_left_out_where_fair_decisions_have_more(monkeypatch: pytest.MonkeyPatch) -> None:
    units = {name: jobs.Unit(value=0.2, floor=0.1) for name in ("lagrangian", "f-ppo-l")}
    monkeypatch.setattr(jobs, "units", lambda: {TASK: {**units, "cpo": jobs.Unit(value=0.2, floor=0.3)}})
    found = jobs.included(jobs.scales()["small"], TASK)
    assert "random decisions" in found["cpo"] and found["lagrangian"] == found["a-ppo"] == ""
    assert jobs.Unit(value=0.2, floor=0.3).part(0.5) == 0.1


def test_every_arm_of_the_scale_small_can_be_trained() -> None:
    from fair_envs.baselines.methods import named

    scale = jobs.scales()["small"]
    for env_id in IDS:
        assert set(jobs.units()[env_id]) == {"cpo", "f-ppo-l", "lagrangian"}
        for key, given in jobs.trainings(scale, env_id):
            cell = jobs.trained(scale, key, given, 0)
            named(cell.method).configured({"env_id": env_id, **cell.given})


def test_methods_learn_from_the_compared_rate_and_from_nothing_that_others_have_not() -> None:
    (cpo,) = {given["measure"] for given in arms_of("cpo", "FairHarvest-v0").values()}
    assert cpo == arms_of("fair-ppo", TASK)[0.25]["measure"] == "rate"
    assert "measure" not in arms_of("fair-ppo", "FairHarvest-v0")[0.25]  # it compares returns
    assert "measure" not in arms_of("cpo", "FairPursuit-v0")[0.5]  # captures count at the end of an episode
    assert arms_of("f-ppo", TASK)[1.0]["signals"] == "record"
    assert set(arms_of("parity", TASK)[0.25]) == {"alpha"}


def test_methods_that_equal_ppo_are_left_out() -> None:
    assert jobs.included(jobs.scales()["small"], TASK)["sb3-ppo"] == "equals ppo here"
    assert jobs.included(jobs.scales()["small"], "FairTraffic-v0")["sb3-ppo"] == ""


def test_units_are_of_trainings_that_maximise_the_reward_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longer = replace(TINY, budget=3 * 2048 / 480_000)  # three rollouts: CPO logs its measure after the next one
    monkeypatch.setattr(board, "scales", lambda: {"smoke": longer})
    monkeypatch.setattr(jobs, "UNIT_SEEDS", (2000,))
    found = board.measure_units(tmp_path / "out", scale="smoke", jobs=1, progress=False)
    assert set(found[TASK]) == {"lagrangian", "f-ppo-l", "cpo"}
    assert all(unit["value"] > 0 and unit["floor"] > 0 for unit in found[TASK].values())
    groups = jobs.unit_cells(longer)
    assert {cell.given.get("limit", cell.given.get("weight")) for (cell,) in groups.values()} == {1e6, 0.0}
    assert [
        groups[TASK, name, "floor"][0].given.get(knob)
        for name, knob in (("cpo", "max_kl"), ("f-ppo-l", "learning_rate"))
    ] == [1e-12] * 2
    again = board.measure_units(tmp_path / "out", scale="smoke", jobs=1, progress=False)  # nothing is trained again
    assert again == found


@pytest.mark.long
def test_the_controls_without_training_pass_at_the_scale_smoke() -> None:
    """With few seeds or short tests, the partial bias is not measured precisely enough."""
    wanted, boards = (jobs.RANDOM, jobs.PLANTED, jobs.PARTIAL), []
    for env_id in jobs.with_planted_bias():
        arms: dict[ArmKey, list[SeedRow]] = {ArmKey(env_id, name): [] for name in wanted}
        every = jobs.cells(replace(jobs.scales()["smoke"], tasks=[env_id]))
        for key, rows in arms.items():
            for cell in every[key]:
                assert isinstance(cell, PolicyCell)
                given: dict[str, Any] = {"seed": cell.seed, "numbers": jobs.numbers_of(cell.evaluation())}
                rows.append(SeedRow(arm=str(key), job="", code="", seconds=0, result="", **given))
        boards.append(TaskBoard(env_id, {key: Arm(str(key), rows) for key, rows in arms.items()}, wanted))
    found = controls(boards)
    assert [control.passed for control in found] == [True, True, True, None], found  # the last one needs trainings
