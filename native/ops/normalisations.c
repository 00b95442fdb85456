/* SPDX-License-Identifier: MIT
 * normalisations.c: layer_norm: rows with mean 0 and variance 1, times a weight, plus a bias.
 *
 * Inputs: x; weight and bias of the shape of x's last axes, or one of them, or none: the number 1 stands for no weight, the
 * number 0 for no bias. Params: n[0] how many last axes are a row, x[0] what is added to the variance. Saved are x, and the mean
 * and the scale of each row, when x or the weight needs a gradient, and the weight when x does; forward adds n[1]: those are
 * saved, n[2]: the weight is as well. Any thread.
 */
#include <string.h>

#include "ops/axes.h"

enum { ROW_AXES, HAS_ROWS, HAS_WEIGHT, PARAMS };
enum { X, WEIGHT, BIAS };

/* Arguments of the loops over rows; NULL: there is none. */
typedef struct {
    int64_t rows, length;
    const void *weight, *bias;
    void *means, *scales;
    double eps;
} norm_row_set;

#define OPS_BOTH "ops/row_loops.h"
#include "ops/both_dtypes.h"
#define OPS_BOTH "ops/normalisation_loops.h"
#include "ops/both_dtypes.h"

static norm_row_set rows_of(const tlm_tensor *x, int row_axes)
{
    norm_row_set set = {.rows = 1, .length = 1};
    for (int i = 0; i < x->axes; i++)
        *(i < x->axes - row_axes ? &set.rows : &set.length) *= x->shape[i];
    return set;
}

/* ---- forward ---- */

/* One number means that there is no such input: 1 for the weight, 0 for the bias (check_shape). */
static bool is_there(const ops_call *call, uint32_t input)
{
    return call->inputs > input && call->in[input].object;
}

static tlm_status check_shape(ops_call *call, uint32_t input, int row_axes)
{
    const tlm_tensor *x = &call->in[X], *other = &call->in[input];
    const char *name = input == WEIGHT ? "weight" : "bias";
    if (!other->object && ops_number_of(other) == (input == WEIGHT))
        return TLM_OK;
    bool same = other->object && other->axes == row_axes;
    for (int i = 0; same && i < row_axes; i++)
        same = other->shape[i] == x->shape[x->axes - row_axes + i];
    if (same)
        return TLM_OK;
    tlm_tensor row = {.axes = (uint8_t)row_axes};
    memcpy(row.shape, x->shape + x->axes - row_axes, (size_t)row_axes * sizeof *row.shape);
    char first[160], second[160];
    return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE,
                    "the %s of layer_norm has shape %.64s, but a row of x has %.64s; they must be the same", name,
                    ops_shape_text(other, first), ops_shape_text(&row, second));
}

/* Dense weight and bias; what was copied for that is in `made`. */
static tlm_status take_factors(ops_call *call, norm_row_set *set, tlm_tensor made[static 2])
{
    const void **places[] = {&set->weight, &set->bias};
    for (uint32_t i = WEIGHT; i <= BIAS; i++) {
        if (!is_there(call, i) || set->length == 0)
            continue;
        tlm_tensor dense;
        tlm_status status = ops_made_dense(&call->in[i], &dense, &made[i - WEIGHT]);
        if (status != TLM_OK)
            return status;
        *places[i - WEIGHT] = ops_data(&dense);
        if (!*places[i - WEIGHT])
            return TLM_FREED;
    }
    return TLM_OK;
}

static tlm_status normalise(ops_call *call, norm_row_set *set)
{
    const tlm_tensor *x = &call->in[X];
    bool dense = ops_is_dense(x);
    if (set->rows == 0 || set->length == 0)
        return TLM_OK;
    tlm_status status = dense ? TLM_OK : ops_copy(x, &call->out);
    const void *from = ops_data(dense ? x : &call->out);
    void *to = ops_data(&call->out);
    if (status != TLM_OK)
        return status;
    if (!from || !to)
        return TLM_FREED;
    OPS_BY_DTYPE(x->dtype, norm_rows, set, from, to);
    return TLM_OK;
}

/* Memory for mean and scale of each row: saved when the call succeeds. */
static tlm_status new_statistics(const ops_call *call, int row_axes, norm_row_set *set, tlm_tensor made[static 2])
{
    const tlm_tensor *x = &call->in[X];
    for (int i = 0; i < 2; i++) {
        tlm_status status = ops_new(x->device, x->dtype, x->axes - row_axes, x->shape, &made[i]);
        if (status != TLM_OK) {
            made[i].object = 0;
            return status;
        }
    }
    set->means = set->rows ? ops_data(&made[0]) : NULL;
    set->scales = set->rows ? ops_data(&made[1]) : NULL;
    return TLM_OK;
}

static void drop_some(tlm_tensor *made, int count)
{
    for (int i = 0; i < count; i++)
        if (made[i].object)
            ops_drop(&made[i]);
}

static void save(ops_call *call, bool statistics, const tlm_tensor made[static 2])
{
    bool weight = statistics && ops_needs(call, X) && is_there(call, WEIGHT);
    call->params.n[HAS_ROWS] = statistics;
    call->params.n[HAS_WEIGHT] = weight;
    call->params.count = PARAMS;
    if (statistics) {
        ops_save_input(call, X);
        ops_save_made(call, &made[0]);
        ops_save_made(call, &made[1]);
    }
    if (weight)
        ops_save_input(call, WEIGHT);
}

static tlm_status norm_into(ops_call *call, int row_axes, tlm_tensor copies[static 2], tlm_tensor statistics[static 2])
{
    norm_row_set set = rows_of(&call->in[X], row_axes);
    set.eps = call->params.x[0];
    bool needed = ops_needs(call, X) || (call->inputs > WEIGHT && ops_needs(call, WEIGHT));
    tlm_status status = take_factors(call, &set, copies);
    if (status == TLM_OK && needed)
        status = new_statistics(call, row_axes, &set, statistics);
    if (status == TLM_OK)
        status = ops_new_like(&call->in[X], &call->out);
    if (status != TLM_OK)
        return status;
    status = normalise(call, &set);
    if (status != TLM_OK)
        ops_drop(&call->out);
    else if (call->records)
        save(call, needed, statistics);
    return status;
}

static tlm_status layer_norm_forward(ops_call *call)
{
    const tlm_tensor *x = &call->in[X];
    int row_axes = (int)call->params.n[ROW_AXES];
    if (!ops_common_dtype(call) || row_axes < 0 || row_axes > x->axes)
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = TLM_OK;
    for (uint32_t i = WEIGHT; status == TLM_OK && i < call->inputs; i++)
        status = check_shape(call, i, row_axes);
    if (status != TLM_OK)
        return status;
    tlm_tensor copies[2] = {{0}}, statistics[2] = {{0}};
    status = norm_into(call, row_axes, copies, statistics);
    drop_some(copies, 2);
    if (status != TLM_OK)
        drop_some(statistics, 2);
    return status;
}

/* ---- backward ---- */

/* What a rule reads; the gradient lies row by row. */
typedef struct {
    tlm_pass *pass;
    norm_row_set set;
    int row_axes;
    tlm_tensor gradient, x, weight;
    tlm_tensor made[3]; /* copies of these, where they had to be made */
} norm_pass;

static tlm_status read_pass(norm_pass *norm)
{
    const ops_params *params = tlm_pass_params(norm->pass);
    const tlm_tensor *gradient = tlm_pass_grad(norm->pass);
    norm->row_axes = (int)params->n[ROW_AXES];
    norm->set = rows_of(gradient, norm->row_axes);
    bool any = norm->set.rows && norm->set.length;
    tlm_status status = ops_made_dense(gradient, &norm->gradient, &norm->made[0]);
    if (status == TLM_OK && params->n[HAS_ROWS])
        status = ops_made_dense(tlm_pass_saved(norm->pass, 0), &norm->x, &norm->made[1]);
    if (status == TLM_OK && params->n[HAS_WEIGHT])
        status = ops_made_dense(tlm_pass_saved(norm->pass, 3), &norm->weight, &norm->made[2]);
    if (status != TLM_OK || !any)
        return status;
    norm->set.weight = params->n[HAS_WEIGHT] ? ops_data(&norm->weight) : NULL;
    norm->set.means = params->n[HAS_ROWS] ? ops_data(tlm_pass_saved(norm->pass, 1)) : NULL;
    norm->set.scales = params->n[HAS_ROWS] ? ops_data(tlm_pass_saved(norm->pass, 2)) : NULL;
    bool found = (!params->n[HAS_WEIGHT] || norm->set.weight) && ops_data(&norm->gradient);
    if (params->n[HAS_ROWS])
        found = found && norm->set.means && norm->set.scales && ops_data(&norm->x);
    return found ? TLM_OK : TLM_FREED;
}

/* Of the weight or the bias: sums over the rows. */
static tlm_status give_sums(norm_pass *norm, uint32_t input)
{
    const tlm_tensor *gradient = &norm->gradient;
    tlm_tensor sums;
    tlm_status status = ops_zeros(gradient->device, gradient->dtype, norm->row_axes,
                                  gradient->shape + gradient->axes - norm->row_axes, &sums);
    if (status != TLM_OK)
        return status;
    if (norm->set.rows == 0 || norm->set.length == 0)
        return tlm_pass_give(norm->pass, input, &sums);
    const void *from = ops_data(gradient);
    if (input == WEIGHT)
        OPS_BY_DTYPE(sums.dtype, weight_gradient, &norm->set, from, ops_data(&norm->x), ops_data(&sums));
    else
        OPS_BY_DTYPE(sums.dtype, bias_gradient, &norm->set, from, ops_data(&sums));
    return tlm_pass_give(norm->pass, input, &sums);
}

/* Writes over the gradient, so it is the last: over a copy that was made for this rule, over the pass's own when nobody else
 * needs that, or over a fresh copy. */
static tlm_status give_x(norm_pass *norm)
{
    tlm_tensor out = norm->made[0];
    bool shared = false;
    tlm_status status = out.object ? TLM_OK : ops_grad_copied(norm->pass, &out, &shared);
    norm->made[0].object = 0;
    if (status != TLM_OK)
        return status;
    if (norm->set.rows && norm->set.length)
        OPS_BY_DTYPE(out.dtype, x_gradient, &norm->set, ops_data(&norm->x), ops_data(&out));
    return ops_give_made(norm->pass, X, &out, shared);
}

static tlm_status layer_norm_backward(tlm_pass *pass)
{
    norm_pass norm = {.pass = pass};
    tlm_status status = read_pass(&norm);
    for (uint32_t i = WEIGHT; status == TLM_OK && i < tlm_pass_inputs(pass); i++)
        if (tlm_pass_wants(pass, i))
            status = give_sums(&norm, i);
    if (status == TLM_OK && tlm_pass_wants(pass, X))
        status = give_x(&norm);
    drop_some(norm.made, 3);
    return status;
}

static const ops_row rows[] = {
    {"layer_norm", "x, mean, scale, weight", 1, 3, true, layer_norm_forward, layer_norm_backward, .kind = OPS_OTHER,
     .writing = OPS_WRITES_FRESH},
};
const ops_family ops_normalisations = {rows, sizeof rows / sizeof *rows};
