"""Data sets in their official files: fetched, prepared, read, and drawn."""
