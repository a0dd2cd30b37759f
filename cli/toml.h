/* The part of TOML that a settings file needs: comments, [tables], keys that are bare, quoted or dotted, and values
 * that are text, numbers, switches or a list of texts on one line. Dates, inline tables, lists over several lines and
 * texts of several lines are refused, with the line. */
#ifndef CLI_TOML_H
#define CLI_TOML_H
#include "base/text.h"
#include "foretell.h"

typedef enum cli_toml_type { CLI_TOML_TEXT, CLI_TOML_NUMBER, CLI_TOML_SWITCH, CLI_TOML_LIST } cli_toml_type;

typedef struct cli_toml_value {
    const char *path; /* "prices.h100_sxm": table and key */
    int line;
    cli_toml_type type;
    const char *text; /* TEXT; LIST: its texts, a NUL behind each, `count` of them */
    size_t count;
    double number; /* NUMBER; 0 or 1 of a SWITCH */
} cli_toml_value;

/* Called for each value in the order of the file; what it gets lives for the call. Another status than FT_OK ends the
 * reading. */
typedef ft_status (*cli_toml_sink)(void *user, const cli_toml_value *value, ft_error *err);

/* `where` names the file in errors, which have its line. */
ft_status cli_toml_read(const char *text, size_t length, const char *where, cli_toml_sink sink, void *user,
                        ft_error *err);
#endif
