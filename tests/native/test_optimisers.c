/* SPDX-License-Identifier: MIT
 * test_optimisers.c: steps of SGD and Adam are those of their definitions, for any strides in memory; what does not fit is refused.
 *
 * tlm-test: sources=core,ops modes=address,valgrind */
#include "gradients.h"
#include "ops/optimisers.h"
#include "plain_loops.h"

STAND_IN_FOR_SAMPLER

enum { ROWS = 5, COLUMNS = 67, ELEMENTS = ROWS * COLUMNS, STEPS = 4 };
static const int64_t shape[] = {ROWS, COLUMNS};

/* ---- definitions, in float64 ---- */

static double value[ELEMENTS], slope[ELEMENTS], velocity[ELEMENTS], mean[ELEMENTS], square[ELEMENTS];

static void define_sgd(const ops_sgd *sgd, bool first)
{
    for (int i = 0; i < ELEMENTS; i++) {
        double gradient = slope[i] + sgd->weight_decay * value[i];
        velocity[i] = first ? gradient : sgd->momentum * velocity[i] + gradient;
        double ahead = sgd->nesterov ? gradient + sgd->momentum * velocity[i] : velocity[i];
        value[i] -= sgd->lr * (sgd->momentum > 0 ? ahead : gradient);
    }
}

static void define_adam(const ops_adam *adam, int step)
{
    for (int i = 0; i < ELEMENTS; i++) {
        double gradient = slope[i] + adam->weight_decay * value[i];
        mean[i] = adam->beta1 * mean[i] + (1 - adam->beta1) * gradient;
        square[i] = adam->beta2 * square[i] + (1 - adam->beta2) * gradient * gradient;
        double m = mean[i] / (1 - pow(adam->beta1, step)), s = square[i] / (1 - pow(adam->beta2, step));
        value[i] -= adam->lr * m / (sqrt(s) + adam->eps);
    }
}

/* ---- tensors ---- */

static tlm_tensor fresh(uint8_t dtype, bool turned, double low, double high)
{
    const int64_t other[] = {COLUMNS, ROWS};
    tlm_tensor made = random_tensor(TLM_DEVICE_CPU, dtype, 2, turned ? other : shape, low, high), seen = made;
    for (int i = 0; turned && i < 2; i++) {
        seen.shape[i] = made.shape[1 - i];
        seen.strides[i] = made.strides[1 - i];
    }
    return seen;
}

static void read_all(const tlm_tensor *tensor, double *out)
{
    for (int i = 0; i < ELEMENTS; i++)
        out[i] = element(tensor, i);
}

static void check_value(const tlm_tensor *parameter)
{
    for (int i = 0; i < ELEMENTS; i++)
        CHECK(fabs(element(parameter, i) - value[i]) <= (parameter->dtype == TLM_FLOAT64 ? 1e-13 : 2e-6));
}

/* ---- steps ---- */

static void check_sgd(const ops_sgd *sgd, uint8_t dtype, bool turned)
{
    tlm_tensor parameter = fresh(dtype, turned, -1, 1), speed = fresh(dtype, false, NAN, NAN);
    read_all(&parameter, value);
    for (int step = 1; step <= STEPS; step++) {
        tlm_tensor gradient = fresh(dtype, step % 2, -1, 1);
        read_all(&gradient, slope);
        define_sgd(sgd, step == 1);
        const tlm_tensor *state = sgd->momentum > 0 ? &speed : NULL;
        CHECK(ops_sgd_step(sgd, &parameter, &gradient, state, step == 1) == TLM_OK);
        check_value(&parameter);
        ops_drop(&gradient);
    }
    ops_drop(&parameter);
    ops_drop(&speed);
}

static void test_sgd(void)
{
    static const ops_sgd ways[] = {
        {0.1, 0, 0, false}, {0.1, 0, 0.3, false}, {0.1, 0.9, 0, false}, {0.1, 0.9, 0.3, false}, {0.1, 0.9, 0.3, true},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int turned = 0; turned < 2; turned++) {
            check_sgd(&ways[i], TLM_FLOAT64, turned);
            check_sgd(&ways[i], TLM_FLOAT32, turned);
        }
}

static void check_adam(const ops_adam *adam, uint8_t dtype, bool turned)
{
    tlm_tensor parameter = fresh(dtype, turned, -1, 1);
    tlm_tensor state[] = {fresh(dtype, turned, 0, 0), fresh(dtype, false, 0, 0)};
    read_all(&parameter, value);
    read_all(&state[0], mean);
    read_all(&state[1], square);
    for (int step = 1; step <= STEPS; step++) {
        tlm_tensor gradient = fresh(dtype, step % 2, -1, 1);
        read_all(&gradient, slope);
        define_adam(adam, step);
        CHECK(ops_adam_step(adam, step, &parameter, &gradient, &state[0], &state[1]) == TLM_OK);
        check_value(&parameter);
        ops_drop(&gradient);
    }
    ops_drop(&parameter);
    ops_drop(&state[0]);
    ops_drop(&state[1]);
}

static void test_adam(void)
{
    static const ops_adam ways[] = {{0.01, 0.9, 0.999, 1e-8, 0}, {0.1, 0.5, 0.9, 1e-3, 0.2}};
    for (int i = 0; i < 2; i++)
        for (int turned = 0; turned < 2; turned++) {
            check_adam(&ways[i], TLM_FLOAT64, turned);
            check_adam(&ways[i], TLM_FLOAT32, turned);
        }
}

/* The gradient of a sum was never spread out in memory. */
static void test_a_gradient_may_be_one_number(void)
{
    const ops_sgd sgd = {.lr = 0.5};
    tlm_tensor parameter = fresh(TLM_FLOAT64, false, -1, 1), number, row = fresh(TLM_FLOAT64, false, -1, 1);
    read_all(&parameter, value);
    ops_constant(3, TLM_FLOAT64, 2, shape, &number);
    CHECK(ops_sgd_step(&sgd, &parameter, &number, NULL, true) == TLM_OK);
    for (int i = 0; i < ELEMENTS; i++)
        value[i] -= 1.5;
    check_value(&parameter);
    row.strides[0] = 0;
    CHECK(ops_sgd_step(&sgd, &parameter, &row, NULL, true) == TLM_OK);
    for (int i = 0; i < ELEMENTS; i++)
        value[i] -= 0.5 * element(&row, i % COLUMNS);
    check_value(&parameter);
    ops_drop(&parameter);
    ops_drop(&row);
}

static void test_what_does_not_fit_changes_nothing(void)
{
    const ops_sgd sgd = {.lr = 0.5, .momentum = 0.9};
    const ops_adam adam = {0.01, 0.9, 0.999, 1e-8, 0};
    tlm_tensor parameter = fresh(TLM_FLOAT64, false, -1, 1), gradient = fresh(TLM_FLOAT64, false, -1, 1);
    tlm_tensor narrow = fresh(TLM_FLOAT32, false, -1, 1), turned = parameter, repeated = parameter, fewer = gradient;
    tlm_tensor whole = parameter;
    read_all(&parameter, value);
    turned.shape[0] = COLUMNS;
    turned.shape[1] = ROWS;
    repeated.strides[0] = 0;
    fewer.axes = 1;
    whole.dtype = TLM_INT64;
    CHECK(ops_sgd_step(&sgd, &parameter, &narrow, NULL, true) == TLM_BAD_ARGUMENT);
    CHECK(ops_sgd_step(&sgd, &parameter, &turned, NULL, true) == TLM_BAD_ARGUMENT);
    CHECK(ops_sgd_step(&sgd, &parameter, &fewer, NULL, true) == TLM_BAD_ARGUMENT);
    CHECK(ops_sgd_step(&sgd, &parameter, &gradient, &repeated, true) == TLM_BAD_ARGUMENT);
    CHECK(ops_sgd_step(&sgd, &repeated, &gradient, NULL, true) == TLM_BAD_ARGUMENT);
    CHECK(ops_sgd_step(&sgd, &whole, &whole, NULL, true) == TLM_BAD_ARGUMENT);
    CHECK(ops_adam_step(&adam, 0, &parameter, &gradient, &gradient, &gradient) == TLM_BAD_ARGUMENT);
    CHECK(ops_adam_step(&adam, 1, &parameter, &gradient, &narrow, &gradient) == TLM_BAD_ARGUMENT);
    for (int i = 0; i < ELEMENTS; i++)
        CHECK(element(&parameter, i) == value[i]);
    ops_drop(&gradient);
    CHECK(ops_sgd_step(&sgd, &parameter, &gradient, NULL, true) == TLM_FREED);
    ops_drop(&parameter);
    ops_drop(&narrow);
}

int main(void)
{
    plain_loops();
    test_sgd();
    test_adam();
    test_a_gradient_may_be_one_number();
    test_what_does_not_fit_changes_nothing();
    return 0;
}
