import { request } from '../helpers/http.ts'
import { addProvider, deliver, post, postForm } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'
import { headerText, send } from './pages.ts'

/** Paths of the pages that a kind of data makes worth looking at. */
export type Paths = readonly string[]

/** A service that was just started. */
export const EMPTY: Paths = [
  '/',
  '/log',
  '/log?rejected=1',
  '/log?provider=generic:none',
  '/nothing',
]

/** A few days' ordinary traffic: all kinds of providers, types, payloads and refusals. */
export async function fillOrdinary(base: string): Promise<Paths> {
  const token = await addProvider(base, 'ci')
  await addProvider(base, 'door-bell', { open: true })
  await addProvider(base, 'off', { enabled: false })
  const push = await deliver(base, 'code_host', '{"ref":"refs/heads/main","commits":[]}', {
    'X-CodeHost-Event': 'push',
    'X-CodeHost-Delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  })
  const paid = '{"id":"evt_1","type":"invoice.payment_succeeded","data":{"amount":1200}}'
  await deliver(base, 'payments', paid)
  await deliver(base, 'chat', 'command=%2Fdeploy&text=main', {
    'Content-Type': 'application/x-www-form-urlencoded',
  })
  await send(base, 'generic/ci', '{"ok":true}', { Authorization: `Bearer ${token}` })
  const { id: binary } = await send(base, 'generic/door-bell', Buffer.from([0xff, 0, 0xfe]))
  await send(base, 'generic/door-bell', '', { 'X-Event-Type': 'ring' })
  await deliver(base, 'code_host', '{"ref":"refs/heads/main","commits":[]}')
  await refusals(base)
  const { id } = push.json<{ id: number }>()
  const log = ['/log', '/log?limit=3', '/log?rejected=1', `/log/${id}`, `/log/${binary}`]
  return ['/', ...log, '/providers', '/settings']
}

/** Text without a place to break it, as long as each field lets it be. */
export async function fillLong(base: string): Promise<Paths> {
  const name = 'n'.repeat(64)
  const type = 'T'.repeat(255)
  await addProvider(base, name, { open: true })
  const headers = {
    'X-Event-Type': type,
    'Webhook-Id': 'D'.repeat(255),
    'X-Value': 'V'.repeat(4_000),
    [`X-${'N'.repeat(200)}`]: headerText('ü'.repeat(200)),
    'Content-Type': `text/${'c'.repeat(200)}`,
  }
  const { id } = await send(base, `generic/${name}`, 'P'.repeat(20_000), headers)
  const json = JSON.stringify({ id: 'evt_long', type, ['k'.repeat(500)]: ['v'.repeat(5_000)] })
  const signed = await deliver(base, 'payments', json)
  const target = `https://example.com/${'t'.repeat(2_000)}`
  const saved = await postForm(base, '/settings', { replay_default_target: target })
  if (saved.status !== 200) throw new Error(`POST /settings answered ${saved.status}, expected 200`)
  const log = [`/log/${id}`, `/log/${signed.json<{ id: number }>().id}`]
  const filtered = `/log?provider=generic:${name}&event_type=${type}`
  return ['/', '/log', filtered, ...log, '/providers', '/settings']
}

async function refusals(base: string): Promise<void> {
  await post(base, 'code_host', '{}')
  await post(base, 'generic/ci', '{}', { Authorization: 'Bearer wrong' })
  const listed = async (): Promise<boolean> =>
    (await request(`${base}/log?rejected=1`)).text.includes('generic:ci</td>')
  await until(listed, 'the refusals to be listed')
}
