"""What the user sees when something goes wrong, never a traceback; and how a command that is stopped ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..screen import Screen


@contextmanager
def clear_messages() -> Iterator[None]:
    """Report a user's mistakes, and disks and folders that cannot be used, in words, and end with status 2."""
    if not sys.warnoptions:  # for people, unless Python was told how to treat warnings
        warnings.showwarning = note
    threading.excepthook = in_thread
    try:
        yield
    except (ValueError, OSError) as error:
        if os.environ.get("LIESPLINE_DEBUG"):
            raise
        file = getattr(error, "filename", None)
        text = f"{file}: {error.strerror}" if isinstance(error, OSError) and file else str(error)
        # Long lines are the terminal's to break: a path is to be copied whole.
        Screen(stderr=True).print(f"Error: {text}", style="red", soft_wrap=True)
        sys.exit(2)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Treat SIGTERM, by which clusters end jobs, like Ctrl-C: the processes that were started end too."""
    if threading.current_thread() is not threading.main_thread():  # no other may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def note(message: Warning | str, *place: Any, **more: Any) -> None:
    """A warning as a sentence, without the line of code it came from."""
    Screen(stderr=True).print(f"Note: {message}", style="yellow", soft_wrap=True)


def in_thread(failed: threading.ExceptHookArgs) -> None:
    """Ignore a disk that a logger's thread cannot write to: the main thread meets the same error."""
    if not isinstance(failed.exc_value, OSError):
        threading.__excepthook__(failed)
