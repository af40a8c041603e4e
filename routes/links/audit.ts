import { auditView } from '../../html/audit.ts'
import { adminTabs } from '../../html/links/layout.ts'
import { AuditQuery, readAudit } from '../audit.ts'
import { admin, signedIn } from './access.ts'
import { page } from './kit.ts'

const PATH = '/-/admin/audit'

/** Who changed users and tokens, and who deleted links. The history of a link is on its page. */
export const auditEndpoints = [
  page({
    path: PATH,
    access: admin(signedIn),
    query: AuditQuery,
    async answer({ app, query }) {
      const changes = await readAudit(app.links.db, 'links', PATH, query)
      return auditView(changes, { section: 'admin', below: adminTabs('audit') })
    },
  }),
]
