/* What people write about their network, word by word.
 *
 * A text falls into parts at ; , + and "and". A part about NVLink, NVSwitch, xGMI or PCIe says what is inside the node;
 * the first other part with a rate or a fabric's name says the network. Rates are numbers with M, G or T and b or B
 * ("200 Gb/s", "400Gbps", "50 GB/s", "3.2 Tbps", "100GbE"): small b or no letter counts bits, capital B bytes. "8x", or
 * a plain number before a fabric's name or a rate, counts ports of a node; "/node", "per server" and "per GPU" say what
 * it is of. "rail-optimised", "fat tree" and "2:1" are of the whole, as "P2P disabled" is. What is written as a figure
 * is taken or refused, never passed over: a network that is silently another one is worse than a question. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "comm/catalogue.h"
#include "comm/figure.h"

static const double most_gbit = 1e5, least_gbit = 1e-2; /* of a port or a node: 100 Tb/s is no network yet */

typedef struct part {
    double gbit, ports;
    bool size; /* "80 GB": without a second, and no network unless one is named */
    bool per_node, per_gpu, inside_nvlink, inside_xgmi, inside_pcie, p2p, known;
    int kind;          /* ft_fabric or -1 */
    double generation; /* Gbit of HDR, NDR, ...; 0 */
    double pcie_generation, pcie_lanes;
    const char *entry;  /* of the catalogue; NULL: the nearest of its kind */
    const char *before; /* the word before, and its length: "not" oversubscribed, "fat" tree, "per" node */
    size_t before_length;
    double counted; /* the number before this word: "4 HDR", "two ports"; 0 */
} part;

static bool is(const char *word, size_t n, const char *what) { return strlen(what) == n && !strncmp(word, what, n); }
static bool starts(const char *word, size_t n, const char *with)
{
    return n >= strlen(with) && !strncmp(word, with, strlen(with));
}

static double number_at(const char *s, size_t n)
{
    char digits[32];
    double value = 0;
    if (n >= sizeof digits) return 0;
    memcpy(digits, s, n);
    digits[n] = 0;
    return ft__number_parse(digits, &value) ? value : 0;
}

static const struct {
    const char *word;
    int kind;
    double gbit;
} fabrics[] = {{"infiniband", FT_INFINIBAND, 0},
               {"ib", FT_INFINIBAND, 0},
               {"fdr", FT_INFINIBAND, 56},
               {"edr", FT_INFINIBAND, 100},
               {"fdr56", FT_INFINIBAND, 56},
               {"edr100", FT_INFINIBAND, 100},
               {"hdr", FT_INFINIBAND, 200},
               {"hdr100", FT_INFINIBAND, 100},
               {"hdr200", FT_INFINIBAND, 200},
               {"ndr", FT_INFINIBAND, 400},
               {"ndr200", FT_INFINIBAND, 200},
               {"ndr400", FT_INFINIBAND, 400},
               {"xdr", FT_INFINIBAND, 800},
               {"xdr800", FT_INFINIBAND, 800},
               {"mellanox", FT_INFINIBAND, 0},
               {"quantum", FT_INFINIBAND, 0},
               {"roce", FT_ROCE, 0},
               {"rocev2", FT_ROCE, 0},
               {"rdma", FT_ROCE, 0},
               {"efa", FT_EFA, 0},
               {"efav2", FT_EFA, 0},
               {"efav3", FT_EFA, 0},
               {"ethernet", FT_ETHERNET, 0},
               {"gbe", FT_ETHERNET, 0},
               {"tcp", FT_ETHERNET, 0},
               {"tcpx", FT_ETHERNET, 200},
               {"tcpxo", FT_ETHERNET, 200},
               {"slingshot", FT_ETHERNET, 200},
               {"omni", FT_INFINIBAND, 100}, /* "Omni-Path" */
               {"omnipath", FT_INFINIBAND, 100},
               {"opa", FT_INFINIBAND, 100},
               {"opa100", FT_INFINIBAND, 100},
               {"spectrum", FT_ROCE, 0}};
enum { FABRICS = sizeof fabrics / sizeof *fabrics };
/* Those of them that say which fabric of the catalogue is meant. */
static const struct {
    const char *word, *name;
} entries[] = {{"tcpx", "tcpx_200"},    {"tcpxo", "tcpxo_200"}, {"slingshot", "slingshot_200"}, {"omni", "opa_100"},
               {"omnipath", "opa_100"}, {"opa", "opa_100"},     {"opa100", "opa_100"}};

/* "infinband", "NDR400x": meant as one of ours, and not to be passed over. */
static const char *misspelt(const char *w, size_t n)
{
    static const char *const inside[] = {"nvlink", "nvswitch", "pcie"};
    int most = n >= 8 ? 2 : 1;
    if (n < 4) return NULL;
    for (size_t i = 0; i < FABRICS + sizeof inside / sizeof *inside; i++) {
        const char *known = i < FABRICS ? fabrics[i].word : inside[i - FABRICS];
        if (strlen(known) >= 4 && ft__within(w, n, known, most)) return known;
    }
    return NULL;
}

static bool is_fabric(const char *w, size_t n)
{
    for (size_t i = 0; i < FABRICS; i++)
        if (is(w, n, fabrics[i].word)) return true;
    return false;
}

/* The word that starts here, whatever its letters' case. */
static bool names_fabric(const char *raw)
{
    char low[24];
    size_t n = 0;
    while (n < sizeof low && isalnum((unsigned char)raw[n])) low[n] = (char)tolower((unsigned char)raw[n]), n++;
    return n < sizeof low && is_fabric(low, n);
}

static double counting_word(const char *w, size_t n)
{
    static const char *const words[] = {"one", "two", "three", "four", "five", "six", "seven", "eight"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(w, n, words[i])) return (double)(i + 1);
    return is(w, n, "single") ? 1 : is(w, n, "dual") ? 2 : is(w, n, "quad") ? 4 : 0;
}

/* "8 HDR", "two 100 Gb/s ports": as many ports as were counted before. */
static void take_count(part *p)
{
    if (p->counted >= 1 && p->counted <= 1024 && p->ports <= 0) p->ports = p->counted;
    p->counted = 0;
}

static bool read_place(const char *w, size_t n, part *p)
{
    static const char *const nodes[] = {"node", "server", "host", "machine", "instance"}, *const gpus[] = {
                                                                                              "gpu", "accelerator",
                                                                                              "device", "rank"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) p->per_node |= is(w, n, nodes[i]);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) p->per_gpu |= is(w, n, gpus[i]);
    return p->per_node || p->per_gpu;
}

static bool denied(const part *p)
{
    static const char *const no[] = {"no", "non", "not", "without"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (is(p->before, p->before_length, no[i])) return true;
    return false;
}

/* "no P2P", "P2P is disabled", and whose host it then goes through. */
static bool read_peers(const char *w, size_t n, part *p, ft_network *out)
{
    bool p2p = is(w, n, "p2p"), off = starts(w, n, "disabl") || is(w, n, "off"), xeon = is(w, n, "xeon");
    out->p2p_off |= (p2p && denied(p)) || (off && p->p2p && !denied(p));
    out->xeon |= xeon || is(w, n, "intel");
    p->p2p |= p2p;
    return p2p || (off && p->p2p) || xeon;
}

/* Rails, trees, and what their upper cables leave of the rate. */
static bool read_shape(const char *w, size_t n, part *p, ft_network *out)
{
    bool no = denied(p);
    if (starts(w, n, "rail"))
        out->topology = FT_RAILS;
    else if (starts(w, n, "fattree") || starts(w, n, "dragonfly") || is(w, n, "clos") || is(w, n, "spine") ||
             (is(w, n, "tree") && is(p->before, p->before_length, "fat")))
        out->topology = FT_TREE;
    else if (is(w, n, "nonblocking") || (is(w, n, "blocking") && no) || (starts(w, n, "oversubscri") && no))
        out->oversubscription = 1;
    else if (starts(w, n, "oversubscri")) {
        if (p->ports > 0 && p->gbit <= 0) out->oversubscription = p->ports, p->ports = 0; /* "2x oversubscribed" */
        if (out->oversubscription <= 0) out->oversubscription = -1;                       /* by how much follows */
    } else
        return false;
    return true;
}

static ft_status read_word(const char *w, size_t n, bool after_per, part *p, ft_network *out, ft_error *err)
{
    static const char *const ports[] = {"port", "ports", "nic", "nics", "hca", "hcas", "adapters", "rails"};
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        if (is(w, n, ports[i])) take_count(p);
    for (size_t i = 0; i < FABRICS; i++)
        if (is(w, n, fabrics[i].word)) {
            take_count(p);
            /* "RDMA over Ethernet", "RoCE Ethernet": the first word that says more stands. */
            if (p->kind < 0 || (p->kind == FT_ROCE && fabrics[i].kind == FT_INFINIBAND)) p->kind = fabrics[i].kind;
            if (fabrics[i].gbit > 0) p->generation = fabrics[i].gbit;
            for (size_t k = 0; k < sizeof entries / sizeof *entries; k++)
                if (is(w, n, entries[k].word)) p->entry = entries[k].name;
            p->known = true;
            return FT_OK;
        }
    bool link = starts(w, n, "nvlink") || starts(w, n, "nvswit");
    bool xgmi = starts(w, n, "xgmi") || is(w, n, "infinity"); /* Infinity Fabric is AMD's name for it */
    bool pcie = starts(w, n, "pcie") || is(w, n, "pci");
    p->inside_nvlink |= link;
    p->inside_xgmi |= xgmi;
    p->inside_pcie |= pcie;
    p->known |= link || xgmi || pcie;
    if (link || xgmi || pcie) {
        if (pcie && n == 5 && isdigit((unsigned char)w[4])) p->pcie_generation = w[4] - '0';
        return FT_OK;
    }
    out->pcie_switched |= p->inside_pcie && starts(w, n, "switch");
    if (p->inside_pcie && n == 4 && starts(w, n, "gen") && isdigit((unsigned char)w[3]))
        p->pcie_generation = w[3] - '0';
    if (p->inside_pcie && n >= 2 && n <= 3 && w[0] == 'x' && isdigit((unsigned char)w[1]))
        p->pcie_lanes = number_at(w + 1, n - 1);
    if (read_shape(w, n, p, out) || read_peers(w, n, p, out)) {
        p->known = true;
        return FT_OK;
    }
    if (after_per && read_place(w, n, p)) return FT_OK;
    const char *near = misspelt(w, n);
    if (!near) return FT_OK;
    return ft__fail_at(err, FT_E_NAME, "cluster.interconnect", 0, 0,
                       "unknown interconnect \"%.*s\"; did you mean \"%s\"?", (int)n, w, near);
}

static bool digit(char c) { return isdigit((unsigned char)c) != 0; }

static ft_status bad_figure(const char *what, const char *s, size_t n, ft_error *err)
{
    return ft__fail_at(err, FT_E_RANGE, "cluster.interconnect", 0, 0, "%s, got \"%.*s\"", what, (int)n, s);
}

/* A number without a unit: a rate behind a fabric's name ("InfiniBand 200"; what is below 10 there is a version, and
 * Slingshot's 11 too), or a count ("8 HDR"). "ConnectX-7" is a name. */
static void plain_number(const char *raw, size_t at, double value, bool below, part *p)
{
    bool name = at >= 2 && raw[at - 1] == '-' && isalnum((unsigned char)raw[at - 2]);
    if (below || p->inside_nvlink || p->inside_xgmi || p->inside_pcie) return;
    if (!is_fabric(p->before, p->before_length))
        p->counted = name ? 0 : value;
    else if (value >= 10 && value <= most_gbit && p->gbit <= 0 && !p->entry)
        p->gbit = value;
}

/* A number and what follows it: a ratio, a count of ports, a rate, a generation of PCIe. `*used`: all of it. */
static ft_status read_figure(const char *raw, size_t i, part *p, ft_network *out, size_t *used, ft_error *err)
{
    double value, other;
    size_t from = ft__figure_negative(raw, i) ? i - 1 : i, n = i + ft__figure_number(raw + i, &value), j = n,
           unit_length = 0;
    bool below = from < i;
    if (raw[n] == ',' && digit(raw[n + 1]))
        return bad_figure("write a decimal point, not a comma", raw + from, n + 2 - from, err);
    if (raw[n] == ':' && digit(raw[n + 1])) { /* 2:1, or the same said 1:2 */
        *used = n + 1 + ft__figure_number(raw + n + 1, &other);
        double ratio = fmax(value, other) / fmin(value, other);
        if (below || !(fmin(value, other) > 0) || !(ratio >= 1 && ratio <= 1000))
            return bad_figure("oversubscription must be from 1:1 to 1000:1", raw + from, *used - from, err);
        out->oversubscription = ratio;
        p->known = true;
        return FT_OK;
    }
    while (raw[j] == ' ') j++;
    bool letter = raw[j] == 'x' || raw[j] == 'X' || raw[j] == '*';
    /* "4xHDR200": a word behind it is a network's, or "x" is that word's first letter ("400 XDR"). */
    if (letter && isalpha((unsigned char)raw[j + 1])) letter = j == n && names_fabric(raw + j + 1);
    bool times = letter || !strncmp(raw + j, "\xc3\x97", 2); /* the sign */
    bool size = false;
    double unit = ft__figure_unit(raw + j, &unit_length, &size);
    *used = n;
    if (p->inside_pcie && unit <= 0 && value >= 1 && value < 8 && !below) {
        p->pcie_generation = floor(value); /* "PCIe 4.0 x16", "Gen 5" */
    } else if (times && p->gbit <= 0) {
        *used = j + (letter ? 1 : 2);
        if (below || !(value >= 1 && value <= 1024) || value != floor(value))
            return bad_figure("ports are a whole number from 1 to 1024", raw + from, n - from, err);
        p->ports = value;
    } else if (unit > 0) {
        *used = j + unit_length;
        if (below || !(value * unit >= least_gbit && value * unit <= most_gbit))
            return bad_figure("a rate must be from 0.01 to 100000 Gbit/s", raw + from, *used - from, err);
        if (p->gbit <= 0) p->gbit = value * unit, p->size = size, take_count(p);
        p->known = true;
    } else {
        plain_number(raw, i, value, below, p);
    }
    return FT_OK;
}

static ft_status read_part(const char *s, size_t n, part *p, ft_network *out, ft_error *err)
{
    char low[FT_LONGEST_TEXT + 1], raw[FT_LONGEST_TEXT + 1];
    memcpy(raw, s, n);
    raw[n] = 0;
    for (size_t i = 0; i <= n; i++) low[i] = (char)tolower((unsigned char)raw[i]);
    *p = (part){.kind = -1, .before = ""};
    bool after_per = false;
    for (size_t i = 0; i < n;) {
        size_t j = i + 1;
        if (digit(low[i])) {
            FT_TRY(read_figure(raw, i, p, out, &j, err));
            after_per = false;
        } else if (isalpha((unsigned char)low[i])) {
            while (isalnum((unsigned char)low[j])) j++;
            FT_TRY(read_word(low + i, j - i, after_per, p, out, err));
            after_per = is(low + i, j - i, "per") || is(low + i, j - i, "each");
            p->counted = counting_word(low + i, j - i);
            if (!(low[i] == 'v' && j - i == 2 && digit(low[i + 1]))) { /* "RoCE v2" is RoCE */
                p->before = low + i;
                p->before_length = j - i;
            }
        } else if (low[i] == '/')
            after_per = true;
        else if (low[i] != ' ')
            after_per = false;
        i = j;
    }
    p->before = "";
    return FT_OK;
}

/* PCI Express x16 and direction: 15.75 GB/s in the third generation, doubled by each, 121 in the sixth (FLIT mode). */
static double pcie_gbps(const part *p)
{
    if (p->pcie_generation <= 0) return 0;
    double x16 = p->pcie_generation == 6 ? 121 : 15.75 * exp2(p->pcie_generation - 3);
    return p->pcie_lanes >= 1 && p->pcie_lanes < 16 ? x16 * p->pcie_lanes / 16 : x16;
}

static void settle(const part *p, ft_network *out)
{
    double gbit = p->gbit > 0 ? p->gbit : p->generation;
    out->named = true;
    out->entry = p->entry;
    out->kind = p->kind >= 0 ? (ft_fabric)p->kind : FT_ROCE;
    out->scope = p->per_gpu ? FT_PER_GPU : p->per_node && p->ports <= 0 && p->gbit > 0 ? FT_PER_NODE : FT_PER_PORT;
    out->ports = p->ports;
    /* "3200 Gb/s" without more is no port's rate: the node's. */
    if (out->scope == FT_PER_PORT && p->ports <= 0 && gbit > 800) out->scope = FT_PER_NODE;
    out->generation = p->generation > 0;
    out->port_gbit = out->scope == FT_PER_NODE ? p->generation : gbit;
    out->gbit = gbit;
}

/* Where a part of the text ends: not inside "1,600" or "1e+3". */
static size_t end_of_part(const char *text, size_t from, size_t n)
{
    for (size_t j = from; j < n; j++) {
        bool between = j > from && digit(text[j + 1]) && (digit(text[j - 1]) || text[j - 1] == 'e');
        if (text[j] == ';' || ((text[j] == ',' || text[j] == '+') && !between)) return j;
        if (!strncmp(text + j, " and ", 5)) return j;
    }
    return n;
}

ft_status ft__network_parse(const char *text, ft_network *out, ft_error *err)
{
    size_t n = strlen(text);
    memset(out, 0, sizeof *out);
    if (n > FT_LONGEST_TEXT || strchr(text, '_')) return FT_OK; /* a name, and none that is known */
    for (size_t i = 0; i <= n;) {
        size_t j = end_of_part(text, i, n);
        part p;
        FT_TRY(read_part(text + i, j - i, &p, out, err));
        out->nvlink_named |= p.inside_nvlink;
        out->xgmi_named |= p.inside_xgmi;
        out->pcie_named |= p.inside_pcie;
        if (p.pcie_generation > 7)
            return ft__fail_at(err, FT_E_RANGE, "cluster.interconnect", 0, 0, "PCIe's generations are 1 to 7, got %g",
                               p.pcie_generation);
        if (p.inside_pcie && pcie_gbps(&p) > 0) out->pcie_gbps = pcie_gbps(&p);
        bool inside = p.kind < 0 && (p.inside_nvlink || p.inside_xgmi || p.inside_pcie);
        bool network = p.kind >= 0 || (p.gbit > 0 && !p.size);
        out->known |= p.known;
        if (network && !inside && !out->named) settle(&p, out);
        i = j + 1;
    }
    if (out->oversubscription < 0)
        return ft__fail_at(err, FT_E_RANGE, "cluster.interconnect", 0, 0,
                           "oversubscribed by how much? write it as a ratio, \"2:1\"");
    return FT_OK;
}
