"""The fairness of each episode, reported when it ends."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics.returns import Form, Group, Returns, conditional_parity, demographic_parity
from fair_envs.support.aliases import Columns, Floats
from fair_envs.wrappers.transform import Batch, Setting, Transform, need_agents, strata
from fair_envs.wrappers.wrapper import Wrapper

FORMS: tuple[Form, ...] = ("difference", "ratio")


class Recorder(Transform):
    """The transform of `RecordFairness`, which describes the arguments."""

    personal = ("fair_episode_return",)
    once = "RecordFairness reports on only one set of rewards"
    wrapper = "RecordFairness"

    def __init__(self, *, sensitive: Group | None = None) -> None:
        self.sensitive = sensitive

    def bind(self, setting: Setting) -> None:
        """Set all returns to 0."""
        instead = "Add info to a fair_envs.metrics.History, or use FairnessObjectives, whose info has fair_gaps"
        need_agents(setting, "RecordFairness", instead=instead)
        self._spec = setting.spec
        self._group: Group = self._default_group() if self.sensitive is None else self.sensitive
        names = (self._group,) if isinstance(self._group, str) else tuple(self._group)
        for name in names:
            if name not in self._spec.sensitive:
                raise ValueError(f"sensitive must be among {', '.join(self._spec.sensitive)}, got {name!r}")
        self._return = np.zeros(setting.shape)
        self._length = np.zeros(setting.lanes.count, np.int64)

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
        added = self._blank(len(batch.done))
        if batch.done.any():
            for name, column in self._reported(batch).items():
                added[name][batch.done] = column
        return batch._replace(added=added)

    def _blank(self, lanes: int) -> dict[str, NDArray[Any]]:
        """Return the columns of lanes whose episode is still active."""
        count = int(np.prod([len(codes) for codes in self._spec.legitimate.values()], dtype=int))
        shapes = {"dp": (lanes,), "csp": (lanes, count)}
        added: dict[str, NDArray[Any]] = {
            "fair_episode_over": np.zeros(lanes, np.int8),
            "fair_episode_length": np.zeros(lanes, np.int64),
            "fair_episode_return": np.zeros((lanes, self._return.shape[1])),
        }
        for notion, shape in shapes.items() if self._spec.legitimate else [("dp", shapes["dp"])]:
            added |= {f"fair_episode_{notion}_{form}": np.zeros(shape) for form in FORMS}
            added[f"fair_episode_{notion}_defined"] = np.zeros(shape, np.int8)
        return added

    def _reported(self, batch: Batch) -> Mapping[str, Any]:
        """Return the columns of the lanes that are done."""
        done = batch.done
        stratum, count = strata(self._spec, batch.facts)
        codes = batch.facts["sensitive"][done]
        attributes = {name: codes[..., i] for i, name in enumerate(self._spec.sensitive)}
        returns = Returns(self._return[done], attributes={**attributes, "stratum": stratum[done]})
        reported: dict[str, Any] = {
            "fair_episode_over": 1,
            "fair_episode_length": self._length[done],
            "fair_episode_return": self._return[done],
        }
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
    """Adds the agents' returns and their differences between groups to ``info`` at the end of each episode.

    | key                                            | dtype, shape      | meaning                                  |
    |------------------------------------------------|-------------------|------------------------------------------|
    | `fair_episode_over`                            | int8 ()           | 1: the episode ended; 0: all below are 0 |
    | `fair_episode_length`                          | int64 ()          | number of steps                          |
    | `fair_episode_return`                          | float64 (agents,) | each agent's return                      |
    | `fair_episode_dp_difference`, `..._dp_ratio`   | float64 ()        | demographic parity, 0 is parity          |
    | `fair_episode_dp_defined`                      | int8 ()           | 0: one of the groups is empty            |
    | `fair_episode_csp_difference`, `..._csp_ratio` | float64 (strata,) | the same within each stratum             |
    | `fair_episode_csp_defined`                     | int8 (strata,)    | 0: one of the groups is empty there      |

    The forms (difference and ratio) are those of `fair_envs.metrics.returns`; positive values mean that agents without
    the attribute are better off. A stratum is a combination of values of the legitimate factors; without such a factor,
    the last two rows are missing. In PettingZoo, each agent's info has its own return. In Stable-Baselines3, the rows'
    infos have the keys at the end of an episode.

    The wrapper records the rewards at its position: directly on the environment, the original rewards; above a wrapper
    that changes rewards, the changed ones.

    Args:
        env: The environment, with any interface.
        sensitive: The group with the attribute: the name of a two-valued attribute of ``fair_spec.sensitive``, or a
            mapping of attributes to the codes of the group's members. The first attribute by default.
    """

    def __init__(self, env: Any, *, sensitive: Group | None = None) -> None:
        super().__init__(env, Recorder(sensitive=sensitive))


def _measured(notion: str, values: Mapping[str, Floats]) -> Columns:
    """Return the columns of a notion, 0 where it is undefined, and the mask of defined entries."""
    defined = ~np.isnan(next(iter(values.values())))
    reported: dict[str, NDArray[Any]] = {
        f"fair_episode_{notion}_{form}": np.where(defined, column, 0) for form, column in values.items()
    }
    return {**reported, f"fair_episode_{notion}_defined": defined.astype(np.int8)}
