"""Random valid parameters of an environment, drawn from the ranges of its fields."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numba
import numpy as np

from fair_envs.core import Rules, variant_of
from fair_envs.core.interactions import facts_dtype
from fair_envs.support.parameters import Range

MOST = 1e6
"""Largest value drawn for a range without an end, or ten times the default if that is more."""

LARGEST = 2**16
"""Largest size in bytes of a lane with its record and observations, or twice the default; larger is too slow."""

SHORT = 60  # steps of most horizons, so that episodes end

Given = Mapping[str, Any]


class DrawError(Exception):
    """Raised if parameters within their ranges raise anything but a ValueError that names one of them."""

    def __init__(self, given: Given, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.given = dict(given)


class Drawer:
    """Draws parameters of an environment's rules, or of a variant of them.

    Args:
        rules: The class of rules that the interfaces use.
        variant: One of its variants, or None.
    """

    def __init__(self, rules: type[Rules], variant: str | None) -> None:
        self._rules = rules
        self.base: dict[str, Any] = {} if variant is None else {"variant": variant}
        own = rules if variant is None else rules.variants[variant]
        self.fields = get_type_hints(own.Params, include_extras=True)
        self._defaults: Given = own.Params._field_defaults  # type: ignore[attr-defined]
        self._largest = max(LARGEST, 2 * size(variant_of(rules, self.base)))

    def anew(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters of any layout."""
        return self._changed(self.base, rng, lambda rules: True)

    def alike(self, base: Given, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters whose lanes have the same layout as `base`, so that nothing is compiled again."""
        known = layout(variant_of(self._rules, base))
        return self._changed(base, rng, lambda rules: layout(rules) == known)

    def rules(self, given: Given) -> Rules | None:
        """Return the rules with these parameters, or None if they are incompatible or the lanes are too large.

        Raises:
            DrawError: The parameters raise anything but a ValueError that names one of them.
        """
        try:
            rules = variant_of(self._rules, given)
            return rules if size(rules) <= self._largest else None
        except Exception as error:
            if isinstance(error, ValueError) and any(name in str(error) for name in self.fields):
                return None
            raise DrawError(given, error) from error

    def _changed(self, base: Given, rng: np.random.Generator, fits: Callable[[Rules], bool]) -> dict[str, Any]:
        """Return the parameters with a random subset of them changed, as far as the rules accept it."""
        share = rng.choice([0.0, 0.1, 0.3, 1.0])
        names = [name for name in self.fields if rng.random() < (0.8 if name == "horizon" else share)]
        changes = {name: self._value(name, rng) for name in rng.permutation(names).tolist()}

        def accepted(given: Given) -> bool:
            rules = self.rules(given)
            return rules is not None and fits(rules)

        return most_of(dict(base), changes, accepted)

    def _value(self, name: str, rng: np.random.Generator) -> Any:
        if name == "horizon" and rng.random() < 0.7:
            return int(rng.integers(1, SHORT + 1))
        return draw(self.fields[name], self._defaults.get(name), rng)


def most_of(base: dict[str, Any], changes: Given, accepted: Callable[[Given], bool]) -> dict[str, Any]:
    """Return the base with the accepted changes: all of them, or the accepted ones of each half."""
    if not changes or accepted({**base, **changes}):
        return {**base, **changes}
    if len(changes) == 1:
        return base
    listed = list(changes.items())
    for half in (listed[: len(listed) // 2], listed[len(listed) // 2 :]):
        base = most_of(base, dict(half), accepted)
    return base


def draw(kind: Any, default: Any, rng: np.random.Generator) -> Any:
    """Return a random value of a field's type; a text, which has no declared range, keeps its default."""
    origin = get_origin(kind)
    if origin is Literal:
        return str(rng.choice(get_args(kind)))
    if origin is Sequence:
        (of,) = get_args(kind)
        return default if of is str else tuple(draw(of, None, rng) for _ in range(rng.integers(0, 5)))
    if kind is bool:
        return bool(rng.random() < 0.5)
    if kind is str:
        return default
    kind, bounds = get_args(kind) if origin is Annotated else (kind, Range())
    number = _number(bounds, 0 if default is None else default, rng)
    return round(number) if kind is int else float(number)


def _number(bounds: Range, default: float, rng: np.random.Generator) -> float:
    """Return an end of the range, a number near the default, or one from anywhere in the range, often a small one."""
    most = max(MOST, 10 * abs(default))
    low, high = max(bounds.low, -most), min(bounds.high, most)
    how = rng.random()
    if how < 0.15:
        return low if how < 0.075 else high
    if how < 0.5 and default:
        number = default * 10 ** rng.uniform(-1, 1)
    elif how < 0.75:
        number = rng.uniform(low, high)
    else:
        number = low + (high - low) * 10 ** -rng.uniform(0, 6)
    return float(min(max(number, low), high))


def size(rules: Rules) -> int:
    """Return the size in bytes of one lane, its record and its agents' observations."""
    space = rules.observation_space(rules.params)
    seen = rules.agents(rules.params) * int(np.prod(space.shape or ())) * (space.dtype or np.dtype(float)).itemsize
    return rules.dtype.itemsize + facts_dtype(rules.spec).itemsize + seen


def layout(rules: Rules) -> Any:
    """Return the key of compiled loops: rules of equal layouts share machine code."""
    spec = rules.spec
    spaces = (rules.observation_space(rules.params), rules.action_space(rules.params))
    seen = [(space.dtype, len(space.shape or ())) for space in spaces]
    codes = [len(names) for names in (*spec.sensitive.values(), *spec.legitimate.values())]
    history = spec.actions, spec.individuals, int(np.prod(codes))
    given = numba.typeof(rules.code)  # type: ignore[no-untyped-call]
    return type(rules), rules.dtype, given, facts_dtype(spec), *seen, history


__all__ = ["DrawError", "Drawer", "draw", "layout", "most_of", "size"]
