"""Tables and plot of `benchmarks/README.md` from the JSON files beside it: `python benchmarks/page.py`."""

import json
import re
from pathlib import Path
from typing import Any

from matplotlib.ticker import NullFormatter, ScalarFormatter

from liespline.extras.figures.style import PAGE, THEMES, Theme, canvas, in_theme

HERE = Path(__file__).parent
FIGURES = HERE.parent / "docs" / "figures"
AXES = {"n_h": "N_h", "n_k": "N_k", "channels": "channels", "size": "image side", "batch": "batch"}


def table(document: dict[str, Any]) -> str:
    """One line a row, with what it should reach and whether it does, and below it where it was measured."""
    lines = ["| what | measured | reach | |", "|---|---|---|---|"]
    for row in document["rows"]:
        what = f"{row['what']} ({row['note']})" if row["note"] else row["what"]
        lines.append(f"| {what} | {_number(row['value'])} | {row['reach'] or '–'} | {verdict(row)} |")
    facts = document["facts"]
    commit = facts["commit"][:7] + ("+" if facts["commit"].endswith("+changes") else "")
    machine = facts.get("gpu") or f"{facts['processor']}, {facts['threads']} thread"
    versions = f"torch {facts['torch']}" + (f", triton {facts['triton']}" if "triton" in facts else "")
    return "\n".join([*lines, "", f"{machine}, {versions}, commit {commit}."])


def verdict(row: dict[str, Any]) -> str:
    """Whether a row reaches what it should."""
    if not row["reach"]:
        return ""
    sign, limit = row["reach"].split()
    value = round(row["value"], 3)
    reached = value <= float(limit) if sign == "≤" else value >= float(limit)
    return "reached" if reached else "missed"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plot(document: dict[str, Any], theme: Theme, path: Path) -> None:
    """Time of a local layer by what is chosen and by the dense path, as one number after the other grows."""
    series = document["series"]
    with in_theme(theme):
        figure = canvas(PAGE, 2.1)
        axes = figure.subplots(1, len(series), sharey=True)
        for ax, one in zip(axes, series, strict=True):
            for name, colour in zip(("dense", "auto"), theme.series, strict=False):
                ax.plot(one["values"], [1e3 * s for s in one["seconds"][name]], "o-", color=colour, ms=3, label=name)
            ax.set(xscale="log", yscale="log", xlabel=AXES[one["what"]], xticks=one["values"])
            ax.xaxis.set_major_formatter(ScalarFormatter())
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.tick_params(which="minor", bottom=False)
        axes[0].set_ylabel("ms, forward + backward")
        axes[0].legend(frameon=False)
        figure.savefig(path, metadata={"Software": None}, bbox_inches="tight", pad_inches=0.04, dpi=200)


def main() -> None:
    """Write the tables between their marks, and both pictures."""
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    for file in sorted(HERE.glob("results/*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        mark = f"<!-- {file.stem} -->"
        text = re.sub(f"{mark}.*?{mark}", lambda _, m=mark, d=document: f"{m}\n{table(d)}\n{m}", text, flags=re.DOTALL)
        if document.get("series"):
            for theme in THEMES:
                plot(document, theme, FIGURES / f"speed-{file.stem}-{theme.name}.png")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
