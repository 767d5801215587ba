/* Checks the kernels of sums for each target that the machine has against plain loops, and prints the names of the
   targets:

       cc -std=c++17 -O1 -c src/bcast/_reduce/simd/kernels.cpp
       cc -std=c11 -Isrc/bcast tests/sum_check.c kernels.o -lm -o sum_check && ./sum_check ROUNDS

   It is linked as C, so that the kernels need nothing of the C++ library.

   Terms end, or begin, at pages that no one may touch, as do sums; what must not be written is painted. Terms are small
   integers, of which sums in any order are exact. Then sums of any values must have the same bits from all targets. */

#include "fenced.h"
#include "_reduce/simd/dtypes.h"
#include "_reduce/simd/kernels.h"
#include "_runtime/cpu.h"

enum { MOST = 1 << 12 };

static const bcast_sum_target *target;
static char *term_room, *sum_room, *error_room;
static int kind, sum_size, exact;
static const char *name;
static double expected[MOST], lost;
static uint64_t expected_integers[MOST];
#define KIND_SIZE(kind, Bits, ...) sizeof(Bits),
static const int term_sizes[] = {BCAST_NARROW_KINDS(KIND_SIZE) BCAST_SUM_KINDS(KIND_SIZE)};

#define KIND_LANES(kind, Bits, Wide, Acc, lanes, ...) lanes,
#define NARROW_LANES(kind, Bits, ...) 32 / sizeof(Bits),
static const int lanes[] = {BCAST_NARROW_KINDS(NARROW_LANES) BCAST_SUM_KINDS(KIND_LANES)};

/* The dtype that stands for the bits of so many bytes. */
static int of_size(int size)
{
    return size == 1 ? BCAST_UINT8 : size == 2 ? BCAST_UINT16 : size == 4 ? BCAST_UINT32 : BCAST_UINT64;
}

static void fail(const char *what, long at)
{
    printf("%s, kind %d: %s at %ld\n", name, kind, what, at);
    exit(1);
}

static int is_float(void) { return kind >= BCAST_KIND_f16; }
static int is_narrow(void) { return kind < BCAST_KIND_u32; }

static uint64_t bits_of_term(double value)
{
    switch (kind) {
    case BCAST_KIND_f16: return bcast_narrowed(value, 10);
    case BCAST_KIND_bf16: return bcast_narrowed(value, 7);
    case BCAST_KIND_f32: return bcast_f32_bits_of(value);
    default: return bcast_f64_bits_of(value);
    }
}

static double term_at(const char *at)
{
    const uint64_t bits = bcast_read(of_size(term_sizes[kind]), 0, at);
    switch (kind) {
    case BCAST_KIND_f16: return bcast_f16_of((uint16_t) bits);
    case BCAST_KIND_bf16: return bcast_bf16_of((uint16_t) bits);
    case BCAST_KIND_f32: return bcast_f32_of((uint32_t) bits);
    default: return bcast_f64_of(bits);
    }
}

/* Exact: integers of few bits; else of any size, so that each order of additions rounds to other bits. */
static void fill_terms(void)
{
    for (ptrdiff_t i = 0; i < ROOM; i += term_sizes[kind]) {
        double value = any(-15, 15);
        const double scale = kind == BCAST_KIND_f16 ? any(1, 64) : bcast_f64_of((uint64_t) any(1010, 1030) << 52);
        const uint64_t integer = (uint64_t) any(0, 1 << 30) * 77;
        if (!exact) value = value / 7 * scale;
        bcast_write(of_size(term_sizes[kind]), 0, term_room + i, is_float() ? bits_of_term(value) : integer);
    }
}

static void clear_expected(int n)
{
    memset(expected, 0, n * sizeof expected[0]);
    memset(expected_integers, 0, n * sizeof expected_integers[0]);
}

static void expect(int i, const char *at)
{
    if (is_float()) expected[i] += term_at(at);
    else expected_integers[i] += bcast_read(of_size(term_sizes[kind]), 0, at);
}

/* A sink for `n` sums, flush against fences; accumulators hold what is added to, if anything is. */
static bcast_sink sink_of(int mode, int n)
{
    const int size = mode == BCAST_WRITE ? term_sizes[kind] : sum_size;
    bcast_sink to = {mode, laid(sum_room, n * size), laid(error_room, n * size), &lost};
    lost = 0;
    memset(sum_room, PAINT, ROOM);
    memset(error_room, PAINT, ROOM);
    clear_expected(n);
    for (int i = 0; mode == BCAST_ADD && i < n; i++) {
        const int before = any(0, 50);
        expected[i] = before;
        expected_integers[i] = before;
        bcast_write(of_size(size), 0, to.sum + i * size, is_float() ? bcast_f64_bits_of(before) : (uint64_t) before);
        if (kind == BCAST_KIND_f64) bcast_write(of_size(size), 0, to.error + i * size, 0);
    }
    return to;
}

/* Compare `n` sums with what is expected, and look for paint around them. */
static void compare(const bcast_sink *to, int n)
{
    const int size = to->mode == BCAST_WRITE ? term_sizes[kind] : sum_size;
    for (ptrdiff_t i = 0; i < ROOM; i++) {
        const ptrdiff_t at = sum_room + i - to->sum, error_at = error_room + i - to->error;
        if ((at < 0 || at >= (ptrdiff_t) n * size) && (uint8_t) sum_room[i] != PAINT)
            fail("a byte written outside", at);
        if ((kind != BCAST_KIND_f64 || to->mode == BCAST_WRITE || error_at < 0 || error_at >= (ptrdiff_t) n * size)
            && (uint8_t) error_room[i] != PAINT)
            fail("an error term written outside", error_at);
    }
    for (int i = 0; exact && i < n; i++) {
        const uint64_t bits = bcast_read(of_size(size), 0, to->sum + i * size);
        if (!is_float()) {
            if (bits != (size == 8 ? expected_integers[i] : expected_integers[i] & (((uint64_t) 1 << 8 * size) - 1)))
                fail("a wrong sum", i);
        } else if (to->mode == BCAST_WRITE ? bits != bits_of_term(expected[i]) : bcast_f64_of(bits) != expected[i]) {
            fail("a wrong sum", i);
        }
        if (kind == BCAST_KIND_f64 && to->mode != BCAST_WRITE
            && bcast_f64_of(bcast_read(BCAST_UINT64, 0, to->error + i * 8)) != 0)
            fail("a wrong error term", i);
    }
}

/* Let sums that are not written have the value of all, rounded, and error terms the rest, which grids leave open. */
static void normalize(int mode, char *sums, char *errors, int n)
{
    for (int i = 0; kind == BCAST_KIND_f64 && mode != BCAST_WRITE && i < n; i++) {
        double sum, error, rest = 0;
        memcpy(&sum, sums + 8 * i, 8);
        memcpy(&error, errors + 8 * i, 8);
        bcast_two_sum(&sum, &rest, error);
        memcpy(sums + 8 * i, &sum, 8);
        memcpy(errors + 8 * i, &rest, 8);
    }
}

/* Have the plain target sum the same, and compare all bits. */
static void compare_with_plain(
    const bcast_term_rows *rows, const bcast_term_runs *runs, const bcast_counted_runs *counted, bcast_sink to, int n)
{
    static char sums[ROOM], errors[ROOM];
    const int size = to.mode == BCAST_WRITE ? term_sizes[kind] : sum_size;
    const bcast_sum_target *plain = bcast_sum_target_of(BCAST_TARGET_plain);
    double more_lost = 0;
    const bcast_sink again = {to.mode, sums, errors, &more_lost};
    if (plain == target || to.mode == BCAST_ADD) return;
    if (rows) plain->kernels[kind].reduce_rows(rows, &again);
    else if (runs) plain->kernels[kind].reduce_runs(runs, &again);
    else plain->kernels[kind].reduce_counted_runs(counted, &again);
    normalize(to.mode, sums, errors, n);
    normalize(to.mode, to.sum, to.error, n);
    if (lost != 0 || more_lost != 0) fail("something lost", 0);
    if (memcmp(sums, to.sum, n * size)) fail("other bits than the plain target's", 0);
    if (kind == BCAST_KIND_f64 && to.mode != BCAST_WRITE && memcmp(errors, to.error, n * size))
        fail("other error terms than the plain target's", 0);
}

static void check_rows(void)
{
    const int size = term_sizes[kind], mode = any(0, 2), n = any(1, 8), turns = mode == BCAST_WRITE ? 1 : any(1, 4);
    const int width = any(1, any(0, 1) ? 40 : 300);
    const ptrdiff_t stride = (width + any(0, 3)) * size, fifth = any(0, 1) ? 4 * stride : stride * any(4, 9);
    const ptrdiff_t last = (n - 1) % 4 * stride + (n - 1) / 4 * fifth, fourth = n > 4 ? 3 * stride : last;
    const ptrdiff_t advance = any(0, 9) * stride;
    const char *x = laid(term_room, (turns - 1) * advance + (last > fourth ? last : fourth) + width * size);
    const bcast_term_rows rows = {x, turns, advance, n, stride, fifth, width};
    bcast_sink to = sink_of(mode, width);
    for (int t = 0; t < turns; t++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < width; j++)
                expect(j, x + t * advance + i % 4 * stride + i / 4 * fifth + j * size);
    if (target->kernels[kind].reduce_rows(&rows, &to)) {
        if (is_narrow() || (BCAST_VECTORS && width >= lanes[kind])) fail("rows that could not be written", width);
        return;
    }
    compare(&to, width);
    compare_with_plain(&rows, NULL, NULL, to, width);
}

static void check_runs(void)
{
    const bcast_sum_kernels *kernels = &target->kernels[kind];
    const int size = term_sizes[kind], mode = any(0, 2), m = 1 << any(0, 2), shape = any(0, 9);
    int length = m * any(1, shape < 5 ? 40 : shape < 9 ? 100 : 5000 / m), count = any(1, shape < 9 ? 50 : 5);
    ptrdiff_t stride = (length + (any(0, 1) ? 0 : any(1, 9))) * size;
    const char *x;
    if (any(0, 15) == 0) stride = 0;
    x = laid(term_room, (count - 1) * stride + length * size);
    const bcast_term_runs runs = {x, count, stride, length, m};
    bcast_sink to = sink_of(mode, count * m);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < length; j++) expect(i * m + j % m, x + i * stride + j * size);
    if (kernels->reduce_runs(&runs, &to)) {
        if (is_narrow() || BCAST_VECTORS) fail("runs that could not be written", length);
        return;
    }
    compare(&to, count * m);
    compare_with_plain(NULL, &runs, NULL, to, count * m);
}

/* Each run has the same bits wherever it stands: by itself, too. */
static void check_counted_runs(void)
{
    const bcast_sum_kernels *kernels = &target->kernels[kind];
    const int size = term_sizes[kind], mode = any(0, 1) ? BCAST_SET : BCAST_WRITE;
    const int m = any(1, lanes[kind] > 4 ? lanes[kind] - 1 : 4), count = any(1, 40), most = any(0, any(0, 3) ? 12 : 60);
    const int result_size = mode == BCAST_WRITE ? size : sum_size;
    static char sums[16 * 8], errors[16 * 8];
    const bcast_sink alone = {mode, sums, errors, &lost};
    int64_t counts[40];
    ptrdiff_t total = 0, at = 0;
    for (int i = 0; i < count; i++) total += counts[i] = any(0, 19) ? any(0, most) : any(0, 2000 / m);
    if (total * m * size > ROOM) return;
    const char *x = laid(term_room, total * m * size);
    const bcast_counted_runs runs = {x, x + total * m * size, counts, count, m};
    bcast_sink to = sink_of(mode, count * m);
    for (int i = 0; i < count; i++)
        for (int64_t j = 0; j < counts[i]; j++, at += m)
            for (int k = 0; k < m; k++) expect(i * m + k, x + (at + k) * size);
    if (kernels->reduce_counted_runs(&runs, &to)) {
        if (BCAST_VECTORS) fail("runs of counts that could not be written", m);
        return;
    }
    compare(&to, count * m);
    compare_with_plain(NULL, NULL, &runs, to, count * m);
    normalize(mode, to.sum, to.error, count * m);
    for (int i = 0; i < count; x += counts[i++] * m * size) {
        const bcast_counted_runs one = {x, x + counts[i] * m * size, counts + i, 1, m};
        kernels->reduce_counted_runs(&one, &alone);
        normalize(mode, sums, errors, m);
        if (memcmp(sums, to.sum + i * m * result_size, m * result_size)) fail("other bits than alone", i);
    }
}

static void check_accumulators(void)
{
    const int n = any(1, 100);
    bcast_sink to = sink_of(BCAST_ADD, n), more = to;
    char *sums = malloc(n * sum_size), *errors = calloc(n, sum_size);
    memcpy(sums, to.sum, n * sum_size);
    more.sum = sums;
    more.error = errors;
    for (int i = 0; i < n; i++) {
        expected[i] *= 2;
        expected_integers[i] *= 2;
    }
    target->kernels[kind].combine(&to, &more, n);
    if (exact) compare(&to, n);
    free(sums);
    free(errors);
}

/* Groups of short rows become a row each, one behind the other. */
static void check_fold(void)
{
    const int groups = any(1, 9), length = any(1, 12), n = any(1, 9), count = groups * length * n;
    const bcast_sink all = sink_of(BCAST_ADD, count);
    double *sums = calloc(count, sizeof *sums);
    uint64_t *integers = calloc(count, sizeof *integers);
    for (int i = 0; i < count; i++) {
        const int to = i / (length * n) * n + i % n;
        sums[to] += expected[i];
        integers[to] += expected_integers[i];
    }
    target->kernels[kind].fold(&all, groups, length, n);
    memcpy(expected, sums, groups * n * sizeof *sums);
    memcpy(expected_integers, integers, groups * n * sizeof *integers);
    const ptrdiff_t left = (ptrdiff_t) (count - groups * n) * sum_size;     /* what is left behind the sums */
    memset(all.sum + groups * n * sum_size, PAINT, left);
    if (kind == BCAST_KIND_f64) memset(all.error + groups * n * sum_size, PAINT, left);
    compare(&all, groups * n);
    free(sums);
    free(integers);
}

/* An infinite sum or NaN is told of, wherever it is; others are not. */
static void check_special(void)
{
    const bcast_sum_kernels *kernels = &target->kernels[BCAST_KIND_f64];
    const int count = any(1, 30), length = any(1, 16), bad = any(-1, count - 1);
    const ptrdiff_t size = (ptrdiff_t) count * length * 8;
    char *x = laid(term_room, size);
    const bcast_term_runs runs = {x, count, length * 8, length, 1};
    const bcast_term_rows rows = {x, 1, 0, 2, 0, 0, size / 8};
    int64_t counts[30];
    const bcast_counted_runs counted = {x, x + size, counts, count, 1};
    double sums[30], errors[30] = {0};
    bcast_sink to;
    if (!BCAST_VECTORS) return;
    if (bad >= 0) bcast_write(BCAST_UINT64, 0, x + bad * length * 8, (uint64_t) any(0x7ff0, 0x7ff1) << 48);
    to = sink_of(BCAST_WRITE, count);
    if (kernels->reduce_runs(&runs, &to) != (bad >= 0)) fail("special runs", bad);
    to = sink_of(BCAST_WRITE, (int) size / 8);
    for (int i = 0; i < count; i++) counts[i] = length;
    if (kernels->reduce_counted_runs(&counted, &to) != (bad >= 0)) fail("special runs of counts", bad);
    to = sink_of(BCAST_WRITE, (int) size / 8);
    if (kernels->reduce_rows(&rows, &to) != (bad >= 0 || size / 8 < lanes[BCAST_KIND_f64])) fail("special rows", bad);
    for (int i = 0; i < count; i++) sums[i] = i == bad ? bcast_f64_of((uint64_t) 0xfff0 << 48) : i;
    if (target->add_errors(sums, errors, count) != (bad >= 0)) fail("special accumulators", bad);
    if (bad >= 0) bcast_write(BCAST_UINT64, 0, x + bad * length * 8, 0);
}

/* What error terms lose is told of, wherever it is: of 1, 2^-60 and 2^-120, of which the last is in no double. */
static void check_lost(void)
{
    static const uint64_t bits[] = {(uint64_t) 1023 << 52, (uint64_t) 963 << 52, (uint64_t) 903 << 52};
    const bcast_sum_kernels *kernels = &target->kernels[BCAST_KIND_f64];
    const int count = any(1, 30), length = any(3, 600 / count + 3), bad = any(-1, count - 1), mode = any(0, 2);
    const ptrdiff_t size = (ptrdiff_t) count * length * 8;
    char *x = laid(term_room, size), *first = x + bad * length * 8;
    const bcast_term_runs runs = {x, count, length * 8, length, 1};
    int64_t counts[30];
    const bcast_counted_runs counted = {x, x + size, counts, count, 1};
    const int is_written = mode == BCAST_WRITE;
    bcast_sink to;
    if (!BCAST_VECTORS) return;
    memset(x, 0, size);
    for (int i = 0; bad >= 0 && i < 3; i++)
        bcast_write(BCAST_UINT64, 0, first + any(0, length / 3 - 1) * 24 + 8 * i, bits[i]);
    to = sink_of(mode, count);
    if (kernels->reduce_runs(&runs, &to) != (is_written && bad >= 0)) fail("runs that lose", bad);
    if ((lost > 0) != (!is_written && bad >= 0)) fail("what runs lose", bad);
    for (int i = 0; i < count; i++) counts[i] = length;
    if (mode == BCAST_ADD) return;
    to = sink_of(mode, count);
    if (kernels->reduce_counted_runs(&counted, &to) != (is_written && bad >= 0)) fail("runs of counts that lose", bad);
    if ((lost > 0) != (!is_written && bad >= 0)) fail("what runs of counts lose", bad);
    const int rows_of_turn = any(3, 8), turns = any(1, 9), width = any(4, 70), row = any(0, rows_of_turn * turns - 3);
    const ptrdiff_t row_bytes = width * 8, column = any(0, width - 1) * 8;
    char *y = laid(term_room, rows_of_turn * turns * row_bytes);
    const bcast_term_rows rows = {y, turns, rows_of_turn * row_bytes, rows_of_turn, row_bytes, 4 * row_bytes, width};
    memset(y, 0, rows_of_turn * turns * row_bytes);
    for (int i = 0; bad >= 0 && i < 3; i++)
        bcast_write(BCAST_UINT64, 0, y + (row + i) * row_bytes + column, bits[i]);
    if (is_written && turns > 1) return;
    to = sink_of(mode, width);
    if (kernels->reduce_rows(&rows, &to) != (is_written && bad >= 0)) fail("rows that lose", bad);
    if ((lost > 0) != (!is_written && bad >= 0)) fail("what rows lose", bad);
}

/* Products of rows, or of runs, whose terms take turns in as many sums as there are lanes; then their error terms. */
static void check_products(void)
{
    const int size = term_sizes[kind], rows = !is_float() ? 1 : any(0, 2) ? any(1, 19) : 0, count = rows > 1 ? 1 : any(1, 4);
    const int width = any(1, 70), gap = any(0, 1) * size, ahead = any(0, 1) * 8192, sums = rows ? width : lanes[kind];
    const int each = kind == BCAST_KIND_f64 && rows != 1 ? 2 * sums : sums, turned = any(0, 1);
    const ptrdiff_t stride = width * size + gap, bytes = (rows > 1 ? rows : count) * stride - gap;
    const char *a = laid(term_room, bytes), *b = term_room + any(0, 50) * size;
    const bcast_term_products products = {turned ? b : a, turned ? a : b, count, stride, stride, width, rows, stride, ahead};
    const bcast_sink to = sink_of(BCAST_SET, count * each);
    static double again[MOST];
    memset(to.error, 0, kind == BCAST_KIND_f64 ? count * each * sum_size : 0);
    for (int i = 0; i < (rows > 1 ? rows : count); i++)
        for (int j = 0; j < width; j++) {
            const ptrdiff_t at = i * stride + j * size;
            const uint64_t x = bcast_read(of_size(size), 0, a + at), y = bcast_read(of_size(size), 0, b + at);
            const int sum = (rows > 1 ? 0 : i * each) + j % sums;
            if (is_float()) expected[sum] += term_at(a + at) * term_at(b + at);
            else expected_integers[sum] += x * y;
        }
    target->kernels[kind].multiply(&products, to.sum);
    compare(&to, count * each);
    bcast_sum_target_of(BCAST_TARGET_plain)->kernels[kind].multiply(&products, again);
    if (memcmp(again, to.sum, count * each * sum_size)) fail("other bits of products than the plain target's", width);
}

/* Squares of what terms differ from their means: one for each, or one for all. */
static void check_deviations(void)
{
    const int size = term_sizes[kind], n = any(1, 70), stride = any(0, 1);
    const char *src = laid(term_room, n * size);
    const int made = any(BCAST_SQUARE, BCAST_NUMBERS_COUNT);
    const bcast_sink to = sink_of(BCAST_SET, n);
    double means[70];
    if (!is_float()) return;
    memset(to.error, 0, kind == BCAST_KIND_f64 ? n * sum_size : 0);
    for (int i = 0; i < n; i++) means[i] = any(-50, 50) / 7.0;
    for (int i = 0; i < n; i++) {
        const double term = term_at(src + i * size), rest = term - means[i * stride];
        expected[i] = made == BCAST_NUMBERS_COUNT ? 1 : made == BCAST_NUMBER ? rest : rest * rest;
        if (made != BCAST_SQUARE && term != term) expected[i] = 0;
    }
    target->kernels[kind].deviate(made, src, means, stride, (double *) to.sum, n);
    compare(&to, n);
    if (memcmp(to.sum, expected, n * sizeof expected[0])) fail("other bits of deviations", n);
}

/* Results of each dtype at any stride. */
static void check_store(void)
{
    const int dtype = any(BCAST_INT8, BCAST_FLOAT64), size = bcast_dtypes[dtype].size, n = any(1, 40);
    const int is_integer = !bcast_dtypes[dtype].is_float, is_own = is_integer && any(0, 1);
    const int from = !is_own ? 8 : size == 1 ? any(1, 2) : size, gap = any(0, 1) * any(0, 5), apart = any(1, 3);
    const ptrdiff_t stride = any(0, 3) ? size + gap : -(size + gap), reach = (n - 1) * (size + gap) + size;
    char *begin = laid(sum_room, reach), *first = stride < 0 ? begin - (n - 1) * stride : begin;
    const bcast_results results = {dtype, from, first, stride, apart * from};
    char sums[3 * 40 * 8];
    memset(sum_room, PAINT, ROOM);
    for (int i = 0; i < n; i++) {
        const double real = any(-2000000, 2000000) / 3.0;
        const uint64_t integer = (uint64_t) any(0, 1 << 30) * 9;
        bcast_write(of_size(from), 0, sums + i * apart * from, is_integer ? integer : bcast_f64_bits_of(real));
    }
    target->store(&results, sums, n);
    for (int i = 0; i < n; i++) {
        const uint64_t bits = bcast_read(of_size(from), 0, sums + i * apart * from);
        char item[8];
        bcast_write(dtype, !is_integer, item, bits);
        if (memcmp(item, first + i * stride, size)) fail("a wrong result", dtype);
        memset(first + i * stride, PAINT, size);
    }
    for (ptrdiff_t i = 0; i < ROOM; i++)
        if ((uint8_t) sum_room[i] != PAINT) fail("a byte written outside", i);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 100;
    term_room = fenced_room();
    sum_room = fenced_room();
    error_room = fenced_room();
    for (int number = BCAST_TARGET_COUNT - 1; number >= 0; number--) {
        if (!bcast_has(number)) continue;
        name = bcast_target_names[number];
        target = bcast_sum_target_of(number);
        for (kind = 0; kind < BCAST_KINDS; kind++) {
            sum_size = is_float() ? 8 : term_sizes[kind];
            for (exact = 0; exact < 2; exact++) {
                fill_terms();
                for (int round = 0; round < rounds; round++) {
                    check_rows();
                    check_runs();
                    check_accumulators();
                    check_fold();
                    if (is_narrow()) continue;
                    check_counted_runs();
                    check_products();
                    check_deviations();
                }
            }
        }
        kind = BCAST_KIND_f64;
        sum_size = 8;
        fill_terms();
        for (int round = 0; round < rounds; round++) {
            check_special();
            check_store();
            check_lost();
            fill_terms();
        }
        puts(name);
        fflush(stdout);  /* a crash tells which target it was */
    }
    return 0;
}
