// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A gradb.v1 trainer that says anything at all. The input is a sequence of messages, each a length
 * of two bytes (little endian) and that many bytes of a FromTrainer; a good Hello has gone before.
 * While it stands the debugger asks it for values and statistics, so that answers find their
 * requests.
 */
#include "fuzz.h"

#include "proto/v1/v1_impl.h"

static int drop_data(void *ctx, const void *data, size_t len)
{
    return *(bool *)ctx ? GD_ELOST : GD_OK;
}

static void check_end(void *ctx, enum gd_grpc_code code, const char *text)
{
    FUZZ_CHECK(text && !strchr(text, '\n'));
    *(bool *)ctx = true;
}

static const struct v1_wire wire = {.send = drop_data, .finish = check_end};

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    unsigned *answers = ctx;

    FUZZ_CHECK((tensor == NULL) == (err != NULL));
    FUZZ_CHECK(!tensor || gd_tensor_count(tensor) >= 0);
    ++*answers;
}

static void on_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    unsigned *answers = ctx;

    FUZZ_CHECK((stats == NULL) == (err != NULL) && (shape == NULL) == (err != NULL));
    ++*answers;
}

static void say_hello(struct v1_conn *conn)
{
    static const Gradb__V1__Capability can[] = {
        GRADB__V1__CAPABILITY__CAPABILITY_NEXT, GRADB__V1__CAPABILITY__CAPABILITY_STATS,
        GRADB__V1__CAPABILITY__CAPABILITY_PREVIOUS, GRADB__V1__CAPABILITY__CAPABILITY_SLICE,
        GRADB__V1__CAPABILITY__CAPABILITY_LINES};
    Gradb__V1__Capability copy[5];
    Gradb__V1__Hello hello = GRADB__V1__HELLO__INIT;
    v1_from from = GRADB__V1__FROM_TRAINER__INIT;
    uint8_t bytes[128];

    memcpy(copy, can, sizeof(copy));
    hello.version_min = hello.version_max = V1_VERSION;
    hello.capabilities = copy;
    hello.n_capabilities = 5;
    from.msg_case = GRADB__V1__FROM_TRAINER__MSG_HELLO;
    from.hello = &hello;
    v1_conn_message(conn, bytes, gradb__v1__from_trainer__pack(&from, bytes));
}

/* Two questions per message, as long as somebody is there to be asked. */
static void ask_session(struct gd_debugger *debugger, unsigned *asked, unsigned *answers)
{
    struct gd_session *session = debugger->session_count ? debugger->sessions[0] : NULL;
    struct gd_tensor_ref ref = {.node = *asked % 3};
    uint32_t frames = 0;

    if (session && gd_session_line_stack(session, &frames)) {
        FUZZ_CHECK(session->stop.at_line && frames > 0);
    }

    if (!session || !session->target || session->state != GD_STOPPED) {
        return;
    }
    *asked += gd_target_fetch(session->target, &ref, NULL, on_tensor, answers, NULL) == GD_OK;
    *asked += gd_target_stats(session->target, &ref, on_stats, answers, NULL) == GD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct gd_debugger *debugger = NULL;
    struct gd_v1_service *service = NULL;
    bool ended = false;
    unsigned asked = 0, answers = 0;
    struct gd_breakpoint *print;

    FUZZ_CHECK(loop && gd_debugger_create(&debugger, NULL) == GD_OK);
    debugger->settings.max_tensor = 1 << 20;
    debugger->settings.max_graph_memory = 64 << 20;
    FUZZ_CHECK(v1_service_create(loop, debugger, &service, NULL) == GD_OK);
    struct v1_conn *conn = v1_conn_open(service, &wire, &ended, "127.0.0.1:1", true);
    FUZZ_CHECK(conn);
    FUZZ_CHECK(gd_debugger_break(debugger, "net.py:3", false, NULL, NULL) == GD_OK);
    FUZZ_CHECK(gd_debugger_dprintf(debugger, "net.py:4", "\"x\"", "", &print, NULL) == GD_OK);
    say_hello(conn);
    FUZZ_CHECK(!ended && debugger->session_count == 1);
    while (size >= 2 && !ended) {
        size_t len = data[0] | (size_t)data[1] << 8;

        data += 2, size -= 2;
        len = len < size ? len : size;
        v1_conn_message(conn, data, len);
        data += len, size -= len;
        gd_debugger_reap(debugger);
        ask_session(debugger, &asked, &answers);
    }
    v1_conn_closed(conn);
    gd_debugger_reap(debugger);
    FUZZ_CHECK(answers == asked);
    FUZZ_CHECK(debugger->sessions[0]->state == GD_LOST ||
               debugger->sessions[0]->state == GD_FINISHED);
    gd_v1_service_destroy(service);
    gd_debugger_destroy(debugger);
    ev_loop_destroy(loop);
    return 0;
}
