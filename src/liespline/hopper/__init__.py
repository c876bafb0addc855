"""Kernels for one family of GPUs, measured on an H200; `paths` chooses them where they pay."""
