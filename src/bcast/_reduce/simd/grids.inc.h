/* Sums on grids: what is exact for most data at half of what it takes to add each term with its error.

   A block is a few hundred vectors in up to four chains. A first accumulator begins with 1.5 * 2^k, so that it stays
   from 2^k to 2^(k+1) and all its values are multiples of 2^(k-52), the first grid. A term is added to it, and the
   difference of both values is the term rounded to that grid. What this rounds off is added to a second accumulator in
   the same way, which begins with 1.5 * 2^(k-42). If nothing is left by its grid, both sums are exact:

       a term               |.......53 bits.......|
       first grid     ------|----------|
       second grid                     |------------------------------|
       nothing left                                                   |

   The proof, in the docs (`design/sums.md`), asks for two things, which each block's end tells: the squares of all
   differences add up to less than 2^(2k-14), and nothing is left. A block that fails is tried once more with the grids
   that its greatest term asks for, and is added term by term otherwise. All sums of a block, of chains or of lanes, are
   on one grid: up to 1024 of its terms may be added as they are. Compare binned sums: J. Demmel and H. D. Nguyen, Fast
   reproducible floating-point summation, ARITH 21 (2013). */

/* The grids of a kernel's call, in all lanes; they are chosen for its first block. */
template <class Kind>
struct Grids {
    FourSums<Kind> first;       /* 1.5 * 2^k */
    FourSums<Kind> second;
    FourSums<Kind> limit;       /* of the squares */
    bool known;
    int wait;                   /* blocks that are not tried: after one that failed, others fail, too */
};

enum {
    GRID_VECTORS = 256,         /* of a block, at most: a first-level cache has room for them */
    GRID_ROWS = 64,             /* of a block, at most */
    GRID_COLUMNS = 256,         /* of a block of rows, at most */
    GRID_LEAST_VECTORS = 16,    /* of a run that is a block by itself */
    GRID_WAIT = 15
};

/* Choose grids for terms that are no larger than in the lanes of a vector; return whether there are such. */
template <class Kind>
BCAST_APART bool choose_grids(Grids<Kind> *grids, FourSums<Kind> sizes)
{
    const double most = sum_of_lanes(sizes), size = most == 0 ? 1 : most;
    const double power = bcast_f64_of(bcast_f64_bits_of(size) & 0x7ff0000000000000);

    if (!(size > 0x1p-400 && size < 0x1p400)) return false;
    grids->first = all_lanes<FourSums<Kind>>(power * 0x1.8p16);
    grids->second = all_lanes<FourSums<Kind>>(power * 0x1.8p-26);
    grids->limit = all_lanes<FourSums<Kind>>(power * power * 0x1p18);
    grids->known = true;
    return true;
}

/* Add a vector to a chain's two accumulators; note the squares of its parts on the first grid, and what is left. */
template <class V>
BCAST_INLINE void add_on_grids(V x, V *first, V *second, V *squares, V *left)
{
    const V one = ones<V>(), sum = *first + x, part = sum * one - *first, rest = x - part;
    const V rests = *second + rest, rest_part = rests * one - *second;

    *squares = part * part + *squares;
    *left = either_bits(*left, rest - rest_part);
    *first = sum;
    *second = rests;
}

/* Add up a block's vectors, of which `term(chain, group, i)` is one: each of `chains` has `groups` of `n`, and one more
   if it has tails, `tail(chain)`. Return whether the sums are exact: the chain's sum is then sum + error. */
template <class Kind, class Load, class Tail>
BCAST_INLINE bool sum_on_grids(
    const int chains, ptrdiff_t groups, const int n, const bool has_tails, const Grids<Kind> *grids,
    Accumulators<Kind> *sums, Load term, Tail tail)
{
    using Four = FourSums<Kind>;
    const Four first = grids->first, second = grids->second;
    Four firsts[4], seconds[4], squares[2] = {}, left = {};     /* two, as additions wait for each other */

    for (int k = 0; k < chains; k++) {
        firsts[k] = first;
        seconds[k] = second;
    }

    for (ptrdiff_t group = 0; group < groups; group++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < chains; k++)
                add_on_grids(term(k, group, i), &firsts[k], &seconds[k], &squares[k % 2], &left);
    for (int k = 0; has_tails && k < chains; k++)
        add_on_grids(tail(k), &firsts[k], &seconds[k], &squares[k % 2], &left);

    for (int k = 0; k < chains; k++) {
        sums[k].sum = firsts[k] - first;
        sums[k].error = seconds[k] - second;
    }
    return are_less(squares[0] + squares[1], grids->limit) && are_zero(left);
}

/* Add up chains that are on one grid. */
template <class Kind>
BCAST_INLINE void join_chains(Accumulators<Kind> *sums)
{
    sums[0].sum = (sums[0].sum + sums[1].sum) + (sums[2].sum + sums[3].sum);
    sums[0].error = (sums[0].error + sums[1].error) + (sums[2].error + sums[3].error);
}

/* The same, with other grids if those at hand do not do. */
template <class Kind, class Load, class Tail>
BCAST_INLINE bool sum_block(
    const int chains, ptrdiff_t groups, const int n, const bool has_tails, Grids<Kind> *grids,
    Accumulators<Kind> *sums, Load term, Tail tail)
{
    if (grids->wait > 0) {
        grids->wait--;
        return false;
    }
    for (bool is_chosen = false;; is_chosen = true) {
        if (grids->known && sum_on_grids(chains, groups, n, has_tails, grids, sums, term, tail)) return true;
        if (is_chosen) break;

        FourSums<Kind> sizes[4] = {};
        for (ptrdiff_t group = 0; group < groups; group++)
            for (int i = 0; i < n; i++)
                for (int k = 0; k < chains; k++) sizes[k] = larger(size_of(term(k, group, i)), sizes[k]);
        for (int k = 0; has_tails && k < chains; k++) sizes[k] = larger(size_of(tail(k)), sizes[k]);
        if (!choose_grids(grids, larger(larger(sizes[0], sizes[1]), larger(sizes[2], sizes[3])))) break;
    }
    grids->wait = GRID_WAIT;
    return false;
}
