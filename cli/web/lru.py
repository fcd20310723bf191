"""A bounded memory of what was worked out before."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Lru(Generic[V]):
    """The `most` values used last, by key; safe in several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> V | None:
        """Return a value, None without it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: V) -> V:
        """Keep a value, and return it; the one not used for longest goes."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def made(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return a value, made now where it is not there."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found

    def __len__(self) -> int:
        """Return how many values there are."""
        return len(self._values)
