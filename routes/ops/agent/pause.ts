import * as Type from '../../../kernel/schema.ts'
import { field } from '../../../kernel/validate.ts'
import { PAUSABLE, Pause, PauseRequest, setPause } from '../../../services/ops/agent/pause.ts'
import { outsideSessions } from '../access.ts'
import { action, api } from '../kit.ts'

/** One of the two buttons. */
const PauseForm = Type.Object({
  what: field(Type.Enum([...PAUSABLE]), `must be ${PAUSABLE.join(' or ')}`),
  paused: field(Type.Boolean(), 'must be true or false'),
})

/** The switch that stops what the agent does by itself. */
export const pauseEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/pause',
    id: 'getPause',
    tag: 'Pause',
    summary: 'Say whether investigations and repairs are paused, since when and by whom.',
    returns: { description: 'What is paused', schema: Pause },
    answer: ({ app: { ops } }) => ops.pause.read(),
  }),

  ...action({
    body: PauseRequest,
    async act({ app: { ops }, actor, body, now }) {
      const pause = await setPause({ ...ops, actor }, body, now)
      await ops.pause.refresh()
      return pause
    },
    api: {
      access: outsideSessions,
      method: 'PUT',
      path: '/api/v1/pause',
      id: 'updatePause',
      tag: 'Pause',
      summary: 'Pause or resume investigations, repairs or both; what is left out stays.',
      returns: { description: 'What is paused now', schema: Pause },
    },
    form: {
      access: outsideSessions,
      path: '/pause',
      body: PauseForm,
      toBody: ({ body: { what, paused } }) => ({ [what]: paused }),
      answer: ({ body: { what, paused } }) => ({
        location: '/',
        done: [paused ? 'paused' : 'resumed', what],
      }),
    },
  }),
]
