/* SPDX-License-Identifier: Apache-2.0
 * Inside the HTTP edge: a server has loops, a loop has connections and streams,
 * a connection has at most one request at a time.
 *
 *   server.c      starts and stops loops; listen.c opens their one socket
 *   loop.c        the thread: poll, resume, run the library, streams, deadlines
 *   connection.c  what phase a connection is in, and how long it may stay there
 *   exchange.c    one request from headers to reply: the order of refusals
 *   request.c     what the API may ask of a request; its memory
 *   reply.c       building the one answer
 *   stream.c      server-sent events on sockets taken over from the library
 *   linger.c      reading what a refused client still sends, so that it sees its answer
 *   router.c, address.c   pure
 *
 * Everything here belongs to the loop's thread, except what is marked "any thread". */
#ifndef HOLDFAST_HTTP_HTTP_INT_H
#define HOLDFAST_HTTP_HTTP_INT_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/queue.h"
#include "base/rng.h"
#include "http/http.h"
#include "http/router.h"

struct http_loop;

enum {
    LOOP_COUNT_MAX = 8,
    REQUEST_ID_SIZE = 65,           /* 64 characters and a NUL */
    REQUEST_SPARE_COUNT_MAX = 4096, /* kept for reuse, a loop */
    LINGER_COUNT_MAX = 256,
    LINGER_MS = 2000,
    LINGER_SIZE_MAX = 4 * 1024 * 1024,
    STREAM_SWEEP_MS = 1000, /* how often every stream is asked, published or not */
    SCRATCH_SIZE = 32 * 1024,
    STREAM_READS_PER_TURN = 4,
    STREAM_SOCKET_SIZE = 128 * 1024, /* what the kernel may hold for a slow reader */
    SEND_JUDGEMENT_COUNT = 4,        /* in idle_seconds; as many without progress and it is stuck */
    SEND_PROGRESS_MIN = 1024,        /* bytes that count as progress */
    CONNECTION_MEMORY = 20 * 1024,   /* HEADER_SIZE_MAX and its answer; cleared at every request */
    FILE_RESERVE_COUNT = 128,        /* descriptors left for stores, logs, loops */
    POLL_MS_MAX = 1000,
    DRAIN_SEND_MS = 200, /* at the end of a drain, for last answers to leave */
};

/* A descriptor in the loop's own epoll set: a stream, a lingering socket, or the wake-up. */
struct http_watch {
    void (*on_event)(struct http_loop *loop, struct http_watch *watch, uint32_t events);
    int fd;
};

enum http_phase {
    PHASE_WAITING,   /* for complete headers */
    PHASE_RECEIVING, /* a body */
    PHASE_DEFERRED,  /* suspended: somebody else has the request */
    PHASE_SENDING,   /* the answer is with the library */
    PHASE_COUNT,
    PHASE_DOOMED, /* shut down by us; the library will notice and close */
};

struct http_connection {
    struct list node; /* of loop->phases[phase] */
    struct http_loop *loop;
    struct MHD_Connection *mhd;
    struct http_request *request;     /* owns, but for one that is deferred: then shares with its resumer */
    struct MHD_Response *last_answer; /* owns; of a request that was orphaned */
    int64_t since_us;                 /* when the phase began */
    uint64_t acked_bytes;             /* of its socket, when last judged while sending */
    int quiet_count;                  /* judgements since that number moved */
    int last_status;
    int fd; /* borrows: the library's */
    enum http_phase phase;
    bool linger; /* the client may still be sending when we close */
    bool peer_is_loopback;
    bool peer_is_trusted_proxy;
    char peer_ip[INET6_ADDRSTRLEN];
};

enum http_deferral { DEFERRAL_NONE, DEFERRAL_PENDING, DEFERRAL_RESUMED, DEFERRAL_ABANDONED };

struct http_reply_field {
    struct http_reply_field *next;
    const char *name;
    const char *value;
};

struct http_request {
    struct list node;                   /* of loop->resumed or loop->spare */
    struct list orphan_node;            /* of loop->orphans: apart, for the other is any thread's to push */
    struct http_loop *loop;             /* gone when the request was abandoned */
    struct http_connection *connection; /* NULL: nobody waits for the answer any more */
    void *context;
    void *user;
    struct http_match match;
    const char *method_name;
    const char *path;
    struct arena arena;
    struct buf body;
    int64_t started_us;

    /* From the headers. */
    uint64_t content_length;
    const char *forwarded_for; /* the last X-Forwarded-For, borrowed from the library */
    bool has_length;
    bool is_chunked;
    bool is_malformed; /* framing that two readers could understand differently */
    bool is_forwarded;
    bool is_json;
    bool is_head;
    bool is_loopback;
    bool is_dispatched; /* its handler ran */
    bool is_suspended;

    /* The answer. */
    struct http_reply_field *fields;
    struct MHD_Response *response; /* owns, until the library has it */
    const char *reply_type;        /* of the response, as is what follows */
    const void *reply_data;
    size_t reply_size;
    struct http_stream stream; /* owns, until taken over */
    int status;                /* 0: not replied */
    bool has_stream;
    bool has_cache_control;

    void (*on_resume)(struct http_request *request);
    int defer_count;
    _Atomic int deferral; /* enum http_deferral: the one field other threads write, by http_resume() */
    char id[REQUEST_ID_SIZE];
    char remote_ip[INET6_ADDRSTRLEN];
};

struct http_loop {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    int listen_fd; /* its own copy of the one listening socket; −1 once closed */
    int mhd_epoll_fd;
    int watch_epoll_fd;
    struct http_watch wake;      /* an eventfd; any thread writes */
    struct queue resumed;        /* any thread pushes */
    atomic_int resuming_count;   /* threads inside http_resume() */
    atomic_bool is_stopping;     /* any thread sets */
    atomic_bool are_streams_due; /* any thread sets */
    struct rng rng;
    int64_t now_us; /* of this turn */
    char *scratch;  /* SCRATCH_SIZE; nobody's between two calls */
    size_t connection_count;
    size_t connection_count_max;
    struct list phases[PHASE_COUNT]; /* http_connection, oldest first */
    struct list orphans;             /* http_request: answered by us, not yet resumed */
    struct list spare;               /* http_request */
    size_t spare_count;

    struct list streams_idle;
    struct list streams_checking; /* to be asked, a few each turn */
    struct list streams_blocked;  /* their socket is full, oldest first */
    size_t stream_count;
    int64_t stream_sweep_us;

    struct list lingering;
    size_t linger_count;
    int64_t drain_until_us;
    bool is_draining;
    bool is_drain_over; /* late answers were given up */
};

struct http_server {
    struct http_config config;
    struct router *router;
    int64_t phase_us[PHASE_COUNT];
    int64_t drain_us;                     /* set before is_stopping */
    char trusted_proxy[INET6_ADDRSTRLEN]; /* normalized; "" for none */
    uint16_t port;
    size_t connection_count_max;
    int loop_count;
    struct http_loop loops[LOOP_COUNT_MAX];
};

/* listen.c: the socket is ready to accept and not blocking. `port` becomes what was bound. */
enum err listen_open(const char *address, uint16_t *port, int *fd, char *why, size_t why_size) MUST_CHECK;
/* Raises RLIMIT_NOFILE as far as allowed and says how many connections fit. */
size_t listen_raise_file_limit(size_t wanted);

/* address.c */
bool address_format(const struct sockaddr *address, char out[INET6_ADDRSTRLEN]);
/* Accepts 1.2.3.4, 1.2.3.4:80, ::1, [::1], [::1]:80 between blanks; IPv4 in IPv6 becomes IPv4. */
bool address_normalize(const char *text, size_t length, char out[INET6_ADDRSTRLEN]);
bool address_is_loopback(const char *normalized);

/* loop.c */
enum err loop_init(struct http_loop *loop, struct http_server *server, int listen_fd) MUST_CHECK;
enum err loop_start(struct http_loop *loop) MUST_CHECK;
void loop_wake(struct http_loop *loop); /* any thread */
void loop_deinit(struct http_loop *loop);
enum err loop_watch(struct http_loop *loop, struct http_watch *watch, uint32_t events) MUST_CHECK;

/* connection.c: the first is the library's callback. */
void connection_on_notify(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code);
struct http_connection *connection_of(struct MHD_Connection *mhd);
void connection_enter(struct http_connection *connection, enum http_phase phase);
void connections_judge(struct http_loop *loop);            /* ends what is overdue */
int64_t connections_next_us(const struct http_loop *loop); /* when to judge again; INT64_MAX: never */
/* Answers a deferred client in the API's stead; the request waits for its resume alone. */
void connection_orphan(struct http_connection *connection);

/* exchange.c: both are the library's callbacks. */
enum MHD_Result exchange_on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data, size_t *size,
                                   void **request_context);
void exchange_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                           enum MHD_RequestTerminationCode code);
/* Runs on_resume and lets the library go on with the connection. */
void exchange_resume(struct http_request *request);

/* request.c */
struct http_request *request_acquire(struct http_loop *loop, struct http_connection *connection);
void request_release(struct http_request *request); /* back to its loop */
void request_destroy(struct http_request *request); /* any thread: of an abandoned one, or at the end */
void request_read_headers(struct http_request *request, struct MHD_Connection *mhd);

/* reply.c */
/* Writes status line and headers of an answer outside the library; size −1: until the socket closes. */
void reply_write_head(struct http_request *request, int status, const char *content_type, int64_t size,
                      struct buf *out);
/* Sends an error on the socket itself: for a refusal amid a body, where the library takes no reply. */
void reply_send_raw_error(struct http_request *request, enum err err);
/* The same for an answer the library had no use for: its client has only closed its sending side. */
void reply_send_unsent(struct http_request *request);
void reply_drop(struct http_request *request); /* frees what was never sent */

/* stream.c */
bool stream_take_over(struct http_request *request); /* false: no room, nothing was sent */
void streams_turn(struct http_loop *loop);
void streams_end(struct http_loop *loop);
int64_t streams_next_us(const struct http_loop *loop);

/* linger.c */
void linger_begin(struct http_loop *loop, int fd); /* copies fd */
void linger_sweep(struct http_loop *loop);
void linger_end(struct http_loop *loop);
int64_t linger_next_us(const struct http_loop *loop);

#endif
