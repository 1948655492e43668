# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The archive of a run: what the guest begins with, and what it puts on its disk then, which
# is the module under test, the module index, init, and the script.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../env/cache.sh
. "$vm_dir/../env/cache.sh"

# make_overlay SCRIPT ARGUMENT...: $run/overlay.cpio, from the run's options.
make_overlay() {
	local top=$run/top root=$run/top/run-adds it
	mkdir -p "$root/vm"
	install -m 755 "$vm_dir/guest/early" "$top/init"
	cp -r "$vm_dir/guest/." "$vm_dir/../lib/say.sh" "$root/vm/"
	put_module "$root"
	for it in ${adds[@]+"${adds[@]}"}; do
		put_file "$root" "${it%%:*}" "${it#*:}"
	done
	{
		for it in ${environment[@]+"${environment[@]}"}; do
			printf 'export %q\n' "$it"
		done
		printf 'VM_MODULE=%q VM_LINK=%q VM_LIMIT=%q\n' "$module" "$link" "$limit"
		[ -z "$share" ] || echo 'VM_SHARE=yes'
	} >"$root/vm/environment"
	if [ -n "$shell" ]; then
		echo "VM_SIZE='$(stty size 2>/dev/null | sed 's/\(.*\) \(.*\)/rows \1 columns \2/')'" >>"$root/vm/environment"
	else
		install -m 755 "$1" "$root/vm/main"
		shift
		{
			printf 'VM_ARGUMENTS=('
			[ $# -eq 0 ] || printf ' %q' "$@"
			echo ' )'
		} >>"$root/vm/environment"
	fi
	(cd "$top" && find . -print0 | cpio -0 --quiet -o -H newc -R +0:+0) >"$run/overlay.cpio"
}

# Index the modules of the base together with the one chosen for this run.
put_module() {
	local root=$1 release dir file
	release=$(cat "$base/release")
	dir=usr/lib/modules/$release
	case $module in
	none) file='' ;;
	c) file=$base/rpcrdma-c.ko ;;
	ours) file=$(built_module "$vm_dir/../..") ;;
	*) file=$module ;;
	esac
	mkdir -p "$run/index/lib" "$root/$dir"
	cp -rs "$base/modules/usr/lib/modules" "$run/index/lib/"
	if [ -n "$file" ]; then
		[ -f "$file" ] || fail "there is no module $file" "build it: make"
		mkdir -p "$run/index/lib/modules/$release/updates" "$root/$dir/updates"
		# The guest reads all of it; tools/vm/decode has the one with debugging information.
		# Of the C module this would take the signature.
		if [ "$module" = c ]; then
			cp "$file" "$root/$dir/updates/rpcrdma.ko"
		else
			strip --strip-debug -o "$root/$dir/updates/rpcrdma.ko" "$file"
		fi
		cp "$root/$dir/updates/rpcrdma.ko" "$run/index/lib/modules/$release/updates/"
	fi
	depmod -b "$run/index" "$release"
	cp -L "$run/index/lib/modules/$release"/modules.* "$root/$dir/"
}

# The guest's /lib, /bin and /sbin are links, and no directory of that name can be put there.
put_file() {
	local root=$1 from=$2 to=/${3#/}
	case $to in
	/lib/* | /bin/* | /sbin/*) to=/usr$to ;;
	esac
	[ -e "$from" ] || fail "there is no $from" "see --add"
	mkdir -p "$root$(dirname "$to")"
	cp -rLT "$from" "$root$to"
}
