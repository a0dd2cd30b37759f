/* Exchanges as flows through a simulated network: what of them collides, and what that costs.
 *
 * SimGrid does the simulating, in a process of its own: it keeps its state in globals and aborts when something is
 * wrong, which a library must not. This room says what flows there are and takes the times back; who starts the process
 * is the caller's affair (ft_simulator). */
#ifndef FT_COMM_SIMGRID_H
#define FT_COMM_SIMGRID_H
#include "base/arena.h"
#include "comm/collective.h"
#include "comm/platform.h"

/* Runs a scenario and gives back one number of seconds per exchange, from the first byte to the last. A scenario is
 * "xml BYTES\n" and the platform, then for each exchange "flows COUNT\n" and lines of "FROM TO BYTES\n" with hosts by
 * number. */
typedef struct ft_simulator {
    ft_status (*run)(void *user, const char *scenario, size_t length, double *seconds, size_t count, ft_error *err);
    void *user;
} ft_simulator;

/* One exchange: every group of its shape runs it at the same time. */
typedef struct ft_exchanged {
    ft_collective op;
    double bytes;
    ft_group group;
    ft_comm closed;        /* the closed form, as it stands without the simulator */
    const char *algorithm; /* of the closed form without oversubscription */
    double latency_ms;     /* of the closed form without oversubscription: not the wires' */
    double wire_bytes;     /* that one GPU sends into the network */
    double wire_ms;        /* those bytes alone on the wire, at the pace of their protocol: flows are no faster */
    double flows_ms;       /* its flows alone, as simulated: the same where nothing is in their way and no protocol */
    double simulated_ms;   /* latency and flows; -1: not yet simulated */
    int64_t flows;
} ft_exchanged;

enum { FT_MOST_EXCHANGED = 512 };

/* The exchanges of one step: first collected while the closed forms answer, then simulated, then answered from. */
typedef struct ft_simulated {
    ft_arena *arena;
    int64_t ranks;
    ft_platform platform;
    ft_exchanged *rows;
    size_t count;
    bool done;
} ft_simulated;

/* NULL where all ranks sit in one domain: there is no network to simulate. */
ft_status ft__simulated_new(const ft_cluster *cluster, int64_t ranks, ft_arena *arena, ft_simulated **out,
                            ft_error *err);
/* Called by the closed form of an exchange that leaves its node. Before the simulation it notes the exchange down;
 * after it, `out` gets the simulated time. `whole` is the closed form without oversubscription. */
ft_status ft__simulated_ask(ft_simulated *s, ft_collective op, double bytes, const ft_group *group,
                            const ft_comm *whole, ft_comm *out, ft_error *err);
/* Simulates what was collected. */
ft_status ft__simulated_run(ft_simulated *s, const ft_simulator *simulator, ft_error *err);

/* One flow between two hosts. */
typedef struct ft_flow {
    int64_t from, to;
    double bytes;
} ft_flow;
/* The flows of all groups of an exchange, those between the same hosts added up; in the arena. */
ft_status ft__simulated_flows(const ft_simulated *s, const ft_exchanged *e, ft_flow **out, int64_t *count,
                              ft_error *err);
#endif
