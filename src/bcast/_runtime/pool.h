/* A pool of native threads that help a caller with shares of its work, without keeping it waiting.

   A caller submits its job to idle helpers, claims shares itself until none remains, withdraws the job from helpers
   that have not begun, and waits only for helpers in the middle of a share. A helper that is late, because something
   else has its CPU, costs nothing: the caller has done its shares.

   Threads and locks are CPython's, on every platform; nothing here needs the GIL. `_runtime/patience.h` decides
   which calls ask for helpers. */

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

#include "atomic.h"
#include "clock.h"
#include "tuning.h"

#define BCAST_MAX_HELPERS 255
#define BCAST_SPIN_SECONDS (1e-6 * (double) SPIN_MICROSECONDS)

static void bcast_pause(void)
{
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    __asm__ __volatile__("yield");
#endif
}

/* The thread's CPU; -1 if it is not known. */
static int bcast_cpu(void)
{
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

/* The state of a helper: its phase in the low bits, and above them the number of jobs submitted to it, so that a caller
   never mistakes another caller's job for its own. Each transition is one compare-and-exchange:

       NONE, AWAKE, ASLEEP -> CLAIMED       a caller has chosen it, and has yet to submit a job
       CLAIMED -> SUBMITTED                 the caller has; it starts or wakes the thread if necessary
       SUBMITTED -> BUSY -> AWAKE           the helper begins, and finishes
       SUBMITTED -> AWAKE                   the caller withdraws the job
       BUSY -> JOINED -> AWAKE              the caller sleeps until the helper finishes
       AWAKE, SUBMITTED -> ASLEEP           the helper sleeps: it was idle for a while, or shares its caller's CPU */
enum {
    BCAST_NONE, /* there is no thread */
    BCAST_AWAKE,
    BCAST_ASLEEP,
    BCAST_CLAIMED,
    BCAST_SUBMITTED,
    BCAST_BUSY,
    BCAST_JOINED,
    BCAST_STATES = 7,
    BCAST_ANOTHER_JOB
};

/* One share of the work; `worker` is the number of a thread within the job; the caller is 0. */
typedef void (*bcast_share)(void *work, int share, int worker);

struct bcast_job;

typedef struct {
    volatile long state;
    int worker;
    volatile int cpu;           /* the last caller's CPU */
    struct bcast_job *job;      /* on its caller's stack: valid only while the helper is busy or joined */
    PyThread_type_lock wake;    /* released to wake the helper, else held; NULL before it was first started */
    unsigned long thread;
    int avoided;                /* the number of the CPU that it must not use, plus 1; or 0 */
    char apart[64];             /* no two helpers share a cache line */
} bcast_helper;

typedef struct bcast_job {
    bcast_share share;
    void *work;
    long shares;
    int threads;
    volatile long next[BCAST_MAX_HELPERS + 1]; /* the next share to claim of each thread's own */
    volatile long begun;        /* number of helpers that have begun */
    int cpu;                    /* the caller's CPU */
    PyThread_type_lock lock;    /* released when the helper for which the caller sleeps finishes */
    int helpers;                /* number of helpers with the job */
    int woken;                  /* number of these that were not awake */
    bcast_helper *helper[BCAST_MAX_HELPERS];
    long submitted[BCAST_MAX_HELPERS]; /* the state of each after the submission */
} bcast_job;

static bcast_helper bcast_helpers[BCAST_MAX_HELPERS];
static volatile double bcast_none_until; /* the time at which the system may have threads again */

/* The locks that callers sleep on. None is ever freed: a helper may be in the middle of releasing it. */
static struct {
    volatile long claimed;
    PyThread_type_lock lock;
} bcast_waiters[BCAST_MAX_HELPERS];

static PyThread_type_lock bcast_new_lock(void)
{
    PyThread_type_lock lock = PyThread_allocate_lock();
    if (lock != NULL)
        PyThread_acquire_lock(lock, NOWAIT_LOCK);
    return lock;
}

/* The first of a thread's own shares. */
static long bcast_first(const bcast_job *job, int thread)
{
    return (long) ((long long) job->shares * thread / job->threads);
}

/* Claim shares until none remains: first a thread's own, which its caches may hold from the previous job, then the
   others'. */
static void bcast_work(bcast_job *job, int worker)
{
    for (int i = 0; i < job->threads; i++) {
        const int whose = (worker + i) % job->threads;
        const long end = bcast_first(job, whose + 1);
        long share;
        while ((share = bcast_next(&job->next[whose])) < end)
            job->share(job->work, (int) share, worker);
    }
}

/* Whether a helper is on its caller's CPU, because all others are busy: any work of its delays the caller. */
static int bcast_in_the_way(const bcast_helper *self)
{
    int cpu = self->cpu;

    return cpu >= 0 && cpu == bcast_cpu();
}

/* Keep a sleeping helper off its caller's CPU, where the system may wake it although other CPUs are idle: it would wait
   there until the caller finishes. It may use all other CPUs of the caller. */
static void bcast_keep_off(bcast_helper *helper, int cpu)
{
#if defined(__linux__)
    cpu_set_t cpus;
    if (cpu < 0 || helper->avoided == cpu + 1 || sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        return;

    CPU_CLR(cpu, &cpus);
    if (CPU_COUNT(&cpus) && pthread_setaffinity_np((pthread_t) helper->thread, sizeof cpus, &cpus) == 0)
        helper->avoided = cpu + 1;
#else
    (void) helper, (void) cpu;
#endif
}

/* The main function of a helper. */
static void bcast_help(void *argument)
{
    bcast_helper *self = (bcast_helper *) argument;
    double until = bcast_clock() + BCAST_SPIN_SECONDS;

    for (;;) {
        long state = bcast_load(&self->state), at = state & BCAST_STATES, jobs = state - at;
        int sleeps = (at == BCAST_AWAKE && bcast_clock() > until)
            || ((at == BCAST_AWAKE || at == BCAST_SUBMITTED) && bcast_in_the_way(self));

        if (sleeps && bcast_swap(&self->state, state, jobs | BCAST_ASLEEP)) {
            PyThread_acquire_lock(self->wake, WAIT_LOCK);
            until = bcast_clock() + BCAST_SPIN_SECONDS;
        } else if (at == BCAST_SUBMITTED && !sleeps && bcast_swap(&self->state, state, jobs | BCAST_BUSY)) {
            bcast_next(&self->job->begun);
            bcast_work(self->job, self->worker);
            if (!bcast_swap(&self->state, jobs | BCAST_BUSY, jobs | BCAST_AWAKE)) {
                PyThread_type_lock lock = self->job->lock;
                bcast_store(&self->state, jobs | BCAST_AWAKE);
                PyThread_release_lock(lock);
            }
            until = bcast_clock() + BCAST_SPIN_SECONDS;
        } else {
            bcast_pause();
        }
    }
}

/* Start a helper's thread; returns whether there is one. Its lock stays if there is none. */
static int bcast_start(bcast_helper *helper)
{
#if !defined(_WIN32)
    sigset_t all, before; /* signals are for Python's threads, which must notice them while asleep */
#endif
    if (helper->wake == NULL && (helper->wake = bcast_new_lock()) == NULL)
        return 0;

#if !defined(_WIN32)
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return 0;
#endif
    helper->thread = PyThread_start_new_thread(bcast_help, helper);
#if !defined(_WIN32)
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
    return helper->thread != PYTHREAD_INVALID_THREAD_ID;
}

/* Submit a job to a helper if it has none; returns whether there are threads for more. */
static int bcast_submit_to(bcast_helper *helper, bcast_job *job)
{
    long state = bcast_load(&helper->state), at = state & BCAST_STATES, jobs = state - at + BCAST_ANOTHER_JOB;

    if (at == BCAST_NONE && bcast_clock() < bcast_none_until)
        return 0;
    if (at > BCAST_ASLEEP || !bcast_swap(&helper->state, state, jobs | BCAST_CLAIMED))
        return 1;

    helper->job = job;
    helper->worker = job->helpers + 1;
    helper->cpu = job->cpu;

    if (at == BCAST_NONE && !bcast_start(helper)) {
        bcast_none_until = bcast_clock() + 1;    /* a second later, threads are requested again */
        bcast_store(&helper->state, jobs | BCAST_NONE);
        return 0;
    }
    if (at == BCAST_ASLEEP)
        bcast_keep_off(helper, job->cpu);
    bcast_store(&helper->state, jobs | BCAST_SUBMITTED);
    if (at == BCAST_ASLEEP)
        PyThread_release_lock(helper->wake);

    job->woken += at != BCAST_AWAKE;
    job->submitted[job->helpers] = jobs | BCAST_SUBMITTED;
    job->helper[job->helpers++] = helper;
    return 1;
}

/* Turn some work into a job, and submit it to up to `threads` - 1 helpers. */
static void bcast_submit(bcast_job *job, bcast_share share, void *work, int shares, int threads)
{
    job->share = share;
    job->work = work;
    job->shares = shares;
    job->threads = threads <= BCAST_MAX_HELPERS ? threads : BCAST_MAX_HELPERS + 1;
    for (int i = 0; i < job->threads; i++)
        job->next[i] = bcast_first(job, i);

    job->begun = 0;
    job->cpu = bcast_cpu();
    job->lock = NULL;
    job->helpers = job->woken = 0;

    for (int i = 0; i < BCAST_MAX_HELPERS && job->helpers + 1 < job->threads; i++)
        if (!bcast_submit_to(&bcast_helpers[i], job))
            break;
}

/* Sleep until a helper finishes, if there is a lock for that. */
static void bcast_sleep(bcast_helper *helper, bcast_job *job, long busy)
{
    for (int i = 0; i < BCAST_MAX_HELPERS; i++) {
        if (!bcast_swap(&bcast_waiters[i].claimed, 0, 1))
            continue;

        if (bcast_waiters[i].lock == NULL)
            bcast_waiters[i].lock = bcast_new_lock();
        if ((job->lock = bcast_waiters[i].lock) != NULL
            && bcast_swap(&helper->state, busy, busy - BCAST_BUSY + BCAST_JOINED))
            PyThread_acquire_lock(job->lock, WAIT_LOCK);
        bcast_store(&bcast_waiters[i].claimed, 0);
        return;
    }
}

/* Withdraw a job from the helpers that have not begun, and wait until the others finish; after `until`, asleep. */
static void bcast_join(bcast_job *job, double until)
{
    for (int i = 0; i < job->helpers; i++) {
        const long submitted = job->submitted[i], busy = submitted - BCAST_SUBMITTED + BCAST_BUSY;
        if (bcast_swap(&job->helper[i]->state, submitted, submitted - BCAST_SUBMITTED + BCAST_AWAKE))
            continue;

        while (bcast_load(&job->helper[i]->state) == busy) {
            if (bcast_clock() < until)
                bcast_pause();
            else
                bcast_sleep(job->helper[i], job, busy);
        }
    }
}

/* Whether a helper is searching for a job. */
static int bcast_helper_awake(void)
{
    for (int i = 0; i < BCAST_MAX_HELPERS; i++) {
        long at = bcast_load(&bcast_helpers[i].state) & BCAST_STATES;
        if (at == BCAST_AWAKE)
            return 1;
        if (at == BCAST_NONE)
            break;
    }
    return 0;
}

/* In a child after a fork: the helpers are the parent's, and locks may be in any state. */
static void bcast_forget_helpers(void)
{
    memset(bcast_helpers, 0, sizeof bcast_helpers);
    memset(bcast_waiters, 0, sizeof bcast_waiters);
    bcast_none_until = 0;
}

/* threadpoolctl identifies the library by this name. */
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const int bcast_pool = BCAST_MAX_HELPERS;

#endif
