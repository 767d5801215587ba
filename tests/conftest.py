"""Settings that pytest needs before it collects the tests, and fixtures for tests of the command line."""

import sys
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np
import pytest

# The import of openvino sends telemetry over the network, from a process that it forks beside all loaded libraries.
sys.modules.setdefault("openvino_telemetry", None)

# Markers in NumPy's own tests, which test_numpys_own.py imports.
NUMPYS = ("leaks_references", "parallel_threads", "parallel_threads_limit", "slow", "thread_unsafe", "valgrind_error")

FOLDER = Path(__file__).parent

pytest.register_assert_rewrite("_commands")


def pytest_addoption(parser):
    parser.addoption("--passed", metavar="FILE", help="leave out tests in FILE, except fast ones; add those that pass")


def pytest_configure(config):
    for marker in NUMPYS:
        config.addinivalue_line("markers", f"{marker}: of NumPy's own tests and pytest-run-parallel, if it is there")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run the command line; give its status, and what it wrote to stdout and to stderr."""
    from bcast.__main__ import main

    def run(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as exited:
            status = exited.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def bad_files(folder):
    """Put files of all kinds into the folder; only in.npy and one.npy are valid."""
    from _commands import OLD, save_header

    row = np.arange(3.0)
    np.save("in.npy", row)
    whole = (folder / "in.npy").read_bytes()
    np.save("one.npy", row[:1])
    np.save("objects.npy", np.array([None, 1, "a"]), allow_pickle=True)
    (folder / "text.npy").write_bytes(b"1.0, 2.0, 3.0\n")
    (folder / "truncated.npy").write_bytes(whole[:-1])
    save_header("boundless.npy", (), "f8", edit=("()", "(4294967296, 4294967296, 3)"))
    save_header("deep.npy", (), "f8", version=1, edit=("()", "-" * 9000 + "1"))
    (folder / "out.npy").write_bytes(OLD)


# Modules whose tests compile, start processes or wait, and further tests that take more than a moment.
SLOW_MODULES = """faults fuzz generated leaves memory_of_apply numpys_own packaging private report run signals
    threads threads_in_numbers tiled_files"""
SLOW_TESTS = """a_cell_is_run_by_its_name bench_for_real bits_do_not_depend_on_chunks closed_pipe new_axes_are_cut
    pages_do_not_stay_in_memory processes_of_a_pool_use_one_thread_each query_planning references_of_fresh_results
    segments_across_many_chunks sums_in_dtypes_that_numpy_sums_do_not_depend_on_chunks
    sums_of_float64_differ_by_little tests_of_others_pass_under_the_patch the_command_line_works_as_a_process"""


# What changes or measures something that all threads share: numbers of threads, targets, limits, patches and what they
# count, Dask's settings, memory. Fixtures are made once for all threads that run a test.
SHARED = """an_empty_store chdir config doctest environ fork forked in_order linecache memory_info overlaps
    patch_info patch_numpy patched_numpy peak_of planted pool_limited printed probe python release_memory rooms
    run_benchmarks running set_idle_limit set_limits set_num_threads setrlimit subprocess threadpool_limits
    tracemalloc unpatch_numpy untouched use_target"""


def uses_what_is_shared(function, seen):
    """Whether a function of the tests, or one that it calls, names something in `SHARED`."""
    function = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, FunctionType) or function in seen:
        return False
    seen.add(function)
    codes, names = [function.__code__], set()
    for code in codes:
        names |= {*code.co_names, *code.co_freevars}
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    if names & {*SHARED.split()}:
        return True

    called = [function.__globals__.get(name) for name in names]
    called += [cell.cell_contents for cell in function.__closure__ or ()]
    ours = [each for each in called if getattr(each, "__module__", None) in sys.modules]
    return any(uses_what_is_shared(each, seen) for each in ours if is_of_tests(each))


def is_of_tests(function):
    """Whether a function is defined beside this module."""
    file = getattr(sys.modules[function.__module__], "__file__", None) or ""
    return file.startswith(str(FOLDER))


def pytest_itemcollected(item):
    """Keep pytest-run-parallel from running a test in several threads that would disturb each other."""
    if not item.config.pluginmanager.hasplugin("run-parallel"):
        return

    has_shared_fixture = not {*SHARED.split()}.isdisjoint(getattr(item, "fixturenames", ()))
    if has_shared_fixture or uses_what_is_shared(getattr(item, "obj", None), set()):
        item.add_marker(pytest.mark.thread_unsafe(reason="changes what all threads share"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the first case of each quick test as fast, properties and longer forms never; slow modules come first."""
    seen = {*SLOW_TESTS.split()}
    for item in items:
        module, name = item.path.stem, getattr(item, "originalname", item.name).removeprefix("test_")
        is_long = {"drill", "soak"} & {*item.keywords} or item.name.endswith("[short]")
        is_long = is_long or name in seen or module.removeprefix("test_") in SLOW_MODULES.split()
        if not (is_long or getattr(item.obj, "is_hypothesis_test", False) or (module, name) in seen):
            seen.add((module, name))
            item.add_marker("fast")
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in SLOW_MODULES.split())

    file = items[0].config.getoption("passed") if items else None
    if file and Path(file).exists():
        done = {*Path(file).read_text(encoding="utf-8").splitlines()}
        items[:] = [item for item in items if item.nodeid not in done or "fast" in item.keywords]


def pytest_sessionfinish(session):
    """Note which tests have passed: in a run by several processes, only their parent knows of all."""
    file = session.config.getoption("passed")
    if file and not hasattr(session.config, "workerinput"):
        reports = session.config.pluginmanager.get_plugin("terminalreporter").stats.get("passed", [])
        passed = {report.nodeid for report in reports if report.when == "call"}
        with Path(file).open("a", encoding="utf-8") as lines:
            lines.writelines(f"{name}\n" for name in sorted(passed))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let a worker that is done take over tests of another one."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None
