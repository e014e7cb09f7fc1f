/* SPDX-License-Identifier: BSD-3-Clause */
/* keyline.c - the key line of a provider, found in noise */
#include "bootstrap/keyline.h"
#include "common/num.h"

/* How a text compares with the token's grammar. */
enum fit { FIT_NO, FIT_PART, FIT_WHOLE };

/* `*p` moves behind `word`. */
static enum fit fit_word(const char **p, const char *end, const char *word)
{
    for (; *word != '\0'; word++, (*p)++) {
        if (*p == end)
            return FIT_PART;
        if (**p != *word)
            return FIT_NO;
    }
    return FIT_WHOLE;
}

/* One to ten digits up to UINT32_MAX, ended by something else. */
static enum fit fit_number(const char **p, const char *end, uint32_t *out)
{
    const char *start = *p;
    uint64_t value = 0;

    while (*p < end && *p - start < 11 && **p >= '0' && **p <= '9')
        (*p)++;
    if (*p - start > 10)
        return FIT_NO;
    if (*p == end)
        return FIT_PART;
    if (num_u64((struct span){start, (size_t)(*p - start)}, 0, UINT32_MAX, &value) < 0)
        return FIT_NO;
    *out = (uint32_t)value;
    return FIT_WHOLE;
}

static enum fit fit_key(const char *p, const char *end, char key[KEYLINE_KEY_LEN + 1])
{
    for (int i = 0; i < KEYLINE_KEY_LEN; i++, p++) {
        if (p == end)
            return FIT_PART;
        if ((*p < '0' || *p > '9') && (*p < 'a' || *p > 'f'))
            return FIT_NO;
        key[i] = *p;
    }
    key[KEYLINE_KEY_LEN] = '\0';
    return FIT_WHOLE;
}

static enum fit fit_token(const char *p, size_t len, struct keyline_found *out)
{
    const char *end = p + len;
    enum fit fit;

    if ((fit = fit_word(&p, end, "pmi-start-provider 1 run=")) != FIT_WHOLE)
        return fit;
    if ((fit = fit_number(&p, end, &out->run)) != FIT_WHOLE)
        return fit;
    if ((fit = fit_word(&p, end, " index=")) != FIT_WHOLE)
        return fit;
    if ((fit = fit_number(&p, end, &out->index)) != FIT_WHOLE)
        return fit;
    if ((fit = fit_word(&p, end, " key=")) != FIT_WHOLE)
        return fit;
    return fit_key(p, end, out->key);
}

/* Give up the token that was begun: go on at the next 'p' within it. */
static void restart(struct keyline *k)
{
    const char *p = k->len > 1 ? memchr(k->hold + 1, 'p', k->len - 1) : NULL;

    if (p == NULL) {
        k->len = 0;
        return;
    }
    k->len -= (size_t)(p - k->hold);
    memmove(k->hold, p, k->len);
}

/* One more byte; true when it completes the token. */
static bool take(struct keyline *k, char c, struct keyline_found *out)
{
    enum fit fit = FIT_NO;

    k->hold[k->len++] = c;
    while (k->len > 0 && (fit = fit_token(k->hold, k->len, out)) == FIT_NO)
        restart(k);
    /* The grammar ends a token before it fills `hold`: 25 + 10 + 7 + 10 + 5 + 64 bytes. */
    if (k->len == 0 || fit != FIT_WHOLE)
        return false;
    k->len = 0;
    return true;
}

int keyline_next(struct keyline *k, struct span *in, struct keyline_found *out)
{
    struct keyline_found found = {0};
    const char *p = in->p, *end = in->p + in->n;

    while (p < end) {
        if (k->len == 0) {
            p = memchr(p, 'p', (size_t)(end - p));
            if (p == NULL)
                break;
        }
        if (take(k, *p++, &found)) {
            *in = (struct span){p, (size_t)(end - p)};
            *out = found;
            return 1;
        }
    }
    *in = (struct span){end, 0};
    return 0;
}
