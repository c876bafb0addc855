"""Write the studies of experiments/README.md anew from the files of the runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

BEGIN = "<!-- From here on, written by `python experiments/table.py`. -->"
NAMES = {"accuracy": "accuracy", "success": "landmarks found"}
BEHIND = ("AUC", "balanced", "sensitivity", "majority")
RESULTS = ("weights", *NAMES.values(), *BEHIND, "the same, as they lie", "turned", "change", "scored on")
COLUMNS = ("network", "seed", *RESULTS, "epochs", "training", "images/s", "machine", "commit")
SHARED = ("seed", "majority", "scored on", "epochs", "machine", "commit")  # above the columns where all runs agree
PAPER = ("pcam", "celeba")


def row(folder: Path) -> dict[str, str]:
    """One run: its final numbers, and what they cost. One that did not end has its best validation score instead."""
    environment = json.loads((folder / "environment.json").read_text())
    epochs = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    speeds = sorted(epoch["images_per_second"] for epoch in epochs)
    finished = folder / "results.json"
    return {
        "network": folder.parent.name,
        "seed": folder.name.removeprefix("seed-"),
        **(final(json.loads(finished.read_text())) if finished.exists() else best(epochs)),
        "epochs": str(len(epochs)),
        "training": f"{sum(epoch['seconds'] for epoch in epochs):.0f} s",
        "images/s": f"{speeds[len(speeds) // 2]:,.0f}",
        "machine": environment["machine"],
        "commit": environment["commit"][:7] + "+" * ("+" in environment["commit"]),
    }


def final(results: dict[str, Any]) -> dict[str, str]:
    """What a finished run was scored with."""
    scores, moves = results["scores"], results.get("moves")
    (key,) = (key for key in NAMES if key in scores)
    shown = {"weights": f"{results['weights']:,}", NAMES[key]: f"{scores[key]:.2%}"}
    shown |= {"AUC": f"{scores['auc']:.2%}"} if "auc" in scores else {}
    shown |= behind(results["confusion"]) if "confusion" in results else {}
    if moves:  # the first of the moves moves nothing
        shown["the same, as they lie"] = f"{moves.get('upright', moves['accuracy'][0]):.2%}"
        shown |= {"turned": f"{moves['mean_accuracy']:.2%}", "change": f"{moves['change']:.1%}"}
    return {**shown, "scored on": f"{results['split']}, {results['images']:,} images"}


def behind(table: list[list[int]]) -> dict[str, str]:
    """What stands behind an accuracy: the mean over classes, the share of the second of two classes that is found, and
    the accuracy of always answering the most frequent class.
    """
    counts = [sum(row) for row in table]
    recalls = [row[i] / counts[i] for i, row in enumerate(table) if counts[i]]
    found = {"balanced": f"{sum(recalls) / len(recalls):.2%}", "majority": f"{max(counts) / sum(counts):.2%}"}
    return found | ({"sensitivity": f"{recalls[1]:.2%}"} if len(table) == 2 else {})


def best(epochs: list[dict[str, Any]]) -> dict[str, str]:
    """The best epoch of a run that was stopped."""
    (key,) = (key for key in NAMES if f"valid_{key}" in epochs[0])
    score = max(epoch[f"valid_{key}"] for epoch in epochs)
    return {NAMES[key]: f"{score:.2%}", "scored on": "valid, in training; stopped"}


def table(study: Path) -> str:
    """All runs of a study; what they have in common stands above the columns."""
    rows = [row(path.parent) for path in sorted(study.glob("runs/*/seed-*/metrics.jsonl"), key=order)]
    columns = [name for name in COLUMNS if any(name in cells for cells in rows)]
    common = [name for name in SHARED if name in columns and len({cells.get(name) for cells in rows}) == 1]
    shown = [name for name in columns if name not in common]
    lines = [shown, ["---"] * len(shown), *([cells.get(name, "") for name in shown] for cells in rows)]
    above = "; ".join(f"{name}: {rows[0][name]}" for name in common)
    return f"All: {above}.\n\n" + "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def order(path: Path) -> tuple[str, int]:
    """By network, then by the number of the seed."""
    return path.parents[1].name, int(path.parent.name.removeprefix("seed-"))


def claims(study: Path) -> str:
    """The paper's claims and their verdicts, as the study's results.md has them."""
    page = study / "results.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    _, found, after = text.partition("### The paper's claims")
    lines = [line for line in after.partition("\n### ")[0].splitlines() if line.startswith("|")]
    return "\nWhat the paper claims, and what these runs say:\n\n" + "\n".join(lines) + "\n" if found else ""


def section(study: Path, root: Path) -> str:
    """A study: what it is, its runs, and what they show."""
    about = yaml.safe_load((study / "study.yaml").read_text(encoding="utf-8"))["about"]
    return f"## {study.relative_to(root).as_posix()}\n\n{about.strip()}\n\n{table(study)}{claims(study)}"


def main() -> None:
    """Replace everything after the mark."""
    page = Path(__file__).with_name("README.md")
    root = page.parent
    studies = [path.parent for path in root.glob("**/study.yaml")]

    def place(study: Path) -> tuple[bool, bool, str]:
        task = yaml.safe_load((study / "study.yaml").read_text(encoding="utf-8"))["task"]
        return "superseded" in study.parts, task not in PAPER, study.name

    by_hand = page.read_text(encoding="utf-8").partition(BEGIN)[0]
    sections = [section(study, root) for study in sorted(studies, key=place)]
    page.write_text(by_hand + BEGIN + "\n\n" + "\n".join(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
