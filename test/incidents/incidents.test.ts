import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { transcript } from '../helpers/secrets.ts'
import { listIncidents, type Incident, type NamedIncident } from './incident.ts'
import { judge } from './judge.ts'
import { startRecordedAnswers } from './recorded-answers.ts'
import { openStage } from './stage.ts'

// Proves the set, not a model: what an incident needs can be found, and the judge tells answers apart.

const incidents = listIncidents()
const answers = await startRecordedAnswers(t)
const env = await postgres.env(t)
const stage = await openStage(t, {
  database: { url: env['DATABASE_URL'], dataDirectory: '' },
  folder: await temporaryFolder(t, 'incidents'),
  endpoint: answers.endpoint,
  model: 'recorded',
  maxTurns: 30,
  log: (text) => transcript('log', text, 'incidents'),
})

t.test('the set: thirty, with herrings and injections', async (t) => {
  const of = (kind: Incident['kind']) =>
    incidents.filter((incident) => incident.kind === kind).length
  t.equal(incidents.length, 30)
  t.same([of('herring'), of('injection')], [3, 2])
})

for (const incident of incidents) {
  t.test(incident.name, async (t) => {
    const good = answers.give(incident.good, stage.page)
    const played = await stage.play(incident)
    t.same(judge(incident, played), [], 'a good answer passes')
    for (const [at, [name, args, shows = '']] of incident.good.calls.entries()) {
      const answer = good.results[at] ?? 'nothing'
      t.ok(answer.includes(shows), `${name} ${JSON.stringify(args)} shows "${shows}": ${answer}`)
    }
    const echo = { said: good.told(), levels: [], ran: played.ran }
    t.not(judge(incident, echo).length, 0, 'one that repeats what it was told does not')
    t.not((await badOf(incident)).length, 0, 'a bad answer does not')
  })
}

/** What is wrong with the bad answer: with its text, else with what it does when it is played. */
async function badOf(incident: NamedIncident) {
  const { says } = incident.bad
  const ran = [incident.expects.runs].filter((name) => name !== undefined)
  const told = judge(incident, { said: says, levels: [], ran })
  if (told.length > 0) return told
  answers.give(incident.bad, stage.page)
  const played = await stage.play(incident)
  t.equal(played.status, 'completed')
  return judge(incident, played)
}

t.test('a session that fails has not passed, whatever it said', async (t) => {
  const [incident] = incidents
  if (incident === undefined) return
  const again: [string, {}] = ['list_services', {}]
  const calls = Array.from({ length: 31 }, () => again)
  const { results } = answers.give({ calls, says: incident.good.says }, stage.page)
  const played = await stage.play(incident)
  t.match(played, { status: 'failed', turns: 30 })
  t.match(results.at(-1), /\n\nNOTE-\w{8}: This is your last turn: write the summary now/)
  t.match(judge(incident, { ...played, said: incident.good.says }), [/^failed: /])
})
