"""The line that is kept of a run, image by image: its scores come out of it again, with what the files say beside."""

import base64
import hashlib
import json
import zlib

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, roc_auc_score
from torch import tensor

from liespline.lab.evaluation.evaluate import pack, pack_classes, unpack
from liespline.lab.runs.folder import Run
from liespline.lab.runs.line import line_of
from truth.road import Array, Road
from truth.test_segmentation import dice, predicted

KINDS = {"true": "<u2", "predicted": "<u2", "log_odds": "<f2", "found": "<f2", "dice": "<f4"}


def kept(road: Road) -> tuple[dict, dict[str, Array]]:
    """The results in the line of a run, and the arrays in them, by other means than the package's."""
    line = json.loads(json.dumps(line_of(Run(road.run), "study")))["results"]
    raw = {name: value for name, value in line["per_image"].items() if name != "names_hash"}
    return line, {k: np.frombuffer(zlib.decompress(base64.b64decode(v)), KINDS[k]) for k, v in raw.items()}


@pytest.mark.parametrize("kind", ["folders", "classes", "volumes"])
def test_scores_of_classes_come_out_of_the_line_alone(kind, request):
    road = request.getfixturevalue(kind)
    line, each = kept(road)
    true, predicted, count = each["true"], each["predicted"], len(line["confusion"])
    assert confusion_matrix(true, predicted, labels=range(count)).tolist() == line["confusion"]
    assert accuracy_score(true, predicted) == pytest.approx(line["scores"]["accuracy"], abs=1e-6)
    assert balanced_accuracy_score(true, predicted) == pytest.approx(line["scores"]["balanced_accuracy"], abs=1e-6)
    if count == 2:
        of_second = each["log_odds"] * np.where(true == 1, 1.0, -1.0)
        assert roc_auc_score(true, of_second) == pytest.approx(line["scores"]["auc"], abs=1e-6)
        assert ((of_second > 0) == predicted).all()
    names, classes = road.split("test"), road.classes()
    assert [classes[number] for number in true] == [road.truth[name] for name in names]
    p = np.exp(log_softmax(road.outputs(names).astype(float), 1)[np.arange(len(names)), true])
    assert 1 / (1 + np.exp(-each["log_odds"].astype(float))) == pytest.approx(p, abs=1e-3)
    held = list(json.loads((road.run / "data.json").read_text())["splits"]["test"])
    fingerprint = hashlib.blake2b(json.dumps(held).encode(), digest_size=5).hexdigest()
    assert line["per_image"]["names_hash"] == fingerprint
    assert pack(held[::-1])["names_hash"] != fingerprint, "the order counts"


@pytest.mark.parametrize("kind", ["masks", "scans"])
def test_dice_of_each_image(kind, request, tmp_path):
    road = request.getfixturevalue(kind)
    line, each = kept(road)
    names = road.split("test")
    pairs = zip(predicted(road, names, tmp_path), (road.truth[name] for name in names), strict=True)
    assert each["dice"] == pytest.approx([dice(*both) for both in pairs], abs=1e-6)
    assert each["dice"].mean() == pytest.approx(line["scores"]["dice_per_image"], abs=1e-6)


def test_the_share_of_landmarks_found_in_each_image(points):
    line, each = kept(points)
    assert each["found"] == pytest.approx(points.hits(points.split("test")).mean(1), abs=1e-3)
    assert each["found"].mean() == pytest.approx(line["scores"]["success"], abs=1e-3)


def test_sure_answers_are_still_told_apart():
    """Probabilities of 1 − e⁻¹² and 1 − e⁻¹³ are both 1 as a float16; outputs may be larger than any float16."""
    logits = tensor([[0.0, 12.0], [0.0, 13.0], [0.0, 1e9], [2.0, 2.0]])
    found = unpack(pack_classes("abcd", logits, tensor([1, 0, 1, 1])))
    assert found["log_odds"].tolist() == [12, -13, 65504, 0]
    assert found["predicted"].tolist() == [1, 1, 1, 0]
