/* The numbers that plans and pools compare sizes with, all of them: no other file has a threshold.

   A number says what it counts, and why it is what it is; the head of its section names the families of cells that
   move with it. It has one meaning: two thresholds that happen to be equal are two numbers.
   `python -m benchmarks tuning` halves and doubles each, and shows what that changes. Sizes of the machine (a line, a
   page, a first-level cache) are in `cpu.h`, and those of structs beside the structs: no measurement moves them. */

#ifndef BCAST_TUNING_H
#define BCAST_TUNING_H

#ifndef BCAST_TUNABLE
#define BCAST_NUMBER(name, value) enum { name = (value) };
#else
/* Builds by `benchmarks/tuning.py`: when a module is loaded, the environment may say another value. */
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

/* ---- Threads: how work is cut, who wakes whom. Cells: use, grid, elementwise, chain ---- */

/* Shares for each thread. A thread that starts late, or is slow, takes fewer of them. */
BCAST_NUMBER(THREAD_SHARES, 8)

/* Bytes that a thread writes at least. Another one that would write less costs more than it saves. */
BCAST_NUMBER(WRITTEN_SHARE_BYTES, 256 << 10)

/* Times the work that a second thread pays for. For less, waking a thread that sleeps costs more than it saves. */
BCAST_NUMBER(WAKING_TIMES, 8)

/* Bytes for each thread from which on the GIL is released: as many as two threads would share. */
#define BCAST_RELEASING_BYTES (2 * WRITTEN_SHARE_BYTES)

/* Microseconds in which a helper looks for its next job before it sleeps: enough for loops of calls. */
BCAST_NUMBER(SPIN_MICROSECONDS, 50)

/* Microseconds after which a helper is late. Shares are short: one that has a CPU never costs its caller so much. */
BCAST_NUMBER(LATE_MICROSECONDS, 200)

/* Times the loss by a late helper, in which calls do without helpers: other pools' threads spin for some such time. */
BCAST_NUMBER(ALONE_TIMES, 4)

/* How often that time is doubled at most. A caller then loses one 256th of its time. */
BCAST_NUMBER(MAX_DOUBLINGS, 6)

/* ---- All cores. Cells: grid, adjoint, statistics, chain reductions, elementwise ---- */

/* Items of an innermost axis that is long enough for vectors; a shorter one is joined with others, or packed. */
BCAST_NUMBER(LONG_AXIS_ITEMS, 32)

/* Items of a share of reductions and chains, at least. They take 20 us, a hundred times what a share costs. */
BCAST_NUMBER(SHARE_ITEMS, 64 << 10)

/* Times that each item is repeated up to which a pass over the items alone takes time beside the repetitions: a copy
   into another dtype is then computed as a chain, and an operand is not copied into another order first. */
BCAST_NUMBER(FEW_TIMES, 3)

/* ---- Memory: which results use blocks that are kept. Cells: use ---- */

/* Bytes of a result that gets a block. Giving an array a handler costs little beside writing so much. */
BCAST_NUMBER(BLOCK_MIN_BYTES, 512 << 10)

/* A kept block fits if at most one part in so many of it stays unused. */
BCAST_NUMBER(BLOCK_SPARE, 8)

/* Bytes of idle blocks whose pages stay: advising the system that it may take them pays beyond, without huge pages. */
BCAST_NUMBER(UNADVISED_MAX_BYTES, 32 << 20)

/* Bytes of a mapped file whose pages are given back once they are read or written; a smaller one is soon used again. */
BCAST_NUMBER(MAP_MIN_BYTES, 128 << 20)

/* ---- Copies. Cells: grid, replaced, strided ---- */

/* Bytes of a share at most: more would be worth waking another thread for, and the caller may have to wait for one. */
#define BCAST_COPY_SHARE_MAX_BYTES (WAKING_TIMES * WRITTEN_SHARE_BYTES)

/* Bytes of an output that is written past the caches. A smaller one may stay in a cache for its reader. */
BCAST_NUMBER(COPY_STREAMED_BYTES, 32 << 20)

/* A shuffle table describes one byte in so many of the output: describing one takes as long as writing 25. */
BCAST_NUMBER(COPY_BYTES_A_DESCRIBED_ONE, 64)

/* Bytes that are described in the time of visiting one block. */
BCAST_NUMBER(COPY_BYTES_A_VISIT, 16)

/* Items of the tile of a transposed copy that are worth a kernel's call; moving fewer one by one is faster. */
BCAST_NUMBER(COPY_TILE_ITEMS, 32)

/* Bytes that a kernel writes of each counted item at most: they are cheaper than a wrong guess of a branch. */
BCAST_NUMBER(COUNTED_REACH_BYTES, 512)

/* Bytes of blocks in which copies into another dtype convert the data. A cache holds one, and what it is replicated to
   is worth two threads. */
BCAST_NUMBER(CONVERTED_BLOCK_BYTES, 1 << 20)

/* ---- Reductions: as bits, by shapes alone. Cells: adjoint, products, statistics, reductions, chain reductions ---- */

/* Bytes that a thread reads at least: a byte that is written is read into the cache, too, and leaves it. */
#define BCAST_SUM_SHARE_BYTES (2 * WRITTEN_SHARE_BYTES)

/* Shares at most: enough for most machines' threads. */
BCAST_NUMBER(SUM_SHARES, 64)

/* Accumulators of a block, or results of a fold at once. With their rows they fit a second-level cache. */
BCAST_NUMBER(SUM_BLOCK_ITEMS, 4096)

/* Items of joined or packed rows at most, and of a tile's rows at least: long enough to be fast. */
BCAST_NUMBER(SUM_ROW_ITEMS, 512)

/* Rows or runs of one call of a kernel: as many additions to each accumulator pay for folding it, and as many runs for
   the call. */
BCAST_NUMBER(SUM_CALL_ROWS, 8)

/* Terms that are packed at once, at most: the rows of one call. */
#define BCAST_PACKED_TERMS (SUM_CALL_ROWS * SUM_ROW_ITEMS)

/* Items side by side in rows that are gathered, at most. More are rows themselves. */
BCAST_NUMBER(SUM_PIECE_ITEMS, 8)

/* Vectors of a run that is read as one stream. Four shorter ones are read side by side. */
BCAST_NUMBER(SUM_LONG_VECTORS, 128)

/* Bytes of terms that are prefetched: more than most caches hold. */
BCAST_NUMBER(SUM_PREFETCHED_BYTES, 8 << 20)

/* Bytes that `any` and `all` read before they read the others, because they often decide: two pages, as the CPU's
   prefetcher stops at the end of each. */
#define BCAST_DECIDING_BYTES (2 * BCAST_PAGE)

/* Bytes of rows in each of which the first bool that decides is searched for. Rows of half as many are combined in
   three quarters of the time, unless it is found at once. */
#define BCAST_SEARCHED_BYTES (2 * SUM_ROW_ITEMS)

/* Factors of a product beside which it costs nothing to keep a narrow float's in float64, or to look at the first ones
   for the size of all. */
BCAST_NUMBER(MANY_FACTORS, 128)

/* Items of longer vectors from which on their products are added up by kernels. For half as many, BLAS's calls take
   less time than the arrays that ours need. */
#define BCAST_MANY_PRODUCTS (SHARE_ITEMS / 2)

/* Bytes of blocks in which `var` and `std` make many means, and of those that steps of a chain give to a reduction. A
   third-level cache has for the second pass what the first one has read or written. They are worth two threads: with
   1 MiB, variances take up to seven times as long on two. */
BCAST_NUMBER(PASSES_BLOCK_BYTES, 4 << 20)

/* Rows of such a block, at most, if results lie within rows: each has a page. */
#define BCAST_CHAIN_BLOCK_ROWS (PASSES_BLOCK_BYTES / BCAST_PAGE)

/* Terms of one result from which on they are read along it: if they would have to be gathered for one result only, or
   steps of a chain could have them in another order. */
BCAST_NUMBER(FOLD_MANY_TERMS, 256)

/* Results, or parts of them, that are too few for threads: as many as two threads have shares. */
#define BCAST_FEW_UNITS (2 * THREAD_SHARES)

/* ---- Functions and chains. Cells: elementwise, chain ---- */

/* Times that an item of a slow function counts. An item of 16 bits counts half as often. */
BCAST_NUMBER(SLOW_WEIGHT, 8)

/* Bytes of all operands of a block, if some go through buffers: a little more than half a first-level cache. */
BCAST_NUMBER(APPLY_BLOCK_BYTES, 18 << 10)

/* Items of a row, or of the axes that a block has whole, that are worth a call of the loop. A few shorter rows need no
   plan. */
BCAST_NUMBER(APPLY_LONG_ROW_ITEMS, 384)

/* Rows that are computed in the time in which buffers are planned. */
BCAST_NUMBER(APPLY_FEW_ROWS, 32)

/* Blocks whose floating-point errors are read together. */
BCAST_NUMBER(APPLY_SEEN_BLOCKS, 32)

/* Rows of a tile of transposed operands. */
BCAST_NUMBER(APPLY_TILE_ROWS, 32)

/* Bounds of `clip` that are searched for NaN. Searching more takes longer than NumPy's calls, which have them. */
BCAST_NUMBER(FEW_BOUNDS, 4096)

/* ---- The patch: which calls one thread of NumPy's does as fast. Cells: elementwise ---- */

/* Items for which a patched ufunc comes here, if NumPy would call its loop row by row, or a method. */
BCAST_NUMBER(PATCHED_ITEMS, 64)

/* As WAKING_TIMES: results in place, where the least is to be gained, break even. */
BCAST_NUMBER(PATCHED_WAKING_TIMES, 24)

/* Items of an array that a method reduces as a whole, or of its rows, from which on the call comes here. */
BCAST_NUMBER(METHOD_ROW_ITEMS, 16 << 10)

#endif
