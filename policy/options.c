/* SPDX-License-Identifier: MIT */
/* options.def, expanded into a table of rows that say where the value goes, what it may be and what
 * it is for. Everything else walks that table. No allocation: this runs inside the program's first
 * CUDA call, whoever its allocator is. */
#include "policy/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum kind { SIZE, COUNT, FLAG, WORD, TEXT };

struct row {
    const char *name; /* without the prefix */
    enum kind kind;
    size_t offset;
    uint64_t by_default, least, most;
    const char *accepted, *purpose;
};

static const struct row rows[] = {
#define OPTION(field, name, kind, by_default, least, most, accepted, purpose)                      \
    {#name,    kind,   offsetof(struct es_options, field), (uint64_t)(by_default), least, most,    \
     accepted, purpose},
#include "policy/options.def"
#undef OPTION
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char prefix[] = "EPOCHSHIM_";

static void store(struct es_options *o, const struct row *r, uint64_t value)
{
    char *at = (char *)o + r->offset;

    switch (r->kind) {
    case SIZE:
    case COUNT:
        memcpy(at, &value, sizeof value);
        break;
    case FLAG: {
        bool on = value != 0;

        memcpy(at, &on, sizeof on);
        break;
    }
    case WORD: {
        unsigned word = (unsigned)value;

        memcpy(at, &word, sizeof word);
        break;
    }
    case TEXT:
        at[0] = '\0';
        break;
    }
}

static uint64_t load(const struct es_options *o, const struct row *r)
{
    const char *at = (const char *)o + r->offset;
    uint64_t number = 0;
    unsigned word = 0;
    bool on = false;

    switch (r->kind) {
    case SIZE:
    case COUNT:
        memcpy(&number, at, sizeof number);
        return number;
    case FLAG:
        memcpy(&on, at, sizeof on);
        return on;
    case WORD:
        memcpy(&word, at, sizeof word);
        return word;
    case TEXT:
        break;
    }
    return at[0] != '\0';
}

/* Decimal digits and, for a size, one unit. False on anything else, or beyond 64 bits. */
static bool parse_number(const char *text, bool is_size, uint64_t *value)
{
    uint64_t n = 0;
    unsigned shift = 0;

    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        unsigned digit = (unsigned)(*text - '0');

        if (n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    if (is_size && *text) {
        const char *units = "kKmMgG", *unit = strchr(units, *text);

        if (!unit)
            return false;
        shift = 10 * ((unsigned)(unit - units) / 2 + 1);
        text++;
        if (text[0] == 'i' && text[1] == 'B')
            text += 2;
        else if (text[0] == 'B')
            text++;
    }
    if (*text || n > UINT64_MAX >> shift)
        return false;
    *value = n << shift;
    return true;
}

/* The n-th word of "a, b, c" into text[32]; false behind the last. */
static bool word_of(const char *list, uint64_t n, char text[32])
{
    size_t length;

    for (; n > 0; n--) {
        list = strchr(list, ',');
        if (!list)
            return false;
        list += 2;
    }
    length = strcspn(list, ",");
    if (length >= 32)
        return false;
    memcpy(text, list, length);
    text[length] = '\0';
    return true;
}

/* The value as one would write it. */
static void value_text(const struct row *r, uint64_t value, char text[32])
{
    static const char units[] = "KMG";
    int unit = -1;

    if (r->kind == WORD && word_of(r->accepted, value, text))
        return;
    if (r->kind == TEXT || (r->kind == COUNT && value == UINT64_MAX)) {
        snprintf(text, 32, "%s", r->kind == TEXT ? "stderr" : "all");
        return;
    }
    while (r->kind == SIZE && value && value % 1024 == 0 && unit < 2) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 32, "%llu%.1s", (unsigned long long)value, unit < 0 ? "" : &units[unit]);
}

static bool parse_value(struct es_options *o, const struct row *r, const char *text)
{
    uint64_t value = 0;
    char word[32];

    switch (r->kind) {
    case TEXT:
        if (strlen(text) >= sizeof o->log_file)
            return false;
        for (const char *p = text; (p = strchr(p, '%')); p += 2)
            if (!p[1] || !strchr("peh%", p[1]))
                return false;
        if (strcmp(text, "stderr") == 0)
            text = "";
        memcpy((char *)o + r->offset, text, strlen(text) + 1);
        return true;
    case WORD:
        for (; word_of(r->accepted, value, word); value++) {
            if (strcasecmp(word, text) == 0) {
                store(o, r, value);
                return true;
            }
        }
        return false;
    case FLAG:
        if ((text[0] != '0' && text[0] != '1') || text[1])
            return false;
        store(o, r, text[0] == '1');
        return true;
    case SIZE:
    case COUNT:
        break;
    }
    value_text(r, r->by_default, word);
    if (r->kind == COUNT && strcmp(text, word) == 0) { /* "all", as the default is printed */
        store(o, r, r->by_default);
        return true;
    }
    if (!parse_number(text, r->kind == SIZE, &value) || value < r->least || value > r->most)
        if (!(value == 0 && r->by_default == 0 && strcmp(text, "0") == 0))
            return false;
    store(o, r, value);
    return true;
}

/* Edit distance, for names of up to 32 characters. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[33], n = (unsigned)strnlen(b, 32);

    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 1; *a && i <= 32; i++, a++) {
        unsigned diagonal = row[0];

        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            unsigned above = row[j], cost = diagonal + (*a != b[j - 1]);

            if (above + 1 < cost)
                cost = above + 1;
            if (row[j - 1] + 1 < cost)
                cost = row[j - 1] + 1;
            diagonal = above;
            row[j] = cost;
        }
    }
    return row[n];
}

static const struct row *nearest(const char *name)
{
    const struct row *best = &rows[0];

    for (int i = 1; i < ROWS; i++)
        if (distance(name, rows[i].name) < distance(name, best->name))
            best = &rows[i];
    return best;
}

static void parse_variable(struct es_options *o, const char *name, es_complain_fn *complain,
                           void *ctx)
{
    const char *value = strchr(name, '=') + 1;
    size_t length = (size_t)(value - name - 1);
    const struct row *near;
    char line[512], known[64];

    for (int i = 0; i < ROWS; i++) {
        if (strncmp(rows[i].name, name, length) != 0 || rows[i].name[length])
            continue;
        if (*value && !parse_value(o, &rows[i], value)) {
            value_text(&rows[i], rows[i].by_default, known);
            snprintf(line, sizeof line, "%s%s=%.100s: accepted is %s; using %s", prefix,
                     rows[i].name, value, rows[i].accepted, known);
            complain(ctx, line);
        }
        return;
    }
    snprintf(known, sizeof known, "%.*s", (int)(length < 63 ? length : 63), name);
    near = nearest(known);
    if (2 * distance(known, near->name) <= strlen(known))
        snprintf(line, sizeof line, "%s%s=%.100s: no such option; the nearest is %s%s (%s)", prefix,
                 known, value, prefix, near->name, near->accepted);
    else
        snprintf(line, sizeof line,
                 "%s%s=%.100s: no such option; EPOCHSHIM_HELP=1 prints those that there are",
                 prefix, known, value);
    complain(ctx, line);
}

void es_options_parse(struct es_options *out, char *const *env, es_complain_fn *complain, void *ctx)
{
    int saved = errno;

    memset(out, 0, sizeof *out);
    for (int i = 0; i < ROWS; i++)
        store(out, &rows[i], rows[i].by_default);
    for (; env && *env; env++)
        if (strncmp(*env, prefix, sizeof prefix - 1) == 0 && strchr(*env, '='))
            parse_variable(out, *env + sizeof prefix - 1, complain, ctx);
    out->chunk &= ~(uint64_t)4095;
    if (out->pool < out->chunk)
        out->chunk = out->pool & ~(uint64_t)4095;
    errno = saved;
}

void es_options_help(void (*line)(void *ctx, const char *line), void *ctx)
{
    char text[512], by_default[32], name[32];

    for (int i = 0; i < ROWS; i++) {
        value_text(&rows[i], rows[i].by_default, by_default);
        snprintf(name, sizeof name, "%s%s", prefix, rows[i].name);
        snprintf(text, sizeof text, "%-20s %-30s [%s]", name, rows[i].accepted, by_default);
        line(ctx, text);
        snprintf(text, sizeof text, "    %s", rows[i].purpose);
        line(ctx, text);
    }
}

void es_options_markdown(void (*line)(void *ctx, const char *line), void *ctx)
{
    char text[512], by_default[32];

    line(ctx, "| option | accepted | default | what it does |");
    line(ctx, "|---|---|---|---|");
    for (int i = 0; i < ROWS; i++) {
        value_text(&rows[i], rows[i].by_default, by_default);
        snprintf(text, sizeof text, "| `%s%s` | %s | %s | %s |", prefix, rows[i].name,
                 rows[i].accepted, by_default, rows[i].purpose);
        line(ctx, text);
    }
}

size_t es_options_changed(const struct es_options *o, char *buf, size_t size)
{
    size_t length = 0;

    if (size)
        buf[0] = '\0';
    for (int i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        size_t at = length < size ? length : size;
        const char *space = length ? " " : "";
        char text[32];

        if (load(o, r) == r->by_default)
            continue;
        value_text(r, load(o, r), text);
        length += (size_t)snprintf(buf + at, size - at, "%s%s=%s", space, r->name,
                                   r->kind == TEXT ? (const char *)o + r->offset : text);
    }
    return length;
}

size_t es_log_path(const char *pattern, long pid, const char *program, const char *host, char *buf,
                   size_t size)
{
    size_t length = 0;
    char number[24];

    snprintf(number, sizeof number, "%ld", pid);
    for (; *pattern; pattern++) {
        const char *put = pattern;
        size_t n = 1;

        if (*pattern == '%' && pattern[1] && strchr("peh%", pattern[1])) {
            pattern++;
            put = *pattern == 'p'   ? number
                  : *pattern == 'e' ? program
                  : *pattern == 'h' ? host
                                    : "%";
            n = strlen(put);
        }
        for (size_t i = 0; i < n; i++, length++)
            if (length + 1 < size)
                buf[length] = put[i];
    }
    if (size)
        buf[length < size ? length : size - 1] = '\0';
    return length;
}
