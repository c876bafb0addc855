"""Print the table of experiments/README.md from the result files."""

from __future__ import annotations

import json
from pathlib import Path

COLUMNS = (
    "run", "weights", "accuracy", "split", "over all rotations", "output change when turned",
    "epochs", "training", "images/s", "machine", "commit",
)  # fmt: skip


def row(folder: Path, root: Path) -> list[str]:
    """One run: its final numbers, and what they cost."""
    results = json.loads((folder / "results.json").read_text())
    environment = json.loads((folder / "environment.json").read_text())
    epochs = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    speeds = sorted(epoch["images_per_second"] for epoch in epochs)
    scores, moves = results["scores"], results["moves"]
    return [
        str(folder.relative_to(root)),
        f"{results['weights']:,}",
        f"{scores['accuracy']:.2%}",
        f"{results['split']}, {results['images']:,} images",
        f"{moves['mean_accuracy']:.2%} ({moves['images']} images)",
        f"{moves['change']:.1%}",
        str(len(epochs)),
        f"{sum(epoch['seconds'] for epoch in epochs):.0f} s",
        f"{speeds[len(speeds) // 2]:,.0f}",
        environment["machine"],
        environment["commit"][:7] + ("+" if environment["commit"].endswith("+changes") else ""),
    ]


def main() -> None:
    root = Path(__file__).parent
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for path in sorted(root.rglob("results.json")):
        print("| " + " | ".join(row(path.parent, root)) + " |")


if __name__ == "__main__":
    main()
