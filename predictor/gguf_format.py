"""The numbers of the GGUF format that reading and writing share."""

# Value type id: name and struct character.
NUMBERS = {
    0: ("u8", "B"),
    1: ("i8", "b"),
    2: ("u16", "H"),
    3: ("i16", "h"),
    4: ("u32", "I"),
    5: ("i32", "i"),
    6: ("f32", "f"),
    7: ("bool", "?"),
    10: ("u64", "Q"),
    11: ("i64", "q"),
    12: ("f64", "d"),
}
STRING = 8
ARRAY = 9

ALIGNMENT_KEY = "general.alignment"
DEFAULT_ALIGNMENT = 32


def align(position: int, alignment: int) -> int:
    """Return the next multiple of `alignment`."""
    return -(-position // alignment) * alignment
