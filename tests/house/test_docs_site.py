"""The site builds with warnings as errors and runs its tutorials; its numbers are those of the result files."""

import inspect
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

import liespline

ROOT = Path(__file__).parents[2]
ROADS = [
    ROOT / "docs" / name for name in re.findall(r"^      - (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))


class Fetched(HTMLParser):
    """What a browser loads for a page, without being clicked on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag in ("img", "script", "iframe", "source"):
            self.found.append(values.get("src") or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.found.append(values.get("href") or "")


def build(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    # without --quiet, which would hide warnings from --strict, too
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_every_page_is_there(site: Path) -> None:
    sources = [p.relative_to(ROOT / "docs").with_suffix(".html") for p in (ROOT / "docs").rglob("*.md")]
    written_once = [Path(name) for name in ("index.html", "contributing.html", "speed.html")]
    pages = [*sources, *written_once, *(Path("tutorials", p.stem + ".html") for p in TUTORIALS)]
    assert len(pages) >= 20
    assert [page for page in pages if not (site / page).is_file()] == []


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetched = Fetched()
        fetched.feed(page.read_text(encoding="utf-8"))
        assert len(fetched.found) > 2
        assert [link for link in fetched.found if re.match(r"(https?:)?//", link)] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?https?:", style.read_text(encoding="utf-8"))


def test_reference_shows_signatures_and_equations(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "api.html").read_text(encoding="utf-8"))
    for words in ("kernel_size", "eq. gcor", "eq. liftingcor", "haar_density", "trainable"):
        assert words in text


def test_every_argument_of_every_layer_is_explained() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in page.splitlines() if row.startswith("| `")]
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    layers = [getattr(liespline.nn, name) for name in liespline.nn.__all__]
    networks = [getattr(liespline.models, name) for name in liespline.models.__all__]
    found = {name for one in (*layers, *networks) for name in inspect.signature(one).parameters}
    assert len(found) > 30
    assert found == explained
    assert not {name for name in liespline.nn.__all__ if f"::: liespline.nn.{name}\n" not in page}


def test_tutorial_pages_have_text_and_code(site: Path) -> None:
    for tutorial in TUTORIALS:
        page = (site / "tutorials" / f"{tutorial.stem}.html").read_text(encoding="utf-8")
        assert page.count('class="highlight"') >= 3
        assert "# %%" not in re.sub(r"<[^>]+>", "", page)


def test_the_navigation_has_three_roads_of_fourteen_pages(site: Path) -> None:
    text = re.sub(r"<script.*?</script>", "", (site / "quickstart.html").read_text(encoding="utf-8"), flags=re.S)
    (nav,) = re.findall(
        r'<nav class="md-nav md-nav--primary.*?(?=<div class="md-sidebar md-sidebar--secondary)', text, re.S
    )
    pages = set(re.findall(r'<a href="([^"#]+)" class="md-nav__link', nav))
    assert len(pages) == 14
    assert len(re.findall(r'<nav class="md-nav" data-md-level="1"', nav)) == 3


def test_no_page_has_two_screens_of_prose_before_its_first_picture_or_code() -> None:
    for page in ROADS:
        text = page.read_text(encoding="utf-8")
        first = re.search(r"^(```|!\[|\|)", text, re.M)
        assert first, page
        assert len(text[: first.start()].split()) < 400, page


LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")


def test_links_hold_in_the_repository_and_on_the_site(site: Path) -> None:
    count = 0
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"):
        links = [one for one in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.S)) if ":" not in one]
        assert [link for link in links if not (page.parent / link).exists()] == [], page
        count += len(links)
    assert count > 50
    assert 'href="../settings.html"' in (site / "guide" / "runs.html").read_text()
    assert 'href="../speed.html"' in (site / "guide" / "coming-from.html").read_text()
    assert 'href="studies.html"' in (site / "reproduction.html").read_text()
    assert 'href="tutorials/volumes.html"' in (site / "index.html").read_text()


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[nowhere](missing.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: broken\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "missing.md" in done.stdout + done.stderr


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda p: p.stem)
def test_tutorials_run(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")


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
        marks += len(re.findall(r"<!-- [\w-]+ [\w-]+ -->", text))
        assert page.filled(text, documents) == text, f"{file}: run python benchmarks/page.py"
    assert marks == 2 * (2 + 1 + 1 + 1 + 2), "of speed, Triton, layers, elements; what was seen, and how equivariant"


def test_another_number_on_a_page_is_noticed(page: ModuleType) -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    wrong = re.sub(r"\| 0\.\d+ \|", "| 0.1 |", text, count=1)
    assert wrong != text
    assert page.filled(wrong, page.measured()) == text
