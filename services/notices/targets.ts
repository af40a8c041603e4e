import type { Database } from '../../db/client.ts'
import { noticeQueries as q, type StoredTarget, type TargetRules } from '../../db/notices.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import type { SecretBox } from '../../kernel/secret-box.ts'
import { makeChange, type ChangeTools } from '../audit.ts'
import { readAddress, type Address } from './address.ts'

// Where notices go: the addresses of the configuration, and those that `gatehouse notify` keeps in
// the database, encrypted.

/** A target: `address` may say why it can't be read. */
export interface Target extends TargetRules {
  /** As pages, logs and other targets name it. */
  name: string
  address: Address | { problem: string }
  /** What came before is no news to it; undefined for all of the last day. */
  since: Date | undefined
}

/** What a target is made of; null removes, undefined leaves as it is. */
export type TargetForm = { readonly [Field in keyof TargetRules]?: TargetRules[Field] } & {
  url?: string | undefined
  token?: string | null | undefined
}

interface TargetTools extends ChangeTools {
  box: () => SecretBox | undefined
  now: () => Date
}

const MAX_TARGETS = 100
const NAME_FORM = '1 to 64 lower-case letters, digits, - and _'
const NO_RULES: TargetRules = {
  services: null,
  levels: null,
  quiet: null,
  after_s: 0,
  remind_s: null,
}
const NO_KEY =
  'Addresses of notices are stored encrypted: set GATEHOUSE_SECRET_KEY, ' +
  'as openssl rand -base64 32 prints one, and start again.'

/** The targets of the configuration. */
function configuredTargets(urls: readonly Address[]): readonly Target[] {
  return urls.map((address, at) => {
    const name = at === 0 ? 'OPS_NOTIFY_URL' : `OPS_NOTIFY_URL ${at + 1}`
    return { name, address, since: undefined, ...NO_RULES }
  })
}

/** Those of the configuration, then those of the database. */
export async function readTargets(
  db: Database,
  urls: readonly Address[],
  box: () => SecretBox | undefined,
): Promise<readonly Target[]> {
  const stored = await q.listNoticeTargets(db, { limit: MAX_TARGETS })
  return [...configuredTargets(urls), ...stored.map((row) => openTarget(row, box()))]
}

/** The target of a stored row. */
function openTarget(row: StoredTarget, box: SecretBox | undefined): Target {
  const { name, services, levels, quiet, after_s, remind_s, created_at: since } = row
  const rules = { services, levels, quiet, after_s, remind_s }
  return { name, since, ...rules, address: openAddress(row, box) }
}

function openAddress(
  { name, address, token }: StoredTarget,
  box: SecretBox | undefined,
): Address | { problem: string } {
  if (box === undefined) return { problem: 'GATEHOUSE_SECRET_KEY is not set' }
  const url = box.open(address, boundTo(name, 'address'))
  if ('problem' in url) return { problem: `its address can't be read: ${url.problem}` }
  if (token === null) return readAddress(url.text)
  const secret = box.open(token, boundTo(name, 'token'))
  if ('problem' in secret) return { problem: `its token can't be read: ${secret.problem}` }
  return readAddress(url.text, secret.text)
}

function boundTo(name: string, place: 'address' | 'token'): string {
  return `notice target ${name} ${place}`
}

/** A target for people: never its address, which may hold a key. */
export function describeTarget({ address, ...target }: Target) {
  if ('problem' in address) return { ...target, kind: null, host: null, problem: address.problem }
  const { kind, url } = address
  return { ...target, kind, host: new URL(url).host, problem: null }
}

/** Adds a target, which gets the notices from now on. */
export async function addTarget(tools: TargetTools, name: string, form: TargetForm) {
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(name)) {
    throw unprocessable(`the name must be ${NAME_FORM}`)
  }
  const { url = '', token = null } = form
  const row = { ...seal(tools, name, url, token), ...rulesOf(form, NO_RULES) }
  await makeChange(tools, noteOf('add', name), async (tx) => {
    const added = await q.addNoticeTarget(tx, {
      ...row,
      name,
      now: tools.now(),
      most: MAX_TARGETS,
    })
    if (added !== undefined) return
    if ((await q.findNoticeTarget(tx, { name })) === undefined) {
      throw conflict(`there are ${MAX_TARGETS} targets, which is the maximum`)
    }
    throw conflict(`there is a target ${name} already`)
  })
}

/** Changes what the form names. */
export async function setTarget(tools: TargetTools, name: string, form: TargetForm) {
  await makeChange(tools, noteOf('set', name), async (tx) => {
    const present = await q.findNoticeTarget(tx, { name })
    if (present === undefined) throw unknown(name)
    const rules = rulesOf(form, present)
    const { kind, host, address, token } = present
    if (form.url === undefined && form.token === undefined) {
      return q.setNoticeTarget(tx, { name, kind, host, address, token, ...rules })
    }
    const opened = openAddress(present, tools.box())
    // What stays must be read, to be encrypted again.
    const keepsUrl = form.url === undefined
    const keepsToken = form.token === undefined && token !== null
    if ('problem' in opened && (keepsUrl || keepsToken)) throw unprocessable(opened.problem)
    const before = 'problem' in opened ? undefined : opened
    const url = form.url ?? withKind(before)
    const sealed = seal(tools, name, url, form.token === undefined ? before?.token : form.token)
    return q.setNoticeTarget(tx, { name, ...sealed, ...rules })
  })
}

export async function removeTarget(tools: TargetTools, name: string): Promise<void> {
  await makeChange(tools, noteOf('remove', name), async (tx) => {
    if ((await q.removeNoticeTarget(tx, { name })) === undefined) throw unknown(name)
  })
}

/** A target by its name, of the configuration or of the database. */
export async function findTarget(
  db: Database,
  urls: readonly Address[],
  box: () => SecretBox | undefined,
  name: string,
): Promise<Target> {
  const found = (await readTargets(db, urls, box)).find((target) => target.name === name)
  if (found === undefined) throw unknown(name)
  return found
}

function rulesOf(form: TargetForm, before: TargetRules): TargetRules {
  const { services, levels, quiet, after_s, remind_s } = form
  return {
    services: services === undefined ? before.services : services,
    levels: levels === undefined ? before.levels : levels,
    quiet: quiet === undefined ? before.quiet : quiet,
    after_s: after_s ?? before.after_s,
    remind_s: remind_s === undefined ? before.remind_s : remind_s,
  }
}

function seal({ box: boxOf }: TargetTools, name: string, url: string, token?: string | null) {
  const box = boxOf()
  if (box === undefined) throw unprocessable(NO_KEY)
  const { kind, url: plain } = readGiven(url, token)
  return {
    kind,
    host: new URL(plain).host,
    address: box.seal(url, boundTo(name, 'address')),
    token: token === null || token === undefined ? null : box.seal(token, boundTo(name, 'token')),
  }
}

function readGiven(url: string, token: string | null | undefined): Address {
  try {
    return readAddress(url, token ?? undefined)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw unprocessable(`the address is not valid: ${error.message}`)
  }
}

/** The address as people write it. */
function withKind(address: Address | undefined): string {
  if (address === undefined) return ''
  const { kind, url } = address
  return kind === 'json' || kind === 'mail' ? url : `${kind}+${url}`
}

function noteOf(verb: 'add' | 'set' | 'remove', name: string) {
  return { service: 'ops', action: `notify ${verb}`, subject: name } as const
}

function unknown(name: string): Fault {
  return notFound(`there is no target ${name}`)
}

function conflict(message: string): Fault {
  return new Fault(409, 'CONFLICT', message)
}

function unprocessable(message: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', message)
}
