"""The catalogue: every planted fault, and every control."""

from __future__ import annotations

from assay.zoo.attack_faults import ATTACK_FAULTS
from assay.zoo.cache_faults import CACHE_CONTROLS, CACHE_FAULTS
from assay.zoo.controls.catalogue import CONTROLS as OWN_CONTROLS
from assay.zoo.corner_faults import CORNER_FAULTS
from assay.zoo.fault import Control, Fault
from assay.zoo.grid_faults import GRID_CONTROLS, GRID_FAULTS
from assay.zoo.layer_faults import LAYER_CONTROLS, LAYER_FAULTS
from assay.zoo.model_faults import MODEL_CONTROLS, MODEL_FAULTS
from assay.zoo.sequence_faults import SEQUENCE_CONTROLS, SEQUENCE_FAULTS
from assay.zoo.state_faults import STATE_FAULTS
from assay.zoo.value_faults import VALUE_FAULTS

FAULTS: tuple[Fault, ...] = (
    *VALUE_FAULTS,
    *STATE_FAULTS,
    *GRID_FAULTS,
    *LAYER_FAULTS,
    *SEQUENCE_FAULTS,
    *CACHE_FAULTS,
    *ATTACK_FAULTS,
    *MODEL_FAULTS,
    *CORNER_FAULTS,
)

CONTROLS: tuple[Control, ...] = (
    *OWN_CONTROLS,
    *GRID_CONTROLS,
    *LAYER_CONTROLS,
    *SEQUENCE_CONTROLS,
    *CACHE_CONTROLS,
    *MODEL_CONTROLS,
)
