"""What a loaded backend is, as plain data that can leave its process."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

from assay.impl.contract import Contract
from assay.impl.protocol import Backend, HostName


@dataclass(frozen=True)
class Description:
    """What a loaded backend is, as plain data.

    contract        as the adapter bears it out: default modes of its host, ``square`` alignment
                    without ``offset``
    operations      accepted keywords by op; None: all
    gradients       ops whose gradients can be asked for, in ``gradient_modes``
    versions        of Python, the host's library, and the packages that the contract requires
    """

    contract: Contract
    operations: Mapping[str, tuple[str, ...] | None]
    gradients: tuple[str, ...]
    gradient_modes: tuple[str, ...]
    versions: Mapping[str, str]
    host: HostName


def describe(backend: Backend) -> Description:
    """The description of a loaded backend."""
    operations = backend.operations()
    return Description(
        contract=backend.effective_contract(),
        operations={op: operation.accepted for op, operation in operations.items()},
        gradients=tuple(op for op in operations if backend.differentiates(op)),
        gradient_modes=backend.gradient_modes(),
        versions={
            "python": platform.python_version(),
            **_installed(backend.contract.requires),
            **backend.host().versions(),
        },
        host=backend.host_name,
    )


def _installed(requires: tuple[str, ...]) -> dict[str, str]:
    """The versions of the packages that are named; of tools and missing packages, none."""
    found = {}
    for text in requires:
        name = re.split(r"[^\w.-]", text.strip())[0]
        try:
            found[name] = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return found
