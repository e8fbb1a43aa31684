/* SPDX-License-Identifier: Apache-2.0 */
/* wire_bystander: works in a network namespace of its own and times what it does there.
 *
 * Says `ready`, then for each line `syscalls CHUNKS CALLS` or `loopback CHUNKS CALLS` the seconds of
 * one operation: the median over chunks, so that what preempts a chunk does not count. An operation
 * is getpid(2) and a read(2) of one byte, or a message over TCP there and another back. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 256
static int zero, near, far;

static void need(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void move_away(void)
{
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    need(!unshare(CLONE_NEWNET), "wire_bystander: no network namespace (it needs root)");
    int any = socket(AF_INET, SOCK_DGRAM, 0);
    need(any >= 0 && !ioctl(any, SIOCSIFFLAGS, &lo), "wire_bystander: lo cannot be brought up");
    close(any);
}

static void connected(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(at);
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    need(!bind(listener, (void *)&at, size) && !listen(listener, 1), "wire_bystander: listen");
    need(!getsockname(listener, (void *)&at, &size), "wire_bystander: getsockname");
    near = socket(AF_INET, SOCK_STREAM, 0);
    need(!connect(near, (void *)&at, size), "wire_bystander: connect");
    far = accept(listener, 0, 0);
    need(far >= 0, "wire_bystander: accept");
    setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void pass(int from, int to)
{
    char text[MESSAGE_BYTES] = "";
    need(send(from, text, sizeof(text), 0) == sizeof(text), "wire_bystander: send");
    need(recv(to, text, sizeof(text), MSG_WAITALL) == sizeof(text), "wire_bystander: recv");
}

static void syscalls(void)
{
    char byte;
    syscall(SYS_getpid);
    need(read(zero, &byte, 1) == 1, "wire_bystander: read");
}

static void loopback(void)
{
    pass(near, far);
    pass(far, near);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(void (*operation)(void), int chunks, int calls)
{
    double times[chunks];
    for (int i = 0; i < chunks; i++) {
        double began = now();
        for (int j = 0; j < calls; j++)
            operation();
        times[i] = (now() - began) / calls;
    }
    qsort(times, chunks, sizeof(times[0]), by_size);
    return times[chunks / 2];
}

int main(void)
{
    char line[64], what[16];
    int chunks, calls;
    move_away();
    connected();
    zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    need(zero >= 0, "wire_bystander: /dev/zero");
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%15s %d %d", what, &chunks, &calls) != 3 || chunks < 1 || chunks > 10000 || calls < 1) {
            fprintf(stderr, "wire_bystander: not understood: %s", line);
            return 1;
        }
        printf("%.6e\n", median(strcmp(what, "syscalls") ? loopback : syscalls, chunks, calls));
        fflush(stdout);
    }
    return 0;
}
