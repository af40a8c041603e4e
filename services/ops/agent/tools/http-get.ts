import * as Type from '../../../../kernel/schema.ts'
import { causeOf, messageOf } from '../../../../kernel/log.ts'
import type { Inventory } from '../../watch/inventory/inventory.ts'
import { readText } from '../../../../kernel/text.ts'
import { redactCut } from '../../redact.ts'
import { defineTool, done, refused } from './tool.ts'

const TIMEOUT_MS = 20_000
const MAX_BODY_BYTES = 64 * 1024

export const httpGetTool = defineTool({
  name: 'http_get',
  description:
    'Gets an http or https URL on a host and port of the inventory. ' +
    'Redirects are shown and not followed.',
  tier: 2,
  effect: 'reads',
  takes: { url: Type.String({ minLength: 1, maxLength: 4_000 }) },
  async run({ url: text }, { inventory, redact, job: { signal } }) {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      return refused('That is no http or https URL.')
    }
    if (url.username !== '' || url.password !== '') {
      return refused('The URL must have no user name and no password.')
    }
    // Its pages show stored webhooks and other people's links.
    if (inventory.isOurs(url) && url.pathname !== '/healthz') {
      return refused('Of Gatehouse itself only /healthz can be read.')
    }
    const hosts = hostsOf(await inventory.current())
    const host = hostOf(url)
    if (!hosts.has(host)) {
      const list = [...hosts].join(', ')
      return refused(`${host} is not in the inventory; these are: ${list}`)
    }
    try {
      const response = await fetch(url, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
        redirect: 'manual',
        headers: { 'user-agent': 'gatehouse-agent' },
      })
      const { text: body, cut } = await readText(response, MAX_BODY_BYTES)
      const shown = ['content-type', 'location', 'retry-after'].flatMap((name) => {
        const value = response.headers.get(name)
        return value === null ? [] : [`${name}: ${value}`]
      })
      const head = redact([`status: ${response.status}`, ...shown].join('\n'))
      const more = cut ? '\n(the rest is cut off)' : ''
      return done(`${head}\n\n${redactCut(body, cut, redact)}${more}`)
    } catch (error) {
      return refused(`No answer: ${messageOf(causeOf(error))}`)
    }
  },
})

/** Host and port of all network checks of the inventory. */
function hostsOf({ services }: Inventory) {
  const checks = services.flatMap((service) => service.checks)
  return new Set(
    checks.flatMap((check) => {
      if (check.type === 'http') return [hostOf(new URL(check.url))]
      if (!('host' in check) || check.type === 'ping') return []
      const ports = check.type === 'dns' ? [80, 443] : [check.port ?? 443]
      return ports.map((port) => hostWithPort(check.host, port))
    }),
  )
}

function hostOf({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`
}

/** In the spelling of a URL, for comparison. */
function hostWithPort(host: string, port: number): string {
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  const url = `http://${name}:${port}`
  return URL.canParse(url) ? `${new URL(url).hostname}:${port}` : `${name}:${port}`
}
