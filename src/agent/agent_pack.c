// SPDX-License-Identifier: MIT
/*
 * Encodes an examined value as gradb.v1's TensorStats. A record has one for every watched value of
 * a step: going through protobuf-c's field descriptors, once for the size and once for the bytes,
 * would cost several times as much as examining a small tensor.
 */
#include <string.h>

#include "agent/agent_varint.h"
#include "agent/agent_watch.h"

#define VARINT     AGENT_VARINT_MOST
#define STATS_MOST ((9 + 2 + 1 + GD_MAX_RANGES) * (2 + VARINT) + 6 * (1 + 8))
#define HEAD_MOST  (1 + VARINT)
#define VALUE_MOST ((7 + GD_MAX_RANK) * (1 + VARINT) + STATS_MOST)

enum { AS_VARINT = 0, AS_DOUBLE = 1, AS_BYTES = 2 };

static unsigned char *put_tag(unsigned char *at, unsigned field, unsigned as)
{
    return agent_put_varint(at, field << 3 | as);
}

/* proto3 omits zeros. */
static unsigned char *put_number(unsigned char *at, unsigned field, uint64_t value)
{
    return value ? agent_put_varint(put_tag(at, field, AS_VARINT), value) : at;
}

static unsigned char *put_double(unsigned char *at, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if (bits << 1 == 0) {
        return at;
    }
    at = put_tag(at, field, AS_DOUBLE);
    for (int i = 0; i < 8; i++) { /* compiles to a single store on little-endian machines */
        *at++ = (unsigned char)(bits >> 8 * i);
    }
    return at;
}

static unsigned char *put_bytes(unsigned char *at, unsigned field, const unsigned char *bytes,
                                size_t len)
{
    at = agent_put_varint(put_tag(at, field, AS_BYTES), len);
    memcpy(at, bytes, len);
    return at + len;
}

/* A packed repeated field; nothing if it is empty. */
static unsigned char *put_numbers(unsigned char *at, unsigned field, const uint64_t *values,
                                  size_t count)
{
    unsigned char bytes[GD_MAX_RANK * VARINT], *end = bytes;
    for (size_t i = 0; i < count; i++) {
        end = agent_put_varint(end, values[i]);
    }
    return count ? put_bytes(at, field, bytes, (size_t)(end - bytes)) : at;
}

static size_t pack_stats(const struct gd_stats *s, unsigned char bytes[STATS_MOST])
{
    unsigned char *at = bytes;
    at = put_number(at, 1, s->count);
    at = put_number(at, 2, s->nan);
    at = put_number(at, 3, s->pos_inf);
    at = put_number(at, 4, s->neg_inf);
    at = put_number(at, 5, s->zero);
    at = put_number(at, 6, s->neg_zero);
    at = put_number(at, 7, s->positive);
    at = put_number(at, 8, s->negative);
    at = put_number(at, 9, s->denormal);
    at = put_double(at, 10, s->min);
    at = put_double(at, 11, s->max);
    at = put_double(at, 12, s->mean);
    at = put_double(at, 13, s->abs_mean);
    at = put_double(at, 14, s->sum_sq);
    at = put_double(at, 15, s->std);
    at = put_numbers(at, 16, s->in_range, (size_t)s->range_count);
    at = put_number(at, 19, s->units);
    at = put_number(at, 20, s->dead_units);
    return (size_t)(at - bytes);
}

bool agent_pack_is_for(const struct agent_watch_item *item, const struct agent_look *look)
{
    const Gradb__V1__StatsOptions *options = item->message->options;
    return look->code == -1 && look->located && !look->stats.has_prev &&
           !(options && options->histogram) && !item->message->scalar[0];
}

bool agent_pack_value(struct gd_buf *to, const struct agent_watch_item *item,
                      const struct agent_look *look)
{
    const struct gd_tensor *tensor = &look->value.tensor;
    unsigned char stats[STATS_MOST], head[HEAD_MOST], bytes[HEAD_MOST + VALUE_MOST];
    unsigned char *value = bytes + HEAD_MOST, *at = value;
    uint64_t dim[GD_MAX_RANK];
    for (int i = 0; i < tensor->shape.rank; i++) {
        dim[i] = (uint64_t)tensor->shape.dim[i];
    }
    at = put_number(at, 1, item->node);
    at = put_number(at, 2, item->slot);
    at = put_number(at, 3, (uint64_t)tensor->dtype);
    at = put_numbers(at, 4, dim, (size_t)tensor->shape.rank);
    at = put_number(at, 5, (uint64_t)look->value.step);
    at = put_bytes(at, 6, stats, pack_stats(&look->stats, stats));
    at = put_number(at, 9, look->cost_ns);
    size_t len = (size_t)(at - value);
    size_t head_len = (size_t)(agent_put_varint(put_tag(head, 4, AS_BYTES), len) - head);
    memcpy(value - head_len, head, head_len);
    bool ok = gd_buf_add(to, value - head_len, head_len + len) == GD_OK;
    to->failed = false; /* a smaller one may still fit */
    return ok;
}
