/* SPDX-License-Identifier: MIT
 * matmul.c: matmul of vectors, matrices and stacks of matrices, and linear, x @ weight + bias.
 *
 * An input is saved only when the other one needs a gradient. The gradient of one matrix that a whole stack was multiplied
 * with is one product that sums over the stack as well.
 *
 * n[0], n[1]: whether a, b are saved (in this order); then the shapes of a, of b and, of linear, of the bias.
 */
#include <string.h>

#include "ops/ops.h"

/* ---- products of stacks of matrices, by the loop of NumPy's matmul, which calls BLAS ----
 * The loop takes transposed matrices by their strides. What BLAS could not read is copied first, once: NumPy would fall back to
 * a plain loop, or copy for each matrix of the stack. A stack whose rows lie behind each other, times one matrix, is one
 * product of a taller matrix. Keeps nothing; any thread may call.
 */

/* ---- matrices for BLAS ---- */

/* Steps of an axis of one element say nothing: gives them values that BLAS takes when it can take the other axis. */
static void settle_strides(tlm_tensor *matrix)
{
    int64_t item = ops_item_bytes(matrix->dtype), *shape = matrix->shape + matrix->axes - 2;
    int64_t *strides = matrix->strides + matrix->axes - 2;
    if (shape[0] == 1 && shape[1] == 1)
        strides[0] = strides[1] = item;
    else if (shape[0] == 1)
        strides[0] = strides[1] == item ? shape[1] * item : item;
    else if (shape[1] == 1)
        strides[1] = strides[0] == item ? shape[0] * item : item;
}

static bool is_row_major(int64_t columns, int64_t row_step, int64_t column_step, int64_t item)
{
    return column_step == item && row_step >= columns * item && row_step / item <= INT32_MAX && row_step % item == 0;
}

static bool suits_blas(const tlm_tensor *matrix)
{
    int64_t item = ops_item_bytes(matrix->dtype);
    const int64_t *shape = matrix->shape + matrix->axes - 2, *strides = matrix->strides + matrix->axes - 2;
    return matrix->object && (is_row_major(shape[1], strides[0], strides[1], item) ||
                              is_row_major(shape[0], strides[1], strides[0], item));
}

/* Replaces *matrix by a copy when BLAS could not read it; stacks that are repeated stay so. The caller drops *made (object 0
 * when there is no copy). On failure nothing has changed. */
static tlm_status made_suitable(tlm_tensor *matrix, tlm_tensor *made)
{
    *made = (tlm_tensor){0};
    settle_strides(matrix);
    if (suits_blas(matrix))
        return TLM_OK;
    tlm_tensor part = *matrix, fresh;
    for (int i = 0; i < matrix->axes - 2; i++)
        if (matrix->strides[i] == 0)
            part.shape[i] = 1;
    tlm_status status = ops_new_like(&part, &fresh);
    if (status)
        return status;
    if ((status = ops_copy(&part, &fresh))) {
        ops_drop(&fresh);
        return status;
    }
    *made = fresh;
    ops_expand(&fresh, matrix->axes, matrix->shape, matrix);
    settle_strides(matrix);
    return TLM_OK;
}

/* ---- one product ---- */

/* Sees all axes but the last as one. False when strides do not let it; nothing has changed then. */
static bool fold(tlm_tensor *tensor)
{
    int64_t length, step;
    int last = tensor->axes - 1;
    if (!ops_axes_as_one(tensor, 0, last, &length, &step))
        return false;
    tensor->shape[1] = tensor->shape[last];
    tensor->strides[1] = tensor->strides[last];
    tensor->shape[0] = length;
    tensor->strides[0] = step;
    tensor->axes = 2;
    return true;
}

/* Calls the loop for every matrix of a stack; a, b, c have the same axes before the last two. */
static void run(const tlm_tensor *const *matrices, char **data)
{
    const tlm_tensor *a = matrices[0], *c = matrices[2];
    const ops_loop *loop = &ops_matmul_loops[c->dtype == TLM_FLOAT64 ? OPS_FLOAT64 : OPS_FLOAT32];
    int row = c->axes - 2, column = c->axes - 1, stacked = row - 1;
    intptr_t dimensions[] = {stacked < 0 ? 1 : c->shape[stacked], c->shape[row], a->shape[column], c->shape[column]};
    intptr_t strides[9] = {0};
    int64_t at[TLM_MOST_AXES] = {0};
    for (int i = 0; i < 3; i++) {
        strides[i] = stacked < 0 ? 0 : matrices[i]->strides[stacked];
        strides[3 + 2 * i] = matrices[i]->strides[row];
        strides[4 + 2 * i] = matrices[i]->strides[column];
    }
    for (;;) {
        char *arguments[] = {data[0], data[1], data[2]}; /* the loop moves them */
        loop->call(arguments, dimensions, strides, loop->data);
        int axis = stacked - 1;
        for (; axis >= 0; axis--) {
            bool is_inside = ++at[axis] < c->shape[axis];
            for (int i = 0; i < 3; i++)
                data[i] += matrices[i]->strides[axis] * (is_inside ? 1 : 1 - c->shape[axis]);
            if (is_inside)
                break;
            at[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

/* A column times a row has nothing to sum: each element is one product, which the loop over elements does fastest. */
static tlm_status multiply_outer(const tlm_tensor *a, const tlm_tensor *b, const tlm_tensor *c)
{
    tlm_tensor left = *a, right = *b;
    int row = c->axes - 2, column = c->axes - 1;
    left.shape[column] = c->shape[column];
    left.strides[column] = 0;
    right.shape[row] = c->shape[row];
    right.strides[row] = 0;
    return ops_binary(OPS_MULTIPLY, &left, &right, c);
}

static tlm_status multiply_suitable(const tlm_tensor *a, const tlm_tensor *b, const tlm_tensor *c)
{
    char *data[] = {ops_data(a), ops_data(b), ops_data(c)};
    const tlm_tensor *const matrices[] = {a, b, c};
    if (!data[0] || !data[1] || !data[2])
        return TLM_FREED;
    run(matrices, data);
    return TLM_OK;
}

static bool is_one_matrix(const tlm_tensor *tensor)
{
    for (int i = 0; i < tensor->axes - 2; i++)
        if (tensor->shape[i] != 1 && tensor->strides[i] != 0)
            return false;
    return true;
}

static tlm_status multiply_filled(tlm_tensor a, tlm_tensor b, tlm_tensor c)
{
    tlm_tensor folded = a, copied_a, copied_b;
    if (c.axes > 2 && is_one_matrix(&b) && fold(&folded)) {
        a = folded;
        fold(&c);
        memmove(b.shape, b.shape + b.axes - 2, 2 * sizeof *b.shape);
        memmove(b.strides, b.strides + b.axes - 2, 2 * sizeof *b.strides);
        b.axes = 2;
    }
    if (a.shape[a.axes - 1] == 1)
        return multiply_outer(&a, &b, &c);
    tlm_status status = made_suitable(&a, &copied_a);
    if (status)
        return status;
    status = made_suitable(&b, &copied_b);
    if (!status)
        status = multiply_suitable(&a, &b, &c);
    ops_drop(&copied_b);
    ops_drop(&copied_a);
    return status;
}

/* c = a @ b. All three have the same axes before the last two; stacks that are repeated have strides 0 there. c is dense, and
 * does not overlap a or b. TLM_FREED, TLM_OUT_OF_MEMORY (then c is undefined). */
static tlm_status multiply(const tlm_tensor *a, const tlm_tensor *b, const tlm_tensor *c)
{
    if (ops_elements(c) == 0)
        return TLM_OK;
    return a->shape[a->axes - 1] == 0 ? ops_fill(c, 0.0) : multiply_filled(*a, *b, *c);
}

/* ---- matmul and linear ---- */

enum { LEFT = 0, RIGHT = 1, BIAS = 2, SHAPES = 2 };

/* ---- shapes ---- */

/* A vector as a row on the left, as a column on the right. */
static void as_matrix(tlm_tensor *tensor, int side)
{
    if (tensor->axes == 1)
        ops_insert_axis(tensor, side == LEFT ? 0 : 1);
}

/* Gives both the stacks that they have together. False: they have none. */
static bool broadcast_stacks(tlm_tensor *a, tlm_tensor *b)
{
    if (a->axes == 2 && b->axes == 2)
        return true;
    tlm_tensor one = *a, other = *b;
    one.axes -= 2;
    other.axes -= 2;
    if (ops_broadcast(&one, &other))
        return false;
    for (int i = 0; i < 2; i++) {
        one.shape[one.axes + i] = a->shape[a->axes - 2 + i];
        one.strides[one.axes + i] = a->strides[a->axes - 2 + i];
        other.shape[other.axes + i] = b->shape[b->axes - 2 + i];
        other.strides[other.axes + i] = b->strides[b->axes - 2 + i];
    }
    one.axes += 2;
    other.axes += 2;
    *a = one;
    *b = other;
    return true;
}

/* A fresh tensor for a @ b, as a stack of matrices. */
static tlm_status new_product(const tlm_tensor *a, const tlm_tensor *b, tlm_tensor *out)
{
    int64_t shape[TLM_MOST_AXES];
    memcpy(shape, a->shape, sizeof shape);
    shape[a->axes - 1] = b->shape[b->axes - 1];
    return ops_new(a->object ? a->device : b->device, a->dtype, a->axes, shape, out);
}

static tlm_status new_multiplied(const tlm_tensor *a, const tlm_tensor *b, tlm_tensor *out)
{
    tlm_status status = new_product(a, b, out);
    if (status)
        return status;
    if ((status = multiply(a, b, out)))
        ops_drop(out);
    return status;
}

/* ---- forward ---- */

static tlm_status fail_shapes(ops_call *call, const char *why)
{
    char text[160], other[160];
    return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "shapes %s and %s cannot be multiplied; %s",
                    ops_shape_text(&call->in[LEFT], text), ops_shape_text(&call->in[RIGHT], other), why);
}

static tlm_status product(ops_call *call)
{
    tlm_tensor a = call->in[LEFT], b = call->in[RIGHT];
    if (!a.axes || !b.axes || a.shape[a.axes - 1] != b.shape[b.axes > 1 ? b.axes - 2 : 0])
        return fail_shapes(call, "the last length of the first must be the last but one of the second");
    as_matrix(&a, LEFT);
    as_matrix(&b, RIGHT);
    if (!broadcast_stacks(&a, &b))
        return fail_shapes(call, "each pair of lengths before the last two must be equal or 1");
    tlm_tensor shape = a; /* of the result, as a stack of matrices and without the axes that vectors were given */
    shape.shape[a.axes - 1] = b.shape[b.axes - 1];
    if (call->in[RIGHT].axes == 1)
        ops_drop_axis(&shape, shape.axes - 1);
    if (call->in[LEFT].axes == 1)
        ops_drop_axis(&shape, shape.axes - (call->in[RIGHT].axes == 1 ? 1 : 2));
    tlm_status status = ops_new_out(call, a.object ? a.device : b.device, a.dtype, shape.axes, shape.shape);
    if (status)
        return status;
    tlm_tensor matrices = call->out;
    if (call->in[LEFT].axes == 1)
        ops_insert_axis(&matrices, matrices.axes - (call->in[RIGHT].axes == 1 ? 0 : 1));
    if (call->in[RIGHT].axes == 1)
        ops_insert_axis(&matrices, matrices.axes);
    if ((status = multiply(&a, &b, &matrices)))
        ops_drop_out(call);
    return status;
}

static void save_operands(ops_call *call)
{
    int64_t *n = call->params.n;
    if (!call->records)
        return;
    n[LEFT] = ops_needs(call, RIGHT);
    n[RIGHT] = ops_needs(call, LEFT);
    call->params.count = SHAPES;
    for (uint32_t i = 0; i < call->inputs; i++)
        ops_put_shape(&call->params, &call->in[i]);
    for (uint32_t i = LEFT; i <= RIGHT; i++)
        if (n[i])
            ops_save_input(call, i);
}

static tlm_status matmul(ops_call *call)
{
    if (!ops_common_dtype(call) || !call->in[LEFT].object || !call->in[RIGHT].object)
        return (tlm_status)OPS_NOT_HERE;
    tlm_status status = product(call);
    if (!status)
        save_operands(call);
    return status;
}

static tlm_status linear(ops_call *call)
{
    char text[160], other[160];
    const tlm_tensor *weight = &call->in[RIGHT], *bias = &call->in[BIAS];
    if (!ops_common_dtype(call) || !call->in[LEFT].object || !weight->object)
        return (tlm_status)OPS_NOT_HERE;
    if (weight->axes != 2)
        return fail_shapes(call, "the weight of linear has 2 axes: from how many, to how many");
    if (call->inputs > BIAS && (bias->axes != 1 || bias->shape[0] != weight->shape[1]))
        return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "a bias for the weight %s has shape [%lld], not %s",
                        ops_shape_text(weight, text), (long long)weight->shape[1], ops_shape_text(bias, other));
    tlm_status status = product(call);
    if (!status && call->inputs > BIAS) {
        tlm_tensor wide;
        ops_expand(bias, call->out.axes, call->out.shape, &wide);
        if ((status = ops_binary(OPS_ADD, &call->out, &wide, &call->out)))
            ops_drop_out(call);
    }
    if (!status)
        save_operands(call);
    return status;
}

/* ---- backward ---- */

/* What a rule works with. Operands and the gradient are matrices, or stacks of them, as in the forward. */
typedef struct {
    tlm_pass *pass;
    tlm_tensor shapes[2];   /* of the inputs, without memory */
    tlm_tensor operands[2]; /* as matrices; object 0 where it was not saved */
    tlm_tensor gradient;
} backward;

static void exchange(int64_t *pair)
{
    int64_t kept = pair[0];
    pair[0] = pair[1];
    pair[1] = kept;
}

static tlm_tensor transposed(tlm_tensor matrix)
{
    exchange(matrix.shape + matrix.axes - 2);
    exchange(matrix.strides + matrix.axes - 2);
    return matrix;
}

static void collect(tlm_pass *pass, const tlm_tensor *gradient, backward *out)
{
    const ops_params *params = tlm_pass_params(pass);
    const int64_t *numbers = params->n + SHAPES;
    uint32_t saved = 0;
    *out = (backward){.pass = pass, .gradient = *gradient};
    for (int side = LEFT; side <= RIGHT; side++) {
        ops_kept_shape(numbers, gradient, &out->shapes[side]);
        numbers += 1 + numbers[0];
        if (params->n[side])
            out->operands[side] = *tlm_pass_saved(pass, saved++);
    }
    for (int side = LEFT; side <= RIGHT; side++)
        if (out->operands[side].object)
            as_matrix(&out->operands[side], side);
    if (out->shapes[LEFT].axes == 1)
        ops_insert_axis(&out->gradient, out->gradient.axes - (out->shapes[RIGHT].axes > 1));
    if (out->shapes[RIGHT].axes == 1)
        ops_insert_axis(&out->gradient, out->gradient.axes);
}

/* Takes the axis of a vector away again, and gives the gradient, summed where the input was repeated. Owns `made`. */
static tlm_status give(const backward *rule, int side, tlm_tensor *made)
{
    if (rule->shapes[side].axes == 1)
        ops_drop_axis(made, made->axes - (side == LEFT ? 2 : 1));
    return ops_give_reduced(rule->pass, (uint32_t)side, made, false, &rule->shapes[side]);
}

/* gradient @ b.T */
static tlm_status give_left(const backward *rule)
{
    tlm_tensor gradient = rule->gradient, other = transposed(rule->operands[RIGHT]), made;
    broadcast_stacks(&gradient, &other);
    tlm_status status = new_multiplied(&gradient, &other, &made);
    return status ? status : give(rule, LEFT, &made);
}

/* `tensor` with all axes but the last as one, copied when it cannot be seen so. Drop *made. */
static tlm_status made_folded(tlm_tensor *tensor, tlm_tensor *made)
{
    *made = (tlm_tensor){0};
    if (fold(tensor))
        return TLM_OK;
    tlm_tensor dense;
    tlm_status status = ops_made_dense(tensor, &dense, made);
    if (status)
        return status;
    fold(&dense);
    *tensor = dense;
    return TLM_OK;
}

static tlm_status give_right_folded(const backward *rule)
{
    tlm_tensor operand = rule->operands[LEFT], gradient = rule->gradient, copies[2] = {{0}}, made;
    tlm_status status = made_folded(&operand, &copies[0]);
    if (!status)
        status = made_folded(&gradient, &copies[1]);
    if (!status) {
        operand = transposed(operand);
        status = new_multiplied(&operand, &gradient, &made);
    }
    ops_drop(&copies[0]);
    ops_drop(&copies[1]);
    return status ? status : give(rule, RIGHT, &made);
}

/* a.T @ gradient */
static tlm_status give_right(const backward *rule)
{
    if (rule->shapes[RIGHT].axes <= 2)
        return give_right_folded(rule);
    tlm_tensor gradient = rule->gradient, other = transposed(rule->operands[LEFT]), made;
    broadcast_stacks(&other, &gradient);
    tlm_status status = new_multiplied(&other, &gradient, &made);
    return status ? status : give(rule, RIGHT, &made);
}

static tlm_status give_bias(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    const int64_t *numbers = params->n + SHAPES;
    tlm_tensor like;
    for (int i = 0; i < BIAS; i++)
        numbers += 1 + numbers[0];
    ops_kept_shape(numbers, gradient, &like);
    return ops_give_reduced(pass, BIAS, gradient, true, &like);
}

static tlm_status product_back(tlm_pass *pass)
{
    backward rule;
    tlm_tensor made = {0};
    tlm_status status = TLM_OK;
    collect(pass, tlm_pass_grad(pass), &rule);
    bool wants_left = tlm_pass_wants(pass, LEFT), wants_right = tlm_pass_wants(pass, RIGHT);
    if (wants_left || wants_right) /* copied for both at once, when it has to be */
        status = made_suitable(&rule.gradient, &made);
    if (!status && wants_left)
        status = give_left(&rule);
    if (!status && wants_right)
        status = give_right(&rule);
    ops_drop(&made);
    if (!status && tlm_pass_inputs(pass) > BIAS && tlm_pass_wants(pass, BIAS))
        status = give_bias(pass);
    return status;
}

static const ops_row rows[] = {
    {"matmul", "a for b, b for a", 2, 2, true, matmul, product_back, .kind = OPS_OTHER, .writing = OPS_WRITES_APART,
     .python_operator = "matmul", .method = "matmul"},
    {"linear", "x for weight, weight for x", 2, 3, true, linear, product_back, .kind = OPS_OTHER,
     .writing = OPS_WRITES_APART},
};
const ops_family ops_products = {rows, sizeof rows / sizeof *rows};
