"""Draws formulas as MathML, which browsers show without a script and screen readers read. An extension of Sphinx."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (draw("inline"), None), (draw("block"), None))  # type: ignore[arg-type]
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def draw(display: Any) -> Any:
    """Return the function that writes a formula."""

    def visit(translator: Any, node: nodes.Element) -> None:
        translator.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit
