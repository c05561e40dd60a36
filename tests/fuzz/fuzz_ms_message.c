// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The small messages of debugger.EventListener, and a target that receives them: the first byte of
 * each is its kind, the second its length.
 */
#include "fuzz.h"

#include "proto/ms/ms_target.h"

static int waiting;

static void take_reply(void *call, const void *data, size_t len)
{
    FUZZ_CHECK(call == &waiting && len <= GD_MS_MAX_REPLY);
}

static void on_gone(void *owner, bool detached, int32_t last_id)
{
}

static const struct gd_ms_io io = {.reply = take_reply, .gone = on_gone};

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    FUZZ_CHECK(!tensor != !err);
    --*(int *)ctx;
}

static void act_on_session(struct gd_session *session, uint8_t what, int *waits)
{
    struct gd_run run = {.kind = (enum gd_run_kind)(what % 4),
                         .count = 1 + what % 3,
                         .name = "x/y",
                         .node = GD_NO_NODE};
    struct gd_tensor_ref ref = {.node = what % 8, .iter = what & 1 ? GD_PREVIOUS : GD_CURRENT};
    gd_node_id node = what % 8;
    struct gd_remote_watch watch = {
        .id = 1 + what % 3, .condition = 13, .nodes = &node, .node_count = 1};

    if (!session->target) {
        return;
    }
    switch (what >> 5) {
    case 0: gd_target_resume(session->target, &run, NULL); break;
    case 1:
        if (gd_target_fetch(session->target, &ref, NULL, on_tensor, waits, NULL) == GD_OK) {
            ++*waits;
        }
        break;
    case 2: gd_target_watch(session->target, &watch, NULL); break;
    case 3: gd_target_unwatch(session->target, 1 + what % 3, NULL); break;
    case 4: gd_target_interrupt(session->target, NULL); break;
    case 5: gd_target_set_breakpoints(session->target, &node, 1, NULL); break;
    default: break;
    }
}

static void send_message(struct gd_ms_target *target, uint8_t kind, const uint8_t *data, size_t len)
{
    struct gd_ms_metadata metadata;
    struct gd_ms_heartbeat heartbeat;
    struct gd_ms_base base;
    struct gd_ms_summary summary;
    struct gd_ms_hit hit;
    const uint8_t *piece;
    size_t piece_len;
    bool finished;

    switch (kind & 7) {
    case 0:
        if (gd_ms_read_metadata(data, len, &metadata)) {
            gd_ms_target_on_wait(target, &waiting, &metadata);
        }
        break;
    case 1:
        if (gd_ms_read_metadata(data, len, &metadata)) {
            gd_ms_target_on_metadata(target, &metadata);
        }
        break;
    case 2:
        if (gd_ms_read_heartbeat(data, len, &heartbeat)) {
            gd_ms_target_on_heartbeat(target, heartbeat.period);
        }
        break;
    case 3:
        if (gd_ms_read_base(data, len, &base)) {
            gd_ms_target_on_base(target, &base);
        }
        break;
    case 4:
        if (gd_ms_read_summary(data, len, &summary)) {
            gd_ms_target_on_summary(target, &summary);
        }
        break;
    case 5:
        if (gd_ms_read_hit(data, len, &hit)) {
            gd_ms_target_on_hit(target, &hit);
        }
        break;
    case 6:
        if (gd_ms_read_chunk(data, len, &piece, &piece_len, &finished)) {
            gd_ms_target_on_graph(target, piece, piece_len);
        }
        break;
    default: gd_ms_target_on_wait_closed(target, &waiting); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_debugger *debugger;
    struct gd_ms_target *target;
    struct gd_ms_metadata first = {.device_name = "0:1"};
    int waits = 0;

    if (size < 1) {
        return 0;
    }
    snprintf(first.backend, sizeof(first.backend), "%s", data[0] & 1 ? "GPU" : "Ascend");
    snprintf(first.ms_version, sizeof(first.ms_version), "1.%d.1", data[0] >> 1 & 15);
    FUZZ_CHECK(gd_debugger_create(&debugger, NULL) == GD_OK);
    debugger->settings.max_tensor = 4096;
    FUZZ_CHECK(gd_ms_target_create(debugger, &io, &waiting, "peer", &first, &target, NULL) ==
               GD_OK);
    struct gd_session *session = gd_ms_target_session(target);
    data++;
    size--;
    while (size >= 2) {
        size_t len = data[1] < size - 2 ? data[1] : size - 2;

        if (data[0] & 0x80) {
            act_on_session(session, (uint8_t)(data[0] << 1 | (data[1] & 1)), &waits);
        } else {
            send_message(target, data[0], data + 2, len);
        }
        data += 2 + len;
        size -= 2 + len;
    }
    gd_ms_target_on_closed(target);
    FUZZ_CHECK(waits == 0); /* every request was answered */
    gd_debugger_destroy(debugger);
    return 0;
}
