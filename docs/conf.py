"""Sphinx configuration: `sphinx-build -W docs docs/_build`, which needs no network."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "ttsframe"
author = "the ttsframe authors"
version = release = installed_version("ttsframe")
html_title = f"ttsframe {release}"
html_copy_source = False
html_show_copyright = False

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
    "generated_pages",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "tables"]
suppress_warnings = ["config.cache", "mystnb.unknown_mime_type"]

html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_sidebars = {"index": []}

# Docstrings name code in single backticks: a link where the name is documented, plain code elsewhere.
default_role = "py:obj"
add_module_names = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False

# Notebooks are stored with their outputs, which tests/meta/test_notebooks.py compares with the code's.
nb_execution_mode = "off"
nb_mime_priority_overrides = [
    ("html", "image/png", 0),
    ("html", "text/html", 10),
    ("html", "text/plain", 20),
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
