// SPDX-License-Identifier: GPL-3.0-or-later
/* Plain TCP over loopback: the reference for the wire benchmarks. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static void set_no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            bench_fail("send");
        }
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
}

/* Reads exactly `len` bytes, at most `size` at a time, into the same buffer. */
static void receive_all(int fd, char *buffer, size_t size, size_t len)
{
    while (len > 0) {
        ssize_t n = recv(fd, buffer, len < size ? len : size, 0);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            bench_fail("recv");
        }
        if (n > 0) {
            len -= (size_t)n;
        }
    }
}

/* A connected pair over loopback: the child gets one end in *fd and returns 0, the parent gets the
 * other. */
static pid_t fork_pair(int *fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&address, &len) != 0) {
        bench_fail("cannot listen on loopback");
    }
    pid_t pid = fork();
    if (pid < 0) {
        bench_fail("fork");
    }
    if (pid == 0) {
        *fd = accept(listener, NULL, NULL);
    } else {
        *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (*fd >= 0 && connect(*fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
            bench_fail("connect");
        }
    }
    if (*fd < 0) {
        bench_fail("cannot connect over loopback");
    }
    close(listener);
    set_no_delay(*fd);
    return pid;
}

static void reap_child(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || status != 0) {
        bench_fail("the TCP reference process failed");
    }
}

/* Reads into memory that was never touched before, and keeps it. */
static void receive_and_keep(int fd, size_t size, size_t len)
{
    char *kept = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (kept == MAP_FAILED) {
        bench_fail("out of memory");
    }
    for (size_t at = 0; at < len; at += size) {
        receive_all(fd, kept + at, len - at < size ? len - at : size,
                    len - at < size ? len - at : size);
    }
}

double bench_tcp_send(const void *data, size_t total, size_t write_size, size_t read_size,
                      bool keep)
{
    char done;
    int fd;
    pid_t pid = fork_pair(&fd);

    if (pid == 0) {
        char *buffer = malloc(read_size);
        if (!buffer) {
            _exit(1);
        }
        if (keep) {
            receive_and_keep(fd, read_size, total);
        } else {
            receive_all(fd, buffer, read_size, total);
        }
        send_all(fd, "d", 1);
        _exit(0);
    }
    double start = bench_now();
    for (size_t at = 0; at < total; at += write_size) {
        size_t left = total - at;
        send_all(fd, (const char *)data + at, left < write_size ? left : write_size);
    }
    receive_all(fd, &done, 1, 1);
    double seconds = bench_now() - start;
    close(fd);
    reap_child(pid);
    return seconds;
}

double bench_tcp_ping_pong(unsigned rounds, size_t there, size_t back)
{
    size_t size = there > back ? there : back;
    char *buffer = calloc(1, size);
    int fd;
    pid_t pid = fork_pair(&fd);

    if (!buffer) {
        bench_fail("out of memory");
    }
    if (pid == 0) {
        for (unsigned i = 0; i < rounds; i++) {
            receive_all(fd, buffer, size, there);
            send_all(fd, buffer, back);
        }
        _exit(0);
    }
    double start = bench_now();
    for (unsigned i = 0; i < rounds; i++) {
        send_all(fd, buffer, there);
        receive_all(fd, buffer, size, back);
    }
    double seconds = bench_now() - start;
    close(fd);
    reap_child(pid);
    free(buffer);
    return seconds;
}
