/* SPDX-License-Identifier: MIT
 * test_pystack.c: the walk of private frames says what CPython's public functions say, frame by frame, name by name.
 *
 * A program in an embedded interpreter calls check() from wherever Python code can run: deep and shallow, in generators,
 * comparisons, finalizers, threads, code made at run time that dies again. Threads without a stack, a full file and
 * memory that runs out come last.
 *
 * tlm-test: sources=own_memory.c,system.c,address_map.c,site.c,pycode.c,pystack.c python=yes */
#include <Python.h>

#include <string.h>
#include <unistd.h>

#include "check.h"
#include "python/stack/pystack.h"
#include "tlmem_python.h"

enum { DEPTH = 24, MOST = 200000, NAME = 48 };

typedef struct {
    uint32_t parent, code, line;
} named_site;

typedef struct {
    char name[NAME];
    char file_end[NAME]; /* the last characters */
    uint32_t first_line;
} named_code;

/* What would be in the file. Written under the GIL. */
static named_site sites[MOST];
static named_code codes[MOST];
static uint64_t checks;
static bool refuse_names;
static int failures;

bool tlmi_meta_code(uint32_t code, uint32_t first_line, const char *file, uint32_t file_bytes, const char *name,
                    uint32_t name_bytes)
{
    if (refuse_names)
        return false;
    CHECK(code > 0 && code < MOST && codes[code].first_line == 0);
    uint32_t skipped = file_bytes < NAME ? 0 : file_bytes - (NAME - 1);
    CHECK(file_bytes == 0 || file[0] == '/' || file[0] == '<');
    memcpy(codes[code].file_end, file + skipped, file_bytes - skipped);
    memcpy(codes[code].name, name, name_bytes < NAME ? name_bytes : NAME - 1);
    codes[code].first_line = first_line;
    return true;
}

bool tlmi_meta_site(uint32_t site, uint32_t parent, uint32_t code, uint32_t line)
{
    if (refuse_names)
        return false;
    CHECK(site < MOST && sites[site].code == 0 && codes[code].name[0] != 0);
    sites[site] = (named_site){parent, code, line};
    return true;
}

uint64_t tlmi_clock_ns(void)
{
    return 1;
}

static bool ends_with(const char *text, const char *end)
{
    size_t text_bytes = strlen(text), end_bytes = strlen(end);
    return end_bytes <= text_bytes && strcmp(text + text_bytes - end_bytes, end) == 0;
}

static bool is_frame(const named_site *site, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    const char *file = PyUnicode_AsUTF8(code->co_filename), *name = PyUnicode_AsUTF8(code->co_qualname);
    const named_code *named = &codes[site->code];
    file += strlen(file) >= NAME ? strlen(file) - (NAME - 1) : 0;
    if (file[0] == '.' && file[1] == '/')
        file += 2;
    bool same = strncmp(named->name, name, NAME - 1) == 0 && ends_with(named->file_end, file) &&
                named->first_line == (uint32_t)code->co_firstlineno &&
                site->line == (uint32_t)PyFrame_GetLineNumber(frame);
    if (!same)
        fprintf(stderr, "walked %s:%u %s, is %s:%d %s\n", named->file_end, site->line, named->name, file,
                PyFrame_GetLineNumber(frame), name);
    Py_DECREF(code);
    return same;
}

/* Compares the calling thread's site with its frame objects. */
static void compare_stack(uint32_t site)
{
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    int depth = 0;
    for (; frame != NULL && site > 1; depth++) {
        failures += !is_frame(&sites[site], frame);
        site = sites[site].parent;
        PyFrameObject *outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
    }
    if (frame == NULL ? site != 0 : site != 1 || depth != DEPTH) {
        fprintf(stderr, "the walk ended at %u after %d frames, the stack %s\n", site, depth, frame ? "not" : "also");
        failures++;
    }
    Py_XDECREF(frame);
    checks++;
}

static PyObject *check(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    uint32_t site = tlmi_pystack_site();
    compare_stack(site);
    failures += tlmi_pystack_site() != site;
    Py_RETURN_NONE;
}

/* The same without the GIL: a known prefix of the stack, and all of it once the code objects are known. */
static PyObject *check_without_gil(PyObject *module, PyObject *unused)
{
    uint32_t free_site, site;
    Py_BEGIN_ALLOW_THREADS free_site = tlmi_pystack_site();
    Py_END_ALLOW_THREADS site = tlmi_pystack_site();
    uint32_t known = site;
    while (known > 1 && known != free_site)
        known = sites[known].parent;
    failures += free_site != known && free_site > 1;
    Py_BEGIN_ALLOW_THREADS free_site = tlmi_pystack_site();
    Py_END_ALLOW_THREADS failures += strcmp(tlm_site_method(), "public API") != 0 && free_site != site;
    return check(module, unused);
}

static PyMethodDef functions[] = {
    {"check", check, METH_NOARGS, NULL},
    {"check_without_gil", check_without_gil, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "walk", .m_methods = functions};

static PyObject *make_module(void)
{
    return PyModule_Create(&definition);
}

static const char *const program =
    "import asyncio, random, threading\n"
    "from walk import check, check_without_gil\n"
    "random.seed(1)\n"
    "def down(n):\n"
    "    if n % 3 == 0: check()\n"
    "    if n:\n"
    "        down(n - 1)\n"
    "        if random.random() < .3: check(); check()\n"
    "    elif random.random() < .5: check_without_gil()\n"
    "def numbers(n):\n"
    "    for i in range(n):\n"
    "        check(); yield i\n"
    "def delegate(n):\n"
    "    yield from numbers(n); check()\n"
    "class Ordered:\n"
    "    def __init__(self, value): self.value = value\n"
    "    def __lt__(self, other):\n"
    "        down(2); return self.value < other.value\n"
    "    def __del__(self): check()\n"
    "    @property\n"
    "    def prop\xc3\xa9rt\xc3\xa9(self): check(); return [check() for _ in '12']\n"
    "async def wait(n):\n"
    "    check(); await asyncio.sleep(0); check()\n"
    "    if n: await wait(n - 1)\n"
    "async def main(): await asyncio.gather(*(wait(3) for _ in range(3)))\n"
    "def made(i):\n"
    "    text = f'def f{i}():\\n' + '\\n' * (i % 5) + f'    check(); 1 or 2\\nf{i}()\\n'\n"
    "    exec(compile(text, ('<made>', 'dir/made.py', './made.py')[i % 3], 'exec'), {'check': check})\n"
    "def everything(n):\n"
    "    for i in range(n):\n"
    "        down(random.randint(0, 40)); list(delegate(3)); made(i); made(i)\n"
    "        sorted([Ordered(random.random()) for _ in range(5)])\n"
    "        Ordered(0).prop\xc3\xa9rt\xc3\xa9\n"
    "        list(map(lambda x: down(x), range(3))); eval('check()')\n"
    "        try:\n"
    "            raise KeyError(Ordered(1))\n"
    "        except KeyError: check()\n"
    "        asyncio.run(main())\n"
    "def in_threads(n):\n"
    "    team = [threading.Thread(target=everything, args=(n,)) for _ in range(3)]\n"
    "    for one in team: one.start()\n"
    "    for one in team: one.join()\n"
    "everything(20)\n"
    "in_threads(8)\n"
    "for i in range(1500): made(i)\n"
    "for i in range(1500): made(i % 30)\n";
static const char *const short_threads = "for i in range(200):\n"
                                         "    one = threading.Thread(target=check); one.start(); one.join()\n";

static void begin(void)
{
    memset(sites, 0, sizeof sites);
    memset(codes, 0, sizeof codes);
    CHECK(tlmi_site_init(DEPTH));
    tlmi_pystack_init(DEPTH);
}

static void *walk_without_python(void *unused)
{
    (void)unused;
    CHECK(tlmi_pystack_site() == 0);
    return NULL;
}

static void check_thread_without_python(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, walk_without_python, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Where names cannot be written stacks are shorter, and whole again as soon as they can. */
static void check_full_file(void)
{
    uint64_t before = checks;
    refuse_names = true;
    CHECK(PyRun_SimpleString("import walk\ndef late(): walk.check_without_gil()\n") == 0);
    uint32_t site = tlmi_pystack_site();
    CHECK(site == 0);
    refuse_names = false;
    /* It is not asked each time whether there is room again. */
    CHECK(PyRun_SimpleString("for i in range(1000): late()\n") == 0);
    failures = 0;
    CHECK(PyRun_SimpleString("late()\nlate()\n") == 0);
    CHECK(checks == before + 1002);
}

static void check_no_memory(void)
{
    begin();
    for (uint64_t n = 1; n < 4; n++) {
        tlm_own_fail_after(n);
        CHECK(PyRun_SimpleString("import threading, walk\n"
                                 "one = threading.Thread(target=walk.check); one.start(); one.join()\n") == 0);
        tlm_own_fail_after(0);
        failures = 0; /* a stack could not be had, and that is all */
    }
    CHECK(PyRun_SimpleString("walk.check()\n") == 0);
}

int main(void)
{
    CHECK(PyImport_AppendInittab("walk", make_module) == 0);
    CHECK(tlmi_pystack_site() == 0); /* before there is an interpreter */
    Py_Initialize();
    CHECK(PyRun_SimpleString("import walk\nclass A: pass\n") == 0);
    CHECK(tlmi_pystack_site() == 0); /* nothing was begun */
    begin();
    CHECK(PyRun_SimpleString(program) == 0);
    CHECK(failures == 0 && checks > 3000);
    /* Each made function, and its module's code where the lines differ; the same code made anew is not counted again. */
    CHECK(tlmi_site_code_count() > 1500 && tlmi_site_code_count() < 1700);
    CHECK(tlmi_site_count() > 2000);
    begin(); /* nothing of the first recording is used again */
    CHECK(PyRun_SimpleString("everything(5)\nin_threads(2)\n") == 0);
    CHECK(failures == 0);
    uint64_t own = tlmi_own_current_bytes();
    CHECK(PyRun_SimpleString(short_threads) == 0);
    /* What ended threads had is given back, but perhaps for the last few: joining does not wait for their very end. */
    CHECK(tlmi_own_current_bytes() < own + 50 * 4096);
    check_thread_without_python();
    check_full_file();
    CHECK(failures == 0);
    check_no_memory();
    CHECK(failures == 0);
    tlmi_pystack_reset();
    tlmi_site_reset();
    CHECK(tlmi_pystack_site() == 0);
    begin();
    CHECK(Py_FinalizeEx() == 0);
    CHECK(tlmi_pystack_site() == 0); /* after it */
    return 0;
}
