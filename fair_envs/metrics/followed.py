"""Measures made from notions: on histories of decisions, on returns, and on who succeeds in a team."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.disparity import ReturnGap
from fair_envs.metrics.gaps import BY_NAME, Gaps, Notions
from fair_envs.metrics.group import Groups
from fair_envs.metrics.history import History, Memory, SlidingWindow
from fair_envs.metrics.measures import Measure, column_names, of_people
from fair_envs.metrics.notions import canonical_name
from fair_envs.metrics.rates import RATES, Rate, RateMeasure, rate_named
from fair_envs.metrics.team import team_fairness
from fair_envs.support.aliases import Columns, Flags, Floats
from fair_envs.support.parameters import PositiveInt, checked

WINDOW = 500
"""Number of decisions, or steps, that count by default."""

NAMES: tuple[str, ...] = (*RATES, *(name for name in BY_NAME if name not in RATES))
"""The notions that `measure_named` knows."""


class NotionMeasure(Measure):
    """A notion on a history of decisions, as a measure: 0 is fair, NaN if undefined.

    Args:
        lanes: Number of lanes (B).
        notion: A name, an alias, or a notion such as `fair_envs.metrics.GroupNotion`.
        spec: The description of the environment.
        history: How long decisions count; None: the last 500 decisions.
        groups: The groups that a notion given by name compares, see `fair_envs.metrics.group.group_members`.
        keeps: Whether decisions of earlier episodes count too.

    Attributes:
        history: The decisions.

    Raises:
        ValueError: The notion is unknown, or needs what the environment does not report.
    """

    def __init__(
        self,
        lanes: int,
        notion: Notions,
        *,
        spec: FairSpec,
        history: Memory | None = None,
        groups: Groups = None,
        keeps: bool = True,
    ) -> None:
        super().__init__(lanes)
        self._gaps = Gaps(notion, spec, groups=groups)
        if len(self._gaps.notions) != 1:
            raise ValueError(f"notion must be one notion, got {notion!r}")
        memory = SlidingWindow(WINDOW) if history is None else history
        self._gaps.check_memory(memory)
        self.keeps, self.name = checked("keeps", keeps, bool), self._gaps.names[0]
        definition = getattr(self._gaps.notions[0], "definition", None)
        self.conditional = bool(getattr(definition, "conditional", False))
        self.least, self.worst = float(self._gaps.least[0]), float(self._gaps.worst[0])
        self.needs_action_probs = getattr(self._gaps.notions[0], "needs_action_probs", False)
        self.history = History(memory, spec, lanes=self.lanes, keep=keeps)

    def measured(self, info: Columns) -> Floats:
        """Add the decisions of a step and return the gap after it."""
        self.history.add(info)
        gap: Floats = self._gaps(self.history, last=self.value[:, np.newaxis])[:, 0]
        return gap

    def forget(self, mask: Flags) -> None:
        """Start an episode in the masked lanes."""
        self.history.begin(mask)

    def snapshot(self) -> list[NDArray[Any]]:
        """Return the decisions and the values."""
        kept = self.history.snapshot()
        return [self.value.copy(), self.before.copy(), *(kept[name] for name in sorted(kept))]

    def restore(self, snapshot: Sequence[NDArray[Any]]) -> None:
        """Restore a snapshot of a measure with the same arguments."""
        value, before, *kept = snapshot
        names: Mapping[str, Any] = self.history.snapshot()
        self.history.restore(dict(zip(sorted(names), kept, strict=True)))
        self.value, self.before = value.copy(), before.copy()


class TeamMeasure(Measure):
    """How much who succeeds depends on the agent's identity, over the last episodes: 0 is fair, in bits.

    It is the deficit of team fairness, see `fair_envs.metrics.team`, corrected for the number of episodes if possible.
    An agent succeeds in an episode if its decision was 1 in any step, such as a capture. All lanes have one value,
    because one team plays in all of them. It is 0 also if the agents never succeed: read the success beside it.

    Args:
        lanes: Number of lanes (B).
        agents: Number of agents (N).
        episodes: Number of recent episodes that count, over all lanes.

    Attributes:
        succeeded: Which agents succeeded in each of the last episodes, shape (episodes, agents).
    """

    name = "team fairness"
    keeps = True

    def __init__(self, lanes: int, *, agents: int, episodes: int = 100) -> None:
        super().__init__(lanes)
        self._names = column_names("action")
        self._agents, room = checked("agents", agents, PositiveInt), checked("episodes", episodes, PositiveInt)
        self._now = np.zeros((self.lanes, self._agents), bool)
        self._ring = np.zeros((room, self._agents), bool)
        self._count = 0

    @property
    def succeeded(self) -> Flags:
        """Which agents succeeded in each of the last episodes, shape (episodes, agents)."""
        return self._ring[: min(self._count, len(self._ring))]

    def measured(self, info: Columns) -> Floats:
        """Add a step; the value changes when an episode ends."""
        if self.ended is None:
            raise ValueError("ended must be given to a measure of whole episodes, got none")
        (action,) = self._reported(info)
        self._now |= of_people("fair_action", action) == 1
        if not np.count_nonzero(self.ended):
            return self.value.copy()
        for lane in np.flatnonzero(self.ended):
            self._ring[self._count % len(self._ring)] = self._now[lane]
            self._count += 1
        self._now[self.ended] = False
        found = team_fairness(self.succeeded, permutations=1)
        deficit = found.deficit if np.isnan(found.corrected) else max(0.0, found.corrected)
        return np.full(self.lanes, deficit)

    def forget(self, mask: Flags) -> None:
        """Forget who has succeeded in episodes that did not end."""
        self._now[mask] = False


def measure_named(
    name: str | Rate, lanes: int, *, spec: FairSpec, of_agents: bool, groups: Groups = None, window: int | None = WINDOW
) -> Measure:
    """Return the measure of a notion or of a rate.

    A notion that compares one rate is a `RateMeasure`; parity of agents' returns within legitimate factors is a
    `ReturnGap`; all other notions are measured on a history of decisions.

    Args:
        name: Name or alias of a notion, such as ``"equal_opportunity"`` or ``"SP"``, or a `Rate`.
        lanes: Number of lanes (B).
        spec: The description of the environment.
        of_agents: Whether the agents are themselves affected and earn rewards; demographic parity then compares
            returns.
        groups: The compared groups, see `fair_envs.metrics.group.group_members`; None: those of ``fair_group``.
        window: Number of recent steps that count; None: the whole episode.

    Raises:
        ValueError: The notion is unknown, or the environment does not report what it needs; the message says what.
    """
    if isinstance(name, Rate):
        name.check(spec, of_agents=of_agents)
        return RateMeasure(lanes, name, spec=spec, groups=groups, window=window)
    found = canonical_name("measure", name, NAMES)
    if of_agents and found == "conditional_parity":
        if groups is not None:
            raise ValueError(
                "groups must be None for conditional_parity of agents' returns, which compares fair_group, got "
                f"{groups}"
            )
        return ReturnGap(lanes, spec=spec, conditional=True)
    if found in RATES:
        rate = rate_named(found, of_agents=of_agents)
        rate.check(spec, of_agents=of_agents)
        return RateMeasure(lanes, rate, spec=spec, groups=groups, window=window, name=found)
    history = None if window is None else SlidingWindow(window)
    everything = tuple(spec.sensitive) if groups is None else groups
    by_group = everything if found not in ("individual_fairness", "consistency") else None
    return NotionMeasure(lanes, found, spec=spec, history=history, groups=by_group)


__all__ = ["NAMES", "NotionMeasure", "ReturnGap", "TeamMeasure", "measure_named"]
