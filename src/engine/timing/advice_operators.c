// SPDX-License-Identifier: GPL-3.0-or-later
/* Advice about operators. */
#include <stdio.h>
#include <string.h>

#include "engine/timing/advice_impl.h"
#include "engine/timing/cost.h"

#define ODD_SHARE     0.10 /* of the operators' time */
#define ODD_SHARE_CPU 0.30
#define SMALLEST      5 /* of a size that is worth padding: below are colours and flags */
#define DTYPE_RATIO   1.5
#define DTYPE_SHARE   0.05
#define DTYPE_CALLS   3
#define CAST_SHARE    0.10
#define CASTS_OF_STEP 10

static const char *place_of(const struct gd_time_operator *op)
{
    return op->place;
}

static double per_step(const struct advice_input *in, double number)
{
    return in->report->timed_steps > 0 ? number / (double)in->report->timed_steps : number;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The sizes that the units of an accelerator tile: rows and columns of both matrices, or channels.
 */
static int sizes_of(const struct gd_time_operator *op, int64_t size[3])
{
    bool is_conv = gd_time_kind_of(op->type) == GD_KIND_CONV;
    int first = op->in_count > 2 && !is_conv && op->in[0].rank == 1;
    if (op->in_count < first + 2) {
        return 0;
    }
    const struct gd_time_tensor *a = &op->in[first], *b = &op->in[first + 1];
    if (is_conv) {
        if (b->rank < 3) {
            return 0;
        }
        size[0] = b->dim[0];
        size[1] = b->dim[1];
        return 2;
    }
    if (a->rank < 1 || b->rank < 1 || op->out.rank < 1) {
        return 0;
    }
    size[0] = a->dim[a->rank - 1];
    size[1] = op->out.dim[op->out.rank - 1];
    size[2] = 1;
    for (int i = 0; i < op->out.rank - 1; i++) {
        size[2] *= op->out.dim[i];
    }
    return 3;
}

static int64_t tile_of(const struct advice_input *in)
{
    bool cuda = strncmp(in->report->facts.device, "cuda", 4) == 0;
    return cuda || (in->is_cpu && strstr(in->report->facts.framework, "PyTorch")) ? 8 : 16;
}

/* Bits: which of its sizes are not multiples. */
static unsigned odd_sizes(const struct gd_time_operator *op, int64_t tile, int64_t size[3])
{
    int count = sizes_of(op, size);
    unsigned odd = 0;
    for (int i = 0; i < count; i++) {
        odd |= size[i] >= SMALLEST && size[i] % tile != 0 ? 1u << i : 0;
    }
    return odd;
}

static void say_sizes(unsigned odd, const int64_t size[3], int64_t tile, char *now, char *then,
                      size_t room)
{
    size_t used = 0, used_then = 0;
    now[0] = then[0] = '\0';
    for (int i = 0; i < 3; i++) {
        if ((odd >> i & 1) && used + 24 < room && used_then + 24 < room) {
            long long up = (long long)((size[i] + tile - 1) / tile * tile);
            used += (size_t)snprintf(now + used, room - used, "%s%lld", used ? ", " : "",
                                     (long long)size[i]);
            used_then += (size_t)snprintf(then + used_then, room - used_then, "%s%lld",
                                          used_then ? ", " : "", up);
        }
    }
}

bool advice_on_shapes(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_report *report = in->report;
    const struct gd_time_operator *most = NULL;
    int64_t tile = tile_of(in), size[3];
    double seconds = 0;
    uint32_t operators = 0;
    for (uint32_t i = 0; i < report->op_count; i++) {
        const struct gd_time_operator *op = &report->op[i];
        enum gd_time_kind kind = gd_time_kind_of(op->type);
        if ((kind == GD_KIND_MATMUL || kind == GD_KIND_CONV) && odd_sizes(op, tile, size)) {
            seconds += op->seconds;
            operators++;
            most = !most || op->seconds > most->seconds ? op : most;
        }
    }
    if (!most || seconds < (in->is_cpu ? ODD_SHARE_CPU : ODD_SHARE) * in->operators) {
        return false;
    }
    char shape[200], now[80], then[80];
    say_sizes(odd_sizes(most, tile, size), size, tile, now, then, sizeof(now));
    return advice_say(
        ret, seconds / in->operators, place_of(most),
        "%u matrix products and convolutions with sizes that are not multiples of %lld take %.0f "
        "%% "
        "of the operators' time; the longest is %s %s: pad %s to %s; accelerators compute in such "
        "tiles%s",
        operators, (long long)tile, 100 * seconds / in->operators, most->type,
        gd_time_shape_text(most, shape, sizeof(shape)), now, then,
        in->is_cpu ? " (this run is on a CPU, whose loss by it was not measured)" : "");
}

/* ---- types of numbers ------------------------------------------------------------------------ */

static bool same_dims(const struct gd_time_tensor *a, const struct gd_time_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof(a->dim)) == 0;
}

/* The same computation, with other numbers. */
static bool is_counterpart(const struct gd_time_operator *a, const struct gd_time_operator *b)
{
    if (a->type != b->type || a->in_count != b->in_count || a->lane != b->lane ||
        a->in_count == 0 || a->in[0].dtype == b->in[0].dtype || a->calls < DTYPE_CALLS ||
        b->calls < DTYPE_CALLS || !gd_dtype_is_float(a->in[0].dtype) ||
        !gd_dtype_is_float(b->in[0].dtype)) {
        return false;
    }
    for (int i = 0; i < a->in_count; i++) {
        if (!same_dims(&a->in[i], &b->in[i])) {
            return false;
        }
    }
    return true;
}

static double each_call(const struct gd_time_operator *op)
{
    return op->seconds / (double)op->calls;
}

bool advice_on_dtypes(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_report *report = in->report;
    const struct gd_time_operator *slow = NULL, *fast = NULL;
    char shape[200], a[32], b[32];
    for (uint32_t i = 0; i < report->op_count; i++) {
        const struct gd_time_operator *op = &report->op[i];
        enum gd_time_kind kind = gd_time_kind_of(op->type);
        if (kind == GD_KIND_CAST || op->seconds < DTYPE_SHARE * in->operators ||
            (slow && slow->seconds >= op->seconds)) {
            continue;
        }
        for (uint32_t j = 0; j < report->op_count; j++) {
            const struct gd_time_operator *other = &report->op[j];
            if (is_counterpart(op, other) && each_call(op) > DTYPE_RATIO * each_call(other)) {
                slow = op;
                fast = other;
                break;
            }
        }
    }
    if (!slow) {
        return false;
    }
    return advice_say(
        ret, slow->seconds / in->operators, place_of(slow),
        "%s %s takes %s in %s and %s in %s (%llu and %llu calls): compute it in %s, if "
        "the precision allows",
        slow->type, gd_time_shape_text(slow, shape, sizeof(shape)), advice_time(each_call(slow), a),
        gd_dtype_name(slow->in[0].dtype), advice_time(each_call(fast), b),
        gd_dtype_name(fast->in[0].dtype), (unsigned long long)slow->calls,
        (unsigned long long)fast->calls, gd_dtype_name(fast->in[0].dtype));
}

/* ---- casts and copies ------------------------------------------------------------------------ */

/* A cast to the type that the tensor has, or a copy in the order that it has, costs nothing. */
static bool changes_tensor(const struct gd_time_operator *op, enum gd_time_kind kind)
{
    return kind == GD_KIND_LAYOUT ||
           (kind == GD_KIND_CAST &&
            (op->in_count == 0 || op->in[0].dtype == GD_DT_NONE || op->out.dtype == GD_DT_NONE ||
             op->in[0].dtype != op->out.dtype));
}

bool advice_on_casts(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_report *report = in->report;
    const struct gd_time_operator *most = NULL;
    double casts = 0, layouts = 0, seconds = 0;
    char shape[200], spent[32];
    for (uint32_t i = 0; i < report->op_count; i++) {
        const struct gd_time_operator *op = &report->op[i];
        enum gd_time_kind kind = gd_time_kind_of(op->type);
        if (!changes_tensor(op, kind)) {
            continue;
        }
        *(kind == GD_KIND_CAST ? &casts : &layouts) += (double)op->calls;
        seconds += op->seconds;
        bool better = !most || (op->place[0] && !most->place[0]) ||
                      (op->seconds > most->seconds && (op->place[0] || !most->place[0]));
        most = better ? op : most;
    }
    if (!most || per_step(in, casts + layouts) < CASTS_OF_STEP ||
        seconds < CAST_SHARE * in->operators) {
        return false;
    }
    return advice_say(ret, seconds / in->operators, place_of(most),
                      "%.0f casts and %.0f layout changes per step take %s (%.0f %% of the "
                      "operators' time); the longest is %s %s to %s: keep the tensors in one type "
                      "and order",
                      per_step(in, casts), per_step(in, layouts),
                      advice_time(per_step(in, seconds), spent), 100 * seconds / in->operators,
                      most->type, gd_time_shape_text(most, shape, sizeof(shape)),
                      gd_dtype_name(most->out.dtype));
}
