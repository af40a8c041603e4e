import { randomInt } from 'node:crypto'
import { request } from '../../test/helpers/http.ts'
import { HAS_WRK, ownLoad, wrkLoad, type LoadRound } from './wrk.ts'

/** Connections of a round of visits without a rest. */
export const VISITORS = 32

/** Makes the links `bench-0`, `bench-1`, …. */
export function linksSeed(count: number): string {
  return `
with made as (
  insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
  select 'bench-' || n, 'https://example.com/page/' || n, '', '', 'public', false, now(), now()
    from generate_series(0, ${count - 1}) as n
  returning slug, id
)
insert into links.names (name, link_id) select slug, id from made`
}

/** What a round of visits asks for. */
export interface VisitOrder {
  readonly port: number
  readonly seconds: number
  /** How many of the links are visited, each time one of them at random. */
  readonly links: number
  /** For a steady rate: connections, and the milliseconds that each of them rests before a request. Needs wrk. */
  readonly steady?: { readonly connections: number; readonly rest: number }
}

/** A round of visits by wrk where it is installed, else by our own client. */
export function visitLinks({ port, seconds, links, steady }: VisitOrder): Promise<LoadRound> {
  const { connections, rest } = steady ?? { connections: VISITORS, rest: 0 }
  const order = { port, seconds, connections }
  const args = [links, randomInt(2 ** 31), rest].map(String)
  if (HAS_WRK) return wrkLoad({ ...order, script: 'redirects.lua', args })
  if (steady !== undefined) throw new Error('visits at a steady rate need wrk: install it')
  const requests = Array.from({ length: links }, (_, n) => ({ head: headOf(n), tail: '\r\n\r\n' }))
  return ownLoad({ ...order, requests, expect: 'HTTP/1.1 302' })
}

function headOf(n: number): string {
  return `GET /bench-${n} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Mozilla/5.0\r\nX-Run: `
}

/** How many redirects a server itself says that it has answered. */
export async function redirectsMade(base: string): Promise<number> {
  const { text } = await request(`${base}/metrics`)
  const line =
    /^gatehouse_http_requests_total\{service="links",route="\/:slug",status="302"\} (\d+)$/m
  return Number(line.exec(text)?.[1])
}
