# The kernel is never asked for what makes it warn: here a warning ends the machine, and so the test.
echo 1 >/proc/sys/kernel/panic_on_warn
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
