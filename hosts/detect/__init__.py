"""Which chips this machine has."""

from tokcast.hosts.detect.machine import Detection, detect

__all__ = ["Detection", "detect"]
