// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/ms/ms_message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug_grpc.pb-c.h"
#include "mindspore/ms_value.h"
#include "mindspore/pbread.h"
#include "proto/envelope.h"

/* ---- reading ------------------------------------------------------------------------------- */

static void copy_text(char *out, size_t size, const struct gd_pb_field *field)
{
    size_t len = field->len < size ? field->len : size - 1;
    if (len) {
        memcpy(out, field->data, len);
    }
    out[len] = '\0';
}

static bool is_field(const struct gd_pb_field *field, uint32_t number, enum gd_pb_wire wire)
{
    return field->number == number && field->wire == wire;
}

bool gd_ms_read_metadata(const uint8_t *data, size_t len, struct gd_ms_metadata *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    while (gd_pb_next(&reader, &field)) {
        if (is_field(&field, 1, GD_PB_BYTES)) {
            copy_text(ret->device_name, sizeof(ret->device_name), &field);
        } else if (is_field(&field, 2, GD_PB_VARINT)) {
            ret->cur_step = (int32_t)field.value;
        } else if (is_field(&field, 3, GD_PB_BYTES)) {
            copy_text(ret->backend, sizeof(ret->backend), &field);
        } else if (is_field(&field, 4, GD_PB_BYTES)) {
            copy_text(ret->cur_node, sizeof(ret->cur_node), &field);
        } else if (is_field(&field, 5, GD_PB_VARINT)) {
            ret->training_done = field.value != 0;
        } else if (is_field(&field, 6, GD_PB_VARINT)) {
            ret->graph_num = (int32_t)field.value;
        } else if (is_field(&field, 7, GD_PB_BYTES)) {
            copy_text(ret->ms_version, sizeof(ret->ms_version), &field);
        }
    }
    return !reader.bad;
}

bool gd_ms_read_heartbeat(const uint8_t *data, size_t len, struct gd_ms_heartbeat *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    while (gd_pb_next(&reader, &field)) {
        if (is_field(&field, 1, GD_PB_BYTES)) {
            copy_text(ret->message, sizeof(ret->message), &field);
        } else if (is_field(&field, 2, GD_PB_VARINT)) {
            ret->period = (int32_t)field.value;
        }
    }
    return !reader.bad;
}

bool gd_ms_read_base(const uint8_t *data, size_t len, struct gd_ms_base *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    int rank = 0;
    while (gd_pb_next(&reader, &field)) {
        int64_t dim;
        if (is_field(&field, 1, GD_PB_VARINT)) {
            ret->wire_dtype = (int32_t)field.value;
            ret->dtype = gd_ms_dtype(ret->wire_dtype);
        } else if (field.number == 2) {
            for (size_t at = 0; gd_pb_integers(&reader, &field, &at, &dim);) {
                if (rank < GD_MAX_RANK) {
                    ret->shape.dim[rank] = dim;
                }
                if (rank <= GD_MAX_RANK) {
                    rank++;
                }
            }
        } else if (is_field(&field, 3, GD_PB_VARINT)) {
            ret->bytes = (int64_t)field.value;
        }
    }
    ret->shape.rank = rank > GD_MAX_RANK ? GD_MAX_RANK : rank;
    return !reader.bad && rank <= GD_MAX_RANK && ret->bytes >= 0;
}

static bool read_statistics(const uint8_t *data, size_t len, struct gd_ms_summary *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_next(&reader, &field)) {
        switch (field.number) {
        case 2: ret->max = gd_pb_float(&field); break;
        case 3: ret->min = gd_pb_float(&field); break;
        case 4: ret->avg = gd_pb_float(&field); break;
        case 5: ret->count = field.value; break;
        case 6: ret->negative = field.value; break;
        case 7: ret->positive = field.value; break;
        case 8: ret->nan = field.value; break;
        case 9: ret->neg_inf = field.value; break;
        case 10: ret->pos_inf = field.value; break;
        case 11: ret->zero = field.value; break;
        default: break;
        }
    }
    return !reader.bad;
}

bool gd_ms_read_summary(const uint8_t *data, size_t len, struct gd_ms_summary *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    while (gd_pb_next(&reader, &field)) {
        if (is_field(&field, 1, GD_PB_BYTES) &&
            !gd_ms_read_base(field.data, field.len, &ret->base)) {
            return false;
        }
        if (is_field(&field, 2, GD_PB_BYTES) && !read_statistics(field.data, field.len, ret)) {
            return false;
        }
    }
    return !reader.bad;
}

static bool read_param(const uint8_t *data, size_t len, struct gd_hit_param *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    while (gd_pb_next(&reader, &field)) {
        if (is_field(&field, 1, GD_PB_BYTES)) {
            copy_text(ret->name, sizeof(ret->name), &field);
        } else if (is_field(&field, 2, GD_PB_VARINT)) {
            ret->disabled = field.value != 0;
        } else if (is_field(&field, 3, GD_PB_FIXED64)) {
            ret->set_value = gd_pb_double(&field);
        } else if (is_field(&field, 4, GD_PB_VARINT)) {
            ret->hit = field.value != 0;
        } else if (is_field(&field, 5, GD_PB_FIXED64)) {
            ret->actual_value = gd_pb_double(&field);
        }
    }
    return !reader.bad;
}

static bool read_condition(const uint8_t *data, size_t len, struct gd_ms_hit *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_next(&reader, &field)) {
        if (is_field(&field, 1, GD_PB_VARINT)) {
            ret->condition = (int)(int32_t)field.value;
        } else if (is_field(&field, 4, GD_PB_BYTES) && ret->param_count < GD_MAX_HIT_PARAMS) {
            if (!read_param(field.data, field.len, &ret->param[ret->param_count++])) {
                return false;
            }
        }
    }
    return !reader.bad;
}

static bool read_hit_tensor(const uint8_t *data, size_t len, struct gd_ms_hit *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_next(&reader, &field)) {
        if (is_field(&field, 1, GD_PB_BYTES)) {
            copy_text(ret->node_name, sizeof(ret->node_name), &field);
        } else if (is_field(&field, 2, GD_PB_BYTES)) {
            copy_text(ret->slot, sizeof(ret->slot), &field);
        }
    }
    return !reader.bad;
}

bool gd_ms_read_hit(const uint8_t *data, size_t len, struct gd_ms_hit *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    while (gd_pb_next(&reader, &field)) {
        bool good = true;
        if (is_field(&field, 1, GD_PB_BYTES)) {
            good = read_hit_tensor(field.data, field.len, ret);
        } else if (is_field(&field, 2, GD_PB_BYTES)) {
            good = read_condition(field.data, field.len, ret);
        } else if (is_field(&field, 3, GD_PB_VARINT)) {
            ret->id = (int32_t)field.value;
        } else if (is_field(&field, 4, GD_PB_VARINT)) {
            ret->error_code = (int32_t)field.value;
        }
        if (!good) {
            return false;
        }
    }
    return !reader.bad;
}

bool gd_ms_read_chunk(const uint8_t *data, size_t len, const uint8_t **piece, size_t *piece_len,
                      bool *finished)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    *piece = NULL;
    *piece_len = 0;
    *finished = false;
    while (gd_pb_next(&reader, &field)) {
        if (is_field(&field, 1, GD_PB_BYTES)) {
            *piece = field.data;
            *piece_len = field.len;
        } else if (is_field(&field, 2, GD_PB_VARINT)) {
            *finished = field.value != 0;
        }
    }
    return !reader.bad;
}

/* ---- writing ------------------------------------------------------------------------------- */

static int pack_message(struct gd_buf *out, const Debugger__EventReply *reply)
{
    size_t len = debugger__event_reply__get_packed_size(reply);
    int rc = gd_buf_reserve(out, len);
    if (rc != GD_OK) {
        return rc;
    }
    debugger__event_reply__pack(reply, (uint8_t *)out->data + out->len);
    out->len += len;
    out->data[out->len] = '\0';
    return GD_OK;
}

int gd_ms_write_version_matched(struct gd_buf *out, bool matched)
{
    Debugger__EventReply reply = DEBUGGER__EVENT_REPLY__INIT;
    reply.cmd_case = DEBUGGER__EVENT_REPLY__CMD_VERSION_MATCHED;
    reply.version_matched = matched;
    return pack_message(out, &reply);
}

int gd_ms_write_exit(struct gd_buf *out)
{
    Debugger__EventReply reply = DEBUGGER__EVENT_REPLY__INIT;
    reply.cmd_case = DEBUGGER__EVENT_REPLY__CMD_EXIT;
    reply.exit = 1;
    return pack_message(out, &reply);
}

static int write_run(struct gd_buf *out, const char *level, const char *node_name, int32_t steps)
{
    Debugger__EventReply reply = DEBUGGER__EVENT_REPLY__INIT;
    Debugger__RunCMD run = DEBUGGER__RUN_CMD__INIT;
    run.run_level = gd_envelope_text(level);
    if (node_name) {
        run.cmd_case = DEBUGGER__RUN_CMD__CMD_NODE_NAME;
        run.node_name = gd_envelope_text(node_name);
    } else if (steps) {
        run.cmd_case = DEBUGGER__RUN_CMD__CMD_RUN_STEPS;
        run.run_steps = steps;
    }
    reply.cmd_case = DEBUGGER__EVENT_REPLY__CMD_RUN_CMD;
    reply.run_cmd = &run;
    return pack_message(out, &reply);
}

int gd_ms_write_step(struct gd_buf *out)
{
    return write_run(out, "step", NULL, 1);
}

int gd_ms_write_recheck(struct gd_buf *out)
{
    return write_run(out, "recheck", NULL, 0);
}

int gd_ms_write_node(struct gd_buf *out, const char *name)
{
    return write_run(out, "node", name, 0);
}

struct view_tensor { /* one item in the encoder's form */
    Debugger__TensorProto message;
    char slot[16];
};

static void fill_view_tensor(struct view_tensor *tensor, const struct gd_ms_view_item *item)
{
    debugger__tensor_proto__init(&tensor->message);
    snprintf(tensor->slot, sizeof(tensor->slot), "%" PRIu32, item->slot);
    tensor->message.node_name = gd_envelope_text(item->name);
    tensor->message.slot = tensor->slot;
    tensor->message.iter = gd_envelope_text(item->previous ? "prev" : "");
    tensor->message.has_truncate = 1;
    tensor->message.truncate = item->truncate;
}

int gd_ms_write_views(struct gd_buf *out, const struct gd_ms_view_item *items, size_t count,
                      enum gd_ms_level level)
{
    Debugger__EventReply reply = DEBUGGER__EVENT_REPLY__INIT;
    Debugger__ViewCMD view = DEBUGGER__VIEW_CMD__INIT;
    struct view_tensor *tensors = calloc(count, sizeof(*tensors));
    Debugger__TensorProto **pointers = calloc(count, sizeof(*pointers));
    int rc = GD_ENOMEM;
    if (tensors && pointers) {
        for (size_t i = 0; i < count; i++) {
            fill_view_tensor(&tensors[i], &items[i]);
            pointers[i] = &tensors[i].message;
        }
        view.n_tensors = count;
        view.tensors = pointers;
        view.level = (Debugger__ViewCMD__Level)level;
        reply.cmd_case = DEBUGGER__EVENT_REPLY__CMD_VIEW_CMD;
        reply.view_cmd = &view;
        rc = pack_message(out, &reply);
    }
    free(tensors);
    free(pointers);
    return rc;
}

int gd_ms_write_delete(struct gd_buf *out, int32_t id)
{
    Debugger__EventReply reply = DEBUGGER__EVENT_REPLY__INIT;
    Debugger__SetCMD set = DEBUGGER__SET_CMD__INIT;
    set.delete_ = 1;
    set.id = id;
    reply.cmd_case = DEBUGGER__EVENT_REPLY__CMD_SET_CMD;
    reply.set_cmd = &set;
    return pack_message(out, &reply);
}

struct set_message { /* everything that a SetCMD points to, in two allocations */
    Debugger__WatchCondition__Parameter *params;
    Debugger__WatchCondition__Parameter **param_list;
    Debugger__WatchNode *nodes;
    Debugger__WatchNode **node_list;
};

static void free_set(struct set_message *message)
{
    free(message->params);
    free(message->param_list);
    free(message->nodes);
    free(message->node_list);
}

static bool fill_set(struct set_message *message, const struct gd_remote_param *params,
                     size_t param_count, const struct gd_ms_watch_node *nodes, size_t node_count)
{
    message->params = calloc(param_count + 1, sizeof(*message->params));
    message->param_list = calloc(param_count + 1, sizeof(*message->param_list));
    message->nodes = calloc(node_count + 1, sizeof(*message->nodes));
    message->node_list = calloc(node_count + 1, sizeof(*message->node_list));
    if (!message->params || !message->param_list || !message->nodes || !message->node_list) {
        return false;
    }
    for (size_t i = 0; i < param_count; i++) {
        Debugger__WatchCondition__Parameter *param = &message->params[i];
        debugger__watch_condition__parameter__init(param);
        param->name = gd_envelope_text(params[i].name);
        param->disabled = params[i].disabled;
        param->value = params[i].disabled ? 0 : params[i].value;
        message->param_list[i] = param;
    }
    for (size_t i = 0; i < node_count; i++) {
        debugger__watch_node__init(&message->nodes[i]);
        message->nodes[i].node_name = gd_envelope_text(nodes[i].name);
        message->nodes[i].node_type = gd_envelope_text(nodes[i].type);
        message->node_list[i] = &message->nodes[i];
    }
    return true;
}

int gd_ms_write_set(struct gd_buf *out, int32_t id, int condition,
                    const struct gd_remote_param *params, size_t param_count,
                    const struct gd_ms_watch_node *nodes, size_t node_count)
{
    struct set_message message = {0};
    int rc = GD_ENOMEM;
    if (fill_set(&message, params, param_count, nodes, node_count)) {
        Debugger__EventReply reply = DEBUGGER__EVENT_REPLY__INIT;
        Debugger__SetCMD set = DEBUGGER__SET_CMD__INIT;
        Debugger__WatchCondition watch = DEBUGGER__WATCH_CONDITION__INIT;
        watch.condition = (Debugger__WatchCondition__Condition)condition;
        watch.n_params = param_count;
        watch.params = message.param_list;
        for (size_t i = 0; i < param_count; i++) {
            if (!params[i].disabled) {
                watch.value = (float)params[i].value;
            }
        }
        set.id = id;
        set.watch_condition = &watch;
        set.n_watch_nodes = node_count;
        set.watch_nodes = message.node_list;
        reply.cmd_case = DEBUGGER__EVENT_REPLY__CMD_SET_CMD;
        reply.set_cmd = &set;
        rc = pack_message(out, &reply);
    }
    free_set(&message);
    return rc;
}
