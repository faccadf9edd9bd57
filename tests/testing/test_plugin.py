"""``pytest --fair-env ID`` tests the contract on a user's environment, and costs nothing without the option."""

from pathlib import Path

import pytest

from fair_envs.testing.contract import fuzzed
from tests.helpers import uncompiled
from tests.testing import desk

ROOT = Path(__file__).parents[2]
DESK = desk.__name__

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Return the result of pytest with the plugin, which may be installed too."""
    return pytester.runpytest("-p", "pytest_fair_envs", *arguments)


def named(result: pytest.RunResult) -> list[str]:
    """Return the collected tests."""
    return [line for line in result.outlines if "::" in line]


@uncompiled
def test_each_promise_is_a_test_of_its_own(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-v", "--fair-env", f"{DESK}:Desk-v0", "-k", "not random")
    result.assert_outcomes(passed=6, deselected=1)
    result.stdout.fnmatch_lines([f"contract::test_observations_lie_in_their_spaces*{DESK}:Desk-v0* PASSED*"])


@uncompiled
def test_a_broken_promise_fails_with_its_message_and_the_command_that_replays_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzed, "STEPS", 200)
    result = run(pytester, "--fair-env", f"{DESK}:CarelessDesk-v0")
    result.assert_outcomes(passed=5, failed=2)
    result.stdout.fnmatch_lines(["E * fair_individual must be of NumPy's types, got int"])
    result.stdout.fnmatch_lines([f"E *replay: python -m fair_envs.testing.fuzz {DESK}:CarelessDesk-v0 --case *"])


@uncompiled
def test_pytest_adds_nothing_to_messages_although_it_rewrites_the_packages_of_plugins(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest("import pytest\npytest.register_assert_rewrite('fair_envs')")
    options = ("-p", "pytest_fair_envs", "--fair-env", f"{DESK}:CarelessDesk-v0", "-k", "schema")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(failed=1, deselected=6)
    assert [line for line in result.outlines if line.startswith("E ")] == [
        "E           AssertionError: fair_individual must be of NumPy's types, got int"
    ]


def test_all_interfaces_and_variants_of_rules_are_tested(pytester: pytest.Pytester) -> None:
    found = named(
        run(pytester, "--collect-only", "-q", "--fair-env", "FairHarvest-v0", "--fair-env", f"{DESK}:Desk-v0")
    )
    for case in (f"{DESK}:Desk-v0", "FairHarvest-v0", "FairHarvest-v0:melting_pot"):
        assert f"contract::test_gymnasium_check_env[{case}]" in found
    assert "contract::test_pettingzoo_seed_tests[FairHarvest-v0:melting_pot]" in found
    assert not [name for name in found if "pettingzoo" in name and "Desk" in name]
    assert len([name for name in found if "random_parameters" in name]) == 2  # the fuzzer draws the variants


@pytest.mark.parametrize(
    ("env_id", "line"),
    [
        (
            f"{DESK}:BareDesk-v0",
            "fair-envs: env must have a FairSpec as fair_spec, * got BareDesk-v0 with no fair_spec",
        ),
        ("FairFishing-v0", "fair-envs: id must be one of FairAttention-v0, *, got 'FairFishing-v0'"),
        ("nowhere:Env-v0", "fair-envs: No module named 'nowhere'"),
    ],
)
def test_an_environment_that_cannot_be_tested_is_named(pytester: pytest.Pytester, env_id: str, line: str) -> None:
    result = run(pytester, "--fair-env", env_id)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([line])


def test_the_setting_is_for_folders_and_the_option_for_files_too(pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\nfair_envs = {DESK}:Desk-v0\n")
    pytester.makepyfile(test_own="def test_own():\n    pass\n")
    counts = {
        arguments: len(named(run(pytester, "--collect-only", "-q", *arguments)))
        for arguments in [(), (".",), ("test_own.py",), ("test_own.py::test_own",), ("--fair-env", f"{DESK}:Desk-v0")]
    }
    assert list(counts.values()) == [8, 8, 1, 1, 8]
    assert len(named(run(pytester, "--collect-only", "-q", "test_own.py", "--fair-env", f"{DESK}:Desk-v0"))) == 8


def test_nothing_is_imported_without_the_option(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        "import sys\ndef test_none():\n    assert 'pytest_fair_envs' in sys.modules\n"
        "    assert not {'fair_envs', 'gymnasium', 'numba', 'numpy'} & set(sys.modules)\n"
    )
    pytester.runpytest_subprocess("-p", "pytest_fair_envs").assert_outcomes(passed=1)
