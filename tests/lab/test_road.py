"""The road of a folder: what one command opens, hashes and builds, counted while it runs.

Each command runs in a process of its own, in which image files, fingerprints of samples and networks are counted, and
afterwards the files of the lab that it imported, and those that ran.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

COUNTED = """
import hashlib, json, sys, threading
from collections import Counter
opened, decoded, built, hashed, ran = Counter(), [], [], [], set()

def running(frame, event, argument):
    file = frame.f_code.co_filename
    of_a_function = frame.f_code.co_flags & 1  # not of a module or a class
    if of_a_function and "/liespline/lab/" in file and file.endswith(".py"):
        ran.add(file.rpartition("/liespline/lab/")[2])

import PIL.Image
import liespline.lab.networks as networks
real_open, real_build, real_hash = PIL.Image.open, networks.build, hashlib.blake2b

def opening(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".png"):
        opened[str(arguments[0])] += 1

def decoding(*file, **options):
    decoded.append(1)
    return real_open(*file, **options)

def building(config, signature):
    built.append(str(config.network.network))
    return real_build(config, signature)

def hashing(data=b"", **options):
    if len(data) == SAMPLES:
        hashed.append(1)
    return real_hash(data, **options)

PIL.Image.open, networks.build, hashlib.blake2b = decoding, building, hashing
sys.addaudithook(opening)
from liespline.lab.cli.commands import app
threading.setprofile(running)
sys.setprofile(running)
try:
    app(ARGUMENTS, standalone_mode=False)
finally:
    sys.setprofile(None)
    names = [name for name in sys.modules if name.startswith("liespline.lab")]
    counts = {"opened": opened, "decoded": len(decoded), "hashed": len(hashed)}
    counts |= {"built": built, "ran": sorted(ran), "imported": sorted(names)}
    json.dump(counts, open("counts.json", "w"))
"""
SIDE = 19
SMALL = ["--set", "widths=2,2", "--epochs", "1", "--elements", "2", "--accelerator", "cpu", "--quiet"]
MOST_RUN = 38
"""Files of the lab whose functions run while a folder is trained on."""


def counted(folder, *arguments):
    """What a command did, from a process of its own that has the data's decoded copy to make."""
    code = COUNTED.replace("ARGUMENTS", repr([str(word) for word in arguments])).replace("SAMPLES", str(SIDE * SIDE))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "counts.json").read_text())


@pytest.fixture(scope="module")
def sixty(tmp_path_factory):
    """A folder of sixty grey PNG files of two classes."""
    root, draw = tmp_path_factory.mktemp("road"), np.random.default_rng(0)
    for name in ("a", "b"):
        (root / "data" / name).mkdir(parents=True)
        for i in range(30):
            Image.fromarray(draw.integers(0, 256, (SIDE, SIDE), np.uint8)).save(root / "data" / name / f"{i:02}.png")
    return root


@pytest.fixture(scope="module")
def trained(sixty):
    """What `train` did with them."""
    return counted(sixty, "train", "images", "--data", sixty / "data", "--out", sixty / "run", *SMALL)


def test_training_opens_and_hashes_each_image_once_and_builds_one_network(trained, sixty):
    files = {str(file) for file in (sixty / "data").rglob("*.png")}
    assert len(files) == 60
    assert trained["opened"] == dict.fromkeys(files, 1)
    assert (trained["decoded"], trained["hashed"], len(trained["built"])) == (60, 60, 1)


def test_training_runs_few_files_of_the_lab(trained):
    assert len(trained["ran"]) <= MOST_RUN, trained["ran"]
    foreign = ("dicom", "nifti", "reading", "mask_split", "mask_scores", "pairs", "patches", "volumes", "demo", "tiff")
    assert not [name for name in trained["imported"] if name.rpartition(".")[2] in foreign]


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("command", ["train --resume run --epochs 2 --quiet", "evaluate run"])
def test_afterwards_nothing_is_opened_again(sixty, command):
    """What was decoded is kept, and its fingerprints too: they say that the data are those of before."""
    found = counted(sixty, *command.split())
    assert (found["opened"], found["hashed"], len(found["built"])) == ({}, 0, 1)


@pytest.mark.usefixtures("trained")
def test_prediction_opens_each_image_once_and_builds_one_network(sixty):
    found = counted(sixty, "predict", sixty / "run", sixty / "data" / "a", "--csv", "--quiet")
    assert len(found["built"]) == 1
    assert set(found["opened"].values()) == {1}
