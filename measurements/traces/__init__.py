"""Traces of requests that users have, read into tasks."""
