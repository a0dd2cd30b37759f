/* Requests whose steps are written as traces. */
#ifndef FT_TEST_TRACED_REQUESTS_H
#define FT_TEST_TRACED_REQUESTS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/trace/chakra.h"
#include "report/trace/perfetto.h"
#include "steps.h"

#define ALONE "{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"batch\":8,\"seq\":512}"
#define MICROS \
    "{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":128,\"global_batch\":100}"
#define LAID_OUT(model, batch, parallel)                                       \
    "{\"task\":\"train\",\"model\":\"" model                                   \
    "\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":2048,\"global_batch\":" batch \
    ",\"execution\":\"fused\",\"recompute\":\"full\",\"parallel\":" parallel "}"

static const char *const requests[] = {
    ALONE,
    MICROS,
    LAID_OUT("llama-3-8b", "16", "{\"tp\":2,\"pp\":4,\"dp\":2}"),
    LAID_OUT("llama-3-8b", "8", "{\"tp\":2,\"pp\":4,\"schedule\":\"gpipe\",\"sp\":true}"),
    LAID_OUT("llama-3-8b", "16", "{\"tp\":2,\"pp\":4,\"vpp\":2,\"sp\":true,\"zero\":1,\"dp\":2}"),
    LAID_OUT("llama-3-8b", "4", "{\"pp\":2,\"vpp\":17}"),          /* 34 slots: two of them without a layer */
    LAID_OUT("llama-3-8b", "6", "{\"tp\":2,\"pp\":3,\"vpp\":11}"), /* 33: the last without one */
    LAID_OUT("llama-3-405b", "16", "{\"tp\":8,\"pp\":8,\"vpp\":8,\"cp\":2,\"sp\":true}"),
    "{\"task\":\"train\",\"model\":\"gpt3-6.7b\",\"gpu\":\"a100_sxm_80gb\",\"dtype\":\"fp16\",\"batch\":1,\"seq\":2048,"
    "\"global_batch\":16,\"execution\":\"fused\",\"master_weights\":true,\"parallel\":{\"tp\":4,\"pp\":2,\"vpp\":2,"
    "\"dp\":4}}",
    LAID_OUT("llama-3-8b", "8", "{\"pp\":4,\"schedule\":\"zero_bubble\"}"),
    LAID_OUT("llama-3-8b", "8", "{\"pp\":4,\"schedule\":\"dualpipe\"}"),
    LAID_OUT("llama-3-8b", "8", "{\"dp\":8,\"zero\":3}"),
    LAID_OUT("llama-3-8b", "8", "{\"dp\":8,\"zero\":3,\"gather\":\"parameter\"}"),
    LAID_OUT("llama-3-8b", "8", "{\"cp\":2,\"dp\":4}"),
    LAID_OUT("mixtral-8x7b", "8", "{\"ep\":8,\"dp\":8,\"zero\":1}"),
    LAID_OUT("llama-3-405b", "2048", "{\"tp\":8,\"pp\":16,\"dp\":64}"),
};
enum { REQUESTS = sizeof requests / sizeof *requests };
#endif
