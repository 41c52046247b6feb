import time

import numpy as np
import pytest

from harmonica_core import BatchSize, Calls, fit_surrogate
from harmonica_core.design.masks import all_masks
from harmonica_core.evaluate import EvaluationTimeout, evaluate
from harmonica_core.resilience import Caller, CallPolicy, OutOfTime, is_out_of_memory

MASKS = all_masks(6)


class OutOfMemoryError(RuntimeError):
    """Stands for torch.OutOfMemoryError, which is recognised by its name."""


class Clock:
    """Time that passes only when somebody sleeps or works."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        self.sleeps = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds):
        assert seconds >= 0
        self.sleeps.append(seconds)
        self.now += seconds

    def slow(self, seconds_per_mask):
        def f(masks):
            self.now += seconds_per_mask * len(masks)
            return masks @ np.arange(1.0, masks.shape[1] + 1)

        return f


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def small_memory(capacity, error, calls):
    def f(masks):
        calls.append(len(masks))
        if len(masks) > capacity:
            raise error
        return masks.sum(axis=1)

    return f


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OutOfMemoryError("CUDA"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: ..."),
        RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
    ],
)
def test_a_batch_that_does_not_fit_is_halved(error):
    calls = []
    values = evaluate(small_memory(10, error, calls), MASKS, batch_size=64)
    assert values.tolist() == MASKS.sum(axis=1).tolist()
    assert calls == [64, 32, 16, *[8] * 8]  # the size that worked is remembered


def test_only_what_was_tried_is_halved():
    tried = []

    def call(n):
        tried.append(n)
        if n > 3:
            raise MemoryError
        return -n

    size = BatchSize(1000)
    assert size.run(call, 20, allowed=lambda n: min(n, 12)) == -3
    assert tried == [12, 6, 3]
    assert size.size == 3
    assert size.run(call, 2) == -2
    assert size.size == 3


def test_torch_errors_are_recognised():
    torch = pytest.importorskip("torch")
    assert is_out_of_memory(torch.OutOfMemoryError("x"))
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60)
    assert is_out_of_memory(caught.value)


def test_other_errors_are_not_memory():
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))


def test_the_working_size_is_remembered_across_fits():
    size, calls = BatchSize(64), []
    f = small_memory(20, MemoryError(), calls)
    fit_surrogate(f, 6, calls=Calls(batch_size=size))
    calls.clear()
    fit_surrogate(f, 6, calls=Calls(batch_size=size))
    assert size.size == 16
    assert calls == [16] * 4


def test_one_mask_that_does_not_fit_is_the_models_error():
    with pytest.raises(MemoryError, match="big") as caught:
        evaluate(small_memory(0, MemoryError("big"), []), MASKS)
    assert len(caught.value.evaluated) == 0


def flaky(failures, error=ConnectionError):
    """Fails that many times before each success."""
    state = {"left": failures}

    def f(masks):
        if state["left"]:
            state["left"] -= 1
            raise error("try again")
        state["left"] = failures
        return masks.sum(axis=1)

    return f


def test_retries_with_growing_pauses(clock):
    policy = CallPolicy(retries=3)
    values = evaluate(flaky(3), MASKS, batch_size=64, policy=policy)
    assert values.tolist() == MASKS.sum(axis=1).tolist()
    assert len(clock.sleeps) == 3
    for pause, longest in zip(clock.sleeps, [1, 2, 4], strict=True):
        assert longest / 2 <= pause <= longest


def test_pauses_end_at_a_minute(clock):
    evaluate(flaky(9), MASKS, batch_size=64, policy=CallPolicy(retries=9))
    assert max(clock.sleeps) <= 60


def test_retries_run_out(clock):
    with pytest.raises(ConnectionError) as caught:
        evaluate(flaky(3), MASKS, policy=CallPolicy(retries=2))
    assert len(clock.sleeps) == 2
    assert "raised for masks 0 to 63" in caught.value.__notes__[0]


def test_no_retry_unless_asked_for(clock):
    with pytest.raises(ConnectionError):
        fit_surrogate(flaky(1), 6)
    assert clock.sleeps == []
    assert fit_surrogate(flaky(1), 6, calls=Calls(retries=1)).n_evaluations == 64


def test_interrupts_are_not_retried(clock):
    with pytest.raises(KeyboardInterrupt):
        evaluate(flaky(1, KeyboardInterrupt), MASKS, policy=CallPolicy(retries=5))


def test_a_wrong_answer_is_not_retried(clock):
    calls = []

    def f(masks):
        calls.append(len(masks))
        return np.full(len(masks), np.nan)

    with pytest.raises(ValueError, match="NaN"):
        evaluate(f, MASKS, policy=CallPolicy(retries=5))
    assert calls == [64]


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_rate_limit_counts_masks(clock, batch_size):
    start = clock.now
    policy = CallPolicy(rate_limit=8.0)
    evaluate(clock.slow(0.01), MASKS, batch_size=batch_size, policy=policy)
    batch_size = min(batch_size, 8)  # a second's worth
    last_batch = 64 % batch_size or batch_size
    assert clock.now - start == pytest.approx((64 - last_batch) / 8 + 0.01 * last_batch)


@pytest.mark.parametrize("seconds", [0.3, 2.0])
def test_timeout_stops_between_calls(clock, seconds):
    start = clock.now
    with pytest.raises(EvaluationTimeout) as caught:
        evaluate(clock.slow(0.05), MASKS, policy=CallPolicy(timeout=seconds))
    assert clock.now - start <= seconds + 0.05
    done = len(caught.value.evaluated)
    assert done >= 0.8 * seconds / 0.05
    assert caught.value.rows.tolist() == list(range(done))


def test_timeout_ends_a_wait_for_a_retry(clock):
    start = clock.now
    with pytest.raises(EvaluationTimeout):
        evaluate(flaky(99), MASKS, policy=CallPolicy(retries=99, timeout=10))
    assert clock.now - start <= 10


def test_timeout_includes_the_rate_limit(clock):
    start = clock.now
    policy = CallPolicy(rate_limit=2.0, timeout=10)
    with pytest.raises(EvaluationTimeout) as caught:
        evaluate(clock.slow(0.0), MASKS, policy=policy)
    assert clock.now - start <= 10
    assert 15 <= len(caught.value.evaluated) <= 22


def test_caller_refuses_calls_after_the_deadline(clock):
    caller = Caller(clock.slow(1.0), CallPolicy(timeout=3))
    caller(MASKS[:4])
    with pytest.raises(OutOfTime):
        caller(MASKS[:1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"retries": -1},
        {"retries": 1.5},
        {"retries": True},
        {"retries": None},
        {"rate_limit": 0},
        {"rate_limit": 1e-300},
        {"rate_limit": float("nan")},
        {"rate_limit": "fast"},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": True},
    ],
)
def test_impossible_policies_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        fit_surrogate(lambda masks: masks.sum(axis=1), 3, calls=Calls(**wrong))


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "many", None])
def test_impossible_batch_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match="batch_size"):
        evaluate(flaky(0), MASKS, batch_size=wrong)
