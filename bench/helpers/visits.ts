import { randomInt } from 'node:crypto'
import { request } from '../../test/helpers/http.ts'
import { HAS_WRK, ownLoad, wrkLoad, type LoadRound } from './wrk.ts'

/** Connections of a round of visits. */
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
}

/** A round of visits by wrk where it is installed, else by our own client. */
export function visitLinks({ port, seconds, links }: VisitOrder): Promise<LoadRound> {
  const order = { port, seconds, connections: VISITORS }
  const seed = String(randomInt(2 ** 31))
  if (HAS_WRK) return wrkLoad({ ...order, script: 'redirects.lua', args: [String(links), seed] })
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
