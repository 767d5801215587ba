/* Terms one by one: what kernels do with too few terms for a vector, and with accumulators.

   An accumulator's error term is kept where the kind is compensated; elsewhere no pointer to error terms is used. */

/* The term at `at`. */
template <class Kind>
BCAST_INLINE Sum<Kind> term_at(const char *at)
{
    if constexpr (Kind::is_integer) return static_cast<Sum<Kind>>(bcast_read(Kind::dtype, 0, at));
    else return static_cast<Sum<Kind>>(bcast_f64_of(bcast_read(Kind::dtype, 1, at)));
}

/* Where an accumulator is, its error term, and the bound of what that has lost. */
template <class Kind>
struct Place {
    Sum<Kind> *sum;
    Sum<Kind> *error;
    Sum<Kind> *lost;
};

template <class Kind>
BCAST_INLINE Place<Kind> place_in(const bcast_sink *sink, ptrdiff_t i)
{
    using Number = Sum<Kind>;
    Place<Kind> place = {reinterpret_cast<Number *>(sink->sum) + i, nullptr, nullptr};

    if constexpr (Kind::compensated) {
        place.error = reinterpret_cast<Number *>(sink->error) + i;
        place.lost = reinterpret_cast<Number *>(sink->lost) + i;
    }
    return place;
}

/* Add to an error term. What rounds it off is lost. */
template <class Kind>
BCAST_INLINE void add_error(Place<Kind> to, Sum<Kind> more)
{
    const Sum<Kind> sum = *to.error + more, lost = BCAST_TWO_SUM_ERROR(*to.error, more, sum);

    *to.error = sum;
    *to.lost += lost < 0 ? -lost : lost;
}

/* Add a term to an accumulator, exactly if the error is kept. */
template <class Kind>
BCAST_INLINE void add_term(Place<Kind> to, Sum<Kind> term)
{
    const Sum<Kind> sum = *to.sum + term;

    if constexpr (Kind::compensated) add_error<Kind>(to, BCAST_TWO_SUM_ERROR(*to.sum, term, sum));
    *to.sum = sum;
}

/* Add an accumulator to another one. */
template <class Kind>
BCAST_INLINE void add_accumulator(Place<Kind> to, Place<Kind> more)
{
    add_term<Kind>(to, *more.sum);
    if constexpr (Kind::compensated) {
        add_error<Kind>(to, *more.error);
        *to.lost += *more.lost;
    }
}

/* Add up each group's `length` rows of few accumulators, `n`, in place; sums lie one behind the other then. */
template <class Kind>
void fold(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    for (ptrdiff_t group = 0; group < groups; group++) {
        for (ptrdiff_t k = 0; k < n; k++) {
            const ptrdiff_t first = group * length * n + k;
            const Place<Kind> from = place_in<Kind>(all, first), dst = place_in<Kind>(all, group * n + k);
            Sum<Kind> sum = *from.sum, error = 0, lost = 0;
            const Place<Kind> to = {&sum, &error, &lost};
            if constexpr (Kind::compensated) error = *from.error, lost = *from.lost;

            for (ptrdiff_t i = 1; i < length; i++) add_accumulator<Kind>(to, place_in<Kind>(all, first + i * n));
            *dst.sum = sum;
            if constexpr (Kind::compensated) *dst.error = error, *dst.lost = lost;
        }
    }
}

/* Sum rows column by column: those that are narrower than a vector. Their results are made by accumulators. */
template <class Kind>
int sum_narrow_rows(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (dst->mode == BCAST_WRITE) return BCAST_NOT_WRITTEN;

    for (ptrdiff_t j = 0; j < rows->width; j++) {
        const Place<Kind> at = place_in<Kind>(dst, j);
        Sum<Kind> sum = 0, error = 0, lost = 0;
        const Place<Kind> to = {&sum, &error, &lost};
        if (dst->mode == BCAST_ADD) {
            sum = *at.sum;
            if constexpr (Kind::compensated) error = *at.error, lost = *at.lost;
        }

        for (ptrdiff_t turn = 0; turn < rows->turns; turn++) {
            const char *src = rows->src + turn * rows->advance + j * Kind::bytes;
            for (ptrdiff_t i = 0; i < rows->rows; i++)
                add_term<Kind>(to, term_at<Kind>(src + i % 4 * rows->stride + i / 4 * rows->half_stride));
        }
        *at.sum = sum;
        if constexpr (Kind::compensated) *at.error = error, *at.lost = lost;
    }
    return 0;
}

/* Add the product of the terms at `a` and `b` to an accumulator. */
template <class Kind>
BCAST_INLINE void add_product(Place<Kind> to, const char *a, const char *b)
{
    Sum<Kind> product = term_at<Kind>(a) * term_at<Kind>(b);

    if constexpr (Kind::compensated) product = rounded(product);
    add_term<Kind>(to, product);
}

/* Sum the products of rows column by column. */
template <class Kind>
void multiply_narrow_rows(const bcast_term_products *rows, Sum<Kind> *dst)
{
    for (ptrdiff_t k = 0; k < rows->count; k++) {
        for (ptrdiff_t j = 0; j < rows->width; j++) {
            const char *a = rows->a + k * rows->a_advance + j * Kind::bytes;
            const char *b = rows->b + k * rows->b_advance + j * Kind::bytes;
            Sum<Kind> sum = 0, error = 0, lost = 0;
            const Place<Kind> to = {&sum, &error, &lost};

            for (ptrdiff_t i = 0; i < rows->rows; i++, a += rows->stride, b += rows->stride)
                add_product<Kind>(to, a, b);
            if (Kind::compensated && rows->rows > 1) dst[rows->width] = error;
            *dst++ = sum;
        }
    }
}
