# Spans are matched and added up by programs: of each thread, some within others. The sum of what is in histograms is that of the spans.
for engine in bpf-multi bpf-perf; do
  can $engine || continue
  echo go | usdtrec stat --engine $engine -o spans --format csv-raw --by tid --span request --min 1us \
    -e 'slow:request__start(id=(s64)arg1,url=str(arg2))@/targets/slow' -e 'slow:request__done(id=(s64)arg1)@/targets/slow' \
    -- /targets/slow load 2 1000 100 1 2>err ||
    fail "$engine: $(cat err)"
  # 1000 spans of each thread, and one within each second one of ten.
  awk -F, '
    NR == 1 { for (at = 1; at <= NF; at++) place[$at] = at; next }
    $place["others"] == "true" { short += $place["short"]; wrong += $place["open"] + $place["unmatched"] + $place["count"] + $place["lost"]; next }
    { all += $place["count"]; if ($place["p99_ns"] == "" || $place["min_ns"] > $place["max_ns"]) { print "wrong: " $0; wrong++ } }
    END { print all " spans, " short " short"; if (all + short != 2010 || wrong) exit 1 }' spans >found ||
    fail "$engine: $(cat found spans err)"
  cat found
done
