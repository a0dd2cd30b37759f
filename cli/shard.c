/* shard.c: one part of a file of lines, so that an array of jobs answers it together.
 *
 * A file is cut into equal parts by bytes, and a line belongs to the part it begins in. Parts are neighbours, in order
 * and without a gap, so that the outputs of all shards, one after another, are what a single run writes. Only the bytes
 * before a shard are looked through, for line breaks, to number its lines as that run would. A pipe has no length and
 * cannot be cut this way: it is refused.
 */
#define _POSIX_C_SOURCE 200809L
#include "shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "terminal.h"

enum { MOST_SHARDS = 1000000, CHUNK = 1 << 16 };

int cli_shard_read(const cli_args *args, cli_option_id option, cli_shard *shard)
{
    const char *text = cli_value(args, option);
    *shard = (cli_shard){0, 0};
    if (!text) return 0;
    char *slash = NULL, *end = NULL;
    errno = 0;
    long long index = strtoll(text, &slash, 10);
    long long count = slash != text && *slash == '/' ? strtoll(slash + 1, &end, 10) : 0;
    if (errno || !end || end == slash + 1 || *end || index < 1 || count < index || count > MOST_SHARDS)
        return cli_complain(FT_E_USAGE, "--shard: expected I/N with I from 1 to N and N up to %d, as 2/8, got \"%s\"",
                            MOST_SHARDS, text);
    *shard = (cli_shard){index, count};
    return 0;
}

/* Where the first line begins that begins at or after `at`; `size` where none does. */
static int line_start(off_t from, off_t at, off_t size, off_t *start)
{
    char bytes[CHUNK];
    *start = at;
    if (at <= from) return 0;
    for (off_t next = at - 1; next < size;) {
        ssize_t got = pread(STDIN_FILENO, bytes, sizeof bytes, next);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cli_complain(FT_E_FILE, "cannot read stdin: %s", strerror(errno));
        if (got == 0) break;
        const char *found = memchr(bytes, '\n', (size_t)got);
        if (found) {
            *start = next + (found - bytes) + 1;
            return 0;
        }
        next += got;
    }
    *start = size;
    return 0;
}

static int count_lines(off_t from, off_t to, int64_t *lines)
{
    char bytes[CHUNK];
    *lines = 0;
    while (from < to) {
        size_t wanted = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
        ssize_t got = pread(STDIN_FILENO, bytes, wanted, from);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cli_complain(FT_E_FILE, "cannot read stdin: %s", strerror(errno));
        if (got == 0) break;
        for (const char *at = bytes, *end = bytes + got; (at = memchr(at, '\n', (size_t)(end - at))); at++) ++*lines;
        from += got;
    }
    return 0;
}

int cli_shard_seek(cli_shard shard, off_t *bytes, int64_t *lines)
{
    struct stat about;
    off_t from = lseek(STDIN_FILENO, 0, SEEK_CUR), first = 0, end = 0;
    if (from < 0 || fstat(STDIN_FILENO, &about) != 0 || !S_ISREG(about.st_mode))
        return cli_complain(FT_E_USAGE,
                            "--shard: stdin is not a file, so its length is not known; write: foretell batch "
                            "--shard %lld/%lld requests.jsonl",
                            (long long)shard.index, (long long)shard.count);
    /* In floating point the product cannot overflow, and neighbours compute the same boundary. */
    double length = about.st_size > from ? (double)(about.st_size - from) : 0;
    off_t size = from + (off_t)length;
    off_t low = from + (off_t)(length * ((double)(shard.index - 1) / (double)shard.count));
    off_t high = shard.index == shard.count ? size
                                            : from + (off_t)(length * ((double)shard.index / (double)shard.count));
    int status = line_start(from, low, size, &first);
    if (!status) status = line_start(from, high, size, &end);
    if (!status) status = count_lines(from, first, lines);
    if (status) return status;
    if (lseek(STDIN_FILENO, first, SEEK_SET) < 0)
        return cli_complain(FT_E_FILE, "cannot read stdin: %s", strerror(errno));
    *bytes = end > first ? end - first : 0;
    return 0;
}
