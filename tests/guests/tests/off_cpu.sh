# How long threads have waited, beside what the program says of its waits; an id that is used again starts from zero. In what they waited.
rm -f in out err
mkfifo in out
/targets/waits <in >out &
target=$!
exec 8>in 9<out
: >said
usdtrec record -p $target --off-cpu -o trace -e 'sdt_waits:*@/targets/waits' 2>err &
recorder=$!
await err '^\[ usdtrec record'
works="'spin 10' 'sleep 20' 'mutex 30' 'nested 10'"
eval "set -- $works $works $works $works $works $works $works $works"
for command in "$@" 'crowd 20' 'reuse 30' 'exec 30'; do
  tell "$command"
done
kill -TERM $recorder
wait $recorder || fail "$(cat err)"
kill $target
# Event, thread, time, number, runnable, in I/O wait, blocked.
usdtrec script --format json -F tid,time,event,args,runnable,iowait,blocked -e 'sdt_waits:*' -i trace >hits.json || fail "$(cat err)"
sed 's/[{}",]/ /g; s/ :/ /g' hits.json | awk '{ print $12, $4, $2, $15, $6, $8, $10 }' >hits
# An emulated CPU may stand still at any place: each kind of work is right in one of eight rounds at least. It has no more waits than time in any.
awk '
  NR == FNR && $1 == "work" { cpu[$2] = $4; waited[$2] = $5; kind[$2] = works++ % 5; next }
  NR == FNR && $1 == "id" { reused[$2] = ""; ids++; next }
  NR == FNR { next }
  $2 in reused { reused[$2] = reused[$2] ($5 + $6 + $7 == 0 ? "0" : "+") }
  $1 ~ /start/ { at[$4] = $3; sum[$4] = $5 + $6 + $7; blocked[$4] = $7; next }
  $4 in cpu {
    all = $3 - at[$4]; waits = $5 + $6 + $7 - sum[$4]; found = $7 - blocked[$4]
    print $4, all, waits, found, cpu[$4], waited[$4]
    if (waits > all) { print "wrong"; wrong++ }
    if (waits > waited[$4] - 5e6 && found < waited[$4] + 2e7 && all - waits > cpu[$4] - 5e6) right[kind[$4]]++
    checked++
  }
  END {
    for (id in reused) { print id, reused[id]; if (reused[id] != "0+0") wrong++ }
    for (one = 0; one < 5; one++) if (!right[one]) { print "never right:", one; wrong++ }
    if (wrong || checked != 40 || works != 40 || ids != 2) exit 1
  }' said hits >found || fail "$(cat err hits said found)"
cat found
# Linux 5.15 has the registers of a task.
case $(uname -r) in
5.10.*) call=unknown ;;
*) call=clock_nanosleep ;;
esac
usdtrec script -F +ip -e offcpu:offcpu-time -i trace >waits || fail "$(cat err)"
grep -q "state=\"blocked\" .*wait=\"$call\"" waits || fail "$(cat waits)"
