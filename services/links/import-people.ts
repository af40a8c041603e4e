import type { Database } from '../../db/client.ts'
import type { NewLink } from '../../db/links/transfer.ts'
import { userQueries } from '../../db/links/users.ts'
import type { ImportedLink } from './import-line.ts'
import { ensureUser, readEmail } from './users.ts'

/** What an import does with people. */
export interface PeopleOptions {
  /** Who owns what nobody known owns; in its stored form. */
  readonly owner: string | undefined
  readonly createUsers: boolean
  readonly dryRun: boolean
}

/** A link's people, or why they can't be its people. */
type LinkPeople = Pick<NewLink, 'owners' | 'recipients'> & { readonly note: string }

/** The users of an import. */
export interface People {
  /** Finds a line's people; those who are nobody yet become users when that is wanted. */
  of(link: ImportedLink): Promise<LinkPeople | { readonly problem: string }>
  /** Looks again for those who were nobody: somebody may have been added meanwhile. */
  forgetNobody(): void
  /** How many became users, or would. */
  readonly created: number
}

/** Each user is looked up once in an import, as none is ever removed. */
export function openPeople(db: Database, options: PeopleOptions, now: () => Date): People {
  const ids = new Map<string, string>()
  const nobodys = new Set<string>()
  let created = 0

  /** The id of a user, made when that is wanted; undefined for nobody. */
  async function idOf(email: string): Promise<string | undefined> {
    if (nobodys.has(email)) return undefined
    const id =
      ids.get(email) ??
      (await userQueries.findUserByEmail(db, { email }))?.id ??
      (await make(email))
    if (id === undefined) nobodys.add(email)
    else ids.set(email, id)
    return id
  }
  async function make(email: string): Promise<string | undefined> {
    if (!options.createUsers) return undefined
    created += 1
    return options.dryRun ? email : (await ensureUser(db, email, 'user', now())).id
  }

  /** The primary owner, in a dry run under a made-up id when it has none yet. */
  async function primaryOf(text: string): Promise<string | { readonly problem: string }> {
    if (text === '' && options.owner === undefined) {
      return { problem: 'names no owner; --owner EMAIL gives it one' }
    }
    const email = readEmail(text)
    const own = email === undefined ? undefined : await idOf(email)
    const id = own ?? (options.owner === undefined ? undefined : await idOf(options.owner))
    if (id !== undefined) return id
    if (email === undefined) return { problem: `its owner "${text}" is no e-mail address` }
    const ways = '--create-users makes one, --owner EMAIL gives the link to somebody else'
    return { problem: `no user has the e-mail address of its owner, ${email}; ${ways}` }
  }

  /** Further people; nobody is left out unless somebody else takes what unknown people own. */
  async function others(
    texts: readonly string[],
  ): Promise<{ readonly found: readonly string[]; readonly left: readonly string[] }> {
    const [found, left]: [string[], string[]] = [[], []]
    for (const text of texts) {
      const email = readEmail(text)
      const id = email === undefined ? undefined : await idOf(email)
      if (id === undefined) left.push(text)
      else found.push(id)
    }
    return { found, left }
  }

  return {
    async of({ owner, coOwners, sharedWith }) {
      const invalid = [...coOwners, ...sharedWith].find((text) => readEmail(text) === undefined)
      if (invalid !== undefined) return { problem: `"${invalid}" is no e-mail address` }
      const primary = await primaryOf(owner)
      if (typeof primary !== 'string') return primary
      const [co, shared] = [await others(coOwners), await others(sharedWith)]
      const left = [...co.left, ...shared.left]
      if (left.length > 0 && options.owner === undefined) {
        return { problem: `no user has the e-mail address ${left[0]}; --create-users makes one` }
      }
      const owners = new Set(co.found).difference(new Set([primary]))
      return {
        owners: [
          { id: primary, is_primary: true },
          ...[...owners].map((id) => ({ id, is_primary: false })),
        ],
        recipients: [...new Set(shared.found)],
        note: left.length === 0 ? '' : `without ${left.join(' and ')}, who is no user`,
      }
    },
    forgetNobody: () => nobodys.clear(),
    get created() {
      return created
    },
  }
}
