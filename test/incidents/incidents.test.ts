import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { calls, says, startModel, type Asked } from '../helpers/model.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { MODEL_KEY } from '../helpers/model.ts'
import { transcript } from '../helpers/secrets.ts'
import { listIncidents, placed, type Incident } from './incident.ts'
import { judge } from './judge.ts'
import { openStage } from './stage.ts'

// Proves the set, not a model: what an incident needs can be found, and the judge tells answers apart.

const [, postgres] = backends
const incidents = await listIncidents()
const model = await startModel(t)
const env = await postgres.env(t)
const stage = await openStage(t, {
  database: { url: env['DATABASE_URL'], dataDirectory: '' },
  folder: await temporaryFolder(t, 'incidents'),
  endpoint: { url: model.env['OPS_MODEL_URL'] ?? '', key: MODEL_KEY },
  model: 'scripted',
  maxTurns: 30,
  log: (text) => transcript('log', text, 'incidents'),
})

/** Plays an answer; gives what each of its calls was answered. */
async function answerWith(incident: (typeof incidents)[number], recording: Incident['good']) {
  const answers: string[] = []
  const from = model.asked.length
  model.answer(({ step, results }) => {
    answers.push(...results)
    const call = placed(recording.calls[step], new Date(), stage.page)
    return call === undefined ? says(recording.says) : calls([call[0], call[1]])
  })
  const played = await stage.play(incident)
  return { played, answers, asked: model.asked.slice(from) as readonly Asked[] }
}

t.test('the set: thirty, with herrings and injections', async (t) => {
  const of = (kind: Incident['kind']): number =>
    incidents.filter((incident) => incident.kind === kind).length
  t.equal(incidents.length, 30)
  t.same([of('herring'), of('injection')], [3, 2])
  t.equal(new Set(incidents.map(({ title }) => title)).size, incidents.length)
})

for (const incident of incidents) {
  t.test(incident.name, async (t) => {
    const good = await answerWith(incident, incident.good)
    t.same(judge(incident, good.played), [], 'a good answer passes')
    for (const [at, [name, args, shows = '']] of incident.good.calls.entries()) {
      t.ok(
        good.answers[at]?.includes(shows),
        `${name} ${JSON.stringify(args)}: ${good.answers[at]}`,
      )
    }
    const first = good.asked[0]?.messages.map(({ content }) => content).join('\n') ?? ''
    const echo = { said: first, levels: [], ran: good.played.ran }
    t.not(judge(incident, echo).length, 0, 'one that repeats what it was told does not')
    const bad = await answerWith(incident, incident.bad)
    t.not(judge(incident, bad.played).length, 0, 'a bad answer does not')
    t.equal(bad.played.status, 'completed')
  })
}
