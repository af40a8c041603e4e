import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { parse } from 'yaml'
import { MODEL_KEY, startModelOps, type Call } from '../../helpers/model.ts'
import { inventoryFile } from '../../helpers/ops.ts'
import { freePort, temporaryFolder } from '../../helpers/owner.ts'
import { useTools } from '../../helpers/tools.ts'

const folder = await temporaryFolder(t, 'runbooks')

function write(name: string, text: string) {
  mkdirSync(join(folder, name, '..'), { recursive: true })
  writeFileSync(join(folder, name), text)
}

function runbook(name: string, description: string, body = '') {
  return `---\nname: ${name}\ndescription: ${description}\n---\n${body}\n`
}

/** Front matter as people and programs write it: each is YAML. */
const DESCRIPTIONS = {
  plain: 'What to do when a disk is full.',
  comment: 'What to do # a comment',
  double: '"When it \\"fails\\": restart"',
  folded: '>-\n  When the queue\n  grows.',
  literal: '|\n  When the queue\n  grows.',
  unicode: 'Wenn die Platte voll ist – 磁盘',
}
for (const [name, description] of Object.entries(DESCRIPTIONS)) {
  write(`${name}.md`, runbook(name, description, `# ${name}`))
}
const steps = Array.from({ length: 1_000 }, (_, at) => `Step ${at} of many.`)
const long = `---
name: long-one
license: MIT
metadata:
  name: not this
  tags: [a, b]
allowed-tools:
  - Bash(rm:*)
description: Many steps
---

${steps.join('\n')}
The key is ${MODEL_KEY}.
`
write('long-one/SKILL.md', long)
write('twice/SKILL.md', runbook('twice', 'A folder comes first'))
write('long-one/scripts/fix.sh', `#!/bin/sh\ntouch ${join(folder, 'ran')}\n`)
write('assets/picture.txt', 'no runbook')
write('README.md', 'no runbook')
write('.hidden.md', 'no runbook')
write('notes.txt', 'no runbook')
symlinkSync(join(folder, 'long-one'), join(folder, 'linked'))
const bad = [
  ['bare.md', '# Only text', 'it has no front matter between two lines of ---'],
  ['other.md', runbook('another', 'x'), 'its name must be "other"'],
  [
    'Upper.md',
    runbook('Upper', 'x'),
    'its name must be lower-case letters, digits and single dashes',
  ],
  ['silent.md', runbook('silent', ''), 'its description must have 1 to 1024 characters'],
  ['list.md', runbook('list', '[a, b]'), 'description must be a text'],
  ['quote.md', runbook('quote', '"open'), 'description has a quote that is not closed'],
  ['huge.md', runbook('huge', 'x', 'x'.repeat(70_000)), 'it is over 64 KiB'],
  ['twice.md', runbook('twice', 'x'), `${join(folder, 'twice', 'SKILL.md')} has the same name`],
] as const
for (const [file, text] of bad) write(file, text)

const check = { type: 'tcp', name: 'port', host: '127.0.0.1', port: await freePort() }
const checks = [
  { ...check, runbook: 'folded' },
  { ...check, name: 'other port' },
]
const services = [{ name: 'shop', runbook: 'plain', checks }]
const user = await startModelOps(t, {
  OPS_RUNBOOKS: folder,
  OPS_INVENTORY: await inventoryFile(t, { services }),
})
const { model } = user
/** Calls the one tool in a session of tier 1. */
const read = (list: readonly Call[] = [['read_runbook', {}]]) => useTools(t, user, list, 1)

/** The files that the log says are left out, and why. */
const leftOut = ({ ops: { server } }: Pick<typeof user, 'ops'>) =>
  server
    .logs()
    .map((line): Readonly<Record<string, string>> => JSON.parse(line))
    .filter(({ msg }) => msg === 'runbook left out')
    .map(({ file, problem }) => [file, problem])

t.test('front matter is read as YAML has it', async (t) => {
  const [list = ''] = await read()
  const found = new Map(
    [...list.matchAll(/^- ([\w-]+): (.*)$/gm)].map(([, name, about]) => [name, about]),
  )
  for (const [name, description] of Object.entries(DESCRIPTIONS)) {
    const document: { description: string } = parse(`description: ${description}`)
    t.equal(found.get(name), document.description.replaceAll(/\s+/g, ' ').trim(), name)
  }
  t.equal(found.get('long-one'), 'Many steps')
  t.equal(found.get('twice'), 'A folder comes first')
  t.equal(found.size, Object.keys(DESCRIPTIONS).length + 2)
})

t.test('a session is told of runbooks, and reads them page by page', async (t) => {
  const next: Call = ['read_runbook', { name: 'long-one', offset: 12_000 }]
  const answers = await read([
    ['read_runbook', { name: 'plain' }],
    ['read_runbook', { name: 'long-one' }],
    next,
    ['read_runbook', { name: '../long-one/SKILL' }],
    ['list_services', {}],
    ['run_check', { service: 'shop' }],
  ])
  t.match(answers, [
    '# plain',
    /^Step 0 of many[^]*\n\(for the next page call read_runbook with \{"name":"long-one","offset":12000\}\)$/,
    /\nStep 999 of many\.\nThe key is «redacted»\.$/,
    'Error: There is no runbook "../long-one/SKILL"; there are: comment, ',
    'shop (runbook "plain")\n  check "port" (runbook "folded")\n  check "other port"',
    /^FAIL port: .* \(runbook "folded"\)\nFAIL other port: .* \(runbook "plain"\)$/,
  ])
  const system = model.asked.at(-1)?.messages[0]?.content ?? ''
  t.match(system, /When one fits, read it first, with read_runbook:\n- comment: /)
  t.match(system, '\n- plain: What to do when a disk is full.\n')
  t.notMatch(system, 'Step 0', 'the text is read when it is needed')
})

t.test('each bad file is said once in the log', async (t) => {
  const left = () => leftOut(user)
  const expected = bad.map(([file, , problem]) => [join(folder, file), problem])
  // A link's file has the name of its target.
  expected.push([join(folder, 'linked', 'SKILL.md'), 'its name must be "linked"'])
  t.same(left().toSorted(), expected.toSorted(), 'after several sessions')
  write('late.md', 'no front matter')
  t.teardown(() => rmSync(join(folder, 'late.md')))
  await read()
  t.equal(left().length, expected.length + 1)
  write('late.md', runbook('late', 'It is there now'))
  const [list] = await read()
  t.match(list, '\n- late: It is there now\n', 'read again without a restart')
  t.equal(left().length, expected.length + 1)
})

t.test('a long list of runbooks is cut in the prompt, and has pages', async (t) => {
  const many = await temporaryFolder(t, 'many')
  for (let at = 100; at < 203; at++) {
    const text = runbook(`book-${at}`, `${at} ${'x'.repeat(1_000)}`)
    writeFileSync(join(many, `book-${at}.md`), text)
  }
  const own = await startModelOps(t, { OPS_RUNBOOKS: many })
  const [list] = await useTools(t, own, [['read_runbook', {}]], 1)
  t.match(list, '(for the next page call read_runbook with {"offset":12000})')
  const system = own.model.asked.at(-1)?.messages[0]?.content ?? ''
  t.match(system, /\n- book-106: .*\nand 93 more(\n|$)/)
  t.notMatch(system, 'book-107')
  const problem = 'it and 2 more come after the first 100'
  t.same(leftOut(own), [[join(many, 'book-200.md'), problem]])
})

t.test('nothing of the folder has run', async (t) => {
  t.throws(() => readFileSync(join(folder, 'ran')), { code: 'ENOENT' })
})
