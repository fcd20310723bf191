"""Coefficients: estimated from measurements, scored on hosts left out, released as data."""
