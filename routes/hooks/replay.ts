import { listAttempts } from '../../db/hooks/attempts.ts'
import { attemptsList } from '../../html/hooks/attempts.ts'
import type { Context } from '../../kernel/http/context.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import type { ReplayRefusal } from '../../services/hooks/replays.ts'
import { readOptionalForm, wantsFullPage } from '../form.ts'
import { ATTEMPTS_SHOWN, eventReply, idOf, NO_EVENT } from './event.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/**
 * `POST /log/{id}/replay` (decisions.md section 3, Replay): form field `target_url`, absent or empty
 * for the default target. An attempt is answered with 200 and the list, whatever came of it.
 */
export function replayRoute(options: HooksRoutes): Route {
  const { hooks } = options

  async function replay(context: Context): Promise<Reply> {
    const id = idOf(context)
    const form = await readOptionalForm(context)
    if ('status' in form) return hooksFault(form, context)
    if (id === undefined) return hooksFault(NO_EVENT, context)
    const typed = (form.get('target_url') ?? '').trim()
    const result = await hooks.replay(id, typed === '' ? undefined : typed)
    // A failed attempt is in the list with its reason, like one that was delivered.
    if ('code' in result && result.code !== 'replay_failed') return refuse(context, typed, result)
    if (wantsFullPage(context)) return eventReply(options, context, { done: true })
    const attempts = await listAttempts(hooks.db, id, ATTEMPTS_SHOWN)
    return htmlReply(attemptsList({ attempts, done: true }))
  }

  async function refuse(
    context: Context,
    typed: string,
    { code, message }: ReplayRefusal,
  ): Promise<Reply> {
    if (code === 'not_found') return hooksFault(NO_EVENT, context)
    if (wantsFullPage(context)) {
      return eventReply(options, context, { refused: { typed, message } }, 422)
    }
    return hooksFault({ status: 422, code: 'UNPROCESSABLE', detail: message }, context)
  }

  return { method: 'POST', path: '/log/:id/replay', access: 'guarded', handle: replay }
}
