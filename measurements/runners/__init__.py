"""Runtimes that measure: llama.cpp in a process of its own, llama-bench, MLX."""
