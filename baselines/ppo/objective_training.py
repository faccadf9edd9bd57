"""Trains PPO for functions of expected returns: parity, ELBERT, welfare functions and a PID-Lagrangian."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from fair_envs.baselines.ppo.costs import Credit
from fair_envs.baselines.ppo.functions import OBJECTIVES, Aversion, Controller, Lagrangian, Name, Objective
from fair_envs.baselines.ppo.objectives import ObjectivePPO, Profile
from fair_envs.baselines.settings import COMMON, GROUPS_HELP, PPOSettings
from fair_envs.baselines.training import (
    POLICIES,
    Sharing,
    check_sharing,
    first_seed,
    load_as,
    measure_of,
    new_model,
    train_as,
    training_env,
)
from fair_envs.support.parameters import NonNegative, Positive, PositiveInt, UnitInterval, setting
from fair_envs.tasks import rules_for


@dataclass(frozen=True, kw_only=True)
class ObjectiveTraining(PPOSettings):
    """Settings of a training for a function of expected returns, see `fair_envs.baselines.ppo.functions`.

    Raises:
        ValueError: A value is outside its range, or the environment does not report what the measure needs.
    """

    algorithm: Name = "elbert"
    sharing: Sharing = setting("all", COMMON["sharing"])
    skip_idle: bool = setting(True, COMMON["skip_idle"])
    alpha: NonNegative = setting(1.0, "Weight of the gap between the groups' rates, in typical rewards per step.")
    smoothing: NonNegative = setting(0.02, "Gap below which the penalty is about quadratic.")
    beta: Positive = setting(20.0, "Sharpness of soft maxima and minima.")
    weight: UnitInterval = setting(0.5, "Weight of the welfare; 0 is the reward only, 1 the welfare only.")
    ratio: UnitInterval = setting(0.5, "Weight of a group divided by that of the next worse-off group.")
    aversion: Aversion = setting(2.0, "Aversion to inequality; 0 is the sum, 1 Nash welfare; beyond 20 use maxmin.")
    rate: str = setting("", "Notion whose rate the method reads, such as equal_opportunity. Empty: the task's rate.")
    groups: Sequence[str] = setting((), f"{GROUPS_HELP} Empty: the task's groups.")
    measure: str = setting("rate", "The limited measure: rate (the gap of the groups' rates), short, long or a notion.")
    limit: NonNegative = setting(0.05, "Upper limit of the measure.")
    proportional: NonNegative = setting(5.0, "Gain of the multiplier for the excess over the limit.")
    integral: NonNegative = setting(0.1, "Gain of the multiplier for the sum of all excesses so far.")
    derivative: NonNegative = setting(0.0, "Gain of the multiplier for an increase of the measure.")
    half_life: NonNegative = setting(2.0, "Rollouts after which an estimate of an expected return has half its weight.")
    critic_epochs: PositiveInt = setting(2, "Passes of the critic of benefits and demands over each rollout.")
    credit: Credit = setting(
        "common", "Whether agents learn from the benefits and demands of all (common) or only from their own (own)."
    )
    profile: Profile = setting("recommended", "How advantages are combined: as derived, or as in the published code.")

    def __post_init__(self) -> None:
        """Check the settings, and that the environment has what the measures need."""
        super().__post_init__()
        rules = rules_for(self.env_id, **self.parameters)
        measure_of(self, "rate", rules)
        if self.limits_cost:
            measure_of(self, self.measure, rules)
        check_sharing(self.sharing, self)
        if self.credit == "own" and not rules.multi_agent:
            raise ValueError(f"credit must be 'common' on {self.env_id}, which has one decision-maker, got 'own'")
        if self.credit == "own" and self.limits_cost:
            raise ValueError(f"credit must be 'common' to limit {self.measure}, which agents cause together, got 'own'")

    @property
    def limits_cost(self) -> bool:
        """Whether a measure other than the gap of rates is limited."""
        return self.algorithm == "lagrangian" and self.measure != "rate"

    def objective(self) -> Objective:
        """Return the function F."""
        kind = OBJECTIVES[self.algorithm]
        settings = {**dataclasses.asdict(self), "a": self.aversion}
        own = {one.name: settings[one.name] for one in dataclasses.fields(kind) if one.name in settings}
        return kind(**own, **({"of_rates": not self.limits_cost} if kind is Lagrangian else {}))


def make_objective(config: ObjectiveTraining) -> ObjectivePPO:
    """Return the untrained model.

    Raises:
        ValueError: A parameter of the environment is outside its range.
        TypeError: A parameter of the environment is unknown.
    """
    policy, append = POLICIES[config.sharing]
    first = first_seed(config)
    env = training_env(config, seed=first, append=append)
    rules = rules_for(config.env_id, **config.parameters)
    return new_model(
        ObjectivePPO,
        config,
        policy,
        env,
        first=first,
        objective=config.objective(),
        rate=measure_of(config, "rate", rules),
        cost=measure_of(config, config.measure, rules) if config.limits_cost else None,
        controller=Controller(config.proportional, config.integral, config.derivative),
        half_life=config.half_life,
        critic_epochs=config.critic_epochs,
        credit=config.credit,
        profile=config.profile,
        skip_idle=config.skip_idle,
        policy_kwargs={"net_arch": list(config.net_arch)},
    )


train_objective = partial(train_as, make=make_objective)
"""Trains and returns the model, see `fair_envs.baselines.train`."""

load_objective = partial(load_as, kind=ObjectiveTraining, make=make_objective)
"""Returns the model of a run's last checkpoint, for evaluation, and its settings."""
