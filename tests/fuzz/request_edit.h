/* Requests that are edited as requests: a mutator that sets, bends and removes keys by the table of keys, so that the
 * fuzzer's time goes behind the JSON reader. A target that links request_edit.c has it. */
#ifndef FUZZ_REQUEST_EDIT_H
#define FUZZ_REQUEST_EDIT_H
#include "base/json.h"

/* A GPU, a model or an answer that is a path would open whatever file the bytes name: any text, however deep. */
bool fuzz_leads_to_a_file(const json_t *value);
#endif
