"""Properties of pointwise ops, linear maps, embeddings, normalisation, losses and dropout."""

from __future__ import annotations

from assay.properties.property import Property
from assay.properties.recipes.layers import POINTWISE
from assay.properties.refinement import refinement

LAYER_PROPERTIES: tuple[Property, ...] = (
    *refinement("activation", *POINTWISE),
    *refinement("linear", "linear"),
)
