#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest. A C server asks the client alone, and leaves Calls with several
# tags to it. A C client is always willing.
# shellcheck source=client.sh
. /interop/client.sh

client_set_up || exit
status=0
if [ "$INTEROP" = "ours c" ]; then
	./invalidation.sh "single_mr_invalidation 1 1 $COUNT" "multi_mr_invalidation 1 1 0" \
		"single_mr_invalidation 0 1 $COUNT" "multi_mr_invalidation 0 1" || status=1
else
	./invalidation.sh "single_mr_invalidation 1 1 $COUNT" "multi_mr_invalidation 1 1 1" ||
		status=1
	on_server unwilling
	./invalidation.sh "single_mr_invalidation 1 0 $COUNT" "multi_mr_invalidation 1 0" || status=1
fi
exit $status
