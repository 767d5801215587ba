/* Integers that several threads read and write. Sequentially consistent: a call uses them only a few times. */

#ifndef BCAST_ATOMIC_H
#define BCAST_ATOMIC_H

#if defined(_MSC_VER)
#include <intrin.h>
#endif

#if defined(_MSC_VER)
static inline long bcast_load(volatile long *at) { return _InterlockedCompareExchange(at, 0, 0); }
static inline void bcast_store(volatile long *at, long value) { _InterlockedExchange(at, value); }
static inline long bcast_next(volatile long *at) { return _InterlockedExchangeAdd(at, 1); }
static inline int bcast_swap(volatile long *at, long from, long to)
{
    return _InterlockedCompareExchange(at, to, from) == from;
}
#else
static inline long bcast_load(volatile long *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
static inline void bcast_store(volatile long *at, long value) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); }
static inline long bcast_next(volatile long *at) { return __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST); }
static inline int bcast_swap(volatile long *at, long from, long to)
{
    return __atomic_compare_exchange_n(at, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
#endif

#endif
