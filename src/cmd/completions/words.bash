
# Patterns of -e of record, trace and top, and those of list, by what is indexed and what runs.
_usdtrec_patterns() {
    local line="${COMP_LINE:0:COMP_POINT}" cur="$2" verb="" word previous words found candidate
    # Colons divide the words of bash.
    word="${line##*[[:blank:]]}"
    read -ra words <<< "${line%"$word"}"
    previous="${words[${#words[@]} - 1]}"
    for candidate in "${words[@]}"; do
        case "$candidate" in
            record | trace | top | stat | list) verb="$candidate" && break ;;
        esac
    done
    case "$verb $previous $word" in
        "list "*" -"* | "list -"[!av]*) return 1 ;;
        "list "* | *" -e "* | *" --event "*) ;;
        *" --event="*) word="${word#--event=}" ;;
        *) return 1 ;;
    esac
    [[ -n "$verb" ]] || return 1
    word="${word#[\'\"]}"
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$cur${found#"$word"}")
        [[ "$found" != *: ]] || compopt -o nospace 2> /dev/null
    done < <("$1" complete-patterns "$word" 2> /dev/null)
    [[ ${#COMPREPLY[@]} -gt 0 ]]
}

# Keys of --by and --sort of report, diff, stat and top: those of any trace, and the arguments of the trace.
_usdtrec_keys() {
    local line="${COMP_LINE:0:COMP_POINT}" cur="$2" word previous words found
    word="${line##*[[:blank:]]}"
    read -ra words <<< "${line%"$word"}"
    previous="${words[${#words[@]} - 1]}"
    case "$previous $word" in
        "--by "* | "--sort "* | "-s "*) ;;
        *" --by="* | *" --sort="*) word="${word#*=}" ;;
        *) return 1 ;;
    esac
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$cur${found#"$word"}")
    done < <("$1" complete-keys "$word" "${words[@]}" 2> /dev/null)
    [[ ${#COMPREPLY[@]} -gt 0 ]]
}

# Names of spans, of what is indexed and runs, or of the trace.
_usdtrec_spans() {
    local line="${COMP_LINE:0:COMP_POINT}" cur="$2" word previous words found
    # Colons divide the words of bash.
    word="${line##*[[:blank:]]}"
    read -ra words <<< "${line%"$word"}"
    previous="${words[${#words[@]} - 1]}"
    case "$previous $word" in
        "--span "*) ;;
        *" --span="*) word="${word#*=}" ;;
        *) return 1 ;;
    esac
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$cur${found#"$word"}")
    done < <("$1" complete-spans "$word" "${words[@]}" 2> /dev/null)
    [[ ${#COMPREPLY[@]} -gt 0 ]]
}

_usdtrec_all() {
    _usdtrec_patterns "$@" || _usdtrec_keys "$@" || _usdtrec_spans "$@" || _usdtrec "$@"
}
