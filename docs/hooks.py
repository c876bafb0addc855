"""Render the tutorials, which are scripts, as pages: comments that begin with `# %%` are text, the rest is code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files


def page(script: str) -> str:
    """Return the Markdown page of a tutorial: its docstring, then text and code in turn."""
    docstring, _, body = script.removeprefix('"""').partition('"""\n')
    parts = ["# " + docstring.strip()]
    for cell in re.split(r"^# %% ?", body, flags=re.MULTILINE):
        lines = cell.strip("\n").split("\n")
        count = next((i for i, line in enumerate(lines) if not line.startswith("# ") and i > 0), len(lines))
        text = [line.removeprefix("# ") for line in lines[:count]] if body.startswith(cell) is False else []
        code = "\n".join(lines[len(text) :]).strip("\n")
        parts += ["\n".join(text)] if text else []
        parts += [f"```python\n{code}\n```"] if code else []
    return "\n\n".join(parts) + "\n"


def on_files(files: Files, config: Any) -> Files:
    """Add a page for every tutorial."""
    folder = Path(config.docs_dir) / "tutorials"
    for script in sorted(folder.glob("*.py")):
        text = page(script.read_text(encoding="utf-8"))
        text += f"\n[Download this page as a script]({script.name})\n"
        files.append(File.generated(config, f"tutorials/{script.stem}.md", content=text))
    return files
