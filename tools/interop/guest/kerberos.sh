# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A Kerberos realm for one run. The KDC is in the server's guest, and each guest has a machine
# principal. Root's RPCs use the machine principal, which the server maps to "nobody".

REALM=INTEROP.TEST
SERVER_NAME=server.interop.test
CLIENT_NAME=client.interop.test

# kerberos_names NAME: sets this machine's name to NAME, and configures the names of both
# machines and the address of the KDC.
kerberos_names() {
	hostname "$1"
	printf '127.0.0.1 localhost\n%s %s\n%s %s\n' "$SERVER4" $SERVER_NAME \
		192.168.20.2 $CLIENT_NAME >/etc/hosts
	cat >/etc/krb5.conf <<-END
		[libdefaults]
			default_realm = $REALM
			dns_lookup_kdc = false
			dns_canonicalize_hostname = false
			rdns = false
		[realms]
			$REALM = {
				kdc = $SERVER4
			}
	END
	modprobe rpcsec_gss_krb5
}

# kerberos_server: to be called when the server is up. Makes the realm, and leaves the client's
# keys in /share for kerberos_client.
kerberos_server() {
	kerberos_names $SERVER_NAME
	mkdir -p /var/lib/krb5kdc /etc/krb5kdc
	kdb5_util create -s -P "$RANDOM$RANDOM$RANDOM" >/dev/null
	kadmin.local -q "addprinc -randkey nfs/$SERVER_NAME" >/dev/null
	kadmin.local -q "addprinc -randkey nfs/$CLIENT_NAME" >/dev/null
	kadmin.local -q "ktadd -k /etc/krb5.keytab nfs/$SERVER_NAME" >/dev/null
	kadmin.local -q "ktadd -k /share/keytab nfs/$CLIENT_NAME" >/dev/null
	krb5kdc
	rpc.svcgssd
	exportfs -o rw,no_root_squash,no_subtree_check,insecure,fsid=1,sec=sys:krb5:krb5i:krb5p \
		'*:/export'
}

kerberos_client() {
	kerberos_names $CLIENT_NAME
	cp /share/keytab /etc/krb5.keytab
	mkdir -p /run/rpc_pipefs
	mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
	rpc.gssd
}
