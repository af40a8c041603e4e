import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Inventory } from '../../services/ops/watch/inventory/inventory.ts'
import type { HostFacts } from '../../services/ops/agent/runners/host-facts.ts'
import type { Incident, RecordedCheck } from './incident.ts'

const GIB = 1024 ** 3
const MEMORY_GIB = 16
const DISK_GIB = 200

/** What a made-up host consists of. */
export type MadeUpHost = {
  /** Its programs; a command that is not here is not installed. */
  bin: string
  /** Its files, below the folder of repositories. */
  files: string
  inventory: Inventory
  facts: HostFacts
  /** The operations that were run. */
  ran(): readonly string[]
}

/** Sets the host of an incident up in a folder, where another one may have been. */
export function setUpHost(folder: string, incident: Incident, page: string) {
  const place = (name: string) => join(folder, name)
  const [bin, files, ran] = [place('bin'), place('files'), place('ran')]
  for (const path of [bin, files, place('checks'), place('operations'), place('outputs'), ran]) {
    rmSync(path, { recursive: true, force: true })
    if (path !== ran) mkdirSync(path, { recursive: true })
  }
  for (const [path, text] of Object.entries(incident.files ?? {})) write(join(files, path), text)
  const programs = { ...incident.programs, ...journalctl(incident.journal ?? {}) }
  for (const [name, outputs] of Object.entries(programs)) {
    const cases = outputs.map(({ with: words = [], prints, exit = 0 }, at) => {
      const file = place(`outputs/${name}-${at}`)
      write(file, prints.endsWith('\n') || prints === '' ? prints : `${prints}\n`)
      const tests = words.map((word) => `case " $* " in *${quoted(word)}*) ;; *) false;; esac`)
      return `if ${[...tests, ':'].join(' && ')}; then cat ${quoted(file)}; exit ${exit}; fi`
    })
    program(join(bin, name), [...cases, `echo "${name}: nothing recorded for: $*" >&2; exit 1`])
  }
  const services = incident.services.map(({ checks, operations = [], ...service }, at) => ({
    ...service,
    checks: checks.map((check, nr) => {
      return checkOf(check, place(`checks/${at}-${nr}`), ran, page)
    }),
    operations: operations.map((name) => {
      const file = place(`operations/${name}`)
      program(file, [`echo ${quoted(name)} >> ${quoted(ran)}`])
      const mended = checks.find(({ mended_by }) => mended_by === name)
      const verify = mended === undefined ? {} : { verify: mended.name }
      return { name, action_type: 'restart', argv: [file], ...verify }
    }),
  }))
  return {
    bin,
    files,
    inventory: { services, readonly: Object.keys(incident.programs ?? {}).map((name) => [name]) },
    facts: factsOf(incident.host ?? {}),
    ran: () => (existsSync(ran) ? readFileSync(ran, 'utf8').trim().split('\n') : []),
  }
}

/** The arguments are those of the tool `journal`. */
function journalctl(journal: NonNullable<Incident['journal']>): Incident['programs'] {
  const entries = Object.entries(journal)
  const units = entries.flatMap(([unit, prints]) => {
    const bare = unit.replace(/\.service$/, '')
    return [
      { with: [`--unit=${unit} `], prints },
      { with: [`--unit=${bare} `], prints },
    ]
  })
  const all = entries
    .flatMap(([, text]) => text.split('\n'))
    .filter((line) => line !== '')
    .toSorted()
    .join('\n')
  return { journalctl: [...units, { with: ['--unit='], prints: '' }, { prints: all }] }
}

function checkOf(
  { name, state, says = '', page: path, mended_by }: RecordedCheck,
  file: string,
  ran: string,
  page: string,
): Inventory['services'][number]['checks'][number] {
  const level = state === 'warn' ? 'warning' : 'critical'
  if (path !== undefined) return { type: 'http', name, level, url: `${page}${path}` }
  const mends = `grep -qx ${quoted(mended_by ?? '')} ${quoted(ran)} 2>/dev/null && exit 0`
  program(file, [
    ...(mended_by === undefined ? [] : [mends]),
    `echo ${quoted(says)}; exit ${state === 'ok' ? 0 : 1}`,
  ])
  return { type: 'command', name, level, argv: [file] }
}

function factsOf({
  name = 'web-1',
  uptime_h = 1_000,
  load = 0.4,
  memory = 35,
  disks = { '/': 41 },
}: NonNullable<Incident['host']>) {
  const space = (gib: number, percent: number) => ({
    totalBytes: gib * GIB,
    freeBytes: gib * GIB * (1 - percent / 100),
  })
  return {
    name,
    system: 'Debian GNU/Linux 12 (bookworm)',
    kernel: 'Linux 6.1.0-30-amd64 x86_64',
    uptimeS: uptime_h * 3_600,
    cpus: 4,
    load: [load, load, load],
    memory: space(MEMORY_GIB, memory),
    disks: Object.entries(disks).map(([path, percent]) => ({ path, ...space(DISK_GIB, percent) })),
  }
}

function program(path: string, lines: readonly string[]) {
  write(path, `#!/bin/sh\n${lines.join('\n')}\n`, 0o755)
}

function write(path: string, text: string, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text, { mode })
}

/** One word for a shell. */
function quoted(text: string) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
