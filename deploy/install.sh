#!/bin/sh
# Puts Gatehouse in place on a host with systemd, and says for each file what it did. It may be run again
# at any time, which is how an upgrade is done. It starts nothing.
#
#   sudo sh deploy/install.sh [EXECUTABLE]      dist/gatehouse unless named
#   DESTDIR=/tmp/package sh deploy/install.sh   into a folder, for a package or a test
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
executable=${1:-$here/../dist/gatehouse}
root=${DESTDIR:-}
root=${root%/}
units=$root/usr/local/lib/systemd/system
share=$root/usr/local/share/gatehouse
changed=no

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# folder MODE PATH
folder() {
  if [ -d "$2" ]; then
    echo "unchanged  ${2#"$root"}/"
  else
    mkdir -p "$2"
    chmod "$1" "$2"
    echo "made       ${2#"$root"}/"
  fi
}

# place MODE FROM TO: by a rename, because the file that is there may be running.
place() {
  if [ -e "$3" ] && cmp -s "$2" "$3"; then
    chmod "$1" "$3"
    echo "unchanged  ${3#"$root"}"
    return
  fi
  what='installed '
  [ ! -e "$3" ] || what='replaced  '
  cp "$2" "$3.new"
  chmod "$1" "$3.new"
  mv -f "$3.new" "$3"
  changed=yes
  echo "$what ${3#"$root"}"
}

# keep MODE FROM TO: what is there is the operator's.
keep() {
  if [ ! -e "$3" ]; then
    place "$1" "$2" "$3"
  elif cmp -s "$2" "$3"; then
    echo "unchanged  ${3#"$root"}"
  else
    echo "kept       ${3#"$root"} (edited; the example is in ${share#"$root"})"
  fi
}

[ -f "$executable" ] || fail "there is no $executable: name the executable of a release, or run npm run build first"
[ -x "$executable" ] || fail "$executable is no executable"
if [ -z "$root" ] && [ "$(id -u)" -ne 0 ]; then
  fail 'only root can install into /: run it with sudo, or set DESTDIR'
fi
# Folders and files of the system are for everybody to read, whatever the caller's mask.
umask 022

mkdir -p "$root/usr/local/bin" "$units"
place 755 "$executable" "$root/usr/local/bin/gatehouse"
for unit in gatehouse.service gatehouse.socket gatehouse-links.socket gatehouse-ops.socket; do
  place 644 "$here/$unit" "$units/$unit"
done
folder 755 "$root/etc/gatehouse"
keep 644 "$here/gatehouse.env" "$root/etc/gatehouse/gatehouse.env"
folder 700 "$root/etc/gatehouse/credentials"
folder 755 "$share"
for example in gatehouse.env nginx.conf nginx-two-instances.conf Caddyfile ops-host-access.conf; do
  place 644 "$here/$example" "$share/$example"
done
for file in gatehouse.rules.yml gatehouse.dashboard.json; do
  place 644 "$here/monitoring/$file" "$share/$file"
done
folder 755 "$share/cluster"
for file in etcd.env haproxy.cfg patroni.yml pgbouncer.ini sequences.sql; do
  place 644 "$here/cluster/$file" "$share/cluster/$file"
done

if [ -n "$root" ]; then
  echo "All is in $root; systemd was not told."
  exit
fi
if [ ! -d /run/systemd/system ]; then
  echo 'systemd does not run here: nothing to reload.'
  exit
fi
if [ "$changed" = yes ]; then
  systemctl daemon-reload
  echo 'reloaded   systemd'
fi
if ! systemctl --quiet is-active gatehouse.service; then
  echo 'Next: edit /etc/gatehouse/gatehouse.env, then: systemctl enable --now gatehouse.service'
elif [ "$changed" = yes ]; then
  echo 'Next: systemctl restart gatehouse.service (connections wait meanwhile, none is refused)'
else
  echo 'Nothing has changed, and the service runs.'
fi
