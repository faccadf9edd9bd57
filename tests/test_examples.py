"""The examples run, and show what they say."""

import importlib
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

from fair_envs.cli import app

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def villages() -> dict[str, Any]:
    """Return what the example of an environment of one's own defines."""
    pytest.importorskip("stable_baselines3")
    return runpy.run_path(str(EXAMPLES / "own_environment_with_f_ppo.py"))


@pytest.mark.long
def test_f_ppo_keeps_the_villages_closer_than_ppo(villages: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    found = villages["main"]()
    assert found["F-PPO"]["long-term"] < 0.7 * found["PPO"]["long-term"]
    assert found["F-PPO"]["reward"] < found["PPO"]["reward"]  # that has its price
    assert found["F-PPO, shielded"]["short-term"] < found["F-PPO"]["short-term"] + 0.02
    assert [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()] == list(found)


def test_the_examples_massager_turns_unsure_visits_that_make_the_gap_smaller(villages: dict[str, Any]) -> None:
    short = villages["VisitGap"](3)
    short.visits = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    policy = villages["PolicyOutput"](probabilities=np.array([[0.6, 0.4], [0.9, 0.1], [0.5, 0.5]]))
    visits = villages["visit_the_other"](np.zeros((3, 2)), np.zeros(3, int), policy, short, threshold=0.3)
    assert visits.tolist() == [1, 0, 0]  # turned; sure; a tie


def test_the_examples_measure_forgets_a_season_that_is_over(villages: dict[str, Any]) -> None:
    gap = villages["VisitGap"](2)
    visit = {"fair_action": np.array([[1, 0], [1, 0]])}
    gap.update(visit)
    assert gap.update({"fair_action": np.array([[0, 1], [1, 0]])}).tolist() == [0, 1]
    gap.restart(np.array([False, True]))
    assert gap.update(visit).tolist() == pytest.approx([1 / 3, 1])


@pytest.fixture(scope="module")
def school() -> dict[str, Any]:
    """Return what the example of an annotated environment defines; it registers School-v0 and its task."""
    pytest.importorskip("stable_baselines3")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(EXAMPLES))
        return vars(importlib.import_module("school"))


def test_correcting_the_scores_of_evening_students_is_fairer_and_earns_more(school: dict[str, Any]) -> None:
    found = {name: school["measured"](teacher, terms=20) for name, teacher in school["TEACHERS"].items()}
    corrected, biased = found["corrected threshold"], found["one threshold"]
    assert corrected["equal_opportunity"] < 0.1 < 0.3 < biased["equal_opportunity"]
    assert corrected["reward"] > biased["reward"] > found["pass everyone"]["reward"]
    unfair = school["penalised"](school["one_threshold"], terms=20)
    assert unfair < biased["reward"] - 0.3 and unfair < school["penalised"](school["corrected_threshold"], terms=20)


def test_networks_learn_to_grade_fairly_from_the_reward_vector(school: dict[str, Any]) -> None:
    found = school["learned"](8_000)
    fair = [row["reward"] for row in found if row["equal_opportunity"] < 0.1]
    assert max(fair) > 0  # to pass everyone is fair, too, but loses 0.4 for each student


def test_the_school_is_made_from_its_id_and_its_spec(school: dict[str, Any]) -> None:
    env: Any = gym.make("School-v0", students=3)
    assert env.get_wrapper_attr("fair_spec").feedback == "full"
    again: Any = gym.make(env.spec)
    for one in (env, again):
        one.reset(seed=4)
    steps = [[one.step(1)[-1] for _ in range(3)] for one in (env, again)]
    for info, other in zip(*steps, strict=True):
        assert info["prepared"] == other["prepared"] == bool(info["fair_feedback"]) == bool(other["fair_feedback"])


BRIEF = {
    "show": (),
    "train": ("--steps", "200", "--no-progress"),
    "evaluate": ("--episodes", "2", "--no-progress"),
    "compare": ("--no-progress",),
    "study": ("--steps", "200", "--seeds", "1", "--episodes", "2", "--no-progress"),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the network has learned nothing")  # 200 steps are few for PCN
@pytest.mark.usefixtures("school")
def test_the_commands_of_the_page_about_own_environments_run(empty_folder: Path) -> None:
    shutil.copy(EXAMPLES / "school.py", empty_folder)  # for the processes of a study
    page = (EXAMPLES.parent / "docs" / "own-environment.md").read_text()
    lines = re.findall(r"^fair-envs (.*?)(?: +#.*)?$", page, re.MULTILINE)
    kinds = []
    for line in lines:
        words = line.split()
        kind = next(word for word in words if word in BRIEF)
        more = ("--episodes", "2") if kind == "compare" and "evaluations.json" not in line else ()
        done = CliRunner().invoke(app, [*words, *BRIEF[kind], *more])
        assert done.exit_code == 0, f"{line}: {done.output}"
        kinds.append(kind)
    assert kinds.count("train") == 4 and kinds.count("compare") == 2
    assert kinds.count("study") == 1
    table = (empty_folder / "runs" / "compared" / "comparison.md").read_text()
    names = ("ppo", "fair-ppo", "elbert", "pcn", "school:one_threshold", "school:corrected_threshold", "random")
    assert re.findall(r"^\| (\w\S*) \| ", table, re.MULTILINE) == ["policy", *names]
    again = (empty_folder / "runs" / "compare-1" / "comparison.md").read_text()
    assert again == table


def test_the_study_of_traffic_tells_causes_and_remedies(tmp_path: Path) -> None:
    traffic = runpy.run_path(str(EXAMPLES / "traffic_study.py"))
    ((section, rows),) = traffic["study"](episodes=4, jobs=1, sections=["causes"])
    assert section == "causes" and list(rows) == list(traffic["CAUSES"])
    nothing = rows["none of them"]["counterfactual fairness"]
    assert (nothing.value, nothing.low, nothing.high) == (0, 0, 0)
    whole = rows["as it is"]
    assert whole["counterfactual fairness"].value > 0 == whole["steps of all, change"].value
    assert whole["steps, people"].value > whole["steps, AI"].value


def test_five_lines_train_a_model_and_evaluate_it() -> None:
    pytest.importorskip("stable_baselines3")
    import gymnasium as gym
    from stable_baselines3 import PPO

    import fair_envs

    env = gym.make("FairLending-v0", horizon=200)
    model = PPO("MlpPolicy", env, n_steps=64, device="cpu", seed=0)
    model.learn(128)
    text = str(fair_envs.evaluate(env, model, episodes=2, shuffles=5))
    for words in ("reward per step", "true positive rate", "advantaged - disadvantaged", "noise floor", "Worst off"):
        assert words in text


# The findings ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def findings() -> dict[str, Any]:
    """Return what the example of the findings defines."""
    pytest.importorskip("stable_baselines3")
    return runpy.run_path(str(EXAMPLES / "findings.py"))


def test_a_misaligned_history_does_not_show_that_only_men_are_hired(findings: dict[str, Any]) -> None:
    found = findings["history"](steps=3_200)
    assert found["paired with the applicant"] == 1 and found["paired with the next one"] < 0.1
    assert 0 < found["noise floor"] < 0.1


def test_the_order_of_rules_in_hiring_depends_on_what_is_summed(findings: dict[str, Any]) -> None:
    found = findings["quota"](episodes=16)
    names = ("hires the qualified", "hires with an extra degree", "never hires")
    for what, order in (("per episode", (1, 2, 0)), ("per step", (0, 1, 2))):
        values = [found[f"{names[k]}, {what}"] for k in order]
        assert values == sorted(values, reverse=True)


def test_dealt_roles_are_fair_at_no_cost(findings: dict[str, Any]) -> None:
    found = findings["roles"]()
    assert found["one hunter"].gap.value == 1 and found["one hunter"].gap.beyond_noise
    assert found["roles dealt"].gap.value < 0.3
    assert found["roles dealt"].performance.value == found["one hunter"].performance.value == 1


def test_a_rule_that_ends_all_incidents_earns_less_than_one_that_keeps_some(findings: dict[str, Any]) -> None:
    found = findings["incidents"](steps=1_000)
    names = ("round-robin", "proportional", "last-incidents", "ppo")
    ending, keeping, earning, untrained = (found[name] for name in names)
    assert ending.performance.high < keeping.performance.low and keeping.performance.high < earning.performance.low
    assert all(rate.low > keeping.rates[place].high for place, rate in earning.rates.items())
    for other in (keeping, untrained):
        assert all(rate.high < other.rates[place].low for place, rate in ending.rates.items())


def test_vaccinating_nobody_looks_fair(findings: dict[str, Any]) -> None:
    found = findings["vaccines"]()
    nobody, most = found["nobody"], found["most-neighbours"]
    assert nobody.row("short-term").value == 0 < most.row("short-term").value
    assert nobody.rates["community 1"].value < most.rates["community 1"].value
    assert nobody.rates["community 0"].value < most.rates["community 0"].value + 0.05


def test_the_published_penalty_cancels_itself(findings: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    one, other = findings["penalty"](steps=2_000).values()
    assert [row.value for row in one.rows if row.section != "twin"] == pytest.approx(
        [row.value for row in other.rows if row.section != "twin"], nan_ok=True
    )
    findings["show"]("authors", one)
    assert "full_speed" in capsys.readouterr().out


def test_every_finding_on_the_page_has_its_command(findings: dict[str, Any]) -> None:
    text = (EXAMPLES.parent / "docs" / "findings.md").read_text()
    assert re.findall(r"examples/findings.py (\w+)", text) and set(re.findall(r"findings.py (\w+)", text)) == set(
        findings["FINDINGS"]
    )
