"""Architectures told by name: those that are read right, and those that are something else."""

# Decoders whose tensor names and keys mean what this package takes them to mean.
# fmt: off
KNOWN = frozenset((
    "afmoe", "apertus", "arcee", "arctic", "arwkv7", "baichuan", "bailingmoe", "bailingmoe2",
    "bailingmoe3", "bitnet", "bloom", "chatglm", "codeshell", "cohere2", "cohere2moe",
    "command-r", "dbrx", "deci", "deepseek", "deepseek2", "deepseek32", "deepseek4", "dots1",
    "ernie4_5", "ernie4_5-moe", "exaone", "exaone-moe", "exaone4", "falcon", "falcon-h1",
    "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "glm-dsa", "glm4", "glm4moe", "gpt-oss",
    "gpt2", "gptj", "gptneox", "granite", "granite_swa", "granitehybrid", "granitemoe", "grok",
    "hunyuan-dense", "hunyuan-moe", "hunyuan_vl", "hy_v3", "internlm2", "jais", "jais2",
    "jamba", "kimi-linear", "laguna", "lfm2", "lfm2moe", "llama", "llama4", "maincoder",
    "mamba", "mamba2", "mellum", "mimo2", "minicpm", "minicpm3", "minimax-01", "minimax-m2",
    "minimax-m3", "mistral3", "mistral4", "mpt", "muse-glimmer", "nemotron", "nemotron_h",
    "nemotron_h_moe", "olmo", "olmo2", "olmoe", "openelm", "orion", "pangu-embedded", "phi2",
    "phi3", "phimoe", "plamo", "plamo2", "plamo3", "plm", "qwen", "qwen2", "qwen2moe",
    "qwen2vl", "qwen3", "qwen35", "qwen35moe", "qwen3moe", "qwen3next", "qwen3vl",
    "qwen3vlmoe", "refact", "rwkv6", "rwkv6qwen2", "rwkv7", "seed_oss", "smallthinker",
    "smollm3", "spark2_5", "stablelm", "starcoder", "starcoder2", "step35", "xverse",
))

# They embed or classify text; no token is ever decoded.
ENCODERS = frozenset((
    "bert", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llama-embed",
    "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe", "t5encoder",
))
# fmt: on

# Files that hold a projector for images or sound, not a language model.
PROJECTORS = frozenset({"clip", "mmproj"})
