# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Rules that hold for every file.

# The licence stands in the first line, or the second of what starts with #!.
rule_spdx() {
	local file
	listed | while read -r file; do
		case $file in
		LICENSE | README.md | *.lock | *.gitignore | .shellcheckrc | */seeds/*) continue ;;
		esac
		head -n 3 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0' || echo "$file: no SPDX line"
	done
}

# Headers of trace events are one table for each end, as in the kernel.
rule_file_length() {
	local file lines
	listed | grep -E '\.(rs|c|h|sh)$' | grep -v '^include/trace/events/' | while read -r file; do
		lines=$(wc -l <"$file")
		[ "$lines" -le 600 ] || echo "$file: $lines lines, 600 allowed"
	done
}

# rustfmt leaves comments, and what is in a macro, as they are. Tables cannot be wrapped.
rule_line_length() {
	listed | grep '\.rs$' | xargs awk 'length > 100 && !/^ *\/\/[\/!] *\|/ {
		printf "%s:%d: %d columns, 100 allowed\n", FILENAME, FNR, length }'
}

# The files, functions and tests that the tables under Documentation/ name exist.
rule_conformance() {
	local said
	said=$(tools/conformance/run 2>&1) || echo "tools/conformance/run failed: $said"
}

# Titles, tables, and the names of other documents.
rule_documents() {
	tools/docs --check
}

# Work left for later is named in the documentation, not in the code.
rule_no_todo() {
	listed | grep -E '\.(rs|c|h|sh)$' | grep -v '^tools/check/' |
		xargs grep -nE '\b(TODO|FIXME|XXX|HACK)\b|\btodo!|\bunimplemented!|\bdbg!'
}

# What is in the repository, or would be added to it. The tree may be somebody else's,
# and it may be no repository; then what the build makes is left out by name.
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
