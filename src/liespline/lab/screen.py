"""What is printed: names as they are, mistakes in a sentence, nothing of libraries' internals."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text


class Screen(Console):
    """A console for which text is text: no markup, no emoji codes, no commands to the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text with a mark in place of each character that would move the cursor or change the terminal."""
        return super().render_str(printable(text), **options)


def printable(text: str) -> str:
    """The text with � for each character that is not to be seen, line breaks apart."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


@contextmanager
def quiet(loggers: Sequence[str], messages: Sequence[str]) -> Iterator[None]:
    """Keep what libraries say of their own internals off the screen: all but errors, and warnings that begin so."""
    known = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in known]
    for logger in known:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for message in messages:
                warnings.filterwarnings("ignore", message)
            yield
    finally:
        for logger, level in zip(known, levels, strict=True):
            logger.setLevel(level)


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
