# Strings that are not resident when the probe is hit: programs that look at mappings load, and what they read is right.
list='absent:text(t=str(arg1))@/targets/absent'

# Hits of one process each, in this order: what is shown of the string must be as said.
hit() {
  echo | /targets/absent "$@" >>hits || fail "absent $*: $(cat hits)"
}

begin() {
  rm -f err
  usdtrec record "$@" 2>err &
  recorder=$!
  await err '^\[ usdtrec record'
}

# Ends the recording; the strings must be those of the file `expected`, a line each, addresses left out.
end() {
  kill $recorder
  wait $recorder || fail "$1: $(cat err)"
  usdtrec script -F args -i trace | sed 's/^.*t=//; s/ 0x[0-9a-f]*>/>/' >all
  # Of the three hits that are alike, one with the string if there is one.
  { sed -n 1,2p all && sed -n 3,5p all | sort | head -n 1 && sed 1,5d all; } >found
  cmp -s found expected || fail "$1: $(cat err) found: $(cat all) expected: $(cat expected)"
  grep -q " $(($(wc -l <expected) + 2)) events, 0 lost" err || fail "$1: $(cat err)"
  echo "$(cut -d ' ' -f 1 /proc/uptime) $1: as expected"
}

all() {
  hit file 0 1 1 0
  hit anonymous 0 1 1 0
  # Whoever reads its maps uses its memory, too, and it is not touched meanwhile. The recorder is one who does.
  hit file 0 1 1 65534
  hit file 0 1 1 65534
  hit file 0 1 1 65534
  hit file 0 1 2 0
  # Another of its threads could put another mapping there meanwhile.
  hit file 0 1 2 65534
}

head -c 4096 /dev/zero | tr '\0' a >letters
text='"served at last"'

# The programs of kernels before 6.0 cannot wait: nothing is brought in. Hits that a filter cannot judge then are lost.
if ! newer 6 0; then
  begin -v -a --engine bpf-perf -o trace -e "$list"
  grep -q 'need Linux 6.0' err || fail "no reason: $(cat err)"
  all
  printf '<not resident>\n%.0s' 1 2 3 4 5 >expected
  end 'bpf-perf without programs that sleep'
  begin -a --engine bpf-perf -o trace -e 'absent:text@/targets/absent' --filter 'arg1 == "served at last"'
  all
  kill $recorder
  wait $recorder || fail "filter: $(cat err)"
  [ "$(closing err events) $(closing err lost)" = '0 7' ] || fail "filter: $(cat err)"
  grep -q 'the filter of 7 hits could not be evaluated' err || fail "no reason: $(cat err)"
  skip 'programs cannot bring in what is not resident before Linux 6.0'
fi

for engine in bpf-multi bpf-perf; do
  can $engine || continue
  begin -v -a --engine $engine -o trace -e "$list"
  ! grep -q 'read resident memory only' err || fail "$engine does not look at mappings: $(cat err)"
  all
  hit "$PWD/letters" 0
  printf '%s\n' "$text" '""' "$text" "$text" '<not resident>' >expected
  echo "\"$(head -c 256 letters)\"…" >>expected
  end "$engine auto"
  begin -v -a --engine $engine --nonresident never -o trace -e "$list"
  all
  printf '<not resident>\n%.0s' 1 2 3 4 5 >expected
  end "$engine never"
  # Before Linux 6.10 a program on a perf event that waits holds up all uprobe events on its CPU: `stuck` tests that this is refused.
  if [ $engine = bpf-multi ] || newer 6 10; then
    begin -v -a --engine $engine --nonresident always -o trace -e "$list"
    all
    hit late 1
    printf '%s\n' "$text" '""' "$text" "$text" "$text" "$text" >expected
    end "$engine always"
  fi
  # A filter reads what is not resident, too.
  begin -a --engine $engine -o trace -e 'absent:text@/targets/absent' --filter 'arg1 == "served at last"'
  all
  hit self 1
  kill $recorder
  wait $recorder || fail "$engine filter: $(cat err)"
  lost=$(closing err lost)
  case "$(closing err events) $lost" in
    '5 2' | '4 3' | '3 4') ;;
    *) fail "$engine filter: $(cat err)" ;;
  esac
  grep -q "the filter of $lost hits* could not be evaluated" err || fail "$engine filter: $(cat err)"
  echo "$(cut -d ' ' -f 1 /proc/uptime) $engine filter: as expected"
  # Without what tells about mappings nothing is touched, and -v says why.
  mount -t tmpfs none /sys/kernel/btf
  begin -v -a --engine $engine -o trace -e "$list"
  grep 'read resident memory only' err | grep -q /sys/kernel/btf/vmlinux || fail "$engine without BTF: $(cat err)"
  all
  umount /sys/kernel/btf
  printf '<not resident>\n%.0s' 1 2 3 4 5 >expected
  end "$engine without BTF"
  # What is resident.
  usdtrec record --engine $engine --strings all -o trace -e 'strings:*@/targets/strings' -- /targets/strings >out 2>err ||
    fail "$engine: $(cat err)"
  usdtrec script -F event,args -i trace >found
  for expected in 'plain:.*"/index.html"' 'empty:.*""' 'utf8:.*"größe"' 'edge:.*"edged"' 'exact16:.*"eeeeeeeeeeeeeeee"' \
    'untouched:.*"never touched before"' 'crossing:.*"crosses"' 'dropped:.*"from a file"'; do
    grep -q "sdt_strings:$expected" found || fail "$engine: no $expected in $(cat found)"
  done
  # One engine is enough: the programs are the same.
  break
done
