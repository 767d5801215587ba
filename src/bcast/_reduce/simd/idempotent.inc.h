/* The kernels of idempotent operations, as `idempotent.h` has them: templates over an operation of `operations.h`.
   `target.inc.h` includes this file for each target.

   All loops are plain. Where they have a constant number of lanes, or go along a row, compilers make vectors of
   them. */

template <class T>
BCAST_INLINE T read(const char *at)
{
    T value;
    memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
BCAST_INLINE void write(char *at, T value)
{
    memcpy(at, &value, sizeof value);
}

template <class Operation>
BCAST_INLINE typename Operation::Key item_at(const char *at)
{
    return Operation::of_item(read<typename Operation::Item>(at));
}

template <class Operation>
BCAST_INLINE typename Operation::Key accumulator_at(const char *at)
{
    return Operation::of_accumulator(read<typename Operation::Accumulator>(at));
}

template <class Operation>
BCAST_INLINE void write_at(char *at, typename Operation::Key key)
{
    write(at, Operation::to_accumulator(key));
}

/* Accumulator by accumulator: dst = both dst and src. */
template <class Operation>
void add_accumulators(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    constexpr ptrdiff_t size = sizeof(typename Operation::Item);
    char *to = dst->sum;
    const char *from = src->sum;

    for (ptrdiff_t at = 0; at < n * size; at += size)
        write_at<Operation>(
            to + at, Operation::both(accumulator_at<Operation>(to + at), accumulator_at<Operation>(from + at)));
}

/* Join `length` rows of few accumulators, `n`, in each group; results lie one behind the other then. */
template <class Operation>
void fold(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    constexpr ptrdiff_t size = sizeof(typename Operation::Item);
    char *dst = all->sum;
    const char *src = all->sum;

    for (ptrdiff_t group = 0; group < groups; group++, src += length * n * size)
        for (ptrdiff_t k = 0; k < n; k++, dst += size) {
            auto key = accumulator_at<Operation>(src + k * size);
            for (ptrdiff_t i = 1; i < length; i++)
                key = Operation::both(key, accumulator_at<Operation>(src + (i * n + k) * size));
            write_at<Operation>(dst, key);
        }
}

/* Join the items of each column of `rows` rows, and what is in `dst` before if it `adds`. */
template <class Operation, int rows>
BCAST_INLINE void join_columns(
    int adds, char *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src, ptrdiff_t stride, ptrdiff_t half_stride,
    ptrdiff_t width)
{
    constexpr ptrdiff_t size = sizeof(typename Operation::Item);

    for (ptrdiff_t at = 0; at < width * size; at += size) {
        auto key = item_at<Operation>(src + at);
        for (int i = 1; i < rows; i++)
            key = Operation::both(key, item_at<Operation>(src + at + i % 4 * stride + i / 4 * half_stride));
        if (adds) key = Operation::both(accumulator_at<Operation>(dst + at), key);
        write_at<Operation>(dst + at, key);
    }
}

template <class Operation>
int join_rows(const bcast_term_rows *all, const bcast_sink *dst)
{
    const bcast_term_rows rows = *all;
    int adds = dst->mode == BCAST_ADD;

    for (ptrdiff_t turn = 0; turn < rows.turns; turn++) {
        const char *src = rows.src + turn * rows.advance;
        ptrdiff_t row = 0;

        if (rows.rows == 8) {
            join_columns<Operation, 8>(adds, dst->sum, src, rows.stride, rows.half_stride, rows.width);
            row = 8;
            adds = 1;
        } else if (rows.rows >= 4) {
            join_columns<Operation, 4>(adds, dst->sum, src, rows.stride, rows.half_stride, rows.width);
            row = 4;
            adds = 1;
        }
        for (; row < rows.rows; row++) {
            const char *from = src + row % 4 * rows.stride + row / 4 * rows.half_stride;
            join_columns<Operation, 1>(adds, dst->sum, from, 0, 0, rows.width);
            adds = 1;
        }
    }
    return 0;
}

/* Join each of `count` runs of few items, which lie one behind the other. */
template <class Operation, int length>
BCAST_INLINE void join_dense_runs(char *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src, ptrdiff_t count)
{
    constexpr ptrdiff_t size = sizeof(typename Operation::Item);

    for (ptrdiff_t run = 0; run < count; run++) {
        auto key = item_at<Operation>(src + run * length * size);
        for (int i = 1; i < length; i++)
            key = Operation::both(key, item_at<Operation>(src + (run * length + i) * size));
        write_at<Operation>(dst + run * size, key);
    }
}

/* Join a run of at least `block` bytes to one key for each of four items. The last block is moved back to end with the
   run: it takes some items twice. */
template <class Operation, int block>
BCAST_INLINE void join_blocks(typename Operation::Key *keys, const char *src, ptrdiff_t nbytes)
{
    constexpr int size = sizeof(typename Operation::Item), lanes = block / size;
    typename Operation::Key all[lanes];

    for (int i = 0; i < lanes; i++) all[i] = item_at<Operation>(src + i * size);
    for (ptrdiff_t at = block; at < nbytes; at += block) {
        const char *from = src + (at <= nbytes - block ? at : nbytes - block);
        for (int i = 0; i < lanes; i++) all[i] = Operation::both(all[i], item_at<Operation>(from + i * size));
    }

    for (int width = lanes / 2; width >= 4; width /= 2)
        for (int i = 0; i < width; i++) all[i] = Operation::both(all[i], all[i + width]);
    for (int i = 0; i < 4; i++) keys[i] = all[i];
}

/* Join a run in which so many items take turns to one key for each of these. */
template <class Operation, int turns>
BCAST_INLINE void join_short_run(typename Operation::Key *keys, const char *src, ptrdiff_t nbytes)
{
    constexpr int size = sizeof(typename Operation::Item);

    for (int k = 0; k < turns; k++) keys[k] = item_at<Operation>(src + k * size);
    for (ptrdiff_t at = turns * size; at < nbytes; at += turns * size)
        for (int k = 0; k < turns; k++) keys[k] = Operation::both(keys[k], item_at<Operation>(src + at + k * size));
}

/* Join a run of any length. */
template <class Operation>
BCAST_INLINE void join_run(typename Operation::Key *keys, const char *src, ptrdiff_t nbytes, ptrdiff_t turns)
{
    if (nbytes < 32) {
        if (turns == 1) join_short_run<Operation, 1>(keys, src, nbytes);
        else if (turns == 2) join_short_run<Operation, 2>(keys, src, nbytes);
        else join_short_run<Operation, 4>(keys, src, nbytes);
        return;
    }
    if (nbytes >= 128) join_blocks<Operation, 128>(keys, src, nbytes);
    else join_blocks<Operation, 32>(keys, src, nbytes);

    if (turns <= 2) {
        keys[0] = Operation::both(keys[0], keys[2]);
        keys[1] = Operation::both(keys[1], keys[3]);
    }
    if (turns == 1) keys[0] = Operation::both(keys[0], keys[1]);
}

template <class Operation>
int join_runs(const bcast_term_runs *all, const bcast_sink *dst)
{
    constexpr ptrdiff_t size = sizeof(typename Operation::Item);
    const bcast_term_runs runs = *all;
    const ptrdiff_t nbytes = runs.length * size;
    const bool adds = dst->mode == BCAST_ADD;
    typename Operation::Key keys[4];
    char *to = dst->sum;

    if (runs.interleave == 1 && runs.stride == nbytes && !adds && 2 <= runs.length && runs.length <= 4) {
        if (runs.length == 2) join_dense_runs<Operation, 2>(to, runs.src, runs.count);
        else if (runs.length == 3) join_dense_runs<Operation, 3>(to, runs.src, runs.count);
        else join_dense_runs<Operation, 4>(to, runs.src, runs.count);
        return 0;
    }
    for (ptrdiff_t run = 0; run < runs.count; run++) {
        join_run<Operation>(keys, runs.src + run * runs.stride, nbytes, runs.interleave);
        for (ptrdiff_t k = 0; k < runs.interleave; k++, to += size)
            write_at<Operation>(to, adds ? Operation::both(accumulator_at<Operation>(to), keys[k]) : keys[k]);
    }
    return 0;
}

template <class Operation>
constexpr bcast_sum_kernels kernels_of()
{
    bcast_sum_kernels kernels = {};
    kernels.lanes = static_cast<int>(32 / sizeof(typename Operation::Item));
    kernels.reduce_rows = join_rows<Operation>;
    kernels.reduce_runs = join_runs<Operation>;
    kernels.combine = add_accumulators<Operation>;
    kernels.fold = fold<Operation>;
    return kernels;
}

/* The kernels of an operation for each dtype; and the operations, as `idempotent.h` numbers them. */
template <class Operations>
constexpr bcast_sum_kernels kernels_by_dtype[] = {BCAST_DTYPES(BCAST_IDEMPOTENT_KERNELS)};

constexpr const bcast_sum_kernels *kernels_by_operation[] = {
    kernels_by_dtype<Extremes<true>>,
    kernels_by_dtype<Extremes<false>>,
    kernels_by_dtype<Truths<false>>,
    kernels_by_dtype<Truths<true>>,
};
