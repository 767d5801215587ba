/* The kernels of the scaled product, of `combine.h`. `target.inc.h` includes this file for each target.

   An accumulator is a number from 2^-256 to 2^256, of either sign, and an exponent of 2. Vectors of numbers are
   multiplied by factors of up to eight rows, in groups of two or four. If a product leaves that range, the numbers, and
   if necessary the groups, are split into numbers from 1 to 2 and exponents, and multiplied again. Results round like
   plain products with an unlimited exponent, because all scaling is by powers of 2. A run is treated as rows of eight
   columns, which are its streams. */

#if BCAST_VECTORS
constexpr int wide_lanes = register_bytes / 8;
using Wide = Vector<double, wide_lanes>;
using WideBits = Vector<uint64_t, wide_lanes>;
using WideIntegers = Vector<int64_t, wide_lanes>;

BCAST_INLINE WideBits bits_of(Wide x) { return bits_as<WideBits>(x); }
BCAST_INLINE WideIntegers integers_of(Wide x) { return bits_as<WideIntegers>(x); }
BCAST_INLINE Wide wide_of(WideBits bits) { return bits_as<Wide>(bits); }

/* A vector of contiguous factors. */
template <class Item, int n = wide_lanes>
BCAST_INLINE Wide factors_at(const char *src)
{
    if constexpr (sizeof(Item) == 8) return read<Wide>(src);
    else if constexpr (n == 4) return doubles(load<Vector<Item, n>>(src));
    else return __builtin_convertvector(load<Vector<Item, n>>(src), Wide);
}

template <class Lanes>
BCAST_INLINE bool is_any(Lanes lanes)
{
    return bits_of_mask(bits_as<Vector<uint8_t, register_bytes>>(lanes)) != 0;
}

template <class Lanes>
BCAST_INLINE bool are_all(Lanes lanes)
{
    return bits_of_mask(bits_as<Vector<uint8_t, register_bytes>>(lanes)) == ~uint64_t(0) >> (64 - register_bytes);
}
#else
constexpr int wide_lanes = 1;
using Wide = double;
using WideBits = uint64_t;
using WideIntegers = int64_t;

BCAST_INLINE WideBits bits_of(Wide x) { return bcast_f64_bits_of(x); }
BCAST_INLINE WideIntegers integers_of(Wide x) { return static_cast<int64_t>(bcast_f64_bits_of(x)); }
BCAST_INLINE Wide wide_of(WideBits bits) { return bcast_f64_of(bits); }
BCAST_INLINE bool is_any(bool lane) { return lane; }
BCAST_INLINE bool are_all(bool lane) { return lane; }

template <class Item>
BCAST_INLINE Wide factors_at(const char *src) { return read<Item>(src); }
#endif

constexpr uint64_t all_but_sign = 0x7fffffffffffffff, all_but_exponent = 0x800fffffffffffff;
constexpr uint64_t all_exponent_bits = 0x7ff0000000000000;
constexpr uint64_t bits_of_one = 0x3ff0000000000000, two_to_52 = 0x4330000000000000;

/* Numbers within the range, of either sign, times powers of 2. */
template <class V>
struct Scaled {
    V number;
    V exponent;
};

constexpr int doublings = 512;      /* the ratio of the ends of the range, as a power of 2 */

template <class V>
BCAST_INLINE Scaled<V> scaled_product(Scaled<V> a, Scaled<V> b)
{
    constexpr double most = 0x1p256, least = 0x1p-256;
    const V product = a.number * b.number, none = V{};
    const auto is_large = (product >= most) | (product <= -most);
    const auto is_small = (product < least) & (product > -least);

    const V factor = is_large ? none + 0x1p-512 : is_small ? none + 0x1p512 : none + 1;
    const V moved = is_large ? none + doublings : is_small ? none - doublings : none;
    return {product * factor, a.exponent + b.exponent + moved};
}

/* Floats, split into numbers and exponents. The number of 0, infinity and NaN is not used, except for its sign. */
BCAST_INLINE Scaled<Wide> scaled(Wide x)
{
    constexpr int64_t least_normal = 0x0010000000000000, infinity = 0x7ff0000000000000;
    const Wide zero = Wide{}, unit = zero + 1, up = zero + 0x1p64, above = zero + 64, nothing = zero - __builtin_inf();
    const Wide magnitude = wide_of(bits_of(x) & all_but_sign);
    const WideIntegers size = integers_of(magnitude);

    const auto is_small = size < least_normal;      /* or 0 */
    const WideBits bits = bits_of(x * (is_small ? up : unit));
    const Wide field = wide_of((bits >> 52 & static_cast<uint64_t>(0x7ff)) | two_to_52) - 0x1p52; /* as a float */
    Wide exponent = field - 1023 - (is_small ? above : zero);
    exponent = size == 0 ? nothing : exponent;
    exponent = size >= infinity ? magnitude : exponent;
    return {wide_of((bits & all_but_exponent) | bits_of_one), exponent};
}

/* The address and strides of the factors of columns, in rows of a turn as in `row_at`. */
struct Factors {
    const char *src;
    ptrdiff_t stride, half_stride;
};

/* The number of factors in a group, which are multiplied first: a double has room for a product of four float32. */
template <class Item> constexpr int grouped = sizeof(Item) == 8 ? 2 : 4;

/* The product of a group of factors; the last group may be smaller. */
template <class Item, int count>
BCAST_INLINE Wide product_of_group(Factors factors, int first)
{
    const char *src = row_at(factors.src, first, factors.stride, factors.half_stride);
    Wide product = factors_at<Item>(src);

    for (int i = 1; i < grouped<Item> && first + i < count; i++)
        product = product * factors_at<Item>(src + i * factors.stride);
    return product;
}

/* The same for factors that are first split, if a double may have no room for their product. */
template <class Item, int count>
BCAST_INLINE Scaled<Wide> scaled_group(Factors factors, int first)
{
    if constexpr (sizeof(Item) < 8) return scaled(product_of_group<Item, count>(factors, first));

    const char *src = row_at(factors.src, first, factors.stride, factors.half_stride);
    const auto product = scaled(factors_at<Item>(src));
    return first + 1 < count ? scaled_product(product, scaled(factors_at<Item>(src + factors.stride))) : product;
}

/* Multiply numbers by `count` factors; return whether an intermediate product left the range, or may have lost bits.

   A group of four float32 is from 2^-596 to 2^512, so that it and its product with a number within the range lose no
   bits; the second product may, and is outside then. A group of two float64 may be too small for all its bits, below
   2^-1022: then its product with a number within the range is outside. */
template <class Item, int count>
BCAST_INLINE bool leave_range(Wide *numbers, Factors factors)
{
    constexpr uint64_t least = uint64_t(1023 - doublings / 2) << 52;
    constexpr uint64_t too_many = all_exponent_bits & ~(uint64_t(doublings - 1) << 52);
    constexpr bool is_checked_once = sizeof(Item) < 8;
    Wide product = *numbers;
    WideBits above_least = {};

    for (int first = 0; first < count; first += grouped<Item>) {
        product = product * product_of_group<Item, count>(factors, first);
        if (!is_checked_once || first + grouped<Item> >= count) above_least = above_least | (bits_of(product) - least);
    }
    *numbers = product;
    return !are_all((above_least & too_many) == 0);
}

/* The product of accumulators and `count` factors, which left the range. Usually it suffices to split the numbers;
   otherwise, the groups of factors are split as well. */
template <class Item, int count>
BCAST_APART Scaled<Wide> product_apart(Scaled<Wide> before, Factors factors)
{
    Scaled<Wide> product = scaled(before.number);
    product.exponent = product.exponent + before.exponent;

    Wide number = product.number;
    if (!leave_range<Item, count>(&number, factors)) return {number, product.exponent};

    for (int first = 0; first < count; first += grouped<Item>)
        product = scaled_product(product, scaled_group<Item, count>(factors, first));
    return product;
}

/* The addresses of accumulators. */
struct Accumulators {
    double *numbers, *exponents;
};

/* Multiply a vector of accumulators by `count` factors. */
template <class Item, int count>
BCAST_INLINE void multiply_accumulators(Accumulators to, Factors factors)
{
    char *number = reinterpret_cast<char *>(to.numbers), *exponent = reinterpret_cast<char *>(to.exponents);
    const Wide before = read<Wide>(number);
    Wide product = before;

    if (leave_range<Item, count>(&product, factors)) {
        const auto apart = product_apart<Item, count>({before, read<Wide>(exponent)}, factors);
        product = apart.number;
        write<Wide>(exponent, apart.exponent);
    }
    write<Wide>(number, product);
}

/* The same for columns that do not fill a vector. */
template <class Item, int count>
BCAST_APART void scale_last_columns(Accumulators to, Factors factors, ptrdiff_t width)
{
    Item last[8][wide_lanes];
    double numbers[wide_lanes], exponents[wide_lanes];

    for (int i = 0; i < wide_lanes; i++) {
        numbers[i] = i < width ? to.numbers[i] : 1;
        exponents[i] = i < width ? to.exponents[i] : 0;
    }
    for (int row = 0; row < count; row++) {
        const char *src = row_at(factors.src, row, factors.stride, factors.half_stride);
        for (int i = 0; i < wide_lanes; i++)
            last[row][i] = i < width ? read<Item>(src + i * static_cast<int>(sizeof(Item))) : 1;
    }
    multiply_accumulators<Item, count>(
        {numbers, exponents}, {reinterpret_cast<char *>(last), sizeof last[0], sizeof last[0] * 4});
    memcpy(to.numbers, numbers, 8 * width);
    memcpy(to.exponents, exponents, 8 * width);
}

/* Multiply a row of accumulators by `count` rows of factors. */
template <class Item, int count>
BCAST_INLINE void scale_some_rows(Accumulators to, Factors factors, ptrdiff_t width)
{
    for (; width >= wide_lanes; width -= wide_lanes) {
        multiply_accumulators<Item, count>(to, factors);
        to.numbers += wide_lanes;
        to.exponents += wide_lanes;
        factors.src += sizeof(Item) * wide_lanes;
    }
    if (width > 0) scale_last_columns<Item, count>(to, factors, width);
}

/* Eight rows at once; or four, two and one. */
template <class Item>
BCAST_INLINE void scale_turn(Accumulators to, Factors factors, ptrdiff_t count, ptrdiff_t width)
{
    if (count == 8) {
        scale_some_rows<Item, 8>(to, factors, width);
        return;
    }
    if (count & 4) {
        scale_some_rows<Item, 4>(to, factors, width);
        factors.src = row_at(factors.src, 4, factors.stride, factors.half_stride);
    }
    if (count & 2) {
        scale_some_rows<Item, 2>(to, factors, width);
        factors.src += 2 * factors.stride;
    }
    if (count & 1) scale_some_rows<Item, 1>(to, factors, width);
}

inline void begin_products(Accumulators to, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to.numbers[i] = 1;
        to.exponents[i] = 0;
    }
}

template <class Item>
BCAST_APART int scale_rows(const bcast_term_rows *all, const bcast_sink *dst)
{
    const bcast_term_rows rows = *all;
    const Accumulators to = {reinterpret_cast<double *>(dst->sum), reinterpret_cast<double *>(dst->error)};

    if (dst->mode != BCAST_ADD) begin_products(to, rows.width);
    for (ptrdiff_t turn = 0; turn < rows.turns; turn++)
        scale_turn<Item>(
            to, {rows.src + turn * rows.advance, rows.stride, rows.half_stride}, rows.rows, rows.width);
    return 0;
}

BCAST_INLINE Scaled<double> scaled_at(const bcast_sink *sink, ptrdiff_t i)
{
    return {read<double>(sink->sum + 8 * i), read<double>(sink->error + 8 * i)};
}

BCAST_INLINE void write_scaled(const bcast_sink *sink, ptrdiff_t i, Scaled<double> product)
{
    write<double>(sink->sum + 8 * i, product.number);
    write<double>(sink->error + 8 * i, product.exponent);
}

template <class Item>
BCAST_APART int scale_runs(const bcast_term_runs *all, const bcast_sink *dst)
{
    constexpr ptrdiff_t streams = 8, row_bytes = sizeof(Item) * streams;
    const bcast_term_runs runs = *all;
    const bool adds = dst->mode == BCAST_ADD;
    double numbers[streams], exponents[streams];

    for (ptrdiff_t run = 0; run < runs.count; run++) {
        const char *src = runs.src + run * runs.stride;
        ptrdiff_t rows = runs.length / streams;

        begin_products({numbers, exponents}, streams);
        for (ptrdiff_t count; rows > 0; rows -= count, src += count * row_bytes) {
            count = rows < 8 ? rows : 8;
            scale_turn<Item>({numbers, exponents}, {src, row_bytes, 4 * row_bytes}, count, streams);
        }
        scale_some_rows<Item, 1>({numbers, exponents}, {src, row_bytes, 0}, runs.length % streams);

        for (ptrdiff_t k = 0; k < runs.interleave; k++) {
            Scaled<double> product = {numbers[k], exponents[k]};
            for (ptrdiff_t i = k + runs.interleave; i < streams; i += runs.interleave)
                product = scaled_product(product, {numbers[i], exponents[i]});
            const ptrdiff_t to = run * runs.interleave + k;
            write_scaled(dst, to, adds ? scaled_product(scaled_at(dst, to), product) : product);
        }
    }
    return 0;
}

inline void combine_scaled(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    const bcast_sink to = *dst, from = *src;
    ptrdiff_t i = 0;

    for (; i + wide_lanes <= n; i += wide_lanes) {
        const auto product = scaled_product(
            Scaled<Wide>{read<Wide>(to.sum + 8 * i), read<Wide>(to.error + 8 * i)},
            Scaled<Wide>{read<Wide>(from.sum + 8 * i), read<Wide>(from.error + 8 * i)});
        write<Wide>(to.sum + 8 * i, product.number);
        write<Wide>(to.error + 8 * i, product.exponent);
    }
    for (; i < n; i++) write_scaled(&to, i, scaled_product(scaled_at(&to, i), scaled_at(&from, i)));
}

/* Combine each group's `length` rows of `n` accumulators, in place, in all arrays of accumulators. */
template <
    class Sum, Sum at(const bcast_sink *, ptrdiff_t), Sum both(Sum, Sum),
    void put(const bcast_sink *, ptrdiff_t, Sum)>
BCAST_APART void fold_by(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    for (ptrdiff_t group = 0; group < groups; group++)
        for (ptrdiff_t k = 0; k < n; k++) {
            const ptrdiff_t first = group * length * n + k;
            Sum sum = at(all, first);
            for (ptrdiff_t i = 1; i < length; i++) sum = both(sum, at(all, first + i * n));
            put(all, group * n + k, sum);
        }
}

/* Factors of all other dtypes are packed as float64. */
template <int dtype>
constexpr bcast_sum_kernels scaled_kernels_of()
{
    bcast_sum_kernels kernels = {};
    if constexpr (dtype == BCAST_FLOAT32 || dtype == BCAST_FLOAT64) {
        using Item = typename ProductOf<dtype>::Type::Item;
        kernels.lanes = 4;
        kernels.reduce_rows = scale_rows<Item>;
        kernels.reduce_runs = scale_runs<Item>;
        kernels.combine = combine_scaled;
        kernels.fold = fold_by<Scaled<double>, scaled_at, scaled_product<double>, write_scaled>;
    }
    return kernels;
}

constexpr bcast_sum_kernels scaled_kernels_by_dtype[] = {BCAST_DTYPES(BCAST_SCALED_KERNELS)};
