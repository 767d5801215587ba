/* Functions of two vectors of float32, and how fused loops apply them to a tile: some vectors in registers. For each
   target that has vectors, in its namespace, in the vocabulary of `vectors.h`. */

struct Add {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y) { return add(x, y); }
};

struct Subtract {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y) { return subtract(x, y); }
};

struct Multiply {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y) { return multiply(x, y); }
};

struct Divide {
    ON_TARGET BCAST_INLINE Floats of(Floats x, Floats y) { return divide(x, y); }
};

/* Apply a function to each vector of a tile and the items of the other operand, or its single item. */
template <class Function, int count>
ON_TARGET BCAST_INLINE void apply(Floats (&x)[count], const float *operand, bool is_row)
{
    if (is_row) {
        for (int j = 0; j < count; j++) x[j] = Function::of(x[j], load(operand + lanes * j));
    } else {
        const Floats one = repeated(*operand);
        for (int j = 0; j < count; j++) x[j] = Function::of(x[j], one);
    }
}
