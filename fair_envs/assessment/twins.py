"""What would change for people with an attribute if they did not have it: counterfactual twins."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fair_envs.assessment.bounds import DIFFERENCE, within
from fair_envs.assessment.played import System
from fair_envs.assessment.result import Row
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.evaluation.systems import can_flip
from fair_envs.metrics.intervals import mean_interval
from fair_envs.wrappers.decisions import twin_decisions
from fair_envs.wrappers.twin import Twins


def no_twins(system: System) -> str:
    """Return why there are no counterfactual twins in an environment, and what to do instead; empty: there are."""
    rules = system.rules
    if system.env is not None or not isinstance(rules, Rules):
        return (
            f"{rules.name} is played with its wrappers, or is not an environment of this package; compare its groups, "
            "or use fair_envs.evaluation.systems.play_parallel with a second environment without the attribute"
        )
    if rules.multi_agent:
        if can_flip(rules):
            return ""
        return f"the agents of {rules.name} have no attribute that can be removed; compare its groups"
    if not rules.spec.one_person:
        return f"{rules.name} decides on several people in each step; compare its groups"
    if not _attributes(rules):
        return f"the rules of {rules.name} do not define how people with another attribute differ; compare its groups"
    return ""


def not_twinned(system: System) -> Iterator[str]:
    """Yield a note if counterfactual twins change only some of the attributes."""
    rules: Any = system.rules
    if rules.multi_agent:
        return
    changed = [one or next(iter(rules.spec.sensitive)) for one in _attributes(rules)]  # the rules flip the first one
    others = [name for name in rules.spec.sensitive if name not in changed]
    if others:
        own = ", ".join(others)
        yield f"Counterfactual twins change only {', '.join(changed)}; the rules do not define how to change {own}."


def _attributes(rules: Rules) -> list[str | None]:
    """Return the attributes of people that can be changed; None: the one that the rules flip."""
    if type(rules).flip is not Rules.flip:
        return [None]
    if type(rules).assign is Rules.assign:
        return []
    return [name for name, values in rules.spec.sensitive.items() if len(values) == 2]


def twin_rows(
    system: System, policy: Policy, *, episodes: int, seed: int, lanes: int, level: float, threads: int = 1
) -> Iterator[Row]:
    """Yield the changes for people with an attribute in episodes with the same random numbers.

    For agents: how much more each agent with the attribute earns in an episode if all of them lose it. For decisions:
    how much more often people get the favourable decision with the other value, by their actual value.
    """
    rules: Any = system.rules
    if not rules.multi_agent:
        yield from _of_decisions(rules, policy, episodes=episodes, seed=seed, lanes=lanes, level=level)
        return
    twins = Twins(rules, lanes=lanes, append_group=policy.append_group, threads=threads)
    pairs = twins.run(policy, episodes=episodes, seed=seed, flip="protected")
    change = pairs.counterfactual.values - pairs.factual.values
    sums, counts = np.where(pairs.flipped, change, 0).sum(axis=1), pairs.flipped.sum(axis=1)
    values = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    own, found = f"agents with {pairs.sensitive}", mean_interval(values, level=level, undefined="omit")
    yield Row("twin", f"change of return without {pairs.sensitive}", own, found)


def _of_decisions(rules: Rules, policy: Policy, *, episodes: int, seed: int, lanes: int, level: float) -> Iterator[Row]:
    for attribute in _attributes(rules):
        pairs = twin_decisions(rules, policy, attribute=attribute, episodes=episodes, seed=seed, lanes=lanes)
        name = f"change of favourable decisions if all swap {pairs.attribute}"
        for value, estimate in pairs.favoured(level=level).items():
            yield Row("twin", name, value, within(estimate, DIFFERENCE))
