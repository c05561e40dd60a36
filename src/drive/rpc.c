// SPDX-License-Identifier: GPL-3.0-or-later
#include "drive/rpc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/json.h"
#include "engine/utf8.h"
#include "repl/out/out.h"

#define MOST_DEPTH  64
#define MOST_VALUES 200000

cJSON *rpc_copy_id(const cJSON *id)
{
    if (cJSON_IsNumber(id)) {
        return cJSON_CreateRaw(id->valuestring);
    }
    return cJSON_IsString(id) ? cJSON_CreateString(id->valuestring) : cJSON_CreateNull();
}

static cJSON *begin_message(void)
{
    cJSON *message = cJSON_CreateObject();

    out_set(message, OUT_TEXT("jsonrpc", "2.0"));
    return message;
}

cJSON *rpc_result(const cJSON *id, cJSON *result)
{
    cJSON *message = begin_message();

    out_set(message, OUT_JSON("id", rpc_copy_id(id)), OUT_JSON("result", result));
    return message;
}

cJSON *rpc_error(const cJSON *id, enum rpc_code code, const char *format, ...)
{
    cJSON *message = begin_message();
    struct gd_buf text = GD_BUF_INIT(4096);
    va_list args;

    va_start(args, format);
    gd_buf_vprintf(&text, format, args);
    va_end(args);
    out_set(message, OUT_JSON("id", rpc_copy_id(id)));
    out_set(out_object(message, "error"), OUT_INT("code", code),
            OUT_TEXT("message", gd_buf_text(&text)));
    gd_buf_deinit(&text);
    return message;
}

cJSON *rpc_notification(const char *method, cJSON *params)
{
    cJSON *message = begin_message();

    out_set(message, OUT_TEXT("method", method), OUT_IF(params, OUT_JSON("params", params)));
    return message;
}

void rpc_write(struct gd_buf *out, cJSON *message)
{
    char *text = cJSON_PrintUnformatted(message);

    if (text) {
        gd_utf8_add_json(out, text);
        gd_buf_putc(out, '\n');
    }
    free(text);
    cJSON_Delete(message);
}

bool rpc_parse(const char *text, size_t len, cJSON **root, cJSON **answer)
{
    static const struct gd_json_options limits = {
        .max_depth = MOST_DEPTH, .max_nodes = MOST_VALUES, .what = "message"};
    struct gd_err err;

    *root = NULL;
    if (gd_json_parse(text, len, &limits, root, &err) != GD_OK) {
        *answer = rpc_error(NULL, RPC_PARSE, "%s", err.text);
        return false;
    }
    if (!cJSON_IsObject(*root) && !cJSON_IsArray(*root)) {
        cJSON_Delete(*root);
        *root = NULL;
        *answer = rpc_error(NULL, RPC_INVALID, "a message is a JSON object");
        return false;
    }
    return true;
}

static const char *find_fault(const struct rpc_message *message, const cJSON *id,
                              const cJSON *method, const cJSON *params)
{
    const char *version =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message->root, "jsonrpc"));

    if (!version || strcmp(version, "2.0") != 0) {
        return "a message needs \"jsonrpc\": \"2.0\"";
    }
    bool answers =
        cJSON_HasObjectItem(message->root, "result") || cJSON_HasObjectItem(message->root, "error");
    if (answers && !method) {
        return NULL; /* also with a null id: two peers would answer each other for ever */
    }
    if (id && !message->id) {
        return "the \"id\" of a request is a number or text";
    }
    if (method && !message->method) {
        return "the \"method\" of a request is text";
    }
    if (params && !message->params) {
        return "the \"params\" of a request are an object";
    }
    return method ? NULL : "a request needs a \"method\"";
}

bool rpc_read(cJSON *root, struct rpc_message *ret, cJSON **answer)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(root, "id");
    const cJSON *method = cJSON_GetObjectItemCaseSensitive(root, "method");
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(root, "params");

    *ret = (struct rpc_message){.root = root};
    if (!cJSON_IsObject(root)) {
        *answer = rpc_error(NULL, RPC_INVALID, "a message is a JSON object");
        rpc_free(ret);
        return false;
    }
    ret->id = cJSON_IsNumber(id) || cJSON_IsString(id) ? (cJSON *)id : NULL;
    ret->method = cJSON_GetStringValue(method);
    ret->params = cJSON_IsObject(params) ? (cJSON *)params : NULL;
    const char *fault = find_fault(ret, id, method, params);
    if (fault) {
        *answer = rpc_error(ret->id, RPC_INVALID, "%s", fault);
        rpc_free(ret);
        return false;
    }
    return true;
}

void rpc_free(struct rpc_message *message)
{
    cJSON_Delete(message->root);
    *message = (struct rpc_message){.root = NULL};
}
