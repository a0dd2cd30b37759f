/* unzip.c: gzip members (RFC 1952) through zlib's inflate, anything else as it is. */
#include "trace/unzip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { INPUT_BYTES = 1 << 18, GZIP_ALONE = 16 + MAX_WBITS };

struct ft_unzip {
    FILE *file;
    z_stream z;
    bool packed, began; /* began: inside a member */
    bool ended;         /* nothing more comes out */
    unsigned char *input;
    char broken[120];
};

/* More of the file behind what is left of it; false at its end. */
static bool refill(ft_unzip *u)
{
    if (u->z.avail_in > 0) memmove(u->input, u->z.next_in, u->z.avail_in);
    errno = 0;
    size_t got = fread(u->input + u->z.avail_in, 1, INPUT_BYTES - u->z.avail_in, u->file);
    if (got == 0 && ferror(u->file)) snprintf(u->broken, sizeof u->broken, "it cannot be read: %.80s", strerror(errno));
    u->z.next_in = u->input;
    u->z.avail_in += (uInt)got;
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
        return ft__fail(err, FT_E_MEMORY, "out of memory while reading '%s'", path);
    }
    errno = 0;
    u->file = fopen(path, "rb");
    if (!u->file) {
        int why = errno;
        ft__unzip_close(u);
        return ft__fail_at(err, FT_E_FILE, path, 0, 0, "cannot open: %s", why ? strerror(why) : "out of memory");
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

static void damaged(ft_unzip *u)
{
    snprintf(u->broken, sizeof u->broken, "the gzip file is damaged: %.70s",
             u->z.msg && *u->z.msg ? u->z.msg : "unpacking fails");
}

/* One step of unpacking; false where nothing more comes. */
static bool unpack(ft_unzip *u)
{
    if (!u->began) {
        if (!at_a_member(u) || inflateReset(&u->z) != Z_OK) return false;
        u->began = true;
    }
    if (u->z.avail_in == 0 && !refill(u)) {
        if (!u->broken[0]) snprintf(u->broken, sizeof u->broken, "the gzip file ends early");
        return false;
    }
    int code = inflate(&u->z, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
        u->began = false;
        return true;
    }
    if (code == Z_OK || code == Z_BUF_ERROR) return true; /* no progress: it wants more input, and gets it */
    damaged(u);
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

const char *ft__unzip_broken(const ft_unzip *u) { return u->broken; }

void ft__unzip_close(ft_unzip *u)
{
    if (!u) return;
    if (u->file) fclose(u->file);
    inflateEnd(&u->z);
    free(u->input);
    free(u);
}
