"""What ends a training before its time."""

from stable_baselines3.common.callbacks import BaseCallback


class Interrupt(BaseCallback):
    """Presses Ctrl-C at a step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def _on_step(self) -> bool:
        if self.n_calls == self.step:
            raise KeyboardInterrupt
        return True


class Stop(BaseCallback):
    """Ends the training at a step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def _on_step(self) -> bool:
        return self.n_calls < self.step
