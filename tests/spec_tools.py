"""Specs of the catalogue's models, and their parts by name."""

from tokcast.predictor import catalogue
from tokcast.predictor.model import model_spec
from tokcast.predictor.spec import ModelSpec, WeightGroup


def spec_of(name: str, file_type: str = "Q4_K_M") -> ModelSpec:
    return model_spec(catalogue.header(name, file_type))


def group(spec: ModelSpec, component: str) -> WeightGroup:
    (found,) = [g for g in spec.groups if g.component == component]
    return found


def params(spec: ModelSpec, component: str) -> int:
    return sum(g.n_params for g in spec.groups if g.component == component)
