/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "box/template-private.h"

/* What one text gave, joined: "name" for a recipe, "name! message" for a mistake. */
static void
on_recipe(Recipe *recipe, void *data)
{
    g_ptr_array_add(data, recipe);
}

static void
on_problem(const char *name, const char *message, void *data)
{
    g_ptr_array_add(data, g_strdup_printf("%s! %s", name, message));
}

static Recipe *
read_one(const char *text)
{
    g_autoptr(GPtrArray) got = g_ptr_array_new();

    recipe_read(text, strlen(text), "x/one.yaml", &(RecipeSink){on_recipe, on_problem, got});
    g_assert_cmpuint(got->len, ==, 1);
    return got->pdata[0];
}

static void
on_bad_recipe(Recipe *recipe, void *data)
{
    g_ptr_array_add(data, g_strdup("a recipe"));
    recipe_free(recipe);
}

static char *
read_mistake(const char *text, size_t len)
{
    g_autoptr(GPtrArray) got = g_ptr_array_new_with_free_func(g_free);

    recipe_read(text, len, "x/one.yaml", &(RecipeSink){on_bad_recipe, on_problem, got});
    return got->len == 0 ? g_strdup("nothing") : g_strdup(got->pdata[0]);
}

static void
test_recipe(void)
{
    g_autoptr(Recipe)
        r = read_one("from: base\n"
                     "description: all of it\n"
                     "packages: [git, libc6:amd64, vim=2:9.0]\n"
                     "npm: [express, '@types/node@18', jest@^29.1.0]\n"
                     "pip: ['requests[socks]>=2,<3', attrs]\n"
                     "node: '18'\n"
                     "go: {version: 1.21.13, amd64: 'h1:THKeCuuOK6mnQhbTbvvH9CKU3D4lwUERQax+yRXCVJk='}\n"
                     "commands: [echo a, 'touch /b']\n"
                     "files:\n"
                     "  /etc/motd: hello\n"
                     "  /usr/bin/x: {content: '#!/bin/sh', mode: 0755}\n"
                     "env: {A_1: b=c, EMPTY: ''}\n"
                     "user: dev\n"
                     "workdir: /work place\n"
                     "test: make check\n"
                     "verify: {git --version: git, 'true': ''}\n"
                     "limits: {cpu: 0.5, memory_mb: 512, disk_mb: 1024, inodes: 1000, processes: 64}\n"
                     "sudo: true\n"
                     "low_ports: false\n");

    g_assert_cmpstr(r->name, ==, "one");
    g_assert_cmpstr(r->from, ==, "base");
    g_assert_null(r->root);
    g_assert_cmpstr(r->packages[2], ==, "vim=2:9.0");
    g_assert_cmpstr(r->npm[1], ==, "@types/node@18");
    g_assert_cmpstr(r->pip[0], ==, "requests[socks]>=2,<3");
    g_assert_cmpstr(r->node, ==, "18");
    g_assert_cmpstr(r->go, ==, "1.21.13");
    g_assert_nonnull(r->go_amd64);
    g_assert_cmpstr(r->env[0], ==, "A_1=b=c");
    g_assert_cmpstr(r->env[1], ==, "EMPTY=");
    const RecipeFile *file = r->files->pdata[1];
    g_assert_cmpstr(file->path, ==, "/usr/bin/x");
    g_assert_cmpuint(file->mode, ==, 0755);
    const RecipeCheck *check = r->verify->pdata[0];
    g_assert_cmpstr(check->command, ==, "git --version");
    g_assert_cmpuint(r->limits.cpu_milli, ==, 500);
    g_assert_cmpuint(r->limits.memory_bytes, ==, 512u << 20);
    g_assert_cmpuint(r->limits.pids, ==, 64);
    g_assert_true(r->sudo == RECIPE_ON && r->low_ports == RECIPE_OFF);
}

static void
test_mistakes(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"from: base\npackages: [git]\nwhat: 1\n", "one! x/one.yaml:3:1: a template has no member 'what'"},
        {"packages: [git]\n", "either a root"},
        {"root: debian\nfrom: base\n", "either a root"},
        {"root: disk\n", "'disk' cannot be the root of a template"},
        {"root: host\npackages: [git]\n", "takes no packages"},
        {"root: folder\n", "names its folder"},
        {"from: base\nfolder: /x\n", "names its folder"},
        {"from: base\npackages: git\n", "x/one.yaml:2:11: packages must be a list"},
        {"from: base\npackages: [-o, git]\n", "x/one.yaml:2:12: '-o' cannot be one of packages"},
        {"from: base\npackages: ['a b']\n", "'a b' cannot be one of packages"},
        {"from: base\npackages: [\"git\\n\"]\n", "cannot be one of packages"},
        {"from: base\nnpm: [--global]\n", "'--global' cannot be one of npm"},
        {"from: base\nnpm: [git+ssh://x/y]\n", "cannot be one of npm"},
        {"from: base\npip: [-r x]\n", "cannot be one of pip"},
        {"from: base\ncommands: [[a]]\n", "cannot be one of commands"},
        {"from: base\nfiles: {etc/x: a}\n", "'etc/x' cannot be a file"},
        {"from: base\nfiles: {/etc/../x: a}\n", "cannot be a file"},
        {"from: base\nfiles: {/proc/x: a}\n", "cannot be a file"},
        {"from: base\nfiles: {/dev: a}\n", "cannot be a file"},
        {"from: base\nfiles: {/a: {mode: 0644}}\n", "a file is its content"},
        {"from: base\nfiles: {/a: {content: b, mode: 04755}}\n", "mode must be octal"},
        {"from: base\nfiles: {/a: {content: b, owner: c}}\n", "a file is its content"},
        {"from: base\nenv: {1A: b}\n", "'1A' cannot be a name in env"},
        {"from: base\nenv: {A: [b]}\n", "must have a plain value"},
        {"from: base\nuser: 'a b'\n", "'a b' cannot be the user"},
        {"from: base\nworkdir: home\n", "'home' cannot be the workdir"},
        {"from: base\nworkdir: /a/../b\n", "is no plain path"},
        {"from: base\nlimits: {cpu: -1}\n", "cpu must be a number"},
        {"from: base\nlimits: {cpu: nan}\n", "cpu must be a number"},
        {"from: base\nlimits: {memory_mb: 1e99}\n", "memory_mb must be a number"},
        {"from: base\nlimits: {gpu: 1}\n", "limits have no member 'gpu'"},
        {"from: base\nsudo: perhaps\n", "sudo must be true or false"},
        {"from: base\ngo: {version: latest}\n", "go must have a version"},
        {"from: base\ngo: {version: 1.21.13, amd64: x}\n", "a sum is h1:"},
        {"from: base\ngo: {version: 1.21.13, sparc: x}\n", "go has no member 'sparc'"},
        {"from: base\nnode: v18\n", "'v18' cannot be the node"},
        {"name: ../etc\nfrom: base\n", "'../etc' cannot be the name"},
        {"name: a.tmp-b\nfrom: base\n", "'a.tmp-b' cannot be the name"},
        {"name: cache\nfrom: base\n", "'cache' cannot be the name"},
        {"from: base\nfrom: base\n", "x/one.yaml:2:1: from is there twice"},
        {"from: &a base\n", "anchors and tags are not supported"},
        {"from: *a\n", "aliases are not supported"},
        {"from: !!str base\n", "anchors and tags are not supported"},
        {"- from\n", "the file must hold a template"},
        {"from: base\n--- \nfrom: base\n", "a second document"},
        {"from: {a: {b: {c: {d: {e: f}}}}}\n", "nested too deeply"},
        {"from: base\nenv: {A: \"\\0\"}\n", "NUL"},
        {"from: [base\n", "not valid YAML"},
        {"\xff\xfe", "not valid YAML"},
        {"# only this\n", "nothing"},
        {"", "nothing"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = read_mistake(cases[i].text, strlen(cases[i].text));

        g_test_message("%s -> %s", cases[i].text, got);
        g_assert_nonnull(strstr(got, cases[i].want));
    }
}

static void
test_bombs(void)
{
    g_autoptr(GString) many = g_string_new("from: base\npackages: [");
    g_autoptr(GString) deep = g_string_new("from: ");

    for (int i = 0; i < RECIPE_VALUES_MAX; i++)
        g_string_append(many, "a,");
    g_string_append(many, "a]\n");
    for (int i = 0; i < 10000; i++)
        g_string_append_c(deep, '[');
    g_autofree char *got = read_mistake(many->str, many->len);
    g_assert_nonnull(strstr(got, "too many values"));
    g_autofree char *got_deep = read_mistake(deep->str, deep->len);
    g_assert_nonnull(strstr(got_deep, "nested too deeply"));
    g_autofree char *wide = g_strnfill(RECIPE_TEXT_MAX + 1, 'x');
    g_autofree char *text = g_strconcat("from: base\ntest: ", wide, "\n", NULL);
    g_autofree char *got_wide = read_mistake(text, strlen(text));
    g_assert_nonnull(strstr(got_wide, "too long"));
}

/* ---- roles ---- */

static void
free_any(gpointer data)
{
}

static void
test_roles(void)
{
    static const char text[] = "templates:\n"
                               "  coder:\n"
                               "    base: node:20\n"
                               "    packages: [typescript, '@scope/core']\n"
                               "    tools: [git, coverage-reporter]\n"
                               "  analyst:\n"
                               "    base: python:3.11\n"
                               "    packages: [pandas]\n"
                               "  other:\n"
                               "    base: java\n"
                               "    packages: [ant]\n";
    g_autoptr(GPtrArray) got = g_ptr_array_new_with_free_func(free_any);

    recipe_read(text, strlen(text), "roles.yaml", &(RecipeSink){on_recipe, on_problem, got});
    g_assert_cmpuint(got->len, ==, 3);
    g_autoptr(Recipe) coder = got->pdata[0];
    g_autoptr(Recipe) analyst = got->pdata[1];
    g_autoptr(Recipe) other = got->pdata[2];
    g_assert_cmpstr(coder->name, ==, "coder");
    g_assert_cmpstr(coder->from, ==, "base");
    g_assert_cmpstr(coder->node, ==, "20");
    g_assert_cmpstr(coder->npm[0], ==, "typescript");
    g_assert_cmpstr(coder->npm[2], ==, "c8");
    g_assert_cmpstr(coder->packages[0], ==, "git");
    g_assert_cmpstr(analyst->packages[0], ==, "python3.11");
    g_assert_cmpstr(analyst->pip[0], ==, "pandas");
    const RecipeCheck *check = analyst->verify->pdata[0];
    g_assert_cmpstr(check->want, ==, "Python 3.11.");
    g_assert_cmpstr(other->from, ==, "java");
    g_assert_cmpstr(other->packages[0], ==, "ant");
}

static void
test_role_mistakes(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"templates:\n  a:\n    base: node:20\n    tools: [vscode-server]\n",
         "a! x/one.yaml:4:13: tool 'vscode-server' is not known; there are git"},
        {"templates:\n  a:\n    base: ruby:3\n", "base 'ruby:3' is not known"},
        {"templates:\n  a:\n    packages: [b]\n", "a role has a base"},
        {"templates:\n  a:\n    base: node:20\n    colour: red\n", "a role has no member 'colour'"},
        {"templates:\n  a:\n    base: node:20\n    packages: [-g]\n", "'-g' cannot be one of packages"},
        {"templates:\n  A/b:\n    base: node:20\n", "'A/b' cannot be the name"},
        {"templates:\n  a: b\n", "a role has a base"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = read_mistake(cases[i].text, strlen(cases[i].text));

        g_test_message("%s", got);
        g_assert_nonnull(strstr(got, cases[i].want));
    }
}

/* ---- the catalogue ---- */

static char *
make_folder(void)
{
    char *path = g_dir_make_tmp("coop-template-XXXXXX", NULL);

    g_assert_nonnull(path);
    return path;
}

static void
put(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void
drop(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        g_remove(path);
    }
    g_rmdir(folder);
}

static void
test_builtins(void)
{
    static const char *const names[] = {"agent", "base",      "c",           "coder",    "go-1.21", "host",
                                        "java",  "nodejs-18", "python-3.11", "reviewer", "rust",    "tester"};
    g_autoptr(Catalogue) c = catalogue_read(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) chain = catalogue_chain(c, names[i], &error);

        g_assert_no_error(error);
        const Recipe *leaf = chain->pdata[chain->len - 1];
        const Recipe *root = chain->pdata[0];
        g_assert_cmpstr(leaf->name, ==, names[i]);
        g_assert_nonnull(root->root);
        g_assert_cmpuint(leaf->verify->len, >, 0);
    }
}

static void
test_catalogue(void)
{
    g_autofree char *folder = make_folder();
    const char *const folders[] = {"/nonexistent", folder, NULL};
    g_autoptr(GError) error = NULL;

    put(folder, "rust.yaml", "from: base\ndescription: mine\n");
    put(folder, "ring-a.yaml", "from: ring-b\n");
    put(folder, "ring-b.yaml", "from: ring-a\n");
    put(folder, "orphan.yaml", "from: nobody\n");
    put(folder, "bad.yaml", "from: base\nwhat: 1\n");
    put(folder, "note.txt", "not one");
    g_autoptr(Catalogue) c = catalogue_read(folders);

    const Recipe *rust = catalogue_find(c, "rust", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(rust->description, ==, "mine");
    g_assert_null(catalogue_chain(c, "ring-a", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_clear_error(&error);
    g_assert_null(catalogue_chain(c, "orphan", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
    g_assert_nonnull(strstr(error->message, "template 'orphan' is made from 'nobody'"));
    g_clear_error(&error);
    g_assert_null(catalogue_find(c, "bad", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_assert_nonnull(strstr(error->message, "bad.yaml:2:1"));
    g_clear_error(&error);
    g_assert_null(catalogue_find(c, "note", &error));
    g_assert_nonnull(strstr(error->message, "there are agent, bad, base, c, coder"));
    g_assert_true(catalogue_is_current(c, folders));
    put(folder, "new.yaml", "from: base\n");
    g_assert_false(catalogue_is_current(c, folders));
    drop(folder);
}

/* ---- hashes and records ---- */

static char *
key_with(const char *text, const char *lower, const char *sudo)
{
    const char *const lowers[] = {lower, NULL};
    g_autoptr(Recipe) recipe = read_one(text);

    return template_key(recipe, lowers, sudo);
}

static char *
key_of(const char *text, const char *lower)
{
    return key_with(text, lower, "5d");
}

static void
test_key(void)
{
    static const char *const others[] = {
        "from: base\npackages: [git]\nnode: '18'\n",
        "from: base\npackages: [vim]\n",
        "from: base\npackages: [git]\nnpm: [a]\n",
        "from: base\npackages: [git]\npip: [a]\n",
        "from: base\npackages: [git]\ncommands: [a]\n",
        "from: base\npackages: [git]\nfiles: {/a: b}\n",
        "from: base\npackages: [git]\nenv: {A: b}\n",
        "from: base\npackages: [git]\nverify: {a: b}\n",
        "root: debian\npackages: [git]\n",
        "from: base\npackages: [git]\nsudo: true\n",
    };
    static const char *const same[] = {
        "from: base\npackages: [git]\n",
        "packages:\n- git\nfrom: base\ndescription: told otherwise\n",
        "from: base\npackages: [git]\nlimits: {cpu: 1}\nlow_ports: true\ntest: x\n",
    };
    g_autofree char *key = key_of(same[0], "aaa");
    g_autofree char *below = key_of(same[0], "bbb");

    g_assert_cmpuint(strlen(key), ==, TEMPLATE_HASH_LEN);
    g_assert_cmpstr(key, !=, below);
    for (size_t i = 0; i < G_N_ELEMENTS(same); i++) {
        g_autofree char *other = key_of(same[i], "aaa");

        g_assert_cmpstr(key, ==, other);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autofree char *other = key_of(others[i], "aaa");

        g_assert_cmpstr(key, !=, other);
    }
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? "root: debian\nsudo: true\n" : "root: debian\n";
        g_autofree char *one = key_with(text, "aaa", "5d");
        g_autofree char *other = key_with(text, "aaa", "5e");

        g_assert_cmpint(strcmp(one, other) != 0, ==, i == 0);
    }
}

static void
test_record(void)
{
    g_autoptr(Recipe)
        root = read_one("root: debian\nenv: {A: a, B: b}\nuser: user\nworkdir: /home/user\nsudo: true\n"
                        "limits: {cpu: 2, memory_mb: 512}\n");
    g_autoptr(Recipe) leaf = read_one("name: leaf\nfrom: one\nenv: {B: c}\ntest: make\nlimits: {cpu: 1}\n");
    g_autoptr(GPtrArray) chain = g_ptr_array_new();
    g_autoptr(GPtrArray) layers = g_ptr_array_new_with_free_func((GDestroyNotify)template_layer_free);

    g_ptr_array_add(chain, root);
    g_ptr_array_add(chain, leaf);
    for (int i = 0; i < 2; i++) {
        TemplateLayer *layer = g_new0(TemplateLayer, 1);

        *layer = (TemplateLayer){.hash = g_strnfill(TEMPLATE_HASH_LEN, i == 0 ? 'a' : 'b'),
                                 .size = 100,
                                 .versions = json_pack("{s:s}", i == 0 ? "x" : "y", "1"),
                                 .built_us = 5};
        g_ptr_array_add(layers, layer);
    }
    TemplateFull *full = template_full_new(NULL, template_record_new(chain, "key", layers));
    g_assert_nonnull(full);
    const Template *t = &full->t;

    g_assert_cmpstr(t->name, ==, "leaf");
    g_assert_cmpuint(t->n_layers, ==, 2);
    g_assert_cmpint(t->layers[0][0], ==, 'a');
    g_assert_cmpuint(t->size_bytes, ==, 200);
    g_assert_cmpstr(t->user, ==, "user");
    g_assert_cmpstr(t->test_command, ==, "make");
    g_assert_true(t->sudo && !t->low_ports);
    g_assert_cmpuint(t->limits.cpu_milli, ==, 1000);
    g_assert_cmpuint(t->limits.memory_bytes, ==, 512u << 20);
    g_assert_cmpstr(g_environ_getenv((char **)(guintptr)t->env, "A"), ==, "a");
    g_assert_cmpstr(g_environ_getenv((char **)(guintptr)t->env, "B"), ==, "c");
    g_assert_cmpstr(g_environ_getenv((char **)(guintptr)t->env, "HOME"), ==, "/home/user");
    g_assert_nonnull(g_environ_getenv((char **)(guintptr)t->env, "PATH"));
    template_unref(&full->t);
}

static void
test_bad_records(void)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"version\":1,\"name\":\"a\"}",
        ("{\"version\":1,\"name\":\"a\",\"hash\":\"../../etc\",\"key\":\"k\",\"user\":\"u\","
         "\"workdir\":\"/\",\"layers\":[\"../../etc\"]}"),
        "{\"version\":2}",
    };
    g_autofree char *folder = make_folder();

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        put(folder, "a.json", texts[i]);
        g_assert_null(template_full_read(NULL, folder, "a.json"));
        put(folder, "k.layer", texts[i]);
        g_assert_null(template_layer_find(folder, "k"));
    }
    drop(folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/template/recipe", test_recipe);
    g_test_add_func("/template/mistakes", test_mistakes);
    g_test_add_func("/template/bombs", test_bombs);
    g_test_add_func("/template/roles", test_roles);
    g_test_add_func("/template/role-mistakes", test_role_mistakes);
    g_test_add_func("/template/builtins", test_builtins);
    g_test_add_func("/template/catalogue", test_catalogue);
    g_test_add_func("/template/key", test_key);
    g_test_add_func("/template/record", test_record);
    g_test_add_func("/template/bad-records", test_bad_records);
    return g_test_run();
}
