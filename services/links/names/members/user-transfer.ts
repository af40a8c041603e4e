import type { Executor } from '../../../../db/client.ts'
import { deletedQueries } from '../../../../db/links/names/deleted.ts'
import { memberQueries as q, type Places } from '../../../../db/links/names/members.ts'
import type { User } from '../../../../db/links/people/users.ts'
import { actorText } from '../../../../kernel/actor.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'
import { writeTexts } from '../lists/texts.ts'
import { writeHiddenTags } from '../tags.ts'

/** Links of one transaction: their visitors' clicks wait for it. */
const BATCH = 200

/** The user who gives all places in links, and the user who gets them. */
interface UserTransfer {
  from: User
  to: User
}

/** What the statements that move places need to know. */
interface Move {
  from: string
  to: string
  at: Date
  actor: string
}

/** Moves one batch of a kind of place; gives how many links it found. */
type MoveBatch = (tx: Executor, move: Move, emails: readonly string[]) => Promise<number>

const MOVES: Readonly<Record<keyof Places, MoveBatch>> = {
  async owned(tx, move, emails) {
    const found = await q.lockOwnedLinks(tx, { user: move.from, limit: BATCH })
    const slugs = found.map(({ slug }) => slug)
    await q.moveOwners(tx, { ...move, slugs, detail: { owner: emails } })
    await writeHiddenTags(tx, slugs)
    await writeTexts(tx, slugs)
    return slugs.length
  },
  async shared(tx, move, emails) {
    const found = await q.lockSharedLinks(tx, { user: move.from, limit: BATCH })
    const slugs = found.map(({ slug }) => slug)
    await q.moveShares(tx, { ...move, slugs, detail: { share: emails } })
    await writeHiddenTags(tx, slugs)
    await writeTexts(tx, slugs)
    return slugs.length
  },
  async deleted(tx, move, emails) {
    const found = await deletedQueries.lockDeletedOwned(tx, { user: move.from, limit: BATCH })
    const deletions = found.map(({ deletion }) => deletion)
    await deletedQueries.moveDeletedOwners(tx, { ...move, deletions, detail: { owner: emails } })
    return deletions.length
  },
}

/** Throws 400 where the links would have no other, active owner. */
export function checkTransfer({ from, to }: UserTransfer): void {
  if (from.id === to.id) throw badRequest('links move to another user, not to the same one')
  if (to.disabled_at !== null) throw badRequest(`${to.email} is disabled; enable this user first`)
}

/**
 * Gives all places of a user in links to another one: owner, co-owner, recipient, and owner of
 * deleted links. Each batch is a transaction with its lines in the histories and in the audit, so
 * that a transfer that was interrupted goes on where it is started again.
 */
export async function transferUser(
  { db, actor }: ChangeTools,
  transfer: UserTransfer,
  at: Date,
): Promise<Places> {
  checkTransfer(transfer)
  const { from, to } = transfer
  const move = { from: from.id, to: to.id, at, actor: actorText(actor) }
  const moveAll = async (kind: keyof Places) => {
    let moved = 0
    for (;;) {
      const batch = await db.transaction(async (tx) => {
        const links = await MOVES[kind](tx, move, [from.email, to.email])
        const subject = `${from.email} to ${to.email}, ${kind}: ${links}`
        const note = { service: 'links', action: 'user transfer', subject } as const
        if (links > 0) await noteChange(tx, actor, note)
        return links
      })
      moved += batch
      if (batch === 0) return moved
    }
  }
  const owned = await moveAll('owned')
  const shared = await moveAll('shared')
  return { owned, shared, deleted: await moveAll('deleted') }
}
