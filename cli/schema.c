/* schema.c: `foretell schema [TASK]`: requests and answers as JSON Schema. */
#include "report/json/schema.h"

#include "commands.h"
#include "terminal.h"

int cli_schema(const cli_args *args)
{
    ft_text out = {0};
    ft_error err = {0};
    if (ft__schema(&out, args->operand_count ? args->operands[0] : NULL, &err) != FT_OK) {
        err.where[0] = '\0'; /* the message has it */
        return cli_fail(&err);
    }
    ft__text_add(&out, "\n");
    return cli_print(&out);
}
