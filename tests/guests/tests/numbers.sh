# Programs that are preempted at any instruction count each hit once, and add its number to the sum and extremes of its own group. The kernel preempts
# its own code, too, where it can be told to.
threads=12 count=1000
mkdir -p debug
if mount -t debugfs none debug 2>/dev/null && [ -w debug/sched/preempt ]; then
  echo full >debug/sched/preempt || true
  echo "preemption: $(cat debug/sched/preempt)"
fi
for engine in bpf-multi bpf-perf; do
  can $engine || continue
  usdtrec stat --engine $engine -o counted --format csv-raw --by text --value value --hist value \
    -e 'preempted:odd(text=str(arg1),value=arg2)@/targets/preempted' -- /targets/preempted $threads $count 2>err ||
    fail "$engine: $(cat err)"
  # Hits while four other programs were preempted on the CPU are in no group.
  awk -F, -v threads=$threads -v count=$count '
    NR == 1 { for (at = 1; at <= NF; at++) place[$at] = at; next }
    { all += $place["count"] }
    $place["others"] == "true" || $place["count"] != count { next }
    {
      split($place["text"], words, " "); first = words[2] * 1000000; whole++
      if ($place["value.count"] != count || $place["value.min"] != first || $place["value.max"] != first + count - 1 ||
        $place["value.sum"] != first * count + count * (count - 1) / 2) { print "wrong: " $0; wrong++ }
    }
    END { print all " hits, " whole " groups whole"; if (all != threads / 2 * count || !whole || wrong) exit 1 }' counted >found ||
    fail "$engine: $(cat found counted err)"
  cat found
done
umount debug 2>/dev/null || true
