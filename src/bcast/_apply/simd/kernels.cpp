/* The kernels of the element-wise core, compiled for each target, and the tables for their lookup. */

#include "kernels.h"

#include <fenv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "numbers.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"
#include "../../_runtime/vectors.h"

/* Before a loop in which no item depends on the result of another one. */
#if defined(__clang__)
#define BCAST_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define BCAST_INDEPENDENT _Pragma("GCC ivdep")
#else
#define BCAST_INDEPENDENT
#endif

namespace bcast {
namespace {

/* Conversions, by kinds. */
struct CastRow { bcast_cast to[kind_count]; };
struct CastTable { CastRow from[kind_count]; };

/* Loops for ufuncs, by their names. */
struct NamedLoop {
    const char *ufunc;
    char kind;              /* NumPy's letter */
    int size;
    bcast_loop loop;
};

/* Loops of a kind of halves, and loops of many rows of a type, by the numbers of functions. */
struct HalfLoops { bcast_loop of[bcast_number_greater_equal + 1]; };
struct RowsOfType { bcast_row_loop of[bcast_number_minimum + 1]; };
struct RowLoops { RowsOfType bytes, words, longs, floats, doubles; };

/* The kernels of one target. */
struct Kernels {
    const CastTable *casts;
    const CastTable *saturating_casts;
    void (*swap_bytes)(ptrdiff_t n, int size, void *items);
    const NamedLoop *loops;
    bcast_loop select;
    const HalfLoops *float16_loops;     /* these two: null if there are none */
    const HalfLoops *bfloat16_loops;
    const RowLoops *row_loops;          /* null if there are none */
    void (*fuse)(const bcast_fusion &fusion);   /* null if there is none */
    bool fuses_halves;
    bool fuses_more;
    void (*fold)(const bcast_folding &folding, bcast_folded *onto);
    void (*take_roots)(int size, ptrdiff_t n, void *items);
    void (*keep_positions)(const bcast_position_rows &rows);
    void (*find_position)(const bcast_position_rows &row, bcast_folded *onto);
};

/* Whether a conversion is the same everywhere: it loses no kind of number, nor any number outside of bfloat16. */
constexpr bool is_exact(Kind from, Kind to)
{
    if (from == boolean || is_complex(from)) return true;
    if (is_half(to) || from == bfloat16) return false;
    return !(is_real_float(from) && is_integer(to));
}

#if BCAST_HAS_FP16

namespace neon {
#define ON_TARGET
constexpr bool has_known_steps = true;
#include "rounding_vectors.inc.h"
#include "casts.inc.h"
#include "casts_neon.inc.h"
#include "saturate.inc.h"
#include "tables.inc.h"
#include "loops.inc.h"
#include "rows.inc.h"
#include "arithmetic.inc.h"
#include "no_choices.inc.h"
#include "halves.inc.h"
#include "fused.inc.h"
#include "fused_items.inc.h"
#include "truths.inc.h"
#include "folded.inc.h"
#undef ON_TARGET

void fuse(const bcast_fusion &fusion)
{
    fuse_items(fuse_vectors(0, fusion), fusion);
}

/* NumPy computes `maximum` and `minimum` by NEON's instructions, which order zeros by their signs. */
constexpr RowLoops row_loops = {
    rows_of_bytes, rows_of_integers<uint32_t>, rows_of_integers<uint64_t>, rows_of_arithmetic<float>,
    rows_of_arithmetic<double>,
};

constexpr Kernels kernels = {
    &casts, &saturating_casts, swap_bytes, named_loops<Hypot>, select, &float16_loops, &bfloat16_loops, &row_loops,
    fuse, has_halves, has_choices, fold, take_roots, keep_positions, find_position,
};
}

/* NEON is always there: conversions are its own. */
namespace plain {
constexpr Kernels kernels = {
    &neon::casts, &neon::saturating_casts, neon::swap_bytes, neon::named_loops<neon::Hypot>, neon::select, nullptr,
    nullptr, nullptr, neon::fuse, neon::has_halves, neon::has_choices, neon::fold,
    neon::take_roots, neon::keep_positions, neon::find_position,
};
}

#else

namespace plain {
#define ON_TARGET
constexpr bool has_known_steps = false;     /* CPUs without AVX2 are few */
#include "rounding_plain.inc.h"
#include "casts.inc.h"
#include "casts_quiet.inc.h"
#include "saturate.inc.h"
#include "tables.inc.h"
#include "loops.inc.h"
#include "truths.inc.h"
#include "folded.inc.h"
#ifdef __GNUC__
#include "arithmetic.inc.h"
#include "no_choices.inc.h"
#include "fused.inc.h"
#include "fused_items.inc.h"

void fuse(const bcast_fusion &fusion)
{
    fuse_items(fuse_vectors(0, fusion), fusion);
}
#else
constexpr bool has_halves = false, has_choices = false;
constexpr void (*fuse)(const bcast_fusion &fusion) = nullptr;
#endif
#undef ON_TARGET

constexpr Kernels kernels = {
    &casts, &saturating_casts, swap_bytes, named_loops<Hypot>, select, nullptr, nullptr, nullptr, fuse, has_halves,
    has_choices, fold, take_roots, keep_positions, find_position,
};
}

/* No instruction of SSSE3 helps here, and compilers without vectors have none of NEON. */
namespace ssse3 { using plain::kernels; }
namespace neon { using plain::kernels; }

#endif

#if defined(__x86_64__) || defined(_M_X64)
namespace avx2 {
#define ON_TARGET BCAST_ON_AVX2
constexpr bool has_known_steps = true;
#include "rounding_vectors.inc.h"
#include "casts.inc.h"
#include "casts_quiet.inc.h"
#include "saturate.inc.h"
#include "tables.inc.h"
#include "loops.inc.h"
#include "arithmetic.inc.h"
#include "halves.inc.h"
#include "truths.inc.h"
#include "folded.inc.h"
#ifdef __GNUC__
#include "rows.inc.h"
#include "choices.inc.h"
#include "fused.inc.h"

void fuse(const bcast_fusion &fusion)
{
    plain::fuse_items(fuse_vectors(0, fusion), fusion);
}

constexpr RowLoops all_rows = {
    rows_of_bytes, rows_of_integers<uint32_t>, rows_of_integers<uint64_t>, rows_of_floats<float>,
    rows_of_floats<double>,
};
constexpr const RowLoops *row_loops = &all_rows;
constexpr bool fuses = true;
#else
constexpr void (*fuse)(const bcast_fusion &fusion) = nullptr;
constexpr const RowLoops *row_loops = nullptr;
constexpr bool fuses = false;
#endif
#undef ON_TARGET

constexpr Kernels kernels = {
    &casts, &saturating_casts, swap_bytes, named_loops<Hypot>, select, &float16_loops, &bfloat16_loops, row_loops, fuse,
    fuses, fuses, fold, take_roots, keep_positions, find_position,
};
}
#endif

#if defined(_M_X64)
namespace avx512 = avx2;
#elif defined(__x86_64__)
namespace avx512 {
#define ON_TARGET BCAST_ON_AVX512
#include "loops.inc.h"
#include "hypot_avx512.inc.h"
#include "rows.inc.h"
#include "arithmetic.inc.h"
#include "choices.inc.h"
#include "halves.inc.h"
#include "fused.inc.h"
#undef ON_TARGET

/* Loads of 64 bytes that cross cache lines are slower than loads of 32. */
bool lie_at_lines(const bcast_fusion &fusion)
{
    uintptr_t places = fusion.bytes ? 0 : reinterpret_cast<uintptr_t>(fusion.src);
    for (int s = 0; s < fusion.steps; s++)
        if (fusion.strides[s]) places |= reinterpret_cast<uintptr_t>(fusion.operands[s]);
    return places % BCAST_LINE == 0;
}

void fuse(const bcast_fusion &fusion)
{
    ptrdiff_t at = lie_at_lines(fusion) ? fuse_vectors(0, fusion) : 0;
    at = avx2::fuse_vectors(at, fusion);
    plain::fuse_items(at, fusion);
}

/* Only quotients are faster than by AVX2: up to 1.9 times. */
template <class T>
constexpr RowsOfType with_own_quotients(RowsOfType rows)
{
    rows.of[bcast_number_divide] = compute_rows<T, Quotient>;
    return rows;
}

constexpr RowLoops row_loops = {
    avx2::all_rows.bytes, avx2::all_rows.words, avx2::all_rows.longs,
    with_own_quotients<float>(avx2::all_rows.floats), with_own_quotients<double>(avx2::all_rows.doubles),
};

constexpr Kernels kernels = {
    &avx2::casts, &avx2::saturating_casts, avx2::swap_bytes, named_loops<HypotByEstimate>, select, &float16_loops,
    &bfloat16_loops, &row_loops, fuse, has_halves, has_choices, avx2::fold, avx2::take_roots,
    avx2::keep_positions, avx2::find_position,
};
}
#endif

#define BCAST_KERNELS_OF_TARGET(name, ...) &name::kernels,
constexpr const Kernels *kernels_of_target[] = {BCAST_TARGETS(BCAST_KERNELS_OF_TARGET)};

}
}

using namespace bcast;

extern "C" bcast_cast bcast_cast_of(int target, int from_type, int to_type, int bfloat16_type, int exact)
{
    const Kind from = kind_of_type(from_type, bfloat16_type), to = kind_of_type(to_type, bfloat16_type);

    if (exact && !is_exact(from, to)) return nullptr;
    return kernels_of_target[target]->casts->from[from].to[to];
}

extern "C" bcast_cast bcast_saturating_cast_of(int target, int from_type, int to_type, int bfloat16_type)
{
    const Kind from = kind_of_type(from_type, bfloat16_type), to = kind_of_type(to_type, bfloat16_type);

    return kernels_of_target[target]->saturating_casts->from[from].to[to];
}

extern "C" void bcast_swap_bytes(int target, ptrdiff_t n, int size, void *items)
{
    kernels_of_target[target]->swap_bytes(n, size, items);
}

extern "C" bcast_loop bcast_loop_of(int target, const char *ufunc, char kind, int size)
{
    for (const NamedLoop *row = kernels_of_target[target]->loops; row->ufunc; row++)
        if (row->kind == kind && row->size == size && strcmp(row->ufunc, ufunc) == 0) return row->loop;
    return nullptr;
}

extern "C" bcast_loop bcast_select_loop(int target)
{
    return kernels_of_target[target]->select;
}

extern "C" bcast_loop bcast_half_loop(int target, int is_bfloat, int function)
{
    const Kernels *kernels = kernels_of_target[target];
    const HalfLoops *loops = is_bfloat ? kernels->bfloat16_loops : kernels->float16_loops;

    return loops ? loops->of[function] : nullptr;
}

extern "C" bcast_row_loop bcast_row_loop_of(int target, int is_float, int size, int function)
{
    const RowLoops *loops = kernels_of_target[target]->row_loops;

    if (!loops) return nullptr;
    if (is_float) return size == 4 ? loops->floats.of[function] : size == 8 ? loops->doubles.of[function] : nullptr;
    if (size == 1) return loops->bytes.of[function];
    return size == 4 ? loops->words.of[function] : size == 8 ? loops->longs.of[function] : nullptr;
}

extern "C" int bcast_fuses(int target) { return kernels_of_target[target]->fuse != nullptr; }
extern "C" int bcast_fuses_halves(int target) { return kernels_of_target[target]->fuses_halves; }
extern "C" int bcast_fuses_more(int target) { return kernels_of_target[target]->fuses_more; }
extern "C" void bcast_fuse(int target, const bcast_fusion *fusion) { kernels_of_target[target]->fuse(*fusion); }

extern "C" void bcast_fold(int target, const bcast_folding *folding, bcast_folded *onto)
{
    kernels_of_target[target]->fold(*folding, onto);
}

extern "C" void bcast_take_roots(int target, int size, ptrdiff_t n, void *items)
{
    kernels_of_target[target]->take_roots(size, n, items);
}

extern "C" void bcast_keep_positions(int target, const bcast_position_rows *rows)
{
    kernels_of_target[target]->keep_positions(*rows);
}

extern "C" void bcast_find_position(int target, const bcast_position_rows *row, bcast_folded *onto)
{
    kernels_of_target[target]->find_position(*row, onto);
}
