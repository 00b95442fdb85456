/* SPDX-License-Identifier: MIT
 * taping.h: a tape of float64 vectors with a few ops in plain loops, for C tests of the tape.
 */
#ifndef TLMEM_TAPING_H
#define TLMEM_TAPING_H

#include <math.h>
#include <string.h>

#include "check.h"
#include "tape/tape.h"
#include "trace.h"

#define FLOATING TLM_HOLDER(TLM_HOLDER_FLOATING, 0)
#define ME TLM_HOLDER(TLM_HOLDER_FOREIGN, 4711)

enum { LENGTH = 4 };
static uint32_t op_add, op_multiply, op_sin, op_exp, op_fail;
static uint32_t forgotten, dropped_places;
static tlm_tape *tape;

/* A value of the program: the object is held by ME, the slot by one reference. */
typedef struct {
    tlm_tensor tensor;
    tlm_slot slot;
} value;

static inline double *data(const tlm_tensor *tensor)
{
    static double number[8];
    if (tensor->object)
        return (double *)((char *)tlm_payload(tensor->object) + tensor->at.offset);
    for (int i = 0; i < 8; i++)
        number[i] = tensor->at.float64;
    return number;
}

static inline double element(const tlm_tensor *tensor, int64_t i)
{
    return data(tensor)[tensor->object ? i * tensor->strides[0] / 8 : 0];
}

static inline tlm_status fresh(int64_t length, tlm_tensor *out)
{
    *out = (tlm_tensor){.device = TLM_DEVICE_CPU, .dtype = TLM_FLOAT64, .axes = 1, .shape = {length}, .strides = {8}};
    return tlm_object_alloc(TLM_DEVICE_CPU, (uint64_t)length * 8, &out->object);
}

static inline tlm_status add_into(const tlm_tensor *into, const tlm_tensor *from)
{
    for (int64_t i = 0; i < into->shape[0]; i++)
        data(into)[i] += element(from, i);
    return TLM_OK;
}

static inline tlm_status copy_of(const tlm_tensor *from, tlm_tensor *out)
{
    tlm_status status = fresh(from->shape[0], out);
    for (int64_t i = 0; status == TLM_OK && i < from->shape[0]; i++)
        data(out)[i] = element(from, i);
    return status;
}

static inline tlm_status zero_all(const tlm_tensor *gradient)
{
    memset(data(gradient), 0, (size_t)gradient->shape[0] * 8);
    return TLM_OK;
}

static const tlm_arithmetic arithmetic = {add_into, copy_of};

/* ---- rules ---- */

static inline tlm_status add_rule(tlm_pass *pass)
{
    tlm_status status = tlm_pass_share(pass, 0, tlm_pass_grad(pass));
    return status == TLM_OK ? tlm_pass_share(pass, 1, tlm_pass_grad(pass)) : status;
}

/* input: gradient * factor, into fresh memory. */
static inline tlm_status give_product(tlm_pass *pass, uint32_t input, const tlm_tensor *factor,
                                      double (*function)(double))
{
    tlm_tensor made;
    const tlm_tensor *gradient = tlm_pass_grad(pass);
    tlm_status status = fresh(gradient->shape[0], &made);
    if (status != TLM_OK)
        return status;
    for (int64_t i = 0; i < made.shape[0]; i++)
        data(&made)[i] = element(gradient, i) * (function ? function(element(factor, i)) : element(factor, i));
    return tlm_pass_give(pass, input, &made);
}

static inline tlm_status multiply_rule(tlm_pass *pass)
{
    tlm_status status = tlm_pass_wants(pass, 0) ? give_product(pass, 0, tlm_pass_saved(pass, 1), NULL) : TLM_OK;
    return status == TLM_OK && tlm_pass_wants(pass, 1) ? give_product(pass, 1, tlm_pass_saved(pass, 0), NULL) : status;
}

static inline tlm_status sin_rule(tlm_pass *pass)
{
    return give_product(pass, 0, tlm_pass_saved(pass, 0), cos);
}

static inline tlm_status exp_rule(tlm_pass *pass)
{
    return give_product(pass, 0, tlm_pass_saved(pass, 0), NULL);
}

static inline tlm_status fail_rule(tlm_pass *pass)
{
    (void)pass;
    return TLM_RULE_FAILED;
}

static inline tlm_status compute(uint32_t op, const tlm_tensor *x, const tlm_tensor *y, tlm_tensor *out)
{
    tlm_status status = fresh(x->shape[0], out);
    for (int64_t i = 0; status == TLM_OK && i < x->shape[0]; i++) {
        double a = element(x, i), b = y ? element(y, i) : 0;
        data(out)[i] = op == op_add        ? a + b
                       : op == op_multiply ? a * b
                       : op == op_sin      ? sin(a)
                       : op == op_exp      ? exp(a)
                                           : a;
    }
    return status;
}

static inline tlm_status replay_op(void *context, const void *params, const tlm_tensor *inputs, uint32_t count,
                                   tlm_tensor *out)
{
    (void)params;
    return compute(*(uint32_t *)context, &inputs[0], count > 1 ? &inputs[1] : NULL, out);
}

static inline void forget(void *context, void *params)
{
    (void)context;
    (void)params;
    __atomic_add_fetch(&forgotten, 1, __ATOMIC_RELAXED);
}

static inline void drop_place(tlm_place place)
{
    (void)place;
    __atomic_add_fetch(&dropped_places, 1, __ATOMIC_RELAXED);
}

static inline uint32_t define(const char *name, tlm_rule rule, tlm_replay replay, uint32_t *op)
{
    tlm_op row = {.name = name, .rule = rule, .replay = replay, .forget = forget, .context = op};
    CHECK(tlm_op_define(&row, op) == TLM_OK && !strcmp(tlm_op_name(*op), name));
    return *op;
}

static inline void begin_taping(void)
{
    define("add", add_rule, replay_op, &op_add);
    define("multiply", multiply_rule, replay_op, &op_multiply);
    define("sin", sin_rule, replay_op, &op_sin);
    define("exp", exp_rule, replay_op, &op_exp);
    define("fail", fail_rule, NULL, &op_fail);
    tlm_tape_places(drop_place);
    CHECK(tlm_tape_create(tlm_label_of("test"), &arithmetic, &tape) == TLM_OK);
}

/* ---- what a program does ---- */

static inline value constant(double first)
{
    value made = {0};
    CHECK(fresh(LENGTH, &made.tensor) == TLM_OK);
    CHECK(tlm_move(made.tensor.object, FLOATING, ME) == TLM_OK);
    for (int i = 0; i < LENGTH; i++)
        data(&made.tensor)[i] = first + 0.25 * i;
    return made;
}

static inline value leaf(double first)
{
    value made = constant(first);
    CHECK(tlm_tape_leaf(tape, &made.tensor, &made.slot) == TLM_OK);
    return made;
}

enum { RECOMPUTED = 1 };

/* Saves what the op's rule reads. */
static inline tlm_status try_apply(uint32_t op, const value *x, const value *y, uint32_t recompute, value *out)
{
    static int code;
    out->slot = 0;
    tlm_status status = compute(op, &x->tensor, y ? &y->tensor : NULL, &out->tensor);
    if (status != TLM_OK)
        return status;
    tlm_slot slots[2] = {x->slot, y ? y->slot : 0};
    tlm_tensor tensors[2] = {x->tensor, y ? y->tensor : x->tensor};
    tlm_save saves[2] = {{.what = 0, .tensor = x->tensor}, {.what = 1, .tensor = tensors[1]}};
    if (op == op_exp)
        saves[0] = (tlm_save){.what = TLM_SAVE_OUTPUT, .tensor = out->tensor};
    uint64_t params = 7;
    tlm_record record = {
        .op = op,
        .inputs = y ? 2 : 1,
        .slots = slots,
        .tensors = tensors,
        .saves = saves,
        .save_count = op == op_add || op == op_fail ? 0
                      : op == op_multiply           ? 2
                                                    : 1,
        .recompute = recompute,
        .params = &params,
        .params_bytes = sizeof params,
        .output = &out->tensor,
        .place = {&code, 1},
    };
    status = tlm_tape_record(tape, &record, &out->slot);
    if (status != TLM_OK)
        tlm_free(out->tensor.object);
    else
        CHECK(tlm_move(out->tensor.object, FLOATING, ME) == TLM_OK);
    return status;
}

static inline value apply(uint32_t op, const value *x, const value *y)
{
    value out;
    CHECK(try_apply(op, x, y, 0, &out) == TLM_OK);
    return out;
}

/* The program lets go of a value: its memory and its place on the tape. */
static inline void drop(value *gone)
{
    tlm_release(gone->tensor.object, ME);
    tlm_slot_release(gone->slot);
    *gone = (value){0};
}

static inline tlm_tensor grad_of(const value *x)
{
    tlm_tensor gradient;
    CHECK(tlm_slot_grad(x->slot, &gradient) == TLM_OK);
    return gradient;
}

static inline bool has_grad(const value *x)
{
    return grad_of(x).object != 0;
}

static inline double grad_at(const value *x, int i)
{
    tlm_tensor gradient = grad_of(x);
    CHECK(gradient.object);
    return data(&gradient)[i];
}

static inline tlm_status backward(const value *root)
{
    return tlm_backward(root->slot, NULL, 0);
}

static inline tlm_tape_statistics sums(void)
{
    tlm_tape_statistics out;
    tlm_tape_stats(tape, &out);
    return out;
}

static inline int64_t live_objects(void)
{
    tlm_runtime_statistics out;
    tlm_runtime_stats(0, &out);
    return out.current_count;
}

static inline bool is_near(double one, double other)
{
    return fabs(one - other) <= 1e-12 * (1 + fabs(other));
}
#endif
