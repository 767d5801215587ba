/* The other functions of fused loops, for targets whose comparisons can be quiet, after `arithmetic.inc.h`. */

constexpr bool has_choices = true;

/* x, if it is NaN, and y of two zeros, as in NumPy's loops. */
struct Maximum {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y)
    {
        return choose(both(compare<ordered>(x, x), compare<quiet_not_greater>(x, y)), y, x);
    }
};

struct Minimum {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y)
    {
        return choose(both(compare<ordered>(x, x), compare<quiet_not_less>(x, y)), y, x);
    }
};

/* Bounds. */
struct AtLeast {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y) { return choose(compare<quiet_less>(x, y), y, x); }
};

struct AtMost {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y) { return choose(compare<quiet_greater>(x, y), y, x); }
};

/* Apply one of these functions, by its number, or round. */
template <int count>
ON_TARGET BCAST_INLINE void apply_choice(Floats (&x)[count], int function, const float *operand, bool is_row)
{
    switch (function) {
    case bcast_number_maximum: apply<Maximum>(x, operand, is_row); break;
    case bcast_number_minimum: apply<Minimum>(x, operand, is_row); break;
    case bcast_number_at_least: apply<AtLeast>(x, operand, is_row); break;
    case bcast_number_at_most: apply<AtMost>(x, operand, is_row); break;
    case bcast_number_rint:
        for (int j = 0; j < count; j++) x[j] = rounded_to_whole(x[j]);
        break;
    }
}
