"""Write the tables of experiments/README.md anew from the files of the runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

NAMES = {"accuracy": "accuracy", "success": "landmarks found"}
BEHIND = ("balanced", "sensitivity", "majority")
RESULTS = ("weights", *NAMES.values(), *BEHIND, "the same, as they lie", "turned", "change", "scored on")
COLUMNS = ("run", *RESULTS, "epochs", "training", "images/s", "machine", "commit")
SHARED = ("scored on", "epochs", "machine", "commit")  # above the columns where all runs agree


def row(folder: Path, group: Path) -> dict[str, str]:
    """One run: its final numbers, and what they cost. One that did not end has its best validation score instead."""
    environment = json.loads((folder / "environment.json").read_text())
    epochs = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    speeds = sorted(epoch["images_per_second"] for epoch in epochs)
    finished = folder / "results.json"
    return {
        "run": str(folder.relative_to(group)).removesuffix("/seed-0"),
        **(final(json.loads(finished.read_text())) if finished.exists() else best(epochs)),
        "epochs": str(len(epochs)),
        "training": f"{sum(epoch['seconds'] for epoch in epochs):.0f} s",
        "images/s": f"{speeds[len(speeds) // 2]:,.0f}",
        "machine": environment["machine"],
        "commit": environment["commit"][:7] + ("+" if environment["commit"].endswith("+changes") else ""),
    }


def final(results: dict[str, Any]) -> dict[str, str]:
    """What a finished run was scored with."""
    scores, moves = results["scores"], results.get("moves")
    (key,) = (key for key in NAMES if key in scores)
    turned = {"turned": f"{moves['mean_accuracy']:.2%}", "change": f"{moves['change']:.1%}"} if moves else {}
    if moves:  # the first of the moves moves nothing
        turned = {"the same, as they lie": f"{moves.get('upright', moves['accuracy'][0]):.2%}", **turned}
    images = f"{results['split']}, {results['images']:,} images"
    about = {"weights": f"{results['weights']:,}", NAMES[key]: f"{scores[key]:.2%}"}
    return {**about, **behind(results.get("confusion")), **turned, "scored on": images}


def behind(table: list[list[int]] | None) -> dict[str, str]:
    """What stands behind an accuracy: the mean over classes, the share of the second of two classes that is found, and
    the accuracy of always answering the most frequent class.
    """
    if table is None:
        return {}
    counts = [sum(row) for row in table]
    recalls = [row[i] / counts[i] for i, row in enumerate(table) if counts[i]]
    found = {"balanced": f"{sum(recalls) / len(recalls):.2%}", "majority": f"{max(counts) / sum(counts):.2%}"}
    return found | ({"sensitivity": f"{recalls[1]:.2%}"} if len(table) == 2 else {})


def best(epochs: list[dict[str, Any]]) -> dict[str, str]:
    """The best epoch of a run that was stopped."""
    (key,) = (key for key in NAMES if f"valid_{key}" in epochs[0])
    score = max(epoch[f"valid_{key}"] for epoch in epochs)
    return {NAMES[key]: f"{score:.2%}", "scored on": "valid, in training; stopped"}


def table(group: Path) -> str:
    """All runs of a folder; what they have in common stands above the columns."""
    rows = [row(path.parent, group) for path in sorted(group.rglob("metrics.jsonl"))]
    columns = [name for name in COLUMNS if any(name in cells for cells in rows)]
    common = [name for name in SHARED if len({cells[name] for cells in rows}) == 1]
    shown = [name for name in columns if name not in common]
    lines = [shown, ["---"] * len(shown), *([cells.get(name, "") for name in shown] for cells in rows)]
    above = "; ".join(f"{name}: {rows[0][name]}" for name in common)
    return f"All: {above}.\n\n" + "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def main() -> None:
    page = Path(__file__).with_name("README.md")
    text = page.read_text(encoding="utf-8")
    for group in sorted(path for path in page.parent.iterdir() if path.is_dir()):
        # The first table after the folder's heading, with the line above it.
        lines = r"(?:(?!##|\||All: ).*\n)*"
        section = re.compile(rf"(^## {re.escape(group.name)}\n{lines})(?:All: .*\n\n)?(?:\|.*\n)+", re.MULTILINE)
        text, found = section.subn(lambda match, group=group: match[1] + table(group), text)
        if found != 1:
            raise SystemExit(f"{page}: has {found} tables under the heading {group.name!r}; expected one")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
