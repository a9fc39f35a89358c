"""Known findings: what a file may hold, what it covers, when an entry is stale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.properties.known import Entry, Known, KnownError, apply, load
from assay.properties.results import Cell, CellKey, Result
from tests.cli.samples import FUTURE

ENTRY = Entry(
    backend="my-*", claim="attention.future_zero", reason="the kernel aligns at the top left"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "known.toml"
    path.write_text(text)
    return path


def test_file_is_read_with_all_its_fields(tmp_path: Path) -> None:
    text = """
    [[known]]
    backend = "torch.*"
    claim = "attention.scale"
    dtype = "float32"
    mode = "grad"
    hint = "NaN*"
    reason = "upstream"
    versions = { torch = "2.13.*" }
    link = "https://example.org/1"
    reproducer = "bugs/1.py"
    """
    (entry,) = load(write(tmp_path, text)).entries
    assert entry.dtype == "float32"
    assert entry.versions == {"torch": "2.13.*"}
    assert entry.reproducer == "bugs/1.py"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("known = 3", "[[known]] tables only"),
        ("[other]", "['other']"),
        ("x = [", "is not TOML"),
        ('[[known]]\nbackend = "a"\nclaim = "b"', "['reason'] must be given"),
        ('[[known]]\nbackend = "a"\nclaim = "b"\nreason = ""', "['reason'] must be given"),
        (
            '[[known]]\nbackend = "a"\nclaim = "b"\nreason = "c"\ndtyp = "d"',
            "['dtyp'] is not a key; valid: [",
        ),
        ('[[known]]\nbackend = 3\nclaim = "b"\nreason = "c"', "backend=3 must be text"),
        (
            '[[known]]\nbackend = "a"\nclaim = "b"\nreason = "c"\nversions = "2"',
            "must be a table of package = glob",
        ),
    ],
)
def test_bad_file_names_the_entry_and_what_is_valid(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(KnownError) as caught:
        load(write(tmp_path, text))
    assert said in str(caught.value)
    assert "known.toml" in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KnownError, match=r"nowhere\.toml: No such file"):
        load(tmp_path / "nowhere.toml")


def test_expected_finding_carries_its_reason_and_others_none(faulty: Result) -> None:
    marked, stale = apply(Known((replace(ENTRY, link="https://example.org"),)), faulty)
    reasons = {f.claim: f.known for f in marked.findings}
    assert reasons == {
        "attention.future_zero": "the kernel aligns at the top left <https://example.org>",
        "attention.refines": "",
    }
    assert stale == ()


@pytest.mark.parametrize(
    "narrower",
    [
        {"backend": "other"},
        {"claim": "attention.refines"},
        {"op": "attention"},
        {"dtype": "float16"},
        {"mode": "grad"},
        {"hint": "NaN*"},
        {"versions": {"torch": "2.14.*"}},
        {"versions": {"jax": "*.*"}},
        {"versions": {"torch": "2.13.*", "cpu": "*AMX*"}},
    ],
)
def test_entry_covers_only_what_matches_all_its_globs(
    faulty: Result, narrower: dict[str, object]
) -> None:
    entry = replace(ENTRY, **narrower)  # type: ignore[arg-type]
    marked, _ = apply(Known((entry,)), faulty)
    assert next(f for f in marked.findings if f.claim == "attention.future_zero").known == ""


def test_claim_glob_may_name_the_property_variant(faulty: Result) -> None:
    marked, _ = apply(Known((replace(ENTRY, claim="attention.future_zero@keys"),)), faulty)
    assert next(f for f in marked.findings if f.id == FUTURE.id).known


def result_with(sound: Result, *verdicts: str) -> Result:
    """A campaign with one cell of the entry for each verdict."""
    key = CellKey("my-flash", "attention.future_zero", "float32")
    cells = tuple(
        Cell(replace(key, mode=str(i)), key.property, verdict)  # type: ignore[arg-type]
        for i, verdict in enumerate(verdicts)
    )
    return replace(sound, cells=(*sound.cells, *cells))


@pytest.mark.parametrize(
    ("verdicts", "stale"),
    [
        (("held",), True),
        (("held", "unsupported"), True),
        (("held", "violated"), False),
        (("held", "flaky"), False),
        (("held", "inconclusive"), False),
        (("unsupported",), False),
        ((), False),
    ],
)
def test_entry_is_stale_only_when_its_cells_ran_and_none_failed(
    sound: Result, verdicts: tuple[str, ...], stale: bool
) -> None:
    _, found = apply(Known((ENTRY,)), result_with(sound, *verdicts))
    assert bool(found) is stale


def test_entry_is_not_stale_when_a_cell_ran_out_of_time(sound: Result) -> None:
    result = result_with(sound, "held", "held")
    cut = replace(result, cells=(*result.cells[:-1], replace(result.cells[-1], cut=True)))
    assert apply(Known((ENTRY,)), cut)[1] == ()


def test_entry_speaks_of_its_op_only(sound: Result) -> None:
    entry = replace(ENTRY, op="attention")
    assert apply(Known((entry,)), result_with(sound, "held"))[1] == ()
    assert "of attention" in str(entry)


def test_entry_for_another_version_is_not_stale(sound: Result) -> None:
    entry = replace(ENTRY, versions={"torch": "1.*"})
    assert apply(Known((entry,)), result_with(sound, "held"))[1] == ()


def test_a_rare_entry_is_never_stale(sound: Result) -> None:
    entry = replace(ENTRY, rare=True)
    assert apply(Known((entry,)), result_with(sound, "held"))[1] == ()
