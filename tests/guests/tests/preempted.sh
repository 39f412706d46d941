# Programs that are preempted, and whose CPU then runs them for other threads, record each hit once and with its own values.
threads=12 count=1000
for engine in bpf-multi bpf-perf; do
  can $engine || continue
  usdtrec record -a --engine $engine -m 16M -o trace -e 'preempted:even(thread=arg1,number=arg2,text=str(arg3))@/targets/preempted' \
    -e 'preempted:odd(text=str(arg1),value=arg2)@/targets/preempted' -- /targets/preempted $threads $count 2>err || fail "$engine: $(cat err)"
  [ "$(closing err lost)" = 0 ] || fail "$engine: $(cat err)"
  # A hit as its thread and number.
  usdtrec script -F event,args -i trace | awk '{ gsub(/[a-z]*=|thread |"/, "") } /even: / { print $(NF - 2), $(NF - 1), $NF } /odd: / { print "odd", $(NF - 1), $NF }' >hits
  awk -v threads=$threads -v count=$count '
    $1 == "odd" { thread = int($3 / 1000000); $0 = thread " " $3 % 1000000 " " $2; if (thread % 2 == 0) wrong++ }
    NF != 3 || $1 != $3 || $1 >= threads || $2 >= count || ($1, $2) in seen { if (wrong++ < 5) print "wrong: " $0 }
    { seen[$1, $2] = 1; number++ }
    END { if (number != threads * count || wrong) { print number " hits, " wrong + 0 " wrong"; exit 1 } }' hits >found || fail "$engine: $(cat found) $(cat err)"
done
