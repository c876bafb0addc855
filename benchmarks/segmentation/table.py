"""The study as tables: `python table.py results.jsonl …`; mean and standard deviation over seeds, in percent."""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def cell(values: list[float]) -> str:
    """Mean ± standard deviation in percent."""
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


def numbers(rows: list[Row]) -> list[str]:
    """Dice of whole images; inside the disc upright, turned (the first turn: 45°), lost by turning, and following."""
    lost = [row["upright"][0] - row["turned"][0] for row in rows]
    firsts = [[row[kind][0] for row in rows] for kind in ("upright", "turned")]
    follows = [row["follows"][0] for row in rows]
    return [cell([row["dice"] for row in rows]), *map(cell, firsts), cell(lost), cell(follows)]


def main(files: list[str]) -> None:
    """Group the runs and print a table for each data set and share of the labels."""
    rows = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    groups: dict[tuple[str, float], dict[tuple[str, bool], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "error" not in row:
            groups[row["data"], row["share"]][row["network"], row["turns"]].append(row)
    for (data, share), networks in sorted(groups.items()):
        print(f"\n### {data}, {share:.0%} of the labels\n")
        print(
            "| network | turns and flips in training | weights | seeds | Dice | in the disc | turned | lost | follows |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for (network, turns), found in sorted(networks.items()):
            about = [network, "yes" if turns else "no", f"{found[0]['weights']:,}", str(len(found))]
            print("| " + " | ".join([*about, *numbers(found)]) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
