/* SPDX-License-Identifier: BSD-3-Clause */
/* yaml.c - a YAML file (libyaml) into the options whose names its keys are
 *
 * One mapping; a value is a word, null (back to the default), a list, or for --env and --preput also a mapping. Types
 * of YAML mean nothing here: every word goes through the same check as on the command line.
 */
#include <stdio.h>
#include <string.h>
#include <yaml.h>
#include "common/buf.h"
#include "common/util.h"
#include "conf/option.h"

struct file {
    struct loader *ld;
    const char *name;
    enum conf_layer layer;
    yaml_document_t *doc;
};

static int bad(const struct file *f, yaml_mark_t at, struct err *err, const char *text)
{
    return err_set(err, -EINVAL, "%s:%zu:%zu: %s", f->name, at.line + 1, at.column + 1, text);
}

static struct span scalar(const yaml_node_t *n)
{
    return (struct span){(const char *)n->data.scalar.value, n->data.scalar.length};
}

static bool is_null(const yaml_node_t *n)
{
    struct span s = n->type == YAML_SCALAR_NODE ? scalar(n) : span_of("?");

    return n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (s.n == 0 || span_is(s, "~") || span_is(s, "null"));
}

/* A word that a C string can hold. */
static int check_word(const struct file *f, const yaml_node_t *n, const char *key, struct err *err)
{
    char text[160];

    if (n->type == YAML_SCALAR_NODE && memchr(scalar(n).p, '\0', scalar(n).n) == NULL)
        return 0;
    snprintf(text, sizeof(text), "'%s': %s", key,
             n->type == YAML_SCALAR_NODE ? "the value holds a NUL byte" : "one word was expected here");
    return bad(f, n->start_mark, err, text);
}

static int set_at(const struct file *f, const struct option *o, yaml_mark_t at, struct span text, struct err *err)
{
    struct buf where, origin;
    const char *w = NULL, *g = NULL;
    int rc;

    buf_init(&where, 0);
    buf_init(&origin, 0);
    if (buf_printf(&where, "%s:%zu:%zu: %s", f->name, at.line + 1, at.column + 1, o->name) == 0)
        w = buf_str(&where);
    if (buf_printf(&origin, "%s:%zu", f->name, at.line + 1) == 0)
        g = buf_str(&origin);
    if (w == NULL || g == NULL)
        rc = err_set(err, -ENOMEM, "out of memory");
    else
        rc = loader_set(f->ld, o, text, &(struct source){f->layer, w, g}, err);
    buf_done(&where);
    buf_done(&origin);
    return rc;
}

static yaml_node_t *node(const struct file *f, int id)
{
    return yaml_document_get_node(f->doc, id);
}

/* Entries of a list joined with commas: a host list. */
static int set_joined(const struct file *f, const struct option *o, const yaml_node_t *list, struct err *err)
{
    struct buf all;
    int rc = 0;

    buf_init(&all, 0);
    for (yaml_node_item_t *i = list->data.sequence.items.start; rc == 0 && i < list->data.sequence.items.top; i++) {
        const yaml_node_t *n = node(f, *i);

        rc = check_word(f, n, o->name, err);
        if (rc == 0 && ((all.len > 0 && buf_add_str(&all, ",") < 0) || buf_add(&all, scalar(n).p, scalar(n).n) < 0))
            rc = err_set(err, -ENOMEM, "out of memory");
    }
    if (rc == 0)
        rc = set_at(f, o, list->start_mark, buf_span(&all), err);
    buf_done(&all);
    return rc;
}

static int set_each(const struct file *f, const struct option *o, const yaml_node_t *list, struct err *err)
{
    int rc = 0;

    for (yaml_node_item_t *i = list->data.sequence.items.start; rc == 0 && i < list->data.sequence.items.top; i++) {
        rc = check_word(f, node(f, *i), o->name, err);
        if (rc == 0)
            rc = set_at(f, o, node(f, *i)->start_mark, scalar(node(f, *i)), err);
    }
    return rc;
}

/* NAME: VALUE is NAME=VALUE; of --env, NAME: null is NAME alone. */
static int set_pair(const struct file *f, const struct option *o, const yaml_node_pair_t *pair, struct err *err)
{
    const yaml_node_t *key = node(f, pair->key), *value = node(f, pair->value);
    struct buf text;
    int rc = check_word(f, key, o->name, err);

    if (rc == 0 && memchr(scalar(key).p, '=', scalar(key).n) != NULL)
        rc = bad(f, key->start_mark, err, "a name that holds '='");
    if (rc == 0)
        rc = check_word(f, value, o->name, err);
    if (rc < 0)
        return rc;
    buf_init(&text, 0);
    rc = buf_add(&text, scalar(key).p, scalar(key).n);
    if (rc == 0 && !is_null(value) && (rc = buf_add_str(&text, "=")) == 0)
        rc = buf_add(&text, scalar(value).p, scalar(value).n);
    rc = rc < 0 ? err_set(err, rc, "out of memory") : set_at(f, o, key->start_mark, buf_span(&text), err);
    buf_done(&text);
    return rc;
}

static int set_pairs(const struct file *f, const struct option *o, const yaml_node_t *map, struct err *err)
{
    int rc = 0;

    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; rc == 0 && p < map->data.mapping.pairs.top; p++)
        rc = set_pair(f, o, p, err);
    return rc;
}

static bool is_host_list(const struct option *o)
{
    return strcmp(o->name, "hostlist") == 0 || strcmp(o->name, "exclude") == 0;
}

static int set_command(const struct file *f, const struct option *o, const yaml_node_t *value, struct err *err)
{
    if (value->type != YAML_SEQUENCE_NODE || value->data.sequence.items.start == value->data.sequence.items.top)
        return bad(f, value->start_mark, err, "command: a list was expected, as in [flux, start]");
    conf_values_clear(&f->ld->conf->origins->of[o - options]);
    return set_each(f, o, value, err);
}

static int set_value(const struct file *f, const struct option *o, const yaml_node_t *value, struct err *err)
{
    bool sequence = value->type == YAML_SEQUENCE_NODE;

    if (is_null(value))
        return set_at(f, o, value->start_mark, SPAN_NONE, err);
    if (o->flags & OPTION_WORDS)
        return set_command(f, o, value, err);
    if (sequence && is_host_list(o))
        return set_joined(f, o, value, err);
    if (sequence && (o->flags & OPTION_LIST))
        return set_each(f, o, value, err);
    if (value->type == YAML_MAPPING_NODE && (o->flags & OPTION_LIST))
        return set_pairs(f, o, value, err);
    int rc = check_word(f, value, o->name, err);
    return rc < 0 ? rc : set_at(f, o, value->start_mark, scalar(value), err);
}

static int unknown_key(const struct file *f, const yaml_node_t *key, struct err *err)
{
    struct span name = key->type == YAML_SCALAR_NODE ? scalar(key) : span_of("");
    const struct option *near = option_nearest(name);
    char text[240];

    if (key->type != YAML_SCALAR_NODE)
        return bad(f, key->start_mark, err, "the name of an option was expected here");
    if (near != NULL && span_eq(name, span_of(near->name)))
        snprintf(text, sizeof(text), "'%s' is for the command line only", near->name);
    else
        snprintf(text, sizeof(text), "there is no option '%s'%s%s%s", quoted(name).text, near ? ", did you mean '" : "",
                 near ? near->name : "", near ? "'?" : "");
    return bad(f, key->start_mark, err, text);
}

static bool seen_before(const struct file *f, const yaml_node_t *root, const yaml_node_pair_t *pair)
{
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < pair; p++)
        if (span_eq(scalar(node(f, p->key)), scalar(node(f, pair->key))))
            return true;
    return false;
}

static int set_twice(const struct file *f, const struct option *o, const yaml_node_t *key, struct err *err)
{
    char text[80];

    snprintf(text, sizeof(text), "'%s' is set a second time", o->name);
    return bad(f, key->start_mark, err, text);
}

static int load_root(const struct file *f, const yaml_node_t *root, struct err *err)
{
    int rc = 0;

    if (root->type == YAML_SCALAR_NODE && is_null(root))
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return bad(f, root->start_mark, err, "lines of 'option: value' were expected");
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; rc == 0 && p < root->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = node(f, p->key);
        const struct option *o = key->type == YAML_SCALAR_NODE ? option_by_name(scalar(key)) : NULL;

        if (o == NULL || !(o->flags & OPTION_FILE))
            rc = unknown_key(f, key, err);
        else if (seen_before(f, root, p)) /* the keys before this one were all scalars */
            rc = set_twice(f, o, key, err);
        else
            rc = set_value(f, o, node(f, p->value), err);
    }
    return rc;
}

/* The line that holds byte `at`, which is at most bytes.n. */
static struct span line_at(struct span bytes, size_t at)
{
    const char *before = at > 0 ? memrchr(bytes.p, '\n', at) : NULL;
    size_t from = before ? (size_t)(before - bytes.p) + 1 : 0;
    const char *nl = memchr(bytes.p + from, '\n', bytes.n - from);

    return (struct span){bytes.p + from, (nl ? (size_t)(nl - bytes.p) : bytes.n) - from};
}

/* libyaml knows only the offset of a byte that is no text. */
static yaml_mark_t mark_of(struct span bytes, size_t offset)
{
    yaml_mark_t at = {0};

    for (size_t i = 0; i < offset; i++) {
        at.line += bytes.p[i] == '\n';
        at.column = bytes.p[i] == '\n' ? 0 : at.column + 1;
    }
    return at;
}

/* libyaml's own complaint, with the line that it is about. */
static int syntax(const struct file *f, const yaml_parser_t *parser, struct span bytes, struct err *err)
{
    bool reader = parser->error == YAML_READER_ERROR;
    size_t offset = reader ? parser->problem_offset : parser->problem_mark.index;
    const char *context = parser->context;
    char text[300];

    if (parser->error == YAML_MEMORY_ERROR)
        return err_set(err, -ENOMEM, "out of memory");
    offset = MIN(offset, bytes.n);
    if (line_at(bytes, offset).n == 0 && context != NULL) /* at the end; more is to be seen where it began */
        offset = MIN(parser->context_mark.index, bytes.n);
    snprintf(text, sizeof(text), "%s%s%s: '%s'", context ? context : "", context ? ", " : "",
             parser->problem ? parser->problem : "not YAML", quoted(line_at(bytes, offset)).text);
    return bad(f, reader ? mark_of(bytes, offset) : parser->problem_mark, err, text);
}

/* Nothing may follow the first document. */
static int check_end(const struct file *f, yaml_parser_t *parser, struct span bytes, struct err *err)
{
    yaml_document_t more;
    yaml_node_t *root;
    int rc = 0;

    if (!yaml_parser_load(parser, &more))
        return syntax(f, parser, bytes, err);
    root = yaml_document_get_root_node(&more);
    if (root != NULL)
        rc = bad(f, root->start_mark, err, "a second document, one was expected");
    yaml_document_delete(&more);
    return rc;
}

int yaml_load(struct loader *ld, const char *name, struct span bytes, enum conf_layer layer, struct err *err)
{
    yaml_document_t doc;
    yaml_parser_t parser;
    struct file f = {ld, name, layer, &doc};
    yaml_node_t *root;
    int rc = 0;

    if (!yaml_parser_initialize(&parser))
        return err_set(err, -ENOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes.p, bytes.n);
    if (!yaml_parser_load(&parser, &doc)) {
        rc = syntax(&f, &parser, bytes, err);
        yaml_parser_delete(&parser);
        return rc;
    }
    root = yaml_document_get_root_node(&doc);
    if (root != NULL)
        rc = load_root(&f, root, err);
    if (rc == 0 && root != NULL)
        rc = check_end(&f, &parser, bytes, err);
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    return rc;
}
