import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli, runOk } from '../helpers/cli.ts'
import { leadsTo, startLinks } from '../helpers/links.ts'
import { ROOT, type Env } from '../helpers/program.ts'

// Files as people have them: how they are written, and which programs they are from.

const [, server] = backends
const IMPORT = 'import - --owner own@example.com --create-users'

type Column = { column: string; becomes: string | null; note: string }

/** Imports a file; each report is a text, `LINE SLUG OUTCOME MESSAGE`. */
async function imports(env: Env, input: string | Uint8Array, flags = '--json') {
  const { code, stdout, stderr } = await runCli(`${IMPORT} ${flags}`, { env, input })
  const lines = stdout.trimEnd().split('\n').filter(Boolean)
  const parsed = lines.map((line): Record<string, unknown> => JSON.parse(line))
  const { source, columns } = parsed.pop() ?? {}
  const reports = parsed.map(
    ({ line, slug, outcome, message }) => `${line} ${slug} ${outcome} ${message}`,
  )
  return { code, stderr, reports, source, columns: columns as readonly Column[] }
}

const stored = (env: Env) =>
  server.query(
    env,
    `select l.slug, url, title, description, visibility, append_path, expires_at, archived, created_at, updated_at,
            (select string_agg(tag, ' ' order by tag) from links.link_tags t where t.slug = l.slug) as tags,
            (select string_agg(n.name, ' ' order by n.name) from links.names n where n.link_id = l.id and n.name <> l.slug) as aliases,
            (select email from links.link_owners o join links.users u on u.id = o.user_id where o.slug = l.slug) as owner
       from links.shown_links l order by l.slug`,
  )

const LINES = [
  ['slug', 'url', 'title', 'description', 'tags'],
  ['aa', 'https://a.test/?x=1,2;3', '  The "a"  ', '"two\nlines\tand , ; all"', 'x;y'],
  [],
  ['bb', 'https://b.test/', '', '', ''],
]

/** The lines as a program writes them: quoted where it must. */
function written(separator: string, lineEnd: string) {
  const quoted = (cell: string) =>
    /[",;\t\n]/.test(cell) ? `"${cell.replaceAll('"', '""').replaceAll('\n', lineEnd)}"` : cell
  return LINES.map((cells) => cells.map(quoted).join(separator)).join(lineEnd)
}

/** Bytes of UTF-16 with their mark. */
function utf16(text: string, isBig: boolean) {
  const bytes = Buffer.from(`\ufeff${text}`, 'utf16le')
  return isBig ? bytes.swap16() : bytes
}

const WRITINGS: Readonly<Record<string, string | Uint8Array>> = {
  'commas, LF': written(',', '\n'),
  'semicolons, CRLF, a mark': `\ufeff${written(';', '\r\n')}\r\n`,
  'tabs, CR': written('\t', '\r'),
  'UTF-16 of spreadsheets': utf16(written('\t', '\r\n'), false),
  'UTF-16, the other way': utf16(written(';', '\n'), true),
}

t.test('a file is read however it is written', async (t) => {
  for (const [name, input] of Object.entries(WRITINGS)) {
    const env = await server.env(t)
    const { code, reports } = await imports(env, input)
    t.equal(code, 0, name)
    // The empty line and the line end within the quotes count.
    t.match(reports, ['2 aa created', '5 bb created'])
    const [link] = await stored(env)
    t.match(link, { url: 'https://a.test/?x=1,2;3', tags: 'x y' }, name)
    t.equal(link?.['title'], 'The "a"', 'a title is trimmed')
    t.match(link?.['description'], /^"two(\n|\r\n|\r)lines\tand , ; all"$/, 'a description is not')
  }
})

t.test(
  'names of columns may be written otherwise; lines of other lengths are refused',
  async (t) => {
    const env = await server.env(t)
    const input = [
      'Slug ;URL;Expires At;;',
      'say "hi";https://x.test/;;;',
      'cc;https://c.test/;2999-01-01T00:00:00Z;;',
      'dd;https://d.test/',
      'ee;https://e.test/;;;;more',
      ';;;;',
      'ff;https://f.test/;;;',
    ].join('\n')
    const { code, reports } = await imports(env, input)
    t.equal(code, 1)
    t.match(reports, [
      'refused slug must have',
      '3 cc created',
      '4 dd refused has 2 fields, the header has 5',
      '5 ee refused has 6 fields, the header has 5',
      '7 ff created',
    ])
    t.match(await stored(env), [{ slug: 'cc', expires_at: new Date('2999-01-01T00:00:00Z') }, {}])
  },
)

/** What a file of a program becomes. */
interface Expected {
  source: string
  /** The beginnings of the reports, as `LINE SLUG OUTCOME MESSAGE`. */
  reports: readonly string[]
  links: readonly Readonly<Record<string, unknown>>[]
  /** Columns that are not taken over, in the order of the file. */
  left: string
}

const FILES: Readonly<Record<string, Expected>> = {
  'yourls.csv': {
    source: 'YOURLS',
    reports: ['2 handbook created was "Handbook"', '3 new-hires created was "new_hires"'],
    links: [
      {
        url: 'https://docs.test/handbook?a=1&b=%7B1%7D',
        title: 'The "handbook", all of it',
        created_at: new Date('2019-03-04T05:06:07Z'),
      },
      { slug: 'new-hires', title: '' },
    ],
    left: 'ip clicks',
  },
  'yourls-import-export.csv': {
    source: 'YOURLS (Import Export)',
    reports: ['2 handbook-2 created ', '3 talks created '],
    links: [{}, { url: 'https://talks.test/?a=1,2' }],
    left: 'hits',
  },
  'bitly.csv': {
    source: 'Bitly',
    reports: [
      '2 spring created was "Spring"',
      '3 4xyzabc created was "4XyZabc"; archived, as it was there',
    ],
    links: [
      { url: 'https://shop.test/old', archived: true, created_at: new Date('2023-01-31') },
      {
        url: 'https://shop.test/spring',
        title: 'Spring, sale',
        archived: false,
        created_at: new Date('2024-05-01T08:30:00Z'),
      },
    ],
    left: 'Engagements',
  },
  'bitly.json': {
    source: 'Bitly (API)',
    reports: ['1 api-spring created without the tags Été'],
    links: [{ title: 'Spring', tags: 'sale', created_at: new Date('2024-05-01T08:30:00Z') }],
    left: 'id created_by client_id deeplinks references',
  },
  'dub.csv': {
    source: 'Dub',
    reports: ['2 pricing created ', '3 beta created archived, as it was there'],
    links: [
      { slug: 'beta', archived: true },
      { slug: 'pricing', tags: 'sales web-site', updated_at: new Date('2025-01-06T07:06:40Z') },
    ],
    left: 'Clicks',
  },
  'dub.json': {
    source: 'Dub (API)',
    reports: [
      '1 launch created of acme.link; without its address for later',
      '2 board refused asks for a password',
    ],
    links: [
      {
        description: 'For the launch',
        tags: 'sales',
        expires_at: new Date('2999-01-31T10:07:04Z'),
      },
    ],
    left: `id domain expiredUrl password ios android geo rewrite shortLink qrCode clicks leads sales saleAmount lastClicked userId`,
  },
  'rebrandly.csv': {
    source: 'Rebrandly',
    reports: ['2 burn10m created was "burn10M"; of acme.link', '3 two created of acme.link'],
    links: [
      { url: 'https://cars.test/laferrari', created_at: new Date('2016-07-13T10:54:12Z') },
      {},
    ],
    left: 'id shortUrl domain',
  },
  'rebrandly.json': {
    source: 'Rebrandly',
    reports: ['1 the-car created of acme.link; passes queries on, which it did not'],
    links: [
      { title: 'The car', description: 'Red', updated_at: new Date('2017-07-13T10:54:12Z') },
    ],
    left: 'id shortUrl domain.fullName clicks lastClickAt favourite forwardParameters',
  },
  'golinks.json': {
    source: 'GoLinks',
    reports: [
      '1 jira created ',
      '2 pay-slips created without its addresses for devices or countries',
      '3 diary created ',
    ],
    links: [
      { slug: 'diary', visibility: 'secure' },
      {
        slug: 'jira',
        url: 'https://jira.test/browse/{*}',
        description: 'A ticket',
        tags: 'eng',
        aliases: 'tickets',
        owner: 'ann@example.com',
        visibility: 'public',
        created_at: new Date(1_700_000_000_000),
        updated_at: new Date(1_700_000_600_000),
      },
      { slug: 'pay-slips', url: 'https://pay.test/%7B1%7D', visibility: 'private' },
    ],
    left: 'gid cid public variable_link pinned geolinks redirect_hits',
  },
  'trotto.json': {
    source: 'Trotto',
    reports: [
      '1 wiki created was "wiki/%s"',
      '2 road-map created ',
      '3 a/b refused slug must have',
    ],
    links: [
      { slug: 'road-map', url: 'http://roadmap.test/100%25', owner: 'bob@example.com' },
      {
        slug: 'wiki',
        url: 'https://wiki.test/?q={*}',
        owner: 'ann@example.com',
        created_at: new Date('2021-06-07T08:09:10.123Z'),
      },
    ],
    left: 'id mine namespace type visits_count',
  },
  'golink.json': {
    source: 'golink',
    reports: ['1 who created ', '2 me created '],
    links: [
      { slug: 'me', url: 'https://people.test/{user}' },
      { slug: 'who', url: 'https://people.test/search/{*:https://people.test/}' },
    ],
    left: '',
  },
}

for (const [name, expected] of Object.entries(FILES)) {
  t.test(`${name} is known by its columns`, async (t) => {
    const env = await server.env(t)
    const input = await readFile(join(ROOT, 'test/fixtures/link-exports', name))
    const dry = await imports(env, input, '--json --dry-run')
    t.same(await stored(env), [], 'a dry run writes nothing')
    const { stderr, source, columns, reports } = await imports(env, input)
    t.match({ stderr, source }, { stderr: '', source: expected.source })
    t.match(reports, expected.reports)
    t.equal(reports.length, expected.reports.length)
    t.same(dry.reports, reports, 'a dry run says the same')
    const left = columns.filter(({ becomes }) => becomes === null)
    t.equal(left.map(({ column }) => column).join(' '), expected.left)
    for (const { note } of left) t.match(note, /^[^\n]+$/, 'each for a reason, in a line')
    const links = await stored(env)
    t.match(links, expected.links)
    t.equal(links.length, expected.links.length)
  })
}

t.test('what is not taken over is a line of the report, a column each', async (t) => {
  const env = await server.env(t)
  const input = 'keyword,url,clicks,Folder\u001b\naa,https://a.test/,7,x\n'
  const { stdout } = await runOk(IMPORT, { env, input })
  t.match(
    stdout,
    'column clicks is not taken over: visits that were counted there stay there\n' +
      'column Folder? is not taken over: no field of a link here\n',
  )
})

t.test('a place of Trotto takes what follows the name', async (t) => {
  const env = await server.env(t)
  const input = '{"shortpath": "jira/%s/%s", "destination_url": "https://j.test/%s?b=%s"}\n'
  t.match(await imports(env, input), { code: 0 })
  const { base } = await startLinks(t, server, env)
  t.equal(await leadsTo(base, '/jira/a/b'), 'https://j.test/a?b=b')
})

t.test('a dry run refuses what the run refuses', async (t) => {
  const env = await server.env(t)
  const there = 'slug,url,aliases\naa,https://a.test/,aa-too\nbb,https://b.test/,\n'
  t.match(await imports(env, there), { code: 0 })
  const rows = {
    'aa,mailto:a@example.com,': '2 aa refused url must be an http:// or https:// URL',
    'bb,http://127.0.0.1:8081/bb,': '3 bb refused url leads back to this link',
    'aa-too,https://c.test/,': '4 aa-too conflict slug already taken',
    'dd,https://d.test/,aa-too': '5 dd created without aa-too, which other links have',
  }
  const input = ['slug,url,aliases', ...Object.keys(rows)].join('\n')
  const named = { ...env, LINKS_SCHEMES: 'mailto' }
  for (const flags of ['--json --update --dry-run', '--json --update']) {
    const { reports } = await imports(env, input, flags)
    t.match(reports, Object.values(rows), flags)
    const other = await imports(named, 'slug,url\naa,mailto:a@example.com\n', flags)
    t.match(other.reports, ['2 aa updated'], 'where the scheme is named')
  }
})
