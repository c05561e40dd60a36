// SPDX-License-Identifier: GPL-3.0-or-later
/* Protocol revisions, and what the server says about itself. */
#include "drive/mcp_impl.h"

#include <string.h>

#include "repl/core/repl_impl.h"

/* Until 2025-11-25 a session begins with `initialize`. Since 2026-07-28 each request says which
 * revision it follows, in its _meta. */
#define MODERN_VERSION "2026-07-28"
#define LATEST_OLD     "2025-11-25"
#define BATCH_VERSION  "2025-03-26" /* the only one with batches */

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CLIENT  "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER  "io.modelcontextprotocol/serverInfo"
#define META_LEVEL   "io.modelcontextprotocol/logLevel"

static const char *const old_versions[] = {"2024-11-05", BATCH_VERSION, "2025-06-18", LATEST_OLD};

static const char instructions[] =
    "gradb is a debugger for neural-network training (PyTorch, MindSpore, C). It stops a training "
    "at a step or at an operator and shows its graph, tensors, stacks and statistics.\n"
    "To find where a NaN comes from: watch {condition: \"TO\", on: \"all\"}, continue, why.\n"
    "A tool that moves the training waits at most timeout_s seconds. If the training still runs, "
    "call wait to wait on, or interrupt to stop it.\n"
    "An answer has at most about max_bytes; a cursor in it gives the rest.\n"
    "help {command: \"watch\"} explains a command. A node may be named by any unique part of its "
    "name.";

static const cJSON *meta_of(const struct mcp_request *request)
{
    return cJSON_GetObjectItemCaseSensitive(request->message.params, "_meta");
}

bool mcp_takes_batches(const struct mcp *mcp)
{
    return mcp->version && strcmp(mcp->version, BATCH_VERSION) == 0;
}

static cJSON *refuse_version(const struct mcp_request *request, const char *requested)
{
    cJSON *answer = rpc_error(request->message.id, RPC_VERSION, "unsupported protocol version");
    cJSON *data = out_object(cJSON_GetObjectItemCaseSensitive(answer, "error"), "data");
    cJSON *list = out_list(data, "supported");

    for (size_t i = 0; i < sizeof(old_versions) / sizeof(old_versions[0]); i++) {
        out_push_text(list, old_versions[i]);
    }
    out_push_text(list, MODERN_VERSION);
    out_set(data, OUT_TEXT("requested", requested));
    return answer;
}

bool mcp_admit(const struct mcp *mcp, struct mcp_request *request, cJSON **answer)
{
    const cJSON *id = request->message.id;
    const cJSON *meta = meta_of(request);
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(meta, META_VERSION);
    bool begins = strcmp(request->message.method, "initialize") == 0;

    request->modern = version && !begins;
    if (request->modern && !cJSON_IsString(version)) {
        *answer = rpc_error(id, RPC_PARAMS, "\"" META_VERSION "\" is text");
    } else if (request->modern && strcmp(version->valuestring, MODERN_VERSION) != 0) {
        *answer = refuse_version(request, version->valuestring);
    } else if (request->modern &&
               !cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(meta, META_CLIENT))) {
        *answer = rpc_error(id, RPC_PARAMS, "_meta needs \"" META_CLIENT "\": an object");
    } else if (!request->modern && strcmp(request->message.method, "server/discover") == 0) {
        *answer = rpc_error(id, RPC_PARAMS, "_meta needs \"" META_VERSION "\"");
    } else if (!request->modern && !begins && !mcp->version &&
               strcmp(request->message.method, "ping") != 0) {
        *answer = rpc_error(id, RPC_INVALID, "send \"initialize\" before \"%.100s\"",
                            request->message.method);
    }
    return !*answer;
}

/* ---- what the server is ---- */

static void add_server(cJSON *object, const char *key)
{
    out_set(out_object(object, key), OUT_TEXT("name", "gradb"),
            OUT_TEXT("title", "gradb: debugger for neural-network training"),
            OUT_TEXT("version", GRADB_VERSION));
}

static void add_capabilities(cJSON *result)
{
    cJSON *capabilities = out_object(result, "capabilities");

    out_set(out_object(capabilities, "tools"), OUT_BOOL("listChanged", true));
    out_object(capabilities, "resources");
    out_object(capabilities, "logging");
}

cJSON *mcp_initialize(struct mcp *mcp, const struct mcp_request *request)
{
    const char *wanted = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(request->message.params, "protocolVersion"));
    cJSON *result;

    if (!wanted) {
        return rpc_error(request->message.id, RPC_PARAMS,
                         "\"initialize\" needs \"protocolVersion\": \"" LATEST_OLD "\"");
    }
    mcp->version = LATEST_OLD;
    for (size_t i = 0; i < sizeof(old_versions) / sizeof(old_versions[0]); i++) {
        mcp->version = strcmp(wanted, old_versions[i]) == 0 ? old_versions[i] : mcp->version;
    }
    result = cJSON_CreateObject();
    out_set(result, OUT_TEXT("protocolVersion", mcp->version));
    add_capabilities(result);
    add_server(result, "serverInfo");
    out_set(result, OUT_TEXT("instructions", instructions));
    return rpc_result(request->message.id, result);
}

cJSON *mcp_discover(struct mcp *mcp, const struct mcp_request *request)
{
    cJSON *result = cJSON_CreateObject();
    cJSON *list = out_list(result, "supportedVersions");

    (void)mcp;
    for (size_t i = 0; i < sizeof(old_versions) / sizeof(old_versions[0]); i++) {
        out_push_text(list, old_versions[i]);
    }
    out_push_text(list, MODERN_VERSION);
    add_capabilities(result);
    out_set(result, OUT_TEXT("instructions", instructions));
    return rpc_result(request->message.id, mcp_finish(request, result, true));
}

cJSON *mcp_finish(const struct mcp_request *request, cJSON *result, bool cached)
{
    if (request->modern) {
        out_set(result, OUT_TEXT("resultType", "complete"));
        if (cached) { /* what is listed and read changes with the training */
            out_set(result, OUT_INT("ttlMs", 0), OUT_TEXT("cacheScope", "private"));
        }
        add_server(out_object(result, "_meta"), META_SERVER);
    }
    return result;
}

/* ---- logging ---- */

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};

int mcp_level_named(const char *name)
{
    int level = 0;

    while (level < LOG_NONE && strcmp(levels[level], name) != 0) {
        level++;
    }
    return level;
}

int mcp_level_of(const struct mcp *mcp)
{
    const char *asked = mcp->current ? out_text_of(meta_of(mcp->current), META_LEVEL) : "";
    return asked[0] != '\0' ? mcp_level_named(asked) : mcp->log_level;
}

cJSON *mcp_set_level(struct mcp *mcp, const struct mcp_request *request)
{
    int level = mcp_level_named(out_text_of(request->message.params, "level"));

    if (level == LOG_NONE) {
        return rpc_error(request->message.id, RPC_PARAMS,
                         "the level is debug, info, notice, warning, error, critical, alert or "
                         "emergency");
    }
    mcp->log_level = level;
    return rpc_result(request->message.id, mcp_finish(request, cJSON_CreateObject(), false));
}
