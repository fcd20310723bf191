"""Drawings as SVG text: the same code for the web page, its exports and `tokcast plot`."""
