"""The command ``play``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import EnvId, Param, Seed, environment_parameters, imported_id, new_path, refuse
from fair_envs.support.progress import progress_bar

FILMS = (".gif", ".webp", ".mp4")  # the last one needs a further package of imageio


@app.command()
def play(
    env_id: EnvId,
    param: Param = None,
    policy: Annotated[
        str,
        typer.Option("--policy", "--run", metavar="NAME", help="The policy: random, a run, or as in `evaluate`."),
    ] = "random",
    agent: Annotated[
        str | None,
        typer.Option(
            help="The agent that you control, or none to watch only. [agent_0 if there is a key for each action]"
        ),
    ] = None,
    seed: Seed = 0,
    frames: Annotated[int | None, typer.Option(help="Stop after this number of steps.", min=1)] = None,
    gif: Annotated[Path | None, typer.Option(help="Save an animation here instead of opening a window.")] = None,
) -> None:
    """Play an environment in a window and control one agent, or save an animation.

    If you are the decision-maker, each step waits for your key. Games go on without one.
    """
    from fair_envs.cli import playing

    if gif is not None:
        if gif.suffix.lower() not in FILMS:
            raise ValueError(f"gif must end with {' or '.join(FILMS)}, got {str(gif)!r}")
        refuse({"agent": agent}, of="an animation, in which the policy controls all agents")
    rules, player = world_and_policy(imported_id(env_id), param, policy=policy)
    if gif is None:
        if agent is None and not playing.can_be_controlled(rules):
            typer.echo(f"watching: {env_id} has no key for each action; escape: quit")
            agent = "none"
        agent = agent or "agent_0"
        index = playing.agent_index(rules, agent)
        if index is not None:
            keys = ", ".join(f"{key}: {action}" for key, action in playing.described_keys(rules).items())
            typer.echo(f"{agent} is controlled by you. {keys}; escape: quit")
        playing.play_in_window(rules, player, seed=seed, agent=index, steps=frames)
        return
    path, count = new_path(gif, stem="film"), frames or 200
    with progress_bar("drawing", total=count) as drawn:
        shown = playing.pictures(rules, player, seed=seed, count=count, each=drawn)
        playing.save_film(shown, path, fps=rules.fps)
    typer.echo(f"saved {path}")


def world_and_policy(env_id: str, param: Sequence[str] | None, *, policy: str) -> tuple[Any, Any]:
    """Return rules and policy; for a run, use its parameters, overridden by the given ones."""
    from fair_envs.experiments.players import is_run, policy_tried
    from fair_envs.registration import make_rules

    if not is_run(policy):
        rules = make_rules(env_id, **environment_parameters(env_id, param))
        return rules, policy_tried(policy, rules)
    from fair_envs.baselines.players import loaded

    trained = loaded(Path(policy))
    if trained.settings.env_id != env_id:
        raise ValueError(f"id must be that of the run, {trained.settings.env_id}, got {env_id!r}")
    rules = make_rules(env_id, **environment_parameters(env_id, param, base=trained.settings.parameters))
    return rules, trained.policy(rules)
