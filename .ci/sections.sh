# Sourced by the scripts beside it: their environment, and the time of each section.

export CI=true # a test that would be skipped fails instead
# Everything is built once, and nobody looks at it with a debugger: without what only that is for, building takes less time.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

times=()
started=0
title=

# Begins a section: prints its title, and notes how long the one before took.
section() {
    note_time
    title=$1 started=$SECONDS
    printf '\n=== %s === (%d s)\n' "$title" "$SECONDS"
}

# Ends the last section and prints the time of each.
end() {
    note_time
    printf '\n=== passed === (%d s)\n' "$SECONDS"
    printf '%s\n' "${times[@]}"
}

note_time() {
    [[ -z $title ]] || times+=("$(printf '%5d s  %s' $((SECONDS - started)) "$title")")
}
