"""Sphinx: `make docs` builds with warnings as errors."""

import sys
from pathlib import Path

import armdyn

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "armdyn"
author = "the armdyn authors"
copyright = "the armdyn authors"
version = release = armdyn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinxcontrib.bibtex",
    "armdyn_pages",
]
exclude_patterns = ["_build", "_extensions"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

html_theme = "furo"
html_title = f"armdyn {release}"
html_static_path = ["_static"]
html_css_files = ["extra.css"]
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
bibtex_bibfiles = ["../src/armdyn/references.bib"]
bibtex_default_style = "unsrt"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
