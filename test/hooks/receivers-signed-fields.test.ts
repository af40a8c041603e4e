import { createHash } from 'node:crypto'
import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { deliver, FORM_TYPE, shown, startHooks } from '../helpers/signing-setup.ts'
import type { Ack, Signed } from '../helpers/signing-setup.ts'
import { VECTORS } from '../fixtures/signing-vectors.ts'

type Case = {
  name: string
  provider: Signed
  body: string
  headers?: Record<string, string>
  /** Null: no type. */
  type: string | null
  /** Null: the body's hash. */
  id: string | null
}

const event = JSON.stringify({
  type: 'event_callback',
  event: { type: 'app_mention', channel: 'C1' },
  event_id: 'Ev08MFMKH6',
  trigger_id: 'not this one',
})
const command = VECTORS.find(({ provider }) => provider === 'chat')?.body ?? ''

const CASES: readonly Case[] = [
  {
    name: 'code_host, neutral headers',
    provider: 'code_host',
    body: '{"type":"not this","id":"nor this"}',
    headers: { 'X-CodeHost-Event': 'push', 'X-CodeHost-Delivery': 'd-1' },
    type: 'push',
    id: 'd-1',
  },
  {
    name: 'code_host, real headers',
    provider: 'code_host',
    body: '{}',
    headers: { 'X-GitHub-Event': 'ping', 'X-GitHub-Delivery': 'd-2' },
    type: 'ping',
    id: 'd-2',
  },
  {
    name: 'code_host, both: the neutral ones win',
    provider: 'code_host',
    body: '{"both":true}',
    headers: {
      'X-GitHub-Event': 'not this',
      'X-GitHub-Delivery': 'nor this',
      'X-CodeHost-Event': 'issues',
      'X-CodeHost-Delivery': 'd-3',
    },
    type: 'issues',
    id: 'd-3',
  },
  {
    name: 'code_host, form',
    provider: 'code_host',
    body: `payload=${encodeURIComponent('{"zen":"Half measures"}')}`,
    headers: { ...FORM_TYPE, 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'd-4' },
    type: 'push',
    id: 'd-4',
  },
  { name: 'code_host, nothing', provider: 'code_host', body: '{"n":1}', type: null, id: null },
  {
    name: 'payments',
    provider: 'payments',
    body: '{"id":"evt_1","object":"event","type":"charge.succeeded"}',
    headers: { 'X-GitHub-Event': 'not this', 'X-GitHub-Delivery': 'nor this' },
    type: 'charge.succeeded',
    id: 'evt_1',
  },
  { name: 'payments, nothing', provider: 'payments', body: '{"n":2}', type: null, id: null },
  {
    name: 'payments, no texts',
    provider: 'payments',
    body: '{"id":7,"type":["a"]}',
    type: null,
    id: null,
  },
  {
    name: 'payments, empty',
    provider: 'payments',
    body: '{"id":"","type":""}',
    type: null,
    id: null,
  },
  { name: 'chat, event', provider: 'chat', body: event, type: 'app_mention', id: 'Ev08MFMKH6' },
  {
    name: 'chat, type without event',
    provider: 'chat',
    body: '{"type":"app_rate_limited","event_id":"Ev2"}',
    type: 'app_rate_limited',
    id: 'Ev2',
  },
  {
    name: 'chat, event without type',
    provider: 'chat',
    body: '{"type":"event_callback","event":{},"event_id":"Ev3"}',
    type: 'event_callback',
    id: 'Ev3',
  },
  {
    name: 'chat, command',
    provider: 'chat',
    body: command,
    headers: FORM_TYPE,
    type: '/webhook-collect',
    id: '398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
  },
  { name: 'chat, nothing', provider: 'chat', body: '{"event":null}', type: null, id: null },
  {
    name: 'a type with control characters',
    provider: 'payments',
    body: '{"id":"evt_2","type":"a\\u0000b\\n"}',
    type: 'ab',
    id: 'evt_2',
  },
  {
    name: 'a type that would be cut within a character',
    provider: 'payments',
    body: JSON.stringify({ id: 'evt_3', type: `${'a'.repeat(254)}😀` }),
    type: `${'a'.repeat(254)}\ufffd`,
    id: 'evt_3',
  },
  {
    name: 'half a character in type and id',
    provider: 'payments',
    body: '{"id":"evt_4\\ud83d","type":"x\\udc00"}',
    type: 'x\ufffd',
    id: `sha256:${hash('evt_4\ufffd')}`,
  },
  {
    name: 'an id that is too long',
    provider: 'payments',
    body: JSON.stringify({ id: 'i'.repeat(256), type: 't' }),
    type: 't',
    id: `sha256:${hash('i'.repeat(256))}`,
  },
]

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

await onPostgres(t, 'event type and delivery id', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  for (const { name, provider, body, headers, type, id } of CASES) {
    await t.test(name, async (t) => {
      const sent = await deliver(base, provider, body, headers)
      t.equal(sent.status, 202, sent.text)
      const { facts } = await shown(base, sent.json<Ack>().id)
      t.match(facts, {
        'Event type': type ?? 'none',
        'Delivery id': id ?? `sha256:${hash(body)}`,
        'Content type': headers?.['Content-Type'] ?? 'application/json',
        Provider: provider,
        'Trust mode': 'signed',
        Verified: 'yes',
        Verification: 'hmac-sha256 ok',
        'Source address': '127.0.0.1',
        Attempts: '1',
      })
    })
  }
})
