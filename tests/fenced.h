/* What the checks of leaves share: rooms between pages that no one may touch, and random numbers. */

#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 1 << 18, PAINT = 0xA5 };

static uint32_t state = 2463534242u;

/* A number from `low` to `high`, both included. */
static int any(int low, int high)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return low + (int) (state % (uint32_t) (high - low + 1));
}

static void *fenced_room(void)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE), size = ROOM + 2 * page;
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) || mprotect(map + page + ROOM, page, PROT_NONE)) {
        perror("fences");
        exit(2);
    }
    return map + page;
}

/* Lay `size` bytes flush against one end of a room. */
static void *laid(void *room, ptrdiff_t size)
{
    return any(0, 1) ? (char *) room + ROOM - size : room;
}
