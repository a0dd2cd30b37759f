/* file.c: whole files, mappings and folders, by names that come from outside.
 *
 * Every failure names the file and says what the system said. Writing goes through a temporary file in the same folder
 * and a rename, so that a reader sees the old file or the new one and a full disk leaves the old one whole; devices
 * and pipes (/dev/stdout) are written straight. Reading takes pipes too, so nothing relies on a size known before.
 */
#define _GNU_SOURCE /* O_CLOEXEC and strdup under -std=c17 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __wasi__ /* files there are a page's: no links to follow */
#define realpath(path, real) ((void)(real), (char *)NULL)
#endif

/* strerror_r has two incompatible forms; glibc's returns the text. */
ft_status ft__file_fault(ft_error *err, const char *verb, const char *path, int code)
{
    if (code == ENOMEM) return ft__fail_at(err, FT_E_MEMORY, path, 0, 0, "out of memory while reading it");
    char buffer[128];
#ifdef __GLIBC__
    const char *reason = strerror_r(code, buffer, sizeof buffer);
#else
    const char *reason = strerror_r(code, buffer, sizeof buffer) == 0 ? buffer : "unknown reason";
#endif
    return ft__fail_at(err, FT_E_FILE, path, 0, 0, "cannot %s: %s", verb, reason);
}

bool ft__file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static int open_to_read(const char *path)
{
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

ft_status ft__file_read(const char *path, size_t cap, char **out, size_t *length, ft_error *err)
{
    *out = NULL;
    *length = 0;
    int fd = open_to_read(path);
    if (fd < 0) return ft__file_fault(err, "open", path, errno);

    /* The size is a hint: right for files, zero for pipes. One byte more than it, so that the end shows at once. */
    struct stat info;
    size_t room = 64 * 1024;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        if (cap && (uintmax_t)info.st_size > cap)
            room = cap;
        else
            room = (size_t)info.st_size;
    }
    char *text = NULL;
    size_t used = 0;
    ft_status status = FT_OK;
    for (;;) {
        if (!text || used == room) {
            if (text) room = room > SIZE_MAX / 4 ? SIZE_MAX / 2 : room * 2;
            char *larger = realloc(text, room + 2);
            if (!larger) {
                status = ft__file_fault(err, "read", path, ENOMEM);
                break;
            }
            text = larger;
        }
        size_t ask = room + 1 - used;
        ssize_t got = read(fd, text + used, ask > SSIZE_MAX ? SSIZE_MAX : ask);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = ft__file_fault(err, "read", path, errno);
            break;
        }
        if (got == 0) break;
        used += (size_t)got;
        if (cap && used > cap) {
            status = ft__fail_at(err, FT_E_FILE, path, 0, 0, "the file is larger than %zu bytes, the most that is read",
                                 cap);
            break;
        }
        if (used > room) room = used;
    }
    close(fd);
    if (status != FT_OK) {
        free(text);
        return status;
    }
    text[used] = '\0';
    *out = text;
    *length = used;
    return FT_OK;
}

static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, data, length > SSIZE_MAX ? SSIZE_MAX : length);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        data += put;
        length -= (size_t)put;
    }
    return 0;
}

/* A name beside `path` that nobody has yet, created. mkstemp would do, but makes files that only the owner reads. */
static int open_temporary(const char *path, char *name, size_t room)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        int length = snprintf(name, room, "%s.%ld-%d.tmp", path, (long)getpid(), attempt);
        if (length < 0 || (size_t)length >= room) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || (errno != EEXIST && errno != EINTR)) return fd; /* interrupted: the next name */
    }
    return -1;
}

ft_status ft__file_write(const char *path, const void *data, size_t length, ft_error *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0) return ft__file_fault(err, "write", path, errno);
        int code = write_all(fd, data, length);
        if (close(fd) != 0 && !code) code = errno;
        return code ? ft__file_fault(err, "write", path, code) : FT_OK;
    }

    /* A link stays a link: the file behind it is replaced. */
    char real[PATH_MAX], temporary[PATH_MAX + 64];
    const char *target = realpath(path, real) ? real : path;
    int fd = open_temporary(target, temporary, sizeof temporary);
    if (fd < 0) return ft__file_fault(err, "write", path, errno);
    int code = write_all(fd, data, length);
    if (!code && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) code = errno;
    if (close(fd) != 0 && !code) code = errno;
    if (!code && rename(temporary, target) != 0) code = errno;
    if (code) {
        unlink(temporary);
        return ft__file_fault(err, "write", path, code);
    }
    return FT_OK;
}

static ft_status map(const char *path, int how, const void **out, size_t *length, ft_error *err)
{
    *out = NULL;
    *length = 0;
    int fd = open_to_read(path);
    if (fd < 0) return ft__file_fault(err, "open", path, errno);
    struct stat info;
    ft_status status = FT_OK;
    if (fstat(fd, &info) != 0) {
        status = ft__file_fault(err, "read", path, errno);
    } else if (!S_ISREG(info.st_mode)) {
        status = ft__fail_at(err, FT_E_FILE, path, 0, 0, "cannot read: it is not a regular file");
    } else if ((uintmax_t)info.st_size > SIZE_MAX / 2) {
        status = ft__file_fault(err, "read", path, EFBIG);
    } else if (info.st_size == 0) {
        *out = ""; /* mmap refuses length 0; an empty file is no error here */
    } else {
        void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE | how, fd, 0);
        if (at == MAP_FAILED) {
            status = ft__file_fault(err, "read", path, errno);
        } else {
            *out = at;
            *length = (size_t)info.st_size;
        }
    }
    close(fd);
    return status;
}

ft_status ft__file_map(const char *path, const void **out, size_t *length, ft_error *err)
{
    return map(path, MAP_POPULATE, out, length, err);
}

ft_status ft__file_map_lazily(const char *path, const void **out, size_t *length, ft_error *err)
{
    return map(path, 0, out, length, err);
}

void ft__file_unmap(const void *at, size_t length)
{
    if (at && length) munmap((void *)(uintptr_t)at, length);
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);
    return n >= s && memcmp(name + n - s, suffix, s) == 0;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

ft_status ft__folder_list(const char *path, const char *suffix, char ***out, size_t *count, ft_error *err)
{
    *out = NULL;
    *count = 0;
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOENT ? FT_OK : ft__file_fault(err, "list", path, errno);
    char **names = NULL;
    size_t used = 0, room = 0;
    int code = 0;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (!entry) {
            code = errno;
            break;
        }
        if (entry->d_name[0] == '.' || !ends_in(entry->d_name, suffix)) continue;
        if (used == room) {
            room = room ? room * 2 : 32;
            char **larger = realloc(names, room * sizeof *names);
            if (!larger) {
                code = ENOMEM;
                break;
            }
            names = larger;
        }
        names[used] = strdup(entry->d_name);
        if (!names[used]) {
            code = ENOMEM;
            break;
        }
        used++;
    }
    closedir(folder);
    if (code) {
        ft__folder_list_free(names, used);
        return ft__file_fault(err, "list", path, code);
    }
    if (used) qsort(names, used, sizeof *names, by_name);
    *out = names;
    *count = used;
    return FT_OK;
}

void ft__folder_list_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
}

/* FNV-1a with the usual offset basis folded into the seed, so that seed 0 is the published hash. */
uint64_t ft__hash(const void *data, size_t length, uint64_t seed)
{
    const unsigned char *at = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (size_t i = 0; i < length; i++) {
        hash ^= at[i];
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}
