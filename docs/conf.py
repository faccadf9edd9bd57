"""Configuration of the website: `make docs` builds it from the Markdown files here and the docstrings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from importlib.metadata import version as installed

project = "fair-envs"
author = "The fair-envs authors"
release = installed("fair-envs")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "_board",
    "_mathml",
    "_pages",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure"]  # of lines that belong into a file
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
default_role = "py:obj"  # names in single backticks are links where they are known
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_use_ivar = True  # attributes are described once, in their class
autosummary_generate = False
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "fair-envs"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {"secondary_sidebar_items": ["page-toc"]}  # pages without sections have room for their tables
# The theme logs an error if no mode was chosen; as `default_mode`, "auto" would have no colours without scripts.
html_js_files = [("", {"body": "document.documentElement.dataset.mode ||= 'auto'"})]
