
# Patterns, by what is indexed and what runs.
function __fish_usdtrec_patterns
    usdtrec complete-patterns (string replace -r -- '^(--event=|-e)' '' (commandline -ct)) 2>/dev/null
end

# Keys: those of any trace, and the arguments of the trace.
function __fish_usdtrec_keys
    usdtrec complete-keys (string replace -r -- '^(--by=|--sort=|-s)' '' (commandline -ct)) (commandline -opc) 2>/dev/null
end

# Names of spans, of what is indexed and runs, or of the trace.
function __fish_usdtrec_spans
    usdtrec complete-spans (string replace -r -- '^(--span=)' '' (commandline -ct)) (commandline -opc) 2>/dev/null
end

complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -f -a "(__fish_usdtrec_patterns)"
