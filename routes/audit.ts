import * as Type from '../kernel/schema.ts'
import type { Static } from '../kernel/schema.ts'
import { auditQueries, type Change } from '../db/audit.ts'
import type { Database } from '../db/client.ts'
import type { AuditPage } from '../html/audit.ts'
import { field, withDefault } from '../kernel/validate.ts'

const PAGE_ROWS = 50
const FIRST = Number.MAX_SAFE_INTEGER

/** The query of a service's page of the audit: the id that the page begins below. */
export const AuditQuery = Type.Object({
  before: field(
    withDefault(Type.Integer({ minimum: 1, maximum: FIRST }), FIRST),
    'must be the id of a change',
  ),
})

/** Reads a page of the changes of a service. */
export async function readAudit(
  db: Database,
  service: Change['service'],
  path: string,
  { before }: Static<typeof AuditQuery>,
): Promise<AuditPage> {
  // One row more tells whether there is a next page.
  const asked = { service, since: new Date(0), before, limit: PAGE_ROWS + 1 }
  const rows = await auditQueries.listChanges(db, asked)
  const changes = rows.slice(0, PAGE_ROWS)
  const last = rows.length > PAGE_ROWS ? changes.at(-1) : undefined
  return { changes, next: last === undefined ? null : `${path}?before=${last.id}` }
}
