"""Tasks outside of the package: the one that the docs show, in a file, in a package, moved, and gone."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch
import yaml

from liespline.lab import load
from liespline.lab.runs.folder import Run
from liespline.lab.runs.model_file import read_weights, save_weights
from liespline.lab.settings import Config, ConfigError
from liespline.lab.tasks import find_task
from liespline.lab.training.train import start_config

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "runs.md"
(CODE,) = re.findall(r"```text\n(\"{3}Stripes.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SMALL = "--elements 2 --set widths=2,3 --epochs 1 --batch-size 64 --accelerator cpu --quiet".split()


@pytest.fixture
def fresh(monkeypatch):
    """Modules that are imported, and places that are added, are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def forget():
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("stripes", "mine"):
                del sys.modules[name]
        sys.path[:] = [place for place in sys.path if "pytest-of" not in place]

    yield forget
    forget()


@pytest.fixture
def package(tmp_path):
    """The task in a package whose parts import each other."""
    folder = tmp_path / "project" / "mine" / "tasks"
    folder.mkdir(parents=True)
    for place in (folder, folder.parent):
        (place / "__init__.py").touch()
    (folder / "drawn.py").write_text(CODE)
    text = "from .drawn import STRIPES as drawn\nfrom dataclasses import replace\n"
    text += 'STRIPES = replace(drawn, data_help="a place")\nNOTHING = 3\n'
    (folder / "stripes.py").write_text(text)
    return folder / "stripes.py"


@pytest.fixture
def command(liespline, fresh, monkeypatch):
    """The command in a folder, as a new process: nothing of a task is imported, and modules are looked for anew."""

    def run(*arguments, where):
        fresh()
        monkeypatch.chdir(where)
        return liespline(*arguments)

    return run


def test_the_task_of_the_docs(tmp_path, fresh):
    (tmp_path / "stripes.py").write_text(CODE)
    task = find_task(f"{tmp_path}/stripes.py:STRIPES")
    assert (task.name, task.defaults.label, task.defaults.task_root) == ("stripes:STRIPES", "stripes", str(tmp_path))
    split = task.load(task.defaults, "train")
    images, labels = split.__getitems__(list(range(16)))
    assert images.shape == (16, 1, 24, 24)
    assert set(labels.tolist()) == {0, 1}
    assert not torch.equal(images, task.load(task.defaults, "valid").__getitems__(list(range(16)))[0])
    assert find_task(task.defaults).defaults == task.defaults


def test_it_trains_and_goes_on_from_elsewhere(tmp_path, command):
    """By its file at first, then by what the run kept; the network, when the file is gone."""
    for name in ("code", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "code" / "stripes.py").write_text(CODE)
    status, said = command("train", "code/stripes.py:STRIPES", *SMALL, where=tmp_path)
    assert status == 0, said
    run = Run(tmp_path / "runs" / "stripes-so2")
    kept = yaml.safe_load(run.config_file.read_text())
    assert (kept["task"], kept["task_root"]) == ("stripes:STRIPES", str(tmp_path / "code"))
    assert "<h1>stripes: 2 rotations" in run.report_file.read_text()
    status, said = command("train", "--resume", run.path, "--epochs", 2, where=tmp_path / "elsewhere")
    assert status == 0, said
    assert len(run.read_metrics()) == 2
    # Another person's copy: the folder of then is gone, and the file lies in the current one.
    (tmp_path / "code").rename(tmp_path / "copied")
    status, said = command("train", "--resume", run.path, "--epochs", 3, where=tmp_path / "copied")
    assert status == 0, said
    _, said = command("evaluate", run.path, "--json", where=tmp_path / "copied")
    assert json.loads(said)["scores"] == run.read_results()["scores"]
    # Nowhere any more: what was looked for, and where; the network is there all the same.
    for words in (["train", "--resume", run.path, "--epochs", 4], ["evaluate", run.path]):
        status, said = command(*words, where=tmp_path / "elsewhere")
        assert status == 2
        assert "task stripes:STRIPES: there is no module stripes in " in said
        assert said.count(str(tmp_path / "elsewhere")) == 1
        assert (str(tmp_path / "code") in said) == (words[0] == "train"), "files of networks name no folders"
    assert load(run.path)(torch.zeros(1, 1, 24, 24)).shape == (1, 2)


SWEPT = (
    CODE
    + """

from liespline.lab.sweep.study import Study

NETWORKS = {"small": {"elements": 2, "widths": (2, 3), "accelerator": "cpu"}}
STUDY = Study(f"{__name__}:STRIPES", NETWORKS, seeds=1)
"""
)


def test_a_sweep_of_it_is_done_by_processes_that_find_it(tmp_path, command):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "stripes.py").write_text(SWEPT)
    status, said = command("sweep", tmp_path / "code" / "stripes.py", "--uncommitted", where=tmp_path)
    assert status == 0, said
    assert Run(tmp_path / "runs" / "stripes" / "runs" / "small" / "seed-0").complete
    _, line = (tmp_path / "code" / "results" / "stripes.jsonl").read_text().splitlines()
    assert json.loads(line)["network"] == "small"
    _, said = command("sweep", "stripes.py", "--results", "other.jsonl", "--dry-run", where=tmp_path / "code")
    assert said == "small seed 0: to do\n", "another folder"


def test_a_file_of_a_package_is_its_module(package, fresh, monkeypatch, tmp_path):
    task = find_task(f"{package}:STRIPES")
    assert task.name == "mine.tasks.stripes:STRIPES"
    assert task.defaults.task_root == str(tmp_path / "project")
    assert task.data_help == "a place"
    fresh()
    monkeypatch.chdir(tmp_path / "project")
    assert find_task("mine.tasks.stripes:STRIPES").defaults == task.defaults
    fresh()
    monkeypatch.chdir(tmp_path)
    assert find_task(task.defaults).defaults == task.defaults
    fresh()
    with pytest.raises(ConfigError, match=r"task mine.tasks.stripes:STRIPES: there is no module mine in .*; start in"):
        find_task("mine.tasks.stripes:STRIPES")


def test_what_is_wrong_with_a_task_is_said(package, fresh, tmp_path):
    for name in ("NOTHING", "STRIPE"):
        with pytest.raises(ConfigError, match=r"stripes.py has no task of that name; it has drawn, STRIPES"):
            find_task(f"{package}:{name}")
    (tmp_path / "mine.py").write_text(CODE)
    with pytest.raises(ConfigError, match=r"'mine' is also the name of .*mine/__init__.py; rename the file"):
        find_task(f"{tmp_path}/mine.py:STRIPES")
    package.with_name("needs.py").write_text("import nowhere_at_all\n")
    with pytest.raises(ConfigError, match=r"cannot be imported .*No module named 'nowhere_at_all'"):
        find_task(f"{package.with_name('needs.py')}:X")
    with pytest.raises(ConfigError, match=r"'digits!' is unknown; choose one of digits, .*, module:NAME"):
        find_task("digits!")


def test_a_configuration_names_modules_and_never_files(package, fresh, tmp_path):
    for word in (f"{package}:STRIPES", "../mine/tasks/stripes.py:STRIPES", "os.path:join/../x"):
        with pytest.raises(ConfigError, match=r"expected module:NAME|has no task of that name"):
            find_task(Config(word, task_root=str(package.parents[1])))


def test_a_file_of_settings_may_name_one(package, fresh, tmp_path):
    file = tmp_path / "short.yaml"
    file.write_text(f"task: {package}:STRIPES\nnetwork: {{elements: 3}}\n")
    task = find_task(f"{package}:STRIPES")
    assert start_config(None, file, {"seed": 4}) == task.defaults.updated(elements=3, seed=4)
    assert start_config(f"{package}:STRIPES", file, {}).task == "mine.tasks.stripes:STRIPES"
    with pytest.raises(ConfigError, match=r"is of task 'mine.tasks.stripes:STRIPES', not 'digits'"):
        start_config("digits", file, {})
    with pytest.raises(ConfigError, match=r"--preset does nothing for task mine.tasks.stripes:STRIPES; leave out"):
        start_config(f"{package}:STRIPES", None, {"preset": "released"})
    file.write_text("task: nonesuch\n")
    with pytest.raises(ConfigError, match=r"short.yaml: task 'nonesuch' is unknown"):
        start_config(None, file, {})


def test_a_foreign_network_names_no_folder_to_import_from(tmp_path, tiny_run, command):
    """Whoever evaluates somebody's file runs no code from a folder that the file chose."""
    weights, about = read_weights(tiny_run.model_file)
    (tmp_path / "evil.py").write_text("raise SystemExit('run')")
    about["config"] |= {"task": "evil:X", "task_root": str(tmp_path)}
    save_weights(tmp_path / "model.safetensors", weights, about)
    assert load(tmp_path / "model.safetensors").config.task_root is None
    (tmp_path / "here").mkdir()
    status, said = command("evaluate", tmp_path / "model.safetensors", where=tmp_path / "here")
    assert (status, "there is no module evil" in said) == (2, True), said
