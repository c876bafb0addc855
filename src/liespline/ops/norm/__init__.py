"""Batch norm with what follows it, in one pass over memory."""
