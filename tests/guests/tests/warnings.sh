# The kernel is never asked for what makes it warn: here a warning ends the machine, and so the test.
echo 1 >/proc/sys/kernel/panic_on_warn
list='strings:long5000(text=str(arg2))@/targets/strings'
for force in '' --force; do
  # shellcheck disable=SC2086
  ! usdtrec record $force --engine perf-tracefs -o trace -e "$list" -- /targets/strings >out 2>err ||
    fail "perf-tracefs $force records a list that reads memory"
  cat err
  grep -q 'bpf engine' err || fail "$(cat err)"
done
for engine in bpf-multi bpf-perf perf-tracefs perf-pmu; do
  can $engine || continue
  options=
  case $engine in
    bpf-*) options='--strings all --strlen 4096' ;;
    perf-pmu) options=-a ;;
  esac
  # shellcheck disable=SC2086
  usdtrec record $options --engine $engine -o trace -e 'strings:*@/targets/strings' -- /targets/strings >out 2>err ||
    fail "$engine: $(cat err)"
done
