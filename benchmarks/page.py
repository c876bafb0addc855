"""Every table and plot of the docs that was measured, from the JSON files in results/: `python benchmarks/page.py`."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from matplotlib.ticker import NullFormatter, ScalarFormatter

import front

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is
from studies.figures.style import PAGE, THEMES, Theme, canvas, in_theme

HERE = Path(__file__).parent
FIGURES = HERE.parent / "docs" / "figures"
GUIDE = HERE.parent / "docs" / "guide"
PAGES = (
    HERE / "README.md",
    HERE.parent / "README.md",
    *(GUIDE / f"{name}.md" for name in ("equivariance", "choosing", "coming-from")),
)
AXES = {"n_h": "N_h", "n_k": "N_k", "channels": "channels", "size": "image side", "batch": "batch"}


def table(document: dict[str, Any]) -> str:
    """One line per row, with what it should reach and whether it does, and below it where it was measured."""
    lines = ["| what | measured | reach | |", "|---|---|---|---|"]
    for row in document["rows"]:
        what = f"{row['what']} ({row['note']})" if row["note"] else row["what"]
        lines.append(f"| {what} | {_number(row['value'])} | {row['reach'] or '–'} | {verdict(row)} |")
    return "\n".join([*lines, "", f"{where(document['facts'])}."])


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


def plot_angles(document: dict[str, Any], theme: Theme, path: Path) -> None:
    """Accuracy against angle, one line per network: the mean over seeds, and a band from the least to the most."""
    angles = [*document["angles"], 360]
    with in_theme(theme):
        figure = canvas(0.75 * PAGE, 2.3)  # smaller than others: type stays readable on a phone
        axes = figure.subplots()
        for (name, network), colour, above in zip(document["networks"].items(), (1, 0, 2), (4, 2, 3), strict=False):
            runs = [[100 * value for value in (*run, run[0])] for run in network["accuracy"]]
            columns = list(zip(*runs, strict=True))
            shade = theme.series[colour]
            axes.plot(
                angles, [sum(column) / len(column) for column in columns], color=shade, label=name, lw=1.6, zorder=above
            )
            axes.fill_between(angles, [*map(min, columns)], [*map(max, columns)], color=shade, alpha=0.18, lw=0)
        axes.set(xlim=(0, 360), ylim=(0, 101), xticks=range(0, 361, 45), yticks=(0, 25, 50, 75, 100))
        axes.set_xticklabels([f"{angle}°" for angle in range(0, 361, 45)])
        axes.set_yticklabels([f"{share} %" for share in (0, 25, 50, 75, 100)])
        axes.set_xlabel("test digits rotated by; all networks were trained on upright digits")
        axes.set_title("accuracy on MNIST", loc="left")
        axes.grid(axis="y")
        axes.legend(loc="center", bbox_to_anchor=(0.5, 0.62))
        figure.savefig(path, metadata={"Software": None}, bbox_inches="tight", pad_inches=0.04, dpi=200)


def main() -> None:
    """Write the tables between their marks, and the pictures."""
    documents = measured()
    for name, document in documents.items():
        for theme in THEMES:
            if document.get("series"):
                plot(document, theme, FIGURES / f"speed-{name}-{theme.name}.png")
            if name == "angles":
                plot_angles(document, theme, FIGURES / f"angles-{theme.name}.png")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text, documents), encoding="utf-8")


def measured() -> dict[str, Any]:
    """Every result file, by its name."""
    files = sorted(HERE.glob("results/*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def filled(text: str, documents: dict[str, Any]) -> str:
    """A page with its tables: between two marks `<!-- FILE -->`, or `<!-- FILE TABLE -->` for one of several."""

    def between(mark: re.Match[str]) -> str:
        name, _, part = mark[1].partition(" ")
        if name == "front":
            shown = {"table": front.table, "angles": front.angles}[part](documents)
        else:
            shown = words(documents[name], part) if part else table(documents[name])
        return f"<!-- {mark[1]} -->\n{shown}\n<!-- {mark[1]} -->"

    return re.sub(r"<!-- ([\w -]+) -->.*?<!-- \1 -->", between, text, flags=re.DOTALL)


if __name__ == "__main__":
    main()
