
# Patterns, by what is indexed and what runs.
function __fish_usdtrec_patterns
    usdtrec complete-patterns (string replace -r -- '^(--event=|-e)' '' (commandline -ct)) 2>/dev/null
end

complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -f -a "(__fish_usdtrec_patterns)"
