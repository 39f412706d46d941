# Semaphores of programs linked by lld, which the kernel counts wrong: the recorder increments them. All hits are there, in a process that runs, in a command and in
# processes that start later, and nothing is left in any of them.

# The number of hits that programs say that they made, by their output.
enabled() { sed -n 's/^enabled \([0-9]*\) of.*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }'; }

# Asks the ticker for guarded hits: how many there must be of how many.
guarded() {
  : >said
  tell "guarded $2"
  local hits
  hits=$(grep -c '^fire guarded' said) || true
  [ "$hits" = "$1" ] || fail "$hits hits of $2 instead of $1: $(cat err)"
}

# Ends the recorder, which must have recorded so many events. A background job of this shell ignores SIGINT.
end() {
  kill -TERM "$recorder"
  wait "$recorder" || true
  cat err
  [ "$(closing err events)" = "$1" ] || fail "$1 hits"
}

start_target /targets/ticker-lld
for engine in $(engines); do
  pinned=
  if [ "$engine" = perf-pmu ]; then
    # Its events miss a hit, or count it twice, when the thread changes the CPU, which is said.
    pinned='taskset 1'
    # shellcheck disable=SC2154 # start_target sets it
    taskset -p 1 "$target" >/dev/null
  fi
  for whose in -a "-p $target"; do
    [ "$engine $whose" != "perf-pmu -p $target" ] || continue
    echo "$engine $whose"
    rm -f err
    # shellcheck disable=SC2086
    usdtrec record $whose --engine $engine -o trace -e 'sdt_ticker:guarded@/targets/ticker-lld' 2>err &
    recorder=$!
    await err '^\[ usdtrec record'
    guarded 20 20
    end 20
    until_true "$engine $whose: a semaphore or a breakpoint is left" is_untouched
    guarded 0 5
  done
  whose=
  [ "$engine" != perf-pmu ] || whose=-a
  # The recorder is pinned, too: the program is its command, which lacks no hits.
  # shellcheck disable=SC2086
  $pinned usdtrec record $whose --engine $engine -o trace -e 'counted:step@/targets/counted-lld' -- /targets/counted-lld 100 0 >printed 2>err ||
    fail "$engine: $(cat err)"
  cat err
  [ "$(enabled printed)" = 100 ] || fail "$engine: $(cat printed)"
  [ "$(closing err events)" = 100 ] || fail "$engine: not 100 events"
done
# Processes that start while recording: what they hit before their semaphores are set is missing, and said.
for more in '' 'fork' 'exec 3'; do
  rm -f err
  usdtrec record -a -o trace -e 'counted:step@/targets/counted-lld' 2>err &
  recorder=$!
  await err '^\[ usdtrec record'
  for _ in 1 2 3; do
    # shellcheck disable=SC2086
    /targets/counted-lld 40 50000 $more
  done >printed
  hits=$(enabled printed)
  cat printed
  [ "$hits" -gt 0 ] || fail 'no semaphore was set'
  end "$hits"
done
/targets/counted-lld 10 0 >printed
[ "$(enabled printed)" = 0 ] || fail 'a semaphore is set after the recordings'
kill "$target"
usdtrec doctor >printed 2>&1 || fail "$(cat printed)"
! dmesg | grep -E 'ref_ctr going negative|leaking uprobe' || fail 'the kernel complains'
until_true 'processes or events of recorders are left' is_left_alone
