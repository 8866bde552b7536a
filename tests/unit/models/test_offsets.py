from __future__ import annotations

import torch
from support.attention import causal_attention

from sih.models.offsets import attention_at


def test_attention_at_offsets() -> None:
    attention = causal_attention(2, 7, 7, seed=6)
    found = attention_at(attention, [0, 2, 5])
    for n in range(2):
        for i in range(7):
            for index, offset in enumerate((0, 2, 5)):
                wanted = attention[n, i, i - offset].item() if i >= offset else 0.0
                assert found[n, i, index].item() == wanted
    one = attention_at(attention[0].log(), [0, 5], absent=-torch.inf)
    torch.testing.assert_close(one[:, 1].exp(), found[0, :, 2])
