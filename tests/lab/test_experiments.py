"""The runs in experiments/: where they lie, and that the pages about them are made from them."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from liespline.lab.paper.results_page import write_results_page
from liespline.lab.paper.seed_averages import read_runs
from liespline.lab.settings import Config

ROOT = Path(__file__).parents[2] / "experiments"
STUDIES = sorted(path.parent for path in ROOT.glob("**/study.yaml"))
PLACES = r"(README\.md|table\.py|.+/(study\.yaml|results\.md|results-light\.svg|runs/[\w-]+/seed-\d+/"
PLACES += r"(config\.yaml|environment\.json|metrics\.jsonl|results\.json)))"


def test_nothing_lies_elsewhere():
    files = [path for path in ROOT.glob("**/*") if path.is_file() and "__pycache__" not in path.parts]
    assert [path for path in files if not re.fullmatch(PLACES, path.relative_to(ROOT).as_posix())] == []
    assert all(any(study in path.parents for study in STUDIES) for path in files if path.parent != ROOT)
    for file in ROOT.glob("**/config.yaml"):
        assert Config.load(file).seed == int(file.parent.name.removeprefix("seed-"))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_page_is_what_its_runs_say(study, tmp_path):
    assert yaml.safe_load((study / "study.yaml").read_text())["about"]
    if not list(study.glob("runs/*/*/results.json")):
        assert not (study / "results.md").exists()
        return
    assert write_results_page(read_runs(study), tmp_path).read_text() == (study / "results.md").read_text()


def test_the_list_of_studies_is_what_their_runs_say(monkeypatch):
    found = importlib.util.spec_from_file_location("table", ROOT / "table.py")
    table = importlib.util.module_from_spec(found)
    found.loader.exec_module(table)
    written = {}
    monkeypatch.setattr(Path, "write_text", lambda path, text, **how: written.setdefault(path, text))
    table.main()
    ((path, text),) = written.items()
    assert path == ROOT / "README.md"
    assert text == path.read_text()
