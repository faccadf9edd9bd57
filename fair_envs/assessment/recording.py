"""Records episodes: what each individual got, and the columns from which measures are computed again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.assessment.played import AnyWorld, System
from fair_envs.assessment.pooling import People
from fair_envs.core.interactions import PREFIX, FairSpec
from fair_envs.evaluation import Policy, rollout
from fair_envs.metrics.group import Groups
from fair_envs.metrics.measures import Measure
from fair_envs.metrics.rates import Rate, Step, columns_of_people, group_codes, groups_by_attributes
from fair_envs.support.aliases import Flags, Floats, Ints

WHO = ("individual", "group", "sensitive", "legitimate")
MEMBERSHIPS = ("fair_group", "fair_sensitive")


class Kept(NamedTuple):
    """One step of a batch, as measures read it."""

    info: Mapping[str, NDArray[Any]]
    reward: Floats
    ended: Flags
    active: Flags


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Some episodes, one in each lane.

    Attributes:
        people: The individuals; their episodes count from 0 in this batch.
        steps: The steps, with the columns that measures read.
        person: The individual at each place of the record, shape (steps, B, M); -1: nobody.
        totals: Benefit and demand of each group in the first rate, shape (steps, B, groups, 2).
        rewards: Each agent's return, shape (B, agents).
        lengths: The number of steps of each episode, shape (B,).
        success: Whether a team has succeeded, shape (B,).
        episodes: The number of lanes that have played; the others are empty.
    """

    people: People
    steps: Sequence[Kept]
    person: Ints
    totals: Floats
    rewards: Floats
    lengths: Ints
    success: Flags
    episodes: int

    def follow(self, measure: Measure, *, orders: Ints | None = None) -> "list[Followed]":
        """Return a measure's values in these episodes, for each order; it continues from earlier batches.

        Args:
            measure: The measure, with as many lanes as the batch for each order. It is restarted at the end.
            orders: Orders of the individuals, shape (orders, individuals); each individual gets the group memberships
                of the one in its place. None: the individuals keep their own.
        """
        lanes, copies = len(self.lengths), 1 if orders is None else len(orders)
        sums, counts, last = np.zeros(copies * lanes), np.zeros(copies * lanes), np.full(copies * lanes, np.nan)
        for time, kept in enumerate(self.steps):
            step = kept if orders is None else self._regrouped(time, orders, reads=measure.reads)
            value = measure.update(step.info, step.reward, ended=step.ended)
            known = step.active & ~np.isnan(value)
            sums[known] += value[known]
            counts[known] += 1
            last[known] = value[known]
        final = measure.value.copy()
        measure.restart(np.ones(measure.lanes, bool))
        means = np.divide(sums, counts, out=np.full(copies * lanes, np.nan), where=counts > 0)
        parts = (one.reshape(copies, lanes)[:, : self.episodes] for one in (means, last, final))
        return [Followed(*own) for own in zip(*parts, strict=True)]

    def _regrouped(self, time: int, orders: Ints, *, reads: Sequence[str]) -> Kept:
        """Return a step in which individuals are in the groups of others, the lanes of each order after the other."""
        step, copies = self.steps[time], len(orders)
        info = {key: np.concatenate([step.info[key]] * copies) for key in reads or step.info if key in step.info}
        known, places = self.person[time] >= 0, orders[:, np.maximum(self.person[time], 0)]
        for key, groups in zip(MEMBERSHIPS, (self.people.group_code, self.people.sensitive), strict=True):
            if key in info:
                own = step.info[key]
                column = own.reshape(*known.shape, *groups.shape[1:])
                mask = known.reshape(*known.shape, *(1,) * (column.ndim - known.ndim))
                info[key] = np.where(mask, groups[places], column).reshape(info[key].shape)
        others = (np.concatenate([one] * copies) for one in (step.reward, step.ended, step.active))
        return Kept(info, *others)


class Followed(NamedTuple):
    """A measure's values in the episodes of a batch, shape (B,) each; NaN where it is undefined."""

    means: Floats  # over the steps
    last: Floats  # at the end of the episode
    final: Floats  # at the end of the batch


def people_in(info: Mapping[str, Any], keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return columns of ``info`` by name without their prefix, each with an axis of people, shape (B, M, ...).

    Raises:
        ValueError: A key is missing.
    """
    missing = [key for key in keys if key not in info]
    if missing:
        raise ValueError(f"info must have the key {missing[0]!r}, got {sorted(map(str, info))}")
    return columns_of_people({key: np.asarray(info[key]) for key in keys})


class Recorder:
    """Records the steps of a batch.

    Args:
        spec: The description of the record.
        rates: The rates whose parts are summed for each individual.
        groups: The compared groups, see `fair_envs.metrics.group.group_members`; None: those of ``fair_group``.
        keep: The keys of ``info`` that are kept for measures; None: all.
    """

    def __init__(
        self, spec: FairSpec, rates: Sequence[Rate], *, groups: Groups = None, keep: frozenset[str] | None = None
    ) -> None:
        self.spec, self.rates, self._by_attribute = spec, tuple(rates), groups is not None
        self.group_names, self._table = group_codes(spec, groups)
        self._sizes = [len(values) for values in spec.sensitive.values()]
        self._read = [PREFIX + name for name in dict.fromkeys([*WHO, *(c for rate in rates for c in rate.columns)])]
        self._keep = keep
        self._clear()

    def _clear(self) -> None:
        self._steps: list[Kept] = []
        self._rows: list[dict[str, NDArray[Any]]] = []
        self._totals: list[Floats] = []

    def play(self, system: System, policy: Policy, world: AnyWorld, *, episodes: int) -> Batch:
        """Play the first episodes of a world and return them."""
        lanes = world.count
        rewards, lengths = np.zeros((lanes, system.rules.agents(system.rules.params))), np.zeros(lanes, np.int64)
        self._clear()
        for step in rollout(world, policy, episodes=episodes):
            reward = np.where(step.active[:, np.newaxis], step.reward, 0.0)
            rewards[:, : reward.shape[1]] += reward
            lengths += step.active
            self._add(step.columns, world.labels, Kept({}, step.reward, step.ended, step.active))
        return self._finished(rewards, lengths, world.success, episodes)

    def _add(self, columns: Mapping[str, Any], labels: Ints | None, step: Kept) -> None:
        """Add a step; labels replace the reported ones."""
        info = columns
        if labels is not None:
            own = np.asarray(columns["fair_feedback"])
            info = {**columns, "fair_feedback": labels.reshape(own.shape)}
        people = people_in(info, self._read)
        group_code, group = people["group"], people["group"]
        if self._by_attribute:
            group = groups_by_attributes(people["sensitive"], self._table, sizes=self._sizes)
        given = Step(people, step.reward, step.ended)
        parts = np.zeros((*group.shape, len(self.rates), 2))
        for place, rate in enumerate(self.rates):
            for part, values in enumerate(rate.parts(given)):
                parts[..., place, part] = values
        parts[~step.active] = 0
        present = step.active[:, np.newaxis] & (group_code >= 0)
        kept = {key: np.array(info[key]) for key in info if self._keep is None or key in self._keep}
        self._steps.append(step._replace(info=kept))
        self._totals.append(self._grouped(np.where(present, group, -1), parts[..., 0, :]))
        row = {name: np.array(people[name]) for name in WHO}
        self._rows.append({**row, "task_group": group, "present": present, "parts": parts})
        if self.spec.same_individuals and len(self._rows) > 1:
            self._merge()

    def _merge(self) -> None:
        """Add the last step to the sums of the same individuals, whose groups do not change."""
        first, last = self._rows[0], self._rows.pop()
        first["parts"] += last["parts"]
        new = last["present"] & ~first["present"]
        for name in (*WHO, "task_group"):
            first[name][new] = last[name][new]
        first["present"] |= new

    def _grouped(self, group: Ints, parts: Floats) -> Floats:
        count = len(self.group_names)
        found = [(np.where((group == g)[..., np.newaxis], parts, 0)).sum(axis=1) for g in range(count)]
        return np.stack(found, axis=1)

    def _finished(self, rewards: Floats, lengths: Ints, success: Flags, episodes: int) -> Batch:
        """Return the batch, and forget its steps."""
        rows: dict[str, NDArray[Any]] = {name: np.stack([row[name] for row in self._rows]) for name in self._rows[0]}
        times, (lanes, places) = len(self._steps), rows["present"].shape[1:]
        where = np.nonzero(rows["present"].transpose(1, 0, 2).reshape(lanes, -1))  # lanes first
        size = len(self._rows) * places
        flat = {name: np.moveaxis(one, 0, 1).reshape(lanes, size, *one.shape[3:]) for name, one in rows.items()}
        lane, own = where[0], {name: column[where] for name, column in flat.items()}
        identity = own["individual"]
        if self.spec.same_individuals:
            identity = where[1]
        unknown = identity < 0
        identity = np.where(unknown, identity.max(initial=0) + 1 + np.arange(len(identity)), identity)
        key = lane * (identity.max(initial=0) + 1) + identity
        _, first, index = np.unique(key, return_index=True, return_inverse=True)
        sums = np.zeros((len(first), len(self.rates) * 2))
        np.add.at(sums, index, own["parts"].reshape(len(index), -1))
        place = np.full((lanes, size), -1)
        place[where] = index
        person: Ints = place.reshape(lanes, -1, places).swapaxes(0, 1)  # one step if the individuals stay the same
        if len(person) < times:
            person = np.broadcast_to(person, (times, lanes, places))
        people = People(
            episode=lane[first],
            group=own["task_group"][first],
            group_code=own["group"][first],
            sensitive=own["sensitive"][first],
            legitimate=own["legitimate"][first],
            sums=sums.reshape(len(first), len(self.rates), 2),
        )
        batch = Batch(
            people=people,
            steps=self._steps,
            person=person,
            totals=np.stack(self._totals),
            rewards=rewards,
            lengths=lengths,
            success=success,
            episodes=episodes,
        )
        self._clear()
        return batch
