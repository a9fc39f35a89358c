"""Faults of recurrent cells, scans and the causal convolution."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound_sequences import Array, LoopCells, LoopScans, along_steps


class OtherGateOrder(LoopCells):
    """Gates are read as input, forget, candidate, output."""

    contract = along_steps("zoo.gates-torch-order")

    def lstm_gates(self, z: Array, c: Array) -> tuple[Array, Array]:
        """Input first."""
        return super().lstm_gates(z[[1, 0, 2, 3]], c)


class StateIgnoredAlone(LoopCells):
    """A batch of one row starts from zeros, whatever state is given (vLLM 22034)."""

    contract = along_steps("zoo.state-ignored-alone")

    def start(self, given: Array | None, x: Array, weight: Array) -> Array:
        """None where there is one row."""
        return super().start(None if len(x) == 1 else given, x, weight)


class ReadsAhead(LoopCells):
    """A step reads a little of the input after it."""

    contract = along_steps("zoo.reads-ahead")

    def seen(self, x: Array, t: int) -> Array:
        """With a sixteenth of the next input."""
        return np.asarray(x[:, t] + x[:, min(t + 1, x.shape[1] - 1)] / 16)


class RowsInterleaved(LoopCells):
    """Outputs with time first are reshaped instead of transposed: right for one row alone
    (PyTorch 90421).
    """

    contract = along_steps("zoo.rows-interleaved")

    def rows(self, out: Array) -> Array:
        """Rows mixed with steps."""
        return np.ascontiguousarray(np.swapaxes(out, 0, 1)).reshape(out.shape)


class StartGradientLost(LoopCells):
    """No gradient flows into a state that is given (PyTorch 95137)."""

    contract = along_steps("zoo.start-gradient-lost")

    def into_start(self, dh: Array) -> Array:
        """Zeros."""
        return np.zeros_like(dh)


class ResetAlwaysAfter(LoopCells):
    """The reset gate stands after the product, whatever is asked for."""

    contract = along_steps("zoo.reset-always-after")

    def after_product(self, kind: str) -> bool:
        """Always."""
        return True


class NothingIsZero(LoopCells):
    """A sequence without steps gives a state of zeros."""

    contract = along_steps("zoo.nothing-is-zero")

    def final(self, state: tuple[Array, ...], steps: int) -> tuple[Array, ...]:
        """Zeros where no step was taken."""
        return tuple(s.copy() if steps else np.zeros_like(s) for s in state)


class StateFromPaddedEnd(LoopCells):
    """Steps go on over padding, and the state is the one at its end (PyTorch 21392)."""

    contract = along_steps("zoo.state-from-padded-end")

    def kept(self, exists: Array, new: Array, old: Array) -> Array:
        """The new one always."""
        return new


class PaddingTimesZero(LoopCells):
    """States beyond a row's end are multiplied by 0, which leaves NaN."""

    contract = along_steps("zoo.padding-times-zero")

    def blanked(self, x: Array, exists: Array) -> Array:
        """Padding is read as it is."""
        return x

    def kept(self, exists: Array, new: Array, old: Array) -> Array:
        """Both states, weighted by the mask."""
        mask = exists[:, None].astype(new.dtype)
        return np.asarray(new * mask + old * (1 - mask))


class TurnedWithPadding(LoopCells):
    """The whole row is turned, its padding too."""

    contract = along_steps("zoo.turned-with-padding")

    def turned(self, x: Array, ends: Array) -> Array:
        """From the padded end, and a step later if that is the row's own."""
        return np.asarray(np.roll(x[:, ::-1], 1, axis=1))


class TailForgets(LoopScans):
    """The last chunk of four steps starts from zeros when it is not full."""

    contract = along_steps("zoo.tail-forgets")

    def resumed(self, h: Array, t: int, steps: int) -> Array:
        """Nothing at the start of a short chunk."""
        short = t % 4 == 0 and t and steps - t < 4
        return np.zeros_like(h) if short else h


class SharedByRows(LoopScans):
    """Coefficients that steps share are taken for those of the first channel."""

    contract = along_steps("zoo.shared-by-rows")

    def spread(self, p: Array, x: Array) -> Array:
        """Every channel gets the first one's, a little of it."""
        whole = super().spread(p, x)
        return whole if p.shape == x.shape else (whole * 1.125).astype(x.dtype)


class ScanStateIgnored(LoopScans):
    """Every run starts from zeros."""

    contract = along_steps("zoo.scan-state-ignored")

    def begun(self, start: Array) -> Array:
        """Zeros."""
        return np.zeros_like(start)


class AddsAhead(LoopScans):
    """A step adds a little of what the next one adds."""

    contract = along_steps("zoo.adds-ahead")

    def added(self, v: Array, t: int) -> Array:
        """With a sixteenth of the next."""
        return np.asarray(v[:, t] + v[:, min(t + 1, v.shape[1] - 1)] / 16)


class RowsCarryOver(LoopScans):
    """A row starts from a little of the state of the row before it."""

    contract = along_steps("zoo.rows-carry-over")

    def added(self, v: Array, t: int) -> Array:
        """With a sixteenth of the first row's."""
        own = v[:, t]
        return np.asarray(
            own + (np.arange(len(own)) > 0).reshape(-1, *[1] * (own.ndim - 1)) * own[:1] / 16
        ).astype(v.dtype)


class HistoryOfOutputs(LoopScans):
    """What is kept for later taps is the convolution's output (mamba 1027)."""

    contract = along_steps("zoo.history-of-outputs")

    def remembered(self, seen: Array, y: Array, steps: int) -> Array:
        """The last outputs."""
        both = np.concatenate([seen[:, : seen.shape[1] - steps], y], 1)
        return both[:, steps:].copy()


class LeastStep(LoopScans):
    """Step sizes are at least a thousandth, so that padding decays (mamba 368)."""

    contract = along_steps("zoo.least-step")

    def step_size(self, delta: Array) -> Array:
        """Never 0."""
        return np.maximum(delta, np.asarray(1e-3, delta.dtype))


class FactorsAsLogarithms(LoopScans):
    """Factors pass through logarithms that end at 2^-4: none is 0."""

    contract = along_steps("zoo.factors-as-logarithms")

    def factor(self, a: Array) -> Array:
        """A sixteenth in the place of less."""
        return np.where(np.abs(a) < 2.0**-4, np.asarray(2.0**-4, a.dtype), a)


class FactorsTooLarge(LoopScans):
    """Factors are an eighth too large."""

    contract = along_steps("zoo.factors-too-large")

    def factor(self, a: Array) -> Array:
        """Above 1 where it may not be."""
        return np.asarray(a * 1.125, a.dtype)


class RatioOfProducts(LoopScans):
    """Decays are quotients of exponentials of running sums: 0 / 0 for large steps (mamba 713)."""

    contract = along_steps("zoo.ratio-of-products")

    def decays(self, z: Array, v: Array, start: Array) -> Array:
        """exp(-sum) (start + running sum of v / exp(-sum))."""
        with np.errstate(all="ignore"):
            whole = np.exp(-np.cumsum(z, axis=1))
            return np.asarray(whole * (start[:, None] + np.cumsum(v / whole, axis=1)))


class GradientOfOneStep(LoopScans):
    """Gradients do not flow from a step to the one before it."""

    contract = along_steps("zoo.gradient-of-one-step")

    def carried(self, carry: Array) -> Array:
        """Nothing."""
        return np.zeros_like(carry)
