/* SPDX-License-Identifier: GPL-2.0 */
#ifndef UTIL_H
#define UTIL_H

#include <stdarg.h>
#include <stdint.h>

/* Print "error TEXT" and leave, the children with us. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Seconds that never go back. */
double seconds(void);

void nap(double length);

/* A new string, which is the caller's. */
char *vtext(const char *format, va_list list);
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
