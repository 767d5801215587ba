/* Gates: functions at which ufuncs are called while NumPy is patched. They have the core take what gains by it, and
   pass all else on.

   A ufunc keeps the address of the function that calls it in a public field, `vectorcall`. Operators, operators in
   place, and NumPy's own code call ufuncs through it, as callers in Python do; methods such as `reduce` and `outer` do
   not. A gate keeps what was in that field. What it passes on costs a few compares. */

#ifndef BCAST_GATE_H
#define BCAST_GATE_H

#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "../_runtime/clock.h"
#include "../_runtime/tuning.h"

/* Functions that are not inlined, so that what comes before their calls needs few registers. BCAST_IN_REGISTER keeps an
   address that compilers would compute anew at each use. */
#if defined(__GNUC__)
#define BCAST_APART __attribute__((noinline))
#define BCAST_IN_REGISTER(address) __asm__("" : "+r"(address))
#elif defined(_MSC_VER)
#define BCAST_APART __declspec(noinline)
#define BCAST_IN_REGISTER(address) (void) (address)
#else
#define BCAST_APART
#define BCAST_IN_REGISTER(address) (void) (address)
#endif

enum {
    BCAST_GATES = 512,  /* places of a hash table, of which a sixth is used */
    BCAST_ONE_ROW = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS,
    BCAST_REASONS = 7,  /* as `_api/patching.pyx` numbers them: why calls are passed on */
    BCAST_NO_ARRAY = 0,
    BCAST_SUBCLASS = 1,
    BCAST_DTYPE = 2,
    BCAST_KEYWORD = 3,
    BCAST_ARGUMENT = 4,
    BCAST_SMALL = 5,
    BCAST_MAY_GAIN = -1,    /* none of them: the core is asked */
    BCAST_BY_THREADS = -2   /* the same, if there are threads */
};

enum {
    BCAST_CLOSED = 0,   /* all calls are passed on, and none is counted */
    BCAST_OPEN = 1,
    BCAST_TIMED = 2     /* open, and calls are timed */
};

typedef struct {
    PyObject *ufunc;        /* whose gate it is; NULL in a free place */
    PyObject *usual;        /* the same while the gate is open and calls are not timed; else NULL */
    vectorcallfunc former;  /* what is called for all that is passed on */
    Py_ssize_t operands;    /* 1 or 2 */
    int cost;               /* time of an item, in times of a sum's of that size */
    int out_by_name;        /* NumPy warns of a result's array that is given by position */
    npy_intp bytes_for_threads; /* of an operand, from which on threads may gain */
    int state;              /* one of those above */
    int buried;             /* another's function was there when the last patch ended, and may call this one */
    long long taken;        /* calls; without a GIL, some that happen at the same time may not be counted */
    long long items;        /* of the results of these */
    long long passed[BCAST_REASONS];
    double seconds_taken;   /* while calls are timed, */
    double seconds_passed;  /* by NumPy */
} bcast_gate;

/* Has the core do a call; a new reference to the result, NULL for an error, or `Py_NotImplemented` and the reason why
   it is passed on. */
typedef PyObject *(*bcast_taker)(bcast_gate *gate, PyObject *a, PyObject *b, PyObject *out, int by_threads, int *why);

static bcast_gate bcast_gates[BCAST_GATES];
static bcast_taker bcast_take = NULL;
static int bcast_timing = 0;            /* whether calls are timed */
static int bcast_takes_ellipsis = 0;    /* as `out`, for a result that is an array: NumPy does since 2.3 */

/* Where a ufunc's gate is, unless that place was taken. */
static inline size_t bcast_place_of(PyObject *ufunc)
{
    return (((size_t) ufunc >> 4) ^ ((size_t) ufunc >> 12)) & (BCAST_GATES - 1);
}

/* The gate of a ufunc, or the free place for it. */
static inline bcast_gate *bcast_gate_of(PyObject *ufunc)
{
    size_t place = bcast_place_of(ufunc);
    while (bcast_gates[place].ufunc != ufunc && bcast_gates[place].ufunc != NULL)
        place = (place + 1) & (BCAST_GATES - 1);
    return &bcast_gates[place];
}

static inline npy_intp bcast_items(PyArrayObject *array)
{
    const npy_intp *const lengths = PyArray_DIMS(array);
    npy_intp items = 1;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        items *= lengths[i];
    return items;
}

/* How many items an array has, less than 0 if another one has not its shape. */
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

/* Whether the items of an array may be numbers of ours; those of other packages' dtypes may be. */
static inline int bcast_may_be_numbers(PyArrayObject *array)
{
    const int number = PyArray_TYPE(array);
    return number <= NPY_CLONGDOUBLE || number == NPY_HALF || number >= NPY_USERDEF;
}

/* Whether items lie side by side, or along one axis: NumPy's loop then runs along all of them at once. */
static inline int bcast_is_one_row(PyArrayObject *array)
{
    return PyArray_NDIM(array) < 2 || PyArray_FLAGS(array) & BCAST_ONE_ROW;
}

static inline int bcast_lie_alike(PyArrayObject *a, PyArrayObject *b)
{
    return PyArray_NDIM(a) < 2 || PyArray_FLAGS(a) & PyArray_FLAGS(b) & BCAST_ONE_ROW;
}

/* What may be gained by the core where NumPy's loop runs along all items at once: threads, or a loop of our own. */
static inline int bcast_of_one_row(const bcast_gate *gate, PyArrayObject *array, npy_intp items)
{
    return items * PyArray_ITEMSIZE(array) >= gate->bytes_for_threads ? BCAST_BY_THREADS : BCAST_SMALL;
}

/* The same where NumPy's loop is called for row after row. */
static inline int bcast_of_rows(npy_intp items)
{
    return items >= PATCHED_ITEMS ? BCAST_MAY_GAIN : BCAST_SMALL;
}

static inline int bcast_is_scalar(PyObject *operand)
{
    return PyFloat_CheckExact(operand) || PyLong_CheckExact(operand) || PyBool_Check(operand) ||
           PyComplex_CheckExact(operand);
}

static BCAST_APART int bcast_why_no_array(PyObject *operand)
{
    return PyArray_Check(operand) ? BCAST_SUBCLASS : BCAST_NO_ARRAY;
}

/* Whether the core may be asked for one array, or an array and a number. */
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

/* Whether the core may be asked for two arrays. */
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

/* Whether what follows the operands may be `out` alone, by name or by position; or why the call is passed on. */
static inline int bcast_is_out_alone(const bcast_gate *gate, Py_ssize_t more, PyObject *names)
{
    if (names == NULL)
        return more > 1 || gate->out_by_name ? BCAST_ARGUMENT : BCAST_MAY_GAIN;
    if (more != 0 || PyTuple_GET_SIZE(names) != 1)
        return BCAST_KEYWORD;
    return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") ? BCAST_KEYWORD : BCAST_MAY_GAIN;
}

/* Find the result's array among the arguments, NULL if there is none; return why the call is passed on if it is not
   one of the base class, or if there is another keyword. */
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

/* The same for what is not two arrays of the base class. */
static BCAST_APART int bcast_why_not_others(const bcast_gate *gate, PyObject *a, PyObject *b)
{
    if (PyArray_CheckExact(a) && !PyArray_Check(b))
        return bcast_why_not_one(gate, (PyArrayObject *) a, b);
    if (PyArray_CheckExact(b) && !PyArray_Check(a))
        return bcast_why_not_one(gate, (PyArrayObject *) b, a);
    return PyArray_Check(a) || PyArray_Check(b) ? BCAST_SUBCLASS : BCAST_NO_ARRAY;
}

/* Whether the core may be asked for operands, or why not. */
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

/* Have the core do a call, or else pass it on: `why`, if the core is not asked. */
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

/* Do a call at an open gate. */
static BCAST_APART PyObject *bcast_consider(bcast_gate *gate, PyObject *const *args, size_t count, PyObject *names)
{
    return bcast_take_or_pass(gate, args, count, names, bcast_why_not(gate, args, PyVectorcall_NARGS(count)));
}

/* Do a call at a gate that is closed, timed, or not in its first place. */
static BCAST_APART PyObject *bcast_call_unusual(PyObject *ufunc, PyObject *const *args, size_t count, PyObject *names)
{
    bcast_gate *const gate = bcast_gate_of(ufunc);
    if (gate->state == BCAST_CLOSED)
        return gate->former(ufunc, args, count, names);
    return bcast_consider(gate, args, count, names);
}

/* What a patched ufunc's field has. First comes, in few instructions, what most small calls have: an array, alone, with
   a number, or with another one of its shape, and no room between items. */
static PyObject *bcast_call_at_gate(PyObject *ufunc, PyObject *const *args, size_t count, PyObject *names)
{
    bcast_gate *gate = &bcast_gates[bcast_place_of(ufunc)];
    PyArrayObject *a, *b;
    const npy_intp *lengths, *lengths_of_b;
    npy_intp rank, bytes;
    BCAST_IN_REGISTER(gate);
    if (gate->usual != ufunc)
        return bcast_call_unusual(ufunc, args, count, names);
    if (PyVectorcall_NARGS(count) < gate->operands)
        goto consider;
    a = (PyArrayObject *) args[0];
    b = (PyArrayObject *) args[gate->operands - 1];
    if (!PyArray_CheckExact(a))
        goto consider;

    rank = PyArray_NDIM(a);
    lengths = lengths_of_b = PyArray_DIMS(a);
    if (PyArray_CheckExact(b)) {
        if (rank != PyArray_NDIM(b) || !bcast_lie_alike(a, b))
            goto consider;
        lengths_of_b = PyArray_DIMS(b);
    } else if (!(PyFloat_CheckExact(b) || PyLong_CheckExact(b)) || !bcast_is_one_row(a))
        goto consider;

    bytes = PyArray_ITEMSIZE(a);
    while (--rank >= 0) {
        if (lengths[rank] != lengths_of_b[rank])
            goto consider;
        bytes *= lengths[rank];
    }
    if (bytes >= gate->bytes_for_threads)
        goto consider;
    gate->passed[BCAST_SMALL]++;
    return gate->former(gate->ufunc, args, count, names);
consider:
    return bcast_consider(gate, args, count, names);
}

/* Let a gate be closed, open, or timed. */
static inline void bcast_set_state(bcast_gate *gate, int state)
{
    gate->state = state;
    gate->usual = state == BCAST_OPEN ? gate->ufunc : NULL;
}

/* Set what a ufunc is called at. Other threads see the gate's fields before they come to it. */
static inline void bcast_set_vectorcall(PyUFuncObject *ufunc, vectorcallfunc function)
{
#if defined(__GNUC__)
    __atomic_store_n(&ufunc->vectorcall, function, __ATOMIC_RELEASE);
#else
    *(vectorcallfunc volatile *) &ufunc->vectorcall = function;
#endif
}

/* Whether a gate is what a ufunc is called at. */
static inline int bcast_is_open(const bcast_gate *gate)
{
    return gate->state != BCAST_CLOSED && ((PyUFuncObject *) gate->ufunc)->vectorcall == bcast_call_at_gate;
}

/* Put a gate before a ufunc. If another library's function has stood before it since an earlier patch, that calls this
   gate, and goes on to. */
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
        gate->ufunc = ufunc;
        bcast_set_vectorcall(fields, bcast_call_at_gate);
    }
    bcast_set_state(gate, bcast_timing ? BCAST_TIMED : BCAST_OPEN);
}

/* Time all calls, or no longer. */
static void bcast_time_gates(int wanted)
{
    bcast_timing = wanted;
    for (int i = 0; i < BCAST_GATES; i++)
        if (bcast_gates[i].state != BCAST_CLOSED)
            bcast_set_state(&bcast_gates[i], wanted ? BCAST_TIMED : BCAST_OPEN);
}

/* Take a gate away; where another function has been put before it, that stays. */
static void bcast_close_gate(PyObject *ufunc)
{
    PyUFuncObject *const fields = (PyUFuncObject *) ufunc;
    bcast_gate *const gate = bcast_gate_of(ufunc);
    bcast_set_state(gate, BCAST_CLOSED);
    gate->buried = fields->vectorcall != bcast_call_at_gate;
    if (!gate->buried)
        bcast_set_vectorcall(fields, gate->former);
}

/* Call a ufunc as if there was no gate. */
static PyObject *bcast_call_past_gate(PyObject *ufunc, PyObject *const *args, size_t count, PyObject *names)
{
    if (Py_IS_TYPE(ufunc, &PyUFunc_Type) && ((PyUFuncObject *) ufunc)->vectorcall == bcast_call_at_gate)
        return bcast_gate_of(ufunc)->former(ufunc, args, count, names);
    return PyObject_Vectorcall(ufunc, args, count, names);
}

#endif
