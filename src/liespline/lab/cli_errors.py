"""What the user sees when something goes wrong: one clear message, never a traceback."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .screen import Screen


@contextmanager
def clear_messages() -> Iterator[None]:
    """Say mistakes of the user's, and disks and folders that cannot be used, in words, and end with status 2."""
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
        Screen(stderr=True).print(f"Error: {text}", style="red")
        sys.exit(2)


def note(message: Warning | str, *place: Any, **more: Any) -> None:
    """A warning as a sentence, without the line of code it came from."""
    Screen(stderr=True).print(f"Note: {message}", style="yellow")


def in_thread(failed: threading.ExceptHookArgs) -> None:
    """Leave a disk that a logger's thread cannot write to for the main thread, which meets it too."""
    if not isinstance(failed.exc_value, OSError):
        threading.__excepthook__(failed)
