"""Time per toggle of the what-if page in Chromium, 5,000 terms: wall and CPU.

``make bench`` runs it; nothing is asserted.
"""

import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import browser

from harmonica_core import Evaluated, Surrogate, basis
from harmonica_core.result.anchored import AnchoredSurrogate

# One toggle as a click does it, with layout forced, as the browser would before paint.
TOGGLES = """
const buttons = [...document.querySelectorAll("#features button")];
const times = [];
for (let k = 0; k < 210; k += 1) {
  const begin = performance.now();
  buttons[(7 * k) % buttons.length].click();
  document.body.getBoundingClientRect();
  times.push(performance.now() - begin);
}
times.splice(0, 10);
times.sort((a, b) => a - b);
return [times[100], times[189], times[199]];
"""
SEARCH = """
const begin = performance.now();
const found = whatIf.smallestChange(whatIf.model, -1e9, 1e-9, 200000);
return [performance.now() - begin, found.searched];
"""


def random_surrogate(n_features: int, n_terms: int, rng: np.random.Generator):
    triples = (
        tuple(sorted(rng.choice(n_features, 3, replace=False).tolist()))
        for _ in itertools.count()
    )
    terms = {(), *((i,) for i in range(n_features))}
    while len(terms) < n_terms:
        terms.add(next(triples))
    masks = rng.random((20_000, n_features)) < 0.5
    return Surrogate(
        n_features,
        basis.table_of(sorted(terms)),
        rng.normal(size=n_terms) / 70,
        evaluated=Evaluated(masks, rng.random(len(masks))),
    )


def busy_seconds(driver) -> float:
    """CPU seconds that the page's main thread has used."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {one["name"]: one["value"] for one in metrics}["TaskDuration"]


@pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))
def test_time_per_toggle() -> None:
    rng = np.random.default_rng(0)
    cases = {f"n = {n}": random_surrogate(n, 5000, rng) for n in (40, 100, 200, 500)}
    anchors = rng.random((5, 100)) < 0.5
    parts = tuple(random_surrogate(100, 5000, rng) for _ in anchors)
    cases["n = 100, 5 anchors x 5000 terms"] = AnchoredSurrogate(anchors, parts)
    with (
        tempfile.TemporaryDirectory() as folder,
        browser.chromium(Path(folder) / "profile") as driver,
    ):
        browser.resize(driver, 1280, 900)
        cpu_time = {"timeDomain": "threadTicks"}
        driver.execute_cdp_cmd("Performance.enable", cpu_time)
        for name, surrogate in cases.items():
            page = surrogate.what_if(Path(folder) / "page.html")
            driver.get(page.path.as_uri())
            before = busy_seconds(driver)
            middle, high, _ = driver.execute_script(TOGGLES)
            cpu = 1000 * (busy_seconds(driver) - before) / 210
            search, size = driver.execute_script(SEARCH)
            kib = len(page.html) / 1024
            print(
                f"{name}: toggle {cpu:.1f} ms CPU (wall: median {middle:.1f}, 95% "
                f"{high:.1f} ms); search of all changes up to {size} features, then "
                f"greedy: {search:.0f} ms; page {kib:.0f} KiB"
            )
