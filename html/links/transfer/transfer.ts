import { html, type Html, type Printable } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import type {
  PreviewedLink,
  UploadReport,
} from '../../../services/links/transfer/transfer/upload.ts'
import { checkbox, field, hiddenField, refusal, submit, VERBATIM, type Form } from '../../form.ts'
import { contentView } from '../../layout.ts'
import { breakable, countText, listTable, section, tableRow } from '../../parts.ts'
import { adminTabs } from '../layout.ts'
import { shortName, tagList, type ShortLinks } from '../names/links/links.ts'

const PATH = '/-/admin/import'

/** Lines without success that a page lists; the API has all of them. */
const MAX_LISTED = 100

const PROGRAMS = 'golink, Shlink, kutt, YOURLS, Bitly, Dub, Rebrandly, GoLinks and Trotto'

/** `/-/admin/import`: which file, and how. */
export function importFormView(state: FormState): View {
  const form: Form = { ...state, id: 'import' }
  const content = html`<form
    class="panel stack"
    method="post"
    action="${PATH}"
    enctype="multipart/form-data"
  >
    ${refusal(form)}
    <p>
      CSV with a header, or what ${PROGRAMS} export:
      <a href="/-/docs/links-import">what becomes of it</a>. Nothing is written before you have
      seen a preview.
    </p>
    ${fileField(form)} ${field(form, 'text', 'Or paste its text', { rows: 4, ...VERBATIM })}
    ${field(form, 'owner', 'Owner of links without one', {
      ...VERBATIM,
      inputmode: 'email',
      maxlength: 254,
    })}
    ${checkbox(form, 'update', 'Update links that exist')}
    ${checkbox(form, 'create_users', 'Create owners who are not users yet')}
    <p class="actions">${submit('Preview')}</p>
  </form>`
  return importView('Import', content)
}

/** A browser does not send a file again, so nothing that was typed comes back. */
function fileField(form: Form): Html {
  return field({ ...form, typed: {} }, 'file', 'File', {
    hint: '1 MiB and 10,000 links at most. The command gatehouse import takes larger files.',
    type: 'file',
    accept: '.csv,.tsv,.txt,.json,.jsonl',
  })
}

function importView(title: string, content: Html): View {
  const above = html`<h1>${title}</h1>
    ${adminTabs('import')}`
  return contentView({ title, section: 'admin', above }, content)
}

/** What the second step sends again: the file as it was previewed, and how it was. */
interface ImportAgain {
  /** In base64: a browser would change the line ends of a text. */
  file: string
  owner: string
  update: boolean
  create_users: boolean
}

/** What a file would become, and the button that imports it. */
export function previewView(report: UploadReport, again: ImportAgain, short: ShortLinks): View {
  const { source, totals, preview, lines } = report
  const { created, updated } = totals
  const content = html`<div class="panel stack">
      <p>
        <strong>${countText(lines.length, 'link')}</strong> in a file of ${source}. Nothing is
        written yet.
      </p>
      ${totalsList(totals, 'would be ')} ${created + updated > 0 && importForm(report, again)}
      ${created + updated === 0 && html`<p>There is nothing to import. <a href="${PATH}">Choose another file</a></p>`}
    </div>
    ${problemList(report)} ${columnTable(report)}
    ${section(
      'preview-title',
      lines.length > preview.length ? `The first ${preview.length} links` : 'Links',
      listTable({
        bodyId: 'previewed',
        caption: 'Links as they would be',
        columns: ['Link', 'Leads to', 'Tags', 'Owner', 'What happens'],
        kind: 'admin',
        rows: preview.map((link) => previewRow(link, again.owner, short)),
      }),
    )}`
  return importView('Import preview', content)
}

function importForm({ totals: { created, updated } }: UploadReport, again: ImportAgain): Html {
  const { file, owner, update, create_users } = again
  return html`<form method="post" action="${PATH}" enctype="multipart/form-data">
    ${hiddenField('step', 'import')} ${hiddenField('file', file)} ${hiddenField('owner', owner)}
    ${update && hiddenField('update', 'true')}
    ${create_users && hiddenField('create_users', 'true')}
    <p class="actions">
      ${submit(`Import ${countText(created + updated, 'link')}`)}
      <a href="${PATH}">Choose another file</a>
    </p>
  </form>`
}

/** What was done. */
export function importedView(report: UploadReport): View {
  const { source, totals, lines } = report
  const done = countText(totals.created + totals.updated, 'link')
  const text = `Imported ${done} of ${lines.length.toLocaleString('en')} from a file of ${source}.`
  const content = html`<div class="panel stack">
      <p class="saved" role="status">${text}</p>
      ${totalsList(totals, '')}
      <p class="actions">
        <a href="/-/all?sort=changed">See the links</a> <a href="${PATH}">Import another file</a>
      </p>
    </div>
    ${problemList(report)}`
  return importView('Imported', content)
}

function totalsList({ users, ...outcomes }: UploadReport['totals'], verb: string): Html {
  const texts: Readonly<Record<keyof typeof outcomes, string>> = {
    created: `${verb}created`,
    updated: `${verb}updated`,
    unchanged: 'there already, the same',
    conflict: 'in conflict with a link that exists',
    refused: 'refused',
  }
  const items = (Object.keys(texts) as (keyof typeof outcomes)[])
    .filter((outcome) => outcomes[outcome] > 0)
    .map((outcome) => html`<li>${outcomes[outcome].toLocaleString('en')} ${texts[outcome]}</li>`)
  const added = users > 0 && html`<li>${countText(users, 'user')} ${verb}added</li>`
  return html`<ul>
    ${items} ${added}
  </ul>`
}

/** The lines that are not imported, with the reasons. */
function problemList({ lines }: UploadReport): Html | false {
  const problems = lines.filter(({ outcome }) => outcome === 'conflict' || outcome === 'refused')
  const items = problems.slice(0, MAX_LISTED).map(({ line, slug, message }) => {
    const name: Printable = slug !== '' && html`<code>${breakable(slug.slice(0, 64))}</code>:`
    return html`<li>Line ${line}: ${name} ${message}</li>`
  })
  const more = problems.length - items.length
  return (
    problems.length > 0 &&
    section(
      'problems-title',
      `Not imported: ${countText(problems.length, 'line')}`,
      html`<ul class="problems">
          ${items}
        </ul>
        ${more > 0 && html`<p class="muted">And ${countText(more, 'more line')}.</p>`}`,
    )
  )
}

/** What becomes of each column. */
function columnTable({ columns }: UploadReport): Html {
  const table = listTable({
    bodyId: 'columns',
    caption: 'Columns of the file',
    columns: ['Column', 'Becomes', 'Note'],
    kind: 'columns',
    rows: columns.map(({ column, becomes, note }) => {
      const what = becomes ?? html`<span class="badge ended">not taken over</span>`
      return tableRow({}, { type: html`<bdi>${breakable(column)}</bdi>`, what, why: note })
    }),
  })
  return section('columns-title', 'What becomes of the columns', table)
}

const WORDS: Readonly<Record<PreviewedLink['outcome'], string>> = {
  created: 'create',
  updated: 'update',
  unchanged: 'the same',
  conflict: 'conflict',
  refused: 'refused',
}

/** A link as it would be; without an owner of its own it gets the given one. */
function previewRow(link: PreviewedLink, otherOwner: string, short: ShortLinks): Html {
  const { line, slug, title, url, tags, owner, outcome, message } = link
  const isTaken = outcome === 'created' || outcome === 'updated'
  return tableRow(
    { 'data-line': line },
    {
      type: html`${shortName(short, slug.slice(0, 64))}
      ${title !== '' && html`<bdi class="detail title clamp">${title}</bdi>`}`,
      target: html`<bdi class="clamp">${url}</bdi>`,
      kind: tagList(tags.slice(0, 5)),
      owner: html`<bdi>${breakable(owner || otherOwner)}</bdi>`,
      outcome: html`<span class="badge ${isTaken ? 'token' : 'ended'}">${WORDS[outcome]}</span>
        <span class="muted">${message}</span>`,
    },
  )
}
