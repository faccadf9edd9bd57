"""Stable-Baselines3 models as policies: every action space, rows of agents or lanes, files, and what does not fit."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.assessment import evaluate, export, policy_of
from fair_envs.evaluation import LanesWorld, begun, rollout
from fair_envs.evaluation.models import FromNormal, FromSB3, Predicted, policy_of_model
from fair_envs.evaluation.policy import MostLikely
from tests.assessment.office import Office
from tests.helpers import LITTLE
from tests.test_cli import Said, mistake

sb3 = pytest.importorskip("stable_baselines3")
pandas = pytest.importorskip("pandas")

from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

LOANS: dict[str, Any] = {"horizon": 30}
SMALL: dict[str, Any] = {"n_steps": 16, "batch_size": 16, "device": "cpu", "seed": 0}
QUICK: dict[str, Any] = {"episodes": 2, "shuffles": 2}
OPTIONS = ("-p", "horizon=30", "--episodes", "2", "--no-progress")


def actions(policy: Any, rules: Any, *, seed: int = 5) -> list[Any]:
    """Return the actions of the first three steps of two lanes."""
    world = LanesWorld(begun(rules, np.arange(2, dtype=np.uint64) + seed), append_group=policy.append_group)
    steps = rollout(world, policy)
    return [next(steps).action.tolist() for _ in range(3)]


@pytest.mark.parametrize(
    ("env_id", "given", "kind"),
    [
        ("FairLending-v0", {}, FromSB3),
        ("FairAttention-v0", {}, FromSB3),
        ("FairCollege-v0", {}, FromNormal),
        ("FairEpidemic-v0", {}, FromSB3),
    ],
)
def test_a_model_samples_with_the_random_numbers_of_the_lanes(env_id: str, given: dict[str, Any], kind: type) -> None:
    env = gym.make(env_id, horizon=5, **given)
    model = sb3.PPO("MlpPolicy", env, **SMALL)
    rules: Any = env.unwrapped
    policy = policy_of_model(model, rules.lanes.rules)
    assert isinstance(policy, kind)
    assert actions(policy, rules.lanes.rules) == actions(policy, rules.lanes.rules)
    found = evaluate(env, model, **QUICK)
    assert found.policy == "PPO" and found.performance.n == 2


def test_normal_actions_have_the_mean_and_spread_of_the_model_and_are_clipped() -> None:
    env = gym.make("FairCollege-v0", horizon=5)
    model = sb3.PPO("MlpPolicy", env, **SMALL)
    rules: Any = env.unwrapped
    shown = np.tile(np.full(env.observation_space.shape or (), 0.5, np.float32), (4000, 1, 1))
    uniforms = np.random.default_rng(0).random((4000, 1))
    chosen = policy_of_model(model, rules.lanes.rules).act(shown, uniforms)
    low, high = env.action_space.low, env.action_space.high  # type: ignore[attr-defined]
    assert chosen.shape == (4000, 1, *env.action_space.shape)  # type: ignore[misc]
    assert (chosen >= low).all() and (chosen <= high).all()
    normal = model.policy.get_distribution(model.policy.obs_to_tensor(shown[0])[0]).distribution
    below = float(normal.cdf(normal.mean * 0 + float(low.min())).detach().mean())
    assert np.mean(chosen == low) == pytest.approx(below, abs=0.03)


@pytest.mark.parametrize("algorithm", ["DQN", "SAC", "TD3", "A2C", "DDPG"])
def test_every_algorithm_can_be_evaluated_also_from_its_file(algorithm: str, tmp_path: Path) -> None:
    boxed = algorithm in ("SAC", "TD3", "DDPG")
    env = gym.make("FairCollege-v0" if boxed else "FairLending-v0", horizon=10)
    kind = getattr(sb3, algorithm)
    given = {} if algorithm == "A2C" else {"buffer_size": 50}
    model = kind("MlpPolicy", env, device="cpu", seed=0, **given)
    model.save(tmp_path / "model.zip")
    own = evaluate(env, model, **QUICK)
    again = evaluate(env, str(tmp_path / "model.zip"), **QUICK)
    assert own.rates == again.rates and own.performance == again.performance
    assert isinstance(policy_of_model(model), FromSB3 if algorithm == "A2C" else Predicted)


def test_rows_of_agents_with_and_without_their_group_and_rows_of_lanes() -> None:
    rules = fair_envs.make_rules("FairHarvest-v0", **LITTLE)
    for given in ({"append_group": True}, {}, {"rows": "lanes"}):
        env = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, **given, **LITTLE)
        model = sb3.PPO("MlpPolicy", env, **{**SMALL, "batch_size": 2})
        policy = policy_of_model(model, rules)
        assert policy.append_group == ("append_group" in given)
        assert np.shape(actions(policy, rules)) == (3, 2, LITTLE["agents"])
        assert evaluate(env, model, **QUICK).performance.n == 2


def test_separate_networks_of_agents_act_for_their_own_agents(tmp_path: Path) -> None:
    """The last entry of an observation is the agent's index, not its group: 2 of 8 networks would act for everyone."""
    from fair_envs.baselines import PPO, AgentsPolicy, IndividualPolicy

    rules = fair_envs.make_rules("FairHarvest-v0", **LITTLE)
    env = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, append="agent", **LITTLE)
    model = PPO(IndividualPolicy, env, **{**SMALL, "batch_size": 2})
    members: Any = model.policy.members
    for index, member in enumerate(members):
        member.action_net.bias.data[index] = 100.0  # agent i takes action i
    model.save(tmp_path / "model.zip")
    for policy in (policy_of_model(model, rules), policy_of(tmp_path / "model.zip", rules)):
        assert not policy.append_group
        assert actions(policy, rules) == [[list(range(8))] * 2] * 3
    run = AgentsPolicy(model, rules)
    assert evaluate(rules, model, **QUICK).performance == evaluate(rules, run, **QUICK).performance
    plain = sb3.PPO("MlpPolicy", env, **{**SMALL, "batch_size": 2})
    assert not policy_of_model(plain, rules).append_group
    assert np.shape(actions(policy_of_model(plain, rules), rules)) == (3, 2, LITTLE["agents"])


def test_a_last_entry_that_is_neither_group_nor_index_is_refused() -> None:
    rules = fair_envs.make_rules("FairHarvest-v0", **LITTLE)
    other = fair_envs.make_sb3("FairHarvest-v0", append="agent", **{**LITTLE, "agents": 5})
    model = sb3.PPO("MlpPolicy", other, **{**SMALL, "batch_size": 2})
    with pytest.raises(ValueError, match=r"group \(0 to 1\) or index \(0 to 7\), got the upper limit 4 of the last"):
        policy_of_model(model, rules)


def test_a_run_of_another_environment_is_named(tmp_path: Path) -> None:
    from fair_envs.baselines.training import Training, train

    tiny: dict[str, Any] = {"lanes": 2, "n_steps": 8, "batch_size": 8, "n_epochs": 1, "steps": 16}
    train(Training(env_id="FairLending-v0", parameters=LOANS, sharing="all", **tiny), out=tmp_path / "run")
    told = f"model must take observations .*; {tmp_path / 'run'} was trained in FairLending-v0"
    with pytest.raises(ValueError, match=told):
        evaluate("FairHiring-v0", tmp_path / "run", **QUICK)
    stored = tmp_path / "study" / "evaluations.json"
    stored.parent.mkdir()
    stored.write_text("[]")
    with pytest.raises(FileNotFoundError, match=f"policy must be the folder of a run, .* compare {stored}"):
        evaluate("FairLending-v0", stored.parent, **QUICK)


def test_a_function_that_returns_another_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"policy must return actions of shape \(1, 1\), got an array of shape \(\)"):
        evaluate(Office(), lambda observation, uniforms: np.array(1), **QUICK)


def test_a_last_entry_that_could_be_both_group_and_index_is_refused() -> None:
    pair = {**LITTLE, "agents": 2}
    rules = fair_envs.make_rules("FairHarvest-v0", **pair)
    for append in ("group", "agent"):
        model = sb3.PPO("MlpPolicy", fair_envs.make_sb3("FairHarvest-v0", append=append, **pair), **SMALL)
        with pytest.raises(ValueError, match="must tell whether its observations end with the agent's group or index"):
            policy_of_model(model, rules)
    named = sb3.PPO("MlpPolicy", fair_envs.make_sb3("FairHarvest-v0", append="agent", **pair), **SMALL)
    named.policy.member_of = "agent"
    assert not policy_of_model(named, rules).append_group


def test_the_most_likely_action_is_taken_if_asked_for() -> None:
    env: Any = gym.make("FairLending-v0", **LOANS)
    model = sb3.PPO("MlpPolicy", env, **SMALL)
    policy = policy_of(model, env.unwrapped.lanes.rules, deterministic=True)
    assert isinstance(policy, MostLikely)
    shown = env.reset(seed=0)[0][np.newaxis, np.newaxis]
    assert policy.act(shown, np.full((1, 1), 0.99)) == model.predict(shown[0, 0], deterministic=True)[0]


def test_statistics_of_observations_are_applied() -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    env = VecNormalize(DummyVecEnv([lambda: gym.make("FairLending-v0", **LOANS)]))
    model = sb3.PPO("MlpPolicy", env, **SMALL)
    model.learn(64)
    shown = np.asarray(env.get_original_obs())[:, np.newaxis]
    policy: Any = policy_of_model(model)
    network = model.policy
    wanted = network.get_distribution(network.obs_to_tensor(env.normalize_obs(shown[:, 0]))[0]).distribution.probs
    assert policy.probabilities(shown)[0, 0] == pytest.approx(wanted.detach().numpy()[0])
    assert evaluate(env, model, **QUICK).performance.n == 2  # also an environment of Stable-Baselines3 is one


def test_observations_can_be_dictionaries() -> None:
    class Desk(Office):
        observation_space = gym.spaces.Dict({"group": gym.spaces.Discrete(2), "label": gym.spaces.Box(0, 1, (1,))})

        def _shown(self) -> Any:
            group, label = super()._shown()
            return {"group": int(group), "label": np.array([label], np.float32)}

    rule = evaluate(Desk(), lambda seen, uniforms: (seen["group"] == 0).astype(int), **QUICK)
    assert rule.rates["north"].value == 1 and rule.rates["south"].value == 0
    for kind, given in ((sb3.PPO, SMALL), (sb3.DQN, {"buffer_size": 50, "device": "cpu"})):
        model = kind("MultiInputPolicy", Desk(), **given)
        assert evaluate(Desk(), model, **QUICK).performance.n == 2
    with pytest.raises(ValueError, match="model must take observations Dict"):
        evaluate(Desk(), sb3.PPO("MlpPolicy", Office(), **SMALL), **QUICK)


@pytest.mark.parametrize(
    ("env_id", "error"),
    [
        ("FairHiring-v0", "model must take observations of shape"),
        ("FairCollege-v0", "model must take observations of shape"),
    ],
)
def test_a_model_of_another_environment_is_rejected_before_it_plays(env_id: str, error: str) -> None:
    model = sb3.PPO("MlpPolicy", gym.make("FairLending-v0", **LOANS), **SMALL)
    with pytest.raises(ValueError, match=error):
        evaluate(env_id, model, episodes=1)


def test_a_model_that_does_not_fit_the_parameters_of_the_task_is_told_so() -> None:
    model = sb3.PPO("MlpPolicy", fair_envs.make_sb3("FairHarvest-v0", **LITTLE), **SMALL)
    line = "; the task of FairHarvest-v0 sets observation=extended, but gymnasium.make uses observation=ten: "
    with pytest.raises(ValueError, match=line):
        evaluate("FairHarvest-v0", model, episodes=1, parameters=LITTLE)
    ten = evaluate("FairHarvest-v0", model, parameters={**LITTLE, "observation": "ten"}, twins=False, **QUICK)
    assert ten.about["parameters"] == {**LITTLE, "observation": "ten"}


def test_a_model_with_other_actions_is_rejected() -> None:
    class Other(gym.Env[Any, Any]):
        observation_space = gym.make("FairLending-v0").observation_space
        action_space: Any = gym.spaces.Discrete(3)

    model = sb3.PPO("MlpPolicy", Other(), **SMALL)
    with pytest.raises(ValueError, match=r"model must choose among the actions of lending, Discrete\(2\), got"):
        evaluate("FairLending-v0", model, episodes=1)


def loans() -> Any:
    return DummyVecEnv([lambda: gym.make("FairLending-v0", **LOANS)])


def test_the_zip_of_a_model_that_needs_normalised_observations_warns(tmp_path: Path) -> None:
    sb3.PPO("MlpPolicy", VecNormalize(loans()), **SMALL).learn(32).save(tmp_path / "model.zip")
    with pytest.warns(UserWarning, match="trained on normalised observations"):
        evaluate("FairLending-v0", tmp_path / "model.zip", parameters=LOANS, **QUICK)


@pytest.mark.parametrize(
    "learned",
    [
        lambda: sb3.PPO("MlpPolicy", VecNormalize(loans(), norm_obs=False), **SMALL).learn(32),
        lambda: sb3.DQN("MlpPolicy", loans(), learning_starts=4, device="cpu", seed=0).learn(32),
        lambda: sb3.PPO("MlpPolicy", loans(), **SMALL),
    ],
)
def test_the_zip_of_any_other_model_does_not_warn(learned: Any, tmp_path: Path) -> None:
    learned().save(tmp_path / "model.zip")
    assert evaluate("FairLending-v0", tmp_path / "model.zip", parameters=LOANS, **QUICK).performance.n == 2


@pytest.mark.usefixtures("empty_folder")
def test_a_table_says_whether_a_model_samples_its_actions() -> None:
    sb3.PPO("MlpPolicy", loans(), **SMALL).save("model.zip")
    said = Said("evaluate", "FairLending-v0", "--policy", "model.zip", *OPTIONS)
    assert "sampled, as in training, from the probabilities of policies that have them: model." in " ".join(
        said.text.split()
    )
    said = Said("evaluate", "FairLending-v0", "--policy", "model.zip", "--deterministic", *OPTIONS)
    assert "Most likely actions are taken (deterministic) by: model." in " ".join(said.text.split())
    found = evaluate("FairLending-v0", "model.zip", deterministic=True, parameters=LOANS, episodes=2)
    assert f"{found.performance.value:.4g}" in said.text
    several = evaluate("FairLending-v0", "max-reward", deterministic=True, parameters=LOANS, episodes=2)
    assert "Most likely" not in str(several)  # only models have them
    options = ("--policy", "model.zip", "--deterministic", "--record", "--out", "kept", *OPTIONS)
    assert Said("evaluate", "FairLending-v0", *options).code == 0
    (file,) = Path("kept").glob("record.*")
    record = pandas.read_parquet(file) if file.suffix == ".parquet" else pandas.read_csv(file)
    assert set(record["probability[1]"].round()) <= {0.0, 1.0}
    assert (record["action"] == (record["probability[1]"] > 0.5)).all()  # never a sampled one
    assert "--deterministic needs the zip of a model" in mistake("evaluate", "FairLending-v0", "--deterministic")
    missing = ("evaluate", "FairLending-v0", "--policy", "missing.zip", "--deterministic")
    assert mistake(*missing).endswith("got 'missing.zip', which does not exist")
    assert "use fair-envs evaluate ID --policy model.zip" in mistake("evaluate", "model.zip")


@pytest.mark.usefixtures("empty_folder")
def test_only_models_among_several_policies_take_most_likely_actions() -> None:
    model = sb3.PPO("MlpPolicy", loans(), **SMALL)
    model.save("model.zip")
    policies = ("--policy", "model.zip", "--policy", "random", "--deterministic")
    said = Said("evaluate", "FairLending-v0", *policies, *OPTIONS, "--record", "--out", "kept")
    assert "Most likely actions are taken (deterministic) by: model." in " ".join(said.text.split())
    (file,) = Path("kept").glob("record.*")
    record = pandas.read_parquet(file) if file.suffix == ".parquet" else pandas.read_csv(file)
    assert Said("export", "FairLending-v0", *policies[:2], policies[-1], *OPTIONS, "--out", "own.csv").code == 0
    given: dict[str, Any] = {"parameters": LOANS, "episodes": 2}
    likely, sampled = (export("FairLending-v0", model, deterministic=own, **given) for own in (True, False))
    chance = export("FairLending-v0", "random", **given)
    assert likely["action"].tolist() != sampled["action"].tolist()
    assert record["action"][record["policy"] == "model.zip"].tolist() == likely["action"].tolist()
    assert record["action"][record["policy"] == "random"].tolist() == chance["action"].tolist()
    assert pandas.read_csv("own.csv")["action"].tolist() == likely["action"].tolist()


def test_a_file_that_is_no_model_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_text("nothing")
    with pytest.raises(ValueError, match="policy must be the zip of a Stable-Baselines3 model"):
        evaluate("FairLending-v0", tmp_path / "model.zip", episodes=1)


class Recurrent:
    """Counts the steps of each episode in its state."""

    observation_space = gym.make("FairLending-v0").observation_space
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.begun: list[Any] = []

    def predict(
        self, rows: Any, *, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        self.begun.append(None if episode_start is None else episode_start.tolist())
        steps = np.zeros(len(rows), int) if state is None else np.where(episode_start, 0, state)
        return steps % 2, steps + 1


def test_a_recurrent_model_keeps_its_state_and_is_told_when_an_episode_begins() -> None:
    rules, model = fair_envs.make_rules("FairLending-v0", horizon=2), Recurrent()
    policy = policy_of_model(model, rules)
    world = LanesWorld(begun(rules, np.arange(2, dtype=np.uint64)))
    chosen = [step.action[:, 0].tolist() for step in rollout(world, policy, episodes=4)]
    assert chosen == [[0, 0], [1, 1], [0, 0], [1, 1]]
