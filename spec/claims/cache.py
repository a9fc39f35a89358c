"""Claims about decoding with a key/value cache: attention, a chunk at a time."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_cache = family("cache", "kv_cache")
_decoder = family("cache", "kv_cache", "gpt_decode")

CACHE: tuple[Claim, ...] = (
    _decoder(
        "decode_equals_full",
        "value",
        "Decoding with the cache gives the rows of the full causal run: the same keys are visible.",
        r"\{j : j \le \ell + i\} = \{j : j \le t\} \text{ for } t = \ell + i",
        "PT",
    ),
    _decoder(
        "chunk_split",
        "invariance",
        "However a sequence is cut into chunks, the outputs are the same.",
        r"D(x \frown y) = D(x) \frown D(y \mid x)",
        "PT",
    ),
    _cache(
        "earlier_slots_kept",
        "state",
        "Appending changes no slot that was held.",
        r"k'_j = k_j,\; v'_j = v_j \text{ for } j < \ell",
        "PTX",
    ),
    _cache(
        "append_last",
        "state",
        "A chunk stands right after what was held, keys as keys and values as values.",
        r"k'_{\ell + i} = k^{\text{new}}_i,\quad v'_{\ell + i} = v^{\text{new}}_i",
        "PTX",
    ),
    _cache(
        "length_once",
        "state",
        "A step advances the length once, by its number of tokens, however many layers write.",
        r"\ell' = \ell + T",
        "PT",
    ),
    _cache(
        "position",
        "state",
        "The token appended at step t gets position t.",
        r"\operatorname{pos}(x_t) = t",
        "PT",
    ),
    _decoder(
        "capacity",
        "state",
        "A chunk that does not fit is an error that says so, and the cache is as before.",
        r"\ell + T > M \Rightarrow \text{error},\; s' = s",
        "PTX",
    ),
    _decoder(
        "reorder",
        "state",
        "Each row chosen to go on carries its own past in every layer.",
        r"s'_b = s_{\pi(b)}",
        "PTX",
    ),
    _decoder(
        "left_pad",
        "invariance",
        "Padding on the left changes nothing for the real tokens; a padding query sees itself and"
        " gives no NaN.",
        r"D(\bot^p \frown x)_{p + t} = D(x)_t",
        "PT",
    ),
    _cache(
        "rolling_window",
        "value",
        "A ring of M slots computes attention over the last M tokens, at every wrap.",
        r"t \bmod M = s,\; \ell - M \le t < \ell \;\Rightarrow\; \text{slot } s \text{ holds } t",
        "PT",
    ),
    _decoder(
        "reset",
        "state",
        "After a reset the cache acts like a new one, whatever its slots still hold.",
        r"D(x \mid \operatorname{reset}(s)) = D(x)",
        "PTX",
    ),
)
