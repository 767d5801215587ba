"""The digests of random calls: equal for equal calls, and different for each property of a result that may change."""

import warnings

import digest
import numpy as np
import pytest

import bcast


def test_cases_give_the_same_digests_on_any_number_of_threads(tmp_path, capsys):
    number = bcast.get_num_threads()
    try:
        for name, threads in ("one", 1), ("many", 64):
            digest.write_digests(tmp_path / name, 3, 150, threads)
    finally:
        bcast.set_num_threads(number)
    assert digest.compare(tmp_path / "one", tmp_path / "many") == 0
    assert len((tmp_path / "one").read_text().splitlines()) == 150
    assert capsys.readouterr().err == "0 of 150 cases differ\n"


def recorded(function):
    """Return the digest of one call."""
    found = digest.Digest()
    function.__name__ = "function"
    found.recording(function)()
    return found.hash.hexdigest()


def warned(text):
    warnings.warn(text, RuntimeWarning, stacklevel=1)
    return np.ones(3)


def read_only():
    array = np.ones((2, 3))
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "other",
    [
        lambda: np.ones((3, 2)),
        lambda: np.ones((2, 3), np.float32),
        lambda: np.ones((2, 3), ">f8"),
        lambda: np.array([[1, 1, 1], [1, 1, np.nextafter(1, 2)]]),
        lambda: np.ones((2, 3), order="F"),
        read_only,
        lambda: (np.ones((2, 3)),),
        lambda: np.ones((2, 3)).tolist(),
        lambda: warned("overflow encountered in cast"),
    ],
)
def test_each_difference_is_seen(other):
    assert recorded(lambda: np.ones((2, 3))) == recorded(lambda: np.ones((2, 3)))
    assert recorded(other) != recorded(lambda: np.ones((2, 3)))
    assert recorded(lambda: warned("a")) != recorded(lambda: warned("b"))


def test_errors_are_noted_and_raised():
    digests = []
    for error in ValueError("a"), ValueError("b"), TypeError("a"):

        def refuse(error=error):
            raise error

        found = digest.Digest()
        with pytest.raises(type(error)):
            found.recording(refuse)()
        digests.append(found.hash.hexdigest())
    assert len(set(digests)) == 3


def test_cases_that_differ_are_printed(tmp_path, capsys):
    (tmp_path / "a").write_text("0 tile 12\n1 sum 34\n2 sum 56\n")
    (tmp_path / "b").write_text("0 tile 12\n1 sum 35\n")
    assert digest.compare(tmp_path / "a", tmp_path / "b") == 2
    printed = capsys.readouterr()
    assert printed.out == "1 sum 34  |  1 sum 35\n2 sum 56  |  none\n"
    assert printed.err == "2 of 3 cases differ\n"


def test_bits_of_nans_count_unless_cpus_choose_them():
    quiet, other = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    digests = []
    for item in quiet, other:
        copied, computed = digest.Digest(), digest.Digest()
        copied.add(np.array([item]))
        computed.add(np.array([item]), computes_nans=True)
        digests.append((copied.hash.hexdigest(), computed.hash.hexdigest()))
    assert digests[0][0] != digests[1][0]
    assert digests[0][1] == digests[1][1]
