/* SPDX-License-Identifier: MIT
 * test_ops_into.c: a result in memory that was given has the bits that it has in fresh memory, wherever that lies; what does
 * not fit, and what fails, leaves it as it was.
 *
 * tlm-test: sources=core,ops modes=address,valgrind */
#include "memory/memory.h"
#include "ops_values.h"

STAND_IN_FOR_SAMPLER

typedef struct {
    const char *name;
    uint32_t inputs;
    int axes[3];
    int64_t shapes[3][4];
    uint32_t numbers;
    int64_t n[8];
} op_case;

static const op_case cases[] = {
    {"add", 2, {2, 2}, {{3, 5}, {3, 5}}, 0, {0}},
    {"multiply", 2, {2, 1}, {{3, 5}, {5}}, 0, {0}},
    {"negative", 1, {3}, {{2, 3, 4}}, 0, {0}},
    {"power", 2, {2, 2}, {{3, 5}, {3, 5}}, 0, {0}},
    {"sin", 1, {2}, {{3, 5}}, 0, {0}},
    {"relu", 1, {2}, {{3, 5}}, 0, {0}},
    {"sigmoid", 1, {1}, {{700}}, 0, {0}},
    {"gelu", 1, {2}, {{3, 5}}, 1, {1}},
    {"maximum", 2, {2, 2}, {{3, 5}, {3, 5}}, 0, {0}},
    {"sum", 1, {3}, {{2, 3, 4}}, 2, {2, 0}},
    {"sum", 1, {3}, {{2, 3, 4}}, 2, {4, 1}},
    {"mean", 1, {2}, {{3, 5}}, 2, {3, 0}},
    {"var", 1, {2}, {{3, 5}}, 3, {1, 0, 1}},
    {"var", 1, {2}, {{3, 5}}, 3, {2, 0, 1}},
    {"max", 1, {2}, {{3, 5}}, 2, {1, 0}},
    {"min", 1, {2}, {{3, 5}}, 2, {2, 1}},
    {"softmax", 1, {2}, {{3, 5}}, 1, {1}},
    {"softmax", 1, {2}, {{3, 5}}, 1, {0}},
    {"log_softmax", 1, {2}, {{3, 5}}, 1, {1}},
    {"layer_norm", 1, {2}, {{3, 5}}, 1, {1}},
    {"matmul", 2, {2, 2}, {{3, 4}, {4, 5}}, 0, {0}},
    {"matmul", 2, {3, 2}, {{2, 3, 4}, {4, 5}}, 0, {0}},
    {"matmul", 2, {1, 2}, {{4}, {4, 5}}, 0, {0}},
    {"matmul", 2, {2, 1}, {{3, 4}, {4}}, 0, {0}},
    {"matmul", 2, {1, 1}, {{4}, {4}}, 0, {0}},
    {"matmul", 2, {2, 2}, {{3, 1}, {1, 5}}, 0, {0}},
    {"matmul", 2, {2, 2}, {{3, 0}, {0, 5}}, 0, {0}},
    {"linear", 3, {2, 2, 1}, {{3, 4}, {4, 5}, {5}}, 0, {0}},
    {"reshape", 1, {2}, {{4, 6}}, 3, {2, 3, 8}},
    {"transpose", 1, {2}, {{4, 6}}, 3, {2, 1, 0}},
    {"concat", 2, {2, 2}, {{3, 5}, {2, 5}}, 1, {0}},
    {"stack", 2, {2, 2}, {{3, 5}, {3, 5}}, 1, {1}},
    {"cast", 1, {2}, {{3, 5}}, 2, {0, 0}},
    {"dropout", 1, {2}, {{3, 5}}, 0, {0}},
};

static void prepare(const op_case *each, const tlm_tensor *in, ops_call *call)
{
    *call = (ops_call){.inputs = each->inputs, .in = in};
    call->params.count = each->numbers;
    memcpy(call->params.n, each->n, sizeof each->n);
    call->params.x[0] = !strcmp(each->name, "layer_norm") ? 1e-5 : 0.0;
}

static bool same_bits(const tlm_tensor *one, const tlm_tensor *other)
{
    int64_t index[8] = {0};
    CHECK(ops_same_shape(one, other) && one->dtype == other->dtype);
    if (ops_elements(one) == 0)
        return true;
    do {
        if (memcmp(address(one, index), address(other, index), 8))
            return false;
    } while (next_index(one, index));
    return true;
}

/* Fresh memory, and then `into`; both give what is returned, which floats. */
static tlm_tensor computed_twice(const op_case *each, const tlm_tensor *in, const tlm_tensor *into)
{
    ops_call call;
    tlm_tensor copy;
    int row = ops_row_named(each->name);
    prepare(each, in, &call);
    CHECK(ops_forward(row, &call) == TLM_OK);
    bool was_view = call.out_is_view;
    CHECK(ops_new_like(&call.out, &copy) == TLM_OK && ops_copy(&call.out, &copy) == TLM_OK);
    if (!was_view)
        ops_drop(&call.out);
    uint64_t before = tlm_objects_alive(NULL, 0);
    prepare(each, in, &call);
    CHECK(ops_forward_into(row, &call, into) == TLM_OK);
    CHECK(call.out.object == into->object && call.save_count == 0 && !call.out_is_view);
    CHECK(tlm_objects_alive(NULL, 0) == before && same_bits(into, &copy));
    return copy;
}

static tlm_tensor shape_of_result(const op_case *each, const tlm_tensor *in)
{
    ops_call call;
    prepare(each, in, &call);
    CHECK(ops_forward(ops_row_named(each->name), &call) == TLM_OK);
    if (!call.out_is_view)
        ops_drop(&call.out);
    return call.out;
}

static void test_results_have_the_same_bits_in_any_memory(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int layout = DENSE; layout < LAYOUTS; layout++)
            for (int where = DENSE; where < REPEATED; where++) {
                const op_case *each = &cases[i];
                tlm_tensor in[3];
                for (uint32_t k = 0; k < each->inputs; k++)
                    in[k] = random_tensor(each->axes[k], each->shapes[k], layout);
                tlm_tensor like = shape_of_result(each, in);
                tlm_tensor out = random_tensor(like.axes, like.shape, where);
                tlm_tensor expected = computed_twice(each, in, &out);
                for (uint32_t k = 0; k < each->inputs; k++)
                    ops_drop(&in[k]);
                ops_drop(&out);
                ops_drop(&expected);
            }
}

/* Dense memory of a shape, some bytes into that of another tensor. */
static tlm_tensor part_of(const tlm_tensor *memory, int axes, const int64_t *shape, uint64_t offset)
{
    tlm_tensor made = *memory;
    int64_t step = 8;
    made.axes = (uint8_t)axes;
    made.at.offset += offset;
    for (int i = axes; i-- > 0; step *= shape[i]) {
        made.shape[i] = shape[i];
        made.strides[i] = step;
    }
    return made;
}

/* Over the input itself, and over memory that begins one element after it. */
static void test_inputs_may_be_written_over(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t shift = 0; shift < 2; shift++) {
            const op_case *each = &cases[i];
            const int64_t room[] = {1024};
            tlm_tensor memory = random_tensor(1, room, DENSE), in[3];
            for (uint32_t k = 0; k < each->inputs; k++)
                in[k] = random_tensor(each->axes[k], each->shapes[k], DENSE);
            tlm_tensor like = shape_of_result(each, in), out;
            ops_drop(&in[0]);
            in[0] = part_of(&memory, each->axes[0], each->shapes[0], 0);
            out = part_of(&memory, like.axes, like.shape, 8 * shift);
            tlm_tensor expected = computed_twice(each, in, &out);
            for (uint32_t k = 1; k < each->inputs; k++)
                ops_drop(&in[k]);
            ops_drop(&memory);
            ops_drop(&expected);
        }
}

static void test_what_does_not_fit_is_not_written(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const op_case *each = &cases[i];
        const int64_t other[] = {7, 2};
        tlm_tensor in[3];
        ops_call call;
        for (uint32_t k = 0; k < each->inputs; k++)
            in[k] = random_tensor(each->axes[k], each->shapes[k], DENSE);
        tlm_tensor like = shape_of_result(each, in), wrong[3];
        wrong[0] = random_tensor(2, other, DENSE);
        CHECK(ops_new(TLM_DEVICE_CPU, TLM_FLOAT32, like.axes, like.shape, &wrong[1]) == TLM_OK);
        CHECK(ops_new(TLM_DEVICE_SIM_METAL, TLM_FLOAT64, like.axes, like.shape, &wrong[2]) == TLM_OK);
        uint64_t before = tlm_objects_alive(NULL, 0);
        for (int k = 0; k < 3; k++) {
            CHECK(ops_fill(&wrong[k], 7) == TLM_OK);
            prepare(each, in, &call);
            CHECK((int)ops_forward_into(ops_row_named(each->name), &call, &wrong[k]) == OPS_WRONG_OUT);
            for (int64_t at = 0; at < ops_elements(&wrong[k]); at++)
                CHECK(k == 1 ? ((float *)ops_data(&wrong[k]))[at] == 7 : ((double *)ops_data(&wrong[k]))[at] == 7);
        }
        CHECK(tlm_objects_alive(NULL, 0) == before);
        for (uint32_t k = 0; k < each->inputs; k++)
            ops_drop(&in[k]);
        for (int k = 0; k < 3; k++)
            ops_drop(&wrong[k]);
    }
}

/* An index is found wrong when some rows are copied already. */
static void test_failure_half_way_leaves_the_destination_as_it_was(void)
{
    static const char *const names[] = {"take", "gather", "embedding", "scatter_add"};
    const int64_t shape[] = {3, 2};
    tlm_tensor in[3] = {random_tensor(2, shape, DENSE), {0}, random_tensor(2, shape, DENSE)};
    CHECK(ops_new(TLM_DEVICE_CPU, TLM_INT64, 2, shape, &in[1]) == TLM_OK);
    memcpy(ops_data(&in[1]), (int64_t[]){0, 1, 2, 0, 1, 9}, 6 * sizeof(int64_t));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ops_call call = {.inputs = !strcmp(names[i], "scatter_add") ? 3 : 2, .in = in, .params = {.count = 1}};
        const int64_t wide[] = {3, 2, 2};
        tlm_tensor out = random_tensor(strchr("te", names[i][0]) ? 3 : 2, wide, DENSE);
        CHECK(ops_fill(&out, 7) == TLM_OK);
        CHECK((int)ops_forward_into(ops_row_named(names[i]), &call, &out) == OPS_WRONG_VALUE);
        for (int64_t at = 0; at < ops_elements(&out); at++)
            CHECK(((double *)ops_data(&out))[at] == 7);
        ops_drop(&out);
    }
    for (int k = 0; k < 3; k++)
        ops_drop(&in[k]);
}

static void test_no_memory_leaves_the_destination_as_it_was(void)
{
    uint32_t device;
    CHECK(tlm_device_limit(TLM_DEVICE_CPU, 0, 0, &device) == TLM_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const op_case *each = &cases[i];
        tlm_tensor in[3], turned[3];
        ops_call call;
        for (uint32_t k = 0; k < each->inputs; k++) {
            turned[k] = random_tensor(each->axes[k], each->shapes[k], STEPPED);
            CHECK(ops_new(device, TLM_FLOAT64, each->axes[k], each->shapes[k], &in[k]) == TLM_OK);
            CHECK(ops_copy(&turned[k], &in[k]) == TLM_OK);
        }
        tlm_tensor like = shape_of_result(each, in), out;
        CHECK(ops_new(device, TLM_FLOAT64, like.axes, like.shape, &out) == TLM_OK);
        tlm_status status = TLM_OUT_OF_MEMORY;
        for (uint64_t nth = 1; status != TLM_OK; nth++) {
            CHECK(nth < 10 && ops_fill(&out, 7) == TLM_OK);
            CHECK(tlm_device_fail_nth(device, nth) == TLM_OK);
            prepare(each, in, &call);
            status = ops_forward_into(ops_row_named(each->name), &call, &out);
            CHECK(status == TLM_OK || status == TLM_OUT_OF_MEMORY);
            for (int64_t at = 0; status != TLM_OK && at < ops_elements(&out); at++)
                CHECK(((double *)ops_data(&out))[at] == 7);
        }
        CHECK(tlm_device_fail_nth(device, 0) == TLM_OK);
        ops_drop(&out);
        for (uint32_t k = 0; k < each->inputs; k++) {
            ops_drop(&in[k]);
            ops_drop(&turned[k]);
        }
    }
    CHECK(tlm_device_close(device) == TLM_OK);
}

static void test_an_index_into_nothing_is_out_of_range(void)
{
    static const char *const names[] = {"take", "embedding", "gather", "scatter_add"};
    const int64_t empty[] = {0, 2}, some[] = {1, 2};
    tlm_tensor in[3] = {random_tensor(2, empty, DENSE), {0}, random_tensor(2, some, DENSE)};
    CHECK(ops_new(TLM_DEVICE_CPU, TLM_INT64, 2, some, &in[1]) == TLM_OK);
    memcpy(ops_data(&in[1]), (int64_t[]){-1, 0}, 2 * sizeof(int64_t));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refuse(names[i], in, !strcmp(names[i], "scatter_add") ? 3 : 2, (int64_t[]){0}, 1, OPS_WRONG_VALUE,
               "index -1 is out of range for an axis of length 0");
    for (int k = 0; k < 3; k++)
        ops_drop(&in[k]);
}

int main(void)
{
    plain_loops();
    CHECK(ops_define() == TLM_OK);
    test_results_have_the_same_bits_in_any_memory();
    test_inputs_may_be_written_over();
    test_what_does_not_fit_is_not_written();
    test_failure_half_way_leaves_the_destination_as_it_was();
    test_no_memory_leaves_the_destination_as_it_was();
    test_an_index_into_nothing_is_out_of_range();
    CHECK(tlm_objects_alive(NULL, 0) == 0);
    return 0;
}
