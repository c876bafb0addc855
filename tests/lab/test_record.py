"""A run keeps its split: what is scored is what it never learned from, or the command says what changed."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from lab.small_runs import new_run, resumed_run
from liespline.lab.data import DataError
from liespline.lab.data.manifest import Manifest
from liespline.lab.data.split import Joined, Split
from liespline.lab.session import Session
from liespline.lab.tasks import find_task
from liespline.lab.training import train
from truth.shell import fails, succeeds

SMALL = "--elements 2 --set widths=2,2,3 --epochs 1 --batch-size 8 --accelerator cpu --quiet".split()
RNG = np.random.default_rng(0)


def pictures(folder, count=20, side=16):
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(RNG.integers(0, 256, (side, side), np.uint8)).save(folder / name / f"{i:02}.png")
    return folder


def config_for(folder):
    return find_task("images").defaults.updated(elements=2, widths=(2, 2, 3), data=str(folder))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run and its data; tests change copies of both."""
    root = tmp_path_factory.mktemp("kept")
    config = config_for(pictures(root / "data")).updated(epochs=1, accelerator="cpu")
    new_run(config, root / "run")
    return root


@pytest.fixture
def kept(tmp_path, trained):
    shutil.copytree(trained, tmp_path / "kept")
    return tmp_path / "kept"


def printed(text):
    """The JSON among what was printed."""
    return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]


def test_deleting_images_does_not_move_trained_ones_into_the_test(tmp_path):
    data = pictures(tmp_path / "data")
    config = config_for(data)
    session = Session(config)
    session.validate()
    manifest = session.manifest
    learned = set(find_task("images").load(config, "train").names)
    for name in ("cat", "dog"):  # an image of the training split, so that positions shift
        (data / min(n for n in learned if n.startswith(name))).unlink()
    dealt_anew = set(find_task("images").load(config, "test").names)
    assert dealt_anew & learned, "the fault: by position, trained images come to be tested"
    # One image of training is no longer there; those of testing are the ones that they were.
    held_out = set(Session(config, manifest=manifest).test.names)
    assert not held_out & learned
    assert held_out == set(manifest.splits["test"])


CHANGES = {
    "removed": (lambda d, n: (d / n).unlink(), "1 removed"),
    "replaced": (lambda d, n: Image.new("L", (16, 16)).save(d / n), "1 replaced by other pixels"),
    "class": (lambda d, n: (d / n).rename(d / n.replace("cat/", "dog/x")), "1 now in another class"),
    "renamed": (lambda d, n: (d / n).rename(d / n.replace("cat/", "cat/x")), "1 renamed"),
    "size": (
        lambda d, n: [Image.open(f).resize((20, 20)).save(f) for f in d.rglob("*.png")],
        "the images are 20×20 with 1 channel and were 16×16 with 1 channel",
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_changed_is_said(kept, kind):
    change, words = CHANGES[kind]
    manifest = Manifest.read(kept / "run" / "data.json")
    name = min(n for n in manifest.splits["test"] if n.startswith("cat"))
    change(kept / "data", name)
    text = fails("evaluate", kept / "run", "--data", kept / "data")
    assert words in text
    assert "--split all" in text
    if kind != "size":
        assert name in text
    for file in ("results.json", "report.html"):  # as if it had been stopped before its end
        (kept / "run" / file).unlink()
    config = kept / "run" / "config.yaml"
    lines = config.read_text().splitlines()
    config.write_text("\n".join(f"data: {kept / 'data'}" if line.startswith("data:") else line for line in lines))
    assert words in fails("train", "--resume", kept / "run", "--quiet")
    assert not (kept / "run" / "results.json").exists()


def test_data_that_change_while_it_trains_are_not_scored(tmp_path, monkeypatch):
    config = config_for(pictures(tmp_path / "data")).updated(epochs=1, accelerator="cpu")
    keep_best, changed = train.keep_best, []

    def changing(session):
        file = tmp_path / "data" / min(session.test.names)
        changed.append((file, file.read_bytes()))
        Image.new("L", (16, 16)).save(file)
        keep_best(session)

    with monkeypatch.context() as patch:
        patch.setattr(train, "keep_best", changing)
        with pytest.raises(DataError, match=r"1 replaced by other pixels .*bring it back, then resume"):
            new_run(config, tmp_path / "run")
    assert not (tmp_path / "run" / "results.json").exists()
    ((file, before),) = changed
    file.write_bytes(before)
    assert resumed_run(tmp_path / "run").complete


def test_images_that_came_later_are_left_out_and_said(kept):
    for i in range(3):
        Image.new("L", (16, 16), i).save(kept / "data" / "cat" / f"later{i}.png")
    text = succeeds("evaluate", kept / "run", "--data", kept / "data", "--json")
    assert "images that came later are not scored: 3 added (cat/later0.png" in text
    before = json.loads((kept / "run" / "results.json").read_text())
    assert printed(text)["scores"] == before["scores"]


def test_an_external_set_is_scored_whole(kept, tmp_path):
    other = pictures(tmp_path / "other", count=40)
    assert "--split all" in fails("evaluate", kept / "run", "--data", other)
    text = succeeds("evaluate", kept / "run", "--data", other, "--split", "all", "--json")
    found = json.loads(text)
    assert (found["images"], found["train_overlap"]) == (80, 0)
    assert sum(map(sum, found["confusion"])) == 80
    shutil.rmtree(other / "dog")  # one class, few images, in colours: still a set
    shutil.copy(kept / "data" / "cat" / sorted(n.name for n in (kept / "data" / "cat").iterdir())[0], other / "cat")
    for file in sorted((other / "cat").iterdir())[2:]:
        file.unlink()
    text = succeeds("evaluate", kept / "run", "--data", other, "--split", "all", "--json")
    assert printed(text)["images"] == 2


def test_classes_of_an_external_set_keep_their_numbers():
    split = Split(np.zeros((3, 2, 2), np.uint8), np.array([0, 1, 1]), ("dog", "fox"))
    assert split.among(("cat", "dog", "eel", "fox"), "set").targets.tolist() == [1, 3, 3]
    with pytest.raises(DataError, match="has classes dog; the network knows cat, fox"):
        split.among(("cat", "fox"), "set")


def test_a_manifest_is_read_back_and_a_damaged_one_refused(kept):
    file = kept / "run" / "data.json"
    manifest = Manifest.read(file)
    manifest.write(kept / "copy.json")
    assert Manifest.read(kept / "copy.json") == manifest
    assert manifest.fingerprint == json.loads((kept / "run" / "results.json").read_text())["data"]
    for text in ("", "[]", "{}", file.read_text().replace("cat/00.png", "cat/99.png"), file.read_text()[:-60]):
        file.write_text(text)
        with pytest.raises(DataError, match=r"data\.json"):
            Manifest.read(file)


def test_rows_of_one_file_have_marks_too():
    values = RNG.integers(0, 256, (50, 8, 8), np.uint8)
    labels = np.arange(50) % 2

    def split(array, targets):
        return {"train": Split(array, targets, ("a", "b"))}

    then = Manifest.of(split(values, labels))
    other = values.copy()
    other[17, 3, 3] ^= 1
    assert then.changes(split(other, labels)).images["replaced by other pixels"] == ["row 17"]
    swapped = labels.copy()
    swapped[5] = 1 - swapped[5]
    assert then.changes(split(values, swapped)).images["now in another class"] == ["row 5, a"]
    changed = [Manifest.of(now) for now in (split(other, labels), split(values, swapped))]
    assert len({one.fingerprint for one in (then, *changed)}) == 3


def test_splits_of_one_file_join():
    parts = {
        name: Split(np.full((n, 2, 2), k, np.uint8), np.full(n, k), ("a", "b", "c"))
        for k, (name, n) in enumerate([("train", 3), ("valid", 2), ("test", 4)])
    }
    joined = Joined(parts)
    assert len(joined) == 9
    batch, targets = joined.__getitems__([8, 0, 4, 2, 3])
    assert batch[:, 0, 0, 0].tolist() == targets.tolist() == [2, 0, 1, 0, 1]
    assert joined.names[4] == "valid: row 1"


def test_a_share_of_the_labels_is_of_each_class_alike_and_grows():
    targets = np.repeat(np.arange(3), (50, 200, 750))
    split = Split(
        np.arange(1000, dtype=np.uint8).reshape(-1, 1, 1).repeat(2, 1),
        targets,
        "abc",
        names=list(map(str, range(1000))),
    )
    small, large = split.share(0.1), split.share(0.25)
    assert np.bincount(small.targets.numpy()).tolist() == [5, 20, 75]
    assert set(small.names) < set(large.names) < set(split.share(1.0).names)
    assert all(int(split.targets[int(name)]) == int(own) for name, own in zip(small.names, small.targets, strict=True))
    assert split.share(0.1).names == small.names
