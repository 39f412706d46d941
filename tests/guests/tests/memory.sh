# A memory cgroup without room for the usual rings: the recorder takes smaller ones, says so, and records.
mkdir -p group
mount -t cgroup2 none group || skip 'this kernel has no cgroups of version 2'
grep -q memory group/cgroup.controllers || skip 'this kernel has no memory cgroups'
echo +memory >group/cgroup.subtree_control
mkdir group/small
# The program itself takes about half of it.
echo 48M >group/small/memory.max
record() {
  echo go | sh -c 'echo $$ >group/small/cgroup.procs; exec "$@"' sh \
    usdtrec record -a "$@" -o trace -e sdt_hot:req@/targets/hot -- /targets/hot 1000 1 >out 2>err || fail "$*: $(cat err)"
  [ "$(closing err events) $(closing err lost)" = '1000 0' ] || fail "$*: $(cat err)"
}
record --engine bpf-perf -m 64M
# Before Linux 5.11 maps count as locked memory, not as the group's.
! newer 5 11 || grep -q 'instead of 64MiB for each CPU' err || fail "rings of 64 MB: $(cat err)"
record --engine bpf-perf -m 1M
! grep -q 'instead of' err || fail "rings of 1 MB: $(cat err)"
umount group
