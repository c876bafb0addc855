"""Numbers on the front page and in the guide are those of the result files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page() -> ModuleType:
    """benchmarks/page.py, which writes them."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import page
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return page


def test_pages_hold_what_was_measured(page: ModuleType) -> None:
    documents, marks = page.measured(), 0
    for file in page.PAGES:
        text = file.read_text(encoding="utf-8")
        marks += len(re.findall(r"<!-- [\w -]+ -->", text))
        assert page.filled(text, documents) == text, f"{file}: run python benchmarks/page.py"
    assert marks >= 16


def test_another_number_on_a_page_is_noticed(page: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    wrong = re.sub(r"\d\.\d %", "0.1 %", text, count=1)
    assert wrong != text
    assert page.filled(wrong, page.measured()) == text
