"""The record of a user's own environment, built from its observations, actions and ``info``."""

import copy
import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal

import gymnasium as gym

from fair_envs.core.interactions import FairSpec, record
from fair_envs.faces.common import NotReset
from fair_envs.metrics.gaps import BY_NAME, decision_notions, name_of
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import PositiveInt, checked, meant
from fair_envs.wrappers.sources import (
    Called,
    Codes,
    Column,
    Decision,
    Entries,
    Item,
    Key,
    Numbers,
    Source,
    When,
    kept,
    locate,
)

Names = Mapping[str, Sequence[str]]
"""Attributes, and the names of their codes 0, 1, ..."""

Revealed = Literal["full", "accepted"]

LARGEST_DEFAULT = 1000
"""The largest observation whose entries are features unless the user chooses them."""


class Annotate(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Adds the record of the decisions about people to the ``info`` of a user's own Gymnasium environment.

    Each step makes a decision about one person, the one that the last observation shows. Say where each column of the
    record comes from; the environment itself stays as it is. All wrappers for own environments then work, for example
    ``FairnessObjectives(Annotate(env, ...), ["demographic_parity"], SlidingWindow(500))``.

    A source is one of these:

    | source | the value is |
    |---|---|
    | an index, such as ``2`` | an entry of the observation before the decision |
    | a slice, such as ``slice(2, 5)`` | several entries: for a code, one for each value, of which one is 1 (one-hot) |
    | a text, such as ``"group"`` | the entry of a Dict observation with this key, otherwise a key of ``info`` |
    | a function | what ``function(observation, action, info)`` returns, with the observation before the decision |

    What is known before the decision (attributes, features, `individual`) is looked up in the ``info`` that came with
    the observation, from the reset or the previous step. What is known after it (`label`, `outcome`, `decision`) is
    looked up in the ``info`` of the step that made it. `before` and `after` choose the other one:
    ``sources={"group": after("group")}`` if ``info`` describes the person just decided on. Indices count the numbers of
    an observation in the order of its space; unlike in `gymnasium.spaces.flatten`, a Discrete is one number, counted
    from the start of its space.

    Codes can be integers, booleans, floats without fraction, or names. Other values are refused with an error that
    names the source. `missing` lists the columns without a source; `found` reports where each column comes from, and
    which notions can be measured.

    Apply it directly to your environment, below wrappers that change observations. As an argument of
    `gymnasium.make_vec`: ``wrappers=[functools.partial(Annotate, sensitive=...)]``.

    Args:
        env: A Gymnasium environment that does not report the record yet.
        sensitive: The sensitive attributes and the names of their codes 0, 1, ...: ``{"group": ("A", "B")}``.
        sources: The sources of the sensitive attributes and legitimate factors; by default, the text of their name.
        legitimate: The legitimate factors (attributes that may justify a difference) and the names of their codes.
        label: The source of the correct decision (ground truth), a code of a decision or None if it is not known; None
            as the source: labels are never known.
        feedback: ``"full"``: the label is known after each decision; ``"accepted"``: only for people who got the
            favourable decision. The labels of others are then not read.
        outcome: The source of the benefit to the person, a number; None: unknown.
        individual: The source of the person's id, a whole number of at least 0; None: each decision of an episode is
            about another person.
        features: The features that the decision is based on. None: all numbers of the observation. A sequence: names
            for all numbers of the observation, in order; empty: no features. A mapping: names and their sources.
        nominal_features: Features whose values are codes without an order.
        sensitive_features: Features that show a sensitive attribute. Those with the same source as an attribute are
            found without it.
        decision: The source of the decision, a code. An index, a slice or the key of a Dict space is a part of the
            action, and any other text a key of ``info``. None: the action itself, if it is one number.
        actions: The number of possible decisions; None: that of the action space.
        favourable_action: The decision that people want to receive.

    Attributes:
        fair_spec: The `FairSpec` of the record.

    Raises:
        TypeError: The environment is not a single Gymnasium environment.
        ValueError: A source does not exist, names are not unique, or the environment reports the record already. In
            `reset` and `step`, a value is missing or not a code; the error names the source.

    Example:
        >>> side = {"side": lambda observation, action, info: observation[0] > 0}
        >>> env = Annotate(gym.make("CartPole-v1"), sensitive={"side": ("left", "right")}, sources=side)
        >>> observation, info = env.reset(seed=0)
        >>> info = env.step(1)[-1]
        >>> int(info["fair_group"]) == int(observation[0] > 0), int(info["fair_action"])
        (True, 1)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        sensitive: Names,
        sources: Mapping[str, Source] | None = None,
        legitimate: Names | None = None,
        label: Source | None = None,
        feedback: Revealed = "full",
        outcome: Source | None = None,
        individual: Source | None = None,
        features: Sequence[str] | Mapping[str, Source] | None = None,
        nominal_features: Sequence[str] = (),
        sensitive_features: Sequence[str] = (),
        decision: Source | None = None,
        actions: int | None = None,
        favourable_action: int = 1,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "env", "__class__")}
        gym.utils.RecordConstructorArgs.__init__(self, **given)  # the spec needs them to make the wrapper again
        _check_env(env)
        super().__init__(env)
        entries = Entries(env.observation_space, "observation")
        self._entries = entries
        self._sensitive = _attributes("sensitive", sensitive, sources or {}, entries)
        self._legitimate = _attributes("legitimate", legitimate or {}, sources or {}, entries)
        _check_known(sources or {}, [*self._sensitive, *self._legitimate])
        self._features = _features(features, entries)
        self._individual = None if individual is None else _number("individual", individual, entries, "before")
        self._outcome = None if outcome is None else _number("outcome", outcome, entries, "after")
        self._decision = _decision(decision, actions, Entries(env.action_space, "action"))
        self._label = None if label is None else _label(label, self._decision.count, entries)
        revealed = checked("feedback", feedback, Revealed)
        self.fair_spec = FairSpec(
            individuals=1,
            actions=self._decision.count,
            features=tuple(self._features),
            nominal_features=tuple(nominal_features),
            sensitive_features=_showing(self._features, self._sensitive, sensitive_features),
            sensitive={name: column.names for name, column in self._sensitive.items()},
            legitimate={name: column.names for name, column in self._legitimate.items()},
            groups=tuple(map(", ".join, product(*(column.names for column in self._sensitive.values())))),
            favourable_action=favourable_action,
            feedback="none" if label is None else revealed,
        )
        places = [column.place for column in self._columns.values()]
        self._keys = frozenset(place.key for place in places if isinstance(place, Key) and place.when == "before")
        self._reads_observation = any(isinstance(place, (Called, Item)) for place in places)
        self._positions = _positions(self._features)
        self._shown: tuple[Any, Floats, dict[str, Any]] | None = None  # what came with the last observation
        self._count = 0  # decisions of the episode

    @property
    def _columns(self) -> dict[str, Column]:
        """All columns with a source, by the name for reports."""
        single = {
            "individual": self._individual,
            "decision": self._decision,
            "label": self._label,
            "outcome": self._outcome,
        }
        given = {name: column for name, column in single.items() if column is not None}
        attributes = (*self._sensitive.values(), *self._legitimate.values(), *self._features.values())
        return {column.name: column for column in attributes} | given

    # Playing

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Raises:
            ValueError: The ``info`` lacks a key that must come with the observation.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        for column in self._columns.values():
            column.check_shown(info)
        self._count = 0
        self._show(observation, info)
        return observation, {**info, **record(self.fair_spec)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one step, and report the decision about the person that the last observation showed.

        Raises:
            ResetNeeded: There was no reset.
            ValueError: A value is missing or is not what its column needs.
        """
        if self._shown is None:
            raise NotReset("step must follow a reset")
        observation, reward, terminated, truncated, info = self.env.step(action)
        reported = self._record(Decision(*self._shown, action, info))
        self._count += 1
        self._show(observation, info)
        return observation, reward, terminated, truncated, {**info, **reported}

    def _show(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Keep what came with an observation, as copies: environments may change it in place."""
        own = copy.deepcopy(observation) if self._reads_observation else None
        self._shown = own, self._entries(observation), kept(info, self._keys)

    def _record(self, decision: Decision) -> dict[str, Any]:
        """Return the record of a decision."""
        spec = self.fair_spec
        action = self._decision.code(decision)
        codes = [column.code(decision) for column in self._sensitive.values()]
        facts: dict[str, Any] = {
            "individual": self._count if self._individual is None else self._individual.whole(decision),
            "sensitive": codes,
            "group": _index(codes, [column.count for column in self._sensitive.values()]),
            "action": action,
        }
        if self._positions is not None:
            facts["features"] = decision.entries[self._positions]
        elif self._features:
            facts["features"] = [column.number(decision) for column in self._features.values()]
        if self._legitimate:
            facts["legitimate"] = [column.code(decision) for column in self._legitimate.values()]
        if self._outcome is not None:
            facts["outcome"] = self._outcome.number(decision)
        if self._label is not None and (not spec.only_accepted or action == spec.favourable_action):
            facts["feedback"] = self._label.code(decision)
        return record(spec, **facts)

    # Reports

    @property
    def missing(self) -> tuple[str, ...]:
        """The parts of the record without a source."""
        optional = {"legitimate": self._legitimate, "features": self._features}
        optional |= {"label": self._label, "outcome": self._outcome}
        return tuple(name for name, source in optional.items() if not source)

    def found(self) -> str:
        """Return a report: where each column comes from, what is missing, and which notions can be measured."""
        spec, columns = self.fair_spec, self._columns
        places = {name: column.place.text for name, column in columns.items()}
        if self._individual is None:
            places["individual"] = "a counter: each decision of an episode is about another person"
        places["decision"] += f" ({spec.actions} decisions, {spec.favourable_action} is favourable)"
        if spec.only_accepted:
            places["label"] += f", for people with decision {spec.favourable_action}"
        places |= {name: f"missing, no {name}=... was given" for name in self.missing}
        lines = [f"{name} <- {place}" for name, place in places.items()]
        return "\n".join([*lines, *_measurable(spec)])


def _measurable(spec: FairSpec) -> list[str]:
    """Return lines that say which notions can be measured with this record, and why the others cannot."""
    possible: list[str] = []
    with_probs: list[str] = []
    impossible: list[str] = []
    for notion in decision_notions(list(BY_NAME), groups=next(iter(spec.sensitive))):
        if not math.isfinite(getattr(notion, "worst", 1.0)):
            continue  # it cannot be an objective
        try:
            notion.check(spec)
        except ValueError as error:
            impossible.append(f"cannot be measured: {error}")
        else:
            (with_probs if getattr(notion, "needs_action_probs", False) else possible).append(name_of(notion))
    lines = [f"can be measured: {', '.join(possible)}"] if possible else []
    lines += [f"can be measured with ReportActionProbs: {', '.join(with_probs)}"] if with_probs else []
    return [*lines, *impossible]


# Columns --------------------------------------------------------------------------------------------------------------


def _attributes(kind: str, names: Names, sources: Mapping[str, Source], entries: Entries) -> dict[str, Codes]:
    """Return the columns of attributes, given the names of their codes."""
    if not isinstance(names, Mapping) or (kind == "sensitive" and not names):
        example = "{'group': ('A', 'B')}"
        raise ValueError(f"{kind} must map attributes to the names of their values, such as {example}, got {names!r}")
    found = {}
    for name, values in names.items():
        if isinstance(values, str) or len(set(values)) < max(2, len(values)):
            raise ValueError(f"{kind}[{name!r}] must be at least two different names, got {values!r}")
        full = f"{kind} {name!r}"
        place = locate(full, sources.get(name, name), entries, when="before")
        advice = "" if name in sources else f"choose another source with sources={{{name!r}: ...}}"
        found[name] = Codes(full, place, advice, count=len(values), names=tuple(values))
    return found


def _check_known(sources: Mapping[str, Source], known: Sequence[str]) -> None:
    """Raise ValueError for a source of an unknown attribute."""
    for name in sources:
        if name not in known:
            raise ValueError(
                f"sources must be for sensitive attributes or legitimate factors ({', '.join(known)}), got {name!r}"
                f"{meant(name, known)}"
            )


def _number(name: str, source: Source, entries: Entries, when: When) -> Column:
    """Return a column of numbers."""
    place = locate(name, source, entries, when=when)
    if isinstance(place, Numbers) and len(place.positions) > 1:
        raise ValueError(f"{name} must come from one entry, got {len(place.positions)} of {place.text}")
    return Column(name, place)


def _features(features: Sequence[str] | Mapping[str, Source] | None, entries: Entries) -> dict[str, Column]:
    """Return the columns of the features."""
    if isinstance(features, Mapping):
        return dict(own for name, source in features.items() for own in _feature(name, source, entries))
    if features is None:
        if len(entries) > LARGEST_DEFAULT:
            raise ValueError(f"features must be given if an observation has {len(entries)} numbers; () for none")
        features = entries.names
    if isinstance(features, str) or len(features) not in (0, len(entries)):
        raise ValueError(
            f"features must be a mapping of names to sources, or name all {len(entries)} numbers of the observation, "
            f"got {features!r}"
        )
    return {name: _number(f"feature {name!r}", k, entries, "before") for k, name in enumerate(features)}


def _feature(name: str, source: Source, entries: Entries) -> list[tuple[str, Column]]:
    """Return the features of one source: one for each number."""
    place = locate(f"feature {name!r}", source, entries, when="before")
    if not isinstance(place, Numbers) or len(place.positions) == 1:
        return [(name, Column(f"feature {name!r}", place))]
    names = [f"{name} {k}" for k in range(len(place.positions))]
    return [
        (own, _number(f"feature {own!r}", position, entries, "before"))
        for own, position in zip(names, place.positions, strict=True)
    ]


def _positions(features: Mapping[str, Column]) -> list[int] | None:
    """Return the features' positions in the observation; None if some come from elsewhere, or there are none."""
    places = [column.place for column in features.values()]
    found = [place.positions[0] for place in places if isinstance(place, Numbers)]
    return found if features and len(found) == len(places) else None


def _showing(features: Mapping[str, Column], sensitive: Mapping[str, Codes], named: Sequence[str]) -> tuple[str, ...]:
    """Return the features that show a sensitive attribute: those with its source, and those that the user names."""
    if isinstance(named, str):
        raise ValueError(f"sensitive_features must be a list of names, got {named!r}")
    places = [column.place for column in sensitive.values()]
    positions = {own for place in places if isinstance(place, Numbers) for own in place.positions}
    same = [
        name
        for name, column in features.items()
        if column.place in places or (isinstance(column.place, Numbers) and positions & {*column.place.positions})
    ]
    return tuple(dict.fromkeys([*same, *named]))


def _decision(source: Source | None, actions: int | None, entries: Entries) -> Codes:
    """Return the column of the decision."""
    if source is None:
        if len(entries) != 1:
            raise ValueError(
                f"decision must be given if an action is not one number, such as the index of the deciding part, got "
                f"an action of {len(entries)}: {entries.space}"
            )
        source = 0
    place = locate("decision", source, entries, when="after", of_action=True)
    known = 0
    if isinstance(place, Numbers):
        known = int(entries.counts[place.positions[0]]) if len(place.positions) == 1 else len(place.positions)
    if actions is None and not known:
        raise ValueError(f"actions, the number of decisions, must be given for decisions from {place.text}, got None")
    count = known if actions is None else checked("actions", actions, PositiveInt)
    if known not in (0, count):
        raise ValueError(f"actions must be {known}, as many as {place.text} has, got {actions}")
    return Codes("decision", place, count=count)


def _label(source: Source, actions: int, entries: Entries) -> Codes:
    """Return the column of the correct decisions."""
    advice = "if it is only known for some people, use feedback='accepted', or report None for the others"
    place = locate("label", source, entries, when="after")
    return Codes("label", place, advice, count=actions, optional=True)


def _index(codes: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the index of a combination of codes; the last code varies fastest."""
    index = 0
    for code, size in zip(codes, sizes, strict=True):
        index = index * size + code
    return index


def _check_env(env: Any) -> None:
    """Raise an error unless this is one Gymnasium environment without a record."""
    if isinstance(env, gym.vector.VectorEnv):
        raise TypeError(
            f"env must be one environment, got {env}: annotate each one, with gymnasium.make_vec(..., "
            "wrappers=[functools.partial(Annotate, sensitive=...)])"
        )
    if not isinstance(env, gym.Env):
        raise TypeError(f"env must be a gymnasium.Env, got {env!r}")
    if env.has_wrapper_attr("fair_spec"):
        raise ValueError(f"env must not report the record yet, got {env} with a fair_spec")
