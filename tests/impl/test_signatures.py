"""The adapter's view of the ops is the catalogue's."""

from __future__ import annotations

import pytest

from assay.impl.signatures import ALIASES, SIGNATURES, signature
from assay.spec.ops import OPS


def test_every_op_of_the_catalogue_has_a_signature() -> None:
    assert set(SIGNATURES) == {op.name for op in OPS}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_signature_agrees_with_the_catalogue(op: object) -> None:
    entry = next(o for o in OPS if o is op)
    mine = SIGNATURES[entry.name]
    assert mine.inputs == entry.required
    assert mine.outputs == tuple(entry.outputs)
    optional = {i.name: None for i in entry.inputs if i.optional}
    assert dict(mine.keywords) == {**optional, **{a.name: a.default for a in entry.attributes}}


def test_aliases_stand_for_keywords_and_hide_none() -> None:
    names = {name for s in SIGNATURES.values() for name in s.keywords}
    assert set(ALIASES.values()) <= names
    assert not set(ALIASES) & names


def test_an_unknown_op_names_the_valid_ones() -> None:
    with pytest.raises(ValueError, match=r"op='convolutoin'.*attention, .*masked_softmax"):
        signature("convolutoin")
