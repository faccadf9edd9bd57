"""The fairness of each episode, reported when it ends."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics.disparity import strata_of
from fair_envs.metrics.group import Groups
from fair_envs.metrics.history import History
from fair_envs.metrics.returns import Form, Group, Returns, conditional_parity, demographic_parity
from fair_envs.support.aliases import Columns, Flags, Floats
from fair_envs.wrappers.following import Followed, Measured
from fair_envs.wrappers.transform import Batch, Setting, Transform
from fair_envs.wrappers.wrapper import Wrapper

OF_PEOPLE = "outcome_parity"
"""The measure of people about whom a decision-maker decides, if none is given; every environment has it."""

FORMS: tuple[Form, ...] = ("difference", "ratio")


class Recorder(Transform):
    """The transform of `RecordFairness`, which describes the arguments."""

    personal = ("fair_episode_return",)
    once = "RecordFairness reports on only one set of rewards"
    wrapper = "RecordFairness"

    def __init__(
        self,
        *,
        sensitive: Group | None = None,
        measures: Measured | Sequence[Measured] | None = None,
        groups: Groups = None,
    ) -> None:
        self.sensitive = sensitive
        self._groups = groups
        self._followed = None if measures is None else Followed(measures, groups=groups)

    def bind(self, setting: Setting) -> None:
        """Set all returns to 0."""
        self._spec, lanes = setting.spec, setting.lanes.count
        self._of_agents = setting.rules.multi_agent and setting.spec.same_individuals
        if self._followed is None and not self._of_agents:
            self._followed = Followed(OF_PEOPLE, groups=self._groups)
        elif self._followed is None and self._groups is not None:
            raise ValueError(f"groups needs measures, got groups={self._groups!r}")
        if self._followed is not None:
            self._followed.bind(setting)
            self._sums: Floats = np.zeros((2, lanes, self._followed.count))  # of defined values, and their number
        self._return = np.zeros(setting.shape)
        self._length = np.zeros(lanes, np.int64)
        if self._of_agents:
            self._choose_group()
        elif self.sensitive is not None:
            raise ValueError(f"sensitive must be left out if no agents earn rewards, got {self.sensitive!r}")

    @property
    def histories(self) -> tuple[History, ...]:  # type: ignore[override]
        """The histories of decisions that measures keep."""
        return () if self._followed is None else self._followed.histories

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures, in the order of their columns."""
        return () if self._followed is None else self._followed.names

    def _choose_group(self) -> None:
        self._group: Group = self._default_group() if self.sensitive is None else self.sensitive
        names = (self._group,) if isinstance(self._group, str) else tuple(self._group)
        for name in names:
            if name not in self._spec.sensitive:
                raise ValueError(f"sensitive must be among {', '.join(self._spec.sensitive)}, got {name!r}")

    def _default_group(self) -> Group:
        """Return the first attribute with two values, or else who has the last value of the first attribute."""
        sizes = {name: len(values) for name, values in self._spec.sensitive.items()}
        name = self._spec.default_attribute(
            chosen_with="sensitive='ATTRIBUTE' or sensitive={'ATTRIBUTE': code}",
            preferred=[name for name, size in sizes.items() if size == 2],
        )
        return name if sizes[name] == 2 else {name: sizes[name] - 1}

    def __call__(self, batch: Batch) -> Batch:
        """Add up the rewards, and report on the episodes that ended."""
        for total in (self._return, self._length):
            total[batch.first] = 0
        self._return[batch.decided] += batch.reward[batch.decided]
        self._length[batch.decided] += 1
        final = self._follow(batch)
        added = self._blank(len(batch.done))
        if batch.done.any():
            for name, column in {**self._reported(batch), **self._of_measures(final, batch.done)}.items():
                added[name][batch.done] = column
        return batch._replace(added=added)

    def _follow(self, batch: Batch) -> Floats:
        """Update the measures and return their values, shape (B, measures)."""
        if self._followed is None:
            return np.zeros((len(batch.done), 0))
        self._sums[:, batch.first] = 0
        values = self._followed(batch)
        known = ~np.isnan(values) & batch.decided[:, np.newaxis]
        self._sums += np.stack([np.where(known, values, 0.0), known])
        return values

    def _of_measures(self, values: Floats, done: Flags) -> dict[str, Any]:
        """Return the columns of the measures in lanes that are done, 0 where they are undefined."""
        if self._followed is None:
            return {}
        sums, known = self._sums[:, done]
        mean = np.divide(sums, known, out=np.full_like(sums, np.nan), where=known > 0)
        return {**_of_measure("final", values[done]), **_of_measure("mean", mean)}

    def _blank(self, lanes: int) -> dict[str, NDArray[Any]]:
        """Return the columns of lanes whose episode is still active."""
        count = int(np.prod([len(codes) for codes in self._spec.legitimate.values()], dtype=int))
        shapes = {"dp": (lanes,), "csp": (lanes, count)}
        added: dict[str, NDArray[Any]] = {
            "fair_episode_over": np.zeros(lanes, np.int8),
            "fair_episode_length": np.zeros(lanes, np.int64),
            "fair_episode_return": np.zeros((lanes, self._return.shape[1])),
        }
        kinds = ("dp", "csp") if self._spec.legitimate else ("dp",)
        for notion in kinds if self._of_agents else ():
            shape = shapes[notion]
            added |= {f"fair_episode_{notion}_{form}": np.zeros(shape) for form in FORMS}
            added[f"fair_episode_{notion}_defined"] = np.zeros(shape, np.int8)
        if self._followed is not None:
            undefined = np.full((lanes, self._followed.count), np.nan)
            added |= {**_of_measure("final", undefined), **_of_measure("mean", undefined)}
        return added

    def _reported(self, batch: Batch) -> Mapping[str, Any]:
        """Return the columns of the lanes that are done."""
        done = batch.done
        reported: dict[str, Any] = {
            "fair_episode_over": 1,
            "fair_episode_length": self._length[done],
            "fair_episode_return": self._return[done],
        }
        if not self._of_agents:
            return reported
        stratum, count = strata_of(self._spec, batch.facts["legitimate"])
        codes = batch.facts["sensitive"][done]
        attributes = {name: codes[..., i] for i, name in enumerate(self._spec.sensitive)}
        returns = Returns(self._return[done], attributes={**attributes, "stratum": stratum[done]})
        reported |= _measured(
            "dp", {form: demographic_parity(returns, sensitive=self._group, form=form) for form in FORMS}
        )
        if self._spec.legitimate:
            reported |= _measured("csp", {form: self._conditional(returns, form, count) for form in FORMS})
        return reported

    def _conditional(self, returns: Returns, form: Form, count: int) -> Floats:
        """Return conditional parity in each stratum, shape (episodes, strata); NaN for empty strata."""
        by_label = conditional_parity(returns, sensitive=self._group, legitimate="stratum", form=form)
        undefined = np.full(returns.episodes, np.nan)
        return np.stack([by_label.get(str(k), undefined) for k in range(count)], axis=-1)


class RecordFairness(Wrapper):
    """Adds the agents' returns, their differences between groups, and measures to ``info`` at the end of each episode.

    | key                                            | dtype, shape      | meaning                                  |
    |------------------------------------------------|-------------------|------------------------------------------|
    | `fair_episode_over`                            | int8 ()           | 1: the episode ended; 0: all below are 0 |
    | `fair_episode_length`                          | int64 ()          | number of steps                          |
    | `fair_episode_return`                          | float64 (agents,) | each agent's return                      |
    | `fair_episode_dp_difference`, `..._dp_ratio`   | float64 ()        | demographic parity, 0 is parity          |
    | `fair_episode_dp_defined`                      | int8 ()           | 0: one of the groups is empty            |
    | `fair_episode_csp_difference`, `..._csp_ratio` | float64 (strata,) | the same within each stratum             |
    | `fair_episode_csp_defined`                     | int8 (strata,)    | 0: one of the groups is empty there      |
    | `fair_episode_measure_final`                   | float64 (N,)      | each measure after the last step         |
    | `fair_episode_measure_mean`                    | float64 (N,)      | its mean over the steps where defined    |
    | `fair_episode_measure_final_defined`           | int8 (N,)         | 0: it is undefined after the last step   |
    | `fair_episode_measure_mean_defined`            | int8 (N,)         | 0: it was undefined in every step        |

    The forms (difference and ratio) are those of `fair_envs.metrics.returns`; positive values mean that agents without
    the attribute are better off. A stratum is a combination of values of the legitimate factors; without such a factor,
    the ``csp`` rows are missing. In PettingZoo, each agent's info has its own return. In Stable-Baselines3, the rows'
    infos have the keys at the end of an episode.

    The last rows are there with ``measures``, in the given order. If a decision-maker decides about other people, the
    return is its own, the rows ``dp`` and ``csp`` are missing, and the measure is outcome parity if none is given.

    The wrapper records the rewards at its position: directly on the environment, the original rewards; above a wrapper
    that changes rewards, the changed ones.

    Args:
        env: The environment, with any interface.
        sensitive: The group with the attribute: the name of a two-valued attribute of ``fair_spec.sensitive``, or a
            mapping of attributes to the codes of the group's members. The first attribute by default.
        measures: One or N measures, see ``measure`` of `FairnessPenalty`; None: none for agents, and outcome parity for
            people about whom a decision-maker decides.
        groups: The groups that rates and measures given by name compare, see `fair_envs.metrics.group.group_members`;
            None: those of ``fair_group``, and for the measures of the task those of the task.

    Raises:
        ValueError: An option is invalid, or the environment does not report what a measure needs.
    """

    def __init__(
        self,
        env: Any,
        *,
        sensitive: Group | None = None,
        measures: Measured | Sequence[Measured] | None = None,
        groups: Groups = None,
    ) -> None:
        super().__init__(env, Recorder(sensitive=sensitive, measures=measures, groups=groups))


def _of_measure(name: str, values: Floats) -> dict[str, NDArray[Any]]:
    """Return the columns of a number of each measure, 0 where it is undefined, and the mask of defined entries."""
    defined = ~np.isnan(values)
    key = f"fair_episode_measure_{name}"
    return {key: np.where(defined, values, 0.0), f"{key}_defined": defined.astype(np.int8)}


def _measured(notion: str, values: Mapping[str, Floats]) -> Columns:
    """Return the columns of a notion, 0 where it is undefined, and the mask of defined entries."""
    defined = ~np.isnan(next(iter(values.values())))
    reported: dict[str, NDArray[Any]] = {
        f"fair_episode_{notion}_{form}": np.where(defined, column, 0) for form, column in values.items()
    }
    return {**reported, f"fair_episode_{notion}_defined": defined.astype(np.int8)}
