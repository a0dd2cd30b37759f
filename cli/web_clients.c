/* web_clients.c: the watch over slow clients.
 *
 * libmicrohttpd ends connections on which nothing moves. A client that sends a byte now and then (slowloris) keeps one
 * for ever, and with it one of the few places there are. So every connection has a deadline by which its request must
 * be there as a whole, and a thread that looks once in a while and shuts the sockets of those that missed it; the
 * server then sees them closed. While an answer is made there is none: plans may take their time. */
#define _POSIX_C_SOURCE 200809L
#include "web_clients.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "progress.h"

static void *watch(void *argument)
{
    web_clients *c = argument;
    pthread_mutex_lock(&c->lock);
    while (!c->ended) {
        double now = cli_now_s(), pause_s = c->patience_s < 4 ? c->patience_s / 4 : 1;
        for (web_client *one = c->first; one; one = one->next)
            if (one->deadline_s > 0 && now > one->deadline_s) {
                shutdown(one->socket, SHUT_RDWR);
                one->deadline_s = 0;
            }
        double wake = now + pause_s;
        struct timespec until = {.tv_sec = (time_t)wake, .tv_nsec = (long)((wake - (double)(time_t)wake) * 1e9)};
        pthread_cond_timedwait(&c->change, &c->lock, &until);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

bool web_clients_start(web_clients *c, double patience_s)
{
    pthread_condattr_t clock;
    *c = (web_clients){.patience_s = patience_s};
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&c->change, &clock);
    pthread_condattr_destroy(&clock);
    return pthread_create(&c->watch, NULL, watch, c) == 0;
}

void web_clients_stop(web_clients *c)
{
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    pthread_cond_signal(&c->change);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->watch, NULL);
    pthread_cond_destroy(&c->change);
    pthread_mutex_destroy(&c->lock);
}

web_client *web_client_came(web_clients *c, int socket)
{
    web_client *client = calloc(1, sizeof *client);
    if (!client) return NULL;
    client->socket = socket;
    pthread_mutex_lock(&c->lock);
    client->deadline_s = cli_now_s() + c->patience_s;
    client->next = c->first;
    client->link = &c->first;
    if (c->first) c->first->link = &client->next;
    c->first = client;
    pthread_mutex_unlock(&c->lock);
    return client;
}

void web_client_left(web_clients *c, web_client *client)
{
    if (!client) return;
    pthread_mutex_lock(&c->lock);
    *client->link = client->next;
    if (client->next) client->next->link = client->link;
    pthread_mutex_unlock(&c->lock);
    free(client);
}

void web_client_expect(web_clients *c, web_client *client, double patience)
{
    if (!client) return;
    pthread_mutex_lock(&c->lock);
    client->deadline_s = patience > 0 ? cli_now_s() + patience * c->patience_s : 0;
    pthread_mutex_unlock(&c->lock);
}
