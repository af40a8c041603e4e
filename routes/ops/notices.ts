import Type from 'typebox'
import { noticeQueries as q, type ShownNotice } from '../../db/notices.ts'
import { noticePage } from '../../html/ops/notices.ts'
import { found } from '../../kernel/fault.ts'
import { acknowledgeNotice } from '../../services/notices/acknowledge.ts'
import { form, idOf, page, type OpsApp } from './kit.ts'

const PATH = '/notices/:id'
const params = { id: idOf('notice') }
const MAX_SENDS = 200

/** Where the link in a notice leads: looking changes nothing, the button acknowledges. */
export const noticeEndpoints = [
  page({
    path: PATH,
    params,
    async answer({ app, params: { id } }) {
      const notice = await findNotice(app, id)
      const sends = await q.listSends(app.ops.db, { notice: id, limit: MAX_SENDS })
      return { page: () => noticePage(notice, sends) }
    },
  }),

  form({
    path: `${PATH}/acknowledge`,
    params,
    find: ({ app, params: { id } }) => findNotice(app, id),
    body: Type.Object({}),
    async answer({ app: { ops }, actor, found: { id }, now }) {
      await acknowledgeNotice({ db: ops.db, actor }, id, now)
      return { location: `/notices/${id}` }
    },
  }),
]

async function findNotice({ ops }: OpsApp, id: number): Promise<ShownNotice> {
  return found(await q.findNotice(ops.db, { id }), 'notice')
}
