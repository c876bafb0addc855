"""A run as one line of JSON, and the file that such lines are appended to."""

import json
import multiprocessing
import shutil
import statistics
import subprocess
from pathlib import Path

import numpy as np
import pytest

from liespline.lab.data import DataError
from liespline.lab.runs import folder as origin
from liespline.lab.runs import line as lines
from liespline.lab.runs.folder import Run, git_commit
from liespline.lab.settings import Config, ConfigError


@pytest.fixture
def run(tmp_path, tiny_run):
    """A finished run where a sweep puts it, of three epochs."""
    path = tmp_path / "somewhere" / "runs" / "so2-4" / "seed-0"
    shutil.copytree(tiny_run.path, path)
    found = json.loads((path / "environment.json").read_text())
    found |= {"commit": "abc+changes", "command": ["liespline", "sweep", "s.py", "--data", str(tmp_path / "my data")]}
    (path / "environment.json").write_text(json.dumps(found))
    return Run(path)


def test_a_line_has_what_the_run_was_and_what_came_of_it(run, tiny_run):
    found = json.loads(json.dumps(lines.line_of(run, "stripes")))
    assert (found["study"], found["network"], found["seed"], found["finished"]) == ("stripes", "so2-4", 0, True)
    environment = found["environment"]
    assert (environment["commit"], environment["uncommitted"]) == ("abc", True)
    assert environment["command"] == "liespline sweep s.py --data 'my data'", "where data are is everyone's own"
    config = Config.load(run.config_file)
    assert Config.from_dict(found["config"], "x") == config.updated(data=Path(config.data).name)
    results = json.loads(run.results_file.read_text())
    assert found["results"].keys() == results.keys() - set(lines.LEFT_OUT)
    assert found["results"]["confusion"] == results["confusion"]
    assert found["results"]["scores"] == pytest.approx(results["scores"], abs=1e-9)
    assert found["results"]["transformed"]["accuracy"] == pytest.approx(results["transformed"]["accuracy"], abs=1e-6)
    assert len(json.dumps(found)) < 5000
    run.results_file.unlink()
    half = lines.line_of(run, "stripes")
    assert (half["finished"], half["results"], half["training"]["epochs"]) == (False, {}, 3)


def test_epochs_become_means_and_the_best_one():
    rng = np.random.default_rng(0)
    scores, speeds = rng.uniform(size=12), rng.uniform(10, 20, size=12)
    rows = [
        {"epoch": i, "seconds": 1.5, "images_per_second": speeds[i], "memory_mib": i % 7, "valid_auc": scores[i]}
        for i in range(12)
    ]
    found = lines.training_of([row | {"valid_loss": 1.0, "lr": 0.1} for row in rows])
    assert found["valid"].keys() == {"auc"}
    auc = found["valid"]["auc"]
    assert (auc["epoch"], auc["best"]) == (scores.argmax(), pytest.approx(scores.max()))
    assert (auc["last_5"], auc["last_10"]) == pytest.approx((scores[-5:].mean(), scores[-10:].mean()))
    assert found["images_per_second"] == pytest.approx(statistics.median(speeds))
    assert (found["epochs"], found["seconds"], found["memory_mib"]) == (12, 18, 6)
    assert lines.training_of(rows[:7])["valid"]["auc"].keys() == {"best", "epoch", "last_5"}
    assert lines.training_of([])["epochs"] == 0
    seldom = [row if i % 3 == 2 else row | {"valid_auc": None} for i, row in enumerate(rows)]  # not every epoch
    seldom = [{name: value for name, value in row.items() if value is not None} for row in seldom]
    auc = lines.training_of(seldom)["valid"]["auc"]
    assert (auc["epoch"], auc["best"]) == (2 + 3 * scores[2::3].argmax(), pytest.approx(scores[2::3].max()))


def many(file, process):
    for seed in range(20):
        lines.append(file, {"study": "s", "network": f"n{process}", "seed": seed, "text": "x" * 5000})


def test_lines_of_several_processes_are_all_there_and_whole(tmp_path):
    file = tmp_path / "new" / "s.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=many, args=(file, number)) for number in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = {(line["network"], line["seed"]) for line in lines.read(file)}
    assert found == {(f"n{process}", seed) for process in range(2) for seed in range(20)}
    assert file.read_bytes().count(b"\n") == 40


def test_a_run_is_appended_once_and_never_another_in_its_place(tmp_path, run):
    file, line = tmp_path / "s.jsonl", lines.line_of(run, "s")
    line["results"]["data"] = "abcd"
    with pytest.raises(ConfigError, match=r"differs from commit abc: commit the changes first.*--uncommitted"):
        lines.append(file, line)
    assert not file.exists()
    lines.append(file, {"study": "s", "about": "Stripes."})
    for _ in range(2):
        lines.append(file, line, uncommitted=True)
    with pytest.raises(DataError, match=r"s.jsonl: has so2-4 seed 0 of s already; name another file with --results"):
        lines.append(file, {**line, "training": {}}, uncommitted=True)
    other = line | {"seed": 1, "results": line["results"] | {"data": "feed"}}
    with pytest.raises(DataError, match=r"its runs have the data abcd, so2-4 seed 1 has feed; name another --results"):
        lines.append(file, other, uncommitted=True)
    assert lines.read(file) == [{"study": "s", "about": "Stripes."}, json.loads(json.dumps(line))]
    file.write_text(file.read_text()[:-9])
    before = file.read_bytes()
    with pytest.raises(DataError, match=r"s.jsonl, line 2: is no JSON"):
        lines.append(file, {**line, "seed": 1}, uncommitted=True)
    assert file.read_bytes() == before


def test_a_copy_without_git_has_its_commit_from_a_stamp(tmp_path, monkeypatch):
    source, copy = tmp_path / "source", tmp_path / "copy"
    for root in (source, copy):
        module = root / "src" / "liespline" / "lab" / "runs" / "folder.py"
        module.parent.mkdir(parents=True)
        module.write_text("# a module\n")
    monkeypatch.setattr(origin, "__file__", str(module))
    assert git_commit() is None

    def in_source(command):
        done = subprocess.run(["bash", "-c", command], cwd=source, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    in_source("git init -q . && git add . && git -c user.name=n -c user.email=e@x commit -qm 1")
    stamp, head = origin.STAMP_COMMAND.replace("COPY", str(copy)), in_source("git rev-parse HEAD")
    in_source(stamp)
    assert git_commit() == head
    (source / "src" / "liespline" / "lab" / "runs" / "folder.py").write_text("# changed\n")
    in_source(stamp)
    assert git_commit() == f"{head}+changes"
    monkeypatch.setattr(origin, "__file__", str(source / "src" / "liespline" / "lab" / "runs" / "folder.py"))
    (source / origin.STAMP).write_text("feed")
    assert git_commit() == f"{head}+changes", "git is asked first"


@pytest.mark.parametrize(("commit", "told"), [(None, False), ("abc", False), ("abc+changes", True)])
def test_what_is_committed_or_told_may_be_kept(commit, told):
    lines.check_committed(commit, told)
