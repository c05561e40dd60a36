// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: scan */
#include <stdlib.h>
#include <string.h>

#include "dump/scan/scan.h"
#include "repl/commands/breakpoints/scan_report.h"
#include "repl/core/repl_impl.h"
#include "repl/request/permit.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

/* "3", "3..7", "3.." and "..7" */
static int parse_range(const char *text, struct gd_scan_range *ret, struct gd_err *err)
{
    const char *dots = strstr(text, "..");
    char first[32];
    int rc = GD_OK;

    *ret = (struct gd_scan_range){INT64_MIN + 1, INT64_MAX};
    if (!dots) {
        rc = arg_count(text, INT64_MIN + 1, INT64_MAX, &ret->from, err);
        ret->to = ret->from;
        return rc;
    }
    if ((size_t)(dots - text) >= sizeof(first)) {
        return gd_fail(err, GD_EINVAL, "\"%.40s\" is not a range such as 3..7", text);
    }
    memcpy(first, text, (size_t)(dots - text));
    first[dots - text] = '\0';
    if (first[0] != '\0') {
        rc = arg_count(first, INT64_MIN + 1, INT64_MAX, &ret->from, err);
    }
    if (rc == GD_OK && dots[2] != '\0') {
        rc = arg_count(dots + 2, INT64_MIN + 1, INT64_MAX, &ret->to, err);
    }
    if (rc == GD_OK && ret->from > ret->to) {
        rc = gd_fail(err, GD_EINVAL, "\"%.40s\" is an empty range: write the smaller number first",
                     text);
    }
    return rc;
}

/* "0,2..3" */
static int parse_ranks(char *text, struct gd_scan_head *head, struct gd_err *err)
{
    char *rest = text, *one;
    int rc = GD_OK;

    while (rc == GD_OK && (one = strsep(&rest, ","))) {
        if (one[0] == '\0') {
            continue;
        }
        if (head->range_count == GD_SCAN_MAX_RANGES) {
            return gd_fail(err, GD_ELIMIT, "too many ranges of ranks: at most %d",
                           GD_SCAN_MAX_RANGES);
        }
        rc = parse_range(one, &head->ranks[head->range_count], err);
        head->range_count++;
    }
    return rc == GD_OK && head->range_count == 0
               ? gd_fail(err, GD_EUSAGE, "scan: ranks needs numbers, such as: ranks 0,2..3")
               : rc;
}

/* Rank and size from the variables of mpirun and srun. */
static int shard_of_environment(struct gd_scan_head *head, struct gd_err *err)
{
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *rank = getenv(names[i][0]), *size = getenv(names[i][1]);
        int64_t number = 0, count = 0;

        if (!rank || !size) {
            continue;
        }
        if (arg_count(size, 1, GD_SCAN_MAX_SHARDS, &count, NULL) != GD_OK ||
            arg_count(rank, 0, count - 1, &number, NULL) != GD_OK) {
            return gd_fail(err, GD_EINVAL,
                           "--shard auto: %s=%.40s and %s=%.40s are not a valid rank and size",
                           names[i][0], rank, names[i][1], size);
        }
        head->shard = (uint32_t)number + 1;
        head->shards = (uint32_t)count;
        return GD_OK;
    }
    return gd_fail(err, GD_ESTATE,
                   "--shard auto: not started by mpirun or srun (OMPI_COMM_WORLD_RANK, PMI_RANK "
                   "and SLURM_PROCID are unset): use --shard I/N");
}

static int parse_shard(const char *text, struct gd_scan_head *head, struct gd_err *err)
{
    const char *slash = strchr(text, '/');
    int64_t number = 0, count = 0;
    char first[32];

    if (strcmp(text, "auto") == 0) {
        return shard_of_environment(head, err);
    }
    if (slash && (size_t)(slash - text) < sizeof(first)) {
        memcpy(first, text, (size_t)(slash - text));
        first[slash - text] = '\0';
        if (arg_count(slash + 1, 1, GD_SCAN_MAX_SHARDS, &count, NULL) == GD_OK &&
            arg_count(first, 1, count, &number, NULL) == GD_OK) {
            head->shard = (uint32_t)number;
            head->shards = (uint32_t)count;
            return GD_OK;
        }
    }
    return gd_fail(
        err, GD_EINVAL,
        "\"%.40s\" is not a part: write I/N with I from 1 to N and N at most %d, or auto", text,
        GD_SCAN_MAX_SHARDS);
}

static int parse_word(struct command_call *call, const char *word, char *value,
                      struct gd_scan_options *options, struct gd_err *err)
{
    struct gd_scan_head *head = &options->asked;

    if (strcmp(word, "steps") == 0 || strcmp(word, "step") == 0) {
        return parse_range(value, &head->steps, err);
    }
    if (strcmp(word, "ranks") == 0 || strcmp(word, "rank") == 0) {
        return parse_ranks(value, head, err);
    }
    if (strcmp(word, "--shard") == 0) {
        return parse_shard(value, head, err);
    }
    if (strcmp(word, "--out") == 0) {
        options->out = inspect_home_path(call, value);
        return GD_OK;
    }
    return gd_fail(err, GD_EUSAGE, "scan: unknown option \"%.40s\"", word);
}

static int parse_words_of(struct command_call *call, struct gd_scan_options *options,
                          struct gd_err *err)
{
    int rc = GD_OK;

    options->asked.steps = (struct gd_scan_range){INT64_MIN, INT64_MAX};
    options->asked.shard = options->asked.shards = 1;
    for (int i = 0; rc == GD_OK && i < call->argc; i += 2) {
        if (i + 1 == call->argc) {
            return gd_fail(err, GD_EUSAGE, "scan: a value is missing after %.40s", call->argv[i]);
        }
        rc = parse_word(call, call->argv[i], call->argv[i + 1], options, err);
    }
    if (rc == GD_OK && options->asked.shards > 1 && !options->out) {
        rc = gd_fail(err, GD_EUSAGE,
                     "scan: --shard needs --out FILE, so that the parts can be merged");
    }
    return rc;
}

static int run_scan(struct command_call *call, struct gd_err *err)
{
    struct scanning s;
    struct gd_scan_options options = {.go_on = scan_go_on, .ctx = &s};
    struct gd_scan_summary sum;
    struct gd_err why;
    int rc = parse_words_of(call, &options, err);

    options.remember =
        repl_check_seal(call->repl, NULL) == GD_OK && permit_write(call->repl, NULL) == GD_OK;
    if (rc == GD_OK && options.out) {
        rc = repl_check_seal(call->repl, err);
        rc = rc == GD_OK ? permit_write(call->repl, err) : rc;
    }
    if (rc != GD_OK) {
        return rc;
    }
    double since = repl_now(call->repl);
    scan_begin(&s, call);
    rc = scan_finish(&s, gd_scan(call->session, &options, &sum, err), err);
    if (sum.warning[0] != '\0') {
        gd_session_on_warning(call->session, sum.warning);
    }
    if (rc == GD_EINTR && sum.file[0] != '\0' && err) {
        why = *err;
        return gd_fail(err, rc, "%.200s: run the same scan again to continue", why.text);
    }
    if (rc == GD_OK && options.asked.shards == 1) {
        rc = hits_need_checked(sum.hits, sum.checks, sum.unclear, sum.errors, err);
    }
    if (rc == GD_OK) {
        scan_report(call, &options, &sum, repl_now(call->repl) - since);
    }
    return rc;
}

const struct command cmd_scan = {
    .name = "scan",
    .group = "breakpoints",
    .usage = "scan [steps A..B] [ranks LIST] [--shard I/N|auto] [--out FILE]",
    .summary = "Evaluate the watchpoints on all values of a dump",
    .help =
        "Check every value of the dump that a watchpoint covers, as a live training would have,\n"
        "step by step in execution order, reading several files at once. \"info hits\" lists the\n"
        "hits; \"hit N\" goes to the step and the node, and \"why\" explains from there. steps "
        "and\n"
        "ranks restrict the scan: 3, 3..7, 3.. or ..7; ranks also takes a list, 0,2..3.\n"
        "\n"
        "Ctrl-C stops the scan; the same scan continues later, even in another gradb. --out\n"
        "saves the results to FILE. --shard I/N (I from 1 to N) scans one of N parts, to be\n"
        "merged later, for processes on many machines, each with its own --out. auto takes the\n"
        "numbers from mpirun or srun; if --out is a directory, each part gets a file in it.",
    .examples = "scan\n"
                "scan steps 100..200 ranks 0\n"
                "scan --shard 3/8 --out parts/3.gdscan",
    .args = {ARG_CHOICE},
    .flags = CMD_NEEDS_SESSION,
    .run = run_scan,
};
