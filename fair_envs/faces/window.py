"""A window on the screen for the render mode ``human``; works with pygame or pygame-ce."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.support.extras import missing

NEEDS_PYGAME = (
    f"{missing('rendering', 'pygame', extra='render')}. Gymnasium's check_env renders too: "
    "check_env(env, skip_render_check=True) checks an environment without it"
)


def import_pygame() -> Any:
    """Return the module pygame.

    Raises:
        ImportError: pygame is not installed; the message contains the command that installs it.
    """
    try:
        import pygame
    except ImportError as error:
        raise ImportError(NEEDS_PYGAME) from error
    return pygame


class Window:
    """Shows frames at a constant rate.

    Args:
        title: Title of the window.
        fps: Frames per second.
    """

    def __init__(self, *, title: str, fps: int) -> None:
        self._pygame = import_pygame()
        self._pygame.display.init()
        self._title, self._fps = title, fps
        self._screen: Any = None
        self._clock = self._pygame.time.Clock()

    def show(self, frame: NDArray[np.uint8]) -> None:
        """Show a frame, shape (height, width, 3), and wait until it is time for the next."""
        size = frame.shape[1], frame.shape[0]
        if self._screen is None or self._screen.get_size() != size:
            self._screen = self._pygame.display.set_mode(size)
            self._pygame.display.set_caption(self._title)
        self._pygame.event.pump()
        picture = self._pygame.surfarray.make_surface(np.ascontiguousarray(frame.swapaxes(0, 1)))
        self._screen.blit(picture, (0, 0))
        self._pygame.display.flip()
        self.wait()

    def wait(self) -> None:
        """Wait until it is time for the next frame."""
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()
