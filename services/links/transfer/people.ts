import type { Database } from '../../../db/client.ts'
import type { NewLink } from '../../../db/links/transfer.ts'
import { userQueries } from '../../../db/links/users.ts'
import { badRequest } from '../../../kernel/fault.ts'
import { ensureUser, readEmail } from '../users.ts'
import type { ImportedLink } from './records.ts'

/** How an import treats people. */
export interface PeopleOptions {
  /** E-mail address of the user who owns links without a known owner, as it is stored. */
  readonly owner: string | undefined
  readonly createUsers: boolean
  readonly dryRun: boolean
}

/** The owners and recipients of a link, and what the report says of them. */
type LinkPeople = Pick<NewLink, 'owners' | 'recipients'> & { readonly note: string }

/** The users of an import. */
export interface People {
  /** Finds the people of a link, and creates those who are no users if that is wanted. */
  of(link: ImportedLink): Promise<LinkPeople>
  /** Looks unknown people up again: they may have been added meanwhile. */
  forgetUnknown(): void
  /** The number of users that were created, or would be. */
  readonly created: number
}

/** Users are never removed, so an import looks each of them up once. */
export function openPeople(db: Database, options: PeopleOptions, now: () => Date): People {
  const ids = new Map<string, string>()
  const unknown = new Set<string>()
  let created = 0

  async function idOf(email: string | undefined): Promise<string | undefined> {
    if (email === undefined || unknown.has(email)) return undefined
    const known = ids.get(email) ?? (await userQueries.findUserByEmail(db, { email }))?.id
    const id = known ?? (await create(email))
    if (id === undefined) unknown.add(email)
    else ids.set(email, id)
    return id
  }

  /** In a dry run the address stands for the id of a new user. */
  async function create(email: string): Promise<string | undefined> {
    if (!options.createUsers) return undefined
    created += 1
    return options.dryRun ? email : (await ensureUser(db, email, 'user', now())).id
  }

  async function primaryOwner(text: string): Promise<string> {
    if (text === '' && options.owner === undefined) {
      throw badRequest('names no owner; --owner EMAIL gives it one')
    }
    const email = readEmail(text)
    const id = (await idOf(email)) ?? (await idOf(options.owner))
    if (id !== undefined) return id
    if (email === undefined) throw badRequest(`its owner "${text}" is no e-mail address`)
    const ways = '--create-users makes one, --owner EMAIL gives the link to somebody else'
    throw badRequest(`no user has the e-mail address of its owner, ${email}; ${ways}`)
  }

  return {
    async of({ owner, coOwners, sharedWith }) {
      const others = [...coOwners, ...sharedWith]
      const invalid = others.find((text) => readEmail(text) === undefined)
      if (invalid !== undefined) throw badRequest(`"${invalid}" is no e-mail address`)
      const primary = await primaryOwner(owner)
      const found = new Map<string, string>()
      for (const text of others) {
        const id = await idOf(readEmail(text))
        if (id !== undefined) found.set(text, id)
      }
      const left = others.filter((text) => !found.has(text))
      if (left.length > 0 && options.owner === undefined) {
        throw badRequest(`no user has the e-mail address ${left[0]}; --create-users makes one`)
      }
      const idsOf = (texts: readonly string[]): readonly string[] => [
        ...new Set(texts.map((text) => found.get(text)).filter((id) => id !== undefined)),
      ]
      const further = idsOf(coOwners).filter((id) => id !== primary)
      return {
        owners: [
          { id: primary, is_primary: true },
          ...further.map((id) => ({ id, is_primary: false })),
        ],
        recipients: idsOf(sharedWith),
        note: left.length === 0 ? '' : `without ${left.join(' and ')}, who is no user`,
      }
    },
    forgetUnknown: () => unknown.clear(),
    get created() {
      return created
    },
  }
}
