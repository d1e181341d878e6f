# SPDX-License-Identifier: Apache-2.0
# Run by the guest, in the last step of plan.py: containers-v1.sh BUILD.
#
# A node whose cgroups are of version 1 only: one hierarchy, the first that this kernel has.
build=$1
[ "${CGROUPS:-2}" = 1 ] || umount /sys/fs/cgroup || exit 1
mount -t tmpfs none /sys/fs/cgroup || exit 1
for controller in memory pids; do
	mkdir /sys/fs/cgroup/$controller
	mount -t cgroup -o $controller none /sys/fs/cgroup/$controller && break
	rmdir /sys/fs/cgroup/$controller
done
cat /proc/self/cgroup
grep cgroup /proc/mounts

# A container of a pod, where a kubelet puts it, and a program beside it.
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
group=/sys/fs/cgroup/$controller/kubepods/burstable/pod5f1c9b0e-7d1a-4b0e-9b1c-0123456789ab/$id
mkdir -p $group
for name in inside outside; do ln -s "$build/tests/kernels/chain" /run/$name; done
(
	echo 0 >$group/cgroup.procs
	exec /run/inside 600
) &
inside=$!
/run/outside 600 &
outside=$!

cat >v1.alloy <<END
discovery.process "all" { }
discovery.relabel "pods" {
  targets = discovery.process.all.targets
  rule {
    source_labels = ["__container_id__"]
    regex         = "$id"
    action        = "keep"
  }
  rule {
    target_label = "service_name"
    replacement  = "of-the-pod"
  }
}
pyroscope.ebpf "pods" {
  targets          = discovery.relabel.pods.output
  forward_to       = [profile.file.out.receiver]
  sample_rate      = 97
  collect_interval = "2s"
  comm             = "label"
}
profile.file "out" {
  paths    = ["/run/v1.folded"]
  group_by = ["service_name", "comm"]
}
status.http { listen_port = 9119 }
END
ip link set lo up
"$build/host-abi/cli/andiron" targets v1.alloy discovery.relabel.pods || exit 1
"$build/host-abi/cli/andiron" run v1.alloy 2>log &
agent=$!
sent() {
	wget -qO- http://127.0.0.1:9119/metrics 2>/dev/null |
		awk '$1 ~ /^andiron_ebpf_samples_total.*"sent"/ { n += $NF } END { print n + 0 }'
}
until [ "$(sent)" -ge 50 ]; do
	kill -0 $agent || { cat log; exit 1; }
	usleep 300000
done
kill $agent
wait $agent
echo "agent ended $?"
kill $inside $outside
wait $inside $outside
cat log
awk '{ n += $NF } END { print "samples: " n + 0 }' /run/v1.folded
awk '/^of-the-pod;inside;/ { n += $NF } END { print "samples of inside: " n + 0 }' /run/v1.folded
exec "$build/tests/bpf/test-sampling" containers_are_told_apart
