/* Connections that take too long to say what they want, ended. */
#ifndef CLI_WEB_CLIENTS_H
#define CLI_WEB_CLIENTS_H
#include <pthread.h>
#include <stdbool.h>

typedef struct web_client {
    int socket;
    double deadline_s; /* of the monotonic clock; 0: none, an answer is being made */
    struct web_client *next, **link;
} web_client;

typedef struct web_clients {
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t watch;
    double patience_s;
    bool ended;
    web_client *first;
} web_clients;

bool web_clients_start(web_clients *c, double patience_s);
void web_clients_stop(web_clients *c);
web_client *web_client_came(web_clients *c, int socket); /* NULL: no memory, nobody watches it */
void web_client_left(web_clients *c, web_client *client);
/* From now on it has `patience` times the usual to send, or to take, what is due; 0: as long as it likes. */
void web_client_expect(web_clients *c, web_client *client, double patience);
#endif
