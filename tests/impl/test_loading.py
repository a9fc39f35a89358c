"""Targets by name, module and file; every way to get one wrong has a message that says what is
valid.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from assay.impl.loading import TargetError, resolve
from assay.impl.protocol import Unavailable
from assay.impl.registry import BACKENDS, Builtin
from assay.impl.session import open_session
from tests.impl.helpers import FAKES, fake

PARTS = """
from assay.impl import Contract, NumpyBackend, Unavailable, implements

class NoContract(NumpyBackend):
    @implements("attention")
    def attention(self, q, k, v): ...

class NoOps(NumpyBackend):
    contract = Contract(name="x")

class BadStart(NoOps):
    def __init__(self):
        raise OSError("no license")

class NoDevice(NoOps):
    def __init__(self):
        raise Unavailable("there is no such chip", "buy one")

class Odd(NoOps):
    @implements("attention")
    def attention(self, q, k, v, dropout): ...

class Plain: ...

def function(q, k, v): ...

number = 3
"""


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    path = tmp_path / "parts.py"
    path.write_text(PARTS)
    return path


def test_a_class_an_instance_and_a_function_can_be_targets() -> None:
    assert fake("Sound").load().contract.name == "sound"
    assert fake("instance").load().contract.name == "sound"
    assert resolve(f"{FAKES}:plain", op="attention").load().contract.name == "plain"


def test_a_target_can_be_sent_and_says_where_it_is_defined() -> None:
    target = pickle.loads(pickle.dumps(fake("Sound")))
    assert target == fake("Sound")
    assert target.source() == FAKES
    module = resolve("assay.impl.backends.numpy_float32:NumpyFloat32")
    source = module.source()
    assert source is not None
    assert source.name == "numpy_float32.py"
    assert resolve("assay.nothing:X").source() is None


@pytest.mark.parametrize("builtin", BACKENDS, ids=lambda b: b.name)
def test_built_in_names_resolve_to_backends_of_that_name(builtin: Builtin) -> None:
    name = builtin.name
    try:
        backend = resolve(name).load()
    except Unavailable as absent:
        pytest.skip(str(absent))
    assert backend.contract.name == name
    # What hands numpy's arrays to torch starts sooner where torch is loaded already.
    sooner = "torch" if "torch" in builtin.needs else backend.host_name
    assert resolve(name).host_hint() == sooner


@pytest.mark.parametrize("isolate", [False, True])
def test_a_backend_may_say_that_this_machine_lacks_something(parts: Path, isolate: bool) -> None:
    with pytest.raises(Unavailable) as caught:
        open_session(resolve(f"{parts}:NoDevice"), isolate=isolate)
    assert (caught.value.reason, caught.value.remedy) == ("there is no such chip", "buy one")


@pytest.mark.parametrize("isolate", [False, True])
def test_a_built_in_without_its_library_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, isolate: bool
) -> None:
    absent = Builtin("chip.fast", f"{__name__}:X", "", ("json", "no_such_chip"), "chip")
    monkeypatch.setattr("assay.impl.loading.BACKENDS", (*BACKENDS, absent))
    assert absent.missing == ("no_such_chip",)
    with pytest.raises(Unavailable) as caught:
        open_session(resolve("chip.fast"), isolate=isolate)
    assert str(caught.value) == ("module no_such_chip is not installed; pip install 'assay[chip]'")


def test_every_torch_backend_has_a_row_on_a_gpu_of_the_same_class() -> None:
    rows = {b.name: b for b in BACKENDS}
    for name, row in rows.items():
        if name.startswith("torch.") and not row.device:
            there = rows[name.replace("torch.", "torch.cuda.", 1)]
            assert (there.location, there.device) == (row.location, "cuda"), name


def test_a_torch_without_kernels_for_a_gpu_is_told_by_its_files() -> None:
    import torch

    row = next(b for b in BACKENDS if b.name == "torch.cuda.manual")
    built = torch.version.cuda is not None or torch.version.hip is not None
    assert row.lacks_kernels is not built
    if not built:
        with pytest.raises(Unavailable, match="torch is installed without kernels for cuda"):
            resolve(row.name).load()


def test_a_built_in_row_with_a_device_runs_there_under_its_own_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = "assay.impl.backends.torch_manual:TorchManual"
    rows = [Builtin(f"chip.{d}", place, "", ("torch",), device=d) for d in ("meta", "hpu")]
    monkeypatch.setattr("assay.impl.loading.BACKENDS", (*BACKENDS, *rows))

    contract = resolve("chip.meta").load().contract

    assert (contract.name, contract.device) == ("chip.meta", "meta")
    assert not contract.deterministic
    with pytest.raises(Unavailable, match="device 'hpu' is not available"):
        resolve("chip.hpu").load()


def test_an_installed_entry_point_is_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "chip-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: chip\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[assay.backends]\nchip.fast = chip_kernels:Chip\n")
    (tmp_path / "chip_kernels.py").write_text(
        PARTS
        + "class Chip(NoOps):\n    implements('attention')\n    attention = NoContract.attention\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert resolve("chip.fast").load().contract.name == "x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torch.sdpa.mth", ["did you mean 'torch.sdpa.math'?", "Valid: cuda.scan, "]),
        ("nothing.at.all:X", ["module 'nothing' is not installed"]),
        ("a:b:", ["must be module:attr or file.py:attr"]),
        (":X", ["must be module:attr or file.py:attr"]),
        ("no/such/file.py:X", ["file 'no/such/file.py' does not exist"]),
        (str(FAKES), [f"name what is to be tested in it: {FAKES}:MyBackend"]),
        (f"{FAKES.with_name('fake.py')}:X", ["Python files beside it: fakes.py"]),
    ],
)
def test_resolve_says_what_is_valid(text: str, words: list[str]) -> None:
    with pytest.raises(TargetError) as caught:
        resolve(text)
    for word in words:
        assert word in str(caught.value)


def test_resolve_rejects_an_unknown_op() -> None:
    with pytest.raises(TargetError, match=r"op='attn'.*valid: affine_scan, attention"):
        resolve(f"{FAKES}:plain", op="attn")


@pytest.mark.parametrize(
    ("attr", "words"),
    [
        ("NoContract", "has contract=None; set contract = Contract(name=...)"),
        ("NoOps", "implements no op; mark its methods with @implements(op)"),
        ("BadStart", "cannot be built: OSError: no license"),
        ("Odd", "parameter 'dropout'"),
        ("Plain", "valid: a subclass or an instance of NumpyBackend, TorchBackend or JaxBackend"),
        ("number", "is a int; valid:"),
        ("function", "is a plain function; say which op it computes (--op)"),
        ("Nothing", "has no attribute 'Nothing'; valid: BadStart, NoContract, NoDevice, NoOps"),
    ],
)
@pytest.mark.parametrize("isolate", [False, True])
def test_loading_says_what_is_wrong_here_and_in_a_worker(
    parts: Path, attr: str, words: str, isolate: bool
) -> None:
    with pytest.raises(TargetError) as caught:
        open_session(resolve(f"{parts}:{attr}"), isolate=isolate)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words", "line"),
    [
        ("import os\n1 / 0", "ZeroDivisionError: division by zero", 2),
        ("import sys\nsys.exit(3)", "SystemExit: 3", 2),
        ("def f(:", "SyntaxError", 1),
        ("import json\njson.loads('')", "JSONDecodeError", 2),
    ],
)
@pytest.mark.parametrize("isolate", [False, True])
def test_a_failing_import_names_the_users_file_and_line(
    tmp_path: Path, code: str, words: str, line: int, isolate: bool
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(code)
    with pytest.raises(TargetError) as caught:
        open_session(resolve(f"{path}:X"), isolate=isolate)
    assert words in str(caught.value)
    assert f"({path}, line {line})" in str(caught.value)


def test_an_abort_on_import_ends_the_worker_only(tmp_path: Path) -> None:
    path = tmp_path / "aborts.py"
    path.write_text("import os\nos.abort()\n")
    with pytest.raises(TargetError, match="cannot be loaded: the process died with SIGABRT"):
        open_session(resolve(f"{path}:X"))


def test_a_numpy_backend_has_no_other_device() -> None:
    with pytest.raises(TargetError, match="device='cuda' is not for numpy backends; valid: cpu"):
        resolve("numpy.float32", device="cuda").load()


def test_a_file_sees_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_target.py").write_text(
        "from assay.impl import Contract\nNAME = 'n'\n"
    )
    (tmp_path / "kernels.py").write_text(
        "import neighbour_of_target\ndef kernel(q, k, v):\n    return neighbour_of_target.NAME\n"
    )
    assert resolve(f"{tmp_path}/kernels.py:kernel", op="attention").load().functions


def test_resolving_imports_neither_torch_nor_the_target(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("raise SystemExit('imported')")
    code = (
        "import sys; from assay.impl.loading import resolve; "
        f"resolve('torch.mha'); resolve({str(tmp_path / 'loud.py')!r} + ':X'); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=_environment())


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
