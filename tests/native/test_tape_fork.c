/* SPDX-License-Identifier: MIT
 * test_tape_fork.c: a child that is forked while another thread goes back over the tape can go on with the tape.
 *
 * tlm-test: sources=core modes=address */
#include <sys/wait.h>

#include "taping.h"

STAND_IN_FOR_SAMPLER

static _Atomic int is_inside, may_go_on;

static tlm_status waiting_rule(tlm_pass *pass)
{
    atomic_store(&is_inside, 1);
    while (!atomic_load(&may_go_on))
        usleep(1000);
    return tlm_pass_share(pass, 0, tlm_pass_grad(pass));
}

static void *go_back(void *root)
{
    CHECK(backward(root) == TLM_OK);
    return NULL;
}

int main(void)
{
    uint32_t op;
    int status;
    pthread_t thread;
    tlm_op row = {.name = "waiting", .rule = waiting_rule};
    begin_taping();
    CHECK(tlm_op_define(&row, &op) == TLM_OK);
    value x = leaf(2), s = apply(op_sin, &x, NULL), w = apply(op, &s, NULL), m = apply(op_multiply, &w, &x);
    CHECK(pthread_create(&thread, NULL, go_back, &m) == 0);
    while (!atomic_load(&is_inside))
        usleep(1000);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        value y = apply(op_multiply, &x, &x);
        CHECK(backward(&y) == TLM_OK && grad_at(&x, 0) == 4);
        CHECK(tlm_tape_clear_grads(tape) == 1);
        drop(&y), drop(&x), drop(&s), drop(&w), drop(&m);
        CHECK(sums().records == 0 && sums().saved_objects == 0 && sums().leaves == 0 && live_objects() == 0);
        CHECK(tlm_tape_destroy(tape) == TLM_OK);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    atomic_store(&may_go_on, 1);
    pthread_join(thread, NULL);
    CHECK(is_near(grad_at(&x, 0), sin(2) + 2 * cos(2)));
    drop(&x), drop(&s), drop(&w), drop(&m);
    CHECK(tlm_tape_destroy(tape) == TLM_OK && live_objects() == 0);
    return 0;
}
