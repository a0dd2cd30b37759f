/* Texts made from the option table at build time. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H
#include "base/text.h"

void cli_add_manual(ft_text *out);
void cli_add_bash(ft_text *out);
void cli_add_zsh(ft_text *out);
void cli_add_fish(ft_text *out);
/* The table of request keys as JSON (key_table.c). */
void cli_add_keys(ft_text *out);
#endif
