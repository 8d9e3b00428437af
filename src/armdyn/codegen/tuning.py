"""The tuning constants of code generation, each with the measurements it was fitted to.

"Catalogue" stands for the inertia matrix, inverse and forward dynamics and Jacobian of every arm in the catalogue, in
batches that fit into the cache unless stated otherwise, on an AMD EPYC with AVX2 (4 lanes).
"""

# Optimisation level. Compiling takes a tenth longer at LLVM's level 2 than at level 1, a third longer for long programs
# split into functions (Talos); the code is as fast (7 programs of the UR5, Puma, Panda and iiwa with AVX-512,
# contiguous and strided: 0.98 to 1.01). Above `LARGEST_OPTIMISED`, level 0 is used: 111 000 nodes take 8.4 s at level 2
# and 2.0 s at level 0.
OPTIMISATION = 1
LARGEST_OPTIMISED = 100_000  # nodes

# Large results (inertia matrices of the Panda and the Puma, batches of 10³ to 10⁷). From the first size on, the cache
# lines of the results are prefetched: up to twice as fast, below it up to a tenth slower. From the second on, results
# are written with non-temporal stores: a quarter faster, below it up to half slower.
PREFETCHED_FROM = 10 * 2**20  # bytes of all results
NON_TEMPORAL_FROM = 24 * 2**20
PREFETCH_DISTANCE = 2  # blocks ahead of the current one
# Talos's inertia matrix (38 × 38, 92 kB per block of 8) takes 0.65 µs staged, 0.75 µs by ordinary stores, and 0.59 µs
# if copied in parts of 16 kB, which stay in the L1 cache and drain while the next part is transposed.
LARGEST_STAGED_BLOCK = 2**18  # bytes of one block's results that are staged on the stack for non-temporal stores

# Code from rows to rows (catalogue; with AVX-512 on an AMD Zen 4, see docs/adr/0010). Longer programs and those with
# more results gain 5 % inside the cache and lose beyond it.
LONGEST_ROWS_TO_ROWS = 1600  # nodes
MOST_RESULTS_SCHEDULED = 64  # distinct results; with more, the traced order spills least
# With AVX-512, inertia matrices of Baxter with 17, 14, 12 and 11 free joints: through columns, with results staged in
# parts, 289 and 196 numbers take 10 and 33 % less time beyond the cache (3 and 17 % more inside it); 144 and 121
# numbers take the same time (3 to 15 % more inside it).
MOST_NUMBERS_BY_ROWS = 150  # of all results, per configuration

# Compile time: LLVM's grows faster than linearly with a function's length (regressors of 7 to 30 joints). This is also
# the part of a staged block that is copied at once: with 64 tiles Talos's inertia matrix takes 5 % longer, with 16 the
# same time.
SQUARES_PER_FUNCTION = 32  # tiles transposed in one function
# Plain LLVM IR is one function up to `LONGEST_FUNCTION` nodes, and is split into functions of `NODES_PER_FUNCTION`
# beyond. Talos, times per configuration: the derivatives of inverse dynamics (19 800 nodes) compile in 3.0 s and take
# 1.11 µs as one function, 1.1 s and 0.80 µs in functions of 300 nodes, 1.4 s and 0.96 µs in functions of 1000; forward
# dynamics (6000 nodes) gains 5 %, inverse dynamics (2900 nodes) loses a third.
LONGEST_FUNCTION = 5000
NODES_PER_FUNCTION = 300
UNROLLED_PREFETCH = 256  # cache lines of one block of results; beyond, a loop prefetches them
UNROLLED_COPY = 100  # numbers of a single call's result; beyond, a loop copies them

# Arrays of a function that are larger together are allocated on the heap, so that threads with small stacks (512 KiB on
# macOS) can call kernels of large arms. Twelve joints need at most 100 KiB (the regressor with AVX-512).
LARGEST_FRAME = 2**17  # bytes

# List scheduling (catalogue). Longer code is bound by instruction fetch, and there spills cost more than stalls.
LONGEST_SCHEDULED = 3000  # instructions
# Weights of the scheduler in cycles, fitted to times on the catalogue; the optimum is flat.
CRITICAL_PATH_WEIGHT = 0.014  # per cycle of the critical path from the start of an instruction
# A further live value costs PRESSURE_WEIGHT · (1 + live values beyond PRESSURE_FREE).
PRESSURE_WEIGHT, PRESSURE_FREE = 0.06, 9
# An argument computed n < LOCALITY_WINDOW instructions ago gains LOCALITY_WEIGHT · (LOCALITY_WINDOW - n).
LOCALITY_WEIGHT, LOCALITY_WINDOW = 0.0085, 22

# Register allocation (catalogue and its derivatives).
NEAR_USE = 4  # instructions within which a second use of a memory operand is worth a free register
RELOAD_ADVANTAGE = 5  # factor on the next-use distance of a value that is already in memory: evicting it costs no store

# Single calls. Programs with more nodes get a second version, one lane wide, besides that of 8 lanes for batches. With
# one lane Talos's inertia matrix takes 0.55 µs instead of 1.1, the derivatives of inverse dynamics 3.4 µs instead of
# 6.4, for twice the compile time. With 4 lanes (AVX2) they would gain a fifth.
LONGEST_WIDE_SINGLE = 2000

# Small batches are computed without NumPy's gufunc, whose fixed cost is 3 to 5 µs, but under the interpreter's lock:
# up to this many nodes times configurations, about 0.1 ms.
SMALL_BATCH = 1_000_000

ANGLES_INTERLEAVED = 2  # sines computed at the same time; three exceed the registers
