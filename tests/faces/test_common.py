"""How a caller's actions are checked, few of them and many."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.faces.common import ActionCheck
from tests.toys import Countdown

BOX = gym.spaces.Box(np.array([-1, 0], np.float32), np.array([1, 5], np.float32))


def check_of(space: gym.Space[Any]) -> ActionCheck:
    """Return the check of actions that lie in a space."""

    class Own(Countdown):
        def action_space(self, params: Any) -> Any:
            return space

    return ActionCheck(Own())


@pytest.mark.parametrize("agents", [1, 9])
@pytest.mark.parametrize("odd", [(-1.5, -0.5), (1.5, 5.5), (np.nan, np.nan), (np.inf, -np.inf)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_number_outside_is_found_wherever_it_is(agents: int, odd: tuple[float, float], kind: Any) -> None:
    check, shape = check_of(BOX), (agents, 2)
    good = np.full(shape, 0.5, kind)
    assert check(good, shape=shape).tolist() == good.tolist()
    for agent in range(agents):
        for entry, number in enumerate(odd):
            bad = good.copy()
            bad[agent, entry] = number
            with pytest.raises(ValueError, match=f"action must be between -1 and 5, got {number}"):
                check(bad, shape=shape)


@pytest.mark.parametrize("numbers", [1, 17])
def test_a_whole_number_that_double_precision_rounds_is_compared_in_it(numbers: int) -> None:
    """Python compares integers with floats exactly, NumPy in double precision, as the rules get them."""
    largest = 2.0**60
    check = check_of(gym.spaces.Box(-largest, largest, (numbers,), np.float64))
    assert check(np.full(numbers, 2**60 + 1), shape=(numbers,)).tolist() == [largest] * numbers
    with pytest.raises(ValueError, match="action must be between"):
        check(np.full(numbers, 2**61), shape=(numbers,))


@pytest.mark.parametrize("agents", [2, 16])
def test_bounds_belong_to_their_entries_and_are_within(agents: int) -> None:
    check, shape = check_of(BOX), (agents, 2)
    for edge in (BOX.low, BOX.high):
        assert check([edge] * agents, shape=shape).tolist() == [edge.tolist()] * agents
    with pytest.raises(ValueError, match="got 5"):
        check([BOX.high[::-1]] * agents, shape=shape)


@pytest.mark.parametrize("agents", [2, 16])
@pytest.mark.parametrize("kind", [np.asarray, list, tuple])
def test_what_is_played_is_nobody_elses(agents: int, kind: Any) -> None:
    """A caller may write into its own array while the step is played."""
    check, shape = check_of(BOX), (agents, 2)
    given = np.full(shape, 0.5, np.float32)
    played = check(kind(given), shape=shape)
    assert played.dtype == np.float32 and played.flags.c_contiguous and not np.shares_memory(played, given)
    assert check(kind(given.astype(np.float64)), shape=shape).dtype == np.float32


@pytest.mark.parametrize("odd", [-1, 3, 2**63 - 1])
@pytest.mark.parametrize("agents", [1, 17])
def test_choices_are_checked_exactly(agents: int, odd: int) -> None:
    check, shape = check_of(gym.spaces.Discrete(3)), (agents,)
    assert check([2] * agents, shape=shape).tolist() == [2] * agents
    with pytest.raises(ValueError, match=f"action must be between 0 and 2, got {odd}"):
        check([2] * (agents - 1) + [odd], shape=shape)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint32, np.uint64])
def test_whole_numbers_of_any_kind_are_choices(kind: Any) -> None:
    check = check_of(gym.spaces.Discrete(3))
    played = check(np.array([0, 2], kind), shape=(2,))
    assert played.dtype == np.int64 and played.tolist() == [0, 2]
    with pytest.raises(ValueError, match="action must be between 0 and 2, got 100"):
        check(np.array([0, 100], kind), shape=(2,))


@pytest.mark.parametrize("agents", [2, 21])
@pytest.mark.parametrize("change", ["none", "read only", "strided", "int32"])
def test_actions_to_be_used_at_once_are_copied_only_if_rules_cannot_take_them(agents: int, change: str) -> None:
    check = check_of(gym.spaces.Discrete(3))
    given = (np.arange(agents) % 3).astype(np.int32 if change == "int32" else np.int64)
    given = np.repeat(given, 2)[::2] if change == "strided" else given
    given.flags.writeable = change != "read only"
    found = check(given, shape=(agents,), copy=False)
    assert found.flags.carray and found.dtype == np.int64 and np.array_equal(found, given)
    assert (found is given) == (change == "none")
    assert check(given, shape=(agents,)) is not given
