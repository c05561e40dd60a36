// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * JSON-RPC messages of a client of `gradb mcp`: a line is either a message, and what is written
 * back for it is one line of valid JSON with its id, or it has exactly one error.
 */
#include "fuzz.h"

#include "drive/rpc.h"

static void check_line(cJSON *message)
{
    struct gd_buf line = GD_BUF_INIT(SIZE_MAX);

    rpc_write(&line, message);
    FUZZ_CHECK(line.len > 2 && line.data[0] == '{' && line.data[line.len - 1] == '\n');
    FUZZ_CHECK(memchr(line.data, '\n', line.len) == line.data + line.len - 1);
    cJSON *again = cJSON_Parse(line.data);
    FUZZ_CHECK(again);
    cJSON_Delete(again);
    gd_buf_deinit(&line);
}

static void take_message(cJSON *root)
{
    struct rpc_message message;
    cJSON *answer = NULL;

    if (!rpc_read(root, &message, &answer)) {
        FUZZ_CHECK(answer);
        check_line(answer);
        return;
    }
    FUZZ_CHECK(!answer);
    if (message.id && message.method) {
        check_line(rpc_result(message.id, cJSON_CreateObject()));
        check_line(rpc_error(message.id, RPC_NO_METHOD, "no method %.100s", message.method));
    }
    rpc_free(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *root = NULL, *answer = NULL;

    if (!rpc_parse((const char *)data, size, &root, &answer)) {
        FUZZ_CHECK(!root && answer);
        check_line(answer);
        return 0;
    }
    if (!cJSON_IsArray(root)) {
        take_message(root);
        return 0;
    }
    for (cJSON *one = cJSON_DetachItemFromArray(root, 0); one;
         one = cJSON_DetachItemFromArray(root, 0)) {
        take_message(one);
    }
    cJSON_Delete(root);
    return 0;
}
