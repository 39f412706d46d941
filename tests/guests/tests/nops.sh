# Recorders killed while they plant at 5-byte nops, record and remove, alone and with all their helpers: the kernel lives, and nothing is left.
# Kernels that make calls of such nops are not to be given any, and plant at 1-byte nops before them.

/targets/nops 1000000000 >/dev/null &
target=$!

goes_on() {
  local before
  before=$(sed 's/^.*) //' "/proc/$target/stat" | cut -d ' ' -f 12)
  usleep 200000
  [ "$(sed 's/^.*) //' "/proc/$target/stat" | cut -d ' ' -f 12)" -gt "$before" ]
}

# Kills the recorder, or all processes that run our program.
kill_it() {
  case $1 in
    recorder) kill -9 $recorder ;;
    all)
      # shellcheck disable=SC2046
      kill -9 $(pidof usdtrec exe) 2>/dev/null || true
      ;;
  esac
}

round=0
for engine in bpf-multi perf-tracefs; do
  can $engine || engine=bpf-perf
  for whom in recorder all; do
    for moment in planting recording ending; do
      round=$((round + 1))
      # In a short run each engine at each moment once, and both kinds of kills at each moment.
      is_deep || [ $(((round + (round - 1) / 6) % 2)) = 1 ] || continue
      rm -f err
      usdtrec record -a --engine $engine -o trace -e 'nops:*@/targets/nops' >out 2>err &
      recorder=$!
      case $moment in
        planting) usleep $((round * 150000)) ;;
        recording) await err '^\[ usdtrec record' ;;
        ending)
          await err '^\[ usdtrec record'
          kill -INT $recorder
          usleep $((round * 10000))
          ;;
      esac
      kill_it $whom
      wait $recorder || true
      case $moment.$whom in
        # What the kernel cannot take back then goes with the next recording.
        planting.all) usdtrec record -a --engine $engine -o trace -e 'nops:*@/targets/nops' --duration 100ms 2>err || true ;;
      esac
      until_true "$engine $whom $moment: breakpoints are left" is_whole $target /targets/nops
      until_true "$engine $whom $moment: the program stands still" goes_on
    done
  done
  echo "$engine: as expected: $(cat err)"
done
usdtrec doctor --heal || true
until_true 'processes or events of recorders are left' is_left_alone
kill $target
# In the end it is as it was: children of the program that has these sites live.
/targets/children 4 >out
grep -qx 'died 0' out || fail "$(cat out)"
/targets/nops 1000 >out
grep -qx 'wrong 0' out || fail "$(tail -n 1 out)"
