/* SPDX-License-Identifier: Apache-2.0 */
/* wire_client ADDRESS PORT NAME CONNECTIONS REQUESTS TOKENS: a light client of streams, in one thread.
 *
 * Opens the connections, sends each its first request and says `sent`; a connection asks again when
 * its answer has ended, REQUESTS times. Then a line for each request: its id, the moments in ns of
 * CLOCK_MONOTONIC before the request was written and after the answer's end was read, its status,
 * and how many SSE events came. Ends with 1 and a line when anything else happens. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SILENCE_MS 20000
#define HEAD_BYTES 4096
#define EVENT_BYTES 512
static const char END[] = "\r\n0\r\n\r\n", EVENT[] = "data: {";

struct request {
    long long sent, ended;
    int status, events;
};
struct connection {
    int fd, asked;
    size_t used;
    char *answer;
    struct request *requests;
};
static const char *name, *address;
static int requests, tokens;
static size_t room;

static void fail(const char *form, ...)
{
    va_list words;
    va_start(words, form);
    fputs("wire_client: ", stderr);
    vfprintf(stderr, form, words);
    fputc('\n', stderr);
    exit(1);
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void ask(struct connection *c, int number)
{
    char body[128], text[512];
    int length = snprintf(body, sizeof(body), "{\"stream\":true,\"max_tokens\":%d,\"prompt\":\"once upon a time\"}", tokens);
    int size = snprintf(text, sizeof(text),
                        "POST /v1/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
                        "x-request-id: %s-%d-%d\r\ncontent-length: %d\r\n\r\n%s",
                        name, number, c->asked, length, body);
    c->used = 0;
    c->requests[c->asked].sent = now();
    if (send(c->fd, text, size, MSG_NOSIGNAL) != size)
        fail("a request could not be sent: %s", strerror(errno));
    c->asked++;
}

static void opened(struct connection *c, int port, int poll, int number)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(address) };
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = number };
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    c->answer = malloc(room);
    c->requests = calloc(requests, sizeof(*c->requests));
    if (c->fd < 0 || !c->answer || !c->requests || connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
        fail("no connection to port %d: %s", port, strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &event))
        fail("epoll: %s", strerror(errno));
    ask(c, number);
}

/* Events are counted after the stream: each has a chunk of its own, and none is split by framing. */
static void judge(struct connection *c)
{
    struct request *r = &c->requests[c->asked - 1];
    r->ended = now();
    c->answer[c->used] = 0;
    sscanf(c->answer, "HTTP/1.1 %d", &r->status);
    for (char *at = c->answer; (at = strstr(at, EVENT)); at += sizeof(EVENT) - 1)
        r->events++;
}

/* 1 when its last answer has ended. */
static int heard(struct connection *c, int number)
{
    ssize_t got = recv(c->fd, c->answer + c->used, room - 1 - c->used, 0);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0)
        fail("request %s-%d-%d: %s", name, number, c->asked - 1, got ? strerror(errno) : "cut off, or longer than expected");
    c->used += got;
    if (c->used < sizeof(END) - 1 || memcmp(c->answer + c->used - (sizeof(END) - 1), END, sizeof(END) - 1))
        return 0;
    judge(c);
    if (c->asked == requests)
        return 1;
    ask(c, number);
    return 0;
}

int main(int argc, char **argv)
{
    struct epoll_event ready[64];
    if (argc != 7)
        fail("ADDRESS PORT NAME CONNECTIONS REQUESTS TOKENS wanted");
    int port = atoi(argv[2]), count = atoi(argv[4]), open = count, poll = epoll_create1(EPOLL_CLOEXEC);
    address = argv[1], name = argv[3], requests = atoi(argv[5]), tokens = atoi(argv[6]);
    room = HEAD_BYTES + EVENT_BYTES * (size_t)(tokens + 4);
    struct connection *all = calloc(count, sizeof(*all));
    if (!all || count < 1 || requests < 1 || tokens < 1)
        fail("CONNECTIONS, REQUESTS and TOKENS are at least 1");
    for (int i = 0; i < count; i++)
        opened(&all[i], port, poll, i);
    puts("sent");
    fflush(stdout);
    while (open) {
        int found = epoll_wait(poll, ready, 64, SILENCE_MS);
        if (found < 0 && errno == EINTR)
            continue;
        if (found <= 0)
            fail("no answer for %d s; %d streams are open", SILENCE_MS / 1000, open);
        for (int i = 0; i < found; i++)
            open -= heard(&all[ready[i].data.u32], ready[i].data.u32);
    }
    for (int i = 0; i < count; i++)
        close(all[i].fd);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < requests; j++) {
            struct request *r = &all[i].requests[j];
            printf("%s-%d-%d %lld %lld %d %d\n", name, i, j, r->sent, r->ended, r->status, r->events);
        }
    return 0;
}
