#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest of tools/interop/invalidation. A C server invalidates whenever the client
# allows it, but never for a Call with several rkeys. A C client always allows it.
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
