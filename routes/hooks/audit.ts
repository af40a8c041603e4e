import { auditView } from '../../html/audit.ts'
import { AuditQuery, readAudit } from '../audit.ts'
import { page } from './kit.ts'

const PATH = '/audit'

/** Who changed what in hooks. */
export const auditEndpoints = [
  page({
    path: PATH,
    query: AuditQuery,
    async answer({ app, query }) {
      const changes = await readAudit(app.hooks.db, 'hooks', PATH, query)
      return auditView(changes, { section: 'none' })
    },
  }),
]
