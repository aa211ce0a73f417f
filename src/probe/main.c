/* SPDX-License-Identifier: Apache-2.0 */
/* coop-probe: put into a box by the self-test, tries to get out, and prints a line for each
 * way: "held NAME ERRNO WHAT" or "broke NAME 0 WHAT". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe/attempt.h"

enum { EXIT_USAGE = 2 };

int
main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--in-a-box") != 0) {
        fprintf(stderr, "usage: coop-probe --in-a-box [FILE OF THE HOST]\n"
                        "It tries to do harm: run 'coop doctor --self-test', which puts it into a box.\n");
        return EXIT_USAGE;
    }
    if (argc > 2)
        attempts_set_host_file(argv[2]);
    for (const Attempt *a = attempts; a->name != NULL; a++) {
        errno = 0;
        int broke = a->try();

        printf("%s %s %d %s\n", broke ? "broke" : "held", a->name, broke ? 0 : errno, a->what);
    }
    return 0;
}
