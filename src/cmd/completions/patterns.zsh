
# Patterns, by what is indexed and what runs.
_usdtrec_patterns() {
    local -a found providers events
    found=("${(@f)$(usdtrec complete-patterns "${(Q)PREFIX}" 2> /dev/null)}")
    providers=(${(M)found:#*:})
    events=(${found:#(*:|)})
    compadd -S '' -a providers
    compadd -a events
}
