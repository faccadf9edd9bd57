"""Teams with discrete actions: they sample, learn through the straight-through trick, and skip what they did not do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from fair_envs import make_rules, make_sb3
from fair_envs.baselines import methods
from fair_envs.baselines.methods import method_for
from fair_envs.baselines.team import choices, ddpg
from fair_envs.baselines.team.ddpg import DDPG, Batch, FairE, FairER, TeamPolicy, equivariance_penalty
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.team.training import TeamTraining, load_team, make_team, team_settings, train_team
from fair_envs.core import Lanes, check_seeds
from fair_envs.envs.pursuit.policies import Greedy
from fair_envs.evaluation import LanesWorld, begun, rollout
from tests.baselines.interruptions import Interrupt
from tests.baselines.small import HARVEST
from tests.baselines.teams import Shown, numbers, replayed, same_numbers, team, team_env
from tests.baselines.test_team_training import assert_same_state, keep_every
from tests.helpers import LITTLE

TRAFFIC = "FairTraffic-v0"
CARS: dict[str, Any] = {"cars": 6, "horizon": 40}
DRIVE: dict[str, Any] = {"cars": 6, "horizon": 150}
OPTIONS = (2, 3)  # of two choices


# ------------------------------------------------------------------------------------------------ one-hot actions


def test_numbers_of_options_become_one_hot_and_no_option_becomes_nothing() -> None:
    actions = th.tensor([[1, 2], [0, 0], [choices.NO_OPTION, choices.NO_OPTION]])
    found = choices.one_hot(actions, OPTIONS)
    assert found.tolist() == [[0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 0, 0, 0, 0]]
    assert choices.numbers(found[:2], OPTIONS).tolist() == [[1, 2], [0, 0]]


def test_probabilities_are_those_of_each_choice_with_zeros_for_missing_options() -> None:
    logits = th.log(th.tensor([[0.25, 0.75, 0.2, 0.3, 0.5]])) + 3
    assert np.allclose(choices.probabilities(logits, OPTIONS), [[[0.25, 0.75, 0], [0.2, 0.3, 0.5]]])
    assert np.allclose(choices.probabilities(logits[:, :2], (2,)), [[0.25, 0.75]])
    assert np.allclose(choices.log_probabilities(logits, OPTIONS).exp(), [[0.25, 0.75, 0.2, 0.3, 0.5]])


def test_samples_are_one_hot_and_as_frequent_as_the_softmax_says() -> None:
    th.manual_seed(0)
    chances = th.tensor([0.25, 0.75, 0.2, 0.3, 0.5])
    found = choices.straight_through(th.log(chances).expand(20_000, -1), OPTIONS)
    assert set(found.flatten().tolist()) == {0.0, 1.0} and (found.sum(-1) == 2).all()
    assert (found.mean(0) - chances).abs().max() < 0.015


def test_the_gradient_of_a_sample_is_not_zero_and_points_to_what_pays() -> None:
    th.manual_seed(0)
    logits = th.zeros(1000, 3, requires_grad=True)
    (choices.straight_through(logits, (3,)) * th.tensor([0.0, 0.0, 1.0])).sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    mean = logits.grad.mean(0)
    assert mean[2] > 0.1 and (mean[:2] < -0.05).all() and mean.sum().abs() < 1e-5


# -------------------------------------------------------------------------------------------------------- learning


class Context(gym.Env[Any, Any]):
    """Pays 1 for the option that the observation asks for."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space: gym.Space[Any] = gym.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.shown, {}

    @staticmethod
    def asked(shown: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(2 * (shown[..., 0] > 0) + (shown[..., 1] > 0))

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        paid = float(np.mean(np.asarray(action) == self.asked(self.shown)))
        self.shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.shown, paid, True, False, {}


class Both(Context):
    """Pays one half for each entry whose sign is told."""

    action_space = gym.spaces.MultiDiscrete([2, 2])

    @staticmethod
    def asked(shown: NDArray[Any]) -> NDArray[Any]:
        return shown > 0


RATES: dict[str, Any] = {
    "batch_size": 64,
    "buffer_size": 4000,
    "learning_starts": 200,
    "train_freq": 1,
    "learning_rate": 0.003,
    "policy_kwargs": {"net_arch": (32, 32)},
}


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        (Both, DDPG),
        pytest.param(Context, DDPG, marks=pytest.mark.long),
        pytest.param(Context, FairER, marks=pytest.mark.long),
        pytest.param(Context, FairE, marks=pytest.mark.long),
    ],
)
def test_it_learns_what_pays(world: type[Context], kind: type[DDPG]) -> None:
    model = team(kind, DummyVecEnv([world] * 8), agents=2, **RATES).learn(7000)
    shown = np.random.default_rng(0).uniform(-1, 1, (1000, 2)).astype(np.float32)
    best = model.predict(shown, deterministic=True)[0]
    assert best.shape == (1000, *world.action_space.shape)  # type: ignore[misc]
    assert (best == world.asked(shown)).mean() > 0.85
    sampled = model.predict(shown)[0]
    assert (sampled != best).any() and (sampled == best).mean() > 0.6


@pytest.mark.long
def test_a_small_harvest_is_learnt() -> None:
    parameters = {**LITTLE, "horizon": 50, "observation": "extended"}
    config = team_settings(
        HARVEST, algorithm="fair-e", parameters=parameters, steps=40_000, learning_starts=2000, gradient_steps=2
    )
    earned = [returns_of(model) for model in (make_team(config), train_team(config))]
    assert earned[1] > 1.3 * earned[0]


def returns_of(model: Any) -> float:
    """Return the agents' mean return in some episodes."""
    lanes = begun(model.env.lanes.rules, check_seeds(9, 30))
    return float(np.mean([step.reward for step in rollout(LanesWorld(lanes), Learned(model))]))


# ----------------------------------------------------------------------------------------------------- exploration


def biased(model: Any, option: int | list[int], logit: float) -> Any:
    """Make a team's actors prefer an option, or several, in every state."""
    model.policy.actor.weights.data.zero_()
    _, bias = model.policy.actor.layers(model.policy.networks)[-1]
    with th.no_grad():
        bias[..., option] = logit
    return model


def headings(**settings: Any) -> Any:
    """Return a team of pursuers with eight headings that never learns."""
    env = team_env(action="discrete", headings=8)
    return team(env=env, learning_starts=10**9, buffer_size=3000, **settings)


def exploring(eps: float) -> dict[str, Any]:
    return {"exploration_initial_eps": eps, "exploration_final_eps": eps}


def test_without_exploration_actions_are_sampled_from_the_actors_distribution() -> None:
    model = biased(headings(**exploring(0.0)), 3, 2.0).learn(6000)
    found = np.bincount(replayed(model, "actions").ravel(), minlength=8) / 6000
    wanted = np.exp(2 * (np.arange(8) == 3)) / (7 + np.exp(2))
    assert np.abs(found - wanted).max() < 0.03
    assert np.allclose(model.action_probabilities(model.env.reset()), wanted)


def test_with_exploration_and_no_guide_options_are_random() -> None:
    model = biased(headings(**exploring(1.0)), 3, 50.0).learn(6000)
    assert np.abs(np.bincount(replayed(model, "actions").ravel(), minlength=8) / 6000 - 1 / 8).max() < 0.03
    half = biased(headings(**exploring(0.5)), 3, 50.0).learn(6000)
    assert (replayed(half, "actions") == 3).mean() == pytest.approx(0.5 + 0.5 / 8, abs=0.03)


def test_a_guide_of_discrete_actions_is_followed_to_the_letter() -> None:
    guide = Shown()
    model = headings(guide=guide, **exploring(1.0)).learn(60)
    assert np.array_equal(replayed(model, "actions")[..., 0], np.stack(guide.all).reshape(10, -1))


@pytest.mark.parametrize("kind", [DDPG, FairE, FairER])
def test_a_saved_team_predicts_the_same_and_goes_on_learning(kind: type[DDPG], tmp_path: Path) -> None:
    model = team(kind, team_env(action="discrete"), guide=Greedy()).learn(120)
    model.save(tmp_path / "team")
    loaded = kind.load(tmp_path / "team", env=team_env(action="discrete"), device="cpu")
    seen = model.env.reset()
    found, wanted = (one.predict(seen, deterministic=True)[0] for one in (model, loaded))
    assert np.array_equal(found, wanted)
    assert not same_numbers(model, loaded.learn(120))


# ------------------------------------------------------------------------------------------------ turns and leaving


def little(kind: type[DDPG] = DDPG, **settings: Any) -> Any:
    """Return a team in the small harvest, in which slow and frozen agents lose turns."""
    return team(kind, make_sb3(HARVEST, n_envs=2, seed=0, **LITTLE), **{"buffer_size": 10_000, **settings})


def test_agents_without_a_turn_are_stored_without_an_action() -> None:
    turns: list[NDArray[Any]] = []

    def each(local: dict[str, Any], _: Any) -> bool:
        turns.append(local["env"].interactions["action"].ravel() >= 0)
        return True

    model = little().learn(16 * 40, callback=each)
    had_turn, actions = replayed(model, "had_turn"), replayed(model, "actions")[..., 0]
    assert np.array_equal(had_turn, turns) and 0.2 < had_turn.mean() < 0.95
    assert np.array_equal(actions == choices.NO_OPTION, ~had_turn)
    assert replayed(model, "in_game").all()


def random_batch(model: Any, **masks: th.Tensor | None) -> Batch:
    """Return random transitions of a team, with the given masks."""
    generator = th.Generator().manual_seed(0)
    networks, size = model.policy.networks, 16
    seen = th.randn(2, networks, size, model.observation_space.shape[0], generator=generator)
    options = model.policy.options
    drawn = th.randint(options[0], (networks, size, 1), generator=generator)
    rewards = th.randn(networks, size, generator=generator)
    discounts = th.full((networks, size), 0.9)
    return Batch(seen[0], model.policy.encoded(drawn), rewards, seen[1], discounts, **masks)


def half_mask(model: Any) -> th.Tensor:
    mask = th.ones(model.policy.networks, 16)
    mask[:, ::2] = 0
    return mask


@pytest.mark.parametrize("kind", [DDPG, FairE, FairER])
def test_actors_learn_only_from_steps_with_a_turn(kind: type[DDPG]) -> None:
    model = quiet(little(kind))
    mask = half_mask(model)
    seen = random_batch(model).observations
    changed = th.where(mask[..., None] > 0, seen, seen + 1)
    found = []
    for observations in (seen, changed):
        th.manual_seed(0)
        found.append(model._actors_gradient(observations, mask))
    assert th.allclose(found[0], found[1], atol=1e-7) and found[0].abs().max() > 0
    th.manual_seed(0)
    assert not th.allclose(found[0], model._actors_gradient(changed))


def test_critics_learn_only_from_steps_in_the_game_also_without_a_turn() -> None:
    weights: dict[str, list[th.Tensor]] = {}
    for name in ("in_game", "had_turn"):
        for shift in (0.0, 5.0):
            model = quiet(little())
            mask = half_mask(model)
            batch = random_batch(model, **{name: mask})
            model._update_critics(batch._replace(rewards=batch.rewards + shift * (1 - mask)))
            weights.setdefault(name, []).append(numbers(model)["critic.weights"])
    assert th.equal(*weights["in_game"])
    assert not th.equal(*weights["had_turn"])


def test_a_following_step_without_a_turn_has_the_value_of_no_action() -> None:
    model = quiet(little())
    mask = half_mask(model)
    batch = random_batch(model, next_turn=mask)
    policy = model.policy
    none = policy.values(policy.critic_target, batch.following, th.zeros(8, 16, policy.options[0]), critics=1)[0]
    targets = model._targets(batch)
    without = mask == 0
    assert th.allclose(targets[without], (batch.rewards + 0.9 * none)[without])
    assert not th.isclose(targets[~without], (batch.rewards + 0.9 * none)[~without]).all()


def quiet(model: Any) -> Any:
    """Let a learner log nowhere."""
    model.set_logger(Logger(None, []))
    return model


def test_the_next_turn_is_that_of_the_step_after_the_sum_of_rewards() -> None:
    model = little(n_steps=2).learn(16 * 40)
    replay = model.replay_buffer
    np.random.seed(0)
    batch = replay.team_batch(500, agents=8, shared=False, n_steps=2, gamma=0.9)
    assert batch.next_turn is not None and batch.had_turn is not None and batch.in_game is None
    last, row = np.meshgrid(np.arange(replay.pos), np.arange(16), indexing="ij")
    found = replay._has_turn_after(last, row)
    over = replayed(model, "dones") != 0
    assert found[-1].all() and found[over].all()
    inner = ~over[:-1]
    assert np.array_equal(found[:-1][inner], replayed(model, "had_turn")[1:][inner])


def test_agents_that_leave_end_their_episode_and_are_not_learnt_from_until_the_next_one() -> None:
    env = make_sb3(TRAFFIC, n_envs=2, seed=0, **DRIVE)
    drive = biased(team(env=env, learning_starts=10**9, buffer_size=10_000, **exploring(0.0)), [6, 7, 8], 50.0)
    seen: list[NDArray[Any]] = []

    def each(local: dict[str, Any], _: Any) -> bool:
        seen.append(local["env"].active.ravel().copy())
        return True

    model = drive.learn(12 * 400, callback=each)
    over, cut, in_game = (replayed(model, name) != 0 for name in ("dones", "timeouts", "in_game"))
    active = np.array(seen)
    assert np.array_equal(in_game[1:], active[:-1]) and in_game[0].all()
    lanes_over = over.reshape(-1, 2, 6).all(-1).repeat(6, -1)
    leaves = in_game & ~active & ~lanes_over
    assert leaves.sum() > 5 and (over[leaves]).all() and not cut[leaves].any()
    assert np.array_equal(over, leaves | lanes_over)
    assert (~in_game).any() and in_game[1:][lanes_over[:-1]].all()
    assert not replayed(model, "had_turn")[~in_game].any()


def test_rows_of_no_environment_of_this_package_always_have_a_turn() -> None:
    model = team(env=DummyVecEnv([Context] * 4), agents=2).learn(80)
    assert replayed(model, "had_turn").all() and replayed(model, "in_game").all()


# -------------------------------------------------------------------------------------------------------- Fair-ER


def choosing(logits: list[list[float]], options: tuple[int, ...] = (2,)) -> TeamPolicy:
    """Return a policy whose actors have these logits whatever they see, in double precision."""
    space = gym.spaces.Discrete(options[0]) if len(options) == 1 else gym.spaces.MultiDiscrete(list(options))
    shown = gym.spaces.Box(-1, 1, (3,), np.float32)
    arch = {"pi": (4,), "qf": (4,)}
    policy = TeamPolicy(shown, space, lambda _: 0.0, agents=len(logits), net_arch=arch).double()
    policy.actor.weights.data.zero_()
    _, bias = policy.actor.layers(len(logits))[-1]
    with th.no_grad():
        bias[:, 0] = th.tensor(logits)
    return policy


def penalty_of(policy: TeamPolicy, batch: int = 5) -> th.Tensor:
    seen = th.randn(policy.agents, batch, 3, generator=th.Generator().manual_seed(0), dtype=th.float64)
    return equivariance_penalty(policy, seen, policy.compared(policy.actor(seen)))


@pytest.mark.parametrize(
    ("chances", "options", "expected"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], (2,), [0.0, 0.0]),
        ([[1.0, 1e-12], [1e-12, 1.0]], (2,), [1.0, 1.0]),
        ([[0.64, 0.36], [0.36, 0.64]], (2,), [0.04, 0.04]),
        ([[0.64, 0.36], [0.36, 0.64], [0.36, 0.64]], (2,), [0.04, 0.02, 0.02]),
        ([[0.64, 0.36, 1.0, 1.0], [0.36, 0.64, 1.0, 1.0]], (2, 2), [0.04, 0.04]),
    ],
)
def test_the_penalty_is_that_of_the_worked_examples(
    chances: list[list[float]], options: tuple[int, ...], expected: list[float]
) -> None:
    found = penalty_of(choosing(np.log(chances).tolist(), options))
    assert found.tolist() == pytest.approx(expected, abs=1e-5)


def test_large_teams_compare_fewer_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = choosing([[0.0, 1.0], [2.0, 0.0], [0.5, 0.0]])
    policy.actor.weights.data.normal_(0, 1, generator=th.Generator().manual_seed(1))
    whole, few = penalty_of(policy), penalty_of(policy, batch=5)
    assert th.equal(whole, few)
    monkeypatch.setattr(ddpg, "COMPARISONS", 9 * 2)
    assert not th.equal(penalty_of(policy), whole)
    seen = th.randn(3, 5, 3, generator=th.Generator().manual_seed(0), dtype=th.float64)[:, :2]
    th.testing.assert_close(penalty_of(policy), equivariance_penalty(policy, seen, policy.compared(policy.actor(seen))))


def test_a_heavy_penalty_makes_the_actors_more_alike() -> None:
    apart = {}
    for weight in (0.0, 10.0):
        model = quiet(little(FairER, fairness_weight=weight, learning_rate=0.01))
        model.policy.actor.weights.data.normal_(0, 0.5, generator=th.Generator().manual_seed(0))
        seen = random_batch(model).observations
        for _ in range(30):
            model._update_actors(seen)
        with th.no_grad():
            outputs = model.policy.compared(model.policy.actor(seen))
            apart[weight] = equivariance_penalty(model.policy, seen, outputs).mean().item()
    assert apart[10.0] < 0.5 * apart[0.0]


# -------------------------------------------------------------------------------------------------------- trainings


def config(env_id: str = HARVEST, **changes: Any) -> TeamTraining:
    """Return a small training with discrete actions."""
    default: dict[str, Any] = {
        "parameters": {HARVEST: LITTLE, TRAFFIC: CARS}[env_id],
        "steps": 16 * 60,
        "lanes": 2,
        "train_freq": 2,
        "learning_starts": 64,
        "batch_size": 8,
        "buffer_size": 60,
        "actor": (8, 8),
        "critic": (8, 8),
    }
    return team_settings(env_id, **{**default, **changes})


@pytest.mark.parametrize("env_id", [HARVEST, TRAFFIC])
@pytest.mark.parametrize("algorithm", ["ddpg", "fair-e", "fair-er"])
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(
    env_id: str, algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_every(monkeypatch, -1.0)
    settings, part = config(env_id, algorithm=algorithm), tmp_path / "part"
    whole = train_team(settings, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_team(settings, out=part, callback=Interrupt(41))
    resumed = train_team(settings, out=part, resume=True)
    assert_same_state(whole, resumed)
    assert same_numbers(whole, load_team(part)[0])
    rows = (part / "metrics.csv").read_text()
    assert "rollout/reward[" in rows and "rollout/success" not in rows


@pytest.mark.parametrize("env_id", [HARVEST, TRAFFIC])
@pytest.mark.parametrize("algorithm", ["ddpg", "fair-e", "fair-er"])
def test_a_run_is_evaluated_by_the_agents_returns(env_id: str, algorithm: str, tmp_path: Path) -> None:
    method = method_for(algorithm, env_id)
    settings = config(env_id, algorithm=algorithm, eval_freq=400, eval_episodes=2)
    method.train(settings, out=tmp_path / "run")
    model, loaded = method.load(tmp_path / "run")
    test = methods.Test(tmp_path / "run", 6, 3, settings.parameters)
    assert method.evaluated is not None
    report = method.evaluated(model, loaded, test)
    assert report is not None
    assert ("demographic_parity_difference",) in report.estimates
    assert sum(map(sum, report.details["selected"])) > 0
    again = method.evaluated(model, loaded, test)
    assert again is not None
    assert {k: v.value for k, v in report.estimates.items()} == pytest.approx(
        {k: v.value for k, v in again.estimates.items()}, nan_ok=True
    )


def test_a_teams_discrete_actions_are_sampled_with_the_numbers_that_are_given() -> None:
    model = little()
    lanes = Lanes(make_rules(HARVEST, **LITTLE), 2)
    lanes.seed(0)
    lanes.restart()
    observation, uniforms = lanes.observe(), np.random.default_rng(0).random((2, 8))
    sampled, greedy = Learned(model), Learned(model, deterministic=True)
    for policy in (sampled, greedy):
        policy.start(type("World", (), {"lanes": lanes}))
    first, same, other = (sampled.act(observation, numbers) for numbers in (uniforms, uniforms, uniforms[::-1]))
    assert np.array_equal(first, same) and not np.array_equal(first, other)
    wanted = model.predict(observation.reshape(16, -1), deterministic=True)[0].reshape(2, 8)
    assert np.array_equal(greedy.act(observation, uniforms), wanted)


def test_a_curriculum_and_a_guide_are_used_only_where_there_are_any() -> None:
    assert config().curriculum == "fixed" and config().course() is None and config().kept_levels == ()
    for env_id, guide in ((TRAFFIC, None), (HARVEST, "greedy")):
        model = make_team(config(env_id, guided=True))
        assert (model.guide is None) == (guide is None)
    assert make_team(config()).guide is None
    discrete = team_settings("FairPursuit-v0", preset="small", parameters={"action": "discrete"})
    assert discrete.curriculum == "linear" and isinstance(make_team(discrete).guide, Greedy)


def test_other_environments_have_the_tasks_parameters_and_no_other_preset() -> None:
    settings = team_settings(HARVEST, parameters={"horizon": 7})
    assert (settings.n_steps, settings.steps) == (3, 1_280_000)
    assert settings.parameters == {"observation": "extended", "horizon": 7}
    with pytest.raises(ValueError, match="preset must be 'recommended' for FairHarvest-v0, got 'paper'"):
        team_settings(HARVEST, preset="paper")


def test_a_decision_maker_is_refused_with_the_methods_to_try() -> None:
    expected = (
        "method must support FairLending-v0, got 'fair-er', which needs several agents with one action space, "
        "and there is one decision-maker; try .*ppo"
    )
    with pytest.raises(ValueError, match=expected):
        method_for("fair-er", "FairLending-v0")


NOT_SUPPORTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: gym.spaces.Discrete(3, start=1), "action_space must be a Discrete or MultiDiscrete that counts from 0"),
    (lambda: gym.spaces.MultiBinary(3), "env must have actions that are discrete or vectors from -1 to 1, got Multi"),
    (lambda: gym.spaces.Box(-1, 1, (2, 2)), "env must have actions that are discrete or vectors from -1 to 1, got Box"),
]


@pytest.mark.parametrize(("space", "message"), NOT_SUPPORTED)
def test_other_actions_are_refused(space: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ddpg.check_spaces(gym.spaces.Box(-1, 1, (2,)), space())
