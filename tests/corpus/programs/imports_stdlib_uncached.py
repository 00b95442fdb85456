import sys, tempfile, pkgutil, importlib
folder = tempfile.TemporaryDirectory()
sys.pycache_prefix = folder.name; sys.dont_write_bytecode = True
import numpy as np
names = "asyncio.events asyncio.tasks email.message http.server http.client xml.dom.minidom xml.etree.ElementTree sqlite3 unittest.mock multiprocessing.pool concurrent.futures.process logging.handlers logging.config argparse optparse pdb profile cProfile pydoc doctest difflib turtle tarfile zipfile imaplib smtplib ftplib mailbox decimal fractions statistics typing dataclasses inspect ast tokenize ctypes.util curses.ascii tkinter.constants plistlib configparser csv html.parser json.tool lib2to3.refactor lib2to3.pytree distutils.core wsgiref.simple_server".split()
done = 0
for n in names:
    try: importlib.import_module(n); done += 1
    except ImportError: pass
x = np.ones(1000).sum()
print(done)
