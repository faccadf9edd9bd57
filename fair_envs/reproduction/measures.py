"""The numbers of one training seed: each notion's series over the test episodes, their means, and noise floors."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fair_envs.experiments.seeds import curve_numbers
from fair_envs.metrics import (
    Returns,
    conditional_parity,
    counterfactual_fairness,
    demographic_parity,
    sensitive_returns,
    total_variation,
)
from fair_envs.metrics.inference import noise_floor
from fair_envs.reproduction.experiment import SENSITIVE, Result
from fair_envs.support.aliases import Flags, Floats

Series = dict[str, Floats]
Form = Literal["ratio", "difference"]

GROUPS = ("without", "with")  # the sensitive attribute


def series(result: Result, *, horizon: int) -> Series:
    """Return each number for each test episode; returns and differences are per agent and step.

    Names: ``return[without]``, ``return[with]``; ``dp_ratio``, ``dp_difference``, ``dp_total``; the same with
    ``csp_..[red]``; ``cf_ratio``, ``cf_difference``, ``cf_total`` of the paper's two games and ``game[without]``,
    ``game[with]``, the returns in them; ``twin_own`` and ``twin_same``, the differences per agent and step if all
    agents with the attribute lose it, with the networks of their new and of their old group.
    """
    found: Series = {}
    for group, values in sensitive_returns(result.ordinary).items():
        found[f"return[{group}]"] = values / horizon
    for form in ("ratio", "difference", "total"):
        unit = horizon if form == "difference" else 1
        found[f"dp_{form}"] = demographic_parity(result.ordinary, form=form) / unit
        for value, gap in conditional_parity(result.ordinary, legitimate="preference", form=form).items():
            found[f"csp_{form}[{value}]"] = gap / unit
        if result.everybody is not None and result.none is not None:
            found[f"cf_{form}"] = counterfactual_fairness(result.everybody, result.none, form=form) / unit
    for group, game in zip(GROUPS, (result.none, result.everybody), strict=True):
        if game is not None:
            found[f"game[{group}]"] = game.values.mean(axis=1) / horizon
    for kind, twin in result.twins.items():
        found[f"twin_{kind}"] = counterfactual_fairness(result.ordinary, twin, form="difference") / horizon
    return found


def numbers(result: Result, *, horizon: int, actions: Sequence[str]) -> dict[str, float]:
    """Return the numbers of one seed.

    Each series of `series` has its mean; ratios, differences and totals also have the mean of their absolute values,
    ``|dp_ratio|``, and its noise floor, ``noise |dp_ratio|``, where one is defined. ``selected[with][stay]`` is the
    share of an action among those that the group selected, ``executed[with][stay]`` among those that it executed, and
    ``selected, total variation`` the distance between the groups' shares. ``learned[with]`` is the curve of the group's
    mean reward in the rollouts of the training.
    """
    found: dict[str, float] = {}
    for name, values in series(result, horizon=horizon).items():
        found[name] = float(values.mean())
        if name.startswith(("dp_", "csp_", "cf_")):
            found[f"|{name}|"] = float(np.abs(values).mean())
    for form in ("ratio", "difference"):
        unit = horizon if form == "difference" else 1
        for name, floor in noise(result, form=form).items():
            found[f"noise |{name}|"] = floor / unit
    for kind in ("selected", "executed"):
        shares = np.asarray(getattr(result, kind) / getattr(result, kind).sum(axis=1, keepdims=True))
        found[f"{kind}, total variation"] = float(total_variation(shares[0], shares[1]))
        for group, own in zip(GROUPS, shares, strict=True):
            found |= {f"{kind}[{group}][{action}]": float(share) for action, share in zip(actions, own, strict=True)}
    steps, *rewards = result.learning.T
    for group, values in zip(GROUPS, rewards, strict=True):
        found |= curve_numbers(f"learned[{group}]", steps, values)
    return found


def noise(result: Result, *, form: Form) -> dict[str, float]:
    """Return the noise floors of the absolute disparities, see `fair_envs.metrics.inference.noise_floor`.

    For parity, the attribute is dealt at random among the agents of each episode. For the two games, the same game is
    compared with itself in other episodes.
    """
    returns = result.ordinary
    found = {f"dp_{form}": _dealt(returns, form)}
    kinds = returns.attribute("preference")
    for value in np.unique(kinds):
        agents = [np.flatnonzero(row == value) for row in kinds]
        if len({len(own) for own in agents}) == 1:  # otherwise their arrays have no common shape
            values, sensitive = (
                np.take_along_axis(array, np.array(agents), axis=1)
                for array in (returns.values, returns.attribute(SENSITIVE))
            )
            found[f"csp_{form}[{value}]"] = _dealt(Returns(values, attributes={SENSITIVE: sensitive}), form)
    if result.none is not None and result.everybody is not None:
        none, everybody = result.none, result.everybody
        again = Returns(np.roll(none.values, 1, axis=0), attributes=everybody.attributes)
        found[f"cf_{form}"] = float(np.abs(counterfactual_fairness(again, none, form=form)).mean())
    return found


def _dealt(returns: Returns, form: Form) -> float:
    """Return the noise floor of the disparity if the attribute is dealt among all agents of an episode."""

    def gap(members: Flags) -> Floats:
        return demographic_parity(Returns(returns.values, attributes={SENSITIVE: members}), form=form)

    return noise_floor(gap, returns.members(SENSITIVE))
