"""Messages between a session and its worker: small ones over a socket, arrays beside them in shared
memory.

The shared memory is a file without a name, known to the two processes alone, so nothing can be left
behind. Its first bytes hold the index of the call in progress, which survives the worker.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import struct
import tempfile
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

_HEADER = struct.Struct("<QQ")
_PROGRESS = struct.Struct("<q")
_READ = 1 << 16
_DATA = 64
_ALIGN = 64


def anonymous_file() -> int:
    """Descriptor of a file in memory that has no name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("assay")
    with tempfile.TemporaryFile() as stream:
        return os.dup(stream.fileno())


class Arena:
    """Shared memory that grows. Arrays of the last message lie in it until the next one is sent."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._map: mmap.mmap | None = None
        self._view = memoryview(b"")

    def at_least(self, size: int) -> memoryview:
        """The memory, grown to ``size`` bytes when it is smaller."""
        if len(self._view) < size:
            length = os.fstat(self.descriptor).st_size
            if length < size:
                length = max(size, 2 * length, 1 << 16)
                os.ftruncate(self.descriptor, length)
            self._map = mmap.mmap(self.descriptor, length)
            self._view = memoryview(self._map)
        return self._view

    @property
    def progress(self) -> int:
        """Index of the call in progress."""
        return int(_PROGRESS.unpack_from(self.at_least(_DATA))[0])

    @progress.setter
    def progress(self, index: int) -> None:
        _PROGRESS.pack_into(self.at_least(_DATA), 0, index)

    def close(self) -> None:
        """Give up the descriptor; the memory goes with the last array that lies in it."""
        self._view, self._map = memoryview(b""), None
        os.close(self.descriptor)


class Channel:
    """One end of the line.

    copy     received arrays are copies, and not views that the next message overwrites
    trusted  the other side may send any object; else only data, since to read a pickled object is
             to run what it names
    """

    def __init__(
        self, sock: socket.socket, arena: Arena, *, copy: bool, trusted: bool = True
    ) -> None:
        self.sock = sock
        self.arena = arena
        self.copy = copy
        self.trusted = trusted
        self._timeout: float | None = None

    def send(self, message: Any) -> None:
        """Write ``message``. OSError when the other side is gone."""
        buffers: list[pickle.PickleBuffer] = []
        stream = BytesIO()
        _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(message)
        raw = [buffer.raw() for buffer in buffers]
        sizes = [view.nbytes for view in raw]
        places, end = _places(sizes)
        memory = self.arena.at_least(end)
        for start, view in zip(places, raw, strict=True):
            memory[start : start + view.nbytes] = view
        payload = stream.getvalue()
        lengths = struct.pack(f"<{len(sizes)}Q", *sizes)
        self.sock.sendall(_HEADER.pack(len(sizes), len(payload)) + lengths + payload)

    def receive(self, timeout: float | None = None) -> Any:
        """The next message. TimeoutError: nothing came in time; EOFError: the other side is gone;
        Forged: it sent what only a trusted side may send.
        """
        if timeout != self._timeout:
            self.sock.settimeout(timeout)
            self._timeout = timeout
        # Messages alternate, so whatever is there belongs to this one: mostly all of it.
        got = self._part()
        while len(got) < _HEADER.size:
            got += self._part()
        count, length = _HEADER.unpack_from(got)
        start = _HEADER.size + 8 * count
        missing = start + length - len(got)
        if missing > 0:
            got = b"".join([got, *self._parts(missing)])
        sizes = struct.unpack_from(f"<{count}Q", got, _HEADER.size)
        places, end = _places(sizes)
        memory = self.arena.at_least(end)
        views = [memory[at : at + size] for at, size in zip(places, sizes, strict=True)]
        payload = memoryview(got)[start:]
        buffers = [bytearray(view) for view in views] if self.copy else views
        if self.trusted:
            return pickle.loads(payload, buffers=buffers)
        return _DataUnpickler(BytesIO(payload), buffers=buffers).load()

    def _parts(self, missing: int) -> list[bytes]:
        parts = []
        while missing > 0:
            parts.append(self._part())
            missing -= len(parts[-1])
        return parts

    def _part(self) -> bytes:
        try:
            part = self.sock.recv(_READ)
        except ConnectionError as error:
            raise EOFError(str(error)) from error
        if not part:
            raise EOFError("the other side closed the line")
        return part

    def close(self) -> None:
        """Close the line and the arena."""
        self.sock.close()
        self.arena.close()


def _places(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where arrays of these sizes lie in the arena, and where the last ends."""
    places, end = [], _DATA
    for size in sizes:
        places.append(end)
        end += -(-size // _ALIGN) * _ALIGN
    return places, end


class _Pickler(pickle.Pickler):
    """Sends arrays of dtypes that numpy does not export as buffers (bfloat16) as their bits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dispatch_table = {np.ndarray: _reduce_array}


def _reduce_array(array: np.ndarray) -> Any:
    if array.dtype.kind != "V" or array.dtype.names is not None:
        return array.__reduce_ex__(5)
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
    return _from_bits, (bits, array.dtype)


class Forged(Exception):
    """A worker sent an object that no reply holds. The message names it."""


_DATA_OBJECTS = frozenset(
    {
        "assay.impl.call.Failure",
        "assay.impl.call.Hygiene",
        "assay.impl.call.Reply",
        "assay.impl.contract.Contract",
        "assay.impl.description.Description",
        "assay.impl.protocol.Unavailable",
        "assay.impl.transport._from_bits",
        "assay.impl.worker.Absent",
        "assay.impl.worker.Ready",
        "assay.impl.worker.Refused",
        "ml_dtypes.bfloat16",
        "numpy._core.multiarray._reconstruct",
        "numpy._core.numeric._frombuffer",
        "numpy.core.multiarray._reconstruct",
        "numpy.core.numeric._frombuffer",
        "numpy.dtype",
        "numpy.ndarray",
    }
)


class _DataUnpickler(pickle.Unpickler):
    """Reads replies, descriptions and arrays, and nothing that would run."""

    def find_class(self, module: str, name: str) -> Any:
        """The class or function of this name, where a reply may hold it."""
        if f"{module}.{name}" not in _DATA_OBJECTS:
            raise Forged(f"the worker sent a message that names {module}.{name}, as no reply does")
        return super().find_class(module, name)


def _from_bits(bits: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    return bits.view(dtype)
