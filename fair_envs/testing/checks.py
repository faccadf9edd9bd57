"""What every interface promises, as checks of its return values, for the contract test and the fuzzer.

A check raises AssertionError with a message: what was checked, what was expected and what came.

PYTEST_DONT_REWRITE: the messages of its errors are complete, and pytest should add nothing to them.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core.interactions import MISSING, FairSpec
from fair_envs.support.aliases import Ints

LARGEST = np.iinfo(np.int64).max

Schema = Mapping[str, tuple[Any, tuple[int, ...]]]
"""Dtype and shape of each key of ``info``."""


# ----------------------------------------------------------------------------------------- equality and memory


def assert_same(one: Any, other: Any, place: str = "") -> None:
    """Fail unless two values are the same in structure, type, shape and every bit."""
    assert type(one) is type(other), f"{place}: {type(one)} and {type(other)}"
    if isinstance(one, Mapping):
        assert list(one) == list(other) or set(one) == set(other), f"{place}: {set(one) ^ set(other)}"
        for key in one:
            assert_same(one[key], other[key], f"{place}/{key}")
    elif isinstance(one, (list, tuple)) or (isinstance(one, np.ndarray) and one.dtype == object):
        assert len(one) == len(other), f"{place}: {len(one)} and {len(other)}"
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    elif isinstance(one, np.ndarray):
        _assert_same_arrays(one, other, place)
    else:
        assert not isinstance(one, np.generic) or one.dtype == other.dtype, f"{place}: {one.dtype}"
        assert one == other, f"{place}: {one} and {other}"


def _assert_same_arrays(one: NDArray[Any], other: NDArray[Any], place: str) -> None:
    assert (one.dtype, one.shape) == (other.dtype, other.shape), (
        f"{place}: {one.dtype, one.shape} and {other.dtype, other.shape}"
    )
    if one.dtype.names:  # field by field: the padding between them has no meaning
        for name in one.dtype.names:
            _assert_same_arrays(one[name], other[name], f"{place}.{name}")
    elif one.tobytes() != other.tobytes():
        differ = np.flatnonzero(one.ravel() != other.ravel())  # none where zeros have different signs
        values = [(one.flat[k], other.flat[k]) for k in differ[:1]]
        raise AssertionError(f"{place}: {differ.size} entries differ, the first at {differ[:1]}: {values}")


def arrays_in(thing: Any) -> list[NDArray[Any]]:
    """Return every array in a structure of dictionaries and sequences."""
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return [thing]
    if isinstance(thing, Mapping):
        thing = list(thing.values())
    if isinstance(thing, (list, tuple, np.ndarray)):
        return [array for part in thing for array in arrays_in(part)]
    return []


# ---------------------------------------------------------------------------------------- observations, rewards


def check_observations(observations: Any, space: gym.Space[Any]) -> None:
    """Fail unless each of several observations is finite, of the space's dtype and inside the space.

    Args:
        observations: For a Box an array, shape (n, ...); for another space a sequence.
        space: The space of one observation.
    """
    if not isinstance(space, gym.spaces.Box):
        for observation in observations:
            assert space.contains(observation), f"observation must lie in {space}, got {observation!r}"
        return
    given = np.asarray(observations)
    assert given.dtype == space.dtype, f"observation must be {space.dtype}, got {given.dtype}"
    assert given.shape[1:] == space.shape, f"observation must have shape {space.shape}, got {given.shape[1:]}"
    check_finite("observation", given)
    outside = (given < space.low) | (given > space.high)
    if outside.any():
        place = tuple(np.argwhere(outside)[0].tolist())
        low, high = space.low[place[1:]], space.high[place[1:]]
        raise AssertionError(
            f"observation{list(place[1:])} must be between {low} and {high}, its space, got {given[place]}"
        )


def check_finite(name: str, numbers: NDArray[Any]) -> None:
    """Fail unless all numbers are finite; `name` is for the message."""
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise AssertionError(f"{name} must be finite, got {numbers[place]} at {list(place)}")


# ------------------------------------------------------------------------------------------------- the record


def schema(spec: FairSpec) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return dtype and shape of each key of info, from the documentation of the record."""
    people = () if spec.one_person else (spec.individuals,)
    return {
        "fair_decided": (np.int8, ()),
        "fair_individual": (np.int64, people),
        "fair_features": (np.float32, (*people, len(spec.features))),
        "fair_sensitive": (np.int64, (*people, len(spec.sensitive))),
        "fair_legitimate": (np.int64, (*people, len(spec.legitimate))),
        "fair_group": (np.int64, people),
        "fair_action": (np.int64, people),
        "fair_action_probs": (np.float32, (*people, spec.actions)),
        "fair_feedback": (np.int64, people),
        "fair_late_individual": (np.int64, (spec.late_rows,)),
        "fair_late_feedback": (np.int64, (spec.late_rows,)),
        "fair_late_count": (np.int64, ()),
        "fair_late_dropped": (np.int64, ()),
        "fair_outcome": (np.float32, people),
    }


def check_schema(
    info: Mapping[str, Any], expected: Schema, *, lanes: tuple[int, ...] = (), others: bool = False
) -> None:
    """Fail unless info has these keys, with NumPy types and without undefined values.

    Args:
        info: The info of one step.
        expected: See `schema`.
        lanes: The axis before each shape: ``(B,)`` for a batch.
        others: Whether info may have more keys.
    """
    missing, unknown = set(expected) - set(info), set(info) - set(expected)
    assert not missing, f"info must have the keys {', '.join(sorted(missing))}, got {', '.join(sorted(info))}"
    assert others or not unknown, f"info must have no other keys than the record's, got {', '.join(sorted(unknown))}"
    for name, (dtype, shape) in expected.items():
        value, wanted = info[name], (*lanes, *shape)
        kind = type(value).__name__
        assert isinstance(value, (np.ndarray, np.generic)), f"{name} must be of NumPy's types, got {kind}"
        assert value.dtype == np.dtype(dtype), f"{name} must be {np.dtype(dtype)}, got {value.dtype}"
        assert value.shape == wanted, f"{name} must have shape {wanted}, got {value.shape}"
        if value.dtype.kind == "f":
            check_finite(name, np.asarray(value))


def check_facts(spec: FairSpec, info: Mapping[str, NDArray[Any]], *, decided: bool) -> None:
    """Fail unless the record of a step or a reset fits the environment's spec.

    Args:
        spec: The environment's spec.
        info: The record, with or without an axis for lanes.
        decided: Whether it comes from a step, which decides about a person, or from a reset.
    """
    _check_range("fair_decided", info["fair_decided"], int(decided), int(decided))
    if not decided:
        _check_range("fair_action of a reset", info["fair_action"], MISSING, MISSING)
        _check_range("fair_outcome of a reset", info["fair_outcome"], 0, 0)
        if not spec.same_individuals:
            for name in ("fair_individual", "fair_group"):
                _check_range(f"{name} of a reset", info[name], MISSING, MISSING)
            return
    nobody = np.asarray(info["fair_individual"]) == MISSING
    least = np.where(nobody, MISSING, 0)  # smallest code: rows without an individual need none
    for kind in ("sensitive", "legitimate"):
        for column, (attribute, names) in enumerate(getattr(spec, kind).items()):
            _check_range(f"fair_{kind} {attribute!r}", info[f"fair_{kind}"][..., column], least, len(names) - 1)
    _check_range("fair_group", info["fair_group"], least, len(spec.groups) - 1)
    _check_range("fair_action where fair_individual is -1", np.asarray(info["fair_action"])[nobody], MISSING, MISSING)
    if spec.actions:
        _check_range("fair_action", info["fair_action"], MISSING, spec.actions - 1)
        most = LARGEST if spec.amounts else spec.actions - 1  # more can be needed than any decision gives
        _check_range("fair_feedback", info["fair_feedback"], MISSING, most)
    _check_range("fair_late_count", info["fair_late_count"], 0, spec.late_rows)
    if not spec.one_person:
        _check_different(info["fair_individual"])


def _check_range(name: str, values: Any, low: Any, high: int) -> None:
    given = np.asarray(values)
    outside = (given < low) | (given > high)
    if outside.any():
        least = np.broadcast_to(low, given.shape)[outside].flat[0]
        wanted = f"{least}" if least == high else f"between {least} and {high}"
        raise AssertionError(f"{name} must be {wanted}, got {given[outside].flat[0]}")


def _check_different(individuals: Ints) -> None:
    """Fail if two people of one step have the same number; -1 means no person."""
    ordered = np.sort(individuals, axis=-1)
    twice = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] >= 0)
    assert not twice.any(), f"fair_individual must be different people, got {ordered[..., 1:][twice][:1]} twice"
