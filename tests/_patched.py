"""A helper for tests of patched functions: it checks how a call that goes to NumPy is counted."""

import contextlib
import threading

import bcast
from bcast._api.patching import reasons_of_passed


def expect_passed_on(name, call, reason):
    """Make a call under the patch of a name; expect that it is passed on once, for this reason and no other."""
    with bcast.patched_numpy(name):
        before = bcast.patch_info()[name], reasons_of_passed()[name]
        with contextlib.suppress(TypeError, ValueError):
            call()
        after = bcast.patch_info()[name], reasons_of_passed()[name]
    assert (after[0].taken, after[0].passed) == (before[0].taken, before[0].passed + 1)
    assert {key: n - before[1].get(key, 0) for key, n in after[1].items() if n != before[1].get(key)} == {reason: 1}
    assert sum(after[1].values()) == after[0].passed


def errors_in_threads(work, count):
    """Call `work` with a number of its own in each of some threads; return the errors that it raised."""
    errors = []

    def call(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors
