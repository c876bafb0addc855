"""Make pages of what is written elsewhere: the README, the tutorials' scripts, and what was measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import explore
from liespline.lab.cli.options import plain
from liespline.lab.settings import SETTINGS
from liespline.lab.settings.definition import Setting
from liespline.lab.tasks.defaults import DEFAULTS, takers

# Pages of the site that are files of the repository. Each is written once and read in both places.
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "speed.md",
}
SETTINGS_FILE = "src/liespline/lab/settings/parts.py"
"""What the page of settings is made from, and what a reader of the repository sees instead."""
WIDE = "---\nhide:\n  - toc\n---\n"
"""Above a page whose table needs the width."""
PICTURE = r"!\[(.*?)\]\((.*?)-light\.png\)"
BOTH_THEMES = r"![\1](\2-light.png#only-light)\n![\1](\2-dark.png#only-dark)"


def moved(text: str) -> str:
    """Return a page of the repository as a page of the site: links know no docs/, pictures follow the theme."""
    return re.sub(PICTURE, BOTH_THEMES, re.sub(r"\]\((?:\.\./)?docs/", "](", text))


def page(script: str) -> str:
    """Return the Markdown page of a tutorial: its docstring, then text and code in turn."""
    docstring, _, body = script.removeprefix('"""').partition('"""\n')
    parts = ["# " + docstring.strip()]
    for cell in re.split(r"^# %% ", body, flags=re.MULTILINE)[1:]:
        lines = cell.split("\n")
        count = next((i for i, line in enumerate(lines) if i > 0 and not line.startswith("#")), len(lines))
        parts.append("\n".join(re.sub("^# ?", "", line) for line in lines[:count]))
        if code := "\n".join(lines[count:]).strip("\n"):
            parts.append(f"```python\n{code}\n```")
    return "\n\n".join(parts) + "\n"


def settings_page() -> str:
    """Return the reference of all settings, from their one definition."""
    lines = [
        "# Settings",
        "",
        "Settings are options of `liespline train`, or said by `--set NAME=VALUE`. Those that apply to a run are lines "
        "of its `config.yaml`, and `liespline train --config FILE` starts from such a file. One that does nothing "
        "for a task is refused.",
    ]
    for title, part in {"Data": "", "Network": "network", "Training": "training"}.items():
        lines += ["", f"## {title}", "", "| option | what it is | default | tasks |", "|---|---|---|---|"]
        for setting in (one for one in SETTINGS.values() if one.part == part):
            choices = f" (`{'`, `'.join(setting.choices)}`)" if setting.choices else ""
            tasks = ", ".join(takers(setting.name)) or "of studies/" if setting.special else "all"
            later = " May change with `--resume`." if setting.later else ""
            lines.append(f"| `{setting.option}` | {setting.about}{choices}{later} | {default(setting)} | {tasks} |")
    return "\n".join([*lines, "", ENVIRONMENT])


def default(setting: Setting) -> str:
    """The default of a setting, and of each task that has its own."""
    own = {task: config[setting.name] for task, config in DEFAULTS.items() if config[setting.name] != setting.default}
    usual = plain(setting.default) or ("none" if own else "")
    return "; ".join(filter(None, [usual, *(f"{task} {plain(value)}" for task, value in own.items())]))


ENVIRONMENT = """## Environment

- `LIESPLINE_CACHE`: the folder for decoded copies of packed data (HDF5, `.npz`), which are made once and read in place
  afterwards. By default it is `.liespline-cache` beside the data or, if that cannot be written, `~/.cache/liespline`.
  It can be removed at any time.
- `LIESPLINE_DEBUG`: if set, an error shows its whole traceback instead of one line.
"""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files of the repository to their pages: both readers of a page find something there."""
    up = "../" * page.file.src_uri.count("/")
    for source, name in {**ELSEWHERE, SETTINGS_FILE: "settings.md"}.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(source)}(#[^)]*)?\)", rf"]({up}{name}\1)", markdown)
    return re.sub(r"\]\(((?:\.\./)*tutorials/\w+)\.py\)", r"](\1.md)", markdown)


def on_files(files: Files, config: Any) -> Files:
    """Add a page for every tutorial, the page to play with, and what was measured."""
    files.append(File.generated(config, "explore.html", content=explore.page()))
    files.append(File.generated(config, "settings.md", content=settings_page()))
    for source, name in ELSEWHERE.items():
        text = (Path(config.docs_dir).parent / source).read_text(encoding="utf-8")
        wide = WIDE if name == "index.md" else ""
        files.append(File.generated(config, name, content=wide + moved(text)))
    folder = Path(config.docs_dir) / "tutorials"
    for script in sorted(folder.glob("*.py")):
        text = page(script.read_text(encoding="utf-8"))
        text += f"\n[Download this page as a script]({script.name})\n"
        files.append(File.generated(config, f"tutorials/{script.stem}.md", content=text))
    return files
