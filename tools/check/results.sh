# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Rules for recorded results, and a test of the program that records them.

# The files under Documentation/results are well-formed, and README.md and the chart match them. The
# one of trace events matches the headers.
# Results appear in documents only by way of these files, so that no document has a date of a run.
rule_results() {
	tools/results/render --check
	grep -nE '\b20[0-9]{2}-[0-9]{2}-[0-9]{2}\b' Documentation/*.rst
	tools/results/events --check
}

# planted_age TREE TEXT: tools/results/render --check reports TEXT in TREE, or nothing if TEXT is empty.
planted_age() {
	local said
	said=$("$1/tools/results/render" --check)
	[ -n "$2" ] || [ -z "$said" ] || echo "results of an unchanged tree are reported: $said"
	grep -q "$2" <<<"$said" || echo "not reported, \"$2\": $said"
}

# README.md says whether the module's source has changed since each run, but for comments. The first
# change has to alter README.md, later ones do not, up to the number after which a new run is due.
rule_test_age() {
	local tree commit i git
	tree=$(mktemp -d)
	git=(git -C "$tree" -c user.name=a -c user.email=b)
	mkdir -p "$tree"/{rust,tools/test,selftests}
	cp -r Documentation README.md "$tree"
	cp -r tools/results "$tree/tools"
	cp selftests/suites "$tree/selftests"
	cp tools/test/plan "$tree/tools/test"
	"${git[@]}" init -q
	echo 0 >"$tree/rust/a.rs"
	"${git[@]}" add rust && "${git[@]}" commit -q -m 0
	commit=$("${git[@]}" rev-parse --short=12 HEAD)
	sed -i -E "s/\b[0-9a-f]{12}\b/$commit/g" "$tree"/Documentation/results/*.tsv
	"$tree/tools/results/render" --readme
	planted_age "$tree" ''
	printf '%s\n' 0 '	// why' '' >"$tree/rust/a.rs"
	planted_age "$tree" ''
	echo 1 >"$tree/rust/a.rs"
	planted_age "$tree" 'README.md: differs'
	"$tree/tools/results/render" --readme
	planted_age "$tree" ''
	for i in {1..150}; do
		echo "$i" >"$tree/rust/b.rs"
		"${git[@]}" add rust && "${git[@]}" commit -q -m "$i"
	done
	planted_age "$tree" ''
	"${git[@]}" rm -q rust/b.rs && "${git[@]}" commit -q -m more
	planted_age "$tree" 'bench.tsv: 151 changes'
	planted_age "$tree" 'conformance.tsv: 151 changes'
	sed -i "s/$commit/abcdef012345/" "$tree/Documentation/results/flood.tsv"
	planted_age "$tree" 'flood.tsv: commit abcdef012345 is not in this history'
	rm -r "$tree"
}

# recorded KIND OUTPUT...: prints the rows that tools/results/record writes for these outputs.
recorded() {
	tools/results/record "$1" planted --commit 0123456789ab --to "$dir" "${@:2}" 2>/dev/null >&2
	sed '/^#/d' "$dir/planted.tsv" | tr '\t' '|'
	rm -f "$dir/planted.tsv"
}

# output NAME LINE...: writes an output of commit 0123456789ab.
output() {
	printf '%s\n' '# commit 0123456789ab on 2026-01-02' "${@:2}" >"$dir/$1"
}

# tools/results/record reads each kind of output, and counts as tools/test/count does.
rule_test_record() {
	local dir

	dir=$(mktemp -d)
	output whole '# rpcrdma: rust, /x, Linux 7.2.0' 1..3 'ok 1 - a' 'ok 2 - b # SKIP for c' \
		'# FAIL: said' '# and more' 'not ok 3 - d'
	output none '1..0 # SKIP no device'
	# The emulator failed and the suite started again: earlier failures count.
	output again 1..3 'ok 1 - a' 'not ok 2 - b' 'retry: so' 1..3 'ok 1 - a' 'ok 2 - b' \
		'ok 3 - c' 'kernel log not clean:'
	# A group of the probe prints the same plan in each guest.
	output group.ktap '# group group, kernel 7.2.0, x' 1..2 '# case 1 - a (R1-1 R2-2)' \
		'ok 1 - a (R1-1 R2-2)' '# group group, kernel 7.2.0, x' 1..2 '# case 2 - b (-)' \
		'# for a reason' 'not ok 2 - b (-)'
	# Outputs of another commit are left out.
	output other 1..1 'ok 1 - a'
	sed -i 's/0123456789ab/abcdef012345/' "$dir/other"
	recorded suites "$dir"/{whole,none,again,group.ktap,other,absent} | diff - <(cat <<-'END'
		suite|planned|passed|failed|skipped|log|date|note
		whole|3|1|1|1|clean|2026-01-02|-
		none|0|0|0|0|clean|2026-01-02|no device
		again|3|3|1|0|complaints|2026-01-02|-
		probe: group|2|1|1|0|clean|2026-01-02|-
	END
	)
	# With --keep, the rows of the other files stay, and those of no file go.
	tools/results/record suites kept --keep --to "$dir" --commit abcdef012345 "$dir/other" >/dev/null
	sed -i '$p; $s/^other/gone/' "$dir/kept.tsv"
	tools/results/record suites kept --keep --to "$dir" --commit 0123456789ab \
		"$dir"/{none,other,absent} >/dev/null 2>&1
	sed '/^# [^c]/d' "$dir/kept.tsv" | tr '\t' '|' | diff - <(cat <<-'END'
		# commit: 0123456789ab
		suite|planned|passed|failed|skipped|log|date|note|commit
		none|0|0|0|0|clean|2026-01-02|no device|0123456789ab
		other|1|1|0|0|clean|2026-01-02|-|abcdef012345
	END
	)
	rm "$dir/kept.tsv"
	recorded cases "$dir/whole" | diff - <(cat <<-'END'
		suite|case|result|reason|date
		whole|a|passed|-|2026-01-02
		whole|b|skipped|for c|2026-01-02
		whole|d|failed|said|2026-01-02
	END
	)
	recorded probe "$dir/group.ktap" | diff - <(cat <<-'END'
		group|case|requirements|result|reason
		group|a|R1-1 R2-2|passed|-
		group|b|-|failed|for a reason
	END
	)
	output run-ours-c.ktap 1..2 'ok 1 - wire 4.2 5 s' 'ok 2 - krb5i 4.2 # XFAIL for a reason' \
		'not ok - the machines ended with 1'
	recorded matrix "$dir/run-ours-c.ktap" | diff - <(cat <<-'END'
		client|server|nfs|what|result|reason|date
		this|C|4.2|wire 5 s|passed|-|2026-01-02
		this|C|4.2|krb5i|xfailed|for a reason|2026-01-02
		this|C|-|the machines ended with 1|failed|-|2026-01-02
	END
	)
	output nfstest-c-ours.ktap 1..1 '#     BUG:  [for a reason]: a test' \
		'# 7 passed, 0 failed, 1 known, 2 warnings' 'ok 1 - nfstest posix 4.1 all'
	recorded nfstest "$dir/nfstest-c-ours.ktap" | diff - <(cat <<-'END'
		suite|nfs|group|client|server|passed|failed|known|warned|result|note|date
		posix|4.1|all|C|this|7|0|1|2|passed|for a reason|2026-01-02
	END
	)
	output fuzz_server.ktap 1..1 '# case 1 - seed 7' 'ok 1 - seed 7' '# 20 messages in 3 s, all well'
	recorded fuzz "$dir/fuzz_server.ktap" | diff - <(cat <<-'END'
		end|seed|messages|seconds|outcome|log
		server|7|20|3|all well|clean
	END
	)
	# A kernel has the sums of the suites that ran on it, except those of uncommitted changes. Selected
	# cases count where the whole suite has not run.
	mkdir "$dir/ran" "$dir/ran-cases"
	output ran/names 1..2 'ok 1 - a' 'ok 2 - b'
	output ran/nfsd 1..3 'ok 1 - a' 'ok 2 - b # SKIP for c'
	sed -i 's/0123456789ab/abcdef012345/' "$dir/ran/nfsd"
	output ran/module 1..1 'ok 1 - a'
	sed -i 's/0123456789ab/&, dirty/' "$dir/ran/module"
	output ran-cases/names 1..1 'not ok 1 - a'
	output ran-cases/mapping 1..1 'ok 1 - a'
	# Of two directories, the first with a result of this kernel counts.
	mkdir "$dir/more"
	output more/names '# rpcrdma: rust, /x, Linux 7.9.1-a' 1..1 'not ok 1 - a'
	output more/sysctl '# rpcrdma: rust, /x, Linux 7.9.1-a' 1..1 'ok 1 - a'
	output ran/sysctl '# rpcrdma: rust, /x, Linux 7.9.0-a' 1..1 'not ok 1 - a'
	printf '%s\t%s\n' commit 0123456789ab date 2026-01-03 module built architecture x86_64 \
		suite a:7.9 outputs "$dir/ran $dir/more" kernel 7.9.1-a rustc 1.85.1 compiler 'gcc 14.2.0' \
		device siw >"$dir/a"
	printf '%s\t%s\n' commit 0123456789ab date 2026-01-03 module failed architecture x86_64 \
		suite b outputs "$dir/ran" kernel 7.10.0-b >"$dir/b"
	# The row of a kernel that did not run again remains.
	tools/results/record kernels planted --commit 0123456789ab --to "$dir" "$dir/a" >/dev/null
	recorded kernels "$dir/b" | diff - <(cat <<-'END'
		kernel|suite|architecture|rustc|compiler|module|device|programs|passed|failed|skipped|commit|date
		7.10.0-b|b|x86_64|-|-|failed|rxe|-|-|-|-|0123456789ab|2026-01-03
		7.9.1-a|a:7.9|x86_64|1.85.1|gcc 14.2.0|built|siw|mapping (1 of its cases), nfsd, sysctl, names|5|1|1|0123456789ab, abcdef012345|2026-01-02
	END
	)
	rm -r "$dir"
}

# tools/bench/instructions.py gives each block to the function and the module that it is in, what
# exists for Rust alone to this module, and prints medians per operation. A function is called as
# often as its first block runs.
rule_test_instructions() {
	local dir

	dir=$(mktemp -d)
	printf '%s\n' 'ffffffff81000000 T schedule' 'ffffffff81000100 T rust_helper_refcount_inc' \
		'ffffffff81000200 t kfree' 'ffffffffc0000000 t xprt_transmit	[sunrpc]' \
		'ffffffffc0001000 t _RNvCs1_7rpcrdma4send	[rpcrdma]' \
		'ffffffffc0001010 t .Ltmp0	[rpcrdma]' \
		'ffffffffc0002000 t ib_post_send	[ib_core]' \
		'ffffffffc0003000 t rxe_post_send	[rdma_rxe]' >"$dir/ours.kallsyms"
	sed 's/_RNvCs1_7rpcrdma4send/xprt_rdma_send_request/; /rust_helper/d' "$dir/ours.kallsyms" \
		>"$dir/c.kallsyms"
	# 200 operations a round. The second round is the median.
	printf '%s\n' 'row 15' '0 200' 'row 15' '0 1000' 'ffffffff81000010 2000' 'ffffffff81000100 400' \
		'ffffffffc0003000 1200 300' 'ffffffffc0003000 400 100' 'ffffffffc0003008 400 400' \
		'ffffffff810001ff 400' 'ffffffffc00000ff 20000' 'ffffffffc0001020 8000' \
		'ffffffffc0002020 200' 'row 15' '0 1000' 'ffffffff81000010 2200' 'ffffffff81000100 4000' \
		'ffffffffc00000ff 200000' 'ffffffffc0001020 8200' 'ffffffffc0002020 400' \
		'ffffffffc0003000 2400 600' >"$dir/ours.blocks"
	grep -v ffffffff810001 "$dir/ours.blocks" >"$dir/c.blocks"
	echo 'bench 15 lookup3 1' | tee "$dir/ours.bench" >"$dir/c.bench"
	tools/bench/instructions.py modules "$dir" | tr '\t' '|' | diff - <(cat <<-'END'
		row|operation|bytes|nfs|this_rpcs|C_rpcs|this|C|this_layers|C_layers|this_rpcrdma|C_rpcrdma|this_sunrpc|C_sunrpc|this_ib_core|C_ib_core|this_device|C_device|this_vmlinux|C_vmlinux
		lookup3|LOOKUP-miss|0|3|1|1|170|166|145|141|44|40|100|100|1|1|10|10|10|10
	END
	)
	tools/bench/instructions.py calls "$dir" | cut -f 1-8 | tr '\t' '|' | diff - <(cat <<-'END'
		row|operation|bytes|nfs|this_rpcs|C_rpcs|this_doorbells|C_doorbells
		lookup3|LOOKUP-miss|0|3|1|1|2.0|2.0
	END
	)
	tools/bench/instructions.py functions "$dir" | tr '\t' '|' | diff - <(cat <<-'END'
		module|function|this|C|more
		rpcrdma|send|40|0|40
		rpcrdma|rust_helper_refcount_inc|4|0|4
		ib_core|ib_post_send|1|1|0
		rdma_rxe|rxe_post_send|10|10|0
		sunrpc|xprt_transmit|100|100|0
		user space||5|5|0
		vmlinux|schedule|10|10|0
		rpcrdma|xprt_rdma_send_request|0|40|-40
	END
	)
	rm -r "$dir"
}
