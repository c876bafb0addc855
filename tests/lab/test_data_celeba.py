"""From CelebA's official files to the paper's set: geometry, choice, faults, kills; then the landmarks."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from liespline.lab.data import DataError, celeba, celeba_prepare
from liespline.lab.data.augment import Zoom
from liespline.lab.data.landmarks import balancing_weights, found, heatmaps, locate
from liespline.lab.data.synthetic import faces

POINTS = ("lefteye", "righteye", "nose", "leftmouth", "rightmouth")
HEADER = " ".join(f"{point}_{axis}" for point in POINTS for axis in "xy")


class Official:
    """A tiny official folder in which every image shows red dots where the landmarks are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "img_celeba").mkdir(parents=True)
        self.rows: list[tuple[str, list[int], int, tuple[int, int]]] = []

    def add(self, name: str, eyes: int, identity: int, size: tuple[int, int] = (200, 300)) -> None:
        x, y = size[0] // 2, size[1] // 2
        left = x - eyes // 2
        points = [left, y, left + eyes, y, x, y + 20, x - 15, y + 40, x + 15, y + 40]
        pixels = np.zeros((size[1], size[0], 3), np.uint8)
        pixels[..., 2] = 80
        for px, py in np.reshape(points, (5, 2)):
            pixels[py - 4 : py + 5, px - 4 : px + 5] = (255, 0, 0)
        Image.fromarray(pixels).save(self.folder / "img_celeba" / name, quality=95)
        self.rows.append((name, points, identity, size))

    def write(self) -> Path:
        listing = "".join(f"{name} {' '.join(map(str, points))}\n" for name, points, _, _ in self.rows)
        (self.folder / "list_landmarks_celeba.txt").write_text(f"{len(self.rows)}\n{HEADER}\n{listing}")
        identities = "".join(f"{name} {identity}\n" for name, _, identity, _ in self.rows)
        (self.folder / "identity_CelebA.txt").write_text(identities)
        return self.folder


def official(folder: Path, people: int = 10) -> Path:
    """Each person has two small faces, one large one; person 1 has small ones only."""
    source = Official(folder)
    for person in range(1, people + 1):
        source.add(f"{person:03d}a.jpg", 30, person)
        source.add(f"{person:03d}b.jpg", 34, person, (300, 200))
        source.add(f"{person:03d}c.jpg", 20 if person == 1 else 90 + person, person, (151, 97 + person))
    return source.write()


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def table(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "index.csv").read_text().splitlines()))


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
from liespline.lab.data import celeba, celeba_prepare, journal
journal._BLOCK = 2
slow = celeba_prepare._picture
celeba_prepare._picture = lambda *a: (time.sleep(0.01), slow(*a))[1]
celeba.prepare(Path(sys.argv[1]), Path(sys.argv[2]), progress=lambda *a: print(*a, flush=True))
"""


def test_killed_and_resumed_gives_the_same_bytes(tmp_path):
    source = official(tmp_path / "src", people=16)
    celeba.prepare(source, tmp_path / "whole")
    out = tmp_path / "out"
    for kill_at in ("sizes 10", "sizes 40", "pictures 4", "pictures 12", "pictures 26"):
        child = subprocess.Popen([sys.executable, "-c", CHILD, source, out], stdout=subprocess.PIPE, text=True)
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


def test_a_second_process_is_refused_by_number(tmp_path):
    source, out = official(tmp_path / "src", people=30), tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", CHILD, source, out], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline()
        child.send_signal(signal.SIGSTOP)
        with pytest.raises(DataError, match=f"process {child.pid} is working there"):
            celeba.prepare(source, out)
        child.send_signal(signal.SIGKILL)
    assert celeba.prepare(source, out)["identities"] == 29


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


LIST, WHO = "list_landmarks_celeba.txt", "identity_CelebA.txt"
SOURCE_FAULTS = {
    "identity file shorter": (
        lambda s: edit(s / WHO, "004b.jpg 4\n", ""),
        r"identity_CelebA\.txt: has 29 rows but list_landmarks_celeba\.txt has 30[^\0]*004b\.jpg, row 11 of",
    ),
    "landmarks missing for an image": (
        lambda s: edit(s / LIST, "005a.jpg", "xyz.jpg"),
        r"list_landmarks_celeba\.txt: says nothing of 005a\.jpg, row 13 of identity_CelebA\.txt",
    ),
    "a number missing": (
        lambda s: edit(s / LIST, "002a.jpg 85", "002a.jpg"),
        r"txt, line 6: is '002a\.jpg.*10 whole",
    ),
    "not a number": (
        lambda s: edit(s / LIST, "002a.jpg 85", "002a.jpg 1e5"),
        r"txt, line 6: is '002a\.jpg 1e5",
    ),
    "truncated list": (
        lambda s: os.truncate(s / LIST, (s / LIST).stat().st_size - 200),
        r"(announces 30 images but lists|line \d+: is)",
    ),
    "count of rows wrong": (lambda s: edit(s / LIST, "30\n", "31\n"), "announces 31 images but lists 30"),
    "no count": (
        lambda s: edit(s / LIST, "30\n", ""),
        r"line 1: is 'lefteye_x.*expected the number of images",
    ),
    "listed twice": (lambda s: edit(s / WHO, "003b.jpg", "003a.jpg"), r"line 8: 003a\.jpg is listed twice"),
    "path to elsewhere": (
        lambda s: edit(s / LIST, "003b.jpg", "../../x"),
        r"line 10: '\.\./\.\./x' is no plain file",
    ),
    "hidden file": (lambda s: edit(s / LIST, "003b.jpg", ".lock"), r"'\.lock' is no plain file name"),
    "one endless line": (
        lambda s: (s / LIST).write_text("9" * 10**6),
        r"line 1: is no text line of at most 400",
    ),
    "binary": (
        lambda s: (s / WHO).write_bytes(b"\xff\x00" * 50),
        r"identity_CelebA\.txt, line 1: is no text line",
    ),
    "empty": (lambda s: (s / WHO).write_text(""), r"identity_CelebA\.txt: lists no images"),
    "no landmark file": (
        lambda s: (s / LIST).unlink(),
        r"list_landmarks_celeba\.txt: does not exist.*not the _align_",
    ),
    "no images": (lambda s: shutil.rmtree(s / "img_celeba"), r"img_celeba: is no folder"),
}


@pytest.mark.parametrize("fault", SOURCE_FAULTS)
def test_faulty_text_files_are_refused_by_row(tmp_path, fault):
    plant, message = SOURCE_FAULTS[fault]
    source = official(tmp_path / "src")
    assert celeba.check(source) == []
    plant(source)
    with pytest.raises(DataError, match=message):
        celeba.prepare(source, tmp_path / "out")
    assert celeba.check(source)


def test_unusable_images_are_left_out_by_name_and_counted(tmp_path):
    source = official(tmp_path / "src")
    jpg = source / "img_celeba"
    (jpg / "002c.jpg").unlink()  # person 2 then has no large face
    (jpg / "003c.jpg").write_bytes(b"not a picture")  # neither has person 3
    whole = (jpg / "004c.jpg").read_bytes()
    (jpg / "004c.jpg").write_bytes(whole[: len(whole) // 2])  # its header is fine, its body is not
    edit(source / LIST, "005c.jpg 28 ", "005c.jpg -28 ")
    edit(source / LIST, "006a.jpg 85 ", "006a.jpg 200 ")  # the image is 200 wide: columns 0 … 199
    Image.new("RGB", (9, 9)).save(jpg / "stray.jpg")
    assert len(celeba.check(source)) == 2
    summary = celeba.prepare(source, tmp_path / "out")
    assert summary["dropped"] == {
        "landmark outside the image": 2,
        "no image file": 1,
        "no landmarks": 1,
        "unreadable image": 2,
    }
    assert (tmp_path / "out" / "dropped.csv").read_text().splitlines() == [
        "file,why",
        "002c.jpg,no image file",
        "003c.jpg,unreadable image",
        "004c.jpg,unreadable image",
        "005c.jpg,landmark outside the image",
        "006a.jpg,landmark outside the image",
        "stray.jpg,no landmarks",
    ]
    assert {row["identity"] for row in table(tmp_path / "out")} == {"6", "7", "8", "9", "10"}
    assert celeba.check(tmp_path / "out") == []


def test_a_huge_picture_is_not_decoded(tmp_path):
    source = official(tmp_path / "src")
    Image.new("1", (20_000, 20_000)).save(source / "img_celeba" / "002c.png")
    (source / "img_celeba" / "002c.png").rename(source / "img_celeba" / "002c.jpg")
    start = time.monotonic()
    assert celeba.prepare(source, tmp_path / "out")["dropped"] == {"unreadable image": 1}
    assert time.monotonic() - start < 60


PREPARED_FAULTS = {
    "unfinished": (lambda o: (o / "prepared.json").unlink(), "liespline data prepare celeba SRC"),
    "broken json": (lambda o: (o / "prepared.json").write_text("{" * 99), r"prepared\.json: is no JSON"),
    "other format": (lambda o: (o / "prepared.json").write_text("{}"), r"of another format"),
    "landmark outside": (lambda o: swap(o, 5, "500"), r"index\.csv, row 1: a landmark lies outside"),
    "not a number": (lambda o: swap(o, 5, "nan"), r"index\.csv, row 1: is "),
    "unknown split": (lambda o: swap(o, 2, "dev"), r"index\.csv, row 1: is "),
    "fewer rows": (lambda o: drop_line(o), r"index\.csv: has 17 rows for 18 images"),
    "images truncated": (lambda o: os.truncate(o / "images.npy", 9999), r"images\.npy: is shorter than its 18 rows"),
    "images pickled": (
        lambda o: np.save(o / "images.npy", np.array([{}]), allow_pickle=True),
        r"images\.npy: it holds pickled objects",
    ),
    "images of other shape": (
        lambda o: np.save(o / "images.npy", np.zeros((18, 64, 64, 3), np.uint8)),
        r"\(64, 64, 3\)",
    ),
}


def swap(out: Path, column: int, value: str) -> None:
    lines = (out / "index.csv").read_text().splitlines()
    fields = lines[1].split(",")
    fields[column] = value
    (out / "index.csv").write_text("\n".join([lines[0], ",".join(fields), *lines[2:]]) + "\n")


def drop_line(out: Path) -> None:
    lines = (out / "index.csv").read_text().splitlines()
    (out / "index.csv").write_text("\n".join(lines[:-1]) + "\n")


@pytest.mark.parametrize("fault", PREPARED_FAULTS)
def test_faulty_prepared_sets_are_refused(tmp_path, fault):
    plant, message = PREPARED_FAULTS[fault]
    out = tmp_path / "out"
    celeba.prepare(official(tmp_path / "src"), out)
    assert celeba.check(out) == []
    plant(out)
    with pytest.raises(DataError, match=message):
        celeba.load(out, "train")


def test_too_few_identities_and_full_or_forbidden_folders(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="2 identities have both"):
        celeba.prepare(official(tmp_path / "few", people=3), tmp_path / "out")
    source = official(tmp_path / "src")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be made"):
        celeba.prepare(source, tmp_path / "file")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(DataError, match="free bytes and has 0"):
        celeba.prepare(source, tmp_path / "full")
    monkeypatch.undo()
    assert celeba.prepare(source, tmp_path / "full")["images"] == 18, "goes on once there is room"


def test_heatmaps_against_the_formula():
    points = torch.tensor([[[3.0, 5.5], [0.0, 0.0], [-4.0, 2.0]]], dtype=torch.float64)
    maps = heatmaps(points, (8, 10))
    for landmark, (r, c) in enumerate(points[0].tolist()):
        for i in range(8):
            for j in range(10):
                expected = np.exp(-((i - r) ** 2 + (j - c) ** 2) / (2 * 1.5**2))
                assert maps[0, landmark, i, j].item() == pytest.approx(expected, abs=1e-15)


def test_balancing_weights_have_mean_one_and_balance():
    maps = heatmaps(torch.tensor([[[60.2, 40.0], [0.0, 127.0], [-50.0, 10.0]]]), (128, 128))
    weights = balancing_weights(maps)
    assert weights.mean((-2, -1)).tolist()[0] == pytest.approx([1, 1, 1], abs=1e-4)
    for landmark in (0, 1):
        t, w = maps[0, landmark].double(), weights[0, landmark]
        m = sum(sum(row) for row in t.tolist()) / 128**2
        for i, j in ((60, 40), (0, 127), (58, 43), (100, 5)):
            # Summed over the map, the first term gives half of all weight to the landmark.
            expected = 0.5 * t[i, j] / m + 0.5 * (1 - t[i, j]) / (1 - m)
            assert w[i, j].item() == pytest.approx(expected.item(), rel=1e-4)
    assert torch.equal(weights[0, 2], torch.ones(128, 128)), "an absent landmark weighs like background"


def test_success_rate_by_hand():
    landmarks = torch.tensor([[[10.0, 20.0], [64.0, 64.0], [100.0, 3.0]]])
    maps = heatmaps(landmarks + torch.tensor([[[0.0, 0.0], [6.0, 8.0], [-6.0, 7.0]]]), (128, 128))
    assert locate(maps).tolist() == [[[10, 20], [70, 72], [94, 10]]]
    assert found(locate(maps), landmarks).tolist() == [[True, False, True]], "10 px away is not less than 10"
    noisy = maps.clone()
    noisy[0, 0, 90, 90] = 1.01  # one hot pixel; the released scripts' blur is there for this
    assert locate(noisy)[0, 0].tolist() == [90, 90]
    assert locate(noisy, blur=celeba.BLUR["released"])[0, 0].tolist() == [10, 20]
    assert celeba.BLUR["paper"] == 0


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_zoom_moves_image_and_landmarks_together(preset):
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.uniform(48, 80, (64, 1, 2)).astype(np.float32))
    images = (255 * heatmaps(points, (128, 128), sigma=4.0)).round().to(torch.uint8)
    zoom = Zoom(preset)
    zoomed, moved = zoom(images, points, torch.Generator().manual_seed(0))
    again, _ = zoom(images, points, torch.Generator().manual_seed(0))
    assert torch.equal(zoomed, again)
    axis = torch.arange(128.0)
    mass = zoomed[:, 0].sum((-2, -1))
    centre = torch.stack([(zoomed[:, 0].sum(2) * axis).sum(1), (zoomed[:, 0].sum(1) * axis).sum(1)], -1)
    assert (centre / mass[:, None] - moved[:, 0]).abs().max() < 0.05, "each landmark is still where its blob is"
    factors = (mass / (images[:, 0].float() / 255).sum((-2, -1))).sqrt()  # a blob's area grows as the square
    assert factors.min() > 0.999
    assert factors.max() < (1.4 if preset == "paper" else 1 / 0.704) + 1e-3
    assert factors.max() > 1.35
    untouched = int(((factors - 1).abs() < 1e-3).sum())
    assert (20 < untouched < 44) if preset == "released" else untouched <= 1


def test_unknown_preset_is_named():
    with pytest.raises(ValueError, match="'papre' is unknown; choose paper or released"):
        Zoom("papre")


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
