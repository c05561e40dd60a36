// SPDX-License-Identifier: GPL-3.0-or-later
/* Lines, bodies, scripts, stops and run control, on a trainer made of memory. */
#include <cjson/cJSON.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "repl/core/hits.h"
#include "repl/net.h"
#include "scratch.h"
#include "unit.h"

static int setup_typed(void **state)
{
    net_setup(state, &(struct repl_options){.batch = false});
    fake_run(&((struct net *)*state)->fake, "", NULL);
    return 0;
}

/* ---- lines ---- */

static void comments_and_empty_lines_do_nothing(void **state)
{
    net_expect(*state, "", "");
    net_expect(*state, "# comment", "");
    net_expect(*state, "echo a\\n", "a\n");
    net_expect(*state, "", ""); /* echo does not repeat */
}

static void an_empty_line_repeats_a_step(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "step", "Stopped at the end of step");
    int runs = n->fake.runs;
    fake_run(&n->fake, "", NULL);
    assert_int_equal(n->fake.runs, runs + 1);
    fake_run(&n->fake, "   ", NULL);
    assert_int_equal(n->fake.runs, runs + 2);
    fake_run(&n->fake, "echo x", NULL);
    fake_run(&n->fake, "", NULL);
    assert_int_equal(n->fake.runs, runs + 2); /* the line before was no step */
}

static void errors_are_one_line(void **state)
{
    net_expect_rc(*state, "frobnicate", GD_ENOTFOUND,
                  "error: there is no command \"frobnicate\": see \"help\"\n");
    net_expect_rc(*state, "step x", GD_EINVAL,
                  "error: \"x\" is not a number: expected a count of 1 or more\n");
    net_expect_rc(*state, "step 1 2", GD_EUSAGE,
                  "error: step: unexpected argument \"2\" (usage: step [N] [&])\n");
    net_expect_rc(*state, "step 0", GD_EINVAL,
                  "error: 0 is out of range: 1 to 9223372036854775807\n");
    net_expect_rc(*state, "echo a > b c", GD_OK, "a > b c"); /* raw: no redirection */
    net_expect_rc(*state, "help 'x", GD_EINVAL, "error: the quote ' is not closed: 'x\n");
}

static void errors_hide_no_control_characters(void **state)
{
    net_expect_rc(*state, "help \033[31m", GD_ENOTFOUND,
                  "error: there is no command \" [31m\": see \"help\"\n");
}

static void expect_file(const char *path, const char *text)
{
    char read[128] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    read[fread(read, 1, sizeof(read) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(read, text);
}

static void output_goes_to_a_file(void **state)
{
    static const char once[] = "gradb " GRADB_VERSION "\n";
    static const char twice[] = "gradb " GRADB_VERSION "\ngradb " GRADB_VERSION "\n";
    char path[SCRATCH_PATH];
    char line[128];
    struct stat before, after;
    int fd = scratch_file(path);

    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0640), 0);
    assert_int_equal(fstat(fd, &before), 0);
    close(fd);
    snprintf(line, sizeof(line), "show version > %s", path);
    net_expect(*state, line, "");
    expect_file(path, once);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    snprintf(line, sizeof(line), "show version >> %s", path);
    net_expect(*state, line, "");
    expect_file(path, twice);
    /* what fails leaves it as it was, and nothing beside it */
    snprintf(line, sizeof(line), "show nothing-of-this-name > %s", path);
    net_expect_part(*state, line, "error: ");
    snprintf(line, sizeof(line), "show nothing-of-this-name >> %s", path);
    net_expect_part(*state, line, "error: ");
    expect_file(path, twice);
    snprintf(line, sizeof(line), "%s.part", path);
    assert_int_equal(access(line, F_OK), -1);
    unlink(path);
    net_expect(*state, "show version > /dev/null", "");
    net_expect_part(*state, "show version > /nonexistent/x",
                    "error: cannot write to /nonexistent/x");
}

/* ---- several processes ---- */

static int told;

static int take_command(struct gd_target *target, const char *name, const char *args,
                        gd_node_id node, gd_command_fn fn, void *ctx, struct gd_err *err)
{
    assert_string_equal(name, "exceptions");
    assert_string_equal(args, "all");
    told++;
    fn(ctx, "{}", NULL);
    return GD_OK;
}

static int refuse_command(struct gd_target *target, const char *name, const char *args,
                          gd_node_id node, gd_command_fn fn, void *ctx, struct gd_err *err)
{
    return gd_fail(err, GD_EIO, "it is busy");
}

static void no_destroy(struct gd_target *target)
{
}

/* All processes are told, whoever refuses; who does is named. */
static void everyone_is_told(void **state)
{
    static const char stops[] =
        "The training will stop where an operator raises an exception, and before an exception "
        "ends the program.\n";
    static struct gd_target_ops first; /* all of them outlive the test: the teardown needs them */
    static struct gd_target_ops refusing = {
        .kind = "v", .command = refuse_command, .destroy = no_destroy};
    static struct gd_target_ops taking = {
        .kind = "v", .command = take_command, .destroy = no_destroy};
    static struct gd_target others[] = {{.ops = &refusing, .capabilities = GD_CAN_COMMAND},
                                        {.ops = &taking, .capabilities = GD_CAN_COMMAND}};
    struct gd_stop stop = {.reason = GD_STOP_STEP, .step = 3, .node = GD_NO_NODE};
    char want[300];
    struct net *net = *state;

    told = 0;
    first = *net->fake.target->ops;
    for (int i = 0; i < 2; i++) {
        struct gd_peer peer = {.rank = i + 1, .world_size = 1};
        struct gd_session *session = NULL;
        assert_ok(gd_session_create(net->fake.debugger, &others[i], &peer, &session, NULL));
        gd_session_on_stopped(session, &stop);
    }
    fake_run(&net->fake, "session 1", NULL);
    first.command = take_command;
    net->fake.target->ops = &first;
    net->fake.target->capabilities |= GD_CAN_COMMAND;
    snprintf(want, sizeof(want), "warning: [rank 1] refused: it is busy\n%s", stops);
    net_expect(*state, "catch exception", want);
    assert_int_equal(told, 2);
    first.command = refuse_command;
    net_expect_rc(*state, "catch exception", GD_EIO,
                  "warning: [rank 1] refused: it is busy\nerror: it is busy\n");
    assert_int_equal(told, 3);
}

/* ---- user commands ---- */

static void define_makes_a_command(void **state)
{
    net_expect(*state, "define greet", "");
    net_expect(*state, "echo $argc:$arg0:$arg1:$arg*\\n", "");
    net_expect(*state, "end", "");
    net_expect(*state, "greet a 'b c'", "2:a:b c:a 'b c'\n");
    net_expect(*state, "greet", "0:::\n");
    net_expect(*state, "gree x", "1:x::x\n"); /* a prefix will do */
    net_expect(*state, "document greet", "");
    net_expect(*state, "Says it.", "");
    net_expect(*state, "end", "");
    net_expect(*state, "help greet", "Says it.\n");
}

static void define_inside_define(void **state)
{
    fake_run(&((struct net *)*state)->fake, "define outer", NULL);
    fake_run(&((struct net *)*state)->fake, "define inner", NULL);
    fake_run(&((struct net *)*state)->fake, "echo inner\\n", NULL);
    fake_run(&((struct net *)*state)->fake, "end", NULL);
    fake_run(&((struct net *)*state)->fake, "end", NULL);
    net_expect_part(*state, "inner", "error: there is no command");
    net_expect(*state, "outer", "");
    net_expect(*state, "inner", "inner\n");
}

static void a_command_that_calls_itself_ends(void **state)
{
    fake_run(&((struct net *)*state)->fake, "define deep", NULL);
    fake_run(&((struct net *)*state)->fake, "deep", NULL);
    fake_run(&((struct net *)*state)->fake, "end", NULL);
    net_expect_rc(*state, "deep", GD_ELIMIT, "error: commands are nested more than 64 deep\n");
    net_expect(*state, "echo still here", "still here");
}

static void define_refuses_bad_names(void **state)
{
    net_expect_part(*state, "define 1x", "error: define: a name starts with a letter");
    net_expect_part(*state, "define a$b", "error: define: a name consists of letters");
    net_expect_part(*state, "define", "usage: define NAME");
    net_expect_part(*state, "document nothing", "error: \"nothing\" is not user-defined");
}

static void alias_stands_for_a_line(void **state)
{
    net_expect(*state, "alias say = echo hello", "");
    net_expect(*state, "say you", "hello you");
    net_expect(*state, "alias again = say", "");
    net_expect(*state, "again me", "hello me");
    net_expect_part(*state, "alias", "again  say");
    net_expect_part(*state, "alias loop = lop", "error: there is no command \"lop\": see");
    net_expect(*state, "alias echo = echo E", ""); /* the built-in one is meant */
    net_expect(*state, "echo x", "E x");
}

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static void source_stops_at_the_first_error(void **state)
{
    char path[SCRATCH_PATH];
    char line[128];
    char expected[256];
    int fd = scratch_file(path);

    assert_true(fd >= 0);
    close(fd);
    write_file(path, "# first\necho one\\n\n\nnonsense\necho two\\n\n");
    snprintf(line, sizeof(line), "source %s", path);
    snprintf(expected, sizeof(expected),
             "one\nerror: %s:4: there is no command \"nonsense\": see \"help\"\n", path);
    net_expect_rc(*state, line, GD_ENOTFOUND, expected);
    write_file(path, "define x\necho one\n");
    snprintf(expected, sizeof(expected),
             "error: %s:2: the file ends inside \"define\": \"end\" is missing\n", path);
    net_expect_rc(*state, line, GD_EINVAL, expected);
    unlink(path);
    snprintf(expected, sizeof(expected),
             "error: cannot read the command file %s: No such file or directory\n", path);
    net_expect_rc(*state, line, GD_EIO, expected);
}

static void a_file_that_sources_itself_ends(void **state)
{
    char path[SCRATCH_PATH];
    char line[128];
    int fd = scratch_file(path);

    assert_true(fd >= 0);
    close(fd);
    snprintf(line, sizeof(line), "source %s\n", path);
    write_file(path, line);
    line[strlen(line) - 1] = '\0';
    net_expect_part(*state, line, "deep");
    unlink(path);
}

/* ---- running ---- */

static void runs_are_told_to_the_target(void **state)
{
    struct net *n = *state;

    net_expect_part(n, "step 3", "Stopped");
    assert_int_equal(n->fake.run.kind, GD_RUN_STEP);
    assert_int_equal(n->fake.run.count, 3);
    net_expect_part(n, "n 2", "step");
    assert_int_equal(n->fake.run.kind, GD_RUN_NEXT);
    net_expect_part(n, "until Mean-op9", "");
    assert_int_equal(n->fake.run.kind, GD_RUN_TO_NODE);
    assert_int_equal(n->fake.run.node, n->loss);
    net_expect_part(n, "fin", "");
    assert_int_equal(n->fake.run.kind, GD_RUN_FINISH);
    net_expect_part(n, "c", "Continuing.\n");
    assert_int_equal(n->fake.run.kind, GD_RUN_CONTINUE);
    net_expect_part(n, "until nosuch", "error: ");
    net_expect_part(n, "until", "usage: run-to PLACE");
}

static void a_stop_at_a_node_shows_its_source(void **state)
{
    struct net *n = *state;

    n->fake.next_stop = (struct gd_stop){.reason = GD_STOP_NODE, .step = 4, .node = n->matmul};
    n->fake.has_next_stop = true;
    const char *out = fake_run(&n->fake, "next", NULL);
    assert_contains(out, "step 4, net/fc1/MatMul-op1 (MatMul)\n");
    assert_contains(out, "sample.txt:4\t");
}

static void break_and_continue(void **state)
{
    struct net *n = *state;

    net_expect(n, "break MatMul-op1", "Breakpoint 1 at net/fc1/MatMul-op1 (MatMul)\n");
    net_expect(n, "tbreak type:Add", "Temporary breakpoint 2 at type:Add: 2 nodes\n");
    net_expect_part(n, "break later/x", "Breakpoint 3 at later/x (pending: ");
    assert_int_equal(n->fake.breakpoints, 3);
    n->fake.next_stop =
        (struct gd_stop){.reason = GD_STOP_BREAKPOINT, .step = 4, .node = n->matmul};
    n->fake.has_next_stop = true;
    net_expect_part(n, "continue",
                    "Continuing.\nBreakpoint 1, step 4, net/fc1/MatMul-op1 (MatMul)\n");
    net_expect_part(n, "info breakpoints", "already hit 1 time\n");
    net_expect(n, "ignore 1 2", "Breakpoint 1 will be passed 2 more times.\n");
    net_expect_part(n, "info breakpoints", "ignore next 2 hits\n");
    net_expect(n, "disable 1", "");
    net_expect_part(n, "info breakpoints", "1    breakpoint  keep  n ");
    net_expect(n, "delete 2-3", "");
    net_expect_rc(n, "delete 2", GD_ENOTFOUND,
                  "error: there is no breakpoint or watchpoint 2: see \"info breakpoints\"\n");
    net_expect(n, "delete", "");
    net_expect(n, "info breakpoints", "No breakpoints.\n");
}

static void continue_n_ignores_the_breakpoint_just_hit(void **state)
{
    struct net *n = *state;

    fake_run(&n->fake, "break MatMul-op1", NULL);
    n->fake.next_stop =
        (struct gd_stop){.reason = GD_STOP_BREAKPOINT, .step = 4, .node = n->matmul};
    n->fake.has_next_stop = true;
    fake_run(&n->fake, "continue", NULL);
    net_expect_part(n, "continue 3", "Breakpoint 1 will be passed 2 more times. Continuing.\n");
    assert_int_equal(gd_debugger_breakpoint(n->fake.debugger, 1)->ignore, 2);
}

/* Counters in full, a loss with what it gains from step to step, and no sign on what is no number.
 */
static void a_stop_at_a_steps_end_tells_its_scalars(void **state)
{
    struct net *n = *state;
    struct gd_session *session = n->fake.session;

    gd_session_on_scalar(session, "loss", 2.0412345, 20000);
    gd_session_on_scalar(session, "lr", 1e-5, 20000);
    gd_session_on_scalar(session, "batch", 1234567, 20000);
    gd_session_on_scalar(session, "norm", copysign(NAN, -1), 20000);
    gd_session_on_scalar(session, "scale", -INFINITY, 20000);
    gd_session_on_scalar(session, "old", 1, 19999);
    n->fake.next_stop = (struct gd_stop){
        .reason = GD_STOP_STEP, .step = 20000, .at_step_end = true, .node = GD_NO_NODE};
    n->fake.has_next_stop = true;
    net_expect_part(n, "step",
                    "Stopped at the end of step 20000.\n"
                    "loss = 2.04123, lr = 1e-05, batch = 1234567, norm = nan, scale = -inf\n");
    net_expect(n, "print batch", "batch = 1234567 (step 20000)\n");
    net_expect(n, "print norm", "norm = nan (step 20000)\n");
    net_expect(n, "display norm", "1: norm = nan\n");
    net_expect_part(n, "info scalars", "norm         nan  20000\n");
}

static void commands_run_at_the_stop(void **state)
{
    struct net *n = *state;
    struct gd_stop stop = {.reason = GD_STOP_BREAKPOINT, .step = 4, .node = n->matmul};

    fake_run(&n->fake, "break MatMul-op1", NULL);
    net_expect(n, "commands", "");
    net_expect(n, "echo hit\\n", "");
    net_expect(n, "end", "");
    n->fake.next_stop = stop;
    n->fake.has_next_stop = true;
    net_expect_part(n, "continue", "(MatMul)\n");
    n->fake.next_stop = stop;
    n->fake.has_next_stop = true;
    assert_contains(fake_run(&n->fake, "continue", NULL), "\nhit\n");
    net_expect_part(n, "info breakpoints", "        echo hit\\n\n");
    fake_run(&n->fake, "commands 1", NULL);
    fake_run(&n->fake, "silent", NULL);
    fake_run(&n->fake, "echo quiet\\n", NULL);
    fake_run(&n->fake, "continue", NULL);
    fake_run(&n->fake, "echo never\\n", NULL);
    fake_run(&n->fake, "end", NULL);
    n->fake.next_stop = stop;
    n->fake.has_next_stop = true;
    const char *out = fake_run(&n->fake, "continue", NULL);
    assert_contains(out, "quiet\n");
    assert_null(strstr(out, "Breakpoint"));
    assert_null(strstr(out, "never"));
    assert_contains(out, "Stopped"); /* the stop after the one that the body continued */
    net_expect_part(n, "commands 7", "error: there is no breakpoint or watchpoint 7");
}

static void enable_once_disables_after_the_stop(void **state)
{
    struct net *n = *state;

    fake_run(&n->fake, "break MatMul-op1", NULL);
    net_expect(n, "enable once 1", "");
    n->fake.next_stop =
        (struct gd_stop){.reason = GD_STOP_BREAKPOINT, .step = 4, .node = n->matmul};
    n->fake.has_next_stop = true;
    fake_run(&n->fake, "continue", NULL);
    assert_false(gd_debugger_breakpoint(n->fake.debugger, 1)->enabled);
    net_expect_part(n, "enable count", "usage: enable");
    net_expect_part(n, "enable once", "usage: enable");
}

static void a_lost_trainer_is_reported(void **state)
{
    struct net *n = *state;

    fake_lose(&n->fake, "the connection broke");
    net_expect_rc(n, "step", GD_ESTATE,
                  "error: the training process has ended (lost): step needs a live one, such as "
                  "\"run\" starts\n");
    net_expect_part(n, "info target", "lost");
}

static void numbers_of_the_history(void **state)
{
    net_expect_part(*state, "print $", "error: ");
    net_expect_part(*state, "print MatMul-op1", "$1 = ");
    net_expect_part(*state, "print Mean-op9", "$2 = ");
    net_expect_part(*state, "print $1[0]", "[1. 2. 3.]");
    net_expect_part(*state, "print $", "2.25");
    net_expect_part(*state, "print $$", "[4. 5. 6.]"); /* the one before */
    net_expect_part(*state, "print $99", "error: ");
    net_expect_part(*state, "print $_[1, 0]", "");
}

/* ---- settings, help ---- */

static void set_and_show(void **state)
{
    net_expect(*state, "set print precision 3", "");
    net_expect(*state, "show print precision",
               "print precision = 3 digits\nDigits after the decimal point.\n");
    net_expect(*state, "show token",
               "token = (empty)\n"
               "Secret that training processes must have in GRADB_TOKEN.\n");
    net_expect(*state, "set token 'a b'", "");
    net_expect_part(*state, "show token", "token = a b\n");
    net_expect_part(*state, "set", "usage: set NAME VALUE");
    net_expect_part(*state, "info settings", "print precision");
    net_expect_part(*state, "set keep-previous /(/", "error: ");
}

static void help_and_apropos(void **state)
{
    net_expect_part(*state, "help", "Groups of commands:");
    net_expect_part(*state, "help all", "Running and stopping the training:");
    net_expect_part(*state, "help running", "  step            Run N training steps, then stop\n");
    net_expect_part(*state, "help s", "step [N] [&]\nRun N training steps, then stop.\n");
    net_expect_part(*state, "help info graph", "info graph");
    net_expect_part(*state, "help step x", "error: \"step\" has no subcommands");
    net_expect_part(*state, "apropos temporary", "No help mentions");
    net_expect_part(*state, "apropos TRAINING STEPS", "step");
    net_expect_part(*state, "apropos", "usage: apropos WORD");
}

static void shell_and_pipe(void **state)
{
    net_expect(*state, "pipe show version | grep -c gradb > /dev/null", "");
    net_expect_part(*state, "pipe show version", "usage: pipe");
    net_expect_part(*state, "pipe -d ; | x", "usage: pipe");
    net_expect_part(*state, "pipe nonsense | cat", "error: there is no command \"nonsense\"");
    net_expect(*state, "shell exit 3", "");
}

static void test_statuses(void **state)
{
    struct net *n = *state;

    assert_int_equal(repl_exit_status(n->fake.repl), 0);
    fake_run(&n->fake, "nonsense", NULL);
    assert_int_equal(repl_exit_status(n->fake.repl), 1);
    assert_false(repl_wants_quit(n->fake.repl));
    fake_run(&n->fake, "quit 7", NULL);
    assert_true(repl_wants_quit(n->fake.repl));
    assert_int_equal(repl_exit_status(n->fake.repl), 7);
}

/* ---- JSON ---- */

static cJSON *last_line(struct net *n, const char *line)
{
    const char *out = fake_run(&n->fake, line, NULL);
    size_t len = strlen(out);
    while (len > 1 && out[len - 2] != '\n') {
        len--;
    }
    cJSON *object = cJSON_Parse(out + (len > 1 ? len - 1 : 0));
    assert_non_null(object);
    return object;
}

static void text_of(cJSON *object, const char *name, const char *expected)
{
    cJSON *item = cJSON_GetObjectItem(object, name);
    assert_true(cJSON_IsString(item));
    assert_string_equal(item->valuestring, expected);
}

static void every_line_is_an_object(void **state)
{
    static const char *const lines[] = {"help",         "help all",       "help step",
                                        "step",         "info graph",     "info breakpoints",
                                        "break MatMul", "info settings",  "show version",
                                        "nonsense",     "set confirm on", "history",
                                        "echo x",       "complete he",    "delete"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const char *out = fake_run(&((struct net *)*state)->fake, lines[i], NULL);
        assert_true(out[0] == '{');
        while (*out != '\0') {
            const char *end = NULL;
            cJSON *object = cJSON_ParseWithOpts(out, &end, 0);
            assert_non_null(object);
            assert_int_equal(*end, '\n');
            assert_int_equal(cJSON_GetObjectItem(object, "v")->valueint, 1);
            assert_true(cJSON_IsString(cJSON_GetObjectItem(object, "type")));
            cJSON_Delete(object);
            out = end + 1;
        }
    }
}

static void the_result_comes_last_and_names_its_command(void **state)
{
    cJSON *object = last_line(*state, "step");
    text_of(object, "type", "run");
    text_of(object, "command", "step");
    text_of(object, "state", "stopped");
    text_of(object, "reason", "step");
    cJSON_Delete(object);
    object = last_line(*state, "info breakpoints");
    text_of(object, "command", "info breakpoints");
    cJSON_Delete(object);
    object = last_line(*state, "delete");
    text_of(object, "type", "ok");
    cJSON_Delete(object);
}

static void errors_have_codes(void **state)
{
    cJSON *object = last_line(*state, "nonsense");
    text_of(object, "type", "error");
    text_of(object, "code", gd_status_name(GD_ENOTFOUND));
    cJSON_Delete(object);
    object = last_line(*state, "step 1 2");
    text_of(object, "code", gd_status_name(GD_EUSAGE));
    text_of(object, "usage", "step [N] [&]");
    text_of(object, "command", "step");
    cJSON_Delete(object);
}

static void bytes_that_are_no_text_do_not_break_the_line(void **state)
{
    const char *out = fake_run(&((struct net *)*state)->fake, "echo \xff\xfe", NULL);
    assert_contains(out, "\\\\xff\\\\xfe");
}

/* As it fires and as `info hits` lists it: what is no number has its name, never null. */
static void a_hit_is_the_same_wherever_it_is_told(void **state)
{
    struct net *n = *state;
    struct gd_hit hit = {
        .watchpoint = 1, .step = 3, .node = n->matmul, .node_name = "fc1/MatMul-op1"};

    hit.param_count = 1;
    hit.param[0].hit = true;
    hit.param[0].set_value = 0.5;
    hit.param[0].actual_value = NAN;
    snprintf(hit.param[0].name, sizeof(hit.param[0].name), "max_gt");
    gd_session_on_hit(n->fake.session, &hit);
    net_expect_part(
        n, "info hits -a",
        "\"params\":[{\"name\":\"max_gt\",\"hit\":true,\"value\":0.5,\"actual\":\"nan\"}]");
}

/* A process may report only the watchpoint: the list and the tree name its condition. */
static void a_hit_without_a_condition_has_its_watchpoints(void **state)
{
    struct net *n = *state;
    struct gd_hit hit = {
        .watchpoint = 1, .step = 3, .node = n->matmul, .node_name = "fc1/MatMul-op1"};

    net_expect_part(n, "watch TO on all", "Watchpoint 1: TO on all");
    gd_session_on_hit(n->fake.session, &hit);
    net_expect_part(n, "info hits", "watchpoint 1 (TO)");
    const struct gd_hit *kept = &n->fake.session->hits[0];
    assert_string_equal(hits_abbr(n->fake.debugger, kept), "TO");
    net_expect_part(n, "delete 1", "");
    assert_string_equal(hits_abbr(n->fake.debugger, kept), "?");
    snprintf(hit.expression, sizeof(hit.expression), "max > 3");
    assert_string_equal(hits_abbr(n->fake.debugger, &hit), "expr");
}

#define TYPED(fn) cmocka_unit_test_setup_teardown(fn, setup_typed, net_teardown)
static const struct CMUnitTest tests[] = {
    TYPED(comments_and_empty_lines_do_nothing),
    TYPED(an_empty_line_repeats_a_step),
    NET_TEXT(errors_are_one_line),
    NET_TEXT(a_hit_without_a_condition_has_its_watchpoints),
    NET_TEXT(errors_hide_no_control_characters),
    NET_TEXT(output_goes_to_a_file),
    NET_TEXT(everyone_is_told),
    NET_TEXT(define_makes_a_command),
    NET_TEXT(define_inside_define),
    NET_TEXT(a_command_that_calls_itself_ends),
    NET_TEXT(define_refuses_bad_names),
    NET_TEXT(alias_stands_for_a_line),
    NET_TEXT(source_stops_at_the_first_error),
    NET_TEXT(a_file_that_sources_itself_ends),
    NET_TEXT(runs_are_told_to_the_target),
    NET_TEXT(a_stop_at_a_node_shows_its_source),
    NET_TEXT(break_and_continue),
    NET_TEXT(continue_n_ignores_the_breakpoint_just_hit),
    NET_TEXT(a_stop_at_a_steps_end_tells_its_scalars),
    NET_TEXT(commands_run_at_the_stop),
    NET_TEXT(enable_once_disables_after_the_stop),
    NET_TEXT(a_lost_trainer_is_reported),
    NET_TEXT(numbers_of_the_history),
    NET_TEXT(set_and_show),
    NET_TEXT(help_and_apropos),
    NET_TEXT(shell_and_pipe),
    NET_TEXT(test_statuses),
    NET_JSON(every_line_is_an_object),
    NET_JSON(the_result_comes_last_and_names_its_command),
    NET_JSON(errors_have_codes),
    NET_JSON(a_hit_is_the_same_wherever_it_is_told),
    NET_JSON(bytes_that_are_no_text_do_not_break_the_line),
};

RUN_TESTS()
