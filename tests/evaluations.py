"""What evaluations find: small cells of every study, twins, decisions and films, for `tests.hashes` to compare."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fair_envs
from fair_envs.metrics import Returns
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.wrappers import Twins, decision_gap, from_probabilities, twin_decisions

Parts = Mapping[str, Any]
SMALL_NET: Any = {"trunk": (8,), "pi": (8,), "vf": (8,)}


def arrays_of(cell: Any, folder: Path) -> dict[str, Any]:
    """Return the arrays that a cell writes, without its clock."""
    folder.mkdir(parents=True)
    cell.work(folder)
    return dict(np.load(folder / "arrays.npz"))


def agents(folder: Path) -> Iterator[Parts]:
    """Yield tests of multi-agent policies in ordinary and counterfactual games."""
    from fair_envs.baselines.training import Training
    from fair_envs.reproduction.experiment import Cell

    for k, shared in enumerate((False, True)):
        training = Training(
            env_id="FairHarvest-v0",
            parameters={"horizon": 40},
            algorithm="fair-ppo",
            shared=shared,
            steps=2560,
            lanes=2,
            n_steps=32,
            batch_size=64,
            net_arch=(8,),
        )
        yield arrays_of(Cell(training=training, episodes=5), folder / str(k))


def teams(folder: Path) -> Iterator[Parts]:
    """Yield tests of teams, designed and learnt, and with roles dealt anew."""
    from fair_envs.baselines.team.training import TeamTraining
    from fair_envs.reproduction.grupen2022.jobs import ScriptedTeamCell, TeamCell

    small = {"horizon": 60}
    for name in ("greedy", "planner"):
        yield arrays_of(
            ScriptedTeamCell(name=name, seed=0, speeds=(1.2, 0.8), episodes=3, parameters=small), folder / name
        )
    training = TeamTraining(
        env_id="FairPursuit-v0",
        parameters=small,
        algorithm="ddpg",
        steps=3000,
        lanes=4,
        learning_starts=600,
        batch_size=64,
        buffer_size=2000,
        levels=(1.2, 0.9),
        speeds=(1.2, 0.8),
    )
    yield arrays_of(TeamCell(training=training, speeds=(1.2, 0.9), episodes=4, dealt=True), folder / "learnt")


def processes(folder: Path) -> Iterator[Parts]:
    """Yield tests of designed and learnt policies on the processes with long-term effects."""
    from fair_envs.baselines.ppo.long_term_training import LongTermTraining
    from fair_envs.reproduction.hu2024.jobs import AGENTS, LearnedCell, ScriptedCell
    from fair_envs.reproduction.hu2024.processes import ENV_IDS

    for world, scripted in AGENTS.items():
        for name in scripted:
            cell = ScriptedCell(world=world, name=name, seed=1, episodes=3, steps=60)
            yield arrays_of(cell, folder / f"{world} {name}")
        training = LongTermTraining(
            env_id=ENV_IDS[world], algorithm="f-ppo", steps=256, lanes=2, n_steps=64, batch_size=64, **SMALL_NET
        )
        yield arrays_of(
            LearnedCell(world=world, training=training, episodes=3, steps=60, most_probable=True), folder / world
        )


def long_term(folder: Path) -> Iterator[Parts]:
    """Yield test episodes behind a shield and without one."""
    from fair_envs.baselines.ppo.long_term_evaluation import evaluate_long_term
    from fair_envs.baselines.ppo.long_term_training import LongTermTraining, make_long_term

    for env_id in ("FairLending-v0", "FairAttention-v0", "FairEpidemic-v0"):
        config = LongTermTraining(
            env_id=env_id,
            parameters={"horizon": 50},
            algorithm="f-ppo",
            steps=128,
            lanes=2,
            n_steps=64,
            batch_size=64,
            **SMALL_NET,
        )
        model = make_long_term(config).learn(config.steps)
        found = evaluate_long_term(model, config, episodes=4, seed=TEST_SEEDS)
        yield {name: vars(episodes) for name, episodes in found.items()}


def decisions(folder: Path) -> Iterator[Parts]:
    """Yield tests of simple, single-objective and conditioned policies on decisions."""
    from fair_envs.reproduction.cimpean2025.jobs import (
        SCRIPTED,
        Learner,
        LearnerCell,
        Simple,
        SimpleCell,
        TradeOffCell,
    )
    from fair_envs.reproduction.cimpean2025.published import Setting, World

    worlds: tuple[World, ...] = ("hiring", "fraud")
    for world in worlds:
        short: dict[str, Any] = {"parameters": {"horizon": 30}}
        for name in SCRIPTED[world]:
            simple = SimpleCell(arm=Simple(world, name), seed=0, episodes=3, decisions=50, **short)
            yield arrays_of(simple, folder / f"{world} {name}")
        learner = LearnerCell(arm=Learner(world, "SB3 PPO"), seed=0, steps=2048, episodes=3, **short)
        yield arrays_of(learner, folder / f"{world} ppo")
        setting = Setting(world=world, objectives=("R", "SP", "IF"))
        small = {"first_episodes": 10, "updates": 3, "batch_size": 32, "episodes": 5}
        cell = TradeOffCell(setting=setting, seed=0, steps=1200, episodes=3, training=small, **short)
        yield arrays_of(cell, folder / world)


def twins(folder: Path) -> Iterator[Parts]:
    """Yield pairs of episodes with every way to flip, and counterfactual decisions."""
    rules = fair_envs.make_rules("FairHarvest-v0", agents=4, horizon=40)
    skewed = from_probabilities(lambda seen: softmax(seen.astype(float)[..., :1] * np.arange(8) / 7))
    for append_group in (False, True):
        played = Twins(rules, lanes=3, append_group=append_group)
        for flip in ("each", "all", "protected", "all_none", [1]):
            found = played.run(skewed, episodes=5, seed=3, flip=flip, record_actions=True)
            yield {
                "factual": found.factual.values,
                "counterfactual": found.counterfactual.values,
                "actions": (found.factual_actions, found.counterfactual_actions),
            }
    traffic = fair_envs.make_rules("FairTraffic-v0", cars=6, horizon=40)
    from fair_envs.envs.traffic.policies import ShortestTime

    found = Twins(traffic, lanes=2).run(ShortestTime(traffic), episodes=3, flip="protected")
    yield {"values": found.factual.values, "counterfactual": found.counterfactual.values}
    for env_id, attribute in (("FairHiring-v0", "gender"), ("FairLending-v0", None), ("FairFraud-v0", "continent")):
        people = fair_envs.make_rules(env_id, horizon=40)

        def likely(seen: Any) -> Any:
            chance = 1 / (1 + np.exp(-seen.astype(float).sum(axis=-1, keepdims=True) + 1))
            return np.concatenate([1 - chance, chance], axis=-1)

        gaps = decision_gap(people, likely, attribute=attribute, episodes=5, seed=2, lanes=2)
        yield {name: value for name, value in vars(gaps).items() if isinstance(value, np.ndarray)}
        value = "AS" if attribute == "continent" else None
        pair = twin_decisions(
            people, from_probabilities(likely), attribute=attribute, value=value, episodes=5, seed=2, lanes=2
        )
        yield {"factual": vars(pair.factual), "counterfactual": vars(pair.counterfactual)}


def softmax(logits: Any) -> Any:
    """Return probabilities."""
    powers = np.exp(logits)
    return powers / powers.sum(axis=-1, keepdims=True)


def systems(folder: Path) -> Iterator[Parts]:
    """Yield the episodes of every id with somebody who plays at random."""
    from fair_envs.experiments.systems import SystemCell

    for env_id in fair_envs.TABLE:
        parameters = {} if env_id == "FairCollege-v0" else {"horizon": 30}
        cell = SystemCell(env_id=env_id, parameters=parameters, seed=5, episodes=3)
        yield arrays_of(cell, folder / env_id)


def parallel(folder: Path) -> Iterator[Parts]:
    """Yield the episodes of a PettingZoo environment whose agents were given attributes."""
    from fair_envs.envs.traffic import parallel_env
    from fair_envs.evaluation.systems import play_parallel

    cars = {f"agent_{k}": {"red": k % 2, "large": int(k < 3)} for k in range(6)}
    env, other = (parallel_env(cars=6, horizon=20) for _ in range(2))
    played = play_parallel(
        env, cars, lambda agent, seen, luck: int(luck * 9), sensitive=["red"], episodes=4, without={"red": other}
    )
    assert isinstance(played.returns, Returns)
    yield {"values": played.returns.values, "without": played.without["red"].values}


def juries(folder: Path) -> Iterator[Parts]:
    """Yield what scripted juries decide."""
    import gymnasium as gym

    from fair_envs.envs.college.policies import Jury, NaiveJury, RobustJury
    from tests.envs.admissions import admissions

    for kind in (Jury, NaiveJury, RobustJury):
        env: Any = gym.make_vec("FairCollege-v0", num_envs=3, horizon=20)
        yield vars(admissions(env, kind(env), rounds=15))


def films(folder: Path) -> Iterator[Parts]:
    """Yield pictures of an episode of random play."""
    from fair_envs.cli import playing
    from fair_envs.evaluation import RandomPolicy

    rules = fair_envs.make_rules("FairHarvest-v0", horizon=5)
    yield {"frames": list(playing.pictures(rules, RandomPolicy(rules), seed=3, count=12))}


EVALUATIONS: Mapping[str, Callable[[Path], Iterator[Parts]]] = {
    f"evaluation: {kind.__name__}": kind
    for kind in (agents, teams, processes, long_term, decisions, twins, systems, parallel, juries, films)
}
