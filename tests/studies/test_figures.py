"""Figures: what they show is checked as numbers, and every file is a picture in both themes."""

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from liespline import SO2, Scale, Sphere, SplineBasis, repulsion
from studies import figures
from studies.figures import bsplines, lifting, measured, sphere, transforms
from studies.figures.style import DARK, LIGHT, in_theme, save

QUICK = ("logexp", "kernels", "turns", "zooms", "dial")


@pytest.mark.parametrize("name", QUICK)
def test_files_of_a_figure(tmp_path: Path, name: str) -> None:
    paths = list(figures.draw(name, tmp_path))
    assert sorted(p.name for p in paths) == sorted(f"{name}-{t}.{e}" for t in ("light", "dark") for e in ("svg", "png"))
    brightness = {}
    for theme in ("light", "dark"):
        picture = np.asarray(Image.open(tmp_path / f"{name}-{theme}.png").convert("L"))
        assert picture.shape[1] > 900  # 200 dots an inch over the text's width
        assert picture.std() > 5  # something is drawn
        brightness[theme] = float(np.median(picture))
        root = ElementTree.parse(tmp_path / f"{name}-{theme}.svg").getroot()
        assert root.tag.endswith("svg")
        assert "<text" not in (tmp_path / f"{name}-{theme}.svg").read_text()  # letters are paths: no fonts needed
    assert brightness["dark"] < 60 < 200 < brightness["light"]


def test_a_figure_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = (list(figures.draw("zooms", tmp_path / name)) for name in "ab")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_unknown_figure_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'nothing' is not one of lifting, .*measured"):
        list(figures.draw("nothing", tmp_path))


def test_kernels_answer_at_the_pose_of_each_face() -> None:
    turned, zoomed = lifting.prepare()
    middle = (lifting._SIZE - 1) / 2
    wanted = {(2.0, -24.0): 0.0, (-2.0, 22.0): 3 * math.pi / 4}
    for row, column, element in turned.found:
        place, angle = min(wanted.items(), key=lambda item: math.dist(item[0], (row - middle, column - middle)))
        assert math.dist(place, (row - middle, column - middle)) < 2
        assert math.isclose(SO2().log(torch.tensor([element]))[0], angle, abs_tol=1e-6)
    sizes = {(-20.0, -27.0): 1.0, (9.0, 13.0): 2.0}
    for row, column, element in zoomed.found:
        place, size = min(sizes.items(), key=lambda item: math.dist(item[0], (row - middle, column - middle)))
        assert math.dist(place, (row - middle, column - middle)) < 3
        assert math.isclose(element, size, rel_tol=1e-6)


def test_kernels_and_sets_move_together() -> None:
    """At each moved element the moved kernel has what the still one has at the still element."""
    for data, group, scale in ((transforms.prepare_turns(), SO2(), 0.0), (transforms.prepare_zooms(), Scale(2), 1.0)):
        for i in range(1, len(data.sets)):
            still, moved = data.kernels[0], data.kernels[i]
            for (x0, h0), (x1, h1) in zip(
                zip(*data.sets[0], strict=True), zip(*data.sets[i], strict=True), strict=True
            ):
                levels = [group.offset(h, data.levels).norm(dim=-1).min() for h in (h0, h1)]
                if max(levels) > 1e-6 or max(x0.abs().max(), x1.abs().max()) > transforms._HALF:
                    continue
                values = [at(k, data, group, x, h) for k, x, h in ((still, x0, h0), (moved, x1, h1))]
                # samples lie up to half a step beside the elements, which matters more for small faces
                assert abs(values[0] - values[1]) < (0.12 + 0.3 * scale) * float(still.max())


def at(kernel: torch.Tensor, data: transforms.Data, group: SO2 | Scale, x: torch.Tensor, h: torch.Tensor) -> float:
    level = int(group.offset(h, data.levels).norm(dim=-1).argmin())
    n = kernel.shape[-1]
    row, column = ((v / transforms._HALF + 1) / 2 * (n - 1) for v in x)
    return float(kernel[level, round(float(row)), round(float(column))])


def test_splines_near_a_patch_are_all_splines() -> None:
    basis = SplineBasis(repulsion(Sphere(), 60))
    coefficients = torch.randn(60, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    where = sphere.ball(40)
    picture = sphere.on_ball(where, lambda at: sphere.spline(basis, coefficients, at))
    whole = (basis(where.points) @ coefficients).numpy()
    assert np.abs(picture[where.inside.numpy()] - whole).max() < 1e-12


def test_the_camera_is_a_rotation_and_sees_its_own_points() -> None:
    eye = torch.eye(3, dtype=torch.float64)
    assert (sphere.CAMERA @ sphere.CAMERA.T - eye).abs().max() < 1e-12
    assert ((sphere.ball(30).points @ sphere.CAMERA.T)[:, 2] >= 0).all()


def test_lines_of_the_partition_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bsplines, "_COUNTS", (12,))
    monkeypatch.setattr(bsplines, "_SIZE", 48)
    data = bsplines.prepare()
    assert (data.lines[0].basis.sum(-1) - 1).abs().max() < 1e-12
    (ball,) = data.balls
    seen = data.where.inside.numpy()
    assert ball.single[seen].max() == pytest.approx(1, abs=0.02)  # a spline that faces the reader, in its full height
    with in_theme(LIGHT):
        assert len(bsplines.draw(data, LIGHT).axes) > 6


def test_strokes_and_levels_go_round_the_whole_circle() -> None:
    data = transforms.prepare_turns()
    assert sorted(round(math.degrees(a)) % 360 for a in data.levels[:, 0].tolist()) == list(range(0, 360, 45))
    outline = sorted(round(math.degrees(a) % 360, 3) % 360 for a in data.sets[0].h[:16, 0].tolist())
    assert outline == pytest.approx([22.5 * i for i in range(16)])
    assert all(float(level.max()) > 0.3 * float(data.kernels[0].max()) for level in data.kernels[0])


def test_single_splines_do_not_overlap() -> None:
    basis = SplineBasis(repulsion(Sphere(), 500))
    chosen = bsplines._apart(basis)
    assert len(chosen) > 3
    values = basis(repulsion(Sphere(), 1000).elements)[:, chosen]
    assert ((values > 0).sum(-1) <= 1).all()


def test_measured_lines_hold_what_was_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (("_WINDOWS", (5, 7)), ("_DEGREES", (1, 3)), ("_ORIENTATIONS", (4,)), ("_ANGLES", (0, 90))):
        monkeypatch.setattr(measured, name, value)
    monkeypatch.setattr(measured, "_TRAINING", 2)
    monkeypatch.setattr(measured, "_TESTED", 8)
    before = torch.random.get_rng_state()
    data = measured.prepare()
    assert torch.equal(before, torch.random.get_rng_state())
    assert data.equivariance["degree 3"][1][1] < 0.3 * data.equivariance["degree 1"][1][1]
    upright, quarter = (value for _, value in data.accuracy["SE(2), $N_h = 8$"])
    assert upright == quarter  # whatever it learned in two steps, a quarter turn changes nothing
    assert {tuple(n for n, _ in line) for line in data.seconds.values()} == {(4,)}, "each as often as asked"
    with in_theme(DARK):
        assert len(save(measured.draw(data, DARK), tmp_path, "measured")) == 2
