"""Volumes of any format: the right voxel in the right place, and what is refused."""

import gzip

import nibabel
import numpy as np
import pydicom
import pytest
from scipy import ndimage

from lab.data_files import dicom_series, height_field, nifti
from liespline.lab.data import DataError
from liespline.lab.data.scans import Reading, Scan, cube_side, resample
from liespline.lab.data.scans.read import read_scan

SHAPE = (4, 5, 6)
# Axes left, down and forward, of three different sides.
OBLIQUE = np.array([[-2.0, 0, 0, 9], [0, 0, 1.5, -4], [0, -3.0, 0, 8], [0, 0, 0, 1]])


def test_nifti_is_brought_upright_whatever_the_order_of_its_axes(tmp_path):
    field = height_field(OBLIQUE, SHAPE)
    scan = read_scan(nifti(tmp_path / "a.nii.gz", field.astype(np.float32), OBLIQUE))
    assert scan.values.shape == (1, 4, 6, 5)
    assert scan.spacing == (2.0, 1.5, 3.0)
    # Right, forward and up the field grows by 1, 10 and 100 per millimetre.
    for axis, rise in enumerate((2.0 * 1, 1.5 * 10, 3.0 * 100)):
        assert np.allclose(np.diff(scan.values[0], axis=axis), rise)


def test_nifti_channels_and_scaled_integers(tmp_path):
    values = np.arange(2 * 3 * 4 * 2, dtype=np.int16).reshape(2, 3, 4, 2)
    image = nibabel.Nifti1Image(values, np.eye(4))
    image.header.set_slope_inter(0.5, 3)
    nibabel.save(image, tmp_path / "c.nii")
    stored = np.asarray(nibabel.load(tmp_path / "c.nii").dataobj)
    assert np.allclose(read_scan(tmp_path / "c.nii").values, np.moveaxis(stored, -1, 0))


def test_dicom_slices_lie_where_they_say(tmp_path):
    rows, columns, count = 3, 4, 5
    x, y, z = -4.0, 7.0, 3.0
    # In DICOM x grows to the left of the patient and y to the back: ours are the negatives.
    field = (
        -(x + 0.75 * np.arange(columns))[None, :, None]
        - 10 * (y + 0.5 * np.arange(rows))[:, None, None]
        + 100 * (z + 2.5 * np.arange(count))
    )
    dicom_series(tmp_path / "ct", np.rint(4 * field) + 1024, slope=0.25, shift=-256)
    scan = read_scan(tmp_path / "ct")
    assert scan.values.shape == (1, columns, rows, count)
    assert scan.spacing == (0.75, 0.5, 2.5)
    for axis, rise in enumerate((0.75, 5.0, 250.0)):
        assert np.allclose(np.diff(scan.values[0], axis=axis), rise)
    affine_field = height_field(scan.stored, scan.shape)
    assert np.allclose(affine_field, field)


def test_hounsfield_units_stay_whole(tmp_path):
    dicom_series(tmp_path / "ct", np.full((2, 2, 3), 1064))
    values = read_scan(tmp_path / "ct").values
    assert values.dtype == np.int32
    assert np.all(values == 40)


def without_position(file):
    dataset = pydicom.dcmread(file)
    del dataset.ImagePositionPatient
    dataset.save_as(file)


def with_slice_of_another(files, rows):
    (file,) = dicom_series(files[0].parent.with_name("other"), np.zeros((rows, 2, 1), int))
    file.rename(files[0].with_name("other.dcm"))


FAULTS = {
    "gap": (lambda files: files[2].unlink(), "5.00 mm apart, the others 2.50"),
    "double": (lambda files: files[2].with_name("copy.dcm").write_bytes(files[2].read_bytes()), "same place"),
    "series": (lambda files: with_slice_of_another(files, 2), "2 series"),
    "size": (lambda files: with_slice_of_another(files, 3), "is 2×3 where"),
    "cut": (
        lambda files: files[0].write_bytes(files[0].read_bytes()[:-3]),
        "cannot be read as DICOM|pixels cannot be read",
    ),
    "position": (lambda files: without_position(files[1]), "does not state ImagePositionPatient"),
    "empty": (lambda files: [file.unlink() for file in files], "holds no DICOM"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_series(tmp_path, fault):
    plant, says = FAULTS[fault]
    plant(dicom_series(tmp_path / "ct", np.zeros((2, 2, 6), int)))
    with pytest.raises(DataError, match=says):
        read_scan(tmp_path / "ct")


def test_arrays(tmp_path):
    values = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    np.save(tmp_path / "v.npy", values)
    assert np.array_equal(read_scan(tmp_path / "v.npy").values[0], values)
    np.savez(tmp_path / "v.npz", volume=np.stack([values, -values], -1), spacing=[2.0, 1, 1], other=values)
    scan = read_scan(tmp_path / "v.npz")
    assert scan.spacing == (2.0, 1.0, 1.0)
    assert np.array_equal(scan.values, np.stack([values, -values]))


def bad_files(folder):
    field = height_field(np.eye(4), SHAPE).astype(np.float32)
    whole = nifti(folder / "whole.nii.gz", field, np.eye(4)).read_bytes()
    (folder / "cut.nii.gz").write_bytes(whole[: len(whole) // 2])
    plain = gzip.decompress(whole)
    (folder / "short.nii").write_bytes(plain[:-100])
    nifti(folder / "nowhere.nii", field, None)
    field[1, 2, 3] = np.nan
    nifti(folder / "nan.nii.gz", field, np.eye(4))
    flat = np.diag([1.0, 1.0, 1.0, 1.0])
    nifti(folder / "line.nii", np.zeros((4, 5), np.float32), flat)
    np.save(folder / "flat.npy", np.zeros((3, 4)))
    np.savez(folder / "two.npz", a=np.zeros(SHAPE), b=np.zeros(SHAPE))
    np.savez(folder / "spacing.npz", volume=np.zeros(SHAPE), spacing=[1, 1, 0])
    np.save(folder / "objects.npy", np.array([{}, {}]), allow_pickle=True)
    (folder / "text.nii").write_text("no volume")
    return {
        "cut.nii.gz": "cannot be read as NIfTI",
        "short.nii": "cannot be read as NIfTI",
        "nowhere.nii": "has no affine",
        "nan.nii.gz": r"1 voxels are NaN or infinite, \(1, 2, 3\) first",
        "line.nii": r"has shape \(4, 5\)",
        "flat.npy": r"has shape \(3, 4\)",
        "two.npz": r"holds the arrays \['a', 'b'\]",
        "spacing.npz": "three positive numbers",
        "objects.npy": "Python objects",
        "text.nii": "cannot be read as NIfTI",
        "absent.nii": "does not exist",
    }


def test_every_bad_file_is_named_with_its_fault(tmp_path):
    for name, says in bad_files(tmp_path).items():
        with pytest.raises(DataError, match=f"{name}: .*{says}"):
            read_scan(tmp_path / name)


def test_normalisation_forgets_the_units_of_the_scanner():
    draw = np.random.default_rng(0)
    values = draw.normal(5, 2, (2, 20, 20, 20)).astype(np.float32)
    values[1] *= 1000  # each channel by itself
    values[0, 0, 0, 0] = 1e9  # one wild voxel of a channel
    out = Reading().normalised(values)
    assert np.allclose(out.mean((1, 2, 3)), 0, atol=1e-4)
    assert np.allclose(out.std((1, 2, 3)), 1, atol=1e-3)
    assert np.abs(out).max() < 4
    assert np.allclose(Reading().normalised(values * 3e5 + 7), out, atol=2e-2)
    assert np.array_equal(Reading().normalised(np.full((1, 2, 2, 2), 9, np.int16)), np.zeros((1, 2, 2, 2)))


def test_cubes_keep_the_volume_and_its_centre():
    # A straight line through the centre stays one, at every new sample inside.
    along = 4.0 * (np.arange(10) - 4.5)[:, None, None] + (np.arange(40) - 19.5)[:, None] * 10 + np.arange(40) - 19.5
    scan = Scan(along[None], (4.0, 1.0, 1.0))
    assert cube_side(scan.spacing) == pytest.approx(4 ** (1 / 3))
    found = Reading(side=2.0).on_cubes(scan, scan.values)[0]
    assert found.shape == (20, 20, 20)
    wanted = 2.0 * (np.arange(20) - 9.5)
    line = wanted[:, None, None] + 10 * wanted[:, None] + wanted
    assert np.allclose(found[2:-2, 2:-2, 2:-2], line[2:-2, 2:-2, 2:-2], atol=1e-3)
    assert not Reading(side=1.0).resamples((1.0, 1.005, 1.0))


def test_resampling_agrees_with_scipy():
    values = np.random.default_rng(1).normal(size=(1, 7, 9))
    places = np.meshgrid((np.arange(13) - 6) * 0.5 + 3, (np.arange(9) - 4) * 0.9 + 4, indexing="ij")
    assert np.allclose(
        resample(values, (13, 9), (0.5, 0.9))[0],
        ndimage.map_coordinates(values[0], places, order=1, mode="nearest"),
        atol=1e-6,
    )
    mask = np.random.default_rng(2).integers(0, 3, (1, 7, 9))
    finer = resample(mask, (21, 9), (1 / 3, 1), nearest=True)
    assert np.array_equal(finer[0], np.repeat(mask[0], 3, 0))


def test_shrinking_skips_no_voxel():
    values = np.zeros((1, 12))
    values[0, 5] = 1.0
    assert resample(values, (3,), (4.0,)).sum() == pytest.approx(0.25, abs=0.02)
