/* Checks each leaf of `_copy/simd/shuffle.h` and `_copy/simd/transpose.h` that the machine has against loops over bytes,
   and prints the names of those checked:

       leaf_check ROUNDS

   Programs are random, within the rules by which `_copy/plan.pyx` makes them. Buffers end, or begin, at pages that no one
   may touch; what must not be written is painted. */

#include "fenced.h"
#include "_copy/simd/shuffle.h"
#include "_copy/simd/transpose.h"

static uint8_t *data_room, *out_room, expected[ROOM];
static const bcast_copy_leaves *leaf;
static int target;
static bcast_program program;

static void fail(const char *what, ptrdiff_t at)
{
    printf("%s: %s at byte %td of the output\n", bcast_target_names[target], what, at);
    exit(1);
}

/* Compare the first `right` bytes; those from there to `reach` may hold anything, and no others may be written. */
static void compare(const uint8_t *out, ptrdiff_t right, ptrdiff_t reach)
{
    for (ptrdiff_t i = 0; i < ROOM; i++) {
        ptrdiff_t at = out_room + i - out;
        if (at >= 0 && at < right && out[at] != expected[at]) fail("a wrong byte", at);
        if ((at < 0 || at >= reach) && out_room[i] != PAINT) fail("a byte written outside", at);
    }
}

/* Vectors follow each other, each over what is not right at the end of the one before. The last one of an exact program
   is laid back to end with the span. */
static void make_program(void)
{
    int most = any(0, 1) ? 2 * BCAST_GROUP + 1 : BCAST_SPAN / leaf->vector;
    int vectors = any(1, most), dense = any(0, 1), at = 0, last_right = leaf->vector;
    program.exact = any(0, 1);
    program.data_reach = 0;
    for (int i = 0; i < vectors; i++) {
        int right = dense ? leaf->vector : any(1, leaf->vector);
        if (program.exact && i == vectors - 1) {
            right = leaf->vector;
            if (i) at -= any(0, last_right - 1);
        }
        program.out_at[i] = at;
        program.data_at[i] = any(0, any(0, 3) ? 40 : 1000);
        for (int j = 0; j < leaf->vector; j++) program.index[i * leaf->vector + j] = (uint8_t) any(0, BCAST_WINDOW - 1);
        ptrdiff_t reach = program.data_at[i] + BCAST_WINDOW;
        if (reach > program.data_reach) program.data_reach = reach;
        at += right;
        last_right = right;
    }
    program.vectors = vectors;
    program.out_step = at;
    program.out_reach = program.out_at[vectors - 1] + leaf->vector;
    program.data_step = any(0, 3) ? any(0, (int) program.data_reach) : 0;
}

static void check_execute(void)
{
    make_program();
    int most = (int) ((ROOM - program.out_reach) / program.out_step);
    if (program.data_step && (ROOM - program.data_reach) / program.data_step < most)
        most = (int) ((ROOM - program.data_reach) / program.data_step);
    int times = any(0, 7) ? any(0, 1) ? any(0, 9) : any(0, most) : 1;
    int vectors = times == 1 ? any(1, program.vectors) : program.vectors;
    ptrdiff_t last = times ? (times - 1) * program.out_step : 0;
    ptrdiff_t reach = times ? last + program.out_at[vectors - 1] + leaf->vector : 0;
    const uint8_t *data = laid(data_room, times ? (times - 1) * program.data_step + program.data_reach : 0);
    uint8_t *out = laid(out_room, reach);
    for (int t = 0; t < times; t++)
        for (int i = 0; i < vectors; i++)
            for (int j = 0; j < leaf->vector; j++)
                expected[t * program.out_step + program.out_at[i] + j] =
                    data[t * program.data_step + program.data_at[i] + program.index[i * leaf->vector + j]];
    memset(out_room, PAINT, ROOM);
    leaf->execute(&program, vectors, times, data, out);
    compare(out, reach, reach);
}

static void check_repeat_rows(void)
{
    int size = any(1, BCAST_PARTS * leaf->vector), times = any(1, 20), n = any(0, 9);
    ptrdiff_t reach = (ptrdiff_t) n * times * size;
    const uint8_t *data = laid(data_room, n * size);
    uint8_t *out = laid(out_room, reach);
    for (int i = 0; i < n; i++)
        for (int t = 0; t < times; t++) memcpy(expected + (i * times + t) * size, data + i * size, size);
    memset(out_room, PAINT, ROOM);
    const bcast_rows rows = {n, times, size};
    leaf->repeat_rows(&rows, data, out);
    compare(out, reach, reach);
}

/* Stores may pass the end of the runs by the windows that are written of each item, or by a vector; loads reach the end
   of the last item's window. */
static void check_repeat_counted(void)
{
    int n = any(0, 40), most = any(0, 1) ? any(0, 4) : any(0, 90);
    bcast_counted items = {any(1, BCAST_WINDOW), 1 << any(0, 4), {0}};
    int64_t counts[40];
    ptrdiff_t written = 0, garbage = items.windows * BCAST_WINDOW;
    if (garbage < leaf->vector) garbage = leaf->vector;
    for (int j = 0; j < BCAST_WIDEST; j++) items.index[j] = (uint8_t) (j % items.size);
    for (int i = 0; i < n; i++) counts[i] = any(0, most);
    const uint8_t *data = laid(data_room, n ? (n - 1) * items.size + BCAST_WINDOW : 0);
    for (int i = 0; i < n; i++)
        for (int t = 0; t < counts[i]; t++, written += items.size)
            memcpy(expected + written, data + i * items.size, items.size);
    uint8_t *out = laid(out_room, written + garbage);
    memset(out_room, PAINT, ROOM);
    leaf->repeat_counted(&items, counts, n, data, out);
    compare(out, written, written + garbage);
}

static void check_repeat_counted_rows(void)
{
    int n = any(0, 40), most = any(0, 9);
    const bcast_rows rows = {n, any(1, 6), any(BCAST_WINDOW + 1, BCAST_PARTS * leaf->vector)};
    int64_t counts[40];
    ptrdiff_t written = 0, garbage = rows.times * rows.size;
    for (int i = 0; i < n; i++) counts[i] = any(0, most);
    const uint8_t *data = laid(data_room, n * rows.size);
    for (int i = 0; i < n; i++)
        for (int t = 0; t < counts[i]; t++, written += rows.size)
            memcpy(expected + written, data + i * rows.size, rows.size);
    uint8_t *out = laid(out_room, written + garbage);
    memset(out_room, PAINT, ROOM);
    leaf->repeat_counted_rows(&rows, counts, data, out);
    compare(out, written, written + garbage);
}

static void check_copy_to_many(void)
{
    int row = BCAST_PARTS * leaf->vector, size = any(row, any(0, 1) ? row + 9 : 9000), times = any(0, 3 * BCAST_PLACES);
    int step = size + (any(0, 1) ? any(0, 9000) : 0);
    ptrdiff_t reach = times ? (ptrdiff_t) (times - 1) * step + size : 0;
    const uint8_t *data = laid(data_room, size);
    uint8_t *out = laid(out_room, reach);
    memset(out_room, PAINT, ROOM);
    memset(expected, PAINT, reach);
    for (int i = 0; i < times; i++) memcpy(expected + (ptrdiff_t) i * step, data, size);
    leaf->copy_to_many(times, step, size, data, out);
    compare(out, reach, reach);
}

static void check_tile(void)
{
    int block = 4 * leaf->vector + any(0, any(0, 1) ? 9 : 5000), size = 2 * block + any(0, 20000);
    uint8_t *out = laid(out_room, size);
    for (int j = 0; j < size; j++) expected[j] = data_room[j % block];
    memset(out_room, PAINT, ROOM);
    memcpy(out, data_room, block);
    leaf->tile(block, size, out);
    compare(out, size, size);
}

static void check_fill(void)
{
    int size = 1 << any(0, 4), run = leaf->vector + any(0, 20 * leaf->vector / size) * size, n = any(0, 9);
    ptrdiff_t written = (ptrdiff_t) n * run;
    const uint8_t *data = laid(data_room, n ? (n - 1) * size + BCAST_WINDOW : 0);
    uint8_t *out = laid(out_room, written);
    for (int j = 0; j < leaf->vector; j++) program.index[j] = (uint8_t) (j & (size - 1));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < run; j++) expected[i * run + j] = data[i * size + j % size];
    memset(out_room, PAINT, ROOM);
    const bcast_rows rows = {n, run / size, size};
    leaf->fill(&program, &rows, data, out);
    compare(out, written, written);
}

/* Lengths around those of squares, and where they end the few channels that have loops of their own. */
static int side(void)
{
    return any(0, 1) ? any(1, 5) : any(1, 70);
}

static void check_copy_matrix(void)
{
    const int sizes[] = {1, 2, 4, 8, 16, any(1, 40)}, size = sizes[any(0, 5)], m = side(), n = side();
    const bcast_copy_matrix copy = any(0, 2) ? bcast_transpose_of[target] : bcast_strided_copy;
    ptrdiff_t m_step = size, n_step = m * m_step + any(0, 1) * any(0, 20);
    ptrdiff_t out_step = n * size + any(0, 1) * any(0, 20);
    ptrdiff_t data_reach = (n - 1) * n_step + m * m_step, reach = (m - 1) * out_step + n * size;
    const uint8_t *data = laid(data_room, data_reach);
    uint8_t *out = laid(out_room, reach), *first = out;
    if (copy == bcast_strided_copy && any(0, 1)) {     /* then items may lie anyhow */
        m_step = any(0, 1) ? n * (ptrdiff_t) size : -n * (ptrdiff_t) size;
        n_step = size;
        data_reach = (ptrdiff_t) m * n * size;
        data = (uint8_t *) laid(data_room, data_reach) + (m_step < 0 ? (1 - m) * m_step : 0);
    } else if (any(0, 3) == 0) {
        data += (n - 1) * n_step;
        n_step = -n_step;
    }
    if (any(0, 3) == 0) {
        first += (m - 1) * out_step;
        out_step = -out_step;
    }
    memset(expected, PAINT, reach);
    for (int j = 0; j < m; j++)
        for (int i = 0; i < n; i++)
            memcpy(expected + (first - out) + j * out_step + i * size, data + j * m_step + i * n_step, size);
    memset(out_room, PAINT, ROOM);
    const bcast_matrix matrix = {m, n, size, m_step, n_step, out_step};
    copy(&matrix, data, first);
    compare(out, reach, reach);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    data_room = fenced_room();
    out_room = fenced_room();
    for (int i = 0; i < ROOM; i++) data_room[i] = (uint8_t) any(0, 255);
    for (target = BCAST_TARGET_COUNT - 1; target >= 0; target--) {
        if (!bcast_has(target)) continue;
        leaf = &bcast_leaves_of[target];
        for (int round = 0; round < rounds; round++) {
            check_execute();
            check_repeat_rows();
            check_repeat_counted();
            check_repeat_counted_rows();
            check_copy_to_many();
            check_tile();
            check_fill();
            check_copy_matrix();
        }
        puts(bcast_target_names[target]);
    }
    return 0;
}
