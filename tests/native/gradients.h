/* SPDX-License-Identifier: MIT
 * gradients.h: compares the rule of an op with central differences, and what it leaves behind with what was there.
 *
 *     static const gradient_case it = {.op = "multiply", .inputs = 2, .in = tensors, .wants = 3};
 *     check_gradients(&it);
 *
 * The inputs are float64 (others want no gradient), their elements all apart in memory. The op is recorded on a tape of its
 * own and gone back through from random numbers: saving what it saves; computing it again instead; in float32; and with each
 * request for memory failing in turn. Before and after, the same objects are alive. plain_loops and ops_define come first.
 */
#ifndef TLMEM_GRADIENTS_H
#define TLMEM_GRADIENTS_H

#include <math.h>
#include <string.h>

#include "check.h"
#include "ops/ops.h"

enum { GRADIENT_INPUTS = 8, GRADIENT_ELEMENTS = 4096 };

typedef struct {
    const char *op;
    uint32_t inputs;
    const tlm_tensor *in;
    uint32_t wants; /* bit i: input i wants a gradient */
    ops_params params;
    double step, tolerance; /* 0: 1e-6 and 1e-6, relative to the greatest of the gradients */
} gradient_case;

static uint64_t gradient_numbers = 88172645463325252u;

static inline double random_between(double low, double high)
{
    return low + (high - low) * (double)(next_random(&gradient_numbers) >> 11) / 9007199254740992.0;
}

/* ---- tensors for tests ---- */

static inline void *element_at(const tlm_tensor *tensor, int64_t number)
{
    char *at = ops_data(tensor);
    for (int axis = tensor->axes - 1; axis >= 0; number /= tensor->shape[axis--])
        at += number % tensor->shape[axis] * tensor->strides[axis];
    return at;
}

static inline double element(const tlm_tensor *tensor, int64_t number)
{
    const void *at = element_at(tensor, number);
    switch (tensor->dtype) {
    case TLM_FLOAT32:
        return *(const float *)at;
    case TLM_FLOAT64:
        return *(const double *)at;
    case TLM_INT64:
        return (double)*(const int64_t *)at;
    default:
        return *(const uint8_t *)at;
    }
}

static inline void set_element(const tlm_tensor *tensor, int64_t number, double value)
{
    void *at = element_at(tensor, number);
    switch (tensor->dtype) {
    case TLM_FLOAT32:
        *(float *)at = (float)value;
        break;
    case TLM_FLOAT64:
        *(double *)at = value;
        break;
    case TLM_INT64:
        *(int64_t *)at = (int64_t)value;
        break;
    default:
        *(uint8_t *)at = value != 0;
    }
}

/* A tensor that floats, with random elements; drop it with ops_drop. */
static inline tlm_tensor random_tensor(uint32_t device, uint8_t dtype, int axes, const int64_t *shape, double low,
                                       double high)
{
    tlm_tensor made;
    CHECK(ops_new(device, dtype, axes, shape, &made) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(&made); i++)
        set_element(&made, i, random_between(low, high));
    return made;
}

/* The same elements as another dtype, on a device. */
static inline tlm_tensor converted(const tlm_tensor *tensor, uint32_t device, uint8_t dtype)
{
    tlm_tensor made;
    if (tensor->object == 0) {
        ops_constant(ops_number_of(tensor), dtype, tensor->axes, tensor->shape, &made);
        return made;
    }
    CHECK(ops_new(device, dtype, tensor->axes, tensor->shape, &made) == TLM_OK);
    CHECK(ops_copy(tensor, &made) == TLM_OK);
    return made;
}

/* ---- one run ---- */

typedef struct {
    const gradient_case *of;
    int row;
    uint32_t device; /* of the inputs; fails when it is told to */
    tlm_tensor in[GRADIENT_INPUTS];
    tlm_tensor seed;
    double found[GRADIENT_INPUTS][GRADIENT_ELEMENTS];
} gradient_run;

static inline tlm_status forward_once(const gradient_run *run, const uint8_t *needs, ops_call *call)
{
    *call = (ops_call){.inputs = run->of->inputs, .in = run->in, .needs = needs, .params = run->of->params};
    return ops_forward(run->row, call);
}

static inline tlm_status record_once(const gradient_run *run, tlm_tape *tape, tlm_slot *slots, bool recompute,
                                     tlm_slot *root)
{
    uint8_t needs[GRADIENT_INPUTS] = {0};
    ops_call call;
    for (uint32_t i = 0; i < run->of->inputs; i++)
        if (run->of->wants >> i & 1) {
            needs[i] = 1;
            CHECK(tlm_tape_leaf(tape, &run->in[i], &slots[i]) == TLM_OK);
        }
    tlm_status status = forward_once(run, needs, &call);
    if (status != TLM_OK)
        return status;
    tlm_record record = {.op = ops_number(run->row), .inputs = call.inputs, .slots = slots};
    record.tensors = run->in;
    record.saves = call.saves;
    record.save_count = call.save_count;
    record.recompute = recompute;
    record.params = &call.params;
    record.params_bytes = ops_params_bytes(&call.params);
    record.output = &call.out;
    status = tlm_tape_record(tape, &record, root);
    for (uint32_t i = 0; status != TLM_OK && i < call.save_count; i++)
        if (call.saves[i].owned)
            ops_drop(&call.saves[i].tensor);
    if (!call.out_is_view)
        ops_drop(&call.out);
    return status;
}

static inline void take_gradient(gradient_run *run, uint32_t input, tlm_slot slot)
{
    tlm_tensor gradient;
    CHECK(tlm_slot_grad(slot, &gradient) == TLM_OK);
    CHECK(gradient.dtype == run->in[input].dtype && ops_same_shape(&gradient, &run->in[input]));
    for (int64_t i = 0; i < ops_elements(&gradient); i++)
        run->found[input][i] = element(&gradient, i);
}

/* Forward, back, and everything gone again. */
static inline tlm_status go_back_once(gradient_run *run, bool recompute)
{
    tlm_tape *tape;
    tlm_slot slots[GRADIENT_INPUTS] = {0}, root = 0;
    CHECK(tlm_tape_create(0, &ops_tape_arithmetic, &tape) == TLM_OK);
    tlm_status status = record_once(run, tape, slots, recompute, &root);
    if (status == TLM_OK)
        status = tlm_backward(root, &run->seed, 0);
    for (uint32_t i = 0; i < run->of->inputs; i++)
        if (status == TLM_OK && slots[i])
            take_gradient(run, i, slots[i]);
    for (uint32_t i = 0; i < run->of->inputs; i++)
        tlm_slot_release(slots[i]);
    tlm_slot_release(root);
    CHECK(tlm_tape_destroy(tape) == TLM_OK);
    return status;
}

/* ---- comparing ---- */

/* The output, weighted by the seed. */
static inline double weighed(const gradient_run *run)
{
    ops_call call;
    double sum = 0;
    CHECK(forward_once(run, NULL, &call) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(&call.out); i++)
        sum += element(&call.out, i) * element(&run->seed, i);
    if (!call.out_is_view)
        ops_drop(&call.out);
    return sum;
}

static inline void compare(const gradient_run *run, uint32_t input, int64_t number, double expected, double tolerance)
{
    double actual = run->found[input][number];
    if (fabs(actual - expected) <= tolerance)
        return;
    fprintf(stderr, "%s: the gradient of input %u, element %lld, is %.12g and should be %.12g\n", run->of->op, input,
            (long long)number, actual, expected);
    exit(1);
}

static inline void check_differences(const gradient_run *run)
{
    double step = run->of->step ? run->of->step : 1e-6, tolerance = run->of->tolerance ? run->of->tolerance : 1e-6;
    for (uint32_t input = 0; input < run->of->inputs; input++) {
        int64_t elements = run->of->wants >> input & 1 ? ops_elements(&run->in[input]) : 0;
        double expected[GRADIENT_ELEMENTS], greatest = 1;
        for (int64_t i = 0; i < elements; i++) {
            double before = element(&run->in[input], i);
            set_element(&run->in[input], i, before + step);
            double above = weighed(run);
            set_element(&run->in[input], i, before - step);
            expected[i] = (above - weighed(run)) / (2 * step);
            set_element(&run->in[input], i, before);
            greatest = fmax(greatest, fabs(expected[i]));
        }
        for (int64_t i = 0; i < elements; i++)
            compare(run, input, i, expected[i], tolerance * greatest);
    }
}

static inline void check_same(const gradient_run *run, const gradient_run *other, double tolerance)
{
    for (uint32_t input = 0; input < run->of->inputs; input++) {
        int64_t elements = run->of->wants >> input & 1 ? ops_elements(&run->in[input]) : 0;
        double greatest = 1;
        for (int64_t i = 0; i < elements; i++)
            greatest = fmax(greatest, fabs(other->found[input][i]));
        for (int64_t i = 0; i < elements; i++)
            compare(run, input, i, other->found[input][i], tolerance * greatest);
    }
}

/* ---- the checks ---- */

/* The same inputs on a device of the run's own, where memory can be made to fail. */
static inline void open_run(const gradient_case *of, const gradient_run *like, uint8_t dtype, gradient_run *run)
{
    run->of = of;
    run->row = ops_row_named(of->op);
    CHECK(run->row >= 0 && of->inputs <= GRADIENT_INPUTS);
    CHECK(tlm_device_limit(TLM_DEVICE_CPU, 0, 0, &run->device) == TLM_OK);
    for (uint32_t i = 0; i < of->inputs; i++) {
        bool has_fractions = of->in[i].dtype == TLM_FLOAT64;
        run->in[i] = converted(&of->in[i], run->device, has_fractions ? dtype : of->in[i].dtype);
    }
    if (like) {
        run->seed = converted(&like->seed, run->device, dtype);
        return;
    }
    ops_call call;
    CHECK(forward_once(run, NULL, &call) == TLM_OK);
    run->seed = random_tensor(run->device, dtype, call.out.axes, call.out.shape, -1, 1);
    if (!call.out_is_view)
        ops_drop(&call.out);
}

static inline void close_run(gradient_run *run)
{
    for (uint32_t i = 0; i < run->of->inputs; i++)
        ops_drop(&run->in[i]);
    ops_drop(&run->seed);
    CHECK(tlm_device_close(run->device) == TLM_OK);
}

/* Returns how many requests failed before none was left to fail. */
static inline int check_failing(gradient_run *run)
{
    int failed = 0;
    tlm_runtime_statistics before, after;
    tlm_runtime_stats(run->device, &before);
    for (tlm_status status = TLM_OUT_OF_MEMORY; status != TLM_OK; failed++) {
        CHECK(tlm_device_fail_nth(run->device, (uint64_t)failed + 1) == TLM_OK);
        status = go_back_once(run, false);
        CHECK(status == TLM_OK || status == TLM_OUT_OF_MEMORY);
        tlm_runtime_stats(run->device, &after);
        CHECK(after.current_count == before.current_count && after.current_bytes == before.current_bytes);
    }
    CHECK(tlm_device_fail_nth(run->device, 0) == TLM_OK);
    return failed - 1;
}

/* Inputs keep the strides they came with only here: elsewhere they lie row by row. */
static inline void check_as_they_lie(const gradient_case *of, const gradient_run *expected, gradient_run *run)
{
    *run = *expected;
    memcpy(run->in, of->in, of->inputs * sizeof *of->in);
    CHECK(go_back_once(run, false) == TLM_OK);
    check_same(run, expected, 1e-12);
}

static inline void check_gradients(const gradient_case *of)
{
    static gradient_run exact, other;
    tlm_runtime_statistics before, after;
    tlm_runtime_stats(0, &before);
    open_run(of, NULL, TLM_FLOAT64, &exact);
    CHECK(go_back_once(&exact, false) == TLM_OK);
    check_differences(&exact);
    check_as_they_lie(of, &exact, &other);
    check_failing(&exact);
    other = exact;
    if (ops_row_at(exact.row)->replays) {
        CHECK(go_back_once(&other, true) == TLM_OK);
        check_same(&other, &exact, 0);
    }
    open_run(of, &exact, TLM_FLOAT32, &other);
    CHECK(go_back_once(&other, false) == TLM_OK);
    check_same(&other, &exact, 1e-3);
    close_run(&other);
    close_run(&exact);
    tlm_runtime_stats(0, &after);
    CHECK(after.current_count == before.current_count && after.floating == before.floating);
}
#endif
