/* The HTTP server behind `foretell web`: the page's files, and the library behind two addresses. */
#ifndef CLI_WEB_SERVER_H
#define CLI_WEB_SERVER_H
#include "foretell.h"
#include "web_files.h"
#include "web_paths.h"

typedef struct web_settings {
    const char *listen; /* a number: "127.0.0.1", "::1", "0.0.0.0" */
    int port;           /* 0: any that is free */
    const char *token;  /* NULL: none is asked for */
    double patience_s;  /* that a client may take to send a request */
    int threads;        /* of one batch */
    bool shipped; /* the predictor that was built in, and no calibration: the page's own library answers the same */
    const web_files *page;
    const web_folder *folder;
} web_settings;

typedef struct web_server web_server;

/* Listens, and answers on threads of its own until it is stopped. Settings and context must outlive it. */
ft_status web_server_start(web_server **out, const ft_context *ft, const web_settings *settings, ft_error *err);
int web_server_port(const web_server *s);
void web_server_stop(web_server *s); /* waits for answers that are being made */
/* 127.0.0.0/8 and ::1; false for what is no address, too. */
bool web_is_loopback(const char *address);
#endif
