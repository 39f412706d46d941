# A recorder that is killed leaves nothing: no breakpoint, no semaphore, no event, and the program and its children live on.

# The code of a process, where a file is mapped as code: bytes of its memory, and of the file, to be compared.
is_whole() {
  local range start end offset pages
  range=$(sed -n "s|^\([0-9a-f]*-[0-9a-f]*\) r-xp \([0-9a-f]*\) .* $2\$|\1 \2|p" "/proc/$1/maps" | head -n 1)
  start=$((0x${range%%-*})) offset=$((0x${range#* }))
  end=${range#*-}
  end=$((0x${end% *}))
  pages=$(((end - start) / 4096))
  dd if="/proc/$1/mem" bs=4096 skip=$((start / 4096)) count=$pages of=memory 2>/dev/null
  # The last page goes beyond the file.
  dd if="$2" bs=4096 skip=$((offset / 4096)) count=$pages of=file 2>/dev/null
  dd if=memory bs=1 count="$(wc -c <file)" of=memory.cut 2>/dev/null
  cmp memory.cut file
}

tell() {
  echo "$1" >&8
  local line
  while read -r line <&9; do
    [ "$line" != 'done' ] || return 0
    echo "$line" >>said
  done
  fail "the program ended at \"$1\""
}

mkfifo in out
/targets/ticker <in >out &
target=$!
exec 8>in 9<out
tell 'fire 3'
for engine in bpf-multi bpf-perf perf-tracefs perf-pmu; do
  can $engine || continue
  for whose in -a "-p $target"; do
    [ "$engine $whose" != "perf-pmu -p $target" ] || continue
    rm -f err
    # shellcheck disable=SC2086
    usdtrec record $whose --engine $engine -o trace -e 'sdt_ticker:*@/targets/ticker' 2>err &
    recorder=$!
    await err '^\[ usdtrec record'
    tell 'fire 20'
    tell 'fork 5'
    kill -9 $recorder
    wait $recorder || true
    tries=0
    until : >said && tell semaphores && grep -qx 'semaphores 0 0' said && is_whole $target /targets/ticker; do
      [ $tries -lt 100 ] || fail "$engine $whose: $(cat said)"
      tries=$((tries + 1))
      usleep 100000
    done
    tell 'fire 5'
    tell 'thread 5'
    tell 'fork 5'
    tell 'exec 5'
  done
done
tries=0
while grep -q usdtrec /sys/kernel/tracing/uprobe_events; do
  [ $tries -lt 100 ] || fail "$(cat /sys/kernel/tracing/uprobe_events)"
  tries=$((tries + 1))
  usleep 100000
done
kill $target
