/* SPDX-License-Identifier: MIT
 * test_ops_axes.c: reductions, softmaxes and normalisations give what loops over indices give, and the gradients of that.
 *
 * tlm-test: sources=core,ops modes=address,valgrind */
#include "gradients.h"
#include "plain_loops.h"

STAND_IN_FOR_SAMPLER

enum { MOST = 16384 };
enum { DENSE, TURNED, APART, BACKWARDS, LAYOUTS };

/* ---- tensors ---- */

/* Random numbers seen in one of the layouts; the object floats. */
static tlm_tensor laid_out(int layout, uint8_t dtype, int axes, const int64_t *shape)
{
    int64_t room[8] = {0};
    for (int i = 0; i < axes; i++)
        room[i] = layout == TURNED ? shape[axes - 1 - i] : layout == APART ? 2 * shape[i] : shape[i];
    tlm_tensor memory = random_tensor(TLM_DEVICE_CPU, dtype, axes, room, -2, 2), seen = memory;
    for (int i = 0; i < axes; i++) {
        seen.shape[i] = shape[i];
        seen.strides[i] =
            layout == TURNED ? memory.strides[axes - 1 - i] : memory.strides[i] * (layout == APART ? 2 : 1);
        if (layout != BACKWARDS || !shape[i])
            continue;
        seen.at.offset += (uint64_t)((shape[i] - 1) * memory.strides[i]);
        seen.strides[i] = -memory.strides[i];
    }
    return seen;
}

static ops_params params_of(int64_t first, int64_t second, int64_t third)
{
    return (ops_params){.count = 3, .n = {first, second, third}, .x = {1e-5}};
}

static tlm_status call_op(const char *name, uint32_t inputs, const tlm_tensor *in, ops_params params,
                          const uint8_t *needs, ops_call *call)
{
    *call = (ops_call){.inputs = inputs, .in = in, .params = params, .needs = needs};
    CHECK(ops_row_named(name) >= 0);
    return ops_forward(ops_row_named(name), call);
}

static void drop_call(const ops_call *call)
{
    for (uint32_t i = 0; i < call->save_count; i++)
        if (call->saves[i].owned)
            ops_drop(&call->saves[i].tensor);
    ops_drop(&call->out);
}

/* Which element of the result an element becomes part of. */
static int64_t place_of(const tlm_tensor *x, int64_t number, uint32_t mask)
{
    int64_t place = 0, times = 1;
    for (int axis = x->axes - 1; axis >= 0; number /= x->shape[axis--]) {
        if (mask >> axis & 1)
            continue;
        place += number % x->shape[axis] * times;
        times *= x->shape[axis];
    }
    return place;
}

static double tolerance_of(uint8_t dtype)
{
    return dtype == TLM_FLOAT64 ? 1e-12 : 1e-5;
}

static bool is_near(double actual, double expected, uint8_t dtype)
{
    return fabs(actual - expected) <= tolerance_of(dtype) * fmax(1, fabs(expected));
}

/* ---- what loops say ---- */

/* Of each place: how many, their sum, greatest, least, squares of distances, exponentials. */
static struct {
    double count[MOST], sum[MOST], most[MOST], least[MOST], squares[MOST], powers[MOST];
} expected;

static void expect(const tlm_tensor *x, uint32_t mask)
{
    int64_t elements = ops_elements(x);
    CHECK(elements <= MOST);
    for (int64_t i = 0; i < MOST; i++) {
        expected.count[i] = expected.sum[i] = expected.squares[i] = expected.powers[i] = 0;
        expected.most[i] = -INFINITY;
        expected.least[i] = INFINITY;
    }
    for (int64_t i = 0; i < elements; i++) {
        int64_t place = place_of(x, i, mask);
        expected.count[place]++;
        expected.sum[place] += element(x, i);
        expected.most[place] = fmax(expected.most[place], element(x, i));
        expected.least[place] = fmin(expected.least[place], element(x, i));
    }
    for (int64_t i = 0; i < elements; i++) {
        int64_t place = place_of(x, i, mask);
        double distance = element(x, i) - expected.sum[place] / expected.count[place];
        expected.squares[place] += distance * distance;
        expected.powers[place] += exp(element(x, i) - expected.most[place]);
    }
}

static double expected_of(const char *name, int64_t place, int64_t correction)
{
    if (!strcmp(name, "sum"))
        return expected.sum[place];
    if (!strcmp(name, "mean"))
        return expected.sum[place] / expected.count[place];
    if (!strcmp(name, "max"))
        return expected.most[place];
    if (!strcmp(name, "min"))
        return expected.least[place];
    return expected.squares[place] / (expected.count[place] - (double)correction);
}

/* ---- values of reductions ---- */

static const char *const reductions[] = {"sum", "mean", "var", "max", "min"};
enum { REDUCTIONS = 5 };

static void check_reduction(const char *name, const tlm_tensor *x, uint32_t mask, bool keepdims)
{
    ops_call call;
    CHECK(call_op(name, 1, x, params_of(mask, keepdims, 0), NULL, &call) == TLM_OK && call.save_count == 0);
    CHECK(call.out.axes == (keepdims ? x->axes : x->axes - __builtin_popcount(mask)) && ops_is_dense(&call.out));
    for (int axis = 0; keepdims && axis < x->axes; axis++)
        CHECK(call.out.shape[axis] == (mask >> axis & 1 ? 1 : x->shape[axis]));
    for (int64_t i = 0; i < ops_elements(&call.out); i++)
        CHECK(is_near(element(&call.out, i), expected_of(name, i, 0), x->dtype));
    ops_drop(&call.out);
}

static void test_reductions_of_any_axes_and_strides(void)
{
    static const int64_t shapes[][4] = {{3, 4, 2, 5}, {1, 7, 1, 3}, {2, 33, 2, 21}};
    for (int s = 0; s < 3; s++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (uint32_t mask = 0; mask < 16; mask++) {
                uint8_t dtype = (mask + (uint32_t)layout) % 2 ? TLM_FLOAT32 : TLM_FLOAT64;
                tlm_tensor x = laid_out(layout, dtype, 4, shapes[s]);
                expect(&x, mask);
                for (int i = 0; i < REDUCTIONS; i++)
                    check_reduction(reductions[i], &x, mask, mask % 3 == 0);
                ops_drop(&x);
            }
}

static void test_long_rows_are_summed_exactly(void)
{
    const int64_t shape[] = {1 << 22};
    tlm_tensor x;
    ops_call call;
    CHECK(ops_new(TLM_DEVICE_CPU, TLM_FLOAT32, 1, shape, &x) == TLM_OK && ops_fill(&x, 0.1) == TLM_OK);
    CHECK(call_op("mean", 1, &x, params_of(1, 0, 0), NULL, &call) == TLM_OK);
    CHECK(fabs(element(&call.out, 0) - 0.1) < 1e-7);
    ops_drop(&call.out);
    CHECK(call_op("var", 1, &x, params_of(1, 0, 1), NULL, &call) == TLM_OK);
    CHECK(element(&call.out, 0) < 1e-14);
    ops_drop(&call.out);
    ops_drop(&x);
}

static void test_reductions_of_nothing(void)
{
    const int64_t shape[] = {2, 0};
    tlm_tensor x = laid_out(DENSE, TLM_FLOAT64, 2, shape);
    ops_call call;
    CHECK(call_op("sum", 1, &x, params_of(2, 0, 0), NULL, &call) == TLM_OK && element(&call.out, 1) == 0);
    ops_drop(&call.out);
    CHECK(call_op("mean", 1, &x, params_of(3, 0, 0), NULL, &call) == TLM_OK && isnan(element(&call.out, 0)));
    ops_drop(&call.out);
    CHECK(call_op("sum", 1, &x, params_of(1, 0, 0), NULL, &call) == TLM_OK && ops_elements(&call.out) == 0);
    ops_drop(&call.out);
    CHECK((int)call_op("max", 1, &x, params_of(2, 0, 0), NULL, &call) == OPS_NOT_HERE);
    CHECK(call_op("softmax", 1, &x, params_of(1, 0, 0), NULL, &call) == TLM_OK);
    ops_drop(&call.out);
    ops_drop(&x);
}

static void test_whole_numbers_are_not_for_the_ops(void)
{
    const int64_t shape[] = {3};
    tlm_tensor x = laid_out(DENSE, TLM_INT64, 1, shape);
    static const char *const names[] = {"sum", "mean", "var", "max", "min", "softmax", "log_softmax", "layer_norm"};
    ops_call call;
    for (int i = 0; i < 8; i++)
        CHECK((int)call_op(names[i], 1, &x, params_of(0, 0, 0), NULL, &call) == OPS_NOT_HERE);
    ops_drop(&x);
}

/* ---- softmax ---- */

static void check_softmax(const tlm_tensor *x, int axis)
{
    ops_call power, logarithm;
    expect(x, 1u << axis);
    CHECK(call_op("softmax", 1, x, params_of(axis, 0, 0), NULL, &power) == TLM_OK);
    CHECK(call_op("log_softmax", 1, x, params_of(axis, 0, 0), NULL, &logarithm) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(x); i++) {
        int64_t place = place_of(x, i, 1u << axis);
        double less = element(x, i) - expected.most[place];
        CHECK(is_near(element(&power.out, i), exp(less) / expected.powers[place], x->dtype));
        CHECK(is_near(element(&logarithm.out, i), less - log(expected.powers[place]), x->dtype));
    }
    ops_drop(&power.out);
    ops_drop(&logarithm.out);
}

static void test_softmax_along_any_axis(void)
{
    /* Short rows, more rows than a block, rows longer than a block, more lanes than a panel. */
    static const int64_t shapes[][3] = {{3, 4, 5}, {70, 2, 3}, {2, 3, 2100}, {2, 5, 130}, {1, 1, 1}, {3, 17, 100}};
    for (int s = 0; s < 6; s++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int axis = 0; axis < 3; axis++) {
                tlm_tensor x = laid_out(layout, (axis + layout) % 2 ? TLM_FLOAT32 : TLM_FLOAT64, 3, shapes[s]);
                check_softmax(&x, axis);
                ops_drop(&x);
            }
}

static void test_softmax_of_numbers_whose_powers_do_not_fit(void)
{
    const int64_t shape[] = {3};
    tlm_tensor x = laid_out(DENSE, TLM_FLOAT32, 1, shape);
    ops_call call;
    set_element(&x, 0, 2000);
    set_element(&x, 1, 2000);
    set_element(&x, 2, -INFINITY);
    CHECK(call_op("softmax", 1, &x, params_of(0, 0, 0), NULL, &call) == TLM_OK);
    CHECK(element(&call.out, 0) == 0.5 && element(&call.out, 2) == 0);
    ops_drop(&call.out);
    CHECK(call_op("log_softmax", 1, &x, params_of(0, 0, 0), NULL, &call) == TLM_OK);
    CHECK(is_near(element(&call.out, 1), -log(2), TLM_FLOAT32) && element(&call.out, 2) == -INFINITY);
    ops_drop(&call.out);
    ops_drop(&x);
}

/* ---- cross entropy ---- */

static tlm_tensor random_classes(int64_t rows, int64_t classes)
{
    tlm_tensor target;
    CHECK(ops_new(TLM_DEVICE_CPU, TLM_INT64, 1, &rows, &target) == TLM_OK);
    for (int64_t i = 0; i < rows; i++)
        set_element(&target, i, floor(random_between(0, (double)classes - 1e-9)));
    return target;
}

static void check_cross_entropy(const tlm_tensor in[2], int64_t reduction)
{
    ops_call call;
    double sum = 0;
    expect(&in[0], 2);
    CHECK(call_op("cross_entropy", 2, in, params_of(reduction, 0, 0), NULL, &call) == TLM_OK);
    for (int64_t i = 0; i < in[0].shape[0]; i++) {
        double at = element(&in[0], i * in[0].shape[1] + (int64_t)element(&in[1], i));
        double loss = log(expected.powers[i]) - (at - expected.most[i]);
        CHECK(reduction != 2 || is_near(element(&call.out, i), loss, in[0].dtype));
        sum += loss;
    }
    if (reduction != 2)
        CHECK(is_near(element(&call.out, 0), reduction ? sum : sum / (double)in[0].shape[0], in[0].dtype));
    ops_drop(&call.out);
}

static void test_cross_entropy_of_any_strides(void)
{
    static const int64_t shapes[][2] = {{5, 3}, {1, 1}, {130, 10}, {3, 2100}};
    for (int s = 0; s < 4; s++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int64_t reduction = 0; reduction < 3; reduction++) {
                uint8_t dtype = (reduction + layout) % 2 ? TLM_FLOAT32 : TLM_FLOAT64;
                tlm_tensor in[] = {laid_out(layout, dtype, 2, shapes[s]), random_classes(shapes[s][0], shapes[s][1])};
                check_cross_entropy(in, reduction);
                ops_drop(&in[0]);
                ops_drop(&in[1]);
            }
}

static void test_cross_entropy_refuses_what_is_no_class(void)
{
    const int64_t shape[] = {2, 5};
    tlm_tensor in[] = {laid_out(DENSE, TLM_FLOAT64, 2, shape), random_classes(2, 5)};
    ops_call call;
    tlm_runtime_statistics before, after;
    tlm_runtime_stats(0, &before);
    set_element(&in[1], 1, 5);
    CHECK((int)call_op("cross_entropy", 2, in, params_of(0, 0, 0), NULL, &call) == OPS_WRONG_VALUE);
    CHECK(!strcmp(call.message, "target[1] of cross_entropy is 5, but the logits have 5 classes, from 0 on"));
    set_element(&in[1], 1, -1);
    CHECK((int)call_op("cross_entropy", 2, in, params_of(0, 0, 0), NULL, &call) == OPS_WRONG_VALUE);
    in[1].shape[0] = 1;
    CHECK((int)call_op("cross_entropy", 2, in, params_of(0, 0, 0), NULL, &call) == OPS_WRONG_SHAPE);
    CHECK(!strcmp(call.message, "cross_entropy needs logits [N,C] and a target [N], not [2,5] and [1]"));
    CHECK((int)call_op("cross_entropy", 2, (tlm_tensor[]){in[0], in[0]}, params_of(0, 0, 0), NULL, &call) ==
          OPS_NOT_HERE);
    tlm_runtime_stats(0, &after);
    CHECK(after.current_count == before.current_count);
    ops_drop(&in[0]);
    ops_drop(&in[1]);
}

/* ---- layer_norm ---- */

static void check_layer_norm(const tlm_tensor *in, uint32_t inputs, int row_axes)
{
    const tlm_tensor *x = &in[0];
    uint32_t mask = ((1u << row_axes) - 1) << (x->axes - row_axes);
    int64_t length = 1;
    ops_call call;
    for (int i = x->axes - row_axes; i < x->axes; i++)
        length *= x->shape[i];
    expect(x, mask);
    CHECK(call_op("layer_norm", inputs, in, params_of(row_axes, 0, 0), NULL, &call) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(x); i++) {
        int64_t place = place_of(x, i, mask);
        double value = element(x, i) - expected.sum[place] / (double)length;
        value /= sqrt(expected.squares[place] / (double)length + 1e-5);
        if (inputs > 1 && in[1].object)
            value *= element(&in[1], i % length);
        if (inputs > 2)
            value += element(&in[2], i % length);
        CHECK(is_near(element(&call.out, i), value, x->dtype));
    }
    ops_drop(&call.out);
}

static void test_layer_norm_of_rows_of_any_axes(void)
{
    const int64_t shape[] = {3, 4, 37};
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int row_axes = 1; row_axes <= 3; row_axes++) {
            uint8_t dtype = (row_axes + layout) % 2 ? TLM_FLOAT32 : TLM_FLOAT64;
            tlm_tensor in[3] = {laid_out(layout, dtype, 3, shape)}, plain[3];
            in[1] = laid_out(layout, dtype, row_axes, shape + 3 - row_axes);
            in[2] = laid_out(layout, dtype, row_axes, shape + 3 - row_axes);
            for (uint32_t inputs = 1; inputs <= 3; inputs++)
                check_layer_norm(in, inputs, row_axes);
            memcpy(plain, in, sizeof in);
            ops_constant(1, dtype, 0, NULL, &plain[1]);
            check_layer_norm(plain, 3, row_axes);
            for (int i = 0; i < 3; i++)
                ops_drop(&in[i]);
        }
}

static void test_layer_norm_refuses_a_weight_of_another_shape(void)
{
    const int64_t shape[] = {2, 3};
    tlm_tensor in[] = {laid_out(DENSE, TLM_FLOAT64, 2, shape), laid_out(DENSE, TLM_FLOAT64, 2, shape)};
    ops_call call;
    CHECK((int)call_op("layer_norm", 2, in, params_of(1, 0, 0), NULL, &call) == OPS_WRONG_SHAPE);
    CHECK(!strcmp(call.message,
                  "the weight of layer_norm has shape [2,3], but a row of x has [3]; they must be the same"));
    tlm_tensor twice[] = {in[0], in[1]};
    ops_constant(2, TLM_FLOAT64, 0, NULL, &twice[1]);
    CHECK((int)call_op("layer_norm", 2, twice, params_of(1, 0, 0), NULL, &call) == OPS_WRONG_SHAPE);
    ops_drop(&in[0]);
    ops_drop(&in[1]);
}

/* ---- what is saved ---- */

static uint64_t saved_bytes(const ops_call *call)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < call->save_count; i++) {
        const tlm_tensor *saved = &call->saves[i].tensor;
        bytes += (uint64_t)(ops_elements(saved) * ops_item_bytes(saved->dtype));
    }
    return bytes;
}

static void test_saved_bytes_are_no_more_than_the_rules_read(void)
{
    static const struct {
        const char *name;
        int64_t params[2];
        uint64_t bytes;
    } of_one[] = {{"sum", {2, 0}, 0},
                  {"mean", {3, 0}, 0},
                  {"var", {2, 0}, 8 * 16 * 4},
                  {"max", {2, 0}, 8 * 8},
                  {"min", {3, 0}, 8},
                  {"softmax", {1, 0}, 8 * 16 * 4},
                  {"log_softmax", {0, 0}, 8 * 16 * 4},
                  {"layer_norm", {1, 0}, 8 * 16 * 4 + 2 * 8 * 4}};
    const int64_t shape[] = {8, 16};
    const uint8_t needs[] = {1, 0};
    tlm_tensor in[] = {laid_out(DENSE, TLM_FLOAT32, 2, shape), random_classes(8, 16)};
    ops_call call;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        ops_params params = params_of(of_one[i].params[0], of_one[i].params[1], 1);
        CHECK(call_op(of_one[i].name, 1, in, params, needs, &call) == TLM_OK);
        CHECK(saved_bytes(&call) == of_one[i].bytes);
        drop_call(&call);
    }
    CHECK(call_op("cross_entropy", 2, in, params_of(0, 0, 0), needs, &call) == TLM_OK);
    CHECK(saved_bytes(&call) == 8 * 16 * 4 + 8 * 8);
    drop_call(&call);
    ops_drop(&in[0]);
    ops_drop(&in[1]);
}

static void test_a_bias_alone_saves_nothing(void)
{
    const int64_t shape[] = {8, 16};
    const uint8_t needs[] = {0, 0, 1};
    tlm_tensor in[] = {laid_out(DENSE, TLM_FLOAT32, 2, shape), laid_out(DENSE, TLM_FLOAT32, 1, shape + 1),
                       laid_out(DENSE, TLM_FLOAT32, 1, shape + 1)};
    ops_call call;
    CHECK(call_op("layer_norm", 3, in, params_of(1, 0, 0), needs, &call) == TLM_OK && call.save_count == 0);
    drop_call(&call);
    for (int i = 0; i < 3; i++)
        ops_drop(&in[i]);
}

int main(void)
{
    plain_loops();
    CHECK(ops_define() == TLM_OK);
    test_reductions_of_any_axes_and_strides();
    test_long_rows_are_summed_exactly();
    test_reductions_of_nothing();
    test_whole_numbers_are_not_for_the_ops();
    test_softmax_along_any_axis();
    test_softmax_of_numbers_whose_powers_do_not_fit();
    test_cross_entropy_of_any_strides();
    test_cross_entropy_refuses_what_is_no_class();
    test_layer_norm_of_rows_of_any_axes();
    test_layer_norm_refuses_a_weight_of_another_shape();
    test_saved_bytes_are_no_more_than_the_rules_read();
    test_a_bias_alone_saves_nothing();
    return 0;
}
