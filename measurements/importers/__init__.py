"""Figures from other programs' output, told apart by what it looks like."""

from tokcast.measurements.importers.read import read_file, read_text
from tokcast.measurements.importers.rows import Imported, Skipped

__all__ = ["Imported", "Skipped", "read_file", "read_text"]
