"""From the text of a target to a backend: built-in name, installed entry point, module:attr or
file.py:attr.

``resolve`` looks without importing; ``Target.load`` imports, in the process that runs the backend.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from assay.impl.adapt import adapt
from assay.impl.contract import Contract
from assay.impl.protocol import Backend, HostName, Unavailable
from assay.impl.registry import BACKENDS, Builtin
from assay.impl.signatures import SIGNATURES

GROUP = "assay.backends"
_MENTIONS_TORCH = re.compile(r"\b(import|from)\s+torch\b|\bTorchBackend\b")
_MENTIONS_JAX = re.compile(r"\b(import|from)\s+jax\b|\b(Jax|Padded)Backend\b")


class TargetError(Exception):
    """A target cannot be loaded. The message says what was given, the rule, and what is valid."""


@dataclass(frozen=True)
class Target:
    """Where a backend is to be loaded from. Holds names only, so that it can be sent to another
    process.

    text   as the user gave it;  kind and place: a module's name or a file's absolute path
    attr   the name in it, dotted where nested;  op: for plain functions;  device: overrides the
           contract's
    """

    text: str
    kind: Literal["module", "file"]
    place: str
    attr: str
    op: str | None = None
    device: str | None = None

    def load(self) -> Backend:
        """Import and build the backend. Unavailable: it cannot run on this machine. TargetError for
        everything else that can go wrong in user code.
        """
        self.check_needs()
        module = self._import()
        value = self._attribute(module)
        backend = self._backend(value)
        if self.device is not None and isinstance(getattr(backend, "contract", None), Contract):
            backend.contract = replace(backend.contract, device=self.device)
        builtin = _builtin(self.text)
        if builtin is not None and builtin.device:
            _move(backend, builtin)
        check_backend(backend, self.text)
        return backend

    def source(self) -> Path | None:
        """The file that defines the target, found without importing it; None where there is
        none.
        """
        if self.kind == "file":
            return Path(self.place)
        try:
            spec = importlib.util.find_spec(self.place)
        except (ImportError, ValueError, AttributeError):
            return None
        return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None

    def host_hint(self) -> HostName:
        """Which array library it seems to need, read from the source. A wrong guess costs time
        only.
        """
        source = self.source()
        try:
            text = source.read_text(encoding="utf-8") if source is not None else ""
        except (OSError, UnicodeDecodeError):
            return "numpy"
        if _MENTIONS_TORCH.search(text):
            return "torch"
        return "jax" if _MENTIONS_JAX.search(text) else "numpy"

    @property
    def heavy(self) -> tuple[str, ...]:
        """Modules that its worker should find imported, since that takes seconds."""
        builtin = _builtin(self.text)
        return () if builtin is None else builtin.heavy

    def check_needs(self) -> None:
        """Unavailable where a built-in backend lacks a library, or kernels of one for its device,
        found without importing it.
        """
        builtin = _builtin(self.text)
        if builtin is not None and builtin.missing:
            raise Unavailable(_not_installed(builtin.missing), builtin.remedy)
        if builtin is not None and builtin.lacks_kernels:
            reason = f"torch is installed without kernels for {builtin.device}"
            raise Unavailable(reason, "pip install --force-reinstall torch, where there is a GPU")

    def _import(self) -> ModuleType:
        try:
            return (
                _import_file(Path(self.place))
                if self.kind == "file"
                else _import_module(self.place)
            )
        except Unavailable:
            raise
        except (Exception, SystemExit) as error:
            where = _user_line(error, self.place)
            raise TargetError(
                f"target={self.text!r} cannot be imported: {type(error).__name__}: {error}{where}"
            ) from error

    def _attribute(self, module: ModuleType) -> Any:
        value: Any = module
        for name in self.attr.split("."):
            if not hasattr(value, name):
                valid = _candidates(module)
                raise TargetError(
                    f"target={self.text!r} has no attribute {self.attr!r}; "
                    f"valid: {', '.join(valid) or 'none'}"
                )
            value = getattr(value, name)
        return value

    def _backend(self, value: Any) -> Backend:
        try:
            if inspect.isclass(value) and issubclass(value, Backend):
                return value()
        except Unavailable:
            raise
        except Exception as error:
            where = _user_line(error, self.place)
            raise TargetError(
                f"target={self.text!r} cannot be built: {type(error).__name__}: {error}{where}"
            ) from error
        if isinstance(value, Backend):
            return value
        if inspect.isclass(value) or not callable(value):
            raise TargetError(
                f"target={self.text!r} is a {type(value).__name__}; "
                "valid: a subclass or an instance of NumpyBackend, TorchBackend or JaxBackend, "
                "or a function together with the op that it computes"
            )
        return self._function(value)

    def _function(self, value: Callable[..., Any]) -> Backend:
        if self.op is None:
            raise TargetError(
                f"target={self.text!r} is a plain function; say which op it computes (--op), "
                f"one of: {', '.join(sorted(SIGNATURES))}"
            )
        try:
            return adapt(value, self.op, name=self.attr)
        except (TypeError, ValueError) as error:
            raise TargetError(
                f"target={self.text!r} cannot be adapted to {self.op}: {error}"
            ) from error


def _builtin(text: str) -> Builtin | None:
    """The built-in backend of this name."""
    return next((b for b in BACKENDS if b.name == text), None)


def _move(backend: Backend, builtin: Builtin) -> None:
    """Put a built-in backend on its own device, where sums may be taken in any order: torch names
    kernels that add atomically. Unavailable: this machine has no such device.
    """
    backend.contract = replace(
        backend.contract, name=builtin.name, device=builtin.device, deterministic=False
    )
    lacking = backend.host().unavailable()
    if lacking:
        raise Unavailable(lacking)


def _not_installed(modules: tuple[str, ...]) -> str:
    """A reason in words.

    >>> _not_installed(("onnx", "onnxruntime"))
    'modules onnx, onnxruntime are not installed'
    """
    plural = len(modules) > 1
    return f"module{'s'[:plural]} {', '.join(modules)} {'are' if plural else 'is'} not installed"


def check_backend(backend: Backend, text: str) -> None:
    """TargetError unless ``backend`` has a contract, a usable device, and ops whose methods can be
    called.
    """
    contract = getattr(backend, "contract", None)
    if not isinstance(contract, Contract):
        raise TargetError(
            f"target={text!r} has contract={contract!r}; "
            "set contract = Contract(name=...) in its class"
        )
    if backend.host_name == "numpy" and contract.device != "cpu":
        raise TargetError(
            f"target={text!r}: device={contract.device!r} is not for numpy backends; valid: cpu"
        )
    try:
        backend.host()
    except RuntimeError as error:
        raise TargetError(
            f"target={text!r}: device={contract.device!r} is no torch device: {error}"
        ) from error
    try:
        found = backend.operations()
        backend.derivatives()
    except (TypeError, ValueError) as error:
        raise TargetError(f"target={text!r} cannot be called: {error}") from error
    if not found:
        raise TargetError(
            f"target={text!r} implements no op; mark its methods with @implements(op), "
            f"op one of: {', '.join(sorted(SIGNATURES))}"
        )


def resolve(text: str, *, op: str | None = None, device: str | None = None) -> Target:
    """The target that ``text`` names. TargetError says what is valid; nothing of the user's is
    imported.
    """
    if op is not None and op not in SIGNATURES:
        raise TargetError(
            f"op={op!r} is not in the catalogue; valid: {', '.join(sorted(SIGNATURES))}"
        )
    place, colon, attr = text.rpartition(":")
    if not colon:
        return _named(text, op, device)
    if not place or not attr or not all(part.isidentifier() for part in attr.split(".")):
        raise TargetError(
            f"target={text!r} must be module:attr or file.py:attr, attr being a name in it"
        )
    if place.endswith(".py") or "/" in place or os.sep in place:
        return _in_file(text, place, attr, op, device)
    return _in_module(text, place, attr, op, device)


def _in_file(text: str, place: str, attr: str, op: str | None, device: str | None) -> Target:
    path = Path(place).expanduser()
    if not path.is_file():
        beside = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=5, cutoff=0.0)
        raise TargetError(
            f"target={text!r}: file {str(path)!r} does not exist; "
            f"Python files beside it: {', '.join(near) or 'none'}"
        )
    return Target(text, "file", str(path.resolve()), attr, op, device)


def _in_module(text: str, place: str, attr: str, op: str | None, device: str | None) -> Target:
    top = place.partition(".")[0]
    _see_current_folder()
    try:
        # Only the top package is looked up: finding a submodule would import its parents.
        known = top in sys.modules or importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        known = False
    if not known:
        raise TargetError(
            f"target={text!r}: module {top!r} is not installed and not in {os.getcwd()!r}; "
            "valid: an importable module:attr, file.py:attr, or a name from `assay list backends`"
        )
    return Target(text, "module", place, attr, op, device)


def _named(text: str, op: str | None, device: str | None) -> Target:
    locations = {b.name: b.location for b in BACKENDS}
    locations.update(
        {name: point.value for name, point in installed().items() if name not in locations}
    )
    if text not in locations:
        near = difflib.get_close_matches(text, locations, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        if text.endswith(".py"):
            hint = f"; for a file, name what is to be tested in it: {text}:MyBackend"
        raise TargetError(
            f"target={text!r} is no known backend{hint} Valid: {', '.join(sorted(locations))}, "
            "module:attr or file.py:attr"
        )
    place, _, attr = locations[text].partition(":")
    return Target(text, "module", place, attr.partition("[")[0].strip(), op, device)


def installed() -> dict[str, EntryPoint]:
    """Backends that other packages ship through the entry point group ``assay.backends``, by
    name.
    """
    return {point.name: point for point in entry_points(group=GROUP)}


def _import_module(name: str) -> ModuleType:
    _see_current_folder()
    return importlib.import_module(name)


def _see_current_folder() -> None:
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())


def _import_file(path: Path) -> ModuleType:
    name = f"_assay_target_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _user_line(error: BaseException, place: str) -> str:
    """(file, line N): the innermost line of the user's own file, else of whatever raised last."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    all_frames = traceback.extract_tb(error.__traceback__)
    frames = [
        f
        for f in all_frames
        if f.filename != __file__ and not f.filename.startswith("<frozen importlib")
    ]
    own = [f for f in frames if f.filename == place]
    if not (own or frames):
        return ""
    frame = (own or frames)[-1]
    return f" ({frame.filename}, line {frame.lineno})"


def _candidates(module: ModuleType) -> list[str]:
    """Public names of a module that could be targets: backends first, else everything callable of
    its own.
    """
    public = {n: v for n, v in vars(module).items() if not n.startswith("_")}
    own = {
        n: v
        for n, v in public.items()
        if getattr(v, "__module__", module.__name__) == module.__name__
    }
    backends = [
        n
        for n, v in own.items()
        if isinstance(v, Backend) or (inspect.isclass(v) and issubclass(v, Backend))
    ]
    return sorted(backends or (n for n, v in own.items() if callable(v)))
