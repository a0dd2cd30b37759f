/* foretell-simgrid: flows through a network, by SimGrid. A program of its own, which `foretell` starts.
 *
 * SimGrid keeps its state in globals, takes its settings once per process and aborts when something is wrong: here that
 * hurts nobody. stdin (see src/comm/simgrid.h): "xml BYTES\n" and a platform, then for each exchange "flows COUNT\n"
 * and COUNT lines "FROM TO BYTES\n". stdout: a line of seconds per exchange.
 *
 * Settings. Its standard model (LV08) is calibrated for TCP over Ethernet: 97 % of the bandwidth, 13 times the latency,
 * windows of 4 MiB, acknowledgements that use up the way back. RDMA has none of these: CM02 shares every cable max-min
 * fairly at its full rate; no windows (TCP-gamma 0), no acknowledgements (crosstraffic 0). */
#define _GNU_SOURCE /* mkstemps */
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_HOSTS = 1 << 17 };

static struct {
    sg_host_t *hosts;
    long host_count;
} run;

static void send(int argc, char **argv)
{
    if (argc < 3) return;
    sg_host_sendto(run.hosts[atol(argv[0])], run.hosts[atol(argv[1])], atof(argv[2]));
}

/* Exchanges one after the other, the flows of each at once. */
static void drive(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    long count;
    while (scanf(" flows %ld", &count) == 1) {
        if (count < 0 || count > 1 << 20) break;
        double start = simgrid_get_clock();
        sg_actor_t *senders = calloc((size_t)count + 1, sizeof *senders);
        if (!senders) break;
        for (long i = 0; i < count; i++) {
            long from, to;
            double bytes;
            if (scanf("%ld %ld %lf", &from, &to, &bytes) != 3 || from < 0 || to < 0 || from >= run.host_count ||
                to >= run.host_count) {
                fprintf(stderr, "foretell-simgrid: a flow is not FROM TO BYTES between %ld hosts\n", run.host_count);
                exit(3);
            }
            char text[3][32];
            snprintf(text[0], sizeof text[0], "%ld", from);
            snprintf(text[1], sizeof text[1], "%ld", to);
            snprintf(text[2], sizeof text[2], "%.0f", bytes);
            const char *arguments[] = {text[0], text[1], text[2], NULL};
            senders[i] = sg_actor_create_("flow", run.hosts[from], send, 3, arguments);
            sg_actor_ref(senders[i]);
        }
        for (long i = 0; i < count; i++) {
            sg_actor_join(senders[i], -1);
            sg_actor_unref(senders[i]);
        }
        free(senders);
        printf("%.9g\n", simgrid_get_clock() - start);
    }
}

/* SimGrid reads platforms from files alone. */
static int load_platform(void)
{
    unsigned long length;
    char path[] = "/tmp/foretell-platform-XXXXXX.xml";
    if (scanf("xml %lu", &length) != 1 || length > 1 << 20 || getchar() != '\n') return 0;
    char *text = malloc(length + 1);
    int file = mkstemps(path, 4);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    int fine = text && out && fread(text, 1, length, stdin) == length && fwrite(text, 1, length, out) == length;
    if (out && fclose(out)) fine = 0;
    if (fine) simgrid_load_platform(path);
    if (file >= 0) unlink(path);
    free(text);
    return fine;
}

int main(void)
{
    static char settings[][32] = {"foretell-simgrid",
                                  "--cfg=network/model:CM02",
                                  "--cfg=network/crosstraffic:0",
                                  "--cfg=network/TCP-gamma:0",
                                  "--cfg=network/weight-S:0",
                                  "--cfg=contexts/stack-size:32",
                                  "--cfg=contexts/guard-size:0",
                                  "--log=root.thres:error"};
    enum { COUNT = sizeof settings / sizeof *settings };
    char *arguments[COUNT + 1] = {NULL};
    int count = COUNT;
    for (int i = 0; i < COUNT; i++) arguments[i] = settings[i];
    simgrid_init(&count, arguments);
    if (!load_platform()) {
        fprintf(stderr, "foretell-simgrid: no platform on stdin\n");
        return 3;
    }
    run.host_count = (long)sg_host_count();
    if (run.host_count < 1 || run.host_count > MOST_HOSTS) return 3;
    run.hosts = calloc((size_t)run.host_count, sizeof *run.hosts);
    if (!run.hosts) return 4;
    for (long i = 0; i < run.host_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "h%ld", i);
        run.hosts[i] = sg_host_by_name(name);
        if (!run.hosts[i]) return 3;
    }
    sg_actor_create_("driver", run.hosts[0], drive, 0, NULL);
    simgrid_run();
    free(run.hosts);
    return fflush(stdout) ? 3 : 0;
}
