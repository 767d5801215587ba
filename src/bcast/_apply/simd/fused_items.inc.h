/* Fused steps item by item, for items that do not fill a vector. `kernels.cpp` includes this file once, in the
   namespace of the target of all CPUs. */

/* A comparison of NaN is no error, unless it signals. */
BCAST_INLINE bool is_greater(float x, float y) { return __builtin_isgreater(x, y); }
BCAST_INLINE bool is_less(float x, float y) { return __builtin_isless(x, y); }
BCAST_INLINE bool is_nan(float x) { return x != x; }

/* Clearer whole: a line for each function. */
static float fused_result(int function, float x, float y)
{
    switch (function) {
    case bcast_number_add: return x + y;
    case bcast_number_subtract: return x - y;
    case bcast_number_multiply: return x * y;
    case bcast_number_divide: return x / y;
    case bcast_number_maximum: return is_greater(x, y) || is_nan(x) ? x : y;
    case bcast_number_minimum: return is_less(x, y) || is_nan(x) ? x : y;
    case bcast_number_rint: return rintf(x);
    case bcast_number_at_least: return is_less(x, y) ? y : x;
    default: return is_greater(x, y) ? y : x;
    }
}

/* Compute the items from one on. */
static void fuse_items(ptrdiff_t at, const bcast_fusion &fusion)
{
    for (; at < fusion.n; at++) {
        float x;
        if (fusion.bytes) x = static_cast<const uint8_t *>(fusion.src)[at];
        else x = static_cast<const float *>(fusion.src)[at];

        for (int s = 0; s < fusion.steps; s++)
            x = fused_result(fusion.functions[s], x, fusion.operands[s][fusion.strides[s] ? at : 0]);

        uint8_t *byte = static_cast<uint8_t *>(fusion.dst) + at;
        switch (fusion.into) {
        case bcast_into_floats: static_cast<float *>(fusion.dst)[at] = x; break;
        case bcast_into_halves: round_row_to_float16(1, &x, static_cast<uint16_t *>(fusion.dst) + at); break;
        case bcast_into_bytes: convert<Number<float32>, uint8>(1, &x, byte); break;
        default: saturate_floats<float32, uint8>(1, &x, byte);
        }
    }
}
