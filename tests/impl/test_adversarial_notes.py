"""Static notes: what a source suggests is named with its line, and a plain kernel has none."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from assay.impl.adversarial_notes import notes_on, static_notes
from assay.impl.loading import resolve

PLAIN = """
    import math

    import numpy as np
    import torch


    def attention(q, k, v, *, scale=None):
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        scores = factor * q @ k.transpose(-1, -2)
        e = torch.exp(scores - scores.amax(-1, keepdim=True))
        if q.shape[-1] == 8 and len({(1, 2): "no key of a table"}) > 5:
            raise ValueError(f"{q.shape}")
        return e / e.sum(-1, keepdim=True) @ v
""".replace('{(1, 2): "no key of a table"}', '{"a": (1, 2)}')


def _notes(tmp_path: Path, text: str) -> tuple[str, ...]:
    file = tmp_path / "kernel.py"
    file.write_text(dedent(text).lstrip("\n"))
    return notes_on(file)


def test_a_plain_kernel_has_none(tmp_path: Path) -> None:
    assert _notes(tmp_path, PLAIN) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import torch\nx = torch.softmax(y, -1)", "calls torch.softmax: the host's own operation"),
        (
            "import torch.nn.functional as F\nx = F.scaled_dot_product_attention(q, k, v)",
            "calls torch.nn.functional.scaled_dot_product_attention",
        ),
        ("from torch import nn\nx = nn.LSTM(3, 4)", "calls torch.nn.LSTM"),
        ("import jax\nx = jax.nn.dot_product_attention(q, k, v)", "jax.nn.dot_product_attention"),
        ("try:\n    f()\nexcept Exception:\n    g()", "catches an exception and goes on"),
        ("\nx = {(1, 128, 64): f}", "a table of shapes"),
        ("if x:\n    y = q.shape == (2, 4, 128, 64)", "compares a shape with one that is written"),
        ("if x:\n    y = q.shape in {(2, 4), (3, 4)}", "compares a shape with one that is written"),
        ("if x:\n    y = q.shape[2] > 1024", "compares a length with one that is written down"),
        ("import os\nx = os.environ.get('ASSAY')", "reads os.environ: reads its environment"),
        ("import os\nx = os.getenv('ASSAY')", "reads os.getenv: reads its environment"),
        ("\nimport inspect", "imports inspect: looks around in its process"),
        ("\nimport gc as g", "imports gc: looks around in its process"),
        ("\nimport ctypes", "imports ctypes"),
        ("import sys\nx = sys._getframe(1)", "reads sys._getframe: looks around"),
        ("import sys\nx = sys.modules['assay']", "reads sys.modules: looks around"),
        ("\nfrom time import perf_counter", "imports time.perf_counter: asks for the time"),
        ("\nfrom assay.spec import attention", "imports assay.spec.attention: asks for the ref"),
        ("\nfrom assay.impl import runner", "imports assay.impl.runner: asks for the runner's own"),
        ("import numpy as np\nnp.allclose = f", "changes numpy.allclose: somebody else's"),
        ("import numpy as np\nsetattr(np, 'isclose', f)", "changes numpy: somebody else's"),
        ("import functools\n@functools.lru_cache\ndef f(): ...", "uses lru_cache: remembers"),
        ("\nx = q.data_ptr()", "reads q.data_ptr: asks where its inputs lie"),
        ("\nx = memo[id(q)]", "uses id: asks where its inputs lie"),
        ("\nexec(text)", "uses exec: runs code that it makes up"),
        ("\nimport subprocess", "imports subprocess: starts or asks other programs"),
        ("\nimport threading", "imports threading: goes on after it returned"),
    ],
)
def test_what_is_worth_a_look_is_named(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(text)
    notes = notes_on(file)
    assert any(words in note for note in notes), notes
    assert all(note.startswith("kernel.py:") for note in notes)
    line = next(note for note in notes if words in note).split(":")[1]
    assert line == ("3" if text.startswith("try") else "2")


def test_a_handler_that_raises_is_no_fallback(tmp_path: Path) -> None:
    text = "try:\n    f()\nexcept KeyError as error:\n    raise ValueError('x') from error"
    assert _notes(tmp_path, text) == ()


def test_a_file_that_is_no_python_is_a_note(tmp_path: Path) -> None:
    (note,) = _notes(tmp_path, "def (")
    assert note.startswith("kernel.py: cannot be read as Python")


def test_a_source_that_is_not_there_is_a_note() -> None:
    (note,) = static_notes(resolve("sys:exit"))
    assert note == "sys:exit: its source cannot be found, so nobody has read it"


def test_nothing_is_imported_to_read_it(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("raise SystemExit\nimport gc\n")
    assert len(static_notes(resolve(f"{file}:f", op="attention"))) == 1
