"""Actors and critics computed by hand act and learn like those of Stable-Baselines3, up to rounding."""

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from fair_envs import make_sb3
from fair_envs.baselines.ppo import gradients
from fair_envs.baselines.ppo.fast import FastUpdates, Networks, acting
from fair_envs.baselines.ppo.gradients import FUSED_ROWS, ManualBackprop
from fair_envs.baselines.ppo.policies import IndividualPolicy, SharedTrunkPolicy
from fair_envs.baselines.ppo.ppo import PPO
from tests.baselines.small import collect, learned, learner, policy_weights, rollouts, weights, whole_batch
from tests.helpers import LITTLE


class Levers(gym.Env[Any, Any]):
    """Two levers of two and three positions; the reward counts those that match the observation."""

    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action: Any) -> Any:
        wanted = (int(self._seen[0] > 0), int(self._seen[1] > 0) + int(self._seen[2] > 0))
        return self._look(), float((action == wanted).sum()), False, self.np_random.random() < 0.1, {}

    def _look(self) -> Any:
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen


def levers(**given: Any) -> Any:
    env = make_vec_env(Levers, 4, seed=0)
    return alone(env, **given)


def loans(**given: Any) -> Any:
    return alone(make_sb3("FairLending-v0", n_envs=4, horizon=30), **given)


def alone(env: Any, policy: Any = "MlpPolicy", **given: Any) -> Any:
    """Return a small learner with one actor and one critic."""
    default: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "ent_coef": 0.01, "seed": 1}
    return PPO(policy, env, device="cpu", learning_rate=0.01, **{**default, **given})


def agents(**given: Any) -> Any:
    """Return a small learner of the harvest, with idle turns and a network for each agent."""
    env = make_sb3("FairHarvest-v0", n_envs=4, append="agent", **LITTLE)
    return PPO(IndividualPolicy, env, n_steps=10, batch_size=80, n_epochs=2, device="cpu", seed=1, **given)


def trunk(**given: Any) -> Any:
    """Return a small learner whose actor and critic share layers."""
    arch = {"shared": [16], "pi": [8], "vf": [12]}
    return loans(policy=SharedTrunkPolicy, policy_kwargs={"net_arch": arch, "activation_fn": nn.Tanh}, **given)


def offers(**given: Any) -> Any:
    """Return a small learner whose actions are numbers."""
    return alone(make_sb3("FairCollege-v0", n_envs=4, horizon=30), **given)


def pursuers(**given: Any) -> Any:
    """Return a small learner of agents with two numbers as action, and a network for each."""
    env = make_sb3("FairPursuit-v0", n_envs=4, append="agent", horizon=15)
    return PPO(IndividualPolicy, env, n_steps=20, batch_size=60, n_epochs=2, device="cpu", seed=1, **given)


MODELS = {
    "loans": loans,
    "levers": levers,
    "offers": offers,
    "pursuers": pursuers,
    "groups": learner,
    "agents": agents,
    "trunk": trunk,
}


def by_autograd(model: Any, batch: Any) -> Any:
    """Return the gradients of PPO's loss, in one row, and means over the minibatch."""
    model.policy.optimizer.zero_grad()
    loss, found = model._loss(batch)
    loss.backward()
    return th.cat([parameter.grad.ravel() for parameter in model.policy.parameters()]), found


def by_hand(model: Any, batch: Any) -> Any:
    """Return the same by hand."""
    fast = FastUpdates(model.policy)
    clip = model.clip_range(1.0)
    found = fast.compute(
        batch, model._policy_advantages(batch), clip=clip, ent_coef=model.ent_coef, vf_coef=model.vf_coef
    )
    gradient = th.cat([parameter.grad.ravel() for parameter in model.policy.parameters()])
    fast.close()
    return gradient, found


def moved(model: Any) -> Any:
    """Return a learner whose policy has changed since its rollout, so that ratios differ and some are clipped."""
    collect(model)
    with th.no_grad():
        for parameter in model.policy.parameters():
            parameter += 0.25 * th.randn_like(parameter)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_the_gradients_are_those_of_autograd(name: str) -> None:
    model = moved(MODELS[name](ent_coef=0.05))
    batch = whole_batch(model)
    wanted, expected = by_autograd(model, batch)
    found, summary = by_hand(model, batch)
    assert 0.05 < summary.clipped < 0.95
    th.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)
    assert summary == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_idle_turns_count_only_for_the_values() -> None:
    model = moved(learner())
    batch = whole_batch(model)
    assert batch.had_turn is not None
    none = batch._replace(had_turn=th.zeros_like(batch.had_turn))
    gradient, summary = by_hand(model, none)
    wanted, _ = by_autograd(model, none)
    th.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-6)
    assert summary[:2] == summary[3:] == (0, 0)
    assert summary.values > 0


@pytest.mark.parametrize("arch", [[], [8], [80, 24]])
@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU, nn.Sigmoid])
def test_all_activations_and_sizes(activation: Any, arch: list[int]) -> None:
    model = moved(loans(policy_kwargs={"net_arch": arch, "activation_fn": activation}))
    batch = whole_batch(model)
    th.testing.assert_close(by_hand(model, batch)[0], by_autograd(model, batch)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("rows", [1, FUSED_ROWS, 3000])
def test_fused_layers_are_those_of_torch(rows: int, fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fused:
        monkeypatch.setattr(gradients, "FUSED", None)
    elif gradients.FUSED is None:
        pytest.skip("this build of torch has no fused layers")
    th.manual_seed(0)
    chain = nn.Sequential(nn.Linear(70, 64), nn.Tanh(), nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 3), nn.Sigmoid())
    given, slope = th.randn(rows, 70, requires_grad=True), th.randn(rows, 3)
    wanted = chain(given)
    wanted.backward(slope)
    of_weights = [parameter.grad.clone() for parameter in chain.parameters() if parameter.grad is not None]
    by_hand = ManualBackprop(chain)
    th.testing.assert_close(by_hand.forward(given.detach()), wanted.detach(), rtol=1e-5, atol=1e-5)
    th.testing.assert_close(by_hand.backward(slope), given.grad, rtol=1e-4, atol=1e-5)
    for found, expected in zip((parameter.grad for parameter in chain.parameters()), of_weights, strict=True):
        th.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_trainings_are_those_with_autograd(name: str) -> None:
    ours, theirs = (learned(MODELS[name](autograd=autograd)) for autograd in (False, True))
    np.testing.assert_allclose(policy_weights(ours), policy_weights(theirs), atol=2e-4)
    logged, wanted = ours.logger.name_to_value, theirs.logger.name_to_value
    assert logged.keys() == wanted.keys()
    for entry in ("train/loss", "train/approx_kl", "train/clip_fraction", "train/value_loss"):
        assert logged[entry] == pytest.approx(wanted[entry], rel=1e-2, abs=1e-4)


def test_adams_moments_are_given_back() -> None:
    ours, theirs = (learned(learner(autograd=autograd)) for autograd in (False, True))
    np.testing.assert_allclose(weights(ours), weights(theirs), atol=2e-4)
    saved = ours.get_parameters()["policy.optimizer"]
    assert [*saved["state"]] == [*theirs.get_parameters()["policy.optimizer"]["state"]]
    steps = {entry["step"].item() for entry in saved["state"].values()}
    assert steps == {3 * ours.n_epochs * 4}
    storages = {parameter.data_ptr() for parameter in ours.policy.parameters()}
    assert len(storages) == len(list(ours.policy.parameters()))
    assert all(p.untyped_storage().nbytes() == 4 * p.numel() for p in ours.policy.parameters())


def test_one_can_change_between_both_ways() -> None:
    mixed, plain = learner(), learner(autograd=True)
    learned(plain)
    th.manual_seed(mixed.seed)
    np.random.seed(mixed.seed)
    for k in range(3):
        mixed.autograd = k % 2 == 1
        mixed.learn(rollouts(mixed, 1), reset_num_timesteps=k == 0)
    np.testing.assert_allclose(policy_weights(mixed), policy_weights(plain), atol=2e-4)


def test_a_diverged_policy_stops_the_update_by_target_kl() -> None:
    for autograd in (False, True):
        model = learned(loans(autograd=autograd, target_kl=1e-6, n_epochs=20), times=1)
        assert model.logger.name_to_value["train/n_updates"] < 20


def test_an_interrupted_update_leaves_the_policy_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model = learned(learner(), times=1)
    taken = []

    def interrupted(batch: Any) -> None:
        taken.append(batch)
        if len(taken) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(model, "_after_minibatch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn(rollouts(model, 1), reset_num_timesteps=False)
    assert all(p.untyped_storage().nbytes() == 4 * p.numel() for p in model.policy.parameters())
    assert {state["step"].item() for state in model.policy.optimizer.state.values()} == {2 * 4 + 3}
    assert model._fast is None


@pytest.mark.parametrize("name", MODELS)
def test_actions_are_those_of_the_policy(name: str) -> None:
    model = MODELS[name]()
    collect(model)
    seen = th.as_tensor(model.rollout_buffer.observations[:40])
    seen = seen.reshape(-1, seen.shape[-1])
    with th.no_grad():
        th.manual_seed(3)
        wanted = model.policy(seen)
        decided = model.policy(seen, deterministic=True)[0]
        with acting(model.policy):
            th.manual_seed(3)
            found = model.policy(seen)
            assert th.equal(model.policy(seen, deterministic=True)[0], decided)
    for ours, theirs in zip(found, wanted, strict=True):
        th.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_afterwards_the_policy_has_its_own_forward() -> None:
    policy = learner().policy
    with pytest.raises(KeyboardInterrupt), acting(policy):
        assert "forward" in vars(policy)
        raise KeyboardInterrupt
    assert "forward" not in vars(policy)


def test_the_distribution_is_kept_where_it_is_read() -> None:
    model = loans()
    seen = th.as_tensor(model.env.reset())
    wanted = model.policy.get_distribution(seen).distribution.probs.clone()
    model.policy.action_dist.proba_distribution(th.zeros(4, 2))
    with th.no_grad(), acting(model.policy, keep_distribution=True):
        model.policy(seen)
    th.testing.assert_close(model.policy.action_dist.distribution.probs, wanted)


class Own(ActorCriticPolicy):
    """A user's policy."""


def changed(change: Any) -> Any:
    policy = loans().policy
    change(policy)
    return policy


def frozen(policy: Any) -> None:
    policy.action_net.weight.requires_grad = False


def tied(policy: Any) -> None:
    policy.mlp_extractor.value_net = policy.mlp_extractor.policy_net
    policy.optimizer = th.optim.Adam(policy.parameters())


def with_half_the_optimiser(policy: Any) -> None:
    policy.optimizer = th.optim.Adam(policy.action_net.parameters())


def masked(policy: Any) -> None:
    policy.action_net.weight.register_hook(lambda gradient: 0 * gradient)


def with_own_evaluation(policy: Any) -> None:
    policy.evaluate_actions = policy.evaluate_actions


def with_more(policy: Any) -> None:
    policy.more = nn.Parameter(th.zeros(3))
    policy.optimizer = th.optim.Adam(policy.parameters())


def whose_actor_alone_has_learned(policy: Any) -> None:
    """Behaviour cloning leaves the critic without moments of Adam."""
    policy.get_distribution(th.zeros(1, policy.observation_space.shape[0])).distribution.logits.sum().backward()
    policy.optimizer.step()


@pytest.mark.parametrize(
    "policy",
    [
        lambda: PPO(Own, make_vec_env(Levers, 1), device="cpu").policy,
        lambda: PPO("MlpPolicy", make_vec_env("Pendulum-v1", 1), device="cpu", use_sde=True).policy,
        lambda: loans(policy_kwargs={"activation_fn": nn.ELU}).policy,
        lambda: loans(policy_kwargs={"optimizer_class": th.optim.SGD, "optimizer_kwargs": {}}).policy,
        lambda: changed(frozen),
        lambda: changed(tied),
        lambda: changed(with_half_the_optimiser),
        lambda: changed(masked),
        lambda: changed(with_own_evaluation),
        lambda: changed(with_more),
        lambda: changed(whose_actor_alone_has_learned),
        lambda: changed(lambda policy: policy.mlp_extractor.register_forward_hook(print)),
        lambda: changed(lambda policy: setattr(policy, "forward", policy.forward)),
    ],
)
def test_what_a_user_has_changed_is_left_to_autograd(policy: Any) -> None:
    assert FastUpdates.suits(loans().policy)
    assert not FastUpdates.suits(policy())


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize("batch_size", [2, 4, 63])
def test_a_group_without_samples_keeps_its_weights_as_with_autograd(batch_size: int) -> None:
    ours, theirs = (
        learned(learner(autograd=autograd, batch_size=batch_size, n_epochs=1), times=1) for autograd in (False, True)
    )
    np.testing.assert_allclose(policy_weights(ours), policy_weights(theirs), atol=2e-4)
    steps = [[state["step"].item() for state in model.policy.optimizer.state.values()] for model in (ours, theirs)]
    assert steps[0] == steps[1]
    assert (max(steps[0]) < 320 // batch_size) == (batch_size < 8)  # otherwise each group is in every minibatch


class Paid(PPO):
    """A user's loss."""

    def _total(self, losses: Any) -> th.Tensor:
        return 0 * super()._total(losses)


def test_a_loss_of_a_subclass_counts() -> None:
    model = Paid("MlpPolicy", make_vec_env(Levers, 4, seed=0), n_steps=8, batch_size=8, seed=0, device="cpu")
    before = policy_weights(model)
    assert np.array_equal(policy_weights(model.learn(32)), before)


def test_advantages_that_are_not_numbers_are_not_hidden() -> None:
    model = moved(loans())
    batch = whole_batch(model)
    advantages = model._policy_advantages(batch)
    advantages[3] = th.nan
    fast = FastUpdates(model.policy)
    found = fast.compute(batch, advantages, clip=0.2, ent_coef=0.0, vf_coef=0.5)
    assert np.isnan(found.policy)
    assert th.isnan(next(model.policy.mlp_extractor.policy_net.parameters()).grad).any()
    fast.close()


def test_advantages_may_be_of_another_precision() -> None:
    model = moved(learner())
    batch = whole_batch(model)
    fast = FastUpdates(model.policy)
    found = [
        fast.compute(batch, given, clip=0.2, ent_coef=0.0, vf_coef=0.5)
        for given in (model._policy_advantages(batch), model._policy_advantages(batch).double())
    ]
    fast.close()
    assert found[0] == found[1]


class Copies(BaseCallback):
    """Copies the policy in the middle of a rollout, and stores it."""

    def __init__(self, folder: Any) -> None:
        super().__init__()
        self.folder = folder
        self.copied: Any = None

    def _on_step(self) -> bool:
        if self.copied is None:
            self.copied = copy.deepcopy(self.model.policy)
            th.save(self.model.policy, self.folder / "policy.pt")
        return True


def test_a_callback_can_copy_and_store_the_policy(tmp_path: Any) -> None:
    model, copies = loans(), Copies(tmp_path)
    model.learn(32 * 4, callback=copies)
    stored = th.load(tmp_path / "policy.pt", weights_only=False)
    seen = th.as_tensor(model.env.reset())
    for policy in (copies.copied, stored):
        assert policy is not model.policy
        with th.no_grad():
            for parameter in policy.parameters():
                parameter.zero_()
        values = policy(seen)[1]
        assert th.equal(values, th.zeros_like(values))


def test_memory_that_processes_share_stays_shared_and_gradients_stay() -> None:
    model = loans()
    model.policy.share_memory()
    places = [parameter.data_ptr() for parameter in model.policy.parameters()]
    model.learn(32 * 4)
    assert [parameter.data_ptr() for parameter in model.policy.parameters()] == places
    assert all(parameter.is_shared() and parameter.grad is not None for parameter in model.policy.parameters())


def test_networks_need_no_gradients_to_act() -> None:
    networks = Networks(loans().policy)
    logits, values = networks.forward(th.zeros(5, loans().observation_space.shape[0]))
    assert (logits.shape, values.shape) == ((5, 2), (5, 1))
    assert not logits.requires_grad
