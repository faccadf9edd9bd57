"""Do networks by hand learn like those of autograd? ``python benchmarks/learning_curves.py --out FOLDER`` trains both.

PPO learns FairLending, FairHiring and FairHarvest with the settings of their tasks and five seeds, by hand and with
autograd, whose results are those of Stable-Baselines3. The table shows the mean reward of a step in the last tenth of
the trainings, the difference of both ways, and the time that each took. The plot shows all learning curves.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.baselines import methods
from fair_envs.baselines.training import MeanReward, make_model, train_as
from fair_envs.experiments.tables import markdown
from fair_envs.metrics.intervals import mean_interval
from fair_envs.support.files import replace_file

ENV_IDS = ("FairLending-v0", "FairHiring-v0", "FairHarvest-v0")
WAYS = {"by hand": False, "autograd": True}


class Curve(MeanReward):
    """Records the mean reward of each rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.rewards: list[float] = []

    def _on_rollout_end(self) -> None:
        self.rewards += self.named().values()


def trained(env_id: str, *, seed: int, steps: int | None, autograd: bool) -> tuple[list[float], float]:
    """Train PPO; return the mean reward of each rollout, and the CPU time in seconds."""
    given: dict[str, Any] = {"env_id": env_id, "algorithm": "ppo", "seed": seed}
    settings = methods.named("ppo").configured(given if steps is None else {**given, "steps": steps})

    def make(config: Any) -> Any:
        model: Any = make_model(config)
        model.autograd = autograd
        return model

    curve, begin = Curve(), time.process_time()
    train_as(settings, make, callback=curve)
    return curve.rewards, time.process_time() - begin


def plot(curves: dict[str, dict[str, list[list[float]]]], path: Path) -> None:
    """Draw the learning curves of all seeds, with their mean."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(5 * len(curves), 3.6), squeeze=False)
    for axis, (env_id, ways) in zip(axes[0], curves.items(), strict=True):
        for colour, (way, runs) in zip(("tab:blue", "tab:orange"), ways.items(), strict=True):
            of_seeds = np.array(runs)
            axis.plot(of_seeds.T, color=colour, alpha=0.25, linewidth=0.8)
            axis.plot(of_seeds.mean(axis=0), color=colour, label=way)
        axis.set(title=env_id, xlabel="rollouts", ylabel="mean reward of a step")
        axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Train both ways, and write the table and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("runs/learning-curves"), help="Folder of the table and the plot."
    )
    parser.add_argument("--seeds", type=int, default=5, help="Number of seeds.")
    parser.add_argument("--steps", type=int, help="Steps of each training; by default those of the task.")
    given = parser.parse_args()
    curves: dict[str, dict[str, list[list[float]]]] = {}
    rows = []
    for env_id in ENV_IDS:
        runs: dict[str, list[list[float]]] = {way: [] for way in WAYS}
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for seed in range(given.seeds):
            for way, autograd in WAYS.items():
                rewards, took = trained(env_id, seed=seed, steps=given.steps, autograd=autograd)
                runs[way].append(rewards)
                seconds[way].append(took)
        last = {way: [np.mean(curve[-max(len(curve) // 10, 1) :]) for curve in found] for way, found in runs.items()}
        apart = np.subtract(last["by hand"], last["autograd"])
        times = {way: float(np.median(took)) for way, took in seconds.items()}
        means = [*(mean_interval(found) for found in last.values()), mean_interval(apart)]
        rows.append([env_id, *(f"{one:.4g}" for one in means), *(f"{one:.1f}" for one in times.values())])
        curves[env_id] = runs
        print(rows[-1], flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    columns = ["environment", *(f"reward {way}" for way in WAYS), "difference", *(f"CPU s {way}" for way in WAYS)]
    text = markdown(columns, rows)
    replace_file(given.out / "table.md", f"{text}\n".encode())
    plot(curves, given.out / "curves.png")
    print(text)


if __name__ == "__main__":
    main()
