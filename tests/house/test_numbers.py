"""No number of the evidence lacks a source: it is drawn from results, or the command that makes it is beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGES = [
    ROOT / "README.md", ROOT / "benchmarks" / "README.md",
    *(GUIDE / f"{name}.md" for name in ("evidence", "when-it-pays", "coming-from")),
]  # fmt: skip
DRAWN = re.compile(r"<!-- (.+?) -->.*?<!-- \1 -->", re.DOTALL)
COMMAND = re.compile(r"`(?:python|liespline|make|pytest) ?[^`]*`|`\w+/[\w./:]+`")
NAMES = re.compile(
    r"\b[A-Z]\w*\(\d+\)|\b[A-Za-z]+[_-]?\d+\w*|\b\d-D\b|\d+(?:[×x]\d+)+|\d+[²³]|\b(?:19|20)\d\d\b|\b95 %|shard \d"
)
"""What has digits and is no result: groups, products, sizes, years, and the level of all intervals."""


def without_source(text: str) -> list[str]:
    """Paragraphs, list items and rows of tables with a number that has no command beside it."""
    text = re.sub(r"^```.*?^```", "", DRAWN.sub("", text), flags=re.DOTALL | re.MULTILINE)
    found = []
    for chunk in re.split(r"\n\s*\n|\n(?=[-|#])", text):
        shown = re.sub(r"\]\([^)]*\)", "]", chunk)
        if not COMMAND.search(shown) and re.search(r"\d", NAMES.sub("", re.sub(r"`[^`]*`", "", shown))):
            found.append(chunk.strip())
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_number_has_a_source(page: Path) -> None:
    assert without_source(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.parametrize(
    "planted",
    [
        "It is 10.7 times as fast as escnn.", "- AUC is 2.1 points ahead.", "| tissue | 92.3 ± 0.2 |",
        "With 29,000 parameters SO(2) is ahead.", "SE(3) needs 12.",
    ],
)  # fmt: skip
def test_a_planted_number_is_found(page: Path, planted: str) -> None:
    text = page.read_text(encoding="utf-8")
    assert without_source(f"{text}\n\n{planted}\n") == [planted]
    assert without_source(f"{text}\n\n{planted} (`liespline sweep studies/rotmnist.py`)\n") == []


def test_each_row_of_the_front_page_ends_at_a_study_and_at_lines_of_results() -> None:
    for page in (ROOT / "README.md", GUIDE / "when-it-pays.md"):
        (block,) = (m[0] for m in DRAWN.finditer(page.read_text(encoding="utf-8")) if m[1].startswith("results"))
        rows = [line for line in block.splitlines() if line.startswith("| ")][2:]
        assert len(rows) >= 5
        for row in rows:
            (link,) = re.findall(r"\[`(studies/[\w/]+\.py)(?::[A-Z0-9_]+)?`\]\([./a-z]*studies\.md#(\w+)\)", row)
            file, study = ROOT / link[0], link[1]
            results = ROOT / "studies" / "results" / f"{file.stem}.jsonl"
            assert file.is_file()
            lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
            assert any(line["study"] == study and line.get("finished") for line in lines), row
            assert f"\n## {study}\n" in (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
