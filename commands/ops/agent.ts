import { oneOf } from '../../kernel/variables.ts'
import {
  PAUSABLE,
  pauseProblem,
  readPause,
  setPause,
  type Pausable,
  type Pause,
} from '../../services/ops/agent/pause.ts'
import {
  command,
  JSON_FLAG,
  refuseSessions,
  value,
  type DatabaseTools,
  type Repeated,
} from '../frame/command.ts'
import { printRows, type Output } from '../frame/output.ts'

type What = Pausable | 'all'

const WHAT: Repeated<What> = {
  ...value<What>(
    '[investigations|repairs|all]',
    'all of it unless named',
    oneOf(...PAUSABLE, 'all'),
  ),
  repeated: true,
}
const ARGS = { what: WHAT }
const FLAGS = { json: JSON_FLAG }

/** `gatehouse agent …`: the switch that stops what the agent does by itself. */
export const commands = [
  command({
    name: 'agent pause',
    summary: 'start no sessions and run no operations until they are resumed',
    args: ARGS,
    flags: FLAGS,
    needs: 'database',
    check: refuseSessions,
    run: ({ args, flags }, tools) => change(tools, args.what, true, flags.json),
  }),
  command({
    name: 'agent resume',
    summary: 'resume what is paused',
    args: ARGS,
    flags: FLAGS,
    needs: 'database',
    check: refuseSessions,
    run: ({ args, flags }, tools) => change(tools, args.what, false, flags.json),
  }),
  command({
    name: 'agent paused',
    summary: 'say what is paused, since when and by whom',
    flags: FLAGS,
    needs: 'database',
    async run({ flags }, { db, output }) {
      const pause = await readPause(db)
      if (flags.json) return void output.out(JSON.stringify(pause))
      const rows = PAUSABLE.map((what) => ({ what, ...pause[what] }))
      printRows(output, false, rows, {
        WHAT: ({ what }) => what,
        PAUSED: ({ paused }) => (paused ? 'yes' : 'no'),
        SINCE: ({ since }) => since?.toISOString() ?? '',
        BY: ({ by }) => by ?? '',
      })
    },
  }),
]

async function change(
  tools: DatabaseTools,
  named: readonly What[],
  paused: boolean,
  json: boolean,
): Promise<undefined> {
  const isAll = named.length === 0 || named.includes('all')
  const asked = PAUSABLE.filter((what) => isAll || named.includes(what))
  const request = Object.fromEntries(asked.map((what) => [what, paused]))
  const pause = await setPause(tools, request, tools.now())
  print(tools.output, pause, asked)
  if (json) tools.output.out(JSON.stringify(pause))
}

function print(output: Output, pause: Pause, asked: readonly Pausable[]): void {
  for (const what of asked) output.err(pauseProblem(pause, what) ?? `${what} go on`)
}
