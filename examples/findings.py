"""Shows the findings of docs/findings.md, each within minutes: ``python examples/findings.py NAME``.

Without a name it lists them. Trainings are short, with one or two seeds: they show an effect, and the pages of the
studies have its size with intervals.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

import fair_envs
from fair_envs.assessment import Evaluation
from fair_envs.envs.hiring.policies import Graduates
from fair_envs.envs.pursuit.policies import Greedy, ShuffledRoles
from fair_envs.evaluation import LanesWorld, begun, rollout
from fair_envs.evaluation.deciders import Correct, Never
from fair_envs.metrics.inference import noise_floor
from fair_envs.metrics.rates import Parts, Rate, Step
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import Task, task_of

HARVEST = {"horizon": 300}


def show(name: str, found: Evaluation) -> None:
    """Print performance, rates, the gap with its noise floor, and the short-term and long-term measures."""
    rates = ", ".join(f"{group} {rate.value:.3f}" for group, rate in found.rates.items())
    print(
        f"{name}: performance {found.performance.value:.3f}; {rates}; gap {found.gap.value:.3f} ~{found.gap.noise:.3f}"
    )
    rows = {row.section: f"{row.section} {row.name} {row.value:.3f}" for row in found.rows}
    print(
        "    " + "; ".join(rows[section] for section in ("short-term", "long-term") if section in rows) + " (0 is fair)"
    )


def trained(
    method: str, env_id: str, parameters: dict[str, Any], *, task: Task | None = None, **settings: Any
) -> Evaluation:
    """Return the evaluation of a method after a short training."""
    from fair_envs.baselines.methods import named

    chosen = named(method)
    config = chosen.configured({"env_id": env_id, "parameters": parameters, **settings})
    rules = fair_envs.make_rules(env_id, **config.parameters)
    policy = chosen.policy(chosen.train(config), config, rules)  # type: ignore[misc]
    found: Evaluation = fair_envs.evaluate(
        env_id, policy, task=task, parameters=config.parameters, episodes=16, twins=False
    )
    return found


def observation(steps: int = 640_000) -> dict[str, Evaluation]:
    """A number that only one group can use creates disparity: PPO with and without each agent's last reward.

    Agents at half speed had no turn in the step before, so their last reward is always 0 when they act.
    """
    return {
        seen: trained("ppo", "FairHarvest-v0", {**HARVEST, "observation": seen}, steps=steps)
        for seen in ("ten", "without_reward", "neighbours")
    }


def rule(steps: int = 640_000) -> dict[str, Evaluation]:
    """A rule without memory that uses less than PPO observes gives both groups more, at the ratio of their turns."""
    found = {
        name: fair_envs.evaluate("FairHarvest-v0", name, parameters=HARVEST, episodes=16, twins=False)
        for name in ("reactive", "greedy")
    }
    return {**found, "ppo": trained("ppo", "FairHarvest-v0", HARVEST, steps=steps)}


def penalty(steps: int = 64_000) -> dict[str, Evaluation]:
    """The published penalty cancels itself: any weight of fair-PPO's published code gives the same policy."""
    return {
        f"authors, alpha = beta = {weight:g}": trained(
            "fair-ppo", "FairHarvest-v0", HARVEST, mode="authors", alpha=weight, beta=weight, steps=steps
        )
        for weight in (0.25, 1.0)
    }


def welfare(steps: int = 150_000) -> dict[str, Evaluation]:
    """Where people change with decisions, welfare of the groups raises the bank's profit and narrows the gap."""
    return {method: trained(method, "FairLending-v0", {}, steps=steps) for method in ("ppo", "parity", "ggf")}


def vaccines() -> dict[str, Evaluation]:
    """Vaccinating no one is fair by the gap of vaccinations, and nearly by the health of the communities."""
    return {
        name: fair_envs.evaluate("FairEpidemic-v0", name, episodes=64, twins=False)
        for name in ("nobody", "most-neighbours")
    }


def incidents_of(step: Step) -> Parts:
    """Return the incidents of each location, and one step for each."""
    return step.feedback, np.ones_like(step.feedback)


def incidents(steps: int = 200_000) -> dict[str, Evaluation]:
    """A reward for discovered incidents pays for keeping them alive; the rates are new incidents per step."""
    rate = Rate(
        name="incidents per step", benefit="incidents", demand="steps", parts=incidents_of, columns=("feedback",)
    )
    env_id, counted = "FairAttention-v0", replace(task_of("FairAttention-v0"), rate=rate)
    found = {
        name: fair_envs.evaluate(env_id, name, task=counted, episodes=16, twins=False)
        for name in ("round-robin", "last-incidents", "proportional")
    }
    return {**found, "ppo": trained("ppo", env_id, {}, task=counted, steps=steps)}


class OneHunter(Greedy):
    """A team in which only the first pursuer hunts, and the others fly straight on."""

    def act(self, observation: Any, uniforms: Any) -> Any:
        """Return the greedy action of the first pursuer, and no turn for the others."""
        actions = super().act(observation, uniforms)
        actions[:, 1:] = 0
        return actions


def roles() -> dict[str, Evaluation]:
    """Dealing the roles of an unfair team at random makes it fair by team fairness, at no cost in captures."""
    rules = fair_envs.make_rules("FairPursuit-v0", pursuer_speed=1.2)
    return {
        name: fair_envs.evaluate(rules, policy, episodes=200, name=name, twins=False)
        for name, policy in (("one hunter", OneHunter(rules)), ("roles dealt", ShuffledRoles(OneHunter(rules))))
    }


def history(steps: int = 5_000) -> dict[str, float]:
    """A history that pairs each decision with the next applicant loses the unfairness of hiring only men."""
    env = gym.make_vec("FairHiring-v0", num_envs=16, leaving=False)
    observation, _ = env.reset(seed=TEST_SEEDS)
    rules = fair_envs.make_rules("FairHiring-v0")
    gender = rules.observed_features(rules.params).index("gender")
    women, hired = [], []
    for _ in range(steps // 16):
        action = (observation[:, gender] == 0).astype(np.int64)
        observation, _, _, _, info = env.step(action)
        women.append(info["fair_sensitive"][:, 0] == 1)
        hired.append(info["fair_action"])
    env.close()
    woman, chosen = np.array(women), np.array(hired) == 1
    real = np.array(hired) >= 0  # -1 in the steps that begin an episode
    both = real[1:] & real[:-1]
    return {
        "paired with the applicant": gap(woman[real], chosen[real]),
        "paired with the next one": gap(woman[1:][both], chosen[:-1][both]),
        "noise floor": noise_floor(lambda dealt: np.array([gap(dealt[0], chosen[real])]), woman[np.newaxis, real]),
    }


def gap(woman: Any, hired: Any) -> float:
    """Return the difference of the shares of hired men and women."""
    return float(abs(hired[~woman].mean() - hired[woman].mean()))


def quota(episodes: int = 64) -> dict[str, float]:
    """Where an episode ends with the hundredth hire, its sum of rewards favours strict rules."""
    rules = fair_envs.make_rules("FairHiring-v0", leaving=False)
    found = {}
    for name, policy in {
        "hires the qualified": Correct(rules),
        "hires with an extra degree": Graduates(rules, extra=True),
        "never hires": Never(rules),
    }.items():
        world = LanesWorld(begun(rules, TEST_SEEDS + np.arange(episodes, dtype=np.uint64)))
        rewards = [step.reward[step.active, 0] for step in rollout(world, policy)]
        total = sum(map(np.sum, rewards))
        found[f"{name}, per episode"] = total / episodes
        found[f"{name}, per step"] = total / sum(map(len, rewards))
    return found


FINDINGS: dict[str, Callable[[], dict[str, Any]]] = {
    own.__name__: own for own in (observation, history, roles, incidents, vaccines, penalty, welfare, rule, quota)
}


def main(name: str) -> dict[str, Any]:
    """Show a finding."""
    print(inspect.getdoc(FINDINGS[name]))
    found = FINDINGS[name]()
    for key, value in found.items():
        if isinstance(value, Evaluation):
            show(key, value)
        else:
            print(f"{key}: {value:.3f}")
    return found


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] in FINDINGS:
        main(sys.argv[1])
    elif len(sys.argv) > 1:
        sys.exit(f"name must be one of {', '.join(FINDINGS)}, got {' '.join(sys.argv[1:])!r}")
    else:
        print("\n".join(f"{name}: {(own.__doc__ or '').splitlines()[0]}" for name, own in FINDINGS.items()))
