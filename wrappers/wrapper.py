"""The base class of all wrappers, which adapts to the interface of the environment."""

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
from gymnasium.vector import VectorEnv
from pettingzoo import AECEnv, ParallelEnv

from fair_envs.wrappers.adapters.bound import face_of
from fair_envs.wrappers.adapters.parallel import ParallelAdapter
from fair_envs.wrappers.adapters.single import SingleAdapter
from fair_envs.wrappers.adapters.vector import VectorAdapter
from fair_envs.wrappers.transform import Transform

if TYPE_CHECKING:
    Interface: TypeAlias = Any  # a wrapper has all attributes of its environment
else:
    Interface = object


class Wrapper(Interface):  # type: ignore[misc]
    """Apply a transform to an environment of any interface: ``Wrapper(env, transform)``.

    Subclasses have their own names and arguments, such as ``FairnessPenalty(env, alpha=1.0)``. Their instances are also
    wrappers of the environment's library, for example a `gymnasium.Wrapper`: `__new__` derives a class of the same name
    from the wrapper and the adapter of the environment's interface.

    Apply wrappers directly to the environment or to each other, below wrappers of other libraries that change
    observations or rewards. A user's own Gymnasium environment, or a vector environment of several, can be wrapped if
    its ``info`` contains the record and it, or one of its wrappers, has an attribute ``fair_spec`` with the `FairSpec`:
    `fair_envs.wrappers.Annotate` adds both. It counts as one decision-maker in one lane; transforms that need the rules
    reject it.

    Args:
        env: An environment of this package with any interface, wrapped or not; or a user's own environment.
        transform: The transform; it is copied, so one transform can be used for many environments.

    Raises:
        TypeError: The environment has none of the interfaces, and no ``fair_spec``.
        ValueError: The environment lacks something that the transform needs.
    """

    def __new__(cls, env: Any, *args: Any, **settings: Any) -> "Wrapper":
        """Return a wrapper that fits the environment's interface, not initialised yet."""
        made: Wrapper = _blank(cls, adapter_of(env))
        if isinstance(env, gym.Env):
            made._given = args, settings  # the spec needs them to make the wrapper again
        return made

    def __init__(self, env: Any, transform: Transform) -> None:
        if not isinstance(transform, Transform):
            raise TypeError(
                f"transform must be an instance of a Transform, such as Penalty(alpha=1.0), got {transform!r}"
            )
        super().__init__(env, transform)  # of the adapter

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return what a copy is made from: the class cannot be imported by name, but its two bases can."""
        _, _, *state = super().__reduce_ex__(protocol)
        return _blank, type(self).__bases__, *state


def _blank(wrapper: Any, adapter: Any) -> Any:
    """Return a wrapper on the interface of an adapter, not initialised yet."""
    return object.__new__(_joined(wrapper, adapter))


@functools.cache
def _joined(wrapper: Any, adapter: Any) -> Any:
    """Return the class of a wrapper on the interface of an adapter; it has the wrapper's name."""
    own = {name: getattr(wrapper, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(wrapper.__name__, (wrapper, adapter), own)


def adapter_of(env: Any) -> type[Any]:
    """Return the adapter of an environment's interface.

    Raises:
        TypeError: The environment has none of the interfaces, and no ``fair_spec``.
    """
    if isinstance(env, AECEnv):
        raise TypeError(
            f"env must be a parallel environment, got {env}; wrap the parallel environment and convert the result with "
            "pettingzoo.utils.conversions.parallel_to_aec"
        )
    face_of(env)
    if isinstance(env, gym.Env):
        return SingleAdapter
    if isinstance(env, VectorEnv):
        return VectorAdapter
    if isinstance(env, ParallelEnv):
        return ParallelAdapter
    from fair_envs.wrappers.adapters.sb3 import SB3Adapter

    return SB3Adapter
