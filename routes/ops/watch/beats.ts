import * as Type from '../../../kernel/schema.ts'
import { badRequest, Fault, notFound } from '../../../kernel/fault.ts'
import { anyone } from '../../../kernel/http/endpoint.ts'
import { readBytes } from '../../../kernel/http/read-body.ts'
import { bytesReply } from '../../../kernel/http/reply.ts'
import { queryOf, type Context } from '../../../kernel/http/context.ts'
import type { BeatKind } from '../../../services/ops/watch/beats.ts'
import { raw } from '../kit.ts'

/** The token is what opens it (decisions.md section 7, New open paths). */
const access = { ...anyone, guard: 'open' } as const

const MAX_BODY = 1024 * 1024
/** The exit code of the job, as `$?` gives it. */
const EXIT_CODE = /^(?:0|[1-9]\d{0,2})$/

/** What jobs call; what they send along is kept with the call. */
export const beatEndpoints = ['', '/', '/:word', '/:word/'].flatMap((end) =>
  (['GET', 'POST'] as const).map((method) =>
    raw({
      method,
      path: `/beat/:token${end}`,
      access,
      params: { token: Type.String(), word: Type.Optional(Type.String()) },
      async answer({ app: { ops }, params: { token, word = '' }, context }) {
        const beat = kindOf(word)
        if (beat === undefined) throw notFound('expected nothing, start, fail or an exit code')
        if (queryOf(context).size > 0) throw badRequest('a heartbeat takes no query')
        await ops.beat(token, beat, await textOf(method, context))
        return bytesReply('ok\n', 'text/plain; charset=utf-8', { 'cache-control': 'no-store' })
      },
    }),
  ),
)

function kindOf(word: string): BeatKind | undefined {
  if (word === 'start') return 'begun'
  if (word === 'fail') return 'failed'
  if (word === '') return 'ok'
  if (!EXIT_CODE.test(word)) return undefined
  return word === '0' ? 'ok' : 'failed'
}

/** A call counts even if its text is too long: then the text is left out. */
async function textOf(method: 'GET' | 'POST', context: Context): Promise<string> {
  if (method === 'GET') return ''
  try {
    return (await readBytes(context, undefined, MAX_BODY)).toString('utf8')
  } catch (error) {
    if (error instanceof Fault && error.status === 413)
      return 'what it sent along has more than 1 MiB'
    throw error
  }
}
