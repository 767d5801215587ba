/* The kernel of products. It first adds the products of a few rows, or of a few vectors of a run, in the wide type, and
   then adds these sums to accumulators. */

/* The products of the terms at `a` and `b`, rounded if they are not exact. */
template <class Kind>
BCAST_INLINE Wide<Kind> product(const char *a, const char *b)
{
    const Wide<Kind> product = load_terms<Kind>(a) * load_terms<Kind>(b);

    if constexpr (Kind::compensated) return rounded(product);
    else return product;
}

/* The sums of `n` rows of products for a vector's columns, plus the accumulators at `dst` if it `adds`. With a known
   stride, compilers would keep a pointer to each row, and run out of registers. Arguments come one by one, so that
   compilers recognise the constant ones. */
template <class Kind>
BCAST_INLINE void multiply_columns(
    const int n, const char *a, const char *b, ptrdiff_t stride, const bool adds, const Sum<Kind> *dst,
    const Sum<Kind> *errors, Accumulators<Kind> *sums)
{
    Wide<Kind> wide = product<Kind>(a, b);
    __asm__("" : "+r"(stride));
    const char *a_half = a + 4 * stride, *b_half = b + 4 * stride;

    for (int i = 1; i < n; i++) {
        const ptrdiff_t at = i % 4 * stride;
        wide = wide + product<Kind>((i < 4 ? a : a_half) + at, (i < 4 ? b : b_half) + at);
    }

    for (int i = 0; i < Kind::parts; i++) {
        const FourSums<Kind> terms = part(Kind(), wide, i);
        sums[i].sum = terms;
        sums[i].error = FourSums<Kind>{};
        if (adds) {
            sums[i].sum = load_at<FourSums<Kind>>(dst, i);
            if constexpr (Kind::compensated) sums[i].error = load_at<FourSums<Kind>>(errors, i);
            fast_two_sum(&sums[i], terms);
        }
    }
}

/* Write a vector's sums, and their error terms if the caller wants them. */
template <class Kind>
BCAST_INLINE void put_products(const bool has_errors, Sum<Kind> *dst, Sum<Kind> *errors, const Accumulators<Kind> *sums)
{
    for (int i = 0; i < Kind::parts; i++) store_at(dst, i, sums[i].sum);
    if (Kind::compensated && has_errors) store(errors, sums[0].error);
}

/* Add `n` rows to each row of sums. The last vector is moved back to end with the rows; it reads its accumulators
   before other vectors change them. The same columns of the next rows are prefetched. */
template <class Kind>
SPECIALISED void multiply_n_rows(
    const int n, const bcast_term_products *rows, const bool adds, Sum<Kind> *dst, const bool has_errors)
{
    constexpr ptrdiff_t fetched = 4 * BCAST_LINE;       /* prefetched bytes of a row */
    const ptrdiff_t stride = rows->stride, width = rows->width, group = n * stride;
    const ptrdiff_t last_column = width - Kind::lanes, last = last_column * Kind::bytes;
    const ptrdiff_t ahead = group > 0 ? (rows->ahead + group - 1) / group * group : rows->ahead;
    const char *a = rows->a, *b = rows->b;
    Accumulators<Kind> sums[Kind::parts], end[Kind::parts];

    for (ptrdiff_t k = rows->count; k > 0; k--, a += rows->a_advance, b += rows->b_advance, dst += width) {
        Sum<Kind> *errors = dst + width;
        multiply_columns(n, a + last, b + last, stride, adds, dst + last_column, errors + last_column, end);

        for (ptrdiff_t piece = 0, at = 0; piece <= last; piece += fetched) {
            for (int i = 0; ahead && i < 4 * n; i++) {
                __builtin_prefetch(a + piece + i % 4 * BCAST_LINE + i / 4 * stride + ahead);
                __builtin_prefetch(b + piece + i % 4 * BCAST_LINE + i / 4 * stride + ahead);
            }
            for (; at < piece + fetched && at < last; at += Kind::vector_bytes) {
                const ptrdiff_t j = at / Kind::bytes;
                multiply_columns(n, a + at, b + at, stride, adds, dst + j, errors + j, sums);
                put_products(has_errors, dst + j, errors + j, sums);
            }
        }
        put_products(has_errors, dst + last_column, errors + last_column, end);
    }
}

/* The same with a constant `adds`. */
template <class Kind>
BCAST_INLINE void multiply_some_rows(
    const int n, const bcast_term_products *rows, bool adds, Sum<Kind> *dst, bool has_errors)
{
    if (adds) multiply_n_rows<Kind>(n, rows, true, dst, true);
    else multiply_n_rows<Kind>(n, rows, false, dst, has_errors);
}

/* Eight rows at a time need the fewest instructions; two are read faster from memory. */
template <class Kind>
void multiply_rows(const bcast_term_products *all, Sum<Kind> *dst)
{
    bcast_term_products rows = *all;
    const ptrdiff_t most = Kind::is_integer ? 1 : rows.ahead || Kind::compensated ? 2 : 8;
    const bool has_errors = all->rows > 1;
    bool adds = false;

    if (rows.width < Kind::lanes) {
        multiply_narrow_rows<Kind>(&rows, dst);
        return;
    }

    while (rows.rows > 0) {
        ptrdiff_t n = rows.rows < most ? rows.rows : most;
        n = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;

        switch (n) {
        case 1: multiply_some_rows<Kind>(1, &rows, adds, dst, has_errors); break;
        case 2: multiply_some_rows<Kind>(2, &rows, adds, dst, has_errors); break;
        case 4: multiply_some_rows<Kind>(4, &rows, adds, dst, has_errors); break;
        default: multiply_some_rows<Kind>(8, &rows, adds, dst, has_errors);
        }
        rows.rows -= n;
        rows.a += n * rows.stride;
        rows.b += n * rows.stride;
        adds = true;
    }
}

/* The sums of a run, one in each lane. */
template <class Kind>
void multiply_run(const char *a, const char *b, ptrdiff_t length, ptrdiff_t ahead, Sum<Kind> *dst)
{
    constexpr int tree = Kind::compensated ? 2 : 8;     /* vectors that are added in the wide type */
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    Accumulators<Kind> sums[Kind::parts] = {};

    for (; length >= 8 * Kind::lanes; length -= 8 * Kind::lanes) {
        for (int at = 0; ahead && at < 8 * vector_bytes; at += BCAST_LINE) {
            __builtin_prefetch(a + ahead + at);
            __builtin_prefetch(b + ahead + at);
        }
        for (int i = 0; i < 8; i += tree, a += tree * vector_bytes, b += tree * vector_bytes) {
            Wide<Kind> wide = product<Kind>(a, b);
            for (int j = 1; j < tree; j++) wide = wide + product<Kind>(a + j * vector_bytes, b + j * vector_bytes);
            add_parts(true, sums, wide);
        }
    }
    for (; length >= Kind::lanes; length -= Kind::lanes, a += vector_bytes, b += vector_bytes)
        add_parts(false, sums, product<Kind>(a, b));

    put_products(true, dst, dst + Kind::lanes, sums);
    for (ptrdiff_t j = 0; j < length; j++)
        add_product<Kind>(&dst[j], &dst[Kind::lanes + j], a + j * Kind::bytes, b + j * Kind::bytes);
}
