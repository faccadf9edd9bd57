import re
from collections import Counter
from pathlib import Path

import pytest

from fair_envs import metrics
from fair_envs.baselines.pcn.training import PCNTraining
from fair_envs.baselines.training import Training
from fair_envs.envs.traffic.rules import Traffic
from fair_envs.evaluation.systems import PARITIES
from fair_envs.metrics.gaps import BY_NAME, decision_notions, name_of
from fair_envs.metrics.group import DEFINITIONS
from fair_envs.metrics.individual import INDIVIDUAL
from fair_envs.metrics.notions import NOTIONS, Notion, canonical_name, find_notion, notions_table
from fair_envs.search.objectives import known_names, objective_named

PAGE = Path(__file__).parents[2] / "docs" / "fairness.md"
OVER_TIME = PAGE.with_name("long-term.md")
NAMES = [notion.name for notion in NOTIONS]


def test_no_name_or_alias_means_two_notions() -> None:
    names = [name for notion in NOTIONS for name in (notion.name, *notion.aliases)]
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_notion_is_a_function_of_the_package_or_a_notion_on_decisions(name: str) -> None:
    if name in DEFINITIONS:
        assert metrics.GroupNotion(name=name).name == name
    elif name in INDIVIDUAL:
        assert INDIVIDUAL[name]().name == name
    else:
        assert callable(getattr(metrics, name))
        assert name in metrics.__all__


@pytest.mark.parametrize("name", NAMES)
def test_every_notion_has_its_entry_on_a_page(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8") + OVER_TIME.read_text(encoding="utf-8")
    assert re.search(rf"`{name}`|import .*\b{name}\b|^## {name.replace('_', ' ')}$", page, re.MULTILINE | re.IGNORECASE)


def test_notions_are_found_by_any_of_their_names() -> None:
    for name in ("demographic_parity", "Statistical-Parity", "dp", " independence "):
        assert find_notion(name).name == "demographic_parity"
    for name in ("equalized_odds", "equalised_odds", "Equalised-Odds", "EqOdds"):
        assert find_notion(name).name == "equalized_odds"
    assert find_notion("Jain's index").name == "jain"
    with pytest.raises(ValueError, match=r"notion must be one of demographic_parity, .*, got 'equality'"):
        find_notion("equality")
    with pytest.raises(ValueError, match=r"got 'janes index'; did you mean 'jain'\?"):
        find_notion("janes index")


@pytest.mark.parametrize("notion", NOTIONS, ids=NAMES)
def test_every_alias_is_accepted_wherever_a_notion_is_named(notion: Notion) -> None:
    for alias in (notion.name, *notion.aliases, notion.name.upper(), notion.name.replace("_", "-")):
        assert canonical_name("notions", alias, NAMES) == notion.name
        if notion.name in BY_NAME:
            assert name_of(decision_notions(alias)[0]) == notion.name
        if notion.name in DEFINITIONS:
            assert metrics.GroupNotion(name=alias).name == notion.name
            assert PCNTraining(env_id="FairFraud-v0", objectives=("R", alias)).names[1] == notion.name
        if notion.name in ("demographic_parity", "conditional_parity", "counterfactual_fairness"):
            assert Training(env_id="FairHarvest-v0", algorithm="fair-ppo", penalty=alias).penalty == notion.name
        if notion.name in PARITIES:
            text = f"{alias}:human_driven"
            known = [name for name in known_names(Traffic()) if name.startswith(f"{notion.name}:human_driven")]
            suffix = known[0].removeprefix(f"{notion.name}:human_driven")
            assert objective_named(text + suffix, Traffic()).name == known[0]


def test_the_table_lists_every_notion_with_its_aliases_and_extremes() -> None:
    table = notions_table()
    for notion in NOTIONS:
        assert f"{notion.name} ({notion.kind})" in table
        assert notion.extremes in table
        assert all(alias in table for alias in notion.aliases)
    assert max(map(len, table.splitlines())) <= 120


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 9
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out
    assert "0.75 0.25" in printed  # Gini and Jain of one agent with everything
    assert "0.5 -0.4375" in printed  # the worked example of max-abs scaling
    assert "demographic_parity [0.25]" in printed
    assert "equal_opportunity [nan]" in printed


def test_a_notion_on_other_data_is_named_and_abbreviations_are_never_suggested() -> None:
    known = ["equal_opportunity", "equalized_odds", "individual_fairness"]
    with pytest.raises(ValueError, match="got 'Gini-Index': gini is a notion on other data"):
        canonical_name("notions", "Gini-Index", known)
    with pytest.raises(ValueError, match="got 'cf': counterfactual_fairness is a notion on other data"):
        canonical_name("notions", "cf", known)
    with pytest.raises(ValueError, match=r"got 'EOd'$"):  # some mean equal opportunity by it, others equalised odds
        canonical_name("notions", "EOd", known)
    with pytest.raises(ValueError, match="did you mean 'equalized_odds'"):
        canonical_name("notions", "equalized_ods", known)
