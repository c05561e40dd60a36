// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The messages of debugger.EventListener, byte for byte as clients send and expect them.
 */
#include "../../unit.h"
#include "proto/ms/ms_message.h"
#include "proto/ms/ms_tensor.h"

static size_t read_hex(const char *hex, uint8_t *out)
{
    size_t len = 0;
    for (; *hex; hex++) {
        if (*hex == ' ') {
            continue;
        }
        char pair[3] = {hex[0], hex[1], 0};
        out[len++] = (uint8_t)strtoul(pair, NULL, 16);
        hex++;
    }
    return len;
}

static void expect_bytes(struct gd_buf *reply, int rc, const char *hex)
{
    uint8_t want[1024];
    size_t len = read_hex(hex, want);
    assert_ok(rc);
    assert_int_equal(reply->len, len);
    assert_memory_equal(gd_buf_text(reply), want, len);
    gd_buf_deinit(reply);
}

static struct gd_buf reply;

static int fresh_reply(void **state)
{
    gd_buf_init(&reply, GD_MS_MAX_REPLY);
    return 0;
}

static void test_replies(void **state)
{
    expect_bytes(&reply, gd_ms_write_version_matched(&reply, true), "30 01");
    expect_bytes(&reply, gd_ms_write_version_matched(&reply, false), "30 00");
    expect_bytes(&reply, gd_ms_write_exit(&reply), "10 01");
    expect_bytes(&reply, gd_ms_write_step(&reply), "1a 08 0a 04 73 74 65 70 10 01");
    expect_bytes(&reply, gd_ms_write_recheck(&reply), "1a 09 0a 07 72 65 63 68 65 63 6b");
    expect_bytes(&reply, gd_ms_write_node(&reply, ""), "1a 08 0a 04 6e 6f 64 65 1a 00");
    expect_bytes(&reply, gd_ms_write_node(&reply, "Default/a"),
                 "1a 11 0a 04 6e 6f 64 65 1a 09 44 65 66 61 75 6c 74 2f 61");
    expect_bytes(&reply, gd_ms_write_delete(&reply, 1), "22 04 18 01 20 01");
}

static void test_view(void **state)
{
    const struct gd_ms_view_item item = {.name = "Default/fc1.weight", .truncate = true};
    expect_bytes(&reply, gd_ms_write_views(&reply, &item, 1, GD_MS_VALUE),
                 "2a 1d 0a 1b 0a 12 44 65 66 61 75 6c 74 2f 66 63 31 2e 77 65 69 67 68 74 12 01 30 "
                 "3a 00 40 01");
    expect_bytes(&reply, gd_ms_write_views(&reply, &item, 1, GD_MS_STATISTICS),
                 "2a 1f 0a 1b 0a 12 44 65 66 61 75 6c 74 2f 66 63 31 2e 77 65 69 67 68 74 12 01 30 "
                 "3a 00 40 01 "
                 "10 01");
}

static void test_set(void **state)
{
    const struct gd_remote_param params[] = {{"abs_mean_gt", true, 0},
                                             {"max_gt", false, 0.5},
                                             {"min_gt", true, 0},
                                             {"mean_gt", true, 0}};
    const struct gd_ms_watch_node node = {"Default/fc1.weight", "Parameter"};
    expect_bytes(&reply, gd_ms_write_set(&reply, 1, 15, params, 4, &node, 1),
                 "22 69 0a 1f 0a 12 44 65 66 61 75 6c 74 2f 66 63 31 2e 77 65 69 67 68 74 12 09 50 "
                 "61 72 61 6d "
                 "65 74 65 72 12 44 08 0f 15 00 00 00 3f 22 0f 0a 0b 61 62 73 5f 6d 65 61 6e 5f 67 "
                 "74 10 01 22 "
                 "11 0a 06 6d 61 78 5f 67 74 19 00 00 00 00 00 00 e0 3f 22 0a 0a 06 6d 69 6e 5f 67 "
                 "74 10 01 22 "
                 "0b 0a 07 6d 65 61 6e 5f 67 74 10 01 20 01");
}

static void test_set_too_large_is_refused(void **state)
{
    size_t count = 60000;
    struct gd_ms_watch_node *nodes = calloc(count, sizeof(*nodes));
    for (size_t i = 0; i < count; i++) {
        nodes[i] = (struct gd_ms_watch_node){"Default/network-WithLossCell/_backbone-LeNet5/"
                                             "conv1-Conv2d/some-long-name/conv1.weight",
                                             "Parameter"};
    }
    assert_int_equal(gd_ms_write_set(&reply, 1, 13, NULL, 0, nodes, count), GD_ELIMIT);
    assert_int_equal(reply.len, 0);
    gd_buf_deinit(&reply);
    free(nodes);
}

static void test_metadata(void **state)
{
    uint8_t bytes[128];
    struct gd_ms_metadata metadata;
    size_t len = read_hex("0a 03 30 3a 31 1a 03 47 50 55 30 01 3a 05 31 2e 39 2e 30", bytes);
    assert_true(gd_ms_read_metadata(bytes, len, &metadata));
    assert_string_equal(metadata.device_name, "0:1");
    assert_string_equal(metadata.backend, "GPU");
    assert_string_equal(metadata.ms_version, "1.9.0");
    assert_int_equal(metadata.graph_num, 1);
    assert_int_equal(metadata.cur_step, 0);
    assert_false(metadata.training_done);
    len = read_hex(
        "0a 03 30 3a 31 10 03 1a 03 47 50 55 22 19 44 65 66 61 75 6c 74 2f 6e 65 74 77 6f 72 6b "
        "2f 52 65 4c 55 2d 6f 70 31 32",
        bytes);
    assert_true(gd_ms_read_metadata(bytes, len, &metadata));
    assert_int_equal(metadata.cur_step, 3);
    assert_string_equal(metadata.cur_node, "Default/network/ReLU-op12");
    for (size_t cut = 1; cut < 5; cut++) { /* inside the first field */
        assert_false(gd_ms_read_metadata(bytes, cut, &metadata));
    }
    assert_false(gd_ms_read_metadata((const uint8_t *)"\x0a\xff\xff\xff\xff\x0f", 6, &metadata));
}

static void test_chunk_and_heartbeat(void **state)
{
    uint8_t bytes[128];
    const uint8_t *piece;
    size_t piece_len, len;
    bool finished;
    len = read_hex("0a 13 12 0e 6b 65 72 6e 65 6c 5f 67 72 61 70 68 5f 30 32 01 31", bytes);
    assert_true(gd_ms_read_chunk(bytes, len, &piece, &piece_len, &finished));
    assert_int_equal(piece_len, 19);
    assert_false(finished);
    struct gd_ms_heartbeat heartbeat;
    len = read_hex("0a 11 44 65 62 75 67 67 65 72 20 69 73 20 61 6c 69 76 65 10 1e", bytes);
    assert_true(gd_ms_read_heartbeat(bytes, len, &heartbeat));
    assert_string_equal(heartbeat.message, "Debugger is alive");
    assert_int_equal(heartbeat.period, 30);
}

static void test_base_and_summary(void **state)
{
    uint8_t bytes[128];
    struct gd_ms_base base;
    struct gd_ms_summary summary;
    assert_true(gd_ms_read_base(bytes, read_hex("08 0b 12 01 02 18 08", bytes), &base));
    assert_int_equal(base.dtype, GD_FLOAT32);
    assert_int_equal(base.shape.rank, 1);
    assert_int_equal(base.shape.dim[0], 2);
    assert_int_equal(base.bytes, 8);
    assert_true(gd_ms_read_base(bytes, read_hex("12 01 00", bytes), &base));
    assert_int_equal(base.dtype, GD_DT_NONE);
    assert_int_equal(base.bytes, 0);
    assert_true(gd_ms_read_summary(
        bytes, read_hex("0a 00 12 0a 15 00 00 80 ff 1d 00 00 80 7f", bytes), &summary));
    assert_int_equal(summary.count, 0);
    assert_true(summary.max < 0 && summary.min > 0);
    /* a shape written one by one is understood as well, a negative size is not */
    assert_true(gd_ms_read_base(bytes, read_hex("08 0b 10 02 10 03 18 18", bytes), &base));
    assert_int_equal(base.shape.rank, 2);
    assert_int_equal(base.shape.dim[1], 3);
    assert_false(
        gd_ms_read_base(bytes, read_hex("18 ff ff ff ff ff ff ff ff ff 01", bytes), &base));
}

static void test_hit(void **state)
{
    uint8_t bytes[256];
    struct gd_ms_hit hit;
    size_t len =
        read_hex("0a 21 0a 1a 44 65 66 61 75 6c 74 2f 6e 65 74 77 6f 72 6b 2f 66 63 31 2e 77 "
                 "65 69 67 68 74 12 01 "
                 "30 30 01 12 20 08 0f 22 1c 0a 06 6d 61 78 5f 67 74 19 00 00 00 00 00 00 e0 "
                 "3f 20 01 29 00 00 00 "
                 "00 00 00 e8 3f 18 01",
                 bytes);
    assert_true(gd_ms_read_hit(bytes, len, &hit));
    assert_string_equal(hit.node_name, "Default/network/fc1.weight");
    assert_string_equal(hit.slot, "0");
    assert_int_equal(hit.id, 1);
    assert_int_equal(hit.condition, 15);
    assert_int_equal(hit.error_code, 0);
    assert_int_equal(hit.param_count, 1);
    assert_string_equal(hit.param[0].name, "max_gt");
    assert_true(hit.param[0].hit);
    assert_true(hit.param[0].set_value == 0.5 && hit.param[0].actual_value == 0.75);
}

struct seen {
    int calls;
    float value[2];
    bool absent;
    char name[64];
};

static void on_tensor(void *ctx, const struct gd_ms_tensor_head *head, struct gd_tensor *tensor,
                      const struct gd_err *err)
{
    struct seen *seen = ctx;
    assert_null(err);
    seen->calls++;
    seen->absent = !tensor;
    snprintf(seen->name, sizeof(seen->name), "%.63s", head->node_name);
    if (tensor) {
        memcpy(seen->value, tensor->data, sizeof(seen->value));
    }
}

static void test_tensor(void **state)
{
    struct seen seen = {0};
    struct gd_ms_tensor_decoder *decoder;
    uint8_t bytes[128];
    assert_ok(gd_ms_tensor_decoder_create(0, on_tensor, &seen, &decoder, NULL));
    size_t len =
        read_hex("0a 12 44 65 66 61 75 6c 74 2f 66 63 31 2e 77 65 69 67 68 74 12 01 30 1a 08 00 00 "
                 "80 3f 00 00 00 40 20 02 28 0b 30 01 3a 00 40 01",
                 bytes);
    assert_ok(gd_ms_tensor_feed(decoder, bytes, len, 0, len, NULL));
    assert_int_equal(seen.calls, 1);
    assert_true(seen.value[0] == 1.0f && seen.value[1] == 2.0f);
    assert_string_equal(seen.name, "Default/fc1.weight");
    len = read_hex(
        "0a 12 44 65 66 61 75 6c 74 2f 66 63 31 2e 77 65 69 67 68 74 12 01 30 30 01 3a 00 40 01",
        bytes);
    assert_ok(gd_ms_tensor_feed(decoder, bytes, len, 0, len, NULL));
    assert_int_equal(seen.calls, 2);
    assert_true(seen.absent);
    gd_ms_tensor_decoder_destroy(decoder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_replies, fresh_reply),
    cmocka_unit_test_setup(test_view, fresh_reply),
    cmocka_unit_test_setup(test_set, fresh_reply),
    cmocka_unit_test_setup(test_set_too_large_is_refused, fresh_reply),
    cmocka_unit_test(test_metadata),
    cmocka_unit_test(test_chunk_and_heartbeat),
    cmocka_unit_test(test_base_and_summary),
    cmocka_unit_test(test_hit),
    cmocka_unit_test(test_tensor),
};

RUN_TESTS()
