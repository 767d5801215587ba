/* All thresholds of plans and pools: no other file has one.

   The comment of a number has its unit and its reason; the head of its section names the families of cells that depend
   on it. Each has one meaning: two thresholds that happen to be equal are two numbers.
   `python -m benchmarks tuning` halves and doubles each, and shows the effect. Sizes of the machine (a line, a page, a
   first-level cache) are in `cpu.h`, and sizes of structs beside the structs: no measurement changes them. */

#ifndef BCAST_TUNING_H
#define BCAST_TUNING_H

#ifndef BCAST_TUNABLE
#define BCAST_NUMBER(name, value) enum { name = (value) };
#else
/* In builds by `benchmarks/tuning.py`, the environment may replace the value when a module is loaded. */
#include <stdlib.h>
#define BCAST_NUMBER(name, value)                                                                                   \
    static long long name = (value);                                                                                \
    __attribute__((constructor)) static void bcast_read_##name(void)                                                \
    {                                                                                                               \
        const char *const given = getenv("BCAST_NUMBER_" #name);                                                    \
        if (given)                                                                                                  \
            name = atoll(given);                                                                                    \
    }
#endif

/* ---- Threads: shares of work, and when helpers wake. Cells: use, grid, elementwise, chain ---- */

/* Shares for each thread. A thread that starts late, or is slow, runs fewer of them. */
BCAST_NUMBER(THREAD_SHARES, 8)

/* The fewest bytes for a thread to write. A thread with less to write costs more than it saves. */
BCAST_NUMBER(WRITTEN_SHARE_BYTES, 256 << 10)

/* Multiple of the work for which a second thread pays. For less, waking a sleeping thread costs more than it saves. */
BCAST_NUMBER(WAKING_TIMES, 8)

/* The fewest bytes for each thread to release the GIL: the amount that two threads would share. */
#define BCAST_RELEASING_BYTES (2 * WRITTEN_SHARE_BYTES)

/* Microseconds for which a helper searches for its next job before it sleeps: enough for loops of calls. */
BCAST_NUMBER(SPIN_MICROSECONDS, 50)

/* Microseconds after which a helper is late. Shares are short: a helper with a CPU never delays its caller so long. */
BCAST_NUMBER(LATE_MICROSECONDS, 200)

/* Multiple of the time lost by a late helper, for which calls use none: other pools' threads spin about as long. */
BCAST_NUMBER(ALONE_TIMES, 4)

/* The most doublings of that time. A caller then loses 1/256 of its time. */
BCAST_NUMBER(MAX_DOUBLINGS, 6)

/* ---- All cores. Cells: grid, adjoint, statistics, chain reductions, elementwise ---- */

/* Items of an innermost axis that is long enough for vectors; a shorter axis is joined with others, or packed. */
BCAST_NUMBER(LONG_AXIS_ITEMS, 32)

/* The fewest items of a share in reductions and chains. They take 20 us, a hundred times the cost of a share. */
BCAST_NUMBER(SHARE_ITEMS, 64 << 10)

/* The most repetitions of each item beside which a pass over the items alone is not negligible: a copy into another
   dtype is then computed as a chain, and an operand is not copied into another order first. */
BCAST_NUMBER(FEW_TIMES, 3)

/* ---- Memory: which results use kept blocks. Cells: use ---- */

/* The fewest bytes of a result that gets a block. A handler for the array costs little beside writing these. */
BCAST_NUMBER(BLOCK_MIN_BYTES, 512 << 10)

/* A kept block fits if at most one part in this number stays unused. */
BCAST_NUMBER(BLOCK_SPARE, 8)

/* Bytes of idle blocks whose pages stay: above, it pays to let the system reclaim them, without huge pages. */
BCAST_NUMBER(UNADVISED_MAX_BYTES, 32 << 20)

/* The fewest bytes of a mapped file whose pages are released after use; a smaller file is soon used again. */
BCAST_NUMBER(MAP_MIN_BYTES, 128 << 20)

/* ---- Copies. Cells: grid, replaced, strided ---- */

/* The most bytes of a share: for more, waking another thread would pay, and the caller may have to wait for a share. */
#define BCAST_COPY_SHARE_MAX_BYTES (WAKING_TIMES * WRITTEN_SHARE_BYTES)

/* The fewest bytes of an output that is written past the caches. A smaller one may stay in a cache for its reader. */
BCAST_NUMBER(COPY_STREAMED_BYTES, 32 << 20)

/* A shuffle table describes one byte in this number of the output: describing one takes as long as writing 25. */
BCAST_NUMBER(COPY_BYTES_A_DESCRIBED_ONE, 64)

/* Bytes of a table that are described in the time of one visit to a block. */
BCAST_NUMBER(COPY_BYTES_A_VISIT, 16)

/* The fewest items of a tile of a transposed copy for a kernel; moving fewer one by one is faster. */
BCAST_NUMBER(COPY_TILE_ITEMS, 32)

/* The most bytes that a kernel writes of each counted item: they cost less than a mispredicted branch. */
BCAST_NUMBER(COUNTED_REACH_BYTES, 512)

/* Bytes of blocks in which copies into another dtype convert the data. A block fits a cache, and its replicas are worth
   two threads. */
BCAST_NUMBER(CONVERTED_BLOCK_BYTES, 1 << 20)

/* ---- Reductions: as bits, by shapes alone. Cells: adjoint, products, statistics, reductions, chain reductions ---- */

/* The fewest bytes for a thread to read: a written byte is also read into the cache, and leaves it. */
#define BCAST_SUM_SHARE_BYTES (2 * WRITTEN_SHARE_BYTES)

/* The most shares: enough for most machines' threads. */
BCAST_NUMBER(SUM_SHARES, 64)

/* Accumulators of a block, or results that a fold computes together. With their rows, they fit a second-level cache. */
BCAST_NUMBER(SUM_BLOCK_ITEMS, 4096)

/* The most items of joined or packed rows, and the fewest of a tile's rows: long enough to be fast. */
BCAST_NUMBER(SUM_ROW_ITEMS, 512)

/* Rows or runs of one call of a kernel: that number of additions to each accumulator pays for folding it, and that
   number of runs for the call. */
BCAST_NUMBER(SUM_CALL_ROWS, 8)

/* The most terms that are packed together: the rows of one call. */
#define BCAST_PACKED_TERMS (SUM_CALL_ROWS * SUM_ROW_ITEMS)

/* The most contiguous items in rows that are gathered. More are rows themselves. */
BCAST_NUMBER(SUM_PIECE_ITEMS, 8)

/* The fewest vectors of a run that is read as one stream. Shorter runs are read four at a time. */
BCAST_NUMBER(SUM_LONG_VECTORS, 128)

/* Bytes of terms that are prefetched: more than most caches hold. */
BCAST_NUMBER(SUM_PREFETCHED_BYTES, 8 << 20)

/* Bytes that `any` and `all` read before the others, because they often decide: two pages, because the CPU's
   prefetcher stops at the end of each. */
#define BCAST_DECIDING_BYTES (2 * BCAST_PAGE)

/* The fewest bytes of rows of bools that are searched for a deciding bool. Half as long rows are combined in three
   quarters of the time, unless it is found at once. */
#define BCAST_SEARCHED_BYTES (2 * SUM_ROW_ITEMS)

/* Times that a part of rows is longer than the part before it, while `any` and `all` are not decided: the first one is
   read in a moment, and there are few. */
BCAST_NUMBER(DECIDING_GROWTH, 64)

/* The most bytes of rows with gaps that are copied together before a search for positions: comparing each row takes
   longer. */
BCAST_NUMBER(SEARCHED_ROW_BYTES, 16)

/* The fewest items of such short rows that are copied, and of few columns that are searched several rows at a time. */
BCAST_NUMBER(SEARCHED_ITEMS, 2048)

/* The most bytes of a row of columns whose best items so far stay in registers from row to row. */
BCAST_NUMBER(SEARCHED_NARROW_BYTES, 128)

/* The fewest bytes of a run whose extreme or truth is found in four streams: each step of one waits for the last. */
BCAST_NUMBER(COMBINED_LONG_BYTES, 256)

/* The number of factors from which on partial products often overflow or underflow. Then the factors are multiplied as
   numbers with exponents at once, which takes up to 1.4 times as long as plain multiplication, and half as long as two
   attempts. */
BCAST_NUMBER(MANY_FACTORS, 128)

/* Terms of a block of runs of float32 whose exact sums are first computed plainly. If one addition rounds, the block is
   summed again: fewer terms cost more reads of the CPU's flags. */
BCAST_NUMBER(UNROUNDED_TERMS, 8192)

/* The most terms of a run in such a block, and rows of a block of rows: additions to longer sums often round. */
BCAST_NUMBER(UNROUNDED_RUN_TERMS, 2048)
BCAST_NUMBER(UNROUNDED_ROWS, 64)

/* The fewest items of longer vectors whose products kernels add up. For half as many, BLAS's calls cost less than the
   arrays that ours need. */
#define BCAST_MANY_PRODUCTS (SHARE_ITEMS / 2)

/* Bytes of blocks in which `var` and `std` compute many means, and of blocks that steps of a chain pass to a reduction.
   A third-level cache keeps them for the second pass. They are worth two threads: with 1 MiB, variances take up to
   seven times as long on two. */
BCAST_NUMBER(PASSES_BLOCK_BYTES, 4 << 20)

/* The most rows of such a block, if results are within rows: each has a page. */
#define BCAST_CHAIN_BLOCK_ROWS (PASSES_BLOCK_BYTES / BCAST_PAGE)

/* The fewest terms of one result that are read along it: if they would have to be gathered for one result only, or
   steps of a chain could have them in another order. */
BCAST_NUMBER(FOLD_MANY_TERMS, 256)

/* Results, or parts of them, that are too few for threads: the number of shares of two threads. */
#define BCAST_FEW_UNITS (2 * THREAD_SHARES)

/* ---- Functions and chains. Cells: elementwise, chain ---- */

/* The weight of an item of a slow function. An item of 16 bits has half of it. */
BCAST_NUMBER(SLOW_WEIGHT, 8)

/* Bytes of all operands of a block, if some go through buffers: a little more than half a first-level cache. */
BCAST_NUMBER(APPLY_BLOCK_BYTES, 18 << 10)

/* The fewest items of a row, or of the whole axes of a block, that are worth a call of the loop. A few shorter rows
   need no plan. */
BCAST_NUMBER(APPLY_LONG_ROW_ITEMS, 384)

/* Rows that are computed in the time in which buffers are planned. */
BCAST_NUMBER(APPLY_FEW_ROWS, 32)

/* Blocks whose floating-point errors are read together. */
BCAST_NUMBER(APPLY_SEEN_BLOCKS, 32)

/* Rows of a tile of transposed operands. */
BCAST_NUMBER(APPLY_TILE_ROWS, 32)

/* The most bounds of `clip` that are searched for NaN. Searching more is slower than NumPy's calls, which allow NaN. */
BCAST_NUMBER(FEW_BOUNDS, 4096)

/* ---- The patch: which calls are as fast on one thread in NumPy. Cells: elementwise ---- */

/* The fewest items of a call that a patched method takes, or a patched ufunc if NumPy would run its loop row by row. */
BCAST_NUMBER(PATCHED_ITEMS, 64)

/* Like WAKING_TIMES: results in place, which gain least, break even. */
BCAST_NUMBER(PATCHED_WAKING_TIMES, 24)

/* The fewest items of an array that a method reduces as a whole, or of its rows, for the patch to take the call. */
BCAST_NUMBER(METHOD_ROW_ITEMS, 16 << 10)

#endif
