/* The kernels of rows for the operations of `combine.h`: up to eight rows at once are combined with a row of
   accumulators, column by column. Narrow rows stay in registers. `keys.inc.h` has the vectors. */

/* The beginning of row number `i` of a turn. */
BCAST_INLINE const char *row_at(const char *src, ptrdiff_t i, ptrdiff_t stride, ptrdiff_t half_stride)
{
    return src + i % 4 * stride + i / 4 * half_stride;
}

/* The key of a column of `count` rows. */
template <class Operation, int count>
BCAST_INLINE auto column_at(const char *src, ptrdiff_t stride, ptrdiff_t half_stride)
{
    auto key = item_at<Operation>(src);
    for (int i = 1; i < count; i++)
        key = Operation::both(key, item_at<Operation>(row_at(src, i, stride, half_stride)));
    return key;
}

/* Combine the items of each column of `count` rows, and if `adds`, the accumulators in `dst`. Pointers come one by one,
   so that compilers know that they do not overlap. */
template <class Operation, int count, bool as_items>
BCAST_INLINE void combine_columns(
    int adds, char *BCAST_RESTRICT dst, char *BCAST_RESTRICT second, const char *BCAST_RESTRICT src, ptrdiff_t stride,
    ptrdiff_t half_stride, ptrdiff_t width)
{
    const bcast_sink sink = {BCAST_SET, dst, second};
    for (ptrdiff_t column = 0; column < width; column++) {
        auto key = column_at<Operation, count>(src + column * item_bytes<Operation>, stride, half_stride);
        if (adds) key = Operation::both(accumulator_at<Operation>(&sink, column * accumulator_bytes<Operation>), key);
        put_key<Operation, as_items>(dst, second, column, key);
    }
}

#if BCAST_VECTORS

/* The same for a vector of columns, which begins at byte `at` of the row. */
template <class Operation, int count>
BCAST_INLINE void combine_vector_of_columns(
    int adds, const bcast_sink *dst, const char *src, ptrdiff_t stride, ptrdiff_t half_stride, ptrdiff_t at)
{
    using Keys = Long<Operation>;
    auto keys = keys_at<Operation, Keys>(src + at);

    for (int i = 1; i < count; i++)
        keys = both<Operation>(keys, keys_at<Operation, Keys>(row_at(src, i, stride, half_stride) + at));
    if (adds) keys = both<Operation>(accumulators_at<Operation, Keys>(dst, at), keys);
    write_keys<Operation>(dst, at, keys);
}

/* The same for all columns of rows that fill a vector. The last vector may include columns whose accumulators are
   complete: it combines these with the same terms once more. */
template <class Operation, int count>
BCAST_INLINE void combine_vectors_of_columns(
    int adds, const bcast_sink *dst, const char *src, ptrdiff_t stride, ptrdiff_t half_stride, ptrdiff_t width)
{
    constexpr ptrdiff_t step = bytes_of<Long<Operation>>;
    const ptrdiff_t nbytes = width * item_bytes<Operation>, last = nbytes - step;

    for (ptrdiff_t at = 0; at < nbytes; at += step)
        combine_vector_of_columns<Operation, count>(adds, dst, src, stride, half_stride, at < last ? at : last);
}

#endif

template <class Operation, int count>
BCAST_INLINE void combine_some_rows(const bcast_sink *dst, const char *src, const bcast_term_rows *rows)
{
    const int adds = dst->mode == BCAST_ADD;
#if BCAST_VECTORS
    if constexpr (goes_by_vectors<Operation>) {
        combine_vectors_of_columns<Operation, count>(adds, dst, src, rows->stride, rows->half_stride, rows->width);
        return;
    }
#endif
    if (narrows<Operation>(dst->mode))
        combine_columns<Operation, count, true>(
            0, dst->sum, dst->error, src, rows->stride, rows->half_stride, rows->width);
    else
        combine_columns<Operation, count, false>(
            adds, dst->sum, dst->error, src, rows->stride, rows->half_stride, rows->width);
}

/* Combine the rows of a turn: eight at once, or four and then up to three. */
template <class Operation>
BCAST_INLINE void combine_turn(bcast_sink dst, const char *src, const bcast_term_rows *rows)
{
    if (rows->rows == 8) {
        combine_some_rows<Operation, 8>(&dst, src, rows);
        return;
    }
    if (rows->rows >= 4) {
        combine_some_rows<Operation, 4>(&dst, src, rows);
        src = row_at(src, 4, rows->stride, rows->half_stride);
        dst.mode = BCAST_ADD;
    }
    if (rows->rows % 4 == 1) combine_some_rows<Operation, 1>(&dst, src, rows);
    else if (rows->rows % 4 == 2) combine_some_rows<Operation, 2>(&dst, src, rows);
    else if (rows->rows % 4 == 3) combine_some_rows<Operation, 3>(&dst, src, rows);
}

#if BCAST_VECTORS

/* ---- Rows of less than a vector: keys stay in registers from row to row ---- */

/* The keys of a row of up to 31 bytes, or of its accumulators. Usually, some of them are repeated. */
template <class Operation>
struct NarrowRow {
    Short<Operation> first, last;       /* rows of less than 16 bytes use only `first` */
};

/* A row of less than 16 bytes, as two words: one lane has its first bytes in the low bits, the other its last bytes.
   The words overlap, unless the row is exactly two words long. */
template <class Word>
BCAST_INLINE Vector<uint64_t, 2> words_at(const char *src, ptrdiff_t nbytes)
{
    return Vector<uint64_t, 2>{read<Word>(src), read<Word>(src + nbytes - sizeof(Word))};
}

BCAST_INLINE Vector<uint64_t, 2> both_ends(const char *src, ptrdiff_t nbytes)
{
    if (nbytes >= 8) return words_at<uint64_t>(src, nbytes);
    if (nbytes >= 4) return words_at<uint32_t>(src, nbytes);
    if (nbytes >= 2) return words_at<uint16_t>(src, nbytes);
    return words_at<uint8_t>(src, nbytes);
}

template <class Word>
BCAST_INLINE void write_words(char *dst, Vector<uint64_t, 2> words, ptrdiff_t nbytes)
{
    write<Word>(dst, static_cast<Word>(words[0]));
    write<Word>(dst + nbytes - sizeof(Word), static_cast<Word>(words[1]));
}

template <class Operation>
BCAST_INLINE NarrowRow<Operation> narrow_row_at(const char *src, ptrdiff_t nbytes)
{
    using Keys = Short<Operation>;
    if (nbytes >= 16) return {keys_at<Operation, Keys>(src), keys_at<Operation, Keys>(src + nbytes - 16)};
    const Keys keys = Operation::of_item(bits_as<ShortItems<Operation>>(both_ends(src, nbytes)));
    return {keys, keys};
}

template <class Operation>
BCAST_INLINE NarrowRow<Operation> narrow_accumulators_at(const bcast_sink *from, ptrdiff_t nbytes)
{
    using Keys = Short<Operation>;
    using Items = ShortItems<Operation>;

    if (nbytes >= 16)
        return {accumulators_at<Operation, Keys>(from, 0), accumulators_at<Operation, Keys>(from, nbytes - 16)};
    const auto first = bits_as<Items>(both_ends(from->sum, nbytes));
    if constexpr (Operation::is_pair) {
        const Keys keys = Operation::of_accumulators(first, bits_as<Items>(both_ends(from->error, nbytes)));
        return {keys, keys};
    } else {
        const Keys keys = Operation::of_accumulator(first);
        return {keys, keys};
    }
}

/* Write the ends of a row of less than 16 bytes. */
template <class V>
BCAST_INLINE void write_both_ends(char *dst, V row, ptrdiff_t nbytes)
{
    const auto ends = bits_as<Vector<uint64_t, 2>>(row);
    if (nbytes >= 8) write_words<uint64_t>(dst, ends, nbytes);
    else if (nbytes >= 4) write_words<uint32_t>(dst, ends, nbytes);
    else if (nbytes >= 2) write_words<uint16_t>(dst, ends, nbytes);
    else write_words<uint8_t>(dst, ends, nbytes);
}

template <class Operation>
BCAST_INLINE void write_narrow_row(const bcast_sink *dst, NarrowRow<Operation> row, ptrdiff_t nbytes)
{
    if (nbytes >= 16) {
        write_keys<Operation>(dst, 0, row.first);
        write_keys<Operation>(dst, nbytes - 16, row.last);
    } else if constexpr (Operation::is_pair) {
        write_both_ends(dst->sum, Operation::First::to_accumulator(row.first.first), nbytes);
        write_both_ends(dst->error, Operation::Second::to_accumulator(row.first.second), nbytes);
    } else {
        write_both_ends(dst->sum, Operation::to_accumulator(row.first), nbytes);
    }
}

template <class Operation>
BCAST_INLINE NarrowRow<Operation> both_rows(NarrowRow<Operation> a, NarrowRow<Operation> b)
{
    return {Operation::both(a.first, b.first), Operation::both(a.last, b.last)};
}

template <class Operation>
BCAST_INLINE void combine_narrow_rows(const bcast_term_rows *rows, const bcast_sink *dst)
{
    const ptrdiff_t nbytes = rows->width * item_bytes<Operation>;
    auto keys = narrow_row_at<Operation>(rows->src, nbytes);

    for (ptrdiff_t turn = 0; turn < rows->turns; turn++) {
        const char *src = rows->src + turn * rows->advance;
        for (ptrdiff_t row = 0; row < rows->rows; row++) {
            const char *from = row_at(src, row, rows->stride, rows->half_stride);
            keys = both_rows<Operation>(keys, narrow_row_at<Operation>(from, nbytes));
        }
    }
    if (dst->mode == BCAST_ADD)
        keys = both_rows<Operation>(narrow_accumulators_at<Operation>(dst, nbytes), keys);
    write_narrow_row<Operation>(dst, keys, nbytes);
}

#endif

template <class Operation>
int combine_rows(const bcast_term_rows *all, const bcast_sink *sink)
{
    const bcast_term_rows rows = *all;
    bcast_sink dst = *sink;

#if BCAST_VECTORS
    if constexpr (goes_by_vectors<Operation>) {
        if (rows.width * item_bytes<Operation> < 32) {
            combine_narrow_rows<Operation>(&rows, &dst);
            return 0;
        }
    }
#endif
    if (narrows<Operation>(dst.mode) && 4 < rows.rows && rows.rows < 8) return 1;     /* these need two steps */
    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, dst.mode = BCAST_ADD)
        combine_turn<Operation>(dst, rows.src + turn * rows.advance, &rows);
    return 0;
}
