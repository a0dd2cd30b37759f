/* The page's files, read once: served from memory, packed where that helps. */
#ifndef CLI_WEB_FILES_H
#define CLI_WEB_FILES_H
#include "base/error.h"

typedef struct web_file {
    char *name; /* "app.js" */
    const char *type;
    char *plain;
    size_t length;
    char *zipped; /* NULL: does not get smaller */
    size_t zipped_length;
    char etag[24], zipped_etag[24]; /* with their quotes */
} web_file;

typedef struct web_files {
    web_file *at;
    size_t count;
} web_files;

ft_status web_files_read(web_files *out, const char *folder, ft_error *err);
void web_files_free(web_files *files);
/* By the path of a URL: "/" is index.html, "/app.js" a file; NULL: there is none. Names have no folders. */
const web_file *web_files_find(const web_files *files, const char *path);
#endif
