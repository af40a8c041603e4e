import * as Type from '../../../../kernel/schema.ts'
import type { Executor } from '../../../../db/client.ts'
import { incidentQueries as q, type Note } from '../../../../db/ops/alerts/incidents.ts'
import { actorText } from '../../../../kernel/actor.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { field } from '../../../../kernel/validate.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'

/** What people note of an alert is read whole with its page. */
const MAX_NOTES = 100
const TEXT = 'must be a text of 4,000 characters at most that is not blank'

/** What a person notes. */
export const NoteRequest = Type.Object(
  {
    text: field(
      Type.String({ minLength: 1, maxLength: 4_000 }),
      { wrong: TEXT, missing: `is required and ${TEXT}` },
      [(text) => text.trim() !== '' && !text.includes('\0'), TEXT],
    ),
  },
  { additionalProperties: false, examples: [{ text: 'The provider had a power cut.' }] },
)

/** Adds a note to an alert that exists. Throws 409 where it has too many. */
export function addNote(
  { db, actor }: ChangeTools,
  alert: number,
  { text }: Type.Static<typeof NoteRequest>,
  now: Date,
): Promise<Note> {
  return db.transaction(async (tx) => {
    const note = { alert, text, author: actorText(actor), now, most: MAX_NOTES }
    const added = await q.addNote(tx, note)
    if (added === undefined) {
      throw new Fault(409, 'CONFLICT', `the alert has ${MAX_NOTES} notes already`)
    }
    await noteChange(tx, actor, {
      service: 'ops',
      action: 'alert note',
      subject: `alert ${alert}`,
    })
    return added
  })
}

/** Oldest first. */
export function listNotes(db: Executor, alert: number): Promise<readonly Note[]> {
  return q.listNotes(db, { alert, limit: MAX_NOTES })
}
