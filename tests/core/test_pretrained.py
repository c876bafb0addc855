"""Ready networks in folders: what comes back is the same network, bit by bit, and no other."""

import inspect
import json
import math
import sys
import types

import pytest
import torch

import liespline as ls
from liespline import models
from own_group import Triangular

pytest.importorskip("safetensors")
SHEAR = ls.MatrixGroup([[[0.0, 1.0], [0.0, 0.0]]])
SIM2 = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 2), spacing=(None, 0.5 * math.log(2)))
SO2_4 = ls.uniform(ls.SO2(), 4)
NETWORKS = {
    "SO(2)": (lambda: models.classifier(2, 3, SO2_4, widths=(2, 3, 2), n_k=3), (2, 24, 24)),
    "O(2), restricted": (
        lambda: models.resnet(1, 2, ls.uniform(ls.O2(), 8), widths=(2, 3), parameters=3000, restrict={1: SO2_4}),
        (1, 24, 24),
    ),
    "SO(3), one window per axis": (
        lambda: models.unet(1, 2, ls.uniform(ls.SO3(), 12), widths=(2, 2), kernel_size=(3, 3, 3), kernel="deformable"),
        (1, 8, 8, 8),
    ),
    "SIM(2)": (lambda: models.unet(1, 2, SIM2, widths=(2, 2), kernel="local"), (1, 16, 16)),
    "MatrixGroup": (
        lambda: models.unet(1, 2, ls.local(SHEAR, 3, 0.1 + 0.2), widths=(2, 2), kernel="local"),
        (1, 16, 16),
    ),
    "axial": (lambda: models.unet(1, 1, ls.uniform(ls.Axial(ls.SO2()), 4), widths=(2,), kernel_size=3), (1, 6, 6, 6)),
    "trivial": (lambda: models.unet(1, 1, ls.uniform(ls.Trivial(2), 1), widths=(2, 2)), (1, 16, 16)),
    "broken": (lambda: models.classifier(1, 2, SO2_4, widths=(2, 2), breaking=True), (1, 16, 16)),
    "PCam": (lambda: models.pcam(4, 4, "local", kernel_size=7), (3, 88, 88)),
    "CelebA": (lambda: models.celeba(2, 1, "local", in_channels=1), (1, 16, 16)),
}


@pytest.mark.filterwarnings("ignore:.*of a basis function's energy")  # the paper's windows
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_network_comes_back_bit_by_bit(name, dtype, tmp_path) -> None:
    make, shape = NETWORKS[name]
    network = make().to(dtype)
    x = torch.randn(2, *shape, dtype=dtype)
    network.train()(x)  # so that running statistics are not those of a new network
    network.eval().save_pretrained(tmp_path / "net")
    back = models.from_pretrained(tmp_path / "net")
    own, other = network.state_dict(), back.state_dict()
    assert own.keys() == other.keys()
    assert all(torch.equal(own[key], other[key]) and own[key].dtype == other[key].dtype for key in own)
    grids = [[m.out_grid for m in net.modules() if isinstance(m, ls.Lift | ls.GConv)] for net in (network, back)]
    assert grids[0] == grids[1]  # grids are equal where every bit of their elements is
    with torch.no_grad():
        assert torch.equal(network(x), back(x))
    name, arguments = back.recipe
    assert arguments.keys() == inspect.signature(getattr(models, name)).parameters.keys()  # defaults may change


def test_orientations_travel_with_the_parameters(tmp_path) -> None:
    models.unet(1, 1, SO2_4, widths=(2,), kernel="local").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    eight = models.unet(1, 1, ls.uniform(ls.SO2(), 8), widths=(2,), kernel="local")
    eight.save_pretrained(tmp_path / "eight")
    config["arguments"]["grid"] = json.loads((tmp_path / "eight" / "config.json").read_text())["arguments"]["grid"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"splines on H of width 1\.571, and here they have width 0\.7854"):
        models.from_pretrained(tmp_path)


def test_what_could_not_be_loaded_is_not_saved(tmp_path) -> None:
    network = models.unet(1, 1, SO2_4, widths=(2,))
    with pytest.raises(ValueError, match=r"models\.unet of its arguments cannot load it"):
        ls.export(network).save_pretrained(tmp_path / "plain")
    grid = ls.local(Triangular(), 7, 0.3)
    with pytest.raises(ValueError, match=r"Triangular.* is no group of liespline"):
        models.unet(1, 1, grid, widths=(2,), kernel="local").save_pretrained(tmp_path / "own")
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "system"}, "model 'system': this liespline has"),
        ({"arguments": {"in_channels": 1, "out_channels": 1, "grid": {"group": "Mind", "arguments": []}}}, "'Mind'"),
        ({"arguments": {}}, "missing"),
        ({"run": {}}, "say liespline.load"),
    ],
)
def test_what_is_no_network_is_refused(change, words, tmp_path) -> None:
    models.unet(1, 1, SO2_4, widths=(2,)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ValueError, match=words):
        models.from_pretrained(tmp_path)


def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # importing it fails
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for gone in ("net", tmp_path / "net", "runs/net"):
        with pytest.raises(ValueError, match="No such file"):
            models.from_pretrained(gone)
    with pytest.raises(ImportError, match=r"liespline\[hub\]"):
        models.from_pretrained("someone/net")


def test_a_network_goes_to_the_hub_and_back(tmp_path, monkeypatch) -> None:
    kept = tmp_path / "hub"

    def upload(repo_id: str, folder_path: str, commit_message: str) -> None:
        models.from_pretrained(folder_path).save_pretrained(kept, name=repo_id, license="mit", data="made up")

    calls = types.ModuleType("huggingface_hub")
    calls.create_repo = lambda repo_id, private, exist_ok: f"https://hub/{repo_id}"
    calls.upload_folder = upload
    calls.snapshot_download = lambda repo_id, allow_patterns: str(kept)
    monkeypatch.setitem(sys.modules, "huggingface_hub", calls)
    monkeypatch.chdir(tmp_path)
    network = models.unet(1, 1, SO2_4, widths=(2,)).eval()
    assert network.push_to_hub("someone/net") == "https://hub/someone/net"
    x = torch.randn(1, 1, 8, 8)
    with torch.no_grad():
        assert torch.equal(models.from_pretrained("someone/net")(x), network(x))


def test_the_card_says_scores_data_licence_and_symmetry(tmp_path) -> None:
    network = models.unet(1, 1, ls.uniform(ls.O2(), 8), widths=(2,))
    network.save_pretrained(tmp_path / "net", scores={"Dice": 0.5}, data="30 slides", license="cc0-1.0", name="me/net")
    card = (tmp_path / "net" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: liespline\nlicense: cc0-1.0\n")
    count = sum(parameter.numel() for parameter in network.parameters())
    for words in ("# me/net", "| Dice | 0.5 |", "30 slides", "Grid(O2(), 8 elements", f"{count} parameters"):
        assert words in card
    assert "models.from_pretrained('me/net')" in card
    assert "biases" not in card
    models.unet(1, 1, SO2_4, widths=(2,), breaking=True).save_pretrained(tmp_path / "broken")
    assert "but for learned biases" in (tmp_path / "broken" / "README.md").read_text()
