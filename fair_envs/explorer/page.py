"""Writes the explorer: everything that it shows is in one HTML file, which needs no server and no network."""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.assessment import Evaluation, evaluate, policy_of
from fair_envs.assessment.evaluation import COURSE, STRATA, TIMES_OF_COURSE
from fair_envs.assessment.played import exactly
from fair_envs.assessment.policies import kind_of, name_of, parameters_of_run, scripted_in, training_of_run
from fair_envs.core import Rules
from fair_envs.explorer.played import Changed, Episode, play, with_other_attribute, with_other_decision
from fair_envs.metrics import Estimate
from fair_envs.support.aliases import OnProgress
from fair_envs.support.extras import need
from fair_envs.support.files import replace_file
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import environment_id, task_of

DIGITS = 4  # significant digits of numbers in the page
WIDTH, QUALITY = 560, 55  # of the pictures of a film


def explore(
    env_id: str,
    policies: Sequence[Any],
    *,
    out: Path | str,
    beside: bool = True,
    episodes: int = 64,
    seed: int = TEST_SEEDS,
    steps: int = 100,
    frames: int = 50,
    parameters: Mapping[str, Any] | None = None,
    each: OnProgress = lambda: None,
) -> Path:
    """Write one HTML file in which policies can be compared and looked at, and return its path.

    It has six views: performance against the gap, what each group gets, the course over time, an episode step by step,
    the same episode with one change, and why a gap moved. It opens from a disk in any browser and loads nothing.

    Args:
        env_id: Id of the environment.
        policies: Runs, names of scripted policies, models or functions, see `fair_envs.evaluate`. Their episodes can be
            watched.
        out: The file.
        beside: Whether random and the task's scripted policies are shown beside them.
        episodes: Number of test episodes.
        seed: Seed of the first one, which is also the one that is watched.
        steps: Number of its steps that are recorded.
        frames: Number of its steps that are drawn.
        parameters: Parameters of the environment; a run has those of its training.
        each: Called after each policy.

    Raises:
        ValueError: An argument is outside its range, or a policy is unknown or trained in another environment.
        ImportError: Pillow is not installed, and pictures are to be drawn.
    """
    env_id = environment_id(env_id)
    task = task_of(env_id)
    rules = task.rules(**(parameters or {}))
    names = ["random", *scripted_in(task, rules)] if beside else []
    given = [*policies, *(name for name in names if name not in policies)]
    if not given:
        raise ValueError("policies must have at least one policy, or beside must be True, got none")
    shown: list[dict[str, Any]] = []
    for policy in given:
        found = evaluate(env_id, policy, episodes=episodes, seed=seed, parameters=parameters)
        watched = watch(env_id, policy, found, seed=seed, steps=steps, frames=frames) if policy in policies else None
        shown.append({**of_evaluation(found), "label": label_of(policy, env_id), "watched": watched})
        each()
    spec, rate = rules.spec, task.rate_of(rules)
    data = {
        "env": env_id,
        "summary": task.summary,
        "performance": "share of successful episodes" if task.performance == "success" else "reward per step",
        "rate": rate.name,
        "benefit": f"{rate.benefit}, divided by {rate.demand}",
        "groups": list(task.rate_measure(rules, 1).group_names),
        "recorded": list(spec.groups),
        "agents": rules.multi_agent,
        "features": list(spec.features),
        "observed": list(rules.observed_features(rules.params)) if isinstance(rules, Rules) else [],
        "actions": list(getattr(rules, "action_names", None) or ()),
        "favourable": spec.favourable_action,
        "factors": {name: list(values) for name, values in spec.legitimate.items()},
        "episodes": episodes,
        "seed": seed,
        "policies": shown,
    }
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, page(data).encode())
    return path


def page(data: Mapping[str, Any]) -> str:
    """Return the HTML file for some data."""
    parts = {
        name: (files("fair_envs.explorer") / "data" / name).read_text() for name in ("page.html", "page.css", "page.js")
    }
    text = json.dumps(rounded(data), separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    found = parts["page.html"].replace("{{title}}", html.escape(f"{data['env']}: fair-envs explorer"))
    return found.replace("{{css}}", parts["page.css"]).replace("{{js}}", parts["page.js"]).replace("{{data}}", text)


def rounded(value: Any) -> Any:
    """Return plain data for JSON: numbers with few digits, and None where they are undefined."""
    if isinstance(value, Mapping):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value


# Numbers --------------------------------------------------------------------------------------------------------------


def label_of(policy: Any, env_id: str) -> str:
    """Return the name of a policy in the page: of a run, its folder, and its method unless the folder names it."""
    if kind_of(policy) == "trained" and isinstance(policy, str | Path) and Path(policy).is_dir():
        parameters_of_run(Path(policy), env_id)
        method, folder = training_of_run(Path(policy))["method"], Path(policy).resolve().name
        return folder if method in folder else f"{method} ({folder})"
    return name_of(policy)


def of_evaluation(found: Evaluation) -> dict[str, Any]:
    """Return what the page shows of an evaluation."""
    kept = found.of_episodes
    return {
        "kind": "bound" if found.about.get("uses_truth") else str(found.about.get("kind", "scripted")),
        "performance": ends(found.performance),
        "gap": {**ends(found.gap.estimate), "noise": found.gap.noise, "limit": found.gap.limit},
        "rates": {name: ends(rate) for name, rate in found.rates.items()},
        "rows": [
            {"section": row.section, "name": row.name, "of": row.of, **ends(row.estimate), "noise": row.noise,
             "beyond": bool(row.beyond_noise)}
            for row in found.rows
        ],
        "times": kept[TIMES_OF_COURSE],
        "course": kept[COURSE],
        "strata": {name.removeprefix(STRATA): own for name, own in kept.items() if name.startswith(STRATA)},
        "notes": [*found.summary(), *found.notes],
    }  # fmt: skip


def ends(estimate: Estimate) -> dict[str, float]:
    """Return a number and its interval."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


# Episodes -------------------------------------------------------------------------------------------------------------


def watch(env_id: str, policy: Any, found: Evaluation, *, seed: int, steps: int, frames: int) -> dict[str, Any] | None:
    """Return the watched episode of a policy, and the same episode with changes; None for a user's own environment."""
    rules = exactly(env_id, found.about["parameters"])
    if not isinstance(rules, Rules):
        return None
    episode = play(rules, policy_of(policy, rules), seed=seed, steps=steps, frames=frames)
    changes = [
        with_other_attribute(rules, policy_of(policy, rules), episode, seed=seed),
        with_other_decision(rules, policy_of(policy, rules), seed=seed, steps=len(episode.action)),
    ]
    return {
        "group": episode.group,
        "action": episode.action,
        "label": episode.label,
        "truth": episode.truth,
        "outcome": episode.reward if rules.multi_agent else episode.outcome,
        "features": episode.features if rules.spec.one_person else [],
        "observation": episode.observation,
        "probabilities": episode.probabilities,
        "reward": episode.reward.mean(axis=1),
        "frames": [picture(frame) for frame in episode.frames],
        "changed": [differences(episode, change, rules) for change in changes if change is not None],
    }


def differences(episode: Episode, change: Changed, rules: Rules) -> dict[str, Any]:
    """Return what a change led to: the decisions and outcomes that differ, by the place of the change."""
    steps = min(len(episode.action), change.action.shape[1])
    own = episode.reward if rules.multi_agent else episode.outcome
    found: list[dict[str, Any]] = []
    for place in range(len(change.places)):
        action, outcome = change.action[place, :steps], change.outcome[place, :steps]
        when, who = np.nonzero(action != episode.action[:steps])
        found.append(
            {
                "differs": [[int(t), int(i), int(action[t, i])] for t, i in zip(when, who, strict=True)],
                "outcome": by_group(outcome, episode, steps) - by_group(own[:steps], episode, steps),
                "own": own_outcome(outcome, own, place, change.kind, rules),
            }
        )
    return {"kind": change.kind, "places": found, "told": list(change.told)}


def by_group(outcome: NDArray[np.float64], episode: Episode, steps: int) -> NDArray[np.float64]:
    """Return the sum of the outcomes of each group, by the groups in the episode itself."""
    count = int(episode.group.max(initial=0)) + 1
    return np.array([outcome[episode.group[:steps] == g].sum() for g in range(count)])


def own_outcome(
    outcome: NDArray[np.float64], own: NDArray[np.float64], place: int, kind: str, rules: Rules
) -> float | None:
    """Return how the outcome of the changed person, or agent, differs; None: the change is not of one person."""
    if rules.multi_agent:
        agent = place if kind == "attribute" else 0
        return float(outcome[:, agent].sum() - own[: len(outcome), agent].sum())
    if not rules.spec.one_person or place >= len(outcome):
        return None
    return float(outcome[place, 0] - own[place, 0])


def picture(frame: NDArray[np.uint8]) -> str:
    """Return a picture as a data URI.

    Raises:
        ImportError: Pillow is not installed.
    """
    need("a film", "PIL", extra="render")
    from PIL import Image

    image = Image.fromarray(frame)
    image = image.resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    image.save(buffer, "WEBP", quality=QUALITY, method=4)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
