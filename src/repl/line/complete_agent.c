// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/line/complete_agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "repl/core/repl_impl.h"

struct agent_names {
    struct asked *asked; /* the pending request */
    int session;         /* session of the names */
    char *names;         /* blank-separated; NULL before the first reply */
};

struct asked {
    struct agent_names *for_names; /* NULL: nobody waits for the reply any more */
};

static void names_free(void *data)
{
    struct agent_names *names = data;
    if (names->asked) {
        names->asked->for_names = NULL;
    }
    free(names->names);
    free(names);
}

static struct agent_names *names_of(struct repl *repl)
{
    return repl_make_slot(repl, REPL_SLOT_AGENT, sizeof(struct agent_names), names_free);
}

static void names_take(struct agent_names *names, const cJSON *reply)
{
    struct gd_buf text = GD_BUF_INIT(65536);
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "commands"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(item, "name"));
        if (name && !repl_setting_of_command(name)) {
            gd_buf_printf(&text, "%s ", name);
        }
    }
    free(names->names);
    names->names = strdup(gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static void on_names(void *ctx, const char *text, const struct gd_err *err)
{
    struct asked *asked = ctx;
    if (asked->for_names) {
        cJSON *reply = err ? NULL : cJSON_Parse(text);
        names_take(asked->for_names, reply);
        asked->for_names->asked = NULL;
        cJSON_Delete(reply);
    }
    free(asked);
}

const char *agent_command_names(struct repl *repl, struct gd_session *session)
{
    struct agent_names *names = names_of(repl);
    if (!names || !session || !session->target) {
        return "";
    }
    if (names->names && names->session == session->number) {
        return names->names;
    }
    struct asked *asked = names->asked ? NULL : calloc(1, sizeof(*asked));
    if (asked) {
        asked->for_names = names;
        names->asked = asked;
        names->session = session->number;
        if (gd_target_command(session->target, AGENT_LIST, "", GD_NO_NODE, on_names, asked, NULL) !=
            GD_OK) {
            names->asked = NULL;
            free(asked);
        }
    }
    return "";
}

void agent_take_names(struct repl *repl, const struct gd_session *session, const cJSON *reply)
{
    struct agent_names *names = names_of(repl);

    if (names) {
        names->session = session->number;
        names_take(names, reply);
    }
}
