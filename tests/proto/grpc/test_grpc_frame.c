// SPDX-License-Identifier: GPL-3.0-or-later
#include <zlib.h>

#include "../../unit.h"
#include "proto/grpc/grpc_frame.h"

/* What the deframer said, as text: "m5:hello " for a message, "c0-3/5:hel " for a chunk. */
struct heard {
    struct gd_buf text;
    int answer; /* what the callbacks return */
};

static int on_message(void *ctx, const uint8_t *data, size_t len)
{
    struct heard *heard = ctx;

    gd_buf_printf(&heard->text, "m%zu:%.*s ", len, (int)(len < 20 ? len : 20), (const char *)data);
    return heard->answer;
}

static int on_chunk(void *ctx, const uint8_t *data, size_t len, size_t offset, size_t total)
{
    struct heard *heard = ctx;

    gd_buf_printf(&heard->text, "c%zu-%zu/%zu:%.*s ", offset, offset + len, total, (int)len,
                  (const char *)data);
    return heard->answer;
}

static const struct gd_grpc_deframer_ops whole = {.message = on_message};
static const struct gd_grpc_deframer_ops chunks = {.message = on_message, .chunk = on_chunk};

static size_t add_message(uint8_t *to, uint8_t flag, const char *text)
{
    gd_grpc_prefix(to, strlen(text));
    to[0] = flag;
    memcpy(to + GD_GRPC_PREFIX_SIZE, text, strlen(text));
    return GD_GRPC_PREFIX_SIZE + strlen(text);
}

static void expect_feed(const struct gd_grpc_deframer_ops *ops, size_t step, const char *wanted)
{
    struct heard heard = {.text = GD_BUF_INIT(10000)};
    struct gd_grpc_deframer d;
    uint8_t bytes[100];
    size_t len = add_message(bytes, 0, "hello");

    len += add_message(bytes + len, 0, "");
    len += add_message(bytes + len, 0, "you");
    gd_grpc_deframer_init(&d, GD_GRPC_IDENTITY, 100, ops, &heard);
    for (size_t i = 0; i < len; i += step) {
        size_t n = len - i < step ? len - i : step;
        assert_ok(gd_grpc_deframer_feed(&d, bytes + i, n, NULL));
    }
    assert_string_equal(gd_buf_text(&heard.text), wanted);
    assert_true(gd_grpc_deframer_at_end(&d));
    assert_int_equal(d.messages, 3);
    gd_grpc_deframer_deinit(&d);
    gd_buf_deinit(&heard.text);
}

static void test_messages_in_any_split(void **state)
{
    for (size_t step = 1; step < 24; step++) {
        expect_feed(&whole, step, "m5:hello m0: m3:you ");
    }
}

static void test_chunks_as_they_come(void **state)
{
    expect_feed(&chunks, 100, "c0-5/5:hello c0-0/0: c0-3/3:you ");
    expect_feed(&chunks, 8, "c0-3/5:hel c3-5/5:lo c0-0/0: c0-3/3:you ");
    expect_feed(&chunks, 1,
                "c0-1/5:h c1-2/5:e c2-3/5:l c3-4/5:l c4-5/5:o c0-0/0: c0-1/3:y c1-2/3:o c2-3/3:u ");
}

static void expect_fault(const uint8_t *bytes, size_t len, enum gd_grpc_encoding encoding, int code,
                         const char *sentence)
{
    struct heard heard = {.text = GD_BUF_INIT(10000)};
    struct gd_grpc_deframer d;
    struct gd_err err;

    gd_grpc_deframer_init(&d, encoding, 1000, &whole, &heard);
    assert_int_equal(gd_grpc_deframer_feed(&d, bytes, len, &err), code);
    assert_contains(err.text, sentence);
    assert_int_equal(heard.text.len, 0);
    gd_grpc_deframer_deinit(&d);
    gd_buf_deinit(&heard.text);
}

static void test_bad_framing(void **state)
{
    uint8_t over[] = {0, 0, 0, 3, 233};
    uint8_t huge[] = {0, 0xff, 0xff, 0xff, 0xff};
    uint8_t flag[] = {2, 0, 0, 0, 0};
    uint8_t unnamed[] = {1, 0, 0, 0, 1, 'x'};

    expect_fault(over, sizeof(over), GD_GRPC_IDENTITY, GD_ELIMIT, "limit of 1000 bytes");
    expect_fault(huge, sizeof(huge), GD_GRPC_IDENTITY, GD_ELIMIT, "4294967295");
    expect_fault(flag, sizeof(flag), GD_GRPC_IDENTITY, GD_EPROTO, "flag 2");
    expect_fault(unnamed, sizeof(unnamed), GD_GRPC_IDENTITY, GD_EPROTO, "grpc-encoding");
}

static void test_no_memory_for_promises(void **state)
{
    struct heard heard = {.text = GD_BUF_INIT(100)};
    struct gd_grpc_deframer d;
    uint8_t bytes[] = {0, 0x7f, 0xff, 0xff, 0xff, 'a', 'b'};

    gd_grpc_deframer_init(&d, GD_GRPC_IDENTITY, UINT32_MAX, &whole, &heard);
    assert_ok(gd_grpc_deframer_feed(&d, bytes, sizeof(bytes), NULL));
    assert_false(gd_grpc_deframer_at_end(&d));
    assert_true(d.body.cap < 4096); /* 2 GiB were promised, two bytes came */
    gd_grpc_deframer_deinit(&d);
    gd_buf_deinit(&heard.text);
}

static void test_callback_stops_feeding(void **state)
{
    struct heard heard = {.text = GD_BUF_INIT(100), .answer = GD_ELOST};
    struct gd_grpc_deframer d;
    uint8_t bytes[100];
    size_t len = add_message(bytes, 0, "one");

    len += add_message(bytes + len, 0, "two");
    gd_grpc_deframer_init(&d, GD_GRPC_IDENTITY, 100, &whole, &heard);
    assert_int_equal(gd_grpc_deframer_feed(&d, bytes, len, NULL), GD_ELOST);
    assert_string_equal(gd_buf_text(&heard.text), "m3:one ");
    gd_grpc_deframer_deinit(&d);
    gd_buf_deinit(&heard.text);
}

static size_t deflate_data(const void *data, size_t len, int window, uint8_t *to, size_t size)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)data;
    z.avail_in = (uInt)len;
    z.next_out = to;
    z.avail_out = (uInt)size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t packed = size - z.avail_out;
    deflateEnd(&z);
    return packed;
}

static void test_compressed_messages(void **state)
{
    static const struct {
        enum gd_grpc_encoding encoding;
        int window;
    } kinds[] = {{GD_GRPC_GZIP, 31}, {GD_GRPC_DEFLATE, 15}};

    for (size_t k = 0; k < 2; k++) {
        struct heard heard = {.text = GD_BUF_INIT(1000)};
        struct gd_grpc_deframer d;
        uint8_t bytes[200];
        size_t packed = deflate_data("hello", 5, kinds[k].window, bytes + 5, 100);
        gd_grpc_prefix(bytes, packed);
        bytes[0] = 1;
        size_t len = 5 + packed;
        len += add_message(bytes + len, 0, "plain");
        gd_grpc_deframer_init(&d, kinds[k].encoding, 100, &chunks, &heard);
        for (size_t i = 0; i < len; i++) {
            assert_ok(gd_grpc_deframer_feed(&d, bytes + i, 1, NULL));
        }
        assert_memory_equal(gd_buf_text(&heard.text), "m5:hello c0-1/5:p ", 18);
        gd_grpc_deframer_deinit(&d);
        gd_buf_deinit(&heard.text);
    }
}

static void test_bad_compression(void **state)
{
    static const uint8_t zeros[100000];
    uint8_t packed[1000];
    struct gd_buf out = GD_BUF_INIT(50000);
    struct gd_err err;
    size_t len = deflate_data(zeros, sizeof(zeros), 31, packed, sizeof(packed));

    assert_int_equal(gd_grpc_decompress(GD_GRPC_GZIP, packed, len, &out, &err), GD_ELIMIT);
    assert_contains(err.text, "50000");
    gd_buf_deinit(&out);
    gd_buf_init(&out, sizeof(zeros));
    assert_ok(gd_grpc_decompress(GD_GRPC_GZIP, packed, len, &out, &err));
    assert_int_equal(out.len, sizeof(zeros));
    for (size_t cut = 0; cut < len; cut++) {
        gd_buf_clear(&out);
        assert_int_equal(gd_grpc_decompress(GD_GRPC_GZIP, packed, cut, &out, &err), GD_EPROTO);
    }
    gd_buf_clear(&out);
    packed[len] = 0;
    assert_int_equal(gd_grpc_decompress(GD_GRPC_GZIP, packed, len + 1, &out, &err), GD_EPROTO);
    assert_int_equal(gd_grpc_decompress(GD_GRPC_DEFLATE, packed, len, &out, &err), GD_EPROTO);
    gd_buf_deinit(&out);
}

static void test_percent_coding(void **state)
{
    static const char *const texts[] = {"", "plain text", "100%", "w\xc3\xa4r\n", "a\x7f\x01z"};
    static const char *const coded[] = {"", "plain text", "100%25", "w%C3%A4r%0A", "a%7F%01z"};
    static const char *const back[] = {"", "plain text", "100%", "w\xc3\xa4r ", "a  z"};

    for (size_t i = 0; i < 5; i++) {
        struct gd_buf out = GD_BUF_INIT(100), again = GD_BUF_INIT(100);
        assert_ok(gd_grpc_percent_encode(texts[i], &out));
        assert_string_equal(gd_buf_text(&out), coded[i]);
        assert_ok(gd_grpc_percent_decode(gd_buf_text(&out), out.len, &again));
        assert_string_equal(gd_buf_text(&again), back[i]);
        gd_buf_deinit(&out);
        gd_buf_deinit(&again);
    }
    struct gd_buf out = GD_BUF_INIT(100);
    gd_grpc_percent_decode("%", 1, &out);
    gd_grpc_percent_decode("%4", 2, &out);
    gd_grpc_percent_decode("%zz%4a", 6, &out);
    assert_string_equal(gd_buf_text(&out), "%%4%zzJ");
    gd_buf_deinit(&out);
}

static void test_timeouts(void **state)
{
    static const struct {
        const char *text;
        double seconds; /* < 0: refused */
    } cases[] = {{"1S", 1},          {"1500m", 1.5}, {"2M", 120}, {"1H", 3600},
                 {"5u", 5e-6},       {"7n", 7e-9},   {"0S", 0},   {"99999999S", 99999999},
                 {"", -1},           {"S", -1},      {"1", -1},   {"1s", -1},
                 {"123456789S", -1}, {"1SS", -1},    {"-1S", -1}, {" 1S", -1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double seconds = -1;
        int rc = gd_grpc_timeout_parse(cases[i].text, &seconds);
        assert_int_equal(rc, cases[i].seconds < 0 ? GD_EINVAL : GD_OK);
        assert_true(seconds - cases[i].seconds < 1e-12 && cases[i].seconds - seconds < 1e-12);
    }
}

static void test_addresses(void **state)
{
    static const struct {
        const char *text, *host, *port; /* host NULL: refused */
    } cases[] = {{"50051", "", "50051"},
                 {":0", "", "0"},
                 {"localhost:1", "localhost", "1"},
                 {"127.0.0.1:65535", "127.0.0.1", "65535"},
                 {"[::1]:50051", "::1", "50051"},
                 {"", NULL, NULL},
                 {"host", NULL, NULL},
                 {"host:", NULL, NULL},
                 {"host:65536", NULL, NULL},
                 {"host:-1", NULL, NULL},
                 {"host:1x", NULL, NULL},
                 {"::1:50051", NULL, NULL},
                 {"[]:5", NULL, NULL},
                 {"[::1]", NULL, NULL},
                 {"[::1:5", NULL, NULL},
                 {"host:000001", NULL, NULL}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_grpc_address address;
        struct gd_err err;
        int rc = gd_grpc_address_parse(cases[i].text, &address, &err);
        assert_int_equal(rc, cases[i].host ? GD_OK : GD_EINVAL);
        if (cases[i].host) {
            assert_string_equal(address.host, cases[i].host);
            assert_string_equal(address.port, cases[i].port);
        } else {
            assert_contains(err.text, "HOST:PORT");
        }
    }
}

static void test_encodings(void **state)
{
    enum gd_grpc_encoding encoding;

    assert_ok(gd_grpc_encoding_parse("gzip", &encoding));
    assert_int_equal(encoding, GD_GRPC_GZIP);
    assert_ok(gd_grpc_encoding_parse("identity", &encoding));
    assert_int_equal(encoding, GD_GRPC_IDENTITY);
    assert_int_equal(gd_grpc_encoding_parse("snappy", &encoding), GD_EUNSUPPORTED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_messages_in_any_split),
    cmocka_unit_test(test_chunks_as_they_come),
    cmocka_unit_test(test_bad_framing),
    cmocka_unit_test(test_no_memory_for_promises),
    cmocka_unit_test(test_callback_stops_feeding),
    cmocka_unit_test(test_compressed_messages),
    cmocka_unit_test(test_bad_compression),
    cmocka_unit_test(test_percent_coding),
    cmocka_unit_test(test_timeouts),
    cmocka_unit_test(test_addresses),
    cmocka_unit_test(test_encodings),
};

RUN_TESTS()
