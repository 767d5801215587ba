/* Shuffle tables, on one target: `execute` of `kernels.h`. `kernels.cpp` includes this file in the target's
   namespace. */

constexpr ptrdiff_t vector_bytes = sizeof(Bytes);

/* Vectors `first` to first + n of each of `times` spans. Their indices and places are in registers, so that no store
   waits for the load of its address. */
template <int n>
BCAST_INLINE void execute_group(
    const bcast_shuffle_table *table, int first, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t src_step = table->src_step, dst_step = table->dst_step;
    Bytes index[n];
    ptrdiff_t src_at[n], dst_at[n];

    for (int i = 0; i < n; i++) {
        index[i] = load_register(table->index + (first + i) * vector_bytes);
        src_at[i] = table->src_at[first + i];
        dst_at[i] = table->dst_at[first + i];
    }

    for (; times > 0; times--, src += src_step, dst += dst_step)
        for (int i = 0; i < n; i++) store_register(dst + dst_at[i], pick(src + src_at[i], index[i]));
}

/* All vectors of a span, then all of the next one. */
BCAST_INLINE void execute_spans(
    const bcast_shuffle_table *table, int vectors, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    for (; times > 0; times--, src += table->src_step, dst += table->dst_step)
        for (int i = 0; i < vectors; i++) {
            const Bytes index = load_register(table->index + i * vector_bytes);
            store_register(dst + table->dst_at[i], pick(src + table->src_at[i], index));
        }
}

/* Group by group, each in all of `times` spans. */
BCAST_INLINE void execute_groups(
    const bcast_shuffle_table *table, int vectors, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    int first = 0;
    for (; vectors - first >= BCAST_GROUP_VECTORS; first += BCAST_GROUP_VECTORS)
        execute_group<BCAST_GROUP_VECTORS>(table, first, times, src, dst);

    switch (vectors - first) {
    case 3: execute_group<3>(table, first, times, src, dst); break;
    case 2: execute_group<2>(table, first, times, src, dst); break;
    case 1: execute_group<1>(table, first, times, src, dst); break;
    }
}

/* Groups of vectors follow each other over a chunk of output that the first-level cache holds. */
BCAST_APART void execute_chunks(
    const bcast_shuffle_table *table, int vectors, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    while (times > 0) {
        const ptrdiff_t most = vectors <= BCAST_GROUP_VECTORS ? times : 1 + BCAST_L1 / 2 / table->dst_step;
        const ptrdiff_t n = times < most ? times : most;

        execute_groups(table, vectors, n, src, dst);
        times -= n;
        src += n * table->src_step;
        dst += n * table->dst_step;
    }
}

/* If the last vector passes the end of its span, where the next span's first vector goes, groups would be wrong: then
   vectors simply follow each other. A single span is executed here: small copies do not save the registers of loops. */
static void execute(const bcast_shuffle_table *table, int vectors, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    const bool may_be_grouped = vectors <= BCAST_GROUP_VECTORS || table->exact;

    if (times == 1 || !may_be_grouped) execute_spans(table, vectors, times, src, dst);
    else execute_chunks(table, vectors, times, src, dst);
}
