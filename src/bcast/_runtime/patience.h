/* Patience with helpers: which calls ask for them, depending on how long they delayed the thread's last calls.

   A helper that loses its CPU in the middle of a share gets it back when the system schedules it again, milliseconds
   later. Whether this will happen again is unknown. The next calls therefore use no helpers for many times the lost
   time, and for twice as long each time it soon happens again. */

#ifndef BCAST_PATIENCE_H
#define BCAST_PATIENCE_H

#include "pool.h"

#define BCAST_LATE_SECONDS (1e-6 * (double) LATE_MICROSECONDS)

/* With glibc, thread-local memory comes with the thread: none is allocated at the first use, when a failure would end
   the process. */
#if defined(_MSC_VER)
#define BCAST_THREAD_LOCAL __declspec(thread)
#elif defined(__GLIBC__)
#define BCAST_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define BCAST_THREAD_LOCAL _Thread_local
#endif

static BCAST_THREAD_LOCAL struct {
    double alone_until; /* until then, this thread's calls use no helpers */
    double wakes_from;  /* before, its calls wake no helper */
    double ended;       /* the end of its last job that requested helpers, with or without any */
    int asked;          /* whether the next job asks for helpers */
    double took;        /* seconds of its last job */
    int doublings;      /* number of times in a row that helpers were late */
} bcast_mine = {0, 0, -1e9, 0, 0, 0};

static double bcast_stopped_at = -1; /* for tests: the time at which the clock is stopped; below 0, it runs */

static double bcast_now(void)
{
    return bcast_stopped_at < 0 ? bcast_clock() : bcast_stopped_at;
}

/* Whether a call gets helpers. If it is not worth `waking` them, it does if one is awake, or if the thread's last job
   ended a moment ago: jobs then follow each other so closely that helpers, once woken, are awake for the next one. */
static int bcast_asks(int waking)
{
    const double now = bcast_now();
    const int often = now - bcast_mine.ended < BCAST_SPIN_SECONDS;
    bcast_mine.asked = 1;
    if (now < bcast_mine.alone_until)
        return 0;
    return bcast_helper_awake() || ((waking || often) && now >= bcast_mine.wakes_from);
}

/* Record how long helpers delayed a call, and whether it woke them in vain. */
static void bcast_note_loss(double seconds, int in_vain)
{
    const double now = bcast_now(), alone = seconds * (double) ALONE_TIMES;

    bcast_mine.ended = now;
    if (in_vain)
        bcast_mine.wakes_from = now + BCAST_LATE_SECONDS; /* to wake a helper costs some 5 us */
    if (seconds > BCAST_LATE_SECONDS) {
        if (now >= bcast_mine.alone_until + alone * (1 << bcast_mine.doublings))
            bcast_mine.doublings = 0;
        else if (bcast_mine.doublings < MAX_DOUBLINGS)
            bcast_mine.doublings++;
        bcast_mine.alone_until = now + alone * (1 << bcast_mine.doublings);
    }
}

/* The CPU time of the calling thread, or the clock's time if that is not known. */
static double bcast_cpu_time(void)
{
#if defined(CLOCK_THREAD_CPUTIME_ID)
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0)
        return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
#endif
    return bcast_clock();
}

/* Run all shares of a job, with up to `threads` - 1 helpers. They can delay the caller when it wakes them, because
   the system may give its CPU to another process; in the middle of a long job, if a helper has displaced that process;
   and when it waits for them in the end. */
static void bcast_run(bcast_share share, void *work, int shares, int threads)
{
    bcast_job job;

    if (threads == 1) {
        for (int i = 0; i < shares; i++)
            share(work, i, 0);
        if (bcast_mine.asked)
            bcast_mine.ended = bcast_now();
        bcast_mine.asked = 0;
        return;
    }

    const int watched = bcast_mine.took > BCAST_LATE_SECONDS; /* reading the CPU time twice is negligible beside it */
    double begun = bcast_clock(), had, lost;

    bcast_submit(&job, share, work, shares, threads);
    lost = bcast_clock() - begun;
    begun += lost;
    had = watched ? bcast_cpu_time() : 0;

    bcast_work(&job, 0);
    bcast_mine.took = bcast_clock() - begun;
    if (watched) {
        double waited = bcast_mine.took - (bcast_cpu_time() - had);
        lost += waited > BCAST_LATE_SECONDS ? waited : 0;
    }

    begun = bcast_clock();
    bcast_join(&job, begun + BCAST_SPIN_SECONDS);
    bcast_note_loss(lost + bcast_clock() - begun, job.woken && !bcast_load(&job.begun));
}

#endif
