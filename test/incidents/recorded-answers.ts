import { calls, MODEL_KEY, says, startModel, type Asked } from '../helpers/model.ts'
import type { Owner } from '../helpers/owner.ts'
import type { Endpoint } from '../../services/ops/agent/runners/model-chat.ts'
import { placed, type Incident } from './incident.ts'

/** An endpoint whose model gives the answers that are recorded with an incident. */
export type RecordedAnswers = {
  readonly endpoint: Endpoint
  /** Gives these from now on. */
  give(recording: Incident['good'], page: string): Given
}

/** What came of recorded answers. */
export type Given = {
  /** What the tools answered, in the order of the calls. */
  readonly results: readonly string[]
  /** What the model was told at first. */
  told(): string
}

/** Starts one; it ends with the test. */
export async function startRecordedAnswers(t: Owner): Promise<RecordedAnswers> {
  const model = await startModel(t)
  return {
    endpoint: { url: model.env['OPS_MODEL_URL'] ?? '', key: MODEL_KEY },
    give(recording, page) {
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
