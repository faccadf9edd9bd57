"""The parameters of an environment: validated at construction, then passed to compiled rules as plain numbers.

An environment's parameters are one NamedTuple whose fields are the constructor's keywords. A field is a ``bool``, an
``int`` or ``float`` with its range (``Annotated[int, Range(1)]``), a ``Literal`` of strings, a text (``str``), or
several values of one kind (``Sequence[UnitInterval]``), which are stored as a tuple. Any other annotation is a function
of the field's name and value that returns the checked value.
"""

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

P = TypeVar("P", bound=tuple[Any, ...])
LARGEST_INTEGER = 2**63 - 1  # that compiled code supports


class Range(NamedTuple):
    """The range of a number, both ends included."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        """Return the range in words."""
        if self.low == -math.inf and self.high == math.inf:
            return "a finite number"
        if self.high == math.inf:
            return f"at least {self.low:.12g}"
        if self.low == -math.inf:
            return f"at most {self.high:.12g}"
        return f"between {self.low:.12g} and {self.high:.12g}"


PositiveInt = Annotated[int, Range(1)]
NonNegativeInt = Annotated[int, Range(0)]
UnitInterval = Annotated[float, Range(0, 1)]
NonNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(1e-12)]


def make_params(
    params: type[P], given: Mapping[str, Any], *, presets: Mapping[str, Mapping[str, Any]] | None = None
) -> P:
    """Return the parameters: the defaults, replaced by the given values.

    Args:
        params: The NamedTuple class.
        given: Keywords of the constructor.
        presets: Named sets of values; the field ``profile`` selects one, and ``given`` overrides it.

    Raises:
        TypeError: A keyword is unknown.
        ValueError: A value has the wrong type or is outside its range.
    """
    fields = get_type_hints(params, include_extras=True)
    for name in given:
        if name not in fields:
            known = ", ".join(sorted(fields))
            hint = meant(name, fields) or "."
            raise TypeError(f"got an unexpected keyword argument {name!r}{hint} The parameters are: {known}")
    values = dict(given)
    if presets is not None:
        profile = given.get("profile", params._field_defaults["profile"])  # type: ignore[attr-defined]
        checked("profile", profile, fields["profile"])
        values = {**presets[profile], **values}
    return params(**{name: checked(name, value, fields[name]) for name, value in values.items()})


def checked(name: str, value: Any, kind: Any) -> Any:
    """Return the value as its field's own Python type, so that compiled code only sees one type.

    Raises:
        ValueError: The value has the wrong kind or is outside its range.
    """
    if get_origin(kind) is Literal:
        return _choice(name, value, get_args(kind))
    if get_origin(kind) is Sequence:
        return _several(name, value, get_args(kind)[0])
    bounds = Range()
    if get_origin(kind) is Annotated:
        kind, bounds = get_args(kind)
        if not isinstance(bounds, Range):
            return bounds(name, value)
    if kind is bool:
        return _flag(name, value)
    if kind is str:
        return _text(name, value)
    return _number(name, value, kind, bounds)


def _choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in options:
        known = ", ".join(map(repr, options))
        raise ValueError(f"{name} must be one of {known}, got {shown(value)}{meant(value, options)}")
    return str(value)


def _several(name: str, values: Any, kind: Any) -> tuple[Any, ...]:
    listed = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    if not listed and not (isinstance(values, np.ndarray) and values.ndim):
        raise ValueError(f"{name} must be several values, got {values!r}")
    return tuple(checked(f"{name}[{k}]", value, kind) for k, value in enumerate(values))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, got {value!r}")
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _number(name: str, value: Any, kind: type, bounds: Range) -> float | int:
    abstract, word = (numbers.Integral, "an integer") if kind is int else (numbers.Real, "a finite number")
    is_number = isinstance(value, abstract) and not isinstance(value, bool)
    try:
        number = kind(value) if is_number else math.nan
    except OverflowError:  # an integer too large for a float
        number = math.inf
    if not -math.inf < number < math.inf:
        raise ValueError(f"{name} must be {word if bounds == Range() else f'{word} {bounds}'}, got {shown(value)}")
    if not bounds.low <= number <= bounds.high:
        raise ValueError(f"{name} must be {bounds}, got {shown(value)}")
    if kind is int and abs(number) > LARGEST_INTEGER:
        raise ValueError(f"{name} must be a 64-bit integer, got {shown(value)}")
    return number


def meant(value: Any, options: Iterable[str]) -> str:
    """Return the question "did you mean ...?" for the most similar option, or an empty text; it ends an error."""
    by_lower = {option.lower(): option for option in options}
    found = get_close_matches(value.lower(), by_lower, n=1) if isinstance(value, str) else []
    return f"; did you mean {by_lower[found[0]]!r}?" if found else ""


def shown(value: Any) -> str:
    """Return a value's text for an error message; of a huge integer only the size."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"an integer of {value.bit_length()} bits"
    try:
        return repr(value)
    except ValueError:  # Python refuses to print a huge integer, also inside a list
        return f"a {type(value).__name__} that holds an integer of thousands of digits"


def value_of(text: Any, kind: Any) -> Any:
    """Return a command-line text as a value of a field's type.

    The parts of a list are separated by commas, with or without brackets around them; an empty text is an empty list.
    A whole number such as ``1e5`` is an integer. An invalid text is returned unchanged, so that the field rejects it.
    """
    if not isinstance(text, str):
        return text
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return _whole(text) if kind is int else text
    if get_origin(kind) is Sequence:
        parts = text[1:-1] if text[:1] + text[-1:] == "[]" else text
        return [value_of(part, get_args(kind)[0]) for part in parts.split(",")] if parts else []
    return text


def _whole(text: str) -> int | str:
    """Return the integer that a text such as ``1e5`` or ``4.0`` means, or else the text."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else text


def encode(params: P) -> P:
    """Return the parameters as numbers: each choice becomes its index among the options of its ``Literal``."""
    fields = get_type_hints(type(params))
    codes: Any = (
        get_args(fields[name]).index(value) if get_origin(fields[name]) is Literal else value
        for name, value in params._asdict().items()  # type: ignore[attr-defined]
    )
    return type(params)(*codes)


def setting(default: Any, meaning: str) -> Any:
    """Return a field of a dataclass of settings.

    Args:
        default: Its default.
        meaning: One sentence, the help of its option on the command line.
    """
    return field(default=default, metadata={"help": meaning})
