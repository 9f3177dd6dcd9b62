"""The parameters of ``logstore completion``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, carry_out

_EPILOG = """\b
Examples:
  eval "$(logstore completion bash)"
  logstore completion zsh > ~/.zfunc/_logstore
  logstore completion fish > ~/.config/fish/completions/logstore.fish
"""


@click.command("completion", epilog=_EPILOG)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def command(**given: Any) -> Exit:
    """Print what makes a shell complete commands, options, paths, metadata sources, verdicts and topics.

    SHELL is bash, zsh or fish. The lines go into the shell's start-up file, or into a file that the shell reads.
    """
    return carry_out("guide.completion", given)
