import { memberAt, objectsOf } from '../../../../../kernel/json.ts'
import { changedAt, textOf, toLabel } from './sender.ts'
import type { Body, FoundAlert } from './sender.ts'

/** The status of a heartbeat that found its monitor up; 0 is down, 2 pending, 3 maintenance. */
const UP = 1

/**
 * Reads Uptime Kuma's webhook, "Preset - application/json". Heartbeat and monitor are null in a
 * test, and where a certificate is about to expire.
 */
export function readUptimeKuma({ value }: Body): FoundAlert | undefined {
  const [heartbeat, monitor] = [memberAt(value, 'heartbeat'), memberAt(value, 'monitor')]
  if (heartbeat === undefined || monitor === undefined) return undefined
  const name = textOf(memberAt(monitor, 'name'))
  const status = memberAt(heartbeat, 'status') === UP ? 'resolved' : 'firing'
  return {
    source: 'uptime-kuma',
    status,
    key: monitorKey(value) ?? certificateKey(value),
    title: name ?? textOf(memberAt(value, 'msg')),
    labels: [
      ['alertname', name],
      ['service', name],
      ['instance', textOf(memberAt(monitor, 'hostname')) ?? memberAt(monitor, 'url')],
      ['type', memberAt(monitor, 'type')],
      ...objectsOf(memberAt(monitor, 'tags')).map(toLabel),
    ],
    ...changedAt(status, memberAt(heartbeat, 'time')),
    members: [],
  }
}

/** Uptime Kuma numbers its monitors from 1; the name distinguishes two installations. */
export function monitorKey(value: unknown) {
  const [id, name] = [memberAt(value, 'monitor.id'), textOf(memberAt(value, 'monitor.name'))]
  return typeof id === 'number' && name !== undefined ? `monitor:${id}:${name}` : undefined
}

/** What Uptime Kuma says of a certificate counts its days down: it is one alert all the same. */
function certificateKey(value: unknown): string | undefined {
  const message = textOf(memberAt(value, 'msg')) ?? ''
  const [, certificate] =
    /^(.{1,500}?) (?:will be expired|will expire|expires) in \d+ days?/.exec(message) ?? []
  return certificate === undefined ? undefined : `certificate:${certificate}`
}
