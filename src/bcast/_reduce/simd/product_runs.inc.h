/* The kernel of runs for products of floats, in float64: four runs at a time, so that their multiplications overlap.

   The accumulators of a run are eight columns, in two vectors. At the end, the columns are multiplied by halves:
   columns 0 to 3 by columns 4 to 7, then 0 and 1 by 2 and 3, then 0 by 1. If the last factors do not fill eight
   columns, a vector is read that ends with the run, and factors that have already been multiplied are replaced by 1. */

#if BCAST_VECTORS

using Doubles = Vector<double, 4>;

/* The columns of a run. */
struct ProductColumns {
    Doubles low, high;
};

template <class Item>
BCAST_INLINE Doubles doubles_at(const char *src)
{
    if constexpr (sizeof(Item) == sizeof(double)) return load<Doubles>(src);
    else return doubles(load<Vector<Item, 4>>(src));
}

/* A mask of the columns, of eight, that have a factor. */
struct ColumnMask {
    Vector<uint64_t, 4> kept[2];        /* all bits in columns with a factor */
    Vector<uint64_t, 4> ones[2];        /* 1 as a float64 in the other columns */
};

/* The mask of the last `count` of eight columns. */
inline ColumnMask mask_of_last(ptrdiff_t count)
{
    constexpr uint64_t bits_of_1 = 0x3ff0000000000000;
    uint64_t kept[8], ones[8];
    for (int column = 0; column < 8; column++) {
        kept[column] = column < 8 - count ? 0 : ~uint64_t(0);
        ones[column] = column < 8 - count ? bits_of_1 : 0;
    }

    using Words = Vector<uint64_t, 4>;
    return {{load_at<Words>(kept, 0), load_at<Words>(kept, 1)}, {load_at<Words>(ones, 0), load_at<Words>(ones, 1)}};
}

BCAST_INLINE Doubles kept_by(const ColumnMask *mask, int half, Doubles factors)
{
    return bits_as<Doubles>((bits_as<Vector<uint64_t, 4>>(factors) & mask->kept[half]) + mask->ones[half]);
}

/* The last factors of a run of 5 items or more, in columns; the mask selects those that are not multiplied yet. */
template <class Item>
BCAST_INLINE ProductColumns columns_of_last(const char *src, ptrdiff_t length, const ColumnMask *mask)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const char *end = src + length * size;
    const Doubles high = kept_by(mask, 1, doubles_at<Item>(end - 4 * size));

    if (length < 8) return {doubles_at<Item>(src), high};
    return {kept_by(mask, 0, doubles_at<Item>(end - 8 * size)), high};
}

/* The products of four runs of 5 items or more. */
template <class Item>
BCAST_INLINE Doubles products_of_runs(const char *const *src, ptrdiff_t length, const ColumnMask *mask)
{
    constexpr ptrdiff_t half = 4 * sizeof(Item), step = 2 * half;
    const ptrdiff_t nbytes = length * static_cast<ptrdiff_t>(sizeof(Item));
    ProductColumns runs[4];
    Doubles products[4];

    BCAST_UNROLL
    for (int i = 0; i < 4; i++) runs[i] = columns_of_last<Item>(src[i], length, mask);
    for (ptrdiff_t at = 0; at + step <= nbytes; at += step) {
        BCAST_UNROLL
        for (int i = 0; i < 4; i++) {
            runs[i].low = runs[i].low * doubles_at<Item>(src[i] + at);
            runs[i].high = runs[i].high * doubles_at<Item>(src[i] + at + half);
        }
    }

    BCAST_UNROLL
    for (int i = 0; i < 4; i++) products[i] = runs[i].low * runs[i].high;
    const Doubles first = lower(products[0], products[2]) * upper(products[0], products[2]);
    const Doubles second = lower(products[1], products[3]) * upper(products[1], products[3]);
    return even(first, second) * odd(first, second);
}

/* Write products of neighbouring runs, up to four, rounded to items if results are items. */
template <class Operation, bool as_items>
BCAST_INLINE void put_products(char *dst, Doubles products, ptrdiff_t count)
{
    if constexpr (as_items && sizeof(typename Operation::Item) < sizeof(double)) {
        const auto rounded = floats(products);
        memcpy(dst, &rounded, count < 4 ? sizeof rounded / 4 * count : sizeof rounded);
    } else {
        memcpy(dst, &products, count < 4 ? sizeof products / 4 * count : sizeof products);
    }
}

/* Combine each run of 5 floats or more, none of them interleaved. */
template <class Operation, bool as_items>
BCAST_INLINE void multiply_runs_as(const bcast_term_runs *runs, const bcast_sink *dst)
{
    using Item = typename Operation::Item;
    constexpr ptrdiff_t size = as_items ? item_bytes<Operation> : accumulator_bytes<Operation>;
    const ptrdiff_t stride = runs->stride, length = runs->length;
    const ColumnMask mask = mask_of_last(length < 8 ? length - 4 : length % 8);

    for (ptrdiff_t first = 0; first < runs->count; first += 4) {
        const ptrdiff_t count = runs->count - first < 4 ? runs->count - first : 4;
        const char *src = runs->src + first * stride;
        const char *from[4] = {
            src, count > 1 ? src + stride : src, count > 2 ? src + 2 * stride : src, count > 3 ? src + 3 * stride : src,
        };
        Doubles products = products_of_runs<Item>(from, length, &mask);

        if (dst->mode == BCAST_ADD) {
            Doubles before = products;      /* or any other numbers */
            memcpy(&before, dst->sum + first * size, count < 4 ? sizeof before / 4 * count : sizeof before);
            products = before * products;
        }
        put_products<Operation, as_items>(dst->sum + first * size, products, count);
    }
}

/* Whether this kernel combines runs of an operation, if they are long enough. */
template <class Operation>
constexpr bool multiplies_floats = !Operation::is_idempotent && static_cast<typename Operation::Item>(0.5) != 0;

template <class Operation>
BCAST_APART void multiply_runs(const bcast_term_runs *all, const bcast_sink *sink)
{
    const bcast_term_runs runs = *all;
    const bcast_sink dst = *sink;
    if (narrows<Operation>(dst.mode)) multiply_runs_as<Operation, true>(&runs, &dst);
    else multiply_runs_as<Operation, false>(&runs, &dst);
}

#endif
