"""Opens pages that are files in a browser."""

from pathlib import Path
from typing import Any


def opened(browser: Any, file: Path, *, width: int = 1100, **settings: Any) -> Any:
    """Return a page, with the requests that it made and the errors that it logged.

    Args:
        browser: The browser, see the fixture ``chromium``.
        file: The page.
        width: Width of the window.
        settings: Further settings of the browser's context, such as ``java_script_enabled``.
    """
    tab = browser.new_page(viewport={"width": width, "height": 900}, **settings)
    tab.problems, tab.requests = [], []
    tab.on("console", lambda message: tab.problems.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.on("request", lambda request: tab.requests.append(request.url))
    tab.goto(file.as_uri())
    return tab
