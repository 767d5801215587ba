/* Terms one by one: what kernels do with too few terms for a vector, and with accumulators.

   An accumulator's error term is kept where the kind is compensated; elsewhere no pointer to error terms is used, nor
   to what error terms have lost. */

/* The term at `at`. */
template <class Kind>
BCAST_INLINE Sum<Kind> term_at(const char *at)
{
    if constexpr (Kind::is_integer) return static_cast<Sum<Kind>>(bcast_read(Kind::dtype, 0, at));
    else return static_cast<Sum<Kind>>(bcast_f64_of(bcast_read(Kind::dtype, 1, at)));
}

/* Add to an error term; `most_lost` is the most that one of such additions has lost. A NaN is none. */
template <class Number>
BCAST_INLINE void add_error(Number *error, Number more, Number *most_lost)
{
    const Number sum = *error + more, lost = BCAST_TWO_SUM_ERROR(*error, more, sum), size = lost < 0 ? -lost : lost;

    *error = sum;
    *most_lost = size > *most_lost ? size : *most_lost;
}

/* Add a term to an accumulator, exactly if the error is kept. */
template <class Kind>
BCAST_INLINE void add_term(Sum<Kind> *to, Sum<Kind> *error, Sum<Kind> term, Sum<Kind> *most_lost)
{
    const Sum<Kind> sum = *to + term;

    if constexpr (Kind::compensated) add_error<Sum<Kind>>(error, BCAST_TWO_SUM_ERROR(*to, term, sum), most_lost);
    *to = sum;
}

/* Add an accumulator to another one. */
template <class Kind>
BCAST_INLINE void add_accumulator(
    Sum<Kind> *to, Sum<Kind> *error, const Sum<Kind> *more, const Sum<Kind> *more_error, Sum<Kind> *most_lost)
{
    add_term<Kind>(to, error, *more, most_lost);
    if constexpr (Kind::compensated) add_error(error, *more_error, most_lost);
}

/* Add the product of the terms at `a` and `b` to an accumulator. */
template <class Kind>
BCAST_INLINE void add_product(Sum<Kind> *to, Sum<Kind> *error, const char *a, const char *b)
{
    Sum<Kind> product = term_at<Kind>(a) * term_at<Kind>(b), most_lost = 0;

    if constexpr (Kind::compensated) product = rounded(product);
    add_term<Kind>(to, error, product, &most_lost);
}

/* Note for all accumulators of a sink what one of their error terms may have lost. */
template <class Kind>
BCAST_INLINE void note_lost(const bcast_sink *dst, Sum<Kind> lost)
{
    if constexpr (Kind::compensated)
        if (lost > *dst->lost) *dst->lost = lost;
}

/* Add up each group's `length` rows of few accumulators, `n`, in place; sums lie one behind the other then. */
template <class Kind>
void fold(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    auto *dst = reinterpret_cast<Sum<Kind> *>(all->sum);
    auto *dst_error = reinterpret_cast<Sum<Kind> *>(all->error);
    const Sum<Kind> *src = dst, *src_error = dst_error, *end = dst + groups * length * n;
    Sum<Kind> most_lost = 0;

    for (; src < end; src += length * n, src_error += length * n) {
        for (ptrdiff_t k = 0; k < n; k++) {
            Sum<Kind> sum = src[k], error = 0;
            if constexpr (Kind::compensated) error = src_error[k];

            for (ptrdiff_t i = n + k; i < length * n; i += n)
                add_accumulator<Kind>(&sum, &error, src + i, src_error + i, &most_lost);
            *dst++ = sum;
            if constexpr (Kind::compensated) *dst_error++ = error;
        }
    }
    note_lost<Kind>(all, most_lost);
}

/* Sum rows column by column: those that are narrower than a vector. Their results are made by accumulators. */
template <class Kind>
int sum_narrow_rows(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (dst->mode == BCAST_WRITE) return 1;

    Sum<Kind> most_lost = 0;
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
                    &sum, &error, term_at<Kind>(src + i % 4 * rows->stride + i / 4 * rows->half_stride), &most_lost);
        }
        *to = sum;
        if constexpr (Kind::compensated) *to_error = error;
    }
    note_lost<Kind>(dst, most_lost);
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
