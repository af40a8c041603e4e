import fc from 'fast-check'
import postgres from 'postgres'
import type { Test } from 'tap'
import type { Backend } from '../helpers/backends.ts'
import { startLinks } from '../helpers/links.ts'
import type { LinksServer } from '../helpers/links.ts'
import type { Owner } from '../helpers/owner.ts'
import { TOKEN_NAMES, sequences } from './model-calls.ts'
import { openPlayer } from './model-player.ts'
import type { Reset } from './model-player.ts'

const seed = Number(process.env['GATEHOUSE_TEST_SEED'] ?? Date.now() % 2 ** 31)
const wanted = Number(process.env['GATEHOUSE_TEST_SEQUENCES'] ?? 0)

/**
 * Random calls by owners, co-owners, recipients, strangers and admins, with tokens of every scope, are answered as
 * a small model of the contracts says. When a sequence fails, the shortest one that does is shown with its seed:
 * GATEHOUSE_TEST_SEED=… repeats it, GATEHOUSE_TEST_SEQUENCES=… plays another number of sequences.
 */
export async function playModel(t: Test, backend: Backend, count: number): Promise<void> {
  const links = await startLinks(t, backend)
  const url = links.env['DATABASE_URL']
  const reset = url === undefined ? await resetByCalls(links) : resetBySql(t, url)
  const player = await openPlayer(t, links, reset)
  const runs = wanted > 0 ? wanted : count
  await fc.assert(
    fc.asyncProperty(sequences, (steps) => player.play(steps)),
    { numRuns: runs, seed },
  )
  t.comment(`${runs} sequences, ${player.calls()} calls, seed ${seed}`)
  t.ok(player.calls() > runs)
}

function resetBySql(t: Owner, url: string): Reset {
  const sql = postgres(url, { max: 1 })
  t.teardown(() => sql.end())
  return (people) =>
    sql.begin(async (tx) => {
      await tx`delete from links.links`
      await tx`delete from links.tags`
      await tx`delete from links.tokens where name in ${tx(TOKEN_NAMES)}`
      for (const { name, id } of people) {
        const role = name === 'root' ? 'admin' : 'user'
        await tx`update links.users set role = ${role} where id = ${id} and role <> ${role}`
      }
    })
}

/** By somebody whose role nobody changes; tokens are revoked by whose they are. */
async function resetByCalls(links: LinksServer): Promise<Reset> {
  const { api } = await links.user('keeper', { admin: true })
  return async (people) => {
    const { json } = await api<{ links: { id: string }[] }>('GET', '/admin/links?limit=200')
    for (const { id } of json.links) await api('DELETE', `/links/${id}`)
    for (const { name, id, token } of people) {
      await api('PUT', `/admin/users/${id}/role`, { role: name === 'root' ? 'admin' : 'user' })
      const own = links.api(token)
      const { tokens } = (await own<{ tokens: { id: string; name: string }[] }>('GET', '/tokens'))
        .json
      for (const made of tokens.filter((row) => TOKEN_NAMES.includes(row.name))) {
        await own('DELETE', `/tokens/${made.id}`)
      }
    }
  }
}
