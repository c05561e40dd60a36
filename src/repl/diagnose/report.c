// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/diagnose/report.h"

#include <string.h>

#include "engine/session.h"
#include "engine/why/why.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/diagnose/rule.h"
#include "repl/out/newfile.h"
#include "repl/out/out_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/srcfile.h"

#define LABEL 12 /* columns before the text of a finding */

/* ---- text ------------------------------------------------------------------------------------ */

void diagnose_say(struct command_call *call, const char *label, const char *text)
{
    const size_t width =
        (size_t)(out_width(call->out) > 50 ? out_width(call->out) : 50) - LABEL - 2;
    const char *rest = out_safe(call, text);

    out_printf(call->out, "  %-*s", LABEL - 2, label);
    while (strlen(rest) > width) {
        size_t len = width;
        while (len > 0 && rest[len] != ' ') {
            len--;
        }
        len = len > 0 ? len : strcspn(rest, " ");
        out_printf(call->out, "%.*s\n%*s", (int)len, rest, LABEL, "");
        rest += len + strspn(rest + len, " ");
    }
    out_printf(call->out, "%s\n", rest);
}

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static void say_place(struct command_call *call, const cJSON *place, bool first)
{
    const char *file = out_text_of(place, "file"), *node = out_text_of(place, "node");
    uint32_t line = (uint32_t)out_number_of(place, "line");
    struct srcfile_part part = {.count = 0};
    struct gd_err ignored;

    out_say(call->out, place, "  {at:-10}[{name}:{line}][{?both}, ][{node}]\n",
            OUT_TEXT("at", first ? "where" : ""), OUT_TEXT("name", base_of(file)),
            OUT_BOOL("both", file[0] != '\0' && node[0] != '\0'));
    if (file[0] != '\0' && line > 0 &&
        srcfile_read(call, file, line, 1, &part, &ignored) == GD_OK && part.count == 1) {
        const char *text = part.line[0];
        out_printf(call->out, "            %s\n", text + strspn(text, " "));
    }
}

static void say_finding(struct command_call *call, const cJSON *finding)
{
    const cJSON *item;
    bool first = true;
    struct gd_buf text = GD_BUF_INIT(8192);

    out_render(NULL, finding, "{rank}. {verdict}: {cause}.", OUT_FIELDS(), &text);
    int width = out_width(call->out) > 40 ? out_width(call->out) : 40;
    watch_fold_to(call, out_safe(call, gd_buf_text(&text)), 0, width - 2);
    gd_buf_deinit(&text);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(finding, "where"))
    {
        say_place(call, item, first);
        first = false;
    }
    first = true;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(finding, "evidence"))
    {
        diagnose_say(call, first ? "evidence" : "", item->valuestring);
        first = false;
    }
    if (out_text_of(finding, "advice")[0] != '\0') {
        diagnose_say(call, "change", out_text_of(finding, "advice"));
    }
    if (out_text_of(finding, "look")[0] != '\0') {
        diagnose_say(call, "look", out_text_of(finding, "look"));
    }
    out_say(call->out, finding, "  rule      {rule}[ ({source})]\n\n");
}

/* What was examined: the report's last line, as text and in the page. */
#define EXAMINED                                                                                   \
    "Examined {steps|step}[, in {observed} of them all operators "                                 \
    "({operators:n})][, {tensors|tensor}[ ({not_checked:n} could not be read)]][{?watched} "       \
    "for outputs that are not finite[{?broad}, weights that leap or never change, gradients and "  \
    "layers of zeros, saturated activations], and the loss], with {rules|rule}."
#define NONE_FOUND   "Nothing found. "
#define NOT_EXAMINED "Not examined: {watcher} failed: {error}"
#define OTHERS       "Not examined: {others|other training} of the program."

static void say_looked_at(struct command_call *call, const cJSON *looked, const cJSON *findings)
{
    const cJSON *one;

    out_printf(call->out, "%s", cJSON_GetArraySize(findings) == 0 ? NONE_FOUND : "");
    out_say(call->out, looked, EXAMINED "\n");
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(looked, "failed"))
    {
        out_say(call->out, one, NOT_EXAMINED "\n");
    }
    if (diagnose_has(looked, "others")) {
        out_say(call->out, looked, OTHERS "\n");
    }
}

void diagnose_say_findings(struct command_call *call, const cJSON *findings)
{
    const cJSON *one;

    cJSON_ArrayForEach(one, findings)
    {
        say_finding(call, one);
    }
}

/* ---- the record ------------------------------------------------------------------------------ */

static int count_rules(void)
{
    int count = 0;

    for (const struct gd_why_rule *rule = gd_why_rules(); rule->name; rule++) {
        count++;
    }
    for (size_t i = 0; diagnose_tables[i]; i++) {
        for (const struct diagnose_rule *rule = diagnose_tables[i]; rule->name; rule++) {
            count++;
        }
    }
    return count;
}

static cJSON *looked_at(const struct diagnose_run *run)
{
    cJSON *ret = cJSON_CreateObject();

    if (ret) {
        out_set(ret, OUT_INT("steps", out_number_of(run->looked_at, "steps")),
                OUT_INT("observed", out_number_of(run->looked_at, "observed")),
                OUT_INT("operators", out_number_of(run->looked_at, "operators")),
                OUT_IF(diagnose_is(run->looked_at, "watched"), OUT_BOOL("watched", true)),
                OUT_IF(diagnose_is(run->looked_at, "broad"), OUT_BOOL("broad", true)),
                OUT_IF(diagnose_has(run->looked_at, "tensors"),
                       OUT_INT("tensors", out_number_of(run->looked_at, "tensors"))),
                OUT_IF(diagnose_has(run->looked_at, "tensors"),
                       OUT_INT("not_checked", out_number_of(run->looked_at, "not_checked"))),
                OUT_INT("rules", count_rules()),
                OUT_IF(run->others > 0, OUT_INT("others", run->others)),
                OUT_INT("evidence", cJSON_GetArraySize(run->pieces)),
                OUT_JSON("failed",
                         cJSON_Duplicate(cJSON_GetObjectItem(run->looked_at, "failed"), true)));
    }
    return ret;
}

void diagnose_report(struct command_call *call, const struct diagnose_run *run, cJSON *findings)
{
    cJSON *record = out_record(call->out, "diagnosis"), *looked = looked_at(run);

    out_printf(call->out, "\n");
    diagnose_say_findings(call, findings);
    say_looked_at(call, looked, findings);
    out_set(record,
            OUT_IF(call->session && call->session->peer.world_size > 1,
                   OUT_INT("rank", call->session->peer.rank)),
            OUT_JSON("findings", findings), OUT_JSON("looked_at", looked));
}

/* ---- the page -------------------------------------------------------------------------------- */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>gradb diagnose</title>"
    "<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:50em;"
    "margin:2em auto;padding:0 1em}section{border-left:4px solid "
    "#8888;padding-left:1em;margin:1.5em "
    "0}.fault{border-color:#d22}.suspect{border-color:#e90}h2{font-size:1.1em;margin:0}dt{color:#"
    "888}"
    "dd{margin:0 0 .5em 1em}code{font-size:13px;overflow-wrap:anywhere}</style></head><body>\n";

static void put_template(FILE *file, const cJSON *object, const char *template)
{
    struct gd_buf text = GD_BUF_INIT((size_t)1 << 14);

    out_render(NULL, object, template, OUT_FIELDS(), &text);
    out_put_html(file, gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static void put_section(FILE *file, const cJSON *finding)
{
    const cJSON *item;

    fputs("<section class=\"", file);
    out_put_html(file, out_text_of(finding, "verdict"));
    fputs("\"><h2>", file);
    put_template(file, finding, "{rank}. {verdict}: {cause}");
    fputs("</h2><dl>", file);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(finding, "where"))
    {
        fputs("<dt>where</dt><dd><code>", file);
        put_template(file, item, "[{file}:{line} ][{node}]");
        fputs("</code></dd>", file);
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(finding, "evidence"))
    {
        fputs("<dt>evidence</dt><dd>", file);
        out_put_html(file, item->valuestring);
        fputs("</dd>", file);
    }
    fputs("<dt>change</dt><dd>", file);
    out_put_html(file, out_text_of(finding, "advice"));
    fputs("</dd><dt>rule</dt><dd>", file);
    put_template(file, finding, "{rule}[ ({source})]");
    fputs("</dd></dl></section>\n", file);
}

int diagnose_report_html(struct command_call *call, const struct diagnose_run *run,
                         const cJSON *findings, const char *path, struct gd_err *err)
{
    struct newfile sink;
    const cJSON *one;
    cJSON *looked = looked_at(run);
    int rc = newfile_open(&sink, path, false, err);

    if (rc == GD_OK) {
        fputs(head, sink.file);
        fputs("<h1>gradb diagnose</h1><p><code>", sink.file);
        out_put_html(sink.file, call->session ? call->session->peer.program : "");
        fputs("</code></p>\n", sink.file);
        cJSON_ArrayForEach(one, findings)
        {
            put_section(sink.file, one);
        }
        fputs("<p>", sink.file);
        fputs(cJSON_GetArraySize(findings) == 0 ? NONE_FOUND : "", sink.file);
        put_template(sink.file, looked, EXAMINED);
        cJSON_ArrayForEach(one, cJSON_GetObjectItem(looked, "failed"))
        {
            fputs("<br>", sink.file);
            put_template(sink.file, one, NOT_EXAMINED);
        }
        if (diagnose_has(looked, "others")) {
            fputs("<br>", sink.file);
            put_template(sink.file, looked, OTHERS);
        }
        fputs("</p></body></html>\n", sink.file);
        rc = newfile_close(&sink, true, err);
    }
    cJSON_Delete(looked);
    return rc;
}
