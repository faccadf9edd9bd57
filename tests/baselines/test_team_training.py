"""Trainings of teams: their folder, their interruption, their going on to the bit, and their evaluation."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback

from fair_envs import make_rules
from fair_envs.baselines.team import evaluation as team_evaluation
from fair_envs.baselines.team import training as team_training
from fair_envs.baselines.team.curriculum import Linear, Stepped, level_states
from fair_envs.baselines.team.ddpg import DDPG, DeepSetsPolicy, FairE, FairER
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.team.training import (
    PRESETS,
    TeamTraining,
    load_team,
    make_team,
    team_settings,
    train_team,
)
from fair_envs.envs.pursuit.policies import Greedy, ShuffledRoles, Team
from fair_envs.tasks import task_of
from tests.baselines.interruptions import Interrupt, Stop
from tests.baselines.small import HARVEST
from tests.baselines.teams import PURSUIT, WORLD, numbers, same_numbers

STEPS = 2 * 3 * 60  # agent steps of sixty steps of two lanes


def config(**changes: Any) -> TeamTraining:
    """Return a small training of thirty rollouts."""
    default: dict[str, Any] = {
        "env_id": PURSUIT,
        "parameters": WORLD,
        "steps": STEPS,
        "lanes": 2,
        "train_freq": 2,
        "speeds": (1.2, 0.4),
        "learning_starts": 30,
        "batch_size": 8,
        "buffer_size": 60,
        "actor": (8, 8),
        "critic": (8, 8),
        "n_steps": 3,
    }
    return TeamTraining(**{**default, **changes})


@pytest.fixture(scope="module")
def trained() -> Any:
    """Return the model of the small training that nothing disturbs."""
    return train_team(config())


KINDS: dict[str, dict[str, Any]] = {
    "ddpg": {"algorithm": "ddpg"},
    "td3": {"algorithm": "ddpg", "twin_critics": True, "policy_delay": 2, "target_policy_noise": 0.2},
    "fair-e": {"algorithm": "fair-e", "network": "sets"},
    "fair-er": {"algorithm": "fair-er", "form": "automatic", "weight_learning_rate": 0.1},
}


def state(model: Any) -> list[Any]:
    """Return all that a training leaves in its model."""
    return [
        *numbers(model).values(),
        *(part for optimizer in (model.actor_optimizer, model.critic_optimizer) for part in _flat(optimizer)),
        model.noise.state,
        getattr(model, "_weights", 0),
        model._last_obs,
        *(model.env.lanes.records[name] for name in model.env.lanes.records.dtype.names),
        [model.num_timesteps, model._n_updates, model._episode_num],
    ]


def _flat(optimizer: th.optim.Optimizer) -> list[Any]:
    return [part for of_weights in optimizer.state.values() for part in of_weights.values()]


def assert_same_state(one: Any, other: Any) -> None:
    for a, b in zip(state(one), state(other), strict=True):
        assert np.array_equal(a, b)


def keep_every(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(team_training, "KEPT_EVERY", seconds)
    monkeypatch.setattr(team_training, "KEPT_SHARE", math.inf)


@pytest.mark.parametrize("seconds", [-1.0, 1e9])
@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(
    kind: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_every(monkeypatch, seconds)
    settings, part = config(**KINDS[kind]), tmp_path / "part"
    whole = train_team(settings, out=tmp_path / "whole")
    for step in (41, 12):  # in the middle of a rollout and of an episode; the ring is full then
        with pytest.raises(KeyboardInterrupt):
            train_team(settings, out=part, resume=part.exists(), callback=Interrupt(step))
        assert not (part / "model.zip").exists()
    resumed = train_team(settings, out=part, resume=True)
    assert_same_state(whole, resumed)
    names = sorted(path.name for path in part.glob("model*"))
    assert names == sorted(path.name for path in (tmp_path / "whole").glob("model*"))
    assert len(names) == 10
    kept, wanted = level_states(part), level_states(tmp_path / "whole")
    for level, weights in wanted.items():
        assert all(th.equal(kept[level][name], value) for name, value in weights.items())
    assert len({weights["actor.weights"].sum().item() for weights in wanted.values()}) == 9


def test_a_checkpoint_holds_the_replay_until_the_training_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_every(monkeypatch, -1.0)
    with pytest.raises(KeyboardInterrupt):
        train_team(config(), out=tmp_path / "run", callback=Interrupt(21))
    held = th.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["extra_state"]["replay"]
    assert {len(values) for values in held.values()} == {20}
    model = train_team(config(), out=tmp_path / "run", resume=True)
    held = th.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["extra_state"]["replay"]
    assert {len(values) for values in held.values()} == {0}
    loaded, settings = load_team(tmp_path / "run")
    assert settings == config()
    assert same_numbers(model, loaded)
    assert same_numbers(model, DDPG.load(tmp_path / "run" / "model.zip", device="cpu"))


@pytest.mark.parametrize("step", [31, 32, 60])
def test_a_callback_that_ends_the_training_leaves_it_resumable(step: int, trained: Any, tmp_path: Path) -> None:
    settings = config()
    stopped = train_team(settings, out=tmp_path / "part", callback=Stop(step))
    assert stopped.num_timesteps == 6 * step
    assert stopped.replay_buffer is not None and stopped.replay_buffer.size() > 0
    assert_same_state(trained, train_team(settings, out=tmp_path / "part", resume=True))


def test_a_finished_run_resumes_to_what_it_was(tmp_path: Path) -> None:
    first = train_team(config(), out=tmp_path / "run")
    again = train_team(config(), out=tmp_path / "run", resume=True)
    assert same_numbers(first, again)
    assert again.num_timesteps == STEPS


def test_equal_trainings_are_equal_and_seeds_differ() -> None:
    np.random.rand(3)
    one, same, other = (train_team(config(seed=seed)) for seed in (0, 0, 1))
    assert same_numbers(one, same) and not same_numbers(one, other)


def test_it_leaves_chance_as_it_was() -> None:
    before = th.get_rng_state().tolist(), str(np.random.get_state())
    train_team(config(steps=60))
    assert (th.get_rng_state().tolist(), str(np.random.get_state())) == before


def test_seeds_play_different_episodes_and_learn_from_the_curriculums_first_speed() -> None:
    found = []
    for seed in (0, 0, 1):
        env: Any = make_team(config(seed=seed)).env
        env.reset()
        found.append(env.lanes.records)
    assert np.array_equal(found[0], found[1])
    assert not np.intersect1d(found[0]["position"], found[2]["position"]).size
    assert (found[0]["speed"] == 1.2).all()


# ----------------------------------------------------------------------------------------------------- settings


def test_settings_reach_the_learner() -> None:
    settings = config(
        algorithm="fair-er",
        fairness_weight=0.9,
        form="normalised",
        fairness_limit=0.3,
        weight_learning_rate=0.5,
        gamma=0.5,
        tau=0.25,
        gradient_steps=3,
        max_grad_norm=2.0,
        learning_rate=0.125,
        critic_learning_rate=0.25,
        noise_theta=0.5,
        noise_final_sigma=0.01,
        exploration_fraction=0.75,
        exploration_final_eps=0.5,
        guided=False,
        reward_scale=0.5,
        seed=7,
    )
    model = make_team(settings)
    assert isinstance(model, FairER)
    found = (model.fairness_weight, model.form, model.fairness_limit, model.weight_learning_rate)
    assert found == (0.9, "normalised", 0.3, 0.5)
    assert (model.gamma, model.tau, model.gradient_steps, model.max_grad_norm) == (0.5, 0.25, 3, 2.0)
    assert (model.learning_rate, model.critic_learning_rate, model.return_steps) == (0.125, 0.25, 3)
    assert (model.exploration.theta, model.exploration.sigma[1]) == (0.5, 0.01)
    assert (model.exploration.fraction, model.exploration.eps[1]) == (0.75, 0.5)
    assert (model.guide, model.seed, model.env.reward_scale) == (None, 7, 0.5)  # type: ignore[union-attr]
    assert (model.batch_size, model.learning_starts, model.train_freq[0]) == (8, 30, 2)  # type: ignore[index]
    assert model.policy.actor.sizes == ((6, 8), (8, 8), (8, 2))


def test_algorithms_and_networks_are_what_they_are_called() -> None:
    assert type(make_team(config())) is DDPG
    assert isinstance(make_team(config()).guide, Greedy)
    model = make_team(config(algorithm="fair-e", network="sets"))
    assert isinstance(model, FairE)
    assert isinstance(model.policy, DeepSetsPolicy)
    assert model.policy.networks == 1


def test_courses() -> None:
    assert config().course() == Linear(1.2, 0.4)
    assert config(episodes=7).course() == Linear(1.2, 0.4, episodes=7)
    assert config(curriculum="stepped", speeds=(1.2, 1.0, 0.9)).course() == Stepped((1.2, 1.0, 0.9))
    assert config(curriculum="stepped", speeds=(1.2, 1.0), episodes=7).course() == Stepped((1.2, 1.0), (7, 7))
    assert config(curriculum="fixed").course() is None


def test_a_fixed_speed_is_the_environments_and_keeps_no_levels(tmp_path: Path) -> None:
    model = train_team(config(curriculum="fixed", parameters={**WORLD, "pursuer_speed": 0.7}), out=tmp_path / "run")
    assert (model.env.lanes.records["speed"] == 0.7).all()  # type: ignore[union-attr]
    assert not list((tmp_path / "run").glob("model-*.zip"))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_stands_in_for_what_is_not_given(preset: Any) -> None:
    settings = team_settings(PURSUIT, preset=preset, gamma=0.5, parameters={"horizon": 77})
    parameters = task_of(PURSUIT).parameters if preset == "recommended" else PRESETS[preset]["parameters"]
    of_preset = {**PRESETS[preset], "gamma": 0.5, "parameters": {**parameters, "horizon": 77}}
    assert {name: getattr(settings, name) for name in of_preset} == of_preset
    assert settings.env_id == PURSUIT


def test_the_papers_preset_is_the_papers() -> None:
    settings = team_settings(PURSUIT, preset="paper")
    found = (settings.learning_rate, settings.critic_learning_rate, settings.gamma, settings.batch_size)
    assert found == (1e-4, 1e-3, 0.99, 512)
    assert (settings.buffer_size, settings.tau, settings.max_grad_norm, settings.n_steps) == (500_000, 0.001, 0.5, 1)
    assert (settings.actor, settings.critic, settings.train_freq) == ((128, 128), (128, 128, 128), 5)
    assert (settings.noise_initial_sigma, settings.noise_final_sigma, settings.noise_theta) == (0.3, 0.02, 0.15)
    assert (settings.speeds, settings.episodes, settings.lanes, settings.reward_scale) == ((1.2, 0.4), 15_000, 1, 1.0)
    assert (settings.exploration_initial_eps, settings.exploration_final_eps) == (0.95, 0.05)
    assert (settings.exploration_fraction, settings.learning_starts) == (0.12, 165_000)
    assert (settings.gradient_steps, settings.twin_critics, settings.guided) == (1, False, True)


def test_settings_survive_json() -> None:
    settings = config(speeds=[1.2, 0.6], levels=[1, 0.8])
    assert TeamTraining(**json.loads(json.dumps(settings.as_dict()))) == settings


BAD: list[tuple[dict[str, Any], str]] = [
    ({"env_id": "FairWheat-v0"}, "id must be one of "),
    (
        {"env_id": "FairLending-v0", "parameters": {}},
        "env_id must be supported with the parameters, got 'FairLending-v0', which needs several agents with one "
        "action space, and there is one decision-maker",
    ),
    (
        {"parameters": {"action": "heading"}},
        "env_id must be supported with the parameters, got 'FairPursuit-v0', which needs actions that are discrete or",
    ),
    (
        {"env_id": HARVEST, "parameters": {}, "curriculum": "linear"},
        "curriculum must be 'fixed' for FairHarvest-v0, which has no speed to change, got 'linear'",
    ),
    ({"parameters": {"pursuers": 0}}, "pursuers must be between 1 and 100, got 0"),
    ({"parameters": {1: 2}}, "parameters must map names to values, got {1: 2}"),
    ({"algorithm": "ppo"}, "algorithm must be one of 'ddpg', 'fair-e', 'fair-er', got 'ppo'"),
    ({"network": "cnn"}, "network must be one of 'mlp', 'sets', got 'cnn'"),
    ({"steps": 0}, "steps must be at least 1, got 0"),
    ({"curriculum": "random"}, "curriculum must be one of 'automatic', 'fixed', 'linear', 'stepped', got 'random'"),
    ({"speeds": "1.2"}, "speeds must be several values, got '1.2'"),
    ({"speeds": 1.2}, "speeds must be several values, got 1.2"),
    ({"speeds": (0.4, 1.2)}, "speeds must decrease, got (0.4, 1.2)"),
    ({"speeds": (0.4, 1.2), "curriculum": "stepped"}, "speeds must decrease, got (0.4, 1.2)"),
    ({"steps": 30}, "steps must be more than learning_starts, 30, to learn anything, got 30"),
    ({"lanes": 2**21}, "lanes must be at most 1048576, got 2097152"),
    ({"speeds": (1.2, 1.0, 0.4)}, "speeds must be the first and the last for curriculum 'linear', got (1.2, 1.0, 0.4)"),
    ({"speeds": (), "curriculum": "stepped"}, "speeds must contain at least one speed, got none"),
    ({"speeds": (-1.0, -2.0)}, "speeds[0] must be between 0 and 100, got -1.0"),
    ({"levels": (1.0, "slow")}, "levels[1] must be a finite number between 0 and 100, got 'slow'"),
    ({"actor": (8, 0)}, "actor[1] must be at least 1, got 0"),
    ({"critic": "8,8"}, "critic must be several values, got '8,8'"),
    ({"episodes": -1}, "episodes must be at least 0, got -1"),
    ({"reward_scale": 0}, "reward_scale must be at least 1e-12, got 0"),
    ({"gamma": 2}, "gamma must be between 0 and 1, got 2"),
    ({"form": "fair"}, "form must be one of 'plain', 'normalised', 'automatic', got 'fair'"),
    ({"fairness_limit": 3}, "fairness_limit must be between 0 and 2, got 3"),
    ({"guided": 1}, "guided must be True or False, got 1"),
    ({"seed": 2**20}, "seed must be between 0 and 1048575, got 1048576"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_wrong_settings_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as told:
        config(**changes)
    assert str(told.value).startswith(message)


def test_unknown_presets_parameters_and_settings_are_named() -> None:
    with pytest.raises(ValueError, match="preset must be one of 'recommended', 'small', 'large', 'paper', got 'tiny'"):
        team_settings(PURSUIT, preset="tiny")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'wings'"):
        config(parameters={"wings": 2})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "sets", "parameters": {"observation": "authors"}}, "must be given for DeepSetsPolicy"),
        ({"network": "sets", "actor": (8,)}, "hidden must have at least two layers for networks on sets"),
        ({"algorithm": "fair-er", "parameters": {"pursuers": 1}}, "env must have at least two agents"),
    ],
)
def test_what_does_not_fit_leaves_no_folder_behind(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        train_team(config(**changes), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_resumed_with_other_settings_or_from_nowhere(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_team(config(), out=run)
    before = (run / "checkpoint.pt").read_bytes()
    with pytest.raises(ValueError, match=r"gamma must be 0\.98 to resume"):
        train_team(config(gamma=0.5), out=run, resume=True)
    with pytest.raises(FileExistsError, match="out must be a new folder"):
        train_team(config(), out=run)
    with pytest.raises(FileNotFoundError, match=r"with config\.json, got"):
        train_team(config(), out=tmp_path / "nowhere", resume=True)
    with pytest.raises(ValueError, match="out must name the run to resume, got None"):
        train_team(config(), resume=True)
    assert (run / "checkpoint.pt").read_bytes() == before


# ------------------------------------------------------------------------------------------------------ metrics


class Ends(BaseCallback):
    """Counts, in the plainest way, who has captured in the episodes that ended, and whether all evaders were."""

    def __init__(self) -> None:
        super().__init__()
        self.captures: list[Any] = []
        self.successes: list[bool] = []
        self.when: list[int] = []

    def _on_training_start(self) -> None:
        lanes = self.training_env.lanes  # type: ignore[attr-defined]
        self.under_way = [set[int]() for _ in range(lanes.count)]

    def _on_step(self) -> bool:
        outcome = self.training_env.interactions["outcome"]  # type: ignore[attr-defined]
        agents = outcome.shape[1]
        for lane, captors in enumerate(self.under_way):
            captors |= set(np.flatnonzero(outcome[lane]).tolist())
            if self.locals["dones"][lane * agents]:
                self.captures.append([agent in captors for agent in range(agents)])
                self.successes.append(not self.locals["infos"][lane * agents]["TimeLimit.truncated"])
                self.when.append(self.num_timesteps)
                captors.clear()
        return True


CUT = {"evaders": 2, "horizon": 5, "pursuer_radius": 0.4}  # the time limit often falls on the capture of one of two


@pytest.mark.parametrize("parameters", [{}, {"evaders": 2, "horizon": 40}, CUT])
def test_rows_tell_what_episodes_came_to(parameters: dict[str, Any], tmp_path: Path) -> None:
    ends = Ends()
    settings = config(steps=6 * 400, parameters={**WORLD, "side": 1.5, **parameters}, exploration_initial_eps=1.0)
    train_team(settings, out=tmp_path / "run", callback=ends)
    rows = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert len(rows) == 200
    assert [row["time/total_timesteps"] for row in rows] == [12 * k for k in range(1, 201)]
    assert {"curriculum/speed", "train/critic_loss", "train/value", "train/n_updates"} <= rows[-1].keys()
    assert rows[0]["curriculum/speed"] == 1.2
    told = [row for row in rows if "rollout/success" in row]
    assert 0 < len(told) < 200  # only where an episode ended
    ended = [
        sum(row["time/total_timesteps"] - 12 < when <= row["time/total_timesteps"] for when in ends.when)
        for row in told
    ]
    success = sum(row["rollout/success"] * episodes for row, episodes in zip(told, ended, strict=True))
    assert success == pytest.approx(sum(ends.successes))
    for agent in range(3):
        shares = [row[f"rollout/captures[pursuer {agent}]"] for row in told]
        captured = sum(share * episodes for share, episodes in zip(shares, ended, strict=True))
        assert captured == pytest.approx(sum(who[agent] for who in ends.captures))
    assert 0 < np.mean(ends.successes) < 1


def test_fair_er_tells_its_penalty_and_its_weight(tmp_path: Path) -> None:
    train_team(config(algorithm="fair-er"), out=tmp_path / "run")
    rows = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert 0 < rows[-1]["train/penalty"] < 2
    assert rows[-1]["train/fairness_weight"] == 0.5
    assert rows[-1]["train/value_gradient"] > 0 and rows[-1]["train/penalty_gradient"] > 0


# --------------------------------------------------------------------------------------------------- evaluation


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small training."""
    folder = tmp_path_factory.mktemp("teams") / "run"
    world = {**WORLD, "side": 1.5, "horizon": 40}
    train_team(config(levels=(1.2, 0.8, 0.4), parameters=world), out=folder)
    return folder


def played(run: Path, **settings: Any) -> Any:
    model, kept = load_team(run)
    rules = make_rules(kept.env_id, **kept.parameters)
    before = numbers(model)
    settings = {"speeds": (1.2, 0.8, 0.5), "episodes": 20, "seed": 5, **settings}
    found = team_evaluation.play_levels(model, level_states(run), rules, **settings)
    assert all(th.equal(before[name], value) for name, value in numbers(model).items())
    return found


def test_policies_are_tested_at_their_speed_and_the_last_one_at_all(run: Path) -> None:
    calls: list[int] = []
    found = played(run, each=lambda: calls.append(1))
    assert len(calls) == 3
    assert {kept: list(plays) for kept, plays in found.items()} == {
        "of the speed": [1.2, 0.8],
        "last": [1.2, 0.8, 0.5],
    }


def test_what_is_played_is_what_the_kept_weights_do(run: Path) -> None:
    from fair_envs.baselines.team.play import play_team

    found = played(run)
    model, kept = load_team(run)
    rules = make_rules(kept.env_id, **kept.parameters)
    for which, weights in (("of the speed", level_states(run)[1.2]), ("last", numbers(model))):
        model.policy.load_state_dict(weights)
        wanted = play_team(Learned(model), rules, episodes=20, seed=5, speed=1.2)
        assert np.array_equal(found[which][1.2].steps, wanted.steps)
        assert np.array_equal(found[which][1.2].captors, wanted.captors)
    assert not np.array_equal(found["last"][1.2].steps, found["of the speed"][1.2].steps)


def test_a_team_may_be_made_another_before_it_plays(run: Path) -> None:
    model, kept = load_team(run)
    rules = make_rules(kept.env_id, **kept.parameters)
    made: list[Any] = []
    team_evaluation.play_levels(
        model,
        {},
        rules,
        speeds=[1.0],
        episodes=3,
        seed=0,
        made=lambda team: made.append(team) or ShuffledRoles(team),  # type: ignore[func-returns-value]
    )
    assert len(made) == 1


class Lost(Team):
    """A team that cannot play."""

    def act(self, observation: Any, uniforms: Any) -> Any:
        """Fail."""
        raise KeyboardInterrupt


def test_playing_the_policies_of_levels_leaves_the_last_one_in_place(run: Path) -> None:
    model, kept = load_team(run)
    before, states = numbers(model), level_states(run)
    rules = make_rules(kept.env_id, **kept.parameters)
    with pytest.raises(KeyboardInterrupt):
        team_evaluation.play_levels(
            model, states, rules, speeds=list(states), episodes=1, seed=0, made=lambda team: Lost()
        )
    assert all(th.equal(value, before[name]) for name, value in numbers(model).items())


@pytest.mark.parametrize(("speed", "episodes"), [(0.0, 1), (0.0, 5), (5.0, 1), (1.2, 4)])
def test_a_report_is_plain_whatever_happened(run: Path, speed: float, episodes: int, tmp_path: Path) -> None:
    found = played(run, speeds=[speed], episodes=episodes)
    made = team_evaluation.report_of(found, about={"run": "somewhere", "episodes": episodes})
    made.save(tmp_path / "report")
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    told = report["tests"]["last"][f"{speed:g}"]
    assert (report["run"], told["episodes"]) == ("somewhere", episodes)
    assert told["success"]["value"] == found["last"][speed].success.value
    assert made.table().row_count == sum(len(plays) for plays in found.values())


def test_an_evaluation_that_was_saved_is_not_written_over(run: Path, tmp_path: Path) -> None:
    found = played(run, speeds=[1.2], episodes=1)
    with pytest.raises(FileExistsError):
        team_evaluation.report_of(found, about={}).save(tmp_path)


def test_every_setting_is_documented() -> None:
    undocumented = {field.name for field in dataclasses.fields(TeamTraining) if "help" not in field.metadata}
    assert undocumented == {"env_id", "parameters", "algorithm"}
