"""The table of ids, and functions that create environments from it. Registering imports no environment."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import gymnasium as gym
import pettingzoo

from fair_envs.support.imports import PATH, module_of
from fair_envs.support.parameters import meant

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from fair_envs.core import Rules
    from fair_envs.faces.sb3 import Append, Infos


class Entry(NamedTuple):
    """Where an environment's interfaces are: a package with ``Env``, ``Vector`` and ``Parallel``."""

    module: str
    summary: str
    agents: bool = False  # whether there are several agents, of which a controller can play one


TABLE: dict[str, Entry] = {
    "FairHarvest-v0": Entry(
        "fair_envs.envs.harvest", "A harvest game in which some agents have half the turns.", agents=True
    ),
    "FairHiring-v0": Entry("fair_envs.envs.hiring", "A company decides on one applicant after another."),
    "FairFraud-v0": Entry(
        "fair_envs.envs.fraud", "Card payments of which some are frauds; checks drive customers away."
    ),
    "FairLending-v0": Entry("fair_envs.envs.lending", "A bank whose loans change the credit scores of two groups."),
    "FairAttention-v0": Entry(
        "fair_envs.envs.attention", "A few units are sent to locations where incidents happen more often unattended."
    ),
    "FairEpidemic-v0": Entry("fair_envs.envs.epidemic", "Vaccines against a disease in a social network."),
    "FairPursuit-v0": Entry(
        "fair_envs.envs.pursuit", "Pursuers who catch an evader together, on a torus.", agents=True
    ),
    "FairTraffic-v0": Entry(
        "fair_envs.envs.traffic",
        "Cars on their way through a city; those driven by people know less and react later.",
        agents=True,
    ),
    "FairCollege-v0": Entry(
        "fair_envs.envs.college", "A college publishes a threshold; applicants pay to reach it, some of them more."
    ),
}


def register(env_id: str, module: str, summary: str = "", agents: bool = False) -> None:
    """Register an environment with Gymnasium, PettingZoo and this package.

    Gymnasium also gets ``mo-ID``, with vector rewards, and with several agents ``focal-ID``, under focal control.

    Args:
        env_id: For example ``"FairHarvest-v0"``.
        module: Import path of the package with its interfaces: ``Env``, ``Vector``, ``Parallel``.
        summary: One sentence for lists.
        agents: Whether there are several agents, of which a controller can play one.

    Raises:
        ValueError: Another package already uses this id, or there is no such module.
    """
    known = TABLE.get(env_id)
    if known is not None and known.module != module:
        raise ValueError(f"id must be new, got {env_id!r}, which {known.module} already uses")
    _check_module(module)
    TABLE[env_id] = Entry(module, summary, agents)
    _register(env_id, TABLE[env_id])


def _check_module(module: str) -> None:
    """Raise ValueError if there is no such module; it is not imported, but the packages around it are."""
    try:
        exists = module in sys.modules or find_spec(module) is not None
    except ModuleNotFoundError:
        exists = False
    if not exists:
        wanted = "the import path of a package with Env, Vector and Parallel"
        raise ValueError(f"module must be {wanted}, got {module!r}, which does not exist")


def _register(env_id: str, entry: Entry) -> None:
    """Register the ids of an environment that are not registered yet, see `register`."""
    module, again = entry.module, env_id in gym.registry
    faces = {"entry_point": f"{module}:Env", "vector_entry_point": f"{module}:Vector"}
    vectors: dict[str, Any] = {
        "entry_point": "fair_envs.wrappers.registered:objectives_env",
        "vector_entry_point": "fair_envs.wrappers.registered:objectives_vector",
        "kwargs": {"module": module},
        "disable_env_checker": True,  # Gymnasium's check warns about vector rewards
    }
    ids: dict[str, dict[str, Any]] = {env_id: faces, f"mo-{env_id}": vectors}  # MO-Gymnasium's prefix
    if entry.agents:
        ids[f"focal-{env_id}"] = {**faces, "kwargs": {"control": "focal"}}
    for name, keywords in ids.items():
        if name not in gym.registry:
            gym.register(name, **keywords)
    if not again and hasattr(pettingzoo, "register"):  # PettingZoo 1.27 and later
        pettingzoo.register("parallel", env_id, entry_point=f"{module}:parallel_env")
        pettingzoo.register("aec", env_id, entry_point=f"{module}:env")


def register_all() -> None:
    """Register every id of the table."""
    for env_id, entry in TABLE.items():
        _register(env_id, entry)


def find(env_id: str) -> Entry:
    """Return the table's entry; errors are those of `known_id`."""
    return TABLE[known_id(env_id)]


def known_id(env_id: str) -> str:
    """Return an id as it is in the table; ``"module:Id-v0"`` imports the module that registers the id.

    Raises:
        ValueError: The id is unknown.
        ImportError: The module does not exist.
    """
    path, name = PATH.match(env_id), env_id
    if path is not None:  # nothing else is imported, because `refuse_stored_paths` finds only such texts in files
        module_of(path.group())
        name = env_id.partition(":")[2]
    if name not in TABLE:
        raise ValueError(f"id must be one of {', '.join(sorted(TABLE))}, got {env_id!r}{meant(name, TABLE)}")
    return name


def id_of(rules: "Rules") -> str:
    """Return the id with which rules are registered; the name of their class if they are not."""
    module = type(rules).__module__
    found = (name for name, entry in TABLE.items() if module == entry.module or module.startswith(f"{entry.module}."))
    return next(found, type(rules).__name__)


def make_rules(env_id: str, **parameters: Any) -> "Rules":
    """Return the rules of an environment with these parameters; ``variant`` selects among its rules.

    Raises:
        ValueError: The id is unknown, or a value is outside its range.
        TypeError: A parameter is unknown.
    """
    from fair_envs.core import variant_of

    return variant_of(importlib.import_module(find(env_id).module).Env.rules, parameters)


def make_sb3(
    env_id: str,
    *,
    n_envs: int = 8,
    rows: Literal["agents", "lanes"] = "agents",
    seed: int | None = None,
    threads: int = 1,
    render_mode: str | None = None,
    append: "Append" = None,
    append_group: bool = False,
    reward_scale: float = 1.0,
    infos: "Infos" = "episode",
    worlds: Sequence[Mapping[str, Any]] | None = None,
    **parameters: Any,
) -> "VecEnv":
    """Return the environment as a Stable-Baselines3 `VecEnv`.

    Args:
        env_id: For example ``"FairHarvest-v0"``, or ``"my_package:MyEnv-v0"``.
        n_envs: Number of lanes (B).
        rows: ``"agents"``: one row for each agent, B x agents in total, with shared parameters; ``"lanes"``: one row
            for each lane, whose controller plays all agents.
        seed: Lane i is seeded ``seed + i``.
        threads: Number of threads that share the lanes.
        render_mode: ``"rgb_array"`` or None.
        append: What is appended to observations, ``"group"``, ``"agent"`` (the agent's index) or None, see
            `fair_envs.faces.sb3.AgentsVecEnv`; only for rows of agents.
        append_group: True is ``append="group"``.
        reward_scale: Factor by which the learner's rewards are multiplied.
        infos: What the rows' info dictionaries contain: ``"episode"``: at the ends of episodes, what
            Stable-Baselines3 logs as ``rollout/ep_rew_mean``. ``"record"``: also the record of each step, for your
            own callbacks; that takes time. ``"ends"``: neither. See `fair_envs.faces.sb3.LanesVecEnv`.
        worlds: The parameters of several worlds with common random numbers, ``n_envs`` lanes each; for example
            ``[{"sensitive_fraction": 0.0}, {"sensitive_fraction": 1.0}]``. Only for rows of agents.
        parameters: The environment's parameters.

    Raises:
        ImportError: Stable-Baselines3 is not installed.
        ValueError: The id or the kind of rows is unknown, or a value is outside its range.
    """
    from fair_envs.core import check_batch, check_count
    from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv

    check_count("n_envs", n_envs)
    if rows not in ("agents", "lanes"):
        raise ValueError(f"rows must be 'agents' or 'lanes', got {rows!r}")
    listed = isinstance(worlds, Sequence) and all(isinstance(world, Mapping) for world in worlds)
    if worlds is not None and not (listed and worlds):
        raise ValueError(f"worlds must list the parameters of each world, got {worlds!r}")
    vec_env: LanesVecEnv
    if rows == "agents":
        alternatives = [make_rules(env_id, **{**parameters, **world}) for world in worlds or ({},)]
        check_batch("n_envs", n_envs, alternatives[0])
        vec_env = AgentsVecEnv(
            alternatives[0] if worlds is None else alternatives,
            n_envs,
            threads=threads,
            render_mode=render_mode,
            append=append,
            append_group=append_group,
            reward_scale=reward_scale,
            infos=infos,
        )
    else:
        if worlds is not None or append is not None or append_group:
            raise ValueError("worlds, append and append_group need rows='agents', got rows='lanes'")
        rules = make_rules(env_id, **parameters)
        check_batch("n_envs", n_envs, rules)
        vec_env = LanesVecEnv(
            rules, n_envs, threads=threads, render_mode=render_mode, reward_scale=reward_scale, infos=infos
        )
    vec_env.seed(seed)
    return vec_env
