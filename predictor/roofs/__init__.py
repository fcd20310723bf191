"""Rooflines beyond one chip's ledger: floors, triage, walls, levels, emulation, stages."""
