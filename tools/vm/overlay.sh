# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Makes the initramfs of one run: its first process, and the files that this process copies
# to the guest's disk: the module under test, the module index, init, and the script.
# Sourced by tools/vm/run.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../env/cache.sh
. "$vm_dir/../env/cache.sh"

# make_overlay SCRIPT ARGUMENT...: makes $run/overlay.cpio from the options of the run.
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
		echo "VM_OUTPUT=$(if foreign; then echo ttyS0; else echo ttyS1; fi)"
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

# put_module ROOT: puts the module chosen for this run into ROOT, with an index (depmod) of
# that module and those on the boot disk.
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
		[ -f "$file" ] || fail "the module $file does not exist" "build it: make"
		mkdir -p "$run/index/lib/modules/$release/updates" "$root/$dir/updates"
		# The guest reads the whole file at boot, so strip it; tools/vm/decode uses the
		# unstripped one. Stripping the C module would remove its signature.
		if [ "$module" = c ]; then
			cp "$file" "$root/$dir/updates/rpcrdma.ko"
		else
			strip_module "$file" "$root/$dir/updates"
		fi
		cp "$root/$dir/updates/rpcrdma.ko" "$run/index/lib/modules/$release/updates/"
	fi
	depmod -b "$run/index" "$release"
	cp -L "$run/index/lib/modules/$release"/modules.* "$root/$dir/"
}

# strip_module FILE DIRECTORY: puts FILE into DIRECTORY without debugging information.
strip_module() {
	if foreign; then
		cp "$1" "$2/rpcrdma.ko"
		"$env_dir/enter" --src "$2" llvm-strip --strip-debug rpcrdma.ko
	else
		strip --strip-debug -o "$2/rpcrdma.ko" "$1"
	fi
}

# put_file ROOT FROM TO: copies FROM to TO in ROOT. The guest's /lib, /bin and /sbin are
# links into /usr, which a directory of that name would replace.
put_file() {
	local root=$1 from=$2 to=/${3#/}
	case $to in
	/lib/* | /bin/* | /sbin/*) to=/usr$to ;;
	esac
	[ -e "$from" ] || fail "--add: $from does not exist" "name an existing file or directory"
	mkdir -p "$root$(dirname "$to")"
	cp -rLT "$from" "$root$to"
}
