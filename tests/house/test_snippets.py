"""Every Python block of the README and the docs runs, in order, one namespace per page."""

import re
from pathlib import Path

import pytest

from liespline.lab.settings import Config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def snippets(page: Path, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_snippets_run(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for code in snippets(page):
        exec(compile(code, str(page), "exec"), names)


def test_settings_on_the_pages_have_todays_names() -> None:
    blocks = [(page, block) for page in PAGES for block in snippets(page, "yaml")]
    assert [Config.from_yaml(block, str(page)).task for page, block in blocks] == ["images"]


@pytest.mark.parametrize("size", [28, 29, 32, 64, 96])
def test_the_first_network_is_symmetric_at_every_size(size: int) -> None:
    code = snippets(ROOT / "README.md")[0]
    assert "28, 28" in code
    assert "assert torch.allclose(net.eval()(rotated)" in code
    exec(code.replace("28, 28", f"{size}, {size}"), {})


def test_there_are_snippets_and_a_broken_one_fails(tmp_path: Path) -> None:
    assert len(snippets(ROOT / "README.md")) >= 2
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n")
    with pytest.raises(AssertionError):
        exec(snippets(page)[0], {})
