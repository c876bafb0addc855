"""What is printed: names that come from data are shown as they are, and never interpreted."""

from __future__ import annotations

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
