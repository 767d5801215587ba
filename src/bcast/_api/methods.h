/* The built-in function that array methods call while NumPy is patched. It passes on most calls after a few
   comparisons.

   `ndarray.max` and similar methods call a Python function, which calls a global of its module. The patch replaces this
   global with a built-in function whose `self` is a stand-in. The gate is a field of the stand-in. */

#ifndef BCAST_METHODS_H
#define BCAST_METHODS_H

#include <Python.h>
#include <numpy/arrayobject.h>

#include "../_runtime/tuning.h"

/* The module is compiled with few optimizations. With more of them, a call is passed on by a single jump. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O2")
#endif

/* Functions that are not inlined, so that the code before their calls needs few registers. */
#if defined(__GNUC__)
#define BCAST_APART __attribute__((noinline))
#elif defined(_MSC_VER)
#define BCAST_APART __declspec(noinline)
#else
#define BCAST_APART
#endif

enum {
    BCAST_AN_EXTREME = 1,   /* the kinds of results of methods */
    BCAST_A_TRUTH = 2,
    BCAST_A_SUM = 3,
    BCAST_A_PRODUCT = 4,
    BCAST_A_SUBCLASS = 1,       /* reasons, as `patching.pyx` numbers them */
    BCAST_ANOTHER_DTYPE = 2,
    BCAST_TOO_SMALL = 5,
    BCAST_IS_CONSIDERED = -1    /* no reason */
};

typedef struct {
    PyTypeObject *array_type;   /* NumPy's array type, which is faster to read here */
    Py_ssize_t few_items;   /* arrays with fewer items are passed on at once; 0 if the gate is closed or timed */
    Py_ssize_t *passed;     /* passed calls by reason; without a GIL, simultaneous calls may be counted once */
    _PyCFunctionFastWithKeywords former;    /* gets the calls that are passed on */
    PyObject *former_self;
    int finds;
} bcast_method_gate;

/* Handles the calls that the first comparisons did not pass on. */
typedef PyObject *(*bcast_caller)(PyObject *stand_in, PyObject *const *args, size_t count, PyObject *names);

static bcast_caller bcast_call_stand_in = NULL;
static Py_ssize_t bcast_gate_offset = 0;    /* the offset of the gate in a stand-in, in bytes */

#define BCAST_GATE_OF(stand_in) ((bcast_method_gate *) ((char *) (stand_in) + bcast_gate_offset))

/* Whether two threads beat NumPy on bools or bytes, although NumPy stops early and adds bytes unconverted. */
static inline int bcast_gain_by_threads(npy_intp items)
{
    return items >= 2 * BCAST_SUM_SHARE_BYTES;
}

/* Whether bcast reduces a contiguous array to one item faster than NumPy does. NumPy finds extremes at the speed of
   memory, and stops early for bools. */
static inline int bcast_gains_on_one_segment(int finds, PyArrayObject *array, npy_intp items)
{
    if (finds == BCAST_A_TRUTH)
        return items >= METHOD_ROW_ITEMS && PyArray_TYPE(array) != NPY_BOOL;
    if (finds != BCAST_A_SUM)
        return 0;
    if (PyArray_TYPE(array) <= NPY_UBYTE)
        return bcast_gain_by_threads(items);
    return items >= METHOD_ROW_ITEMS && PyArray_ISFLOAT(array);
}

static inline npy_intp bcast_items_of(PyArrayObject *array)
{
    const npy_intp *const lengths = PyArray_DIMS(array);
    npy_intp items = 1;
    for (npy_intp i = PyArray_NDIM(array); --i >= 0;)
        items *= lengths[i];
    return items;
}

/* The reason to leave a method call to NumPy, for an array that is large enough to gain. */
static inline int bcast_why_not_items(int finds, PyArrayObject *array, npy_intp items, PyObject *axis)
{
    if (finds == BCAST_A_PRODUCT && PyArray_TYPE(array) > NPY_ULONGLONG)
        return BCAST_ANOTHER_DTYPE; /* `take_prod` has the same test, in ten times the time */
    if ((PyArray_NDIM(array) > 1 && axis != Py_None) || !PyArray_ISONESEGMENT(array))
        return BCAST_IS_CONSIDERED;
    return bcast_gains_on_one_segment(finds, array, items) ? BCAST_IS_CONSIDERED : BCAST_TOO_SMALL;
}

/* The reason to leave a method call to NumPy that the array and the axis show, or that there is none. */
static inline int bcast_why_not_method(int finds, PyArrayObject *array, PyObject *axis)
{
    const npy_intp items = bcast_items_of(array);
    return items < PATCHED_ITEMS ? BCAST_TOO_SMALL : bcast_why_not_items(finds, array, items, axis);
}

/* Open a method's gate, or close it. A closed or timed gate passes all calls to the stand-in. */
static inline void bcast_set_method_gate(bcast_method_gate *gate, int is_open)
{
    gate->array_type = &PyArray_Type;
    gate->few_items = is_open ? PATCHED_ITEMS : 0;
}

/* Handle a call for an array that may have many items. */
static BCAST_APART PyObject *bcast_call_with_items(
    PyObject *stand_in, PyObject *const *args, Py_ssize_t count, PyObject *names, npy_intp items)
{
    bcast_method_gate *const gate = BCAST_GATE_OF(stand_in);
    const int why = bcast_why_not_items(gate->finds, (PyArrayObject *) args[0], items, args[1]);
    if (why == BCAST_IS_CONSIDERED || gate->few_items == 0)
        return bcast_call_stand_in(stand_in, args, (size_t) count, names);
    gate->passed[why]++;
    return gate->former(gate->former_self, args, count, names);
}

/* Handle a call for an object outside of the base class. */
static BCAST_APART PyObject *bcast_call_with_others(
    PyObject *stand_in, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    bcast_method_gate *const gate = BCAST_GATE_OF(stand_in);
    if (count < 2 || gate->few_items == 0 || !PyArray_Check(args[0]))
        return bcast_call_stand_in(stand_in, args, (size_t) count, names);
    gate->passed[BCAST_A_SUBCLASS]++;
    return gate->former(gate->former_self, args, count, names);
}

/* The code of the built-in function. Callers own a reference to it, and it owns a reference to the stand-in. */
static PyObject *bcast_call_for_method(PyObject *stand_in, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    bcast_method_gate *const gate = BCAST_GATE_OF(stand_in);
    npy_intp items;
    if (count < 2 || !Py_IS_TYPE(args[0], gate->array_type))
        return bcast_call_with_others(stand_in, args, count, names);
    items = bcast_items_of((PyArrayObject *) args[0]);
    if (items >= gate->few_items)
        return bcast_call_with_items(stand_in, args, count, names, items);
    gate->passed[BCAST_TOO_SMALL]++;
    return gate->former(gate->former_self, args, count, names);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#endif
