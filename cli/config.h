/* Defaults that the user keeps: a settings file, and FORETELL_* variables above it. Flags stand above both. The library
 * reads neither. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H
#include "base/text.h"
#include "options.h"

enum { CLI_CONFIG_MOST = 64 };

typedef struct cli_config {
    char *file; /* that was read; NULL: none */
    struct cli_default {
        cli_option_id option;
        char *value;
        const char *from; /* "FORETELL_GPU", or the file */
    } defaults[CLI_CONFIG_MOST];
    int count;
    ft_text prices;
} cli_config;

/* $FORETELL_CONFIG (empty: none), or $XDG_CONFIG_HOME/foretell.toml, or ~/.config/foretell.toml; the latter two need
 * not be there. Free it whatever comes back. */
ft_status cli_config_read(cli_config *c, ft_error *err);
void cli_config_free(cli_config *c);
/* Gives the command what it takes and was not given. Values live as long as the configuration. */
void cli_config_apply(const cli_config *c, cli_args *args);
/* Does the command take anything of it? */
bool cli_config_matters(const cli_command *command);
#endif
