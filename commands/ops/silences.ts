import { DURATION_FORM, INSTANT_FORM } from '../../kernel/time.ts'
import {
  addSilence,
  endSilence,
  listSilences,
  matchText,
  readSilence,
  SilenceForm,
} from '../../services/ops/alerts/silences.ts'
import { integer } from '../../kernel/variables.ts'
import {
  command,
  fieldsOf,
  JSON_FLAG,
  lines,
  readFields,
  text,
  UsageError,
  value,
  type Arguments,
  type Call,
} from '../frame/command.ts'
import { printRows } from '../frame/output.ts'

const ID_ARGS = {
  id: value('ID', 'a silence, as silences list shows it', integer({ min: 1, max: 2 ** 31 - 1 })),
}
const ADD_FLAGS = {
  match: lines(
    'LABEL=VALUE',
    'what alerts must have, such as service=shop; * stands for anything',
  ),
  for: text('DURATION', `how long it lasts: ${DURATION_FORM}`),
  'starts-at': text('TIME', `when it begins, instead of now: ${INSTANT_FORM}`),
  'ends-at': text('TIME', 'when it ends, instead of --for'),
  reason: text('TEXT', 'why, for those who see the silence'),
  json: JSON_FLAG,
}

/** `gatehouse silences …`: times in which alerts that match start no session. */
export const commands = [
  command({
    name: 'silences list',
    summary: 'list the silences that last, and those to come',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, now, output }) {
      printRows(output, json, await listSilences(db, now()), {
        ID: ({ id }) => String(id),
        MATCH: ({ match }) => matchText(match),
        FROM: ({ starts_at }) => starts_at.toISOString(),
        UNTIL: ({ ends_at }) => ends_at.toISOString(),
        BY: ({ author }) => author,
        REASON: ({ reason }) => reason,
      })
    },
  }),
  command({
    name: 'silences add',
    summary: 'start no session for alerts that match, for a time',
    flags: ADD_FLAGS,
    needs: 'database',
    check: (call, now) => void readCall(call, now),
    async run(call, tools) {
      const now = tools.now()
      const silence = await addSilence(tools, readCall(call, now), now)
      const until = silence.ends_at.toISOString()
      tools.output.err(`silence ${silence.id}: ${matchText(silence.match)} until ${until}`)
      if (call.flags.json) tools.output.out(JSON.stringify(silence))
    },
  }),
  command({
    name: 'silences remove',
    summary: 'end a silence now, or cancel one to come',
    args: ID_ARGS,
    needs: 'database',
    async run({ args: { id } }, tools) {
      await endSilence(tools, id, tools.now())
      tools.output.err(`silence ${id} is over`)
    },
  }),
]

function readCall({ flags }: Pick<Call<Arguments, typeof ADD_FLAGS>, 'flags'>, now: Date) {
  if (flags.match === undefined) throw new UsageError('--match is required')
  const texts = fieldsOf(SilenceForm, { ...flags, json: undefined })
  return readFields(() => readSilence(texts, now))
}
