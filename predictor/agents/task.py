"""A task: turns of a conversation with a model, each a prompt and an answer."""

from dataclasses import dataclass

from tokcast.predictor.errors import InputError


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of the model, lengths in tokens.

    `n_cached` leading tokens of the prompt are still in the cache, the previous answer's where
    they came back unchanged. `wait_seconds` is what a tool or a person took before the call,
    None where nobody recorded it. Raises InputError for lengths that make no sense.
    """

    n_input: int
    n_cached: int
    n_output: int
    wait_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.n_input < 1 or self.n_output < 0 or not 0 <= self.n_cached <= self.n_input:
            raise InputError(
                f"a turn of {self.n_input} tokens, {self.n_cached} of them cached, and"
                f" {self.n_output} answered: expected a prompt, and no more cached than it has"
            )

    @property
    def n_read(self) -> int:
        """Return the tokens to be read: at least one, as the first answer needs its scores."""
        return max(self.n_input - self.n_cached, 1)

    @property
    def n_context(self) -> int:
        """Return the tokens in the cache once the answer is written."""
        return self.n_input + self.n_output


Task = tuple[Turn, ...]
