# Files with probes that processes begin to map while recording: a program that is executed, and a library that is loaded. All of their hits after the planting
# are recorded, and those of processes that map them later from the first on. Before that the recorder waits, or fails where it may not or cannot.

# No test before has indexed these files here.
export PERF_BUILDID_DIR="$PWD/cache"

# Gives the loader a command; $hits is the number of its hits then.
ask() {
  echo "$1" >&6
  read -r hits <&7
}

# Whether the code of a process has a breakpoint: process, file.
is_planted() { ! is_whole "$1" "$2" >/dev/null 2>&1; }

for refused in --no-wait '--engine perf'; do
  # shellcheck disable=SC2086
  ! usdtrec record -a $refused -o trace -e late:hit --duration 1s 2>err || fail "$refused waits: $(cat err)"
done
for engine in bpf-multi bpf-perf; do
  can $engine || continue
  rm -f err in out loader.in loader.out
  usdtrec record -a --engine $engine -o trace -e late:hit -e 'sdt_ticker:tick' 2>err &
  recorder=$!
  await err '^\[ usdtrec record'
  start_target
  tell 'fire 0'
  # Of an event, the breakpoint is there before the program.
  await err '/targets/ticker: attached'
  # shellcheck disable=SC2154 # start_target sets target and ticker
  is_planted "$target" "$ticker" || fail "the program has no breakpoint: $(cat err)"
  tell 'fire 5'
  mkfifo loader.in loader.out
  /targets/late <loader.in >loader.out &
  loader=$!
  exec 6>loader.in 7<loader.out
  ask 'load /targets/liblate.so'
  await err '/targets/liblate.so: attached'
  is_planted $loader /targets/liblate.so || fail "the library has no breakpoint: $(cat err)"
  ask 'hit 7'
  [ "$hits" = 7 ] || fail "$hits hits of 7"
  # From the first hit on.
  printf 'load /targets/liblate.so\nhit 4\n' | /targets/late >printed
  tell 'exec 3'
  kill -TERM $recorder
  wait $recorder || fail "$engine: $(cat err)"
  [ "$(closing err events) $(closing err lost)" = '19 0' ] || fail "$engine: not 19 events: $(cat err)"
  until_true "$engine: the program has a breakpoint" is_untouched
  until_true "$engine: the library has a breakpoint" is_whole $loader /targets/liblate.so
  exec 6>&- 7<&-
  wait $loader || fail "the loader ends with $?"
  kill "$target"
done
until_true 'processes or events of recorders are left' is_left_alone
