"""Sphinx builds the site from here: `sphinx-build -W docs docs/_build`."""

import sys
from pathlib import Path

import rbchain

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import diagram  # noqa: E402  in this folder

from rbchain.simulate.methods import table_for_documentation  # noqa: E402

(HERE / "pictures/architecture.svg").write_text(diagram.draw(), encoding="utf-8")
(HERE / "pictures/methods.txt").write_text(table_for_documentation(), encoding="utf-8")

project = "rbchain"
author = "The rbchain developers"
release = version = rbchain.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx-mathjax-offline",  # equations without a network
    "sphinx.ext.viewcode",
    "links",
    "sphinx_copybutton",
]
# Short lists of the names that the pages mention, because a build has to work without a network.
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", "inventories/numpy.inv"),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "inventories/scipy.inv"),
    "xarray": ("https://docs.xarray.dev/en/stable/", "inventories/xarray.inv"),
    "pandas": ("https://pandas.pydata.org/docs/", "inventories/pandas.inv"),
}
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "rbchain"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
exclude_patterns = ["_build"]
templates_path = []
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
