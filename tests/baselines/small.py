"""What the tests of the baselines share: a small harvest, small learners, and the comparison of their weights."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from fair_envs import make_rules, make_sb3
from fair_envs.baselines.ppo.fair_ppo import FairPPO
from fair_envs.baselines.ppo.policies import GroupedPolicy
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.core import Rules
from fair_envs.faces.sb3 import AgentsVecEnv
from fair_envs.support.aliases import Floats32
from tests.helpers import LITTLE

HARVEST = "FairHarvest-v0"
NO_IDLE_TURNS: Mapping[str, Any] = {"handicap_period": 1, "freeze_turns": 0}
GAMES: Sequence[Mapping[str, Any]] = ({"sensitive_fraction": 0.0}, {"sensitive_fraction": 1.0})
SCALE = 0.1  # of the rewards

th.set_num_threads(1)


def small_rules(**parameters: Any) -> Rules:
    """Return the rules of the small harvest."""
    return make_rules(HARVEST, **{**LITTLE, **parameters})


def small_env(*, lanes: int = 4, worlds: Sequence[Mapping[str, Any]] | None = None, **parameters: Any) -> AgentsVecEnv:
    """Return the small harvest with agents as rows, the group at the end of their observations."""
    env = make_sb3(
        HARVEST, n_envs=lanes, append_group=True, reward_scale=SCALE, worlds=worlds, **{**LITTLE, **parameters}
    )
    return cast(AgentsVecEnv, env)


def learner(kind: type[BaseAlgorithm] = PPO, env: VecEnv | None = None, **settings: Any) -> Any:
    """Return a small learner; rollouts of 10 steps, so that episodes of 12 cross them."""
    env = small_env() if env is None else env
    default: dict[str, Any] = {"n_steps": 10, "n_epochs": 2, "learning_rate": 0.01, "ent_coef": 0.01, "seed": 1}
    default |= {"policy_kwargs": {"net_arch": [16]}, "device": "cpu"}
    default["batch_size"] = settings.get("n_steps", 10) * env.num_envs // 4
    return kind(GroupedPolicy, env, **{**default, **settings})


def fair_learner(*, penalty: str = "dp", **settings: Any) -> FairPPO:
    """Return a small fair-PPO on the environment that its penalty needs."""
    if "env" not in settings:
        settings["env"] = small_env(lanes=2, worlds=GAMES) if penalty == "cf" else small_env()
    made: FairPPO = learner(FairPPO, penalty=penalty, **settings)
    return made


def rollouts(model: BaseAlgorithm, count: int) -> int:
    """Return the agent steps of so many rollouts."""
    return count * model.n_steps * model.n_envs  # type: ignore[attr-defined, no-any-return]


def learned(model: Any, *, times: int = 3) -> Any:
    """Return a learner after so many rollouts, whatever has used up luck since it was made."""
    th.manual_seed(model.seed)
    np.random.seed(model.seed)
    return model.learn(rollouts(model, times))


class Quiet(BaseCallback):
    """A callback that does nothing."""

    def _on_step(self) -> bool:
        return True


def collect(model: Any, times: int = 1) -> None:
    """Let a learner collect rollouts without learning from them."""
    for k in range(times):
        if k == 0 and model._last_obs is None:
            _, callback = model._setup_learn(1, Quiet())
        else:
            callback = Quiet()
            callback.init_callback(model)
        model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)


def whole_batch(model: Any) -> Any:
    """Return the whole rollout as one minibatch."""
    return next(iter(model.rollout_buffer.get(None)))


def weights(model: Any) -> Floats32:
    """Return all weights of a learner's networks, and its optimiser's memory, in one row."""
    tensors = list(model.policy.parameters())
    tensors += [part for state in model.policy.optimizer.state.values() for part in state.values()]
    if isinstance(model, FairPPO):
        tensors += list(model.cost_critics.parameters())
    return np.concatenate([tensor.detach().numpy().ravel() for tensor in tensors])


def policy_weights(model: Any) -> Floats32:
    """Return all weights of a learner's policy in one row."""
    return th.nn.utils.parameters_to_vector(model.policy.parameters()).detach().numpy()


def gradients(model: Any, loss: th.Tensor, *, of: str) -> Floats32:
    """Return the gradient of those of the policy's weights whose names hold one of the words, in one row."""
    model.policy.zero_grad()
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    found = [
        np.zeros(weight.shape, np.float32).ravel() if weight.grad is None else weight.grad.numpy().ravel().copy()
        for name, weight in model.policy.named_parameters()
        if any(word in name for word in of.split())
    ]
    return np.concatenate(found)


ACTORS, CRITICS = "policy_net action_net", "value_net"
