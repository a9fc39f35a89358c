"""The catalogue: every planted fault, and every control."""

from __future__ import annotations

from assay.zoo.fault import Control, Fault
from assay.zoo.grid_faults import GRID_CONTROLS, GRID_FAULTS
from assay.zoo.layer_faults import LAYER_CONTROLS, LAYER_FAULTS
from assay.zoo.sequence_faults import SEQUENCE_CONTROLS, SEQUENCE_FAULTS
from assay.zoo.state_faults import STATE_FAULTS
from assay.zoo.value_faults import VALUE_FAULTS

_TILED = "assay.zoo.controls.tiled"

FAULTS: tuple[Fault, ...] = (
    *VALUE_FAULTS,
    *STATE_FAULTS,
    *GRID_FAULTS,
    *LAYER_FAULTS,
    *SEQUENCE_FAULTS,
)

CONTROLS: tuple[Control, ...] = (
    Control("tiles-16", f"{_TILED}:Tiles16", "tiles of 16 keys with a running maximum"),
    Control("tiles-64", f"{_TILED}:Tiles64", "tiles of 64 keys"),
    Control("backwards", f"{_TILED}:Backwards", "keys from the last to the first"),
    Control("split-keys", f"{_TILED}:SplitKeys", "tiles merged two by two"),
    Control("base-two", f"{_TILED}:BaseTwo", "exp2"),
    Control("double", f"{_TILED}:DoublePrecision", "sums and products in float64"),
    Control("query-chunks", f"{_TILED}:QueryChunks", "seven queries at a time"),
    Control("bfloat16-stored", f"{_TILED}:Bfloat16Stored", "scores and weights stored as bfloat16"),
    Control(
        "online-softmax",
        "assay.zoo.controls.online_softmax:OnlineSoftmax",
        "masked softmax by tiles, in two passes",
    ),
    Control(
        "torch-upcast",
        "assay.zoo.controls.torch_upcast:TorchUpcast",
        "torch in float32 whatever the inputs are",
    ),
    *GRID_CONTROLS,
    *LAYER_CONTROLS,
    *SEQUENCE_CONTROLS,
)
