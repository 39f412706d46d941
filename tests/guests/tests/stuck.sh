# Beside 120 processes whose strings lie where no page ever comes, every hit of another program is recorded, recorders end when they are
# asked to, are killed, and others begin and end. Only `--nonresident always` waits for such pages, and says for whom.

# Processes of each kind: kind, threads, user, how many. A kernel without FUSE has more of another.
crowd='late 1 0 30,late 2 65534 10,self 1 65534 10,across 1 0 20,none 1 0 10,none 2 65534 10,end 1 0 20'
[ -e /dev/fuse ] && crowd="$crowd,fuse 1 65534 10" || crowd="$crowd,self 1 0 10"

start_crowd() {
  local kind threads user count
  : >hits
  echo "$crowd" | tr , '\n' | while read -r kind threads user count; do
    echo | /targets/absent "$kind" 1000 "$count" "$threads" "$user" >>hits 2>&1 &
  done
}

# How many have hit, and gone on.
gone_on() {
  grep -c ' hit$' hits || true
}

# Whether all have hit and have gone on, or wait inside the probe, which two thirds should.
have_hit() {
  local inside=0
  if [ "$mode" = '--nonresident always' ]; then
    inside=$(cat /proc/[0-9]*/stack 2>/dev/null | grep -c uprobe_notify_resume) || true
    [ "$inside" -ge 70 ] || return 1
  fi
  [ $((inside + $(gone_on))) = 120 ]
}

# Ends the processes. Some end by themselves when others do.
crowd_is_gone() {
  # shellcheck disable=SC2046
  kill -9 $(pidof absent) 2>/dev/null || true
  ! pidof absent >/dev/null
}

# Starts a recorder with a trace of this name; its process is $recorder.
begin() {
  local name="$1"
  shift
  : >"$name.err"
  usdtrec record -a --engine "$engine" -o "$name" "$@" 2>"$name.err" &
  recorder=$!
  await "$name.err" '^\[ usdtrec record'
}

# Waits for the end of a recorder. Either it says nothing of probes that are left, or which process keeps them.
end() {
  until_true "recorder $1 does not end: $(cat "$2")" has_ended "$1"
  wait "$1" || fail "$(cat "$2")"
  if [ "$mode" = '--nonresident always' ]; then
    grep 'not yet removed' "$2" | grep -q 'inside a probe: pid [0-9]* tid [0-9]* (absent)' || fail "who is waited for is not said: $(cat "$2")"
  else
    # On a busy machine the kernel may need longer than recorders wait, but nobody waits inside a probe.
    ! grep 'inside a probe' "$2" || fail "$(cat "$2")"
  fi
}

check() {
  local text="$1" first second third count
  shift
  begin first -e "$text,sdt_ticker:*@/targets/ticker" "$@"
  first=$recorder
  tell 'fire 100'
  start_crowd
  tell 'fire 100'
  until_true "not all have hit: $(cat hits)" have_hit
  tell 'fire 100'
  # Others begin and end meanwhile: by themselves, and killed.
  begin second --duration 1s -e 'sdt_ticker:tick@/targets/ticker'
  second=$recorder
  begin third -e 'sdt_ticker:tick@/targets/ticker'
  third=$recorder
  tell 'fire 50'
  kill -9 $third
  kill -INT $first
  end $first first.err
  end $second second.err
  tell 'fire 5'
  if [ "$mode" != '--nonresident always' ]; then
    until_true 'a killed recorder does not end' has_ended $third
    until_true 'probes are left' is_untouched
  fi
  until_true 'the processes do not end' crowd_is_gone
  until_true 'a killed recorder does not end' has_ended $third
  ! wait $third || fail "it was not killed"
  until_true 'processes or events of recorders are left' is_left_alone
  until_true 'probes are left' is_untouched
  grep -q ', 0 lost' first.err || fail "$(cat first.err)"
  count=$(usdtrec script -F event -i first | grep -c 'sdt_ticker:tick')
  [ "$count" = 350 ] || grep -q 'not exact' first.err || fail "$count of 350 hits: $(cat first.err)"
  count=$(usdtrec script -F event -i first | grep -c 'absent:text')
  # Of those that are killed while they wait there may be a record or not.
  [ "$count" = 120 ] || [ "$mode" = '--nonresident always' ] || grep -q 'not exact' first.err || fail "$count of 120 hits: $(cat first.err)"
  echo "$(cut -d ' ' -f 1 /proc/uptime) $engine $mode: as expected" | tee /dev/console
}

# Waiting for any memory is refused where that stops other tracers.
refuses() {
  ! usdtrec record -a --engine bpf-perf --nonresident always -o refused -e 'absent:text(t=str(arg1))@/targets/absent' --duration 1s 2>err ||
    fail "$(cat err)"
  grep -q 'before Linux 6.10' err || fail "$(cat err)"
}

target=
start_target
tell 'fire 3'
for engine in bpf-multi bpf-perf; do
  can $engine || continue
  for mode in always auto never; do
    # Before Linux 6.10 a program on a perf event that waits holds up all uprobe events on its CPU.
    if [ "$engine $mode" = 'bpf-perf always' ]; then
      newer 6 10 || refuses
      continue
    fi
    mode="--nonresident $mode"
    # shellcheck disable=SC2086
    check 'absent:text(t=str(arg1))@/targets/absent' $mode
  done
  # The programs are the same with both.
  break
done
mode=
for engine in $(engines); do
  [ "${engine#bpf}" != "$engine" ] || check 'absent:text@/targets/absent'
done
kill "$target"
