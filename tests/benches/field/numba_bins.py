# Two threads without the interpreter's lock count in neighbouring bins of one array, by code that numba compiled.
#
# Known by the source: `bins[0:2]` and `bins[2:4]` lie within 32 bytes, each with one thread that loads and stores them.
# Which bin it is comes from the data, so that LLVM cannot keep it in a register. Measured on two CPUs, bins 128 bytes
# apart take 2.6 to 3.7 times less. The memory is NumPy's, from malloc; no symbol, unwind table or map names the code.
#
# FIELD: {"language": "python", "pip": ["numba"], "findings": [
#   {"kinds": ["false-sharing"], "names": [], "functions": [], "not_on": ["stack"],
#    "advice_never": ["struct {", "aligned_alloc"], "missing": "partly"}],
#   "never": ["No sharing of cache lines worth acting on"]}
import os
import threading
import time

import numba
import numpy


@numba.njit(nogil=True)
def count(bins, first, values, rounds):
    for i in range(rounds):
        bins[first + (values[i & 1023] & 1)] += 1


bins = numpy.zeros(4, dtype=numpy.int64)
values = numpy.random.default_rng(1).integers(0, 1000, 1024)
count(bins, 0, values, 10)
for first in (0, 2):
    threading.Thread(target=count, args=(bins, first, values, 1 << 40), daemon=True).start()
time.sleep(0.3)
print("ready", os.getpid(), flush=True)
time.sleep(120)
os._exit(0)
