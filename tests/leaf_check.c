/* Checks each kernel of `_copy/simd/kernels.h` that the machine has against loops over bytes, and prints the names of
   the targets checked:

       c++ -std=c++17 -O3 -c src/bcast/_copy/simd/kernels.cpp -o kernels.o
       cc -std=c11 -O2 -Isrc/bcast tests/leaf_check.c kernels.o -o leaf_check && ./leaf_check ROUNDS

   Tables are random, within the rules by which `_copy/plan.pyx` makes them. Buffers end, or begin, at pages that no one
   may touch; what must not be written is painted. */

#include "fenced.h"

#include <string.h>

#include "_copy/simd/kernels.h"
#include "_runtime/cpu.h"

static uint8_t *src_room, *dst_room, expected[ROOM];
static const bcast_copy_kernels *leaf;
static int target;
static bcast_shuffle_table table;

static void fail(const char *what, ptrdiff_t at)
{
    printf("%s: %s at byte %td of the output\n", bcast_target_names[target], what, at);
    exit(1);
}

/* Compare the first `right` bytes; those from there to `reach` may hold anything, and no others may be written. */
static void compare(const uint8_t *dst, ptrdiff_t right, ptrdiff_t reach)
{
    for (ptrdiff_t i = 0; i < ROOM; i++) {
        ptrdiff_t at = dst_room + i - dst;
        if (at >= 0 && at < right && dst[at] != expected[at]) fail("a wrong byte", at);
        if ((at < 0 || at >= reach) && dst_room[i] != PAINT) fail("a byte written outside", at);
    }
}

/* Lay an output of `size` bytes flush against one end of its room, and paint that. */
static uint8_t *painted(ptrdiff_t size)
{
    memset(dst_room, PAINT, ROOM);
    return laid(dst_room, size);
}

/* Vectors follow each other, each over what is not right at the end of the one before. The last one of an exact program
   is laid back to end with the span. */
static void make_program(void)
{
    int most = any(0, 1) ? 2 * BCAST_GROUP_VECTORS + 1 : BCAST_SPAN_BYTES / leaf->vector;
    int vectors = any(1, most), dense = any(0, 1), at = 0, last_right = leaf->vector;
    table.exact = any(0, 1);
    table.src_reach = 0;
    for (int i = 0; i < vectors; i++) {
        int right = dense ? leaf->vector : any(1, leaf->vector);
        if (table.exact && i == vectors - 1) {
            right = leaf->vector;
            if (i) at -= any(0, last_right - 1);
        }
        table.dst_at[i] = at;
        table.src_at[i] = any(0, any(0, 3) ? 40 : 1000);
        for (int j = 0; j < leaf->vector; j++)
            table.index[i * leaf->vector + j] = (uint8_t) any(0, BCAST_WINDOW_BYTES - 1);
        ptrdiff_t reach = table.src_at[i] + BCAST_WINDOW_BYTES;
        if (reach > table.src_reach) table.src_reach = reach;
        at += right;
        last_right = right;
    }
    table.vectors = vectors;
    table.dst_step = at;
    table.dst_reach = table.dst_at[vectors - 1] + leaf->vector;
    table.src_step = any(0, 3) ? any(0, (int) table.src_reach) : 0;
}

static void check_execute(void)
{
    make_program();
    int most = (int) ((ROOM - table.dst_reach) / table.dst_step);
    if (table.src_step && (ROOM - table.src_reach) / table.src_step < most)
        most = (int) ((ROOM - table.src_reach) / table.src_step);
    int times = any(0, 7) ? any(0, 1) ? any(0, 9) : any(0, most) : 1;
    int vectors = times == 1 ? any(1, table.vectors) : table.vectors;
    ptrdiff_t last = times ? (times - 1) * table.dst_step : 0;
    ptrdiff_t reach = times ? last + table.dst_at[vectors - 1] + leaf->vector : 0;
    const uint8_t *src = laid(src_room, times ? (times - 1) * table.src_step + table.src_reach : 0);
    uint8_t *dst = painted(reach);
    for (int t = 0; t < times; t++)
        for (int i = 0; i < vectors; i++)
            for (int j = 0; j < leaf->vector; j++)
                expected[t * table.dst_step + table.dst_at[i] + j] =
                    src[t * table.src_step + table.src_at[i] + table.index[i * leaf->vector + j]];
    leaf->execute(&table, vectors, times, src, dst);
    compare(dst, reach, reach);
}

/* Stores may pass the end of the runs by the windows that are written of each item, or by a vector; loads reach the end
   of the last item's window. */
static void check_repeat_counted(void)
{
    int n = any(0, 40), most = any(0, 1) ? any(0, 4) : any(0, 90);
    const bcast_rows items = {n, 1 << any(0, 4), any(1, BCAST_WINDOW_BYTES)};
    int64_t counts[40];
    ptrdiff_t written = 0, garbage = items.times * BCAST_WINDOW_BYTES;
    if (garbage < leaf->vector) garbage = leaf->vector;
    for (int i = 0; i < n; i++) counts[i] = any(0, most);
    const uint8_t *src = laid(src_room, n ? (n - 1) * items.size + BCAST_WINDOW_BYTES : 0);
    for (int i = 0; i < n; i++)
        for (int t = 0; t < counts[i]; t++, written += items.size)
            memcpy(expected + written, src + i * items.size, items.size);
    uint8_t *dst = painted(written + garbage);
    leaf->repeat_counted(&items, counts, src, dst);
    compare(dst, written, written + garbage);
}

/* Rows of items beyond a window: each so many times, or as often as its count says. */
static void check_repeat_rows(void)
{
    int counted = any(0, 1), n = any(0, counted ? 40 : 9), most = any(0, 9);
    int times = any(1, counted ? 6 : 20), size = any(BCAST_WINDOW_BYTES + counted, BCAST_ITEM_VECTORS * leaf->vector);
    const bcast_rows rows = {n, times, size};
    int64_t counts[40];
    ptrdiff_t written = 0, garbage = counted ? times * size : 0;
    for (int i = 0; i < n; i++) counts[i] = counted ? any(0, most) : times;
    const uint8_t *src = laid(src_room, n * size);
    for (int i = 0; i < n; i++)
        for (int t = 0; t < counts[i]; t++, written += size)
            memcpy(expected + written, src + i * size, size);
    uint8_t *dst = painted(written + garbage);
    leaf->repeat_rows(&rows, counted ? counts : NULL, src, dst);
    compare(dst, written, written + garbage);
}

static void check_copy_to_many(void)
{
    int row = BCAST_ITEM_VECTORS * leaf->vector, size = any(row, any(0, 1) ? row + 9 : 9000);
    int times = any(0, 12);
    int step = size + (any(0, 1) ? any(0, 9000) : 0);
    ptrdiff_t reach = times ? (ptrdiff_t) (times - 1) * step + size : 0;
    const uint8_t *src = laid(src_room, size);
    uint8_t *dst = painted(reach);
    memset(expected, PAINT, reach);
    for (int i = 0; i < times; i++) memcpy(expected + (ptrdiff_t) i * step, src, size);
    leaf->copy_to_many(times, step, size, src, dst);
    compare(dst, reach, reach);
}

static void check_tile(void)
{
    int block = 4 * leaf->vector + any(0, any(0, 1) ? 9 : 5000), size = 2 * block + any(0, 20000);
    uint8_t *dst = painted(size);
    for (int j = 0; j < size; j++) expected[j] = src_room[j % block];
    memcpy(dst, src_room, block);
    leaf->tile(block, size, dst);
    compare(dst, size, size);
}

static void check_fill(void)
{
    int size = 1 << any(0, 4), run = leaf->vector + any(0, 20 * leaf->vector / size) * size, n = any(0, 9);
    ptrdiff_t written = (ptrdiff_t) n * run;
    const uint8_t *src = laid(src_room, n ? (n - 1) * size + BCAST_WINDOW_BYTES : 0);
    uint8_t *dst = painted(written);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < run; j++) expected[i * run + j] = src[i * size + j % size];
    const bcast_rows rows = {n, run / size, size};
    leaf->fill(&rows, src, dst);
    compare(dst, written, written);
}

/* Lengths around those of squares, and where they end the few channels that have loops of their own. */
static int side(void)
{
    return any(0, 1) ? any(1, 5) : any(1, 70);
}

static void check_copy_matrix(void)
{
    const int sizes[] = {1, 2, 4, 8, 16, any(1, 40)}, size = sizes[any(0, 5)], m = side(), n = side();
    ptrdiff_t m_step = size, n_step = m * m_step + any(0, 1) * any(0, 20);
    ptrdiff_t dst_step = n * size + any(0, 1) * any(0, 20);
    if (dst_step < BCAST_PAGE / 2 && any(0, 3) == 0) dst_step = BCAST_PAGE / 2;     /* rows are written one by one */
    ptrdiff_t src_reach = (n - 1) * n_step + m * m_step, reach = (m - 1) * dst_step + n * size;
    const uint8_t *src = laid(src_room, src_reach);
    uint8_t *dst = painted(reach), *first = dst;
    if (any(0, 2) == 0) {      /* items may lie anyhow */
        m_step = any(0, 1) ? n * (ptrdiff_t) size : -n * (ptrdiff_t) size;
        n_step = size;
        src_reach = (ptrdiff_t) m * n * size;
        src = (uint8_t *) laid(src_room, src_reach) + (m_step < 0 ? (1 - m) * m_step : 0);
    } else if (any(0, 3) == 0) {
        src += (n - 1) * n_step;
        n_step = -n_step;
    }
    if (any(0, 3) == 0) {
        first += (m - 1) * dst_step;
        dst_step = -dst_step;
    }
    memset(expected, PAINT, reach);
    for (int j = 0; j < m; j++)
        for (int i = 0; i < n; i++)
            memcpy(expected + (first - dst) + j * dst_step + i * size, src + j * m_step + i * n_step, size);
    const bcast_matrix matrix = {m, n, size, m_step, n_step, dst_step};
    leaf->copy_matrix(&matrix, src, first);
    compare(dst, reach, reach);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    src_room = fenced_room();
    dst_room = fenced_room();
    for (int i = 0; i < ROOM; i++) src_room[i] = (uint8_t) any(0, 255);
    for (target = BCAST_TARGET_COUNT - 1; target >= 0; target--) {
        if (!bcast_has(target)) continue;
        leaf = &bcast_copy_kernels_of[target];
        for (int round = 0; round < rounds; round++) {
            check_execute();
            check_repeat_rows();
            check_repeat_counted();
            check_copy_to_many();
            check_tile();
            check_fill();
            check_copy_matrix();
        }
        puts(bcast_target_names[target]);
        fflush(stdout);  /* a crash tells which target it was */
    }
    return 0;
}
