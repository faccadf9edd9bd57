"""Fair-PPO: PPO with a penalty on the disparity between groups (La Malfa et al., 2025).

The paper's penalty is ``alpha * retrospective + beta * prospective``. The retrospective term is the difference of the
groups' rewards so far. The prospective term is the difference of the critics' values for the groups. As printed, the
penalty has no gradient on the policy. In the published code, it adds the loss of each group with a positive penalty
again, usually only that of the better-off group; otherwise its gradient is zero. Neither directs the policy towards
less disparity. The modes ``paper_literal`` and ``authors`` are the text and the code, for comparison; the other modes
give the penalty a gradient on the policy.
"""

import math
from typing import Any, Literal

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import MaybeCallback

from fair_envs.baselines.ppo.costs import (
    Credit,
    Disparity,
    PenaltyNotion,
    common_costs,
    individual_cost,
    rollout_disparity,
)
from fair_envs.baselines.ppo.fair_modes import MODES, CostCritics, CostMode, LearnerState, Mode, PenaltyLearner
from fair_envs.baselines.ppo.minibatch import Minibatch, MinibatchOutput
from fair_envs.baselines.ppo.policies import GroupedPolicy
from fair_envs.baselines.ppo.ppo import agents_env_of
from fair_envs.faces.sb3 import AgentsVecEnv
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import NonNegative, checked

ModeName = Literal["shaped", "weighted", "p3o", "paper_literal", "authors"]


class FairPPO(PenaltyLearner):
    """PPO with a fairness penalty on the disparity between two groups of agents.

    D_t is the difference between the groups' mean returns from the episode's start to step t (group 0 minus group 1).
    The modes ``shaped`` and ``p3o`` charge each agent two costs. The retrospective cost is ``|D_t| - |D_{t-1}|``, which
    adds up to the episode's disparity. The prospective cost is ``(1 - gamma) * |mean V of group 0 - mean V of group
    1|``, without a gradient through the critics. Both are multiplied by the size n of the agent's group, because one
    agent's reward changes the group's mean by only 1/n of it. With ``alpha * weight = 1`` in mode ``shaped``, an agent
    of the better-off group gains nothing from its own rewards.

    Args:
        args: Arguments of `stable_baselines3.PPO`; the environment is `fair_envs.make_sb3` with rows of agents.
        penalty: Disparity to penalise, by the notion's name or alias. ``"demographic_parity"``: between the groups;
            ``"conditional_parity"``: between the groups within each value of the legitimate factor, summed;
            ``"counterfactual_fairness"``: between two sets of lanes with the same seeds, whose parameters should differ
            only in the attribute, see the argument ``worlds`` of `fair_envs.make_sb3`.
        alpha: Weight of the retrospective term, at least 0.
        beta: Weight of the prospective term, at least 0.
        weight: The paper's lambda, which multiplies both, at least 0.
        mode: ``"shaped"``: cost advantages from separate critics are subtracted from the advantages. ``"weighted"``:
            the advantages of group 0 are multiplied by ``max(0, 1 - s)`` and those of group 1 by ``max(0, 1 + s)``,
            where ``s = weight * (alpha * sign(reward gap) + beta * sign(value gap))``; the gaps (group 0 minus group 1)
            are running means over rollouts. ``"p3o"``: ``relu(surrogate + excess)`` of each cost, times its weight, is
            added to the loss; the surrogate is clipped, and the excess is how far the disparity is above ``tolerance``
            (0 for the prospective cost). ``"paper_literal"``: the penalty as printed; its first term has no gradient,
            its second changes only critics. ``"authors"``: the penalty of the published code, which adds the loss of
            some groups again.
        credit: Assignment of costs to agents, in ``shaped`` and ``p3o``. ``"common"``: every agent pays for the whole
            change of its lane's disparity, or of its pair's with penalty ``"counterfactual_fairness"``. One critic
            predicts the part due to the agent's own reward in the step, ``n * (|D_t| - |D_t without this reward|)``,
            another the rest. ``"own"``: every agent pays only for the part due to its own reward. This part has less
            noise, but omits the agent's effect on the others' rewards.
        tolerance: In ``p3o``, the difference of the groups' mean returns per episode up to which there is no excess, in
            unscaled rewards, at least 0.
        kwargs: Keyword arguments of `fair_envs.baselines.PPO`.

    Raises:
        ValueError: An argument is outside its range or has no effect in the mode, or the environment is not suitable.
            It must be made by `fair_envs.make_sb3` with ``rows="agents"`` and have vectors as observations.
            `GroupedPolicy` needs ``append="group"``; ``VecNormalize`` must not rescale rewards.
            ``"counterfactual_fairness"`` needs two worlds. The other notions need one world with two groups of agents
            that are themselves affected, and ``"conditional_parity"`` needs a legitimate factor.
    """

    def __init__(
        self,
        *args: Any,
        penalty: str = "demographic_parity",
        alpha: float = 1.0,
        beta: float = 0.0,
        weight: float = 1.0,
        mode: ModeName = "shaped",
        credit: Credit = "common",
        tolerance: float = 0.0,
        **kwargs: Any,
    ) -> None:
        penalty = checked("penalty", penalty, PenaltyNotion)
        checked("mode", mode, ModeName)
        checked("credit", credit, Credit)
        self.alpha, self.beta, self.weight, self.tolerance = (
            float(checked(name, number, NonNegative))
            for name, number in (("alpha", alpha), ("beta", beta), ("weight", weight), ("tolerance", tolerance))
        )
        if credit != "common" and not issubclass(MODES[mode], CostMode):
            raise ValueError(f"credit must be 'common' in mode {mode!r}, which estimates no costs, got {credit!r}")
        if tolerance > 0 and mode != "p3o":
            raise ValueError(f"tolerance must be 0 in mode {mode!r}, only 'p3o' tolerates, got {tolerance!r}")
        self.penalty, self.mode, self.credit = penalty, mode, credit
        super().__init__(*args, **kwargs)
        if self.env is not None:
            self._check_env(agents_env_of(self.env))

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.observation_space.shape is None or len(self.observation_space.shape) != 1:
            raise ValueError(f"env must have vectors as observations, got {self.observation_space}")
        self.cost_critics = CostCritics(
            self.observation_space.shape[0],
            costs=2 * self.cost_parts,
            learning_rate=self.lr_schedule(1),
            seed=0 if self.seed is None else self.seed,
        ).to(self.device)
        self.memory = LearnerState()
        self._mode: Mode = MODES[self.mode](self)

    def learn(  # type: ignore[override]
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "FairPPO",
        **kwargs: Any,
    ) -> "FairPPO":
        """Train as in `stable_baselines3.PPO.learn`; the run's name in TensorBoard is FairPPO."""
        return super().learn(total_timesteps, callback, log_interval, tb_log_name, **kwargs)

    @property
    def cost_weights(self) -> tuple[float, float]:
        """Weights of the retrospective and the prospective cost."""
        return self.weight * self.alpha, self.weight * self.beta

    @property
    def cost_parts(self) -> int:
        """Number of parts into which an agent's costs are split, see `agent_costs`."""
        return 2 if self.credit == "common" else 1

    @property
    def disparity(self) -> float:
        """Mean |D| over the episodes that ended in the latest rollout with such episodes, in scaled rewards.

        Before the first episode has ended, it is the mean |D| so far over all worlds, see `to_worlds`.
        """
        return float(self.memory["disparity"])

    @property
    def agents_env(self) -> AgentsVecEnv:
        """Environment that reports the interactions.

        Raises:
            ValueError: The environment does not report them, or not for two groups.
        """
        return self._check_env(self.rollout_buffer.agents_env)

    def _check_env(self, agents_env: AgentsVecEnv | None) -> AgentsVecEnv:
        """Return the environment, or raise ValueError if its agents cannot be compared."""
        if agents_env is None:
            raise ValueError("env must be made by fair_envs.make_sb3 with rows='agents', got another environment")
        policy = getattr(self, "policy", None)
        if isinstance(policy, GroupedPolicy) and agents_env.append != policy.member_of:
            needed = f"append={policy.member_of!r} for {type(policy).__name__}"
            raise ValueError(f"env must be made with {needed}, got append={agents_env.append!r}")
        if self._vec_normalize_env is not None and self._vec_normalize_env.norm_reward:
            raise ValueError("env must not rescale rewards, got VecNormalize(norm_reward=True)")
        if self.penalty == "conditional_parity" and not agents_env.fair_spec.legitimate:
            raise ValueError("env must have a legitimate factor for penalty 'conditional_parity', got none")
        if self.penalty == "counterfactual_fairness":
            if agents_env.worlds != 2:
                needed = f"two worlds (fair_envs.make_sb3(worlds=...)) for penalty {self.penalty!r}"
                raise ValueError(f"env must have {needed}, got {agents_env.worlds}")
        elif agents_env.worlds != 1:
            raise ValueError(f"env must have one world for penalty {self.penalty!r}, got {agents_env.worlds}")
        elif not agents_env.fair_spec.same_individuals:
            raise ValueError("env must have agents that are themselves affected, got a decision-maker")
        elif len(agents_env.fair_spec.groups) != 2:
            raise ValueError(f"env must have two groups of agents, got {agents_env.fair_spec.groups}")
        return agents_env

    @property
    def reward_scale(self) -> float:
        """Ratio of the learner's rewards to the agents' own rewards."""
        return self.agents_env.reward_scale

    def to_worlds(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reshape values of shape (T, rows) to (T, B, N): T steps, B worlds, N agents in each world.

        A world is a lane, or with penalty "counterfactual_fairness" a pair of lanes.
        """
        agents_env, steps = self.agents_env, len(values)
        agents = agents_env.lanes.agents
        split: NDArray[Any] = values.reshape(steps, agents_env.worlds, -1, agents).swapaxes(1, 2)
        return split.reshape(steps, -1, agents_env.worlds * agents)

    def to_rows(self, worlds: NDArray[Any]) -> NDArray[Any]:
        """Reshape values of shape (T, B, N) to (T, rows), the inverse of `to_worlds`."""
        steps, pairs = worlds.shape[:2]
        split = worlds.reshape(steps, pairs, self.agents_env.worlds, -1).swapaxes(1, 2)
        return np.ascontiguousarray(split).reshape(steps, -1)

    def agent_costs(self, disparity: Disparity) -> Floats:
        """Return each agent's costs in parts, shape (T, rows, parts, 2); the last axis: retrospective, prospective.

        The first part is due to the agent's own reward or value. With common credit, the second part is due to those of
        the other agents.
        """
        reward = self.to_worlds(self.rollout_buffer.reward) * self.reward_scale
        value = self.to_worlds(self.rollout_buffer.values)
        own = (
            individual_cost(disparity.return_gap, reward, disparity),
            (1 - self.gamma) * individual_cost(disparity.value_gap, value, disparity),
        )
        total = [disparity.size * cost[..., np.newaxis] for cost in common_costs(disparity, gamma=self.gamma)]
        parts = [own, (total[0] - own[0], total[1] - own[1])][: self.cost_parts]
        return np.stack([np.stack([self.to_rows(cost) for cost in part], axis=-1) for part in parts], axis=2)

    def measure_disparity(self) -> Disparity:
        """Return the disparity of the rollout, and store the returns of its unfinished episodes."""
        buffer, memory = self.rollout_buffer, self.memory
        group, stratum, strata = self._groups_and_strata()
        shape = group.shape[1], strata, 2
        returns_before = memory.get("returns", np.zeros(shape))
        disparity = rollout_disparity(
            self.to_worlds(buffer.reward).astype(float) * self.reward_scale,
            self.to_worlds(buffer.values).astype(float),
            group,
            stratum,
            first=self._per_world(buffer.episode_starts),
            ended=self._per_world(np.asarray(self._last_episode_starts)[np.newaxis])[0],
            start=returns_before if returns_before.shape == shape else np.zeros(shape),
        )
        memory["returns"] = disparity.returns
        if disparity.ended.any() or not memory.get("episodes", np.zeros(())):
            memory["disparity"] = np.array(disparity.final if disparity.ended.any() else disparity.current)
        memory["episodes"] = np.array(memory.get("episodes", 0) + disparity.ended.sum())
        return disparity

    def _groups_and_strata(self) -> tuple[Ints, Ints, int]:
        """Return the compared groups and strata, shapes (T, B, N), and the number of strata."""
        group = self.to_worlds(self.rollout_buffer.group)
        if self.penalty == "conditional_parity":
            factors = self.agents_env.fair_spec.legitimate.values()
            return group, self.to_worlds(self.rollout_buffer.stratum), math.prod(len(codes) for codes in factors)
        if self.penalty == "counterfactual_fairness":  # compare the two lanes of a pair
            in_second_lane = np.arange(group.shape[-1]) >= group.shape[-1] // 2
            group = np.broadcast_to(in_second_lane, group.shape).astype(np.int64)
        return group, np.zeros_like(group), 1

    def _per_world(self, mask: NDArray[Any]) -> Flags:
        """Return a mask of shape (T, rows) as one of shape (T, B); all agents of a world have the same value."""
        return self.to_worlds(mask)[..., 0].astype(bool)

    def _after_rollout(self) -> None:
        disparity = self.measure_disparity()
        compared = disparity.size_of_other_group.any()  # otherwise a group is empty and no comparison is possible
        self.logger.record("fairness/disparity", self.disparity / self.reward_scale if compared else np.nan)
        self._mode.after_rollout(disparity)

    def _policy_advantages(self, batch: Minibatch) -> th.Tensor:
        return self._mode.advantages(batch, self._of_turns(batch, batch.advantages))

    @property
    def _has_penalty(self) -> bool:
        return any(self.cost_weights) and type(self._mode).penalty is not Mode.penalty

    def _penalty(self, batch: Minibatch, output: MinibatchOutput) -> th.Tensor | None:
        return self._mode.penalty(batch, output)

    def _after_minibatch(self, batch: Minibatch) -> None:
        self._mode.after_minibatch(batch)

    def _optimizers(self) -> list[th.optim.Optimizer]:
        return [*super()._optimizers(), self.cost_critics.optimizer]

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_mode"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        states, tensors = super()._get_torch_save_params()
        return [*states, "cost_critics", "cost_critics.optimizer", "memory"], tensors
