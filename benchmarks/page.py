"""Every table and plot of the docs that was measured, from the JSON files in results/: `python benchmarks/page.py`."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from matplotlib.ticker import NullFormatter, ScalarFormatter

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is
from studies.figures.style import PAGE, THEMES, Theme, canvas, in_theme

HERE = Path(__file__).parent
FIGURES = HERE.parent / "docs" / "figures"
GUIDE = HERE.parent / "docs" / "guide"
PAGES = (
    HERE / "README.md",
    HERE.parent / "docs" / "reliability.md",
    *(GUIDE / f"{name}.md" for name in ("equivariance", "networks", "coming-from")),
)
DEVICES = {"h200": ("hopper-h200", "escnn-h200"), "cpu": ("cpu", "escnn-cpu")}
"""The result files behind the one table of each device."""
AXES = {"n_h": "N_h", "n_k": "N_k", "channels": "channels", "size": "image side", "batch": "batch"}


def table(documents: dict[str, Any], device: str) -> str:
    """All rows of a device that have an aim, and whether it is missed; below, where they were measured."""
    lines, origins = ["| what | measured | aim | |", "|---|---|---|---|"], []
    for document in (documents[name] for name in DEVICES[device]):
        origins.append(f"{where(document['facts'])}")
        for row in (row for row in document["rows"] if row["reach"]):
            what = f"{row['what']} ({row['note']})" if row["note"] else row["what"]
            what = re.sub(r"\b([0-9a-f]{7})[0-9a-f]{5,33}\b", r"\1", what)  # commits
            lines.append(f"| {what} | {_number(row['value'])} | {row['reach']} | {verdict(row)} |")
    missed = sum(line.endswith("**missed** |") for line in lines)
    return "\n".join([*lines, "", f"Missed: {missed} of {len(lines) - 2}. {'; '.join(dict.fromkeys(origins))}."])


def where(facts: dict[str, str]) -> str:
    """The machine, the versions and the commit in words."""
    commit = facts["commit"][:7] + ("+" if facts["commit"].endswith("+changes") else "")
    machine = facts.get("gpu") or f"{facts['processor']}, {facts['threads']} thread"
    versions = f"torch {facts['torch']}" + (f", triton {facts['triton']}" if "triton" in facts else "")
    return f"{machine}, {versions}, commit {commit}"


def words(document: dict[str, Any], name: str) -> str:
    """A table that was written as words, and below it what it is and where it was measured."""
    head, *rows = document["tables"][name]
    lines = [" | ".join(row) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join([*(f"| {line} |" for line in lines), "", f"{document['about']}; {where(document['facts'])}."])


def verdict(row: dict[str, Any]) -> str:
    """Whether a row reaches what it should."""
    sign, limit = row["reach"].split()
    value = round(row["value"], 3)
    reached = value <= float(limit) if sign == "≤" else value >= float(limit)
    return "reached" if reached else "**missed**"


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
    """Write the tables between their marks, and the pictures."""
    documents = measured()
    for name, document in documents.items():
        for theme in THEMES:
            if document.get("series"):
                plot(document, theme, FIGURES / f"speed-{name}-{theme.name}.png")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text, documents), encoding="utf-8")


def measured() -> dict[str, Any]:
    """Every result file, by its name."""
    files = sorted(HERE.glob("results/*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def filled(text: str, documents: dict[str, Any]) -> str:
    """A page with its tables: between two marks `<!-- device NAME -->`, or `<!-- FILE TABLE -->`."""

    def between(mark: re.Match[str]) -> str:
        name, _, part = mark[1].partition(" ")
        shown = table(documents, part) if name == "device" else words(documents[name], part)
        return f"<!-- {mark[1]} -->\n{shown}\n<!-- {mark[1]} -->"

    return re.sub(r"<!-- ([\w-]+ [\w-]+) -->.*?<!-- \1 -->", between, text, flags=re.DOTALL)


if __name__ == "__main__":
    main()
