import { badRequest } from '../../../../kernel/fault.ts'
import { parseObject, stringOf } from '../../../../kernel/json.ts'
import { withoutPlaces } from '../../names/links/placeholders.ts'
import { readImportTime, slugOfName, type LinkRecord } from './records.ts'

/** A time of an installation on SQLite, which is in UTC. */
const SQLITE_TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$/

/**
 * Reads a link as kutt's API (v2) lists it: one's own at `/links`, without an owner, or everybody's
 * at `/links/admin`, with the owner's address and a domain also where it is the default one.
 */
export function readKutt(text: string): LinkRecord {
  const object = parseObject(text)
  const word = (name: string) => stringOf(object?.[name])?.toWellFormed() ?? ''
  const address = word('address')
  const target = word('target')
  const isDefaultDomain = object?.['domain_id'] === null || word('domain') === ''
  const domain = isDefaultDomain ? '' : word('domain')
  const slug = slugOfName(address)
  const isBanned = object?.['banned'] === true || object?.['banned'] === 1
  return {
    slug,
    name: domain === '' ? address : `${domain}/${address}`,
    read() {
      if (address === '') throw badRequest('address is missing')
      if (target === '') throw badRequest('target is missing')
      if (object?.['password'] === true) {
        const way = 'create it here as a secure link and share it'
        throw badRequest(`asks for a password, which links here don't have; ${way}`)
      }
      const note = [
        slug !== address && `was "${address}"`,
        domain !== '' && `of ${domain}`,
        isBanned && 'archived: it was banned',
      ]
      const expires = word('expire_in').replace(SQLITE_TIME, '$1T$2Z')
      return {
        fields: {
          url: withoutPlaces(target),
          description: word('description'),
          expires_at: expires === '' ? null : expires,
          archived: isBanned ? true : undefined,
        },
        owner: word('email'),
        coOwners: [],
        sharedWith: [],
        created_at: readImportTime('created_at', word('created_at')),
        updated_at: readImportTime('updated_at', word('updated_at')),
        note: note.filter((part) => part !== false).join('; '),
      }
    },
  }
}
