/* The words of any CPU. Floats are compilers' own vectors, only for arithmetic. */

#ifdef __GNUC__
constexpr int lanes = 4;
constexpr bool has_halves = false;
typedef float Floats __attribute__((vector_size(16)));
struct Rare {};

BCAST_INLINE Floats load(const float *at)
{
    Floats x;
    memcpy(&x, at, sizeof x);
    return x;
}

BCAST_INLINE void store(float *at, Floats x) { memcpy(at, &x, sizeof x); }
BCAST_INLINE Floats repeated(float x) { return Floats{x, x, x, x}; }
BCAST_INLINE Floats values_of_bytes(const uint8_t *x)
{
    const float first = x[0], second = x[1], third = x[2], fourth = x[3];
    return Floats{first, second, third, fourth};
}

BCAST_INLINE Floats add(Floats x, Floats y) { return x + y; }
BCAST_INLINE Floats subtract(Floats x, Floats y) { return x - y; }
BCAST_INLINE Floats multiply(Floats x, Floats y) { return x * y; }
BCAST_INLINE Floats divide(Floats x, Floats y) { return x / y; }

BCAST_INLINE Rare nothing_rare() { return {}; }
BCAST_INLINE bool has_underflow(Rare) { return false; }
#endif

/* ---- Bytes ---- */

struct Bytes { uint8_t of[16]; };

/* Not by memcpy: with it, compilers shuffle bytes in twice as many instructions. */
BCAST_INLINE Bytes load_register(const uint8_t *at) { return *reinterpret_cast<const Bytes *>(at); }
BCAST_INLINE void store_register(uint8_t *at, Bytes x) { *reinterpret_cast<Bytes *>(at) = x; }

/* The bytes with some numbers, of the 16 at `window`. */
BCAST_INLINE Bytes pick(const uint8_t *window, Bytes numbers)
{
    Bytes x;
    for (int i = 0; i < 16; i++) x.of[i] = window[numbers.of[i]];
    return x;
}
