# Owns one directory and the server in it. Executes shell commands, one per line of stdin, and replies
# to each with its exit code and the server's process id. When stdin ends, because the parent ended in
# any way, stops the server and removes the directory.

# The parent may be gone when a reply is written; the directory must be removed all the same.
trap '' PIPE

umask 077
directory=$(mktemp -d /tmp/midwatch-pg-XXXXXX) || exit 1
pid=
echo "$directory"

while read -r line; do
    eval "$line" </dev/null >>"$directory/log" 2>&1
    echo "$? $pid"
done 2>/dev/null

if [ -n "$pid" ]; then
    kill -QUIT "$pid"
    wait "$pid"
fi 2>/dev/null

# A server that was killed leaves its lock file, and in it the id of a shared memory segment.
if [ -f "$directory/data/postmaster.pid" ]; then
    ipcrm -m "$(sed -n 's/^ *[0-9]\{1,\} \{1,\}\([0-9]\{1,\}\) *$/\1/p' "$directory/data/postmaster.pid")"
fi 2>/dev/null

rm -rf "$directory"
