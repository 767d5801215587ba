"""How Sphinx builds these pages: ``sphinx-build -W --keep-going -n docs OUT``, with bcast installed."""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import bcast
from bcast._api.named import FUNCTIONS

project = "bcast"
author = "The bcast developers"
project_copyright = author
version = release = bcast.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

default_role = "autolink"  # `name` becomes a link if it is one of ours
autodoc_typehints = "none"  # the types are in numpydoc's sections
autodoc_class_signature = "separated"  # only the evaluator makes operators
autosummary_generate = True
numpydoc_show_class_members = False
# No inventories of other libraries are fetched, two of our arguments have the names of modules, and functions under the
# names of ufuncs have one table instead of pages.
nitpick_ignore_regex = [
    (".*", r"(numpy|onnx|ml_dtypes|dask)(\..*)?|array|copy"),
    (".*", rf"(bcast\.)?({'|'.join(FUNCTIONS)})"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Prompts are not copied, and neither is what an example prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The gallery's pictures have a white ground, which a margin sets off from a dark page.
plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_apply_rcparams = True
plot_rcparams = {
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.size": 10,
    "savefig.bbox": None,
}

WIDE = ("coming-from", "faster", "modes", "replacements", "report", "report-sums")  # pages that need the room

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "footer_end": [],
    "logo": {"text": "bcast"},
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"]} | {name: [] for name in WIDE},
    "show_toc_level": 2,
}
html_sidebars = {name: [] for name in ("index", "faq", "changelog", "search", "genindex")}  # they stand alone
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_favicon = html_logo = "_static/icon.svg"
html_title = f"bcast {release}"
html_show_sourcelink = False
html_copy_source = False


def setup(app):
    """Connect what changes pages after they are read."""
    app.connect("doctree-read", strip_examples)
    app.connect("doctree-read", link_names)


def strip_examples(_, page):
    """Drop the blank line that ends an example: doctest needs it, readers do not."""
    for block in page.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block.children = [nodes.Text(block.rawsource)]


def link_names(app, page):
    """Link the names of our functions in pages of Markdown, which has no roles that other renderers understand."""
    name = app.env.docname
    if name in {"dask", "changelog"} or Path(app.env.doc2path(name)).suffix != ".md":
        return  # the first two also name the functions for dask arrays
    for literal in list(page.findall(nodes.literal)):
        function = literal.astext().removeprefix("bcast.").removesuffix("()")
        if function in bcast.__all__ and function not in FUNCTIONS and isinstance(literal.parent, nodes.paragraph):
            target = {"refdomain": "py", "reftype": "func", "reftarget": f"bcast.{function}"}
            link = addnodes.pending_xref("", refdoc=name, refexplicit=True, refwarn=True, **target)
            literal.replace_self(link)
            literal["classes"] += ["xref", "py", "py-func"]
            link += literal
