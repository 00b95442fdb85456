/* SPDX-License-Identifier: MIT
 * test_ops.c: the ops of each element give the values and the gradients that they should, whatever shapes and strides come.
 *
 * tlm-test: sources=core,ops modes=address,valgrind */
#include "gradients.h"
#include "plain_loops.h"

STAND_IN_FOR_SAMPLER

static const uint32_t CPU = TLM_DEVICE_CPU;

static tlm_tensor random_of(int axes, const int64_t *shape, double low, double high)
{
    return random_tensor(CPU, TLM_FLOAT64, axes, shape, low, high);
}

static tlm_tensor number(double value, uint8_t dtype)
{
    tlm_tensor made;
    ops_constant(value, dtype, 0, NULL, &made);
    return made;
}

/* The same memory with its axes in reverse order. */
static tlm_tensor transposed(const tlm_tensor *tensor)
{
    tlm_tensor seen = *tensor;
    for (int axis = 0; axis < seen.axes; axis++) {
        seen.shape[axis] = tensor->shape[seen.axes - 1 - axis];
        seen.strides[axis] = tensor->strides[seen.axes - 1 - axis];
    }
    return seen;
}

/* The same memory with the last axis read backwards. */
static tlm_tensor reversed(const tlm_tensor *tensor)
{
    tlm_tensor seen = *tensor;
    int last = seen.axes - 1;
    seen.at.offset += (uint64_t)((seen.shape[last] - 1) * seen.strides[last]);
    seen.strides[last] = -seen.strides[last];
    return seen;
}

static tlm_status call_op(const char *name, uint32_t inputs, const tlm_tensor *in, const ops_params *params,
                          ops_call *call)
{
    *call = (ops_call){.inputs = inputs, .in = in};
    if (params)
        call->params = *params;
    CHECK(ops_row_named(name) >= 0);
    return ops_forward(ops_row_named(name), call);
}

/* ---- values ---- */

typedef struct {
    const char *name;
    double (*of)(double a, double b);
    double low, high;
    ops_params params;
} value_case;

#define OF(name, expression)                                                                                           \
    static double name(double a, double b)                                                                             \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        return expression;                                                                                             \
    }
OF(add_of, a + b)
OF(subtract_of, a - b)
OF(multiply_of, a *b)
OF(divide_of, a / b)
OF(power_of, pow(a, b))
OF(maximum_of, fmax(a, b))
OF(minimum_of, fmin(a, b))
OF(negative_of, -a)
OF(square_of, a *a)
OF(exp_of, exp(a))
OF(log_of, log(a))
OF(sqrt_of, sqrt(a))
OF(sin_of, sin(a))
OF(cos_of, cos(a))
OF(absolute_of, fabs(a))
OF(tanh_of, tanh(a))
OF(sigmoid_of, 1 / (1 + exp(-a)))
OF(relu_of, a > 0 ? a : 0)
OF(gelu_of, a *erfc(-a / sqrt(2)) / 2)
OF(gelu_tanh_of, a / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (a + 0.044715 * a * a * a))))
OF(clip_of, a < -0.5 ? -0.5 : a > 1 ? 1 : a)
#undef OF

static const value_case of_one[] = {
    {"negative", negative_of, -3, 3, {.count = 0}},
    {"square", square_of, -3, 3, {.count = 0}},
    {"exp", exp_of, -3, 3, {.count = 0}},
    {"log", log_of, 0.1, 3, {.count = 0}},
    {"sqrt", sqrt_of, 0.1, 3, {.count = 0}},
    {"sin", sin_of, -3, 3, {.count = 0}},
    {"cos", cos_of, -3, 3, {.count = 0}},
    {"absolute", absolute_of, -3, 3, {.count = 0}},
    {"tanh", tanh_of, -3, 3, {.count = 0}},
    {"sigmoid", sigmoid_of, -9, 9, {.count = 0}},
    {"relu", relu_of, -3, 3, {.count = 0}},
    {"gelu", gelu_of, -6, 6, {.count = 0}},
    {"gelu", gelu_tanh_of, -6, 6, {.count = 1, .n = {1}}},
    {"clip", clip_of, -2, 2, {.x = {-0.5, 1}}},
};
static const value_case of_two[] = {
    {"add", add_of, -3, 3, {.count = 0}},           {"subtract", subtract_of, -3, 3, {.count = 0}},
    {"multiply", multiply_of, -3, 3, {.count = 0}}, {"divide", divide_of, 0.5, 3, {.count = 0}},
    {"power", power_of, 0.5, 3, {.count = 0}},      {"maximum", maximum_of, -3, 3, {.count = 0}},
    {"minimum", minimum_of, -3, 3, {.count = 0}},
};
enum { OF_ONE = sizeof of_one / sizeof *of_one, OF_TWO = sizeof of_two / sizeof *of_two };

static void check_values(const value_case *of, const tlm_tensor *in, uint32_t inputs, double tolerance)
{
    ops_call call;
    CHECK(call_op(of->name, inputs, in, &of->params, &call) == TLM_OK && !call.out_is_view && call.save_count == 0);
    CHECK(ops_is_dense(&call.out) && call.out.dtype == in[0].dtype);
    tlm_tensor seen[2];
    for (uint32_t i = 0; i < inputs; i++)
        CHECK(ops_expand(&in[i], call.out.axes, call.out.shape, &seen[i]) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(&call.out); i++) {
        double expected = of->of(element(&seen[0], i), inputs > 1 ? element(&seen[1], i) : 0);
        CHECK(fabs(element(&call.out, i) - expected) <= tolerance * fmax(1, fabs(expected)));
    }
    ops_drop(&call.out);
}

static void check_both_dtypes(const value_case *of, const tlm_tensor *in, uint32_t inputs)
{
    check_values(of, in, inputs, 1e-14);
    tlm_tensor narrow[2] = {converted(&in[0], CPU, TLM_FLOAT32), converted(&in[inputs - 1], CPU, TLM_FLOAT32)};
    check_values(of, narrow, inputs, 2e-6);
    ops_drop(&narrow[0]);
    ops_drop(&narrow[1]);
}

static void test_values_of_one_input(void)
{
    const int64_t shape[] = {3, 5, 7}, long_row[] = {1500};
    for (int i = 0; i < OF_ONE; i++) {
        tlm_tensor whole = random_of(3, shape, of_one[i].low, of_one[i].high), turned = transposed(&whole);
        tlm_tensor backwards = reversed(&whole), row = random_of(1, long_row, of_one[i].low, of_one[i].high);
        tlm_tensor backwards_row = reversed(&row), scalar = whole;
        scalar.axes = 0;
        check_both_dtypes(&of_one[i], &whole, 1);
        check_both_dtypes(&of_one[i], &turned, 1);
        check_both_dtypes(&of_one[i], &backwards, 1);
        check_both_dtypes(&of_one[i], &row, 1);
        check_both_dtypes(&of_one[i], &backwards_row, 1);
        check_both_dtypes(&of_one[i], &scalar, 1);
        ops_drop(&whole);
        ops_drop(&row);
    }
}

static void test_values_of_two_inputs_that_broadcast(void)
{
    static const struct {
        int axes[2];
        int64_t shapes[2][4];
    } pairs[] = {
        {{2, 2}, {{4, 6}, {4, 6}}}, {{2, 1}, {{4, 6}, {6}}},       {{1, 2}, {{6}, {4, 6}}},
        {{2, 2}, {{4, 1}, {1, 6}}}, {{3, 2}, {{2, 3, 4}, {3, 1}}}, {{0, 2}, {{0}, {3, 4}}},
        {{2, 0}, {{3, 4}, {0}}},    {{2, 2}, {{200, 2}, {1, 2}}},  {{4, 3}, {{2, 1, 3, 2}, {5, 1, 2}}},
        {{2, 2}, {{0, 3}, {1, 3}}},
    };
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int i = 0; i < OF_TWO; i++) {
            const value_case *of = &of_two[i];
            tlm_tensor in[2] = {random_of(pairs[p].axes[0], pairs[p].shapes[0], of->low, of->high),
                                random_of(pairs[p].axes[1], pairs[p].shapes[1], of->low, of->high)};
            check_both_dtypes(of, in, 2);
            ops_drop(&in[0]);
            ops_drop(&in[1]);
        }
}

static void test_values_of_steps_and_numbers(void)
{
    const int64_t shape[] = {9, 7}, turned_shape[] = {7, 9};
    for (int i = 0; i < OF_TWO; i++) {
        const value_case *of = &of_two[i];
        tlm_tensor left = random_of(2, shape, of->low, of->high), right = random_of(2, turned_shape, of->low, of->high);
        tlm_tensor turned[2] = {left, transposed(&right)};
        tlm_tensor backwards[2] = {reversed(&left), turned[1]};
        tlm_tensor with_number[2] = {left, number(1.5, TLM_FLOAT64)};
        tlm_tensor of_number[2] = {number(1.5, TLM_FLOAT64), turned[1]};
        check_both_dtypes(of, turned, 2);
        check_both_dtypes(of, backwards, 2);
        check_both_dtypes(of, with_number, 2);
        check_both_dtypes(of, of_number, 2);
        ops_drop(&left);
        ops_drop(&right);
    }
}

static void test_powers_by_numbers_with_a_loop_of_their_own(void)
{
    const int64_t shape[] = {40};
    static const double exponents[] = {2, 0.5, 1, 0, -1, 3, -2.5};
    tlm_tensor base = random_of(1, shape, 0.2, 3);
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
        tlm_tensor in[2] = {base, number(exponents[i], TLM_FLOAT64)};
        check_both_dtypes(&of_two[4], in, 2);
    }
    ops_drop(&base);
}

static void test_where_takes_one_or_the_other(void)
{
    const int64_t shape[] = {5, 6}, row[] = {6};
    tlm_tensor in[3] = {random_tensor(CPU, TLM_BOOL, 2, shape, 0, 1), random_of(1, row, -1, 1),
                        random_of(2, shape, -1, 1)};
    for (int64_t i = 0; i < 30; i++)
        set_element(&in[0], i, i % 3 == 0);
    for (int with_number = 0; with_number < 2; with_number++) {
        tlm_tensor left = with_number ? number(7, TLM_FLOAT64) : in[1], given[3] = {in[0], left, in[2]};
        ops_call call;
        CHECK(call_op("where", 3, given, NULL, &call) == TLM_OK);
        for (int64_t i = 0; i < 30; i++) {
            double taken = with_number ? 7 : element(&in[1], i % 6);
            CHECK(element(&call.out, i) == (i % 3 == 0 ? taken : element(&in[2], i)));
        }
        ops_drop(&call.out);
    }
    for (int i = 0; i < 3; i++)
        ops_drop(&in[i]);
}

/* ---- what is not taken ---- */

static void test_what_is_wrong_is_said_and_leaves_nothing(void)
{
    const int64_t shape[] = {4, 6}, other[] = {5};
    tlm_runtime_statistics before, after;
    tlm_tensor in[2] = {random_of(2, shape, 0, 1), random_of(1, other, 0, 1)}, mixed[2] = {in[0], in[0]};
    mixed[1].dtype = TLM_FLOAT32;
    ops_call call;
    tlm_runtime_stats(0, &before);
    CHECK(call_op("add", 2, in, NULL, &call) == (tlm_status)OPS_WRONG_SHAPE);
    CHECK(strcmp(call.message, "shapes [4,6] and [5] do not broadcast") == 0);
    CHECK(call_op("add", 2, mixed, NULL, &call) == (tlm_status)OPS_NOT_HERE);
    mixed[0].dtype = mixed[1].dtype = TLM_INT64;
    CHECK(call_op("add", 2, mixed, NULL, &call) == (tlm_status)OPS_NOT_HERE);
    CHECK(call_op("exp", 1, mixed, NULL, &call) == (tlm_status)OPS_NOT_HERE);
    tlm_tensor three[3] = {in[0], in[0], in[0]}; /* the condition is no bool */
    CHECK(call_op("where", 3, three, NULL, &call) == (tlm_status)OPS_NOT_HERE);
    tlm_runtime_stats(0, &after);
    CHECK(after.current_count == before.current_count);
    ops_drop(&in[0]);
    CHECK(call_op("exp", 1, in, NULL, &call) == TLM_FREED);
    ops_drop(&in[1]);
    tlm_runtime_stats(0, &after);
    CHECK(after.current_count == before.current_count - 2);
}

/* ---- copying and reducing ---- */

static void test_copies_convert(void)
{
    static const uint8_t dtypes[] = {TLM_FLOAT32, TLM_FLOAT64, TLM_INT64, TLM_BOOL};
    const int64_t shape[] = {3, 4};
    for (int f = 0; f < 4; f++)
        for (int t = 0; t < 4; t++) {
            tlm_tensor from = random_tensor(CPU, dtypes[f], 2, shape, -4, 4), turned = transposed(&from), to;
            CHECK(ops_new(CPU, dtypes[t], 2, turned.shape, &to) == TLM_OK && ops_copy(&turned, &to) == TLM_OK);
            for (int64_t i = 0; i < 12; i++) {
                double value = element(&turned, i);
                double expected = dtypes[t] == TLM_BOOL ? value != 0 : dtypes[t] == TLM_INT64 ? trunc(value) : value;
                CHECK(element(&to, i) == (dtypes[t] == TLM_FLOAT32 ? (double)(float)expected : expected));
            }
            CHECK(ops_fill(&to, 1) == TLM_OK && element(&to, 11) == 1);
            ops_drop(&from);
            ops_drop(&to);
        }
}

static void test_reductions_sum_any_axes_of_any_strides(void)
{
    const int64_t shape[] = {4, 3, 5};
    tlm_tensor whole = random_of(3, shape, -1, 1), turned = transposed(&whole), back = reversed(&whole);
    const tlm_tensor *seen[] = {&whole, &turned, &back};
    for (int s = 0; s < 3; s++)
        for (uint32_t mask = 0; mask < 8; mask++) {
            double expected[60] = {0};
            tlm_tensor out, once = *seen[s];
            for (int axis = 0; axis < 3; axis++)
                once.shape[axis] = mask >> axis & 1 ? 1 : once.shape[axis];
            CHECK(ops_new(CPU, TLM_FLOAT64, 3, once.shape, &out) == TLM_OK);
            for (int64_t i = 0; i < 60; i++) {
                int64_t at = 0, rest = i, index[3];
                for (int axis = 2; axis >= 0; rest /= seen[s]->shape[axis--])
                    index[axis] = mask >> axis & 1 ? 0 : rest % seen[s]->shape[axis];
                for (int axis = 0; axis < 3; axis++)
                    at = at * out.shape[axis] + index[axis];
                expected[at] += element(seen[s], i);
            }
            CHECK(ops_reduce(OPS_ADD, seen[s], mask, 0, &out) == TLM_OK);
            for (int64_t i = 0; i < ops_elements(&out); i++)
                CHECK(fabs(element(&out, i) - expected[i]) < 1e-13);
            ops_drop(&out);
        }
    ops_drop(&whole);
}

/* ---- gradients ---- */

static void test_gradients_of_one_input(void)
{
    const int64_t shape[] = {3, 4};
    for (int i = 0; i < OF_ONE; i++) {
        tlm_tensor whole = random_of(2, shape, of_one[i].low, of_one[i].high), turned = transposed(&whole);
        gradient_case of = {.op = of_one[i].name, .inputs = 1, .in = &whole, .wants = 1, .params = of_one[i].params};
        check_gradients(&of);
        of.in = &turned;
        check_gradients(&of);
        ops_drop(&whole);
    }
}

static void test_gradients_of_two_inputs(void)
{
    static const struct {
        int axes[2];
        int64_t shapes[2][3];
    } pairs[] = {
        {{2, 2}, {{3, 4}, {3, 4}}},    {{2, 1}, {{3, 4}, {4}}}, {{1, 2}, {{4}, {3, 4}}}, {{2, 2}, {{3, 1}, {1, 4}}},
        {{3, 2}, {{2, 3, 2}, {3, 1}}}, {{0, 2}, {{0}, {3, 2}}}, {{2, 0}, {{3, 2}, {0}}},
    };
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int i = 0; i < OF_TWO; i++)
            for (uint32_t wants = 1; wants < 4; wants++) {
                const value_case *of = &of_two[i];
                tlm_tensor in[2] = {random_of(pairs[p].axes[0], pairs[p].shapes[0], of->low, of->high),
                                    random_of(pairs[p].axes[1], pairs[p].shapes[1], of->low, of->high)};
                gradient_case it = {.op = of->name, .inputs = 2, .in = in, .wants = wants};
                check_gradients(&it);
                ops_drop(&in[0]);
                ops_drop(&in[1]);
            }
}

static void test_gradients_beside_numbers(void)
{
    const int64_t shape[] = {3, 4};
    static const double numbers[] = {2, 0.5, 1, 0, -1, 3, 3.5};
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        for (int i = 0; i < OF_TWO; i++) {
            const value_case *of = &of_two[i];
            bool is_power = of->of == power_of, is_quotient = of->of == divide_of;
            tlm_tensor tensor = random_of(2, shape, 0.6, 0.9);
            tlm_tensor right[2] = {tensor, number(numbers[n], TLM_FLOAT64)};
            tlm_tensor left[2] = {right[1], tensor};
            gradient_case it = {.op = of->name, .inputs = 2, .in = right, .wants = 1};
            if (!is_quotient || numbers[n] != 0)
                check_gradients(&it);
            it.in = left;
            it.wants = 2;
            if (!is_power || numbers[n] > 0)
                check_gradients(&it);
            ops_drop(&tensor);
        }
}

static void test_gradients_of_where(void)
{
    const int64_t shape[] = {3, 4}, row[] = {4};
    tlm_tensor in[3] = {random_tensor(CPU, TLM_BOOL, 2, shape, 0, 1), random_of(1, row, -1, 1),
                        random_of(2, shape, -1, 1)};
    for (int64_t i = 0; i < 12; i++)
        set_element(&in[0], i, i % 3 == 0);
    for (uint32_t wants = 2; wants <= 6; wants += 2) {
        gradient_case it = {.op = "where", .inputs = 3, .in = in, .wants = wants};
        check_gradients(&it);
    }
    for (int i = 0; i < 3; i++)
        ops_drop(&in[i]);
}

/* ---- where a function has no derivative, or has it at its edge ---- */

enum { MOST_EDGES = 8 };

typedef struct {
    const char *op;
    uint32_t inputs;
    ops_params params;
    int count;
    double in[2][MOST_EDGES], gradients[2][MOST_EDGES]; /* of an output whose gradient is 1 everywhere */
} edge_case;

static void check_edge(const edge_case *edge)
{
    static gradient_run run;
    const int64_t shape[] = {edge->count};
    tlm_tensor in[2];
    for (uint32_t i = 0; i < edge->inputs; i++) {
        in[i] = random_of(1, shape, 0, 1);
        for (int at = 0; at < edge->count; at++)
            set_element(&in[i], at, edge->in[i][at]);
    }
    gradient_case of = {.op = edge->op, .inputs = edge->inputs, .in = in, .params = edge->params};
    of.wants = (1u << edge->inputs) - 1;
    open_run(&of, NULL, TLM_FLOAT64, &run);
    CHECK(ops_fill(&run.seed, 1) == TLM_OK && go_back_once(&run, false) == TLM_OK);
    for (uint32_t i = 0; i < edge->inputs; i++)
        for (int at = 0; at < edge->count; at++)
            CHECK(isnan(edge->gradients[i][at]) ? isnan(run.found[i][at]) : run.found[i][at] == edge->gradients[i][at]);
    close_run(&run);
    for (uint32_t i = 0; i < edge->inputs; i++)
        ops_drop(&in[i]);
}

static void test_gradients_where_there_is_none_in_the_strict_sense(void)
{
    static const edge_case edges[] = {
        {"absolute", 1, {.count = 0}, 3, {{-2, 0, 2}}, {{-1, 0, 1}}},
        {"relu", 1, {.count = 0}, 3, {{-2, 0, 2}}, {{0, 0, 1}}},
        {"clip", 1, {.x = {-1, 1}}, 6, {{-2, -1, 0, 1, 2, NAN}}, {{0, 1, 1, 1, 0, 0}}},
        {"clip", 1, {.x = {-INFINITY, 1}}, 3, {{-2, 1, 2}}, {{1, 1, 0}}},
        {"maximum", 2, {.count = 0}, 3, {{1, 2, 3}, {2, 2, 2}}, {{0, 0.5, 1}, {1, 0.5, 0}}},
        {"minimum", 2, {.count = 0}, 3, {{1, 2, 3}, {2, 2, 2}}, {{1, 0.5, 0}, {0, 0.5, 1}}},
        {"power", 2, {.count = 0}, 4, {{0, 0, 2, -2}, {0, 2, 0, 0}}, {{0, 0, 0, 0}, {0, 0, 0.6931471805599453, NAN}}},
        {"square", 1, {.count = 0}, 2, {{0, -3}}, {{0, -6}}},
        {"sigmoid", 1, {.count = 0}, 3, {{-1e300, 0, 1e300}}, {{0, 0.25, 0}}},
        {"gelu", 1, {.count = 0}, 3, {{-1e3, 0, 1e3}}, {{0, 0.5, 1}}},
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        check_edge(&edges[i]);
}

int main(void)
{
    plain_loops();
    CHECK(ops_define() == TLM_OK);
    test_values_of_one_input();
    test_values_of_two_inputs_that_broadcast();
    test_values_of_steps_and_numbers();
    test_powers_by_numbers_with_a_loop_of_their_own();
    test_where_takes_one_or_the_other();
    test_what_is_wrong_is_said_and_leaves_nothing();
    test_copies_convert();
    test_reductions_sum_any_axes_of_any_strides();
    test_gradients_of_one_input();
    test_gradients_of_two_inputs();
    test_gradients_beside_numbers();
    test_gradients_of_where();
    test_gradients_where_there_is_none_in_the_strict_sense();
    CHECK(tlm_objects_alive(NULL, 0) == 0);
    return 0;
}
