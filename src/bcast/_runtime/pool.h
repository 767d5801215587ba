/* A pool of native threads that help a caller with shares of its work, and keep nobody waiting.

   A caller lends its job to helpers that have nothing to do, claims shares itself until none is left, takes the job
   back from helpers that have not begun, and waits only for those that are in the middle of a share. So a helper that
   is late, because something else has its CPU, costs nothing: the caller has done its shares.

   A helper looks out for a job for SPIN seconds after its last one, then sleeps until it is woken. Threads and locks
   are those of CPython, on every platform; none of it needs the GIL. */

#ifndef BCAST_POOL_H
#define BCAST_POOL_H

#include <Python.h>
#include <string.h>

#if defined(_MSC_VER)
#include <intrin.h>
#include <windows.h>
#else
#include <time.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

#define BCAST_HELPERS 255
#define BCAST_SPIN 50e-6       /* seconds; enough for loops of calls */
#define BCAST_RETRY 1.0        /* seconds without new threads after the system had none */
#define BCAST_LATE 200e-6      /* seconds; shares are short: a helper that has a CPU never costs its caller so much */

/* Where there is glibc, thread-local memory comes with the thread: none has to be found at the first use, where a
   failure would end the process. */
#if defined(_MSC_VER)
#define BCAST_THREAD_LOCAL __declspec(thread)
#elif defined(__GLIBC__)
#define BCAST_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define BCAST_THREAD_LOCAL _Thread_local
#endif

/* Sequentially consistent, as a job is handed over a few times a call. */
#if defined(_MSC_VER)
static long bcast_load(volatile long *at) { return _InterlockedCompareExchange(at, 0, 0); }
static void bcast_store(volatile long *at, long value) { _InterlockedExchange(at, value); }
static long bcast_next(volatile long *at) { return _InterlockedExchangeAdd(at, 1); }
static int bcast_swap(volatile long *at, long from, long to)
{
    return _InterlockedCompareExchange(at, to, from) == from;
}
#else
static long bcast_load(volatile long *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
static void bcast_store(volatile long *at, long value) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); }
static long bcast_next(volatile long *at) { return __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST); }
static int bcast_swap(volatile long *at, long from, long to)
{
    return __atomic_compare_exchange_n(at, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
#endif

static void bcast_pause(void)
{
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    __asm__ __volatile__("yield");
#endif
}

/* The CPU that the thread is on; -1 where that is not known. */
static int bcast_cpu(void)
{
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

static double bcast_clock(void)
{
#if defined(_WIN32)
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (double) now.QuadPart / (double) frequency.QuadPart;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
#endif
}

/* How long the calling thread has had a CPU; as long as the clock runs where that is not known. */
static double bcast_cpu_time(void)
{
#if defined(CLOCK_THREAD_CPUTIME_ID)
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0)
        return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
#endif
    return bcast_clock();
}

/* One share of the work; `worker` tells the threads of a job apart, the caller is 0. */
typedef void (*bcast_share)(void *work, int share, int worker);

typedef struct {
    bcast_share share;
    void *work;
    long shares;
    int threads;
    volatile long next[BCAST_HELPERS + 1];  /* the share that is claimed next of those that each thread begins with */
    volatile long begun;        /* how many helpers have begun */
    int cpu;                    /* where the caller is */
    PyThread_type_lock lock;    /* released when the helper is done for which the caller waits asleep */
} bcast_job;

/* What a helper is at, in the low bits of its state. The others count the jobs that were lent to it, so that a caller
   never takes another one's job for its own. */
enum {
    BCAST_NONE,     /* no thread, */
    BCAST_AWAKE,    /* one that looks out for a job, or will when it next gets a CPU, */
    BCAST_ASLEEP,   /* one that must be woken for it, */
    BCAST_TAKEN,    /* one that a caller has taken, and has yet to lend a job, */
    BCAST_LENT,     /* one that has a job and has not begun, */
    BCAST_BUSY,     /* one that works on it, */
    BCAST_AWAITED,  /* and one whose caller sleeps until it is done */
    BCAST_ALL = 7,
    BCAST_ANOTHER   /* job */
};

typedef struct {
    volatile long state;
    int worker;
    volatile int cpu;           /* where the last caller was */
    bcast_job *job;             /* on its caller's stack: there while the helper is busy or awaited, no longer */
    PyThread_type_lock wake;    /* released to wake the helper */
    char apart[64];             /* no two helpers look at one line of memory */
} bcast_helper;

static bcast_helper bcast_helpers[BCAST_HELPERS];
static BCAST_THREAD_LOCAL double bcast_took;    /* seconds, the calling thread's last job */
static volatile double bcast_none_until; /* when the system may have threads again */

/* The locks that callers sleep on. None is ever freed: a helper may be in the middle of releasing it. */
static struct {
    volatile long taken;
    PyThread_type_lock lock;
} bcast_waiters[BCAST_HELPERS];

static PyThread_type_lock bcast_new_lock(void)
{
    PyThread_type_lock lock = PyThread_allocate_lock();
    if (lock != NULL)
        PyThread_acquire_lock(lock, NOWAIT_LOCK);
    return lock;
}

/* Sleep until the helper is done, if there is a lock for that. */
static void bcast_sleep(bcast_helper *helper, bcast_job *job, long busy)
{
    int i;
    for (i = 0; i < BCAST_HELPERS; i++) {
        if (!bcast_swap(&bcast_waiters[i].taken, 0, 1))
            continue;
        if (bcast_waiters[i].lock == NULL)
            bcast_waiters[i].lock = bcast_new_lock();
        if ((job->lock = bcast_waiters[i].lock) != NULL
            && bcast_swap(&helper->state, busy, busy - BCAST_BUSY + BCAST_AWAITED))
            PyThread_acquire_lock(job->lock, WAIT_LOCK);
        bcast_store(&bcast_waiters[i].taken, 0);
        return;
    }
}

/* Where the shares begin that are a thread's own. */
static long bcast_first(const bcast_job *job, int thread)
{
    return (long) ((long long) job->shares * thread / job->threads);
}

/* Claim shares until none is left: first those that are a thread's own, which its caches may know from the job before,
   then the others'. */
static void bcast_work(bcast_job *job, int worker)
{
    int i;
    for (i = 0; i < job->threads; i++) {
        const int whose = (worker + i) % job->threads;
        const long end = bcast_first(job, whose + 1);
        long share;
        while ((share = bcast_next(&job->next[whose])) < end)
            job->share(job->work, (int) share, worker);
    }
}

/* Whether a helper is on its caller's CPU, as others have all the rest: all that it does keeps the caller waiting. */
static int bcast_in_the_way(const bcast_helper *self)
{
    int cpu = self->cpu;
    return cpu >= 0 && cpu == bcast_cpu();
}

/* The life of a helper. */
static void bcast_help(void *argument)
{
    bcast_helper *self = (bcast_helper *) argument;
    double until = bcast_clock() + BCAST_SPIN;
    for (;;) {
        long state = bcast_load(&self->state), at = state & BCAST_ALL, jobs = state - at;
        int sleeps = (at == BCAST_AWAKE && bcast_clock() > until)
            || ((at == BCAST_AWAKE || at == BCAST_LENT) && bcast_in_the_way(self));
        if (sleeps && bcast_swap(&self->state, state, jobs | BCAST_ASLEEP)) {
            PyThread_acquire_lock(self->wake, WAIT_LOCK);
            until = bcast_clock() + BCAST_SPIN;
        } else if (at == BCAST_LENT && !sleeps && bcast_swap(&self->state, state, jobs | BCAST_BUSY)) {
            bcast_next(&self->job->begun);
            bcast_work(self->job, self->worker);
            if (!bcast_swap(&self->state, jobs | BCAST_BUSY, jobs | BCAST_AWAKE)) {
                PyThread_type_lock lock = self->job->lock;
                bcast_store(&self->state, jobs | BCAST_AWAKE);
                PyThread_release_lock(lock);
            }
            until = bcast_clock() + BCAST_SPIN;
        } else {
            bcast_pause();
        }
    }
}

/* Start a helper's thread; returns whether there is one. Its lock stays if there is none. */
static int bcast_start(bcast_helper *helper)
{
    unsigned long thread;
#if !defined(_WIN32)
    sigset_t all, before; /* signals are for Python's threads: one that sleeps must notice them */
#endif
    if (helper->wake == NULL && (helper->wake = bcast_new_lock()) == NULL)
        return 0;
#if !defined(_WIN32)
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return 0;
#endif
    thread = PyThread_start_new_thread(bcast_help, helper);
#if !defined(_WIN32)
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
    return thread != PYTHREAD_INVALID_THREAD_ID;
}

/* Lend a job to a helper if it has none; returns its state from then on, or 0. `woken` counts those that were not
   awake. */
static long bcast_lend(bcast_helper *helper, bcast_job *job, int worker, int *woken)
{
    long state = bcast_load(&helper->state), at = state & BCAST_ALL, jobs = state - at + BCAST_ANOTHER;
    if (at > BCAST_ASLEEP || (at == BCAST_NONE && bcast_clock() < bcast_none_until))
        return 0;
    if (!bcast_swap(&helper->state, state, jobs | BCAST_TAKEN))
        return 0;
    helper->job = job;
    helper->worker = worker;
    helper->cpu = job->cpu;
    if (at == BCAST_NONE && !bcast_start(helper)) {
        bcast_none_until = bcast_clock() + BCAST_RETRY;
        bcast_store(&helper->state, jobs | BCAST_NONE);
        return 0;
    }
    bcast_store(&helper->state, jobs | BCAST_LENT);
    if (at == BCAST_ASLEEP)
        PyThread_release_lock(helper->wake);
    *woken += at != BCAST_AWAKE;
    return jobs | BCAST_LENT;
}

/* Take a job back from a helper that has not begun, or wait until it is done; past `until` asleep. */
static void bcast_take_back(bcast_helper *helper, bcast_job *job, long lent, double until)
{
    long busy = lent - BCAST_LENT + BCAST_BUSY;
    if (bcast_swap(&helper->state, lent, lent - BCAST_LENT + BCAST_AWAKE))
        return;
    while (bcast_load(&helper->state) == busy) {
        if (bcast_clock() < until)
            bcast_pause();
        else
            bcast_sleep(helper, job, busy);
    }
}

/* Do all shares of some work, with up to `threads` - 1 helpers. Returns how long these kept the caller from its work:
   as it woke them, where the system may give its CPU to another process, in the middle of a long job, where it may do
   so because a helper has displaced that, and as it waited for them in the end; and whether it woke some and none has
   begun. */
static double bcast_run(bcast_share share, void *work, int shares, int threads, int *in_vain)
{
    bcast_job job;
    bcast_helper *helper[BCAST_HELPERS];
    long lent[BCAST_HELPERS];
    int helpers = 0, woken = 0, i;
    const int watched = bcast_took > BCAST_LATE;    /* two looks at the CPU time are little beside it */
    double begun = bcast_clock(), had, lost;
    job.share = share;
    job.work = work;
    job.shares = shares;
    job.threads = threads <= BCAST_HELPERS ? threads : BCAST_HELPERS + 1;
    for (i = 0; i < job.threads; i++)
        job.next[i] = bcast_first(&job, i);
    job.begun = 0;
    job.cpu = bcast_cpu();
    job.lock = NULL;
    for (i = 0; i < BCAST_HELPERS && helpers + 1 < threads; i++) {
        helper[helpers] = &bcast_helpers[i];
        lent[helpers] = bcast_lend(helper[helpers], &job, helpers + 1, &woken);
        if (lent[helpers] != 0)
            helpers++;
        else if ((bcast_load(&bcast_helpers[i].state) & BCAST_ALL) == BCAST_NONE)
            break; /* the system has no more threads */
    }
    lost = bcast_clock() - begun;
    begun += lost;
    had = watched ? bcast_cpu_time() : 0;
    bcast_work(&job, 0);
    bcast_took = bcast_clock() - begun;
    if (watched) {
        double waited = bcast_took - (bcast_cpu_time() - had);
        lost += waited > BCAST_LATE ? waited : 0;
    }
    begun = bcast_clock();
    for (i = 0; i < helpers; i++)
        bcast_take_back(helper[i], &job, lent[i], begun + BCAST_SPIN);
    *in_vain = woken && !bcast_load(&job.begun);
    return lost + bcast_clock() - begun;
}

/* Whether a helper looks out for a job. */
static int bcast_helper_awake(void)
{
    int i;
    for (i = 0; i < BCAST_HELPERS; i++) {
        long at = bcast_load(&bcast_helpers[i].state) & BCAST_ALL;
        if (at == BCAST_AWAKE)
            return 1;
        if (at == BCAST_NONE)
            break;
    }
    return 0;
}

/* By this name threadpoolctl knows the library from others that are called so. */
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const int bcast_pool = BCAST_HELPERS;

/* In a child after a fork: the helpers are the parent's, and locks may be in any state. */
static void bcast_forget_helpers(void)
{
    memset(bcast_helpers, 0, sizeof bcast_helpers);
    memset(bcast_waiters, 0, sizeof bcast_waiters);
    bcast_none_until = 0;
}

/* Do all shares on the calling thread, in an order that `seed` picks (0: from the last to the first), each as one of
   the threads: for tests, as what threads do must not depend on who does what when. */
static void bcast_run_in_order(bcast_share share, void *work, int shares, int threads, unsigned long long seed)
{
    unsigned long long factor = (unsigned long long) shares - 1, offset = 0, a, b, rest;
    int i;
    if (seed) {
        do { /* a factor without a common divisor makes a permutation */
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            factor = (seed >> 33) % (unsigned) shares;
            for (a = (unsigned) shares, b = factor; b != 0; rest = a % b, a = b, b = rest)
                ;
        } while (a != 1);
        offset = (seed >> 17) % (unsigned) shares;
    }
    for (i = 0; i < shares; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        share(
            work, (int) ((factor * (unsigned) (i + 1) + offset) % (unsigned) shares),
            (int) ((seed >> 33) % (unsigned) threads)
        );
    }
}

#endif
