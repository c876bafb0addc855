"""Data as users and scanners have them: scans, pictures with masks, handwriting, faces, matrices of groups."""

import csv
import gzip
import struct
from pathlib import Path

import nibabel
import numpy as np
import pydicom
from PIL import Image
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


PLACE = np.array([2.0, -1.0, 3.0])  # of a blob in the patient, in mm from the middle: right, back, up
CT = (-1000.0, 1000.0)


def blob(points, place=PLACE, width=4.0):
    """Hounsfield units at points (..., 3) in mm."""
    return -1000 + 1500 * np.exp(-((points - place) ** 2).sum(-1) / (2 * width**2))


def places(shape, affine):
    """Where the voxels lie, in mm from the middle of the volume."""
    voxels = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    points = voxels @ affine[:3, :3].T
    return points - points.reshape(-1, 3).mean(0)


def blob_nifti(path, shape, affine, dtype=np.int16, **how):
    return nifti(path, np.rint(blob(places(shape, affine), **how)).astype(dtype), affine)


def blob_dicom(folder, shape, step, spacing, **how):
    """Axial slices (rows, columns, slices): DICOM's x points left and its y back."""
    affine = np.diag([1.0, 1.0, 1.0, 1.0])
    affine[:3, :3] = np.array([[0, -spacing[1], 0], [-spacing[0], 0, 0], [0, 0, step]])
    return dicom_series(
        folder, np.rint(blob(places(shape, affine), **how)) + 1024, step=step, spacing=spacing, shift=-1024
    )


def discs(root: Path, count: int = 14, side: int = 40, seed: int = 0) -> Path:
    draw = np.random.default_rng(seed)
    for part in ("images", "masks"):
        (root / part).mkdir(parents=True, exist_ok=True)
    for i in range(count):
        size = (side, side + 8 * (i % 2))
        y, x = np.mgrid[: size[0], : size[1]]
        mask = np.zeros(size, bool)
        for _ in range(3):
            cy, cx = draw.uniform(6, size[0] - 6), draw.uniform(6, size[1] - 6)
            mask |= (y - cy) ** 2 + (x - cx) ** 2 < draw.uniform(3, 7) ** 2
        image = 60 + 120 * mask + draw.normal(0, 15, size)
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(root / "images" / f"{i:02}.png")
        Image.fromarray(mask.astype(np.uint8)).save(root / "masks" / f"{i:02}.png")
    return root


RNG = np.random.default_rng(0)


def idx(array: np.ndarray) -> bytes:
    return b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def small_mnist(path: Path, train: int = 60, test: int = 12) -> dict[str, np.ndarray]:
    arrays = {}
    for name, count in (("train", train), ("t10k", test)):
        arrays[f"{name}-images-idx3-ubyte"] = RNG.integers(0, 256, (count, 28, 28), np.uint8)
        arrays[f"{name}-labels-idx1-ubyte"] = RNG.integers(0, 10, count).astype(np.uint8)
    for name, array in arrays.items():
        (path / f"{name}.gz").write_bytes(gzip.compress(idx(array), 1))
    return arrays


def same_sets(found, expected):
    """Whether two sets of matrices are equal, whatever their order."""
    found, expected = (np.asarray(m, dtype=float).reshape(len(m), -1) for m in (found, expected))
    distance = np.abs(found[:, None] - expected[None]).max(-1)
    return found.shape == expected.shape and bool((distance.min(0) < 1e-9).all() and (distance.min(1) < 1e-9).all())


LIST, WHO = "list_landmarks_celeba.txt", "identity_CelebA.txt"
POINTS = ("lefteye", "righteye", "nose", "leftmouth", "rightmouth")
HEADER = " ".join(f"{point}_{axis}" for point in POINTS for axis in "xy")


class Official:
    """A tiny official folder in which every image shows red dots where the landmarks are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "img_celeba").mkdir(parents=True)
        self.rows: list[tuple[str, list[int], int, tuple[int, int]]] = []

    def add(self, name: str, eyes: int, identity: int, size: tuple[int, int] = (200, 300)) -> None:
        x, y = size[0] // 2, size[1] // 2
        left = x - eyes // 2
        points = [left, y, left + eyes, y, x, y + 20, x - 15, y + 40, x + 15, y + 40]
        pixels = np.zeros((size[1], size[0], 3), np.uint8)
        pixels[..., 2] = 80
        for px, py in np.reshape(points, (5, 2)):
            pixels[py - 4 : py + 5, px - 4 : px + 5] = (255, 0, 0)
        Image.fromarray(pixels).save(self.folder / "img_celeba" / name, quality=95)
        self.rows.append((name, points, identity, size))

    def write(self) -> Path:
        listing = "".join(f"{name} {' '.join(map(str, points))}\n" for name, points, _, _ in self.rows)
        (self.folder / "list_landmarks_celeba.txt").write_text(f"{len(self.rows)}\n{HEADER}\n{listing}")
        identities = "".join(f"{name} {identity}\n" for name, _, identity, _ in self.rows)
        (self.folder / "identity_CelebA.txt").write_text(identities)
        return self.folder


def official(folder: Path, people: int = 10) -> Path:
    """Each person has two small faces, one large one; person 1 has small ones only."""
    source = Official(folder)
    for person in range(1, people + 1):
        source.add(f"{person:03d}a.jpg", 30, person)
        source.add(f"{person:03d}b.jpg", 34, person, (300, 200))
        source.add(f"{person:03d}c.jpg", 20 if person == 1 else 90 + person, person, (151, 97 + person))
    return source.write()


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def table(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "index.csv").read_text().splitlines()))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
