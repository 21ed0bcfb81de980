/* SPDX-License-Identifier: MIT */
#include "shim/report.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/count.h"
#include "shim/stream.h"
#include "shim/unknown.h"

struct text {
    char *at;
    size_t left, length;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n >= t->left)
        n = t->left ? (int)t->left - 1 : 0;
    t->at += n;
    t->left -= (size_t)n;
    t->length += (size_t)n;
}

/* 1536 -> "1.50 KiB". */
static const char *size_text(uint64_t bytes, char text[16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double n = (double)bytes;
    unsigned u = 0;

    while (n >= 1000 && u < 5) {
        n /= 1024;
        u++;
    }
    snprintf(text, 16,
             u == 0    ? "%.0f %s"
             : n < 10  ? "%.2f %s"
             : n < 100 ? "%.1f %s"
                       : "%.0f %s",
             n, units[u]);
    return text;
}

static const char *time_text(uint64_t ns, char text[16])
{
    if (ns < 1000000)
        snprintf(text, 16, "%.1f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(text, 16, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(text, 16, "%.2f s", (double)ns / 1e9);
    return text;
}

/* Faster than any bus: the call returned before its copy ended, so its time says nothing. */
static const char *rate_text(const struct es_tally *n, char text[16])
{
    double rate = n->blocked_ns ? (double)n->bytes / (double)n->blocked_ns : 1e9;

    if (rate > 200)
        return "-";
    snprintf(text, 16, "%.2f", rate);
    return text;
}

static const char *const direction[ES_DIRECTIONS] = {"H2D", "D2H"};

static void put_outcomes(struct text *t, const struct es_ledger *l)
{
    char size[16], time[16], rate[16];

    put(t, "%-10s %9s %10s %11s %7s\n", "", "copies", "bytes", "blocked", "GB/s");
    for (enum es_direction d = 0; d < ES_DIRECTIONS; d++) {
        for (enum es_reason w = 0; w < ES_REASON_COUNT; w++) {
            const struct es_tally *n = &l->by_outcome[d][w];

            if (n->copies)
                put(t, "%s %-6s %9" PRIu64 " %10s %11s %7s%s%s\n", direction[d],
                    w == ES_WHY_NONE ? "staged" : "native", n->copies, size_text(n->bytes, size),
                    time_text(n->blocked_ns, time), rate_text(n, rate),
                    w == ES_WHY_NONE ? "" : "  ", es_reason_text(w));
        }
    }
}

/* The innermost frame that is not CUDA's own; the innermost one if all are. */
static const void *caller_of(const struct es_report *r, const struct es_stack *stack)
{
    for (unsigned i = 0; i < ES_FRAMES && stack->frames[i]; i++)
        if (!r->is_cuda(stack->frames[i]))
            return stack->frames[i];
    return stack->frames[0];
}

/* Leaves of each stack its caller, and of several with the same one their sum. Those that took the
 * longest, at least: looking at code addresses takes time. */
static void put_together(const struct es_report *r)
{
    enum { LOOKED_AT = 64 };
    struct es_ledger *l = r->ledger;
    unsigned kept = 0;

    for (unsigned i = 0; i < l->site_count; i++) {
        struct es_site s = l->sites[i];
        unsigned same = 0;

        if (i < LOOKED_AT)
            s.stack.frames[0] = caller_of(r, &s.stack);
        while (same < kept &&
               (l->sites[same].stack.frames[0] != s.stack.frames[0] || l->sites[same].dir != s.dir))
            same++;
        if (same == kept) {
            l->sites[kept++] = s;
        } else {
            l->sites[same].tally.copies += s.tally.copies;
            l->sites[same].tally.bytes += s.tally.bytes;
            l->sites[same].tally.blocked_ns += s.tally.blocked_ns;
            l->sites[same].staged += s.staged;
        }
    }
    l->site_count = kept;
    qsort(l->sites, kept, sizeof l->sites[0], es_site_order);
}

static void put_sites(struct text *t, const struct es_report *r)
{
    const struct es_ledger *l = r->ledger;
    unsigned most = r->detail == ES_LOG_FULL ? UINT_MAX : 5;
    char size[16], time[16], place[256];

    put_together(r);
    put(t, "%scall sites, by the time they blocked:\n", l->site_count > most ? "busiest " : "");
    for (unsigned i = 0; i < l->site_count && i < most; i++) {
        const struct es_site *s = &l->sites[i];

        r->place(s->stack.frames[0], place, sizeof place);
        put(t, "  %9s %s %" PRIu64 " of %" PRIu64 " staged, %s: %s, %s\n",
            time_text(s->tally.blocked_ns, time), direction[s->dir], s->staged, s->tally.copies,
            size_text(s->tally.bytes, size), s->stack.api, place);
    }
    if (l->site_count > most)
        put(t, "  and %u more (EPOCHSHIM_LOG=full shows all)\n", l->site_count - most);
    if (l->sites_dropped)
        put(t, "  %" PRIu64 " copies came from call sites beyond the table\n", l->sites_dropped);
}

static void put_seen(struct text *t)
{
    static const char *const names[] = {
#define X(id, text) [ES_SEEN_##id] = text,
        ES_SEEN_GROUPS(X)
#undef X
    };
    size_t column = 0;

    for (enum es_seen g = 0; g < ES_SEEN_COUNT; g++) {
        uint64_t n = es_count_total(g);
        char item[64];
        size_t length;

        if (g == ES_SEEN_COPY || g == ES_SEEN_START || g == ES_SEEN_RESOLVE || n == 0)
            continue;
        length = (size_t)snprintf(item, sizeof item, "%s: %" PRIu64, names[g], n);
        if (column == 0)
            put(t, "also seen:\n ");
        else if (column + length > 76)
            put(t, ",\n ");
        else
            put(t, ",");
        column = column == 0 || column + length > 76 ? 1 : column + 1;
        put(t, " %s", item);
        column += length + 1;
    }
    if (column)
        put(t, "\n");
}

static void put_unknown(struct text *t)
{
    const char *names[4];
    unsigned n = es_unknown_names(names, 4);

    if (n == 0)
        return;
    put(t, "unknown driver functions were called:");
    for (unsigned i = 0; i < 4 && names[i]; i++)
        put(t, "%s %s", i ? "," : "", names[i]);
    if (n > 4)
        put(t, " and %u more", n - 4);
    put(t, "\n  from then on no copy left its place in its stream, and no wait was dropped\n");
}

static void put_staging(struct text *t, const struct es_report *r)
{
    char a[16], b[16];

    if (r->pool.peak)
        put(t, "staging: %s pinned, copied by up to %u thread%s\n", size_text(r->pool.peak, a),
            r->threads, r->threads == 1 ? "" : "s");
    if (r->pool.refused_at)
        put(t, "staging: the driver refused to pin more, at %s\n",
            size_text(r->pool.refused_at, a));
    if (r->ledger->rest_bytes)
        put(t, "staging: %s went natively behind a staged part\n",
            size_text(r->ledger->rest_bytes, b));
    if (r->ledger->verified || r->ledger->differed)
        put(t, "verify: %" PRIu64 " staged copies the same, %" PRIu64 " DIFFERENT\n",
            r->ledger->verified, r->ledger->differed);
}

/* "stream 12@3": an epoch of a stream; those that were made are numbered as they came. */
static const char *place_text(struct es_tick t, char text[40])
{
    static const char *const names[] = {"legacy stream", "per-thread stream", "a stream",
                                        "side stream"};
    unsigned ordinal = ES_STREAM_FIRST;
    const struct es_stream *s;

    if (!t.epoch)
        return "host";
    while ((s = es_stream_used(ordinal)) && es_stream_number(s) != t.stream)
        ordinal++;
    if (t.stream < ES_STREAM_FIRST)
        snprintf(text, 40, "%s@%" PRIu64, names[t.stream], t.epoch);
    else
        snprintf(text, 40, "stream %u@%" PRIu64, ordinal - ES_STREAM_FIRST + 1, t.epoch);
    return text;
}

static void put_handoffs(struct text *t, const struct es_report *r)
{
    static const struct {
        const char *with, *waited_for;
    } verdicts[] = {
#define X(id, with, text) [ES_VERDICT_##id] = {with, text},
        ES_VERDICTS(X)
#undef X
    };
    const struct es_handoffs *h = r->handoffs;
    bool said = false;
    char size[16];

    for (enum es_verdict v = 0; v < ES_VERDICT_COUNT; v++) {
        if (h->count[v] == 0)
            continue;
        if (!said)
            put(t, "handoffs of memory, by what they waited for:\n");
        said = true;
        put(t, "%-10s %9" PRIu64 " %10s  %s\n", verdicts[v].with, h->count[v],
            size_text(h->sum[v].bytes, size), verdicts[v].waited_for);
        if (h->sum[v].left)
            put(t, "%30s and not for up to %" PRIu64 " operations queued before\n", "",
                h->sum[v].left);
        if (v == ES_VERDICT_TOUCHED && !r->by_args)
            put(t, "%30s any kernel may: see EPOCHSHIM_KERNELS=args\n", "");
    }
}

/* Each of the first ones. */
static void put_each_handoff(struct text *t)
{
    static const char *const waited_for[] = {
#define X(id, with, text) [ES_VERDICT_##id] = text,
        ES_VERDICTS(X)
#undef X
    };
    char from[40], to[40], size[16];
    struct es_handoff h;

    for (unsigned i = 0; es_handoff_kept(i, &h); i++) {
        put(t, "%s  %s -> %s, %s: %s", i ? "" : "the first of these handoffs:\n",
            place_text(h.from, from), place_text(h.to, to), size_text(h.bytes, size),
            waited_for[h.verdict]);
        if (h.left)
            put(t, ", not up to %" PRIu64 " operations", h.left);
        put(t, "\n");
    }
}

size_t es_report_print(const struct es_report *r, char *text, size_t size)
{
    struct text t = {text, size, 0};
    uint64_t seen = 0, staged = 0;
    size_t cut = strlen(r->program); /* the end of a path tells more */

    cut = cut > 48 ? cut - 45 : 0;
    if (size)
        text[0] = '\0';
    for (enum es_direction d = 0; d < ES_DIRECTIONS; d++) {
        staged += r->ledger->by_outcome[d][ES_WHY_NONE].copies;
        for (enum es_reason w = 0; w < ES_REASON_COUNT; w++)
            seen += r->ledger->by_outcome[d][w].copies;
    }
    put(&t, "--- epochshim %s, pid %ld%s%s, %s%s\n", ES_VERSION, r->pid, r->rank ? ", rank " : "",
        r->rank ? r->rank : "", cut ? "..." : "", r->program + cut);
    put(&t, "copies: seen %" PRIu64 ", staged %" PRIu64 ", native %" PRIu64 "\n", seen, staged,
        seen - staged);
    if (seen) {
        put_outcomes(&t, r->ledger);
        if (!staged)
            put(&t, "Nothing was staged; the reasons stand in the table (README: What is "
                    "never\nrewritten).\n");
        put_sites(&t, r);
    } else {
        put(&t, "Nothing was staged: no copy between one host and one device range was made.\n");
    }
    put_handoffs(&t, r);
    if (r->detail == ES_LOG_FULL)
        put_each_handoff(&t);
    put_staging(&t, r);
    put_seen(&t);
    put_unknown(&t);
    if (r->bypass[0])
        put(&t, "not seen: what %.400s called (RTLD_DEEPBIND?)\n", r->bypass);
    if (r->settings[0])
        put(&t, "settings: %s\n", r->settings);
    put(&t, "---\n");
    return t.length;
}
