// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/norms.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/everyone.h"
#include "repl/values/inspect.h"

#define COMMAND "norms"

struct norm {
    const char *name; /* as typed */
    const char *node; /* as typed; NULL: of all gradients */
};

static bool is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || strchr("_/.-", c);
}

/* The inside of the bracket at `open`; NULL: it has blanks, or no end. */
static const char *find_close(const char *open)
{
    int depth = 0;

    for (const char *p = open; *p != '\0' && !isspace((unsigned char)*p); p++) {
        depth += (*p == '(') - (*p == ')');
        if (depth == 0) {
            return p;
        }
    }
    return NULL;
}

/* The norm that begins at `at`; returns where it ends, NULL: it is none. */
static const char *take_norm(struct command_call *call, const char *at, struct norm *ret)
{
    static const char *const words[] = {"grad_norm", "update_ratio"};

    for (int i = 0; i < 2; i++) {
        size_t len = strlen(words[i]);
        if (strncmp(at, words[i], len) != 0) {
            continue;
        }
        const char *close = at[len] == '(' ? find_close(at + len) : NULL;
        *ret = (struct norm){.name = words[i]};
        if (close && close > at + len + 1) {
            ret->name = gd_arena_strndup(call->arena, at, (size_t)(close + 1 - at));
            ret->node = gd_arena_strndup(call->arena, at + len + 1, (size_t)(close - at) - len - 1);
            bool statistic =
                ret->node && (strcmp(ret->node, "cur") == 0 || strcmp(ret->node, "prev") == 0 ||
                              strcmp(ret->node, "cur-prev") == 0);
            return ret->name && ret->node && !statistic ? close + 1 : NULL;
        }
        return i == 0 && at[len] != '(' && (at[len] == '\0' || !is_part_of_name(at[len])) ? at + len
                                                                                          : NULL;
    }
    return NULL;
}

/* What the reply says about the present step. */
static int take_reply(struct command_call *call, const struct norm *norm, const cJSON *reply,
                      bool shows, struct gd_err *err)
{
    const cJSON *value = cJSON_GetObjectItem(reply, "value");
    const char *note = out_text_of(reply, "note"), *unseen = out_text_of(reply, "unseen");
    bool known =
        cJSON_GetObjectItem(reply, "own") || cJSON_IsNumber(cJSON_GetObjectItem(reply, "step"));

    if (shows && !known && unseen[0] != '\0') {
        return gd_fail(err, GD_ENODATA, "%.80s is unknown: %.300s", norm->name, unseen);
    }
    if (shows && !known) {
        return gd_fail(err, GD_ENODATA, "%.80s is recorded from step %lld on: %s", norm->name,
                       (long long)out_number_of(reply, "from"),
                       norm->name[0] == 'u'
                           ? "it compares the value before an update with the one after it"
                           : "the gradients of the present step are not there");
    }
    if (cJSON_IsNumber(value) || cJSON_IsString(value)) {
        gd_session_recall_scalar(call->session, norm->name,
                                 cJSON_IsNumber(value) ? value->valuedouble
                                                       : strtod(value->valuestring, NULL),
                                 (int64_t)out_number_of(reply, "step"));
    }
    if (shows && note[0] != '\0') {
        out_printf(call->out, "%s: %s\n", norm->name, out_safe(call, note));
    }
    return GD_OK;
}

static int ask_norm(struct command_call *call, struct gd_session *session, const struct norm *norm,
                    bool shows, struct gd_err *err)
{
    const struct gd_scalar *scalar = gd_session_scalar(session, norm->name);
    const char *node = "", *text = NULL;
    gd_node_id id;

    if (scalar && scalar->step == gd_session_step(session)) {
        return GD_OK;
    }
    if (norm->node) {
        int rc = arg_node(call, norm->node, &id, err);
        if (rc != GD_OK) {
            return rc;
        }
        node = gd_graph_name(session->graph, id);
    }
    int rc = everyone_command(call, COMMAND,
                              inspect_printf(call, "%s%s%s%s", scalar ? "known " : "", norm->name,
                                             node[0] ? " " : "", node),
                              &text, err);
    if (rc != GD_OK && scalar && rc != GD_EINTR) {
        return GD_OK; /* the program reports it itself */
    }
    if (rc == GD_EUNSUPPORTED) {
        return gd_fail(err, rc,
                       "this training process does not report %.80s: `trace norm > 1e30 on NODE` "
                       "records the norm of a tensor, which is NODE.norm for `plot`",
                       norm->name);
    }
    if (rc != GD_OK) {
        return rc;
    }
    gd_session_keep_history(session);
    cJSON *reply = cJSON_Parse(text);
    rc = take_reply(call, norm, reply, shows, err);
    cJSON_Delete(reply);
    return rc;
}

int norms_want(struct command_call *call, bool shows, struct gd_err *err)
{
    struct gd_session *session = call->debugger->current;
    const char *line = call->line;
    int rc = GD_OK;

    if (!session || session->state != GD_STOPPED || gd_session_is_record(session) ||
        !session->target || !(session->target->capabilities & GD_CAN_COMMAND)) {
        return GD_OK;
    }
    struct gd_session *before = call->session;
    call->session = session;
    for (const char *p = line; rc == GD_OK && *p != '\0';) {
        struct norm norm;
        bool begins = p == line || !is_part_of_name(p[-1]);
        const char *end = begins ? take_norm(call, p, &norm) : NULL;
        if (end) {
            rc = ask_norm(call, session, &norm, shows, err);
        }
        p = end ? end : p + 1;
    }
    call->session = before;
    return rc;
}
