/* Exact sums of floats narrower than float64: plain sums, if none of their additions rounds.

   Sums of a few thousand float32 in float64 rarely round: float64 has 29 bits more. If an operation rounds, the CPU
   sets its flag of the inexact exception. So the kernels of ordinary sums (`sums`) add a block of terms, and if the
   flag is clear, their sums are exact. Otherwise, the kernels of `exact_sums.inc.h` sum the block again. Blocks are
   small, because long sums, and tiny terms among many, make it likely that some addition rounds. */

/* The kind of such terms, on CPUs whose flags kernels can read. float16 have kernels of their own. */
template <class Item> struct PlainKindOf { using Kind = void; };
#if BCAST_VECTORS && BCAST_TELLS_ERRORS
template <> struct PlainKindOf<Brain> { using Kind = bf16; };
template <> struct PlainKindOf<float> { using Kind = f32; };
#endif
template <class Item> using PlainKind = typename PlainKindOf<Item>::Kind;

template <class Kind> constexpr bool is_plain = true;
template <> constexpr bool is_plain<void> = false;

constexpr ptrdiff_t plain_results = 512;        /* of a block, at most */

#if BCAST_VECTORS && BCAST_TELLS_ERRORS

/* Call `compute`; return whether none of its operations rounded. The CPU's flags are unchanged afterwards. */
template <class Compute>
BCAST_INLINE bool is_unrounded(Compute compute)
{
    const uint64_t before = told_errors();

    tell_errors(before & ~inexact_told);
    BCAST_KEEP_ORDER();
    compute();
    BCAST_KEEP_ORDER();
    const uint64_t after = told_errors();
    tell_errors(before);
    return (after & inexact_told) == 0;
}

/* Make plain sums results: a sum of negative zeros is 0. Return whether all of them are finite. */
inline bool finish_plain_sums(char *sums, ptrdiff_t n)
{
    double nothing = 0;

    for (ptrdiff_t i = 0; i < n; i++) {
        const double sum = read<double>(sums + 8 * i) + 0.0;
        write<double>(sums + 8 * i, sum);
        nothing += sum - sum;
    }
    return nothing == 0;
}

/* Sum a block of terms with `n` results: by an ordinary kernel, or if that rounds, by one that keeps error terms.
   Return what kernels return. */
template <class Plainly, class ByErrors>
BCAST_INLINE int sum_block(const bcast_sink *dst, ptrdiff_t n, Plainly sum_plainly, ByErrors sum_by_errors)
{
    const bool adds = dst->mode == BCAST_ADD;
    const bcast_sink plain = {adds ? BCAST_ADD : BCAST_SET, dst->sum, nullptr};
    double before[plain_results];

    if (adds) memcpy(before, dst->sum, 8 * n);
    if (!is_unrounded([&] { sum_plainly(&plain); })) {
        if (adds) memcpy(dst->sum, before, 8 * n);
        return sum_by_errors();
    }
    if (dst->mode == BCAST_WRITE) return !finish_plain_sums(dst->sum, n);
    if (!adds) {
        memset(dst->error, 0, 8 * n);
        memset(dst->error + (dst->error - dst->sum), 0, 8 * n);
    }
    return 0;
}

template <class Item>
int sum_blocks_of_rows(const bcast_term_rows *all, const bcast_sink *sink)
{
    const ptrdiff_t turns_at_once = UNROUNDED_ROWS / 8;
    int doubt = 0;

    for (ptrdiff_t column = 0; column < all->width; column += plain_results) {
        bcast_term_rows rows = *all;
        bcast_sink dst = moved(*sink, 8 * column);
        rows.src += static_cast<ptrdiff_t>(sizeof(Item)) * column;
        rows.width = all->width - column < plain_results ? all->width - column : plain_results;

        for (ptrdiff_t turn = 0; turn < all->turns; turn += turns_at_once) {
            rows.turns = all->turns - turn < turns_at_once ? all->turns - turn : turns_at_once;
            doubt |= sum_block(
                &dst, rows.width, [&](const bcast_sink *plain) { sums::sum_rows<PlainKind<Item>>(&rows, plain); },
                [&] { return sum_rows_by_errors<Item>(&rows, &dst); });
            rows.src += rows.turns * rows.advance;
            dst.mode = BCAST_ADD;       /* results are written by kernels that get one turn */
        }
    }
    return doubt;
}

template <class Item>
BCAST_INLINE int sum_block_of_runs(const bcast_term_runs *runs, const bcast_sink *dst)
{
    return sum_block(
        dst, runs->count * runs->interleave,
        [&](const bcast_sink *plain) { sums::sum_runs<PlainKind<Item>>(runs, plain); },
        [&] { return sum_runs_by_errors<Item>(runs, dst); });
}

template <class Item>
int sum_blocks_of_runs(const bcast_term_runs *all, const bcast_sink *sink)
{
    const ptrdiff_t fitting = UNROUNDED_TERMS / all->length, most = plain_results / all->interleave;
    const ptrdiff_t at_once = fitting < 1 ? 1 : fitting < most ? fitting : most;
    bcast_term_runs runs = *all;
    bcast_sink dst = *sink;
    int doubt = 0;

    for (ptrdiff_t first = 0; first < all->count; first += at_once) {
        runs.count = all->count - first < at_once ? all->count - first : at_once;
        doubt |= sum_block_of_runs<Item>(&runs, &dst);
        runs.src += runs.count * runs.stride;
        dst = moved(dst, 8 * runs.count * runs.interleave);
    }
    return doubt;
}

/* The sums of the items of a long run: its pieces are runs, whose sums are added. */
template <class Item>
BCAST_INLINE void sum_pieces(ExactSum<double> *sums, const char *src, ptrdiff_t length, ptrdiff_t interleave)
{
    constexpr ptrdiff_t pieces_at_once = 4, piece_bytes = sizeof(Item) * UNROUNDED_RUN_TERMS;
    double sum[3][4 * pieces_at_once];
    const bcast_sink pieces = {BCAST_SET, reinterpret_cast<char *>(sum[0]), reinterpret_cast<char *>(sum[1])};

    for (ptrdiff_t left = length, count; left > 0; left -= count * UNROUNDED_RUN_TERMS, src += count * piece_bytes) {
        const ptrdiff_t whole = left / UNROUNDED_RUN_TERMS;
        count = whole == 0 ? 1 : whole < pieces_at_once ? whole : pieces_at_once;
        const bcast_term_runs runs = {src, count, piece_bytes, whole == 0 ? left : UNROUNDED_RUN_TERMS, interleave};

        sum_block_of_runs<Item>(&runs, &pieces);
        for (ptrdiff_t i = 0; i < count; i++)
            for (ptrdiff_t k = 0; k < interleave; k++)
                sums[k] = merged(sums[k], exact_at<double>(&pieces, i * interleave + k));
    }
}

template <class Item>
int sum_long_runs(const bcast_term_runs *all, const bcast_sink *sink)
{
    const bcast_term_runs runs = *all;
    const bcast_sink dst = *sink;
    double doubt = 0;

    for (ptrdiff_t i = 0; i < runs.count; i++) {
        ExactSum<double> sums[4] = {};
        sum_pieces<Item>(sums, runs.src + i * runs.stride, runs.length, runs.interleave);
        for (ptrdiff_t k = 0; k < runs.interleave; k++)
            put_exactly_added(&dst, i * runs.interleave + k, sums[k], &doubt);
    }
    return is_doubtful(Wide{}, doubt);
}

#endif

template <class Item>
BCAST_APART int sum_rows_exactly(const bcast_term_rows *rows, const bcast_sink *dst)
{
#if BCAST_VECTORS && BCAST_TELLS_ERRORS
    if constexpr (is_plain<PlainKind<Item>>)
        if (roundings_set_flag) return sum_blocks_of_rows<Item>(rows, dst);
#endif
    return sum_rows_by_errors<Item>(rows, dst);
}

template <class Item>
BCAST_APART int sum_runs_exactly(const bcast_term_runs *runs, const bcast_sink *dst)
{
#if BCAST_VECTORS && BCAST_TELLS_ERRORS
    if constexpr (is_plain<PlainKind<Item>>) {
        if (roundings_set_flag && runs->length > UNROUNDED_RUN_TERMS) return sum_long_runs<Item>(runs, dst);
        if (roundings_set_flag && runs->length > 0) return sum_blocks_of_runs<Item>(runs, dst);
    }
#endif
    return sum_runs_by_errors<Item>(runs, dst);
}

/* Terms of integers are packed as float64. */
template <int dtype>
constexpr bcast_sum_kernels exact_kernels_of()
{
    bcast_sum_kernels kernels = {};
    using Item = typename ExactItemOf<dtype>::Type;
    if constexpr (is_read<Item>) {
        kernels = sums::kernels_of<f64>();      /* for kernels that subtract means */
        kernels.multiply = multiply_exactly;
        kernels.reduce_rows = sum_rows_exactly<Item>;
        kernels.reduce_runs = sum_runs_exactly<Item>;
        kernels.reduce_counted_runs = sum_counted_runs_exactly<Item>;
        kernels.combine = combine_exactly;
        kernels.fold = fold_by<ExactSum<double>, exact_at<double>, merged<double>, write_exact<double>>;
    }
    return kernels;
}

constexpr bcast_sum_kernels exact_kernels_by_dtype[] = {BCAST_DTYPES(BCAST_EXACT_KERNELS)};
