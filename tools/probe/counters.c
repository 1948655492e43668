// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the device and of the module.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "counters.h"
#include "probe.h"

#define RELEASE_S	150	/* in which the memory of closed connections is freed */

/*
 * Counts the RNR NAKs that were sent by either end, if the device does: Sends that found no
 * Receive. The sender sees nothing of them, because its device retries.
 */
unsigned long rnr_count(const struct conn *c)
{
	static bool warned;
	unsigned long n = 0;
	char path[128];
	FILE *f;

	/* The RDMA core caches hw_counters for 10 ms. */
	usleep(20000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/hw_counters/send_rnr_err",
		 ibv_get_device_name(c->id->verbs->device), c->id->port_num);
	f = fopen(path, "r");
	if ((!f || fscanf(f, "%lu", &n) != 1) && !warned) {
		warned = true;
		printf("# %s does not count Sends without a Receive\n",
		       ibv_get_device_name(c->id->verbs->device));
	}
	if (f)
		fclose(f);
	return n;
}

/* Passes on a device that does not count. */
bool no_rnr_since(const struct conn *c, unsigned long before)
{
	const unsigned long n = rnr_count(c) - before;

	return n ? fail("%lu Sends found no Receive", n) : true;
}

/* Timeouts after which rxe has retransmitted; -1 for another device. */
long rxe_timeouts(void)
{
	static const char command[] =
		"cat /sys/class/infiniband/*/ports/1/hw_counters/completer_retry_err 2>/dev/null";

	usleep(20000);
	return number_from(popen(command, "r"), pclose);
}

/*
 * Waits until the memory of closed connections is freed. Passes if there is no such gauge.
 *
 * conn_close() does not wait for the DREP. If the DREQ is lost, the peer keeps the connection until
 * its Sends have been retried in vain, or until the stall detector ends the connection, after 90 s
 * by default.
 */
bool memory_released(const char *gauge)
{
	unsigned long bytes = 0;
	int i;

	for (i = 0; i < RELEASE_S * 10 * probe.time_factor; i++) {
		FILE *f = fopen(gauge, "r");

		if (!f)
			return true;
		if (fscanf(f, "%lu", &bytes) != 1)
			bytes = 0;
		fclose(f);
		if (!bytes)
			return true;
		usleep(100000);
	}
	return fail("%lu bytes are still allocated %d s after all connections were closed", bytes,
		    RELEASE_S * probe.time_factor);
}

#define SYSCTL_DIR	"/proc/sys/sunrpc/svc_rdma/"

/* The number in the first line of a file or of a command's output; -1 if there is none. */
long number_from(FILE *f, int (*close_file)(FILE *f))
{
	long value = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &value) != 1)
		value = -1;
	close_file(f);
	return value;
}

/* A counter or setting of the server, or -1 if it does not have it. */
long server_value(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), SYSCTL_DIR "%s", name);
	return number_from(fopen(path, "r"), fclose);
}

bool set_server_value(const char *name, unsigned int value)
{
	char path[128];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), SYSCTL_DIR "%s", name);
	f = fopen(path, "w");
	if (!f)
		return fail("%s: %s", name, strerror(errno));
	ok = fprintf(f, "%u\n", value) > 0;
	return !fclose(f) && ok ? true : fail("%s: %s", name, strerror(errno));
}

/* Why the mount's last connection has ended, in the module's words; "" if it does not tell. */
const char *client_closed_why(void)
{
	static const char command[] =
		"sed -n 's/^closed_why: //p' /sys/kernel/debug/rpcrdma/client/* 2>/dev/null";
	static char why[128];
	FILE *f = popen(command, "r");

	if (!f || !fgets(why, sizeof(why), f))
		why[0] = 0;
	why[strcspn(why, "\n")] = 0;
	if (f)
		pclose(f);
	return why;
}
