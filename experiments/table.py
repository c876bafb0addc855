"""Print the table of experiments/README.md from the result files."""

from __future__ import annotations

import json
from pathlib import Path


def main() -> None:
    print(
        "| run | weights | test accuracy | over all rotations | output change when turned | train images/s | commit |"
    )
    print("|---|---|---|---|---|---|---|")
    for path in sorted(Path(__file__).parent.rglob("results.json")):
        results = json.loads(path.read_text())
        environment = json.loads((path.parent / "environment.json").read_text())
        last = json.loads((path.parent / "metrics.jsonl").read_text().splitlines()[-1])
        scores, moves = results["scores"], results["moves"]
        print(
            f"| {path.parent.relative_to(Path(__file__).parent)} | {results['weights']:,} | {scores['accuracy']:.2%} "
            f"| {moves['mean_accuracy']:.2%} ({moves['images']} images) | {moves['change']:.1%} "
            f"| {last['images_per_second']:,.0f} ({environment['machine']}) | {environment['commit']} |"
        )


if __name__ == "__main__":
    main()
