/* SPDX-License-Identifier: MIT */
/* Graphs, as captures make them, and their launch: every node becomes an operation that comes after
 * its own dependencies only, so branches run in any order; the stream goes on after all of them. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>

struct CUgraphExec_st {
    struct CUgraph_st *graph; /* a copy */
    struct sim_op *last;      /* of the last launch; counted */
};

struct CUgraph_st *sim_new_graph(void)
{
    return calloc(1, sizeof(struct CUgraph_st));
}

struct CUgraphNode_st *sim_add_node(struct CUgraph_st *g, const struct sim_work *work,
                                    const struct sim_nodes *deps)
{
    struct CUgraphNode_st *n = calloc(1, sizeof *n);

    *n = (struct CUgraphNode_st){*work, *deps, (unsigned)g->count, g};
    g->nodes = realloc(g->nodes, (g->count + 1) * sizeof *g->nodes);
    g->nodes[g->count++] = n;
    return n;
}

void sim_free_graph(struct CUgraph_st *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->nodes[i]);
    free(g->nodes);
    free(g);
}

/* --- questions --- */

static CUresult nodes(CUgraph g, CUgraphNode *out, size_t *count)
{
    if (!g || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; out && i < *count; i++)
        out[i] = i < g->count ? g->nodes[i] : NULL;
    *count = !out || g->count < *count ? g->count : *count;
    return CUDA_SUCCESS;
}

static CUresult edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    size_t n = 0;

    if (!g || !count || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->count; i++) {
        for (unsigned k = 0; k < g->nodes[i]->deps.count; k++, n++) {
            if (from && n < *count) {
                from[n] = g->nodes[g->nodes[i]->deps.number[k]];
                to[n] = g->nodes[i];
            }
        }
    }
    *count = !from || n < *count ? n : *count;
    return CUDA_SUCCESS;
}

static CUresult type_of(CUgraphNode n, CUgraphNodeType *type)
{
    static const CUgraphNodeType types[] = {[SIM_NOTHING] = CU_GRAPH_NODE_TYPE_EMPTY,
                                            [SIM_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
                                            [SIM_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,
                                            [SIM_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
                                            [SIM_HOST_FUNCTION] = CU_GRAPH_NODE_TYPE_HOST,
                                            [SIM_WRITE] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                            [SIM_WAIT] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};

    if (!n || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = types[n->work.kind];
    return CUDA_SUCCESS;
}

/* --- instances --- */

static CUresult instantiate(CUgraphExec *exec, CUgraph g)
{
    if (!exec || !g)
        return CUDA_ERROR_INVALID_VALUE;
    *exec = calloc(1, sizeof **exec);
    (*exec)->graph = sim_new_graph();
    for (size_t i = 0; i < g->count; i++)
        sim_add_node((*exec)->graph, &g->nodes[i]->work, &g->nodes[i]->deps);
    return CUDA_SUCCESS;
}

/* Between two operations of the stream: one that all nodes come after, one after all of them. */
static CUresult launch(CUgraphExec exec, CUstream handle, bool per_thread)
{
    static const struct sim_work nothing = {.kind = SIM_NOTHING};
    struct sim_op *start, *end, **ops;
    struct CUgraph_st *g = exec ? exec->graph : NULL;
    struct CUstream_st *s;
    CUresult r = g ? sim_stream(handle, per_thread, &s) : CUDA_ERROR_INVALID_VALUE;

    if (r)
        return r;
    if (s->capture) /* a child graph, natively: not modelled */
        return CUDA_ERROR_NOT_SUPPORTED;
    sim_hold();
    start = sim_marker(s);
    if (!start)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    sim_depend(start, exec->last); /* an instance runs once at a time */
    end = sim_new_op(s->context, &nothing);
    ops = calloc(g->count + 1, sizeof *ops);
    for (size_t i = 0; i < g->count; i++) {
        const struct sim_nodes *deps = &g->nodes[i]->deps;

        ops[i] = sim_new_op(s->context, &g->nodes[i]->work);
        sim_depend(ops[i], start);
        for (unsigned k = 0; k < deps->count; k++)
            sim_depend(ops[i], ops[deps->number[k]]);
        sim_depend(end, ops[i]);
        sim_add(ops[i]);
    }
    for (size_t i = 0; i < g->count; i++)
        sim_unref(ops[i]);
    free(ops);
    sim_unref(start);
    sim_unref(exec->last);
    exec->last = sim_ref(end);
    sim_append(s, end);
    return CUDA_SUCCESS;
}

static CUresult destroy(CUgraph g)
{
    if (!g)
        return CUDA_ERROR_INVALID_VALUE;
    sim_free_graph(g);
    return CUDA_SUCCESS;
}

static CUresult destroy_exec(CUgraphExec exec)
{
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sim_free_graph(exec->graph);
    sim_unref(exec->last);
    free(exec);
    return CUDA_SUCCESS;
}

#define CALL(name, params, body)                                                                   \
    EXPORT CUresult name params                                                                    \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(body);                                                            \
    }
CALL(cuGraphGetNodes, (CUgraph g, CUgraphNode *out, size_t *count), nodes(g, out, count))
CALL(cuGraphGetEdges, (CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count),
     edges(g, from, to, count))
CALL(cuGraphGetEdges_v2,
     (CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count),
     edges(g, from, to, count))
CALL(cuGraphNodeGetType, (CUgraphNode n, CUgraphNodeType *type), type_of(n, type))
CALL(cuGraphInstantiate,
     (CUgraphExec * exec, CUgraph g, CUgraphNode *bad, char *text, size_t length),
     instantiate(exec, g))
CALL(cuGraphInstantiate_v2,
     (CUgraphExec * exec, CUgraph g, CUgraphNode *bad, char *text, size_t length),
     instantiate(exec, g))
CALL(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph g, unsigned long long flags),
     instantiate(exec, g))
CALL(cuGraphLaunch, (CUgraphExec exec, CUstream s), launch(exec, s, false))
CALL(cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream s), launch(exec, s, true))
CALL(cuGraphDestroy, (CUgraph g), destroy(g))
CALL(cuGraphExecDestroy, (CUgraphExec exec), destroy_exec(exec))
