"""What the demonstration says of PPO and fair-PPO, on returns made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

from fair_envs.experiments.seeds import Arm
from fair_envs.reproduction import demo
from fair_envs.support import extras
from tests.reproduction.test_measures import arm_of, result

RATIO = "demographic parity, |ratio|"


def arm(label: str, gaps: Sequence[float]) -> Arm:
    """Return an arm of three seeds in which full speed earns 10 and the gap, half speed 10 less it: gap / 10."""
    found = [result([10 + gap, 10 - gap, 10 + gap, 10 - gap]) for gap in gaps]
    return arm_of(label, [replace(r, twins={"own": r.twins["own"], "same": r.twins["own"]}) for r in found])


def test_the_difference_is_fair_ppo_minus_ppo() -> None:
    numbers = demo.compare(arm("PPO", [4, 4, 4]), arm("fair-PPO", [-1, 1, 3]))
    assert [numbers[RATIO][name].value for name in ("PPO", "fair-PPO")] == pytest.approx([0.4, 0.5 / 3])
    difference = numbers[RATIO]["difference"]
    assert difference.value == pytest.approx(0.5 / 3 - 0.4)
    assert difference.low < difference.value < difference.high
    assert numbers["difference of returns"]["difference"].value == pytest.approx(-0.6)
    assert numbers["price of fairness, full speed, %"]["fair-PPO"].value == pytest.approx(100 * (11 / 14 - 1))
    assert numbers["price of fairness, half speed, %"]["fair-PPO"].value == pytest.approx(100 * (9 / 6 - 1))


@pytest.mark.parametrize(
    ("gaps", "lower"),
    [
        ([1.9, 2.0, 2.1], True),
        ([2.0, 3.0, 5.0], False),  # less on average, but the interval holds 0
        ([5.9, 6.0, 6.1], False),
    ],
)
def test_fair_ppo_counts_as_fairer_only_if_the_whole_interval_is_below_zero(
    gaps: Sequence[float], lower: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = demo.compare(arm("PPO", [4, 4, 4]), arm("fair-PPO", gaps))
    assert (numbers[RATIO]["difference"].value < 0) == (sum(gaps) < 12)
    assert demo.show(numbers, seeds=3, steps=1) is lower
    words = "is below" if lower else "is NOT shown to be below"
    said = capsys.readouterr().out
    assert f"parity is {words.removeprefix('is ')} PPO's" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


def test_it_says_who_pays(capsys: pytest.CaptureFixture[str]) -> None:
    demo.show(demo.compare(arm("PPO", [4, 4, 4]), arm("fair-PPO", [1.9, 2.0, 2.1])), seeds=3, steps=1)
    said = " ".join(capsys.readouterr().out.split())
    assert "Who pays: agents with full speed earn 14 % [13, 16] less; agents with half speed earn 33 % [29, 37]" in said
    demo.show(demo.compare(arm("PPO", [4, 4, 4]), arm("fair-PPO", [2, 4, 6])), seeds=3, steps=1)
    assert "agents with half speed are not shown to earn more or less" in " ".join(capsys.readouterr().out.split())


def test_a_missing_library_that_draws_is_told_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda library: None if library == "pygame" else library)
    with pytest.raises(ImportError, match=r"a film needs pygame; install it with: pip install 'fair-envs\[render\]'"):
        demo.main(out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
