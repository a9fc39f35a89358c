"""The catalogue of properties."""

from __future__ import annotations

from dataclasses import replace

from assay.properties.attention_relations import RELATIONS
from assay.properties.attention_values import VALUES
from assay.properties.block_properties import BLOCK_PROPERTIES
from assay.properties.cache_properties import CACHE_PROPERTIES
from assay.properties.convolution_properties import CONVOLUTION_PROPERTIES
from assay.properties.decoding_properties import DECODING_PROPERTIES
from assay.properties.hygiene import HYGIENE
from assay.properties.layer_properties import LAYER_PROPERTIES
from assay.properties.model_properties import MODEL_PROPERTIES
from assay.properties.property import Property
from assay.properties.recurrent_properties import RECURRENT_PROPERTIES
from assay.properties.scan_properties import SCAN_PROPERTIES
from assay.properties.softmax_properties import SOFTMAX
from assay.properties.spectral_properties import SPECTRAL_PROPERTIES
from assay.properties.training_properties import TRAINING_PROPERTIES

PROPERTIES: tuple[Property, ...] = (
    *(replace(p, refilled=True) for p in (*SOFTMAX, *VALUES, *RELATIONS)),
    *CACHE_PROPERTIES,
    *LAYER_PROPERTIES,
    *CONVOLUTION_PROPERTIES,
    *SPECTRAL_PROPERTIES,
    *RECURRENT_PROPERTIES,
    *SCAN_PROPERTIES,
    *BLOCK_PROPERTIES,
    *MODEL_PROPERTIES,
    *TRAINING_PROPERTIES,
    *DECODING_PROPERTIES,
    *HYGIENE,
)


def find(property_id: str) -> Property:
    """The property with this id; KeyError names the valid ones."""
    for entry in PROPERTIES:
        if entry.id == property_id:
            return entry
    raise KeyError(
        f"property {property_id!r} does not exist; valid: {', '.join(p.id for p in PROPERTIES)}"
    )
