"""Make all pages of results from studies/results: `python studies/report.py`.

`--check` writes nothing and fails where a page is not what the results say. Files of results, such as those of
`liespline sweep STUDY --results FILE`, are printed as sections instead.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the package `studies`, not the modules in it

from liespline.lab.sweep.study import Row, Study  # noqa: E402
from studies import front, tables  # noqa: E402
from studies.caveats import CAVEATS  # noqa: E402
from studies.data import mnist  # noqa: E402
from studies.networks import Results, load  # noqa: E402
from studies.paper.tables import by_name, claims_table, scores_table  # noqa: E402
from studies.pictures import ANGLES, angles_words, draw_all  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
HERE, DOCS = ROOT / "studies", ROOT / "docs"
MARKED = "<!-- {}, by `python studies/report.py` -->"
FIRST = ("evidence", "angles", "pcam", "vessel_28", "adrenal_28", "modelnet10_34", "hippocampus")
"""Whose rows come first in tables of several studies."""


def places() -> dict[str, tuple[str, str]]:
    """The file and the name in it of each study: `pcam` is STUDY of its file, `pcam_disc` DISC of the same one."""
    found = {}
    for file in sorted(HERE.glob("*.py")):
        for name in re.findall(r"^([A-Z][A-Z0-9_]*) = \w+\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            if isinstance(getattr(importlib.import_module(f"studies.{file.stem}"), name), Study):
                found[file.stem if name == "STUDY" else f"{file.stem}_{name.lower()}"] = file.stem, name
    return dict(sorted(found.items(), key=lambda one: FIRST.index(one[1][0]) if one[1][0] in FIRST else len(FIRST)))


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


def front_rows() -> list[front.Shown]:
    """The rows of the front page, from all studies."""
    found = stored()
    rows = [(row, found[name], word_of(name)) for name, one in studies().items() if name in found for row in one.rows]
    return front.shown(rows)


def fingerprint() -> str:
    """Of all files of results."""
    files = sorted((HERE / "results").glob("*.jsonl"))
    return hashlib.blake2b(b"".join(file.read_bytes() for file in files), digest_size=5).hexdigest()


def disclosed() -> str:
    """How much of a new deal of digits the old test had."""
    old, new = (set(mnist.rows("test", deal).tolist()) for deal in (0, 1))
    return (
        f"{100 * len(old & new) / len(new):.0f} % of the {len(new):,} test digits of a new deal were in the old test, "
        f"on which earlier recipes were settled; the {len(mnist.rows('outside')):,} spare digits are in no deal "
        "(`studies/data/mnist.py`)."
    )


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
    if results.name in CAVEATS:
        lines += [f"**Does not stand:** {CAVEATS[results.name]}", ""]
    lines += [f"{command}{again}".strip(), ""] * bool(command + again)
    lines += [f"Settings: {settings}.", ""] * bool(settings and not command)
    lines += [*origin(results), ""]
    if study and any(type(row) is Row for row in study.rows):
        names = dict.fromkeys([*(name for name in study.networks if name in results.networks), *results.networks])
        lines += tables.networks_table([results.networks[name] for name in names])
        lines += tables.differences_table(study.rows, results.networks)
    elif results.networks:
        networks = by_name(results.networks)
        lines += [*scores_table(networks), *claims_table(networks)]
        lines += tables.differences_table(study.rows, results.networks) if study else []
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


def pages() -> dict[Path, dict[str, str]]:
    """What the results say, by the page and the name of the marks that it stands between."""
    rows, found = front_rows(), stored()
    superseded = load(HERE / "results" / "superseded.jsonl")
    return {
        ROOT / "README.md": {
            "angles": angles_words(found[ANGLES].networks), "readers": front.answers(rows, fingerprint()),
            "results": front.table_of(rows),
        },
        DOCS / "guide" / "when-it-pays.md": {"results": front.verdicts(rows)},
        DOCS / "guide" / "evidence.md": {"disclosed": disclosed()},
        DOCS / "studies.md": {"results": "\n".join([*overview(), *map(section, found.values())])},
        DOCS / "superseded.md": {"results": "\n".join(map(section, superseded.values()))},
    }  # fmt: skip


def filled(text: str, parts: Mapping[str, str]) -> str:
    """A page with what the results say between its marks."""
    for name, content in parts.items():
        mark = MARKED.format(name)
        begin, _, rest = text.partition(mark)
        _, found, end = rest.partition(mark)
        if not found:
            raise ValueError(f"expected {mark} twice, around what is written between")
        text = f"{begin}{mark}\n{content}\n{mark}{end}"
    return text


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
