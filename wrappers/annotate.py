"""The record of a user's own environment, built from its observations, actions and ``info``."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym

from fair_envs.core.interactions import FairSpec, record
from fair_envs.faces.common import NotReset
from fair_envs.metrics.gaps import BY_NAME, decision_notions, name_of
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import checked
from fair_envs.wrappers import columns
from fair_envs.wrappers.columns import Features, Names
from fair_envs.wrappers.sources import Decision, Entries, Source, kept

Revealed = Literal["full", "accepted"]


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
        features: Features = None,
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
        own = columns.decision_column(decision, actions, Entries(env.action_space, "action"))
        found = columns.Columns(
            sensitive=columns.attributes("sensitive", sensitive, sources or {}, entries),
            legitimate=columns.attributes("legitimate", legitimate or {}, sources or {}, entries),
            features=columns.feature_columns(features, entries),
            decision=own,
            individual=columns.number_column("individual", individual, entries, "before"),
            label=columns.label_column(label, own.count, entries),
            outcome=columns.number_column("outcome", outcome, entries, "after"),
        )
        columns.check_known(sources or {}, [*found.sensitive, *found.legitimate])
        revealed = checked("feedback", feedback, Revealed)
        if label is None and revealed != "full":
            raise ValueError(f"feedback must be left out without a label, got {feedback!r}")
        self.fair_spec = found.spec(
            feedback="none" if label is None else revealed,
            favourable_action=favourable_action,
            nominal_features=nominal_features,
            sensitive_features=sensitive_features,
        )
        self._entries, self._columns = entries, found
        self._keys, self._reads_observation = found.keys_before, found.read_observation
        self._shown: tuple[Any, Floats, dict[str, Any]] | None = None  # what came with the last observation
        self._count = 0  # decisions of the episode

    # Playing

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Raises:
            ValueError: The ``info`` lacks a key that must come with the observation.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        for column in self._columns:
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
        decision = Decision(*self._shown, action, info)
        reported = record(self.fair_spec, **self._columns.facts(decision, self.fair_spec, count=self._count))
        self._count += 1
        self._show(observation, info)
        return observation, reward, terminated, truncated, {**info, **reported}

    def _show(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Keep what came with an observation, as copies: environments may change it in place."""
        own = copy.deepcopy(observation) if self._reads_observation else None
        self._shown = own, self._entries(observation), kept(info, self._keys)

    # Reports

    @property
    def missing(self) -> tuple[str, ...]:
        """The parts of the record without a source."""
        return self._columns.missing

    def found(self) -> str:
        """Return a report: where each column comes from, what is missing, and which notions can be measured."""
        spec, places = self.fair_spec, {column.name: column.place.text for column in self._columns}
        places.setdefault("individual", "a counter: each decision of an episode is about another person")
        places["decision"] += f" ({spec.actions} decisions, {spec.favourable_action} is favourable)"
        if spec.only_accepted:
            places["label"] += f", for people with decision {spec.favourable_action}"
        places |= {name: f"missing, no {name}=... was given" for name in self.missing}
        lines = [f"{name} <- {place}" for name, place in places.items()]
        measured = [] if "outcome" in self.missing else ["can be measured by the outcome: outcome_parity"]
        return "\n".join([*lines, *_measurable(spec), *measured])


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
