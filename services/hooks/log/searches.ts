import * as Type from '../../../kernel/schema.ts'
import type { Executor } from '../../../db/client.ts'
import { searchQueries as q, type Search } from '../../../db/hooks/log/searches.ts'
import { Fault, found } from '../../../kernel/fault.ts'
import { TURNS_TEXT } from '../../../kernel/text.ts'
import { field } from '../../../kernel/validate.ts'
import { makeChange, noteChange, type ChangeNote, type ChangeTools } from '../../audit.ts'
import { readAddress } from './events/log-address.ts'

// Searches of the log under a name: all people see and change the same ones.

/** All of them stand in a menu. */
const MAX_SEARCHES = 100
/** The table has the same bounds. */
const MAX_NAME = 60
const MAX_QUERY = 2_000

const NAME_FORM = `must have 1 to ${MAX_NAME} characters.`
const name = field(
  Type.String({ minLength: 1, maxLength: MAX_NAME }),
  NAME_FORM,
  [(text) => text.trim() !== '', NAME_FORM],
  [(text) => !/[\p{Cc}\p{Cs}]/u.test(text), 'must have no control characters.'],
  [(text) => !TURNS_TEXT.test(text), 'must have no characters that turn the direction of text.'],
)

/** What renames a search. */
export const SearchName = Type.Object({ name }, { additionalProperties: false })

/** What saves a search. */
export const SearchForm = Type.Object(
  {
    name,
    query: field(
      Type.String({ description: 'The filters, as the address of the log has them' }),
      'must be the query of an address of the log.',
    ),
  },
  {
    additionalProperties: false,
    examples: [{ name: 'Globex', query: 'q=type:invoice.*+customer:Globex&when=7d' }],
  },
)

/** By name. */
export function listSearches(db: Executor): Promise<readonly Search[]> {
  return q.listSearches(db, { limit: MAX_SEARCHES })
}

/** One of them; throws 404. */
export async function findSearch(db: Executor, id: number): Promise<Search> {
  const searches = await listSearches(db)
  return found(
    searches.find((search) => search.id === id),
    'Search',
  )
}

/** Saves the filters of an address. Throws 400 and 422 for wrong ones, 409 for a taken name. */
export function addSearch(
  tools: ChangeTools,
  given: Pick<Search, 'name' | 'query'>,
  now: Date,
): Promise<Search> {
  const row = { name: given.name.trim(), query: readFilters(given.query, now) }
  return makeChange(tools, noteOf('save', row.name), async (tx) => {
    await q.lockSearches(tx, {})
    const others = await listSearches(tx)
    refuseTaken(others, row.name)
    if (others.length >= MAX_SEARCHES) {
      const message = `There are ${MAX_SEARCHES} saved searches already; remove one first.`
      throw new Fault(409, 'CONFLICT', message, { field: 'name' })
    }
    return q.addSearch(tx, row)
  })
}

/** Throws 404 for an unknown id, and 409 for a name that another search has. */
export function renameSearch(tools: ChangeTools, id: number, name: string): Promise<Search> {
  const row = { id, name: name.trim() }
  return makeChange(tools, noteOf('rename', row.name), async (tx) => {
    await q.lockSearches(tx, {})
    const others = await listSearches(tx)
    refuseTaken(
      others.filter((other) => other.id !== id),
      row.name,
    )
    return found(await q.renameSearch(tx, row), 'Search')
  })
}

/** Throws 404 for an unknown id. */
export async function removeSearch({ db, actor }: ChangeTools, id: number): Promise<void> {
  await db.transaction(async (tx) => {
    const { name } = found(await q.removeSearch(tx, { id }), 'Search')
    await noteChange(tx, actor, noteOf('remove', name))
  })
}

function readFilters(query: string, now: Date): string {
  const address = readAddress(query, now)
  if (address === '') throw wrongQuery('There must be a filter to save.')
  if (address.length <= MAX_QUERY) return address
  throw wrongQuery(
    `The filters must have ${MAX_QUERY} characters at most, as an address has them.`,
  )
}

/** No field of the form has the filters, below which it could stand. */
function wrongQuery(message: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', message)
}

function refuseTaken(others: readonly Search[], name: string): void {
  if (!others.some((other) => other.name === name)) return
  const message = `There is a saved search "${name}" already; choose another name.`
  throw new Fault(409, 'CONFLICT', message, { field: 'name' })
}

/** The line of a change in the audit. */
function noteOf(verb: string, subject: string): ChangeNote {
  return { service: 'hooks', action: `search ${verb}`, subject }
}
