/* SPDX-License-Identifier: MIT
 * ops.h: what the files of the ops share: rows, calls, and the loops that do the arithmetic.
 *
 * An op is one row: its name, how many inputs, how it computes its output and lists what its rule will read (`forward`), and
 * how it computes the gradients of its inputs (`backward`, a tlm_rule). Nothing here knows of Python; native/python/tensor/pyops.c
 * calls `forward`, makes the tensor and the record. Loops over elements are NumPy's own, the inner loops of its ufuncs
 * (native/python/tensor/numpy_loops.c puts them into ops_loops; docs/decisions/kernels-by-numpy.md): one row of elements, any
 * strides. Where NumPy has no such loop (selecting, scattering, whole rows of softmax) a plain C loop stands in the op's file.
 *
 * Ownership. Tensors that are given are borrowed. What ops_new makes floats and is the caller's: forward gives it as call->out
 * or saves it as an extra; a rule gives it to an input (tlm_pass_give) or frees it (ops_drop). On failure a forward and a
 * rule free what they made. No state is kept between calls; any thread may call. No lock, no GIL needed.
 */
#ifndef TLMEM_OPS_H
#define TLMEM_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tlmem_tape.h"

/* ---- statuses of a forward beyond tlm_status ---- */
enum {
    OPS_NOT_HERE =
        1000,        /* these dtypes or axes are not for the ops: the caller computes with NumPy, without a gradient */
    OPS_WRONG_SHAPE, /* call->message says what is wrong with what */
    OPS_WRONG_VALUE, /* likewise, of a parameter or an index */
    OPS_WRONG_OUT,   /* the result has another shape, dtype or device than the destination; nothing was written */
};

enum { OPS_MOST_NUMBERS = 36, OPS_MOST_FRACTIONS = 4, OPS_MOST_SAVES = 6 };

/* Parameters of one call, as the record keeps them. What each means stands at its row. */
typedef struct {
    double x[OPS_MOST_FRACTIONS];
    uint32_t count; /* of n that are in use */
    uint32_t unused;
    int64_t n[OPS_MOST_NUMBERS];
} ops_params;

/* What of them a record has to keep. */
static inline uint32_t ops_params_bytes(const ops_params *params)
{
    return (uint32_t)offsetof(ops_params, n) + params->count * (uint32_t)sizeof *params->n;
}

typedef struct {
    uint32_t inputs;
    const tlm_tensor *in;
    const uint8_t *needs;   /* of each input: 1 when its gradient will be wanted; NULL: none is */
    ops_params params;      /* forward may complete them for its rule */
    bool records;           /* any of `needs` */
    const tlm_tensor *into; /* where ops_new_out puts the result; NULL: into fresh memory */
    tlm_tensor out;         /* the result: fresh, or (out_is_view) in the memory of an input */
    bool out_is_view;
    tlm_save saves[OPS_MOST_SAVES]; /* left empty unless `records` */
    uint32_t save_count;
    char message[224];
} ops_call;

/* How the op is called from Python, and how its result follows from its inputs. */
typedef enum {
    OPS_OTHER,    /* its public function says */
    OPS_FUNCTION, /* (value, out): of each element */
    OPS_OF_TWO,   /* (left, right, out): of each pair, with broadcasting */
    OPS_REDUCING, /* (value, axis, keepdims, out): n[0] the mask of axes, n[1] whether they stay with length 1 */
    OPS_ALONG,    /* (value, axis, out): n[0] the axis; the result has the shape of the input */
} ops_kind;
/* The dtype of the result, given that of the inputs; also for dtypes that the op itself does not take. */
typedef enum {
    OPS_OWN_DTYPE,  /* its public function says, which is as written then, whatever the kind */
    OPS_SAME,       /* theirs */
    OPS_ARITHMETIC, /* theirs, but bool is refused */
    OPS_COUNTING,   /* theirs, and int64 for bool */
    OPS_FRACTION,   /* theirs when it has fractions, else float32 */
} ops_dtype;
/* Where the forward may write; for calls.c. */
typedef enum {
    OPS_WRITES_FRESH, /* only memory of its own: it may fail half-way, or says what it copies */
    OPS_WRITES_APART, /* any memory that shares nothing with an input */
    OPS_WRITES_OVER,  /* that, and over an input, element by element */
} ops_writing;

typedef struct {
    const char *name;
    const char *saves; /* for people: "x, y", "output", "" */
    int least, most;   /* inputs */
    bool replays;      /* forward gives the same bits again from the same inputs and the params it completed */
    tlm_status (*forward)(ops_call *call);
    tlm_rule backward;
    ops_kind kind;
    ops_writing writing;
    ops_dtype dtype;
    /* For Python, which makes operators, methods and rules of the compiler from these; NULL: none. */
    const char *numpy; /* the ufunc for dtypes that the op does not take; one of two gets 0 beside one input */
    const char *python_operator; /* the word of its operator: add for __add__ */
    const char *method;          /* its name as a method of a tensor */
} ops_row;

/* ---- rows.c: every op there is ---- */
typedef struct {
    const ops_row *rows;
    int count;
} ops_family;
extern const ops_family ops_elementwise, ops_reductions, ops_softmaxes, ops_normalisations, ops_products, ops_shapes,
    ops_indexing, ops_dropouts;
/* The row of a number from 0 on; NULL behind the last. Its number in tlm_op terms is ops_number(row number). */
const ops_row *ops_row_at(int number);
int ops_row_named(const char *name); /* -1: none */
/* Defines all rows as ops of the tape; once. TLM_NO_MEMORY. */
tlm_status ops_define(void);
uint32_t ops_number(int row);
/* Runs a forward. Statuses of tlm_status and of above. Nothing is left behind on failure. */
tlm_status ops_forward(int row, ops_call *call);
/* Likewise, without a record, but the result is written to `into`: the same bits as in fresh memory, also where `into` is an
 * input or shares memory with one (it is computed beside it then, unless each element is read before it is written), or does
 * not lie row by row. call->out is `into` then. OPS_WRONG_OUT; after that and any other failure `into` is unchanged. */
tlm_status ops_forward_into(int row, ops_call *call, const tlm_tensor *into);
tlm_status ops_run(const ops_row *row, ops_call *call);
/* Copies a fresh result to `into`, which call->out is then, and drops it. OPS_WRONG_OUT. */
tlm_status ops_move_out(ops_call *call, const tlm_tensor *into);
/* What a tape computes with. */
extern const tlm_arithmetic ops_tape_arithmetic;

/* ---- calls.c: for forwards ---- */
/* call->out, dense, contents undefined: fresh as by ops_new, or the destination. OPS_WRONG_OUT. Once for each call. */
tlm_status ops_new_out(ops_call *call, uint32_t device, uint8_t dtype, int axes, const int64_t *shape);
void ops_drop_out(const ops_call *call); /* after a failure: frees what ops_new_out made */

tlm_status ops_fail(ops_call *call, tlm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "[2,3]" into `text`; returns it. */
const char *ops_shape_text(const tlm_tensor *tensor, char text[static 160]);
void ops_save_input(ops_call *call, uint32_t input);
void ops_save_output(ops_call *call);                       /* call->out is complete */
void ops_save_made(ops_call *call, const tlm_tensor *made); /* the call owns `made` from now on */
/* Whether all inputs are of one dtype with fractions and on one device (numbers count as that); the dtype, or 0. */
uint8_t ops_common_dtype(const ops_call *call);
/* The device that they share; `cpu` when all are numbers. */
uint32_t ops_common_device(const ops_call *call);
/* A shape behind the numbers of the params, and what follows it when it is read back: fills axes and shape of `like`. */
void ops_put_shape(ops_params *params, const tlm_tensor *tensor);
const int64_t *ops_take_shape(const int64_t *numbers, tlm_tensor *like);
/* Whether input i will want a gradient. */
static inline bool ops_needs(const ops_call *call, uint32_t input)
{
    return call->records && call->needs[input];
}

/* ---- tensors.c ---- */
static inline int64_t ops_item_bytes(uint8_t dtype)
{
    return dtype == TLM_FLOAT32 || dtype == TLM_INT32 ? 4 : dtype == TLM_BOOL ? 1 : 8;
}
int64_t ops_elements(const tlm_tensor *tensor);
bool ops_is_dense(const tlm_tensor *tensor); /* elements lie row by row, without gaps */
bool ops_same_shape(const tlm_tensor *left, const tlm_tensor *right);
/* The first element; valid while the object is held or pinned. NULL: freed (recorded as misuse). */
void *ops_data(const tlm_tensor *tensor);
/* A fresh floating object, dense, contents undefined; device 0: `cpu`. TLM_OUT_OF_MEMORY, TLM_OVERFLOW. */
tlm_status ops_new(uint32_t device, uint8_t dtype, int axes, const int64_t *shape, tlm_tensor *out);
tlm_status ops_new_like(const tlm_tensor *like, tlm_tensor *out); /* shape, dtype and device of `like` */
void ops_drop(const tlm_tensor *made);                            /* frees what ops_new made; object 0 is fine */
/* One number as a tensor of a shape; no memory. Its device is not said (0) unless the caller fills it in. */
void ops_constant(double value, uint8_t dtype, int axes, const int64_t *shape, tlm_tensor *out);
/* The number of such a tensor. */
double ops_number_of(const tlm_tensor *tensor);
/* The shape that two have together, with strides 0 along repeated axes: *left and *right are then of one shape.
 * OPS_WRONG_SHAPE. */
tlm_status ops_broadcast(tlm_tensor *left, tlm_tensor *right);
/* `tensor` seen with another shape that it broadcasts to; the same memory. */
tlm_status ops_expand(const tlm_tensor *tensor, int axes, const int64_t *shape, tlm_tensor *out);
/* Gives `gradient` (floating, or the pass's own when `shared`) to an input of the shape of `like`: axes along which the
 * input was repeated are summed. Takes a floating object over, whatever is returned. */
tlm_status ops_give_reduced(tlm_pass *pass, uint32_t input, const tlm_tensor *gradient, bool shared,
                            const tlm_tensor *like);
/* Room for the gradient that a rule is about to compute elementwise from that of its output: the same memory when nobody else
 * needs it (*shared = true: give it with tlm_pass_share), else fresh. Of the shape of the output's gradient. */
tlm_status ops_new_grad(tlm_pass *pass, tlm_tensor *out, bool *shared);

/* Where elements lie. Nothing here computes with them, and only ops_made_dense and ops_zeros take memory; functions that
 * return nothing cannot fail. */
/* ---- shapes of the same memory ---- */
/* The same elements, row by row, in another shape of as many: false when strides cannot say so (then nothing is filled). */
bool ops_reshape_in_place(const tlm_tensor *tensor, int axes, const int64_t *shape, tlm_tensor *out);
/* Axes `from` to `to` - 1 as one: how long it is and how far its elements are apart; false when strides cannot say so. */
bool ops_axes_as_one(const tlm_tensor *tensor, int from, int to, int64_t *length, int64_t *step);
/* Without the axis. */
void ops_drop_axis(tlm_tensor *tensor, int axis);
/* With one more axis of length 1, before the axis `place`; the caller knows that there is room. */
void ops_insert_axis(tlm_tensor *tensor, int place);
/* The part of `length` elements from `begin` on along an axis; the caller knows that they are there. */
void ops_narrow(tlm_tensor *tensor, int axis, int64_t begin, int64_t length);

/* ---- memory ---- */
/* `tensor` itself when its elements lie row by row, else a fresh floating copy that does; the caller drops *made (object 0
 * when it is `tensor`). */
tlm_status ops_made_dense(const tlm_tensor *tensor, tlm_tensor *out, tlm_tensor *made);
/* A fresh floating one, all zero. */
tlm_status ops_zeros(uint32_t device, uint8_t dtype, int axes, const int64_t *shape, tlm_tensor *out);

/* ---- parameters of a call ---- */
/* The axis that a parameter means, counted from the end when negative, of `axes` there are. OPS_WRONG_SHAPE. */
tlm_status ops_axis(ops_call *call, int64_t given, int axes, int *out);
/* Writes the shape of an input to params.n from `at` on, behind what the caller gave, and sets params.count. */
void ops_keep_shape(ops_call *call, uint32_t input, uint32_t at);
/* A tensor without memory that has the shape that stands there, and dtype and device of `gradient`. */
void ops_kept_shape(const int64_t *numbers, const tlm_tensor *gradient, tlm_tensor *out);

/* ---- loops.c: NumPy's loops over tensors of one shape, any strides ---- */
typedef void (*ops_loop_call)(char **arguments, const intptr_t *count, const intptr_t *strides, void *data);
typedef struct {
    ops_loop_call call;
    void *data;
} ops_loop;
/* NumPy's ufuncs that the ops compute with: number and name. */
#define OPS_NUMPY_LOOPS(X)                                                                                             \
    X(OPS_ADD, "add")                                                                                                  \
    X(OPS_SUBTRACT, "subtract")                                                                                        \
    X(OPS_MULTIPLY, "multiply")                                                                                        \
    X(OPS_DIVIDE, "divide")                                                                                            \
    X(OPS_POWER, "power")                                                                                              \
    X(OPS_MAXIMUM, "maximum")                                                                                          \
    X(OPS_MINIMUM, "minimum")                                                                                          \
    X(OPS_EXP, "exp")                                                                                                  \
    X(OPS_LOG, "log")                                                                                                  \
    X(OPS_SQRT, "sqrt")                                                                                                \
    X(OPS_SIN, "sin")                                                                                                  \
    X(OPS_COS, "cos")                                                                                                  \
    X(OPS_TANH, "tanh")                                                                                                \
    X(OPS_NEGATIVE, "negative")                                                                                        \
    X(OPS_ABSOLUTE, "absolute")                                                                                        \
    X(OPS_SIGN, "sign")                                                                                                \
    X(OPS_SQUARE, "square")                                                                                            \
    X(OPS_RECIPROCAL, "reciprocal")                                                                                    \
    X(OPS_EXPM1, "expm1")                                                                                              \
    X(OPS_LOG1P, "log1p")
#define OPS_NUMBER_OF_LOOP(number, name) number,
typedef enum { OPS_NUMPY_LOOPS(OPS_NUMBER_OF_LOOP) OPS_LOOPS } ops_loop_name;
enum { OPS_FLOAT32 = 0, OPS_FLOAT64 = 1 };
extern ops_loop ops_loops[OPS_LOOPS][2]; /* by dtype */
extern ops_loop ops_matmul_loops[2];     /* of the gufunc (n?,k),(k,m?)->(n?,m?): BLAS where the strides allow it */
static inline const ops_loop *ops_loop_of(ops_loop_name name, uint8_t dtype)
{
    return &ops_loops[name][dtype == TLM_FLOAT64 ? OPS_FLOAT64 : OPS_FLOAT32];
}
/* All of one shape and dtype; `out` may be an input, with the same strides. TLM_FREED. */
tlm_status ops_unary(ops_loop_name name, const tlm_tensor *in, const tlm_tensor *out);
tlm_status ops_binary(ops_loop_name name, const tlm_tensor *left, const tlm_tensor *right, const tlm_tensor *out);
/* out = `name` over the axes whose bit is set in `axes`; `out` has length 1 there (or strides that do not move), and is filled
 * first with `start`. */
tlm_status ops_reduce(ops_loop_name name, const tlm_tensor *in, uint32_t axes, double start, const tlm_tensor *out);
tlm_status ops_copy(const tlm_tensor *from, const tlm_tensor *to); /* one shape; dtypes may differ: converted */
tlm_status ops_fill(const tlm_tensor *to, double value);
/* For loops of an op's own: walks the rows of up to four tensors of one shape. `row` gets pointers, the count and strides, and
 * changes none of them. */
typedef void (*ops_row_call)(char **arguments, const intptr_t *count, const intptr_t *strides, void *data);
tlm_status ops_each_row(const tlm_tensor *const *tensors, int count, ops_row_call row, void *data);
#endif
