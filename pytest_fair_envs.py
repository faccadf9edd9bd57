"""A plugin of pytest that tests the contract of fair-envs on environments: ``pytest --fair-env my_package:MyEnv-v0``.

The tests are those of `fair_envs.testing.contract`. pytest imports this file in every run, so it imports nothing else,
and is not part of the package, which would be imported with it.
"""

import importlib
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

OPTION, SETTING = "fair_env", "fair_envs"
CONTRACT = "fair_envs.testing.contract"

pytest.register_assert_rewrite(CONTRACT)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting."""
    parser.getgroup("fair-envs").addoption(
        "--fair-env",
        dest=OPTION,
        action="append",
        default=[],
        metavar="ID",
        help="Also test the contract of fair-envs on this environment, such as my_package:MyEnv-v0; may be repeated.",
    )
    parser.addini(
        SETTING,
        type="linelist",
        default=[],
        help="environments on which the contract of fair-envs is also tested, unless the command names files or tests",
    )


def chosen(config: pytest.Config) -> list[str]:
    """Return the ids of the environments to test."""
    folder = config.invocation_params.dir
    folders = all((folder / argument).is_dir() for argument in config.args)
    ids = [*config.getoption(OPTION), *(config.getini(SETTING) if folders else ())]
    return list(dict.fromkeys(ids))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, None]:
    """Collect the contract after the tests in files."""
    report = (yield).get_result()
    if isinstance(collector, pytest.Session) and report.passed and (ids := chosen(collector.config)):
        report.result.append(Contract.from_parent(collector, name="contract", nodeid="contract", ids=ids))


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of the contract on each environment."""
    part = metafunc.definition.getparent(Part)
    if part is not None:
        metafunc.parametrize("kind", part.kinds, ids=str)


class Contract(pytest.Collector):
    """The tests of the contract on the chosen environments."""

    def __init__(self, *, ids: list[str], **keywords: Any) -> None:
        super().__init__(**keywords)
        self._ids = ids

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield the parts of the contract that apply."""
        kinds_of = loaded("kinds").kinds_of
        try:
            found = [kinds_of(env_id) for env_id in self._ids]
        except (ImportError, ValueError) as error:
            raise self.CollectError(f"fair-envs: {error}") from error
        every = [kind for kinds in found for kind in kinds]
        wanted = {
            "record": every,
            "rules": [kind for kind in every if kind.ruled],
            "fuzzed": [kinds[0] for kinds in found],
        }
        for name, kinds in wanted.items():
            if kinds:
                module = loaded(name)
                place = Path(module.__file__ or "")
                yield Part.from_parent(self, path=place, name=name, nodeid="contract", module=module, kinds=kinds)


class Part(pytest.Module):
    """The tests of one module of the contract."""

    def __init__(self, *, module: ModuleType, kinds: list[Any], **keywords: Any) -> None:
        super().__init__(**keywords)
        self.kinds, self._module = kinds, module

    def _getobj(self) -> ModuleType:
        return self._module

    def funcnamefilter(self, name: str) -> bool:
        """Return whether a function is a test, whatever the user calls other tests."""
        return name.startswith("test_")


def loaded(name: str) -> ModuleType:
    """Return a module of the contract."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PettingZoo's tests import games in a way that PettingZoo deprecates
        return importlib.import_module(f"{CONTRACT}.{name}")
