"""Every control, by the file that holds it."""

from __future__ import annotations

from collections.abc import Mapping

from assay.zoo.fault import Control

_HOME = "assay.zoo.controls"


def _in(file: str, members: Mapping[str, tuple[str, str]]) -> tuple[Control, ...]:
    """The controls of one file: name to class and summary."""
    return tuple(
        Control(name, f"{_HOME}.{file}:{kind}", summary)
        for name, (kind, summary) in members.items()
    )


CONTROLS: tuple[Control, ...] = (
    *_in(
        "tiled",
        {
            "tiles-16": ("Tiles16", "tiles of 16 keys with a running maximum"),
            "tiles-64": ("Tiles64", "tiles of 64 keys"),
            "backwards": ("Backwards", "keys from the last to the first"),
            "split-keys": ("SplitKeys", "tiles merged two by two"),
            "base-two": ("BaseTwo", "exp2"),
            "double": ("DoublePrecision", "sums and products in float64"),
            "query-chunks": ("QueryChunks", "seven queries at a time"),
            "bfloat16-stored": ("Bfloat16Stored", "scores and weights stored as bfloat16"),
        },
    ),
    *_in(
        "attention_orders",
        {
            "whole-rows": ("WholeRows", "attention in three stages, not fused"),
            "pairwise-keys": ("PairwiseKeys", "keys summed as a tree"),
            "compensated-keys": ("CompensatedKeys", "Kahan's sums over the keys"),
            "einsum-loops": ("LoopsOfEinsum", "values summed by the loops of einsum"),
            "keys-by-queries": ("KeysByQueries", "transposed products in Fortran order"),
            "split-width": ("SplitWidth", "scores by halves of the width"),
            "logarithm-of-mass": ("LogarithmOfMass", "the logarithm of the sum subtracted"),
            "float16-stored": ("Float16Stored", "scores and weights stored as float16"),
            "two-passes": ("TwoPasses", "the maximum of all tiles first"),
            "scaled-queries": ("ScaledQueries", "queries scaled before the product"),
            "grouped-heads": ("GroupedHeads", "heads of a group as rows of one product"),
            "empty-tiles-skipped": ("EmptyTilesSkipped", "tiles that nobody sees left out"),
        },
    ),
    *_in(
        "online_softmax",
        {"online-softmax": ("OnlineSoftmax", "masked softmax by tiles, in two passes")},
    ),
    *_in(
        "softmax_orders",
        {
            "softmax-rows": ("ShiftedRows", "masked softmax row by row"),
            "softmax-base-two": ("BaseTwoRows", "softmax by exp2"),
            "softmax-reversed": ("ReversedRows", "summed from the last entry on"),
            "softmax-logarithm": ("LogarithmRows", "the logarithm of the sum subtracted"),
            "softmax-double": ("DoubleRows", "softmax in float64"),
            "softmax-columns": ("ColumnsFirst", "rows that lie far apart in memory"),
            "softmax-bfloat16": ("Bfloat16Rows", "exponentials stored as bfloat16"),
        },
    ),
    *_in(
        "layer_orders",
        {
            "embedding-sorted": (
                "SortedEmbedding",
                "gradients brought together by sorting",
            ),
            "embedding-product": ("GatheredEmbedding", "gradients by one product"),
            "dropout-in-place": ("ScaledDropout", "kept entries scaled where they stand"),
            "layer-norm-compensated": ("CompensatedNorm", "means by Kahan's sum, twice"),
            "cross-entropy-rows": ("RowsOfLoss", "losses row by row"),
            "linear-columns": ("ColumnsOfWeights", "weights in-by-out in memory"),
        },
    ),
    *_in(
        "windows",
        {
            "taps-backwards": ("TapsBackwards", "convolution from the last tap on"),
            "taps-channels-last": ("ChannelsLast", "channels as the fast axis"),
            "taps-einsum": ("EinsumTaps", "channels mixed by the loops of einsum"),
            "taps-double": ("WideSums", "products of taps in float64"),
            "columns": ("ColumnsOfWindows", "windows as columns of one product"),
            "patches-reshaped": ("ReshapedPatches", "patches side by side, by a reshape"),
            "pooling-axes": ("AxisPooling", "pools axis by axis"),
        },
    ),
    *_in(
        "transforms",
        {
            "spectral-axes": ("AxisByAxis", "a matrix of waves for each axis"),
            "spectral-mixed-radix": ("MixedRadix", "fast transforms, decimated in time"),
            "spectral-in-frequency": ("InFrequency", "fast transforms, decimated in frequency"),
            "spectral-whole-grid": ("WholeGrid", "one matrix of waves for the grid"),
            "spectral-chirp": ("Chirped", "transforms by convolution with a chirp"),
            "half-of-whole": ("HalfOfWhole", "half spectra filled up by their mirrors"),
            "half-by-waves": ("HalfByWaves", "half spectra by cosines and sines"),
        },
    ),
    *_in(
        "scan_orders",
        {
            "scans-chunked": ("ChunkedScans", "chunks of steps, then what flows between them"),
            "scans-swept": ("SweptScans", "up and down a balanced tree of maps"),
            "scans-halved": ("HalvedScans", "one half after the other, by recursion"),
            "scans-double": ("WideScans", "states in float64"),
            "scans-time-first": ("TimeFirst", "time as the slow axis in memory"),
            "causal-windows": ("WindowedConvolution", "a causal convolution by windows"),
        },
    ),
    *_in(
        "cell_orders",
        {
            "cells-gates-apart": ("GatesApart", "products of each gate by themselves"),
            "cells-state-first": ("StateFirst", "the product of the state first"),
            "cells-double": ("WideCells", "gates in float64"),
            "cells-rows": ("RowsOneByOne", "samples one by one"),
        },
    ),
    *_in(
        "cache_orders",
        {
            "slots-from-the-end": ("SlotsFromTheEnd", "a cache filled from its last slot on"),
            "slots-by-table": ("EvenSlotsFirst", "a table says where tokens stand"),
            "cache-split-reads": ("SplitReads", "halves of the slots read and merged"),
        },
    ),
    *_in(
        "torch_attention",
        {
            "checkpointed-heads": ("CheckpointedHeads", "attention that keeps nothing"),
            "handwritten-gradient": ("HandwrittenGradient", "weights made again by hand"),
            "mapped-heads": ("MappedHeads", "one head, mapped over batch and heads"),
            "einsum-heads": ("EinsumHeads", "einsum on heads behind the tokens"),
        },
    ),
    *_in(
        "torch_layers",
        {
            "norms-merged": ("MergedNorms", "norms by moments of halves, merged"),
            "norms-welford": ("WelfordNorms", "norms by moments, entry after entry"),
            "norms-double": ("WideNorms", "norms by moments in float64"),
            "linear-split": ("SplitLinear", "linear maps by three stretches of inputs"),
            "linear-outer": ("OuterLinear", "linear maps as sums of outer products"),
            "linear-threads": ("SharedOut", "linear maps by two threads"),
            "losses-chunked": ("ChunkedLosses", "losses by chunks of classes"),
            "activations-by-halves": ("ActivationsByHalves", "exponentials below 0 only"),
            "layers-upcast": ("UpcastLayers", "layers in 16 bits, computed in float32"),
        },
    ),
    *_in(
        "torch_windows",
        {
            "stride-one": ("StrideOne", "all windows, of which strided ones are kept"),
            "padded-first": ("PaddedFirst", "the rim put round the input before"),
            "groups-apart": ("GroupsApart", "a convolution for each group"),
            "windows-upcast": ("UpcastWindows", "16-bit images, computed in float32"),
        },
    ),
    *_in(
        "torch_blocks",
        {
            "layers-by-head": ("HeadByHead", "transformer layers head by head"),
            "blocks-chunked": ("ChunkedBlocks", "state-space blocks by chunks of steps"),
            "operator-bias-first": ("BiasFirst", "an operator's block with the bias first"),
        },
    ),
    *_in(
        "torch_models",
        {
            "models-rows": ("RowByRow", "models sample by sample"),
            "models-checkpointed": ("Checkpointed", "models that keep nothing"),
            "models-transposed": ("TransposedWeights", "models with transposed matrices"),
            "decoding-paged": ("PagedDecoding", "decoding from a pool of blocks"),
            "decoding-recomputed": ("RecomputedDecoding", "decoding without a cache"),
        },
    ),
    *_in(
        "torch_training",
        {
            "training-accumulated": ("Accumulated", "gradients added up over rows, last first"),
            "training-folded": ("FoldedOptimizers", "corrections of Adam in its step size"),
        },
    ),
    *_in("torch_upcast", {"torch-upcast": ("TorchUpcast", "torch in float32 for all inputs")}),
)
