import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { DECISIONS } from '../contract/decisions.ts'
import { ADDED as HOOKS_ADDED, HOOKS } from '../contract/hooks.ts'
import { ADDED as LINKS_ADDED, LINKS } from '../contract/links.ts'
import { ADDED as OPS_ADDED, OPS } from '../contract/ops.ts'
import type { Additions, Contract } from '../contract/frame.ts'
import { sentencesOf } from '../contract/sentences.ts'
import { ROOT } from '../helpers/program.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

const CONTRACTS: Record<string, { rows: Contract<never>; added: Record<string, Additions> }> = {
  decisions: { rows: DECISIONS, added: {} },
  hooks: { rows: HOOKS, added: HOOKS_ADDED },
  links: { rows: LINKS, added: LINKS_ADDED },
  ops: { rows: OPS, added: OPS_ADDED },
}

for (const [page, { rows, added }] of Object.entries(CONTRACTS)) {
  const quotes = Object.entries(rows).flatMap(([section, proofs]) =>
    Object.entries(proofs).map(([says, proof]) => ({ section, says, proof })),
  )

  t.test(`each sentence of ${page}.md has a row, and each row its sentence`, async (t) => {
    const sentences = sentencesOf(page)
    t.ok(sentences.length > 50, 'the sentences were found')
    for (const { section, text } of sentences) {
      const own = quotes.filter(
        (row) => section.startsWith(row.section) && text.startsWith(row.says),
      )
      t.equal(own.length, 1, `${section}: ${text}`)
    }
    for (const { section, says } of quotes) {
      const own = sentences.filter(
        (sentence) => sentence.section.startsWith(section) && sentence.text.startsWith(says),
      )
      t.equal(own.length, 1, `${section}: ${says}`)
    }
  })

  t.test(`what ${page}.md leaves to other tests is there`, async (t) => {
    for (const { says, proof } of quotes) {
      if (typeof proof !== 'string') continue
      const [file = '', title = ''] = proof.split(' > ')
      t.ok(existsSync(join(ROOT, file)), file)
      t.ok(read(file).includes(`'${title}'`), `${says}: ${title}`)
    }
  })

  t.test(`each member beside ${page}.md is decided`, async (t) => {
    for (const members of Object.values(added)) {
      for (const [name, file] of Object.entries(members)) {
        t.ok(read(`docs/${file}`).includes(name), `${file} has ${name}`)
      }
    }
  })
}
