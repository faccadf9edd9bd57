"""The decisions of a policy as a table, for pandas and every other library that reads tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.assessment.played import AnyWorld, Part, System, prepared
from fair_envs.assessment.recording import WHO, people_in
from fair_envs.core import check_count, check_seeds
from fair_envs.core.interactions import MISSING, PREFIX, FairSpec, named_columns
from fair_envs.evaluation import Policy, Transition, rollout
from fair_envs.evaluation.policy import Act
from fair_envs.metrics.history import LATE
from fair_envs.support.aliases import Columns, Flags, Floats32, Ints, OnProgress
from fair_envs.support.files import replacing
from fair_envs.support.parameters import checked
from fair_envs.support.seeds import TEST_SEEDS

Labels = Literal["revealed", "all"]
"""Whether a table has only the labels that the environment reveals, or also those of everyone."""

LANES = 32  # episodes that are played in parallel; what is exported does not depend on it
READ = [PREFIX + name for name in (*WHO, "features", "action", "feedback", "outcome", *LATE)]


def export(
    env: Any,
    policy: Policy | Act | Any,
    *,
    episodes: int = 64,
    seed: int = TEST_SEEDS,
    parameters: Mapping[str, Any] | None = None,
    labels: Labels = "revealed",
    deterministic: bool = False,
    each: OnProgress = lambda: None,
) -> Any:
    """Return the decisions of a policy as a pandas DataFrame: a row for each person that a step affects.

    The episodes are those that `fair_envs.evaluate` plays with the same arguments. The columns have the names of
    `fair_envs.metrics.History.frame`:

    | column | meaning |
    |---|---|
    | `episode`, `step` | numbers from 0 on; episode e has the seed `seed + e` |
    | `individual` | the person's number in the episode |
    | `sensitive[NAME]`, `legitimate[NAME]` | the person's attributes and legitimate factors, by the names of values |
    | `group` | the name of the person's group |
    | `feature[NAME]` | the person's features, as the decision-maker saw them |
    | `probability[A]` | the probability of each decision about the person, if the policy reports them |
    | `action` | the decision about the person; -1: none in this step |
    | `chosen`, `chosen[K]` | what the agent, or the decision-maker, chose in this step; left out if it is `action` |
    | `feedback` | the label (correct decision); -1: not revealed by the end of the episode |
    | `label` | everyone's label, only with `labels="all"` |
    | `outcome` | what the step was worth to the person |
    | `reward` | the reward of the agent, or of the decision-maker for this step |
    | `ended` | whether the episode ended with this step |

    Rewards are the environment's own, before wrappers change them.

    Args:
        env: The environment, see `fair_envs.evaluate`.
        policy: The policy, see `fair_envs.evaluate`.
        episodes: Number of episodes; episode e is the environment's first one with the seed ``seed + e``.
        seed: Seed of the first episode.
        parameters: Parameters of an environment that is given by its id; they override those of the task, or of the
            training if the policy is a run.
        labels: ``"revealed"``: labels that the environment reveals. ``"all"``: also the labels of everyone, which
            `fair_envs.evaluate` reads and policies do not receive.
        deterministic: Whether Stable-Baselines3 models take their most likely actions.
        each: Called after each episode.

    Raises:
        ValueError: An argument is outside its range, or the labels of everyone are not known.
        TypeError: The environment or the policy is of another kind.
        ImportError: pandas is not installed.

    Example:
        >>> from fair_envs.assessment import export
        >>> table = export("FairLending-v0", "max-reward", episodes=2, parameters={"horizon": 50})
        >>> len(table), sorted(set(table["sensitive[group]"]))
        (100, ['advantaged', 'disadvantaged'])
    """
    check_count("episodes", episodes)
    seeds = check_seeds(seed, episodes)
    system, player = prepared(env, policy, parameters=parameters, deterministic=deterministic)
    check_labels(system, labels)
    return table_of_people(system, player, seeds, labels=labels, each=each)


def table_of_people(
    system: System, policy: Policy, seeds: NDArray[np.uint64], *, labels: Labels, each: OnProgress
) -> Any:
    """Return the table of `export` for an episode with each seed."""
    import pandas

    tables = []
    for part in system.parts(seeds, policy, lanes=min(LANES, len(seeds))):
        tables.append(_table(system, policy, part, labels=labels))
        for _ in range(part.episodes):
            each()
    return pandas.concat(tables, ignore_index=True)


def save_table(table: Any, path: Path, *, form: str = "csv") -> None:
    """Write a table completely or not at all: ``"parquet"``, or ``"csv"``, compressed if the name ends with ``.gz``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        if form == "parquet":
            table.to_parquet(part, engine="pyarrow", index=False)
        else:
            table.to_csv(part, index=False, compression="gzip" if path.suffix == ".gz" else None)


def knows_labels(system: System) -> bool:
    """Return whether the label of everyone is known: the environment reveals it at once, or its rules know it."""
    spec = system.seen.spec
    return spec.feedback == "full" and not spec.only_accepted


def check_labels(system: System, labels: Labels) -> None:
    """Raise ValueError for an unknown choice, and for the labels of everyone if they are not known."""
    checked("labels", labels, Labels)
    if labels == "all" and not knows_labels(system):
        raise ValueError(f"labels must be 'revealed' for {system.env_id}, whose other labels are not known, got 'all'")


def decision_probabilities(world: AnyWorld, spec: FairSpec) -> Floats32 | None:
    """Return the probability of each decision about each person, shape (B, M, A); None: they are not reported.

    The action of an agent, or of a decision-maker who chooses differently, need not be a decision about a person.
    """
    given, shape = world.probabilities, (world.count, spec.individuals, spec.actions)
    if given is None or given.shape[-1] != spec.actions or given.size != np.prod(shape):
        return None
    return np.array(given, np.float32).reshape(shape)


def _table(system: System, policy: Policy, part: Part, *, labels: Labels) -> Any:
    """Return the rows of some episodes, each after the other."""
    import pandas

    spec = system.rules.spec
    known: Ints = np.full((part.world.count, spec.individuals), MISSING)
    rows, arrivals = [], []
    for time, step in enumerate(rollout(part.world, policy, episodes=part.episodes)):
        people = people_in(step.columns, READ)
        if spec.same_individuals:  # agents that have left have no number
            people["individual"] = known = np.where(people["individual"] < 0, known, people["individual"])
        rows.append(_rows(system, part.world, step, people, time=time, labels=labels))
        arrivals.append(_late(people, step.active, time=time))
    columns, late = _joined(rows), _joined(arrivals)
    order = np.argsort(columns["episode"], kind="stable")
    table = pandas.DataFrame(named_columns(spec, {name: column[order] for name, column in columns.items()}))
    if late["episode"].size:
        _reveal(table, pandas.DataFrame(late), delay=max(spec.delay, 1))
    table["episode"] += part.first
    return table


def _joined(parts: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([own[name] for own in parts]) for name in parts[0]}


def _rows(
    system: System, world: AnyWorld, step: Transition, people: Columns, *, time: int, labels: Labels
) -> dict[str, NDArray[Any]]:
    """Return the columns of the people in a step, shape (n, ...); their episodes count from 0."""
    present = step.active[:, np.newaxis] & (people["group"] >= 0)
    lanes, individuals = present.shape
    own: dict[str, NDArray[Any]] = {"episode": np.arange(lanes)[:, np.newaxis], "step": np.full((lanes, 1), time)}
    own |= {name: people[name] for name in ("individual", "sensitive", "legitimate", "group", "features")}
    probabilities = decision_probabilities(world, system.rules.spec)
    own |= {} if probabilities is None else {"action_probs": probabilities}
    own |= {"action": people["action"], **_chosen(system, step, individuals), "feedback": people["feedback"]}
    if labels == "all":
        own["label"] = people["feedback"] if world.labels is None else world.labels.reshape(present.shape)
    own |= {"outcome": people["outcome"], "reward": step.reward, "ended": step.ended[:, np.newaxis]}
    return {name: np.broadcast_to(column, (*present.shape, *column.shape[2:]))[present] for name, column in own.items()}


def _chosen(system: System, step: Transition, individuals: int) -> dict[str, NDArray[Any]]:
    """Return what was chosen, shape (B, M), or (B, 1) by a decision-maker; none if it is the decision about a person.

    Under focal control, what the other agents chose is not known: there is none either.
    """
    rules, env = system.rules, system.env
    space = system.action_space
    if rules.spec.one_person and isinstance(space, gym.spaces.Discrete) and space.n == rules.spec.actions:
        return {}
    if env is not None and getattr(env.unwrapped, "focal_agent", None) is not None:
        return {}
    own = np.asarray(step.action).reshape(len(step.active), individuals if rules.multi_agent else 1, -1)
    entries = own.shape[-1]
    return {f"chosen[{k}]" if entries > 1 else "chosen": own[..., k] for k in range(entries)}


def _late(people: Columns, active: Flags, *, time: int) -> Columns:
    """Return the labels of earlier decisions that arrived in a step."""
    who, what, count = (people[name] for name in LATE)
    lane, place = np.nonzero(np.arange(who.shape[1]) < np.where(active[:, np.newaxis], count, 0))
    own = {"episode": lane, "step": np.full(len(lane), time)}
    return {**own, "individual": who[lane, place], "feedback": what[lane, place]}


def _reveal(table: Any, late: Any, *, delay: int) -> None:
    """Write labels that arrived later to the decisions that they are about, in place, see `FairSpec.delay`."""
    import pandas

    made = table.loc[table["action"] >= 0, ["episode", "individual", "step"]].reset_index(names="row")
    for wait in dict.fromkeys((delay, 1)):
        due = made.assign(step=made["step"] + wait)
        parts = (part.sort_values("step", kind="stable") for part in (late, due))
        found = pandas.merge_asof(*parts, on="step", by=["episode", "individual"])
        known = found.dropna()
        table.loc[known["row"].astype(np.int64), "feedback"] = known["feedback"].to_numpy()
        late = found[found["row"].isna()].drop(columns="row")
