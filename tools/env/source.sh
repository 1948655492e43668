# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for a copy of SOURCE, the kernel source that the user names: a tree, or a tarball. The copy
# of a tree has no products of a build, with which Kbuild would refuse to build in /obj. Sourced by
# tools/env/make and recipes.sh.

# record_source: records the hash of the contents of SOURCE, and a stamp by which the next run
# recognises SOURCE without reading it all.
record_source() {
	local hash='' stamp known=''
	[ -e "$SOURCE" ] || fail "SOURCE=$SOURCE does not exist" "name a kernel tree, or a tarball of one"
	stamp=$(find "$SOURCE" -name .git -prune -o -printf '%P %s %T@ %i\n' | sort | sha256sum | cut -c1-12)
	[ ! -f "$(source_record)" ] || read -r hash known <"$(source_record)"
	if [ "$known" != "$stamp" ] || [ ! -d "$(source_path)" ]; then
		hash=$(pack_source | sha256sum | cut -c1-12)
		echo "$hash $stamp" >"$(source_record)"
	fi
}

# pack_source: writes the tarball, or a new one of the files of the tree that git does not ignore.
# The tree need not be a repository: .gitignore is enough.
pack_source() {
	local git
	if [ -f "$SOURCE" ]; then
		cat "$SOURCE"
		return
	fi
	git=$(mktemp -d)
	git init -q "$git"
	git --git-dir="$git/.git" --work-tree="$SOURCE" -c core.excludesFile=/dev/null \
		ls-files -z --others --exclude-standard | sort -z |
		tar -C "$SOURCE" --no-recursion --null -T - --transform='s|^|linux/|S' \
			--owner=0 --group=0 --numeric-owner --mtime='2000-01-01 UTC' -cf -
	rm -rf "$git"
}

make_source() {
	if [ -f "$SOURCE" ]; then
		tar -C "$1" --strip-components=1 -xf "$SOURCE"
	else
		pack_source | tar -C "$1" --strip-components=1 -xf -
	fi
	[ -f "$1/rust/Makefile" ] || fail "$SOURCE is no kernel source with Rust" \
		"name a kernel tree, or a tarball of one, as SOURCE"
}
