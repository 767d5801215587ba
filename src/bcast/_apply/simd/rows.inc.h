/* Arithmetic row by row, on one target: for rows so short that calls of NumPy's loop cost more than their items, or for
   a repeated item, for which its loops of `maximum` and `minimum` are slow. `kernels.h` describes the layout of items.

   Compilers vectorise these loops. Integers wrap, signed or not; C would multiply integers of 16 bits as ints, which do
   not. Products of bytes are not faster. */

/* Functions of two items, and whether they report errors. */
struct Sum {
    static constexpr bool reports_errors = true;
    template <class T> BCAST_INLINE T of(T x, T y) { return static_cast<T>(x + y); }
};

struct Difference {
    static constexpr bool reports_errors = true;
    template <class T> BCAST_INLINE T of(T x, T y) { return static_cast<T>(x - y); }
};

struct Product {
    static constexpr bool reports_errors = true;
    template <class T> BCAST_INLINE T of(T x, T y) { return static_cast<T>(x * y); }
};

struct Quotient {
    static constexpr bool reports_errors = true;
    template <class T> BCAST_INLINE T of(T x, T y) { return static_cast<T>(x / y); }
};

/* Of two zeros, the second one is the result, as in NumPy's vector code, which reports no errors. */
struct Larger {
    static constexpr bool reports_errors = false;
    template <class T> BCAST_INLINE T of(T x, T y) { return x > y || x != x ? x : y; }
};

struct Smaller {
    static constexpr bool reports_errors = false;
    template <class T> BCAST_INLINE T of(T x, T y) { return x < y || x != x ? x : y; }
};

/* Results overwrite an operand, each its own item, or go elsewhere: no item waits for another one. Of two
   NaN, compilers may return either one. */
template <class T, class Function, bool repeats_first, bool repeats_second>
ON_TARGET BCAST_INLINE void compute_each_row(
    ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *row_strides)
{
    const char *first = data[0], *second = data[1];
    char *out = data[2];

    for (; rows > 0; rows--) {
        const T *x = reinterpret_cast<const T *>(first), *y = reinterpret_cast<const T *>(second);
        const T one_x = *x, one_y = *y;
        T *results = reinterpret_cast<T *>(out);

        BCAST_INDEPENDENT
        for (ptrdiff_t i = 0; i < n; i++) {
            const T item_x = repeats_first ? one_x : x[i];
            const T item_y = repeats_second ? one_y : y[i];
            results[i] = Function::of(item_x, item_y);
        }

        first += row_strides[0];
        second += row_strides[1];
        out += row_strides[2];
    }
}

template <class T, class Function>
ON_TARGET void compute_rows(
    ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *strides, const ptrdiff_t *row_strides)
{
    if (!strides[0]) compute_each_row<T, Function, true, false>(rows, n, data, row_strides);
    else if (!strides[1]) compute_each_row<T, Function, false, true>(rows, n, data, row_strides);
    else compute_each_row<T, Function, false, false>(rows, n, data, row_strides);

    if (!Function::reports_errors) feclearexcept(FE_ALL_EXCEPT);
}

/* The loops of each type, by the numbers of functions. */
constexpr RowsOfType rows_of_bytes = {{compute_rows<uint8_t, Sum>, compute_rows<uint8_t, Difference>}};

template <class T>
constexpr RowsOfType rows_of_integers = {{
    compute_rows<T, Sum>, compute_rows<T, Difference>, compute_rows<T, Product>,
}};

template <class T>
constexpr RowsOfType rows_of_floats = {{
    compute_rows<T, Sum>, compute_rows<T, Difference>, compute_rows<T, Product>, compute_rows<T, Quotient>,
    compute_rows<T, Larger>, compute_rows<T, Smaller>,
}};

/* The same without functions that choose one of two floats. */
template <class T>
constexpr RowsOfType rows_of_arithmetic = {{
    compute_rows<T, Sum>, compute_rows<T, Difference>, compute_rows<T, Product>, compute_rows<T, Quotient>,
}};
