"""Runs the command line: the scripts ``logstore`` and ``logstore-spark-audit``.

Where no script is installed, ``python -m reconciler.cli`` is ``logstore``.
"""

import os
import sys
from importlib.util import find_spec

_USAGE, _REFUSED, _INTERRUPTED = 2, 3, 130
"""As :class:`reconciler.cli.frame.Exit` has them, which may not be loaded yet."""

_NOT_MAPPED = "failed to map segment"
"""What the loader of the system says where the address space of a process is limited to too little."""


def main() -> None:
    """Run the command line and leave with its exit code; an interrupt while it is loaded is a sentence too."""
    is_loaded = False
    try:
        from reconciler.cli.signals import heed_interrupt, interrupt_after_imports

        interrupt_after_imports()
        other = _in_place_of_ours()
        if other is not None:
            print(
                f"logstore: {other} is found in place of a package of this program that has the same name; leave "
                "PYTHONPATH unset, or start from another folder",
                file=sys.stderr,
            )
            sys.exit(_USAGE)
        from reconciler.cli.verbs import run

        heed_interrupt()
        is_loaded = True
        run()
    except KeyboardInterrupt:
        if not is_loaded:
            print("logstore: interrupted before anything was done", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except (ImportError, MemoryError) as error:
        if isinstance(error, ImportError) and _NOT_MAPPED not in str(error):
            raise
        print(f"logstore: Python itself finds no room: raise the limit of memory (ulimit -v); {error}", file=sys.stderr)
        sys.exit(_REFUSED)


def _in_place_of_ours() -> str | None:
    """Return what Python finds in place of a package that was installed with this one; None: it finds ours."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for name in ("layout", "logstore"):
        found = find_spec(name)
        places = [] if found is None else list(found.submodule_search_locations or [found.origin or name])
        if places and os.path.abspath(places[0]) != os.path.join(home, name):
            return places[0]
    return None


def spark_audit() -> None:
    """Run ``logstore audit --spark`` with the arguments of this process, as a job for spark-submit."""
    sys.argv[1:1] = ["audit", "--spark"]
    main()


if __name__ == "__main__":
    main()
