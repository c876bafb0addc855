"""Labels from a table: what is refused before training, and every score against scikit-learn, from the files.

Tables are not sorted, classes are uneven, and the last batch of validation and test is not full.
"""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    mean_absolute_error,
    r2_score,
    recall_score,
    roc_auc_score,
)

from liespline.lab import load
from liespline.lab.tasks.columns import MeanOver, areas, areas_of_classes, f1s, r2s
from liespline.lab.tasks.objectives import Tags
from truth.conftest import write_table
from truth.road import ended
from truth.shell import fails, succeeds

SMALL = "--elements 2 --set widths=2,2 --kernel dense --epochs 2 --batch-size 8 --accelerator cpu".split()
SMALL += ["--quiet"]


def blobs(root, count, seed=0):
    """Images of one blob, of the size and brightness that are returned, named in another order than drawn."""
    draw = np.random.default_rng(seed)
    (root / "pictures").mkdir(parents=True)
    y, x = np.mgrid[:14, :17]
    made = []
    for i in range(count):
        size, light = draw.uniform(1.5, 4), draw.uniform(60, 220)
        cy, cx = draw.uniform(5, 9), draw.uniform(6, 11)
        image = light * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (2 * size**2)) + draw.normal(0, 4, (14, 17))
        name = f"pictures/{(7 * i) % 97:02}.png"
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(root / name)
        made.append({"file": name, "size": size, "light": light, "i": i})
    return made


def table(root, rows, **columns):
    """A table of these rows, in the order they have here; columns are functions of a row."""
    values = ([row["file"], *(column(row) for column in columns.values())] for row in rows)
    return write_table(root / "labels.csv", ["file", *columns], values)


def thirds(row):
    """A split: more than a batch of 8 to validate and to test, not a multiple of it."""
    return "train" if row["i"] % 5 < 3 else ("valid", "test")[row["i"] % 5 - 3]


def train(status, root, labels, *more, out="run"):
    """What is said of a run that ends with this status, and its folder."""
    run = root / out
    said = ended(status, "train", "images", "--data", root, "--labels", labels, "--out", run, *SMALL, *more)
    return "".join(said), run


def logits(run, root, rows):
    """What a trained network says about images, read from their files by numpy."""
    images = torch.stack([torch.tensor(np.asarray(Image.open(root / row["file"])))[None] for row in rows])
    with torch.no_grad():
        return load(run)(images).double().numpy()


def results(run):
    return json.loads((run / "results.json").read_text())


@pytest.mark.parametrize("without", ["train", "valid"])
def test_a_class_without_an_image_is_refused_before_training(without, tmp_path):
    rows = blobs(tmp_path, 30)

    def label(row):
        return "cat" if row["i"] % 3 else "newt" if thirds(row) != without else "dog"

    labels = table(tmp_path, rows, split=thirds, label=label)
    said, run = train(2, tmp_path, labels)
    assert f"{labels}: class 'newt' has no image in {without}; every class needs some in train and in valid" in said
    assert not run.exists()
    fails("data", "check", "images", tmp_path, "--labels", labels)
    if without == "valid":  # none is picked by them, and they are learned too
        train(0, tmp_path, labels, "--set", "train_on_val=true")


def test_dealt_splits_are_looked_at_too(tmp_path):
    """Two patients have all newts: three splits cannot have some each."""
    rows = blobs(tmp_path, 40)

    def group(row):
        return f"p{row['i'] % 2}" if row["i"] < 6 else f"q{row['i']}"

    labels = table(tmp_path, rows, label=lambda row: "newt" if row["i"] < 6 else f"cat{row['i'] % 2}", group=group)
    said, run = train(2, tmp_path, labels)
    assert "class 'newt' has no image in " in said
    assert not run.exists()


def test_a_file_that_says_all_splits_is_looked_at_too(tmp_path):
    arrays = {}
    for split, classes in (("train", 3), ("val", 2), ("test", 3)):
        labels = np.arange(12) % classes
        arrays |= {f"{split}_images": np.random.default_rng(0).integers(0, 255, (12, 6, 6, 6), np.uint8)}
        arrays |= {f"{split}_labels": labels[:, None]}
    np.savez(tmp_path / "v.npz", **arrays)
    said = fails("train", "volumes", "--data", tmp_path / "v.npz", "--out", tmp_path / "run")
    assert "class '2' has no image in valid" in said


@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_that_only_the_test_lacks_is_named(classes, tmp_path):
    rows = blobs(tmp_path, 60)

    def label(row):
        number = row["i"] % classes
        return ["cat", "dog", "newt"][number - 1 if thirds(row) == "test" and number == classes - 1 else number]

    gone = ["cat", "dog", "newt"][classes - 1]
    labels = table(tmp_path, rows, split=thirds, label=label)
    said, run = train(0, tmp_path, labels)
    found = results(run)
    assert "auc" not in found["scores"]
    assert gone in found["undefined"]["auc"]
    assert found["undefined"]["sensitivity"] == [gone]
    assert f"area under the ROC curve, undefined here and left out │ {'cat, dog' if classes == 2 else gone}" in said
    assert "undefined here and left out" in (run / "report.html").read_text()
    tested = [row for row in rows if thirds(row) == "test"]
    truth = np.array([["cat", "dog", "newt"].index(label(row)) for row in tested])
    answer = logits(run, tmp_path, tested).argmax(1)
    known = recall_score(truth, answer, labels=sorted(set(truth)), average=None, zero_division=np.nan)
    assert found["scores"]["balanced_accuracy"] == pytest.approx(known.mean())
    said = succeeds("evaluate", run, "--split", "valid", "--json")
    assert json.loads(said)["undefined"] == {}


def test_every_score_of_classes_is_scikit_learns(tmp_path):
    rows = blobs(tmp_path, 71)
    names = ["ant", "bee", "cow"]

    def label(row):
        return names[min(2, int(row["size"] - 1.5))]

    _, run = train(0, tmp_path, table(tmp_path, rows, label=label, split=thirds))
    tested = [row for row in rows if thirds(row) == "test"]
    truth, output = np.array([names.index(label(row)) for row in tested]), logits(run, tmp_path, tested)
    found = results(run)
    shares = np.exp(output) / np.exp(output).sum(1, keepdims=True)
    areas = roc_auc_score(truth, shares, multi_class="ovr", average=None)
    recalls = recall_score(truth, output.argmax(1), average=None, zero_division=0)
    for place, name in enumerate(names):
        assert found["per_class"][name] == pytest.approx({"auc": areas[place], "sensitivity": recalls[place]})
    assert found["scores"]["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, output.argmax(1)))
    assert found["undefined"] == {}


TAGS = {
    "dim": lambda row: int(row["light"] < 130),
    "large": lambda row: int(row["size"] > 3.2),
    "lost": lambda row: int(thirds(row) == "train" and row["i"] % 2),  # never in validation and test
    "always": lambda row: int(thirds(row) != "train" or row["i"] % 3 > 0),
}


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    root = tmp_path_factory.mktemp("tagged")
    return root, blobs(root, 63)


def truth_of(rows, names=TAGS):
    return np.array([[TAGS[name](row) for name in names] for row in rows])


def test_tags_without_both_values_are_left_out_and_named(tagged, tmp_path):
    root, rows = tagged
    labels = table(root, rows, split=thirds, **TAGS)
    said, run = train(0, root, labels, "--label-type", "tags", out=tmp_path / "run")
    assert "in all images of valid or in none: lost, always; AUC is the mean over the others" in said
    assert "in all images of train" not in said
    tested = [row for row in rows if thirds(row) == "test"]
    truth, output = truth_of(tested), logits(run, root, tested)
    found = results(run)
    each = [roc_auc_score(truth[:, i], output[:, i]) for i in (0, 1)]
    assert found["scores"]["auc"] == pytest.approx(np.mean(each), abs=1e-6)
    assert found["undefined"]["auc"] == ["lost", "always"]
    score = f1_score(truth, output > 0, average="macro", zero_division=np.nan)
    assert found["scores"]["f1"] == pytest.approx(score)
    for place, name in enumerate(TAGS):
        known = {"auc": each[place]} if place < 2 else {}
        f1 = f1_score(truth[:, place], output[:, place] > 0, zero_division=np.nan)
        assert found["per_tag"][name] == pytest.approx(known | ({} if np.isnan(f1) else {"f1": f1}), abs=1e-6)
    assert "area under the ROC curve, undefined here and left out │ lost, always" in said
    assert "area under the ROC curve, large" in said
    assert "undefined here and left out" in (run / "report.html").read_text()
    said = succeeds("evaluate", run, "--json")
    assert json.loads(said)["per_tag"] == found["per_tag"]


def test_tags_of_which_none_has_both_values_in_validation_are_refused(tagged, tmp_path):
    root, rows = tagged
    labels = table(root, rows, split=thirds, lost=TAGS["lost"], always=TAGS["always"])
    said, run = train(2, root, labels, out=tmp_path / "run")
    assert f"{labels}: no tag is in some images of valid and not in others; AUC needs one that is" in said
    assert not run.exists()


def test_every_number_has_scores_of_its_own(tagged, tmp_path):
    root, rows = tagged
    columns = {
        "light": lambda row: f"{row['light']:.2f}",
        "size": lambda row: f"{row['size']:.3f}",
        "plate": lambda row: "2.5" if thirds(row) != "train" else f"{row['i'] / 2}",  # one value in validation and test
    }
    said, run = train(0, root, table(root, rows, split=thirds, **columns), out=tmp_path / "run")
    assert "the same for all images of valid: plate; R² is the mean over the others" in said
    tested, found = [row for row in rows if thirds(row) == "test"], results(run)
    truth = np.array([[float(column(row)) for column in columns.values()] for row in tested])
    output = logits(run, root, tested)
    each = r2_score(truth, output, multioutput="raw_values")
    far = mean_absolute_error(truth, output, multioutput="raw_values")
    assert found["scores"]["r2"] == pytest.approx(each[:2].mean(), rel=1e-4)
    assert found["undefined"] == {"r2": ["plate"]}
    for place, name in enumerate(columns):
        known = {"mean_absolute_error": far[place]} | ({"r2": each[place]} if place < 2 else {})
        assert found["per_column"][name] == pytest.approx(known, rel=1e-4)
    assert "R², size" in said
    alike = table(root, rows, split=thirds, light=columns["light"], plate=lambda row: "2.5")
    said, _ = train(2, root, alike, out=tmp_path / "no")
    assert "the same for all images of train: plate; nothing can be fitted there: leave it out" in said


def test_areas_are_scikit_learns_with_ties_and_certainty():
    """Also where probabilities of float32 are all 1, and where outputs share values."""
    draw = torch.Generator().manual_seed(3)
    target = torch.randint(0, 2, (101, 4), generator=draw)
    output = (3 * torch.randn(101, 4, generator=draw) + target).round() + 40
    output[:, 3] += 0.25 * torch.arange(101)
    known = roc_auc_score(target, output, average=None)
    assert areas(output, target).tolist() == pytest.approx(known.tolist())
    labels = torch.randint(0, 3, (101,), generator=draw)
    logits = 2 * torch.randn(101, 3, generator=draw) + torch.nn.functional.one_hot(labels, 3)
    ovr = roc_auc_score(labels, logits.double().softmax(-1), multi_class="ovr", average=None)
    assert areas_of_classes(logits, labels).tolist() == pytest.approx(ovr.tolist())
    sure = torch.tensor([[0.0, 30.0], [0.0, 35.0], [0.0, 32.0], [0.0, 33.0]])
    assert areas_of_classes(sure, torch.tensor([0, 1, 0, 1])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("score", "known"), [(areas, roc_auc_score), (f1s, f1_score), (r2s, r2_score)])
def test_a_mean_of_batches_is_that_of_all_and_of_what_is_defined(score, known):
    draw = torch.Generator().manual_seed(1)
    target = torch.randint(0, 2, (45, 3), generator=draw)
    target[:, 1] = 0
    output = torch.randn(45, 3, generator=draw)
    output[:, 1] = -1.0
    counter = MeanOver(score)
    for start in range(0, 45, 16):
        counter.update(output[start : start + 16], target[start : start + 16])
    guess = output > 0 if score is f1s else output
    expected = np.mean([known(target[:, i], guess[:, i]) for i in (0, 2)])
    assert float(counter.compute()) == pytest.approx(expected)


def test_scores_that_share_what_they_keep_stay_apart():
    """torchmetrics lets counters of equal states share them."""
    draw = torch.Generator().manual_seed(1)
    scores = Tags(("a", "b")).scores().clone(prefix="valid_")
    for _ in range(2):
        scores.reset()
        target, output = torch.randint(0, 2, (40, 2), generator=draw), torch.randn(40, 2, generator=draw)
        for start in range(0, 40, 16):
            scores.update(output[start : start + 16], target[start : start + 16])
        found = {name: float(value) for name, value in scores.compute().items()}
        f1 = f1_score(target, output > 0, average="macro")
        assert found == pytest.approx({"valid_auc": roc_auc_score(target, output), "valid_f1": f1})
