/* web_paths.c: files that a request names, kept under one folder.
 *
 * The library opens what a request calls a model, a GPU, a stack, a host, an engine, a trace or a log, and says what
 * the system said. For a page that is too much: so the process moves into the folder that --files gave, where relative
 * names are looked up, and every string of a request is resolved before the library sees it. One that is absolute,
 * climbs or follows a link must end under the folder, whether it exists or not: a refusal does not tell what is
 * outside. Names of the catalogue and hub ids ("meta-llama/Llama-3.1-8B") are relative names that do not exist, and
 * pass. Without --files the process stands in a folder that was removed: nothing relative exists there.
 *
 * Strings inside a model that is spelled out (a config.json pasted into the page) are passed over: the library opens
 * none of them, and configs remember where they were saved. Somebody who can change links under the folder while a
 * request is read could still lead it outside: the folder is the user's own. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "web_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ft_status web_folder_enter(web_folder *out, const char *path, ft_error *err)
{
    out->given = path != NULL;
    if (path) {
        if (!realpath(path, out->real) || chdir(out->real) != 0)
            return ft__fail_at(err, FT_E_FILE, "--files", 0, 0, "cannot use the folder \"%s\": %s", path,
                               strerror(errno));
        return FT_OK;
    }
    char empty[] = "/tmp/foretell-web-XXXXXX";
    if (!mkdtemp(empty)) return ft__fail(err, FT_E_FILE, "cannot make a folder in /tmp: %s", strerror(errno));
    int failed = chdir(empty);
    rmdir(empty);
    return failed ? ft__fail(err, FT_E_FILE, "cannot enter a folder in /tmp: %s", strerror(errno)) : FT_OK;
}

bool web_folder_concerns(const web_folder *folder, const char *text, size_t length)
{
    return folder->given || memchr(text, '/', length) || memchr(text, '\\', length);
}

static bool climbs(const char *path)
{
    for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/')
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || !at[2])) return true;
    return false;
}

static bool inside(const web_folder *folder, const char *real)
{
    size_t length = strlen(folder->real);
    if (length == 1) return true; /* "/" */
    return !strncmp(real, folder->real, length) && (real[length] == '/' || !real[length]);
}

static ft_status check_text(const web_folder *folder, const char *text, bool *used, ft_error *err)
{
    char real[PATH_MAX];
    bool there = realpath(text, real) != NULL;
    bool suspect = *text == '/' || climbs(text);
    if (!folder->given ? !suspect : there ? inside(folder, real) : !suspect) {
        *used |= there && folder->given;
        return FT_OK;
    }
    return ft__fail(err, FT_E_FILE,
                    folder->given ? "\"%.200s\" is not under the folder that --files gave"
                                  : "\"%.200s\": this server reads no files; start it with --files DIR",
                    text);
}

ft_status web_folder_check(const web_folder *folder, const json_t *request, bool *used, ft_error *err)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_string(request)) return check_text(folder, json_string_value(request), used, err);
    if (json_is_array(request)) {
        json_array_foreach (request, i, value) FT_TRY(web_folder_check(folder, value, used, err));
    }
    if (!json_is_object(request)) return FT_OK;
    json_object_foreach ((json_t *)(uintptr_t)request, key, value) {
        bool spelled_out = !strcmp(key, "model") && json_is_object(value);
        if (!spelled_out && strcmp(key, "id") != 0) FT_TRY(web_folder_check(folder, value, used, err));
    }
    return FT_OK;
}
