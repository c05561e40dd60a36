// SPDX-License-Identifier: GPL-3.0-or-later
/* What has to be typed so that a training process finds gradb. */
#include "repl/commands.h"
#include "repl/repl_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIN_WIDTH 24
#define PYTORCH   "python3 -m gradb train.py" /* the package is installed: README */

struct connect_text {
    struct gd_buf *out;
    int width;
};

/* Words at blanks, each line but the first behind `indent` blanks; behind a line that goes on comes
 * `more`. A word that is wider than a line stays whole: it shall be copied. */
static void add_folded(struct connect_text *text, const char *words, int first, int indent,
                       const char *more)
{
    int room = text->width - (int)strlen(more);
    int used = first;

    gd_buf_fill(text->out, ' ', (size_t)first);
    for (const char *word = words; *word != '\0';) {
        int len = (int)strcspn(word, " ");
        bool last = word[len] == '\0';
        if (word > words && used + 1 + len > (last ? text->width : room)) {
            gd_buf_printf(text->out, "%s\n", more);
            gd_buf_fill(text->out, ' ', (size_t)indent);
            used = indent;
        } else if (word > words) {
            gd_buf_putc(text->out, ' ');
            used++;
        }
        gd_buf_add(text->out, word, (size_t)len);
        used += len;
        word += len + (last ? 0 : 1);
    }
    gd_buf_putc(text->out, '\n');
}

static void add_sentence(struct connect_text *text, const char *sentence)
{
    add_folded(text, sentence, 0, 0, "");
}

/* For a shell: a line that goes on ends with a backslash. */
static void add_shell(struct connect_text *text, const char *line)
{
    add_folded(text, line, 2, 4, " \\");
}

/* All addresses of this host: others reach it by its name. */
static bool is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0 || strcmp(host, "::") == 0;
}

static void add_agent(struct connect_text *text, const char *host, const char *port,
                      const char *token, const char *program)
{
    char line[512];

    snprintf(line, sizeof(line), "GRADB_ADDRESS=%s:%s %s%s%s%s", host, port,
             token[0] != '\0' ? "GRADB_TOKEN=" : "", token, token[0] != '\0' ? " " : "", program);
    add_shell(text, line);
}

static void add_mindspore(struct connect_text *text, const char *host, const char *port)
{
    char line[512];

    snprintf(line, sizeof(line),
             "ENABLE_MS_DEBUGGER=1 MS_DEBUGGER_HOST=%s MS_DEBUGGER_PORT=%s python3 train.py", host,
             port);
    add_shell(text, line);
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0 ||
           strcmp(host, "localhost") == 0;
}

/* From elsewhere: through a tunnel to a loopback address, else by this host's name or address. */
static void add_other_hosts(struct connect_text *text, const char *host, const char *port,
                            const char *token)
{
    char here[256] = "this-host";
    char line[512];

    if (is_any(host)) {
        if (gethostname(here, sizeof(here)) == 0) {
            here[sizeof(here) - 1] = '\0';
        }
        add_sentence(text, "On another host:");
        add_agent(text, here, port, token, PYTORCH);
    } else if (is_loopback(host)) {
        add_sentence(text, "On another host the same, after this was typed here:");
        snprintf(line, sizeof(line), "ssh -R %s:%s:%s USER@HOST", port, host, port);
        add_shell(text, line);
    } else {
        add_sentence(text, "On another host the same; where a firewall is between, type here:");
        snprintf(line, sizeof(line), "ssh -R %s:%s:%s USER@HOST", port, host, port);
        add_shell(text, line);
        add_sentence(text, "and there:");
        add_agent(text, "127.0.0.1", port, token, PYTORCH);
    }
}

/* Where a program on this host finds us. */
static const char *near_host(const char *host)
{
    return is_any(host) ? "127.0.0.1" : host;
}

static void add_lines(struct connect_text *text, const char *host, const char *port,
                      const char *token)
{
    add_sentence(text, "PyTorch:");
    add_agent(text, near_host(host), port, token, PYTORCH);
    add_sentence(text, "A trainer in C, or another one, with libgradb:");
    add_agent(text, near_host(host), port, token, "./train");
    add_sentence(text, "MindSpore 1.x:");
    add_mindspore(text, near_host(host), port);
    add_other_hosts(text, host, port, token);
}

/* "[::1]:50051" is cut at its last colon; false: there is none. */
static bool split(const char *address, char *host, size_t size, const char **port)
{
    const char *colon = address != NULL ? strrchr(address, ':') : NULL;

    if (colon == NULL) {
        return false;
    }
    snprintf(host, size, "%.*s", (int)(colon - address), address);
    *port = colon + 1;
    return true;
}

void repl_connect_text(const char *address, const char *token, int width, struct gd_buf *out)
{
    struct connect_text text = {.out = out, .width = width < MIN_WIDTH ? MIN_WIDTH : width};
    const char *port;
    char host[128];

    if (split(address, host, sizeof(host), &port)) {
        add_lines(&text, host, port, token);
    } else {
        add_sentence(&text, "gradb does not listen: no training process can connect. In gradb:");
        add_shell(&text, "listen");
    }
    add_sentence(&text, "Or gradb starts the training itself, here or from the shell:");
    add_shell(&text, "run -- python3 train.py");
    add_shell(&text, "gradb run -- python3 train.py");
}

void repl_connect_short(const char *address, const char *token, int width, struct gd_buf *out)
{
    struct connect_text text = {.out = out, .width = width < MIN_WIDTH ? MIN_WIDTH : width};
    const char *port;
    char host[128];

    if (split(address, host, sizeof(host), &port)) {
        add_sentence(&text, "A trainer connects with one of these (help connect tells more):");
        add_agent(&text, near_host(host), port, token, PYTORCH);
        add_mindspore(&text, near_host(host), port);
    }
}

/* One line of text each, without the indentation. */
static void add_json_lines(cJSON *record, const char *text)
{
    cJSON *lines = cJSON_AddArrayToObject(record, "lines");

    for (const char *line = text; *line != '\0';) {
        char copy[1024];
        size_t len = strcspn(line, "\n");
        snprintf(copy, sizeof(copy), "%.*s", (int)len, line);
        cJSON_AddItemToArray(lines, cJSON_CreateString(copy));
        line += len + (line[len] == '\n' ? 1 : 0);
    }
}

int cmd_help_connect(struct command_call *call)
{
    struct gd_debugger *debugger = call->debugger;
    const char *address =
        debugger->server != NULL ? debugger->server->address(debugger->server_ctx) : NULL;
    struct gd_buf text = GD_BUF_INIT(16384);
    bool json = out_is_json(call->out);

    repl_connect_text(address, debugger->settings.token, json ? 10000 : out_width(call->out),
                      &text);
    if (json) {
        cJSON *record = out_record(call->out, "help_connect");
        cJSON_AddStringToObject(record, "address", address != NULL ? address : "");
        add_json_lines(record, gd_buf_text(&text));
    }
    out_printf(call->out, "%s", gd_buf_text(&text));
    gd_buf_deinit(&text);
    return GD_OK;
}
