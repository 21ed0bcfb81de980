/* SPDX-License-Identifier: MIT */
#include "shim/debt.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/turn.h"
#include "shim/mutant.h"

enum { JOINED = 64 };

/* Made once a context. The events are used again for each debt: a later record covers the earlier.
 */
static struct {
    const struct es_port *port;
    CUcontext context;
    uint64_t id;
    CUstream side;
    CUevent copied, owed; /* owed: recorded on the legacy stream */
} made;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static CUstream joined[JOINED]; /* non-blocking streams that wait for it already */
static unsigned joined_count;
static uint64_t debts;

atomic_bool es_debt_owed;
static atomic_flag side_taken = ATOMIC_FLAG_INIT;

bool es_debt_take_side(void)
{
    return !atomic_flag_test_and_set(&side_taken);
}

void es_debt_leave_side(void)
{
    atomic_flag_clear(&side_taken);
}

CUstream es_debt_side_stream(const struct es_port *port, CUcontext context, uint64_t id)
{
    if (made.side && made.context == context && made.id == id)
        return made.side;
    made.side = NULL; /* of a context that is gone: so are they */
    if (port->stream_create(&made.side, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return made.side = NULL;
    if (port->event_create(&made.copied, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
        port->event_create(&made.owed, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return made.side = NULL;
    es_stream_made_side(made.side);
    made.port = port;
    made.context = context;
    made.id = id;
    return made.side;
}

/* What natively is printed or reported by the work that was not waited for must be so before the
 * driver goes. Registered while the driver is there, it runs before the driver's own end. */
static void settle_at_exit(void)
{
    es_debt_settle();
}

bool es_debt_side_waits_for(CUstream stream)
{
    return made.port->event_record(made.copied, stream) == CUDA_SUCCESS &&
           (ES_BROKEN(WAIT_TAIL) ||
            made.port->stream_wait_event(made.side, made.copied, 0) == CUDA_SUCCESS);
}

bool es_debt_owe(const struct es_port *port)
{
    static atomic_bool registered;

    if (port->event_record(made.copied, made.side) != CUDA_SUCCESS ||
        (!ES_BROKEN(BEHIND_COPY) &&
         port->stream_wait_event(CU_STREAM_LEGACY, made.copied, 0) != CUDA_SUCCESS) ||
        port->event_record(made.owed, CU_STREAM_LEGACY) != CUDA_SUCCESS) {
        port->stream_wait(made.side);
        port->stream_wait(CU_STREAM_LEGACY);
        return false;
    }
    if (!atomic_exchange(&registered, true))
        atexit(settle_at_exit);
    pthread_mutex_lock(&lock);
    if (!ES_BROKEN(REJOIN))
        joined_count = 0;
    debts++;
    if (!ES_BROKEN(OWED)) {
        atomic_store(&es_debt_owed, true);
        es_turn_owe(true);
    }
    pthread_mutex_unlock(&lock);
    return true;
}

void es_debt_settle(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int saved = errno;
    uint64_t which;

    if (!es_debt_is_owed())
        return;
    pthread_mutex_lock(&lock);
    which = debts;
    pthread_mutex_unlock(&lock);
    if (!ES_BROKEN(SETTLE) && made.port->capture_mode(&mode) == CUDA_SUCCESS) {
        made.port->event_wait(made.owed); /* a fault is told by the program's own next call */
        made.port->capture_mode(&mode);
    }
    pthread_mutex_lock(&lock);
    if (debts == which) {
        atomic_store(&es_debt_owed, false);
        es_turn_owe(false);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* True: the stream waits for the debt, or needs not to. */
static bool is_joined(CUstream stream)
{
    unsigned flags = CU_STREAM_NON_BLOCKING;

    if (stream == ES_EVERY_STREAM)
        return false;
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return true;
    for (unsigned i = 0; i < joined_count; i++)
        if (joined[i] == stream)
            return true;
    if (!es_stream_is_nonblocking(stream) &&
        made.port->stream_flags(stream, &flags) != CUDA_SUCCESS)
        return false;
    if (!(flags & CU_STREAM_NON_BLOCKING))
        return true;
    if (ES_BROKEN(JOIN))
        return true;
    if (joined_count == JOINED ||
        made.port->stream_wait_event(stream, made.owed, 0) != CUDA_SUCCESS)
        return false;
    joined[joined_count++] = stream;
    return true;
}

void es_debt_join(CUstream stream)
{
    bool done;

    pthread_mutex_lock(&lock);
    done = is_joined(stream);
    pthread_mutex_unlock(&lock);
    if (!done)
        es_debt_settle();
}

void es_debt_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    es_debt_leave_side();
    atomic_store(&es_debt_owed, false);
    debts = 0;
}
