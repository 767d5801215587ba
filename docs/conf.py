"""How Sphinx builds these pages: ``sphinx-build -W --keep-going -n docs OUT``, with bcast installed."""

import bcast

project = "bcast"
author = "The bcast developers"
project_copyright = author
version = release = bcast.__version__

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser"]
exclude_patterns = ["_build"]

default_role = "autolink"  # `name` becomes a link if it is one of ours
autodoc_typehints = "none"  # the types are in numpydoc's sections
autodoc_class_signature = "separated"  # only the evaluator makes operators
numpydoc_show_class_members = False
# No inventories of other libraries are fetched, and two of our arguments have the names of modules.
nitpick_ignore_regex = [(".*", r"(numpy|onnx|ml_dtypes|dask)(\..*)?|array|copy")]

html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_sidebars = {"**": []}  # there are few pages, all in the bar at the top
html_show_sourcelink = False
html_copy_source = False
