/* SPDX-License-Identifier: MIT */
/* Prints the option table in Markdown, for the README and for the test that compares them. */
#include <stdio.h>

#include "policy/options.h"

static void print(void *ctx, const char *line)
{
    (void)ctx;
    puts(line);
}

int main(void)
{
    es_options_markdown(print, NULL);
    return 0;
}
