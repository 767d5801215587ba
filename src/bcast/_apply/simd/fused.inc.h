/* Fused steps on whole vectors of items, on one target: a tile of eight vectors at a time, then of one.

   `kernels.cpp` includes this file in the target's namespace, after `arithmetic.inc.h` and one of those with the other
   functions. Each result is rounded: compilers must not contract products and sums. */

template <int count>
ON_TARGET BCAST_INLINE void read_tile(Floats (&x)[count], const bcast_fusion &fusion, ptrdiff_t at)
{
    if (fusion.bytes) {
        const uint8_t *src = static_cast<const uint8_t *>(fusion.src) + at;
        for (int j = 0; j < count; j++) x[j] = values_of_bytes(src + lanes * j);
    } else {
        const float *src = static_cast<const float *>(fusion.src) + at;
        for (int j = 0; j < count; j++) x[j] = load(src + lanes * j);
    }
}

template <int count>
ON_TARGET BCAST_INLINE void compute_tile(Floats (&x)[count], const bcast_fusion &fusion, ptrdiff_t at)
{
    for (int s = 0; s < fusion.steps; s++) {
        const bool is_row = fusion.strides[s] != 0;
        const float *operand = fusion.operands[s] + (is_row ? at : 0);

        switch (fusion.functions[s]) {
        case bcast_number_add: apply<Add>(x, operand, is_row); break;
        case bcast_number_subtract: apply<Subtract>(x, operand, is_row); break;
        case bcast_number_multiply: apply<Multiply>(x, operand, is_row); break;
        case bcast_number_divide: apply<Divide>(x, operand, is_row); break;
        default: apply_choice(x, fusion.functions[s], operand, is_row);
        }
    }
}

/* Write a tile in the wanted form, as far as the target has it. */
template <int count>
ON_TARGET BCAST_INLINE void write_tile(const Floats (&x)[count], const bcast_fusion &fusion, ptrdiff_t at, Rare *seen)
{
    if constexpr (has_halves) {
        if (fusion.into == bcast_into_halves) {
            uint16_t *halves = static_cast<uint16_t *>(fusion.dst) + at;
            for (int j = 0; j < count; j++) store(halves + lanes * j, rounded_to_float16(x[j], seen));
            return;
        }
    }
    if constexpr (has_choices) {
        uint8_t *bytes = static_cast<uint8_t *>(fusion.dst) + at;
        if (fusion.into == bcast_into_bytes) return store_bytes(bytes, x);
        if (fusion.into == bcast_into_saturated_bytes) return store_saturated_bytes(bytes, x);
    }
    float *dst = static_cast<float *>(fusion.dst) + at;
    for (int j = 0; j < count; j++) store(dst + lanes * j, x[j]);
}

/* Compute tiles of some number of vectors, from one item on; return the next item. */
template <int count>
ON_TARGET BCAST_INLINE ptrdiff_t fuse_tiles(ptrdiff_t at, const bcast_fusion &given, Rare *seen)
{
    const bcast_fusion fusion = given;      /* a copy, which no store can change */
    Floats x[count];

    for (; at + lanes * count <= fusion.n; at += lanes * count) {
        read_tile(x, fusion, at);
        compute_tile(x, fusion, at);
        write_tile(x, fusion, at, seen);
    }
    return at;
}

/* Compute all whole vectors, from one item on; return the next item. */
ON_TARGET static ptrdiff_t fuse_vectors(ptrdiff_t at, const bcast_fusion &fusion)
{
    Rare seen = nothing_rare();

    at = fuse_tiles<8>(at, fusion, &seen);
    at = fuse_tiles<1>(at, fusion, &seen);
    if (has_underflow(seen)) feraiseexcept(FE_UNDERFLOW);
    return at;
}
