"""Build the documentation: make docs."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

import unweave

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))
for name in ("unweave", "traitlets", "httpx"):
    logging.getLogger(name).setLevel(logging.WARNING)  # Sphinx would show every stage of every recovery
# Notebooks run with no settings of the user's own. Their kernel need not warn that it talks to this machine.
_ipython = Path(tempfile.mkdtemp(prefix="unweave-docs-"))
atexit.register(shutil.rmtree, _ipython, ignore_errors=True)
(_ipython / "profile_default").mkdir()
(_ipython / "profile_default" / "ipython_kernel_config.py").write_text(
    "get_config().IPKernelApp.log_level = 40\n"
)
os.environ["IPYTHONDIR"] = str(_ipython)

project = "unweave"
author = "The unweave authors"
copyright = "the unweave authors, Apache-2.0"  # the name is Sphinx's
version = release = unweave.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "plain_docstrings",
    "repository_pages",
    "api_pages",
]
exclude_patterns = [
    "_build",
    "_ext",
    "gallery/*.ipynb",
    "gallery/sg_execution_times.rst",
    "**.ipynb_checkpoints",
]
html_theme = "furo"
html_title = f"unweave {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b4965", "color-brand-content": "#1b6a93"}
}

# Pages of the repository are read on the site and as plain files: links are those of the files.
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache", "ref.python"]  # a name of an attribute may occur in several classes
linkcheck_ignore = [r"http://127\.0\.0\.1.*", r"http://localhost.*", r"https?://[^/]*example.*"]

nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

toc_object_entries = False
autodoc_typehints = "signature"
autodoc_type_aliases = {
    name: name for name in ("Array", "IntArray", "BoolArray", "RealArray", "AnyArray", "Jet")
}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
napoleon_use_ivar = True

sphinx_gallery_conf = {
    "examples_dirs": str(DOCS.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "within_subsection_order": "gallery_order.RecoverFirst",
    "ignore_pattern": r"my_model\.py$",  # a file for the command line
}
