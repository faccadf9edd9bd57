"""Every registered id, and every variant of it, keeps every promise."""

from collections.abc import Iterator

import gymnasium as gym
import pytest

import fair_envs
from fair_envs.testing.contract import rules
from fair_envs.testing.contract.record import *  # noqa: F403
from fair_envs.testing.contract.rules import *  # noqa: F403
from tests.helpers import TOYS, kinds, uncompiled

# What the fuzzer plays is in tests/testing/test_every_id.py.
uncompiled(rules.test_a_history_takes_in_its_episodes_and_refuses_notions_that_say_nothing)
pytest.mark.nojit(rules.test_all_interfaces_play_the_same_episode)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each promise on each environment."""
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", kinds(), ids=str)


@pytest.fixture(scope="module", autouse=True)
def toys() -> Iterator[None]:
    """Have the toys registered while these tests run."""
    for env_id, module in TOYS.items():
        fair_envs.register(env_id, module)
    yield
    for env_id in TOYS:
        del fair_envs.TABLE[env_id], gym.registry[env_id]


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(ValueError, match=r"id must be one of .*, got 'FairHarves-v0'; did you mean 'FairHarvest-v0'\?"):
        fair_envs.make_rules("FairHarves-v0")
    with pytest.raises(gym.error.Error, match="FairHarvest"):
        gym.make("FairHarves-v0")
