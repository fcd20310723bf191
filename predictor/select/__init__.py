"""Choosing a model and a quant for a machine: candidates, wishes, ranking."""
