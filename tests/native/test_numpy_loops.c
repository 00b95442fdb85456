/* SPDX-License-Identifier: MIT
 * test_numpy_loops.c: the loops that are found are NumPy's for that name and dtype; one that is missing is named.
 *
 * tlm-test: sources=core,ops,numpy_loops.c python=yes modes=address */
#include <Python.h>

#include "check.h"
#include "plain_loops.h"
#include "python/tensor/pyops.h"

STAND_IN_FOR_SAMPLER

enum { COUNT = 37 };

static void run(const ops_loop *loop, bool is_binary, char *left, char *right, char *out, intptr_t item)
{
    char *unary[] = {left, out}, *binary[] = {left, right, out};
    const intptr_t count = COUNT, strides[] = {item, item, item};
    loop->call(is_binary ? binary : unary, &count, strides, loop->data);
}

static void check_loop(ops_loop_name name, const ops_loop *numpy, const ops_loop *plain)
{
    bool is_binary = name <= OPS_MINIMUM;
    float narrow[2][COUNT], narrow_out[2][COUNT];
    double wide[2][COUNT], wide_out[2][COUNT];
    for (int i = 0; i < COUNT; i++) {
        narrow[0][i] = (float)(wide[0][i] = 0.25 + i * 0.0625);
        narrow[1][i] = (float)(wide[1][i] = 2.5 - i * 0.03125);
    }
    for (int which = 0; which < 2; which++) {
        const ops_loop *loops = which ? plain : numpy;
        run(&loops[OPS_FLOAT32], is_binary, (char *)narrow[0], (char *)narrow[1], (char *)narrow_out[which],
            sizeof(float));
        run(&loops[OPS_FLOAT64], is_binary, (char *)wide[0], (char *)wide[1], (char *)wide_out[which], sizeof(double));
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK(fabs(wide_out[0][i] - wide_out[1][i]) <= 1e-14 * fmax(1, fabs(wide_out[1][i])));
        CHECK(fabsf(narrow_out[0][i] - narrow_out[1][i]) <= 1e-6f * fmaxf(1, fabsf(narrow_out[1][i])));
    }
}

static void test_each_loop_computes_what_its_name_says(void)
{
    static ops_loop numpy[OPS_LOOPS][2];
    CHECK(tlmi_numpy_loops_init() == 0);
    memcpy(numpy, ops_loops, sizeof numpy);
    CHECK(ops_matmul_loops[OPS_FLOAT32].call && ops_matmul_loops[OPS_FLOAT64].call);
    plain_loops();
    for (int name = 0; name < OPS_LOOPS; name++)
        check_loop((ops_loop_name)name, numpy[name], ops_loops[name]);
}

static void test_what_is_missing_is_named(void)
{
    CHECK(PyRun_SimpleString("import numpy; kept = numpy.tanh; numpy.tanh = len") == 0);
    CHECK(tlmi_numpy_loops_init() == -1 && PyErr_ExceptionMatches(PyExc_ImportError));
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = PyObject_Str(value);
    CHECK(text && strncmp(PyUnicode_AsUTF8(text), "numpy.tanh of this NumPy has no loops", 37) == 0);
    Py_DECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    CHECK(PyRun_SimpleString("numpy.tanh = kept") == 0 && tlmi_numpy_loops_init() == 0);
}

int main(void)
{
    Py_Initialize();
    test_each_loop_computes_what_its_name_says();
    test_what_is_missing_is_named();
    return Py_FinalizeEx();
}
