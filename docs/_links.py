"""Checks a built website: every link, picture and script is a file of it, and every anchor exists.

    python docs/_links.py docs/_build/html

Links to other hosts are not opened, but nothing may be loaded from one: the website works offline.
"""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
GENERATED = ("_modules", "_static")  # source code and templates
HINTS = ("canonical", "search", "index")  # relations of <link> that load nothing


@cache
def page(path: Path) -> BeautifulSoup:
    """Return a parsed page."""
    return BeautifulSoup(path.read_text(), "html.parser")


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a page."""
    found = page(path)
    return frozenset(
        [tag["id"] for tag in found.find_all(id=True)]
        + [tag["name"] for tag in found.find_all("a", attrs={"name": True})]
    )


def broken(root: Path) -> Iterator[str]:
    """Yield what is wrong with the links of a website."""
    for path in sorted(root.rglob("*.html")):
        name = path.relative_to(root)
        if name.parts[0] in GENERATED:
            continue
        for kind, attribute in LOADED.items():
            for tag in page(path).find_all(kind):
                if urlsplit(tag.get(attribute, "")).netloc and not set(tag.get("rel", ())) & set(HINTS):
                    yield f"{name} loads {tag[attribute]} from another host"
        for tag in page(path).find_all(["a", "img", "script", "link"]):
            target = tag.get("href") or tag.get("src") or ""
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or not target:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.exists():
                yield f"{name} links to {target}, which does not exist"
            elif parts.fragment and file.suffix == ".html" and parts.fragment not in anchors(file):
                yield f"{name} links to {target}, which has no such anchor"


def main(root: Path) -> int:
    """Print what is broken, and return the exit status."""
    found = sorted(set(broken(root)))
    print("\n".join(found) or f"{sum(1 for _ in root.rglob('*.html'))} pages, no broken link")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
