"""Models of Ollama: its folders on this machine, else its registry."""

from pathlib import Path

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.header import Header
from tokcast.predictor.sources.address import OllamaModel
from tokcast.predictor.sources.parts import read_urls
from tokcast.predictor.sources.places import model_digest, ollama_blob, ollama_roots
from tokcast.predictor.sources.web import Web

MAX_MANIFEST_BYTES = 1 << 20
REGISTRY_FOLDER = "registry.ollama.ai"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def read_ollama(model: OllamaModel, web: Web) -> Header:
    """Return the header of a model that Ollama pulled, or could pull.

    Raises InputError where it is not one of GGUF weights.
    """
    host = model.host or REGISTRY_FOLDER
    for root in ollama_roots(web.settings):
        manifest = Path(root, "manifests", host, model.namespace, model.name, model.tag)
        blob = ollama_blob(root, manifest)
        if blob is not None:
            return read_gguf_file(blob)
    base = web.settings.registry if model.host is None else f"https://{model.host}"
    base = f"{base}/v2/{model.namespace}/{model.name}"
    manifest_url = f"{base}/manifests/{model.tag}"
    digest = model_digest(web.body(manifest_url, MAX_MANIFEST_BYTES, accept=_MANIFEST))
    if digest is None:
        raise InputError(f"{model}: expected a model of GGUF weights, its manifest names none")
    url = f"{base}/blobs/{digest}"
    return read_urls([url], str(model), web, {url: digest})
