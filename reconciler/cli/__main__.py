"""Runs the command line as ``python -m reconciler.cli``, where no script is installed."""

from reconciler.cli import main

main()
