"""The runs in experiments/: where they lie, and that the pages about them are made from them."""

import json
import re
import runpy
import tarfile
from pathlib import Path

import pytest
import yaml

from liespline.lab.paper.results_page import write_results_page
from liespline.lab.paper.seed_averages import read_runs
from liespline.lab.settings import Config
from liespline.lab.sweep.records import RECORDS, SETS
from liespline.lab.sweep.records_page import write_records_page

ROOT = Path(__file__).parents[2] / "experiments"
STUDIES = sorted(path.parent for path in ROOT.glob("**/study.yaml"))
PLACES = r"(README\.md|(table|pack|records|in_time|copies)\.py|"
PLACES += r".+/(study\.yaml|results\.md|(results|record)-light\.svg|runs/[\w-]+/seed-\d+/"
PLACES += r"(config\.yaml|environment\.json|metrics\.jsonl|results\.json)))"


def test_nothing_lies_elsewhere():
    files = [path for path in ROOT.glob("**/*") if path.is_file() and "__pycache__" not in path.parts]
    assert [path for path in files if not re.fullmatch(PLACES, path.relative_to(ROOT).as_posix())] == []
    assert all(any(study in path.parents for study in STUDIES) for path in files if path.parent != ROOT)
    for file in ROOT.glob("**/config.yaml"):
        assert Config.load(file).seed == int(file.parent.name.removeprefix("seed-"))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_page_is_what_its_runs_say(study, tmp_path):
    said = yaml.safe_load((study / "study.yaml").read_text())
    assert said["about"]
    if not list(study.glob("runs/*/*/results.json")):
        assert not (study / "results.md").exists()
        return
    record = said["task"] == RECORDS
    page = write_records_page(study, tmp_path) if record else write_results_page(read_runs(study), tmp_path)
    assert page.read_text() == (study / "results.md").read_text()


def test_the_list_of_studies_is_what_their_runs_say(monkeypatch, experiment):
    table = experiment("table")
    written = {}
    monkeypatch.setattr(Path, "write_text", lambda path, text, **how: written.setdefault(path, text))
    table.main()
    ((path, text),) = written.items()
    assert path == ROOT / "README.md"
    assert text == path.read_text()


def test_the_tables_of_records_are_what_their_runs_say():
    records = runpy.run_path(str(ROOT / "records.py"))
    for page, short in records["PAGES"].items():
        text = page.read_text(encoding="utf-8")
        assert text.count(records["MARK"]) == 2
        assert records["filled"](text, short) == text, f"{page}: run python experiments/records.py"
        wrong = re.sub(r"\| (\d\.\d\d) ± ", r"| 0\1 ± ", text, count=1)  # in the table
        assert wrong != text
        assert records["filled"](wrong, short) == text
    for row in records["ROWS"]:
        said = ROOT / f"records-{row.study}" / "study.yaml"  # runs that were scored in another way have the set of old
        chosen = yaml.safe_load(said.read_text())["set"] if said.exists() else row.study
        assert {row.ours, row.other} - {None} <= set(SETS[chosen].networks), row


def test_a_packed_study_has_its_runs_without_weights(tmp_path):
    study = tmp_path / "small"
    done, empty = study / "runs" / "dense-4-4" / "seed-0", study / "runs" / "dense-8-8" / "seed-0"
    for run, lines in ((done, '{"epoch": 0}\n'), (empty, "")):
        run.mkdir(parents=True)
        (run / "metrics.jsonl").write_text(lines)
        (run / "config.yaml").write_text("task: pcam\n")
        (run / "environment.json").write_text('{"commit": null, "machine": "here"}')
        (run / "model.safetensors").write_bytes(b"weights")
    (study / "study.yaml").write_text("task: pcam\n")
    packed = tmp_path / "small.tar.gz"
    assert runpy.run_path(str(ROOT / "pack.py"))["pack"](study, packed, "abc123") == 4
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    run = "small/runs/dense-4-4/seed-0"
    kept = [f"{run}/{name}" for name in ("config.yaml", "environment.json", "metrics.jsonl")]
    assert files == {"small/study.yaml", *kept}
    environment = json.loads((tmp_path / "out" / run / "environment.json").read_text())
    assert environment == {"commit": "abc123", "machine": "here"}
