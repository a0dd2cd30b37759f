/* web_files.c: a flat folder of some megabytes in memory. What a URL says is only ever compared with names that were
 * read at the start: no path that comes from outside reaches the file system. */
#define _POSIX_C_SOURCE 200809L
#include "web_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "web_check.h"

static const size_t largest_file = (size_t)64 << 20;

/* gzip, where it saves a tenth at least. Without memory the plain file serves. */
static void zip(web_file *f)
{
    enum { GZIP = 16 + MAX_WBITS, LEVEL = 6 };
    z_stream z = {0};
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK) return;
    size_t room = deflateBound(&z, f->length);
    char *out = malloc(room);
    z.next_in = (unsigned char *)f->plain;
    z.avail_in = (uInt)f->length;
    z.next_out = (unsigned char *)out;
    z.avail_out = (uInt)room;
    if (out && deflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out < f->length - f->length / 10) {
        f->zipped = out;
        f->zipped_length = z.total_out;
    } else {
        free(out);
    }
    deflateEnd(&z);
}

/* The page asks this server only where its own text says that it is there: <meta name="served-by" content="foretell">.
 */
static ft_status say_who_serves(web_file *f, ft_error *err)
{
    static const char before[] = "name=\"served-by\" content=\"files\"",
                      after[] = "name=\"served-by\" content=\"foretell\"";
    char *at = f->length ? strstr(f->plain, before) : NULL; /* what was read ends in a zero */
    if (!at) return FT_OK;
    size_t head = (size_t)(at - f->plain), more = sizeof after - sizeof before,
           tail = f->length - head - (sizeof before - 1);
    char *longer = malloc(f->length + more + 1);
    if (!longer) return ft__no_memory(err);
    memcpy(longer, f->plain, head);
    memcpy(longer + head, after, sizeof after - 1);
    memcpy(longer + head + sizeof after - 1, at + sizeof before - 1, tail);
    longer[f->length + more] = '\0';
    free(f->plain);
    f->plain = longer;
    f->length += more;
    return FT_OK;
}

static ft_status read_one(web_file *f, const char *folder, const char *name, ft_error *err)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return ft__fail(err, FT_E_FILE, "the path of the page is too long");
    f->name = strdup(name);
    if (!f->name) return ft__no_memory(err);
    FT_TRY(ft__file_read(path, largest_file, &f->plain, &f->length, err));
    if (!strcmp(name, "index.html")) FT_TRY(say_who_serves(f, err));
    f->type = web_mime(name);
    uint64_t hash = ft__hash(f->plain, f->length, 0);
    snprintf(f->etag, sizeof f->etag, "\"%016" PRIx64 "\"", hash);
    snprintf(f->zipped_etag, sizeof f->zipped_etag, "\"%016" PRIx64 "-z\"", hash);
    zip(f);
    return FT_OK;
}

ft_status web_files_read(web_files *out, const char *folder, ft_error *err)
{
    char **names = NULL;
    size_t count = 0;
    memset(out, 0, sizeof *out);
    FT_TRY(ft__folder_list(folder, "", &names, &count, err));
    ft_status s = FT_OK;
    out->at = calloc(count ? count : 1, sizeof *out->at);
    if (!out->at) s = ft__no_memory(err);
    for (size_t i = 0; i < count && s == FT_OK; i++) s = read_one(&out->at[out->count++], folder, names[i], err);
    ft__folder_list_free(names, count);
    if (s != FT_OK) web_files_free(out);
    return s;
}

void web_files_free(web_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->at[i].name);
        free(files->at[i].plain);
        free(files->at[i].zipped);
    }
    free(files->at);
    memset(files, 0, sizeof *files);
}

const web_file *web_files_find(const web_files *files, const char *path)
{
    const char *name = !strcmp(path, "/") ? "index.html" : *path == '/' ? path + 1 : path;
    for (size_t i = 0; i < files->count; i++)
        if (!strcmp(files->at[i].name, name)) return &files->at[i];
    return NULL;
}
