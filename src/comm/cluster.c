/* From a request's words, a name or a file to tiers. */
#include "comm/cluster.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "comm/catalogue.h"
#include "comm/cluster_file.h"
#include "comm/inside.h"
#include "comm/nccl.h"
#include "comm/pcie_box.h"
#include "comm/platform.h"
#include "device/traits.h"

typedef struct asked {
    int64_t gpus_per_node, nodes; /* 0: not said */
    const char *interconnect, *topology;
    double oversubscription;
    int64_t leaf_nodes;
    bool tree; /* a fat tree, or what is read as one */
} asked;

/* -- between nodes ----------------------------------------------------------------------------- */

/* A fabric or a server as people write its name: "AWS p5", "DGX-H100", "gb200 nvl72". */
static void folded(const char *text, char *out, size_t room)
{
    size_t n = 0;
    for (; *text && n + 1 < room; text++)
        out[n++] = *text == ' ' || *text == '-' ? '_' : (char)tolower((unsigned char)*text);
    out[n] = 0;
}

static ft_status unknown_name(const char *text, ft_error *err)
{
    const char *names[160];
    size_t n = 0;
    for (size_t i = 0; i < ft__fabric_count && n < 160; i++) names[n++] = ft__fabrics[i].name;
    for (size_t i = 0; i < ft__server_count && n < 160; i++) names[n++] = ft__servers[i].name;
    const char *near = ft__nearest(text, names, n);
    if (near)
        return ft__fail_at(err, FT_E_NAME, "cluster.interconnect", 0, 0,
                           "unknown interconnect \"%.*s\"; did you mean \"%s\"?", (int)ft__utf8_cut(text, 80), text,
                           near);
    return ft__fail_at(err, FT_E_NAME, "cluster.interconnect", 0, 0,
                       "unknown interconnect \"%.*s\"; expected a name (ib_ndr400, roce_400, efa_400, dgx_h100), a "
                       ".json file, or words with a rate (\"8x200 Gb/s InfiniBand per node\")",
                       (int)ft__utf8_cut(text, 80), text);
}

static void network_tier(const ft_fabric_entry *f, double gbps, ft_tier *t)
{
    *t = (ft_tier){.fabric = f->fabric, .gbps = gbps, .efficiency = f->efficiency, .latency_us = f->latency_us};
    t->switched = true;
    t->reduces = f->reduces;
    t->oversubscription = 1;
    snprintf(t->name, sizeof t->name, "%s", f->name);
}

static void from_server(const ft_server_entry *s, ft_cluster *c, asked *a, ft_tier *t)
{
    const ft_fabric_entry *f = ft__fabric_find(s->fabric);
    if (!a->gpus_per_node) a->gpus_per_node = s->gpus_per_node;
    double ports = (double)s->nics_per_node / (double)s->gpus_per_node;
    network_tier(f ? f : &ft__fabrics[0], s->nic_gbit / 8 * ports, t);
    t->oversubscription = s->oversubscription;
    c->rails = s->rails;
    c->leaf_nodes = s->leaf_nodes;
    snprintf(c->name, sizeof c->name, "%s", s->name);
}

/* A GPU whose usual server nobody entered: a port of its time for each GPU that has links, for two that have none. */
static void from_age(const ft_device *device, ft_tier *t)
{
    double gbit = device->server_nic_gbit;
    bool links = !ft__over_pcie(device) && !ft__bridged(device);
    const ft_fabric_entry *f = ft__fabric_nearest(links ? FT_INFINIBAND : FT_ROCE, links ? gbit : fmin(gbit, 100));
    network_tier(f, f->gbit / 8 / (links ? 1 : 2), t);
}

static ft_status from_text(const ft_network *n, const ft_device *device, double per_node, ft_tier *t, ft_error *err)
{
    double usual = device->server_nic_gbit;
    /* "400 Gbps EFA" on an A100 node: more than any port had then is the node's. */
    bool of_node = n->scope == FT_PER_NODE ||
                   (n->scope == FT_PER_PORT && n->ports <= 0 && !n->generation && n->gbit > usual);
    double port = of_node ? (n->generation ? n->port_gbit : fmin(usual, n->gbit)) : n->port_gbit;
    const ft_fabric_entry *named = n->entry ? ft__fabric_find(n->entry) : NULL,
                          *f = named ? named : ft__fabric_nearest(n->kind, port > 0 ? port : usual);
    double gbps = (n->gbit > 0 ? n->gbit : f->gbit) / 8;
    if (of_node)
        gbps /= per_node;
    else if (n->ports > 0)
        gbps *= n->scope == FT_PER_GPU ? n->ports : n->ports / per_node;
    if (!(gbps >= 1e-3 && gbps <= 1e5)) /* as a cluster file's tiers */
        return ft__fail_at(err, FT_E_RANGE, "cluster.interconnect", 0, 0,
                           "that is %.3g GB/s for each of a node's %.0f GPUs; expected from 0.001 to 100000", gbps,
                           per_node);
    network_tier(f, gbps, t);
    return FT_OK;
}

static ft_status read_topology(asked *a, ft_cluster *c, ft_tier *t, ft_error *err)
{
    static const char *const words[] = {"rails",    "rail_optimised", "rail_optimized", "rail",
                                        "fat_tree", "dragonfly",      "leaf_spine"};
    if (a->oversubscription > 0) t->oversubscription = a->oversubscription;
    if (a->leaf_nodes > 0) c->leaf_nodes = a->leaf_nodes;
    if (!a->topology) return FT_OK;
    char word[40] = "";
    for (size_t i = 0; i < sizeof word - 1 && a->topology[i]; i++) {
        char ch = (char)tolower((unsigned char)a->topology[i]);
        word[i] = ch == ' ' || ch == '-' ? '_' : ch;
    }
    char *colon = strstr(word, ":1");
    if (colon && !colon[2]) { /* "fat tree 2:1" */
        char *digits = colon;
        while (digits > word && (isdigit((unsigned char)digits[-1]) || digits[-1] == '.')) digits--;
        double over;
        *colon = 0;
        if (!ft__number_parse(digits, &over) || over < 1 || over > 1000)
            return ft__fail_at(err, FT_E_RANGE, "cluster.topology", 0, 0,
                               "oversubscription in \"%.60s\" must be from 1:1 to 1000:1", a->topology);
        t->oversubscription = over;
        *digits = 0;
        while (digits > word && digits[-1] == '_') *--digits = 0;
        if (!*word) return FT_OK;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i])) {
            /* How many nodes hang on a leaf of the server's usual shape says nothing about another. */
            if (c->rails != (i < 4) && a->leaf_nodes <= 0) c->leaf_nodes = 0;
            c->rails = i < 4;
            a->tree = !c->rails;
            return FT_OK;
        }
    const char *near = ft__nearest(word, words, sizeof words / sizeof *words);
    if (near)
        return ft__fail_at(err, FT_E_NAME, "cluster.topology", 0, 0, "unknown topology \"%.60s\"; did you mean \"%s\"?",
                           a->topology, near);
    return ft__fail_at(err, FT_E_NAME, "cluster.topology", 0, 0,
                       "unknown topology \"%.60s\"; expected rails, fat_tree or dragonfly, with \"2:1\" where it is "
                       "oversubscribed",
                       a->topology);
}

/* -- in words ---------------------------------------------------------------------------------- */

/* What fewer GPUs than a mesh joins have of its wires: two of them, and as many as take part. */
static void describe_mesh(const ft_tier *t, int64_t ranks, char *out, size_t room)
{
    double pair = ft__tier_share(t, 2), group = ft__tier_share(t, ranks);
    int n = pair < 1 ? snprintf(out, room, ", %.4g between two", t->gbps * pair) : 0;
    if (n > 0 && (size_t)n < room && group < 1 && ranks > 2)
        snprintf(out + n, room - (size_t)n, ", %.4g among %lld", t->gbps * group, (long long)ranks);
}

/* `tree`: somebody said so; servers that are usually joined so need not be told. */
static void describe(ft_cluster *c, int64_t ranks, bool tree, const char *why)
{
    int n = snprintf(c->understood, sizeof c->understood, "%lld node%s of %lld GPU%s", (long long)c->nodes,
                     c->nodes == 1 ? "" : "s", (long long)c->gpus_per_node, c->gpus_per_node == 1 ? "" : "s");
    for (int i = 0; i < c->tiers; i++) {
        const ft_tier *t = &c->tier[i];
        if (n < 0 || (size_t)n >= sizeof c->understood) return;
        const char *reach = t->fabric < FT_INFINIBAND                     ? "within"
                            : i && c->tier[i - 1].gpus > c->gpus_per_node ? "between those, all" /* racks */
                                                                          : "between nodes, all";
        char mesh[80] = "";
        describe_mesh(t, ranks, mesh, sizeof mesh);
        n += snprintf(c->understood + n, sizeof c->understood - (size_t)n, "; %s %.4g GB/s per GPU %s %lld GPUs%s",
                      t->name, t->gbps, reach, (long long)t->gpus, mesh);
        if (t->oversubscription > 1 && n > 0 && (size_t)n < sizeof c->understood)
            n += snprintf(c->understood + n, sizeof c->understood - (size_t)n, ", %.3g:1 oversubscribed",
                          t->oversubscription);
    }
    if (n > 0 && (size_t)n < sizeof c->understood)
        snprintf(c->understood + n, sizeof c->understood - (size_t)n, "%s%s",
                 c->rails                                                            ? "; rails"
                 : tree && c->tiers && c->tier[c->tiers - 1].fabric >= FT_INFINIBAND ? "; fat tree"
                                                                                     : "",
                 why);
}

/* -- the whole --------------------------------------------------------------------------------- */

/* A file's own name and source come last: no request has them. */
static const char *const known_keys[] = {"gpus_per_node", "nodes", "interconnect", "topology", "oversubscription",
                                         "leaf_nodes",    "tiers", "network",      "nccl",     "name",
                                         "source"};

bool ft__cluster_key(const char *said)
{
    for (size_t i = 0; i + 2 < sizeof known_keys / sizeof *known_keys; i++)
        if (!strcmp(said, known_keys[i])) return true;
    return false;
}

static ft_status read_keys(const json_t *object, asked *a, const json_t **tiers, const char **name, const char *where,
                           ft_error *err)
{
    if (!json_is_object(object))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0,
                           "\"cluster\" must be an object: {\"gpus_per_node\": 8, \"interconnect\": \"ib_ndr400\"}");
    FT_TRY(ft__json_known_keys(object, known_keys, sizeof known_keys / sizeof *known_keys, where, err));
    FT_TRY(ft__json_whole(object, "gpus_per_node", FT_OPTIONAL, 1, 4096, &a->gpus_per_node, where, err));
    FT_TRY(ft__json_whole(object, "nodes", FT_OPTIONAL, 1, FT_MOST_RANKS, &a->nodes, where, err));
    FT_TRY(ft__json_string(object, "interconnect", FT_OPTIONAL, &a->interconnect, where, err));
    FT_TRY(ft__json_string(object, "topology", FT_OPTIONAL, &a->topology, where, err));
    FT_TRY(ft__json_number(object, "oversubscription", FT_OPTIONAL, 1, 1000, &a->oversubscription, where, err));
    FT_TRY(ft__json_whole(object, "leaf_nodes", FT_OPTIONAL, 1, FT_MOST_RANKS, &a->leaf_nodes, where, err));
    FT_TRY(ft__json_string(object, "name", FT_OPTIONAL, name, where, err));
    *tiers = json_object_get(object, "tiers");
    return FT_OK;
}

static ft_status check_size(const asked *a, int64_t ranks, ft_cluster *c, ft_error *err)
{
    c->nodes = a->nodes ? a->nodes : (ranks + c->gpus_per_node - 1) / c->gpus_per_node;
    c->gpus = c->nodes * c->gpus_per_node;
    if (c->gpus < ranks)
        return ft__fail_at(err, FT_E_RANGE, "cluster.nodes", 0, 0,
                           "%lld ranks do not fit on %lld node%s of %lld GPUs; %lld nodes would hold them",
                           (long long)ranks, (long long)c->nodes, c->nodes == 1 ? "" : "s", (long long)c->gpus_per_node,
                           ((long long)ranks + c->gpus_per_node - 1) / c->gpus_per_node);
    return FT_OK;
}

/* Tiers given one by one: nothing is guessed. */
static ft_status from_tiers(const json_t *tiers, const char *where, const char *name, asked *a, int64_t ranks,
                            ft_cluster *out, ft_error *err)
{
    FT_TRY(ft__cluster_tiers(tiers, where, ranks, out, err));
    int64_t node = 1;
    for (int i = 0; i < out->tiers; i++)
        if (out->tier[i].fabric < FT_INFINIBAND) node = out->tier[i].gpus;
    out->gpus_per_node = a->gpus_per_node ? a->gpus_per_node : node;
    snprintf(out->name, sizeof out->name, "%s", name ? name : "");
    FT_TRY(check_size(a, ranks, out, err));
    FT_TRY(read_topology(a, out, &out->tier[out->tiers - 1], err));
    describe(out, ranks, a->tree, "");
    return FT_OK;
}

static bool is_path(const char *s)
{
    size_t n = strlen(s);
    return n > 5 && !strcmp(s + n - 5, ".json");
}

static ft_status from_words(asked *a, const ft_device *device, int64_t ranks, ft_cluster *out, ft_error *err)
{
    ft_tier network = {0};
    ft_network words = {0};
    const ft_server_entry *usual = ft__server_usual(device->name), *server = NULL;
    const ft_fabric_entry *fabric = NULL;
    const char *said = a->interconnect && *a->interconnect ? a->interconnect : NULL;
    char why[80] = "", inside[240] = "", name[64] = "";
    if (said) {
        folded(said, name, sizeof name);
        server = ft__server_find(name);
        fabric = server ? NULL : ft__fabric_find(name);
        if (!server && !fabric) FT_TRY(ft__network_parse(said, &words, err));
        if (!server && !fabric && !words.known) return unknown_name(said, err);
    }
    if (!server && !fabric && !words.named) { /* nothing was said about the network */
        server = usual;
        snprintf(why, sizeof why, "; network as usual for %.40s", device->name);
    }
    int64_t usual_gpus = usual                                           ? usual->gpus_per_node
                         : device->link_gpus > 1 && !ft__bridged(device) ? device->link_gpus
                                                                         : 8;
    if (server)
        from_server(server, out, a, &network);
    else if (!a->gpus_per_node)
        a->gpus_per_node = usual_gpus;
    if (!server && usual) out->rails = usual->rails && !words.named;
    if (fabric)
        network_tier(fabric, fabric->gbit / 8, &network);
    else if (words.named)
        FT_TRY(from_text(&words, device, (double)a->gpus_per_node, &network, err));
    else if (!server)
        from_age(device, &network);
    if (!a->gpus_per_node) a->gpus_per_node = usual_gpus;
    out->gpus_per_node = a->gpus_per_node;
    FT_TRY(check_size(a, ranks, out, err));
    ft__inner_tiers(device, out->gpus_per_node, &words, out);
    if (out->tiers) ft__inside_said(device, &words, inside, sizeof inside);
    if (out->tiers) ft__slots_said(device, &out->tier[out->tiers - 1], inside, sizeof inside);
    if (words.topology) out->rails = words.topology == FT_RAILS, a->tree = !out->rails;
    if (words.oversubscription > 0) network.oversubscription = words.oversubscription;
    FT_TRY(read_topology(a, out, &network, err)); /* the request's own keys stand before its words */
    int64_t domain = out->tiers ? out->tier[out->tiers - 1].gpus : 1;
    if (out->gpus > domain || !out->tiers) ft__within_slot(device, &words, &network, inside, sizeof inside);
    network.gpus = out->gpus > domain ? out->gpus : domain;
    if (out->gpus > domain || !out->tiers) out->tier[out->tiers++] = network;
    if (out->gpus <= domain) why[0] = 0, out->rails = false;
    strncat(inside, why, sizeof inside - strlen(inside) - 1);
    describe(out, ranks, a->tree, inside);
    return FT_OK;
}

static ft_status read_cluster(const json_t *cluster, const ft_device *device, int64_t ranks, int *nccl, ft_cluster *out,
                              ft_error *err)
{
    asked a = {0};
    const json_t *tiers = NULL;
    const char *name = NULL;
    memset(out, 0, sizeof *out);
    if (ranks < 1 || ranks > FT_MOST_RANKS)
        return ft__fail_at(err, FT_E_RANGE, "parallel", 0, 0, "%lld ranks: a cluster has from 1 to %d",
                           (long long)ranks, FT_MOST_RANKS);
    if (cluster && !json_is_null(cluster)) FT_TRY(read_keys(cluster, &a, &tiers, &name, "cluster", err));
    FT_TRY(ft__network_word(cluster, &out->simulate, err));
    FT_TRY(ft__nccl_read(cluster, "cluster", nccl, err));
    if (tiers) return from_tiers(tiers, "cluster.tiers", name, &a, ranks, out, err);
    if (!a.interconnect || !is_path(a.interconnect)) return from_words(&a, device, ranks, out, err);

    json_t *file = NULL;
    char path[4096], within[4200];
    snprintf(path, sizeof path, "%s", a.interconnect);
    FT_TRY(ft__json_load(path, &file, err));
    asked inner = {0};
    a.interconnect = NULL;
    ft_status s = read_keys(file, &inner, &tiers, &name, path, err);
    if (s == FT_OK && !*nccl) s = ft__nccl_read(file, path, nccl, err);
    if (s == FT_OK) { /* what the request says stands before the file */
        if (a.gpus_per_node) inner.gpus_per_node = a.gpus_per_node;
        if (a.nodes) inner.nodes = a.nodes;
        if (a.topology) inner.topology = a.topology;
        if (a.oversubscription > 0) inner.oversubscription = a.oversubscription;
        if (a.leaf_nodes > 0) inner.leaf_nodes = a.leaf_nodes;
        snprintf(within, sizeof within, "%s: tiers", path);
        if (inner.interconnect && is_path(inner.interconnect))
            s = ft__fail_at(err, FT_E_NAME, path, 0, 0, "a cluster file names a fabric, not another file");
        else
            s = tiers ? from_tiers(tiers, within, name, &inner, ranks, out, err)
                      : from_words(&inner, device, ranks, out, err);
    }
    json_decref(file);
    return s;
}

int64_t ft__cluster_ranks(const ft_cluster *c) { return c->ranks > 0 && c->ranks < c->gpus ? c->ranks : c->gpus; }

int64_t ft__cluster_nodes_used(const ft_cluster *c)
{
    int64_t each = c->gpus_per_node > 0 ? c->gpus_per_node : 1;
    return (ft__cluster_ranks(c) + each - 1) / each;
}

ft_status ft__cluster_read(const json_t *cluster, const ft_device *device, int64_t ranks, ft_cluster *out,
                           ft_error *err)
{
    int nccl = 0;
    FT_TRY(read_cluster(cluster, device, ranks, &nccl, out, err));
    out->ranks = ranks;
    for (int i = 0; i < out->tiers; i++) out->tier[i].nccl = nccl;
    size_t n = strlen(out->understood);
    if (nccl) snprintf(out->understood + n, sizeof out->understood - n, "; NCCL %d.%d", nccl / 100, nccl % 100);
    return FT_OK;
}
