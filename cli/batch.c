/* batch.c: `foretell batch [FILE]`: JSON Lines in, from a file or stdin, JSON Lines out on stdout, in order.
 *
 * Lines are taken in blocks of about a megabyte: whatever has arrived is answered before more is waited for, so that a
 * program may write one line and wait for its answer, while a file keeps every core busy. A block is answered in rounds
 * of a quarter of a second or so (base/pace.h): a thousand plans come out one after another, and what was answered
 * before Ctrl-C is there. A round is cut into runs of neighbouring lines; each run has its own text to answer into and
 * its own memory of devices, and the texts are written one after another. Memory stays the same however long the input
 * is: one block, a round's answers, and at most one line of the largest size allowed. With --shard only one part of the
 * file is read (shard.c).
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/answer.h"
#include "base/pace.h"
#include "base/parallel.h"
#include "commands.h"
#include "progress.h"
#include "report/json/answer.h"
#include "shard.h"
#include "simulator.h"
#include "terminal.h"

enum { RUNS_PER_THREAD = 4 };
static const size_t block_bytes = (size_t)1 << 20;
static const size_t longest_line = (size_t)16 << 20;

typedef struct line {
    size_t start, length;
    int64_t number;
} line;

/* Neighbouring lines that one thread answers. */
typedef struct run {
    ft_scratch scratch;
    ft_text out;
    bool failed;
} run;

typedef struct batch {
    ft_context *ft;
    const char *named; /* the file that takes the place of stdin; NULL: none does */
    int threads;
    char *bytes; /* read and not yet answered */
    size_t length, room;
    bool ended, skipping; /* skipping: inside a line that is too long */
    int64_t number;       /* of the last line begun */
    bool part;            /* only `left` bytes more are this shard's */
    off_t left;
    line *lines;
    size_t line_count, line_room;
    size_t first, count; /* lines of this round */
    ft_pace pace;
    run *runs;
    size_t run_count, runs_used;
} batch;

/* -- answering --------------------------------------------------------------------------------- */

static void refuse_long(ft_text *out, int64_t number)
{
    ft_error err = {.code = FT_E_RANGE, .message = "the line is longer than 16 MiB"};
    ft__answer_error(out, NULL, &err, number);
    ft__text_add_n(out, "\n", 1);
}

static void answer_run(void *context, size_t index)
{
    batch *b = context;
    run *r = &b->runs[index];
    ft__text_clear(&r->out);
    size_t from = b->first + index * b->count / b->runs_used, end = b->first + (index + 1) * b->count / b->runs_used;
    for (size_t i = from; i < end && !r->out.failed; i++) {
        const line *l = &b->lines[i];
        if (l->length > longest_line) {
            refuse_long(&r->out, l->number);
            continue;
        }
        r->scratch.simulator = &cli_simulator;
        ft__answer(b->ft, &r->scratch, b->bytes + l->start, l->length, l->number, &r->out);
        ft__text_add_n(&r->out, "\n", 1);
    }
    r->failed = r->out.failed;
}

static int answer_round(batch *b)
{
    size_t wanted = (b->count + b->pace.run - 1) / b->pace.run;
    b->runs_used = wanted < b->run_count ? wanted : b->run_count;
    ft__parallel(b->threads, b->runs_used, answer_run, b);
    for (size_t i = 0; i < b->runs_used; i++) {
        if (b->runs[i].failed) return cli_complain(FT_E_MEMORY, "out of memory");
        int status = cli_write(b->runs[i].out.at, b->runs[i].out.length);
        if (status) return status;
    }
    return 0;
}

static int answer_lines(batch *b)
{
    for (b->first = 0; b->first < b->line_count; b->first += b->count) {
        size_t left = b->line_count - b->first;
        b->count = left < b->pace.round ? left : b->pace.round;
        double began = cli_now_s();
        int status = answer_round(b);
        if (status) return status;
        b->pace = ft__pace_next(b->count, cli_now_s() - began, b->run_count);
    }
    return 0;
}

/* -- reading ----------------------------------------------------------------------------------- */

static bool waiting(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

/* Waits for something, then takes what is there until the block is full. */
static int fill(batch *b)
{
    size_t wanted = b->length + block_bytes;
    if (b->room < wanted) {
        char *bytes = realloc(b->bytes, wanted);
        if (!bytes) return cli_complain(FT_E_MEMORY, "out of memory");
        b->bytes = bytes;
        b->room = wanted;
    }
    bool any = false;
    while (b->length < wanted && !b->ended && (!any || waiting())) {
        size_t most = wanted - b->length;
        if (b->part && b->left < (off_t)most) most = (size_t)b->left;
        ssize_t got = most ? read(STDIN_FILENO, b->bytes + b->length, most) : 0;
        if (got < 0) {
            if (errno == EINTR) continue;
            return b->named ? cli_complain(FT_E_FILE, "%s: cannot read requests: %s", b->named, strerror(errno))
                            : cli_complain(FT_E_FILE, "cannot read stdin: %s", strerror(errno));
        }
        if (got == 0) b->ended = true;
        b->length += (size_t)got;
        b->left -= b->part ? got : 0;
        any = true;
    }
    return 0;
}

static bool keep_line(batch *b, size_t start, size_t length)
{
    b->number++;
    if (ft__text_blank(b->bytes + start, length)) return true;
    if (b->line_count == b->line_room) {
        size_t room = b->line_room ? 2 * b->line_room : 4096;
        line *lines = realloc(b->lines, room * sizeof *lines);
        if (!lines) return false;
        b->lines = lines;
        b->line_room = room;
    }
    b->lines[b->line_count++] = (line){start, length, b->number};
    return true;
}

/* The rest of a line that was refused already. */
static size_t skip(batch *b)
{
    if (!b->skipping) return 0;
    char *end = memchr(b->bytes, '\n', b->length);
    if (end) b->skipping = false;
    return end ? (size_t)(end - b->bytes) + 1 : b->length;
}

/* Cuts the block into lines; what is left behind the last line break moves to the front. */
static int take_block(batch *b)
{
    size_t at = skip(b);
    b->line_count = 0;
    while (at < b->length) {
        char *end = memchr(b->bytes + at, '\n', b->length - at);
        if (!end && !b->ended) break;
        size_t length = end ? (size_t)(end - (b->bytes + at)) : b->length - at;
        if (!keep_line(b, at, length)) return cli_complain(FT_E_MEMORY, "out of memory");
        at += length + (end != NULL);
    }
    int status = answer_lines(b);
    b->length -= at;
    memmove(b->bytes, b->bytes + at, b->length);
    if (status || b->length <= longest_line) return status;
    ft_text out = {0};
    b->skipping = true;
    b->length = 0;
    refuse_long(&out, ++b->number);
    return cli_print(&out);
}

/* -- the command ------------------------------------------------------------------------------- */

static int run_batch(batch *b)
{
    b->run_count = (size_t)(b->threads > 1 ? b->threads * RUNS_PER_THREAD : 1);
    b->runs = calloc(b->run_count, sizeof *b->runs);
    if (!b->runs) return cli_complain(FT_E_MEMORY, "out of memory");
    b->pace = ft__pace_begin();
    if (isatty(STDIN_FILENO)) fputs("foretell: one JSON request per line; end with Ctrl-D\n", stderr);
    int status = 0;
    while (!status && !b->ended) {
        status = fill(b);
        if (!status) status = take_block(b);
    }
    return status;
}

/* A file that is named takes the place of stdin; "-" is stdin, as elsewhere. */
static int take_file(const cli_args *args)
{
    struct stat about;
    if (!args->operand_count || !strcmp(args->operands[0], "-")) return 0;
    int file;
    do file = open(args->operands[0], O_RDONLY | O_CLOEXEC);
    while (file < 0 && errno == EINTR);
    if (file >= 0 && fstat(file, &about) == 0 && S_ISDIR(about.st_mode)) errno = EISDIR, close(file), file = -1;
    if (file < 0) return cli_complain(FT_E_FILE, "%s: cannot read requests: %s", args->operands[0], strerror(errno));
    int status = dup2(file, STDIN_FILENO) < 0
                     ? cli_complain(FT_E_FILE, "%s: cannot read requests: %s", args->operands[0], strerror(errno))
                     : 0;
    close(file);
    return status;
}

int cli_batch(const cli_args *args)
{
    ft_options options = {.predictor = cli_value(args, OPT_PREDICTOR), .calibration = cli_value(args, OPT_CALIBRATION)};
    int64_t threads = 0;
    cli_shard shard = {0};
    ft_error err = {0};
    batch b = {.named = args->operand_count && strcmp(args->operands[0], "-") != 0 ? args->operands[0] : NULL};
    int status = cli_whole(args, OPT_THREADS, 0, 256, &threads);
    if (!status) status = cli_real(args, OPT_QUANTILE, 0.5, 0.99, &options.quantile);
    if (!status) status = cli_shard_read(args, OPT_LINES_SHARD, &shard);
    if (!status) status = take_file(args);
    if (!status && shard.count) status = cli_shard_seek(shard, &b.left, &b.number);
    if (status) return status;
    b.part = shard.count > 0;
    b.threads = threads ? (int)threads : ft__core_count();
    if (ft_open(&b.ft, &options, &err) != FT_OK) return cli_fail(&err);
    status = run_batch(&b);
    for (size_t i = 0; b.runs && i < b.run_count; i++) {
        ft__scratch_free(&b.runs[i].scratch);
        ft__text_free(&b.runs[i].out);
    }
    free(b.runs);
    free(b.lines);
    free(b.bytes);
    ft_close(b.ft);
    return status;
}
