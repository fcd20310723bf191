"""Requests that share one pass of the model."""

from dataclasses import dataclass

from tokcast.predictor.errors import InputError


@dataclass(frozen=True, slots=True)
class Request:
    """One request's part of a pass: new tokens on top of those in its cache.

    Raises InputError for a part without new tokens or with a negative number of cached ones.
    """

    n_new: int
    n_past: int = 0

    def __post_init__(self) -> None:
        if self.n_new < 1 or self.n_past < 0:
            raise InputError(
                f"a request of {self.n_new} new tokens on {self.n_past}: expected 1 or more on 0"
                " or more"
            )
