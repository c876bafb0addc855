"""Damaged files of every kind that the lab reads are refused by name; `reliability/corpus.py` tries more of them."""

import pickle
import shutil
from pathlib import Path

import pytest
import torch

from lab.damaged import DAMAGES, KINDS, Bomb, judge
from liespline.lab.runs.checkpoint import SafeCheckpoints
from liespline.lab.runs.folder import Run
from truth.shell import fails


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_by_name(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "honest").mkdir()
    KINDS[kind].make(tmp_path / "honest")
    found = {how: judge(kind, how, tmp_path / "honest", tmp_path / "damaged", 7) for how in DAMAGES}
    assert not {how: said for how, (verdict, said) in found.items() if verdict == "WRONG"}
    assert sum(verdict == "refused" for verdict, _ in found.values()) >= len(DAMAGES) // 2, "the damage is real"
    assert not list(tmp_path.rglob("CODE-HAS-RUN"))


def test_a_reader_that_takes_anything_is_noticed(tmp_path, monkeypatch):
    """And that no code ran elsewhere means something: unpickled, the file would have left its mark."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "honest").mkdir()
    KINDS["config"].make(tmp_path / "honest")
    monkeypatch.setitem(KINDS, "config", KINDS["config"]._replace(read=lambda folder: "taken"))
    assert judge("config", "pickle", tmp_path / "honest", tmp_path / "damaged", 0)[0] == "WRONG"
    pickle.loads(pickle.dumps(Bomb()))
    assert Path("CODE-HAS-RUN").exists()


CHANGES = {
    "another network": lambda state: state["state_dict"].update({"network.0.weight": torch.zeros(7)}),
    "a layer more": lambda state: state["state_dict"].update({"network.99.weight": torch.zeros(7)}),
    "a layer less": lambda state: state["state_dict"].pop("network.0.weight"),
    "no optimiser": lambda state: state.pop("optimizer_states"),
    "no loops": lambda state: state.pop("loops"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_does_not_go_on_from_the_state_of_another(tmp_path, tiny_run, change):
    run = Run(tmp_path / "run")
    shutil.copytree(tiny_run.path, run.path)
    run.results_file.unlink()
    state = SafeCheckpoints().load_checkpoint(run.last_checkpoint)
    CHANGES[change](state)
    SafeCheckpoints().save_checkpoint(state, run.last_checkpoint)
    text = fails("train", "--resume", run.path)
    assert "the checkpoint" in text
