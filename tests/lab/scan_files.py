"""Volumes written as scanners and other programs write them."""

from pathlib import Path

import nibabel
import numpy as np
import pydicom
from pydicom.dataset import FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid


def height_field(affine, shape):
    """What is measured at each voxel: a number that tells where in the patient it lies, x + 10 y + 100 z in mm."""
    voxels = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    return (voxels @ affine[:3, :3].T + affine[:3, 3]) @ np.array([1.0, 10.0, 100.0])


def nifti(path: Path, values, affine) -> Path:
    """A file with this affine; None leaves it out, as converters of old formats do."""
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return path


def dicom_series(folder: Path, values, *, step=2.5, spacing=(0.5, 0.75), origin=(-4.0, 7.0, 3.0), slope=1, shift=-1024):
    """Axial slices (rows, columns, slices) with file names in another order than the slices lie."""
    folder.mkdir(parents=True, exist_ok=True)
    series, files = generate_uid(), []
    for i in range(values.shape[-1]):
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID = CTImageStorage, ExplicitVRLittleEndian
        meta.MediaStorageSOPInstanceUID = generate_uid()
        dataset = pydicom.Dataset()
        dataset.file_meta = meta
        dataset.SOPClassUID, dataset.SOPInstanceUID = CTImageStorage, meta.MediaStorageSOPInstanceUID
        dataset.SeriesInstanceUID, dataset.Modality = series, "CT"
        dataset.Rows, dataset.Columns = values.shape[:2]
        dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
        dataset.BitsAllocated = dataset.BitsStored = 16
        dataset.HighBit, dataset.PixelRepresentation = 15, 1
        dataset.PixelSpacing = list(spacing)  # between rows, between columns
        dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        dataset.ImagePositionPatient = [origin[0], origin[1], origin[2] + step * i]
        dataset.RescaleSlope, dataset.RescaleIntercept = slope, shift
        dataset.PixelData = np.ascontiguousarray(values[..., i]).astype("<i2").tobytes()
        file = folder / f"{(37 * i) % 100:03d}.dcm"
        dataset.save_as(file, enforce_file_format=True)
        files.append(file)
    return files
