# SPDX-License-Identifier: GPL-2.0
#
# Drops reports of the kernel that have another cause than the transport, from "cut here" to the end
# of their trace. Another complaint within such a report is kept.
#
# rxe_sched_task(): rxe queues a packet for a queue pair and then schedules its task. On another
# processor the task may have taken the packet by then, and with it the last reference to a queue
# pair that is being destroyed (Documentation/upstream/drivers.rst).

/\[ cut here \]/ && !skipping { held = held $0 "\n"; next }

held != "" && /WARNING: drivers\/infiniband\/sw\/rxe\/rxe_task\.c:[0-9]+ at rxe_sched_task\+/ {
	held = ""
	skipping = 100
	next
}

held != "" { printf "%s", held; held = "" }

skipping && !/BUG|WARNING|Oops|KASAN|cut here/ {
	skipping = /---\[ end trace/ ? 0 : skipping - 1
	next
}

{ skipping = 0; print }

END { printf "%s", held }
