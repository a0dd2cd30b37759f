/* Requests and answers as JSON Schema. */
#ifndef FT_REPORT_JSON_SCHEMA_H
#define FT_REPORT_JSON_SCHEMA_H
#include "base/text.h"
#include "foretell.h"

/* The document of one task, or of all (NULL): its root is a request; under "$defs" stand "request.TASK", "answer.TASK"
 * and "error". */
ft_status ft__schema(ft_text *out, const char *task, ft_error *err);

/* Definitions of answers, an object as text in pieces, NULL at the end: made from data/schema/answers.json. */
extern const char *const ft__answer_definitions[];
#endif
