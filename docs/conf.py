"""Sphinx: `make docs` builds with warnings as errors."""

import sys
from pathlib import Path

import armdyn
from armdyn.formulations import DERIVATIVES, QUANTITIES

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "armdyn"
author = "the armdyn authors"
copyright = "the armdyn authors"
version = release = armdyn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinxcontrib.bibtex",
    "armdyn_pages",
]
exclude_patterns = ["_build", "_extensions", "_templates"]
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

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88  # longer ones: one parameter per line
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_context = {"quantities": [*QUANTITIES, *DERIVATIVES]}
templates_path = ["_templates"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
