/* calibrate.c: `foretell calibrate`: hands over to python3 -m foretell.calibrate, because what measures is PyTorch.
 *
 * The Python package is looked for in the source tree that the program was built in, then where Python itself looks
 * (pip install ./python). The measuring asks this very program for forecasts and for the fit: FORETELL_PROGRAM. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "terminal.h"

enum { ROOM = 4096 };

/* What Python runs: the package's own command, or a sentence where there is none. ImportError alone is caught: an error
 * inside the package is a bug and is shown whole. */
static const char bootstrap[] =
    "import sys\n"
    "if sys.version_info < (3, 10):\n"
    "    sys.exit('foretell: calibrate needs Python 3.10 or newer, this is ' + sys.version.split()[0])\n"
    "try:\n"
    "    import foretell.calibrate\n"
    "except ImportError:\n"
    "    print('foretell: calibrate measures with PyTorch through the Python package, which ' + sys.executable +\n"
    "          ' does not have: pip install ./python torch (FORETELL_PYTHON names another Python)', file=sys.stderr)\n"
    "    sys.exit(3)\n"
    "from foretell.calibrate.command import main\n"
    "sys.exit(main(sys.argv[1:]))\n";

/* "--name=value" of every option that was given, but for those of the program itself. False: out of memory. */
static bool add_options(const cli_args *args, char **line, int *count)
{
    for (int i = 0; i < args->given_count; i++) {
        const cli_option *o = &cli_options[args->given[i].option];
        const char *value = args->given[i].value;
        if (o->group == CLI_OUTPUT) continue;
        size_t room = strlen(o->name) + (value ? strlen(value) : 0) + 4;
        char *text = malloc(room);
        if (!text) return false;
        snprintf(text, room, "--%s%s%s", o->name, value ? "=" : "", value ? value : "");
        line[(*count)++] = text;
    }
    return true;
}

/* The program's own path, and of the source tree it stands in the folder "python"; empty where there is none. */
static void look_around(char program[ROOM], char python[ROOM])
{
    static const char *const around[] = {"../python", "../../python"};
    python[0] = '\0';
    ssize_t length = readlink("/proc/self/exe", program, ROOM - 1);
    program[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof around / sizeof *around; i++) {
        char module[ROOM + 64];
        int folder = (int)(slash - program);
        if (snprintf(python, ROOM, "%.*s/%s", folder, program, around[i]) >= ROOM) break;
        snprintf(module, sizeof module, "%s/foretell/calibrate/command.py", python);
        if (!access(module, R_OK)) return;
    }
    python[0] = '\0';
}

static bool set_environment(void)
{
    char program[ROOM], python[ROOM];
    look_around(program, python);
    const char *named = getenv("FORETELL_PROGRAM"), *path = getenv("PYTHONPATH");
    if (program[0] && !(named && *named) && setenv("FORETELL_PROGRAM", program, 1)) return false;
    if (!python[0]) return true;
    size_t room = strlen(python) + (path ? strlen(path) : 0) + 2;
    char *paths = malloc(room);
    if (!paths) return false;
    snprintf(paths, room, "%s%s%s", python, path && *path ? ":" : "", path ? path : "");
    bool set = !setenv("PYTHONPATH", paths, 1);
    free(paths);
    return set;
}

int cli_calibrate(const cli_args *args)
{
    const char *python = getenv("FORETELL_PYTHON");
    if (!python || !*python) python = "python3";
    char **line = calloc((size_t)args->given_count + 4, sizeof *line), command[sizeof bootstrap];
    int count = 0, status = 0;
    memcpy(command, bootstrap, sizeof bootstrap);
    if (!line) return cli_complain(FT_E_MEMORY, "out of memory");
    char interpreter[ROOM], flag[] = "-c";
    int first = 3;
    if (snprintf(interpreter, sizeof interpreter, "%s", python) >= ROOM) {
        free(line);
        return cli_complain(FT_E_FILE, "FORETELL_PYTHON: the path is too long");
    }
    line[0] = interpreter;
    line[1] = flag;
    line[2] = command;
    count = first;
    if (!add_options(args, line, &count) || !set_environment())
        status = cli_complain(FT_E_MEMORY, "out of memory");
    else {
        execvp(interpreter, line);
        status = cli_complain(FT_E_FILE,
                              "calibrate measures with PyTorch and cannot start \"%s\": %s; install Python and "
                              "the package (pip install ./python torch), or name a Python in FORETELL_PYTHON",
                              interpreter, strerror(errno));
    }
    for (int i = first; i < count; i++) free(line[i]);
    free(line);
    return status;
}
