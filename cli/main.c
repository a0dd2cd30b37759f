/* main.c: from argv to a command. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "commands.h"
#include "config.h"
#include "sweep.h"
#include "terminal.h"

/* A closed stdin, stdout or stderr would hand its number to the next file opened, and an answer could end up inside a
 * predictor. /dev/null opened the wrong way round keeps the place taken and still makes writing fail. */
static bool keep_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

static int unknown_command(const char *name)
{
    const char *names[32];
    size_t count = 0;
    for (int i = 0; i < cli_command_count; i++) names[count++] = cli_commands[i].name;
    const char *nearest = ft__nearest(name, names, count);
    if (nearest) return cli_usage(NULL, "unknown command \"%s\"; did you mean \"%s\"?", name, nearest);
    return cli_usage(NULL, "unknown command \"%s\"", name);
}

static int print_version(void) { return cli_write("foretell " FT_VERSION "\n", strlen("foretell " FT_VERSION "\n")); }

int cli_help(const cli_args *args)
{
    if (args->operand_count == 0) return cli_print_help(NULL, false);
    const cli_command *command = cli_command_find(args->operands[0]);
    return command ? cli_print_help(command, false) : unknown_command(args->operands[0]);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_help(NULL, true);
        return ft_status_exit(FT_E_USAGE);
    }
    const char *first = argv[1];
    if (!strcmp(first, "--help") || !strcmp(first, "-h")) return cli_print_help(NULL, false);
    if (!strcmp(first, "--version")) return print_version();
    if (!strcmp(first, "--generate") && argc == 3) return cli_generate(argv[2]);
    if (first[0] == '-') return cli_usage(NULL, "a command is expected before the option %s", first);
    const cli_command *command = cli_command_find(first);
    if (!command) return unknown_command(first);
    cli_args args;
    cli_config config = {0};
    int status = cli_parse(command, argc - 2, argv + 2, &args);
    if (!status) cli_expect_json(cli_has(&args, OPT_JSON));
    bool told = !status && (cli_has(&args, OPT_HELP) || cli_has(&args, OPT_VERSION));
    if (!status && !told && cli_config_matters(command) && !cli_has(&args, OPT_NO_CONFIG)) {
        ft_error err = {0};
        if (cli_config_read(&config, &err) == FT_OK)
            cli_config_apply(&config, &args);
        else
            status = cli_fail(&err);
    }
    if (!status) {
        if (cli_has(&args, OPT_HELP))
            status = cli_print_help(command, false);
        else if (cli_has(&args, OPT_VERSION))
            status = print_version();
        else
            status = cli_has(&args, OPT_SWEEP) && command->bit != CLI_KERNEL ? cli_sweep_command(&args)
                                                                             : command->run(&args);
    }
    cli_args_free(&args);
    cli_config_free(&config);
    return status;
}

int main(int argc, char **argv)
{
    if (!keep_standard_files()) return ft_status_exit(FT_E_FILE);
    setlocale(LC_CTYPE, "");  /* only to learn whether the terminal reads UTF-8; numbers stay in the C locale */
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves is told by write() */
    int status = run(argc, argv);
    return status == CLI_READER_LEFT ? 0 : status;
}
