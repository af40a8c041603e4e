import { createHash } from 'node:crypto'
import type { Link } from '../../db/links/rows.ts'

/** A link as the API shows it: what the caller is to it is not part of its version. */
type ShownLink = Link & { readonly is_owner?: never }

/** Whether a change may be made to the link as it is in this version. */
export type Precondition = (version: string) => boolean

/**
 * The version of a link: a hash of all that the API shows of it, with owners and tags. Times alone
 * would not do: two changes may have the same one, and clocks are set back.
 */
export function versionOf(link: ShownLink): string {
  return createHash('sha256').update(JSON.stringify(link)).digest('base64url')
}
