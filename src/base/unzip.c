/* unzip.c: gzip members (RFC 1952) through zlib's inflate, anything else as it is. */
#define _POSIX_C_SOURCE 200809L /* O_CLOEXEC */
#include "base/unzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { INPUT_BYTES = 1 << 16, GZIP_ALONE = 16 + MAX_WBITS };

struct ft_unzip {
    int file; /* -1: none is open */
    z_stream z;
    bool packed, began; /* began: inside a member */
    bool ended;         /* nothing more comes out */
    unsigned char *input;
    ft_unzip_end end;
    char reason[80], broken[120];
};

static void stop(ft_unzip *u, ft_unzip_end end, const char *sentence, const char *reason)
{
    if (u->end != FT_UNZIP_WHOLE) return; /* the first is the reason */
    u->end = end;
    snprintf(u->reason, sizeof u->reason, "%s", reason);
    snprintf(u->broken, sizeof u->broken, "%s%s", sentence, u->reason);
}

/* More of the file behind what is left of it; false at its end. */
static bool refill(ft_unzip *u)
{
    if (u->z.avail_in > 0) memmove(u->input, u->z.next_in, u->z.avail_in);
    ssize_t got;
    do {
        got = read(u->file, u->input + u->z.avail_in, INPUT_BYTES - u->z.avail_in);
    } while (got < 0 && errno == EINTR);
    if (got < 0) stop(u, FT_UNZIP_UNREADABLE, "it cannot be read: ", strerror(errno));
    u->z.next_in = u->input;
    if (got > 0) u->z.avail_in += (uInt)got;
    return got > 0;
}

static bool at_a_member(ft_unzip *u)
{
    while (u->z.avail_in < 2 && refill(u)) continue;
    return u->z.avail_in >= 2 && u->z.next_in[0] == 0x1F && u->z.next_in[1] == 0x8B;
}

ft_status ft__unzip_open(const char *path, ft_unzip **out, ft_error *err)
{
    *out = NULL;
    ft_unzip *u = calloc(1, sizeof *u);
    if (u) u->input = malloc(INPUT_BYTES);
    if (!u || !u->input || inflateInit2(&u->z, GZIP_ALONE) != Z_OK) {
        if (u) free(u->input);
        free(u);
        return ft__fail_at(err, FT_E_MEMORY, path, 0, 0, "out of memory while reading '%s'", path);
    }
    do {
        u->file = open(path, O_RDONLY | O_CLOEXEC);
    } while (u->file < 0 && errno == EINTR);
    if (u->file < 0) {
        int why = errno;
        ft__unzip_close(u);
        return ft__fail_at(err, FT_E_FILE, path, 0, 0, "cannot open: %s", strerror(why));
    }
    u->packed = u->began = at_a_member(u);
    *out = u;
    return FT_OK;
}

static size_t read_plain(ft_unzip *u, unsigned char *to, size_t most)
{
    if (u->z.avail_in == 0 && !refill(u)) return 0;
    size_t n = u->z.avail_in < most ? u->z.avail_in : most;
    memcpy(to, u->z.next_in, n);
    u->z.next_in += n;
    u->z.avail_in -= (uInt)n;
    return n;
}

/* One step of unpacking; false where nothing more comes. */
static bool unpack(ft_unzip *u)
{
    if (!u->began) {
        if (!at_a_member(u) || inflateReset(&u->z) != Z_OK) return false;
        u->began = true;
    }
    if (u->z.avail_in == 0 && !refill(u)) {
        stop(u, FT_UNZIP_EARLY, "the gzip file ends early", "");
        return false;
    }
    int code = inflate(&u->z, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
        u->began = false;
        return true;
    }
    if (code == Z_OK || code == Z_BUF_ERROR) return true; /* no progress: it wants more input, and gets it */
    stop(u, FT_UNZIP_DAMAGED, "the gzip file is damaged: ", u->z.msg && *u->z.msg ? u->z.msg : "unpacking fails");
    return false;
}

size_t ft__unzip_read(ft_unzip *u, unsigned char *to, size_t most)
{
    if (u->ended || most == 0) return 0;
    if (most > INT32_MAX) most = INT32_MAX;
    size_t got;
    if (!u->packed) {
        got = read_plain(u, to, most);
        u->ended = got == 0;
        return got;
    }
    u->z.next_out = to;
    u->z.avail_out = (uInt)most;
    while (u->z.avail_out > 0 && !u->ended) u->ended = !unpack(u);
    return most - u->z.avail_out;
}

ft_unzip_end ft__unzip_ended(const ft_unzip *u, const char **reason)
{
    if (reason) *reason = u->reason;
    return u->end;
}

const char *ft__unzip_broken(const ft_unzip *u) { return u->broken; }

void ft__unzip_close(ft_unzip *u)
{
    if (!u) return;
    if (u->file >= 0) close(u->file);
    inflateEnd(&u->z);
    free(u->input);
    free(u);
}
