import Type from 'typebox'
import { addEvent } from '../events.ts'
import { defineTool, done } from './tool.ts'

export const escalateTool = defineTool({
  name: 'escalate',
  description:
    'Ends this session and starts one of the next tier, which may look deeper or act. Give it all that you found.',
  tier: 1,
  takes: {
    reason: Type.String({ minLength: 1, maxLength: 1_000, description: 'Why, in one sentence' }),
    findings: Type.String({
      minLength: 1,
      maxLength: 20_000,
      description: 'What was looked at, what was found, what is suspected',
    }),
  },
  async run({ reason, findings }, { db, clock, dryRun, job }) {
    const { session, config } = job
    const dry = await dryRun(db)
    if (session.tier < config.max_tier && !dry) {
      job.escalate(reason, findings)
      return done(`The session goes on in tier ${session.tier + 1}.`)
    }
    const why = dry ? 'dry run' : `tier ${session.tier} is the highest that is allowed`
    const message = `Session ${session.id} asked to escalate and did not (${why}): ${reason}\n${findings}`
    const now = clock.now()
    await addEvent(db, { session: session.id, level: 'warning', service: null, message, now })
    return done(`Not escalated (${why}); it was recorded as an event. Finish with what you have.`)
  },
})
