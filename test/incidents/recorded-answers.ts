import { calls, MODEL_KEY, says, startModel, type Asked } from '../helpers/model.ts'
import type { Owner } from '../helpers/owner.ts'
import type { Endpoint } from '../../services/ops/agent/runners/model-chat.ts'
import { placed, type Incident } from './incident.ts'

/** Starts an endpoint whose model gives the answers that are recorded with an incident; it ends with the test. */
export async function startRecordedAnswers(t: Owner) {
  const model = await startModel(t)
  const endpoint: Endpoint = { url: model.env['OPS_MODEL_URL'] ?? '', key: MODEL_KEY }
  return {
    endpoint,
    /** Gives these from now on: then `results` has what the tools answered, and `told` what the model was told at first. */
    give(recording: Incident['good'], page: string) {
      const results: string[] = []
      let first: Asked | undefined
      model.answer((asked) => {
        first ??= asked
        results.push(...asked.results)
        const call = placed(recording.calls[asked.step], new Date(), page)
        return call === undefined ? says(recording.says) : calls([call[0], call[1]])
      })
      return { results, told: () => (first?.messages ?? []).map(({ content }) => content).join() }
    },
  }
}
