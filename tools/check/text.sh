# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Rules for all files of the tree.

# The first line has the licence, or the second if the first is #!.
rule_spdx() {
	local file
	listed | while read -r file; do
		case $file in
		LICENSE | README.md | *.lock | *.gitignore | .shellcheckrc | */seeds/*) continue ;;
		esac
		head -n 3 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0' || echo "$file: no SPDX line"
	done
}

# At most 600 lines, except headers of trace events: one per end, as in the kernel.
rule_file_length() {
	local file lines
	listed | grep -E '\.(rs|c|h|sh)$' | grep -v '^include/trace/events/' | while read -r file; do
		lines=$(wc -l <"$file")
		[ "$lines" -le 600 ] || echo "$file: $lines lines, 600 allowed"
	done
}

# rustfmt does not wrap comments or macro arguments. Tables in comments cannot be wrapped.
rule_line_length() {
	listed | grep '\.rs$' | xargs awk 'length > 100 && !/^ *\/\/[\/!] *\|/ {
		printf "%s:%d: %d columns, 100 allowed\n", FILENAME, FNR, length }'
}

# The files, functions and tests exist that the records under Documentation/ name.
rule_conformance() {
	local said
	said=$(tools/conformance/run 2>&1) || echo "tools/conformance/run failed: $said"
}

# Each change of tools/mutants/listed applies: its file has the old text once.
rule_mutants() {
	local id file old new
	# The changed sources compile without the rest of the tree.
	git grep -ho 'include_str!("[^"]*")' -- tools/host | sed 's/^.*("[./]*//; s/")$//' |
		while IFS= read -r file; do
			grep -q "^	find .* $file " tools/mutants/listed ||
				echo "tools/mutants/listed: does not copy $file, which tools/host includes"
		done
	grep -v '^#' tools/mutants/changes | while IFS=$'\t' read -r id file old new _; do
		[ "$(grep -oF -- "$old" "$file" | wc -l)" = 1 ] ||
			echo "tools/mutants/changes: $id: $file does not have it once: $old"
		[ -n "$new" ] || echo "tools/mutants/changes: $id: not a line of changes"
	done
}

# Each program of the selftests runs the tests that its user has named.
rule_named_tests() {
	local file
	grep -lx bed_up selftests/*.sh | while read -r file; do
		grep -q 'ktap_run "\$@"' "$file" || echo "$file: ignores the tests named: no ktap_run \"\$@\""
	done
}

# Sphinx reports no warning: titles, tables, references between documents.
rule_documents() {
	tools/docs --check
	bare_titles Documentation/*.rst
}

# bare_titles FILE...: prints titles without a line under them. Sphinx takes them for paragraphs.
bare_titles() {
	awk 'FNR == 1 { before = title = "" }
		title != "" && /^$/ { print FILENAME ":" FNR - 1 ": no line under the title \"" title "\"" }
		{ title = before == "" && NF < 5 && /^[A-Z][A-Za-z ]*$/ ? $0 : ""; before = $0 }' "$@"
}

rule_test_bare_titles() (
	top=$(mktemp -d)
	printf '%s\n' Title ===== '' 'A sentence.' '' 'No line' '' 'A few words:' '' Last ---- >"$top/planted.rst"
	bare_titles "$top/planted.rst" | diff - <(echo "$top/planted.rst:6: no line under the title \"No line\"")
	rm -r "$top"
)

# The names in the files of debugfs are those that the test expects.
rule_state_names() {
	local end documented tested
	for end in client server; do
		documented=$(awk -v end="$end" '
			/^Name  *End  *Meaning$/ { table = 1 }
			table && /^$/ { exit }
			table && /^``/ && ($2 == end || $2 == "both") { print $1 }' \
			Documentation/operating.rst | tr -d '\140' | sort)
		tested=$(sed -n "/^${end^^}_NAMES='/,/'\$/p" selftests/state.sh |
			sed "s/^.*='//; s/'//" | tr -s ' \t' '\n\n' | sed '/^$/d' | sort)
		diff <(echo "$documented") <(echo "$tested") |
			sed -n "s/^[<>] \(.*\)/\1: not in Documentation\/operating.rst or not in selftests\/state.sh, for the $end/p"
	done
}

# The newest version that Documentation/changes.rst describes is that of the module.
rule_version() {
	local module described
	module=$(sed -n 's/^#define RPCRDMA_MODULE_VERSION "\(.*\)"$/\1/p' include/version.h)
	described=$(sed -n '/^[0-9][0-9.]*$/{p;q}' Documentation/changes.rst)
	[ -n "$module" ] && [ "$described" = "$module" ] ||
		echo "Documentation/changes.rst: version \"$described\" is the first section, the module has \"$module\""
}

# Code has no markers of unfinished work. Known gaps are in the documents.
rule_no_todo() {
	listed | grep -E '\.(rs|c|h|sh)$' | grep -v '^tools/check/' |
		xargs grep -nE '\b(TODO|FIXME|XXX|HACK)\b|\btodo!|\bunimplemented!|\bdbg!'
}

# Prints the files that are tracked by git, or would be if added. The tree may belong to another
# user. If it is no repository, build products are excluded by name.
listed() {
	local file ours=(git -c "safe.directory=$(pwd -P)")
	if "${ours[@]}" rev-parse --git-dir >/dev/null 2>&1; then
		"${ours[@]}" ls-files --cached --others --exclude-standard | while read -r file; do
			[ ! -f "$file" ] || echo "$file"
		done
	else
		find . '(' -name target -o -path ./out -o -path ./.git ')' -prune -o -type f \
			-not -name '*.o' -not -name '*.ko' -not -name '*.mod' -not -name '*.mod.c' \
			-not -name '*.cmd' -not -name '*.order' -not -name '*.symvers' \
			-not -name '*.rmeta' -not -name '.tmp_*' -not -name '.*.d' \
			-not -name generated.rs -not -name '*-verify.state' \
			-not -path './selftests/*_helper' -not -path ./tools/probe/probe -print |
			sed 's|^\./||'
	fi
}
