"""What was compiled is kept on disk, and never loaded after anything it was made from has changed."""

import hashlib
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit

import fair_envs
from fair_envs.core import compilation
from fair_envs.core.compilation import COMPILED, cache_folder, inlined, record_of, rule, unowned
from fair_envs.envs.harvest.rules import Harvest
from tests.forks import Forks, forks

PACKAGE = Path(fair_envs.__file__).parent

CONSTANTS = "STRIDE = 3\n"
ELSEWHERE = """
from fair_envs.core import inlined, rule

@rule
def base():
    return 4

@inlined
def bonus():
    return base() + 1
"""
RULES = '''
import sys
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import numba
from numba import njit

from fair_envs.core.randomness import integer
from fair_envs.core import Lanes, Rules, rule
from fair_envs.core.interactions import FairSpec

from constants import STRIDE
from elsewhere.deep import bonus


class Params(NamedTuple):
    horizon: int = 5


@rule
def start(lane, params):
    lane.position = 0


@rule
def step(lane, action, params, reward, facts):
    lane.position += bonus() + STRIDE * (1 + action[0]) + integer(lane.key, lane.time, 0, 0, 1000)
    return False


@rule
def observe(lane, params, observation):
    observation[0, 0] = lane.position


@njit
def describe(lane, params, facts):
    pass


class Walk(Rules):
    name, Params = "walk", Params
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def lane(self, params):
        return [("position", np.int64)]

    def fair_spec(self, params):
        return FairSpec(individuals=1, actions=2, features=(), sensitive={}, groups=())

    def observation_space(self, params):
        return gym.spaces.Box(0, 1e6, (1,))

    def action_space(self, params):
        return gym.spaces.Discrete(2)


def play(rules):
    """Return where a walk with seed 0 has come to after two steps."""
    lanes = Lanes(rules, 1)
    lanes.seed(0)
    lanes.restart()
    for _ in range(2):
        lanes.advance(np.zeros((1, 1), np.int64))
    return int(lanes.records["position"][0])
'''
POSITION = 991
PLAY = "from walk import *\nprint(play(Walk()))\n"
COUNT_HITS = """
from fair_envs.core import kernels
print(sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels(Walk).values()))
"""
FILL_THE_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""


Run = Callable[..., str]


@pytest.fixture(scope="module", name="forks")
def ready() -> Iterator[Forks]:
    """Yield processes that have imported what the package needs, but nothing of the package."""
    with forks("numba", "gymnasium", "pettingzoo", "scipy.special", options=("-W", "error")) as found:
        yield found


def environment_of(world: Path, **changes: str) -> dict[str, str]:
    """Return the environment of programs that use a folder's copy of the package."""
    known = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    settings = {"PYTHONPATH": str(world), "PYTHONDONTWRITEBYTECODE": "1", "FAIR_ENVS_CACHE": str(world / "cache")}
    return {**known, **settings, **changes}


def runner(world: Path, forks: Forks) -> Run:
    """Return a function that returns what a program prints in a process of its own, with changes of the environment."""

    def run(program: str = PLAY, *arguments: str, **changes: str) -> str:
        done = forks.run(program, *arguments, folder=world, environment=environment_of(world, **changes))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture(scope="module")
def played(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package, a toy environment outside it, and a cache of what it compiled."""
    world = tmp_path_factory.mktemp("played") / "world"
    ignored = shutil.ignore_patterns("__pycache__", "wrappers", "baselines", "metrics", "reproduction")
    shutil.copytree(PACKAGE, world / "fair_envs", ignore=ignored)
    (world / "walk.py").write_text(RULES)
    (world / "constants.py").write_text(CONSTANTS)
    (world / "elsewhere").mkdir()
    (world / "elsewhere" / "deep.py").write_text(ELSEWHERE)
    runner(world, forks)()
    assert len(kept(world)) == 3  # one of each loop
    return world


@pytest.fixture
def world(played: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder."""
    return Path(shutil.copytree(played, tmp_path / "world"))


@pytest.fixture
def run(world: Path, forks: Forks) -> Run:
    """Return a function that runs programs in the copy."""
    return runner(world, forks)


def kept(world: Path) -> dict[str, int]:
    """Return the files of the cache with their times."""
    return {str(path): path.stat().st_mtime_ns for path in (world / "cache").rglob("*") if path.is_file()}


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that is there once."""
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def test_a_second_process_loads_what_the_first_compiled(world: Path) -> None:
    """A fresh process, in which texts have other hashes than in the first."""
    files = kept(world)
    command = [sys.executable, "-W", "error", "-c", PLAY + COUNT_HITS]
    done = subprocess.run(command, env=environment_of(world), cwd=world, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(POSITION), "3"]
    assert kept(world) == files


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("fair_envs/core/randomness.py", "0x9E3779B9", "0x9E3779BB"),
        ("walk.py", "1 + action[0]", "2 + action[0]"),
        ("constants.py", "STRIDE = 3", "STRIDE = 4"),
        ("elsewhere/deep.py", "return 4", "return 6"),
    ],
    ids=["in the package", "in the rules", "in a file beside the rules", "in another package"],
)
def test_an_edit_is_seen(world: Path, run: Run, file: str, old: str, new: str) -> None:
    assert run() == str(POSITION)
    edit(world / file, old, new)
    after = run()
    assert after != str(POSITION)
    assert after == run(NUMBA_DISABLE_JIT="1")


def test_rules_of_one_name_are_not_mixed_up(world: Path, run: Run) -> None:
    """Two classes that a function makes have one name and one source, yet other rules."""
    program = """
from walk import *

def faster(factor):
    @rule
    def step(lane, action, params, reward, facts):
        lane.position += factor
        return False

    class Faster(Walk):
        pass

    Faster.step = staticmethod(step)
    return Faster

print(*(play(faster(factor)()) for factor in map(int, sys.argv[1:])))
"""
    (world / "programs.py").write_text(program)
    assert run("import programs", "5") == "10"
    assert run("import programs", "7", "5") == "14 10"


SAYS = """
import sys
import numpy as np
from fair_envs.core.compilation import kernel, rule

@rule
def says(x):
    print("x is", x)
    if x > 1.0:
        raise ValueError("x must be small", x)
    return x

@kernel
def loop(numbers):
    total = 0.0
    for k in range(numbers.shape[0]):
        total += says(numbers[k])
    return total

loop(np.array([0.5]))
try:
    loop(np.array([2.5]))
except ValueError as error:
    print(error.args)
sys.stdout.flush()
"""


def test_a_rule_can_print_and_raise_numbers_when_it_is_compiled_and_when_it_is_loaded(world: Path, run: Run) -> None:
    (world / "says.py").write_text(SAYS)
    for _ in range(2):
        assert run("import says\n").splitlines() == ["x is 0.5", "x is 2.5", "('x must be small', 2.5)"]


def test_rules_without_a_file_work(run: Run) -> None:
    """As in a notebook."""
    program = PLAY + "class Here(Walk):\n    pass\nprint(play(Here()))"
    here, there = run(program).split()
    assert here == there


def test_a_cache_that_cannot_be_written_is_done_without(world: Path, run: Run) -> None:
    (world / "file").write_text("no folder")
    assert run(FAIR_ENVS_CACHE=str(world / "file" / "cache")) == str(POSITION)


def test_a_full_disk_is_no_error(world: Path, run: Run) -> None:
    """The size of a file is limited here instead."""
    shutil.rmtree(world / "cache")
    assert run(FILL_THE_DISK + PLAY) == str(POSITION)
    assert not kept(world)


def double(numbers: Any) -> None:
    numbers *= 2


class Store:
    """A cache with one small kernel."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        monkeypatch.setenv("FAIR_ENVS_CACHE", str(folder))
        self.folder = folder

    def hits(self) -> int:
        """Return how often a new kernel was loaded rather than compiled, after it gave what it should."""
        kernel: Any = compilation.kernel(double)
        numbers = np.arange(3.0)
        kernel(numbers)
        assert numbers.tolist() == [0, 2, 4]
        return sum(kernel.stats.cache_hits.values())

    @property
    def file(self) -> Path:
        (found,) = self.folder.rglob("*.*")
        return found


@pytest.fixture
def store(tmp_path: Path, monkeypatch: Any) -> Store:
    """Return a cache in which a kernel is kept."""
    if not COMPILED:
        pytest.skip("nothing is compiled")
    found = Store(tmp_path, monkeypatch)
    assert (found.hits(), found.hits()) == (0, 1)
    return found


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:-5000] + bytes(255 - byte for byte in content[-5000:]),
    "one bit": lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    "no checksum": lambda content: content[32:],
    "no pickle": lambda content: hashlib.sha256(b"text").digest() + b"text",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_file_is_compiled_again_and_replaced(store: Store, damage: Callable[[bytes], bytes]) -> None:
    store.file.write_bytes(damage(store.file.read_bytes()))
    assert (store.hits(), store.hits()) == (0, 1)


class Spell:
    """Writes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def __reduce__(self) -> Any:
        return exec, (f"open({self.file!r}, 'w').close()",)


def test_nothing_is_unpickled_before_its_checksum_is_right(store: Store, tmp_path_factory: Any) -> None:
    """The checksum finds damage, not forgery; that others cannot write to the folder is what keeps forgers out."""
    mark = tmp_path_factory.mktemp("cast") / "mark"
    payload = pickle.dumps(Spell(mark))
    for digest, cast in ((bytes(32), False), (hashlib.sha256(payload).digest(), True)):
        store.file.write_bytes(digest + payload)
        assert store.hits() == 0
        assert mark.exists() is cast


def test_a_file_that_others_can_write_to_is_compiled_again_and_replaced(store: Store) -> None:
    store.file.chmod(0o666)
    assert (store.hits(), store.hits()) == (0, 1)
    assert not stat.S_IMODE(store.file.stat().st_mode) & 0o022


def test_a_link_to_a_file_is_replaced_rather_than_followed(store: Store, tmp_path_factory: Any) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    content = store.file.read_bytes()
    elsewhere.write_bytes(content)
    file = store.file
    file.unlink()
    file.symlink_to(elsewhere)
    assert (store.hits(), store.hits()) == (0, 1)
    assert not file.is_symlink() and elsewhere.read_bytes() == content


def test_a_kernel_is_compiled_where_its_file_cannot_be_replaced(store: Store) -> None:
    file = store.file
    file.unlink()
    (file / "a folder in its place").mkdir(parents=True)
    assert (store.hits(), store.hits()) == (0, 0)


@pytest.mark.parametrize("setting", ["NUMBA_OPT", "NUMBA_BOUNDSCHECK"])
def test_other_settings_of_numba_have_files_of_their_own(store: Store, monkeypatch: Any, setting: str) -> None:
    """With NUMBA_BOUNDSCHECK=1 nobody wants code that was compiled without the checks."""
    monkeypatch.setattr(numba.config, setting.removeprefix("NUMBA_"), 1)
    assert (store.hits(), store.hits()) == (0, 1)
    monkeypatch.undo()
    monkeypatch.setenv("FAIR_ENVS_CACHE", str(store.folder))
    assert store.hits() == 1


def test_a_cache_that_others_could_change_is_done_without_and_one_warning_says_so(store: Store) -> None:
    before = store.file.stat()
    store.folder.chmod(0o777)
    with pytest.warns(RuntimeWarning) as caught:
        assert store.hits() == 0
    assert [str(one.message) for one in caught] == [
        f"kernels are compiled in every process, because {store.folder} can be written to by all users, so others "
        f"could add code to the cache {store.folder}: set FAIR_ENVS_CACHE to a folder that only you can write to, "
        f"or run `chmod go-w {store.folder}` if you trust everything in it"
    ]
    assert store.hits() == 0  # and another warning would be an error
    assert store.file.stat() == before


def found_folder(monkeypatch: Any, cache: Path) -> Path | None:
    """Return where kernels are kept if this is the cache; a warning comes again."""
    monkeypatch.setenv("FAIR_ENVS_CACHE", str(cache))
    monkeypatch.setattr(compilation, "_warned", set())
    return compilation._folder_of("source")


def test_all_folders_that_are_made_for_the_cache_are_this_users_alone(monkeypatch: Any, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = found_folder(monkeypatch, tmp_path / "home" / "cache")
    finally:
        os.umask(before)
    assert folder == tmp_path / "home" / "cache" / "source"
    assert [stat.S_IMODE(part.stat().st_mode) for part in (folder, *folder.parents[:2])] == [0o700] * 3


@pytest.mark.parametrize(
    ("part", "mode", "fault"),
    [
        ("outer", 0o777, "can be written to by all users"),
        ("outer/cache", 0o777, "can be written to by all users"),
        ("outer/cache", 0o1777, "can be written to by all users"),
        ("outer/cache/source", 0o777, "can be written to by all users"),
        ("outer/cache/source", 0o770, "can be written to by group"),
    ],
)
def test_a_folder_that_others_can_write_to_is_refused(
    monkeypatch: Any, tmp_path: Path, part: str, mode: int, fault: str
) -> None:
    monkeypatch.setattr(compilation, "_is_private", lambda group: False)
    cache = tmp_path / "outer" / "cache"
    assert found_folder(monkeypatch, cache) is not None
    (tmp_path / part).chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"{tmp_path / part} {fault}"):
        assert found_folder(monkeypatch, cache) is None
    (tmp_path / "link").symlink_to(cache)
    with pytest.warns(RuntimeWarning, match=f" {fault}"):
        assert found_folder(monkeypatch, tmp_path / "link") is None


def test_a_cache_may_be_in_a_sticky_folder_and_behind_a_link(monkeypatch: Any, tmp_path: Path) -> None:
    """As in ``/tmp``, where others can add files but not touch ours."""
    outer = tmp_path / "outer"
    outer.mkdir()
    outer.chmod(0o1777)
    (tmp_path / "link").symlink_to("outer")
    assert found_folder(monkeypatch, tmp_path / "link" / "cache") == tmp_path / "link" / "cache" / "source"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("part", ["outer", "outer/cache", "outer/cache/source", "link"])
def test_what_belongs_to_another_user_is_refused(monkeypatch: Any, tmp_path: Path, part: str) -> None:
    (tmp_path / "outer").mkdir()
    (tmp_path / "link").symlink_to("outer")
    cache = tmp_path / "link" / "cache"
    assert found_folder(monkeypatch, cache) is not None
    os.chown(tmp_path / part, 12345, 12345, follow_symlinks=False)
    with pytest.warns(RuntimeWarning, match="belongs to user 12345, so others could add code"):
        assert found_folder(monkeypatch, cache) is None


@pytest.mark.parametrize(
    ("user", "owner", "mode", "own", "doubt"),
    [
        (1000, 1000, stat.S_IFDIR | 0o755, True, None),
        (1000, 0, stat.S_IFDIR | 0o755, True, None),
        (1000, 1001, stat.S_IFDIR | 0o700, True, "belongs to user 1001"),
        (0, 1000, stat.S_IFDIR | 0o700, True, "belongs to user 1000"),
        (1000, 0, stat.S_IFDIR | 0o1777, False, None),
        (1000, 0, stat.S_IFDIR | 0o1777, True, "can be written to by all users"),
        (1000, 1001, stat.S_IFDIR | 0o1777, False, "belongs to user 1001"),
        (1000, 1000, stat.S_IFDIR | 0o775, True, None),
        (1000, 1000, stat.S_IFLNK | 0o777, False, None),
        (1000, 1001, stat.S_IFLNK | 0o777, False, "belongs to user 1001"),
        (1000, 65534, stat.S_IFDIR | 0o755, False, None),
        (1000, 65534, stat.S_IFDIR | 0o755, True, "belongs to user 65534"),
    ],
)
def test_only_this_user_and_root_are_trusted(
    monkeypatch: Any, user: int, owner: int, mode: int, own: bool, doubt: str | None
) -> None:
    """In some containers ``/`` belongs to nobody (65534): whoever that is can change everything anyway."""

    def status(mode: int, owner: int) -> os.stat_result:
        return os.stat_result((mode, 0, 0, 1, owner, owner, 0, 0, 0, 0))

    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    monkeypatch.setattr(compilation, "_is_private", lambda group: group == user)
    monkeypatch.setattr(os, "stat", lambda path: status(stat.S_IFDIR | 0o755, 65534))
    assert compilation._doubt(status(mode, owner), own=own) == doubt
    monkeypatch.delattr(os, "geteuid")
    assert compilation._doubt(status(mode, owner), own=own) is None  # a system without such users


@pytest.mark.parametrize(
    ("name", "members", "private"),
    [("ada", [], True), ("ada", ["ada"], True), ("ada", ["bob"], False), ("staff", [], False)],
)
def test_a_private_group_is_named_as_its_only_member(
    monkeypatch: Any, name: str, members: list[str], private: bool
) -> None:
    pwd, grp = pytest.importorskip("pwd"), pytest.importorskip("grp")
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name="ada"))
    monkeypatch.setattr(grp, "getgrgid", lambda group: SimpleNamespace(gr_name=name, gr_mem=members))
    assert compilation._is_private(1000) is private


def test_uncompiled_rules_give_the_same(world: Path, run: Run) -> None:
    assert run(NUMBA_DISABLE_JIT="1", FAIR_ENVS_CACHE=str(world / "empty")) == run() == str(POSITION)
    assert not (world / "empty").exists()


@pytest.mark.skipif(not COMPILED, reason="there is nothing but Python")
def test_a_rule_is_compiled_once_for_all_constants_and_is_plain_python_to_python() -> None:
    """Machine code without what Python needs would end the process if Python called it."""

    @rule
    def plus(number: int, more: int) -> int:
        return number + more

    @rule
    def count_down(number: int, fast: bool) -> int:
        return 0 if number <= 0 else 1 + count_down(number - 2 if fast else number - 1, True)

    plus_three: Any = njit(lambda number: plus(plus(number, 1), more=2))
    halved: Any = njit(lambda number: count_down(number, False))
    assert plus_three(4) == 7
    assert halved(7) == 4
    assert len(plus.signatures) == len(count_down.signatures) == 1
    assert plus("a", more="b") == inlined(plus.py_func)("a", more="b") == "ab"
    assert plus.__name__ == "plus"


@pytest.mark.skipif(not COMPILED, reason="there is nothing but Python")
def test_an_array_without_owners_is_the_same_memory_and_counts_nobody() -> None:
    """Numba gives an array back as the object that it got if it has an account of its owners, else as a new one."""
    array = np.arange(6.0).reshape(3, 2)
    before = sys.getrefcount(array)
    kept, bare = njit(lambda array: array)(array), njit(lambda array: unowned(array))(array)
    assert kept is array and bare is not array and bare.base is None
    assert bare.ctypes.data == array.ctypes.data and bare.shape == array.shape and bare.strides == array.strides
    del kept
    after = sys.getrefcount(array)
    assert after == before


def test_a_record_holds_numbers_and_arrays_by_name() -> None:
    table = np.arange(6.0).reshape(2, 3)
    record = record_of({"share": 0.25, "steps": 7, "often": True, "table": table})
    table[:] = 0

    @njit
    def read(given: Any) -> Any:
        one = given[0]
        return one.share, one.steps // 2, one.often, one.table[1, 2]

    assert read(record) == (0.25, 3, True, 5.0)
    assert record.shape == (1,) and record.dtype["steps"] == np.int64 and record.dtype["often"] == np.bool_
    like = record_of({"share": 0.5, "steps": 1, "often": False, "table": table})
    assert not COMPILED or like.dtype is record.dtype  # which Numba finds faster


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("size", 3, "fields must not have the name of an attribute of NumPy's records, got 'size'"),
        ("count_of", None, "count_of must be a number or an array of numbers, got None"),
        ("count_of", "many", "count_of must be a number or an array of numbers, got 'many'"),
        ("count_of", 2**63, "count_of must be a 64-bit integer, got 9223372036854775808"),
    ],
)
def test_what_a_record_cannot_hold_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        record_of({name: value})


def test_the_cache_is_where_the_user_says(monkeypatch: Any, tmp_path: Path) -> None:
    for name in ("FAIR_ENVS_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "fair_envs"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "fair_envs"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache_folder() == tmp_path / "numba"
    monkeypatch.setenv("FAIR_ENVS_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


TRAIL = '''
from walk import *


class TrailParams(NamedTuple):
    horizon: int = 5
    length: int = 1


@rule
def mark(lane, first, end):
    """Calls itself twice, so that its machine code stays a function of its own."""
    if end - first > 1:
        mark(lane, first, (first + end) // 2)
        mark(lane, (first + end) // 2, end)
    else:
        lane.trail[first] = 10 * len(lane.trail) + first


@rule
def start(lane, params):
    mark(lane, 0, len(lane.trail))


class Trail(Walk):
    name, Params = "trail", TrailParams
    start = staticmethod(start)

    def lane(self, params):
        return [("position", np.int64), ("trail", np.int64, (params.length,)), ("last", np.int64)]
'''
LAYOUTS = """
from fair_envs.core import kernels
from trail import *

for length in map(int, sys.argv[1:]):
    lanes = Lanes(Trail(length=length), 2)
    lanes.seed(0)
    lanes.restart()
    print(*lanes.records["trail"][1], lanes.records["last"][1])
print(sum(kernels(Trail)["begin"].stats.cache_hits.values()), "loaded")
"""


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_layouts_that_other_processes_compiled_do_not_mix(world: Path, run: Run) -> None:
    """Each first process gives its layout the same number; symbols named by it would meet in the third."""
    (world / "trail.py").write_text(TRAIL)
    assert run(LAYOUTS, "3").splitlines() == ["30 31 32 0", "0 loaded"]
    assert run(LAYOUTS, "2").splitlines() == ["20 21 0", "0 loaded"]
    assert run(LAYOUTS, "3", "2").splitlines() == ["30 31 32 0", "20 21 0", "2 loaded"]


# ------------------------------------------------------------------------------------- what a cache's name depends on


def test_every_module_with_compiled_code_is_part_of_the_name_of_a_cache() -> None:
    """Also after modules have moved: what is not hashed here is in a folder whose own kernels hash it."""
    package = Path(fair_envs.__file__).parent
    assert package == compilation.PACKAGE
    assert all((package / name).is_dir() for name in compilation.HASHED)
    compiled = [
        path for path in package.rglob("*.py") if re.search(r"^@(kernel|rule|inlined)$", path.read_text(), re.M)
    ]
    assert len(compiled) > 20
    assert {path.relative_to(package).parts[0] for path in compiled} <= {*compilation.HASHED, "wrappers"}


@pytest.mark.parametrize("name", ["core/randomness.py", "envs/harvest/rules.py", "metrics/group.py"])
def test_an_edit_anywhere_in_compiled_code_changes_the_name_of_the_cache(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("core", "envs/harvest", "metrics", "support"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(compilation, "PACKAGE", tmp_path)
    before = compilation.source_hash(Harvest)
    (tmp_path / name).write_text("edited = True")
    compilation._hash_of.cache_clear()
    assert compilation.source_hash(Harvest) != before
    compilation._hash_of.cache_clear()
