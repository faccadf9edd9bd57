"""Hashes of games, short trainings and evaluations, to show that a change of the code's structure alters no number.

``python -m tests.hashes`` plays and trains again and compares with ``tests/hashes.json``; ``--write`` makes that file
anew. Hashes depend on the processor and on the versions of NumPy, Numba and PyTorch, so compare on one machine: write
the file before a change, and run the comparison after it. They are no tests, which hold on every machine.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs import TABLE
from fair_envs.baselines.runs import read_weights
from fair_envs.support.imports import imported
from fair_envs.support.progress import progress_bar
from fair_envs.testing.cases import Case
from fair_envs.testing.parameters import Drawer
from fair_envs.testing.players import OF_LANES, PLAYERS, World, interfaces, rules_of
from tests.baselines.kills import ALGORITHMS, HARVEST, LENDING, PURSUIT, Training
from tests.evaluations import EVALUATIONS
from tests.helpers import CLOCK

FILE = Path(__file__).with_suffix(".json")
LANES, STEPS, SEED = 8, 300, 7
ENDING = 40  # steps: a horizon within which episodes end
LONG_TERM, AGENTS, TEAM = ALGORITHMS["f-ppo"], ALGORITHMS["ppo"], ALGORITHMS["fair-er"]
TRAININGS: Mapping[str, Training] = {
    **ALGORITHMS,
    **{
        f"long-term {name}": LONG_TERM._replace(values={**LENDING, "algorithm": name})
        for name in ("ppo", "a-ppo", "f-ppo-l", "f-ppo-s", "ppo-lagrangian")
    },
    "sb3-ppo": AGENTS._replace(values={**HARVEST, "algorithm": "sb3-ppo"}),
    **{
        f"fair-ppo {penalty}": AGENTS._replace(
            values={**HARVEST, "algorithm": "fair-ppo", "beta": 0.5, "penalty": penalty}
        )
        for penalty in ("csp", "cf")
    },
    "fair-er measured": TEAM._replace(values={**PURSUIT, "algorithm": "fair-er"}),
}


# ---------------------------------------------------------------------------------------------------------- games


def parameter_sets(env_id: str, count: int = 5) -> list[dict[str, Any]]:
    """Return parameters: the defaults of each variant, some of the same layout, and some of any."""
    rules = rules_of(env_id)
    assert rules is not None
    drawers = [Drawer(rules, variant) for variant in (None, *rules.variants)]
    found = [drawer.base for drawer in drawers]
    for number in range(count - len(found)):
        drawer, rng = drawers[number % len(drawers)], np.random.default_rng([SEED, number])
        given = drawer.alike(drawer.base, rng) if number < count // 2 else drawer.anew(rng)
        found.append({**given, "horizon": ENDING} if "horizon" in given else given)
    return found


def game(case: Case) -> str:
    """Return the hash of all that an interface returns in some steps of random actions."""
    world = World(case)
    player = PLAYERS[case.interface](world)
    found = sha256()
    rng = np.random.default_rng(case.seed)
    absorb(found, player.reset(seed=case.seed)[0])
    world.agent_space.seed(case.seed)
    for _ in range(case.calls):
        if player.over.all() and case.interface not in OF_LANES:
            absorb(found, player.reset()[0])
        if player.resets and player.over.any():
            absorb(found, player.reset(mask=player.over.copy())[0])
        actions = np.stack([[world.agent_space.sample() for _ in range(world.agents)] for _ in range(player.lanes)])
        absorb(found, player.step(actions)[0])
        if not rng.integers(40):
            absorb(found, player.reset(seed=int(rng.integers(2**31)))[0])
    return found.hexdigest()[:16]


def absorb(found: Any, thing: Any) -> None:
    """Add values with their types and shapes to a hash, whatever the order of keys."""
    if isinstance(thing, Mapping):
        for key in sorted(thing):
            found.update(str(key).encode())
            absorb(found, thing[key])
    elif isinstance(thing, np.ndarray) and thing.dtype.names:
        for name in sorted(thing.dtype.names):
            found.update(name.encode())
            absorb(found, thing[name])
    elif isinstance(thing, np.ndarray) and thing.dtype != object:
        found.update(f"{thing.dtype.str}{thing.shape}".encode())
        found.update(np.ascontiguousarray(thing).tobytes())
    elif isinstance(thing, (list, tuple, np.ndarray)):
        for part in thing:
            absorb(found, part)
    else:
        found.update(f"{type(thing).__name__} {thing!r}".encode())


# ------------------------------------------------------------------------------------------------------ trainings


def training(one: Training) -> str:
    """Return the hash of the weights and metrics that a training ends with, whatever they are called."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run")
        imported(one.train)(imported(one.settings)(**one.values), out=out)
        tensors = sorted(hash_of(tensor) for tensor in tensors_in(read_weights(out / "checkpoint.pt")))
        rows = json.loads((out / "metrics.json").read_text())
    numbers = [sorted(repr(v) for name, v in row.items() if name not in CLOCK) for row in rows]
    return sha256(json.dumps([tensors, numbers]).encode()).hexdigest()[:16]


def tensors_in(thing: Any) -> Iterator[Any]:
    """Yield the tensors of floating-point numbers in a structure: weights, moments and buffers."""
    if isinstance(thing, Mapping):
        thing = list(thing.values())
    if isinstance(thing, (list, tuple)):
        for part in thing:
            yield from tensors_in(part)
    elif hasattr(thing, "is_floating_point") and thing.is_floating_point() and thing.ndim:
        yield thing.numpy()


def hash_of(thing: Any) -> str:
    """Return the hash of one array."""
    found = sha256()
    absorb(found, thing)
    return found.hexdigest()


# ---------------------------------------------------------------------------------------------------- evaluations


def evaluation(one: Callable[[Path], Iterator[Any]]) -> str:
    """Return the hash of what an evaluation finds."""
    found = sha256()
    with tempfile.TemporaryDirectory() as folder:
        for part in one(Path(folder)):
            absorb(found, part)
    return found.hexdigest()[:16]


# ----------------------------------------------------------------------------------------------------- the command


def measured(parameters: Mapping[str, list[dict[str, Any]]], *, only: str) -> dict[str, str]:
    """Return the hash of every game, training and evaluation whose name contains a text."""
    games = {
        f"{env_id} {interface} {number}": Case(
            env_id=env_id,
            interface=interface,
            parameters=given,
            lanes=LANES if interface in OF_LANES else 1,
            seed=SEED + number,
            calls=STEPS,
        )
        for env_id, sets in parameters.items()
        for number, given in enumerate(sets)
        for interface in interfaces(ruled=True)
    }
    found: dict[str, str] = {}
    names = [name for name in (*games, *TRAININGS, *EVALUATIONS) if only in name]
    with progress_bar("playing", total=len(names)) as advance:
        for name in names:
            try:
                if name in EVALUATIONS:
                    found[name] = evaluation(EVALUATIONS[name])
                else:
                    found[name] = game(games[name]) if name in games else training(TRAININGS[name])
            except ValueError as error:  # an interface that is not for this environment says so
                found[name] = f"refused: {error}"
            advance()
    return found


def main() -> int:
    """Write or compare; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write tests/hashes.json anew")
    parser.add_argument("--only", default="", metavar="TEXT", help="those with this in their name")
    given = parser.parse_args()
    if given.write:
        parameters = {env_id: parameter_sets(env_id) for env_id in TABLE}
        content = {"parameters": parameters, "hashes": measured(parameters, only=given.only)}
        FILE.write_text(json.dumps(content, indent=1) + "\n")
        return 0
    known = json.loads(FILE.read_text())
    found = measured(known["parameters"], only=given.only)
    differ = [name for name, value in found.items() if known["hashes"].get(name) != value]
    print(f"{len(found) - len(differ)} of {len(found)} hashes are the same")
    for name in differ:
        print(f"{name}: {known['hashes'].get(name)} before, {found[name]} now")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
