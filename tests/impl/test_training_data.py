"""Data that is generated obeys its laws; data that cannot be learnt from is refused."""

from __future__ import annotations

import re
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from assay.impl.training import arrays, burgers, series, shapes, text
from assay.impl.training.data import DataError

# -- Burgers' equation


def waves(count: int, points: int) -> np.ndarray:
    return burgers.initial(np.random.default_rng(1), count, points)


def test_the_mean_is_kept_and_the_energy_falls() -> None:
    start = waves(16, 128)
    times = [burgers.solve(start, time=t) for t in (0.1, 0.2, 0.3, 0.4)]
    energies = [(u**2).mean(axis=1) for u in (start, *times)]
    for u in times:
        # Sums of 128 numbers, and some hundred steps that add 0 to the mean.
        assert np.abs(u.mean(axis=1) - start.mean(axis=1)).max() < 1e-13
    for before, after in pairwise(energies):
        assert (after < before).all()


def test_energy_falls_by_what_viscosity_takes() -> None:
    """d/dt mean(u² / 2) = -nu mean(u_x²), where a waves' derivatives are exact."""
    start, dt = waves(8, 128), 1e-4
    wave = 2j * np.pi * np.arange(65)
    slope = np.fft.irfft(wave * np.fft.rfft(start, axis=1), 128, axis=1)
    lost = (start**2).mean(axis=1) / 2 - (burgers.solve(start, time=dt) ** 2).mean(axis=1) / 2
    assert lost / dt == pytest.approx(burgers.VISCOSITY * (slope**2).mean(axis=1), rel=0.01)


def test_a_finer_grid_gives_the_same_solution() -> None:
    start = waves(32, 512)
    fine = burgers.solve(start)[:, ::8]
    away = [
        np.abs(burgers.solve(start[:, :: 512 // n])[:, :: n // 64] - fine).max() for n in (64, 128)
    ]
    assert away[1] < 1e-6
    assert away[1] < away[0] / 100


def cole_hopf(x: np.ndarray, time: float, nu: float) -> np.ndarray:
    """The solution from u = sin(2 pi x): -2 nu phi_x / phi, where phi is a heat flow.

    phi(x, 0) = exp(cos(2 pi x) / (4 pi nu)), whose Fourier series decays by the heat kernel.
    """
    n = len(x)
    phi = np.fft.rfft(np.exp(np.cos(2 * np.pi * x) / (4 * np.pi * nu)))
    k = 2 * np.pi * np.arange(n // 2 + 1)
    phi = phi * np.exp(-nu * k**2 * time)
    return -2 * nu * np.fft.irfft(1j * k * phi, n) / np.fft.irfft(phi, n)


def test_it_nears_the_solution_by_cole_and_hopf_as_the_fourth_power_of_a_step() -> None:
    errors = []
    for points in (128, 256):  # a step is half as long on the finer grid
        x = np.arange(points) / points
        found = burgers.solve(np.sin(2 * np.pi * x)[None], viscosity=0.02, time=0.3)[0]
        errors.append(np.abs(found - cole_hopf(x, 0.3, 0.02)).max())
    assert errors[0] < 1e-6
    assert 12 < errors[0] / errors[1] < 20


def test_a_shifted_start_gives_a_shifted_solution() -> None:
    start = waves(4, 128)
    assert np.roll(burgers.solve(start), 5, axis=1) == pytest.approx(
        burgers.solve(np.roll(start, 5, axis=1)), abs=1e-12
    )


def test_fields_on_any_grid() -> None:
    coarse, fine = burgers.generated(3, (32,)), burgers.generated(3, (64,))
    assert coarse.learnt.inputs.shape == (128, 32, 1)
    assert coarse.held.targets.shape == (32, 32, 1)
    assert (fine.held.targets[:, ::2] == coarse.held.targets).all()
    assert burgers.generated(0, (100,)).held.inputs.shape == (32, 100, 1)


# -- Text


def phrases(symbol: str) -> list[str]:
    """Every text of a symbol, as often as it has derivations."""
    found = []
    for phrase in text.GRAMMAR[symbol]:
        parts = [phrases(name) for name in text.SYMBOL.findall(phrase)]
        frame = text.SYMBOL.sub("{}", phrase)
        found += [frame.format(*chosen) for chosen in product(*parts)]
    return found


@pytest.mark.parametrize("symbol", [s for s in text.GRAMMAR if s != "SENTENCE"])
def test_no_phrase_has_two_derivations(symbol: str) -> None:
    found = phrases(symbol)
    assert len(set(found)) == len(found)


def test_entropy_and_length_are_those_of_all_phrases() -> None:
    entropy, length = text.entropy_and_length(text.GRAMMAR, "ONE")
    found = phrases("ONE")  # all as likely
    assert entropy == pytest.approx(np.log(len(found)))
    assert length == pytest.approx(np.mean([len(x) for x in found]))


def test_a_seed_gives_a_text_again_and_another_seed_another_one() -> None:
    assert text.composed(1, 500) == text.composed(1, 500)
    assert text.composed(1, 500) != text.composed(2, 500)


def test_sentences_are_of_the_grammar() -> None:
    one, many, other = (set(phrases(s)) for s in ("ONE", "MANY", "OTHER"))
    for sentence in text.composed(0, 5000).split("\n")[:-1]:
        found = re.fullmatch(r"(.*) (sees|follows|greets|paints) (.*)\.", sentence)
        if found:
            assert found[1] in one
            assert found[3] in other
        found = re.fullmatch(r"(.*) (see|follow|greet|paint) (.*)\.", sentence)
        if found:
            assert found[1] in many
            assert found[3] in other


def test_targets_are_the_next_characters_and_nothing_is_learnt_that_is_held() -> None:
    problem = text.problem("x", text.composed(0, 4000), 65, 16)
    for part in (problem.learnt, problem.held):
        assert (part.inputs[:, 1:] == part.targets[:, :-1]).all()
    whole, _ = text.encode(text.composed(0, 4000))
    assert (problem.learnt.inputs[-1] == whole[3600 - 17 : 3600 - 1]).all()
    assert (problem.held.inputs[0] == whole[3600 : 3600 + 16]).all()
    # Windows of 17 start every 16 characters of 400.
    assert len(problem.held.inputs) == (400 - 17) // 16 + 1
    ids = problem.held.inputs[0]
    assert "".join(problem.alphabet[i] for i in ids) == text.composed(0, 4000)[3600:3616]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "0 bytes must be a text; valid: UTF-8 that is not empty"),
        (b"ab\xffcd", "byte 2 (0xff) is not UTF-8; valid: text in UTF-8"),
        ("é".encode("latin-1"), "byte 0 (0xe9) is not UTF-8"),
    ],
)
def test_a_corpus_that_is_no_text(raw: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_bytes(raw)
    with pytest.raises(DataError, match=re.escape(f"{file}: {said}")):
        text.read(file)


def test_the_shortest_corpus_and_one_character_less() -> None:
    found = text.problem("c", "ab" * 25, 2, 4)
    assert len(found.held.inputs) == 1
    with pytest.raises(DataError, match="c: 49 characters are too few for context=4; valid: 50 or"):
        text.problem("c", "ab" * 24 + "a", 2, 4)


def test_as_many_symbols_as_the_vocabulary_and_one_more() -> None:
    assert text.problem("c", "abc" * 20, 3, 4).alphabet == "abc"
    with pytest.raises(DataError) as caught:
        text.problem("c", "abcé" * 20, 3, 4)
    assert str(caught.value) == (
        "c: 4 distinct characters exceed vocabulary=3, from 'é' on; "
        "valid: --set vocabulary=4 or more"
    )


# -- Images


def test_shapes_and_colours_are_told_apart_on_the_smallest_image() -> None:
    grid = np.stack(np.meshgrid(*[(np.arange(4) + 0.5) / 2 - 1] * 2, indexing="ij"))
    masks = [tuple(inside(grid).ravel()) for inside in shapes.SHAPES.values()]
    assert len(set(masks)) == len(shapes.SHAPES)
    assert len(set(shapes.colours(3))) == 7


def test_images_and_classes() -> None:
    problem = shapes.generated(0, 3, (6, 9), 35)
    assert problem.learnt.inputs.shape == (800, 3, 6, 9)
    assert (problem.held.targets.sum(axis=1) == 1).all()
    assert set(problem.learnt.targets.argmax(axis=1)) == set(range(35))
    again = shapes.generated(0, 3, (6, 9), 35)
    assert (again.held.inputs == problem.held.inputs).all()


def test_an_image_has_the_colour_of_its_class() -> None:
    problem = shapes.generated(0, 3, (8, 8), 10)
    light = problem.learnt.inputs.mean(axis=(2, 3))
    assert (light.argmax(axis=1) == problem.learnt.targets.argmax(axis=1) // 5).all()


@pytest.mark.parametrize(
    ("channels", "spatial", "classes", "said"),
    [
        (3, (8,), 10, r"spatial=\(8,\) has no shapes; valid: two extents of 4 or more"),
        (3, (8, 3), 10, r"spatial=\(8, 3\) has no shapes"),
        (3, (8, 8), 36, "classes=36 cannot be told apart.* channels=3; valid: 2 to 35"),
        (1, (8, 8), 6, "valid: 2 to 5"),
        (3, (8, 8), 1, "classes=1"),
    ],
)
def test_images_that_have_no_shapes(
    channels: int, spatial: tuple[int, ...], classes: int, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        shapes.generated(0, channels, spatial, classes)


# -- Series


def test_an_oscillator_answers_a_push_by_its_impulse_response() -> None:
    angle = np.array([0.7])
    push = np.zeros((1, 30, 1))
    push[0, 0, 0] = 1.0
    n = np.arange(30)
    r = series.DAMPING
    due = series.gain(angle) * r**n * np.sin(0.7 * (n + 1)) / np.sin(0.7)
    assert series.oscillate(push, angle)[0, :, 0] == pytest.approx(due, abs=1e-12)


def test_the_variance_is_1_where_pushes_go_on() -> None:
    """It is the sum of the squares of the impulse response."""
    for angle in (np.pi / 6, 1.0, np.pi / 2):
        push = np.zeros((1, 400, 1))
        push[0, 0, 0] = 1.0
        assert (series.oscillate(push, np.array([angle])) ** 2).sum() == pytest.approx(1.0)


def test_series_of_any_sizes() -> None:
    problem = series.generated(0, 3, 2, 7)
    assert problem.learnt.inputs.shape == (256, 7, 3)
    assert problem.held.targets.shape == (64, 7, 2)


# -- Arrays of the user's


def stored(file: Path, **content: np.ndarray) -> Path:
    np.savez(file, **content)  # type: ignore[arg-type]
    return file


def test_arrays_are_read_and_split(tmp_path: Path) -> None:
    x, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 3
    file = stored(tmp_path / "a.npz", inputs=x.astype(np.float32), targets=y.astype(np.int8))
    problem = arrays.read(file, (2,), (), classes=3)
    assert (problem.learnt.inputs == x[:8]).all()
    assert (problem.held.targets.argmax(axis=1) == y[8:]).all()


X, Y = np.zeros((5, 2)), np.zeros((5, 1))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"inputs": X}, "has no array targets; valid: inputs and targets"),
        ({"x": X}, "has no array inputs, targets"),
        ({"inputs": X[:, :1], "targets": Y}, "inputs [5, 1] must be examples; valid: [N, 2]"),
        ({"inputs": X, "targets": Y[:, 0]}, "targets [5] must be examples; valid: [N, 1]"),
        ({"inputs": X > 0, "targets": Y}, "inputs of bool must be numbers; valid: real numbers"),
        ({"inputs": X + 1j, "targets": Y}, "inputs of complex128 must be numbers"),
        ({"inputs": X.astype(object), "targets": Y}, "inputs of object must be numbers"),
        ({"inputs": X[:4], "targets": Y[:4]}, "4 examples are too few; valid: 5 or more"),
        ({"inputs": X, "targets": np.zeros((6, 1))}, "5 inputs and 6 targets; valid: as many"),
        ({"inputs": X + np.inf, "targets": Y}, "inputs has 10 numbers that are not finite"),
        ({"inputs": X, "targets": Y * np.nan}, "targets has 5 numbers that are not finite"),
    ],
)
def test_arrays_that_cannot_be_learnt(
    content: dict[str, np.ndarray], said: str, tmp_path: Path
) -> None:
    file = stored(tmp_path / "a.npz", **content)
    with pytest.raises(DataError) as caught:
        arrays.read(file, (2,), (1,))
    assert said in str(caught.value)


def test_classes_must_be_whole_numbers_in_range(tmp_path: Path) -> None:
    file = stored(tmp_path / "a.npz", inputs=X, targets=Y[:, 0])
    with pytest.raises(DataError, match="targets of float64 must be numbers; valid: whole numbers"):
        arrays.read(file, (2,), (), classes=3)
    file = stored(tmp_path / "b.npz", inputs=X, targets=np.arange(5) - 1)
    with pytest.raises(DataError, match="targets from -1 to 3 must be classes; valid: 0 to 2"):
        arrays.read(file, (2,), (), classes=3)


def test_a_file_that_is_none_of_arrays(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    file.write_text("text")
    with pytest.raises(DataError, match=r"cannot be read as .npz .*; valid: what numpy.savez"):
        arrays.read(file, (2,), (1,))
    whole = stored(tmp_path / "b.npz", inputs=X, targets=Y)
    spoilt = bytearray(whole.read_bytes())
    spoilt[150] ^= 0xFF
    whole.write_bytes(spoilt)
    with pytest.raises(DataError, match="cannot be read"):
        arrays.read(whole, (2,), (1,))


def test_shapes_are_refused_before_values_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> None:
        raise AssertionError("values were read")

    monkeypatch.setattr(np, "load", load)
    file = stored(tmp_path / "a.npz", inputs=X, targets=Y)
    with pytest.raises(DataError, match="must be examples"):
        arrays.read(file, (3,), (1,))
