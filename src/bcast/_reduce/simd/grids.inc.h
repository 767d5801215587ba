/* Sums on grids: exact for most data, in half of the operations that it takes to add each term with its error.

   A block is up to 256 vectors, in up to four chains. A chain's accumulator begins with 1.5 * 2^k, so that it stays
   from 2^k to 2^(k+1) and all its values are multiples of 2^(k-52), the grid. A term is added to it, and the difference
   of both values is the term rounded to the grid. What this rounds off, the rest, is exact, too. Rests are added up as
   they are: they are so small that what this rounds off decides one last bit in a million at most.

       a term               |.......53 bits.......|
       on the grid    ------|-------------|
       rest                               |-------|

   The proof, in the docs (`design/sums.md`), asks for one thing: that the squares of a block's terms add up to less
   than 2^(2k-14). A block that fails gets the grid that its greatest term asks for, and is added term by term if it
   fails again. Sums of chains and of lanes are on the same grid: up to 1024 terms' sums may be added as they are. Compare
   binned sums: J. Demmel and H. D. Nguyen, Fast reproducible floating-point summation, ARITH 21 (2013). */

enum {
    GRID_VECTORS = 256,         /* of a block of a run, at most */
    GRID_FEW_VECTORS = 16,      /* of a run whose smallest terms are found, as few terms make ties */
    GRID_ROWS = 64,             /* of a block, at most */
    GRID_LEAST_ROWS = 8,        /* fewer are added term by term */
    GRID_ROWS_AT_ONCE = 16,     /* for which sums are in registers */
    GRID_COLUMNS = 256,         /* of a strip, at most */
    GRID_WAIT = 15              /* blocks that are not tried after one that failed: others fail, too */
};

/* Where accumulators begin: the power of two of the greatest terms, times a number, in each lane. */
template <class Kind>
BCAST_INLINE FourSums<Kind> anchor_for(FourSums<Kind> sizes, double times)
{
    const FourSums<Kind> least = all_lanes<FourSums<Kind>>(0x1p-400);      /* squares do not underflow */

    return scaled(without_fraction(larger(sizes, least)), times);
}

/* What is added up on a grid. */
template <class Kind>
struct Chain {
    FourSums<Kind> sum;
    FourSums<Kind> rests;
};

/* Multiplied by one, terms are added by the units that multiply, which have nothing else to do. */
template <class Kind>
BCAST_INLINE void add_on_grid(Chain<Kind> *to, FourSums<Kind> x)
{
    const FourSums<Kind> one = ones<FourSums<Kind>>(), sum = to->sum + x, part = sum * one - to->sum, rest = x - part;

    to->rests = rest * one + to->rests;
    to->sum = sum;
}

/* What sums of rests have lost, where the smallest of the terms are known. All are multiples of the last place of the
   smallest, and so are sums of rests, rounded or not. If they have lost less than that, it is nothing. */
template <class Kind>
BCAST_INLINE FourSums<Kind> lost_beside(FourSums<Kind> least, FourSums<Kind> lost)
{
    return unless_less(lost, scaled(without_fraction(least), 0x1p-52));
}

/* A run's grid, the same in all lanes. */
template <class Kind>
struct RunGrid {
    FourSums<Kind> anchor;      /* 1.5 * 2^k */
    FourSums<Kind> limit;       /* of the sum of squares: 2^(2k-14) */
    FourSums<Kind> lost;        /* by the rests of a block, at most */
    FourSums<Kind> lost_by_few; /* by those of GRID_FEW_VECTORS */
    bool known;
    int wait;                   /* blocks that are not tried */
};

/* Choose a grid for terms that are no larger than in the lanes of a vector. */
template <class Kind>
BCAST_APART void choose_grid(RunGrid<Kind> *grid, FourSums<Kind> sizes)
{
    const FourSums<Kind> power = anchor_for<Kind>(all_lanes<FourSums<Kind>>(most_of_lanes(sizes)), 1);

    grid->anchor = scaled(power, 0x1.8p16);
    grid->limit = scaled(power * power, 0x1p18);
    grid->lost = scaled(grid->anchor, 0x1p-89);
    grid->lost_by_few = scaled(grid->anchor, 0x1p-95);
    grid->known = true;
}
