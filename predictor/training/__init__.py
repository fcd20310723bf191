"""Seconds and joules of a training step, from a model's configuration and how it is spread."""
