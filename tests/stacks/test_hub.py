"""Our calls and cards by huggingface_hub's own rules, without its servers."""

from pathlib import Path
from unittest import mock

import huggingface_hub
import pytest
import torch

import liespline as ls
from liespline import models


def test_calls_are_those_of_the_package_and_the_card_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {}

    def upload(*, repo_id: str, folder_path: str, **options: object) -> None:
        kept[repo_id] = {file.name: file.read_bytes() for file in Path(folder_path).iterdir()}

    def fetch(repo_id: str, **options: object) -> str:
        for name, content in kept[repo_id].items():
            (tmp_path / name).write_bytes(content)
        return str(tmp_path)

    calls = {"create_repo": None, "upload_folder": upload, "snapshot_download": fetch}
    for name, effect in calls.items():  # a call with an argument that the package does not have raises TypeError
        fake = mock.create_autospec(getattr(huggingface_hub, name), side_effect=effect)
        monkeypatch.setattr(huggingface_hub, name, fake)
    network = models.unet(1, 2, ls.uniform(ls.SO2(), 4), widths=(2, 3)).eval()
    network.push_to_hub("someone/nuclei", license="mit", scores={"Dice": 0.5})
    huggingface_hub.create_repo.assert_called_once_with("someone/nuclei", private=False, exist_ok=True)
    back = models.from_pretrained("someone/nuclei")
    x = torch.rand(1, 1, 16, 16)
    with torch.no_grad():
        assert torch.equal(back(x), network(x))
    card = huggingface_hub.ModelCard.load(tmp_path / "README.md")
    assert card.data.license == "mit"
    assert card.data.library_name == "liespline"
    assert "equivariance" in card.data.tags


def test_a_name_that_is_not_there_is_said_by_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(Exception, match=r"(?i)offline|cannot find|not found|connection"):
        models.from_pretrained("someone/nothing")
