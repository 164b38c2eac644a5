/* Turns the wall clock of one process, and of no other: preloaded, it adds the nanoseconds in the file that
 * NOONMARK_TEST_CLOCK names (one int64, mapped, so that a test changes it while the process runs) to CLOCK_REALTIME.
 * Monotonic clocks stay as they are, as they do when the clock of a host is set. CLOCK_REALTIME_COARSE stays, too:
 * handlers of the tests date their calls by it.
 *
 * A wait until an instant of the wall clock gets the true instant, else it would last longer by the offset. The
 * functions of C11 threads, which librdkafka uses, do not go through those of pthreads: glibc binds them internally.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define MONOTONIC_CONDITION 2 /* in __wrefs of glibc's pthread_cond_t */

static const int64_t *offset_ns;
static int (*true_gettime)(clockid_t, struct timespec *);
static int (*true_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*true_cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
static int (*true_sem_timedwait)(sem_t *, const struct timespec *);
static int (*true_sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
static int (*true_mutex_timedlock)(pthread_mutex_t *, const struct timespec *);
static int (*true_cnd_timedwait)(cnd_t *, mtx_t *, const struct timespec *);
static int (*true_mtx_timedlock)(mtx_t *, const struct timespec *);

static void *next_of(const char *name, const char *version) {
    void *found = version == NULL ? NULL : dlvsym(RTLD_NEXT, name, version);
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("NOONMARK_TEST_CLOCK");
    int fd = file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED)
            offset_ns = mapped;
        close(fd);
    }
    true_gettime = next_of("clock_gettime", NULL);
    /* The oldest of two versions, which RTLD_NEXT alone would find, has another layout of the condition. */
    true_cond_timedwait = next_of("pthread_cond_timedwait", "GLIBC_2.3.2");
    true_cond_clockwait = next_of("pthread_cond_clockwait", NULL);
    true_sem_timedwait = next_of("sem_timedwait", NULL);
    true_sem_clockwait = next_of("sem_clockwait", NULL);
    true_mutex_timedlock = next_of("pthread_mutex_timedlock", NULL);
    true_cnd_timedwait = next_of("cnd_timedwait", NULL);
    true_mtx_timedlock = next_of("mtx_timedlock", NULL);
}

static int64_t offset(void) {
    return offset_ns == NULL ? 0 : __atomic_load_n(offset_ns, __ATOMIC_RELAXED);
}

static struct timespec moved(struct timespec at, int64_t by) {
    int64_t whole = (int64_t)at.tv_sec * SECOND + at.tv_nsec + by;
    if (whole < 0)
        whole = 0;
    return (struct timespec){.tv_sec = whole / SECOND, .tv_nsec = whole % SECOND};
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    /* Called before the constructor, by another one. */
    int failed = true_gettime == NULL ? (int)syscall(SYS_clock_gettime, clock, at) : true_gettime(clock, at);
    if (failed == 0 && clock == CLOCK_REALTIME)
        *at = moved(*at, offset());
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, at) == 0 ? base : 0;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    struct timespec at = *until;
    if (!(condition->__data.__wrefs & MONOTONIC_CONDITION))
        at = moved(at, -offset());
    return true_cond_timedwait(condition, mutex, &at);
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict until) {
    struct timespec at = clock == CLOCK_REALTIME ? moved(*until, -offset()) : *until;
    return true_cond_clockwait(condition, mutex, clock, &at);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    struct timespec at = moved(*until, -offset());
    return true_sem_timedwait(semaphore, &at);
}

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until) {
    struct timespec at = clock == CLOCK_REALTIME ? moved(*until, -offset()) : *until;
    return true_sem_clockwait(semaphore, clock, &at);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
    struct timespec at = moved(*until, -offset());
    return true_mutex_timedlock(mutex, &at);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
    struct timespec at = moved(*until, -offset());
    return true_cnd_timedwait(condition, mutex, &at);
}

int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until) {
    struct timespec at = moved(*until, -offset());
    return true_mtx_timedlock(mutex, &at);
}
