"""Make all pages of results from studies/results: `python studies/report.py`.

`--check` writes nothing and fails where a page is not what the results say. Files of results, such as those of
`liespline sweep STUDY --results FILE`, are printed as sections instead.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the package `studies`, not the modules in it

from liespline.lab.sweep.study import Row, Study  # noqa: E402
from studies import tables  # noqa: E402
from studies.networks import JITTERED, MARK, Network, Results, load  # noqa: E402
from studies.paper.tables import by_name, claims_table, scores_table  # noqa: E402
from studies.pictures import draw_all  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
HERE, DOCS = ROOT / "studies", ROOT / "docs"
MARKED = "<!-- results, by `python studies/report.py` -->"
ORDER = (
    "rotmnist", "rotmnist_elastic", "rotmnist_ensemble", "rotmnist_no_cue", "rotmnist_small", "rotmnist_parameters",
    "rotmnist_labels", "scaled_digits", "scaled_fashion_mirrored", "scaled_fashion", "rotated_scaled_digits",
    "affine_digits", "modelnet10_34", "modelnet10_vertical", "modelnet10", "adrenal_28", "vessel_28", "adrenal_64",
    "vessel_64", "pcam_disc", "pcam_disc_ensemble", "pcam_disc_grids", "pcam_disc_small", "pcam",
)  # fmt: skip
"""Of the rows in the tables of all studies; those of a study that is not here come last."""
LEGEND = {
    MARK: "The source of one of these runs or more had uncommitted changes.",
    JITTERED: "Trained with augmentation over H (grid jitter): rotations, and for SIM(2) also scalings.",
}


def places() -> dict[str, tuple[str, str]]:
    """The file and the name in it of each study: `pcam` is STUDY of its file, `pcam_disc` DISC of the same one."""
    found = {}
    for file in sorted(HERE.glob("*.py")):
        for name in re.findall(r"^([A-Z][A-Z0-9_]*) = \w+\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            if isinstance(getattr(importlib.import_module(f"studies.{file.stem}"), name), Study):
                found[file.stem if name == "STUDY" else f"{file.stem}_{name.lower()}"] = file.stem, name
    return dict(sorted(found.items(), key=lambda one: ORDER.index(one[0]) if one[0] in ORDER else len(ORDER)))


def studies() -> dict[str, Study]:
    """All studies by name, as `liespline sweep` names them."""
    return {name: getattr(sys.modules[f"studies.{file}"], own) for name, (file, own) in places().items()}


def word_of(name: str) -> str:
    """What `liespline sweep` is to be given for the study of this name."""
    file, own = places()[name]
    return f"studies/{file}.py" + (f":{own}" if own != "STUDY" else "")


def stored() -> dict[str, Results]:
    """The results of each study that has any, but for the superseded ones."""
    files = [file for file in sorted((HERE / "results").glob("*.jsonl")) if file.stem != "superseded"]
    return dict(sorted(pair for file in files for pair in load(file).items()))


def records(short: bool) -> str:
    """The table of all studies."""

    def rows() -> Iterator[tuple[Row, str, Mapping[str, Network], str]]:
        for name, study in studies().items():
            for row in study.rows:
                results = found.get(row.results or name)
                if row.words and results is not None:
                    yield row, results.name, results.networks, str(results.head.get("commit") or "")

    found = stored()
    lines = tables.records_table(rows(), short)
    legend = [f"{mark.strip()} {words}" for mark, words in LEGEND.items() if any(mark in line for line in lines)]
    return "\n\n".join(["\n".join(lines), *legend])


def overview() -> list[str]:
    """All studies, run or not."""
    found = stored()
    rows = [
        [f"`{name}`", study.data, study.protocol or "–", "yes" if name in found else "no"]
        for name, study in sorted(studies().items())
    ]
    return [*tables.table(["study", "data", "what is asked", "results"], rows), ""]


def section(results: Results) -> str:
    """A study: what it is, its networks over seeds, the paper's claims if it is about them, and every run."""
    head, own = results.head, studies()
    study = own.get(str(head.get("of", results.name)))
    again = f" Again: `liespline sweep {word_of(results.name)} --data DATA`." if results.name in own else ""
    command = f"Made by `{head['command']}`." if head.get("command") else ""
    settings = ", ".join(f"{name} {value}" for name, value in (head.get("settings") or {}).items())
    lines = [f"## {results.name}", "", str(head["about"]).strip(), ""]
    lines += [f"{command}{again}".strip(), ""] * bool(command + again)
    lines += [f"Settings: {settings}.", ""] * bool(settings and not command)
    lines += [*origin(results), ""]
    if study and study.rows:
        names = dict.fromkeys([*(name for name in study.networks if name in results.networks), *results.networks])
        lines += tables.networks_table([results.networks[name] for name in names])
        lines += tables.differences_table(study.rows, results.networks)
    elif results.networks:
        networks = by_name(results.networks)
        lines += [*scores_table(networks), *claims_table(networks)]
    lines += ["", '<details markdown="1"><summary>Every run</summary>', ""]
    lines += [*tables.runs_table(results.lines), "", "</details>", ""]
    return "\n".join(lines)


def origin(results: Results) -> list[str]:
    """What was scored, on which machines, and from which commits."""
    runs = results.finished
    splits = sorted({tables.SPLITS[run["results"]["split"]] for run in runs})
    machines = sorted({run["environment"]["machine"] for run in runs})
    commits = sorted({(run["environment"]["commit"] or "?")[:12] for run in runs})
    words = f"Scored: {' and '.join(splits)} images. Machine: {'; '.join(machines)}. Commit: {', '.join(commits)}."
    data = sorted({run["results"].get("data", "") for run in runs})
    words += f" Not all runs are on the same data: fingerprints {' and '.join(data)}." if len(data) > 1 else ""
    left = len(results.lines) - len(runs)
    lines = [words] if runs else ["No run is finished."]
    return lines + [f"Not counted: {left} run{'s' * (left > 1)} not finished."] * (left > 0)


def pages() -> dict[Path, str]:
    """What the results say, by the page that has it between two marks."""
    superseded = load(HERE / "results" / "superseded.jsonl")
    return {
        ROOT / "README.md": records(short=True),
        DOCS / "guide" / "when-it-pays.md": records(short=False),
        DOCS / "studies.md": "\n".join([*overview(), *map(section, stored().values())]),
        DOCS / "superseded.md": "\n".join(map(section, superseded.values())),
    }


def filled(text: str, content: str) -> str:
    """A page with what the results say between its marks."""
    begin, _, rest = text.partition(MARKED)
    _, found, end = rest.partition(MARKED)
    if not found:
        raise ValueError(f"expected {MARKED} twice, around what is written between")
    return f"{begin}{MARKED}\n{content}\n{MARKED}{end}"


def main() -> None:
    """Write the pages and pictures, check the pages, or print sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="print these results instead")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page differs")
    asked = parser.parse_args()
    for file in asked.files:
        print("\n".join(map(section, load(file).values())))
    if asked.files:
        return
    made = {page: (page.read_text(encoding="utf-8"), content) for page, content in pages().items()}
    wrong = [str(page.relative_to(ROOT)) for page, (text, content) in made.items() if filled(text, content) != text]
    if asked.check and wrong:
        raise SystemExit(f"{', '.join(wrong)}: not what the results say; run python studies/report.py")
    if not asked.check:
        for page, (text, content) in made.items():
            page.write_text(filled(text, content), encoding="utf-8")
        draw_all(stored(), DOCS / "figures")


if __name__ == "__main__":
    main()
