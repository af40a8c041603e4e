import { userQueries } from '../../../../db/links/people/users.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import type { ChangeTools } from '../../../audit.ts'
import { ensureGroup } from '../../people/users/added-groups.ts'
import { isGroup, readGroup } from '../../people/users/groups.ts'
import { ensureUser, readEmail } from '../../people/users/users.ts'
import type { LinkData } from './records.ts'

/** How an import treats people. */
export interface PeopleOptions {
  /** E-mail address of the user who owns links without a known owner, as it is stored. */
  owner: string | undefined
  createUsers: boolean
  /** Whether groups may be co-owners and recipients; without, a line that names one is refused. */
  takesGroups: boolean
  dryRun: boolean
}

export type People = ReturnType<typeof openPeople>

/** The users and groups of an import. They are never removed, so each is looked up once. */
export function openPeople(tools: ChangeTools, options: PeopleOptions, now: () => Date) {
  /** By e-mail address, or name of a group; undefined for those who are no users. */
  const ids = new Map<string, string | undefined>()
  /** E-mail addresses of the users that were created, or would be. */
  const created = new Set<string>()

  async function idOf(email: string | undefined) {
    if (email === undefined) return undefined
    if (!ids.has(email)) ids.set(email, await findOrCreate(email))
    return ids.get(email)
  }

  /** In a dry run the address stands for the id of a new user. */
  async function findOrCreate(email: string) {
    const known = await userQueries.findUserByEmail(tools.db, { email })
    if (isGroup(email)) {
      if (options.dryRun && options.takesGroups) return known?.id ?? email
      return (await ensureGroup(tools.db, email, { ...options, at: now() })).id
    }
    if (known !== undefined || !options.createUsers) return known?.id
    created.add(email)
    return options.dryRun ? email : (await ensureUser(tools, email, 'user', now())).id
  }

  return {
    created,

    /**
     * Finds the owners and recipients of a link, and creates those who are no users if that is
     * wanted. The note is what the report says of them.
     */
    async of({ owner, coOwners, sharedWith }: LinkData) {
      const owners = coOwners.map(checkMember)
      const recipients = sharedWith.map(checkMember)
      const primary = await primaryOwner(owner, options.owner, idOf)
      const left: string[] = []
      for (const email of [...owners, ...recipients]) {
        if ((await idOf(email)) === undefined) left.push(email)
      }
      if (left.length > 0 && options.owner === undefined) {
        throw badRequest(`no user has the e-mail address ${left[0]}; ${WAY}`)
      }
      const idsOf = (emails: readonly string[]) =>
        emails.map((email) => ids.get(email)).filter((id) => id !== undefined)
      const ownerIds = new Set([primary, ...idsOf(owners)])
      const isOwned = owner === '' || ids.get(readEmail(owner) ?? '') !== undefined
      const notes = [
        !isOwned && `its owner ${owner} is no user`,
        left.length > 0 && `without ${left.join(' and ')}, who is no user`,
      ]
      return {
        owners: [...ownerIds].map((id) => ({ id, is_primary: id === primary })),
        recipients: [...new Set(idsOf(recipients))],
        note: notes.filter((note) => note !== false).join('; '),
      }
    },

    /** Looks unknown people up again: they may have been added meanwhile. */
    forgetUnknown() {
      for (const [email, id] of ids) {
        if (id === undefined) ids.delete(email)
      }
    },
  }
}

function checkMember(text: string) {
  const member = readEmail(text) ?? readGroup(text)
  if (member === undefined) throw badRequest(`"${text}" is no e-mail address, and no group`)
  return member
}

const WAY = 'let the import create users'

type FindId = (email: string | undefined) => Promise<string | undefined>

/** The user named as the owner of a link, else the owner of links without a known owner. */
async function primaryOwner(text: string, otherwise: string | undefined, idOf: FindId) {
  if (text === '' && otherwise === undefined) {
    throw badRequest('names no owner; give an owner for such links')
  }
  const email = readEmail(text)
  const id = (await idOf(email)) ?? (await idOf(otherwise))
  if (id !== undefined) return id
  if (email === undefined) throw badRequest(`its owner "${text}" is no e-mail address`)
  const ways = `${WAY}, or give an owner for such links`
  throw badRequest(`no user has the e-mail address of its owner, ${email}; ${ways}`)
}
