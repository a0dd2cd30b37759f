/* What people write about their network, word by word.
 *
 * A text falls into parts at ; , + and "and". A part about NVLink, NVSwitch, xGMI or PCIe says what is inside the node
 * and is only noted; the first other part with a rate or a fabric's name says the network. Rates are numbers with G or
 * T and b or B ("200 Gb/s", "400Gbps", "50 GB/s", "3.2 Tbps", "100GbE"): small b or no letter counts bits, capital B
 * bytes. "8x" before one counts ports of a node; "/node", "per server" and "per GPU" say what it is of. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "comm/catalogue.h"

enum { LONGEST = 200 };

typedef struct part {
    double gbit, ports;
    bool per_node, per_gpu, inside_nvlink, inside_pcie, known;
    int kind;          /* ft_fabric or -1 */
    double generation; /* Gbit of HDR, NDR, ...; 0 */
} part;

static bool is(const char *word, size_t n, const char *what) { return strlen(what) == n && !strncmp(word, what, n); }

static void read_word(const char *w, size_t n, bool after_per, part *p)
{
    static const struct {
        const char *word;
        int kind;
        double gbit;
    } words[] = {{"infiniband", FT_INFINIBAND, 0},
                 {"ib", FT_INFINIBAND, 0},
                 {"fdr", FT_INFINIBAND, 56},
                 {"edr", FT_INFINIBAND, 100},
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
                 {"slingshot", FT_ETHERNET, 200},
                 {"spectrum", FT_ROCE, 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(w, n, words[i].word)) {
            /* "RDMA over Ethernet", "RoCE Ethernet": the first word that says more stands. */
            if (p->kind < 0 || (p->kind == FT_ROCE && words[i].kind == FT_INFINIBAND)) p->kind = words[i].kind;
            if (words[i].gbit > 0) p->generation = words[i].gbit;
            p->known = true;
            return;
        }
    if (n >= 6 && (!strncmp(w, "nvlink", 6) || !strncmp(w, "nvswit", 6))) p->inside_nvlink = p->known = true;
    if (n >= 4 && !strncmp(w, "xgmi", 4)) p->inside_nvlink = p->known = true;
    if (n >= 4 && !strncmp(w, "pcie", 4)) p->inside_pcie = p->known = true;
    if (!after_per) return;
    if (is(w, n, "node") || is(w, n, "server") || is(w, n, "host") || is(w, n, "machine") || is(w, n, "instance"))
        p->per_node = true;
    if (is(w, n, "gpu") || is(w, n, "accelerator") || is(w, n, "device") || is(w, n, "rank")) p->per_gpu = true;
}

/* "200gb/s" after the digits: how many Gbit one unit is; 0 when it is no rate. `s` keeps the case of the text. */
static double unit_of(const char *s, size_t *length)
{
    const char *at = s;
    while (*at == ' ' || *at == '-') at++;
    double scale = *at == 'T' || *at == 't' ? 1000 : *at == 'G' || *at == 'g' ? 1 : 0;
    if (scale <= 0) return 0;
    at++;
    double bits = 1;
    if (*at == 'B')
        bits = 8, at++;
    else if (*at == 'i' && at[1] == 'B')
        bits = 8 * 1.073741824, at += 2;
    else if (*at == 'b') {
        at++;
        if (*at == 'E' || *at == 'e') { /* GbE is a kind as well: leave it to be read as a word */
            *length = (size_t)(at - s) - 2;
            return scale;
        }
        if (!strncmp(at, "it", 2)) at += 2;
        if (*at == 's' && at[1] != '/') at++;
    }
    if (!strncmp(at, "ps", 2))
        at += 2;
    else if (!strncmp(at, "/s", 2))
        at += 2, at += !strncmp(at, "ec", 2) ? 2 : 0;
    if (isalnum((unsigned char)*at)) return 0;
    *length = (size_t)(at - s);
    return bits * scale;
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

static void read_part(const char *s, size_t n, part *p)
{
    char low[LONGEST + 1], raw[LONGEST + 1];
    memcpy(raw, s, n);
    raw[n] = 0;
    for (size_t i = 0; i <= n; i++) low[i] = (char)tolower((unsigned char)raw[i]);
    *p = (part){.kind = -1};
    bool after_per = false;
    for (size_t i = 0; i < n;) {
        if (isdigit((unsigned char)low[i])) {
            size_t j = i, used = 0;
            while (isdigit((unsigned char)low[j]) || (low[j] == '.' && isdigit((unsigned char)low[j + 1]))) j++;
            double value = number_at(raw + i, j - i);
            while (low[j] == ' ') j++;
            bool times = low[j] == 'x' || low[j] == '*' || (unsigned char)low[j] == 0xc3; /* 0xc3 0x97: the sign */
            double unit = unit_of(raw + j, &used);
            if (times && value >= 1 && value <= 1024 && p->gbit <= 0)
                p->ports = value, j += low[j] == 'x' || low[j] == '*' ? 1 : 2;
            else if (unit > 0 && value > 0) {
                if (p->gbit <= 0) p->gbit = value * unit;
                p->known = true;
                j += used;
            }
            i = j > i ? j : i + 1;
            after_per = false;
        } else if (isalpha((unsigned char)low[i])) {
            size_t j = i;
            while (isalnum((unsigned char)low[j])) j++;
            read_word(low + i, j - i, after_per, p);
            after_per = is(low + i, j - i, "per") || is(low + i, j - i, "each");
            i = j;
        } else {
            if (low[i] == '/')
                after_per = true;
            else if (low[i] != ' ')
                after_per = false;
            i++;
        }
    }
}

static void settle(const part *p, ft_network *out)
{
    double gbit = p->gbit > 0 ? p->gbit : p->generation;
    out->named = true;
    out->kind = p->kind >= 0 ? (ft_fabric)p->kind : FT_ROCE;
    out->scope = p->per_gpu ? FT_PER_GPU : p->per_node && p->ports <= 0 && p->gbit > 0 ? FT_PER_NODE : FT_PER_PORT;
    out->ports = p->ports;
    /* "3200 Gb/s" without more is no port's rate: the node's. */
    if (out->scope == FT_PER_PORT && p->ports <= 0 && gbit > 800) out->scope = FT_PER_NODE;
    out->generation = p->generation > 0;
    out->port_gbit = out->scope == FT_PER_NODE ? p->generation : gbit;
    out->gbit = gbit;
}

bool ft__network_parse(const char *text, ft_network *out)
{
    size_t n = strlen(text);
    bool any = false;
    memset(out, 0, sizeof *out);
    if (n > LONGEST || strchr(text, '_')) return false; /* a name, and none that is known */
    for (size_t i = 0; i <= n;) {
        size_t j = i;
        while (j < n && text[j] != ';' && text[j] != ',' && text[j] != '+' && strncmp(text + j, " and ", 5) != 0) j++;
        part p;
        read_part(text + i, j - i, &p);
        out->nvlink_named |= p.inside_nvlink;
        out->pcie_named |= p.inside_pcie;
        bool inside = p.kind < 0 && (p.inside_nvlink || p.inside_pcie);
        any |= p.known;
        if (p.known && !inside && !out->named) settle(&p, out);
        i = j + 1;
    }
    return any;
}
