/* Programs: how short pieces of data become output, by one byte shuffle for each vector of the output. */

#ifndef BCAST_PROGRAM_H
#define BCAST_PROGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BCAST_STRETCH 2048  /* bytes of output that a program describes at most */
#define BCAST_WIDEST 64     /* bytes of the longest vector and of the longest window */
#define BCAST_GROUP 4       /* vectors that one loop writes */
#define BCAST_CHUNK 16384   /* bytes; half of a first-level cache */
#define BCAST_PARTS 8       /* vectors of an item that is kept in registers */
#define BCAST_PLACES 4      /* written by turns: they and the data may all want one set of a cache, of 8 ways */

/* A window of w bytes does not reach where data is taken up again from more than w bytes before: at most once in w + 1 bytes,
   so that vectors are half full at least. Those of 32 bytes have windows of 16. */
#define BCAST_VECTORS (BCAST_STRETCH / 8 + 2)

typedef struct {
    int vectors;
    int exact;              /* the last vector ends where the stretch does */
    ptrdiff_t data_step;    /* from one stretch to the next */
    ptrdiff_t out_step;
    ptrdiff_t data_reach;   /* what is read and written from where a stretch begins, rubbish included */
    ptrdiff_t out_reach;
    int32_t out_at[BCAST_VECTORS];
    int32_t data_at[BCAST_VECTORS];
    uint8_t index[4 * BCAST_STRETCH + 2 * BCAST_WIDEST];
} bcast_program;

typedef struct {
    const char *name;
    int vector;     /* bytes */
    int window;
    /* Write the first `vectors` of a program, `times` one after the other. */
    void (*run)(const bcast_program *program, int vectors, ptrdiff_t times, const uint8_t *data, uint8_t *out);
    /* Fill a run of at least a vector with each of `n` items, whose size divides a vector's, by the index of vector 0. */
    void (*fill)(
        const bcast_program *program, ptrdiff_t n, ptrdiff_t run, ptrdiff_t size, const uint8_t *data, uint8_t *out);
    /* Write each of `n` items of at most 8 vectors `times` over. */
    void (*rows)(ptrdiff_t n, ptrdiff_t times, ptrdiff_t size, const uint8_t *data, uint8_t *out);
    /* The same for the items at the first places of a program, as many as `runs`; and `n` times all of them. */
    void (*gather)(
        const bcast_program *program, int runs, ptrdiff_t n, ptrdiff_t times, ptrdiff_t size,
        const uint8_t *data, uint8_t *out);
    /* Copy `size` bytes, 8 vectors or more, to as many places as `times`, which lie `apart`. */
    void (*spread)(ptrdiff_t times, ptrdiff_t apart, ptrdiff_t size, const uint8_t *data, uint8_t *out);
    /* Repeat the finished first `block` bytes of an output, 4 vectors or more, over its `size`, twice that or more. */
    void (*tile)(ptrdiff_t block, ptrdiff_t size, uint8_t *out);
} bcast_leaf;

#endif
