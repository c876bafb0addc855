"""`wsinfer run` on a slide: its probabilities are those of the network on the same patches."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import tifffile
import torch
from wsinfer_zoo.client import validate_config_json

import liespline as ls
from liespline import models
from liespline.integrations.wsinfer import write_wsinfer

SIDE = 64
REGISTRY = Path(".wsinfer-zoo", "wsinfer-zoo-registry.json")


def slide(file: Path) -> np.ndarray:
    """Tissue-coloured noise, smooth at two scales, on white: 0.5 micrometres per pixel."""
    draw = np.random.default_rng(0)
    pixels = np.full((2048, 2048, 3), 244, np.uint8)
    coarse = draw.uniform(0, 1, (20, 20, 1)).repeat(64, 0).repeat(64, 1)
    noise = draw.normal(0, 20, (640, 640, 3)).repeat(2, 0).repeat(2, 1)
    pixels[384:1664, 384:1664] = np.clip([200, 120, 170] - 60 * coarse + noise, 0, 255)
    size = {"resolution": (20000, 20000), "resolutionunit": "CENTIMETER"}
    tifffile.imwrite(file, pixels, tile=(256, 256), photometric="rgb", **size)
    return pixels


def test_wsinfer_gives_the_probabilities_of_the_network(tmp_path: Path) -> None:
    network = models.resnet(3, 2, ls.uniform(ls.SO2(), 4), widths=(4, 6), disc=True)
    (tmp_path / "slides").mkdir()
    pixels = slide(tmp_path / "slides" / "made-up.tif")
    network(torch.from_numpy(pixels[400:1600, 400:1600]).permute(2, 0, 1).reshape(1, 3, 1200, 1200) / 255)
    network.eval()
    write_wsinfer(network, tmp_path / "net", ["normal", "tumour"], SIDE, 0.5)
    assert validate_config_json(json.loads((tmp_path / "net" / "config.json").read_text()))

    # Without a network WSInfer cannot fetch its list of models, which it wants to see even where none is asked for.
    (tmp_path / REGISTRY.parent).mkdir()
    (tmp_path / REGISTRY).write_text(json.dumps({"models": {}}))
    told = {"HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "WSINFER_FORCE_CPU": "1", "TQDM_DISABLE": "1"}
    command = [Path(sys.executable).with_name("wsinfer"), "run", "--wsi-dir", "slides", "--results-dir", "found"]
    command += ["--config", "net/config.json", "--model-path", "net/torchscript_model.pt", "--num-workers", "1"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / "found" / "model-outputs-csv" / "made-up.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 200
    corners = [(int(row["minx"]), int(row["miny"])) for row in rows]
    assert {(row["width"], row["height"]) for row in rows} == {(str(SIDE), str(SIDE))}
    patches = np.stack([pixels[y : y + SIDE, x : x + SIDE] for x, y in corners])
    with torch.no_grad():
        expected = network(torch.from_numpy(patches).permute(0, 3, 1, 2) / 255).softmax(1)
    found = torch.tensor([[float(row["prob_normal"]), float(row["prob_tumour"])] for row in rows])
    assert expected[:, 0].std() > 1e-3  # patches differ
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
