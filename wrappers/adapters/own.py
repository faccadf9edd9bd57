"""Support for a user's own Gymnasium environments, alone or in a vector environment: the record is in ``info``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from fair_envs.core.interactions import PERSONAL, PREFIX, FairSpec, blank_facts, record
from fair_envs.faces.common import Reported
from fair_envs.support.aliases import Flags, Floats32, Records

PROBS = PREFIX + "action_probs"


@dataclass(frozen=True)
class OwnRules:
    """A replacement for the rules of a user's own environment, with what is known about it.

    Attributes:
        name: The name of its class.
        spec: Its `FairSpec`.
        multi_agent: Always False: there is one decision-maker.
        spaces: The spaces of observations and actions; None: unknown.
        params: Always None: its parameters are arguments of its constructor.
        policies: Scripted policies by name; there are none.
        env_id: The id with which it is registered with Gymnasium; empty: it is unknown.
    """

    name: str
    spec: FairSpec
    multi_agent: bool = False
    spaces: tuple[Space[Any], Space[Any]] | None = None
    params: None = None
    policies: Mapping[str, str] = field(default_factory=dict)
    env_id: str = ""

    def agents(self, params: Any) -> int:
        """Return 1."""
        return 1

    def observation_space(self, params: Any) -> Space[Any]:
        """Return the space of observations."""
        return self._known()[0]

    def action_space(self, params: Any) -> Space[Any]:
        """Return the space of actions."""
        return self._known()[1]

    def observed_features(self, params: Any) -> tuple[str, ...]:
        """Return (): the names of the entries are unknown."""
        return ()

    def _known(self) -> tuple[Space[Any], Space[Any]]:
        if self.spaces is None:
            raise ValueError(f"spaces must be known, those of {self.name} are not")
        return self.spaces


def own_rules(env: Any) -> OwnRules:
    """Return what is known of a user's own Gymnasium environment.

    Raises:
        ValueError: It has no ``fair_spec``.
    """
    spaces = env.observation_space, env.action_space
    return OwnRules(type(env.unwrapped).__name__, fair_spec_of(env), spaces=spaces, env_id=id_of_env(env))


def fair_spec_of(env: Any) -> FairSpec:
    """Return the spec of a Gymnasium environment, as changed by its wrappers.

    Raises:
        ValueError: It has none.
    """
    spec = env.get_wrapper_attr("fair_spec") if env.has_wrapper_attr("fair_spec") else None
    if not isinstance(spec, FairSpec):
        found = "no fair_spec" if spec is None else repr(spec)
        raise ValueError(
            "env must have a FairSpec as fair_spec, which the wrapper Annotate adds (docs/own-environment.md), got "
            f"{id_of_env(env) or type(env.unwrapped).__name__} with {found}"
        )
    return spec


def id_of_env(env: Any) -> str:
    """Return the id with which an environment is registered with Gymnasium; empty if it is unknown."""
    return str(getattr(getattr(env.unwrapped, "spec", None), "id", ""))


@dataclass(frozen=True)
class OwnLanes:
    """A replacement for the lanes of a user's own environment, each with one decision-maker."""

    rules: OwnRules
    count: int = 1
    agents: int = 1


class OwnFace:
    """A replacement for the interface object of a user's own environment, shared by all wrappers on it.

    Args:
        env: The environment; only its name is used.
        spec: Its `FairSpec`.
        lanes: For a vector environment, the number of its environments (B).

    Attributes:
        lanes: The replacement for its lanes.
        interactions: The record of the last step or reset, shape (B,).
        action_probs: The probabilities with which the decisions were made, shape (B, M, A); 0 if unknown.
        reported_spec: The spec of a wrapper that changes the record; None: unchanged.
        histories: The histories of wrappers that keep one, the innermost first.
        focal_agent: Always None, because there is one decision-maker.
    """

    reported_spec: FairSpec | None = None
    histories: tuple[Any, ...] = ()
    focal_agent: None = None

    def __init__(self, env: Any, spec: FairSpec, *, lanes: int | None = None) -> None:
        count = lanes or 1
        self.lanes = OwnLanes(OwnRules(type(env.unwrapped).__name__, spec, env_id=id_of_env(env)), count)
        self._batch = () if lanes is None else (lanes,)  # the axis of lanes in info
        self._shapes = {name: (*self._batch, *column.shape) for name, column in record(spec).items()}
        personal = PERSONAL if spec.one_person else ()  # info has no axis for people
        self._fields = [(key.removeprefix(PREFIX), key, key in personal) for key in self._shapes]
        self._reported = Reported(self.lanes.rules, count)  # type: ignore[arg-type]  # it only uses the spec
        self._held = np.zeros(count, bool)
        self._blank: Records = np.repeat(blank_facts(spec), count)
        self.interactions = self._blank.copy()
        self.action_probs: Floats32 = np.zeros((count, spec.individuals, spec.actions), np.float32)

    @property
    def fair_spec(self) -> FairSpec:
        """The environment's `FairSpec`, as changed by wrappers."""
        return self.reported_spec or self.lanes.rules.spec

    def report_action_probs(self, action_probs: Any) -> None:
        """Store the probabilities of the next actions, shape (A,), or (M, A) for M people; (B, ...) for lanes."""
        self._reported.set(action_probs, shape=self._shapes[PROBS])

    def hold(self, mask: Flags) -> None:
        """Report no decision of the masked lanes, shape (B,), in the next step; their environments still step."""
        self._held = mask.copy()

    def extra(self, info: Mapping[str, Any], *, decided: bool) -> dict[str, Any]:
        """Store the record in ``info``, and return it together with the reported probabilities.

        Args:
            info: The ``info`` of a reset or a step.
            decided: Whether it is from a step.

        Raises:
            ValueError: ``info`` does not contain the record.
        """
        self._check(info)
        if info[PREFIX + "decided"] != decided:
            when = "step, which makes a decision" if decided else "reset, which makes no decision"
            raise ValueError(f"fair_decided must be {decided:d} after a {when}, got {info[PREFIX + 'decided']}")
        probs, extra = self._reported.take(), dict(info)
        if probs is not None and decided:
            extra[PROBS] = probs.reshape(self._shapes[PROBS])
        self._store((extra, None))
        return extra

    def extra_of_lanes(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """Store the records in the ``info`` of a vector environment, and return it with the reported probabilities.

        Args:
            info: The ``info`` of a reset or a step, in any autoreset mode.

        Raises:
            ValueError: ``info`` does not contain the record of a lane.
        """
        parts: list[tuple[dict[str, Any], Flags]] = [(dict(info), self._mask(info, PREFIX + "decided"))]
        if "final_info" in info:  # these lanes ended an episode and started the next one in the same step
            parts.append((dict(info["final_info"]), self._mask(info, "final_info")))
        probs, held = self._reported.take(), self._held
        self._held = np.zeros_like(held)
        for own, rows in parts:
            self._check(own, rows)
            own[PREFIX + "decided"] = np.where(held, 0, own[PREFIX + "decided"]).astype(np.int8)
            if probs is not None:
                own[PROBS] = own[PROBS].copy()
                decided = rows & (own[PREFIX + "decided"] == 1)
                own[PROBS][decided] = probs.reshape(self._shapes[PROBS])[decided]
        self._store(*((own, rows & ~held) for own, rows in parts))
        extra, *final = (own for own, _ in parts)
        return {**extra, "final_info": final[0]} if final else extra

    def _mask(self, info: Mapping[str, Any], key: str) -> Flags:
        """Return the mask of the lanes that report a key; all if it is missing."""
        return np.asarray(info.get(f"_{key}", np.ones(self.lanes.count, bool)), bool)

    def _check(self, info: Mapping[str, Any], rows: Flags | None = None) -> None:
        """Raise ValueError unless ``info`` contains the record, of the masked lanes."""
        for name, shape in self._shapes.items():
            if rows is not None and not np.array_equal(info.get(f"_{name}", False), rows):
                where = "the info of all its environments" if name in info else "info"
                raise ValueError(f"{where} must contain fair_envs.core.interactions.record, {name} is missing")
            if getattr(info.get(name), "shape", None) == shape:
                continue
            given = np.shape(info[name]) if name in info else None
            if given != shape:
                raise ValueError(
                    f"info must contain fair_envs.core.interactions.record: {name}, shape {shape}, got {given}"
                )

    def _store(self, *parts: tuple[Mapping[str, Any], Flags | None]) -> None:
        """Store records in new memory: of all lanes (None), or of the masked ones; the others are blank."""
        self.interactions = self._blank.copy()
        self.action_probs = np.zeros_like(self.action_probs)
        for info, rows in parts:
            for name, key, personal in self._fields:
                column = self.action_probs if key == PROBS else self.interactions[name]
                column = column[:, 0] if personal else column
                if rows is None:
                    column[...] = info[key]
                else:
                    column[rows] = info[key][rows]


def stacked(observation: Any, space: Space[Any]) -> NDArray[Any]:
    """Return a copy of an observation with shape (1, 1, ...); 0 if observations are not arrays."""
    return np.zeros((1, 1)) if space.shape is None else np.array(observation)[np.newaxis, np.newaxis]
