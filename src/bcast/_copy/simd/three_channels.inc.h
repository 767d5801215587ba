/* Three channels of items of 1 or 2 bytes, in vectors of two lanes, twice as fast as compilers' code.
   `kernels.cpp` includes this file in the target's namespace.

   Packed, the channels are interleaved; unpacked, each has a row. Three lanes have as many items of each channel as a
   lane has items. A lane has 16 items of 1 byte, or 8 of 2, but is drawn with 4, which 3 does not divide either:

       place         0   1   2   3

       lane 0       r0  g0  b0  r1
       lane 1       g1  b1  r2  g2
       lane 2       b2  r3  g3  b3

   Because 3 does not divide the length of a lane, the three lanes have three different channels at each place. All
   items of a channel therefore fit into one lane, each at its own place. Red comes from lanes 0, 2, 1, 0, and green
   from lanes 1, 0, 2, 1. The mixed items are out of order, and a shuffle within the lane sorts them:

                    mixed               from place       in order
       red          r0  r3  r2  r1      0  3  2  1       r0  r1  r2  r3
       green        g1  g0  g3  g2      1  0  3  2       g0  g1  g2  g3
       blue         b2  b1  b0  b3      2  1  0  3       b0  b1  b2  b3

   Item i of channel c is number 3 * i + c of all, so its place is this number modulo the length of a lane. Within a
   lane, the places of a channel are three apart. They share a remainder modulo 3, which `remainder_of` returns, and a
   mask for each of the three remainders serves all lanes and channels.

   Packing reverses this: each channel's row is shuffled out of order, and mixed into each lane. Then the lanes are
   interleaved, like the channels. A vector has two lanes: the second lanes belong to the next three. */

struct VectorNumbers { uint8_t of[3][sizeof(Bytes)]; };

/* For each remainder modulo 3, 255 in all bytes of the places in a lane with that remainder. */
template <int size>
constexpr VectorNumbers masks_of_remainders()
{
    VectorNumbers masks = {};
    for (int remainder = 0; remainder < 3; remainder++)
        for (int byte = 0; byte < vector_bytes; byte++)
            masks.of[remainder][byte] = byte % 16 / size % 3 == remainder ? 255 : 0;
    return masks;
}

/* For each channel, the bytes of a mixed lane in the order of its items. */
template <int size>
constexpr VectorNumbers numbers_to_unpack()
{
    VectorNumbers numbers = {};
    for (int channel = 0; channel < 3; channel++)
        for (int byte = 0; byte < vector_bytes; byte++) {
            const int item = byte % 16 / size, place = 3 * item + channel;
            numbers.of[channel][byte] = static_cast<uint8_t>((place * size + byte % size) % 16);
        }
    return numbers;
}

/* The inverse: for each channel, the bytes of its items in the order of a mixed lane. */
template <int size>
constexpr VectorNumbers numbers_to_pack()
{
    constexpr VectorNumbers places = numbers_to_unpack<size>();
    VectorNumbers numbers = {};
    for (int channel = 0; channel < 3; channel++)
        for (int byte = 0; byte < vector_bytes; byte++)
            numbers.of[channel][byte / 16 * 16 + places.of[channel][byte]] = static_cast<uint8_t>(byte % 16);
    return numbers;
}

/* The remainder modulo 3 of the places of a channel in a lane: 0 for channel 0 in lane 0; the places are one further
   for the next channel, and 16 / size back in the next lane. */
template <int size>
constexpr int remainder_of(int lane, int channel)
{
    constexpr int items_of_lane = 16 / size;
    return (channel + (3 - items_of_lane % 3) * lane) % 3;
}

/* Three vectors, and the vectors of the tables above. */
struct Three {
    Bytes vector[3];

    BCAST_INLINE Three loaded(const VectorNumbers &numbers)
    {
        return {{load_register(numbers.of[0]), load_register(numbers.of[1]), load_register(numbers.of[2])}};
    }
};

/* Items of the first, second or third vector, given the remainders of the places of the second and third. */
BCAST_INLINE Bytes mixed(const Three &x, const Three &masks, int second, int third)
{
    const Bytes of_two = choose(masks.vector[second], x.vector[1], x.vector[0]);
    return choose(masks.vector[third], x.vector[2], of_two);
}

/* Unpack items of each channel, in whole vectors: at most n. Return their number. */
template <int size>
BCAST_INLINE ptrdiff_t unpack_three(ptrdiff_t n, const uint8_t *src, uint8_t *dst, ptrdiff_t channel_stride)
{
    static constexpr VectorNumbers mask_bytes = masks_of_remainders<size>(), order_bytes = numbers_to_unpack<size>();
    constexpr int items = vector_bytes / size;
    const Three masks = Three::loaded(mask_bytes), order = Three::loaded(order_bytes);
    ptrdiff_t done = 0;

    for (; done + items <= n; done += items, src += 3 * vector_bytes, dst += vector_bytes) {
        Three lanes;
        for (int lane = 0; lane < 3; lane++) lanes.vector[lane] = load_lanes(src + 16 * lane, 48);

        for (int channel = 0; channel < 3; channel++) {
            const int second = remainder_of<size>(1, channel), third = remainder_of<size>(2, channel);
            const Bytes of_channel = mixed(lanes, masks, second, third);
            store_register(dst + channel * channel_stride, pick_in_lanes(of_channel, order.vector[channel]));
        }
    }
    return done;
}

/* Pack them in the same way. */
template <int size>
BCAST_INLINE ptrdiff_t pack_three(ptrdiff_t n, const uint8_t *src, uint8_t *dst, ptrdiff_t channel_stride)
{
    static constexpr VectorNumbers mask_bytes = masks_of_remainders<size>(), order_bytes = numbers_to_pack<size>();
    constexpr int items = vector_bytes / size;
    const Three masks = Three::loaded(mask_bytes), order = Three::loaded(order_bytes);
    ptrdiff_t done = 0;

    for (; done + items <= n; done += items, src += vector_bytes, dst += 3 * vector_bytes) {
        Three channels;
        for (int channel = 0; channel < 3; channel++) {
            const Bytes in_order = load_register(src + channel * channel_stride);
            channels.vector[channel] = pick_in_lanes(in_order, order.vector[channel]);
        }

        for (int lane = 0; lane < 3; lane++) {
            const int second = remainder_of<size>(lane, 1), third = remainder_of<size>(lane, 2);
            store_lanes(dst + 16 * lane, 48, mixed(channels, masks, second, third));
        }
    }
    return done;
}

/* A matrix of a few channels: three of short items by the functions above, others and the remaining items by loops. */
struct ThreeChannels {
    template <int size>
    BCAST_INLINE bool copy(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
    {
        bcast_matrix rest = *matrix;

        if constexpr (size <= 2) {
            if (matrix->n == 3 && matrix->dst_step == 3 * size) {
                const ptrdiff_t done = pack_three<size>(matrix->m, src, dst, matrix->n_step);
                rest.m -= done;
                src += done * size;
                dst += done * 3 * size;
            } else if (matrix->m == 3 && matrix->n_step == 3 * size) {
                const ptrdiff_t done = unpack_three<size>(matrix->n, src, dst, matrix->dst_step);
                rest.n -= done;
                src += done * 3 * size;
                dst += done * size;
            }
        }
        return ChannelLoops::copy<size>(&rest, src, dst);
    }
};
