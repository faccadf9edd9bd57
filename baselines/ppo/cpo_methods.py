"""The method CPO: its settings and its training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from stable_baselines3.common.base_class import BaseAlgorithm

from fair_envs.baselines.eval_callback import with_evaluations
from fair_envs.baselines.methods import SHARES, STILL, UNLIMITED, Method, Strength, Tolerance
from fair_envs.baselines.ppo.cpo import CPO
from fair_envs.baselines.ppo.methods import evaluate, policy, without_measure
from fair_envs.baselines.settings import COMMON, RECOMMENDED, SET_BY_RECOMMENDED, PPOSettings, recommended_preset
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
from fair_envs.support.parameters import NonNegative, Positive, setting
from fair_envs.tasks import rules_for


@dataclass(frozen=True, kw_only=True)
class CPOTraining(PPOSettings):
    """Settings of a training with constrained policy optimisation; equal settings give equal networks.

    Raises:
        ValueError: A value is outside its range.
    """

    algorithm: Literal["cpo"] = "cpo"
    measure: str = setting("short", "Measure that is limited: short, long, rate or the name of a notion.")
    limit: NonNegative = setting(0.05, "Limit on the mean of the measure over steps.")
    max_kl: Positive = setting(0.01, "Size of the trust region: the largest mean divergence of two policies.")
    sharing: Sharing = setting("all", COMMON["sharing"])

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_sharing(self.sharing, self)


def make_cpo(config: CPOTraining) -> BaseAlgorithm:
    """Return the untrained model.

    Raises:
        ValueError: A parameter is outside its range, or the environment does not report what the measure needs.
        TypeError: A parameter of the environment is unknown.
    """
    first = first_seed(config)
    short = measure_of(config, config.measure, rules_for(config.env_id, **config.parameters))
    policy_class, append = POLICIES[config.sharing]
    env = training_env(config, seed=first, append=append)
    own: dict[str, Any] = {"short": short, "limit": config.limit, "max_kl": config.max_kl}
    return new_model(
        CPO, config, policy_class, env, first=first, policy_kwargs={"net_arch": list(config.net_arch)}, **own
    )


def never_limited(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a note if the measure was never above its limit in a training, or ""."""
    found = [row["train/excess"] for row in rows if "train/excess" in row]
    if not found or any(excess is not None and excess > 0 for excess in found):
        return ""
    return "the limit was never exceeded, so it had an effect at most on steps that end near it; set a lower --limit"


METHODS = (
    Method(
        name="cpo",
        summary="Constrained policy optimisation: trust-region steps that keep the mean of a measure below a limit.",
        settings=CPOTraining,
        train=with_evaluations(partial(train_as, make=make_cpo), policy),
        load=partial(load_as, kind=CPOTraining, make=make_cpo),
        evaluated=evaluate,
        policy=policy,
        unsupported=without_measure,
        own=True,
        strength=Strength(("limit",), SHARES),
        tolerance=Tolerance(
            "limit", "train/measured", method="cpo", off={"limit": UNLIMITED}, frozen={"max_kl": STILL}
        ),
        trains_on=lambda env_id, rules, given: given.get("measure", CPOTraining.measure),
        note=never_limited,
        unused=frozenset({"clip_range", "ent_coef", "vf_coef"}),
        presets=RECOMMENDED,
        preset_sets=SET_BY_RECOMMENDED,
        preset=recommended_preset(CPOTraining),
    ),
)
