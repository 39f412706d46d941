# Every engine and attach method, with known values, in one table: what works with each, what it refuses, saying why, and what it does not
# capture. Wrong values, and failures that are not the expected refusal, fail.
# shellcheck disable=SC2154 # start_target sets target
matrix=/targets/matrix
tracing=/sys/kernel/tracing

# Records the program; `out` has what it printed, `err` what the recorder did. Engine, then options.
record() {
  local engine="$1"
  shift
  [ "$engine" != perf-pmu ] || set -- -a "$@"
  # shellcheck disable=SC2046
  usdtrec record --engine "$engine" -o trace "$@" -- $(pinned "$engine") $matrix 8 >out 2>err
}

# The command that keeps a program on one CPU: events of the uprobe PMU miss hits of threads that change it.
pinned() {
  [ "$1" != perf-pmu ] || echo taskset 1
}

# The events of the trace as the program prints its hits.
printed() {
  usdtrec script -F event,args -i trace >events || fail "$(cat err events)"
  sed 's/^ *//; s/ ([0-9a-f]*)//; s/=0x[0-9a-f]* "/="/g; s/"(0x[0-9a-f]*)/"/' events
}

# Compares the events of some probes with what the program printed: `ok`, `no` if each differing value says that it is not captured,
# else wrong.
judged() {
  grep -E "^sdt_matrix:($1):" out >expected
  printed | grep -E "^sdt_matrix:($1):" >found || true
  if cmp -s expected found; then
    echo ok
  elif [ "$(wc -l <expected)" = "$(wc -l <found)" ] && ! grep -v 'not captured>' found >/dev/null; then
    echo no
  else
    echo "wrong: $(head -n 2 found) not $(head -n 2 expected): $(cat err)"
  fi
}

# Names the result of a recording that failed: `refused` if it says what is expected.
refused() {
  if grep -q "$1" err; then echo refused; else echo "wrong: $(cat err)"; fi
}

all_hits='matrix:*@/targets/matrix'

# The values of all probes with all engines, and the strings of those that read them.
do_values() {
  record "$1" -e "$all_hits" || fail "$(cat err)"
  judged 'registers|frame|floats'
}

do_memory() {
  judged pointed
}

do_strings() {
  case $1 in
    # They have the address.
    perf*) [ "$(printed | grep -c 'matrix:text: arg1=[0-7] arg2=[0-9][0-9]*$')" = 8 ] && echo no || echo "wrong: $(cat events)" ;;
    *) judged text ;;
  esac
}

# The values of one probe.
one_probe() {
  record "$1" --strings=off -e matrix:registers@$matrix "$2" || { refused "$3" && return; }
  judged registers
}

do_filters() {
  record "$1" --strings=off -e matrix:registers@$matrix --filter 'arg1 > 0 && arg3 != 206' || fail "$(cat err)"
  grep 'registers: arg1=[123] ' out | grep -v arg3=206 >kept
  printed >found
  if cmp -s kept found; then echo ok; else echo "wrong: $(cat found err)"; fi
}

do_lists() {
  local list='text=str(arg2), next=arg1+1, low=(u8)arg1'
  case $1 in
    bpf-*) ;;
    perf-*)
      ! record "$1" -e "matrix:text($list)@$matrix" || fail "$1 records a list that computes"
      grep -q 'needs the bpf engine' err || fail "$(cat err)"
      # One that only names, chooses and orders.
      record "$1" -e "matrix:registers(last=arg3, first=arg1)@$matrix" || fail "$(cat err)"
      sed -n 's/^sdt_matrix:registers: arg1=\([^ ]*\) arg2=[^ ]* arg3=\([^ ]*\).*$/sdt_matrix:registers: last=\2 first=\1/p' out >expected
      printed >found
      if [ -s expected ] && cmp -s expected found; then echo ok; else echo "wrong: $(cat found err)"; fi
      return
      ;;
  esac
  record "$1" -e "matrix:text($list)@$matrix" || fail "$(cat err)"
  sed -n 's/^sdt_matrix:text: arg1=\([0-9]*\) arg2=\(.*\)$/\1 \2/p' out |
    while read -r number text; do echo "sdt_matrix:text: text=$text next=$((number + 1)) low=$number"; done >expected
  printed >found
  if cmp -s expected found; then echo ok; else echo "wrong: $(cat found err)"; fi
}

do_losses() {
  local lost
  start_target
  [ "$1" != perf-pmu ] || taskset -p 1 "$target" >/dev/null
  rm -f err
  usdtrec record -a --engine "$1" -m 1 --strings=off -o trace -e sdt_ticker:tick@/targets/ticker 2>err &
  recorder=$!
  await err '^\[ usdtrec record'
  kill -STOP $recorder
  tell 'fire 1500'
  kill -CONT $recorder
  kill -INT $recorder
  wait $recorder || fail "$(cat err)"
  kill "$target"
  lost=$(closing err lost)
  if [ $(($(closing err events) + lost)) = 1500 ] && [ "$lost" -gt 0 ]; then echo ok; else echo "wrong: $(cat err)"; fi
}

do_children() {
  local found
  start_target
  rm -f err
  usdtrec record -p "$target" --engine "$1" --strings=off -o trace -e sdt_ticker:tick@/targets/ticker 2>err &
  recorder=$!
  until_true 'it neither began nor ended' sh -c "grep -qs 'usdtrec record:' err || ! kill -0 $recorder 2>/dev/null"
  if ! grep -q 'usdtrec record:' err; then
    wait $recorder || true
    kill "$target"
    refused 'cannot follow threads and children'
    return
  fi
  tell 'fire 3'
  tell 'fork 5'
  tell 'exec 5'
  tell 'thread 2'
  kill -INT $recorder
  wait $recorder || fail "$(cat err)"
  kill "$target"
  found=$(closing err events)
  if [ "$found" = 15 ]; then
    echo ok
  elif [ "$found" -lt 15 ] && grep -q 'not exact: .* miss hits of children' err; then
    echo "$found/15"
  else
    echo "wrong: $(cat err)"
  fi
}

do_kill() {
  start_target
  rm -f err
  usdtrec record -a --engine "$1" --strings=off -o trace -e 'sdt_ticker:*@/targets/ticker' 2>err &
  recorder=$!
  await err '^\[ usdtrec record'
  tell 'fire 3'
  kill -9 $recorder
  wait $recorder || true
  until_true "$1: breakpoints, semaphores or events are left" is_back
  tell 'fire 3'
  tell 'fork 3'
  kill "$target"
  echo ok
}

is_back() {
  is_untouched >/dev/null 2>&1 && is_left_alone
}

do_no_btf() {
  local result
  if [ -d /sys/kernel/btf ]; then
    mount -t tmpfs none /sys/kernel/btf
    result=$(one_probe "$1" -v BTF)
    [ "$result" != refused ] || { result=$(one_probe "$1" -a BTF) && [ "$result" = ok ] && result=-a; }
    umount /sys/kernel/btf
    echo "$result"
  else
    echo ok
  fi
}

do_no_tracefs() {
  local result
  # Recorders mount it for themselves.
  umount $tracing || fail "tracefs is in use"
  result=$(one_probe "$1" -v 'no reason')
  mount -t tracefs tracefs $tracing
  echo "$result"
}

# As a user with capabilities at a perf_event_paranoid: engine, level, capabilities.
as_user() {
  local result level
  level=$(cat /proc/sys/kernel/perf_event_paranoid)
  echo "$2" >/proc/sys/kernel/perf_event_paranoid
  mkdir user
  chmod 777 user
  # shellcheck disable=SC2046
  if /targets/ambient 1000 "$3" usdtrec record -a --engine "$1" --strings=off --buildid-dir user/cache -o user/trace \
    -e matrix:registers@$matrix -- $(pinned "$1") $matrix 8 >out 2>err; then
    cp user/trace trace
    result=$(judged registers)
  else
    result=$(refused 'CAP_SYS_ADMIN')
  fi
  echo "$level" >/proc/sys/kernel/perf_event_paranoid
  echo "$result"
}

# CAP_PERFMON, CAP_BPF and CAP_IPC_LOCK, which setcap can give.
do_paranoid_2() { as_user "$1" 2 38,39,14; }
do_paranoid_3() { as_user "$1" 3 38,39,14; }
# CAP_SYS_ADMIN, and CAP_DAC_OVERRIDE for tracefs. Before Linux 5.11 maps are locked memory, for which programs need CAP_SYS_RESOURCE (24).
do_sys_admin() {
  if [ "$1" = bpf-perf ] && ! newer 5 11; then
    as_user "$1" 3 21,14,1 >/dev/null
    grep -q CAP_SYS_RESOURCE err || fail "not said: $(cat err)"
    rm -r user
    as_user "$1" 3 21,24,1
  else
    as_user "$1" 3 21,14,1
  fi
}

failed=0
chmod 755 . /tmp
# What is chosen without --engine is the best, or why not is said.
record auto -e matrix:registers@$matrix || fail "$(cat err)"
if newer 6 6; then
  grep -q 'engine bpf (uprobe_multi);' err || fail "$(cat err)"
else
  grep -q 'engine bpf (uprobe PMU; uprobe_multi not used: uprobe_multi links need Linux 6.6);' err || fail "$(cat err)"
fi
for engine in bpf-multi bpf-perf perf-tracefs perf-pmu; do
  ! is_left $engine || continue
  if ! can $engine; then
    # It says so.
    result=$(one_probe $engine -v 'uprobe_multi links need Linux 6.6') || result="wrong: $result"
    cell $engine values "$result"
    [ "$result" = refused ] || failed=1
    continue
  fi
  for what in values memory strings filters lists losses children kill no_btf no_tracefs paranoid_2 paranoid_3 sys_admin; do
    begin=$(cut -d . -f 1 /proc/uptime)
    case $what in
      # They look at the trace of `values`.
      memory | strings) ;;
      *) mkdir "$engine.$what" && ln -sfn "$engine.$what" cell ;;
    esac
    result=$(cd cell && do_$what $engine) || result="wrong: $result"
    echo "$engine $what $(($(cut -d . -f 1 /proc/uptime) - begin)) s: $result"
    cell $engine $what "$result"
    case $result in
      # No engine is worse than it is known to be.
      wrong*) failed=1 ;;
      -a) [ $what = no_btf ] || failed=1 ;;
      no) [ "${engine#bpf}" = "$engine" ] || failed=1 ;;
      refused)
        case $engine.$what in
          perf-pmu.children | perf-*.paranoid_* | bpf-perf.paranoid_* | bpf-multi.paranoid_3) ;;
          *) failed=1 ;;
        esac
        ;;
    esac
  done
done
[ $failed = 0 ] || fail 'see above'
