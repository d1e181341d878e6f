# SPDX-License-Identifier: Apache-2.0
# Run by the guest of `run --cpus N` (nodes.py): node.sh BUILD RATE INTERVAL PLUG.
#
# An agent on a node of many CPUs. Waits for conditions; the step's deadline ends what never comes.
# Memory is what the agent's cgroup is charged, the kernel's for it included, as a kubelet sees it.
build=$1 rate=$2 interval=$3 plug=$4
cgroup=/sys/fs/cgroup/agent
port=9119
cat >node.alloy <<END
discovery.process "all" { }
pyroscope.ebpf "all" {
  targets          = discovery.process.all.targets
  targets_only     = false
  default_target   = {"service_name" = "node"}
  forward_to       = [profile.file.out.receiver]
  sample_rate      = $rate
  collect_interval = "$interval"
  pid_label        = true
  comm             = "label"
}
profile.file "out" { paths = ["/run/stacks/a.folded"] }
status.http { listen_port = $port }
END

metric() {
	wget -qO- "http://127.0.0.1:$port/metrics" 2>/dev/null |
		awk -v m="$1" '{ split($1, name, "{") } name[1] == m { sum += $NF; n++ }
			END { if (n) printf "%d\n", sum }'
}

# until_is VALUE METRIC
until_is() {
	n=0
	while [ "$(metric "$2")" != "$1" ]; do
		n=$((n + 1))
		if [ $n = 200 ] || ! kill -0 "$agent"; then
			echo "$2 is $(metric "$2"), not $1"
			cat log
			exit 1
		fi
		usleep 300000
	done
}

# loop NAME CPU: a loop that stays there.
loop() {
	ln -s "$build/tests/kernels/chain" "/run/$1"
	taskset -c "$2" "/run/$1" 6 &
	loops="$loops $!"
}

report() {
	echo "$1 current $(cat $cgroup/memory.current)"
	echo "$1 maps $(metric andiron_ebpf_map_bytes)"
	awk -v at="$1" '$1 ~ /^(anon|file|kernel|slab|percpu|vmalloc|shmem)$/ { print at, $1, $2 }' $cgroup/memory.stat
	awk -v at="$1" '/^(Rss|Pss|Pss_Anon|Pss_File|Pss_Shmem):/ { sub(":", "", $1); print at, $1, $2 * 1024 }' \
		"/proc/$agent/smaps_rollup"
}

ip link set lo up
echo +memory >/sys/fs/cgroup/cgroup.subtree_control || exit 1
mkdir -p /run/stacks $cgroup
echo "possible $(cat /sys/devices/system/cpu/possible)"
online=$(nproc)
echo "online $online"
# The agent as it ships, its files in the page cache of nobody.
(
	echo 0 >$cgroup/cgroup.procs
	exec "$build/host-abi/cli/andiron" run node.alloy --ledger /keep/ledger
) 2>log &
agent=$!
from=$(cut -d' ' -f1 /proc/uptime)
until_is "$online" andiron_ebpf_cpus
echo "live $from $(cut -d' ' -f1 /proc/uptime)"
report idle

# A loop on the first CPU, on the last, and on some between.
cpu=0
while [ $cpu -lt "$online" ]; do
	loop "early$cpu" $cpu
	cpu=$((cpu + (online < 16 ? 1 : online / 16)))
done
[ -e "/run/early$((online - 1))" ] || loop "early$((online - 1))" $((online - 1))
wait $loops
report loaded

# CPUs that were not there before: QEMU plugs them in (hotplug.py). The last one works.
if [ "$plug" -gt 0 ]; then
	echo "plug $plug" >"/dev/$RESULTS"
	n=0
	while [ "$(ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l)" != $((online + plug)) ]; do
		n=$((n + 1))
		[ $n -lt 300 ] || exit 1
		usleep 300000
	done
	for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
		[ "$(cat "$cpu/online" 2>/dev/null || echo 1)" = 1 ] || echo 1 >"$cpu/online"
		last=${cpu##*cpu}
		[ "$last" -lt "${most:-0}" ] || most=$last
	done
	until_is $((online + plug)) andiron_ebpf_cpus
	echo "with $(cat /sys/devices/system/cpu/online)"
	loops=
	loop "plugged$most" "$most"
	wait $loops
	report plugged
fi

# CPUs go and come; one of them works then.
loops=
for cpu in 3 $((online / 2)); do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done
until_is $((online + plug - 2)) andiron_ebpf_cpus
echo "without $(cat /sys/devices/system/cpu/online)"
loop away $((online - 1))
wait $loops
loops=
for cpu in 3 $((online / 2)); do echo 1 >/sys/devices/system/cpu/cpu$cpu/online; done
until_is $((online + plug)) andiron_ebpf_cpus
loop late3 3
loop "late$((online / 2))" $((online / 2))
wait $loops
report back
echo "mismatches $(metric andiron_ebpf_count_mismatches_total)"
kill "$agent"
wait "$agent"
echo "ended $?"
grep -E "level=(error|warn)|ERROR|WARN" log
cat /run/stacks/* >/keep/stacks.folded
