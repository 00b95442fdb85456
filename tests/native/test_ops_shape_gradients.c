/* SPDX-License-Identifier: MIT
 * test_ops_shape_gradients.c: gradients through products, shapes, parts, choices, joins and dropout, by differences.
 *
 * tlm-test: sources=core,ops modes=address,valgrind */
#include "gradients.h"
#include "plain_loops.h"

STAND_IN_FOR_SAMPLER

enum { MOST = 6 };

typedef struct {
    const char *op;
    uint32_t inputs, wants;
    int axes[MOST];
    int64_t shapes[MOST][5];
    uint32_t numbers;
    int64_t n[OPS_MOST_NUMBERS];
    double x;
} row;

/* Also from a seed that is one number, as that of a sum is: no rule may take its strides for those of memory. */
static void check_constant_seed(const gradient_case *of)
{
    static gradient_run run;
    open_run(of, NULL, TLM_FLOAT64, &run);
    tlm_tensor made = run.seed;
    ops_constant(0.75, TLM_FLOAT64, made.axes, made.shape, &run.seed);
    run.seed.device = made.device;
    CHECK(go_back_once(&run, false) == TLM_OK);
    check_differences(&run);
    ops_drop(&made);
    run.seed.object = 0;
    close_run(&run);
}

/* The same elements with axes reversed in memory. */
static tlm_tensor turned(const tlm_tensor *tensor)
{
    int64_t shape[8];
    tlm_tensor made;
    for (int i = 0; i < tensor->axes; i++)
        shape[i] = tensor->shape[tensor->axes - 1 - i];
    CHECK(ops_new(TLM_DEVICE_CPU, tensor->dtype, tensor->axes, shape, &made) == TLM_OK);
    tlm_tensor seen = made;
    for (int i = 0; i < tensor->axes; i++) {
        seen.shape[i] = tensor->shape[i];
        seen.strides[i] = made.strides[tensor->axes - 1 - i];
    }
    CHECK(ops_copy(tensor, &seen) == TLM_OK);
    return seen;
}

/* `index`, when there is one, is input 1. */
static void check_row(const row *row, const tlm_tensor *index)
{
    tlm_tensor in[MOST], other[MOST];
    gradient_case it = {.op = row->op, .inputs = row->inputs, .in = in, .wants = row->wants};
    it.params.x[0] = row->x;
    it.params.count = row->numbers;
    memcpy(it.params.n, row->n, sizeof row->n);
    for (uint32_t i = 0; i < row->inputs; i++) {
        bool is_index = index && i == 1;
        in[i] = is_index ? *index : random_tensor(TLM_DEVICE_CPU, TLM_FLOAT64, row->axes[i], row->shapes[i], -2, 2);
        other[i] = turned(&in[i]);
    }
    check_gradients(&it);
    check_constant_seed(&it);
    it.in = other;
    check_gradients(&it);
    for (uint32_t i = 0; i < row->inputs; i++) {
        ops_drop(&other[i]);
        if (!index || i != 1)
            ops_drop(&in[i]);
    }
}

static void check_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i], NULL);
}
#define CHECK_ROWS(ROWS) check_rows(ROWS, sizeof(ROWS) / sizeof *(ROWS))

static void check_products(void)
{
    static const row rows[] = {
        {"matmul", 2, 3, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}, 0},
        {"matmul", 2, 1, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}, 0},
        {"matmul", 2, 2, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}, 0},
        {"matmul", 2, 3, {2, 2}, {{1, 4}, {4, 5}}, 0, {0}, 0},
        {"matmul", 2, 3, {2, 2}, {{3, 1}, {1, 5}}, 0, {0}, 0},
        {"matmul", 2, 3, {1, 1}, {{4}, {4}}, 0, {0}, 0},
        {"matmul", 2, 3, {1, 2}, {{4}, {4, 3}}, 0, {0}, 0},
        {"matmul", 2, 3, {2, 1}, {{3, 4}, {4}}, 0, {0}, 0},
        {"matmul", 2, 3, {3, 2}, {{2, 3, 4}, {4, 5}}, 0, {0}, 0},
        {"matmul", 2, 3, {2, 3}, {{3, 4}, {2, 4, 5}}, 0, {0}, 0},
        {"matmul", 2, 3, {3, 1}, {{2, 3, 4}, {4}}, 0, {0}, 0},
        {"matmul", 2, 3, {1, 3}, {{4}, {2, 4, 5}}, 0, {0}, 0},
        {"matmul", 2, 3, {3, 3}, {{2, 3, 4}, {2, 4, 5}}, 0, {0}, 0},
        {"matmul", 2, 3, {4, 3}, {{2, 1, 3, 4}, {3, 4, 2}}, 0, {0}, 0},
        {"matmul", 2, 3, {3, 3}, {{1, 3, 4}, {3, 4, 1}}, 0, {0}, 0},
        {"matmul", 2, 3, {2, 2}, {{3, 0}, {0, 5}}, 0, {0}, 0},
        {"linear", 2, 3, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}, 0},
        {"linear", 3, 7, {2, 2, 1}, {{3, 4}, {4, 5}, {5}}, 0, {0}, 0},
        {"linear", 3, 4, {2, 2, 1}, {{3, 4}, {4, 5}, {5}}, 0, {0}, 0},
        {"linear", 3, 6, {3, 2, 1}, {{2, 3, 4}, {4, 5}, {5}}, 0, {0}, 0},
        {"linear", 3, 7, {1, 2, 1}, {{4}, {4, 5}, {5}}, 0, {0}, 0},
    };
    CHECK_ROWS(rows);
}

static void check_shapes(void)
{
    static const row rows[] = {
        {"reshape", 1, 1, {3}, {{2, 3, 4}}, 3, {2, 6, -1}, 0},
        {"reshape", 1, 1, {0}, {{0}}, 3, {2, 1, 1}, 0},
        {"reshape", 1, 1, {2}, {{0, 3}}, 2, {1, 0}, 0},
        {"squeeze", 1, 1, {3}, {{1, 3, 1}}, 1, {-1}, 0},
        {"squeeze", 1, 1, {3}, {{1, 3, 1}}, 1, {1 << 2}, 0},
        {"unsqueeze", 1, 1, {2}, {{2, 3}}, 1, {1}, 0},
        {"transpose", 1, 1, {3}, {{2, 3, 4}}, 1, {0}, 0},
        {"transpose", 1, 1, {3}, {{2, 3, 4}}, 4, {3, 1, 2, 0}, 0},
        {"swapaxes", 1, 1, {3}, {{2, 3, 4}}, 2, {0, 2}, 0},
        {"broadcast_to", 1, 1, {3}, {{1, 3, 1}}, 5, {4, 2, 5, 3, 4}, 0},
        {"broadcast_to", 1, 1, {2}, {{2, 3}}, 3, {2, 2, 3}, 0},
    };
    CHECK_ROWS(rows);
}

static void check_parts(void)
{
    static const row rows[] = {
        {"slice", 1, 1, {3}, {{5, 3, 4}}, 11, {3, 1 << 1, 4, 0, -2, 1, 0, 0, -3, INT64_MAX, 1}, 0},
        {"slice", 1, 1, {2}, {{5, 3}}, 5, {1, 0, INT64_MAX, INT64_MIN, -1}, 0},
        {"slice", 1, 1, {2}, {{5, 3}}, 5, {1, 1 << 2, -9, 9, 1}, 0},
        {"slice", 1, 1, {2}, {{5, 3}}, 5, {1, 0, 3, 1, 1}, 0},
        {"slice", 1, 1, {2}, {{1, 3}}, 5, {1, 0, 0, 0, 0}, 0},
        {"slice", 1, 1, {2}, {{5, 3}}, 5, {1, 0, 1, INT64_MAX, INT64_MAX}, 0},
        {"slice", 1, 1, {2}, {{3, 2}}, 8, {2, 0, -1, 0, 0, 0, 0, 0}, 0},
    };
    CHECK_ROWS(rows);
}

static void check_joins(void)
{
    static const row rows[] = {
        {"concat", 3, 7, {2, 2, 2}, {{2, 3}, {2, 1}, {2, 2}}, 1, {-1}, 0},
        {"concat", 3, 5, {2, 2, 2}, {{2, 3}, {0, 3}, {1, 3}}, 1, {0}, 0},
        {"concat", 1, 1, {2}, {{2, 3}}, 1, {0}, 0},
        {"stack", 3, 7, {2, 2, 2}, {{2, 3}, {2, 3}, {2, 3}}, 1, {1}, 0},
        {"stack", 3, 2, {2, 2, 2}, {{2, 3}, {2, 3}, {2, 3}}, 1, {-1}, 0},
        {"stack", 2, 3, {0, 0}, {{0}, {0}}, 1, {0}, 0},
    };
    CHECK_ROWS(rows);
}

static void check_others(void)
{
    static const row rows[] = {
        {"dropout", 1, 1, {2}, {{5, 7}}, 2, {3, 12}, 0.4},
        {"dropout", 1, 1, {1}, {{3}}, 2, {3, 12}, 1},
        {"cast", 1, 1, {2}, {{2, 3}}, 2, {0, 0}, 0},
    };
    CHECK_ROWS(rows);
}

static tlm_tensor indices(int axes, const int64_t *shape, const int64_t *values)
{
    tlm_tensor out;
    CHECK(ops_new(TLM_DEVICE_CPU, TLM_INT64, axes, shape, &out) == TLM_OK);
    for (int64_t i = 0; i < ops_elements(&out); i++)
        set_element(&out, i, (double)values[i]);
    return out;
}

static void check_choices(void)
{
    static const row taking[] = {
        {"take", 2, 1, {3}, {{4, 3, 5}}, 1, {0}, 0},
        {"take", 2, 1, {3}, {{4, 3, 5}}, 1, {-2}, 0},
        {"take", 2, 1, {3}, {{4, 3, 5}}, 1, {2}, 0},
        {"take", 2, 1, {1}, {{4}}, 1, {0}, 0},
        {"embedding", 2, 1, {2}, {{4, 3}}, 0, {0}, 0},
        {"gather", 2, 1, {2}, {{4, 3}}, 1, {0}, 0},
        {"gather", 2, 1, {2}, {{4, 3}}, 1, {1}, 0},
        {"scatter_add", 3, 5, {2, 0, 2}, {{4, 3}, {0}, {3, 2}}, 1, {0}, 0},
        {"scatter_add", 3, 1, {2, 0, 2}, {{4, 3}, {0}, {3, 2}}, 1, {1}, 0},
        {"scatter_add", 3, 4, {2, 0, 2}, {{4, 3}, {0}, {3, 2}}, 1, {1}, 0},
    };
    tlm_tensor index = indices(2, (int64_t[]){3, 2}, (int64_t[]){2, 1, -1, 2, 2, 0});
    tlm_tensor none = indices(1, (int64_t[]){0}, NULL);
    for (size_t i = 0; i < sizeof taking / sizeof *taking; i++)
        check_row(&taking[i], &index);
    check_row(&taking[0], &none);
    ops_drop(&index);
    ops_drop(&none);
}

static tlm_slot recorded(tlm_tape *tape, int number, const ops_call *call, const tlm_slot *slots)
{
    tlm_slot root;
    tlm_record record = {.op = ops_number(number), .inputs = call->inputs, .slots = slots, .saves = call->saves};
    record.save_count = call->save_count;
    record.params = &call->params;
    record.params_bytes = ops_params_bytes(&call->params);
    record.output = &call->out;
    CHECK(tlm_tape_record(tape, &record, &root) == TLM_OK);
    return root;
}

/* More inputs than lengths fit among the parameters: they are saved then. */
static void check_many_are_joined(void)
{
    enum { PARTS = 100 };
    tlm_tensor in[PARTS], gradient;
    tlm_slot slots[PARTS], root;
    uint8_t needs[PARTS];
    tlm_tape *tape;
    CHECK(tlm_tape_create(0, &ops_tape_arithmetic, &tape) == TLM_OK);
    for (int i = 0; i < PARTS; i++) {
        in[i] = random_tensor(TLM_DEVICE_CPU, TLM_FLOAT64, 1, (int64_t[]){i % 3}, 0, 1);
        CHECK(tlm_tape_leaf(tape, &in[i], &slots[i]) == TLM_OK);
        needs[i] = 1;
    }
    int number = ops_row_named("concat");
    ops_call call = {.inputs = PARTS, .in = in, .needs = needs};
    call.params.count = 1;
    CHECK(ops_forward(number, &call) == TLM_OK && call.save_count == 1 && ops_elements(&call.out) == PARTS - 1);
    root = recorded(tape, number, &call, slots);
    CHECK(tlm_backward(root, &call.out, 0) == TLM_OK);
    for (int i = 0; i < PARTS; i++) {
        CHECK(tlm_slot_grad(slots[i], &gradient) == TLM_OK && ops_same_shape(&gradient, &in[i]));
        for (int64_t j = 0; j < i % 3; j++)
            CHECK(element(&gradient, j) == element(&in[i], j));
        tlm_slot_release(slots[i]);
        ops_drop(&in[i]);
    }
    tlm_slot_release(root);
    ops_drop(&call.out);
    CHECK(tlm_tape_destroy(tape) == TLM_OK);
}

/* An index that somebody writes to behind the tape's back is refused, and never followed out of the memory. */
static void check_index_written_behind_the_back(void)
{
    static const char *const ops[] = {"take", "embedding", "gather", "scatter_add"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        tlm_tensor in[3], gradient;
        tlm_slot slots[3] = {0}, root;
        uint8_t needs[3] = {0};
        tlm_tape *tape;
        int number = ops_row_named(ops[i]), wanted = i == 3 ? 2 : 0;
        in[0] = random_tensor(TLM_DEVICE_CPU, TLM_FLOAT64, 2, (int64_t[]){4, 3}, 0, 1);
        in[1] = indices(2, (int64_t[]){2, 2}, (int64_t[]){0, 1, 2, 3});
        in[2] = random_tensor(TLM_DEVICE_CPU, TLM_FLOAT64, 2, (int64_t[]){2, 2}, 0, 1);
        CHECK(tlm_tape_create(0, &ops_tape_arithmetic, &tape) == TLM_OK);
        CHECK(tlm_tape_leaf(tape, &in[wanted], &slots[wanted]) == TLM_OK);
        needs[wanted] = 1;
        ops_call call = {.inputs = i == 3 ? 3 : 2, .in = in, .needs = needs, .params = {.count = 1}};
        CHECK(ops_forward(number, &call) == TLM_OK && call.save_count == 1);
        root = recorded(tape, number, &call, slots);
        set_element(&in[1], 3, 1e15);
        CHECK(tlm_backward(root, &call.out, 0) == TLM_BAD_ARGUMENT);
        CHECK(tlm_slot_grad(slots[wanted], &gradient) == TLM_OK && gradient.object == 0);
        tlm_slot_release(root);
        tlm_slot_release(slots[wanted]);
        ops_drop(&call.out);
        for (int j = 0; j < 3; j++)
            ops_drop(&in[j]);
        CHECK(tlm_tape_destroy(tape) == TLM_OK);
    }
}

static void check_saved_bytes(void)
{
    static const struct {
        row row;
        uint64_t bytes;
    } table[] = {
        {{"matmul", 2, 3, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}, 0}, (12 + 20) * 8},
        {{"matmul", 2, 1, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}, 0}, 20 * 8},
        {{"matmul", 2, 2, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}, 0}, 12 * 8},
        {{"linear", 3, 4, {2, 2, 1}, {{3, 4}, {4, 5}, {5}}, 0, {0}, 0}, 0},
        {{"linear", 3, 7, {2, 2, 1}, {{3, 4}, {4, 5}, {5}}, 0, {0}, 0}, (12 + 20) * 8},
        {{"reshape", 1, 1, {2}, {{3, 4}}, 2, {1, 12}, 0}, 0},
        {{"transpose", 1, 1, {2}, {{3, 4}}, 1, {0}, 0}, 0},
        {{"slice", 1, 1, {2}, {{3, 4}}, 5, {1, 0, 1, 2, 1}, 0}, 0},
        {{"concat", 2, 3, {2, 2}, {{3, 4}, {3, 4}}, 1, {0}, 0}, 0},
        {{"stack", 2, 3, {2, 2}, {{3, 4}, {3, 4}}, 1, {0}, 0}, 0},
        {{"dropout", 1, 1, {2}, {{3, 4}}, 2, {3, 12}, 0.5}, 12},
        {{"cast", 1, 1, {2}, {{3, 4}}, 2, {TLM_FLOAT32, 0}, 0}, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const row *row = &table[i].row;
        tlm_tensor in[MOST];
        uint8_t needs[MOST];
        ops_call call = {.inputs = row->inputs, .in = in, .needs = needs};
        call.params.x[0] = row->x;
        call.params.count = row->numbers;
        memcpy(call.params.n, row->n, sizeof row->n);
        for (uint32_t j = 0; j < row->inputs; j++) {
            in[j] = random_tensor(TLM_DEVICE_CPU, TLM_FLOAT64, row->axes[j], row->shapes[j], 0, 1);
            needs[j] = row->wants >> j & 1;
        }
        CHECK(ops_forward(ops_row_named(row->op), &call) == TLM_OK);
        uint64_t bytes = 0;
        for (uint32_t j = 0; j < call.save_count; j++) {
            const tlm_tensor *saved = &call.saves[j].tensor;
            bytes += (uint64_t)(ops_elements(saved) * ops_item_bytes(saved->dtype));
            if (call.saves[j].owned)
                ops_drop(saved);
        }
        CHECK(bytes == table[i].bytes);
        if (!call.out_is_view)
            ops_drop(&call.out);
        for (uint32_t j = 0; j < row->inputs; j++)
            ops_drop(&in[j]);
    }
}

int main(void)
{
    plain_loops();
    CHECK(ops_define() == TLM_OK);
    check_products();
    check_shapes();
    check_parts();
    check_joins();
    check_others();
    check_choices();
    check_many_are_joined();
    check_index_written_behind_the_back();
    check_saved_bytes();
    CHECK(tlm_objects_alive(NULL, 0) == 0);
    return 0;
}
