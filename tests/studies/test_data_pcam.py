"""PCam in its official files: what is read and refused; synthetic ones, whose label is in structure, not colour."""

import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from liespline.lab.data import DataError, batched
from studies.data import pcam
from studies.data.synthetic import tissue
from studies.data.synthetic.tissue import draw_patch

N = 70
RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (N, 96, 96, 3), np.uint8)
Y = RNG.integers(0, 2, (N, 1, 1, 1), np.uint8)


def write(folder: Path, split: str = "train", x=X, y=Y, **options) -> Path:
    folder.mkdir(exist_ok=True)
    for part, array in (("x", x), ("y", y)):
        with h5py.File(folder / pcam.file_name(split, part), "w") as file:
            file.create_dataset(part, data=array, **(options if part == "x" else {}))
    return folder


def both_splits(folder: Path, **options) -> Path:
    write(folder, "valid")
    return write(folder, "train", **options)


LAYOUTS = {
    "contiguous": {},
    "whole-row chunks": {"chunks": (16, 96, 96, 3)},
    "one-row chunks": {"chunks": (1, 96, 96, 3)},
    "gzip": {"chunks": (16, 96, 96, 3), "compression": "gzip", "compression_opts": 1},
    "lzf": {"chunks": (64, 96, 96, 3), "compression": "lzf"},
    "cut rows": {"chunks": (16, 48, 96, 3)},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_storage_layout_gives_the_centre_crops(tmp_path, layout):
    both_splits(tmp_path, **LAYOUTS[layout])
    assert pcam.check(tmp_path) == []
    data = pcam.load(tmp_path, "train")
    order = RNG.permutation(N).tolist()
    images, labels = data.__getitems__(order)
    assert torch.equal(images, torch.from_numpy(X[order, 4:92, 4:92].transpose(0, 3, 1, 2)))
    assert torch.equal(labels, torch.from_numpy(Y[order].reshape(-1).astype(np.int64)))
    assert (len(data), data.in_channels, data.space, data.classes) == (N, 3, (88, 88), ("normal", "tumour"))
    one, label = data[3]
    assert torch.equal(one, torch.from_numpy(X[3, 4:92, 4:92].transpose(2, 0, 1)))
    assert label == Y[3].item()


def test_plain_files_need_no_copy_and_compressed_ones_one(tmp_path):
    both_splits(tmp_path, **LAYOUTS["whole-row chunks"])
    pcam.load(tmp_path, "train")
    cache = tmp_path / ".liespline-cache"
    assert not cache.exists()
    write(tmp_path, **LAYOUTS["gzip"])
    pcam.load(tmp_path, "train")
    first = list(cache.glob("*.items"))
    stamp = first[0].stat().st_mtime_ns
    pcam.load(tmp_path, "train")
    assert len(first) == 1
    assert first[0].stat().st_mtime_ns == stamp, "a decoded file is used again"
    # The same name with other content must not be answered from the old copy.
    write(tmp_path, x=X[::-1], y=Y[::-1], **LAYOUTS["gzip"])
    assert torch.equal(pcam.load(tmp_path, "train")[0][0], torch.from_numpy(X[-1, 4:92, 4:92].transpose(2, 0, 1)))
    assert len(list(cache.glob("*.items"))) == 1, "the copy of the replaced file is gone"


def test_a_killed_decoder_leaves_nothing_that_is_read(tmp_path):
    both_splits(tmp_path, **LAYOUTS["gzip"])
    pcam.load(tmp_path, "train")
    (copy,) = (tmp_path / ".liespline-cache").glob("*.items")
    whole = copy.read_bytes()
    copy.unlink()
    copy.with_name(copy.name + ".part").write_bytes(whole[: len(whole) // 2])
    assert torch.equal(pcam.load(tmp_path, "train")[69][0], torch.from_numpy(X[69, 4:92, 4:92].transpose(2, 0, 1)))
    assert copy.read_bytes() == whole
    copy.write_bytes(whole[:-1])
    assert torch.equal(pcam.load(tmp_path, "train")[69][0], torch.from_numpy(X[69, 4:92, 4:92].transpose(2, 0, 1)))
    assert copy.read_bytes() == whole, "half a file is decoded again"


def test_loader_processes_read_the_same(tmp_path):
    data = pcam.load(write(tmp_path), "train")
    data.__getitems__([0])  # opens the mapping, which must not travel
    assert len(pickle.dumps(data)) < 10_000
    loader = torch.utils.data.DataLoader(
        data, batch_size=32, num_workers=1, collate_fn=batched, multiprocessing_context="spawn"
    )
    images = torch.cat([x for x, _ in loader])
    assert torch.equal(images, torch.from_numpy(X[:, 4:92, 4:92].transpose(0, 3, 1, 2)))


def truncated(folder: Path) -> None:
    path = folder / pcam.file_name("train", "x")
    os.truncate(path, path.stat().st_size // 2)


def damaged_chunk(folder: Path) -> None:
    write(folder, **LAYOUTS["gzip"])
    path = folder / pcam.file_name("train", "x")
    with h5py.File(path) as file:
        chunk = file["x"].id.get_chunk_info(2)
    raw = bytearray(path.read_bytes())
    raw[chunk.byte_offset + 1000 : chunk.byte_offset + 1100] = bytes(100)
    path.write_bytes(raw)


def never_written(folder: Path) -> None:
    with h5py.File(folder / pcam.file_name("train", "x"), "w") as file:
        data = file.create_dataset("x", (N, 96, 96, 3), np.uint8, chunks=(10, 96, 96, 3))
        data[:20] = X[:20]


def external_link(folder: Path) -> None:
    (folder / pcam.file_name("train", "x")).unlink()
    with h5py.File(folder / pcam.file_name("train", "x"), "w") as file:
        file["x"] = h5py.ExternalLink(str(folder / pcam.file_name("valid", "x")), "x")


def bad_label(folder: Path) -> None:
    y = Y.copy()
    y[[17, 40]] = 2
    write(folder, y=y)


def packed(folder: Path) -> None:
    path = folder / pcam.file_name("train", "y")
    path.rename(path.with_name(path.name + ".gz"))


FAULTS = {
    "truncated": (truncated, r"train_x\.h5.*truncated"),
    "damaged chunk": (damaged_chunk, r"train_x\.h5, rows 0 to 69: cannot be decoded"),
    "never written": (never_written, r"train_x\.h5, rows 20 to 29: were never written"),
    "lengths differ": (lambda f: write(f, y=Y[:-3]), r"train_x\.h5 has 70 rows but .*train_y\.h5 has 67"),
    "wrong shape": (lambda f: write(f, x=X[:, :64, :64]), r"shape \(70, 64, 64, 3\); expected \(N, 96, 96, 3\)"),
    "wrong dtype": (lambda f: write(f, x=X.astype(np.int16)), r"dtype int16; expected uint8"),
    "label": (bad_label, r"train_y\.h5, row 17: label 2 is neither 0 nor 1 \(2 of 70 rows\)"),
    "no rows": (lambda f: write(f, x=X[:0], y=Y[:0]), r"has no rows"),
    "missing": (lambda f: (f / pcam.file_name("train", "x")).unlink(), r"train_x\.h5: does not exist"),
    "still packed": (packed, r"train_y\.h5\.gz: is still packed; run: gunzip"),
    "external link": (external_link, r"'x' is a link"),
    "no HDF5": (lambda f: (f / pcam.file_name("train", "x")).write_bytes(b"<html>" * 99), r"cannot be read as HDF5"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_files_are_refused_by_name(tmp_path, fault):
    plant, message = FAULTS[fault]
    both_splits(tmp_path)
    assert pcam.check(tmp_path) == []
    plant(tmp_path)
    with pytest.raises(DataError, match=message):
        pcam.load(tmp_path, "train")
    assert len(pcam.check(tmp_path)) == 1, "the intact validation split is not blamed"


def test_unknown_split_is_named():
    with pytest.raises(ValueError, match="'val' is unknown; choose one of train, valid, test"):
        pcam.load(Path("nowhere"), "val")


def test_tissue_is_read_as_pcam(tmp_path):
    tissue.synthesize(tmp_path / "a", train=20, valid=6, test=6, seed=2)
    tissue.synthesize(tmp_path / "b", train=20, valid=6, test=6, seed=2)
    tissue.synthesize(tmp_path / "c", train=20, valid=6, test=6, seed=3)
    assert pcam.check(tmp_path / "a") == []
    assert pcam.available(tmp_path / "a") == ("train", "valid", "test")
    batches = {}
    for name in "abc":
        data = pcam.load(tmp_path / name, "train")
        batches[name] = data.__getitems__(range(len(data)))
        assert data.synthetic
        assert int(batches[name][1].sum()) == 10
    for one, two in zip(batches["a"], batches["b"], strict=True):
        assert one.equal(two), "same seed, same patches"
    assert not batches["a"][0].equal(batches["c"][0])
    first = batches["a"][0].flatten(1)
    assert len({bytes(row.numpy()) for row in first}) == 20, "no patch twice"
    assert "Synthetic tissue" in (tmp_path / "a" / "SYNTHETIC.txt").read_text()
    with pytest.raises(ValueError, match="1 train, 6 valid"):
        tissue.synthesize(tmp_path / "d", train=1, valid=6, test=6)


def test_colour_and_density_do_not_tell_the_class():
    """A linear reading of colour histograms, the kind of shortcut a network would take, stays near chance."""

    def histograms(label: int, seeds: range) -> np.ndarray:
        patches = (draw_patch(label, np.random.default_rng([9, label, seed])) for seed in seeds)
        return np.stack([[np.histogram(p[..., c], 8, (0, 256))[0] for c in range(3)] for p in patches]).reshape(
            len(seeds), -1
        )

    features = np.concatenate([histograms(label, range(200)) for label in (0, 1)]).astype(float)
    labels = np.repeat([0.0, 1.0], 200)
    features = (features - features.mean(0)) / (features.std(0) + 1e-9)
    learn = np.arange(400) % 2 == 0
    ridge = features[learn].T @ features[learn] + 30 * np.eye(features.shape[1])
    weights = np.linalg.solve(ridge, features[learn].T @ (labels[learn] - 0.5))
    accuracy = ((features[~learn] @ weights > 0) == (labels[~learn] > 0.5)).mean()
    assert accuracy < 0.62


def test_structure_tells_the_class():
    """Nuclei lie along their layer in class 0 and across it in class 1, mirrored or not."""
    for label in (0, 1):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            cells = tissue._layers(label, np.array([47.5, 47.5]), np.zeros((96, 96)), rng)
            places, angles = np.array([cell.place for cell in cells]), np.array([cell.angle for cell in cells])
            # All layers of a structure share a centre: fit one circle to them by least squares.
            system = np.column_stack([2 * places, np.ones(len(places))])
            centre = np.linalg.lstsq(system, (places**2).sum(1), rcond=None)[0][:2]
            for sign in (1, -1):
                outwards = np.arctan2(sign * (places - centre)[:, 1], (places - centre)[:, 0])
                across = np.cos(2 * (sign * angles - outwards)).mean()  # +1 across the layer, −1 along it
                assert across > 0.3 if label else across < -0.3
