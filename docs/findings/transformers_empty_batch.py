"""GPT-2 and the attention that Llama uses refuse a batch of no rows; GPT-2 a chunk of no tokens.

Seen with transformers 5.24.0. Heads are split and joined by a reshape with a length of -1, which an
empty tensor leaves open; torch's own attention and linear maps give empty outputs.
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

sizes = {"n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 2, "vocab_size": 7}
model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)).eval()


def shape_of(*shape: int) -> object:
    """The shape of the logits of tokens [B, T], or the error."""
    try:
        return tuple(model(torch.zeros(shape, dtype=torch.int64)).logits.shape)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


for batch, tokens in ((0, 3), (2, 0)):
    got, due = shape_of(batch, tokens), (batch, tokens, 7)
    assert got == due, f"tokens of shape {(batch, tokens)} give {got}, should be {due}"
