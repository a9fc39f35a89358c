"""Running properties over a member of the zoo, to see what they find and how fast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from assay.properties.adversarial import adversary
from assay.properties.budget import unlimited
from assay.properties.executor import LocalExecutor
from assay.properties.plan import Selection, cells
from assay.properties.profiles import Profile
from assay.properties.results import Cell


def examine(
    target: str,
    profile: Profile,
    *,
    claims: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    seed: int = 0,
    isolated: bool = False,
    adversarial: bool = False,
) -> Iterator[Cell]:
    """The cells of ``target`` under ``profile`` as they end: of all its claims and dtypes, or of
    those named; ``isolated`` in a worker, ``adversarial`` in one that is kept in the dark.
    """
    selection = Selection(
        None, None if claims is None else tuple(claims), None if dtypes is None else tuple(dtypes)
    )

    def fresh() -> Session:
        return open_session(
            resolve(target),
            isolate=isolated or adversarial,
            timeout=profile.timeout,
            adversary=adversary(seed) if adversarial else None,
        )

    with fresh() as session:
        keys = cells(session.description, selection, profile)
        yield from LocalExecutor(session, fresh).run(keys, profile, seed, unlimited())
