"""What is printed: names that come from data as they are, never interpreted, and nothing of libraries' internals."""

from __future__ import annotations

import logging
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
