/*
 * A clock for a whole run of the tests: the time of day is CLOCK_OFFSET seconds ahead, and so are the
 * times of files. It is preloaded into every program of the run; docs/testing.md has the command.
 * Timers and the monotonic clock stay what they are. Linux on x64 with glibc.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <utime.h>

static time_t offset(void) {
  static time_t seconds;
  static int isKnown;
  if (!isKnown) {
    const char *text = getenv("CLOCK_OFFSET");
    seconds = text == NULL ? 0 : atol(text);
    isKnown = 1;
  }
  return seconds;
}

/* The kernel is asked directly: glibc's own functions are those that this file replaces. */
static long ask(long number, long a, long b, long c, long d, long e, long f) {
  long answer;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(answer)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return answer;
}

/* As glibc gives an answer of the kernel: an error's number is in errno. */
static long result(long answer) {
  if (answer >= 0 || answer <= -4096) return answer;
  errno = (int)-answer;
  return -1;
}

/* The time of day. */

int clock_gettime(clockid_t clock, struct timespec *now) {
  long answer = ask(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
  int isOfDay = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
  if (answer == 0 && isOfDay) now->tv_sec += offset();
  return (int)result(answer);
}

int gettimeofday(struct timeval *now, void *zone) {
  long answer = ask(SYS_gettimeofday, (long)now, (long)zone, 0, 0, 0, 0);
  if (answer == 0) now->tv_sec += offset();
  return (int)result(answer);
}

time_t time(time_t *place) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (place != NULL) *place = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
  clock_gettime(CLOCK_REALTIME, now);
  return base;
}

/* Times of files, as they are read. */

int fstatat(int folder, const char *path, struct stat *found, int flags) {
  long answer = ask(SYS_newfstatat, folder, (long)path, (long)found, flags, 0, 0);
  if (answer == 0) {
    found->st_atim.tv_sec += offset();
    found->st_mtim.tv_sec += offset();
    found->st_ctim.tv_sec += offset();
  }
  return (int)result(answer);
}

int stat(const char *path, struct stat *found) { return fstatat(AT_FDCWD, path, found, 0); }
int lstat(const char *path, struct stat *found) { return fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW); }
int fstat(int file, struct stat *found) { return fstatat(file, "", found, AT_EMPTY_PATH); }

/* The same by the names for large files, and by those of before glibc 2.33. */
int stat64(const char *path, struct stat64 *found) { return stat(path, (struct stat *)found); }
int lstat64(const char *path, struct stat64 *found) { return lstat(path, (struct stat *)found); }
int fstat64(int file, struct stat64 *found) { return fstat(file, (struct stat *)found); }
int fstatat64(int folder, const char *path, struct stat64 *found, int flags) {
  return fstatat(folder, path, (struct stat *)found, flags);
}
int __xstat(int version, const char *path, struct stat *found) { return stat(path, found); }
int __lxstat(int version, const char *path, struct stat *found) { return lstat(path, found); }
int __fxstat(int version, int file, struct stat *found) { return fstat(file, found); }
int __xstat64(int version, const char *path, struct stat64 *found) { return stat64(path, found); }
int __lxstat64(int version, const char *path, struct stat64 *found) { return lstat64(path, found); }
int __fxstat64(int version, int file, struct stat64 *found) { return fstat64(file, found); }

int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
  long answer = ask(SYS_statx, folder, (long)path, flags, mask, (long)found, 0);
  if (answer == 0) {
    found->stx_atime.tv_sec += offset();
    found->stx_mtime.tv_sec += offset();
    found->stx_ctime.tv_sec += offset();
    found->stx_btime.tv_sec += offset();
  }
  return (int)result(answer);
}

/* Times of files, as they are set. */

static int setTimes(int folder, const char *path, const struct timespec *times, int flags) {
  struct timespec right[2];
  for (int at = 0; times != NULL && at < 2; at++) {
    right[at] = times[at];
    /* UTIME_NOW and UTIME_OMIT are no times. */
    if (times[at].tv_nsec < 1000000000L) right[at].tv_sec -= offset();
  }
  return (int)result(ask(SYS_utimensat, folder, (long)path, times == NULL ? 0 : (long)right, flags, 0, 0));
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
  return setTimes(folder, path, times, flags);
}
int futimens(int file, const struct timespec times[2]) { return setTimes(file, NULL, times, 0); }

int utimes(const char *path, const struct timeval times[2]) {
  struct timespec set[2];
  for (int at = 0; times != NULL && at < 2; at++) {
    set[at].tv_sec = times[at].tv_sec;
    set[at].tv_nsec = times[at].tv_usec * 1000;
  }
  return setTimes(AT_FDCWD, path, times == NULL ? NULL : set, 0);
}

int utime(const char *path, const struct utimbuf *times) {
  if (times == NULL) return setTimes(AT_FDCWD, path, NULL, 0);
  struct timespec set[2] = {{.tv_sec = times->actime}, {.tv_sec = times->modtime}};
  return setTimes(AT_FDCWD, path, set, 0);
}

/* Waits until a time of day: the kernel and glibc compare with the right one. */

static struct timespec rightTime(const struct timespec *until) {
  struct timespec right = *until;
  right.tv_sec -= offset();
  return right;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (wait == NULL) wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  /* glibc keeps in this bit that a condition is of the monotonic clock. */
  int isMonotonic = (condition->__data.__wrefs & 2) != 0;
  struct timespec right = isMonotonic ? *until : rightTime(until);
  return wait(condition, mutex, &right);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
  static int (*lock)(pthread_mutex_t *, const struct timespec *);
  if (lock == NULL) lock = dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
  struct timespec right = rightTime(until);
  return lock(mutex, &right);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
  static int (*wait)(sem_t *, const struct timespec *);
  if (wait == NULL) wait = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec right = rightTime(until);
  return wait(semaphore, &right);
}

/* Node asks for times of files by number. */
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
  long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
  va_end(list);
  switch (number) {
    case SYS_clock_gettime: return clock_gettime((clockid_t)a, (struct timespec *)b);
    case SYS_gettimeofday: return gettimeofday((struct timeval *)a, (void *)b);
    case SYS_time: return time((time_t *)a);
    case SYS_statx: return statx((int)a, (const char *)b, (int)c, (unsigned)d, (struct statx *)e);
    case SYS_utimensat: return utimensat((int)a, (const char *)b, (const struct timespec *)c, (int)d);
    default: return result(ask(number, a, b, c, d, e, f));
  }
}
