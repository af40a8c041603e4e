import Type from 'typebox'
import { anyone } from '../../kernel/http/endpoint.ts'
import { bytesReply } from '../../kernel/http/reply.ts'
import type { BeatKind } from '../../services/ops/beats.ts'
import { raw } from './kit.ts'

/** The token is what opens it (decisions.md section 7, New open paths). */
const access = { ...anyone, guard: 'open' } as const

/** The paths of a job, and what it says by each. */
const PATHS: readonly (readonly [path: string, beat: BeatKind])[] = [
  ['/beat/:token', 'ok'],
  ['/beat/:token/fail', 'failed'],
  ['/beat/:token/start', 'begun'],
]

/** What jobs call; what a call sends beside its path is not read. */
export const beatEndpoints = PATHS.flatMap(([path, beat]) =>
  (['GET', 'POST'] as const).map((method) =>
    raw({
      method,
      path,
      access,
      params: { token: Type.String() },
      async answer({ app: { ops }, params: { token } }) {
        await ops.beat(token, beat)
        return bytesReply('ok\n', 'text/plain; charset=utf-8', { 'cache-control': 'no-store' })
      },
    }),
  ),
)
