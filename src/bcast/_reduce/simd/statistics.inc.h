/* The kernels of products and of deviations, with which sums compute statistics. */

/* Rows of products, or runs of products, each with one sum in each lane. */
template <class Kind>
void multiply(const bcast_term_products *all, void *sums)
{
    auto *dst = static_cast<Sum<Kind> *>(sums);

    if constexpr (!Kind::is_integer) {
        if (all->rows == 0) {
            for (ptrdiff_t k = 0; k < all->count; k++, dst += (Kind::compensated ? 2 : 1) * Kind::lanes) {
                const char *a = all->a + k * all->a_advance, *b = all->b + k * all->b_advance;
                multiply_run<Kind>(a, b, all->width, all->ahead, dst);
            }
            return;
        }
    }
    multiply_rows<Kind>(all, dst);
}

/* The term for an item's difference from its mean, as `bcast_deviation` defines it. */
template <int made, class V>
BCAST_INLINE V deviation(V term, V mean)
{
#if BCAST_VECTORS
    if constexpr (is_two<V>)
        return V{deviation<made>(term.low, mean.low), deviation<made>(term.high, mean.high)};
    else
#endif
    {
        const V rest = term - mean;
        if constexpr (made == BCAST_SQUARE) return rest * rest;
        else if constexpr (made == BCAST_NUMBER) return term == term ? rest : V{};
        else if constexpr (made == BCAST_NUMBERS_SQUARE) return term == term ? rest * rest : V{};
        else return term == term ? V{} + 1.0 : V{};
    }
}

/* The same for many items: one mean for each if `stride` is 1, or one for all if it is 0. */
template <class Kind, int made>
BCAST_INLINE void deviate_by(const int stride, const char *src, const double *means, double *dst, ptrdiff_t n)
{
#if BCAST_VECTORS
    using Four = Vector<double, 4>;

    for (; n >= Kind::lanes; n -= Kind::lanes) {
        const Wide<Kind> wide = load_terms<Kind>(src);
        for (int i = 0; i < Kind::parts; i++) {
            const Four mean = stride ? load_at<Four>(means, i) : all_lanes<Four>(*means);
            store_at(dst, i, deviation<made, Four>(part(Kind(), wide, i), mean));
        }
        src += Kind::vector_bytes;
        means += stride * Kind::lanes;
        dst += Kind::lanes;
    }
#endif

    for (ptrdiff_t i = 0; i < n; i++) {
        const double term = static_cast<double>(term_at<Kind>(src + i * Kind::bytes));
        dst[i] = deviation<made>(term, means[i * stride]);
    }
}

template <class Kind, int made>
BCAST_APART void deviate_as(const char *src, const double *means, ptrdiff_t stride, double *dst, ptrdiff_t n)
{
    if (stride) deviate_by<Kind, made>(1, src, means, dst, n);
    else deviate_by<Kind, made>(0, src, means, dst, n);
}

template <class Kind>
void deviate(int made, const char *src, const double *means, ptrdiff_t stride, double *dst, ptrdiff_t n)
{
    if constexpr (!Kind::is_integer) {
        if (made == BCAST_SQUARE) deviate_as<Kind, BCAST_SQUARE>(src, means, stride, dst, n);
        else if (made == BCAST_NUMBERS_SQUARE) deviate_as<Kind, BCAST_NUMBERS_SQUARE>(src, means, stride, dst, n);
        else if (made == BCAST_NUMBER) deviate_as<Kind, BCAST_NUMBER>(src, means, stride, dst, n);
        else deviate_as<Kind, BCAST_NUMBERS_COUNT>(src, means, stride, dst, n);
    }
}
