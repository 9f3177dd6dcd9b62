"""``logstore completion``: prints the lines by which a shell asks this program what may follow."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from reconciler.cli.frame import Exit, destination

_VARIABLE = "_LOGSTORE_COMPLETE"
"""What click looks for in the environment, by the name of the program."""

_BASH = {
    "COMPREPLY+=($value)\n": """COMPREPLY+=($value)
            [[ $value != *: ]] || compopt -o nospace
"""
}
"""Sets no space after the prefix of a source, to which an address or a path belongs; bash completes that path."""

_ZSH = {
    "            _path_files -f\n": """            compset -P '({schemes}):'
            _path_files -f
""",
    "        compadd -U -V unsorted -a completions\n": """        local -a end
        [[ ${{completions[1]}} != *: ]] || end=(-S '')
        compadd -U -V unsorted "${{end[@]}}" -a completions
""",
}
"""Completes the path after the prefix of a source, and sets no space after a prefix."""

_FISH = {
    "            __fish_complete_path $metadata[2];\n": """\
            set -l prefix (string match -r '^(?:{schemes}):' -- $metadata[2]);
            __fish_complete_path (string replace -r '^(?:{schemes}):' '' -- $metadata[2]) \\
                | string replace -r '^' "$prefix";
"""
}
"""Completes the path after the prefix of a source."""

_ADDED = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""Shell → what click's script for it has → what stands there in ours."""


def run(*, shell: str) -> Exit:
    """Print the script of a shell."""
    with destination(None) as out:
        out.write(script(shell).encode())
    return Exit.CLEAN


def script(shell: str) -> str:
    """Return the script of a shell: click's, with what it lacks for metadata sources."""
    from reconciler.sources import SOURCES

    kind = get_completion_class(shell)
    assert kind is not None, shell
    text = kind(click.get_current_context().find_root().command, {}, "logstore", _VARIABLE).source()
    schemes = "|".join(each.scheme for each in SOURCES if each.is_path)
    for lines, ours in _ADDED[shell].items():
        text = text.replace(lines, ours.format(schemes=schemes))
    return text
