// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The panes with a graph of a million nodes, all scopes open, on a terminal of 80x24: time from a
 * key to its screen update, bytes sent per cursor move, and delay of typed letters while ten
 * thousand hits per second arrive.
 *
 *     bench_tui [NODES]
 *
 * A thread plays the terminal and drains the output. Keys are typed from inside the panes' loop,
 * each after the screen update of the previous one.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "bench.h"
#include "engine/debugger.h"
#include "fake_target.h"
#include "repl/core/repl.h"
#include "tui/draw.h"
#include "tui/keys.h"
#include "tui/tui.h"

#define BLOCK_NODES    1000 /* per scope */
#define MOVES          50
#define LETTERS        200
#define REPEATS        3 /* per key */
#define HITS_A_SECOND  10000
#define HIT_SECONDS    0.001
#define TERMINAL_DELAY 0.02 /* seconds after which the terminal has certainly read its input */
#define LETTER_DELAY   0.01
#define GIVE_UP        300 /* seconds */

enum phase { ECHOES, UNFOLD, MOVE, KEYS, LEAVE };

struct bench {
    struct ev_loop *loop;
    struct repl *repl;
    struct gd_session *session;
    struct fake_target *fake;
    uint32_t nodes;
    int master;
    ev_prepare done; /* runs last: a pending screen update is done */
    ev_io arrival;   /* runs first: typed input has arrived */
    ev_timer pause, hits;
    enum phase phase;
    int at;       /* position in the phase */
    bool cleanup; /* keys typed now are not measured */
    bool typed, arrived, measured;
    double typed_at;
    unsigned long sent_before;
    double *frames, echo_worst, bytes[MOVES];
    size_t frame_count, frame_room;
    const struct tui_key *key; /* being measured */
    double worst;
    char worst_key[24];
    double command_worst;
    char command[64];
};

/* ---- the terminal ---- */

static atomic_ulong bytes_sent;
static char seen[1 << 16]; /* the latest output */
static size_t seen_len;
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

static void *drain_terminal(void *ctx)
{
    char data[sizeof(seen) / 2];
    int master = *(int *)ctx;

    for (;;) {
        ssize_t got = read(master, data, sizeof(data));
        if (got <= 0) {
            return NULL;
        }
        pthread_mutex_lock(&seen_lock);
        if (seen_len + (size_t)got > sizeof(seen)) {
            seen_len = 0;
        }
        memcpy(seen + seen_len, data, (size_t)got);
        seen_len += (size_t)got;
        pthread_mutex_unlock(&seen_lock);
        atomic_fetch_add(&bytes_sent, (unsigned long)got);
    }
}

static bool has_seen(const char *text)
{
    pthread_mutex_lock(&seen_lock);
    bool found = memmem(seen, seen_len, text, strlen(text)) != NULL;
    pthread_mutex_unlock(&seen_lock);
    return found;
}

static void open_terminal(struct bench *bench)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};

    bench->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (bench->master < 0 || grantpt(bench->master) != 0 || unlockpt(bench->master) != 0) {
        bench_fail("cannot open a terminal");
    }
    int slave = open(ptsname(bench->master), O_RDWR | O_NOCTTY);
    if (slave < 0 || ioctl(slave, TIOCSWINSZ, &size) != 0 || dup2(slave, STDIN_FILENO) < 0 ||
        dup2(slave, STDOUT_FILENO) < 0) {
        bench_fail("cannot open the terminal's other end");
    }
    close(slave);
}

/* ---- the session ---- */

static void add_nodes(struct gd_session *session, uint32_t nodes)
{
    static const char *const types[] = {"MatMul", "BiasAdd", "ReLU", "Conv2D", "Mul", "Add"};
    struct gd_output output = {.dtype = GD_FLOAT32, .shape = {.rank = 2, .dim = {64, 64}}};
    char name[128];

    for (uint32_t i = 0; i < nodes; i++) {
        struct gd_edge edge = {.node = i - 1};
        struct gd_node_desc desc = {
            .name = name, .type = types[i % 6], .order = i, .outputs = &output, .output_count = 1};
        gd_node_id id = GD_NO_NODE;
        snprintf(name, sizeof(name), "Default/net/block%04u/%s-op%u", i / BLOCK_NODES, types[i % 6],
                 i);
        if (gd_graph_add(session->graph, &desc, &id, NULL) != GD_OK ||
            (i > 0 && gd_graph_connect(session->graph, id, &edge, 1, NULL) != GD_OK)) {
            bench_fail("cannot add a node");
        }
    }
    if (gd_graph_commit(session->graph, NULL) != GD_OK) {
        bench_fail("cannot finish the graph");
    }
    gd_session_on_graph(session);
}

static void answer_stats(struct fake_target *fake, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                         void *ctx)
{
    struct gd_stats stats;

    (void)ref;
    if (gd_stats_compute(fake->value, NULL, NULL, &stats, NULL) != GD_OK) {
        bench_fail("statistics");
    }
    fn(ctx, fake->value->dtype, &fake->value->shape, &stats, 1, NULL);
}

static void open_session(struct bench *bench)
{
    struct gd_peer peer = {
        .framework = "fake", .version = "1.0", .program = "bench", .world_size = 1};
    struct gd_debugger *debugger = repl_debugger(bench->repl);
    struct gd_stop stop = {.reason = GD_STOP_STEP, .step = 1, .at_step_end = true};

    debugger->settings.history_bytes = 0;
    debugger->settings.recommend = false;
    stop.node = GD_NO_NODE;
    bench->fake = fake_create(true, NULL);
    bench->fake->value = fake_tensor(4096, 1);
    bench->fake->on_stats = answer_stats;
    bench->fake->stop_next = stop;
    bench->fake->stop_count = 1 << 30;
    if (gd_session_create(debugger, &bench->fake->target, &peer, &bench->session, NULL) != GD_OK) {
        bench_fail("cannot create a session");
    }
    add_nodes(bench->session, bench->nodes);
    gd_session_on_stopped(bench->session, &stop);
}

/* ---- typing ---- */

static void type_text(struct bench *bench, const char *text, bool measured)
{
    bench->typed = true;
    bench->arrived = false;
    bench->measured = measured;
    bench->typed_at = bench_now();
    bench->sent_before = atomic_load(&bytes_sent);
    if (write(bench->master, text, strlen(text)) < 0) {
        bench_fail("cannot type a key");
    }
}

/* The bytes that a key sends on this terminal. */
static const char *get_sequence(int key)
{
    static char one[8];

    switch (key) {
    case DRAW_KEY_UP: return "\033OA";
    case DRAW_KEY_DOWN: return "\033OB";
    case DRAW_KEY_RIGHT: return "\033OC";
    case DRAW_KEY_LEFT: return "\033OD";
    case DRAW_KEY_HOME: return "\033OH";
    case DRAW_KEY_END: return "\033OF";
    case DRAW_KEY_PAGE_UP: return "\033[5~";
    case DRAW_KEY_PAGE_DOWN: return "\033[6~";
    case DRAW_KEY_BACKTAB: return "\033[Z";
    case DRAW_KEY_F1: return "\033OP";
    default: break;
    }
    if (key >= 0x80) {
        return NULL;
    }
    snprintf(one, sizeof(one), "%c", key);
    return one;
}

/* The keys of the tree, except the one that closes the panes. */
static const struct tui_key *next_key(const struct tui_key *key)
{
    for (key = !key ? tui_keys : key + 1; key->name; key++) {
        bool writes = key->command && strncmp(key->command, "save ", strlen("save ")) == 0;
        if ((key->panes & 1U << TUI_TREE) != 0 && !key->single && key->request != TUI_PLAIN &&
            !writes && get_sequence(key->key)) {
            return key;
        }
    }
    return NULL;
}

static void type_key(struct bench *bench)
{
    char text[16];

    snprintf(text, sizeof(text), "%s%s", bench->key->prefix != 0 ? "\x18" : "",
             get_sequence(bench->key->key));
    type_text(bench, text, true);
}

/* ---- phases: each types its next keys; false: done ---- */

static bool step_echo(struct bench *bench)
{
    char letter[2] = {(char)('a' + bench->at % 26), '\0'};

    if (bench->at == 0) {
        gd_session_on_running(bench->session);
        ev_timer_again(bench->loop, &bench->hits);
    }
    if (bench->at < LETTERS) {
        type_text(bench, letter, true);
        return true;
    }
    ev_timer_stop(bench->loop, &bench->hits);
    gd_session_on_stopped(bench->session, &bench->fake->stop_next);
    return false;
}

/* From the last scope upwards, so that nothing below the cursor moves. */
static bool step_unfold(struct bench *bench)
{
    static const char *const before[] = {"\x15", "focus graph\r", "\x18o", "g", "j", "+", "G"};
    const int begun = sizeof(before) / sizeof(before[0]);
    int blocks = (int)((bench->nodes + BLOCK_NODES - 1) / BLOCK_NODES);
    int at = bench->at - begun;

    if (bench->at < begun) {
        type_text(bench, before[bench->at], false);
    } else if (at < 2 * blocks) {
        type_text(bench, at % 2 == 0 ? "+" : "k", false);
    } else if (at == 2 * blocks) {
        type_text(bench, "G", false);
    } else {
        return false;
    }
    return true;
}

static bool step_move(struct bench *bench)
{
    char last[32];

    if (bench->at == 0) {
        snprintf(last, sizeof(last), "op%u", bench->nodes - 1);
        for (double end = bench_now() + 1; !has_seen(last) && bench_now() < end;) {
            usleep(1000); /* the thread may not have read it yet */
        }
        if (!has_seen(last)) {
            bench_fail("the last node, %s, is not on the screen", last);
        }
        type_text(bench, "g", false);
    } else if (bench->at <= MOVES) {
        type_text(bench, "j", true);
    }
    return bench->at <= MOVES;
}

/* Types each key, then the keys that lead back to the tree. */
static bool step_keys(struct bench *bench)
{
    static const char *const back[] = {"\x1b", "\x1b", "\033[20~", "\033[21~"};
    int turn = bench->at % 6;

    if (turn == 0) {
        if (bench->at % (6 * REPEATS) == 0) {
            bench->key = next_key(bench->key);
        }
        if (!bench->key) {
            return false;
        }
        type_key(bench);
    } else {
        type_text(bench, turn == 5 ? "j" : back[turn - 1], false);
    }
    return true;
}

static void run_step(struct bench *bench)
{
    static bool (*const steps[])(struct bench *) = {step_echo, step_unfold, step_move, step_keys};

    while (bench->phase < LEAVE && !steps[bench->phase](bench)) {
        bench->phase++;
        bench->at = 0;
    }
    bench->at++;
    if (bench->phase == LEAVE) {
        repl_quit(bench->repl, 0);
        ev_break(bench->loop, EVBREAK_ALL);
    }
}

/* ---- measuring ---- */

/* The duration of a command is not a matter of the screen. */
static bool runs_command(const struct bench *bench)
{
    return bench->key && bench->key->request == TUI_COMMAND;
}

static void note_frame(struct bench *bench, double seconds)
{
    if (runs_command(bench)) {
        if (seconds > bench->command_worst) {
            bench->command_worst = seconds;
            snprintf(bench->command, sizeof(bench->command), "%s", bench->key->command);
        }
        return;
    }
    if (bench->frame_count == bench->frame_room) {
        bench->frame_room = bench->frame_room * 2 + 64;
        bench->frames = realloc(bench->frames, bench->frame_room * sizeof(*bench->frames));
        if (!bench->frames) {
            bench_fail("memory");
        }
    }
    bench->frames[bench->frame_count++] = seconds;
    if (seconds > bench->worst) {
        bench->worst = seconds;
        snprintf(bench->worst_key, sizeof(bench->worst_key), "%s",
                 bench->key ? bench->key->name : "j");
    }
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct bench *bench = timer->data;

    (void)loop;
    (void)events;
    if (bench->phase == MOVE) {
        bench->bytes[bench->at - 2] = (double)(atomic_load(&bytes_sent) - bench->sent_before);
    }
    run_step(bench);
}

static void on_arrival(struct ev_loop *loop, ev_io *io, int events)
{
    struct bench *bench = io->data;

    (void)loop;
    (void)events;
    bench->arrived = true;
}

static void on_done(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    struct bench *bench = prepare->data;
    int waiting = 0;

    (void)events;
    if (bench->phase == LEAVE || ev_is_active(&bench->pause) || (bench->typed && !bench->arrived) ||
        ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0 || waiting > 0) {
        return;
    }
    double took = bench_now() - bench->typed_at;
    if (bench->typed && bench->measured && bench->phase == ECHOES) {
        bench->echo_worst = took > bench->echo_worst ? took : bench->echo_worst;
    } else if (bench->typed && bench->measured) {
        note_frame(bench, took);
    }
    bool waits = bench->typed && bench->measured && bench->phase <= MOVE;
    bench->typed = false;
    if (waits) {
        ev_timer_set(&bench->pause, bench->phase == MOVE ? TERMINAL_DELAY : LETTER_DELAY, 0.);
        ev_timer_start(loop, &bench->pause);
        return;
    }
    run_step(bench);
}

static void on_hits(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct bench *bench = timer->data;
    static uint32_t node;
    static double since, reported;
    double now = bench_now();

    (void)loop;
    (void)events;
    since = since == 0 ? now : since;
    for (; reported < (now - since) * HITS_A_SECOND; reported++) {
        struct gd_hit hit = {.watchpoint = 1, .step = 2, .node = node++ % bench->nodes};
        struct gd_node_info info;
        gd_graph_node(bench->session->graph, hit.node, &info);
        snprintf(hit.node_name, sizeof(hit.node_name), "%s", info.name);
        gd_session_on_hit(bench->session, &hit);
    }
}

static void start_phases(struct bench *bench)
{
    ev_prepare_init(&bench->done, on_done);
    ev_set_priority(&bench->done, EV_MINPRI);
    ev_io_init(&bench->arrival, on_arrival, STDIN_FILENO, EV_READ);
    ev_set_priority(&bench->arrival, EV_MAXPRI);
    ev_timer_init(&bench->pause, on_pause, 0., 0.);
    ev_timer_init(&bench->hits, on_hits, HIT_SECONDS, HIT_SECONDS);
    bench->done.data = bench->arrival.data = bench->pause.data = bench->hits.data = bench;
    ev_prepare_start(bench->loop, &bench->done);
    ev_io_start(bench->loop, &bench->arrival);
    for (int pane = TUI_TREE; pane <= TUI_PANE_COUNT; pane++) {
        if (tui_key_bind("F9", (enum tui_pane_id)pane, "layout graph", NULL) != GD_OK ||
            tui_key_bind("F10", (enum tui_pane_id)pane, "focus graph", NULL) != GD_OK) {
            bench_fail("cannot bind a key");
        }
    }
}

static double find_worst(const double *values, size_t count)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        worst = values[i] > worst ? values[i] : worst;
    }
    return worst;
}

static void print_results(struct bench *bench, int out)
{
    if (dup2(out, STDOUT_FILENO) < 0) {
        bench_fail("cannot read the output");
    }
    bench_note("tui: %zu keys measured, %zu hits received, slowest key: %s", bench->frame_count,
               bench->session->hit_count + bench->session->hits_dropped, bench->worst_key);
    bench_note("tui: slowest command of a key: %s, %.0f ms", bench->command,
               bench->command_worst * 1e3);
    bench_report("tui.frame_worst_ms", bench->worst * 1e3, 50, false);
    bench_report("tui.frame_median_ms", bench_median(bench->frames, bench->frame_count) * 1e3, 16,
                 false);
    bench_report("tui.bytes_per_line", find_worst(bench->bytes, MOVES), 2048, false);
    bench_report("tui.echo_ms", bench->echo_worst * 1e3, 100, false);
}

int main(int argc, char **argv)
{
    struct bench bench = {.nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000};
    struct repl_options options = {.interactive = true, .utf8 = true, .color = true, .width = 80};
    struct gd_debugger *debugger = NULL;
    struct gd_err err = {.code = GD_OK};
    char home[] = "/tmp/gradb-bench-XXXXXX";
    pthread_t thread;
    int out = dup(STDOUT_FILENO);

    if (bench.nodes < 2 * BLOCK_NODES) {
        bench_fail("at least %d nodes are needed", 2 * BLOCK_NODES);
    }
    alarm(GIVE_UP);
    if (!mkdtemp(home) || setenv("XDG_STATE_HOME", home, 1) != 0 ||
        setenv("TERM", "xterm-256color", 1) != 0 || setenv("LC_ALL", "C.UTF-8", 1) != 0) {
        bench_fail("cannot create a directory");
    }
    setlocale(LC_CTYPE, "");
    open_terminal(&bench);
    bench.loop = ev_default_loop(EVFLAG_AUTO);
    if (gd_debugger_create(&debugger, &err) != GD_OK ||
        repl_create(bench.loop, debugger, &options, &bench.repl, &err) != GD_OK) {
        bench_fail("%s", err.text);
    }
    tui_lend_screen(bench.repl);
    open_session(&bench);
    if (pthread_create(&thread, NULL, drain_terminal, &bench.master) != 0) {
        bench_fail("cannot create a thread");
    }
    start_phases(&bench);
    if (tui_run(bench.loop, bench.repl, &err) != GD_OK) {
        bench_fail("%s", err.text);
    }
    ev_prepare_stop(bench.loop, &bench.done);
    ev_io_stop(bench.loop, &bench.arrival);
    print_results(&bench, out);
    rmdir(home);
    return 0;
}
