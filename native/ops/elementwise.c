/* SPDX-License-Identifier: MIT
 * elementwise.c: the ops of each element, with broadcasting: arithmetic, functions, selections.
 *
 * Functions of one input are entries of functions.h; here is what they share, and the ops of two and three. A rule reads the
 * gradient of the output, as it comes, and what was saved, seen with its shape, and writes one gradient, over that of the
 * output where nobody else needs it. The gradient of an input that was repeated is summed; the shapes of such inputs are the
 * record's only numbers. No state; any thread may call.
 */
#include <math.h>
#include <string.h>

#include "ops/ops.h"

/* ---- loops ---- */

/* The output is at most an input itself: no element depends on another one. */
#if defined(__clang__)
#define OPS_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define OPS_APART _Pragma("GCC ivdep")
#endif

#define OPS_BOTH "ops/element_loops.h"
#include "ops/both_dtypes.h"

/* A loop of element_loops.h for a dtype; `parameters`: two doubles, or NULL where it reads none. */
#define OWN_LOOP(name, dtype, parameters)                                                                              \
    ((ops_loop){(dtype) == TLM_FLOAT64 ? name##_float64 : name##_float32, (void *)(uintptr_t)(parameters)})

enum { MOST_INPUTS = 3, MOST_READ = 3 };

/* ---- forwards ---- */

static tlm_status shapes_differ(ops_call *call, uint32_t input)
{
    char one[160], other[160];
    return ops_fail(call, (tlm_status)OPS_WRONG_SHAPE, "shapes %.96s and %.96s do not broadcast",
                    ops_shape_text(&call->in[0], one), ops_shape_text(&call->in[input], other));
}

/* Sees input i with a shape; false: it does not broadcast to it. */
static bool see(const ops_call *call, uint32_t i, int axes, const int64_t *shape, tlm_tensor *room,
                const tlm_tensor **seen)
{
    seen[i] = &call->in[i];
    if (call->in[i].axes == axes && memcmp(call->in[i].shape, shape, (size_t)axes * sizeof *shape) == 0)
        return true;
    seen[i] = &room[i];
    return ops_expand(&call->in[i], axes, shape, &room[i]) == TLM_OK;
}

/* Sees the inputs with one shape, most often that of the first; `room` is for those that have another. */
static tlm_status see_together(ops_call *call, tlm_tensor *room, const tlm_tensor **seen)
{
    uint32_t i = 0;
    while (i < call->inputs && see(call, i, call->in[0].axes, call->in[0].shape, room, seen))
        i++;
    if (i == call->inputs)
        return TLM_OK;
    tlm_tensor whole = call->in[0], copy;
    for (i = 1; i < call->inputs; i++) {
        copy = call->in[i];
        if (ops_broadcast(&whole, &copy) != TLM_OK)
            return shapes_differ(call, i);
    }
    for (i = 0; i < call->inputs; i++)
        see(call, i, whole.axes, whole.shape, room, seen);
    return TLM_OK;
}

/* Makes the output of the shape that all inputs have together, and runs the loop; its dtype is that of the last input. What
 * the loop makes of them is the caller's to save. */
static tlm_status compute(ops_call *call, ops_loop loop)
{
    tlm_tensor room[MOST_INPUTS];
    const tlm_tensor *tensors[MOST_INPUTS + 1];
    tlm_status status = see_together(call, room, tensors);
    if (status != TLM_OK)
        return status;
    status = ops_new_out(call, ops_common_device(call), call->in[call->inputs - 1].dtype, tensors[0]->axes,
                         tensors[0]->shape);
    if (status != TLM_OK)
        return status;
    tensors[call->inputs] = &call->out;
    status = ops_each_row(tensors, (int)call->inputs + 1, loop.call, loop.data);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

/* The same with NumPy's loop, for inputs of one dtype with fractions; else OPS_NOT_HERE. */
static tlm_status compute_by_numpy(ops_call *call, ops_loop_name name)
{
    uint8_t dtype = ops_common_dtype(call);
    return dtype ? compute(call, *ops_loop_of(name, dtype)) : (tlm_status)OPS_NOT_HERE;
}

/* Puts the shapes of the inputs that were repeated and want a gradient behind the params, for give. */
static void note_repeated(ops_call *call)
{
    uint32_t first = call->params.count;
    for (uint32_t i = 0; call->records && i < call->inputs; i++) {
        if (!call->needs[i] || ops_same_shape(&call->in[i], &call->out))
            continue;
        if (call->params.count == first)
            call->params.n[call->params.count++] = 0;
        call->params.n[first] |= INT64_C(1) << i;
        ops_put_shape(&call->params, &call->in[i]);
    }
}

/* ---- rules ---- */

/* Gives a gradient of the output's shape to an input: summed where it was repeated. `first`: the number of params in front
 * of what note_repeated put there. */
static tlm_status give(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool shared, uint32_t first)
{
    const ops_params *params = tlm_pass_params(pass);
    if (params->count == first || !(params->n[first] >> input & 1))
        return shared ? tlm_pass_share(pass, input, gradient) : tlm_pass_give(pass, input, gradient);
    tlm_tensor like;
    const int64_t *at = params->n + first + 1;
    for (uint32_t i = 0; i <= input; i++)
        if (params->n[first] >> i & 1)
            at = ops_take_shape(at, &like);
    return ops_give_reduced(pass, input, gradient, shared, &like);
}

/* The gradient when it is the same number everywhere, as one number. */
static void compute_number(ops_loop loop, const tlm_tensor *const *read, int count, tlm_tensor *out)
{
    char *at[MOST_READ + 1];
    const intptr_t strides[MOST_READ + 1] = {0}, once = 1;
    ops_constant(0, read[0]->dtype, read[0]->axes, read[0]->shape, out);
    out->device = read[0]->device;
    for (int i = 0; i < count; i++)
        at[i] = (char *)&read[i]->at;
    at[count] = (char *)&out->at;
    loop.call(at, &once, strides, loop.data);
}

/* Room for a gradient that has the shape of the output's. */
static tlm_status make_room(tlm_pass *pass, const tlm_tensor *const *read, int count, bool last, tlm_tensor *out,
                            bool *shared)
{
    *shared = last && tlm_pass_may_overwrite_grad(pass);
    if (*shared) {
        *out = *read[0];
        return TLM_OK;
    }
    uint32_t device = read[0]->device;
    for (int i = 0; i < count; i++)
        if (read[i]->object)
            device = read[i]->device;
    return ops_new(device, read[0]->dtype, read[0]->axes, read[0]->shape, out);
}

/* Computes a gradient from that of the output and up to two saved tensors by the loop, and gives it to the input. `last`:
 * nothing will read the output's gradient after this, so it may be overwritten. */
static tlm_status give_by(tlm_pass *pass, uint32_t input, uint32_t first, ops_loop loop, const tlm_tensor *one,
                          const tlm_tensor *other, bool last)
{
    const tlm_tensor *read[MOST_READ + 1] = {tlm_pass_grad(pass), one, other};
    tlm_tensor room[MOST_READ], out;
    bool shared = false, is_number = read[0]->object == 0;
    int count = 1;
    for (; count < MOST_READ && read[count]; count++) {
        is_number = is_number && read[count]->object == 0;
        if (ops_same_shape(read[count], read[0]))
            continue;
        ops_expand(read[count], read[0]->axes, read[0]->shape, &room[count]);
        read[count] = &room[count];
    }
    if (is_number) {
        compute_number(loop, read, count, &out);
        return give(pass, input, &out, false, first);
    }
    tlm_status status = make_room(pass, read, count, last, &out, &shared);
    if (status != TLM_OK)
        return status;
    read[count] = &out;
    status = ops_each_row(read, count + 1, loop.call, loop.data);
    if (status != TLM_OK) {
        if (!shared)
            ops_drop(&out);
        return status;
    }
    return give(pass, input, &out, shared, first);
}

/* ---- functions of one input ---- */

typedef enum { NOTHING, INPUT, OUTPUT } saved_value;

static inline tlm_status forward_function(ops_call *call, ops_loop loop, saved_value saved)
{
    call->params.count = 0;
    tlm_status status = compute(call, loop);
    if (status != TLM_OK || !call->records)
        return status;
    if (saved == INPUT)
        ops_save_input(call, 0);
    else if (saved == OUTPUT)
        ops_save_output(call);
    return TLM_OK;
}

static inline tlm_status rule_of_function(tlm_pass *pass, ops_loop loop, saved_value saved)
{
    const tlm_tensor *read = saved == NOTHING ? tlm_pass_grad(pass) : tlm_pass_saved(pass, 0);
    return give_by(pass, 0, 0, loop, read, NULL, true);
}

static inline const double *x_of(const ops_params *params)
{
    return params->x;
}

#define PLAIN(params) NULL
#define WITH_X(params) x_of(params)
#define FUNCTION(NAME, SAVED, PARAMETERS, ...)                                                                         \
    static ops_loop loop_of_##NAME(uint8_t dtype, const double *with);                                                 \
    static ops_loop gradient_of_##NAME(uint8_t dtype, const double *with);                                             \
    static tlm_status forward_##NAME(ops_call *call)                                                                   \
    {                                                                                                                  \
        uint8_t dtype = ops_common_dtype(call);                                                                        \
        if (!dtype)                                                                                                    \
            return (tlm_status)OPS_NOT_HERE;                                                                           \
        return forward_function(call, loop_of_##NAME(dtype, PARAMETERS(&call->params)), SAVED);                        \
    }                                                                                                                  \
    static tlm_status rule_##NAME(tlm_pass *pass)                                                                      \
    {                                                                                                                  \
        uint8_t dtype = tlm_pass_grad(pass)->dtype;                                                                    \
        return rule_of_function(pass, gradient_of_##NAME(dtype, PARAMETERS(tlm_pass_params(pass))), SAVED);            \
    }
#define BY_NUMPY(NAME, LOOP)                                                                                           \
    static inline ops_loop loop_of_##NAME(uint8_t dtype, const double *with)                                           \
    {                                                                                                                  \
        (void)with;                                                                                                    \
        return *ops_loop_of(LOOP, dtype);                                                                              \
    }
#define BY_BLOCKS(NAME, BODY)                                                                                          \
    static inline ops_loop loop_of_##NAME(uint8_t dtype, const double *with)                                           \
    {                                                                                                                  \
        return OWN_LOOP(NAME, dtype, with);                                                                            \
    }
#define GRADIENT(NAME, VALUE)                                                                                          \
    static inline ops_loop gradient_of_##NAME(uint8_t dtype, const double *with)                                       \
    {                                                                                                                  \
        return OWN_LOOP(NAME##_gradient, dtype, with);                                                                 \
    }
#define GRADIENT_BLOCKS(NAME, BODY) GRADIENT(NAME, 0)
#include "ops/functions.h"
#undef FUNCTION
#undef BY_NUMPY
#undef BY_BLOCKS
#undef GRADIENT
#undef GRADIENT_BLOCKS

/* ---- gelu ----
 * n[0] = 1 for the form with tanh, 0 for the exact one. */

static tlm_status forward_gelu(ops_call *call)
{
    uint8_t dtype = ops_common_dtype(call);
    if (!dtype)
        return (tlm_status)OPS_NOT_HERE;
    call->params.n[0] = call->params.count && call->params.n[0];
    call->params.count = 1;
    ops_loop loop = call->params.n[0] ? OWN_LOOP(gelu_tanh, dtype, NULL) : OWN_LOOP(gelu, dtype, NULL);
    tlm_status status = compute(call, loop);
    if (status == TLM_OK && call->records)
        ops_save_input(call, 0);
    return status;
}

static tlm_status rule_gelu(tlm_pass *pass)
{
    const ops_params *params = tlm_pass_params(pass);
    uint8_t dtype = tlm_pass_grad(pass)->dtype;
    ops_loop loop = params->n[0] ? OWN_LOOP(gelu_tanh_rule, dtype, NULL) : OWN_LOOP(gelu_rule, dtype, NULL);
    return give_by(pass, 0, 1, loop, tlm_pass_saved(pass, 0), NULL, true);
}

/* ---- arithmetic ---- */

static ops_loop numpy_loop(tlm_pass *pass, ops_loop_name name)
{
    return *ops_loop_of(name, tlm_pass_grad(pass)->dtype);
}

static tlm_status forward_sum(ops_call *call, ops_loop_name name)
{
    call->params.count = 0;
    tlm_status status = compute_by_numpy(call, name);
    if (status == TLM_OK)
        note_repeated(call);
    return status;
}

static tlm_status forward_add(ops_call *call)
{
    return forward_sum(call, OPS_ADD);
}

static tlm_status forward_subtract(ops_call *call)
{
    return forward_sum(call, OPS_SUBTRACT);
}

static tlm_status rule_add(tlm_pass *pass)
{
    for (uint32_t input = 0; input < 2; input++) {
        if (!tlm_pass_wants(pass, input))
            continue;
        tlm_status status = give(pass, input, tlm_pass_grad(pass), true, 0);
        if (status != TLM_OK)
            return status;
    }
    return TLM_OK;
}

static tlm_status rule_subtract(tlm_pass *pass)
{
    bool wants_left = tlm_pass_wants(pass, 0);
    if (tlm_pass_wants(pass, 1)) {
        tlm_status status = give_by(pass, 1, 0, numpy_loop(pass, OPS_NEGATIVE), NULL, NULL, !wants_left);
        if (status != TLM_OK)
            return status;
    }
    return wants_left ? give(pass, 0, tlm_pass_grad(pass), true, 0) : TLM_OK;
}

static tlm_status forward_multiply(ops_call *call)
{
    tlm_status status = forward_sum(call, OPS_MULTIPLY);
    if (status != TLM_OK)
        return status;
    for (uint32_t input = 0; input < 2; input++)
        if (ops_needs(call, input))
            ops_save_input(call, 1 - input);
    return TLM_OK;
}

static tlm_status rule_multiply(tlm_pass *pass)
{
    ops_loop loop = numpy_loop(pass, OPS_MULTIPLY);
    bool wants[] = {tlm_pass_wants(pass, 0), tlm_pass_wants(pass, 1)};
    if (wants[1]) {
        const tlm_tensor *left = tlm_pass_saved(pass, wants[0]);
        tlm_status status = give_by(pass, 1, 0, loop, left, NULL, !wants[0]);
        if (status != TLM_OK)
            return status;
    }
    return wants[0] ? give_by(pass, 0, 0, loop, tlm_pass_saved(pass, 0), NULL, true) : TLM_OK;
}

/* Saves the divisor, and the dividend when the divisor wants a gradient. */
static tlm_status forward_divide(ops_call *call)
{
    tlm_status status = forward_sum(call, OPS_DIVIDE);
    if (status != TLM_OK || !call->records)
        return status;
    ops_save_input(call, 1);
    if (ops_needs(call, 1))
        ops_save_input(call, 0);
    return TLM_OK;
}

static tlm_status rule_divide(tlm_pass *pass)
{
    const tlm_tensor *divisor = tlm_pass_saved(pass, 0);
    bool wants_left = tlm_pass_wants(pass, 0);
    if (tlm_pass_wants(pass, 1)) {
        ops_loop loop = OWN_LOOP(divisor_rule, divisor->dtype, NULL);
        tlm_status status = give_by(pass, 1, 0, loop, tlm_pass_saved(pass, 1), divisor, !wants_left);
        if (status != TLM_OK)
            return status;
    }
    return wants_left ? give_by(pass, 0, 0, numpy_loop(pass, OPS_DIVIDE), divisor, NULL, true) : TLM_OK;
}

/* ---- power ---- */

/* The exponent when it is one number; false: it is not. */
static bool number_of(const tlm_tensor *exponent, double *number)
{
    *number = exponent->object ? 0 : ops_number_of(exponent);
    return exponent->object == 0;
}

/* The loop of the base alone that gives its power; OPS_POWER: there is none. */
static ops_loop_name loop_for(double exponent)
{
    return exponent == 2 ? OPS_SQUARE : exponent == 0.5 ? OPS_SQRT : exponent == -1 ? OPS_RECIPROCAL : OPS_POWER;
}

/* The power by a number that is 0, 1 or has a loop of its own. */
static tlm_status forward_simple(ops_call *call, double exponent)
{
    const tlm_tensor *base = &call->in[0], *out = &call->out;
    tlm_status status = ops_new_out(call, ops_common_device(call), base->dtype, base->axes, base->shape);
    if (status != TLM_OK)
        return status;
    if (exponent == 0)
        status = ops_fill(out, 1);
    else
        status = exponent == 1 ? ops_copy(base, out) : ops_unary(loop_for(exponent), base, out);
    if (status != TLM_OK)
        ops_drop_out(call);
    return status;
}

static tlm_status forward_power(ops_call *call)
{
    double exponent;
    bool is_number = number_of(&call->in[1], &exponent) && call->in[1].axes == 0;
    bool is_trivial = is_number && (exponent == 0 || exponent == 1);
    if (!ops_common_dtype(call))
        return (tlm_status)OPS_NOT_HERE;
    call->params.count = 0;
    tlm_status status = is_trivial || (is_number && loop_for(exponent) != OPS_POWER)
                            ? forward_simple(call, exponent)
                            : compute_by_numpy(call, OPS_POWER);
    if (status != TLM_OK || !call->records)
        return status;
    note_repeated(call);
    ops_save_input(call, 1);
    if (!is_trivial)
        ops_save_input(call, 0);
    return TLM_OK;
}

/* The loop that computes the gradient of the base from the base alone; false: there is none. */
static bool rule_for(double exponent, uint8_t dtype, ops_loop *loop)
{
    if (exponent == 2)
        *loop = OWN_LOOP(square_gradient, dtype, NULL);
    else if (exponent == 3)
        *loop = OWN_LOOP(cube_rule, dtype, NULL);
    else if (exponent == 0.5)
        *loop = OWN_LOOP(root_rule, dtype, NULL);
    else if (exponent == -1)
        *loop = OWN_LOOP(reciprocal_rule, dtype, NULL);
    else
        return false;
    return true;
}

/* The gradient of the base when the exponent is a number for which nothing needs to be raised to a power. */
static bool is_simple_rule(tlm_pass *pass, double exponent, tlm_status *status)
{
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    ops_loop loop;
    if (exponent == 1) {
        *status = give(pass, 0, gradient, true, 0);
    } else if (exponent == 0) {
        tlm_tensor zero;
        ops_constant(0, gradient->dtype, gradient->axes, gradient->shape, &zero);
        zero.device = gradient->device;
        *status = give(pass, 0, &zero, false, 0);
    } else if (rule_for(exponent, gradient->dtype, &loop)) {
        *status = give_by(pass, 0, 0, loop, tlm_pass_saved(pass, 1), NULL, true);
    } else {
        return false;
    }
    return true;
}

static tlm_status rule_power(tlm_pass *pass)
{
    const tlm_tensor *exponent = tlm_pass_saved(pass, 0);
    bool wants_base = tlm_pass_wants(pass, 0);
    tlm_status status = TLM_OK;
    double number;
    if (!tlm_pass_wants(pass, 1) && number_of(exponent, &number) && is_simple_rule(pass, number, &status))
        return status;
    const tlm_tensor *base = tlm_pass_saved(pass, 1);
    if (tlm_pass_wants(pass, 1)) {
        ops_loop loop = OWN_LOOP(power_exponent_rule, base->dtype, NULL);
        status = give_by(pass, 1, 0, loop, base, exponent, !wants_base);
        if (status != TLM_OK)
            return status;
    }
    ops_loop loop = OWN_LOOP(power_base_rule, base->dtype, NULL);
    return wants_base ? give_by(pass, 0, 0, loop, base, exponent, true) : TLM_OK;
}

/* ---- the greater, the lesser ---- */

static tlm_status forward_extreme(ops_call *call, ops_loop_name name)
{
    call->params.count = 0;
    tlm_status status = compute_by_numpy(call, name);
    if (status != TLM_OK || !call->records)
        return status;
    note_repeated(call);
    ops_save_input(call, 0);
    ops_save_input(call, 1);
    return TLM_OK;
}

static tlm_status forward_maximum(ops_call *call)
{
    return forward_extreme(call, OPS_MAXIMUM);
}

static tlm_status forward_minimum(ops_call *call)
{
    return forward_extreme(call, OPS_MINIMUM);
}

/* Where two are equal, each has half of the gradient. The left input has the gradient where it is greater, or lesser. */
static tlm_status rule_extreme(tlm_pass *pass, bool is_greater)
{
    const tlm_tensor *in[] = {tlm_pass_saved(pass, 0), tlm_pass_saved(pass, 1)};
    ops_loop loop = OWN_LOOP(greater_rule, in[0]->dtype, NULL);
    bool wants_left = tlm_pass_wants(pass, 0);
    if (tlm_pass_wants(pass, 1)) {
        tlm_status status = give_by(pass, 1, 0, loop, in[is_greater], in[!is_greater], !wants_left);
        if (status != TLM_OK)
            return status;
    }
    return wants_left ? give_by(pass, 0, 0, loop, in[!is_greater], in[is_greater], true) : TLM_OK;
}

static tlm_status rule_maximum(tlm_pass *pass)
{
    return rule_extreme(pass, true);
}

static tlm_status rule_minimum(tlm_pass *pass)
{
    return rule_extreme(pass, false);
}

/* ---- where ---- */

static tlm_status forward_where(ops_call *call)
{
    const tlm_tensor *in = call->in;
    ops_call values = {.inputs = 2, .in = in + 1};
    uint8_t dtype = ops_common_dtype(&values);
    uint32_t device = ops_common_device(&values);
    if (!dtype || in[0].dtype != TLM_BOOL || (in[0].object && device != in[0].device && (in[1].object || in[2].object)))
        return (tlm_status)OPS_NOT_HERE;
    call->params.count = 0;
    tlm_status status = compute(call, OWN_LOOP(choose, dtype, NULL));
    if (status != TLM_OK || !call->records)
        return status;
    note_repeated(call);
    ops_save_input(call, 0);
    return TLM_OK;
}

static tlm_status rule_where(tlm_pass *pass)
{
    static const double kept[][2] = {{1}, {0}};
    uint8_t dtype = tlm_pass_grad(pass)->dtype;
    const tlm_tensor *condition = tlm_pass_saved(pass, 0);
    for (uint32_t input = 1; input < 3; input++) {
        if (!tlm_pass_wants(pass, input))
            continue;
        bool last = input == 2 || !tlm_pass_wants(pass, 2);
        ops_loop loop = OWN_LOOP(choose_rule, dtype, kept[input - 1]);
        tlm_status status = give_by(pass, input, 0, loop, condition, NULL, last);
        if (status != TLM_OK)
            return status;
    }
    return TLM_OK;
}

/* ---- the rows ---- */

#define SAVES_NOTHING ""
#define SAVES_INPUT "x"
#define SAVES_OUTPUT "output"
#define FUNCTION(NAME, SAVED, PARAMETERS, ...)                                                                         \
    {#NAME,                                                                                                            \
     SAVES_##SAVED,                                                                                                    \
     1,                                                                                                                \
     1,                                                                                                                \
     true,                                                                                                             \
     forward_##NAME,                                                                                                   \
     rule_##NAME,                                                                                                      \
     .kind = OPS_FUNCTION,                                                                                             \
     .writing = OPS_WRITES_OVER,                                                                                       \
     __VA_ARGS__},
#define BY_NUMPY(...)
#define BY_BLOCKS(...)
#define GRADIENT(...)
#define GRADIENT_BLOCKS(...)
#define OF_TWO(NAME, SAVED, ...)                                                                                       \
    {#NAME,      SAVED, 2, 2, true, forward_##NAME, rule_##NAME, .kind = OPS_OF_TWO, .writing = OPS_WRITES_OVER,       \
     __VA_ARGS__},

/* clang-format off */
static const ops_row rows[] = {
    OF_TWO(add, "", .dtype = OPS_SAME, .numpy = "add", .python_operator = "add")
    OF_TWO(subtract, "", .dtype = OPS_ARITHMETIC, .numpy = "subtract", .python_operator = "sub")
    OF_TWO(multiply, "the other factor", .dtype = OPS_SAME, .numpy = "multiply", .python_operator = "mul")
    OF_TWO(divide, "x, y", .dtype = OPS_FRACTION, .numpy = "true_divide", .python_operator = "truediv")
    OF_TWO(power, "x, y", .dtype = OPS_COUNTING, .numpy = "power", .python_operator = "pow")
    OF_TWO(maximum, "x, y", .dtype = OPS_SAME, .numpy = "maximum")
    OF_TWO(minimum, "x, y", .dtype = OPS_SAME, .numpy = "minimum")
#include "ops/functions.h"
    {"where", "condition", 3, 3, true, forward_where, rule_where, .kind = OPS_OTHER, .writing = OPS_WRITES_OVER},
    {"gelu", "x", 1, 1, true, forward_gelu, rule_gelu, .kind = OPS_OTHER, .writing = OPS_WRITES_OVER},
};
/* clang-format on */
const ops_family ops_elementwise = {rows, sizeof rows / sizeof *rows};
