"""The decisions of a policy as data: tables, and datasets for Minari and PyCFRL."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.assessment import evaluate, export, export_minari, export_pycfrl, exporting
from fair_envs.assessment.datasets import trajectories
from fair_envs.assessment.played import system_of
from fair_envs.cli.export import new_dataset
from fair_envs.envs.fraud.tables import FOLDER, TABLES_FILE
from fair_envs.evaluation import FromProbabilities
from fair_envs.metrics import Full, History
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import default_task
from fair_envs.wrappers import DelayedFeedback, HideSensitive
from tests.assessment.office import GROUPS, Office, coin, to_the_north
from tests.helpers import LITTLE
from tests.leavers import Leavers
from tests.test_cli import Said, mistake

pandas = pytest.importorskip("pandas")

LOANS: dict[str, Any] = {"horizon": 60, "feedback": "full"}
DELAYED: dict[str, Any] = {"horizon": 60, "feedback": "delayed", "delay": 7}
SHORT = ["-p", "horizon=30", "--episodes", "2", "--no-progress"]


@pytest.fixture(scope="module")
def office() -> Iterator[str]:
    """Register the office with Gymnasium alone."""
    gym.register("Office-v1", entry_point="tests.assessment.office:Office")
    yield "Office-v1"
    del gym.registry["Office-v1"]


def same(first: Any, second: Any) -> None:
    """Check that two tables are equal, whatever the types of their columns."""
    pandas.testing.assert_frame_equal(first, second, check_dtype=False)


# Tables ---------------------------------------------------------------------------------------------------------------


def test_a_table_has_a_row_for_each_person() -> None:
    table = export(Office(), to_the_north, episodes=2, seed=0)
    assert table.columns.tolist() == [
        *("episode", "step", "individual", "sensitive[home]", "legitimate[age]", "group", "feature[need]"),
        *("action", "feedback", "outcome", "reward", "ended"),
    ]
    assert table["sensitive[home]"].tolist() == ["north", "north", "south", "south", "north", "south"]
    assert table["legitimate[age]"].tolist() == ["young", "old", "young", "old", "young", "old"]
    assert table["action"].tolist() == [1, 1, 0, 0, 1, 0]
    assert table["feedback"].tolist() == [1, 1, 1, 0, 0, 1]
    assert table["reward"].tolist() == [1, 1, 0, 1, 0, 0]
    assert table[["episode", "step"]].to_numpy().tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]]
    assert table["ended"].tolist() == [False, False, False, True, False, True]


def test_rates_in_a_table_are_those_of_the_evaluation() -> None:
    given: dict[str, Any] = {"episodes": 3, "parameters": {"horizon": 60}}
    table = export("FairLending-v0", "max-reward", **given)
    found = evaluate("FairLending-v0", "max-reward", shuffles=0, **given)
    qualified = table[table["feedback"] == 1]
    rates = qualified.groupby("group")["action"].mean().to_dict()
    assert rates == pytest.approx({name: rate.value for name, rate in found.rates.items()})
    selected = table.groupby("sensitive[group]")["action"].mean()
    gap = found.row("notion", "demographic_parity", of="group: advantaged - disadvantaged").value
    assert selected["advantaged"] - selected["disadvantaged"] == pytest.approx(gap) != 0


@pytest.mark.parametrize(
    ("env_id", "chosen"),
    [
        ("FairHiring-v0", []),
        ("FairFraud-v0", []),
        ("FairLending-v0", []),
        ("FairAttention-v0", [f"chosen[{k}]" for k in range(6)]),
        ("FairEpidemic-v0", ["chosen"]),
        ("FairCollege-v0", ["chosen"]),
        ("FairHarvest-v0", ["chosen"]),
        ("FairPursuit-v0", ["chosen[0]", "chosen[1]"]),
        ("FairTraffic-v0", ["chosen"]),
    ],
)
def test_every_environment_is_played_as_in_its_evaluation(env_id: str, chosen: list[str]) -> None:
    rules = fair_envs.make_rules(env_id, horizon=12)
    given: dict[str, Any] = {"episodes": 2, "seed": 5}
    table = export(rules, "random", **given)
    assert [name for name in table if name.startswith("chosen")] == chosen
    found = evaluate(rules, "random", task=default_task(env_id, rules), shuffles=0, twins=False, **given)
    people = ["episode", "step", "individual"] if rules.multi_agent else ["episode", "step"]
    rewards = table.drop_duplicates(people).groupby("episode")["reward"].mean()
    assert found.of_episodes["performance"].tolist() == pytest.approx(rewards.tolist())
    assert set(table["group"]) <= set(rules.spec.groups)
    assert table.groupby("episode")["ended"].any().all()


def test_a_table_does_not_depend_on_how_many_episodes_are_played_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"episodes": 3, "parameters": LOANS}
    together = export("FairLending-v0", "random", **given)
    same(together, export("FairLending-v0", "random", **given))
    monkeypatch.setattr(exporting, "LANES", 2)
    same(together, export("FairLending-v0", "random", **given))
    assert not together.equals(export("FairLending-v0", "random", seed=7, **given))


def test_columns_are_those_of_a_history_with_labels_that_arrived_later() -> None:
    table = export("FairLending-v0", "random", episodes=2, seed=3, parameters=DELAYED)
    env = gym.make("FairLending-v0", **DELAYED)
    history = History(Full(), env.unwrapped.fair_spec)  # type: ignore[attr-defined]
    for episode, actions in table.groupby("episode")["action"]:
        history.add(env.reset(seed=3 + episode)[1])
        for action in actions:
            history.add(env.step(action)[-1])
    frame = history.frame()
    shared = [name for name in table if name in frame and name != "episode"]
    assert {"individual", "sensitive[group]", "legitimate[score]", "feature[score]", "feedback", "outcome"} < {*shared}
    same(table[shared], frame[shared])
    assert (table["feedback"] >= 0).sum() == 2 * (60 - 7)


@pytest.mark.parametrize("feedback", ["delayed", "accepted", "none"])
def test_labels_of_everyone_are_a_column_of_their_own(feedback: str) -> None:
    given: dict[str, Any] = {"episodes": 1, "parameters": {**DELAYED, "feedback": feedback}}
    table = export("FairLending-v0", "random", labels="all", **given)
    revealed = table["feedback"] >= 0
    assert (table["label"] >= 0).all() and not revealed.all()
    assert (table["label"] == table["feedback"])[revealed].all()
    same(table.drop(columns="label"), export("FairLending-v0", "random", **given))
    full = export("FairLending-v0", "random", episodes=1, parameters=LOANS)
    assert table["label"].tolist() == full["feedback"].tolist()


@pytest.mark.parametrize("env", [fair_envs.make_rules("FairHarvest-v0"), DelayedFeedback(Office(), delay=1)])
def test_labels_that_nobody_knows_are_refused(env: Any) -> None:
    with pytest.raises(ValueError, match=r"labels must be 'revealed' for .*, whose other labels are not known, got 'a"):
        export(env, "random", labels="all")
    with pytest.raises(ValueError, match="labels must be one of 'revealed', 'all', got 'al'; did you mean 'all'"):
        export(env, "random", labels="al")  # type: ignore[arg-type]


def test_labels_that_a_wrapper_delays_are_found_in_the_table() -> None:
    table = export(DelayedFeedback(Office(), delay=1), to_the_north, episodes=1, seed=0)
    assert table["feedback"].tolist() == [1, 1, 1, -1]


def the_first(observation: Any, uniforms: Any) -> Any:
    """Choose the first action everywhere."""
    return np.zeros(observation.shape[:2], int)


def test_labels_of_the_same_people_are_of_the_decisions_that_they_are_about() -> None:
    delay, given = 3, dict[str, Any](episodes=2, seed=1)
    make = partial(gym.make, "FairEpidemic-v0", horizon=10)
    at_once, table = (export(env, the_first, **given) for env in (make(), DelayedFeedback(make(), delay=delay)))
    arrived = table["step"] + delay < at_once.groupby("episode")["step"].transform("max") + 1
    expected = at_once["feedback"].where(arrived, -1)
    assert 0 < (expected == 1).sum() < (expected >= 0).sum()
    same(table, at_once.assign(feedback=expected))


def test_probabilities_of_decisions_are_there_if_the_policy_reports_them() -> None:
    policy = FromProbabilities(lambda seen: np.broadcast_to([0.25, 0.75], (*seen.shape[:2], 2)))
    given: dict[str, Any] = {"episodes": 1, "parameters": LOANS}
    table = export("FairLending-v0", policy, **given)
    assert set(table["probability[0]"]) == {0.25} and set(table["probability[1]"]) == {0.75}
    assert "probability[0]" not in export("FairLending-v0", "random", **given)
    assert "probability[1]" in export(HideSensitive(gym.make("FairLending-v0", **LOANS)), policy, episodes=1)
    drivers = fair_envs.make_rules("FairTraffic-v0", horizon=5)
    choice = FromProbabilities(lambda seen: np.broadcast_to(np.full(9, 1 / 9), (*seen.shape[:2], 9)))
    assert "probability[0]" not in export(drivers, choice, episodes=1)  # of nine moves, not of two decisions


def test_agents_that_have_left_keep_their_numbers() -> None:
    table = export(Leavers(), "random", episodes=2, seed=0)
    assert table.groupby("episode")["individual"].unique().map(sorted).tolist() == [[0, 1, 2], [0, 1, 2]]
    late = table[(table["individual"] == 0) & (table["step"] > 1)]
    assert len(late) and (late["action"] == -1).all() and (late["reward"] == 0).all()


def test_people_keep_their_numbers_in_any_order() -> None:
    class Shuffled(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            *others, info = self.env.step(action)
            return *others, {**info, "fair_individual": info["fair_individual"][::-1]}

    table = export(Shuffled(gym.make("FairEpidemic-v0", horizon=3)), the_first, episodes=1)
    people = table["individual"].nunique()
    assert table["individual"].tolist() == [*range(people)][::-1] * (len(table) // people)


def test_a_choice_that_is_no_decision_has_a_column() -> None:
    class Graded(gym.ActionWrapper[Any, Any, Any]):
        """The office with three grades, of which the upper two accept."""

        def __init__(self) -> None:
            super().__init__(Office())
            self.action_space = gym.spaces.Discrete(3)

        def action(self, action: Any) -> int:
            return int(action > 0)

    table = export(Graded(), lambda observation, uniforms: 2 * to_the_north(observation, uniforms), episodes=1, seed=0)
    assert (table["action"].tolist(), table["chosen"].tolist()) == ([1, 1, 0, 0], [2, 2, 0, 0])
    loans = gym.wrappers.TransformAction(
        gym.make("FairLending-v0", horizon=40), lambda action: int(action > 0), gym.spaces.Discrete(3)
    )
    table = export(loans, "random", episodes=1)
    assert set(table["chosen"]) == {0, 1, 2} and (table["action"] == (table["chosen"] > 0)).all()
    options: Any = [[2, 3], [2, 3]]
    grid = gym.wrappers.TransformAction(
        gym.make("FairLending-v0", horizon=5), lambda action: int(action.any()), gym.spaces.MultiDiscrete(options)
    )
    names = [name for name in export(grid, "random", episodes=1) if "chosen" in name]
    assert names == ["chosen[0]", "chosen[1]", "chosen[2]", "chosen[3]"]


def test_labels_that_arrive_earlier_than_the_spec_says_are_of_the_last_decision() -> None:
    class Early(gym.Wrapper[Any, Any, Any, Any]):
        """Says that labels take up to three steps."""

        fair_spec = replace(DelayedFeedback(Office(), delay=1).fair_spec, delay=3)

    env: Any = Early(DelayedFeedback(Office(), delay=1))
    table = export(env, to_the_north, episodes=1, seed=0)
    assert table["feedback"].tolist() == [1, 1, 1, -1]
    history = History(Full(), env.fair_spec)
    history.add(env.reset(seed=0)[1])
    for action in table["action"]:
        history.add(env.step(action)[4])
    assert history.columns()["feedback"].tolist() == [1, 1, 1, -1]


def test_people_without_a_known_attribute_have_no_name_for_it() -> None:
    class Partly(Office):
        def step(self, action: int) -> Any:
            *others, info = super().step(action)
            return *others, {**info, "fair_sensitive": np.array([-1])}

    table = export(Partly(), coin, episodes=1, seed=0)
    assert table["sensitive[home]"].isna().all() and set(table["group"]) == set(GROUPS)


# Minari ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return Minari, which stores datasets in a folder of the test."""
    pytest.importorskip("h5py")
    found = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return found


@pytest.mark.parametrize(
    ("env_id", "policy", "parameters"),
    [
        ("FairLending-v0", "max-reward", LOANS),
        ("FairAttention-v0", "random", {"horizon": 12}),
        ("FairPursuit-v0", "random", {"horizon": 12}),
        ("FairTraffic-v0", "shortest-time", {"horizon": 12}),
    ],
)
def test_a_dataset_has_what_the_environment_returns(
    minari: Any, env_id: str, policy: str, parameters: dict[str, Any]
) -> None:
    export_minari(env_id, policy, "some/test-v0", episodes=2, seed=5, parameters=parameters)
    dataset = minari.load_dataset("some/test-v0")
    table = export(env_id, policy, episodes=2, seed=5, parameters=parameters)
    env = dataset.recover_environment()
    assert dataset.total_episodes == 2
    for episode in dataset.iterate_episodes():
        observation, info = env.reset(seed=5 + episode.id)
        for time in range(len(episode.actions)):
            assert np.array_equal(episode.observations[time], observation)
            observation, reward, terminated, truncated, info = env.step(episode.actions[time])
            assert (episode.rewards[time], episode.truncations[time]) == (reward, truncated)
            assert episode.terminations[time] == terminated
            for name, column in episode.infos.items():
                assert column.size and (name == "fair_action_probs" or np.array_equal(column[time + 1], info[name]))
        assert np.array_equal(episode.observations[-1], observation) and (terminated or truncated)
        told = table[table["episode"] == episode.id]
        assert episode.infos["fair_action"][1:].ravel().tolist() == told["action"].tolist()
        left_out = {name for name, own in info.items() if name.startswith("fair_") and not np.size(own)}
        assert {name for name in info if name.startswith(("fair_", "agent_"))} - left_out == set(episode.infos)


def test_a_dataset_has_the_probabilities_of_the_decisions(minari: Any) -> None:
    policy = FromProbabilities(lambda seen: np.broadcast_to([0.25, 0.75], (*seen.shape[:2], 2)))
    for name, env in (("a-v0", "FairLending-v0"), ("b-v0", HideSensitive(gym.make("FairLending-v0", **LOANS)))):
        export_minari(env, policy, name, episodes=1, parameters=LOANS if name == "a-v0" else None)
        (episode,) = minari.load_dataset(name).iterate_episodes()
        assert episode.infos["fair_action_probs"][1:].tolist() == [[0.25, 0.75]] * 60
        assert not episode.infos["fair_action_probs"][0].any()  # of the reset


@pytest.mark.parametrize("env_id", ["FairHiring-v0", "FairAttention-v0"])
def test_rules_of_another_profile_are_stored_in_their_own_world(minari: Any, env_id: str) -> None:
    rules = fair_envs.make_rules(env_id, profile="authors", horizon=6)
    export_minari(rules, "random", "authors-v0", episodes=2)
    dataset = minari.load_dataset("authors-v0")
    table = export(rules, "random", episodes=2)
    rewards = table.groupby(["episode", "step"])["reward"].first().to_numpy()
    assert np.concatenate([one.rewards for one in dataset.iterate_episodes()]) == pytest.approx(rewards)
    assert dataset.recover_environment().unwrapped.lanes.rules.params.profile == "authors"


def test_a_table_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    class Broken:
        def to_csv(self, path: Path, **_: Any) -> None:
            path.write_text("episode")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exporting.save_table(Broken(), tmp_path / "table.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:the dataset does not store")
def test_an_own_environment_has_a_dataset(minari: Any, office: str) -> None:
    export_minari(office, to_the_north, "office-v0", episodes=2, seed=0)
    dataset = minari.load_dataset("office-v0")
    even, odd = dataset.iterate_episodes()
    assert (even.rewards.tolist(), odd.actions.tolist()) == ([1, 1, 0, 1], [1, 0])
    assert even.infos["fair_feedback"].tolist() == [-1, 1, 1, 1, 0]
    assert isinstance(dataset.recover_environment().unwrapped, Office)
    export_minari(Annotated(), to_the_south, "dict-v0", episodes=1, seed=0)
    (episode,) = minari.load_dataset("dict-v0").iterate_episodes()
    assert episode.observations["place"].shape == (5, 2) and episode.actions.tolist() == [0, 0, 1, 1]


class Annotated(gym.ObservationWrapper[Any, Any, Any]):
    """The office with observations in a dictionary."""

    def __init__(self) -> None:
        super().__init__(Office())
        self.observation_space = gym.spaces.Dict({"place": Office.observation_space})

    def observation(self, observation: Any) -> Any:
        """Return the observation in a dictionary."""
        return {"place": observation}


def to_the_south(observation: Any, uniforms: Any) -> Any:
    """Accept everyone from the south."""
    return (observation["place"][..., 0] == 1).astype(int)


class Plain(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that does not record its arguments."""


def with_table() -> Any:
    """Return rules with a user's own table."""
    return fair_envs.make_rules("FairLending-v0", repayment=np.linspace(0, 1, 7), horizon=10)


@pytest.mark.parametrize("make", [with_table, Leavers, lambda: Plain(gym.make("FairLending-v0", horizon=10))])
def test_a_warning_tells_that_an_environment_cannot_be_made_again(minari: Any, make: Any) -> None:
    with pytest.warns(UserWarning, match="the dataset does not store how to make its environment, which cannot be"):
        export_minari(make(), "random", "some-v0", episodes=2, seed=3)
    dataset = minari.load_dataset("some-v0")
    assert dataset.spec.env_spec is None
    table = export(make(), "random", episodes=2, seed=3)
    for number, episode in enumerate(dataset.iterate_episodes()):
        told = table[table["episode"] == number]
        assert episode.rewards.tolist() == pytest.approx(told.groupby("step")["reward"].mean().tolist())


def test_tables_that_are_no_parameters_are_those_of_the_dataset(minari: Any, tmp_path: Path) -> None:
    tables = json.loads((FOLDER / TABLES_FILE).read_text())
    for merchant in (one for kind in tables["merchant_amount_hist"].values() for one in kind):
        merchant["min"], merchant["max"] = 3 * merchant["min"], 3 * merchant["max"]
    given: dict[str, Any] = {"episodes": 1, "seed": 3}
    rules = fair_envs.make_rules("FairFraud-v0", tables=tables, horizon=20)
    with pytest.warns(UserWarning, match="does not store"):
        export_minari(rules, "random", "rules-v0", **given)
    export_minari(gym.make("FairFraud-v0", tables=tables, horizon=20), "random", "env-v0", **given)
    file = tmp_path / "own.json"
    file.write_text(json.dumps(tables))
    options = ["-p", f"tables={file}", "-p", "horizon=20", "--episodes", "1", "--seed", "3", "--no-progress"]
    assert Said("export", "FairFraud-v0", *options, "--format", "minari", "--out", "command-v0").code == 0
    wanted = export(rules, "random", **given)["feature[amount]"].tolist()
    assert wanted != export("FairFraud-v0", "random", parameters={"horizon": 20}, **given)["feature[amount]"].tolist()
    place = rules.spec.features.index("amount")
    for name in ("rules-v0", "env-v0", "command-v0"):
        (episode,) = minari.load_dataset(name).iterate_episodes()
        assert episode.infos["fair_features"][1:, place].tolist() == pytest.approx(wanted)


def test_an_environment_that_is_given_is_the_one_that_is_stored(minari: Any) -> None:
    export_minari(gym.make("FairEpidemic-v0", initial=[3, 4], horizon=4), "random", "epidemic-v0", episodes=1)
    made = minari.load_dataset("epidemic-v0").recover_environment()
    made.reset(seed=0)
    assert made.spec.kwargs["initial"] == [3, 4]


def test_rewards_of_agents_that_a_reset_does_not_have_are_0(minari: Any) -> None:
    class Shared(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            *others, info = self.env.step(action)
            return *others, {**info, "agent_reward": np.array([1, 2])}

    with pytest.warns(UserWarning, match="does not store"):
        export_minari(Shared(Office()), coin, "shared-v0", episodes=1)
    (episode,) = minari.load_dataset("shared-v0").iterate_episodes()
    assert episode.infos["agent_reward"][:2].tolist() == [[0, 0], [1, 2]]


@pytest.mark.filterwarnings("ignore:the dataset does not store")
def test_datasets_have_new_names(minari: Any) -> None:
    export_minari(Office(), coin, "office-v0", episodes=1)
    with pytest.raises(ValueError, match="dataset_id must be the name of a new dataset, got 'office-v0', which exists"):
        export_minari(Office(), coin, "office-v0", episodes=1)
    with pytest.raises(
        ValueError, match="dataset_id must be a name and a version, such as 'some/test-v0', got 'office'"
    ):
        export_minari(Office(), coin, "office", episodes=1)


# PyCFRL ---------------------------------------------------------------------------------------------------------------


def test_trajectories_of_people_are_a_table_for_pycfrl() -> None:
    given: dict[str, Any] = {"episodes": 2, "parameters": {"horizon": 6}}
    found, table = (make("FairEpidemic-v0", "random", **given) for make in (export_pycfrl, export))
    assert found.columns.tolist()[:5] == ["ID", "timestamp", "sensitive[community]", "action", "reward"]
    people = table["individual"].nunique()
    assert len(found) == len(table) == 2 * 6 * people
    own = found[found["ID"] == people + 3]
    told = table[(table["episode"] == 1) & (table["individual"] == 3)]
    assert own["timestamp"].tolist() == [1, 2, 3, 4, 5, 6]
    assert own["feature[susceptible]"].tolist() == told["feature[susceptible]"].tolist()
    for name, made in (("action", "action"), ("reward", "outcome")):
        assert np.isnan(own[name].iloc[0]) and own[name].tolist()[1:] == told[made].tolist()[:-1]
    codes = found.groupby("ID")["sensitive[community]"].first().tolist()
    assert codes[people : 2 * people] == [int(name[-1]) for name in table["group"][-people:]]


def test_trajectories_of_agents_have_their_own_actions_and_rewards() -> None:
    given: dict[str, Any] = {"episodes": 1, "parameters": {**LITTLE, "horizon": 8, "observation": "ten"}}
    found, table = (make("FairHarvest-v0", "random", **given) for make in (export_pycfrl, export))
    assert not [name for name in found if name == "feature[sensitive]"]
    assert (table["action"] == -1).any()  # agents without a turn
    for agent, own in found.groupby("ID"):
        told = table[table["individual"] == agent]
        assert own["action"].tolist()[1:] == told["chosen"].tolist()[:-1]
        assert own["reward"].tolist()[1:] == told["reward"].tolist()[:-1]


def test_pycfrl_reads_the_table(tmp_path: Path) -> None:
    reader = pytest.importorskip("pycfrl.reader", reason="PyCFRL needs an older PyTorch")
    found = export_pycfrl("FairEpidemic-v0", "random", episodes=2, parameters={"horizon": 6})
    exporting.save_table(found, tmp_path / "people.csv")
    attributes, states = (found.columns[found.columns.str.startswith(kind)] for kind in ("sensitive", "feature"))
    names = {"action_label": "action", "reward_label": "reward", "id_label": "ID"}
    read = reader.read_trajectory_from_csv(tmp_path / "people.csv", attributes, states, **names, T=5)
    back = reader.convert_trajectory_to_dataframe(*read, z_labels=attributes, state_labels=states)
    same(back[found.columns], found)


@pytest.mark.parametrize(
    ("env", "why"),
    [
        (fair_envs.make_rules("FairHiring-v0"), "FairHiring-v0, which is about other people in each step"),
        (fair_envs.make_rules("FairTraffic-v0"), "FairTraffic-v0, which has agents that leave an episode"),
        (fair_envs.make_rules("FairPursuit-v0"), r"FairPursuit-v0, which has no actions 0, 1, \.\.\. but Box"),
    ],
)
def test_environments_without_trajectories_of_people_are_refused(env: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"env must have trajectories of people for PyCFRL, got {why}"):
        export_pycfrl(env, "random")


def test_trajectories_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"episodes must have the same number of steps for PyCFRL, got \d+ to \d"):
        export_pycfrl("FairPursuit-v0", "random", episodes=4, parameters={"action": "discrete", "side": 1.5})


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("individual", -1, r"each person must have a number in info\['fair_individual'\] for PyCFRL, not so in FairEp"),
        ("sensitive[community]", "", "everyone's community must be known for PyCFRL, not so in FairEpidemic-v0"),
    ],
)
def test_people_without_a_number_or_an_attribute_have_no_trajectories(column: str, value: Any, message: str) -> None:
    table = export("FairEpidemic-v0", "random", episodes=1, parameters={"horizon": 3})
    table[column] = table[column].where(table["step"] > 0, value)
    with pytest.raises(ValueError, match=message):
        trajectories(system_of("FairEpidemic-v0"), table)


# The command ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("empty_folder")
def test_the_command_writes_the_table_and_overwrites_nothing() -> None:
    options = ["FairLending-v0", "--policy", "max-reward", *SHORT, "-p", "feedback=accepted", "--labels", "all"]
    said = Said("export", *options)
    assert said.text.strip() == "saved runs/FairLending-v0-1.csv", said.text
    wanted: dict[str, Any] = {"parameters": {"horizon": 30, "feedback": "accepted"}, "labels": "all"}
    table = export("FairLending-v0", "max-reward", episodes=2, seed=TEST_SEEDS, **wanted)
    names = ["legitimate[score]"]
    same(pandas.read_csv("runs/FairLending-v0-1.csv", dtype=dict.fromkeys(names, str)), table)
    assert Said("export", *options).text.strip() == "saved runs/FairLending-v0-2.csv"
    message = "out must be a new path, got 'runs/FairLending-v0-1.csv', which exists"
    assert mistake("export", *options, "--out", "runs/FairLending-v0-1.csv") == message
    assert mistake("export", "FairLending-v0", "--format", "cvs").endswith("got 'cvs'; did you mean 'csv'?")
    assert "labels must be left out for the format pycfrl" in mistake("export", *options, "--format", "pycfrl")
    assert mistake("export", "FairHiring-v0", *SHORT, "--format", "pycfrl").startswith("env must have trajectories")


@pytest.mark.usefixtures("empty_folder")
def test_places_that_cannot_be_written_are_refused() -> None:
    Path("file").write_text("")
    Path("link.csv").symlink_to("nowhere.csv")
    for out, message in (
        ("file/some.csv", "out must be in a folder, got 'file/some.csv', where 'file' is a file"),
        ("link.csv", "out must be a new path, got 'link.csv', which exists"),
    ):
        assert mistake("export", "FairLending-v0", *SHORT, "--out", out) == message
    said = mistake("export", "FairLending-v0", *SHORT, "--format", "parquet", "--out", "some.csv")
    assert said == "out must not end with .csv for parquet, got 'some.csv'"
    assert mistake("export", "FairLending-v0", *SHORT, "--out", "some.PARQUET").startswith("out must not end with .PAR")
    said = mistake("export", "FairLending-v0", *SHORT, "--deterministic")
    assert said.startswith("--deterministic needs the zip of a model among the policies (--policy), got random")


@pytest.mark.usefixtures("empty_folder")
def test_the_command_writes_parquet() -> None:
    pytest.importorskip("pyarrow")
    assert Said("export", "FairHiring-v0", *SHORT, "--format", "parquet", "--out", "some/people.parquet").code == 0
    table = export("FairHiring-v0", "random", episodes=2, parameters={"horizon": 30})
    pandas.testing.assert_frame_equal(pandas.read_parquet("some/people.parquet"), table, check_column_type=False)


@pytest.mark.usefixtures("empty_folder")
def test_the_command_stores_datasets_under_the_next_free_name(minari: Any) -> None:
    for version in range(2):
        said = Said("export", "FairLending-v0", "--policy", "max-reward", *SHORT, "--format", "minari")
        name = f"fair-envs/FairLending-v0/max-reward-v{version}"
        assert said.text.strip() == f"saved the dataset {name}; read it with minari.load_dataset"
        assert minari.load_dataset(name).total_steps == 60
    assert "which exists" in mistake("export", "FairLending-v0", "--format", "minari", "--out", name)
    assert new_dataset(None, env_id="My.Env-v0", policy="モデル") == "fair-envs/My-Env-v0/policy-v0"


@pytest.mark.parametrize(
    ("form", "library", "extra"),
    [("csv", "pandas", "baselines"), ("parquet", "pyarrow", "datasets"), ("minari", "h5py", "datasets")],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, form: str, library: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    message = f"this needs {library}; install it with: pip install 'fair-envs[{extra}]'"
    assert mistake("export", "FairHiring-v0", "--format", form) == message


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz"])
def test_an_evaluation_keeps_the_record_of_its_episodes(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    options = ["FairLending-v0", "--policy", "max-reward", "--policy", "random", *SHORT, "-p", "feedback=accepted"]
    with monkeypatch.context() as patch:
        if suffix == "parquet":
            pytest.importorskip("pyarrow")
        else:
            patch.setitem(sys.modules, "pyarrow", None)
        assert Said("evaluate", *options, "--record", "--out", "found").code == 0
    (file,) = (empty_folder / "found").glob("record.*")
    assert file.name == f"record.{suffix}"
    texts = {"legitimate[score]": str}
    record = pandas.read_parquet(file) if suffix == "parquet" else pandas.read_csv(file, dtype=texts)
    given: dict[str, Any] = {"parameters": {"horizon": 30, "feedback": "accepted"}, "labels": "all", "episodes": 2}
    for policy in ("max-reward", "random"):
        table = export("FairLending-v0", policy, **given)
        same(record.loc[record["policy"] == policy, table.columns].reset_index(drop=True), table)
    assert {*record.columns} == {"policy", *export("FairLending-v0", "max-reward", **given).columns}
