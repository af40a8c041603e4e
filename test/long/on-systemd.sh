#!/bin/bash
# Run by systemd (boot-systemd.sh): what an operator does, and for each step a line `NAME: what came of it`.
cd /

ask() {
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit
    printf 'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
    IFS=$' \r' read -r -t 60 _ status _ <&3
    echo "${status:-none}"
  ) 2>/dev/null || echo refused
}

# Asks again and again until a file is there, and says how often it got which answer.
keep_asking() {
  until [ -e "$1" ]; do ask 8080; done | sort | uniq -c | tr -s ' \n' ' '
}

show() {
  systemctl show --value -p "$1" gatehouse.service
}

echo 'booted: yes'
sh /mnt/deploy/install.sh /mnt/gatehouse >/dev/null
echo "install: $?"
# The watchdog's minute is long for a test.
mkdir -p /run/systemd/system/gatehouse.service.d
printf '[Service]\nWatchdogSec=10s\n' >/run/systemd/system/gatehouse.service.d/test.conf
echo 'a secret of the payment service' >/etc/gatehouse/credentials/hooks_payments_secret
systemctl --quiet enable --now gatehouse.service 2>/dev/null
echo "start: $? $(show ActiveState) $(show User)"
echo "status: $(show StatusText)"
echo "answers: $(ask 8080) $(ask 8081) $(ask 8082)"
main=$(show MainPID)
echo "rights: $(grep -E '^(CapEff|NoNewPrivs|Seccomp):' "/proc/$main/status" | tr -d '\t' | tr '\n' ' ')"
echo "bounds: $(show MemoryMax) $(show TasksMax)"
export CREDENTIALS_DIRECTORY=/etc/gatehouse/credentials GATEHOUSE_DATA_DIR=/var/lib/gatehouse
echo "credential: $(/usr/local/bin/gatehouse provider list | grep ^payments | tr -s ' ')"

keep_asking /run/restarted >/run/answers &
systemctl restart gatehouse.service
echo "restart: $?"
touch /run/restarted
wait
echo "asked meanwhile:$(</run/answers)"
kill -KILL "$(show MainPID)"
echo "killed: $(ask 8080) $(show NRestarts)"

echo OPS_NONSENSE=1 >>/etc/gatehouse/gatehouse.env
systemctl restart gatehouse.service 2>/dev/null
echo "wrong setting: $? $(journalctl -u gatehouse.service -o cat | grep -c '^FAIL.*OPS_NONSENSE')"
ask 8080 >/run/waited &
sed -i /OPS_NONSENSE/d /etc/gatehouse/gatehouse.env
wait
echo "waited: $(</run/waited)"

systemctl stop gatehouse.socket gatehouse.service
echo "stopped: $(show ActiveState) $(ask 8080) $(ask 8081)"
/usr/local/bin/gatehouse user add root-was-here@example.com 2>/dev/null
systemctl start gatehouse.service
echo "after a command of root: $?"

kill -STOP "$(show MainPID)"
for _ in $(seq 150); do
  [ "$(show NRestarts)" = 0 ] || break
  sleep 0.2
done
echo "stuck: $(show NRestarts) $(ask 8080)"

# The sandbox of commands whose arguments a model chooses.
checked() {
  journalctl -u gatehouse.service -o cat | grep '  sandbox: ' | tail -n 1
}
echo '{"services": [], "readonly": [["find"]]}' >/etc/gatehouse/inventory.json
printf '%s\n' OPS_INVENTORY=/etc/gatehouse/inventory.json OPS_MODEL_URL=http://127.0.0.1:9999/v1 \
  >>/etc/gatehouse/gatehouse.env
systemctl restart gatehouse.service
echo "without the drop-in: $(checked)"
install -D -m 644 /usr/local/share/gatehouse/ops-host-access.conf \
  /etc/systemd/system/gatehouse.service.d/ops-host-access.conf
systemctl daemon-reload
systemctl restart gatehouse.service
echo "with the drop-in: $(checked)"
python3 /mnt/model-endpoint.py 9999 "$(show MainPID)" /run/tool-answer 2>/dev/null &
model=$!
for _ in $(seq 150); do
  [ ! -s /run/tool-answer ] || break
  (
    exec 3<>/dev/tcp/127.0.0.1/8082
    printf 'POST /api/v1/sessions/trigger HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n\r\n%s' \
      $'Content-Type: application/json\r\nContent-Length: 17' '{"prompt":"look"}' >&3
    cat <&3
  ) >/dev/null 2>&1
  sleep 0.2
done
kill "$model"
echo "a command in the sandbox: $(tr '\n' ' ' </run/tool-answer)"
