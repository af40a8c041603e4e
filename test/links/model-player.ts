import assert from 'node:assert'
import type { LinksServer } from '../helpers/links.ts'
import type { Owner } from '../helpers/owner.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { PEOPLE, UNKNOWN } from './model-calls.ts'
import type { Call, Step } from './model-calls.ts'
import { openSend, requestOf } from './model-client.ts'
import type { Reply } from './model-client.ts'
import { checkBody, checkList, checkRefusal } from './model-compare.ts'
import { openNames } from './model-names.ts'
import { answer } from './model.ts'
import type { Made, Model, User } from './model-state.ts'

type Json = Readonly<Record<string, unknown>>

/** Plays sequences of calls, each against a server without links and a model without links. */
export type Player = {
  /** Throws at the first answer that is not the model's. */
  play(steps: readonly Step[]): Promise<void>
  /** Calls that were made so far. */
  calls(): number
}

const SCOPES = ['full', 'read', 'create'] as const
/** The run looks for each secret in all that was said: some are enough. */
const SECRETS_KEPT = 10
/** What everybody looks at when a sequence is over. */
const LOOKS: readonly Call[] = [
  { op: 'links', limit: 1 },
  { op: 'tags', limit: 2 },
  { op: 'tagLinks', tag: 'red', limit: 2 },
]

/** Somebody with a token of scope `full`. */
type Person = { name: string; id: string; token: string }

/** Brings a server back to where sequences begin: no links, no tags, no made tokens, root the only admin. */
export type Reset = (people: readonly Person[]) => Promise<unknown>

/** Makes the people with their tokens. */
export async function openPlayer(t: Owner, links: LinksServer, reset: Reset): Promise<Player> {
  const send = openSend(t, links.base)
  const bearers = new Map<string, string>()
  const people = await makePeople(links, bearers)
  const initial = await knownBefore(links, bearers)
  const noTag = await send('GET', '/tags/nope/links', bearers.get('ann full'))
  /** The last one that was told of each link. */
  const etags = new Map<string, string>()
  let [sequences, calls, kept] = [0, 0, 0]

  async function play(steps: readonly Step[]): Promise<void> {
    await reset(people)
    const model = structuredClone(initial)
    const names = openNames(model, `s${sequences++}-`)
    const looks = PEOPLE.flatMap((by) => LOOKS.map((call) => ({ by, with: 'full', call })))
    for (const [at, step] of [...steps, ...looks].entries()) {
      const call = names.resolve(step.call)
      try {
        await check(model, bearerOf(step, names.made), call)
      } catch (error) {
        const what = `step ${at + 1}, ${JSON.stringify(step)}, sent as ${requestOf(call).join(' ')}`
        throw new Error(`${what}: ${String(error)}`, { cause: error })
      }
      names.note()
    }
  }

  function bearerOf({ by, with: token }: Step, made: readonly string[]): string | undefined {
    if (token === 'none') return undefined
    if (token === 'wrong') return `gh_${'0'.repeat(43)}`
    return typeof token === 'number'
      ? (made[token] ?? bearers.get(`${by} full`))
      : bearers.get(`${by} ${token}`)
  }

  async function check(model: Model, bearer: string | undefined, call: Call): Promise<void> {
    const expected = answer(model, bearer, call)
    const [method, path, body] = requestOf(call)
    const reply = await ask(method, path, bearer, body, ifMatchOf(call))
    assert.equal(reply.status, expected.status, reply.text)
    if ('location' in expected) assert.equal(reply.location, expected.location)
    else if ('code' in expected) checkRefusal(reply, expected)
    else if ('list' in expected) {
      const limit = 'limit' in call ? call.limit : 0
      await checkList(expected, reply, limit, (cursor) => ask('GET', path + cursor, bearer))
    } else if ('body' in expected) checkBody(model, reply, expected)
    else assert.equal(reply.text, '')
    if (reply.etag !== undefined) etags.set(JSON.parse(reply.text).id, reply.etag)
    // Nobody can tell a tag that is invisible from one that does not exist.
    if (call.op === 'tagLinks' && reply.status === 404) assert.equal(reply.text, noTag.text)
    if (call.op === 'makeToken' && reply.status === 201 && kept++ < SECRETS_KEPT) {
      keepSecret('made-token', JSON.parse(reply.text).token)
    }
  }

  function ifMatchOf(call: Call): string | undefined {
    if (!('ifMatch' in call)) return undefined
    if (call.ifMatch === 'seen') return etags.get(call.link) ?? '"of no link"'
    return call.ifMatch === 'other' ? '"another"' : call.ifMatch
  }

  function ask(...args: Parameters<typeof send>): Promise<Reply> {
    calls++
    return send(...args)
  }

  return { play, calls: () => calls }
}

async function makePeople(links: LinksServer, bearers: Map<string, string>): Promise<Person[]> {
  const people: Person[] = []
  for (const name of PEOPLE) {
    const { id, email, token } = await links.user(name, { admin: name === 'root' })
    people.push({ name, id, token })
    bearers.set(`${name} full`, token)
    bearers.set(`${name} read`, await links.token(email, { scope: 'read' }))
    bearers.set(`${name} create`, await links.token(email, { scope: 'create' }))
  }
  return people
}

/** What the server knows before each sequence. */
async function knownBefore(links: LinksServer, bearers: Map<string, string>): Promise<Model> {
  const root = links.api(bearers.get('root full'))
  const { users } = (await root<{ users: User[] }>('GET', '/admin/users')).json
  const tokens: Model['tokens'] = new Map()
  for (const name of PEOPLE) {
    const api = links.api(bearers.get(`${name} full`))
    const rows = (await api<{ tokens: (Made & Json)[] }>('GET', '/tokens')).json.tokens
    const user = users.find(({ email }) => email === `${name}@example.com`)?.id ?? UNKNOWN
    for (const scope of SCOPES) {
      const row = rows.find((token) => token['scope'] === scope)
      if (row === undefined) throw new Error(`${name} has no token of scope ${scope}`)
      const { id, created_at, expires_at } = row
      const times = { created_at, expires_at }
      tokens.set(bearers.get(`${name} ${scope}`) ?? '', {
        id,
        user,
        name: String(row['name']),
        scope,
        times,
      })
    }
  }
  const known = users.map((user): [string, User] => [user.id, user])
  return {
    own: new URL(links.base).host,
    users: new Map(known),
    links: new Map(),
    deleted: new Map(),
    tokens,
  }
}
