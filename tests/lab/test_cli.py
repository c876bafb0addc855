"""The command line: what it does with good input, and what it says to bad."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import liespline as ls
from liespline.lab import load
from truth.shell import fails, succeeds

SMALL = "--elements 2 --set widths=2,2,3 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("trian", ["No such command 'trian'", "train"]),
        ("train digits --data here", ["--data does nothing for task digits; leave out data"]),
        ("train digits --epohs 3", ["No such option: --epohs", "--epochs"]),
        ("train digts", ["'digts' is unknown", "Did you mean 'digits'?"]),
        ("train digits --group s02", ["'s02' is unknown", "Did you mean 'so2'?"]),
        ("train digits --augment rotat", ["Did you mean 'rotate'?"]),
        ("train digits --set widths=8;12", ["8;12", "such as 8,12,16"]),
        ("train digits --group so3", ["so3", "choose so2, o2, scale or none"]),
        ("train images", ["needs --data", "one folder"]),
        ("train", ["name a task"]),
        ("train --resume nowhere", ["nowhere", "holds no run"]),
        ("train digits --resume nowhere", ["resumes that run", "leave out task"]),
        ("train digits --widths 2,2", ["--widths is no option of its own: say --set widths=…"]),
        ("train digits --set width=2", ["--set 'width' is unknown", "Did you mean 'widths'?"]),
        ("train digits --set kernel-size=0", ["kernel_size = 0"]),
        ("train digits --set widths", ["--set widths: expected NAME=VALUE, such as --set stride=2"]),
        ("train digits --set stride=[", ["stride = '[': expected a whole number"]),
        ("train digits --grid-jitter 1.5", ["grid_jitter = 1.5: must be from 0 to 1"]),
        ("train nowhere.py:MINE", ["nowhere.py: does not exist; expected the file that holds the task"]),
        ("train nowhere:MINE", ["task nowhere:MINE: there is no module nowhere in ", "or name its file"]),
        ("train sys:path", ["task sys:path: ", "has no task of that name; it has none"]),
        ("train ../up:MINE", ["task '../up:MINE': expected module:NAME or FILE.py:NAME"]),
        ("train digits --group none --elements 4", ["--elements does nothing with --group none"]),
        ("train digits --group none --tta-grids 3", ["--tta-grids 3 with --group none: it has no"]),
        ("train digits --group none --grid-jitter 1", ["--grid-jitter 1 with --group none: it has"]),
        ("train digits --set logger=wandb", ["logger = wandb", "not installed"]),
        ("train digits --accelerator gpu", ["accelerator = gpu", "no GPU"]),
        ("predict last.ckpt a.png", ["last.ckpt", "is a checkpoint to resume"]),
        ("evaluate nowhere", ["nowhere", "does not exist"]),
        ("data check images nowhere", ["nowhere", "is no folder"]),
        ("train digits --network resnet --set architecture=3", ["version = 3: this liespline makes ready networks of"]),
        ("train digits --elements 8x4", ["elements = 8x4", "so2 takes one number, such as 8", "sim2"]),
        ("train digits --group sim2 --elements 8", ["elements = 8", "sim2 takes rotations x scales, such as 8x4"]),
        ("train digits --group gl2 --elements 8x3", ["elements = 8x3", "such as 8x1x3x3"]),
        ("train digits --group sim2 --elements 8y4", ["elements = '8y4'", "or for products 8x4"]),
        ("train digits --group sim2 --elements 8x0", ["elements = (8, 0)", "such as 8x4"]),
        ("train digits --group sim2 --elements 100x100", ["(100, 100)", "1,000"]),
        ("train digits --group sim2 --elements 4x2 --kernel dense --basis 3", ["basis = 3", "one per factor"]),
        ("train digits --group o2 --basis 3x3", ["basis = (3, 3)", "one number"]),
    ],
)
def test_mistakes_end_with_a_clear_message(tmp_path, monkeypatch, line, words):
    monkeypatch.chdir(tmp_path)
    text = fails(*line.split())
    for word in words:
        assert word in text
    assert not list(tmp_path.iterdir())


def test_help_imports_nothing_that_takes_long():
    """`liespline --help` answers at once; the library's own names are imported when they are used."""
    code = "import sys, liespline.lab.cli; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "typer" in modules
    assert not {"torch", "numpy", "lightning", "scipy", "sklearn", "PIL", "nibabel"} & set(modules)
    assert all(getattr(ls, name) is not None for name in ls.__all__)
    with pytest.raises(AttributeError, match="'liespline' has no attribute 'uniforn'"):
        _ = ls.uniforn


@pytest.mark.parametrize("use", ["ls.load('zoo:nuclei-histology')", "import liespline.lab.cli"])
def test_without_the_extra_lab_it_says_what_to_install(use):
    code = f"import sys, liespline as ls; sys.modules['typer'] = None; {use}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].endswith("pip install 'liespline[lab]'")


def test_every_command_has_a_manual(liespline):
    _, text = liespline("--help")
    commands = re.findall(r"^│ (\w+) {2,}", text, re.MULTILINE)
    assert {"demo", "train", "evaluate", "sweep", "export", "data", "nnunet", "predict"} <= set(commands)
    for command in commands:
        assert "Usage" in succeeds(command, "--help")
    manual = succeeds("train", "--help")
    for words in (
        "--group",
        "so2, o2, scale, sim2, gl2, so3, o3, axial, axial-o2, none",
        "--kernel",
        "--elements",
        "--resume",
        "--set",
    ):
        assert words in manual


@pytest.mark.parametrize("task", ["digits", "images", "volumes", "segment", "landmarks", "studies.paper.pcam:PCAM"])
def test_the_manual_of_a_task_shows_its_own_options(liespline, monkeypatch, task):
    """Fewer than 34 on a screen and a half, with the task's own defaults; none that does nothing for it."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 100)
    _, manual = liespline("train", task, "--help")
    options = set(re.findall(r"^│ (--[\w-]+)", manual, re.MULTILINE))
    assert 15 < len(options) < 34
    assert len(manual.splitlines()) <= 75
    assert ("--preset" in options) == (task == "studies.paper.pcam:PCAM")


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("--weights 9000", "--parameters"),
        ("--n-h 8", "--elements"),
        ("--n-k 3", "--basis"),
        ("--batch 8", "--batch-size"),
        ("--decay 0.1", "--set weight_decay=…"),
        ("--within 27", "--set max_angle=…"),
        ("--kernel apart", "'pointwise'"),
        ("--grids 2", "--tta-grids"),
        ("--shift", "--grid-jitter"),
        ("--disc", "--circular-mask"),
        ("--share=0.1", "--set train_fraction=…"),
        ("--valid-too", "--set train_on_val=…"),
        ("--start-from runs/a", "--init-from"),
        ("--labels-are tags", "--label-type"),
        ("--window -160,240", "--intensity-range"),
        ("--optimiser adamw-modes", "'spectral-adamw'"),
        ("--set schedule=usual", "'cosine'"),
        ("--about mass", "--rotation-centre"),
        ("--moved scaled", "--transformation"),
        ("--augment flips", "'flip'"),
        ("--set shift=1", "'grid_jitter'"),
    ],
)
def test_what_was_renamed_is_refused_with_its_new_name(tmp_path, old, now):
    assert f" is called {now} now" in fails("train", "images", "--data", tmp_path, *old.split())


def test_a_finished_run_is_exported_small_and_never_replaced(liespline, tmp_path, image_folder):
    run = tmp_path / "run"
    succeeds("train", "images", "--data", image_folder, "--out", run, *SMALL)
    files = "config.yaml environment.json metrics.jsonl model.safetensors results.json report.html"
    assert not [name for name in files.split() if not (run / name).is_file()]

    files = sorted(image_folder.glob("*/*.png"))[:3]
    text = succeeds("predict", run, *files, "--json")
    answers = json.loads(text)
    images = torch.stack([torch.from_numpy(np.array(Image.open(f))) for f in files])[:, None]
    trained = load(run)
    assert [(a["class"], pytest.approx(a["confidence"])) for a in answers] == trained.predict(images)

    succeeds("export", run, "--onnx", tmp_path / "small.onnx", "--compact")
    session = onnxruntime.InferenceSession(str(tmp_path / "small.onnx"))
    found = session.run(["logits"], {"images": images.float().numpy() / 255})[0]
    np.testing.assert_allclose(found, trained(images).detach().numpy(), atol=1e-4)
    weights = sum(4 * p.numel() for p in trained.parameters())
    assert (tmp_path / "small.onnx").stat().st_size < 2 * weights + 60_000
    assert b".py" not in (tmp_path / "small.onnx").read_bytes()  # no stack traces

    layers = json.loads(liespline("evaluate", run, "--layers", "--json")[1])["equivariance"]
    text = succeeds("evaluate", run, "--layers")
    assert all(row["layer"] in text for row in layers)

    assert "report" in succeeds("train", "--resume", run)
    assert "already holds a run" in fails("train", "images", "--data", image_folder, "--out", run, *SMALL)


def test_the_same_seed_gives_the_same_numbers(liespline, tmp_path, image_folder):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        command = ["train", "images", "--data", image_folder, "--out", tmp_path / name, "--seed", seed]
        assert liespline(*command, "--augment", "rotate", *SMALL)[0] == 0
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize(("kernel", "group"), [("local", "scale"), ("atrous", "so2"), ("deformable", "so2")])
def test_every_kernel_trains(tmp_path, image_folder, kernel, group):
    words = f"--group {group} --kernel {kernel} --elements 3".split()
    succeeds("train", "images", "--data", image_folder, "--out", tmp_path / "run", *SMALL, *words)


def test_a_run_that_was_interrupted_cannot_be_evaluated_yet(tmp_path, tiny_run):
    folder = tmp_path / "run"
    shutil.copytree(tiny_run.path, folder)
    for name in ("model.safetensors", "results.json", "report.html"):
        (folder / name).unlink()
    before = sorted(folder.rglob("*"))
    for command in (["evaluate", folder], ["predict", folder, "x.png", "--json"]):
        text = fails(*command)
        assert text.splitlines() == [
            f"Error: {folder}: holds a run that is not finished; resume it with `liespline train --resume {folder}`"
        ]
    assert sorted(folder.rglob("*")) == before


def test_a_name_that_is_not_utf8_leaves_no_folder_behind(tmp_path, image_folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    strange = os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xffdata")
    shutil.copytree(image_folder, strange)
    assert "not UTF-8; rename the folder" in fails("train", "images", "--data", strange, *SMALL)
    assert [path.name for path in tmp_path.iterdir()] == [os.path.basename(strange)]
