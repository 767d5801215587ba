/* Functions for single terms: for rows and runs that do not fill a vector, and for accumulators.

   Only compensated kinds keep error terms; for other kinds, no pointer to error terms is used. */

/* The term at `at`. */
template <class Kind>
BCAST_INLINE Sum<Kind> term_at(const char *at)
{
    if constexpr (Kind::is_integer) return static_cast<Sum<Kind>>(bcast_read(Kind::dtype, 0, at));
    else return static_cast<Sum<Kind>>(bcast_f64_of(bcast_read(Kind::dtype, 1, at)));
}

/* Add a term to an accumulator; if the kind is compensated, exactly. */
template <class Kind>
BCAST_INLINE void add_term(Sum<Kind> *to, Sum<Kind> *error, Sum<Kind> term)
{
    const Sum<Kind> sum = *to + term;

    if constexpr (Kind::compensated) *error += BCAST_TWO_SUM_ERROR(*to, term, sum);
    *to = sum;
}

/* Add the product of the terms at `a` and `b` to an accumulator. */
template <class Kind>
BCAST_INLINE void add_product(Sum<Kind> *to, Sum<Kind> *error, const char *a, const char *b)
{
    Sum<Kind> product = term_at<Kind>(a) * term_at<Kind>(b);

    if constexpr (Kind::compensated) product = rounded(product);
    add_term<Kind>(to, error, product);
}

/* Add `n` accumulators to `n` others. */
template <class Kind>
void add_accumulators(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    auto *sum = reinterpret_cast<Sum<Kind> *>(dst->sum);
    auto *error = reinterpret_cast<Sum<Kind> *>(dst->error);
    const auto *more = reinterpret_cast<const Sum<Kind> *>(src->sum);
    const auto *more_error = reinterpret_cast<const Sum<Kind> *>(src->error);

    for (ptrdiff_t i = 0; i < n; i++) {
        add_term<Kind>(sum + i, Kind::compensated ? error + i : nullptr, more[i]);
        if constexpr (Kind::compensated) error[i] += more_error[i];
    }
}

/* Add each group's `length` rows of `n` accumulators, which are few, in place; the sums become contiguous. */
template <class Kind>
void fold(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    auto *dst = reinterpret_cast<Sum<Kind> *>(all->sum);
    auto *dst_error = reinterpret_cast<Sum<Kind> *>(all->error);
    const Sum<Kind> *src = dst, *src_error = dst_error, *end = dst + groups * length * n;

    for (; src < end; src += length * n, src_error += length * n) {
        for (ptrdiff_t k = 0; k < n; k++) {
            Sum<Kind> sum = src[k], error = 0;
            if constexpr (Kind::compensated) error = src_error[k];

            for (ptrdiff_t i = n + k; i < length * n; i += n) {
                add_term<Kind>(&sum, &error, src[i]);
                if constexpr (Kind::compensated) error += src_error[i];
            }
            *dst++ = sum;
            if constexpr (Kind::compensated) *dst_error++ = error;
        }
    }
}

/* Sum rows that are narrower than a vector, column by column. They have accumulators, and do not write results. */
template <class Kind>
int sum_narrow_rows(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (dst->mode == BCAST_WRITE) return 1;

    for (ptrdiff_t j = 0; j < rows->width; j++) {
        Sum<Kind> *to = reinterpret_cast<Sum<Kind> *>(dst->sum) + j;
        Sum<Kind> *to_error = Kind::compensated ? reinterpret_cast<Sum<Kind> *>(dst->error) + j : nullptr;
        Sum<Kind> sum = 0, error = 0;
        if (dst->mode == BCAST_ADD) {
            sum = *to;
            if constexpr (Kind::compensated) error = *to_error;
        }

        for (ptrdiff_t turn = 0; turn < rows->turns; turn++) {
            const char *src = rows->src + turn * rows->advance + j * Kind::bytes;
            for (ptrdiff_t i = 0; i < rows->rows; i++)
                add_term<Kind>(
                    &sum, &error, term_at<Kind>(src + i % 4 * rows->stride + i / 4 * rows->half_stride));
        }
        *to = sum;
        if constexpr (Kind::compensated) *to_error = error;
    }
    return 0;
}

/* Sum the products of rows column by column. */
template <class Kind>
void multiply_narrow_rows(const bcast_term_products *rows, Sum<Kind> *dst)
{
    for (ptrdiff_t k = 0; k < rows->count; k++) {
        for (ptrdiff_t j = 0; j < rows->width; j++) {
            const char *a = rows->a + k * rows->a_advance + j * Kind::bytes;
            const char *b = rows->b + k * rows->b_advance + j * Kind::bytes;
            Sum<Kind> sum = 0, error = 0;

            for (ptrdiff_t i = 0; i < rows->rows; i++, a += rows->stride, b += rows->stride)
                add_product<Kind>(&sum, &error, a, b);
            if (Kind::compensated && rows->rows > 1) dst[rows->width] = error;
            *dst++ = sum;
        }
    }
}
