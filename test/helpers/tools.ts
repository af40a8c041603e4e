import type { Test } from 'tap'
import { calls, says, type Call, type Model } from './model.ts'
import { runSession, type OpsServer } from './ops.ts'

/** A server and the model that calls its tools. */
type ToolUser = { model: Model; ops: OpsServer }

/** Calls tools in one turn of a session of tier 2, or another one, and gives what they answered. */
export async function useTools(
  t: Test,
  { model, ops }: ToolUser,
  list: readonly Call[],
  tier = 2,
) {
  let answers: readonly string[] = []
  model.answer(({ step, results }) => {
    if (step === 0) return calls(...list)
    answers = results
    return says('Done.')
  })
  t.match(await runSession(ops, 'look', tier), { tier, status: 'completed' })
  t.equal(answers.length, list.length)
  return answers
}
