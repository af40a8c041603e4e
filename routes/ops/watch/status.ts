import { statusDocument } from '../../../html/ops/watch/status.ts'
import { NO_ROUTE } from '../../../kernel/fault.ts'
import { anyone } from '../../../kernel/http/endpoint.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import { raw } from '../kit.ts'

/** Anybody may read it while it is on (decisions.md section 7, New open paths). */
const access = { ...anyone, guard: 'open' } as const

/** A proxy or browser may keep it that long. */
const CACHED = { 'cache-control': 'public, max-age=30' }

/** `/status`: a page for others, of the services that `OPS_STATUS_SERVICES` names. */
export const statusEndpoints = [
  raw({
    path: '/status',
    access,
    async answer({ app: { ops } }) {
      const status = await ops.publicStatus()
      if (status === undefined) throw NO_ROUTE
      return htmlReply(statusDocument(status), 200, CACHED)
    },
  }),
]
