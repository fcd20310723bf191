"""The table of llama-quantize's rules: which type each part of a model gets.

`RULES` holds, for a file type and the part a tensor plays, a list of `condition:TYPE` read
from left to right; the first whose condition holds gives the type, and a bare TYPE always
holds. Where nothing holds the tensor gets the file type's default. Facts from llama.cpp's
`llama-quant.cpp` (MIT), build 0c1e570 of 2026.

Conditions are joined by `&`:

=============  ==================================================================
``first16``    position in the first sixteenth of the blocks (integer division)
``first8``     position in the first eighth
``middle``     position outside the first and the last eighth
``more``       first eighth, last eighth and every third position in between
``top2``       one of the first two positions
``top4``       one of the first four
``gqa4``       four or more query heads share one K/V head in block 0
``experts4``   four or more experts
``experts8``   exactly eight experts, which llama.cpp takes for Mixtral
``imatrix``    made with an importance matrix; ``!imatrix`` without
=============  ==================================================================

Not covered: the variants for the `falcon` architecture of 2023.
"""

# file type: (number in general.file_type, default type)
FILE_TYPES = {
    "F32": (0, "F32"),
    "F16": (1, "F16"),
    "BF16": (32, "BF16"),
    "Q4_0": (2, "Q4_0"),
    "Q4_1": (3, "Q4_1"),
    "Q5_0": (8, "Q5_0"),
    "Q5_1": (9, "Q5_1"),
    "Q8_0": (7, "Q8_0"),
    "Q2_K": (10, "Q2_K"),
    "Q2_K_S": (21, "Q2_K"),
    "Q3_K_S": (11, "Q3_K"),
    "Q3_K_M": (12, "Q3_K"),
    "Q3_K_L": (13, "Q3_K"),
    "Q4_K_S": (14, "Q4_K"),
    "Q4_K_M": (15, "Q4_K"),
    "Q5_K_S": (16, "Q5_K"),
    "Q5_K_M": (17, "Q5_K"),
    "Q6_K": (18, "Q6_K"),
    "IQ1_S": (24, "IQ1_S"),
    "IQ1_M": (31, "IQ1_M"),
    "IQ2_XXS": (19, "IQ2_XXS"),
    "IQ2_XS": (20, "IQ2_XS"),
    "IQ2_S": (28, "IQ2_XS"),
    "IQ2_M": (29, "IQ2_S"),
    "IQ3_XXS": (23, "IQ3_XXS"),
    "IQ3_XS": (22, "IQ3_S"),
    "IQ3_S": (26, "IQ3_S"),
    "IQ3_M": (27, "IQ3_S"),
    "IQ4_NL": (25, "IQ4_NL"),
    "IQ4_XS": (30, "IQ4_XS"),
    "TQ1_0": (36, "TQ1_0"),
    "TQ2_0": (37, "TQ2_0"),
    "MXFP4_MOE": (38, "MXFP4"),
}
PLAIN = frozenset({"F32", "F16", "BF16"})
BELOW_3_BITS = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")

Row = dict[str, str]

# "v" values, "k" keys, "q" queries, "o" attention output; "down", "gate" and "up" of the
# feed-forward part and of experts; "qkv" the fused matrix where it has rules of its own
RULES: dict[str, Row] = {
    "Q4_0": {"down": "imatrix&first8:Q4_1"},
    "Q5_0": {"down": "imatrix&first8:Q5_1"},
    "Q2_K": {"v": "gqa4:Q4_K Q3_K", "o": "Q3_K", "down": "Q3_K"},
    "Q2_K_S": {"v": "gqa4:Q4_K", "down": "first8:Q4_K"},
    "Q3_K_M": {
        "v": "top2:Q5_K Q4_K",
        "o": "Q4_K",
        "down": "first16:Q5_K Q4_K",
        "qkv": "Q4_K",
    },
    "Q3_K_L": {"v": "Q5_K", "o": "Q5_K", "down": "Q5_K", "qkv": "Q4_K"},
    "Q4_K_S": {"v": "top4:Q5_K", "down": "first8:Q5_K"},
    "Q4_K_M": {"v": "more:Q6_K", "down": "more:Q6_K", "qkv": "Q5_K"},
    "Q5_K_M": {"v": "more:Q6_K", "down": "more:Q6_K", "qkv": "Q6_K"},
    "IQ3_XXS": {
        "v": "gqa4:Q4_K imatrix:IQ3_XXS IQ3_S",
        "k": "IQ2_S",
        "q": "IQ2_S",
        "o": "IQ3_S",
        "down": "!imatrix&first8:Q4_K !imatrix:Q3_K",
    },
    "IQ3_XS": {
        "v": "gqa4:Q4_K",
        "k": "IQ3_XXS",
        "q": "IQ3_XXS",
        "gate": "middle:IQ3_XXS",
        "up": "middle:IQ3_XXS",
    },
    "IQ3_S": {"v": "gqa4:Q4_K"},
    "IQ3_M": {
        "v": "Q4_K",
        "o": "Q4_K",
        "down": "first8:Q4_K experts8&more:Q4_K",
        "qkv": "Q4_K",
    },
    "IQ4_NL": {"v": "gqa4:Q5_K", "down": "!imatrix&first8:Q5_K"},
    "IQ4_XS": {"v": "gqa4:Q5_K", "down": "!imatrix&first8:Q5_K"},
    **{
        file_type: {"v": "gqa4:Q4_K experts4:Q4_K Q2_K", "down": "first8:Q2_K"}
        for file_type in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS")
    },
    **{
        file_type: {"v": "gqa4:Q4_K experts4:Q4_K IQ3_S", "o": "IQ3_S", "down": "first8:IQ3_S"}
        for file_type in ("IQ2_S", "IQ2_M")
    },
}
RULES["IQ1_S"]["o"] = RULES["IQ1_M"]["o"] = "IQ2_XXS"

# What replaces a row's cell where there are exactly eight experts; None keeps the default type.
EIGHT_EXPERTS: dict[str, dict[str, str | None]] = {
    **{
        file_type: {"v": "Q8_0", "k": "Q8_0", "o": None}
        for file_type in FILE_TYPES
        if file_type not in BELOW_3_BITS
    },
    **{file_type: {"k": "Q4_K", "o": "Q5_K"} for file_type in BELOW_3_BITS},
}
for _file_type in (
    *("Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M"),
    *("IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "IQ4_NL", "IQ4_XS"),
):
    EIGHT_EXPERTS[_file_type]["o"] = "Q5_K"

# The output matrix, and the token embedding where that is a separate lookup table.
OUTPUT = dict.fromkeys((*BELOW_3_BITS, "IQ3_XXS"), "Q5_K") | dict.fromkeys(
    ("Q8_0", "MXFP4_MOE"), "Q8_0"
)
EMBEDDING = {
    **dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS"), "Q2_K"),
    **dict.fromkeys(("IQ2_S", "IQ2_M", "IQ3_XXS"), "IQ3_S"),
    **dict.fromkeys(("TQ1_0", "TQ2_0"), "Q4_K"),
    "MXFP4_MOE": "Q8_0",
}

# Used where a row is not a whole number of blocks; F16 where 32 does not divide it either.
FALLBACK = {
    **dict.fromkeys(("Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
    **dict.fromkeys(
        ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"
    ),
}
