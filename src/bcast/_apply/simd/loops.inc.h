/* Loops like NumPy's, on one target: `where`, for items of any size; `hypot` of float32; quotients and remainders of
   int64. `kernels.cpp` includes this file in the target's namespace.

   To add a loop for another ufunc, write it here, and add a row to `named_loops`, at the end. */

/* Choose items of any size, at any addresses. */
ON_TARGET BCAST_INLINE void select_items(ptrdiff_t size, ptrdiff_t n, char *const *data, const ptrdiff_t *strides)
{
    const char *condition = data[0], *x = data[1], *y = data[2];
    char *out = data[3];

    for (; n > 0; n--) {
        memmove(out, *condition ? x : y, size);
        condition += strides[0];
        x += strides[1];
        y += strides[2];
        out += strides[3];
    }
}

/* Choose between contiguous items, or a repeated item: by masks, not by branches. A repeated item never overlaps the
   output. */
template <class T, bool repeats_x, bool repeats_y>
ON_TARGET BCAST_INLINE void select_row(ptrdiff_t n, char *const *data)
{
    const char *condition = data[0];
    const T *x = reinterpret_cast<const T *>(data[1]), *y = reinterpret_cast<const T *>(data[2]);
    const T one_x = *x, one_y = *y;
    T *out = reinterpret_cast<T *>(data[3]);

    for (ptrdiff_t i = 0; i < n; i++) {
        const T mask = static_cast<T>(-static_cast<T>(condition[i] != 0));
        const T chosen_x = static_cast<T>((repeats_x ? one_x : x[i]) & mask);
        const T chosen_y = static_cast<T>((repeats_y ? one_y : y[i]) & static_cast<T>(~mask));
        out[i] = static_cast<T>(chosen_x | chosen_y);
    }
}

template <class T>
ON_TARGET BCAST_INLINE void select_adjacent(ptrdiff_t n, char *const *data, const ptrdiff_t *strides)
{
    if (strides[1] && strides[2]) select_row<T, false, false>(n, data);
    else if (strides[1]) select_row<T, false, true>(n, data);
    else if (strides[2]) select_row<T, true, false>(n, data);
    else select_row<T, true, true>(n, data);
}

/* Copy the operand that a single condition chooses. */
ON_TARGET BCAST_INLINE void select_one(ptrdiff_t nbytes, ptrdiff_t first_bytes, const char *chosen, char *out)
{
    memmove(out, chosen, first_bytes);
    for (ptrdiff_t done = first_bytes; done < nbytes; done *= 2)
        memcpy(out + done, out, done < nbytes - done ? done : nbytes - done);
}

/* Whether an operand's items are contiguous, or a single item is repeated. */
BCAST_INLINE bool is_adjacent_or_one(ptrdiff_t stride, ptrdiff_t size) { return !stride || stride == size; }

/* Choose between contiguous items if vectors have their size; return whether they do. */
ON_TARGET BCAST_INLINE bool select_in_vectors(
    ptrdiff_t size, ptrdiff_t n, char *const *data, const ptrdiff_t *strides)
{
    switch (size) {
    case 1: select_adjacent<uint8_t>(n, data, strides); return true;
    case 2: select_adjacent<uint16_t>(n, data, strides); return true;
    case 4: select_adjacent<uint32_t>(n, data, strides); return true;
    case 8: select_adjacent<uint64_t>(n, data, strides); return true;
    default: return false;
    }
}

/* Choose between items at any strides. It is faster for a size that compilers know. */
ON_TARGET BCAST_INLINE void select_at_strides(
    ptrdiff_t size, ptrdiff_t n, char *const *data, const ptrdiff_t *strides)
{
    switch (size) {
    case 1: select_items(1, n, data, strides); break;
    case 2: select_items(2, n, data, strides); break;
    case 4: select_items(4, n, data, strides); break;
    case 8: select_items(8, n, data, strides); break;
    case 16: select_items(16, n, data, strides); break;
    default: select_items(size, n, data, strides);
    }
}

/* `where`: the size of items is its auxdata. */
ON_TARGET static int select(void *, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *strides, void *auxdata)
{
    const ptrdiff_t n = dims[0], size = reinterpret_cast<ptrdiff_t>(auxdata);
    const int chosen = *data[0] ? 1 : 2;
    const bool writes_adjacent = strides[3] == size;

    if (!strides[0] && writes_adjacent && is_adjacent_or_one(strides[chosen], size)) {
        select_one(n * size, strides[chosen] ? n * size : size, data[chosen], data[3]);
        return 0;
    }
    const bool reads_adjacent =
        strides[0] == 1 && is_adjacent_or_one(strides[1], size) && is_adjacent_or_one(strides[2], size);
    if (!(reads_adjacent && writes_adjacent && select_in_vectors(size, n, data, strides)))
        select_at_strides(size, n, data, strides);
    return 0;
}

/* A function of two operands that checks some items, then computes them: by vector code, unless one is rare.

       Item, Bits      the type of an item, and an unsigned one of that size
       rare_bits       not 0 if one of two items is rare, from their bits
       compute         n usual items
       rare            the result for two items, either of which may be rare

   An operand's items are contiguous, or a single item is repeated. */
template <class Function>
ON_TARGET BCAST_INLINE bool has_rare(
    ptrdiff_t count, const typename Function::Item *x, const typename Function::Item *y)
{
    typename Function::Bits rare = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        typename Function::Bits p, q;
        memcpy(&p, x + i, sizeof p);
        memcpy(&q, y + i, sizeof q);
        rare |= Function::rare_bits(p, q);
    }
    return rare != 0;
}

template <class Function>
ON_TARGET BCAST_INLINE void compute_carefully(ptrdiff_t n, char *const *data, const ptrdiff_t *strides)
{
    using Item = typename Function::Item;
    constexpr ptrdiff_t most = 128;
    const ptrdiff_t longest = n < most ? n : most;
    const Item *first = reinterpret_cast<const Item *>(data[0]), *second = reinterpret_cast<const Item *>(data[1]);
    Item *out = reinterpret_cast<Item *>(data[2]);
    Item repeated_first[most], repeated_second[most];

    for (ptrdiff_t i = 0; i < longest && strides[0] == 0; i++) repeated_first[i] = *first;
    for (ptrdiff_t i = 0; i < longest && strides[1] == 0; i++) repeated_second[i] = *second;

    for (ptrdiff_t at = 0; at < n; at += most) {
        const ptrdiff_t count = n - at < most ? n - at : most;
        const Item *x = strides[0] ? first + at : repeated_first;
        const Item *y = strides[1] ? second + at : repeated_second;

        if (has_rare<Function>(count, x, y))
            for (ptrdiff_t i = 0; i < count; i++) out[at + i] = Function::rare(x[i], y[i]);
        else
            Function::compute(count, x, y, out + at);
    }
}

/* Like C libraries that compute in float64, where squares are exact; NumPy calls theirs item by item. For infinities
   and NaN, the library's own function is called. */
struct Hypot {
    using Item = float;
    using Bits = uint32_t;

    BCAST_INLINE Bits rare_bits(Bits x, Bits y)
    {
        return ((x & 0x7f800000) == 0x7f800000) | ((y & 0x7f800000) == 0x7f800000);
    }
    ON_TARGET BCAST_INLINE void compute(ptrdiff_t n, const float *x, const float *y, float *out)
    {
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] = static_cast<float>(sqrt(static_cast<double>(x[i]) * x[i] + static_cast<double>(y[i]) * y[i]));
    }
    ON_TARGET BCAST_INLINE float rare(float x, float y) { return hypotf(x, y); }
};

template <class HypotOfTarget>
ON_TARGET int hypot_loop(void *, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *strides, void *)
{
    compute_carefully<HypotOfTarget>(dims[0], data, strides);
    return 0;
}

/* Quotients rounded down, or remainders if `remains`. Integers below 2^52 are divided as float64, which rounds no
   quotient up to a whole number: its distance from that exceeds the precision. By zero, the result is 0; a quotient
   that is too large wraps. */
template <bool remains>
struct Division {
    using Item = int64_t;
    using Bits = uint64_t;

    BCAST_INLINE Bits rare_bits(Bits x, Bits y)
    {
        constexpr Bits most = static_cast<Bits>(1) << 52;
        return (x + most) >> 53 | (y + most) >> 53 | (y == 0);
    }
    ON_TARGET BCAST_INLINE void compute(ptrdiff_t n, const int64_t *x, const int64_t *y, int64_t *out)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double exact = static_cast<double>(x[i]) / static_cast<double>(y[i]);
            int64_t whole = static_cast<int64_t>(exact);
            whole -= static_cast<double>(whole) > exact;
            out[i] = remains ? x[i] - whole * y[i] : whole;
        }
    }
    ON_TARGET BCAST_INLINE int64_t rare(int64_t x, int64_t y)
    {
        if (y == 0) {
            feraiseexcept(FE_DIVBYZERO);
            return 0;
        }
        if (y == -1 && x == INT64_MIN) {
            if (!remains) feraiseexcept(FE_OVERFLOW);
            return remains ? 0 : x;
        }
        const int64_t rest = x % y;
        const int64_t is_rounded_up = rest != 0 && (x < 0) != (y < 0);
        return remains ? rest + is_rounded_up * y : x / y - is_rounded_up;
    }
};

/* NumPy's loop for quotients, which is the auxdata, is as fast for a single divisor: it multiplies instead. */
ON_TARGET static int divide_loop(
    void *, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *strides, void *auxdata)
{
    const auto *numpys = static_cast<const bcast_numpys_loop *>(auxdata);

    if (strides[1] == 0) return numpys->loop(numpys->context, data, dims, strides, numpys->auxdata);
    compute_carefully<Division<false>>(dims[0], data, strides);
    return 0;
}

ON_TARGET static int remainder_loop(
    void *, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *strides, void *)
{
    compute_carefully<Division<true>>(dims[0], data, strides);
    return 0;
}

/* The loops for ufuncs: a ufunc's name; NumPy's letter for the kind of its operands, and their size; the loop. */
template <class HypotOfTarget>
constexpr NamedLoop named_loops[] = {
    {"hypot", 'f', 4, hypot_loop<HypotOfTarget>},
    {"floor_divide", 'i', 8, divide_loop},
    {"remainder", 'i', 8, remainder_loop},
    {nullptr, 0, 0, nullptr},
};
