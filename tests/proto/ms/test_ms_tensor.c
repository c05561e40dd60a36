// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../unit.h"
#include "pb_write.h"
#include "proto/ms/ms_tensor.h"

struct world {
    struct gd_ms_tensor_decoder *decoder;
    int good, absent, bad;
    struct gd_tensor *last;
    struct gd_ms_tensor_head head;
    struct gd_err err;
};

static void on_tensor(void *ctx, const struct gd_ms_tensor_head *head, struct gd_tensor *tensor,
                      const struct gd_err *err)
{
    struct world *world = ctx;
    world->head = *head;
    if (err) {
        world->bad++;
        world->err = *err;
    } else if (tensor) {
        world->good++;
        gd_tensor_unref(world->last);
        world->last = gd_tensor_ref(tensor);
    } else {
        world->absent++;
    }
}

static struct world world;

static int set_up(void **state)
{
    memset(&world, 0, sizeof(world));
    return gd_ms_tensor_decoder_create(1u << 26, on_tensor, &world, &world.decoder, NULL);
}

static int tear_down(void **state)
{
    gd_ms_tensor_decoder_destroy(world.decoder);
    gd_tensor_unref(world.last);
    return 0;
}

static struct gd_buf make_message(const void *content, size_t len, const int64_t *dims, int rank,
                                  int type, bool finished)
{
    struct gd_buf out = GD_BUF_INIT(1u << 27);
    pb_text(&out, 1, "Default/x");
    pb_text(&out, 2, "0");
    if (len) {
        pb_bytes(&out, 3, content, len);
    }
    for (int i = 0; i < rank; i++) {
        pb_int(&out, 4, (uint64_t)dims[i]);
    }
    if (type) {
        pb_int(&out, 5, (uint64_t)type);
    }
    if (finished) {
        pb_int(&out, 6, 1);
    }
    pb_text(&out, 7, "");
    pb_int(&out, 8, 0);
    return out;
}

/* Feeds one message in pieces of `step` bytes. */
static int feed_chunks(struct gd_buf *bytes, size_t step)
{
    int rc = GD_OK;
    const uint8_t *data = (const uint8_t *)gd_buf_text(bytes);
    if (!bytes->len) {
        rc = gd_ms_tensor_feed(world.decoder, data, 0, 0, 0, NULL);
    }
    for (size_t at = 0; at < bytes->len && rc == GD_OK; at += step) {
        size_t len = bytes->len - at < step ? bytes->len - at : step;
        rc = gd_ms_tensor_feed(world.decoder, data + at, len, at, bytes->len, NULL);
    }
    gd_buf_deinit(bytes);
    return rc;
}

static void test_every_boundary(void **state)
{
    int64_t dims[] = {2, 3};
    float content[6] = {1, 2, 3, 4, 5, 6};
    for (size_t step = 1; step <= 64; step++) {
        struct gd_buf bytes = make_message(content, sizeof(content), dims, 2, 11, true);
        assert_ok(feed_chunks(&bytes, step));
        assert_int_equal(world.good, (int)step);
        assert_int_equal(world.last->dtype, GD_FLOAT32);
        assert_int_equal(world.last->shape.rank, 2);
        assert_int_equal(world.last->shape.dim[1], 3);
        assert_memory_equal(world.last->data, content, sizeof(content));
    }
}

static void fill_bytes(unsigned char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        data[i] = (unsigned char)(i * 131 + (i >> 8));
    }
}

static void check_pieces(size_t total, size_t piece, size_t expect)
{
    unsigned char *content = malloc(total);
    int64_t dims[] = {(int64_t)total};
    fill_bytes(content, total);
    int good = world.good;
    if (expect) {
        gd_ms_tensor_expect(world.decoder, expect);
    }
    for (size_t at = 0; at < total; at += piece) {
        size_t len = total - at < piece ? total - at : piece;
        struct gd_buf bytes = make_message(content + at, len, dims, 1, 6, at + len == total);
        assert_ok(feed_chunks(&bytes, 65536));
    }
    assert_int_equal(world.bad, 0);
    assert_int_equal(world.good, good + 1);
    assert_int_equal(gd_tensor_bytes(world.last), total);
    assert_memory_equal(world.last->data, content, total);
    free(content);
}

static void test_pieces(void **state)
{
    check_pieces(10 * 1024 * 1024, 3 * 1024 * 1024, 0);
    check_pieces(10 * 1024 * 1024, 3 * 1024 * 1024, 10 * 1024 * 1024);
    check_pieces(10 * 1024 * 1024, 3 * 1024 * 1024, 64); /* announced wrongly: no harm */
    check_pieces(5000, 999, 0);
    check_pieces(5000, 999, 50000);
    check_pieces(2 * 1024 * 1024, 100 * 1024, 0); /* grows from a small block into a mapping */
}

static void test_order_does_not_matter(void **state)
{
    struct gd_buf bytes = GD_BUF_INIT(4096), packed = GD_BUF_INIT(64);
    float content[4] = {9, 8, 7, 6};
    pb_int(&bytes, 6, 1);
    pb_int(&bytes, 5, 11);
    pb_varint(&packed, 2);
    pb_varint(&packed, 2);
    pb_message(&bytes, 4, &packed);
    pb_double(&bytes, 99, 3.5); /* unknown fields of every kind */
    pb_float(&bytes, 98, 2.5f);
    pb_text(&bytes, 97, "later");
    pb_int(&bytes, 96, 1u << 30);
    pb_bytes(&bytes, 3, content, sizeof(content));
    pb_text(&bytes, 2, "3");
    pb_text(&bytes, 1, "a");
    pb_text(&bytes, 7, "prev");
    assert_ok(feed_chunks(&bytes, 3));
    assert_int_equal(world.good, 1);
    assert_int_equal(world.last->shape.rank, 2);
    assert_string_equal(world.head.slot, "3");
    assert_string_equal(world.head.iter, "prev");
    assert_memory_equal(world.last->data, content, sizeof(content));
}

static void test_scalars_and_empty(void **state)
{
    int64_t zero = 0, dims[] = {0, 4};
    float one = 1.5f;
    struct gd_buf bytes = make_message(&one, 4, NULL, 0, 11, true);
    assert_ok(feed_chunks(&bytes, 99));
    assert_int_equal(world.last->shape.rank, 0);
    bytes = make_message(&one, 4, &zero, 1, 11, true); /* "[0]" with a value is a scalar, too */
    assert_ok(feed_chunks(&bytes, 99));
    assert_int_equal(world.last->shape.rank, 0);
    bytes = make_message(NULL, 0, dims, 2, 11, true);
    assert_ok(feed_chunks(&bytes, 99));
    assert_int_equal(world.last->shape.rank, 2);
    assert_int_equal(gd_tensor_bytes(world.last), 0);
    assert_int_equal(world.good, 3);
    bytes = make_message(NULL, 0, NULL, 0, 0, true);
    assert_ok(feed_chunks(&bytes, 99));
    assert_int_equal(world.absent, 1);
}

static void expect_bad(struct gd_buf bytes, const char *part)
{
    int bad = world.bad;
    assert_ok(feed_chunks(&bytes, 7));
    assert_int_equal(world.bad, bad + 1);
    assert_contains(world.err.text, part);
}

static void test_what_does_not_fit(void **state)
{
    int64_t four[] = {4}, negative[] = {-4}, huge[] = {INT64_MAX, INT64_MAX}, large[] = {1 << 25};
    char content[64] = {0};
    expect_bad(make_message(content, 12, four, 1, 11, true), "12 bytes, but float32 (4,) takes 16");
    expect_bad(make_message(content, 20, four, 1, 11, true), "takes 16");
    expect_bad(make_message(content, 0, four, 1, 11, true), "0 bytes");
    expect_bad(make_message(content, 16, four, 1, 13, true), "not a numeric type");
    expect_bad(make_message(content, 16, four, 1, 77, true), "not a numeric type");
    expect_bad(make_message(content, 16, negative, 1, 11, true), "");
    expect_bad(make_message(content, 16, huge, 2, 11, true), "");
    expect_bad(make_message(content, 16, large, 1, 11, true), "max-tensor");
    int64_t many[GD_MAX_RANK + 5];
    for (size_t i = 0; i < GD_MAX_RANK + 5; i++) {
        many[i] = 1;
    }
    expect_bad(make_message(content, 4, many, GD_MAX_RANK + 5, 11, true), "dimensions");
    /* and the next one is taken again */
    struct gd_buf bytes = make_message(content, 16, four, 1, 11, true);
    assert_ok(feed_chunks(&bytes, 7));
    assert_int_equal(world.good, 1);
}

static void test_pieces_that_do_not_fit(void **state)
{
    int64_t four[] = {4}, five[] = {5};
    char content[64] = {0};
    struct gd_buf bytes = make_message(content, 8, four, 1, 11, false);
    assert_ok(feed_chunks(&bytes, 99));
    expect_bad(make_message(content, 12, four, 1, 11, true), "more bytes");
    bytes = make_message(content, 24, four, 1, 11, false);
    assert_ok(feed_chunks(&bytes, 99));
    expect_bad(make_message(content, 64, four, 1, 11, true), "more bytes");
    bytes = make_message(content, 8, four, 1, 11, false);
    assert_ok(feed_chunks(&bytes, 99));
    expect_bad(make_message(content, 8, five, 1, 11, true), "disagree");
    bytes = make_message(content, 8, four, 1, 11, false);
    assert_ok(feed_chunks(&bytes, 99));
    gd_ms_tensor_end(world.decoder);
    assert_int_equal(world.bad, 4);
    assert_contains(world.err.text, "ended after 8 of 16");
}

static void test_content_twice(void **state)
{
    struct gd_buf bytes = GD_BUF_INIT(4096);
    char content[64] = {0};
    pb_bytes(&bytes, 3, content, 4);
    pb_bytes(&bytes, 3, content, 60);
    pb_int(&bytes, 4, 1);
    pb_int(&bytes, 5, 11);
    pb_int(&bytes, 6, 1);
    expect_bad(bytes, "more bytes");
}

static void test_garbage(void **state)
{
    static const char *const garbage[] = {
        "\x1a\x7f",                                     /* content longer than the message */
        "\x0b",                                         /* a group */
        "\x00",                                         /* field 0 */
        "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", /* a varint that does not end */
        "\x20",                                         /* cut in a varint */
        "\x25\x01\x02",                                 /* cut in a fixed field */
        "\x22\x02\x80\x80",                             /* packed dims cut in a varint */
    };
    for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
        for (size_t step = 1; step < 4; step++) {
            struct gd_buf bytes = GD_BUF_INIT(64);
            gd_buf_add(&bytes, garbage[i], i == 2 ? 1 : strlen(garbage[i]));
            assert_int_equal(feed_chunks(&bytes, step), GD_EPROTO);
        }
    }
    assert_int_equal(world.good + world.bad + world.absent, 0);
}

static void test_long_names_are_cut(void **state)
{
    char name[3000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    struct gd_buf bytes = GD_BUF_INIT(16384);
    pb_text(&bytes, 1, name);
    pb_text(&bytes, 2, name);
    pb_text(&bytes, 7, name);
    pb_int(&bytes, 6, 1);
    assert_ok(feed_chunks(&bytes, 100));
    assert_int_equal(world.absent, 1);
    assert_int_equal(strlen(world.head.node_name), GD_MS_MAX_NAME - 1);
    assert_int_equal(strlen(world.head.slot), sizeof(world.head.slot) - 1);
}

static const struct CMUnitTest tests[] = {
    TEST(test_every_boundary),        TEST(test_pieces),
    TEST(test_order_does_not_matter), TEST(test_scalars_and_empty),
    TEST(test_what_does_not_fit),     TEST(test_pieces_that_do_not_fit),
    TEST(test_content_twice),         TEST(test_garbage),
    TEST(test_long_names_are_cut),
};

RUN_TESTS()
