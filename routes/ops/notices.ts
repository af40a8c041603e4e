import * as Type from '../../kernel/schema.ts'
import { noticeQueries as q } from '../../db/notices.ts'
import { noticePage, noticesView } from '../../html/ops/notices.ts'
import { found } from '../../kernel/fault.ts'
import { formatDuration } from '../../kernel/time.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import { acknowledgeNotice } from '../../services/notices/acknowledge.ts'
import {
  findListed,
  ListedNotice,
  ListedTarget,
  listNotices,
  listTargets,
  MAX_SENDS,
  pageNotices,
  pageOf,
} from '../../services/notices/list.ts'
import { action, api, idOf, page, type OpsApp } from './kit.ts'
import { listApi, paging, pagingByTime, readPageAfter, type Key } from './paging.ts'

const PATH = '/notices'
const API = '/api/v1/notices'
const params = { id: idOf('notice') }
const Lasting = field(
  withDefault(Type.Boolean({ description: 'Only what lasts now' }), false),
  'must be true or false',
)
/** More than last at a time, where anybody looks after them. */
const MAX_LASTING = 100

/** What people were told. Looking changes nothing: the button acknowledges. */
export const noticeEndpoints = [
  page({
    path: PATH,
    query: Type.Object(pagingByTime(50)),
    async answer({ app, query }) {
      const { db, siteUrl } = app.ops
      const lastingOnes = { lasting: true, offset: 0, limit: MAX_LASTING }
      const [lasting, targets, listed] = await Promise.all([
        listNotices(db, siteUrl, lastingOnes),
        readTargets(app),
        readPageAfter(PATH, query, keyOf, ({ after: { rank, id }, limit }) =>
          pageNotices(db, siteUrl, { at: new Date(rank), id, limit }),
        ),
      ])
      const shown = targets.map((target) => ({ ...target, rules: rulesText(target) }))
      return noticesView({ lasting, targets: shown, ...listed })
    },
  }),

  listApi('Notices', {
    summary: 'List what people were told, newest first, with what each target got.',
    row: ListedNotice,
    query: Type.Object({ ...paging(100), lasting: Lasting }),
    list: ({ app: { ops }, query }) => listNotices(ops.db, ops.siteUrl, query),
  }),

  api({
    method: 'GET',
    path: `${API}/targets`,
    id: 'listNoticeTargets',
    tag: 'Notices',
    summary: 'List where notices go, and whether they are taken there.',
    returns: {
      description: 'Targets',
      schema: Type.Object({ targets: Type.Array(ListedTarget) }),
    },
    answer: async ({ app }) => ({ targets: await readTargets(app) }),
  }),

  page({
    path: `${PATH}/:id`,
    params,
    async answer({ app: { ops }, params: { id } }) {
      const notice = found(await q.findNotice(ops.db, { id }), 'notice')
      const sends = await q.listSends(ops.db, { notice: id, limit: MAX_SENDS })
      return { page: () => noticePage(notice, pageOf(notice, ops.siteUrl), sends) }
    },
  }),

  ...action({
    params,
    async act({ app: { ops }, actor, params: { id }, now }) {
      await findListed(ops.db, ops.siteUrl, id)
      await acknowledgeNotice({ db: ops.db, actor }, id, now)
      return findListed(ops.db, ops.siteUrl, id)
    },
    api: {
      method: 'POST',
      path: `${API}/:id/acknowledge`,
      id: 'acknowledgeNotice',
      tag: 'Notices',
      summary: 'Say that somebody looks after it: the first one counts, and reminders end.',
      returns: { description: 'The notice as it is now', schema: ListedNotice },
    },
    form: {
      path: `${PATH}/:id/acknowledge`,
      answer: ({ params: { id } }) => ({ location: `${PATH}/${id}`, done: ['acknowledged'] }),
    },
  }),
]

function keyOf({ created_at, id }: ListedNotice): Key {
  return { rank: created_at.getTime(), id }
}

function readTargets({ ops }: OpsApp): Promise<readonly ListedTarget[]> {
  return listTargets(ops.db, ops.notifyUrls(), ops.secretBox)
}

/** What a target gets, in words. */
function rulesText({ services, levels, quiet, after_s, remind_s }: ListedTarget): string {
  const rules = [
    services === null ? 'all services' : services.join(', '),
    levels === null ? 'all levels' : levels.join(', '),
    quiet !== null && `quiet ${quiet}`,
    after_s > 0 && `after ${formatDuration(after_s)}`,
    remind_s !== null && `again every ${formatDuration(remind_s)}`,
  ]
  return rules.filter((rule) => rule !== false).join('; ')
}
