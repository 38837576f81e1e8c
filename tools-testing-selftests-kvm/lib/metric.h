/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test has measured, one line for each figure: "# metric NAME[/ITERATION] VALUE UNIT"
 */

#ifndef SELFTEST_KVM_METRIC_H
#define SELFTEST_KVM_METRIC_H

#include <stdio.h>

/*
 * The name is @name and @part, one behind the other; @unit: "s", "pages", "count", "x" for
 * a ratio; @iteration: from 1 on, 0 for none
 */
static inline void metric_part(const char *name, const char *part, unsigned long iteration,
			       double value, const char *unit)
{
	printf("# metric %s%s", name, part);
	if (iteration)
		printf("/%lu", iteration);
	printf(" %.*f %s\n", value == (long long)value ? 0 : 9, value, unit);
}

static inline void metric_of(const char *name, unsigned long iteration, double value,
			     const char *unit)
{
	metric_part(name, "", iteration, value, unit);
}

static inline void metric(const char *name, double value, const char *unit)
{
	metric_part(name, "", 0, value, unit);
}

#endif /* SELFTEST_KVM_METRIC_H */
