# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A Kerberos realm for the bed: the KDC and rpc.svcgssd at the server's end, rpc.gssd at the
# client's. Root's RPCs use the machine principal, which the server maps to "nobody". The realm
# replaces the machine's host name, /etc/hosts and keytab: its tests call need_guest.

KERBEROS_REALM=BED.TEST
KERBEROS_SERVER=server.bed.test
KERBEROS_CLIENT=client.bed.test

# Starts the daemons, the first time. Fails if a program is missing.
kerberos_up() {
	local program

	[ -z "$(pidof rpc.svcgssd)" ] || return 0
	for program in kdb5_util kadmin.local krb5kdc rpc.gssd rpc.svcgssd; do
		command -v $program >/dev/null || return
	done
	modprobe rpcsec_gss_krb5 || return
	hostname $KERBEROS_CLIENT
	printf '127.0.0.1 localhost\n%s %s\n192.0.2.2 %s\n' "$SERVER4" $KERBEROS_SERVER \
		$KERBEROS_CLIENT >/etc/hosts
	cat >/etc/krb5.conf <<-END
		[libdefaults]
			default_realm = $KERBEROS_REALM
			dns_lookup_kdc = false
			dns_canonicalize_hostname = false
			rdns = false
		[realms]
			$KERBEROS_REALM = {
				kdc = $SERVER4
			}
	END
	mkdir -p /var/lib/krb5kdc /etc/krb5kdc
	kdb5_util create -s -P "$RANDOM$RANDOM$RANDOM" >/dev/null &&
	kadmin.local -q "addprinc -randkey nfs/$KERBEROS_SERVER" >/dev/null &&
	kadmin.local -q "addprinc -randkey nfs/$KERBEROS_CLIENT" >/dev/null &&
	kadmin.local -q "ktadd -k /etc/krb5.keytab nfs/$KERBEROS_SERVER" >/dev/null &&
	kadmin.local -q "ktadd -k /etc/krb5.keytab nfs/$KERBEROS_CLIENT" >/dev/null &&
	krb5kdc &&
	rpc.svcgssd -n &&
	on_client unshare --mount sh -c \
		'umount -q /run/rpc_pipefs; mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs && rpc.gssd'
}

# The daemons stay, with the names of the machines, until the guest ends.
kerberos_down() { exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=20049 "*:$EXPORT"; }
