"""Which recurrent mixer a block has, and the numbers it keeps for a sequence."""

from tokcast.predictor.block import Block, columns, rows
from tokcast.predictor.keys import Keys
from tokcast.predictor.spec import Mixer


def mixer_of(block: Block, keys: Keys, index: int, architecture: str) -> tuple[Mixer, int]:
    """Return the recurrent mixer of a block and the numbers it keeps for a sequence.

    Sizes as in llama.cpp's `llama_hparams::n_embd_r` and `n_embd_s`.
    """
    if "time_mix_output.weight" in block or "time_mix_key.weight" in block:
        width = columns(block, "time_mix_key.weight")
        head = keys.count("wkv.head_size") or 64
        return "rwkv", width * (head + (keys.count("token_shift_count") or 2))
    if "shortconv.conv.weight" in block:
        taps = max(columns(block, "shortconv.conv.weight") - 1, 0)
        return "conv", taps * rows(block, "shortconv.conv.weight")
    if "ssm_conv1d_q.weight" in block:
        return "linear", _delta_attention_state(block)
    if "ssm_conv1d.weight" in block:
        return _scan_state(block, keys)
    if architecture == "minimax-01" and "attn_gate.weight" in block:
        n_head = keys.at("attention.head_count", index) or 0
        return "linear", n_head * (keys.count("attention.key_length") or 0) ** 2
    return "none", 0


def _delta_attention_state(block: Block) -> int:
    """Return the state of Kimi's delta attention: three convolutions and a square a head."""
    # (taps, 1, width), with another 1 in some files
    taps, *widths = block["ssm_conv1d_q.weight"].shape or (0,)
    width = max(widths, default=0)
    return width * (columns(block, "ssm_norm.weight") + 3 * max(taps - 1, 0))


def _scan_state(block: Block, keys: Keys) -> tuple[Mixer, int]:
    """Return the state of Mamba 1, Mamba 2 and gated delta nets: width x state + convolution."""
    channels = rows(block, "ssm_conv1d.weight")
    width = columns(block, "ssm_out.weight") or channels
    is_delta = any(f"{name}.weight" in block for name in ("ssm_beta", "ssm_ba", "ssm_alpha"))
    state = keys.count("ssm.state_size") or 0
    if not state:
        state = columns(block, "ssm_norm.weight" if is_delta else "ssm_a")
    convolution = max(columns(block, "ssm_conv1d.weight") - 1, 0) * channels
    return ("linear" if is_delta else "ssm"), state * width + convolution
