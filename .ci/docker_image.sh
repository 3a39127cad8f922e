#!/usr/bin/env bash
# A Docker daemon of its own, and an image to run commands in, for the tests of the container back-end: nothing is
# fetched from a registry. Needs root, and Debian's docker.io and busybox-static, which it installs where they are missing.
#
#   .ci/docker_image.sh start DIR   starts the daemon with everything in DIR, imports the image, prints two lines for `eval`
#   .ci/docker_image.sh stop DIR    ends that daemon and removes DIR
set -euo pipefail

image=journeyman-test:1
say() { printf '── %s\n' "$*" >&2; }

missing() { [ -x /usr/sbin/dockerd ] && [ -x /bin/busybox ] && [ -x /usr/bin/docker ] || return 0; return 1; }

# Debian's own client: another one first in PATH may speak a newer protocol than the daemon does.
docker() { /usr/bin/docker --host "unix://$dir/docker.sock" "$@"; }

daemon() {
  # The daemon that is there already is used again.
  docker version >/dev/null 2>&1 && return
  local driver
  for driver in overlay2 vfs; do
    # No packet filter: containers have no network here but a bridge that leads nowhere.
    setsid nohup dockerd --host "unix://$dir/docker.sock" --data-root "$dir/data" --exec-root "$dir/exec" \
      --pidfile "$dir/pid" --iptables=false --ip-forward=false --storage-driver "$driver" \
      >"$dir/log" 2>&1 </dev/null 9>&- &
    local pid=$!
    for _ in $(seq 1 150); do
      docker version >/dev/null 2>&1 && { say "Docker runs in $dir with $driver"; return; }
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.2
    done
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  tail -n 20 "$dir/log" >&2
  say "the Docker daemon doesn't start"
  exit 1
}

# BusyBox, and the C library of this machine so that programs which were built on it run inside, too.
import() {
  docker image inspect "$image" >/dev/null 2>&1 && return
  local root="$dir/root" file
  rm -rf "$root"
  mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,etc,tmp,var/tmp,root,proc,sys,dev,run,lib,lib64,home}
  cp /bin/busybox "$root/bin/busybox"
  for name in $("$root/bin/busybox" --list); do
    [ "$name" = busybox ] || ln -sf /bin/busybox "$root/bin/$name"
  done
  ln -sf /bin/busybox "$root/usr/bin/env"
  # As the loader names them on this machine.
  for file in $(ldconfig -p | sed -n 's/.* => \(.*\/\(libc\|libm\|libgcc_s\|libstdc++\|libpthread\|libdl\|librt\|ld-linux[^/]*\)\.so\.[0-9]*\)$/\1/p'); do
    mkdir -p "$root$(dirname "$file")"
    [ -e "$root$file" ] || cp -L "$file" "$root$file"
  done
  for file in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
    [ ! -e "$file" ] || { mkdir -p "$root$(dirname "$file")"; cp -L "$file" "$root$file"; }
  done
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  printf 'outside the project\n' >"$root/etc/kept"
  chmod 1777 "$root/tmp" "$root/var/tmp"
  tar -C "$root" --numeric-owner --owner=0 --group=0 -c . \
    | docker import --change 'ENV FROM_IMAGE=yes' --change 'ENV PATH=/usr/bin:/bin:/opt/image' - "$image" >/dev/null
  rm -rf "$root"
  say "imported $image"
}

command="${1:-}"
dir="${2:-}"
[ -n "$dir" ] || { sed -n '2,7p' "$0" >&2; exit 2; }
case "$command" in
  start)
    if missing; then
      say "installing docker.io and busybox-static"
      apt-get -o DPkg::Lock::Timeout=300 update -qq >&2
      # Its own service isn't wanted; the policy says so to the package's scripts.
      DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
        --no-install-recommends docker.io busybox-static >&2
    fi
    mkdir -p "$dir"
    dir="$(cd "$dir" && pwd)"
    daemon
    import
    echo "export JM_TEST_DOCKER_SOCKET=$dir/docker.sock"
    echo "export JM_TEST_IMAGE=$image"
    ;;
  stop)
    if [ -s "$dir/pid" ]; then
      pid="$(cat "$dir/pid")"
      kill "$pid" 2>/dev/null || true
      for _ in $(seq 1 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    fi
    rm -rf "$dir"
    ;;
  *) sed -n '2,7p' "$0" >&2; exit 2 ;;
esac
