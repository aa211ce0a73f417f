/* SPDX-License-Identifier: Apache-2.0 */
#include "http/router.h"

#include <string.h>

/* A trie with one level per segment.  A node's literal children are a sorted array: tables
 * are built once and read for every request, and halving forty short names beats hashing.
 *
 * A request's path is split and decoded once, into segments that point into the path itself
 * or, where it has escapes, into one scratch copy.  The search goes literal, parameter, rest,
 * and comes back from a branch that ends nowhere.  That stays bounded because every node has
 * one way to it: a search visits no node twice.
 *
 * Only the first ROUTE_DEPTH_MAX segments are remembered, since no pattern is deeper; the
 * others are checked, and belong to a rest parameter or to nothing. */
enum { ROUTE_DEPTH_MAX = 24 };

typedef struct Row {
    char *method;
    guint row;
    char *names[ROUTE_PARAMS_MAX];
} Row;

/* What a pattern leads to.  Rows of one shape may name their parameters differently. */
typedef struct Endpoint {
    GArray *rows; /* Row, sorted by method */
    guint n_params;
    guint8 at[ROUTE_PARAMS_MAX]; /* the parameters' segments */
    bool has_rest;               /* the last parameter takes all that follows */
} Endpoint;

typedef struct Node Node;

typedef struct Edge {
    char *text;
    size_t len;
    Node *to;
} Edge;

struct Node {
    Edge *edges; /* sorted by length, then bytes */
    guint n_edges;
    Node *param;
    Endpoint *here;
    Endpoint *rest;
};

struct Router {
    Node *root;
};

typedef struct Segment {
    const char *text; /* decoded, not terminated */
    size_t len;
} Segment;

typedef struct Path {
    Segment segments[ROUTE_DEPTH_MAX];
    size_t n;        /* may be more than are remembered */
    const char *end; /* of the last segment's text */
    char *scratch;   /* NULL: the path had no escape */
} Path;

Router *
router_new(void)
{
    Router *router = g_new0(Router, 1);

    router->root = g_new0(Node, 1);
    return router;
}

static void
endpoint_free(Endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    for (guint i = 0; i < endpoint->rows->len; i++) {
        Row *row = &g_array_index(endpoint->rows, Row, i);

        g_free(row->method);
        for (guint k = 0; k < endpoint->n_params; k++)
            g_free(row->names[k]);
    }
    g_array_unref(endpoint->rows);
    g_free(endpoint);
}

static void
node_free(Node *node)
{
    if (node == NULL)
        return;
    for (guint i = 0; i < node->n_edges; i++) {
        g_free(node->edges[i].text);
        node_free(node->edges[i].to);
    }
    g_free(node->edges);
    node_free(node->param);
    endpoint_free(node->here);
    endpoint_free(node->rest);
    g_free(node);
}

void
router_free(Router *router)
{
    if (router == NULL)
        return;
    node_free(router->root);
    g_free(router);
}

static inline int
compare(const Edge *edge, const char *text, size_t len)
{
    if (edge->len != len)
        return edge->len < len ? -1 : 1;
    return memcmp(edge->text, text, len);
}

/* The first edge that is not before `text`. */
static guint
edge_position(const Node *node, const char *text, size_t len)
{
    guint low = 0;
    guint high = node->n_edges;

    while (low < high) {
        guint mid = low + (high - low) / 2;

        if (compare(&node->edges[mid], text, len) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static inline Node *
node_literal(const Node *node, const char *text, size_t len)
{
    guint i = edge_position(node, text, len);

    return i < node->n_edges && compare(&node->edges[i], text, len) == 0 ? node->edges[i].to : NULL;
}

static Node *
node_add_literal(Node *node, const char *text, size_t len)
{
    Node *to = node_literal(node, text, len);

    if (to != NULL)
        return to;
    guint i = edge_position(node, text, len);

    node->edges = g_renew(Edge, node->edges, node->n_edges + 1);
    memmove(&node->edges[i + 1], &node->edges[i], (node->n_edges - i) * sizeof(Edge));
    node->n_edges++;
    node->edges[i] = (Edge){.text = g_strndup(text, len), .len = len, .to = g_new0(Node, 1)};
    return node->edges[i].to;
}

/* Steps over "/segment"; false at the end of the pattern. */
static bool
next_segment(const char **p, Segment *ret_segment)
{
    if (**p == '\0')
        return false;
    g_assert(**p == '/');
    ret_segment->text = *p + 1;
    ret_segment->len = strcspn(*p + 1, "/");
    *p += 1 + ret_segment->len;
    return true;
}

/* "{name}" or "{name...}": takes the name into `row` and notes where it stands. */
static void
add_param(Endpoint *shape, Row *row, const Segment *s, guint depth)
{
    bool rest = s->len > 5 && memcmp(s->text + s->len - 4, "...}", 4) == 0;
    guint i = shape->n_params++;

    g_assert(i < ROUTE_PARAMS_MAX && !shape->has_rest);
    g_assert(s->len > 2 && s->text[s->len - 1] == '}');
    row->names[i] = g_strndup(s->text + 1, s->len - (rest ? 5 : 2));
    g_assert(strpbrk(row->names[i], "{}.%") == NULL);
    for (guint k = 0; k < i; k++)
        g_assert(strcmp(row->names[k], row->names[i]) != 0);
    shape->at[i] = (guint8)depth;
    shape->has_rest = rest;
}

static void
check_literal(const Segment *s)
{
    g_assert(s->len > 0);
    for (size_t i = 0; i < s->len; i++)
        g_assert(g_ascii_isgraph(s->text[i]) && strchr("{}%?#", s->text[i]) == NULL);
}

static int
compare_rows(const void *a, const void *b)
{
    return strcmp(((const Row *)a)->method, ((const Row *)b)->method);
}

static void
add_row(Endpoint **slot, const Endpoint *shape, const Row *row)
{
    if (*slot == NULL) {
        *slot = g_memdup2(shape, sizeof *shape);
        (*slot)->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    }
    GArray *rows = (*slot)->rows;
    for (guint i = 0; i < rows->len; i++)
        g_assert(strcmp(g_array_index(rows, Row, i).method, row->method) != 0);
    g_array_append_val(rows, *row);
    g_array_sort(rows, compare_rows);
}

void
router_add(Router *router, const char *method, const char *pattern, guint row_number)
{
    Row row = {.method = g_strdup(method), .row = row_number};
    Endpoint shape = {0};
    Node *node = router->root;
    const char *p = strcmp(pattern, "/") != 0 ? pattern : "";
    Segment s;
    guint depth = 0;

    g_assert(*pattern == '/');
    for (; next_segment(&p, &s); depth++) {
        g_assert(depth < ROUTE_DEPTH_MAX);
        if (*s.text != '{') {
            g_assert(!shape.has_rest);
            check_literal(&s);
            node = node_add_literal(node, s.text, s.len);
            continue;
        }
        add_param(&shape, &row, &s, depth);
        if (shape.has_rest)
            continue;
        if (node->param == NULL)
            node->param = g_new0(Node, 1);
        node = node->param;
    }
    add_row(shape.has_rest ? &node->rest : &node->here, &shape, &row);
}

static bool
is_dots(const char *text, size_t len)
{
    return text[0] == '.' && (len == 1 || (len == 2 && text[1] == '.'));
}

/* A decoded segment may hold slashes, and whoever makes a file name of it must not be led
 * upwards: no piece between them may be "." or "..". */
static bool
segment_is_good(const char *text, size_t len)
{
    const char *end = text + len;

    if (len == 0)
        return false;
    for (;;) {
        const char *slash = memchr(text, '/', (size_t)(end - text));
        size_t piece = (size_t)((slash != NULL ? slash : end) - text);

        if (piece > 0 && is_dots(text, piece))
            return false;
        if (slash == NULL)
            return true;
        text = slash + 1;
    }
}

/* Decodes one segment of `len` bytes to `to`; the length written, 0 for a bad one. */
static size_t
decode_segment(const char *raw, size_t len, char *to)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        char c = raw[i];

        if (c == '%') {
            if (len - i < 3 || !g_ascii_isxdigit(raw[i + 1]) || !g_ascii_isxdigit(raw[i + 2]))
                return 0;
            c = (char)(g_ascii_xdigit_value(raw[i + 1]) * 16 + g_ascii_xdigit_value(raw[i + 2]));
            if (c == '\0')
                return 0;
            i += 2;
        }
        to[n++] = c;
    }
    return segment_is_good(to, n) ? n : 0;
}

static inline void
path_add(Path *path, const char *text, size_t len)
{
    if (path->n < ROUTE_DEPTH_MAX)
        path->segments[path->n] = (Segment){.text = text, .len = len};
    path->n++;
    path->end = text + len;
}

static bool
split_decoding(const char *raw, Path *path)
{
    char *to = path->scratch = g_malloc(strlen(raw) + 1);

    while (*raw == '/') {
        size_t len = strcspn(raw + 1, "/");
        size_t n = decode_segment(raw + 1, len, to);

        if (n == 0)
            return false;
        path_add(path, to, n);
        to += n;
        *to++ = '/';
        raw += 1 + len;
    }
    return true;
}

/* False: ROUTE_BAD.  `path->scratch` is the caller's to free either way. */
static bool
path_split(const char *raw, Path *path)
{
    path->n = 0;
    path->scratch = NULL;
    if (*raw != '/')
        return false;
    if (raw[1] == '\0') {
        path->end = raw + 1;
        return true;
    }
    if (strchr(raw, '%') != NULL)
        return split_decoding(raw, path);
    while (*raw == '/') {
        const char *text = raw + 1;

        raw = strchrnul(text, '/');
        if (raw == text || is_dots(text, (size_t)(raw - text)))
            return false;
        path_add(path, text, (size_t)(raw - text));
    }
    return true;
}

static const Endpoint *
find(const Node *node, const Path *path, size_t depth)
{
    const Endpoint *found = NULL;

    if (depth == path->n)
        return node->here;
    if (depth < ROUTE_DEPTH_MAX) {
        const Segment *s = &path->segments[depth];
        const Node *literal = node_literal(node, s->text, s->len);

        if (literal != NULL)
            found = find(literal, path, depth + 1);
        if (found == NULL && node->param != NULL)
            found = find(node->param, path, depth + 1);
    }
    return found != NULL ? found : node->rest;
}

static const Row *
find_row(const Endpoint *endpoint, const char *method)
{
    const Row *get = NULL;
    bool is_head = strcmp(method, "HEAD") == 0;

    for (guint i = 0; i < endpoint->rows->len; i++) {
        const Row *row = &g_array_index(endpoint->rows, Row, i);

        if (strcmp(row->method, method) == 0)
            return row;
        if (is_head && strcmp(row->method, "GET") == 0)
            get = row;
    }
    return get;
}

static char *
list_methods(const Endpoint *endpoint)
{
    GString *list = g_string_new(NULL);
    bool has_get = false;

    for (guint i = 0; i < endpoint->rows->len; i++) {
        const char *method = g_array_index(endpoint->rows, Row, i).method;

        if (has_get && strcmp(method, "HEAD") == 0)
            continue;
        has_get = has_get || strcmp(method, "GET") == 0;
        g_string_append_printf(list, "%s%s", list->len > 0 ? ", " : "", method);
        if (strcmp(method, "GET") == 0)
            g_string_append(list, ", HEAD");
    }
    return g_string_free(list, FALSE);
}

/* Segments of the raw path are never empty, but an encoded slash may have made such pieces. */
static bool
rest_is_good(const char *text, size_t len)
{
    return text[0] != '/' && text[len - 1] != '/' && memmem(text, len, "//", 2) == NULL;
}

static Segment
param_text(const Endpoint *endpoint, const Path *path, guint i)
{
    Segment s = path->segments[endpoint->at[i]];

    if (endpoint->has_rest && i == endpoint->n_params - 1)
        s.len = (size_t)(path->end - s.text);
    return s;
}

static RouteResult
fill_match(const Endpoint *endpoint, const Path *path, const char *method, RouteMatch *match)
{
    const Row *row = find_row(endpoint, method);

    if (endpoint->has_rest) {
        Segment rest = param_text(endpoint, path, endpoint->n_params - 1);

        if (!rest_is_good(rest.text, rest.len))
            return ROUTE_BAD;
    }
    if (row == NULL) {
        match->allow = list_methods(endpoint);
        return ROUTE_NO_METHOD;
    }
    match->row = row->row;
    match->n_params = endpoint->n_params;
    for (guint i = 0; i < endpoint->n_params; i++) {
        Segment s = param_text(endpoint, path, i);

        match->names[i] = row->names[i];
        match->values[i] = g_strndup(s.text, s.len);
    }
    return ROUTE_FOUND;
}

RouteResult
router_match(const Router *router, const char *method, const char *raw_path, RouteMatch *ret_match)
{
    RouteResult result = ROUTE_BAD;
    Path path;

    *ret_match = (RouteMatch){0};
    if (path_split(raw_path, &path)) {
        const Endpoint *endpoint = find(router->root, &path, 0);

        result = endpoint != NULL ? fill_match(endpoint, &path, method, ret_match) : ROUTE_NO_PATH;
    }
    g_free(path.scratch);
    return result;
}

void
route_match_clear(RouteMatch *match)
{
    for (guint i = 0; i < match->n_params; i++)
        g_free(match->values[i]);
    g_free(match->allow);
    *match = (RouteMatch){0};
}

const char *
route_match_param(const RouteMatch *match, const char *name)
{
    for (guint i = 0; i < match->n_params; i++) {
        if (strcmp(match->names[i], name) == 0)
            return match->values[i];
    }
    return NULL;
}
