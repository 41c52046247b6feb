"""Runs of ``harmonica compare`` that stop, fail, resume, or bring methods along."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import psutil
import pytest
from compare_results import check_file, compare
from joblib.externals.loky import get_reusable_executor

import harmonica_compare
from harmonica_compare.cli import main
from harmonica_compare.results import Cell, Results
from harmonica_compare.workers import start_workers
from harmonica_core import Estimate

STOPS = """
def loading():
    raise KeyboardInterrupt
def measuring():
    def f(masks):
        if len(masks) > 4: raise KeyboardInterrupt
        return masks[:, 0] * 1.0
    return f, 5
"""


def test_stopping_while_the_task_loads(tmp_path, monkeypatch, capsys):
    (tmp_path / "stops_early.py").write_text(STOPS)
    monkeypatch.chdir(tmp_path)
    args = ["--task", "custom", "--model", "stops_early:loading"]
    assert compare(*args, out=tmp_path / "out") == 130
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "harmonica compare: stopped"
    assert not any("Traceback" in line for line in lines)
    assert not (tmp_path / "out").exists()


def test_stopping_before_the_first_cell_leaves_a_report(tmp_path, monkeypatch, capsys):
    (tmp_path / "stops_late.py").write_text(STOPS)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    args = ["--task", "custom", "--model", "stops_late:measuring"]
    assert compare(*args, "--methods", "published-2,lime", out=out) == 130
    results = check_file(out / "results.json")
    assert results.cells == () and not results.complete
    assert "stopped before its end" in (out / "report.html").read_text()
    assert "not run" in capsys.readouterr().out


def test_failures_are_told_in_one_line(games, tmp_path, registered, capsys):
    @registered.methods.register("boom")
    def boom(value_function, n_features, *, budget, seed):
        raise RuntimeError("first\n  second")

    @registered.methods.register("leaves")
    def leaves(value_function, n_features, *, budget, seed):
        raise SystemExit(3)

    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--budget", 20, "--cases", 1]
    assert compare(*args, "--methods", "boom,leaves,boom", out=out) == 0
    cells = check_file(out / "results.json").cells
    assert [cell.message for cell in cells] == [
        "RuntimeError: first second",
        "SystemExit: 3",
    ]
    assert "failed: RuntimeError: first second\n" in capsys.readouterr().out


def test_what_is_named_twice_runs_once(games, tmp_path):
    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--cases", 1, "--budget", "20,20"]
    assert compare(*args, "--methods", "published-2,published-2", out=out) == 0
    results = check_file(out / "results.json")
    assert len(results.cells) == 1
    assert results.settings["methods"] == ["published-2"]


def test_a_single_case_is_saved_cell_by_cell(games, tmp_path, registered):
    out = tmp_path / "out"

    @registered.methods.register("peek")
    def peek(value_function, n_features, *, budget, seed):
        assert (out / "results.json").exists()
        return lambda masks: np.zeros(len(masks))

    args = ["--task", "games", "--data", games, "--cases", 1, "--budget", 20]
    assert compare(*args, "--methods", "published-2,peek", out=out, jobs=2) == 0
    cells = check_file(out / "results.json").cells
    assert [cell.status for cell in cells] == ["ok", "ok"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_registered_methods_and_metrics(games, tmp_path, registered, jobs):
    @registered.methods.register("zero")
    def zero(value_function, n_features, *, budget, seed):
        return lambda masks: np.zeros(len(masks))

    @registered.metrics.register("gap_when_empty")
    def gap_when_empty(f, g, n_features):
        empty = np.zeros((1, n_features), dtype=bool)
        return Estimate(abs(float(f(empty)[0] - g(empty)[0])), 0.25, 1)

    registered.metrics.register("plain")(lambda f, g, n_features: np.float32(2))
    registered.metrics.register("silent")(lambda f, g, n_features: None)
    registered.metrics.register("broken")(lambda f, g, n_features: 1 / 0)
    registered.metrics.register("L2@inf")(lambda f, g, n_features: -1.0)
    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--budget", 20, "--radii", "inf"]
    assert compare(*args, "--methods", "zero,published-2", out=out, jobs=jobs) == 0
    cells = check_file(out / "results.json").cells
    assert [(cell.status, cell.message) for cell in cells] == [("ok", "")] * 4
    with np.load(games / "toy5.npz") as file:
        empty = file["values"][:, 0]
    found = [c.numbers["gap_when_empty"] for c in cells if c.method == "zero"]
    assert found == [[abs(value), 0.25] for value in empty]
    assert all(cell.numbers["plain"] == [2, 0] for cell in cells)
    assert all(cell.numbers["L2@inf"][0] >= 0 for cell in cells)
    assert not {"silent", "broken"} & {name for c in cells for name in c.numbers}
    assert "gap_when_empty" in (out / "report.html").read_text()


@pytest.fixture
def hears_ctrl_c():
    """A process started in the background ignores Ctrl-C from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_is_answered_by_the_first_process_alone(
    games, tmp_path, registered, jobs
):
    @registered.methods.register("deaf")
    def deaf(value_function, n_features, *, budget, seed):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            raise RuntimeError("hears Ctrl-C")
        return lambda masks: np.zeros(len(masks))

    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--budget", 20, "--methods", "deaf"]
    assert compare(*args, out=out, jobs=jobs) == 0
    status = "ok" if jobs > 1 else "failed"
    cells = Results.load(out / "results.json").cells
    assert [cell.status for cell in cells] == [status] * 2


def heard(_):
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@pytest.mark.usefixtures("hears_ctrl_c")
def test_workers_are_deaf_before_their_first_task():
    get_reusable_executor().shutdown()
    start_workers(2)
    assert heard(0)
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(heard)(k) for k in range(4))
    assert not any(found)


@pytest.mark.parametrize(
    ("jobs", "backend"), [(1, "loky"), (2, "threading"), (2, "sequential")]
)
def test_no_worker_is_started_for_nothing(monkeypatch, jobs, backend):
    def fails(**settings):
        raise AssertionError(settings)

    monkeypatch.setattr(joblib, "Parallel", fails)
    with joblib.parallel_config(backend=backend):
        start_workers(jobs)


def worker_count(pid):
    """Processes of joblib below this one."""
    try:
        lines = [child.cmdline() for child in psutil.Process(pid).children()]
    except psutil.NoSuchProcess:
        return 0
    return sum(any("popen_loky" in word for word in line) for line in lines)


def test_ctrl_c_while_the_workers_start_prints_no_traceback(games, tmp_path):
    # start_new_session: the signal goes to the run and its workers, as a terminal's.
    words = ["--task", "games", "--data", str(games), "--jobs", "2", "--budget", "20"]
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    while process.poll() is None and worker_count(process.pid) < 2:
        time.sleep(0.01)
    time.sleep(0.1)  # Python itself is up in them, their imports are not done
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    assert process.returncode in (0, 130), err  # 0: it came before the run listened


RUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import harmonica_compare
from harmonica_compare.cli import main
sys.exit(main(["compare", "--methods", "published-2,published-3", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("command", ["compare", "explain"])
def test_ctrl_c_during_the_imports(monkeypatch, capsys, command):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert main([command, "--help"]) == 130
    assert capsys.readouterr().err == "harmonica: stopped\n"


def test_methods_that_other_processes_can_not_run(games, registered, capsys):
    lock = threading.Lock()

    @registered.methods.register("locked")
    def locked(value_function, n_features, *, budget, seed):
        with lock:
            return lambda masks: np.zeros(len(masks))

    @registered.methods.register("dies")
    def dies(value_function, n_features, *, budget, seed):
        os._exit(1)

    args = ["--task", "games", "--data", games, "--budget", 20, "--methods"]
    for name, message in [("locked", "pickle"), ("dies", "a process died")]:
        assert compare(*args, name, jobs=2) == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert message in last and "--jobs 1" in last
    assert compare(*args, "locked", jobs=1) == 0


def test_a_registered_method_does_not_hide_behind_a_built_in_name(registered, capsys):
    registered.methods.register("lime")(lambda value_function, n_features, **_: None)
    assert compare("--methods", "lime") == 2
    assert "lime" in capsys.readouterr().err.splitlines()[-1]


def test_a_plugin_takes_part_in_every_process(games, tmp_path):
    (tmp_path / "my_methods.py").write_text(
        "import numpy as np\n"
        "from harmonica_core import registry\n"
        "@registry.methods.register('zero')\n"
        "def zero(value_function, n_features, *, budget, seed):\n"
        "    return lambda masks: np.zeros(len(masks))\n"
    )
    args = ["--task", "games", "--data", str(games), "--budget", "20", "--jobs", "2"]
    args += ["--plugin", "my_methods", "--methods", "zero", "--out", "out"]
    command = [sys.executable, "-m", "harmonica_compare", "compare", *args]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    cells = check_file(tmp_path / "out" / "results.json").cells
    assert [cell.status for cell in cells] == ["ok", "ok"]


def test_resume_runs_only_what_is_missing(games, tmp_path):
    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--budget", 20, "--radii", "1,inf"]
    assert compare(*args, "--methods", "published-2", out=out) == 0
    first = Results.load(out / "results.json").cells
    marked = [Cell(**{**vars(cell), "seconds": 123.0}) for cell in first]
    Results(
        Results.load(out / "results.json").settings, {"numpy": "0"}, tuple(marked)
    ).save(out / "results.json")
    assert compare(*args, "--methods", "published-2,lime", "--resume", out=out) == 0
    cells = Results.load(out / "results.json").cells
    assert [c.seconds for c in cells if c.method == "published-2"] == [123.0, 123.0]
    assert sum(c.method == "lime" for c in cells) == 2


def judged(cell):
    """What does not depend on the machine's mood."""
    measured = ("first_seconds", "peak_mb")
    return {k: v for k, v in cell.numbers.items() if k not in measured}


def test_resume_after_a_kill_gives_the_same_numbers(games, tmp_path):
    args = ["--task", "games", "--data", str(games), "--budget", "24", "--jobs", "1"]
    args += [
        "--radii",
        "1,inf",
        "--methods",
        "published-2,published-3,lime,shap-kernel",
    ]
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "harmonica_compare", "compare", *args]
    process = subprocess.Popen(
        [*command, "--out", str(out)], stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    path = out / "results.json"
    while process.poll() is None and not path.exists():
        time.sleep(0.02)
    assert path.exists(), f"ended early with code {process.poll()}"
    process.kill()
    process.wait()
    assert Results.load(path).cells  # valid whenever it was killed
    if not Results.load(path).complete:
        assert compare(*args, out=out) == 2  # an unfinished run is not overwritten
    assert compare(*args, "--resume", out=out) == 0
    assert compare(*args, out=tmp_path / "whole") == 0
    whole = Results.load(tmp_path / "whole" / "results.json").cells
    resumed = {c.key: judged(c) for c in Results.load(path).cells}
    assert resumed == {c.key: judged(c) for c in whole}


def test_results_of_others_are_not_overwritten(tmp_path, games, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "results.json").write_text('{"mine": 1}')
    assert compare("--task", "games", "--data", games, out=out) == 2
    assert "not a result of harmonica compare" in capsys.readouterr().err
    assert (out / "results.json").read_text() == '{"mine": 1}'


def test_only_a_run_of_the_same_settings_is_replaced(tmp_path, games, capsys):
    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--methods", "published-2", "--budget"]
    assert compare(*args, 20, out=out) == 0
    before = (out / "results.json").read_text()
    assert compare(*args, 24, out=out) == 2
    assert "other settings (budgets)" in capsys.readouterr().err
    assert (out / "results.json").read_text() == before
    assert compare(*args, 20, out=out) == 0


def test_without_jinja_the_numbers_are_written(games, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "harmonica_compare.report", raising=False)
    monkeypatch.delattr(harmonica_compare, "report", raising=False)
    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--budget", 20, "--cases", 1]
    assert compare(*args, "--methods", "published-2", out=out) == 2
    assert 'pip install "harmonica-xai[compare]"' in capsys.readouterr().err
    assert check_file(out / "results.json").complete
    assert (out / "tables.csv").exists() and not (out / "report.html").exists()
