import { exchange } from './wire.ts'
import type { WireRequest } from './wire.ts'
import { addEndpoint, modern } from '../../helpers/mcp.ts'
import type { Endpoint } from '../../helpers/mcp.ts'
import { addSigned, change, sendStandard } from '../../helpers/senders.ts'
import { SIGNED, addProvider, deliver, enable, eventIds, post } from '../../helpers/hooks.ts'

/** Where a replay goes: nobody listens there. */
export const NOBODY = 'http://127.0.0.1:9/hook'
/** Generic senders that are there: without a check, with a token, and signing. */
export const [OPEN, TOKEN, STANDARD] = ['keep-open', 'keep-token', 'keep-signed'] as const

/** The senders and the endpoint that requests go to, made anew when a request has removed them. */
export function openKeep(base: string) {
  let [token, secret] = ['', '']
  let endpoint: Endpoint | undefined
  let pools: Readonly<Record<string, readonly string[]>> = {}

  async function remake(name: string, make: () => Promise<string>): Promise<string> {
    await change(base, `generic:${name}`, 'remove')
    return make()
  }

  async function refresh(): Promise<void> {
    for (const provider of SIGNED) await enable(base, provider, true)
    const body = '{"id":"evt_1","type":"kept","event_id":"evt_1"}'
    for (const provider of SIGNED) await deliver(base, provider, body)
    const opened = await post(base, `generic/${OPEN}`, body)
    if (opened.status !== 202) await remake(OPEN, () => addProvider(base, OPEN, { open: true }))
    const known = await post(base, `generic/${TOKEN}`, body, { Authorization: `Bearer ${token}` })
    if (known.status !== 202) token = await remake(TOKEN, () => addProvider(base, TOKEN))
    const signed = secret === '' ? 0 : (await sendStandard(base, STANDARD, secret)).status
    if (signed !== 202) secret = await remake(STANDARD, () => addSigned(base, STANDARD))
    const asked = endpoint === undefined ? 0 : (await modern(endpoint, 'tools/list')).status
    if (asked !== 200) {
      await change(base, '', '../settings/endpoints/keep/revoke')
      endpoint = await addEndpoint(base, 'keep', { allow_replay: 'true' })
    }
    // It leaves at once: its name is known, and may be forgotten.
    await exchange(new URL(base), forwarder(base, OPEN))
    const ids = (await eventIds(base)).slice(0, 40).map(String)
    pools = {
      event: ids,
      name: [OPEN, TOKEN, STANDARD, 'shop', 'ci', 'a-b_c', '0'],
      token: [token],
    }
  }

  return {
    refresh,
    pools: () => pools,
    token: () => token,
    secret: () => secret,
    endpoint: (): Endpoint => endpoint ?? { url: '', token: '' },
  }
}

/** Their secrets, and what there is, now. */
export type Keep = ReturnType<typeof openKeep>

/** What asks for a WebSocket. */
export const UPGRADE: readonly (readonly [string, string])[] = [
  ['connection', 'Upgrade'],
  ['upgrade', 'websocket'],
  ['sec-websocket-version', '13'],
  ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ=='],
]

function forwarder(base: string, name: string): WireRequest {
  return {
    ...{ method: 'GET', body: undefined, framing: 'length' },
    target: `/relay?name=${name}&target=${NOBODY}`,
    headers: [['host', new URL(base).host], ...UPGRADE],
  }
}
