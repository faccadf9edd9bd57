"""The explorer's file has everything in it, and its views work in a browser."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pygame")

from typer.testing import CliRunner

from fair_envs.cli import app
from fair_envs.explorer import explore
from fair_envs.explorer.page import page, rounded
from tests import browser

SMALL: dict[str, Any] = {"episodes": 4, "seed": 3, "steps": 20, "frames": 2}


def malicious(observation: Any, uniforms: Any) -> Any:
    return (uniforms < 0.7).astype(int)


malicious.__name__ = "</script><script>document.title = 'broken'</script>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of two rules and a function with a dangerous name, beside random and the other rules."""
    out = tmp_path_factory.mktemp("explorer") / "page.html"
    policies = ["max-reward", "observed-opportunity", malicious]
    return explore("FairLending-v0", policies, out=out, parameters={"horizon": 200}, **SMALL)


def data_of(file: Path) -> dict[str, Any]:
    """Return the data in a page."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', file.read_text(), re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_page_has_all_policies_and_watches_the_given_ones(file: Path) -> None:
    data = data_of(file)
    assert [one["label"] for one in data["policies"]][:2] == ["max-reward", "observed-opportunity"]
    assert {"random", "always"} <= {one["label"] for one in data["policies"]}
    assert [bool(one["watched"]) for one in data["policies"]] == [True] * 3 + [False] * 4
    first = data["policies"][0]
    assert len(first["watched"]["action"]) == 20 and len(first["watched"]["frames"]) == 2
    assert [change["kind"] for change in first["watched"]["changed"]] == ["attribute", "decision"]
    assert {one["kind"] for one in data["policies"]} == {"scripted", "random", "bound"}


def test_the_strata_and_the_course_add_up_to_the_rates(file: Path) -> None:
    data = data_of(file)
    for one in data["policies"]:
        for place, group in enumerate(data["groups"]):
            benefit, demand = one["course"][-1][place]
            assert benefit / demand == pytest.approx(one["rates"][group]["value"], rel=1e-3)
            assert np.sum(one["strata"]["score"][place], axis=0) == pytest.approx([benefit, demand], rel=1e-3)


def test_nothing_is_loaded_from_elsewhere(file: Path) -> None:
    text = re.sub(r"http://www\.w3\.org/\S+?\"", "", file.read_text())  # the name of SVG's vocabulary
    assert "http://" not in text and "https://" not in text


def test_undefined_numbers_and_ends_of_scripts_are_safe() -> None:
    assert rounded({"a": [float("nan"), 0.123456], "b": np.array([[1, 2]])}) == {"a": [None, 0.1235], "b": [[1, 2]]}
    assert "</script><b>" not in page({"env": "x", "name": "</script><b>"})


@pytest.mark.parametrize("env_id", ["FairHarvest-v0", "FairEpidemic-v0", "FairPursuit-v0", "FairHiring-v0"])
def test_agents_and_several_people_have_a_page(env_id: str, tmp_path: Path) -> None:
    parameters = {"FairHarvest-v0": {"horizon": 30}, "FairHiring-v0": {"horizon": 60}}.get(env_id)
    out = explore(env_id, ["random"], out=tmp_path / "page.html", parameters=parameters, beside=False, **SMALL)
    (one,) = data_of(out)["policies"]
    assert one["watched"]["action"] and one["course"]


def test_the_command_writes_a_file_and_refuses_what_it_cannot_show(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    arguments = ["explore", "FairLending-v0", "--policy", "always", "--alone", "--episodes", "2", "--steps", "5"]
    arguments += ["--frames", "0", "-p", "horizon=40", "--no-progress", "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0 and "open it in a browser" in done.output
    assert [one["label"] for one in data_of(out)["policies"]] == ["always"]
    assert "which exists" in CliRunner().invoke(app, arguments).output
    two = CliRunner().invoke(app, ["explore", "FairLending-v0", "FairHiring-v0"])
    assert "must be one id, got FairLending-v0, FairHiring-v0" in two.output


# In a browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(chromium: Any, file: Path) -> Any:
    """Return the page in a browser."""
    return browser.opened(chromium, file)


def view(tab: Any, name: str) -> Any:
    """Open a view and return it."""
    tab.click(f"#tab-{name}")
    return tab.locator(f"#view-{name}")


def test_it_opens_without_errors_and_requests(opened: Any, file: Path) -> None:
    assert opened.problems == []
    assert {url for url in opened.requests if not url.startswith("data:")} == {file.as_uri()}
    assert opened.title() == "FairLending-v0: fair-envs explorer"  # a policy's name is no script
    assert opened.locator("[role=tab]").count() == 6


def fairness(one: Any) -> tuple[float, float]:
    """Return the gap, 0 if chance could give it, and then what the worst-off group gets, negative."""
    gap, limit = abs(one["gap"]["value"]), one["gap"]["limit"]
    rates = [rate["value"] for rate in one["rates"].values()]
    return (0.0 if limit is not None and gap <= limit else gap), -min(rates)


def test_the_slider_names_the_fairest_policy_within_a_price(opened: Any, file: Path) -> None:
    shown, answer = view(opened, "tradeoff"), opened.locator("#answer")
    policies = [one for one in data_of(file)["policies"] if one["kind"] != "bound"]
    highest = max(one["performance"]["value"] for one in policies)
    best = [one for one in policies if one["performance"]["value"] == highest]
    shown.locator("select").first.select_option(label=best[0]["label"])
    shown.locator("input[type=range]").fill("0")
    fairest = min(best, key=fairness)
    assert f": {fairest['label']}. It gives up nothing" in answer.inner_text()
    shown.locator("input[type=range]").fill("100")
    floor = next(one["performance"]["value"] for one in policies if one["label"] == "random")
    able = [one for one in policies if one["performance"]["value"] >= floor]
    fairest = min(able, key=fairness)
    assert f": {fairest['label']}." in answer.inner_text()
    assert "advantaged" in answer.inner_text()  # who gains and who loses


def test_the_arrow_keys_go_along_the_steps_which_are_one_tab_stop(opened: Any) -> None:
    line = view(opened, "replay").locator(".line")
    assert line.locator("button[tabindex='0']").count() == 1
    line.locator("button").nth(2).click()
    opened.keyboard.press("ArrowRight")
    assert opened.evaluate("document.activeElement.getAttribute('aria-label')") == "step 3"
    opened.keyboard.press("Enter")
    assert line.locator("button.now").get_attribute("aria-label") == "step 3"
    opened.keyboard.press("Home")
    assert opened.evaluate("document.activeElement.getAttribute('aria-label')") == "step 0"


def test_a_change_that_is_chosen_with_the_keyboard_keeps_the_focus(opened: Any) -> None:
    lines = view(opened, "debug").locator(".line")
    lines.nth(0).locator("button").nth(1).click()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("Enter")
    opened.keyboard.press("ArrowRight")
    assert str(opened.evaluate("document.activeElement.getAttribute('aria-label')")).startswith("step 3")


def test_a_summary_is_printed_on_one_page(opened: Any) -> None:
    opened.evaluate("window.print = () => { window.printed = document.documentElement.className; }")
    opened.click("#print")
    assert opened.evaluate("window.printed") == "summary"
    pages = opened.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "12mm"))
    assert len(re.findall(rb"/Type\s*/Page\b", pages)) == 1
    assert opened.evaluate("document.documentElement.className") == ""  # the next print has all views again


def test_only_ticked_policies_are_proposed_and_two_views_compare_with_the_same_one(opened: Any) -> None:
    shown, answer = view(opened, "tradeoff"), opened.locator("#answer")
    shown.locator("input[type=range]").fill("100")
    first = re.search(r"(?:smallest gap is|gets most with): (.+?)\. It", answer.inner_text())
    assert first
    shown.get_by_role("checkbox", name=first[1]).uncheck()
    assert f": {first[1]}." not in answer.inner_text()
    for box in shown.locator("input[type=checkbox]").all():
        box.uncheck()
    assert "No ticked policy keeps" in answer.inner_text()
    for box in shown.locator("input[type=checkbox]").all():
        box.check()
    shown.locator("select").first.select_option(label="always")
    assert "Compared with always" in view(opened, "who").inner_text()
    view(opened, "who").locator("select").first.select_option(label="max-reward")
    assert "of what max-reward has above random" in answer.text_content()


def test_a_rectangle_picks_policies(opened: Any) -> None:
    shown = view(opened, "tradeoff")
    box = shown.locator("g[data-policy='3']").bounding_box()  # random, which is far from the others
    opened.mouse.move(box["x"] - 3, box["y"] - 3)
    opened.mouse.down()
    opened.mouse.move(box["x"] + box["width"] + 3, box["y"] + box["height"] + 3, steps=4)
    opened.mouse.up()
    checked = shown.locator("input[type=checkbox]:checked").count()
    assert 0 < checked < shown.locator("input[type=checkbox]").count()
    assert shown.locator("g.dim").count() > 0
    opened.mouse.click(box["x"], box["y"])
    assert shown.locator("g.dim").count() == 0


def test_levelling_down_is_said(opened: Any) -> None:
    shown = view(opened, "who")
    shown.locator("select").first.select_option(label="always")  # everyone gets a loan: others can only take away
    assert "Levelling down" not in shown.inner_text()
    shown.locator("select").first.select_option(label="max-reward")
    assert "Compared with max-reward" in shown.inner_text()
    said = """([x, y, limit]) => {
        const fake = (label, a, b) => ({label, kind: "scripted", performance: {value: 1}, gap: {value: a - b, limit},
            rates: {advantaged: {value: a}, disadvantaged: {value: b}}});
        P.push(fake("wide", .8, .5), fake("other", x, y));
        const text = levelling(P.length - 2, P.length - 1).textContent;
        P.splice(-2);
        return text;
    }"""
    assert "Levelling down" in opened.evaluate(said, [0.5, 0.5, 0.1])
    assert "Levelling down" not in opened.evaluate(said, [0.7, 0.6, 0.1])  # the other group gains
    assert "Levelling down" not in opened.evaluate(said, [0.5, 0.5, 0.4])  # the gap was within noise


def test_a_policy_that_has_nothing_to_give_up_is_no_reference(opened: Any) -> None:
    shown, answer = view(opened, "tradeoff"), opened.locator("#answer")
    shown.locator("select").first.select_option(label="random")
    assert answer.inner_text().startswith("random performs no better than random, so it has nothing to give up")
    shown.locator("select").first.select_option(label="max-reward")
    assert answer.inner_text().startswith("If you give up at most")
    assert opened.evaluate("() => gap({gap: {value: null}})") is None  # undefined is not fair


def test_without_policies_there_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="policies must have at least one policy"):
        explore("FairLending-v0", [], out=tmp_path / "page.html", beside=False)


def test_a_stretch_of_time_has_its_rates(opened: Any) -> None:
    shown = view(opened, "when")
    assert "Inside steps 0 to 199:" in shown.inner_text()
    shown.locator("input[type=range]").first.fill("50")
    assert re.search(r"steps \d\d+ to 199: advantaged .* is ahead of (dis)?advantaged by 0", shown.inner_text())


def test_a_step_shows_what_was_decided_and_known(opened: Any, file: Path) -> None:
    shown = view(opened, "replay")
    shown.locator("button[aria-label='step 7']").click()
    text = shown.inner_text()
    person = data_of(file)["policies"][0]["watched"]
    decided, true = text.split("True, whether anybody knew it or not")
    assert ("accept" if person["action"][7][0] else "reject") in decided and "probability" in decided
    right = person["truth"][7][0] == person["action"][7][0]
    assert re.search(rf"so the decision was\s+{'right' if right else 'wrong'}", true)
    assert "Step 7" in shown.inner_text()  # beside the slider
    assert shown.locator("img.film").get_attribute("src").startswith("data:image/webp")
    shown.locator("summary").first.click()
    assert "score_0" in shown.inner_text()


def test_one_change_marks_the_first_decision_that_differs(opened: Any, file: Path) -> None:
    shown = view(opened, "debug")
    shown.locator("select").nth(1).select_option(label="one decision is another one")
    shown.locator("input[type=range]").fill("4")
    assert "The first decision that differs is in step 4" in shown.inner_text()
    assert shown.locator("button.differs").first.get_attribute("title").startswith("step 4:")


def test_the_next_person_who_is_treated_differently_is_found(opened: Any, file: Path) -> None:
    shown = view(opened, "debug")
    shown.locator("select").first.select_option(label="observed-opportunity")
    shown.locator("select").nth(1).select_option(label="a person has another attribute")
    changes = data_of(file)["policies"][1]["watched"]["changed"][0]["places"]
    found = [step for step, change in enumerate(changes) if any(t == step for t, *_ in change["differs"])]
    shown.get_by_role("button", name="Next person").click()
    said = opened.locator("#changed").inner_text()
    if found:
        step = next((one for one in found if one > 0), found[0])
        assert f"the person in step {step} (" in said and "has another group: " in said and "instead of" in said
    else:
        assert "treats none of the persons" in said


def test_the_parts_of_a_gap_add_up(opened: Any) -> None:
    both = opened.evaluate("() => kitagawa([[2, 10], [6, 10]], [[4, 10], [5, 10]])")
    assert both["composition"] == 0 and both["rates"] == pytest.approx(0.45 - 0.4)
    people = opened.evaluate("() => kitagawa([[2, 10], [6, 10]], [[4, 20], [6, 10]])")
    assert people["rates"] == 0 and people["composition"] == pytest.approx(1 / 3 - 0.4)
    assert opened.evaluate("() => kitagawa([[0, 0]], [[1, 2]])") is None
    assert "Of this change of" in view(opened, "why").inner_text()


def test_names_in_the_plot_do_not_lie_on_each_other(opened: Any) -> None:
    labels = [[0, 10, 20, "a long name of a policy"], [1, 150, 22, "ppo"], [2, 500, 21, "dqn"], [3, 190, 23, "a2c"]]
    moved = opened.evaluate(
        "labels => [...apart(labels.map(([j, x, y, text]) => ({j, x, y, text})))].map(([j, {y}]) => [j, y])", labels
    )
    assert dict(moved) == {0: 20, 1: 34, 2: 21, 3: 23}
    crowd = [[k, 10, 400, f"policy {k}"] for k in range(8)]
    heights = opened.evaluate(
        "labels => [...apart(labels.map(([j, x, y, text]) => ({j, x, y, text})), 410).values()].map(one => one.y)",
        crowd,
    )
    assert max(heights) <= 410 and min(np.diff(sorted(heights))) >= 13
    assert opened.evaluate("shortened('a long name of a policy', 80)") == "a long nam…"


def test_the_views_can_be_reached_with_the_keyboard(opened: Any) -> None:
    opened.locator("#tab-tradeoff").focus()
    opened.keyboard.press("ArrowRight")
    assert opened.locator("#view-who").is_visible() and not opened.locator("#view-tradeoff").is_visible()
    assert opened.evaluate("() => document.activeElement.id") == "tab-who"
    assert opened.problems == []
