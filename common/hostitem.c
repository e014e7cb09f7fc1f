/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/hostitem.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "common/buf.h"
#include "common/num.h"

#define QUOTE_BYTES 80 /* of the user's text in a message */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

static struct span span_between(const char *from, const char *to)
{
    return (struct span){from, (size_t)(to - from)};
}

/* The part of a long text that holds `pos`, printable. */
static void quote(struct span text, size_t pos, struct buf *out)
{
    size_t from = pos > QUOTE_BYTES / 2 && text.n > QUOTE_BYTES ? pos - QUOTE_BYTES / 2 : 0;
    size_t n = text.n - from < QUOTE_BYTES ? text.n - from : QUOTE_BYTES;

    buf_add_str(out, from > 0 ? "..." : "");
    buf_add_escaped(out, (struct span){text.p + from, n});
    buf_add_str(out, from + n < text.n ? "..." : "");
}

int hostitem_refuse(const struct hostitem_text *r, const char *at, int code, const char *fmt, ...)
{
    struct buf quoted = {0};
    size_t pos = (size_t)(at - r->all.p);
    char reason[256];
    const char *shown;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    quote(r->all, pos, &quoted);
    shown = buf_str(&quoted);
    err_set(r->err, code, "'%s', position %zu: %s", shown ? shown : "", pos + 1, reason);
    buf_done(&quoted);
    if (r->lineno > 0)
        err_prefix(r->err, "line %u", r->lineno);
    return code;
}

/* A decimal number at `*p`. Moves `*p` behind it. */
static int read_number(const struct hostitem_text *r, const char **p, const char *end, uint64_t *out)
{
    const char *start = *p, *q = start;

    while (q < end && is_digit(*q))
        q++;
    if (q == start)
        return hostitem_refuse(r, start, -EINVAL, "a number is missing here: ranges are written as in [0-12,15]");
    if (q - start > HOST_DIGITS_MAX)
        return hostitem_refuse(r, start, -EINVAL, "the number has more than %d digits", HOST_DIGITS_MAX);
    *p = q;
    return num_u64(span_between(start, q), 0, UINT64_MAX, out);
}

/* Check what is between brackets and count it; the count stops growing above HOSTS_MAX. */
static int read_ranges(const struct hostitem_text *r, struct hostitem_group *g)
{
    const char *p = g->ranges.p, *end = p + g->ranges.n;

    if (p == end)
        return hostitem_refuse(r, p, -EINVAL, "the brackets are empty: ranges are written as in [0-12,15]");
    for (;;) {
        const char *start = p;
        uint64_t low, high;
        int rc = read_number(r, &p, end, &low);

        if (rc < 0)
            return rc;
        high = low;
        g->longest = (size_t)(p - start) > g->longest ? (size_t)(p - start) : g->longest;
        if (p < end && *p == '-') {
            start = ++p;
            rc = read_number(r, &p, end, &high);
            if (rc < 0)
                return rc;
            g->longest = (size_t)(p - start) > g->longest ? (size_t)(p - start) : g->longest;
            if (high < low)
                return hostitem_refuse(r, start, -EINVAL, "the range runs backwards: the lower number comes first");
        }
        g->count = high - low > HOSTS_MAX || g->count > HOSTS_MAX ? HOSTS_MAX + 1ull : g->count + (high - low + 1);
        if (p == end)
            return 0;
        if (*p != ',')
            return hostitem_refuse(r, p, -EINVAL, "only digits, '-' and ',' may stand between brackets");
        p++;
    }
}

/* "prefix[ranges]middle[ranges]suffix" into groups and tail. */
static int read_pattern(const struct hostitem_text *r, struct span s, struct hostitem *it)
{
    const char *p = s.p, *end = s.p + s.n, *literal = p;

    while (p < end) {
        const char *close;

        if (*p != '[') {
            if (*p == ']')
                return hostitem_refuse(r, p, -EINVAL, "']' without '['");
            if (!is_name_char(*p))
                return hostitem_refuse(r, p, -EINVAL, "a host name has letters, digits, '.', '-' and '_' only");
            p++;
            continue;
        }
        close = memchr(p, ']', (size_t)(end - p));
        if (close == NULL)
            return hostitem_refuse(r, p, -EINVAL, "'[' without ']'");
        if (it->groups == HOST_BRACKETS_MAX)
            return hostitem_refuse(r, p, -E2BIG, "more than %d brackets in one name", HOST_BRACKETS_MAX);
        struct hostitem_group *g = &it->group[it->groups++];
        *g = (struct hostitem_group){.literal = span_between(literal, p), .ranges = span_between(p + 1, close)};
        int rc = read_ranges(r, g);
        if (rc < 0)
            return rc;
        p = literal = close + 1;
    }
    it->tail = span_between(literal, end);
    return 0;
}

static int read_v6(const struct hostitem_text *r, struct span s, struct hostitem *it)
{
    const char *scope = memchr(s.p, '%', s.n);
    size_t n = scope ? (size_t)(scope - s.p) : s.n;
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;

    if (n >= sizeof(text))
        return hostitem_refuse(r, s.p, -EINVAL, "not an IPv6 address");
    memcpy(text, s.p, n);
    text[n] = '\0';
    if (memchr(text, '\0', n) != NULL || inet_pton(AF_INET6, text, &addr) != 1)
        return hostitem_refuse(r, s.p, -EINVAL, "not an IPv6 address");
    for (size_t i = n + 1; i < s.n; i++)
        if (!is_name_char(s.p[i]))
            return hostitem_refuse(r, s.p + i, -EINVAL, "not the name of an interface");
    if (n + 1 == s.n)
        return hostitem_refuse(r, scope, -EINVAL, "an interface is missing after '%%'");
    it->tail = s;
    return 0;
}

static int read_slots(const struct hostitem_text *r, struct span s, uint64_t *out)
{
    int rc = num_u64(s, 1, SLOTS_MAX, out);

    if (rc == -ERANGE && !span_is(s, "0"))
        return hostitem_refuse(r, s.p, -EINVAL,
                               "at most %d slots; if a port was meant, set it in the ssh configuration (Host, Port)",
                               SLOTS_MAX);
    if (rc < 0)
        return hostitem_refuse(r, s.p, -EINVAL, "a number of slots, 1 to %d, was expected here", SLOTS_MAX);
    return 0;
}

/* Colons outside brackets; `*first` is the first of them. */
static unsigned count_colons(struct span s, const char **first)
{
    bool inside = false;
    unsigned n = 0;

    for (const char *p = s.p; p < s.p + s.n; p++) {
        inside = *p == '[' || (inside && *p != ']');
        if (inside || *p != ':')
            continue;
        if (n++ == 0)
            *first = p;
    }
    return n;
}

/* A whole "[IPv6]" or "[IPv6]:N". Returns false where `s` is something else. */
static bool split_v6(struct span s, struct span *address, struct span *rest)
{
    const char *close = s.n > 0 && s.p[0] == '[' ? memchr(s.p, ']', s.n) : NULL;

    if (close == NULL || memchr(s.p, ':', (size_t)(close - s.p)) == NULL)
        return false;
    *address = span_between(s.p + 1, close);
    *rest = span_between(close + 1, s.p + s.n);
    return true;
}

/* The host without its user: a pattern or an address, and slots. */
static int read_host(const struct hostitem_text *r, struct span s, struct hostitem *it)
{
    const char *colon = NULL;
    struct span address, rest;
    unsigned colons;
    int rc;

    if (split_v6(s, &address, &rest)) {
        rc = read_v6(r, address, it);
        if (rc < 0 || rest.n == 0)
            return rc;
        if (rest.p[0] != ':')
            return hostitem_refuse(r, rest.p, -EINVAL, "only ':' and a number of slots may follow an IPv6 address");
        return read_slots(r, (struct span){rest.p + 1, rest.n - 1}, &it->slots);
    }
    colons = count_colons(s, &colon);
    if (colons > 1)
        return read_v6(r, s, it);
    if (colons == 0)
        return read_pattern(r, s, it);
    rc = read_pattern(r, span_between(s.p, colon), it);
    if (rc < 0)
        return rc;
    return read_slots(r, span_between(colon + 1, s.p + s.n), &it->slots);
}

static int read_user(const struct hostitem_text *r, struct span user)
{
    if (user.n == 1)
        return hostitem_refuse(r, user.p, -EINVAL, "a user's name is missing before '@'");
    if (user.p[0] == '-')
        return hostitem_refuse(r, user.p, -EINVAL, "a user's name may not begin with '-'");
    for (size_t i = 0; i + 1 < user.n; i++)
        if (!is_name_char(user.p[i]))
            return hostitem_refuse(r, user.p + i, -EINVAL, "a user's name has letters, digits, '.', '-' and '_' only");
    return 0;
}

static int check_length(const struct hostitem_text *r, struct span s, const struct hostitem *it)
{
    size_t len = it->user.n + it->tail.n;

    for (size_t i = 0; i < it->groups; i++)
        len += it->group[i].literal.n + it->group[i].longest;
    if (len == it->user.n)
        return hostitem_refuse(r, s.p + it->user.n, -EINVAL, "a host name is missing here");
    if (len > HOST_NAME_MAX_LEN)
        return hostitem_refuse(r, s.p, -EINVAL, "the name is longer than %d bytes", HOST_NAME_MAX_LEN);
    return 0;
}

int hostitem_read(const struct hostitem_text *r, struct span s, struct hostitem *it)
{
    const char *bracket = memchr(s.p, '[', s.n);
    const char *at = memchr(s.p, '@', bracket ? (size_t)(bracket - s.p) : s.n);
    struct span host = s;
    int rc;

    it->groups = 0;
    it->slots = 0;
    it->user = it->tail = (struct span){s.p, 0};
    if (at != NULL) {
        it->user = span_between(s.p, at + 1);
        host = span_between(at + 1, s.p + s.n);
        rc = read_user(r, it->user);
        if (rc < 0)
            return rc;
    }
    /* A leading '-' could be taken for an option by ssh, a leading '.' is a file name's business. */
    if (host.n > 0 && (host.p[0] == '-' || host.p[0] == '.'))
        return hostitem_refuse(r, host.p, -EINVAL, "a host name may not begin with '%c'", host.p[0]);
    rc = read_host(r, host, it);
    return rc < 0 ? rc : check_length(r, s, it);
}

/* Take the next range of the group, which has been checked before. */
static void wheel_load(struct hostitem_group *g)
{
    const char *p = g->next, *end = g->ranges.p + g->ranges.n;

    g->value = 0;
    for (; p < end && is_digit(*p); p++)
        g->value = g->value * 10 + (uint64_t)(*p - '0');
    g->width = (int)(p - g->next);
    g->high = g->value;
    if (p < end && *p == '-') {
        g->high = 0;
        for (p++; p < end && is_digit(*p); p++)
            g->high = g->high * 10 + (uint64_t)(*p - '0');
    }
    g->next = p < end ? p + 1 : p;
}

static void wheel_reset(struct hostitem_group *g)
{
    g->next = g->ranges.p;
    wheel_load(g);
}

/* False: it was at its end, and now stands at its beginning again. */
static bool wheel_turn(struct hostitem_group *g)
{
    if (g->value < g->high) {
        g->value++;
        return true;
    }
    if (g->next < g->ranges.p + g->ranges.n) {
        wheel_load(g);
        return true;
    }
    wheel_reset(g);
    return false;
}

static size_t put(char *to, size_t at, struct span s)
{
    memcpy(to + at, s.p, s.n);
    return at + s.n;
}

uint64_t hostitem_count(const struct hostitem *it)
{
    uint64_t total = 1;

    for (size_t i = 0; i < it->groups && total <= HOSTS_MAX; i++)
        total *= it->group[i].count;
    return total;
}

void hostitem_first(struct hostitem *it)
{
    for (size_t i = 0; i < it->groups; i++)
        wheel_reset(&it->group[i]);
}

bool hostitem_next(struct hostitem *it)
{
    for (size_t k = it->groups; k > 0; k--)
        if (wheel_turn(&it->group[k - 1]))
            return true;
    return false;
}

size_t hostitem_name(const struct hostitem *it, char name[HOST_NAME_MAX_LEN + 1])
{
    size_t n = put(name, 0, it->user);

    for (size_t i = 0; i < it->groups; i++) {
        const struct hostitem_group *g = &it->group[i];

        n = put(name, n, g->literal);
        n += (size_t)snprintf(name + n, HOST_NAME_MAX_LEN + 1 - n, "%0*" PRIu64, g->width, g->value);
    }
    n = put(name, n, it->tail);
    name[n] = '\0';
    return n;
}
