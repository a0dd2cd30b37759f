/* Looking up fabrics and servers. */
#include "comm/catalogue.h"

#include <stdio.h>
#include <string.h>

const ft_fabric_entry *ft__fabric_find(const char *name)
{
    for (size_t i = 0; i < ft__fabric_count; i++)
        if (!strcmp(ft__fabrics[i].name, name)) return &ft__fabrics[i];
    return NULL;
}

/* Those that are a make of their own, and not what "200 Gb/s Ethernet" means. */
static bool own_make(const ft_fabric_entry *f)
{
    return f->fabric == FT_ETHERNET && strncmp(f->name, "ethernet_", 9) != 0;
}

const ft_fabric_entry *ft__fabric_nearest(ft_fabric kind, double gbit)
{
    const ft_fabric_entry *best = NULL, *fastest = NULL;
    for (size_t i = 0; i < ft__fabric_count; i++) {
        const ft_fabric_entry *f = &ft__fabrics[i];
        if (f->fabric != kind || own_make(f)) continue;
        if (!fastest || f->gbit > fastest->gbit) fastest = f;
        if (f->gbit >= gbit && (!best || f->gbit < best->gbit)) best = f;
    }
    return best ? best : fastest ? fastest : &ft__fabrics[0];
}

const ft_server_entry *ft__server_find(const char *name)
{
    char key[80];
    snprintf(key, sizeof key, " %s ", name);
    for (size_t i = 0; i < ft__server_count; i++)
        if (!strcmp(ft__servers[i].name, name) || strstr(ft__servers[i].also, key)) return &ft__servers[i];
    return NULL;
}

/* The maker's own box before a cloud's: clouds bear their provider's name. */
const ft_server_entry *ft__server_usual(const char *gpu)
{
    static const char *const clouds[] = {"aws_", "azure_", "gcp_", "leonardo"};
    char key[80];
    snprintf(key, sizeof key, " %s ", gpu);
    for (size_t i = 0; i < ft__server_count; i++) {
        bool cloud = false;
        for (size_t c = 0; c < sizeof clouds / sizeof *clouds; c++)
            cloud |= !strncmp(ft__servers[i].name, clouds[c], strlen(clouds[c]));
        if (!cloud && strstr(ft__servers[i].gpus, key)) return &ft__servers[i];
    }
    return NULL;
}
