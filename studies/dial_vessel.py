"""The dial on VesselMNIST3D in 28³, five folds of its training and validation volumes."""

from studies.recipes import dial

STUDY = dial("VesselMNIST3D")
