/* SPDX-License-Identifier: MIT
 * test_pyreference.c: Python objects that hold counts, under the sanitizers: made, lent, adopted, moved and dropped, in rings,
 * in threads, with exceptions on the way and while the interpreter ends.
 *
 * Python's own objects come from the C allocator here, so that a reference too few is a use after free.
 *
 * tlm-test: sources=all,-sampler.c,-rss_system.c,-mappings.c python=yes modes=address */
#include <Python.h>

#include "check.h"
#include "tlmem_python.h"

STAND_IN_FOR_SAMPLER

static const char *const program =
    "import gc, sys, threading, weakref\n"
    "class Tensor(Reference):\n"
    "    __slots__ = ('shape',)\n"
    "    def __buffer__(self, flags):\n"
    "        lent = Lent()\n"
    "        if lent._lend(self.handle, 64, False): raise MemoryError\n"
    "        return memoryview(lent)\n"
    "def make(scope=2**64 - 1):\n"
    "    t = Tensor.__new__(Tensor)\n"
    "    assert t._make(16, 64, scope) == 0\n"
    "    t.shape = (t._made,)\n"
    "    return t\n"
    "def view(base):\n"
    "    v = Tensor.__new__(Tensor)\n"
    "    assert v._make_view(base.handle, 0) == 0 and v._base_handle == base.handle\n"
    "    v._base = base\n"
    "    return v\n"
    "before = sys.getrefcount(Tensor), sys.getrefcount(Lent), sys.getrefcount(make.__code__)\n"
    "for i in range(50):\n"
    "    a, b = make(), make()\n"
    "    assert a._made[0].co_name == 'make' and a._holder and a._check() == 0 and a._address() % 64 == 0\n"
    "    v = view(a)\n"
    "    v._array, v._ended, a._array = [v], (1, 2), v\n"
    "    gone = weakref.ref(v)\n"
    "    memory = memoryview(b)\n"
    "    memory[0] = 7\n"
    "    part = memory[1:3]\n"
    "    memory.release()\n"
    "    del a, v, b, memory\n"
    "    gc.collect()\n"
    "    assert gone() is None and len(part) == 2\n"
    "    del part\n"
    "    owner = bytearray(100)\n"
    "    count = sys.getrefcount(owner)\n"
    "    c, d = Tensor.__new__(Tensor), Tensor.__new__(Tensor)\n"
    "    assert c._adopt_memory(owner, 4096, 0) == 0 and sys.getrefcount(owner) == count + 1\n"
    "    d._take_over(c)\n"
    "    assert c._moved and c._check() != 0 and d._check() == 0 and d.handle == c.handle\n"
    "    del c, d\n"
    "    assert sys.getrefcount(owner) == count\n"
    "    for wrong in (lambda: make()._make(16), lambda: make()._make(16, -1, 0), lambda: make()._make('x', 1, 0),\n"
    "                  lambda: make()._take_over(owner), lambda: make()._adopt_memory(owner), lambda: "
    "Lent()._lend(1)):\n"
    "        try:\n"
    "            wrong()\n"
    "        except (TypeError, OverflowError):\n"
    "            pass\n"
    "        else:\n"
    "            raise AssertionError(wrong)\n"
    "    assert Tensor.__new__(Tensor)._make(16, 64, 12345) != 0\n"
    "    assert Tensor.__new__(Tensor)._make(16, 2**63, 0) != 0 and Tensor.__new__(Tensor)._make(99, 1, 0) != 0\n"
    "    assert Lent()._lend(1 << 40, 64, False) != 0\n"
    "wrong = None; gc.collect()\n"
    "assert before == (sys.getrefcount(Tensor), sys.getrefcount(Lent), sys.getrefcount(make.__code__))\n"
    "threads = [threading.Thread(target=lambda: [make() for _ in range(200)]) for _ in range(4)]\n"
    "[t.start() for t in threads]; [t.join() for t in threads]\n"
    "def fail():\n"
    "    t = make()\n"
    "    raise KeyError(t.handle)\n"
    "try:\n"
    "    fail()\n"
    "except KeyError:\n"
    "    pass\n"
    "gc.collect()\n";

static const char *const at_the_end = "kept = [make() for _ in range(20)]; kept.append(kept); kept[0]._array = kept\n"
                                      "late = memoryview(make()); owned = Tensor.__new__(Tensor)\n"
                                      "owned._adopt_memory(bytearray(9), 4096, 0)\n";

static void run(const char *text)
{
    CHECK(PyRun_SimpleString(text) == 0);
}

int main(void)
{
    setenv("PYTHONMALLOC", "malloc", 1);
    Py_InitializeEx(0);
    PyObject *types = PyList_New(0), *folder = PyUnicode_FromString("/nowhere/");
    CHECK(tlm_python_types((uint64_t)(uintptr_t)folder, (uint64_t)(uintptr_t)types) == TLM_OK);
    PyObject *names = PyModule_GetDict(PyImport_AddModule("__main__"));
    PyDict_SetItemString(names, "Reference", PyList_GetItem(types, 0));
    PyDict_SetItemString(names, "Lent", PyList_GetItem(types, 1));
    Py_DECREF(types);
    run(program);
    CHECK(tlm_objects_alive(NULL, 0) == 0);
    tlm_runtime_statistics now;
    tlm_runtime_stats(0, &now);
    CHECK(now.total_count == now.freed_count && now.current_bytes == 0 && now.floating == 0);

    run(at_the_end);
    CHECK(tlm_objects_alive(NULL, 0) == 22);
    Py_Finalize();
    /* Dropped by whoever frees an object when there is no interpreter any more: the owner stays. */
    tlm_object object;
    CHECK(tlm_object_adopt(TLM_DEVICE_CPU, NULL, 0, tlm_python_drop_call, &object, &object) == TLM_OK);
    CHECK(tlm_release(object, TLM_HOLDER(TLM_HOLDER_FLOATING, 0)) == TLM_OK);
    return 0;
}
