/* Responses of the server behind `foretell web`. */
#ifndef CLI_WEB_SEND_H
#define CLI_WEB_SEND_H
#include "base/text.h"
#include "web_files.h"
#include "web_http.h"

const char *web_header(struct MHD_Connection *c, const char *name); /* of the request; NULL: not given */
/* Takes the response; NULL ends the connection. */
enum MHD_Result web_send(struct MHD_Connection *c, int status, struct MHD_Response *response);
/* `text` is ours: freed when it was sent. */
struct MHD_Response *web_json_response(ft_text *text, const char *type);
/* As errors of the library look. `extra` is a header and its value, or NULL. */
enum MHD_Result web_refuse(struct MHD_Connection *c, int status, const char *code, const char *extra, const char *value,
                           const char *format, ...);
enum MHD_Result web_send_file(struct MHD_Connection *c, const web_file *f);
#endif
