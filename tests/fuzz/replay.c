/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* usage: fuzz-NAME-replay FOLDER|FILE... */

enum { CUTS_MAX = 1024, EXIT_SKIPPED = 77 };

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The files of a folder, sorted, so that a failure is the same one each time. */
static void
list_inputs(const char *path, GPtrArray *inputs)
{
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    const char *name;

    if (folder == NULL) {
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            g_ptr_array_add(inputs, g_strdup(path));
        return;
    }
    while ((name = g_dir_read_name(folder)) != NULL)
        g_ptr_array_add(found, g_build_filename(path, name, NULL));
    g_ptr_array_sort(found, compare_names);
    g_ptr_array_extend_and_steal(inputs, g_steal_pointer(&found));
}

static void
replay(const char *path)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize n;

    if (!g_file_get_contents(path, &text, &n, &error))
        g_error("%s", error->message);
    /* Said first: after an abort the last line names the input. */
    printf("%s: %zu bytes\n", path, n);
    fflush(stdout);
    g_autofree guint8 *data = g_memdup2(text, MAX(n, 1));

    fuzz_input(data, n, n);
    fuzz_input(data, n, FUZZ_EACH_BYTE);
    for (size_t cut = 0; cut < MIN(n, CUTS_MAX); cut++)
        fuzz_input(data, n, cut);
}

int
main(int argc, char **argv)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(g_free);

    for (int i = 1; i < argc; i++)
        list_inputs(argv[i], inputs);
    if (inputs->len == 0) {
        printf("no inputs\n");
        return EXIT_SKIPPED;
    }
    for (guint i = 0; i < inputs->len; i++)
        replay(inputs->pdata[i]);
    printf("%u inputs hold\n", inputs->len);
    return EXIT_SUCCESS;
}
