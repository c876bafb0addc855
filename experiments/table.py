"""Write the tables of experiments/README.md anew from the files of the runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

COLUMNS = [
    "run", "weights", "score", "split", "over all rotations", "output change when turned",
    "epochs", "training", "images/s", "machine", "commit",
]  # fmt: skip
NAMES = {"accuracy": "accuracy", "success": "landmarks found"}


def row(folder: Path, root: Path) -> list[str]:
    """One run: its final numbers, and what they cost. One that did not end has its best validation score instead."""
    environment = json.loads((folder / "environment.json").read_text())
    epochs = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    speeds = sorted(epoch["images_per_second"] for epoch in epochs)
    finished = folder / "results.json"
    numbers = final(json.loads(finished.read_text())) if finished.exists() else best(epochs)
    return [
        str(folder.relative_to(root)),
        *numbers,
        str(len(epochs)),
        f"{sum(epoch['seconds'] for epoch in epochs):.0f} s",
        f"{speeds[len(speeds) // 2]:,.0f}",
        environment["machine"],
        environment["commit"][:7] + ("+" if environment["commit"].endswith("+changes") else ""),
    ]


def final(results: dict[str, Any]) -> list[str]:
    """What a finished run was scored with."""
    scores, moves = results["scores"], results.get("moves")
    return [
        f"{results['weights']:,}",
        next(f"{scores[key]:.2%} {name}" for key, name in NAMES.items() if key in scores),
        f"{results['split']}, {results['images']:,} images",
        f"{moves['mean_accuracy']:.2%} ({moves['images']} images)" if moves else "",
        f"{moves['change']:.1%}" if moves else "",
    ]


def best(epochs: list[dict[str, Any]]) -> list[str]:
    """The best epoch of a run that was stopped."""
    (key,) = (key for key in NAMES if f"valid_{key}" in epochs[0])
    score = max(epoch[f"valid_{key}"] for epoch in epochs)
    return ["", f"{score:.2%} {NAMES[key]}", "valid, its best epoch; stopped before the end", "", ""]


def table(group: Path) -> str:
    """All runs of a folder."""
    rows = [COLUMNS, ["---"] * len(COLUMNS)]
    rows += [row(path.parent, group.parent) for path in sorted(group.rglob("metrics.jsonl"))]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in rows)


def main() -> None:
    page = Path(__file__).with_name("README.md")
    text = page.read_text(encoding="utf-8")
    for group in sorted(path for path in page.parent.iterdir() if path.is_dir()):
        # The first lines that begin with | after the folder's heading.
        section = re.compile(rf"(^## {re.escape(group.name)}\n(?:(?!##|\|).*\n)*)(?:\|.*\n)+", re.MULTILINE)
        text, found = section.subn(lambda match, group=group: match[1] + table(group), text)
        if found != 1:
            raise SystemExit(f"{page}: has {found} tables under the heading {group.name!r}; expected one")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
