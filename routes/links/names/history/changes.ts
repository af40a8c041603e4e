import type { Database } from '../../../../db/client.ts'
import { historyQueries } from '../../../../db/links/names/history.ts'
import type { LinkAccess } from '../../../../db/links/names/links.ts'
import type { HistoryView } from '../../../../html/links/names/history.ts'
import { leavesVersion } from '../../../../services/links/names/history.ts'
import { changeList, newestFirst } from '../../paging.ts'

/** Changes of one page. */
const ROWS = 50

/** Which page of a history is asked for, and whether the viewer may restore versions. */
interface HistoryAsked {
  mayRestore: boolean
  cursor?: string | undefined
}

/** A page of a link's history for its view. */
export async function historyOf(
  db: Database,
  link: LinkAccess,
  { mayRestore, cursor }: HistoryAsked,
): Promise<HistoryView> {
  const { id } = link
  const { changes, next_cursor } = await changeList.read(
    { limit: ROWS, ...(cursor !== undefined && { cursor }) },
    (slice) => historyQueries.listChanges(db, { link: id, ...newestFirst(slice) }),
  )
  const versions = changes.filter(leavesVersion).map((change) => change.id)
  // On the first page the first one is the present version.
  const earlier = cursor === undefined ? versions.slice(1) : versions
  const next = next_cursor && `/-/links/${id}/history?cursor=${encodeURIComponent(next_cursor)}`
  return { link, changes, next, restorable: new Set(mayRestore ? earlier : []) }
}
