"""Search spaces of parameters: parsed from command-line texts or TOML tables, and checked against the environment."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, get_args, get_origin

from fair_envs.support.parameters import checked, value_of

SEPARATOR = "|"  # between options, on the command line
MOST_WHOLE = 2**53  # Optuna stores whole numbers as floats, which are exact up to this


@dataclass(frozen=True, kw_only=True)
class Between:
    """Numbers in an interval, both ends included.

    Attributes:
        low: The smallest number.
        high: The largest number; with a step, the largest that the steps reach.
        step: Difference between neighbouring values; None: all numbers, or all whole numbers.
        log: Whether equal ratios, instead of equal differences, are equally likely.
        whole: Whether only whole numbers are allowed.
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        """Return the range in command-line form."""
        more = ["log"] if self.log else [] if self.step is None else [number(self.step)]
        return ":".join([number(self.low), number(self.high), *more])

    def distribution(self) -> Any:
        """Return the range as Optuna's distribution."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return IntDistribution(int(self.low), int(self.high), step=step, log=self.log)
        return FloatDistribution(self.low, self.high, step=self.step, log=self.log)

    def value(self, suggested: Any) -> Any:
        """Return a suggestion of Optuna as the parameter's value.

        Raises:
            ValueError: The suggestion is outside the range, so it did not come from this search.
        """
        if isinstance(suggested, bool) or not isinstance(suggested, int | float) or self.suggestion(suggested) is None:
            raise ValueError(f"storage must hold values of the range {self}, got {suggested!r}")
        return suggested

    def suggestion(self, value: Any) -> Any:
        """Return the suggestion that gives a value; None if there is none."""
        fits = self.low <= value <= self.high
        if fits and self.step is not None:
            steps = (value - self.low) / self.step
            fits = abs(steps - round(steps)) < 1e-9
        return value if fits else None


@dataclass(frozen=True, kw_only=True)
class Options:
    """A list of values.

    Attributes:
        options: The values.
    """

    options: tuple[Any, ...]

    def __str__(self) -> str:
        """Return the options in command-line form; a single number is followed by the separator."""
        first = self.options[0]
        alone = len(self.options) == 1 and isinstance(first, int | float) and not isinstance(first, bool)
        return SEPARATOR.join(map(label, self.options)) + SEPARATOR * alone

    def distribution(self) -> Any:
        """Return the options as Optuna's distribution of labels."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution([label(option) for option in self.options])

    def value(self, suggested: Any) -> Any:
        """Return the option with that label.

        Raises:
            ValueError: There is no such label, so it did not come from this search.
        """
        found = [option for option in self.options if label(option) == suggested]
        if not found:
            raise ValueError(f"storage must hold values of the range {self}, got {suggested!r}")
        return found[0]

    def suggestion(self, value: Any) -> Any:
        """Return the label of a value; None if it is not an option."""
        own = label(value)
        return own if own in map(label, self.options) else None


Dimension = Between | Options


def number(value: float) -> str:
    """Return the shortest text that parses to the same number."""
    return repr(value).removesuffix(".0")


def label(option: Any) -> str:
    """Return an option as a text: the parts of a list are separated by commas, and an empty list is an empty text."""
    if isinstance(option, list | tuple):
        return ",".join(map(label, option))
    return str(option).lower() if isinstance(option, bool) else str(option)


def range_of(name: str, given: Any, kind: Any) -> Dimension:
    """Return the range of a parameter.

    Args:
        name: The parameter's name.
        given: A text ``LOW:HIGH``, ``LOW:HIGH:STEP``, ``LOW:HIGH:log`` or ``OPTION|OPTION|...``; a mapping with
            ``low``, ``high`` and optionally ``step`` or ``log``; or a list of options. In a text, the parts of an
            option are separated by commas, an option may be empty, and a single number is ``NUMBER|``.
        kind: The type of the parameter in the environment.

    Raises:
        ValueError: The argument is not a range, the low end is above the high one, the parameter cannot have a value,
            or Optuna cannot sample from the range.
    """
    if isinstance(given, str):
        given = _read(name, given, kind)
    if isinstance(given, Mapping):
        return _between(name, dict(given), kind)
    if isinstance(given, Sequence) and given:
        return _among(name, given, kind)
    raise ValueError(f"range of {name} must be LOW:HIGH, options or a table with low and high, got {given!r}")


def check_drawable(name: str, dimension: Dimension) -> None:
    """Raise ValueError if Optuna rejects a parameter's range."""
    try:
        dimension.distribution()
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"range of {name} must be one that Optuna draws from, got {dimension}: {error}") from error


def _read(name: str, text: str, kind: Any) -> Any:
    """Parse a text."""
    if _bare(kind) not in (int, float):
        return [value_of(part, kind) for part in text.split(SEPARATOR)]
    if SEPARATOR in text:
        return [value_of(part, kind) for part in text.removesuffix(SEPARATOR).split(SEPARATOR)]
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise ValueError(f"range of {name} must be LOW:HIGH, LOW:HIGH:STEP or LOW:HIGH:log, got {text!r}")
    found: dict[str, Any] = {"low": value_of(parts[0], kind), "high": value_of(parts[1], kind)}
    if parts[2:] == ["log"]:
        found["log"] = True
    elif parts[2:]:
        found["step"] = value_of(parts[2], kind)
    return found


def _bare(kind: Any) -> Any:
    """Return a type without its range."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _among(name: str, given: Sequence[Any], kind: Any) -> Options:
    """Return options that the parameter can have, and whose labels are distinct."""
    found = Options(options=tuple(checked(name, option, kind) for option in given))
    if len({*found.options}) < len(given) or len({*map(label, found.options)}) < len(given):
        raise ValueError(f"range of {name} must name each option once, got {found}")
    if tuple(checked(name, option, kind) for option in _read(name, str(found), kind)) != found.options:
        raise ValueError(
            f"range of {name} must have options whose texts differ, got {found}: one contains {SEPARATOR!r}, "
            "or a part of one contains a comma or is empty"
        )
    return found


def _between(name: str, given: dict[Any, Any], kind: Any) -> Between:
    """Return numbers between two ends that the parameter can have."""
    bare = _bare(kind)
    if bare not in (int, float):
        raise ValueError(f"range of {name} must list options, got {given}: it is not a number")
    if not {"low", "high"} <= set(given) <= {"low", "high", "step", "log"}:
        reported = ", ".join(map(str, given)) or "nothing"
        raise ValueError(f"range of {name} must have low and high, and optionally step or log, got {reported}")
    low, high = _ends(name, given, kind)
    step, log = given.get("step"), checked(f"log of {name}", given.get("log", False), bool)
    if log and (step is not None or low <= 0):
        raise ValueError(
            f"range of {name} must begin above 0 and have no step to be logarithmic, got low {number(low)}"
            f"{'' if step is None else f' and step {step}'}"
        )
    if step is not None:
        step = checked(f"step of {name}", step, bare)
        if step <= 0:
            raise ValueError(f"step of {name} must be above 0, got {number(step)}")
        high = high - (high - low) % step if bare is int else _last(name, low, high, step)
    return Between(low=low, high=high, step=step, log=log, whole=bare is int)


def _ends(name: str, given: Mapping[Any, Any], kind: Any) -> tuple[Any, Any]:
    """Return the ends of a range; the parameter can have them, and Optuna can sample between them."""
    low, high = checked(name, given["low"], kind), checked(name, given["high"], kind)
    if low > high:
        raise ValueError(f"range of {name} must have its low end first, got {number(low)} above {number(high)}")
    if _bare(kind) is int and max(-low, high) > MOST_WHOLE:
        raise ValueError(f"range of {name} must lie between {-MOST_WHOLE} and {MOST_WHOLE}, got {low}:{high}")
    if math.isinf(high - low):
        raise ValueError(f"range of {name} must have ends whose difference is finite, got {number(low)}:{number(high)}")
    return low, high


def _last(name: str, low: float, high: float, step: float) -> float:
    """Return the largest number that the steps reach, computed with decimals as Optuna does."""
    first, each = Decimal(repr(low)), Decimal(repr(step))
    try:
        last = float((Decimal(repr(high)) - first) // each * each + first)
        reached = (Decimal(repr(last)) - first) % each == 0
    except InvalidOperation:  # too many steps for decimals
        reached = False
    if not reached:
        given = ":".join(map(number, (low, high, step)))
        raise ValueError(f"range of {name} must have ends and a step of fewer digits, got {given}")
    return last
