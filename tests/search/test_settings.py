"""Settings of the wrong kind are refused by their names, before anything is written."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

from optuna import distributions

from fair_envs.search.settings import Search, read_toml

SETTINGS: dict[str, Any] = {"env_id": "FairTraffic-v0", "ranges": {"toll": "0:0.1"}}


def again(search: Search, folder: Path) -> Search:
    """Return what is read from the folder that a search is kept in."""
    search.save(folder)
    return Search.read(folder)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("toll", "0.12345678:0.12345679", "0.12345678:0.12345679"),
        ("horizon", "1000000:2000000", "1000000:2000000"),
        ("signal_period", [8], "8|"),
        ("signal_period", "8|", "8|"),
        ("dawdling", "0:0.3:0.1", "0:0.3:0.1"),
        ("human_lanes", "|all", "|all"),
        ("human_lanes", [[]], ""),
    ],
)
def test_a_search_in_a_folder_has_the_ranges_it_was_given(name: str, given: Any, kept: str, tmp_path: Path) -> None:
    search = Search(env_id="FairTraffic-v0", ranges={name: given})
    assert search.ranges == {name: kept}
    found = again(search, tmp_path)
    assert found.ranges == search.ranges and found.dimensions == search.dimensions
    assert found.dimensions[name].distribution() == search.dimensions[name].distribution()


@pytest.mark.parametrize("error", [ValueError("too wide"), ArithmeticError("too wide")])
def test_what_optuna_refuses_is_refused_by_name(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(distributions, "FloatDistribution", refuse)
    with pytest.raises(ValueError, match=r"range of toll must be one that Optuna draws from, got 0:0\.1: too wide"):
        Search(**SETTINGS)


WRONG = [
    ("env_id", '["FairTraffic-v0"]', r"env_id must be a text, got \['FairTraffic-v0'\]"),
    ("policy", "7", "policy must be a text, got 7"),
    ("policy", "nan", "policy must be a text, got nan"),
    ("parameters", "3", "parameters must be a table, got 3"),
    ("ranges", '["toll"]', r"ranges must be a table, got \['toll'\]"),
    ("ranges", '"toll=0:1"', "ranges must be a table, got 'toll=0:1'"),
    ("objectives", '"total_return"', "objectives must be a list of texts, got 'total_return'"),
    ("objectives", "7", "objectives must be a list of texts, got 7"),
    ("objectives", "{ gini = true }", "objectives must be a list of texts, got {'gini': True}"),
    ("objectives", '["gini", 7]', r"objectives\[1\] must be a text, got 7"),
]


@pytest.mark.parametrize(("name", "value", "said"), WRONG)
def test_a_setting_of_the_wrong_kind_in_a_file_is_named(name: str, value: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "search.toml"
    path.write_text(f"{name} = {value}\n")
    with pytest.raises(ValueError, match=f"^config: {said}$"):
        read_toml(path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("env_id", ["FairTraffic-v0"], r"env_id must be a text, got \['FairTraffic-v0'\]"),
        ("policy", 7, "policy must be a text, got 7"),
        ("parameters", 3, "parameters must be a table, got 3"),
        ("ranges", ["toll"], r"ranges must be a table, got \['toll'\]"),
        ("objectives", "total_return", "objectives must be a list of texts, got 'total_return'"),
        ("objectives", ("gini", 7), r"objectives\[1\] must be a text, got 7"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(name: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        Search(**{**SETTINGS, name: value})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{ low = nan, high = 1.0 }", "toll must be a finite number at least 0, got nan"),
        ("{ low = 0.0, high = inf }", "toll must be a finite number at least 0, got inf"),
        ("{ low = 0.0, high = 1.0, step = nan }", "step of toll must be a finite number, got nan"),
        ("[0.1, nan]", "toll must be a finite number at least 0, got nan"),
        ("{ low = 1979-05-27, high = 1.0 }", "toll must be a finite number at least 0, got datetime"),
        ("{}", "range of toll must have low and high, and optionally step or log, got nothing"),
        ("3", "range of toll must be LOW:HIGH, options or a table with low and high, got 3"),
    ],
)
def test_a_range_in_a_file_that_is_none_is_named(value: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "search.toml"
    path.write_text(f'env_id = "FairTraffic-v0"\nranges = {{ toll = {value} }}\n')
    with pytest.raises(ValueError, match=said):
        Search(**read_toml(path))


@pytest.mark.parametrize(
    "content",
    [
        'policy = "d\u00e9j\u00e0-vu"\n'.encode("latin-1"),
        'policy = "random"\n'.encode("utf-16"),
        b"seed = " + b"1" * 5000 + b"\n",  # more digits than Python reads
    ],
)
def test_a_file_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "search.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"config must be a TOML file, got .*search\.toml: "):
        read_toml(path)
