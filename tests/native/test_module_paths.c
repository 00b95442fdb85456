/* SPDX-License-Identifier: MIT
 * test_module_paths.c: paths of modules in an embedded interpreter, with a class that calls as PyTorch's does: what is met
 * without the GIL in many threads, dies, comes again at the same address, changes its class, and lives through forks.
 *
 * block(path) is called within modules, lets go of the GIL as PyTorch does, and keeps the label that the block's event has.
 * At the end every label must mean the path that the program knew, or the classes where nothing could be known.
 *
 * tlm-test: sources=own_memory.c,system.c,address_map.c,label.c,site.c,pycode.c,pystack.c,module_paths.c python=yes */
#include <Python.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "python/sources/sources.h"
#include "python/stack/pystack.h"
#include "tlmem_python.h"

enum { MOST_LABELS = 1 << 17, MOST_BLOCKS = 1 << 18, TEXT = 120, DEPTH = 200 };

_Atomic bool tlmi_recording_on = true;
_Atomic uint64_t tlmi_recording_epoch = 1;
__thread tlmi_thread tlmi_self;
bool tlmi_clock_is_counter = true;

static char texts[MOST_LABELS][TEXT]; /* the last one of each label */
static struct {
    uint32_t label;
    char path[TEXT];
} blocks[MOST_BLOCKS];
static uint32_t blocks_count; /* under the GIL */
static pthread_mutex_t texts_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread tlmi_event only_event;

bool tlmi_segment_rotate(void)
{
    atomic_store(&tlmi_self.cursor, &only_event);
    atomic_store(&tlmi_self.end, &only_event + 1);
    return true;
}

uint64_t tlmi_clock_ns(void)
{
    return 1;
}

bool tlmi_meta_code(uint32_t code, uint32_t first_line, const char *file, uint32_t file_bytes, const char *name,
                    uint32_t name_bytes)
{
    (void)code, (void)first_line, (void)file, (void)file_bytes, (void)name, (void)name_bytes;
    return true;
}

bool tlmi_meta_site(uint32_t site, uint32_t parent, uint32_t code, uint32_t line)
{
    (void)site, (void)parent, (void)code, (void)line;
    return true;
}

bool tlmi_meta_label(uint32_t label, const char *text)
{
    CHECK(label < MOST_LABELS);
    pthread_mutex_lock(&texts_lock);
    snprintf(texts[label], TEXT, "%s", text);
    pthread_mutex_unlock(&texts_lock);
    return true;
}

/* What an allocation in a thread without the GIL does. 0: it was in no module. */
static uint32_t allocate(void)
{
    tlmi_pystack_site();
    only_event.arg = 0;
    bool is_in_module = tlmi_modules_note(TLM_DEVICE_TORCH, 64);
    CHECK(is_in_module == (only_event.arg != 0));
    return (uint32_t)only_event.arg;
}

static PyObject *block(PyObject *module, PyObject *path)
{
    (void)module;
    uint32_t label;
    Py_BEGIN_ALLOW_THREADS label = allocate();
    Py_END_ALLOW_THREADS CHECK(blocks_count < MOST_BLOCKS);
    tlmi_modules_settle();
    blocks[blocks_count].label = label;
    snprintf(blocks[blocks_count++].path, TEXT, "%s", PyUnicode_AsUTF8(path));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"block", block, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "paths", .m_methods = functions};

static PyObject *make_module(void)
{
    return PyModule_Create(&definition);
}

static const char *const setting =
    "import gc, random, threading\n"
    "from paths import block\n"
    "random.seed(1)\n"
    "here = {}\n"
    "exec(compile('''\n"
    "class Module:\n"
    "    def __init__(self): self.__dict__.setdefault('_modules', {})\n"
    "    def add(self, name, module): self._modules[name] = module; return module\n"
    "    def _wrapped_call_impl(self, *args): return self.forward(*args)\n"
    "    __call__ = _wrapped_call_impl\n"
    "''', '/made/torch/nn/modules/module.py', 'exec'), here)\n"
    "Module = here['Module']\n"
    "class Leaf(Module):\n"
    "    def forward(self, path): block(path)\n"
    "class Inline(Module):\n" /* its attributes have no dict of their own */
    "    def __init__(self): self._modules = {}\n"
    "    def forward(self, path):\n"
    "        for name, module in self._modules.items(): module(f'{path}.{name}' if '/' in path else f'{path}/{name}')\n"
    "class Tree(Inline):\n"
    "    def __del__(self): pass\n"
    "class Root(Inline): pass\n"
    "def grow(kind, depth):\n"
    "    made = kind()\n"
    "    for i in random.sample(range(20), 3):\n"
    "        if depth: made.add(f'k{i}', grow(random.choice([Inline, Tree]), depth - 1))\n"
    "        else: made.add(f'k{i}', Leaf())\n"
    "    return made\n"
    "def work(n):\n"
    "    name = f'Root{threading.get_ident()}_{n}'\n"
    "    kind = type(name, (Root,), {})\n"
    "    for i in range(n):\n"
    "        model = grow(kind, i % 3)\n"
    "        if i % 7 == 0: model.me = model\n"
    "        for turn in range(i % 3): model(name)\n"
    "        if i % 11 == 0: gc.collect()\n"
    "        if i % 13 == 0: model.__class__ = Root; model('Root'); del model; continue\n"
    "        del model\n";
static const char *const alone = "work(150)\nblock('')\nLeaf()('Leaf')\n";
static const char *const in_threads = "team = [threading.Thread(target=work, args=(40 + i,)) for i in range(4)]\n"
                                      "for one in team: one.start()\n"
                                      "for one in team: one.join()\n";

/* Whether the text is the path, whichever of several of that name the model was. */
static bool is_path(const char *text, const char *path)
{
    size_t root = strcspn(path, "/");
    if (strncmp(text, path, root) != 0)
        return false;
    const char *rest = text + root;
    if (*rest == '(')
        rest = strchr(rest, ')') + 1;
    return strcmp(rest, path + root) == 0;
}

/* Classes with a number, or without: a module was gone before anybody who has the GIL came by. */
static bool is_unnamed(const char *text)
{
    return strchr(text, '#') != NULL || strstr(text, "/Leaf") != NULL;
}

static void check_blocks(uint32_t least_named)
{
    uint32_t named = 0, unnamed = 0;
    tlmi_modules_close();
    for (uint32_t i = 0; i < blocks_count; i++) {
        const char *text = texts[blocks[i].label], *path = blocks[i].path;
        bool is_right = path[0] == 0 ? blocks[i].label == 0 : is_path(text, path);
        named += is_right;
        unnamed += !is_right && is_unnamed(text);
        if (!is_right && !is_unnamed(text))
            fprintf(stderr, "block %u: %s is %s\n", i, text, path);
        CHECK(is_right || is_unnamed(text));
    }
    fprintf(stderr, "%u blocks have their path, %u the names of classes\n", named, unnamed);
    CHECK(named >= least_named);
    blocks_count = 0;
}

/* As a recording begins in the same process; nothing of the former one is used. */
static void begin_again(void)
{
    atomic_fetch_add(&tlmi_recording_epoch, 1);
    memset(texts, 0, sizeof texts);
    CHECK(tlmi_site_init(DEPTH));
    tlmi_pystack_init(DEPTH);
}

static _Atomic bool is_over;
static _Atomic int started;

/* Sleeps in place of working once there are blocks enough: how often the main thread gets the GIL depends on the machine. */
static void *run_models(void *unused)
{
    (void)unused;
    PyGILState_STATE gil = PyGILState_Ensure();
    atomic_fetch_add(&started, 1);
    while (!atomic_load(&is_over)) {
        if (blocks_count < MOST_BLOCKS / 2) {
            CHECK(PyRun_SimpleString("work(3)\n") == 0);
            continue;
        }
        Py_BEGIN_ALLOW_THREADS usleep(1000);
        Py_END_ALLOW_THREADS
    }
    PyGILState_Release(gil);
    return NULL;
}

/* A child has one thread, whatever the others held; it records anew. */
static void check_forks(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, run_models, NULL) == 0);
    /* A thread that starts calls malloc without the GIL, and a sanitizer's malloc does not live through a fork. */
    PyThreadState *self = PyEval_SaveThread();
    while (atomic_load(&started) < 2)
        usleep(100);
    PyEval_RestoreThread(self);
    for (int turn = 0; turn < 30; turn++) {
        CHECK(PyRun_SimpleString("work(5)\n") == 0);
        PyOS_BeforeFork();
        pid_t child = fork();
        if (child == 0) {
            PyOS_AfterFork_Child();
            pthread_mutex_init(&texts_lock, NULL);
            blocks_count = 0;
            begin_again();
            CHECK(PyRun_SimpleString("random.seed(2)\nwork(9)\n") == 0);
            check_blocks(1);
            _exit(7);
        }
        PyOS_AfterFork_Parent();
        int status = 0;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 2; i++) {
        Py_BEGIN_ALLOW_THREADS CHECK(pthread_join(threads[i], NULL) == 0);
        Py_END_ALLOW_THREADS
    }
}

static void check_no_memory(void)
{
    for (uint64_t n = 1; n < 8; n++) {
        begin_again();
        tlm_own_fail_after(n);
        CHECK(PyRun_SimpleString("work(4)\n") == 0);
        tlm_own_fail_after(0);
        blocks_count = 0; /* some have none, and that is all */
    }
}

int main(void)
{
    CHECK(PyImport_AppendInittab("paths", make_module) == 0);
    Py_Initialize();
    CHECK(!tlmi_modules_note(TLM_DEVICE_TORCH, 64));
    CHECK(PyRun_SimpleString(setting) == 0);
    begin_again();
    CHECK(PyRun_SimpleString(alone) == 0);
    check_blocks(blocks_count * 9 / 10);
    begin_again();
    CHECK(PyRun_SimpleString(in_threads) == 0);
    check_blocks(blocks_count / 2);
    begin_again();
    check_forks();
    check_blocks(1);
    check_no_memory();
    begin_again();
    CHECK(PyRun_SimpleString("work(20)\n") == 0);
    check_blocks(1);
    atomic_store(&tlmi_recording_on, false);
    CHECK(Py_FinalizeEx() == 0);
    CHECK(!tlmi_modules_note(TLM_DEVICE_TORCH, 64));
    return 0;
}
