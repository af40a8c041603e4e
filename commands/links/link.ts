import type { Link } from '../../db/links/names/links.ts'
import { ListOrder } from '../../db/links/names/lists.ts'
import { Fault } from '../../kernel/fault.ts'
import { validate } from '../../kernel/validate.ts'
import { accepted, integer, oneOf } from '../../kernel/variables.ts'
import { RESTORE_DAYS } from '../../services/links/names/deleted.ts'
import { LinkUpdate, typedSlug } from '../../services/links/names/links/input.ts'
import { State } from '../../services/links/names/links/lifecycle.ts'
import {
  createLink,
  deleteLink,
  editLink,
  linkBySlug,
  plainLink,
} from '../../services/links/names/links/links.ts'
import { qrText } from '../../services/links/names/links/qr.ts'
import { ListFilter } from '../../services/links/names/lists/filter.ts'
import { linkOf, walkLinks } from '../../services/links/names/lists/lists.ts'
import { refuseDisabledOwner } from '../../services/links/names/members/members.ts'
import { statsOf } from '../../services/links/visits/stats.ts'
import { commandUser } from '../../services/links/people/users/operator.ts'
import { readEmail } from '../../services/links/people/users/users.ts'
import { serviceUrl, shortKeyword } from '../frame/configuration.ts'
import {
  command,
  fieldsOf,
  JSON_FLAG,
  readFields,
  text,
  UsageError,
  value,
  type Call,
  type DatabaseTools,
} from '../frame/command.ts'
import { EDIT_FLAGS, LINK_FLAGS, readEdit, readNewLink } from './link-flags.ts'
import { LIST_HEAD, lineOfLink, linesOfLink, linesOfStats } from './link-text.ts'
import { linkParts } from './links.ts'
import { knownUser } from './users.ts'

const SLUG_ARGS = { slug: text('SLUG', 'the short name of the link') }
const ADD_ARGS = { ...SLUG_ARGS, url: text('URL', 'where it leads') }
const OWNER = value('EMAIL', 'only links of this owner', accepted('an e-mail address', readEmail))

const LIST_FLAGS = {
  search: text('TEXT', 'only links that have these words, as the search of the pages'),
  tag: text('TAG', 'only links with this tag'),
  owner: OWNER,
  state: value(State.enum.join('|'), 'only links in this state', oneOf(...State.enum)),
  sort: value(
    ListOrder.enum.join('|'),
    'the order: the most clicked or the newest first; by slug unless given',
    oneOf(...ListOrder.enum),
  ),
  limit: value('N', 'how many at most, all unless given', integer({ min: 1, max: 1_000_000 })),
  json: { summary: `${JSON_FLAG.summary}, an object a line` },
}

/** `gatehouse link …`: all links, by the local operator, who may change each of them. */
export const commands = [
  command({
    name: 'link list',
    summary: 'list the links of everybody',
    flags: LIST_FLAGS,
    needs: 'database',
    check: ({ flags }) => void filterOf(flags),
    run: (call, tools) => list(call.flags, tools),
  }),
  command({
    name: 'link show',
    summary: 'show a link with its owners and its clicks',
    args: SLUG_ARGS,
    flags: {
      qr: { summary: 'also as a QR code, for a terminal with a dark background' },
      json: JSON_FLAG,
    },
    needs: 'database',
    check({ flags: { qr, json } }) {
      if (qr && json) throw new UsageError('--qr and --json exclude each other')
    },
    async run({ args: { slug }, flags: { qr, json } }, tools) {
      const { output } = tools
      const { link } = await findLink(tools, slug)
      if (qr) refuseWithoutAddress(tools)
      const address = addressOf(tools, link.slug)
      if (json) printLink(tools, plainLink(link))
      else for (const line of linesOfLink(link, address, tools.now())) output.out(line)
      if (qr) output.out(qrText(address))
    },
  }),
  command({
    name: 'link add',
    summary: 'create a link; its address is the last line of the output',
    args: ADD_ARGS,
    flags: {
      ...LINK_FLAGS,
      owner: { ...OWNER, summary: 'its primary owner, the local operator unless given' },
      json: JSON_FLAG,
    },
    needs: 'database',
    check: ({ args, flags }, now) => void readNewLink(args, flags, now),
    async run({ args, flags }, tools) {
      const at = tools.now()
      const input = readNewLink(args, flags, at)
      const operator = await commandUser(tools, at)
      const owner = flags.owner === undefined ? operator : await knownUser(tools.db, flags.owner)
      refuseDisabledOwner(owner)
      const link = await createLink(linkParts(tools), operator, input, at, owner)
      tools.output.err(`${link.slug} leads to ${link.url}`)
      if (flags.json) printLink(tools, link)
      else tools.output.out(addressOf(tools, link.slug))
    },
  }),
  command({
    name: 'link edit',
    summary: "change a link; what no flag names stays, and '' clears a field",
    args: SLUG_ARGS,
    flags: { ...EDIT_FLAGS, json: JSON_FLAG },
    needs: 'database',
    check: ({ flags }, now) => void readEdit(flags, now),
    async run({ args, flags }, tools) {
      const at = tools.now()
      const given = readEdit(flags, at)
      const { operator, link } = await findLink(tools, args.slug)
      const edited = await editLink(linkParts(tools), operator, link.id, {
        action: 'edited',
        at,
        precondition: undefined,
        // Texts and tags that an update does not name would be cleared.
        fields: async (_tx, { url, title, description, tags }) =>
          validate(LinkUpdate, { url, title, description, tags, ...given }),
      })
      tools.output.err(`${edited.slug} is changed`)
      if (flags.json) printLink(tools, edited)
    },
  }),
  command({
    name: 'link rm',
    summary: `remove a link; it can be restored for ${RESTORE_DAYS} days`,
    args: SLUG_ARGS,
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ args, flags }, tools) {
      const { actor } = tools
      const { operator, link } = await findLink(tools, args.slug)
      await deleteLink({ ...linkParts(tools), actor }, operator, link.id, tools.now())
      const place = addressOf(tools, '-/deleted')
      const way = `for ${RESTORE_DAYS} days it can be restored: ${place}`
      tools.output.err(`${link.slug} is removed; ${way}`)
      if (flags.json) printLink(tools, plainLink(link))
    },
  }),
  command({
    name: 'link stats',
    summary: 'show how often a link is visited, from where and with what',
    args: SLUG_ARGS,
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ args, flags: { json } }, tools) {
      const { db, config, now, output } = tools
      const { link } = await findLink(tools, args.slug)
      const parts = { db, stats: () => config.current.LINKS_STATS }
      const stats = await statsOf(parts, link.id, now())
      const lines = json ? [JSON.stringify(stats)] : linesOfStats(stats)
      for (const line of lines) output.out(line)
    },
  }),
]

type ListFlags = Call<Record<string, never>, typeof LIST_FLAGS>['flags']

/** The links that flags ask for, checked as the pages check a search. */
function filterOf(flags: ListFlags): ListFilter {
  return readFields(() => validate(ListFilter, fieldsOf(ListFilter, flags)))
}

async function list(flags: ListFlags, tools: DatabaseTools): Promise<undefined> {
  const { config, addresses, db, output } = tools
  const { json, owner, limit = Infinity } = flags
  if (owner !== undefined) await knownUser(db, owner)
  const now = tools.now()
  const short = {
    keyword: shortKeyword(config, addresses),
    base: serviceUrl('links', config, addresses) ?? '',
  }
  const visitor = await commandUser(tools, now)
  if (!json) output.out(LIST_HEAD)
  let left = limit
  const search = { filter: filterOf(flags), visitor, among: 'all' } as const
  for await (const links of walkLinks({ db, short, now }, search)) {
    for (const link of links.slice(0, left)) {
      output.out(json ? JSON.stringify(linkOf(link)) : lineOfLink(link, now))
    }
    await output.drained?.()
    if (links.length > left) {
      output.err(`more links match than the ${limit} listed; --limit says how many are`)
      return
    }
    left -= links.length
  }
}

/** The link with this slug, and who works with it. */
async function findLink(tools: DatabaseTools, slug: string) {
  const operator = await commandUser(tools, tools.now())
  return { operator, link: await linkBySlug(tools.db, typedSlug(slug), operator) }
}

/** A link in the shape of the API. */
function printLink({ output }: DatabaseTools, link: Link): void {
  output.out(JSON.stringify(link))
}

/** A path below the address of links. */
function addressOf({ config, addresses }: DatabaseTools, path: string): string {
  return `${serviceUrl('links', config, addresses) ?? 'http://HOST'}/${path}`
}

/** A code that is printed on paper can't be corrected. */
function refuseWithoutAddress({ config, addresses }: DatabaseTools): void {
  if (serviceUrl('links', config, addresses) !== undefined) return
  const way = 'their listener has no TCP port; set LINKS_BASE_URL'
  throw new Fault(409, 'CONFLICT', `the address of links is not known: ${way}`)
}
