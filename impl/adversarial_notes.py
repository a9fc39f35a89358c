"""What the source of a backend suggests to a careful reader, found without running it.

A note is no verdict: a sound kernel may catch exceptions and call its host's softmax. It says where
to look when a kernel was written by somebody who is paid for looking right.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from assay.impl.loading import Target

_HOSTS = ("torch", "jax", "flax", "tensorflow", "onnxruntime", "xformers", "flash_attn", "scipy")
_HOST_OPS = re.compile(
    r"(.*_)?(attention(_forward)?|attn_func|softmax|logsumexp|norm|entropy|nll_loss|mse_loss|kl_div"
    r"|linear|embedding|gelu|silu|einsum|i?rfft[2n]?|i?fft[2n]?|associative_scan|standardize)"
    r"|conv(_transpose)?[123]d|(max|avg)_pool[123]d"
    r"|(MultiheadAttention|Transformer\w*|\w*Norm([123]d)?|Linear|Embedding|\w*Loss|GELU|SiLU"
    r"|Conv(Transpose)?[123]d|(Max|Avg)Pool[123]d|(LSTM|GRU|RNN)(Cell)?)"
)
_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("inspect", "gc", "ctypes", "traceback", "dis"), "looks around in its process"),
    **dict.fromkeys(("time", "datetime"), "asks for the time"),
    **dict.fromkeys(("subprocess", "multiprocessing", "socket"), "starts or asks other programs"),
    **dict.fromkeys(("threading", "concurrent"), "goes on after it returned, or beside itself"),
    **dict.fromkeys(("assay.spec", "assay.properties", "assay.proofs"), "asks for the reference"),
    **dict.fromkeys(("assay.impl.runner", "assay.impl.buffers"), "asks for the runner's own parts"),
}
_ATTRIBUTES: Mapping[str, str] = {
    **dict.fromkeys(("environ", "getenv", "argv", "getpid"), "reads its environment"),
    **dict.fromkeys(
        ("_getframe", "f_back", "f_locals", "f_globals", "__globals__", "__closure__", "modules"),
        "looks around in its process",
    ),
    **dict.fromkeys(("data_ptr", "__array_interface__"), "asks where its inputs lie"),
}
_CALLS: Mapping[str, str] = {
    **dict.fromkeys(("exec", "eval", "__import__", "import_module"), "runs code that it makes up"),
    **dict.fromkeys(("id",), "asks where its inputs lie"),
    **dict.fromkeys(("lru_cache", "cache"), "remembers results"),
}
_LEAST_SIZE = 16
_Found = Iterator[tuple[int, str]]


def static_notes(target: Target) -> tuple[str, ...]:
    """Notes on the file that defines ``target``, in the order of its lines: "file:line: text"."""
    source = target.source()
    if source is None:
        return (f"{target.text}: its source cannot be found, so nobody has read it",)
    return notes_on(source)


def notes_on(source: Path) -> tuple[str, ...]:
    """Notes on one file; a file that cannot be read as Python is one too."""
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
        return (f"{source.name}: cannot be read as Python: {error}",)
    names = _imported(tree)
    found = {note for node in ast.walk(tree) for finder in _FINDERS for note in finder(node, names)}
    return tuple(f"{source.name}:{line}: {text}" for line, text in sorted(found))


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for, with its module: {"F": "torch.nn.functional"}."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _path(node: ast.AST, names: Mapping[str, str]) -> str:
    """The full name of an expression that starts at an import, else "".

    >>> _path(ast.parse("F.softmax", mode="eval").body, {"F": "torch.nn.functional"})
    'torch.nn.functional.softmax'
    """
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(parts)])


def _host_ops(node: ast.AST, names: Mapping[str, str]) -> _Found:
    """Calls of a library's own operation, which may be the very op under test."""
    if isinstance(node, ast.Call):
        path = _path(node.func, names)
        if path.partition(".")[0] in _HOSTS and _HOST_OPS.fullmatch(path.rpartition(".")[2]):
            yield node.lineno, f"calls {path}: the host's own operation"


def _fallbacks(node: ast.AST, names: Mapping[str, str]) -> _Found:
    """Handlers that go on instead of raising: what runs may not be what is shown."""
    if isinstance(node, ast.ExceptHandler) and not any(
        isinstance(inner, ast.Raise) for inner in ast.walk(node)
    ):
        yield node.lineno, "catches an exception and goes on: a fallback"


def _shape_tables(node: ast.AST, names: Mapping[str, str]) -> _Found:
    """Shapes and sizes that are written down."""
    if isinstance(node, ast.Dict) and any(_is_shape(key) for key in node.keys):
        yield node.lineno, "a table of shapes"
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        literal = any(_is_shape(inner) for side in sides for inner in ast.walk(side))
        if literal and any(_mentions_shape(side) for side in sides):
            yield node.lineno, "compares a shape with one that is written down"
        elif any(map(_is_size, sides)) and any(map(_mentions_shape, sides)):
            yield node.lineno, "compares a length with one that is written down"


def _is_shape(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Tuple)
        and len(node.elts) >= 2
        and all(isinstance(e, ast.Constant) and type(e.value) is int for e in node.elts)
    )


def _is_size(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > _LEAST_SIZE


def _mentions_shape(node: ast.AST) -> bool:
    wanted = ("shape", "size", "numel")
    return any(isinstance(n, ast.Attribute) and n.attr in wanted for n in ast.walk(node))


def _modules(node: ast.AST, names: Mapping[str, str]) -> _Found:
    """Imports of what a kernel has no need of."""
    if isinstance(node, ast.Import):
        paths = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        paths = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    for path in paths:
        for module, text in _MODULES.items():
            if path == module or path.startswith(f"{module}."):
                yield node.lineno, f"imports {path}: {text}"


def _attributes(node: ast.AST, names: Mapping[str, str]) -> _Found:
    """Attributes and functions that tell where a kernel runs, and on what."""
    if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
        yield node.lineno, f"reads {ast.unparse(node)}: {_ATTRIBUTES[node.attr]}"
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = _path(node, names) or (node.id if isinstance(node, ast.Name) else "")
        called = name.rpartition(".")[2]
        if called in _CALLS and name in (called, f"functools.{called}", f"importlib.{called}"):
            yield node.lineno, f"uses {called}: {_CALLS[called]}"


def _patches(node: ast.AST, names: Mapping[str, str]) -> _Found:
    """Functions of imported modules and classes that are replaced."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = [target for target in node.targets if isinstance(target, ast.Attribute)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        targets = node.args[:1] if node.func.id in ("setattr", "delattr") else []
    for target in targets:
        if path := _path(target, names):
            yield target.lineno, f"changes {path}: somebody else's"


_FINDERS: tuple[Callable[[ast.AST, Mapping[str, str]], _Found], ...] = (
    _host_ops,
    _fallbacks,
    _shape_tables,
    _modules,
    _attributes,
    _patches,
)
