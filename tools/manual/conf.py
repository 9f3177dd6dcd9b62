"""What Sphinx makes the book by."""

from __future__ import annotations

import builtins
import re
from importlib.metadata import version as installed_version
from typing import Any

from docutils.nodes import Element, document
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring

project = "logstore"
version = release = installed_version("kafka-logstore")
extensions = ["sphinx.ext.autodoc", "myst_parser"]
smartquotes = False
"""Two hyphens are the start of an option, and no dash."""

html_theme = "alabaster"
html_theme_options = {"page_width": "1200px", "sidebar_width": "260px", "show_powered_by": False}
html_static_path = ["book.css"]
html_css_files = ["book.css"]
html_copy_source = html_show_copyright = False
highlight_language = "text"
pygments_style = "default"
toc_object_entries = False
myst_heading_anchors = 3
python_display_short_literal_types = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True}
nitpick_ignore_regex = [("py:.*", r"(?!(layout|logstore|reconciler)\b)[a-z_]\w*\..*"), ("py:.*", r".*\._\w+")]
"""Other libraries' names, which lead to no page here, for theirs would be fetched; and private ones."""

_TOP_LEVEL = ("class", "exception", "function", "data")
_GOOGLE: Any = Config(napoleon_use_ivar=True, napoleon_attr_annotations=False)
_FIELD = re.compile(r"^:ivar (\w+): (.*(?:\n +\S.*)*)", re.MULTILINE)


_fields: dict[str, list[str]] = {}
"""Full name of a field → what the docstring of its class says of it."""


def read_google_style(app: Sphinx, *described: Any) -> None:
    """Read Args, Raises and Attributes of a docstring; what the last says of a field goes to where that is shown.

    Napoleon as an extension would show it twice, and take what stands before a colon below a field for its type.
    """
    what, name, value, lines = described[0], described[1], described[2], described[-1]
    if what in ("attribute", "data", "property"):
        if not any(lines) or lines[0].startswith("Alias for field number "):
            lines[:] = _fields.get(name, [])
        return

    def kept(field: re.Match[str]) -> str:
        if field[1] not in getattr(value, "__annotations__", ()):
            return field[0]
        _fields[f"{name}.{field[1]}"] = [line.strip() for line in field[2].splitlines()]
        return ""

    lines[:] = _FIELD.sub(kept, "\n".join(GoogleDocstring(list(lines), _GOOGLE, what=what).lines())).split("\n")


def mend_signature(app: Sphinx, *described: Any) -> tuple[str, str | None] | None:
    """Show a default without a text of its own as dots, as ``<factory>`` makes a signature unreadable to Sphinx.

    A protocol, which nobody calls, gets no signature.
    """
    value, signature, returned = described[2], *described[-2:]
    if getattr(value, "_is_protocol", False):
        return "", None
    return (re.sub(r"<[^<>]*>", "...", signature), returned) if signature else None


def leave_built_in_types_alone(app: Sphinx, tree: document) -> None:
    """Make plain text of the names of Python's own types, which would be taken for fields of these names."""
    for node in list(tree.findall(pending_xref)):
        if hasattr(builtins, node["reftarget"]):
            node.replace_self(node.children)


def find_by_last_part(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: Element) -> Element | None:
    """Resolve a name by its last part, where only one class, function or constant of ours has that."""
    domain = env.domains.python_domain
    last = node["reftarget"].rpartition(".")[2]
    found = {
        name
        for name, entry in domain.objects.items()
        if name.rpartition(".")[2] == last and entry.objtype in _TOP_LEVEL and not entry.aliased
    }
    if len(found) != 1 or node["reftarget"] in found:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found.pop(), node, text)


def setup(app: Sphinx) -> None:
    """Connect them."""
    app.connect("autodoc-process-docstring", read_google_style)
    app.connect("autodoc-process-signature", mend_signature)
    app.connect("doctree-read", leave_built_in_types_alone)
    app.connect("missing-reference", find_by_last_part)
