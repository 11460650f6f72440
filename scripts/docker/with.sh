#!/usr/bin/env bash
# Runs a command with a Docker daemon of its own, which ends with it:
#
#   with.sh DIR COMMAND...
#
# The daemon keeps its images under DIR/root and needs no iptables. COMMAND finds it by DOCKER_HOST. Where this system
# can make bridges, KVASIR_DOCKER_BRIDGE=1 says that ports can be published; else containers have the host's network or
# none. Needs root and dockerd (install.sh). DOCKERD_FLAGS may hold more of its flags, such as --storage-driver=vfs
# where overlays cannot be stacked and the daemon does not find that out itself.
set -euo pipefail
dir=${1:?usage: with.sh DIR COMMAND...}
shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd -P)
exec 9> "$dir/lock"
# One daemon on these files at a time.
flock --nonblock 9 || { echo "docker: waiting for the run that has $dir" >&2; flock 9; }

# A bridge of its own, that ends with it.
bridge=kvasir$$
if ip link add "$bridge" type bridge 2>/dev/null && ip address add "10.213.$(($$ % 256)).1/24" dev "$bridge" && ip link set "$bridge" up; then
  export KVASIR_DOCKER_BRIDGE=1
else
  bridge=none
fi

run=$(mktemp -d) # a socket's path may have 107 bytes
# It ends as well where this script is killed and can end nothing.
# shellcheck disable=SC2086  # several flags
setpriv --pdeathsig TERM dockerd --host "unix://$run/docker.sock" --data-root "$dir/root" --exec-root "$run/exec" --pidfile "$run/pid" \
  --bridge="$bridge" --iptables=false --ip6tables=false --ip-forward=false ${DOCKERD_FLAGS:-} > "$dir/dockerd.log" 2>&1 9>&- &
daemon=$!
command=
finish() {
  [ -z "$command" ] || kill -- "-$command" 2>/dev/null || true
  kill "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
  umount "$dir/root" "$run"/exec/netns/* 2>/dev/null || true # what the daemon leaves mounted
  [ "$bridge" = none ] || ip link delete "$bridge" 2>/dev/null || true
  rm -rf "$run"
}
trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
export DOCKER_HOST="unix://$run/docker.sock"

for _ in $(seq 300); do
  docker version > /dev/null 2>&1 && break
  if ! kill -0 "$daemon" 2>/dev/null; then
    echo "docker: dockerd ended (see $dir/dockerd.log):" >&2
    grep -v 'level=info' "$dir/dockerd.log" | tail -n 5 >&2
    exit 1
  fi
  sleep 0.1
done
# What a run has left that was interrupted. Here, because this daemon is surely ours.
docker container prune --force > /dev/null
docker volume prune --force > /dev/null
# In the background, so that a signal to this script ends both at once; in a process group of its own, so that what
# COMMAND has started ends, too.
set -m
"$@" 9>&- <&0 &
command=$!
set +m
code=0
wait "$command" || code=$?
command=
exit "$code"
