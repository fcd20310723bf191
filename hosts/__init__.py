"""Chips and what they can do, and which one this machine has."""
