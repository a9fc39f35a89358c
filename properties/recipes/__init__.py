"""The recipe of each op, by its name."""

from __future__ import annotations

from collections.abc import Mapping

from assay.properties.recipe import Recipe
from assay.properties.recipes.blocks import BLOCKS
from assay.properties.recipes.caches import CACHES
from assay.properties.recipes.grids import GRIDS_RECIPES
from assay.properties.recipes.layers import LAYERS
from assay.properties.recipes.model_sessions import SESSIONS
from assay.properties.recipes.models import MODELS
from assay.properties.recipes.sequences import SEQUENCES
from assay.properties.recipes.training import TRAINING

RECIPES: Mapping[str, Recipe] = {
    r.op: r
    for r in (*LAYERS, *CACHES, *GRIDS_RECIPES, *SEQUENCES, *BLOCKS, *TRAINING, *MODELS, *SESSIONS)
}
