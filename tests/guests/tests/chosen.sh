# Processes that are chosen by control group and by executable: hits of others are not recorded, and those of a group that is made while recording are from the
# first on. Kernels that are not capable of it refuse.
groups=/sys/fs/cgroup
library=/targets/liblate.so

# Loads the library in a loader and hits it: loader, hits.
load_and_hit() {
  printf 'load %s\nhit %d\n' $library "$2" | "$1" >printed
  [ "$(tail -n 1 printed)" = "$2" ] || fail "$(cat printed)"
}

# Ends the recorder, which must have recorded so many events.
end() {
  kill -TERM "$recorder"
  wait "$recorder" || fail "$what: $(cat err)"
  [ "$(closing err events) $(closing err lost)" = "$1 0" ] || fail "$what: not $1 events: $(cat err)"
}

# Starts a recorder with options; it must be refused if the kernel is older: major, minor.
begin() {
  local major="$1" minor="$2"
  shift 2
  what="$engine $1"
  rm -f err
  if ! newer "$major" "$minor"; then
    ! usdtrec record --engine $engine -o trace --duration 1s "$@" 2>err || fail "$what is not refused: $(cat err)"
    return 1
  fi
  usdtrec record --engine $engine -o trace "$@" 2>err &
  recorder=$!
  await err '^\[ usdtrec record'
}

mount -t cgroup2 none $groups || skip 'this kernel has no control groups of version 2'
mkdir $groups/shop
cp /targets/late stranger
for engine in bpf-multi bpf-perf; do
  can $engine || continue
  rm -f in out
  start_target
  if begin 5 15 --cgroup shop -e 'sdt_ticker:tick@/targets/ticker'; then
    tell 'fire 4'
    # shellcheck disable=SC2154 # start_target sets it
    echo "$target" >$groups/shop/cgroup.procs
    tell 'fire 3'
    mkdir -p $groups/later/shop/below
    echo 'fire 6' | sh -c "echo \$\$ >$groups/later/shop/below/cgroup.procs; exec /targets/ticker" >printed
    echo "$target" >$groups/cgroup.procs
    tell 'fire 2'
    end 9
    rmdir $groups/later/shop/below $groups/later/shop
  fi
  kill "$target"
  if begin 5 11 --exe /targets/late -e "late:hit@$library"; then
    load_and_hit ./stranger 4
    load_and_hit /targets/late 5
    end 5
  fi
done
until_true 'processes or events of recorders are left' is_left_alone
rmdir $groups/shop
[ ! -e $groups/later ] || rmdir $groups/later
umount $groups
