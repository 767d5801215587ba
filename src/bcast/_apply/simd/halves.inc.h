/* Loops for float16 and bfloat16, on one target: converted to float32 a vector at a time, computed, and rounded once.
   Bits and errors equal NumPy's and ml_dtypes', whose loops do the same item by item.

   `kernels.cpp` includes this file in the namespace of a target that has vectors of halves (`vectors.h`). Items are
   contiguous, or a single item is repeated. */

/* The kinds: how they are read and rounded, and whether comparisons of them are `quiet`, so that NaN is no error. */
struct Float16Vectors {
    static constexpr bool quiet = true;
    static constexpr Comparison chooses_second_of_maximum = quiet_not_greater_equal;
    static constexpr Comparison chooses_second_of_minimum = quiet_not_less_equal;

    ON_TARGET BCAST_INLINE Floats values(Halves x) { return values_of_float16(x); }
    ON_TARGET BCAST_INLINE Halves rounded(Floats x, Rare *seen) { return rounded_to_float16(x, seen); }
};

struct Bfloat16Vectors {
    static constexpr bool quiet = false;
    static constexpr Comparison chooses_second_of_maximum = not_greater;
    static constexpr Comparison chooses_second_of_minimum = not_less;

    ON_TARGET BCAST_INLINE Floats values(Halves x) { return values_of_bfloat16(x); }
    ON_TARGET BCAST_INLINE Halves rounded(Floats x, Rare *) { return rounded_to_bfloat16(x); }
};

/* A pair of vectors: as they are, and their values. */
struct Pair {
    Halves x;
    Halves y;
    Floats x_values;
    Floats y_values;
};

/* The result of a pair, for each function: `size` bytes of each item, and whether it reports `no_errors`. */
template <class Half, class Function>
struct Arithmetic {
    static constexpr int size = 2;
    static constexpr bool no_errors = false;

    ON_TARGET BCAST_INLINE Halves of(const Pair &pair, Rare *seen)
    {
        return Half::rounded(Function::of(pair.x_values, pair.y_values), seen);
    }
};

/* y, if x is not NaN and the comparison holds; else x. ml_dtypes compares only if x is a number, and then a NaN is an
   error: otherwise, zeros are compared. */
template <class Half, Comparison chooses_second>
struct Extreme {
    static constexpr int size = 2;
    static constexpr bool no_errors = Half::quiet;

    ON_TARGET BCAST_INLINE Halves of(const Pair &pair, Rare *)
    {
        const Mask is_number = compare<ordered>(pair.x_values, pair.x_values);
        const Floats x = Half::quiet ? pair.x_values : or_zero(is_number, pair.x_values);
        const Floats y = Half::quiet ? pair.y_values : or_zero(is_number, pair.y_values);
        return choose(both(is_number, compare<chooses_second>(x, y)), pair.y, pair.x);
    }
};

template <class Half, Comparison how>
struct Compared {
    static constexpr int size = 1;
    static constexpr bool no_errors = Half::quiet;

    ON_TARGET BCAST_INLINE Halves of(const Pair &pair, Rare *)
    {
        return bools(compare<how>(pair.x_values, pair.y_values));
    }
};

/* Compute a vector of results, and write some of them. NumPy's sums and products of two NaN are the second one. These
   are, too, because y is read first: compilers choose the first operand of an instruction by this order. */
template <class Half, class Function>
ON_TARGET BCAST_INLINE void compute_vector(
    const uint16_t *x, const uint16_t *y, char *result, ptrdiff_t nbytes, Rare *seen)
{
    Pair pair;
    memcpy(&pair.x, x, sizeof pair.x);
    memcpy(&pair.y, y, sizeof pair.y);
    pair.y_values = Half::values(pair.y);
    pair.x_values = Half::values(pair.x);

    const Halves results = Function::of(pair, seen);
    memcpy(result, &results, nbytes);
}

/* Set the errors of a loop: the earlier ones (`before`), if it reports none, because conversions may have reported a
   signalling NaN; and an underflow that the CPU missed. To write the flags is slower than to compare them. */
template <class Function>
ON_TARGET BCAST_INLINE void settle_errors(uint64_t before, Rare seen)
{
    const uint64_t after = told_errors();
    const uint64_t underflow = has_underflow(seen) ? underflow_told : 0;
    const uint64_t errors = Function::no_errors ? before : after | underflow;

    if (errors != after) tell_errors(errors);
}

template <class Half, class Function>
ON_TARGET int half_loop(void *, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *strides, void *)
{
    constexpr ptrdiff_t vector_bytes = lanes * Function::size;
    const uint64_t before = told_errors();
    const ptrdiff_t rest = dims[0] % lanes;
    const auto *x = reinterpret_cast<const uint16_t *>(data[0]);
    const auto *y = reinterpret_cast<const uint16_t *>(data[1]);
    char *result = data[2];
    char *const end = result + (dims[0] - rest) * Function::size;
    Rare seen = nothing_rare();

    /* The repeated item; later the last items, followed by the first one. */
    uint16_t repeated_x[lanes], repeated_y[lanes];
    for (int j = 0; j < lanes; j++) {
        repeated_x[j] = *x;
        repeated_y[j] = *y;
    }
    const ptrdiff_t x_step = strides[0] ? lanes : 0, y_step = strides[1] ? lanes : 0;
    if (!x_step) x = repeated_x;
    if (!y_step) y = repeated_y;

    for (; result < end; x += x_step, y += y_step, result += vector_bytes)
        compute_vector<Half, Function>(x, y, result, vector_bytes, &seen);

    if (rest) {
        if (x_step) memcpy(repeated_x, x, rest * sizeof *x);
        if (y_step) memcpy(repeated_y, y, rest * sizeof *y);
        compute_vector<Half, Function>(repeated_x, repeated_y, result, rest * Function::size, &seen);
    }
    settle_errors<Function>(before, seen);
    return 0;
}

/* The comparison that a kind uses instead of one for which NaN is an error. */
template <class Half>
constexpr Comparison told_of(Comparison quiet_one)
{
    return Half::quiet ? quiet_one : static_cast<Comparison>(quiet_one ^ quiet_less ^ less);
}

/* All loops of a kind, by the numbers of functions. */
template <class Half>
constexpr HalfLoops half_loops_of()
{
    return {{
        half_loop<Half, Arithmetic<Half, Add>>,
        half_loop<Half, Arithmetic<Half, Subtract>>,
        half_loop<Half, Arithmetic<Half, Multiply>>,
        half_loop<Half, Arithmetic<Half, Divide>>,
        half_loop<Half, Extreme<Half, Half::chooses_second_of_maximum>>,
        half_loop<Half, Extreme<Half, Half::chooses_second_of_minimum>>,
        half_loop<Half, Compared<Half, equal>>,
        half_loop<Half, Compared<Half, not_equal>>,
        half_loop<Half, Compared<Half, told_of<Half>(quiet_less)>>,
        half_loop<Half, Compared<Half, told_of<Half>(quiet_less_equal)>>,
        half_loop<Half, Compared<Half, told_of<Half>(quiet_greater)>>,
        half_loop<Half, Compared<Half, told_of<Half>(quiet_greater_equal)>>,
    }};
}

constexpr HalfLoops float16_loops = half_loops_of<Float16Vectors>();
constexpr HalfLoops bfloat16_loops = half_loops_of<Bfloat16Vectors>();
