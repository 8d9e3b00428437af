"""Every threshold of code generation that was fitted to measurements, with what it was measured on.

"Catalogue" is every arm of the catalogue with its inertia matrix, inverse and forward dynamics and Jacobian, in batches
that fit into the cache unless it says otherwise, on an AMD EPYC with AVX2 (4 lanes).
"""

# Optimisation. LLVM's level 2 takes a tenth longer than level 1, a third longer for long programs in parts (Talos), and
# its code takes as long to run (7 programs of the UR5, Puma, Panda and iiwa with AVX-512, by rows and strided: 0.98 to
# 1.01). Beyond the number of nodes here it is level 0: 111 000 nodes take 8.4 s at level 2 and 2.0 s at level 0.
OPTIMISATION = 1
LARGEST_OPTIMISED = 100_000  # nodes

# Large results (inertia matrices of the Panda and the Puma, batches of 10³ to 10⁷). From the first size on, the cache
# lines that results go to are prefetched: up to twice as fast, below it up to a tenth slower. From the second on,
# results are written with non-temporal stores: a quarter faster, below it up to half slower.
PREFETCHED_FROM = 10 * 2**20  # bytes of all results
NON_TEMPORAL_FROM = 24 * 2**20
PREFETCH_DISTANCE = 2  # blocks from the one that is computed to the one whose cache lines are prefetched
# Talos's inertia matrix (38 × 38, 92 kB per block of 8) takes 0.65 µs staged, 0.75 µs by ordinary stores, and 0.59 µs
# where it is copied in parts of 16 kB, which stay in the first cache and drain while the next part is transposed.
LARGEST_STAGED_BLOCK = 2**18  # bytes of one block's results that are staged on the stack for non-temporal stores

# Code from rows to rows (catalogue; with AVX-512 on an AMD Zen 4, see docs/adr/0010). Longer programs and those with
# more results gain 5 % inside the cache and lose beyond it.
LONGEST_ROWS_TO_ROWS = 1600  # nodes
MOST_RESULTS_SCHEDULED = 64  # distinct results; with more, the order as traced spills least
# With AVX-512, inertia matrices of Baxter with 17, 14, 12 and 11 joints free: by columns, where results are staged in
# parts, 289 and 196 numbers take 10 and 33 % less time beyond the cache (3 and 17 % more inside it), 144 and 121
# numbers as long (and 3 to 15 % more).
MOST_NUMBERS_BY_ROWS = 150  # of all results, per configuration

# Compile time: LLVM's grows faster than a function's length (regressors of 7 to 30 joints). Also the part of a staged
# block that is copied at once: with 64 squares Talos's inertia matrix takes 5 % longer, with 16 as long.
SQUARES_PER_FUNCTION = 32  # transposed in one function
# Plain LLVM IR is one function up to the first number of nodes, beyond it functions of the second. Talos, times per
# configuration: inverse dynamics' derivatives (19 800 nodes) compile in 3.0 s and take 1.11 µs as one function, 1.1 s
# and 0.80 µs in parts of 300, 1.4 s and 0.96 µs in parts of 1000; forward dynamics (6000) gains 5 %, inverse dynamics
# (2900) loses a third.
LONGEST_FUNCTION = 5000
NODES_PER_FUNCTION = 300
UNROLLED_PREFETCH = 256  # cache lines of one block of results that are prefetched without a loop
UNROLLED_COPY = 100  # numbers of a single call's result that are copied without a loop

# List scheduling (catalogue). Longer code is bound by instruction fetch, and spills cost more than waiting.
LONGEST_SCHEDULED = 3000  # instructions
# Weights of the scheduler in cycles, fitted to times on the catalogue; the optimum is wide.
CRITICAL_PATH_WEIGHT = 0.014  # per cycle of latency from an instruction to the end of the last that depends on it
PRESSURE_WEIGHT, PRESSURE_FREE = 0.06, 9  # per further live value, and how many may be live before each counts again
LOCALITY_WEIGHT, LOCALITY_WINDOW = 0.0085, 22  # per instruction that an argument was made sooner than so many ago

# Register allocation (catalogue and its derivatives).
NEAR_USE = 4  # instructions within which a second use of a memory operand is worth a free register
RELOAD_ADVANTAGE = (
    5  # a value that memory holds may be needed so many times sooner than one that must be stored to spill
)

# Single calls. Beyond this number of nodes they have a program of one lane, beside that of 8 lanes for batches. With
# one lane Talos's inertia matrix takes 0.55 µs instead of 1.1, inverse dynamics' derivatives 3.4 µs instead of 6.4, for
# as much compiling again. With 4 lanes (AVX2) they would gain a fifth.
LONGEST_WIDE_SINGLE = 2000

ANGLES_INTERLEAVED = 2  # whose sines are computed side by side; three need more registers than there are
