# A thread that changes the CPU all the time: the default engines count each of its hits once; the one that does not says so.
hits=30000
for engine in bpf-multi bpf-perf perf perf-pmu; do
  can $engine || continue
  usdtrec record -a -m 4M --engine $engine -o trace -e 'migrating:hit@/targets/migrating' -- /targets/migrating $hits >out 2>err ||
    fail "$engine: $(cat err)"
  cat err
  all=$(($(closing err events) + $(closing err lost)))
  echo "$engine: $all of $hits"
  if [ $engine = perf-pmu ]; then
    grep -q 'not exact' err || fail "$engine does not say that it is not exact: $(cat err)"
  else
    ! grep -q 'not exact' err || fail "$engine should be exact: $(cat err)"
    [ $all = $hits ] || fail "$engine: $all of $hits"
  fi
done
