// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: table */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/numbers.h"

#define MAX_COLUMNS 512
#define MAX_HEADER  ((size_t)1 << 16) /* bytes of a table's first line */

enum form { CSV, TSV, JSONL };

struct table {
    enum form form;
    const char *column[MAX_COLUMNS]; /* an expression is its own title */
    int count;
};

/* ---- columns --------------------------------------------------------------------------------- */

static int form_of(const char *path, enum form *ret, struct gd_err *err)
{
    static const char *const endings[] = {[CSV] = ".csv", [TSV] = ".tsv", [JSONL] = ".jsonl"};
    const char *dot = strrchr(path, '.');

    for (int i = 0; dot && i < 3; i++) {
        if (strcmp(dot, endings[i]) == 0) {
            *ret = (enum form)i;
            return GD_OK;
        }
    }
    return gd_fail(err, GD_EINVAL, "table: %.200s does not end in .csv, .tsv or .jsonl", path);
}

static void add_column(struct table *table, const char *name)
{
    for (int i = 0; i < table->count; i++) {
        if (strcmp(table->column[i], name) == 0) {
            return;
        }
    }
    if (table->count < MAX_COLUMNS) {
        table->column[table->count++] = name;
    }
}

/* Where the training is, then the expressions that were given, or all metrics. */
static void choose_columns(const struct command_call *call, struct table *table)
{
    if (call->session->peer.world_size > 1) {
        add_column(table, "rank");
    }
    add_column(table, "step");
    add_column(table, "epoch");
    add_column(table, "batch");
    add_column(table, "elapsed");
    for (int i = 1; i < call->argc; i++) {
        add_column(table, call->argv[i]);
    }
    for (int i = 0; call->argc == 1 && i < call->session->scalar_count; i++) {
        add_column(table, call->session->scalar[i].name);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_cell(const struct table *table, const char *text, struct gd_buf *out)
{
    if (table->form == TSV || !strpbrk(text, ",\"\n")) {
        gd_buf_puts(out, text);
        return;
    }
    gd_buf_putc(out, '"');
    for (; *text != '\0'; text++) {
        gd_buf_puts(out, *text == '"' ? "\"" : "");
        gd_buf_putc(out, *text);
    }
    gd_buf_putc(out, '"');
}

static void add_header(const struct table *table, struct gd_buf *out)
{
    for (int i = 0; i < table->count; i++) {
        gd_buf_puts(out, i == 0 ? "" : table->form == TSV ? "\t" : ",");
        put_cell(table, table->column[i], out);
    }
    gd_buf_putc(out, '\n');
}

/* *ret: nan where it has no number. GD_EINVAL: it is not an expression. */
static int value_of(struct command_call *call, const char *column, double *ret, bool *known,
                    struct gd_err *err)
{
    if (strcmp(column, "rank") == 0) {
        *known = true;
        *ret = call->session->peer.rank;
        return GD_OK;
    }
    int rc = numbers_evaluate(call, column, NULL, ret, err);
    *known = rc == GD_OK;
    return rc == GD_ENODATA ? GD_OK : rc;
}

static int make_record(struct command_call *call, const struct table *table, cJSON *record,
                       struct gd_err *err)
{
    for (int i = 0; i < table->count; i++) {
        const char *name = table->column[i];
        bool known = false;
        double value = NAN;
        int rc = value_of(call, name, &value, &known, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (!known) {
            cJSON_AddNullToObject(record, name);
        } else if (value == floor(value) && fabs(value) < 1e15) {
            out_set(record, OUT_INT(name, value));
        } else {
            out_set(record, OUT_REAL(name, value));
        }
    }
    return GD_OK;
}

/* The members of the record: numbers with all digits, "nan" and "inf" as text, nothing where there
 * is no value. */
static void add_line(const struct table *table, const cJSON *record, struct gd_buf *out)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, record)
    {
        bool number = !cJSON_IsString(item) && !cJSON_IsNull(item);
        char *text = number ? cJSON_PrintUnformatted(item) : NULL;
        gd_buf_puts(out, item == record->child ? "" : table->form == TSV ? "\t" : ",");
        gd_buf_puts(out, text ? text : cJSON_IsString(item) ? item->valuestring : "");
        cJSON_free(text);
    }
    gd_buf_putc(out, '\n');
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Reads the first line, without its end, into the arena. NULL: there is none within the limit. */
static char *read_first_line(struct command_call *call, int fd)
{
    char *line = gd_arena_alloc(call->arena, MAX_HEADER + 1);
    ssize_t len = line ? pread(fd, line, MAX_HEADER, 0) : -1;
    char *end = len > 0 ? memchr(line, '\n', (size_t)len) : NULL;

    if (end) {
        *end = '\0';
    }
    return end ? line : NULL;
}

/* The table's columns are those of the file. Without expressions, only its first ones are
 * compared: metrics may have come since. */
static bool take_columns(struct command_call *call, struct table *table, char *line)
{
    struct table found = {.form = table->form};
    char *at = line;

    if (table->form == JSONL) {
        cJSON *object = cJSON_Parse(line);
        const cJSON *item;
        cJSON_ArrayForEach(item, object)
        {
            const char *name = gd_arena_strdup(call->arena, item->string ? item->string : "");
            add_column(&found, name ? name : "");
        }
        cJSON_Delete(object);
    }
    while (table->form != JSONL && at) {
        char *name = at, *to = at;
        bool quoted = table->form == CSV && *at == '"';
        at += quoted;
        while (*at != '\0' && (quoted || *at != (table->form == TSV ? '\t' : ','))) {
            if (quoted && *at == '"' && at[1] != '"') {
                quoted = false;
                at++;
                continue;
            }
            at += quoted && *at == '"';
            *to++ = *at++;
        }
        at = *at != '\0' ? at + 1 : NULL;
        *to = '\0';
        add_column(&found, name);
    }
    bool given = call->argc > 1;
    int compared = given ? table->count : call->session->peer.world_size > 1 ? 5 : 4;
    bool same = found.count >= compared && (!given || found.count == table->count);
    for (int i = 0; same && i < compared; i++) {
        same = strcmp(found.column[i], table->column[i]) == 0;
    }
    if (same) {
        *table = found;
    }
    return same;
}

static int open_table(struct command_call *call, const char *path, struct table *table, int *ret,
                      bool *fresh, struct gd_err *err)
{
    struct stat there;
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);

    if (fd < 0) {
        return gd_fail_errno(err, GD_EIO, "table: cannot write %.300s", path);
    }
    int rc = fstat(fd, &there) != 0 || !S_ISREG(there.st_mode)
                 ? gd_fail(err, GD_EINVAL, "table: %.300s is not a regular file", path)
                 : GD_OK;
    *fresh = rc == GD_OK && there.st_size == 0;
    if (rc == GD_OK && !*fresh) {
        char *line = read_first_line(call, fd);
        if (!line || !take_columns(call, table, line)) {
            rc =
                gd_fail(err, GD_ESTATE,
                        "table: %.300s has other columns: choose another file, or remove it", path);
        }
    }
    if (rc != GD_OK) {
        close(fd);
        return rc;
    }
    *ret = fd;
    return GD_OK;
}

/* The last line of a run that was killed may lack its end. */
static bool ends_in_line(int fd)
{
    char last = '\n';
    off_t size = lseek(fd, 0, SEEK_END);

    return size <= 0 || (pread(fd, &last, 1, size - 1) == 1 && last == '\n');
}

static int append_text(int fd, const char *path, const struct gd_buf *text, struct gd_err *err)
{
    size_t done = 0;

    while (done < text->len) {
        ssize_t wrote = write(fd, text->data + done, text->len - done);
        if (wrote < 0 && errno != EINTR) {
            return gd_fail_errno(err, GD_EIO, "table: cannot write %.300s", path);
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return GD_OK;
}

/* The line that is added. */
static int make_line(struct command_call *call, const struct table *table, cJSON *row,
                     struct gd_buf *text, struct gd_err *err)
{
    int rc = make_record(call, table, row, err);

    if (rc == GD_OK && table->form == JSONL) {
        char *json = cJSON_PrintUnformatted(row);
        gd_buf_printf(text, "%s\n", json ? json : "");
        cJSON_free(json);
    } else if (rc == GD_OK) {
        add_line(table, row, text);
    }
    return rc == GD_OK && text->failed ? gd_fail_nomem(err) : rc;
}

static int run_table(struct command_call *call, struct gd_err *err)
{
    struct table table = {.count = 0};
    struct gd_buf text = GD_BUF_INIT((size_t)1 << 20);
    bool fresh = false;
    int fd = -1;
    int rc = call->argc > 0 ? repl_check_seal(call->repl, err)
                            : gd_fail(err, GD_EUSAGE, "table: specify a file");
    const char *path = rc == GD_OK ? inspect_home_path(call, call->argv[0]) : "";

    rc = rc != GD_OK ? rc : form_of(path, &table.form, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc == 1 && call->session->scalar_count == 0) {
        return gd_fail(err, GD_ENODATA, "table: no metric has been reported yet");
    }
    choose_columns(call, &table);
    cJSON *record = out_record(call->out, "table");
    cJSON *row = out_object(record, "row");
    rc = make_line(call, &table, row, &text, err); /* before the file is made: it may be wrong */
    rc = rc != GD_OK ? rc : open_table(call, path, &table, &fd, &fresh, err);
    if (rc == GD_OK) {
        gd_buf_clear(&text);
        cJSON_DeleteItemFromObject(record, "row");
        row = out_object(record, "row");
        if (fresh && table.form != JSONL) {
            add_header(&table, &text);
        } else if (!ends_in_line(fd)) {
            gd_buf_putc(&text, '\n');
        }
        rc = make_line(call, &table, row, &text, err);
    }
    rc = rc != GD_OK ? rc : append_text(fd, path, &text, err);
    if (fd >= 0 && close(fd) != 0 && rc == GD_OK) {
        rc = gd_fail_errno(err, GD_EIO, "table: cannot write %.300s", path);
    }
    gd_buf_deinit(&text);
    out_set(record, OUT_TEXT("file", path));
    return rc;
}

const struct command cmd_table = {
    .name = "table",
    .group = "files",
    .usage = "table FILE.csv|FILE.tsv|FILE.jsonl [EXPR]...",
    .summary = "Append a row with the metrics to a table",
    .help = "The columns are step, epoch, batch, elapsed (seconds of training) and the\n"
            "expressions, or all metrics (\"info scalars\"); in a job also the rank. The\n"
            "ending of the file chooses the format. A new file gets a line with the names of\n"
            "the columns. Rows are added to a table with the same columns; without\n"
            "expressions, its columns stay as they are. Any other file is refused. What has\n"
            "no value yet is left empty, null in JSON lines.",
    .examples = "table all.csv\n"
                "table run.csv loss lr",
    .args = {ARG_FILE, ARG_WORD},
    .flags = CMD_NEEDS_SESSION | CMD_SHOWS,
    .run = run_table,
};
