"""A DICOM series: one folder of slices as one volume, in the order and with the size that the slices state."""

from pathlib import Path
from typing import Any

import numpy as np
import pydicom

from ..arrays import Array
from ..files import DataError, decoding
from .nifti import upright
from .reading import Scan

SUFFIXES = (".dcm", ".ima")
_NEEDED = ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SeriesInstanceUID", "Rows", "Columns")
_UNEVEN = 0.02  # by how much of itself the distance of two slices may differ from the others


def slices(folder: Path) -> list[Path]:
    """The slices of a folder, by their suffix; files without one count too, as scanners write them."""
    files = sorted(entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    return [one for one in files if one.suffix.lower() in SUFFIXES or (not one.suffix and pydicom.misc.is_dicom(one))]


def read_dicom(folder: Path) -> Scan:
    """The series in `folder` as one volume (1, X, Y, Z) in the units of the modality (Hounsfield units for CT)."""
    found = [(file, _read(file)) for file in slices(folder)]
    if not found:
        raise DataError(f"{folder}: holds no DICOM slices (.dcm)")
    _check_one_series(folder, found)
    first = found[0][1]
    across, down = np.array(first.ImageOrientationPatient, float).reshape(2, 3)  # directions of a row and of a column
    normal = np.cross(across, down)
    found.sort(key=lambda entry: float(np.dot(entry[1].ImagePositionPatient, normal)))
    places = np.array([entry[1].ImagePositionPatient for entry in found], float)
    step = _slice_step(folder, found, places @ normal)
    between_rows, between_columns = (float(value) for value in first.PixelSpacing)
    affine = np.eye(4)
    affine[:3] = np.stack([down * between_rows, across * between_columns, normal * step, places[0]], 1)
    affine[:2] *= -1  # DICOM's axes point left and back, ours right and forward
    return upright(np.stack([_pixels(file, dataset) for file, dataset in found], -1), affine)


def _read(file: Path) -> Any:
    with decoding(file, "cannot be read as DICOM", "fetch it again"):
        dataset = pydicom.dcmread(file)
        missing = [name for name in _NEEDED if name not in dataset]
    if missing:
        raise DataError(f"{file}: does not state {', '.join(missing)}; a slice of a volume must")
    return dataset


def _check_one_series(folder: Path, found: list[tuple[Path, Any]]) -> None:
    problems = []
    series = {str(dataset.SeriesInstanceUID) for _, dataset in found}
    if len(series) > 1:
        problems.append(f"{folder}: holds {len(series)} series; put each one in a folder of its own")
    reference = found[0][1]
    for file, dataset in found:
        if (dataset.Rows, dataset.Columns) != (reference.Rows, reference.Columns):
            size = f"{dataset.Columns}×{dataset.Rows}"
            problems.append(f"{file}: is {size} where {found[0][0].name} is {reference.Columns}×{reference.Rows}")
        if not np.allclose(dataset.ImageOrientationPatient, reference.ImageOrientationPatient, atol=1e-3):
            problems.append(f"{file}: lies in another direction than {found[0][0].name}")
    if problems:
        raise DataError(problems)


def _slice_step(folder: Path, found: list[tuple[Path, Any]], along: Array) -> float:
    """The distance of two slices, from where they lie: the thickness that a file states is often another."""
    if len(found) == 1:
        return float(found[0][1].get("SliceThickness") or 1.0)
    steps = np.diff(along)
    usual = float(np.median(steps))
    for place in np.flatnonzero(np.abs(steps - usual) > _UNEVEN * usual):
        before, after = found[place][0].name, found[place + 1][0].name
        what = "lie in the same place" if steps[place] < 1e-3 else f"lie {steps[place]:.2f} mm apart"
        raise DataError(
            f"{folder}: {before} and {after} {what}, the others {usual:.2f} mm; a slice is missing or double"
        )
    return usual


def _pixels(file: Path, dataset: Any) -> Array:
    advice = "if they are compressed: pip install pylibjpeg pylibjpeg-libjpeg pylibjpeg-openjpeg"
    with decoding(file, "its pixels cannot be read", advice):
        values: Array = np.asarray(dataset.pixel_array)
    if values.ndim != 2:
        raise DataError(f"{file}: has pixels of shape {values.shape}; expected one grey slice")
    slope, shift = float(dataset.get("RescaleSlope", 1)), float(dataset.get("RescaleIntercept", 0))
    if slope == 1 and shift == int(shift) and values.dtype.kind in "iu":
        return (values.astype(np.int32) + int(shift)).astype(np.int32)
    return (values * slope + shift).astype(np.float32)
