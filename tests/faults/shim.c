/* shim.c: a library that is loaded before the C library and lets one call fail. tests/faults/run uses it.
 *
 *   FORETELL_FAULT=CALL:N:HOW   the N-th CALL of the process fails: HOW is the name of an error, or "short": one byte
 *                               is read or written in place of all
 *   FORETELL_FAULT_COUNT=FILE   how often each was called, written there at the end
 *
 * Calls are open, read, write, fsync, close, rename and alloc (malloc, calloc, realloc). Of read, write and close only
 * those of files that open() opened count: not the terminal's, not the pipes'. What is called after the program's own
 * end is not its own: a build that measures coverage writes what it counted there, and would be the one that fails. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* open and open64 are two names here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPEN, READ, WRITE, FSYNC, CLOSE, RENAME, ALLOC, CALLS, FILES = 256 };
static const char *const names[CALLS] = {"open", "read", "write", "fsync", "close", "rename", "alloc"};
static const struct {
    const char *name;
    int code;
} errors[] = {{"ENOSPC", ENOSPC}, {"EINTR", EINTR},   {"EIO", EIO},
              {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}};

static atomic_long counts[CALLS];
static atomic_bool ours[FILES], over;
static int fault_call = -1, fault_code;
static long fault_at;
static bool fault_short;

#define REAL(type, name, ...)         \
    static type (*real)(__VA_ARGS__); \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

typedef int main_function(int, char **, char **);
int __libc_start_main(main_function *main, int count, char **words, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end);
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);

__attribute__((constructor)) static void begin(void)
{
    char said[64];
    const char *fault = getenv("FORETELL_FAULT");
    if (!fault || strlen(fault) >= sizeof said) return;
    strcpy(said, fault);
    char *at = strchr(said, ':'), *how = at ? strchr(at + 1, ':') : NULL;
    if (!how) return;
    *at++ = *how++ = '\0';
    fault_at = atol(at);
    fault_short = !strcmp(how, "short");
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(errors[i].name, how)) fault_code = errors[i].code;
    for (int i = 0; i < CALLS; i++) {
        atomic_store(&counts[i], 0);
        if (!strcmp(names[i], said)) fault_call = i;
    }
}

/* Registered before main() runs, it is called after all that main() registered, and before the destructors. */
static void program_ended(void) { atomic_store(&over, true); }

static main_function *program;

static int begin_program(int count, char **words, char **environment)
{
    if (atexit(program_ended)) abort();
    return program(count, words, environment);
}

int __libc_start_main(main_function *main, int count, char **words, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end)
{
    REAL(int, "__libc_start_main", main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
         void *);
    program = main;
    return real(begin_program, count, words, init, fini, loader_fini, stack_end);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FORETELL_FAULT_COUNT");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (!out) return;
    for (int i = 0; i < CALLS; i++) fprintf(out, "%s %ld\n", names[i], atomic_load(&counts[i]));
    fclose(out);
}

static bool fails(int call)
{
    if (atomic_load(&over)) return false;
    long now = atomic_fetch_add(&counts[call], 1) + 1;
    if (call != fault_call || now != fault_at) return false;
    if (!fault_short) errno = fault_code;
    return true;
}

static bool is_ours(int fd) { return fd >= 0 && fd < FILES && atomic_load(&ours[fd]); }

static int opened(int fd)
{
    if (fd > 2 && fd < FILES) atomic_store(&ours[fd], true);
    return fd;
}

int open(const char *path, int flags, ...)
{
    REAL(int, "open", const char *, int, ...);
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = (mode_t)va_arg(more, int);
        va_end(more);
    }
    return fails(OPEN) ? -1 : opened(real(path, flags, mode));
}

int open64(const char *path, int flags, ...)
{
    REAL(int, "open64", const char *, int, ...);
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = (mode_t)va_arg(more, int);
        va_end(more);
    }
    return fails(OPEN) ? -1 : opened(real(path, flags, mode));
}

ssize_t read(int fd, void *to, size_t length)
{
    REAL(ssize_t, "read", int, void *, size_t);
    if (!is_ours(fd) || !fails(READ)) return real(fd, to, length);
    return fault_short ? real(fd, to, length ? 1 : 0) : -1;
}

ssize_t write(int fd, const void *from, size_t length)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!is_ours(fd) || !fails(WRITE)) return real(fd, from, length);
    return fault_short ? real(fd, from, length ? 1 : 0) : -1;
}

int fsync(int fd)
{
    REAL(int, "fsync", int);
    return fails(FSYNC) ? -1 : real(fd);
}

int close(int fd)
{
    REAL(int, "close", int);
    bool mine = is_ours(fd);
    if (mine) atomic_store(&ours[fd], false);
    if (!mine || !fails(CLOSE)) return real(fd);
    int code = errno;
    real(fd); /* Linux closes it whatever it says */
    errno = code;
    return -1;
}

int rename(const char *from, const char *to)
{
    REAL(int, "rename", const char *, const char *);
    return fails(RENAME) ? -1 : real(from, to);
}

void *malloc(size_t size) { return fails(ALLOC) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails(ALLOC) ? NULL : __libc_calloc(count, size); }
void *realloc(void *at, size_t size) { return fails(ALLOC) ? NULL : __libc_realloc(at, size); }
