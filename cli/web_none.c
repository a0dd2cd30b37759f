/* web_none.c: what a build without libmicrohttpd says of `foretell web`. */
#include "commands.h"
#include "terminal.h"

int cli_web(const cli_args *args)
{
    (void)args;
    return cli_complain(FT_E_UNSUPPORTED,
                        "this build has no server: install libmicrohttpd-dev, then build again; any other file server "
                        "serves the page, too (make web)");
}
