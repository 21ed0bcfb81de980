/* SPDX-License-Identifier: MIT */
/* cuGetProcAddress: the real one answers first, with the same arguments; then its answer is looked
 * up by address. Not counted as use: a program may ask for everything and call nothing. */
#include "intercept/driver.h"
#include "intercept/trampoline.h"

/* A look-up that answers is a look-up of the driver's own function: one without a row is unknown.
 */
static void substitute(CUresult r, const char *symbol, void **function)
{
    if (r != CUDA_SUCCESS || !function || !*function || es_driver_find(*function, function))
        return;
    if (es_driver_learn())
        *function = es_trampoline_for(*function, symbol);
}

ES_EXPORT CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **function, int version,
                                            cuuint64_t flags)
{
    CUresult r = ES_REAL(cuGetProcAddress)(symbol, function, version, flags);

    substitute(r, symbol, function);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                               cuuint64_t flags,
                                               CUdriverProcAddressQueryResult *status)
{
    CUresult r = ES_REAL(cuGetProcAddress_v2)(symbol, function, version, flags, status);

    substitute(r, symbol, function);
    return r;
}
