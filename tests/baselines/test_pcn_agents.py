"""Pareto and Lorenz Conditioned Networks for agents and their groups, and as policies of an environment."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

pytest.importorskip("moocore")

from fair_envs import make_rules
from fair_envs.baselines.methods import method_for, named
from fair_envs.baselines.pcn import coverage
from fair_envs.baselines.pcn.buffer import Buffer, Entry, Ranking, packed
from fair_envs.baselines.pcn.objectives import RewardVectors, default_objectives
from fair_envs.baselines.pcn.pcn import PCN, Command, Commanded
from fair_envs.baselines.pcn.policy import Following, chosen_command, policy_of
from fair_envs.baselines.pcn.rollouts import Episode, Random
from fair_envs.baselines.pcn.training import LCNTraining, PCNTraining, load_pcn, make_env, make_model, train_pcn
from fair_envs.core import check_seeds
from fair_envs.evaluation import LanesWorld, Policy, World, begun, rollout
from fair_envs.evaluation.systems import play_system
from tests.baselines.test_pcn import weights
from tests.baselines.test_pcn_training import Stop
from tests.helpers import LITTLE
from tests.test_cli import Said, mistake

pytestmark = pytest.mark.usefixtures("empty_folder")

HARVEST: dict[str, Any] = {"env_id": "FairHarvest-v0", "parameters": LITTLE}
TRAFFIC: dict[str, Any] = {"env_id": "FairTraffic-v0", "parameters": {"cars": 6, "horizon": 40}}
HIRING: dict[str, Any] = {
    "env_id": "FairHiring-v0",
    "parameters": {"horizon": 15},
    "objectives": ("R", "SP", "IF"),
    "groups": ("gender",),
    "window": 10,
}
COLLEGE: dict[str, Any] = {"env_id": "FairCollege-v0", "parameters": {"horizon": 10}, "bins": 4}
EPIDEMIC: dict[str, Any] = {"env_id": "FairEpidemic-v0", "parameters": {"horizon": 8}}
SMALL: dict[str, Any] = {
    "lanes": 4,
    "steps": 200,
    "first_episodes": 8,
    "episodes": 4,
    "updates": 3,
    "batch_size": 32,
    "test_episodes": 2,
}


@pytest.fixture(autouse=True)
def blank_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing into the plots of a run, which take longer than its training."""
    for name in ("pareto_plot", "parallel_plot"):
        monkeypatch.setattr(coverage, name, lambda found: Figure())


def config(of: dict[str, Any] = HARVEST, kind: type[PCNTraining] = PCNTraining, **changes: Any) -> Any:
    """Return the settings of a small training."""
    return kind(**{**of, **SMALL, **changes})


# --------------------------------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("of", [HARVEST, TRAFFIC])
def test_episodes_hold_the_turns_of_all_agents_and_the_rewards_of_the_groups(of: dict[str, Any]) -> None:
    env = make_env(config(of))
    model = PCN(env, settings=config(of).settings)
    taken: list[Any] = []
    step = env.env.step

    def recorded(actions: Any) -> Any:
        found = step(actions)
        taken.append((np.array(actions), env.unwrapped.interactions["action"].copy(), found[4]["agent_reward"]))
        return found

    env.env.step = recorded
    episodes = model.play(env, Random(env, model._rows), episodes=4, rng=np.random.default_rng(0), seed=3)
    agents, group = env.unwrapped.lanes.agents, env.unwrapped.lanes.show().facts["group"]
    for lane, episode in enumerate(episodes):
        actions, facts, rewards = (np.stack([row[k][lane] for row in taken[: len(episode)]]) for k in range(3))
        turns, who = np.nonzero(facts >= 0)
        assert episode.turns is not None and episode.turns.tolist() == turns.tolist()
        assert episode.actions.tolist() == actions[turns, who].tolist()
        assert 0 < episode.samples < agents * len(episode) or (of is TRAFFIC and episode.samples == 6 * len(episode))
        for k in range(2):
            means = rewards[:, group[lane] == k].mean(axis=1) if (group[lane] == k).any() else np.zeros(len(rewards))
            assert episode.rewards[:, k] == pytest.approx(means, abs=1e-6)


def test_agents_that_have_left_are_not_learned_from() -> None:
    env = make_env(config(TRAFFIC, parameters={"cars": 6, "horizon": 300}))
    model = PCN(env, settings=config(TRAFFIC).settings)
    shortest = _Shortest(env)
    (episode, *_) = model.play(env, shortest, episodes=4, rng=np.random.default_rng(0), seed=0)
    assert episode.turns is not None
    acting = np.bincount(episode.turns, minlength=len(episode))
    assert acting[0] == 6
    assert acting[-1] < 6
    assert (np.diff(acting) <= 0).all()


class _Shortest(Random):
    """Drives as the scripted policy does, with certainty."""

    def __init__(self, env: Any) -> None:
        from fair_envs.baselines.pcn.actions import rows_of
        from fair_envs.evaluation import scripted

        super().__init__(env, rows_of(env))
        self._policy = scripted(env.unwrapped.lanes.rules, "shortest-time")

    def start(self, world: Any) -> None:
        self._policy.start(world)

    def probabilities(self, observation: Any) -> Any:
        return np.eye(9)[self._policy.act(observation, np.zeros(observation.shape[:2]))]


def test_all_agents_of_a_lane_share_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(config())
    model.iterate()
    agent = Commanded(model, [Command(np.array([1.0, 2.0]), 5.0), Command(np.array([3.0, 4.0]), 6.0)], lanes=2)
    agent.begin(np.ones(2, bool), np.arange(2))
    seen: list[Any] = []
    probabilities = model._probabilities

    def watched(*arguments: Any) -> Any:
        seen.extend(arguments)
        return probabilities(*arguments)

    monkeypatch.setattr(model, "_probabilities", watched)
    found = agent.probabilities(np.zeros((2, 8, 10), np.float32))
    assert found.shape == (2, 8, 8)
    assert seen[1].tolist() == [[1, 2]] * 8 + [[3, 4]] * 8
    assert seen[2].tolist() == [5] * 8 + [6] * 8


@pytest.mark.parametrize(
    "of",
    [HARVEST, {**HARVEST, "kept_samples": 25}, COLLEGE, EPIDEMIC],
    ids=["harvest", "thinned", "college", "epidemic"],
)
def test_an_interrupted_training_ends_like_one_that_was_not(tmp_path: Path, of: dict[str, Any]) -> None:
    own = config(of)
    whole = train_pcn(own, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_pcn(own, out=tmp_path / "part", callback=Stop(120))
    resumed = train_pcn(own, out=tmp_path / "part", resume=True)
    assert np.array_equal(weights(whole), weights(resumed))
    for name in ("metrics.csv", "coverage.csv", "coverage.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "part" / name).read_bytes()


def test_a_buffer_keeps_only_some_turns_of_an_episode_and_all_its_rewards() -> None:
    model = make_model(config(kept_samples=25))
    played = model.iterate()
    assert min(episode.samples for episode in played) > 25
    for one, kept in zip(played, model.buffer.episodes, strict=True):
        assert (kept.samples, len(kept)) == (25, len(one))
        assert np.array_equal(kept.returns, one.returns)
        assert one.turns is not None and kept.turns is not None
        assert (np.diff(kept.turns) >= 0).all() and kept.turns.max() > len(one) / 2
        rows = {
            (*row, action, step) for row, action, step in zip(one.observations, one.actions, one.turns, strict=True)
        }
        for row, action, step in zip(kept.observations, kept.actions, kept.turns, strict=True):
            assert (*row, action, step) in rows
    every = make_model(config(kept_samples=0))
    every.iterate()
    assert [episode.samples for episode in every.buffer.episodes] == [episode.samples for episode in played]


def test_a_training_without_an_update_says_so() -> None:
    horizon = LITTLE["horizon"]
    with pytest.warns(UserWarning, match=f"learned nothing: the 8 random episodes .* took all {horizon} steps"):
        train_pcn(config(steps=horizon))


def test_every_turn_of_an_episode_is_kept_equally_often() -> None:
    steps = 6
    whole = Episode(observations=np.arange(steps, dtype=np.float32), actions=np.arange(steps), rewards=np.ones((6, 1)))
    rng = np.random.default_rng(0)
    kept = [whole.thinned(2, rng) for _ in range(3000)]
    assert whole.thinned(6, rng) is whole
    counts = np.bincount(np.concatenate([part.actions for part in kept]), minlength=steps)
    assert np.abs(counts - 1000).max() < 130  # five standard deviations
    assert all(part.turns is not None and np.array_equal(part.turns, part.actions) for part in kept)


def test_a_buffer_of_whole_and_thinned_episodes_is_restored() -> None:
    long, short = (
        Episode(observations=np.zeros((n, 2), np.float32), actions=np.arange(n), rewards=np.ones((n, 1)))
        for n in (9, 3)
    )
    thin = long.thinned(4, np.random.default_rng(0))
    other = Buffer(3, Ranking(), keep="top", objectives=[0], scale=np.ones(1))
    entries = [Entry(0.0, number, episode) for number, episode in enumerate((thin, short))]
    other.restore(packed(entries, played=2))
    for one, kept in zip((thin, short), other.episodes, strict=True):
        assert np.array_equal(one.actions, kept.actions)
        assert kept.turns is not None and np.array_equal(one.steps(np.arange(one.samples)), kept.turns)


def test_the_names_of_the_groups_head_the_results_of_a_run(tmp_path: Path) -> None:
    own = config(objectives=("groups",))
    assert (own.names, own.requested) == (("full_speed", "half_speed"), [0, 1])
    train_pcn(own, out=tmp_path / "run")
    header = (tmp_path / "run" / "coverage.csv").read_text().splitlines()[0]
    assert "desired_full_speed" in header and "half_speed_low" in header
    assert "rollout/half_speed" in (tmp_path / "run" / "metrics.csv").read_text().splitlines()[0]


# ------------------------------------------------------------------------------------------------------------ LCN


def test_lcn_with_lambda_1_is_pcn_to_the_bit() -> None:
    few: dict[str, Any] = {"steps": 400, "buffer_size": 6}
    pareto, lorenz = (train_pcn(config(kind=kind, lorenz_lambda=1.0, **few)) for kind in (PCNTraining, LCNTraining))
    assert np.array_equal(weights(pareto), weights(lorenz))
    commands = [np.append(command.desired_return, command.horizon).tolist() for command in pareto.commands()]
    assert commands == [np.append(command.desired_return, command.horizon).tolist() for command in lorenz.commands()]
    assert not np.array_equal(weights(pareto), weights(train_pcn(config(kind=LCNTraining, **few))))


def test_lcn_compares_groups_by_lorenz_dominance_unless_told_otherwise() -> None:
    own = config(kind=LCNTraining)
    assert (own.algorithm, own.lorenz_lambda, own.objectives) == ("lcn", 0, ("groups",))
    assert (config().lorenz_lambda, config().objectives) == (1, ("groups",))
    with pytest.raises(ValueError, match="algorithm must be one of 'lcn', got 'pcn'"):
        config(kind=LCNTraining, algorithm="pcn")
    assert LCNTraining(env_id="FairHiring-v0").objectives == ("groups",)
    assert (
        LCNTraining(env_id="FairHiring-v0", lorenz_lambda=1.0).objectives
        == PCNTraining(env_id="FairHiring-v0").objectives
    )


def test_a_run_of_lcn_is_loaded_as_it_was(tmp_path: Path) -> None:
    own = config(kind=LCNTraining)
    model = train_pcn(own, out=tmp_path / "run")
    loaded, known = load_pcn(tmp_path / "run", LCNTraining)
    assert known == own
    assert np.array_equal(weights(model), weights(loaded))
    for one, other in zip(model.buffer.episodes, loaded.buffer.episodes, strict=True):
        for name in ("observations", "actions", "rewards", "turns"):
            assert np.array_equal(getattr(one, name), getattr(other, name))


# ------------------------------------------------------------------------------------- what each environment allows


@pytest.mark.parametrize(
    ("env_id", "expected"),
    [
        ("FairHarvest-v0", ("groups",)),
        ("FairTraffic-v0", ("groups",)),
        ("FairHiring-v0", ("performance", "demographic_parity", "individual_fairness")),
        ("FairEpidemic-v0", ("performance", "demographic_parity")),
        ("FairCollege-v0", ("performance", "demographic_parity")),
        ("FairAttention-v0", ("measures",)),
    ],
)
def test_default_objectives_are_those_that_an_environment_can_measure(env_id: str, expected: Any) -> None:
    assert default_objectives(make_rules(env_id)) == expected
    assert default_objectives(make_rules(env_id), comparable=True) == ("groups",)


@pytest.mark.parametrize(
    ("method", "env_id", "given", "why"),
    [
        ("pcn", "FairPursuit-v0", {}, "needs actions that can be listed; its action space is a Box with 2 entries"),
        ("pcn", "FairAttention-v0", {"objectives": ["R", "SP"]}, "cannot measure the objective demographic_parity"),
        (
            "lcn",
            "FairLending-v0",
            {"parameters": {"feedback": "accepted"}},
            "cannot measure the objectives groups: .* needs labels of all people",
        ),
        (
            "pcn",
            "FairCollege-v0",
            {"objectives": ["R", "IF"]},
            "cannot measure the objective individual_fairness, which needs one",
        ),
    ],
)
def test_the_registry_says_why_an_environment_is_not_supported(method: str, env_id: str, given: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"method must support {env_id}, got '{method}', which {why}"):
        method_for(method, env_id, given)


def test_environments_of_every_kind_are_supported() -> None:
    for env_id in ("FairHarvest-v0", "FairTraffic-v0", "FairHiring-v0", "FairEpidemic-v0", "FairCollege-v0"):
        assert method_for("pcn", env_id).name == "pcn"
    assert method_for("lcn", "FairHiring-v0", {"objectives": ["R", "SP"]}).name == "lcn"


def test_wrong_objectives_are_named() -> None:
    with pytest.raises(ValueError, match=r"objectives must not have others besides groups, got \['groups', 'perf"):
        config(objectives=("groups", "R"))
    with pytest.raises(ValueError, match=r"followed must be 'knee', 'sum' or the number of a point in coverage\.csv"):
        config(followed="best")


# -------------------------------------------------------------------------------------------------------- policies


class Known(PCN):
    """A learner with known commands."""

    def commands(self) -> list[Command]:
        return [Command(np.array(row), 9.0) for row in ((0.0, 10.0), (4.0, 9.0), (20.0, 0.0))]


@pytest.mark.parametrize(("choice", "expected"), [("knee", [4, 9]), ("sum", [20, 0]), ("0", [0, 10]), ("2", [20, 0])])
def test_a_policy_follows_the_trade_off_that_was_chosen(choice: str, expected: list[int]) -> None:
    model = Known(make_env(config()))
    assert chosen_command(model, choice).desired_return.tolist() == expected
    policy = policy_of(model, make_rules("FairHarvest-v0", **LITTLE), choice=choice)
    assert policy._commands[0].desired_return.tolist() == expected


def test_trade_offs_that_do_not_exist_are_named() -> None:
    with pytest.raises(ValueError, match="choice must be the number of a point from 0 to 2, got 3"):
        chosen_command(Known(make_env(config())), "3")
    with pytest.raises(ValueError, match="model must have learned a trade-off, got none; train it first"):
        chosen_command(make_model(config()))
    with pytest.raises(
        ValueError, match=r"policy must be used with observations like those of its training, \(10,\), got \(26,\)"
    ):
        policy_of(Known(make_env(config())), make_rules("FairTraffic-v0"))


@pytest.mark.parametrize("of", [HARVEST, TRAFFIC, HIRING, COLLEGE, EPIDEMIC], ids=lambda of: of["env_id"])
def test_a_policy_plays_lanes_as_the_coverage_set_plays_the_environment(of: dict[str, Any]) -> None:
    """It computes the vector rewards from the lanes' record; the environment computes them with its wrapper."""
    model = make_model(config(of))
    model.learn(150)
    command = model.commands()[0]
    env = copy.deepcopy(model.blank_env)
    asked = Commanded(model, [command], lanes=4)
    played = model.play(env, asked, episodes=4, rng=np.random.default_rng(0), seed=5, deterministic=True)
    policy = policy_of(model, env.unwrapped.lanes.rules, command=command, deterministic=True)
    world = LanesWorld(begun(env.unwrapped.lanes.rules, check_seeds(5, 4)))
    actions = [step.action for step in rollout(world, policy)]
    assert policy._returns == pytest.approx(asked._returns, abs=1e-5)
    assert policy._horizons.tolist() == asked._horizons.tolist()
    if played[0].turns is None:
        assert [step[0, 0].tolist() for step in actions] == played[0].actions.tolist()


def test_a_policy_is_started_anew_in_each_world() -> None:
    model = make_model(config())
    model.learn(100)
    policy = policy_of(model, make_rules("FairHarvest-v0", **LITTLE))
    first, second = (play_system(make_rules("FairHarvest-v0", **LITTLE), policy, episodes=6, lanes=n) for n in (6, 4))
    assert first.returns.values.tolist() == second.returns.values.tolist()


def test_a_world_without_lanes_or_without_the_objectives_is_named() -> None:
    vectors = RewardVectors(make_env(config()))
    with pytest.raises(ValueError, match="world must have lanes of fair_envs"):
        vectors.start(_NoLanes())
    with pytest.raises(ValueError, match=r"world must have the objectives .*full_speed.* of the training, got .*AI-"):
        vectors.start(LanesWorld(begun(make_rules(**_rules(TRAFFIC)), check_seeds(0, 1))))


class _NoLanes(World):
    lanes = None


def _rules(of: dict[str, Any]) -> dict[str, Any]:
    return {"env_id": of["env_id"], **of["parameters"]}


def test_both_methods_have_policies() -> None:
    for name in ("pcn", "lcn"):
        assert named(name).policy is not None
    assert issubclass(Following, Policy)


# ------------------------------------------------------------------------------------------------ the command line


def test_the_command_line_trains_lcn_and_compares_its_policy_with_others(tmp_path: Path) -> None:
    little = [word for name, value in LITTLE.items() for word in ("-p", f"{name}={value}")]
    run = tmp_path / "run"
    options = ["--steps", 60, "--first-episodes", 4, "--updates", 2, "--test-episodes", 2, "--no-progress"]
    said = Said("train", "lcn", "FairHarvest-v0", *little, *options, "--followed", "sum", "--out", run)
    assert said.code == 0, said.text
    tested = Said("evaluate", run, "--episodes", "2")
    assert "desired full_speed" in tested.text, tested.text
    beside = Said("evaluate", "FairHarvest-v0", *little, "--policy", run, "--policy", "random", "--episodes", "4")
    assert beside.code == 0, beside.text
    assert "performance" in beside.text and str(run)[-8:] in beside.text
    wrong = mistake("evaluate", "FairTraffic-v0", "--policy", run)
    assert "policy must be used with observations like those of its training" in wrong
