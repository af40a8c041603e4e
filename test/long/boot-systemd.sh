#!/bin/bash
# boot-systemd.sh FOLDER [ROOT]: starts systemd as process 1 of namespaces of its own (processes, mounts, network,
# cgroups), on a copy in memory of ROOT, else of this machine's root directory, and has it run FOLDER/run.sh, where
# FOLDER is /mnt. What that prints is in FOLDER/out. Whoever calls this is root, within
# `unshare --kill-child --mount --pid --fork --cgroup --ipc --uts --net --propagation private`.
set -eu
folder=$1
root=$folder/memory/root
# The loopback device of a new network is down.
ip link set lo up 2>/dev/null || python3 -c '
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 0x41))'
mkdir "$folder/memory"
mount -t tmpfs tmpfs "$folder/memory"
mkdir "$folder/memory/upper" "$folder/memory/work" "$root"
mount -t overlay overlay -o "lowerdir=${2:-/},upperdir=$folder/memory/upper,workdir=$folder/memory/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys" -o ro
mount -t tmpfs tmpfs "$root/sys/fs/cgroup" && umount "$root/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run" -o mode=755
mount -t tmpfs tmpfs "$root/dev" -o mode=755
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
mount --bind "$folder" "$root/mnt"

# Nothing of this machine's own services starts there.
units=$root/etc/systemd/system
find "$units" -name '*.wants' -prune -exec rm -r {} +
rm -f "$root/etc/machine-id"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
cat >"$units/test.target" <<'UNIT'
[Unit]
Requires=systemd-journald.service test.service
After=systemd-journald.service
UNIT
cat >"$units/test.service" <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash /mnt/run.sh
StandardOutput=append:/mnt/out
StandardError=append:/mnt/out
ExecStopPost=/bin/systemctl --no-block exit
UNIT

mkdir -p "$root/former"
cd "$root"
pivot_root . former
umount -l /former
# systemd does so where it is started by the kernel; credentials are mounted by it.
mount --make-rshared /
for program in /usr/lib/systemd/systemd /lib/systemd/systemd; do
  [ ! -x "$program" ] || exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    "$program" --system --unit=test.target --show-status=0 --log-target=console
done
