"""``logstore completion``: prints the lines by which a shell asks this program what may follow."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from reconciler.cli.frame import Exit, destination

_VARIABLE = "_LOGSTORE_COMPLETE"
"""What click looks for in the environment, by the name of the program."""

_TAKEN = "COMPREPLY+=($value)\n"
_OPEN_END = """            [[ $value != *: ]] || compopt -o nospace
"""
"""Lets bash set no space after the prefix of a source, to which an address or a path belongs."""


def run(*, shell: str) -> Exit:
    """Print the script of a shell."""
    with destination(None) as out:
        out.write(script(shell).encode())
    return Exit.CLEAN


def script(shell: str) -> str:
    """Return the script of a shell, as click makes it."""
    kind = get_completion_class(shell)
    assert kind is not None, shell
    text = kind(click.get_current_context().find_root().command, {}, "logstore", _VARIABLE).source()
    return text.replace(_TAKEN, f"{_TAKEN}{_OPEN_END}") if shell == "bash" else text
