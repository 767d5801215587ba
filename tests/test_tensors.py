"""Tensors of other libraries: read and written in place, or refused if that would need a copy between devices."""

import numpy as np
import pytest

import bcast

ROW = np.arange(3.0)
CALLS = {
    "broadcast": (lambda out: bcast.broadcast(ROW, (2, 3), out=out), (2, 3)),
    "broadcast_explicit": (lambda out: bcast.broadcast(ROW, (2, 3), [1], mode="explicit", out=out), (2, 3)),
    "broadcast_like": (lambda out: bcast.broadcast_like(ROW, np.ones((2, 3)), out=out), (2, 3)),
    "broadcast_to": (lambda out: bcast.broadcast_to(ROW, (2, 3), out=out), (2, 3)),
    "tile": (lambda out: bcast.tile(ROW, (2, 2), out=out), (2, 6)),
    "repeat": (lambda out: bcast.repeat(ROW, [0, 1, 2], out=out), (3,)),
    "unbroadcast": (lambda out: bcast.unbroadcast(np.ones((4, 3)), (3,), out=out), (3,)),
    "unbroadcast_times": (lambda out: bcast.unbroadcast(np.ones((4, 3)), (3,), times=ROW, out=out), (3,)),
    "unrepeat": (lambda out: bcast.unrepeat(ROW, [1, 2], out=out), (2,)),
    "elementwise": (lambda out: bcast.elementwise(np.add, ROW, np.ones((2, 1)), out=out), (2, 3)),
    "chain": (lambda out: bcast.chain(ROW, (np.add, np.ones((2, 1))), np.negative, out=out), (2, 3)),
}


class Tensor:
    """An array of another library, on a device; `reads` and `writes` count the accesses."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.where = device
        self.reads = self.writes = 0

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, **kwargs):
        self.writes += 1
        return self.array.__dlpack__(**kwargs)

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return self.array


@pytest.mark.parametrize("name", CALLS)
def test_out_is_written_in_place(name):
    call, shape = CALLS[name]
    expected = call(None)
    assert expected.shape == shape
    memory = np.full(shape, -1.0)
    tensor = Tensor(memory)
    assert call(tensor) is tensor
    assert memory.tolist() == expected.tolist()
    assert (tensor.reads, tensor.writes) == (0, 1)
    memory[...] = -1
    with pytest.raises(TypeError, match=r"^`out` expected an array that NumPy can write to, got Tensor: "):
        call(Tensor(memory, device=(2, 0)))
    assert (memory == -1).all()


@pytest.mark.parametrize("name", CALLS)
def test_out_of_another_shape_or_dtype_or_read_only_is_refused_as_an_array_is(name):
    call, shape = CALLS[name]
    for bad in (np.zeros((5, *shape)), np.zeros(shape, "M8[s]"), np.broadcast_to(-1.0, shape)):
        with pytest.raises((ValueError, TypeError)) as expected:
            call(bad)
        # DLPack has no dates, and NumPy exports no array that is read-only.
        exported = bad.dtype.kind != "M" and bad.flags.writeable
        with pytest.raises((ValueError, TypeError)) as found:
            call(Tensor(bad))
        assert str(found.value) == str(expected.value) or not exported


def test_data_is_read_from_the_cpu_only():
    tensor = Tensor(ROW)
    assert bcast.broadcast(tensor, (2, 3)).tolist() == [ROW.tolist()] * 2
    assert tensor.reads == 1
    assert bcast.tile(Tensor(ROW, device=(3, 0)), 2).shape == (6,)  # pinned memory
    far = Tensor(ROW, device=(2, 1))
    with pytest.raises(TypeError, match=r"^`grad` expected .*, got Tensor: it is on device 2:1; copy it to the CPU"):
        bcast.unbroadcast(far, ())
    assert far.reads == 0


class Unreadable(Tensor):
    __array__ = property()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (), (0, 3)])
def test_data_that_speaks_dlpack_alone(shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    tensor = Unreadable(array)
    assert not hasattr(tensor, "__array__")
    np.testing.assert_array_equal(bcast.tile(tensor, 2), np.tile(array, 2), strict=True)
    assert np.shares_memory(bcast._api.converted.as_array("data", tensor), array) == (array.size > 0)
    with pytest.raises(TypeError, match=r"^`a` expected an array that NumPy can read, got Unreadable: it is on device"):
        bcast.repeat(Unreadable(array, device=(2, 0)), 2)
    with pytest.raises(TypeError, match=r"^`xi` expected items that NumPy converts, got a list of Unreadable; stack"):
        bcast.meshgrid([tensor, tensor])
    with pytest.raises(TypeError, match=r"^`data` expected an array that NumPy can read, got Silent: "):
        bcast.broadcast(Silent(), shape)


class Silent:
    """A tensor that does not say where it is."""

    def __dlpack__(self, **kwargs):
        raise AssertionError


def test_out_without_items_and_classes():
    for shape in (0, 3), (2, 0, 3), (3, 0):
        out = Tensor(np.empty(shape))
        assert bcast.broadcast(1.0, shape, out=out) is out
        assert bcast.unbroadcast(np.ones((4, *shape)), shape, out=out) is out
    with pytest.raises(TypeError, match=r"^`out` expected an ndarray without a mask, got type$"):
        bcast.broadcast(ROW, (2, 3), out=Tensor)


def test_functions_without_out_raise_an_error():
    def add(a, b):
        return a + b

    with pytest.raises(TypeError, match="'out'"):
        bcast.elementwise(add, ROW, ROW, out=np.zeros(3))
    for function in (lambda a, b, out: np.add(a, b, out=out), lambda a, b, **kwargs: np.add(a, b, **kwargs)):
        out = np.zeros(3)
        assert bcast.elementwise(function, ROW, ROW, out=out) is out
        assert out.tolist() == [0, 2, 4]


# The libraries themselves.


@pytest.mark.peers
@pytest.mark.parametrize("name", CALLS)
def test_torch_tensors_as_out(name):
    torch = pytest.importorskip("torch")
    call, shape = CALLS[name]
    out = torch.full(shape, -1.0, dtype=torch.float64)
    address = out.data_ptr()
    assert call(out) is out
    assert out.data_ptr() == address
    assert out.tolist() == call(None).tolist()
    strided = torch.full((*shape, 2), -1.0, dtype=torch.float64)
    call(strided[..., 1])
    assert strided[..., 1].tolist() == call(None).tolist()
    assert (strided[..., 0] == -1).all()


@pytest.mark.peers
def test_torch_tensors_that_numpy_cannot_read():
    torch = pytest.importorskip("torch")
    beginning = "^`data` expected an array that NumPy can read, got Tensor: "
    for tensor, reason in (
        (torch.ones(3, dtype=torch.bfloat16), r".*; NumPy has no such dtype: convert it by \.float\(\)"),
        (torch.ones(3, requires_grad=True), "Can't call numpy.* on Tensor that requires grad"),
        (torch.ones(3, device="meta"), ".*meta"),
        (torch.ones(3).to_sparse(), ".*Sparse"),
    ):
        with pytest.raises(TypeError, match=beginning + reason):
            bcast.broadcast(tensor, (2, 3))
    for out in (torch.zeros(2, 3, device="meta"), torch.zeros(2, 3, requires_grad=True), torch.zeros(2, 3).to_sparse()):
        with pytest.raises(TypeError, match=r"^`out` expected an array that NumPy can write to, got Tensor: "):
            bcast.broadcast(np.ones(3, np.float32), (2, 3), out=out)


@pytest.mark.peers
def test_torch_tensors_that_cannot_be_written_in_place():
    torch = pytest.importorskip("torch")
    negated = torch.zeros(2, dtype=torch.complex64).conj().imag
    with pytest.raises(TypeError, match=r"got Tensor: its items are negated lazily; call \.resolve_neg"):
        bcast.broadcast(np.float32(5), (2,), out=negated)
    with pytest.raises(ValueError, match=r"^`out` expected items that share no memory, got Tensor that is"):
        bcast.broadcast(ROW, (2, 3), out=torch.zeros(3, dtype=torch.float64).expand(2, 3))
    with pytest.raises(TypeError, match=r"NumPy has no such dtype: convert it by \.float\(\)"):
        bcast.broadcast(ROW, (2, 3), out=torch.zeros(2, 3, dtype=torch.bfloat16))


@pytest.mark.peers
def test_torch_tensors_are_read_in_place():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6.0).reshape(2, 3).T
    array = bcast._api.converted.as_array("data", tensor)
    assert array.ctypes.data == tensor.data_ptr()
    assert torch.from_numpy(bcast.broadcast(tensor, (4, 3, 2))).equal(tensor.expand(4, 3, 2))


@pytest.mark.peers
def test_jax_arrays():
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(3, dtype="float32")
    read = bcast._api.converted.as_array("data", array)
    assert read.ctypes.data == array.unsafe_buffer_pointer()
    assert bcast.broadcast(array, (2, 3)).tolist() == [[0, 1, 2]] * 2
    with pytest.raises(ValueError, match=r"^`out` expected a writeable array, got a read-only one$"):
        bcast.broadcast(array, (2, 3), out=jax.numpy.zeros((2, 3)))
    assert jax.dlpack.from_dlpack(bcast.broadcast(array, (2, 3))).shape == (2, 3)
