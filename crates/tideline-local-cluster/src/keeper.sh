# Ends the servers below directory $1 and removes it, once standard input ends. Only the process that started
# the cluster holds the other end of that pipe, so this happens however that process ends.
trap '' HUP INT TERM
while read -r _; do :; done

# A server is told by what nobody else has: it works in a node's directory and writes that node's log.
# No pid is remembered, so none can have been given to another process meanwhile.
signal_servers_of() {
    signaled=no
    for process in /proc/[0-9]*; do
        if [ "$process/cwd" -ef "$1" ] && [ "$process/fd/1" -ef "$1/server.log" ]; then
            for signal in $2; do kill -"$signal" "${process#/proc/}"; done
            signaled=yes
        fi
    done
}

end_servers() {
    if [ -d /proc/self/fd ]; then
        for home in "$1"/node-*; do signal_servers_of "$home" KILL; done
    else
        ps -axww -o pid=,command= | while read -r pid command; do
            case $command in
            *redis*"$1"/node-* | *valkey*"$1"/node-* | *postgres*"$1"/node-*) kill -KILL "$pid" ;;
            esac
        done
    fi
}

# PostgreSQL gives the system's shared memory back if it is asked to end; what is left is killed below.
if [ -d "$1/node-postgres" ]; then
    rounds=0 signaled=yes
    while [ "$signaled" = yes ] && [ "$rounds" -lt 20 ]; do
        signal_servers_of "$1/node-postgres" "CONT QUIT"
        rounds=$((rounds + 1))
        sleep 0.1
    done
fi

# Again until the directory is gone: a server may have been on its way into existence.
rounds=0
while [ "$rounds" -lt 100 ]; do
    end_servers "$1"
    rm -rf "$1"
    [ -e "$1" ] || exit 0
    rounds=$((rounds + 1))
    sleep 0.1
done
exit 1
