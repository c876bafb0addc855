"""CelebA's files with something wrong: refused by file and row, or left out by name."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab.data_files import LIST, WHO, edit, official, table
from liespline.lab.data import DataError
from studies.data import celeba

SOURCE_FAULTS = {
    "identity file shorter": (
        lambda s: edit(s / WHO, "004b.jpg 4\n", ""),
        r"identity_CelebA\.txt: has 29 rows but list_landmarks_celeba\.txt has 30[^\0]*004b\.jpg, row 11 of",
    ),
    "landmarks missing for an image": (
        lambda s: edit(s / LIST, "005a.jpg", "xyz.jpg"),
        r"list_landmarks_celeba\.txt: says nothing of 005a\.jpg, row 13 of identity_CelebA\.txt",
    ),
    "a number missing": (lambda s: edit(s / LIST, "002a.jpg 85", "002a.jpg"), r"txt, line 6: is '002a\.jpg.*10 whole"),
    "truncated list": (
        lambda s: os.truncate(s / LIST, (s / LIST).stat().st_size - 200),
        r"(announces 30 images but lists|line \d+: is)",
    ),
    "listed twice": (lambda s: edit(s / WHO, "003b.jpg", "003a.jpg"), r"line 8: 003a\.jpg is listed twice"),
    "binary": (lambda s: (s / WHO).write_bytes(b"\xff\x00" * 50), r"identity_CelebA\.txt, line 1: is no text line"),
    "no landmark file": (lambda s: (s / LIST).unlink(), r"list_landmarks_celeba\.txt: does not exist.*not the _align_"),
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


PREPARED_FAULTS = {
    "unfinished": (lambda o: (o / "prepared.json").unlink(), "python -m studies.data.celeba_prepare SRC"),
    "other format": (lambda o: (o / "prepared.json").write_text("{}"), r"of another format"),
    "landmark outside": (lambda o: swap(o, 5, "500"), r"index\.csv, row 1: a landmark lies outside"),
    "not a number": (lambda o: swap(o, 5, "nan"), r"index\.csv, row 1: is "),
    "fewer rows": (lambda o: drop_line(o), r"index\.csv: has 17 rows for 18 images"),
    "images truncated": (
        lambda o: os.truncate(o / "images.npy", 9999),
        r"images\.npy: cannot be read as a NumPy array",
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
