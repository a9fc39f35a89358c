"""nn.TransformerEncoderLayer and DecoderLayer drop is_causal=True in eval and no_grad when no mask
is given.

Seen with torch 2.13.0 on a CPU. With gradients the same calls raise instead.
"""

import torch

torch.manual_seed(0)
encoder = torch.nn.TransformerEncoderLayer(4, 2, 3, dropout=0.0, batch_first=True).eval()
decoder = torch.nn.TransformerDecoderLayer(4, 2, 3, dropout=0.0, batch_first=True).eval()
x = torch.randn(1, 2, 4)
other = x.clone()
other[0, 1] += torch.tensor([1.0, -1.0, 0.5, 0.0])  # Only the second token differs.
memory = torch.randn(1, 3, 4)

with torch.no_grad():
    decoded = [decoder(a, memory, tgt_is_causal=True)[0, 0].tolist() for a in (x, other)]
    encoded = [encoder(a, is_causal=True)[0, 0].tolist() for a in (x, other)]
# The first token may see itself alone.
assert encoded[0] == encoded[1], f"row 0 moves from {encoded[0]} to {encoded[1]}, should stay"
assert decoded[0] == decoded[1], f"row 0 moves from {decoded[0]} to {decoded[1]}, should stay"
