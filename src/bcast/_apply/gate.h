/* Gates: while NumPy is patched, each call of a ufunc enters a gate. The gate passes the calls that gain to the core,
   and all others to NumPy.

   A public field of a ufunc, `vectorcall`, has the address of the function that runs its calls. Operators, in-place
   operators, callers in Python and NumPy's own code use this field; methods such as `reduce` and `outer` do not. A gate
   keeps the field's former value. A call that is passed on costs only a few comparisons. */

#ifndef BCAST_GATE_H
#define BCAST_GATE_H

#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "../_runtime/clock.h"
#include "../_runtime/tuning.h"

/* BCAST_APART keeps functions from being inlined, so that the code before their calls needs few registers.
   BCAST_IN_REGISTER keeps an address that compilers would compute again at each use. BCAST_LIKELY has compilers lay out
   the code without a jump for the case that the condition holds. BCAST_HOT keeps functions that run often together. */
#if defined(__GNUC__)
#define BCAST_APART __attribute__((noinline))
#define BCAST_IN_REGISTER(address) __asm__("" : "+r"(address))
#define BCAST_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define BCAST_HOT __attribute__((hot))
#elif defined(_MSC_VER)
#define BCAST_APART __declspec(noinline)
#define BCAST_IN_REGISTER(address) (void) (address)
#define BCAST_LIKELY(condition) (condition)
#define BCAST_HOT
#else
#define BCAST_APART
#define BCAST_IN_REGISTER(address) (void) (address)
#define BCAST_LIKELY(condition) (condition)
#define BCAST_HOT
#endif

enum {
    BCAST_GATES = 512,  /* places of a hash table, which is one eighth full */
    BCAST_ONE_ROW = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS,
    BCAST_REASONS = 7,  /* the reasons to pass on calls; `_api/patching.pyx` has their numbers */
    BCAST_NO_ARRAY = 0,
    BCAST_SUBCLASS = 1,
    BCAST_DTYPE = 2,
    BCAST_KEYWORD = 3,
    BCAST_ARGUMENT = 4,
    BCAST_SMALL = 5,
    BCAST_MAY_GAIN = -1,    /* no reason: ask the core */
    BCAST_BY_THREADS = -2   /* the same, if there are threads */
};

enum {
    BCAST_CLOSED = 0,   /* all calls are passed on, and none is counted */
    BCAST_OPEN = 1,
    BCAST_TIMED = 2     /* open, and calls are timed */
};

typedef struct {
    PyObject *ufunc;        /* the gate's ufunc; NULL in a free place */
    PyObject *usual;        /* the same while the gate is open and does not time calls; otherwise NULL */
    vectorcallfunc former;  /* gets the calls that are passed on */
    Py_ssize_t operands;    /* 1 or 2 */
    PyTypeObject *array_type;   /* NumPy's array type, which is faster to read here */
    npy_intp bytes_for_threads; /* the size of an operand from which on threads may gain */
    long long passed_early; /* calls passed on by the first comparisons; up to here, these use one line of a cache */
    int cost;               /* the time of an item, relative to an addition */
    int out_by_name;        /* NumPy warns if `out` is given by position */
    int state;              /* one of the states above */
    int buried;             /* another function had the field when the last patch ended, and may call this gate */
    long long taken;        /* taken calls; without a GIL, simultaneous calls may be counted once */
    long long items;        /* items of these calls' results */
    long long passed[BCAST_REASONS];    /* all other calls that were passed on, by reasons */
    double seconds_taken;   /* the time of taken calls, if calls are timed */
    double seconds_passed;  /* the time of passed calls, if calls are timed */
} bcast_gate;

/* Has the core compute a call. Returns a new reference to the result, NULL for an error, or `Py_NotImplemented` and the
   reason to pass on the call. */
typedef PyObject *(*bcast_taker)(bcast_gate *gate, PyObject *a, PyObject *b, PyObject *out, int by_threads, int *why);

static union {
    bcast_gate gate;
    char bytes[256];        /* a power of 2, so that shifts find a place */
} bcast_gates[BCAST_GATES];
static bcast_taker bcast_take = NULL;
static int bcast_timing = 0;            /* whether calls are timed */
static int bcast_takes_ellipsis = 0;    /* whether `out=...` asks for an array as the result, as from NumPy 2.3 on */

/* The place of a ufunc's gate, unless another gate has it. */
static inline size_t bcast_place_of(PyObject *ufunc)
{
    return (((size_t) ufunc >> 4) ^ ((size_t) ufunc >> 12)) & (BCAST_GATES - 1);
}

/* The gate of a ufunc, or the free place for it. */
static inline bcast_gate *bcast_gate_of(PyObject *ufunc)
{
    size_t place = bcast_place_of(ufunc);
    while (bcast_gates[place].gate.ufunc != ufunc && bcast_gates[place].gate.ufunc != NULL)
        place = (place + 1) & (BCAST_GATES - 1);
    return &bcast_gates[place].gate;
}

static inline npy_intp bcast_items(PyArrayObject *array)
{
    const npy_intp *const lengths = PyArray_DIMS(array);
    npy_intp items = 1;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        items *= lengths[i];
    return items;
}

/* The number of items of an array; -1 if the other array has another shape. */
static inline npy_intp bcast_items_of_both(PyArrayObject *a, PyArrayObject *b)
{
    const npy_intp *const of_a = PyArray_DIMS(a), *const of_b = PyArray_DIMS(b);
    npy_intp items = 1;

    if (PyArray_NDIM(a) != PyArray_NDIM(b))
        return -1;

    for (int i = 0; i < PyArray_NDIM(a); i++) {
        if (of_a[i] != of_b[i])
            return -1;
        items *= of_a[i];
    }
    return items;
}

/* Whether the core may know the numbers of an array; it may know dtypes of other packages. */
static inline int bcast_may_be_numbers(PyArrayObject *array)
{
    const int number = PyArray_TYPE(array);
    return number <= NPY_CLONGDOUBLE || number == NPY_HALF || number >= NPY_USERDEF;
}

/* Whether items are contiguous, or have one axis: NumPy then needs a single loop. */
static inline int bcast_is_one_row(PyArrayObject *array)
{
    return PyArray_NDIM(array) < 2 || PyArray_FLAGS(array) & BCAST_ONE_ROW;
}

static inline int bcast_lie_alike(PyArrayObject *a, PyArrayObject *b)
{
    return PyArray_NDIM(a) < 2 || PyArray_FLAGS(a) & PyArray_FLAGS(b) & BCAST_ONE_ROW;
}

/* Whether the core may gain if NumPy needs a single loop: only by threads. */
static inline int bcast_of_one_row(const bcast_gate *gate, PyArrayObject *array, npy_intp items)
{
    return items * PyArray_ITEMSIZE(array) >= gate->bytes_for_threads ? BCAST_BY_THREADS : BCAST_SMALL;
}

/* The same if NumPy needs a loop for each row. */
static inline int bcast_of_rows(npy_intp items)
{
    return items >= PATCHED_ITEMS ? BCAST_MAY_GAIN : BCAST_SMALL;
}

static inline int bcast_is_scalar(PyObject *operand)
{
    return PyFloat_CheckExact(operand) || PyLong_CheckExact(operand) || PyBool_Check(operand) ||
           PyComplex_CheckExact(operand);
}

/* `PyArray_Check`, without a search of the bases where the first of them shows it: a class with arrays among its bases
   derives from one of these first, for the layout of its instances. */
static inline int bcast_is_array(PyObject *operand)
{
    const PyTypeObject *const base = Py_TYPE(operand)->tp_base;
    if (base == &PyArray_Type)
        return 1;
    return base != &PyBaseObject_Type && PyArray_Check(operand);
}

static inline int bcast_why_no_array(PyObject *operand)
{
    return bcast_is_array(operand) ? BCAST_SUBCLASS : BCAST_NO_ARRAY;
}

/* Whether the core may take one array, or an array and a number. */
static inline int bcast_why_not_one(const bcast_gate *gate, PyArrayObject *array, PyObject *scalar)
{
    const npy_intp items = bcast_items(array);
    const int gain = bcast_is_one_row(array) ? bcast_of_one_row(gate, array, items) : bcast_of_rows(items);
    if (gain >= 0)
        return gain;
    if (scalar != NULL && !bcast_is_scalar(scalar) && !PyArray_CheckScalar(scalar))
        return BCAST_NO_ARRAY;
    return bcast_may_be_numbers(array) ? gain : BCAST_DTYPE;
}

/* Whether the core may take two arrays. */
static inline int bcast_why_not_pair(const bcast_gate *gate, PyArrayObject *a, PyArrayObject *b)
{
    const npy_intp of_both = bcast_items_of_both(a, b);
    npy_intp of_a, of_b;
    int gain = BCAST_MAY_GAIN;

    if (of_both >= 0)
        gain = bcast_lie_alike(a, b) ? bcast_of_one_row(gate, a, of_both) : bcast_of_rows(of_both);
    else {
        of_a = bcast_items(a);
        of_b = bcast_items(b);
        if (of_b == 1)
            gain = bcast_is_one_row(a) ? bcast_of_one_row(gate, a, of_a) : bcast_of_rows(of_a);
        else if (of_a == 1)
            gain = bcast_is_one_row(b) ? bcast_of_one_row(gate, b, of_b) : bcast_of_rows(of_b);
    }

    if (gain >= 0)
        return gain;
    return bcast_may_be_numbers(a) && bcast_may_be_numbers(b) ? gain : BCAST_DTYPE;
}

/* Whether the only argument after the operands is `out`, by name or by position; otherwise the reason to pass on. */
static inline int bcast_is_out_alone(const bcast_gate *gate, Py_ssize_t more, PyObject *names)
{
    if (names == NULL)
        return more > 1 || gate->out_by_name ? BCAST_ARGUMENT : BCAST_MAY_GAIN;
    if (more != 0 || PyTuple_GET_SIZE(names) != 1)
        return BCAST_KEYWORD;
    return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") ? BCAST_KEYWORD : BCAST_MAY_GAIN;
}

/* Find `out` among the arguments; NULL if there is none. Return the reason to pass on the call if `out` is not an array
   of the base class, or if there is another keyword. */
static inline int bcast_find_out(
    const bcast_gate *gate, PyObject *const *args, Py_ssize_t more, PyObject *names, PyObject **out)
{
    const int why_not = bcast_is_out_alone(gate, more, names);
    PyObject *given = args[0];

    if (why_not != BCAST_MAY_GAIN)
        return why_not;
    if (names != NULL && given == Py_Ellipsis && bcast_takes_ellipsis)  /* in a tuple, NumPy refuses it */
        return BCAST_MAY_GAIN;
    if (names != NULL && PyTuple_CheckExact(given) && PyTuple_GET_SIZE(given) == 1)
        given = PyTuple_GET_ITEM(given, 0);
    if (given == Py_None)
        return BCAST_MAY_GAIN;

    *out = given;
    return PyArray_CheckExact(given) ? BCAST_MAY_GAIN : bcast_why_no_array(given);
}

/* The same for other operands than two arrays of the base class. */
static inline int bcast_why_not_others(const bcast_gate *gate, PyObject *a, PyObject *b)
{
    if (PyArray_CheckExact(a) && !bcast_is_array(b))
        return bcast_why_not_one(gate, (PyArrayObject *) a, b);
    if (PyArray_CheckExact(b) && !bcast_is_array(a))
        return bcast_why_not_one(gate, (PyArrayObject *) b, a);
    return bcast_is_array(a) || bcast_is_array(b) ? BCAST_SUBCLASS : BCAST_NO_ARRAY;
}

/* Whether the core may take these operands, or the reason to pass them on. */
static inline int bcast_why_not(const bcast_gate *gate, PyObject *const *args, Py_ssize_t count)
{
    if (count < gate->operands)
        return BCAST_ARGUMENT;
    if (gate->operands == 1) {
        if (PyArray_CheckExact(args[0]))
            return bcast_why_not_one(gate, (PyArrayObject *) args[0], NULL);
        return bcast_why_no_array(args[0]);
    }

    if (PyArray_CheckExact(args[0]) && PyArray_CheckExact(args[1]))
        return bcast_why_not_pair(gate, (PyArrayObject *) args[0], (PyArrayObject *) args[1]);
    return bcast_why_not_others(gate, args[0], args[1]);
}

/* Have the core compute a call, or pass it on; `why` is the reason to skip the core. */
static BCAST_APART PyObject *bcast_take_or_pass(
    bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names, int why)
{
    const Py_ssize_t more = PyVectorcall_NARGS(count) - gate->operands;
    const int by_threads = why == BCAST_BY_THREADS;
    double begun = bcast_timing ? bcast_clock() : 0;
    PyObject *out = NULL, *result;

    if (why < 0 && (more > 0 || names != NULL))
        why = bcast_find_out(gate, args + gate->operands, more, names, &out);
    if (why < 0) {
        result = bcast_take(gate, args[0], args[gate->operands - 1], out, by_threads, &why);
        if (result != Py_NotImplemented) {
            if (bcast_timing)
                gate->seconds_taken += bcast_clock() - begun;
            return result;
        }
        Py_DECREF(result);
    }

    gate->passed[why]++;
    if (!bcast_timing)
        return gate->former(gate->ufunc, args, count, names);
    begun = bcast_clock();
    result = gate->former(gate->ufunc, args, count, names);
    gate->seconds_passed += bcast_clock() - begun;
    return result;
}

/* Pass on a call that is not timed. */
static inline PyObject *bcast_pass_on(
    bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names, int why)
{
    gate->passed[why]++;
    return gate->former(gate->ufunc, args, count, names);
}

/* Run a call at an open gate that the first comparisons did not pass on. */
static BCAST_HOT BCAST_APART PyObject *bcast_consider(
    bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names)
{
    const int why = bcast_why_not(gate, args, PyVectorcall_NARGS(count));
    if (why >= 0 && !bcast_timing)
        return bcast_pass_on(gate, args, count, names, why);
    return bcast_take_or_pass(gate, args, count, names, why);
}

/* Run a call at a gate that is closed, timed, or not in its first place. */
static BCAST_HOT BCAST_APART PyObject *bcast_call_elsewhere(
    PyObject *ufunc, PyObject *const *args, size_t count, PyObject *names)
{
    bcast_gate *const gate = bcast_gate_of(ufunc);
    if (gate->state == BCAST_CLOSED)
        return gate->former(ufunc, args, count, names);
    return bcast_consider(gate, args, count, names);
}

/* Pass on a call with small arrays. */
static inline PyObject *bcast_pass_small(bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names)
{
    gate->passed_early++;
    return gate->former(gate->ufunc, args, count, names);
}

/* Whether the type of an operand is static, like the types of arrays and of Python's and NumPy's numbers. Subclasses
   made in Python are heap types. */
static inline int bcast_is_static(void *operand)
{
    return !PyType_HasFeature(Py_TYPE((PyObject *) operand), Py_TPFLAGS_HEAPTYPE);
}

/* Whether an array without gaps between items, alone or with one number, has too few items to gain. */
static inline int bcast_is_small(const bcast_gate *gate, PyArrayObject *array)
{
    const npy_intp *const lengths = PyArray_DIMS(array);
    npy_intp bytes = PyArray_ITEMSIZE(array);
    int rank = PyArray_NDIM(array);

    if (BCAST_LIKELY(rank == 1))
        return bytes * lengths[0] < gate->bytes_for_threads;
    if (!bcast_is_one_row(array))
        return 0;
    while (--rank >= 0)
        bytes *= lengths[rank];
    return bytes < gate->bytes_for_threads;
}

/* Whether an array has one item, on one axis at most. */
static inline int bcast_has_one_item(PyArrayObject *array)
{
    return PyArray_NDIM(array) == 0 || (PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) == 1);
}

/* Run a call with two arrays of different ranks, or of one axis and different lengths. */
static BCAST_HOT BCAST_APART PyObject *bcast_call_with_item(
    bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names, PyArrayObject *a, PyArrayObject *b)
{
    if (bcast_has_one_item(a))
        a = b;
    else if (!bcast_has_one_item(b))
        return bcast_consider(gate, args, count, names);
    if (bcast_is_small(gate, a))
        return bcast_pass_small(gate, args, count, names);
    return bcast_consider(gate, args, count, names);
}

/* Whether two arrays of the same rank have the same axes and no gaps between items, and too few of these to gain. */
static inline int bcast_are_small(const bcast_gate *gate, PyArrayObject *a, PyArrayObject *b)
{
    const npy_intp *const lengths = PyArray_DIMS(a), *const others = PyArray_DIMS(b);
    npy_intp bytes = PyArray_ITEMSIZE(a);
    int rank = PyArray_NDIM(a);

    if (!bcast_lie_alike(a, b))
        return 0;
    while (--rank >= 0) {
        if (lengths[rank] != others[rank])
            return 0;
        bytes *= lengths[rank];
    }
    return bytes < gate->bytes_for_threads;
}

/* Run a call with two arrays of the same rank, not 1. */
static BCAST_HOT BCAST_APART PyObject *bcast_call_with_axes(
    bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names, PyArrayObject *a, PyArrayObject *b)
{
    if (BCAST_LIKELY(bcast_are_small(gate, a, b)))
        return bcast_pass_small(gate, args, count, names);
    return bcast_consider(gate, args, count, names);
}

/* Run a call with two arrays of the base class. */
static inline PyObject *bcast_call_with_two(
    bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names, PyArrayObject *a, PyArrayObject *b)
{
    if (!BCAST_LIKELY(PyArray_NDIM(a) == PyArray_NDIM(b)))
        return bcast_call_with_item(gate, args, count, names, a, b);
    if (!BCAST_LIKELY(PyArray_NDIM(a) == 1))
        return bcast_call_with_axes(gate, args, count, names, a, b);
    if (!BCAST_LIKELY(PyArray_DIM(a, 0) == PyArray_DIM(b, 0)))
        return bcast_call_with_item(gate, args, count, names, a, b);
    if (BCAST_LIKELY(PyArray_DIM(a, 0) * PyArray_ITEMSIZE(a) < gate->bytes_for_threads))
        return bcast_pass_small(gate, args, count, names);
    return bcast_consider(gate, args, count, names);
}

/* The function in the field of a patched ufunc. In few instructions, and with few jumps, it passes on most small
   calls: those with only numbers, and those with one array, with an array and a number, or with two arrays of equal
   shapes, all without gaps between items. */
static BCAST_HOT PyObject *bcast_call_at_gate(PyObject *ufunc, PyObject *const *args, size_t count, PyObject *names)
{
    bcast_gate *gate = &bcast_gates[bcast_place_of(ufunc)].gate;
    PyArrayObject *a, *b;
    BCAST_IN_REGISTER(gate);

    if (!BCAST_LIKELY(gate->usual == ufunc))
        return bcast_call_elsewhere(ufunc, args, count, names);
    if (!BCAST_LIKELY(PyVectorcall_NARGS(count) >= gate->operands))
        return bcast_consider(gate, args, count, names);
    a = (PyArrayObject *) args[0];
    b = (PyArrayObject *) args[gate->operands - 1];

    if (BCAST_LIKELY(Py_IS_TYPE(a, gate->array_type))) {
        if (BCAST_LIKELY(Py_IS_TYPE(b, gate->array_type)))
            return bcast_call_with_two(gate, args, count, names, a, b);
        if (BCAST_LIKELY(bcast_is_static(b) && bcast_is_small(gate, a)))
            return bcast_pass_small(gate, args, count, names);
    } else if (BCAST_LIKELY(bcast_is_static(a))) {
        if (BCAST_LIKELY(Py_IS_TYPE(b, gate->array_type))) {
            if (BCAST_LIKELY(bcast_is_small(gate, b)))
                return bcast_pass_small(gate, args, count, names);
        } else if (bcast_is_static(b))
            return bcast_pass_on(gate, args, count, names, BCAST_NO_ARRAY);
    }
    return bcast_consider(gate, args, count, names);
}

/* Close a gate, open it, or have it time calls. */
static inline void bcast_set_state(bcast_gate *gate, int state)
{
    gate->state = state;
    gate->usual = state == BCAST_OPEN ? gate->ufunc : NULL;
}

/* Set the field of a ufunc. Other threads see the gate's fields first. */
static inline void bcast_set_vectorcall(PyUFuncObject *ufunc, vectorcallfunc function)
{
#if defined(__GNUC__)
    __atomic_store_n(&ufunc->vectorcall, function, __ATOMIC_RELEASE);
#else
    *(vectorcallfunc volatile *) &ufunc->vectorcall = function;
#endif
}

/* Whether the calls of a gate's ufunc go through it. */
static inline int bcast_is_open(const bcast_gate *gate)
{
    return gate->state != BCAST_CLOSED && ((PyUFuncObject *) gate->ufunc)->vectorcall == bcast_call_at_gate;
}

/* Put a gate before a ufunc. If another library has put a function before the gate since an earlier patch, that
   function stays, and calls the gate. */
static void bcast_open_gate(
    PyObject *ufunc, int operands, int cost, npy_intp bytes_for_threads, int out_by_name)
{
    PyUFuncObject *const fields = (PyUFuncObject *) ufunc;
    bcast_gate *const gate = bcast_gate_of(ufunc);

    if (fields->vectorcall != bcast_call_at_gate && !(gate->buried && fields->vectorcall != gate->former)) {
        gate->former = fields->vectorcall;
        gate->operands = operands;
        gate->cost = cost;
        gate->out_by_name = out_by_name;
        gate->bytes_for_threads = bytes_for_threads;
        gate->array_type = &PyArray_Type;
        gate->ufunc = ufunc;
        bcast_set_vectorcall(fields, bcast_call_at_gate);
    }
    bcast_set_state(gate, bcast_timing ? BCAST_TIMED : BCAST_OPEN);
}

/* Start or stop timing all calls. */
static void bcast_time_gates(int wanted)
{
    bcast_timing = wanted;
    for (int i = 0; i < BCAST_GATES; i++)
        if (bcast_gates[i].gate.state != BCAST_CLOSED)
            bcast_set_state(&bcast_gates[i].gate, wanted ? BCAST_TIMED : BCAST_OPEN);
}

/* Remove a gate. If another function was put before it, that function stays. */
static void bcast_close_gate(PyObject *ufunc)
{
    PyUFuncObject *const fields = (PyUFuncObject *) ufunc;
    bcast_gate *const gate = bcast_gate_of(ufunc);
    bcast_set_state(gate, BCAST_CLOSED);
    gate->buried = fields->vectorcall != bcast_call_at_gate;
    if (!gate->buried)
        bcast_set_vectorcall(fields, gate->former);
}

/* Call a ufunc without its gate. */
static PyObject *bcast_call_past_gate(PyObject *ufunc, PyObject *const *args, size_t count, PyObject *names)
{
    if (Py_IS_TYPE(ufunc, &PyUFunc_Type) && ((PyUFuncObject *) ufunc)->vectorcall == bcast_call_at_gate)
        return bcast_gate_of(ufunc)->former(ufunc, args, count, names);
    return PyObject_Vectorcall(ufunc, args, count, names);
}

#endif
