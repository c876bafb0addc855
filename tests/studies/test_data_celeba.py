"""From CelebA's official files to the paper's set: geometry, choice, kills, the whole chain."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.data_files import Official, official, size_of, table
from liespline.lab.data import DataError
from studies.data import celeba, celeba_prepare
from studies.data.synthetic import faces


def test_prepared_images_show_their_landmarks_where_the_index_says(tmp_path):
    source = official(tmp_path / "src")
    summary = celeba.prepare(source, tmp_path / "out")
    assert (summary["images"], summary["identities"], summary["dropped"]) == (18, 9, {})
    images = np.load(tmp_path / "out" / "images.npy")
    assert images.shape == (18, 128, 128, 3)
    for image, row in zip(images.astype(int), table(tmp_path / "out"), strict=True):
        width, height = size_of(source / "img_celeba" / row["file"])
        blank = np.flatnonzero(image.sum((1, 2)) == 0) if width > height else np.flatnonzero(image.sum((0, 2)) == 0)
        assert len(blank) == 128 - round(128 * min(width, height) / max(width, height)), "padded with zeros"
        # The red dots' centres of mass, found in the pixels alone, against the written coordinates.
        red = np.clip(image[..., 0] - image[..., 2], 0, None)
        for point in ("left_eye", "right_eye"):
            r, c = float(row[f"{point}_row"]), float(row[f"{point}_column"])
            rows, columns = np.mgrid[round(r) - 4 : round(r) + 5, round(c) - 4 : round(c) + 5]
            mass = red[rows, columns]
            assert mass.sum() > 500
            assert abs((rows * mass).sum() / mass.sum() - r) < 0.3
            assert abs((columns * mass).sum() / mass.sum() - c) < 0.3


def test_choice_is_one_of_each_size_and_splits_keep_identities_apart(tmp_path):
    source = Official(tmp_path / "src")
    rng = np.random.default_rng(0)
    distances: dict[str, float] = {}
    people: dict[int, list[str]] = {}
    for person in range(1, 61):
        for letter in "abc"[: rng.integers(1, 4)]:
            name, eyes = f"{person:03d}{letter}.jpg", 2 * int(rng.integers(10, 60))
            source.add(name, eyes, person)
            distances[name] = eyes * 128 / 300
            people.setdefault(person, []).append(name)
    mean = np.mean(list(distances.values()))
    sizes = {person: {distances[name] < mean for name in names} for person, names in people.items()}

    summary = celeba.prepare(source.write(), tmp_path / "out", seed=3)
    rows = table(tmp_path / "out")
    assert summary["mean_eye_distance"] == pytest.approx(mean)
    assert {int(row["identity"]) for row in rows} == {person for person, both in sizes.items() if len(both) == 2}
    assert summary["identities"] * 2 == len(rows)
    for small, large in zip(rows[::2], rows[1::2], strict=True):
        assert small["identity"] == large["identity"]
        assert small["split"] == large["split"], "a person is in one split only"
        assert (small["size"], large["size"]) == ("small", "large")
        assert distances[small["file"]] < mean <= distances[large["file"]]
        assert {small["file"], large["file"]} <= set(people[int(small["identity"])])
    letters = {row["file"][3] for row in rows}
    assert letters == set("abc"), "the draw does not always take the first image"
    counts = [len(celeba.load(tmp_path / "out", split)) for split in ("train", "valid", "test")]
    assert sum(counts) == len(rows)
    assert counts[0] / len(rows) == pytest.approx(0.8, abs=0.03)


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file() and path.name != ".lock"}


def test_same_seed_same_files_other_seed_others(tmp_path):
    source = official(tmp_path / "src")
    for out, seed in (("a", 0), ("b", 0), ("c", 1)):
        celeba.prepare(source, tmp_path / out, seed=seed)
    a, b, c = (contents(tmp_path / out) for out in "abc")
    assert a == b
    assert a["index.csv"] != c["index.csv"]
    stamp = (tmp_path / "a" / "images.npy").stat().st_mtime_ns
    assert celeba.prepare(source, tmp_path / "a") == json.loads(a["prepared.json"])
    assert (tmp_path / "a" / "images.npy").stat().st_mtime_ns == stamp, "finished work is not redone"
    with pytest.raises(DataError, match="another seed"):
        celeba.prepare(source, tmp_path / "a", seed=1)


CHILD = """
import sys, time
from pathlib import Path
from studies.data import celeba, journal
journal._BLOCK = 2

def progress(*step):
    print(*step, flush=True)
    if " ".join(map(str, step)).startswith(sys.argv[3]):
        time.sleep(600)  # until the kill comes, however busy the machine is

celeba.prepare(Path(sys.argv[1]), Path(sys.argv[2]), progress=progress)
"""


def test_killed_and_resumed_gives_the_same_bytes(tmp_path):
    source = official(tmp_path / "src", people=16)
    celeba.prepare(source, tmp_path / "whole")
    out = tmp_path / "out"
    for kill_at in ("sizes 10", "sizes 40", "pictures 4", "pictures 12", "pictures 26"):
        child = subprocess.Popen([sys.executable, "-c", CHILD, source, out, kill_at], stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            if line.startswith(kill_at):
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        assert celeba.check(out), "a half-prepared folder is not a data set"
    # What the kills left is used: the next run starts behind it.
    steps: list[tuple[str, int, int]] = []
    celeba.prepare(source, out, progress=lambda *step: steps.append(step))
    assert steps[0] == ("sizes", 48, 48)
    assert min(done for what, done, _ in steps if what == "pictures") >= 24
    assert contents(out) == contents(tmp_path / "whole")
    assert not (out / ".work").exists()


def test_damage_behind_a_kill_is_found_by_checksum(tmp_path, monkeypatch):
    source = official(tmp_path / "src")
    celeba.prepare(source, tmp_path / "whole")
    out = tmp_path / "out"
    monkeypatch.setattr(celeba_prepare, "_write", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        celeba.prepare(source, out)
    monkeypatch.undo()
    journal = out / ".work" / "pictures"
    raw = bytearray(journal.read_bytes())
    raw[10 * len(raw) // 18 + 999] ^= 1
    journal.write_bytes(raw[:-5])
    celeba.prepare(source, out)
    assert contents(out) == contents(tmp_path / "whole")


def test_synthetic_faces_go_through_the_whole_chain(tmp_path):
    faces.synthesize(tmp_path / "a", identities=12, pictures=4, seed=5)
    faces.synthesize(tmp_path / "b", identities=12, pictures=4, seed=5, jobs=2)
    for path in sorted((tmp_path / "a").rglob("*")):
        if path.is_file() and path.name != ".lock":
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    assert celeba.check(tmp_path / "a") == []
    summary = celeba.prepare(tmp_path / "a", tmp_path / "out")
    assert summary["synthetic"] is True
    assert summary["dropped"] == {}
    data = celeba.load(tmp_path / "out", "train")
    images, points = data.__getitems__(range(len(data)))
    assert data.synthetic
    assert images.shape[1:] == (3, 128, 128)
    assert points.shape[1:] == (5, 2)
    eyes = torch.linalg.vector_norm(points[:, 0] - points[:, 1], dim=-1)
    assert eyes.max() / eyes.min() > 3, "a wide range of scales"
    with pytest.raises(ValueError, match="0 identities"):
        faces.synthesize(tmp_path / "c", identities=0)
