"""Sphinx configuration."""

from pindown import __version__

project = "pindown"
author = "the pindown developers"
copyright = "2026, the pindown developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "html_image", "attrs_inline"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "pindown"
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_scaled_image_link = False  # thumbnails lead to their pages
suppress_warnings = ["ref.python"]  # attributes of several classes share names such as order and shape
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_use_ivar = True  # an attribute is described once, not once more as a field
napoleon_attr_annotations = False  # reST would read np.bool_ as a reference
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array", "Matrix": "Matrix"}


def setup(app):
    """Leave out what scikit-learn adds to every estimator: it refers to pages of scikit-learn."""

    def skip(app, what, name, obj, skipped, options):
        return True if name.startswith("set_") and name.endswith("_request") else None

    app.connect("autodoc-skip-member", skip)
