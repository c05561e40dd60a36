// SPDX-License-Identifier: GPL-3.0-or-later
#include "resident/resident_list.h"
#include "engine/utf8.h"
#include "repl/launch/launch_output.h"
#include "resident/resident.h"
#include "resident/resident_wire.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_SESSIONS 256
#define SUFFIX       ".sock"

int resident_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    long pid;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (lstat(path, &st) != 0) {
        return -1;
    }
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid()) {
        errno = EPERM;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int code = 0;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        code = errno;
    } else if (!resident_peer_is_ours(fd, &pid)) {
        code = EPERM;
    }
    if (code != 0 && fd >= 0) {
        close(fd);
    }
    errno = code;
    return code == 0 ? fd : -1;
}

size_t resident_receive(int fd, char *text, size_t size, int milliseconds)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    if (poll(&wait, 1, milliseconds) != 1) {
        return 0;
    }
    ssize_t got = recv(fd, text, size - 1, 0);
    if (got < 0 && errno == ECONNRESET) {
        /* The peer closed before it read our message: the first recv reports that error once, then
         * its last message can still be read. */
        got = recv(fd, text, size - 1, 0);
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

/* The session's answer, or NULL. The socket of a dead session is removed and counted. */
static cJSON *get_facts(const char *path, size_t *removed)
{
    struct resident_hello hello = {.version = RESIDENT_VERSION, .request = RESIDENT_STATUS};
    char text[RESIDENT_MESSAGE_MAX + 1];
    cJSON *facts = NULL;
    int fd = resident_connect(path);

    if (fd < 0) {
        *removed += errno == ECONNREFUSED && unlink(path) == 0;
        return NULL;
    }
    if (resident_send_hello(fd, &hello, NULL, 0) &&
        resident_receive(fd, text, sizeof(text), RESIDENT_PATIENCE_MS) > 1 &&
        text[0] == RESIDENT_FACTS) {
        facts = cJSON_Parse(text + 1);
    } else {
        fprintf(stderr, "warning: %s does not answer\n", path);
    }
    close(fd);
    return facts;
}

static bool is_socket_name(const char *name)
{
    size_t len = strlen(name), end = strlen(SUFFIX);
    return len > end && strcmp(name + len - end, SUFFIX) == 0;
}

int resident_find_all(struct resident_found **ret, size_t *count, struct gd_err *err)
{
    char directory[80];
    size_t removed = 0;
    int rc = resident_directory(directory, sizeof(directory), err);
    struct resident_found *all = rc == GD_OK ? calloc(MAX_SESSIONS, sizeof(*all)) : NULL;

    *count = 0;
    *ret = all;
    if (!all) {
        return rc != GD_OK ? rc : gd_fail_nomem(err);
    }
    DIR *dir = opendir(directory);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e && *count < MAX_SESSIONS;
         e = readdir(dir)) {
        struct resident_found *found = &all[*count];
        int used = snprintf(found->path, sizeof(found->path), "%s/%.200s", directory, e->d_name);
        if (!is_socket_name(e->d_name) || (size_t)used >= sizeof(found->path)) {
            continue;
        }
        found->facts = get_facts(found->path, &removed);
        *count += found->facts != NULL;
    }
    if (dir) {
        closedir(dir);
    }
    if (removed > 0) {
        fprintf(stderr, "Removed %zu socket%s of dead sessions from %s\n", removed,
                removed > 1 ? "s" : "", directory);
    }
    return GD_OK;
}

void resident_forget_all(struct resident_found *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cJSON_Delete(all[i].facts);
    }
    free(all);
}

const char *resident_found_text(const struct resident_found *found, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(found->facts, name));
    return text ? text : "";
}

static double get_number(const struct resident_found *found, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(found->facts, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Replaces unsafe characters: a program may have any name. */
static void print_safe(FILE *out, const char *text)
{
    while (*text != '\0') {
        uint32_t code = 0;
        size_t len = gd_utf8_decode(text, &code);
        if (len == 0 || gd_utf8_is_unsafe(code)) {
            putc('?', out);
        } else {
            fwrite(text, 1, len, out);
        }
        text += len > 0 ? len : 1;
    }
}

static void print_json(const cJSON *record)
{
    char *text = cJSON_PrintUnformatted(record);
    struct gd_buf line = GD_BUF_INIT(1 << 20);

    if (text) {
        gd_utf8_add_json(&line, text);
        puts(gd_buf_text(&line));
    }
    gd_buf_deinit(&line);
    free(text);
}

void resident_print_found(FILE *out, const struct resident_found *found)
{
    time_t since = (time_t)get_number(found, "since");
    struct tm when;
    char text[32] = "";

    if (localtime_r(&since, &when)) {
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &when);
    }
    const char *terminal = resident_found_text(found, "terminal");
    const char *program = resident_found_text(found, "program");
    fprintf(out, "%-16s %8.0f  %s  ", resident_found_text(found, "name"), get_number(found, "pid"),
            text);
    print_safe(out, program[0] != '\0' ? program : "-");
    fprintf(out, "  %s, step %.0f  %s", resident_found_text(found, "state"),
            get_number(found, "step"), terminal[0] != '\0' ? terminal : "no terminal");
    double viewers = get_number(found, "viewers");
    if (viewers > 0) {
        fprintf(out, ", %.0f viewer%s", viewers, viewers > 1 ? "s" : "");
    }
    putc('\n', out);
}

/* Output of a program whose gradb ended or was killed before the program. */
static void print_left(void *ctx, const struct launch_left *left)
{
    (void)ctx;
    printf("Output of %s (process %ld, %s), whose gradb is gone: ", left->program, left->pid,
           left->running ? "running" : "ended");
    print_safe(stdout, left->path);
    putchar('\n');
}

int resident_list(bool json, struct gd_err *err)
{
    struct resident_found *all = NULL;
    size_t count = 0;
    int rc = resident_find_all(&all, &count, err);

    for (size_t i = 0; i < count; i++) {
        if (json) {
            print_json(all[i].facts);
        } else {
            resident_print_found(stdout, &all[i]);
        }
    }
    if (count == 0 && rc == GD_OK && !json) {
        puts("No session is running. Each gradb on a terminal is a session and survives the loss "
             "of its terminal.");
    }
    resident_forget_all(all, count);
    if (!json) { /* in JSON each line is a session; "info session" lists these files */
        launch_output_left(print_left, NULL);
    }
    return rc;
}
