/* Files that a request names: only under one folder, and none where no folder was given. */
#ifndef CLI_WEB_PATHS_H
#define CLI_WEB_PATHS_H
#include <limits.h>

#include "base/error.h"
#include "base/json.h"

typedef struct web_folder {
    bool given;
    char real[PATH_MAX]; /* without links; the process stands in it */
} web_folder;

/* Makes `path` (NULL: none) the folder of relative names for the rest of the process. Without one they lead nowhere. */
ft_status web_folder_enter(web_folder *out, const char *path, ft_error *err);
/* Looks at every word of the request that a reader might open. FT_E_FILE: one leads outside. *used: one is a file. */
ft_status web_folder_check(const web_folder *folder, const json_t *request, bool *used, ft_error *err);
/* May this text hold a path at all? False spares taking it apart. */
bool web_folder_concerns(const web_folder *folder, const char *text, size_t length);
#endif
