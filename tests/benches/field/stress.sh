# Runs stress-ng with these options, and says when it is at work.
stress-ng "$@" --timeout 120 > /dev/null 2>&1 &
server=$!
trap 'kill $server; wait' EXIT
trap exit TERM
sleep 1
echo "ready $server"
wait $server
