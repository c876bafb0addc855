"""Labels from a table, and splits that keep groups together."""

import numpy as np
import pytest

from liespline.lab.data import DataError
from liespline.lab.data.listing import assign, deal
from liespline.lab.data.table import read_table


@pytest.fixture
def folder(tmp_path):
    for name in "abcdef":
        (tmp_path / f"{name}.png").touch()
    return tmp_path


def table(folder, text, kind=None):
    path = folder / "labels.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, folder, kind)


def test_classes_splits_and_groups(folder):
    found = table(folder, "file,label,split,group\na.png,cat,train,p1\nb.png,dog,val,p2\nc.png,cat,test,p3\n")
    assert found.kind == "classes"
    assert found.labels == ("cat", "dog")
    assert found.targets.tolist() == [0, 1, 0]
    assert found.splits == ("train", "valid", "test")
    assert found.groups == ("p1", "p2", "p3")
    assert found.files[0] == folder / "a.png"


@pytest.mark.parametrize(
    ("text", "kind", "expected", "names", "targets"),
    [
        ("file,label\na.png,10\nb.png,9\n", None, "classes", ("9", "10"), [1, 0]),
        ("file;label\r\na.png;x,y\r\nb.png;z\r\n", None, "classes", ("x,y", "z"), [0, 1]),
        ("\ufefffile,sun,rain\na.png,1,0\nb.png,1,1\n", None, "tags", ("sun", "rain"), [[1, 0], [1, 1]]),
        ("file,age\na.png,1.5\nb.png,-2\n", None, "numbers", ("age",), [[1.5], [-2]]),
        ("file,age\na.png,15\nb.png,20\n", "numbers", "numbers", ("age",), [[15], [20]]),
        ("file,x,y\na.png,1.5,3\nb.png,2,1e1\n", None, "numbers", ("x", "y"), [[1.5, 3], [2, 10]]),
        ("file,split\na.png,train\nb.png,test\n", None, "classes", (), []),
    ],
)
def test_kinds(folder, text, kind, expected, names, targets):
    found = table(folder, text, kind)
    assert (found.kind, found.labels, found.targets.tolist()) == (expected, names, targets)


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("file,label\nz.png,cat\nb.png,dog\n", None, "row 2: 'z.png' does not exist in"),
        ("file,label\na.png,cat\na.png,dog\n", None, "row 3: 'a.png' is in row 2 already"),
        ("file,label\na.png,\nb.png,dog\n", None, "row 2: has no label"),
        ("file,label\n,cat\nb.png,dog\n", None, "row 2: names no file"),
        ("file,label,split\na.png,x,train\nb.png,y,holdout\n", None, "row 3: split 'holdout' is unknown"),
        (
            "file,label,split,group\na.png,x,train,p1\nb.png,y,test,p1\n",
            None,
            "group 'p1' is in train and test; put all its rows in one split",
        ),
        ("file,label,group\na.png,x,\nb.png,y,p\n", None, "row 2: has no group"),
        ("name,label\na.png,cat\n", None, "one must be named file"),
        ("file,label\n", None, "has no rows"),
        ("file,label\na.png\n", None, "row 2: has not 2 columns"),
        ("file,label\na.png,cat\nb.png,cat\n", None, "one class only"),
        ("file,x,y\na.png,2,3\nb.png,1,1\n", None, "say --label-type numbers"),
        ("file,x\na.png,1\nb.png,many\n", "numbers", "row 3: x is 'many'; expected a number"),
        ("file,x\na.png,1\nb.png,nan\n", "numbers", "row 3: x is 'nan'; expected a number"),
        ("file,x,y\na.png,1,0\nb.png,2,0\n", "tags", "row 3: x is '2'; expected 0 or 1"),
        (b"file,label\na.png,\xff\n", None, "not UTF-8"),
        ('file,label\na.png,"x\n', None, "is no table"),
    ],
)
def test_what_is_refused(folder, text, kind, says):
    with pytest.raises(DataError, match=says):
        table(folder, text, kind)


def test_many_whole_numbers_are_asked_about(folder):
    for number in range(30):
        (folder / f"{number}.png").touch()
    text = "file,age\n" + "".join(f"{number}.png,{number}\n" for number in range(30))
    with pytest.raises(DataError, match="30 different whole numbers; say --label-type numbers"):
        table(folder, text)
    assert table(folder, text, "classes").targets.tolist() == list(range(30))


def test_every_problem_is_in_one_report(folder):
    with pytest.raises(DataError) as caught:
        table(folder, "file,label,group,split\nz.png,cat,p,train\na.png,,p,test\n")
    assert len(caught.value.problems) == 3


NAMES = [f"{number}.png" for number in range(500)]
LABELS = [number % 7 < 2 for number in range(500)]


def test_names_decide_and_not_their_order():
    splits = dict(zip(NAMES, assign(NAMES, LABELS), strict=True))
    backwards = dict(zip(NAMES[::-1], assign(NAMES[::-1], LABELS[::-1]), strict=True))
    assert splits == backwards
    assert list(splits.values()) != assign(NAMES, LABELS, seed=1)


def test_tables_without_groups_have_every_class_of_three_in_every_split():
    draw = np.random.default_rng(0)
    for _ in range(50):
        counts = draw.integers(3, 40, draw.integers(2, 8))
        labels = draw.permutation(np.repeat(np.arange(len(counts)), counts))
        names = [f"{number}.png" for number in draw.permutation(len(labels))]
        splits = np.array(deal(names, labels, None, names))
        assert all(set(splits[labels == label]) == {"train", "valid", "test"} for label in range(len(counts)))


def test_too_few_groups(folder):
    with pytest.raises(DataError, match="2 groups cannot be cut into 5 parts"):
        assign(["a", "b", "c"], None, ["p", "p", "q"], folds=5)
    with pytest.raises(DataError, match="no row is of split 'valid'"):
        table(folder, "file,split\na.png,train\nb.png,test\n").rows_of("valid", ["1", "2"], 0, None)
