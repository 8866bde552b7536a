from __future__ import annotations

import pytest

from sih.beyond.shared_heads import cancellation, cancellation_figure
from sih.training.runs.run_store import RunStore


def test_reads_of_what_is_stored_are_what_is_added() -> None:
    """By hand: each score is the sum over places of what they hold, times the read; the gap is the evidence."""
    config = cancellation.CancellationConfig(offsets=(0, 3, 8), evidence=(0.5, 0.5, 0.5), oldest=8)
    data = cancellation.compute(config, RunStore())
    for offset, stored in zip(config.offsets, data.stored.tolist(), strict=True):
        scores = [
            sum(q * g for q, g in zip(stored, read, strict=True)) for read in data.reads.tolist()
        ]
        assert scores == pytest.approx([added[offset] for added in data.added.tolist()])
    assert [a - b for a, b in zip(*data.added.tolist(), strict=True)] == pytest.approx([1.0] * 9)
    assert data.added[0][8] > data.added[0][0] + 5, "what the two share grows with age"


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_parabola_and_waves_are_a_spike_within_the_lags_and_not_beyond(count: int) -> None:
    data = cancellation.compute(cancellation.CancellationConfig(count=count), RunStore())
    both = zip(data.parabola.tolist(), data.waves.tolist(), strict=True)
    total = dict(zip(data.differences.tolist(), map(sum, both), strict=True))
    assert [total[x] - total[1] for x in range(1 - count, count)] == pytest.approx(
        [float(x == 0) for x in range(1 - count, count)]
    )
    assert abs(total[count] - total[1]) > 0.1


def test_drawing_shows_both_lags_and_the_sum() -> None:
    figure = cancellation_figure.draw(
        cancellation.compute(cancellation.EXPERIMENT.config, RunStore())
    )
    held, scores, sums, read = figure.axes
    assert len(held.collections) == 2
    assert [line.get_color() for line in read.lines] == [line.get_color() for line in scores.lines]
    assert [line.get_label() for line in sums.lines] == ["parabola", "waves", "sum"]
    assert cancellation.EXPERIMENT.beyond  # left out of `sih reproduce` unless asked for
