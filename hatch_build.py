"""The README as a package index shows it: there is no repository around it there, so its links must be whole addresses.

`[project.urls]` of pyproject.toml says where the repository is, as `Source`. While it does not, pictures are left out
and links become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def standalone(text: str, source: str | None, version: str) -> str:
    """Return Markdown in which no link and no picture is relative."""

    def whole(link: re.Match[str]) -> str:
        picture, words, path = link.groups()
        if source is None:
            return "" if picture else words
        return f"{picture}[{words}]({source}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return LINK.sub(whole, text)


class IndexPage(MetadataHookInterface):
    """Called by hatchling when the package is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the package's description."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = standalone(text, metadata.get("urls", {}).get("Source"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
