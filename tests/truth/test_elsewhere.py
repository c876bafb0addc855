"""An exported network where nothing of ours is: the script of the docs, and what the file says of its images."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from liespline.lab import load
from liespline.lab.evaluation.onnx_file import about
from truth.new_images import rows_of, shares
from truth.road import liespline

DOCS = Path(__file__).parents[2] / "docs" / "guide" / "deployment.md"


def the_script():
    """The block of the docs that uses an ONNX file, which imports nothing of ours."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    (script,) = (block for block in blocks if "onnxruntime.InferenceSession" in block)
    tree = list(ast.walk(ast.parse(script)))
    names = {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in tree if isinstance(node, ast.ImportFrom)}
    assert names == {"json", "pathlib", "numpy", "onnxruntime", "PIL"}
    return script


@pytest.mark.parametrize("network", ["colour", "grey"])
@pytest.mark.parametrize("data", ["deep", "shallow"])
def test_the_script_of_the_docs_reproduces_predict(mixed, network, data, tmp_path, monkeypatch):
    """Mixed sizes, EXIF orientations, transparency, palettes, 16-bit grey; colours for grey and grey for colours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells").symlink_to(mixed / data)
    liespline("export", mixed / network, "--onnx", "cells.onnx")
    liespline("predict", mixed / network, "cells", "--out", "a.csv")
    names = {}
    exec(the_script(), names)
    found = dict(zip(map(str, names["files"]), names["probabilities"], strict=True))
    rows = rows_of("a.csv")
    assert len(rows) == len(found) >= 20
    for row in rows:
        np.testing.assert_allclose(found[row["image"]], shares(row), atol=1e-4, err_msg=row["image"])
        assert names["classes"][found[row["image"]].argmax()] == row["class"]


def test_the_metadata_say_all_of_it(mixed, spots, balls, tmp_path):
    liespline("export", mixed / "colour", "--onnx", tmp_path / "net.onnx")
    colour = onnxruntime.InferenceSession(str(tmp_path / "net.onnx")).get_modelmeta().custom_metadata_map
    runs = (mixed / "grey", spots / "run", balls / "windowed", balls / "by-itself")
    grey, plain, windowed, alone = (about(load(run)) for run in runs)
    assert (colour["largest"], grey["largest"]) == ("65535", "255")
    assert json.loads(colour["resize"])["shorter_side"] == 17
    assert {"filter": "bicubic", "antialias": True}.items() <= json.loads(grey["resize"]).items()
    assert "white" in colour["background"]
    assert "EXIF" in colour["orientation"]
    assert json.loads(grey["grey"]) == [0.299, 0.587, 0.114]
    assert "grey" not in colour
    assert "resize" not in plain
    for found, run in ((colour, mixed / "colour"), (plain, spots / "run")):
        known = json.loads(found["training_range"])
        assert known == json.loads((run / "data.json").read_text())["value_range"]
    assert json.loads(windowed["intensity_range"]) == [-1000, 1000]
    assert json.loads(alone["percentiles"]) == [0.5, 99.5]
    for found in (windowed, alone):
        assert float(found["spacing_mm"]) == pytest.approx(1.5 ** (1 / 3), abs=1e-3)
        assert "lowest value" in found["box"]
        assert "RAS" in found["axes"]
    assert "training_range" not in alone
