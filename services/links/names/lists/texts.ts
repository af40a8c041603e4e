import { createHash } from 'node:crypto'
import type { Executor } from '../../../../db/client.ts'
import { listQueries as q } from '../../../../db/links/names/lists.ts'
import type { State } from '../links/lifecycle.ts'

/**
 * Brings up to date what searches compare of links: after a change of links, their tags, owners or
 * recipients.
 */
export async function writeTexts(tx: Executor, slugs: readonly string[]): Promise<void> {
  if (slugs.length === 0) return
  const found = await q.listAddresses(tx, { slugs, limit: slugs.length })
  const links = found.map(({ slug, url }) => ({ slug, key: addressKey(url) }))
  await q.writeTexts(tx, { links })
}

/**
 * The key that all links of a state have, and perhaps others: see `link_texts.keys` in the
 * migrations.
 */
export const STATE_KEYS: Readonly<Record<Exclude<State, 'active'>, string>> = {
  expired: 'expires',
  used_up: 'used_up',
  archived: 'archived',
}

/** The key that all links to an address have. */
export function addressKey(url: string): string {
  return `url:${createHash('sha256').update(comparable(url)).digest('hex').slice(0, 32)}`
}

/**
 * An address as it is compared: in the form of the URL standard, in which browsers show it. Scheme
 * and host are in small letters, a default port is dropped, an empty path is `/`, and other
 * characters than ASCII are encoded. An empty fragment is dropped; any other one counts, because
 * applications keep their pages there.
 */
function comparable(text: string): string {
  const url = new URL(text)
  if (url.hash === '') url.hash = ''
  return url.href
}
