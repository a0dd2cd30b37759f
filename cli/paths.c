/* paths.c: where measurements are.
 *
 * The library opens what it is told to open; scan around is the program's part:
 *     --data DIR
 *     $FORETELL_DATA
 *     PREFIX/share/foretell/measurements, PREFIX being where bin/foretell stands
 *     data/measurements in a folder above the program: a build inside the source tree
 */
#define _POSIX_C_SOURCE 200809L
#include "paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fit/fit.h"
#include "study/catalogue.h"
#include "terminal.h"

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The folder of the running program; false where the system does not tell. */
static bool program_folder(char *out, size_t room)
{
    ssize_t length = readlink("/proc/self/exe", out, room - 1);
    if (length <= 0 || (size_t)length >= room - 1) return false;
    out[length] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash) return false;
    *slash = '\0';
    return true;
}

static int take(const char *path, const char *from, char *out, size_t room)
{
    if (strlen(path) >= room) return cli_complain(FT_E_FILE, "%s: the path is too long", from);
    if (!is_folder(path)) return cli_complain(FT_E_FILE, "%s: \"%s\" is not a folder", from, path);
    strcpy(out, path);
    return 0;
}

int cli_data_folder(const cli_args *args, char *out, size_t room)
{
    static const char *const around[] = {"../share/foretell/measurements", "../data/measurements",
                                         "../../data/measurements", "data/measurements"};
    const char *given = cli_value(args, OPT_DATA), *environment = getenv("FORETELL_DATA");
    if (given) return take(given, "--data", out, room);
    if (environment && *environment) return take(environment, "FORETELL_DATA", out, room);
    char folder[4096];
    if (program_folder(folder, sizeof folder))
        for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
            int length = snprintf(out, room, "%s/%s", folder, around[i]);
            if (length > 0 && (size_t)length < room && is_folder(out)) return 0;
        }
    return cli_complain(FT_E_FILE,
                        "no measurements found near the program; name their folder with --data or FORETELL_DATA");
}

int cli_page_folder(const cli_args *args, char *out, size_t room)
{
    static const char *const around[] = {"../share/foretell/web", "web"};
    const char *given = cli_value(args, OPT_PAGE), *environment = getenv("FORETELL_PAGE");
    if (given) return take(given, "--page", out, room);
    if (environment && *environment) return take(environment, "FORETELL_PAGE", out, room);
    char folder[4096];
    bool known = program_folder(folder, sizeof folder);
    for (size_t i = 0; known && i < sizeof around / sizeof *around; i++) {
        int length = snprintf(out, room, "%s/%s", folder, around[i]);
        if (length > 0 && (size_t)length < room && is_folder(out)) return 0;
    }
    *out = '\0';
    return 0;
}

int cli_check_gpus(const char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ft_error err = {0};
        if (ft__gpu_named(names[i], &names[i], &err) != FT_OK) return cli_fail(&err);
    }
    return 0;
}

int cli_check_families(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ft_error err = {0};
        if (ft__cell_known(names[i], &err) != FT_OK) return cli_fail(&err);
    }
    return 0;
}
