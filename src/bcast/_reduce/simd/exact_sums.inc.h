/* The kernels of exact sums, of `combine.h`. `target.inc.h` includes this file for each target.

   Two_sum adds each term to a sum, and the rounding error to an error term. A bound collects the magnitudes of the
   error term's own rounding errors. So the exact sum differs from `sum` + `error` by at most `bound`:

       term  -->  sum  --rounding error-->  error  --rounding error, as a magnitude-->  bound

   A bound of 0 means that nothing is lost. This is true of most sums of few terms, which are often halfway between two
   numbers. A result is settled if all numbers within the bound round to the same number; other results are computed
   again from their terms, as integers (`exact.h`). So results do not depend on the order of additions, and each target
   can use all lanes of its registers.

   A sum of many terms is rarely halfway, so it can have a bound that is never 0, which costs less: see "Many terms".

   Accumulators are three arrays at equal distances: sums, error terms, bounds. */

template <class V>
struct ExactSum {
    V sum;
    V error;
    V bound;
};

/* Floats of 16 bits. */
struct Half {
    uint16_t bits;
    operator double() const { return bcast_f16_of(bits); }
};

struct Brain {
    uint16_t bits;
    operator double() const { return bcast_bf16_of(bits); }
};

template <int dtype> struct ExactItemOf { using Type = void; };
template <> struct ExactItemOf<BCAST_FLOAT16> { using Type = Half; };
template <> struct ExactItemOf<BCAST_BFLOAT16> { using Type = Brain; };
template <> struct ExactItemOf<BCAST_FLOAT32> { using Type = float; };
template <> struct ExactItemOf<BCAST_FLOAT64> { using Type = double; };

template <class Item> constexpr bool is_read = true;        /* whether kernels read such terms in place */
template <> constexpr bool is_read<void> = false;

template <class Item> constexpr bool is_wide = false;       /* whether terms have the digits of accumulators */
template <> constexpr bool is_wide<double> = true;

/* Whether plain sums of up to 2^13 terms are exact: float16 are multiples of 2^-24, up to 2^16; sums have 53 bits. */
template <class Item> constexpr bool is_short = false;
template <> constexpr bool is_short<Half> = true;
constexpr ptrdiff_t short_terms = 1 << 13;

#if BCAST_VECTORS
/* The first lanes of four, which fill a register. */
template <class Lanes>
BCAST_INLINE Wide lower(Lanes four)
{
    if constexpr (sizeof(Lanes) == sizeof(Wide)) return four;
    else return four.low;
}

/* The bits of floats for all lanes of a register, or more: compilers turn this into one load. */
BCAST_INLINE Vector<uint16_t, 4> short_bits_at(const char *src)
{
    if constexpr (wide_lanes == 4) return load<Vector<uint16_t, 4>>(src);
    else return Vector<uint16_t, 4>{read<uint16_t>(src), read<uint16_t>(src + 2), 0, 0};
}

/* A vector of contiguous terms. */
template <class Item>
BCAST_INLINE Wide wide_terms(const char *src)
{
    if constexpr (is_short<Item>) {
        const auto bits = __builtin_shufflevector(short_bits_at(src), Vector<uint16_t, 4>{}, 0, 1, 2, 3, 4, 5, 6, 7);
        return lower(doubles_of_half(floats_of_halves(bits_as<Vector<uint16_t, 8>>(bits)), 0));
    } else if constexpr (sizeof(Item) == 2) {
        return lower(doubles(floats_of_bfloats(short_bits_at(src))));
    } else {
        return factors_at<Item>(src);
    }
}

template <class Item> struct StoredAs { using Type = Item; };       /* the items of vectors */
template <> struct StoredAs<Half> { using Type = uint16_t; };
template <> struct StoredAs<Brain> { using Type = uint16_t; };

/* The terms at byte `at` after each of several addresses, one in each lane. Compilers do not turn a loop into this. */
template <class Item, int lanes>
BCAST_INLINE Vector<Item, lanes> gathered_items(const char *const *src, ptrdiff_t at)
{
    const Item first = read<Item>(src[0] + at), second = read<Item>(src[1] + at);

    if constexpr (lanes == 2) return Vector<Item, 2>{first, second};
    else return Vector<Item, 4>{first, second, read<Item>(src[2] + at), read<Item>(src[3] + at)};
}

template <class Item, int lanes>
BCAST_INLINE Wide gathered(const char *const *src, ptrdiff_t at)
{
    const auto items = gathered_items<typename StoredAs<Item>::Type, lanes>(src, at);
    return wide_terms<Item>(reinterpret_cast<const char *>(&items));
}
#else
template <class Item>
BCAST_INLINE Wide wide_terms(const char *src) { return read<Item>(src); }

template <class Item, int lanes>
BCAST_INLINE Wide gathered(const char *const *src, ptrdiff_t at) { return read<Item>(src[0] + at); }
#endif

/* The terms from an address on, in the lanes of a vector, or a single term. */
template <class Item, class V>
BCAST_INLINE V terms_at(const char *src)
{
    if constexpr (sizeof(V) == sizeof(double)) return read<Item>(src);
    else return wide_terms<Item>(src);
}

/* ---- Additions ---- */

/* The rounding error of a sum, `a` + `b` rounded: two_sum. In vectors, half of the differences are multiplied by one,
   so that the CPU's multipliers compute them, which are otherwise idle: 1.25 times as fast. */
template <class V>
BCAST_INLINE V rounding_error(V a, V b, V sum)
{
    if constexpr (wide_lanes == 1 || sizeof(V) == sizeof(double)) {
        return BCAST_TWO_SUM_ERROR(a, b, sum);
    } else {
        const V one = ones<V>(), added = sum * one - a, rest = b - added;
        return (a * one - (sum - added)) * one + rest;
    }
}

template <class V>
BCAST_INLINE void add_exactly(ExactSum<V> *to, V term)
{
    const V sum = to->sum + term, lost = rounding_error(to->sum, term, sum), error = to->error + lost;

    to->bound = to->bound + magnitude(rounding_error(to->error, lost, error));
    to->error = error;
    to->sum = sum;
}

/* Narrower terms rarely have rounding errors. So additions to their error terms do not compute their own rounding
   errors, which are at most 2^-53 of the largest error term. `bound` holds this magnitude until `bound_of` is called.
   */
template <class Item, class V>
BCAST_INLINE void add_term(ExactSum<V> *to, V term)
{
    if constexpr (is_wide<Item>) {
        add_exactly(to, term);
    } else {
        const V sum = to->sum + term, error = to->error + rounding_error(to->sum, term, sum), size = magnitude(error);

        to->bound = to->bound > size ? to->bound : size;
        to->error = error;
        to->sum = sum;
    }
}

/* The bound after `n` such additions, given the bound before them: twice their rounding errors. */
template <class Item, class V>
BCAST_INLINE V bound_of(V bound, V before, ptrdiff_t n)
{
    if constexpr (is_wide<Item>) return bound;
    else return before + bound * (static_cast<double>(n) * 0x1p-52);
}

template <class V>
BCAST_INLINE ExactSum<V> merged(ExactSum<V> a, ExactSum<V> b)
{
    add_exactly(&a, b.sum);
    const V error = a.error + b.error;
    return {a.sum, error, a.bound + b.bound + magnitude(rounding_error(a.error, b.error, error))};
}

/* The sum of all lanes. */
BCAST_INLINE ExactSum<double> exact_sum_of_lanes(ExactSum<Wide> lanes)
{
    double sums[wide_lanes], errors[wide_lanes], bounds[wide_lanes];
    write<Wide>(reinterpret_cast<char *>(sums), lanes.sum);
    write<Wide>(reinterpret_cast<char *>(errors), lanes.error);
    write<Wide>(reinterpret_cast<char *>(bounds), lanes.bound);

    ExactSum<double> all = {sums[0], errors[0], bounds[0]};
    for (int i = 1; i < wide_lanes; i++) all = merged(all, {sums[i], errors[i], bounds[i]});
    return all;
}

/* ---- Accumulators and results ---- */

template <class V>
BCAST_INLINE ExactSum<V> exact_at(const bcast_sink *sink, ptrdiff_t i)
{
    const char *error = sink->error + 8 * i;
    return {read<V>(sink->sum + 8 * i), read<V>(error), read<V>(error + (sink->error - sink->sum))};
}

template <class V>
BCAST_INLINE void write_exact(const bcast_sink *sink, ptrdiff_t i, ExactSum<V> sum)
{
    char *error = sink->error + 8 * i;
    write<V>(sink->sum + 8 * i, sum.sum);
    write<V>(error, sum.error);
    write<V>(error + (sink->error - sink->sum), sum.bound);
}

/* Write sums to a sink, from sum `i` on. */
template <class V>
BCAST_INLINE void put_exactly(const bcast_sink *dst, ptrdiff_t i, ExactSum<V> sum, V *doubt)
{
    if (dst->mode == BCAST_WRITE) write<V>(dst->sum + 8 * i, sums::settled(sum.sum, sum.error, sum.bound, doubt));
    else write_exact(dst, i, sum);
}

/* Write sums to a sink, or add them to its accumulators. */
template <class V>
BCAST_INLINE void put_exactly_added(const bcast_sink *dst, ptrdiff_t i, ExactSum<V> sum, V *doubt)
{
    if (dst->mode == BCAST_ADD) sum = merged(exact_at<V>(dst, i), sum);
    put_exactly(dst, i, sum, doubt);
}

BCAST_INLINE int is_doubtful(Wide lanes, double one)
{
    return is_any(!(lanes == Wide{})) || !(one == 0);
}

/* ---- Many terms ---- */

/* Terms of float64 are added to an anchor, 1.5 times a power of 2, far above the sum of their magnitudes. All sums then
   have the same last place. An addition adds the multiple of that place which is nearest to the term, and fast_two_sum
   computes the rest. Only the sum of these rests is rounded:

       anchor     11000000000000000000|
       term             1..............|...........
                        multiple, exact    rest

   Narrower terms are added without an anchor: float64 has 29 bits more than float32. The bound is a product of the
   number of terms, a last place, and the anchor or the sum of magnitudes. */
struct Bulk {
    Wide sum;
    Wide rests;
    Wide magnitudes;
};

constexpr ptrdiff_t bulk_terms = 128;           /* terms of a lane in one bulk, so that rests remain small */
constexpr ptrdiff_t many_terms = bulk_terms;    /* terms of a result: one in n sums of n terms is halfway, by chance */
constexpr ptrdiff_t many_rows = many_terms / 4; /* rows of a call, which has a share of the terms */
constexpr int bulk_streams = 4;                  /* streams, whose additions are independent */
constexpr ptrdiff_t bulk_vectors = bulk_streams * bulk_terms;

template <class Item>
BCAST_INLINE void add_to_bulk(Bulk *to, Wide term)
{
    const Wide sum = to->sum + term;

    if constexpr (is_wide<Item>) {
        const Wide one = ones<Wide>();
        to->rests = (term * one - (sum - to->sum)) * one + to->rests;
    }
    if constexpr (!is_short<Item>) to->magnitudes = to->magnitudes + magnitude(term);
    to->sum = sum;
}

/* An anchor for terms with about this sum of magnitudes; 0 if the sum is too large or too small for one. */
template <class Item>
BCAST_INLINE Wide anchor_for(Wide magnitudes)
{
    constexpr uint64_t exponent = 0x7ff0000000000000;
    const Wide power = wide_of(bits_of(magnitudes) & exponent), none = Wide{};
    const Wide anchor = magnitudes >= none + 0x1p-880 ? power * 0x1.8p6 : none;

    if constexpr (!is_wide<Item>) return none;
    else return magnitudes <= none + 0x1p880 ? anchor : none;
}

/* Whether all terms of a bulk were below its anchor, but not far below. */
template <class Item>
BCAST_INLINE bool is_anchored(const Bulk &bulk, Wide anchor)
{
    const Wide size = bulk.magnitudes, most = anchor * 0x1p-2, least = anchor * 0x1p-20;

    if constexpr (!is_wide<Item>) return true;
    else return !is_any(!((size <= most) & ((size >= least) | (size == Wide{}))));
}

/* The sum of a bulk of up to `n` terms in each lane. */
template <class Item>
BCAST_INLINE ExactSum<Wide> sum_of_bulk(const Bulk &bulk, Wide anchor, ptrdiff_t n)
{
    const double terms = static_cast<double>(n);
    const Wide none = Wide{}, bound = anchor * (terms * terms * 0x1p-105);

    if constexpr (is_short<Item>) return {bulk.sum, none, none};
    else if constexpr (!is_wide<Item>) return {bulk.sum, none, bulk.magnitudes * (terms * 0x1.1p-53)};
    else return {bulk.sum - anchor, bulk.rests, bulk.magnitudes > none ? bound : none};
}

/* The sums of the magnitudes of `n` vectors `vector(i)`. */
template <class Vectors>
BCAST_INLINE Wide magnitudes_of(ptrdiff_t n, Vectors vector)
{
    Wide sum = {};

    for (ptrdiff_t i = 0; i < n; i++) sum = sum + magnitude(vector(i));
    return sum;
}

/* The sums of `n` vectors `vector(i)`, at most `bulk_vectors`, in streams. An `anchor` that does not fit is replaced by
   a better one. If terms are infinite or NaN, or too large, a sum is NaN, and so is the sum of all lanes. */
template <class Item, class Vectors>
BCAST_INLINE ExactSum<Wide> sum_of_streams_at(Wide *anchor, ptrdiff_t n, Vectors vector)
{
    Bulk streams[bulk_streams], all = {*anchor, {}, {}};

    for (Bulk &stream : streams) stream = all;
    for (ptrdiff_t i = 0; i < n; i += bulk_streams)
        for (int k = 0; k < bulk_streams; k++) add_to_bulk<Item>(&streams[k], vector(i + k));
    for (const Bulk &stream : streams) {
        all.sum = all.sum + (stream.sum - *anchor);
        all.rests = all.rests + stream.rests;
        all.magnitudes = all.magnitudes + stream.magnitudes;
    }
    const Wide none = Wide{}, nothing = all.magnitudes - all.magnitudes;
    if (is_any(!(nothing == none))) return {nothing, none, none};
    if (is_anchored<Item>(all, *anchor))
        return sum_of_bulk<Item>(all, *anchor, is_wide<Item> ? n : n / bulk_streams + bulk_streams);

    ExactSum<Wide> sum = {};
    *anchor = anchor_for<Item>(all.magnitudes);
    for (ptrdiff_t i = 0; i < n; i++) add_exactly(&sum, vector(i));
    return sum;
}

/* The sums of many vectors `vector(i)`. */
template <class Item, class Vectors>
BCAST_INLINE ExactSum<Wide> sum_of_many(ptrdiff_t n, Vectors vector)
{
    constexpr ptrdiff_t tried = 16;
    const double bulk = static_cast<double>(n < bulk_vectors ? n : bulk_vectors);
    Wide anchor = anchor_for<Item>(magnitudes_of(is_wide<Item> ? tried : 0, vector) * (bulk / tried));
    ExactSum<Wide> sum = {};
    ptrdiff_t done = 0;

    for (ptrdiff_t at_once; n - done >= bulk_streams; done += at_once) {
        at_once = n - done < bulk_vectors ? (n - done) / bulk_streams * bulk_streams : bulk_vectors;
        const auto next = [&](ptrdiff_t i) BCAST_LAMBDA_INLINE { return vector(done + i); };
        sum = merged(sum, sum_of_streams_at<Item>(&anchor, at_once, next));
        if (is_any(!(sum.sum == sum.sum))) return sum;
    }
    for (; done < n; done++) add_exactly(&sum, vector(done));
    return sum;
}

/* ---- Rows ---- */

/* Call `use` with each row of a turn at `src`, beginning with row number `from`, one of the first four. */
template <class Use>
BCAST_INLINE void for_each_row(const bcast_term_rows &rows, const char *src, int from, Use use)
{
    ptrdiff_t i = from;

    for (ptrdiff_t left = rows.rows; left > 0; left -= 4, src += rows.half_stride, i = 0)
        for (; i < (left < 4 ? left : 4); i++) use(src + i * rows.stride);
}

/* The sums of a vector's columns of a turn. They begin with the accumulators, unless these rows are the `first` ones.
   */
template <class Item, class V>
BCAST_INLINE ExactSum<V> sum_of_columns(
    bool first, const bcast_sink *dst, ptrdiff_t column, const bcast_term_rows &rows, const char *src)
{
    const char *at = src + static_cast<ptrdiff_t>(sizeof(Item)) * column;
    ExactSum<V> sum = {};
    V before = {};

    if constexpr (is_short<Item>) {
        for_each_row(rows, at, 0, [&](const char *row) BCAST_LAMBDA_INLINE {
            sum.sum = sum.sum + terms_at<Item, V>(row);
        });
        return first ? sum : merged(exact_at<V>(dst, column), sum);
    }
    if (first) sum.sum = terms_at<Item, V>(at);
    else sum = exact_at<V>(dst, column);
    if constexpr (!is_wide<Item>) {
        before = sum.bound;
        sum.bound = V{};
    }
    for_each_row(
        rows, at, first, [&](const char *row) BCAST_LAMBDA_INLINE { add_term<Item>(&sum, terms_at<Item, V>(row)); });
    sum.bound = bound_of<Item>(sum.bound, before, rows.rows);
    return sum;
}

template <class Item>
BCAST_INLINE int sum_few_rows_exactly(const bcast_term_rows *all, const bcast_sink *sink)
{
    const bcast_term_rows rows = *all;
    bcast_sink dst = *sink;
    const char *src = rows.src;
    Wide doubt = {};
    double last_doubt = 0;

    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, src += rows.advance, dst.mode = BCAST_ADD) {
        const bool first = dst.mode != BCAST_ADD;
        ptrdiff_t column = 0;
        for (; column + wide_lanes <= rows.width; column += wide_lanes)
            put_exactly(&dst, column, sum_of_columns<Item, Wide>(first, &dst, column, rows, src), &doubt);
        for (; column < rows.width; column++)
            put_exactly(&dst, column, sum_of_columns<Item, double>(first, &dst, column, rows, src), &last_doubt);
    }
    return is_doubtful(doubt, last_doubt);
}

/* A few vectors of columns of many rows, and their sums. */
struct Columns {
    static constexpr int most = 64;     /* 2 KB of a row of float64, which the prefetcher recognises as a stream */
    int vectors;
    Bulk bulk[most];
    Wide anchor[most];
    ExactSum<Wide> sum[most];
};

/* Add the columns of a vector, of `turns` turns, term by term. */
template <class Item, class V>
BCAST_APART void add_turns_exactly(ExactSum<V> *sum, const bcast_term_rows &rows, const char *src, ptrdiff_t turns)
{
    for (; turns > 0; turns--, src += rows.advance)
        for_each_row(
            rows, src, 0, [&](const char *row) BCAST_LAMBDA_INLINE { add_exactly(sum, terms_at<Item, V>(row)); });
}

/* Add the rows of a turn. */
template <class Item>
BCAST_INLINE void add_turn(Bulk *to, const bcast_term_rows &rows, const char *src)
{
    Bulk bulk = *to;

    for_each_row(rows, src, 0, [&](const char *row) BCAST_LAMBDA_INLINE {
        add_to_bulk<Item>(&bulk, wide_terms<Item>(row));
    });
    *to = bulk;
}

/* The same for two vectors side by side, whose additions are independent. */
template <class Item>
BCAST_INLINE void add_turn_twice(Bulk *to, const bcast_term_rows &rows, const char *src)
{
    Bulk first = to[0], second = to[1];     /* compilers would keep an array in memory */

    for_each_row(rows, src, 0, [&](const char *row) BCAST_LAMBDA_INLINE {
        add_to_bulk<Item>(&first, wide_terms<Item>(row));
        add_to_bulk<Item>(&second, wide_terms<Item>(row + sizeof(Item) * wide_lanes));
    });
    to[0] = first;
    to[1] = second;
}

/* Add `turns` turns row by row, in memory order. */
template <class Item>
BCAST_INLINE void add_turns(Columns *to, const bcast_term_rows &rows, const char *begin, ptrdiff_t turns)
{
    constexpr ptrdiff_t size = sizeof(Item) * wide_lanes;
    const char *src = begin;

    for (int k = 0; k < to->vectors; k++) to->bulk[k] = Bulk{to->anchor[k], Wide{}, Wide{}};
    for (ptrdiff_t turn = 0; turn < turns; turn++, src += rows.advance) {
        int k = 0;
        for (; k + 2 <= to->vectors; k += 2) add_turn_twice<Item>(&to->bulk[k], rows, src + size * k);
        if (k < to->vectors) add_turn<Item>(&to->bulk[k], rows, src + size * k);
    }
    for (int k = 0; k < to->vectors; k++) {
        const Bulk bulk = to->bulk[k];
        ExactSum<Wide> sum = {};
        if (is_anchored<Item>(bulk, to->anchor[k])) {
            sum = sum_of_bulk<Item>(bulk, to->anchor[k], turns * rows.rows);
        } else {
            to->anchor[k] = anchor_for<Item>(bulk.magnitudes);
            add_turns_exactly<Item>(&sum, rows, begin + size * k, turns);
        }
        to->sum[k] = merged(to->sum[k], sum);
    }
}

template <class Item>
BCAST_INLINE int sum_many_rows_exactly(const bcast_term_rows *all, const bcast_sink *dst)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const bcast_term_rows rows = *all;
    const ptrdiff_t turns_at_once = bulk_terms / rows.rows;
    const bool first = dst->mode != BCAST_ADD;
    Columns columns;
    Wide doubt = {};
    double last_doubt = 0;
    ptrdiff_t column = 0;

    for (; column + wide_lanes <= rows.width; column += columns.vectors * wide_lanes) {
        const ptrdiff_t vectors = (rows.width - column) / wide_lanes;
        const char *src = rows.src + size * column;
        columns.vectors = static_cast<int>(vectors < Columns::most ? vectors : Columns::most);
        for (int k = 0; k < columns.vectors; k++) {
            Wide magnitudes = {};
            for_each_row(rows, src + size * wide_lanes * k, 0, [&](const char *row) BCAST_LAMBDA_INLINE {
                magnitudes = magnitudes + magnitude(wide_terms<Item>(row));
            });
            columns.anchor[k] = anchor_for<Item>(magnitudes * static_cast<double>(turns_at_once));
            columns.sum[k] = first ? ExactSum<Wide>{} : exact_at<Wide>(dst, column + k * wide_lanes);
        }
        for (ptrdiff_t turn = 0; turn < rows.turns; turn += turns_at_once) {
            const ptrdiff_t turns = rows.turns - turn < turns_at_once ? rows.turns - turn : turns_at_once;
            add_turns<Item>(&columns, rows, src + turn * rows.advance, turns);
        }
        for (int k = 0; k < columns.vectors; k++)
            put_exactly(dst, column + k * wide_lanes, columns.sum[k], &doubt);
    }
    for (; column < rows.width; column++) {
        ExactSum<double> sum = {};
        if (!first) sum = exact_at<double>(dst, column);
        add_turns_exactly<Item>(&sum, rows, rows.src + size * column, rows.turns);
        put_exactly(dst, column, sum, &last_doubt);
    }
    return is_doubtful(doubt, last_doubt);
}

template <class Item>
BCAST_APART int sum_rows_by_errors(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (rows->turns * rows->rows < many_rows) return sum_few_rows_exactly<Item>(rows, dst);
    return sum_many_rows_exactly<Item>(rows, dst);
}

/* ---- Runs ---- */

/* The sums of `n` terms in each lane, with a stride of `step` bytes; each lane has its own first address. */
template <class Item>
BCAST_INLINE ExactSum<Wide> sum_of_addresses(const char *const *src, ptrdiff_t step, ptrdiff_t n)
{
    ExactSum<Wide> sum = {gathered<Item, wide_lanes>(src, 0), {}, {}};

    if (is_short<Item> && n <= short_terms) {
        for (ptrdiff_t i = 1; i < n; i++) sum.sum = sum.sum + gathered<Item, wide_lanes>(src, i * step);
        return sum;
    }
    for (ptrdiff_t i = 1; i < n; i++) add_term<Item>(&sum, gathered<Item, wide_lanes>(src, i * step));
    sum.bound = bound_of<Item>(sum.bound, Wide{}, n);
    return sum;
}

/* The sum of many contiguous terms. */
template <class Item>
BCAST_APART ExactSum<double> sum_of_long_run(const char *src, ptrdiff_t n)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const ptrdiff_t vectors = n / wide_lanes;
    const auto vector = [&](ptrdiff_t i) BCAST_LAMBDA_INLINE { return wide_terms<Item>(src + size * wide_lanes * i); };
    ExactSum<double> sum = exact_sum_of_lanes(sum_of_many<Item>(vectors, vector));

    for (ptrdiff_t i = vectors * wide_lanes; i < n; i++)
        add_exactly(&sum, static_cast<double>(read<Item>(src + size * i)));
    return sum;
}

/* The sum of `n` terms with a stride of `step` bytes. */
template <class Item>
BCAST_APART ExactSum<double> sum_of_run(const char *src, ptrdiff_t step, ptrdiff_t n)
{
    const ptrdiff_t vectors = n / wide_lanes;
    ExactSum<double> sum = {};
    ptrdiff_t done = 0;

    if (step == sizeof(Item) && n >= many_terms) return sum_of_long_run<Item>(src, n);
    if (vectors > 1) {
        const char *lanes[wide_lanes];
        for (int i = 0; i < wide_lanes; i++) lanes[i] = src + i * step;
        sum = exact_sum_of_lanes(sum_of_addresses<Item>(lanes, wide_lanes * step, vectors));
        done = vectors * wide_lanes;
    } else if (n > 0) {
        sum.sum = read<Item>(src);
        done = 1;
    }
    for (; done < n; done++) add_exactly(&sum, static_cast<double>(read<Item>(src + done * step)));
    return sum;
}

template <class Item>
BCAST_APART int sum_runs_by_errors(const bcast_term_runs *all, const bcast_sink *sink)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const bcast_term_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t items = runs.interleave, step = size * items, n = runs.length / items, count = runs.count * items;
    const bool are_long = step == size && n >= many_terms;
    const char *src = runs.src;     /* the terms of the next result */
    Wide doubt = {};
    double last_doubt = 0;
    ptrdiff_t i = 0, item = 0;

    const auto next = [&]() {
        const char *at = src;
        src += size;
        if (++item == items) {
            item = 0;
            src += runs.stride - step;
        }
        return at;
    };
    for (; !are_long && i + wide_lanes <= count; i += wide_lanes) {
        const char *lanes[wide_lanes];
        for (int lane = 0; lane < wide_lanes; lane++) lanes[lane] = next();
        put_exactly_added(&dst, i, sum_of_addresses<Item>(lanes, step, n), &doubt);
    }
    for (; i < count; i++) put_exactly_added(&dst, i, sum_of_run<Item>(next(), step, n), &last_doubt);
    return is_doubtful(doubt, last_doubt);
}

template <class Item>
BCAST_APART int sum_counted_runs_exactly(const bcast_counted_runs *all, const bcast_sink *sink)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const bcast_counted_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t items = runs.interleave, step = size * items;
    const char *src = runs.src;
    double doubt = 0;

    for (ptrdiff_t i = 0; i < runs.count; src += runs.counts[i++] * step)
        for (ptrdiff_t k = 0; k < items; k++)
            put_exactly_added(&dst, i * items + k, sum_of_run<Item>(src + size * k, step, runs.counts[i]), &doubt);
    return is_doubtful(Wide{}, doubt);
}

/* ---- Blocks of accumulators ---- */

inline void combine_exactly(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    ptrdiff_t i = 0;

    for (; i + wide_lanes <= n; i += wide_lanes)
        write_exact(dst, i, merged(exact_at<Wide>(dst, i), exact_at<Wide>(src, i)));
    for (; i < n; i++)
        write_exact(dst, i, merged(exact_at<double>(dst, i), exact_at<double>(src, i)));
}
