# Ends the servers below directory $1 and removes it, once standard input ends. Only the process that started
# the cluster holds the other end of that pipe, so this happens however that process ends.
trap '' HUP INT TERM
while read -r _; do :; done

# A server is told by what nobody else has: it works in a node's directory and writes that node's log.
# No pid is remembered, so none can have been given to another process meanwhile.
end_servers() {
    if [ -d /proc/self/fd ]; then
        for home in "$1"/node-*; do
            for process in /proc/[0-9]*; do
                if [ "$process/cwd" -ef "$home" ] && [ "$process/fd/1" -ef "$home/server.log" ]; then
                    kill -KILL "${process#/proc/}"
                fi
            done
        done
    else
        ps -axww -o pid=,command= | while read -r pid command; do
            case $command in
            *redis*"$1"/node-* | *valkey*"$1"/node-* | *postgres*"$1"/node-*) kill -KILL "$pid" ;;
            esac
        done
    fi
}

# PostgreSQL gives the system's shared memory back if it is asked to end; what is left is killed below.
ask_postgres() {
    for process in /proc/[0-9]*; do
        if [ "$process/cwd" -ef "$1/node-postgres" ] && [ "$process/fd/1" -ef "$1/node-postgres/server.log" ]; then
            kill -CONT "${process#/proc/}"
            kill -QUIT "${process#/proc/}"
            asked=yes
        fi
    done
}
if [ -d "$1/node-postgres" ]; then
    rounds=0 asked=yes
    while [ "$asked" = yes ] && [ "$rounds" -lt 20 ]; do
        asked=no
        ask_postgres "$1"
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
