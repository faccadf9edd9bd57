"""What the tests of learners with the callbacks of Stable-Baselines3 share."""

from typing import Any

from stable_baselines3.common.callbacks import BaseCallback


class KeepRecord(BaseCallback):
    """Keeps the info of each step of the first row."""

    def __init__(self) -> None:
        super().__init__()
        self.infos: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        self.infos.append(self.locals["infos"][0])
        return True
