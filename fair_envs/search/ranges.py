"""Ranges of parameters: from texts of the command line or tables of a TOML file, checked against the environment."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, get_args, get_origin

from fair_envs.parameters import checked, value_of

SEPARATOR = "|"  # between options, on the command line
MOST_WHOLE = 2**53  # Optuna keeps whole numbers as floating-point ones, exact as far as this


@dataclass(frozen=True, kw_only=True)
class Between:
    """Numbers from one to another, both included.

    Attributes:
        low: The least.
        high: The largest; with a step, the largest that it reaches.
        step: Between two of them; None: every number, of whole ones every whole one.
        log: Whether equal ratios are equally likely, in place of equal differences.
        whole: Whether they are whole numbers.
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        """Return it as on the command line."""
        more = ["log"] if self.log else [] if self.step is None else [number(self.step)]
        return ":".join([number(self.low), number(self.high), *more])

    def distribution(self) -> Any:
        """Return it as Optuna's distribution."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return IntDistribution(int(self.low), int(self.high), step=step, log=self.log)
        return FloatDistribution(self.low, self.high, step=self.step, log=self.log)

    def value(self, suggested: Any) -> Any:
        """Return what Optuna suggests as the parameter's value.

        Raises:
            ValueError: It is outside of the range: nobody suggested it.
        """
        if isinstance(suggested, bool) or not isinstance(suggested, int | float) or self.suggestion(suggested) is None:
            raise ValueError(f"storage must hold values of the range {self}, got {suggested!r}")
        return suggested

    def suggestion(self, value: Any) -> Any:
        """Return what Optuna would have to suggest for a value; None if it cannot."""
        fits = self.low <= value <= self.high
        if fits and self.step is not None:
            steps = (value - self.low) / self.step
            fits = abs(steps - round(steps)) < 1e-9
        return value if fits else None


@dataclass(frozen=True, kw_only=True)
class Options:
    """Some values.

    Attributes:
        options: Which.
    """

    options: tuple[Any, ...]

    def __str__(self) -> str:
        """Return it as on the command line; a number alone has the separator behind it."""
        first = self.options[0]
        alone = len(self.options) == 1 and isinstance(first, int | float) and not isinstance(first, bool)
        return SEPARATOR.join(map(label, self.options)) + SEPARATOR * alone

    def distribution(self) -> Any:
        """Return it as Optuna's distribution, of labels."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution([label(option) for option in self.options])

    def value(self, suggested: Any) -> Any:
        """Return the option of that label.

        Raises:
            ValueError: There is none: nobody suggested it.
        """
        found = [option for option in self.options if label(option) == suggested]
        if not found:
            raise ValueError(f"storage must hold values of the range {self}, got {suggested!r}")
        return found[0]

    def suggestion(self, value: Any) -> Any:
        """Return the label of a value; None if it is no option."""
        own = label(value)
        return own if own in map(label, self.options) else None


Dimension = Between | Options


def number(value: float) -> str:
    """Return a number as the shortest text that is read as the same one."""
    return repr(value).removesuffix(".0")


def label(option: Any) -> str:
    """Return an option as a text: a list's parts with commas between them, nothing for an empty one."""
    if isinstance(option, list | tuple):
        return ",".join(map(label, option))
    return str(option).lower() if isinstance(option, bool) else str(option)


def range_of(name: str, given: Any, kind: Any) -> Dimension:
    """Return the range of a parameter.

    Args:
        name: The parameter's.
        given: A text, ``LOW:HIGH``, ``LOW:HIGH:STEP``, ``LOW:HIGH:log`` or ``OPTION|OPTION|...``, where an option of
            several parts has commas between them and may be empty, and a number alone is ``NUMBER|``; a mapping with
            ``low``, ``high`` and perhaps ``step`` or ``log``; or a list of options.
        kind: What the environment lets the parameter be.

    Raises:
        ValueError: No range, a low end above the high one, a value that the parameter cannot have, or what Optuna could
            not draw from.
    """
    if isinstance(given, str):
        given = _read(name, given, kind)
    if isinstance(given, Mapping):
        return _between(name, dict(given), kind)
    if isinstance(given, Sequence) and given:
        return _among(name, given, kind)
    raise ValueError(f"range of {name} must be LOW:HIGH, options or a table with low and high, got {given!r}")


def check_drawable(name: str, dimension: Dimension) -> None:
    """Raise ValueError if Optuna refuses a parameter's range."""
    try:
        dimension.distribution()
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"range of {name} must be one that Optuna draws from, got {dimension}: {error}") from error


def _read(name: str, text: str, kind: Any) -> Any:
    """Return what a text says, as data."""
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
    """Return options that the parameter can have, and that their labels tell apart."""
    found = Options(options=tuple(checked(name, option, kind) for option in given))
    if len({*found.options}) < len(given) or len({*map(label, found.options)}) < len(given):
        raise ValueError(f"range of {name} must name each option once, got {found}")
    if tuple(checked(name, option, kind) for option in _read(name, str(found), kind)) != found.options:
        raise ValueError(
            f"range of {name} must have options that can be told apart as texts, got {found}: in one is {SEPARATOR!r}, "
            "or in a part of one a comma or nothing"
        )
    return found


def _between(name: str, given: dict[Any, Any], kind: Any) -> Between:
    """Return numbers between two ends, which the parameter can have."""
    bare = _bare(kind)
    if bare not in (int, float):
        raise ValueError(f"range of {name} must list options, got {given}: it is no number")
    if not {"low", "high"} <= set(given) <= {"low", "high", "step", "log"}:
        told = ", ".join(map(str, given)) or "nothing"
        raise ValueError(f"range of {name} must have low and high, perhaps step or log, got {told}")
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
    """Return the ends of a range, which the parameter can have and Optuna can draw between."""
    low, high = checked(name, given["low"], kind), checked(name, given["high"], kind)
    if low > high:
        raise ValueError(f"range of {name} must have its low end first, got {number(low)} above {number(high)}")
    if _bare(kind) is int and max(-low, high) > MOST_WHOLE:
        raise ValueError(f"range of {name} must lie between {-MOST_WHOLE} and {MOST_WHOLE}, got {low}:{high}")
    if math.isinf(high - low):
        raise ValueError(f"range of {name} must have ends whose difference is finite, got {number(low)}:{number(high)}")
    return low, high


def _last(name: str, low: float, high: float, step: float) -> float:
    """Return the largest number that steps reach; as decimals, which is how Optuna counts them."""
    first, each = Decimal(repr(low)), Decimal(repr(step))
    try:
        last = float((Decimal(repr(high)) - first) // each * each + first)
        reached = (Decimal(repr(last)) - first) % each == 0
    except InvalidOperation:  # more steps than decimals can count
        reached = False
    if not reached:
        given = ":".join(map(number, (low, high, step)))
        raise ValueError(f"range of {name} must have ends and a step of fewer digits, got {given}")
    return last
