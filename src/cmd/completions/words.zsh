
# Patterns, by what is indexed and what runs.
_usdtrec_patterns() {
    local -a found providers events
    found=("${(@f)$(usdtrec complete-patterns "${(Q)PREFIX}" 2> /dev/null)}")
    providers=(${(M)found:#*:})
    events=(${found:#(*:|)})
    compadd -S '' -a providers
    compadd -a events
}

# Keys: those of any trace, and the arguments of the trace.
_usdtrec_keys() {
    local -a keys
    keys=("${(@f)$(usdtrec complete-keys "${(Q)PREFIX}" "${(@Q)words}" 2> /dev/null)}")
    compadd -a keys
}

# Names of spans, of what is indexed and runs, or of the trace.
_usdtrec_spans() {
    local -a spans
    spans=("${(@f)$(usdtrec complete-spans "${(Q)PREFIX}" "${(@Q)words}" 2> /dev/null)}")
    compadd -a spans
}
