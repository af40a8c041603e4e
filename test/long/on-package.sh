#!/bin/bash
# Run by systemd (boot-systemd.sh) in a clean Debian: what an administrator does with the packages in /mnt,
# and for each step a line `NAME: what came of it`.
cd /

# request PORT TEXT: sends a request and prints the answer.
request() {
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return
  printf '%s' "$2" >&3
  cat <&3
}

ask() {
  local answer
  answer=$(request "$1" $'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' 2>/dev/null) || answer='- refused'
  cut -d ' ' -f 2 <<<"${answer%%$'\r'*}"
}

# deliver NUMBER: prints the status and the id of the answer.
deliver() {
  local body="{\"n\":$1}" answer
  answer=$(request 8080 "$(printf '%s\r\n' 'POST /webhooks/generic/ci HTTP/1.1' 'Host: localhost' \
    'Connection: close' 'Content-Type: application/json' "Content-Length: ${#body}")"$'\n\r\n'"$body" 2>/dev/null)
  echo "$(head -n 1 <<<"$answer" | cut -d ' ' -f 2) $(grep -o '"id":[0-9]*' <<<"$answer" | cut -d : -f 2)"
}

deliver_until() {
  local number=0
  until [ -e "$1" ]; do
    number=$((number + 1))
    deliver "$number"
    sleep 0.1
  done
}

stored() {
  gatehouse events list --json --limit 1000 | grep -o '"id": *[0-9]*' | grep -o '[0-9]*' | sort -n
}

show() {
  systemctl show --value -p "$1" gatehouse.service
}

export CREDENTIALS_DIRECTORY=/etc/gatehouse/credentials GATEHOUSE_DATA_DIR=/var/lib/gatehouse
echo 'booted: yes'
dpkg --install /mnt/first.deb >/mnt/log 2>&1
echo "install: $? $(show ActiveState) $(show User)"
echo "answers: $(ask 8080) $(ask 8081) $(ask 8082)"
echo "enabled: $(systemctl is-enabled gatehouse.service gatehouse.socket gatehouse-links.socket \
  gatehouse-ops.socket | uniq)"
echo "credentials: $(stat -c '%a %U' /etc/gatehouse/credentials)"
echo "state: $(stat -c '%a %U' /var/lib/private/gatehouse)"
echo "user: $(getent passwd gatehouse | cut -d : -f 7)"

echo '# mine' >>/etc/gatehouse/gatehouse.env
gatehouse provider add ci --open --enable >/dev/null 2>>/mnt/log
# The server learns of the provider by a notification.
until deliver 0 | grep -q '^202'; do sleep 0.1; done
deliver_until /run/upgraded >/run/deliveries &
until grep -q 202 /run/deliveries; do sleep 0.1; done
before=$(show MainPID)
dpkg --install /mnt/second.deb >>/mnt/log 2>&1
echo "upgrade: $? $(show ActiveState) $([ "$before" = "$(show MainPID)" ] && echo 'not restarted' || echo restarted)"
seen=$(wc -l </run/deliveries)
until [ "$(wc -l </run/deliveries)" -gt "$((seen + 3))" ]; do sleep 0.1; done
touch /run/upgraded
wait
echo "statuses: $(cut -d ' ' -f 1 /run/deliveries | sort | uniq | tr '\n' ' ')"
cut -d ' ' -f 2 /run/deliveries | sort -n >/run/acknowledged
stored >/run/stored
echo "lost: $(sort /run/acknowledged | comm -23 - <(sort /run/stored) | wc -l) of $(wc -l </run/acknowledged)" |
  sed 's/of [1-9][0-9]*$/of some/'
echo "settings: $(tail -n 1 /etc/gatehouse/gatehouse.env)"
echo "version: $(dpkg-query --show --showformat '${Version}' gatehouse)"

systemctl --quiet disable --now gatehouse-ops.socket gatehouse.socket gatehouse.service 2>>/mnt/log
dpkg --install /mnt/first.deb >>/mnt/log 2>&1
echo "upgrade of a disabled one: $? $(show ActiveState) $(systemctl is-enabled gatehouse.service)"
systemctl --quiet enable --now gatehouse.service gatehouse-ops.socket 2>>/mnt/log

dpkg --remove gatehouse >>/mnt/log 2>&1
echo "remove: $? $(show ActiveState) $(ask 8080) $(ask 8081)"
echo "kept: $([ -s /var/lib/private/gatehouse/pg/PG_VERSION ] && echo data) $(cd /etc/gatehouse && echo *)"
dpkg --install /mnt/second.deb >>/mnt/log 2>&1
echo "install again: $? $(ask 8080) $(stored | cmp -s - /run/stored && echo 'the same events')"
dpkg --purge gatehouse >>/mnt/log 2>&1
echo "purge: $? $(show ActiveState) $(ask 8080)"
echo "left: $(find / -xdev -iname '*gatehouse*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/mnt/*' \
  -not -path '/run/*' -not -path '/var/log/*' | tr '\n' ' ')"
