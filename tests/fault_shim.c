/* Preloaded into a process, makes chosen allocations fail: those of glibc, mappings, and the start of threads.

   The process arms it by writing to the variables below, which takes no allocation. `test_faults.py` compiles it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *data, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *data);

int faults_armed;           /* While it is 1, allocations are counted, and those */
long faults_from;           /* from this one on, */
long faults_to;             /* before that one, fail. */
long faults_seen;           /* How many there were, */
long faults_failed;         /* and how many of them failed. */

long faults_live;           /* Allocations that have not been freed, */
long faults_mapped;         /* and bytes that have not been unmapped; always counted. */

static int fails(void)
{
    long i;
    if (!__atomic_load_n(&faults_armed, __ATOMIC_RELAXED))
        return 0;
    i = __atomic_fetch_add(&faults_seen, 1, __ATOMIC_RELAXED);
    if (i < faults_from || i >= faults_to)
        return 0;
    __atomic_add_fetch(&faults_failed, 1, __ATOMIC_RELAXED);
    return 1;
}

static void *failed(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *counted(void *data)
{
    if (data != NULL)
        __atomic_add_fetch(&faults_live, 1, __ATOMIC_RELAXED);
    return data;
}

void *malloc(size_t size)
{
    return fails() ? failed() : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? failed() : counted(__libc_calloc(count, size));
}

void *realloc(void *data, size_t size)
{
    if (data == NULL)
        return malloc(size);
    if (size == 0)
        __atomic_sub_fetch(&faults_live, 1, __ATOMIC_RELAXED); /* glibc frees it */
    else if (fails())
        return failed();
    return __libc_realloc(data, size);
}

void *reallocarray(void *data, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return failed();
    return realloc(data, count * size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? failed() : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **data, size_t alignment, size_t size)
{
    void *found = memalign(alignment, size);
    if (found == NULL)
        return ENOMEM;
    *data = found;
    return 0;
}

void free(void *data)
{
    if (data != NULL)
        __atomic_sub_fetch(&faults_live, 1, __ATOMIC_RELAXED);
    __libc_free(data);
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    void *data;
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    data = (void *) syscall(SYS_mmap, address, length, protection, flags, file, offset);
    if (data != MAP_FAILED)
        __atomic_add_fetch(&faults_mapped, (long) length, __ATOMIC_RELAXED);
    return data;
}

void *mmap64(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    return mmap(address, length, protection, flags, file, offset);
}

int munmap(void *address, size_t length)
{
    int status = (int) syscall(SYS_munmap, address, length);
    if (status == 0)
        __atomic_sub_fetch(&faults_mapped, (long) length, __ATOMIC_RELAXED);
    return status;
}

typedef int (*Create)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *);

static Create create;

__attribute__((constructor)) static void find_create(void)
{
    create = (Create) dlsym(RTLD_NEXT, "pthread_create");
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    if (fails() || create == NULL)
        return EAGAIN;
    return create(thread, attributes, start, argument);
}
