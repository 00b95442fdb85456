/* SPDX-License-Identifier: MIT
 * test_ops_axes_gradients.c: gradients of reductions, softmaxes and normalisations, and what their rules leave behind.
 *
 * tlm-test: sources=core,ops modes=address,valgrind */
#include "gradients.h"
#include "plain_loops.h"

STAND_IN_FOR_SAMPLER

/* Random numbers in float64; `turned`: with the axes reversed in memory. The object floats. */
static tlm_tensor numbers(bool turned, int axes, const int64_t *shape)
{
    int64_t room[8] = {0};
    for (int i = 0; i < axes; i++)
        room[i] = shape[turned ? axes - 1 - i : i];
    tlm_tensor memory = random_tensor(TLM_DEVICE_CPU, TLM_FLOAT64, axes, room, -2, 2), seen = memory;
    for (int i = 0; turned && i < axes; i++) {
        seen.shape[i] = shape[i];
        seen.strides[i] = memory.strides[axes - 1 - i];
    }
    return seen;
}

static void check_one(const char *op, const tlm_tensor *x, int64_t first, int64_t second, int64_t third)
{
    gradient_case of = {.op = op, .inputs = 1, .in = x, .wants = 1};
    of.params = (ops_params){.count = 3, .n = {first, second, third}, .x = {1e-5}};
    check_gradients(&of);
}

static void test_gradients_of_reductions(void)
{
    const int64_t shape[] = {3, 2, 4};
    for (int turned = 0; turned < 2; turned++)
        for (int64_t mask = 1; mask < 8; mask++) {
            tlm_tensor x = numbers(turned, 3, shape);
            check_one("sum", &x, mask, mask % 2, 0);
            check_one("mean", &x, mask, mask % 2, 0);
            check_one("var", &x, mask, mask % 2, mask % 2);
            check_one("max", &x, mask, mask % 2, 0);
            check_one("min", &x, mask, mask % 2, 0);
            ops_drop(&x);
        }
}

static void test_gradients_of_softmax(void)
{
    static const int64_t shapes[][3] = {{3, 2, 4}, {2, 19, 3}, {2, 3, 67}};
    for (int s = 0; s < 3; s++)
        for (int axis = 0; axis < 3; axis++) {
            tlm_tensor x = numbers(axis == 1, 3, shapes[s]);
            check_one("softmax", &x, axis, 0, 0);
            check_one("log_softmax", &x, axis, 0, 0);
            ops_drop(&x);
        }
}

static void test_gradients_of_cross_entropy(void)
{
    const int64_t shape[] = {7, 19};
    for (int64_t reduction = 0; reduction < 3; reduction++) {
        tlm_tensor in[] = {numbers(reduction == 1, 2, shape), {0}};
        CHECK(ops_new(TLM_DEVICE_CPU, TLM_INT64, 1, shape, &in[1]) == TLM_OK);
        for (int64_t i = 0; i < shape[0]; i++)
            set_element(&in[1], i, (double)(i * 5 % shape[1]));
        gradient_case of = {.op = "cross_entropy", .inputs = 2, .in = in, .wants = 1};
        of.params = (ops_params){.count = 1, .n = {reduction}};
        check_gradients(&of);
        ops_drop(&in[0]);
        ops_drop(&in[1]);
    }
}

/* Each choice of inputs that want a gradient: other things are saved then. */
static void test_gradients_of_layer_norm(void)
{
    const int64_t shape[] = {3, 2, 19};
    for (int64_t row_axes = 1; row_axes <= 2; row_axes++) {
        const int64_t *row = shape + 3 - row_axes;
        tlm_tensor in[] = {numbers(row_axes == 2, 3, shape), numbers(false, (int)row_axes, row),
                           numbers(row_axes == 2, (int)row_axes, row)};
        for (uint32_t wants = 1; wants < 8; wants++) {
            gradient_case of = {.op = "layer_norm", .in = in, .wants = wants};
            of.inputs = wants < 2 ? 1 : wants < 4 ? 2 : 3;
            of.params = (ops_params){.count = 1, .n = {row_axes}, .x = {1e-5}};
            check_gradients(&of);
        }
        for (int i = 0; i < 3; i++)
            ops_drop(&in[i]);
    }
}

/* ---- equal extremes ---- */

/* The gradient of x for a gradient of ones. */
static void gradient_of_ones(const char *op, const tlm_tensor *x, int64_t mask, double *found)
{
    const uint8_t needs[] = {1};
    tlm_tape *tape;
    tlm_slot leaf, root;
    tlm_tensor seed, gradient;
    ops_call call = {.inputs = 1, .in = x, .needs = needs, .params = {.count = 2, .n = {mask, 0}}};
    CHECK(tlm_tape_create(0, &ops_tape_arithmetic, &tape) == TLM_OK && tlm_tape_leaf(tape, x, &leaf) == TLM_OK);
    int row = ops_row_named(op);
    CHECK(ops_forward(row, &call) == TLM_OK);
    tlm_record record = {.op = ops_number(row), .inputs = 1, .slots = &leaf, .tensors = x, .output = &call.out};
    record.saves = call.saves;
    record.save_count = call.save_count;
    record.params = &call.params;
    record.params_bytes = ops_params_bytes(&call.params);
    CHECK(tlm_tape_record(tape, &record, &root) == TLM_OK);
    ops_constant(1, TLM_FLOAT64, call.out.axes, call.out.shape, &seed);
    seed.device = TLM_DEVICE_CPU;
    CHECK(tlm_backward(root, &seed, 0) == TLM_OK && tlm_slot_grad(leaf, &gradient) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(x); i++)
        found[i] = element(&gradient, i);
    ops_drop(&call.out);
    tlm_slot_release(leaf);
    tlm_slot_release(root);
    CHECK(tlm_tape_destroy(tape) == TLM_OK);
}

static void test_equal_extremes_share_the_gradient(void)
{
    const double values[] = {5, 1, 5, 2, 3, 0, 7, 7, 7};
    const double of_rows[] = {0.5, 0, 0.5, 0, 1, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3}, of_least[] = {0, 1, 0, 0, 0, 1};
    const double of_all[] = {0, 0, 0, 0, 0, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3};
    const int64_t shape[] = {3, 3};
    double found[9];
    tlm_tensor x = numbers(false, 2, shape);
    for (int i = 0; i < 9; i++)
        set_element(&x, i, values[i]);
    gradient_of_ones("max", &x, 2, found);
    for (int i = 0; i < 9; i++)
        CHECK(fabs(found[i] - of_rows[i]) < 1e-15);
    gradient_of_ones("max", &x, 3, found);
    for (int i = 0; i < 9; i++)
        CHECK(fabs(found[i] - of_all[i]) < 1e-15);
    gradient_of_ones("min", &x, 2, found);
    for (int i = 0; i < 9; i++)
        CHECK(fabs(found[i] - (i < 6 ? of_least[i] : 1.0 / 3)) < 1e-15);
    ops_drop(&x);
}

static void test_what_is_no_number_is_the_extreme(void)
{
    const int64_t shape[] = {3};
    double found[3];
    tlm_tensor x = numbers(false, 1, shape);
    set_element(&x, 1, NAN);
    gradient_of_ones("max", &x, 1, found);
    CHECK(found[0] == 0 && found[1] == 1 && found[2] == 0);
    ops_drop(&x);
}

int main(void)
{
    plain_loops();
    CHECK(ops_define() == TLM_OK);
    test_gradients_of_reductions();
    test_gradients_of_softmax();
    test_gradients_of_cross_entropy();
    test_gradients_of_layer_norm();
    test_equal_extremes_share_the_gradient();
    test_what_is_no_number_is_the_extreme();
    return 0;
}
