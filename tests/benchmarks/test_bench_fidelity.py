import os
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(
    "HARMONICA_GAMES" not in os.environ,
    reason="HARMONICA_GAMES names no folder of enumerated games",
)
def test_error_per_model_call():
    sys.path.insert(0, str(Path(__file__).parent))
    import bench_fidelity

    bench_fidelity.main(os.environ["HARMONICA_GAMES"], full=False)
