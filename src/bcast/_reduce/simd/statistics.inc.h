/* The kernels of products and of deviations, which sums have for statistics. */

/* Rows of products, or runs of them, of which each has as many sums as a vector has lanes. */
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

/* Squares of what terms differ from their means: one mean each, if `stride` is 1, or if it is 0, one of all. */
template <class Kind>
BCAST_INLINE void deviate_by(const int stride, const char *src, const double *means, double *dst, ptrdiff_t n)
{
#if BCAST_VECTORS
    using Four = Vector<double, 4>;

    for (; n >= Kind::lanes; n -= Kind::lanes) {
        const Wide<Kind> wide = load_terms<Kind>(src);
        for (int i = 0; i < Kind::parts; i++) {
            const Four mean = stride ? load_at<Four>(means, i) : all_lanes<Four>(*means);
            const Four rest = part(Kind(), wide, i) - mean;
            store_at(dst, i, rest * rest);
        }
        src += Kind::vector_bytes;
        means += stride * Kind::lanes;
        dst += Kind::lanes;
    }
#endif

    for (ptrdiff_t i = 0; i < n; i++) {
        const double rest = static_cast<double>(term_at<Kind>(src + i * Kind::bytes)) - means[i * stride];
        dst[i] = rest * rest;
    }
}

template <class Kind>
void deviate(const char *src, const double *means, ptrdiff_t stride, double *dst, ptrdiff_t n)
{
    if constexpr (!Kind::is_integer) {
        if (stride) deviate_by<Kind>(1, src, means, dst, n);
        else deviate_by<Kind>(0, src, means, dst, n);
    }
}
