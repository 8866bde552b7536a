from __future__ import annotations

import torch
from support.attention import causal_attention

import sih
from sih.models.offsets import attention_at, attention_to


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


def test_attention_to_a_key_for_each_hypothesis(rng: torch.Generator) -> None:
    attention = torch.rand(2, 3, 5, 5, generator=rng)
    keys = torch.tensor([[-1, 0, 0, 2, 1], [-1, -1, 1, 1, 4]])
    found = attention_to(attention, keys)
    for i in range(5):
        for h in range(2):
            j = int(keys[h, i])
            expected = attention[:, :, i, j] if j >= 0 else torch.zeros(2, 3)
            assert torch.equal(found[:, :, i, h], expected)


def test_the_keys_of_a_lag_task_are_its_offsets(rng: torch.Generator) -> None:
    task = sih.Task([[0.9, 0.1], [0.5, 0.5]], (1, 3), 8)
    attention, parents = torch.rand(4, 8, 8, generator=rng), task.parents(9)
    for keys, offsets in ((parents[:, :-1], [1, 3]), (parents[:, 1:], [0, 2])):
        by_offset = attention_at(attention, offsets)
        assert torch.equal(attention_to(attention, keys)[:, 3:], by_offset[:, 3:])
