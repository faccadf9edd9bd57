"""Trains for long-term fairness: PPO, A-PPO, F-PPO and its ablations, and PPO-Lagrangian, with one settings class.

The measures and the massager are those of an environment's `fair_envs.tasks.Task`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback

from fair_envs.baselines.ppo.lagrangian import PPOLagrangian
from fair_envs.baselines.ppo.massaging import DecisionMassager, Massaging, MassagingSchedule, Schedule, massager_maker
from fair_envs.baselines.ppo.policies import SharedTrunkPolicy
from fair_envs.baselines.ppo.regularised import APPO, FPPO, Regularised, Scaling
from fair_envs.baselines.settings import COMMON, Activation, OnPolicySettings, recommended
from fair_envs.baselines.tasks import PUBLISHED, RECOMMENDED, Signals, task_for
from fair_envs.baselines.training import POLICIES, Sharing, check_sharing, load_as, new_model, train_as, training_env
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import (
    NonNegative,
    Positive,
    PositiveInt,
    checked,
    setting,
)
from fair_envs.support.seeds import LANES_EACH, LONG_TERM_SEEDS
from fair_envs.tasks import environment_id, rules_for

LongTermAlgorithm = Literal["ppo", "a-ppo", "f-ppo", "f-ppo-l", "f-ppo-s", "ppo-lagrangian"]


@dataclass(frozen=True, kw_only=True)
class LongTermTraining(OnPolicySettings):
    """Settings of a training for long-term fairness; equal settings give equal networks.

    P in the comments marks values of the published code of F-PPO, see the preset ``published``.

    Raises:
        ValueError: A value is outside its range, or the environment lacks a measure or a massager that it needs.
    """

    algorithm: LongTermAlgorithm = "f-ppo"  # "f-ppo-l": without massaging; "f-ppo-s": only massaging
    # Rollouts and PPO. P: lanes 1, n_steps 2000 or 2048, batch_size 64, learning_rate 1e-5, the rest as here
    trunk: Sequence[PositiveInt] = setting((), "Sizes of the layers shared by actor and critic.")
    pi: Sequence[PositiveInt] = setting((64, 64), "Sizes of the actor's separate layers.")
    vf: Sequence[PositiveInt] = setting((64, 64), "Sizes of the critic's separate layers.")
    activation: Activation = setting("relu", COMMON["activation"])  # P
    sharing: Sharing = setting("all", COMMON["sharing"])
    # Regularisation
    signals: Signals = setting("sound", "Which fairness measures the learner uses.")  # P: as_coded
    delta: NonNegative = setting(0.05, "Short-term disparity up to which no penalty applies.")
    scaling: Scaling = setting(
        "running", "How the advantages are scaled before the penalties are added."
    )  # P: as_coded
    value_weight: NonNegative = setting(0.25, "Weight of a disparity above delta in A-PPO.")
    decrease_weight: NonNegative = setting(0.25, "Weight of an increase of a disparity above delta in A-PPO.")
    weight: NonNegative = setting(
        1.0, "Weight of a decline of long-term fairness while the disparity is above delta, in F-PPO."
    )
    bonus_weight: NonNegative = setting(
        1.0, "Weight of an improvement of long-term fairness while the disparity is within delta, in F-PPO."
    )
    gated: bool = setting(True, "Whether the disparity decides which of F-PPO's two terms applies.")
    # Massaging
    massaging: Massaging = setting("as_paper", "How the policy learns from altered actions.")
    massaging_pace: NonNegative = setting(
        0.0, "Rollouts of the published threshold schedule per training rollout; 0 passes through the whole schedule."
    )
    # PPO under a limit
    limit: NonNegative = setting(0.05, "Limit on the mean short-term disparity, for ppo-lagrangian.")
    multiplier_rate: Positive = setting(0.05, "Learning rate of the multiplier, for ppo-lagrangian.")

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_sharing(self.sharing, self)
        if self.sharing != "all" and self.trunk:
            raise ValueError(f"trunk must be empty with sharing {self.sharing!r}, got {tuple(self.trunk)}")
        task, rules = task_for(self.env_id, self.signals), rules_for(self.env_id, **self.parameters)
        for name in ("short", "long"):
            task.measure(name, rules, 1)
        if self.algorithm == "f-ppo-s" and massager_maker(task, rules) is None:
            raise ValueError(f"algorithm must not be 'f-ppo-s' on {self.env_id}, which has no massager")


BACKBONE: Mapping[str, Any] = {"lanes": 1, "n_steps": 2048, "batch_size": 64, "learning_rate": 1e-5}
"""PPO's settings in the published code, unless they are in `PUBLISHED`."""

Preset = Literal["recommended", "published"]
"""Sources of the default settings: the task, or the published code."""


def long_term_preset(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a preset for the settings given so far.

    Raises:
        ValueError: The preset is unknown, or the published study has no settings for the environment.
    """
    checked("preset", preset, Preset)
    env_id = environment_id(given["env_id"])
    if preset == "recommended":
        return {**recommended(LongTermTraining, given), **RECOMMENDED.get(env_id, {})}
    if env_id not in PUBLISHED:
        raise ValueError(f"preset must not be 'published' on {env_id}; that study is of {', '.join(sorted(PUBLISHED))}")
    values: dict[str, Any] = {**BACKBONE, "scaling": "as_coded"}
    for algorithm in ("", given.get("algorithm", "")):
        values |= PUBLISHED[env_id].get(algorithm, {})
    # a given parameter does not discard the preset's others
    return {**values, "parameters": {**values.get("parameters", {}), **given.get("parameters", {})}}


def long_term_settings(env_id: str, *, preset: Preset = "recommended", **given: Any) -> LongTermTraining:
    """Return the settings of a training on an environment, with defaults from its task or the published code."""
    given = {"env_id": env_id, "algorithm": "f-ppo", **given}
    values = long_term_preset(preset, given)
    return LongTermTraining(**{**values, **given, "parameters": values["parameters"]})


# ------------------------------------------------------------------------------------------- making and training


@dataclass(frozen=True)
class Paced:
    """A schedule that advances by several rollouts per rollout."""

    schedule: Schedule
    pace: float

    def __call__(self, rollout: int) -> float | None:
        """Return the threshold of a rollout, or None."""
        return self.schedule(rollout * self.pace)  # type: ignore[arg-type]  # may be fractional


def make_long_term(config: LongTermTraining) -> Regularised:
    """Return the untrained model, with one row for each lane of a decision-maker, or for each agent.

    Raises:
        ValueError: A parameter of the environment is outside its range.
        TypeError: A parameter of the environment is unknown.
    """
    first = LONG_TERM_SEEDS + LANES_EACH * config.seed
    policy, append = POLICIES[config.sharing]
    env = training_env(config, seed=first, append=append)
    sizes = {"pi": list(config.pi), "vf": list(config.vf)}
    if config.sharing == "all":
        policy, sizes["shared"] = SharedTrunkPolicy, list(config.trunk)
    kind, own = learner_of(config, env)
    return new_model(kind, config, policy, env, first=first, policy_kwargs={"net_arch": sizes}, **own)


def learner_of(config: LongTermTraining, env: Any) -> tuple[type[Regularised], dict[str, Any]]:
    """Return the learner class of an algorithm and its specific settings."""
    task, rules = task_for(config.env_id, config.signals), rules_for(config.env_id, **config.parameters)
    shared: dict[str, Any] = {name: task.factory(name, rules) for name in ("short", "long")}
    if config.algorithm == "ppo":
        return Regularised, shared
    if config.algorithm == "ppo-lagrangian":
        return PPOLagrangian, {**shared, "limit": config.limit, "multiplier_rate": config.multiplier_rate}
    shared |= {"delta": config.delta, "scaling": config.scaling}
    if config.algorithm == "a-ppo":
        return APPO, {**shared, "value_weight": config.value_weight, "decrease_weight": config.decrease_weight}
    if config.algorithm != "f-ppo-l" and (make := massager_maker(task, rules)) is not None:
        massager = make(env)
        thresholds: MassagingSchedule = getattr(massager, "schedule", DecisionMassager.schedule)
        schedule = Paced(thresholds, pace_of(config, thresholds.rollouts))
        shared |= {"massager": massager, "massaging_schedule": schedule, "massaging": config.massaging}
    regularised = config.algorithm != "f-ppo-s"
    weights = {"weight": config.weight * regularised, "bonus_weight": config.bonus_weight * regularised}
    return FPPO, {**shared, **weights, "gated": config.gated}


def pace_of(config: LongTermTraining, published: int) -> float:
    """Return the number of rollouts of the published schedule per rollout of a training.

    Args:
        config: The settings.
        published: Number of rollouts of the published training.
    """
    if config.massaging_pace > 0:
        return config.massaging_pace
    rollouts = -(-config.steps // (config.lanes * config.n_steps))
    return published / rollouts


def train_long_term(
    config: LongTermTraining,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    callback: MaybeCallback = None,
) -> BaseAlgorithm:
    """Train and return the model; arguments, files and errors are the same as in `fair_envs.baselines.train`."""
    return train_as(config, make_long_term, out=out, resume=resume, progress=progress, callback=callback)


def load_long_term(run: str | Path) -> tuple[BaseAlgorithm, LongTermTraining]:
    """Return the model of a run's last checkpoint, for evaluation, and its settings.

    Raises:
        FileNotFoundError: The folder contains no run.
    """
    return load_as(run, LongTermTraining, make_long_term)


class DisparityCurve(BaseCallback):
    """Records the short-term disparity and the share of altered actions in each rollout of a training."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[float, ...]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        measures = self.model.rollout_measures  # type: ignore[attr-defined]
        known = measures.short[~np.isnan(measures.short)]
        found = (np.nan, np.nan) if not len(known) else (float(known.mean()), float(known.std()))
        self.rows.append((float(self.num_timesteps), *found, float(measures.altered.mean())))

    def arrays(self) -> dict[str, Floats]:
        """Return the steps, the mean and standard deviation of the disparity, and the share of altered actions."""
        names = ("steps", "short", "deviation", "altered")
        return dict(zip(names, np.array(self.rows, np.float64).reshape(-1, 4).T, strict=True))
