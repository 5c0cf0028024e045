# Runs a program, and ends it once standard input ends, or when it has used so many seconds of CPU time ($1). Only the process that started
# this holds the other end of that pipe, so this happens however that process ends.
ulimit -t "$1"
shift
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
(while read -r _; do :; done <&3; kill -KILL "$program") &
guard=$!
exec 3<&-
wait "$program"
status=$?
kill -KILL "$guard"
exit "$status"
