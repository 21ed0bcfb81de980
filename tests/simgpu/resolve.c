/* SPDX-License-Identifier: MIT */
/* cuGetProcAddress: a name without suffix, a CUDA version and a flag choose one exported symbol.
 * The per-thread flag prefers _ptds and _ptsz; of several ABIs the newest that the version knows is
 * given. With SIMGPU_DRIVER_VERSION below 13000 newer functions are not found. */
#include "tests/simgpu/sim.h"

#include <string.h>

#include "tests/simgpu/exports.h"

/* Functions of a driver newer than any header: what shall the shim think of them? The second one's
 * arguments take every register there is for them, and the stack; it says whether they came. */
EXPORT CUresult cuSimUnheardOf(CUstream stream);
EXPORT CUresult cuSimUnheardOf(CUstream stream)
{
    CUresult r = sim_enter("cuSimUnheardOf");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuSimArguments(long a, long b, long c, long d, long e, long f, long g, long h,
                               long i, double p, double q, double r, double s, double t, double u,
                               double v, double w, double x);
EXPORT CUresult cuSimArguments(long a, long b, long c, long d, long e, long f, long g, long h,
                               long i, double p, double q, double r, double s, double t, double u,
                               double v, double w, double x)
{
    const long whole[] = {a, b, c, d, e, f, g, h, i};
    const double real[] = {p, q, r, s, t, u, v, w, x};

    for (int n = 0; n < 9; n++)
        if (whole[n] != n + 1 || real[n] != n + 0.5)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* The driver's private tables: what the static runtime asks for, and what this one has not. */
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    CUresult r = sim_enter("cuGetExportTable");

    if (r)
        return r;
    if (table)
        *table = NULL;
    return sim_leave(CUDA_ERROR_NOT_FOUND);
}

static const struct {
    const char *name;
    void *address;
    int since;
} exports[] = {
#define X(symbol, since) {#symbol, (void *)symbol, since},
    SIM_EXPORTS(X)
#undef X
        {"cuSimUnheardOf", (void *)cuSimUnheardOf, 13000},
    {"cuSimArguments", (void *)cuSimArguments, 13000},
};
enum { EXPORTS = sizeof exports / sizeof *exports };

/* A name that means another function from a version on. */
static const struct {
    const char *name, *means;
    int since;
} renamed[] = {{"cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000}};

/* "cuMemcpyHtoD_v2_ptds" is cuMemcpyHtoD: ABI 2, per thread. */
static bool describes(const char *symbol, const char *name, int *abi, bool *per_thread)
{
    size_t length = strlen(name);
    const char *rest = symbol + length;

    *abi = 1;
    if (strncmp(symbol, name, length) != 0)
        return false;
    if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '2' && rest[2] <= '9') {
        *abi = rest[2] - '0';
        rest += 3;
    }
    *per_thread = strcmp(rest, "_ptds") == 0 || strcmp(rest, "_ptsz") == 0;
    return !*rest || *per_thread;
}

static void *find(const char *name, int version, bool per_thread)
{
    void *best = NULL;
    int best_rank = -1;

    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(renamed[i].name, name) == 0 && version >= renamed[i].since &&
            sim.version >= renamed[i].since)
            name = renamed[i].means;
    for (int i = 0; i < EXPORTS; i++) {
        bool is_per_thread;
        int abi, needs = exports[i].since, rank;

        if (!describes(exports[i].name, name, &abi, &is_per_thread) || needs > version ||
            needs > sim.version || (is_per_thread && !per_thread))
            continue;
        rank = abi * 2 + is_per_thread;
        if (rank > best_rank) {
            best_rank = rank;
            best = exports[i].address;
        }
    }
    return best;
}

static CUresult resolve(const char *name, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    *function = find(name, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    if (status)
        *status = *function                    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : find(name, 1 << 30, false) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                               : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    CUresult r = sim_enter("cuGetProcAddress");

    return r ? r : sim_leave(resolve(name, function, version, flags, NULL));
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    CUresult r = sim_enter("cuGetProcAddress_v2");

    return r ? r : sim_leave(resolve(name, function, version, flags, status));
}
