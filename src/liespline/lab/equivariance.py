"""`liespline equivariance`: how far each layer of a trained network is from equivariant."""

from __future__ import annotations
