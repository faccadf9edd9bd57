"""Scenes of FairFraud: one transaction set by hand, and whole episodes of simple policies."""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core import Lanes, Step
from fair_envs.envs.fraud.rules import Fraud
from fair_envs.support.aliases import Floats, Ints

CUSTOMER, FRAUDSTER = 0, 100  # the first of each among the agents of the default start
EU, AS, NA, AF, OC, SA = range(6)

BESIDE = Path(__file__).parents[3] / "shared" / "specs" / "farel_appendix.json"  # beside the repository
APPENDIX = os.environ.get("FAIR_ENVS_FAREL_APPENDIX", str(BESIDE) if BESIDE.exists() else "")
needs_appendix = pytest.mark.skipif(
    not APPENDIX, reason="FAIR_ENVS_FAREL_APPENDIX must name a JSON file with the simulator's real tables"
)


@functools.cache
def real_tables() -> Any:
    """Return the simulator's real tables, which are not part of this package."""
    return json.loads(Path(APPENDIX).read_text("utf-8"))["multimaus"]


def scene(
    *, fraud: bool = False, lanes: int = 1, transaction: dict[str, Any] | None = None, **parameters: Any
) -> Lanes:
    """Return lanes in which the first customer or fraudster waits for a decision on this transaction."""
    batch = Lanes(Fraud(**parameters), lanes)
    batch.seed(0)
    batch.restart()
    ask(batch, fraud=fraud, transaction=transaction)
    return batch


def ask(batch: Lanes, *, fraud: bool = False, transaction: dict[str, Any] | None = None) -> None:
    """Let the first customer or fraudster of all lanes wait for a decision on this transaction."""
    agent = FRAUDSTER if fraud else CUSTOMER
    take_from_lists(batch.records, agent)
    batch.records["agent"], batch.records["fraud"], batch.records["waiting"] = agent, fraud, 1
    for name, value in (transaction or {}).items():
        if name in ("patience", "satisfaction", "owner", "country", "currency"):
            batch.records[name][:, agent] = value
        else:
            batch.records[name] = value


def take_from_lists(records: NDArray[np.void], agent: int) -> None:
    """Take an agent from the list of the hour in which it would pay next, and everybody from the queue."""
    following = records["next_agent"][:, agent].copy()[:, np.newaxis]
    for links in (records["first_agent"], records["next_agent"]):
        links[:] = np.where(links == agent + 1, following, links)
    records["queued"] = records["served"] = 0


def decide(batch: Lanes, action: int) -> Step:
    """Let every lane take the same decision."""
    return batch.advance(np.full((batch.count, 1), action))


class Episodes(NamedTuple):
    """What whole episodes of many lanes came to."""

    returns: Floats  # (B,)
    records: NDArray[np.void]  # (B,) at the end
    outcomes: Ints  # (B, 6, 5) how often, by continent and outcome

    @property
    def frauds(self) -> Ints:
        """How many frauds an episode had, shape (B,)."""
        return np.asarray(self.outcomes[..., 3:].sum(axis=(1, 2)))

    def here(self, kind: int) -> Ints:
        """Return how many customers (0) or fraudsters (1) are there at the end, shape (B,)."""
        return np.asarray(((self.records["here"] == 1) & (self.records["kind"] == kind)).sum(axis=1))


Policy = Callable[[NDArray[np.void], np.random.Generator], Any]
POLICIES: dict[str, Policy] = {
    "never": lambda records, luck: np.zeros(len(records), int),
    "always": lambda records, luck: np.ones(len(records), int),
    "random": lambda records, luck: luck.integers(0, 2, len(records)),
    "right": lambda records, luck: records["fraud"].astype(int),
}


def play(
    policy: str, *, lanes: int = 100, seed: int = 0, each: Callable[..., Any] | None = None, **parameters: Any
) -> Episodes:
    """Play one episode in every lane; ``each`` is called with the lanes and who is still playing before every step."""
    batch, luck = Lanes(Fraud(**parameters), lanes), np.random.default_rng(seed)
    batch.seed(1000 * seed)
    batch.restart()
    going, returns = np.ones(lanes, bool), np.zeros(lanes)
    while going.any():
        if each is not None:
            each(batch.records, going)
        actions = POLICIES[policy](batch.records, luck)[:, np.newaxis]
        played = batch.advance(actions, mask=going.copy())
        returns[going] += played.reward[going, 0]
        going &= ~(played.terminated | played.truncated)
    return Episodes(returns, batch.snapshot(), batch.records["outcomes"].astype(np.int64))
