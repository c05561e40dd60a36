// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/request/request.h"

#include <string.h>

#include "dump/io/json.h"
#include "repl/core/repl_impl.h"

#define REQUEST_DEPTH 4

void repl_request_answer(struct repl *repl, cJSON *record)
{
    if (repl->request.id && repl->busy.depth <= 1 &&
        cJSON_AddItemToObject(record, "id", repl->request.id)) {
        repl->request.id = NULL;
    }
}

/* Takes the id over. A number keeps its digits. */
static int take_id(struct repl *repl, cJSON *object, struct gd_err *err)
{
    cJSON *id = cJSON_DetachItemFromObjectCaseSensitive(object, "id");

    if (cJSON_IsNumber(id)) {
        repl->request.id = cJSON_CreateRaw(id->valuestring);
        cJSON_Delete(id);
        return GD_OK;
    }
    if (!id || cJSON_IsString(id)) {
        repl->request.id = id;
        return GD_OK;
    }
    cJSON_Delete(id);
    return gd_fail(err, GD_EINVAL, "the \"id\" of a request is a number or text");
}

/* *command is owned by the object. */
static int read_request(struct repl *repl, cJSON *object, const char **command, struct gd_err *err)
{
    int rc = take_id(repl, object, err);

    if (rc != GD_OK) {
        return rc;
    }
    *command = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "command"));
    if (!*command) {
        return gd_fail(err, GD_EINVAL,
                       "a request needs \"command\": {\"id\":7,\"command\":\"step\"}");
    }
    return !strpbrk(*command, "\r\n")
               ? GD_OK
               : gd_fail(err, GD_EINVAL, "the \"command\" of a request is one line");
}

/* What the line ran did not answer it. */
static void end_request(struct repl *repl, const char *command)
{
    if (repl->request.id) {
        cJSON *record = cJSON_CreateObject();
        out_set(record, OUT_TEXT("command", command));
        repl_request_answer(repl, record);
        repl_write_json(repl, NULL, "ok", record);
    }
    cJSON_Delete(repl->request.id); /* still there: no memory for the record */
    repl->request.id = NULL;
}

int repl_request_run(struct repl *repl, const char *line)
{
    static const struct gd_json_options limits = {.max_depth = REQUEST_DEPTH, .what = "request"};
    const char *text = line + strspn(line, " \t");
    struct gd_err err = {.code = GD_OK};
    const char *command = NULL;
    cJSON *object = NULL;

    if (!repl->options.json || text[0] != '{') {
        return repl_execute(repl, line);
    }
    int rc = gd_json_parse(text, strlen(text), &limits, &object, &err);
    rc = rc != GD_OK ? rc : read_request(repl, object, &command, &err);
    if (rc == GD_OK) {
        rc = repl_execute(repl, command);
    } else {
        repl_report_failure(repl, NULL, NULL, rc, &err);
    }
    end_request(repl, command ? command : "");
    cJSON_Delete(object);
    return rc;
}
