"""The address space that a command takes, asked for before the libraries are loaded that would end the process.

They do not ask first: where none is left they abort, crash, or try for ever, without a word of ours.
"""

from __future__ import annotations

import resource

from reconciler.errors import EngineUnavailableError
from reconciler.text import size

_LEAST = 140_000_000
"""Bytes with which every command but those of the join loads its libraries; with 130 MB some were seen to crash."""

_RESERVED = 2_500_000_000
"""Bytes of address space that the libraries of the join reserve on one thread; most of it they never touch."""

_JOINS = frozenset({"audit", "doctor", "fleet.diff"})
"""The commands with a join."""

_WITHOUT_LIBRARIES = frozenset({"help", "runbook", "completion"})


def is_limited() -> bool:
    """Whether the address space of this process is limited, as ``ulimit -v`` does it."""
    return _limit() is not None


def refuse_small_address_space(verb: str) -> None:
    """Refuse to load a verb that could not load its libraries.

    Raises:
        EngineUnavailableError: the limit is too low.
    """
    limit = _limit()
    if limit is not None and limit < _LEAST and verb not in _WITHOUT_LIBRARIES:
        raise EngineUnavailableError(
            f"the address space is limited to {size(limit)} (ulimit -v), and the libraries of 'logstore {verb}' "
            f"take {size(_LEAST)}: raise that limit"
        )


def refuse_join(command: str) -> None:
    """Refuse to load a command with a join where the limit is too low for one; others pass.

    Raises:
        EngineUnavailableError: the limit is too low.
    """
    limit = _limit()
    if limit is not None and limit < _RESERVED and command in _JOINS:
        raise EngineUnavailableError(
            f"the address space is limited to {size(limit)} (ulimit -v), and a comparison reserves "
            f"{size(_RESERVED)}, of which it touches little: raise that limit; 'logstore audit --memory' limits "
            "what is really used. 'logstore scan' works as it is"
        )


def _limit() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


_NOT_MAPPED = "failed to map segment"
"""What the loader of the system says where the address space of a process is limited to too little."""


def no_room(error: BaseException) -> str | None:
    """Say that a command finds no memory, or no address space, and what to do; None: it is another error."""
    match error:
        case MemoryError() | SystemError() if is_limited():
            # Where a library finds no room while it is loaded, the interpreter may say no more than SystemError.
            return "the address space is limited to less than this command takes: raise that limit (ulimit -v)"
        case MemoryError():
            return "there is not enough memory: audit fewer log dirs at a time, or inventories instead of trees"
        case ImportError() if _NOT_MAPPED in str(error):
            return f"a library finds no room in the address space: raise that limit (ulimit -v); {error!s:.200}"
        case _:
            return None
