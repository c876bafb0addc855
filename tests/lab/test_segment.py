"""`liespline train segment`, from a folder to a report, and what becomes of the network afterwards."""

import json
import os
import shutil

import numpy as np
import onnxruntime
import pytest
import tifffile
import torch
from PIL import Image
from sklearn.metrics import f1_score

import liespline as liespline_package
from lab.data_files import discs
from lab.small_runs import new_run
from lab.test_large import pyramid
from liespline.lab.data import DataError
from liespline.lab.data.large import open_windows
from liespline.lab.evaluation import mask_files
from liespline.lab.evaluation.external import score_file
from liespline.lab.evaluation.predict import predict_files
from liespline.lab.runs.trained import load
from liespline.lab.tasks import find_task
from liespline.lab.training.learner import EpochNumbers
from truth.shell import fails, succeeds


def settings(folder, **changes):
    small = {"elements": 4, "widths": (4, 6), "epochs": 2, "batch_size": 8, "patch": 32, "accelerator": "cpu"}
    return find_task("segment").defaults.updated(**small | {"lr": 0.02, "data": str(folder)} | changes)


@pytest.fixture(scope="module")
def segmented(tmp_path_factory):
    """A finished run on discs."""
    folder = discs(tmp_path_factory.mktemp("discs"))
    return new_run(settings(folder, label_smoothing=0.1), tmp_path_factory.mktemp("runs") / "segment")


def test_discs_are_found_and_the_background_does_not_count_in_rotated_masks(segmented):
    results = segmented.read_results("scores", "rotated_masks", "parameters")
    assert results["scores"]["dice"] > 0.85
    assert results["rotated_masks"]["rotation_consistency"] > 0.85
    trained, truth, found = load(segmented.path), [], []
    for name in json.loads((segmented.path / "data.json").read_text())["splits"]["test"]:
        image, mask = (
            np.asarray(Image.open(f"{trained.config.data}/{part}/{name}.png")) for part in ("images", "masks")
        )
        y, x = np.indices(image.shape)
        middle, side = (np.array(image.shape) - 1) / 2, min(image.shape) - 1
        inside = np.hypot(y - middle[0], x - middle[1]) <= 0.9 * side / 2
        with torch.no_grad():
            answer = trained.in_tiles(torch.from_numpy(image / np.float32(255))[None, None]).argmax(1)[0].numpy()
        found.append(answer[inside])
        truth.append(mask[inside])
    expected = f1_score(np.concatenate(truth), np.concatenate(found))
    assert expected < 0.999
    assert results["rotated_masks"]["upright"] == pytest.approx(expected, abs=1e-6)


def test_the_report_shows_truth_prediction_and_error(segmented):
    page = segmented.report_file.read_text()
    for words in ("Truth, prediction and error", "how consistently masks rotate", "Dice rotated by 45°"):
        assert words in page


def test_patches_are_new_in_every_epoch():
    numbers = EpochNumbers(range(6), 1, 0, shuffle=True, seed=0)
    first = list(numbers)
    numbers.set_epoch(2)
    assert sorted(first) == list(range(6))
    assert sorted(numbers) == list(range(12, 18))


def test_changed_masks_are_noticed(tmp_path, segmented):
    folder = discs(tmp_path / "set", 8, 36)
    run = new_run(settings(folder, epochs=1), tmp_path / "run")
    record = json.loads((run.path / "data.json").read_text())
    name = next(iter(record["splits"]["test"]))
    mask = np.asarray(Image.open(folder / "masks" / f"{name}.png")).copy()
    mask[:3] = 1
    Image.fromarray(mask).save(folder / "masks" / f"{name}.png")
    with pytest.raises(DataError, match=f"is not what the run began with.*{name}"):
        score_file(run.path, None, "test")


@pytest.mark.parametrize(("group", "n_h"), [("o2", 8), ("scale", 2)])
def test_other_groups(tmp_path, group, n_h):
    folder = discs(tmp_path / "set", 8, 36)
    config = settings(folder, epochs=1, group=group, elements=n_h, kernel="dense" if group == "o2" else "local")
    assert new_run(config, tmp_path / "run").finished


def test_data_without_test_images_are_scored_on_those_that_there_are(tmp_path, liespline):
    for number, split in enumerate(("train", "valid")):
        discs(tmp_path / "data" / split, 6, seed=number)
    run = new_run(settings(tmp_path / "data", epochs=1), tmp_path / "run")
    assert run.read_results()["split"] == "valid"
    said = fails("evaluate", run.path)
    assert "no row is of split 'test'" in " ".join(said.split())
    assert liespline("evaluate", run.path, "--split", "valid")[0] == 0


def test_a_patch_that_cannot_be_halved(tmp_path):
    folder = discs(tmp_path / "set", 8, 36)
    assert "take a multiple of 8" in fails("train", "segment", "--data", folder, "--patch", 30)


def test_masks_of_new_files(tmp_path, segmented):
    folder = discs(tmp_path / "new", 2, 50, seed=5)
    big = np.asarray(Image.open(folder / "images" / "00.png"))
    tags = [(33550, "d", 3, (0.5, 0.5, 0.0), True)]
    tifffile.imwrite(folder / "images" / "big.tif", np.tile(big, (3, 4)), tile=(32, 32), extratags=tags)
    (folder / "images" / "notes.txt").touch()
    out = tmp_path / "out"
    said = succeeds("predict", segmented.path, folder / "images", "--out", out, "--tile", 96, "--json")
    assert "1 file is left out" in said
    assert "notes.txt" in said
    truth = np.asarray(Image.open(folder / "masks" / "00.png"))
    found = np.asarray(Image.open(out / "00.png"))
    assert 2 * (truth & found).sum() / (truth.sum() + found.sum()) > 0.8
    trained = load(segmented.path)
    whole = torch.from_numpy(np.tile(big, (3, 4)).astype(np.float32) / 255)[None, None]
    with torch.no_grad():
        expected = trained.in_tiles(whole, 1000).argmax(1)[0].numpy()
    with tifffile.TiffFile(out / "big.tif") as file:
        assert np.array_equal(file.pages[0].asarray(), expected)
        assert file.pages[0].tags[33550].value == (0.5, 0.5, 0.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--out is missing"),
        (("--out", "{out}", "{folder}/images/absent.png"), "absent.png: does not exist"),
        (("--out", "{out}", "{folder}/images/colour.tif"), "has 5 channels; the network was trained on 1"),
    ],
)
def test_what_predict_refuses(tmp_path, segmented, liespline, arguments, says):
    folder = discs(tmp_path / "new", 1, 40)
    stack = np.zeros((32, 32, 5), np.uint8)
    tifffile.imwrite(folder / "images" / "colour.tif", stack, photometric="minisblack", planarconfig="contig")
    given = [part.format(out=tmp_path / "out", folder=folder) for part in arguments]
    status, said = liespline("predict", segmented.path, folder / "images" / "00.png", *given)
    assert status
    assert says in said


def test_masks_of_a_coarser_level_have_its_size(tmp_path, segmented):
    pyramid(tmp_path / "p.tif")
    for level, size in ((0, (128, 192)), (1, (64, 96))):
        out = tmp_path / str(level)
        succeeds("predict", segmented.path, tmp_path / "p.tif", "--out", out, "--level", level)
        assert tifffile.imread(out / "p.tif").shape == size


def test_half_done_masks_are_known_by_the_network_the_side_and_the_level(tmp_path, segmented, monkeypatch):
    keys = []
    monkeypatch.setattr(
        mask_files, "segment_large", lambda source, target, network, tiling, key, told, values: keys.append(key)
    )
    monkeypatch.setattr(mask_files, "open_windows", lambda file, level: open_windows(file))  # it has one level
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((32, 32), np.uint8), tile=(16, 16))
    models = [tmp_path / name / "model.safetensors" for name in ("one", "two")]
    for second, model in enumerate(models):
        model.parent.mkdir()
        shutil.copy(segmented.model_file, model)
        os.utime(model, (second, second))  # as if one had been trained after the other

    def key(model, **options):
        list(predict_files(model, [tmp_path / "a.tif"], out=tmp_path / "out", **options))
        return keys.pop()

    first = key(models[0])
    assert key(models[0]) == first
    others = [key(models[1]), key(models[0], tile=64), key(models[0], level=1)]
    assert len({first, *others}) == 4


def test_masks_do_not_come_from_other_tasks(tmp_path, tiny_run):
    for option, says in ((("--out", tmp_path), "only masks go to a folder"), (("--tile", 64), "are for masks")):
        assert says in fails("predict", tiny_run.path, tmp_path, *option)


def test_the_network_as_a_library(segmented):
    net = liespline_package.load(segmented.path)
    shares = net.probabilities(torch.rand(1, 1, 50, 70))
    assert shares.shape == (1, 2, 50, 70)
    assert torch.allclose(shares.sum(1), torch.ones(1, 50, 70))


def test_onnx_files_say_what_comes_out_and_what_goes_in(tmp_path, segmented):
    succeeds("export", segmented.path, "--onnx", tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == ["background", "1"]
    assert about["outputs"] == "masks"
    assert "divided by the largest of their type" in about["scaling"]
    images = torch.rand(3, 1, 32, 32)
    with torch.no_grad():
        expected = load(segmented.path)(images)
    found = session.run(None, {"images": images.numpy()})[0]
    assert np.allclose(found, expected.numpy(), atol=1e-4)
